//! What makers and takers do.
//!
//! All sizes are whole shares and all prices whole cents, and immediate buys, which are for an amount of
//! collateral, are left out. So every leg is a whole number of millionths, and a client can compute it.

use super::PATIENCE;
use super::client::{Act, Client, Role};
use super::ledger::{State, Terms, Word};
use super::link::{Answered, Attempt, Request};
use crate::common::text;
use crate::common::trader::{Signed, Wish, token};
use outcry::domain::Side;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A client with more live orders than this cancels some.
const LIVE_MAX: usize = 30;

/// The most orders that are kept to be posted again.
const BODIES_MAX: usize = 200;

/// Millionths of a share.
const SHARE: u64 = 1_000_000;

impl Client<'_> {
    /// Does one act, and everything needed to know its outcome.
    pub fn act(&mut self) {
        self.listen();
        let live = self.ledger.live().count();
        let maker = self.role != Role::Taker;
        match self.below(20) {
            0 => self.split_or_merge(),
            1 | 2 => self.again(),
            3 => self.cancel_many(),
            4 if self.role == Role::MakerWithSwitch => self.heartbeat(),
            5..=7 if maker => self.replace(),
            8 | 9 if maker => self.batch(),
            10..=12 => self.cancel_some(),
            _ if LIVE_MAX < live => self.cancel_some(),
            _ => self.order(),
        }
    }

    /// Signs an order. A maker's prices are apart from the middle, a taker's cross them.
    pub fn sign(&mut self, market: usize, spread: bool, kinds: &[&'static str]) -> Signed {
        let outcome = self.below(2);
        let side = *self.random.pick(&[Side::Buy, Side::Sell]);
        let kind = if side == Side::Buy { "GTC" } else { *self.random.pick(kinds) };
        let below_middle = if self.role == Role::Taker { 55 } else { 48 };
        let off = if spread { 4 + self.random.below(10) } else { self.random.below(12) };
        let cents = if side == Side::Buy { below_middle - off } else { 100 - below_middle + off };
        let shares = SHARE * (5 + self.random.below(20));
        let text = self.markets[market].tokens[outcome].clone();
        let wish = Wish { kind, ..Wish::of(side, token(&text), 100 * cents, shares) };
        self.trader.clock_ms = Some(self.link.gate.wait().now_ms);
        let mut draft = self.trader.draft(&wish);
        if self.random.below(8) == 0 {
            draft.self_trade = Some(*self.random.pick(&["expire_maker", "expire_both"]));
        }
        draft.post_only = kind == "GTC" && self.role != Role::Taker && self.random.below(4) == 0;
        let signed = self.trader.seal(&draft);
        let side = if side == Side::Buy { "BUY" } else { "SELL" };
        self.ledger.sign(&signed.id_text, Terms { token: text, side, price: 10_000 * cents, size: shares });
        signed
    }

    pub fn order(&mut self) {
        let market = self.below(self.markets.len());
        let kinds: &[&str] =
            if self.role == Role::Taker { &["GTC", "FAK", "FAK", "FOK", "FOK"] } else { &["GTC"] };
        let order = self.sign(market, false, kinds);
        if let Some(said) = self.persist("/order", &order.body, &[&order]) {
            self.took(&order, &said.answer.json(), said.doubt);
            self.keep(order);
        }
    }

    fn batch(&mut self) {
        let market = self.below(self.markets.len());
        let orders: Vec<Signed> =
            (0..2 + self.below(4)).map(|_| self.sign(market, false, &["GTC"])).collect();
        let body = format!("[{}]", joined(&orders));
        let all: Vec<&Signed> = orders.iter().collect();
        let Some(said) = self.persist("/orders", &body, &all) else { return };
        let answers = said.answer.json();
        if said.answer.status == 503 {
            return;
        }
        assert_eq!(said.answer.status, 200, "{answers}");
        assert_eq!(answers.as_array().unwrap().len(), orders.len());
        for (order, answer) in orders.into_iter().zip(answers.as_array().unwrap()) {
            self.took(&order, answer, said.doubt);
            self.keep(order);
        }
    }

    fn replace(&mut self) {
        let market = self.below(self.markets.len());
        let tokens = &self.markets[market].tokens;
        let own = self.ledger.live().filter(|(_, order)| tokens.contains(&order.terms.token));
        let leaving: Vec<String> = own.map(|(id, _)| id.clone()).take(3).collect();
        let orders: Vec<Signed> = (0..=self.below(3)).map(|_| self.sign(market, true, &["GTC"])).collect();
        let if_gone = *self.random.pick(&["refuse", "place"]);
        let cancel = json!(leaving);
        let body =
            format!("{{\"cancel\":{cancel},\"place\":[{}],\"ifGone\":\"{if_gone}\"}}", joined(&orders));
        let all: Vec<&Signed> = orders.iter().collect();
        let Some(said) = self.persist("/replace", &body, &all) else { return };
        let answer = said.answer.json();
        if said.answer.status == 200 {
            self.left(&answer);
        }
        for (at, order) in orders.into_iter().enumerate() {
            let own = if said.answer.status == 200 { &answer["orders"][at] } else { &answer };
            self.took(&order, own, said.doubt);
        }
    }

    /// Sends orders until they are answered. Now and then, when their outcome is unknown, leaves them to
    /// the stream instead, or cancels them whether or not they arrived.
    fn persist(&mut self, path: &str, body: &str, orders: &[&Signed]) -> Option<Answered> {
        let mut unknown_at = 0;
        loop {
            let request = Request::new("POST", path, body);
            match self.link.attempt(&mut self.trader, &request, &mut self.random) {
                Attempt::Answered(answer) => {
                    return Some(Answered { answer, doubt: unknown_at == self.link.generation() });
                }
                Attempt::NotTaken => {}
                Attempt::Unknown => unknown_at = self.link.unanswered,
            }
            match self.random.below(6) {
                0 => return None,
                1 => {
                    let ids: Vec<&str> = orders.iter().map(|order| &order.id_text[..]).collect();
                    self.cancel(&ids);
                    return None;
                }
                _ => {}
            }
        }
    }

    /// Records what an answer said about an order.
    fn took(&mut self, signed: &Signed, answer: &Value, doubt: bool) {
        let order = self.ledger.orders.get_mut(&signed.id_text).expect("it was signed");
        if answer["success"] == true {
            assert_eq!(answer["orderID"], signed.id_text[..], "{answer}");
            let first = order.taken.get_or_insert_with(|| answer.clone());
            assert_eq!(first, answer, "an order has one first answer");
            return;
        }
        let code = text(&answer["code"]);
        *self.link.trouble.refused.lock().unwrap().entry(code.to_owned()).or_default() += 1;
        assert!(order.taken.is_none(), "{answer}, though it was taken: {order:?}");
        assert!(!["invalid_l2", "rate_limited", "invalid_signature"].contains(&code), "{answer}");
        // It may be posted again, and be taken then.
        if !doubt {
            order.said.insert(Word::Refused);
        }
    }

    fn keep(&mut self, order: Signed) {
        if self.bodies.len() == BODIES_MAX {
            let at = self.below(BODIES_MAX);
            self.bodies.swap_remove(at);
        }
        self.bodies.push((order.id_text, order.body));
    }

    /// Posts an order again that was answered before.
    fn again(&mut self) {
        if self.bodies.is_empty() {
            return;
        }
        let at = self.below(self.bodies.len());
        let (id, body) = self.bodies.swap_remove(at);
        let order = self.ledger.orders.get_mut(&id).expect("it was signed");
        order.said.remove(&Word::Refused);
        let known = order.taken.is_some();
        let said = self.ask("POST", "/order", &body);
        if known {
            assert_eq!(said.answer.header("Idempotent-Replayed"), Some("true"), "{}", said.answer.json());
            self.link.trouble.repeats.fetch_add(1, Ordering::Relaxed);
        }
        let signed = Signed { id: outcry::domain::OrderId([0; 32]), id_text: id, body };
        self.took(&signed, &said.answer.json(), said.doubt);
    }

    fn cancel_some(&mut self) {
        let ids: Vec<String> = self.ledger.live().map(|(id, _)| id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let count = if self.random.below(2) == 0 { 1 } else { 1 + self.below(ids.len().min(8)) };
        let chosen: Vec<&str> = (0..count).map(|_| &self.random.pick(&ids)[..]).collect();
        self.cancel(&chosen);
    }

    fn cancel(&mut self, ids: &[&str]) {
        let answer = match ids {
            [id] => self.until_done("/order", &json!({ "orderID": id }).to_string()),
            _ => self.until_done("/orders", &json!(ids).to_string()),
        };
        self.left(&answer);
        for id in answer["tombstones"].as_array().into_iter().flatten() {
            self.ledger.orders.get_mut(text(id)).expect("it was signed").said.insert(Word::Buried);
        }
    }

    /// Records what an answer said about orders that were to be cancelled.
    fn left(&mut self, answer: &Value) {
        for id in answer["canceled"].as_array().unwrap() {
            self.ledger.orders.get_mut(text(id)).expect("it was signed").said.insert(Word::Cancelled);
        }
        for id in answer["not_canceled"].as_object().into_iter().flat_map(|map| map.keys()) {
            let order = self.ledger.orders.get_mut(id).expect("it was signed");
            if order.state == State::Live {
                order.said.insert(Word::Gone);
            }
        }
    }

    /// Cancels all, or all of a market or token.
    fn cancel_many(&mut self) {
        let market = self.random.pick(self.markets);
        let (path, body) = match self.random.below(4) {
            0 => ("/cancel-all", String::new()),
            1 => ("/cancel-market-orders", json!({ "market": market.condition }).to_string()),
            _ => ("/cancel-market-orders", json!({ "asset_id": market.tokens[0] }).to_string()),
        };
        let answer = self.until_done(path, &body);
        self.left(&answer);
    }

    /// Sends a cancel again until there was room for it.
    fn until_done(&mut self, path: &str, body: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("DELETE", path, body).answer;
            match answer.status {
                200 => return answer.json(),
                503 => assert!(Instant::now() < deadline, "DELETE {path}: {}", answer.json()),
                status => panic!("DELETE {path}: {status} {}", answer.json()),
            }
        }
    }

    fn split_or_merge(&mut self) {
        let market = self.below(self.markets.len());
        let amount = SHARE * (1 + self.random.below(50));
        let act = *self.random.pick(&[0, 1]);
        self.pairs_of(act, market, amount);
    }

    /// Splits (0) or merges (1) pairs of a market.
    pub fn pairs_of(&mut self, act: u8, market: usize, amount: u64) {
        self.trader.clock_ms = Some(self.link.gate.wait().now_ms);
        let wallet = (self.trader.address, outcry::domain::SignatureType::Eoa);
        let (path, body) = self.trader.sign_act(act, wallet, &self.markets[market].condition, amount);
        self.pairs(Act { path, body, market, amount });
    }

    /// Arms its dead-man switch, or keeps it armed.
    fn heartbeat(&mut self) {
        let body = json!({ "heartbeat_id": self.beat }).to_string();
        let said = self.ask("POST", "/v1/heartbeats", &body).answer;
        match (said.status, said.json()["heartbeat_id"].as_str()) {
            (200, Some(id)) => id.clone_into(&mut self.beat),
            // It went off, or an answer was lost: the client starts again.
            (400, _) => self.beat.clear(),
            // There is no room now, or its orders are just being cancelled: the next beat will show.
            (503, _) => {}
            (status, _) => panic!("{status} {}", said.json()),
        }
    }
}

fn joined(orders: &[Signed]) -> String {
    orders.iter().map(|order| &order.body[..]).collect::<Vec<_>>().join(",")
}
