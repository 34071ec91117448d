//! What frames say: one record per frame, each a decision together with its results.
//!
//! A record lists its fields in declaration order, little-endian and without padding; the first is the time of
//! the decision (only a state hash has none). Lists and texts carry a `u32` count in front; of signed fields,
//! what most orders have in common is left out (`signed`). What shards write for every order and cancel has
//! a form of its own, of words and lines: see [`order`], which replaces hold too, and [`OrdersRemoved`]. The
//! frame around it (length, checksum, position, epoch, kind) is the log's. Records name orders by the position
//! of their placement, and wallets and markets by registry number; never a slot, a shard or a pointer, so the
//! log means the same with any number of shards on any machine.
//!
//! | kind | record | made by | says |
//! |-----:|--------|---------|------|
//! |    1 | [`Start`] | journal | a process took the log over, in this epoch, after this cut |
//! |    2 | [`Close`] | journal | the process stopped in good order |
//! |    3 | [`StateHash`] | reader | the state up to a position hashes to this |
//! |   16 | [`WalletAdded`] | registrar | an address has a wallet number |
//! |   17 | [`WalletLinked`] | registrar | a wallet has a principal |
//! |   18 | [`KeyChanged`] | registrar | an API key is valid or revoked |
//! |   19 | [`Frozen`] | registrar | a principal may not trade, or may again |
//! |   20 | [`ExchangeMode`] | registrar | what the whole exchange accepts |
//! |   21 | [`Money`] | registrar | the operator credited or debited a wallet |
//! |   22 | [`EventText`] | registrar | an event and its text |
//! |   23 | [`MarketAdded`] | registrar | a market, its tokens and its rules |
//! |   24 | [`MarketText`] | registrar | a market's new text |
//! |   25 | [`ItemText`] | registrar | a tag, series or creator listed by itself, and its text |
//! |   26 | [`SwitchArmed`] | registrar | a key's dead-man switch is armed or not |
//! |   27 | [`BreakerSet`] | registrar | a key's fill-rate breaker: set, removed, tripped, reset |
//! |   32 | [`OrderPlaced`] | shard | an order arrived, with everything it did |
//! |   33 | [`OrdersRemoved`] | shard | orders left the book unfilled |
//! |   34 | [`Tombstone`] | shard | a cancel came before its order |
//! |   35 | [`PositionAct`] | shard | a split, merge or redeem |
//! |   36 | [`TickChanged`] | shard | a market's new tick, and the orders that it removed |
//! |   37 | [`MarketMode`] | shard | what a market accepts |
//! |   38 | [`Resolved`] | shard | a market's payout, which removes its orders |
//! |   39 | [`OrdersReplaced`] | shard | orders left a book and others came to rest in it |
//!
//! Kinds are never reused. A record that gains a field gets a new kind. If the encoding of a kind changes,
//! segments get a new format: the number in their magic rises.

pub mod acts;
pub mod guards;
pub mod order;
pub mod rows;
mod signed;

pub use crate::memory::wire::Damage;
pub use acts::{
    ActKind, ExchangeMode, Frozen, MarketMode, Money, MoneyDirection, OrdersRemoved, PositionAct,
    RemovalReason, Resolved, TickChanged, Tombstone,
};
pub use guards::{BreakerSet, SwitchArmed};
pub use order::{
    Decided, Decision, Fill, MatchKind, OrderPlaced, OrdersReplaced, PlacedResult, Quote, Received, Removal,
};
pub use rows::{
    Close, EventText, ItemText, KeyChanged, MarketAdded, MarketText, Start, StateHash, WalletAdded,
    WalletLinked,
};

use super::FRAME_BYTES_MAX;
use crate::domain::TimeMs;
use crate::memory::wire::{Input, Room, Wire};

/// The longest list or text in one record; longer counts are damage, not allocations.
const COUNT_MAX: usize = FRAME_BYTES_MAX;

/// Declares a record: its fields are written and read in the order of declaration.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $( $(#[$field_doc:meta])* pub $field:ident : $type:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[$field_doc])* pub $field: $type, )* }

        impl $crate::memory::wire::Wire for $name {
            fn put(&self, out: &mut impl $crate::memory::wire::Out) {
                $( $crate::memory::wire::Wire::put(&self.$field, out); )*
            }
            fn take(
                input: &mut $crate::memory::wire::Input<'_>,
            ) -> Result<Self, $crate::memory::wire::Damage> {
                $( let $field = <$type as $crate::memory::wire::Wire>::take(input)?; )*
                Ok(Self { $( $field, )* })
            }
        }
    };
}
use record;

macro_rules! records {
    (@time $record:ident) => { $record.time };
    (@time $record:ident $time:expr) => {{
        let _ = $record;
        $time
    }};
    ($( $kind:literal $name:ident $(at $time:expr)? ),* $(,)?) => {
        /// One decoded record of any kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant, reason = "decoded one at a time, never stored in bulk")]
        #[allow(missing_docs, reason = "each variant is documented where its record is")]
        pub enum Record { $( $name($name), )* }

        impl Record {
            /// The kind number that goes into the frame's header.
            #[must_use]
            pub const fn kind(&self) -> u16 {
                match self { $( Self::$name(_) => $kind, )* }
            }

            /// The record's name, for dumps.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$name(_) => stringify!($name), )* }
            }

            /// When the decision was made; 0 for a state hash, which has no time.
            #[must_use]
            pub const fn time(&self) -> TimeMs {
                match self { $( Self::$name(record) => records!(@time record $($time)?), )* }
            }

            /// Appends the payload to `out`.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self { $( Self::$name(record) => record.put(out), )* }
            }

            /// Reads the payload of a frame of `kind`; every byte must be used.
            pub fn decode(kind: u16, payload: &[u8]) -> Result<Self, Damage> {
                let mut input = Input::bounded(payload, COUNT_MAX);
                let record = match kind {
                    $( $kind => Self::$name($name::take(&mut input)?), )*
                    _ => return Err(Damage { field: "kind", at: 0 }),
                };
                input.finish()?;
                Ok(record)
            }
        }

        $(
            impl $name {
                /// The kind number that goes into the frame's header.
                pub const KIND: u16 = $kind;

                /// Appends the payload to `out`, which keeps its capacity between frames.
                pub fn encode(&self, out: &mut Vec<u8>) {
                    self.put(out);
                }

                /// Writes the payload to the start of `buffer`, which has room for any payload, and returns it.
                pub fn encode_in<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
                    let mut room = Room::new(buffer);
                    self.put(&mut room);
                    let left = room.left();
                    &buffer[..buffer.len() - left]
                }

                /// Reads a payload of this kind; every byte must be used.
                pub fn decode(payload: &[u8]) -> Result<Self, Damage> {
                    let mut input = Input::bounded(payload, COUNT_MAX);
                    let record = Self::take(&mut input)?;
                    input.finish()?;
                    Ok(record)
                }
            }

            impl From<$name> for Record {
                fn from(record: $name) -> Self {
                    Self::$name(record)
                }
            }
        )*
    };
}

records! {
    1 Start,
    2 Close,
    3 StateHash at TimeMs(0),
    16 WalletAdded,
    17 WalletLinked,
    18 KeyChanged,
    19 Frozen,
    20 ExchangeMode,
    21 Money,
    22 EventText,
    23 MarketAdded,
    24 MarketText,
    25 ItemText,
    26 SwitchArmed,
    27 BreakerSet,
    32 OrderPlaced,
    33 OrdersRemoved,
    34 Tombstone,
    35 PositionAct,
    36 TickChanged,
    37 MarketMode,
    38 Resolved,
    39 OrdersReplaced,
}

#[cfg(test)]
mod tests;
