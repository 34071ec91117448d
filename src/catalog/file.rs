//! A file's bytes as a stream: gzip is recognised by its first byte, not by a name.

use std::io::{BufRead, Read};

use flate2::bufread::MultiGzDecoder;

use super::rows::ROW_BYTES_MAX;

/// The most that a file may unpack to: enough for a full dump of a venue, and an end to a zip bomb.
pub(super) const UNPACKED_BYTES_MAX: u64 = 2 << 30;

/// The first byte of gzip. JSON never starts with it, and a pipe may give a single byte at first.
const GZIP_FIRST: u8 = 0x1f;

/// Why a file cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// It cannot be read; why.
    Read(String),
    /// It starts as gzip but is not valid gzip.
    Unpack(String),
    /// It unpacks to more than `UNPACKED_BYTES_MAX`.
    TooLong,
    /// The row with this number has more than `ROW_BYTES_MAX` bytes.
    RowTooLong(u32),
    /// It was read twice and had other bytes the second time.
    Changed,
    /// Its bytes are not UTF-8.
    NotText,
    /// It is not JSON; where and why.
    NotJson(String),
    /// It is JSON, but neither an array nor an object.
    NotRows,
}

impl std::fmt::Display for FileFault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(why) => write!(out, "cannot be read: {why}"),
            Self::Unpack(why) => write!(out, "gzip: {why}"),
            Self::TooLong => write!(out, "unpacks to more than {UNPACKED_BYTES_MAX} bytes; split it"),
            Self::RowTooLong(row) => write!(out, "row {row} has more than {ROW_BYTES_MAX} bytes; split it"),
            Self::Changed => out.write_str("changed while it was read; try again"),
            Self::NotText => out.write_str("not UTF-8, so not JSON"),
            Self::NotJson(why) => write!(out, "not JSON: {why}"),
            Self::NotRows => out.write_str("neither an array nor an object of events or markets"),
        }
    }
}

/// A file's bytes as a stream, unpacked if the file is packed; and whether it is.
pub(super) fn unpacked<'a>(mut source: impl BufRead + 'a) -> Result<(Box<dyn Read + 'a>, bool), FileFault> {
    let first = source.fill_buf().map_err(|fault| FileFault::Read(fault.to_string()))?;
    if first.first() == Some(&GZIP_FIRST) {
        return Ok((Box::new(MultiGzDecoder::new(source)), true));
    }
    Ok((Box::new(source), false))
}
