//! Bodies as tables: every field right, absent, of the wrong type, too large, and twice.

use serde_json::{Value as Json, json};

use super::*;
use crate::domain::text::{parse_hex, parse_uuid};
use crate::domain::{Address, ConditionId, OrderType, SelfTrade, Side, SignatureType, TokenId, Word};

const TOKEN: &str = "71321045679252212594626385532706912750332728571942532289631379312455583992563";
const OWNER: &str = "00000000-0000-4000-8000-000000000001";
const MAKER: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

fn body() -> Json {
    json!({
        "order": {
            "salt": 479_249_096_354_u64,
            "maker": MAKER,
            "signer": MAKER,
            "tokenId": TOKEN,
            "makerAmount": "50000000",
            "takerAmount": "100000000",
            "side": "BUY",
            "expiration": "0",
            "signatureType": 0,
            "timestamp": "1713398400000",
            "metadata": format!("0x{}", "00".repeat(32)),
            "builder": format!("0x{}", "00".repeat(32)),
            "signature": format!("0x{}", "1c".repeat(65)),
        },
        "owner": OWNER,
        "orderType": "GTC",
        "deferExec": false,
        "postOnly": false,
    })
}

/// The body with one field replaced, or removed if `value` is [`Option::None`].
fn with(field: &str, value: Option<Json>) -> Json {
    let mut body = body();
    let envelope = ["order", "owner", "orderType", "deferExec", "postOnly", "selfTrade"];
    let object = if envelope.contains(&field) { &mut body } else { &mut body["order"] };
    let object = object.as_object_mut().expect("an object");
    match value {
        Some(value) => object.insert(field.to_owned(), value),
        None => object.remove(field),
    };
    body
}

fn read(body: &Json) -> Result<SignedOrder, ReadError> {
    read_text(&body.to_string())
}

fn read_text(body: &str) -> Result<SignedOrder, ReadError> {
    BodyReader::new().order(&mut body.as_bytes().to_vec())
}

/// The refusal, the field at fault, and what the answer says was sent.
fn refused(field: &str, value: Option<Json>) -> (Reject, &'static str, String) {
    let error = read(&with(field, value)).expect_err("refused");
    (error.reject, error.field, error.got.as_str().to_owned())
}

#[test]
fn an_order_as_a_client_sends_it_is_read() {
    let order = read(&body()).expect("good");
    let fields = order.fields;
    assert_eq!(fields.salt.0[24..], 479_249_096_354_u64.to_be_bytes());
    assert_eq!(fields.maker.0[..3], [0xf3, 0x9f, 0xd6]);
    assert_eq!(fields.signer, fields.maker);
    assert_eq!((fields.maker_amount, fields.taker_amount), (50_000_000, 100_000_000));
    assert_eq!((fields.side, fields.signature_type), (Side::Buy, SignatureType::Eoa));
    assert_eq!(fields.timestamp_ms, 1_713_398_400_000);
    assert_eq!((fields.metadata, fields.builder), (Word::ZERO, Word::ZERO));
    assert_eq!(order.signature(), [0x1c; 65]);
    assert_eq!((order.expiration_s, order.order_type, order.post_only), (0, OrderType::Gtc, false));
    assert_eq!((order.self_trade, order.condition), (SelfTrade::ExpireTaker, None));
    assert_eq!(order.owner.0[15], 1);
}

#[test]
fn every_form_of_a_field_that_clients_use_is_taken() {
    let word = format!("0x{}", "ab".repeat(32));
    let largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    for (field, value) in [
        ("salt", json!(0)),
        ("salt", json!(u64::MAX)),
        ("salt", json!("0")),
        ("salt", json!(largest)),
        ("maker", json!(MAKER.to_lowercase())),
        ("tokenId", json!(largest)),
        ("tokenId", json!(7)),
        ("makerAmount", json!(50_000_000)),
        ("makerAmount", json!("0")),
        ("takerAmount", json!("1000000000000000")),
        ("side", json!("sell")),
        ("signatureType", json!(3)),
        ("timestamp", json!(1_713_398_400_000_u64)),
        ("metadata", json!("")),
        ("metadata", json!(word)),
        ("builder", json!(null)),
        ("expiration", json!(1_900_000_000)),
        ("expiration", json!("1900000000")),
        ("expiration", json!("")),
        ("signature", json!("0x")),
        ("signature", json!(format!("0x{}", "ff".repeat(317)))),
        ("conditionId", json!(word)),
        ("conditionId", json!("")),
        ("owner", json!("00000000000000000000000001")),
        ("orderType", json!("fok")),
        ("postOnly", json!(true)),
        ("deferExec", json!(null)),
        ("selfTrade", json!("expire_maker")),
        ("selfTrade", json!("")),
        ("taker", json!("0x0000000000000000000000000000000000000000")),
        ("unknown", json!({"deep": [{"er": [1.5, -1, 1e300]}]})),
    ] {
        assert!(read(&with(field, Some(value.clone()))).is_ok(), "{field}: {value}");
    }
    for field in ["metadata", "builder", "expiration", "conditionId", "postOnly", "deferExec", "selfTrade"] {
        assert!(read(&with(field, None)).is_ok(), "{field} absent");
    }
    let order = read(&with("conditionId", Some(json!(word)))).expect("good");
    assert_eq!(order.condition, Some(ConditionId([0xab; 32])));
}

#[test]
fn a_field_that_is_missing_or_of_the_wrong_type_is_named() {
    let wrong =
        [json!(true), json!([]), json!({}), json!(1.5), json!(-1), json!("x"), json!("1e3"), json!("1.0")];
    for field in ["salt", "maker", "signer", "tokenId", "makerAmount", "takerAmount", "side", "signatureType"]
        .into_iter()
        .chain(["signature"])
    {
        for value in wrong.iter().cloned().map(Some).chain([None, Some(json!(null)), Some(json!(""))]) {
            let (reject, named, got) = refused(field, value.clone());
            assert_eq!((reject, named), (Reject::InvalidPayload, field), "{field}: {value:?}");
            assert!(value.is_none_or(|value| value == json!("") || !got.is_empty()));
        }
    }
    for field in [
        "metadata",
        "builder",
        "expiration",
        "conditionId",
        "postOnly",
        "deferExec",
        "selfTrade",
        "orderType",
    ] {
        for value in [json!([]), json!(1.5), json!("x")] {
            assert_eq!(refused(field, Some(value)).1, field);
        }
    }
    assert_eq!(refused("order", Some(json!([]))), (Reject::InvalidPayload, "order", "an array".to_owned()));
    assert_eq!(refused("order", None).1, "order");
    assert_eq!(refused("timestamp", Some(json!(""))).0, Reject::InvalidPayload);
    assert_eq!(refused("orderType", None).0, Reject::InvalidPayload);
    assert_eq!(refused("owner", None).0, Reject::InvalidPayload);
    assert_eq!(refused("owner", Some(json!("me"))), (Reject::OwnerMismatch, "owner", "me".to_owned()));
}

#[test]
fn a_name_of_ours_in_another_spelling_is_refused_and_other_names_are_passed_over() {
    for (spelt, meant) in [
        ("post_only", "postOnly"),
        ("POSTONLY", "postOnly"),
        ("order-type", "orderType"),
        ("SelfTrade", "selfTrade"),
        ("maker_amount", "makerAmount"),
        ("Salt", "salt"),
    ] {
        // With `meant` in its place, and `spelt` beside it.
        let text = body().to_string();
        let place = if body().get(meant).is_some() || meant == "selfTrade" { "{" } else { "\"order\":{" };
        let text = text.replacen(place, &format!("{place}\"{spelt}\":true,"), 1);
        let error = read_text(&text).expect_err("refused");
        assert_eq!((error.reject, error.field, error.got.as_str()), (Reject::InvalidPayload, meant, spelt));
    }
    for name in ["postOnlyOr", "only", "", "_", "x-order", "clientId"] {
        let body = with(name, Some(json!(true)));
        assert!(read(&body).is_ok(), "{name}");
    }
}

#[test]
fn so_many_unknown_names_are_passed_over_and_none_behind_them_goes_unread() {
    let beside = |place: &str, unknown: usize, more: &str| {
        let names = "\"x\":1,".repeat(unknown);
        let read = read_text(&body().to_string().replacen(place, &format!("{place}{names}{more}"), 1));
        read.map(|order| order.post_only).map_err(|error| (error.field, error.allowed))
    };
    let too_many = "at most 32 unknown names";
    for (place, unknown, more, expected) in [
        ("{", 32, "", Ok(false)),
        ("{", 31, "\"post_only\":true,", Err(("postOnly", "postOnly"))),
        ("{", 32, "\"post_only\":true,", Err(("postOnly", "postOnly"))),
        ("{", 33, "", Err(("body", too_many))),
        ("{", 33, "\"post_only\":true,", Err(("body", too_many))),
        ("\"order\":{", 32, "", Ok(false)),
        ("\"order\":{", 33, "", Err(("order", too_many))),
    ] {
        assert_eq!(beside(place, unknown, more), expected, "{unknown} and {more} behind {place}");
    }
}

#[test]
fn a_number_that_is_too_large_is_told_from_one_that_is_none() {
    let above = "18446744073709551616";
    assert_eq!(
        refused("makerAmount", Some(json!(above))),
        (Reject::AmountTooLarge, "makerAmount", above.to_owned())
    );
    assert_eq!(refused("takerAmount", Some(json!("9".repeat(200)))).0, Reject::AmountTooLarge);
    let most = 1_000_000_000_000_000_u64;
    for above in [json!(most + 1), json!((most + 1).to_string())] {
        let expected = (Reject::AmountTooLarge, "takerAmount", "1000000000000001".to_owned());
        assert_eq!(refused("takerAmount", Some(above)), expected);
    }
    let text = body().to_string().replace("\"50000000\"", above);
    let error = read_text(&text).expect_err("refused");
    assert_eq!((error.reject, error.allowed), (Reject::AmountTooLarge, "1000000000000000"));
    assert_eq!(refused("timestamp", Some(json!(above))).0, Reject::InvalidPayload);
    assert_eq!(refused("expiration", Some(json!(above))).0, Reject::InvalidPayload);
    assert_eq!(refused("salt", Some(json!("9".repeat(78)))).0, Reject::InvalidPayload);
    assert_eq!(refused("tokenId", Some(json!("9".repeat(79)))).0, Reject::InvalidPayload);
    assert_eq!(refused("signatureType", Some(json!(4))).2, "4");
    assert_eq!(refused("signatureType", Some(json!(256))).2, "256");
    let long = format!("0x{}", "ff".repeat(318));
    assert_eq!(refused("signature", Some(json!(long))).0, Reject::SignatureInvalid);
    let above = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
    for field in ["salt", "tokenId"] {
        let error = read(&with(field, Some(json!(above)))).expect_err("2^256");
        assert!(error.refusal().allowed.as_str().contains("below 2^256, of at most 78 digits"), "{error:?}");
    }
    // A number in the text itself that no u64 holds is refused.
    let text = body().to_string().replace("479249096354", above);
    assert_eq!(read_text(&text).expect_err("refused").reject, Reject::InvalidPayload);
    for float in ["1e3", "1.0", "1E0", "0.5"] {
        let text = body().to_string().replace("479249096354", float);
        assert_eq!(read_text(&text).expect_err("refused").field, "salt", "{float}");
    }
}

#[test]
fn an_order_of_the_first_version_is_told_so() {
    for (field, value) in [("nonce", Some(json!("0"))), ("feeRateBps", Some(json!("0"))), ("timestamp", None)]
    {
        assert_eq!(refused(field, value).0, Reject::OrderVersionMismatch, "{field}");
    }
    assert!(read(&with("nonce", Some(json!(null)))).is_ok());
}

#[test]
fn a_name_that_stands_twice_is_refused() {
    let text = body().to_string();
    for (name, value) in [("salt", "479249096354"), ("owner", "\"00000000-0000-4000-8000-000000000001\"")] {
        let once = format!("\"{name}\":{value}");
        let twice = text.replace(&once, &format!("{once},{once}"));
        assert_ne!(twice, text);
        let error = read_text(&twice).expect_err("refused");
        assert_eq!((error.reject, error.field, error.allowed), (Reject::InvalidPayload, name, "once"));
    }
    let unknown = text.replacen('{', "{\"x\":1,\"x\":2,", 1);
    assert!(read_text(&unknown).is_ok());
    let escaped = text.replace("\"salt\"", "\"s\\u0061lt\"");
    assert!(read_text(&escaped).is_ok());
}

#[test]
fn what_is_not_json_is_refused_and_the_reader_goes_on() {
    let mut reader = BodyReader::new();
    let good = body().to_string();
    for bad in [
        "",
        " ",
        "{",
        "nul",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "\"\u{1}\"",
        "[1\u{0}2]",
        "[1,\u{b}2]",
        "{}{}",
        "'a'",
        "NaN",
        "\u{feff}{}",
    ] {
        let error = reader.order(&mut bad.as_bytes().to_vec()).expect_err("refused");
        assert_eq!((error.reject, error.field), (Reject::InvalidPayload, "body"), "{bad:?}");
        assert!(reader.order(&mut good.clone().into_bytes()).is_ok());
    }
    for bad in [&b"{\"order\":\"\xff\"}"[..], b"\"\\ud800\"", b"[\"\xed\xa0\x80\"]"] {
        assert!(reader.order(&mut bad.to_vec()).is_err());
    }
    for other in ["null", "[]", "1", "\"x\"", "true"] {
        assert_eq!(reader.order(&mut other.as_bytes().to_vec()).expect_err("refused").allowed, "an object");
    }
    assert!(reader.order(&mut "[".repeat(100_000).into_bytes()).is_err());
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert!(reader.order(&mut deep.into_bytes()).is_err());
}

#[test]
fn a_body_that_is_no_json_is_told_from_where_on() {
    for (bad, got) in [
        ("", ""),
        ("garbage", "no JSON from byte 0 on"),
        ("{\"order\":{\"salt\":1,}}", "no JSON from byte 19 on"),
        ("{\"order\":{}", "JSON that is not whole, 11 bytes"),
    ] {
        let error = read_text(bad).expect_err("refused");
        assert_eq!((error.field, error.got.as_str(), error.allowed), ("body", got, "JSON"), "{bad:?}");
    }
}

#[test]
fn half_a_surrogate_pair_is_no_text() {
    let good = body().to_string();
    let with_note = |note: &str| read_text(&good.replacen('{', &format!("{{\"note\":\"{note}\","), 1));
    for whole in [
        r"\uD83D\ude00",
        r"\\ud800",
        r"\\\\ud800",
        r"\ud7ff\ue000",
        r"\uDBFF\uDFFF",
        r"\u0041\n\t",
        r"\uD83D\uDE00x",
        r"\u0041ééé",
    ] {
        assert!(with_note(whole).is_ok(), "{whole}");
    }
    for half in [
        r"\ud800",
        r"\uDBFFx",
        r"\ud800\n",
        r"\ud800\\udc00",
        r"\ud800\u0041",
        r"\ud800\ue000",
        r"\ud800\ud800",
        r"\udc00",
        r"\uDFFF\ud800",
        r"\\\udc00",
    ] {
        let error = with_note(half).expect_err("refused");
        assert_eq!((error.reject, error.field), (Reject::InvalidPayload, "body"), "{half}");
    }
}

#[test]
fn an_order_cut_anywhere_is_refused_and_never_misread() {
    let mut reader = BodyReader::new();
    let good = body().to_string();
    for end in 0..good.len() {
        assert!(reader.order(&mut good.as_bytes()[..end].to_vec()).is_err(), "cut at {end}");
    }
}

#[test]
fn a_bad_item_does_not_sink_the_batch() {
    let mut orders = Vec::new();
    let batch = json!([body(), with("side", Some(json!("HOLD"))), 7, body()]).to_string();
    BodyReader::new().orders(&mut batch.into_bytes(), &mut orders).expect("a list");
    assert_eq!(orders.len(), 4);
    assert!(orders[0].is_ok() && orders[3].is_ok());
    assert_eq!(orders[1].expect_err("bad").got.as_str(), "HOLD");
    assert_eq!(orders[2].expect_err("bad").allowed, "an object");
}

#[test]
fn a_batch_holds_one_to_fifteen_orders() {
    let mut orders = Vec::new();
    let mut ask = |count: usize| {
        let batch = Json::Array(vec![body(); count]).to_string();
        BodyReader::new().orders(&mut batch.into_bytes(), &mut orders).map(|()| orders.len())
    };
    assert_eq!(ask(0).expect_err("none").reject, Reject::InvalidPayload);
    assert_eq!((ask(1), ask(14), ask(15)), (Ok(1), Ok(14), Ok(15)));
    let error = ask(16).expect_err("too many");
    assert_eq!((error.reject, error.got.as_str(), error.allowed), (Reject::TooManyOrders, "16", "15"));
}

fn id(number: u64) -> String {
    format!("0x{number:064x}")
}

#[test]
fn a_cancel_names_its_order_in_either_spelling() {
    let mut reader = BodyReader::new();
    let mut ask = |body: Json| reader.cancel(&mut body.to_string().into_bytes());
    let expected = OrderId(parse_hex(id(7).as_bytes()).expect("hex"));
    assert_eq!(ask(json!({"orderID": id(7)})), Ok(expected));
    assert_eq!(ask(json!({"orderId": id(7), "x": 1})), Ok(expected));
    assert_eq!(ask(json!({"orderId": id(7), "orderID": null})), Ok(expected));
    for bad in [json!({}), json!({"orderID": "x"}), json!({"orderID": 7}), json!({"orderID": null})] {
        assert_eq!(ask(bad).expect_err("bad").reject, Reject::OrderIdInvalid);
    }
    assert_eq!(
        ask(json!({"orderID": id(7), "orderId": id(7)})).expect_err("bad").reject,
        Reject::InvalidPayload
    );
    assert_eq!(ask(json!([id(7)])).expect_err("bad").reject, Reject::InvalidPayload);
}

#[test]
fn a_list_of_cancels_keeps_its_order_and_drops_repeats() {
    let mut reader = BodyReader::new();
    let mut ids = Vec::new();
    let mut ask = |list: Vec<String>| {
        reader.cancels(&mut json!(list).to_string().into_bytes(), &mut ids).map(|()| ids.clone())
    };
    for count in [3_u64, 40] {
        let list: Vec<_> =
            (0..count).rev().flat_map(|number| [id(number), id(count - 1), id(number)]).collect();
        let read = ask(list).expect("good");
        let numbers: Vec<_> = read.iter().map(|id| u64::from(id.0[31])).collect();
        assert_eq!(numbers, (0..count).rev().collect::<Vec<_>>());
    }
    assert_eq!(ask(vec![]), Ok(vec![]));
    let many = |count: u64| (0..count).map(id).collect::<Vec<_>>();
    assert_eq!(ask(many(2_999)).map(|ids| ids.len()), Ok(2_999));
    assert_eq!(ask(many(3_000)).map(|ids| ids.len()), Ok(3_000));
    assert_eq!(ask(many(3_001)).expect_err("too many").reject, Reject::TooManyOrders);
    assert_eq!(ask(vec![id(1), "x".to_owned()]).expect_err("bad").reject, Reject::OrderIdInvalid);
}

#[test]
fn a_scope_is_a_market_or_a_token_or_both_or_neither() {
    let mut reader = BodyReader::new();
    let mut ask = |body: &str| reader.cancel_scope(&mut body.as_bytes().to_vec());
    let market = Some(ConditionId([0xab; 32]));
    let token = Some(TokenId([[0; 31].as_slice(), &[7]].concat().try_into().expect("32 bytes")));
    let hex = format!("0x{}", "ab".repeat(32));
    for (body, expected) in [
        (String::new(), CancelScope::default()),
        ("{}".to_owned(), CancelScope::default()),
        (r#"{"market":"","asset_id":""}"#.to_owned(), CancelScope::default()),
        (format!(r#"{{"market":"{hex}","asset_id":""}}"#), CancelScope { market, token: None }),
        (r#"{"market":null}"#.to_owned(), CancelScope::default()),
        (r#"{"market":null,"assetId":"7"}"#.to_owned(), CancelScope { market: None, token }),
        (format!(r#"{{"market":"{hex}","asset_id":"7"}}"#), CancelScope { market, token }),
    ] {
        assert_eq!(ask(&body), Ok(expected), "{body}");
    }
    for bad in [
        r#"{"market":"x"}"#,
        r#"{"asset_id":"x"}"#,
        r#"{"asset_id":"7","assetId":"7"}"#,
        "[]",
        "\"\"",
        "\n",
        r#"{"Market":"7"}"#,
    ] {
        assert_eq!(ask(bad).expect_err("bad").reject, Reject::InvalidPayload, "{bad}");
    }
    // Half a scope by another name would cancel more than was meant.
    for (scope, misspelt) in [("market", "token_id"), ("market", "tokenId"), ("assetId", "Condition-ID")] {
        let value = if scope == "market" { hex.as_str() } else { "7" };
        let error = ask(&format!(r#"{{"{scope}":"{value}","{misspelt}":"7"}}"#)).expect_err("half a scope");
        assert_eq!((error.reject, error.got.as_str()), (Reject::InvalidPayload, misspelt));
    }
    assert!(ask(r#"{"asset_id":"7","reason":"x"}"#).is_ok());
    for misspelt in ["asset", "marketId", "market ", ""] {
        for beside in ["", r#""market":null,"#, r#""assetId":"","#, r#""market":"","asset_id":"","#] {
            let error = ask(&format!(r#"{{{beside}"{misspelt}":"7"}}"#)).expect_err("no scope");
            assert_eq!((error.reject, error.got.as_str()), (Reject::CancelScopeMissing, misspelt));
        }
    }
}

#[test]
fn lists_of_orders_and_tokens_are_read_to_their_limits() {
    let mut reader = BodyReader::new();
    let (mut ids, mut asks) = (Vec::new(), Vec::new());
    let mut orders = |count: u64| {
        let list: Vec<_> = (0..count).map(|number| json!({"orderId": id(number)})).collect();
        reader.order_ids(&mut json!(list).to_string().into_bytes(), &mut ids).map(|()| ids.len())
    };
    assert!(orders(0).is_err() && orders(501).is_err());
    assert_eq!((orders(1), orders(499), orders(500)), (Ok(1), Ok(499), Ok(500)));
    let mut tokens = |count: usize| {
        let list = vec![json!({"token_id": TOKEN, "side": "buy"}); count];
        reader.tokens(&mut json!(list).to_string().into_bytes(), &mut asks).map(|()| asks.len())
    };
    assert_eq!((tokens(0), tokens(499), tokens(500)), (Ok(0), Ok(499), Ok(500)));
    assert!(tokens(501).is_err());
    reader
        .tokens(&mut br#"[{"token_id":"1"},{"token_id":"2","side":"SELL"}]"#.to_vec(), &mut asks)
        .expect("good");
    assert_eq!((asks[0].side, asks[1].side), (None, Some(Side::Sell)));
    for bad in ["[{}]", r#"[{"token_id":"x"}]"#, r#"[{"token_id":"1","side":"x"}]"#, "{}"] {
        assert!(reader.tokens(&mut bad.as_bytes().to_vec(), &mut asks).is_err(), "{bad}");
    }
}

#[test]
fn a_user_act_names_every_field_that_is_wrong() {
    let mut reader = BodyReader::new();
    let act = json!({
        "wallet": MAKER,
        "conditionId": format!("0x{}", "ab".repeat(32)),
        "amount": "1000000",
        "salt": 5,
        "timestamp": "1713398400000",
        "signatureType": 0,
        "signature": format!("0x{}", "1c".repeat(65)),
    });
    let read = reader.act(&mut act.to_string().into_bytes()).expect("good");
    assert_eq!((read.amount, read.condition, read.signature_len), (1_000_000, ConditionId([0xab; 32]), 65));
    assert_ne!(read.wallet, Address::ZERO);
    assert_eq!(read.signature(), [0x1c; 65]);
    for field in ["wallet", "conditionId", "amount", "salt", "timestamp", "signatureType", "signature"] {
        for value in [json!(null), json!([]), json!("x")] {
            let mut bad = act.clone();
            bad[field] = value;
            let error = reader.act(&mut bad.to_string().into_bytes()).expect_err("bad");
            assert_eq!((error.reject, error.field), (Reject::InvalidPayload, field));
        }
    }
}

#[test]
fn small_bodies_hold_one_name() {
    let mut reader = BodyReader::new();
    let key = parse_uuid(OWNER.as_bytes());
    let mut beat = |body: &str| reader.heartbeat(&mut body.as_bytes().to_vec());
    assert_eq!(beat(""), Ok(None));
    assert_eq!(beat(r#"{"heartbeat_id":null}"#), Ok(None));
    assert_eq!(beat(r#"{"heartbeat_id":""}"#), Ok(None));
    assert_eq!(beat(&format!(r#"{{"heartbeat_id":"{OWNER}"}}"#)), Ok(key));
    for bad in [r#"{"heartbeat_id":"x"}"#, "[]", "\n"] {
        assert!(beat(bad).is_err(), "{bad}");
    }
    assert_eq!(reader.key(&mut format!(r#"{{"key":"{OWNER}"}}"#).into_bytes()).ok(), key);
    assert_eq!(reader.key(&mut b"{}".to_vec()).expect_err("bad").field, "key");
}

#[test]
fn a_replace_names_what_leaves_what_comes_and_what_if_it_is_gone() {
    let mut reader = BodyReader::new();
    let (mut ids, mut orders) = (Vec::new(), Vec::new());
    let mut replace = |body: Json| {
        let read = reader.replace(&mut body.to_string().into_bytes(), &mut ids, &mut orders);
        read.map(|anyway| (ids.len(), orders.len(), anyway)).map_err(|error| (error.reject, error.field))
    };
    let places = body();
    let cancels = |count: u64| json!((0..count).map(id).collect::<Vec<_>>());
    for (message, expected) in [
        (json!({ "place": [places] }), Ok((0, 1, false))),
        (json!({ "cancel": null, "place": [places, places], "ifGone": "refuse" }), Ok((0, 2, false))),
        (json!({ "cancel": cancels(60), "place": [places], "ifGone": "PLACE" }), Ok((60, 1, true))),
        (json!({ "cancel": [id(1), id(1), id(2)], "place": [places] }), Ok((3, 1, false))),
        // A bad order is refused with its place in the list, by whoever judges it.
        (json!({ "place": [places, 1] }), Ok((0, 2, false))),
        (json!({ "cancel": cancels(61), "place": [places] }), Err((Reject::TooManyOrders, "cancel"))),
        (json!({ "cancel": ["0x1"], "place": [places] }), Err((Reject::OrderIdInvalid, "cancel"))),
        (json!({ "cancel": "all", "place": [places] }), Err((Reject::InvalidPayload, "cancel"))),
        (json!({ "cancel": cancels(1) }), Err((Reject::InvalidPayload, "place"))),
        (json!({ "place": [] }), Err((Reject::InvalidPayload, "place"))),
        (json!({ "place": vec![places.clone(); 16] }), Err((Reject::TooManyOrders, "place"))),
        (json!({ "place": [places], "ifGone": true }), Err((Reject::InvalidPayload, "ifGone"))),
        (json!([]), Err((Reject::InvalidPayload, "body"))),
    ] {
        assert_eq!(replace(message.clone()), expected, "{message}");
    }
}

#[test]
fn a_breaker_takes_any_quantity_above_zero_and_reads_what_is_too_large_as_the_most() {
    let mut reader = BodyReader::new();
    for (quantity, read) in [
        ("1", Some(1_000_000)),
        ("\"0.000001\"", Some(1)),
        ("18446744073709", Some(18_446_744_073_709_000_000)),
        ("18446744073710", Some(u64::MAX)),
        ("99999999999999999999", Some(u64::MAX)),
        ("\"18446744073709.551616\"", Some(u64::MAX)),
        ("0", None),
        ("0.5", None),
        ("\"0.0000001\"", None),
    ] {
        let body = format!("{{\"quantity\":{quantity},\"interval_ms\":\"250\"}}");
        let breaker = reader.breaker(&mut body.into_bytes()).map_err(|error| error.field);
        assert_eq!(breaker, read.map(|shares| (Shares(shares), 250)).ok_or("quantity"), "{quantity}");
    }
    let error = reader.breaker(&mut b"{\"quantity\":1}".to_vec()).expect_err("no interval");
    assert_eq!((error.field, error.allowed), ("interval_ms", "1 to 86400000, in milliseconds"));
}

#[test]
fn a_refusal_says_the_field_the_value_and_the_rule() {
    let error = read(&with("side", Some(json!("HOLD\"\n")))).expect_err("refused");
    let mut out = Vec::new();
    crate::json::answer::order_refused(&mut crate::json::Writer::new(&mut out), &error.refusal());
    let answer: Json = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(answer["error"], "Invalid order payload");
    assert_eq!((&answer["field"], &answer["got"]), (&json!("side"), &json!("HOLD\"\n")));
    assert_eq!(answer["allowed"], "BUY or SELL");
}
