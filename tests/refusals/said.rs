//! What a refusal must say, and that it changed nothing.

use super::Seen;
use outcry::domain::Reject;

/// The value and the bound that a refusal names on the row that provokes it; both are amounts as people write them.
const NAMED: [(Reject, &str); 5] = [
    (Reject::PriceOffTick, "Price (0.1000001) breaks minimum tick size rule: 0.01"),
    (Reject::PriceOutOfRange, "Price (1) is outside 0.01 to 0.99"),
    (Reject::SizeTooSmall, "Size (1) lower than the minimum: 5"),
    (Reject::TooManyOpenOrders, "of this owner: 2, max allowed: 1"),
    (Reject::AmountTooLarge, "Amount (2000000000000000) higher than the maximum: 1000000000000000"),
];

/// The field that a refusal names on the row that provokes it, and what is allowed there.
const RULES: [(Reject, &str, &str); 4] = [
    (Reject::OwnerMismatch, "owner", "the API key of the request"),
    (Reject::CancelScopeMissing, "body", "market, asset_id or both"),
    (Reject::ExpirationType, "expiration", "0"),
    (Reject::ExpirationTooLarge, "expiration", "seconds since 1970, below 100000000000"),
];

pub(super) fn check(reject: Reject, seen: &Seen, faults: &mut Vec<String>) {
    let answer = &seen.answer;
    let body = answer.json();
    let wire = reject.wire();
    let code = body["code"].as_str().or(body[0]["code"].as_str()).unwrap_or("");
    if (answer.status, code) != (wire.status, wire.code) {
        faults.push(format!(
            "{reject:?}: expected {} {}, got {} {body}",
            wire.status, wire.code, answer.status
        ));
    }
    let text = wire.error.split(['{', '$']).next().unwrap();
    if !body["error"].as_str().unwrap_or("").starts_with(text) {
        faults.push(format!("{reject:?}: {body} does not say {text}"));
    }
    let error = body["error"].as_str().unwrap_or("");
    let named = NAMED.iter().find(|(named, _)| *named == reject);
    if named.is_some_and(|(_, words)| !error.contains(words)) || error.contains("''") || error.contains("()")
    {
        faults.push(format!("{reject:?}: {error} does not name what was got and what is allowed"));
    }
    let has_bound = matches!(reject, Reject::TooOld | Reject::TooNew | Reject::Expired);
    if has_bound && body["allowed"].as_str().is_none_or(|bound| bound == "0") {
        faults.push(format!("{reject:?}: {body} does not say from when or until when"));
    }
    let rule = RULES.iter().find(|(named, ..)| *named == reject);
    if rule.is_some_and(|(_, field, allowed)| body["field"] != *field || body["allowed"] != *allowed) {
        faults.push(format!("{reject:?}: {body} does not say which field, and what it takes"));
    }
    // These requests are of Polymarket's family, whose clients match on the same text there.
    if !body["errorMsg"].as_str().unwrap_or(text).starts_with(text) {
        faults.push(format!("{reject:?}: {body} does not say {text}"));
    }
    if seen.after != seen.before {
        faults.push(format!("{reject:?}: the state changed"));
    }
}
