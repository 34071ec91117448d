//! What a client learns about a market that changed while the client was away: its tick and its
//! result.

use super::Site;
use super::mirror::{Mirror, Noted};
use crate::common::stream::Stream;
use crate::common::text;
use outcry::domain::Side;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a market's messages say about it besides its books.
#[derive(Clone, Debug, Default, PartialEq)]
struct Terms {
    tick: f64,
    /// What a share of each token pays, once that is known.
    pays: BTreeMap<String, f64>,
}

fn number(said: &Value) -> f64 {
    text(said).parse().unwrap()
}

impl Terms {
    fn note(&mut self, message: &Value) {
        match (message["type"].as_str(), message["event_type"].as_str()) {
            (Some("subscribed"), _) => {
                for market in message["markets"].as_array().unwrap() {
                    self.tick = number(&market["tick_size"]);
                    self.pays_of(market);
                }
            }
            (_, Some("book")) => self.tick = number(&message["tick_size"]),
            (_, Some("tick_size_change")) => self.tick = number(&message["new_tick_size"]),
            (_, Some("market_resolved")) => self.pays_of(message),
            _ => {}
        }
    }

    fn pays_of(&mut self, said: &Value) {
        let Some(payout) = said["payout"].as_array() else {
            return;
        };
        let tokens = said["assets_ids"].as_array().unwrap();
        assert_eq!(payout.len(), tokens.len(), "{said}");
        self.pays
            .extend(tokens.iter().zip(payout).map(|(token, pays)| (text(token).to_owned(), number(pays))));
    }
}

impl Site {
    /// What a read says about the market.
    fn terms(&self) -> Terms {
        let market = self.exchange.read(&format!("/markets/{}", self.condition));
        let tokens = market["tokens"].as_array().unwrap().iter();
        let pays =
            tokens.map(|token| (text(&token["token_id"]).to_owned(), token["price"].as_f64().unwrap()));
        let resolved = market["closed"] == true;
        Terms {
            tick: market["minimum_tick_size"].as_f64().unwrap(),
            pays: if resolved { pays.collect() } else { BTreeMap::new() },
        }
    }

    fn tick(&self, tick: &str) {
        self.exchange.operator(&["market", "tick", &self.condition, tick]);
    }

    /// Comes back to both tokens from where `mirror` is; returns what the server says first.
    #[track_caller]
    fn come_back(&self, stream_id: &Value, mirror: &mut Mirror, terms: &mut Terms) -> (Stream, Value) {
        let mut stream = Stream::open(&self.exchange, "market");
        stream.say(&json!({
            "assets_ids": self.tokens, "custom_feature_enabled": true,
            "from": mirror.sequence, "stream_id": stream_id,
        }));
        let told = stream.event();
        terms.note(&told);
        let market = &told["markets"][0];
        let replayed = market["replayed"] == true;
        if !replayed {
            *mirror = Mirror::default();
        }
        let missed = market["sequence"].as_u64().unwrap() - mirror.sequence;
        for _ in 0..if replayed { missed } else { 2 } {
            let message = stream.event();
            assert_eq!(mirror.note(&message), Noted::Good, "{message}");
        }
        assert_eq!(*terms, self.terms(), "{told}");
        (stream, told)
    }
}

pub(super) fn who_comes_back_knows_the_tick_and_the_result_that_came_meanwhile(feed: &str) {
    let mut site = Site::start(feed);
    let (stream, told, mut mirror) = site.market();
    let stream_id = &told["stream_id"];
    let mut terms = Terms::default();
    terms.note(&told);
    assert_eq!(terms, site.terms());
    drop(stream);
    // No order was in the way of a finer tick: the number stays, and the change is reported
    // nevertheless.
    site.tick("0.001");
    let since = mirror.sequence;
    let (stream, told) = site.come_back(stream_id, &mut mirror, &mut terms);
    assert_eq!((&told["markets"][0]["replayed"], mirror.sequence), (&json!(true), since));
    assert_eq!(told["markets"][0]["tick_size"], "0.001");
    assert!(told["markets"][0].get("payout").is_none(), "{told}");
    drop(stream);
    // To another tick and back, which removes an order that was off the grid.
    site.order(0, 0, Side::Buy, 25, 5, "GTC");
    site.tick("0.1");
    site.tick("0.001");
    site.order(0, 0, Side::Buy, 20, 5, "GTC");
    let (mut stream, told) = site.come_back(stream_id, &mut mirror, &mut terms);
    assert_eq!((&told["markets"][0]["replayed"], mirror.sequence), (&json!(true), since + 3));
    assert_eq!(mirror.books, site.books());
    // A client that stays is told the same.
    site.tick("0.01");
    for word in ["tick_size_change", "tick_size_change", "book", "book"] {
        let message = stream.event();
        assert_eq!(message["event_type"], word, "{message}");
        terms.note(&message);
    }
    assert_eq!(terms, site.terms());
    drop(stream);
    // After a snapshot only the newest state is known, with the same number and with another one.
    site.tick("0.001");
    site.exchange.operator(&["snapshot"]);
    let mut site = site.restart();
    let (stream, told) = site.come_back(stream_id, &mut mirror, &mut terms);
    assert_eq!(told["markets"][0]["replayed"], true);
    drop(stream);
    site.order(0, 0, Side::Buy, 21, 5, "GTC");
    site.exchange.operator(&["market", "resolve", &site.condition, "--payout", "0.3"]);
    let before = (mirror.clone(), terms.clone());
    let (stream, told) = site.come_back(stream_id, &mut mirror, &mut terms);
    assert_eq!(told["markets"][0]["replayed"], true, "{told}");
    assert_eq!(told["markets"][0]["payout"], json!(["0.3", "0.7"]), "{told}");
    drop(stream);
    site.exchange.operator(&["snapshot"]);
    let site = site.restart();
    let (mut mirror, mut terms) = before;
    let (_, told) = site.come_back(stream_id, &mut mirror, &mut terms);
    assert_eq!(told["markets"][0]["replayed"], false, "{told}");
    assert_eq!(told["markets"][0]["payout"], json!(["0.3", "0.7"]), "{told}");
}

pub(super) fn the_acknowledgement_says_tick_and_payout_whatever_was_asked_and_however(feed: &str) {
    let site = Site::start(feed);
    site.tick("0.001");
    site.exchange.operator(&["market", "resolve", &site.condition, "--payout", "1"]);
    let [first, second] = &site.tokens;
    let mut stream = Stream::open(&site.exchange, "market");
    let unknown: Vec<String> = (1..=400).map(|number| number.to_string()).collect();
    for (said, tokens, payout) in [
        (json!({ "assets_ids": [first] }), json!([first]), json!(["1"])),
        (json!({ "assets_ids": [second], "from": 0 }), json!([second]), json!(["0"])),
        (json!({ "assets_ids": [second, first], "from": 1_000 }), json!([first, second]), json!(["1", "0"])),
        (json!({ "markets": [site.condition] }), json!([first, second]), json!(["1", "0"])),
        (
            json!({ "assets_ids": unknown, "markets": [site.condition, "0x12"], "from": { &site.condition: 0 } }),
            json!([first, second]),
            json!(["1", "0"]),
        ),
        (json!({ "operation": "unsubscribe", "assets_ids": [second] }), json!([second]), json!(["0"])),
    ] {
        let mut asked = said.clone();
        asked["initial_dump"] = json!(false);
        stream.say(&asked);
        let told = stream.event();
        let markets = told["markets"].as_array().unwrap();
        assert_eq!(markets.len(), 1, "{said}: {told}");
        for (name, expected) in [
            ("market", &json!(site.condition)),
            ("assets_ids", &tokens),
            ("tick_size", &json!("0.001")),
            ("mode", &json!("resolved")),
            ("payout", &payout),
        ] {
            assert_eq!(markets[0][name], *expected, "{said}: {told}");
        }
    }
}
