//! Compares a client's account of itself with the exchange's.

use super::ledger::{Balances, Ledger, Order, State, Word};
use crate::common::text;
use crate::common::trader::micro;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most trades that an order's record names.
const ASSOCIATED_TRADES_MAX: usize = 1_000;

/// What the exchange says about a client.
#[derive(Clone, Debug)]
pub struct Told {
    /// The record of each order that was signed; none if the exchange does not know it.
    pub orders: BTreeMap<String, Option<Value>>,
    /// `/data/orders` and `/data/trades`, all pages.
    pub live: Vec<Value>,
    pub trades: Vec<Value>,
    /// `/balance-allowance`.
    pub balances: Balances,
    /// `/account`.
    pub account: Value,
}

/// Every difference between the two, and every answer that was not kept.
pub fn differences(ledger: &Ledger, told: &Told) -> Vec<String> {
    let mut found = Differences(Vec::new());
    found.orders(ledger, told);
    found.trades(ledger, told);
    found.balances(ledger, told);
    for (id, order) in &ledger.orders {
        found.promises(ledger, id, order);
    }
    found.0
}

struct Differences(Vec<String>);

impl Differences {
    #[allow(clippy::needless_pass_by_value, reason = "so that what is compared reads as it is")]
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, own: T, told: T) {
        if own != told {
            self.0.push(format!("{what}: by the client {own:?}, by the exchange {told:?}"));
        }
    }

    fn orders(&mut self, ledger: &Ledger, told: &Told) {
        let in_trades = trades_of_orders(ledger);
        for (id, order) in &ledger.orders {
            let Some(record) = told.orders.get(id).and_then(Option::as_ref) else {
                self.same(id, order.state, State::Signed);
                continue;
            };
            self.same(id, order.state, State::of(text(&record["status"])));
            let number = |name: &str| micro(text(&record[name]));
            self.same(id, order.filled, number("size_matched"));
            // A buy for an amount may get more shares than were signed, and then asked for these.
            let immediate = ["FAK", "FOK"].contains(&text(&record["order_type"]));
            let filled = if immediate && order.terms.side == "BUY" { order.filled } else { 0 };
            let size = order.terms.size.max(filled);
            let own = (order.terms.price, size, order.terms.side, &order.terms.token[..]);
            let (side, token) = (text(&record["side"]), text(&record["asset_id"]));
            self.same(id, own, (number("price"), number("original_size"), side, token));
            let own = in_trades.get(&id[..]).cloned().unwrap_or_default();
            if own.len() < ASSOCIATED_TRADES_MAX {
                self.same(id, own, ids(&record["associate_trades"]));
            }
        }
        let live: BTreeSet<&str> = ledger.live().map(|(id, _)| &id[..]).collect();
        for (what, rows) in
            [("/data/orders", &told.live), ("/account", told.account["orders"].as_array().unwrap())]
        {
            let listed: BTreeSet<&str> = rows.iter().map(|row| text(&row["id"])).collect();
            self.same(&format!("{what}, an order twice"), rows.len(), listed.len());
            self.same(what, live.clone(), listed);
        }
    }

    fn trades(&mut self, ledger: &Ledger, told: &Told) {
        let own: BTreeSet<&str> = ledger.trades.keys().map(String::as_str).collect();
        let listed: BTreeSet<&str> = told.trades.iter().map(|trade| text(&trade["id"])).collect();
        self.same("a trade twice", told.trades.len(), listed.len());
        self.same("trades", own, listed);
        for trade in &told.trades {
            if let Some(known) = ledger.trades.get(text(&trade["id"])) {
                self.same(text(&trade["id"]), &known.legs, &ledger.legs(trade));
            }
        }
        let mut filled: BTreeMap<&str, u64> = BTreeMap::new();
        for leg in ledger.trades.values().flat_map(|trade| &trade.legs) {
            *filled.entry(&leg.order).or_default() += leg.shares;
        }
        for (id, order) in &ledger.orders {
            let sum = filled.get(&id[..]).copied().unwrap_or_default();
            self.same(&format!("{id}, filled and in trades"), order.filled, sum);
        }
    }

    fn balances(&mut self, ledger: &Ledger, told: &Told) {
        let account = &told.account;
        let of_account = Balances::of(account).whole();
        for (what, told) in [("balances", told.balances.clone().whole()), ("account", of_account)] {
            self.same(what, ledger.balances.clone().whole(), told.clone());
            self.same(&format!("{what}, from the beginning"), ledger.traded().whole(), told);
        }
        self.same("sequence", Some(ledger.sequence), account["sequence"].as_u64());
        self.same("stream", &ledger.stream_id[..], text(&account["stream_id"]));
    }

    /// Whether what answers said about an order turned out to be true.
    fn promises(&mut self, ledger: &Ledger, id: &str, order: &Order) {
        let mut kept = |what: &str, holds: bool| {
            if !holds {
                self.0.push(format!("{id}: an answer said {what}, but it is {order:?}"));
            }
        };
        let unfilled_end = order.state == State::Ended && order.filled == 0;
        for word in &order.said {
            let holds = match word {
                Word::Refused | Word::Buried => order.state == State::Signed || unfilled_end,
                Word::Cancelled => order.state == State::Ended,
                Word::Gone => order.state != State::Live,
            };
            kept(&format!("{word:?}"), holds);
        }
        let Some(taken) = &order.taken else { return };
        kept("taken", order.state != State::Signed);
        let amount = |name: &str| match text(&taken[name]) {
            "" => 0,
            amount => micro(amount),
        };
        let name = if order.terms.side == "BUY" { "takingAmount" } else { "makingAmount" };
        let mut in_trades = 0;
        for trade in taken["tradeIDs"].as_array().unwrap() {
            let known = ledger.trades.get(text(trade));
            kept("a trade", known.is_some());
            let own = known.iter().flat_map(|trade| &trade.legs).filter(|leg| leg.order == id);
            in_trades += own.map(|leg| leg.shares).sum::<u64>();
        }
        kept("matched", amount(name) == in_trades);
    }
}

fn trades_of_orders(ledger: &Ledger) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (id, trade) in &ledger.trades {
        for leg in &trade.legs {
            of.entry(&leg.order).or_default().insert(id);
        }
    }
    of
}

fn ids(list: &Value) -> BTreeSet<&str> {
    list.as_array().unwrap().iter().map(text).collect()
}
