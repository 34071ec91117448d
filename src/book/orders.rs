//! Resting orders: a line of 64 bytes each, and an index by digest.
//!
//! | bytes | line: what the book and a walk over it read |
//! |------:|------|
//! |    32 | digest |
//! |    16 | open shares, position in the log |
//! |    12 | market, principal, expiry |
//! |     4 | price, side, outcome |
//!
//! Two places of the index take 16 bytes more, the links of its level 8. What other rooms know of an order (key,
//! account) they keep under its slot.

use super::Face;
use crate::domain::{MarketNo, OrderId, Outcome, Position, Price, Shares, Side, WalletNo};
use crate::memory::ahead;
use crate::memory::arena::{Arena, Slot};
use crate::memory::table::{self, Index, digest_key, spread};

/// The expiry of an order that has none; as a time it would be in 2106.
pub const NEVER: u32 = u32::MAX;

/// The line of an order that rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Resting {
    /// Its digest.
    pub id: OrderId,
    /// What may still be filled.
    pub open: Shares,
    /// Where it was placed: its name in the log.
    pub position: Position,
    /// Its market.
    pub market: MarketNo,
    /// The owner of the wallet that it trades with.
    pub principal: WalletNo,
    /// The Unix second from which on it no longer trades, or [`NEVER`].
    pub expires_s: u32,
    /// Its limit in terms of its own token.
    pub price: Price,
    /// Buy or sell of its own token.
    pub side: Side,
    /// Its own token.
    pub outcome: Outcome,
}

const _: () = assert!(size_of::<Resting>() == 64, "an order is one cache line");

impl Resting {
    /// The order as its book shows it.
    #[must_use]
    pub const fn face(&self) -> Face {
        Face::of(self.side, self.outcome, self.price)
    }
}

/// An order that was looked up by its digest; valid until an order comes or goes.
#[derive(Clone, Copy, Debug)]
pub struct Found(table::Found);

impl Found {
    /// Its slot.
    #[must_use]
    pub const fn slot(self) -> Slot {
        Slot::from_number(self.0.number)
    }
}

/// Every resting order of a shard.
#[derive(Debug)]
pub struct Orders {
    lines: Arena<Resting>,
    by_id: Index,
    secret: u64,
}

impl Orders {
    /// Bytes of line and index per order, when all slots are in use.
    pub const BYTES: usize = size_of::<Resting>() + Index::BYTES;

    pub(super) fn with_capacity(resting_max: u32, secret: u64) -> Self {
        Self { lines: Arena::with_capacity(resting_max), by_id: Index::with_capacity(resting_max), secret }
    }

    /// How many orders rest.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True if none rests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// True if no more can rest.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.lines.is_full()
    }

    /// The slot of the order with this digest.
    #[must_use]
    pub fn find(&self, id: &OrderId) -> Option<Slot> {
        self.look_up(id).map(Found::slot)
    }

    /// The order with this digest and its place in the index, for a caller that may remove it.
    #[must_use]
    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub fn look_up(&self, id: &OrderId) -> Option<Found> {
        let same = |number: u32| self.lines[Slot::from_number(number)].id == *id;
        self.by_id.look_up(self.hash(id), same).map(Found)
    }

    /// Prefetches the index bucket with which finding, resting or removing an order begins.
    pub fn prefetch(&self, id: &OrderId) {
        ahead::prefetch_at(self.bucket_of(id));
    }

    /// The address of this digest's index bucket.
    #[must_use]
    pub fn bucket_of(&self, id: &OrderId) -> *const u8 {
        self.by_id.bucket_of(self.hash(id))
    }

    /// The slot of the order that probably has this digest, without reading its line. It reads the index bucket,
    /// so fetch that earlier.
    #[must_use]
    pub fn guess(&self, id: &OrderId) -> Option<Slot> {
        self.by_id.guess(self.hash(id)).map(Slot::from_number)
    }

    pub(super) fn prefetch_line(&self, slot: Slot) {
        ahead::prefetch(&self.lines[slot]);
    }

    /// None if there is no room.
    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub(super) fn insert(&mut self, order: &Resting) -> Option<Slot> {
        debug_assert!(self.find(&order.id).is_none(), "a digest rests once");
        let slot = self.lines.insert(*order)?;
        let indexed = self.by_id.insert(self.hash(&order.id), slot.number());
        assert!(indexed, "the index holds as many as the arena");
        Some(slot)
    }

    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: Slot) {
        let hash = self.hash(&self.lines[slot].id);
        self.by_id.remove(hash, slot.number());
        self.lines.remove(slot);
    }

    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub(super) fn remove_found(&mut self, found: Found) {
        self.by_id.remove_found(found.0);
        self.lines.remove(found.slot());
    }

    fn hash(&self, id: &OrderId) -> u64 {
        spread(digest_key(id.as_bytes()), self.secret)
    }
}

impl std::ops::Index<Slot> for Orders {
    type Output = Resting;

    fn index(&self, slot: Slot) -> &Resting {
        &self.lines[slot]
    }
}

impl std::ops::IndexMut<Slot> for Orders {
    fn index_mut(&mut self, slot: Slot) -> &mut Resting {
        &mut self.lines[slot]
    }
}
