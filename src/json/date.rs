//! Instants as RFC 3339 text, always in UTC.
//!
//! A date is written with as many digits of milliseconds as it needs: `2026-11-20T10:11:12Z`,
//! `2026-11-20T10:11:12.34Z`. An instant of this exchange's own always has three, so that texts sort as the
//! instants do: `2026-11-20T10:11:12.340Z`.
//!
//! They are written here, because every position shows a date and a library pays for any calendar, zone and precision;
//! tests compare with one.

use super::short::Sink;
use crate::domain::TimeMs;

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// The last instant that has a text, 9999-12-31T23:59:59.999Z, because years have four digits. Later ones
/// are written as this one.
pub const LAST: TimeMs = TimeMs(253_402_300_799_999);

/// Appends an instant with three digits of milliseconds.
pub fn push_instant(out: &mut impl Sink, time: TimeMs) {
    out.put(&instant(time));
}

/// Appends an instant without trailing zeros of milliseconds.
pub fn push_date_time(out: &mut impl Sink, time: TimeMs) {
    let mut text = instant(time);
    if text[20..23] == *b"000" {
        text[19] = b'Z';
        return out.put(&text[..20]);
    }
    let mut end = 23;
    while text[end - 1] == b'0' {
        end -= 1;
    }
    text[end] = b'Z';
    out.put(&text[..=end]);
}

/// Appends the day of an instant: `2026-11-20`.
pub fn push_date(out: &mut impl Sink, time: TimeMs) {
    let mut text = *b"0000-00-00";
    put_day(&mut text, time.min(LAST).0 / DAY_MS);
    out.put(&text);
}

/// The text of an instant.
fn instant(time: TimeMs) -> [u8; 24] {
    let time = time.min(LAST);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    put_day(&mut text, time.0 / DAY_MS);
    let ms = time.0 % DAY_MS;
    put_digits(&mut text[11..13], ms / 3_600_000);
    put_digits(&mut text[14..16], ms / 60_000 % 60);
    put_digits(&mut text[17..19], ms / 1_000 % 60);
    put_digits(&mut text[20..23], ms % 1_000);
    text
}

/// Writes the date of a day to the front of `text`. A year is counted from the first of March, so that the
/// leap day comes last and the months before it repeat: 153 days in five.
fn put_day(text: &mut [u8], days_since_1970: u64) {
    // 0000-03-01 to 1970-01-01, and the Gregorian calendar's period.
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days_since_1970 + DAYS_TO_1970;
    let (period, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    // Less the leap days before it: one in 4 years, none in 100, one in 400.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, years) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    put_digits(&mut text[..4], 400 * period + year + years);
    put_digits(&mut text[5..7], month);
    put_digits(&mut text[8..10], day_of_month);
}

/// Fills `text` with the last digits of `value`.
fn put_digits(text: &mut [u8], value: u64) {
    let mut left = value;
    for digit in text.iter_mut().rev() {
        *digit = b'0' + u8::try_from(left % 10).expect("a digit is below ten");
        left /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;

    fn written(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn an_instant_reads_back_with_its_milliseconds() {
        for (ms, short, whole) in [
            (0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z", "2000-02-29T23:59:59.999Z"),
            (1_713_398_400_007, "2024-04-18T00:00:00.007Z", "2024-04-18T00:00:00.007Z"),
            (1_713_398_400_120, "2024-04-18T00:00:00.12Z", "2024-04-18T00:00:00.120Z"),
            (4_107_542_400_010, "2100-03-01T00:00:00.01Z", "2100-03-01T00:00:00.010Z"),
        ] {
            assert_eq!(written(|out| push_date_time(out, TimeMs(ms))), short);
            assert_eq!(written(|out| push_instant(out, TimeMs(ms))), whole);
            let read = |text: &str| text.parse().map(Timestamp::as_millisecond);
            assert_eq!(
                [short, whole].map(|text| read(text).expect("an instant")),
                [i64::try_from(ms).expect("small"); 2]
            );
        }
        assert_eq!(written(|out| push_date(out, TimeMs(1_713_398_400_007))), "2024-04-18");
        for late in [LAST, LAST.plus_ms(1), TimeMs(u64::MAX)] {
            assert_eq!(written(|out| push_date_time(out, late)), "9999-12-31T23:59:59.999Z");
            assert_eq!(written(|out| push_instant(out, late)), "9999-12-31T23:59:59.999Z");
            assert_eq!(written(|out| push_date(out, late)), "9999-12-31");
        }
    }

    #[test]
    fn every_day_has_the_date_that_the_library_gives_it() {
        // The calendar repeats after 400 years.
        let mut expected = jiff::civil::date(1970, 1, 1);
        for day in 0..146_097 {
            assert_eq!(written(|out| push_date(out, TimeMs(day * DAY_MS))), expected.to_string());
            expected = expected.tomorrow().expect("before the last");
        }
        assert_eq!(written(|out| push_date(out, TimeMs(LAST.0 - DAY_MS))), "9999-12-30");
    }

    proptest! {
        #[test]
        fn every_instant_has_the_text_that_the_library_gives_it(
            // The library ends some hours before the last instant.
            ms in 0..LAST.0 - DAY_MS,
            within in prop_oneof![Just(1), Just(10), Just(100), Just(1_000), Just(DAY_MS)],
            off in 0..3_u64,
        ) {
            // As they come, and at the borders of what is shown.
            for ms in [ms, (ms / within * within + off).saturating_sub(1)] {
                let library = Timestamp::from_millisecond(i64::try_from(ms).expect("small")).expect("in range");
                prop_assert_eq!(written(|out| push_date_time(out, TimeMs(ms))), library.to_string());
            }
        }
    }
}
