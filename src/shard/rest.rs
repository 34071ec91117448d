//! How an order comes to rest, and the short way for one that meets nobody.
//!
//! Most orders reach no maker and rest whole. Then there is nothing to walk and nothing to take, and most of the
//! decision is known beforehand. The short way calls the same rules, frame and books as the four stages; inlined
//! here, they are compiled once more for this case.

use super::judge::{Found, Verdict};
use super::placements::Placement;
use super::recall::First;
use super::walk::Taker;
use super::{Funding, Placed, ReadyOrder, Refusal, Shard, Status};
use crate::book::orders::{NEVER, Resting};
use crate::domain::{Collateral, Position, Shares, Side, Tick};
use crate::journal::layout::{Decision, OrderPlaced};
use crate::memory::arena::Slot;

impl Shard {
    /// Whether the short way is open: the order may rest, meets nobody, was not cancelled before it came, and sets
    /// nothing aside.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn comes_to_rest(&self, taker: &Taker, order: &ReadyOrder) -> bool {
        taker.order_type.rests()
            && !self.meets_somebody(taker)
            && !self.tombstones.waits(&order.id, order.principal, self.now)
            && (taker.side == Side::Sell || self.settings.funding == Funding::Market)
    }

    /// Places an order by the short way: it rests whole, or is refused.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn place_to_rest(&mut self, taker: &Taker, order: &ReadyOrder) -> Result<Placed, Refusal> {
        self.prepare_rest(taker);
        let Verdict { open, resting, reserved, .. } = self.judge_found(taker, &Found::nobody(taker))?;
        debug_assert!(
            !open.is_zero(),
            "at a price on the tick, shares of an order are worth a millionth at least"
        );
        let decision = Decision::rests(taker.price, open, reserved);
        let decided = order.received.decide(self.time, decision, &mut self.payload);
        // From here nothing can fail.
        let payload = order.received.payload(&decided, &self.payload);
        let span = self.log.append_parts(OrderPlaced::KIND, &payload);
        self.last = span.end;
        let account = match taker.account {
            Some(account) => account,
            None => self.accounts.open(taker.wallet, taker.market).expect("the room was looked at"),
        };
        let placement = Placement::new(order.owner, account, reserved);
        self.rest(taker.tick, &new_order(taker, order, open, span.start), placement, resting);
        self.recall.remember(self.now, &order.id, order.stamp_ms, order.principal, First::RESTS);
        Ok(Placed::Accepted { status: Status::Live, making: 0, taking: 0, trade: None, replayed: false })
    }

    /// Prepares for an order that may rest, before it is judged: prefetches the links of the orders that it would queue
    /// behind, and for a buy watches the wallet's cell.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn prepare_rest(&mut self, taker: &Taker) {
        self.prefetch_last(taker);
        if taker.side == Side::Buy {
            self.watch(taker.wallet);
        }
    }

    /// Puts an order into its book and counts it.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn rest(&mut self, tick: Tick, order: &Resting, placement: Placement, cost: Collateral) {
        let slot = self.books.rest(tick, order).expect("the room was looked at before the take");
        self.enlist(slot, placement, cost);
    }

    /// Counts an order that has just come to rest; `cost` is what it may cost if it is a buy.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn enlist(&mut self, slot: Slot, placement: Placement, cost: Collateral) {
        self.placements[slot] = placement;
        let account = placement.account;
        self.placements.join(&mut self.accounts[account].orders, slot);
        self.accounts.add_order(account);
        let order = &self.books.orders()[slot];
        self.accounts.wallet_mut(order.principal).open += 1;
        match order.side {
            Side::Buy if placement.reserves() => {}
            Side::Buy => self.accounts.add_buying(account, cost),
            Side::Sell => self.accounts[account].selling[order.outcome.index()] += order.open,
        }
        if order.expires_s < NEVER {
            self.expiries.insert(slot, order, &mut self.placements);
        }
    }
}

/// An order as it comes to rest.
pub(super) fn new_order(taker: &Taker, order: &ReadyOrder, open: Shares, position: Position) -> Resting {
    Resting {
        id: order.id,
        open,
        position,
        expires_s: expires_s(order.expiration_s),
        principal: taker.principal,
        market: taker.market,
        price: taker.price,
        side: taker.side,
        outcome: taker.outcome,
    }
}

/// The second from which an order no longer trades; one that would expire after 2106 never does.
pub(super) fn expires_s(expiration_s: u64) -> u32 {
    if expiration_s == 0 { NEVER } else { u32::try_from(expiration_s).unwrap_or(NEVER) }
}
