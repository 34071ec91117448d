//! The price levels of one book: a flat array of queue ends and a bitmap of occupied levels.
//!
//! | words of the block | hold |
//! |---|---|
//! | `0..levels` | one word a level: first order (low half) and last order (high half) |
//! | then | the bitmap, see [`crate::memory::bitset`] |
//!
//! Bids and asks share the array, as no price has both (BOOK-1). Level `i` is the price
//! `(i + 1) x tick`. At the tick 0.001 a ladder takes 8 KiB, at 0.0001 it takes 128 KiB.

use super::Face;
use super::orders::{Orders, Resting};
use super::pool::{Block, Pool};
use crate::domain::{Price, Side, Tick};
use crate::memory::arena::Slot;
use crate::memory::bitset::Shape;

/// One market's levels.
#[derive(Debug)]
pub struct Ladder {
    block: Block,
    tick: Tick,
    /// 2^16 through the tick, rounded up: a multiplication instead of a division.
    per_tick: u32,
    best_bid: Option<Price>,
    best_ask: Option<Price>,
}

impl Ladder {
    /// The words that a ladder of this tick takes.
    #[must_use]
    pub fn words(tick: Tick) -> usize {
        let levels = usize::from(tick.levels());
        levels + Shape::of(levels).len()
    }

    pub(super) fn empty(tick: Tick, block: Block, pool: &mut Pool) -> Self {
        let per_tick = (1_u32 << 16).div_ceil(tick.ten_thousandths().into());
        let ladder = Self { block, tick, per_tick, best_bid: None, best_ask: None };
        let (_, bitmap) = ladder.parts_mut(pool);
        ladder.shape().clear(bitmap);
        ladder
    }

    pub(super) const fn tick(&self) -> Tick {
        self.tick
    }

    pub(super) const fn block(&self) -> Block {
        self.block
    }

    pub(super) fn is_empty(&self) -> bool {
        self.best_bid.is_none() && self.best_ask.is_none()
    }

    pub(super) const fn best(&self, side: Side) -> Option<Price> {
        match side {
            Side::Buy => self.best_bid,
            Side::Sell => self.best_ask,
        }
    }

    /// The first order of an occupied level.
    pub(super) fn first_at(&self, price: Price, pool: &Pool) -> Slot {
        let words = pool.words(self.block);
        debug_assert!(self.shape().contains(self.bitmap(words), self.level(price)), "BOOK-2");
        first(words[self.level(price)])
    }

    /// The next occupied price on the face's side, worse than the face's.
    pub(super) fn beyond(&self, face: Face, pool: &Pool) -> Option<Price> {
        let bitmap = self.bitmap(pool.words(self.block));
        let level = self.level(face.price);
        let found = match face.side {
            Side::Buy => self.shape().next_down(bitmap, level.checked_sub(1)?),
            Side::Sell => self.shape().next_up(bitmap, level + 1),
        };
        found.map(|level| self.price(level))
    }

    pub(super) fn append(&mut self, face: Face, slot: Slot, pool: &mut Pool, orders: &mut Orders) {
        assert!(self.best(face.side.opposite()).is_none_or(|other| !face.reaches(other)), "BOOK-1");
        let level = self.level(face.price);
        let shape = self.shape();
        let (levels, bitmap) = self.parts_mut(pool);
        if shape.contains(bitmap, level) {
            let last = last(levels[level]);
            orders[last].level_next = slot;
            orders[slot].level_previous = last;
            levels[level] = ends(first(levels[level]), slot);
        } else {
            shape.insert(bitmap, level);
            orders[slot].level_previous = Slot::NONE;
            levels[level] = ends(slot, slot);
            self.improve(face);
        }
        orders[slot].level_next = Slot::NONE;
    }

    pub(super) fn unlink(&mut self, face: Face, slot: Slot, pool: &mut Pool, orders: &mut Orders) {
        let level = self.level(face.price);
        let shape = self.shape();
        let (previous, next) = (orders[slot].level_previous, orders[slot].level_next);
        let (levels, bitmap) = self.parts_mut(pool);
        match previous.some() {
            Some(previous) => orders[previous].level_next = next,
            None => levels[level] = ends(next, last(levels[level])),
        }
        match next.some() {
            Some(next) => orders[next].level_previous = previous,
            None => levels[level] = ends(first(levels[level]), previous),
        }
        if previous == Slot::NONE && next == Slot::NONE {
            shape.remove(bitmap, level);
            if self.best(face.side) == Some(face.price) {
                // Below a bid there are only bids and above an ask only asks (BOOK-1).
                self.set_best(face.side, self.beyond(face, pool));
            }
        }
    }

    /// Links `slot` where `old` was, which is not in the arena any more.
    pub(super) fn put_in_place(&mut self, old: &Resting, slot: Slot, pool: &mut Pool, orders: &mut Orders) {
        let level = self.level(old.face().price);
        let (previous, next) = (old.level_previous, old.level_next);
        let (levels, _) = self.parts_mut(pool);
        match previous.some() {
            Some(previous) => orders[previous].level_next = slot,
            None => levels[level] = ends(slot, last(levels[level])),
        }
        match next.some() {
            Some(next) => orders[next].level_previous = slot,
            None => levels[level] = ends(first(levels[level]), slot),
        }
        orders[slot].level_previous = previous;
        orders[slot].level_next = next;
    }

    /// Takes over the queues of a ladder with another tick, whose prices all lie on this grid.
    pub(super) fn adopt(&mut self, old: &Self, pool: &mut Pool) {
        self.best_bid = old.best_bid;
        self.best_ask = old.best_ask;
        let mut level = 0;
        loop {
            let words = pool.words(old.block);
            let Some(found) = old.shape().next_up(old.bitmap(words), level) else {
                return;
            };
            let (queue, price) = (words[found], old.price(found));
            assert!(self.tick.holds(price), "orders off the grid leave first");
            let shape = self.shape();
            let here = self.level(price);
            let (levels, bitmap) = self.parts_mut(pool);
            levels[here] = queue;
            shape.insert(bitmap, here);
            level = found + 1;
        }
    }

    fn improve(&mut self, face: Face) {
        let better = self.best(face.side).is_none_or(|best| match face.side {
            Side::Buy => best < face.price,
            Side::Sell => face.price < best,
        });
        if better {
            self.set_best(face.side, Some(face.price));
        }
    }

    fn set_best(&mut self, side: Side, price: Option<Price>) {
        match side {
            Side::Buy => self.best_bid = price,
            Side::Sell => self.best_ask = price,
        }
    }

    fn shape(&self) -> Shape {
        Shape::of(usize::from(self.tick.levels()))
    }

    fn level(&self, price: Price) -> usize {
        // Exact for n ticks: n x tick x per_tick is n x 2^16 and at most n x tick more, which is below 2^16.
        let steps = (u32::from(price.ten_thousandths()) * self.per_tick) >> 16;
        debug_assert_eq!(steps, u32::from(price.ten_thousandths() / self.tick.ten_thousandths()));
        steps as usize - 1
    }

    fn price(&self, level: usize) -> Price {
        let steps = u16::try_from(level + 1).expect("a ladder has at most 9,999 levels");
        Price::new(steps * self.tick.ten_thousandths()).expect("levels are prices")
    }

    fn bitmap<'a>(&self, words: &'a [u64]) -> &'a [u64] {
        &words[usize::from(self.tick.levels())..]
    }

    fn parts_mut<'a>(&self, pool: &'a mut Pool) -> (&'a mut [u64], &'a mut [u64]) {
        pool.words_mut(self.block).split_at_mut(usize::from(self.tick.levels()))
    }
}

fn first(queue: u64) -> Slot {
    Slot::from_number(u32::try_from(queue & u64::from(u32::MAX)).expect("masked to 32 bits"))
}

fn last(queue: u64) -> Slot {
    Slot::from_number(u32::try_from(queue >> 32).expect("shifted to 32 bits"))
}

fn ends(first: Slot, last: Slot) -> u64 {
    u64::from(last.number()) << 32 | u64::from(first.number())
}
