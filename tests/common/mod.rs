//! What the tests of the running binary share: the process, a connection, and a trader.
//!
//! Nothing here knows how the server works. It starts the binary as a user would, talks HTTP over
//! loopback, and signs as a client does.

#![allow(dead_code, reason = "each test uses the part that it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]
#![allow(unreachable_pub, reason = "every test is a crate of its own")]

pub mod exchange;
pub mod random;
pub mod rig;
pub mod schema;
pub mod shared;
pub mod stream;
pub mod trader;
pub mod wire;

use serde_json::Value;
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

/// A new folder, named after the test's file and removed when it is dropped.
pub fn folder() -> TempDir {
    TempDir::with_prefix_in(concat!(env!("CARGO_CRATE_NAME"), "-"), env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The text that a value is.
#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

/// The values of one field, in the order of the rows.
pub fn column<'a>(rows: &'a [Value], name: &str) -> Vec<&'a str> {
    rows.iter().map(|row| text(&row[name])).collect()
}

/// What a file holds that is JSON, packed.
pub fn unpacked(path: &Path) -> Value {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}
