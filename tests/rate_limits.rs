//! Rate limits of the running binary. Its clock stands still until a test moves it, so held requests stay
//! held, and refused ones stay refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

#[path = "rate_limits/bodies.rs"]
mod bodies;
mod common;
#[path = "rate_limits/gone.rs"]
mod gone;
#[path = "rate_limits/met.rs"]
mod met;
#[path = "rate_limits/routes.rs"]
mod routes;
#[path = "rate_limits/streams.rs"]
mod streams;
#[path = "rate_limits/wallets.rs"]
mod wallets;

use common::exchange::{Exchange, Plan};
use common::folder;
use common::trader::{KEYS, Trader, Wish, first_key_headers, token};
use common::wire::{Answer, Connection, request};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long anything may take that must happen; machines are slow.
const PATIENCE: Duration = Duration::from_mins(2);

struct Site {
    exchange: Exchange,
    connection: Connection,
    trader: Trader,
    token: String,
    _folder: tempfile::TempDir,
}

impl Site {
    fn start(settings: &[&str]) -> Self {
        let folder = folder();
        let plan = Plan::dev(folder.path()).words(["--clock", "manual"]).set("cpu.policy=unpinned");
        let plan = settings.iter().fold(plan, |plan, setting| plan.set(setting));
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let now_ms = exchange.read("/time").as_u64().unwrap() * 1_000;
        let trader = Trader::at(KEYS[1], &mut connection, Some(now_ms));
        let markets = exchange.read("/simplified-markets");
        let token = markets["data"][0]["tokens"][0]["token_id"].as_str().unwrap().to_owned();
        Self { exchange, connection, trader, token, _folder: folder }
    }

    /// How many requests were held, refused or warned about.
    fn count(&self, what: &str) -> u64 {
        self.exchange.metric(&format!("outcry_limited_requests_total{{what=\"{what}\"}}"))
    }

    /// Polls until `count` requests are held.
    fn until_held(&self, count: u64) {
        let deadline = Instant::now() + PATIENCE;
        while self.count("waited") < count {
            assert!(Instant::now() < deadline, "nothing is held");
        }
        assert_eq!(self.count("waited"), count);
    }

    fn order(&mut self) -> String {
        let token = token(&self.token);
        self.trader.sign(&Wish::buy(token, 1_000, 5_000_000)).body
    }

    fn batch(&mut self, orders: usize) -> String {
        let bodies: Vec<String> = (0..orders).map(|_| self.order()).collect();
        format!("[{}]", bodies.join(","))
    }

    fn place(&mut self) -> Answer {
        let body = self.order();
        self.ask("POST", "/order", &body)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.trader.ask(&mut self.connection, method, path, body).unwrap()
    }

    /// A new connection that has sent an order and not read its answer.
    fn sent(&mut self) -> Connection {
        let body = self.order();
        let mut connection = self.exchange.connect();
        connection.send(&self.trader.request("POST", "/order", &body)).unwrap();
        connection
    }

    /// `GET path` as the proxy forwards it for `client`.
    fn forwarded(&mut self, client: &str, path: &str) -> Answer {
        let header = format!("X-Forwarded-For: {client}\r\n");
        self.connection.request("GET", path, &header, b"").unwrap()
    }

    /// A wallet's owner asks for its first key, as the proxy forwards it for `client`.
    fn first_key(&mut self, client: &str, key: &str) -> Answer {
        let now_ms = self.connection.read("/time").as_u64().unwrap() * 1_000;
        let headers = format!("X-Forwarded-For: {client}\r\n{}", first_key_headers(key, now_ms));
        self.connection.request("POST", "/auth/api-key", &headers, b"").unwrap()
    }

    /// A signed `GET path` as the proxy forwards it for `client`.
    fn signed(&mut self, client: &str, path: &str) -> Answer {
        let header = format!("X-Forwarded-For: {client}\r\n");
        self.connection.send(&self.trader.request_with(&header, "GET", path, "")).unwrap();
        self.connection.answer().unwrap()
    }
}

/// Status, `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`, and whatever there is of
/// `Retry-After` and `RateLimit-Warning`.
fn said(answer: &Answer) -> String {
    let mut text = answer.status.to_string();
    for name in ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"] {
        text = format!("{text} {}", answer.header(name).unwrap_or("-"));
    }
    if let Some(seconds) = answer.header("Retry-After") {
        assert_eq!(answer.json()["retry_after_seconds"].to_string(), seconds, "body and head differ");
    }
    for (name, word) in [("Retry-After", "retry"), ("RateLimit-Warning", "warning")] {
        if let Some(value) = answer.header(name) {
            text = format!("{text} {word} {value}");
        }
    }
    text
}

#[test]
fn a_burst_passes_then_requests_are_held_then_refused_and_each_is_counted_once() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=4/2s"]);
    for expected in ["200 4 3 1", "200 4 2 1", "200 4 1 2", "200 4 0 2"] {
        assert_eq!(said(&site.place()), expected);
    }
    let mut first = site.sent();
    site.until_held(1);
    let mut second = site.sent();
    site.until_held(2);
    let refused = site.place();
    assert_eq!(said(&refused), "429 4 0 3 retry 2");
    let body = refused.json();
    assert_eq!((&body["code"], &body["errorMsg"]), (&json!("rate_limited"), &json!("Too Many Requests")));
    site.exchange.advance(500);
    assert_eq!(said(&first.answer().unwrap()), "200 4 0 2");
    site.exchange.advance(500);
    assert_eq!(said(&second.answer().unwrap()), "200 4 0 2");
    // Six were taken in a second that has room for two: half a second later there is room for one.
    site.exchange.advance(500);
    assert_eq!(said(&site.place()), "200 4 0 2");
    assert_eq!((site.count("waited"), site.count("refused")), (2, 1));
}

#[test]
fn what_stands_behind_a_held_request_waits_and_leaves_in_order() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=1/1s"]);
    assert_eq!(site.place().status, 200);
    let mut connection = site.sent();
    site.until_held(1);
    let cancel = site.trader.request("DELETE", "/cancel-all", "");
    connection.send(&cancel).unwrap();
    connection.send(&request("GET", "/time", "", b"")).unwrap();
    // The same request on another connection is not held.
    assert_eq!(site.ask("DELETE", "/cancel-all", "").json()["canceled"].as_array().unwrap().len(), 1);
    site.exchange.advance(1_000);
    assert_eq!(connection.answer().unwrap().json()["status"], "live");
    assert_eq!(connection.answer().unwrap().json()["canceled"].as_array().unwrap().len(), 1);
    assert_eq!(connection.answer().unwrap().status, 200);
}

#[test]
fn a_deadline_from_now_on_counts_from_when_the_request_came() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=1/1s"]);
    for (after_us, code) in [(1_001_000, None), (1_000_000, Some("deadline_passed"))] {
        site.exchange.advance(2_000);
        assert_eq!(site.place().status, 200);
        let held = site.count("waited");
        let body = site.order();
        let header = format!("X-Outcry-Deadline: +{after_us}\r\n");
        let mut connection = site.exchange.connect();
        connection.send(&site.trader.request_with(&header, "POST", "/order", &body)).unwrap();
        site.until_held(held + 1);
        site.exchange.advance(1_000);
        assert_eq!(connection.answer().unwrap().json()["code"].as_str(), code, "+{after_us}");
    }
}

#[test]
fn placing_never_takes_what_cancels_need() {
    for (shards, ingress) in [
        ("cpu.shards=1", "cpu.ingress=0"),
        ("cpu.shards=2", "cpu.ingress=0"),
        ("cpu.shards=2", "cpu.ingress=1"),
    ] {
        let limits = ["limits.mode=enforce", "limits.order=1/10m", "limits.cancel=7/10m", shards, ingress];
        let mut site = Site::start(&limits);
        let id = site.place().json()["orderID"].as_str().unwrap().to_owned();
        assert_eq!(said(&site.place()), "429 1 0 600 retry 600");
        let batch = site.batch(2);
        assert_eq!(site.ask("POST", "/orders", &batch).status, 429);
        for (count, (method, path, body)) in [
            ("DELETE", "/order", format!("{{\"orderID\":\"{id}\"}}")),
            ("DELETE", "/orders", format!("[\"{id}\"]")),
            ("DELETE", "/cancel-all", String::new()),
            ("DELETE", "/cancel-market-orders", format!("{{\"asset_id\":\"{}\"}}", site.token)),
            ("POST", "/v1/heartbeats", "{}".to_owned()),
        ]
        .into_iter()
        .enumerate()
        {
            let answer = site.ask(method, path, &body);
            let left = (6 - count).to_string();
            let remaining = answer.header("RateLimit-Remaining").map(str::to_owned);
            assert_eq!((answer.status, remaining), (200, Some(left)), "{method} {path}");
        }
        assert_eq!(site.place().status, 429);
    }
}

#[test]
fn a_batch_costs_as_many_as_it_has_orders_and_is_taken_whole_or_not() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=8/8s, 20/10m"]);
    let (three, seven) = (site.batch(3), site.batch(7));
    assert_eq!(said(&site.ask("POST", "/orders", &three)), "200 8 5 3");
    // However often it is sent: a refusal costs nothing, so it gets through as soon as if it had waited.
    for _ in 0..4 {
        assert_eq!(said(&site.ask("POST", "/orders", &seven)), "429 8 5 3 retry 2");
    }
    site.exchange.advance(2_000);
    assert_eq!(said(&site.ask("POST", "/orders", &seven)), "200 8 0 8");
    site.exchange.advance(8_000);
    assert_eq!(said(&site.ask("POST", "/orders", &three)), "200 8 5 3");
    site.exchange.advance(8_000);
    // The longer window is the tighter one now.
    let eight = site.batch(8);
    let refused = site.ask("POST", "/orders", &eight);
    assert_eq!((refused.status, refused.header("RateLimit-Limit")), (429, Some("20")));
}

#[test]
fn a_cancel_of_many_orders_costs_one_for_each_sixteen_begun() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.cancel=10/10m"]);
    let mut cancel = |ids: usize| {
        let ids: Vec<String> = (0..ids).map(|id| format!("\"0x{id:064x}\"")).collect();
        said(&site.ask("DELETE", "/orders", &format!("[{}]", ids.join(","))))
    };
    assert_eq!(cancel(1), "200 10 9 60");
    assert_eq!(cancel(16), "200 10 8 120");
    assert_eq!(cancel(17), "200 10 6 240");
    assert_eq!(cancel(100), "429 10 6 240 retry 60");
    assert_eq!(cancel(96), "200 10 0 600");
}

#[test]
fn a_cancel_that_looks_at_many_orders_in_vain_costs_more_afterwards() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=none", "limits.cancel=100/100s"]);
    for _ in 0..69 {
        let batch = site.batch(15);
        assert_eq!(site.ask("POST", "/orders", &batch).status, 200);
    }
    let markets = site.exchange.read("/simplified-markets");
    let other = markets["data"][0]["tokens"][1]["token_id"].as_str().unwrap().to_owned();
    let mut cancel = |token: &str| {
        let body = format!("{{\"asset_id\":\"{token}\"}}");
        said(&site.ask("DELETE", "/cancel-market-orders", &body))
    };
    let token = markets["data"][0]["tokens"][0]["token_id"].as_str().unwrap();
    assert_eq!(cancel(&other), "200 100 99 1");
    assert_eq!(cancel(&other), "200 100 97 3", "1,035 orders were looked at and left");
    assert_eq!(cancel(token), "200 100 95 5");
    assert_eq!(cancel(token), "200 100 94 6", "all of them were meant");
}

#[test]
fn whatever_is_refused_says_in_head_and_body_when_to_ask_again() {
    let limits = ["order", "cancel", "account"].map(|scope| format!("limits.{scope}=1/10m"));
    let mut site = Site::start(&["limits.mode=enforce", &limits[0], &limits[1], &limits[2]]);
    let id = site.place().json()["orderID"].as_str().unwrap().to_owned();
    let (order, batch) = (site.order(), site.batch(2));
    let (one, some) = (format!("{{\"orderID\":\"{id}\"}}"), format!("[\"{id}\"]"));
    let replace = format!("{{\"cancel\":{some},\"place\":{batch}}}");
    assert_eq!(site.ask("DELETE", "/order", &one).status, 200);
    assert_eq!(site.ask("GET", "/account", "").status, 200);
    for (method, path, body) in [
        ("POST", "/order", &order[..]),
        ("POST", "/orders", &batch),
        ("POST", "/replace", &replace),
        ("DELETE", "/order", &one),
        ("DELETE", "/orders", &some),
        ("DELETE", "/cancel-all", ""),
        ("POST", "/v1/heartbeats", "{}"),
        ("GET", "/account", ""),
    ] {
        assert_eq!(said(&site.ask(method, path, body)), "429 1 0 600 retry 600", "{method} {path}");
    }
}

#[test]
fn warn_tells_and_lets_everything_pass_and_off_says_nothing() {
    let mut site = Site::start(&["limits.order=1/10m"]);
    assert_eq!(said(&site.place()), "200 1 0 600");
    for _ in 0..3 {
        assert_eq!(said(&site.place()), "200 1 0 600 warning over");
    }
    assert_eq!((site.count("warned"), site.count("waited"), site.count("refused")), (3, 0, 0));
    assert_eq!(site.exchange.read("/limits")["mode"], "warn");

    let mut site = Site::start(&["limits.mode=off", "limits.order=1/10m"]);
    for _ in 0..3 {
        assert_eq!(said(&site.place()), "200 - - -");
    }
    assert_eq!(site.exchange.read("/limits")["mode"], "off");
}

#[test]
fn reads_have_their_own_limits_and_their_groups() {
    let settings =
        ["limits.mode=enforce", "limits.tags=2/10m", "limits.catalog=3/10m", "limits.listings=1/10m"];
    let mut site = Site::start(&settings);
    for (path, status) in [
        ("/tags", 200),
        ("/tags", 200),
        ("/tags", 429),
        ("/events", 200),
        ("/time", 200),
        // Everything that the catalog's limit has room for is taken; a refusal costs nothing.
        ("/series", 429),
        ("/book?token_id=1", 404),
    ] {
        assert_eq!(site.connection.request("GET", path, "", b"").unwrap().status, status, "{path}");
    }
    let refused = site.connection.request("GET", "/tags", "", b"").unwrap();
    assert_eq!(said(&refused), "429 2 0 600 retry 300");
    assert_eq!(refused.json()["code"], "rate_limited");
    site.exchange.advance(200_000);
    assert_eq!(site.connection.request("GET", "/events", "", b"").unwrap().status, 429);
    assert_eq!(site.connection.request("GET", "/series", "", b"").unwrap().status, 200);
}

#[test]
fn what_has_no_route_is_counted_like_any_plain_request() {
    const LIMIT: usize = 12;
    let clob = format!("limits.clob={LIMIT}/10m");
    let mut site = Site::start(&["limits.mode=enforce", &clob, "trusted_proxies=127.0.0.1"]);
    let ways = [("GET", "/nowhere", 404), ("DELETE", "/book", 405), ("GET", "/ws/market", 426)];
    for (client, (method, path, status)) in ["1.1.1.1", "1.1.1.2", "1.1.1.3"].into_iter().zip(ways) {
        let header = format!("X-Forwarded-For: {client}\r\n");
        for left in (0..LIMIT).rev() {
            let answer = site.connection.request(method, path, &header, b"").unwrap();
            let left = left.to_string();
            let said = (answer.status, answer.header("RateLimit-Remaining"));
            assert_eq!(said, (status, Some(&left[..])), "{method} {path}");
        }
        let refused = site.connection.request(method, path, &header, b"").unwrap();
        assert_eq!(said(&refused), "429 12 0 600 retry 50", "{method} {path}");
    }
}

#[test]
fn only_a_trusted_proxy_says_who_is_asking() {
    let limits = ["limits.mode=enforce", "limits.root=2/10m"];
    let mut site = Site::start(&limits);
    for (client, status) in [("1.1.1.1", 200), ("1.1.1.2", 200), ("1.1.1.3", 429)] {
        assert_eq!(site.forwarded(client, "/").status, status, "{client}");
    }
    let mut site = Site::start(&[&limits[..], &["trusted_proxies=127.0.0.0/8"]].concat());
    for (client, status) in [
        ("1.1.1.1", 200),
        ("9.9.9.9, 1.1.1.1", 200),
        ("7.7.7.7, 1.1.1.1, 127.0.0.3", 429),
        ("1.1.1.2", 200),
        // One customer's IPv6 network.
        ("2001:db8::1", 200),
        ("2001:db8::ffff:2", 200),
        ("2001:db8::3", 429),
        ("2001:db8:0:1::3", 200),
    ] {
        assert_eq!(site.forwarded(client, "/").status, status, "{client}");
    }
}

#[test]
fn a_flood_of_made_up_addresses_frees_nobody_at_its_limit() {
    const FLOOD: u32 = 20_000;
    const PIPELINED: u32 = 16;
    let mut site = Site::start(&["limits.mode=enforce", "limits.root=2/10m", "trusted_proxies=127.0.0.1"]);
    for status in [200, 200, 429] {
        assert_eq!(site.forwarded("1.1.1.1", "/").status, status);
    }
    for from in (0..FLOOD).step_by(PIPELINED as usize) {
        let made_up = (from..from + PIPELINED).flat_map(|number| {
            let client = std::net::Ipv4Addr::from_bits(0x0b00_0000 + number);
            request("GET", "/", &format!("X-Forwarded-For: {client}\r\n"), b"")
        });
        site.connection.send(&made_up.collect::<Vec<_>>()).unwrap();
        for _ in 0..PIPELINED {
            assert_eq!(site.connection.answer().unwrap().status, 200);
        }
    }
    assert_eq!(site.forwarded("1.1.1.1", "/").status, 429);
}

#[test]
fn an_owner_is_counted_wherever_it_asks_from_and_only_by_its_own_signature() {
    let settings = ["limits.mode=enforce", "limits.data_trades=2/2s", "trusted_proxies=127.0.0.1"];
    let mut site = Site::start(&settings);
    let path = "/data/trades";
    assert_eq!(said(&site.signed("1.0.0.1", path)), "200 2 1 1");
    // A request that knows only the key's name is charged to its own address.
    for client in ["6.0.0.1", "6.0.0.2"] {
        let header = format!("X-Forwarded-For: {client}\r\n");
        let good = String::from_utf8(site.trader.request_with(&header, "GET", path, "")).unwrap();
        site.connection.send(good.replace("POLY_SIGNATURE: ", "POLY_SIGNATURE: A").as_bytes()).unwrap();
        assert_eq!(site.connection.answer().unwrap().status, 401);
    }
    assert_eq!(said(&site.signed("1.0.0.2", path)), "200 2 0 2");
    // A third address has room but the key's owner has none: the answer waits.
    let mut other = site.exchange.connect();
    let held = site.trader.request_with("X-Forwarded-For: 1.0.0.3\r\n", "GET", path, "");
    other.send(&held).unwrap();
    site.until_held(1);
    assert_eq!(said(&site.signed("1.0.0.4", path)), "429 2 0 3 retry 2");
    let now_ms = site.exchange.read("/time").as_u64().unwrap() * 1_000;
    let mut second = Trader::at(KEYS[2], &mut site.connection, Some(now_ms));
    std::mem::swap(&mut site.trader, &mut second);
    // The address of the refused request still has all of its room.
    assert_eq!(said(&site.signed("1.0.0.4", path)), "200 2 1 1");
    site.exchange.advance(1_000);
    assert_eq!(said(&other.answer().unwrap()), "200 2 0 3");
}

#[test]
fn few_reads_of_owners_are_held_and_the_next_is_refused_and_costs_nothing() {
    /// Held at the reader, whoever's they are.
    const HELD_MAX: u64 = 32;
    /// One in 5 ms.
    const BURST: u64 = 200;
    let settings = ["limits.mode=enforce", "limits.data_trades=200/1s", "trusted_proxies=127.0.0.1"];
    let mut site = Site::start(&settings);
    let path = "/data/trades";
    // Each from an address of its own, so that only the owner's limit is felt.
    let mut clients = (0_u32..).map(|number| std::net::Ipv4Addr::from_bits(0x0100_0000 + number).to_string());
    for left in (0..BURST).rev() {
        let client = clients.next().unwrap();
        assert_eq!(said(&site.signed(&client, path)), format!("200 200 {left} 1"));
    }
    let held: Vec<Connection> = clients
        .by_ref()
        .zip(1..=HELD_MAX)
        .map(|(client, count)| {
            let header = format!("X-Forwarded-For: {client}\r\n");
            let mut connection = site.exchange.connect();
            connection.send(&site.trader.request_with(&header, "GET", path, "")).unwrap();
            site.until_held(count);
            connection
        })
        .collect();
    for client in clients.by_ref().take(3) {
        assert_eq!(said(&site.signed(&client, path)), "429 200 0 2 retry 1");
    }
    assert_eq!((site.count("waited"), site.count("refused")), (HELD_MAX, 3));
    site.exchange.advance(1_000);
    for mut connection in held {
        assert_eq!(connection.answer().unwrap().status, 200);
    }
    // 232 in the first second, and this one.
    let client = clients.next().unwrap();
    assert_eq!(said(&site.signed(&client, path)), "200 200 167 1");
}

#[test]
fn what_does_not_fit_behind_a_held_request_is_read_when_that_is_taken() {
    const LONG: usize = 6;
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=1/1s"]);
    assert_eq!(site.place().status, 200);
    let mut connection = site.sent();
    site.until_held(1);
    // Together more than a connection's buffer has.
    let padding = format!("X-Padding: {}\r\n", "x".repeat(4 << 10));
    connection.send(&request("GET", "/time", &padding, b"").repeat(LONG)).unwrap();
    site.exchange.advance(1_000);
    assert_eq!(connection.answer().unwrap().json()["status"], "live");
    for _ in 0..LONG {
        assert_eq!(connection.answer().unwrap().status, 200);
    }
}

#[test]
fn a_batch_that_costs_more_than_there_ever_is_costs_all_of_it() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=2/10m"]);
    let batch = site.batch(5);
    let answer = site.ask("POST", "/orders", &batch);
    assert_eq!(said(&answer), "200 2 0 600");
    assert_eq!(answer.json().as_array().unwrap().len(), 5);
    assert_eq!(said(&site.place()), "429 2 0 600 retry 300");
}

#[test]
fn connections_on_several_loops_are_one_client() {
    let settings = ["limits.mode=enforce", "cpu.shards=3", "limits.order=4/10m"];
    let mut site = Site::start(&settings);
    let mut answers: Vec<_> = (0..9).map(|_| said(&site.sent().answer().unwrap())).collect();
    answers.sort();
    assert_eq!(answers[..4], ["200 4 0 600", "200 4 1 450", "200 4 2 300", "200 4 3 150"]);
    assert_eq!(answers[4..], ["429 4 0 600 retry 150"; 5]);
}

#[test]
fn streams_and_keys_are_counted_too() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.streams=1/10m", "limits.keys=1/10m"]);
    let headers = site.trader.owner_headers();
    let again = site.connection.request("POST", "/auth/api-key", &headers, b"").unwrap();
    assert_eq!(said(&again), "429 1 0 600 retry 600");
    let headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let upgrade = || site.exchange.connect().request("GET", "/ws/market", headers, b"").unwrap();
    assert_eq!(upgrade().status, 101);
    assert_eq!(said(&upgrade()), "429 1 0 600 retry 600");
    site.connection.read("/time");
}

#[test]
fn everybody_can_read_the_limits() {
    let site = Site::start(&["limits.mode=enforce", "limits.book=7/1m", "limits.price=none"]);
    let shown = site.exchange.read("/limits");
    let of_operator = Connection::open(site.exchange.admin).read("/limits");
    for name in ["mode", "wait_ms_max", "counted_by", "costs", "scopes"] {
        assert_eq!(shown[name], of_operator[name], "{name}");
    }
    for route in ["POST /orders", "POST /replace"] {
        assert!(shown["costs"].to_string().contains(route), "{route} costs more than one");
    }
    assert_eq!((&shown["mode"], &shown["wait_ms_max"]), (&json!("enforce"), &json!(1_000)));
    let scope = |name: &str| -> Value {
        let rows = shown["scopes"].as_array().unwrap();
        rows.iter().find(|row| row["scope"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(scope("book")["burst"], json!({ "count": 7, "window_s": 60 }));
    assert_eq!(scope("price")["burst"], Value::Null);
    let order = scope("order");
    assert_eq!((&order["burst"]["count"], &order["sustained"]["count"]), (&json!(2_400), &json!(24_000)));
    assert_eq!((&order["unit"], &scope("cancel")["unit"]), (&json!("orders"), &json!("requests")));
}

#[test]
fn a_server_enforces_unless_it_is_told_otherwise() {
    let folder = folder();
    let plan = Plan::serve(folder.path());
    let exchange = plan.start();
    assert_eq!(exchange.read("/limits")["mode"], "enforce");
    exchange.stop();
    for (setting, fault) in [
        ("limits.boook=1/1s", "limits.boook: no such setting; did you mean limits.book?"),
        ("limits.book=fast", "limits.book: got \"fast\"; allowed: none, a rate such as 200/10s"),
        ("limits.mode=on", "limits.mode: got \"on\"; allowed: auto, enforce, warn, off"),
        ("trusted_proxies=proxy.example", "trusted_proxies: got \"proxy.example\"; allowed: addresses"),
    ] {
        let refused = plan.clone().set(setting).run();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(fault), "{setting}: {said}");
    }
}
