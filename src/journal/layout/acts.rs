//! What shards and the registrar decide besides orders.

use super::record;
use crate::domain::byte::byte_enum;
use crate::domain::{
    Collateral, MarketNo, Mode, OrderId, Payout, Position, Shares, Tick, TimeMs, WalletNo, Word,
};
use crate::journal::PAYLOAD_BYTES_MAX;
use crate::journal::checksum;
use crate::journal::log::Parts;
use crate::memory::wire::{Damage, Input, Out, Wire, bytes};

byte_enum! {
    /// Why a resting order left its book without being filled.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum RemovalReason {
        /// Its principal cancelled it.
        Cancelled = 0,
        /// Its expiration came.
        Expired = 1,
        /// The wallet's money or shares no longer covered it.
        Unfunded = 2,
        /// Self-trade prevention removed it.
        SelfTrade = 3,
        /// Its price is off the new tick's grid.
        TickChanged = 4,
        /// Its market was resolved.
        MarketResolved = 5,
        /// The operator removed it.
        Operator = 6,
        /// What a fill left of it is worth less than a millionth, so nobody could fill that.
        Dust = 7,
        /// Its principal replaced it.
        Replaced = 8,
        /// Its key's dead-man switch went off.
        HeartbeatMissed = 9,
        /// The connection that promised to answer for its key's orders was lost.
        Disconnected = 10,
        /// Its key's fill-rate breaker tripped.
        FillRate = 11,
    }
}

impl RemovalReason {
    /// The reason in words, as answers and dumps show it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Unfunded => "unfunded",
            Self::SelfTrade => "self_trade",
            Self::TickChanged => "tick_changed",
            Self::MarketResolved => "market_resolved",
            Self::Operator => "operator",
            Self::Dust => "dust",
            Self::Replaced => "replaced",
            Self::HeartbeatMissed => "heartbeat_missed",
            Self::Disconnected => "disconnected",
            Self::FillRate => "fill_rate",
        }
    }
}
bytes!(RemovalReason);

/// The most orders that one record removes: they fit in a frame. Larger cancels take several records.
pub const REMOVED_MAX: usize = 32_768;

/// An upper bound of everything else in a record that removes orders: of a signed act, the largest, some 500.
const REST_BYTES_MAX: usize = 1_024;

const _: () =
    assert!(8 * REMOVED_MAX + REST_BYTES_MAX <= PAYLOAD_BYTES_MAX, "the largest removal fits one frame");

/// Orders of one market or of many leave their books, for one reason. It consists of words, as shards write one for
/// every cancel: the time; the reason in byte 0, zeros, and how many from byte 4 on; their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrdersRemoved {
    /// When.
    pub time: TimeMs,
    /// Why.
    pub reason: RemovalReason,
    /// Where they were placed: one at least, at most [`REMOVED_MAX`].
    pub orders: Vec<Position>,
}

impl OrdersRemoved {
    /// The payload of such a record, without the positions behind the first, which are written into `room`.
    #[allow(clippy::inline_always, reason = "mostly constant for a single order")]
    #[inline(always)]
    pub fn write(
        time: TimeMs,
        reason: RemovalReason,
        mut orders: impl ExactSizeIterator<Item = Position>,
        room: &mut [[u8; 8]],
    ) -> Parts<'_, 3> {
        let count = u32::try_from(orders.len()).expect("at most REMOVED_MAX");
        let what = u64::from(reason as u8) | u64::from(count) << 32;
        let first = orders.next().expect("orders leave");
        let head = [time.0, what, first.0];
        let tail = &mut room[..orders.len()];
        for (place, order) in tail.iter_mut().zip(orders) {
            *place = order.0.to_le_bytes();
        }
        let checksum = checksum::append_each(checksum::append_words(0, head), tail);
        Parts { head, lines: &[], tail, checksum }
    }
}

impl Wire for OrdersRemoved {
    fn put(&self, out: &mut impl Out) {
        assert!(!self.orders.is_empty(), "orders leave");
        self.time.put(out);
        self.reason.put(out);
        [0_u8; 3].put(out);
        self.orders.put(out);
    }

    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let (time, reason) = (Wire::take(input)?, Wire::take(input)?);
        input.zeros(3)?;
        let orders = Vec::take(input)?;
        if orders.is_empty() {
            Err(input.damage("orders that left"))
        } else {
            Ok(Self { time, reason, orders })
        }
    }
}

record! {
    /// A cancel for an order that this shard has not seen; it kills the order on arrival.
    pub struct Tombstone {
        /// When.
        pub time: TimeMs,
        /// The order's id.
        pub id: OrderId,
        /// Who cancelled; only this principal's order is killed.
        pub principal: WalletNo,
        /// When it expires, by the machine's clock: [`Tombstone::LIFE_MS`] after it was left. `time` is the log's,
        /// which may be ahead of a clock that was set back.
        pub until: TimeMs,
    }
}

impl Tombstone {
    /// How long a tombstone waits: longer than any client's order trails its cancel, too short for a principal to
    /// fill its quota by accident.
    pub const LIFE_MS: u64 = 10_000;

    /// When it was left, by the machine's clock.
    #[must_use]
    pub const fn left(&self) -> TimeMs {
        TimeMs(self.until.0.saturating_sub(Self::LIFE_MS))
    }

    /// Whether a tombstone that waits until `until` is over when the machine's clock says `now`. One further ahead
    /// than any can be is over too: the clock was set back, and nobody can say how long it has waited.
    #[must_use]
    pub const fn is_over(until: TimeMs, now: TimeMs) -> bool {
        until.0 <= now.0 || now.plus_ms(2 * Self::LIFE_MS).0 < until.0
    }
}

byte_enum! {
    /// What a user does with a pair of shares.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ActKind {
        /// Collateral becomes a pair.
        Split = 0,
        /// A pair becomes collateral.
        Merge = 1,
        /// Shares of a resolved market become their payout.
        Redeem = 2,
    }
}
bytes!(ActKind);

record! {
    /// A split, merge or redeem, signed by the user or queued by the operator's resolve.
    pub struct PositionAct {
        /// When.
        pub time: TimeMs,
        /// Which of the three.
        pub act: ActKind,
        /// The wallet whose shares and collateral change.
        pub wallet: WalletNo,
        /// The market.
        pub market: MarketNo,
        /// Shares taken (merge, redeem) or given (split) of each outcome.
        pub shares: [Shares; 2],
        /// Collateral paid (split) or received (merge, redeem).
        pub collateral: Collateral,
        /// The digest of the signed request; zero when the operator redeemed.
        pub id: OrderId,
        /// The request's salt.
        pub salt: Word,
        /// The request's time in milliseconds.
        pub timestamp_ms: u64,
        /// The signature; empty when the operator redeemed.
        pub signature: Vec<u8>,
        /// Orders that the falling shares no longer cover, newest first; reason `unfunded`.
        pub removed: Vec<Position>,
    }
}

record! {
    /// A market has a new tick.
    pub struct TickChanged {
        /// When.
        pub time: TimeMs,
        /// The market.
        pub market: MarketNo,
        /// Its tick from here on.
        pub tick: Tick,
        /// Orders off the new grid, which were removed; at most [`REMOVED_MAX`].
        pub removed: Vec<Position>,
    }
}

record! {
    /// A market's mode changes.
    pub struct MarketMode {
        /// When.
        pub time: TimeMs,
        /// The market.
        pub market: MarketNo,
        /// Open, post-only, cancel-only or closed; a resolution has its own record.
        pub mode: Mode,
    }
}

record! {
    /// A market's payout is known. Final; its resting orders are cancelled, nobody is paid yet.
    pub struct Resolved {
        /// When.
        pub time: TimeMs,
        /// The market.
        pub market: MarketNo,
        /// What a share of each outcome pays.
        pub payout: Payout,
    }
}

record! {
    /// A principal may not trade, or may again.
    pub struct Frozen {
        /// When.
        pub time: TimeMs,
        /// The principal.
        pub principal: WalletNo,
        /// True to freeze.
        pub frozen: bool,
    }
}

record! {
    /// The mode of the whole exchange changes.
    pub struct ExchangeMode {
        /// When.
        pub time: TimeMs,
        /// Open, post-only, cancel-only or closed.
        pub mode: Mode,
    }
}

byte_enum! {
    /// Which way the operator's money goes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum MoneyDirection {
        /// Into the wallet.
        Credit = 0,
        /// Out of the wallet.
        Debit = 1,
    }
}
bytes!(MoneyDirection);

/// The longest reference of an operator's credit or debit, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 64;

record! {
    /// The operator credited or debited a wallet.
    pub struct Money {
        /// When.
        pub time: TimeMs,
        /// The wallet.
        pub wallet: WalletNo,
        /// Credit or debit.
        pub direction: MoneyDirection,
        /// How much.
        pub amount: Collateral,
        /// The operator's reference, 1..=64 bytes; a repeat returns the first result.
        pub reference: String,
    }
}
