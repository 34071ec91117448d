//! What was decided before, by digest: the same signed order or act never runs twice.
//!
//! The memory is bounded. When it is full the oldest stamps are dropped and the *horizon* rises to
//! them; an order whose stamp lies at or below the horizon is refused as too old, because nobody
//! knows any more whether it ran. So trading never stops because the memory is full.
//!
//! - RECALL-1: every order or act with a stamp above the horizon that ever got a frame is here.
//! - RECALL-2: the horizon only rises, and depends on nothing but the frames.

use super::Status;
use super::ages::{Aged, Ages, NOBODY};
use crate::domain::{Collateral, OrderId, Position, Shares, TimeMs, WalletNo};
use crate::memory::ahead;
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
    /// Of an order that met nobody.
    pub(super) const RESTS: Self = Self::Order { status: Status::Live, making: 0, taking: 0, trade: None };
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: OrderId,
    stamp_ms: u64,
    principal: WalletNo,
    /// Which entry is behind it in its lane.
    next: u32,
    first: First,
}

impl Aged for Entry {
    fn stamp_ms(&self) -> u64 {
        self.stamp_ms
    }
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// A stamp and whose entry it is of.
type Oldest = Reverse<(u64, u32)>;

const _: () = assert!(
    size_of::<Entry>() + size_of::<Oldest>() + Index::BYTES == 120,
    "what `sizes.digests` says that a digest takes"
);

/// First results, the newest by their signed time. Their memory is there from the start: in new memory an order
/// would wait for a page now and then.
#[derive(Debug)]
pub(super) struct Recall {
    entries: Vec<Entry>,
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
            index: Index::with_capacity(entries_max),
            ages: Ages::new(oldest),
            horizon_ms: 0,
            entries_max: entries_max as usize,
            secret,
        }
    }

    /// Stamps at or below it are too old.
    pub(super) const fn horizon_ms(&self) -> u64 {
        self.horizon_ms
    }

    /// Where [`Recall::find`] looks first, to be fetched.
    pub(super) fn place_of(&self, id: &OrderId) -> *const u8 {
        self.index.place_of(self.hash(id))
    }

    /// The first result of this digest and whose it was. Stamps at the horizon are forgotten
    /// together, though their entries are only used again one by one.
    #[inline]
    pub(super) fn find(&self, id: &OrderId) -> Option<(WalletNo, First)> {
        let number = self.index.find(self.hash(id), |number| self.entries[number as usize].id == *id)?;
        let entry = &self.entries[number as usize];
        (self.horizon_ms < entry.stamp_ms).then_some((entry.principal, entry.first))
    }

    /// Remembers a first result at `now`. What is older than the horizon needs no remembering.
    #[allow(clippy::inline_always, reason = "a result handed over in memory is waited for, see `place`")]
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
        let entry = Entry { id: *id, stamp_ms, principal, next: NOBODY, first };
        let number = if self.entries.len() < self.entries_max {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("entries are numbered in 32 bits")
        } else {
            let (oldest_ms, number) = self.ages.oldest().expect("a full memory has an oldest");
            self.horizon_ms = self.horizon_ms.max(oldest_ms.min(stamp_ms));
            if stamp_ms <= oldest_ms {
                return;
            }
            self.ages.leave(&self.entries);
            let dropped = self.entries[number as usize].id;
            self.index.remove(self.hash(&dropped), number);
            self.entries[number as usize] = entry;
            number
        };
        let indexed = self.index.insert(self.hash(id), number);
        assert!(indexed, "the index holds as many as the memory");
        self.ages.join(&mut self.entries, number, now.0);
        if self.entries.len() < self.entries_max {
            // The place behind the next one, which was fetched before.
            ahead::fetch_to_write(self.entries.as_ptr().wrapping_add(self.entries.len() + 1));
        } else {
            self.fetch_oldest();
        }
    }

    /// Has fetched what orders to come make a full memory drop, and write to: for the second from now where the index has
    /// it, for the third the entry.
    fn fetch_oldest(&self) {
        let Some((_, oldest)) = self.ages.oldest() else { return };
        let Some(next) = self.entries.get(self.entries[oldest as usize].next as usize) else { return };
        self.index.fetch_ahead(self.hash(&next.id));
        if let Some(behind) = self.entries.get(next.next as usize) {
            ahead::fetch_whole(behind);
        }
    }

    fn hash(&self, id: &OrderId) -> u64 {
        spread(digest_key(id.as_bytes()), self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
