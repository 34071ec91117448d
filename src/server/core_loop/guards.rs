//! What cancels a key's orders when its owner cannot: a missed beat, a lost connection, a tripped
//! breaker.
//!
//! The server does it by itself: an act goes from shard to shard, and for a missed beat to the registrar at the end,
//! which removes the switch. On a shard whose log has no room, or that has very many of these orders, it goes on in the
//! next turn; an act that finds no room on its way is sent again in the next turn, so none is ever lost while the process
//! lives. After a restart an armed switch is still armed, and goes off again.

use super::acts;
use super::{CoreLoop, REGISTRAR_LOOP};
use crate::domain::{ApiKey, TimeMs, WalletNo};
use crate::journal::layout::RemovalReason;
use crate::server::threads::message::{ActJob, Binding, Errand, Purpose, Report};
use crate::server::threads::shared::Phase;
use crate::server::trading::Trade;
use crate::server::trading::work::WorkNo;

/// Switches and breakers that are dealt with in one turn, so that orders come in between.
const FIRED_PER_TURN: usize = 16;

/// The key whose orders are removed, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone {
    /// The key's owner.
    pub(crate) principal: WalletNo,
    /// The key that the orders came with.
    pub(crate) key: ApiKey,
    /// A missed beat, a lost connection or a tripped breaker.
    pub(crate) reason: RemovalReason,
}

/// Sets out to cancel a key's orders on every shard.
pub(crate) fn cancel(core: &mut CoreLoop, gone: Gone) {
    let job = ActJob::new(Purpose::House, Binding::Nobody, on_shard(0, gone));
    acts::send(core, 0, Box::new(job));
}

/// Cancels the orders of a key whose connection is lost. One of them may still be on its way to a shard, so the
/// connection's `last` request is decided first.
pub(crate) fn lost(core: &mut CoreLoop, gone: Gone, last: Option<WorkNo>) {
    match last {
        Some(work) => core.lost.push((gone, work)),
        None => cancel(core, gone),
    }
}

/// Cancels for each switch that went off and each breaker that tripped, on the registrar's loop, and for each lost
/// connection whose last request is decided.
pub(crate) fn look(core: &mut CoreLoop) {
    // Before `Serving` other loops may not have their shards yet, and armed clocks have not begun.
    if core.shared.phase() != Phase::Serving {
        return;
    }
    core.trips_looked = core.trade.as_ref().map_or(0, |trade| trade.registry.trips());
    for _ in 0..FIRED_PER_TURN {
        let Some(gone) = next(core) else {
            break;
        };
        cancel(core, gone);
    }
    while let Some(gone) = next_lost(core) {
        cancel(core, gone);
    }
}

fn next_lost(core: &mut CoreLoop) -> Option<Gone> {
    let trade = core.trade.as_ref();
    let open = |work: WorkNo| trade.is_some_and(|trade| trade.works.is_undecided(work));
    let at = core.lost.iter().position(|(_, work)| !open(*work))?;
    Some(core.lost.swap_remove(at).0)
}

fn next(core: &mut CoreLoop) -> Option<Gone> {
    let now = core.now;
    let steady_ms = core.shared.clock.steady_ms(core.elapsed_ms);
    let trade = core.trade.as_mut()?;
    let registrar = trade.registrar.as_mut()?;
    let named = |reason| move |(principal, key)| Gone { principal, key, reason };
    let missed = registrar.next_missed(steady_ms).map(named(RemovalReason::HeartbeatMissed));
    missed.or_else(|| registrar.next_tripped(now).map(named(RemovalReason::FillRate)))
}

fn on_shard(shard: usize, gone: Gone) -> Errand {
    Box::new(move |trade: &mut Trade, now: TimeMs| {
        let then = move |trade: &mut Trade, _| {
            if shard + 1 < usize::from(trade.shards) {
                return Report::Next(shard + 1, on_shard(shard + 1, gone));
            }
            match gone.reason {
                RemovalReason::HeartbeatMissed => Report::Next(REGISTRAR_LOOP, went_off(gone)),
                _ => Report::Answer(200, Vec::new()),
            }
        };
        trade.remove_orders(now, (gone.principal, Some(gone.key)), gone.reason, Box::new(then))
    })
}

fn went_off(gone: Gone) -> Errand {
    Box::new(move |trade: &mut Trade, now: TimeMs| {
        let registrar = trade.own_registrar();
        if registrar.switch_went_off(now, gone.principal, gone.key) {
            Report::Answer(200, Vec::new())
        } else {
            Report::Next(REGISTRAR_LOOP, went_off(gone))
        }
    })
}
