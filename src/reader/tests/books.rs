use super::*;
use serde_json::json;

/// Rain's yes with bids at 40 and 45, an ask at 55, which is a bid for its no, and a trade at 45.
fn quoted() -> Exchange {
    let mut exchange = Exchange::opened();
    exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 45, 20);
    let taker = exchange.order(BOB, Side::Buy, Outcome::One, 55, 8);
    exchange.fills(taker, &[(bid, 8)]);
    exchange.rests(BOB, Side::Buy, Outcome::One, 45, 30);
    exchange
}

#[test]
fn a_book_has_its_keys_in_the_hashed_order_and_its_best_level_last() {
    let mut exchange = quoted();
    let (status, text) = exchange.sends(None, "GET /book?token_id=300", "");
    assert_eq!(status, 200);
    let book: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        names(&book),
        [
            "market",
            "asset_id",
            "timestamp",
            "hash",
            "bids",
            "asks",
            "min_order_size",
            "tick_size",
            "neg_risk",
            "last_trade_price"
        ]
    );
    assert_eq!(book["bids"], json!([{"price": "0.4", "size": "10"}, {"price": "0.45", "size": "12"}]));
    assert_eq!(book["asks"], json!([{"price": "0.55", "size": "30"}]));
    assert_eq!(book["min_order_size"], "5");
    assert_eq!(book["tick_size"], "0.01");
    assert_eq!(book["last_trade_price"], "0.45");
    assert_eq!(book["timestamp"], exchange.now.to_string());

    let hash = book["hash"].as_str().expect("a hash");
    let unsealed = text.replace(&format!("\"hash\":\"{hash}\""), "\"hash\":\"\"");
    assert_eq!(sha1_smol::Sha1::from(unsealed).digest().to_string(), hash);
}

#[test]
fn the_other_token_sees_the_mirror_with_its_own_last_price() {
    let mut exchange = quoted();
    let book = exchange.reads("/book?token_id=301");
    assert_eq!(book["bids"], json!([{"price": "0.45", "size": "30"}]));
    assert_eq!(book["asks"], json!([{"price": "0.6", "size": "10"}, {"price": "0.55", "size": "12"}]));
    assert_eq!(book["last_trade_price"], "0.55");
    assert_eq!(exchange.reads("/last-trade-price?token_id=301"), json!({"price": "0.55", "side": "BUY"}));
    assert_eq!(exchange.reads("/last-trade-price?token_id=300"), json!({"price": "0.45", "side": "SELL"}));
}

#[test]
fn a_book_that_did_not_change_reads_the_same_at_any_time() {
    let mut exchange = quoted();
    let (_, before) = exchange.sends(None, "GET /book?token_id=300", "");
    exchange.now += 60_000;
    let (_, after) = exchange.sends(None, "GET /book?token_id=300", "");
    assert_eq!(before, after);
    let live = *exchange.reader.index.principal(ALICE).expect("alice").live.first().expect("an order");
    exchange.cancels(&[live]);
    let (_, changed) = exchange.sends(None, "GET /book?token_id=300", "");
    assert_ne!(after, changed);
}

#[test]
fn prices_are_those_at_which_one_can_trade() {
    let mut exchange = quoted();
    for (target, answer) in [
        ("/price?token_id=300&side=BUY", json!({"price": "0.55"})),
        ("/price?token_id=300&side=sell", json!({"price": "0.45"})),
        ("/price?token_id=301&side=BUY", json!({"price": "0.55"})),
        ("/midpoint?token_id=300", json!({"mid": "0.5"})),
        ("/spread?token_id=301", json!({"spread": "0.1"})),
    ] {
        assert_eq!(exchange.reads(target), answer, "{target}");
    }
    exchange.reader.settings.price_side = PriceSide::Book;
    assert_eq!(exchange.reads("/price?token_id=300&side=BUY"), json!({"price": "0.45"}));
}

#[test]
fn a_midpoint_between_two_steps_is_not_rounded() {
    let mut exchange = quoted();
    exchange.rests(ALICE, Side::Buy, Outcome::Zero, 46, 10);
    assert_eq!(exchange.reads("/midpoint?token_id=300"), json!({"mid": "0.505"}));
}

#[test]
fn lists_answer_each_known_token_once_and_leave_the_others_out() {
    let mut exchange = quoted();
    let body = r#"[{"token_id":"300","side":"BUY"},{"token_id":"300","side":"SELL"},{"token_id":"301","side":"BUY"},
                   {"token_id":"310"},{"token_id":"999"}]"#;
    for (line, answer) in [
        ("POST /prices", json!({"300": {"BUY": "0.55", "SELL": "0.45"}, "301": {"BUY": "0.55"}, "310": {}})),
        ("POST /midpoints", json!({"300": "0.5", "301": "0.5"})),
        ("POST /spreads", json!({"300": "0.1", "301": "0.1"})),
        (
            "POST /last-trades-prices",
            json!([{"token_id": "300", "price": "0.45", "side": "SELL"},
                   {"token_id": "301", "price": "0.55", "side": "BUY"}]),
        ),
    ] {
        assert_eq!(exchange.answers(None, line, body), answer, "{line}");
    }
    let by_get = exchange.answers(None, "GET /last-trades-prices", r#"[{"token_id":"301"}]"#);
    assert_eq!(by_get, json!([{"token_id": "301", "price": "0.55", "side": "BUY"}]));
    let books = exchange.answers(None, "POST /books", body);
    let books = books.as_array().expect("books");
    assert_eq!(column(books, "asset_id"), [RAIN_YES, RAIN_NO, "310"]);
    assert_eq!(books[0], exchange.reads("/book?token_id=300"));
}

#[test]
fn prices_from_before_a_clock_was_set_back_are_shown_up_to_the_last() {
    let mut exchange = Exchange::opened();
    let right_s = exchange.now / 1_000;
    exchange.now += 86_400_000;
    let ahead_s = exchange.now / 1_000;
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 5);
    let taker = exchange.order(BOB, Side::Buy, Outcome::One, 60, 5);
    exchange.fills(taker, &[(bid, 5)]);
    exchange.now = right_s * 1_000;
    for (window, step_s) in [
        ("interval=1h", 60),
        ("interval=1d", 300),
        ("interval=max", 60),
        (&format!("startTs={right_s}"), 60),
        (&format!("startTs={ahead_s}"), 60),
    ] {
        assert_eq!(
            exchange.reads(&format!("/prices-history?market=300&{window}")),
            json!({"history": [{"t": ahead_s - ahead_s % step_s, "p": 0.4}]}),
            "{window}"
        );
    }
    let past = format!("/prices-history?market=300&startTs=1&endTs={right_s}");
    assert_eq!(exchange.reads(&past), json!({"history": []}), "an end that is named is the end");
}

#[test]
fn prices_over_time_are_the_last_of_each_step_and_mirror_each_other() {
    let mut exchange = Exchange::opened();
    let start_s = exchange.now / 1_000;
    for (cents, shares) in [(40, 5), (41, 5), (50, 5)] {
        let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, cents, shares);
        let taker = exchange.order(BOB, Side::Buy, Outcome::One, 100 - cents, shares);
        exchange.fills(taker, &[(bid, shares)]);
        if cents == 41 {
            exchange.now += 120_000;
        }
    }
    let minute = start_s - start_s % 60;
    let target = |token| format!("/prices-history?market={token}&startTs={start_s}&fidelity=1");
    assert_eq!(
        exchange.reads(&target(300)),
        json!({"history": [{"t": minute, "p": 0.41}, {"t": minute + 120, "p": 0.5}]})
    );
    assert_eq!(exchange.reads(&target(301))["history"][0]["p"], 0.59);
    assert_eq!(exchange.reads("/prices-history?market=310&interval=max"), json!({"history": []}));
    let whole = exchange.reads("/prices-history?market=300&interval=max");
    assert_eq!(whole["history"].as_array().map(Vec::len), Some(2));
    assert_eq!(exchange.reads("/prices-history?market=300&startTs=0"), whole, "from before the first price");
    let half_days = exchange.reads("/prices-history?market=300&interval=all&fidelity=720");
    assert_eq!(half_days["history"].as_array().map(Vec::len), Some(1));
    let body = format!(r#"{{"markets":["300","999"],"start_ts":{start_s},"end_ts":{}}}"#, start_s + 10);
    for body in [body.replace("start_ts", "startTs").replace("end_ts", "endTs"), body] {
        assert_eq!(
            exchange.answers(None, "POST /batch-prices-history", &body),
            json!({"history": {"300": [{"t": minute, "p": 0.41}]}}),
            "{body}"
        );
    }
    let later = exchange.reads("/prices-history?market=300&interval=1m&fidelity=1");
    assert_eq!(later["history"], whole["history"], "a month, not a minute");
}

#[test]
fn a_trades_price_stands_until_its_step_is_over_and_then_the_middle_does() {
    let mut exchange = Exchange::opened();
    exchange.now += 3_600_000 - exchange.now % 3_600_000;
    let begin = exchange.now / 1_000;
    // Quoted 70 to 72, bought at 72, and in the same minute quoted 20 to 22.
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 70, 10);
    let ask = exchange.rests(ALICE, Side::Buy, Outcome::One, 28, 10);
    let taker = exchange.order(BOB, Side::Buy, Outcome::Zero, 72, 5);
    exchange.fills(taker, &[(ask, 5)]);
    exchange.cancels(&[bid, ask]);
    exchange.rests(ALICE, Side::Buy, Outcome::Zero, 20, 10);
    exchange.rests(ALICE, Side::Buy, Outcome::One, 78, 10);
    let of_minute = exchange.now / 1_000;
    for (now, target, points) in [
        (of_minute, "/prices-history?market=300&interval=max".to_owned(), vec![(0, 0.72)]),
        (of_minute, format!("/v2/prices-history?token_id=300&as_of={of_minute}"), vec![(0, 0.72)]),
        (of_minute, "/v2/prices-history?token_id=300&interval=1h".to_owned(), vec![(0, 0.72)]),
        (begin + 60, "/prices-history?market=300&interval=max".to_owned(), vec![(0, 0.72), (60, 0.21)]),
        (begin + 108_000, "/prices-history?market=300&interval=max".to_owned(), vec![(0, 0.72), (300, 0.21)]),
        (begin + 108_000, "/prices-history?market=301&interval=max".to_owned(), vec![(0, 0.28), (300, 0.79)]),
        (begin + 108_000, "/prices-history?market=300&interval=1h".to_owned(), vec![(104_400, 0.21)]),
        (begin + 108_000, "/prices-history?market=300&interval=1d".to_owned(), vec![(21_600, 0.21)]),
        (begin + 108_000, format!("/v2/prices-history?token_id=300&as_of={}", begin + 118), vec![(0, 0.72)]),
        (begin + 108_000, format!("/v2/prices-history?token_id=300&as_of={}", begin + 119), vec![(60, 0.21)]),
        (
            begin + 108_000,
            format!("/v2/prices-history?token_id=300&as_of={}", begin + 108_000),
            vec![(60, 0.21)],
        ),
    ] {
        exchange.now = now * 1_000;
        let answer = exchange.reads(&target);
        let told = ["history", "data"].into_iter().find_map(|name| answer[name].as_array()).expect("points");
        let point = |point: &Value| {
            let [second, price] = if point["t"].is_null() { ["timestamp", "price"] } else { ["t", "p"] };
            let second = point[second].as_u64().expect("a second");
            (second - begin, point[price].as_f64().expect("a number"))
        };
        assert_eq!(told.iter().map(point).collect::<Vec<_>>(), points, "{now}: {target}");
    }
}
