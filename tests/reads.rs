//! Reads and trades do not share a core, and a read sees every write that was answered before it,
//! on any connection.
//!
//! Each loop counts the requests that it took; the counts are in `/metrics`.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::Connection;
use outcry::domain::TokenId;
use std::collections::BTreeMap;

const SHARDS: usize = 2;

/// Requests by kind, taken by the loops with a shard and by the loop of the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    trading_by_shards: u64,
    reading_by_shards: u64,
    trading_by_reader: u64,
    reading_by_reader: u64,
}

fn taken(exchange: &Exchange) -> Taken {
    let text = exchange.metrics();
    let mut taken = Taken::default();
    let mut loops = BTreeMap::<&str, u32>::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("outcry_requests_total{loop=\"") else { continue };
        let (place, rest) = rest.split_once("\",kind=\"").unwrap();
        let (kind, count) = rest.split_once("\"} ").unwrap();
        let count: u64 = count.parse().unwrap();
        *loops.entry(place).or_default() += 1;
        match (place == "outcry-reader", kind) {
            (false, "trading") => taken.trading_by_shards += count,
            (false, "reading") => taken.reading_by_shards += count,
            (true, "trading") => taken.trading_by_reader += count,
            (true, "reading") => taken.reading_by_reader += count,
            (_, kind) => panic!("kind {kind}"),
        }
    }
    assert_eq!(loops.len(), SHARDS + 1, "{text}");
    taken
}

#[test]
fn a_connection_that_only_reads_never_touches_a_shards_core() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("cpu.shards=2").set("cpu.policy=unpinned").start();
    let before = taken(&exchange);
    let markets = exchange.read("/simplified-markets");
    let token = markets["data"][0]["tokens"][0]["token_id"].as_str().unwrap().to_owned();
    let mut reads = 1;
    for _ in 0..16 {
        let mut connection = exchange.connect();
        for path in ["/time", "/simplified-markets", "/ok", &format!("/book?token_id={token}")] {
            connection.read(path);
            reads += 1;
        }
    }
    let after = taken(&exchange);
    assert_eq!(after.reading_by_reader - before.reading_by_reader, reads);
    assert_eq!((after.trading_by_shards, after.reading_by_shards), (before.trading_by_shards, 0));

    // Once it trades, the connection belongs to a shard, its reads included.
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    rest(&mut trader, &mut connection, common::trader::token(&token));
    connection.read("/time");
    let last = taken(&exchange);
    assert_eq!(last.trading_by_shards - after.trading_by_shards, 1);
    assert_eq!((last.reading_by_shards, last.trading_by_reader), (1, 0));
    exchange.stop();
}

#[test]
fn every_request_is_counted_whatever_becomes_of_it() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("cpu.shards=2").set("cpu.policy=unpinned").start();
    for (method, path, headers, status, [reading, trading]) in [
        ("GET", "/time", "", 200, [1, 0]),
        ("GET", "/nowhere", "", 404, [1, 0]),
        ("GET", "/ws/market", "", 426, [1, 0]),
        ("OPTIONS", "/book", "Origin: https://app.example\r\n", 200, [1, 0]),
        ("DELETE", "/cancel-all", "", 401, [0, 1]),
    ] {
        let sum = |taken: Taken| {
            let Taken { trading_by_shards, reading_by_shards, trading_by_reader, reading_by_reader } = taken;
            [reading_by_shards + reading_by_reader, trading_by_shards + trading_by_reader]
        };
        let before = sum(taken(&exchange));
        let answer = exchange.connect().request(method, path, headers, b"").unwrap();
        assert_eq!(answer.status, status, "{method} {path}");
        let after = sum(taken(&exchange));
        assert_eq!([after[0] - before[0], after[1] - before[1]], [reading, trading], "{method} {path}");
    }
    exchange.stop();
}

/// Places an order that rests; returns its id.
fn rest(trader: &mut Trader, connection: &mut Connection, token: TokenId) -> String {
    let order = trader.sign(&Wish::buy(token, 100, 5_000_000));
    let answer = trader.post(connection, &order.body);
    assert_eq!(answer.json()["status"], "live", "{answer:?}");
    order.id_text
}

#[test]
fn a_read_on_one_connection_sees_what_was_answered_on_another() {
    const ORDERS: usize = 200;
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("cpu.shards=2").set("cpu.policy=unpinned").start();
    let markets = exchange.read("/simplified-markets");
    let tokens: Vec<&str> = markets["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|market| market["neg_risk"] == false)
        .map(|market| market["tokens"][0]["token_id"].as_str().unwrap())
        .collect();
    let (mut trading, mut reading) = (exchange.connect(), exchange.connect());
    let mut trader = Trader::new(KEYS[1], &mut trading);
    let level = |reading: &mut Connection, token: &str| {
        let book = reading.read(&format!("/book?token_id={token}"));
        let bids = book["bids"].as_array().unwrap();
        let at = bids.iter().find(|level| level["price"] == "0.01");
        at.map_or(0, |level| common::trader::micro(level["size"].as_str().unwrap()))
    };
    for number in 0..ORDERS {
        let text = tokens[number % tokens.len()];
        let before = level(&mut reading, text);
        let id = rest(&mut trader, &mut trading, token(text));
        assert_eq!(level(&mut reading, text), before + 5_000_000, "order {number}");
        let order = trader.read(&mut reading, &format!("/data/order/{id}"));
        assert!(order.to_string().contains(&id), "{order}");
        let cancel = trader.ask(&mut trading, "DELETE", "/order", &format!("{{\"orderID\":\"{id}\"}}"));
        assert_eq!(cancel.unwrap().json()["canceled"][0], id.as_str());
        assert_eq!(level(&mut reading, text), before, "order {number}");
    }
    exchange.stop();
}
