//! Dead-man switches and fill-rate breakers.

use super::apply::{Applied, contradiction, require};
use super::{Ledger, hash};
use crate::domain::{ApiKey, BreakerState, WalletNo};
use crate::journal::layout::{BreakerSet, SwitchArmed};

impl Ledger {
    /// The keys whose dead-man switches are armed, in order.
    pub fn switches(&self) -> impl Iterator<Item = (WalletNo, ApiKey)> {
        self.switches.iter().copied()
    }

    /// Every fill-rate breaker, in the order of principals and keys.
    pub fn breakers(&self) -> impl Iterator<Item = (WalletNo, ApiKey, &BreakerState)> {
        self.breakers.iter().map(|((principal, key), row)| (*principal, *key, row))
    }

    pub(super) fn arm_switch(&mut self, record: &SwitchArmed) -> Applied {
        self.wallet(record.principal).ok_or(contradiction("a switch names no principal"))?;
        let place = (record.principal, record.key);
        let changed = if record.armed { self.switches.insert(place) } else { self.switches.remove(&place) };
        require(changed, "a switch was armed or disarmed twice")?;
        let row = hash::switch(place.0, place.1);
        self.hash = if record.armed { self.hash.wrapping_add(row) } else { self.hash.wrapping_sub(row) };
        Ok(())
    }

    pub(super) fn set_breaker(&mut self, record: &BreakerSet) -> Applied {
        self.wallet(record.principal).ok_or(contradiction("a breaker names no principal"))?;
        let place = (record.principal, record.key);
        let row = BreakerState {
            quantity: record.quantity,
            interval_ms: record.interval_ms,
            tripped: record.tripped,
        };
        let old = if row.quantity.is_zero() {
            self.breakers.remove(&place)
        } else {
            require(0 < row.interval_ms, "a breaker has no interval")?;
            self.hash = self.hash.wrapping_add(hash::breaker(place.0, place.1, &row));
            self.breakers.insert(place, row)
        };
        if let Some(old) = old {
            self.hash = self.hash.wrapping_sub(hash::breaker(place.0, place.1, &old));
        }
        Ok(())
    }
}
