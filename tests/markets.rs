//! Real markets: two files of Gamma rows are imported as they are, and every market that can be
//! traded is traded.
//!
//! The expected result is computed from the files themselves: which conditions there are, which of
//! them are closed, and which of two rows about the same market is the newer one.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan, said};
use common::shared::shared;
use common::trader::{KEYS, Signed, Trader, Wish, token};
use common::wire::Connection;
use common::{folder, unpacked};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

const MARKETS: &str = "data/gamma-markets-500/polymarket_markets.json.gz";
const EVENTS: &str = "data/gamma-events-100/events.json.gz";

/// Conditions in both files together.
const CONDITIONS: usize = 782;
const TRADABLE: usize = 770;

/// Requests in flight on one connection.
const PIPELINED: usize = 16;

/// A market of the files, from the newest row about it.
struct Row {
    updated: String,
    question: String,
    closed: bool,
    tokens: Vec<String>,
}

/// Every market of both files by condition, from the newer of two rows.
fn rows(files: &[PathBuf]) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for file in files {
        for row in unpacked(file).as_array().unwrap() {
            match row["markets"].as_array() {
                Some(markets) => markets.iter().for_each(|market| add(&mut rows, market)),
                None => add(&mut rows, row),
            }
        }
    }
    rows
}

fn add(rows: &mut BTreeMap<String, Row>, market: &Value) {
    let text = |name: &str| market[name].as_str().unwrap_or("").to_owned();
    let tokens: Vec<String> = serde_json::from_str(&text("clobTokenIds")).unwrap_or_default();
    let row = Row {
        updated: text("updatedAt"),
        question: text("question"),
        closed: market["closed"] == true,
        tokens,
    };
    let condition = text("conditionId").to_lowercase();
    if !condition.is_empty() && rows.get(&condition).is_none_or(|known| known.updated < row.updated) {
        rows.insert(condition, row);
    }
}

/// Imports the files in this order; returns what the command printed.
fn import(exchange: &Exchange, files: &[PathBuf]) -> String {
    let mut words = vec!["import", "gamma"];
    words.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = exchange.operator_output(&words);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    text
}

/// Every market that the exchange lists, by condition.
fn listed(exchange: &Exchange) -> BTreeMap<String, Value> {
    let mut connection = exchange.connect();
    let mut cursor = "MA==".to_owned();
    let mut markets = BTreeMap::new();
    while cursor != "LTE=" {
        let page = connection.read(&format!("/markets?next_cursor={cursor}"));
        for market in page["data"].as_array().unwrap() {
            let condition = market["condition_id"].as_str().unwrap().to_owned();
            assert!(markets.insert(condition, market.clone()).is_none(), "a market is listed twice");
        }
        page["next_cursor"].as_str().unwrap().clone_into(&mut cursor);
    }
    markets
}

/// The smallest order that can rest on each of a market's tokens.
fn wishes(market: &Value) -> Vec<Wish<'static>> {
    let scaled = |name: &str, by: f64| {
        let number = market[name].as_f64().unwrap() * by;
        format!("{number:.0}").parse::<u64>().unwrap()
    };
    let (price, shares) =
        (scaled("minimum_tick_size", 1e4), scaled("minimum_order_size", 1e6).max(1_000_000));
    let tokens = market["tokens"].as_array().unwrap().iter();
    let wish = |row: &Value| Wish {
        neg_risk: market["neg_risk"] == true,
        ..Wish::buy(token(row["token_id"].as_str().unwrap()), price, shares)
    };
    tokens.map(wish).collect()
}

/// Sends all requests, several in flight, and returns the answers in order.
fn pipelined(connection: &mut Connection, requests: &[Vec<u8>]) -> Vec<(u16, Value)> {
    let mut answers = Vec::new();
    for batch in requests.chunks(PIPELINED) {
        connection.send(&batch.concat()).unwrap();
        for _ in batch {
            let answer = connection.answer().unwrap();
            answers.push((answer.status, answer.json()));
        }
    }
    answers
}

#[test]
fn every_real_market_trades_and_every_closed_one_refuses_by_name() {
    let (Some(markets), Some(events)) = (shared(MARKETS), shared(EVENTS)) else { return };
    let files = [markets, events];
    let expected = rows(&files);
    assert_eq!(expected.len(), CONDITIONS);
    assert_eq!(expected.values().filter(|row| !row.closed).count(), TRADABLE);

    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let own = listed(&exchange);
    let said = import(&exchange, &files);
    let mut found = listed(&exchange);
    found.retain(|condition, _| !own.contains_key(condition));
    assert!(found.keys().eq(expected.keys()), "other conditions than the files'\n{said}");
    for (condition, row) in &expected {
        let market = &found[condition];
        let tokens: Vec<_> = market["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .map(|token| token["token_id"].as_str().unwrap())
            .collect();
        assert_eq!(tokens, row.tokens, "{condition}");
        assert_eq!(market["question"], row.question.as_str(), "{condition}");
        assert_eq!(market["accepting_orders"], !row.closed, "{condition}");
    }
    for number in [CONDITIONS, TRADABLE] {
        assert!(said.contains(&number.to_string()), "the summary does not say {number}\n{said}");
    }
    trade_on_all(&exchange, &found);
    exchange.stop();
}

fn trade_on_all(exchange: &Exchange, markets: &BTreeMap<String, Value>) {
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[3], &mut connection);
    let (open, closed): (Vec<_>, Vec<_>) =
        markets.values().partition(|market| market["accepting_orders"] == true);

    let orders: Vec<Signed> =
        open.iter().flat_map(|market| wishes(market)).map(|wish| trader.sign(&wish)).collect();
    assert_eq!(orders.len(), 2 * TRADABLE);
    let posts: Vec<_> = orders.iter().map(|order| trader.request("POST", "/order", &order.body)).collect();
    for (order, (status, answer)) in orders.iter().zip(pipelined(&mut connection, &posts)) {
        assert!(status == 200 && answer["status"] == "live", "{status} {answer}");
        assert_eq!(answer["orderID"], order.id_text.as_str());
    }
    let live = trader.pages(&mut connection, "/data/orders");
    assert_eq!(live.len(), orders.len(), "every order rests");

    let cancel = |order: &Signed| {
        trader.request("DELETE", "/order", &format!("{{\"orderID\":\"{}\"}}", order.id_text))
    };
    let cancels: Vec<_> = orders.iter().map(cancel).collect();
    for (order, (status, answer)) in orders.iter().zip(pipelined(&mut connection, &cancels)) {
        assert!(status == 200 && answer["canceled"][0] == order.id_text.as_str(), "{status} {answer}");
    }
    assert!(trader.pages(&mut connection, "/data/orders").is_empty(), "every order is gone");

    for market in &closed {
        for wish in wishes(market) {
            let order = trader.sign(&wish);
            let answer = trader.post(&mut connection, &order.body);
            let code = answer.json()["code"].as_str().unwrap_or("").to_owned();
            assert!(
                ["market_closed", "market_resolved"].contains(&code.as_str()),
                "{}: {} {code}",
                market["condition_id"],
                answer.status
            );
        }
    }
    assert_eq!(closed.len(), CONDITIONS - TRADABLE);
}

#[test]
fn the_newer_of_two_rows_wins_whichever_file_comes_first() {
    let (Some(markets), Some(events)) = (shared(MARKETS), shared(EVENTS)) else { return };
    let orders = [[markets.clone(), events.clone()], [events, markets]];
    let [one, other] = orders.map(|files| {
        let folder = folder();
        let exchange = Plan::dev(folder.path()).start();
        // Two imports instead of one with two files: the second must judge against what is there.
        for file in &files {
            import(&exchange, std::slice::from_ref(file));
        }
        let listed = listed(&exchange);
        exchange.stop();
        listed
    });
    assert_eq!(one.len(), other.len());
    for (condition, market) in &one {
        let texts = |market: &Value| {
            // Without the tick: a second import never touches a live book.
            ["question", "slug", "description", "end_date_iso", "closed", "active"]
                .map(|name| market[name].clone())
        };
        assert_eq!(texts(market), texts(&other[condition]), "{condition}");
    }
}
