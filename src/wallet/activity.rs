//! Everything that happened, in flat rows.
//!
//! A row is 48 bytes and names nothing by text: titles, hashes and addresses are looked up when it
//! is shown. Rows are in the order of the log, which is also the order of their times, so that
//! "newest first" counts from the end and a span of time is two binary searches.

use super::holdings::list;
use super::{Act, Entry};
use crate::domain::byte::byte_enum;
use crate::domain::{Collateral, MarketNo, Outcome, Position, Shares, Side, TimeMs, WalletNo};
use crate::memory::wire::{Damage, bytes, structs};
use std::ops::Range;

byte_enum! {
    /// What a row is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// Bought or sold.
        Trade = 0,
        /// Collateral became pairs.
        Split = 1,
        /// Pairs became collateral.
        Merge = 2,
        /// Shares became their payout.
        Redeem = 3,
        /// The operator's credit.
        Deposit = 4,
        /// The operator's debit.
        Withdrawal = 5,
    }
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Trade, Self::Split, Self::Merge, Self::Redeem, Self::Deposit, Self::Withdrawal];

    /// The word that clients know.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Trade => "TRADE",
            Self::Split => "SPLIT",
            Self::Merge => "MERGE",
            Self::Redeem => "REDEEM",
            Self::Deposit => "DEPOSIT",
            Self::Withdrawal => "WITHDRAWAL",
        }
    }
}

byte_enum! {
    /// A wallet's part in a trade.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Role {
        /// Its order arrived.
        Taker = 0,
        /// Its order rested.
        Maker = 1,
    }
}

/// One act of one wallet, as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The frame that said so.
    pub position: Position,
    /// When.
    pub time: TimeMs,
    /// Shares traded; for any other kind the same number as `cash`.
    pub shares: Shares,
    /// Collateral that the wallet paid or got, with fees.
    pub cash: Collateral,
    /// The wallet.
    pub wallet: WalletNo,
    /// The market; [`Row::NO_MARKET`] for the operator's money.
    market: MarketNo,
    /// The mean price in millionths: that of a trade, one half for a split, else 0.
    pub price_millionths: u32,
    /// What it is about.
    pub kind: Kind,
    /// The token; only a trade has one.
    pub outcome: Outcome,
    /// Bought or sold; only in a trade.
    pub side: Side,
    /// Arrived or rested; only in a trade.
    pub role: Role,
}

const _: () = assert!(size_of::<Row>() == 48, "a million rows are 48 MB");

bytes!(Kind, Role);
structs! {
    Row {
        position, time, shares, cash, wallet, market, price_millionths, kind, outcome, side, role
    }
}

/// The price that one side of a split shows.
const HALF: u32 = 500_000;

impl Row {
    /// The sentinel for no market.
    const NO_MARKET: MarketNo = MarketNo(u32::MAX);

    /// The market, if the row is about one.
    #[must_use]
    pub fn market(&self) -> Option<MarketNo> {
        (self.market != Self::NO_MARKET).then_some(self.market)
    }

    /// The row of an act.
    pub(super) fn of(entry: &Entry) -> Self {
        let plain = |kind, market, cash: u64| Self {
            position: entry.position,
            time: entry.time,
            shares: Shares(cash),
            cash: Collateral(cash),
            wallet: entry.wallet,
            market,
            price_millionths: 0,
            kind,
            outcome: Outcome::Zero,
            side: Side::Buy,
            role: Role::Taker,
        };
        match entry.act {
            Act::Traded(trade) => Self {
                shares: trade.shares,
                price_millionths: trade.price_millionths,
                outcome: trade.outcome,
                side: trade.side,
                role: trade.role,
                ..plain(Kind::Trade, trade.market, trade.cash().0)
            },
            Act::Split { market, pairs } => {
                Self { price_millionths: HALF, ..plain(Kind::Split, market, pairs.0) }
            }
            Act::Merge { market, pairs } => plain(Kind::Merge, market, pairs.0),
            Act::Redeem { market, paid, .. } => plain(Kind::Redeem, market, paid.0),
            Act::Credit(amount) => plain(Kind::Deposit, Self::NO_MARKET, amount.0),
            Act::Debit(amount) => plain(Kind::Withdrawal, Self::NO_MARKET, amount.0),
        }
    }
}

/// Every row, with the lists of each wallet's rows and each market's trades.
#[derive(Debug, Default)]
pub struct Activity {
    rows: Vec<Row>,
    by_wallet: Vec<Vec<u32>>,
    trades_by_market: Vec<Vec<u32>>,
}

/// Rows by their indices.
pub trait Rows<'a>: DoubleEndedIterator<Item = &'a Row> + ExactSizeIterator<Item = &'a Row> {}

impl<'a, I: DoubleEndedIterator<Item = &'a Row> + ExactSizeIterator<Item = &'a Row>> Rows<'a> for I {}

impl Activity {
    /// Every row, oldest first.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of `wallet`, oldest first.
    #[must_use]
    pub fn of_wallet(&self, wallet: WalletNo) -> impl Rows<'_> {
        self.listed(indices(&self.by_wallet, wallet.index()))
    }

    /// The places, among all rows, of what happened from second `start` to second `end`, both included.
    #[must_use]
    pub fn places(&self, start: u64, end: u64) -> Range<usize> {
        let before = |second: u64| self.rows.partition_point(|row| row.time.seconds() < second);
        let from = before(start);
        from..end.checked_add(1).map_or(self.rows.len(), before).max(from)
    }

    /// The place, among all rows, of one of them.
    ///
    /// # Panics
    ///
    /// If it is none of them.
    #[must_use]
    pub fn place_of(&self, row: &Row) -> usize {
        let of_frame = self.rows.partition_point(|other| other.position < row.position);
        let place = self.rows[of_frame..].iter().position(|other| std::ptr::eq(other, row));
        of_frame + place.expect("one of these rows")
    }

    /// The rows of `wallet` at these places among all rows, oldest first.
    #[must_use]
    pub fn of_wallet_at(&self, wallet: WalletNo, places: Range<usize>) -> impl Rows<'_> {
        self.listed(cut(indices(&self.by_wallet, wallet.index()), places))
    }

    /// The trades of `market` at these places among all rows, takers and makers, oldest first.
    #[must_use]
    pub fn trades_at(&self, market: MarketNo, places: Range<usize>) -> impl Rows<'_> {
        self.listed(cut(indices(&self.trades_by_market, market.index()), places))
    }

    /// The trades of `market`, takers and makers, oldest first.
    #[must_use]
    pub fn trades_of(&self, market: MarketNo) -> impl Rows<'_> {
        self.listed(indices(&self.trades_by_market, market.index()))
    }

    fn listed<'a>(&'a self, indices: &'a [u32]) -> impl Rows<'a> {
        indices.iter().map(|&index| &self.rows[index as usize])
    }

    pub(super) fn push(&mut self, row: Row) {
        assert!(
            self.rows.last().is_none_or(|last| last.time <= row.time),
            "rows come in the order of their times"
        );
        self.rows.push(row);
        self.enlist(self.rows.len() - 1);
    }

    /// Takes the next row of a state that was kept; it is found after [`Self::complete`].
    pub(super) fn take(&mut self, row: Row) -> Result<(), Damage> {
        let is_money = matches!(row.kind, Kind::Deposit | Kind::Withdrawal);
        let in_order = |last: &Row| last.time <= row.time && last.position <= row.position;
        if is_money != row.market().is_none() || !self.rows.last().is_none_or(in_order) {
            return Err(Damage::of("row of activity"));
        }
        self.rows.push(row);
        Ok(())
    }

    /// Lists the rows that were taken, if all are of this many wallets and markets.
    pub(super) fn complete(&mut self, wallets: usize, markets: usize) -> Result<(), Damage> {
        for index in 0..self.rows.len() {
            let row = &self.rows[index];
            let in_market = row.market().is_none_or(|market| market.index() < markets);
            if wallets <= row.wallet.index() || !in_market {
                return Err(Damage::of("place of activity"));
            }
            self.enlist(index);
        }
        Ok(())
    }

    fn enlist(&mut self, index: usize) {
        let Row { wallet, market, kind, .. } = self.rows[index];
        let index = u32::try_from(index).expect("four billion rows fit no machine");
        list(&mut self.by_wallet, wallet.index()).push(index);
        if kind == Kind::Trade {
            list(&mut self.trades_by_market, market.index()).push(index);
        }
    }
}

/// Those of the ascending `indices` that are in `places`.
fn cut(indices: &[u32], places: Range<usize>) -> &[u32] {
    let before = |place: usize| indices.partition_point(|&index| (index as usize) < place);
    let from = before(places.start);
    &indices[from..before(places.end).max(from)]
}

fn indices(lists: &[Vec<u32>], index: usize) -> &[u32] {
    lists.get(index).map_or(&[], Vec::as_slice)
}
