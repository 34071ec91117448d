//! One order through a trade core and out again: judged, matched, written as a frame, remembered; beside
//! the naive twin, which keeps plain lists and maps and writes no frame. Then the book alone, beside a
//! plain one (`plain`).
//!
//! Each book holds 1,000 resting orders of 20 wallets on 98 prices. A good number: rest and cancel
//! below 1 µs together, as the check of one signature takes 26 µs.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(unreachable_pub, dead_code, reason = "the scripts' files are shared with the tests")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

#[path = "../../tests/scripts/fast.rs"]
mod fast;
#[path = "../../tests/scripts/language.rs"]
mod language;
#[path = "../../tests/scripts/names.rs"]
mod names;
mod plain;

use criterion::{Criterion, criterion_group, criterion_main};
use fast::Fast;
use language::{Command, MarketLine, Setup, parse};
use names::Names;
use outcry::domain::{MarketNo, Mode, OrderId, Tick, TimeMs};
use outcry::journal::layout::MoneyDirection;
use outcry::shard::naive::{Naive, NaiveMarket, NaiveWallet};
use outcry::shard::{Funding, PlaceOrder, Placed, Status};

/// When the market opens.
const OPENED: TimeMs = TimeMs(1_700_000_000_000);
const MARKET: MarketNo = MarketNo(0);
const RESTING: u64 = 1_000;
const WALLETS: u64 = 20;
/// Enough to take for hours: every order that is taken costs either side 5 USDC.
const MONEY: u64 = 100_000_000_000_000_000;
/// More than the room that orders leave free for cancels, and two orders.
const ROOM_MIN: u64 = 4 << 20;

/// The same market on both sides, with the same orders in it.
struct Pair {
    fast: Fast,
    naive: Naive,
    names: Names,
    next: u64,
    /// It goes on with every order: a full memory of digests drops the oldest stamps, and refuses what is not newer.
    now: TimeMs,
}

impl Pair {
    fn open() -> Self {
        let (setup, _) = parse("limits orders 20000 digests 1000000 accounts 100");
        let setup = Setup { shards: vec![1], ..setup };
        let line = MarketLine { fee_rate: 44_100, ..MarketLine::first() };
        let mut pair = Self {
            fast: Fast::new(&setup, 1),
            naive: Naive::new(1, Funding::Market),
            names: Names::default(),
            next: 0,
            now: OPENED,
        };
        pair.fast.add_market(OPENED, MARKET, &line);
        pair.naive.now = OPENED;
        pair.naive.markets.push(NaiveMarket {
            tick: Tick::new(line.tick).unwrap(),
            mode: Mode::Open,
            fee: line.fee(),
            min_size: 0,
            payout: None,
        });
        pair.names.markets.push(line);
        for number in 0..RESTING {
            let cents = 1 + number * 37 % 98;
            let (token, cents) = if cents < 50 { ("yes", cents) } else { ("no", 99 - cents) };
            let mut order = pair.order(&format!("w{} buy {token} {cents} x10 gtc #o", number % WALLETS));
            pair.name(&mut order);
            pair.naive.place(&order);
            let placed = pair.fast.owner(MARKET).place(pair.now, &order.ready());
            assert!(matches!(placed, Placed::Accepted { .. }));
        }
        pair
    }

    fn order(&mut self, text: &str) -> PlaceOrder {
        let (_, lines) = parse(text);
        let Command::Order(line) = &lines[0].command else {
            panic!("{text:?} is no order");
        };
        let (wallet, new) = self.names.wallet(&line.who);
        for (wallet, principal) in new {
            self.fast.add_wallet(self.now, wallet, principal);
            self.fast.money(self.now, wallet, MoneyDirection::Credit, MONEY);
            self.naive.wallets.push(NaiveWallet { principal, cell: MONEY, frozen: false });
        }
        self.names.place(line, wallet, self.now)
    }

    /// Gives an order a digest that was never used before, and a stamp a millisecond after the last one.
    fn name(&mut self, order: &mut PlaceOrder) {
        self.next += 1;
        self.now.0 += 1;
        self.naive.now = self.now;
        order.order.fields.timestamp_ms = self.now.0;
        let word = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        order.id = OrderId::ZERO;
        order.id.0[..8].copy_from_slice(&word.to_le_bytes());
    }

    /// Frees the log as the journal's thread would: without it the ring is full after a moment.
    fn free(&self) {
        if self.fast.log.room() < ROOM_MIN {
            self.fast.log.free(self.fast.log.claimed());
        }
    }
}

fn status(placed: Placed) -> Status {
    match placed {
        Placed::Accepted { status, .. } => status,
        Placed::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

fn rest_and_cancel(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rest and cancel");
    let mut pair = Pair::open();
    let mut order = pair.order("w3 buy yes 30 x10 gtc #t");
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| {
            pair.name(&mut order);
            pair.free();
            let shard = pair.fast.owner(MARKET);
            assert_eq!(status(shard.place(pair.now, &order.ready())), Status::Live);
            assert_eq!(shard.cancel(pair.now, order.principal, &order.id), Ok(()));
        });
    });
    group.bench_function("naive", |bencher| {
        bencher.iter(|| {
            pair.name(&mut order);
            assert_eq!(status(pair.naive.place(&order).placed), Status::Live);
            assert!(pair.naive.cancel(order.principal, &order.id));
        });
    });
    group.finish();
}

fn rest_and_take(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rest and take by mint");
    let mut pair = Pair::open();
    let mut maker = pair.order("w3 buy yes 50 x10 gtc #m");
    let mut taker = pair.order("w4 buy no 50 $5 fok #t");
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| {
            pair.name(&mut maker);
            pair.name(&mut taker);
            pair.free();
            let shard = pair.fast.owner(MARKET);
            assert_eq!(status(shard.place(pair.now, &maker.ready())), Status::Live);
            assert_eq!(status(shard.place(pair.now, &taker.ready())), Status::Matched);
            shard.sweep(pair.now);
        });
    });
    group.bench_function("naive", |bencher| {
        bencher.iter(|| {
            pair.name(&mut maker);
            pair.name(&mut taker);
            assert_eq!(status(pair.naive.place(&maker).placed), Status::Live);
            assert_eq!(status(pair.naive.place(&taker).placed), Status::Matched);
        });
    });
    group.finish();
}

criterion_group!(benches, rest_and_cancel, rest_and_take, plain::beside_ours);
criterion_main!(benches);
