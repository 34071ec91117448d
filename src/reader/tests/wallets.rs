//! Wallet routes against records whose results are worked out by hand, and lists against the same
//! lists made plainly.

mod markets;
mod v2;

use super::*;
use crate::domain::Payout;
use crate::journal::layout::{MarketText, Resolved};
use serde_json::json;

const SIDES: [Outcome; 2] = [Outcome::Zero, Outcome::One];

impl Exchange {
    /// A split, merge or redeem by `wallet` of whole shares.
    fn acts(&mut self, wallet: WalletNo, market: MarketNo, act: ActKind, shares: [u64; 2]) -> Position {
        self.acts_exactly(wallet, market, act, shares.map(|shares| Shares(shares * SHARE)))
    }

    /// A split, merge or redeem by `wallet`; the payout decides what a redeem brings.
    fn acts_exactly(
        &mut self,
        wallet: WalletNo,
        market: MarketNo,
        act: ActKind,
        shares: [Shares; 2],
    ) -> Position {
        self.now += STEP_MS;
        let payout = self.reader.ledger.market(market).and_then(|row| row.payout);
        let collateral = match act {
            ActKind::Split | ActKind::Merge => Collateral(shares[0].0),
            ActKind::Redeem => payout.expect("resolved").of(shares),
        };
        self.says(PositionAct {
            time: self.time(),
            act,
            wallet,
            market,
            shares,
            collateral,
            id: OrderId::ZERO,
            salt: Word::ZERO,
            timestamp_ms: self.now,
            signature: Vec::new(),
            removed: Vec::new(),
        })
    }

    fn resolves(&mut self, market: MarketNo, zero_millionths: u32) {
        let payout = Payout::new(zero_millionths).expect("at most one");
        self.says(Resolved { time: self.time(), market, payout });
    }

    #[track_caller]
    fn rows(&mut self, target: &str) -> Vec<Value> {
        self.reads(target).as_array().expect("an array").clone()
    }

    #[track_caller]
    fn positions_of(&mut self, wallet: WalletNo, more: &str) -> Vec<Value> {
        self.rows(&format!("/positions?user={}{more}", address_text(wallet)))
    }

    #[track_caller]
    fn closed_of(&mut self, wallet: WalletNo, more: &str) -> Vec<Value> {
        self.rows(&format!("/closed-positions?user={}{more}", address_text(wallet)))
    }

    #[track_caller]
    fn activity_of(&mut self, wallet: WalletNo, more: &str) -> Vec<Value> {
        self.rows(&format!("/activity?user={}{more}", address_text(wallet)))
    }
}

#[track_caller]
fn shows(row: &Value, numbers: &[(&str, f64)]) {
    for (name, number) in numbers {
        assert_eq!(row[name].as_f64(), Some(*number), "{name} {row}");
    }
}

/// Alice bought 100 rain at 40 and Bob 100 no rain at 60; then Alice sold 40 of hers to Carol at
/// 55.
pub(super) fn traded() -> Exchange {
    let mut exchange = Exchange::opened();
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 100);
    let mint = exchange.order(BOB, Side::Buy, Outcome::One, 60, 100);
    exchange.fills(mint, &[(bid, 100)]);
    let ask = exchange.rests(ALICE, Side::Sell, Outcome::Zero, 55, 40);
    let transfer = exchange.order(CAROL, Side::Buy, Outcome::Zero, 55, 40);
    exchange.fills(transfer, &[(ask, 40)]);
    exchange
}

#[test]
fn a_position_shows_what_it_cost_and_what_it_brought() {
    let mut exchange = traded();
    let alices = exchange.positions_of(ALICE, "");
    assert_eq!(alices.len(), 1);
    shows(
        &alices[0],
        &[
            ("size", 60.0),
            ("avgPrice", 0.4),
            ("initialValue", 24.0),
            ("currentValue", 33.0),
            ("cashPnl", 9.0),
            ("percentPnl", 37.5),
            ("totalBought", 100.0),
            ("realizedPnl", 6.0),
            ("percentRealizedPnl", 6.0),
            ("curPrice", 0.55),
            ("outcomeIndex", 0.0),
        ],
    );
    let condition = condition_text(RAIN);
    for (name, text) in [
        ("proxyWallet", address_text(ALICE)),
        ("asset", format!("{condition}:0")),
        ("oppositeAsset", format!("{condition}:1")),
        ("conditionId", condition),
        ("title", "Will it rain?".to_owned()),
        ("slug", "rain".to_owned()),
        ("icon", "i.png".to_owned()),
        ("eventSlug", "weather".to_owned()),
        ("outcome", "Yes".to_owned()),
        ("oppositeOutcome", "No".to_owned()),
        ("endDate", "2025-12-31T12:00:00Z".to_owned()),
    ] {
        assert_eq!(alices[0][name], text, "{name}");
    }
    assert_eq!(alices[0]["redeemable"], false);
    assert_eq!(alices[0]["timestamp"].as_u64(), Some(exchange.now / 1_000));
    shows(
        &exchange.positions_of(BOB, "")[0],
        &[("curPrice", 0.45), ("cashPnl", -15.0), ("percentPnl", -25.0)],
    );
    let value = exchange.reads(&format!("/value?user={}", address_text(ALICE)));
    assert_eq!(value[0]["value"], 33);
    assert!(exchange.positions_of(CAROLS_PROXY, "").is_empty(), "another wallet of hers");
    assert!(exchange.rows(&format!("/positions?user=0x{}", "99".repeat(20))).is_empty());
    let shouted = address_text(ALICE).to_uppercase().replace("0X", "0x");
    assert_eq!(exchange.rows(&format!("/positions?user={shouted}")), alices);
}

#[test]
fn a_resolution_makes_winners_and_losers_redeemable_at_once() {
    let mut exchange = traded();
    exchange.resolves(RAIN, 1_000_000);
    for (wallet, price) in [(ALICE, 1.0), (BOB, 0.0), (CAROL, 1.0)] {
        let rows = exchange.positions_of(wallet, "&redeemable=true");
        assert_eq!(rows.len(), 1, "losers too");
        assert_eq!(rows[0]["redeemable"], true);
        shows(&rows[0], &[("curPrice", price)]);
    }
    exchange.acts(ALICE, RAIN, ActKind::Redeem, [60, 0]);
    exchange.acts(BOB, RAIN, ActKind::Redeem, [0, 100]);
    for (wallet, size, average, initial, profit, percent) in
        [(ALICE, 60.0, 0.4, 24.0, 42.0, 42.0), (BOB, 100.0, 0.6, 60.0, -60.0, -60.0)]
    {
        assert!(exchange.positions_of(wallet, "&sizeThreshold=0").is_empty());
        let closed = exchange.closed_of(wallet, "");
        assert_eq!(closed.len(), 1);
        shows(
            &closed[0],
            &[
                ("size", size),
                ("avgPrice", average),
                ("initialValue", initial),
                ("currentValue", 0.0),
                ("cashPnl", profit),
                ("realizedPnl", profit),
                ("percentPnl", percent),
                ("percentRealizedPnl", percent),
                ("totalBought", 100.0),
            ],
        );
        assert!(closed[0].get("negativeRisk").is_none());
    }
    let redeems: Vec<_> = [ALICE, BOB].map(|wallet| exchange.activity_of(wallet, "&type=REDEEM")).concat();
    for (redeem, paid) in redeems.iter().zip([60.0, 0.0]) {
        shows(redeem, &[("size", paid), ("usdcSize", paid), ("price", 0.0), ("outcomeIndex", 999.0)]);
        assert_eq!((&redeem["side"], &redeem["asset"]), (&Value::from(""), &Value::from("")));
        assert_eq!(redeem["title"], "Will it rain?");
    }
}

#[test]
fn pairs_of_a_resolved_market_are_redeemed_and_not_merged() {
    let mut exchange = Exchange::opened();
    exchange.acts(ALICE, SNOW, ActKind::Split, [100, 100]);
    for (resolved, mergeable, redeemable) in [(false, 2, 0), (true, 0, 2)] {
        if resolved {
            exchange.resolves(SNOW, 1_000_000);
        }
        for (name, count) in [("mergeable", mergeable), ("redeemable", redeemable)] {
            let rows = exchange.positions_of(ALICE, "");
            assert_eq!(rows.iter().filter(|row| row[name] == true).count(), count, "{name}");
            for word in ["true", "True", "TRUE"] {
                let narrowed = exchange.positions_of(ALICE, &format!("&{name}={word}"));
                assert_eq!(narrowed.len(), count, "{name}={word}");
            }
        }
    }
}

#[test]
fn pairs_cost_and_bring_one_half_a_side() {
    let mut exchange = Exchange::opened();
    exchange.acts(ALICE, SNOW, ActKind::Split, [100, 100]);
    let rows = exchange.positions_of(ALICE, "&mergeable=true");
    assert_eq!(rows.len(), 2);
    for row in &rows {
        shows(row, &[("size", 100.0), ("avgPrice", 0.5), ("curPrice", 0.5), ("cashPnl", 0.0)]);
        assert_eq!((&row["mergeable"], &row["negativeRisk"]), (&Value::Bool(true), &Value::Bool(true)));
        assert_eq!(row["endDate"], "9999-12-31T00:00:00Z", "nobody named one");
    }
    let mut bid = exchange.order(BOB, Side::Buy, Outcome::Zero, 70, 50);
    bid.market = SNOW;
    let bid = exchange.says(bid);
    let mut sale = exchange.order(ALICE, Side::Sell, Outcome::Zero, 70, 50);
    sale.market = SNOW;
    exchange.fills(sale, &[(bid, 50)]);
    exchange.acts(ALICE, SNOW, ActKind::Merge, [50, 50]);
    shows(
        &exchange.positions_of(ALICE, "")[0],
        &[("size", 50.0), ("realizedPnl", 0.0), ("outcomeIndex", 1.0)],
    );
    assert_eq!(exchange.positions_of(ALICE, "")[0]["mergeable"], false);
    shows(&exchange.closed_of(ALICE, "")[0], &[("realizedPnl", 10.0), ("outcomeIndex", 0.0), ("size", 50.0)]);
    let shares = exchange.activity_of(ALICE, "");
    assert_eq!(column(&shares, "type"), ["MERGE", "TRADE", "SPLIT"], "as clients of the venues know them");
    let kinds = exchange.activity_of(ALICE, "&excludeDepositsWithdrawals=false");
    assert_eq!(kinds[3..], exchange.activity_of(ALICE, "&type=DEPOSIT"));
    assert_eq!(column(&kinds, "type"), ["MERGE", "TRADE", "SPLIT", "DEPOSIT"]);
    shows(&kinds[2], &[("price", 0.5), ("size", 100.0), ("usdcSize", 100.0), ("outcomeIndex", 999.0)]);
    shows(&kinds[3], &[("size", 1_000.0), ("price", 0.0)]);
    assert_eq!((&kinds[3]["conditionId"], &kinds[3]["title"]), (&Value::from(""), &Value::from("")));
}

#[test]
fn fees_are_part_of_what_a_buyer_paid_and_not_of_what_a_seller_got() {
    let mut exchange = Exchange::opened();
    let bid = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 50, 10);
    exchange.acts(BOB, RAIN, ActKind::Split, [10, 10]);
    let mut sale = exchange.order(BOB, Side::Sell, Outcome::Zero, 50, 10);
    sale.open = Shares::ZERO;
    sale.result = PlacedResult::Filled;
    let fees = [Collateral(30_000), Collateral(100_000)];
    sale.fills.push(Fill {
        maker: bid,
        shares: Shares(10 * SHARE),
        maker_leg: Collateral(5_000_000),
        taker_leg: Collateral(5_000_000),
        maker_fee: fees[0],
        taker_fee: fees[1],
        kind: MatchKind::Transfer,
        price: Price::new(5_000).expect("in range"),
    });
    exchange.says(sale);
    shows(&exchange.positions_of(ALICE, "")[0], &[("avgPrice", 0.503), ("initialValue", 5.03)]);
    shows(&exchange.closed_of(BOB, "")[0], &[("realizedPnl", -0.1)]);
    for (wallet, cash) in [(ALICE, 5.03), (BOB, 4.9)] {
        shows(&exchange.activity_of(wallet, "")[0], &[("usdcSize", cash), ("price", 0.5), ("size", 10.0)]);
        let volume = exchange.reads(&format!("/volume?user={}", address_text(wallet)));
        assert_eq!(volume["volume"], "5", "without fees");
    }
}

/// Alice holds one outcome in each of 10 markets, bought at several prices, and in every third both
/// outcomes.
fn spread() -> Exchange {
    let mut exchange = Exchange::opened();
    let titles = ["Zebra", "apple", "Mango", "mango"].iter().cycle().skip(2);
    for (number, title) in (2..12_u64).zip(titles) {
        let market = MarketNo(u32::try_from(number).expect("small"));
        let end = if number % 4 == 0 {
            String::new()
        } else {
            format!(",\"endDate\":\"2026-0{}-01T00:00:00Z\"", number % 7 + 1)
        };
        exchange.open_market(market, &format!("{{\"question\":\"{title} {}\"{end}}}", number % 3));
        let (cents, shares) = (u16::try_from(20 + 5 * (number % 5)).expect("small"), 10 + number % 4);
        let mut bid = exchange.order(ALICE, Side::Buy, Outcome::Zero, cents, shares);
        bid.market = market;
        let bid = exchange.says(bid);
        let mut other = exchange.order(BOB, Side::Buy, Outcome::One, 100 - cents, shares);
        other.market = market;
        exchange.fills(other, &[(bid, shares)]);
        if number % 3 == 0 {
            exchange.acts(ALICE, market, ActKind::Split, [3, 3]);
        }
    }
    exchange
}

#[test]
fn every_sort_orders_by_what_is_shown_and_ties_are_stable() {
    let mut exchange = spread();
    let plain = exchange.positions_of(ALICE, "&limit=500");
    assert_eq!(plain.len(), 13);
    let places: Vec<String> = (0..12)
        .flat_map(|market| SIDES.map(|side| (market, side)))
        .map(|(market, side)| format!("{}:{}", condition_text(MarketNo(market)), side.index()))
        .collect();
    let place = |row: &Value| places.iter().position(|asset| row["asset"] == asset.as_str());
    for (sort, name) in [
        ("CURRENT", "currentValue"),
        ("INITIAL", "initialValue"),
        ("TOKENS", "size"),
        ("CASHPNL", "cashPnl"),
        ("PERCENTPNL", "percentPnl"),
        ("PRICE", "curPrice"),
        ("AVGPRICE", "avgPrice"),
        ("TITLE", "title"),
        ("RESOLVING", "endDate"),
    ] {
        for direction in ["ASC", "DESC"] {
            let rows = exchange.positions_of(ALICE, &format!("&sortBy={sort}&sortDirection={direction}"));
            let mut wanted = plain.clone();
            wanted.sort_by(|one, other| {
                let order = match (&one[name], &other[name]) {
                    (Value::String(one), Value::String(other)) => {
                        one.to_lowercase().cmp(&other.to_lowercase())
                    }
                    (one, other) => one.as_f64().partial_cmp(&other.as_f64()).expect("numbers"),
                };
                let order = if direction == "DESC" { order.reverse() } else { order };
                order.then(place(one).cmp(&place(other)))
            });
            assert_eq!(rows, wanted, "{sort} {direction}");
            let pages: Vec<Value> = (0..13)
                .step_by(4)
                .flat_map(|offset| {
                    let more = format!("&sortBy={sort}&sortDirection={direction}&limit=4&offset={offset}");
                    exchange.positions_of(ALICE, &more)
                })
                .collect();
            assert_eq!(pages, wanted, "{sort} {direction} in pages");
        }
    }
}

#[test]
fn closed_positions_are_sorted_and_paged_likewise() {
    let mut exchange = spread();
    for number in 2..12 {
        exchange.resolves(MarketNo(number), if number % 2 == 0 { 1_000_000 } else { 500_000 });
        let held = exchange.reader.ledger.holding(ALICE, MarketNo(number)).map(|shares| shares.0 / SHARE);
        exchange.acts(ALICE, MarketNo(number), ActKind::Redeem, held);
    }
    let plain = exchange.closed_of(ALICE, "&limit=50");
    assert_eq!((plain.len(), exchange.closed_of(ALICE, "").len()), (13, 10), "ten by default");
    for (sort, name) in [
        ("REALIZEDPNL", "realizedPnl"),
        ("PRICE", "curPrice"),
        ("AVGPRICE", "avgPrice"),
        ("TIMESTAMP", "timestamp"),
    ] {
        let number = |row: &Value| row[name].as_f64().expect("a number");
        let rows = exchange.closed_of(ALICE, &format!("&limit=50&sortBy={sort}&sortDirection=ASC"));
        assert!(rows.is_sorted_by(|one, other| number(one) <= number(other)), "{sort}");
        let pages: Vec<Value> = (0..13)
            .step_by(5)
            .flat_map(|offset| {
                let more = format!("&limit=5&sortBy={sort}&sortDirection=ASC&offset={offset}");
                exchange.closed_of(ALICE, &more)
            })
            .collect();
        assert_eq!(pages, rows, "{sort} in pages");
    }
    let titled = exchange.closed_of(ALICE, "&sortBy=TITLE&sortDirection=ASC&limit=50&title=MANGO");
    assert!(titled.iter().all(|row| row["title"].as_str().expect("a text").to_lowercase().contains("mango")));
    assert!(!titled.is_empty() && titled.len() < 13);
}

#[test]
fn filters_pass_what_they_say_and_nothing_else() {
    let mut exchange = spread();
    let all = exchange.positions_of(ALICE, "&sizeThreshold=0");
    let counts = |exchange: &mut Exchange, more: &str| exchange.positions_of(ALICE, more).len();
    let of = |test: &dyn Fn(&Value) -> bool| all.iter().filter(|row| test(row)).count();
    let size = |row: &Value| row["size"].as_f64().expect("a number");
    assert_eq!(counts(&mut exchange, ""), all.len());
    assert_eq!(counts(&mut exchange, "&sizeThreshold=11"), of(&|row| size(row) >= 11.0));
    for above in ["11.000001", "11.0000001", "1.1000000001e1"] {
        assert_eq!(counts(&mut exchange, &format!("&sizeThreshold={above}")), of(&|row| size(row) > 11.0));
    }
    assert_eq!(counts(&mut exchange, "&sizeThreshold=1.1E%2B01"), of(&|row| size(row) >= 11.0));
    assert_eq!(counts(&mut exchange, "&sizeThreshold=1e-05"), all.len());
    assert_eq!(counts(&mut exchange, "&mergeable=true"), of(&|row| row["mergeable"] == true));
    assert_eq!(counts(&mut exchange, "&mergeable=false&redeemable=false"), all.len(), "false passes all");
    assert_eq!(counts(&mut exchange, "&redeemable=true"), 0);
    assert_eq!(
        counts(&mut exchange, "&title=PPLE"),
        of(&|row| row["title"].as_str().is_some_and(|title| title.contains("apple")))
    );
    assert_eq!(counts(&mut exchange, "&title=%25"), 0);
    let (two, three) =
        (condition_text(MarketNo(2)), condition_text(MarketNo(3)).to_uppercase().replace("0X", "0x"));
    assert_eq!(counts(&mut exchange, &format!("&market={two}")), 1);
    assert_eq!(counts(&mut exchange, &format!("&market={two},{three}")), 3);
    assert_eq!(counts(&mut exchange, &format!("&market=0x{}", "ee".repeat(32))), 0, "unknown");
    assert_eq!(counts(&mut exchange, "&limit=0"), 0);
    assert_eq!(counts(&mut exchange, "&offset=13"), 0);
}

#[test]
fn activity_is_the_same_list_however_it_is_cut() {
    let mut exchange = spread();
    for round in 0..40 {
        exchange.acts(ALICE, MarketNo(2 + round % 10), ActKind::Split, [1 + u64::from(round % 7); 2]);
        exchange.acts(ALICE, MarketNo(2 + round % 10), ActKind::Merge, [1, 1]);
    }
    let all = exchange.activity_of(ALICE, "&limit=5000000000000000000000");
    assert_eq!(all.len(), 10 + 3 + 80);
    assert!(all.is_sorted_by_key(|row| std::cmp::Reverse(row["timestamp"].as_u64())));
    for limit in [1, 7, 92, 93, 94] {
        let mut pages: Vec<Value> = Vec::new();
        while pages.len() < all.len() {
            let page = exchange.activity_of(ALICE, &format!("&limit={limit}&offset={}", pages.len()));
            assert!(!page.is_empty());
            pages.extend(page);
        }
        assert_eq!(pages, all, "by {limit}");
    }
    let backwards: Vec<_> = all.iter().rev().cloned().collect();
    assert_eq!(exchange.activity_of(ALICE, "&limit=500&sortDirection=asc"), backwards);
    let middle = all[40]["timestamp"].as_u64().expect("seconds");
    for (more, passes) in [
        ("&type=SPLIT", &(|row: &Value| row["type"] == "SPLIT") as &dyn Fn(&Value) -> bool),
        ("&type=trade,Merge", &|row| row["type"] == "TRADE" || row["type"] == "MERGE"),
        ("&type=REWARD", &|_| false),
        ("&side=BUY", &|row| row["side"] == "BUY"),
        ("&side=SELL", &|_| false),
        (&format!("&start={middle}"), &|row| row["timestamp"].as_u64() >= Some(middle)),
        (&format!("&end={middle}"), &|row| row["timestamp"].as_u64() <= Some(middle)),
        (&format!("&start={middle}000&end={middle}000"), &|row| row["timestamp"].as_u64() == Some(middle)),
        (&format!("&start={middle}&end={}", middle - 1), &|_| false),
        (&format!("&market={}&type=SPLIT", condition_text(MarketNo(5))), &|row| {
            row["conditionId"] == condition_text(MarketNo(5)).as_str() && row["type"] == "SPLIT"
        }),
    ] {
        let wanted: Vec<_> = all.iter().filter(|row| passes(row)).cloned().collect();
        assert_eq!(exchange.activity_of(ALICE, &format!("&limit=500{more}")), wanted, "{more}");
        let rest = exchange.activity_of(ALICE, &format!("&limit=500&offset=2{more}"));
        assert_eq!(rest, wanted.get(2..).unwrap_or_default(), "{more} from the third");
    }
    for (sort, name) in [("TOKENS", "size"), ("CASH", "usdcSize")] {
        let number = |row: &Value| row[name].as_f64().expect("a number");
        let mut wanted = all.clone();
        wanted.sort_by(|one, other| number(other).total_cmp(&number(one)));
        assert_eq!(exchange.activity_of(ALICE, &format!("&limit=500&sortBy={sort}")), wanted, "{sort}");
    }
}

#[test]
fn trades_are_those_of_takers_unless_makers_are_asked_for() {
    let mut exchange = traded();
    let takers = exchange.rows("/trades");
    assert_eq!(column(&takers, "proxyWallet"), [address_text(CAROL), address_text(BOB)]);
    let all = exchange.rows("/trades?takerOnly=false");
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|row| row.get("type").is_none() && row["transactionHash"] != ""));
    assert_eq!(all[0]["transactionHash"], all[1]["transactionHash"], "one for both sides");
    let alice = address_text(ALICE);
    for (query, count) in [
        (format!("user={alice}"), 0),
        (format!("user={alice}&takerOnly=false"), 2),
        (format!("user={alice}&takerOnly=false&side=SELL"), 1),
        (format!("market={}&takerOnly=false", condition_text(RAIN)), 4),
        (format!("market={},{}&takerOnly=false&offset=1", condition_text(SNOW), condition_text(RAIN)), 3),
        (format!("market={}", condition_text(SNOW)), 0),
        ("takerOnly=false&filterType=CASH&filterAmount=40".to_owned(), 2),
        ("takerOnly=false&filterType=TOKENS&filterAmount=100".to_owned(), 2),
        ("takerOnly=false&filterType=TOKENS&filterAmount=100.000001".to_owned(), 0),
        ("takerOnly=false&filterType=TOKENS&filterAmount=100.0000001".to_owned(), 0),
        ("takerOnly=false&filterType=TOKENS&filterAmount=1e2".to_owned(), 2),
        (format!("user=0x{}", "99".repeat(20)), 0),
        ("limit=1".to_owned(), 1),
    ] {
        assert_eq!(exchange.rows(&format!("/trades?{query}")).len(), count, "{query}");
    }
    let by_market = exchange.rows(&format!("/trades?takerOnly=false&market={}", condition_text(RAIN)));
    assert_eq!(by_market, all, "the same order");
}

#[test]
fn positions_show_what_the_texts_say_now() {
    let mut exchange = traded();
    let shown = |exchange: &mut Exchange, name: &str| {
        let rows = exchange.positions_of(ALICE, "");
        rows.first().expect("a position")[name].as_str().expect("a text").to_owned()
    };
    for title in ["Rain?", "Rain, \"soon\"?"] {
        let text = json!({"question": title, "slug": "rain"}).to_string();
        exchange.says(MarketText { time: TimeMs(1), market: RAIN, event: Some(0), text });
        for _ in 0..2 {
            assert_eq!(shown(&mut exchange, "title"), title);
        }
        let text = json!({"id": "1", "slug": format!("event of {title}"), "title": "E"}).to_string();
        exchange.says(EventText { time: TimeMs(1), event: 0, text });
        for _ in 0..2 {
            assert_eq!(shown(&mut exchange, "eventSlug"), format!("event of {title}"));
        }
    }
}

#[test]
fn a_market_without_an_end_ends_with_its_event_in_positions_too() {
    let mut exchange = traded();
    let ends = |exchange: &mut Exchange, event: &str, market: &str| {
        exchange.says(EventText { time: TimeMs(1), event: 0, text: event.into() });
        exchange.says(MarketText { time: TimeMs(1), market: RAIN, event: Some(0), text: market.into() });
        exchange.positions_of(ALICE, "")[0]["endDate"].as_str().expect("a date").to_owned()
    };
    let dated = r#"{"id":"77","endDate":"2027-05-01T00:00:00Z"}"#;
    for (event, market, end) in [
        (r#"{"id":"77"}"#, "{}", "9999-12-31T00:00:00Z"),
        (dated, "{}", "2027-05-01T00:00:00Z"),
        (dated, r#"{"endDate":"2027-02-01T00:00:00.5Z"}"#, "2027-02-01T00:00:00.5Z"),
        (dated, r#"{"endDate":"soon"}"#, "2027-05-01T00:00:00Z"),
    ] {
        assert_eq!(ends(&mut exchange, event, market), end, "{event} {market}");
    }
    exchange.acts(ALICE, RAIN, ActKind::Split, [40, 40]);
    exchange.acts(ALICE, RAIN, ActKind::Merge, [40, 40]);
    assert_eq!(exchange.closed_of(ALICE, "")[0]["endDate"], "2027-05-01T00:00:00Z", "closed as well");
}

#[test]
fn the_operator_decides_how_tokens_and_ends_look() {
    let mut exchange = traded();
    exchange.reader.settings.wallet =
        WalletSettings { asset: AssetFormat::Token, end_date: EndDateFormat::Polymarket };
    let row = &exchange.positions_of(ALICE, "&limit=9999999999999999999999")[0];
    assert_eq!((&row["asset"], &row["oppositeAsset"]), (&Value::from(RAIN_YES), &Value::from(RAIN_NO)));
    assert_eq!(row["endDate"], "2025-12-31");
    exchange.acts(BOB, SNOW, ActKind::Split, [5, 5]);
    let rows = exchange.positions_of(BOB, "&sortBy=RESOLVING&sortDirection=ASC");
    assert_eq!(column(&rows, "endDate"), ["2025-12-31", "9999-12-31", "9999-12-31"]);
    exchange.resolves(RAIN, 0);
    exchange.acts(ALICE, RAIN, ActKind::Redeem, [60, 0]);
    let row = &exchange.closed_of(ALICE, "&limit=500&sizeThreshold=0")[0];
    assert_eq!(
        (&row["asset"], &row["endDate"]),
        (&Value::from(RAIN_YES), &Value::from("2025-12-31T12:00:00Z"))
    );
    let (status, _) =
        exchange.sends(None, &format!("GET /positions?user={}&offset=10001", address_text(ALICE)), "");
    assert_eq!(status, 400, "an offset is not cut");
}
