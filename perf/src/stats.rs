//! Histograms and their quantiles.

use std::io::Write;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Nanoseconds with three significant digits.
pub(crate) type Nanos = Histogram<u64>;

/// An empty histogram, which grows.
pub(crate) fn histogram() -> Nanos {
    Histogram::new(3).expect("three digits are allowed")
}

/// Counts a time in nanoseconds.
pub(crate) fn record(histogram: &mut Nanos, nanos: u64) {
    histogram.record(nanos).expect("the histogram grows");
}

/// A quantile in microseconds.
pub(crate) fn micros(histogram: &Nanos, quantile: f64) -> f64 {
    as_micros(histogram.value_at_quantile(quantile))
}

/// Nanoseconds as microseconds.
pub(crate) fn as_micros(nanos: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "times are far below 2^53 ns")]
    let nanos = nanos as f64;
    nanos / 1e3
}

/// The nearest pixel of a chart.
#[allow(clippy::cast_possible_truncation, reason = "a cast saturates, and charts are small")]
pub(crate) fn pixels(number: f64) -> i32 {
    number.round() as i32
}

/// The quantiles that every table has, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    /// How many were counted.
    pub(crate) count: u64,
    /// Half took at most this.
    pub(crate) p50_us: f64,
    /// 90 %.
    pub(crate) p90_us: f64,
    /// 99 %.
    pub(crate) p99_us: f64,
    /// 99.9 %.
    pub(crate) p999_us: f64,
    /// 99.99 %.
    pub(crate) p9999_us: f64,
    /// The longest.
    pub(crate) max_us: f64,
}

impl Quantiles {
    /// The quantiles of a histogram; zeros if it is empty.
    pub(crate) fn of(histogram: &Nanos) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let at = |quantile: f64| micros(histogram, quantile);
        Self {
            count: histogram.len(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: at(1.0),
        }
    }
}

/// The histogram in the compressed V2 encoding, which every port of `HdrHistogram` reads.
pub(crate) fn hdr(histogram: &Nanos) -> Vec<u8> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("memory takes all");
    bytes
}

/// The percentile distribution in microseconds, in the text format of the `HdrHistogram` plotters.
pub(crate) fn hgrm(histogram: &Nanos) -> Vec<u8> {
    let mut text = Vec::new();
    writeln!(text, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
        .expect("memory takes all");
    let mut counted = 0;
    for value in histogram.iter_quantiles(5) {
        counted += value.count_since_last_iteration();
        let quantile = value.quantile_iterated_to();
        let micros = as_micros(value.value_iterated_to());
        if quantile < 1.0 {
            writeln!(text, "{micros:12.3} {quantile:14.12} {counted:10} {:14.2}", 1.0 / (1.0 - quantile))
        } else {
            writeln!(text, "{micros:12.3} {quantile:14.12} {counted:10}")
        }
        .expect("memory takes all");
    }
    writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]",
        histogram.mean() / 1e3,
        histogram.stdev() / 1e3,
        as_micros(histogram.max()),
        histogram.len(),
        histogram.buckets(),
        2048
    )
    .expect("memory takes all");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    fn thousand() -> Nanos {
        let mut histogram = histogram();
        (1..=1_000).for_each(|micros| record(&mut histogram, micros * 1_000));
        histogram
    }

    #[test]
    fn quantiles_are_of_the_values_that_were_counted() {
        let quantiles = Quantiles::of(&thousand());
        assert_eq!(quantiles.count, 1_000);
        for (got, wanted) in [
            (quantiles.p50_us, 500.0),
            (quantiles.p90_us, 900.0),
            (quantiles.p99_us, 990.0),
            (quantiles.p999_us, 999.0),
            (quantiles.max_us, 1_000.0),
        ] {
            assert!((got / wanted - 1.0).abs() < 0.001, "{got} for {wanted}");
        }
        assert_eq!(Quantiles::of(&histogram()), Quantiles::default());
    }

    #[test]
    fn what_is_written_reads_back() {
        let histogram = thousand();
        let back: Nanos = Deserializer::new().deserialize(&mut hdr(&histogram).as_slice()).unwrap();
        assert_eq!(back, histogram);
    }

    #[test]
    fn the_percentile_text_counts_everything_once() {
        let text = String::from_utf8(hgrm(&thousand())).unwrap();
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)"), "{text}");
        let rows: Vec<&str> = text.lines().skip(2).filter(|line| !line.starts_with('#')).collect();
        let last: Vec<&str> = rows.last().unwrap().split_whitespace().collect();
        assert_eq!(last[1..], ["1.000000000000", "1000"]);
        assert!(text.contains("Total count    =         1000]"), "{text}");
    }
}
