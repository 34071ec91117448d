//! One book per market: what rests in it, in which order it trades, and what a fill costs each side.
//!
//! The book is kept in terms of token 0. A bid for token 1 at *q* is an ask for token 0 at 1-*q*,
//! so a bid level holds buyers of token 0 and sellers of token 1, and an ask level holds sellers of
//! token 0 and buyers of token 1; within a level they stand in the order of their placement.
//!
//! | part | holds | found by |
//! |---|---|---|
//! | [`ladder`] | first and last order of every price, a bitmap of the prices that have any | price |
//! | [`orders`] | one 64-byte line an order | slot, digest |
//! | [`pool`] | the words that ladders are made of; a book that is empty has none | |
//! | [`legs`] | who pays what in a transfer, a mint or a merge | |
//!
//! - BOOK-1: the best bid lies below the best ask, always. An order that crosses never rests.
//! - BOOK-2: a level that is marked occupied has at least one order; an empty one is not marked.
//! - BOOK-3: every order in a level has something open.
//!
//! The room knows nothing of money, wallets' rules or time: the code that walks a book decides.

pub mod ladder;
pub mod legs;
pub mod orders;
pub mod pool;

use crate::domain::{MarketNo, Outcome, Price, Shares, Side, Tick};
use crate::memory::arena::Slot;
use crate::memory::links::Links;
use ladder::Ladder;
use orders::{Found, Orders, Resting};
use pool::Pool;

/// Why an order cannot rest. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Every slot of the arena is in use.
    Orders,
    /// The book has no ladder yet and the pool has no room for one.
    Bytes,
}

/// Which side of the book an order stands on, and at which price of token 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// Bid or ask.
    pub side: Side,
    /// In terms of token 0.
    pub price: Price,
}

impl Face {
    /// An order for `outcome` as the book shows it.
    #[must_use]
    pub const fn of(side: Side, outcome: Outcome, price: Price) -> Self {
        match outcome {
            Outcome::Zero => Self { side, price },
            Outcome::One => Self { side: side.opposite(), price: price.complement() },
        }
    }

    /// Whether this incoming order may trade with one that rests at `level` on the other side.
    #[must_use]
    pub fn reaches(self, level: Price) -> bool {
        match self.side {
            Side::Buy => level <= self.price,
            Side::Sell => self.price <= level,
        }
    }
}

/// The books of a shard's markets and all orders in them.
#[derive(Debug)]
pub struct Books {
    ladders: Box<[Option<Ladder>]>,
    pool: Pool,
    /// Each level's orders, in the order of their placement.
    queues: Links,
    orders: Orders,
}

impl Books {
    /// Empty books for markets `0..markets_max`.
    #[must_use]
    pub fn new(markets_max: u32, resting_max: u32, books_bytes: u64, secret: u64) -> Self {
        Self {
            ladders: (0..markets_max).map(|_| None).collect(),
            pool: Pool::with_bytes(books_bytes),
            queues: Links::with_capacity(resting_max),
            orders: Orders::with_capacity(resting_max, secret),
        }
    }

    /// Whether one more order can rest in `market`.
    pub fn room(&self, market: MarketNo, tick: Tick) -> Result<(), Full> {
        if self.orders.is_full() {
            return Err(Full::Orders);
        }
        if self.ladders[market.index()].is_none() && !self.pool.has(Ladder::words(tick)) {
            return Err(Full::Bytes);
        }
        Ok(())
    }

    /// Rests an order behind every order already at its price.
    ///
    /// Matching comes first: an order that still crosses must never rest, or the next taker would
    /// get a price that somebody better placed had already offered.
    // Inlined, with what it calls: an order passed in memory is written field by field and copied by wide loads.
    // A load over several recent stores cannot be forwarded from them; it waits until all have reached the cache.
    #[allow(clippy::inline_always, reason = "store forwarding, see above")]
    #[inline(always)]
    pub fn rest(&mut self, tick: Tick, order: &Resting) -> Result<Slot, Full> {
        assert!(order.open > Shares::ZERO, "BOOK-3");
        let market = order.market.index();
        if self.ladders[market].is_none() {
            self.open_ladder(order.market, tick)?;
        }
        let slot = self.orders.insert(order).ok_or(Full::Orders)?;
        let ladder = self.ladders[market].as_mut().expect("it is there, or was just made");
        assert!(ladder.tick() == tick, "a tick changes by `retick` only");
        assert!(ladder.holds(order.price), "orders rest on the grid");
        ladder.append(order.face(), slot, &mut self.pool, &mut self.queues);
        Ok(slot)
    }

    #[cold]
    fn open_ladder(&mut self, market: MarketNo, tick: Tick) -> Result<(), Full> {
        self.room(market, tick)?;
        let block = self.pool.take(Ladder::words(tick)).expect("the room was looked at");
        self.ladders[market.index()] = Some(Ladder::empty(tick, block, &mut self.pool));
        Ok(())
    }

    /// Prefetches an order's line and its links in its level.
    pub fn prefetch(&self, slot: Slot) {
        self.orders.prefetch_line(slot);
        self.queues.prefetch(slot);
    }

    /// Prefetches the links of its neighbours in its level. It reads its own, so fetch those earlier.
    pub fn prefetch_neighbours(&self, slot: Slot) {
        self.queues.prefetch_neighbours(slot);
    }

    /// Prefetches the links of the last order in this face's level.
    pub fn prefetch_last(&self, market: MarketNo, face: Face) {
        if let Some(ladder) = &self.ladders[market.index()] {
            self.queues.prefetch(ladder.last_at(face.price, &self.pool));
        }
    }

    /// Takes an order out of its book, wherever in its level it stands.
    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub fn remove(&mut self, slot: Slot) {
        self.unlink(slot);
        self.orders.remove(slot);
    }

    /// Takes an order that was just looked up out of its book.
    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub fn remove_found(&mut self, found: Found) {
        self.unlink(found.slot());
        self.orders.remove_found(found);
    }

    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    fn unlink(&mut self, slot: Slot) {
        // Most orders stand between two others: their level keeps its ends and need not be read.
        if !self.queues.remove_between(slot) {
            self.unlink_end(slot);
        }
    }

    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    fn unlink_end(&mut self, slot: Slot) {
        let order = &self.orders[slot];
        let market = order.market;
        let ladder = self.ladders[market.index()].as_mut().expect("a book with an order has a ladder");
        if ladder.unlink(order.face(), slot, &mut self.pool, &mut self.queues) {
            self.give_ladder_back(market);
        }
    }

    #[cold]
    fn give_ladder_back(&mut self, market: MarketNo) {
        let empty = self.ladders[market.index()].take().expect("it has just become empty");
        self.pool.give(empty.block());
    }

    /// Puts an order in the place of `former`, of the same price and side, which is removed.
    pub fn succeed(&mut self, former: Slot, order: &Resting) -> Slot {
        let old = &self.orders[former];
        let face = old.face();
        assert!(order.market == old.market && order.face() == face, "a place is on one level");
        assert!(order.open > Shares::ZERO, "BOOK-3");
        self.orders.remove(former);
        let slot = self.orders.insert(order).expect("one has just left");
        let ladder = self.ladders[order.market.index()].as_mut().expect("a book with an order has a ladder");
        ladder.put_in_place(face.price, former, slot, &mut self.pool, &mut self.queues);
        slot
    }

    /// Takes `shares` off an order that stays; an order that is used up leaves by [`Books::remove`].
    pub fn reduce(&mut self, slot: Slot, shares: Shares) {
        let order = &mut self.orders[slot];
        assert!(shares < order.open, "BOOK-3");
        order.open -= shares;
    }

    /// Whether an incoming order may trade with one that rests in `market`.
    #[must_use]
    pub fn is_reached_by(&self, market: MarketNo, face: Face) -> bool {
        self.ladders[market.index()].as_ref().is_some_and(|ladder| ladder.is_reached_by(face))
    }

    /// The order on `side` that trades first.
    #[must_use]
    pub fn first(&self, market: MarketNo, side: Side) -> Option<Slot> {
        let ladder = self.ladders[market.index()].as_ref()?;
        Some(ladder.first_at(ladder.best(side)?, &self.pool))
    }

    /// The order that trades after `slot`: behind it in its level, else first in the next level.
    #[must_use]
    pub fn after(&self, slot: Slot) -> Option<Slot> {
        if let Some(next) = self.queues.next(slot) {
            return Some(next);
        }
        let order = &self.orders[slot];
        let ladder = self.ladders[order.market.index()].as_ref()?;
        let face = order.face();
        Some(ladder.first_at(ladder.beyond(face, &self.pool)?, &self.pool))
    }

    /// Every order of a market, bids first, each side in the order in which it trades.
    pub fn walk(&self, market: MarketNo) -> impl Iterator<Item = Slot> + '_ {
        let side = move |side| std::iter::successors(self.first(market, side), |slot| self.after(*slot));
        side(Side::Buy).chain(side(Side::Sell))
    }

    /// Moves a market's orders, all of them on the new grid, to a ladder of another tick, for which
    /// [there is room](Self::room_to_retick).
    pub fn retick(&mut self, market: MarketNo, tick: Tick) {
        let Some(old) = self.ladders[market.index()].take() else { return };
        let block = self.pool.take(Ladder::words(tick)).expect("the room was looked at");
        let mut ladder = Ladder::empty(tick, block, &mut self.pool);
        ladder.adopt(&old, &mut self.pool);
        self.pool.give(old.block());
        self.ladders[market.index()] = Some(ladder);
    }

    /// Whether a market with orders could move to `tick` now.
    #[must_use]
    pub fn room_to_retick(&self, market: MarketNo, tick: Tick) -> bool {
        self.ladders[market.index()].is_none() || self.pool.has(Ladder::words(tick))
    }

    /// Bytes that the books take of their pool.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    /// All orders, by slot and by digest.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }
}

#[cfg(test)]
mod tests;
