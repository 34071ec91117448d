//! Cancels that came before their orders.
//!
//! A tombstone is bound to the principal that cancelled, lives for [`Tombstone::LIFE_MS`] by the machine's
//! clock, and kills the order when it arrives. All live equally long, so they run out in the order in which
//! they came: a ring. Followers of the log hold the same tombstones, by the same clock.
//!
//! Their ids need not be digests: clients write whatever they like into a cancel. So the index goes by a keyed hash of
//! id and principal, or ids with equal beginnings, or one id of many principals, could be aimed at one bucket.

use super::TombstoneRefusal;
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

/// Tombstones that ran out and are dropped for a new one; the rest wait for the next one.
const DROPPED_MAX: usize = 4_096;

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
        self.index.find(self.hash(id, principal), same).is_some()
    }

    /// Drops tombstones that ran out, then checks that [`Tombstones::put`] has room.
    pub(super) fn room(
        &mut self,
        principal: WalletNo,
        now: TimeMs,
        accounts: &mut Accounts,
    ) -> Result<(), TombstoneRefusal> {
        self.drop_run_out(now, accounts);
        let is_full = self.ring.len() == TOMBSTONES_MAX as usize;
        if !is_full && accounts.wallet(principal).tombstones < PER_PRINCIPAL_MAX {
            return Ok(());
        }
        let more_ran_out = self.ring.front().is_some_and(|oldest| oldest.is_over(now));
        Err(if more_ran_out { TombstoneRefusal::Busy } else { TombstoneRefusal::Quota })
    }

    /// Adds one; the caller has checked that there is room.
    pub(super) fn put(&mut self, id: &OrderId, principal: WalletNo, until: TimeMs, accounts: &mut Accounts) {
        let number = self.first.wrapping_add(u32::try_from(self.ring.len()).expect("a small ring")) % NUMBERS;
        let indexed = self.index.insert(self.hash(id, principal), number);
        assert!(indexed, "the room was looked at");
        self.ring.push_back(Waiting { id: *id, principal, until });
        accounts.wallet_mut(principal).tombstones += 1;
    }

    /// Drops the oldest of those that ran out.
    fn drop_run_out(&mut self, now: TimeMs, accounts: &mut Accounts) {
        let over = self.ring.iter().take(DROPPED_MAX).take_while(|oldest| oldest.is_over(now)).count();
        for oldest in self.ring.drain(..over) {
            self.index.remove(hash(&self.hasher, &oldest.id, oldest.principal), self.first);
            self.first = (self.first + 1) % NUMBERS;
            accounts.wallet_mut(oldest.principal).tombstones -= 1;
        }
    }

    fn place(&self, number: u32) -> usize {
        ((number + NUMBERS - self.first) % NUMBERS) as usize
    }

    fn hash(&self, id: &OrderId, principal: WalletNo) -> u64 {
        hash(&self.hasher, id, principal)
    }
}

fn hash(hasher: &RandomState, id: &OrderId, principal: WalletNo) -> u64 {
    hasher.hash_one((id, principal))
}

/// Numbers of tombstones wrap around here: at more than there can be at once.
const NUMBERS: u32 = 2 * TOMBSTONES_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn id(number: u16) -> OrderId {
        let mut id = OrderId::ZERO;
        id.0[30..].copy_from_slice(&number.to_be_bytes());
        id
    }

    #[test]
    fn neither_ids_that_begin_alike_nor_one_id_of_many_principals_share_a_bucket() {
        let tombstones = Tombstones::new();
        for place in [|number| (id(number), WalletNo(0)), |number: u16| (id(0), WalletNo(number.into()))] {
            let places = (0..1_000).map(place);
            let homes: BTreeSet<_> =
                places.map(|(id, of)| tombstones.index.bucket_of(tombstones.hash(&id, of))).collect();
            // Of 16,384 buckets a thousand places take 970 on average.
            assert!(900 < homes.len(), "{}", homes.len());
        }
    }

    #[test]
    fn those_that_ran_out_leave_in_pieces_and_kill_nothing_meanwhile() {
        let many = 2 * u16::try_from(DROPPED_MAX).expect("thousands") + 1;
        let mut accounts = Accounts::with_capacity(1, many.into(), 1);
        let mut tombstones = Tombstones::new();
        let (came, over) = (TimeMs(1_000), TimeMs(1_000 + Tombstone::LIFE_MS));
        for number in 0..many {
            tombstones.put(&id(number), WalletNo(number.into()), over, &mut accounts);
        }
        assert!(tombstones.waits(&id(0), WalletNo(0), came));
        for left in [DROPPED_MAX + 1, 1, 0, 0] {
            tombstones.drop_run_out(over, &mut accounts);
            assert_eq!((tombstones.ring.len(), tombstones.index.len()), (left, left));
            assert!((0..many).all(|number| !tombstones.waits(&id(number), WalletNo(number.into()), over)));
        }
        assert!((0..many).all(|number| accounts.wallet(WalletNo(number.into())).tombstones == 0));
    }

    #[test]
    fn who_has_as_many_as_it_may_is_refused_or_comes_again_while_old_ones_leave() {
        let (one, other, over) = (WalletNo(0), WalletNo(1), TimeMs(1_000 + Tombstone::LIFE_MS));
        let mut accounts = Accounts::with_capacity(1, 2, 1);
        let mut tombstones = Tombstones::new();
        for number in 0..u16::try_from(DROPPED_MAX).expect("thousands") {
            tombstones.put(&id(number), one, over, &mut accounts);
        }
        for number in 0..PER_PRINCIPAL_MAX {
            tombstones.put(&id(number), other, over, &mut accounts);
        }
        for (now, room) in [
            (TimeMs(1_000), Err(TombstoneRefusal::Quota)),
            (over, Err(TombstoneRefusal::Busy)),
            (over, Ok(())),
        ] {
            assert_eq!(tombstones.room(other, now, &mut accounts), room);
        }
    }
}
