//! A set of small numbers in borrowed words, with a summary so that a long empty stretch is skipped.
//!
//! | words                      | hold                                                             |
//! |----------------------------|------------------------------------------------------------------|
//! | `0..summary`               | one bit per word of the next row: set if that word is not zero   |
//! | `summary..summary + words` | one bit per number                                               |
//!
//! The words belong to somebody else (a price ladder's block), so these are functions on slices.

/// How the words of a set divide into summary and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    summary: usize,
    words: usize,
}

impl Shape {
    /// The shape of a set of the numbers `0..numbers`.
    #[must_use]
    pub const fn of(numbers: usize) -> Self {
        let words = numbers.div_ceil(64);
        Self { summary: words.div_ceil(64), words }
    }

    /// How many words a set of this shape takes.
    #[must_use]
    pub const fn len(self) -> usize {
        self.summary + self.words
    }

    /// True for the shape of a set that can hold no number.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.words == 0
    }

    /// Empties the set.
    pub fn clear(self, set: &mut [u64]) {
        set[..self.len()].fill(0);
    }

    /// Puts `number` in.
    pub fn insert(self, set: &mut [u64], number: usize) {
        let word = number / 64;
        set[self.summary + word] |= 1 << (number % 64);
        set[word / 64] |= 1 << (word % 64);
    }

    /// Takes `number` out.
    pub fn remove(self, set: &mut [u64], number: usize) {
        let word = number / 64;
        let bits = &mut set[self.summary + word];
        *bits &= !(1 << (number % 64));
        if *bits == 0 {
            set[word / 64] &= !(1 << (word % 64));
        }
    }

    /// Whether `number` is in.
    #[must_use]
    pub fn contains(self, set: &[u64], number: usize) -> bool {
        set[self.summary + number / 64] & (1 << (number % 64)) != 0
    }

    /// The smallest number in the set that is at least `from`.
    #[must_use]
    pub fn next_up(self, set: &[u64], from: usize) -> Option<usize> {
        let word = from / 64;
        if self.words <= word {
            return None;
        }
        let (summary, bits) = set[..self.len()].split_at(self.summary);
        if let Some(found) = lowest(bits[word] & (u64::MAX << (from % 64))) {
            return Some(word * 64 + found);
        }
        let word = up(summary, word + 1)?;
        lowest(bits[word]).map(|found| word * 64 + found)
    }

    /// The largest number in the set that is at most `from`.
    #[must_use]
    pub fn next_down(self, set: &[u64], from: usize) -> Option<usize> {
        let (summary, bits) = set[..self.len()].split_at(self.summary);
        let word = from / 64;
        if let Some(found) = highest(bits[word] & (u64::MAX >> (63 - from % 64))) {
            return Some(word * 64 + found);
        }
        let word = down(summary, word.checked_sub(1)?)?;
        highest(bits[word]).map(|found| word * 64 + found)
    }
}

fn lowest(bits: u64) -> Option<usize> {
    (bits != 0).then(|| bits.trailing_zeros() as usize)
}

fn highest(bits: u64) -> Option<usize> {
    (bits != 0).then(|| 63 - bits.leading_zeros() as usize)
}

/// The first bit at or above `from` in words without a summary; there are at most three words.
fn up(words: &[u64], from: usize) -> Option<usize> {
    let first = from / 64;
    let head = words.get(first)? & (u64::MAX << (from % 64));
    lowest(head).map(|bit| first * 64 + bit).or_else(|| {
        let mut later = words.iter().enumerate().skip(first + 1);
        later.find_map(|(word, bits)| lowest(*bits).map(|bit| word * 64 + bit))
    })
}

/// The last bit at or below `from` in words without a summary.
fn down(words: &[u64], from: usize) -> Option<usize> {
    let last = from / 64;
    let head = words[last] & (u64::MAX >> (63 - from % 64));
    highest(head).map(|bit| last * 64 + bit).or_else(|| {
        let mut earlier = words[..last].iter().enumerate().rev();
        earlier.find_map(|(word, bits)| highest(*bits).map(|bit| word * 64 + bit))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn neighbours_are_those_of_a_plain_set(
            numbers in 1_usize..9_999,
            changes in proptest::collection::vec((any::<bool>(), 0_usize..9_999), 1..200),
        ) {
            let shape = Shape::of(numbers);
            let mut set = vec![u64::MAX; shape.len()];
            shape.clear(&mut set);
            let mut plain = BTreeSet::new();
            prop_assert_eq!(shape.next_up(&set, numbers.next_multiple_of(64)), None);
            for (put, number) in changes {
                let number = number % numbers;
                if put {
                    shape.insert(&mut set, number);
                    plain.insert(number);
                } else {
                    shape.remove(&mut set, number);
                    plain.remove(&number);
                }
                for from in [0, number.saturating_sub(1), number, (number + 1) % numbers, numbers - 1] {
                    prop_assert_eq!(shape.contains(&set, from), plain.contains(&from));
                    prop_assert_eq!(shape.next_up(&set, from), plain.range(from..).next().copied());
                    prop_assert_eq!(shape.next_down(&set, from), plain.range(..=from).next_back().copied());
                }
            }
        }
    }
}
