//! What cancels a maker's orders when the maker cannot: a missed heartbeat, a lost connection, a tripped
//! breaker. And what the maker's own cancels say of orders that they did not find.
//!
//! The exchange's clock stands still until the test moves it. The maker's own stream shows what leaves a
//! book by itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;
#[path = "safety/lost.rs"]
mod lost;
#[path = "safety/scopes.rs"]
mod scopes;
#[path = "safety/told.rs"]
mod told;

use common::exchange::{Exchange, Market, Plan};
use common::folder;
use common::stream::Stream;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::{Answer, Connection};
use outcry::domain::Side;
use outcry::shard::LEAVING_PER_PIECE;
use serde_json::{Value, json};

/// A maker with two API keys, a taker, and markets on every shard.
struct Site {
    plan: Plan,
    exchange: Exchange,
    connection: Connection,
    maker: Trader,
    other_key: Trader,
    taker: Trader,
    tokens: Vec<String>,
    now_ms: u64,
    folder: tempfile::TempDir,
}

impl Site {
    fn start(shards: u16, ingress: u16) -> Self {
        let folder = folder();
        let plan = Plan::dev(folder.path()).set("cpu.policy=unpinned");
        let plan = plan.set(&format!("cpu.shards={shards}")).set(&format!("cpu.ingress={ingress}"));
        let plan = plan.words(["--clock", "manual"]);
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let now_ms = exchange.read("/time").as_u64().unwrap() * 1_000;
        let maker = Trader::at(KEYS[1], &mut connection, Some(now_ms));
        let other_key = Trader::of_nonce(KEYS[1], 7, &mut connection, Some(now_ms));
        let mut taker = Trader::at(KEYS[2], &mut connection, Some(now_ms));
        let mut tokens = Vec::new();
        for index in 0..2 {
            let Market { condition, tokens: [token, _] } = exchange.market(&format!("Number {index}?"));
            tokens.push(token);
            let split = taker.act(&mut connection, 0, &condition, 100_000_000);
            assert_eq!(split.status, 200, "{}", split.json());
        }
        Self { plan, exchange, connection, maker, other_key, taker, tokens, now_ms, folder }
    }

    fn restart(self) -> Self {
        let Self { plan, exchange, connection: _, maker, other_key, taker, tokens, now_ms, folder } = self;
        exchange.stop();
        let exchange = plan.start();
        let connection = exchange.connect();
        let mut site = Self { plan, exchange, connection, maker, other_key, taker, tokens, now_ms, folder };
        site.advance(0);
        site
    }

    /// Moves the clock.
    fn advance(&mut self, ms: i64) {
        self.now_ms = self.exchange.advance(ms);
        for trader in [&mut self.maker, &mut self.other_key, &mut self.taker] {
            trader.clock_ms = Some(self.now_ms);
        }
    }

    fn wish(&self, market: usize, side: Side, cents: u64, shares: u64) -> Wish<'static> {
        let token = token(&self.tokens[market]);
        Wish::of(side, token, cents * 100, shares * 1_000_000)
    }

    /// Places a maker's bid in a market, with one of its keys; returns the order's id.
    fn bid(&mut self, other_key: bool, market: usize, cents: u64, shares: u64) -> String {
        let wish = self.wish(market, Side::Buy, cents, shares);
        let maker = if other_key { &mut self.other_key } else { &mut self.maker };
        let order = maker.sign(&wish);
        let answer = maker.post(&mut self.connection, &order.body);
        assert_eq!(answer.status, 200, "{}", answer.json());
        order.id_text
    }

    /// Places so many of the maker's bids in each market, by one of its keys.
    fn many_bids(&mut self, other_key: bool, each: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for market in 0..self.tokens.len() {
            let wish = self.wish(market, Side::Buy, 10, 10);
            let maker = if other_key { &mut self.other_key } else { &mut self.maker };
            let orders: Vec<_> = (0..each).map(|_| maker.sign(&wish)).collect();
            for batch in orders.chunks(15) {
                let bodies: Vec<&str> = batch.iter().map(|order| order.body.as_str()).collect();
                let body = format!("[{}]", bodies.join(","));
                let answer = maker.ask(&mut self.connection, "POST", "/orders", &body).unwrap().json();
                let rows = answer.as_array().unwrap();
                assert!(rows.iter().all(|row| row["status"] == "live"), "{answer}");
                ids.extend(batch.iter().map(|order| order.id_text.clone()));
            }
        }
        ids
    }

    /// The taker sells into the bids.
    fn sell(&mut self, market: usize, cents: u64, shares: u64) -> Answer {
        let wish = Wish { kind: "FAK", ..self.wish(market, Side::Sell, cents, shares) };
        let order = self.taker.sign(&wish);
        self.taker.post(&mut self.connection, &order.body)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.maker.ask(&mut self.connection, method, path, body).unwrap()
    }

    fn beat(&mut self, shown: &str) -> (u16, Value) {
        let answer = self.ask("POST", "/v1/heartbeats", &json!({ "heartbeat_id": shown }).to_string());
        (answer.status, answer.json())
    }

    fn live(&mut self) -> Vec<String> {
        let rows = self.maker.pages(&mut self.connection, "/data/orders");
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The maker's stream, which reports every order that leaves.
    fn listen(&self) -> Stream {
        let mut stream = Stream::open(&self.exchange, "user");
        stream.say(&json!({ "type": "user", "auth": self.maker.stream_auth() }));
        assert_eq!(stream.event()["type"], "subscribed");
        stream
    }
}

/// The ids and reasons of the next orders that end.
fn ended(stream: &mut Stream, count: usize) -> Vec<(String, String)> {
    let mut ended = Vec::new();
    while ended.len() < count {
        let event = stream.event();
        if event["type"] == "CANCELLATION" {
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            ended.push((text("id"), text("reason")));
        }
    }
    ended.sort();
    ended
}

fn all_with(ids: &[&String], reason: &str) -> Vec<(String, String)> {
    let mut ended: Vec<_> = ids.iter().map(|id| ((*id).clone(), reason.to_owned())).collect();
    ended.sort();
    ended
}

#[test]
fn a_missed_heartbeat_cancels_the_orders_of_its_key_on_every_shard_and_no_others() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut stream = site.listen();
        let (first, second) = (site.bid(false, 0, 10, 5), site.bid(false, 1, 11, 5));
        let of_other_key = site.bid(true, 0, 12, 5);
        let (status, beat) = site.beat("");
        assert_eq!((status, &beat["cancels_after_ms"]), (200, &15_000.into()), "{beat}");
        site.advance(14_999);
        assert_eq!(site.live().len(), 3, "a beat is late at fifteen seconds, not before");
        site.advance(1);
        assert_eq!(ended(&mut stream, 2), all_with(&[&first, &second], "heartbeat_missed"));
        assert_eq!(site.live(), [of_other_key]);
        let id = beat["heartbeat_id"].as_str().unwrap().to_owned();
        let (status, late) = site.beat(&id);
        assert_eq!((status, &late["code"]), (400, &"heartbeat_not_armed".into()), "{late}");
        // The switch went off once; it does not concern later orders.
        let later = site.bid(false, 0, 10, 5);
        site.advance(60_000);
        assert!(site.live().contains(&later));
        site.exchange.stop();
    }
}

#[test]
fn hundreds_of_orders_leave_at_once_and_what_comes_after_them_stays() {
    for (shards, ingress) in [(1, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        // More than leave in one turn.
        let each = LEAVING_PER_PIECE + 9;
        let mut ids = site.many_bids(false, each);
        let (other, after) = (site.bid(true, 0, 12, 10), site.maker.sign(&site.wish(0, Side::Buy, 10, 10)));
        ids.push(other);
        let market = json!({ "asset_id": site.tokens[1] }).to_string();
        let mut requests = site.maker.request("DELETE", "/cancel-all", "");
        requests.extend(site.maker.request("POST", "/order", &after.body));
        let mut elsewhere = site.exchange.connect();
        site.connection.send(&requests).unwrap();
        elsewhere.send(&site.maker.request("DELETE", "/cancel-market-orders", &market)).unwrap();
        let mut canceled = Vec::new();
        for connection in [&mut site.connection, &mut elsewhere] {
            let answer = connection.answer().unwrap().json();
            let rows = answer["canceled"].as_array().unwrap().iter();
            canceled.extend(rows.map(|id| id.as_str().unwrap().to_owned()));
            assert_eq!((&answer["not_canceled"], &answer["incomplete"]), (&json!({}), &Value::Null));
        }
        assert_eq!(site.connection.answer().unwrap().status, 200);
        // Between the two they have named each order once.
        canceled.sort();
        ids.sort();
        assert_eq!(canceled, ids);
        assert_eq!(site.live(), std::slice::from_ref(&after.id_text));
        // The same if the exchange cancels.
        let mut stream = site.listen();
        site.beat("");
        let mut ids = site.many_bids(false, each);
        ids.push(after.id_text);
        let kept = site.bid(true, 0, 12, 10);
        site.advance(15_000);
        let ids: Vec<&String> = ids.iter().collect();
        assert_eq!(ended(&mut stream, ids.len()), all_with(&ids, "heartbeat_missed"));
        assert_eq!(site.live(), [kept]);
        site.exchange.stop();
    }
}

#[test]
fn what_one_client_sends_is_done_in_the_order_in_which_it_was_sent() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        site.many_bids(false, LEAVING_PER_PIECE + 9);
        // The bids are 1 each, and the maker has 10,000: this one has money only once they have left.
        let order = site.maker.sign(&site.wish(0, Side::Buy, 90, 11_000));
        let mut requests = site.maker.request("DELETE", "/cancel-all", "");
        requests.extend(site.maker.request("POST", "/order", &order.body));
        // A breaker that is set is there for the next order, and one that is reset lets it pass.
        requests.extend(site.maker.request("POST", "/breaker", "{\"quantity\":\"5\",\"interval_ms\":8000}"));
        site.connection.send(&requests).unwrap();
        let canceled = site.connection.answer().unwrap().json();
        assert_eq!(canceled["canceled"].as_array().unwrap().len(), 2 * (LEAVING_PER_PIECE + 9));
        let placed = site.connection.answer().unwrap().json();
        assert_eq!(placed["status"], "live", "{placed}");
        assert_eq!(site.connection.answer().unwrap().status, 200);
        assert_eq!(site.sell(0, 90, 5).status, 200);
        assert_eq!(site.ask("GET", "/breaker", "").json()["tripped"], true);
        let order = site.maker.sign(&site.wish(0, Side::Buy, 10, 5));
        let mut requests = site.maker.request("POST", "/breaker/reset", "");
        requests.extend(site.maker.request("POST", "/order", &order.body));
        site.connection.send(&requests).unwrap();
        assert_eq!(site.connection.answer().unwrap().json()["tripped"], false);
        let placed = site.connection.answer().unwrap().json();
        assert_eq!(placed["status"], "live", "{placed}");
        // What a key signs behind its own revocation is nobody's.
        let order = site.maker.sign(&site.wish(0, Side::Buy, 10, 5));
        let mut requests = site.maker.request("DELETE", "/auth/api-key", "");
        requests.extend(site.maker.request("POST", "/order", &order.body));
        site.connection.send(&requests).unwrap();
        assert_eq!([(); 2].map(|()| site.connection.answer().unwrap().status), [200, 401]);
        site.exchange.stop();
    }
}

#[test]
fn a_beat_shows_the_id_of_the_one_before_or_begins_anew() {
    let mut site = Site::start(1, 0);
    let (_, first) = site.beat("");
    let first = first["heartbeat_id"].as_str().unwrap().to_owned();
    let (status, second) = site.beat(&first);
    assert_eq!(status, 200, "{second}");
    let second = second["heartbeat_id"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let (status, stale) = site.beat(&first);
    assert_eq!((status, &stale["code"]), (400, &"heartbeat_stale".into()), "{stale}");
    assert_eq!(stale["heartbeat_id"], second, "the answer says which id is good");
    assert_eq!(stale["error_msg"], "Invalid Heartbeat ID", "{stale}");
    assert_eq!(site.beat(&second).0, 200);
    // A client that was restarted knows no id.
    let (status, again) = site.beat("");
    assert_eq!(status, 200, "{again}");
    let plain = site.ask("POST", "/heartbeats", "{\"heartbeat_id\":null}");
    assert_eq!(plain.status, 200, "{}", plain.json());
    for (body, field) in [("{\"heartbeat_id\":7}", "heartbeat_id"), ("[]", "body")] {
        let wrong = site.ask("POST", "/heartbeats", body);
        assert_eq!((wrong.status, &wrong.json()["field"]), (400, &field.into()), "{}", wrong.json());
    }
    site.exchange.stop();
}

#[test]
fn beats_keep_orders_and_a_switch_that_is_taken_away_cancels_nothing() {
    let mut site = Site::start(2, 0);
    let order = site.bid(false, 0, 10, 5);
    let (_, mut beat) = site.beat("");
    for _ in 0..5 {
        site.advance(10_000);
        let id = beat["heartbeat_id"].as_str().unwrap().to_owned();
        let (status, next) = site.beat(&id);
        assert_eq!(status, 200, "{next}");
        beat = next;
    }
    let stopped = site.ask("DELETE", "/heartbeats", "");
    assert_eq!((stopped.status, &stopped.json()["heartbeat_id"]), (200, &"".into()));
    site.advance(60_000);
    assert_eq!(site.live(), [order]);
    site.exchange.stop();
}

#[test]
fn an_armed_switch_outlives_the_process_and_its_clock_begins_anew() {
    let mut site = Site::start(2, 0);
    let order = site.bid(false, 1, 10, 5);
    let (_, beat) = site.beat("");
    site.advance(10_000);
    let mut site = site.restart();
    let mut stream = site.listen();
    site.advance(14_000);
    assert_eq!(site.live(), std::slice::from_ref(&order), "the time before the start does not count");
    // The new process does not know the id of the one before; showing that id is good enough.
    let id = beat["heartbeat_id"].as_str().unwrap().to_owned();
    assert_eq!(site.beat(&id).0, 200);
    site.advance(14_999);
    assert_eq!(site.live().len(), 1);
    site.advance(1);
    assert_eq!(ended(&mut stream, 1), all_with(&[&order], "heartbeat_missed"));
    site.exchange.stop();
}

#[test]
fn a_breaker_trips_when_too_much_was_filled_within_its_interval() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut stream = site.listen();
        let set = site.ask("POST", "/breaker", "{\"quantity\":\"20\",\"interval_ms\":8000}");
        assert_eq!(
            set.json(),
            json!({ "quantity": "20", "interval_ms": 8_000, "filled": "0", "tripped": false })
        );
        let kept = site.bid(true, 0, 12, 50);
        let (first, second) = (site.bid(false, 0, 20, 50), site.bid(false, 1, 20, 50));
        assert_eq!(site.sell(0, 20, 9).status, 200);
        assert_eq!(site.sell(1, 20, 10).status, 200);
        let shown = site.ask("GET", "/breaker", "").json();
        assert_eq!((&shown["filled"], &shown["tripped"]), (&"19".into(), &false.into()), "{shown}");
        // Nine seconds later none of the fills counts any more.
        site.advance(9_001);
        assert_eq!(site.sell(0, 20, 15).status, 200);
        assert_eq!(site.ask("GET", "/breaker", "").json()["filled"], "15");
        assert_eq!(site.sell(1, 20, 5).status, 200);
        // From the fill that trips it on, no order of the key trades, swept or not.
        let met = site.sell(0, 20, 1).json();
        assert_eq!(met["code"], "fak_no_match", "{met}");
        assert_eq!(ended(&mut stream, 2), all_with(&[&first, &second], "fill_rate"));
        assert_eq!(site.live(), [kept]);
        let order = site.maker.sign(&site.wish(0, Side::Buy, 10, 5));
        let refused = site.ask("POST", "/order", &order.body);
        assert_eq!((refused.status, &refused.json()["code"]), (409, &"fill_rate_tripped".into()));
        // It stays so whatever happens, until its owner says otherwise.
        let mut site = site.restart();
        assert_eq!(site.ask("GET", "/breaker", "").json()["tripped"], true);
        assert_eq!(site.ask("POST", "/order", &order.body).status, 409);
        assert_eq!(site.ask("POST", "/breaker/reset", "").json()["tripped"], false);
        let taken = site.ask("POST", "/order", &order.body);
        assert_eq!(taken.status, 200, "{}", taken.json());
        let gone = site.ask("DELETE", "/breaker", "").json();
        assert_eq!((&gone["quantity"], &gone["interval_ms"]), (&"0".into(), &0.into()));
        assert_eq!(site.ask("POST", "/breaker/reset", "").json()["code"], "breaker_not_set");
        site.exchange.stop();
    }
}

#[test]
fn a_breaker_that_makes_no_sense_is_refused_by_name() {
    let mut site = Site::start(1, 0);
    for (body, code, field_or_text) in [
        ("{}", "invalid_payload", "quantity"),
        ("{\"quantity\":\"0\",\"interval_ms\":1}", "invalid_payload", "quantity"),
        ("{\"quantity\":\"-1\",\"interval_ms\":1}", "invalid_payload", "quantity"),
        ("{\"quantity\":\"0.0000001\",\"interval_ms\":1}", "invalid_payload", "quantity"),
        ("{\"quantity\":1}", "invalid_payload", "interval_ms"),
        (
            "{\"quantity\":1,\"interval_ms\":0}",
            "breaker_interval",
            "interval_ms: 0 is not within 1 to 86400000",
        ),
        ("{\"quantity\":1,\"interval_ms\":86400001}", "breaker_interval", "interval_ms: 86400001 is not"),
        (
            "{\"quantity\":\"1000000000.000001\",\"interval_ms\":1}",
            "breaker_quantity",
            "quantity: 1000000000.000001 is",
        ),
        (
            "{\"quantity\":\"18446744073710\",\"interval_ms\":1}",
            "breaker_quantity",
            "quantity: so much is more than 1000000000 shares",
        ),
        (
            "{\"quantity\":18446744073710,\"interval_ms\":1}",
            "breaker_quantity",
            "quantity: so much is more than 1000000000 shares",
        ),
        (
            "{\"quantity\":18446744073709551616,\"interval_ms\":1}",
            "breaker_quantity",
            "quantity: so much is more than 1000000000 shares",
        ),
    ] {
        let answer = site.ask("POST", "/breaker", body);
        let said = answer.json();
        assert_eq!((answer.status, said["code"].as_str()), (400, Some(code)), "{body}: {said}");
        let named = said["field"].as_str().or(said["error"].as_str());
        assert!(named.is_some_and(|named| named.starts_with(field_or_text)), "{body}: {said}");
    }
    assert_eq!(site.ask("GET", "/breaker", "").json()["quantity"], "0");
    let largest = site.ask("POST", "/breaker", "{\"quantity\":1000000000,\"interval_ms\":86400000}");
    assert_eq!(largest.status, 200, "{}", largest.json());
    site.exchange.stop();
}

#[test]
fn each_order_that_a_cancel_will_keep_out_is_named() {
    const TOMBSTONES: usize = 256;
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let orders = [0, 1].map(|market| site.maker.sign(&site.wish(market, Side::Buy, 10, 5)));
        let mut ids: Vec<String> = orders.iter().map(|order| order.id_text.clone()).collect();
        ids.extend((0..TOMBSTONES).map(|number| format!("0x{number:064x}")));
        let answer = site.ask("DELETE", "/orders", &json!(ids).to_string()).json();
        assert_eq!(answer["not_canceled"].as_object().unwrap().len(), ids.len());
        let named = answer["tombstones"].as_array().unwrap();
        assert_eq!(named.len(), TOMBSTONES, "{shards} shards, {ingress} ingress");
        for order in &orders {
            let refused = site.ask("POST", "/order", &order.body);
            let is_named = named.iter().any(|id| id == order.id_text.as_str());
            assert_eq!(refused.json()["code"] == "cancelled_before_arrival", is_named, "{}", refused.json());
        }
        assert!(named.iter().any(|id| id == orders[0].id_text.as_str()), "the first of a list is kept out");
        site.exchange.stop();
    }
}

#[test]
fn a_replace_does_not_say_of_an_order_in_another_market_that_it_is_gone() {
    for shards in [1, 2] {
        let mut site = Site::start(shards, 0);
        let elsewhere = site.bid(false, 0, 10, 5);
        let order = site.maker.sign(&site.wish(1, Side::Buy, 11, 5));
        let body = format!(r#"{{"cancel":["{elsewhere}"],"place":[{}],"ifGone":"place"}}"#, order.body);
        let answer = site.ask("POST", "/replace", &body);
        assert_eq!(answer.status, 200, "{}", answer.json());
        let said = &answer.json()["not_canceled"][&elsewhere];
        assert_eq!(said, "order is not open in the market of the orders to be placed");
        assert!(site.live().contains(&elsewhere));
        site.exchange.stop();
    }
}
