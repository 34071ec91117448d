//! The first byte of a text that JSON writes as an escape, eight bytes at a time.

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const BYTES_AT_ONCE: usize = 8;

/// How many bytes come before the first quote, backslash or control byte (0x00..=0x1f).
pub(crate) fn plain_bytes(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<BYTES_AT_ONCE>();
    for (index, word) in words.iter().enumerate() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return index * BYTES_AT_ONCE + marks.trailing_zeros() as usize / 8;
        }
    }
    let plain = rest.iter().position(|&byte| must_escape(byte)).unwrap_or(rest.len());
    words.len() * BYTES_AT_ONCE + plain
}

/// True for a byte that a JSON string holds only as an escape.
pub(crate) const fn must_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The high bit of each byte that must be escaped. A byte above a marked one may be marked wrongly,
/// because a subtraction borrows from it; the lowest mark is always right.
const fn marks(word: u64) -> u64 {
    let quote = word ^ (LOW_BITS * b'"' as u64);
    let backslash = word ^ (LOW_BITS * b'\\' as u64);
    let control = word.wrapping_sub(LOW_BITS * 0x20) & !word;
    let quote = quote.wrapping_sub(LOW_BITS) & !quote;
    let backslash = backslash.wrapping_sub(LOW_BITS) & !backslash;
    (control | quote | backslash) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_judged_as_one_byte_alone() {
        for length in 0..20 {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    for filler in [b'a', b'!', b'#', b'[', b']', b' ', 0x80, 0xff] {
                        let mut text = vec![filler; length];
                        text[at] = byte;
                        let expected = if must_escape(byte) { at } else { length };
                        assert_eq!(plain_bytes(&text), expected, "{byte:#x} at {at} of {length}");
                    }
                }
            }
        }
    }
}
