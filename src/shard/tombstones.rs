//! Cancels that came before their orders.
//!
//! A tombstone is bound to the principal that cancelled, lives for [`Tombstone::LIFE_MS`] by the machine's
//! clock, and kills the order when it arrives. All live equally long, so they run out in the order in which
//! they came: a ring. Followers of the log hold the same tombstones, by the same clock.
//!
//! Their ids need not be digests: clients write whatever they like into a cancel. So the index goes by a keyed hash of
//! all 32 bytes, or ids with equal beginnings could be aimed at one bucket.

use crate::account::Accounts;
use crate::domain::{OrderId, TimeMs, WalletNo};
use crate::journal::layout::Tombstone;
use crate::memory::table::Index;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

/// Tombstones of one principal at a time.
pub(super) const PER_PRINCIPAL_MAX: u16 = 256;

/// Tombstones of one shard at a time: 64 bytes each.
pub(super) const TOMBSTONES_MAX: u32 = 65_536;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: OrderId,
    principal: WalletNo,
    until: TimeMs,
}

impl Waiting {
    const fn is_over(&self, now: TimeMs) -> bool {
        Tombstone::is_over(self.until, now)
    }
}

/// The tombstones of a shard.
#[derive(Debug)]
pub(super) struct Tombstones {
    /// Oldest first. The number of the first is `first`; numbers wrap around.
    ring: VecDeque<Waiting>,
    first: u32,
    index: Index,
    hasher: RandomState,
}

/// One more tombstone than the principal or the shard may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OverQuota;

impl Tombstones {
    pub(super) fn new() -> Self {
        Self {
            ring: VecDeque::with_capacity(TOMBSTONES_MAX as usize),
            first: 0,
            index: Index::with_capacity(TOMBSTONES_MAX),
            hasher: RandomState::new(),
        }
    }

    /// Whether this principal's cancel waits for this order at `now`.
    #[inline]
    pub(super) fn waits(&self, id: &OrderId, principal: WalletNo, now: TimeMs) -> bool {
        // Mostly there are none; then the index, which is in no cache, is not read.
        self.ring.back().is_some_and(|newest| now < newest.until) && self.is_waiting(id, principal, now)
    }

    #[cold]
    fn is_waiting(&self, id: &OrderId, principal: WalletNo, now: TimeMs) -> bool {
        let same = |number| {
            let waiting = &self.ring[self.place(number)];
            waiting.id == *id && waiting.principal == principal && !waiting.is_over(now)
        };
        self.index.find(self.hash(id), same).is_some()
    }

    /// Drops the tombstones that ran out, then checks that [`Tombstones::put`] has room.
    pub(super) fn room(
        &mut self,
        principal: WalletNo,
        now: TimeMs,
        accounts: &mut Accounts,
    ) -> Result<(), OverQuota> {
        self.drop_run_out(now, accounts);
        self.room_beside_all(principal, accounts)
    }

    /// Whether [`Tombstones::put`] has room, counting those that ran out: a restore does not know the time.
    pub(super) fn room_beside_all(&self, principal: WalletNo, accounts: &Accounts) -> Result<(), OverQuota> {
        let full = self.ring.len() == TOMBSTONES_MAX as usize;
        let over = PER_PRINCIPAL_MAX <= accounts.wallet(principal).tombstones;
        if full || over { Err(OverQuota) } else { Ok(()) }
    }

    /// Adds one; the caller has checked that there is room.
    pub(super) fn put(&mut self, id: &OrderId, principal: WalletNo, until: TimeMs, accounts: &mut Accounts) {
        let number = self.first.wrapping_add(u32::try_from(self.ring.len()).expect("a small ring")) % NUMBERS;
        let indexed = self.index.insert(self.hash(id), number);
        assert!(indexed, "the room was looked at");
        self.ring.push_back(Waiting { id: *id, principal, until });
        accounts.wallet_mut(principal).tombstones += 1;
    }

    fn drop_run_out(&mut self, now: TimeMs, accounts: &mut Accounts) {
        while self.ring.front().is_some_and(|oldest| oldest.is_over(now)) {
            let oldest = self.ring.pop_front().expect("it was just seen");
            self.index.remove(self.hash(&oldest.id), self.first);
            self.first = (self.first + 1) % NUMBERS;
            accounts.wallet_mut(oldest.principal).tombstones -= 1;
        }
    }

    fn place(&self, number: u32) -> usize {
        ((number + NUMBERS - self.first) % NUMBERS) as usize
    }

    fn hash(&self, id: &OrderId) -> u64 {
        self.hasher.hash_one(id)
    }
}

/// Numbers of tombstones wrap around here: at more than there can be at once.
const NUMBERS: u32 = 2 * TOMBSTONES_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_that_begin_alike_are_spread_over_the_index() {
        let tombstones = Tombstones::new();
        let id = |number: u16| {
            let mut id = OrderId::ZERO;
            id.0[30..].copy_from_slice(&number.to_be_bytes());
            id
        };
        let homes: BTreeSet<_> =
            (0..1_000).map(|number| tombstones.index.bucket_of(tombstones.hash(&id(number)))).collect();
        // Of 16,384 buckets a thousand ids take 970 on average.
        assert!(900 < homes.len(), "{}", homes.len());
    }
}
