//! Prefetching for the commands to come, while those before them are done.
//!
//! With many orders, most of what a command reads is in no near cache. So each command is prefetched for in three
//! steps before its turn, and each step reads what the one before it fetched. Steps are two commands apart, as a
//! single command takes no longer than a memory access.
//!
//! | commands before it | for an order | for a cancel |
//! |---|---|---|
//! | four | its digest's index buckets, remembered and resting; its wallet and principal; its account's bucket | the digest's index bucket |
//! | two | its account | the order, with its links and placement |
//! | none | the maker that it would meet first | its account, and the links of its neighbours |
//!
//! The memory of digests prefetches on its own, orders ahead, where a result will go and what is forgotten for it.

use super::Shard;
use super::walk::Taker;
use crate::domain::{MarketNo, OrderId, Outcome, Side, WalletNo};
use crate::memory::ahead;
use crate::memory::arena::Slot;
use std::hint::select_unpredictable;

/// The part of a command to come that tells what its shard will read. A struct and no enum, so that each step loads
/// only the fields that it uses.
#[derive(Clone, Copy, Debug)]
pub struct Coming<'a> {
    id: &'a OrderId,
    is_order: bool,
    market: MarketNo,
    outcome: Outcome,
    side: Side,
    owner: Option<(WalletNo, WalletNo)>,
}

impl<'a> Coming<'a> {
    /// An order with this digest to buy or sell a market's outcome; a market of another shard does no harm. `owner` is
    /// the wallet that trades and its principal, if they are known.
    #[must_use]
    pub const fn order(
        id: &'a OrderId,
        (market, outcome): (MarketNo, Outcome),
        side: Side,
        owner: Option<(WalletNo, WalletNo)>,
    ) -> Self {
        Self { id, is_order: true, market, outcome, side, owner }
    }

    /// A cancel of the order with this digest.
    #[must_use]
    pub const fn cancel(id: &'a OrderId) -> Self {
        let (market, outcome, side, owner) = (MarketNo(0), Outcome::Zero, Side::Buy, None);
        Self { id, is_order: false, market, outcome, side, owner }
    }
}

/// How many commands come before one that is prefetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It is the next one.
    None = 0,
    /// Two.
    Two = 2,
    /// Four.
    Four = 4,
}

impl Before {
    /// All, in the order in which they apply to a command as its turn comes nearer.
    pub const ALL: [Self; 3] = [Self::Four, Self::Two, Self::None];

    /// The number of commands, none of which has begun.
    #[must_use]
    pub const fn commands(self) -> usize {
        self as usize
    }
}

impl Shard {
    /// Prefetches what the command will read, as far as that is known with this many commands before it.
    #[inline]
    pub fn prefetch(&self, coming: Coming<'_>, before: Before) {
        let Coming { id, is_order, market, outcome, side, owner } = coming;
        match (before, is_order) {
            (Before::Four, _) => {
                let index = self.books.orders().bucket_of(id);
                // Whether an order or a cancel comes cannot be predicted, so this is no branch.
                ahead::prefetch_at(select_unpredictable(is_order, self.recall.bucket_of(id), index));
                ahead::prefetch_at(index);
                if let Some((wallet, principal)) = owner {
                    self.cells.prefetch(wallet);
                    self.accounts.prefetch_bucket(wallet, market);
                    self.registry.prefetch_wallet(principal);
                }
            }
            (Before::Two, true) => {
                if let Some((wallet, _)) = owner {
                    self.accounts.prefetch(wallet, market);
                }
            }
            (Before::Two, false) => {
                if let Some(slot) = self.books.orders().guess(id) {
                    self.prefetch_resting(slot);
                }
            }
            // Makers trade oldest first, so most have long left every cache.
            (Before::None, true) => {
                let opposite = match outcome {
                    Outcome::Zero => side.opposite(),
                    Outcome::One => side,
                };
                if let Some(slot) = self.books.first(market, opposite) {
                    self.prefetch_resting(slot);
                }
            }
            (Before::None, false) => {
                if let Some(slot) = self.books.orders().guess(id) {
                    self.books.prefetch_neighbours(slot);
                    self.placements.prefetch_neighbours(slot);
                    self.accounts.prefetch_row(self.placements[slot].account);
                }
            }
        }
    }

    /// Prefetches for a list of cancels. Call it before each cancel, with the ids that follow it.
    pub fn prefetch_for_cancels(&self, ids: &[OrderId]) {
        for before in Before::ALL {
            if let Some(id) = ids.get(before.commands()) {
                self.prefetch(Coming::cancel(id), before);
            }
        }
    }

    /// Prefetches the links of the orders that this one would queue behind, in its level and in its account's list.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn prefetch_last(&self, taker: &Taker) {
        self.books.prefetch_last(taker.market, taker.face);
        if let Some(account) = taker.account {
            self.placements.prefetch_last(self.accounts[account].orders);
        }
    }

    /// Prefetches everything that is kept of a resting order.
    pub(super) fn prefetch_resting(&self, slot: Slot) {
        self.books.prefetch(slot);
        self.placements.prefetch(slot);
    }
}
