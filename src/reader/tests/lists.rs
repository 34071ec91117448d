use super::*;
use crate::journal::layout::{ExchangeMode, MarketMode, MarketText, Resolved};
use crate::json::Cursor;
use serde_json::json;

const FULL_FIELDS: [&str; 36] = [
    "enable_order_book",
    "active",
    "closed",
    "archived",
    "accepting_orders",
    "accepting_order_timestamp",
    "minimum_order_size",
    "minimum_tick_size",
    "condition_id",
    "status",
    "neg_risk",
    "market_id",
    "question_id",
    "question",
    "slug",
    "description",
    "market_slug",
    "end_date_iso",
    "game_start_time",
    "seconds_delay",
    "fpmm",
    "maker_base_fee",
    "taker_base_fee",
    "notifications_enabled",
    "neg_risk_market_id",
    "neg_risk_request_id",
    "icon",
    "image",
    "rewards",
    "is_50_50_outcome",
    "tokens",
    "tags",
    "assets_ids",
    "outcomes",
    "event",
    "raw_metadata",
];

const SIMPLIFIED_FIELDS: [&str; 15] = [
    "condition_id",
    "status",
    "question",
    "slug",
    "neg_risk",
    "active",
    "closed",
    "archived",
    "accepting_orders",
    "market_id",
    "tokens",
    "rewards",
    "assets_ids",
    "outcomes",
    "creator",
];

fn rain() -> String {
    condition_text(RAIN)
}

fn has(value: &Value, fields: &[&str]) {
    let names = names(value);
    for field in fields {
        assert!(names.contains(field), "{field} in {names:?}");
    }
}

#[test]
fn a_market_says_what_was_imported_and_what_is_so_now() {
    let mut exchange = Exchange::opened();
    let market = exchange.reads(&format!("/markets/{}", rain()));
    has(&market, &FULL_FIELDS);
    for (name, value) in [
        ("question", json!("Will it rain?")),
        ("market_slug", json!("rain")),
        ("end_date_iso", json!("2025-12-31T12:00:00.000Z")),
        ("game_start_time", json!(null)),
        ("accepting_order_timestamp", json!(null)),
        ("fpmm", json!("")),
        ("neg_risk_market_id", json!("")),
        ("minimum_order_size", json!(5)),
        ("minimum_tick_size", json!(0.01)),
        ("taker_base_fee", json!(441)),
        ("maker_base_fee", json!(0)),
        ("market_id", json!(1_000)),
        ("tags", json!(["Sky"])),
        ("assets_ids", json!(["300", "301"])),
        ("outcomes", json!(["Yes", "No"])),
        ("rewards", json!({"rates": [], "min_size": 0, "max_spread": 0})),
        (
            "event",
            json!({"id": "77", "slug": "weather", "title": "Weather", "ticker": "wx", "description": "All of it"}),
        ),
    ] {
        assert_eq!(market[name], value, "{name}");
    }
    assert_eq!(market["raw_metadata"]["slug"], "rain");
}

#[test]
fn a_market_without_an_end_shows_that_of_its_event() {
    let mut exchange = Exchange::opened();
    let dated = r#"{"id":"77","endDate":"2027-05-01T00:00:00Z"}"#;
    for (event, market, end) in [
        (r#"{"id":"77"}"#, "{}", json!(null)),
        (dated, "{}", json!("2027-05-01T00:00:00.000Z")),
        (dated, r#"{"endDate":"2027-02-01T00:00:00Z"}"#, json!("2027-02-01T00:00:00.000Z")),
        (dated, r#"{"endDate":"soon"}"#, json!("2027-05-01T00:00:00.000Z")),
    ] {
        exchange.says(EventText { time: TimeMs(1), event: 0, text: event.into() });
        exchange.says(MarketText { time: TimeMs(1), market: RAIN, event: Some(0), text: market.into() });
        let one = exchange.reads(&format!("/markets/{}", rain()));
        assert_eq!(one["end_date_iso"], end, "{event} {market}");
        let (rows, _) = exchange.lists(None, "/markets", |_| {});
        let listed = rows.iter().find(|row| row["condition_id"] == one["condition_id"]);
        assert_eq!(listed.expect("it is listed")["end_date_iso"], end, "{event} {market}");
    }
}

#[test]
fn a_tokens_price_is_the_best_that_is_known() {
    let mut exchange = Exchange::opened();
    let target = format!("/markets/{}", rain());
    let prices = |exchange: &mut Exchange| {
        let market = exchange.reads(&target);
        let token = |index: usize| {
            let token = &market["tokens"][index];
            (token["price"].as_f64(), token["winner"].as_bool())
        };
        (token(0), token(1))
    };
    let said = |zero, one| ((Some(zero), Some(false)), (Some(one), Some(false)));
    assert_eq!(prices(&mut exchange), said(0.2, 0.8), "as imported");
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    let taker = exchange.order(BOB, Side::Buy, Outcome::One, 60, 5);
    exchange.fills(taker, &[(bid, 5)]);
    assert_eq!(prices(&mut exchange), said(0.4, 0.6), "the last trade");
    exchange.rests(BOB, Side::Buy, Outcome::One, 55, 10);
    assert_eq!(prices(&mut exchange), said(0.425, 0.575), "the middle of the book");
    let time = exchange.time();
    exchange.says(Resolved { time, market: RAIN, payout: crate::domain::Payout::new(0).expect("a payout") });
    assert_eq!(prices(&mut exchange), ((Some(0.0), Some(false)), (Some(1.0), Some(true))), "the payout");
    let time = exchange.time();
    let text = "not JSON".to_owned();
    exchange.says(MarketText { time, market: SNOW, event: None, text });
    let snow = exchange.reads("/markets?next_cursor=MQ==");
    assert_eq!(snow["data"][0]["tokens"][0]["price"], 0.5, "nothing is known");
    assert_eq!(snow["data"][0]["raw_metadata"], json!({}));
}

#[test]
fn a_cursor_may_name_the_largest_offset() {
    let mut exchange = Exchange::opened();
    for cents in [10, 20, 30] {
        exchange.rests(ALICE, Side::Buy, Outcome::Zero, cents, 10);
    }
    // Behind nothing, and behind everything, whichever way the list goes.
    let rows = [0, u64::MAX].map(|position| {
        let mut cursor = Vec::new();
        Cursor::From { offset: u64::MAX, position: Some(Position(position)) }.push(&mut cursor);
        let cursor = String::from_utf8(cursor).expect("base64");
        let page = exchange.answers(
            caller(ALICE, Dialect::Poly),
            &format!("GET /data/orders?next_cursor={cursor}"),
            "",
        );
        page["data"].as_array().expect("rows").len()
    });
    assert_eq!(rows.iter().sum::<usize>(), 3, "{rows:?}");
}

#[test]
fn flags_follow_the_modes_of_market_and_exchange() {
    let mut exchange = Exchange::opened();
    let target = format!("/markets/{}", rain());
    for (market, whole, status, accepting, closed) in [
        (Mode::Open, Mode::Open, "active", true, false),
        (Mode::PostOnly, Mode::Open, "post_only", true, false),
        (Mode::CancelOnly, Mode::Open, "paused", false, false),
        (Mode::Open, Mode::CancelOnly, "active", false, false),
        (Mode::Closed, Mode::Open, "closed", false, true),
    ] {
        let time = exchange.time();
        exchange.says(MarketMode { time, market: RAIN, mode: market });
        exchange.says(ExchangeMode { time, mode: whole });
        let answer = exchange.reads(&target);
        assert_eq!(answer["status"], status);
        assert_eq!(answer["accepting_orders"], accepting, "{market:?} {whole:?}");
        assert_eq!(answer["closed"], closed);
        assert_eq!(answer["enable_order_book"], !closed);
    }
}

#[test]
fn lists_have_their_own_forms_and_sampling_is_for_rewards() {
    let mut exchange = Exchange::opened();
    for (path, fields, slugs) in [
        ("/markets", &FULL_FIELDS[..], vec!["rain", "snow"]),
        ("/simplified-markets", &SIMPLIFIED_FIELDS[..], vec!["rain", "snow"]),
        ("/sampling-markets", &FULL_FIELDS[..], vec!["snow"]),
        ("/sampling-simplified-markets", &SIMPLIFIED_FIELDS[..], vec!["snow"]),
    ] {
        let page = exchange.reads(path);
        assert_eq!(names(&page), ["data", "next_cursor", "limit", "count"]);
        assert_eq!((page["next_cursor"].as_str(), page["limit"].as_u64()), (Some("LTE="), Some(500)));
        let rows = page["data"].as_array().expect("rows");
        assert_eq!(column(rows, "slug"), slugs, "{path}");
        has(&rows[0], fields);
        assert_eq!(names(&rows[0]).len() < 20, path.contains("simplified"), "{path}");
    }
    let snow = &exchange.reads("/sampling-markets")["data"][0];
    assert_eq!(
        snow["rewards"],
        json!({"rates": [{"asset_address": "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174",
               "rewards_daily_rate": 30}], "min_size": 20, "max_spread": 3.5})
    );
    let time = exchange.time();
    exchange.says(MarketMode { time, market: SNOW, mode: Mode::CancelOnly });
    for path in ["/sampling-markets", "/sampling-simplified-markets"] {
        assert_eq!(exchange.reads(path)["data"], json!([]), "nobody can quote there");
    }
}

#[test]
fn restricted_markets_are_counted_and_the_first_of_them_are_named() {
    const NAMED: u64 = 500;
    let mut exchange = Exchange::opened();
    for (number, mode) in (1..=NAMED + 1).zip([Mode::PostOnly, Mode::CancelOnly].into_iter().cycle()) {
        let market = MarketNo(1 + u32::try_from(number).expect("small"));
        let added = exchange.market_added(market, "{}");
        // It came so, and nobody changed its mode since.
        exchange.says(MarketAdded { mode, ..added });
        if [1, NAMED, NAMED + 1].contains(&number) {
            let ready = exchange.reads("/ready");
            let named = ready["markets"].as_array().expect("markets");
            assert_eq!((named.len() as u64, &ready["markets_count"]), (number.min(NAMED), &json!(number)));
            assert_eq!(named[0]["mode"], "post-only");
        }
    }
}

#[test]
fn market_lists_join_over_pages_while_markets_are_added() {
    let mut exchange = Exchange::opened();
    for number in 2..1_000 {
        exchange.open_market(MarketNo(number), &format!("{{\"slug\":\"m{number}\"}}"));
    }
    let mut next = 1_000;
    let (rows, pages) = exchange.lists(None, "/simplified-markets", |exchange| {
        exchange.open_market(MarketNo(next), "{}");
        next += 1;
    });
    let ids: Vec<_> = rows.iter().map(|row| row["market_id"].as_u64().expect("an id")).collect();
    assert_eq!(ids, (1_000..1_000 + ids.len() as u64).collect::<Vec<_>>());
    assert_eq!((ids.len(), pages), (1_002, 3));
}

#[test]
fn a_page_of_long_texts_ends_at_a_mebibyte() {
    let mut exchange = Exchange::opened();
    let text = format!("{{\"description\":\"{}\"}}", "x".repeat(100_000));
    for number in 2..20 {
        exchange.open_market(MarketNo(number), &text);
    }
    let (status, page) = exchange.sends(None, "GET /markets", "");
    assert!(status == 200 && page.len() < (1 << 20) + 200, "{}", page.len());
    let (rows, pages) = exchange.lists(None, "/markets", |_| {});
    assert_eq!((rows.len(), pages), (20, 4), "each row holds the text twice");
}

#[test]
fn terms_are_the_markets_own() {
    let mut exchange = Exchange::opened();
    let fee = json!({
        "base_fee": 441,
        "fd": {"r": 0.0441, "e": 1, "to": true},
        "fee_schedule": {"rate": 0.0441, "exponent": 1, "takerOnly": true, "rebateRate": 0, "category": "",
                         "version": 0, "source": "local"}
    });
    for (target, answer) in [
        ("/", json!("OK")),
        ("/ok", json!("OK")),
        ("/time", json!(1_703_875_200)),
        ("/version", json!({"version": 2})),
        ("/tick-size?token_id=301", json!({"minimum_tick_size": 0.01})),
        ("/neg-risk?token_id=300", json!({"neg_risk": false})),
        ("/neg-risk?token_id=311", json!({"neg_risk": true})),
        ("/fee-rate?token_id=300", fee.clone()),
        ("/fee-rate/301", fee),
        (
            "/markets-by-token/301",
            json!({"condition_id": rain(), "primary_token_id": "300", "secondary_token_id": "301", "creator": null}),
        ),
        (
            "/fees/builder-fees/any",
            json!({"builder_maker_flat_fee_bps": 0, "builder_taker_fee_share_bps": 0,
                   "builder_maker_fee_rate_bps": 0, "builder_taker_fee_rate_bps": 0}),
        ),
    ] {
        assert_eq!(exchange.reads(target), answer, "{target}");
    }
    let info = exchange.reads(&format!("/clob-markets/{}", rain()));
    assert_eq!(info["t"], json!([{"t": "300", "o": "Yes"}, {"t": "301", "o": "No"}]));
    assert_eq!((&info["c"], &info["mts"], &info["mos"]), (&json!(rain()), &json!(0.01), &json!(5)));
    has(
        &info,
        &[
            "gst", "r", "creator", "nr", "fd", "mbf", "tbf", "rfqe", "itode", "ibce", "oas", "ao", "sd",
            "cbos", "aot",
        ],
    );
}
