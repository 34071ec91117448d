//! What was decided before, by digest: the same signed order or act never runs twice.
//!
//! The memory is bounded. When it is full the oldest stamps are dropped and the *horizon* rises to
//! them; an order whose stamp is at or below the horizon is refused as too old, because it is no
//! longer known whether it ran. So trading never stops because the memory is full.
//!
//! - RECALL-1: every order or act with a stamp above the horizon that ever got a frame is here.
//! - RECALL-2: the horizon only rises, and depends on nothing but the frames.

use super::Status;
use super::ages::{Ages, NOBODY};
use crate::domain::{Collateral, OrderId, Position, Shares, TimeMs, WalletNo};
use crate::memory::ahead;
use crate::memory::arena::{Arena, Slot};
use crate::memory::pages::make_ready;
use crate::memory::table::{Index, digest_key, spread};
use std::cmp::Reverse;

/// The first result of an order or an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Order { status: Status, making: u64, taking: u64, trade: Option<Position> },
    Act { collateral: Collateral, shares: [Shares; 2], position: Position },
}

impl First {
    /// The result of an order that met nobody.
    pub(super) const RESTS: Self = Self::Order { status: Status::Live, making: 0, taking: 0, trade: None };
}

/// What is kept of a digest in one cache line: everything, for the many that moved nothing.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Entry {
    id: OrderId,
    pub(super) stamp_ms: u64,
    /// The frame of the trade or the act, or [`NO_FRAME`].
    position: Position,
    principal: WalletNo,
    /// The next entry in its lane, or [`NOBODY`].
    pub(super) next: u32,
    /// What moved; none without a position.
    moved: Slot,
    what: What,
}

/// What a digest names, and what became of it.
#[derive(Clone, Copy, Debug)]
enum What {
    Order(Status),
    Act,
}

/// What moved: an order's `making` and `taking`, or an act's collateral and shares.
type Moved = [u64; 3];

/// The position that names no frame.
const NO_FRAME: Position = Position(0);

#[cfg(test)]
impl Entry {
    /// An entry of which only the stamp counts, in no lane yet.
    pub(super) const fn stamped(stamp_ms: u64) -> Self {
        let (position, moved, what) = (NO_FRAME, Slot::NONE, What::Act);
        Self { id: OrderId::ZERO, stamp_ms, position, principal: WalletNo(0), next: NOBODY, moved, what }
    }
}

/// A stamp and the number of its entry.
type Oldest = Reverse<(u64, u32)>;

const _: () = assert!(size_of::<Entry>() == 64, "an entry is one line");
const _: () = assert!(
    size_of::<Entry>() + size_of::<Moved>() + size_of::<Slot>() + size_of::<Oldest>() + Index::BYTES == 124,
    "what `sizes.digests` says that a digest takes"
);

/// The first results with the newest stamps. Their memory is touched at the start, so that no order waits for a
/// page fault.
#[derive(Debug)]
pub(super) struct Recall {
    entries: Vec<Entry>,
    /// Packed, because few digests have it: a cache line for each would mostly be a miss.
    moved: Arena<Moved>,
    index: Index,
    ages: Ages,
    horizon_ms: u64,
    entries_max: usize,
    secret: u64,
}

impl Recall {
    pub(super) fn with_capacity(entries_max: u32, secret: u64) -> Self {
        assert!(0 < entries_max, "what cannot be remembered cannot be placed");
        let mut entries = Vec::with_capacity(entries_max as usize);
        let mut oldest = Vec::with_capacity(entries_max as usize);
        make_ready(entries.spare_capacity_mut());
        make_ready(oldest.spare_capacity_mut());
        Self {
            entries,
            moved: Arena::with_capacity(entries_max),
            index: Index::with_capacity(entries_max),
            ages: Ages::new(oldest),
            horizon_ms: 0,
            entries_max: entries_max as usize,
            secret,
        }
    }

    /// How many digests are remembered.
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Stamps at or below it are too old.
    pub(super) const fn horizon_ms(&self) -> u64 {
        self.horizon_ms
    }

    /// What [`Recall::find`] reads first, to be prefetched.
    pub(super) fn bucket_of(&self, id: &OrderId) -> *const u8 {
        self.index.bucket_of(self.hash(id))
    }

    /// The first result of this digest, and its principal. All stamps up to the horizon are forgotten
    /// at once, though their entries are reused only one by one.
    #[inline]
    pub(super) fn find(&self, id: &OrderId) -> Option<(WalletNo, First)> {
        let number = self.index.find(self.hash(id), |number| self.entries[number as usize].id == *id)?;
        let entry = &self.entries[number as usize];
        (self.horizon_ms < entry.stamp_ms).then(|| (entry.principal, self.first(number)))
    }

    fn first(&self, number: u32) -> First {
        let Entry { position, moved, what, .. } = self.entries[number as usize];
        let moved = moved.some().map(|moved| (position, self.moved[moved]));
        match (what, moved.map_or([0; 3], |(_, amounts)| amounts)) {
            (What::Order(status), [making, taking, _]) => {
                First::Order { status, making, taking, trade: moved.map(|(position, _)| position) }
            }
            (What::Act, [collateral, shares @ ..]) => {
                First::Act { collateral: Collateral(collateral), shares: shares.map(Shares), position }
            }
        }
    }

    /// Remembers a first result at `now`, unless the memory is full of newer ones: the horizon covers it then.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn remember(
        &mut self,
        now: TimeMs,
        id: &OrderId,
        stamp_ms: u64,
        principal: WalletNo,
        first: First,
    ) {
        debug_assert!(self.find(id).is_none(), "a digest has one first result");
        let (what, position, amounts) = match first {
            First::Order { status, making, taking, trade } => {
                (What::Order(status), trade, [making, taking, 0])
            }
            First::Act { collateral, shares: [one, two], position } => {
                (What::Act, Some(position), [collateral.0, one.0, two.0])
            }
        };
        debug_assert!(position.is_some() || amounts == [0; 3], "what moves has a frame that is told");
        let is_full = self.entries.len() == self.entries_max;
        let number = if is_full { self.drop_oldest(stamp_ms) } else { Some(self.entries.len()) };
        let Some(number) = number else { return };
        let moved = match position {
            Some(_) => self.moved.insert(amounts).expect("as many moved as there are entries"),
            None => Slot::NONE,
        };
        let position = position.unwrap_or(NO_FRAME);
        let entry = Entry { id: *id, stamp_ms, position, principal, next: NOBODY, moved, what };
        match self.entries.get_mut(number) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        let number = u32::try_from(number).expect("entries are numbered in 32 bits");
        let indexed = self.index.insert(self.hash(id), number);
        assert!(indexed, "the index holds as many as the memory");
        self.ages.join(&mut self.entries, number, now.0);
        if is_full {
            self.prefetch_oldest();
        } else {
            // The place after the next: the next was fetched before.
            ahead::prefetch_to_write(self.entries.as_ptr().wrapping_add(self.entries.len() + 1));
        }
    }

    /// Forgets the oldest of a full memory and returns its place; none if `stamp_ms` is no newer.
    fn drop_oldest(&mut self, stamp_ms: u64) -> Option<usize> {
        let (oldest_ms, number) = self.ages.oldest().expect("a full memory has an oldest");
        self.horizon_ms = self.horizon_ms.max(oldest_ms.min(stamp_ms));
        if stamp_ms <= oldest_ms {
            return None;
        }
        self.ages.leave(&self.entries);
        let Entry { id, moved, .. } = self.entries[number as usize];
        self.index.remove(self.hash(&id), number);
        if let Some(moved) = moved.some() {
            self.moved.remove(moved);
        }
        Some(number as usize)
    }

    /// Prefetches what the coming orders make a full memory drop and overwrite: the index bucket of the second entry
    /// from now, and the third entry itself.
    fn prefetch_oldest(&self) {
        let Some((_, oldest)) = self.ages.oldest() else { return };
        let Some(next) = self.entries.get(self.entries[oldest as usize].next as usize) else { return };
        self.index.prefetch(self.hash(&next.id));
        if let Some(behind) = self.entries.get(next.next as usize) {
            ahead::prefetch(behind);
        }
    }

    fn hash(&self, id: &OrderId) -> u64 {
        spread(digest_key(id.as_bytes()), self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Reject;

    #[test]
    fn a_result_is_told_as_it_was_whatever_its_place_held_before() {
        let order = |status, making, taking, trade| First::Order { status, making, taking, trade };
        let shares = [Shares(8), Shares(9)];
        let results = [
            order(Status::Matched, 5, 6, Some(Position(64))),
            First::RESTS,
            First::Act { collateral: Collateral(7), shares, position: Position(128) },
            order(Status::Killed(Reject::FokNotFilled), 0, 0, None),
        ];
        // Each in a place that each of them had before.
        for (before, first) in
            results.iter().flat_map(|before| results.iter().map(move |first| (before, first)))
        {
            let mut recall = Recall::with_capacity(1, 1);
            recall.remember(TimeMs(25), &OrderId([1; 32]), 10, WalletNo(3), *before);
            assert_eq!(recall.find(&OrderId([1; 32])), Some((WalletNo(3), *before)));
            recall.remember(TimeMs(25), &OrderId([2; 32]), 11, WalletNo(4), *first);
            assert_eq!(recall.find(&OrderId([1; 32])), None);
            assert_eq!(recall.find(&OrderId([2; 32])), Some((WalletNo(4), *first)), "behind {before:?}");
        }
    }

    #[test]
    fn a_full_memory_drops_the_oldest_stamp_and_its_horizon_only_rises() {
        let mut recall = Recall::with_capacity(2, 1);
        let known = |recall: &Recall, byte| recall.find(&OrderId([byte; 32])).is_some();
        for (byte, stamp, horizon) in [(1, 30, 0), (2, 10, 0), (3, 20, 10), (4, 15, 15), (5, 40, 20)] {
            recall.remember(TimeMs(25), &OrderId([byte; 32]), stamp, WalletNo(0), First::RESTS);
            assert_eq!(recall.horizon_ms(), horizon, "after {byte}");
        }
        assert!(known(&recall, 1) && known(&recall, 5));
        assert!(!known(&recall, 2) && !known(&recall, 3) && !known(&recall, 4));
    }
}
