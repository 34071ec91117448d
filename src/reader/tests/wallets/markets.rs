//! Holders, interest, volumes and ranks.

use super::*;

#[test]
fn holders_are_ranked_by_balance_and_counted_by_market() {
    let mut exchange = traded();
    exchange.acts(CAROL, RAIN, ActKind::Split, [60, 60]);
    let target = format!("/holders?market={},{}", condition_text(RAIN), condition_text(SNOW));
    let groups = exchange.rows(&target);
    assert_eq!(column(&groups, "token").len(), 4, "one group a token");
    let ranked = |group: &Value| -> Vec<(String, f64)> {
        let holders = group["holders"].as_array().expect("an array").iter();
        holders
            .map(|holder| {
                (
                    holder["proxyWallet"].as_str().expect("a text").to_owned(),
                    holder["amount"].as_f64().expect("a number"),
                )
            })
            .collect()
    };
    assert_eq!(ranked(&groups[0]), [(address_text(CAROL), 100.0), (address_text(ALICE), 60.0)]);
    assert_eq!(ranked(&groups[1]), [(address_text(BOB), 100.0), (address_text(CAROL), 60.0)]);
    assert_eq!(groups[0]["token"], groups[0]["holders"][0]["asset"]);
    assert!(ranked(&groups[2]).is_empty() && ranked(&groups[3]).is_empty());
    let most = exchange.rows(&format!("{target}&limit=3"));
    assert_eq!((ranked(&most[0]).len(), ranked(&most[1]).len()), (2, 1), "the address decides a tie");
    let large = exchange.rows(&format!("{target}&minBalance=60.000001"));
    assert_eq!((ranked(&large[0]).len(), ranked(&large[1]).len()), (1, 1));
    let large = exchange.rows(&format!("{target}&minBalance=60.0000001"));
    assert_eq!((ranked(&large[0]).len(), ranked(&large[1]).len()), (1, 1), "rounded up");
    let none = exchange.rows(&format!("/holders?market=0x{}", "ee".repeat(32)));
    assert!(none.is_empty(), "an unknown market has no tokens");
}

#[test]
fn several_markets_with_very_many_holders_are_refused() {
    let mut exchange = Exchange::opened();
    for wallet in [ALICE, BOB, ALICES_SAFE, BOBS_DEPOSIT, CAROL] {
        exchange.acts(wallet, RAIN, ActKind::Split, [5, 5]);
    }
    exchange.acts(ALICE, SNOW, ActKind::Split, [5, 5]);
    let both = format!("{},{}", condition_text(RAIN), condition_text(SNOW));
    for target in ["/holders?market=", "/v2/holders?condition="] {
        exchange.reads(&format!("{target}{both}"));
    }
    exchange.acts(BOB, SNOW, ActKind::Split, [5, 5]);
    for (target, field) in [("/holders?market=", "market"), ("/v2/holders?condition=", "condition")] {
        let (status, text) = exchange.sends(None, &format!("GET {target}{both}"), "");
        let refused: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((status, &refused["code"]), (400, &"payload_exceeds_limit".into()), "{target}: {text}");
        assert_eq!(refused["field"], field);
        assert_eq!(refused["allowed"], "fewer markets: these have many holders");
        for market in [RAIN, SNOW] {
            exchange.reads(&format!("{target}{}", condition_text(market)));
        }
    }
}

#[test]
fn one_market_is_shown_with_however_many_holders() {
    let mut exchange = Exchange::opened();
    let (time, kind) = (exchange.time(), WalletKind::Eoa);
    let holders = [ALICE, BOB, ALICES_SAFE, BOBS_DEPOSIT, CAROL, CAROLS_PROXY, WalletNo(6)];
    let (wallet, direction) = (holders[6], MoneyDirection::Credit);
    exchange.says(WalletAdded { time, wallet, address: address(wallet), kind, principal: Some(wallet) });
    let amount = Collateral(5 * SHARE);
    exchange.says(Money { time, wallet, direction, amount, reference: "opening 6".to_owned() });
    for wallet in holders {
        exchange.acts(wallet, RAIN, ActKind::Split, [5, 5]);
    }
    let groups = exchange.rows(&format!("/holders?market={}", condition_text(RAIN)));
    assert_eq!(groups[0]["holders"].as_array().map(Vec::len), Some(holders.len()));
}

#[test]
fn volumes_interest_and_ranks_add_up() {
    let mut exchange = traded();
    let (rain, snow) = (condition_text(RAIN), condition_text(SNOW));
    exchange.acts(BOB, SNOW, ActKind::Split, [7, 7]);
    let interest = exchange.rows("/oi");
    assert_eq!(column(&interest, "market"), [rain.as_str(), snow.as_str()]);
    assert_eq!(column(&interest, "value"), ["100", "7"]);
    assert_eq!(column(&exchange.rows(&format!("/oi?market={snow}")), "value"), ["7"]);
    let live = exchange.reads(&format!("/live-volume?market={rain},{snow}"));
    assert_eq!(live[0]["total"], "82", "60 by Bob and 22 by Carol, who took");
    assert_eq!(column(live[0]["markets"].as_array().expect("an array"), "value"), ["82", "0"]);
    let alice = address_text(ALICE);
    assert_eq!(exchange.reads(&format!("/traded?user={alice}"))["traded"], 1);
    assert_eq!(
        exchange.reads(&format!("/traded?user={}", address_text(BOB)))["traded"],
        1,
        "a split is none"
    );
    assert_eq!(exchange.reads(&format!("/volume?user={alice}"))["volume"], "62");
    assert_eq!(exchange.reads(&format!("/other?slug=weather&user={alice}"))[0]["size"], 0);
    let board = exchange.rows("/v1/leaderboard");
    assert_eq!(column(&board, "rank"), ["1", "2", "3"]);
    assert_eq!(column(&board, "proxyWallet"), [ALICE, BOB, CAROL].map(address_text));
    shows(&board[0], &[("pnl", 6.0), ("vol", 62.0)]);
    let volumes = exchange.rows("/v1/leaderboard?orderBy=VOL&limit=2&offset=1");
    assert_eq!(column(&volumes, "proxyWallet"), [BOB, CAROL].map(address_text));
    let own = exchange.rows(&format!("/v1/leaderboard?orderBy=VOL&user={}", address_text(CAROL)));
    assert_eq!((own.len(), &own[0]["rank"]), (1, &Value::from("3")));
    assert!(exchange.rows("/v1/leaderboard?userName=alice").is_empty(), "nobody has a name");
    exchange.now += 24 * 3_600_000;
    assert!(exchange.rows("/v1/leaderboard").is_empty(), "a day later");
    assert_eq!(exchange.rows("/v1/leaderboard?timePeriod=WEEK").len(), 3);
    exchange.now += 30 * 24 * 3_600_000;
    assert!(exchange.rows("/v1/leaderboard?timePeriod=MONTH").is_empty(), "a month later");
    assert_eq!(exchange.rows("/v1/leaderboard?timePeriod=ALL").len(), 3);
}

#[test]
fn what_rounding_leaves_behind_is_no_interest() {
    const ODD: Shares = Shares(SHARE + 1);
    let mut exchange = traded();
    let snow = condition_text(SNOW);
    exchange.acts_exactly(BOB, SNOW, ActKind::Split, [ODD, ODD]);
    exchange.resolves(SNOW, 500_000);
    exchange.acts_exactly(BOB, SNOW, ActKind::Redeem, [ODD, Shares(0)]);
    assert_eq!(column(&exchange.rows("/oi"), "value"), ["100", "0.500001"]);
    exchange.acts_exactly(BOB, SNOW, ActKind::Redeem, [Shares(0), ODD]);
    let left = exchange.reader.ledger.market(SNOW).expect("a market").backing;
    assert_eq!(left, Collateral(1), "each half was paid rounded down");
    assert_eq!(column(&exchange.rows("/oi"), "value"), ["100"]);
    assert_eq!(column(&exchange.rows(&format!("/oi?market={snow}")), "value"), ["0"]);
}

#[test]
fn a_market_s_live_activity_is_a_hundred_of_its_takers() {
    let mut exchange = Exchange::opened();
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 1, 101);
    let mut takers = Vec::new();
    for taker in [BOB, CAROL].into_iter().cycle().take(101) {
        let order = exchange.order(taker, Side::Buy, Outcome::One, 99, 1);
        exchange.fills(order, &[(bid, 1)]);
        takers.insert(0, address_text(taker));
    }
    let rows = exchange.rows(&format!("/markets/live-activity/{}", condition_text(RAIN)));
    let shown: Vec<_> = rows.iter().map(|row| row["user"]["address"].as_str().expect("a text")).collect();
    assert_eq!(shown, takers[..100], "newest first");
}
