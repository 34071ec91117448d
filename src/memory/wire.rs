//! How values become bytes: little-endian, in declaration order, without padding.
//!
//! Frames and snapshots are written this way, but for what shards write for every order and cancel
//! (`journal::layout`). A list or text carries a `u32` count in front; a set is written in its order, so that the same
//! value always has the same bytes. A struct of any room joins in with [`structs!`], an enum of one byte with
//! [`bytes!`].

use crate::domain::{
    Address, ApiKey, Collateral, ConditionId, FeeSchedule, ItemKind, MarketNo, Mode, OrderId, OrderType,
    Outcome, Payout, Position, Price, Reject, SelfTrade, Shares, Side, SignatureType, Tick, TimeMs, TokenId,
    WalletKind, WalletNo, Word,
};

use std::collections::BTreeSet;

/// The bytes are not the values that were expected. Their checksum was right, so this is a bug or
/// a forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What could not be read, or held an impossible value.
    pub field: &'static str,
    /// The offset in the payload.
    pub at: usize,
}

impl Damage {
    /// Values that contradict each other, wherever they stand.
    #[must_use]
    pub const fn of(field: &'static str) -> Self {
        Self { field, at: 0 }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: not a valid value at payload byte {}", self.field, self.at)
    }
}

/// The bytes of a payload that are still to be read.
#[derive(Debug)]
pub struct Input<'a> {
    payload: &'a [u8],
    at: usize,
    count_max: usize,
}

impl<'a> Input<'a> {
    /// Reads from the first byte; lists may be as long as a count can say.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self::bounded(payload, u32::MAX as usize)
    }

    /// Reads from the first byte; a list or text longer than `count_max` is damage.
    #[must_use]
    pub const fn bounded(payload: &'a [u8], count_max: usize) -> Self {
        Self { payload, at: 0, count_max }
    }

    /// Checks that every byte was used.
    pub const fn finish(&self) -> Result<(), Damage> {
        if self.at == self.payload.len() { Ok(()) } else { Err(self.damage("end of record")) }
    }

    /// The damage to report for `field`, which begins here.
    #[must_use]
    pub const fn damage(&self, field: &'static str) -> Damage {
        Damage { field, at: self.at }
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let rest = &self.payload[self.at..];
        let bytes = rest.get(..count).ok_or(self.damage("length"))?;
        self.at += count;
        Ok(bytes)
    }

    /// How many bytes are still to be read.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.payload.len() - self.at
    }

    /// Skips the next `count` bytes, which must be zero.
    pub fn zeros(&mut self, count: usize) -> Result<(), Damage> {
        let damage = self.damage("zeros");
        if self.bytes(count)?.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(damage) }
    }

    /// The next `count` values of `N` words each.
    pub fn each<T, const N: usize>(
        &mut self,
        count: u16,
        field: &'static str,
        of: impl Fn([u64; N]) -> Option<T>,
    ) -> Result<Vec<T>, Damage> {
        let at = self.at;
        let (values, _) = self.bytes(8 * N * usize::from(count))?.as_chunks::<8>().0.as_chunks::<N>();
        let words = |value: &[[u8; 8]; N]| value.map(u64::from_le_bytes);
        let value = |(index, value)| of(words(value)).ok_or(Damage { field, at: at + 8 * N * index });
        values.iter().enumerate().map(value).collect()
    }

    /// Capacity for `count` values that are still to be read: a forged count must not become a
    /// large allocation, so the bytes that are left bound it.
    fn capacity(&self, count: usize) -> usize {
        count.min(self.left())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        Ok(self.bytes(N)?.try_into().expect("exactly N bytes were taken"))
    }
}

/// Where values are put.
pub trait Out {
    /// Appends bytes.
    fn bytes(&mut self, bytes: &[u8]);
    /// Appends words.
    fn words<const N: usize>(&mut self, words: &[u64; N]) {
        self.bytes(words.map(u64::to_le_bytes).as_flattened());
    }
}

impl Out for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Memory that is filled from its start and has room for whatever is put. Unlike a `Vec`, it keeps no length in
/// memory that each value would have to load and store.
#[derive(Debug)]
pub struct Room<'a> {
    free: &'a mut [u8],
}

impl<'a> Room<'a> {
    /// All of `free`.
    #[must_use]
    pub const fn new(free: &'a mut [u8]) -> Self {
        Self { free }
    }

    /// How many bytes are still free.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.free.len()
    }
}

impl Out for Room<'_> {
    #[allow(clippy::inline_always, reason = "inlined, a field is one store")]
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let (here, behind) = std::mem::take(&mut self.free).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        self.free = behind;
    }
}

/// A value that can be part of a payload.
pub trait Wire: Sized {
    /// Appends the value.
    fn put(&self, out: &mut impl Out);
    /// Reads the value.
    fn take(input: &mut Input<'_>) -> Result<Self, Damage>;
    /// Appends values one after the other.
    fn put_each(values: &[Self], out: &mut impl Out) {
        for value in values {
            value.put(out);
        }
    }
    /// Reads `count` values that follow each other.
    fn take_each(count: usize, input: &mut Input<'_>) -> Result<Vec<Self>, Damage> {
        let mut values = Vec::with_capacity(input.capacity(count));
        for _ in 0..count {
            values.push(Self::take(input)?);
        }
        Ok(values)
    }
}

impl Wire for u8 {
    fn put(&self, out: &mut impl Out) {
        out.bytes(&[*self]);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Ok(input.array::<1>()?[0])
    }
    fn put_each(values: &[Self], out: &mut impl Out) {
        out.bytes(values);
    }
    fn take_each(count: usize, input: &mut Input<'_>) -> Result<Vec<Self>, Damage> {
        input.bytes(count).map(<[u8]>::to_vec)
    }
}

macro_rules! integers {
    ($($int:ty),*) => { $(
        impl Wire for $int {
            fn put(&self, out: &mut impl Out) {
                out.bytes(&self.to_le_bytes());
            }
            fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
                Ok(Self::from_le_bytes(input.array()?))
            }
        }
    )* };
}
integers!(u16, u32, u64, u128, i128);

macro_rules! newtypes {
    ($($name:ident),*) => { $(
        impl Wire for $name {
            fn put(&self, out: &mut impl Out) {
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
    fn put(&self, out: &mut impl Out) {
        out.bytes(self);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        input.array()
    }
}

/// Makes enums of one byte wire values: `as u8` one way, `from_byte` the other.
macro_rules! bytes {
    ($($name:ident),*) => { $(
        impl $crate::memory::wire::Wire for $name {
            fn put(&self, out: &mut impl $crate::memory::wire::Out) {
                out.bytes(&[*self as u8]);
            }
            fn take(
                input: &mut $crate::memory::wire::Input<'_>,
            ) -> Result<Self, $crate::memory::wire::Damage> {
                let damage = input.damage(stringify!($name));
                Self::from_byte(<u8 as $crate::memory::wire::Wire>::take(input)?).ok_or(damage)
            }
        }
    )* };
}
bytes!(Side, OrderType, SelfTrade, SignatureType, Outcome, Mode, WalletKind, ItemKind, Reject);
pub(crate) use bytes;

impl Wire for bool {
    fn put(&self, out: &mut impl Out) {
        out.bytes(&[u8::from(*self)]);
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
    fn put(&self, out: &mut impl Out) {
        self.ten_thousandths().put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("price");
        Self::new(u16::take(input)?).ok_or(damage)
    }
}

impl Wire for Tick {
    fn put(&self, out: &mut impl Out) {
        self.ten_thousandths().put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("tick");
        Self::new(u16::take(input)?).ok_or(damage)
    }
}

impl Wire for Payout {
    fn put(&self, out: &mut impl Out) {
        self.per_share(Outcome::Zero).put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("payout");
        Self::new(u32::take(input)?).ok_or(damage)
    }
}

/// A flag byte, then the value if there is one.
impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut impl Out) {
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
    fn put(&self, out: &mut impl Out) {
        put_list(self, out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let count = take_count(input)?;
        T::take_each(count, input)
    }
}

impl<T: Wire> Wire for Box<[T]> {
    fn put(&self, out: &mut impl Out) {
        put_list(self, out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Vec::take(input).map(Vec::into_boxed_slice)
    }
}

impl<T: Wire + Ord> Wire for BTreeSet<T> {
    fn put(&self, out: &mut impl Out) {
        put_count(self.len(), out);
        for value in self {
            value.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Vec::take(input).map(Self::from_iter)
    }
}

fn put_list<T: Wire>(values: &[T], out: &mut impl Out) {
    put_count(values.len(), out);
    T::put_each(values, out);
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut impl Out) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Ok((A::take(input)?, B::take(input)?))
    }
}

macro_rules! pairs {
    ($($name:ident),*) => { $(
        impl Wire for [$name; 2] {
            fn put(&self, out: &mut impl Out) {
                self[0].put(out);
                self[1].put(out);
            }
            fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
                Ok([$name::take(input)?, $name::take(input)?])
            }
        }
    )* };
}
pairs!(Collateral, Shares, String, TokenId);

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    fn put(&self, out: &mut impl Out) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Ok((A::take(input)?, B::take(input)?, C::take(input)?))
    }
}

/// A count of bytes, then UTF-8.
impl Wire for String {
    fn put(&self, out: &mut impl Out) {
        put_count(self.len(), out);
        out.bytes(self.as_bytes());
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let count = take_count(input)?;
        let damage = input.damage("text");
        std::str::from_utf8(input.bytes(count)?).map(Self::from).map_err(|_| damage)
    }
}

/// The count in front of a list's values or a text's bytes.
pub fn put_count(count: usize, out: &mut impl Out) {
    let Ok(count) = u32::try_from(count) else {
        too_many();
    };
    count.put(out);
}

/// Out of line and without an argument: otherwise the panic's message is prepared on the way that does not panic.
#[cold]
fn too_many() -> ! {
    unreachable!("no list has four thousand million values");
}

fn take_count(input: &mut Input<'_>) -> Result<usize, Damage> {
    let damage = input.damage("count");
    let count = u32::take(input)? as usize;
    if count <= input.count_max { Ok(count) } else { Err(damage) }
}

/// Makes structs wire values. All fields have to be named; their order here is their order in the bytes.
macro_rules! structs {
    ($( $name:ident { $( $field:ident ),* } )*) => { $(
        impl $crate::memory::wire::Wire for $name {
            fn put(&self, out: &mut impl $crate::memory::wire::Out) {
                $( $crate::memory::wire::Wire::put(&self.$field, out); )*
            }
            fn take(
                input: &mut $crate::memory::wire::Input<'_>,
            ) -> Result<Self, $crate::memory::wire::Damage> {
                $( let $field = $crate::memory::wire::Wire::take(input)?; )*
                Ok(Self { $( $field, )* })
            }
        }
    )* };
}
structs! {
    FeeSchedule { rate, exponent, taker_only, builder_share_bps, rebate_rate, version }
}
pub(crate) use structs;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: Wire + PartialEq + std::fmt::Debug>(value: &T) {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        let mut input = Input::new(&bytes);
        assert_eq!(T::take(&mut input).as_ref(), Ok(value));
        assert_eq!(input.finish(), Ok(()));
        for cut in 0..bytes.len() {
            assert!(T::take(&mut Input::new(&bytes[..cut])).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn collections_read_back_and_a_cut_one_does_not() {
        let pairs = [(7_u32, "seven".to_owned()), (2, String::new()), (9, "nine".to_owned())];
        check(&pairs.to_vec());
        check(&pairs.to_vec().into_boxed_slice());
        check(&BTreeSet::from([i128::MIN, 0, i128::MAX]));
        check(&Some([Shares(1), Shares(2)]));
    }

    #[test]
    fn a_forged_count_is_damage_and_takes_no_memory() {
        let forged = [u32::MAX.to_le_bytes(), [1; 4]].concat();
        assert!(Vec::<[u8; 1 << 16]>::take(&mut Input::new(&forged)).is_err());
        assert!(Vec::<u8>::take(&mut Input::new(&forged)).is_err());
    }

    #[test]
    fn what_no_value_has_is_damage_where_it_stands() {
        let at = |field, at| Some(Damage { field, at });
        for flag in 2..=u8::MAX {
            assert_eq!(bool::take(&mut Input::new(&[flag])).err(), at("flag", 0));
        }
        let bytes = [0, 0, 0, 1];
        assert_eq!(Input::new(&bytes).zeros(3), Ok(()));
        assert_eq!(Input::new(&bytes).zeros(4).err(), at("zeros", 0));
        let words = [7_u64, 8, 9].map(u64::to_le_bytes).concat();
        let below = |bound: u64| Input::new(&words).each(3, "word", |[word]| (word < bound).then_some(word));
        assert_eq!((below(10), below(9).err()), (Ok(vec![7, 8, 9]), at("word", 16)));
    }

    #[test]
    fn a_bounded_input_takes_the_longest_list_and_no_longer_one() {
        let mut bytes = Vec::new();
        vec![0_u8; 5].put(&mut bytes);
        assert!(Vec::<u8>::take(&mut Input::bounded(&bytes, 5)).is_ok());
        let damage = Vec::<u8>::take(&mut Input::bounded(&bytes, 4));
        assert_eq!(damage, Err(Damage { field: "count", at: 0 }));
    }
}
