//! What a market is to the trade path: two outcomes, a mode, a payout.

use super::amount::{Collateral, ONE, Shares};
use super::byte::byte_enum;

byte_enum! {
    /// One of the two outcomes of a market.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Outcome {
        /// The first token, in whose terms the market's one book is kept.
        Zero = 0,
        /// The second token.
        One = 1,
    }
}

impl Outcome {
    /// The other outcome.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Zero => Self::One,
            Self::One => Self::Zero,
        }
    }

    /// 0 or 1, as an index into pairs.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

byte_enum! {
    /// What may be done in a market, or on the whole exchange.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Mode {
        /// Orders and cancels.
        Open = 0,
        /// Cancels, and orders that only rest.
        PostOnly = 1,
        /// Cancels only: a market that is paused, an exchange that drains.
        CancelOnly = 2,
        /// Cancels only, for a market that is over: imported as history, or closed later.
        Closed = 3,
        /// The payout is known; shares can be redeemed. Final.
        Resolved = 4,
    }
}

impl Mode {
    /// True if a market in this mode is over.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closed | Self::Resolved)
    }

    /// Its word in answers and streams.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::PostOnly => "post-only",
            Self::CancelOnly => "cancel-only",
            Self::Closed => "closed",
            Self::Resolved => "resolved",
        }
    }
}

/// What one share of each outcome pays after resolution: millionths that sum to exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payout {
    zero: u32,
}

impl Payout {
    /// Token 0 pays `zero` millionths and token 1 the rest; `None` above one.
    #[must_use]
    pub const fn new(zero: u32) -> Option<Self> {
        if zero as u64 <= ONE { Some(Self { zero }) } else { None }
    }

    /// What one share of `outcome` pays, in millionths.
    #[must_use]
    pub const fn per_share(self, outcome: Outcome) -> u32 {
        match outcome {
            Outcome::Zero => self.zero,
            Outcome::One => 1_000_000 - self.zero,
        }
    }

    /// What `shares` of both outcomes pay together, rounded down once.
    #[must_use]
    pub fn of(self, shares: [Shares; 2]) -> Collateral {
        let sum = u128::from(shares[0].0) * u128::from(self.per_share(Outcome::Zero))
            + u128::from(shares[1].0) * u128::from(self.per_share(Outcome::One));
        Collateral(u64::try_from(sum / u128::from(ONE)).expect("a payout is at most the shares"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payout_is_rounded_down_once_for_both_outcomes() {
        for (zero, shares, paid) in [
            (1_000_000, [7, 5], 7),
            (0, [7, 5], 5),
            (500_000, [1, 0], 0),
            (500_000, [1, 1], 1),
            (500_000, [3, 2], 2),
            (333_333, [u64::MAX, u64::MAX], u64::MAX),
        ] {
            let payout = Payout::new(zero).expect("at most one");
            assert_eq!(payout.of(shares.map(Shares)), Collateral(paid), "{shares:?} at {zero}");
        }
        assert_eq!(Payout::new(1_000_001), None);
    }
}
