//! The keys that a core loop has seen lately, ready to check requests with.
//!
//! Sets of eight entries; an API key belongs to one set, and when that is full its least recently
//! used entry makes room. Losing an entry costs its owner one recomputation. An entry is valid only
//! as long as the registry still has its generation: the caller checks that at every lookup, so a
//! revoked key dies at once, on every loop.

use super::mac::{MacKey, same};
use crate::domain::{Address, ApiKey, WalletNo, Word};

/// Entries in a set: enough that keys of one set rarely push each other out.
const WAYS: usize = 8;

/// A key in use.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// The key's public name.
    pub api_key: ApiKey,
    /// Its owner's EOA.
    pub address: Address,
    /// The owner.
    pub principal: WalletNo,
    /// The nonce that the key was made with: its name in the registry, with the owner.
    pub nonce: Word,
    /// The generation that these secrets belong to.
    pub generation: u32,
    /// The key's secret, ready for use.
    pub mac: MacKey,
    /// The passphrase that goes with it.
    pub passphrase: Passphrase,
}

/// A passphrase that is not printed, only compared.
#[derive(Clone)]
pub struct Passphrase([u8; 64]);

impl Passphrase {
    /// The passphrase of a key.
    #[must_use]
    pub const fn new(text: [u8; 64]) -> Self {
        Self(text)
    }

    /// True if `text` is this passphrase; takes the same time wherever it differs.
    #[must_use]
    pub fn is(&self, text: &[u8]) -> bool {
        same(&self.0, text)
    }
}

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Passphrase(secret)")
    }
}

#[derive(Debug)]
struct Place {
    entry: KeyEntry,
    used: u64,
}

/// A fixed number of entries.
#[derive(Debug)]
pub struct KeyTable {
    places: Box<[Option<Place>]>,
    uses: u64,
}

impl KeyTable {
    /// An empty table for at least `entries` keys.
    #[must_use]
    pub fn with_capacity(entries: u32) -> Self {
        let sets = (entries as usize).div_ceil(WAYS).next_power_of_two();
        Self { places: (0..sets * WAYS).map(|_| None).collect(), uses: 0 }
    }

    /// The entry of a key, if it is here and `lives`. A dead one is dropped.
    pub fn find(&mut self, api_key: &ApiKey, lives: impl FnOnce(&KeyEntry) -> bool) -> Option<&KeyEntry> {
        self.uses += 1;
        let uses = self.uses;
        let index = self.index_of(api_key)?;
        let place = self.places[index].as_mut().expect("index_of found it");
        if !lives(&place.entry) {
            self.places[index] = None;
            return None;
        }
        place.used = uses;
        self.places[index].as_ref().map(|place| &place.entry)
    }

    /// Keeps an entry, in place of the one with the same key, else in an empty place, else in that
    /// of the least recently used one.
    pub fn keep(&mut self, entry: KeyEntry) -> &KeyEntry {
        self.uses += 1;
        let index = self.index_of(&entry.api_key).unwrap_or_else(|| self.place_for(&entry.api_key));
        let place = self.places[index].insert(Place { entry, used: self.uses });
        &place.entry
    }

    fn index_of(&self, api_key: &ApiKey) -> Option<usize> {
        self.set_of(api_key)
            .find(|index| self.places[*index].as_ref().is_some_and(|place| place.entry.api_key == *api_key))
    }

    fn place_for(&self, api_key: &ApiKey) -> usize {
        self.set_of(api_key)
            .min_by_key(|index| self.places[*index].as_ref().map_or(0, |place| place.used))
            .expect("a set has places")
    }

    /// Keys are HMAC outputs, so their first bits serve as a hash.
    fn set_of(&self, api_key: &ApiKey) -> std::ops::Range<usize> {
        let spread = u32::from_be_bytes(api_key.0[..4].try_into().expect("four of 16 bytes"));
        let first = (spread as usize & (self.places.len() / WAYS - 1)) * WAYS;
        first..first + WAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u8) -> KeyEntry {
        let mut api_key = [0; 16];
        api_key[15] = number;
        KeyEntry {
            api_key: ApiKey(api_key),
            address: Address([number; 20]),
            principal: WalletNo(u32::from(number)),
            nonce: Word::ZERO,
            generation: 0,
            mac: MacKey::new(&[number; 32]),
            passphrase: Passphrase::new([number; 64]),
        }
    }

    fn holds(table: &mut KeyTable, number: u8) -> bool {
        table.find(&entry(number).api_key, |_| true).is_some()
    }

    #[test]
    fn a_key_is_found_until_it_is_revoked() {
        let mut table = KeyTable::with_capacity(8);
        assert!(!holds(&mut table, 1));
        table.keep(entry(1));
        assert!(holds(&mut table, 1));
        assert!(table.find(&entry(1).api_key, |found| found.generation == 1).is_none());
        assert!(!holds(&mut table, 1), "a dead entry is gone");
    }

    #[test]
    fn a_table_holds_as_many_keys_as_it_was_made_for() {
        let mut table = KeyTable::with_capacity(32);
        let keep = |number: u8| {
            let mut key = entry(number);
            key.api_key.0[3] = number % 4;
            table.keep(key).api_key
        };
        let keys: Vec<ApiKey> = (0..32).map(keep).collect();
        assert!(keys.iter().all(|key| table.find(key, |_| true).is_some()));
    }

    #[test]
    fn a_full_set_gives_up_the_entry_used_longest_ago() {
        let mut table = KeyTable::with_capacity(8);
        for number in 0..8 {
            table.keep(entry(number));
        }
        assert!(holds(&mut table, 0));
        table.keep(entry(8));
        let kept: Vec<_> = (0..9).filter(|number| holds(&mut table, *number)).collect();
        assert_eq!(kept, [0, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_passphrase_is_itself_and_nothing_shorter_or_longer() {
        let passphrase = Passphrase::new([b'a'; 64]);
        assert!(passphrase.is(&[b'a'; 64]));
        for other in [&[b'a'; 63][..], &[b'a'; 65][..], &[b'b'; 64][..], b""] {
            assert!(!passphrase.is(other));
        }
    }

    #[test]
    fn keeping_a_key_again_takes_no_second_place() {
        let mut table = KeyTable::with_capacity(8);
        for number in 0..8 {
            table.keep(entry(number));
        }
        table.keep(KeyEntry { generation: 5, ..entry(3) });
        let found = table.find(&entry(3).api_key, |_| true).map(|found| found.generation);
        assert_eq!(found, Some(5));
        assert!((0..8).all(|number| holds(&mut table, number)));
    }
}
