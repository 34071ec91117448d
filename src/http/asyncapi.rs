//! The streams as a document: AsyncAPI 3.0, served at `GET /asyncapi.json`.
//!
//! Written by hand like [`openapi`](super::openapi), and assembled likewise: `document.json` has channels and
//! operations, `messages.json` the messages and `schemas.json` their shapes; the words that both documents use are
//! in [`openapi::WORDS`](super::openapi::WORDS). Tests hold every message that they are told against it.

use super::openapi::{WORDS, members};
use std::sync::LazyLock;

const DOCUMENT: &str = include_str!("asyncapi/document.json");
const MESSAGES: &str = include_str!("asyncapi/messages.json");
const SCHEMAS: &str = include_str!("asyncapi/schemas.json");

/// The whole document, assembled at first use.
pub static TEXT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{{{},\"components\":{{\"messages\":{{{}}},\"schemas\":{{{}}}}}}}\n",
        members(&[DOCUMENT]),
        members(&[MESSAGES]),
        members(&[WORDS, SCHEMAS])
    )
});
