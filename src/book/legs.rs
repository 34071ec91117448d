//! What two orders pay and get when they meet, to the millionth.
//!
//! | taker | maker | tokens | kind | maker's leg | taker's leg |
//! |---|---|---|---|---|---|
//! | buys | sells | same | transfer | receives the price, rounded up if the taker stays within the ratio it signed, else down | pays the same |
//! | sells | buys | same | transfer | pays the price, rounded down | receives the same |
//! | buys | buys | both | mint | pays the price, rounded down | pays what is missing to one a pair |
//! | sells | sells | both | merge | receives the price, rounded up if the taker's rest stays within its ratio, else down | receives what is left of one a pair |
//!
//! A fill is at the maker's price, so whatever is better than the taker's limit is the taker's. The
//! maker's leg is computed first; in a mint and a merge the taker's is the remainder, so a pair costs
//! and returns exactly one. Where a product is not whole, one side bears the rounding, less than a
//! millionth per fill: a buying maker never pays more than its price, so the taker bears it; a
//! selling maker bears it only where the taker's ratio leaves no room.
//!
//! **Zero value.** A fill at the maker's price that is worth less than a millionth does not happen: the taker is
//! *spent*. An order that is left with less is *dust* and leaves its book with the fill that left it, so each order that
//! rests can be filled.

use crate::domain::order::Ratio;
use crate::domain::price::PRICE_ONE;
use crate::domain::{Collateral, Price, Shares, Side, Tick};

/// How two orders meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Shares change hands.
    Transfer,
    /// A pair is made.
    Mint,
    /// A pair is burned.
    Merge,
}

impl Meeting {
    /// How orders of these sides meet; they stand on opposite faces of one book, so two buyers or
    /// two sellers are of different tokens.
    #[must_use]
    pub const fn of(taker: Side, maker: Side) -> Self {
        match (taker, maker) {
            (Side::Buy, Side::Buy) => Self::Mint,
            (Side::Sell, Side::Sell) => Self::Merge,
            (Side::Buy, Side::Sell) | (Side::Sell, Side::Buy) => Self::Transfer,
        }
    }

    /// The taker's price, in terms of its own token, when it meets a maker of this price.
    #[must_use]
    pub const fn taker_price(self, maker: Price) -> Price {
        match self {
            Self::Transfer => maker,
            Self::Mint | Self::Merge => maker.complement(),
        }
    }
}

/// The two sums of one fill, without fees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legs {
    /// What the maker pays or receives.
    pub maker: Collateral,
    /// What the taker pays or receives.
    pub taker: Collateral,
}

impl Ratio {
    /// Whether `leg` for `shares` is not above the ratio.
    fn holds_as_most(self, leg: Collateral, shares: Shares) -> bool {
        product(leg.0, self.shares.0) <= product(self.collateral.0, shares.0)
    }

    /// Whether `leg` for `shares` is not below the ratio.
    fn holds_as_least(self, leg: Collateral, shares: Shares) -> bool {
        product(self.collateral.0, shares.0) <= product(leg.0, self.shares.0)
    }
}

/// The legs of a fill of `shares` at the maker's `price`; `None` if it is worth nothing.
#[must_use]
pub fn legs(taker: Side, maker: Side, price: Price, shares: Shares, signed: Ratio) -> Option<Legs> {
    let floor = price.cost_floor(shares);
    if floor.is_zero() {
        return None;
    }
    let ceil = price.cost_ceil(shares);
    let meeting = Meeting::of(taker, maker);
    let remainder = |leg: Collateral| Collateral(shares.0 - leg.0);
    let leg = match (meeting, maker) {
        (Meeting::Transfer, Side::Sell) if signed.holds_as_most(ceil, shares) => ceil,
        (Meeting::Merge, Side::Sell) if signed.holds_as_least(remainder(ceil), shares) => ceil,
        _ => floor,
    };
    let taker = match meeting {
        Meeting::Transfer => leg,
        Meeting::Mint | Meeting::Merge => remainder(leg),
    };
    assert!(!taker.is_zero(), "a price below one leaves the taker a millionth, or its ratio does not hold");
    Some(Legs { maker: leg, taker })
}

/// Whether `shares` at `price` are worth less than a millionth.
#[must_use]
pub fn is_dust(price: Price, shares: Shares) -> bool {
    product(shares.0, u64::from(price.ten_thousandths())) < u128::from(PRICE_ONE)
}

/// The smallest size that is worth a millionth at every price of the tick's grid.
#[must_use]
pub fn least_of_worth(tick: Tick) -> Shares {
    Shares(u64::from(PRICE_ONE.div_ceil(tick.ten_thousandths())))
}

fn product(left: u64, right: u64) -> u128 {
    u128::from(left) * u128::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Ratio = Ratio { collateral: Collateral(9), shares: Shares(10) };

    fn price(ten_thousandths: u16) -> Price {
        Price::new(ten_thousandths).unwrap()
    }

    fn ratio(collateral: u64, shares: u64) -> Ratio {
        Ratio { collateral: Collateral(collateral), shares: Shares(shares) }
    }

    #[test]
    fn a_selling_maker_gets_the_odd_millionth_while_the_taker_stays_within_its_ratio() {
        let at = |signed| legs(Side::Buy, Side::Sell, price(3_000), Shares(5), signed).unwrap().maker;
        assert_eq!(at(ratio(2, 5)), Collateral(2));
        assert_eq!(at(ratio(30, 100)), Collateral(1));
        let merged = |signed| legs(Side::Sell, Side::Sell, price(3_000), Shares(5), signed).unwrap();
        assert_eq!(merged(ratio(60, 100)), Legs { maker: Collateral(2), taker: Collateral(3) });
        assert_eq!(merged(ratio(70, 100)), Legs { maker: Collateral(1), taker: Collateral(4) });
    }

    #[test]
    fn a_buying_maker_never_pays_above_its_price() {
        let legs_of = |taker| legs(taker, Side::Buy, price(3_000), Shares(5), WIDE).unwrap();
        assert_eq!(legs_of(Side::Sell), Legs { maker: Collateral(1), taker: Collateral(1) });
        assert_eq!(legs_of(Side::Buy), Legs { maker: Collateral(1), taker: Collateral(4) });
    }

    #[test]
    fn a_pair_always_costs_and_returns_exactly_one() {
        for ten_thousandths in [1, 25, 3_333, 5_000, 9_999] {
            for shares in [1, 2, 3, 9_999, 10_000, 10_001, 1_000_000_007] {
                for side in [Side::Buy, Side::Sell] {
                    let met = legs(side, side, price(ten_thousandths), Shares(shares), WIDE);
                    assert_eq!(met.is_none(), is_dust(price(ten_thousandths), Shares(shares)));
                    assert!(met.is_none_or(|legs| legs.maker.0 + legs.taker.0 == shares));
                }
            }
        }
    }
}
