//! Request bodies, read into plain values.
//!
//! A body is parsed once onto a tape (`parse`) and walked there as values (`tape`), its object is
//! spread over a record with one slot for each name that we know (`record`), and each slot is
//! read by its own rule (`field`). A few names that we do not know are passed over, names that stand
//! twice are refused: two parsers would choose differently. `null` is the same as absent.
//!
//! The parser rewrites the body in place, so a check of its signed bytes must come first. Buffers
//! are taken at start and reused; a body within [`CANCELS_MAX`] ids, the longest list there is, allocates
//! nothing.

mod act;
mod breaker;
mod cancel;
mod field;
mod order;
mod parse;
mod record;
mod replace;
mod tape;
mod token;

#[cfg(test)]
mod tests;

pub use act::SignedAct;
pub use cancel::CancelScope;
pub(crate) use field::misspelt;
pub use token::TokenAsk;

use super::answer::Refusal;
use super::short::ShortText;
use crate::domain::{ApiKey, OrderId, Reject, Shares, SignedOrder};
use parse::NotJson;
use tape::{TapeReader, Value};

/// Orders in one POST /orders.
pub const ORDERS_MAX: usize = 15;

/// Ids in one DELETE /orders or POST /orders-scoring.
pub const CANCELS_MAX: usize = 3_000;

/// Ids that one POST /replace cancels.
pub const REPLACED_MAX: usize = 60;

/// Ids in one POST /data/orders.
pub const ORDER_IDS_MAX: usize = 500;

/// Tokens in one POST /books, /prices, …
pub const TOKENS_MAX: usize = 500;

/// Why a body, or an item of it, was not taken. Carried by value, without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The refusal.
    pub reject: Reject,
    /// The field at fault; `""` for the body itself.
    pub field: &'static str,
    /// What was sent there, shortened.
    pub got: ShortText,
    /// What would have been taken.
    pub allowed: &'static str,
}

impl ReadError {
    /// The refusal as an answer names it.
    #[must_use]
    pub fn refusal(&self) -> Refusal<'static> {
        Refusal {
            field: self.field,
            got: self.got,
            allowed: ShortText::new(self.allowed),
            ..Refusal::plain(self.reject)
        }
    }

    pub(super) const fn of(
        reject: Reject,
        field: &'static str,
        got: ShortText,
        allowed: &'static str,
    ) -> Self {
        Self { reject, field, got, allowed }
    }

    /// The value is not what the field takes.
    fn payload(field: &'static str, value: Value<'_, '_>, allowed: &'static str) -> Self {
        Self::of(Reject::InvalidPayload, field, value.short(), allowed)
    }
}

/// Reads bodies, one at a time, with buffers of its own.
pub struct BodyReader {
    tape: TapeReader,
    /// Ids with their places, for finding repeats.
    places: Vec<(OrderId, u16)>,
}

impl Default for BodyReader {
    fn default() -> Self {
        Self::new()
    }
}

impl BodyReader {
    /// A reader whose buffers are warm.
    #[must_use]
    pub fn new() -> Self {
        let mut reader = Self { tape: TapeReader::new(), places: Vec::with_capacity(CANCELS_MAX) };
        let id = format!("\"0x{}\",", "0".repeat(64));
        let mut body = format!("[{}\"\"]", id.repeat(CANCELS_MAX)).into_bytes();
        let warm = reader.tape.read(&mut body, |value| matches!(value, Value::Array(_)));
        assert_eq!(warm, Ok(true), "the warming body is JSON");
        reader
    }

    /// Reads the body of POST /order.
    pub fn order(&mut self, body: &mut [u8]) -> Result<SignedOrder, ReadError> {
        self.judge(body, order::read)
    }

    /// Reads the body of POST /orders into `orders`, one outcome per item: a bad item does not
    /// sink the others. The error is about the list itself.
    pub fn orders(
        &mut self,
        body: &mut [u8],
        orders: &mut Vec<Result<SignedOrder, ReadError>>,
    ) -> Result<(), ReadError> {
        orders.clear();
        self.judge(body, |value| {
            let items = field::items(value, 1, ORDERS_MAX)?;
            orders.extend(items.map(order::read));
            Ok(())
        })
    }

    /// Reads the body of DELETE /order.
    pub fn cancel(&mut self, body: &mut [u8]) -> Result<OrderId, ReadError> {
        self.judge(body, cancel::one)
    }

    /// Reads the body of DELETE /orders or POST /orders-scoring into `ids`, repeats left out.
    pub fn cancels(&mut self, body: &mut [u8], ids: &mut Vec<OrderId>) -> Result<(), ReadError> {
        ids.clear();
        self.judge(body, |value| cancel::many(value, ids))?;
        cancel::drop_repeats(ids, &mut self.places);
        Ok(())
    }

    /// Reads the body of POST /replace: the orders to cancel into `ids`, each in the place where it stands, and those
    /// to place into `orders`. True if they are to be placed even if some of those to cancel are gone.
    pub fn replace(
        &mut self,
        body: &mut [u8],
        ids: &mut Vec<OrderId>,
        orders: &mut Vec<Result<SignedOrder, ReadError>>,
    ) -> Result<bool, ReadError> {
        ids.clear();
        orders.clear();
        self.judge(body, |value| replace::read(value, ids, orders))
    }

    /// Reads the body of DELETE /cancel-market-orders; an empty body names no scope.
    pub fn cancel_scope(&mut self, body: &mut [u8]) -> Result<CancelScope, ReadError> {
        if body.is_empty() {
            return Ok(CancelScope::default());
        }
        self.judge(body, cancel::scope)
    }

    /// Reads the body of POST /data/orders into `ids`.
    pub fn order_ids(&mut self, body: &mut [u8], ids: &mut Vec<OrderId>) -> Result<(), ReadError> {
        ids.clear();
        self.judge(body, |value| cancel::wrapped(value, ids))
    }

    /// Reads the body of POST /books, /prices, … into `asks`.
    pub fn tokens(&mut self, body: &mut [u8], asks: &mut Vec<TokenAsk>) -> Result<(), ReadError> {
        asks.clear();
        self.judge(body, |value| token::list(value, asks))
    }

    /// Reads the body of POST /positions/split, /merge or /redeem.
    pub fn act(&mut self, body: &mut [u8]) -> Result<SignedAct, ReadError> {
        self.judge(body, act::read)
    }

    /// Reads the body of POST /heartbeats: the id of the previous beat, if there was one.
    pub fn heartbeat(&mut self, body: &mut [u8]) -> Result<Option<ApiKey>, ReadError> {
        if body.is_empty() {
            return Ok(None);
        }
        self.judge(body, token::heartbeat)
    }

    /// Reads the body of POST /breaker: the quantity, above zero, and the interval in milliseconds.
    pub fn breaker(&mut self, body: &mut [u8]) -> Result<(Shares, u64), ReadError> {
        self.judge(body, breaker::read)
    }

    /// Reads the body of DELETE /auth/readonly-api-key: the key that is meant.
    pub fn key(&mut self, body: &mut [u8]) -> Result<ApiKey, ReadError> {
        self.judge(body, token::key)
    }

    fn judge<T>(
        &mut self,
        body: &mut [u8],
        read: impl FnOnce(Value<'_, '_>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        self.tape.read(body, read).unwrap_or_else(|NotJson(at)| {
            let got = match body.len() {
                0 => ShortText::EMPTY,
                bytes if at < bytes => ShortText::shown(format_args!("no JSON from byte {at} on")),
                bytes => ShortText::shown(format_args!("JSON that is not whole, {bytes} bytes")),
            };
            Err(ReadError::of(Reject::InvalidPayload, "body", got, "JSON"))
        })
    }
}
