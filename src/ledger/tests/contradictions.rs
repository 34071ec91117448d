//! What a record says that cannot be after those before it.

use super::*;
use crate::journal::layout::{ExchangeMode, Frozen, Tombstone};

/// Each record of a list but the last is possible; the last one is not, and this is why.
fn each_is_named(cases: Vec<(&'static str, Vec<Record>)>) {
    for (what, mut records) in cases {
        let mut log = Log::opened();
        let last = records.pop().expect("a record");
        for record in records {
            log.says(record);
        }
        assert_eq!(log.try_says(last), Err(Contradiction { what }));
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of records")]
fn whatever_a_record_contradicts_is_named() {
    let time = TimeMs(4);
    let key =
        |generation| KeyChanged { time, principal: ALICE, nonce: Word::ZERO, generation, active: false };
    let item = |kind| ItemText { time, kind, item: 0, text: "{}".into() };
    let resolved = Resolved { time, market: MARKET, payout: Payout::new(500_000).expect("a half") };
    let armed = |armed| SwitchArmed { time, principal: ALICE, key: ApiKey::ZERO, armed };
    let debit = |reference: &str| Money {
        time,
        wallet: ALICE,
        direction: MoneyDirection::Debit,
        amount: Collateral(1),
        reference: reference.into(),
    };
    let bid = order(ALICE, Side::Buy, Outcome::Zero, 40, 1);
    let legs = |side, outcome, kind, taker_leg| {
        let mut taker = filled(order(BOB, side, outcome, 60, 2), Position(320), kind, 40, 4_000_000);
        taker.fills[0].taker_leg = Collateral(taker_leg);
        taker
    };
    // Sells to a buyer at 40.
    let fill = |maker, change: fn(&mut Fill)| {
        let seller = order(BOB, Side::Sell, Outcome::Zero, 40, 2);
        let mut taker = filled(seller, maker, MatchKind::Transfer, 40, 4_000_000);
        change(&mut taker.fills[0]);
        taker
    };
    let removed = || OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: vec![Position(320)] };
    let cases: Vec<(&'static str, Vec<Record>)> = vec![
        (
            "wallet numbers are not dense",
            vec![WalletAdded { wallet: WalletNo(3), ..third(WalletKind::Safe, Some(ALICE)) }.into()],
        ),
        ("only an EOA is its own principal", vec![third(WalletKind::Eoa, Some(ALICE)).into()]),
        ("only an EOA is its own principal", vec![third(WalletKind::Safe, Some(WalletNo(2))).into()]),
        (
            "a link names a principal that is not an EOA",
            vec![
                third(WalletKind::Deposit, None).into(),
                WalletLinked { time, wallet: WalletNo(2), principal: WalletNo(2) }.into(),
            ],
        ),
        ("a key's generation fell", vec![key(2).into(), key(1).into()]),
        ("a reference was used twice", vec![debit("again").into(), debit("again").into()]),
        (
            "an item became one of another kind",
            vec![item(ItemKind::Tag).into(), item(ItemKind::Series).into()],
        ),
        ("a switch was armed or disarmed twice", vec![armed(true).into(), armed(true).into()]),
        ("a switch was armed or disarmed twice", vec![armed(false).into()]),
        (
            "a breaker has no interval",
            vec![
                BreakerSet {
                    time,
                    principal: ALICE,
                    key: ApiKey::ZERO,
                    quantity: Shares(1),
                    interval_ms: 0,
                    tripped: false,
                }
                .into(),
            ],
        ),
        ("a market was resolved twice", vec![resolved.clone().into(), resolved.clone().into()]),
        (
            "an order rests with nothing open, or has open shares and does not rest",
            vec![OrderPlaced { open: Shares::ZERO, ..bid.clone() }.into()],
        ),
        (
            "an order rests with nothing open, or has open shares and does not rest",
            vec![OrderPlaced { result: PlacedResult::Filled, ..bid.clone() }.into()],
        ),
        ("an order was placed twice", vec![bid.clone().into(), removed().into(), bid.clone().into()]),
        ("an order was removed twice", vec![bid.clone().into(), removed().into(), removed().into()]),
        (
            "an order stayed off the new tick's grid",
            vec![
                OrderPlaced { price: price(41), ..bid.clone() }.into(),
                TickChanged {
                    time,
                    market: MARKET,
                    tick: Tick::new(1_000).expect("a tick"),
                    removed: Vec::new(),
                }
                .into(),
            ],
        ),
        ("a split is not one pair for one collateral", vec![position_act(ActKind::Split, [5, 4], 5).into()]),
        ("a split is not one pair for one collateral", vec![position_act(ActKind::Split, [4, 5], 5).into()]),
        (
            "a merge is not one pair for one collateral",
            vec![
                position_act(ActKind::Split, [5, 5], 5).into(),
                position_act(ActKind::Merge, [5, 5], 4).into(),
            ],
        ),
        (
            "a redeem paid another sum",
            vec![
                position_act(ActKind::Split, [5, 5], 5).into(),
                resolved.into(),
                position_act(ActKind::Redeem, [4, 0], 1).into(),
            ],
        ),
        (
            "a signed act was applied twice",
            vec![
                PositionAct { id: OrderId([9; 32]), ..position_act(ActKind::Split, [5, 5], 5) }.into(),
                PositionAct { id: OrderId([9; 32]), ..position_act(ActKind::Split, [6, 6], 6) }.into(),
            ],
        ),
        (
            "a pair did not cost or return exactly one",
            vec![bid.clone().into(), legs(Side::Buy, Outcome::One, MatchKind::Mint, 6_000_001).into()],
        ),
        (
            "a transfer's legs differ",
            vec![bid.clone().into(), legs(Side::Sell, Outcome::Zero, MatchKind::Transfer, 3_999_999).into()],
        ),
        (
            "a market names no event",
            vec![MarketText { time, market: MARKET, event: Some(0), text: "{}".into() }.into()],
        ),
        ("a cell fell below zero", vec![Money { amount: Collateral(100_000_001), ..debit("all") }.into()]),
        ("a fill names no order", vec![fill(Position(320), |_| ()).into()]),
        (
            "a fill names an order that does not rest there",
            vec![bid.clone().into(), removed().into(), fill(Position(320), |_| ()).into()],
        ),
        (
            "a fill names an order that does not rest there",
            vec![
                MarketAdded { market: MarketNo(1), ..market() }.into(),
                bid.clone().into(),
                OrderPlaced { market: MarketNo(1), ..fill(Position(384), |_| ()) }.into(),
            ],
        ),
        (
            "a maker was filled at another price than its own",
            vec![bid.clone().into(), fill(Position(320), |fill| fill.price = price(41)).into()],
        ),
        (
            "a maker was filled for more than is open",
            vec![bid.clone().into(), fill(Position(320), |fill| fill.shares = Shares(10_000_001)).into()],
        ),
        (
            "a maker was filled for more than is open",
            vec![
                bid.clone().into(),
                fill(Position(320), |fill| {
                    (fill.shares, fill.maker_leg, fill.taker_leg) = Default::default();
                })
                .into(),
            ],
        ),
        (
            "a fee is above the proceeds",
            vec![
                bid.clone().into(),
                fill(Position(320), |fill| fill.taker_fee = Collateral(4_000_001)).into(),
            ],
        ),
        (
            "a wallet gave shares that it does not hold",
            vec![bid.clone().into(), fill(Position(320), |_| ()).into()],
        ),
        (
            "a reserve fell below zero",
            vec![
                OrderPlaced { reserved: Collateral(3_999_999), ..bid.clone() }.into(),
                legs(Side::Buy, Outcome::One, MatchKind::Mint, 6_000_000).into(),
            ],
        ),
        (
            "backing fell below zero",
            vec![
                order(ALICE, Side::Sell, Outcome::Zero, 40, 1).into(),
                legs(Side::Sell, Outcome::One, MatchKind::Merge, 6_000_000).into(),
            ],
        ),
        (
            "a fill names another kind of match",
            vec![bid.into(), legs(Side::Sell, Outcome::Zero, MatchKind::Mint, 6_000_000).into()],
        ),
    ];
    each_is_named(cases);
    let mut log = Log::opened();
    log.next -= 64;
    let what = "a frame starts before the last one ended";
    assert_eq!(log.try_says(third(WalletKind::Safe, Some(ALICE))), Err(Contradiction { what }));
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of records")]
fn whatever_a_record_names_has_to_be_there() {
    let time = TimeMs(4);
    let (nobody, nowhere, none) = (WalletNo(9), MarketNo(9), Position(7));
    let key = ApiKey::ZERO;
    let breaker =
        BreakerSet { time, principal: nobody, key, quantity: Shares(1), interval_ms: 1, tripped: false };
    let money = |direction, wallet, amount| {
        let (amount, reference) = (Collateral(amount), "more".into());
        Record::from(Money { time, wallet, direction, amount, reference })
    };
    let resolved = Resolved { time, market: MARKET, payout: Payout::new(500_000).expect("a half") };
    let redeem = position_act(ActKind::Redeem, [0; 2], 0);
    let bid = || order(ALICE, Side::Buy, Outcome::Zero, 40, 1);
    let tick = Tick::new(100).expect("a tick");
    let text = || "{}".to_owned();
    let cases: Vec<(&'static str, Vec<Record>)> = vec![
        ("a record names no wallet", vec![money(MoneyDirection::Credit, nobody, 1)]),
        ("a record names no wallet", vec![Frozen { time, principal: nobody, frozen: true }.into()]),
        (
            "a freeze names a wallet that is no principal",
            vec![
                third(WalletKind::Safe, Some(ALICE)).into(),
                Frozen { time, principal: WalletNo(2), frozen: true }.into(),
            ],
        ),
        ("a cell overflowed", vec![money(MoneyDirection::Credit, ALICE, u64::MAX)]),
        (
            "more fees were paid out than collected",
            vec![third(WalletKind::Fee, None).into(), money(MoneyDirection::Debit, WalletNo(2), 1)],
        ),
        (
            "a key names no principal",
            vec![
                KeyChanged { time, principal: nobody, nonce: Word::ZERO, generation: 1, active: true }.into(),
            ],
        ),
        ("a link names no principal", vec![WalletLinked { time, wallet: ALICE, principal: nobody }.into()]),
        (
            "a link names a wallet that has a principal",
            vec![WalletLinked { time, wallet: ALICE, principal: ALICE }.into()],
        ),
        (
            "a switch names no principal",
            vec![SwitchArmed { time, principal: nobody, key, armed: true }.into()],
        ),
        ("a breaker names no principal", vec![breaker.into()]),
        (
            "a tombstone names no principal",
            vec![Tombstone { time, id: OrderId::ZERO, principal: nobody, until: TimeMs(10_004) }.into()],
        ),
        ("an order names no principal", vec![OrderPlaced { principal: nobody, ..bid() }.into()]),
        ("a record names no wallet", vec![OrderPlaced { wallet: nobody, ..bid() }.into()]),
        ("an order names no market", vec![OrderPlaced { market: nowhere, ..bid() }.into()]),
        (
            "a fill joins two orders that do not match",
            vec![
                bid().into(),
                filled(
                    order(BOB, Side::Buy, Outcome::Zero, 40, 2),
                    Position(320),
                    MatchKind::Mint,
                    40,
                    4_000_000,
                )
                .into(),
            ],
        ),
        (
            "a removal names no order",
            vec![OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: vec![none] }.into()],
        ),
        (
            "a record names no market",
            vec![TickChanged { time, market: nowhere, tick, removed: Vec::new() }.into()],
        ),
        ("market numbers are not dense", vec![MarketAdded { market: nowhere, ..market() }.into()]),
        (
            "a market has two labels",
            vec![MarketAdded { market: MarketNo(1), labels: vec!["Yes".into()], ..market() }.into()],
        ),
        (
            "a market names no event",
            vec![MarketAdded { market: MarketNo(1), event: Some(0), ..market() }.into()],
        ),
        (
            "a text names no market",
            vec![MarketText { time, market: nowhere, event: None, text: text() }.into()],
        ),
        ("event numbers are not dense", vec![EventText { time, event: 1, text: text() }.into()]),
        (
            "item numbers are not dense",
            vec![ItemText { time, kind: ItemKind::Tag, item: 1, text: text() }.into()],
        ),
        ("a redeem names no market", vec![PositionAct { market: nowhere, ..redeem.clone() }.into()]),
        ("a redeem before the market was resolved", vec![redeem.clone().into()]),
        (
            "a holding names no wallet",
            vec![resolved.clone().into(), PositionAct { wallet: nobody, ..redeem }.into()],
        ),
        (
            "a resolved market changed its mode",
            vec![resolved.into(), MarketMode { time, market: MARKET, mode: Mode::Open }.into()],
        ),
        ("the exchange cannot be resolved", vec![ExchangeMode { time, mode: Mode::Resolved }.into()]),
        (
            "a state hash names a position that is no checkpoint",
            vec![StateHash { through: none, hash: 0 }.into()],
        ),
    ];
    each_is_named(cases);
}

/// Whatever is in memory when something comes again, and whatever only an archive has.
#[test]
fn what_was_signed_once_is_never_applied_again() {
    let cancelled = OrdersRemoved {
        time: TimeMs(4),
        reason: RemovalReason::Cancelled,
        orders: vec![Position(320), Position(448)],
    };
    let split =
        |id| Record::from(PositionAct { id: OrderId([id; 32]), ..position_act(ActKind::Split, [5, 5], 5) });
    let bid = |salt| Record::from(order(ALICE, Side::Buy, Outcome::Zero, 40, salt));
    let of_order =
        |salt| OrderPlaced { id: OrderId([9; 32]), ..order(ALICE, Side::Buy, Outcome::Zero, 40, salt) };
    let (again, twice) = ("an order was placed twice", "a signed act was applied twice");
    let like_it = OrderId(std::array::from_fn(|at| if at < 8 { 9 } else { 7 }));
    let like_it = Record::from(PositionAct { id: like_it, ..position_act(ActKind::Split, [5, 5], 5) });
    let cases = [
        (bid(1), Some(again)),
        (bid(2), Some(again)),
        (split(9), Some(twice)),
        (of_order(3).into(), Some(again)),
        (bid(3), None),
        (split(8), None),
        // Another digest that begins alike.
        (like_it, None),
        // The operator's own is not signed, and comes as often as it likes.
        (split(0), None),
    ];
    for is_archived in [false, true] {
        for (record, what) in &cases {
            let mut log = Log::opened();
            for before in [bid(1), split(9), bid(2), split(0), cancelled.clone().into()] {
                log.says(before);
            }
            let directory = tempfile::tempdir().expect("a directory");
            if is_archived {
                log.archive(directory.path());
                log.ledger.forget_over();
                let (orders, acts) = (log.ledger.orders_in_memory(), log.ledger.acts_in_memory());
                assert_eq!((orders, acts, log.ledger.archive().rows()), (0, 0, 3));
            }
            let said = log.try_says(record.clone()).map_err(|contradiction| contradiction.what);
            assert_eq!(said.err(), *what, "archived: {is_archived}, {record:?}");
        }
    }
}
