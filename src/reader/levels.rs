//! The price levels of one market, in terms of token 0, and as either token sees them.
//!
//! An ask for token 1 at *p* is a bid for token 0 at 1-*p*, so one pair of maps serves both tokens.
//! A level is the sum of the open shares at its price, and is removed when that is zero.

use crate::domain::{Outcome, Price, Shares, Side};
use std::collections::BTreeMap;

/// Open shares by price and side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    bids: BTreeMap<Price, u128>,
    asks: BTreeMap<Price, u128>,
    value: u128,
}

/// One price and what is open there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) price: Price,
    pub(super) shares: Shares,
}

/// Turns a price of token 0 into one of `outcome`, or back.
pub(super) const fn seen_from(outcome: Outcome, price: Price) -> Price {
    match outcome {
        Outcome::Zero => price,
        Outcome::One => price.complement(),
    }
}

/// `open` as shares, at most the largest number of shares.
fn shown(open: u128) -> Shares {
    Shares(u64::try_from(open).unwrap_or(u64::MAX))
}

fn value(side: Side, price: Price, shares: Shares) -> u128 {
    let bid = match side {
        Side::Buy => price,
        Side::Sell => price.complement(),
    };
    u128::from(bid.ten_thousandths()) * u128::from(shares.0)
}

impl Levels {
    /// Adds an order of `outcome` that rests with `shares` open.
    pub(super) fn add(&mut self, outcome: Outcome, side: Side, price: Price, shares: Shares) {
        *self.of(outcome, side).entry(seen_from(outcome, price)).or_default() += u128::from(shares.0);
        self.value += value(side, price, shares);
    }

    /// Takes `shares` from what an order of `outcome` has open.
    pub(super) fn take(&mut self, outcome: Outcome, side: Side, price: Price, shares: Shares) {
        let worth = value(side, price, shares);
        let levels = self.of(outcome, side);
        let price = seen_from(outcome, price);
        let open = levels.get_mut(&price).expect("an order that rests has a level");
        *open = open.checked_sub(u128::from(shares.0)).expect("a level holds all its orders");
        if *open == 0 {
            levels.remove(&price);
        }
        self.value -= worth;
    }

    /// The shares open at a price of token 0.
    pub(super) fn open_at(&self, side: Side, price: Price) -> Shares {
        let levels = match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        };
        shown(levels.get(&price).copied().unwrap_or(0))
    }

    /// Sets a level of token 0 to what it was at another time; [`Self::value`] does not follow.
    pub(super) fn set(&mut self, side: Side, price: Price, shares: Shares) {
        let levels = self.of(Outcome::Zero, side);
        if shares.is_zero() {
            levels.remove(&price);
        } else {
            levels.insert(price, shares.0.into());
        }
    }

    /// How many levels both sides have together.
    pub(super) fn count(&self) -> usize {
        self.bids.len() + self.asks.len()
    }

    /// What all orders would cost as bids, in 1e-10 of collateral: an ask counts as the bid for the
    /// other outcome that it also is. So the value is the same for both tokens.
    pub(super) const fn value(&self) -> u128 {
        self.value
    }

    /// The levels of one side as `outcome` sees them, best level last.
    pub(super) fn side(&self, outcome: Outcome, side: Side) -> impl Iterator<Item = Level> {
        let (ascending, descending) = match side.seen_from(outcome) {
            Side::Buy => (Some(self.bids.iter()), None),
            Side::Sell => (None, Some(self.asks.iter().rev())),
        };
        let levels = ascending.into_iter().flatten().chain(descending.into_iter().flatten());
        levels.map(move |(&price, &open)| Level { price: seen_from(outcome, price), shares: shown(open) })
    }

    /// The best price of one side as `outcome` sees it.
    pub(super) fn best(&self, outcome: Outcome, side: Side) -> Option<Price> {
        let price = match side.seen_from(outcome) {
            Side::Buy => self.bids.last_key_value(),
            Side::Sell => self.asks.first_key_value(),
        };
        price.map(|(&price, _)| seen_from(outcome, price))
    }

    fn of(&mut self, outcome: Outcome, side: Side) -> &mut BTreeMap<Price, u128> {
        match side.seen_from(outcome) {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(cents: u16) -> Price {
        Price::new(cents * 100).expect("in range")
    }

    #[test]
    fn both_tokens_see_one_book_with_the_best_level_last() {
        let mut levels = Levels::default();
        levels.add(Outcome::Zero, Side::Buy, price(40), Shares(1));
        levels.add(Outcome::Zero, Side::Buy, price(45), Shares(2));
        levels.add(Outcome::One, Side::Sell, price(55), Shares(3));
        levels.add(Outcome::One, Side::Buy, price(30), Shares(4));
        levels.add(Outcome::Zero, Side::Sell, price(80), Shares(5));
        let seen = |outcome, side| -> Vec<_> {
            let cents = |level: Level| (level.price.ten_thousandths() / 100, level.shares.0);
            levels.side(outcome, side).map(cents).collect()
        };
        assert_eq!(seen(Outcome::Zero, Side::Buy), [(40, 1), (45, 5)]);
        assert_eq!(seen(Outcome::Zero, Side::Sell), [(80, 5), (70, 4)]);
        assert_eq!(seen(Outcome::One, Side::Buy), [(20, 5), (30, 4)]);
        assert_eq!(seen(Outcome::One, Side::Sell), [(60, 1), (55, 5)]);
        for outcome in [Outcome::Zero, Outcome::One] {
            for side in [Side::Buy, Side::Sell] {
                let last = levels.side(outcome, side).last().map(|level| level.price);
                assert_eq!(levels.best(outcome, side), last);
            }
        }
    }

    #[test]
    fn an_emptied_level_is_gone() {
        let mut levels = Levels::default();
        levels.add(Outcome::One, Side::Buy, price(30), Shares(4));
        levels.take(Outcome::One, Side::Buy, price(30), Shares(1));
        assert_eq!(levels.best(Outcome::Zero, Side::Sell), Some(price(70)));
        levels.take(Outcome::One, Side::Buy, price(30), Shares(3));
        assert_eq!(levels, Levels::default());
    }
}
