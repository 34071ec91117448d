//! A text of fixed size, for saying what a client sent without allocating.

use std::fmt::{self, Display, Write};

use super::{decimal, name};
use crate::domain::ApiKey;

/// Bytes kept: an id or an address in hex, most numbers, the start of anything longer.
const SHORT_TEXT_BYTES: usize = 78;

/// Somewhere to append bytes: an answer's buffer, or a short text.
pub trait Sink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// At most `SHORT_TEXT_BYTES` bytes of UTF-8. What is longer is cut and ends in `…`.
#[derive(Clone, Copy)]
pub struct ShortText {
    bytes: [u8; SHORT_TEXT_BYTES],
    length: u8,
}

impl ShortText {
    /// No text.
    pub const EMPTY: Self = Self { bytes: [0; SHORT_TEXT_BYTES], length: 0 };

    /// The text, cut if it is too long.
    #[must_use]
    pub fn new(text: &str) -> Self {
        const ELLIPSIS: &str = "…";
        if text.len() <= SHORT_TEXT_BYTES {
            return Self::whole(text.as_bytes());
        }
        let mut end = SHORT_TEXT_BYTES - ELLIPSIS.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut short = Self::whole(&text.as_bytes()[..end]);
        short.bytes[end..end + ELLIPSIS.len()].copy_from_slice(ELLIPSIS.as_bytes());
        short.length += u8::try_from(ELLIPSIS.len()).expect("three bytes");
        short
    }

    /// What this is shown as, which is short and ASCII.
    #[must_use]
    pub fn shown(value: impl Display) -> Self {
        Self::pushed(|out| write!(out, "{value}").expect("it is short"))
    }

    /// A plain number.
    #[must_use]
    pub fn integer(value: u64) -> Self {
        Self::pushed(|out| decimal::push_integer(out, value))
    }

    /// An amount of collateral or shares.
    #[must_use]
    pub fn millionths(value: u64) -> Self {
        Self::pushed(|out| decimal::push_millionths(out, value))
    }

    /// `value` / 10^`places`; `places` is at most 19.
    #[must_use]
    pub fn scaled(value: u64, places: u32) -> Self {
        Self::pushed(|out| decimal::push_signed(out, value.into(), places))
    }

    /// The range from one such value to another, both included.
    #[must_use]
    pub fn scaled_between(first: u64, last: u64, places: u32) -> Self {
        Self::pushed(|out| {
            decimal::push_signed(out, first.into(), places);
            out.put(b" to ");
            decimal::push_signed(out, last.into(), places);
        })
    }

    /// A 256-bit number, in decimal: a token's id.
    #[must_use]
    pub fn uint256(bytes: &[u8; 32]) -> Self {
        Self::pushed(|out| decimal::push_uint256(out, bytes))
    }

    /// An API key, as a UUID.
    #[must_use]
    pub fn uuid(key: ApiKey) -> Self {
        Self::pushed(|out| name::push_uuid(out, key))
    }

    /// Bytes in hex after `0x`: an address, a digest.
    #[must_use]
    pub fn hex(bytes: &[u8]) -> Self {
        Self::pushed(|out| name::push_hex(out, bytes))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length)];
        std::str::from_utf8(bytes).expect("only whole characters are put in")
    }

    /// True if there is no text.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn whole(bytes: &[u8]) -> Self {
        let mut short = Self::EMPTY;
        short.bytes[..bytes.len()].copy_from_slice(bytes);
        short.length = u8::try_from(bytes.len()).expect("at most SHORT_TEXT_BYTES");
        short
    }

    fn pushed(push: impl FnOnce(&mut Ascii)) -> Self {
        let mut out = Ascii(Self::EMPTY);
        push(&mut out);
        out.0
    }
}

/// A short text that is assembled from ASCII.
struct Ascii(ShortText);

impl Sink for Ascii {
    /// Numbers fit whole; an id too long for a short text loses its end.
    fn put(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.is_ascii(), "any cut falls between characters");
        let from = usize::from(self.0.length);
        let taken = bytes.len().min(SHORT_TEXT_BYTES - from);
        self.0.bytes[from..from + taken].copy_from_slice(&bytes[..taken]);
        self.0.length += u8::try_from(taken).expect("at most SHORT_TEXT_BYTES");
    }
}

impl Write for Ascii {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }
}

impl PartialEq for ShortText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ShortText {}

impl fmt::Debug for ShortText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, expected) in [
            (String::new(), String::new()),
            ("a".repeat(78), "a".repeat(78)),
            ("a".repeat(79), "a".repeat(75) + "…"),
            ("é".repeat(40), "é".repeat(37) + "…"),
            ("🙂".repeat(20), "🙂".repeat(18) + "…"),
        ] {
            assert_eq!(ShortText::new(&text).as_str(), expected);
        }
    }

    #[test]
    fn numbers_and_names_fit() {
        assert_eq!(ShortText::integer(u64::MAX).as_str(), "18446744073709551615");
        assert_eq!(ShortText::millionths(1_500_000).as_str(), "1.5");
        assert_eq!(ShortText::scaled(51, 3).as_str(), "0.051");
        assert_eq!(ShortText::scaled_between(1, 99, 2).as_str(), "0.01 to 0.99");
        assert_eq!(ShortText::hex(&[0xff; 32]).as_str().len(), 66);
    }
}
