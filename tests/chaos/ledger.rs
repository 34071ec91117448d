//! What one client knows about itself, from answers and its stream alone.
//!
//! - Balances are those of the last `GET /account`, changed by every later trade on the stream and by every
//!   split and merge that was answered. In addition all trades since the first account are summed, so that
//!   no later account hides a mistake.
//! - An order's state is what the stream said last. Answers are promises: they are kept beside it, and at
//!   the end both must agree.
//! - An event must have the next number. A missing or repeated one is an error at once.
//! - Where the stream cannot continue, `GET /account` says what is there now, and the records of orders and
//!   the list of trades say how the rest ended.

use crate::common::text;
use crate::common::trader::micro;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The known state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No answer or event has said that it was taken.
    Signed,
    Live,
    Filled,
    Ended,
}

impl State {
    /// The state that a record's status means.
    pub fn of(status: &str) -> Self {
        match status {
            "LIVE" => Self::Live,
            "MATCHED" => Self::Filled,
            "CANCELED" | "CANCELED_MARKET_RESOLVED" => Self::Ended,
            other => panic!("{other} is no status"),
        }
    }
}

/// What a client signed. Price and size in millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub token: String,
    pub side: &'static str,
    pub price: u64,
    pub size: u64,
}

/// What an answer said about an order that it did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// It was refused, and no copy of it was still on its way.
    Refused,
    /// It was cancelled.
    Cancelled,
    /// It had already left the book.
    Gone,
    /// It was unknown, and will be refused when it arrives.
    Buried,
}

/// An order and everything that was said about it.
#[derive(Clone, Debug)]
pub struct Order {
    pub terms: Terms,
    pub state: State,
    pub filled: u64,
    /// The answer that took it.
    pub taken: Option<Value>,
    /// What other answers said about it.
    pub said: BTreeSet<Word>,
    /// Its state is from its record, and the stream may not have reported it yet.
    ahead: bool,
}

/// An order's part in a trade. Price and shares in millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    pub order: String,
    pub token: String,
    pub buys: bool,
    pub price: u64,
    pub shares: u64,
}

/// A client's part in a trade.
#[derive(Clone, Debug)]
pub struct Trade {
    pub legs: Vec<Leg>,
    /// The stream has reported it, so it has changed the balances.
    pub streamed: bool,
    /// The stream has reported that it is final.
    pub confirmed: bool,
}

/// What a client has, in millionths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    pub collateral: i128,
    pub shares: BTreeMap<String, i128>,
}

impl Balances {
    /// Those of `GET /account`.
    pub fn of(account: &Value) -> Self {
        let collateral = i128::from(micro(text(&account["balances"][0]["balance"])));
        let rows = account["positions"].as_array().unwrap().iter();
        let held = rows.map(|row| (text(&row["token_id"]).to_owned(), micro(text(&row["size"])).into()));
        Self { collateral, shares: held.collect() }
    }

    /// Applies a leg of this client to the balances.
    pub fn trade(&mut self, leg: &Leg) {
        let direction = if leg.buys { 1 } else { -1 };
        self.collateral -= direction * i128::from(leg.shares) * i128::from(leg.price) / 1_000_000;
        *self.shares.entry(leg.token.clone()).or_default() += direction * i128::from(leg.shares);
    }

    /// The balances without empty positions.
    pub fn whole(mut self) -> Self {
        self.shares.retain(|_, shares| *shares != 0);
        self
    }
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub orders: BTreeMap<String, Order>,
    pub trades: BTreeMap<String, Trade>,
    pub balances: Balances,
    /// The balances without trades: the first account, and every split and merge since.
    pub untraded: Balances,
    pub sequence: u64,
    pub stream_id: String,
}

impl Ledger {
    pub fn sign(&mut self, id: &str, terms: Terms) {
        let order = Order {
            terms,
            state: State::Signed,
            filled: 0,
            taken: None,
            said: BTreeSet::new(),
            ahead: false,
        };
        assert!(self.orders.insert(id.to_owned(), order).is_none(), "every order has a salt of its own");
    }

    /// Live orders, as far as the stream has reported.
    pub fn live(&self) -> impl Iterator<Item = (&String, &Order)> {
        self.orders.iter().filter(|(_, order)| order.state == State::Live)
    }

    /// Takes the next event of the stream.
    pub fn note(&mut self, event: &Value) -> Result<(), String> {
        if event["sequence"].as_u64() != Some(self.sequence + 1) {
            return Err(format!("behind {} came {event}", self.sequence));
        }
        self.sequence += 1;
        match text(&event["event_type"]) {
            "order" => self.note_order(event),
            "trade" => self.note_trade(event),
            _ => Err(format!("an event of no known kind: {event}")),
        }
    }

    fn note_order(&mut self, event: &Value) -> Result<(), String> {
        let order = self.orders.get_mut(text(&event["id"]));
        let order = order.ok_or_else(|| format!("an order that was never signed: {event}"))?;
        let kind = text(&event["type"]);
        if order.ahead && kind != "UPDATE" {
            (order.state, order.filled, order.ahead) = (State::Signed, 0, false);
        }
        let filled = micro(text(&event["size_matched"]));
        let fits = match (kind, order.state) {
            ("PLACEMENT", State::Signed) => true,
            ("UPDATE", State::Live) => order.filled < filled,
            ("CANCELLATION", State::Live) => order.filled == filled,
            // An order that is killed on arrival was never placed.
            ("CANCELLATION", State::Signed) => filled == 0,
            _ => false,
        };
        if !fits || order.terms.size < filled {
            return Err(format!("{order:?} cannot become {event}"));
        }
        (order.state, order.filled) = (State::of(text(&event["status"])), filled);
        Ok(())
    }

    fn note_trade(&mut self, event: &Value) -> Result<(), String> {
        let id = text(&event["id"]).to_owned();
        if event["status"] == "CONFIRMED" {
            let known = self.trades.get_mut(&id).filter(|known| known.streamed && !known.confirmed);
            known.ok_or_else(|| format!("confirmed twice, or never told: {event}"))?.confirmed = true;
            return Ok(());
        }
        if self.trades.get(&id).is_some_and(|known| known.streamed) {
            return Err(format!("counted twice: {event}"));
        }
        let legs = self.legs(event);
        for leg in &legs {
            self.balances.trade(leg);
        }
        self.trades.insert(id, Trade { legs, streamed: true, confirmed: false });
        Ok(())
    }

    /// This client's legs of a trade, from its event or its record. A maker has its own orders at their
    /// prices; a taker has the counterpart of all makers.
    pub fn legs(&self, trade: &Value) -> Vec<Leg> {
        let makers = trade["maker_orders"].as_array().unwrap().iter();
        if trade["trader_side"] == "MAKER" {
            let own = makers.filter(|leg| self.orders.contains_key(text(&leg["order_id"])));
            return own.map(|leg| leg_of(&leg["order_id"], &leg["asset_id"], &leg["side"], leg)).collect();
        }
        makers
            .map(|leg| {
                let own = leg_of(&trade["taker_order_id"], &trade["asset_id"], &trade["side"], leg);
                let same = leg["asset_id"] == trade["asset_id"];
                Leg { price: if same { own.price } else { 1_000_000 - own.price }, ..own }
            })
            .collect()
    }

    /// Records an answered split (1) or merge (-1) of a market's pairs.
    pub fn pairs(&mut self, tokens: &[String; 2], direction: i128, amount: u64) {
        for balances in [&mut self.balances, &mut self.untraded] {
            balances.collateral -= direction * i128::from(amount);
            for token in tokens {
                *balances.shares.entry(token.clone()).or_default() += direction * i128::from(amount);
            }
        }
    }

    /// Starts again from `GET /account`; returns the orders whose records must be read.
    pub fn snapshot(&mut self, account: &Value) -> Result<Vec<String>, String> {
        let sequence = account["sequence"].as_u64().unwrap();
        if sequence < self.sequence {
            return Err(format!("the numbers went back from {} to {sequence}", self.sequence));
        }
        self.sequence = sequence;
        text(&account["stream_id"]).clone_into(&mut self.stream_id);
        self.balances = Balances::of(account);
        if self.orders.is_empty() {
            self.untraded = self.balances.clone();
        }
        let mut open = Vec::new();
        for row in account["orders"].as_array().unwrap() {
            let order = self.orders.get_mut(text(&row["id"]));
            let order = order.ok_or_else(|| format!("an order that was never signed: {row}"))?;
            (order.state, order.filled) = (State::Live, micro(text(&row["size_matched"])));
            open.push(text(&row["id"]).to_owned());
        }
        let unknown = self
            .orders
            .iter()
            .filter(|(id, order)| matches!(order.state, State::Signed | State::Live) && !open.contains(*id));
        Ok(unknown.map(|(id, _)| id.clone()).collect())
    }

    /// Takes the record of an order that an account did not list as live; none if there is no record.
    pub fn look(&mut self, id: &str, record: Option<&Value>) -> Result<(), String> {
        let order = self.orders.get_mut(id).expect("only orders of this ledger are looked at");
        let signed = order.state == State::Signed;
        match record.map(|record| (State::of(text(&record["status"])), record)) {
            Some((state @ (State::Filled | State::Ended), record)) => {
                order.ahead = signed;
                (order.state, order.filled) = (state, micro(text(&record["size_matched"])));
                Ok(())
            }
            // The stream will report what came after the account.
            None | Some((State::Live, _)) if signed => Ok(()),
            _ => Err(format!("{id}: {order:?} cannot be {record:?}")),
        }
    }

    /// The balances as the sum of all trades since the start, so that no account in between hides a
    /// mistake.
    pub fn traded(&self) -> Balances {
        let mut balances = self.untraded.clone();
        self.trades.values().flat_map(|trade| &trade.legs).for_each(|leg| balances.trade(leg));
        balances
    }

    /// Takes the list of trades after an account: those that the stream will not report again are in its
    /// balances.
    pub fn list(&mut self, trades: &[Value]) {
        for trade in trades {
            let legs = self.legs(trade);
            self.trades.entry(text(&trade["id"]).to_owned()).or_insert(Trade {
                legs,
                streamed: false,
                confirmed: false,
            });
        }
    }
}

fn leg_of(order: &Value, token: &Value, side: &Value, maker: &Value) -> Leg {
    Leg {
        order: text(order).to_owned(),
        token: text(token).to_owned(),
        buys: side == "BUY",
        price: micro(text(&maker["price"])),
        shares: micro(text(&maker["matched_amount"])),
    }
}
