//! A cache of what the index found for the last queries, valid until the index changes: the next
//! page of a search, the same search with another filter, and what many people type alike are not
//! looked up again.
//!
//! It keeps which hits match, never in what order: weights change all the time.

use super::Match;
use super::words::{Edits, Wanted};
use std::collections::VecDeque;
use std::rc::Rc;

/// The most matches that are kept in all: 8 MiB. A pass that found more than that is not kept.
const MATCHES_MAX: usize = 1 << 20;
const _: () = assert!(size_of::<Match>() == 8, "or the arithmetic above is wrong");

/// The most passes that are kept; each is compared with every query.
const PASSES_MAX: usize = 64;

/// How texts were searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Every word in one text.
    InOneText,
    /// Every word in some text.
    AcrossTexts,
}

struct Entry {
    wanted: Wanted,
    edits: Edits,
    pass: Pass,
    found: Rc<[Match]>,
}

/// The last passes, the most recently used at the end.
#[derive(Default)]
pub(super) struct Recent {
    entries: VecDeque<Entry>,
    matches: usize,
}

impl Recent {
    /// Forgets everything, because the index has changed.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// What this pass found, if it is kept.
    pub(super) fn find(&mut self, wanted: &Wanted, edits: &Edits, pass: Pass) -> Option<Rc<[Match]>> {
        let is_it = |entry: &Entry| entry.pass == pass && entry.edits == *edits && entry.wanted == *wanted;
        let place = self.entries.iter().position(is_it)?;
        let entry = self.entries.remove(place).expect("it was just found");
        let found = Rc::clone(&entry.found);
        self.entries.push_back(entry);
        Some(found)
    }

    /// Keeps what a pass found, and drops the least recently used passes above the limits.
    pub(super) fn keep(
        &mut self,
        wanted: &Wanted,
        edits: &Edits,
        pass: Pass,
        found: Vec<Match>,
    ) -> Rc<[Match]> {
        let found: Rc<[Match]> = found.into();
        if found.len() <= MATCHES_MAX {
            self.matches += found.len();
            let (wanted, edits) = (wanted.clone(), edits.clone());
            self.entries.push_back(Entry { wanted, edits, pass, found: Rc::clone(&found) });
            while PASSES_MAX < self.entries.len() || MATCHES_MAX < self.matches {
                let oldest = self.entries.pop_front().expect("matches are those of entries");
                self.matches -= oldest.found.len();
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::hits::HitNo;
    use super::*;

    #[test]
    fn the_longest_unused_goes_first_and_neither_bound_is_passed() {
        let mut recent = Recent::default();
        let none = Edits::new();
        let term = |number: usize| Wanted::new(&format!("term {number}"));
        let one = Match { hit: HitNo(1), tier: 0 };
        for number in 0..PASSES_MAX {
            recent.keep(&term(number), &none, Pass::InOneText, vec![one]);
        }
        assert_eq!(recent.find(&term(0), &none, Pass::InOneText).as_deref(), Some(&[one][..]));
        assert_eq!(recent.find(&term(0), &none, Pass::AcrossTexts), None);
        recent.keep(&term(PASSES_MAX), &none, Pass::InOneText, vec![one]);
        assert_eq!(recent.find(&term(1), &none, Pass::InOneText), None, "used before all others");
        assert!(recent.find(&term(0), &none, Pass::InOneText).is_some());
        assert_eq!(recent.entries.len(), PASSES_MAX);

        let found = recent.keep(&term(1), &none, Pass::InOneText, vec![one; MATCHES_MAX]);
        assert_eq!((found.len(), recent.entries.len(), recent.matches), (MATCHES_MAX, 1, MATCHES_MAX));
        recent.keep(&term(2), &none, Pass::InOneText, vec![one; MATCHES_MAX + 1]);
        assert_eq!(recent.find(&term(2), &none, Pass::InOneText), None, "more than is kept at all");
        assert!(recent.find(&term(1), &none, Pass::InOneText).is_some());
        recent.forget();
        assert_eq!((recent.entries.len(), recent.matches), (0, 0));
    }
}
