//! Texts of ids, as they are written: hex, UUID, ULID. ([`domain::text`](crate::domain::text) reads hex and UUIDs.)
//!
//! Hex is written in lower case after `0x`. (The mixed case of a checksummed address is up to the `auth` room.) An API
//! key is 128 bits: a UUID for most clients, and the same bits as a ULID for those whose order records want one.

use super::short::Sink;
use crate::domain::ApiKey;

/// Ids are 16, 20 or 32 bytes.
const HALF_WORD_BYTES: usize = 16;

/// Crockford's alphabet: no I, L, O, U.
const ULID_DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_CHARS: usize = 26;

/// Appends `0x` and two lower-case digits per byte.
pub fn push_hex(out: &mut impl Sink, bytes: &[u8]) {
    out.put(b"0x");
    push_hex_digits(out, bytes);
}

/// Appends two lower-case digits per byte.
pub fn push_hex_digits(out: &mut impl Sink, bytes: &[u8]) {
    // Half a word at a time: its digits are made at once, and a call of the sink for each of them
    // would cost more than making them.
    let (halves, rest) = bytes.as_chunks::<HALF_WORD_BYTES>();
    for half in halves {
        out.put(hex_digits(half).as_flattened());
    }
    if !rest.is_empty() {
        let mut half = [0; HALF_WORD_BYTES];
        half[..rest.len()].copy_from_slice(rest);
        out.put(&hex_digits(&half).as_flattened()[..2 * rest.len()]);
    }
}

/// The digits of each byte. They are computed, not looked up, so that a few vector instructions
/// make all of them.
fn hex_digits(bytes: &[u8; HALF_WORD_BYTES]) -> [[u8; 2]; HALF_WORD_BYTES] {
    const LETTERS: u8 = b'a' - b'0' - 10;
    let digit = |value: u8| value + b'0' + if value > 9 { LETTERS } else { 0 };
    bytes.map(|byte| [digit(byte >> 4), digit(byte & 0xf)])
}

/// Appends a key as a UUID.
pub fn push_uuid(out: &mut impl Sink, key: ApiKey) {
    for (index, byte) in key.0.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.put(b"-");
        }
        push_hex_digits(out, &[*byte]);
    }
}

/// Appends a key as a ULID.
pub fn push_ulid(out: &mut impl Sink, key: ApiKey) {
    let bits = u128::from_be_bytes(key.0);
    for place in (0..ULID_CHARS).rev() {
        let digit = u8::try_from((bits >> (5 * place)) & 0x1f).expect("five bits");
        out.put(&[ULID_DIGITS[usize::from(digit)]]);
    }
}

/// Reads a ULID in any case.
#[must_use]
pub fn parse_ulid(text: &[u8]) -> Option<ApiKey> {
    // 26 digits of five bits are 130 bits: only three bits of the first digit may be used.
    if text.len() != ULID_CHARS || !(b'0'..=b'7').contains(&text[0]) {
        return None;
    }
    let mut bits = 0_u128;
    for byte in text {
        let digit = ULID_DIGITS.iter().position(|known| *known == byte.to_ascii_uppercase())?;
        bits = bits << 5 | digit as u128;
    }
    Some(ApiKey(bits.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::parse_uuid;

    fn written(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn hex_is_written_low() {
        assert_eq!(written(|out| push_hex(out, &[0x0a, 0xff])), "0x0aff");
    }

    #[test]
    fn a_key_has_a_uuid_and_a_ulid() {
        let key = ApiKey([
            0x01, 0x56, 0x3d, 0xf3, 0x64, 0x81, 0x4f, 0x6d, 0xb7, 0x6f, 0x37, 0xee, 0x9c, 0xd4, 0xe1, 0x0a,
        ]);
        let long = written(|out| push_uuid(out, key));
        let short = written(|out| push_ulid(out, key));
        assert_eq!(long, "01563df3-6481-4f6d-b76f-37ee9cd4e10a");
        assert_eq!(parse_uuid(long.as_bytes()), Some(key));
        assert_eq!(parse_uuid(long.to_uppercase().as_bytes()), Some(key));
        assert_eq!(parse_ulid(short.as_bytes()), Some(key));
        assert_eq!(parse_ulid(short.to_lowercase().as_bytes()), Some(key));
        let largest = ApiKey([0xff; 16]);
        assert_eq!(written(|out| push_ulid(out, largest)), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!(parse_ulid(b"7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), Some(largest));
        assert_eq!(written(|out| push_ulid(out, ApiKey::ZERO)), "0".repeat(26));
    }

    #[test]
    fn what_is_no_ulid_is_refused() {
        for bad in ["8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "0ZZZZZZZZZZZZZZZZZZZZZZZZI", "0ZZ", ""] {
            assert_eq!(parse_ulid(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
