//! Page cursors: base64 of where the next page begins.
//!
//! | text | decoded | meaning |
//! |---|---|---|
//! | absent, `""`, `MA==` | `0` | the first page |
//! | `MTAw` | `100` | rows from 100, as of now |
//! | | `100@4096` | the rows after the one at 4096, 100 rows in: stable while rows come and go |
//! | `LTE=` | `-1` | past the last page |
//!
//! Clients hand cursors back unread, raw or percent-encoded, and stop at `LTE=`.

use super::decimal::{parse_integer, push_integer};
use crate::domain::Position;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The cursor at which every client stops.
pub const END: &str = "LTE=";

/// Two `u64` with an `@` between them.
const DECODED_BYTES_MAX: usize = 41;

/// Base64 of [`DECODED_BYTES_MAX`] bytes.
const ENCODED_CHARS_MAX: usize = DECODED_BYTES_MAX.div_ceil(3) * 4;

/// What bits the last digit has beyond the last byte is nothing to us.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// At this row.
    From {
        /// Rows before the page.
        offset: u64,
        /// Where the last row of the previous page is; `None` to skip `offset` rows instead.
        position: Option<Position>,
    },
    /// Past the last row: the page is empty.
    End,
}

/// The text is no cursor of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCursor;

impl Cursor {
    /// The first page, as of now.
    pub const START: Self = Self::From { offset: 0, position: None };

    /// Reads a cursor; an absent one is read as `""`.
    pub fn parse(text: &str) -> Result<Self, BadCursor> {
        let mut decoded = [0; ENCODED_CHARS_MAX / 4 * 3];
        let decoded = decode(text.as_bytes(), &mut decoded).ok_or(BadCursor)?;
        match decoded {
            b"" => return Ok(Self::START),
            b"-1" => return Ok(Self::End),
            _ => {}
        }
        let number = |digits: &[u8]| parse_integer(digits).map_err(|_| BadCursor);
        match decoded.iter().position(|&byte| byte == b'@') {
            None => Ok(Self::From { offset: number(decoded)?, position: None }),
            Some(at) => Ok(Self::From {
                offset: number(&decoded[..at])?,
                position: Some(Position(number(&decoded[at + 1..])?)),
            }),
        }
    }

    /// Appends the cursor's text.
    pub fn push(self, out: &mut Vec<u8>) {
        let Self::From { offset, position } = self else {
            out.extend_from_slice(END.as_bytes());
            return;
        };
        // The decimal text goes to the end of `out`, and its base64 then takes its place.
        let start = out.len();
        push_integer(out, offset);
        if let Some(position) = position {
            out.push(b'@');
            push_integer(out, position.0);
        }
        let mut encoded = [0; ENCODED_CHARS_MAX];
        let length = BASE64.encode_slice(&out[start..], &mut encoded).expect("room for two numbers");
        out.truncate(start);
        out.extend_from_slice(&encoded[..length]);
    }
}

/// Decodes base64 with all of its padding or none; `None` if the text is not base64 or is longer than any cursor.
fn decode<'a>(text: &[u8], decoded: &'a mut [u8; ENCODED_CHARS_MAX / 4 * 3]) -> Option<&'a [u8]> {
    let is_padded_in_part = text.ends_with(b"=") && !text.len().is_multiple_of(4);
    if ENCODED_CHARS_MAX < text.len() || is_padded_in_part {
        return None;
    }
    let length = BASE64.decode_slice(text, decoded).ok()?;
    Some(&decoded[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cursor: Cursor) -> String {
        let mut out = b"x".to_vec();
        cursor.push(&mut out);
        String::from_utf8(out.split_off(1)).expect("ASCII")
    }

    #[test]
    fn the_texts_that_clients_know_are_these() {
        let from = |offset| Cursor::From { offset, position: None };
        for (cursor, expected) in
            [(from(0), "MA=="), (from(100), "MTAw"), (from(10), "MTA="), (Cursor::End, "LTE=")]
        {
            assert_eq!(text(cursor), expected);
            assert_eq!(Cursor::parse(expected), Ok(cursor));
            assert_eq!(Cursor::parse(expected.trim_end_matches('=')), Ok(cursor));
        }
        assert_eq!(Cursor::parse(""), Ok(Cursor::START));
    }

    #[test]
    fn every_cursor_reads_back() {
        for offset in [0, 1, 99, 12_345, u64::MAX] {
            for position in [None, Some(Position(0)), Some(Position(64)), Some(Position(u64::MAX))] {
                let cursor = Cursor::From { offset, position };
                assert_eq!(Cursor::parse(&text(cursor)), Ok(cursor));
            }
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for bad in [
            "M", "MA=", "MA===", "=", "MA==MA==", "M*==", "LTI=", "eA==", "QA==", "MUA=", "QDE=", "MA\n", "é",
        ] {
            assert_eq!(Cursor::parse(bad), Err(BadCursor), "{bad:?}");
        }
        let mut largest = text(Cursor::From { offset: u64::MAX, position: Some(Position(u64::MAX)) });
        assert_eq!(largest.len(), ENCODED_CHARS_MAX);
        largest.push('A');
        assert_eq!(Cursor::parse(&largest), Err(BadCursor));
    }
}
