//! Commands for one book, made beforehand by a model that also matches them.
//!
//! 55 % of the commands rest an order near a fair value that wanders, never crossing; 35 % cancel a resting order,
//! each with the same chance; 10 % take what rests, always in full, 2.5 makers on average. The number of live orders
//! stays about the same. Each order has a digest of 32 random bytes, which is stored in the commands that name it, as
//! it would be in a request: fetching a digest that has left every cache is not part of the book's cost.

use outcry::domain::OrderId;
use std::collections::VecDeque;

/// Which side an order rests on, or is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Bid = 0,
    Ask = 1,
}

/// What a command does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Rests an order.
    Add,
    /// Cancels one.
    Cancel,
    /// Takes shares from a side.
    Take,
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) side: Side,
    /// In ticks, from 1.
    pub(crate) price: u16,
    pub(crate) shares: u32,
    /// The order that rests or is cancelled.
    pub(crate) order: u32,
    /// That order's digest; for an order that takes, its own.
    pub(crate) digest: OrderId,
}

/// A whole workload.
pub(crate) struct Workload {
    pub(crate) prefill: Vec<Command>,
    pub(crate) commands: Vec<Command>,
    /// The sum of the model's fills.
    pub(crate) tally: Tally,
}

/// Fills, with a checksum that depends on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) fills: u64,
    pub(crate) shares: u64,
    checksum: u64,
}

impl Tally {
    pub(crate) fn fill(&mut self, maker: u32, shares: u32, price: u16) {
        self.fills += 1;
        self.shares += u64::from(shares);
        let fill = u64::from(maker) | u64::from(shares) << 32 | u64::from(price) << 52;
        self.checksum = (self.checksum ^ fill).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }
}

/// Vigna's splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The digest of an order: four random words that depend only on its number.
fn digest(order: u32) -> OrderId {
    let mut random = Random(u64::from(order) << 32);
    let mut digest = [0; 32];
    for word in digest.as_chunks_mut().0 {
        *word = random.next().to_le_bytes();
    }
    OrderId(digest)
}

/// The model: a queue for each price, in which cancelled orders are skipped.
struct Model {
    random: Random,
    ticks: u16,
    fair: u16,
    levels: [Vec<VecDeque<u32>>; 2],
    /// How many orders rest at each price, so that an empty level is known without its queue.
    resting: [Vec<u32>; 2],
    open: Vec<u32>,
    price_of: Vec<u16>,
    side_of: Vec<Side>,
    live: Vec<u32>,
    place: Vec<u32>,
    tally: Tally,
    live_wanted: usize,
    takes: u32,
}

impl Workload {
    pub(crate) fn new(ticks: u16, live: usize, commands: usize, seed: u64) -> Self {
        let levels = || vec![VecDeque::new(); usize::from(ticks) + 2];
        let counts = || vec![0; usize::from(ticks) + 2];
        let mut model = Model {
            random: Random(seed),
            ticks,
            fair: ticks / 2,
            levels: [levels(), levels()],
            resting: [counts(), counts()],
            open: Vec::new(),
            price_of: Vec::new(),
            side_of: Vec::new(),
            live: Vec::new(),
            place: Vec::new(),
            tally: Tally::default(),
            live_wanted: live,
            takes: 0,
        };
        let prefill = (0..live).map(|_| model.add()).collect();
        let commands = (0..commands).map(|_| model.command()).collect();
        Self { prefill, commands, tally: model.tally }
    }
}

impl Model {
    fn command(&mut self) -> Command {
        if self.random.chance(2) {
            let up = self.random.chance(50);
            let low = self.ticks / 10;
            self.fair = if up { self.fair + 1 } else { self.fair - 1 }.clamp(low + 1, self.ticks - low);
        }
        match self.random.below(100) {
            0..55 => self.add(),
            55..90 => self.cancel(),
            _ => self.take(),
        }
    }

    fn best(&self, side: Side) -> Option<u16> {
        let counts = &self.resting[side as usize];
        let at = |price: &u16| counts[usize::from(*price)] > 0;
        match side {
            Side::Bid => (1..=self.ticks).rev().find(at),
            Side::Ask => (1..=self.ticks).find(at),
        }
    }

    fn add(&mut self) -> Command {
        let side = if self.random.chance(50) { Side::Bid } else { Side::Ask };
        let reach = u64::from(self.ticks / 10).max(4);
        let away = 1 + self.random.below(reach).min(self.random.below(reach));
        let away = u16::try_from(away).expect("a tenth of the ticks");
        let price = match side {
            Side::Bid => {
                let below = self.best(Side::Ask).unwrap_or(self.ticks + 1) - 1;
                self.fair.saturating_sub(away).clamp(1, below.max(1))
            }
            Side::Ask => (self.fair + away).clamp(self.best(Side::Bid).unwrap_or(0) + 1, self.ticks),
        };
        let shares = u32::try_from(1 + self.random.below(500)).expect("at most 500");
        let order = u32::try_from(self.open.len()).expect("orders are numbered in 32 bits");
        self.open.push(shares);
        self.price_of.push(price);
        self.side_of.push(side);
        self.place.push(u32::try_from(self.live.len()).expect("fewer than orders"));
        self.live.push(order);
        self.levels[side as usize][usize::from(price)].push_back(order);
        self.resting[side as usize][usize::from(price)] += 1;
        Command { kind: Kind::Add, side, price, shares, order, digest: digest(order) }
    }

    fn cancel(&mut self) -> Command {
        let order = self.live[usize::try_from(self.random.below(self.live.len() as u64)).expect("a place")];
        let (side, price) = (self.side_of[order as usize], self.price_of[order as usize]);
        self.gone(order);
        Command { kind: Kind::Cancel, side, price, shares: 0, order, digest: digest(order) }
    }

    /// The command names no order and no price: the first maker's price bounds nothing here.
    fn take(&mut self) -> Command {
        let side = if self.random.chance(50) { Side::Bid } else { Side::Ask };
        let mut shares = 0;
        while let Some(price) = self.best(side) {
            let queue = &mut self.levels[side as usize][usize::from(price)];
            while queue.front().is_some_and(|order| self.open[*order as usize] == 0) {
                queue.pop_front();
            }
            let maker = *queue.front().expect("the level is not empty");
            let open = self.open[maker as usize];
            let last = !self.random.chance(60);
            let part = u32::try_from(1 + self.random.below(open.into())).expect("at most what is open");
            // The last maker of a take stays in part more often when too few are live.
            let stays = self.random.chance(if self.live.len() < self.live_wanted { 70 } else { 30 });
            let traded = if last && stays { part } else { open };
            self.tally.fill(maker, traded, price);
            shares += traded;
            if traded == open {
                self.gone(maker);
            } else {
                self.open[maker as usize] -= traded;
            }
            if last {
                break;
            }
        }
        self.takes += 1;
        Command { kind: Kind::Take, side, price: 0, shares, order: 0, digest: digest(!self.takes) }
    }

    fn gone(&mut self, order: u32) {
        let (side, price) = (self.side_of[order as usize], self.price_of[order as usize]);
        self.open[order as usize] = 0;
        self.resting[side as usize][usize::from(price)] -= 1;
        let place = self.place[order as usize];
        self.live.swap_remove(place as usize);
        if let Some(moved) = self.live.get(place as usize) {
            self.place[*moved as usize] = place;
        }
    }
}
