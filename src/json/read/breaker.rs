//! The body of POST /breaker.

use super::record::record;
use super::tape::Value;
use super::{ReadError, field};
use crate::domain::Shares;
use crate::json::decimal;

record! { Breaker {
    quantity = "quantity",
    interval_ms = "interval_ms",
} }

/// `{"quantity": shares, "interval_ms": milliseconds}`; shares as a decimal text or a whole number.
pub(super) fn read(body: Value<'_, '_>) -> Result<(Shares, u64), ReadError> {
    const ALLOWED: &str = "shares above 0 with at most six decimals, as text";
    let breaker = Breaker::collect(body, "body")?;
    let quantity = match breaker.quantity {
        Value::Text(text) => decimal::parse_millionths(text.as_bytes()).ok(),
        Value::Integer(number) => number.checked_mul(crate::domain::amount::ONE),
        _ => None,
    };
    let quantity = quantity.filter(|quantity| *quantity != 0);
    let quantity = quantity.ok_or_else(|| ReadError::payload("quantity", breaker.quantity, ALLOWED))?;
    Ok((Shares(quantity), field::integer(breaker.interval_ms, "interval_ms")?))
}
