//! The body of POST /replace.

use super::record::record;
use super::tape::Value;
use super::{ORDERS_MAX, REPLACED_MAX, ReadError, field, order};
use crate::domain::{OrderId, SignedOrder};

record! { Replacing {
    cancel = "cancel",
    place = "place",
    if_gone = "ifGone",
} }

/// `{"cancel": [id, …], "place": [order, …], "ifGone": "refuse" or "place"}`; returns whether to
/// place even if an order to cancel is gone.
pub(super) fn read(
    body: Value<'_, '_>,
    ids: &mut Vec<OrderId>,
    orders: &mut Vec<Result<SignedOrder, ReadError>>,
) -> Result<bool, ReadError> {
    const WORDS: [(&str, bool); 2] = [("refuse", false), ("place", true)];
    let replacing = Replacing::collect(body, "body")?;
    if !replacing.cancel.is_absent() {
        for id in field::items_of("cancel", replacing.cancel, 0, REPLACED_MAX)? {
            ids.push(field::order_id(id, "cancel")?);
        }
    }
    orders.extend(field::items_of("place", replacing.place, 1, ORDERS_MAX)?.map(order::read));
    if replacing.if_gone.is_absent() {
        return Ok(false);
    }
    field::word_of(replacing.if_gone, "ifGone", &WORDS, "refuse or place")
}
