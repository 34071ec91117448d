//! What a Gamma file says: bytes in, rows for the exchange out; and what lists and pages of the
//! catalog show of those rows ([`Catalog`]). Pure; texts are kept elsewhere.
//!
//! | file | what it knows |
//! |---|---|
//! | `file`, `rows`, `fields` | bytes as text, their rows one by one, and JSON objects as names and raw values |
//! | `event`, `market`, `item`, `import`, `step` | the rows of a file, and what they change here |
//! | `moment`, `number` | dates and numbers as files write them |
//! | `facts`, `sheet` | what a text says, and which parts of it are shown unchanged |
//! | `shelf`, `model`, `closing` | tags, series and creators; events and markets; sums over both; what says that one is over |
//! | `order`, `value`, `select`, `listed` | columns and pages, how rows compare, filters and lists, and what these look at of every row |
//! | `search` | finding by words |
//!
//! A file is an array of markets, of events with their markets inside, of tags, of series with their
//! events inside, of creators, a mixture of these, one such object, or a page as venues answer lists by
//! cursor, plain or gzipped. [`Import`] turns it into [`ImportedEvent`]s, [`ImportedItem`]s and
//! [`ImportedMarket`]s, names every row that it cannot take, and merges rows that repeat each other.
//! [`Import::survey`] does this for files of any length: it keeps a market's [`Place`] in its file, not
//! its text. [`Import::read`] does it for a request's body, which is never gzipped. [`step`] decides what
//! is new to an exchange that already has rows.
//!
//! - The **newer** `updatedAt` wins, whichever was read first. What the newer text of an event does
//!   not mention stays: a market carries an abridged copy of its event. Where several older texts
//!   mention it, the order in which they are read decides whose value stays. Of a market that the exchange
//!   has, what a text of the same instant does not mention stays; an older one only names its event, if it has none.
//! - **Unknown fields survive**: texts are the raw JSON, less the blanks between tokens and the
//!   nested `events` (in a market) and `markets` (in an event).
//! - Reading the same file twice changes nothing, and nothing that is read ever changes a live
//!   market's tick; id, question, tokens, outcomes, neg-risk, size and fee stay as they first were.
//!   A row that says otherwise is reported; one that is silent changes nothing and is not.
//! - What a row says of a market's end is done each time the row comes: a market that it closes is
//!   closed, even if the operator had opened it again. A file never opens a market.
//! - A text that would not fit in a frame ([`TEXT_BYTES_MAX`]), or that nests deeper than clients read, is refused by
//!   name; so is an object of more than 1,024 fields.
//! - `closed` makes a market closed, and resolved if its `outcomePrices` are 1 and 0. `archived`
//!   ends trading in it too, unless it says that it accepts orders: venues archive placeholders so
//!   that they are not listed, and go on taking orders for them. The flag stays the row's.
//! - A new market whose row has no tokens is in the catalog only. A market that trades here trades
//!   on when such a row comes: a shortened row says nothing about its end.

mod closing;
mod event;
mod facts;
mod fields;
mod file;
mod import;
mod item;
mod listed;
mod market;
mod model;
mod moment;
mod number;
mod order;
mod rows;
pub mod search;
mod select;
mod sheet;
mod shelf;
mod step;
mod value;

#[cfg(test)]
#[path = "../tests/common/shared.rs"]
pub(crate) mod shared;
#[cfg(test)]
mod tests;

pub(crate) use closing::Closing;
pub use event::{ImportedEvent, event_key};
pub use facts::{EventFacts, MarketFacts, Number, Rewards};
pub(crate) use fields::{Fields, items, quoted, texts};
pub use file::FileFault;
pub use import::{Import, NAMED_MAX, Place, market_row};
pub use item::ImportedItem;
pub use market::{ImportedMarket, MarketDefaults};
pub use model::{Catalog, Event, Life, Market, MarketEntry, NO_END};
pub use moment::Moment;
pub(crate) use order::page_of;
pub use order::{
    Begin, CREATOR_COLUMNS, Column, Columns, Direction, EVENT_COLUMNS, MARKET_COLUMNS, Mark,
    ORDER_COLUMNS_MAX, Page, SERIES_COLUMNS, TAG_COLUMNS,
};
pub use rows::Rows;
pub use select::{Between, Filter};
pub use sheet::{EVENT, Form, Kind, MARKET, Sheet, Span};
pub(crate) use shelf::slug_of;
pub use shelf::{Item, Shelf, Shown, Source, Texts};
pub use step::{
    KnownMarket, LIVE_RESULT, LIVE_TICK, MarketStep, MarketUpdate, TextStep, market_step, text_step,
};
pub(crate) use step::{kept_result, kept_tick};

/// A small catalog of our own, in Gamma form: what `outcry dev` starts with.
pub const DEV: &str = include_str!("catalog/dev.json");

/// The longest text of an event or market: with the other fields it fits in a frame.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// The most brackets that may be open at once in such a text: a venue's has five, and clients' readers give up at some
/// hundreds.
const TEXT_DEPTH_MAX: usize = 64;

/// The longest id of an event.
pub const EVENT_KEY_BYTES_MAX: usize = 64;

/// The longest label of an outcome.
pub const LABEL_BYTES_MAX: usize = 128;

/// A row, or a part of one, that could not be taken as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which row, as people find it: `market 517310`, `row 12`.
    pub row: String,
    /// Which field of it.
    pub field: &'static str,
    /// What the field says; cut to [`GOT_BYTES_MAX`].
    pub got: String,
    /// What the field may say.
    pub allowed: &'static str,
}

/// How much of a wrong value, or of a market's id, is repeated at most, in bytes.
pub const GOT_BYTES_MAX: usize = 80;

impl Refused {
    pub(crate) fn new(row: &str, field: &'static str, got: &str, allowed: &'static str) -> Self {
        Self { row: row.to_owned(), field, got: cut(got), allowed }
    }
}

/// Another's text as a refusal repeats it.
fn cut(text: &str) -> String {
    let start = &text[..text.floor_char_boundary(GOT_BYTES_MAX)];
    if start.len() < text.len() { format!("{start}...") } else { start.to_owned() }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}: got {}; allowed: {}", self.row, self.field, self.got, self.allowed)
    }
}
