//! A file's bytes as text: gzip is recognised by its first bytes, not by a name.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use flate2::bufread::MultiGzDecoder;

use super::rows::ROW_BYTES_MAX;

/// The most that a file may unpack to: enough for a full dump of a venue, and an end to a zip bomb.
pub const UNPACKED_BYTES_MAX: u64 = 2 << 30;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Why a file cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// It cannot be read; why.
    Read(String),
    /// It starts as gzip but is not valid gzip.
    Unpack(String),
    /// It unpacks to more than [`UNPACKED_BYTES_MAX`].
    TooLong,
    /// The row with this number has more than [`super::ROW_BYTES_MAX`] bytes.
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
            Self::NotText => out.write_str("not UTF-8; allowed: Gamma JSON, gzipped or not"),
            Self::NotJson(why) => write!(out, "not JSON: {why}"),
            Self::NotRows => out.write_str("neither an array nor an object of events or markets"),
        }
    }
}

/// The text of a file, unpacked if it is packed.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, FileFault> {
    if bytes.starts_with(GZIP_MAGIC) {
        let text = String::from_utf8(unpack(bytes, UNPACKED_BYTES_MAX)?);
        return text.map(Cow::Owned).map_err(|_| FileFault::NotText);
    }
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| FileFault::NotText)
}

/// A file's bytes as a stream, unpacked if the file is packed; and whether it is.
pub(super) fn unpacked<'a>(mut source: impl BufRead + 'a) -> Result<(Box<dyn Read + 'a>, bool), FileFault> {
    let first = source.fill_buf().map_err(|fault| FileFault::Read(fault.to_string()))?;
    // A pipe may give a single byte at first. JSON never starts with this one.
    if first.first() == GZIP_MAGIC.first() {
        return Ok((Box::new(MultiGzDecoder::new(source)), true));
    }
    Ok((Box::new(source), false))
}

fn unpack(bytes: &[u8], bytes_max: u64) -> Result<Vec<u8>, FileFault> {
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(bytes_max + 1)
        .read_to_end(&mut unpacked)
        .map_err(|fault| FileFault::Unpack(fault.to_string()))?;
    if unpacked.len() as u64 > bytes_max { Err(FileFault::TooLong) } else { Ok(unpacked) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(text: &str) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).expect("memory");
        packer.finish().expect("memory")
    }

    #[test]
    fn a_packed_file_reads_as_the_plain_one() {
        assert_eq!(text(&packed("[1]")), Ok("[1]".into()));
        assert_eq!(text(b"[1]"), Ok("[1]".into()));
    }

    #[test]
    fn a_file_that_is_cut_or_too_long_is_refused() {
        let whole = packed("[1, 2, 3]");
        assert!(matches!(text(&whole[..whole.len() - 9]), Err(FileFault::Unpack(_))));
        assert_eq!(unpack(&whole, 8), Err(FileFault::TooLong));
        assert_eq!(unpack(&whole, 9).map(|bytes| bytes.len()), Ok(9));
    }
}
