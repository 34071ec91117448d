//! Cancels that came before their orders.
//!
//! A tombstone is bound to the principal that cancelled, lives for [`Tombstone::LIFE_MS`] by the machine's
//! clock, and kills the order when it arrives. Followers of the log hold the same tombstones, by the same clock.
//!
//! TOMBSTONE-1: their ends are kept in order. All live equally long, so a new one is the last to end, unless the clock
//! was set back: then it goes before those that were left by the later clock. So whatever is over has the first ends
//! or, if it is further ahead than any can be, the last.
//!
//! Their ids need not be digests: clients write whatever they like into a cancel. So the index goes by a keyed hash of
//! id and principal, or ids with equal beginnings, or one id of many principals, could be aimed at one bucket.

use crate::account::Accounts;
use crate::domain::{OrderId, TimeMs, WalletNo};
use crate::journal::layout::Tombstone;
use crate::memory::table::Index;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

/// Tombstones of one principal at a time.
pub(super) const PER_PRINCIPAL_MAX: u16 = 256;

/// Tombstones of one shard at a time: 84 bytes each.
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

#[derive(Clone, Copy, Debug)]
struct End {
    until: TimeMs,
    /// The place in the rows of what ends.
    number: u32,
}

/// The tombstones of a shard.
#[derive(Debug)]
pub(super) struct Tombstones {
    /// In no order. Their memory is not touched beforehand, because most shards have few.
    rows: Vec<Waiting>,
    /// Places in the rows that are to be used again.
    free: Vec<u32>,
    /// The first to end first (TOMBSTONE-1).
    ends: VecDeque<End>,
    index: Index,
    hasher: RandomState,
}

impl Tombstones {
    pub(super) fn new() -> Self {
        Self {
            rows: Vec::with_capacity(TOMBSTONES_MAX as usize),
            free: Vec::with_capacity(TOMBSTONES_MAX as usize),
            ends: VecDeque::with_capacity(TOMBSTONES_MAX as usize),
            index: Index::with_capacity(TOMBSTONES_MAX),
            hasher: RandomState::new(),
        }
    }

    /// Whether this principal's cancel waits for this order at `now`.
    #[inline]
    pub(super) fn waits(&self, id: &OrderId, principal: WalletNo, now: TimeMs) -> bool {
        // Mostly there are none; then the index, which is in no cache, is not read.
        self.ends.back().is_some_and(|last| now < last.until) && self.is_waiting(id, principal, now)
    }

    #[cold]
    fn is_waiting(&self, id: &OrderId, principal: WalletNo, now: TimeMs) -> bool {
        let same = |number: u32| {
            let waiting = &self.rows[number as usize];
            waiting.id == *id && waiting.principal == principal && !waiting.is_over(now)
        };
        self.index.find(self.hash(id, principal), same).is_some()
    }

    /// Drops tombstones that are over, then says whether [`Tombstones::put`] has room.
    pub(super) fn room(&mut self, principal: WalletNo, now: TimeMs, accounts: &mut Accounts) -> bool {
        self.drop_over(now, accounts);
        let is_full = self.ends.len() == TOMBSTONES_MAX as usize;
        !is_full && accounts.wallet(principal).tombstones < PER_PRINCIPAL_MAX
    }

    /// Adds one; the caller has checked that there is room. After a step of the clock back it moves the ends of those
    /// left since: at most half a mebibyte, for as long as the clock went back.
    pub(super) fn put(&mut self, id: &OrderId, principal: WalletNo, until: TimeMs, accounts: &mut Accounts) {
        let number = self.add_row(Waiting { id: *id, principal, until });
        let indexed = self.index.insert(self.hash(id, principal), number);
        assert!(indexed, "the room was looked at");
        let place = self.ends.partition_point(|end| end.until <= until);
        self.ends.insert(place, End { until, number });
        accounts.wallet_mut(principal).tombstones += 1;
    }

    fn add_row(&mut self, row: Waiting) -> u32 {
        if let Some(number) = self.free.pop() {
            self.rows[number as usize] = row;
            return number;
        }
        self.rows.push(row);
        u32::try_from(self.rows.len() - 1).expect("few rows")
    }

    /// Drops some of those that are over.
    fn drop_over(&mut self, now: TimeMs, accounts: &mut Accounts) {
        for _ in 0..DROPPED_MAX {
            let Some(end) = self.some_over(now).and_then(|place| self.ends.remove(place)) else {
                return;
            };
            let Waiting { id, principal, .. } = self.rows[end.number as usize];
            self.index.remove(self.hash(&id, principal), end.number);
            self.free.push(end.number);
            accounts.wallet_mut(principal).tombstones -= 1;
        }
    }

    /// The place in the order of ends of one that is over; none if no other is (TOMBSTONE-1).
    fn some_over(&self, now: TimeMs) -> Option<usize> {
        let is_over = |end: &End| Tombstone::is_over(end.until, now);
        match (self.ends.front(), self.ends.back()) {
            (Some(first), _) if is_over(first) => Some(0),
            (_, Some(last)) if is_over(last) => Some(self.ends.len() - 1),
            _ => None,
        }
    }

    fn hash(&self, id: &OrderId, principal: WalletNo) -> u64 {
        self.hasher.hash_one((id, principal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
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
        let mut accounts = Accounts::with_capacity(1, many.into(), 1, 1);
        let mut tombstones = Tombstones::new();
        let (came, over) = (TimeMs(1_000), TimeMs(1_000 + Tombstone::LIFE_MS));
        for number in 0..many {
            tombstones.put(&id(number), WalletNo(number.into()), over, &mut accounts);
        }
        assert!(tombstones.waits(&id(0), WalletNo(0), came));
        for left in [DROPPED_MAX + 1, 1, 0, 0] {
            tombstones.drop_over(over, &mut accounts);
            assert_eq!((tombstones.ends.len(), tombstones.index.len()), (left, left));
            assert!((0..many).all(|number| !tombstones.waits(&id(number), WalletNo(number.into()), over)));
        }
        assert!((0..many).all(|number| accounts.wallet(WalletNo(number.into())).tombstones == 0));
    }

    #[test]
    fn who_has_as_many_as_it_may_is_refused_or_comes_again_while_old_ones_leave() {
        let (one, other, over) = (WalletNo(0), WalletNo(1), TimeMs(1_000 + Tombstone::LIFE_MS));
        let mut accounts = Accounts::with_capacity(1, 2, 1, 1);
        let mut tombstones = Tombstones::new();
        for number in 0..u16::try_from(DROPPED_MAX).expect("thousands") {
            tombstones.put(&id(number), one, over, &mut accounts);
        }
        for number in 0..PER_PRINCIPAL_MAX {
            tombstones.put(&id(number), other, over, &mut accounts);
        }
        for (now, room) in [(TimeMs(1_000), false), (over, false), (over, true)] {
            assert_eq!(tombstones.room(other, now, &mut accounts), room);
        }
    }

    #[test]
    fn what_was_left_by_a_clock_set_back_takes_no_room_once_it_is_over() {
        let (ahead, right) = (WalletNo(0), WalletNo(1));
        let mut accounts = Accounts::with_capacity(1, 2, 1, 1);
        let mut tombstones = Tombstones::new();
        for (principal, until) in [(ahead, TimeMs(15_000)), (right, TimeMs(10_000))] {
            for number in 0..PER_PRINCIPAL_MAX {
                tombstones.put(&id(number), principal, until, &mut accounts);
            }
        }
        for (now, room) in [(TimeMs(9_999), false), (TimeMs(10_000), true)] {
            assert_eq!(tombstones.room(right, now, &mut accounts), room, "{now:?}");
        }
        assert!(tombstones.waits(&id(0), ahead, TimeMs(14_999)));
    }

    proptest! {
        /// The clock goes on, stands still and steps back, by less than a tombstone lives and by more than any waits.
        #[test]
        fn whatever_the_clock_does_they_agree_with_a_plain_list(
            steps in proptest::collection::vec((0_u16..6, 0_u32..3, -25_000_i64..12_000), 1..120),
        ) {
            let mut accounts = Accounts::with_capacity(1, 3, 1, 1);
            let mut tombstones = Tombstones::new();
            let mut plain: Vec<(u16, WalletNo, TimeMs)> = Vec::new();
            let mut now = TimeMs(1_000_000);
            for (number, principal, step_ms) in steps {
                now = TimeMs(now.0.saturating_add_signed(step_ms));
                for id_number in 0..6 {
                    for wallet in (0..3).map(WalletNo) {
                        let same = |row: &&(u16, WalletNo, TimeMs)| (row.0, row.1) == (id_number, wallet);
                        let waits = plain.iter().filter(same).any(|row| !Tombstone::is_over(row.2, now));
                        prop_assert_eq!(tombstones.waits(&id(id_number), wallet, now), waits);
                    }
                }
                let principal = WalletNo(principal);
                if !tombstones.waits(&id(number), principal, now) {
                    let until = now.plus_ms(Tombstone::LIFE_MS);
                    prop_assert!(tombstones.room(principal, now, &mut accounts));
                    tombstones.put(&id(number), principal, until, &mut accounts);
                    plain.retain(|row| !Tombstone::is_over(row.2, now));
                    plain.push((number, principal, until));
                }
                prop_assert_eq!((tombstones.ends.len(), tombstones.index.len()), (plain.len(), plain.len()));
                prop_assert!(tombstones.ends.iter().map(|end| end.until).is_sorted(), "TOMBSTONE-1");
            }
        }
    }
}
