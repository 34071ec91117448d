use super::*;
use crate::journal::layout::MarketMode;

impl Exchange {
    /// Sends a request, and looks at the status, the error and the field of its refusal.
    #[track_caller]
    fn refuses_naming(&mut self, (line, body): (&str, &str), status: u16, error: &str, field: &str) {
        let (got, text) = self.sends(caller(ALICE, Dialect::Poly), line, body);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((got, answer["error"].as_str()), (status, Some(error)), "{line} {body}: {text}");
        assert_eq!(answer["field"].as_str().unwrap_or(""), field, "{line}: {text}");
        assert!(!answer["code"].as_str().expect("a code").is_empty());
    }
}

#[test]
fn every_bad_request_has_a_status_a_text_and_the_field_at_fault() {
    let mut exchange = Exchange::opened();
    let long = format!("[{}]", vec![r#"{"token_id":"1"}"#; 501].join(","));
    let unknown = format!("0x{}", "ab".repeat(32));
    let order = format!("GET /data/order/{unknown}");
    let no_book = "No orderbook exists for the requested token id";
    let orders = "invalid order params payload";
    let trades = "Invalid trade params payload";
    let history = "POST /batch-prices-history";
    for (line, body, status, error, field) in [
        ("GET /book", "", 400, "Invalid token id", "token_id"),
        ("GET /book?token_id=", "", 400, "Invalid token id", "token_id"),
        ("GET /book?token_id=999", "", 404, no_book, "token_id"),
        ("GET /book?token_id=garbage", "", 404, no_book, "token_id"),
        ("GET /price?token_id=300", "", 400, "Invalid side", "side"),
        ("GET /price?token_id=300&side=HOLD", "", 400, "Invalid side", "side"),
        ("GET /price?token_id=300&side=BUY", "", 404, "no orders on that side of the book", ""),
        ("GET /midpoint?token_id=300", "", 404, "no orders on one side of the book", ""),
        ("GET /spread?token_id=300", "", 404, "no orders on one side of the book", ""),
        ("GET /last-trade-price?token_id=300", "", 404, "no trade of the requested token id", ""),
        ("GET /tick-size", "", 400, "Invalid token id", "token_id"),
        ("GET /markets?next_cursor=!", "", 400, "Invalid next_cursor", "next_cursor"),
        ("POST /books", "", 400, "Invalid payload", "body"),
        ("POST /books", "{}", 400, "Invalid payload", "body"),
        ("POST /prices", r#"[{"token_id":"1","side":"HOLD"}]"#, 400, "Invalid payload", "side"),
        ("POST /midpoints", &long, 400, "Payload exceeds the limit", "body"),
        ("GET /prices-history?market=300", "", 400, "Invalid parameter", "interval"),
        ("GET /prices-history?interval=1h", "", 400, "Invalid token id", "market"),
        ("GET /prices-history?market=300&startTs=x", "", 400, "Invalid parameter", "startTs"),
        ("GET /prices-history?market=300&endTs=1", "", 400, "Invalid parameter", "startTs"),
        ("GET /prices-history?market=300&startTs=2&endTs=1", "", 400, "Invalid parameter", "endTs"),
        ("GET /prices-history?market=300&interval=2h", "", 400, "Invalid parameter", "interval"),
        ("GET /prices-history?market=300&interval=1h&fidelity=0", "", 400, "Invalid parameter", "fidelity"),
        (history, "[]", 400, "Invalid payload", "body"),
        (history, r#"{"interval":"1h"}"#, 400, "Invalid payload", "markets"),
        (history, r#"{"markets":[7],"interval":"1h"}"#, 400, "Invalid payload", "markets"),
        (history, r#"{"markets":[],"interval":"1h"}"#, 400, "Invalid payload", "markets"),
        (history, r#"{"markets":["300"],"interval":1}"#, 400, "Invalid payload", "interval"),
        (history, r#"{"markets":["300"],"start_ts":"1"}"#, 400, "Invalid payload", "start_ts"),
        (history, r#"{"markets":["300"],"startTs":2,"endTs":1}"#, 400, "Invalid parameter", "endTs"),
        (history, r#"{"markets":["300"],"start_ts":1,"startTs":1}"#, 400, "Invalid payload", "startTs"),
        (history, r#"{"markets":["300"],"start_ts":0,"end_ts":-1}"#, 400, "Invalid payload", "end_ts"),
        (history, r#"{"markets":["300"],"start_ts":2,"end_ts":1}"#, 400, "Invalid parameter", "end_ts"),
        (history, r#"{"markets":["300"],"start_ts":2,"fidelity":1.5}"#, 400, "Invalid payload", "fidelity"),
        (order.as_str(), "", 404, "order not found", ""),
        ("GET /data/order/7", "", 400, "Invalid orderID", "id"),
        ("GET /account?market=rain", "", 400, "Invalid parameter", "market"),
        ("GET /data/orders?id=7", "", 400, orders, "id"),
        ("GET /data/orders?market=rain", "", 400, orders, "market"),
        ("GET /data/orders?asset_id=0x1", "", 400, orders, "asset_id"),
        ("GET /data/orders?next_cursor=x", "", 400, orders, "next_cursor"),
        ("GET /data/orders?market=%zz", "", 400, "Invalid parameter", "market"),
        ("GET /data/trades?id=7", "", 400, trades, "id"),
        ("GET /data/trades?taker=bob", "", 400, trades, "taker"),
        ("GET /data/trades?maker=0x1", "", 400, trades, "maker"),
        ("GET /data/trades?maker_address=0x1", "", 400, trades, "maker_address"),
        ("GET /data/trades?before=yesterday", "", 400, trades, "before"),
        ("GET /data/trades?after=-1", "", 400, trades, "after"),
        ("POST /data/orders", "[]", 400, "Invalid payload", "body"),
        ("POST /data/orders", r#"[{"orderId":"7"}]"#, 400, "Invalid orderID", "orderID"),
        ("GET /balance-allowance", "", 400, "Invalid asset type", "asset_type"),
        ("GET /balance-allowance?asset_type=GOLD", "", 400, "Invalid asset type", "asset_type"),
        ("GET /balance-allowance?asset_type=CONDITIONAL", "", 400, "Invalid token id", "token_id"),
        ("GET /balance-allowance?asset_type=COLLATERAL&token_id=x", "", 400, "Invalid token id", "token_id"),
        (
            "GET /balance-allowance?asset_type=CONDITIONAL&token_id=abc",
            "",
            404,
            "market not found",
            "token_id",
        ),
        (
            "GET /balance-allowance?asset_type=COLLATERAL&signature_type=9",
            "",
            400,
            "Invalid parameter",
            "signature_type",
        ),
        ("GET /order-scoring", "", 400, "Invalid orderID", "order_id"),
        ("GET /public-search?q=x", "", 404, "not found", ""),
    ] {
        exchange.refuses_naming((line, body), status, error, field);
    }
}

#[test]
fn a_token_or_a_market_that_is_not_here_is_named() {
    let mut exchange = Exchange::opened();
    let unknown = format!("0x{}", "ab".repeat(32));
    let market = format!("GET /markets/{unknown}");
    let clob_market = format!("GET /clob-markets/{unknown}");
    let live_activity = format!("GET /markets/live-activity/{unknown}");
    let no_book = "No orderbook exists for the requested token id";
    for (line, status, error, field) in [
        ("GET /last-trade-price?token_id=999", 404, no_book, "token_id"),
        ("GET /prices-history?market=999&interval=1h", 404, no_book, "market"),
        ("GET /tick-size?token_id=999", 404, "market not found", "token_id"),
        ("GET /tick-size?token_id=abc", 404, "market not found", "token_id"),
        ("GET /neg-risk?token_id=999", 404, "market not found", "token_id"),
        ("GET /neg-risk?token_id=abc", 404, "market not found", "token_id"),
        ("GET /fee-rate?token_id=abc", 404, "market not found", "token_id"),
        ("GET /fee-rate?token_id=999", 404, "market not found", "token_id"),
        ("GET /fee-rate/999", 404, "market not found", "token_id"),
        ("GET /fee-rate/x", 404, "market not found", "token_id"),
        ("GET /markets-by-token/999", 404, "market not found", "token_id"),
        (market.as_str(), 404, "market not found", "condition_id"),
        (clob_market.as_str(), 404, "market not found", "condition_id"),
        (live_activity.as_str(), 404, "market not found", "condition_id"),
        ("GET /clob-markets/0x12", 400, "Invalid market", "condition_id"),
        ("GET /balance-allowance?asset_type=CONDITIONAL&token_id=9", 404, "market not found", "token_id"),
    ] {
        exchange.refuses_naming((line, ""), status, error, field);
    }
}

#[test]
fn a_refusal_repeats_what_was_sent_and_says_the_rule() {
    let mut exchange = Exchange::opened();
    let batch = r#"{"markets":["300"],"interval":"1h","end_ts":1}"#;
    for (line, body, status, told) in [
        (
            "GET /tick-size?token_id=999",
            "",
            404,
            concat!(
                r#"{"error":"market not found","code":"market_unknown","field":"token_id","#,
                r#""got":"999","allowed":"a token of a market that is here"}"#
            ),
        ),
        (
            "GET /price?token_id=300&side=%22HOLD",
            "",
            400,
            r#"{"error":"Invalid side","code":"invalid_side","field":"side","got":"\"HOLD","allowed":"BUY or SELL"}"#,
        ),
        (
            "GET /prices-history?market=300&interval=1h&startTs=1",
            "",
            400,
            concat!(
                r#"{"error":"Invalid parameter","code":"invalid_parameter","field":"interval","#,
                r#""got":"1h","allowed":"nothing beside startTs or endTs"}"#
            ),
        ),
        (
            "POST /batch-prices-history",
            batch,
            400,
            concat!(
                r#"{"error":"Invalid parameter","code":"invalid_parameter","field":"interval","#,
                r#""got":"1h","allowed":"nothing beside start_ts or end_ts"}"#
            ),
        ),
    ] {
        assert_eq!(exchange.sends(None, line, body), (status, told.to_owned()), "{line}");
    }
}

#[test]
fn a_list_is_as_long_as_its_rule_says_and_no_longer() {
    let mut exchange = Exchange::opened();
    let market = format!(r#"{{"conditionId":"0x{}","tokenIds":["300","301"]}}"#, "cc".repeat(32));
    for (line, body, one, max, field) in [
        ("POST /batch-prices-history", r#"{"interval":"1h","markets":[LIST]}"#, r#""300""#, 20, "markets"),
        ("POST /data/volumes", r#"{"conditions":[LIST]}"#, &*market, 100, "conditions"),
    ] {
        let mut asks = |count: usize| {
            let body = body.replace("LIST", &vec![one; count].join(","));
            let (status, text) = exchange.sends(None, line, &body);
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            (status, answer["field"].as_str().map(str::to_owned))
        };
        assert_eq!(asks(max), (200, None), "{line}");
        assert_eq!(asks(max + 1), (400, Some(field.to_owned())), "{line}");
    }
}

#[test]
fn account_routes_are_for_somebody() {
    let mut exchange = Exchange::opened();
    for line in ["GET /data/orders", "GET /data/trades", "GET /balance-allowance", "GET /notifications"] {
        let (status, text) = exchange.sends(None, line, "");
        assert_eq!(status, 401, "{line}: {text}");
        assert!(text.contains("Unauthorized/Invalid api key"));
    }
}

#[test]
fn a_closed_market_has_terms_but_no_book() {
    let mut exchange = Exchange::opened();
    let time = exchange.time();
    exchange.says(MarketMode { time, market: RAIN, mode: Mode::Closed });
    assert_eq!(exchange.sends(None, "GET /book?token_id=300", "").0, 404);
    assert_eq!(exchange.sends(None, "GET /tick-size?token_id=300", "").0, 200);
    assert_eq!(exchange.answers(None, "POST /books", r#"[{"token_id":"300"}]"#), serde_json::json!([]));
}

#[test]
fn whatever_is_wrong_with_a_query_about_wallets_is_named() {
    let mut exchange = super::wallets::traded();
    let alice = address_text(ALICE);
    for (target, error, field, got) in [
        ("/positions".to_owned(), "missing_field: user", "user", ""),
        ("/positions?user=".to_owned(), "missing_field: user", "user", ""),
        ("/holders".to_owned(), "missing_field: market", "market", ""),
        ("/live-volume?market=".to_owned(), "missing_field: market", "market", ""),
        (format!("/positions?user={alice}&foo=1"), "unknown_field: foo", "foo", "1"),
        (
            format!("/closed-positions?user={alice}&redeemable=true"),
            "unknown_field: redeemable",
            "redeemable",
            "true",
        ),
        (
            "/activity?user=0x12".to_owned(),
            "invalid_field: user: 0x12 is not 0x and 40 hex digits",
            "user",
            "0x12",
        ),
        (
            format!("/positions?user={alice}&limit=&limit=5"),
            "invalid_field: limit: it stands twice",
            "limit",
            "5",
        ),
        (format!("/value?user={alice}&user={alice}"), "invalid_field: user: it stands twice", "user", &alice),
        (
            format!("/positions?user={alice}&offset=10001"),
            "invalid_field: offset: 10001 is not a whole number from 0 to 10000",
            "offset",
            "10001",
        ),
        (
            format!("/positions?user={alice}&sizeThreshold=18446744073709.551616"),
            "invalid_field: sizeThreshold: 18446744073709.551616 is not a number from 0 to 18446744073709.551615",
            "sizeThreshold",
            "18446744073709.551616",
        ),
        (
            format!("/positions?user={alice}&limit=-1"),
            "invalid_field: limit: -1 is not 0 or more; beyond 500 it is 500",
            "limit",
            "-1",
        ),
        (
            format!("/positions?user={alice}&redeemable=yes"),
            "invalid_field: redeemable: yes is not true or false",
            "redeemable",
            "yes",
        ),
        ("/trades?filterType=CASH".to_owned(), "missing_field: filterAmount", "filterAmount", ""),
        ("/trades?filterAmount=1".to_owned(), "missing_field: filterType", "filterType", ""),
        ("/v1/leaderboard?category=SPORTS".to_owned(), "not_implemented: category", "category", "SPORTS"),
    ] {
        let (status, text) = exchange.sends(None, &format!("GET {target}"), "");
        let body: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((status, &body["error"]), (400, &Value::from(error)), "{target}");
        assert_eq!(body["code"], error.split(':').next().expect("a code"), "{target}");
        assert_eq!((&body["field"], &body["got"]), (&Value::from(field), &Value::from(got)), "{target}");
        assert!(!body["allowed"].as_str().expect("a text").is_empty(), "{target}");
    }
}
