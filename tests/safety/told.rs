//! What answers say of the log.

use super::Site;
use outcry::domain::Side;
use serde_json::json;

/// An answer that said less could leave before what it tells of is in the log.
#[test]
fn an_answer_says_a_place_of_the_log_behind_that_of_every_answer_before_it() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut placed: Vec<_> = (0..8)
            .map(|number| site.maker.sign(&site.wish(number % 2, Side::Buy, 10 + number as u64, 5)))
            .collect();
        let ids: Vec<_> = placed.iter().map(|order| order.id_text.clone()).collect();
        let mut next = || placed.remove(0).body;
        let asks = [
            ("POST", "/order", next()),
            ("POST", "/orders", format!("[{},{}]", next(), next())),
            ("DELETE", "/order", json!({ "orderID": ids[0] }).to_string()),
            ("DELETE", "/orders", json!([ids[1], ids[2]]).to_string()),
            ("POST", "/order", next()),
            ("POST", "/order", next()),
            ("POST", "/replace", format!("{{\"cancel\":[\"{}\"],\"place\":[{}]}}", ids[3], next())),
            ("DELETE", "/cancel-market-orders", json!({ "asset_id": site.tokens[1] }).to_string()),
            ("POST", "/order", next()),
            ("DELETE", "/cancel-all", String::new()),
            ("POST", "/v1/heartbeats", json!({ "heartbeat_id": "" }).to_string()),
            ("DELETE", "/heartbeats", String::new()),
            ("POST", "/breaker", json!({ "quantity": "5", "interval_ms": 8_000 }).to_string()),
            ("DELETE", "/breaker", String::new()),
        ];
        let mut last: u64 = 0;
        for (method, path, body) in asks {
            let answer = site.ask(method, path, &body);
            let case = format!("{shards} shards, {ingress} ingress, {method} {path}");
            assert_eq!(answer.status, 200, "{case}: {}", answer.text());
            let place = answer.header("X-Outcry-Seq").expect("it is said").parse().unwrap();
            assert!(last < place, "{case}: {place} behind {last}");
            last = place;
        }
        let market = site.exchange.market("One more?");
        for act in [0, 1] {
            let answer = site.maker.act(&mut site.connection, act, &market.condition, 1_000_000);
            assert_eq!(answer.status, 200, "{}", answer.text());
            let place = answer.header("X-Outcry-Seq").expect("it is said").parse().unwrap();
            assert!(last < place, "{shards} shards, {ingress} ingress, act {act}: {place} behind {last}");
            last = place;
        }
        site.exchange.stop();
    }
}
