//! What each mode of the exchange and of a market allows, and who is informed of it, by the running binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Market, Plan};
use common::folder;
use common::stream::Stream;
use common::trader::{KEYS, Signed, Trader, Wish, hex_text, token};
use common::wire::{Answer, Connection};
use serde_json::{Value, json};

/// A mode of the exchange, one of the market, and the codes with which they refuse an order, a post-only
/// order and a split; empty if it is taken. Cancels and merges are always taken.
const TABLE: &[(&str, &str, [&str; 3])] = &[
    ("open", "open", ["", "", ""]),
    ("open", "post-only", ["post_only_mode", "", ""]),
    ("open", "cancel-only", ["condition_paused", "condition_paused", "condition_paused"]),
    ("post-only", "open", ["post_only_mode", "", ""]),
    ("post-only", "post-only", ["post_only_mode", "", ""]),
    ("post-only", "cancel-only", ["post_only_mode", "condition_paused", "condition_paused"]),
    ("cancel-only", "open", ["cancel_only", "cancel_only", "cancel_only"]),
    ("cancel-only", "post-only", ["cancel_only", "cancel_only", "cancel_only"]),
    ("closed", "open", ["trading_disabled", "trading_disabled", "trading_disabled"]),
    ("closed", "cancel-only", ["trading_disabled", "trading_disabled", "trading_disabled"]),
];

struct Site {
    exchange: Exchange,
    connection: Connection,
    trader: Trader,
    condition: String,
    tokens: [String; 2],
    _folder: tempfile::TempDir,
}

impl Site {
    fn start() -> Self {
        let folder = folder();
        let exchange = Plan::dev(folder.path()).set("cpu.policy=unpinned").start();
        let mut connection = exchange.connect();
        let trader = Trader::new(KEYS[1], &mut connection);
        let Market { condition, tokens } = exchange.market("Does it rain?");
        Self { exchange, connection, trader, condition, tokens, _folder: folder }
    }

    /// Sets the modes by the operator's commands, whose output must agree.
    fn set(&self, whole: &str, market: &str) {
        assert_eq!(self.exchange.operator(&["mode", whole])["mode"], whole);
        assert_eq!(self.exchange.operator(&["market", "mode", &self.condition, market])["mode"], market);
    }

    fn draft(&mut self, post_only: bool) -> Signed {
        let mut draft = self.trader.draft(&self.wish(0, 10));
        draft.post_only = post_only;
        self.trader.seal(&draft)
    }

    /// A bid for ten shares of an outcome.
    fn wish(&self, outcome: usize, cents: u64) -> Wish<'static> {
        let token = token(&self.tokens[outcome]);
        Wish::buy(token, cents * 100, 10_000_000)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.trader.ask(&mut self.connection, method, path, body).unwrap()
    }

    /// Splits (0) or merges (1) `pairs` pairs.
    fn act(&mut self, act: u8, pairs: u64) -> Answer {
        self.trader.act(&mut self.connection, act, &self.condition, pairs * 1_000_000)
    }

    /// What both listeners say about the modes.
    fn ready(&self) -> [Value; 2] {
        [self.exchange.http, self.exchange.admin].map(|port| {
            let answer = Connection::open(port).request("GET", "/ready", "", b"").unwrap();
            assert_eq!(answer.status, 200);
            answer.json()
        })
    }

    fn stream(&self, channel: &str, ask: &Value) -> Stream {
        let mut stream = Stream::open(&self.exchange, channel);
        stream.say(ask);
        stream
    }
}

/// The next message of this type; heartbeats are skipped unless asked for.
fn next_of(stream: &mut Stream, kind: &str) -> Value {
    std::iter::repeat_with(|| stream.next()).find(|message| message["type"] == kind).unwrap()
}

fn check(what: &str, answer: &Answer, code: &str) {
    let body = answer.json();
    assert_eq!(body["code"].as_str().unwrap_or(""), code, "{what}: {body}");
    assert_eq!(answer.status == 200, code.is_empty(), "{what}: {}", answer.status);
    let header = answer.header("Retry-After").map(str::to_owned);
    assert_eq!(header.is_some(), answer.status == 503, "{what}: {header:?}");
    let seconds = body["retry_after_seconds"].as_u64();
    assert_eq!(
        seconds.map(|seconds| seconds.to_string()),
        header,
        "{what}: the body says what the head says"
    );
}

#[test]
fn each_mode_takes_what_it_says_and_cancels_are_always_taken() {
    let mut site = Site::start();
    assert_eq!(site.act(0, 100).status, 200);
    for &(whole, market, [plain, post_only, split]) in TABLE {
        site.set("open", "open");
        let resting = site.draft(false);
        assert_eq!(site.ask("POST", "/order", &resting.body).status, 200);
        site.set(whole, market);
        let row = format!("{whole}, market {market}");
        for (rests_only, code) in [(false, plain), (true, post_only)] {
            let body = site.draft(rests_only).body;
            check(&format!("{row}: post-only {rests_only}"), &site.ask("POST", "/order", &body), code);
            let batch = format!("[{}]", site.draft(rests_only).body);
            let batch = site.ask("POST", "/orders", &batch).json();
            let result = if batch.is_array() { &batch[0] } else { &batch };
            assert_eq!(result["code"].as_str().unwrap_or(""), code, "{row}: {batch}");
            let retried = ["post_only_mode", "cancel_only", "trading_disabled"].contains(&code);
            assert_eq!(result["retry_after_seconds"].is_u64(), retried, "{row}: {batch}");
        }
        check(&format!("{row}: split"), &site.act(0, 1), split);
        check(&format!("{row}: merge"), &site.act(1, 1), "");
        let body = json!({ "orderID": resting.id_text }).to_string();
        let answer = site.ask("DELETE", "/order", &body).json();
        assert_eq!(answer["canceled"], json!([resting.id_text]), "{row}");
        let markets = match market {
            "open" => json!([]),
            mode => json!([{ "condition_id": site.condition, "mode": mode }]),
        };
        for said in site.ready() {
            let told = (&said["mode"], &said["markets"], &said["markets_count"]);
            let count = markets.as_array().unwrap().len();
            assert_eq!(told, (&json!(whole), &markets, &json!(count)), "{row}");
        }
        let account = site.ask("GET", "/account", "").json();
        assert_eq!(account["mode"], whole, "{row}");
    }
    site.exchange.stop();
}

/// What the operator does, how it is undone, and the codes with which a repeated order and a repeated post-only order
/// are then refused; empty if the first answer is repeated.
const REPEATS: &[(&str, &str, [&str; 2])] = &[
    ("mode closed", "mode open", ["trading_disabled", "trading_disabled"]),
    ("mode cancel-only", "mode open", ["cancel_only", "cancel_only"]),
    ("mode post-only", "mode open", ["post_only_mode", ""]),
    ("market mode MARKET cancel-only", "market mode MARKET open", ["", ""]),
    ("account freeze OWNER", "account freeze --undo OWNER", ["address_banned", "address_banned"]),
];

#[test]
fn an_order_that_comes_again_is_refused_while_none_is_taken_and_its_first_answer_stands() {
    let mut site = Site::start();
    let mut maker = Trader::new(KEYS[2], &mut site.connection);
    let met = maker.sign(&site.wish(1, 90));
    assert_eq!(maker.post(&mut site.connection, &met.body).status, 200);
    let taker = site.trader.sign(&Wish { kind: "FAK", ..site.wish(0, 10) });
    let orders = [taker, site.draft(false), site.draft(true)];
    let first = orders.each_ref().map(|order| site.ask("POST", "/order", &order.body));
    let became = first.each_ref().map(|answer| answer.json()["status"].as_str().unwrap().to_owned());
    assert_eq!(became, ["matched", "live", "live"]);
    let owner = hex_text(&site.trader.address.0);
    for (act, undo, [plain, post_only]) in REPEATS {
        let [done, undone] =
            [act, undo].map(|command| command.replace("MARKET", &site.condition).replace("OWNER", &owner));
        site.exchange.operator(&done.split(' ').collect::<Vec<_>>());
        for ((order, first), code) in orders.iter().zip(&first).zip([plain, plain, post_only]) {
            let again = site.ask("POST", "/order", &order.body);
            check(act, &again, code);
            assert_eq!(again.header("Idempotent-Replayed"), code.is_empty().then_some("true"), "{act}");
            assert_eq!(again.body == first.body, code.is_empty(), "{act}");
        }
        site.exchange.operator(&undone.split(' ').collect::<Vec<_>>());
        for (order, first) in orders.iter().zip(&first) {
            let again = site.ask("POST", "/order", &order.body);
            let told = (again.status, again.header("Idempotent-Replayed"), &again.body);
            assert_eq!(told, (200, Some("true"), &first.body), "{undo}");
        }
    }
    // Freezing cancelled what rested; none of the repeats placed it again.
    assert_eq!(site.ask("GET", "/data/orders", "").json()["data"], json!([]));
    site.exchange.stop();
}

#[test]
fn whoever_follows_is_told_of_modes_when_they_change_and_when_it_comes() {
    let site = Site::start();
    let user = json!({ "type": "user", "auth": site.trader.stream_auth() });
    let market = json!({ "type": "market", "assets_ids": [site.tokens[0]], "initial_dump": false });
    let mut streams = [("user", &user), ("market", &market)].map(|(channel, ask)| site.stream(channel, ask));
    for stream in &mut streams {
        assert_eq!(next_of(stream, "subscribed")["mode"], "open");
    }
    for mode in ["post-only", "cancel-only", "closed", "open"] {
        // If only the market's mode changes, it stands for the exchange's.
        let own = if mode == "closed" { "open" } else { mode };
        site.set(mode, own);
        for (index, stream) in streams.iter_mut().enumerate() {
            let told = next_of(stream, "mode");
            assert_eq!((&told["mode"], &told["market"]), (&json!(mode), &Value::Null), "stream {index}");
        }
        if mode != "open" {
            let told = next_of(&mut streams[1], "mode");
            assert_eq!((&told["mode"], &told["market"]), (&json!(own), &json!(site.condition)));
        }
        let mut late = site.stream("market", &market);
        let told = next_of(&mut late, "subscribed");
        assert_eq!((&told["mode"], &told["markets"][0]["mode"]), (&json!(mode), &json!(own)));
        let told = next_of(&mut site.stream("user", &user), "subscribed");
        assert_eq!(told["mode"], mode);
    }
    for stream in &mut streams {
        assert_eq!(next_of(stream, "heartbeat")["mode"], "open");
    }
    site.exchange.stop();
}

#[test]
fn a_mode_that_is_none_is_refused_by_name() {
    let site = Site::start();
    for (words, said) in [
        (&["mode", "paused"][..], "mode: got paused; allowed: open, post-only, cancel-only or closed"),
        (&["mode", "resolved"], "mode: got resolved"),
        (&["market", "mode", &site.condition, "closed"], "mode: got closed; allowed: open, post-only"),
        (&["market", "mode", &site.condition, "half"], "mode: got half"),
        (&["market", "mode", "77", "open"], "market: 77 is not known here"),
    ] {
        let output = site.exchange.operator_output(words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{words:?}: {text}");
    }
    site.exchange.stop();
}
