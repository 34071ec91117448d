//! What trading, pausing and resolving change in the next answer, and how a market fares that the
//! operator makes.

use crate::common::column;
use crate::common::trader::{KEYS, Trader, Wish, token};
use crate::common::wire::{Connection, request};
use crate::site::Site;
use outcry::domain::Side;
use serde_json::{Value, json};

/// Two markets of one event; `first` has traded 1000.5 before the import.
fn rows() -> Value {
    let market = |n: u32, more: Value| {
        let mut row = json!({
            "id": n.to_string(), "question": format!("Q{n}?"), "slug": format!("q{n}"),
            "conditionId": format!("0x{n:064x}"), "clobTokenIds": format!("[\"{n}1\", \"{n}2\"]"),
            "outcomes": "[\"Yes\", \"No\"]", "active": true, "closed": false, "archived": false,
            "orderPriceMinTickSize": 0.01, "orderMinSize": 5, "unknown": {"kept": [1.50, "x"]},
            "startDate": "2026-01-01T00:00:00Z", "endDate": "2027-01-01T00:00:00.123456Z",
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"
        });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    };
    let first = json!({"volume": "1000.5", "volumeNum": 1000.5, "lastTradePrice": 0.25, "liquidity": "77",
               "bestBid": 0.2, "bestAsk": 0.3, "spread": 0.1, "outcomePrices": "[\"0.25\", \"0.75\"]"});
    json!([{
        "id": "500", "slug": "both", "title": "Both", "volume": 1500.25, "liquidity": 77,
        "markets": [market(701, first), market(702, json!({}))]
    }])
}

fn wish(token_id: &str, side: Side, price: u64, shares: u64) -> Wish<'static> {
    Wish::of(side, token(token_id), price, shares * 1_000_000)
}

#[track_caller]
fn place(site: &mut Site, trader: &mut Trader, wish: &Wish<'_>) {
    let order = trader.sign(wish);
    let answer = trader.post(&mut site.connection, &order.body);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[track_caller]
fn assert_fields(row: &Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&row[name], value, "{name} of {row}");
    }
}

/// Checks that a market reads the same wherever it is shown: by id, by slug, in lists and within
/// its event.
#[track_caller]
fn read_everywhere(site: &mut Site, id: &str) -> Value {
    let shown = site.read(&format!("/markets/{id}"));
    assert_eq!(site.read(&format!("/markets?id={id}")), json!([shown]));
    let slug = shown["slug"].as_str().unwrap();
    assert_eq!(site.read(&format!("/markets/slug/{slug}")), shown);
    let mut within = shown.clone();
    within.as_object_mut().unwrap().remove("events");
    for path in ["/events/500", "/events?id=500", "/events/slug/both"] {
        let event = site.read(path);
        let event = if event.is_array() { &event[0] } else { &event };
        let found = event["markets"].as_array().unwrap().iter().find(|market| market["id"] == id);
        assert_eq!(found, Some(&within), "{path}");
        for name in ["volume", "volume24hr", "liquidity", "closed", "active", "archived"] {
            assert_eq!(shown["events"][0][name], event[name], "{name} of {path}");
        }
    }
    shown
}

#[test]
fn a_trade_is_in_the_next_answer() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    let [mut alice, mut bob] = [KEYS[2], KEYS[3]].map(|key| Trader::new(key, &mut site.connection));
    let before = read_everywhere(&mut site, "701");
    assert_fields(
        &before,
        &json!({
            "volume": "1000.5", "volumeNum": 1000.5, "volume24hr": 0, "liquidity": "0", "liquidityNum": 0,
            "lastTradePrice": 0.25, "outcomePrices": "[\"0.25\", \"0.75\"]", "acceptingOrders": true,
            "bestBid": 0, "bestAsk": 1, "spread": 1, "makerBaseFee": 0, "takerBaseFee": 0,
            "enableOrderBook": true, "orderPriceMinTickSize": 0.01, "orderMinSize": 5, "negRisk": false,
            "unknown": {"kept": [1.50, "x"]}, "endDate": "2027-01-01T00:00:00.123456Z"
        }),
    );

    // A bid of 100 at 0.40 and, as a bid for the other outcome, an ask of 50 at 0.60.
    place(&mut site, &mut alice, &wish("7011", Side::Buy, 4_000, 100));
    place(&mut site, &mut alice, &wish("7012", Side::Buy, 4_000, 50));
    let quoted = read_everywhere(&mut site, "701");
    assert_fields(
        &quoted,
        &json!({
            "bestBid": 0.4, "bestAsk": 0.6, "spread": 0.2, "outcomePrices": "[\"0.5\", \"0.5\"]",
            "lastTradePrice": 0.25, "liquidity": "60", "liquidityNum": 60, "volumeNum": 1000.5
        }),
    );

    // Bob buys 30 at 0.60: 18 of collateral.
    place(&mut site, &mut bob, &wish("7011", Side::Buy, 6_000, 30));
    let traded = read_everywhere(&mut site, "701");
    assert_fields(
        &traded,
        &json!({
            "lastTradePrice": 0.6, "volume": "1018.5", "volumeNum": 1018.5, "volume24hr": 18,
            "liquidity": "48", "bestBid": 0.4, "bestAsk": 0.6
        }),
    );
    let event = site.read("/events/500");
    assert_fields(&event, &json!({"volume": 1518.25, "volume24hr": 18, "liquidity": 48, "closed": false}));
    assert_eq!(event["markets"][0]["volumeNum"], 1018.5);
    let by_day = site.read("/markets?event_id=500&order=volume24hr");
    assert_eq!(column(by_day.as_array().unwrap(), "id"), ["701", "702"]);
    let rich = site.read("/markets?volume_num_min=1018.5&event_id=500");
    assert_eq!(column(rich.as_array().unwrap(), "id"), ["701"]);
    assert_eq!(site.read("/markets?volume_num_min=1018.500001&event_id=500"), json!([]));
    site.exchange.stop();
}

#[test]
fn modes_and_results_are_in_the_next_answer() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    site.exchange.operator(&["market", "pause", "701"]);
    assert_fields(&read_everywhere(&mut site, "701"), &json!({"acceptingOrders": false, "closed": false}));
    site.exchange.operator(&["market", "resume", "701"]);
    assert_fields(&read_everywhere(&mut site, "701"), &json!({"acceptingOrders": true, "closed": false}));
    site.exchange.operator(&["market", "tick", "701", "0.001"]);
    assert_fields(&read_everywhere(&mut site, "701"), &json!({"orderPriceMinTickSize": 0.001}));
    site.exchange.operator(&["market", "resolve", "701", "--payout", "1"]);
    let resolved = json!({"closed": true, "acceptingOrders": false, "enableOrderBook": false, "outcomePrices": "[\"1\", \"0\"]"});
    let one = read_everywhere(&mut site, "701");
    assert_fields(&one, &resolved);
    let closings = |site: &mut Site| {
        let event = site.read("/events/500");
        [event["markets"][0].clone(), event["markets"][1].clone(), event]
            .map(|object| object["closedTime"].clone())
    };
    assert_eq!(closings(&mut site), [one["closedTime"].clone(), Value::Null, Value::Null]);
    assert_eq!(site.read("/events/500")["closed"], false);
    assert_eq!(column(site.read("/markets?event_id=500&closed=true").as_array().unwrap(), "id"), ["701"]);
    assert_eq!(column(site.read("/markets?event_id=500&closed=false").as_array().unwrap(), "id"), ["702"]);
    site.exchange.operator(&["market", "resolve", "702", "--payout", "0"]);
    assert_eq!(site.read("/events/500")["closed"], true, "an event whose markets are all closed is closed");
    let other = read_everywhere(&mut site, "702");
    assert!(one["closedTime"].as_str().unwrap() <= other["closedTime"].as_str().unwrap());
    assert_eq!(closings(&mut site), [&one, &other, &other].map(|object| object["closedTime"].clone()));
    let last_first = site.read("/markets?event_id=500&order=closedTime&ascending=false");
    assert_eq!(column(last_first.as_array().unwrap(), "id"), ["702", "701"]);
    site.exchange.stop();
}

#[test]
fn fees_are_shown_as_they_are_charged_here() {
    let mut site = Site::dev();
    let mut rows = rows();
    let schedule = json!({"rate": 0.02, "exponent": 2, "takerOnly": true, "rebateRate": 0.25, "more": 1});
    rows[0]["markets"][0]["feeSchedule"] = schedule.clone();
    rows[0]["markets"][1]["feesEnabled"] = json!(false);
    rows[0]["markets"][1]["feeSchedule"] = schedule;
    assert!(site.import(&rows).0);
    let fee = json!({"rate": 0.02, "exponent": 2, "takerOnly": true, "rebateRate": 0.25});
    assert_fields(&read_everywhere(&mut site, "701"), &json!({"feesEnabled": true, "feeSchedule": fee}));
    let free = read_everywhere(&mut site, "702");
    assert_eq!((&free["feesEnabled"], &free["feeSchedule"]["rate"]), (&json!(false), &json!(0)));
    assert_eq!(site.read("/fee-rate/7022")["base_fee"], 0);
    site.exchange.stop();
}

#[test]
fn markets_of_one_question_that_are_made_at_once_get_slugs_of_their_own() {
    let mut site = Site::dev();
    let body = json!({"question": "Is it here?"}).to_string();
    let ask = request("POST", "/markets", "", body.as_bytes());
    let mut operators = [(); 2].map(|()| Connection::open(site.exchange.admin));
    for operator in &mut operators {
        operator.send(&ask.repeat(3)).unwrap();
    }
    let mut slugs = Vec::new();
    for operator in &mut operators {
        for _ in 0..3 {
            let id = operator.answer().unwrap().json()["marketId"].to_string();
            let slug = site.read(&format!("/markets/{id}"))["slug"].as_str().unwrap().to_owned();
            slugs.push(slug.replace(&id, "ID"));
        }
    }
    slugs.sort();
    assert_eq!(slugs, [&["is-it-here"][..], &["is-it-here-ID"; 5]].concat());
    site.exchange.stop();
}

#[test]
fn the_operators_own_market_is_in_the_catalog() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    let made: Vec<Value> = [
        ("Is it \"here\"?", &[][..], "is-it-here"),
        ("Is it \"here\"?", &["--event", "both"], "is-it-here-{}"),
        ("雨?", &[], "雨"),
        ("???", &[], "{}"),
        ("Q702", &[], "q702-{}"),
        // An event has it: another market's, or its own.
        ("Both?", &[], "both-{}"),
        ("Both?", &["--event", "both"], "both"),
    ]
    .into_iter()
    .map(|(question, more, slug)| {
        let made = site.exchange.operator(&[&["market", "create", question], more].concat());
        let id = made["marketId"].to_string();
        let market = site.read(&format!("/markets/{id}"));
        assert_eq!(market["slug"], slug.replace("{}", &id), "{question}");
        market
    })
    .collect();
    let own = &made[..2];
    assert_eq!(own[0]["events"], json!([]));
    assert_eq!(own[1]["events"][0]["id"], "500");
    for market in own {
        let id = market["id"].as_str().unwrap();
        assert_eq!(&site.read(&format!("/markets/{id}")), market);
        for name in crate::TEXTS_OF_MARKET {
            assert!(market[*name].is_string(), "{name} of {market}");
        }
        for name in crate::DATES {
            assert!(crate::is_date(&market[*name]), "{name} of {market}");
        }
    }
    assert_eq!(site.read("/events/500")["markets"].as_array().unwrap().len(), 4);
    site.exchange.stop();
}

#[test]
fn the_same_file_twice_changes_nothing_and_a_newer_one_updates() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    let before = [site.read("/events/500"), site.read("/markets/702")];
    let (_, said) = site.import(&rows());
    assert!(said.contains("markets: 0 added, 0 updated, 2 unchanged"), "{said}");
    assert_eq!([site.read("/events/500"), site.read("/markets/702")], before);
    let mut newer = rows();
    let market = &mut newer[0]["markets"][1];
    market["question"] = json!("Another?");
    market["slug"] = json!("another");
    market["unknown"] = json!(7);
    market["updatedAt"] = json!("2026-02-01T00:00:00Z");
    newer[0]["tags"] = json!([{"id": "9", "label": "Nine", "slug": "nine"}]);
    newer[0]["updatedAt"] = json!("2026-02-01T00:00:00Z");
    assert!(site.import(&newer).0);
    let after = site.read("/markets/slug/another");
    assert_fields(&after, &json!({"id": "702", "question": "Another?", "unknown": 7}));
    assert_eq!(site.get("/markets/slug/q702").status, 404);
    assert_eq!(site.read("/markets/702/tags")[0]["slug"], "nine");
    assert_eq!(column(site.read("/events?tag=nine").as_array().unwrap(), "id"), ["500"]);
    site.exchange.stop();
}

#[test]
fn tags_series_and_creators_may_come_by_themselves() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    let tag =
        json!({"id": "9", "label": "Nine", "slug": "nine", "updatedAt": "2026-02-01T00:00:00Z", "x": [1.0]});
    let series = json!({
        "id": "70", "slug": "ser", "title": "Ser", "seriesType": "single", "recurrence": "daily",
        "events": [{"id": "500", "slug": "both", "title": "Both"}, {"id": "501", "slug": "new", "title": "New"}]
    });
    let creator = json!({"id": "33", "creatorHandle": "someone"});
    let all = json!([tag, series, creator]);
    let (whole, said) = site.import(&all);
    assert!(whole && said.contains("by themselves: 3 added, 0 updated, 0 unchanged"), "{said}");
    let (_, said) = site.import(&all);
    assert!(said.contains("by themselves: 0 added, 0 updated, 3 unchanged"), "{said}");

    let shown = site.read("/tags/9");
    assert_fields(&shown, &tag);
    assert_eq!(shown["createdAt"], tag["updatedAt"], "a date that is not said is the nearest one that is");
    let shown = site.read("/series/70");
    assert_fields(&shown, &json!({"slug": "ser", "recurrence": "daily", "active": true, "closed": false}));
    assert_eq!(column(shown["events"].as_array().unwrap(), "id"), ["500", "501"]);
    assert_eq!(
        column(site.read("/events?series_slug=ser&ascending=true").as_array().unwrap(), "id"),
        ["500", "501"]
    );
    let named =
        json!({"creatorName": "33", "creatorHandle": "someone", "creatorUrl": "", "creatorImage": ""});
    assert_fields(&site.read("/events/creators/33"), &named);

    // An event with an older copy of the tag shows the newer one.
    let mut event = rows();
    event[0]["tags"] =
        json!([{"id": "9", "label": "Old", "slug": "old", "updatedAt": "2025-01-01T00:00:00Z"}]);
    assert!(site.import(&event).0);
    assert_eq!(site.read("/events/500")["tags"][0]["label"], "Nine");
    assert_eq!(column(site.read("/events?tag=nine").as_array().unwrap(), "id"), ["500"]);
    let mut newer = tag;
    newer["label"] = json!("Neuf");
    newer["updatedAt"] = json!("2026-03-01T00:00:00Z");
    assert!(site.import(&json!([newer])).1.contains("by themselves: 0 added, 1 updated, 0 unchanged"));
    assert_eq!(site.read("/events/500/tags")[0]["label"], "Neuf");
    site.exchange.stop();
}

#[test]
fn a_series_shows_the_same_newest_events_in_whatever_order_a_file_has_them() {
    let event = |n: u32| {
        json!({"id": n.to_string(), "slug": format!("e{n}"), "title": format!("E{n}"), "markets": [],
            "series": [{"id": "70", "slug": "ser", "title": "S", "recurrence": "daily"}]})
    };
    let oldest_first: Vec<u32> = (950..1_060).collect();
    let newest_first: Vec<u32> = oldest_first.iter().rev().copied().collect();
    for order in [oldest_first, newest_first] {
        let mut site = Site::dev();
        assert!(site.import(&order.into_iter().map(event).collect()).0);
        let listed = site.read("/events?series_slug=ser&limit=100");
        let mut newest = column(listed.as_array().unwrap(), "id");
        assert_eq!((newest.len(), newest[0], newest[99]), (100, "1059", "960"));
        newest.reverse();
        let shown = site.read("/series/70");
        assert_eq!(column(shown["events"].as_array().unwrap(), "id"), newest);
        assert_eq!(site.read("/series?slug=ser")[0], shown);
        site.exchange.stop();
    }
}

/// Two events with series of their own, of which anybody may make the first (`cyom`), which has two creators; a market
/// with a tag of its own.
fn recurring_rows() -> Value {
    let mut rows = rows();
    rows[0]["cyom"] = json!(true);
    rows[0]["tags"] = json!([{"id": "9", "label": "Nine", "slug": "nine"}]);
    rows[0]["eventCreators"] = json!(["Ann", {"id": "33", "creatorHandle": "bob"}]);
    rows[0]["series"] = json!([{"id": "70", "slug": "each-day", "title": "D", "recurrence": "daily"}]);
    rows[0]["markets"][0]["cyom"] = json!(true);
    rows[0]["markets"][0]["tags"] = json!(["Own"]);
    let weekly = json!([
        {"id": "71", "slug": "each-week", "title": "W", "recurrence": "Weekly", "closed": true},
    ]);
    let other = json!({"id": "501", "slug": "other", "title": "Other", "series": weekly});
    rows.as_array_mut().unwrap().push(other);
    rows
}

#[test]
fn rows_are_filtered_by_series_and_by_who_may_make_them() {
    let mut site = Site::dev();
    assert!(site.import(&recurring_rows()).0);
    for (path, ids) in [
        ("/events?recurrence=daily", &["500"][..]),
        ("/events?recurrence=WEEKLY", &["501"]),
        ("/events?recurrence=daily&series_slug=each-day", &["500"]),
        ("/events?recurrence=daily&series_slug=each-week", &[]),
        ("/events?recurrence=hourly", &[]),
        ("/events?recurrence=daily&include_chat=true&include_template=false&related_tags=true", &["500"]),
        ("/series?recurrence=daily", &["70"]),
        ("/series?recurrence=weekly&include_chat=true", &["71"]),
        ("/series?recurrence=never", &[]),
        ("/series?closed=true", &["71"]),
        ("/series?closed=false&slug=each-day,each-week", &["70"]),
        ("/series?slug=each-week&slug=each-day&ascending=true", &["70", "71"]),
        ("/series?slug=each", &[]),
        ("/events?cyom=true", &["500"]),
        ("/events?cyom=false&slug=both,other", &["501"]),
        ("/markets?cyom=true", &["701"]),
        ("/markets?cyom=false&event_id=500", &["702"]),
    ] {
        assert_eq!(column(site.read(path).as_array().unwrap(), "id"), ids, "{path}");
    }
    site.exchange.stop();
}

#[test]
fn tags_of_markets_are_shown_where_they_are_asked_for() {
    let mut site = Site::dev();
    assert!(site.import(&recurring_rows()).0);
    for path in ["/markets?id=701&", "/markets/701?", "/markets/slug/q701?"] {
        let mut one = |more: &str| {
            let shown = site.read(&format!("{path}{more}"));
            if shown.is_array() { shown[0].clone() } else { shown }
        };
        let (plain, tagged) = (one("include_tag=false"), one("include_tag=true"));
        assert!(plain.get("tags").is_none(), "{path}");
        assert_eq!(column(tagged["tags"].as_array().unwrap(), "slug"), ["nine", "own"], "{path}");
        let mut without = tagged;
        without.as_object_mut().unwrap().remove("tags");
        assert_eq!(plain, without);
    }
    assert_eq!(site.read("/markets/702?include_tag=true")["tags"], site.read("/markets/702/tags"));
    assert!(site.read("/markets/702").get("tags").is_none());
    assert!(site.read("/events/500")["markets"][0].get("tags").is_none());
    site.exchange.stop();
}

#[test]
fn creators_are_objects_wherever_an_event_stands_by_itself() {
    let mut site = Site::dev();
    assert!(site.import(&recurring_rows()).0);
    for path in ["/events?id=500", "/events/500", "/events/slug/both"] {
        let shown = site.read(path);
        let event = if shown.is_array() { &shown[0] } else { &shown };
        let handles = column(event["eventCreators"].as_array().unwrap(), "creatorHandle");
        assert_eq!(handles, ["Ann", "bob"], "{path}");
        for creator in event["eventCreators"].as_array().unwrap() {
            let id = creator["id"].as_str().unwrap();
            assert_eq!(creator, &site.read(&format!("/events/creators/{id}")), "{path}");
        }
    }
    for path in ["/events/501", "/markets/701", "/series/70"] {
        let shown = site.read(path);
        let event = if path == "/events/501" { &shown } else { &shown["events"][0] };
        assert!(event.get("eventCreators").is_none(), "{path}");
    }
    site.exchange.stop();
}

#[test]
fn a_restart_shows_the_same_catalog() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    assert!(
        site.import(&json!([{"id": "9", "label": "Nine", "slug": "nine"}, {"id": "33", "creatorName": "N"}]))
            .0
    );
    let mut alice = Trader::new(KEYS[2], &mut site.connection);
    let mut bob = Trader::new(KEYS[3], &mut site.connection);
    place(&mut site, &mut alice, &wish("7011", Side::Buy, 4_000, 100));
    place(&mut site, &mut bob, &wish("7012", Side::Buy, 6_000, 100));
    let all = |site: &mut Site| {
        ["/events?", "/markets?", "/tags?", "/series?", "/events/creators?"].map(|list| site.walk(list, 3))
    };
    let before = all(&mut site);
    assert_fields(
        &site.read("/markets/701"),
        &json!({"volumeNum": 1060.5, "volume24hr": 60, "liquidity": "0"}),
    );
    let mut site = site.restarted();
    assert_eq!(all(&mut site), before);
    site.exchange.stop();
}
