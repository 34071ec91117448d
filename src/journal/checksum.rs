//! CRC-32C (Castagnoli): what every frame, row and section of the journal ends or begins with.

use crc_fast::{CrcAlgorithm, Digest, checksum_combine, crc32_iscsi};

/// The checksum of `bytes`.
#[must_use]
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    crc32_iscsi(bytes)
}

/// The checksum of what `sum` is the checksum of, and of `bytes` behind it.
#[must_use]
pub(crate) fn append(sum: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!sum));
    digest.update(bytes);
    narrow(digest.finalize())
}

/// The same for a few words, without the state that [`append`] makes for stretches of any length: a checksum is
/// linear, so one that goes on from `sum` is one that begins anew with `sum` added to what comes first.
#[must_use]
pub(crate) fn append_words<const N: usize>(sum: u32, mut words: [u64; N]) -> u32 {
    words[0] ^= u64::from(sum);
    self::sum(words.map(u64::to_le_bytes).as_flattened())
}

/// The checksum of two stretches one behind the other, from theirs; `length` is the second's.
#[must_use]
pub(crate) fn combine(first: u32, second: u32, length: usize) -> u32 {
    narrow(checksum_combine(CrcAlgorithm::Crc32Iscsi, first.into(), second.into(), length as u64))
}

fn narrow(sum: u64) -> u32 {
    u32::try_from(sum).expect("this checksum has 32 bits")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        let rising: Vec<u8> = (0..32).collect();
        for (bytes, expected) in [
            (vec![0; 32], 0x8a91_36aa),
            (vec![0xff; 32], 0x62a8_ab43),
            (rising.clone(), 0x46dd_794e),
            (rising.into_iter().rev().collect(), 0x113f_db5c),
            (Vec::new(), 0),
        ] {
            assert_eq!(sum(&bytes), expected);
            for cut in 0..=bytes.len() {
                let (first, second) = bytes.split_at(cut);
                assert_eq!(append(sum(first), second), expected, "cut at {cut}");
                assert_eq!(combine(sum(first), sum(second), second.len()), expected, "cut at {cut}");
            }
            if let [first, words @ ..] = bytes.as_chunks::<8>().0 {
                let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                let words: [u64; 3] = words.try_into().expect("the vectors that have words have four");
                assert_eq!(append_words(sum(first), words), expected);
            }
        }
    }
}
