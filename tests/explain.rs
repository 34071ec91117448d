//! What `dev` says about refused signatures and credentials: each mistake names its check, in the words of
//! `outcry::auth::explain`, and `serve` says none of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Market, Plan};
use common::folder;
use common::trader::{Draft, KEYS, Trader, Wish, hex_text, now_ms, resigned, token, word};
use common::wire::{Answer, Connection, request};
use outcry::auth::explain::Check;
use outcry::auth::{ActTerms, Chain, Domains, MacKey, Signer, Venue, sign_order, text};
use outcry::domain::text::parse_hex;
use outcry::domain::{Address, ConditionId, SignatureType, Word};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

struct Site {
    exchange: Exchange,
    connection: Connection,
    first: Trader,
    second: Trader,
    condition: String,
    token: String,
    _folder: tempfile::TempDir,
}

impl Site {
    fn start() -> Self {
        let folder = folder();
        let exchange = Plan::dev(folder.path()).set("cpu.policy=unpinned").start();
        let mut connection = exchange.connect();
        let [first, second] = [KEYS[1], KEYS[2]].map(|key| Trader::new(key, &mut connection));
        let Market { condition, tokens: [token, _] } = exchange.market("Does it rain?");
        Self { exchange, connection, first, second, condition, token, _folder: folder }
    }

    fn draft(&mut self) -> Draft {
        let token = token(&self.token);
        self.first.draft(&Wish::buy(token, 1_000, 10_000_000))
    }

    fn send(&mut self, bytes: &[u8]) -> Answer {
        self.connection.send(bytes).unwrap();
        self.connection.answer().unwrap()
    }
}

fn signer(index: usize) -> Signer {
    Signer::new(parse_hex(format!("0x{}", KEYS[index]).as_bytes()).unwrap()).unwrap()
}

/// Signs a draft on a chain, and puts that into its body.
fn on_chain(site: &Site, draft: &Draft, chain: Chain) -> String {
    let body = site.first.seal(draft).body;
    let domains = Domains::new(chain);
    let (bytes, count) = sign_order(&signer(1), &domains, Venue::Polymarket, draft.neg_risk, &draft.fields);
    resigned(&body, &bytes[..usize::from(count)])
}

/// A wrong order: its name, code and check, what must be said about the domain that fits, and the body.
type OrderRow = (&'static str, &'static str, Check, Value, fn(&mut Site) -> String);

fn order_rows() -> Vec<OrderRow> {
    let neg_risk = json!({ "of": "orders of neg-risk markets", "chainId": 80_002 });
    vec![
        ("another key", "invalid_signature", Check::RecoveredSigner, Value::Null, |site| {
            let draft = site.draft();
            site.second.seal(&draft).body
        }),
        ("another amount", "invalid_signature", Check::RecoveredSigner, Value::Null, |site| {
            let draft = site.draft();
            site.first.seal(&draft).body.replace("\"makerAmount\":\"1000000\"", "\"makerAmount\":\"1100000\"")
        }),
        ("the neg-risk contract", "invalid_signature", Check::Domain, neg_risk, |site| {
            let mut draft = site.draft();
            draft.neg_risk = true;
            site.first.seal(&draft).body
        }),
        ("another chain", "invalid_signature", Check::Domain, json!({ "chainId": 137 }), |site| {
            let draft = site.draft();
            on_chain(site, &draft, Chain::Polygon)
        }),
        ("version 3", "order_version_mismatch", Check::Domain, json!({ "version": "3" }), |site| {
            let draft = site.draft();
            let domains = Domains::new(Chain::Amoy);
            let hash = domains.order_hash(&draft.fields);
            let digest = Word(Domains::order_id(domains.orders_version_3(), &hash).0);
            resigned(&site.first.seal(&draft).body, &signer(1).sign(&digest))
        }),
        ("version 1", "order_version_mismatch", Check::OrderVersion, Value::Null, |site| {
            let draft = site.draft();
            site.first.seal(&draft).body.replace("\"expiration\"", "\"nonce\":\"0\",\"expiration\"")
        }),
        ("another signer", "signer_mismatch", Check::Signer, Value::Null, |site| {
            let mut draft = site.draft();
            draft.fields.signer = site.second.address;
            site.first.seal(&draft).body
        }),
        ("another maker", "maker_not_authorized", Check::Maker, Value::Null, |site| {
            let mut draft = site.draft();
            draft.fields.maker = site.second.address;
            site.first.seal(&draft).body
        }),
        ("nobody's proxy", "maker_not_authorized", Check::Maker, Value::Null, |site| {
            let mut draft = site.draft();
            draft.fields.signature_type = SignatureType::Proxy;
            draft.fields.maker = Address([7; 20]);
            site.first.seal(&draft).body
        }),
        ("v of another form", "invalid_signature", Check::SignatureForm, Value::Null, |site| {
            let draft = site.draft();
            let domains = Domains::new(Chain::Amoy);
            let (mut bytes, _) = sign_order(&signer(1), &domains, Venue::Polymarket, false, &draft.fields);
            bytes[64] -= 27;
            resigned(&site.first.seal(&draft).body, &bytes[..65])
        }),
        ("a wrap of another order", "invalid_signature", Check::Wrap, Value::Null, |site| {
            let draft = deposit(site);
            let mut other = draft.clone();
            other.fields.maker_amount += 1;
            let domains = Domains::new(Chain::Amoy);
            let (bytes, _) = sign_order(&signer(1), &domains, Venue::Polymarket, false, &other.fields);
            resigned(&site.first.seal(&draft).body, &bytes)
        }),
        ("a wrap for another chain", "invalid_signature", Check::Domain, json!({ "chainId": 137 }), |site| {
            let draft = deposit(site);
            on_chain(site, &draft, Chain::Polygon)
        }),
    ]
}

/// An order of a deposit wallet that belongs to nobody yet.
fn deposit(site: &mut Site) -> Draft {
    let mut draft = site.draft();
    draft.fields.signature_type = SignatureType::Deposit;
    (draft.fields.maker, draft.fields.signer) = (Address([9; 20]), Address([9; 20]));
    draft
}

#[test]
fn each_way_to_get_an_order_wrong_names_its_check() {
    let mut site = Site::start();
    for (name, code, check, fits, body) in order_rows() {
        let body = body(&mut site);
        let single = site.first.request("POST", "/order", &body);
        let single = site.send(&single).json();
        let batch = site.first.request("POST", "/orders", &format!("[{body}]"));
        let batch = site.send(&batch).json();
        for answer in [&single, &batch[0]] {
            let explain = &answer["explain"];
            assert_eq!(answer["code"], code, "{name}: {answer}");
            let named = ["field", "got", "allowed"].map(|word| answer[word].as_str().unwrap_or(""));
            let [first, second] = [&site.first, &site.second].map(|trader| hex_text(&trader.address.0));
            match name {
                "another signer" => assert_eq!(named, ["signer", &second, &first], "{answer}"),
                "another maker" => assert_eq!(named, ["maker", &second, &first], "{answer}"),
                "nobody's proxy" => {
                    let proxy = hex_text(&[7; 20]);
                    assert_eq!(named, ["maker", &proxy, "a wallet of the API key's owner"], "{answer}");
                }
                _ => {}
            }
            assert_eq!(explain["check"], check.word(), "{name}: {answer}");
            assert_eq!(explain["hint"], check.hint(), "{name}");
            for (field, value) in fits.as_object().into_iter().flatten() {
                assert_eq!(explain["fits"][field], *value, "{name}: {explain}");
            }
            assert!(!fits.is_null() || explain["fits"].is_null(), "{name}: {explain}");
            if check == Check::OrderVersion {
                continue;
            }
            assert_eq!(explain["domain"]["name"], "Polymarket CTF Exchange", "{name}");
            assert_eq!(explain["signer_expected"], hex_text(&site.first.address.0), "{name}");
            assert!(explain["digest"].as_str().unwrap().len() == 66, "{name}: {explain}");
            let recovered = &explain["signer_recovered"];
            assert_eq!(recovered.is_null(), check == Check::SignatureForm, "{name}: {explain}");
            let is_first = *recovered == explain["signer_expected"];
            assert_eq!(is_first, matches!(check, Check::Signer | Check::Maker), "{name}: {explain}");
        }
    }
    // An order for one venue under the headers of the other.
    let draft = site.draft();
    let body = site.first.seal(&draft).body;
    site.first.family = "KUEST";
    let answer = site.first.request("POST", "/order", &body);
    let answer = site.send(&answer).json();
    assert_eq!(answer["explain"]["check"], "domain", "{answer}");
    assert_eq!(answer["explain"]["domain"]["name"], "CTF Exchange");
    assert_eq!(answer["explain"]["fits"]["name"], "Polymarket CTF Exchange");
    site.exchange.stop();
}

/// The HMAC over these parts of a request.
fn hmac(secret: &MacKey, parts: [&str; 4]) -> String {
    String::from_utf8(text::base64_text(&secret.over(parts.map(str::as_bytes))).to_vec()).unwrap()
}

/// Credential headers as lines, without those that have no value.
fn lines_of(headers: &BTreeMap<&str, Option<String>>) -> String {
    let mut lines = String::new();
    for (name, value) in headers.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        write!(lines, "POLY_{name}: {value}\r\n").unwrap();
    }
    lines
}

/// A wrong signed request: its name, its check, the mistake that explains it, and the headers by name.
type RequestRow = (&'static str, Check, Option<&'static str>, Vec<(&'static str, Option<String>)>);

fn said(auth: &Value, name: &str) -> String {
    auth[name].as_str().unwrap().to_owned()
}

fn request_rows(
    secret: &MacKey,
    other: &Value,
    now: &str,
    (method, target, body): (&str, &str, &str),
) -> Vec<RequestRow> {
    let old = (now_ms() / 1_000 - 3_600).to_string();
    let path = target.split('?').next().unwrap();
    let signed = |parts| vec![("SIGNATURE", Some(hmac(secret, parts)))];
    vec![
        ("no passphrase", Check::Headers, None, vec![("PASSPHRASE", None)]),
        ("no time", Check::Timestamp, None, vec![("TIMESTAMP", Some("noon".to_owned()))]),
        ("an hour ago", Check::Freshness, None, vec![("TIMESTAMP", Some(old))]),
        ("a short address", Check::AddressForm, None, vec![("ADDRESS", Some("0x12".to_owned()))]),
        ("no UUID", Check::KeyForm, None, vec![("API_KEY", Some("7".to_owned()))]),
        ("another's key", Check::Key, None, vec![("API_KEY", Some(said(other, "apiKey")))]),
        (
            "another's passphrase",
            Check::Passphrase,
            None,
            vec![("PASSPHRASE", Some(said(other, "passphrase")))],
        ),
        ("no base64", Check::HmacForm, None, vec![("SIGNATURE", Some("!".to_owned()))]),
        ("other bytes", Check::Hmac, None, signed([now, method, "/else", body])),
        ("the query too", Check::Hmac, Some("path_with_query"), signed([now, method, target, body])),
        (
            "in lower case",
            Check::Hmac,
            Some("lower_case_method"),
            signed([now, &method.to_lowercase(), path, body]),
        ),
        ("no body", Check::Hmac, Some("without_body"), signed([now, method, path, ""])),
    ]
}

#[test]
fn each_way_to_get_credentials_wrong_names_its_check_and_tells_no_secret() {
    let mut site = Site::start();
    let secret = MacKey::new(&text::base64_32(site.first.secret_text.as_bytes()).unwrap());
    let auth = site.first.stream_auth();
    let other = site.second.stream_auth();
    let mut seen = BTreeSet::new();
    for (method, target, body) in [("GET", "/data/orders?id=", ""), ("POST", "/order?x=1", "{\"order\":{}}")]
    {
        let now = (now_ms() / 1_000).to_string();
        let path = target.split('?').next().unwrap();
        let rows = request_rows(&secret, &other, &now, (method, target, body));
        for (name, check, slip, changes) in rows {
            if name == "no body" && body.is_empty() {
                continue;
            }
            let mut headers = vec![
                ("ADDRESS", Some(hex_text(&site.first.address.0))),
                ("API_KEY", Some(said(&auth, "apiKey"))),
                ("PASSPHRASE", Some(said(&auth, "passphrase"))),
                ("TIMESTAMP", Some(now.clone())),
                ("SIGNATURE", Some(hmac(&secret, [&now, method, path, body]))),
            ];
            headers.extend(changes);
            // Of several headers with one name, the last counts.
            let last: BTreeMap<_, _> = headers.into_iter().collect();
            let lines = lines_of(&last);
            let answer = site.send(&request(method, target, &lines, body.as_bytes()));
            let text = answer.text();
            assert_eq!(
                (answer.status, &answer.json()["code"]),
                (401, &json!("invalid_l2")),
                "{name}: {text}"
            );
            let explain = &answer.json()["explain"];
            assert_eq!(
                (&explain["check"], &explain["fits"]),
                (&json!(check.word()), &json!(slip)),
                "{name}: {text}"
            );
            let timestamp = last["TIMESTAMP"].as_deref().unwrap();
            assert_eq!(explain["prehash"], format!("{timestamp}{method}{path}"), "{name}");
            assert_eq!(explain["body_bytes"], body.len(), "{name}");
            let skew = timestamp
                .parse::<i64>()
                .ok()
                .map(|at| at * 1_000 - explain["server_time_ms"].as_i64().unwrap());
            assert_eq!(explain["skew_ms"], json!(skew), "{name}");
            let good = hmac(&secret, [timestamp, method, path, body]);
            for hidden in [&site.first.secret_text, auth["passphrase"].as_str().unwrap(), &good] {
                assert!(!text.contains(hidden), "{name}: {text}");
            }
            seen.insert(check.word());
        }
        let bare = site.send(&request(method, target, "", body.as_bytes())).json();
        assert_eq!(bare["explain"]["check"], "headers", "{bare}");
    }
    assert_eq!(seen.len(), 9);
    site.exchange.stop();
}

#[test]
fn each_way_to_get_a_read_only_key_wrong_names_its_check() {
    let mut site = Site::start();
    let [own, other] = [site.first.address, site.second.address].map(|address| hex_text(&address.0));
    let mut made = || {
        let answer = site.first.ask(&mut site.connection, "POST", "/auth/readonly-api-key", "").unwrap();
        said(&answer.json(), "apiKey")
    };
    let (good, revoked) = (made(), made());
    let revoke = json!({ "key": revoked }).to_string();
    let answer = site.first.ask(&mut site.connection, "DELETE", "/auth/readonly-api-key", &revoke).unwrap();
    assert_eq!(answer.status, 200);
    for (name, line, code, check, address, key) in [
        ("no address", "GET /data/orders", "invalid_l2", Some(Check::Headers), "", &good[..]),
        ("no UUID", "GET /data/orders", "invalid_l2", Some(Check::KeyForm), &own, "7"),
        ("a short address", "GET /data/orders", "invalid_l2", Some(Check::AddressForm), "0x12", &good),
        ("another's key", "GET /data/orders", "invalid_l2", Some(Check::Key), &other, &good),
        ("a revoked key", "GET /data/orders", "invalid_l2", Some(Check::Key), &own, &revoked),
        ("a revoked key for a cancel", "DELETE /cancel-all", "invalid_l2", Some(Check::Key), &own, &revoked),
        // Nothing is wrong with the key here.
        ("a list of keys", "GET /auth/api-keys", "readonly_key", None, &own, &good),
        ("a cancel", "DELETE /cancel-all", "readonly_key", None, &own, &good),
    ] {
        let (method, path) = line.split_once(' ').unwrap();
        let headers = format!("POLY_ADDRESS: {address}\r\nPOLY_READONLY_API_KEY: {key}\r\n");
        let body = site.connection.request(method, path, &headers, b"").unwrap().json();
        let explained = body.get("explain").map(|explain| &explain["check"]);
        let expected = check.map(|check| json!(check.word()));
        assert_eq!((&body["code"], explained), (&json!(code), expected.as_ref()), "{name}: {body}");
    }
    site.exchange.stop();
}

#[test]
fn each_way_to_get_an_owners_request_wrong_names_its_check() {
    let mut site = Site::start();
    let address = hex_text(&site.first.address.0);
    let now = (now_ms() / 1_000).to_string();
    let old = (now_ms() / 1_000 - 3_600).to_string();
    let sign = |index: usize, chain: Chain, at: &str| {
        let digest = Domains::new(chain).clob_auth_digest(signer(1).address(), at.as_bytes(), &Word::ZERO);
        hex_text(&signer(index).sign(&digest))
    };
    let good = sign(1, Chain::Amoy, &now);
    let polygon = sign(1, Chain::Polygon, &now);
    let others = sign(2, Chain::Amoy, &now);
    for (name, check, address, signature, timestamp, nonce, chain) in [
        ("no signature", Check::Headers, &address[..], "", &now[..], "0", "80002"),
        ("another chain's header", Check::ChainId, &address, &good, &now, "0", "137"),
        ("no time", Check::Timestamp, &address, &good, "noon", "0", "80002"),
        ("an hour ago", Check::Freshness, &address, &good, &old, "0", "80002"),
        ("a nonce in hex", Check::Nonce, &address, &good, &now, "0x1", "80002"),
        ("a short address", Check::AddressForm, &address[..9], &good, &now, "0", "80002"),
        ("a short signature", Check::SignatureForm, &address, &good[..99], &now, "0", "80002"),
        ("signed for another chain", Check::Domain, &address, &polygon, &now, "0", "80002"),
        ("signed by another", Check::RecoveredSigner, &address, &others, &now, "0", "80002"),
        ("another nonce than was signed", Check::RecoveredSigner, &address, &good, &now, "7", "80002"),
    ] {
        let headers = format!(
            "POLY_ADDRESS: {address}\r\nPOLY_SIGNATURE: {signature}\r\nPOLY_TIMESTAMP: {timestamp}\r\n\
             POLY_NONCE: {nonce}\r\nX-Chain-Id: {chain}\r\n"
        );
        let answer = site.connection.request("GET", "/auth/derive-api-key", &headers, b"").unwrap();
        let body = answer.json();
        assert_eq!((answer.status, &body["code"]), (401, &json!("invalid_l1")), "{name}: {body}");
        let explain = &body["explain"];
        assert_eq!(explain["check"], check.word(), "{name}: {body}");
        if explain["domain"].is_object() {
            assert_eq!(explain["domain"]["name"], "ClobAuthDomain", "{name}");
            let fits = if check == Check::Domain { json!(137) } else { Value::Null };
            assert_eq!(explain["fits"]["chainId"], fits, "{name}: {body}");
        } else {
            assert!(explain["server_time_ms"].is_u64(), "{name}: {body}");
        }
    }
    let bare = site.connection.request("GET", "/auth/derive-api-key", "", b"").unwrap().json();
    assert_eq!(bare["explain"]["check"], "headers", "{bare}");
    site.exchange.stop();
}

#[test]
fn each_way_to_get_a_split_wrong_names_its_check() {
    let mut site = Site::start();
    let (first, condition) = (site.first.address, site.condition.clone());
    let own = (first, SignatureType::Eoa);
    let (path, good) = site.first.sign_act(0, own, &condition, 1_000_000);
    let (_, others) = site.second.sign_act(0, own, &condition, 1_000_000);
    let foreign = (site.second.address, SignatureType::Eoa);
    let (_, foreign) = site.first.sign_act(0, foreign, &condition, 1_000_000);
    let fields: Value = serde_json::from_str(&good).unwrap();
    let number = |name: &str| fields[name].as_str().unwrap().parse::<u64>().unwrap();
    let terms = ActTerms {
        act: 0,
        wallet: first,
        condition: ConditionId(parse_hex(condition.as_bytes()).unwrap()),
        amount: 1_000_000,
        salt: word(number("salt")),
        timestamp_ms: number("timestamp"),
        signature_type: SignatureType::Eoa,
    };
    let digest = Word(Domains::new(Chain::Polygon).act_digest(&terms).0);
    let polygon = resigned(&good, &signer(1).sign(&digest));
    for (name, code, check, body) in [
        ("another key", "invalid_signature", Check::RecoveredSigner, &others),
        ("another's wallet", "maker_not_authorized", Check::Maker, &foreign),
        ("another chain", "invalid_signature", Check::Domain, &polygon),
    ] {
        let request = site.first.request("POST", path, body);
        let answer = site.send(&request).json();
        let explain = &answer["explain"];
        assert_eq!(
            (&answer["code"], &explain["check"]),
            (&json!(code), &json!(check.word())),
            "{name}: {answer}"
        );
        assert_eq!(explain["domain"]["name"], "Outcry", "{name}");
        let fits = if check == Check::Domain { json!(137) } else { Value::Null };
        assert_eq!(explain["fits"]["chainId"], fits, "{name}: {answer}");
    }
    // Those that nothing more is explained of name their field.
    let strange = format!("0x{}", "ab".repeat(32));
    let wallet = hex_text(&site.second.address.0);
    let long = format!("0x{}", "1c".repeat(318));
    for (body, named) in [
        (foreign.clone(), ["wallet", &wallet, "a wallet of the API key's owner"]),
        (good.replace(&condition, &strange), ["conditionId", &strange, "a market of this exchange"]),
        (resigned(&good, &[0x1c; 318]), ["signature", &format!("{}…", &long[..75]), "65 bytes"]),
    ] {
        let answer = site.send(&site.first.request("POST", path, &body)).json();
        assert_eq!(["field", "got", "allowed"].map(|word| answer[word].as_str().unwrap()), named, "{answer}");
    }
    let request = site.first.request("POST", path, &good);
    assert_eq!(site.send(&request).status, 200);
    site.exchange.stop();
}

#[test]
fn an_exchange_that_is_no_dev_explains_nothing() {
    let folder = folder();
    let exchange = Plan::serve(folder.path()).set("cpu.policy=unpinned").start();
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    let mut draft = trader.draft(&Wish::buy(token("7"), 100, 10_000_000));
    draft.fields.signer = Address([7; 20]);
    let order = trader.seal(&draft).body;
    let answers = [
        connection.request("GET", "/data/orders", "", b"").unwrap(),
        connection.request("POST", "/order", "", b"{}").unwrap(),
        connection.request("GET", "/auth/derive-api-key", "", b"").unwrap(),
        trader.post(&mut connection, &order),
    ];
    for (answer, code) in answers.iter().zip(["invalid_l2", "invalid_l2", "invalid_l1", "signer_mismatch"]) {
        let body = answer.json();
        assert_eq!(body["code"], code, "{body}");
        assert!(body.get("explain").is_none(), "{body}");
    }
    exchange.stop();
}
