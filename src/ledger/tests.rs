use super::*;
use crate::domain::{
    Address, ApiKey, ConditionId, FeeSchedule, ItemKind, OrderFields, OrderType, Outcome, Payout, Price,
    SelfTrade, Side, SignatureType, Tick, TokenId, WalletKind,
};
use crate::journal::layout::{
    ActKind, BreakerSet, Fill, ItemText, KeyChanged, MarketAdded, MatchKind, Money, MoneyDirection,
    OrderPlaced, OrdersRemoved, OrdersReplaced, PlacedResult, PositionAct, Quote, Record, RemovalReason,
    Resolved, StateHash, SwitchArmed, TickChanged, WalletAdded, WalletLinked,
};

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
        log.says(MarketAdded {
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
        });
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
}

fn price(cents: u16) -> Price {
    Price::new(cents * 100).expect("in range")
}

/// An order for 10 shares at `cents` that rests.
fn order(wallet: WalletNo, side: Side, outcome: Outcome, cents: u16, salt: u8) -> OrderPlaced {
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

/// Each record of a list but the last is possible; the last one is not, and this is why.
#[test]
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
    let removed = || OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: vec![Position(320)] };
    let cases: Vec<(&str, Vec<Record>)> = vec![
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
            "a fill names another kind of match",
            vec![bid.into(), legs(Side::Sell, Outcome::Zero, MatchKind::Mint, 6_000_000).into()],
        ),
    ];
    for (what, mut records) in cases {
        let mut log = Log::opened();
        let last = records.pop().expect("a record");
        for record in records {
            log.says(record);
        }
        assert_eq!(log.try_says(last), Err(Contradiction { what }));
    }
    let mut log = Log::opened();
    log.next -= 64;
    let what = "a frame starts before the last one ended";
    assert_eq!(log.try_says(third(WalletKind::Safe, Some(ALICE))), Err(Contradiction { what }));
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
    let (mut log, one, other) = resting();
    let heir = log.says(replaced(&[one], bid(40, 3), one));
    let queue = |log: &Log| log.ledger.by_priority(MARKET).iter().map(|row| row.position).collect::<Vec<_>>();
    assert_eq!(queue(&log), [heir, other]);
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

/// Asserts that each change of a row changes its hash, and that no two of them change it alike.
#[track_caller]
fn each_counts<Row: Clone>(row: &Row, hash: impl Fn(&Row) -> u128, changes: &[fn(&mut Row)]) {
    let mut hashes = BTreeSet::from([hash(row)]);
    for (index, change) in changes.iter().enumerate() {
        let mut changed = row.clone();
        change(&mut changed);
        assert!(hashes.insert(hash(&changed)), "change {index}");
    }
}

#[test]
fn every_field_that_has_a_future_counts_in_the_hash() {
    let mut log = Log::opened();
    let bid = log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
    let ledger = &log.ledger;
    each_counts(
        &ledger.wallets[1],
        hash::wallet,
        &[
            |row| row.wallet.0 += 1,
            |row| row.address.0[19] ^= 1,
            |row| row.kind = WalletKind::Deposit,
            |row| row.principal = None,
            |row| row.principal = Some(ALICE),
            |row| row.cell.0 += 1,
            |row| row.frozen = true,
        ],
    );
    let key = KeyRow { generation: 1, active: true, changed: TimeMs(1) };
    each_counts(
        &(ALICE, Word::ZERO, key),
        |(principal, nonce, row)| hash::key(*principal, nonce, row),
        &[|row| row.0 = BOB, |row| row.1.0[31] = 1, |row| row.2.generation = 2, |row| row.2.active = false],
    );
    each_counts(
        &(ALICE, ApiKey::ZERO),
        |(principal, key)| hash::switch(*principal, *key),
        &[|row| row.0 = BOB, |row| row.1.0[0] = 1],
    );
    let breaker = BreakerRow { quantity: Shares(5), interval_ms: 7, tripped: false };
    each_counts(
        &(ALICE, ApiKey::ZERO, breaker),
        |(principal, key, row)| hash::breaker(*principal, *key, row),
        &[
            |row| row.0 = BOB,
            |row| row.1.0[0] = 1,
            |row| row.2.quantity.0 += 1,
            |row| row.2.interval_ms += 1,
            |row| row.2.tripped = true,
        ],
    );
    let event = EventRow { event: 0, added: TimeMs(1), text: "{}".into() };
    each_counts(&event, hash::event, &[|row| row.event = 1, |row| row.text = "[]".into()]);
    let item = ItemRow { item: 0, kind: ItemKind::Tag, added: TimeMs(1), text: "{}".into() };
    each_counts(
        &item,
        hash::item,
        &[|row| row.item = 1, |row| row.kind = ItemKind::Series, |row| row.text = "[]".into()],
    );
    each_counts(
        &ledger.markets[0],
        hash::market_text,
        &[
            |row| row.market.0 += 1,
            |row| row.event = Some(0),
            |row| row.shard_key += 1,
            |row| row.market_id += 1,
            |row| row.condition.0[0] ^= 1,
            |row| row.question.0[0] ^= 1,
            |row| row.tokens[0].0[0] ^= 1,
            |row| row.tokens[1].0[0] ^= 1,
            |row| row.tokens.swap(0, 1),
            |row| row.labels[0] = "Up".into(),
            |row| row.labels[1] = "Up".into(),
            |row| row.text = "[]".into(),
        ],
    );
    each_counts(
        &ledger.markets[0],
        hash::market_state,
        &[
            |row| row.market.0 += 1,
            |row| row.neg_risk = true,
            |row| row.tick = Tick::new(10).expect("a tick"),
            |row| row.min_size.0 += 1,
            |row| row.fee.rate += 1,
            |row| row.fee.exponent += 1,
            |row| row.fee.taker_only = false,
            |row| row.fee.builder_share_bps += 1,
            |row| row.fee.rebate_rate += 1,
            |row| row.fee.version += 1,
            |row| row.mode = Mode::Closed,
            |row| row.payout = Payout::new(0),
            |row| row.backing.0 += 1,
            |row| row.shares[0].0 += 1,
            |row| row.shares[1].0 += 1,
        ],
    );
    each_counts(
        &(ALICE, MARKET, [Shares(1), Shares(2)]),
        |(wallet, market, shares)| hash::holding(*wallet, *market, *shares),
        &[|row| row.0 = BOB, |row| row.1.0 = 1, |row| row.2[0].0 += 1, |row| row.2[1].0 += 1],
    );
    each_counts(
        ledger.order_at(bid).expect("it rests"),
        hash::order,
        &[
            |row| row.position.0 += 64,
            |row| row.id.0[0] ^= 1,
            |row| row.filled.0 += 1,
            |row| row.open.0 += 1,
            |row| row.reserved.0 += 1,
            |row| row.state = OrderState::Filled,
        ],
    );
    each_counts(
        &(Position(64), Position(128)),
        |(order, from)| hash::place(*order, *from),
        &[|row| row.0.0 += 64, |row| row.1.0 += 64],
    );
    each_counts(
        &ledger.money["opening 1"],
        |row| hash::money("opening 1", row),
        &[|row| row.wallet = BOB, |row| row.direction = MoneyDirection::Debit, |row| row.amount.0 += 1],
    );
    let references =
        ["opening 1", "opening 2"].map(|reference| hash::money(reference, &ledger.money["opening 1"]));
    assert_ne!(references[0], references[1]);
    assert_ne!(hash::fees(Collateral(1)), hash::fees(Collateral(2)));
    let modes = [None, Some(Mode::Open), Some(Mode::PostOnly), Some(Mode::CancelOnly), Some(Mode::Closed)];
    assert_eq!(BTreeSet::from(modes.map(hash::exchange_mode)).len(), modes.len());
}

#[test]
fn the_hash_forgets_what_is_undone_and_meets_itself() {
    let mut log = Log::opened();
    let before = log.ledger.state_hash();
    let bid = log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
    assert_ne!(log.ledger.state_hash(), before);
    log.says(OrdersRemoved { time: TimeMs(3), reason: RemovalReason::Cancelled, orders: vec![bid] });
    assert_eq!(log.ledger.state_hash(), before);
    assert!(
        log.try_says(OrdersRemoved { time: TimeMs(3), reason: RemovalReason::Cancelled, orders: vec![bid] })
            .is_err()
    );

    let mut log = Log::opened();
    let mut salt = 10;
    while !log.ledger.frames().is_multiple_of(CHECKPOINT_FRAMES) {
        salt += 1;
        log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, salt));
    }
    let (through, hash) = (log.ledger.end(), log.ledger.state_hash());
    log.says(order(BOB, Side::Buy, Outcome::Zero, 40, 5));
    log.says(StateHash { through, hash });
    assert_eq!(log.ledger.hashes_met(), 1);
    // One that comes when the state it is of is forgotten says nothing; a wrong one of a state that is not still does.
    let mut next_checkpoint = |log: &mut Log| {
        while log.ledger.checkpoints.back().expect("there is one").0 != log.ledger.end() {
            salt += 1;
            log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, salt));
        }
    };
    log.says(order(BOB, Side::Buy, Outcome::Zero, 40, 6));
    next_checkpoint(&mut log);
    log.ledger.checkpoints.pop_front();
    log.says(StateHash { through, hash: hash ^ 1 });
    assert_eq!(log.ledger.hashes_met(), 1);
    next_checkpoint(&mut log);
    let through = log.ledger.end();
    assert!(log.try_says(StateHash { through, hash }).is_err());
}
