//! The second version of the data API: against the first version's rows, against numbers worked out by hand, and page
//! by page against the whole list.

mod markets;
mod pages;

use super::*;

/// The `data` of an answer.
#[track_caller]
fn data(exchange: &mut Exchange, target: &str) -> Value {
    let answer = exchange.reads(target);
    assert!(answer.as_object().expect("an object").contains_key("data"), "{answer}");
    answer["data"].clone()
}

#[track_caller]
fn rows(exchange: &mut Exchange, target: &str) -> Vec<Value> {
    data(exchange, target).as_array().expect("an array").clone()
}

/// Every row of a list in pages of `limit`, with something done after each page.
#[track_caller]
fn walked(
    exchange: &mut Exchange,
    target: &str,
    limit: usize,
    mut between: impl FnMut(&mut Exchange),
) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    for _ in 0..200 {
        let page = exchange.reads(&format!("{target}&limit={limit}&cursor={cursor}"));
        let (of_page, next) = (page["data"].as_array().expect("rows"), &page["pagination"]);
        assert!(of_page.len() <= limit);
        assert_eq!(
            (next["limit"].as_u64(), next["offset"].as_u64()),
            (Some(limit as u64), Some(all.len() as u64))
        );
        assert_eq!(next["has_more"], !next["next_cursor"].is_null());
        all.extend(of_page.iter().cloned());
        match next["next_cursor"].as_str() {
            None => return all,
            Some(next) => cursor = next.to_owned(),
        }
        between(exchange);
    }
    panic!("pages without end")
}

/// Asserts that pages of every length join to the whole list.
#[track_caller]
fn pages_join(exchange: &mut Exchange, target: &str) -> Vec<Value> {
    let whole = rows(exchange, target);
    for limit in [1, 2, 3, 7, 1_000] {
        assert_eq!(walked(exchange, target, limit, |_| {}), whole, "{target} by {limit}");
    }
    whole
}

#[track_caller]
fn refused(exchange: &mut Exchange, target: &str) -> Value {
    let (status, text) = exchange.sends(None, &format!("GET {target}"), "");
    assert_eq!(status, 400, "{target}: {text}");
    let refusal: Value = serde_json::from_str(&text).expect("JSON");
    for name in ["error", "code", "field", "allowed"] {
        assert!(refusal[name].is_string(), "{refusal}");
    }
    refusal
}

#[test]
fn a_position_shows_what_the_first_version_shows_in_other_words() {
    let mut exchange = spread();
    exchange.resolves(MarketNo(3), 1_000_000);
    exchange.resolves(MarketNo(4), 0);
    let alice = address_text(ALICE);
    let first = exchange.positions_of(ALICE, "&limit=500&sizeThreshold=0.1&sortBy=CURRENT");
    let second = rows(&mut exchange, &format!("/v2/positions?user={alice}"));
    assert_eq!(first.len(), second.len());
    for (first, second) in first.iter().zip(&second) {
        for (one, other) in [
            ("proxyWallet", "proxy_wallet"),
            ("conditionId", "condition_id"),
            ("size", "current_size"),
            ("curPrice", "current_price"),
            ("totalBought", "total_size"),
            ("redeemable", "redeemable"),
            ("mergeable", "mergeable"),
            ("negativeRisk", "negative_risk"),
            ("title", "title"),
            ("slug", "slug"),
            ("icon", "icon"),
            ("eventSlug", "event_slug"),
            ("outcome", "outcome"),
            ("outcomeIndex", "outcome_index"),
            ("oppositeOutcome", "opposite_outcome"),
            ("timestamp", "last_event_at"),
        ] {
            assert_eq!(first[one], second[other], "{one}");
        }
        for (one, other) in [
            ("avgPrice", "avg_price"),
            ("initialValue", "entry_cost_usdc"),
            ("currentValue", "current_value"),
            ("cashPnl", "unrealized_pnl"),
            ("percentPnl", "percent_pnl"),
            ("realizedPnl", "realized_pnl"),
            ("percentRealizedPnl", "percent_realized_pnl"),
        ] {
            let [first, second] =
                [&first[one], &second[other]].map(|value| value.as_f64().expect("a number"));
            assert!((first - second).abs() <= 0.000_05, "{one}: {first} is {second} to four decimals");
        }
        let end = first["endDate"].as_str().expect("a time");
        assert_eq!(second["end_date"].as_str(), end.get(..10));
        let status = if first["redeemable"] == true { "REDEEMABLE" } else { "OPEN" };
        assert_eq!(second["status"], status);
    }
}

#[test]
fn positions_are_listed_by_what_can_be_done_with_them() {
    let mut exchange = traded();
    exchange.acts(ALICE, SNOW, ActKind::Split, [8, 8]);
    let sizes = |exchange: &mut Exchange, wallet, more: &str| -> Vec<f64> {
        let target = format!("/v2/positions?user={}{more}", address_text(wallet));
        let all = pages_join(exchange, &target);
        all.iter().map(|row| row["current_size"].as_f64().expect("a number")).collect()
    };
    assert_eq!(sizes(&mut exchange, ALICE, ""), [60.0, 8.0, 8.0], "33, 4 and 4 dollars");
    assert_eq!(sizes(&mut exchange, ALICE, "&status=MERGEABLE"), [8.0, 8.0]);
    assert!(sizes(&mut exchange, ALICE, "&status=REDEEMABLE").is_empty());
    assert_eq!(sizes(&mut exchange, ALICE, "&filterType=CASH&filterAmount=4.000001"), [60.0]);
    assert_eq!(sizes(&mut exchange, ALICE, "&filter_amount=8.000001"), [60.0]);
    assert_eq!(sizes(&mut exchange, ALICE, "&title=SNOW"), [8.0, 8.0]);
    assert_eq!(sizes(&mut exchange, ALICE, &format!("&condition_id={}", condition_text(RAIN))), [60.0]);
    assert_eq!(sizes(&mut exchange, ALICE, "&eventId=77"), [60.0]);
    assert_eq!(sizes(&mut exchange, ALICE, "&sort_by=tokens&sortDirection=asc"), [8.0, 8.0, 60.0]);
    exchange.resolves(RAIN, 1_000_000);
    for (wallet, redeemable, lost) in [(ALICE, vec![60.0], vec![]), (BOB, vec![], vec![100.0])] {
        assert_eq!(sizes(&mut exchange, wallet, "&status=REDEEMABLE"), redeemable);
        assert_eq!(sizes(&mut exchange, wallet, "&status=redeemable_lost"), lost);
    }
    exchange.acts(ALICE, RAIN, ActKind::Redeem, [60, 0]);
    let closed = rows(&mut exchange, &format!("/v2/positions?user={}&status=CLOSED", address_text(ALICE)));
    assert_eq!((closed.len(), &closed[0]["status"]), (1, &Value::from("CLOSED")));
    shows(
        &closed[0],
        &[
            ("current_size", 0.0),
            ("avg_price", 0.4),
            ("entry_cost_usdc", 24.0),
            ("realized_pnl", 42.0),
            ("unrealized_pnl", 0.0),
            ("total_pnl", 42.0),
            ("total_size", 100.0),
        ],
    );
    let of_market = rows(&mut exchange, &format!("/v2/positions?condition={}", condition_text(RAIN)));
    assert_eq!(column(&of_market, "proxy_wallet"), [CAROL, BOB].map(address_text), "40 dollars, and none");
}

#[test]
fn a_position_passes_a_filter_of_what_it_shows_as_its_worth() {
    let mut exchange = Exchange::opened();
    exchange.acts_exactly(CAROL, SNOW, ActKind::Split, [Shares(SHARE + 1); 2]);
    let target = format!("/v2/positions?user={}&filter_type=CASH&filter_amount=", address_text(CAROL));
    for (amount, count) in [("0.5", 2), ("0.5000005", 2), ("0.500001", 2), ("0.500002", 0)] {
        let rows = rows(&mut exchange, &format!("{target}{amount}"));
        assert_eq!(rows.len(), count, "{amount}");
        assert!(rows.iter().all(|row| row["current_value"] == 0.500_001), "half a millionth is rounded up");
    }
}

#[test]
fn pages_join_while_other_rows_come_and_go() {
    let mut exchange = spread();
    let alice = address_text(ALICE);
    for sort in
        ["CURRENT_VALUE", "PRICE", "TOKENS", "UNREALIZED_PNL", "REALIZED_PNL", "TOTAL_PNL", "TIMESTAMP"]
    {
        for direction in ["ASC", "DESC"] {
            let target = format!("/v2/positions?user={alice}&sort_by={sort}&sort_direction={direction}");
            assert_eq!(pages_join(&mut exchange, &target).len(), 13);
        }
    }
    let target = format!("/v2/positions?user={alice}&sort_by=TOKENS");
    let before = rows(&mut exchange, &target);
    let walk = walked(&mut exchange, &target, 3, |exchange| {
        exchange.acts(ALICE, SNOW, ActKind::Split, [20, 20]);
    });
    let elsewhere = |rows: Vec<Value>| -> Vec<Value> {
        rows.into_iter().filter(|row| row["condition_id"] != condition_text(SNOW)).collect()
    };
    assert_eq!(elsewhere(walk), before, "rows that stay are shown once");
    // The cursor alone says what is listed.
    let page = exchange.reads(&format!("{target}&status=OPEN&limit=2"));
    let cursor = page["pagination"]["next_cursor"].as_str().expect("more").to_owned();
    let page = exchange.reads(&format!("/v2/positions?user={alice}&cursor={cursor}"));
    assert_eq!(page["pagination"]["limit"], 2);
    let own = rows(&mut exchange, &target);
    assert_eq!(page["data"].as_array().expect("rows")[..], own[2..4]);
}

#[test]
fn trades_and_activity_are_those_of_the_first_version() {
    let mut exchange = spread();
    exchange.acts(BOB, SNOW, ActKind::Split, [7, 7]);
    let (alice, bob) = (address_text(ALICE), address_text(BOB));
    let conditions = format!("{},{}", condition_text(MarketNo(3)), condition_text(MarketNo(7)));
    for (of_first, of_second) in [
        (
            format!("/trades?user={alice}&takerOnly=false"),
            format!("/v2/trades?user={alice}&taker_only=false"),
        ),
        (format!("/trades?user={bob}&side=SELL"), format!("/v2/trades?user={bob}&side=sell")),
        ("/trades?takerOnly=false".to_owned(), "/v2/trades?taker_only=false".to_owned()),
        ("/trades?".to_owned(), "/v2/trades?".to_owned()),
        (
            format!("/trades?market={conditions}&takerOnly=false"),
            format!("/v2/trades?condition={conditions}&takerOnly=false"),
        ),
        ("/trades?filterType=TOKENS&filterAmount=12".to_owned(), "/v2/trades?filter_amount=12".to_owned()),
        (
            "/trades?filterType=CASH&filterAmount=4.5".to_owned(),
            "/v2/trades?filter_type=cash&filter_amount=4.5".to_owned(),
        ),
        (format!("/activity?user={bob}"), format!("/v2/activity?user={bob}")),
        (
            format!("/activity?user={alice}&sortDirection=ASC"),
            format!("/v2/activity?user={alice}&sort_direction=ASC"),
        ),
        (
            format!("/activity?user={alice}&type=SPLIT&excludeDepositsWithdrawals=false"),
            format!("/v2/activity?user={alice}&type=SPLIT,TIP"),
        ),
        (
            format!("/activity?user={bob}&excludeDepositsWithdrawals=false"),
            format!("/v2/activity?user={bob}&excludeDepositsWithdrawals=false"),
        ),
    ] {
        let first = exchange.rows(&of_first);
        let second = pages_join(&mut exchange, &of_second);
        assert_eq!(first.len(), second.len(), "{of_second}");
        for (first, second) in first.iter().zip(&second) {
            for (one, other) in [
                ("proxyWallet", "proxy_wallet"),
                ("timestamp", "timestamp"),
                ("conditionId", "condition_id"),
                ("size", "size"),
                ("transactionHash", "transaction_hash"),
                ("price", "price"),
                ("side", "side"),
                ("outcomeIndex", "outcome_index"),
                ("title", "title"),
                ("slug", "slug"),
                ("eventSlug", "event_slug"),
                ("outcome", "outcome"),
            ] {
                assert_eq!(first[one], second[other], "{one} of {of_second}");
            }
            if of_first.starts_with("/activity") {
                assert_eq!((&first["type"], &first["usdcSize"]), (&second["type"], &second["usdc_size"]));
            }
        }
    }
}

#[test]
fn a_page_of_trades_goes_on_where_it_was_while_others_trade() {
    let mut exchange = spread();
    let before = rows(&mut exchange, "/v2/trades?taker_only=false");
    let walk = walked(&mut exchange, "/v2/trades?taker_only=false", 4, |exchange| {
        let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
        let taker = exchange.order(BOB, Side::Buy, Outcome::One, 60, 10);
        exchange.fills(taker, &[(bid, 10)]);
    });
    assert_eq!(walk, before, "what came meanwhile is newer");
}

#[test]
fn spans_of_time_have_both_ends() {
    let mut exchange = spread();
    let alice = address_text(ALICE);
    let all = rows(&mut exchange, &format!("/v2/activity?user={alice}"));
    let second = |row: &Value| row["timestamp"].as_u64().expect("a second");
    let (newest, oldest) = (second(&all[0]), second(&all[all.len() - 1]));
    for (start, end) in
        [(oldest, newest), (oldest + 1, newest - 1), (newest, newest), (newest + 1, 0), (0, oldest)]
    {
        let until = if end == 0 { u64::MAX } else { end };
        let expected: Vec<_> =
            all.iter().filter(|row| (start..=until).contains(&second(row))).cloned().collect();
        let target = format!("/v2/activity?user={alice}&start={start}&end={end}");
        assert_eq!(pages_join(&mut exchange, &target), expected, "{start}..={end}");
    }
}

#[test]
fn a_wallet_is_worth_what_it_holds() {
    let mut exchange = traded();
    exchange.acts(ALICE, SNOW, ActKind::Split, [8, 8]);
    let alice = address_text(ALICE);
    assert_eq!(
        data(&mut exchange, &format!("/v2/value?user={alice}")),
        json!({"proxy_wallet": alice, "value": 41})
    );
    let rain = format!("/v2/value?user={alice}&condition={}", condition_text(RAIN));
    assert_eq!(data(&mut exchange, &rain)["value"], 33);
    let nobody = format!("0x{}", "99".repeat(20));
    assert_eq!(
        data(&mut exchange, &format!("/v2/value?user={nobody}")),
        json!({"proxy_wallet": nobody, "value": 0})
    );
}

#[test]
fn wallets_stand_by_profit_and_by_shares() {
    let mut exchange = traded();
    let board = pages_join(&mut exchange, "/v2/leaderboard?time_period=day");
    assert_eq!(column(&board, "user_id"), [ALICE, BOB, CAROL].map(address_text));
    let ranks = |rows: &[Value]| rows.iter().map(|row| row["rank"].as_u64()).collect::<Vec<_>>();
    assert_eq!(ranks(&board), [Some(1), Some(2), Some(2)], "two gained nothing");
    shows(&board[0], &[("pnl", 6.0), ("volume", 140.0)]);
    let volumes = pages_join(&mut exchange, "/v2/leaderboard?sort_by=volume");
    assert_eq!(
        (column(&volumes, "user_id"), ranks(&volumes)),
        (
            vec![&*address_text(ALICE), &address_text(BOB), &address_text(CAROL)],
            vec![Some(1), Some(2), Some(3)]
        )
    );
    let carol = data(&mut exchange, &format!("/v2/leaderboard?user={}", address_text(CAROL)));
    assert_eq!((&carol["rank_pnl"], &carol["rank_volume"]), (&json!(2), &json!(3)));
    shows(&carol, &[("pnl", 0.0), ("volume", 40.0)]);
    let safe = format!("/v2/leaderboard?user={}", address_text(ALICES_SAFE));
    assert_eq!(data(&mut exchange, &safe), Value::Null, "it did nothing");
    exchange.now += 24 * 3_600_000;
    assert!(rows(&mut exchange, "/v2/leaderboard").is_empty(), "a day later");
    assert_eq!(rows(&mut exchange, "/v2/leaderboard?timePeriod=ALL").len(), 3);
}

#[test]
fn what_a_wallet_did_is_known_by_the_hour() {
    const DAY_S: u64 = 86_400;
    let mut exchange = traded();
    let first = exchange.now / 1_000;
    exchange.now += 2 * DAY_S * 1_000;
    let ask = exchange.rests(ALICE, Side::Sell, Outcome::Zero, 50, 10);
    let taker = exchange.order(CAROL, Side::Buy, Outcome::Zero, 50, 10);
    exchange.fills(taker, &[(ask, 10)]);
    let now = exchange.now / 1_000;
    let alice = address_text(ALICE);
    let volume = |exchange: &mut Exchange, start, end| {
        data(exchange, &format!("/v2/user-volume?user={alice}&start={start}&end={end}"))
    };
    let sums = |shares: u64, cash: u64, trades: u64| json!({"volume": shares, "volume_usdc": cash, "trade_count": trades});
    assert_eq!(volume(&mut exchange, 0, 0), sums(150, 67, 3));
    assert_eq!(volume(&mut exchange, first, 0), sums(150, 67, 3));
    assert_eq!(volume(&mut exchange, first, first), sums(140, 62, 2));
    assert_eq!(volume(&mut exchange, 0, first), sums(140, 62, 2));
    assert_eq!(volume(&mut exchange, first + DAY_S, 0), sums(10, 5, 1));
    assert_eq!(volume(&mut exchange, first + DAY_S, first + DAY_S), sums(0, 0, 0));
    let pnl = data(&mut exchange, &format!("/v2/user-pnl?user={alice}&interval=1w&fidelity=1d"));
    let points = pnl["points"].as_array().expect("rows");
    let shown: Vec<(u64, f64, u64)> = points
        .iter()
        .map(|point| {
            let number = |name: &str| point[name].as_f64().expect("a number");
            (
                point["timestamp"].as_u64().expect("a second"),
                number("realized_pnl"),
                point["trade_count"].as_u64().expect("a number"),
            )
        })
        .collect();
    let day = |second: u64| second - second % DAY_S;
    assert_eq!(shown.len(), 8, "a week that began within a day");
    assert!(shown[..7].windows(2).all(|pair| pair[0].0 + DAY_S == pair[1].0));
    assert_eq!((shown[6].0, shown[7].0), (day(now), now), "whole days, and now");
    for (second, profit, trades) in shown {
        let expected = match second {
            _ if second <= day(first) => (0.0, 0),
            _ if second <= day(now) => (6.0, 2),
            _ => (7.0, 3),
        };
        assert_eq!((profit, trades), expected, "by {second}");
    }
    let stats = data(&mut exchange, &format!("/v2/user-stats?user={alice}"));
    shows(&stats, &[("trades", 1.0), ("biggest_win", 7.0)]);
    shows(&stats["all_time_pnl"], &[("realized_pnl", 7.0), ("volume", 150.0), ("volume_usdc", 67.0)]);
    let nobody = format!("0x{}", "99".repeat(20));
    assert_eq!(data(&mut exchange, &format!("/v2/user-stats?user={nobody}")), Value::Null);
    exchange.now += 40 * DAY_S * 1_000;
    for (more, field) in [(format!("start={now}"), "start"), (format!("end={now}"), "end")] {
        let target = format!("/v2/user-volume?user={alice}&{more}");
        assert_eq!(
            refused(&mut exchange, &target)["field"],
            field,
            "it did something before and may have since"
        );
    }
    let before = first - DAY_S;
    for (start, end, expected) in [
        (0, 0, sums(150, 67, 3)),
        (1, 0, sums(150, 67, 3)),
        (first, 0, sums(150, 67, 3)),
        (0, before, sums(0, 0, 0)),
    ] {
        assert_eq!(volume(&mut exchange, start, end), expected, "{start} to {end}");
    }
    assert_eq!(
        data(&mut exchange, &format!("/v2/user-volume?user=0x{}&start={now}", "99".repeat(20))),
        sums(0, 0, 0)
    );
    let pnl = data(&mut exchange, &format!("/v2/user-pnl?userAddress={alice}&interval=max&fidelity=1d"));
    let points = pnl["points"].as_array().expect("rows");
    assert_eq!(points.len(), 31, "thirty days that began within a day");
    shows(&points[0], &[("realized_pnl", 7.0)]);
}

/// So many numbers, which are no token's and no event's, with commas between.
fn numbers(count: usize) -> String {
    (1_000..).take(count).map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn what_is_not_understood_is_refused() {
    let mut exchange = spread();
    let alice = address_text(ALICE);
    let other = exchange.reads(&format!("/v2/positions?user={alice}&limit=1"))["pagination"]["next_cursor"]
        .as_str()
        .expect("more")
        .to_owned();
    let condition = condition_text(RAIN);
    exchange.acts(ALICE, RAIN, ActKind::Split, [5, 5]);
    for wallet in [ALICE, BOB] {
        exchange.acts(wallet, SNOW, ActKind::Split, [5, 5]);
    }
    let snow = condition_text(SNOW);
    let of_snow = exchange.reads(&format!("/v2/holders?condition={snow}&include_pnl=true&limit=1"))["pagination"]
        ["next_cursor"]
        .as_str()
        .expect("more")
        .to_owned();
    let plain = format!("/v2/holders?condition={snow}&cursor={of_snow}");
    assert_eq!(refused(&mut exchange, &plain)["field"], "cursor", "it counts otherwise");
    let many: Vec<String> = (0..21).map(|number| format!("0x{number:064x}")).collect();
    let many = many.join(",");
    for (target, field) in [
        ("/v2/positions".to_owned(), "user"),
        (format!("/v2/positions?condition={condition},{}", condition_text(SNOW)), "user"),
        (format!("/v2/positions?user={alice}&user={alice}"), "user"),
        (format!("/v2/positions?user={alice}&sort_by=PRICE&sortBy=PRICE"), "sortBy"),
        (format!("/v2/positions?user={alice}&sortby=PRICE"), "sortby"),
        (format!("/v2/positions?user={alice}&offset=1"), "offset"),
        (format!("/v2/positions?user={alice}&market={condition}"), "market"),
        (format!("/v2/positions?user={alice}&status=NEW"), "status"),
        (format!("/v2/positions?user={alice}&limit=0"), "limit"),
        (format!("/v2/positions?user={alice}&cursor=MA=="), "cursor"),
        (format!("/v2/positions?user={alice}&cursor={other}&sort_by=PRICE"), "sort_by"),
        (format!("/v2/positions?user={alice}&cursor={other}&sort_direction=ASC"), "sort_direction"),
        (format!("/v2/positions?user={alice}&condition={many}"), "condition"),
        (format!("/v2/positions?user={alice}&condition={condition}&event_id=77"), "event_id"),
        (format!("/v2/trades?cursor={other}"), "cursor"),
        ("/v2/trades?filter_type=SHARES".to_owned(), "filter_type"),
        ("/v2/activity".to_owned(), "user"),
        (format!("/v2/activity?user={alice}&type=NEWS"), "type"),
        (format!("/v2/activity?user={alice}&sort_by=CASH"), "sort_by"),
        ("/v2/value".to_owned(), "user"),
        ("/v2/holders".to_owned(), "condition"),
        (format!("/v2/holders?condition={condition},{}&include_pnl=true", condition_text(SNOW)), "condition"),
        ("/v2/live-volume".to_owned(), "event_id"),
        ("/v2/tokens".to_owned(), "token_id"),
        (format!("/v2/tokens?token_id=1&condition={condition}"), "condition"),
        (format!("/v2/tokens?token_id={}", numbers(51)), "token_id"),
        (format!("/v2/tokens?condition={}", many[..many.len() / 21 * 11].trim_end_matches(',')), "condition"),
        (format!("/v2/live-volume?event_id={}", numbers(21)), "event_id"),
        ("/v2/live-volume?event_id=1&id=2".to_owned(), "id"),
        (format!("/v2/holders?condition={condition}&cursor={other}"), "cursor"),
        (format!("/v2/holders?condition={condition}&cursor={of_snow}"), "cursor"),
        ("/v2/resolutions".to_owned(), "condition"),
        (format!("/v2/resolutions?condition={condition}&event_id=77"), "condition"),
        ("/v2/leaderboard?category=sports".to_owned(), "category"),
        ("/v2/leaderboard?time_period=year".to_owned(), "time_period"),
        ("/v2/user-stats".to_owned(), "user"),
        (format!("/v2/user-pnl?user={alice}&interval=1y"), "interval"),
        ("/v2/prices-history?interval=1d".to_owned(), "token_id"),
        ("/v2/prices-history?token_id=300".to_owned(), "interval"),
        ("/v2/prices-history?token_id=300&interval=1d&as_of=5".to_owned(), "interval"),
        ("/v2/prices-history?token_id=300&as_of=5&bucket_seconds=60".to_owned(), "bucket_seconds"),
        ("/v2/prices-history?token_id=300&start=5&end=4".to_owned(), "end"),
        ("/v2/prices-history?token_id=300&start=5&end=1296006".to_owned(), "start"),
        ("/v2/prices-history?token_id=300&interval=1d&bucket_seconds=59".to_owned(), "bucket_seconds"),
        (format!("/v2/positions/combos?user={alice}&offset=1"), "offset"),
    ] {
        assert_eq!(refused(&mut exchange, &target)["field"], field, "{target}");
    }
    for target in [
        format!("/v2/tokens?token_id=5{}", ",5".repeat(50)),
        format!("/v2/tokens?token_id={}", numbers(50)),
        format!("/v2/tokens?condition=0x{}", "ee".repeat(31)),
        format!("/v2/positions/combos?user={alice}"),
        format!("/v2/activity/combos?user={alice}"),
        "/v2/builders/leaderboard?time_period=DAY".to_owned(),
        "/v2/builders/volume?interval=day".to_owned(),
    ] {
        assert!(rows(&mut exchange, &target).is_empty());
    }
}
