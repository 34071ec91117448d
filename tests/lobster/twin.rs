//! The obvious book: two maps from price to a queue, walked one order at a time.
//!
//! It knows one market's first token, two parties that never run out of money, and the rules of a
//! meeting: best price first, earliest order first, the maker's price, the maker's sum rounded up
//! as long as the taker stays within the ratio that it signed.

use super::messages::Side;
use std::collections::{BTreeMap, HashMap, VecDeque};

const PRICE_ONE: u128 = 10_000;

/// One maker's part of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    pub maker: u64,
    pub price: u64,
    pub shares: u64,
    pub collateral: u64,
}

#[derive(Clone, Copy)]
struct Resting {
    order: u64,
    open: u64,
}

/// What an incoming order may still take.
#[derive(Clone, Copy)]
pub enum Budget {
    /// This many shares.
    Shares(u64),
    /// This much collateral, for which an immediate buy is signed.
    Collateral(u64),
}

#[derive(Default)]
pub struct Twin {
    bids: BTreeMap<u64, VecDeque<Resting>>,
    asks: BTreeMap<u64, VecDeque<Resting>>,
    places: HashMap<u64, (Side, u64)>,
}

impl Twin {
    /// A limit order: takes what it crosses, and its remainder rests.
    pub fn rest(&mut self, order: u64, side: Side, price: u64, shares: u64) -> Vec<Fill> {
        let (fills, left) = self.take(side, price, shares, Budget::Shares(shares));
        if let Budget::Shares(open @ 1..) = left {
            self.side(side).entry(price).or_default().push_back(Resting { order, open });
            self.places.insert(order, (side, price));
        }
        fills
    }

    /// An immediate order for `shares` at `price`: a buy spends their value, a sell the shares.
    pub fn fill_and_kill(&mut self, side: Side, price: u64, shares: u64) -> Vec<Fill> {
        let budget = match side {
            Side::Buy => Budget::Collateral(value(shares, price)),
            Side::Sell => Budget::Shares(shares),
        };
        self.take(side, price, shares, budget).0
    }

    /// The open size of an order, if it rests.
    pub fn open(&self, order: u64) -> Option<u64> {
        let (side, price) = self.places.get(&order)?;
        let queue = match side {
            Side::Buy => &self.bids[price],
            Side::Sell => &self.asks[price],
        };
        queue.iter().find(|resting| resting.order == order).map(|resting| resting.open)
    }

    /// The price of a resting order.
    pub fn price(&self, order: u64) -> u64 {
        self.places[&order].1
    }

    /// Takes shares off a resting order, which keeps its place; at zero it is removed.
    pub fn decrease(&mut self, order: u64, shares: u64) {
        let Some(open) = self.open(order) else { return };
        if open <= shares {
            self.remove(order);
            return;
        }
        let (side, price) = self.places[&order];
        let queue = self.side(side).get_mut(&price).unwrap();
        queue.iter_mut().find(|resting| resting.order == order).unwrap().open -= shares;
    }

    /// Removes an order; false if it does not rest.
    pub fn remove(&mut self, order: u64) -> bool {
        let Some((side, price)) = self.places.remove(&order) else { return false };
        let levels = self.side(side);
        let queue = levels.get_mut(&price).unwrap();
        queue.retain(|resting| resting.order != order);
        if queue.is_empty() {
            levels.remove(&price);
        }
        true
    }

    /// Price and sum of every level, worst first.
    pub fn levels(&self, side: Side) -> Vec<(u64, u64)> {
        let sum = |(price, queue): (&u64, &VecDeque<Resting>)| {
            (*price, queue.iter().map(|resting| resting.open).sum())
        };
        match side {
            Side::Buy => self.bids.iter().map(sum).collect(),
            Side::Sell => self.asks.iter().rev().map(sum).collect(),
        }
    }

    /// Every resting order with its open size: bids first, each side best first.
    pub fn resting(&self) -> Vec<(u64, u64)> {
        let queues = self.bids.values().rev().chain(self.asks.values());
        queues.flatten().map(|resting| (resting.order, resting.open)).collect()
    }

    fn side(&mut self, side: Side) -> &mut BTreeMap<u64, VecDeque<Resting>> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    /// The first order that this one meets, with its price.
    fn first(&self, side: Side, limit: u64) -> Option<(u64, Resting)> {
        let (price, queue) = match side {
            Side::Buy => self.asks.first_key_value().filter(|(price, _)| **price <= limit)?,
            Side::Sell => self.bids.last_key_value().filter(|(price, _)| limit <= **price)?,
        };
        Some((*price, queue[0]))
    }

    fn take(&mut self, side: Side, limit: u64, signed: u64, mut budget: Budget) -> (Vec<Fill>, Budget) {
        let mut fills = Vec::new();
        while let Some((price, maker)) = self.first(side, limit) {
            let wanted = match budget {
                Budget::Shares(left) => left,
                Budget::Collateral(left) => narrow(u128::from(left) * PRICE_ONE / u128::from(price)),
            };
            let shares = wanted.min(maker.open);
            if value(shares, price) == 0 {
                if shares == maker.open && 0 < shares {
                    self.remove(maker.order);
                    continue;
                }
                break;
            }
            let collateral = paid(side, shares, price, limit, signed);
            fills.push(Fill { maker: maker.order, price, shares, collateral });
            self.decrease(maker.order, shares);
            budget = match budget {
                Budget::Shares(left) => Budget::Shares(left - shares),
                Budget::Collateral(left) => Budget::Collateral(left - collateral),
            };
            if matches!(budget, Budget::Shares(0) | Budget::Collateral(0)) {
                break;
            }
        }
        (fills, budget)
    }
}

/// The collateral of `shares` shares, rounded down.
fn value(shares: u64, price: u64) -> u64 {
    narrow(u128::from(shares) * u128::from(price) / PRICE_ONE)
}

/// What changes hands: a selling maker gets it rounded up if the buyer signed for that much.
fn paid(taker: Side, shares: u64, price: u64, limit: u64, signed: u64) -> u64 {
    let down = value(shares, price);
    if taker == Side::Sell {
        return down;
    }
    let up = narrow((u128::from(shares) * u128::from(price)).div_ceil(PRICE_ONE));
    let within = u128::from(up) * u128::from(signed) <= u128::from(value(signed, limit)) * u128::from(shares);
    if within { up } else { down }
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap()
}
