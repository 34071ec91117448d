//! The first control byte of a slice, eight bytes at a time.
//!
//! Lines of a request head end at a control byte (CR) and may hold none but TAB. One scan thus both
//! finds the end of a line and notices whatever must not be in it.

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const BYTES_AT_ONCE: usize = 8;

/// The index of the first control byte other than TAB (0x00..=0x1f, 0x7f).
pub(crate) fn first_control(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<BYTES_AT_ONCE>();
    for (index, word) in words.iter().enumerate() {
        if may_hold_control(u64::from_le_bytes(*word))
            && let Some(within) = word.iter().position(|&byte| is_control(byte))
        {
            return Some(index * BYTES_AT_ONCE + within);
        }
    }
    let tail = rest.iter().position(|&byte| is_control(byte))?;
    Some(words.len() * BYTES_AT_ONCE + tail)
}

/// True if one of the eight bytes is below 0x20 or is 0x7f. TAB counts too, so there are false
/// positives, but never false negatives.
const fn may_hold_control(word: u64) -> bool {
    let below_space = word.wrapping_sub(LOW_BITS * 0x20) & !word;
    let flipped = word ^ (LOW_BITS * 0x7f);
    let delete = flipped.wrapping_sub(LOW_BITS) & !flipped;
    (below_space | delete) & HIGH_BITS != 0
}

const fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_judged_as_one_byte_alone() {
        for length in 0..20 {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    for filler in [b'a', 0xff, b'\t', b' ', 0x80] {
                        let mut bytes = vec![filler; length];
                        bytes[at] = byte;
                        let expected = is_control(byte).then_some(at);
                        assert_eq!(first_control(&bytes), expected, "{byte:#x} at {at} of {length}");
                    }
                }
            }
        }
    }
}
