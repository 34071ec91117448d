//! JSON and the texts inside it: numbers, names and bodies, in and out.
//!
//! Bodies are read onto a reused tape and written straight into the caller's buffer; neither
//! allocates on the order path once it is warm.
//!
//! | file | what it knows |
//! |---|---|
//! | `decimal` | integers <-> decimal text; the only file here that converts |
//! | `name` | hex, UUID and ULID texts of ids |
//! | `cursor` | page cursors |
//! | `date` | instants as RFC 3339 |
//! | `short` | short texts, and where bytes are put |
//! | `scan` | where a text has to be escaped |
//! | `read` | request bodies: orders, cancels, user acts, token lists |
//! | `write` | a writer that puts commas and escapes in the right places |
//! | `answer` | results of orders and cancels, and refusals with their texts filled in |
//!
//! Invariants: a number is never a float here; a body is taken or refused as a whole, item by
//! item in a batch; what a client sent is only ever echoed escaped and shortened.

pub mod answer;
pub mod cursor;
pub mod date;
pub mod decimal;
pub mod name;
pub mod read;
mod scan;
pub mod short;
pub mod write;

pub use cursor::Cursor;
pub use read::{BodyReader, ReadError};
pub use short::ShortText;
pub use write::Writer;
