//! The body of an order: what was signed, and what is sent along.

use super::ReadError;
use super::field;
use super::record::record;
use super::tape::Value;
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::text::{parse_hex_into, parse_uuid};
use crate::domain::{
    ApiKey, OrderFields, OrderType, Reject, SelfTrade, Side, SignatureType, SignedOrder, Word,
};
use crate::json::name;
use crate::json::short::ShortText;

record! { Envelope {
    order = "order",
    owner = "owner",
    order_type = "orderType",
    post_only = "postOnly",
    defer_exec = "deferExec",
    self_trade = "selfTrade",
} }

record! { Signed {
    salt = "salt",
    maker = "maker",
    signer = "signer",
    token = "tokenId",
    maker_amount = "makerAmount",
    taker_amount = "takerAmount",
    side = "side",
    signature_type = "signatureType",
    timestamp = "timestamp",
    metadata = "metadata",
    builder = "builder",
    expiration = "expiration",
    signature = "signature",
    condition = "conditionId",
    nonce = "nonce",
    fee_rate = "feeRateBps",
} }

/// Reads one order. Each field is judged by itself, in the order in which they are signed; whether
/// they fit each other is judged later.
pub(super) fn read(body: Value<'_, '_>) -> Result<SignedOrder, ReadError> {
    let envelope = Envelope::collect(body, "body")?;
    let order = Signed::collect(envelope.order, "order")?;
    check_version(&order)?;
    let fields = fields(&order)?;
    let (signature, signature_len) = signature(order.signature, "65 or 317 bytes")?;
    // Deferring the execution makes no difference here: it is over before the answer.
    let _: bool = field::flag(envelope.defer_exec, "deferExec")?;
    Ok(SignedOrder {
        fields,
        signature,
        signature_len,
        expiration_s: expiration(order.expiration)?,
        deadline_ms: 0,
        order_type: order_type(envelope.order_type)?,
        post_only: field::flag(envelope.post_only, "postOnly")?,
        self_trade: self_trade(envelope.self_trade)?,
        condition: field::condition(order.condition, "conditionId")?,
        owner: owner(envelope.owner)?,
    })
}

/// Orders of the first version were signed with a nonce and a fee rate and without a timestamp.
/// Their clients look for this one refusal, read the version and sign again.
fn check_version(order: &Signed<'_, '_>) -> Result<(), ReadError> {
    let version = |field, got: &Value<'_, '_>| {
        Err(ReadError::of(Reject::OrderVersionMismatch, field, got.short(), "an order of version 2"))
    };
    if !order.nonce.is_absent() {
        return version("nonce", &order.nonce);
    }
    if !order.fee_rate.is_absent() {
        return version("feeRateBps", &order.fee_rate);
    }
    if order.timestamp.is_absent() {
        return version("timestamp", &order.timestamp);
    }
    Ok(())
}

fn fields(order: &Signed<'_, '_>) -> Result<OrderFields, ReadError> {
    Ok(OrderFields {
        salt: field::uint256(order.salt, "salt").map(Word)?,
        maker: field::address(order.maker, "maker")?,
        signer: field::address(order.signer, "signer")?,
        token: field::token(order.token, "tokenId")?,
        maker_amount: field::amount(order.maker_amount, "makerAmount")?,
        taker_amount: field::amount(order.taker_amount, "takerAmount")?,
        side: field::word_of(order.side, "side", &SIDES, "BUY or SELL")?,
        signature_type: signature_type(order.signature_type)?,
        timestamp_ms: field::integer(order.timestamp, "timestamp")?,
        metadata: field::word_or_zero(order.metadata, "metadata")?,
        builder: field::word_or_zero(order.builder, "builder")?,
    })
}

pub(super) const SIDES: [(&str, Side); 2] = [("BUY", Side::Buy), ("SELL", Side::Sell)];

fn order_type(value: Value<'_, '_>) -> Result<OrderType, ReadError> {
    const TYPES: [(&str, OrderType); 4] =
        [("GTC", OrderType::Gtc), ("FOK", OrderType::Fok), ("GTD", OrderType::Gtd), ("FAK", OrderType::Fak)];
    field::word_of(value, "orderType", &TYPES, "GTC, GTD, FOK or FAK")
}

fn self_trade(value: Value<'_, '_>) -> Result<SelfTrade, ReadError> {
    const RULES: [(&str, SelfTrade); 3] = [
        ("expire_taker", SelfTrade::ExpireTaker),
        ("expire_maker", SelfTrade::ExpireMaker),
        ("expire_both", SelfTrade::ExpireBoth),
    ];
    if value.is_empty() {
        return Ok(SelfTrade::default());
    }
    field::word_of(value, "selfTrade", &RULES, "expire_taker, expire_maker or expire_both")
}

pub(super) fn signature_type(value: Value<'_, '_>) -> Result<SignatureType, ReadError> {
    let byte = match value {
        Value::Integer(number) => u8::try_from(number).ok(),
        _ => None,
    };
    byte.and_then(SignatureType::from_byte)
        .ok_or_else(|| ReadError::payload("signatureType", value, "0, 1, 2 or 3"))
}

/// A signature of any length up to the longest; whether the length fits its type is judged later.
pub(super) fn signature(
    value: Value<'_, '_>,
    allowed: &'static str,
) -> Result<([u8; SIGNATURE_BYTES_MAX], u16), ReadError> {
    const FIELD: &str = "signature";
    let Value::Text(text) = value else {
        return Err(ReadError::payload(FIELD, value, "0x and hex digits"));
    };
    let mut bytes = [0; SIGNATURE_BYTES_MAX];
    match parse_hex_into(text.as_bytes(), &mut bytes) {
        Some(length) => Ok((bytes, u16::try_from(length).expect("at most SIGNATURE_BYTES_MAX"))),
        None if is_long_hex(text) => {
            let got = ShortText::new(text);
            Err(ReadError::of(Reject::SignatureInvalid, FIELD, got, allowed))
        }
        None => Err(ReadError::payload(FIELD, value, "0x and hex digits")),
    }
}

fn is_long_hex(text: &str) -> bool {
    text.len() > 2 + 2 * SIGNATURE_BYTES_MAX
        && text.starts_with("0x")
        && text.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit())
}

/// Unix seconds; 0, `""` or absent means never.
fn expiration(value: Value<'_, '_>) -> Result<u64, ReadError> {
    if value.is_empty() { Ok(0) } else { field::integer(value, "expiration") }
}

/// The API key that posts the order. A text that is no key cannot be the caller's.
fn owner(value: Value<'_, '_>) -> Result<ApiKey, ReadError> {
    let Value::Text(text) = value else {
        return Err(ReadError::payload("owner", value, "the API key of the request"));
    };
    parse_uuid(text.as_bytes()).or_else(|| name::parse_ulid(text.as_bytes())).ok_or_else(|| {
        ReadError::of(Reject::OwnerMismatch, "owner", value.short(), "the API key of the request")
    })
}
