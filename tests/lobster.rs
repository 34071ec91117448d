//! Real order flow: an hour of a stock's messages, through the engine and over HTTP.
//!
//! Both tests drive a naive twin beside the exchange, and compare every fill, the final book and
//! the open size of each order. The file is beside the repository (`../shared`); without it the
//! tests are skipped, except in CI.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]
#![allow(unreachable_pub, reason = "a test is a crate of its own")]

mod common;
#[path = "lobster/engine.rs"]
mod engine;
#[path = "lobster/messages.rs"]
mod messages;
#[path = "lobster/twin.rs"]
mod twin;

use common::exchange::{Exchange, Plan, journal};
use common::folder;
use common::shared::shared;
use common::trader::{KEYS, Signed, Trader, Wish, micro, token};
use common::wire::{Answer, Connection};
use engine::Engine;
use messages::{Act, Side};
use outcry::domain::TokenId;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, VecDeque};
use twin::{Fill, Twin};

const FILE: &str = "data/lobster-aapl/AAPL_2012-06-21_34200000_37800000_message_50.csv.xz";

/// Requests in flight; the server takes 32 from one connection.
const PIPELINED: usize = 24;

/// More shares and money than the hour moves, so that neither party runs short.
const SHARES: &str = "20000000";
const COLLATERAL: &str = "100000000";

/// A request, and the answer that the twin expects.
enum Asked {
    Order { fills: Vec<Fill>, rests: bool },
    Cancel { gone: bool },
}

/// The buyer and the seller: two principals, so that no order meets its own owner's.
struct Stage {
    buyer: Trader,
    seller: Trader,
    token: TokenId,
    token_text: String,
    signed: HashMap<u64, (Side, Signed)>,
    makers: HashMap<String, u64>,
    twin: Twin,
    next_copy: u64,
}

impl Stage {
    fn new(exchange: &Exchange) -> Self {
        let words = ["market", "create", "An hour of a stock", "--tick", "0.001", "--min-size", "1"];
        let created = exchange.operator(&words);
        let condition = created["conditionId"].as_str().unwrap().to_owned();
        let market = exchange.read(&format!("/markets/{condition}"));
        let token_text = market["tokens"][0]["token_id"].as_str().unwrap().to_owned();
        let mut connection = exchange.connect();
        let buyer = Trader::new(KEYS[4], &mut connection);
        let mut seller = Trader::new(KEYS[5], &mut connection);
        for (trader, reference) in [(&buyer, "buyer"), (&seller, "seller")] {
            let wallet = common::trader::hex_text(&trader.address.0);
            exchange.operator(&["account", "credit", &wallet, COLLATERAL, "--ref", reference]);
        }
        let split = seller.act(&mut connection, 0, &condition, micro(SHARES));
        assert!(split.status == 200, "{} {}", split.status, split.json());
        Self {
            buyer,
            seller,
            token: token(&token_text),
            token_text,
            signed: HashMap::new(),
            makers: HashMap::new(),
            twin: Twin::default(),
            // Copies of decreased orders get ids that the file does not use.
            next_copy: 1 << 40,
        }
    }

    fn trader(&mut self, side: Side) -> &mut Trader {
        match side {
            Side::Buy => &mut self.buyer,
            Side::Sell => &mut self.seller,
        }
    }

    fn order(&mut self, side: Side, price: u64, shares: u64, kind: &str) -> Signed {
        let wish = Wish {
            token: self.token,
            side: match side {
                Side::Buy => outcry::domain::Side::Buy,
                Side::Sell => outcry::domain::Side::Sell,
            },
            price,
            shares,
            kind,
            neg_risk: false,
        };
        self.trader(side).sign(&wish)
    }

    /// The requests of one act, and what the twin expects of each.
    fn requests(&mut self, names: &mut HashMap<u64, u64>, act: Act) -> Vec<(Asked, Vec<u8>)> {
        match act {
            Act::Rest { order, side, price, shares } => vec![self.rest(order, side, price, shares)],
            Act::Cancel { order } => vec![self.cancel(names.get(&order).copied().unwrap_or(order))],
            Act::Take { side, price, shares } => {
                let fills = self.twin.fill_and_kill(side, price, shares);
                let signed = self.order(side, price, shares, "FAK");
                let bytes = self.trader(side).request("POST", "/order", &signed.body);
                vec![(Asked::Order { fills, rests: false }, bytes)]
            }
            Act::Decrease { order, shares } => {
                let name = names.get(&order).copied().unwrap_or(order);
                let Some(open) = self.twin.open(name) else { return vec![self.cancel(name)] };
                let price = self.twin.price(name);
                let side = self.signed[&name].0;
                let mut requests = vec![self.cancel(name)];
                if let Some(left @ 1_000_000..) = open.checked_sub(shares) {
                    self.next_copy += 1;
                    names.insert(order, self.next_copy);
                    requests.push(self.rest(self.next_copy, side, price, left));
                }
                requests
            }
        }
    }

    fn rest(&mut self, order: u64, side: Side, price: u64, shares: u64) -> (Asked, Vec<u8>) {
        let fills = self.twin.rest(order, side, price, shares);
        let signed = self.order(side, price, shares, "GTC");
        let bytes = self.trader(side).request("POST", "/order", &signed.body);
        self.makers.insert(signed.id_text.clone(), order);
        self.signed.insert(order, (side, signed));
        (Asked::Order { fills, rests: true }, bytes)
    }

    fn cancel(&mut self, order: u64) -> (Asked, Vec<u8>) {
        let gone = self.twin.remove(order);
        let (side, signed) = &self.signed[&order];
        let (side, body) = (*side, format!("{{\"orderID\":\"{}\"}}", signed.id_text));
        (Asked::Cancel { gone }, self.trader(side).request("DELETE", "/order", &body))
    }
}

fn check(asked: &Asked, answer: &Answer, trades: &mut Vec<(String, Vec<Fill>)>) {
    let body = answer.json();
    match asked {
        Asked::Cancel { gone } => {
            assert_eq!(body["canceled"].as_array().unwrap().len(), usize::from(*gone), "{body}");
        }
        Asked::Order { fills, rests } if fills.is_empty() => {
            if *rests {
                assert!(answer.status == 200 && body["status"] == "live", "{} {body}", answer.status);
            } else {
                assert!(body["code"] == "fak_no_match", "{} {body}", answer.status);
            }
        }
        Asked::Order { fills, .. } => {
            assert!(answer.status == 200 && body["status"] == "matched", "{} {body}", answer.status);
            let sums = [
                fills.iter().map(|fill| fill.shares).sum::<u64>(),
                fills.iter().map(|fill| fill.collateral).sum::<u64>(),
            ];
            let mut said = ["makingAmount", "takingAmount"].map(|name| micro(body[name].as_str().unwrap()));
            if said != sums {
                said.reverse();
            }
            assert_eq!(said, sums, "{body}");
            trades.push((body["tradeIDs"][0].as_str().unwrap().to_owned(), fills.clone()));
        }
    }
}

#[test]
fn an_hour_of_real_flow_in_the_engine_agrees_with_the_twin() {
    let Some(file) = shared(FILE) else { return };
    let hour = messages::read(&file);
    let (mut engine, mut twin) = (Engine::new(), Twin::default());
    let (mut trades, mut sold, mut paid) = (0, 0, 0);
    for act in &hour.acts {
        let [found, expected] = match *act {
            Act::Rest { order, side, price, shares } => {
                [engine.rest(order, side, price, shares), twin.rest(order, side, price, shares)]
            }
            Act::Take { side, price, shares } => {
                [engine.fill_and_kill(side, price, shares), twin.fill_and_kill(side, price, shares)]
            }
            Act::Decrease { order, shares } => {
                engine.decrease(order, shares);
                twin.decrease(order, shares);
                continue;
            }
            Act::Cancel { order } => {
                assert_eq!(engine.remove(order), twin.remove(order));
                continue;
            }
        };
        assert_eq!(found, expected, "{act:?}");
        trades += usize::from(!found.is_empty());
        sold += found.iter().map(|fill| fill.shares).sum::<u64>();
        paid += found.iter().map(|fill| fill.collateral).sum::<u64>();
    }
    assert!(4_000 < trades, "the hour has more trades than {trades}");
    assert!(paid < sold, "a share costs less than one");
    let expected: Vec<_> =
        twin.resting().iter().map(|&(order, open)| (order, twin.price(order), open)).collect();
    assert_eq!(engine.resting(), expected, "what rests, in the order in which it trades");
}

#[test]
fn an_hour_of_real_flow_over_http_agrees_with_the_twin() {
    let Some(file) = shared(FILE) else { return };
    let hour = messages::read(&file);
    let folder = folder();
    let plan = Plan::dev(folder.path())
        .set("journal.durability=committed")
        .set("orders.min_notional=0.000001")
        .set("limits.mode=off");
    let exchange = plan.start();
    let mut stage = Stage::new(&exchange);
    let mut connection = exchange.connect();
    let trades = drive(&mut stage, &mut connection, &hour.acts);
    assert!(4_000 < trades.len(), "the hour has more trades than {}", trades.len());
    compare_book(&exchange, &stage);
    compare_orders(&mut connection, &stage);
    compare_fills(&mut connection, &stage, &trades);
    exchange.stop();
    journal("verify", &plan.data_dir());
}

fn drive(stage: &mut Stage, connection: &mut Connection, acts: &[Act]) -> Vec<(String, Vec<Fill>)> {
    let mut names = HashMap::new();
    let mut flight = VecDeque::new();
    let mut trades = Vec::new();
    for act in acts {
        for (asked, bytes) in stage.requests(&mut names, *act) {
            if flight.len() == PIPELINED {
                let answer = connection.answer().unwrap();
                check(&flight.pop_front().unwrap(), &answer, &mut trades);
            }
            connection.send(&bytes).unwrap();
            flight.push_back(asked);
        }
    }
    for asked in flight {
        check(&asked, &connection.answer().unwrap(), &mut trades);
    }
    trades
}

fn compare_book(exchange: &Exchange, stage: &Stage) {
    let book = exchange.read(&format!("/book?token_id={}", stage.token_text));
    for (side, name) in [(Side::Buy, "bids"), (Side::Sell, "asks")] {
        let shown: Vec<(u64, u64)> = book[name].as_array().unwrap().iter().map(level).collect();
        assert_eq!(shown, stage.twin.levels(side), "{name}");
    }
}

/// Price in ten-thousandths and size in millionths of a level.
fn level(level: &Value) -> (u64, u64) {
    (micro(level["price"].as_str().unwrap()) / 100, micro(level["size"].as_str().unwrap()))
}

fn compare_orders(connection: &mut Connection, stage: &Stage) {
    let mut shown = BTreeMap::new();
    for trader in [&stage.buyer, &stage.seller] {
        for order in trader.pages(connection, "/data/orders") {
            let amount = |name: &str| micro(order[name].as_str().unwrap());
            let name = stage.makers[order["id"].as_str().unwrap()];
            assert!(shown.insert(name, amount("original_size") - amount("size_matched")).is_none());
        }
    }
    let expected: BTreeMap<u64, u64> = stage.twin.resting().into_iter().collect();
    assert_eq!(shown, expected);
}

fn compare_fills(connection: &mut Connection, stage: &Stage, trades: &[(String, Vec<Fill>)]) {
    let mut shown = HashMap::new();
    for trade in stage.buyer.pages(connection, "/data/trades") {
        let fills: Vec<_> =
            trade["maker_orders"].as_array().unwrap().iter().map(|leg| fill(stage, leg)).collect();
        assert!(shown.insert(trade["id"].as_str().unwrap().to_owned(), fills).is_none(), "listed twice");
    }
    assert_eq!(shown.len(), trades.len());
    for (id, fills) in trades {
        let expected: Vec<_> = fills.iter().map(|fill| (fill.maker, fill.price, fill.shares)).collect();
        assert_eq!(shown[id], expected, "{id}");
    }
}

fn fill(stage: &Stage, leg: &Value) -> (u64, u64, u64) {
    let amount = |name: &str| micro(leg[name].as_str().unwrap());
    (stage.makers[leg["order_id"].as_str().unwrap()], amount("price") / 100, amount("matched_amount"))
}
