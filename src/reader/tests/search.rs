//! How what a search found is shown.

use super::*;
use crate::catalog::search::{Filter, Found, Hit};

impl Exchange {
    fn found(&self, hits: &[Hit], filter: Filter) -> Vec<Value> {
        let found = Found { hits: hits.to_vec(), filter, ..Found::default() };
        let mut out = Vec::new();
        self.reader.write_found(&found, self.time(), &mut out);
        let answer: Value = serde_json::from_slice(&out).expect("JSON");
        answer["events"].as_array().expect("an array").clone()
    }
}

#[test]
fn a_hit_is_shown_with_the_markets_that_the_search_leaves() {
    let mut exchange = Exchange::opened();
    let rain = [Hit::Event(0)];
    let listed = exchange.reads("/events");
    assert_eq!(exchange.found(&rain, Filter::default()), listed.as_array().expect("an array")[..]);
    let snow = &exchange.found(&[Hit::Market(SNOW.0)], Filter::default())[0];
    assert_eq!((&snow["id"], &snow["slug"]), (&Value::from("market-1001"), &Value::from("snow")));
    assert_eq!(snow["markets"][0]["id"], "1001");
    let markets = |exchange: &Exchange, filter| {
        exchange.found(&rain, filter)[0]["markets"].as_array().expect("an array").len()
    };
    let of_nobody = Filter { creator: Some("nobody".into()), ..Filter::default() };
    let without_closed = Filter { without_closed_markets: true, ..Filter::default() };
    assert_eq!(markets(&exchange, of_nobody), 0);
    assert_eq!(markets(&exchange, without_closed.clone()), 1);
    let payout = crate::domain::Payout::new(1_000_000).expect("at most one");
    exchange.says(crate::journal::layout::Resolved { time: exchange.time(), market: RAIN, payout });
    assert_eq!(markets(&exchange, without_closed), 0);
    assert_eq!(markets(&exchange, Filter::default()), 1);
}

#[test]
fn a_market_without_an_event_is_found_as_the_event_that_searches_and_positions_name() {
    let mut exchange = Exchange::opened();
    let text = r#"{"question":"Hail?","slug":"hail","tags":[{"id":"5","label":"Sky","slug":"sky"}]}"#;
    exchange.open_market(MarketNo(2), text);
    for (market, slug, tags) in [(SNOW.0, "snow", 0), (2, "hail", 1)] {
        let hit = exchange.found(&[Hit::Market(market)], Filter::default()).remove(0);
        let by_slug = exchange.reads(&format!("/events/slug/{slug}"));
        let id = hit["id"].as_str().expect("an id");
        assert_eq!(exchange.reads(&format!("/events/{id}")), by_slug);
        for (name, value) in hit.as_object().expect("an object") {
            assert_eq!(by_slug[name], *value, "{name}");
        }
        let of_event = exchange.reads("/events/slug/weather");
        let shown = names(&by_slug);
        let missing: Vec<_> = names(&of_event).into_iter().filter(|name| !shown.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(by_slug["tags"].as_array().map(Vec::len), Some(tags));
        assert_eq!(exchange.reads(&format!("/events/{id}/tags")), by_slug["tags"]);
    }
    for (path, status) in [
        // It has an event, which is shown by itself.
        ("/events/market-1000", 404),
        ("/events/slug/rain", 404),
        ("/events/market-9", 404),
        ("/events/market-x", 400),
        ("/events/market-", 400),
        ("/events/slug/snow?creator=nobody", 404),
        ("/events/market-1001?creator=nobody", 404),
    ] {
        assert_eq!(exchange.sends(None, &format!("GET {path}"), "").0, status, "{path}");
    }
}

#[test]
fn hits_that_do_not_fit_into_a_mebibyte_are_only_named() {
    let mut exchange = Exchange::opened();
    let long = "x".repeat(700_000);
    for market in [2, 3] {
        let text =
            format!(r#"{{"question":"Long {market}?","slug":"long-{market}","description":"{long}"}}"#);
        exchange.open_market(MarketNo(market), &text);
    }
    let hits = [Hit::Market(2), Hit::Market(3), Hit::Event(0), Hit::Market(2)];
    let shown = exchange.found(&hits, Filter::default());
    assert!(shown[0]["markets"][0]["description"].as_str().is_some_and(|text| text.len() == 700_000));
    for (hit, id) in [(&shown[1], "market-1003"), (&shown[3], "market-1002")] {
        assert_eq!(names(hit), ["id", "ticker", "slug", "title"]);
        assert_eq!(hit["id"], id);
    }
    assert_eq!(shown[2]["markets"][0]["slug"], "rain", "what is behind it and fits is whole");
}
