//! What an order does to its wallet's row in its market: it reserves what it may use, and is filled or
//! withdrawn. Beside it the obvious twin: a map of maps with wide integers that goes through all rows
//! of a wallet whenever it is asked for the largest exposure.
//!
//! A thousand wallets in twenty markets, and 20,000 open orders at any time. A good number: below
//! 100 ns an order, both its halves and the question together.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use std::collections::{HashMap, VecDeque};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use outcry::account::Accounts;
use outcry::domain::{Collateral, MarketNo, Outcome, Shares, WalletNo};

const WALLETS: u64 = 1_000;
const MARKETS: u64 = 20;
const OPEN: usize = 20_000;
/// Orders of one measured run, each of which is opened and ended.
const ORDERS: usize = 50_000;

/// An order for some shares of token 0.
#[derive(Clone, Copy)]
struct Order {
    wallet: WalletNo,
    market: MarketNo,
    side: Side,
    shares: u64,
    cost: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Buy,
    Sell,
}

#[derive(Clone, Copy)]
enum Event {
    /// A buy reserves collateral, a sell reserves shares.
    Reserve(Order),
    /// The order ends unfilled.
    Release(Order),
    /// The order is filled whole.
    Fill(Order),
}

/// Rows of wallets in markets. A sell of more than is free is not taken, and its end changes nothing.
trait Rows {
    /// Whether the order was taken.
    fn reserve(&mut self, order: &Order) -> bool;
    fn release(&mut self, order: &Order);
    fn fill(&mut self, order: &Order);
    /// The largest sum of buys in one market.
    fn largest(&mut self, wallet: WalletNo) -> u64;
    /// Shares of token 0 that no sell has reserved.
    fn free(&self, wallet: WalletNo, market: MarketNo) -> u64;
}

impl Rows for Accounts {
    fn reserve(&mut self, order: &Order) -> bool {
        let row = self.open(order.wallet, order.market).unwrap();
        match order.side {
            Side::Buy => self.add_buying(row, Collateral(order.cost)),
            Side::Sell if self[row].free(Outcome::Zero) < Shares(order.shares) => {
                self.settle(row);
                return false;
            }
            Side::Sell => self[row].selling[0] += Shares(order.shares),
        }
        self.add_order(row);
        true
    }

    fn release(&mut self, order: &Order) {
        let row = self.find(order.wallet, order.market).unwrap();
        match order.side {
            Side::Buy => self[row].buying -= Collateral(order.cost),
            Side::Sell => self[row].selling[0] -= Shares(order.shares),
        }
        self.drop_order(row);
        self.settle(row);
    }

    fn fill(&mut self, order: &Order) {
        let row = self.find(order.wallet, order.market).unwrap();
        match order.side {
            Side::Buy => self[row].shares[0] += Shares(order.shares),
            Side::Sell => self[row].shares[0] -= Shares(order.shares),
        }
        self.release(order);
    }

    fn largest(&mut self, wallet: WalletNo) -> u64 {
        self.measure(wallet).0
    }

    fn free(&self, wallet: WalletNo, market: MarketNo) -> u64 {
        self.find(wallet, market).map_or(0, |row| self[row].free(Outcome::Zero).0)
    }
}

#[derive(Default)]
struct Naive(HashMap<WalletNo, HashMap<MarketNo, NaiveRow>>);

#[derive(Default)]
struct NaiveRow {
    shares: i128,
    selling: i128,
    buying: i128,
}

impl Naive {
    fn row(&mut self, order: &Order) -> &mut NaiveRow {
        self.0.entry(order.wallet).or_default().entry(order.market).or_default()
    }
}

impl Rows for Naive {
    fn reserve(&mut self, order: &Order) -> bool {
        let row = self.row(order);
        match order.side {
            Side::Buy => row.buying += i128::from(order.cost),
            Side::Sell if row.shares - row.selling < i128::from(order.shares) => return false,
            Side::Sell => row.selling += i128::from(order.shares),
        }
        true
    }

    fn release(&mut self, order: &Order) {
        let row = self.row(order);
        match order.side {
            Side::Buy => row.buying -= i128::from(order.cost),
            Side::Sell => row.selling -= i128::from(order.shares),
        }
    }

    fn fill(&mut self, order: &Order) {
        let row = self.row(order);
        match order.side {
            Side::Buy => row.shares += i128::from(order.shares),
            Side::Sell => row.shares -= i128::from(order.shares),
        }
        self.release(order);
    }

    fn largest(&mut self, wallet: WalletNo) -> u64 {
        let rows = self.0.get(&wallet).into_iter().flat_map(HashMap::values);
        rows.map(|row| row.buying).max().map_or(0, |largest| largest.try_into().unwrap())
    }

    fn free(&self, wallet: WalletNo, market: MarketNo) -> u64 {
        let row = self.0.get(&wallet).and_then(|rows| rows.get(&market));
        row.map_or(0, |row| (row.shares - row.selling).try_into().unwrap())
    }
}

/// Everything that the rows answered, folded into one number.
fn run(rows: &mut impl Rows, events: &[Event]) -> u64 {
    let mut answers = 0_u64;
    for event in events {
        let answer = match event {
            Event::Reserve(order) => u64::from(rows.reserve(order)),
            Event::Release(order) => {
                rows.release(order);
                rows.free(order.wallet, order.market)
            }
            // A fill lowers the wallet's collateral, so what is left has to cover its other buys.
            Event::Fill(order) => {
                rows.fill(order);
                rows.largest(order.wallet)
            }
        };
        answers = answers.rotate_left(7).wrapping_add(answer);
    }
    answers
}

/// The events that open the first orders, and the others; every order that ends was taken.
fn events() -> (Vec<Event>, Vec<Event>) {
    let (mut naive, mut open) = (Naive::default(), VecDeque::new());
    let (mut before, mut events) = (Vec::new(), Vec::new());
    let mut state = 42_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    while events.len() < 2 * ORDERS {
        let shares = 1_000_000 * (1 + below(50));
        let order = Order {
            wallet: WalletNo(u32::try_from(below(WALLETS)).unwrap()),
            market: MarketNo(u32::try_from(below(MARKETS)).unwrap()),
            side: if below(3) == 0 { Side::Sell } else { Side::Buy },
            shares,
            cost: shares / 100 * (1 + below(99)),
        };
        let sink = if open.len() < OPEN { &mut before } else { &mut events };
        if naive.reserve(&order) {
            open.push_back(order);
        }
        sink.push(Event::Reserve(order));
        if OPEN < open.len() {
            let order = open.pop_front().unwrap();
            if below(2) == 0 {
                naive.fill(&order);
                events.push(Event::Fill(order));
            } else {
                naive.release(&order);
                events.push(Event::Release(order));
            }
        }
    }
    (before, events)
}

fn accounts(criterion: &mut Criterion) {
    let (before, events) = events();
    let ours = || {
        let mut rows = Accounts::with_capacity(
            u32::try_from(WALLETS * MARKETS).unwrap(),
            usize::try_from(WALLETS).unwrap(),
            u32::try_from(MARKETS).unwrap(),
            0x9e37_79b9_7f4a_7c15,
        );
        run(&mut rows, &before);
        rows
    };
    let naive = || {
        let mut rows = Naive::default();
        run(&mut rows, &before);
        rows
    };
    let expected = run(&mut naive(), &events);
    assert_eq!(run(&mut ours(), &events), expected);
    let mut group = criterion.benchmark_group("reserve, release and fill");
    group.sample_size(10).throughput(Throughput::Elements(events.len() as u64));
    group.bench_function("outcry", |bencher| {
        let run = |rows: &mut Accounts| assert_eq!(run(rows, &events), expected);
        bencher.iter_batched_ref(ours, run, BatchSize::PerIteration);
    });
    group.bench_function("naive", |bencher| {
        let run = |rows: &mut Naive| assert_eq!(run(rows, &events), expected);
        bencher.iter_batched_ref(naive, run, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, accounts);
criterion_main!(benches);
