//! `X-Outcry-Deadline`: an order is judged before that moment or not taken.
//!
//! The exchange's clock stands still until the test moves it.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::{Answer, Connection};
use serde_json::{Value, json};

struct Site {
    exchange: Exchange,
    connection: Connection,
    trader: Trader,
    token: String,
    now_ms: u64,
    _folder: tempfile::TempDir,
}

impl Site {
    fn start(shards: u16, ingress: u16) -> Self {
        let folder = folder();
        let plan = Plan::dev(folder.path()).set("cpu.policy=unpinned");
        let plan = plan.set(&format!("cpu.shards={shards}")).set(&format!("cpu.ingress={ingress}"));
        let exchange = plan.words(["--clock", "manual"]).start();
        let mut connection = exchange.connect();
        let now_ms = exchange.read("/time").as_u64().unwrap() * 1_000;
        let trader = Trader::at(KEYS[1], &mut connection, Some(now_ms));
        let markets = exchange.read("/simplified-markets");
        let token = markets["data"][0]["tokens"][0]["token_id"].as_str().unwrap().to_owned();
        let mut site = Self { exchange, connection, trader, token, now_ms, _folder: folder };
        // From a whole second on, so that its fraction does not matter.
        site.advance(0);
        site.advance(i64::try_from(site.now_ms.next_multiple_of(1_000) - site.now_ms).unwrap());
        site
    }

    /// Moves the clock, and the trader's with it.
    fn advance(&mut self, ms: i64) {
        self.now_ms = self.exchange.advance(ms);
        self.trader.clock_ms = Some(self.now_ms);
    }

    fn order(&mut self) -> String {
        let token = token(&self.token);
        self.trader.sign(&Wish::buy(token, 1_000, 5_000_000)).body
    }

    /// The trader's open orders.
    fn open(&mut self) -> Vec<String> {
        let rows = self.trader.pages(&mut self.connection, "/data/orders");
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    fn post(&mut self, path: &str, deadline: &str, body: &str) -> Answer {
        let header = format!("X-Outcry-Deadline: {deadline}\r\n");
        self.connection.send(&self.trader.request_with(&header, "POST", path, body)).unwrap();
        self.connection.answer().unwrap()
    }
}

#[test]
fn an_order_is_taken_before_its_deadline_and_not_at_it_by_the_clock_as_it_was_set_right() {
    // A clock that is corrected back stands still for the exchange, and not for deadlines.
    for (corrected_ms, shards, ingress) in
        [(0, 1, 0), (0, 2, 0), (0, 1, 1), (-500, 1, 0), (-500, 2, 0), (-500, 1, 1)]
    {
        let mut site = Site::start(shards, ingress);
        site.advance(corrected_ms);
        let now_us = site.now_ms * 1_000;
        for (deadline, code) in [
            (format!("{}", now_us + 1_000), None),
            ("+1000".to_owned(), None),
            // Fractions of a millisecond are not promised.
            (format!("{}", now_us + 999), Some("deadline_passed")),
            ("+999".to_owned(), Some("deadline_passed")),
            (now_us.to_string(), Some("deadline_passed")),
            ("0".to_owned(), Some("deadline_passed")),
            // Milliseconds, given by mistake, are in 1970.
            (site.now_ms.to_string(), Some("deadline_passed")),
            (u64::MAX.to_string(), None),
            (format!("{}0", u64::MAX), Some("invalid_payload")),
            ("soon".to_owned(), Some("invalid_payload")),
            ("-5".to_owned(), Some("invalid_payload")),
        ] {
            let body = site.order();
            let answer = site.post("/order", &deadline, &body).json();
            let case = format!("{deadline} after {corrected_ms} ms");
            match code {
                None => assert_eq!(answer["status"], "live", "{case}: {answer}"),
                Some(code) => {
                    assert_eq!(answer["code"], code, "{case}: {answer}");
                    assert_eq!(answer["field"], "X-Outcry-Deadline", "{answer}");
                }
            }
        }
    }
}

#[test]
fn what_was_taken_in_time_is_answered_the_same_when_it_comes_again_too_late() {
    let mut site = Site::start(1, 0);
    let body = site.order();
    let deadline = (site.now_ms * 1_000 + 5_000).to_string();
    let first = site.post("/order", &deadline, &body);
    site.advance(60);
    let again = site.post("/order", &deadline, &body);
    assert_eq!((again.status, again.header("Idempotent-Replayed")), (200, Some("true")));
    assert_eq!(again.json(), first.json());
}

#[test]
fn all_orders_of_a_batch_have_its_deadline() {
    let mut site = Site::start(2, 0);
    let bodies: Vec<String> = (0..3).map(|_| site.order()).collect();
    let batch = format!("[{}]", bodies.join(","));
    let late = site.post("/orders", "1", &batch).json();
    let late: Vec<&Value> = late.as_array().unwrap().iter().map(|item| &item["code"]).collect();
    assert_eq!(late, ["deadline_passed"; 3]);
    let taken = site.post("/orders", "+2000", &batch).json();
    assert!(taken.as_array().unwrap().iter().all(|item| item["status"] == "live"), "{taken}");
}

#[test]
fn a_replace_that_comes_too_late_leaves_its_order_where_it_is() {
    for (corrected_ms, shards, ingress) in
        [(0, 1, 0), (0, 2, 0), (0, 1, 1), (0, 2, 1), (-500, 1, 0), (-500, 2, 1)]
    {
        let mut site = Site::start(shards, ingress);
        site.advance(corrected_ms);
        let body = site.order();
        let placed = site.post("/order", "+1000", &body).json()["orderID"].clone();
        for (deadline, in_time) in [
            ("1".to_owned(), false),
            ((site.now_ms * 1_000).to_string(), false),
            ("+999".to_owned(), false),
            ("+2000000".to_owned(), true),
        ] {
            let case = format!("{shards} shards, {ingress} ingress, {deadline} after {corrected_ms} ms");
            let place = site.order();
            let body = format!("{{\"cancel\":[{placed}],\"place\":[{place}]}}");
            let said = site.post("/replace", &deadline, &body).json();
            if in_time {
                assert_eq!(said["canceled"], json!([placed]), "{case}: {said}");
                assert_eq!(site.open(), [said["orders"][0]["orderID"].as_str().unwrap()], "{case}");
            } else {
                let told = (&said["code"], &said["field"]);
                assert_eq!(told, (&json!("deadline_passed"), &json!("X-Outcry-Deadline")), "{case}: {said}");
                assert_eq!(site.open(), [placed.as_str().unwrap()], "{case}");
            }
        }
    }
}
