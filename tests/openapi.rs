//! The OpenAPI document against the tables that it describes: routes, refusals and limits.
//!
//! `contract.rs` compares the answers of the running binary with the document, and so does
//! `clients/contract.py`, with generated requests.

#![allow(clippy::unwrap_used, reason = "a test that cannot read the document has to stop")]

mod common;

use common::schema::{Document, walk};
use common::text;
use outcry::auth::explain::Check;
use outcry::domain::Reject;
use outcry::http::{openapi, route};
use outcry::json::read;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[test]
fn every_route_is_an_operation_and_every_operation_a_route() {
    let document = Document::of_library();
    let routes: BTreeSet<String> = route::rows()
        .map(|(method, before, after)| match after {
            Some(after) => format!("{} {before}{{}}{after}", method.text()),
            None => format!("{} {before}", method.text()),
        })
        .collect();
    let operations: BTreeSet<String> = document
        .operations()
        .map(|(path, method, _)| format!("{} {}", method.to_uppercase(), without_names(path)))
        .collect();
    let missing: Vec<_> = routes.difference(&operations).collect();
    let invented: Vec<_> = operations.difference(&routes).collect();
    assert!(missing.is_empty() && invented.is_empty(), "not described: {missing:?}, no route: {invented:?}");
}

/// `/data/order/{id}` as `/data/order/{}`.
fn without_names(path: &str) -> String {
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

#[test]
fn every_operation_says_who_what_and_what_comes_back() {
    let document = Document::of_library();
    let tags: BTreeSet<&str> =
        document.0["tags"].as_array().unwrap().iter().map(|tag| text(&tag["name"])).collect();
    let mut names = BTreeSet::new();
    for (path, method, operation) in document.operations() {
        let line = format!("{method} {path}");
        assert!(names.insert(text(&operation["operationId"])), "{line}: its operationId is another's");
        assert!(text(&operation["summary"]).ends_with('.'), "{line}: a sentence");
        assert!(operation["tags"].as_array().unwrap().iter().all(|tag| tags.contains(text(tag))), "{line}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("default"), "{line}: bytes that are no request of it");
        let answers = ["101", "200", "404", "501"];
        assert!(answers.iter().any(|status| responses.contains_key(*status)), "{line}: an answer");
        // A response that becomes a stream has no body.
        for (status, response) in responses.iter().filter(|(status, _)| *status != "101") {
            let schema = document.resolve(response).pointer("/content/application~1json/schema");
            assert!(schema.is_some(), "{line}: {status} has no schema");
        }
        let inside: BTreeSet<&str> =
            path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|parameter| document.resolve(parameter));
        let named: BTreeSet<&str> = parameters
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| text(&parameter["name"]))
            .collect();
        assert_eq!(inside, named, "{line}: the path's parameters");
    }
}

#[test]
fn the_headers_that_trading_takes_are_parameters() {
    let document = Document::of_library();
    let mut trading = 0;
    for (path, method, operation) in document.operations() {
        let line = format!("{} {path}", method.to_uppercase());
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|parameter| document.resolve(parameter));
        let headers: Vec<&str> = parameters
            .filter(|parameter| parameter["in"] == "header" && parameter["name"] != "X-Chain-Id")
            .map(|parameter| text(&parameter["name"]))
            .collect();
        let expected: &[&str] = match &line[..] {
            "POST /order" | "POST /orders" | "POST /replace" => {
                &["X-Outcry-Deadline", "X-Outcry-Cancel-On-Disconnect"]
            }
            "GET /breaker" => &[],
            _ if operation["tags"][0] == "Trading" => &["X-Outcry-Cancel-On-Disconnect"],
            _ => &[],
        };
        assert_eq!(headers, expected, "{line}");
        trading += expected.len();
    }
    assert_eq!(trading, 19);
}

#[test]
fn every_reference_leads_somewhere_and_every_part_is_referred_to() {
    let document = Document::of_library();
    let mut referred = document.references();
    for requirement in requirements(&document) {
        for scheme in requirement.as_object().unwrap().keys() {
            assert!(
                document.0["components"]["securitySchemes"].get(scheme).is_some(),
                "{scheme} is no scheme"
            );
            referred.insert(format!("#/components/securitySchemes/{scheme}"));
        }
    }
    for (kind, parts) in document.0["components"].as_object().unwrap() {
        for name in parts.as_object().unwrap().keys() {
            let part = format!("#/components/{kind}/{name}");
            assert!(referred.contains(&part), "{part} is referred to by nothing");
        }
    }
}

fn requirements(document: &Document) -> Vec<&Value> {
    let general = document.0["security"].as_array().unwrap().iter();
    let own =
        document.operations().filter_map(|(_, _, operation)| operation["security"].as_array()).flatten();
    general.chain(own).collect()
}

#[test]
fn every_example_fits_its_schema() {
    let document = Document::of_library();
    let mut examples = 0;
    walk(&document.0, "", &mut |at, value| {
        if let (Some(schema), Some(example)) = (value.get("schema"), value.get("example")) {
            let complaints = document.complaints(schema, example);
            assert!(complaints.is_empty(), "{at}: {complaints:#?}");
            examples += 1;
        }
    });
    let operations = document.operations().count();
    assert!(operations < examples, "{operations} operations have {examples} examples");
}

#[test]
fn every_default_fits_its_schema() {
    let document = Document::of_library();
    walk(&document.0["components"], "/components", &mut |at, value| default_fits(&document, at, value));
    walk(&document.0["paths"], "/paths", &mut |at, value| default_fits(&document, at, value));
}

fn default_fits(document: &Document, at: &str, value: &Value) {
    if let (Some(default), Some(_)) = (value.get("default"), value.get("type")) {
        assert!(document.complaints(value, default).is_empty(), "{at}: {default}");
    }
}

#[test]
fn the_refusals_are_those_of_the_table() {
    let document = Document::of_library();
    let described = &document.0["components"]["schemas"]["RefusalCode"]["enum"];
    let codes: Vec<&str> = Reject::ALL.iter().map(|reject| reject.wire().code).collect();
    assert_eq!(described, &Value::from(codes));
    let statuses: BTreeSet<String> =
        Reject::ALL.iter().map(|reject| reject.wire().status.to_string()).collect();
    let orders = document.operation("POST", "/order").unwrap()["responses"].as_object().unwrap();
    let missing: Vec<_> = statuses.iter().filter(|status| !orders.contains_key(*status)).collect();
    assert!(missing.is_empty(), "POST /order does not tell of {missing:?}");
}

#[test]
fn the_checks_of_an_explanation_are_those_of_the_table() {
    let document = Document::of_library();
    let described = &document.0["components"]["schemas"]["Explanation"]["properties"]["check"]["enum"];
    let words: Vec<&str> = Check::ALL.iter().map(|check| check.word()).collect();
    assert_eq!(described, &Value::from(words));
}

#[test]
fn the_limits_are_those_of_the_code() {
    let document = Document::of_library();
    let schema = |line: &str| {
        let (method, path) = line.split_once(' ').unwrap();
        let operation = document.operation(method, path).unwrap_or_else(|| panic!("{line}"));
        document.resolve(operation.pointer("/requestBody/content/application~1json/schema").unwrap())
    };
    for (line, limit) in [
        ("POST /orders", read::ORDERS_MAX),
        ("DELETE /orders", read::CANCELS_MAX),
        ("POST /orders-scoring", read::CANCELS_MAX),
        ("POST /data/orders", read::ORDER_IDS_MAX),
        ("POST /books", read::TOKENS_MAX),
        ("POST /prices", read::TOKENS_MAX),
        ("POST /last-trades-prices", read::TOKENS_MAX),
    ] {
        assert_eq!(schema(line)["maxItems"], limit, "{line}");
    }
}

#[test]
fn no_name_stands_twice_in_one_object() {
    let Unique = serde_json::from_str(&openapi::TEXT).unwrap();
    let planted = serde_json::from_str::<Unique>(r#"{"a":[{"b":1,"b":2}]}"#);
    assert!(planted.is_err(), "a name that is planted twice is found");
}

#[test]
fn what_is_planted_is_found() {
    let document = Document(json!({ "components": { "schemas": { "Side": { "enum": ["BUY", "SELL"] } } } }));
    let schema = json!({
        "type": "object",
        "required": ["side", "at"],
        "properties": {
            "side": { "$ref": "#/components/schemas/Side" },
            "at": { "type": ["string", "null"], "format": "date-time" },
            "rows": { "type": "array", "maxItems": 1, "items": { "type": "integer", "minimum": 1 } },
        },
    });
    let good = json!({ "side": "BUY", "at": "2026-11-20T12:34:56.789Z", "rows": [1] });
    assert_eq!(document.complaints(&schema, &good), Vec::<String>::new());
    for (name, value, complaint) in [
        ("side", json!("HOLD"), "/side: enum"),
        ("at", json!("yesterday"), "/at: format"),
        ("at", json!(7), "/at: type"),
        ("rows", json!([1, 2]), "/rows: maxItems"),
        ("rows", json!([0]), "/rows/0: minimum"),
        ("rows", json!([1.5]), "/rows/0: type"),
        ("more", json!(1), "/more: is not in the document"),
    ] {
        let mut bad = good.clone();
        bad[name] = value;
        let found = document.complaints(&schema, &bad);
        assert!(found.len() == 1 && found[0].starts_with(complaint), "{bad}: {found:?}");
    }
    assert_eq!(document.complaints(&schema, &json!({ "at": null })), ["/side: is missing"]);
    let either = json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] });
    assert_eq!(document.complaints(&either, &json!(1)).len(), 1, "both fit");
    assert_eq!(document.complaints(&json!({ "multipleOf": 2 }), &json!(2)).len(), 1, "an unknown rule");
}

/// Any JSON in which no object has a name twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON without repeated names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Self>()? {
            if names.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("{name} stands twice")));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }
}
