//! CRC-32C (Castagnoli): what every frame, row and section of the journal ends or begins with.
//!
//! Long stretches are left to the library. The few words of a frame's decision are summed with the processor's own
//! instruction, and the sum of what was received, made when it was checked ([`Stretch`]), is joined in by one
//! multiplication.
//!
//! CHECKSUM-1: without the instructions the library gives the same sums; `is_x86_feature_detected` decides.
#![allow(unsafe_code, reason = "the processor's instruction for this checksum")]

use super::frame::{LINE_BYTES, Line};
use crc_fast::{CrcAlgorithm, Digest, checksum_combine, crc32_iscsi};
use std::arch::x86_64::{
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64,
};

/// Up to this length, summing word by word is quicker than starting the library.
const FEW_BYTES: usize = 64;

/// Up to this many words behind others, likewise: the library would first have to be given their sum.
const FEW_WORDS: usize = 64;

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
    // One by one, so that they are passed in registers.
    let [first, second, third] = words;
    if sums_words() {
        // SAFETY: by CHECKSUM-1 the processor has what the function is compiled for.
        return unsafe { on(sum, first, second, third) };
    }
    on_by_library(sum, first, second, third)
}

/// The checksum of what `sum` covers, followed by words.
#[must_use]
#[inline]
pub(crate) fn append_each(sum: u32, words: &[[u8; 8]]) -> u32 {
    if words.is_empty() {
        return sum;
    }
    if words.len() <= FEW_WORDS && sums_words() {
        // SAFETY: by CHECKSUM-1 the processor has what the function is compiled for.
        return unsafe { on_each(sum, words) };
    }
    append(sum, words.as_flattened())
}

/// The most lines of a stretch.
pub(crate) const STRETCH_LINES_MAX: usize = 16;

/// The checksum of lines, computed before it is known what comes in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    sum: u32,
    lines: u32,
    /// The factor that shifts a sum past that many lines.
    factor: u32,
}

impl Stretch {
    /// The stretch of no lines, which [`sum_before`] does not take.
    pub(crate) const NOTHING: Self = Self { sum: 0, lines: 0, factor: 0 };

    /// The stretch of at least one line, and of at most [`STRETCH_LINES_MAX`].
    pub(crate) fn of(lines: &[Line]) -> Self {
        let count = u32::try_from(lines.len()).expect("a stretch is part of a frame");
        let sum = sum(lines.as_flattened().as_flattened());
        Self { sum, lines: count, factor: FACTORS[lines.len() - 1] }
    }
}

/// The checksum of four words, followed by a stretch.
#[must_use]
#[inline]
pub(crate) fn sum_before(words: [u64; 4], stretch: &Stretch) -> u32 {
    debug_assert!(0 < stretch.lines, "something was received");
    let [first, second, third, fourth] = words;
    if sums_words() && joins_stretches() {
        // SAFETY: by CHECKSUM-1 the processor has what the function is compiled for.
        return unsafe { before(first, second, third, fourth, stretch) };
    }
    before_by_library(first, second, third, fourth, stretch)
}

/// x^(512 n - 33) modulo the polynomial, for n = 1, 2, …: a sum times this, times the x^33 that the two instructions
/// contribute, is the sum with n lines of zeros after it.
const FACTORS: [u32; STRETCH_LINES_MAX] = {
    let mut factors = [0; STRETCH_LINES_MAX];
    let (mut power, mut at) = (1 << 31, 0);
    while at < factors.len() {
        let mut left = if at == 0 { 512 - 33 } else { 512 };
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
fn on_by_library(sum: u32, first: u64, second: u64, third: u64) -> u32 {
    let words = [first ^ u64::from(sum), second, third];
    crc32_iscsi(words.map(u64::to_le_bytes).as_flattened())
}

#[cold]
fn before_by_library(first: u64, second: u64, third: u64, fourth: u64, stretch: &Stretch) -> u32 {
    let front = crc32_iscsi([first, second, third, fourth].map(u64::to_le_bytes).as_flattened());
    combine(front, stretch.sum, LINE_BYTES * stretch.lines as usize)
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
fn on_each(sum: u32, words: &[[u8; 8]]) -> u32 {
    !end((!sum).into(), words.as_flattened())
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
fn before(first: u64, second: u64, third: u64, fourth: u64, stretch: &Stretch) -> u32 {
    let low = |word: u32| _mm_cvtsi64_si128(i64::from(word));
    let begun = _mm_crc32_u64(_mm_crc32_u64(u64::from(u32::MAX), first), second);
    let front = !narrow(_mm_crc32_u64(_mm_crc32_u64(begun, third), fourth));
    // The product of reflected numbers is one place too low in 64 bits; the checksum of a word shifts it by 32.
    let product = _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(low(front), low(stretch.factor)));
    narrow(_mm_crc32_u64(0, product.cast_unsigned())) ^ stretch.sum
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

    fn words_of<const N: usize>(bytes: &[u8]) -> [u64; N] {
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        words.try_into().expect("so many words")
    }

    #[test]
    fn the_instructions_and_the_library_agree_at_every_length() {
        let bytes: Vec<u8> = (0..700_u32).map(|at| (at * at % 251).to_le_bytes()[0]).collect();
        for length in 0..bytes.len() {
            assert_eq!(sum(&bytes[..length]), crc32_iscsi(&bytes[..length]), "{length} bytes");
        }
        for (words, lines) in (1..=10).map(|lines| bytes[..32 + LINE_BYTES * lines].split_at(32)) {
            let (lines, rest) = lines.as_chunks::<8>().0.as_chunks();
            let (words, stretch) = (words_of(words), Stretch::of(lines));
            let whole = crc32_iscsi(&bytes[..32 + LINE_BYTES * lines.len()]);
            assert!(rest.is_empty());
            assert_eq!(sum_before(words, &stretch), whole, "{} lines", lines.len());
            let [first, second, third, fourth] = words;
            let by_library = before_by_library(first, second, third, fourth, &stretch);
            assert_eq!(by_library, whole, "{} lines", lines.len());
        }
        for (first, words) in (0..80).map(|words| bytes[..5 + 8 * words].split_at(5)) {
            let chunks = words.as_chunks().0;
            let whole = crc32_iscsi(&bytes[..5 + words.len()]);
            assert_eq!(append_each(sum(first), chunks), whole, "{} words", chunks.len());
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
            }
            if let [first, words @ ..] = bytes.as_chunks::<8>().0 {
                let words = words_of(words.as_flattened());
                assert_eq!(append_words(sum(first), words), expected);
                let [second, third, fourth] = words;
                assert_eq!(on_by_library(sum(first), second, third, fourth), expected);
            }
        }
    }
}
