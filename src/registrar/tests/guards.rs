//! Dead-man switches and fill-rate breakers.

use super::*;
use crate::domain::{ApiKey, BreakerState};

#[test]
fn switches_and_breakers_are_what_they_were_after_a_restart() {
    let mut rig = Rig::new();
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    let keys = [1, 2, 3].map(|byte| ApiKey([byte; 16]));
    let state = BreakerState { quantity: Shares(5_000_000), interval_ms: 1_000, tripped: false };
    for key in keys {
        rig.registrar.beat((NOW, 5), principal, key, None).expect("room");
        rig.registrar.set_breaker(NOW, principal, key, state).expect("room");
    }
    rig.registrar.disarm_switch(NOW, principal, keys[0]).expect("room");
    assert_eq!(rig.registrar.disarm_switch(NOW, principal, keys[0]), Ok(()), "the same again");
    rig.registry().count_fill(principal, &keys[1], Shares(5_000_000), NOW);
    assert_eq!(rig.registrar.next_tripped(NOW), Some((principal, keys[1])));
    assert_eq!(rig.registrar.next_tripped(NOW), None);
    rig.registrar.set_breaker(NOW, principal, keys[2], BreakerState::default()).expect("room");
    rig.check_restart();
    // After a restart the clocks begin anew at the first check, and a key that had tripped is named again.
    let mut restarted = rig.restarted();
    assert_eq!(restarted.next_tripped(NOW), Some((principal, keys[1])));
    assert_eq!(restarted.next_tripped(NOW), None);
    assert_eq!(restarted.next_missed(1_000_000), None);
    assert_eq!(restarted.next_missed(1_000_000 + BEAT_WITHIN_MS - 1), None);
    let missed = 1_000_000 + BEAT_WITHIN_MS;
    assert_eq!(restarted.next_missed(missed), Some((principal, keys[1])));
    assert_eq!(restarted.next_missed(missed), Some((principal, keys[2])));
    assert_eq!(restarted.next_missed(missed), None, "each goes off once");
    assert!(restarted.switch_went_off(NOW, principal, keys[1]));
    assert_eq!(restarted.switches().collect::<Vec<_>>(), [(principal, keys[2])]);
}

#[test]
fn a_switch_that_went_off_is_armed_again_once_its_orders_are_cancelled_and_goes_off_again() {
    let mut rig = Rig::new();
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    let key = ApiKey([1; 16]);
    for steady_ms in [0, 100_000] {
        let missed_ms = steady_ms + BEAT_WITHIN_MS;
        assert_eq!(rig.registrar.no_switch_before_ms(), None);
        let beat = rig.registrar.beat((NOW, steady_ms), principal, key, None).expect("room");
        rig.registrar.next_missed(steady_ms);
        assert_eq!(rig.registrar.no_switch_before_ms(), Some(missed_ms));
        assert_eq!(rig.registrar.next_missed(missed_ms - 1), None);
        assert_eq!(rig.registrar.next_missed(missed_ms), Some((principal, key)));
        let mut refused = |shown| rig.registrar.beat((NOW, missed_ms), principal, key, shown).err();
        assert_eq!(refused(Some(beat)), Some(Refusal::HeartbeatNotArmed.into()));
        assert_eq!(refused(None), Some(Refusal::SwitchGoingOff.into()), "its orders are being cancelled");
        let disarmed = rig.registrar.disarm_switch(NOW, principal, key);
        assert_eq!(disarmed, Err(Refusal::SwitchGoingOff), "nor is it taken away");
        assert_eq!(rig.registrar.next_missed(missed_ms), None);
        assert!(rig.registrar.switch_went_off(NOW, principal, key));
    }
}

#[test]
fn beats_that_came_while_nobody_looked_are_heard_first() {
    let mut rig = Rig::new();
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    let keys = [1, 2].map(|byte| ApiKey([byte; 16]));
    let beats = keys.map(|key| rig.registrar.beat((NOW, 0), principal, key, None).expect("room"));
    let (back_ms, until_ms) = (BEAT_WITHIN_MS + 60_000, BEAT_WITHIN_MS + 61_000);
    rig.registrar.wait_for_beats(until_ms);
    assert_eq!(rig.registrar.next_missed(back_ms), None);
    assert_eq!(rig.registrar.no_switch_before_ms(), Some(until_ms));
    rig.registrar.beat((NOW, back_ms), principal, keys[0], Some(beats[0])).expect("it is in time");
    assert_eq!(rig.registrar.next_missed(until_ms - 1), None);
    assert_eq!(rig.registrar.next_missed(until_ms), Some((principal, keys[1])));
    assert_eq!(rig.registrar.next_missed(until_ms), None);
}

#[test]
fn switches_go_off_one_after_another_each_at_its_time() {
    let mut rig = Rig::new();
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    let keys = [1, 2, 3].map(|byte| ApiKey([byte; 16]));
    for (key, steady_ms) in keys.into_iter().zip([0, 5_000, 6_000]) {
        rig.registrar.beat((NOW, steady_ms), principal, key, None).expect("room");
        assert_eq!(rig.registrar.next_missed(steady_ms), None);
        assert_eq!(rig.registrar.no_switch_before_ms(), Some(BEAT_WITHIN_MS), "that of the first beat");
    }
    for (key, due_ms) in keys.into_iter().zip([0, 5_000, 6_000].map(|ms| ms + BEAT_WITHIN_MS)) {
        assert_eq!(rig.registrar.no_switch_before_ms(), Some(due_ms));
        assert_eq!(rig.registrar.next_missed(due_ms - 1), None);
        assert_eq!(rig.registrar.next_missed(due_ms), Some((principal, key)));
    }
}

#[test]
fn after_a_restart_a_switch_takes_any_beat_and_from_then_on_the_next() {
    let mut rig = Rig::new();
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    let [key, shown] = [1, 9].map(|byte| ApiKey([byte; 16]));
    rig.registrar.beat((NOW, 5), principal, key, None).expect("room");
    let mut restarted = rig.restarted();
    let next = restarted.beat((NOW, 5), principal, key, Some(shown)).expect("nobody remembers the last one");
    let stale = BeatRefusal { refusal: Refusal::HeartbeatStale, valid: Some(next) };
    assert_eq!(restarted.beat((NOW, 5), principal, key, Some(shown)), Err(stale));
    assert!(restarted.beat((NOW, 5), principal, key, Some(next)).is_ok());
}

#[test]
fn a_breaker_that_is_set_or_reset_counts_from_there_and_trips_again() {
    let mut rig = Rig::new();
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    let (key, five, four) = (ApiKey([1; 16]), Shares(5_000_000), Shares(4_000_000));
    let state = BreakerState { quantity: five, interval_ms: 1_000, tripped: false };
    rig.registrar.set_breaker(NOW, principal, key, state).expect("room");
    for _ in ["as it was set", "and reset"] {
        rig.registry().count_fill(principal, &key, four, NOW);
        rig.registrar.set_breaker(NOW, principal, key, state).expect("room");
        rig.registry().count_fill(principal, &key, four, NOW);
        assert!(!rig.registry().has_tripped(principal, &key), "it counts from where it was set");
        rig.registry().count_fill(principal, &key, four, NOW);
        assert_eq!(rig.registrar.next_tripped(NOW), Some((principal, key)));
        assert_eq!(rig.registrar.next_tripped(NOW), None);
        rig.check_restart();
        rig.registrar.reset_breaker(NOW, principal, key).expect("room");
        assert!(!rig.registry().has_tripped(principal, &key));
        rig.check_restart();
    }
    rig.registry().count_fill(principal, &key, five, NOW);
    assert_eq!(rig.registrar.next_tripped(NOW), Some((principal, key)), "and once more");
    rig.registrar.set_breaker(NOW, principal, key, state).expect("room");
    rig.registry().count_fill(principal, &key, five, NOW);
    assert_eq!(rig.registrar.next_tripped(NOW), Some((principal, key)), "and after it was set again");
    rig.registrar.set_breaker(NOW, principal, key, BreakerState::default()).expect("room");
    rig.follow();
    rig.registrar.set_breaker(NOW, principal, key, BreakerState::default()).expect("nothing to do");
    assert_eq!(rig.follow(), 0, "what changes nothing leaves no frame");
}

#[test]
fn a_revoked_keys_breaker_goes_with_it() {
    let mut rig = Rig::new();
    let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    let principal = rig.registry().wallet_of(&address(1)).expect("an owner");
    let state = BreakerState { quantity: Shares(1), interval_ms: 1_000, tripped: false };
    rig.registrar.set_breaker(NOW, principal, made.api_key, state).expect("room");
    rig.registrar.revoke_key(NOW, principal, &made.api_key).expect("it lives");
    let left = rig.registry().breaker(principal, &made.api_key).map(|row| row.state().quantity);
    assert_eq!(left, Some(Shares::ZERO));
    rig.check_restart();
    assert_eq!(rig.ledger.breakers().count(), 0);
}

#[test]
fn an_owner_that_changes_its_key_again_and_again_has_a_breaker_each_time() {
    let mut rig = Rig::new();
    let (five, four) = (Shares(5_000_000), Shares(4_000_000));
    let state = BreakerState { quantity: five, interval_ms: 1_000, tripped: false };
    let principal = rig.registrar.owner(NOW, address(1)).expect("room");
    let mut before = ApiKey::ZERO;
    for round in 0..100 {
        let key = rig.registrar.create_key(NOW, address(1), nonce(7)).expect("room").api_key;
        assert_eq!(rig.registrar.set_breaker(NOW, principal, key, state), Ok(()), "round {round}");
        rig.registry().count_fill(principal, &before, five, NOW);
        rig.registry().count_fill(principal, &key, four, NOW);
        assert!(!rig.registry().has_tripped(principal, &key), "it counts what was filled of its own orders");
        rig.registry().count_fill(principal, &key, four, NOW);
        assert_eq!(rig.registrar.next_tripped(NOW), Some((principal, key)));
        assert_eq!(rig.registrar.next_tripped(NOW), None);
        rig.check_restart();
        rig.registrar.revoke_key(NOW, principal, &key).expect("it lives");
        before = key;
    }
    assert_eq!(rig.registry().breakers_of(principal).count(), 1, "they had the same row");
    rig.check_restart();
}
