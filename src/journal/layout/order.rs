//! An order that came, with everything it did: one record, so it happened whole or not at all.

use super::acts::RemovalReason;
use super::record;
use crate::domain::{
    ApiKey, Collateral, MarketNo, OrderFields, OrderId, OrderType, Outcome, Position, Price, Reject,
    SelfTrade, Shares, TimeMs, WalletNo,
};
use crate::memory::wire::{Damage, Input, Out, Wire, bytes};

/// The most makers that one order fills. At the limit FAK, GTC and GTD end, FOK is killed.
pub const FILLS_MAX: usize = 4_096;

/// The most makers that one order removes without a fill; the walk stops at the limit like at
/// [`FILLS_MAX`].
pub const REMOVALS_MAX: usize = 4_096;

/// Bytes of one fill in the payload.
pub const FILL_BYTES: usize = 8 + 8 + 8 + 8 + 8 + 8 + 1 + 2;

/// Bytes of one removal in the payload.
pub const REMOVAL_BYTES: usize = 8 + 1;

/// An upper bound of everything else in the payload.
pub const ORDER_HEAD_BYTES_MAX: usize = 800;

const _: () = assert!(
    ORDER_HEAD_BYTES_MAX + FILLS_MAX * FILL_BYTES + REMOVALS_MAX * REMOVAL_BYTES < 320 * 1024 - 64,
    "the largest order fits one frame"
);

/// How two orders met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MatchKind {
    /// Buyer and seller of one token: shares change hands.
    Transfer = 0,
    /// Two buyers, one of each token: a pair is created for exactly 1.
    Mint = 1,
    /// Two sellers, one of each token: a pair is burned for exactly 1.
    Merge = 2,
}

impl MatchKind {
    /// The kind of a stored byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Transfer),
            1 => Some(Self::Mint),
            2 => Some(Self::Merge),
            _ => None,
        }
    }
}
bytes!(MatchKind);

record! {
    /// One maker's part in an order.
    pub struct Fill {
        /// Where the maker was placed.
        pub maker: Position,
        /// Shares that changed hands, or pairs made or burned.
        pub shares: Shares,
        /// What the maker paid (buy) or received (sell), without its fee.
        pub maker_leg: Collateral,
        /// What the taker paid (buy) or received (sell), without its fee.
        pub taker_leg: Collateral,
        /// The maker's fee: on top of a buy, out of a sell's proceeds.
        pub maker_fee: Collateral,
        /// The taker's fee, likewise.
        pub taker_fee: Collateral,
        /// Transfer, mint or merge.
        pub kind: MatchKind,
        /// The maker's price in terms of the maker's own token.
        pub price: Price,
    }
}

record! {
    /// A resting order that this order's walk removed without a fill.
    pub struct Removal {
        /// Where it was placed.
        pub order: Position,
        /// Why it went.
        pub reason: RemovalReason,
    }
}

/// What became of an order on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedResult {
    /// Something rests; it may have been filled in part before.
    Rests,
    /// Nothing rests and something was filled (a FAK's or a stopped order's remainder is gone).
    Filled,
    /// Nothing was filled and nothing rests, for this reason.
    Killed(Reject),
}

impl Wire for PlacedResult {
    fn put(&self, out: &mut impl Out) {
        match self {
            Self::Rests => out.bytes(&[0, 0]),
            Self::Filled => out.bytes(&[1, 0]),
            Self::Killed(reject) => out.bytes(&[2, *reject as u8]),
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        match (u8::take(input)?, u8::take(input)?) {
            (0, 0) => Ok(Self::Rests),
            (1, 0) => Ok(Self::Filled),
            (2, byte) => Reject::from_byte(byte).map(Self::Killed).ok_or(Damage { field: "result", at: 0 }),
            _ => Err(Damage { field: "result", at: 0 }),
        }
    }
}

record! {
    /// An order that got a frame: everything signed, everything decided.
    pub struct OrderPlaced {
        /// When the shard judged it.
        pub time: TimeMs,
        /// Its market.
        pub market: MarketNo,
        /// Its token's side of the market.
        pub outcome: Outcome,
        /// The wallet that trades (`maker` as signed).
        pub wallet: WalletNo,
        /// Whose wallet that is.
        pub principal: WalletNo,
        /// Its digest, which is its id.
        pub id: OrderId,
        /// What was signed.
        pub fields: OrderFields,
        /// The signature, 65 or 317 bytes.
        pub signature: Vec<u8>,
        /// Unix seconds from which it no longer trades; 0 for never.
        pub expiration_s: u64,
        /// GTC, GTD, FOK or FAK.
        pub order_type: OrderType,
        /// It asked not to trade on arrival.
        pub post_only: bool,
        /// Who gives way in a self-trade.
        pub self_trade: SelfTrade,
        /// The API key it came with.
        pub owner: ApiKey,
        /// Its limit in terms of its own token, on the grid.
        pub price: Price,
        /// What became of it.
        pub result: PlacedResult,
        /// Why it did not go on, where it ended with something filled but not all; or its kill.
        pub stopped: Option<Reject>,
        /// Shares that rest; zero unless `result` is `Rests`.
        pub open: Shares,
        /// Collateral set aside for what rests; zero unless funding is `reserved`.
        pub reserved: Collateral,
        /// Its fills, best price first, in time order within a price.
        pub fills: Vec<Fill>,
        /// Makers that its walk removed.
        pub removed: Vec<Removal>,
    }
}

/// The most orders that one replace places: a batch.
pub const REPLACE_PLACED_MAX: usize = 15;

/// The most orders that one replace removes.
pub const REPLACE_REMOVED_MAX: usize = 60;

const _: () = assert!(
    REPLACE_PLACED_MAX * ORDER_HEAD_BYTES_MAX + REPLACE_REMOVED_MAX * 8 < 64 * 1024,
    "a replace is a small frame"
);

record! {
    /// One order that a replace placed.
    pub struct Quote {
        /// The order: it rests, met nobody and removed nobody.
        pub order: OrderPlaced,
        /// The order of this replace whose place in the queue it has: the same but for a size that is
        /// not larger.
        pub takes_place_of: Option<Position>,
    }
}

record! {
    /// Orders left a book and others came to rest in it, whole or not at all. The order that
    /// `placed` lists at `i` has the position of the frame plus `i`: frames begin at multiples of 64,
    /// so no other order has it.
    pub struct OrdersReplaced {
        /// When.
        pub time: TimeMs,
        /// The market of all of them.
        pub market: MarketNo,
        /// Where those that left were placed; at most [`REPLACE_REMOVED_MAX`].
        pub removed: Vec<Position>,
        /// Those that came, at most [`REPLACE_PLACED_MAX`], of one wallet.
        pub placed: Vec<Quote>,
    }
}

impl OrdersReplaced {
    /// The orders that came, each with its position, when the frame lies at `start`.
    pub fn each_placed(&self, start: Position) -> impl Iterator<Item = (Position, &Quote)> {
        (start.0..).map(Position).zip(&self.placed)
    }
}

impl OrderPlaced {
    /// Shares filled on arrival.
    #[must_use]
    pub fn filled_shares(&self) -> Shares {
        self.fills.iter().map(|fill| fill.shares).sum()
    }

    /// Collateral that the order paid or received on arrival, without fees.
    #[must_use]
    pub fn filled_collateral(&self) -> Collateral {
        self.fills.iter().map(|fill| fill.taker_leg).sum()
    }

    /// Fees that the order paid on arrival.
    #[must_use]
    pub fn fees(&self) -> Collateral {
        self.fills.iter().map(|fill| fill.taker_fee).sum()
    }
}
