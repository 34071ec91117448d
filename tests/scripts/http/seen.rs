//! The state as clients see it, and as the twin has it, in the same words.
//!
//! | name | what it says |
//! |---|---|
//! | `alice` | collateral, from `/balance-allowance` |
//! | `alice in m` | shares of both tokens, likewise |
//! | `breaker alice` | how her key's breaker stands, from `/breaker`, once she had one |
//! | `book m` | every live order at its price of token 0, from `/data/orders` of all traders |
//! | `m yes`, `m no` | the levels of `/book`, best last; none of a market that takes no orders |

use super::Run;
use crate::common::trader::{micro, token_text};
use crate::language::{decimal, text};
use crate::names::{BookRow, breaker_text};
use outcry::domain::amount::ONE;
use outcry::domain::{MarketNo, Mode, OrderId, Outcome, Price, Side, WalletNo};
use serde_json::Value;
use std::collections::BTreeMap;

type State = BTreeMap<String, String>;

const OUTCOMES: [(Outcome, &str); 2] = [(Outcome::Zero, "yes"), (Outcome::One, "no")];

impl Run {
    fn market_numbers(&self) -> impl Iterator<Item = MarketNo> + use<> {
        (0..self.names.markets.len()).map(|index| MarketNo(u32::try_from(index).unwrap()))
    }

    fn takes_orders(&self, market: MarketNo) -> bool {
        !matches!(self.twin.markets[market.index()].mode, Mode::Closed | Mode::Resolved)
    }

    /// The twin's state.
    pub fn twin_state(&self) -> State {
        let mut state = State::new();
        for (index, name) in self.names.wallets.iter().enumerate() {
            let wallet = WalletNo(u32::try_from(index).unwrap());
            state.insert(name.clone(), text(self.twin.wallets[index].cell, ONE));
            for market in self.market_numbers() {
                let held = self.twin.shares.get(&(wallet, market)).copied().unwrap_or_default();
                state.insert(self.holding_name(name, market), shares_text(held));
            }
        }
        for name in &self.guarded {
            let (_, key) = self.names.key(name);
            state.insert(format!("breaker {name}"), breaker_text(self.twin.breaker(key)));
        }
        for market in self.market_numbers() {
            self.insert_book(&mut state, market, &self.twin_book(market));
            if self.takes_orders(market) {
                for (outcome, word) in OUTCOMES {
                    let levels = levels_text(&self.twin_book(market), outcome);
                    state.insert(format!("{} {word}", self.names.markets[market.index()].name), levels);
                }
            }
        }
        state
    }

    /// The state that the routes show.
    pub fn seen(&mut self) -> State {
        let mut state = State::new();
        for index in 0..self.names.wallets.len() {
            let name = self.names.wallets[index].clone();
            let kind = self.people.wallets[index].kind as u8;
            let path = format!("/balance-allowance?asset_type=COLLATERAL&signature_type={kind}");
            state.insert(name.clone(), text(self.balance(&name, &path), ONE));
            for market in self.market_numbers() {
                let held = self.market(market).tokens.map(|token| {
                    let token = token_text(&token);
                    let path = format!(
                        "/balance-allowance?asset_type=CONDITIONAL&signature_type={kind}&token_id={token}"
                    );
                    self.balance(&name, &path)
                });
                state.insert(self.holding_name(&name, market), shares_text(held));
            }
        }
        for name in self.guarded.clone() {
            let said = self.people.trader(&name).read(&mut self.site.public, "/breaker");
            let [quantity, filled] = ["quantity", "filled"].map(|field| micro(said[field].as_str().unwrap()));
            let tripped = said["tripped"] == true;
            let breaker = (quantity > 0).then_some((filled, quantity, tripped));
            state.insert(format!("breaker {name}"), breaker_text(breaker));
        }
        let rows = self.live_rows();
        for market in self.market_numbers() {
            let book: Vec<BookRow> =
                rows.iter().filter(|(row, _)| *row == market).map(|(_, row)| *row).collect();
            self.insert_book(&mut state, market, &book);
            for (outcome, word) in OUTCOMES {
                if let Some(levels) = self.levels(market, outcome) {
                    state.insert(format!("{} {word}", self.names.markets[market.index()].name), levels);
                }
            }
        }
        state
    }

    fn holding_name(&self, wallet: &str, market: MarketNo) -> String {
        format!("{wallet} in {}", self.names.markets[market.index()].name)
    }

    fn insert_book(&self, state: &mut State, market: MarketNo, rows: &[BookRow]) {
        let name = &self.names.markets[market.index()].name;
        state.insert(format!("book {name}"), self.names.book_text(rows));
    }

    fn balance(&mut self, who: &str, path: &str) -> u64 {
        let said = self.people.trader(who).read(&mut self.site.public, path);
        said["balance"].as_str().unwrap().parse().unwrap()
    }

    /// The live orders of all traders, each market's in the order of its queues.
    fn live_rows(&mut self) -> Vec<(MarketNo, BookRow)> {
        let tokens: BTreeMap<String, (MarketNo, Outcome)> = self
            .market_numbers()
            .flat_map(|market| {
                let tokens = self.market(market).tokens;
                OUTCOMES.map(|(outcome, _)| (token_text(&tokens[outcome.index()]), (market, outcome)))
            })
            .collect();
        let owners: Vec<String> =
            self.names.wallets.iter().filter(|name| !name.contains('.')).cloned().collect();
        let mut rows = Vec::new();
        for owner in owners {
            for order in self.people.trader(&owner).pages(&mut self.site.public, "/data/orders") {
                let (market, outcome) = tokens[order["asset_id"].as_str().unwrap()];
                rows.push((market, row(&order, outcome)));
            }
        }
        rows.sort_by_key(|(_, row)| (side_and_price(row), self.place_in_queue(&row.id)));
        rows
    }

    /// The order's place in the sequence in which orders came to rest, which nothing changes.
    fn place_in_queue(&self, id: &OrderId) -> usize {
        self.placed.iter().position(|placed| placed == id).unwrap_or(usize::MAX)
    }

    /// One token's `/book` as text; none if the market takes no orders.
    fn levels(&mut self, market: MarketNo, outcome: Outcome) -> Option<String> {
        let token = token_text(&self.market(market).tokens[outcome.index()]);
        let answer = self.site.public.request("GET", &format!("/book?token_id={token}"), "", b"").unwrap();
        if answer.status != 200 {
            assert!(!self.takes_orders(market), "{} at {}", answer.json(), self.at);
            return None;
        }
        let book = answer.json();
        let side = |name: &str| {
            let levels = book[name].as_array().unwrap().iter();
            let levels = levels.map(|level| {
                let price = decimal(level["price"].as_str().unwrap(), 10_000).unwrap();
                format!("{}@{}", level["size"].as_str().unwrap(), text(price, 100))
            });
            levels.collect::<Vec<_>>().join(" ")
        };
        Some(format!("{} | {}", side("bids"), side("asks")))
    }

    pub fn twin_book(&self, market: MarketNo) -> Vec<BookRow> {
        let mut orders: Vec<_> = self.twin.orders.iter().filter(|order| order.market == market).collect();
        orders.sort_by_key(|order| order.queue);
        let rows = orders.into_iter().map(|order| BookRow {
            id: order.id,
            side: order.side,
            outcome: order.outcome,
            price: order.price,
            open: order.open,
            reserved: 0,
        });
        let mut rows: Vec<BookRow> = rows.collect();
        rows.sort_by_key(side_and_price);
        rows
    }

    pub fn twin_has(&self, wallet: WalletNo, market: MarketNo) -> String {
        let held = self.twin.shares.get(&(wallet, market)).copied().unwrap_or_default();
        format!("{} {}", text(self.twin.wallets[wallet.index()].cell, ONE), shares_text(held))
    }

    /// Everything that came in is in the wallets, reserved, behind shares or among the fees, and
    /// every share has its counterpart. The wallets' part is what clients see, by [`Run::settles`].
    pub fn conserved(&mut self) {
        let wallets: u64 = self.twin.wallets.iter().map(|wallet| wallet.cell).sum();
        let reserved: u64 = self.twin.orders.iter().map(|order| order.reserved).sum();
        let mut behind = 0;
        for market in self.market_numbers() {
            let row = self.site.look_up(&format!("/markets/{}", self.market(market).id));
            let pairs = micro(row["pairs"].as_str().unwrap());
            behind += pairs;
            let holdings = self.twin.shares.iter().filter(|((_, other), _)| *other == market);
            let held = holdings.fold([0, 0], |sum, (_, held)| [sum[0] + held[0], sum[1] + held[1]]);
            if self.twin.markets[market.index()].payout.is_none() {
                assert_eq!(held, [pairs; 2], "shares and what is behind them after {}", self.at);
            }
        }
        let there = wallets + reserved + behind + self.twin.fees;
        assert_eq!(there, self.people.given, "what was given is there after {}", self.at);
    }
}

/// A live order as its record shows it.
fn row(order: &Value, outcome: Outcome) -> BookRow {
    let of = |name: &str| order[name].as_str().unwrap();
    let id = OrderId(outcry::domain::text::parse_hex(of("id").as_bytes()).unwrap());
    assert_eq!(of("status"), "LIVE", "{order}");
    let price = decimal(of("price"), 10_000).unwrap();
    BookRow {
        id,
        side: if of("side") == "BUY" { Side::Buy } else { Side::Sell },
        outcome,
        price: Price::new(u16::try_from(price).unwrap()).unwrap(),
        open: micro(of("original_size")) - micro(of("size_matched")),
        reserved: 0,
    }
}

fn shares_text(held: [u64; 2]) -> String {
    format!("yes {} no {}", text(held[0], ONE), text(held[1], ONE))
}

/// Bids before asks, best first.
fn side_and_price(row: &BookRow) -> (u8, u16) {
    match row.face_side() {
        Side::Buy => (0, 10_000 - row.face_price().ten_thousandths()),
        Side::Sell => (1, row.face_price().ten_thousandths()),
    }
}

/// The levels that a book shows for one token, best last.
fn levels_text(rows: &[BookRow], outcome: Outcome) -> String {
    let mut sides = [BTreeMap::new(), BTreeMap::new()];
    for row in rows {
        let mirrored = outcome == Outcome::One;
        let side = if mirrored { row.face_side().opposite() } else { row.face_side() };
        let price = if mirrored { row.face_price().complement() } else { row.face_price() };
        *sides[side as usize].entry(price.ten_thousandths()).or_insert(0) += row.open;
    }
    let level = |(price, size): (&u16, &u64)| format!("{}@{}", text(*size, ONE), text((*price).into(), 100));
    let bids: Vec<String> = sides[Side::Buy as usize].iter().map(level).collect();
    let asks: Vec<String> = sides[Side::Sell as usize].iter().rev().map(level).collect();
    format!("{} | {}", bids.join(" "), asks.join(" "))
}
