//! Volume and booked profit of wallets, in all and by the hour, and the volume of markets in all.
//!
//! Hours are kept for a month, which is the longest span that is asked for; the current hour counts
//! as a whole one. A wallet that does nothing keeps its old hours, but they are not counted.

use super::{Role, Trade};
use crate::domain::{MarketNo, TimeMs, WalletNo};
use crate::memory::wire::structs;

const HOUR_MS: u64 = 3_600_000;

/// Hours in the longest period other than [`Period::All`].
const HOURS_MAX: u64 = 30 * 24;

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
    const fn hours(self) -> u64 {
        match self {
            Self::Day => 24,
            Self::Week => 7 * 24,
            Self::Month => HOURS_MAX,
            Self::All => u64::MAX,
        }
    }
}

/// What a wallet traded and gained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Collateral of its trades without fees, in millionths; bought and sold alike.
    pub volume: u128,
    /// Profit booked, in atto.
    pub realized: i128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hour {
    hour: u64,
    totals: Totals,
}

/// The totals of one wallet, in all and by the hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Since its first act.
    pub all: Totals,
    /// How many markets it ever traded in.
    pub markets: u32,
    hours: Vec<Hour>,
}

impl Standing {
    /// What it traded and gained in `period` up to `now`, by whole hours.
    #[must_use]
    pub fn within(&self, period: Period, now: TimeMs) -> Totals {
        if period == Period::All {
            return self.all;
        }
        let first = (now.0 / HOUR_MS + 1).saturating_sub(period.hours());
        let recent = self.hours.iter().rev().take_while(|hour| hour.hour >= first);
        recent.fold(Totals::default(), |sum, hour| Totals {
            volume: sum.volume + hour.totals.volume,
            realized: sum.realized + hour.totals.realized,
        })
    }

    fn add(&mut self, time: TimeMs, volume: u128, realized: i128) {
        let hour = time.0 / HOUR_MS;
        if self.hours.last().is_none_or(|last| last.hour < hour) {
            let kept = self.hours.partition_point(|old| old.hour + HOURS_MAX <= hour);
            self.hours.drain(..kept);
            self.hours.push(Hour { hour, totals: Totals::default() });
        }
        let last = self.hours.last_mut().expect("one was just pushed if there was none");
        for totals in [&mut self.all, &mut last.totals] {
            totals.volume += volume;
            totals.realized += realized;
        }
    }
}

structs! {
    Totals { volume, realized }
    Hour { hour, totals }
    Standing { all, markets, hours }
}

/// The standings of all wallets and the volumes of all markets.
#[derive(Debug, Default)]
pub struct Standings {
    wallets: Vec<Standing>,
    volumes: Vec<u128>,
}

impl Standings {
    /// The standing of `wallet`; `None` above the last wallet that ever traded or gained.
    #[must_use]
    pub fn of(&self, wallet: WalletNo) -> Option<&Standing> {
        self.wallets.get(wallet.index())
    }

    /// Every wallet up to the last that ever traded or gained.
    pub fn wallets(&self) -> impl Iterator<Item = (WalletNo, &Standing)> {
        (0..).map(WalletNo).zip(&self.wallets)
    }

    /// Collateral that the takers in `market` paid or got, without fees, in millionths.
    #[must_use]
    pub fn volume(&self, market: MarketNo) -> u128 {
        self.volumes.get(market.index()).copied().unwrap_or(0)
    }

    /// The volumes of all markets up to the last that ever traded.
    pub(super) fn volumes(&self) -> &[u128] {
        &self.volumes
    }

    /// Takes the next wallet of a state that was kept.
    pub(super) fn take_wallet(&mut self, standing: Standing) {
        self.wallets.push(standing);
    }

    /// Takes the next market's volume of a state that was kept.
    pub(super) fn take_volume(&mut self, volume: u128) {
        self.volumes.push(volume);
    }

    /// `wallet` trades in a market for the first time.
    pub(super) fn enter(&mut self, wallet: WalletNo) {
        self.standing(wallet).markets += 1;
    }

    /// `wallet` books a profit, in atto.
    pub(super) fn gain(&mut self, wallet: WalletNo, time: TimeMs, gained: i128) {
        self.standing(wallet).add(time, 0, gained);
    }

    /// `wallet` trades.
    pub(super) fn trade(&mut self, wallet: WalletNo, time: TimeMs, trade: &Trade) {
        self.standing(wallet).add(time, trade.leg.0.into(), 0);
        if trade.role == Role::Taker {
            let index = trade.market.index();
            if self.volumes.len() <= index {
                self.volumes.resize(index + 1, 0);
            }
            self.volumes[index] += u128::from(trade.leg.0);
        }
    }

    fn standing(&mut self, wallet: WalletNo) -> &mut Standing {
        if self.wallets.len() <= wallet.index() {
            self.wallets.resize_with(wallet.index() + 1, Standing::default);
        }
        &mut self.wallets[wallet.index()]
    }
}
