//! The operator's console through the running binary: its files and their headers, who may have them,
//! and what it reads.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan, outcry};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::{Answer, Connection};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before it counts as hung.
const PATIENCE: Duration = Duration::from_mins(1);

fn dev(folder: &TempDir) -> Exchange {
    Plan::dev(folder.path()).start()
}

fn ask(exchange: &Exchange, method: &str, path: &str, lines: &str) -> Answer {
    Connection::open(exchange.admin).request(method, path, lines, b"").unwrap()
}

/// Every file that the page needs, with its type.
const FILES: [(&str, &str); 7] = [
    ("/", "text/html; charset=utf-8"),
    ("/console", "text/html; charset=utf-8"),
    ("/console.js", "text/javascript; charset=utf-8"),
    ("/machine.js", "text/javascript; charset=utf-8"),
    ("/charts.js", "text/javascript; charset=utf-8"),
    ("/words.js", "text/javascript; charset=utf-8"),
    ("/console.css", "text/css; charset=utf-8"),
];
const READS: [&str; 7] =
    ["/ready", "/metrics", "/debug/latency", "/debug/latency?counts=true", "/machine", "/limits", "/books"];
const CLOSED_TO_PAGES: [&str; 5] =
    ["/health", "/markets", "/accounts/fees", "/debug/latency.hgrm", "/console.html"];

/// What browsers send about the requesting page, and whether the page, its other files, and its reads
/// are allowed then.
fn browsers(port: u16) -> Vec<(String, [bool; 3])> {
    let own = format!("Origin: http://127.0.0.1:{port}\r\n");
    let site = |word: &str, origin: &str| format!("Sec-Fetch-Site: {word}\r\n{origin}");
    vec![
        (site("same-origin", ""), [true, true, true]),
        (site("same-origin", &own), [true, true, true]),
        (site("none", ""), [true, false, false]),
        (site("none", &own), [false; 3]),
        (site("same-origin", "Origin: http://127.0.0.1:1\r\n"), [false; 3]),
        (site("same-origin", "Origin: null\r\n"), [false; 3]),
        (site("same-site", ""), [false; 3]),
        (site("same-site", &own), [false; 3]),
        (site("cross-site", ""), [false; 3]),
        (site("cross-site", "Origin: https://evil.example\r\n"), [false; 3]),
        (own.clone(), [false; 3]),
        ("Origin: https://evil.example\r\n".to_owned(), [false; 3]),
    ]
}

/// A request with the `Host` that a browser would send, which names the port.
fn browse(connection: &mut Connection, port: u16, method: &str, path: &str, lines: &str) -> Answer {
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let text = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{lines}{length}\r\n");
    connection.send(text.as_bytes()).unwrap();
    connection.answer().unwrap()
}

#[test]
fn a_browser_gets_what_the_console_needs_and_no_other_page_gets_anything() {
    let folder = folder();
    let exchange = dev(&folder);
    let (port, mut connection) = (exchange.admin, Connection::open(exchange.admin));
    let mut check = |method: &str, path: &str, lines: &str, allowed: bool| {
        let answer = browse(&mut connection, port, method, path, lines);
        if allowed {
            assert_eq!(answer.status, 200, "{method} {path} {lines}");
        } else {
            let code = answer.json()["code"].clone();
            assert_eq!((answer.status, code), (403, json!("origin")), "{method} {path} {lines}");
        }
    };
    for (lines, [page, file, read]) in browsers(port) {
        for (path, _) in FILES {
            let is_page = matches!(path, "/" | "/console");
            check("GET", path, &lines, if is_page { page } else { file });
        }
        for path in READS {
            check("GET", path, &lines, read);
        }
        for path in CLOSED_TO_PAGES {
            check("GET", path, &lines, false);
        }
        for path in ["/mode", "/snapshot", "/markets", "/console", "/metrics", "/books"] {
            check("POST", path, &lines, false);
        }
    }
    // A page under a rebound name has its own origin, and its name is no loopback name.
    let rebound = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nSec-Fetch-Site: same-origin\r\n\r\n";
    connection.send(rebound.as_bytes()).unwrap();
    let refused = connection.answer().unwrap();
    assert_eq!((refused.status, refused.json()["code"].clone()), (403, json!("host")));
    assert_eq!(refused.json()["error"], "Host: got evil.example; allowed: a loopback name");
    // A form can be sent from any page without asking first.
    let form =
        "POST /mode HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}";
    connection.send(form.as_bytes()).unwrap();
    let refused = connection.answer().unwrap();
    assert_eq!((refused.status, refused.json()["code"].clone()), (415, json!("content_type")));
    assert_eq!(refused.json()["error"], "Content-Type: got text/plain; allowed: application/json");
    exchange.stop();
}

#[test]
fn the_files_say_what_they_are_and_what_a_browser_may_not_do_with_them() {
    let folder = folder();
    let exchange = dev(&folder);
    for (path, content_type) in FILES {
        let answer = ask(&exchange, "GET", path, "");
        assert_eq!((answer.status, answer.header("Content-Type")), (200, Some(content_type)), "{path}");
        let policy = answer.header("Content-Security-Policy").unwrap();
        for part in
            ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        for (name, value) in [
            ("X-Frame-Options", "DENY"),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path} {name}");
        }
        let text = answer.text();
        // Nothing that the policy would refuse is there, and no data becomes markup.
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "https://", " style="]
        {
            assert!(!text.contains(word), "{path} has {word}");
        }
    }
    exchange.stop();
}

#[test]
fn serve_gives_the_page_to_everybody_and_its_data_to_whoever_has_the_token() {
    let folder = folder();
    let plan = Plan::serve(folder.path());
    let exchange = plan.start();
    let token = std::fs::read_to_string(plan.data_dir().join("admin-token")).unwrap();
    let page = "Sec-Fetch-Site: same-origin\r\n";
    let with = |token: &str| format!("{page}Authorization: Bearer {}\r\n", token.trim());
    for (path, _) in FILES {
        assert_eq!(ask(&exchange, "GET", path, page).status, 200, "{path}");
    }
    for path in READS {
        let open = path == "/ready";
        for (lines, status) in [
            (page.to_owned(), if open { 200 } else { 401 }),
            (with("wrong"), if open { 200 } else { 401 }),
            (with(&token), 200),
        ] {
            assert_eq!(ask(&exchange, "GET", path, &lines).status, status, "{path} {lines}");
        }
    }
    assert_eq!(ask(&exchange, "GET", "/ready", "").json()["durability"], "durable");
    assert_eq!(ask(&exchange, "GET", "/books", &with(&token)).json(), json!({"count": 0, "markets": []}));
    exchange.stop();
}

#[test]
fn the_operator_s_books_are_the_public_ones_and_show_what_was_acknowledged() {
    let folder = folder();
    let exchange = dev(&folder);
    let made = exchange.operator(&["market", "create", "Does it rain?", "--outcomes", "Wet,Dry"]);
    let tokens = [0, 1].map(|index| made["tokens"][index].as_str().unwrap());
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    for (index, price) in [(0, 40), (0, 39), (1, 55)] {
        let order = trader.sign(&Wish::buy(token(tokens[index]), price * 100, 10_000_000));
        assert_eq!(trader.post(&mut connection, &order.body).status, 200);
    }
    let names = [made["conditionId"].as_str().unwrap().to_owned(), made["marketId"].to_string()];
    for name in names {
        let shown = ask(&exchange, "GET", &format!("/books/{name}"), "").json();
        assert_eq!((&shown["question"], &shown["liveOrders"]), (&json!("Does it rain?"), &json!(3)));
        for (index, label) in ["Wet", "Dry"].into_iter().enumerate() {
            let public = exchange.read(&format!("/book?token_id={}", tokens[index]));
            assert_eq!(shown["outcomes"][index], json!({"outcome": label, "book": public}));
        }
        let bids = &shown["outcomes"][0]["book"]["bids"];
        assert_eq!(bids[1], json!({"price": "0.4", "size": "10"}), "{bids}");
    }
    for (name, status, code) in [("7", 404, "market_unknown"), ("rain", 400, "invalid_field")] {
        let refused = ask(&exchange, "GET", &format!("/books/{name}"), "");
        assert_eq!((refused.status, refused.json()["code"].clone()), (status, json!(code)), "{name}");
    }
    let list = ask(&exchange, "GET", "/books", "").json();
    let orders: Vec<u64> =
        list["markets"].as_array().unwrap().iter().map(|row| row["liveOrders"].as_u64().unwrap()).collect();
    assert_eq!(list["count"], json!(orders.len()));
    assert!(orders.is_sorted_by(|one, other| one >= other) && orders.contains(&3), "{orders:?}");
    exchange.stop();
}

#[test]
fn counts_behind_percentiles_are_told_to_who_asks() {
    let folder = folder();
    let exchange = dev(&folder);
    let latency = |query: &str| ask(&exchange, "GET", &format!("/debug/latency{query}"), "");
    let stages = |answer: &Answer| answer.json()[0]["stages"].clone();
    for query in ["", "?counts=false"] {
        assert!(stages(&latency(query))["total"].get("counts").is_none(), "{query}");
    }
    let told = stages(&latency("?counts=true"))["total"].clone();
    let counts: Vec<(u64, u64)> = serde_json::from_value(told["counts"].clone()).unwrap();
    assert!(!counts.is_empty(), "dev's own quotes were placed");
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), told["count"].as_u64().unwrap());
    assert!(counts.is_sorted_by(|one, other| one.0 < other.0), "{counts:?}");
    let refused = latency("?counts=all");
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"], "counts: got all; allowed: true or false");
    exchange.stop();
}

#[test]
fn the_machine_is_told_as_the_commands_tell_it() {
    let folder = folder();
    let exchange = dev(&folder);
    let deadline = Instant::now() + PATIENCE;
    // The first request starts the lookup.
    let mut connection = Connection::open(exchange.admin);
    let seen = loop {
        let answer = connection.request("GET", "/machine", "", b"").unwrap();
        assert_eq!(answer.status, 200);
        match answer.json() {
            Value::Null => assert!(Instant::now() < deadline, "nothing is seen of the machine"),
            seen => break seen,
        }
    };
    let of_command = |command: &str| -> Value {
        let words = [command, "--json", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        serde_json::from_slice(&outcry(&words).stdout).unwrap()
    };
    let (topology, check) = (of_command("topology"), of_command("check"));
    for key in ["policy", "shards"] {
        assert_eq!(seen[key], topology[key], "{key}");
    }
    let names = |rows: &Value, key: &str| -> Vec<String> {
        rows.as_array().unwrap().iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&seen["threads"], "thread"), names(&topology["threads"], "thread"));
    assert_eq!(names(&seen["conditions"], "condition"), names(&check["conditions"], "condition"));
    let governor = |rows: &Value| -> Value {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["condition"] == "cpu.governor").unwrap()["current"].clone()
    };
    assert_eq!(governor(&seen["conditions"]), governor(&check["conditions"]));
    let limits = seen["limits"].as_array().unwrap();
    assert!(!limits.is_empty() && limits.iter().all(|limit| limit["kind"].is_string()), "{seen}");
    assert!(seen["summary"][0].as_str().unwrap().starts_with("processor: "), "{seen}");
    assert!(0 < seen["looked_at_ms"].as_u64().unwrap());
    // It looks at others as the commands do.
    let mut rows = seen["conditions"].as_array().unwrap().iter();
    let others = rows.find(|row| row["condition"] == "cpu.others").unwrap()["current"].as_str().unwrap();
    assert!(others.contains(" % of the last "), "{others}");
    // Since boot the value would be diluted.
    let mut rows = seen["conditions"].as_array().unwrap().iter();
    let steal = rows.find(|row| row["condition"] == "cpu.steal").unwrap()["current"].as_str().unwrap();
    assert!(steal.ends_with(" in the last second"), "{steal}");
    exchange.stop();
}
