//! CRC-32C (Castagnoli): what every frame, row and section of the journal ends or begins with.
//!
//! Long stretches are left to the library. The few words of a frame's decision are summed with the processor's own
//! instruction, and the sum of what was received, made when it was checked ([`Stretch`]), is joined in by one
//! multiplication.
//!
//! CHECKSUM-1: without the instructions the library gives the same sums; `is_x86_feature_detected` decides.
#![allow(unsafe_code, reason = "the processor's instruction for this checksum")]

use crc_fast::{CrcAlgorithm, Digest, checksum_combine, crc32_iscsi};
use std::arch::x86_64::{
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64,
};

/// Up to this length, summing word by word is quicker than starting the library.
const FEW_BYTES: usize = 64;

/// The polynomial, reflected: its lowest power in the highest bit, x^32 left out.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The checksum of `bytes`.
#[must_use]
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    if bytes.len() <= FEW_BYTES && sums_words() {
        // SAFETY: by CHECKSUM-1 the processor has what the function is compiled for.
        return unsafe { few(bytes) };
    }
    crc32_iscsi(bytes)
}

/// The checksum of the bytes that `sum` covers, followed by `bytes`.
#[must_use]
pub(crate) fn append(sum: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!sum));
    digest.update(bytes);
    narrow(digest.finalize())
}

/// [`append`] for three words, without the state that it sets up for stretches of any length.
#[must_use]
#[inline]
pub(crate) fn append_words(sum: u32, words: [u64; 3]) -> u32 {
    if sums_words() {
        // One by one, so that they are passed in registers.
        let [first, second, third] = words;
        // SAFETY: by CHECKSUM-1 the processor has what the function is compiled for.
        return unsafe { on(sum, first, second, third) };
    }
    on_by_library(sum, words)
}

/// The checksum of a word followed by the first `bytes` bytes of `last`.
#[must_use]
pub(crate) fn sum_word_and(first: u64, last: &[[u8; 8]], bytes: usize) -> u32 {
    if bytes <= FEW_BYTES && sums_words() {
        // SAFETY: by CHECKSUM-1 the processor has what the function is compiled for.
        return unsafe { word_and(first, last, bytes) };
    }
    append(crc32_iscsi(&first.to_le_bytes()), &last.as_flattened()[..bytes])
}

/// The checksum of bytes in the middle, computed before it is known what is around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    sum: u32,
    bytes: u32,
    /// The factor that shifts a sum past that many bytes.
    factor: u32,
}

impl Stretch {
    /// The stretch of no bytes, which [`sum_around`] does not take.
    pub(crate) const NOTHING: Self = Self { sum: 0, bytes: 0, factor: 0 };

    /// The stretch of at least one word, and of no more words than [`FACTORS`] has entries.
    pub(crate) fn of(words: &[[u8; 8]]) -> Self {
        let bytes = words.as_flattened();
        let count = u32::try_from(bytes.len()).expect("a stretch is part of a frame");
        Self { sum: sum(bytes), bytes: count, factor: FACTORS[words.len() - 1] }
    }
}

/// The checksum of a word, followed by a stretch and the first `bytes` bytes of `last`.
#[must_use]
pub(crate) fn sum_around(first: u64, stretch: &Stretch, last: &[[u8; 8]], bytes: usize) -> u32 {
    if sums_words() && joins_stretches() {
        // SAFETY: by CHECKSUM-1 the processor has what the function is compiled for.
        return unsafe { around(first, stretch, last, bytes) };
    }
    around_by_library(first, stretch, &last.as_flattened()[..bytes])
}

/// x^(64 n - 33) modulo the polynomial, for n = 1, 2, …: a sum times this, times the x^33 that the two instructions
/// contribute, is the sum with n zero words after it.
const FACTORS: [u32; 128] = {
    let mut factors = [0; 128];
    let (mut power, mut at) = (1 << 31, 0);
    while at < factors.len() {
        let mut left = if at == 0 { 64 - 33 } else { 64 };
        while 0 < left {
            power = (power >> 1) ^ if power % 2 == 0 { 0 } else { POLYNOMIAL };
            left -= 1;
        }
        factors[at] = power;
        at += 1;
    }
    factors
};

/// A checksum is linear: to continue from `sum` is to begin anew with `sum` added (XOR) to the first bytes.
#[cold]
fn on_by_library(sum: u32, mut words: [u64; 3]) -> u32 {
    words[0] ^= u64::from(sum);
    crc32_iscsi(words.map(u64::to_le_bytes).as_flattened())
}

#[cold]
fn around_by_library(first: u64, stretch: &Stretch, last: &[u8]) -> u32 {
    let front = combine(crc32_iscsi(&first.to_le_bytes()), stretch.sum, stretch.bytes as usize);
    append(front, last)
}

fn sums_words() -> bool {
    is_x86_feature_detected!("sse4.2")
}

fn joins_stretches() -> bool {
    is_x86_feature_detected!("pclmulqdq")
}

#[target_feature(enable = "sse4.2")]
fn few(bytes: &[u8]) -> u32 {
    !end(u32::MAX.into(), bytes)
}

#[target_feature(enable = "sse4.2")]
fn on(sum: u32, first: u64, second: u64, third: u64) -> u32 {
    !narrow(_mm_crc32_u64(_mm_crc32_u64(_mm_crc32_u64((!sum).into(), first), second), third))
}

#[target_feature(enable = "sse4.2")]
fn word_and(first: u64, last: &[[u8; 8]], bytes: usize) -> u32 {
    !end(_mm_crc32_u64(u64::from(u32::MAX), first), &last.as_flattened()[..bytes])
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
fn around(first: u64, stretch: &Stretch, last: &[[u8; 8]], bytes: usize) -> u32 {
    let low = |word: u32| _mm_cvtsi64_si128(i64::from(word));
    let front = !narrow(_mm_crc32_u64(u64::from(u32::MAX), first));
    // The product of reflected numbers is one place too low in 64 bits; the checksum of a word shifts it by 32.
    let product = _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(low(front), low(stretch.factor)));
    let moved = narrow(_mm_crc32_u64(0, product.cast_unsigned()));
    !end((!(moved ^ stretch.sum)).into(), &last.as_flattened()[..bytes])
}

/// The state of a sum after `bytes`. The last, partial word is taken in steps of four bytes, two and one rather than
/// byte by byte, as each instruction waits for the one before.
#[target_feature(enable = "sse4.2")]
#[inline]
fn end(mut state: u64, bytes: &[u8]) -> u32 {
    let (whole, mut last) = bytes.as_chunks::<8>();
    for word in whole {
        state = _mm_crc32_u64(state, u64::from_le_bytes(*word));
    }
    let mut state = narrow(state);
    if let Some((four, behind)) = last.split_first_chunk() {
        (state, last) = (_mm_crc32_u32(state, u32::from_le_bytes(*four)), behind);
    }
    if let Some((two, behind)) = last.split_first_chunk() {
        (state, last) = (_mm_crc32_u16(state, u16::from_le_bytes(*two)), behind);
    }
    if let Some(byte) = last.first() {
        state = _mm_crc32_u8(state, *byte);
    }
    state
}

/// The checksum of two stretches in sequence, from theirs; `length` is the second's.
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

    fn padded(bytes: &[u8]) -> (Vec<[u8; 8]>, usize) {
        let mut whole = bytes.to_vec();
        whole.resize(bytes.len().next_multiple_of(8), 0);
        (whole.as_chunks().0.to_vec(), bytes.len())
    }

    #[test]
    fn the_instructions_and_the_library_agree_at_every_length() {
        let bytes: Vec<u8> = (0..700_u32).map(|at| (at * at % 251).to_le_bytes()[0]).collect();
        for length in 0..bytes.len() {
            assert_eq!(sum(&bytes[..length]), crc32_iscsi(&bytes[..length]), "{length} bytes");
        }
        for middle in (8..=bytes.len() - 16).step_by(8) {
            for behind in 0..8 {
                let bytes = &bytes[..8 + middle + behind];
                let (front, last) = bytes.split_at(8 + middle);
                let (word, middle) = front.split_first_chunk().expect("a word and more");
                let (first, stretch) = (u64::from_le_bytes(*word), Stretch::of(middle.as_chunks().0));
                assert_eq!(around_by_library(first, &stretch, last), crc32_iscsi(bytes), "{middle:?}");
                let (last, count) = padded(last);
                assert_eq!(sum_around(first, &stretch, &last, count), crc32_iscsi(bytes), "{middle:?}");
            }
        }
        for length in 8..bytes.len() {
            let (word, last) = bytes[..length].split_first_chunk().expect("a word and more");
            let (last, count) = padded(last);
            assert_eq!(
                sum_word_and(u64::from_le_bytes(*word), &last, count),
                crc32_iscsi(&bytes[..length]),
                "{length} bytes"
            );
        }
    }

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
                let (words, rest) = first.as_chunks();
                if let ([word, middle @ ..], []) = (words, rest)
                    && !middle.is_empty()
                {
                    let stretch = Stretch::of(middle);
                    let (words, bytes) = padded(second);
                    let sum = sum_around(u64::from_le_bytes(*word), &stretch, &words, bytes);
                    assert_eq!(sum, expected, "cut at {cut}");
                }
            }
            if let [first, words @ ..] = bytes.as_chunks::<8>().0 {
                let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                let words: [u64; 3] = words.try_into().expect("the vectors that have words have four");
                assert_eq!(append_words(sum(first), words), expected);
                assert_eq!(on_by_library(sum(first), words), expected);
            }
        }
    }
}
