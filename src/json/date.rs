//! Instants <-> RFC 3339 text, always in UTC.
//!
//! Milliseconds are written only if there are any: `2026-11-20T10:11:12Z`,
//! `2026-11-20T10:11:12.345Z`. What is read may have any offset and up to nine digits, of which
//! three count.

use std::fmt::{self, Write as _};

use jiff::Timestamp;

use super::short::Sink;
use crate::domain::TimeMs;

/// Appends an instant. One past the year 9999 is written as the last that has a text.
pub fn push_date_time(out: &mut impl Sink, time: TimeMs) {
    write!(Adapter(out), "{}", timestamp(time)).expect("a sink takes everything");
}

/// Appends the day of an instant: `2026-11-20`.
pub fn push_date(out: &mut impl Sink, time: TimeMs) {
    let date = timestamp(time).to_zoned(jiff::tz::TimeZone::UTC).date();
    write!(Adapter(out), "{date}").expect("a sink takes everything");
}

/// Reads an instant; `None` if the text is none, or lies before 1970.
#[must_use]
pub fn parse_date_time(text: &str) -> Option<TimeMs> {
    let read: Timestamp = text.parse().ok()?;
    u64::try_from(read.as_millisecond()).ok().map(TimeMs)
}

fn timestamp(time: TimeMs) -> Timestamp {
    i64::try_from(time.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}

/// Lets a sink take formatted text.
struct Adapter<'a, S>(&'a mut S);

impl<S: Sink> fmt::Write for Adapter<'_, S> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.put(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn an_instant_reads_back_with_its_milliseconds() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_713_398_400_000, "2024-04-18T00:00:00Z"),
            (1_713_398_400_007, "2024-04-18T00:00:00.007Z"),
            (1_713_398_400_120, "2024-04-18T00:00:00.12Z"),
        ] {
            assert_eq!(written(|out| push_date_time(out, TimeMs(ms))), text);
            assert_eq!(parse_date_time(text), Some(TimeMs(ms)));
        }
        assert_eq!(written(|out| push_date(out, TimeMs(1_713_398_400_007))), "2024-04-18");
        assert!(written(|out| push_date_time(out, TimeMs(u64::MAX))).starts_with("9999-12-3"));
    }

    #[test]
    fn other_offsets_and_finer_fractions_are_read() {
        let day = Some(TimeMs(1_713_398_400_000));
        assert_eq!(parse_date_time("2024-04-18T02:00:00+02:00"), day);
        assert_eq!(parse_date_time("2024-04-18T00:00:00.000999Z"), day);
        assert_eq!(parse_date_time("2024-04-18 00:00:00+00"), day);
        for bad in ["", "2024-04-18", "1713398400", "2024-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "x"] {
            assert_eq!(parse_date_time(bad), None, "{bad:?}");
        }
    }
}
