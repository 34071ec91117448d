//! Numbers as files write them: decimals become integers exactly or not at all.

use crate::domain::text::{parse_hex, parse_uint256};
use crate::domain::{ConditionId, TokenId, Word};

/// `text` times 10^`places`, if that is a whole number: `scaled("0.25", 6)` is 250,000.
pub(super) fn scaled(text: &str, places: i32) -> Option<u64> {
    let (digits, decimals) = digits_of(text)?;
    let digits: u64 = digits.parse().ok()?;
    let shift = places - decimals;
    let factor = 10_u64.checked_pow(shift.unsigned_abs())?;
    if shift < 0 {
        // Zeros at the end of the whole part may still make it a whole number.
        return digits.is_multiple_of(factor).then_some(digits / factor);
    }
    digits.checked_mul(factor)
}

/// The digits of a number that is not below zero, and how many of them are decimals: below zero where zeros are to
/// follow. An exponent is understood (`1e-3`), because JSON writers use one for small floats.
fn digits_of(text: &str) -> Option<(String, i32)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    let decimals = decimals.trim_end_matches('0');
    Some((format!("{whole}{decimals}"), i32::try_from(decimals.len()).ok()? - i32::from(exponent)))
}

/// The inverse of [`scaled`]: `decimal(10, 4)` is `0.001`.
pub(super) fn decimal(value: u64, places: usize) -> String {
    let digits = format!("{value:0>width$}", width = places + 1);
    let (whole, decimals) = digits.split_at(digits.len() - places);
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() { whole.to_owned() } else { format!("{whole}.{decimals}") }
}

/// `text` in millionths; digits below a millionth are cut. `None` if it is not a number or is below zero.
pub(super) fn cut_millionths(text: &str) -> Option<u64> {
    const PLACES: i32 = 6;
    let (mut digits, decimals) = digits_of(text)?;
    let below = usize::try_from(decimals - PLACES).unwrap_or(0);
    if 0 < below {
        digits.truncate(digits.len().saturating_sub(below));
        return if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    }
    digits.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(decimals.abs_diff(PLACES))?)
}

/// A uint256 in decimal digits, as tokens are written.
pub(super) fn token(text: &str) -> Option<TokenId> {
    let value = parse_uint256(text.as_bytes())?;
    (value != [0; 32]).then_some(TokenId(value))
}

/// How many hex digits follow `0x`; `None` if anything else does.
pub(super) fn hex_digits(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("0x")?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits.len())
}

/// `0x` and 64 hex digits.
pub(super) fn word(text: &str) -> Option<Word> {
    parse_hex(text.as_bytes()).map(Word)
}

/// As [`word`], for a condition id.
pub(super) fn condition(text: &str) -> Option<ConditionId> {
    word(text).map(|word| ConditionId(word.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_integers_exactly_or_not_at_all() {
        for (text, places, value) in [
            ("0.001", 4, Some(10)),
            ("0.0100", 4, Some(100)),
            ("1e-3", 4, Some(10)),
            ("5", 6, Some(5_000_000)),
            ("0.00001", 4, None),
            ("1e-30", 4, None),
            ("100e-2", 0, Some(1)),
            ("", 4, None),
            (".5", 4, None),
            ("-1", 4, None),
            ("1.2.3", 4, None),
            ("18446744073709551616", 0, None),
            ("1e120", 0, None),
        ] {
            assert_eq!(scaled(text, places), value, "{text}");
        }
    }

    #[test]
    fn a_decimal_reads_as_what_it_was_made_of() {
        for (value, places, text) in
            [(10, 4, "0.001"), (1_000, 4, "0.1"), (10_000, 4, "1"), (0, 4, "0"), (125, 1, "12.5")]
        {
            assert_eq!(decimal(value, places), text);
            assert_eq!(scaled(text, i32::try_from(places).expect("few")), Some(value));
        }
    }

    #[test]
    fn what_is_below_a_millionth_is_cut() {
        for (text, value) in [
            ("1067832.94112", Some(1_067_832_941_120)),
            ("0.8284832542822228", Some(828_483)),
            ("7", Some(7_000_000)),
            ("1e-05", Some(10)),
            ("5e-07", Some(0)),
            ("1.2345678e-05", Some(12)),
            ("98.76543215E-2", Some(987_654)),
            ("1.2345678e1", Some(12_345_678)),
            ("5e-324", Some(0)),
            ("7e2", Some(700_000_000)),
            ("0e0", Some(0)),
            ("1e300", None),
            ("1e-99999", None),
            ("1e-7x", None),
            ("1e", None),
            ("0.1234567x", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(cut_millionths(text), value, "{text}");
        }
    }

    #[test]
    fn tokens_are_uint256_and_never_zero() {
        let max = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(token(max), Some(TokenId([0xff; 32])));
        assert_eq!(token("256").map(|token| token.0[30..].to_vec()), Some(vec![1, 0]));
        for text in [
            "",
            "0",
            "-1",
            "0x10",
            "115792089237316195423570985008687907853269984665640564039457584007913129639936",
        ] {
            assert_eq!(token(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_exactly_32_bytes_of_hex() {
        let good = format!("0x{}", "aB".repeat(32));
        assert_eq!(word(&good), Some(Word([0xab; 32])));
        for text in [&good[2..], &good[..65], &format!("0x{}", "ag".repeat(32)), "0x"] {
            assert_eq!(word(text), None, "{text}");
        }
    }
}
