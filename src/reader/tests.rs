//! A small exchange made of records, and requests to it as a client would send them.
//!
//! After every record the indices are compared with what follows from the ledger alone.

mod account;
mod books;
mod catalog;
mod damage;
mod feed;
mod leaderboard;
mod lists;
mod real;
mod refusals;
mod search;
mod unreadable;
mod wallets;
mod whole;

use super::levels::Levels;
use super::*;
use crate::domain::{
    Collateral, ConditionId, FeeSchedule, Mode, OrderFields, OrderId, OrderType, Price, SelfTrade, Shares,
    Side, SignatureType, Tick, TokenId, WalletKind,
};
use crate::http::route::HostPrefixes;
use crate::http::{Method, route};
use crate::journal::layout::{
    ActKind, EventText, Fill, MarketAdded, MatchKind, Money, MoneyDirection, OrderPlaced, OrdersRemoved,
    PlacedResult, PositionAct, RemovalReason, WalletAdded,
};
use crate::journal::{Base, Snapshots};
use crate::ledger::{OrderStamp, Signed, archived_again};
use crate::wallet::Kind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const ALICE: WalletNo = WalletNo(0);
const BOB: WalletNo = WalletNo(1);
const ALICES_SAFE: WalletNo = WalletNo(2);
const BOBS_DEPOSIT: WalletNo = WalletNo(3);
const CAROL: WalletNo = WalletNo(4);
const CAROLS_PROXY: WalletNo = WalletNo(5);

const RAIN: MarketNo = MarketNo(0);
const SNOW: MarketNo = MarketNo(1);

/// The tokens are 300, 301 (rain) and 310, 311 (snow).
const RAIN_YES: &str = "300";
const RAIN_NO: &str = "301";

/// One share, in millionths.
const SHARE: u64 = 1_000_000;

/// Every order is this many milliseconds after the last record.
const STEP_MS: u64 = 1_000;

/// Records after which `kept` is remade from a snapshot of itself, plus an eighth of all records:
/// long histories are kept less often than short ones.
const KEPT_EVERY: u64 = 7;

/// Orders that `shedding` compares with its archive after each record.
const SHED_AT_ONCE: usize = 2;

/// An exchange with six wallets, two markets and an event.
struct Exchange {
    reader: Reader,
    /// Restored from a snapshot some records ago and following since: it must answer alike.
    kept: Reader,
    /// Following from the first record, and forgetting what archives take over: it must answer
    /// alike.
    shedding: Reader,
    /// Gets each archive before the records that it holds, and follows after that: it must answer alike.
    late: Reader,
    unseen: Vec<(Position, Position, Record)>,
    kept_at: u64,
    directory: tempfile::TempDir,
    base: Base,
    next: u64,
    now: u64,
}

/// The stamps of all that was signed, in memory or archived, by position.
fn stamps(ledger: &Ledger) -> BTreeMap<Position, Signed<OrderStamp>> {
    let position = |stamp: Signed<OrderStamp>| match stamp {
        Signed::Order(order) => (order.position, stamp),
        Signed::Act(act) => (act.position, stamp),
    };
    let mut found: BTreeMap<_, _> = ledger.stamps().map(position).collect();
    let archived = ledger.archived_stamps(|_| true, |stamps| found.extend(stamps.into_iter().map(position)));
    archived.expect("readable");
    found
}

impl Exchange {
    fn opened_settings() -> Settings {
        Settings {
            keccak: |bytes| {
                let mut hash = [7; 32];
                hash[..bytes.len()].copy_from_slice(bytes);
                hash
            },
            price_side: PriceSide::Taker,
            exchanges: vec![Address([0xee; 20])],
            builder_share_bps: 0,
            wallet: WalletSettings::default(),
        }
    }

    fn opened() -> Self {
        let settings = Self::opened_settings();
        let [reader, kept, shedding, late] = [(); 4].map(|()| Reader::new(settings.clone()));
        let directory = tempfile::tempdir().expect("a directory");
        let mut exchange = Self {
            reader,
            kept,
            shedding,
            late,
            unseen: Vec::new(),
            kept_at: 0,
            directory,
            base: Base::first(),
            next: 0,
            now: 1_703_875_200_000,
        };
        for (wallet, kind, principal) in [
            (ALICE, WalletKind::Eoa, ALICE),
            (BOB, WalletKind::Eoa, BOB),
            (ALICES_SAFE, WalletKind::Safe, ALICE),
            (BOBS_DEPOSIT, WalletKind::Deposit, BOB),
            (CAROL, WalletKind::Eoa, CAROL),
            (CAROLS_PROXY, WalletKind::Proxy, CAROL),
        ] {
            let time = exchange.time();
            let address = address(wallet);
            exchange.says(WalletAdded { time, wallet, address, kind, principal: Some(principal) });
            exchange.says(Money {
                time,
                wallet,
                direction: MoneyDirection::Credit,
                amount: Collateral(1_000 * SHARE),
                reference: format!("opening {}", wallet.0),
            });
        }
        let text = r#"{"id":"77","slug":"weather","title":"Weather","ticker":"wx","description":"All of it",
                       "tags":[{"label":"Sky"}]}"#;
        exchange.says(EventText { time: TimeMs(1), event: 0, text: text.into() });
        exchange.open_market(
            RAIN,
            r#"{"question":"Will it rain?","slug":"rain","description":"Drops","endDate":"2025-12-31T12:00:00Z",
                "outcomePrices":"[\"0.2\",\"0.8\"]","icon":"i.png","image":"p.png","active":true,
                "clobTokenIds":["300","301"]}"#,
        );
        exchange.open_market(
            SNOW,
            r#"{"question":"Will it snow?","slug":"snow","rewardsMinSize":20,"rewardsMaxSpread":3.5,
                "clobRewards":[{"assetAddress":"0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174","rewardsDailyRate":30}]}"#,
        );
        exchange
    }

    fn time(&self) -> TimeMs {
        TimeMs(self.now)
    }

    fn open_market(&mut self, market: MarketNo, text: &str) {
        let added = self.market_added(market, text);
        self.says(added);
    }

    /// The record by which an open market is added.
    fn market_added(&self, market: MarketNo, text: &str) -> MarketAdded {
        let number = u8::try_from(market.0 % 200).expect("small");
        let token = |outcome: u32| {
            let mut id = [0; 32];
            id[28..].copy_from_slice(&(300 + 10 * market.0 + outcome).to_be_bytes());
            TokenId(id)
        };
        let mut condition = [0xcc; 32];
        condition[..4].copy_from_slice(&market.0.to_be_bytes());
        MarketAdded {
            time: self.time(),
            market,
            event: (market == RAIN).then_some(0),
            shard_key: market.0,
            market_id: 1_000 + u64::from(market.0),
            condition: ConditionId(condition),
            question: Word([number; 32]),
            tokens: [token(0), token(1)],
            labels: vec!["Yes".into(), "No".into()],
            neg_risk: market == SNOW,
            tick: Tick::new(100).expect("a tick"),
            min_size: Shares(5 * SHARE),
            fee: FeeSchedule { rate: 44_100, ..FeeSchedule::FREE },
            mode: Mode::Open,
            payout: None,
            text: text.into(),
        }
    }

    #[track_caller]
    fn says(&mut self, record: impl Into<Record>) -> Position {
        let start = Position(self.next);
        self.next += 64;
        let record = record.into();
        self.reader.apply(start, Position(self.next), &record).expect("the record is possible");
        self.kept.apply(start, Position(self.next), &record).expect("the record is possible");
        self.shedding.apply(start, Position(self.next), &record).expect("the record is possible");
        self.shedding.shed(SHED_AT_ONCE);
        self.unseen.push((start, Position(self.next), record));
        self.reader.ledger.conserved().expect("money is conserved");
        self.check_indices();
        self.check_wallets();
        let frames = self.next / 64;
        if self.kept_at + KEPT_EVERY + frames / 8 <= frames {
            self.kept_at = frames;
            self.keep();
        }
        start
    }

    /// Sends `kept` through a snapshot of its own: what is over goes to the archive, the rest
    /// into sections and back.
    #[track_caller]
    fn keep(&mut self) {
        let sections = |reader: &Reader| {
            let mut sections = Vec::new();
            reader.keep(&mut sections);
            sections
        };
        // What is in the archive is in no section, nor counted in one.
        let state = |reader: &Reader| {
            let mut sections = sections(reader);
            sections.retain(|(name, _)| ![*b"orders  ", *b"acts    ", *b"sums    "].contains(name));
            sections
        };
        assert_eq!(state(&self.kept), state(&self.reader), "what followed from a snapshot is the same state");
        let snapshots = Snapshots::alone(self.directory.path());
        let over = self.kept.ledger.over();
        self.base.position = Position(self.next);
        snapshots.archive(&mut self.base, over, archived_again).expect("written");
        self.kept.forget_over();
        let kept = sections(&self.kept);
        self.kept = Reader::new(self.reader.settings.clone());
        let archive = snapshots.archive_of(&self.base, self.shedding.ledger.archive()).expect("just written");
        let memory_before = self.shedding.ledger.orders_in_memory();
        self.shedding.set_archive(archive.clone());
        self.shedding.shed(SHED_AT_ONCE);
        assert!(memory_before <= self.shedding.ledger.orders_in_memory() + SHED_AT_ONCE, "few at a time");
        self.late.set_archive_at(Position(self.next), archive.clone());
        for (start, end, record) in self.unseen.drain(..) {
            self.late.apply(start, end, &record).expect("an archive that is ahead is not looked into");
        }
        self.late.shed(usize::MAX);
        self.kept.set_archive(archive);
        for (name, bytes) in &kept {
            self.kept.take_section(*name, bytes).expect("a section");
        }
        self.kept.complete().expect("whole");
        assert_eq!(sections(&self.kept), kept, "what was kept is kept alike");
        assert_eq!(self.kept.ledger.state_hash(), self.reader.ledger.state_hash());
        assert_eq!(self.kept.ledger.recounted_hash(), self.reader.ledger.state_hash());
        for other in [&self.kept, &self.shedding, &self.late] {
            assert_eq!(other.ledger.orders_ever(), self.reader.ledger.orders_ever());
            assert_eq!(stamps(&other.ledger), stamps(&self.reader.ledger));
            for row in self.reader.ledger.orders() {
                assert_eq!(other.ledger.find_at(row.position).expect("readable").as_deref(), Some(row));
                assert_eq!(other.ledger.find(&row.id).expect("readable").as_deref(), Some(row));
            }
        }
    }

    /// Compares the indices with what follows from the ledger.
    #[track_caller]
    fn check_indices(&self) {
        let ledger = self.reader.ledger();
        for market in ledger.markets() {
            let mut levels = Levels::default();
            for row in ledger.live_orders(market.market) {
                levels.add(row.outcome, row.fields.side, row.price, row.open);
            }
            assert_eq!(self.reader.index.market(market.market).levels, levels);
        }
        let restricted =
            ledger.markets().iter().filter(|row| matches!(row.mode, Mode::PostOnly | Mode::CancelOnly));
        assert!(restricted.map(|row| &row.market).eq(self.reader.index.restricted()));
        let followed = self.reader.index.catalog();
        let made = super::index::catalog_of(ledger);
        assert_eq!((followed.events(), followed.markets()), (made.events(), made.markets()));
        for wallet in ledger.wallets() {
            let of = |row: &&OrderRow| row.principal == wallet.wallet && row.is_live();
            let live: BTreeSet<_> = ledger.orders().filter(of).map(|row| row.position).collect();
            let index = self.reader.index.principal(wallet.wallet).expect("every wallet has a row");
            assert_eq!(index.live, live);
            let own = ledger.orders().filter(|row| row.principal == wallet.wallet);
            let trades: BTreeSet<_> = own.flat_map(|row| row.trades.iter().copied()).collect();
            let indexed = index.trades.iter().map(|&trade| self.reader.index.trade(trade).position);
            assert!(indexed.eq(trades), "each once, in order");
        }
    }

    /// Checks that wallets hold what the ledger says, and that their money follows from what they
    /// did.
    #[track_caller]
    fn check_wallets(&self) {
        let (ledger, model) = (self.reader.ledger(), self.reader.model());
        for wallet in ledger.wallets() {
            for market in ledger.markets() {
                let held = ledger.holding(wallet.wallet, market.market);
                let lots = model.holdings().of(wallet.wallet, market.market).map(|row| row.lots);
                assert_eq!(lots.map_or([Shares::ZERO; 2], |lots| lots.map(|lot| lot.shares)), held);
            }
            let came_in = |row: &crate::wallet::Row| match (row.kind, row.side) {
                (Kind::Trade, Side::Sell) | (Kind::Merge | Kind::Redeem | Kind::Deposit, _) => true,
                (Kind::Trade, Side::Buy) | (Kind::Split | Kind::Withdrawal, _) => false,
            };
            let cash: i128 = model
                .activity()
                .of_wallet(wallet.wallet)
                .map(|row| if came_in(row) { i128::from(row.cash.0) } else { -i128::from(row.cash.0) })
                .sum();
            assert_eq!(cash, i128::from(wallet.cell.0), "nothing is set aside in these tests");
        }
    }

    /// An order of `wallet` for `shares` at `cents`, without any fill yet.
    fn order(
        &mut self,
        wallet: WalletNo,
        side: Side,
        outcome: Outcome,
        cents: u16,
        shares: u64,
    ) -> OrderPlaced {
        self.now += STEP_MS;
        let (collateral, shares) = (u64::from(cents) * shares * SHARE / 100, shares * SHARE);
        let (maker_amount, taker_amount) = match side {
            Side::Buy => (collateral, shares),
            Side::Sell => (shares, collateral),
        };
        let principal = self.reader.ledger.wallet(wallet).and_then(|row| row.principal).expect("an owner");
        let mut id = [0xab; 32];
        id[..8].copy_from_slice(&self.next.to_be_bytes());
        OrderPlaced {
            time: self.time(),
            market: RAIN,
            outcome,
            wallet,
            principal,
            id: OrderId(id),
            fields: OrderFields {
                salt: Word::ZERO,
                maker: address(wallet),
                signer: address(principal),
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
            owner: key(principal),
            price: Price::new(cents * 100).expect("in range"),
            result: PlacedResult::Rests,
            stopped: None,
            open: Shares(shares),
            reserved: Collateral::ZERO,
            fills: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// Places an order that rests.
    fn rests(&mut self, wallet: WalletNo, side: Side, outcome: Outcome, cents: u16, shares: u64) -> Position {
        let order = self.order(wallet, side, outcome, cents, shares);
        self.says(order)
    }

    /// Places `taker`, filled with shares of these makers; what is left of it rests.
    fn fills(&mut self, taker: OrderPlaced, makers: &[(Position, u64)]) -> Position {
        let taker = self.filled(taker, makers);
        self.says(taker)
    }

    /// `taker`, filled with shares of these makers.
    fn filled(&self, mut taker: OrderPlaced, makers: &[(Position, u64)]) -> OrderPlaced {
        for &(maker, shares) in makers {
            let row = self.reader.ledger.order_at(maker).expect("a maker");
            let shares = shares * SHARE;
            let maker_leg = row.price.cost_floor(Shares(shares));
            let kind = match (taker.outcome == row.outcome, taker.fields.side) {
                (true, _) => MatchKind::Transfer,
                (false, Side::Buy) => MatchKind::Mint,
                (false, Side::Sell) => MatchKind::Merge,
            };
            let transfer = kind == MatchKind::Transfer;
            taker.fills.push(Fill {
                maker,
                shares: Shares(shares),
                maker_leg,
                taker_leg: if transfer { maker_leg } else { Collateral(shares) - maker_leg },
                maker_fee: Collateral::ZERO,
                taker_fee: Collateral::ZERO,
                kind,
                price: row.price,
            });
            taker.open -= Shares(shares);
        }
        if taker.open.is_zero() {
            taker.result = PlacedResult::Filled;
        }
        taker
    }

    /// Splits collateral into `pairs` pairs of rain's shares for `wallet`.
    fn splits(&mut self, wallet: WalletNo, pairs: u64) {
        self.splits_in(RAIN, wallet, pairs);
    }

    fn splits_in(&mut self, market: MarketNo, wallet: WalletNo, pairs: u64) {
        let mut id = [0x51; 32];
        id[..8].copy_from_slice(&self.next.to_be_bytes());
        self.says(PositionAct {
            time: self.time(),
            act: ActKind::Split,
            wallet,
            market,
            shares: [Shares(pairs * SHARE); 2],
            collateral: Collateral(pairs * SHARE),
            id: OrderId(id),
            salt: Word::ZERO,
            timestamp_ms: self.now,
            signature: Vec::new(),
            removed: Vec::new(),
        });
    }

    fn cancels(&mut self, orders: &[Position]) {
        let time = self.time();
        self.says(OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: orders.to_vec() });
    }

    /// Sends `METHOD /path?query`, with a body unless it is a GET.
    #[track_caller]
    fn sends(&mut self, caller: impl Into<Option<Caller>>, line: &str, body: &str) -> (u16, String) {
        let (method, target) = line.split_once(' ').expect("METHOD target");
        let method = if method == "GET" { Method::Get } else { Method::Post };
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let query = Query::new(query);
        let found = route::route(method, None, path, query, HostPrefixes::Off).expect("a route");
        let request = ReadRequest {
            endpoint: found.endpoint,
            capture: found.capture,
            query,
            body: body.as_bytes(),
            caller: caller.into(),
            now: TimeMs(self.now),
        };
        let mut out = b"head".to_vec();
        let status = self.reader.answer(&request, &mut out);
        let text = String::from_utf8(out.split_off(4)).expect("UTF-8");
        assert_eq!(out, b"head", "an answer is appended");
        for other in [&mut self.kept, &mut self.shedding] {
            out.clear();
            other.settings = self.reader.settings.clone();
            let other_status = other.answer(&request, &mut out);
            let other_text = std::str::from_utf8(&out).expect("UTF-8");
            assert_eq!((other_status, other_text), (status, text.as_str()), "{line}: all answer alike");
        }
        (status, text)
    }

    /// The answer to a public GET that succeeds.
    #[track_caller]
    fn reads(&mut self, target: &str) -> Value {
        self.answers(None, &format!("GET {target}"), "")
    }

    /// The answer to a request of `caller` that succeeds.
    #[track_caller]
    fn answers(&mut self, caller: impl Into<Option<Caller>>, line: &str, body: &str) -> Value {
        let (status, text) = self.sends(caller, line, body);
        assert_eq!(status, 200, "{line}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Every row of a list, page by page, and how many pages there were.
    fn lists(
        &mut self,
        caller: Option<Caller>,
        target: &str,
        mut between: impl FnMut(&mut Self),
    ) -> (Vec<Value>, usize) {
        let joint = if target.contains('?') { '&' } else { '?' };
        let (mut rows, mut pages, mut cursor) = (Vec::new(), 0, "MA==".to_owned());
        while !["", "LTE="].contains(&cursor.as_str()) {
            let page = self.answers(caller, &format!("GET {target}{joint}next_cursor={cursor}"), "");
            let data = page["data"].as_array().expect("rows");
            assert_eq!(page["count"], data.len());
            rows.extend(data.iter().cloned());
            cursor = page["next_cursor"].as_str().expect("a cursor").to_owned();
            pages += 1;
            between(self);
        }
        (rows, pages)
    }
}

fn address(wallet: WalletNo) -> Address {
    let mut bytes = [0xad; 20];
    bytes[16..].copy_from_slice(&wallet.0.to_be_bytes());
    Address(bytes)
}

fn address_text(wallet: WalletNo) -> String {
    format!("0x{}{:08x}", "ad".repeat(16), wallet.0)
}

fn condition_text(market: MarketNo) -> String {
    format!("0x{:08x}{}", market.0, "cc".repeat(28))
}

fn hex_text(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    crate::json::name::push_hex(&mut text, bytes);
    String::from_utf8(text).expect("ASCII")
}

fn uuid_text(id: ApiKey) -> String {
    let mut text = Vec::new();
    crate::json::name::push_uuid(&mut text, id);
    String::from_utf8(text).expect("ASCII")
}

fn key(principal: WalletNo) -> ApiKey {
    ApiKey([u8::try_from(principal.0).expect("small"); 16])
}

fn caller(principal: WalletNo, dialect: Dialect) -> Caller {
    Caller { principal, key: key(principal), dialect }
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn column<'a>(rows: &'a [Value], name: &str) -> Vec<&'a str> {
    rows.iter().map(|row| row[name].as_str().expect("a text")).collect()
}
