//! Wallet data of a wallet with a million rows of activity and positions in a thousand markets: the
//! whole answer, from the parsed request to the last byte of JSON.
//!
//! Besides the criterion groups, a line for each request gives its median and its 99th percentile. Nothing changes
//! between two of the same, so rows of positions are copied from the last answer; at the end positions are asked for
//! after a change in each market, so that every row is written anew.
//! The naive list sorts all rows of the wallet for every page. A good number: a page of 100 rows
//! below 1 ms at the 99th percentile, so that no read stalls the read core for longer.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

#[path = "loopback/figures.rs"]
mod figures;

use criterion::{Criterion, criterion_group, criterion_main};
use outcry::domain::{
    Address, ApiKey, Collateral, ConditionId, FeeSchedule, MarketNo, Mode, OrderFields, OrderId, OrderType,
    Outcome, Position, Price, SelfTrade, Shares, Side, SignatureType, Tick, TimeMs, TokenId, WalletKind,
    WalletNo, Word,
};
use outcry::http::route::{self, HostPrefixes};
use outcry::http::{Method, Query};
use outcry::journal::layout::{
    ActKind, Fill, MarketAdded, MatchKind, Money, MoneyDirection, OrderPlaced, PlacedResult, PositionAct,
    Record, WalletAdded,
};
use outcry::reader::{PriceSide, ReadRequest, Reader, Settings, WalletSettings};
use outcry::wallet::{Act, Entry, Wallets};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROWS: u64 = 1_000_000;
const MARKETS: u32 = 1_000;
/// One in this many rounds over the markets consists of trades.
const TRADE_EVERY: u64 = 10;
const SHARE: u64 = 1_000_000;
/// The wallet with all the rows, and the one that sells to it.
const BUSY: WalletNo = WalletNo(0);
const SELLER: WalletNo = WalletNo(1);
/// Other holders of the first market.
const HOLDERS: u32 = 10_000;
/// Samples of each request for its percentiles.
const SAMPLES: usize = 2_000;
/// Samples of each request for positions after a change in each market.
const CHANGED_SAMPLES: usize = 200;

struct Exchange {
    reader: Reader,
    next: u64,
    now: u64,
}

impl Exchange {
    fn says(&mut self, record: impl Into<Record>) -> Position {
        let start = Position(self.next);
        self.next += 64;
        self.reader.apply(start, Position(self.next), &record.into()).unwrap();
        start
    }

    fn opened() -> Self {
        let settings = Settings {
            keccak: |bytes| outcry::auth::keccak(bytes).0,
            price_side: PriceSide::Taker,
            exchanges: Vec::new(),
            builder_share_bps: 0,
            wallet: WalletSettings::default(),
        };
        let mut exchange = Self { reader: Reader::new(settings), next: 0, now: 1_703_875_200_000 };
        for number in 0..2 + HOLDERS {
            let (time, wallet) = (TimeMs(exchange.now), WalletNo(number));
            let (address, kind) = (address(wallet), WalletKind::Eoa);
            exchange.says(WalletAdded { time, wallet, address, kind, principal: Some(wallet) });
            let (direction, reference) = (MoneyDirection::Credit, number.to_string());
            let amount = Collateral(10 * ROWS * SHARE);
            exchange.says(Money { time, wallet, direction, amount, reference });
        }
        for market in (0..MARKETS).map(MarketNo) {
            exchange.says(listed(market, exchange.now));
        }
        for holder in (2..2 + HOLDERS).map(WalletNo) {
            exchange.splits(holder, MarketNo(0), 1 + u64::from(holder.0) % 977);
        }
        exchange
    }

    /// An exchange with all the rows.
    fn busy() -> Self {
        let mut exchange = Self::opened();
        let mut asks = Vec::new();
        for market in (0..MARKETS).map(MarketNo) {
            exchange.splits(SELLER, market, 10_000);
            let ask = exchange.order(SELLER, market, Side::Sell, 10_000);
            asks.push(exchange.says(ask));
        }
        for row in 0..ROWS - 1 {
            exchange.now += 100;
            let market = MarketNo(u32::try_from(row % u64::from(MARKETS)).unwrap());
            if row / u64::from(MARKETS) % TRADE_EVERY == 0 {
                exchange.buys(market, asks[market.index()], 1 + row % 7);
            } else {
                exchange.splits(BUSY, market, 1 + row % 5);
            }
        }
        exchange.reader.ledger().conserved().unwrap();
        exchange
    }

    fn splits(&mut self, wallet: WalletNo, market: MarketNo, pairs: u64) {
        self.says(PositionAct {
            time: TimeMs(self.now),
            act: ActKind::Split,
            wallet,
            market,
            shares: [Shares(pairs * SHARE); 2],
            collateral: Collateral(pairs * SHARE),
            id: OrderId::ZERO,
            salt: Word::ZERO,
            timestamp_ms: self.now,
            signature: Vec::new(),
            removed: Vec::new(),
        });
    }

    fn buys(&mut self, market: MarketNo, maker: Position, shares: u64) {
        let mut order = self.order(BUSY, market, Side::Buy, shares);
        let leg = Collateral(shares * SHARE / 2);
        order.fills.push(Fill {
            maker,
            shares: Shares(shares * SHARE),
            maker_leg: leg,
            taker_leg: leg,
            maker_fee: Collateral::ZERO,
            taker_fee: Collateral::ZERO,
            kind: MatchKind::Transfer,
            price: Price::new(5_000).unwrap(),
        });
        (order.open, order.result) = (Shares::ZERO, PlacedResult::Filled);
        self.says(order);
    }

    fn order(&self, wallet: WalletNo, market: MarketNo, side: Side, shares: u64) -> OrderPlaced {
        let mut id = [0xab; 32];
        id[..8].copy_from_slice(&self.next.to_be_bytes());
        let (cash, shares) = (shares * SHARE / 2, shares * SHARE);
        let (maker_amount, taker_amount) = if side == Side::Buy { (cash, shares) } else { (shares, cash) };
        OrderPlaced {
            time: TimeMs(self.now),
            market,
            outcome: Outcome::Zero,
            wallet,
            principal: wallet,
            id: OrderId(id),
            fields: OrderFields {
                salt: Word::ZERO,
                maker: address(wallet),
                signer: address(wallet),
                token: TokenId::ZERO,
                maker_amount,
                taker_amount,
                side,
                signature_type: SignatureType::Eoa,
                timestamp_ms: self.now,
                metadata: Word::ZERO,
                builder: Word::ZERO,
            },
            signature: Vec::new(),
            expiration_s: 0,
            order_type: OrderType::Gtc,
            post_only: false,
            self_trade: SelfTrade::ExpireTaker,
            owner: ApiKey::ZERO,
            price: Price::new(5_000).unwrap(),
            result: PlacedResult::Rests,
            stopped: None,
            open: Shares(shares),
            reserved: Collateral::ZERO,
            fills: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// How long it took to write the bytes of an answer.
    fn timed(&mut self, target: &str, out: &mut Vec<u8>) -> Duration {
        let start = Instant::now();
        self.get(black_box(target), out);
        start.elapsed()
    }

    /// Writes the bytes of an answer, which must succeed, to `out`.
    fn get(&mut self, target: &str, out: &mut Vec<u8>) {
        let (path, query) = target.split_once('?').unwrap();
        let query = Query::new(Some(query));
        let found = route::route(Method::Get, None, path, query, HostPrefixes::Off).unwrap();
        let request = ReadRequest {
            endpoint: found.endpoint,
            capture: found.capture,
            query,
            body: &[],
            caller: None,
            now: TimeMs(self.now),
        };
        out.clear();
        assert_eq!(self.reader.answer(&request, out), 200, "{}", String::from_utf8_lossy(out));
    }
}

fn listed(market: MarketNo, now: u64) -> MarketAdded {
    let id = |kind: u8| {
        let mut id = [kind; 32];
        id[..4].copy_from_slice(&market.0.to_be_bytes());
        id
    };
    MarketAdded {
        time: TimeMs(now),
        market,
        event: None,
        shard_key: market.0,
        market_id: market.0.into(),
        condition: ConditionId(id(0xcc)),
        question: Word(id(1)),
        tokens: [TokenId(id(2)), TokenId(id(3))],
        labels: vec!["Yes".into(), "No".into()],
        neg_risk: false,
        tick: Tick::new(100).unwrap(),
        min_size: Shares(SHARE),
        fee: FeeSchedule::FREE,
        mode: Mode::Open,
        payout: None,
        text: format!(
            "{{\"question\":\"Will number {} of a thousand things happen before the year ends?\",\
             \"slug\":\"thing-{}\",\"icon\":\"https://example.org/icons/{}.png\",\
             \"endDate\":\"2026-12-31T12:00:00Z\"}}",
            market.0, market.0, market.0
        ),
    }
}

fn address(wallet: WalletNo) -> Address {
    let mut bytes = [0xad; 20];
    bytes[16..].copy_from_slice(&wallet.0.to_be_bytes());
    Address(bytes)
}

fn requests() -> Vec<(&'static str, String, usize)> {
    let user = format!("user=0x{}00000000", "ad".repeat(16));
    let market = format!("market=0x00000000{}", "cc".repeat(28));
    vec![
        ("positions", format!("/positions?{user}"), 100),
        ("positions by title, 500", format!("/positions?{user}&limit=500&sortBy=TITLE"), 500),
        ("positions with a title", format!("/positions?{user}&title=thousand+things"), 100),
        ("activity", format!("/activity?{user}"), 100),
        ("activity, 500 from 10000", format!("/activity?{user}&limit=500&offset=10000"), 500),
        ("activity of trades", format!("/activity?{user}&type=TRADE"), 100),
        ("activity by cash", format!("/activity?{user}&sortBy=CASH"), 100),
        ("trades", format!("/trades?{user}"), 100),
        ("holders of 10000", format!("/holders?{market}"), 100),
        ("value", format!("/value?{user}"), 1),
    ]
}

fn answers(criterion: &mut Criterion) {
    let mut exchange = Exchange::busy();
    let mut out = Vec::new();
    for (name, target, rows) in requests() {
        exchange.get(&target, &mut out);
        let row = if name.starts_with("value") { &b"\"value\""[..] } else { b"\"proxyWallet\"" };
        let found = out.windows(row.len()).filter(|window| *window == row).count();
        assert_eq!(found, rows, "{name}");
        percentiles(name, (0..SAMPLES).map(|_| exchange.timed(&target, &mut out)).collect());
    }
    for (name, target, _) in requests() {
        criterion.bench_function(&format!("wallets/{name}"), |bencher| {
            bencher.iter(|| exchange.get(black_box(&target), &mut out));
        });
    }
    // Last, as every change is a row of activity more.
    for (name, target, _) in requests().into_iter().filter(|(name, ..)| name.starts_with("positions")) {
        let took = (0..CHANGED_SAMPLES).map(|_| {
            (0..MARKETS).map(MarketNo).for_each(|market| exchange.splits(BUSY, market, 1));
            exchange.timed(&target, &mut out)
        });
        percentiles(&format!("{name}, after a change in each market"), took.collect());
    }
}

/// Prints and notes the median and the 99th percentile.
fn percentiles(name: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let [median, high] = [50, 99].map(|percent| took[took.len() * percent / 100]);
    eprintln!("{name:<56} p50 {median:>9.1?}  p99 {high:>9.1?}");
    for (quantile, took) in [("p50", median), ("p99", high)] {
        figures::note(format!("{name}, {quantile}"), took.as_secs_f64() * 1e6, figures::Unit::Us);
    }
}

/// A page of the newest rows: cut straight out, and naively after sorting all rows.
fn pages(criterion: &mut Criterion) {
    let mut wallets = Wallets::new();
    for row in 0..ROWS {
        let (time, act) = (TimeMs(row), Act::Credit(Collateral(row)));
        wallets.follow(&Entry { position: Position(64 * row), time, wallet: BUSY, act });
    }
    let page = |rows: Vec<u64>| assert_eq!(rows, (ROWS - 200..ROWS - 100).rev().collect::<Vec<_>>());
    let mut group = criterion.benchmark_group("page");
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| {
            let rows = wallets.activity().of_wallet(black_box(BUSY)).rev().skip(100).take(100);
            page(rows.map(|row| row.time.0).collect());
        });
    });
    group.bench_function("naive", |bencher| {
        bencher.iter(|| {
            let mut rows: Vec<_> = wallets.activity().of_wallet(black_box(BUSY)).collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row.time));
            page(rows[100..200].iter().map(|row| row.time.0).collect());
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = pages, answers
}
criterion_main!(benches);
