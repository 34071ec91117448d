//! A fixed index from keys to numbers: open addressing, one 8-byte entry a key, no tombstones.
//!
//! The keys lie where the numbers point (an arena, a row); the index keeps 32 bits of each key's
//! hash and the number, so a probe looks at a key only if those bits agree. An entry is
//! `hash << 32 | number + 1`; 0 is empty.
//!
//! - TABLE-1: every entry lies between its home and the next empty place, so a search may stop at
//!   an empty place. Removal shifts later entries back instead of leaving a mark.
//! - TABLE-2: at most half of the places are used, so there is always an empty one, and it is near.

use super::pages::make_ready;

/// Numbers by the hash of their keys.
#[derive(Debug)]
pub struct Index {
    entries: Box<[u64]>,
    mask: usize,
    len: usize,
    numbers_max: usize,
}

impl Index {
    /// An index for at most `numbers_max` numbers.
    #[must_use]
    pub fn with_capacity(numbers_max: u32) -> Self {
        let places = (numbers_max as usize * 2).next_power_of_two().max(2);
        let mut entries = vec![0; places].into_boxed_slice();
        make_ready(&mut entries);
        Self { entries, mask: places - 1, len: 0, numbers_max: numbers_max as usize }
    }

    /// The number with this hash whose key is the `same`.
    #[must_use]
    pub fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut place = self.home(hash);
        loop {
            let entry = self.entries[place];
            if entry == 0 {
                return None;
            }
            if entry >> 32 == hash >> 32 && same(number_of(entry)) {
                return Some(number_of(entry));
            }
            place = (place + 1) & self.mask;
        }
    }

    /// Adds a number whose key is not in yet; false if the index is full.
    pub fn insert(&mut self, hash: u64, number: u32) -> bool {
        assert!(number < u32::MAX, "the entry of the last number would look empty");
        if self.len == self.numbers_max {
            return false;
        }
        let mut place = self.home(hash);
        while self.entries[place] != 0 {
            place = (place + 1) & self.mask;
        }
        self.entries[place] = hash >> 32 << 32 | (u64::from(number) + 1);
        self.len += 1;
        true
    }

    /// Takes out a number that was inserted with this hash.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let entry = hash >> 32 << 32 | (u64::from(number) + 1);
        let mut place = self.home(hash);
        while self.entries[place] != entry {
            assert!(self.entries[place] != 0, "only what was inserted is removed");
            place = (place + 1) & self.mask;
        }
        self.len -= 1;
        let mut hole = place;
        loop {
            place = (place + 1) & self.mask;
            let entry = self.entries[place];
            if entry == 0 {
                self.entries[hole] = 0;
                return;
            }
            // It may fill the hole unless its home lies behind the hole (TABLE-1).
            let from_home = place.wrapping_sub(self.home(entry)) & self.mask;
            let from_hole = place.wrapping_sub(hole) & self.mask;
            if from_hole <= from_home {
                self.entries[hole] = entry;
                hole = place;
            }
        }
    }

    /// Every number, in no order that means anything.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().filter(|entry| **entry != 0).map(|entry| number_of(*entry))
    }

    /// How many numbers are in.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True without numbers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if no number can be added.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len == self.numbers_max
    }

    /// Where a search for this hash begins; an entry's upper half is its hash's.
    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash >> 32).expect("half a hash fits usize") & self.mask
    }
}

fn number_of(entry: u64) -> u32 {
    u32::try_from(entry & u64::from(u32::MAX)).expect("masked to 32 bits") - 1
}

/// Spreads a key that already is a hash, or is dense, by a secret odd number: salts are free, so
/// without it digests could be aimed at one place.
#[must_use]
pub const fn spread(key: u64, secret: u64) -> u64 {
    key.wrapping_mul(secret)
}

/// The first eight bytes of a digest as a key.
#[must_use]
pub fn digest_key(digest: &[u8; 32]) -> u64 {
    u64::from_le_bytes([
        digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], digest[7],
    ])
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Hashes are drawn from few values, so that probes are long and removals shift.
        #[test]
        fn an_index_agrees_with_a_plain_map(
            changes in proptest::collection::vec((any::<bool>(), 0_u32..24, 0_u64..6), 1..300),
        ) {
            let mut index = Index::with_capacity(16);
            let mut plain = BTreeMap::new();
            for (put, number, hash) in changes {
                let hash = hash << 32;
                match plain.get(&number).copied() {
                    None if put => {
                        prop_assert_eq!(index.insert(hash, number), plain.len() < 16);
                        if plain.len() < 16 {
                            plain.insert(number, hash);
                        }
                    }
                    Some(hash) if !put => {
                        index.remove(hash, number);
                        plain.remove(&number);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), plain.len());
                for (number, hash) in &plain {
                    prop_assert_eq!(index.find(*hash, |other| other == *number), Some(*number));
                }
                prop_assert_eq!(index.find(0, |other| !plain.contains_key(&other)), None);
            }
        }
    }
}
