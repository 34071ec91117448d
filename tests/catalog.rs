//! The catalog of a running exchange, compared with the files that it was imported from. Every
//! object is found by id, slug, tag, series and page walk, each exactly once, and shows field by
//! field what its row says. What the exchange itself knows better is listed by name below.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]
#![allow(unreachable_pub, reason = "a test is a crate of its own")]

#[path = "catalog/again.rs"]
mod again;
mod common;
#[path = "catalog/dates.rs"]
mod dates;
#[path = "catalog/flags.rs"]
mod flags;
#[path = "catalog/large.rs"]
mod large;
#[path = "catalog/live.rs"]
mod live;
#[path = "catalog/loaded.rs"]
mod loaded;
#[path = "catalog/requests.rs"]
mod requests;
#[path = "catalog/scopes.rs"]
mod scopes;
#[path = "catalog/site.rs"]
mod site;
#[path = "catalog/source.rs"]
mod source;
#[path = "catalog/tags.rs"]
mod tags;

use common::column;
use common::shared::shared;
use serde_json::Value;
use site::Site;
use source::{Source, text};
use std::collections::BTreeSet;

const MARKETS: &str = "data/gamma-markets-500/polymarket_markets.json.gz";
const EVENTS: &str = "data/gamma-events-100/events.json.gz";

/// Fields of a market that show its present state here, not what the file says.
const LIVE_OF_MARKET: &[&str] = &[
    "bestBid",
    "bestAsk",
    "spread",
    "outcomePrices",
    "volume",
    "volumeNum",
    "volume24hr",
    "liquidity",
    "liquidityNum",
    "acceptingOrders",
    "enableOrderBook",
    "feeSchedule",
    "events",
];

/// Such fields of an event. Its tags, series and creators are shown as their newest copies.
const LIVE_OF_EVENT: &[&str] =
    &["volume", "volume24hr", "liquidity", "tags", "series", "eventCreators", "markets"];

const TEXTS_OF_MARKET: &[&str] = &[
    "id",
    "question",
    "conditionId",
    "slug",
    "resolutionSource",
    "image",
    "icon",
    "description",
    "questionID",
    "outcomes",
    "clobTokenIds",
];
const TEXTS_OF_EVENT: &[&str] =
    &["id", "ticker", "slug", "title", "description", "resolutionSource", "image", "icon"];
const DATES: &[&str] = &["startDate", "endDate", "createdAt", "updatedAt"];
const FLAGS: &[&str] = &["active", "closed", "archived"];

/// A catalog with both real files in it.
fn imported() -> Option<(Site, Source)> {
    let (markets, events) = (shared(MARKETS)?, shared(EVENTS)?);
    let site = Site::dev();
    for file in [&markets, &events] {
        let (whole, said) = site.import_file(file);
        assert!(whole, "{said}");
    }
    Some((site, Source::read(&[&markets, &events])))
}

fn is_date(value: &Value) -> bool {
    let text = value.as_str().unwrap_or("");
    text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z')
}

/// Checks that everything is there that the contract promises of an object.
#[track_caller]
fn assert_whole(shown: &Value, texts: &[&str], dates: &[&str], flags: &[&str]) {
    for name in texts {
        assert!(shown[*name].is_string(), "{name} of {shown}");
    }
    for name in dates {
        assert!(is_date(&shown[*name]), "{name} of {shown}");
    }
    for name in flags {
        assert!(shown[*name].is_boolean(), "{name} of {shown}");
    }
}

/// Checks that every field of the row, except those in `live`, is shown with the row's value.
#[track_caller]
fn assert_says(shown: &Value, row: &Value, live: &[&str]) {
    for (name, value) in row.as_object().unwrap() {
        if !live.contains(&name.as_str()) {
            assert_eq!(&shown[name], value, "{name} of {}", row["id"]);
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(f64::NAN)
}

fn near(one: &Value, other: &Value) -> bool {
    (number(one) - number(other)).abs() < 2e-6
}

fn assert_market(shown: &Value, row: &Value) {
    assert_whole(shown, TEXTS_OF_MARKET, DATES, FLAGS);
    assert_says(shown, row, LIVE_OF_MARKET);
    assert_eq!(shown["acceptingOrders"], row["closed"] != true);
    assert_eq!(shown["enableOrderBook"], row["closed"] != true);
    assert!(shown["feeSchedule"]["rate"].is_number());
    // Nobody has ordered anything here.
    assert_eq!(
        ["bestBid", "bestAsk", "spread"].map(|name| shown[name].as_u64()),
        [Some(0), Some(1), Some(1)]
    );
    assert!(shown["lastTradePrice"].is_number());
    let volume = if row["volumeNum"].is_null() { &Value::from(0) } else { &row["volumeNum"] };
    assert!(near(&shown["volumeNum"], volume) && near(&shown["volume"], volume), "{}", row["id"]);
    assert!(shown["volume"].is_string() && shown["liquidity"].is_string());
    assert_eq!([&shown["liquidityNum"], &shown["volume24hr"]], [&Value::from(0), &Value::from(0)]);
    let prices = |row: &Value| serde_json::from_str::<Vec<String>>(text(row, "outcomePrices")).ok();
    let shown_prices = prices(shown).expect("prices in a text");
    assert!(text(shown, "outcomePrices").contains("\", \""));
    for (one, other) in shown_prices.iter().zip(prices(row).iter().flatten()) {
        assert!(near(&Value::from(one.as_str()), &Value::from(other.as_str())), "{}", row["id"]);
    }
}

fn assert_event(shown: &Value, row: &Value, live: &[&str]) {
    assert_whole(shown, TEXTS_OF_EVENT, DATES, FLAGS);
    assert_says(shown, row, live);
    assert!(near(&shown["volume"], &row["volume"]), "{}", row["id"]);
}

#[test]
fn every_real_market_is_found_by_id_condition_slug_and_says_what_its_row_says() {
    let Some((mut site, source)) = imported() else { return };
    assert_eq!(source.markets.len(), 782);
    for (condition, row) in &source.markets {
        let id = text(row, "id");
        let shown = site.read(&format!("/markets/{id}"));
        assert_market(&shown, row);
        let event = &source.event_of[condition];
        let summaries = shown["events"].as_array().unwrap();
        assert_eq!(column(summaries, "id"), [event.as_str()]);
        assert_event(&summaries[0], &source.events[event], &[LIVE_OF_EVENT, &["eventMetadata"]].concat());
        for absent in ["tags", "markets", "series", "eventCreators", "eventMetadata"] {
            assert!(summaries[0].get(absent).is_none(), "{absent}");
        }
        assert!(is_date(&summaries[0]["creationDate"]));
        assert_eq!(site.read(&format!("/markets/slug/{}", text(row, "slug"))), shown);
        assert_eq!(site.read(&format!("/markets/{condition}?creator={}", text(row, "submitted_by"))), shown);
        assert_eq!(
            site.read(&format!("/markets/{id}/description"))["description"],
            row["description"],
            "{id}"
        );
        let tags = source.events[event]["tags"].as_array().map_or(0, Vec::len);
        assert_eq!(site.read(&format!("/markets/{id}/tags")).as_array().unwrap().len(), tags);
    }
    site.exchange.stop();
}

#[test]
fn every_real_event_is_found_by_id_and_slug_with_its_markets_tags_and_series() {
    let Some((mut site, source)) = imported() else { return };
    assert_eq!(source.events.len(), 146);
    for (id, row) in &source.events {
        let shown = site.read(&format!("/events/{id}"));
        assert_event(&shown, row, LIVE_OF_EVENT);
        assert!(shown["eventMetadata"].is_object() && is_date(&shown["creationDate"]));
        let markets = shown["markets"].as_array().unwrap();
        assert!(column(markets, "conditionId").into_iter().collect::<BTreeSet<_>>() == source.markets_of(id));
        assert_eq!(markets.len(), source.markets_of(id).len());
        for market in markets {
            assert_market(market, &source.markets[text(market, "conditionId")]);
            assert!(market.get("events").is_none());
        }
        for (name, items) in
            [("tags", &source.tags), ("series", &source.series), ("eventCreators", &source.creators)]
        {
            let [of_row, of_shown] =
                [row, &shown].map(|event| event[name].as_array().map_or(&[][..], Vec::as_slice));
            assert_eq!(column(of_shown, "id"), column(of_row, "id"));
            for item in of_shown {
                assert_says(item, &items[text(item, "id")], &[]);
            }
        }
        assert_eq!(site.read(&format!("/events/{id}/tags")), shown["tags"]);
        assert_eq!(site.read(&format!("/events/slug/{}", text(row, "slug"))), shown);
    }
    site.exchange.stop();
}

#[test]
fn tags_series_and_creators_are_found_and_lead_to_their_events() {
    let Some((mut site, source)) = imported() else { return };
    assert_eq!((source.tags.len(), source.creators.len()), (174, 2));
    let listed = site.walk("/tags?", 100);
    for (id, row) in &source.tags {
        let shown = site.read(&format!("/tags/{id}"));
        assert_whole(&shown, &["id", "label", "slug"], &["createdAt", "updatedAt"], &["requiresTranslation"]);
        assert_says(&shown, row, &[]);
        let slug = text(row, "slug");
        // The exchange's own sample may have a tag with the same slug: the lowest id is found.
        let same = listed.iter().filter(|tag| text(tag, "slug") == slug);
        let first = same.min_by_key(|tag| text(tag, "id").parse::<u64>().unwrap()).unwrap();
        assert_eq!(&site.read(&format!("/tags/slug/{slug}")), first);
        let wanted = source.events_with("tags", id);
        for filter in [format!("tag_id={id}"), format!("tag={slug}"), format!("tag_slug={slug}")] {
            let events = site.walk(&format!("/events?{filter}&"), 7);
            let ids = column(&events, "id");
            // The exchange's own sample events have tags too.
            let ids = ids.into_iter().filter(|id| source.events.contains_key(*id));
            assert!(ids.collect::<BTreeSet<_>>() == wanted, "{filter}");
        }
        let markets = site.walk(&format!("/markets?tag_id={id}&"), 50);
        let conditions: BTreeSet<&str> = wanted.iter().flat_map(|event| source.markets_of(event)).collect();
        let found = column(&markets, "conditionId");
        assert!(conditions.iter().all(|condition| found.contains(condition)), "{slug}");
    }
    let whole = ["id", "ticker", "slug", "title", "seriesType", "recurrence", "image", "icon"];
    for (id, row) in &source.series {
        let shown = site.read(&format!("/series/{id}"));
        assert_whole(&shown, &whole, &["createdAt", "updatedAt"], FLAGS);
        assert_says(&shown, row, &[]);
        let slug = text(row, "slug");
        assert_eq!(site.read(&format!("/series/{slug}")), shown);
        assert_eq!(site.read(&format!("/series?slug={slug}")), Value::Array(vec![shown.clone()]));
        let wanted = source.events_with("series", id);
        let summaries = shown["events"].as_array().unwrap();
        assert!(column(summaries, "id").into_iter().collect::<BTreeSet<_>>() == wanted, "{slug}");
        let events = site.walk(&format!("/events?series_slug={slug}&"), 3);
        assert!(column(&events, "id").into_iter().collect::<BTreeSet<_>>() == wanted, "{slug}");
    }
    let all = site.walk("/series?", 100);
    for closed in [true, false] {
        let wanted: Vec<_> = all.iter().filter(|row| row["closed"] == closed).collect();
        let found = site.walk(&format!("/series?closed={closed}&"), 100);
        assert!(found.iter().eq(wanted), "closed={closed}");
    }
    let texts = ["id", "creatorName", "creatorHandle", "creatorUrl", "creatorImage"];
    for (id, row) in &source.creators {
        let shown = site.read(&format!("/events/creators/{id}"));
        assert_whole(&shown, &texts, &["createdAt", "updatedAt"], &[]);
        assert_says(&shown, row, &[]);
        let name = text(row, "creatorName").replace(' ', "+");
        for filter in
            [format!("creator_name={name}"), format!("creator_handle={}", text(row, "creatorHandle"))]
        {
            assert_eq!(site.read(&format!("/events/creators?{filter}")), Value::Array(vec![shown.clone()]));
        }
        let of_creator = site.walk(&format!("/events?creator={}&", text(row, "creatorHandle")), 5);
        let wanted = source.events_with("eventCreators", id);
        assert!(column(&of_creator, "id").into_iter().collect::<BTreeSet<_>>() == wanted, "{id}");
    }
    site.exchange.stop();
}

#[test]
fn page_walks_in_every_order_show_each_row_exactly_once() {
    let Some((mut site, source)) = imported() else { return };
    let events: Vec<&str> = source.events.keys().map(String::as_str).collect();
    let tags: Vec<&str> = source.tags.keys().map(String::as_str).collect();
    let series: Vec<&str> = source.series.keys().map(String::as_str).collect();
    let markets: Vec<&str> = source.markets.values().map(|row| text(row, "id")).collect();
    for (path, wanted, orders, limits) in [
        ("/events", &events, &["", "title", "volume", "endDate,id", "liquidity"][..], &[100, 7][..]),
        ("/markets", &markets, &["id", "volumeNum", "slug", "closedTime", "volume24hr"][..], &[100, 97][..]),
        ("/tags", &tags, &["", "label", "createdAt"][..], &[100, 13][..]),
        ("/series", &series, &["", "title", "updatedAt"][..], &[100, 1][..]),
    ] {
        let mut first: Option<BTreeSet<String>> = None;
        for order in orders {
            for limit in limits {
                let [down, up] = ["false", "true"].map(|ascending| {
                    site.walk(&format!("{path}?order={order}&ascending={ascending}&"), *limit)
                });
                let all: BTreeSet<String> = column(&down, "id").into_iter().map(str::to_owned).collect();
                assert_eq!(all.len(), down.len(), "{path} {order}: a row came twice");
                assert!(wanted.iter().all(|id| all.contains(*id)), "{path} {order}: a row is missing");
                assert_eq!(up.len(), down.len());
                assert_eq!(first.get_or_insert_with(|| all.clone()), &all, "{path} {order}");
                if *order == "volumeNum" {
                    let volumes: Vec<f64> = down.iter().map(|row| number(&row["volumeNum"])).collect();
                    assert!(volumes.is_sorted_by(|one, other| one >= other));
                }
            }
        }
    }
    let listed = site.walk("/events?", 100);
    for event in &listed {
        assert!(event["tags"].is_array() && event.get("creationDate").is_none());
    }
    site.exchange.stop();
}
