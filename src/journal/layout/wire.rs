//! How values lie in a payload: little-endian, in declaration order, nothing between them.

use crate::domain::{
    Address, ApiKey, Collateral, ConditionId, FeeSchedule, MarketNo, Mode, OrderFields, OrderId, OrderType,
    Outcome, Payout, Position, Price, Reject, SelfTrade, Shares, Side, SignatureType, Tick, TimeMs, TokenId,
    WalletKind, WalletNo, Word,
};

/// The longest list or text in one record; longer counts are damage, not allocations.
const COUNT_MAX: usize = 320 * 1024;

/// The payload is not a record of its kind. Its checksum was right, so this is a bug or a forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What could not be read, or held an impossible value.
    pub field: &'static str,
    /// The offset in the payload.
    pub at: usize,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: not a valid value at payload byte {}", self.field, self.at)
    }
}

/// The bytes of a payload that are still to be read.
pub(super) struct Input<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) const fn new(payload: &'a [u8]) -> Self {
        Self { payload, at: 0 }
    }

    /// A record must use its whole payload.
    pub(super) const fn finish(&self) -> Result<(), Damage> {
        if self.at == self.payload.len() { Ok(()) } else { Err(self.damage("end of record")) }
    }

    pub(super) const fn damage(&self, field: &'static str) -> Damage {
        Damage { field, at: self.at }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let bytes = self.payload.get(self.at..self.at + count).ok_or(self.damage("length"))?;
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        Ok(self.bytes(N)?.try_into().expect("exactly N bytes were taken"))
    }
}

/// A value that can lie in a payload.
pub(super) trait Wire: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads the value.
    fn take(input: &mut Input<'_>) -> Result<Self, Damage>;
}

macro_rules! integers {
    ($($int:ty),*) => { $(
        impl Wire for $int {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
                Ok(Self::from_le_bytes(input.array()?))
            }
        }
    )* };
}
integers!(u8, u16, u32, u64, u128);

macro_rules! newtypes {
    ($($name:ident),*) => { $(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
                Ok(Self(Wire::take(input)?))
            }
        }
    )* };
}
newtypes!(Collateral, Shares, TimeMs, Position, WalletNo, MarketNo);
newtypes!(Address, ApiKey, ConditionId, OrderId, TokenId, Word);

impl<const N: usize> Wire for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        input.array()
    }
}

macro_rules! bytes {
    ($($name:ident),*) => { $(
        impl $crate::journal::layout::wire::Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }
            fn take(
                input: &mut $crate::journal::layout::wire::Input<'_>,
            ) -> Result<Self, $crate::journal::layout::wire::Damage> {
                let damage = input.damage(stringify!($name));
                Self::from_byte(<u8 as $crate::journal::layout::wire::Wire>::take(input)?).ok_or(damage)
            }
        }
    )* };
}
bytes!(Side, OrderType, SelfTrade, SignatureType, Outcome, Mode, WalletKind, Reject);
pub(super) use bytes;

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("flag");
        match u8::take(input)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(damage),
        }
    }
}

impl Wire for Price {
    fn put(&self, out: &mut Vec<u8>) {
        self.ten_thousandths().put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("price");
        Self::new(u16::take(input)?).ok_or(damage)
    }
}

impl Wire for Tick {
    fn put(&self, out: &mut Vec<u8>) {
        self.ten_thousandths().put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("tick");
        Self::new(u16::take(input)?).ok_or(damage)
    }
}

impl Wire for Payout {
    fn put(&self, out: &mut Vec<u8>) {
        self.per_share(Outcome::Zero).put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("payout");
        Self::new(u32::take(input)?).ok_or(damage)
    }
}

/// A flag byte, then the value if there is one.
impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Ok(if bool::take(input)? { Some(T::take(input)?) } else { None })
    }
}

/// A count, then the values.
impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_count(self.len(), out);
        for value in self {
            value.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let count = take_count(input)?;
        // A forged count must not become a large allocation: the payload bounds it.
        let mut values = Self::with_capacity(count.min(input.payload.len()));
        for _ in 0..count {
            values.push(T::take(input)?);
        }
        Ok(values)
    }
}

/// A count of bytes, then UTF-8.
impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_count(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let count = take_count(input)?;
        let damage = input.damage("text");
        std::str::from_utf8(input.bytes(count)?).map(Self::from).map_err(|_| damage)
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    u32::try_from(count).expect("lists are bounded by the frame's size").put(out);
}

fn take_count(input: &mut Input<'_>) -> Result<usize, Damage> {
    let damage = input.damage("count");
    let count = u32::take(input)? as usize;
    if count <= COUNT_MAX { Ok(count) } else { Err(damage) }
}

/// Declares a record: its fields are written and read in the order in which they stand.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $( $(#[$field_doc:meta])* pub $field:ident : $type:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[$field_doc])* pub $field: $type, )* }

        impl $crate::journal::layout::wire::Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$field.put(out); )*
            }
            fn take(
                input: &mut $crate::journal::layout::wire::Input<'_>,
            ) -> Result<Self, $crate::journal::layout::wire::Damage> {
                $( let $field = <$type as $crate::journal::layout::wire::Wire>::take(input)?; )*
                Ok(Self { $( $field, )* })
            }
        }
    };
}
pub(super) use record;

macro_rules! domain_structs {
    ($( $name:ident { $( $field:ident ),* } )*) => { $(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$field.put(out); )*
            }
            fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
                $( let $field = Wire::take(input)?; )*
                Ok(Self { $( $field, )* })
            }
        }
    )* };
}
domain_structs! {
    FeeSchedule { rate, exponent, taker_only, builder_share_bps, rebate_rate, version }
    OrderFields {
        salt, maker, signer, token, maker_amount, taker_amount, side, signature_type, timestamp_ms, metadata,
        builder
    }
}
