//! What cancels a key's orders when its owner cannot: a missed beat, a lost connection, a tripped
//! breaker. And what a freeze began before the start and did not end.
//!
//! The server does it by itself: an act goes from shard to shard, and for a missed beat to the registrar at the end,
//! which removes the switch. It means the orders that are there when it sets out; what the owner places meanwhile, over
//! another connection, stays. On a shard whose log has no room, or that has very many of these orders, it goes on in the
//! next turn; an act that finds no room on its way is sent again in the next turn, so none is ever lost while the process
//! lives. After a restart an armed switch is still armed, and goes off again.

use std::collections::btree_map::Entry;

use super::acts;
use super::{CoreLoop, REGISTRAR_LOOP};
use crate::domain::{ApiKey, Position, TimeMs, WalletNo};
use crate::journal::layout::RemovalReason;
use crate::registrar::KeyOfOwner;
use crate::server::threads::message::{ActJob, Binding, Errand, Purpose, Report};
use crate::server::threads::shared::Phase;
use crate::server::trading::Trade;
use crate::server::trading::work::WorkNo;
use crate::shard::OrderScope;

/// Switches and breakers that are dealt with in one turn, so that orders come in between.
const FIRED_PER_TURN: usize = 16;
/// A switch that is overdue by more than this was not looked at because the server stood still.
const LATE_MS: u64 = 100;
/// What came while it stood still is heard within this.
const HEARD_WITHIN_MS: u64 = 1_000;

/// Whose orders are removed, and why.
#[derive(Clone, Copy, Debug)]
struct Gone {
    principal: WalletNo,
    /// Those that came with this key; none means all.
    key: Option<ApiKey>,
    reason: RemovalReason,
}

/// Sets out to remove orders from every shard, those that were placed `before`.
fn cancel(core: &mut CoreLoop, purpose: Purpose, gone: Gone, before: Position) {
    let job = ActJob::new(purpose, Binding::Nobody, on_shard(0, gone, before));
    acts::send(core, 0, Box::new(job));
}

/// The end of what is claimed of the log: every order that any shard has taken is before it.
fn claimed(core: &CoreLoop) -> Position {
    core.marks.as_ref().map_or(Position(0), |marks| marks.log().claimed())
}

/// Cancels the orders of a key whose connection is lost. One of them may still be on its way to a shard, so a `last`
/// request that places orders is decided first.
pub(crate) fn lost(core: &mut CoreLoop, name: KeyOfOwner, last: Option<WorkNo>) {
    match last {
        Some(work) if may_place(core, work) => core.lost.push((name, work)),
        _ => cancel_lost(core, name),
    }
}

fn may_place(core: &CoreLoop, work: WorkNo) -> bool {
    core.trade.as_ref().is_some_and(|trade| trade.works.may_place(work))
}

/// Cancels the orders of a key that has lost a connection. If it loses others meanwhile, however many, that is done once
/// more for all of them.
fn cancel_lost(core: &mut CoreLoop, name: KeyOfOwner) {
    let before = claimed(core);
    match core.losing.entry(name) {
        Entry::Occupied(mut others) => drop(others.insert(Some(before))),
        Entry::Vacant(place) => {
            place.insert(None);
            send_lost(core, name, before);
        }
    }
}

fn send_lost(core: &mut CoreLoop, name: KeyOfOwner, before: Position) {
    let (principal, key) = name;
    let gone = Gone { principal, key: Some(key), reason: RemovalReason::Disconnected };
    cancel(core, Purpose::Lost(name), gone, before);
}

/// The orders of a key that had lost a connection have left every shard.
pub(crate) fn lost_is_over(core: &mut CoreLoop, name: KeyOfOwner) {
    let others = core.losing.get_mut(&name).expect("it is kept until this");
    match others.take() {
        Some(before) => send_lost(core, name, before),
        None => drop(core.losing.remove(&name)),
    }
}

/// Cancels for each switch that went off and each breaker that tripped, on the registrar's loop, and for each lost
/// connection whose last request is decided.
pub(crate) fn look(core: &mut CoreLoop) {
    let phase = core.shared.phase();
    // Before `Serving` other loops may not have their shards yet, and armed clocks have not begun.
    if phase < Phase::Serving {
        return;
    }
    core.trips_looked = core.trade.as_ref().map_or(0, |trade| trade.registry.trips());
    if phase != Phase::Serving {
        // What trips while the server stops is written down; the next start cancels for it.
        if let Some(registrar) = core.trade.as_mut().and_then(|trade| trade.registrar.as_mut()) {
            while registrar.next_tripped(core.now).is_some() {}
        }
        return;
    }
    for _ in 0..FIRED_PER_TURN {
        let Some(gone) = next(core) else {
            break;
        };
        let before = claimed(core);
        cancel(core, Purpose::House, gone, before);
    }
    while let Some(at) = core.lost.iter().position(|(_, work)| !may_place(core, *work)) {
        let (name, _) = core.lost.swap_remove(at);
        cancel_lost(core, name);
    }
}

fn next(core: &mut CoreLoop) -> Option<Gone> {
    let now = core.now;
    let steady_ms = core.shared.clock.steady_ms(core.elapsed_ms);
    let trade = core.trade.as_mut()?;
    let registrar = trade.registrar.as_mut()?;
    let named = |reason| move |(principal, key)| Gone { principal, key: Some(key), reason };
    let frozen = |principal| Gone { principal, key: None, reason: RemovalReason::Operator };
    // A manual clock goes ahead in leaps.
    let due_ms = registrar.no_switch_before_ms().filter(|_| !core.shared.clock.is_manual());
    if due_ms.is_some_and(|due_ms| due_ms.saturating_add(LATE_MS) < steady_ms) {
        registrar.wait_for_beats(steady_ms + HEARD_WITHIN_MS);
    }
    let missed = registrar.next_missed(steady_ms).map(named(RemovalReason::HeartbeatMissed));
    missed
        .or_else(|| registrar.next_tripped(now).map(named(RemovalReason::FillRate)))
        .or_else(|| registrar.next_frozen().map(frozen))
}

fn on_shard(shard: usize, gone: Gone, before: Position) -> Errand {
    Box::new(move |trade: &mut Trade, _: TimeMs| {
        let Gone { principal, key, reason } = gone;
        let then = move |trade: &mut Trade, _| {
            if shard + 1 < usize::from(trade.shards) {
                return Report::Next(shard + 1, on_shard(shard + 1, gone, before));
            }
            match (reason, key) {
                (RemovalReason::HeartbeatMissed, Some(key)) => {
                    Report::Next(REGISTRAR_LOOP, went_off((principal, key)))
                }
                _ => Report::done(Vec::new()),
            }
        };
        // While its breaker is tripped a key gets no new orders, but one may have been judged just before that.
        let scope = move |trade: &Trade| {
            let is_tripped = key.is_some_and(|key| trade.registry.has_tripped(principal, &key));
            let all = reason == RemovalReason::FillRate && is_tripped;
            OrderScope { key, before: (!all).then_some(before), ..OrderScope::ALL }
        };
        trade.remove_orders(principal, scope, reason, Box::new(then))
    })
}

fn went_off(name: KeyOfOwner) -> Errand {
    Box::new(move |trade: &mut Trade, now: TimeMs| {
        let (principal, key) = name;
        let registrar = trade.own_registrar();
        if registrar.switch_went_off(now, principal, key) {
            Report::done(Vec::new())
        } else {
            Report::Next(REGISTRAR_LOOP, went_off(name))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::idle::tests::one_loop;
    use super::*;
    use crate::domain::{Address, ApiKey};
    use crate::registrar::BEAT_WITHIN_MS;
    use crate::server::threads::thread::Turns;

    #[test]
    fn a_switch_that_nobody_could_look_at_waits_for_beats_that_came_meanwhile() {
        for (late_ms, waits) in [(0, false), (LATE_MS, false), (LATE_MS + 1, true), (60_000, true)] {
            let data = tempfile::tempdir().expect("a directory");
            let (_running, mut cores) = one_loop(&data);
            let core = &mut cores[0];
            while core.turn() && !core.rests() {}
            let at = (core.now, core.elapsed_ms);
            let registrar = core.trade.as_mut().and_then(|trade| trade.registrar.as_mut());
            let registrar = registrar.expect("the only loop has it");
            let owner = registrar.owner(at.0, Address([7; 20])).expect("room");
            registrar.beat(at, owner, ApiKey([7; 16]), None).expect("room");
            assert!(next(core).is_none());
            core.elapsed_ms += BEAT_WITHIN_MS + late_ms;
            assert_eq!(next(core).is_none(), waits, "{late_ms} ms late");
            core.elapsed_ms += HEARD_WITHIN_MS;
            assert_eq!(next(core).is_some(), waits, "{late_ms} ms late");
        }
    }
}
