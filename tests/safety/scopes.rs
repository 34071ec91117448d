//! Which orders a cancel of a market or a token means.

use super::Site;
use serde_json::json;

/// A misspelt name must not take every order with it.
#[test]
fn a_cancel_that_names_what_is_not_here_leaves_every_order() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut left = vec![site.bid(false, 1, 11, 5), site.bid(false, 0, 10, 5)];
        let [here, other] = [0, 1].map(|market| site.tokens[market].clone());
        let conditions = [&here, &other].map(|token| {
            let market = site.exchange.read(&format!("/markets-by-token/{token}"));
            market["condition_id"].as_str().unwrap().to_owned()
        });
        let nowhere = format!("0x{}", "ab".repeat(32));
        for (scope, cancelled) in [
            (json!({ "asset_id": "7" }), 0),
            (json!({ "market": nowhere }), 0),
            (json!({ "market": nowhere, "asset_id": here }), 0),
            (json!({ "market": conditions[0], "asset_id": "7" }), 0),
            (json!({ "market": conditions[1], "asset_id": here }), 0),
            (json!({ "market": conditions[0], "asset_id": here }), 1),
            (json!({ "asset_id": other }), 1),
        ] {
            let answer = site.ask("DELETE", "/cancel-market-orders", &scope.to_string());
            let case = format!("{shards} shards, {ingress} ingress, {scope}");
            let gone = left.split_off(left.len() - cancelled);
            assert_eq!((answer.status, &answer.json()["canceled"]), (200, &json!(gone)), "{case}");
            let mut live = site.live();
            live.sort();
            let mut expected = left.clone();
            expected.sort();
            assert_eq!(live, expected, "{case}");
        }
        site.exchange.stop();
    }
}
