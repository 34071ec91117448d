//! What the hash of the state is of.

use super::*;

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
#[allow(clippy::too_many_lines, reason = "a table of rows")]
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
    let breaker = BreakerState { quantity: Shares(5), interval_ms: 7, tripped: false };
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
    let oldest = log.ledger.checkpoints.front().expect("there is one").0;
    assert!(log.try_says(StateHash { through: oldest, hash: 0 }).is_err(), "the oldest is not forgotten");
}

#[test]
fn no_more_hashes_are_remembered_than_a_snapshot_may_have() {
    let mut log = Log::opened();
    log.ledger.checkpoints = (0..CHECKPOINTS_MAX).map(|_| (Position(1), 0)).collect();
    for salt in 0..64 {
        log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, salt));
    }
    let last = *log.ledger.checkpoints.back().expect("it is full");
    assert!(last != (Position(1), 0) && log.ledger.checkpoints.len() == CHECKPOINTS_MAX);
}
