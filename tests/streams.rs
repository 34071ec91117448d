//! The two streams, through the running binary and by a client that shares no code with it.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

#[path = "streams/away.rs"]
mod away;
mod common;
#[path = "streams/feeds.rs"]
mod feeds;
#[path = "streams/held.rs"]
mod held;
#[path = "streams/mirror.rs"]
mod mirror;
#[path = "streams/replaced.rs"]
mod replaced;
#[path = "streams/rests.rs"]
mod rests;
#[path = "streams/upgrades.rs"]
mod upgrades;

use common::exchange::{Exchange, Market, Plan};
use common::random::Random;
use common::stream::Stream;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::Connection;
use common::{folder, text};
use mirror::{Book, Mirror, Noted};
use outcry::domain::Side;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tungstenite::Message;

/// An exchange with a market of its own and two traders.
struct Site {
    plan: Plan,
    exchange: Exchange,
    connection: Connection,
    traders: [Trader; 2],
    condition: String,
    tokens: [String; 2],
    /// Removed with the site.
    folder: tempfile::TempDir,
}

impl Site {
    /// `feed` is what `cpu.feed` says.
    fn start(feed: &str) -> Self {
        Self::started(feed, |plan| plan)
    }

    fn started(feed: &str, set: impl FnOnce(Plan) -> Plan) -> Self {
        let folder = folder();
        let plan = set(Plan::dev(folder.path()).set("cpu.policy=unpinned").set(&format!("cpu.feed={feed}")));
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let traders = [KEYS[1], KEYS[2]].map(|key| Trader::new(key, &mut connection));
        let Market { condition, tokens } = exchange.market("Does it rain?");
        Self { plan, exchange, connection, traders, condition, tokens, folder }
    }

    /// Starts another process on the same directory.
    fn restart(self) -> Self {
        let Self { plan, exchange, connection: _, traders, condition, tokens, folder } = self;
        exchange.stop();
        let exchange = plan.start();
        Self { connection: exchange.connect(), plan, exchange, traders, condition, tokens, folder }
    }

    /// Places an order of whole shares; returns its id and the answer.
    #[track_caller]
    fn order(
        &mut self,
        who: usize,
        outcome: usize,
        side: Side,
        cents: u64,
        shares: u64,
        kind: &str,
    ) -> (String, Value) {
        let (token, price, shares) = (token(&self.tokens[outcome]), cents * 100, shares * 1_000_000);
        self.place(who, &Wish { kind, ..Wish::of(side, token, price, shares) })
    }

    #[track_caller]
    fn place(&mut self, who: usize, wish: &Wish) -> (String, Value) {
        let signed = self.traders[who].sign(wish);
        let answer = self.traders[who].post(&mut self.connection, &signed.body);
        (signed.id_text, answer.json())
    }

    #[track_caller]
    fn cancel(&mut self, who: usize, id: &str) {
        let body = json!({ "orderID": id }).to_string();
        let answer = self.traders[who].ask(&mut self.connection, "DELETE", "/order", &body).unwrap();
        assert_eq!(answer.json()["canceled"][0], id, "{}", answer.json());
    }

    fn books(&self) -> BTreeMap<String, Book> {
        let book = |token: &String| Book::of(&self.exchange.read(&format!("/book?token_id={token}")));
        self.tokens.iter().map(|token| (token.clone(), book(token))).collect()
    }

    /// A stream of both tokens, with its acknowledgement and the mirror of its first books.
    #[track_caller]
    fn market(&self) -> (Stream, Value, Mirror) {
        let mut stream = Stream::open(&self.exchange, "market");
        stream.say(&json!({ "type": "market", "assets_ids": self.tokens }));
        let told = stream.event();
        let mut mirror = Mirror::default();
        for _ in 0..2 {
            assert_eq!(mirror.note(&stream.event()), Noted::Good);
        }
        (stream, told, mirror)
    }

    /// A user's stream with its acknowledgement.
    #[track_caller]
    fn user(&self, who: usize, more: &Value) -> (Stream, Value) {
        let mut stream = Stream::open(&self.exchange, "user");
        let mut message = json!({ "type": "user", "markets": [], "auth": self.traders[who].stream_auth() });
        for (name, value) in more.as_object().unwrap() {
            message[name] = value.clone();
        }
        stream.say(&message);
        let told = stream.event();
        (stream, told)
    }
}

fn a_client_that_follows_the_rules_has_the_books_of_the_server_at_every_number(feed: &str) {
    let mut site = Site::start(feed);
    let mut random = Random::printed("streams");
    let (mut stream, told, mut mirror) = site.market();
    assert_eq!(told["type"], "subscribed");
    assert_eq!(told["markets"][0]["market"], site.condition);
    assert_eq!(told["markets"][0]["sequence"].as_u64(), Some(mirror.sequence));
    assert_eq!(told["refused"], json!([]));
    assert_eq!(mirror.books, site.books());
    let read = site.exchange.connect().request("GET", &format!("/book?token_id={}", site.tokens[0]), "", b"");
    let read = read.unwrap();
    let header = |name| read.header(name).unwrap().to_owned();
    assert_eq!(header("X-Outcry-Stream-Id"), text(&told["stream_id"]));
    assert_eq!(header("X-Outcry-Book-Sequence"), mirror.sequence.to_string());
    assert_eq!(header("X-Outcry-Book-Crc"), mirror.books[&site.tokens[0]].crc().to_string());
    let start = mirror.sequence;
    let mut resting: Vec<(usize, String)> = Vec::new();
    for _ in 0..150 {
        let who = usize::try_from(random.below(2)).unwrap();
        if !resting.is_empty() && random.below(4) == 0 {
            let (who, id) = resting.swap_remove(usize::try_from(random.below(resting.len() as u64)).unwrap());
            let body = json!({ "orderID": id }).to_string();
            site.traders[who].ask(&mut site.connection, "DELETE", "/order", &body).unwrap();
        } else {
            let outcome = usize::try_from(random.below(2)).unwrap();
            let kind = *random.pick(&["GTC", "GTC", "GTC", "FAK"]);
            let (cents, shares) = (30 + random.below(40), 5 + random.below(20));
            let (id, answer) = site.order(who, outcome, Side::Buy, cents, shares, kind);
            if answer["status"] == "live" {
                resting.push((who, id));
            }
        }
        // Everything that the answers mention is in the stream: its numbers are read up to the
        // server's own.
        let mut probe = Stream::open(&site.exchange, "market");
        probe.say(&json!({ "assets_ids": [site.tokens[0]], "initial_dump": false }));
        let now = probe.event()["markets"][0]["sequence"].as_u64().unwrap();
        while mirror.sequence < now {
            let message = stream.event();
            assert!(!matches!(mirror.note(&message), Noted::Gap(_)), "{message}");
        }
        assert_eq!(mirror.books, site.books(), "at {now}");
    }
    assert!(start + 50 < mirror.sequence, "something happened");
}

fn whatever_is_dropped_repeated_or_late_is_noticed_or_harmless(feed: &str) {
    let mut site = Site::start(feed);
    let (mut stream, _, before) = site.market();
    let mut changes = 0;
    for round in 0..20 {
        let (id, _) = site.order(0, round % 2, Side::Buy, 20 + round as u64, 5, "GTC");
        changes += 1;
        if round % 3 == 0 {
            site.cancel(0, &id);
            changes += 1;
        }
    }
    let mut messages = Vec::new();
    let mut last = before.clone();
    loop {
        let message = stream.next();
        let beat = message["type"] == "heartbeat";
        assert!(!matches!(last.note(&message), Noted::Gap(_)), "{message}");
        messages.push(message);
        if beat && last.sequence >= before.sequence + changes {
            break;
        }
    }
    assert_eq!(last.books, site.books());
    // Every message except the last heartbeat is dropped, doubled or sent one later.
    for index in 0..messages.len() - 1 {
        let changes_books = messages[index]["event_type"] == "price_change";
        for how in ["dropped", "repeated", "late"] {
            let mut sent = messages.clone();
            match how {
                "dropped" => drop(sent.remove(index)),
                "repeated" => sent.insert(index, messages[index].clone()),
                _ => sent.swap(index, index + 1),
            }
            let mut mirror = before.clone();
            let noticed = sent.iter().any(|message| matches!(mirror.note(message), Noted::Gap(_)));
            if how == "dropped" && changes_books {
                assert!(noticed, "message {index} was {how}");
            }
            assert!(noticed || mirror.books == last.books, "message {index} was {how}");
        }
    }
}

fn who_comes_back_gets_what_was_missed_and_otherwise_a_fresh_book(feed: &str) {
    let mut site = Site::start(feed);
    let (stream, told, mut mirror) = site.market();
    drop(stream);
    for cents in 20..30 {
        site.order(0, 0, Side::Buy, cents, 5, "GTC");
    }
    let since = mirror.sequence;
    let mut stream = Stream::open(&site.exchange, "market");
    stream.say(&json!({ "assets_ids": site.tokens, "from": since, "stream_id": told["stream_id"] }));
    let again = stream.event();
    assert_eq!(again["markets"][0]["replayed"], true);
    let now = again["markets"][0]["sequence"].as_u64().unwrap();
    assert_eq!(now, since + 10);
    for _ in since..now {
        let message = stream.event();
        assert_eq!(mirror.note(&message), Noted::Good, "{message}");
    }
    assert_eq!(mirror.books, site.books());
    // By market; and from a number of a stream that is another one, or that never existed.
    for (from, stream_id, replayed) in [
        (json!({ &site.condition: now - 1 }), told["stream_id"].clone(), true),
        (json!(now.to_string()), told["stream_id"].clone(), true),
        (json!(now), json!("another"), false),
        (json!(now + 1), told["stream_id"].clone(), false),
    ] {
        stream.say(&json!({ "assets_ids": site.tokens, "from": from, "stream_id": stream_id }));
        let told = stream.event();
        assert_eq!(told["markets"][0]["replayed"], replayed, "{from}");
        let books = if replayed { now - from.as_object().map_or(now, |_| now - 1) } else { 2 };
        for _ in 0..books {
            let word = if replayed { "price_change" } else { "book" };
            assert_eq!(stream.event()["event_type"], word, "{from}");
        }
    }
    // After a restart it continues where it was.
    let site = site.restart();
    let mut stream = Stream::open(&site.exchange, "market");
    stream.say(&json!({ "assets_ids": site.tokens, "from": since, "stream_id": told["stream_id"] }));
    let again = stream.event();
    assert_ne!(again["stream_id"], told["stream_id"], "of another start");
    assert_eq!(again["markets"][0]["sequence"].as_u64(), Some(now));
    assert_eq!(again["markets"][0]["replayed"], true);
}

fn numbers_go_on_after_a_snapshot_and_what_lies_before_it_is_a_fresh_book(feed: &str) {
    let mut site = Site::start(feed);
    let (mut user, told) = site.user(0, &json!({}));
    let events_before = told["sequence"].as_u64().unwrap();
    let (stream, told, before) = site.market();
    site.order(0, 0, Side::Buy, 20, 5, "GTC");
    user.event();
    site.exchange.operator(&["snapshot"]);
    let (id, _) = site.order(0, 0, Side::Buy, 21, 5, "GTC");
    drop(stream);
    let site = site.restart();
    let mut stream = Stream::open(&site.exchange, "market");
    for (from, replayed) in [(before.sequence + 1, true), (before.sequence, false)] {
        stream.say(&json!({ "assets_ids": [site.tokens[0]], "from": from, "stream_id": told["stream_id"] }));
        let market = stream.event()["markets"][0].clone();
        assert_eq!(market["sequence"].as_u64(), Some(before.sequence + 2), "{from}");
        assert_eq!(market["replayed"], replayed, "{from}");
        let message = stream.event();
        assert_eq!(message["event_type"], if replayed { "price_change" } else { "book" }, "{from}");
    }
    for (from, replayed) in [(events_before + 1, true), (events_before, false)] {
        let (mut user, told) = site.user(0, &json!({ "from": from }));
        assert_eq!(told["sequence"].as_u64(), Some(events_before + 2), "{from}");
        assert_eq!(told["replayed"], replayed, "{from}");
        if replayed {
            assert_eq!(user.event()["id"], *id);
        }
    }
}

fn each_start_names_its_streams_anew_and_knows_earlier_names_but_those_of_a_copy(feed: &str) {
    let name = |site: &Site| text(&site.market().1["stream_id"]).to_owned();
    let site = Site::start(feed);
    let first = name(&site);
    let mut site = site.restart();
    let second = name(&site);
    assert_ne!(second, first);
    let goes_on =
        |site: &Site, id: &str| site.user(0, &json!({ "from": 0, "stream_id": id })).1["replayed"] == true;
    assert!(goes_on(&site, &first) && goes_on(&site, &second) && !goes_on(&site, "0123456789abcdef"));
    site.plan = site.plan.clone().words(["--new-identity"]);
    let site = site.restart();
    assert!(!goes_on(&site, &first) && !goes_on(&site, &second) && goes_on(&site, &name(&site)));
}

fn trades_ticks_and_modes_are_told_as_the_venues_tell_them(feed: &str) {
    let mut site = Site::start(feed);
    let (mut stream, ..) = site.market();
    stream.say(&json!({ "assets_ids": [], "custom_feature_enabled": true }));
    assert_eq!(stream.event()["type"], "subscribed");
    let mut other = Stream::open(&site.exchange, "market");
    other.say(&json!({ "assets_ids": [site.tokens[0]], "initial_dump": false }));
    assert_eq!(other.event()["type"], "subscribed");
    site.order(0, 0, Side::Buy, 60, 10, "GTC");
    let placed: Vec<Value> = (0..3).map(|_| stream.event()).collect();
    let kinds: Vec<_> = placed.iter().map(|message| text(&message["event_type"])).collect();
    assert_eq!(kinds, ["price_change", "best_bid_ask", "best_bid_ask"], "{placed:?}");
    let changes = &placed[0]["price_changes"];
    assert_eq!((text(&changes[0]["side"]), text(&changes[0]["price"])), ("BUY", "0.6"));
    assert_eq!((text(&changes[1]["side"]), text(&changes[1]["price"])), ("SELL", "0.4"));
    let book = site.exchange.read(&format!("/book?token_id={}", site.tokens[0]));
    assert_eq!(changes[0]["hash"], book["hash"]);
    // The complement: the two orders make pairs.
    site.order(1, 1, Side::Buy, 40, 10, "GTC");
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..6 {
        let message = stream.event();
        *kinds.entry(text(&message["event_type"]).to_owned()).or_default() += 1;
        if message["event_type"] == "last_trade_price" {
            assert_eq!(message["asset_id"], site.tokens[1]);
            assert_eq!((text(&message["price"]), text(&message["size"])), ("0.4", "10"));
            assert_eq!(message["side"], "BUY");
        }
    }
    // A client that follows only the other token gets the trade in that token's terms.
    let trade =
        std::iter::repeat_with(|| other.event()).find(|said| said["event_type"] == "last_trade_price");
    let trade = trade.unwrap();
    assert_eq!(
        [&trade["asset_id"], &trade["price"], &trade["side"]],
        [&json!(site.tokens[0]), &json!("0.6"), &json!("SELL")]
    );
    let expected = [("best_bid_ask", 2), ("book", 2), ("last_trade_price", 1), ("price_change", 1)];
    assert_eq!(kinds, expected.map(|(kind, count)| (kind.to_owned(), count)).into());
    site.exchange.operator(&["market", "tick", &site.condition, "0.001"]);
    let ticks: Vec<Value> = (0..2).map(|_| stream.event()).collect();
    for (message, token) in ticks.iter().zip(&site.tokens) {
        assert_eq!(message["event_type"], "tick_size_change");
        assert_eq!(message["asset_id"], *token);
        assert_eq!((text(&message["old_tick_size"]), text(&message["new_tick_size"])), ("0.01", "0.001"));
    }
    for _ in 0..2 {
        assert_eq!(stream.event()["event_type"], "book");
    }
    // What is after an order in the log is after its messages.
    site.order(0, 0, Side::Buy, 20, 10, "GTC");
    let placed = stream.event();
    assert_eq!(placed["event_type"], "price_change");
    for _ in 0..2 {
        assert_eq!(stream.event()["event_type"], "best_bid_ask");
    }
    // What a client takes away may come with what it wants no more of.
    let token = site.tokens[1].clone();
    let says = |stream: &mut Stream, operation: &str, custom: bool| {
        let asks = json!({
            "operation": operation, "assets_ids": [token], "custom_feature_enabled": custom, "initial_dump": false,
        });
        stream.say(&asks);
        assert_eq!(stream.event()["type"], format!("{operation}d"));
    };
    says(&mut stream, "unsubscribe", false);
    for cents in [21, 22] {
        site.order(0, 0, Side::Buy, cents, 10, "GTC");
        assert_eq!(stream.event()["event_type"], "price_change");
    }
    says(&mut stream, "subscribe", true);
    site.exchange.operator(&["market", "pause", &site.condition]);
    let mode = stream.event();
    assert_eq!((&mode["type"], &mode["mode"]), (&json!("mode"), &json!("cancel-only")));
    site.exchange.operator(&["market", "resolve", &site.condition, "--payout", "1"]);
    let removed = stream.event();
    assert_eq!(removed["event_type"], "price_change", "{removed}");
    assert_eq!(removed["sequence"].as_u64(), placed["sequence"].as_u64().map(|number| number + 3));
    assert_eq!(stream.event()["mode"], "resolved");
    let resolved = stream.event();
    assert_eq!(resolved["event_type"], "market_resolved");
    assert_eq!(resolved["winning_asset_id"], site.tokens[0]);
}

fn listings_say_what_the_import_said_and_a_market_that_pays_both_has_no_winner(feed: &str) {
    let site = Site::start(feed);
    let (mut stream, ..) = site.market();
    stream.say(&json!({ "assets_ids": [], "custom_feature_enabled": true }));
    assert_eq!(stream.event()["type"], "subscribed");
    let event = json!({
        "id": "7", "slug": "cup", "title": "Cup", "ticker": "cup", "description": "Two \"halves\".",
        "markets": [{
            "id": "76", "question": "Over 1.5?", "conditionId": format!("0x{}", "ab".repeat(32)), "closed": true,
            "clobTokenIds": "[\"761\",\"762\"]", "outcomes": "[\"Over\",\"Under\"]",
            "outcomePrices": "[\"1\",\"0\"]", "umaResolutionStatus": "resolved",
        }, {
            "id": "77", "question": "Over 2.5?", "conditionId": format!("0x{}", "cd".repeat(32)),
            "clobTokenIds": "[\"771\",\"772\"]", "outcomes": "[\"Over\",\"Under\"]",
            "groupItemTitle": "O/U 2.5", "sportsMarketType": "totals", "line": 2.5,
            "gameStartTime": "2027-06-12 20:00:00+00",
        }],
    });
    let mut admin = Connection::open(site.exchange.admin);
    let answer = admin.request("POST", "/import", "", json!([event]).to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    // The market that was closed before it came is none.
    let listed = stream.event();
    for (name, said) in [
        ("event_type", "new_market"),
        ("group_item_title", "O/U 2.5"),
        ("sports_market_type", "totals"),
        ("line", "2.5"),
        ("game_start_time", "2027-06-12 20:00:00+00"),
    ] {
        assert_eq!(listed[name], said, "{listed}");
    }
    assert_eq!(listed["event_message"]["description"], "Two \"halves\".", "{listed}");
    site.exchange.operator(&["market", "resolve", &site.condition, "--payout", "0.5"]);
    assert_eq!(stream.event()["mode"], "resolved");
    let resolved = stream.event();
    assert_eq!(resolved["event_type"], "market_resolved");
    assert_eq!((text(&resolved["winning_asset_id"]), text(&resolved["winning_outcome"])), ("0", ""));
    assert_eq!(resolved["payout"], json!(["0.5", "0.5"]));
}

/// The next event, a trade, which is reported twice: both reports are the same except for the
/// status.
fn confirmed(stream: &mut Stream) -> Value {
    let [mut first, mut second] = [stream.event(), stream.event()];
    for (said, status) in [(&mut first, "MATCHED"), (&mut second, "CONFIRMED")] {
        assert_eq!((text(&said["event_type"]), text(&said["status"])), ("trade", status), "{said}");
        said["status"] = Value::Null;
        said["server_ts_ms"] = Value::Null;
    }
    let number = second["sequence"].as_u64().unwrap() - 1;
    second["sequence"] = json!(number);
    assert_eq!(first, second);
    first
}

fn an_account_hears_of_each_order_and_trade_and_each_order_ends_once(feed: &str) {
    let mut site = Site::start(feed);
    let (mut maker, told) = site.user(0, &json!({}));
    assert_eq!((text(&told["type"]), text(&told["channel"])), ("subscribed", "user"));
    let first = told["sequence"].as_u64().unwrap();
    let (mut taker, _) = site.user(1, &json!({}));
    let (resting, _) = site.order(0, 0, Side::Buy, 60, 20, "GTC");
    let (met, _) = site.order(1, 1, Side::Buy, 40, 5, "GTC");
    let (rest, _) = site.order(1, 1, Side::Buy, 40, 100, "FAK");
    let (killed, _) = site.order(1, 1, Side::Buy, 40, 50, "FOK");
    let (cancelled, _) = site.order(0, 0, Side::Buy, 50, 5, "GTC");
    site.cancel(0, &cancelled);
    let order = |message: &Value| {
        assert_eq!(message["event_type"], "order", "{message}");
        ["id", "type", "status", "size_matched", "reason"].map(|name| text(&message[name]).to_owned())
    };
    let said = |parts: [&str; 5]| parts.map(str::to_owned);
    // The maker: placed, met twice with a trade each, then the other order.
    assert_eq!(order(&maker.event()), said([&resting, "PLACEMENT", "LIVE", "0", ""]));
    assert_eq!(order(&maker.event()), said([&resting, "UPDATE", "LIVE", "5", ""]));
    let trade = confirmed(&mut maker);
    assert_eq!(text(&trade["trader_side"]), "MAKER");
    assert_eq!((text(&trade["size"]), text(&trade["maker_orders"][0]["order_id"])), ("5", resting.as_str()));
    assert_eq!(order(&maker.event()), said([&resting, "UPDATE", "MATCHED", "20", "filled"]));
    confirmed(&mut maker);
    assert_eq!(order(&maker.event()), said([&cancelled, "PLACEMENT", "LIVE", "0", ""]));
    let last = maker.event();
    assert_eq!(order(&last), said([&cancelled, "CANCELLATION", "CANCELED", "0", "cancelled"]));
    assert_eq!(last["sequence"].as_u64(), Some(first + 9), "every event has the next number");
    // The taker: matched in full, matched in part, killed without a fill.
    assert_eq!(order(&taker.event()), said([&met, "PLACEMENT", "MATCHED", "5", "filled"]));
    assert_eq!(confirmed(&mut taker)["trader_side"], "TAKER");
    assert_eq!(order(&taker.event()), said([&rest, "PLACEMENT", "MATCHED", "15", "rest_not_filled"]));
    confirmed(&mut taker);
    let ended = order(&taker.event());
    assert_eq!(ended[..4], said([&killed, "CANCELLATION", "CANCELED", "0", ""])[..4]);
    assert!(!ended[4].is_empty(), "it says why");
    // A client that comes back gets the rest again.
    let (mut again, told) = site.user(0, &json!({ "from": first + 7 }));
    assert_eq!(told["replayed"], true);
    assert_eq!(order(&again.event())[0], cancelled);
    assert_eq!(order(&again.event()), order(&last));
}

fn credentials_are_asked_for_and_a_revoked_key_ends_the_stream(feed: &str) {
    let site = Site::start(feed);
    let mut wrong = site.traders[0].stream_auth();
    wrong["secret"] = json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let id = text(&wrong["apiKey"]);
    let parts = "an object of apiKey, secret and passphrase";
    let living = "the id of a key that lives and is not read-only, with its own secret and passphrase";
    for (message, got, allowed) in
        [(json!({ "type": "user" }), "", parts), (json!({ "type": "user", "auth": wrong }), id, living)]
    {
        let mut stream = Stream::open(&site.exchange, "user");
        stream.say(&message);
        let refused = stream.event();
        assert_eq!((&refused["code"], &refused["field"]), (&json!("unauthorized"), &json!("auth")));
        assert_eq!((text(&refused["got"]), text(&refused["allowed"])), (got, allowed));
        assert_eq!(u16::from(stream.close().code), 1_008);
    }
    // As Kuest's site spells it.
    let mut stream = Stream::open(&site.exchange, "user");
    let auth = site.traders[0].stream_auth();
    let auth =
        json!({ "apikey": auth["apiKey"], "secret": auth["secret"], "passphrase": auth["passphrase"] });
    stream.say(&json!({ "type": "user", "auth": auth, "markets": [site.condition, "0x12"] }));
    let told = stream.event();
    assert_eq!((&told["markets"], &told["refused"][0]["got"]), (&json!([site.condition]), &json!("0x12")));
    assert_eq!(told["all_markets"], false);
    // Without the last that it named it follows all: so the venue's client widens a stream.
    stream.say(&json!({ "operation": "unsubscribe", "markets": [site.condition] }));
    let told = stream.event();
    assert_eq!((&told["markets"], &told["all_markets"]), (&json!([]), &json!(true)));
    stream.say(&json!({ "operation": "subscribe", "markets": [site.condition] }));
    let told = stream.event();
    assert_eq!((&told["markets"], &told["all_markets"]), (&json!([site.condition]), &json!(false)));
    // The Rust SDK shows the same credentials with every message: they add markets and take them away.
    let auth = site.traders[0].stream_auth();
    let snow = site.exchange.market("Does it snow?").condition;
    let (one, other) = (&json!([site.condition]), &json!([snow]));
    for (operation, named, markets, all) in [
        ("subscribe", one, one, false),
        ("subscribe", other, &json!([site.condition, snow]), false),
        ("unsubscribe", one, other, false),
        ("subscribe", &json!([]), &json!([]), true),
        ("subscribe", one, &json!([]), true),
        ("unsubscribe", one, &json!([]), true),
    ] {
        stream.say(&json!({ "type": "user", "operation": operation, "markets": named, "auth": auth }));
        let told = stream.event();
        let sorted = |markets: &Value| {
            let texts = markets.as_array().unwrap().iter().map(|market| market.as_str().unwrap().to_owned());
            texts.collect::<BTreeSet<_>>()
        };
        let found = (sorted(&told["markets"]), &told["all_markets"]);
        assert_eq!(found, (sorted(markets), &json!(all)), "{operation} {named}");
    }
    let mut connection = site.exchange.connect();
    let answer = site.traders[0].ask(&mut connection, "DELETE", "/auth/api-key", "").unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(u16::from(stream.close().code), 1_008);
}

fn what_is_said_wrongly_is_refused_and_changes_nothing(feed: &str) {
    let site = Site::start(feed);
    let (mut stream, ..) = site.market();
    stream.0.send(Message::text("PING")).unwrap();
    assert_eq!(stream.text(), "PONG");
    let many: Vec<String> = (1..=501).map(|number| number.to_string()).collect();
    for (said, code) in [
        ("INVALID".to_owned(), "invalid_message"),
        (json!({ "operation": "drop" }).to_string(), "invalid_message"),
        (json!({ "assets_ids": many }).to_string(), "too_many_subscriptions"),
        (json!({ "assetsIds": [] }).to_string(), "invalid_message"),
        (json!({ "Markets": [] }).to_string(), "invalid_message"),
        (json!({ "streamId": "x", "from": 1 }).to_string(), "invalid_message"),
        (json!({ "cancelOnDisconnect": true }).to_string(), "invalid_message"),
    ] {
        stream.0.send(Message::text(said.clone())).unwrap();
        assert_eq!(stream.event()["code"], code, "{said}");
    }
    stream.say(&json!({ "cancel-on-disconnect": true }));
    let refused = stream.event();
    let about = ["field", "got", "allowed"].map(|name| text(&refused[name]));
    assert_eq!(about, ["cancel_on_disconnect", "cancel-on-disconnect", "cancel_on_disconnect"]);
    stream.say(&json!({ "operation": "unsubscribe", "assets_ids": [site.tokens[0], "5"], "level": 2 }));
    let told = stream.event();
    assert_eq!((&told["type"], &told["subscriptions"]), (&json!("unsubscribed"), &json!(1)));
    assert_eq!(told["refused"][0]["got"], "5");
    // The reason for closing arrives although the client goes on sending; then the connection is
    // closed.
    stream.0.write(Message::binary(vec![1])).unwrap();
    for _ in 0..200 {
        stream.0.write(Message::text("x".repeat(1_000))).unwrap();
    }
    stream.0.flush().unwrap();
    assert_eq!(u16::from(stream.close().code), 1_003);
    assert!(matches!(stream.0.read(), Err(tungstenite::Error::ConnectionClosed)), "it is closed");
    // Without an upgrade it is no stream.
    upgrades::each_that_lacks_something_is_refused_by_its_name(&site.exchange);
    // A connection that has traded may become one, too.
    let mut site = site;
    site.order(0, 0, Side::Buy, 20, 5, "GTC");
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let answer = site.connection.request("GET", "/ws/market", upgrade, b"").unwrap();
    assert_eq!(answer.status, 101);
    assert_eq!(answer.header("Sec-WebSocket-Accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
}
