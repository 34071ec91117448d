//! Resting orders: a line of 64 bytes each, its placement and its links beside it, an index by digest.
//!
//! | bytes | line: what the book and a walk over it read |
//! |------:|------|
//! |    32 | digest |
//! |    16 | open shares, position in the log |
//! |    12 | market, principal, expiry |
//! |     4 | price, side, outcome |
//!
//! | bytes | placement: what it is to others |
//! |------:|-----------|
//! |    16 | the key it came with |
//! |    16 | collateral set aside, row of its account, place in the heap of expiries |
//!
//! With the links of its level and of its account (16 bytes) and two places of the index (16) an order
//! takes 128 bytes.

use super::Face;
use crate::domain::{
    ApiKey, Collateral, MarketNo, OrderId, Outcome, Position, Price, Shares, Side, TimeMs, WalletNo,
};
use crate::memory::ahead;
use crate::memory::arena::{Arena, Ends, Slot};
use crate::memory::links::Links;
use crate::memory::pages::filled;
use crate::memory::table::{Index, digest_key, spread};

/// The expiry of an order without one, which is in 2106.
pub const NEVER: u32 = u32::MAX;

/// An order that comes to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// Its digest.
    pub id: OrderId,
    /// The API key it came with.
    pub owner: ApiKey,
    /// What may still be filled.
    pub open: Shares,
    /// Where it was placed: its name in the log.
    pub position: Position,
    /// What is set aside for it.
    pub reserved: Collateral,
    /// The Unix second from which on it no longer trades, or [`NEVER`].
    pub expires_s: u32,
    /// Whose wallet it trades with.
    pub principal: WalletNo,
    /// Its market.
    pub market: MarketNo,
    /// The row of (wallet, market).
    pub account: Slot,
    /// Its limit in terms of its own token.
    pub price: Price,
    /// Buy or sell of its own token.
    pub side: Side,
    /// Its own token.
    pub outcome: Outcome,
}

impl NewOrder {
    /// The order as its book shows it.
    #[must_use]
    pub const fn face(&self) -> Face {
        Face::of(self.side, self.outcome, self.price)
    }
}

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
    /// Whose wallet it trades with.
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
    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    const fn of(order: &NewOrder) -> Self {
        Self {
            id: order.id,
            open: order.open,
            position: order.position,
            market: order.market,
            principal: order.principal,
            expires_s: order.expires_s,
            price: order.price,
            side: order.side,
            outcome: order.outcome,
        }
    }

    /// The order as its book shows it.
    #[must_use]
    pub const fn face(&self) -> Face {
        Face::of(self.side, self.outcome, self.price)
    }

    /// Whether it trades no longer at `now`.
    #[must_use]
    pub fn expired(&self, now: TimeMs) -> bool {
        TimeMs::from_seconds(self.expires_s.into()) <= now
    }
}

/// What a resting order is to its key, its account and the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Placement {
    /// The API key it came with.
    pub owner: ApiKey,
    /// What is still set aside for it. Zero for every sell; for a buy it is either never zero or
    /// always, see [`Placement::reserves`].
    pub reserved: Collateral,
    /// The row of (wallet, market).
    pub account: Slot,
    /// Its place in the heap of expiries, or `u32::MAX`.
    pub expiry_place: u32,
}

const _: () = assert!(size_of::<Placement>() == 32, "a placement is half a cache line");
const _: () = assert!(
    size_of::<Resting>() + size_of::<Placement>() + 2 * Links::BYTES + Index::BYTES == 128,
    "what README says that an order takes"
);

impl Placement {
    const NONE: Self =
        Self { owner: ApiKey::ZERO, reserved: Collateral::ZERO, account: Slot::NONE, expiry_place: u32::MAX };

    /// Whether collateral was set aside: a fill leaves what the rest may cost, which is not nothing.
    #[must_use]
    pub fn reserves(&self) -> bool {
        !self.reserved.is_zero()
    }
}

/// Every resting order of a shard.
#[derive(Debug)]
pub struct Orders {
    lines: Arena<Resting>,
    placements: Vec<Placement>,
    /// Each account's orders, in the order of their placement.
    by_account: Links,
    by_id: Index,
    secret: u64,
}

impl Orders {
    pub(super) fn with_capacity(resting_max: u32, secret: u64) -> Self {
        Self {
            lines: Arena::with_capacity(resting_max),
            placements: filled(resting_max as usize, Placement::NONE),
            by_account: Links::with_capacity(resting_max),
            by_id: Index::with_capacity(resting_max),
            secret,
        }
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
        let same = |number: u32| self.lines[Slot::from_number(number)].id == *id;
        self.by_id.find(self.hash(id), same).map(Slot::from_number)
    }

    /// Has the bucket that finding or resting an order begins with fetched into the cache meanwhile.
    pub fn fetch_ahead(&self, id: &OrderId) {
        self.by_id.fetch_ahead(self.hash(id));
    }

    /// Has what is kept of the order that probably has this digest fetched into the cache meanwhile, and gives
    /// its slot; nothing if none rests. Its bucket is looked at now: it was to be fetched before.
    pub(super) fn fetch_resting(&self, id: &OrderId) -> Option<Slot> {
        let slot = self.by_id.guess(self.hash(id)).map(Slot::from_number)?;
        ahead::fetch(&self.lines[slot]);
        ahead::fetch(self.placement(slot));
        self.by_account.fetch_ahead(slot);
        Some(slot)
    }

    /// What is known of an order outside its book.
    #[must_use]
    pub fn placement(&self, slot: Slot) -> &Placement {
        &self.placements[slot.index()]
    }

    /// The same, to change.
    pub fn placement_mut(&mut self, slot: Slot) -> &mut Placement {
        &mut self.placements[slot.index()]
    }

    /// The orders of an account, oldest first.
    pub fn of_account(&self, list: Ends) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(list.first.some(), |slot| self.by_account.next(*slot))
    }

    /// The orders of an account, newest first.
    pub fn of_account_newest(&self, list: Ends) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(list.last.some(), |slot| self.by_account.previous(*slot))
    }

    /// Puts an order at the end of its account's list.
    pub fn join(&mut self, list: &mut Ends, slot: Slot) {
        *list = self.by_account.push(*list, slot);
    }

    /// Takes an order out of its account's list.
    pub fn leave(&mut self, list: &mut Ends, slot: Slot) {
        *list = self.by_account.remove(*list, slot);
    }

    /// The caller saw the room.
    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub(super) fn insert(&mut self, order: &NewOrder) -> Slot {
        debug_assert!(self.find(&order.id).is_none(), "a digest rests once");
        let slot = self.lines.insert(Resting::of(order)).expect("the room was looked at");
        let NewOrder { owner, reserved, account, .. } = *order;
        self.placements[slot.index()] = Placement { owner, reserved, account, ..Placement::NONE };
        let indexed = self.by_id.insert(self.hash(&order.id), slot.number());
        assert!(indexed, "the index holds as many as the arena");
        slot
    }

    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: Slot) {
        let hash = self.hash(&self.lines[slot].id);
        self.by_id.remove(hash, slot.number());
        self.lines.remove(slot);
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
