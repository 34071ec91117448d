//! A fixed index from keys to numbers: buckets of one cache line, no tombstones.
//!
//! | bytes of a bucket | hold |
//! |---:|---|
//! | 32 | eight tags: the upper half of a hash with its lowest bit set, 0 where the place is empty |
//! | 32 | eight numbers |
//!
//! The keys are stored where the numbers point (an arena, a row); a probe reads a key only if its tag matches.
//! All tags of a bucket are compared at once: the place of a key within its bucket costs no branch, and overflow
//! is rare enough to be predicted.
//!
//! - TABLE-1: every number is in its home, the bucket that its tag selects, or in a later one (wrapping around)
//!   with only full buckets in between; so a search may stop at a bucket that is not full. Removal from a full
//!   bucket moves back a number that had to go further.
//! - TABLE-2: at most half of the places are used. At half, one bucket in 20 is full, by Poisson's law.
#![allow(unsafe_code, reason = "eight tags are compared at once by instructions of the processor")]

use super::ahead;
use super::pages::filled;
use std::arch::x86_64::{
    _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set_epi32, _mm_set1_epi32,
    _mm_setzero_si128,
};

const PLACES: usize = 8;

/// The tag of an empty place; no key has it.
const EMPTY: u32 = 0;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u32; PLACES],
    numbers: [u32; PLACES],
}

impl Bucket {
    const EMPTY: Self = Self { tags: [EMPTY; PLACES], numbers: [0; PLACES] };

    /// The places with this tag.
    fn with(&self, tag: u32) -> Places {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { equal(&self.tags, tag) }
    }

    fn is_full(&self) -> bool {
        self.with(EMPTY) == Places(0)
    }
}

/// The places that hold `tag`: two comparisons of four tags each, one bit of the result per place.
#[target_feature(enable = "sse2")]
fn equal(tags: &[u32; PLACES], tag: u32) -> Places {
    let tags = tags.map(u32::cast_signed);
    let wanted = _mm_set1_epi32(tag.cast_signed());
    let first = _mm_cmpeq_epi32(_mm_set_epi32(tags[3], tags[2], tags[1], tags[0]), wanted);
    let last = _mm_cmpeq_epi32(_mm_set_epi32(tags[7], tags[6], tags[5], tags[4]), wanted);
    let bytes = _mm_packs_epi16(_mm_packs_epi32(first, last), _mm_setzero_si128());
    Places(_mm_movemask_epi8(bytes))
}

/// Places of a bucket, the first in the lowest bit.
#[derive(Debug, PartialEq, Eq)]
struct Places(i32);

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let place = (self.0 != 0).then(|| self.0.trailing_zeros() as usize);
        self.0 &= self.0.wrapping_sub(1);
        place
    }
}

/// A number and its place in an index, valid until the index changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number.
    pub number: u32,
    bucket: usize,
    place: usize,
}

/// Numbers by the hash of their keys.
#[derive(Debug)]
pub struct Index {
    buckets: Box<[Bucket]>,
    len: usize,
    numbers_max: usize,
}

impl Index {
    /// Bytes per number in a full index: two places (TABLE-2).
    pub const BYTES: usize = 2 * size_of::<Bucket>() / PLACES;

    /// An index for at most `numbers_max` numbers.
    #[must_use]
    pub fn with_capacity(numbers_max: u32) -> Self {
        let numbers_max = numbers_max as usize;
        let buckets = filled((numbers_max * 2).div_ceil(PLACES).max(1), Bucket::EMPTY).into_boxed_slice();
        Self { buckets, len: 0, numbers_max }
    }

    /// Prefetches the bucket in which a search for this hash begins; a large index is mostly not in any cache.
    pub fn prefetch(&self, hash: u64) {
        ahead::prefetch_at(self.bucket_of(hash));
    }

    /// The address of the bucket in which a search for this hash begins, for a prefetch.
    #[must_use]
    pub fn bucket_of(&self, hash: u64) -> *const u8 {
        self.buckets.as_ptr().wrapping_add(self.home(tag(hash))).cast()
    }

    /// The first number that [`Index::find`] would check: it has the same tag and, with rare exceptions, the same hash.
    #[must_use]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The number with this hash for which `same` finds that its key is the right one.
    #[must_use]
    #[inline]
    pub fn find(&self, hash: u64, same: impl FnMut(u32) -> bool) -> Option<u32> {
        self.look_up(hash, same).map(|found| found.number)
    }

    /// The number with this hash for which `same` finds that its key is the right one, and its place.
    #[must_use]
    #[allow(clippy::inline_always, reason = "called where every nanosecond counts: a book's commands")]
    #[inline(always)]
    pub fn look_up(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<Found> {
        let tag = tag(hash);
        let mut at = self.home(tag);
        loop {
            let bucket = &self.buckets[at];
            if let Some(place) = bucket.with(tag).find(|place| same(bucket.numbers[*place])) {
                return Some(Found { number: bucket.numbers[place], bucket: at, place });
            }
            if !bucket.is_full() {
                return None;
            }
            at = self.next_bucket(at);
        }
    }

    /// Adds a number whose key is not in yet; false if the index is full.
    #[allow(clippy::inline_always, reason = "called where every nanosecond counts: a book's commands")]
    #[inline(always)]
    pub fn insert(&mut self, hash: u64, number: u32) -> bool {
        if self.len == self.numbers_max {
            return false;
        }
        let tag = tag(hash);
        let mut at = self.home(tag);
        loop {
            let bucket = &mut self.buckets[at];
            if let Some(place) = bucket.with(EMPTY).next() {
                (bucket.tags[place], bucket.numbers[place]) = (tag, number);
                self.len += 1;
                return true;
            }
            at = self.next_bucket(at);
        }
    }

    /// Takes out a number that was inserted with this hash.
    #[allow(clippy::inline_always, reason = "called where every nanosecond counts: a book's commands")]
    #[inline(always)]
    pub fn remove(&mut self, hash: u64, number: u32) {
        let found = self.look_up(hash, |other| other == number);
        self.remove_found(found.expect("only what was inserted is removed"));
    }

    /// Takes out what [`Index::look_up`] found, if nothing has changed the index since.
    #[allow(clippy::inline_always, reason = "called where every nanosecond counts: a book's commands")]
    #[inline(always)]
    pub fn remove_found(&mut self, found: Found) {
        let Found { number, bucket: at, place } = found;
        let bucket = &mut self.buckets[at];
        assert!(bucket.numbers[place] == number && bucket.tags[place] != EMPTY, "it is where it was found");
        let was_full = bucket.is_full();
        bucket.tags[place] = EMPTY;
        self.len -= 1;
        if was_full {
            self.close_gap(at);
        }
    }

    /// Fills the hole in a bucket that was full with a number from a later bucket that searches would no longer
    /// reach, then the hole which that number leaves, until none is stranded (TABLE-1).
    #[cold]
    fn close_gap(&mut self, mut hole: usize) {
        let mut at = self.next_bucket(hole);
        loop {
            let bucket = self.buckets[at];
            let (full, from_hole) = (bucket.is_full(), self.distance(hole, at));
            let stranded = |place: &usize| {
                let tag = bucket.tags[*place];
                tag != EMPTY && from_hole <= self.distance(self.home(tag), at)
            };
            if let Some(place) = (0..PLACES).find(stranded) {
                let free = self.buckets[hole].with(EMPTY).next().expect("a number was taken out of it");
                self.buckets[hole].tags[free] = bucket.tags[place];
                self.buckets[hole].numbers[free] = bucket.numbers[place];
                self.buckets[at].tags[place] = EMPTY;
                hole = at;
            }
            if !full {
                return;
            }
            at = self.next_bucket(at);
        }
    }

    /// Every number, in no order that means anything.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let in_use = |bucket: &Bucket| {
            let bucket = *bucket;
            (0..PLACES)
                .filter(move |place| bucket.tags[*place] != EMPTY)
                .map(move |place| bucket.numbers[place])
        };
        self.buckets.iter().flat_map(in_use)
    }

    /// How many numbers it holds.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The bucket in which a search for this tag begins: the tag as a fraction of 2^32, scaled to the buckets.
    fn home(&self, tag: u32) -> usize {
        let scaled = u64::from(tag) * self.buckets.len() as u64;
        usize::try_from(scaled >> 32).expect("below the number of buckets")
    }

    fn next_bucket(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() { 0 } else { at + 1 }
    }

    /// How many buckets after `from` `to` is, wrapping around.
    fn distance(&self, from: usize, to: usize) -> usize {
        if from <= to { to - from } else { to + self.buckets.len() - from }
    }
}

/// What an index keeps of a hash.
fn tag(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("half a hash is 32 bits") | 1
}

/// Multiplies a key (a digest or a dense number) by a secret odd number. Clients choose their salts, so without
/// the secret they could aim digests at one bucket.
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
        /// Hashes are drawn from few values that share three homes, the last bucket among them, so that
        /// buckets overflow, also from the last into the first, and removals fetch back.
        #[test]
        fn an_index_agrees_with_a_plain_map(
            changes in proptest::collection::vec((any::<bool>(), 0_u32..48, 0_usize..6), 1..400),
        ) {
            let mut index = Index::with_capacity(40);
            let hashes = [0, 3 << 32, 1 << 62, 2 << 62 | 9, u64::MAX, u64::MAX - (8 << 32)];
            let mut plain = BTreeMap::new();
            for (put, number, hash) in changes {
                let hash = hashes[hash];
                match plain.get(&number).copied() {
                    None if put => {
                        prop_assert_eq!(index.insert(hash, number), plain.len() < 40);
                        if plain.len() < 40 {
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
                let mut numbers: Vec<u32> = index.numbers().collect();
                numbers.sort_unstable();
                prop_assert_eq!(numbers, plain.keys().copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_largest_number_is_one_like_any_other() {
        let mut index = Index::with_capacity(1);
        assert!(index.insert(0, u32::MAX));
        assert!(!index.insert(1 << 40, 1), "it is full");
        assert_eq!(index.find(0, |number| number == u32::MAX), Some(u32::MAX));
    }
}
