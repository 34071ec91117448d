mod contradictions;
mod hashed;
mod whole;

use super::*;
use crate::domain::{
    Address, ApiKey, ConditionId, FeeSchedule, ItemKind, OrderFields, OrderType, Outcome, Payout, Price,
    Reject, SelfTrade, Side, SignatureType, Tick, TokenId, WalletKind,
};
use crate::journal::layout::{
    ActKind, BreakerSet, EventText, Fill, ItemText, KeyChanged, MarketAdded, MarketMode, MarketText,
    MatchKind, Money, MoneyDirection, OrderPlaced, OrdersRemoved, OrdersReplaced, PlacedResult, PositionAct,
    Quote, Record, Removal, RemovalReason, Resolved, StateHash, SwitchArmed, TickChanged, WalletAdded,
    WalletLinked,
};
use crate::journal::{Base, Snapshots};
use std::path::Path;

/// Makes a record that cannot follow an order resting at the position.
type Impossible<'a> = Box<dyn Fn(Position) -> Record + 'a>;

const MARKET: MarketNo = MarketNo(0);
const ALICE: WalletNo = WalletNo(0);
const BOB: WalletNo = WalletNo(1);

/// A ledger and the position of the next frame; every frame is 64 bytes long here.
struct Log {
    ledger: Ledger,
    next: u64,
}

impl Log {
    /// Two wallets with 100 each and an open market.
    fn opened() -> Self {
        let mut log = Self { ledger: Ledger::new(), next: 0 };
        for (wallet, byte) in [(ALICE, 1), (BOB, 2)] {
            log.says(WalletAdded {
                time: TimeMs(1),
                wallet,
                address: Address([byte; 20]),
                kind: WalletKind::Eoa,
                principal: Some(wallet),
            });
            log.says(Money {
                time: TimeMs(1),
                wallet,
                direction: MoneyDirection::Credit,
                amount: Collateral(100_000_000),
                reference: format!("opening {byte}"),
            });
        }
        log.says(market());
        log
    }

    fn try_says(&mut self, record: impl Into<Record>) -> Result<Position, Contradiction> {
        let start = Position(self.next);
        self.next += 64;
        self.ledger.apply(start, Position(self.next), &record.into())?;
        self.ledger.conserved().expect("money is conserved after every frame");
        Ok(start)
    }

    #[track_caller]
    fn says(&mut self, record: impl Into<Record>) -> Position {
        self.try_says(record).expect("the record is possible")
    }

    /// Archives what is over; it stays in memory too.
    fn archive(&mut self, directory: &Path) {
        let (snapshots, mut base) = (Snapshots::alone(directory), Base::first());
        base.position = self.ledger.end();
        snapshots.archive(&mut base, self.ledger.over(), archived_again).expect("written");
        self.ledger.set_archive(snapshots.archive_of(&base, &Archive::default()).expect("just written"));
    }
}

/// The market.
fn market() -> MarketAdded {
    MarketAdded {
        time: TimeMs(1),
        market: MARKET,
        event: None,
        shard_key: 0,
        market_id: 1_000_000_000,
        condition: ConditionId([1; 32]),
        question: Word([2; 32]),
        tokens: [TokenId([3; 32]), TokenId([4; 32])],
        labels: vec!["Yes".into(), "No".into()],
        neg_risk: false,
        tick: Tick::new(100).expect("a tick"),
        min_size: Shares(5_000_000),
        fee: FeeSchedule::FREE,
        mode: Mode::Open,
        payout: None,
        text: "{}".into(),
    }
}

fn price(cents: u16) -> Price {
    Price::new(cents * 100).expect("in range")
}

/// An order for 10 shares at `cents` that rests.
pub(crate) fn order(wallet: WalletNo, side: Side, outcome: Outcome, cents: u16, salt: u8) -> OrderPlaced {
    let (collateral, shares) = (u64::from(cents) * 100_000, 10_000_000);
    let (maker_amount, taker_amount) = match side {
        Side::Buy => (collateral, shares),
        Side::Sell => (shares, collateral),
    };
    OrderPlaced {
        time: TimeMs(2),
        market: MARKET,
        outcome,
        wallet,
        principal: wallet,
        id: OrderId([salt; 32]),
        fields: OrderFields {
            salt: Word([salt; 32]),
            maker: Address::ZERO,
            signer: Address::ZERO,
            token: TokenId::ZERO,
            maker_amount,
            taker_amount,
            side,
            signature_type: SignatureType::Eoa,
            timestamp_ms: 2,
            metadata: Word::ZERO,
            builder: Word::ZERO,
        },
        signature: Vec::new(),
        expiration_s: 0,
        order_type: OrderType::Gtc,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
        owner: ApiKey::ZERO,
        price: price(cents),
        result: PlacedResult::Rests,
        stopped: None,
        open: Shares(10_000_000),
        reserved: Collateral::ZERO,
        fills: Vec::new(),
        removed: Vec::new(),
    }
}

/// `taker` filled whole against the maker at `maker`, who quoted `cents` of its own token.
fn filled(
    mut taker: OrderPlaced,
    maker: Position,
    kind: MatchKind,
    cents: u16,
    maker_leg: u64,
) -> OrderPlaced {
    let taker_leg = if kind == MatchKind::Transfer { maker_leg } else { 10_000_000 - maker_leg };
    taker.result = PlacedResult::Filled;
    taker.open = Shares::ZERO;
    taker.fills.push(Fill {
        maker,
        shares: Shares(10_000_000),
        maker_leg: Collateral(maker_leg),
        taker_leg: Collateral(taker_leg),
        maker_fee: Collateral::ZERO,
        taker_fee: Collateral::ZERO,
        kind,
        price: price(cents),
    });
    taker
}

#[test]
fn a_pair_is_minted_traded_burned_and_the_rest_redeemed_and_nothing_is_lost() {
    let mut log = Log::opened();
    let bid = log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
    log.says(filled(order(BOB, Side::Buy, Outcome::One, 65, 2), bid, MatchKind::Mint, 40, 4_000_000));
    assert_eq!(log.ledger.holding(ALICE, MARKET), [Shares(10_000_000), Shares::ZERO]);
    assert_eq!(log.ledger.holding(BOB, MARKET), [Shares::ZERO, Shares(10_000_000)]);
    assert_eq!(log.ledger.market(MARKET).map(|row| row.backing), Some(Collateral(10_000_000)));

    let split = PositionAct {
        time: TimeMs(3),
        act: ActKind::Split,
        wallet: BOB,
        market: MARKET,
        shares: [Shares(5_000_000); 2],
        collateral: Collateral(5_000_000),
        id: OrderId([9; 32]),
        salt: Word::ZERO,
        timestamp_ms: 3,
        signature: Vec::new(),
        removed: Vec::new(),
    };
    log.says(split.clone());
    assert!(log.try_says(split).is_err(), "a signed act runs once");

    let mut log = Log::opened();
    let bid = log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
    log.says(filled(order(BOB, Side::Buy, Outcome::One, 65, 2), bid, MatchKind::Mint, 40, 4_000_000));
    let ask = log.says(order(ALICE, Side::Sell, Outcome::Zero, 30, 3));
    log.says(filled(order(BOB, Side::Sell, Outcome::One, 60, 4), ask, MatchKind::Merge, 30, 3_000_000));
    assert_eq!(log.ledger.market(MARKET).map(|row| row.backing), Some(Collateral::ZERO));
    assert_eq!(log.ledger.wallet(ALICE).map(|row| row.cell), Some(Collateral(99_000_000)));
    assert_eq!(log.ledger.wallet(BOB).map(|row| row.cell), Some(Collateral(101_000_000)));
}

#[test]
fn a_resolved_market_loses_its_orders_and_pays_each_redeem_once() {
    let mut log = Log::opened();
    let bid = log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
    log.says(filled(order(BOB, Side::Buy, Outcome::One, 60, 2), bid, MatchKind::Mint, 40, 4_000_000));
    let ask = log.says(order(ALICE, Side::Sell, Outcome::Zero, 90, 3));
    log.says(Resolved { time: TimeMs(4), market: MARKET, payout: Payout::new(500_000).expect("a half") });
    assert_eq!(
        log.ledger.order_at(ask).map(|row| row.state),
        Some(OrderState::Removed(RemovalReason::MarketResolved))
    );
    let redeem = PositionAct {
        time: TimeMs(5),
        act: ActKind::Redeem,
        wallet: ALICE,
        market: MARKET,
        shares: [Shares(10_000_000), Shares::ZERO],
        collateral: Collateral(5_000_000),
        id: OrderId::ZERO,
        salt: Word::ZERO,
        timestamp_ms: 0,
        signature: Vec::new(),
        removed: Vec::new(),
    };
    log.says(redeem.clone());
    assert!(log.try_says(redeem).is_err(), "the shares are gone");
}

#[test]
fn what_cannot_have_happened_is_a_contradiction() {
    let resting = || {
        let mut log = Log::opened();
        let bid = log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
        (log, bid)
    };
    let seller = order(BOB, Side::Sell, Outcome::Zero, 40, 2);
    let buyer = order(BOB, Side::Buy, Outcome::One, 60, 3);
    let impossible: Vec<(&str, Impossible<'_>)> = vec![
        (
            "shares it does not hold",
            Box::new(|bid| filled(seller.clone(), bid, MatchKind::Transfer, 40, 4_000_000).into()),
        ),
        ("another price", Box::new(|bid| filled(buyer.clone(), bid, MatchKind::Mint, 41, 4_100_000).into())),
        ("another kind", Box::new(|bid| filled(buyer.clone(), bid, MatchKind::Merge, 40, 4_000_000).into())),
        ("same order again", Box::new(|_| order(ALICE, Side::Buy, Outcome::Zero, 40, 1).into())),
        (
            "unknown maker",
            Box::new(|_| filled(buyer.clone(), Position(7), MatchKind::Mint, 40, 4_000_000).into()),
        ),
        ("wrong hash", Box::new(|_| Record::from(StateHash { through: Position(0), hash: 1 }))),
    ];
    for (name, record) in impossible {
        let (mut log, bid) = resting();
        assert!(log.try_says(record(bid)).is_err(), "{name}");
    }
}

#[test]
fn the_time_of_a_book_is_that_of_the_last_frame_that_touched_it() {
    let at = |time, order: OrderPlaced| OrderPlaced { time: TimeMs(time), ..order };
    let bid = |salt| order(ALICE, Side::Buy, Outcome::Zero, 40, salt);
    let killed = |salt| {
        let result = PlacedResult::Killed(Reject::FokNotFilled);
        OrderPlaced { result, open: Shares::ZERO, ..order(BOB, Side::Buy, Outcome::One, 50, salt) }
    };
    let mint = |salt, maker| {
        filled(order(BOB, Side::Buy, Outcome::One, 60, salt), maker, MatchKind::Mint, 40, 4_000_000)
    };
    let mut log = Log::opened();
    let changed = |log: &Log| log.ledger.market(MARKET).map(|row| row.book_changed.0);
    assert_eq!(changed(&log), Some(1), "added");
    let one = log.says(at(2, bid(1)));
    assert_eq!(changed(&log), Some(2), "an order came to rest");
    log.says(at(3, killed(2)));
    assert_eq!(changed(&log), Some(2), "an order was killed and touched nobody");
    log.says(at(4, mint(3, one)));
    assert_eq!(changed(&log), Some(4), "an order was filled");
    let part = log.says(at(4, bid(7)));
    let mut taker = mint(8, part);
    let fill = &mut taker.fills[0];
    (fill.shares, fill.maker_leg, fill.taker_leg) = (Shares(5), Collateral(2), Collateral(3));
    log.says(at(5, taker));
    assert_eq!(changed(&log), Some(5), "an order was filled in part");
    assert_eq!(log.ledger.order_at(part).map(|row| (row.open, row.changed.0)), Some((Shares(9_999_995), 5)));
    let two = log.says(at(5, bid(4)));
    let removed = vec![Removal { order: two, reason: RemovalReason::SelfTrade }];
    log.says(at(6, OrderPlaced { removed, ..killed(5) }));
    assert_eq!(changed(&log), Some(6), "an order that was killed removed another");
    let three = log.says(at(7, bid(6)));
    log.says(OrdersRemoved { time: TimeMs(8), reason: RemovalReason::Cancelled, orders: vec![three] });
    assert_eq!(changed(&log), Some(8), "a cancel");
    let (market, tick) = (MARKET, Tick::new(10).expect("a tick"));
    log.says(TickChanged { time: TimeMs(9), market, tick, removed: Vec::new() });
    assert_eq!(changed(&log), Some(9), "a new tick");
}

#[test]
fn a_cancel_waits_for_the_order_of_its_principal_and_no_longer() {
    let (id, time) = (OrderId([1; 32]), TimeMs(2));
    let mut log = Log::opened();
    for principal in [ALICE, BOB] {
        log.says(Tombstone { time, id, principal, until: TimeMs(10_002) });
    }
    log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
    assert!(log.ledger.tombstones().map(|row| row.principal).eq([BOB]));
}

#[test]
fn texts_change_and_what_was_added_or_over_before_stays_so() {
    let (market, text) = (MARKET, || "{}".to_owned());
    let at = |time| TimeMs(time);
    let tag = |time| ItemText { time, kind: ItemKind::Tag, item: 0, text: text() };
    let mut log = Log::opened();
    for time in [2, 3] {
        log.says(EventText { time: at(time), event: 0, text: text() });
        log.says(tag(at(time)));
    }
    assert_eq!((log.ledger.events()[0].added, log.ledger.items()[0].added), (at(2), at(2)));
    log.says(MarketText { time: at(4), market, event: Some(0), text: text() });
    assert_eq!(log.ledger.markets()[0].event, Some(0));
    log.says(MarketMode { time: at(5), market, mode: Mode::Closed });
    log.says(Resolved { time: at(6), market, payout: Payout::new(0).expect("nothing") });
    let row = &log.ledger.markets()[0];
    assert_eq!((row.over, row.resolved), (Some(at(5)), Some(at(6))));
    log.says(MarketAdded { time: at(7), market: MarketNo(1), mode: Mode::Closed, ..self::market() });
    assert_eq!(log.ledger.markets()[1].over, Some(at(7)), "as it came");
}

#[test]
fn only_an_outcome_that_is_paid_in_full_wins() {
    let winner = |payout: Option<u32>| {
        let mut log = Log::opened();
        if let Some(payout) = payout {
            let payout = Payout::new(payout).expect("a payout");
            log.says(Resolved { time: TimeMs(2), market: MARKET, payout });
        }
        log.ledger.markets()[0].winner()
    };
    let (zero, one) = (Some(Outcome::Zero), Some(Outcome::One));
    for (payout, expected) in [
        (None, None),
        (Some(1_000_000), zero),
        (Some(999_999), None),
        (Some(500_000), None),
        (Some(1), None),
        (Some(0), one),
    ] {
        assert_eq!(winner(payout), expected, "{payout:?}");
    }
}

#[test]
fn an_order_that_was_killed_falls_short_unless_it_was_all_or_nothing() {
    for (salt, (order_type, side, expected)) in (1..).zip([
        (OrderType::Fok, Side::Buy, false),
        (OrderType::Fok, Side::Sell, false),
        (OrderType::Fak, Side::Buy, true),
        (OrderType::Fak, Side::Sell, true),
    ]) {
        let mut log = Log::opened();
        let result = PlacedResult::Killed(Reject::FokNotFilled);
        let order = order(ALICE, side, Outcome::Zero, 40, salt);
        let place = log.says(OrderPlaced { order_type, result, open: Shares::ZERO, ..order });
        assert_eq!(log.ledger.order_at(place).map(OrderRow::falls_short), Some(expected), "{order_type:?}");
    }
}

#[test]
fn an_archive_is_taken_where_its_snapshot_is_and_dates_rows_by_their_signatures() {
    let mut log = Log::opened();
    log.says(PositionAct {
        id: OrderId([9; 32]),
        timestamp_ms: 77,
        ..position_act(ActKind::Split, [5, 5], 5)
    });
    let orders = vec![log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1))];
    log.says(OrdersRemoved { time: TimeMs(4), reason: RemovalReason::Cancelled, orders });
    let mut dated: Vec<u64> = log.ledger.over().iter().map(|row| row.stamp_ms).collect();
    dated.sort_unstable();
    assert_eq!(dated, [2, 77]);
    let end = log.ledger.end();
    log.ledger.set_archive_at(end, Archive::default());
    assert!(log.ledger.can_shed(), "all before it is applied");
    log.ledger.shed(9);
    log.ledger.set_archive_at(Position(end.0 + 64), Archive::default());
    assert!(!log.ledger.can_shed(), "a frame before it is not");
    log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 2));
    assert!(log.ledger.can_shed());
}

/// A wallet that is added third.
fn third(kind: WalletKind, principal: Option<WalletNo>) -> WalletAdded {
    WalletAdded { time: TimeMs(2), wallet: WalletNo(2), address: Address([3; 20]), kind, principal }
}

/// Alice's split, merge or redeem.
fn position_act(act: ActKind, shares: [u64; 2], collateral: u64) -> PositionAct {
    PositionAct {
        time: TimeMs(5),
        act,
        wallet: ALICE,
        market: MARKET,
        shares: shares.map(Shares),
        collateral: Collateral(collateral),
        id: OrderId::ZERO,
        salt: Word::ZERO,
        timestamp_ms: 0,
        signature: Vec::new(),
        removed: Vec::new(),
    }
}

/// Alice replaces the orders at `removed` by `placed`, which takes the place of the order at `former`.
fn replaced(removed: &[Position], placed: OrderPlaced, former: Position) -> OrdersReplaced {
    OrdersReplaced {
        time: TimeMs(4),
        market: MARKET,
        removed: removed.to_vec(),
        placed: vec![Quote { order: placed, takes_place_of: Some(former) }],
    }
}

#[test]
fn a_place_in_the_queue_goes_from_an_order_that_leaves_to_one_like_it_and_to_one_only() {
    let bid = |cents, salt| order(ALICE, Side::Buy, Outcome::Zero, cents, salt);
    let resting = || {
        let mut log = Log::opened();
        let (one, other) = (log.says(bid(40, 1)), log.says(bid(40, 2)));
        (log, one, other)
    };
    let refused = |what, replace: &dyn Fn(Position, Position) -> OrdersReplaced| {
        let (mut log, one, other) = resting();
        assert_eq!(log.try_says(replace(one, other)), Err(Contradiction { what }));
    };
    refused("an order took the place of one that stays", &|one, other| replaced(&[other], bid(40, 3), one));
    let another_kind = "an order took the place of another kind of order";
    refused(another_kind, &|one, _| replaced(&[one], bid(41, 3), one));
    refused(another_kind, &|one, _| replaced(&[one], order(ALICE, Side::Buy, Outcome::One, 40, 3), one));
    refused(another_kind, &|one, _| replaced(&[one], order(BOB, Side::Buy, Outcome::Zero, 40, 3), one));
    refused(another_kind, &|one, _| {
        replaced(&[one], OrderPlaced { open: Shares(10_000_001), ..bid(40, 3) }, one)
    });
    refused("two orders took one place", &|one, _| {
        let mut replace = replaced(&[one], bid(40, 3), one);
        replace.placed.push(Quote { order: bid(40, 4), takes_place_of: Some(one) });
        replace
    });
    let none = Position(7);
    refused("an order took the place of none", &|_, _| replaced(&[none], bid(40, 3), none));
    let more = "an order of a replace did more than rest there";
    refused(more, &|one, _| OrdersReplaced { market: MarketNo(1), ..replaced(&[one], bid(40, 3), one) });
    refused(more, &|one, other| {
        let seller = order(ALICE, Side::Sell, Outcome::Zero, 40, 3);
        let placed = vec![Quote {
            order: OrderPlaced {
                result: PlacedResult::Rests,
                open: Shares(1),
                ..filled(seller, other, MatchKind::Transfer, 40, 4_000_000)
            },
            takes_place_of: None,
        }];
        OrdersReplaced { placed, ..replaced(&[one], bid(40, 3), one) }
    });
    let killed = PlacedResult::Killed(Reject::FokNotFilled);
    refused(more, &|one, _| {
        let placed = OrderPlaced { result: killed, open: Shares::ZERO, ..bid(40, 3) };
        OrdersReplaced {
            placed: vec![Quote { order: placed, takes_place_of: None }],
            ..replaced(&[one], bid(40, 3), one)
        }
    });
    refused(more, &|one, other| {
        let removed = vec![Removal { order: other, reason: RemovalReason::SelfTrade }];
        replaced(&[one], OrderPlaced { removed, ..bid(40, 3) }, one)
    });
    let (mut log, one, other) = resting();
    let heir = log.says(replaced(&[one], bid(40, 3), one));
    let queue = |log: &Log| log.ledger.by_priority(MARKET).iter().map(|row| row.position).collect::<Vec<_>>();
    assert_eq!(queue(&log), [heir, other]);
    assert_eq!(log.ledger.state_hash(), log.ledger.recounted_hash());
    let heir = log.says(replaced(&[heir], bid(40, 4), heir));
    assert_eq!(queue(&log), [heir, other], "the place of one that had taken it over");
    assert_eq!(log.ledger.state_hash(), log.ledger.recounted_hash());
    log.says(OrdersRemoved { time: TimeMs(5), reason: RemovalReason::Cancelled, orders: vec![heir] });
    assert_eq!(log.ledger.state_hash(), log.ledger.recounted_hash(), "a place is forgotten with its order");
    assert!(log.ledger.places.is_empty());
}

#[test]
fn whatever_is_made_or_lost_is_an_imbalance() {
    let with = |change: fn(&mut Ledger)| {
        let mut log = Log::opened();
        log.says(position_act(ActKind::Split, [10; 2], 10));
        change(&mut log.ledger);
        log.ledger.conserved()
    };
    assert!(with(|_| {}).is_ok());
    let money: [fn(&mut Ledger); 5] = [
        |ledger| ledger.wallets[0].cell.0 += 1,
        |ledger| ledger.wallets[0].cell.0 -= 1,
        |ledger| ledger.fees.0 += 1,
        |ledger| ledger.credited -= 1,
        |ledger| ledger.debited += 1,
    ];
    for (index, change) in money.into_iter().enumerate() {
        assert!(matches!(with(change), Err(Imbalance::Collateral(_))), "money {index}");
    }
    let shares: [fn(&mut Ledger); 5] = [
        |ledger| (ledger.markets[0].backing.0, ledger.wallets[0].cell.0) = (9, 99_999_991),
        |ledger| ledger.markets[0].shares[0].0 += 1,
        |ledger| ledger.markets[0].shares[1].0 -= 1,
        |ledger| {
            ledger.holdings.insert((ALICE, MARKET), [Shares(11), Shares(10)]);
        },
        |ledger| {
            ledger.holdings.remove(&(ALICE, MARKET));
        },
    ];
    for (index, change) in shares.into_iter().enumerate() {
        assert!(matches!(with(change), Err(Imbalance::Market { market: MARKET, .. })), "shares {index}");
    }
    // After its resolution a market may have paid, but it never owes more than it has.
    let resolved: [fn(&mut Ledger); 2] = [
        |ledger| ledger.markets[0].payout = Payout::new(1_000_000),
        |ledger| {
            ledger.markets[0].payout = Payout::new(1_000_000);
            (ledger.markets[0].backing.0, ledger.wallets[0].cell.0) = (9, 99_999_991);
        },
    ];
    assert!(with(resolved[0]).is_ok());
    assert!(matches!(with(resolved[1]), Err(Imbalance::Market { .. })));
}

#[test]
fn what_is_archived_leaves_memory_however_few_rows_at_a_time() {
    let signed = |id| PositionAct { id: OrderId([id; 32]), ..position_act(ActKind::Split, [5, 5], 5) };
    let bid = || order(ALICE, Side::Buy, Outcome::Zero, 40, 1);
    for has_orders in [false, true] {
        for rows_max in 1..5 {
            let directory = tempfile::tempdir().expect("a directory");
            let mut log = Log::opened();
            for id in 5..8 {
                log.says(signed(id));
            }
            if has_orders {
                let orders = vec![log.says(bid())];
                log.says(OrdersRemoved { time: TimeMs(4), reason: RemovalReason::Cancelled, orders });
                log.says(order(BOB, Side::Buy, Outcome::Zero, 40, 2));
            }
            log.archive(directory.path());
            log.says(signed(9));
            while log.ledger.can_shed() {
                log.ledger.shed(rows_max);
            }
            let left = (log.ledger.orders_in_memory(), log.ledger.acts_in_memory());
            assert_eq!(left, (usize::from(has_orders), 1), "{rows_max} at a time");
        }
    }
}
