//! The texts of auth headers: addresses, base64, API keys, timestamps.
//!
//! Readers take what every client sends (either case, either base64 alphabet, padding or none) and
//! nothing else; they allocate nothing. Writers give one canonical form.

use super::eip712::keccak;
use crate::domain::Address;
use crate::domain::text::{hex_digit, parse_hex};
#[cfg(test)]
use crate::domain::{ApiKey, text::UUID_CHARS};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Characters of an address in text: `0x` and 40 hex digits.
pub const ADDRESS_TEXT_BYTES: usize = 42;

/// Characters of 32 bytes in base64 with padding.
pub const SECRET_TEXT_BYTES: usize = 44;

/// Standard alphabet, with or without padding; the URL alphabet is translated to it first.
const BASE64_READER: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// URL alphabet with padding: the form in which secrets and signatures are written.
const BASE64_WRITER: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, GeneralPurposeConfig::new());

/// Reads an address, whatever the case of its digits: clients differ, so the checksum is not checked.
#[must_use]
pub fn address(text: &[u8]) -> Option<Address> {
    parse_hex(text).map(Address)
}

/// Writes an address with its EIP-55 checksum in the case of its letters.
#[must_use]
pub fn checksummed(address: &Address) -> [u8; ADDRESS_TEXT_BYTES] {
    let mut text = [0; ADDRESS_TEXT_BYTES];
    text[..2].copy_from_slice(b"0x");
    lower_hex(address.as_bytes(), &mut text[2..]);
    let hash = keccak(&text[2..]);
    for (index, digit) in text[2..].iter_mut().enumerate() {
        let byte = hash.0[index / 2];
        let bit = if index.is_multiple_of(2) { byte >> 7 } else { byte >> 3 & 1 };
        if bit == 1 {
            digit.make_ascii_uppercase();
        }
    }
    text
}

/// Writes `bytes` as lower-case hex into exactly twice as many characters.
pub fn lower_hex(bytes: &[u8], out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    assert!(out.len() == 2 * bytes.len(), "two digits a byte");
    for (byte, pair) in bytes.iter().zip(out.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// Writes an API key as a lower-case UUID, as `json::name` does for clients.
#[cfg(test)]
pub(crate) fn uuid_text(key: &ApiKey) -> [u8; UUID_CHARS] {
    let mut digits = [0; 32];
    lower_hex(key.as_bytes(), &mut digits);
    let mut text = [b'-'; UUID_CHARS];
    for (from, to) in [(0..8, 0..8), (8..12, 9..13), (12..16, 14..18), (16..20, 19..23), (20..32, 24..36)] {
        text[to].copy_from_slice(&digits[from]);
    }
    text
}

/// Reads 32 bytes of base64 in either alphabet, with or without padding.
#[must_use]
pub fn base64_32(text: &[u8]) -> Option<[u8; 32]> {
    if text.len() > SECRET_TEXT_BYTES {
        return None;
    }
    let mut standard = [0; SECRET_TEXT_BYTES];
    for (to, from) in standard.iter_mut().zip(text) {
        *to = match *from {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
    }
    // The engine wants room for whole groups of three.
    let mut bytes = [0; 33];
    let count = BASE64_READER.decode_slice(&standard[..text.len()], &mut bytes).ok()?;
    (count == 32).then(|| bytes[..32].try_into().expect("32 bytes were counted"))
}

/// Writes 32 bytes as base64 in the URL alphabet with padding.
#[must_use]
pub fn base64_text(bytes: &[u8; 32]) -> [u8; SECRET_TEXT_BYTES] {
    let mut text = [0; SECRET_TEXT_BYTES];
    let count = BASE64_WRITER.encode_slice(bytes, &mut text).expect("44 characters hold 32 bytes");
    assert!(count == SECRET_TEXT_BYTES, "32 bytes make 43 characters and one of padding");
    text
}

/// Reads a number of at most 19 digits, as timestamps are.
#[must_use]
pub fn decimal_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The bytes of a literal in our own source: exactly `2 * N` hex digits.
pub(super) const fn literal<const N: usize>(digits: &str) -> [u8; N] {
    let digits = digits.as_bytes();
    assert!(digits.len() == 2 * N, "two digits a byte");
    let mut bytes = [0; N];
    let mut index = 0;
    while index < N {
        let (Some(high), Some(low)) = (hex_digit(digits[2 * index]), hex_digit(digits[2 * index + 1])) else {
            panic!("a literal has hex digits only")
        };
        bytes[index] = high << 4 | low;
        index += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::parse_uuid;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_in_any_case_and_written_with_their_checksum() {
        // The four mixed-case examples of EIP-55.
        for text in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            let read = address(text.as_bytes()).expect("an address");
            assert_eq!(address(text.to_lowercase().as_bytes()), Some(read));
            assert_eq!(checksummed(&read), text.as_bytes());
        }
    }

    #[test]
    fn texts_of_another_length_or_alphabet_are_not_read() {
        assert_eq!(address(b"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe"), None);
        assert_eq!(address(b"5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed00"), None);
        assert_eq!(address(b"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg"), None);
        for chars in [0, 39, 40, 41, 42, 45] {
            assert_eq!(base64_32(&b"A".repeat(chars)), None, "{chars} characters");
        }
        assert_eq!(decimal_u64(b"12345678901234567890"), None);
        assert_eq!(decimal_u64(b"1.5"), None);
    }

    #[test]
    fn a_uuid_is_written_as_it_was_read() {
        let text = b"f81d4fae-7dec-4000-a765-00a0c91e6bf6";
        let key = parse_uuid(text).expect("a UUID");
        assert_eq!(uuid_text(&key), *text);
        assert_eq!(parse_uuid(text.to_ascii_uppercase().as_slice()), Some(key));
    }

    #[test]
    fn base64_is_read_in_both_alphabets_with_and_without_padding() {
        let bytes: [u8; 32] = std::array::from_fn(|index| 0xff - u8::try_from(index).expect("small") * 3);
        let url = base64_text(&bytes);
        let standard = url.map(|character| match character {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        });
        assert!(url != standard, "the example has a letter that differs");
        for text in [&url[..], &url[..43], &standard[..], &standard[..43]] {
            assert_eq!(base64_32(text), Some(bytes));
        }
        for length in 0..43 {
            assert_eq!(base64_32(&url[..length]), None, "{length} characters");
        }
        assert_eq!(base64_32(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA ="), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(address_bytes: [u8; 20], key: [u8; 16], secret: [u8; 32]) {
            prop_assert_eq!(address(&checksummed(&Address(address_bytes))), Some(Address(address_bytes)));
            prop_assert_eq!(parse_uuid(&uuid_text(&ApiKey(key))), Some(ApiKey(key)));
            prop_assert_eq!(base64_32(&base64_text(&secret)), Some(secret));
        }

        #[test]
        fn no_text_stops_a_reader(text in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = (address(&text), base64_32(&text));
            if let Some(number) = decimal_u64(&text) {
                prop_assert_eq!(std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()), Some(number));
            }
        }
    }
}
