use super::*;
use crate::auth::derive;
use crate::domain::{Reject, TradeId};
use crate::journal::layout::{Frozen, Removal, Resolved, TickChanged, WalletLinked};
use crate::json::Cursor;
use serde_json::json;

const SERVICE: Dialect = Dialect::Service;
const KUEST: Dialect = Dialect::Kuest;
const POLY: Dialect = Dialect::Poly;

/// The fields that the strict clients' models of an order need, under both families of names.
const ORDER_FIELDS: [&str; 22] = [
    "associateTrades",
    "associate_trades",
    "id",
    "status",
    "market",
    "originalSize",
    "original_size",
    "outcome",
    "makerAddress",
    "maker_address",
    "owner",
    "price",
    "side",
    "sizeMatched",
    "size_matched",
    "assetId",
    "asset_id",
    "expiration",
    "order_type",
    "createdAt",
    "created_at",
    "reason",
];

/// The fields that the strict clients' models of a trade need.
const TRADE_FIELDS: [&str; 19] = [
    "id",
    "taker_order_id",
    "market",
    "asset_id",
    "side",
    "size",
    "fee_rate_bps",
    "price",
    "status",
    "match_time",
    "last_update",
    "outcome",
    "maker_address",
    "owner",
    "transaction_hash",
    "bucket_index",
    "maker_orders",
    "type",
    "trader_side",
];

fn id_text(exchange: &Exchange, order: Position) -> String {
    let id = exchange.reader.ledger.order_at(order).expect("an order").id;
    id.0.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Alice bids 40 and her safe 45; Bob takes all 8 of the second and rests 12.
fn traded() -> (Exchange, [Position; 3]) {
    let mut exchange = Exchange::opened();
    let low = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    let high = exchange.rests(ALICES_SAFE, Side::Buy, Outcome::Zero, 45, 8);
    let taker = exchange.order(BOB, Side::Buy, Outcome::One, 55, 20);
    let taker = exchange.fills(taker, &[(high, 8)]);
    (exchange, [low, high, taker])
}

#[test]
fn an_order_is_shown_wrapped_and_flat_with_every_name_that_clients_read() {
    let (mut exchange, [_, _, taker]) = traded();
    let line = format!("GET /data/order/{}", id_text(&exchange, taker));
    let answer = exchange.answers(caller(BOB, POLY), &line, "");
    assert_eq!(names(&answer["order"]), ORDER_FIELDS);
    assert_eq!(names(&answer)[1..], ORDER_FIELDS);
    for name in ORDER_FIELDS {
        assert_eq!(answer[name], answer["order"][name]);
    }
    let placed_ms = exchange.now;
    for (name, value) in [
        ("status", json!("LIVE")),
        ("market", json!(condition_text(RAIN))),
        ("originalSize", json!("20")),
        ("size_matched", json!("8")),
        ("outcome", json!("No")),
        ("asset_id", json!(RAIN_NO)),
        ("maker_address", json!(address_text(BOB))),
        ("price", json!("0.55")),
        ("side", json!("BUY")),
        ("expiration", json!("0")),
        ("order_type", json!("GTC")),
        ("owner", json!("01010101-0101-0101-0101-010101010101")),
        ("created_at", json!(placed_ms / 1_000)),
        ("createdAt", json!("2023-12-29T18:40:03.000Z")),
        ("reason", json!("")),
    ] {
        assert_eq!(answer[name], value, "{name}");
    }
    assert_eq!(answer["associate_trades"].as_array().map(Vec::len), Some(1));
}

#[test]
fn families_differ_in_status_owner_times_and_the_last_cursor_only() {
    let (mut exchange, _) = traded();
    for (dialect, status, owner, cursor, trade_status, time) in [
        (SERVICE, "live", "01010101-0101-0101-0101-010101010101", "", "MATCHED", "2023-12-29T18:40:03.000Z"),
        (KUEST, "live", "01040G2081040G2081040G2081", "LTE=", "CONFIRMED", "1703875203"),
        (POLY, "LIVE", "01010101-0101-0101-0101-010101010101", "LTE=", "CONFIRMED", "1703875203"),
    ] {
        let orders = exchange.answers(caller(BOB, dialect), "GET /data/orders", "");
        assert_eq!(orders["next_cursor"], cursor);
        assert_eq!(orders["limit"], 100);
        let order = &orders["data"][0];
        assert_eq!((order["status"].as_str(), order["owner"].as_str()), (Some(status), Some(owner)));
        let trades = exchange.answers(caller(BOB, dialect), "GET /data/trades", "");
        assert_eq!(trades["next_cursor"], "LTE=");
        let trade = &trades["data"][0];
        assert_eq!(trade["owner"], "01010101-0101-0101-0101-010101010101", "a UUID in every family");
        assert_eq!(
            (trade["status"].as_str(), trade["match_time"].as_str()),
            (Some(trade_status), Some(time))
        );
    }
}

#[test]
fn both_sides_of_a_trade_see_one_record_and_their_own_part() {
    let (mut exchange, [_, maker, taker]) = traded();
    let mut seen = Vec::new();
    for (principal, role) in [(BOB, "TAKER"), (ALICE, "MAKER")] {
        let trades = exchange.answers(caller(principal, POLY), "GET /data/trades", "");
        let mut trade = trades["data"][0].clone();
        assert_eq!(names(&trade), TRADE_FIELDS);
        assert_eq!((trade["type"].as_str(), trade["trader_side"].as_str()), (Some(role), Some(role)));
        trade["type"].take();
        trade["trader_side"].take();
        seen.push(trade);
    }
    assert_eq!(seen[0], seen[1]);
    let trade = &seen[0];
    for (name, value) in [
        ("taker_order_id", json!(id_text(&exchange, taker))),
        ("asset_id", json!(RAIN_NO)),
        ("side", json!("BUY")),
        ("size", json!("8")),
        ("price", json!("0.55")),
        ("fee_rate_bps", json!("441")),
        ("bucket_index", json!(0)),
        ("maker_address", json!(address_text(BOB))),
        ("outcome", json!("No")),
    ] {
        assert_eq!(trade[name], value, "{name}");
    }
    assert_eq!(
        trade["maker_orders"],
        json!([{
            "order_id": id_text(&exchange, maker), "maker_address": address_text(ALICES_SAFE),
            "owner": "00000000-0000-0000-0000-000000000000", "matched_amount": "8", "fee_rate_bps": "0",
            "price": "0.45", "asset_id": RAIN_YES, "outcome": "Yes", "side": "BUY"
        }])
    );
    let position = format!("{:016x}", taker.0);
    assert_eq!(trade["transaction_hash"], format!("0x6f7574637279{position}{}", "07".repeat(18)));
    let order =
        exchange.answers(caller(BOB, POLY), &format!("GET /data/order/{}", id_text(&exchange, taker)), "");
    assert_eq!(order["associate_trades"], json!([trade["id"]]));
    assert!(exchange.answers(caller(CAROL, POLY), "GET /data/trades", "")["data"] == json!([]));
}

#[test]
fn a_trade_over_several_prices_has_their_mean_rounded_against_the_taker() {
    for (side, price) in [(Side::Buy, "0.553334"), (Side::Sell, "0.446666")] {
        let mut exchange = Exchange::opened();
        exchange.splits(BOB, 50);
        exchange.splits(ALICE, 50);
        let cents = |cents| if side == Side::Buy { cents } else { 100 - cents };
        let best = exchange.rests(ALICE, side.opposite(), Outcome::Zero, cents(55), 20);
        let next = exchange.rests(ALICE, side.opposite(), Outcome::Zero, cents(56), 10);
        let taker = exchange.order(BOB, side, Outcome::Zero, cents(56), 30);
        exchange.fills(taker, &[(best, 20), (next, 10)]);
        let trades = exchange.answers(caller(BOB, POLY), "GET /data/trades", "");
        assert_eq!(trades["count"], 1, "one trade for one taker");
        assert_eq!(trades["data"][0]["price"], price);
        assert_eq!(trades["data"][0]["maker_orders"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn what_is_after_a_second_is_after_all_of_it() {
    let mut exchange = Exchange::opened();
    let maker = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    exchange.now += 250;
    let taker = exchange.order(BOB, Side::Buy, Outcome::One, 60, 10);
    exchange.fills(taker, &[(maker, 10)]);
    let (at_ms, at) = (exchange.now, exchange.now / 1_000);
    assert!(!at_ms.is_multiple_of(1_000), "within a second");
    let bounds = [("after", at, 0), ("after", at - 1, 1), ("after", at_ms, 0), ("after", at_ms - 1, 1)];
    for (bound, time, count) in bounds.into_iter().chain([("before", at, 0), ("before", at + 1, 1)]) {
        let page = exchange.answers(caller(BOB, POLY), &format!("GET /data/trades?{bound}={time}"), "");
        assert_eq!(page["count"], count, "{bound}={time}");
    }
}

#[test]
fn every_filter_of_trades_narrows_and_none_widens() {
    let (mut exchange, [_, _, taker]) = traded();
    let id = TradeId::new(taker).uuid();
    let uuid = uuid_text(id);
    let at = exchange.now / 1_000;
    let rain = condition_text(RAIN);
    let snow = condition_text(SNOW);
    let (bob, safe, carol) = (address_text(BOB), address_text(ALICES_SAFE), address_text(CAROL));
    for (query, alice, bobs) in [
        (format!("id={uuid}"), 1, 1),
        ("id=00000000-0000-0000-0000-000000000001".to_owned(), 0, 0),
        (format!("market={rain}"), 1, 1),
        (format!("market={snow}"), 0, 0),
        (format!("market=0x{}", "ff".repeat(32)), 0, 0),
        ("asset_id=300".to_owned(), 1, 0),
        ("asset_id=301".to_owned(), 0, 1),
        ("asset_id=999".to_owned(), 0, 0),
        (format!("taker={bob}"), 1, 1),
        (format!("taker={safe}"), 0, 0),
        (format!("maker={safe}"), 1, 1),
        (format!("maker={}", safe.to_uppercase().replace("0X", "0x")), 1, 1),
        (format!("maker={bob}"), 0, 0),
        (format!("maker_address={bob}"), 1, 1),
        (format!("maker_address={safe}"), 1, 1),
        (format!("maker={safe}&maker_address={bob}"), 1, 1),
        (format!("maker={safe}&maker_address={carol}"), 0, 0),
        (format!("maker={carol}"), 0, 0),
        (format!("before={at}"), 0, 0),
        (format!("before={}", at + 1), 1, 1),
        (format!("after={at}"), 0, 0),
        (format!("after={}", at - 1), 1, 1),
        (format!("after={}", (at - 1) * 1_000), 1, 1),
        (format!("after={}&before={}&maker={safe}&asset_id=300", at - 1, at + 1), 1, 0),
        ("market=&asset_id=&maker=&taker=&id=&before=&after=&next_cursor=".to_owned(), 1, 1),
        ("next_cursor=LTE%3D".to_owned(), 0, 0),
    ] {
        for (principal, count) in [(ALICE, alice), (BOB, bobs)] {
            let page = exchange.answers(caller(principal, POLY), &format!("GET /data/trades?{query}"), "");
            assert_eq!(page["count"], count, "{query} for {principal:?}");
            assert_eq!(names(&page), ["data", "next_cursor", "limit", "count"]);
        }
    }
}

#[test]
fn every_filter_of_orders_narrows_and_only_live_ones_are_listed() {
    let (mut exchange, [low, high, _]) = traded();
    let (live, gone) = (id_text(&exchange, low), id_text(&exchange, high));
    let behind = |position| {
        let mut cursor = Vec::new();
        Cursor::From { offset: 1, position: Some(Position(position)) }.push(&mut cursor);
        String::from_utf8(cursor).expect("base64")
    };
    for (query, count) in [
        (String::new(), 1),
        (format!("id={live}"), 1),
        (format!("id={live}&market={}", condition_text(SNOW)), 0),
        (format!("id={live}&next_cursor=MQ=="), 0),
        (format!("id={live}&next_cursor={}", behind(low.0 + 1)), 1),
        (format!("id={live}&next_cursor={}", behind(low.0)), 0),
        (format!("id={gone}"), 0),
        (format!("market={}", condition_text(RAIN)), 1),
        (format!("market={}", condition_text(SNOW)), 0),
        ("asset_id=300".to_owned(), 1),
        ("asset_id=301".to_owned(), 0),
        ("next_cursor=LTE=".to_owned(), 0),
    ] {
        let page = exchange.answers(caller(ALICE, SERVICE), &format!("GET /data/orders?{query}"), "");
        assert_eq!(page["count"], count, "{query}");
    }
}

#[test]
fn a_fak_buy_of_whose_amount_rounding_left_a_millionth_is_filled() {
    let mut exchange = Exchange::opened();
    exchange.splits(BOB, 100);
    for (left, reason) in [(0, "filled"), (1, "filled"), (2, "rest_not_filled")] {
        let maker = exchange.rests(BOB, Side::Sell, Outcome::Zero, 50, 10);
        let mut taker = exchange.order(ALICE, Side::Buy, Outcome::Zero, 50, 10);
        taker.order_type = OrderType::Fak;
        taker.fields.maker_amount += left;
        let taker = exchange.fills(taker, &[(maker, 10)]);
        let line = format!("GET /data/order/{}", id_text(&exchange, taker));
        assert_eq!(exchange.answers(caller(ALICE, POLY), &line, "")["reason"], reason, "{left}");
    }
}

#[test]
fn each_end_of_an_order_has_its_word_and_its_reason() {
    let mut exchange = Exchange::opened();
    exchange.splits(BOB, 100);
    let cancelled = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    exchange.cancels(&[cancelled]);
    let off_grid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 41, 10);
    let time = exchange.time();
    exchange.says(TickChanged {
        time,
        market: RAIN,
        tick: Tick::new(1_000).expect("a tick"),
        removed: vec![off_grid],
    });
    let filled = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 50, 10);
    let stopped_by = exchange.rests(BOB, Side::Buy, Outcome::Zero, 40, 10);
    let mut taker = exchange.order(BOB, Side::Sell, Outcome::Zero, 40, 20);
    taker.open = Shares(10 * SHARE);
    taker.stopped = Some(Reject::SelfTradeStopped);
    taker.removed.push(Removal { order: stopped_by, reason: RemovalReason::SelfTrade });
    let stopped = {
        let mut taker = taker;
        taker.order_type = OrderType::Fak;
        exchange.fills(taker, &[(filled, 10)])
    };
    let mut killed = exchange.order(BOB, Side::Buy, Outcome::Zero, 40, 10);
    killed.order_type = OrderType::Fok;
    killed.result = PlacedResult::Killed(Reject::FokNotFilled);
    killed.open = Shares::ZERO;
    let killed = exchange.says(killed);
    let resolved = exchange.rests(ALICE, Side::Buy, Outcome::One, 30, 10);
    let time = exchange.time();
    let payout = crate::domain::Payout::new(1_000_000).expect("a payout");
    exchange.says(Resolved { time, market: RAIN, payout });
    for (principal, order, status, reason) in [
        (ALICE, cancelled, "canceled", "cancelled"),
        (ALICE, off_grid, "canceled", "tick_changed"),
        (ALICE, filled, "matched", "filled"),
        (BOB, stopped_by, "canceled", "self_trade"),
        (BOB, stopped, "canceled", "self_trade"),
        (BOB, killed, "canceled", "fok_not_filled"),
        (ALICE, resolved, "canceled_market_resolved", "market_resolved"),
    ] {
        let line = format!("GET /data/order/{}", id_text(&exchange, order));
        for (dialect, status) in [(KUEST, status.to_owned()), (POLY, status.to_uppercase())] {
            let answer = exchange.answers(caller(principal, dialect), &line, "");
            assert_eq!(
                (answer["status"].as_str(), answer["reason"].as_str()),
                (Some(status.as_str()), Some(reason))
            );
        }
    }
}

#[test]
fn no_order_is_matched_for_more_than_it_asked_for() {
    let mut exchange = Exchange::opened();
    exchange.splits(ALICE, 100);
    let offer = exchange.rests(ALICE, Side::Sell, Outcome::Zero, 40, 10);
    // For 4 USDC at .50, of which it was signed for 8 shares; it gets the 10 at .40.
    let mut taker = exchange.order(BOB, Side::Buy, Outcome::Zero, 50, 8);
    taker.order_type = OrderType::Fok;
    taker.open = Shares(10 * SHARE);
    let taker = exchange.fills(taker, &[(offer, 10)]);
    let answer =
        exchange.answers(caller(BOB, POLY), &format!("GET /data/order/{}", id_text(&exchange, taker)), "");
    for name in ["originalSize", "original_size", "sizeMatched", "size_matched"] {
        assert_eq!(answer[name], "10", "{name}");
    }
}

#[test]
fn several_orders_are_answered_one_by_one_and_strangers_are_not_found() {
    let (mut exchange, [low, high, taker]) = traded();
    let ids = [low, high, taker].map(|order| id_text(&exchange, order));
    let body =
        format!(r#"[{{"orderId":"{}"}},{{"orderId":"{}"}},{{"orderId":"{}"}}]"#, ids[0], ids[1], ids[2]);
    let answer = exchange.answers(caller(ALICE, POLY), "POST /data/orders", &body);
    let rows = answer.as_array().expect("rows");
    assert_eq!(column(rows, "order_id"), ids);
    assert_eq!(
        rows.iter().map(|row| row["status"].as_u64()).collect::<Vec<_>>(),
        [Some(200), Some(200), Some(404)]
    );
    assert_eq!(names(&rows[0]["order"]), ORDER_FIELDS);
    assert_eq!(rows[2]["error"], "order not found");
}

#[test]
fn the_signature_type_picks_the_wallet_of_a_balance() {
    let (mut exchange, _) = traded();
    exchange.splits(CAROLS_PROXY, 100);
    for (principal, query, balance) in [
        (ALICE, "asset_type=COLLATERAL", "1000000000"),
        (ALICE, "asset_type=collateral", "1000000000"),
        (ALICE, "asset_type=COLLATERAL&signature_type=2", "996400000"),
        (ALICE, "asset_type=COLLATERAL&signature_type=1", "0"),
        (ALICE, "asset_type=CONDITIONAL&token_id=300&signature_type=2", "8000000"),
        (ALICE, "asset_type=CONDITIONAL&token_id=301&signature_type=2", "0"),
        (BOB, "asset_type=COLLATERAL&signature_type=3", "1000000000"),
        (CAROL, "asset_type=COLLATERAL&signature_type=3", "900000000"),
        (BOB, "asset_type=CONDITIONAL&token_id=301&signature_type=0", "8000000"),
    ] {
        for path in ["/balance-allowance", "/balance-allowance/update"] {
            let answer = exchange.answers(caller(principal, POLY), &format!("GET {path}?{query}"), "");
            assert_eq!(answer["balance"], balance, "{query}");
            assert_eq!(names(&answer["allowances"]), [format!("0x{}", "ee".repeat(20))]);
        }
    }
}

#[test]
fn a_derived_wallet_that_was_credited_before_its_owner_came_is_found_by_its_signature_type() {
    let (mut exchange, _) = traded();
    let owner = address(BOB);
    for (number, derived, amount, signature_type) in
        [(6, derive::proxy(&owner), 30, 1), (7, derive::safe(&owner), 50, 2)]
    {
        let query = format!("GET /balance-allowance?asset_type=COLLATERAL&signature_type={signature_type}");
        assert_eq!(exchange.answers(caller(BOB, POLY), &query, "")["balance"], "0");
        let (time, wallet) = (exchange.time(), WalletNo(number));
        let kind = WalletKind::Deposit;
        exchange.says(WalletAdded { time, wallet, address: derived, kind, principal: None });
        exchange.says(Money {
            time,
            wallet,
            direction: MoneyDirection::Credit,
            amount: Collateral(amount),
            reference: format!("early {number}"),
        });
        exchange.says(WalletLinked { time, wallet, principal: BOB });
        let balance = amount.to_string();
        assert_eq!(exchange.answers(caller(BOB, POLY), &query, "")["balance"], balance, "{query}");
    }
}

#[test]
fn small_account_routes_say_what_is_so() {
    let (mut exchange, [low, ..]) = traded();
    let id = id_text(&exchange, low);
    let scoring = format!("GET /order-scoring?order_id={id}");
    for (line, body, answer) in [
        (scoring.as_str(), String::new(), json!({"scoring": false})),
        ("POST /orders-scoring", format!("[\"{id}\"]"), json!({id.as_str(): false})),
        ("GET /notifications?signature_type=0", String::new(), json!([])),
        (
            "GET /auth/ban-status/closed-only",
            String::new(),
            json!({"closed_only": false, "closedOnly": false}),
        ),
        (
            "GET /data/pre-migration-orders",
            String::new(),
            json!({"data": [], "next_cursor": "LTE=", "limit": 100, "count": 0}),
        ),
    ] {
        assert_eq!(exchange.answers(caller(ALICE, POLY), line, &body), answer, "{line}");
    }
    let time = exchange.time();
    exchange.says(Frozen { time, principal: ALICE, frozen: true });
    let answer = exchange.answers(caller(ALICE, POLY), "GET /auth/ban-status/closed-only", "");
    assert_eq!(answer["closed_only"], true);
}

#[test]
fn pages_neither_repeat_nor_hide_a_row_while_others_come_and_go() {
    let mut exchange = Exchange::opened();
    let placed: Vec<_> = (0..250).map(|_| exchange.rests(ALICE, Side::Buy, Outcome::Zero, 1, 10)).collect();
    let mut expected: Vec<_> = placed.iter().rev().map(|&order| id_text(&exchange, order)).collect();
    let shown = placed[249];
    let mut turns = 0;
    let (rows, pages) = exchange.lists(Some(caller(ALICE, POLY)), "/data/orders", |exchange| {
        turns += 1;
        exchange.rests(ALICE, Side::Buy, Outcome::Zero, 2, 10);
        if turns == 1 {
            exchange.cancels(&[shown, placed[0]]);
        }
    });
    expected.pop();
    assert_eq!(column(&rows, "id"), expected, "what was live all the time, once each");
    assert_eq!(pages, 3);

    let first = exchange.answers(caller(ALICE, POLY), "GET /data/orders?next_cursor=MTAw", "");
    assert_eq!(first["count"], 100, "a plain offset is understood");
}

#[test]
fn pages_of_trades_are_whole_at_every_length_around_a_page() {
    for count in [99, 100, 101, 201] {
        let mut exchange = Exchange::opened();
        let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 1, count);
        let mut expected = Vec::new();
        for _ in 0..count {
            let taker = exchange.order(BOB, Side::Buy, Outcome::One, 99, 1);
            let taker = exchange.fills(taker, &[(bid, 1)]);
            expected.insert(0, id_text(&exchange, taker));
        }
        for principal in [ALICE, BOB] {
            let (rows, pages) = exchange.lists(Some(caller(principal, KUEST)), "/data/trades", |_| {});
            assert_eq!(column(&rows, "taker_order_id"), expected);
            assert_eq!(pages as u64, count.div_ceil(100));
        }
    }
}

#[test]
fn an_order_names_the_newest_of_its_trades_if_there_are_very_many() {
    const NAMED: usize = 1_000;
    let mut exchange = Exchange::opened();
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 1, NAMED as u64 + 2);
    let trades: Vec<String> = (0..NAMED + 2)
        .map(|_| {
            let taker = exchange.order(BOB, Side::Buy, Outcome::One, 99, 1);
            uuid_text(TradeId::new(exchange.fills(taker, &[(bid, 1)])).uuid())
        })
        .collect();
    let line = format!("GET /data/order/{}", id_text(&exchange, bid));
    let answer = exchange.answers(caller(ALICE, POLY), &line, "");
    for name in ["associateTrades", "associate_trades"] {
        assert_eq!(answer[name], json!(trades[2..]), "{name}");
    }
}
