//! The rules for single fields: what each kind takes, and how it refuses.

use super::ReadError;
use super::tape::{Entries, Items, Value};
use crate::domain::amount::ORDER_AMOUNT_MAX;
use crate::domain::text::parse_hex;
use crate::domain::{Address, ConditionId, OrderId, Reject, TokenId, Word};
use crate::json::decimal::{self, NotDecimal};
use crate::json::short::ShortText;

/// The entries of an object.
pub(super) fn entries<'t, 'b>(
    value: Value<'t, 'b>,
    field: &'static str,
) -> Result<Entries<'t, 'b>, ReadError> {
    match value {
        Value::Object(entries) => Ok(entries),
        other => Err(ReadError::payload(field, other, "an object")),
    }
}

/// The items of an array of `count_min` to `count_max`.
pub(super) fn items<'t, 'b>(
    value: Value<'t, 'b>,
    count_min: usize,
    count_max: usize,
) -> Result<Items<'t, 'b>, ReadError> {
    items_of("body", value, count_min, count_max)
}

/// The items of the array `field`.
pub(super) fn items_of<'t, 'b>(
    field: &'static str,
    value: Value<'t, 'b>,
    count_min: usize,
    count_max: usize,
) -> Result<Items<'t, 'b>, ReadError> {
    let Value::Array(items) = value else {
        return Err(ReadError::payload(field, value, "an array"));
    };
    let count = items.count_left();
    let got = ShortText::integer(count as u64);
    if count > count_max {
        return Err(ReadError::of(Reject::TooManyOrders, field, got, count_text(count_max)));
    }
    if count < count_min {
        return Err(ReadError::of(Reject::InvalidPayload, field, got, "at least one item"));
    }
    Ok(items)
}

/// The texts of the limits that [`items_of`] is called with.
fn count_text(count_max: usize) -> &'static str {
    match count_max {
        super::ORDERS_MAX => "15",
        super::REPLACED_MAX => "60",
        super::ORDER_IDS_MAX => "500",
        super::CANCELS_MAX => "3000",
        _ => unreachable!("every list's limit has its text"),
    }
}

const _: () = assert!(super::TOKENS_MAX == super::ORDER_IDS_MAX, "a list of tokens has the same text");

/// Fills a slot that must still be empty.
pub(super) fn put_once<'t, 'b>(
    slot: &mut Value<'t, 'b>,
    value: Value<'t, 'b>,
    field: &'static str,
) -> Result<(), ReadError> {
    if !matches!(slot, Value::Absent) {
        return Err(ReadError::of(Reject::InvalidPayload, field, ShortText::new("twice"), "once"));
    }
    *slot = value;
    Ok(())
}

/// Names of one object that nobody reads: each is compared with all that somebody does, and a body of nothing else is to
/// cost little more.
const OTHERS_MAX: u32 = 32;

/// Longer than any name that somebody reads, in whatever spelling.
const MISSPELT_BYTES_MAX: usize = 32;

/// Judges the `count`th name of an object that is none of `known`: it is refused if it is one of them but for case, `_`
/// and `-`, or if there were too many before it.
#[cold]
pub(super) fn judge_other(
    (name, count): (&str, u32),
    field: &'static str,
    known: &[&'static str],
) -> Result<(), ReadError> {
    let refused =
        |field, allowed| Err(ReadError::of(Reject::InvalidPayload, field, ShortText::new(name), allowed));
    match misspelt(name, known) {
        Some(meant) => refused(meant, meant),
        None if OTHERS_MAX < count => refused(field, "at most 32 unknown names"),
        None => Ok(()),
    }
}

/// The one of `known` that `name` is but for case, `_` and `-`.
pub(crate) fn misspelt(name: &str, known: &[&'static str]) -> Option<&'static str> {
    fn letters(name: &str) -> impl Iterator<Item = u8> {
        name.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase())
    }
    let is_long = MISSPELT_BYTES_MAX < name.len();
    known.iter().copied().find(|known| !is_long && letters(known).eq(letters(name)))
}

/// A uint256: a whole number up to `u64::MAX`, or up to 78 digits as text.
pub(super) fn uint256(value: Value<'_, '_>, field: &'static str) -> Result<[u8; 32], ReadError> {
    let read = match value {
        Value::Text(text) => decimal::parse_uint256(text.as_bytes()).ok(),
        Value::Integer(number) => {
            let mut bytes = [0; 32];
            bytes[24..].copy_from_slice(&number.to_be_bytes());
            Some(bytes)
        }
        _ => None,
    };
    read.ok_or_else(|| {
        ReadError::payload(
            field,
            value,
            "a whole number below 2^256, of at most 78 digits; from 2^64 on as text",
        )
    })
}

/// A token's id.
pub(super) fn token(value: Value<'_, '_>, field: &'static str) -> Result<TokenId, ReadError> {
    uint256(value, field).map(TokenId)
}

/// A `u64`, as a number or as digits.
pub(super) fn integer(value: Value<'_, '_>, field: &'static str) -> Result<u64, ReadError> {
    let read = match value {
        Value::Text(text) => decimal::parse_integer(text.as_bytes()).ok(),
        Value::Integer(number) => Some(number),
        _ => None,
    };
    read.ok_or_else(|| ReadError::payload(field, value, "a whole number below 2^64, without a point"))
}

/// An amount in millionths, up to [`ORDER_AMOUNT_MAX`]. Beyond `u64` it is too large rather than malformed.
pub(super) fn amount(value: Value<'_, '_>, field: &'static str) -> Result<u64, ReadError> {
    const LARGEST: &str = "1000000000000000";
    let beyond = || match value {
        Value::Text(text) => decimal::parse_integer(text.as_bytes()) == Err(NotDecimal::TooLarge),
        Value::LargeInteger => true,
        _ => false,
    };
    match integer(value, field) {
        Ok(amount) if amount <= ORDER_AMOUNT_MAX => Ok(amount),
        Err(malformed) if !beyond() => Err(malformed),
        Ok(_) | Err(_) => Err(ReadError::of(Reject::AmountTooLarge, field, value.short(), LARGEST)),
    }
}

/// An address in hex, in any case.
pub(super) fn address(value: Value<'_, '_>, field: &'static str) -> Result<Address, ReadError> {
    hex(value, field, "0x and 40 hex digits").map(Address)
}

/// 32 bytes in hex; absent or `""` is zero.
pub(super) fn word_or_zero(value: Value<'_, '_>, field: &'static str) -> Result<Word, ReadError> {
    if value.is_empty() { Ok(Word::ZERO) } else { hex(value, field, "0x and 64 hex digits").map(Word) }
}

/// A market's condition id; absent or `""` is none.
pub(super) fn condition(value: Value<'_, '_>, field: &'static str) -> Result<Option<ConditionId>, ReadError> {
    if value.is_empty() {
        return Ok(None);
    }
    hex(value, field, "0x and 64 hex digits").map(|bytes| Some(ConditionId(bytes)))
}

/// An order's id.
pub(super) fn order_id(value: Value<'_, '_>, field: &'static str) -> Result<OrderId, ReadError> {
    hex(value, field, "0x and 64 hex digits")
        .map(OrderId)
        .map_err(|error| ReadError { reject: Reject::OrderIdInvalid, ..error })
}

/// `true` or `false`; absent is `false`.
pub(super) fn flag(value: Value<'_, '_>, field: &'static str) -> Result<bool, ReadError> {
    match value {
        Value::Boolean(flag) => Ok(flag),
        _ if value.is_absent() => Ok(false),
        _ => Err(ReadError::payload(field, value, "true or false")),
    }
}

/// One of a few words, in any case.
pub(super) fn word_of<T: Copy>(
    value: Value<'_, '_>,
    field: &'static str,
    words: &[(&str, T)],
    allowed: &'static str,
) -> Result<T, ReadError> {
    if let Value::Text(text) = value
        && let Some((_, meaning)) = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word))
    {
        return Ok(*meaning);
    }
    Err(ReadError::payload(field, value, allowed))
}

fn hex<const BYTES: usize>(
    value: Value<'_, '_>,
    field: &'static str,
    allowed: &'static str,
) -> Result<[u8; BYTES], ReadError> {
    let read = match value {
        Value::Text(text) => parse_hex(text.as_bytes()),
        _ => None,
    };
    read.ok_or_else(|| ReadError::payload(field, value, allowed))
}
