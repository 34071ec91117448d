//! The twin of this room, as plain as possible: every entry is kept, and everything is computed
//! from all of them whenever it is asked for. Averages are kept as averages, as the venues'
//! subgraph does it, and not as costs; they are floats, so they are compared with some room.

use super::{Act, Entry, Kind, Role, Totals, Traded};
use crate::domain::{MarketNo, Outcome, Side, WalletNo};

const MILLIONTHS: f64 = 1e6;

/// One outcome in one wallet.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NaiveLot {
    /// Millionths of shares.
    pub(super) shares: i128,
    /// Millionths of shares ever acquired.
    pub(super) bought: i128,
    /// USDC per share.
    pub(super) average: f64,
    /// USDC.
    pub(super) realized: f64,
    /// Millionths of USDC paid less those received, times 10^6 so that payouts stay whole.
    pub(super) paid: i128,
}

impl NaiveLot {
    fn buy(&mut self, shares: u64, cost_scaled: i128) {
        let (held, more) = (float(self.shares), float(shares.into()));
        if shares > 0 {
            self.average = (self.average * held + float(cost_scaled) / MILLIONTHS) / (held + more);
        }
        self.shares += i128::from(shares);
        self.bought += i128::from(shares);
        self.paid += cost_scaled;
    }

    fn sell(&mut self, shares: u64, received_scaled: i128) {
        let gone = float(shares.into()) / MILLIONTHS;
        self.realized += float(received_scaled) / MILLIONTHS / MILLIONTHS - self.average * gone;
        self.shares -= i128::from(shares);
        self.paid -= received_scaled;
        if self.shares == 0 {
            self.average = 0.0;
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "the twin is compared with some room")]
fn float(number: i128) -> f64 {
    number as f64
}

/// `atto` with `places` decimals.
pub(super) fn rounded(atto: i128, places: u32) -> i128 {
    nearest(atto, 10_i128.pow(18 - places))
}

/// `part * scale / whole`.
pub(super) fn ratio(part: i128, whole: i128, scale: i128) -> i128 {
    if whole <= 0 {
        return 0;
    }
    let (mut part, mut whole) = (part, whole);
    while part.checked_mul(scale).is_none_or(|product| product == i128::MIN) {
        part /= 2;
        whole = (whole / 2).max(1);
    }
    nearest(part * scale, whole)
}

fn nearest(value: i128, divisor: i128) -> i128 {
    let (whole, rest) = (value / divisor, value % divisor);
    let up = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    whole + if up { value.signum() } else { 0 }
}

/// Everything that happened.
#[derive(Debug, Default)]
pub(super) struct Naive {
    pub(super) entries: Vec<Entry>,
}

impl Naive {
    /// One outcome of one market in one wallet. A redeem of both outcomes pays the sum of both,
    /// rounded down, so `paid` is compared for both together.
    pub(super) fn lot(&self, wallet: WalletNo, market: MarketNo, outcome: Outcome) -> NaiveLot {
        let mut lot = NaiveLot::default();
        for entry in self.entries.iter().filter(|entry| entry.wallet == wallet) {
            match entry.act {
                Act::Traded(trade) if trade.market == market && trade.outcome == outcome => {
                    let (shares, leg, fee) = (trade.shares.0, trade.leg.0, trade.fee.0);
                    match trade.side {
                        Side::Buy => lot.buy(shares, i128::from(leg + fee) * 1_000_000),
                        Side::Sell => lot.sell(shares, i128::from(leg - fee) * 1_000_000),
                    }
                }
                Act::Split { market: of, pairs } if of == market => {
                    lot.buy(pairs.0, i128::from(pairs.0) * 500_000);
                }
                Act::Merge { market: of, pairs } if of == market => {
                    lot.sell(pairs.0, i128::from(pairs.0) * 500_000);
                }
                Act::Redeem { market: of, shares, payout, .. } if of == market => {
                    let shares = shares[outcome.index()].0;
                    lot.sell(shares, i128::from(shares) * i128::from(payout.per_share(outcome)));
                }
                _ => {}
            }
        }
        lot
    }

    /// What the redeems of `wallet` in `market` lost by being rounded down, in 10^-12 USDC.
    pub(super) fn lost(&self, wallet: WalletNo, market: MarketNo) -> i128 {
        let lost = |entry: &Entry| match entry.act {
            Act::Redeem { market: of, shares, payout, paid } if of == market && entry.wallet == wallet => {
                let worth = |outcome: Outcome| {
                    i128::from(shares[outcome.index()].0) * i128::from(payout.per_share(outcome))
                };
                worth(Outcome::Zero) + worth(Outcome::One) - i128::from(paid.0) * 1_000_000
            }
            _ => 0,
        };
        self.entries.iter().map(lost).sum()
    }

    /// The positions and kinds of a wallet's entries from second `start` to second `end`.
    pub(super) fn activity(&self, wallet: WalletNo, start: u64, end: u64) -> Vec<(u64, Kind)> {
        let of = |entry: &&Entry| entry.wallet == wallet && (start..=end).contains(&entry.time.seconds());
        let named = |entry: &Entry| (entry.position.0, kind(&entry.act));
        self.entries.iter().filter(of).map(named).collect()
    }

    /// What a wallet traded since `from_ms`, without its profit, and how many markets it ever traded in.
    pub(super) fn traded(&self, wallet: WalletNo, from_ms: u64) -> (Totals, usize) {
        let mut markets = std::collections::BTreeSet::new();
        let mut totals = Totals::default();
        for entry in &self.entries {
            if let Act::Traded(trade) = entry.act
                && entry.wallet == wallet
            {
                markets.insert(trade.market);
                if from_ms <= entry.time.0 {
                    totals.volume += u128::from(trade.leg.0);
                    totals.shares += u128::from(trade.shares.0);
                    totals.trades += 1;
                }
            }
        }
        (totals, markets.len())
    }

    /// What the takers of a market traded.
    pub(super) fn traded_in(&self, market: MarketNo) -> Traded {
        let mut sum = Traded::default();
        for entry in &self.entries {
            if let Act::Traded(trade) = entry.act
                && trade.market == market
                && trade.role == Role::Taker
            {
                sum.collateral += u128::from(trade.leg.0);
                sum.shares += u128::from(trade.shares.0);
            }
        }
        sum
    }
}

fn kind(act: &Act) -> Kind {
    match act {
        Act::Traded(_) => Kind::Trade,
        Act::Split { .. } => Kind::Split,
        Act::Merge { .. } => Kind::Merge,
        Act::Redeem { .. } => Kind::Redeem,
        Act::Credit(_) => Kind::Deposit,
        Act::Debit(_) => Kind::Withdrawal,
    }
}
