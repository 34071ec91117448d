//! The bodies of cancels, and other lists of order ids.

use super::ReadError;
use super::field;
use super::record::record;
use super::tape::Value;
use super::{CANCELS_MAX, ORDER_IDS_MAX};
use crate::domain::{ConditionId, OrderId, Reject, TokenId};
use crate::json::short::ShortText;

/// Up to this many ids, repeats are found by comparing all of them.
const FEW: usize = 16;

/// Which orders DELETE /cancel-market-orders cancels; if both market and token are named, both must fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CancelScope {
    /// The market, if it is named.
    pub market: Option<ConditionId>,
    /// The token, if it is named.
    pub token: Option<TokenId>,
}

record! { Named {
    upper = "orderID",
    lower = "orderId",
} }

record! { Scope {
    market = "market",
    asset_snake = "asset_id",
    asset_camel = "assetId",
} }

/// The names of a scope.
const SCOPES: [&str; 3] = ["market", "asset_id", "assetId"];

/// `{"orderID": id}` or `{"orderId": id}`.
pub(super) fn one(body: Value<'_, '_>) -> Result<OrderId, ReadError> {
    let named = Named::collect(body, "body")?;
    let value = either(named.upper, named.lower, "orderID")?;
    field::order_id(value, "orderID")
}

/// `[id, …]`.
pub(super) fn many(body: Value<'_, '_>, ids: &mut Vec<OrderId>) -> Result<(), ReadError> {
    for item in field::items(body, 0, CANCELS_MAX)? {
        ids.push(field::order_id(item, "orderID")?);
    }
    Ok(())
}

/// `[{"orderId": id}, …]`.
pub(super) fn wrapped(body: Value<'_, '_>, ids: &mut Vec<OrderId>) -> Result<(), ReadError> {
    for item in field::items(body, 1, ORDER_IDS_MAX)? {
        ids.push(one(item)?);
    }
    Ok(())
}

/// What other requests and streams call a token or a market.
const NAMES_ELSEWHERE: [&str; 5] = ["token_id", "token", "asset", "condition_id", "market_id"];

/// `{"market": condition, "asset_id": token}`, either or both; `{}` or empty values name no scope. An object that
/// names no scope but has other names is refused, and so is one that has a scope by another name: a misspelt scope must
/// not be taken for none, nor for a wider one.
pub(super) fn scope(body: Value<'_, '_>) -> Result<CancelScope, ReadError> {
    let scope = Scope::collect(body, "body")?;
    let names = [scope.market, scope.asset_snake, scope.asset_camel];
    if names.iter().all(Value::is_empty)
        && let Some((other, _)) = field::entries(body, "body")?.find(|(name, _)| !SCOPES.contains(name))
    {
        let got = ShortText::new(other);
        return Err(ReadError::of(Reject::CancelScopeMissing, "body", got, "market, asset_id or both"));
    }
    let is_elsewhere = |name: &str| field::misspelt(name, &NAMES_ELSEWHERE).is_some();
    if let Some((name, _)) = field::entries(body, "body")?.find(|(name, _)| is_elsewhere(name)) {
        let got = ShortText::new(name);
        return Err(ReadError::of(Reject::InvalidPayload, "body", got, "market, asset_id or both"));
    }
    let token = match either(scope.asset_snake, scope.asset_camel, "asset_id")? {
        value if value.is_empty() => None,
        value => Some(field::token(value, "asset_id")?),
    };
    Ok(CancelScope { market: field::condition(scope.market, "market")?, token })
}

/// The one of two spellings that is there; both at once are refused, like one of them twice.
fn either<'t, 'b>(
    first: Value<'t, 'b>,
    second: Value<'t, 'b>,
    field: &'static str,
) -> Result<Value<'t, 'b>, ReadError> {
    match (first.is_absent(), second.is_absent()) {
        (false, false) => {
            Err(ReadError::of(Reject::InvalidPayload, field, ShortText::new("two spellings"), "one of them"))
        }
        (true, false) => Ok(second),
        _ => Ok(first),
    }
}

/// Keeps the first of equal ids, in order. `places` is scratch memory.
pub(super) fn drop_repeats(ids: &mut Vec<OrderId>, places: &mut Vec<(OrderId, u16)>) {
    debug_assert!(ids.len() <= CANCELS_MAX);
    if ids.len() <= FEW {
        let mut kept = 0;
        for at in 0..ids.len() {
            let id = ids[at];
            if !ids[..kept].contains(&id) {
                ids[kept] = id;
                kept += 1;
            }
        }
        ids.truncate(kept);
        return;
    }
    places.clear();
    places.extend((0_u16..).zip(ids.iter()).map(|(place, id)| (*id, place)));
    places.sort_unstable();
    places.dedup_by_key(|(id, _)| *id);
    places.sort_unstable_by_key(|(_, place)| *place);
    ids.clear();
    ids.extend(places.iter().map(|(id, _)| *id));
}
