//! What the commands to come will look at, fetched into the cache while those before them are done.
//!
//! With many orders most of what a command looks at is in no near cache, and would be waited for. So each command is
//! looked at three times before it is its turn, and what one look fetches, the next one reads: two commands later, as
//! one takes no longer than memory does.
//!
//! | commands before it | of an order | of a cancel |
//! |---|---|---|
//! | four | where its digest would be remembered and would rest; its wallet and principal, and where its account is | where the order's digest is |
//! | two | its account | the order, with its links and placement |
//! | none | the maker that it would meet first | its account, and the links of those beside it |
//!
//! Where an order's result goes, and what is forgotten for it, the memory of digests has fetched since the order before.

use super::Shard;
use super::walk::Taker;
use crate::domain::{MarketNo, OrderId, Outcome, Side, WalletNo};
use crate::memory::ahead;
use crate::memory::arena::Slot;
use std::hint::select_unpredictable;

/// A command to come, as far as it tells where its shard will look.
#[derive(Clone, Copy, Debug)]
pub enum Coming<'a> {
    /// An order for `outcome` with this digest.
    Order {
        /// Its digest.
        id: &'a OrderId,
        /// The market of its token; another shard's is passed over.
        market: MarketNo,
        /// Its token's side of the market.
        outcome: Outcome,
        /// Buy or sell of its own token.
        side: Side,
        /// Whose shares and collateral it moves, and whose wallet that is, if that is known.
        owner: Option<(WalletNo, WalletNo)>,
    },
    /// A cancel of the order with this digest.
    Cancel(&'a OrderId),
}

/// How many commands are before a command to come.
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
    /// All, in the order in which a command that comes nearer is looked at.
    pub const ALL: [Self; 3] = [Self::Four, Self::Two, Self::None];

    /// How many they are, none of which has begun.
    #[must_use]
    pub const fn commands(self) -> usize {
        self as usize
    }
}

impl Shard {
    /// Has fetched what the command will look at, as far as it is known with so many before it, and waits for nothing.
    #[inline]
    pub fn fetch_ahead(&self, coming: Coming<'_>, before: Before) {
        match (before, coming) {
            (Before::Four, Coming::Order { id, .. } | Coming::Cancel(id)) => {
                let index = self.books.orders().place_of(id);
                let is_order = matches!(coming, Coming::Order { .. });
                // Which of the two comes is not to be predicted, so this is no branch.
                ahead::fetch_at(select_unpredictable(is_order, self.recall.place_of(id), index));
                ahead::fetch_at(index);
                if let Coming::Order { market, owner: Some((wallet, principal)), .. } = coming {
                    self.cells.fetch_ahead(wallet);
                    self.accounts.fetch_place(wallet, market);
                    self.registry.fetch_wallet(principal);
                }
            }
            (Before::Two, Coming::Order { market, owner, .. }) => {
                if let Some((wallet, _)) = owner {
                    self.accounts.fetch_ahead(wallet, market);
                }
            }
            (Before::Two, Coming::Cancel(id)) => {
                if let Some(slot) = self.books.orders().guess(id) {
                    self.fetch_resting(slot);
                }
            }
            // Makers trade oldest first, so most have long left every cache.
            (Before::None, Coming::Order { market, outcome, side, .. }) => {
                let opposite = match outcome {
                    Outcome::Zero => side.opposite(),
                    Outcome::One => side,
                };
                if let Some(slot) = self.books.first(market, opposite) {
                    self.fetch_resting(slot);
                }
            }
            (Before::None, Coming::Cancel(id)) => {
                if let Some(slot) = self.books.orders().guess(id) {
                    self.books.fetch_beside(slot);
                    self.placements.fetch_beside(slot);
                    self.accounts.fetch_row(self.placements[slot].account);
                }
            }
        }
    }

    /// The same of a list of cancels, called before each with all that are left behind it.
    pub fn fetch_ahead_of_cancels(&self, ids: &[OrderId]) {
        for before in Before::ALL {
            if let Some(id) = ids.get(before.commands()) {
                self.fetch_ahead(Coming::Cancel(id), before);
            }
        }
    }

    /// Has the links fetched of those behind which an order would come to rest, in its level and among its account's.
    #[allow(clippy::inline_always, reason = "a taker is else handed over in memory, see `place`")]
    #[inline(always)]
    pub(super) fn fetch_last(&self, taker: &Taker) {
        self.books.fetch_last(taker.market, taker.face);
        if let Some(account) = taker.account {
            self.placements.fetch_last(self.accounts[account].orders);
        }
    }

    /// Has all that is kept of an order that rests fetched.
    pub(super) fn fetch_resting(&self, slot: Slot) {
        self.books.fetch_ahead(slot);
        self.placements.fetch_ahead(slot);
    }
}
