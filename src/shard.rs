//! What a trading command does: the trade core of some markets, without I/O and without a clock.
//!
//! A shard owns the books and the outcome shares of its markets; collateral lies in cells that all
//! shards share. Every command that changes anything becomes one frame in the log, and every
//! answer waits for [`Shard::last_claimed`]. Commands carry resolved numbers: signatures, names and
//! rate limits were judged before.

use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{
    Collateral, MarketNo, OrderId, Outcome, Position, Reject, ShardNo, Shares, SignedOrder, WalletNo, Word,
};
use crate::journal::layout::ActKind;

/// Whether collateral is set aside for a resting buy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Funding {
    /// A wallet's open buys of one market must be covered together; different markets may count on
    /// the same money. When funds fall, what is no longer covered is removed, newest first.
    #[default]
    Market,
    /// Every resting buy has its collateral set aside.
    Reserved,
}

/// What a shard is made with. All memory is taken from these numbers, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// Which shard this is.
    pub shard: ShardNo,
    /// How many there are.
    pub shards: u16,
    /// Whether collateral is set aside for resting buys.
    pub funding: Funding,
    /// The smallest notional of a buy that trades on arrival.
    pub min_notional: Collateral,
    /// The most resting orders.
    pub resting_max: u32,
    /// The most orders and acts whose first result is remembered.
    pub digests_max: u32,
    /// The most (wallet, market) pairs with shares or open orders.
    pub accounts_max: u32,
    /// The most markets of the whole exchange.
    pub markets_max: u32,
    /// Bytes for price ladders.
    pub books_bytes: u64,
    /// A random odd number of this process, so that nobody can aim digests at one bucket.
    pub secret: u64,
}

/// An order on its way to its shard, with the numbers that its names stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceOrder {
    /// What was signed and sent.
    pub order: SignedOrder,
    /// Its digest.
    pub id: OrderId,
    /// Whose order it is.
    pub principal: WalletNo,
    /// The wallet that trades.
    pub wallet: WalletNo,
    /// The market of its token.
    pub market: MarketNo,
    /// Its token's side of the market.
    pub outcome: Outcome,
}

/// Why an act did not happen. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub reject: Reject,
    /// The value that broke it, in the rule's unit; 0 where there is none.
    pub got: u64,
    /// The rule's bound, in the same unit; 0 where there is none.
    pub allowed: u64,
}

impl From<Reject> for Refusal {
    fn from(reject: Reject) -> Self {
        Self { reject, got: 0, allowed: 0 }
    }
}

/// What became of an order that got a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It rests, and nothing of it was filled.
    Live,
    /// Something was filled; the rest may rest.
    Matched,
    /// Nothing was filled and nothing rests.
    Killed(Reject),
}

/// The answer to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Refused; nothing has changed.
    Refused(Refusal),
    /// It got a frame.
    Accepted {
        /// What became of it.
        status: Status,
        /// Millionths that it gave on arrival: collateral without fees for a buy, shares for a sell.
        making: u64,
        /// Millionths that it got on arrival.
        taking: u64,
        /// The frame that names its trade, if it was filled.
        trade: Option<Position>,
        /// True if this is the first result of an earlier post of the same order.
        replayed: bool,
    },
}

/// Why an order was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelRefusal {
    /// No order of this principal with this id rests here, and none is remembered.
    Unknown,
    /// It was here and is filled, cancelled or killed.
    Gone,
    /// The log has no room, not even for cancels.
    Busy,
}

/// Why a cancel did not leave a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TombstoneRefusal {
    /// This principal has as many tombstones as it may have, or the table is full.
    Quota,
    /// The log has no room.
    Busy,
}

/// A split, merge or redeem, asked for by its wallet's owner or queued by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserAct {
    /// Which of the three.
    pub act: ActKind,
    /// Whose wallet it is.
    pub principal: WalletNo,
    /// The wallet.
    pub wallet: WalletNo,
    /// The market.
    pub market: MarketNo,
    /// Pairs in millionths; 0 in a redeem means everything.
    pub amount: Shares,
    /// The digest of the signed request; zero when the operator redeems.
    pub id: OrderId,
    /// The request's salt.
    pub salt: Word,
    /// The request's time in milliseconds.
    pub timestamp_ms: u64,
    /// The signature's bytes; only the first `signature_len` count.
    pub signature: [u8; SIGNATURE_BYTES_MAX],
    /// 65, 317, or 0 when the operator redeems.
    pub signature_len: u16,
}

/// What a split, merge or redeem did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acted {
    /// Collateral paid (split) or received (merge, redeem).
    pub collateral: Collateral,
    /// Shares received (split) or given (merge, redeem) of each outcome.
    pub shares: [Shares; 2],
    /// Its frame.
    pub position: Position,
    /// True if this is the result of an earlier post of the same act.
    pub replayed: bool,
}
