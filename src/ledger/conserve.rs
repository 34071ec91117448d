//! The conservation law, computed from the rows alone.

use super::Ledger;
use crate::domain::MarketNo;

/// Sums over the whole exchange, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// In wallets.
    pub cells: u128,
    /// Collected as fees.
    pub fees: u128,
    /// Set aside for open orders.
    pub reserved: u128,
    /// Backing shares.
    pub backing: u128,
    /// Credited by the operator.
    pub credited: u128,
    /// Debited by the operator.
    pub debited: u128,
}

/// Where the conservation law does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imbalance {
    /// Collateral was made or lost.
    Collateral(Totals),
    /// A market's shares and backing differ, or it owes more than it has.
    Market {
        /// The market.
        market: MarketNo,
        /// Its backing.
        backing: u64,
        /// The sum of all holdings of each outcome.
        shares: [u128; 2],
    },
}

impl std::fmt::Display for Imbalance {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Collateral(t) => write!(
                out,
                "collateral is not conserved: cells {} + fees {} + reserved {} + backing {} is not credits {} - debits {}",
                t.cells, t.fees, t.reserved, t.backing, t.credited, t.debited
            ),
            Self::Market { market, backing, shares } => write!(
                out,
                "market {}: backing {backing} does not match shares {} and {}",
                market.0, shares[0], shares[1]
            ),
        }
    }
}

impl Ledger {
    /// Sums every row; linear in wallets, markets and live orders.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let live = |market: &super::MarketRow| {
            market.live.iter().map(|position| self.orders[position].reserved.0).map(u128::from).sum::<u128>()
        };
        Totals {
            cells: self.wallets.iter().map(|row| u128::from(row.cell.0)).sum(),
            fees: u128::from(self.fees.0),
            reserved: self.markets.iter().map(live).sum(),
            backing: self.markets.iter().map(|row| u128::from(row.backing.0)).sum(),
            credited: self.credited,
            debited: self.debited,
        }
    }

    /// Proves the invariants of the room's doc from the rows, or names one that does not hold.
    pub fn conserved(&self) -> Result<Totals, Imbalance> {
        let totals = self.totals();
        let held = totals.cells + totals.fees + totals.reserved + totals.backing;
        if held.checked_add(totals.debited) != Some(totals.credited) {
            return Err(Imbalance::Collateral(totals));
        }
        let mut sums = vec![[0u128; 2]; self.markets.len()];
        for (&(_, market), shares) in &self.holdings {
            let sum = &mut sums[market.index()];
            sum[0] += u128::from(shares[0].0);
            sum[1] += u128::from(shares[1].0);
        }
        for (row, sum) in self.markets.iter().zip(sums) {
            let even = match row.payout {
                None => sum == [u128::from(row.backing.0); 2],
                Some(payout) => payout.of(row.shares) <= row.backing,
            };
            if !even || sum != row.shares.map(|shares| u128::from(shares.0)) {
                return Err(Imbalance::Market { market: row.market, backing: row.backing.0, shares: sum });
            }
        }
        Ok(totals)
    }
}
