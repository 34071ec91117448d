//! The taker's fee, and (where a schedule says so) the maker's.
//!
//! fee = shares x rate x (p x (1-p))^exponent in USDC, rounded half up to five decimals, zero
//! below 0.00001 (the formula of `kuest-py-clob-client` and Polymarket's fee page). A builder
//! share of s bps grosses it up: ceil5(base x 10000 / (10000 - s)). Each fill is rounded by itself.

use super::amount::{Collateral, Shares};
use super::price::{PRICE_ONE, Price};

/// Millionths in the rate 1, which is the largest: with it a share bought at 0.50 costs 0.25 more.
pub const RATE_ONE: u32 = 1_000_000;

/// The largest share of a builder in basis points, at which the fee is ten times its base.
pub const BUILDER_SHARE_BPS_MAX: u16 = 9_000;

/// Fees are whole multiples of this many millionths: five decimals of a USDC.
const FEE_STEP: u64 = 10;

/// What a market charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeSchedule {
    /// The rate in millionths: 44,100 is 0.0441. 0..=1,000,000.
    pub rate: u32,
    /// The exponent of p(1-p): 1 or 2.
    pub exponent: u8,
    /// True if makers pay nothing, as at every known venue.
    pub taker_only: bool,
    /// A builder's share in basis points of the grossed-up fee, up to [`BUILDER_SHARE_BPS_MAX`].
    pub builder_share_bps: u16,
    /// The part of the fee that goes back to makers later, in millionths; for display.
    pub rebate_rate: u32,
    /// Counts the schedules that a market has had, from 0.
    pub version: u32,
}

impl FeeSchedule {
    /// No fee.
    pub const FREE: Self =
        Self { rate: 0, exponent: 1, taker_only: true, builder_share_bps: 0, rebate_rate: 0, version: 0 };

    /// The fee that a taker pays for `shares` filled at `price`.
    #[must_use]
    pub fn taker_fee(&self, shares: Shares, price: Price) -> Collateral {
        if self.rate == 0 || shares.is_zero() {
            return Collateral::ZERO;
        }
        let p = u128::from(price.ten_thousandths());
        let one = u128::from(PRICE_ONE);
        if self.exponent == 1
            && self.builder_share_bps == 0
            && let Some(fee) = self.usual_fee(shares, price)
        {
            return fee;
        }
        // numerator / denominator is the raw fee in millionths of a USDC.
        let (mut numerator, mut denominator) =
            (u128::from(shares.0) * u128::from(self.rate), u128::from(RATE_ONE));
        for _ in 0..self.exponent {
            numerator *= p * (one - p);
            denominator *= one * one;
        }
        if numerator < denominator * u128::from(FEE_STEP) {
            return Collateral::ZERO;
        }
        let step = denominator * u128::from(FEE_STEP);
        let base_steps = (2 * numerator + step) / (2 * step);
        let total_steps = if self.builder_share_bps == 0 {
            base_steps
        } else {
            (base_steps * 10_000).div_ceil(10_000 - u128::from(self.builder_share_bps))
        };
        Collateral(
            u64::try_from(total_steps * u128::from(FEE_STEP)).expect("a fee is at most 2.5 USDC a share"),
        )
    }

    /// A taker's fee with exponent 1 and without a builder's share; `None` if its numerator needs more than 64 bits.
    /// The divisor is a constant, so that nothing is divided.
    fn usual_fee(&self, shares: Shares, price: Price) -> Option<Collateral> {
        const ONE: u64 = PRICE_ONE as u64;
        /// One step of a fee, as a product of shares, rate and p(1-p).
        const STEP: u64 = RATE_ONE as u64 * ONE * ONE * FEE_STEP;
        const TWOS: u32 = (2 * STEP).trailing_zeros();
        let p = u64::from(price.ten_thousandths());
        let raw = u128::from(shares.0) * u128::from(u64::from(self.rate) * (p * (ONE - p)));
        if raw < u128::from(STEP) {
            return Some(Collateral::ZERO);
        }
        let halves = u64::try_from((2 * raw + u128::from(STEP)) >> TWOS).ok()?;
        Some(Collateral(halves / ((2 * STEP) >> TWOS) * FEE_STEP))
    }

    /// The fee that a maker pays for `shares` filled at `price`: nothing if `taker_only`.
    #[must_use]
    pub fn maker_fee(&self, shares: Shares, price: Price) -> Collateral {
        if self.taker_only { Collateral::ZERO } else { self.taker_fee(shares, price) }
    }
}

/// What an open buy may cost, its fee included. The buy counts as this among its wallet's open buys,
/// and under reserved funding this is set aside for it.
#[must_use]
pub fn cost_of_buy(price: Price, open: Shares, fee: &FeeSchedule) -> Collateral {
    price.cost_ceil(open) + fee.maker_fee(open, price)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rate: u32, exponent: u8, builder_share_bps: u16) -> FeeSchedule {
        FeeSchedule { rate, exponent, builder_share_bps, ..FeeSchedule::FREE }
    }

    #[test]
    fn fees_match_the_published_tables() {
        let hundred = Shares(100_000_000);
        let half = Price::new(5_000).expect("in range");
        let cent = Price::new(100).expect("in range");
        for (rate, exponent, share, price, fee) in [
            (44_100, 1, 0, half, 1_102_500),
            (44_100, 1, 3_000, half, 1_575_000),
            (44_100, 1, 3_000, cent, 62_380),
            (72_000, 2, 0, half, 450_000),
            (0, 1, 0, half, 0),
        ] {
            assert_eq!(schedule(rate, exponent, share).taker_fee(hundred, price), Collateral(fee));
        }
    }

    #[test]
    fn makers_pay_only_where_the_schedule_says_so_and_an_open_buy_costs_that_and_its_price_rounded_up() {
        let (half, third) = [5_000, 3_333].map(|price| Price::new(price).expect("in range")).into();
        let hundred = Shares(100_000_000);
        for (taker_only, fee, cost) in [(true, 0, 1), (false, 1_102_500, 1)] {
            let fees = FeeSchedule { taker_only, ..schedule(44_100, 1, 0) };
            assert_eq!(fees.maker_fee(hundred, half), Collateral(fee));
            assert_eq!(cost_of_buy(half, hundred, &fees), Collateral(50_000_000 + fee));
            assert_eq!(cost_of_buy(third, Shares(1), &fees), Collateral(cost));
        }
    }

    #[test]
    fn a_fee_below_a_hundred_thousandth_is_nothing() {
        let half = Price::new(5_000).expect("in range");
        assert_eq!(schedule(40_000, 1, 0).taker_fee(Shares(999), half), Collateral::ZERO);
        assert_eq!(schedule(40_000, 1, 0).taker_fee(Shares(1_000), half), Collateral(10));
    }

    #[test]
    fn a_fee_between_two_steps_is_rounded_up_from_the_middle_and_one_step_is_charged() {
        let half = Price::new(5_000).expect("in range");
        // Both exponents: what is usual is computed in another way.
        for (rate, exponent, shares, fee) in [
            (40_000, 1, 1_499, 10),
            (40_000, 1, 1_500, 20),
            (64_000, 2, 2_499, 0),
            (64_000, 2, 2_500, 10),
            (64_000, 2, 3_749, 10),
            (64_000, 2, 3_750, 20),
        ] {
            let charged = schedule(rate, exponent, 0).taker_fee(Shares(shares), half);
            assert_eq!(charged, Collateral(fee), "{shares} with exponent {exponent}");
        }
    }

    #[test]
    fn usual_fees_are_those_of_the_rule_for_every_price() {
        let amounts = [1, 999, 1_000, 2_500_001, 499_999_999, 7_000_000_000_003, 1_000_000_000_000_000];
        for price in (1..PRICE_ONE).filter_map(Price::new) {
            for (shares, rate) in amounts.into_iter().zip([1, 40_000, 44_100, 72_000, 3, 999_999, RATE_ONE]) {
                let p = u128::from(price.ten_thousandths());
                let raw = u128::from(shares) * u128::from(rate) * p * (10_000 - p);
                let step = 10_u128.pow(6 + 8 + 1);
                let steps = if raw < step { 0 } else { (2 * raw + step) / (2 * step) };
                let fee = schedule(rate, 1, 0).taker_fee(Shares(shares), price);
                assert_eq!(u128::from(fee.0), steps * 10, "{shares} at {price:?}, {rate}");
            }
        }
    }

    #[test]
    fn the_largest_order_at_the_largest_rate_does_not_overflow() {
        let half = Price::new(5_000).expect("in range");
        let fee =
            schedule(RATE_ONE, 2, 9_000).taker_fee(Shares(super::super::amount::ORDER_AMOUNT_MAX), half);
        assert!(fee > Collateral::ZERO);
    }
}
