//! `updatedAt` and other dates of files, for comparison: microseconds since 1970.

use crate::domain::TimeMs;

/// An instant that a file names. The default is no later than any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// Reads `2026-02-07T20:57:04.974481Z`, with a space for the `T`, a fraction of any length or
    /// none, and an offset such as `+00` or `-03:30`; also a date alone. Anything else, or before
    /// 1970, is `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = (text.get(..10)?, text.get(10..)?);
        let days = days_since_1970(date)?;
        let Some(clock) = rest.strip_prefix(['T', 't', ' ']) else {
            return rest.is_empty().then(|| days.checked_mul(86_400_000_000).map(Self))?;
        };
        let seconds_of_day = seconds(clock.get(..8)?)?;
        let (micros, zone) = fraction(clock.get(8..)?)?;
        let east = offset_seconds(zone)?;
        let seconds = i64::try_from(days * 86_400 + seconds_of_day).ok()? - east;
        Some(Self(u64::try_from(seconds).ok()? * 1_000_000 + micros))
    }

    /// An instant of the exchange's own, in the unit of texts.
    pub(super) const fn of(time: TimeMs) -> Self {
        Self(time.0.saturating_mul(1_000))
    }

    /// The same instant in the exchange's own unit; what is below a millisecond is cut.
    #[must_use]
    pub const fn in_ms(self) -> TimeMs {
        TimeMs(self.0 / 1_000)
    }
}

fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Days from 1970-01-01, by counting years from 1 March so that the leap day comes last.
fn days_since_1970(date: &str) -> Option<u64> {
    let bytes = date.as_bytes();
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(date.get(..4)?)?, digits(date.get(5..7)?)?, digits(date.get(8..)?)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    Some(shifted_year * 365 + leap_days + (153 * shifted_month + 2) / 5 + day - 1 - 719_468)
}

/// The days of a month.
const fn days_of(year: u64, month: u64) -> u64 {
    let leaps = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leaps => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn seconds(clock: &str) -> Option<u64> {
    let bytes = clock.as_bytes();
    if bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let (hour, minute, second) =
        (digits(clock.get(..2)?)?, digits(clock.get(3..5)?)?, digits(clock.get(6..)?)?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3_600 + minute * 60 + second)
}

/// Microseconds of `.123`, cut to six digits, and what follows.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(rest) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let kept = rest.get(..end.min(6))?;
    let micros = digits(kept)? * 10_u64.pow(6 - u32::try_from(kept.len()).ok()?);
    Some((micros, &rest[end..]))
}

/// The offset that `Z`, nothing, `+hh`, `+hhmm` or `+hh:mm` names, in seconds east of Greenwich.
fn offset_seconds(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) =
        zone.strip_prefix('+').map(|rest| (1, rest)).or(zone.strip_prefix('-').map(|rest| (-1, rest)))?;
    let hours = digits(rest.get(..2)?)?;
    let minutes = match rest.get(2..)?.trim_start_matches(':') {
        "" => 0,
        minutes => digits(minutes)?,
    };
    (hours < 24 && minutes < 60)
        .then(|| i64::try_from(hours * 3_600 + minutes * 60).ok().map(|east| sign * east))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_in_every_form_that_files_use() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01", 0),
            ("2000-02-29T00:00:01.5Z", 951_782_401_500_000),
            ("2026-02-07T20:57:04.974481Z", 1_770_497_824_974_481),
            ("2026-07-24 00:00:16+00", 1_784_851_216_000_000),
            ("2026-07-24T02:00:16.0000009+02:00", 1_784_851_216_000_000),
            ("2026-07-23 20:30:16-0330", 1_784_851_216_000_000),
        ] {
            assert_eq!(Moment::parse(text), Some(Moment(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_moment_is_none() {
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-02-29",
            "2100-02-29",
            "2026-04-31",
            "2026-01-00",
            "2026-02-07T25:00:00Z",
            "2026/02/07",
            "2026-02-07X",
            "1969-12-31",
            "2026-02-07T20:57:04.Z",
            "2026-02-07T20:57:04+x",
            "２０２６-02-07",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
