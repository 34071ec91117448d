//! Numbers as people read them: times with a unit that fits, counts with commas.

/// A time as people read it: `8.2 µs`, `1.4 ms`, `2.1 s`.
pub(crate) fn micros(micros: f64) -> String {
    match micros {
        small if small < 100.0 => format!("{small:.1} µs"),
        small if small < 1_000.0 => format!("{small:.0} µs"),
        medium if medium < 1_000_000.0 => format!("{:.1} ms", medium / 1e3),
        large => format!("{:.1} s", large / 1e6),
    }
}

/// The least and the most of a time, or one number if both print the same.
pub(crate) fn range([least_us, most_us]: [f64; 2]) -> String {
    let [least, most] = [least_us, most_us].map(micros);
    if least == most { least } else { format!("{least} to {most}") }
}

/// A round time for an axis: `10 µs`, `1 ms`.
pub(crate) fn short_micros(micros: f64) -> String {
    let (number, unit) = match micros {
        tiny if tiny < 1.0 => (tiny * 1e3, "ns"),
        small if small < 1_000.0 => (small, "µs"),
        medium if medium < 1_000_000.0 => (medium / 1e3, "ms"),
        large => (large / 1e6, "s"),
    };
    format!("{} {unit}", (number * 100.0).round() / 100.0)
}

/// A count with commas.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate rounded to thousands, or to hundreds below ten thousand.
pub(crate) fn about(rate: f64) -> String {
    let step = if rate < 1e4 { 1e2 } else { 1e3 };
    count((rate / step).round() * step)
}

/// [`count`] of a whole number.
#[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
pub(crate) fn count_of(number: u64) -> String {
    count(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_read_like_people_write_them() {
        let times: Vec<String> = [0.04, 8.24, 142.4, 1_440.0, 2_100_000.0].map(micros).into();
        assert_eq!(times, ["0.0 µs", "8.2 µs", "142 µs", "1.4 ms", "2.1 s"]);
        assert_eq!([[80.0, 95.0], [4_080.0, 4_110.0]].map(range), ["80.0 µs to 95.0 µs", "4.1 ms"]);
        let axis: Vec<String> = [0.1, 10.0, 250.0, 1_000.0, 1e6].map(short_micros).into();
        assert_eq!(axis, ["100 ns", "10 µs", "250 µs", "1 ms", "1 s"]);
        assert_eq!([0.0, 999.0, 1_000.0, 1_234_567.0].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([940.0, 9_949.0, 28_818.0].map(about), ["900", "9,900", "29,000"]);
    }
}
