//! Configured terms: the smallest order, and what a market gets by default.

use super::options::Options;
use super::within;
use crate::catalog::MarketDefaults;
use crate::domain::amount::{ONE, ORDER_AMOUNT_MAX};
use crate::domain::fee::BUILDER_SHARE_BPS_MAX;
use crate::domain::{Collateral, FeeSchedule, Shares, Tick};
use crate::json::decimal;

/// What a market gets where its row is silent.
pub(in crate::server) fn market_defaults(options: &Options) -> Result<MarketDefaults, String> {
    let narrow = "bounded just before";
    let share =
        within("fees.builder_share_bps", options.fees_builder_share_bps, 0, BUILDER_SHARE_BPS_MAX.into())?;
    let fee = FeeSchedule {
        rate: u32::try_from(within("fees.rate", options.fees_rate, 0, ONE)?).expect(narrow),
        exponent: u8::try_from(within("fees.exponent", options.fees_exponent, 1, 2)?).expect(narrow),
        builder_share_bps: u16::try_from(share).expect(narrow),
        ..FeeSchedule::FREE
    };
    let min_size = amount("orders.min_size", &options.orders_min_size, "shares")?;
    Ok(MarketDefaults { tick: Tick::new(100).expect("0.01 is a tick"), min_size: Shares(min_size), fee })
}

/// The smallest marketable BUY.
pub(super) fn min_notional(options: &Options) -> Result<Collateral, String> {
    amount("orders.min_notional", &options.orders_min_notional, "USDC").map(Collateral)
}

fn amount(name: &str, text: &str, unit: &str) -> Result<u64, String> {
    let amount = decimal::parse_millionths(text.as_bytes()).ok().filter(|&amount| amount <= ORDER_AMOUNT_MAX);
    amount.ok_or_else(|| {
        let most = ORDER_AMOUNT_MAX / ONE;
        format!("{name}: got {text:?}; allowed: 0 to {most} {unit}, at most six decimals")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_market_can_have_is_no_configuration() {
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            market_defaults(&options).and(min_notional(&options)).map(|_| ())
        };
        assert_eq!(with(|_| ()), Ok(()));
        for (change, expected) in [
            (
                (|options| options.orders_min_size = "x".into()) as fn(&mut Options),
                "orders.min_size: got \"x\"; allowed: 0 to 1000000000 shares, at most six decimals",
            ),
            (
                |options| options.orders_min_size = String::new(),
                "orders.min_size: got \"\"; allowed: 0 to 1000000000 shares, at most six decimals",
            ),
            (
                |options| options.orders_min_notional = "1000000001".into(),
                "orders.min_notional: got \"1000000001\"; allowed: 0 to 1000000000 USDC, at most six decimals",
            ),
            (|options| options.fees_rate = 1_000_001, "fees.rate: got 1000001; allowed: 0 to 1000000"),
            (|options| options.fees_exponent = 0, "fees.exponent: got 0; allowed: 1 to 2"),
            (
                |options| options.fees_builder_share_bps = 9_001,
                "fees.builder_share_bps: got 9001; allowed: 0 to 9000",
            ),
        ] {
            assert_eq!(with(change), Err(expected.to_owned()));
        }
    }
}
