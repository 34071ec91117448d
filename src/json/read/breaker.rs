//! The body of POST /breaker.

use super::record::record;
use super::tape::Value;
use super::{ReadError, field};
use crate::domain::Shares;
use crate::json::decimal::{self, NotDecimal};

record! { Breaker {
    quantity = "quantity",
    interval_ms = "interval_ms",
} }

/// `{"quantity": shares, "interval_ms": milliseconds}`; shares as a decimal text or a whole number. More than can be said
/// in millionths is read as the most that can, which whoever sets a breaker refuses with its own bound.
pub(super) fn read(body: Value<'_, '_>) -> Result<(Shares, u64), ReadError> {
    const ALLOWED: &str = "shares above 0, whole or as text with at most six decimals";
    let breaker = Breaker::collect(body, "body")?;
    let quantity = match breaker.quantity {
        Value::Text(text) => match decimal::parse_millionths(text.as_bytes()) {
            Err(NotDecimal::TooLarge) => Some(u64::MAX),
            read => read.ok(),
        },
        Value::Integer(number) => Some(number.saturating_mul(crate::domain::amount::ONE)),
        Value::LargeInteger => Some(u64::MAX),
        _ => None,
    };
    let quantity = quantity.filter(|quantity| *quantity != 0);
    let quantity = quantity.ok_or_else(|| ReadError::payload("quantity", breaker.quantity, ALLOWED))?;
    let interval_ms = field::integer(breaker.interval_ms, "interval_ms")
        .map_err(|wrong| ReadError { allowed: "1 to 86400000, in milliseconds", ..wrong })?;
    Ok((Shares(quantity), interval_ms))
}
