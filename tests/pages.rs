//! What web pages of other origins may do, by the running binary: ask as a browser asks for them, and read what
//! `allowed_origins` lets them read.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::{Answer, Connection, request};
use tempfile::TempDir;

const APP: &str = "https://app.example";

fn start(settings: &[&str]) -> (TempDir, Exchange) {
    let folder = folder();
    let plan = Plan::dev(folder.path()).set("cpu.policy=unpinned");
    let exchange = settings.iter().fold(plan, |plan, setting| plan.set(setting)).start();
    (folder, exchange)
}

fn of_page(origin: &str) -> String {
    if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") }
}

/// The origin that may read the answer; empty if none but its own may.
fn readable_by(answer: &Answer) -> &str {
    let origin = answer.header("Access-Control-Allow-Origin");
    let (headers, varies) = (answer.header("Access-Control-Expose-Headers"), answer.header("Vary"));
    let expected = if origin.is_some() { (Some("*"), Some("Origin")) } else { (None, None) };
    assert_eq!((headers, varies), expected, "{}", answer.head);
    origin.unwrap_or_default()
}

/// Who may read an answer, by setting and by the page that asks.
const TABLE: &[(&str, &[(&str, &str)])] = &[
    ("allowed_origins=", &[("", ""), (APP, ""), ("null", "")]),
    ("allowed_origins=*", &[("", ""), (APP, "*"), ("null", "*")]),
    (
        "allowed_origins=https://app.example,http://localhost:3000",
        &[
            ("", ""),
            (APP, APP),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://localhost:3001", ""),
            ("https://evil.example", ""),
            ("null", ""),
        ],
    ),
];

/// Requests of every kind that a page may send, and their statuses.
const REQUESTS: &[(&str, &str, &str, u16)] = &[
    ("GET", "/time", "", 200),
    ("GET", "/markets", "", 200),
    ("GET", "/book?token_id=1", "", 404),
    ("GET", "/nowhere", "", 404),
    ("DELETE", "/book", "", 405),
    ("GET", "/data/orders", "", 401),
    ("POST", "/order", "{}", 401),
    ("DELETE", "/order", "{}", 401),
    ("POST", "/auth/api-key", "", 401),
    ("GET", "/ws/market", "", 426),
];

#[test]
fn every_answer_to_a_whole_request_names_the_page_that_may_read_it() {
    for (setting, pages) in TABLE {
        let (_folder, exchange) = start(&[setting]);
        let mut connection = exchange.connect();
        for (origin, reader) in *pages {
            for (method, path, body, status) in REQUESTS {
                // Without waiting, and with a request of no page behind it.
                let mut both = request(method, path, &of_page(origin), body.as_bytes());
                both.extend_from_slice(&request("GET", "/ok", "", b""));
                connection.send(&both).unwrap();
                let answer = connection.answer().unwrap();
                assert_eq!(answer.status, *status, "{method} {path}");
                assert_eq!(readable_by(&answer), *reader, "{setting}: {method} {path} from {origin:?}");
                assert_eq!(readable_by(&connection.answer().unwrap()), "", "its own request has no page");
            }
        }
        exchange.stop();
    }
}

/// What browsers ask first, and the methods that they are told.
const PREFLIGHTS: &[(&str, u16, &str)] = &[
    ("/order", 200, "POST, DELETE"),
    ("/orders", 200, "POST, DELETE"),
    ("/cancel-all", 200, "DELETE"),
    ("/auth/api-key", 200, "POST, DELETE"),
    ("/auth/derive-api-key", 200, "GET, HEAD"),
    ("/book?token_id=1", 200, "GET, HEAD"),
    ("/nowhere", 200, ""),
];

#[test]
fn a_browser_is_told_how_a_page_may_ask() {
    let (_folder, exchange) = start(&["allowed_origins=https://app.example"]);
    let mut connection = exchange.connect();
    for (path, status, methods) in PREFLIGHTS {
        let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: poly_address\r\n";
        let lines = format!("{}{asks}", of_page(APP));
        let told = connection.request("OPTIONS", path, &lines, b"").unwrap();
        assert_eq!((told.status, readable_by(&told)), (*status, APP), "{path}");
        let header = |name: &str| told.header(name).unwrap_or_default();
        assert_eq!(header("Allow"), *methods, "{path}");
        assert_eq!(
            header("Access-Control-Allow-Methods"),
            "GET, HEAD, POST, DELETE",
            "a page reads refusals: {path}"
        );
        if *status == 200 {
            assert_eq!(header("Access-Control-Allow-Headers"), "*, Authorization", "{path}");
            assert_eq!((header("Access-Control-Max-Age"), told.body.len()), ("7200", 0), "{path}");
        }
        // A page that may read nothing is told nothing.
        for stranger in ["", "https://evil.example"] {
            let lines = format!("{}{asks}", of_page(stranger));
            let refused = connection.request("OPTIONS", path, &lines, b"").unwrap();
            let status = if methods.is_empty() { 404 } else { 405 };
            assert_eq!((refused.status, readable_by(&refused)), (status, ""), "{path} from {stranger:?}");
            assert_eq!(refused.header("Access-Control-Allow-Methods"), None, "{path} from {stranger:?}");
        }
    }
    exchange.stop();
}

/// Bytes that are refused before they are a request, with their statuses.
fn refused_bytes() -> Vec<(&'static str, Vec<u8>, u16)> {
    let lines = |more: &str| format!("{}{more}", of_page(APP));
    let of = |path: &str, more: &str, body: &[u8]| request("GET", path, &lines(more), body);
    let families = "POLY_ADDRESS: 0x1\r\nKUEST_ADDRESS: 0x1\r\n";
    let many = "A: b\r\n".repeat(200);
    let in_chunks = format!("Host: a\r\n{}Transfer-Encoding: chunked\r\n\r\n", of_page(APP));
    let chunks = format!("POST /order HTTP/1.1\r\n{in_chunks}xyz\r\n");
    vec![
        ("two families", of("/time", families, b""), 400),
        ("a header twice", of("/time", &of_page(APP), b""), 400),
        ("too many headers", of("/time", &many, b""), 431),
        ("a long target", of(&format!("/positions?market={}", "0".repeat(13_000)), "", b""), 414),
        ("a large body", request("POST", "/order", &lines(""), &vec![b' '; 2 << 20]), 413),
        ("no length of a chunk", chunks.into_bytes(), 400),
    ]
}

#[test]
fn a_page_reads_why_its_bytes_were_refused() {
    let (_folder, exchange) = start(&["allowed_origins=https://app.example"]);
    for (what, bytes, status) in refused_bytes() {
        let mut connection = exchange.connect();
        // The end of a body may find the connection closed.
        let _ = connection.send(&bytes);
        let answer = connection.answer().unwrap();
        assert_eq!((answer.status, readable_by(&answer)), (status, APP), "{what}: {}", answer.head);
        let body = answer.json();
        assert_eq!(body["code"], "bad_request", "{what}");
        let named = ["field", "got", "allowed"].map(|name| body[name].as_str());
        let expected = match what {
            "two families" => [Some("KUEST_ADDRESS"), None, None],
            "a header twice" => [Some("Origin"), Some("twice"), Some("once")],
            _ => [None; 3],
        };
        assert_eq!(named, expected, "{what}: {body}");
    }
    exchange.stop();
}

#[test]
fn a_page_with_no_reads_left_may_still_ask_whether_it_may_cancel() {
    let (_folder, exchange) = start(&["limits.mode=enforce", "limits.clob=5/10m"]);
    let mut connection = exchange.connect();
    let asks = |method: &str| format!("{}Access-Control-Request-Method: {method}\r\n", of_page(APP));
    let mut ask =
        |method: &str, path: &str, lines: &str| connection.request(method, path, lines, b"").unwrap().status;
    let reads = std::iter::repeat_with(|| ask("GET", "/time", "")).take_while(|status| *status == 200);
    assert_eq!(reads.count(), 5);
    for (method, path, status) in [
        ("DELETE", "/order", 200),
        ("DELETE", "/cancel-all", 200),
        ("POST", "/order", 200),
        ("GET", "/time", 429),
        ("DELETE", "/time", 429),
        ("GET", "/nowhere", 429),
    ] {
        assert_eq!(ask("OPTIONS", path, &asks(method)), status, "{method} {path}");
    }
    exchange.stop();
}

#[test]
fn a_page_reads_what_became_of_its_orders_and_the_whole_of_long_answers() {
    let (_folder, exchange) = start(&[]);
    let yes = token(&exchange.market("Does it rain?").tokens[0]);
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    for price in 1..=40 {
        let order = trader.sign(&Wish::buy(yes, price * 100, 5_000_000));
        connection.send(&trader.request_with(&of_page(APP), "POST", "/order", &order.body)).unwrap();
        let answer = connection.answer().unwrap();
        assert_eq!((answer.status, readable_by(&answer)), (200, "*"), "{}", answer.head);
        assert_eq!(answer.json()["success"], true);
        let timing = answer.header("Server-Timing").unwrap();
        assert!(timing.contains("total;dur=") && !timing.contains("Access"), "{timing}");
    }
    connection.send(&trader.request_with(&of_page(APP), "GET", "/data/orders", "")).unwrap();
    let orders = connection.answer().unwrap();
    assert_eq!((orders.status, readable_by(&orders)), (200, "*"));
    assert!(8_192 < orders.body.len(), "{} bytes are not much", orders.body.len());
    let rows = orders.json();
    assert_eq!(rows["data"].as_array().unwrap().len(), 40);
    exchange.stop();
}

#[test]
fn the_operators_listener_is_open_to_no_page_but_its_own() {
    let (_folder, exchange) = start(&["allowed_origins=*"]);
    let mut admin = Connection::open(exchange.admin);
    for (method, path) in [("GET", "/health"), ("OPTIONS", "/mode"), ("POST", "/mode")] {
        let answer = admin.request(method, path, &of_page(APP), b"").unwrap();
        assert_eq!((answer.status, readable_by(&answer)), (403, ""), "{method} {path}");
    }
    exchange.stop();
}

#[test]
fn what_is_no_origin_keeps_the_exchange_from_starting() {
    let folder = folder();
    let run = Plan::dev(folder.path()).set("allowed_origins=https://app.example/").run();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        !run.status.success()
            && said.contains("allowed_origins: https://app.example/ is not * and no origin"),
        "{said}"
    );
}
