//! What wallets traded and the profit that they booked, in all and by the hour, and what was traded in markets in all.
//!
//! A period other than [`Period::All`] is a number of hours; the current hour counts as a whole one. A
//! ranking looks at every wallet, so each period has a **board** with the sum of each wallet: an act is added
//! to the boards, and an hour that leaves a period is taken off its board again, which costs a step for each
//! wallet that acted in it. Hours are kept for [`HOURS_KEPT`], which is more than any of them.

use super::{Role, Trade};
use crate::domain::{MarketNo, TimeMs, WalletNo};
use crate::memory::wire::{Damage, structs};
use std::collections::BTreeMap;
use std::ops::{AddAssign, Sub, SubAssign};

const HOUR_MS: u64 = 3_600_000;

/// At least so many hours are kept, up to that of the last act: 30 days, and the day within which they begin.
pub const HOURS_KEPT: u64 = 31 * 24;

/// A span of time up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
    /// From the first act.
    All,
}

impl Period {
    /// Every period, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::All];

    const fn hours(self) -> u64 {
        match self {
            Self::Day => 24,
            Self::Week => 7 * 24,
            Self::Month => 30 * 24,
            Self::All => u64::MAX,
        }
    }
}

/// What a wallet traded and gained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Collateral of its trades without fees, in millionths; bought and sold alike.
    pub volume: u128,
    /// Shares of its trades, in millionths; bought and sold alike.
    pub shares: u128,
    /// Its trades: a taker's order is one, and so is each fill of a maker's.
    pub trades: u64,
    /// Profit booked, in atto.
    pub realized: i128,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.volume += other.volume;
        self.shares += other.shares;
        self.trades += other.trades;
        self.realized += other.realized;
    }
}

impl SubAssign for Totals {
    fn sub_assign(&mut self, other: Self) {
        self.volume -= other.volume;
        self.shares -= other.shares;
        self.trades -= other.trades;
        self.realized -= other.realized;
    }
}

impl Sub for Totals {
    type Output = Self;

    fn sub(mut self, other: Self) -> Self {
        self -= other;
        self
    }
}

/// What takers traded in a market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traded {
    /// Collateral that they paid or got, without fees, in millionths.
    pub collateral: u128,
    /// Shares, in millionths.
    pub shares: u128,
}

/// The standing of one wallet as a snapshot keeps it.
pub(super) struct Kept {
    all: Totals,
    markets: u32,
    /// What it did in each hour that is kept and in which it acted, oldest first.
    hours: Vec<(u64, Totals)>,
}

structs! {
    Totals { volume, shares, trades, realized }
    Traded { collateral, shares }
    Kept { all, markets, hours }
}

/// What one wallet did.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// How many markets it ever traded in.
    markets: u32,
    /// Its last hour with an act.
    last: Option<HourPlace>,
}

/// An hour, and a wallet's place in the list of that hour.
type HourPlace = (u64, u32);

/// What one wallet did in one hour.
#[derive(Clone, Copy, Debug)]
struct Done {
    wallet: WalletNo,
    totals: Totals,
    /// The wallet's hour with an act before this one.
    before: Option<HourPlace>,
}

/// What every wallet did in one period.
#[derive(Debug, Default)]
struct Board {
    /// The first hour that counts.
    first: u64,
    sums: Vec<Totals>,
}

/// The standings of all wallets and the volumes of all markets.
#[derive(Debug, Default)]
pub struct Standings {
    wallets: Vec<Standing>,
    /// By period; as long as `wallets`.
    boards: [Board; Period::ALL.len()],
    /// By hour, what each wallet did that acted in it, in the order of their first acts.
    hours: BTreeMap<u64, Vec<Done>>,
    volumes: Vec<Traded>,
}

impl Standings {
    /// In how many markets `wallet` ever traded.
    #[must_use]
    pub fn markets(&self, wallet: WalletNo) -> u32 {
        self.wallets.get(wallet.index()).map_or(0, |standing| standing.markets)
    }

    /// What `wallet` ever traded and gained.
    #[must_use]
    pub fn all(&self, wallet: WalletNo) -> Totals {
        self.board(Period::All).get(wallet.index()).copied().unwrap_or_default()
    }

    /// What each wallet traded and gained in `period`, by number, up to the last wallet that ever did. The
    /// period ends with the hour of the last act or, if that is later, of the last [`Self::turn`].
    #[must_use]
    pub fn board(&self, period: Period) -> &[Totals] {
        &self.boards[period as usize].sums
    }

    /// Makes every period end with the hour of `now`, or with that of the last act if that is later.
    pub fn turn(&mut self, now: TimeMs) {
        self.turn_to(self.newest().max(now.0 / HOUR_MS));
    }

    /// What `wallet` did in each hour that is kept and in which it acted, newest first. Hours count from 1970.
    pub fn hours_of(&self, wallet: WalletNo) -> impl Iterator<Item = (u64, Totals)> {
        let mut next = self.wallets.get(wallet.index()).and_then(|standing| standing.last);
        std::iter::from_fn(move || {
            let (hour, place) = next?;
            let done = self.hours.get(&hour)?[place as usize];
            next = done.before;
            Some((hour, done.totals))
        })
    }

    /// What was traded in `market`.
    #[must_use]
    pub fn volume(&self, market: MarketNo) -> Traded {
        self.volumes.get(market.index()).copied().unwrap_or_default()
    }

    /// The volumes of all markets up to the last that ever traded.
    pub(super) fn volumes(&self) -> &[Traded] {
        &self.volumes
    }

    /// Every wallet up to the last that ever traded or gained.
    pub(super) fn kept(&self) -> impl Iterator<Item = Kept> {
        (0..).map(WalletNo).zip(&self.wallets).zip(self.board(Period::All)).map(
            |((wallet, standing), &all)| {
                let mut hours: Vec<(u64, Totals)> = self.hours_of(wallet).collect();
                hours.reverse();
                Kept { all, markets: standing.markets, hours }
            },
        )
    }

    /// Takes the next wallet of a state that was kept.
    pub(super) fn take_wallet(&mut self, kept: &Kept) -> Result<(), Damage> {
        let in_order = kept.hours.is_sorted_by(|(one, _), (next, _)| one < next);
        let last = kept.hours.last().is_none_or(|(hour, _)| *hour <= u64::MAX / HOUR_MS);
        // As far from overflowing as any sum over some of the hours can come.
        let within = |all: u128, of: fn(&Totals) -> u128| {
            let mut hours = kept.hours.iter().map(|(_, totals)| of(totals));
            hours.try_fold(0, u128::checked_add).is_some_and(|sum| sum <= all)
        };
        let sums = within(kept.all.volume, |totals| totals.volume)
            && within(kept.all.shares, |totals| totals.shares)
            && within(kept.all.trades.into(), |totals| totals.trades.into())
            && within(i128::MAX.unsigned_abs(), |totals| totals.realized.unsigned_abs());
        if !in_order || !last || !sums {
            return Err(Damage::of("hours of a wallet"));
        }
        let wallet = WalletNo(u32::try_from(self.wallets.len()).expect("wallet numbers are u32"));
        self.grow_to(wallet);
        for &(hour, totals) in &kept.hours {
            self.count(wallet, hour, totals);
        }
        self.wallets[wallet.index()].markets = kept.markets;
        self.boards[Period::All as usize].sums[wallet.index()] = kept.all;
        Ok(())
    }

    /// Takes the next market's volume of a state that was kept.
    pub(super) fn take_volume(&mut self, volume: Traded) {
        self.volumes.push(volume);
    }

    /// `wallet` trades in a market for the first time.
    pub(super) fn enter(&mut self, wallet: WalletNo) {
        self.grow_to(wallet);
        self.wallets[wallet.index()].markets += 1;
    }

    /// `wallet` books a profit, in atto.
    pub(super) fn gain(&mut self, wallet: WalletNo, time: TimeMs, gained: i128) {
        self.add(wallet, time, Totals { realized: gained, ..Totals::default() });
    }

    /// `wallet` trades, and books a profit by it.
    pub(super) fn trade(&mut self, wallet: WalletNo, time: TimeMs, trade: &Trade, gained: i128) {
        let (volume, shares) = (u128::from(trade.leg.0), u128::from(trade.shares.0));
        self.add(wallet, time, Totals { volume, shares, trades: 1, realized: gained });
        if trade.role == Role::Taker {
            let index = trade.market.index();
            if self.volumes.len() <= index {
                self.volumes.resize(index + 1, Traded::default());
            }
            self.volumes[index].collateral += volume;
            self.volumes[index].shares += shares;
        }
    }

    /// Adds what `wallet` did at `time`, which is never earlier than that of the act before.
    fn add(&mut self, wallet: WalletNo, time: TimeMs, totals: Totals) {
        let hour = time.0 / HOUR_MS;
        if self.newest() < hour {
            self.turn_to(hour);
            // What is gone from the longest period never comes back: no period ends before the last act.
            self.hours = self.hours.split_off(&(hour + 1).saturating_sub(HOURS_KEPT));
        }
        self.grow_to(wallet);
        self.count(wallet, hour, totals);
    }

    /// Adds what `wallet` did in an hour, which is not before that of its last act.
    fn count(&mut self, wallet: WalletNo, hour: u64, totals: Totals) {
        let rows = self.hours.entry(hour).or_default();
        match &mut self.wallets[wallet.index()].last {
            Some((last, place)) if *last == hour => rows[*place as usize].totals += totals,
            last => {
                let place = u32::try_from(rows.len()).expect("a row a wallet, whose numbers are u32");
                let before = last.replace((hour, place));
                rows.push(Done { wallet, totals, before });
            }
        }
        for board in self.boards.iter_mut().filter(|board| board.first <= hour) {
            board.sums[wallet.index()] += totals;
        }
    }

    /// Makes every period end with `hour`: what leaves a board is taken off, and what comes back, because a
    /// clock was set back, is put on again.
    fn turn_to(&mut self, hour: u64) {
        for (board, period) in self.boards.iter_mut().zip(Period::ALL) {
            let (before, first) = (board.first, first_of(period, hour));
            for done in self.hours.range(before.min(first)..before.max(first)).flat_map(|row| row.1) {
                let sum = &mut board.sums[done.wallet.index()];
                if before < first { *sum -= done.totals } else { *sum += done.totals }
            }
            board.first = first;
        }
    }

    /// The hour of the last act; 0 before the first.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.hours.last_key_value().map_or(0, |(hour, _)| *hour)
    }

    fn grow_to(&mut self, wallet: WalletNo) {
        if self.wallets.len() <= wallet.index() {
            self.wallets.resize_with(wallet.index() + 1, Standing::default);
            for board in &mut self.boards {
                board.sums.resize(wallet.index() + 1, Totals::default());
            }
        }
    }
}

/// The first hour of a period that ends with `last`.
const fn first_of(period: Period, last: u64) -> u64 {
    (last + 1).saturating_sub(period.hours())
}
