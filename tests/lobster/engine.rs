//! The engine's book, with the shortest walk over it that can be called a market.
//!
//! Ladder, queues, arena and index are those that shards use, and so are the sums of a fill. A
//! shard's other work (money, frames, self-trades) is left out: this is about the book.

use super::messages::Side as Way;
use super::twin::{Budget, Fill};
use outcry::book::legs::{is_dust, legs};
use outcry::book::orders::{NEVER, Resting};
use outcry::book::{Books, Face};
use outcry::domain::order::Ratio;
use outcry::domain::price::PRICE_ONE;
use outcry::domain::{Collateral, MarketNo, OrderId, Outcome, Position, Price, Shares, Side, Tick, WalletNo};

const MARKET: MarketNo = MarketNo(0);

/// More than ever rest at once in the hour; and many times the bytes of one ladder at this tick.
const RESTING_MAX: u32 = 50_000;
const BOOKS_BYTES: u64 = 1 << 20;
const SECRET: u64 = 0x9e37_79b9_7f4a_7c15;

pub struct Engine {
    books: Books,
    tick: Tick,
}

fn side(way: Way) -> Side {
    match way {
        Way::Buy => Side::Buy,
        Way::Sell => Side::Sell,
    }
}

fn price(ten_thousandths: u64) -> Price {
    Price::new(u16::try_from(ten_thousandths).unwrap()).unwrap()
}

fn id(order: u64) -> OrderId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&order.to_be_bytes());
    OrderId(bytes)
}

impl Engine {
    pub fn new() -> Self {
        Self { books: Books::new(1, RESTING_MAX, BOOKS_BYTES, SECRET), tick: Tick::new(10).unwrap() }
    }

    pub fn rest(&mut self, order: u64, way: Way, limit: u64, shares: u64) -> Vec<Fill> {
        let (fills, left) = self.take(way, limit, shares, Budget::Shares(shares));
        if let Budget::Shares(open @ 1..) = left {
            let new = Resting {
                id: id(order),
                open: Shares(open),
                position: Position(order),
                expires_s: NEVER,
                principal: WalletNo(0),
                market: MARKET,
                price: price(limit),
                side: side(way),
                outcome: Outcome::Zero,
            };
            self.books.rest(self.tick, &new).unwrap();
        }
        fills
    }

    pub fn fill_and_kill(&mut self, way: Way, limit: u64, shares: u64) -> Vec<Fill> {
        let budget = match way {
            Way::Buy => Budget::Collateral(price(limit).cost_floor(Shares(shares)).0),
            Way::Sell => Budget::Shares(shares),
        };
        self.take(way, limit, shares, budget).0
    }

    /// Decreases an order in place: it keeps its turn.
    pub fn decrease(&mut self, order: u64, shares: u64) {
        let Some(slot) = self.books.orders().find(&id(order)) else { return };
        if self.books.orders()[slot].open.0 <= shares {
            self.books.remove(slot);
        } else {
            self.books.reduce(slot, Shares(shares));
        }
    }

    pub fn remove(&mut self, order: u64) -> bool {
        let found = self.books.orders().find(&id(order));
        found.map(|slot| self.books.remove(slot)).is_some()
    }

    /// Every resting order in the order in which it trades, bids first: id, price, open shares.
    pub fn resting(&self) -> Vec<(u64, u64, u64)> {
        let shown = |slot| {
            let orders = self.books.orders();
            let order = &orders[slot];
            (orders[slot].position.0, u64::from(order.price.ten_thousandths()), order.open.0)
        };
        self.books.walk(MARKET).map(shown).collect()
    }

    fn take(&mut self, way: Way, limit: u64, signed: u64, mut budget: Budget) -> (Vec<Fill>, Budget) {
        let taker = side(way);
        let face = Face::of(taker, Outcome::Zero, price(limit));
        let ratio = Ratio { collateral: price(limit).cost_floor(Shares(signed)), shares: Shares(signed) };
        let mut fills = Vec::new();
        while let Some(slot) = self.books.first(MARKET, taker.opposite()) {
            let maker = self.books.orders()[slot];
            if !face.reaches(maker.face().price) {
                break;
            }
            let shares = wanted(budget, maker.price).min(maker.open.0);
            let Some(sums) = legs(taker, maker.side, maker.price, Shares(shares), ratio) else {
                if is_dust(maker.price, maker.open) {
                    self.books.remove(slot);
                    continue;
                }
                break;
            };
            fills.push(Fill {
                maker: self.books.orders()[slot].position.0,
                price: u64::from(maker.price.ten_thousandths()),
                shares,
                collateral: sums.maker.0,
            });
            if maker.open.0 == shares {
                self.books.remove(slot);
            } else {
                self.books.reduce(slot, Shares(shares));
            }
            budget = spent(budget, shares, sums.taker);
            if matches!(budget, Budget::Shares(0) | Budget::Collateral(0)) {
                break;
            }
        }
        (fills, budget)
    }
}

fn wanted(budget: Budget, price: Price) -> u64 {
    match budget {
        Budget::Shares(left) => left,
        Budget::Collateral(left) => {
            let shares = u128::from(left) * u128::from(PRICE_ONE) / u128::from(price.ten_thousandths());
            u64::try_from(shares).unwrap()
        }
    }
}

fn spent(budget: Budget, shares: u64, collateral: Collateral) -> Budget {
    match budget {
        Budget::Shares(left) => Budget::Shares(left - shares),
        Budget::Collateral(left) => Budget::Collateral(left - collateral.0),
    }
}
