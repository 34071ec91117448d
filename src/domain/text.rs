//! Texts of names, as every room reads them: hex, UUIDs, uint256. Nothing here allocates.

use super::ApiKey;

/// Digits that are made into bytes at once: ids are 16, 20 or 32 bytes.
const HALF_WORD_BYTES: usize = 16;

/// Characters of a UUID.
pub const UUID_CHARS: usize = 36;

/// Where a UUID has its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Decimal digits of the largest uint256.
pub const UINT256_DIGITS_MAX: usize = 78;

/// Digits of a uint256 that are read at once, as a `u64`.
const PIECE_DIGITS: usize = 19;

/// The value of a hex digit, in either case.
#[must_use]
pub const fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Reads `0x` and exactly `2 * BYTES` hex digits of either case.
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

/// Reads a UUID of any version: 32 hex digits of either case with hyphens in the four usual places.
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

/// Reads a uint256 in decimal, most significant byte first: digits only, at most 78.
#[must_use]
pub fn parse_uint256(text: &[u8]) -> Option<[u8; 32]> {
    if text.is_empty() || text.len() > UINT256_DIGITS_MAX || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // The least significant limb first.
    let mut limbs = [0_u64; 4];
    for piece in text.chunks(PIECE_DIGITS) {
        let scale = 10_u64.pow(u32::try_from(piece.len()).expect("a piece is short"));
        let mut carry = piece.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        for limb in &mut limbs {
            (*limb, carry) = limb.carrying_mul(scale, carry);
        }
        if carry != 0 {
            return None;
        }
    }
    let mut bytes = [0; 32];
    for (place, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().rev().zip(limbs) {
        *place = limb.to_be_bytes();
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hex_is_read_in_any_case_and_whole() {
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
    fn what_is_no_uuid_is_refused() {
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
    }

    #[test]
    fn a_uint256_is_read_up_to_its_last_value() {
        const MAX: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(parse_uint256(MAX.as_bytes()), Some([0xff; 32]));
        let above = format!("{}6", &MAX[..77]);
        for bad in ["", "+1", "-1", "1.5", "0x1", " 1", &above, &"9".repeat(78), &"0".repeat(79)] {
            assert_eq!(parse_uint256(bad.as_bytes()), None, "{bad:?}");
        }
        let mut expected = [0; 32];
        expected[31] = 23;
        assert_eq!(parse_uint256(b"0023"), Some(expected));
    }

    proptest! {
        #[test]
        fn a_uint256_is_read_as_a_smaller_number_is(number: u128) {
            let mut expected = [0; 32];
            expected[16..].copy_from_slice(&number.to_be_bytes());
            prop_assert_eq!(parse_uint256(number.to_string().as_bytes()), Some(expected));
        }

        #[test]
        fn no_text_stops_a_reader(text in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = (parse_hex::<20>(&text), parse_hex::<65>(&text), parse_uuid(&text), parse_uint256(&text));
        }
    }
}
