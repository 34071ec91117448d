//! An order that arrived, with everything it did: one record, so it happened whole or not at all.
//!
//! Its payload has three parts, written in two places:
//!
//! | bytes | part | written by |
//! |------:|------|------------|
//! |     8 | the time | the shard |
//! |   228 | what was received ([`Received`]); at most 108 more signed, 252 more signature | whoever checked it |
//! |    29 | what was decided ([`Decision`]); 1 more with a reason, 51 per fill, 9 per removal | the shard |

use super::acts::RemovalReason;
use super::record;
use super::signed::SIGNED_BYTES_MAX;
use crate::domain::byte::byte_enum;
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{
    ApiKey, Collateral, MarketNo, OrderFields, OrderId, OrderType, Outcome, Position, Price, Reject,
    SelfTrade, Shares, SignedOrder, TimeMs, WalletNo,
};
use crate::journal::PAYLOAD_BYTES_MAX;
use crate::journal::checksum::{self, Stretch};
use crate::journal::log::Parts;
use crate::memory::wire::{Damage, Input, Out, Room, Wire, Words, bytes, put_count};
use std::iter::{Empty, empty};

/// The most makers that one order fills. At the limit FAK, GTC and GTD end, FOK is killed.
pub const FILLS_MAX: usize = 4_096;

/// The most makers that one order removes without a fill; the walk stops at this limit as at [`FILLS_MAX`].
pub const REMOVALS_MAX: usize = 4_096;

/// Bytes of one fill in the payload.
pub const FILL_BYTES: usize = 8 + 8 + 8 + 8 + 8 + 8 + 1 + 2;

/// Bytes of one removal in the payload.
pub const REMOVAL_BYTES: usize = 8 + 1;

/// An upper bound of the rest of the payload.
pub const ORDER_HEAD_BYTES_MAX: usize = 800;

const _: () = assert!(
    ORDER_HEAD_BYTES_MAX + FILLS_MAX * FILL_BYTES + REMOVALS_MAX * REMOVAL_BYTES <= PAYLOAD_BYTES_MAX,
    "the largest order fits one frame"
);

byte_enum! {
    /// How two orders met.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MatchKind {
        /// Buyer and seller of one token: shares change hands.
        Transfer = 0,
        /// Two buyers, one of each token: a pair is created for exactly 1.
        Mint = 1,
        /// Two sellers, one of each token: a pair is burned for exactly 1.
        Merge = 2,
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
        /// The taker's fee: on top of a buy, out of a sell's proceeds.
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
        /// Why it was removed.
        pub reason: RemovalReason,
    }
}

/// What became of an order on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedResult {
    /// Something rests; a part may have been filled before.
    Rests,
    /// Nothing rests and something was filled; a FAK's or a stopped order's remainder is dropped.
    Filled,
    /// Nothing was filled and nothing rests, for this reason.
    Killed(Reject),
}

impl PlacedResult {
    const fn bytes(self) -> [u8; 2] {
        match self {
            Self::Rests => [0, 0],
            Self::Filled => [1, 0],
            Self::Killed(reject) => [2, reject as u8],
        }
    }
}

impl Wire for PlacedResult {
    fn put(&self, out: &mut impl Out) {
        out.bytes(&self.bytes());
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
        /// The principal of that wallet.
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
        /// Which order gives way in a self-trade.
        pub self_trade: SelfTrade,
        /// The API key it came with.
        pub owner: ApiKey,
        /// Its limit in terms of its own token, on the grid.
        pub price: Price,
        /// What became of it.
        pub result: PlacedResult,
        /// Why it went no further, if only a part was filled, or why it was killed.
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

/// What was decided of an order: the end of its payload.
#[derive(Clone, Copy, Debug)]
pub struct Decision<Fills, Removals> {
    /// See [`OrderPlaced::price`].
    pub price: Price,
    /// See [`OrderPlaced::result`].
    pub result: PlacedResult,
    /// See [`OrderPlaced::stopped`].
    pub stopped: Option<Reject>,
    /// See [`OrderPlaced::open`].
    pub open: Shares,
    /// See [`OrderPlaced::reserved`].
    pub reserved: Collateral,
    /// See [`OrderPlaced::fills`].
    pub fills: Fills,
    /// See [`OrderPlaced::removed`].
    pub removed: Removals,
}

impl Decision<Empty<Fill>, Empty<Removal>> {
    /// The decision that an order rests as it came.
    #[must_use]
    pub const fn rests(price: Price, open: Shares, reserved: Collateral) -> Self {
        let (fills, removed) = (empty(), empty());
        Self { price, result: PlacedResult::Rests, stopped: None, open, reserved, fills, removed }
    }
}

impl<Fills, Removals> Decision<Fills, Removals>
where
    Fills: ExactSizeIterator<Item = Fill>,
    Removals: ExactSizeIterator<Item = Removal>,
{
    /// Appends it to `out`.
    pub fn put(self, out: &mut impl Out) {
        // Price, result and reason in one piece, as each piece has to be shifted into place.
        let result = u16::from_le_bytes(self.result.bytes());
        let head = u64::from(self.price.ten_thousandths()) | u64::from(result) << 16;
        match self.stopped {
            None => out.low_bytes(head, 5),
            Some(reject) => out.low_bytes(head | 1 << 32 | (reject as u64) << 40, 6),
        }
        self.open.put(out);
        self.reserved.put(out);
        if self.fills.len() == 0 && self.removed.len() == 0 {
            // Both counts in one piece, for the same reason.
            return out.low_bytes(0, 8);
        }
        put_count(self.fills.len(), out);
        self.fills.for_each(|fill| fill.put(out));
        put_count(self.removed.len(), out);
        self.removed.for_each(|removal| removal.put(out));
    }
}

/// The most bytes of what was received: numbers and digest, the signed fields, the signature, what is not signed.
const RECEIVED_BYTES_MAX: usize = (4 + 1 + 4 + 4 + 32) + SIGNED_BYTES_MAX + (4 + SIGNATURE_BYTES_MAX) + 27;

/// Words for that many bytes, and for eight more.
const RECEIVED_WORDS: usize = RECEIVED_BYTES_MAX.div_ceil(8) + 1;

/// What the payload says between the time and the decision, `market` to `owner`, as bytes: written once, where the
/// signature is checked, and carried into the log unchanged. The stretch is the checksum of its whole words.
#[derive(Clone, Copy)]
pub struct Received {
    words: [[u8; 8]; RECEIVED_WORDS],
    bytes: u32,
    stretch: Stretch,
}

impl Received {
    /// Nothing yet.
    pub const NOTHING: Self = Self { words: [[0; 8]; RECEIVED_WORDS], bytes: 0, stretch: Stretch::NOTHING };

    /// Writes down what was received, with registry numbers for its names.
    pub fn write(
        &mut self,
        order: &SignedOrder,
        id: &OrderId,
        (wallet, principal): (WalletNo, WalletNo),
        (market, outcome): (MarketNo, Outcome),
    ) {
        let room = &mut Room::new(self.words.as_flattened_mut());
        market.put(room);
        outcome.put(room);
        wallet.put(room);
        principal.put(room);
        id.put(room);
        order.fields.put(room);
        put_count(order.signature().len(), room);
        room.bytes(order.signature());
        order.expiration_s.put(room);
        order.order_type.put(room);
        order.post_only.put(room);
        order.self_trade.put(room);
        order.owner.put(room);
        let bytes = RECEIVED_WORDS * 8 - room.left();
        // Zeros fill the rest of the last word.
        room.bytes(&[0; 8]);
        self.stretch = Stretch::of(&self.words[..bytes / 8]);
        self.bytes = u32::try_from(bytes).expect("a few hundred");
    }

    /// All of it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.words.as_flattened()[..self.bytes as usize]
    }

    /// Writes the end of the payload into `room`, which has room for any decision. The order was judged at `time`.
    pub fn decide(
        &self,
        time: TimeMs,
        decision: Decision<impl ExactSizeIterator<Item = Fill>, impl ExactSizeIterator<Item = Removal>>,
        room: &mut [[u8; 8]],
    ) -> Ending {
        let whole = self.whole().len();
        let mut end = Words::after(room, u64::from_le_bytes(self.words[whole]), self.bytes % 8);
        decision.put(&mut end);
        let (words, bytes) = end.finish();
        let checksum = checksum::sum_around(time.0, &self.stretch, words, bytes);
        Ending { bytes: 8 + 8 * whole + bytes, words: words.len(), checksum }
    }

    /// The payload whose end [`Received::decide`] wrote into `room`.
    #[must_use]
    pub fn payload<'a>(&'a self, time: TimeMs, ending: Ending, room: &'a [[u8; 8]]) -> Parts<'a> {
        let Ending { bytes, words, checksum } = ending;
        Parts { first: time.0, middle: self.whole(), last: &room[..words], bytes, checksum }
    }

    /// Its whole words.
    fn whole(&self) -> &[[u8; 8]] {
        &self.words[..self.bytes as usize / 8]
    }
}

/// Describes a payload whose end is written.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// The length of the payload.
    pub bytes: usize,
    words: usize,
    checksum: u32,
}

impl std::fmt::Debug for Received {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Received({} bytes)", self.bytes)
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
        /// The order: it rests, without a fill or a removal.
        pub order: OrderPlaced,
        /// The removed order whose place in the queue this one takes. Both have the same wallet, token, side and price,
        /// and this one is not larger.
        pub takes_place_of: Option<Position>,
    }
}

record! {
    /// Orders left a book and others came to rest in it, all of them or none. `placed[i]` has the position of the frame
    /// plus `i`: frames begin at multiples of 64, so no other order has that position.
    pub struct OrdersReplaced {
        /// When.
        pub time: TimeMs,
        /// The market of all of them.
        pub market: MarketNo,
        /// Where the orders that left were placed; at most [`REPLACE_REMOVED_MAX`].
        pub removed: Vec<Position>,
        /// The orders that came, at most [`REPLACE_PLACED_MAX`], of one wallet.
        pub placed: Vec<Quote>,
    }
}

impl OrdersReplaced {
    /// The orders that came, each with its position, for a frame at `start`.
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
