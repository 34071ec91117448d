//! Dead-man switches and fill-rate breakers of API keys.
//!
//! A **switch** is armed by a key's first beat and expects the next within [`BEAT_WITHIN_MS`] of each.
//! If none comes, it goes off: the caller cancels the key's orders on every shard and then calls
//! [`Registrar::switch_went_off`]. Arming writes a frame, beats do not; after a start the clock of
//! every armed switch begins anew.
//!
//! A **breaker**'s fills are counted by the shards ([`crate::registry::BreakerRow`]); the registrar sets
//! the breaker, and writes to the log that it tripped, so that it still is after a start.

use super::{Refusal, Registrar};
use crate::domain::{ApiKey, BreakerState, TimeMs, WalletNo};
use crate::journal::layout::{BreakerSet, SwitchArmed};
use crate::ledger::Ledger;
use crate::registry::{BREAKERS_MAX, BreakerRow, INTERVAL_MS_MAX, QUANTITY_MAX};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A beat is missed after this long: ten seconds, and five for delays on the way, as at the venues.
pub const BEAT_WITHIN_MS: u64 = 15_000;

/// An owner and one of its keys.
pub type KeyOfOwner = (WalletNo, ApiKey);

/// The most breakers of one owner at a time: one for each key that it may have.
const BREAKERS_OF_OWNER_MAX: usize = super::keys::KEYS_OF_OWNER_MAX;

/// Rows of breakers that are kept for owners to whom the operator once gave money. Anybody can be an owner without
/// any, and one that never had money has no fills to guard against.
const KEPT_FOR_CREDITED: u32 = BREAKERS_MAX / 2;

/// An armed switch.
#[derive(Clone, Copy, Debug)]
struct Switch {
    /// The id that the next beat has to show.
    beat: ApiKey,
    /// When it goes off, in milliseconds of the steady clock; none until its clock has begun.
    due_ms: Option<u64>,
    /// True while the key's orders are being cancelled.
    going_off: bool,
}

/// Why a beat was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatRefusal {
    /// The rule.
    pub refusal: Refusal,
    /// The id that would have been taken, if there is one.
    pub valid: Option<ApiKey>,
}

impl From<Refusal> for BeatRefusal {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, valid: None }
    }
}

/// What the registrar keeps of switches and breakers.
#[derive(Debug, Default)]
pub(super) struct Guards {
    switches: BTreeMap<KeyOfOwner, Switch>,
    /// No switch goes off before this.
    none_before_ms: u64,
    /// Keys whose beats were missed and whose orders are still to be cancelled.
    missed: VecDeque<KeyOfOwner>,
    beats: u64,
    /// Keys whose trip is in the log.
    tripped: BTreeSet<ApiKey>,
    /// Keys whose breaker tripped before the start: some of their orders may still rest.
    tripped_before: Vec<KeyOfOwner>,
    /// Principals that were frozen before the start and whose orders had not all left.
    frozen_before: Vec<WalletNo>,
    trips_seen: u32,
}

impl Guards {
    pub(super) fn restore(ledger: &Ledger) -> Self {
        let armed = Switch { beat: ApiKey::ZERO, due_ms: None, going_off: false };
        let tripped = ledger.breakers().filter(|(_, _, row)| row.tripped);
        let tripped: Vec<KeyOfOwner> = tripped.map(|(principal, key, _)| (principal, key)).collect();
        let frozen: BTreeSet<WalletNo> =
            ledger.wallets().iter().filter(|row| row.frozen).map(|row| row.wallet).collect();
        let markets = if frozen.is_empty() { &[][..] } else { ledger.markets() };
        let live = markets.iter().flat_map(|row| ledger.live_orders(row.market));
        let open: BTreeSet<WalletNo> =
            live.map(|order| order.principal).filter(|principal| frozen.contains(principal)).collect();
        Self {
            switches: ledger.switches().map(|name| (name, armed)).collect(),
            tripped: tripped.iter().map(|(_, key)| *key).collect(),
            tripped_before: tripped,
            frozen_before: open.into_iter().collect(),
            ..Self::default()
        }
    }

    /// An id for the next beat to show: a UUID of version 7, from the time and a count.
    fn next_beat(&mut self, now: TimeMs) -> ApiKey {
        self.beats += 1;
        let mut id = [0; 16];
        id[..6].copy_from_slice(&now.0.to_be_bytes()[2..]);
        id[6] = 0x70;
        id[8..].copy_from_slice(&(self.beats & (u64::MAX >> 2) | 1 << 63).to_be_bytes());
        ApiKey(id)
    }
}

impl Registrar {
    /// Takes a key's beat, arming its switch if it is not armed, and returns the id that the next beat
    /// has to show. A beat that shows no id begins a new chain: its client has just started.
    ///
    /// Switches are timed by `steady_ms`, which is never set forward or back.
    pub fn beat(
        &mut self,
        (now, steady_ms): (TimeMs, u64),
        principal: WalletNo,
        key: ApiKey,
        shown: Option<ApiKey>,
    ) -> Result<ApiKey, BeatRefusal> {
        let now = self.at(now);
        match (self.guards.switches.get(&(principal, key)), shown) {
            // It went off; it can be armed again once the orders are cancelled.
            (Some(switch), Some(_)) if switch.going_off => return Err(Refusal::HeartbeatNotArmed.into()),
            (Some(switch), None) if switch.going_off => return Err(Refusal::SwitchGoingOff.into()),
            (Some(switch), Some(shown)) if switch.beat != shown => {
                // A switch from before the start has no id, and takes whichever is shown.
                if switch.beat != ApiKey::ZERO {
                    return Err(BeatRefusal { refusal: Refusal::HeartbeatStale, valid: Some(switch.beat) });
                }
            }
            (Some(_), _) => {}
            (None, Some(_)) => return Err(Refusal::HeartbeatNotArmed.into()),
            (None, None) => {
                self.room_for_user()?;
                self.append(&SwitchArmed { time: now, principal, key, armed: true }.into());
            }
        }
        let beat = self.guards.next_beat(now);
        let due_ms = steady_ms.saturating_add(BEAT_WITHIN_MS);
        let switch = Switch { beat, due_ms: Some(due_ms), going_off: false };
        self.guards.switches.insert((principal, key), switch);
        self.guards.none_before_ms = self.guards.none_before_ms.min(due_ms);
        Ok(beat)
    }

    /// No switch goes off before this, in milliseconds of the steady clock; none if none is armed.
    #[must_use]
    pub fn no_switch_before_ms(&self) -> Option<u64> {
        (!self.guards.switches.is_empty()).then_some(self.guards.none_before_ms)
    }

    /// The keys whose switches are armed, in order.
    #[cfg(test)]
    pub(super) fn switches(&self) -> impl Iterator<Item = KeyOfOwner> {
        self.guards.switches.keys().copied()
    }

    /// Takes a key's switch away; its orders stay.
    pub fn disarm_switch(&mut self, now: TimeMs, principal: WalletNo, key: ApiKey) -> Result<(), Refusal> {
        match self.guards.switches.get(&(principal, key)) {
            None => Ok(()),
            Some(switch) if switch.going_off => Err(Refusal::SwitchGoingOff),
            Some(_) => {
                self.room_for_operator()?;
                self.forget_switch(now, principal, key);
                Ok(())
            }
        }
    }

    /// Lets no switch go off before `until_ms`: beats that came while the server itself stood still, as with a machine
    /// that was paused, are heard first.
    pub fn wait_for_beats(&mut self, until_ms: u64) {
        let armed = self.guards.switches.values_mut().filter(|switch| !switch.going_off);
        armed.filter_map(|switch| switch.due_ms.as_mut()).for_each(|due_ms| *due_ms = until_ms.max(*due_ms));
    }

    /// The next key whose beat was missed; its orders are to be cancelled.
    pub fn next_missed(&mut self, steady_ms: u64) -> Option<KeyOfOwner> {
        let Guards { switches, none_before_ms, missed, .. } = &mut self.guards;
        if *none_before_ms <= steady_ms && !switches.is_empty() {
            *none_before_ms = u64::MAX;
            for (name, switch) in switches.iter_mut().filter(|(_, switch)| !switch.going_off) {
                let due_ms = *switch.due_ms.get_or_insert(steady_ms.saturating_add(BEAT_WITHIN_MS));
                if due_ms <= steady_ms {
                    switch.going_off = true;
                    missed.push_back(*name);
                } else {
                    *none_before_ms = due_ms.min(*none_before_ms);
                }
            }
        }
        missed.pop_front()
    }

    /// Removes the switch of a key whose beat was missed, once its orders are cancelled. False if the
    /// log has no room for that now.
    pub fn switch_went_off(&mut self, now: TimeMs, principal: WalletNo, key: ApiKey) -> bool {
        let room = self.room_for_operator().is_ok();
        if room {
            self.forget_switch(now, principal, key);
        }
        room
    }

    fn forget_switch(&mut self, now: TimeMs, principal: WalletNo, key: ApiKey) {
        let time = self.at(now);
        self.append(&SwitchArmed { time, principal, key, armed: false }.into());
        self.guards.switches.remove(&(principal, key));
    }

    /// Sets the fill-rate breaker of a key, or takes it away with a quantity of zero. It is reset, and
    /// counts from here on.
    pub fn set_breaker(
        &mut self,
        now: TimeMs,
        principal: WalletNo,
        key: ApiKey,
        state: BreakerState,
    ) -> Result<(), Refusal> {
        if QUANTITY_MAX < state.quantity {
            return Err(Refusal::BreakerQuantity);
        }
        let takes_away = state.quantity.is_zero();
        if !takes_away && !(1..=INTERVAL_MS_MAX).contains(&state.interval_ms) {
            return Err(Refusal::BreakerInterval);
        }
        let known = self.breaker(principal, &key);
        if takes_away && known.quantity.is_zero() {
            return Ok(());
        }
        self.room_for_user()?;
        if known.quantity.is_zero() {
            self.room_for_breaker(principal)?;
        }
        let interval_ms = if takes_away { 0 } else { state.interval_ms };
        let state = BreakerState { quantity: state.quantity, interval_ms, tripped: false };
        self.write_breaker(now, principal, key, state);
        self.writer.set_breaker(principal, key, state).expect("the room was looked at");
        self.writer.reset_breaker(principal, &key);
        self.guards.tripped.remove(&key);
        Ok(())
    }

    /// How the breaker of a key stands; all zeros if it has none.
    fn breaker(&self, principal: WalletNo, key: &ApiKey) -> BreakerState {
        self.registry().breaker(principal, key).map(BreakerRow::state).unwrap_or_default()
    }

    /// Room for one more breaker: one of the owner's rows that no breaker is set in, or a new row.
    fn room_for_breaker(&self, principal: WalletNo) -> Result<(), Refusal> {
        if self.registry().breakers_of(principal).any(|row| !row.is_set()) {
            return Ok(());
        }
        if BREAKERS_OF_OWNER_MAX <= self.registry().breakers_of(principal).count() {
            return Err(Refusal::BreakersOfOwnerFull);
        }
        let kept = if self.was_credited(principal) { 0 } else { KEPT_FOR_CREDITED };
        if kept < self.writer.breakers_free() { Ok(()) } else { Err(Refusal::BreakersFull) }
    }

    /// Resets a key's breaker: it counts from nothing and its key may place orders again.
    pub fn reset_breaker(&mut self, now: TimeMs, principal: WalletNo, key: ApiKey) -> Result<(), Refusal> {
        let known = self.breaker(principal, &key);
        if known.quantity.is_zero() {
            return Err(Refusal::BreakerUnset);
        }
        self.room_for_user()?;
        self.write_breaker(now, principal, key, BreakerState { tripped: false, ..known });
        self.writer.reset_breaker(principal, &key);
        self.guards.tripped.remove(&key);
        Ok(())
    }

    /// The next key whose breaker tripped, now that the log says so; its orders are to be cancelled.
    pub fn next_tripped(&mut self, now: TimeMs) -> Option<KeyOfOwner> {
        if let Some(name) = self.guards.tripped_before.pop() {
            return Some(name);
        }
        let trips = self.registry().trips();
        if trips == self.guards.trips_seen || self.room_for_operator().is_err() {
            return None;
        }
        let new = |key: ApiKey| !self.guards.tripped.contains(&key);
        let tripped = self.registry().breakers().find(|row| row.state().tripped && new(row.key()));
        let Some((principal, key, state)) = tripped.map(|row| (row.principal, row.key(), row.state())) else {
            self.guards.trips_seen = trips;
            return None;
        };
        self.guards.tripped.insert(key);
        if !state.quantity.is_zero() {
            self.write_breaker(now, principal, key, state);
        }
        Some((principal, key))
    }

    /// The next principal that was frozen before the start and had orders left; they are to be cancelled.
    pub fn next_frozen(&mut self) -> Option<WalletNo> {
        self.guards.frozen_before.pop()
    }

    /// Takes away the breaker of a key that is revoked.
    pub(super) fn drop_breaker(&mut self, now: TimeMs, principal: WalletNo, key: ApiKey) {
        if !self.breaker(principal, &key).quantity.is_zero() {
            self.write_breaker(now, principal, key, BreakerState::default());
            self.writer.set_breaker(principal, key, BreakerState::default()).expect("it has a row");
            self.guards.tripped.remove(&key);
        }
    }

    fn write_breaker(&mut self, now: TimeMs, principal: WalletNo, key: ApiKey, state: BreakerState) {
        let time = self.at(now);
        let BreakerState { quantity, interval_ms, tripped } = state;
        self.append(&BreakerSet { time, principal, key, quantity, interval_ms, tripped }.into());
    }
}
