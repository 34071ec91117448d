//! What a row changes about a market that exists already: what the file may decide, what stays, and
//! that everything that stays is reported.

use crate::common::trader::{KEYS, Trader, Wish, token};
use crate::common::wire::{Connection, request};
use crate::site::Site;
use serde_json::{Value, json};

/// The row of market 701 with the fields of `more`; null ones are left out.
fn row(more: &Value) -> Value {
    let mut row = json!({
        "id": "701", "question": "Q?", "slug": "q701", "conditionId": format!("0x{:064x}", 701),
        "clobTokenIds": "[\"7011\", \"7012\"]", "outcomes": "[\"Yes\", \"No\"]", "closed": false,
        "orderPriceMinTickSize": 0.01, "orderMinSize": 5, "updatedAt": "2026-01-01T00:00:00Z"
    });
    let fields = row.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    fields.retain(|_, value| !value.is_null());
    row
}

/// A site with market 701 and the fields of `more`.
fn site_with(more: &Value) -> Site {
    let site = Site::dev();
    assert!(site.import(&json!([row(more)])).0);
    site
}

/// Imports one row; returns the lines about markets.
#[track_caller]
fn told(site: &Site, more: &Value) -> Vec<String> {
    let (whole, said) = site.import(&json!([row(more)]));
    assert!(whole, "{said}");
    let about = |line: &&str| line.starts_with("markets:") || line.starts_with("not taken:");
    // A line ends with the place of its row, and each file has another name.
    let plain = |line: &str| line.split(" (").next().unwrap_or_default().to_owned();
    said.lines().filter(about).map(plain).collect()
}

/// The mode and the tick of 701, as the operator reads them.
fn state(site: &Site) -> String {
    let shown = site.exchange.operator(&["market", "show", "701"]);
    format!("{} {}", shown["mode"].as_str().unwrap(), shown["tick"].as_str().unwrap())
}

/// A bid of 10 at 0.10.
fn bid(site: &mut Site, trader: &mut Trader) -> (u16, String) {
    let order = trader.sign(&Wish::buy(token("7011"), 1_000, 10_000_000));
    let answer = trader.post(&mut site.connection, &order.body);
    (answer.status, order.id_text.clone())
}

const UNCHANGED: &str = "markets: 0 added, 0 updated, 1 unchanged, 0 older";
const OLDER: &str = "markets: 0 added, 0 updated, 0 unchanged, 1 older";
const UPDATED: &str = "markets: 0 added, 1 updated, 0 unchanged, 0 older";

/// An import leaves this state if it is interrupted between a market's text and its closing.
#[test]
fn a_row_that_says_closed_closes_its_market_whenever_it_comes() {
    let closed = json!({"closed": true});
    let site = site_with(&closed);
    for (act_first, said, after) in [
        (&[][..], UNCHANGED, "closed 0.01"),
        (&["market", "mode", "701", "open"][..], UPDATED, "closed 0.01"),
        (&[], UNCHANGED, "closed 0.01"),
        (&["market", "mode", "701", "cancel-only"], UPDATED, "closed 0.01"),
        (&["market", "resolve", "701", "--payout", "1"], UNCHANGED, "resolved 0.01"),
    ] {
        if !act_first.is_empty() {
            site.exchange.operator(act_first);
        }
        assert_eq!(told(&site, &closed), [said], "after {act_first:?}");
        assert_eq!(state(&site), after, "after {act_first:?}");
    }
    site.exchange.stop();
}

#[test]
fn the_same_row_leaves_alone_what_the_operator_did_to_a_market_that_it_calls_open() {
    let site = site_with(&json!({}));
    for (act_first, after) in [
        (&["market", "tick", "701", "0.001"][..], "open 0.001"),
        (&["market", "pause", "701"], "cancel-only 0.001"),
        (&["market", "resolve", "701", "--payout", "0"], "resolved 0.001"),
    ] {
        site.exchange.operator(act_first);
        assert_eq!(told(&site, &json!({})), [UNCHANGED], "after {act_first:?}");
        assert_eq!(state(&site), after);
    }
    site.exchange.stop();
}

#[test]
fn a_result_that_a_live_market_did_not_take_is_taken_once_nothing_rests() {
    let mut site = site_with(&json!({}));
    let mut alice = Trader::new(KEYS[2], &mut site.connection);
    let (status, order) = bid(&mut site, &mut alice);
    assert_eq!(status, 200);
    let over = json!({
        "closed": true, "outcomePrices": "[\"1\", \"0\"]", "updatedAt": "2026-01-02T00:00:00Z"
    });
    let kept = "not taken: market 701: outcomePrices: got [\"1\",\"0\"]; allowed: the operator's word on a live market: \
                market resolve";
    assert_eq!(told(&site, &over), [UPDATED, kept]);
    assert_eq!(state(&site), "closed 0.01");
    assert_eq!(told(&site, &over), [UNCHANGED, kept], "its order rests still");
    let cancel = format!("{{\"orderID\":\"{order}\"}}");
    assert_eq!(alice.ask(&mut site.connection, "DELETE", "/order", &cancel).unwrap().status, 200);
    assert_eq!(told(&site, &over), [UPDATED]);
    assert_eq!(state(&site), "resolved 0.01");
    assert_eq!(told(&site, &over), [UNCHANGED]);
    site.exchange.stop();
}

#[test]
fn an_abridged_copy_of_the_same_instant_takes_nothing_away() {
    let whole = json!({"description": "long", "image": "http://i"});
    let mut site = site_with(&whole);
    let copy = json!([{"id": "70", "slug": "e70", "title": "E", "markets": [row(&json!({"slug": null}))]}]);
    for said in [UPDATED, UNCHANGED] {
        let report = site.import(&copy).1;
        assert!(report.contains(said), "its event is new the first time: {report}");
        assert_eq!(told(&site, &whole), [UNCHANGED]);
        let market = site.read("/markets/701");
        assert_eq!((&market["description"], &market["slug"]), (&json!("long"), &json!("q701")));
        assert_eq!(market["events"][0]["id"], "70");
    }
    site.exchange.stop();
}

#[test]
fn an_older_row_names_the_event_of_a_market_that_has_none() {
    let mut site = site_with(&json!({}));
    let copy = |event: &str, day: u32| {
        let market = row(&json!({"updatedAt": format!("2025-01-{day:02}T00:00:00Z"), "description": "old"}));
        json!([{"id": event, "slug": format!("e{event}"), "title": "E", "markets": [market]}])
    };
    for (event, said) in [("70", UPDATED), ("70", OLDER), ("71", OLDER)] {
        let report = site.import(&copy(event, 1)).1;
        assert!(report.contains(said), "{event}: {report}");
        let market = site.read("/markets/701");
        assert_eq!((&market["events"][0]["id"], &market["description"]), (&json!("70"), &json!("")));
    }
    assert_eq!(site.read("/events/70")["markets"][0]["id"], "701");
    site.exchange.stop();
}

#[test]
fn imports_that_come_together_are_decided_one_after_the_other() {
    let mut site = site_with(&json!({}));
    let mut admin = Connection::open(site.exchange.admin);
    let requests: Vec<u8> = [("newest", "2026-01-03T00:00:00Z"), ("older", "2026-01-02T00:00:00Z")]
        .iter()
        .map(|(text, updated)| json!([row(&json!({"description": text, "updatedAt": updated}))]).to_string())
        .flat_map(|body| request("POST", "/import", "", body.as_bytes()))
        .collect();
    admin.send(&requests).unwrap();
    for counted in ["marketsUpdated", "marketsOlder"] {
        let answer = admin.answer().unwrap().json();
        assert_eq!(answer[counted], 1, "{answer}");
    }
    assert_eq!(site.read("/markets/701")["description"], "newest");
    site.exchange.stop();
}

#[test]
fn an_import_knows_what_the_one_before_it_added() {
    let mut site = Site::dev();
    let mut admin = Connection::open(site.exchange.admin);
    let event = |title: &str, tag: &str, updated: &str, closed: bool| {
        let market = row(&json!({"updatedAt": updated, "closed": closed}));
        let tag = json!({"id": "31", "slug": "sky", "label": tag, "updatedAt": updated});
        let event = json!({"id": "70", "slug": "e70", "title": title, "updatedAt": updated,
                           "tags": [tag], "markets": [market]});
        request("POST", "/import", "", json!([event]).to_string().as_bytes())
    };
    let requests = [
        event("First", "Newest", "2026-01-03T00:00:00Z", false),
        event("Second", "Older", "2026-01-02T00:00:00Z", false),
        event("Third", "Newest", "2026-01-04T00:00:00Z", true),
    ];
    admin.send(&requests.concat()).unwrap();
    let said = [(); 3].map(|()| admin.answer().unwrap().json());
    assert_eq!((&said[0]["marketsAdded"], &said[0]["eventsAdded"]), (&json!(1), &json!(1)), "{}", said[0]);
    assert_eq!((&said[1]["marketsOlder"], &said[1]["refused"]), (&json!(1), &json!([])), "{}", said[1]);
    assert_eq!(
        (&said[2]["marketsUpdated"], &said[2]["eventsUpdated"]),
        (&json!(1), &json!(1)),
        "{}",
        said[2]
    );
    assert_eq!(site.read("/events/70")["title"], "Third");
    assert_eq!(site.read("/events/70")["tags"][0]["label"], "Newest");
    assert_eq!(site.read("/markets/701")["closed"], true);
    site.exchange.stop();
}

#[test]
fn a_row_without_tokens_leaves_a_market_trading_and_says_so() {
    let mut site = site_with(&json!({}));
    let mut alice = Trader::new(KEYS[2], &mut site.connection);
    let short = json!({"clobTokenIds": null, "updatedAt": "2026-01-02T00:00:00Z"});
    let kept = "not taken: market 701: clobTokenIds: got nothing; allowed: the tokens that the market has: it trades on with them";
    assert_eq!(told(&site, &short), [UPDATED, kept]);
    assert_eq!(bid(&mut site, &mut alice).0, 200);
    assert_eq!(told(&site, &short), [UNCHANGED]);
    assert_eq!(site.read("/markets/701")["clobTokenIds"], "[\"7011\", \"7012\"]");
    let closed = json!({"clobTokenIds": null, "closed": true, "updatedAt": "2026-01-03T00:00:00Z"});
    assert_eq!(told(&site, &closed), [UPDATED]);
    assert_eq!(bid(&mut site, &mut alice).0, 400);
    site.exchange.stop();
}

#[test]
fn whatever_a_market_does_not_take_is_told_as_the_file_writes_it() {
    let mut site = site_with(&json!({"questionID": format!("0x{:064x}", 5)}));
    let mut alice = Trader::new(KEYS[2], &mut site.connection);
    assert_eq!(bid(&mut site, &mut alice).0, 200);
    for (day, (more, kept)) in (2..).zip([
        (json!({"id": "702"}), "id: got 702, here 701; allowed: the id that the market has, which stays"),
        (
            json!({"questionID": format!("0x{:064x}", 6)}),
            &format!("questionID: got 0x{:064x}; allowed: the question that the market has, which stays", 6),
        ),
        (
            json!({"outcomes": "[\"Up\", \"Down\"]"}),
            "outcomes: got [\"Up\", \"Down\"]; allowed: the outcomes that the market has, which stay",
        ),
        (
            json!({"negRisk": true}),
            "negRisk: got true; allowed: what the market is, which stays: orders are signed for it",
        ),
        (
            json!({"clobTokenIds": "[\"7011\", \"7013\"]"}),
            "clobTokenIds: got other tokens; allowed: the tokens that the market has, which stay",
        ),
        (
            json!({"orderMinSize": 50}),
            "orderMinSize: got 50; allowed: the size that the market has, which stays",
        ),
        (
            json!({"feeSchedule": {"rate": 0.05}}),
            "feeSchedule: got {\"rate\":0.05}; allowed: the fee that the market has, which stays",
        ),
        (
            json!({"feeSchedule": {"rate": 0.05}, "feesEnabled": false}),
            "",
        ),
        (
            json!({"orderPriceMinTickSize": 0.001}),
            "orderPriceMinTickSize: got 0.001; allowed: the tick of the live market, which stays; see market tick",
        ),
    ]) {
        let mut row = json!({"updatedAt": format!("2026-01-{day:02}T00:00:00Z")});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let name = row["id"].as_str().unwrap_or("701");
        let told = told(&site, &row);
        let kept = (!kept.is_empty()).then(|| format!("not taken: market {name}: {kept}"));
        assert_eq!(told, [UPDATED.to_owned()].into_iter().chain(kept).collect::<Vec<_>>());
    }
    // A row without these fields changes nothing.
    let silent = json!({
        "outcomes": null, "orderPriceMinTickSize": null, "orderMinSize": null, "closed": null,
        "updatedAt": "2026-01-20T00:00:00Z"
    });
    assert_eq!(told(&site, &silent), [UPDATED]);
    site.exchange.stop();
}

#[test]
fn a_row_opens_no_market_and_says_so() {
    let site = site_with(&json!({"closed": true}));
    let open = json!({"updatedAt": "2026-01-02T00:00:00Z"});
    let closed =
        "not taken: market 701: closed: got false; allowed: true, as it is here; market mode opens it";
    assert_eq!(told(&site, &open), [UPDATED, closed]);
    assert_eq!(state(&site), "closed 0.01");
    site.exchange.operator(&["market", "resolve", "701", "--payout", "1"]);
    let open = json!({"updatedAt": "2026-01-03T00:00:00Z"});
    let over =
        "not taken: market 701: closed: got false; allowed: true: its result is known here, which is final";
    assert_eq!(told(&site, &open), [UPDATED, over]);
    let other = json!({
        "closed": true, "outcomePrices": "[\"0\", \"1\"]", "updatedAt": "2026-01-04T00:00:00Z"
    });
    let result = "not taken: market 701: outcomePrices: got [\"0\", \"1\"]; allowed: the result that the market has, which is final";
    assert_eq!(told(&site, &other), [UPDATED, result]);
    site.exchange.stop();
}

#[test]
fn a_row_without_a_tick_leaves_the_one_that_the_market_has() {
    let site = site_with(&json!({"orderPriceMinTickSize": 0.001}));
    let silent = json!({"orderPriceMinTickSize": null, "updatedAt": "2026-01-02T00:00:00Z"});
    assert_eq!(told(&site, &silent), [UPDATED]);
    assert_eq!(state(&site), "open 0.001");
    site.exchange.stop();
}
