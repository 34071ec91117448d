//! The errors of reads and streams, for the catalogue of errors. Refusals of trading acts have a table
//! of their own, [`crate::domain::Reject`].
//!
//! A code is written beside its rule, with the field, the value and what is allowed; its meaning to a
//! client is here. `tests/errors.rs` searches this room for codes that are missing here.

/// One code. Its `error` text is empty where the answer names the field instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The HTTP status; for an error on a stream, the one that it would have.
    pub status: u16,
    /// The machine-readable code.
    pub code: &'static str,
    /// The `error` text.
    pub error: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

macro_rules! errors {
    ($( $status:literal, $code:literal, $error:literal: $meaning:literal; )*) => {
        /// Every code that a read or a stream's message may be answered with.
        pub const ERRORS: &[ReadError] =
            &[ $( ReadError { status: $status, code: $code, error: $error, meaning: $meaning }, )* ];
    };
}

errors! {
    503, "behind", "the read model is behind, try again": "What was acknowledged before the request is not applied yet.";
    400, "invalid_token_id", "Invalid token id": "A needed token is missing, or COLLATERAL is asked for with one that is no uint256 in decimal. Where a token is needed, such a one is unknown (404).";
    400, "invalid_market", "Invalid market": "The condition is not 0x and 64 hex digits.";
    400, "invalid_side", "Invalid side": "The side is missing, or neither BUY nor SELL.";
    400, "invalid_cursor", "Invalid next_cursor": "The cursor is not one of ours, nor base64 of an offset.";
    400, "invalid_parameter", "Invalid parameter": "The named parameter is not of its kind.";
    400, "invalid_payload", "Invalid payload": "The body is not what the route takes.";
    400, "invalid_order_params", "invalid order params payload": "A filter of the list of orders is not of its kind.";
    400, "invalid_trade_params", "Invalid trade params payload": "A filter of the list of trades is not of its kind.";
    400, "invalid_asset_type", "Invalid asset type": "Neither COLLATERAL nor CONDITIONAL.";
    400, "invalid_order_id", "Invalid orderID": "The order is not 0x and 64 hex digits.";
    400, "payload_exceeds_limit", "Payload exceeds the limit": "More is asked for than one answer holds.";
    400, "account_too_large", "the account has more than one answer holds": "Ask for the account market by market.";
    404, "orderbook_unknown", "No orderbook exists for the requested token id": "The token is unknown, or its market has no book any more.";
    404, "market_unknown", "market not found": "No market has this condition or token.";
    404, "order_unknown", "order not found": "The caller has no such order.";
    404, "no_price", "no orders on that side of the book": "There is no best price.";
    404, "no_midpoint", "no orders on one side of the book": "There is no middle and no spread.";
    404, "no_trade", "no trade of the requested token id": "It was never traded.";
    404, "not_found", "not found": "Nothing has this id or slug, or there is no such route.";
    400, "missing_parameter", "": "The named parameter is needed.";
    400, "answer_too_long", "the answer is too long": "It would have more than 16 MiB: ask for less.";
    400, "unknown_field", "": "A wallet route does not know this name in the query.";
    400, "missing_field", "": "A wallet route needs this name in the query.";
    400, "invalid_field", "": "A wallet route's parameter is not of its kind, or stands twice.";
    400, "too_many_rows", "": "Only the newest million rows are looked at, of several markets the newest 100,000: narrow the request.";
    400, "not_implemented", "": "Markets have no categories here: OVERALL alone is answered.";
    500, "history_unreadable", "part of the history cannot be read": "A row on the disk is damaged; the operator's log says which.";
    503, "search_building", "the search index is being built": "After a start: Retry-After estimates how long.";
    503, "search_busy", "search is busy, try again": "More searches wait than are answered within two seconds.";
    401, "unauthorized", "Unauthorized/Invalid api key": "A user stream's credentials are nobody's or missing, or those of a read-only key; it closes with 1008.";
    400, "invalid_message", "": "What a stream was told is no JSON object, or a name in it is not of its kind.";
    400, "too_many_subscriptions", "too many subscriptions on one connection": "At most 500 tokens on a market stream, where a market has two, and 500 markets on a user stream.";
    400, "too_many_subscriptions", "too many names in one message": "At most 500, of tokens and markets together, also to leave them.";
    501, "rfq_not_supported", "requests for quotes are not supported here: place an order in the book": "There are no quotes on request.";
    501, "builder_keys_not_supported", "builder keys are not supported here: orders carry their builder's code without one": "There are no builder keys.";
    404, "builder_key_unknown", "there is no builder key to be revoked": "There are no builder keys.";
    400, "too_many_streams", "too many streams of one account": "At most 32 at a time.";
}
