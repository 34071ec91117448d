//! Lists of tokens, and the small bodies that hold one name.

use super::ReadError;
use super::TOKENS_MAX;
use super::field;
use super::order::SIDES;
use super::record::record;
use super::tape::Value;
use crate::domain::text::parse_uuid;
use crate::domain::{ApiKey, Side, TokenId};

/// One token that a list asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenAsk {
    /// The token.
    pub token: TokenId,
    /// The side, where a price is asked for.
    pub side: Option<Side>,
}

record! { Ask {
    token = "token_id",
    side = "side",
} }

record! { Beat {
    id = "heartbeat_id",
} }

record! { Key {
    key = "key",
} }

/// `[{"token_id": token, "side": side}, …]`, the side optional.
pub(super) fn list(body: Value<'_, '_>, asks: &mut Vec<TokenAsk>) -> Result<(), ReadError> {
    for item in field::items(body, 0, TOKENS_MAX)? {
        let ask = Ask::collect(item, "body")?;
        let side = match ask.side {
            value if value.is_empty() => None,
            value => Some(field::word_of(value, "side", &SIDES, "BUY or SELL")?),
        };
        asks.push(TokenAsk { token: field::token(ask.token, "token_id")?, side });
    }
    Ok(())
}

/// `{"heartbeat_id": uuid}`; absent, `null` or `""` for the first beat.
pub(super) fn heartbeat(body: Value<'_, '_>) -> Result<Option<ApiKey>, ReadError> {
    match Beat::collect(body, "body")?.id {
        value if value.is_empty() => Ok(None),
        value => uuid(value, "heartbeat_id").map(Some),
    }
}

/// `{"key": uuid}`.
pub(super) fn key(body: Value<'_, '_>) -> Result<ApiKey, ReadError> {
    uuid(Key::collect(body, "body")?.key, "key")
}

fn uuid(value: Value<'_, '_>, field: &'static str) -> Result<ApiKey, ReadError> {
    let read = match value {
        Value::Text(text) => parse_uuid(text.as_bytes()),
        _ => None,
    };
    read.ok_or_else(|| ReadError::payload(field, value, "a UUID"))
}
