//! What a Gamma file says: bytes in, rows for the exchange out. Pure; nothing is stored here.
//!
//! A file is an array of markets, of events with their markets inside, a mixture, or one such
//! object, plain or gzipped. [`Import::read`] turns it into [`ImportedEvent`]s and
//! [`ImportedMarket`]s, names every row that it cannot take, and merges what is said twice; what
//! is new against an exchange that already has rows is decided by [`step`].
//!
//! - The **newer** `updatedAt` wins, whichever was read first. Of an event, what the newer text
//!   does not mention stays: a market carries an abridged copy of its event.
//! - **Unknown fields survive**: texts are the raw JSON, byte for byte, without nested `events`
//!   (in a market) and `markets` (in an event).
//! - Reading the same file twice changes nothing, and nothing that is read ever changes a live
//!   market's tick; tokens, size and fee stay as they were first.
//! - A text that would not fit a frame is refused by name ([`TEXT_BYTES_MAX`]).
//! - `closed` makes a market closed, and resolved if its `outcomePrices` are 1 and 0. `archived`
//!   closes it too, unless it says that it accepts orders: venues archive placeholders so that
//!   they are not listed, and go on taking orders for them.

mod event;
mod fields;
mod file;
mod import;
mod market;
mod moment;
mod number;
mod step;

#[cfg(test)]
mod tests;

pub use event::{ImportedEvent, event_key};
pub(crate) use fields::{Fields, items, quoted, texts};
pub use file::{FileFault, UNPACKED_BYTES_MAX};
pub use import::Import;
pub use market::{ImportedMarket, MarketDefaults};
pub use moment::Moment;
pub use step::{EventStep, KnownMarket, MarketStep, MarketUpdate, event_step, market_step};

/// A small catalog of our own, in Gamma form: what `outcry dev` starts with.
pub const DEV: &str = include_str!("catalog/dev.json");

/// The longest text of an event or market: with its frame's other fields it fits a frame.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// The longest id of an event.
pub const EVENT_KEY_BYTES_MAX: usize = 64;

/// The longest label of an outcome.
pub const LABEL_BYTES_MAX: usize = 256;

/// A row, or a part of one, that could not be taken as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which row, as people find it: `market 517310`, `row 12`.
    pub row: String,
    /// Which field of it.
    pub field: &'static str,
    /// What it says; cut to [`GOT_BYTES_MAX`].
    pub got: String,
    /// What it may say.
    pub allowed: &'static str,
}

/// The most of a wrong value that is repeated.
pub const GOT_BYTES_MAX: usize = 80;

impl Refused {
    pub(crate) fn new(row: &str, field: &'static str, got: &str, allowed: &'static str) -> Self {
        let mut end = got.len().min(GOT_BYTES_MAX);
        while !got.is_char_boundary(end) {
            end -= 1;
        }
        let more = if end < got.len() { "..." } else { "" };
        Self { row: row.to_owned(), field, got: format!("{}{more}", &got[..end]), allowed }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}: got {}; allowed: {}", self.row, self.field, self.got, self.allowed)
    }
}
