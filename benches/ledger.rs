//! What it costs to follow the log: frames that a trade core wrote, applied to a ledger, beside the obvious
//! replay, which keeps cells, shares, fees and live orders in sorted maps and nothing else.
//!
//! The ledger also checks that every record is possible, keeps a hash of the whole state, and remembers
//! orders that are over. A good number: below 2 µs a frame, so that a million frames after the last
//! snapshot add 2 s to a restart.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(unreachable_pub, dead_code, reason = "the scripts' files are shared with the tests")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

#[path = "../tests/scripts/fast.rs"]
mod fast;
#[path = "../tests/scripts/language.rs"]
mod language;
#[path = "../tests/scripts/names.rs"]
mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fast::Fast;
use language::{Command, MarketLine, Setup, parse};
use names::Names;
use outcry::domain::{Collateral, MarketNo, OrderId, Outcome, Position, Shares, Side, TimeMs, WalletNo};
use outcry::journal::layout::{MoneyDirection, OrderPlaced, PlacedResult, Record};
use outcry::journal::{Follower, Span};
use outcry::ledger::Ledger;
use outcry::shard::Placed;

const NOW: TimeMs = TimeMs(1_700_000_000_000);
const MARKET: MarketNo = MarketNo(0);
const WALLETS: u64 = 20;
const ORDERS: u64 = 20_000;
const MONEY: u64 = 1_000_000_000_000;

/// A trade core with a market and wallets that have money.
fn opened() -> (Fast, Names) {
    let (setup, _) = parse("limits orders 20000 open 20000 digests 1000000 accounts 100");
    let mut fast = Fast::new(&Setup { shards: vec![1], ..setup }, 1);
    let mut names = Names::default();
    let line = MarketLine { fee_rate: 44_100, ..MarketLine::first() };
    fast.add_market(NOW, MARKET, &line);
    names.markets.push(line);
    for number in 0..WALLETS {
        let (wallet, _) = names.wallet(&format!("w{number}"));
        fast.add_wallet(NOW, wallet, wallet);
        fast.money(NOW, wallet, MoneyDirection::Credit, MONEY);
    }
    (fast, names)
}

/// The frames of random orders for either outcome, every fourth of which is cancelled, and the state in
/// which the trade core itself ends.
fn recorded() -> (Vec<(Span, Record)>, Balances) {
    let (mut fast, mut names) = opened();
    let mut follower = Follower::new(Arc::clone(&fast.log), fast.log.claimed(), None);
    let mut frames = Vec::new();
    let mut state = 42_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for number in 1..=ORDERS {
        let (token, cents) = if below(2) == 0 { ("yes", 30 + below(35)) } else { ("no", 30 + below(35)) };
        let text = format!("w{} buy {token} {cents} x{} gtc #o", below(WALLETS), 5 + below(20));
        let (_, lines) = parse(&text);
        let Command::Order(line) = &lines[0].command else { panic!("{text:?} is no order") };
        let (wallet, _) = names.wallet(&line.who);
        let mut order = names.place(line, wallet, NOW);
        order.id = OrderId::ZERO;
        order.id.0[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        let shard = fast.owner(MARKET);
        assert!(matches!(shard.place(NOW, &order.ready()), Placed::Accepted { .. }), "{text:?} is refused");
        if below(4) == 0 {
            // If the order was filled on arrival, nothing happens.
            let _ = shard.cancel(NOW, order.principal, &order.id);
        }
        let limit = fast.log.claimed();
        while let Some(frame) = follower.next(limit).unwrap() {
            frames.push((frame.span, Record::decode(frame.kind, frame.payload).unwrap()));
        }
        fast.follow();
    }
    fast.agrees_with_its_log();
    (frames, Balances::of(&fast.ledger))
}

/// Everything that users can see of the state after some frames.
#[derive(Debug, Default, PartialEq)]
struct Balances {
    cells: BTreeMap<WalletNo, Collateral>,
    shares: BTreeMap<WalletNo, [Shares; 2]>,
    live: BTreeMap<Position, Shares>,
    fees: Collateral,
}

impl Balances {
    fn of(ledger: &Ledger) -> Self {
        Self {
            cells: ledger.wallets().iter().map(|row| (row.wallet, row.cell)).collect(),
            shares: ledger.holdings().map(|(wallet, _, shares)| (wallet, shares)).collect(),
            live: ledger.live_orders(MARKET).map(|row| (row.position, row.open)).collect(),
            fees: ledger.fees(),
        }
    }
}

fn replayed(mut ledger: Ledger, frames: &[(Span, Record)]) -> Ledger {
    for (span, record) in frames {
        ledger.apply(span.start, span.end, record).unwrap();
    }
    ledger
}

/// The obvious replay, for the records of a market that has only buys.
#[derive(Default)]
struct Plain<'a> {
    cells: BTreeMap<WalletNo, Collateral>,
    shares: BTreeMap<(WalletNo, MarketNo, Outcome), Shares>,
    live: BTreeMap<Position, (&'a OrderPlaced, Shares)>,
    fees: Collateral,
}

impl<'a> Plain<'a> {
    fn opened() -> Self {
        let cells = Balances::of(&opened().0.ledger).cells;
        Self { cells, ..Self::default() }
    }

    fn replayed(mut self, frames: &'a [(Span, Record)]) -> Self {
        for (span, record) in frames {
            match record {
                Record::OrderPlaced(record) => self.place(span.start, record),
                Record::OrdersRemoved(record) => self.remove(record.orders.iter().copied()),
                other => panic!("the recording has no {other:?}"),
            }
        }
        self
    }

    fn place(&mut self, position: Position, taker: &'a OrderPlaced) {
        self.remove(taker.removed.iter().map(|removal| removal.order));
        for fill in &taker.fills {
            let (maker, open) = self.live.get_mut(&fill.maker).unwrap();
            let maker = *maker;
            *open -= fill.shares;
            if open.is_zero() {
                self.live.remove(&fill.maker);
            }
            self.buy(maker, fill.shares, fill.maker_leg + fill.maker_fee);
            self.buy(taker, fill.shares, fill.taker_leg + fill.taker_fee);
            self.fees += fill.maker_fee + fill.taker_fee;
        }
        if taker.result == PlacedResult::Rests {
            self.live.insert(position, (taker, taker.open));
        }
    }

    fn buy(&mut self, order: &OrderPlaced, shares: Shares, cost: Collateral) {
        assert_eq!(order.fields.side, Side::Buy, "the recording has no sells");
        *self.cells.get_mut(&order.wallet).unwrap() -= cost;
        *self.shares.entry((order.wallet, order.market, order.outcome)).or_default() += shares;
    }

    fn remove(&mut self, orders: impl Iterator<Item = Position>) {
        for order in orders {
            self.live.remove(&order).unwrap();
        }
    }

    fn balances(&self) -> Balances {
        let mut shares = BTreeMap::<_, [Shares; 2]>::new();
        for ((wallet, _, outcome), held) in &self.shares {
            shares.entry(*wallet).or_default()[outcome.index()] = *held;
        }
        let live = self.live.iter().map(|(position, (_, open))| (*position, *open)).collect();
        Balances { cells: self.cells.clone(), shares, live, fees: self.fees }
    }
}

fn replay(criterion: &mut Criterion) {
    let (frames, expected) = recorded();
    let ledger = replayed(opened().0.ledger, &frames);
    ledger.conserved().unwrap();
    assert_eq!(Balances::of(&ledger), expected);
    assert_eq!(Plain::opened().replayed(&frames).balances(), expected);
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10).throughput(Throughput::Elements(frames.len() as u64));
    group.bench_function("ledger", |bencher| {
        let open = || opened().0.ledger;
        bencher.iter_batched(open, |ledger| replayed(ledger, &frames), BatchSize::PerIteration);
    });
    group.bench_function("plain", |bencher| {
        bencher.iter_batched(Plain::opened, |plain| plain.replayed(&frames), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
