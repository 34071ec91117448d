//! Prices and ticks in ten-thousandths of one USDC a share.
//!
//! A price *p* on one outcome is the price 1-*p* on the other ([`Price::complement`]), and 1-*p*
//! is on every grid that *p* is on, because every tick divides 1.

use super::amount::{Collateral, ONE, Shares};

/// Price steps in one USDC.
pub const PRICE_ONE: u16 = 10_000;

/// Millionths in a price step.
const MILLIONTHS_PER_STEP: u32 = 100;
const _: () = assert!(PRICE_ONE as u64 * MILLIONTHS_PER_STEP as u64 == ONE);

/// A price from 0.0001 to 0.9999, in ten-thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Price(u16);

impl Price {
    /// The price of `ten_thousandths`, or `None` outside 1..=9,999.
    #[must_use]
    pub const fn new(ten_thousandths: u16) -> Option<Self> {
        if ten_thousandths >= 1 && ten_thousandths < PRICE_ONE { Some(Self(ten_thousandths)) } else { None }
    }

    /// The price in ten-thousandths, 1..=9,999.
    #[must_use]
    pub const fn ten_thousandths(self) -> u16 {
        self.0
    }

    /// The price in millionths, the unit of amounts and of means of prices.
    #[must_use]
    pub fn millionths(self) -> u32 {
        u32::from(self.0) * MILLIONTHS_PER_STEP
    }

    /// The same price seen from the other outcome: 1 - p.
    #[must_use]
    pub const fn complement(self) -> Self {
        Self(PRICE_ONE - self.0)
    }

    /// What `shares` cost at this price, rounded down to a millionth.
    #[must_use]
    pub fn cost_floor(self, shares: Shares) -> Collateral {
        Collateral(self.cost(shares).0)
    }

    /// What `shares` cost at this price, rounded up to a millionth.
    #[must_use]
    pub fn cost_ceil(self, shares: Shares) -> Collateral {
        let (floor, rest) = self.cost(shares);
        Collateral(floor + u64::from(rest != 0))
    }

    /// What `shares` cost in millionths, and the remainder in ten-thousandths of a millionth.
    fn cost(self, shares: Shares) -> (u64, u64) {
        let (floor, rest) = divided(u128::from(shares.0) * u128::from(self.0), PRICE_ONE.into());
        (narrow(floor), rest)
    }

    /// The most shares that `collateral` buys at this price, rounded down to a millionth.
    #[must_use]
    pub fn shares_for(self, collateral: Collateral) -> Shares {
        let product = u128::from(collateral.0) * u128::from(PRICE_ONE);
        Shares(narrow(product / u128::from(self.0)))
    }
}

/// Quotient and remainder. An order's products fit 64 bits, whose division is one instruction.
#[inline]
pub(super) fn divided(numerator: u128, divisor: u64) -> (u128, u64) {
    if let Ok(numerator) = u64::try_from(numerator) {
        return ((numerator / divisor).into(), numerator % divisor);
    }
    (numerator / u128::from(divisor), narrow(numerator % u128::from(divisor)))
}

/// Amounts are at most 1e15 and prices below 1e4, so quotients fit; a larger one is a bug.
fn narrow(value: u128) -> u64 {
    u64::try_from(value).expect("amounts are bounded by ORDER_AMOUNT_MAX")
}

/// The smallest price step of a market, one of the six that the venues know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Tick(u16);

impl Tick {
    /// Every tick there is, coarsest first: 0.1, 0.01, 0.005, 0.0025, 0.001, 0.0001.
    pub const ALL: [Self; 6] = [Self(1_000), Self(100), Self(50), Self(25), Self(10), Self(1)];

    /// The tick of `ten_thousandths`, or `None` if no venue has it.
    #[must_use]
    pub const fn new(ten_thousandths: u16) -> Option<Self> {
        match ten_thousandths {
            1_000 | 100 | 50 | 25 | 10 | 1 => Some(Self(ten_thousandths)),
            _ => None,
        }
    }

    /// The tick in ten-thousandths.
    #[must_use]
    pub const fn ten_thousandths(self) -> u16 {
        self.0
    }

    /// True if `price` lies on this tick's grid.
    #[must_use]
    pub const fn holds(self, price: Price) -> bool {
        price.0.is_multiple_of(self.0)
    }

    /// How many prices the grid has: 9 at 0.1, 9,999 at 0.0001.
    #[must_use]
    pub const fn levels(self) -> u16 {
        PRICE_ONE / self.0 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_never_zero_and_never_one() {
        assert_eq!(Price::new(0), None);
        assert_eq!(Price::new(10_000), None);
        assert_eq!(Price::new(1).map(Price::complement), Price::new(9_999));
    }

    #[test]
    fn a_tick_is_one_of_the_six() {
        let ticks: Vec<Tick> = (0..=u16::MAX).rev().filter_map(Tick::new).collect();
        assert_eq!(ticks, Tick::ALL);
    }

    #[test]
    fn the_complement_stays_on_every_grid() {
        for tick in Tick::ALL {
            for step in 1..=tick.levels() {
                let price = Price::new(step * tick.ten_thousandths()).expect("on the grid");
                assert!(tick.holds(price) && tick.holds(price.complement()));
            }
        }
    }

    #[test]
    fn costs_round_both_ways_and_purchases_never_overspend() {
        let third = Price::new(3_333).expect("in range");
        assert_eq!(third.cost_floor(Shares(1)), Collateral(0));
        assert_eq!(third.cost_ceil(Shares(1)), Collateral(1));
        let bought = third.shares_for(Collateral(1_000));
        assert!(third.cost_ceil(bought) <= Collateral(1_000));
    }

    #[test]
    fn costs_are_the_same_on_both_sides_of_what_64_bits_hold() {
        for price in [1, 5, 3_333, 9_999].map(|price| Price::new(price).expect("in range")) {
            let last = u64::MAX / u64::from(price.0);
            let bounds = [0, last, last.saturating_add(1), u64::MAX - 10_000];
            for shares in
                bounds.into_iter().flat_map(|bound| bound.saturating_sub(9)..=bound.saturating_add(9))
            {
                let exact = u128::from(shares) * u128::from(price.0);
                let (floor, ceil) = (price.cost_floor(Shares(shares)), price.cost_ceil(Shares(shares)));
                assert_eq!(u128::from(floor.0), exact / 10_000, "{shares} at {price:?}");
                assert_eq!(u128::from(ceil.0), exact.div_ceil(10_000), "{shares} at {price:?}");
            }
        }
    }
}
