//! The price levels of one book: a flat array of queue ends and a bitmap of occupied levels.
//!
//! | words of the block | hold |
//! |---|---|
//! | `0..levels` | one word per level: first order (low half), last order (high half), [`VACANT`] without any |
//! | then | the bitmap, see [`crate::memory::bitset`] |
//!
//! Bids and asks share the array, as no price has both (BOOK-1). Level `i` is the price
//! `(i + 1) x tick`. At the tick 0.001 a ladder takes 8 KiB, at 0.0001 it takes 128 KiB.

use super::Face;
use super::pool::{Block, Pool};
use crate::domain::price::PRICE_ONE;
use crate::domain::{Price, Side, Tick};
use crate::memory::arena::{Ends, Slot};
use crate::memory::bitset::Shape;
use crate::memory::links::Links;

/// One market's levels.
#[derive(Debug)]
pub struct Ladder {
    block: Block,
    tick: Tick,
    /// The number of levels, and the shape of their bitmap: they take divisions, so they are computed once.
    levels: usize,
    shape: Shape,
    /// 2^16 divided by the tick, rounded up: turns a division into a multiplication.
    per_tick: u32,
    /// The best bid and the best ask in ten-thousandths; [`NOBODY`]'s for a side that is empty. 32 bits each: a
    /// 16-bit field is loaded in a wider word, and such a load waits for the stores to both of its halves.
    best: [u32; 2],
}

/// The word of a level without orders.
const VACANT: u64 = u64::MAX;

/// Below every bid, and above every ask.
const NOBODY: [u32; 2] = [0, PRICE_ONE as u32];

impl Ladder {
    /// The words that a ladder of this tick takes.
    #[must_use]
    pub fn words(tick: Tick) -> usize {
        let levels = usize::from(tick.levels());
        levels + Shape::of(levels).len()
    }

    pub(super) fn empty(tick: Tick, block: Block, pool: &mut Pool) -> Self {
        let per_tick = (1_u32 << 16).div_ceil(tick.ten_thousandths().into());
        let levels = usize::from(tick.levels());
        let shape = Shape::of(levels);
        let ladder = Self { block, tick, levels, shape, per_tick, best: NOBODY };
        let (levels, bitmap) = ladder.parts_mut(pool);
        levels.fill(VACANT);
        shape.clear(bitmap);
        ladder
    }

    pub(super) const fn tick(&self) -> Tick {
        self.tick
    }

    /// Whether a price is one of its levels.
    pub(super) fn holds(&self, price: Price) -> bool {
        let ten_thousandths = u32::from(price.ten_thousandths());
        self.steps(price) * u32::from(self.tick.ten_thousandths()) == ten_thousandths
    }

    pub(super) const fn block(&self) -> Block {
        self.block
    }

    pub(super) fn best(&self, side: Side) -> Option<Price> {
        Price::new(u16::try_from(self.best[side.index()]).expect("prices have 16 bits"))
    }

    /// Whether an incoming order may trade with one that rests here.
    pub(super) fn is_reached_by(&self, face: Face) -> bool {
        // NOBODY is beyond every price.
        let price = u32::from(face.price.ten_thousandths());
        match face.side {
            Side::Buy => self.best[Side::Sell.index()] <= price,
            Side::Sell => price <= self.best[Side::Buy.index()],
        }
    }

    /// The first order of an occupied level.
    pub(super) fn first_at(&self, price: Price, pool: &Pool) -> Slot {
        debug_assert!(self.shape.contains(self.bitmap(pool.words(self.block)), self.level(price)), "BOOK-2");
        ends(pool.word(self.block, self.level(price))).first
    }

    /// The last order of a level, or [`Slot::NONE`].
    pub(super) fn last_at(&self, price: Price, pool: &Pool) -> Slot {
        ends(pool.word(self.block, self.level(price))).last
    }

    /// The next occupied price on the face's side, worse than the face's.
    pub(super) fn beyond(&self, face: Face, pool: &Pool) -> Option<Price> {
        let bitmap = self.bitmap(pool.words(self.block));
        let level = self.level(face.price);
        let found = match face.side {
            Side::Buy => self.shape.next_down(bitmap, level.checked_sub(1)?),
            Side::Sell => self.shape.next_up(bitmap, level + 1),
        };
        found.map(|level| self.price(level))
    }

    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub(super) fn append(&mut self, face: Face, slot: Slot, pool: &mut Pool, queues: &mut Links) {
        // Without a branch on the side, which cannot be predicted.
        let price = u32::from(face.price.ten_thousandths());
        let [bid, ask] = match face.side {
            Side::Buy => [price, NOBODY[1]],
            Side::Sell => [0, price],
        };
        self.best = [self.best[0].max(bid), self.best[1].min(ask)];
        assert!(self.best[0] < self.best[1], "BOOK-1");
        let level = self.level(face.price);
        let place = pool.word_mut(self.block, level);
        let queue = ends(*place);
        *place = word(queues.push(queue, slot));
        if queue.is_empty() {
            let (_, bitmap) = self.parts_mut(pool);
            self.shape.insert(bitmap, level);
        }
    }

    /// Takes an order out of its level; true if it was the last order of the book.
    #[allow(clippy::inline_always, reason = "see `Books::rest`")]
    #[inline(always)]
    pub(super) fn unlink(&mut self, face: Face, slot: Slot, pool: &mut Pool, queues: &mut Links) -> bool {
        let level = pool.word_mut(self.block, self.level(face.price));
        let queue = queues.remove(ends(*level), slot);
        *level = word(queue);
        queue.is_empty() && self.vacate(face, pool)
    }

    /// Marks a level that has become empty; true if all levels are.
    #[cold]
    fn vacate(&mut self, face: Face, pool: &mut Pool) -> bool {
        let level = self.level(face.price);
        let shape = self.shape;
        let (_, bitmap) = self.parts_mut(pool);
        shape.remove(bitmap, level);
        if self.best(face.side) == Some(face.price) {
            // Below a bid there are only bids and above an ask only asks (BOOK-1).
            let side = face.side.index();
            let next = self.beyond(face, pool);
            self.best[side] = next.map_or(NOBODY[side], |price| price.ten_thousandths().into());
        }
        self.best == NOBODY
    }

    /// Links `slot` where `former` was.
    pub(super) fn put_in_place(
        &mut self,
        price: Price,
        former: Slot,
        slot: Slot,
        pool: &mut Pool,
        queues: &mut Links,
    ) {
        let level = pool.word_mut(self.block, self.level(price));
        *level = word(queues.replace(ends(*level), former, slot));
    }

    /// Takes over the queues of a ladder with another tick, whose prices are all on this grid.
    pub(super) fn adopt(&mut self, old: &Self, pool: &mut Pool) {
        self.best = old.best;
        let mut level = 0;
        loop {
            let words = pool.words(old.block);
            let Some(found) = old.shape.next_up(old.bitmap(words), level) else {
                return;
            };
            let (queue, price) = (words[found], old.price(found));
            assert!(self.tick.holds(price), "orders off the grid leave first");
            let shape = self.shape;
            let here = self.level(price);
            let (levels, bitmap) = self.parts_mut(pool);
            levels[here] = queue;
            shape.insert(bitmap, here);
            level = found + 1;
        }
    }

    fn level(&self, price: Price) -> usize {
        debug_assert!(self.holds(price), "only prices on the grid have a level");
        self.steps(price) as usize - 1
    }

    /// How many ticks a price on the grid is; for any other price, about as many.
    fn steps(&self, price: Price) -> u32 {
        // Exact for n ticks: n x tick x per_tick is n x 2^16 and at most n x tick more, which is below 2^16.
        (u32::from(price.ten_thousandths()) * self.per_tick) >> 16
    }

    fn price(&self, level: usize) -> Price {
        let steps = u16::try_from(level + 1).expect("a ladder has at most 9,999 levels");
        Price::new(steps * self.tick.ten_thousandths()).expect("levels are prices")
    }

    fn bitmap<'a>(&self, words: &'a [u64]) -> &'a [u64] {
        &words[self.levels..]
    }

    fn parts_mut<'a>(&self, pool: &'a mut Pool) -> (&'a mut [u64], &'a mut [u64]) {
        pool.words_mut(self.block).split_at_mut(self.levels)
    }
}

fn ends(word: u64) -> Ends {
    let slot = |half: u64| Slot::from_number(u32::try_from(half).expect("half a word is 32 bits"));
    Ends { first: slot(word & u64::from(u32::MAX)), last: slot(word >> 32) }
}

fn word(queue: Ends) -> u64 {
    u64::from(queue.last.number()) << 32 | u64::from(queue.first.number())
}
