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

/// The cursor at which every client stops.
pub const END: &str = "LTE=";

/// Two `u64` with an `@` between them.
const DECODED_BYTES_MAX: usize = 41;

/// Base64 of [`DECODED_BYTES_MAX`] bytes.
const ENCODED_CHARS_MAX: usize = DECODED_BYTES_MAX.div_ceil(3) * 4;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
        let mut decoded = [0; DECODED_BYTES_MAX + 2];
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
        let mut decimal = [0; DECODED_BYTES_MAX];
        let length = out.len() - start;
        decimal[..length].copy_from_slice(&out[start..]);
        out.truncate(start);
        encode(&decimal[..length], out);
    }
}

fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = ((bits >> (18 - 6 * place)) & 0x3f) as usize;
            out.push(if place <= group.len() { DIGITS[digit] } else { b'=' });
        }
    }
}

/// Decodes base64 with or without its padding; `None` if the text is not base64 or is longer than any cursor.
fn decode<'a>(text: &[u8], decoded: &'a mut [u8; DECODED_BYTES_MAX + 2]) -> Option<&'a [u8]> {
    if text.len() > ENCODED_CHARS_MAX {
        return None;
    }
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    let digits = &text[..text.len() - padding];
    if padding > 2 || digits.len() % 4 == 1 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut length = 0;
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits {
        let value = DIGITS.iter().position(|known| known == digit)?;
        bits = (bits << 6 | u32::try_from(value).ok()?) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            decoded[length] = u8::try_from((bits >> held) & 0xff).ok()?;
            length += 1;
        }
    }
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
