//! Who comes back is told what it missed, as it was told then.

use super::*;

/// A change of each row is replayed as long as all of them together are not too many.
#[test]
fn markets_that_are_replayed_together_have_one_message_s_changes_between_them() {
    const CHANGES: u64 = 1_001;
    let mut followed = Followed::opened();
    for market in [RAIN, SNOW] {
        for _ in 0..CHANGES {
            let bid = followed.exchange.order(ALICE, Side::Buy, Outcome::Zero, 40, 10);
            followed.notes(OrderPlaced { market, ..bid });
        }
    }
    let conditions = [RAIN, SNOW].map(condition_text);
    for (missed, replayed) in [
        ([1, 1], [true, true]),
        ([500, 500], [true, true]),
        ([500, 501], [true, false]),
        ([1_000, 0], [true, true]),
        ([1_000, 1], [true, false]),
        ([1_001, 1_000], [false, true]),
        ([1_001, 1_001], [false, false]),
    ] {
        let from: serde_json::Map<String, Value> =
            conditions.iter().zip(missed).map(|(id, missed)| (id.clone(), json!(CHANGES - missed))).collect();
        let asks = json!({ "type": "market", "markets": conditions, "from": from, "stream_id": "stream" });
        followed.says(FIRST, Channel::Market, &asks.to_string());
        let told: Vec<Value> = followed.told(FIRST).iter().map(|frame| object(frame)).collect();
        let found = [0, 1].map(|at| told[0]["markets"][at]["replayed"] == true);
        assert_eq!(found, replayed, "{missed:?} missed");
        let changes = told.iter().filter(|message| message["event_type"] == "price_change").count() as u64;
        let expected: u64 = missed.iter().zip(replayed).filter(|(_, is)| *is).map(|(missed, _)| missed).sum();
        assert_eq!(changes, expected, "{missed:?} missed");
        followed.leaves(FIRST);
    }
}

#[test]
fn an_account_that_comes_back_is_told_of_its_orders_and_trades_as_they_were_then() {
    let mut exchange = Exchange::opened();
    exchange.splits(BOB, 50);
    let mut followed = Followed::of(exchange);
    let auth = r#""auth":{"apiKey":"a","secret":"b","passphrase":"c"}"#;
    followed.says(FIRST, Channel::User, &format!(r#"{{"type":"user",{auth}}}"#));
    followed.sent();
    let resting = followed.bids(40);
    for shares in [4, 6] {
        let taker = followed.exchange.order(BOB, Side::Sell, Outcome::Zero, 40, shares);
        let taker = followed.exchange.filled(taker, &[(resting, shares)]);
        followed.notes(taker);
    }
    // Of an order that takes what there is, and of the rest that leaves.
    let own = followed.bids(50);
    let taker = followed.exchange.order(BOB, Side::Sell, Outcome::Zero, 50, 3);
    let taker = followed.exchange.filled(taker, &[(own, 3)]);
    followed.notes(taker);
    let time = followed.exchange.time();
    followed.notes(OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: vec![own] });
    let without_time = |frame: &String| {
        let mut message = object(frame);
        message.as_object_mut().expect("an object").remove("server_ts_ms");
        message
    };
    let then: Vec<Value> = followed.told(FIRST).iter().map(without_time).collect();
    let asks = format!(r#"{{"type":"user",{auth},"from":0,"stream_id":"stream"}}"#);
    followed.says(SECOND, Channel::User, &asks);
    let again: Vec<Value> = followed.told(SECOND).iter().map(without_time).collect();
    let [first, ..] = &then[..] else { panic!("it was told something") };
    let before = first["sequence"].as_u64().expect("a number") - 1;
    let after = |message: &&Value| before < message["sequence"].as_u64().expect("a number");
    let again: Vec<Value> = again[1..].iter().filter(after).cloned().collect();
    assert_eq!(again, then);
    let [traded, matched]: [Vec<usize>; 2] = ["associate_trades", "maker_orders"]
        .map(|list| then.iter().filter_map(|message| message[list].as_array().map(Vec::len)).collect());
    assert_eq!((&traded[..], &matched[..]), (&[0, 1, 2, 0, 1, 1][..], &[1, 1, 1, 1, 1, 1][..]));
}

/// All bids of a market leave at once, each of a price of its own, and of snow another one afterwards.
#[test]
fn markets_that_are_replayed_together_have_one_message_s_levels_between_them() {
    for (of_rain, of_snow, more, replayed) in
        [(2_000, 2_000, 0, [true, true]), (2_000, 1_999, 1, [true, true]), (2_000, 2_000, 1, [true, false])]
    {
        let mut followed = Followed::opened();
        let mut sequences = Vec::new();
        for (market, leaving) in [(RAIN, of_rain), (SNOW, of_snow)] {
            let (time, tick) = (followed.exchange.time(), Tick::new(1).expect("the finest"));
            followed.notes(TickChanged { time, market, tick, removed: Vec::new() });
            let mut bid = |price| {
                let bid = followed.exchange.order(ALICE, Side::Buy, Outcome::Zero, 50, 1);
                followed.notes(OrderPlaced { market, price: Price::new(price).expect("a price"), ..bid })
            };
            let last = bid(5_000);
            let orders: Vec<_> = (1..=leaving).map(bid).collect();
            sequences.push(leaving + 1);
            let time = followed.exchange.time();
            followed.notes(OrdersRemoved { time, reason: RemovalReason::Cancelled, orders });
            if market == SNOW && 0 < more {
                followed.notes(OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: vec![last] });
            }
        }
        let conditions = [RAIN, SNOW].map(condition_text);
        let from: serde_json::Map<String, Value> =
            conditions.iter().cloned().zip(sequences.into_iter().map(Value::from)).collect();
        let asks = json!({ "type": "market", "markets": conditions, "from": from, "stream_id": "stream" });
        followed.says(FIRST, Channel::Market, &asks.to_string());
        let told = object(&followed.told(FIRST)[0]);
        let found = [0, 1].map(|at| told["markets"][at]["replayed"] == true);
        assert_eq!(found, replayed, "{of_rain} levels, and {of_snow} and {more}");
    }
}

#[test]
fn an_order_with_very_many_trades_is_told_again_with_the_newest_that_it_had_then() {
    const TRADES: usize = 102;
    let mut followed = Followed::opened();
    let asks = r#"{"type":"user","auth":{"apiKey":"a","secret":"b","passphrase":"c"},"from":0,"stream_id":"stream"}"#;
    let order = followed.exchange.order(ALICE, Side::Buy, Outcome::Zero, 1, TRADES as u64);
    let bid = followed.notes(order);
    for _ in 0..TRADES {
        let taker = followed.exchange.order(BOB, Side::Buy, Outcome::One, 99, 1);
        let taker = followed.exchange.filled(taker, &[(bid, 1)]);
        followed.notes(taker);
    }
    followed.sent();
    followed.says(FIRST, Channel::User, asks);
    let told: Vec<Value> = followed.told(FIRST).iter().map(|frame| object(frame)).collect();
    let updates = told.iter().filter(|told| told["type"] == "UPDATE");
    let named: Vec<usize> =
        updates.map(|told| told["associate_trades"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(named, (1..=TRADES).map(|trades| trades.min(100)).collect::<Vec<_>>());
}
