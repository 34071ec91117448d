//! Real rows: what a strict client expects of positions, and 286,192 activity rows of 173 wallets,
//! which drive the wallets' read model and are compared with plain sums over the rows.
//!
//! The histories are cut. So where a row gives away shares that no row brought, an opening balance
//! without cost comes right before it. Rows do not say which outcome a redeem took. One that pays
//! takes the outcome with that number of shares, or the nearest; one that pays nothing takes all
//! shares of the larger outcome. Types that are not acts here (rewards, yield, rebates,
//! conversions) arrive as the operator's money: they are in the lists and in no position. The file
//! is beside the repository (`../shared`); without it the test is skipped, except in CI.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has to stop")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rows' numbers are small")]
#![allow(clippy::cast_precision_loss, reason = "the rows' numbers are small")]

mod common;

use common::shared::shared;
use outcry::domain::{Collateral, MarketNo, Outcome, Payout, Position, Shares, Side, TimeMs, WalletNo};
use outcry::wallet::{Act, Entry, Kind, Role, Trade, Wallets, rounded};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const FILE: &str = "data/wallet-activity-194/activity.jsonl.xz";
const ROWS: usize = 286_192;
const WALLETS: usize = 173;

/// Positions as a strict client's own tests have them.
const POSITIONS: &str = "data/polymarket-fixtures/data_api_positions_response.json";

/// Rows of a page.
const PAGE: usize = 500;

/// Atto-units in a millionth.
const ATTO: i128 = 1_000_000_000_000;

/// A row of the file. Amounts are millionths, to the nearest.
struct Row {
    time: u64,
    wallet: WalletNo,
    market: MarketNo,
    kind: String,
    side: Side,
    outcome: usize,
    size: u64,
    cash: u64,
    price: u32,
}

/// Numbers for names, in order of appearance.
#[derive(Default)]
struct Numbers(HashMap<String, u32>);

impl Numbers {
    fn of(&mut self, name: &Value) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap();
        *self.0.entry(name.as_str().unwrap().to_owned()).or_insert(next)
    }
}

/// The file's rows, oldest first; it is unpacked by the `xz` command.
fn read(file: &Path) -> (Vec<Row>, usize) {
    let unpack =
        Command::new("xz").args(["--decompress", "--stdout"]).arg(file).stdout(Stdio::piped()).spawn();
    let mut unpack = unpack.expect("xz is installed (package xz-utils)");
    let (mut wallets, mut markets) = (Numbers::default(), Numbers::default());
    let mut rows: Vec<Row> = BufReader::new(unpack.stdout.take().unwrap())
        .lines()
        .map(|line| row(&serde_json::from_str(&line.unwrap()).unwrap(), &mut wallets, &mut markets))
        .collect();
    assert!(unpack.wait().unwrap().success(), "xz");
    // Each wallet's rows are newest first in the file, also within a second.
    rows.reverse();
    rows.sort_by_key(|row| row.time);
    (rows, wallets.0.len())
}

fn row(row: &Value, wallets: &mut Numbers, markets: &mut Numbers) -> Row {
    let millionths = |name: &str| (row[name].as_f64().unwrap() * 1e6).round() as u64;
    Row {
        time: row["timestamp"].as_u64().unwrap(),
        wallet: WalletNo(wallets.of(&row["proxyWallet"])),
        market: MarketNo(markets.of(&row["conditionId"])),
        kind: row["type"].as_str().unwrap().to_owned(),
        side: if row["side"] == "SELL" { Side::Sell } else { Side::Buy },
        outcome: row["outcomeIndex"].as_u64().unwrap() as usize,
        size: millionths("size"),
        cash: millionths("usdcSize"),
        price: millionths("price") as u32,
    }
}

/// What one wallet did in one market, as plain sums.
#[derive(Default)]
struct Sums {
    shares: [u64; 2],
    /// Millionths paid less millionths received.
    paid: i128,
}

/// The model, the sums, and how many entries are openings.
#[derive(Default)]
struct Drive {
    wallets: Wallets,
    sums: BTreeMap<(WalletNo, MarketNo), Sums>,
    entries: u64,
    openings: BTreeMap<WalletNo, usize>,
}

impl Drive {
    fn tell(&mut self, row: &Row, act: Act) {
        let entry = Entry {
            position: Position(64 * self.entries),
            time: TimeMs::from_seconds(row.time),
            wallet: row.wallet,
            act,
        };
        self.entries += 1;
        self.wallets.follow(&entry);
    }

    /// Makes sure that the wallet has these shares.
    fn open(&mut self, row: &Row, needed: [u64; 2]) {
        for (index, outcome) in [Outcome::Zero, Outcome::One].into_iter().enumerate() {
            let sums = self.sums.entry((row.wallet, row.market)).or_default();
            let missing = needed[index].saturating_sub(sums.shares[index]);
            if missing > 0 {
                sums.shares[index] += missing;
                *self.openings.entry(row.wallet).or_default() += 1;
                self.tell(row, Act::Traded(trade(row, Side::Buy, outcome, missing, 0)));
            }
        }
    }

    fn follow(&mut self, row: &Row) {
        let market = row.market;
        match row.kind.as_str() {
            "TRADE" => self.trade(row),
            "SPLIT" => {
                let sums = self.sums.entry((row.wallet, market)).or_default();
                sums.shares = sums.shares.map(|shares| shares + row.size);
                sums.paid += i128::from(row.size);
                self.tell(row, Act::Split { market, pairs: Shares(row.size) });
            }
            "MERGE" => {
                self.open(row, [row.size; 2]);
                let sums = self.sums.entry((row.wallet, market)).or_default();
                sums.shares = sums.shares.map(|shares| shares - row.size);
                sums.paid -= i128::from(row.size);
                self.tell(row, Act::Merge { market, pairs: Shares(row.size) });
            }
            "REDEEM" => self.redeem(row),
            _ => self.tell(row, Act::Credit(Collateral(row.cash))),
        }
    }

    fn trade(&mut self, row: &Row) {
        let outcome = [Outcome::Zero, Outcome::One][row.outcome];
        let mut needed = [0; 2];
        needed[row.outcome] = row.size;
        if row.side == Side::Sell {
            self.open(row, needed);
        }
        let sums = self.sums.entry((row.wallet, row.market)).or_default();
        let (shares, cash) = (&mut sums.shares[row.outcome], i128::from(row.cash));
        (*shares, sums.paid) = match row.side {
            Side::Buy => (*shares + row.size, sums.paid + cash),
            Side::Sell => (*shares - row.size, sums.paid - cash),
        };
        self.tell(row, Act::Traded(trade(row, row.side, outcome, row.size, row.cash)));
    }

    fn redeem(&mut self, row: &Row) {
        let held = self.sums.entry((row.wallet, row.market)).or_default().shares;
        let paying = |side: usize| held[side].abs_diff(row.size);
        let side = match row.size {
            0 => usize::from(held[1] > held[0]),
            _ => usize::from(paying(1) < paying(0)),
        };
        let mut shares = [0; 2];
        shares[side] = if row.size == 0 { held[side] } else { row.size };
        self.open(row, shares);
        let sums = self.sums.entry((row.wallet, row.market)).or_default();
        sums.shares[side] -= shares[side];
        sums.paid -= i128::from(row.size);
        let wins_zero = (side == 0) == (row.size > 0);
        let payout = Payout::new(if wins_zero { 1_000_000 } else { 0 }).unwrap();
        let (shares, paid) = (shares.map(Shares), Collateral(row.size));
        self.tell(row, Act::Redeem { market: row.market, shares, payout, paid });
    }
}

fn trade(row: &Row, side: Side, outcome: Outcome, shares: u64, cash: u64) -> Trade {
    Trade {
        market: row.market,
        outcome,
        side,
        role: Role::Taker,
        shares: Shares(shares),
        leg: Collateral(cash),
        fee: Collateral::ZERO,
        price_millionths: row.price,
    }
}

#[test]
fn real_histories_come_to_the_sums_of_their_rows() {
    let Some(file) = shared(FILE) else { return };
    let (rows, wallets) = read(&file);
    assert_eq!((rows.len(), wallets), (ROWS, WALLETS));
    let mut drive = Drive::default();
    for row in &rows {
        drive.follow(row);
    }

    for (&(wallet, market), sums) in &drive.sums {
        let lots = drive.wallets.holdings().of(wallet, market).unwrap().lots;
        assert_eq!(lots.map(|lot| lot.shares.0), sums.shares, "{wallet:?} {market:?}");
        let [zero, one] = lots.map(|lot| lot.cost.signed() - lot.realized);
        assert_eq!(zero + one, sums.paid * ATTO, "{wallet:?} {market:?}");
        for lot in lots {
            assert_eq!(lot.is_open(), lot.shares.0 > 0);
            assert!(lot.is_open() || lot.cost.0 == 0, "nothing costs something");
        }
    }
    check_lists(&drive, &rows);
    eprintln!(
        "{} wallets in markets, {} openings, {} rows",
        drive.sums.len(),
        drive.openings.values().sum::<usize>(),
        drive.entries
    );
}

/// Every wallet's pages hold each of its rows once, newest first, and their sums are the file's.
fn check_lists(drive: &Drive, rows: &[Row]) {
    let mut cash: BTreeMap<(WalletNo, bool), (usize, u64)> = BTreeMap::new();
    for row in rows {
        let sum = cash.entry((row.wallet, row.kind == "TRADE")).or_default();
        *sum = (sum.0 + 1, sum.1 + row.cash);
    }
    for wallet in (0..).map(WalletNo).take(WALLETS) {
        let activity = drive.wallets.activity();
        let (mut pages, mut sums) = (Vec::<&outcry::wallet::Row>::new(), [(0, 0); 2]);
        loop {
            let page: Vec<_> = activity.of_wallet(wallet).rev().skip(pages.len()).take(PAGE).collect();
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        assert!(
            pages.is_sorted_by(|newer, older| newer.position > older.position),
            "each once, newest first"
        );
        for row in pages {
            assert_eq!(row.wallet, wallet);
            let sum = &mut sums[usize::from(row.kind == Kind::Trade)];
            *sum = (sum.0 + 1, sum.1 + row.cash.0);
        }
        let mut expected =
            [false, true].map(|trades| cash.get(&(wallet, trades)).copied().unwrap_or_default());
        expected[1].0 += drive.openings.get(&wallet).copied().unwrap_or(0);
        assert_eq!(sums, expected, "{wallet:?}");
    }
}

/// The client's rows have two decimals. Its closed row is measured against the cost of the shares,
/// ours against the shares, so only the numbers of open rows are compared.
#[test]
fn open_positions_are_those_that_a_strict_client_expects() {
    let Some(file) = shared(POSITIONS) else { return };
    let rows: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for (number, row) in rows.as_array().unwrap().iter().enumerate() {
        let millionths = |name: &str| (row[name].as_f64().unwrap() * 1e6).round() as u64;
        let (wallet, market) = (WalletNo(0), MarketNo(number as u32));
        let size = millionths("size");
        let leg = Collateral(
            (row["size"].as_f64().unwrap() * row["avgPrice"].as_f64().unwrap() * 1e6).round() as u64,
        );
        let trade = Trade {
            market,
            outcome: Outcome::Zero,
            side: Side::Buy,
            role: Role::Taker,
            shares: Shares(size),
            leg,
            fee: Collateral::ZERO,
            price_millionths: millionths("avgPrice") as u32,
        };
        let mut wallets = Wallets::new();
        wallets.follow(&Entry { position: Position(0), time: TimeMs(1), wallet, act: Act::Traded(trade) });
        let lot = wallets.holdings().of(wallet, market).unwrap().lots[0];
        let figures = lot.open_figures(millionths("curPrice") as u32);
        let near = |name: &str, shown: i128, places: i32| {
            let (shown, wanted) = (shown as f64 / 10_f64.powi(places), row[name].as_f64().unwrap());
            assert!((shown - wanted).abs() < 0.006, "{name}: {shown}, not {wanted}");
        };
        near("size", i128::from(figures.size.0), 6);
        near("initialValue", rounded(figures.initial, 4), 4);
        near("currentValue", rounded(figures.current, 4), 4);
        near("cashPnl", rounded(figures.cash_pnl, 4), 4);
        near("percentPnl", figures.percent_pnl(4), 4);
        if size > 0 {
            near("avgPrice", rounded(figures.average, 4), 4);
            near("totalBought", i128::try_from(figures.bought).unwrap(), 6);
        }
    }
}
