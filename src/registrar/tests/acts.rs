use super::*;
use crate::domain::{Outcome, Side};
use crate::ledger::tests::order;
use proptest::prelude::*;

#[test]
fn an_owner_gets_its_address_its_proxy_and_its_safe_at_once() {
    let mut rig = Rig::new();
    let owner = rig.registrar.owner(NOW, address(1)).expect("room");
    assert_eq!(rig.follow(), 3);
    for (kind, derived) in [
        (WalletKind::Eoa, address(1)),
        (WalletKind::Proxy, derive::proxy(&address(1))),
        (WalletKind::Safe, derive::safe(&address(1))),
    ] {
        let row = rig.registry().wallet(rig.registry().wallet_of(&derived).expect("known"));
        assert_eq!((row.kind, row.principal()), (kind, Some(owner)));
    }
    assert_eq!(rig.registrar.owner(NOW, address(1)), Ok(owner));
    assert_eq!(rig.follow(), 0, "asking again changes nothing");
}

#[test]
fn an_owner_between_whose_frames_the_process_died_is_completed_at_the_next_start() {
    for derived_before in [false, true] {
        let mut rig = Rig::new();
        rig.registrar.owner(NOW, address(1)).expect("room");
        let safe = derive::safe(&address(2));
        if derived_before {
            rig.credit_as(WalletKind::Deposit, safe, 1, "a safe before its owner").expect("room");
        }
        let owner = rig.registrar.add_wallet(NOW, address(2), WalletKind::Eoa, None);
        if derived_before {
            rig.registrar.add_wallet(NOW, derive::proxy(&address(2)), WalletKind::Proxy, Some(owner));
        }
        rig.credit_as(WalletKind::Deposit, address(3), 1, "of nobody").expect("room");
        rig.registrar = rig.restarted();
        rig.registrar.complete_last_owner(NOW).expect("room");
        assert_eq!(rig.follow(), if derived_before { 1 } else { 2 });
        let of_safe = if derived_before { WalletKind::Deposit } else { WalletKind::Safe };
        for (wallet, kind) in [(derive::proxy(&address(2)), WalletKind::Proxy), (safe, of_safe)] {
            let row = rig.registry().wallet(rig.registry().wallet_of(&wallet).expect("known"));
            assert_eq!((row.kind, row.principal()), (kind, Some(owner)));
        }
        rig.registrar.complete_last_owner(NOW).expect("nothing to do");
        assert_eq!(rig.follow(), 0, "an owner is completed once");
        rig.check_restart();
    }
}

#[test]
fn strangers_leave_rows_for_wallets_that_the_operator_names() {
    // A sixteenth of 48 rows is kept.
    let mut rig = Rig::with(48, 8, LOG_BYTES);
    for number in 1..16 {
        rig.registrar.create_key(NOW, address(number), nonce(0)).expect("room");
    }
    assert_eq!(rig.registry().wallet_count(), 45);
    rig.follow();
    assert_eq!(rig.registrar.create_key(NOW, address(16), nonce(0)), Err(Refusal::WalletsFull));
    assert_eq!(rig.follow(), 0);
    rig.registrar.create_key(NOW, address(1), nonce(1)).expect("it is known");
    rig.credit(address(16), 5, "a").expect("the operator named it");
    rig.registrar.create_key(NOW, address(16), nonce(1)).expect("it is known by now");
}

#[test]
fn a_key_for_which_there_is_no_row_makes_no_owner_either() {
    let mut rig = Rig::with(48, 8, LOG_BYTES);
    let mut number = 0;
    // A third of 48 rows is kept for revocations.
    while 16 < rig.registrar.writer.keys_free() {
        rig.registrar.create_key(NOW, address(1 + number / 30), nonce(1 + number % 30)).expect("room");
        number += 1;
    }
    rig.follow();
    assert_eq!(rig.registrar.create_key(NOW, address(200), nonce(1)), Err(Refusal::KeysFull));
    assert_eq!(rig.follow(), 0, "not even the owner's rows");
    let owner = rig.registry().wallet_of(&address(1)).expect("it has keys");
    assert_eq!(rig.registrar.create_key(NOW, address(1), nonce(31)), Err(Refusal::KeysFull));
    let first = rig.registrar.derive_key(address(1), nonce(0)).expect("it lives").api_key;
    rig.registrar.revoke_key(NOW, owner, &first).expect("a row is kept for it");
}

#[test]
fn every_owner_revokes_its_first_key_however_many_keys_others_made_and_revoked() {
    for wallets in [48, 49, 50] {
        let mut rig = Rig::with(wallets, 8, LOG_BYTES);
        let owners: Vec<Address> = (1..17).map(address).collect();
        for owner in &owners {
            rig.registrar.owner(NOW, *owner).expect("three of 48");
        }
        let makes = |rig: &mut Rig, owner: Address| {
            (1..32).try_for_each(|number| rig.registrar.create_key(NOW, owner, nonce(number)).map(drop))
        };
        let made = owners.iter().try_for_each(|owner| makes(&mut rig, *owner));
        assert_eq!(made, Err(Refusal::KeysFull));
        for owner in owners {
            let principal = rig.registry().wallet_of(&owner).expect("an owner");
            let first = rig.registrar.derive_key(owner, nonce(0)).expect("it lives").api_key;
            assert_eq!(rig.registrar.revoke_key(NOW, principal, &first), Ok(()), "{wallets}: {principal:?}");
        }
        rig.follow();
        let restarted = rig.restarted_with(wallets, 8);
        assert_eq!(told(&restarted), told(&rig.registrar));
    }
}

#[test]
fn a_deposit_wallet_is_linked_once_and_for_good() {
    let mut rig = Rig::new();
    let wallet = rig.registrar.link(NOW, address(2), address(1)).expect("room");
    assert_eq!(rig.follow(), 4);
    let owner = rig.registry().wallet_of(&address(1));
    assert_eq!(rig.registry().wallet(wallet).principal(), owner);
    assert_eq!(rig.registrar.link(NOW, address(2), address(1)), Ok(wallet));
    assert_eq!(rig.follow(), 0);
    assert_eq!(rig.registrar.link(NOW, address(2), address(3)), Err(Refusal::WalletLinkedElsewhere));
    assert_eq!(rig.follow(), 0, "not even the other owner's rows");
}

#[test]
fn a_credited_deposit_wallet_belongs_to_nobody_until_it_is_linked() {
    let mut rig = Rig::new();
    assert_eq!(rig.credit_as(WalletKind::Deposit, address(2), 5, "a"), Ok(false));
    assert_eq!(rig.follow(), 2, "the wallet and its money");
    let credited = rig.registry().wallet_of(&address(2)).expect("known");
    assert_eq!(rig.registry().wallet(credited).principal(), None);
    assert_eq!(rig.credit_as(WalletKind::Deposit, address(2), 5, "a"), Ok(true));
    assert!(rig.credit(address(2), 2, "b").is_ok(), "a known wallet's kind need not be said");
    assert_eq!(rig.credit_as(WalletKind::Eoa, address(2), 1, "c"), Err(Refusal::WalletOfOtherKind));
    assert_eq!(rig.registrar.link(NOW, address(2), address(1)), Ok(credited));
    assert_eq!(rig.balance(address(2)), Collateral(7));
    rig.check_restart();
}

#[test]
fn linking_a_wallet_that_is_derived_for_the_owner_anyway_changes_nothing_more() {
    let mut rig = Rig::new();
    let proxy = derive::proxy(&address(1));
    let linked = rig.registrar.link(NOW, proxy, address(1)).expect("room");
    assert_eq!(rig.follow(), 3);
    assert_eq!(rig.registry().wallet(linked).kind, WalletKind::Proxy);
    assert_eq!(rig.registrar.link(NOW, proxy, address(1)), Ok(linked));
    assert_eq!(rig.follow(), 0);
}

#[test]
fn a_deposit_wallet_that_nobody_owned_joins_the_owner_it_was_derived_for() {
    let mut rig = Rig::new();
    let safe = derive::safe(&address(1));
    let wallet = rig.registrar.add_wallet(NOW, safe, WalletKind::Deposit, None);
    let owner = rig.registrar.owner(NOW, address(1)).expect("room");
    assert_eq!(rig.registry().wallet(wallet).principal(), Some(owner));
    rig.check_restart();
}

#[test]
fn freezing_or_thawing_again_changes_nothing_however_short_the_log_is() {
    let mut rig = Rig::new();
    rig.registrar.owner(NOW, address(1)).expect("room");
    let mut frozen = false;
    while rig.registrar.set_frozen(NOW, &address(1), !frozen).is_ok() {
        frozen = !frozen;
    }
    let end = rig.registrar.log.claimed();
    assert_eq!(rig.registrar.set_frozen(NOW, &address(1), !frozen), Err(Refusal::LogFull));
    rig.registrar.set_frozen(NOW, &address(1), frozen).expect("it is so already");
    assert_eq!(rig.registrar.log.claimed(), end, "no frame");
}

#[test]
fn any_wallet_names_the_principal_that_is_frozen() {
    let mut rig = Rig::new();
    let owner = rig.registrar.owner(NOW, address(1)).expect("room");
    rig.follow();
    let safe = derive::safe(&address(1));
    for frames in [1, 0] {
        assert_eq!(rig.registrar.set_frozen(NOW, &safe, true), Ok(owner));
        assert!(rig.registry().wallet(owner).frozen());
        assert_eq!(rig.follow(), frames);
    }
    rig.check_restart();
    for frames in [1, 0] {
        assert_eq!(rig.registrar.set_frozen(NOW, &address(1), false), Ok(owner));
        assert!(!rig.registry().wallet(owner).frozen());
        assert_eq!(rig.follow(), frames);
    }
}

#[test]
fn credentials_stay_the_same_until_they_are_revoked() {
    let mut rig = Rig::new();
    for nonce in [Word::ZERO, nonce(7)] {
        assert_eq!(rig.registrar.derive_key(address(1), nonce), Err(Refusal::KeyUnknown));
        let made = rig.registrar.create_key(NOW, address(1), nonce).expect("room");
        assert_eq!(rig.registrar.create_key(NOW, address(1), nonce), Ok(made.clone()));
        assert_eq!(rig.registrar.derive_key(address(1), nonce), Ok(made.clone()));
        let mut restarted = rig.restarted();
        assert_eq!(restarted.derive_key(address(1), nonce), Ok(made.clone()));
        assert_eq!(restarted.create_key(NOW, address(1), nonce), Ok(made.clone()));

        let owner = rig.registry().wallet_of(&address(1)).expect("an owner");
        assert_eq!(rig.registrar.revoke_key(NOW, owner, &made.api_key), Ok(()));
        assert_eq!(rig.registrar.revoke_key(NOW, owner, &made.api_key), Err(Refusal::KeyToRevokeUnknown));
        assert_eq!(rig.registrar.derive_key(address(1), nonce), Err(Refusal::KeyUnknown));
        let listed = rig.registrar.keys(owner, usize::MAX);
        assert!(listed.iter().any(|key| key.api_key == made.api_key && !key.active));

        let again = rig.registrar.create_key(NOW, address(1), nonce).expect("room");
        assert_ne!(again.secret, made.secret, "a leaked secret never comes back");
        assert_ne!(again.api_key, made.api_key);
        let listed: Vec<_> =
            rig.registrar.keys(owner, usize::MAX).iter().map(|key| (key.api_key, key.active)).collect();
        assert!([(again.api_key, true), (made.api_key, false)].iter().all(|key| listed.contains(key)));
        rig.check_restart();
        rig.registrar.revoke_key(NOW, owner, &again.api_key).expect("it lives");
        rig = Rig::new();
    }
}

#[test]
fn the_key_of_nonce_0_leaves_no_frame_of_its_own() {
    let mut rig = Rig::new();
    rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    assert_eq!(rig.follow(), 3, "the owner's three wallets");
    rig.registrar.create_key(NOW, address(1), nonce(1)).expect("room");
    assert_eq!(rig.follow(), 1);
    let owner = rig.registry().wallet_of(&address(1)).expect("an owner");
    let listed: Vec<_> =
        rig.registrar.keys(owner, usize::MAX).iter().map(|key| (key.nonce, key.active)).collect();
    assert_eq!(listed, [(nonce(1), true), (Word::ZERO, true)]);
}

#[test]
fn under_a_repeated_reference_nothing_is_done() {
    let mut rig = Rig::new();
    assert_eq!(rig.credit(address(1), 500, "a"), Ok(false));
    assert_eq!(rig.follow(), 4, "the owner's wallets and the money");
    let later = TimeMs(NOW.0 + 5);
    let order = MoneyOrder { wallet: address(1), amount: Collateral(500), reference: "a", kind: None };
    assert_eq!(rig.registrar.credit(later, &order), Ok(true));
    assert_eq!(rig.restarted().credit(later, &order), Ok(true), "also after a restart");
    assert_eq!((rig.follow(), rig.balance(address(1))), (0, Collateral(500)));

    assert_eq!(rig.debit(address(1), 200, "b"), Ok(false));
    assert_eq!(rig.debit(address(1), 200, "b"), Ok(true));
    assert_eq!((rig.follow(), rig.balance(address(1))), (1, Collateral(300)));
    assert_eq!(rig.debit(address(1), 300, "c"), Ok(false), "to the last");
    assert_eq!(rig.balance(address(1)), Collateral::ZERO);
    rig.check_restart();
}

#[test]
fn a_debit_tells_the_shards_that_rely_on_the_money() {
    let mut rig = Rig::new();
    rig.credit(address(1), 500, "a").expect("room");
    let wallet = rig.registry().wallet_of(&address(1)).expect("known");
    let cells = Arc::clone(&rig.registrar.cells);
    cells.watch(wallet, ShardNo(1));
    rig.debit(address(1), 100, "b").expect("covered");
    assert_eq!(cells.next_dirty(ShardNo(1)), Some(wallet));
    assert!(!cells.any_dirty(ShardNo(0)));
}

#[test]
fn credits_stop_where_sums_could_overflow() {
    let mut rig = Rig::new();
    rig.credit(address(1), money::OUTSTANDING_MAX - 1, "a").expect("below");
    assert_eq!(rig.credit(address(2), 2, "b"), Err(Refusal::AmountTooLarge));
    rig.credit(address(2), 1, "c").expect("to the limit");
    assert_eq!(rig.credit(address(2), 1, "d"), Err(Refusal::AmountTooLarge));
    rig.debit(address(1), 1, "e").expect("covered");
    rig.credit(address(2), 1, "d").expect("room again");
    rig.check_restart();
}

#[test]
fn the_exchange_keeps_its_mode_over_a_restart() {
    let mut rig = Rig::new();
    for frames in [1, 0] {
        rig.registrar.set_exchange_mode(NOW, Mode::CancelOnly).expect("room");
        assert_eq!(rig.follow(), frames);
    }
    assert_eq!(rig.restarted().registry().exchange_mode(), Mode::CancelOnly);
}

#[test]
fn a_market_without_names_gets_those_that_were_announced() {
    let mut rig = Rig::new();
    let names = rig.registrar.next_market_names();
    let made = rig.registrar.add_market(NOW, &nameless()).expect("room");
    let row = rig.registry().market(made);
    assert_eq!((row.market_id, row.question_id), (1_000_000_000, names.question));
    assert_eq!((row.condition, row.tokens, row.mode()), (names.condition, names.tokens, Mode::Open));
    assert_ne!(rig.registrar.next_market_names(), names);
    let next = rig.registrar.add_market(NOW, &nameless()).expect("room");
    assert_eq!(rig.registry().market(next).market_id, 1_000_000_001);
    rig.check_restart();
}

#[test]
fn a_history_that_went_on_elsewhere_never_gave_a_new_market_its_condition() {
    let mut rig = Rig::new();
    rig.registrar.add_market(NOW, &nameless()).expect("room");
    // What is made from here on is not in the backup.
    let restored = rig.restarted();
    let lost = rig.registrar.next_market_names();
    let restored = Registrar { identity: Identity { start: [8; 16], ..identity() }, ..restored };
    let given = restored.next_market_names();
    assert_eq!(given.market_id, lost.market_id, "a number of the backup's");
    assert!(given.question != lost.question && given.condition != lost.condition);
    assert!(given.tokens.iter().all(|token| !lost.tokens.contains(token)));
}

#[test]
fn an_imported_market_keeps_its_names_and_shares_a_shard_with_its_event() {
    let mut rig = Rig::new();
    let first = rig.registrar.add_event(NOW, "77", r#"{"id":"77"}"#).expect("room");
    let event = rig.registrar.add_event(NOW, "78", r#"{"id":"78"}"#).expect("room");
    assert_eq!((first, event, rig.follow()), (0, 1, 2));
    assert_eq!(rig.registrar.add_event(NOW, "78", "{}"), Ok(event));
    assert_eq!(rig.follow(), 0, "a known event stays");

    let made = rig.registrar.add_market(NOW, &NewMarket { event: Some(event), ..market(5) }).expect("room");
    let row = rig.registry().market(made);
    assert_eq!((row.market_id, row.condition, row.shard_key), (5, ConditionId([5; 32]), event));
    rig.registrar.update_market(NOW, made, Some(first), r#"{"new":1}"#).expect("room");
    rig.registrar.update_event(NOW, event, r#"{"id":"78","new":1}"#).expect("room");
    rig.follow();
    assert_eq!(rig.ledger.markets()[0].text, r#"{"new":1}"#);
    assert_eq!(rig.registry().market(made).shard_key, event, "its book stays where it is");
    rig.check_restart();
}

#[test]
fn a_row_without_tokens_is_shown_but_closed() {
    let mut rig = Rig::new();
    let shown = rig.registrar.add_market(NOW, &NewMarket { tokens: None, ..market(1) }).expect("room");
    assert_eq!(rig.registry().market(shown).mode(), Mode::Closed);
    let payout = Payout::new(1_000_000);
    let resolved = NewMarket { tokens: None, mode: Mode::Resolved, payout, ..market(2) };
    let resolved = rig.registrar.add_market(NOW, &resolved).expect("room");
    assert_eq!(rig.registry().market(resolved).payout(), payout);
    rig.check_restart();
}

#[test]
fn time_never_runs_backwards() {
    let mut rig = Rig::new();
    rig.credit(address(1), 1, "a").expect("room");
    let order = MoneyOrder { wallet: address(1), amount: Collateral(1), reference: "b", kind: None };
    rig.registrar.credit(TimeMs(5), &order).expect("room");
    rig.follow();
    assert_eq!(rig.ledger.time(), NOW);
    assert!(rig.ledger.references().all(|(_, row)| row.time == NOW));
}

#[derive(Clone, Debug)]
enum Act {
    Owner(u8),
    Link(u8, u8),
    Freeze(u8),
    Unfreeze(u8),
    CreateKey(u8, u8),
    RevokeKey(u8, u8),
    Credit(u8, u64, u8),
    Debit(u8, u64, u8),
    Mode(u8),
    Market(u8),
    Nameless,
    Event(u8),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_u8..6).prop_map(Act::Owner),
        (0_u8..6, 0_u8..6).prop_map(|(wallet, owner)| Act::Link(wallet, owner)),
        (0_u8..6).prop_map(Act::Freeze),
        (0_u8..6).prop_map(Act::Unfreeze),
        (0_u8..6, 0_u8..3).prop_map(|(owner, nonce)| Act::CreateKey(owner, nonce)),
        (0_u8..6, 0_u8..3).prop_map(|(owner, nonce)| Act::RevokeKey(owner, nonce)),
        (0_u8..6, 1_u64..100, 0_u8..20).prop_map(|(wallet, amount, name)| Act::Credit(wallet, amount, name)),
        (0_u8..6, 1_u64..100, 0_u8..20).prop_map(|(wallet, amount, name)| Act::Debit(wallet, amount, name)),
        (0_u8..4).prop_map(Act::Mode),
        (0_u8..8).prop_map(Act::Market),
        Just(Act::Nameless),
        (0_u8..4).prop_map(Act::Event),
    ]
}

/// Even numbers are owners' addresses; each odd one is the proxy of the owner before it.
fn party(byte: u8) -> Address {
    if byte.is_multiple_of(2) { address(byte + 1) } else { derive::proxy(&address(byte)) }
}

fn run(rig: &mut Rig, act: &Act) -> Result<(), Refusal> {
    let registrar = &mut rig.registrar;
    match *act {
        Act::Owner(owner) => registrar.owner(NOW, party(owner)).map(|_| ()),
        Act::Link(wallet, owner) => registrar.link(NOW, party(wallet), party(owner)).map(|_| ()),
        Act::Freeze(wallet) => registrar.set_frozen(NOW, &party(wallet), true).map(|_| ()),
        Act::Unfreeze(wallet) => registrar.set_frozen(NOW, &party(wallet), false).map(|_| ()),
        Act::CreateKey(owner, number) => registrar.create_key(NOW, party(owner), nonce(number)).map(|_| ()),
        Act::RevokeKey(owner, number) => {
            let made = registrar.derive_key(party(owner), nonce(number))?;
            let owner = registrar.registry().wallet_of(&party(owner)).expect("it has a key");
            registrar.revoke_key(NOW, owner, &made.api_key)
        }
        Act::Credit(wallet, amount, name) => rig.credit(party(wallet), amount, &name.to_string()).map(|_| ()),
        Act::Debit(wallet, amount, name) => rig.debit(party(wallet), amount, &name.to_string()).map(|_| ()),
        Act::Mode(mode) => registrar.set_exchange_mode(NOW, Mode::from_byte(mode).expect("a mode")),
        Act::Market(number) => registrar.add_market(NOW, &market(number)).map(|_| ()),
        Act::Nameless => registrar.add_market(NOW, &nameless()).map(|_| ()),
        Act::Event(number) => {
            let text = format!(r#"{{"id":"{number}"}}"#);
            registrar.add_event(NOW, &number.to_string(), &text).map(|_| ())
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_done_a_restart_changes_nothing_and_a_refusal_appends_nothing(
        acts in prop::collection::vec(any_act(), 1..40),
    ) {
        let mut rig = Rig::new();
        for act in &acts {
            let before = (rig.registrar.log.claimed(), told(&rig.registrar));
            if run(&mut rig, act).is_err() {
                let after = (rig.registrar.log.claimed(), told(&rig.registrar));
                prop_assert_eq!(before, after, "{:?}", act);
            }
            rig.check_restart();
            prop_assert!(rig.registrar.last_claimed() <= rig.ledger.end());
        }
    }
}

#[test]
fn an_owner_that_was_frozen_and_still_has_orders_is_named_after_a_restart() {
    let mut rig = Rig::new();
    let [idle, trading, free] = [1, 2, 3].map(|byte| rig.registrar.owner(NOW, address(byte)).expect("room"));
    rig.registrar.add_market(NOW, &market(1)).expect("room");
    for (salt, principal) in [(1, trading), (2, trading), (3, free)] {
        let record = Record::from(order(principal, Side::Buy, Outcome::Zero, 40, salt));
        rig.registrar.append(&record);
    }
    for byte in [1, 2] {
        rig.registrar.set_frozen(NOW, &address(byte), true).expect("room");
    }
    assert_eq!(rig.registrar.next_frozen(), None, "the act itself removes the orders");
    let mut restarted = rig.restarted();
    assert_eq!((restarted.next_frozen(), restarted.next_frozen()), (Some(trading), None), "not {idle:?}");
}

#[test]
fn the_first_key_of_an_owner_needs_no_row_and_so_none_is_asked_for() {
    let mut rig = Rig::with(6, 0, LOG_BYTES);
    rig.registrar.owner(NOW, address(1)).expect("room");
    let made = (1..6).filter(|number| rig.registrar.create_key(NOW, address(1), nonce(*number)).is_ok());
    assert_eq!(made.count(), 4, "a third is kept");
    assert!(rig.registrar.create_key(NOW, address(2), nonce(0)).is_ok());
}

#[test]
fn a_list_of_keys_has_as_many_that_were_revoked_as_it_is_asked_for() {
    let mut rig = Rig::new();
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    for _ in 0..3 {
        let made = rig.registrar.create_key(NOW, address(1), nonce(0)).expect("room");
        rig.registrar.revoke_key(NOW, principal, &made.api_key).expect("it lives");
    }
    rig.registrar.create_key(NOW, address(1), nonce(0)).expect("room");
    let all = rig.registrar.keys(principal, usize::MAX);
    assert!(all.iter().map(|key| key.active).eq([true, false, false, false]));
    for revoked_max in 0..4 {
        assert_eq!(rig.registrar.keys(principal, revoked_max), all[..=revoked_max]);
    }
}

#[test]
fn own_market_ids_go_on_above_whatever_id_a_market_brought() {
    let mut rig = Rig::new();
    let brought = 1_000_000_005;
    for (market_id, next) in [(7, 1_000_000_000), (brought, brought + 1), (brought - 2, brought + 1)] {
        let byte = u8::try_from(market_id % 100).expect("below 100");
        rig.registrar
            .add_market(NOW, &NewMarket { market_id: Some(market_id), ..market(byte) })
            .expect("room");
        assert_eq!(rig.registrar.next_market_names().market_id, next);
    }
}

#[test]
fn tags_are_numbered_on_after_a_restart() {
    let mut rig = Rig::new();
    let text = |key: &str| format!("{{\"id\":\"{key}\"}}");
    for key in ["a", "b"] {
        rig.registrar.put_item(NOW, ItemKind::Tag, key, &text(key)).expect("room");
    }
    rig.registrar = rig.restarted();
    rig.registrar.put_item(NOW, ItemKind::Tag, "c", &text("c")).expect("room");
    rig.registrar.put_item(NOW, ItemKind::Tag, "b", &text("b")).expect("room");
    rig.follow();
    let texts: Vec<&str> = rig.ledger.items().iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts, [text("a"), text("b"), text("c")]);
}

#[test]
fn the_fee_wallet_stays_what_it_is_though_an_owners_address_is_derived_from_it() {
    let mut rig = Rig::new();
    let fees = rig.registrar.fee_wallet(NOW, derive::proxy(&address(1))).expect("room");
    assert_eq!(rig.registrar.fee_wallet(NOW, address(9)), Ok(fees), "the first stays");
    let owner = rig.registrar.owner(NOW, address(1)).expect("room");
    assert_eq!(rig.registry().wallet(fees).principal(), None);
    assert!(rig.registry().wallets_of(owner).all(|wallet| wallet != fees));
    rig.check_restart();
}
