//! Integers <-> decimal text: the only file of this room that knows both.
//!
//! | unit | integer | text |
//! |---|---|---|
//! | collateral, shares | millionths | `10`, `19.6078`: as short as possible |
//! | price, tick | ten-thousandths | `0.5`, `0.51`: as short as possible |
//! | uint256 | 32 bytes, big-endian | up to 78 digits |
//!
//! Nothing here is a float. Only [`parse_millionths_up`] and [`parse_millionths_down`] read an exponent. No sign of a
//! number is read, and only [`push_signed`] writes one.

use ruint::aliases::U256;

use super::short::Sink;
use crate::domain::{Price, Tick, text};

/// Places of a millionth.
const MILLIONTH_PLACES: u32 = 6;

/// Places of a ten-thousandth.
const PRICE_PLACES: u32 = 4;

/// The largest exponent that is told from larger ones: no text has so many digits.
const EXPONENT_MAX: i64 = 1 << 40;

/// Digits of `u64::MAX`.
const U64_DIGITS_MAX: usize = 20;

/// The largest power of ten in a `u64`: uint256 texts are made in pieces of this size.
const PIECE: u64 = 10_u64.pow(PIECE_DIGITS);
const PIECE_DIGITS: u32 = 19;

/// The powers of ten in a `u64`.
const TENS: [u64; PIECE_DIGITS as usize + 1] = {
    let mut powers = [1; PIECE_DIGITS as usize + 1];
    let mut next = 1;
    while next < powers.len() {
        powers[next] = 10 * powers[next - 1];
        next += 1;
    }
    powers
};

/// Why a text is not the number asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDecimal {
    /// It is not a plain decimal number, or has more places than the unit.
    Malformed,
    /// It is one, but larger than the unit can hold.
    TooLarge,
}

/// Appends `value`.
pub fn push_integer(out: &mut impl Sink, value: u64) {
    push_parts(out, value, 0, 0);
}

/// Appends an amount of `value` millionths, as short as possible.
pub fn push_millionths(out: &mut impl Sink, value: u64) {
    push_scaled(out, value, MILLIONTH_PLACES);
}

/// Appends `value` ten-thousandths, as short as possible.
pub fn push_ten_thousandths(out: &mut impl Sink, value: u16) {
    push_scaled(out, value.into(), PRICE_PLACES);
}

/// Appends `value` / 10^`places`, as short as possible, with a minus if it is below zero. `places`
/// is at most 19.
pub fn push_signed(out: &mut impl Sink, value: i128, places: u32) {
    if value < 0 {
        out.put(b"-");
    }
    let value = value.unsigned_abs();
    if let Ok(small) = u64::try_from(value) {
        return push_scaled(out, small, places);
    }
    let one = u128::from(TENS[places as usize]);
    match (u64::try_from(value / one), u64::try_from(value % one)) {
        (Ok(whole), Ok(fraction)) => push_parts(out, whole, fraction, places),
        // A whole part above `u64::MAX` is capped to it; no amount here comes near.
        _ => push_integer(out, u64::MAX),
    }
}

/// Appends a price: `0.5`, `0.51`.
pub fn push_price(out: &mut impl Sink, price: Price) {
    push_ten_thousandths(out, price.ten_thousandths());
}

/// Appends a uint256.
pub fn push_uint256(out: &mut impl Sink, bytes: &[u8; 32]) {
    /// 78 digits make five pieces of 19 at most.
    const PIECES_MAX: usize = 5;
    let mut pieces = [0; PIECES_MAX];
    let mut count = 0;
    let mut left = U256::from_be_bytes(*bytes);
    while !left.is_zero() {
        let (rest, piece) = left.div_rem(U256::from(PIECE));
        pieces[count] = piece.to::<u64>();
        count += 1;
        left = rest;
    }
    push_integer(out, if count == 0 { 0 } else { pieces[count - 1] });
    for piece in pieces[..count.saturating_sub(1)].iter().rev() {
        push_piece(out, *piece);
    }
}

/// Reads a `u64`: digits only.
pub fn parse_integer(text: &[u8]) -> Result<u64, NotDecimal> {
    if text.is_empty() {
        return Err(NotDecimal::Malformed);
    }
    let mut value = Ok(0_u64);
    for byte in text {
        let digit = digit(*byte)?;
        value = value.and_then(|value| {
            value.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(NotDecimal::TooLarge)
        });
    }
    value
}

/// Reads an amount in millionths: `10`, `10.5`, at most six places.
pub fn parse_millionths(text: &[u8]) -> Result<u64, NotDecimal> {
    parse_scaled(text, MILLIONTH_PLACES)
}

/// Reads an amount in millionths as clients write floats: `1e-05`, `2.5E+3`, with any number of places. What is between
/// two millionths becomes the upper one: a whole number of millionths is at least the one if and only if it is at least
/// the other.
///
/// [`NotDecimal::TooLarge`] if that is above `u64::MAX`.
pub fn parse_millionths_up(text: &[u8]) -> Result<u64, NotDecimal> {
    let (whole, is_between) = parse_float(text)?;
    whole.checked_add(is_between.into()).ok_or(NotDecimal::TooLarge)
}

/// As [`parse_millionths_up`], but the lower one of two millionths: a whole number of millionths is at most the one if
/// and only if it is at most the other.
pub fn parse_millionths_down(text: &[u8]) -> Result<u64, NotDecimal> {
    parse_float(text).map(|(whole, _)| whole)
}

/// As [`parse_millionths`], but also as clients write floats: `1e-05`, `100.0000000`. What is between two millionths is
/// [`NotDecimal::Malformed`].
pub fn parse_millionths_float(text: &[u8]) -> Result<u64, NotDecimal> {
    match parse_float(text)? {
        (whole, false) => Ok(whole),
        (_, true) => Err(NotDecimal::Malformed),
    }
}

/// The whole millionths of a float, and whether there is more of it.
fn parse_float(text: &[u8]) -> Result<(u64, bool), NotDecimal> {
    let (number, exponent) = match text.iter().position(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (whole, fraction) = split_at_point(number);
    if whole.is_empty() || fraction.is_empty() {
        return Err(NotDecimal::Malformed);
    }
    let whole_digits = i64::try_from(whole.len()).map_err(|_| NotDecimal::TooLarge)?;
    // How many of the digits count whole millionths; zeros follow if there are fewer.
    let mut kept = whole_digits + exponent + i64::from(MILLIONTH_PLACES);
    let (mut value, mut is_between) = (Some(0_u64), false);
    for byte in whole.iter().chain(fraction) {
        let digit = digit(*byte)?;
        if 0 < kept {
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit));
            kept -= 1;
        } else {
            is_between |= digit != 0;
        }
    }
    if value != Some(0) {
        let zeros = u32::try_from(kept.max(0)).map_err(|_| NotDecimal::TooLarge)?;
        value = value.and_then(|value| value.checked_mul(10_u64.checked_pow(zeros)?));
    }
    value.map(|value| (value, is_between)).ok_or(NotDecimal::TooLarge)
}

/// Reads a price: `0.5`, at most four places, between 0 and 1.
pub fn parse_price(text: &[u8]) -> Result<Price, NotDecimal> {
    let value = parse_scaled(text, PRICE_PLACES)?;
    u16::try_from(value).ok().and_then(Price::new).ok_or(NotDecimal::TooLarge)
}

/// Reads a tick: one of the six that the venues know.
pub fn parse_tick(text: &[u8]) -> Result<Tick, NotDecimal> {
    let value = parse_scaled(text, PRICE_PLACES)?;
    u16::try_from(value).ok().and_then(Tick::new).ok_or(NotDecimal::TooLarge)
}

/// Reads a uint256: digits only, at most 78.
pub fn parse_uint256(text: &[u8]) -> Result<[u8; 32], NotDecimal> {
    text::parse_uint256(text).ok_or_else(|| {
        let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        if is_number { NotDecimal::TooLarge } else { NotDecimal::Malformed }
    })
}

/// Appends `value` / 10^`places` without trailing zeros. `places` is at most 19.
fn push_scaled(out: &mut impl Sink, value: u64, places: u32) {
    let one = TENS[places as usize];
    push_parts(out, value / one, value % one, places);
}

/// Appends `whole` and, if `fraction` is not zero, a point and the digits of `fraction` /
/// 10^`places` without trailing zeros.
fn push_parts(out: &mut impl Sink, whole: u64, fraction: u64, places: u32) {
    // Filled with points; the one between the digits of the whole and those of the fraction stays.
    let mut text = [b'.'; U64_DIGITS_MAX + 1 + U64_DIGITS_MAX];
    let start = put_digits(&mut text[..U64_DIGITS_MAX], whole);
    let mut end = U64_DIGITS_MAX;
    if fraction != 0 {
        end += 1 + places as usize;
        put_padded(&mut text[U64_DIGITS_MAX + 1..end], fraction);
        while text[end - 1] == b'0' {
            end -= 1;
        }
    }
    out.put(&text[start..end]);
}

/// Appends all digits of a piece, with the zeros before them.
fn push_piece(out: &mut impl Sink, piece: u64) {
    let mut digits = [b'0'; PIECE_DIGITS as usize];
    put_padded(&mut digits, piece);
    out.put(&digits);
}

/// Writes `value` at the end of `text`, which must have room, and returns where it begins.
fn put_digits(text: &mut [u8], value: u64) -> usize {
    let (mut left, mut at) = (value, text.len());
    while left >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(pair(left % 100));
        left /= 100;
    }
    if left >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(pair(left));
    } else {
        at -= 1;
        text[at] = ascii(left);
    }
    at
}

/// Fills `text` with the last digits of `value`.
fn put_padded(text: &mut [u8], value: u64) {
    let mut left = value;
    let mut pairs = text.rchunks_exact_mut(2);
    for two in &mut pairs {
        two.copy_from_slice(pair(left % 100));
        left /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = ascii(left % 10);
    }
}

/// The digits of a number below 100.
fn pair(value: u64) -> &'static [u8; 2] {
    const PAIRS: [[u8; 2]; 100] = pairs();
    &PAIRS[usize::try_from(value).expect("two digits fit")]
}

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[b'0'; 2]; 100];
    let mut next = 0;
    while next < 100 {
        #[allow(clippy::cast_possible_truncation, reason = "below 100")]
        let value = next as u8;
        pairs[next] = [b'0' + value / 10, b'0' + value % 10];
        next += 1;
    }
    pairs
}

fn parse_scaled(text: &[u8], places: u32) -> Result<u64, NotDecimal> {
    let (whole, fraction) = split_at_point(text);
    let fraction_digits = u32::try_from(fraction.len()).map_err(|_| NotDecimal::Malformed)?;
    if fraction_digits > places {
        return Err(NotDecimal::Malformed);
    }
    let fraction = parse_integer(fraction)? * 10_u64.pow(places - fraction_digits);
    let whole = parse_integer(whole)?.checked_mul(10_u64.pow(places));
    whole.and_then(|whole| whole.checked_add(fraction)).ok_or(NotDecimal::TooLarge)
}

/// The digits before and after the point; without one, a zero is after it.
fn split_at_point(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, b"0"),
    }
}

/// Reads what follows the `e`; a size of more than [`EXPONENT_MAX`] is cut to it.
fn parse_exponent(text: &[u8]) -> Result<i64, NotDecimal> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    match parse_integer(digits) {
        Ok(size) => Ok(sign * i64::try_from(size).map_or(EXPONENT_MAX, |size| size.min(EXPONENT_MAX))),
        Err(NotDecimal::TooLarge) => Ok(sign * EXPONENT_MAX),
        Err(malformed) => Err(malformed),
    }
}

fn digit(byte: u8) -> Result<u64, NotDecimal> {
    if byte.is_ascii_digit() { Ok(u64::from(byte - b'0')) } else { Err(NotDecimal::Malformed) }
}

fn ascii(digit: u64) -> u8 {
    b'0' + u8::try_from(digit).expect("a digit is below ten")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn amounts_are_as_short_as_possible_and_read_back() {
        for (value, text) in [
            (0, "0"),
            (1, "0.000001"),
            (10_000_000, "10"),
            (19_607_800, "19.6078"),
            (500_000, "0.5"),
            (1_000_001, "1.000001"),
            (100_000_000, "100"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(written(|out| push_millionths(out, value)), text);
            assert_eq!(parse_millionths(text.as_bytes()), Ok(value));
        }
    }

    #[test]
    fn signed_numbers_are_as_short_as_possible_too() {
        for (value, places, text) in [
            (0, 4, "0"),
            (-1, 4, "-0.0001"),
            (15_000, 4, "1.5"),
            (-1_234_500_000, 6, "-1234.5"),
            (i128::from(u64::MAX) + 1, 6, "18446744073709.551616"),
            (-36_893_488_147_419_103_230, 6, "-36893488147419.10323"),
            (20 * 10_i128.pow(18), 18, "20"),
            (i128::MAX, 6, "18446744073709551615"),
            (i128::MIN, 18, "-18446744073709551615"),
        ] {
            assert_eq!(written(|out| push_signed(out, value, places)), text);
        }
    }

    proptest! {
        #[test]
        fn any_number_is_written_as_it_is_spelled_out(
            value in prop_oneof![any::<u64>(), 0..100_u64, (0..20_u32).prop_map(|places| 10_u64.pow(places))],
            places in 0..20_u32,
            below_zero in any::<bool>(),
        ) {
            let sign = if below_zero && value > 0 { "-" } else { "" };
            let (one, width) = (10_u64.pow(places), places as usize);
            let fraction = if places == 0 { String::new() } else { format!("{:0>width$}", value % one) };
            let plain = format!("{sign}{}.{fraction}", value / one);
            let plain = plain.trim_end_matches('0').trim_end_matches('.');
            let signed = if below_zero { -i128::from(value) } else { value.into() };
            prop_assert_eq!(written(|out| push_signed(out, signed, places)), plain);
            prop_assert_eq!(written(|out| push_integer(out, value)), value.to_string());
        }
    }

    #[test]
    fn every_price_and_tick_reads_back() {
        for ten_thousandths in 1..10_000 {
            let price = Price::new(ten_thousandths).expect("in range");
            let text = written(|out| push_price(out, price));
            assert!(!text.ends_with('0') && text.starts_with("0."));
            assert_eq!(parse_price(text.as_bytes()), Ok(price));
        }
        let ticks = Tick::ALL.map(|tick| written(|out| push_ten_thousandths(out, tick.ten_thousandths())));
        assert_eq!(ticks, ["0.1", "0.01", "0.005", "0.0025", "0.001", "0.0001"]);
        assert_eq!(parse_tick(b"0.0025"), Ok(Tick::ALL[3]));
        assert_eq!(parse_tick(b"0.02"), Err(NotDecimal::TooLarge));
        assert_eq!(parse_price(b"1"), Err(NotDecimal::TooLarge));
        assert_eq!(parse_price(b"0"), Err(NotDecimal::TooLarge));
        assert_eq!(written(|out| push_ten_thousandths(out, 10_000)), "1");
    }

    #[test]
    fn what_is_not_a_plain_number_is_refused() {
        for text in ["", "+1", "-1", "1e3", "1.0", "0x1", " 1", "1 ", "1_000", "１", "NaN"] {
            assert_eq!(parse_integer(text.as_bytes()), Err(NotDecimal::Malformed), "{text:?}");
            assert_eq!(parse_uint256(text.as_bytes()), Err(NotDecimal::Malformed), "{text:?}");
        }
        for text in ["", ".", "1.", ".5", "1.2.3", "1.0000000", "-1", "1e3"] {
            assert_eq!(parse_millionths(text.as_bytes()), Err(NotDecimal::Malformed), "{text:?}");
        }
        assert_eq!(parse_integer(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_integer(b"18446744073709551616"), Err(NotDecimal::TooLarge));
        assert_eq!(parse_integer(b"99999999999999999999999x"), Err(NotDecimal::Malformed));
        assert_eq!(parse_millionths(b"18446744073709.551616"), Err(NotDecimal::TooLarge));
        assert_eq!(parse_millionths(b"18446744073710"), Err(NotDecimal::TooLarge));
    }

    #[test]
    fn an_exponent_and_further_places_are_read_and_rounded_down_and_up() {
        let (far, zeros) = ("9".repeat(30), "0".repeat(30));
        let large = Err(NotDecimal::TooLarge);
        for (text, down, up) in [
            ("0", Ok(0), Ok(0)),
            ("0.0000001", Ok(0), Ok(1)),
            ("0.0000010", Ok(1), Ok(1)),
            ("0.00000100000000000000000000000000001", Ok(1), Ok(2)),
            ("0.30000000000000004", Ok(300_000), Ok(300_001)),
            ("1e-3", Ok(1_000), Ok(1_000)),
            ("1e-05", Ok(10), Ok(10)),
            ("1e-7", Ok(0), Ok(1)),
            ("1.5E-06", Ok(1), Ok(2)),
            ("12.25e+1", Ok(122_500_000), Ok(122_500_000)),
            ("2.5e3", Ok(2_500_000_000), Ok(2_500_000_000)),
            ("0e99", Ok(0), Ok(0)),
            (&format!("0e{far}"), Ok(0), Ok(0)),
            (&format!("1e-{far}"), Ok(0), Ok(1)),
            (&format!("1{zeros}e-30"), Ok(1_000_000), Ok(1_000_000)),
            (&format!("0.{zeros}1e31"), Ok(1_000_000), Ok(1_000_000)),
            ("18446744073709.551615", Ok(u64::MAX), Ok(u64::MAX)),
            ("18446744073709551615e-6", Ok(u64::MAX), Ok(u64::MAX)),
            ("1.8446744073709551615e+13", Ok(u64::MAX), Ok(u64::MAX)),
            ("18446744073709.5516150001", Ok(u64::MAX), large),
            ("18446744073709.551616", large, large),
            ("1e14", large, large),
            (&format!("1e{far}"), large, large),
            ("1e9223372036854775807", large, large),
        ] {
            assert_eq!(parse_millionths_down(text.as_bytes()), down, "{text}");
            assert_eq!(parse_millionths_up(text.as_bytes()), up, "{text}");
            let exact = if down == up { down } else { Err(NotDecimal::Malformed) };
            let between_or_large = text == "18446744073709.5516150001";
            assert!(parse_millionths_float(text.as_bytes()) == exact || between_or_large, "{text}");
        }
        for text in [
            "", "e", "e5", "1e", "1e-", "1e+-1", "1e1.0", "1e1e1", "1 e1", ".5", "1.", ".e1", "1.2.3", "-1",
            "-0", "+1", "-1e-7", "NaN", "nan", "inf", "Infinity", "1_0", "0x1",
        ] {
            assert_eq!(parse_millionths_up(text.as_bytes()), Err(NotDecimal::Malformed), "{text:?}");
            assert_eq!(parse_millionths_down(text.as_bytes()), Err(NotDecimal::Malformed), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_has_at_most_six_places_reads_the_same_with_an_exponent(value: u64, places in 0..=6_u32) {
            let plain = written(|out| push_scaled(out, value, places));
            let shifted = format!("{value}e-{places}");
            prop_assert_eq!(parse_millionths_up(plain.as_bytes()), parse_millionths(plain.as_bytes()));
            prop_assert_eq!(parse_millionths_up(shifted.as_bytes()), parse_millionths(plain.as_bytes()));
            prop_assert_eq!(parse_millionths_down(shifted.as_bytes()), parse_millionths(plain.as_bytes()));
        }
    }

    #[test]
    fn a_uint256_reads_back_at_every_length() {
        const MAX: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(parse_uint256(MAX.as_bytes()), Ok([0xff; 32]));
        assert_eq!(written(|out| push_uint256(out, &[0xff; 32])), MAX);
        let above = format!("{}6", &MAX[..77]);
        assert_eq!(parse_uint256(above.as_bytes()), Err(NotDecimal::TooLarge));
        assert_eq!(parse_uint256(&[b'9'; 78]), Err(NotDecimal::TooLarge));
        assert_eq!(parse_uint256(&[b'0'; 79]), Err(NotDecimal::TooLarge));
        assert_eq!(written(|out| push_uint256(out, &[0; 32])), "0");
        for length in 1..=text::UINT256_DIGITS_MAX {
            let digits = "1".to_owned() + &"0".repeat(length - 1);
            let bytes = parse_uint256(digits.as_bytes()).expect("below the maximum");
            assert_eq!(written(|out| push_uint256(out, &bytes)), digits);
            let padded = format!("{}{}", "0".repeat(text::UINT256_DIGITS_MAX - length), digits);
            assert_eq!(parse_uint256(padded.as_bytes()), Ok(bytes));
        }
    }
}
