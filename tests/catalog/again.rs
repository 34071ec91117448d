//! What a row changes of a market that is here already: what the file may decide, what stays, and
//! that everything which stays is told.

use crate::common::exchange::outcry_succeeds;
use crate::common::trader::{KEYS, Trader, Wish, token};
use crate::site::Site;
use outcry::domain::Side;
use serde_json::{Value, json};

/// The row of market 701, with `more` in it; what is null there is left out.
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

/// A site with market 701 as `more` has it.
fn site_with(more: &Value) -> Site {
    let site = Site::dev();
    assert!(site.import(&json!([row(more)])).0);
    site
}

/// Imports one row; gives the lines about markets.
#[track_caller]
fn told(site: &Site, more: &Value) -> Vec<String> {
    let (whole, said) = site.import(&json!([row(more)]));
    assert!(whole, "{said}");
    let about = |line: &&str| line.starts_with("markets:") || line.starts_with("not taken:");
    // A line ends in the place of its row, whose file has another name each time.
    let plain = |line: &str| line.split(" (").next().unwrap_or_default().to_owned();
    said.lines().filter(about).map(plain).collect()
}

fn act(site: &Site, words: &[&str]) {
    let admin = format!("http://127.0.0.1:{}", site.exchange.admin);
    outcry_succeeds(&[words, &["--admin", &admin]].concat());
}

/// The mode and the tick of 701, as the operator reads them.
fn state(site: &Site) -> String {
    let admin = format!("http://127.0.0.1:{}", site.exchange.admin);
    let text = outcry_succeeds(&["market", "show", "701", "--admin", &admin]);
    let shown: Value = serde_json::from_str(&text).unwrap();
    format!("{} {}", shown["mode"].as_str().unwrap(), shown["tick"].as_str().unwrap())
}

/// A bid of 10 at 0.10.
fn bid(site: &mut Site, trader: &mut Trader) -> (u16, String) {
    let (side, kind) = (Side::Buy, "GTC");
    let wish = Wish { token: token("7011"), side, price: 1_000, shares: 10_000_000, kind, neg_risk: false };
    let order = trader.sign(&wish);
    let answer = trader.ask(&mut site.connection, "POST", "/order", &order.body).unwrap();
    (answer.status, order.id_text.clone())
}

const UNCHANGED: &str = "markets: 0 added, 0 updated, 1 unchanged, 0 older";
const UPDATED: &str = "markets: 0 added, 1 updated, 0 unchanged, 0 older";

/// An import that was cut off between a market's text and its closing left it like this.
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
            act(&site, act_first);
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
        act(&site, act_first);
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
    let kept = "not taken: market 701: outcomePrices: got a result; allowed: the operator's word on a live market: market resolve";
    assert_eq!(told(&site, &over), [UPDATED, kept]);
    assert_eq!(state(&site), "closed 0.01");
    assert_eq!(told(&site, &over), [UNCHANGED], "its order rests still");
    let cancel = format!("{{\"orderID\":\"{order}\"}}");
    assert_eq!(alice.ask(&mut site.connection, "DELETE", "/order", &cancel).unwrap().status, 200);
    assert_eq!(told(&site, &over), [UPDATED]);
    assert_eq!(state(&site), "resolved 0.01");
    assert_eq!(told(&site, &over), [UNCHANGED]);
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
