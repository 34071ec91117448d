//! What wallets hold, what it cost them, and what they did: the read model of positions, activity,
//! holders and volumes.
//!
//! It is fed plain acts ([`Entry`]) in the order of the log and decides nothing. Shares equal those
//! of the ledger at every step; this room adds what a ledger forgets: what shares cost, what
//! selling them brought, and the list of everything that happened.
//!
//! # Money
//!
//! Costs and profits are integers of 10^-18 USDC ([`Atto`]), so that only one act rounds at all: a
//! sale splits a cost in proportion, to the nearest 10^-18. What leaves the cost enters the profit,
//! so in every position, at every step and to the last digit, `cost - realized = paid - received`.
//!
//! The rules are those of the venues (Polymarket's public profit-and-loss subgraph; the rounding
//! and the names were fitted to real rows):
//!
//! | act | cost | profit |
//! |---|---|---|
//! | buy | grows by what was paid, fee included | |
//! | sell | falls in proportion, so the average stays | what was received after the fee, less the cost that left |
//! | split | each side of the pair grows by one half | |
//! | merge | as in a sale of each side at one half | as in a sale |
//! | redeem | as in a sale at the payout | as in a sale |
//!
//! A redeem of both sides is paid together and rounded down once, by less than a millionth; that
//! loss is booked on the side with the higher payout, or on the other if that one is too small. A
//! fee is part of what a buyer paid and not part of what a seller received, so that all profits
//! together are what the wallet gained.
//!
//! A position is **open** while it has shares and **closed** if it had some and has none now. A
//! resolution changes nothing here: that shares are redeemable, and worth their payout, follows
//! from the market when somebody asks. A closed position keeps the size and the average that it had
//! before the act that closed it; buying again opens it with a new cost, while its profit and the
//! shares ever bought go on.
//!
//! | file | what it knows |
//! |---|---|
//! | `lot` | the arithmetic of one outcome in one wallet |
//! | `holdings` | lots by wallet and by market |
//! | `activity` | everything that happened, in rows of 48 bytes |
//! | `keep` | what a snapshot holds of all this |
//! | `standing` | trades and profit of wallets, by the hour |

mod activity;
mod holdings;
mod keep;
mod lot;
mod standing;

pub use activity::{Activity, Kind, Role, Row, Rows};
pub use holdings::{Holding, Holdings};
pub use lot::{Atto, Figures, Lot, ratio, rounded};
pub use standing::{HOURS_KEPT, Period, Standings, Totals, Traded};

use crate::domain::{Collateral, MarketNo, Outcome, Payout, Position, Shares, Side, TimeMs, WalletNo};

/// One act of one wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The frame that said so. Several entries may share one.
    pub position: Position,
    /// When. Never earlier than the entry before.
    pub time: TimeMs,
    /// Whose act.
    pub wallet: WalletNo,
    /// What happened.
    pub act: Act,
}

/// What a wallet did, or what was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It bought or sold: all fills of a taker's order together, or one fill of a maker's.
    Traded(Trade),
    /// Collateral became pairs, one for one.
    Split {
        /// The market.
        market: MarketNo,
        /// Pairs made, and their price.
        pairs: Shares,
    },
    /// Pairs became collateral, one for one.
    Merge {
        /// The market.
        market: MarketNo,
        /// Pairs burned, and their price.
        pairs: Shares,
    },
    /// Shares of a resolved market became their payout.
    Redeem {
        /// The market.
        market: MarketNo,
        /// Shares given up of each outcome.
        shares: [Shares; 2],
        /// What they pay.
        payout: Payout,
        /// What was paid for both together; zero if both are worth nothing.
        paid: Collateral,
    },
    /// The operator put money in.
    Credit(Collateral),
    /// The operator took money out.
    Debit(Collateral),
}

/// A wallet's part in a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The market.
    pub market: MarketNo,
    /// The token.
    pub outcome: Outcome,
    /// Bought or sold.
    pub side: Side,
    /// It arrived or it rested.
    pub role: Role,
    /// How many shares.
    pub shares: Shares,
    /// What they cost or brought, without the fee.
    pub leg: Collateral,
    /// The fee: on top of a buy, out of a sale.
    pub fee: Collateral,
    /// The mean price, in millionths.
    pub price_millionths: u32,
}

impl Trade {
    /// What left the wallet (buy) or came into it (sell).
    #[must_use]
    pub fn cash(&self) -> Collateral {
        match self.side {
            Side::Buy => self.leg + self.fee,
            Side::Sell => self.leg.saturating_sub(self.fee),
        }
    }
}

/// All wallets: what they hold, what they did, how they stand.
#[derive(Debug, Default)]
pub struct Wallets {
    holdings: Holdings,
    activity: Activity,
    standings: Standings,
}

impl Wallets {
    /// The state before the first act.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What everybody holds.
    #[must_use]
    pub const fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// What everybody did.
    #[must_use]
    pub const fn activity(&self) -> &Activity {
        &self.activity
    }

    /// How everybody stands.
    #[must_use]
    pub const fn standings(&self) -> &Standings {
        &self.standings
    }

    /// Makes the periods of the standings end with the hour of `now`; see [`Standings::turn`].
    pub fn turn(&mut self, now: TimeMs) {
        self.standings.turn(now);
    }

    /// Follows one act, which must be possible: shares that are given up were held.
    pub fn follow(&mut self, entry: &Entry) {
        let Entry { time, wallet, .. } = *entry;
        match entry.act {
            Act::Traded(trade) => self.trade(time, wallet, &trade),
            Act::Split { market, pairs } => {
                let holding = self.holdings.of_mut(wallet, market);
                for lot in &mut holding.lots {
                    lot.buy(pairs, half(pairs), time);
                }
            }
            Act::Merge { market, pairs } => {
                let holding = self.holdings.of_mut(wallet, market);
                let gains = holding.lots.each_mut().map(|lot| lot.sell(pairs, half(pairs), time));
                self.standings.gain(wallet, time, gains[0] + gains[1]);
            }
            Act::Redeem { market, shares, payout, paid } => {
                let holding = self.holdings.of_mut(wallet, market);
                let received = redeemed(shares, payout, paid);
                let mut gained = 0;
                for outcome in [Outcome::Zero, Outcome::One].map(Outcome::index) {
                    gained += holding.lots[outcome].sell(shares[outcome], received[outcome], time);
                }
                self.standings.gain(wallet, time, gained);
            }
            Act::Credit(_) | Act::Debit(_) => {}
        }
        self.activity.push(Row::of(entry));
    }

    fn trade(&mut self, time: TimeMs, wallet: WalletNo, trade: &Trade) {
        let holding = self.holdings.of_mut(wallet, trade.market);
        let lot = &mut holding.lots[trade.outcome.index()];
        let cash = Atto::of(trade.cash());
        let gained = match trade.side {
            Side::Buy => {
                lot.buy(trade.shares, cash, time);
                0
            }
            Side::Sell => lot.sell(trade.shares, cash, time),
        };
        if !std::mem::replace(&mut holding.traded, true) {
            self.standings.enter(wallet);
        }
        self.standings.trade(wallet, time, trade, gained);
    }
}

/// What one side of `pairs` costs.
const fn half(pairs: Shares) -> Atto {
    Atto::half_of(pairs)
}

/// What each side received when both together were paid `paid`.
fn redeemed(shares: [Shares; 2], payout: Payout, paid: Collateral) -> [Atto; 2] {
    let sides = [Outcome::Zero, Outcome::One];
    let mut received = sides.map(|side| Atto::worth(shares[side.index()], payout.per_share(side)));
    let lost = Atto(received[0].0 + received[1].0 - Atto::of(paid).0);
    let higher = usize::from(payout.per_share(Outcome::One) > payout.per_share(Outcome::Zero));
    // A pair is worth one. So if both are worth less than that together, one side is empty and the
    // other covers what was lost.
    let from = if received[higher].0 < lost.0 { 1 - higher } else { higher };
    received[from].0 -= lost.0;
    received
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
