use super::*;
use crate::catalog::TEXT_BYTES_MAX;
use crate::domain::{ApiKey, BreakerState};
use crate::registry::{BREAKERS_MAX, INTERVAL_MS_MAX, QUANTITY_MAX};
use std::collections::BTreeSet;

type LastAct = Box<dyn FnOnce(&mut Rig) -> Result<(), Refusal>>;

/// Brings a rig to the edge of a refusal and returns the act that goes over it. A variant without a
/// row does not compile.
#[allow(clippy::too_many_lines, reason = "a table with one row per refusal")]
fn provoke(refusal: Refusal) -> (Rig, LastAct) {
    let mut rig = Rig::new();
    let act: LastAct = match refusal {
        Refusal::LogFull => {
            rig = Rig::with(64, 8, 64 << 10);
            Box::new(|rig| rig.registrar.owner(NOW, address(1)).map(|_| ()))
        }
        Refusal::WalletsFull => {
            rig = Rig::with(5, 0, LOG_BYTES);
            rig.registrar.owner(NOW, address(1)).expect("three of five");
            assert_eq!(rig.registrar.link(NOW, address(3), address(2)).map(drop), Err(refusal));
            let mut three = Rig::with(3, 0, LOG_BYTES);
            assert_eq!(three.registrar.link(NOW, address(3), address(2)).map(drop), Err(refusal));
            Box::new(|rig| rig.registrar.owner(NOW, address(2)).map(|_| ()))
        }
        Refusal::KeysFull => {
            rig = Rig::with(3, 0, LOG_BYTES);
            (1..4).for_each(|number| drop(rig.registrar.create_key(NOW, address(1), nonce(number))));
            assert_eq!(rig.registrar.create_readonly_key(NOW, FIRST), Err(refusal));
            Box::new(|rig| rig.registrar.create_key(NOW, address(1), nonce(4)).map(|_| ()))
        }
        Refusal::MarketsFull => {
            rig = Rig::with(0, 1, LOG_BYTES);
            rig.registrar.add_market(NOW, &market(1)).expect("one of one");
            Box::new(|rig| add(rig, market(2)))
        }
        Refusal::EventsFull => {
            rig.registrar.event_count = 1 << 24;
            Box::new(|rig| rig.registrar.add_event(NOW, "1", "{}").map(|_| ()))
        }
        Refusal::KeysOfOwnerFull => {
            // The key of nonce 0 is one of the 32.
            (1..32).for_each(|number| drop(rig.registrar.create_key(NOW, address(1), nonce(number))));
            Box::new(|rig| rig.registrar.create_key(NOW, address(1), nonce(32)).map(|_| ()))
        }
        Refusal::BreakersFull => {
            rig = Rig::with(2_048, 8, LOG_BYTES);
            let number = breakers_of_strangers(&mut rig);
            let principal = rig.registrar.owner(NOW, address(200)).expect("room");
            Box::new(move |rig| set_breaker(rig, principal, number, 1, 1))
        }
        Refusal::BreakersOfOwnerFull => {
            let principal = rig.registrar.owner(NOW, address(1)).expect("room");
            (0..32).for_each(|number| set_breaker(&mut rig, principal, number, 1, 1).expect("room"));
            assert_eq!(set_breaker(&mut rig, principal, 32, 1, 1), Err(refusal));
            set_breaker(&mut rig, principal, 7, 0, 0).expect("it is taken away");
            set_breaker(&mut rig, principal, 32, 1, 1).expect("there is room for another");
            Box::new(move |rig| set_breaker(rig, principal, 7, 1, 1))
        }
        Refusal::BreakerQuantity => {
            let principal = rig.registrar.owner(NOW, address(1)).expect("room");
            set_breaker(&mut rig, principal, 0, QUANTITY_MAX.0, 1).expect("the largest");
            Box::new(move |rig| set_breaker(rig, principal, 1, QUANTITY_MAX.0 + 1, 1))
        }
        Refusal::BreakerInterval => {
            let principal = rig.registrar.owner(NOW, address(1)).expect("room");
            set_breaker(&mut rig, principal, 0, 1, INTERVAL_MS_MAX).expect("the longest");
            assert_eq!(set_breaker(&mut rig, principal, 1, 1, 0), Err(refusal));
            Box::new(move |rig| set_breaker(rig, principal, 1, 1, INTERVAL_MS_MAX + 1))
        }
        Refusal::HeartbeatStale => {
            let principal = rig.registrar.owner(NOW, address(1)).expect("room");
            rig.registrar.beat((NOW, 5), principal, key(0), None).expect("room");
            Box::new(move |rig| beat(rig, principal, key(9)))
        }
        Refusal::HeartbeatNotArmed => {
            let principal = rig.registrar.owner(NOW, address(1)).expect("room");
            Box::new(move |rig| beat(rig, principal, key(9)))
        }
        Refusal::SwitchGoingOff => {
            let principal = rig.registrar.owner(NOW, address(1)).expect("room");
            rig.registrar.beat((NOW, 5), principal, key(0), None).expect("room");
            assert_eq!(rig.registrar.next_missed(5 + BEAT_WITHIN_MS), Some((principal, key(0))));
            let again = rig.registrar.beat((NOW, 5), principal, key(0), None);
            assert_eq!(again, Err(refusal.into()));
            Box::new(move |rig| rig.registrar.disarm_switch(NOW, principal, key(0)))
        }
        Refusal::BreakerUnset => {
            let principal = rig.registrar.owner(NOW, address(1)).expect("room");
            set_breaker(&mut rig, principal, 0, 1, 1).expect("room");
            set_breaker(&mut rig, principal, 0, 0, 0).expect("it is taken away");
            Box::new(move |rig| rig.registrar.reset_breaker(NOW, principal, key(0)))
        }
        Refusal::ReadonlyKeysOfOwnerFull => {
            let owner = rig.registrar.owner(NOW, address(1)).expect("room");
            for _ in 0..8 {
                rig.registrar.create_readonly_key(NOW, owner).expect("one of eight");
            }
            Box::new(move |rig| rig.registrar.create_readonly_key(NOW, owner).map(|_| ()))
        }
        Refusal::NonceKept => {
            rig.registrar.owner(NOW, address(1)).expect("room");
            let kept = crate::domain::nonce::of_readonly_key(0);
            assert_eq!(rig.registrar.derive_key(address(1), kept), Err(Refusal::KeyUnknown));
            Box::new(move |rig| rig.registrar.create_key(NOW, address(1), kept).map(|_| ()))
        }
        Refusal::WalletUnknown => Box::new(|rig| rig.debit(address(1), 1, "a").map(|_| ())),
        Refusal::WalletNotAnOwner => {
            rig.registrar.owner(NOW, address(1)).expect("room");
            Box::new(|rig| rig.registrar.owner(NOW, derive::safe(&address(1))).map(|_| ()))
        }
        Refusal::WalletIsAnOwner => {
            rig.registrar.owner(NOW, address(2)).expect("room");
            Box::new(|rig| rig.registrar.link(NOW, address(2), address(1)).map(|_| ()))
        }
        Refusal::WalletOfOtherKind => {
            rig.registrar.owner(NOW, address(1)).expect("room");
            Box::new(|rig| rig.credit_as(WalletKind::Deposit, address(1), 1, "a").map(|_| ()))
        }
        Refusal::WalletLinkedElsewhere => {
            rig.registrar.link(NOW, address(2), address(1)).expect("room");
            Box::new(|rig| rig.registrar.link(NOW, address(2), address(3)).map(|_| ()))
        }
        Refusal::WalletUnlinked => {
            rig.registrar.add_wallet(NOW, address(2), WalletKind::Deposit, None);
            Box::new(|rig| rig.registrar.set_frozen(NOW, &address(2), true).map(|_| ()))
        }
        Refusal::WalletIsForFees => {
            rig.registrar.fee_wallet(NOW, address(9)).expect("room");
            Box::new(|rig| rig.credit(address(9), 1, "a").map(|_| ()))
        }
        Refusal::KeyUnknown => Box::new(|rig| rig.registrar.derive_key(address(1), nonce(0)).map(|_| ())),
        Refusal::KeyToRevokeUnknown => {
            let first = rig.registrar.create_key(NOW, address(1), nonce(0)).expect("room").api_key;
            let [owner, other] = [1, 2].map(|byte| rig.registrar.owner(NOW, address(byte)).expect("room"));
            assert_eq!(rig.registrar.revoke_key(NOW, other, &first), Err(refusal), "another's");
            rig.registrar.revoke_key(NOW, owner, &first).expect("it lives");
            Box::new(move |rig| rig.registrar.revoke_key(NOW, owner, &first))
        }
        Refusal::AmountTooLarge => {
            Box::new(|rig| rig.credit(address(1), money::OUTSTANDING_MAX + 1, "a").map(|_| ()))
        }
        Refusal::NotEnough => {
            rig.credit(address(1), 5, "a").expect("room");
            Box::new(|rig| rig.debit(address(1), 6, "b").map(|_| ()))
        }
        Refusal::BalanceInUse => {
            rig.credit(address(1), 5, "a").expect("room");
            rig.registrar.cells.begin_take(ShardNo(1));
            Box::new(|rig| rig.debit(address(1), 6, "b").map(|_| ()))
        }
        Refusal::ReferenceTaken => {
            rig.credit(address(1), 5, "a").expect("room");
            assert_eq!(rig.credit(address(2), 5, "a"), Err(refusal), "another wallet");
            assert_eq!(rig.credit(address(1), 6, "a"), Err(refusal), "another amount");
            Box::new(|rig| rig.debit(address(1), 5, "a").map(|_| ()))
        }
        Refusal::EventUnknown => {
            assert_eq!(rig.registrar.update_event(NOW, 0, "{}"), Err(refusal));
            Box::new(|rig| add(rig, NewMarket { event: Some(0), ..market(1) }))
        }
        Refusal::TextTooLong => {
            let text = "x".repeat(TEXT_BYTES_MAX + 1);
            let longest = NewMarket { text: &text[1..], ..market(1) };
            rig.registrar.add_market(NOW, &longest).expect("the longest text fits a frame");
            rig.registrar.add_event(NOW, "0", "{}").expect("room");
            assert_eq!(rig.registrar.update_event(NOW, 0, &text), Err(refusal));
            assert_eq!(rig.registrar.update_market(NOW, MarketNo(0), None, &text), Err(refusal));
            assert_eq!(rig.registrar.put_item(NOW, ItemKind::Tag, "1", &text), Err(refusal));
            Box::new(move |rig| rig.registrar.add_event(NOW, "1", &text).map(|_| ()))
        }
        Refusal::MarketUnknown => Box::new(|rig| rig.registrar.update_market(NOW, MarketNo(0), None, "{}")),
        Refusal::ConditionTaken => {
            rig.registrar.add_market(NOW, &market(1)).expect("room");
            let condition = market(1).condition;
            Box::new(move |rig| add(rig, NewMarket { condition, ..market(2) }))
        }
        Refusal::TokenTaken => {
            rig.registrar.add_market(NOW, &market(1)).expect("room");
            let token = TokenId([1; 32]);
            let twice = Some([TokenId([3; 32]); 2]);
            assert_eq!(add(&mut rig, NewMarket { tokens: twice, ..market(2) }), Err(refusal));
            Box::new(move |rig| add(rig, NewMarket { tokens: Some([TokenId([3; 32]), token]), ..market(2) }))
        }
        Refusal::MarketIdTaken => {
            rig.registrar.add_market(NOW, &market(1)).expect("room");
            Box::new(|rig| add(rig, NewMarket { market_id: Some(1), ..market(2) }))
        }
    };
    (rig, act)
}

fn key(number: u32) -> ApiKey {
    let mut key = ApiKey::ZERO;
    key.0[..4].copy_from_slice(&number.to_le_bytes());
    key
}

fn beat(rig: &mut Rig, principal: WalletNo, shown: ApiKey) -> Result<(), Refusal> {
    rig.registrar.beat((NOW, 5), principal, key(0), Some(shown)).map(drop).map_err(|refused| refused.refusal)
}

fn set_breaker(
    rig: &mut Rig,
    principal: WalletNo,
    number: u32,
    quantity: u64,
    interval_ms: u64,
) -> Result<(), Refusal> {
    let state = BreakerState { quantity: Shares(quantity), interval_ms, tripped: false };
    rig.registrar.set_breaker(NOW, principal, key(number), state)
}

fn add(rig: &mut Rig, market: NewMarket<'_>) -> Result<(), Refusal> {
    rig.registrar.add_market(NOW, &market).map(|_| ())
}

#[test]
fn every_refusal_can_be_provoked_and_changes_nothing() {
    for refusal in Refusal::ALL {
        let (mut rig, act) = provoke(*refusal);
        rig.follow();
        let before = (rig.registrar.log.claimed(), told(&rig.registrar), rig.ledger.state_hash());
        assert_eq!(act(&mut rig), Err(*refusal));
        rig.follow();
        let after = (rig.registrar.log.claimed(), told(&rig.registrar), rig.ledger.state_hash());
        assert_eq!(before, after, "{refusal:?}");
    }
}

#[test]
fn what_is_read_up_to_its_limits_is_taken() {
    let mut rig = Rig::new();
    let long = "x".repeat(128);
    rig.registrar.add_event(NOW, &long[..64], "{}").expect("room");
    rig.registrar.put_item(NOW, ItemKind::Tag, &long[..64], "{}").expect("room");
    rig.credit(address(1), 1, &long[..64]).expect("room");
    let fee = FeeSchedule { rate: 1_000_000, exponent: 2, builder_share_bps: 9_000, ..FeeSchedule::FREE };
    let (labels, min_size) = ([&*long, "x"], Shares(1_000_000_000_000_000));
    rig.registrar.add_market(NOW, &NewMarket { labels, min_size, fee, ..market(1) }).expect("room");
}

#[test]
fn a_client_can_tell_every_refusal_apart() {
    let codes: BTreeSet<_> = Refusal::ALL.iter().map(|refusal| refusal.wire().code).collect();
    assert_eq!(codes.len(), Refusal::ALL.len());
    for refusal in Refusal::ALL {
        let wire = refusal.wire();
        assert!((400..=503).contains(&wire.status));
        assert_eq!(refusal.to_string(), wire.error);
    }
}

#[test]
fn credits_and_imports_stop_before_what_the_operator_must_do() {
    // Room for two shards' and two others' claims, and a little.
    let slack = Log::slack(2);
    let mut rig = Rig::with(64, 8, slack + (64 << 10));
    assert_eq!(rig.registrar.owner(NOW, address(1)), Err(Refusal::LogFull));
    assert_eq!(rig.credit(address(1), 1, "a"), Err(Refusal::LogFull));
    assert_eq!(rig.registrar.add_market(NOW, &market(1)), Err(Refusal::LogFull));
    assert_eq!(rig.registrar.set_exchange_mode(NOW, Mode::CancelOnly), Ok(()));
}

/// What is done for users and at imports, and what stops something, on a rig that has one of everything.
type Act = (&'static str, fn(&mut Rig) -> Result<(), Refusal>);

const FIRST: WalletNo = WalletNo(0);

const IMPORTS: [Act; 5] = [
    ("an event", |rig| rig.registrar.add_event(NOW, "2", "{}").map(drop)),
    ("an event's text", |rig| rig.registrar.update_event(NOW, 0, "{}")),
    ("a tag", |rig| rig.registrar.put_item(NOW, ItemKind::Tag, "1", "{}")),
    ("a market", |rig| add(rig, market(2))),
    ("a market's text", |rig| rig.registrar.update_market(NOW, MarketNo(0), None, "{}")),
];

const USERS: [Act; 9] = [
    ("an owner", |rig| rig.registrar.owner(NOW, address(2)).map(drop)),
    ("a link", |rig| rig.registrar.link(NOW, address(3), address(1)).map(drop)),
    ("a credit", |rig| rig.credit(address(1), 1, "b").map(drop)),
    ("a key", |rig| rig.registrar.create_key(NOW, address(1), nonce(3)).map(drop)),
    ("a key that was revoked", |rig| rig.registrar.create_key(NOW, address(1), nonce(1)).map(drop)),
    ("a read-only key", |rig| rig.registrar.create_readonly_key(NOW, FIRST).map(drop)),
    ("a first beat", |rig| {
        let beat = rig.registrar.beat((NOW, 5), FIRST, key(9), None);
        beat.map(drop).map_err(|refused| refused.refusal)
    }),
    ("a breaker", |rig| set_breaker(rig, FIRST, 9, 1, 1)),
    ("a breaker's reset", |rig| rig.registrar.reset_breaker(NOW, FIRST, key(0))),
];

const STOPS: [Act; 9] = [
    ("the exchange's mode", |rig| rig.registrar.set_exchange_mode(NOW, Mode::CancelOnly)),
    ("a debit", |rig| rig.debit(address(1), 1, "c").map(drop)),
    ("a freeze", |rig| rig.registrar.set_frozen(NOW, &address(1), true).map(drop)),
    ("the fee wallet", |rig| rig.registrar.fee_wallet(NOW, address(8)).map(drop)),
    ("a switch", |rig| rig.registrar.disarm_switch(NOW, FIRST, key(0))),
    ("a switch that went off", |rig| {
        let is_gone = rig.registrar.switch_went_off(NOW, FIRST, key(0));
        if is_gone { Ok(()) } else { Err(Refusal::LogFull) }
    }),
    ("a breaker that tripped", |rig| rig.registrar.next_tripped(NOW).map(drop).ok_or(Refusal::LogFull)),
    ("a key's end", |rig| {
        let key = rig.registrar.keys(FIRST, 0)[0].api_key;
        rig.registrar.revoke_key(NOW, FIRST, &key)
    }),
    ("a read-only key's end", |rig| {
        let key = rig.registrar.readonly_keys(FIRST)[0];
        rig.registrar.revoke_readonly_key(NOW, FIRST, &key).map(drop)
    }),
];

/// A rig with one of everything, whose log is filled until it has no such room.
fn filled(has_room: fn(&Log) -> bool) -> Rig {
    let mut rig = Rig::new();
    rig.credit(address(1), 5, "a").expect("room");
    let revoked = rig.registrar.create_key(NOW, address(1), nonce(1)).expect("room").api_key;
    rig.registrar.revoke_key(NOW, FIRST, &revoked).expect("it lives");
    rig.registrar.create_readonly_key(NOW, FIRST).expect("room");
    rig.registrar.beat((NOW, 5), FIRST, key(0), None).expect("room");
    set_breaker(&mut rig, FIRST, 0, 1, 1).expect("room");
    rig.registry().count_fill(FIRST, &key(0), Shares(1), NOW);
    rig.registrar.add_event(NOW, "1", "{}").expect("room");
    rig.registrar.add_market(NOW, &market(1)).expect("room");
    while has_room(&rig.registrar.log) {
        rig.registrar.log.append(ExchangeMode::KIND, &[0; 4_096]);
    }
    rig
}

#[test]
fn a_log_that_fills_refuses_imports_first_then_users_and_at_last_what_stops_something() {
    type Room = fn(&Log) -> bool;
    let rooms: [Room; 3] = [Log::room_for_bulk, |log| log.room_for_order(2), |log| log.room_for_cancel(2)];
    let acts = [&IMPORTS[..], &USERS[..], &STOPS[..]];
    for (full, has_room) in rooms.into_iter().enumerate() {
        for (kind, acts) in acts.into_iter().enumerate() {
            for (what, act) in acts {
                let mut rig = filled(has_room);
                let before = (rig.registrar.log.claimed(), told(&rig.registrar));
                let done = act(&mut rig);
                if kind <= full {
                    assert_eq!(done, Err(Refusal::LogFull), "{what}");
                    assert_eq!((rig.registrar.log.claimed(), told(&rig.registrar)), before, "{what}");
                } else {
                    assert_eq!(done, Ok(()), "{what}");
                }
            }
        }
    }
}

/// Sets breakers for owners that nobody credited, until one is refused; returns how many there are.
fn breakers_of_strangers(rig: &mut Rig) -> u32 {
    let mut number = 0_u32;
    loop {
        let mut address = address(0);
        address.0[..4].copy_from_slice(&(number / 32 + 1).to_le_bytes());
        let stranger = rig.registrar.owner(NOW, address).expect("room");
        match set_breaker(rig, stranger, number, 1, 1) {
            Ok(()) => number += 1,
            Err(refusal) => {
                assert_eq!(refusal, Refusal::BreakersFull);
                return number;
            }
        }
    }
}

#[test]
fn strangers_never_use_up_the_breakers_of_owners_that_were_credited() {
    let mut rig = Rig::with(2_048, 0, LOG_BYTES);
    // The first has its money itself, the second in a deposit wallet, the third had some once.
    let [own, linked, spent, stranger] =
        [251, 252, 253, 254].map(|byte| rig.registrar.owner(NOW, address(byte)).expect("room"));
    rig.credit(address(251), 1, "own").expect("room");
    rig.credit_as(WalletKind::Deposit, address(250), 1, "deposit").expect("room");
    rig.registrar.link(NOW, address(250), address(252)).expect("it is nobody's");
    rig.credit(address(253), 1, "in").expect("room");
    rig.debit(address(253), 1, "out").expect("it is there");

    assert_eq!(breakers_of_strangers(&mut rig), BREAKERS_MAX / 2);
    let expected = [(own, Ok(())), (linked, Ok(())), (spent, Ok(())), (stranger, Err(Refusal::BreakersFull))];
    for (principal, expected) in expected {
        assert_eq!(set_breaker(&mut rig, principal, u32::MAX - principal.0, 1, 1), expected);
    }
    rig.registrar = rig.restarted_with(2_048, 0);
    for (principal, expected) in expected {
        assert_eq!(set_breaker(&mut rig, principal, u32::MAX / 2 - principal.0, 1, 1), expected, "restarted");
    }
}
