use super::*;
use crate::reader::account::ROWS_MAX;
use serde_json::json;

/// Alice has two wallets with orders in two markets.
fn trading() -> Exchange {
    let mut exchange = Exchange::opened();
    exchange.splits(ALICE, 100);
    exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    exchange.rests(ALICE, Side::Buy, Outcome::One, 30, 10);
    exchange.rests(ALICE, Side::Sell, Outcome::Zero, 90, 25);
    exchange.rests(ALICES_SAFE, Side::Buy, Outcome::Zero, 45, 8);
    let mut snow = exchange.order(ALICE, Side::Buy, Outcome::One, 50, 10);
    snow.market = SNOW;
    exchange.says(snow);
    exchange
}

#[test]
fn what_is_available_follows_the_funding_rule() {
    let mut exchange = trading();
    let account = exchange.answers(caller(ALICE, Dialect::Poly), "GET /account", "");
    for (pointer, value) in [
        ("/address", json!(address_text(ALICE))),
        ("/mode", json!("open")),
        ("/closed_only", json!(false)),
        ("/sequence", json!(5)),
        ("/balances/0/wallet", json!(address_text(ALICE))),
        ("/balances/0/signature_type", json!(0)),
        ("/balances/0/balance", json!("900")),
        ("/balances/0/reserved", json!("0")),
        // Four and three in one market, five in the other: the larger sum counts.
        ("/balances/0/open_buys", json!("12")),
        ("/balances/0/available", json!("893")),
        ("/balances/1/wallet", json!(address_text(ALICES_SAFE))),
        ("/balances/1/signature_type", json!(2)),
        ("/balances/1/available", json!("996.4")),
        ("/positions/0/token_id", json!(RAIN_YES)),
        ("/positions/0/size", json!("100")),
        ("/positions/0/open_sells", json!("25")),
        ("/positions/0/available", json!("75")),
        ("/positions/0/open_buys", json!("4")),
        ("/positions/1/token_id", json!(RAIN_NO)),
        ("/positions/1/outcome", json!("No")),
        ("/positions/1/open_buys", json!("3")),
        ("/positions/2/token_id", json!("311")),
        ("/positions/2/size", json!("0")),
        ("/positions/2/open_buys", json!("5")),
        ("/positions/3/wallet", json!(address_text(ALICES_SAFE))),
        ("/positions/3/open_buys", json!("3.6")),
    ] {
        assert_eq!(account.pointer(pointer), Some(&value), "{pointer}: {account:#}");
    }
    for (list, rows) in [("orders", 5), ("balances", 2), ("positions", 4)] {
        assert_eq!(account[list].as_array().map(Vec::len), Some(rows), "{list}");
    }
}

#[test]
fn an_account_with_more_than_one_answer_holds_is_asked_for_by_market() {
    let mut exchange = trading();
    let rows = |exchange: &mut Exchange, line: &str| {
        let (status, text) = exchange.sends(caller(ALICE, Dialect::Poly), line, "");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let rows = ["orders", "positions"].map(|list| answer[list].as_array().map_or(0, Vec::len));
        (status, rows[0] + rows[1], answer)
    };
    let (_, before, _) = rows(&mut exchange, "GET /account");
    for count in before + 1..=ROWS_MAX + 1 {
        let record = exchange.order(ALICE, Side::Buy, Outcome::Zero, 1, 10);
        exchange.says(record);
        if count + 1 < ROWS_MAX {
            continue;
        }
        let (status, shown, answer) = rows(&mut exchange, "GET /account");
        if count <= ROWS_MAX {
            assert_eq!((status, shown), (200, count));
        } else {
            assert_eq!((status, &answer["code"]), (400, &json!("account_too_large")));
            assert_eq!((&answer["field"], &answer["got"]), (&json!("market"), &json!(count.to_string())));
        }
    }
    let snow = format!("GET /account?market=0x{:08x}{}", SNOW.0, "cc".repeat(28));
    let (status, shown, answer) = rows(&mut exchange, &snow);
    assert_eq!((status, shown), (200, 2), "one order and what it buys");
    assert_eq!(answer["balances"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_account_that_holds_more_tokens_than_one_answer_has_is_told_how_many() {
    let mut exchange = Exchange::opened();
    let positions = |exchange: &mut Exchange, line: &str| {
        let (status, text) = exchange.sends(caller(ALICE, Dialect::Poly), line, "");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        (status, answer["positions"].as_array().map_or(0, Vec::len), answer)
    };
    let pairs_max = u32::try_from(ROWS_MAX / 2).expect("few");
    for pairs in 1..=pairs_max + 3 {
        // The first two markets are there; so many pairs are of so many markets.
        let market = MarketNo(pairs - 1);
        if SNOW < market {
            exchange.open_market(market, "{}");
        }
        exchange.splits_in(market, ALICE, 1);
        let (status, shown, answer) = positions(&mut exchange, "GET /account");
        let tokens = 2 * pairs as usize;
        if pairs <= pairs_max {
            assert_eq!((status, shown), (200, tokens));
        } else {
            assert_eq!((status, &answer["got"]), (400, &json!(tokens.to_string())));
        }
        for (market, tokens) in [(RAIN, 2), (market, 2), (MarketNo(pairs), 0)] {
            let line = format!("GET /account?market=0x{:08x}{}", market.0, "cc".repeat(28));
            let (status, shown, _) = positions(&mut exchange, &line);
            assert_eq!((status, shown), (200, tokens), "{market:?} of {pairs}");
        }
    }
}
