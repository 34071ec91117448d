//! Read-only keys on a running exchange: what they may read, what they may not, and that they
//! survive a killed server.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::Plan;
use common::folder;
use common::schema::Document;
use common::trader::{KEYS, Trader, hex_text, now_ms};
use common::wire::{Answer, Connection};
use serde_json::{Value, json};

/// Shows a read-only key in the headers of one family.
fn show(connection: &mut Connection, (family, address, key): (&str, &str, &str), line: &str) -> Answer {
    let (method, rest) = line.split_once(' ').unwrap();
    let (target, body) = rest.split_once(' ').unwrap_or((rest, ""));
    let headers = format!("{family}_ADDRESS: {address}\r\n{family}_READONLY_API_KEY: {key}\r\n");
    connection.request(method, target, &headers, body.as_bytes()).unwrap()
}

fn said(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["code"].clone())
}

fn is_valid(connection: &mut Connection, address: &str, key: &str) -> Value {
    connection.read(&format!("/auth/validate-readonly-api-key?address={address}&key={key}"))["valid"].clone()
}

#[test]
fn a_read_only_key_opens_the_reads_of_its_owner_and_nothing_else() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut connection = exchange.connect();
    let owner = Trader::new(KEYS[3], &mut connection);
    let other = Trader::new(KEYS[4], &mut connection);
    let [address, stranger] = [&owner, &other].map(|trader| hex_text(&trader.address.0));
    let made = owner.ask(&mut connection, "POST", "/auth/readonly-api-key", "").unwrap().json();
    let key = made["apiKey"].as_str().unwrap();

    for family in ["POLY", "KUEST", "SERVICE"] {
        for line in [
            "GET /data/orders",
            "GET /data/trades?next_cursor=MA==",
            "GET /balance-allowance?asset_type=COLLATERAL",
            "GET /auth/ban-status/closed-only",
            "GET /notifications",
        ] {
            let answer = show(&mut connection, (family, &address, key), line);
            assert_eq!(answer.status, 200, "{family} {line}: {}", answer.text());
        }
    }
    let balance = "GET /balance-allowance?asset_type=COLLATERAL";
    let shown = show(&mut connection, ("POLY", &address, key), balance).json();
    assert_eq!(shown, owner.read(&mut connection, "/balance-allowance?asset_type=COLLATERAL"));

    for line in [
        "POST /order {}",
        "POST /orders []",
        "DELETE /order {}",
        "DELETE /cancel-all",
        "POST /positions/split {}",
        "GET /breaker",
        "GET /auth/api-keys",
        "DELETE /auth/api-key",
        "POST /auth/readonly-api-key",
        "GET /auth/readonly-api-keys",
        "DELETE /auth/readonly-api-key {}",
    ] {
        let told = said(&show(&mut connection, ("POLY", &address, key), line));
        assert_eq!(told, (401, json!("readonly_key")), "{line}");
        let told = said(&show(&mut connection, ("POLY", &stranger, key), line));
        assert_eq!(told, (401, json!("invalid_l2")), "{line} for another");
    }
    let public = owner.read(&mut connection, "/auth/api-keys")["apiKeys"][0].as_str().unwrap().to_owned();
    for shown in [&public, "nothing", "00000000-0000-4000-8000-000000000001"] {
        let told = said(&show(&mut connection, ("POLY", &address, shown), "GET /data/orders"));
        assert_eq!(told, (401, json!("invalid_l2")), "{shown} is no read-only key");
    }
    exchange.stop();
}

#[test]
fn reads_of_keys_and_guards_may_be_as_old_as_other_reads() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut connection = exchange.connect();
    let mut owner = Trader::new(KEYS[3], &mut connection);
    // Reads may be 300 s off the clock, acts 60.
    owner.clock_ms = Some(now_ms() - 100_000);
    for (method, path, status) in [
        ("GET", "/data/orders", 200),
        ("GET", "/breaker", 200),
        ("GET", "/auth/api-keys", 200),
        ("GET", "/auth/readonly-api-keys", 200),
        ("POST", "/breaker/reset", 401),
        ("DELETE", "/cancel-all", 401),
        ("POST", "/auth/readonly-api-key", 401),
        ("DELETE", "/auth/api-key", 401),
    ] {
        let answer = owner.ask(&mut connection, method, path, "").unwrap();
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
    exchange.stop();
}

/// Who has such a key cannot take from its owner what it may ask for.
#[test]
fn what_a_read_only_key_asks_for_is_counted_by_its_address_alone() {
    let folder = folder();
    let limits = ["limits.mode=enforce", "limits.data_trades=2/10m", "trusted_proxies=127.0.0.1"];
    let exchange = limits.iter().fold(Plan::dev(folder.path()), |plan, setting| plan.set(setting)).start();
    let mut connection = exchange.connect();
    let owner = Trader::new(KEYS[3], &mut connection);
    let address = hex_text(&owner.address.0);
    let made = owner.ask(&mut connection, "POST", "/auth/readonly-api-key", "").unwrap().json();
    let key = made["apiKey"].as_str().unwrap();
    let shown = format!("POLY_ADDRESS: {address}\r\nPOLY_READONLY_API_KEY: {key}\r\n");
    for (client, signs, status, left) in [
        ("1.0.0.1", false, 200, "1"),
        ("1.0.0.1", false, 200, "0"),
        ("1.0.0.1", false, 429, "0"),
        ("1.0.0.2", false, 200, "1"),
        ("1.0.0.3", true, 200, "1"),
        ("1.0.0.4", true, 200, "0"),
        ("1.0.0.5", true, 429, "0"),
        ("1.0.0.5", false, 200, "1"),
    ] {
        let header = format!("X-Forwarded-For: {client}\r\n");
        let answer = if signs {
            connection.send(&owner.request_with(&header, "GET", "/data/trades", "")).unwrap();
            connection.answer().unwrap()
        } else {
            connection.request("GET", "/data/trades", &format!("{header}{shown}"), b"").unwrap()
        };
        let said = (answer.status, answer.header("RateLimit-Remaining"));
        assert_eq!(said, (status, Some(left)), "{client}, signed: {signs}");
    }
    exchange.stop();
}

#[test]
fn a_read_only_key_outlives_the_process_and_not_its_revocation() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let mut exchange = plan.start();
    let mut connection = exchange.connect();
    let mut owner = Trader::new(KEYS[3], &mut connection);
    let address = hex_text(&owner.address.0);
    let made: Vec<Value> = (0..9)
        .map(|_| owner.ask(&mut connection, "POST", "/auth/readonly-api-key", "").unwrap().json())
        .collect();
    assert_eq!(made[8]["code"], "too_many_readonly_keys");
    let mut keys: Vec<&str> = made[..8].iter().map(|made| made["apiKey"].as_str().unwrap()).collect();
    keys.reverse();
    exchange.kill();

    let exchange = plan.start();
    let mut connection = exchange.connect();
    let listed = owner.read(&mut connection, "/auth/readonly-api-keys");
    assert_eq!(listed, json!({ "readonlyApiKeys": keys }));
    for family in ["SERVICE", "KUEST"] {
        owner.family = family;
        assert_eq!(owner.read(&mut connection, "/auth/readonly-api-keys"), json!(keys), "{family}");
    }
    owner.family = "kuest";
    assert_eq!(owner.read(&mut connection, "/auth/readonly-api-keys"), json!({ "readonlyApiKeys": keys }));
    owner.family = "POLY";
    assert_eq!(owner.read(&mut connection, "/auth/api-keys")["apiKeys"].as_array().unwrap().len(), 1);
    assert_eq!(is_valid(&mut connection, &address, keys[2]), true);
    let revoke = json!({ "key": keys[2] }).to_string();
    for deleted in [true, false] {
        let answer = owner.ask(&mut connection, "DELETE", "/auth/readonly-api-key", &revoke).unwrap();
        assert_eq!((answer.status, answer.json()), (200, json!({ "deleted": deleted })));
    }
    assert_eq!(is_valid(&mut connection, &address, keys[2]), false);
    assert_eq!(is_valid(&mut connection, &address, keys[3]), true);
    assert_eq!(is_valid(&mut connection, &format!("0x{}", "99".repeat(20)), keys[3]), false);
    let orders = "GET /data/orders";
    assert_eq!(show(&mut connection, ("POLY", &address, keys[2]), orders).status, 401);
    assert_eq!(show(&mut connection, ("POLY", &address, keys[3]), orders).status, 200);
    for (query, field) in [("", "address"), ("?address=0x12", "address"), ("?key=7", "key")] {
        let path = format!("/auth/validate-readonly-api-key{query}");
        let answer = connection.request("GET", &path, "", b"").unwrap();
        assert_eq!((answer.status, answer.json()["field"].clone()), (400, json!(field)), "{path}");
    }
    exchange.stop();
}

#[test]
fn a_key_that_is_not_named_as_the_route_says_is_not_revoked() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut connection = exchange.connect();
    let owner = Trader::new(KEYS[3], &mut connection);
    let own = owner.read(&mut connection, "/auth/api-keys")["apiKeys"][0].as_str().unwrap().to_owned();
    let strange = "0b7c1a52-9d2e-4f3b-8a61-3c5d7e9f1b20";
    for (query, status, field) in [
        (format!("?api_key={strange}"), 400, json!("api_key")),
        (format!("?key={own}"), 400, json!("key")),
        (format!("?apiKey={own}&nonce=1"), 400, json!("nonce")),
        ("?apiKey=".to_owned(), 400, json!("apiKey")),
        ("?apiKey=7".to_owned(), 400, json!("apiKey")),
        (format!("?apiKey={strange}"), 404, Value::Null),
        (format!("?apiKey={own}"), 200, Value::Null),
        (String::new(), 401, Value::Null),
    ] {
        let path = format!("/auth/api-key{query}");
        let answer = owner.ask(&mut connection, "DELETE", &path, "").unwrap();
        assert_eq!((answer.status, answer.json()["field"].clone()), (status, field), "{path}");
        if status == 404 {
            let error = format!(
                "apiKey: {strange} is no living API key of this owner; GET /auth/api-keys lists them"
            );
            assert_eq!(answer.json(), json!({ "error": error, "code": "api_key_unknown" }));
        }
    }
    exchange.stop();
}

/// The document's alternatives of headers, against what a read-only key really opens.
#[test]
fn the_operations_that_a_read_only_key_opens_are_those_that_the_document_names() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut connection = exchange.connect();
    let owner = Trader::new(KEYS[3], &mut connection);
    let address = hex_text(&owner.address.0);
    let made = owner.ask(&mut connection, "POST", "/auth/readonly-api-key", "").unwrap().json();
    let key = made["apiKey"].as_str().unwrap();
    let document = Document::of_library();
    let mut opened = 0;
    for (path, method, operation) in document.operations() {
        let security = operation.get("security").unwrap_or(&document.0["security"]).as_array().unwrap();
        let takes = |name: &str| security.iter().any(|headers| headers.get(name).is_some());
        if !takes("POLY_API_KEY") {
            assert!(!takes("POLY_READONLY_API_KEY"), "{method} {path}");
            continue;
        }
        let path = path.replace("{id}", &format!("0x{}", "11".repeat(32)));
        let line = format!("{} {path}", method.to_uppercase());
        for family in ["SERVICE", "KUEST", "POLY"] {
            let answer = show(&mut connection, (family, &address, key), &line);
            let is_shut = said(&answer) == (401, json!("readonly_key"));
            assert_eq!(takes(&format!("{family}_READONLY_API_KEY")), !is_shut, "{line}: {}", answer.text());
            assert!(is_shut || answer.status != 401, "{line}: {}", answer.text());
            opened += usize::from(!is_shut);
        }
    }
    assert!(30 < opened, "{opened} were opened");
    exchange.stop();
}
