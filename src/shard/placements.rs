//! What is kept of a resting order outside its book: its key, its account, its expiry.
//!
//! | bytes | placement |
//! |------:|-----------|
//! |    16 | the key it came with |
//! |    16 | collateral set aside, row of its account, place in the heap of expiries |
//!
//! Placements, and the links of each account's orders, are indexed by the slots that the book gives out. With its
//! line, its links in its level and two places of the index, an order takes 128 bytes.

use super::expiries::NOWHERE;
use crate::book::orders::Orders;
use crate::domain::{ApiKey, Collateral};
use crate::memory::ahead;
use crate::memory::arena::{Ends, Slot};
use crate::memory::links::Links;
use crate::memory::pages::filled;

/// What is kept of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(super) struct Placement {
    /// The API key it came with.
    pub(super) owner: ApiKey,
    /// Collateral still set aside for it. Zero for every sell; for a buy, always zero or never, see
    /// [`Placement::reserves`].
    pub(super) reserved: Collateral,
    /// The row of (wallet, market).
    pub(super) account: Slot,
    /// Its place in the heap of expiries, or [`NOWHERE`].
    pub(super) expiry_place: u32,
}

const _: () = assert!(size_of::<Placement>() == 32, "a placement is half a cache line");
const _: () = assert!(
    Orders::BYTES + size_of::<Placement>() + 2 * Links::BYTES == 128,
    "what README says that an order takes"
);

impl Placement {
    /// An order of `account` that is not in the heap of expiries.
    pub(super) const fn new(owner: ApiKey, account: Slot, reserved: Collateral) -> Self {
        Self { owner, reserved, account, expiry_place: NOWHERE }
    }

    /// Whether collateral was set aside: a partial fill leaves what the rest may cost, which is never zero.
    pub(super) fn reserves(&self) -> bool {
        !self.reserved.is_zero()
    }
}

/// The placements of all orders of a shard.
#[derive(Debug)]
pub(super) struct Placements {
    placements: Vec<Placement>,
    /// Each account's orders, in the order of their placement.
    by_account: Links,
}

impl Placements {
    pub(super) fn with_capacity(resting_max: u32) -> Self {
        let none = Placement::new(ApiKey::ZERO, Slot::NONE, Collateral::ZERO);
        Self { placements: filled(resting_max as usize, none), by_account: Links::with_capacity(resting_max) }
    }

    /// Prefetches an order's placement and its links in its account's list.
    pub(super) fn prefetch(&self, slot: Slot) {
        ahead::prefetch_at(self.placements.as_ptr().wrapping_add(slot.index()));
        self.by_account.prefetch(slot);
    }

    /// Prefetches the links of its neighbours in its account's list. It reads its own, so fetch those earlier.
    pub(super) fn prefetch_neighbours(&self, slot: Slot) {
        self.by_account.prefetch_neighbours(slot);
    }

    /// Prefetches the links of an account's newest order.
    pub(super) fn prefetch_last(&self, list: Ends) {
        self.by_account.prefetch(list.last);
    }

    /// The orders of an account, oldest first.
    pub(super) fn of_account(&self, list: Ends) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(list.first.some(), |slot| self.by_account.next(*slot))
    }

    /// The orders of an account, newest first.
    pub(super) fn of_account_newest(&self, list: Ends) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(list.last.some(), |slot| self.by_account.previous(*slot))
    }

    /// Puts an order at the end of its account's list.
    pub(super) fn join(&mut self, list: &mut Ends, slot: Slot) {
        *list = self.by_account.push(*list, slot);
    }

    /// Takes an order out of its account's list.
    pub(super) fn leave(&mut self, list: &mut Ends, slot: Slot) {
        if !self.by_account.remove_between(slot) {
            *list = self.by_account.remove(*list, slot);
        }
    }
}

impl std::ops::Index<Slot> for Placements {
    type Output = Placement;

    fn index(&self, slot: Slot) -> &Placement {
        &self.placements[slot.index()]
    }
}

impl std::ops::IndexMut<Slot> for Placements {
    fn index_mut(&mut self, slot: Slot) -> &mut Placement {
        &mut self.placements[slot.index()]
    }
}
