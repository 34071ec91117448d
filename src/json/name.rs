//! Texts of ids: hex, UUID, ULID.
//!
//! Hex is written in lower case after `0x` and read in any case. (The mixed case of a checksummed
//! address is up to the `auth` room.) An API key is 128 bits: a UUID for most clients, and the same
//! bits as a ULID for those whose order records want one.

use super::short::Sink;
use crate::domain::{ApiKey, hex_digit};

/// Ids are 16, 20 or 32 bytes.
const HALF_WORD_BYTES: usize = 16;

/// Crockford's alphabet: no I, L, O, U.
const ULID_DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_CHARS: usize = 26;

/// Where a UUID has its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const UUID_CHARS: usize = 36;

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

/// Reads `0x` and exactly `BYTES` bytes.
#[must_use]
pub fn parse_hex<const BYTES: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    (parse_hex_into(text, &mut bytes)? == BYTES).then_some(bytes)
}

/// Reads `0x` and all bytes that follow into the front of `bytes`, and returns their number. `None`
/// if the text is not hex, has half a byte, or has more than fits.
pub fn parse_hex_into(text: &[u8], bytes: &mut [u8]) -> Option<usize> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?;
    parse_digits_into(digits, bytes)
}

fn parse_digits_into(digits: &[u8], bytes: &mut [u8]) -> Option<usize> {
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() || pairs.len() > bytes.len() {
        return None;
    }
    let (halves, rest) = pairs.as_chunks::<HALF_WORD_BYTES>();
    let mut places = bytes.chunks_mut(HALF_WORD_BYTES);
    for (half, place) in halves.iter().zip(&mut places) {
        place.copy_from_slice(&half_word(half)?);
    }
    for (byte, [high, low]) in bytes[halves.len() * HALF_WORD_BYTES..].iter_mut().zip(rest) {
        *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
    }
    Some(pairs.len())
}

/// Half a word from its digits, in a few vector instructions for all of them.
fn half_word(pairs: &[[u8; 2]; HALF_WORD_BYTES]) -> Option<[u8; HALF_WORD_BYTES]> {
    let good = |digit: u8| digit.wrapping_sub(b'0') < 10 || (digit | 0x20).wrapping_sub(b'a') < 6;
    // The low bits of a letter are 1 to 6, and its bit 6 is set.
    let value = |digit: u8| (digit & 0xf) + 9 * (digit >> 6);
    let all = pairs.as_flattened().iter().fold(true, |all, &digit| all & good(digit));
    all.then(|| pairs.map(|[high, low]| value(high) << 4 | value(low)))
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

/// Reads a UUID of any version.
#[must_use]
pub fn parse_uuid(text: &[u8]) -> Option<ApiKey> {
    if text.len() != UUID_CHARS || HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut digits = [0; 32];
    let kept = text.iter().enumerate().filter(|(at, _)| !HYPHENS.contains(at));
    for (digit, (_, byte)) in digits.iter_mut().zip(kept) {
        *digit = *byte;
    }
    let mut key = [0; 16];
    parse_digits_into(&digits, &mut key)?;
    Some(ApiKey(key))
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

    fn written(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn hex_is_written_low_and_read_in_any_case() {
        assert_eq!(written(|out| push_hex(out, &[0x0a, 0xff])), "0x0aff");
        assert_eq!(parse_hex(b"0x0aFf"), Some([0x0a, 0xff]));
        assert_eq!(parse_hex(b"0X0AFF"), Some([0x0a, 0xff]));
        assert_eq!(parse_hex(b"0x"), Some([]));
        for bad in ["0aff", "0x0af", "0x0affff", "0x0a", "0x0ag0", "", "0", "0x 0aff", "x0aff"] {
            assert_eq!(parse_hex::<2>(bad.as_bytes()), None, "{bad:?}");
        }
        let mut bytes = [7; 4];
        assert_eq!(parse_hex_into(b"0x0102", &mut bytes), Some(2));
        assert_eq!(bytes, [1, 2, 7, 7]);
    }

    #[test]
    fn every_byte_at_every_place_is_judged_as_one_digit_alone() {
        let digits: Vec<u8> = (0..70).map(|at| b"0123456789abcdefABCDEF"[at * 7 % 22]).collect();
        for length in [2, 32, 34, 64, 70] {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = [b"0x", &digits[..length]].concat();
                    text[2 + at] = byte;
                    let pairs = text[2..].chunks(2);
                    let expected: Option<Vec<u8>> =
                        pairs.map(|pair| Some(hex_digit(pair[0])? << 4 | hex_digit(pair[1])?)).collect();
                    let mut bytes = [0; 35];
                    let read = parse_hex_into(&text, &mut bytes).map(|count| bytes[..count].to_vec());
                    assert_eq!(read, expected, "{byte:#x} at {at} of {length}");
                }
            }
        }
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
    fn what_is_no_key_is_refused() {
        for bad in [
            "",
            "01563df364814f6db76f37ee9cd4e10a",
            "01563df3-6481-4f6d-b76f-37ee9cd4e10",
            "01563df3-6481-4f6d-b76f-37ee9cd4e10aa",
            "01563df3-6481-4f6d-b76f+37ee9cd4e10a",
            "01563df3-6481-4f6d-b76f-37ee9cd4e10g",
            "0-563df3-6481-4f6d-b76f-37ee9cd4e10a",
        ] {
            assert_eq!(parse_uuid(bad.as_bytes()), None, "{bad:?}");
        }
        for bad in ["8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "0ZZZZZZZZZZZZZZZZZZZZZZZZI", "0ZZ", ""] {
            assert_eq!(parse_ulid(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
