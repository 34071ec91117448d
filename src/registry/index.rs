//! From a name to a row number: open addressing over atomics, linear probing, no removal.
//!
//! A slot holds 0 for empty, else the entry plus one. There are at least twice as many slots as
//! entries, so a probe ends soon. Clients can choose names (an address, an imported token), so the
//! hash is keyed with a secret of this process: nobody can aim at one slot.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

/// A hash index of entries; the names themselves stay in the rows.
#[derive(Debug)]
pub(super) struct Index {
    slots: Box<[AtomicU32]>,
    secret: RandomState,
}

impl Index {
    /// An empty index for this many entries.
    pub(super) fn with_capacity(entries: u32) -> Self {
        let slots = (entries as usize * 2).next_power_of_two().max(2);
        Self { slots: (0..slots).map(|_| AtomicU32::new(0)).collect(), secret: RandomState::new() }
    }

    /// The entry of `name`; `same` says whether an entry's row has that name.
    pub(super) fn find(&self, name: &[u8], same: impl Fn(u32) -> bool) -> Option<u32> {
        for slot in self.probe(name) {
            // Acquire pairs with the release in `insert`: the entry's row is published.
            match self.slots[slot].load(Ordering::Acquire) {
                0 => return None,
                stored if same(stored - 1) => return Some(stored - 1),
                _ => {}
            }
        }
        None
    }

    /// Adds an entry whose row is published and whose name is not here. Only the one writer calls it.
    pub(super) fn insert(&self, name: &[u8], entry: u32) {
        let slot = self
            .probe(name)
            .find(|slot| self.slots[*slot].load(Ordering::Relaxed) == 0)
            .expect("an index has twice as many slots as entries");
        // Release pairs with the acquire in `find`.
        self.slots[slot].store(entry + 1, Ordering::Release);
    }

    /// Every slot once, from the one that `name` hashes to.
    fn probe(&self, name: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let mut hasher = self.secret.build_hasher();
        hasher.write(name);
        let mask = self.slots.len() - 1;
        let start = usize::try_from(hasher.finish() & mask as u64).expect("masked to a slot");
        (0..=mask).map(move |step| (start + step) & mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_by_its_name_and_no_other_name_is() {
        let index = Index::with_capacity(1_000);
        let name = |entry: u32| entry.to_be_bytes();
        for entry in 0..1_000 {
            assert_eq!(index.find(&name(entry), |found| found == entry), None);
            index.insert(&name(entry), entry);
        }
        for entry in 0..1_000 {
            assert_eq!(index.find(&name(entry), |found| found == entry), Some(entry));
        }
        assert_eq!(index.find(&name(1_000), |found| found == 1_000), None);
    }

    #[test]
    fn an_index_for_nothing_answers() {
        assert_eq!(Index::with_capacity(0).find(b"name", |_| true), None);
    }
}
