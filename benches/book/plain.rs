//! The book as most people would write it, beside the room `book`: a sorted map of prices, a queue at each,
//! and a map from digests to prices. Neither knows of money or writes a log.
//!
//! Of 20,000 commands 55 % rest an order, 35 % cancel one, which may have ended already, and 10 % take some
//! makers; 10,000 orders rest on 98 prices beforehand.

use std::collections::{BTreeMap, HashMap, VecDeque};

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput};
use outcry::book::Books;
use outcry::book::orders::{self, NEVER, Resting};
use outcry::domain::{MarketNo, OrderId, Outcome, Position, Price, Shares, Side, Tick, WalletNo};

const RESTING: u64 = 10_000;
const COMMANDS: usize = 20_000;
const MARKET: MarketNo = MarketNo(0);
/// Bids are below it and asks above, so that nothing crosses.
const FAIR_CENTS: u64 = 50;

enum Command {
    Rest { id: OrderId, side: Side, price: Price, shares: u64 },
    Cancel { id: OrderId },
    Take { from: Side, shares: u64 },
}

/// One maker's part: whose order, how much, and at which price.
type Fill = (u64, u64, Price);

/// The results of all commands.
#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    cancelled: usize,
    fills: Vec<Fill>,
}

trait Book {
    fn rest(&mut self, id: &OrderId, side: Side, price: Price, shares: u64);
    fn cancel(&mut self, id: &OrderId) -> bool;
    fn take(&mut self, from: Side, shares: u64, fills: &mut Vec<Fill>);
}

struct Ours {
    books: Books,
    placed: u64,
}

impl Ours {
    fn new() -> Self {
        let resting_max = u32::try_from(RESTING).unwrap() * 2;
        Self { books: Books::new(1, resting_max, 1 << 20, 0x9e37_79b9_7f4a_7c15), placed: 0 }
    }
}

impl Book for Ours {
    fn rest(&mut self, id: &OrderId, side: Side, price: Price, shares: u64) {
        self.placed += 1;
        let order = Resting {
            id: *id,
            open: Shares(shares),
            position: Position(self.placed),
            expires_s: NEVER,
            principal: WalletNo(0),
            market: MARKET,
            price,
            side,
            outcome: Outcome::Zero,
        };
        self.books.rest(Tick::new(100).unwrap(), &order).unwrap();
    }

    fn cancel(&mut self, id: &OrderId) -> bool {
        let found = self.books.orders().find(id);
        found.map(|slot| self.books.remove(slot)).is_some()
    }

    fn take(&mut self, from: Side, mut shares: u64, fills: &mut Vec<Fill>) {
        while let Some(slot) = self.books.first(MARKET, from).filter(|_| 0 < shares) {
            let orders::Resting { open, position, price, .. } = self.books.orders()[slot];
            let traded = shares.min(open.0);
            shares -= traded;
            fills.push((position.0, traded, price));
            if traded == open.0 {
                self.books.remove(slot);
            } else {
                self.books.reduce(slot, Shares(traded));
            }
        }
    }
}

struct Order {
    id: OrderId,
    placed: u64,
    open: u64,
}

#[derive(Default)]
struct Plain {
    sides: [BTreeMap<Price, VecDeque<Order>>; 2],
    places: HashMap<OrderId, (Side, Price)>,
    placed: u64,
}

impl Book for Plain {
    fn rest(&mut self, id: &OrderId, side: Side, price: Price, shares: u64) {
        self.placed += 1;
        let order = Order { id: *id, placed: self.placed, open: shares };
        self.sides[side.index()].entry(price).or_default().push_back(order);
        self.places.insert(*id, (side, price));
    }

    fn cancel(&mut self, id: &OrderId) -> bool {
        let Some((side, price)) = self.places.remove(id) else {
            return false;
        };
        let levels = &mut self.sides[side.index()];
        let level = levels.get_mut(&price).unwrap();
        let at = level.iter().position(|order| order.id == *id).unwrap();
        level.remove(at);
        if level.is_empty() {
            levels.remove(&price);
        }
        true
    }

    fn take(&mut self, from: Side, mut shares: u64, fills: &mut Vec<Fill>) {
        while 0 < shares {
            let levels = &mut self.sides[from.index()];
            let best = match from {
                Side::Buy => levels.last_entry(),
                Side::Sell => levels.first_entry(),
            };
            let Some(mut level) = best else {
                return;
            };
            let price = *level.key();
            let maker = level.get_mut().front_mut().unwrap();
            let traded = shares.min(maker.open);
            shares -= traded;
            maker.open -= traded;
            fills.push((maker.placed, traded, price));
            if maker.open == 0 {
                self.places.remove(&maker.id);
                level.get_mut().pop_front();
                if level.get().is_empty() {
                    level.remove();
                }
            }
        }
    }
}

fn run(book: &mut impl Book, commands: &[Command], outcomes: &mut Outcomes) {
    for command in commands {
        match command {
            Command::Rest { id, side, price, shares } => book.rest(id, *side, *price, *shares),
            Command::Cancel { id } => outcomes.cancelled += usize::from(book.cancel(id)),
            Command::Take { from, shares } => book.take(*from, *shares, &mut outcomes.fills),
        }
    }
}

/// The commands that fill the book, and those that are timed.
fn commands() -> (Vec<Command>, Vec<Command>) {
    let mut state = 42_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let side = |number| if number == 0 { Side::Buy } else { Side::Sell };
    let mut ids = Vec::new();
    let mut all: Vec<Command> = Vec::new();
    while all.len() < usize::try_from(RESTING).unwrap() + COMMANDS {
        let kind = if ids.len() < usize::try_from(RESTING).unwrap() { 0 } else { below(100) };
        all.push(match kind {
            ..55 => {
                let mut id = OrderId::ZERO;
                let words = id.0.chunks_exact_mut(8);
                words.for_each(|word| {
                    word.copy_from_slice(&(below(1 << 31) << 32 | below(1 << 31)).to_le_bytes());
                });
                ids.push(id);
                let (side, away) = (side(below(2)), 1 + below(FAIR_CENTS - 1).min(below(FAIR_CENTS - 1)));
                let cents = if side == Side::Buy { FAIR_CENTS - away } else { FAIR_CENTS + away };
                let price = Price::new(u16::try_from(cents * 100).unwrap()).unwrap();
                Command::Rest { id, side, price, shares: 5 + below(95) }
            }
            55..90 => Command::Cancel { id: ids[usize::try_from(below(ids.len() as u64)).unwrap()] },
            _ => Command::Take { from: side(below(2)), shares: 5 + below(200) },
        });
    }
    let after = all.split_off(usize::try_from(RESTING).unwrap());
    (all, after)
}

/// A book with the first orders in it.
fn filled<B: Book>(mut book: B, before: &[Command]) -> B {
    run(&mut book, before, &mut Outcomes::default());
    book
}

pub(crate) fn beside_ours(criterion: &mut Criterion) {
    let (before, commands) = commands();
    let (mut ours, mut plain) = (Outcomes::default(), Outcomes::default());
    run(&mut filled(Ours::new(), &before), &commands, &mut ours);
    run(&mut filled(Plain::default(), &before), &commands, &mut plain);
    assert_eq!(ours, plain, "the same orders are cancelled and filled, in the same order");
    assert!(COMMANDS / 10 < ours.cancelled.min(ours.fills.len()), "{ours:?} say little");

    let mut group = criterion.benchmark_group("rest, cancel and take, the book alone");
    group.sample_size(20).throughput(Throughput::Elements(COMMANDS as u64));
    timed(&mut group, "outcry", &commands, &ours, || filled(Ours::new(), &before));
    timed(&mut group, "sorted map", &commands, &ours, || filled(Plain::default(), &before));
    group.finish();
}

fn timed<B: Book>(
    group: &mut BenchmarkGroup<WallTime>,
    name: &str,
    commands: &[Command],
    expected: &Outcomes,
    open: impl Fn() -> B,
) {
    let start = || (open(), Outcomes { fills: Vec::with_capacity(COMMANDS), cancelled: 0 });
    let run = |(book, outcomes): &mut (B, Outcomes)| {
        run(book, commands, outcomes);
        assert_eq!(outcomes.cancelled, expected.cancelled);
        assert_eq!(outcomes.fills.last(), expected.fills.last());
    };
    group.bench_function(name, |bencher| bencher.iter_batched_ref(start, run, BatchSize::PerIteration));
}
