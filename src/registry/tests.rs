use super::*;
use crate::domain::{BreakerState, FeeSchedule, Payout, Shares, Tick, WalletKind};

fn address(number: u32) -> Address {
    let mut bytes = [0; 20];
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    Address(bytes)
}

fn word(number: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[28..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn facts(number: u32) -> MarketFacts {
    MarketFacts {
        condition: ConditionId(word(number)),
        tokens: [TokenId(word(number * 2)), TokenId(word(number * 2 + 1))],
        market_id: u64::from(number) + 500,
        question_id: Word(word(number)),
        neg_risk: false,
        min_size: Shares(5_000_000),
        fee: FeeSchedule::FREE,
        shard_key: number,
        tick: Tick::new(100).expect("a tick"),
        mode: Mode::Open,
        payout: None,
    }
}

const ACTIVE: KeyState = KeyState { generation: 0, active: true };

#[test]
fn a_wallet_is_found_by_its_address_and_knows_its_principal() {
    let (registry, mut writer) = Registry::with_capacity(8, 0);
    let owner = writer.add_wallet(address(1), WalletKind::Eoa, None).expect("room");
    let safe = writer.add_wallet(address(2), WalletKind::Safe, Some(owner)).expect("room");
    let deposit = writer.add_wallet(address(3), WalletKind::Deposit, None).expect("room");
    let fees = writer.add_wallet(address(4), WalletKind::Fee, None).expect("room");

    assert_eq!(registry.wallet_of(&address(2)), Some(safe));
    assert_eq!(registry.wallet_of(&address(9)), None);
    let principals = [owner, safe, deposit, fees].map(|wallet| registry.wallet(wallet).principal());
    assert_eq!(principals, [Some(owner), Some(owner), None, None]);
    assert_eq!(registry.fee_wallet(), Some(fees));

    writer.link(deposit, owner);
    assert_eq!(registry.wallet(deposit).principal(), Some(owner));
    assert_eq!(registry.wallets_of(owner).collect::<Vec<_>>(), [deposit, safe]);
}

#[test]
fn a_frozen_principal_can_be_thawed() {
    let (registry, mut writer) = Registry::with_capacity(1, 0);
    let owner = writer.add_wallet(address(1), WalletKind::Eoa, None).expect("room");
    assert!(!registry.wallet(owner).frozen());
    writer.set_frozen(owner, true);
    assert!(registry.wallet(owner).frozen());
    writer.set_frozen(owner, false);
    assert!(!registry.wallet(owner).frozen());
}

#[test]
fn a_revoked_key_shows_at_once_to_whoever_holds_its_row() {
    let (registry, mut writer) = Registry::with_capacity(2, 0);
    let owner = writer.add_wallet(address(1), WalletKind::Eoa, None).expect("room");
    writer.set_key(owner, Word(word(0)), ACTIVE).expect("room");
    writer.set_key(owner, Word(word(7)), ACTIVE).expect("room");
    let nonces: Vec<_> = registry.keys_of(owner).map(|row| row.nonce).collect();
    assert_eq!(nonces, [Word(word(7)), Word(word(0))]);
    let row = registry.key_of(owner, &Word(word(0))).expect("it has a row");

    let revoked = KeyState { generation: 1, active: false };
    writer.set_key(owner, Word(word(0)), revoked).expect("it has a row");
    assert_eq!(row.state(), revoked);
    assert_eq!(registry.key_of(owner, &Word(word(7))).map(KeyRow::state), Some(ACTIVE));
    assert!(registry.key_of(owner, &Word(word(8))).is_none());
}

#[test]
fn the_key_of_nonce_0_lives_without_a_row_until_it_is_revoked() {
    let (registry, mut writer) = Registry::with_capacity(1, 0);
    let owner = writer.add_wallet(address(1), WalletKind::Eoa, None).expect("room");
    assert_eq!(registry.key_state(owner, &Word::ZERO), Some(ACTIVE));
    assert_eq!(registry.key_state(owner, &Word(word(1))), None);
    let revoked = KeyState { generation: 1, active: false };
    writer.set_key(owner, Word::ZERO, revoked).expect("room");
    assert_eq!(registry.key_state(owner, &Word::ZERO), Some(revoked));
}

#[test]
fn a_breakers_row_goes_to_its_owners_next_key_once_it_is_taken_away() {
    const SET: BreakerState =
        BreakerState { quantity: Shares(1_000_000), interval_ms: 1_000, tripped: false };
    const NONE: BreakerState = BreakerState { quantity: Shares::ZERO, interval_ms: 0, tripped: false };
    let (registry, mut writer) = Registry::with_capacity(0, 0);
    let (now, key) = (TimeMs(1_700_000_000_000), |byte| ApiKey([byte; 16]));
    // Owner, key, what is set; the keys that the owner's rows are of afterwards.
    let acts: [(u32, u8, BreakerState, &[u8]); 9] = [
        (0, 1, SET, &[1]),
        (0, 2, SET, &[1, 2]),
        (1, 3, SET, &[3]),
        (0, 1, NONE, &[1, 2]),
        (1, 4, SET, &[3, 4]),
        (0, 5, SET, &[5, 2]),
        (0, 1, SET, &[5, 2, 1]),
        (0, 5, NONE, &[5, 2, 1]),
        (0, 5, SET, &[5, 2, 1]),
    ];
    for (at, (owner, byte, state, rows)) in acts.into_iter().enumerate() {
        let owner = WalletNo(owner);
        writer.set_breaker(owner, key(byte), state).expect("room");
        let of_owner: Vec<_> = registry.breakers_of(owner).map(BreakerRow::key).collect();
        assert_eq!(of_owner, rows.iter().map(|byte| key(*byte)).collect::<Vec<_>>(), "act {at}");
        let filled = registry.breaker(owner, &key(byte)).expect("it has a row").filled(now);
        assert_eq!(filled, Shares::ZERO, "act {at} counts nothing of before");
        registry.count_fill(owner, &key(byte), Shares(500_000), now);
        assert!(!registry.has_tripped(owner, &key(byte)), "act {at}");
        assert!(registry.breaker(WalletNo(2), &key(byte)).is_none(), "another's key");
    }
}

#[test]
fn a_market_is_found_by_either_token_its_condition_and_its_id() {
    let (registry, mut writer) = Registry::with_capacity(0, 2);
    let market = writer.add_market(&facts(1)).expect("room");
    assert_eq!(registry.token(&TokenId(word(2))), Some((market, Outcome::Zero)));
    assert_eq!(registry.token(&TokenId(word(3))), Some((market, Outcome::One)));
    assert_eq!(registry.token(&TokenId(word(4))), None);
    assert_eq!(registry.condition(&ConditionId(word(1))), Some(market));
    assert_eq!(registry.market_by_id(501), Some(market));
    assert_eq!(registry.market_by_id(500), None);
}

#[test]
fn the_shard_of_a_market_follows_its_key_and_their_number() {
    let (registry, mut writer) = Registry::with_capacity(0, 1);
    let market = writer.add_market(&MarketFacts { shard_key: 7, ..facts(1) }).expect("room");
    let shards = [1, 2, 4].map(|shards| registry.shard_of(market, shards));
    assert_eq!(shards, [ShardNo(0), ShardNo(1), ShardNo(3)]);
}

#[test]
fn a_market_changes_tick_and_mode_until_it_is_resolved() {
    let (registry, mut writer) = Registry::with_capacity(0, 1);
    let market = writer.add_market(&facts(1)).expect("room");
    let row = registry.market(market);
    let fine = Tick::new(10).expect("a tick");
    row.set_tick(fine);
    row.set_mode(Mode::CancelOnly);
    assert_eq!((row.tick(), row.mode(), row.payout()), (fine, Mode::CancelOnly, None));
    let payout = Payout::new(500_000).expect("at most one");
    row.resolve(payout);
    assert_eq!((row.mode(), row.payout()), (Mode::Resolved, Some(payout)));
}

#[test]
fn full_tables_refuse_by_name_and_keep_what_they_have() {
    let (registry, mut writer) = Registry::with_capacity(1, 1);
    let owner = writer.add_wallet(address(1), WalletKind::Eoa, None).expect("room");
    writer.add_market(&facts(1)).expect("room");
    writer.set_key(owner, Word(word(0)), ACTIVE).expect("room");

    assert_eq!(writer.add_wallet(address(2), WalletKind::Eoa, None), Err(Full::Wallets));
    assert_eq!(writer.add_market(&facts(2)), Err(Full::Markets));
    assert_eq!(writer.set_key(owner, Word(word(1)), ACTIVE), Err(Full::Keys));

    assert_eq!((writer.wallets_free(), writer.keys_free(), writer.markets_free()), (0, 0, 0));
    assert_eq!((registry.wallet_count(), registry.key_count(), registry.market_count()), (1, 1, 1));
    assert_eq!(registry.wallet_of(&address(2)), None);
    assert_eq!(registry.token(&TokenId(word(4))), None);
}

#[test]
fn the_exchange_has_one_mode() {
    let (registry, mut writer) = Registry::with_capacity(0, 0);
    assert_eq!(registry.exchange_mode(), Mode::Open);
    writer.set_exchange_mode(Mode::CancelOnly);
    assert_eq!(registry.exchange_mode(), Mode::CancelOnly);
}

#[test]
fn readers_see_whole_rows_while_the_writer_adds_them() {
    const WALLETS: u32 = 20_000;
    let (registry, mut writer) = Registry::with_capacity(WALLETS, 0);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let registry = &registry;
            scope.spawn(move || {
                let mut seen = 0;
                while seen < WALLETS {
                    let count = registry.wallet_count();
                    for number in seen..count {
                        let row = registry.wallet(WalletNo(number));
                        assert_eq!(row.address, address(number), "reader {reader}");
                        assert_eq!(
                            row.kind,
                            if number % 2 == 0 { WalletKind::Eoa } else { WalletKind::Safe }
                        );
                    }
                    // A name may be found a moment after its number; never the wrong row.
                    if let Some(found) = registry.wallet_of(&address(count)) {
                        assert_eq!(found, WalletNo(count));
                    }
                    seen = count;
                }
            });
        }
        for number in 0..WALLETS {
            let (kind, owner) = match number % 2 {
                0 => (WalletKind::Eoa, None),
                _ => (WalletKind::Safe, Some(WalletNo(number - 1))),
            };
            writer.add_wallet(address(number), kind, owner).expect("room");
        }
    });
    assert!((0..WALLETS).all(|number| registry.wallet_of(&address(number)) == Some(WalletNo(number))));
}
