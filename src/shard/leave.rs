//! Orders that leave their books without a fill: cancels, sweeps, and what both need.
//!
//! Every removal is one frame with one reason (several if a frame is full). A sweep does a bounded piece of work per call
//! and reports whether it is to be called again; so does a cancel of many orders, once it has chosen them.

use super::placements::Placement;
use super::{CancelRefusal, Shard};
use crate::book::orders::Found;
use crate::domain::fee::cost_of_buy;
use crate::domain::{
    ApiKey, Collateral, MarketNo, OrderId, Outcome, Position, ShardNo, Shares, Side, TimeMs, WalletNo,
};
use crate::journal::layout::acts::REMOVED_MAX;
use crate::journal::layout::{OrdersRemoved, RemovalReason, Tombstone};
use crate::journal::{FRAME_BYTES_MAX, Log};
use crate::memory::arena::Slot;
use std::ops::Range;

/// Wallets with fallen cells that one sweep checks: each costs a comparison, seldom more.
const DIRTY_PER_SWEEP: usize = 64;

/// Orders that one frame lets expire, and one sweep.
pub(super) const EXPIRED_PER_FRAME: usize = 256;

/// Frames by which orders expire before one command: 4,096 orders, as a command must end. The sweeps of the next
/// turns go on, and commands are refused as busy until they are through.
pub(super) const EXPIRED_FRAMES_MAX: usize = 16;

const _: () = assert!(EXPIRED_PER_FRAME <= REMOVED_MAX);

/// Chosen orders that leave together: a bound on what others' commands wait for. Whoever has no more has all of them
/// cancelled at once.
pub const LEAVING_PER_PIECE: usize = 1_024;

const _: () = assert!(LEAVING_PER_PIECE <= REMOVED_MAX);

/// Which of a principal's orders are meant: those for which all holds that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderScope {
    /// Of this market only.
    pub market: Option<MarketNo>,
    /// Of this token only.
    pub token: Option<(MarketNo, Outcome)>,
    /// Those only that came with this key.
    pub key: Option<ApiKey>,
    /// Those only that were placed before this position of the log.
    pub before: Option<Position>,
}

impl OrderScope {
    /// All of them.
    pub const ALL: Self = Self { market: None, token: None, key: None, before: None };
}

/// Orders of one principal that are to leave, as they were open at one moment. They leave in pieces, so that other
/// commands come in between; what is placed meanwhile stays.
#[derive(Debug, Default)]
pub struct Leaving {
    ids: Vec<OrderId>,
    /// How many of them had their turn.
    next: usize,
}

impl Leaving {
    /// None, with memory for so many.
    #[must_use]
    pub fn with_capacity(ids: usize) -> Self {
        Self { ids: Vec::with_capacity(ids), next: 0 }
    }

    /// Whether every one of them had its turn.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.next == self.ids.len()
    }

    fn take_piece(&mut self) -> &[OrderId] {
        let from = self.next;
        self.next = self.ids.len().min(from + LEAVING_PER_PIECE);
        &self.ids[from..self.next]
    }
}

impl Shard {
    /// Cancels one order of `principal`.
    pub fn cancel(&mut self, now: TimeMs, principal: WalletNo, id: &OrderId) -> Result<(), CancelRefusal> {
        self.clock(now);
        let orders = self.books.orders();
        let mine = |found: &Found| orders[found.slot()].principal == principal;
        let Some(found) = orders.look_up(id).filter(mine) else {
            let known = self.recall.find(id).is_some_and(|(owner, _)| owner == principal);
            return Err(if known { CancelRefusal::Gone } else { CancelRefusal::Unknown });
        };
        if !self.log.room_for_cancel(self.settings.shards) {
            return Err(CancelRefusal::Busy);
        }
        let positions = [orders[found.slot()].position].into_iter();
        let payload = OrdersRemoved::write(self.time, RemovalReason::Cancelled, positions, &mut self.payload);
        self.last = self.log.append_parts(OrdersRemoved::KIND, &payload).end;
        self.release(found.slot(), Collateral::ZERO);
        self.books.remove_found(found);
        Ok(())
    }

    /// Chooses the open orders of `principal` that are in `scope`, to leave by [`Self::remove_some`].
    pub fn choose_open(&mut self, principal: WalletNo, scope: OrderScope, leaving: &mut Leaving) {
        self.choose_all(principal, scope);
        let (orders, looked_at) = (self.books.orders(), self.slots.len());
        if let Some(key) = scope.key {
            self.slots.retain(|slot| self.placements[*slot].owner == key);
        }
        if let Some(before) = scope.before {
            self.slots.retain(|slot| orders[*slot].position < before);
        }
        self.in_vain += looked_at - self.slots.len();
        leaving.next = 0;
        leaving.ids.clear();
        leaving.ids.extend(self.slots.drain(..).map(|slot| orders[slot].id));
    }

    /// Removes the next of the chosen orders, at most [`LEAVING_PER_PIECE`], by one frame; `left` gets their ids. Those
    /// that were filled or cancelled since they were chosen are passed over. Busy means that the log has no room: nothing
    /// has left, and the same orders are the next.
    pub fn remove_some(
        &mut self,
        now: TimeMs,
        leaving: &mut Leaving,
        reason: RemovalReason,
        left: &mut Vec<OrderId>,
    ) -> Result<(), CancelRefusal> {
        self.clock(now);
        if !leaving.is_over() && !self.log.room_for_cancel(self.settings.shards) {
            return Err(CancelRefusal::Busy);
        }
        let piece = leaving.take_piece();
        self.slots.clear();
        for (index, id) in piece.iter().enumerate() {
            self.prefetch_for_cancels(&piece[index + 1..]);
            // An id is its order's for good, and nobody can have it after its order left.
            if let Some(slot) = self.books.orders().find(id) {
                self.slots.push(slot);
                left.push(*id);
            }
        }
        if !self.slots.is_empty() {
            self.remove_by_one_frame(0..self.slots.len(), reason);
            self.slots.clear();
        }
        Ok(())
    }

    /// How many open orders the last [`Self::choose_open`] looked at because they might be meant, and did not choose.
    #[must_use]
    pub const fn looked_in_vain(&self) -> usize {
        self.in_vain
    }

    /// Leaves a tombstone for an order of `principal` that no shard has seen: if it arrives before the
    /// tombstone runs out, it is killed. False if there is no room for one, in the log or among the tombstones.
    #[must_use]
    pub fn tombstone(&mut self, now: TimeMs, principal: WalletNo, id: &OrderId) -> bool {
        let now = self.clock(now);
        if self.tombstones.waits(id, principal, now) {
            return true;
        }
        let room = self.log.room_for_cancel(self.settings.shards)
            && self.tombstones.room(principal, now, &mut self.accounts);
        if !room {
            return false;
        }
        let until = now.plus_ms(Tombstone::LIFE_MS);
        let record = Tombstone { time: self.time, id: *id, principal, until };
        let payload = record.encode_in(self.payload.as_flattened_mut());
        self.last = self.log.append(Tombstone::KIND, payload).end;
        self.tombstones.put(id, principal, until, &mut self.accounts);
        true
    }

    /// Removes what has expired and what fallen cells no longer cover, a bounded piece a call. True if orders left, or
    /// there is more to do at once.
    pub fn sweep(&mut self, now: TimeMs) -> bool {
        let before = self.last;
        let has_more = self.sweep_piece(now);
        has_more || self.last != before
    }

    fn sweep_piece(&mut self, now: TimeMs) -> bool {
        let now = self.clock(now);
        if !self.log.room_for_cancel(self.settings.shards) {
            return false;
        }
        if self.expiries.expired(now).is_some() {
            self.expire_some(now);
            if self.expiries.expired(now).is_some() {
                // What has expired counts no more when it is asked who is covered.
                return true;
            }
        }
        for _ in 0..DIRTY_PER_SWEEP {
            if !self.log.room_for_cancel(self.settings.shards) {
                return false;
            }
            let Some(wallet) = self.cells.next_dirty(self.settings.shard) else {
                break;
            };
            if !self.cover(wallet) {
                break;
            }
        }
        self.cells.any_dirty(self.settings.shard)
    }

    /// Whether cells fell that orders of this shard count on, and it can look now.
    #[must_use]
    pub fn has_fallen_cells(&self) -> bool {
        self.cells.any_dirty(self.settings.shard) && self.log.room_for_cancel(self.settings.shards)
    }

    /// The other shards with orders that count on cells which fell.
    pub fn others_with_fallen_cells(&self) -> impl Iterator<Item = ShardNo> {
        let others = (0..self.settings.shards).map(ShardNo).filter(|shard| *shard != self.settings.shard);
        others.filter(|shard| self.cells.any_dirty(*shard))
    }

    /// Removes everything that has expired, before an order, a replace or an act is judged: it neither trades nor counts
    /// any more. False if that is too much for one command, or the log has no room for it.
    #[inline]
    pub(super) fn expire(&mut self, now: TimeMs) -> bool {
        self.expiries.expired(now).is_none() || self.expire_all(now)
    }

    #[cold]
    fn expire_all(&mut self, now: TimeMs) -> bool {
        for _ in 0..EXPIRED_FRAMES_MAX {
            if self.expiries.expired(now).is_none() || !self.log.room_for_cancel(self.settings.shards) {
                break;
            }
            self.expire_some(now);
        }
        self.expiries.expired(now).is_none()
    }

    /// Does the same before the moment is read at which an order with a deadline is judged, as it may take a while.
    pub fn let_expire(&mut self, now: TimeMs) {
        let now = self.clock(now);
        self.expire(now);
    }

    /// When the next resting order expires, if one does.
    #[must_use]
    pub fn next_expiry(&self) -> Option<TimeMs> {
        self.expiries.next()
    }

    /// Removes the first to have expired by one frame, for which the log has room.
    fn expire_some(&mut self, now: TimeMs) {
        self.slots.clear();
        while self.slots.len() < EXPIRED_PER_FRAME
            && let Some(slot) = self.expiries.expired(now)
        {
            self.expiries.remove(slot, &mut self.placements);
            self.slots.push(slot);
        }
        self.remove_by_one_frame(0..self.slots.len(), RemovalReason::Expired);
        self.slots.clear();
    }

    /// Asks to be notified when the wallet's cell falls.
    pub(super) fn watch(&mut self, wallet: WalletNo) {
        if !self.accounts.wallet(wallet).watched {
            self.accounts.wallet_mut(wallet).watched = true;
            self.cells.watch(wallet, self.settings.shard);
        }
    }

    /// Removes the newest buys of each market that the wallet's cell no longer covers. False if that
    /// could not be finished, because the cell cannot be judged yet or the log has no room; the
    /// wallet's flag is then raised again.
    fn cover(&mut self, wallet: WalletNo) -> bool {
        let Some(balance) = self.cells.settled(wallet, self.settings.shard) else {
            self.cells.raise(self.settings.shard, wallet);
            return false;
        };
        if balance < self.accounts.wallet(wallet).largest && balance < self.accounts.measure(wallet) {
            self.slots.clear();
            self.choose_uncovered(wallet, balance);
            self.sort_chosen();
            self.slots.reverse();
            let all = self.remove_first(self.slots.len(), RemovalReason::Unfunded) == self.slots.len();
            self.slots.clear();
            self.accounts.measure(wallet);
            if !all {
                self.cells.raise(self.settings.shard, wallet);
                return false;
            }
        }
        if self.accounts.wallet(wallet).largest.is_zero() && self.accounts.wallet(wallet).watched {
            self.accounts.wallet_mut(wallet).watched = false;
            self.cells.unwatch(wallet, self.settings.shard);
        }
        true
    }

    fn choose_uncovered(&mut self, wallet: WalletNo, balance: Collateral) {
        for row in self.accounts.with_orders(wallet) {
            let account = &self.accounts[row];
            let mut buying = account.buying;
            let orders = self.books.orders();
            for slot in self.placements.of_account_newest(account.orders) {
                if buying <= balance {
                    break;
                }
                let order = &orders[slot];
                if order.side == Side::Buy && !self.placements[slot].reserves() {
                    let fee = self.registry.market(order.market).fee;
                    buying -= cost_of_buy(order.price, order.open, &fee);
                    self.slots.push(slot);
                }
            }
        }
    }

    /// Chooses the orders of all wallets of `principal` that are in `scope`.
    fn choose_all(&mut self, principal: WalletNo, scope: OrderScope) {
        self.slots.clear();
        self.in_vain = 0;
        self.choose(principal, scope);
        let registry = std::sync::Arc::clone(&self.registry);
        for wallet in registry.wallets_of(principal) {
            self.choose(wallet, scope);
        }
    }

    /// Chooses the orders of one wallet that are in `scope`.
    fn choose(&mut self, wallet: WalletNo, scope: OrderScope) {
        let of_token = scope.token.map(|(market, _)| market);
        let named = scope.market.or(of_token);
        if of_token.is_some_and(|market| named != Some(market)) {
            return;
        }
        let all = named.is_none().then(|| self.accounts.with_orders(wallet));
        let only = named.and_then(|market| self.accounts.find(wallet, market));
        for row in all.into_iter().flatten().chain(only) {
            let account = &self.accounts[row];
            let (orders, before) = (self.books.orders(), self.slots.len());
            let chosen =
                |slot: &Slot| scope.token.is_none_or(|(_, outcome)| outcome == orders[*slot].outcome);
            self.slots.extend(self.placements.of_account(account.orders).filter(chosen));
            self.in_vain += account.open as usize - (self.slots.len() - before);
        }
    }

    /// Sorts the chosen orders by their placement, whatever lists they came from.
    pub(super) fn sort_chosen(&mut self) {
        let orders = self.books.orders();
        self.slots.sort_unstable_by_key(|slot| orders[*slot].position);
    }

    /// Removes the first `count` of the chosen orders, as many per frame as fit, while the log has
    /// room; returns how many left. The list of the chosen stays as it is.
    pub(super) fn remove_first(&mut self, count: usize, reason: RemovalReason) -> usize {
        let mut left = 0;
        while left < count && self.log.room_for_cancel(self.settings.shards) {
            let end = count.min(left + REMOVED_MAX);
            self.remove_by_one_frame(left..end, reason);
            left = end;
        }
        left
    }

    /// Removes some of the chosen orders, at most [`REMOVED_MAX`], by one frame, for which room was seen. They stay
    /// chosen. Room is not looked at again: others may have claimed meanwhile what is kept free for that.
    fn remove_by_one_frame(&mut self, chosen: Range<usize>, reason: RemovalReason) {
        let orders = self.books.orders();
        let positions = self.slots[chosen.clone()].iter().map(|slot| orders[*slot].position);
        let payload = OrdersRemoved::write(self.time, reason, positions, &mut self.payload);
        self.last = self.log.append_parts(OrdersRemoved::KIND, &payload).end;
        for index in chosen {
            self.unrest(self.slots[index], Collateral::ZERO);
        }
    }

    /// Whether the log has room for the frames that name every chosen order.
    pub(super) fn room_for_chosen(&self) -> bool {
        let frames = 1 + self.slots.len() as u64 / REMOVED_MAX as u64;
        Log::slack(self.settings.shards) + frames * FRAME_BYTES_MAX as u64 <= self.log.room()
    }

    /// Takes an order out of its book and out of every count; collateral that was set aside and is not
    /// `spent` goes back to its cell.
    pub(super) fn unrest(&mut self, slot: Slot, spent: Collateral) {
        self.release(slot, spent);
        self.books.remove(slot);
    }

    /// Takes an order out of every count, as [`Shard::unrest`] does; the caller takes it out of its book.
    fn release(&mut self, slot: Slot, spent: Collateral) {
        let Placement { account, reserved, .. } = self.placements[slot];
        let back = reserved - spent;
        if !back.is_zero() {
            self.cells.credit(self.accounts[account].wallet, back);
        }
        self.uncount(slot);
        self.accounts.settle(account);
    }

    /// Takes an order out of every count, but not out of its book.
    pub(super) fn uncount(&mut self, slot: Slot) {
        self.shrink(slot, self.books.orders()[slot].open);
        self.expiries.remove(slot, &mut self.placements);
        let account = self.placements[slot].account;
        self.placements.leave(&mut self.accounts[account].orders, slot);
        self.accounts.drop_order(account);
        self.accounts.wallet_mut(self.books.orders()[slot].principal).open -= 1;
    }

    /// Counts `shares` of an order as no longer open; the book is changed by the caller.
    #[allow(clippy::inline_always, reason = "half of it is constant for an order that leaves")]
    #[inline(always)]
    pub(super) fn shrink(&mut self, slot: Slot, shares: Shares) {
        let (order, placement) = (&self.books.orders()[slot], &self.placements[slot]);
        let account = &mut self.accounts[placement.account];
        match order.side {
            Side::Buy if placement.reserves() => {}
            Side::Buy => {
                let fee = &self.registry.market(order.market).fee;
                account.buying -= cost_of_buy(order.price, order.open, fee);
                if shares < order.open {
                    account.buying += cost_of_buy(order.price, order.open - shares, fee);
                }
            }
            Side::Sell => account.selling[order.outcome.index()] -= shares,
        }
    }
}
