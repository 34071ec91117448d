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
        }
    }
}
