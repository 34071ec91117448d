//! Wallet data of a running exchange: what wallets did appears in the answers of their routes, in
//! the shapes of the interface document.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Market, Plan};
use common::schema::Document;
use common::trader::{KEYS, Trader, Wish, hex_text, token};
use common::wire::{Answer, Connection};
use common::{column, folder};
use outcry::domain::Side;
use serde_json::Value;

/// Millionths in one share.
const SHARE: u64 = 1_000_000;

const ALICE: usize = 0;
const BOB: usize = 1;
const YES: usize = 0;
const NO: usize = 1;
const SPLIT: u8 = 0;
const MERGE: u8 = 1;
const REDEEM: u8 = 2;

/// A market of its own, two traders, and a connection.
struct Stage {
    exchange: Exchange,
    connection: Connection,
    document: Document,
    condition: String,
    tokens: [String; 2],
    traders: [Trader; 2],
    _folder: tempfile::TempDir,
}

impl Stage {
    fn open(settings: &[&str]) -> Self {
        let folder = folder();
        let plan = settings.iter().fold(Plan::dev(folder.path()), |plan, setting| plan.set(setting));
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let Market { condition, tokens } = exchange.market("Will it rain?");
        let traders = [KEYS[4], KEYS[5]].map(|key| Trader::new(key, &mut connection));
        let document = Document::of_library();
        Self { exchange, connection, document, condition, tokens, traders, _folder: folder }
    }

    /// Places an order that must be taken. Price in cents, size in shares.
    #[track_caller]
    fn order(&mut self, who: usize, side: Side, outcome: usize, cents: u64, shares: u64) {
        let wish = Wish::of(side, token(&self.tokens[outcome]), cents * 100, shares * SHARE);
        let trader = &mut self.traders[who];
        let order = trader.sign(&wish);
        let answer = trader.post(&mut self.connection, &order.body);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Does a split, merge or redeem that must succeed.
    #[track_caller]
    fn act(&mut self, who: usize, act: u8, shares: u64) -> Value {
        let condition = self.condition.clone();
        let answer = self.traders[who].act(&mut self.connection, act, &condition, shares * SHARE);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn address(&self, who: usize) -> String {
        hex_text(&self.traders[who].address.0)
    }

    /// A read whose answer must fit the document.
    #[track_caller]
    fn get(&mut self, target: &str) -> Answer {
        let answer = self.connection.request("GET", target, "", b"").unwrap();
        let path = target.split('?').next().unwrap();
        let operation = self.document.operation("GET", path).unwrap();
        let schema = self.document.answer_schema(operation, answer.status);
        let complaints = self.document.complaints(schema.unwrap(), &answer.json());
        assert!(complaints.is_empty(), "{target}: {complaints:#?}");
        answer
    }

    #[track_caller]
    fn rows(&mut self, target: &str) -> Vec<Value> {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.json());
        answer.json().as_array().unwrap().clone()
    }

    #[track_caller]
    fn positions(&mut self, who: usize) -> Vec<Value> {
        let path = format!("/positions?user={}&market={}", self.address(who), self.condition);
        self.rows(&path)
    }
}

#[track_caller]
fn shows(row: &Value, numbers: &[(&str, f64)]) {
    for (name, number) in numbers {
        assert_eq!(row[name].as_f64(), Some(*number), "{name} {row}");
    }
}

/// Mint: Alice buys 100 yes at 40, Bob 100 no. Transfer: Bob buys 20 yes of Alice at 50. Merge:
/// Alice sells 30 yes at 55, Bob 30 no.
fn trade(stage: &mut Stage) {
    stage.order(ALICE, Side::Buy, YES, 40, 100);
    assert!(stage.positions(ALICE).is_empty(), "an order is not a position");
    stage.order(BOB, Side::Buy, NO, 60, 100);
    stage.order(ALICE, Side::Sell, YES, 50, 20);
    stage.order(BOB, Side::Buy, YES, 50, 20);
    stage.order(ALICE, Side::Sell, YES, 55, 30);
    stage.order(BOB, Side::Sell, NO, 45, 30);
}

#[test]
fn every_kind_of_trade_and_act_shows_in_every_route() {
    let mut stage = Stage::open(&[]);
    trade(&mut stage);
    let alices = stage.positions(ALICE);
    assert_eq!(alices.len(), 1, "{alices:?}");
    shows(&alices[0], &[("size", 50.0), ("avgPrice", 0.4), ("realizedPnl", 6.5), ("totalBought", 100.0)]);
    shows(&alices[0], &[("curPrice", 0.55), ("currentValue", 27.5), ("cashPnl", 7.5), ("percentPnl", 37.5)]);
    let bobs = stage.positions(BOB);
    assert_eq!(bobs.len(), 2, "{bobs:?}");
    shows(&bobs[0], &[("size", 70.0), ("avgPrice", 0.6), ("realizedPnl", -4.5), ("outcomeIndex", 1.0)]);
    assert!(bobs.iter().all(|row| row["mergeable"] == true && row["redeemable"] == false));
    let condition = stage.condition.clone();
    assert_eq!(bobs[0]["asset"], format!("{condition}:1"));
    assert_eq!(bobs[0]["title"], "Will it rain?");
    let id = stage.connection.read(&format!("/markets/{condition}"))["market_id"].clone();
    let in_catalog = stage.connection.read(&format!("/markets/{id}"));
    assert_eq!(in_catalog["endDate"], "9999-12-31T00:00:00Z", "nobody named an end");
    assert!(bobs.iter().all(|row| row["endDate"] == in_catalog["endDate"]), "{bobs:?}");

    stage.act(BOB, MERGE, 20);
    stage.act(ALICE, SPLIT, 10);
    assert_eq!(stage.positions(BOB).len(), 1, "all his yes were merged");
    let bob = stage.address(BOB);
    let closed = stage.rows(&format!("/closed-positions?user={bob}"));
    shows(&closed[0], &[("size", 20.0), ("avgPrice", 0.5), ("realizedPnl", 0.0), ("outcomeIndex", 0.0)]);
    assert_eq!(closed[0]["endDate"], in_catalog["endDate"]);

    let holders = stage.rows(&format!("/holders?market={condition}"));
    let held = |group: usize, rank: usize| holders[group]["holders"][rank]["amount"].as_f64();
    assert_eq!((held(0, 0), held(0, 1)), (Some(60.0), None));
    assert_eq!((held(1, 0), held(1, 1)), (Some(50.0), Some(10.0)));
    let interest = stage.rows(&format!("/oi?market={condition}"));
    assert_eq!(column(&interest, "value"), ["60"]);

    resolve(&mut stage);
    let alice = stage.address(ALICE);
    let kinds = |stage: &mut Stage, user: &str| -> Vec<String> {
        let rows = stage.rows(&format!("/activity?user={user}&market={}", stage.condition));
        column(&rows, "type").into_iter().map(str::to_owned).collect()
    };
    assert_eq!(kinds(&mut stage, &alice), ["REDEEM", "SPLIT", "TRADE", "TRADE", "TRADE"]);
    assert_eq!(kinds(&mut stage, &bob), ["REDEEM", "MERGE", "TRADE", "TRADE", "TRADE"]);
    for target in [
        format!("/trades?user={alice}&takerOnly=false"),
        format!("/value?user={alice}"),
        format!("/live-volume?market={condition}"),
        "/v1/leaderboard?timePeriod=ALL".to_owned(),
        format!("/other?slug=rain&user={alice}"),
    ] {
        assert!(!stage.rows(&target).is_empty(), "{target}");
    }
    for target in [format!("/traded?user={alice}"), format!("/volume?user={alice}")] {
        assert_eq!(stage.get(&target).status, 200);
    }
    assert_eq!(stage.get(&format!("/traded?user={alice}")).json()["traded"], 1);
    stage.exchange.stop();
}

/// Yes wins. Alice redeems and so does Bob, who lost. The operator's money shows too.
fn resolve(stage: &mut Stage) {
    stage.exchange.operator(&["market", "resolve", &stage.condition, "--payout", "1"]);
    for (who, outcome, price) in [(ALICE, 0.0, 1.0), (BOB, 1.0, 0.0)] {
        let user = stage.address(who);
        let rows = stage.rows(&format!("/positions?user={user}&redeemable=true&sortBy=PRICE"));
        let row = rows.iter().find(|row| row["outcomeIndex"].as_f64() == Some(outcome)).unwrap();
        shows(row, &[("curPrice", price)]);
        let redeemed = stage.act(who, REDEEM, 0);
        let shares: f64 = redeemed["shares"].as_str().unwrap().parse().unwrap();
        assert_eq!(row["size"].as_f64(), Some(shares), "of whichever outcome: {redeemed}");
        assert!(stage.positions(who).is_empty());
    }
    let user = stage.address(BOB);
    let redeems = stage.rows(&format!("/activity?user={user}&type=REDEEM"));
    shows(&redeems[0], &[("size", 0.0), ("usdcSize", 0.0), ("outcomeIndex", 999.0)]);
    stage.exchange.operator(&["account", "credit", &user, "12.5"]);
    stage.exchange.operator(&["account", "debit", &user, "2.5"]);
    let with_money = format!("/activity?user={user}&excludeDepositsWithdrawals=false");
    let money = stage.rows(&format!("{with_money}&limit=2"));
    assert_eq!(column(&money, "type"), ["WITHDRAWAL", "DEPOSIT"]);
    shows(&money[0], &[("size", 2.5), ("usdcSize", 2.5), ("price", 0.0)]);
    let all = stage.rows(&format!("{with_money}&limit=500"));
    let cash: f64 = all.iter().map(signed).sum();
    let shown = stage.exchange.operator(&["account", "show", &user]);
    let balance: f64 = shown["balance"].as_str().unwrap().parse().unwrap();
    assert!((cash - balance).abs() < 1e-6, "{cash} came in, {balance} is there");
}

/// The cash that a row brought or took.
fn signed(row: &Value) -> f64 {
    let cash = row["usdcSize"].as_f64().unwrap();
    match (row["type"].as_str().unwrap(), row["side"].as_str().unwrap()) {
        ("TRADE", "BUY") | ("SPLIT" | "WITHDRAWAL", _) => -cash,
        _ => cash,
    }
}

#[test]
fn every_parameter_is_taken_up_to_its_bounds_and_refused_beyond_them() {
    let mut stage = Stage::open(&[]);
    let (user, market) = (format!("user={}", stage.address(ALICE)), format!("market={}", stage.condition));
    for (path, needed, field, min, max) in [
        ("/positions", &user, "limit", 0, 500),
        ("/positions", &user, "offset", 0, 10_000),
        ("/closed-positions", &user, "limit", 0, 50),
        ("/closed-positions", &user, "offset", 0, 100_000),
        ("/activity", &user, "limit", 0, 500),
        ("/activity", &user, "offset", 0, 10_000),
        ("/holders", &market, "limit", 0, 500),
        ("/trades", &user, "limit", 0, 10_000),
        ("/trades", &user, "offset", 0, 10_000),
        ("/v1/leaderboard", &user, "limit", 1, 50),
        ("/v1/leaderboard", &user, "offset", 0, 1_000),
    ] {
        // A limit that is too large is cut.
        let beyond = if field == "limit" { 200 } else { 400 };
        for (value, status) in [(min - 1, 400), (min, 200), (max, 200), (max + 1, beyond)] {
            let answer = stage.get(&format!("{path}?{needed}&{field}={value}"));
            assert_eq!(answer.status, status, "{path} {field}={value}");
            if status == 400 {
                let body = answer.json();
                let rule = if field == "limit" {
                    format!("{min} or more; beyond {max} it is {max}")
                } else {
                    format!("a whole number from {min} to {max}")
                };
                let got = value.to_string();
                assert_eq!((&body["field"], &body["got"]), (&Value::from(field), &Value::from(got)));
                assert_eq!(
                    (&body["code"], &body["allowed"]),
                    (&Value::from("invalid_field"), &Value::from(rule))
                );
            }
        }
    }
    for (path, needed, field, good, bad) in [
        (
            "/positions",
            &user,
            "sizeThreshold",
            &["0", "0.000001", "0.0000001", "1e-05", "1e3", "18446744073709.551615"][..],
            &["-1", "-1e-7", "NaN", "inf", "1e14", "18446744073709.551616"][..],
        ),
        ("/holders", &market, "minBalance", &["0", "1.5", "1e-3", "0.0000001"], &["-0.1", "x", "1e"]),
        (
            "/trades",
            &format!("{user}&filterType=CASH"),
            "filterAmount",
            &["0", "1e-05", "2.5E%2B3", "0.0000001"],
            &["-0.1", "x", "1e14"],
        ),
        ("/trades", &user, "takerOnly", &["true", "false", "True", "FALSE"], &["1", "yes"]),
        ("/positions", &user, "redeemable", &["true", "false"], &["yes", "0"]),
        ("/positions", &user, "mergeable", &["true", "false"], &["yes", "0"]),
        ("/positions", &user, "sortDirection", &["ASC", "DESC", "asc"], &["UP"]),
        (
            "/closed-positions",
            &user,
            "sortBy",
            &["REALIZEDPNL", "TITLE", "PRICE", "AVGPRICE", "TIMESTAMP"],
            &["TOKENS"],
        ),
        ("/activity", &user, "type", &["TRADE", "SPLIT,MERGE", "REWARD", "trade"], &["BET", "TRADE,"]),
        ("/activity", &user, "side", &["BUY", "SELL"], &["HOLD"]),
        ("/activity", &user, "start", &["0", "1770964041", "1770964041000"], &["-1", "now"]),
        ("/activity", &user, "sortBy", &["TIMESTAMP", "TOKENS", "CASH"], &["PRICE"]),
        ("/v1/leaderboard", &user, "timePeriod", &["DAY", "WEEK", "MONTH", "ALL"], &["YEAR"]),
        ("/v1/leaderboard", &user, "orderBy", &["PNL", "VOL"], &["NAME"]),
    ] {
        for (value, status) in
            good.iter().map(|value| (value, 200)).chain(bad.iter().map(|value| (value, 400)))
        {
            let answer = stage.get(&format!("{path}?{needed}&{field}={value}"));
            assert_eq!(answer.status, status, "{path} {field}={value}: {}", answer.json());
        }
    }
    for sort in
        ["CURRENT", "INITIAL", "TOKENS", "CASHPNL", "PERCENTPNL", "TITLE", "RESOLVING", "PRICE", "AVGPRICE"]
    {
        assert_eq!(stage.get(&format!("/positions?{user}&sortBy={sort}")).status, 200);
    }
    for (length, status) in [(99, 200), (100, 200), (101, 400)] {
        for path in ["/positions", "/closed-positions"] {
            assert_eq!(stage.get(&format!("{path}?{user}&title={}", "x".repeat(length))).status, status);
        }
    }
    stage.exchange.stop();
}

#[test]
fn a_query_without_its_user_or_with_a_name_that_nobody_knows_is_refused() {
    let mut stage = Stage::open(&[]);
    for path in
        ["/positions", "/closed-positions", "/activity", "/value", "/traded", "/volume", "/other?slug=x"]
    {
        let body = stage.get(path).json();
        assert_eq!(body["error"], "missing_field: user", "{path}");
    }
    for path in ["/holders", "/live-volume"] {
        assert_eq!(stage.get(path).json()["error"], "missing_field: market", "{path}");
    }
    let user = stage.address(ALICE);
    for path in [
        "/positions",
        "/closed-positions",
        "/activity",
        "/holders",
        "/trades",
        "/value",
        "/oi",
        "/v1/leaderboard",
    ] {
        assert_eq!(stage.get(&format!("{path}?f%6Fo=1")).json()["error"], "unknown_field: foo", "decoded");
        let answer = stage.get(&format!("{path}?foo=1&user={user}"));
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (400, &Value::from("unknown_field: foo")),
            "{path}"
        );
    }
    // What clients of the venues send where it has no effect.
    for path in [
        format!("/closed-positions?user={user}&sizeThreshold=0"),
        format!("/positions?user={user}&archived=false"),
        format!("/trades?user={user}&asset_id=1"),
        format!("/holders?market={}&min_balance=1&offset=0", stage.condition),
    ] {
        assert_eq!(stage.get(&path).status, 200, "{path}");
    }
    for path in ["/positions", "/closed-positions", "/activity", "/trades"] {
        assert!(stage.rows(&format!("{path}?user=0x{}", "5e".repeat(20))).is_empty(), "nobody is no error");
    }
    stage.exchange.stop();
}

#[test]
fn the_configuration_decides_how_tokens_look() {
    let mut stage = Stage::open(&["wallet.asset_format=token", "wallet.end_date_format=polymarket"]);
    trade(&mut stage);
    let user = stage.address(ALICE);
    let rows = stage.rows(&format!("/positions?user={user}"));
    let token = stage.tokens[YES].clone();
    assert!(rows.iter().any(|row| row["asset"] == token.as_str()), "{rows:?}");
    stage.exchange.stop();
}

#[test]
fn the_markets_of_an_event_are_named_by_it() {
    let mut stage = Stage::open(&[]);
    let event = stage.rows("/events?limit=1").remove(0);
    let [event, slug] = ["id", "slug"].map(|name| event[name].as_str().unwrap().to_owned());
    let created = stage.exchange.operator(&["market", "create", "Will it snow?", "--event", &slug]);
    let condition = created["conditionId"].as_str().unwrap().to_owned();
    let market = stage.connection.read(&format!("/markets/{condition}"));
    stage.tokens = [YES, NO].map(|index| market["tokens"][index]["token_id"].as_str().unwrap().to_owned());
    trade(&mut stage);
    let user = stage.address(ALICE);
    for path in
        ["/positions?user", "/closed-positions?user", "/activity?user", "/trades?takerOnly=false&user"]
    {
        let by_market = stage.rows(&format!("{path}={user}&market={condition}"));
        assert_eq!(stage.rows(&format!("{path}={user}&eventId=no-such,{event}")), by_market, "{path}");
        assert_eq!(by_market.is_empty(), path.starts_with("/closed"), "{path}");
        assert!(stage.rows(&format!("{path}={user}&eventId=no-such")).is_empty());
        let both = stage.get(&format!("{path}={user}&eventId={event}&market={condition}")).json();
        assert_eq!(both["error"], "invalid_field: eventId: it stands beside market", "{path}");
    }
    let by_market = stage.get(&format!("/live-volume?market={condition}")).json();
    let by_event = stage.get(&format!("/live-volume?id={event}")).json();
    assert!(by_event[0]["markets"].as_array().unwrap().contains(&by_market[0]["markets"][0]), "{by_event}");
    assert_ne!(by_market[0]["total"], "0");
    let again = stage.get(&format!("/live-volume?id={event},{event},no-such,{event}")).json();
    assert_eq!(again, by_event, "each is listed once");
    let both = stage.get(&format!("/live-volume?id={event}&market={condition}")).json();
    assert_eq!(both["allowed"], "market or id, not both");
    assert_eq!(stage.get("/live-volume?id=,").json()["allowed"], "events' ids with commas between");
    assert!(stage.rows(&format!("/activity?user={user}&type=MAKERREBATE")).is_empty());
    stage.exchange.stop();
}
