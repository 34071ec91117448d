//! An order that is ready for its shard: the fields it is judged by, and the part of its frame that is known.
//!
//! The loop of its connection makes it ready once the signature is checked. The shard reads a few words of it and
//! copies the rest into the log.

use super::PlaceOrder;
use super::ahead::Coming;
use crate::domain::order::Ratio;
use crate::domain::{
    ApiKey, Collateral, MarketNo, OrderId, OrderType, Outcome, SelfTrade, Shares, Side, SignedOrder, WalletNo,
};
use crate::journal::layout::Received;

/// What a shard is asked to place. A plain value, so that it crosses rings without a pointer.
#[derive(Clone, Copy, Debug)]
pub struct ReadyOrder {
    pub(super) id: OrderId,
    pub(super) signed: Ratio,
    /// The client's own stamp.
    pub(super) stamp_ms: u64,
    pub(super) expiration_s: u64,
    pub(super) deadline_ms: u64,
    pub(super) owner: ApiKey,
    pub(super) principal: WalletNo,
    pub(super) wallet: WalletNo,
    pub(super) market: MarketNo,
    pub(super) outcome: Outcome,
    pub(super) side: Side,
    pub(super) order_type: OrderType,
    pub(super) post_only: bool,
    pub(super) self_trade: SelfTrade,
    /// The order as its frame holds it: these fields, the signature, and the signed fields that no rule reads.
    pub(super) received: Received,
}

impl PlaceOrder {
    /// The order as its shard takes it.
    #[must_use]
    pub fn ready(&self) -> ReadyOrder {
        let mut ready = ReadyOrder::BLANK;
        self.write_to(&mut ready);
        ready
    }

    /// Writes the order, as its shard takes it, over `ready`.
    pub fn write_to(&self, ready: &mut ReadyOrder) {
        let Self { order, id, principal, wallet, market, outcome } = self;
        ready.write(order, id, (*wallet, *principal), (*market, *outcome));
    }
}

impl ReadyOrder {
    /// No order: a place into which orders are written one after another.
    pub const BLANK: Self = Self {
        id: OrderId::ZERO,
        signed: Ratio { collateral: Collateral::ZERO, shares: Shares::ZERO },
        stamp_ms: 0,
        expiration_s: 0,
        deadline_ms: 0,
        owner: ApiKey::ZERO,
        principal: WalletNo(0),
        wallet: WalletNo(0),
        market: MarketNo(0),
        outcome: Outcome::Zero,
        side: Side::Buy,
        order_type: OrderType::Gtc,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
        received: Received::NOTHING,
    };

    /// Overwrites it with an order whose signature was checked: the wallet that trades comes with its principal,
    /// the token's market with its outcome.
    pub fn write(
        &mut self,
        order: &SignedOrder,
        id: &OrderId,
        (wallet, principal): (WalletNo, WalletNo),
        (market, outcome): (MarketNo, Outcome),
    ) {
        self.id = *id;
        self.signed = order.fields.signed();
        self.stamp_ms = order.fields.timestamp_ms;
        self.expiration_s = order.expiration_s;
        self.deadline_ms = order.deadline_ms;
        self.owner = order.owner;
        (self.wallet, self.principal) = (wallet, principal);
        (self.market, self.outcome) = (market, outcome);
        self.side = order.fields.side;
        self.order_type = order.order_type;
        self.post_only = order.post_only;
        self.self_trade = order.self_trade;
        self.received.write(order, id, (wallet, principal), (market, outcome));
    }

    /// The order as [`super::Shard::prefetch`] takes it.
    #[must_use]
    pub const fn coming(&self) -> Coming<'_> {
        let &Self { ref id, market, outcome, side, wallet, principal, .. } = self;
        Coming::order(id, (market, outcome), side, Some((wallet, principal)))
    }

    /// Its digest.
    #[must_use]
    pub const fn id(&self) -> &OrderId {
        &self.id
    }

    /// The market of its token.
    #[must_use]
    pub const fn market(&self) -> MarketNo {
        self.market
    }

    /// The order's owner.
    #[must_use]
    pub const fn principal(&self) -> WalletNo {
        self.principal
    }

    /// Whether its client set a deadline, after which it is refused.
    #[must_use]
    pub const fn has_deadline(&self) -> bool {
        self.deadline_ms != 0
    }
}
