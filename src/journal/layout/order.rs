//! An order that arrived, with everything it did: one record, so it happened whole or not at all.
//!
//! Its payload has four parts, written in two places:
//!
//! | bytes | part | written by |
//! |------:|------|------------|
//! |    32 | the head: when, and what was decided ([`Decision`]) | the shard |
//! | 256 mostly, at most 640 | what was received ([`Received`]), zeros to the end of its last line | who checked it |
//! |    56 | for each fill | the shard |
//! |    16 | for each removal | the shard |
//!
//! With the frame's header the head fills a line of 64 bytes, so what was received begins on one and is copied line by
//! line. The words of the head:
//!
//! | bytes | what |
//! |------:|------|
//! |     8 | when the shard judged it |
//! |     2 | its limit |
//! |     1 | 0 rests, 1 filled, else killed: the reason and two |
//! |     1 | 0, or why it went no further: the reason and one |
//! |     2 | how many fills |
//! |     2 | how many removals |
//! |     8 | shares that rest |
//! |     8 | collateral set aside for them |

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
use crate::journal::checksum::{self, STRETCH_LINES_MAX, Stretch};
use crate::journal::frame::{HEAD_WORDS, LINE_BYTES, Line};
use crate::journal::log::Parts;
use crate::memory::wire::{Damage, Input, Out, Room, Wire, put_count};
use std::iter::{Empty, empty};

/// The most makers that one order fills. At the limit FAK, GTC and GTD end, FOK is killed. The trade is one message to
/// its taker, and so it stays below the MiB that clients take of one, unless labels of outcomes are full of quotes.
pub const FILLS_MAX: usize = 2_048;

/// The most makers that one order removes; the walk stops at this limit as at [`FILLS_MAX`].
pub const REMOVALS_MAX: usize = 4_096;

const FILL_WORDS: usize = 7;
const REMOVAL_WORDS: usize = 2;

/// Bytes of one fill in the payload.
pub const FILL_BYTES: usize = 8 * FILL_WORDS;

/// Bytes of one removal in the payload.
pub const REMOVAL_BYTES: usize = 8 * REMOVAL_WORDS;

/// The most bytes of the rest of the payload.
pub(super) const ORDER_HEAD_BYTES_MAX: usize = 8 * HEAD_WORDS + LINE_BYTES * RECEIVED_LINES_MAX;

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

/// One maker's part in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Fill {
    /// Its fields in the order of their declaration. The last word has the kind in byte 0, the price in bytes 2 and 3,
    /// and zeros.
    const fn words(&self) -> [u64; FILL_WORDS] {
        let &Self { maker, shares, maker_leg, taker_leg, maker_fee, taker_fee, kind, price } = self;
        let last = kind as u64 | (price.ten_thousandths() as u64) << 16;
        [maker.0, shares.0, maker_leg.0, taker_leg.0, maker_fee.0, taker_fee.0, last]
    }

    fn of(
        [maker, shares, maker_leg, taker_leg, maker_fee, taker_fee, last]: [u64; FILL_WORDS],
    ) -> Option<Self> {
        let [kind, 0, low, high, 0, 0, 0, 0] = last.to_le_bytes() else { return None };
        Some(Self {
            maker: Position(maker),
            shares: Shares(shares),
            maker_leg: Collateral(maker_leg),
            taker_leg: Collateral(taker_leg),
            maker_fee: Collateral(maker_fee),
            taker_fee: Collateral(taker_fee),
            kind: MatchKind::from_byte(kind)?,
            price: Price::new(u16::from_le_bytes([low, high]))?,
        })
    }
}

/// A resting order that this order's walk removed: without a fill, or because its fill left dust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Where it was placed.
    pub order: Position,
    /// Why it was removed.
    pub reason: RemovalReason,
}

impl Removal {
    /// Its fields, a word each.
    const fn words(&self) -> [u64; REMOVAL_WORDS] {
        [self.order.0, self.reason as u64]
    }

    fn of([order, reason]: [u64; REMOVAL_WORDS]) -> Option<Self> {
        let reason = RemovalReason::from_byte(u8::try_from(reason).ok()?)?;
        Some(Self { order: Position(order), reason })
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
    const fn byte(self) -> u8 {
        match self {
            Self::Rests => 0,
            Self::Filled => 1,
            Self::Killed(reject) => 2 + reject as u8,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Rests),
            1 => Some(Self::Filled),
            _ => Reject::from_byte(byte - 2).map(Self::Killed),
        }
    }
}

/// An order that got a frame: everything signed, everything decided.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Makers that its walk removed; they leave after the fills.
    pub removed: Vec<Removal>,
}

/// What was decided of an order.
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
    /// The head of the payload of an order that was judged at `time`.
    pub fn head(&self, time: TimeMs) -> [u64; HEAD_WORDS] {
        let count = |count| u64::from(u16::try_from(count).expect("at most 4,096"));
        let stopped = self.stopped.map_or(0, |reject| 1 + reject as u8);
        let what = u64::from(self.price.ten_thousandths())
            | u64::from(self.result.byte()) << 16
            | u64::from(stopped) << 24
            | count(self.fills.len()) << 32
            | count(self.removed.len()) << 48;
        [time.0, what, self.open.0, self.reserved.0]
    }

    /// Writes fills and removals into `room`, which has room for them, and returns how many words they take.
    fn put_tail(self, room: &mut [[u8; 8]]) -> usize {
        let words = FILL_WORDS * self.fills.len() + REMOVAL_WORDS * self.removed.len();
        let (fills, removed) = room[..words].split_at_mut(FILL_WORDS * self.fills.len());
        for (place, fill) in fills.as_chunks_mut().0.iter_mut().zip(self.fills) {
            *place = fill.words().map(u64::to_le_bytes);
        }
        for (place, removal) in removed.as_chunks_mut().0.iter_mut().zip(self.removed) {
            *place = removal.words().map(u64::to_le_bytes);
        }
        words
    }
}

/// The most bytes of what was received: numbers and digest, the signed fields, the signature, what is not signed.
const RECEIVED_BYTES_MAX: usize = (4 + 1 + 4 + 4 + 32) + SIGNED_BYTES_MAX + (4 + SIGNATURE_BYTES_MAX) + 27;

/// Lines for that many bytes.
const RECEIVED_LINES_MAX: usize = RECEIVED_BYTES_MAX.div_ceil(LINE_BYTES);

const _: () = assert!(RECEIVED_LINES_MAX <= STRETCH_LINES_MAX, "it is one stretch");

/// What was received of an order, `market` to `owner`, as bytes and with zeros to the end of its last line: written
/// once, where the signature is checked, and carried into the log unchanged. The stretch is its checksum.
#[derive(Clone, Copy)]
pub struct Received {
    lines: [Line; RECEIVED_LINES_MAX],
    count: u32,
    stretch: Stretch,
}

impl Received {
    /// Nothing yet.
    pub const NOTHING: Self =
        Self { lines: [[[0; 8]; 8]; RECEIVED_LINES_MAX], count: 0, stretch: Stretch::NOTHING };

    /// Writes down what was received, with registry numbers for its names.
    pub fn write(
        &mut self,
        order: &SignedOrder,
        id: &OrderId,
        (wallet, principal): (WalletNo, WalletNo),
        (market, outcome): (MarketNo, Outcome),
    ) {
        let bytes = self.lines.as_flattened_mut().as_flattened_mut();
        let all = bytes.len();
        let room = &mut Room::new(bytes);
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
        room.bytes(&[0; LINE_BYTES][..room.left() % LINE_BYTES]);
        let count = (all - room.left()) / LINE_BYTES;
        self.stretch = Stretch::of(&self.lines[..count]);
        self.count = u32::try_from(count).expect("a few");
    }

    /// Its lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines[..self.count as usize]
    }

    /// The payload of an order that was judged at `time`, without what was received. Fills and removals are written
    /// into `room`, which has room for them.
    #[allow(clippy::inline_always, reason = "mostly constant for an order that rests as it came")]
    #[inline(always)]
    pub fn decide(
        &self,
        time: TimeMs,
        decision: Decision<impl ExactSizeIterator<Item = Fill>, impl ExactSizeIterator<Item = Removal>>,
        room: &mut [[u8; 8]],
    ) -> Decided {
        let head = decision.head(time);
        let tail = decision.put_tail(room);
        let checksum = checksum::append_each(checksum::sum_before(head, &self.stretch), &room[..tail]);
        Decided { head, tail, checksum }
    }

    /// The payload that [`Received::decide`] decided, whose end it wrote into `room`.
    #[must_use]
    pub fn payload<'a>(&'a self, decided: &Decided, room: &'a [[u8; 8]]) -> Parts<'a, HEAD_WORDS> {
        let &Decided { head, tail, checksum } = decided;
        Parts { head, lines: self.lines(), tail: &room[..tail], checksum }
    }
}

/// A payload without what was received: its head, how many words its end takes, and its checksum.
#[derive(Clone, Copy, Debug)]
pub struct Decided {
    head: [u64; HEAD_WORDS],
    tail: usize,
    checksum: u32,
}

impl std::fmt::Debug for Received {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Received({} lines)", self.count)
    }
}

impl Wire for OrderPlaced {
    fn put(&self, out: &mut impl Out) {
        let Self { price, result, stopped, open, reserved, .. } = *self;
        let (fills, removed) = (self.fills.iter().cloned(), self.removed.iter().cloned());
        let decision = Decision { price, result, stopped, open, reserved, fills, removed };
        out.words(&decision.head(self.time));
        let mut received = Vec::new();
        self.market.put(&mut received);
        self.outcome.put(&mut received);
        self.wallet.put(&mut received);
        self.principal.put(&mut received);
        self.id.put(&mut received);
        self.fields.put(&mut received);
        self.signature.put(&mut received);
        self.expiration_s.put(&mut received);
        self.order_type.put(&mut received);
        self.post_only.put(&mut received);
        self.self_trade.put(&mut received);
        self.owner.put(&mut received);
        received.resize(received.len().next_multiple_of(LINE_BYTES), 0);
        out.bytes(&received);
        self.fills.iter().for_each(|fill| out.words(&fill.words()));
        self.removed.iter().for_each(|removal| out.words(&removal.words()));
    }

    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let time = Wire::take(input)?;
        let price = Wire::take(input)?;
        let damage = input.damage("result");
        let result = PlacedResult::from_byte(u8::take(input)?).ok_or(damage)?;
        let damage = input.damage("reason");
        let stopped = match u8::take(input)? {
            0 => None,
            byte => Some(Reject::from_byte(byte - 1).ok_or(damage)?),
        };
        let (fills, removed) = (u16::take(input)?, u16::take(input)?);
        let (open, reserved) = (Wire::take(input)?, Wire::take(input)?);
        let before = input.left();
        let market = Wire::take(input)?;
        let outcome = Wire::take(input)?;
        let wallet = Wire::take(input)?;
        let principal = Wire::take(input)?;
        let id = Wire::take(input)?;
        let fields = Wire::take(input)?;
        let signature = Wire::take(input)?;
        let expiration_s = Wire::take(input)?;
        let order_type = Wire::take(input)?;
        let post_only = Wire::take(input)?;
        let self_trade = Wire::take(input)?;
        let owner = Wire::take(input)?;
        let taken = before - input.left();
        input.zeros(taken.next_multiple_of(LINE_BYTES) - taken)?;
        let fills = input.each(fills, "fill", Fill::of)?;
        let removed = input.each(removed, "removal", Removal::of)?;
        Ok(Self {
            time,
            market,
            outcome,
            wallet,
            principal,
            id,
            fields,
            signature,
            expiration_s,
            order_type,
            post_only,
            self_trade,
            owner,
            price,
            result,
            stopped,
            open,
            reserved,
            fills,
            removed,
        })
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
