//! Resting orders: one hot 64-byte line each, what is rarely read beside it, an index by digest.
//!
//! | bytes | hot line |
//! |------:|----------|
//! |    24 | open shares, placement position, expiry |
//! |    16 | neighbours in the level, neighbours in the list of its account |
//! |    16 | wallet, principal, market, account |
//! |     8 | price, side, outcome, zeros |
//!
//! A walk over makers touches one line an order; cold are the digest, the key it came with, what is
//! set aside, and the place in the expiry heap.

use super::Face;
use crate::domain::{
    ApiKey, Collateral, MarketNo, OrderId, Outcome, Position, Price, Shares, Side, TimeMs, WalletNo,
};
use crate::memory::arena::{Arena, Ends, Slot};
use crate::memory::pages::make_ready;
use crate::memory::table::{Index, digest_key, spread};

/// An order that rests; its hot line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Resting {
    /// What may still be filled.
    pub open: Shares,
    /// Where it was placed: its name in the log.
    pub position: Position,
    /// From when on it no longer trades; the largest time for never.
    pub expires: TimeMs,
    /// The order behind it in its level.
    pub level_next: Slot,
    /// The order before it in its level.
    pub level_previous: Slot,
    /// The order that its account placed next.
    pub account_next: Slot,
    /// The order that its account placed before.
    pub account_previous: Slot,
    /// Whose money it trades with.
    pub wallet: WalletNo,
    /// Whose wallet that is.
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
    /// True if its collateral was set aside.
    pub reserves: bool,
}

const _: () = assert!(size_of::<Resting>() == 64, "an order is one cache line");

impl Resting {
    /// The order as its book shows it.
    #[must_use]
    pub const fn face(&self) -> Face {
        Face::of(self.side, self.outcome, self.price)
    }

    /// Whether it trades no longer at `now`.
    #[must_use]
    pub fn expired(&self, now: TimeMs) -> bool {
        self.expires <= now
    }
}

/// What is rarely read of a resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cold {
    /// Its digest.
    pub id: OrderId,
    /// The API key it came with.
    pub owner: ApiKey,
    /// What is still set aside for it.
    pub reserved: Collateral,
    /// Its place in the heap of expiries, or `u32::MAX`.
    pub expiry_place: u32,
}

/// Every resting order of a shard.
#[derive(Debug)]
pub struct Orders {
    hot: Arena<Resting>,
    cold: Vec<Cold>,
    by_id: Index,
    secret: u64,
}

const _: () = assert!(size_of::<Cold>() == 64, "all of a resting order is two cache lines");

impl Orders {
    pub(super) fn with_capacity(resting_max: u32, secret: u64) -> Self {
        let mut cold = Vec::with_capacity(resting_max as usize);
        make_ready(cold.spare_capacity_mut());
        Self {
            hot: Arena::with_capacity(resting_max),
            cold,
            by_id: Index::with_capacity(resting_max),
            secret,
        }
    }

    /// How many orders rest.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hot.len()
    }

    /// True if none rests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hot.is_empty()
    }

    /// True if no more can rest.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.hot.is_full()
    }

    /// The slot of the order with this digest.
    #[must_use]
    pub fn find(&self, id: &OrderId) -> Option<Slot> {
        let same = |number: u32| self.cold[number as usize].id == *id;
        self.by_id.find(self.hash(id), same).map(Slot::from_number)
    }

    /// What is rarely read of an order.
    #[must_use]
    pub fn cold(&self, slot: Slot) -> &Cold {
        &self.cold[slot.index()]
    }

    /// The same, to change.
    pub fn cold_mut(&mut self, slot: Slot) -> &mut Cold {
        &mut self.cold[slot.index()]
    }

    /// Puts an order at the end of its account's list.
    pub fn join(&mut self, list: &mut Ends, slot: Slot) {
        self.hot[slot].account_previous = list.last;
        self.hot[slot].account_next = Slot::NONE;
        match list.last.some() {
            Some(last) => self.hot[last].account_next = slot,
            None => list.first = slot,
        }
        list.last = slot;
    }

    /// Takes an order out of its account's list.
    pub fn leave(&mut self, list: &mut Ends, slot: Slot) {
        let Resting { account_previous: previous, account_next: next, .. } = self.hot[slot];
        match previous.some() {
            Some(previous) => self.hot[previous].account_next = next,
            None => list.first = next,
        }
        match next.some() {
            Some(next) => self.hot[next].account_previous = previous,
            None => list.last = previous,
        }
    }

    /// The caller saw the room.
    pub(super) fn insert(&mut self, order: Resting, id: &OrderId) -> Slot {
        debug_assert!(self.find(id).is_none(), "a digest rests once");
        let slot = self.hot.insert(order).expect("the room was looked at");
        let cold = Cold { id: *id, owner: ApiKey::ZERO, reserved: Collateral::ZERO, expiry_place: u32::MAX };
        if slot.index() == self.cold.len() {
            self.cold.push(cold);
        } else {
            self.cold[slot.index()] = cold;
        }
        let indexed = self.by_id.insert(self.hash(id), slot.number());
        assert!(indexed, "the index holds as many as the arena");
        slot
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Resting {
        let id = self.cold[slot.index()].id;
        self.by_id.remove(self.hash(&id), slot.number());
        self.hot.remove(slot)
    }

    fn hash(&self, id: &OrderId) -> u64 {
        spread(digest_key(id.as_bytes()), self.secret)
    }
}

impl std::ops::Index<Slot> for Orders {
    type Output = Resting;

    fn index(&self, slot: Slot) -> &Resting {
        &self.hot[slot]
    }
}

impl std::ops::IndexMut<Slot> for Orders {
    fn index_mut(&mut self, slot: Slot) -> &mut Resting {
        &mut self.hot[slot]
    }
}
