//! Holders, interest, volumes, tokens, resolutions and prices of markets.

use super::*;

#[test]
fn holders_have_what_they_hold_more_of_one_token() {
    let mut exchange = traded();
    exchange.acts(CAROL, RAIN, ActKind::Split, [60, 60]);
    exchange.acts(BOB, SNOW, ActKind::Split, [5, 5]);
    let (rain, snow) = (condition_text(RAIN), condition_text(SNOW));
    let amounts = |groups: &[Value]| -> Vec<Vec<(String, f64)>> {
        let holder = |row: &Value| {
            (
                row["proxy_wallet"].as_str().expect("a text").to_owned(),
                row["amount"].as_f64().expect("a number"),
            )
        };
        let of = |group: &Value| group["holders"].as_array().expect("rows").iter().map(holder).collect();
        groups.iter().map(of).collect()
    };
    let groups = rows(&mut exchange, &format!("/v2/holders?condition={rain},{snow}"));
    assert_eq!(column(&groups, "token_id"), [RAIN_YES, RAIN_NO, "310", "311"]);
    let of = |wallet, amount| (address_text(wallet), amount);
    assert_eq!(
        amounts(&groups),
        [vec![of(ALICE, 60.0), of(CAROL, 40.0)], vec![of(BOB, 100.0)], vec![], vec![]],
        "pairs are no one's side"
    );
    let gross = rows(&mut exchange, &format!("/v2/holders?condition={rain}&include_pnl=true"));
    assert_eq!(
        amounts(&gross),
        [vec![of(CAROL, 100.0), of(ALICE, 60.0)], vec![of(BOB, 100.0), of(CAROL, 60.0)]]
    );
    shows(
        &gross[0]["holders"][1],
        &[
            ("avg_price", 0.4),
            ("entry_cost_usdc", 24.0),
            ("current_value", 33.0),
            ("realized_pnl", 6.0),
            ("total_pnl", 15.0),
        ],
    );
    let page = exchange.reads(&format!("/v2/holders?condition={rain}&limit=1"));
    assert_eq!(amounts(page["data"].as_array().expect("rows")), [[of(ALICE, 60.0)], [of(BOB, 100.0)]]);
    let cursor = page["pagination"]["next_cursor"].as_str().expect("more").to_owned();
    let page = exchange.reads(&format!("/v2/holders?condition={rain}&cursor={cursor}"));
    assert_eq!(
        column(page["data"].as_array().expect("rows"), "token_id"),
        [RAIN_YES],
        "the other is used up"
    );
    assert_eq!(amounts(page["data"].as_array().expect("rows")), [[of(CAROL, 40.0)]]);
    assert_eq!(page["pagination"], json!({"limit": 1, "offset": 1, "has_more": false, "next_cursor": null}));
    let both = format!("/v2/holders?condition={snow},{rain}&limit=1");
    let page = exchange.reads(&both);
    assert_eq!(column(page["data"].as_array().expect("rows"), "token_id"), ["310", "311", RAIN_YES, RAIN_NO]);
    let cursor = page["pagination"]["next_cursor"].as_str().expect("more").to_owned();
    exchange.acts(CAROL, RAIN, ActKind::Merge, [60, 60]);
    let ask = exchange.rests(ALICE, Side::Sell, Outcome::Zero, 50, 55);
    let taker = exchange.order(ALICES_SAFE, Side::Buy, Outcome::Zero, 50, 55);
    exchange.fills(taker, &[(ask, 55)]);
    let page = exchange.reads(&format!("{both}&cursor={cursor}"));
    assert_eq!(
        column(page["data"].as_array().expect("rows"), "token_id"),
        [RAIN_YES],
        "without the empty ones"
    );
    assert_eq!(
        amounts(page["data"].as_array().expect("rows")),
        [[of(ALICES_SAFE, 55.0)]],
        "who came meanwhile"
    );
    let cursor = page["pagination"]["next_cursor"].as_str().expect("more").to_owned();
    let page = exchange.reads(&format!("{both}&cursor={cursor}"));
    assert_eq!(amounts(page["data"].as_array().expect("rows")), [[of(CAROL, 40.0)]], "nobody is left out");
    let unknown: Vec<String> = (1..20).map(|number| format!("0x{number:064x}")).collect();
    let twenty = format!("/v2/holders?condition={},{rain}&limit=1", unknown.join(","));
    let (mut cursor, mut found) = (String::new(), Vec::new());
    for _ in 0..2 {
        let page = exchange.reads(&format!("{twenty}&cursor={cursor}"));
        found.extend(amounts(page["data"].as_array().expect("rows")).concat());
        cursor = page["pagination"]["next_cursor"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(found, [of(ALICES_SAFE, 55.0), of(BOB, 100.0), of(CAROL, 40.0)], "a cursor for forty tokens");
    let large = rows(&mut exchange, &format!("/v2/holders?condition={rain}&min_balance=40.000001"));
    assert_eq!(amounts(&large), [[of(ALICES_SAFE, 55.0)], [of(BOB, 100.0)]]);
}

#[test]
fn markets_add_up() {
    let mut exchange = traded();
    exchange.acts(BOB, SNOW, ActKind::Split, [7, 7]);
    let (rain, snow) = (condition_text(RAIN), condition_text(SNOW));
    assert_eq!(data(&mut exchange, "/v2/oi"), json!([{"condition_id": "GLOBAL", "value": 107}]));
    assert_eq!(
        data(&mut exchange, &format!("/v2/oi?condition={snow},{rain}")),
        json!([{"condition_id": snow, "value": 7}, {"condition_id": rain, "value": 100}])
    );
    let volume =
        json!({"taker_volume_total": 140, "conditions": [{"condition_id": rain, "taker_volume": 140}]});
    for name in ["event_id", "eventId", "id"] {
        assert_eq!(data(&mut exchange, &format!("/v2/live-volume?{name}=77")), volume);
    }
    assert_eq!(data(&mut exchange, "/v2/live-volume?event_id=78")["taker_volume_total"], 0);
}

#[test]
fn tokens_and_resolutions_say_how_markets_stand() {
    let mut exchange = traded();
    exchange.resolves(SNOW, 250_000);
    let (rain, snow) = (condition_text(RAIN), condition_text(SNOW));
    let by_token = rows(&mut exchange, "/v2/tokens?token_id=311,300,999");
    assert_eq!(column(&by_token, "token_id"), ["311", "300"]);
    assert_eq!(column(&by_token, "opposite_token_id"), ["310", "301"]);
    assert_eq!(column(&by_token, "module"), ["neg_risk", "v1_ctf"]);
    assert_eq!((&by_token[0]["resolved"], &by_token[0]["final_price"]), (&json!(true), &json!(0.75)));
    assert_eq!((&by_token[1]["event_id"], &by_token[1]["event_slug"]), (&json!(77), &json!("weather")));
    assert_eq!((&by_token[0]["event_id"], &by_token[0]["event_slug"]), (&json!(null), &json!(null)));
    let by_market = rows(&mut exchange, &format!("/v2/tokens?conditionId={snow},{rain}"));
    assert_eq!(column(&by_market, "token_id"), ["310", "311", "300", "301"]);
    let both = rows(&mut exchange, &format!("/v2/resolutions?condition={rain},{snow}"));
    assert_eq!(column(&both, "status"), ["initialized", "resolved"]);
    assert_eq!((&both[0]["payouts"], &both[1]["payouts"]), (&json!(null), &json!([250_000, 750_000])));
    let question = both[1]["question_id"].as_str().expect("a text").to_owned();
    assert_eq!(rows(&mut exchange, &format!("/v2/resolutions?question_id={question}")), both[1..]);
    assert_eq!(rows(&mut exchange, "/v2/resolutions?event_id=77"), both[..1]);
}

#[test]
fn prices_come_in_buckets_of_any_length() {
    let mut exchange = Exchange::opened();
    exchange.now -= exchange.now % 3_600_000;
    let begin = exchange.now / 1_000;
    // One trade every ten minutes, a cent higher each time.
    for step in 0..18_u16 {
        let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 30 + step, 10);
        let taker = exchange.order(BOB, Side::Buy, Outcome::One, 70 - step, 10);
        exchange.fills(taker, &[(bid, 10)]);
        exchange.now = (begin + 600 * u64::from(step + 1)) * 1_000;
    }
    let points = |exchange: &mut Exchange, more: &str| -> Vec<(u64, f64, u64)> {
        let all = pages_join(exchange, &format!("/v2/prices-history?token_id={RAIN_YES}{more}"));
        all.iter()
            .map(|point| {
                let second = point["timestamp"].as_u64().expect("a second");
                let bucket = point["resolution_seconds"].as_u64().expect("a number");
                (second - begin, point["price"].as_f64().expect("a number"), bucket)
            })
            .collect()
    };
    let hourly = points(&mut exchange, "&interval=1d&bucket_seconds=3600");
    assert_eq!(hourly, [(0, 0.35, 3_600), (3_600, 0.41, 3_600), (7_200, 0.47, 3_600)]);
    let end = begin + 3 * 3_600;
    assert_eq!(points(&mut exchange, &format!("&start={begin}&end={end}&bucketSeconds=3600")), hourly);
    assert_eq!(points(&mut exchange, &format!("&start={begin}&end={}", begin + 600)), [(0, 0.3, 60)]);
    assert!(points(&mut exchange, &format!("&start={}&end={}", begin + 30, begin + 30)).is_empty());
    for (second, point) in [
        (0, None),
        (58, None),
        (59, Some((0, 0.3, 60))),
        (3_000, Some((2_400, 0.34, 60))),
        (3_058, Some((2_400, 0.34, 60))),
        (3_599, Some((3_000, 0.35, 60))),
        (10_800, Some((10_200, 0.47, 60))),
        (999_999, Some((10_200, 0.47, 60))),
    ] {
        let shown = points(&mut exchange, &format!("&as_of={}", begin + second));
        assert_eq!(shown, Vec::from_iter(point), "by {second}");
    }
    let other =
        rows(&mut exchange, &format!("/v2/prices-history?token_id={RAIN_NO}&as_of={}", begin + 3_599));
    shows(&other[0], &[("price", 0.65)]);
    assert_eq!(
        points(&mut exchange, &format!("&start={}&end={}&bucket_seconds=3600", begin + 3_599, begin + 3_601)),
        [(0, 0.35, 3_600), (3_600, 0.41, 3_600)],
        "buckets are whole"
    );
    exchange.resolves(RAIN, 1_000_000);
    let resolved = exchange.now / 1_000 - begin;
    exchange.now += 7_200_000;
    let (paid, now) = ((resolved, 1.0, 0), exchange.now / 1_000 - begin);
    for (more, expected) in [
        ("&interval=1d&bucket_seconds=3541".to_owned(), vec![hourly[0], hourly[1], hourly[2], paid]),
        ("&interval=1h".to_owned(), vec![(now - 3_600, 1.0, 0)]),
        (format!("&start={}&end={}", begin + 10_200, begin + resolved), vec![(10_200, 0.47, 60)]),
        (format!("&start={}&end={}", begin + 10_200, begin + resolved + 1), vec![(10_200, 0.47, 60), paid]),
        (format!("&start={}&end={}", begin + now - 9, begin + now), vec![(now - 9, 1.0, 0)]),
        (format!("&as_of={}", begin + 3_599), vec![(3_000, 0.35, 60)]),
        (format!("&as_of={}", begin + resolved - 1), vec![(10_200, 0.47, 60)]),
        (format!("&as_of={}", begin + resolved), vec![paid]),
        (format!("&as_of={}", begin + now), vec![paid]),
    ] {
        assert_eq!(points(&mut exchange, &more), expected, "{more}");
    }
    assert!(rows(&mut exchange, "/v2/prices-history?token_id=5&interval=max").is_empty(), "unknown");
}

#[test]
fn a_start_may_be_fifteen_days_ago_and_a_minute_on_its_way() {
    const DAYS_S: u64 = 15 * 86_400;
    let mut exchange = traded();
    let now = exchange.now / 1_000;
    for (start, end, is_taken) in [
        (now - DAYS_S - 59, None, true),
        (now - DAYS_S - 60, None, false),
        (now - DAYS_S, Some(now), true),
        (now - DAYS_S - 1, Some(now), false),
    ] {
        let end = end.map_or_else(String::new, |end| format!("&end={end}"));
        let target = format!("/v2/prices-history?token_id={RAIN_YES}&start={start}{end}");
        if is_taken {
            exchange.reads(&target);
        } else {
            assert_eq!(refused(&mut exchange, &target)["field"], "start", "{target}");
        }
    }
}

#[test]
fn a_payout_takes_the_place_of_the_price_of_its_own_second() {
    let mut exchange = Exchange::opened();
    exchange.now = exchange.now.next_multiple_of(3_600_000);
    let begin = exchange.now / 1_000;
    exchange.now -= 2 * STEP_MS;
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    let taker = exchange.order(BOB, Side::Buy, Outcome::One, 60, 10);
    exchange.fills(taker, &[(bid, 10)]);
    exchange.resolves(RAIN, 1_000_000);
    for more in [format!("start={}", begin - 60), "interval=1h".to_owned()] {
        let points = rows(&mut exchange, &format!("/v2/prices-history?token_id={RAIN_YES}&{more}"));
        let shown: Vec<_> = points.iter().map(|point| (&point["timestamp"], &point["price"])).collect();
        assert_eq!(shown, [(&json!(begin), &json!(1))], "{more}");
    }
}
