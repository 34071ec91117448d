//! What the machine does to a thread that only spins: the moments at which it did not run.
//!
//! No percentile of a run on the same cores can be better than these gaps, so every report has
//! them from before and after.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::machine;
use crate::schedule::nanos;

/// A thread that runs reads the clock far more often than this.
const GAP: Duration = Duration::from_micros(1);

/// The gaps of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Jitter {
    /// The CPU.
    pub(crate) cpu: usize,
    /// How long it was watched, in seconds.
    pub(crate) seconds: f64,
    /// Gaps of more than a microsecond, a second.
    pub(crate) gaps_per_s: f64,
    /// Quantiles of the gaps in microseconds.
    pub(crate) p50_us: f64,
    /// See `p50_us`.
    pub(crate) p99_us: f64,
    /// See `p50_us`.
    pub(crate) p999_us: f64,
    /// The longest.
    pub(crate) max_us: f64,
    /// The part of the time that was lost, in hundredths.
    pub(crate) lost_percent: f64,
}

/// Watches each CPU in turn for `time`.
pub(crate) fn measure(cpus: &[usize], time: Duration) -> Result<Vec<Jitter>, String> {
    cpus.iter().map(|&cpu| of_cpu(cpu, time)).collect()
}

fn of_cpu(cpu: usize, time: Duration) -> Result<Jitter, String> {
    let _pinned = machine::pin(cpu)?;
    let mut gaps = Histogram::<u64>::new(3).expect("three digits are allowed");
    let (begin, mut lost) = (Instant::now(), Duration::ZERO);
    let mut last = begin;
    while last.duration_since(begin) < time {
        let now = Instant::now();
        let gap = now.duration_since(last);
        if GAP <= gap {
            lost += gap;
            gaps.record(nanos(gap)).expect("the histogram grows");
        }
        last = now;
    }
    let seconds = last.duration_since(begin).as_secs_f64();
    let micros = |quantile: f64| if gaps.is_empty() { 0.0 } else { crate::stats::micros(&gaps, quantile) };
    #[allow(clippy::cast_precision_loss, reason = "gaps are few")]
    let count = gaps.len() as f64;
    Ok(Jitter {
        cpu,
        seconds,
        gaps_per_s: count / seconds,
        p50_us: micros(0.5),
        p99_us: micros(0.99),
        p999_us: micros(0.999),
        max_us: micros(1.0),
        lost_percent: 100.0 * lost.as_secs_f64() / seconds,
    })
}

/// The gaps as a table for a terminal.
pub(crate) fn table(rows: &[Jitter]) -> String {
    let mut text = String::from("CPU     gaps/s    p50 µs    p99 µs  p99.9 µs    max µs   time lost\n");
    for row in rows {
        use std::fmt::Write as _;
        writeln!(
            text,
            "{:3} {:10.0} {:9.1} {:9.1} {:9.1} {:9.1} {:9.2} %",
            row.cpu, row.gaps_per_s, row.p50_us, row.p99_us, row.p999_us, row.max_us, row.lost_percent
        )
        .expect("a string takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_cpu_says_what_it_lost() {
        let cpu = machine::allowed_cpus()[0];
        let rows = measure(&[cpu], Duration::from_millis(20)).unwrap();
        let [row] = rows.as_slice() else { panic!("one CPU was asked for") };
        assert_eq!(row.cpu, cpu);
        assert!((0.0..=100.0).contains(&row.lost_percent), "{row:?}");
        assert!(row.p50_us <= row.p99_us && row.p99_us <= row.max_us, "{row:?}");
        assert!(table(&rows).lines().count() == 2);
    }
}
