//! `active`, `closed` and `archived` are independent: a market that is only in the catalog is not over.

use crate::common::column;
use crate::site::Site;
use serde_json::{Value, json};

/// A row of a market whose event has the same flags.
fn row(n: u32, flags: &Value) -> Value {
    let mut market = json!({"id": n.to_string(), "question": format!("Q{n}?"), "slug": format!("q{n}"),
        "conditionId": format!("0x{n:064x}"), "clobTokenIds": format!("[\"{n}1\", \"{n}2\"]")});
    let mut event = json!({"id": (n + 50).to_string(), "slug": format!("e{n}"), "title": "E"});
    for (name, value) in flags.as_object().unwrap() {
        market[name] = value.clone();
        if !["acceptingOrders", "clobTokenIds"].contains(&name.as_str()) {
            event[name] = value.clone();
        }
    }
    event["markets"] = json!([market]);
    event
}

/// `active`, `closed`, `archived` and `acceptingOrders` of a market, as far as the catalog shows
/// them everywhere alike.
#[track_caller]
fn flags(site: &mut Site, n: u32) -> [bool; 4] {
    let market = site.read(&format!("/markets/{n}"));
    let event = site.read(&format!("/events/{}", n + 50));
    let clob = site.read(&format!("/markets/0x{n:064x}"));
    for name in ["active", "closed", "archived"] {
        for shown in [&event, &event["markets"][0], &market["events"][0], &clob] {
            assert_eq!(shown[name], market[name], "{name} of {shown}");
        }
    }
    assert_eq!(clob["accepting_orders"], market["acceptingOrders"]);
    let pauses = clob["status"] == "paused";
    assert_eq!(market["enableOrderBook"] == true, pauses || market["acceptingOrders"] == true);
    assert_eq!(market.get("closedTime").is_some(), market["closed"] == true, "{market}");
    assert_eq!(event.get("closedTime").is_some(), event["closed"] == true, "{event}");
    ["active", "closed", "archived", "acceptingOrders"].map(|name| market[name].as_bool().unwrap())
}

#[test]
fn flags_are_what_the_row_says_and_trading_is_another_matter() {
    let site = Site::dev();
    let table = [
        (json!({"closed": false}), [true, false, false, true]),
        (json!({"closed": false, "archived": true}), [true, false, true, false]),
        (json!({"archived": true}), [true, false, true, false]),
        (json!({"closed": false, "archived": true, "acceptingOrders": true}), [true, false, true, true]),
        (json!({"closed": true, "archived": true}), [true, true, true, false]),
        (json!({"closed": true}), [true, true, false, false]),
        (json!({"closed": false, "clobTokenIds": null}), [true, false, false, false]),
        (json!({"closed": true, "clobTokenIds": null}), [true, true, false, false]),
        (json!({"closed": false, "active": false, "archived": true}), [false, false, true, false]),
    ];
    let rows: Vec<Value> = (850..).zip(&table).map(|(n, (flags, _))| row(n, flags)).collect();
    let (whole, report) = site.import(&json!(rows));
    assert!(whole, "{report}");
    let mut site = site.restarted();
    for (n, (said, shown)) in (850..).zip(&table) {
        assert_eq!(flags(&mut site, n), *shown, "{said}");
    }
    let found = |site: &mut Site, list: &str, ids: [&str; 9], flag: &str| {
        let rows = site.walk(&format!("{list}?id={}&ascending=true&{flag}&", ids.join("&id=")), 100);
        column(&rows, "id").iter().map(|id| id.parse::<u32>().unwrap() % 50).collect::<Vec<_>>()
    };
    let markets = ["850", "851", "852", "853", "854", "855", "856", "857", "858"];
    let events = ["900", "901", "902", "903", "904", "905", "906", "907", "908"];
    for (list, ids) in [("/markets", markets), ("/events", events)] {
        assert_eq!(found(&mut site, list, ids, "closed=true"), [4, 5, 7], "{list}");
        assert_eq!(found(&mut site, list, ids, "archived=true&closed=false"), [1, 2, 3, 8], "{list}");
    }
    site.exchange.stop();
}

#[test]
fn a_market_whose_row_takes_no_orders_comes_cancel_only_until_the_operator_opens_it() {
    let mut site = Site::dev();
    let stopped =
        json!({"closed": false, "archived": false, "acceptingOrders": false, "enableOrderBook": false});
    let resumed =
        json!({"closed": false, "archived": false, "acceptingOrders": true, "enableOrderBook": true});
    let report_of = |site: &mut Site, day: u32, said: &Value| {
        let mut flags = said.clone();
        flags["updatedAt"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
        let (whole, report) = site.import(&json!([row(890, &flags)]));
        assert!(whole, "{report}");
        report
    };
    for (day, act, said, takes_orders, told) in [
        (1, "", &stopped, false, "cancel-only: market 890: "),
        (1, "", &stopped, false, "0 added, 0 updated, 1 unchanged"),
        (2, "", &resumed, false, "acceptingOrders: got true; allowed: false, as it is here"),
        (2, "mode 890 open", &resumed, true, ""),
        (3, "", &stopped, true, "acceptingOrders: got false; allowed: true, as it is here"),
        (3, "", &stopped, true, "1 conditions: 0 tradable, 1 cancel-only, 0 closed"),
        (3, "mode 890 post-only", &stopped, true, ""),
        (4, "", &resumed, true, "1 conditions: 1 tradable, 0 cancel-only, 0 closed"),
    ] {
        if act.is_empty() {
            let report = report_of(&mut site, day, said);
            assert!(report.contains(told), "{day} {said}: {report}");
        } else {
            let words = ["market"].into_iter().chain(act.split(' '));
            site.exchange.operator(&words.collect::<Vec<_>>());
        }
        assert_eq!(flags(&mut site, 890), [true, false, false, takes_orders], "{day} {act} {said}");
    }
    site.exchange.stop();
}

#[test]
fn archiving_a_market_ends_trading_in_it_and_only_its_row_or_its_result_closes_it() {
    let mut site = Site::dev();
    let tokens = json!({"closed": false, "clobTokenIds": null, "archived": false});
    for (day, act, said, shown) in [
        (1, "", json!({"closed": false}), [true, false, false, true]),
        (2, "", json!({"closed": false, "archived": true}), [true, false, true, false]),
        (3, "", json!({"closed": true, "archived": true}), [true, true, true, false]),
        (4, "", json!({"closed": false, "archived": true}), [true, false, true, false]),
        (4, "mode 870 open", json!({}), [true, false, true, true]),
        (5, "", json!({"closed": true, "archived": false}), [true, true, false, false]),
        // A row opens nothing.
        (6, "", json!({"closed": false, "archived": false}), [true, true, false, false]),
        (7, "", tokens, [true, false, false, false]),
        (7, "resolve 870 --payout 0", json!({}), [true, true, false, false]),
    ] {
        if act.is_empty() {
            let mut flags = said.clone();
            flags["updatedAt"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
            let (_, report) = site.import(&json!([row(870, &flags)]));
            assert!(report.contains("markets: 1 added") || report.contains("0 added, 1 updated"), "{report}");
        } else {
            let words = ["market"].into_iter().chain(act.split(' '));
            site.exchange.operator(&words.collect::<Vec<_>>());
        }
        assert_eq!(flags(&mut site, 870), shown, "{day} {act} {said}");
    }
    site.exchange.stop();
}

#[test]
fn a_market_that_came_only_listed_is_not_over_because_its_next_row_names_its_tokens() {
    let site = Site::dev();
    let [without, archived] = [json!({"clobTokenIds": null}), json!({"archived": true})];
    for (day, first) in [(1, true), (2, false)] {
        let rows = [(880, &without), (881, &archived)].map(|(n, reason)| {
            let mut flags = if first { reason.clone() } else { json!({"archived": false}) };
            flags["closed"] = json!(false);
            flags["updatedAt"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
            row(n, &flags)
        });
        site.import(&json!(rows));
    }
    let mut site = site.restarted();
    for n in [880, 881] {
        assert_eq!(flags(&mut site, n), [true, false, false, false]);
    }
    site.exchange.stop();
}
