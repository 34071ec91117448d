//! The interface's contract against the running binary: every resource has each of its fields, and
//! every parameter its default and its bounds.
//!
//! The tables are the interface's own: `contract/fields.rs` lists the fields by resource,
//! `contract/parameters.rs` the parameters by endpoint. The resources were really signed, sent and
//! imported (`contract/scene.rs`). Every answer is also compared with the OpenAPI document, which
//! must have each answered field and status.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;
#[path = "contract/fields.rs"]
mod fields;
#[path = "contract/operations.rs"]
mod operations;
#[path = "contract/parameters.rs"]
mod parameters;
#[path = "contract/scene.rs"]
mod scene;

use fields::Fields;
use parameters::Rule;
use scene::{Scene, Who};
use serde_json::{Value, json};

/// A resource: its section, the sender and the request for it, its place in the answer, and its
/// fields.
type Resource = (&'static str, Who, &'static str, &'static str, Fields);

const RESOURCES: &[Resource] = &[
    ("2.3", Who::First, "GET /data/order/{order}", "/order", fields::ORDER),
    ("2.3", Who::First, "GET /data/orders", "/data/0", fields::ORDER),
    ("2.3", Who::First, "GET /data/orders?id={order}", "/data/0", fields::ORDER),
    ("2.11", Who::First, "GET /data/orders", "", fields::PAGE),
    ("2.4", Who::First, "GET /data/trades", "/data/0", fields::TRADE),
    ("2.11", Who::First, "GET /data/trades", "", fields::PAGE),
    ("2.6", Who::Nobody, "GET /book?token_id={token}", "", fields::BOOK),
    ("2.7", Who::Nobody, "POST /last-trades-prices [{\"token_id\":\"{token}\"}]", "/0", fields::LAST_TRADE),
    ("2.8", Who::Nobody, "GET /fee-rate/{token}", "", fields::FEE_RATE),
    ("2.9", Who::Nobody, "GET /markets/{condition}", "", fields::CLOB_MARKET),
    ("2.9", Who::Nobody, "GET /sampling-markets", "/data/0", fields::CLOB_MARKET),
    ("2.11", Who::Nobody, "GET /markets", "", fields::PAGE),
    ("2.11", Who::Nobody, "GET /simplified-markets", "", fields::PAGE),
    ("2.10", Who::Nobody, "GET /sampling-simplified-markets", "/data/0", fields::SIMPLIFIED_MARKET),
    ("2.11", Who::Nobody, "GET /sampling-simplified-markets", "", fields::PAGE),
    ("2.12", Who::Nobody, "GET /markets/{market}", "", fields::CATALOG_MARKET),
    ("2.12", Who::Nobody, "GET /markets/{market}", "", fields::CATALOG_MARKET_EVENTS),
    ("2.12", Who::Nobody, "GET /markets/{condition}?creator=creator-0", "", fields::CATALOG_MARKET),
    ("2.12", Who::Nobody, "GET /markets/{condition}?creator=creator-0", "", fields::CATALOG_MARKET_EVENTS),
    ("2.13", Who::Nobody, "GET /events", "/0", fields::LISTED_EVENT),
    ("2.13", Who::Nobody, "GET /events/slug/event-0", "", fields::EVENT_SUMMARY),
    ("2.13", Who::Nobody, "GET /events/slug/event-0", "", fields::EVENT_MORE),
    ("2.13", Who::Nobody, "GET /events/slug/event-0?creator=creator-0", "", fields::EVENT_MORE),
    ("2.15", Who::Nobody, "GET /series", "/0", fields::SERIES),
    ("2.14", Who::Nobody, "GET /tags", "/0", fields::TAG),
    ("2.16", Who::Nobody, "GET /events/creators", "/0", fields::CREATOR),
    ("2.17", Who::Nobody, "GET /public-search?q=tag", "", fields::SEARCH_RESULT),
    ("2.18", Who::Nobody, "GET /positions?user={first}", "/0", fields::CLOSED_POSITION),
    ("2.18", Who::Nobody, "GET /positions?user={first}", "/0", fields::POSITION_MORE),
    ("2.19", Who::Nobody, "GET /closed-positions?user={first}", "/0", fields::CLOSED_POSITION),
    ("2.20", Who::Nobody, "GET /activity?user={first}", "/0", fields::ACTIVITY),
    ("2.21", Who::Nobody, "GET /holders?market={condition}", "/0", fields::HOLDERS),
    (
        "2.5",
        Who::First,
        "DELETE /cancel-market-orders {\"market\":\"{condition}\"}",
        "",
        fields::CANCEL_RESULT,
    ),
    ("2.5", Who::First, "DELETE /cancel-market-orders {\"asset_id\":\"{token}\"}", "", fields::CANCEL_RESULT),
];

#[test]
fn every_resource_has_each_of_its_fields() {
    let mut scene = Scene::new();
    let mut faults = Vec::new();
    for (section, who, line, pointer, fields) in RESOURCES {
        let answer = scene.read(*who, line);
        match answer.pointer(pointer) {
            Some(value) => {
                let complaints = fields::complaints(fields, value);
                faults.extend(complaints.iter().map(|fault| format!("{section} {line}: {fault}")));
            }
            None => faults.push(format!("{section} {line}: nothing at {pointer}: {answer}")),
        }
    }
    assert_eq!(scene.read(Who::Nobody, "GET /openapi.json"), scene.document.0, "the document is served");
    for line in ["GET /markets", "GET /simplified-markets"] {
        let fields = if line == "GET /markets" { fields::CLOB_MARKET } else { fields::SIMPLIFIED_MARKET };
        let page = scene.read(Who::Nobody, line);
        let condition = scene.filled("{condition}");
        let rows = page["data"].as_array().unwrap();
        let market = rows.iter().find(|row| row["condition_id"] == condition.as_str()).expect("it is listed");
        faults.extend(fields::complaints(fields, market));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    scene.exchange.stop();
}

#[test]
fn an_order_is_taken_with_its_fields_and_not_without() {
    let mut scene = Scene::new();
    let mut submission = scene.submission();
    submission["order"]["conditionId"] = scene.filled("{condition}").into();
    // The contract has strings; most clients send numbers.
    submission["order"]["salt"] = submission["order"]["salt"].to_string().into();
    let needed = ["tokenId", "maker", "signer", "makerAmount", "takerAmount", "side", "timestamp", "salt"];
    let needed = needed.into_iter().chain(["signatureType", "signature"]).map(|name| ("/order", name));
    let mut tried = 0;
    for (place, name) in needed.chain([("", "order"), ("", "orderType"), ("", "owner")]) {
        let mut without = submission.clone();
        without.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name);
        let (status, answer) = scene.ask(Who::FirstAs("POLY"), &format!("POST /order {without}"));
        assert_eq!(
            (status, &answer["field"], &answer["success"]),
            (400, &json!(name), &json!(false)),
            "{answer}"
        );
        let complaints = fields::complaints(fields::ORDER_REFUSED, &answer);
        assert!(complaints.is_empty(), "2.2 without {name}: {complaints:?}");
        tried += 1;
    }
    assert_eq!(tried, 13);
    let refused = scene.ask(Who::FirstAs("POLY"), "POST /order {}");
    assert_eq!(
        (refused.0, refused.1["error"].is_string()),
        (400, true),
        "7: an error is a form of the answer"
    );
    for (name, type_of) in [("conditionId", "/order"), ("metadata", "/order"), ("builder", "/order")] {
        let mut without = scene.submission();
        without.pointer_mut(type_of).unwrap().as_object_mut().unwrap().remove(name);
        let result = scene.read(Who::FirstAs("POLY"), &format!("POST /order {without}"));
        assert_eq!(
            fields::complaints(fields::ORDER_RESULT, &result),
            Vec::<String>::new(),
            "2.2 without {name}"
        );
    }
    let result = scene.read(Who::FirstAs("POLY"), &format!("POST /order {submission}"));
    assert_eq!(fields::complaints(fields::ORDER_RESULT, &result), Vec::<String>::new(), "2.2");
    assert_eq!((&result["success"], &result["status"]), (&json!(true), &json!("live")));
    scene.exchange.stop();
}

#[test]
fn a_replace_names_what_leaves_and_what_comes() {
    let mut scene = Scene::new();
    let submission = scene.submission();
    let placed = scene.read(Who::FirstAs("POLY"), &format!("POST /order {submission}"));
    let body = json!({ "cancel": [placed["orderID"]], "place": [scene.submission()] });
    let replaced = scene.read(Who::FirstAs("POLY"), &format!("POST /replace {body}"));
    assert_eq!(replaced["canceled"], json!([placed["orderID"]]), "{replaced}");
    assert_eq!(replaced["kept_priority"], json!([replaced["orders"][0]["orderID"]]), "{replaced}");
    let (left, live) = (&placed["orderID"], &replaced["orders"][0]["orderID"]);
    for (ids, index) in [(vec![left], 0), (vec![live, left], 1), (vec![live, live, left], 2)] {
        let body = json!({ "cancel": ids, "place": [scene.submission()] });
        let (status, gone) = scene.ask(Who::FirstAs("POLY"), &format!("POST /replace {body}"));
        assert_eq!(
            (status, &gone["code"], &gone["part"], &gone["index"], &gone["orderHash"]),
            (409, &json!("replace_gone"), &json!("cancel"), &json!(index), left),
            "{gone}"
        );
    }
    // Each leaves once, however often it is named.
    let body =
        json!({ "cancel": [live, left, live, left], "place": [scene.submission()], "ifGone": "place" });
    let again = scene.read(Who::FirstAs("POLY"), &format!("POST /replace {body}"));
    assert_eq!(again["canceled"], json!([live]), "{again}");
    assert_eq!(again["not_canceled"].as_object().unwrap().len(), 1, "{again}");
    // The same once more: of what left only the first answer knows.
    let replayed = scene.read(Who::FirstAs("POLY"), &format!("POST /replace {body}"));
    let told = ["orders", "canceled", "not_canceled", "kept_priority"].map(|name| &replayed[name]);
    assert_eq!(told, [&again["orders"], &json!([]), &json!({}), &json!([])], "{replayed}");
    for (count, ids, expected) in [(0, 0, 400), (16, 0, 400), (1, 61, 400)] {
        let orders: Vec<Value> = (0..count).map(|_| scene.submission()).collect();
        let ids = vec![placed["orderID"].clone(); ids];
        let body = json!({ "cancel": ids, "place": orders });
        let (status, answer) = scene.ask(Who::FirstAs("POLY"), &format!("POST /replace {body}"));
        assert_eq!(status, expected, "{count} orders for {}: {answer}", body["cancel"]);
    }
    scene.exchange.stop();
}

#[test]
fn a_batch_holds_one_to_fifteen_orders() {
    let mut scene = Scene::new();
    for (count, expected) in [(0, 400), (1, 200), (15, 200), (16, 400)] {
        let orders: Vec<Value> = (0..count).map(|_| scene.submission()).collect();
        let (status, answer) = scene.ask(Who::FirstAs("POLY"), &format!("POST /orders {}", json!(orders)));
        assert_eq!(status, expected, "{count}: {answer}");
        if status == 200 {
            let results = answer.as_array().unwrap();
            assert_eq!(results.len(), count, "one result per order");
            for result in results {
                assert_eq!(fields::complaints(fields::ORDER_RESULT, result), Vec::<String>::new(), "2.2");
            }
        }
    }
    let mut wrong = scene.submission();
    wrong["order"]["side"] = json!("HOLD");
    let orders = json!([wrong, scene.submission()]);
    let results = scene.read(Who::FirstAs("POLY"), &format!("POST /orders {orders}"));
    assert_eq!(fields::complaints(fields::ORDER_REFUSED, &results[0]), Vec::<String>::new(), "2.2");
    assert_eq!((&results[0]["success"], &results[1]["success"]), (&json!(false), &json!(true)), "{results}");
    scene.exchange.stop();
}

#[test]
fn cursors_lead_through_a_list_and_end_as_the_contract_says() {
    let mut scene = Scene::new();
    let first = scene.read(Who::First, "GET /data/orders");
    for start in ["", "?next_cursor=", "?next_cursor=MA==", "?next_cursor=MA%3D%3D"] {
        assert_eq!(scene.read(Who::First, &format!("GET /data/orders{start}")), first, "{start}");
    }
    assert_eq!(
        (&first["limit"], &first["next_cursor"]),
        (&json!(100), &json!("")),
        "an empty one is the end"
    );
    assert_eq!(first["count"], first["data"].as_array().unwrap().len());
    let trades = scene.read(Who::First, "GET /data/trades");
    assert_eq!(trades["next_cursor"], "LTE=", "no more pages");
    for (line, end) in
        [("GET /data/trades", "LTE="), ("GET /markets", "LTE="), ("GET /simplified-markets", "LTE=")]
    {
        let behind = scene.read(Who::First, &format!("{line}?next_cursor={end}"));
        assert_eq!((&behind["count"], &behind["next_cursor"]), (&json!(0), &json!("LTE=")), "{line}");
    }
    let offset = scene.read(Who::Nobody, "GET /markets?next_cursor=MQ==");
    let all = scene.read(Who::Nobody, "GET /markets");
    assert_eq!(offset["data"][0], all["data"][1], "a cursor is base64 of an offset");
    for family in ["KUEST", "POLY"] {
        let page = scene.read(Who::FirstAs(family), "GET /data/orders");
        assert_eq!(page["next_cursor"], "LTE=", "clients of {family} would ask for ever");
    }
    scene.exchange.stop();
}

#[test]
fn what_was_traded_is_shown_by_trade_and_in_sum() {
    let mut scene = Scene::new();
    let live = scene.read(Who::Nobody, "GET /markets/live-activity/{condition}");
    assert_eq!(live, scene.read(Who::Nobody, "GET /live-activity/events/{condition}"));
    let trade = &scene.read(Who::FirstAs("POLY"), "GET /data/trades")["data"][0];
    let rows = live.as_array().unwrap();
    assert_eq!(rows.len(), 1, "one taker: {live}");
    for (pointer, expected) in [
        ("/event_type", json!("trade")),
        ("/market/condition_id", trade["market"].clone()),
        ("/market/asset_id", trade["asset_id"].clone()),
        ("/market/slug", json!("market-0")),
        ("/user/address", trade["maker_address"].clone()),
        ("/side", json!("BUY")),
        ("/size", json!("2")),
        ("/price", json!("0.6")),
        ("/fee_rate_bps", trade["fee_rate_bps"].clone()),
        ("/outcome", json!("Yes")),
        ("/outcome_index", json!(0)),
        ("/transaction_hash", trade["transaction_hash"].clone()),
        ("/timestamp", trade["match_time"].clone()),
    ] {
        assert_eq!(rows[0].pointer(pointer), Some(&expected), "{pointer}: {live}");
    }
    assert_eq!(scene.read(Who::Nobody, "GET /markets/live-activity/{other condition}"), json!([]));
    let unknown = format!("0x{}", "77".repeat(32));
    assert_eq!(scene.ask(Who::Nobody, &format!("GET /live-activity/events/{unknown}")).0, 404);

    let ask = |condition: &str, tokens: [&str; 2]| json!({ "conditionId": condition, "tokenIds": tokens });
    let body = json!({ "include_24h": true, "conditions": [
        ask("{condition}", ["{other token}", "{token}"]),
        ask("{other condition}", ["{token}", "{other token}"]),
        ask(&unknown, ["1", "2"]),
    ] });
    let condition = |name: &str| json!(scene.filled(name));
    let expected = json!([
        { "condition_id": condition("{condition}"), "status": 200, "volume": "1.2", "volume_24h": "1.2" },
        {
            "condition_id": condition("{other condition}"), "status": 400,
            "error": "tokenIds are not the tokens of this market",
        },
        { "condition_id": unknown, "status": 404, "error": "market not found" },
    ]);
    let snake = body.to_string().replace("conditionId", "condition_id").replace("tokenIds", "token_ids");
    for body in [body.to_string(), snake] {
        assert_eq!(scene.read(Who::Nobody, &format!("POST /data/volumes {body}")), expected, "{body}");
    }
    let item = ask("{condition}", ["{token}", "{other token}"]);
    for (body, field) in [
        ("[]".to_owned(), "body"),
        ("{}".to_owned(), "conditions"),
        (json!({ "conditions": [] }).to_string(), "conditions"),
        (json!({ "conditions": vec![item.clone(); 101] }).to_string(), "conditions"),
        (json!({ "conditions": [item], "include_24h": 1 }).to_string(), "include_24h"),
        (json!({ "conditions": [item], "include24h": true }).to_string(), "include_24h"),
        (json!({ "conditions": [{ "tokenIds": ["1", "2"] }] }).to_string(), "conditionId"),
        (json!({ "conditions": [{ "conditionId": unknown, "tokenIds": ["1"] }] }).to_string(), "tokenIds"),
        (
            json!({ "conditions": [{ "condition_id": unknown, "token_ids": [1, 2] }] }).to_string(),
            "token_ids",
        ),
        (
            json!({ "conditions": [{ "conditionId": unknown, "condition_id": unknown }] }).to_string(),
            "condition_id",
        ),
    ] {
        let (status, answer) = scene.ask(Who::Nobody, &format!("POST /data/volumes {body}"));
        assert_eq!((status, &answer["field"]), (400, &json!(field)), "{answer}");
    }
    for (item, got) in [(json!("x"), "\"x\""), (json!(null), "null"), (json!([item]), "[{")] {
        let body = json!({ "conditions": [item] });
        let (_, answer) = scene.ask(Who::Nobody, &format!("POST /data/volumes {body}"));
        let shown = answer["got"].as_str().unwrap();
        assert!(answer["field"] == "conditions" && shown.starts_with(got), "{answer}");
    }
    for (wrong, field) in [("start-ts", "start_ts"), ("Fidelity", "fidelity"), ("end-ts", "end_ts")] {
        let body = json!({ "markets": ["1"], "interval": "1d", wrong: 1 });
        let (status, answer) = scene.ask(Who::Nobody, &format!("POST /batch-prices-history {body}"));
        assert_eq!((status, &answer["field"], &answer["got"]), (400, &json!(field), &json!(wrong)));
    }
    scene.exchange.stop();
}

#[test]
fn programmes_that_are_not_run_are_refused_or_empty() {
    let mut scene = Scene::new();
    let quotes: Vec<String> = scene
        .document
        .operations()
        .filter(|(path, _, _)| path.starts_with("/rfq/"))
        .map(|(path, method, _)| format!("{} {path}", method.to_uppercase()))
        .collect();
    assert_eq!(quotes.len(), 12);
    let quotes = quotes.iter().map(|line| (line.as_str(), 501, "rfq_not_supported"));
    for (line, status, code) in quotes.chain([
        ("POST /auth/builder-api-key", 501, "builder_keys_not_supported"),
        ("DELETE /auth/builder-api-key", 404, "builder_key_unknown"),
        ("GET /rewards/markets/0x12", 400, "invalid_market"),
        ("GET /rewards/markets/current?next_cursor=!", 400, "invalid_cursor"),
    ]) {
        let (found, answer) = scene.ask(Who::First, line);
        assert_eq!((found, &answer["code"]), (status, &json!(code)), "{line}: {answer}");
    }
    for line in ["GET /rewards/user", "GET /rewards/markets/current", "GET /builder/trades"] {
        let page = scene.read(Who::First, line);
        let empty = json!({ "data": [], "next_cursor": "LTE=", "limit": 100, "count": 0 });
        assert_eq!(page, empty, "{line}");
    }
    scene.exchange.stop();
}

#[test]
fn filters_of_orders_and_trades_narrow() {
    let mut scene = Scene::new();
    let count =
        |scene: &mut Scene, line: &str| scene.read(Who::First, line)["data"].as_array().unwrap().len();
    let orders = count(&mut scene, "GET /data/orders");
    assert_eq!(orders, 3, "two that wait to buy, one that is partly sold");
    assert_eq!(count(&mut scene, "GET /data/trades"), 1);
    for (line, expected) in [
        ("GET /data/orders?id={order}", 1),
        ("GET /data/orders?id={trade}{trade}", usize::MAX),
        ("GET /data/orders?market={condition}", orders),
        ("GET /data/orders?market={other condition}", 0),
        ("GET /data/orders?asset_id={token}", orders),
        ("GET /data/orders?asset_id={other token}", 0),
        ("GET /data/trades?id={trade}", 1),
        ("GET /data/trades?id=00000000-0000-4000-8000-000000000000", 0),
        ("GET /data/trades?taker={second}", 1),
        ("GET /data/trades?taker={first}", 0),
        ("GET /data/trades?maker={first}", 1),
        ("GET /data/trades?maker={nobody}", 0),
        ("GET /data/trades?market={condition}", 1),
        ("GET /data/trades?market={other condition}", 0),
        ("GET /data/trades?before=1000", 0),
        ("GET /data/trades?before=9999999999", 1),
        ("GET /data/trades?after=1000", 1),
        ("GET /data/trades?after=9999999999", 0),
    ] {
        if expected == usize::MAX {
            assert_eq!(scene.ask(Who::First, line).0, 400, "{line}");
        } else {
            assert_eq!(count(&mut scene, line), expected, "{line}");
        }
    }
    scene.exchange.stop();
}

#[test]
fn every_parameter_keeps_its_default_and_its_bounds() {
    let mut scene = Scene::new();
    let mut faults = Vec::new();
    let mut asked = 0;
    for (line, parameters) in parameters::ENDPOINTS {
        for (name, rule) in *parameters {
            for trial in parameters::trials(line, name, *rule) {
                let (status, answer) = scene.ask(Who::Nobody, &trial.line);
                let field = answer["field"].as_str().unwrap_or_default();
                if status != trial.status || (status == 400 && field != *name) {
                    faults.push(format!("{}: {status} {answer}, expected {}", trial.line, trial.status));
                }
                asked += 1;
            }
            if let Some((plain, said)) = parameters::with_default(line, name, *rule) {
                let (plain, said) = (scene.read(Who::Nobody, &plain), scene.read(Who::Nobody, &said));
                if plain != said {
                    faults.push(format!("{line}: {name} is not {rule:?} by default"));
                }
                if let Rule::Rows { default, .. } = rule
                    && let Some(rows) = plain.as_array()
                    && rows.len() != usize::try_from(*default).unwrap()
                    && !line.contains("/holders")
                {
                    faults.push(format!("{line}: {} rows without {name}, not {default}", rows.len()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(150 < asked, "only {asked} requests were made");
    scene.exchange.stop();
}

#[test]
fn whatever_needs_credentials_refuses_without_them() {
    let mut scene = Scene::new();
    let mut asked = 0;
    let lines: Vec<(String, bool)> = scene
        .document
        .operations()
        .map(|(path, method, operation)| {
            let path = path.replace("{id}", &format!("0x{}", "11".repeat(32)));
            let open = operation.get("security").is_some_and(|schemes| schemes == &json!([]));
            (format!("{} {path}", method.to_uppercase()), open)
        })
        .collect();
    for (line, open) in lines {
        let method = line.split(' ').next().unwrap();
        let body = if method == "GET" { "" } else { " {}" };
        let (status, answer) = if open && line.contains('{') {
            continue;
        } else {
            scene.ask(Who::Nobody, &format!("{line}{body}"))
        };
        assert_eq!(status == 401, !open, "{line}: {status} {answer}");
        let complaints = if status == 200 { Vec::new() } else { fields::complaints(fields::ERROR, &answer) };
        assert!(complaints.is_empty(), "7 {line}: {complaints:?}");
        asked += usize::from(!open);
    }
    assert!(25 < asked, "only {asked} operations need credentials");
    scene.exchange.stop();
}

#[test]
fn every_operation_of_the_document_succeeds_with_what_it_says() {
    let mut scene = Scene::new();
    let order = scene.submission();
    scene.read(Who::FirstAs("POLY"), &format!("POST /order {order}"));
    let orders = json!([scene.submission(), order]);
    scene.read(Who::FirstAs("POLY"), &format!("POST /orders {orders}"));
    let replace = json!({ "place": [scene.submission()] });
    scene.read(Who::FirstAs("POLY"), &format!("POST /replace {replace}"));
    for (who, line) in operations::SUCCEED {
        scene.read(*who, line);
    }
    let silent: Vec<&str> = scene
        .document
        .operations()
        .filter(|(_, _, operation)| operation["responses"].get("200").is_some())
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap())
        .filter(|name| !scene.succeeded.contains(*name))
        .collect();
    assert!(silent.is_empty(), "nobody has seen these succeed: {silent:?}");
    scene.exchange.stop();
}

#[test]
fn each_of_the_five_headers_is_needed_in_every_family() {
    let mut scene = Scene::new();
    let without = |line: &str, head: String| {
        let (before, rest) = head.split_once(line).unwrap();
        format!("{before}{}", rest.split_once("\r\n").unwrap().1)
    };
    for family in ["SERVICE", "KUEST", "POLY"] {
        for stamp_ms in [1, 1_000] {
            let (status, answer) = scene.orders(family, stamp_ms, |head| head);
            assert_eq!(status, 200, "{family}, stamped in {stamp_ms} ms: {answer}");
        }
        for name in ["ADDRESS", "API_KEY", "PASSPHRASE", "TIMESTAMP", "SIGNATURE"] {
            let header = format!("{family}_{name}: ");
            let (status, answer) = scene.orders(family, 1, |head| without(&header, head));
            assert_eq!((status, &answer["code"]), (401, &json!("invalid_l2")), "{header}: {answer}");
        }
        // Half of the milliseconds since 1970 lead back to the last century.
        let (status, answer) = scene.orders(family, 2, |head| head);
        assert_eq!(status, 401, "signed long ago: {answer}");
    }
    let (status, answer) = scene.orders("SERVICE", 1, |head| head.replace("SERVICE_ADDRESS", "POLY_ADDRESS"));
    assert_eq!(status, 400, "two families in one request: {answer}");
    scene.exchange.stop();
}

#[test]
fn a_field_that_is_planted_wrong_is_found_by_its_name() {
    let level = json!({ "price": "0.1", "size": "5" });
    let good = json!({
        "market": "0x", "asset_id": "1", "timestamp": "1", "hash": "", "min_order_size": "5", "tick_size": "0.01",
        "last_trade_price": "", "bids": [level], "asks": [level], "neg_risk": false,
    });
    assert_eq!(fields::complaints(fields::BOOK, &good), Vec::<String>::new());
    for (pointer, value, fault) in [
        ("/hash", None, "/hash: is missing"),
        ("/hash", Some(json!(7)), "/hash: is to be Text, is 7"),
        ("/neg_risk", Some(json!("no")), "/neg_risk: is to be Boolean"),
        ("/bids", Some(json!([])), "/bids: is to be Objects"),
        ("/asks/0/size", Some(json!(5)), "/asks/0/size: is to be Text, is 5"),
    ] {
        let mut bad = good.clone();
        match value {
            Some(value) => *bad.pointer_mut(pointer).unwrap() = value,
            None => drop(bad.as_object_mut().unwrap().remove("hash")),
        }
        let found = fields::complaints(fields::BOOK, &bad);
        assert!(found.len() == 1 && found[0].starts_with(fault), "{fault}: {found:?}");
    }
}
