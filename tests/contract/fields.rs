//! The fields of every resource of the interface, by their types.
//!
//! A table is a list of types, each with the names of the fields that have it, as the interface
//! lists them. [`complaints`] compares a value with a table: each field must be there, and of its
//! type.

use crate::common::schema::is_formatted;
use serde_json::Value;

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A text in RFC 3339.
    Instant,
    /// A text in RFC 3339, or `null`, because strict clients do not accept an empty date.
    InstantOrNull,
    /// A text of one of these words.
    Word(&'static [&'static str]),
    /// An array of texts.
    Texts,
    /// An object from texts to texts.
    TextsByText,
    /// An object of anything.
    Anything,
    /// An object with these fields.
    Object(Fields),
    /// An array of objects with these fields. It must not be empty, or nothing was checked.
    Objects(Fields),
}

/// Types, each with the names of its fields.
pub(crate) type Fields = &'static [(Kind, &'static str)];

use Kind::{
    Anything, Boolean, Instant, InstantOrNull, Integer, Number, Object, Objects, Text, Texts, TextsByText,
    Word,
};

const SIDES: &[&str] = &["BUY", "SELL"];

/// 2.2
pub(crate) const ORDER_RESULT: Fields =
    &[(Boolean, "success"), (Text, "errorMsg orderID takingAmount makingAmount status orderHash")];

/// 2.2, of an order that was refused: `orderHash` is for orders whose digest is known by then.
pub(crate) const ORDER_REFUSED: Fields =
    &[(Boolean, "success"), (Text, "errorMsg orderID takingAmount makingAmount status")];

/// 2.3
pub(crate) const ORDER: Fields = &[
    (Texts, "associateTrades"),
    (Text, "id status market originalSize outcome makerAddress owner price sizeMatched assetId expiration"),
    (Word(SIDES), "side"),
    (Word(&["GTC", "GTD", "FOK", "FAK"]), "order_type"),
    (Instant, "createdAt"),
];

/// 2.4
pub(crate) const TRADE: Fields = &[
    (Text, "id taker_order_id market asset_id size fee_rate_bps price outcome maker_address owner"),
    (Text, "transaction_hash"),
    (Word(SIDES), "side"),
    (Word(&["MATCHED"]), "status"),
    (Word(&["TAKER", "MAKER"]), "type"),
    (Instant, "match_time last_update"),
    (Integer, "bucket_index"),
    (Objects(MAKER_ORDER), "maker_orders"),
];

const MAKER_ORDER: Fields = &[
    (Text, "order_id maker_address owner matched_amount fee_rate_bps price asset_id outcome"),
    (Word(SIDES), "side"),
];

/// 2.5
pub(crate) const CANCEL_RESULT: Fields = &[(Texts, "canceled"), (TextsByText, "not_canceled")];

/// 2.6
pub(crate) const BOOK: Fields = &[
    (Text, "market asset_id timestamp hash min_order_size tick_size last_trade_price"),
    (Objects(LEVEL), "bids asks"),
    (Boolean, "neg_risk"),
];

const LEVEL: Fields = &[(Text, "price size")];

/// 2.7
pub(crate) const LAST_TRADE: Fields = &[(Text, "token_id price"), (Word(SIDES), "side")];

/// 2.8
pub(crate) const FEE_RATE: Fields = &[
    (Number, "base_fee"),
    (Object(&[(Number, "r e"), (Boolean, "to")]), "fd"),
    (Object(FEE_SCHEDULE), "fee_schedule"),
];

const FEE_SCHEDULE: Fields = &[
    (Number, "rate exponent rebateRate"),
    (Boolean, "takerOnly"),
    (Text, "category"),
    (Integer, "version"),
    (Word(&["local"]), "source"),
];

/// 2.9
pub(crate) const CLOB_MARKET: Fields = &[
    (Boolean, "enable_order_book active closed archived accepting_orders neg_risk notifications_enabled"),
    (Boolean, "is_50_50_outcome"),
    (InstantOrNull, "accepting_order_timestamp end_date_iso game_start_time"),
    (Number, "minimum_order_size minimum_tick_size maker_base_fee taker_base_fee"),
    (Integer, "market_id seconds_delay"),
    (Text, "condition_id status question_id question slug description market_slug fpmm"),
    (Text, "neg_risk_market_id neg_risk_request_id icon image"),
    (Object(REWARDS), "rewards"),
    (Objects(MARKET_TOKEN), "tokens"),
    (Texts, "tags assets_ids outcomes"),
    (Object(&[(Text, "id slug title ticker description")]), "event"),
    (Anything, "raw_metadata"),
];

const REWARDS: Fields = &[
    (Objects(&[(Text, "asset_address"), (Number, "rewards_daily_rate")]), "rates"),
    (Number, "min_size max_spread"),
];

const MARKET_TOKEN: Fields = &[(Text, "token_id outcome"), (Number, "price"), (Boolean, "winner")];

/// 2.10
pub(crate) const SIMPLIFIED_MARKET: Fields = &[
    (Text, "condition_id status question slug"),
    (Boolean, "neg_risk active closed archived accepting_orders"),
    (Integer, "market_id"),
    (Objects(MARKET_TOKEN), "tokens"),
    (Object(REWARDS), "rewards"),
    (Texts, "assets_ids outcomes"),
];

/// 2.11, around items that have a table of their own.
pub(crate) const PAGE: Fields = &[(Objects(&[]), "data"), (Text, "next_cursor"), (Integer, "limit count")];

/// 2.12
pub(crate) const CATALOG_MARKET: Fields = &[
    (Text, "id question conditionId slug resolutionSource image icon description questionID"),
    (Instant, "startDate endDate createdAt updatedAt"),
    (Text, "outcomes clobTokenIds"),
    (Boolean, "active closed archived"),
];

/// 2.12, of a single market.
pub(crate) const CATALOG_MARKET_EVENTS: Fields = &[(Objects(EVENT_SUMMARY), "events")];

/// 2.13 in its summary form.
pub(crate) const EVENT_SUMMARY: Fields = &[
    (Text, "id ticker slug title description resolutionSource image icon"),
    (Instant, "startDate creationDate endDate createdAt updatedAt"),
    (Boolean, "active closed archived"),
];

/// 2.13, what a single event adds.
pub(crate) const EVENT_MORE: Fields = &[
    (Objects(TAG), "tags"),
    (Objects(CATALOG_MARKET), "markets"),
    (Objects(SERIES_SUMMARY), "series"),
    (Anything, "eventMetadata"),
];

/// 2.13, an item of a list: without `creationDate`.
pub(crate) const LISTED_EVENT: Fields = &[
    (Text, "id ticker slug title description resolutionSource image icon"),
    (Instant, "startDate endDate createdAt updatedAt"),
    (Boolean, "active closed archived"),
    (Objects(TAG), "tags"),
];

/// 2.14
pub(crate) const TAG: Fields =
    &[(Text, "id label slug"), (Instant, "createdAt updatedAt"), (Boolean, "requiresTranslation")];

const SERIES_SUMMARY: Fields = &[
    (Text, "id ticker slug title seriesType recurrence image icon"),
    (Boolean, "active closed archived"),
    (Instant, "createdAt updatedAt"),
];

/// 2.15
pub(crate) const SERIES: Fields = &[
    (Text, "id ticker slug title seriesType recurrence image icon"),
    (Boolean, "active closed archived"),
    (Instant, "createdAt updatedAt"),
    (Objects(EVENT_SUMMARY), "events"),
];

/// 2.16
pub(crate) const CREATOR: Fields =
    &[(Text, "id creatorName creatorHandle creatorUrl creatorImage"), (Instant, "createdAt updatedAt")];

/// 2.17
pub(crate) const SEARCH_RESULT: Fields = &[
    (Objects(&[(Text, "id ticker slug title")]), "events"),
    (Objects(&[(Text, "id label slug"), (Integer, "event_count")]), "tags"),
    (Object(&[(Boolean, "hasMore"), (Integer, "totalResults")]), "pagination"),
];

/// 2.19: 2.18 without `negativeRisk`.
pub(crate) const CLOSED_POSITION: Fields = &[
    (Text, "proxyWallet asset conditionId"),
    (Number, "size avgPrice initialValue currentValue cashPnl percentPnl totalBought realizedPnl"),
    (Number, "percentRealizedPnl curPrice"),
    (Boolean, "redeemable mergeable"),
    (Text, "title slug icon eventSlug outcome oppositeOutcome oppositeAsset"),
    (Integer, "outcomeIndex timestamp"),
    (Instant, "endDate"),
];

/// 2.18, what it has besides 2.19.
pub(crate) const POSITION_MORE: Fields = &[(Boolean, "negativeRisk")];

/// 2.20
pub(crate) const ACTIVITY: Fields = &[
    (Text, "proxyWallet conditionId type transactionHash asset"),
    (Integer, "timestamp outcomeIndex"),
    (Number, "size usdcSize price"),
    (Word(&["BUY", "SELL", ""]), "side"),
    (Text, "title slug icon eventSlug outcome name pseudonym bio profileImage profileImageOptimized"),
];

/// 2.21
pub(crate) const HOLDERS: Fields = &[(Text, "token"), (Objects(HOLDER), "holders")];

const HOLDER: Fields = &[
    (Text, "proxyWallet bio asset pseudonym name profileImage profileImageOptimized"),
    (Number, "amount"),
    (Boolean, "displayUsernamePublic"),
    (Integer, "outcomeIndex"),
];

/// 7
pub(crate) const ERROR: Fields = &[(Text, "error")];

/// What in `value` does not fit `fields`, by name.
pub(crate) fn complaints(fields: Fields, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(fields, value, "", &mut found);
    found
}

fn check(fields: Fields, value: &Value, at: &str, found: &mut Vec<String>) {
    if !value.is_object() {
        found.push(format!("{at}: is no object but {value}"));
        return;
    }
    for (kind, names) in fields {
        for name in names.split_ascii_whitespace() {
            let at = format!("{at}/{name}");
            match value.get(name) {
                None => found.push(format!("{at}: is missing")),
                Some(value) => check_kind(*kind, value, &at, found),
            }
        }
    }
}

fn check_kind(kind: Kind, value: &Value, at: &str, found: &mut Vec<String>) {
    let is_instant = |value: &Value| value.is_string() && is_formatted(value, "date-time");
    let fits = match kind {
        Kind::Text => value.is_string(),
        Kind::Integer => value.is_u64() || value.is_i64(),
        Kind::Number => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::Instant => is_instant(value),
        Kind::InstantOrNull => value.is_null() || is_instant(value),
        Kind::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Kind::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        Kind::TextsByText => value.as_object().is_some_and(|fields| fields.values().all(Value::is_string)),
        Kind::Anything => value.is_object(),
        Kind::Object(fields) => return check(fields, value, at, found),
        Kind::Objects(fields) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                check(fields, item, &format!("{at}/{index}"), found);
            }
            !items.is_empty()
        }
    };
    if !fits {
        found.push(format!("{at}: is to be {kind:?}, is {value}"));
    }
}
