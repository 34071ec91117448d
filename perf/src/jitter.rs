//! What the machine does to a thread that only spins: the moments at which it did not run.
//!
//! A run on a CPU that was taken away for long says little of the server, so every run has these gaps
//! from before and after, and its verdict goes by them. Who took the CPU is told as far as the kernel
//! knows it: other threads by the time for which ours was ready and did not run (`schedstat`), the
//! host by the steal of that CPU (`/proc/stat`). The rest is interrupts, and what nobody is charged with.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::crowd::Crowd;
use crate::machine;
use crate::report;
use crate::schedule::nanos;
use crate::verdict::LOST_PERCENT_MAX;
use crate::watch;

/// A thread that runs reads the clock far more often than this.
const GAP: Duration = Duration::from_micros(1);

/// Gaps that a tail cannot be told from: longer than this, the box is the limit.
pub(crate) const GAP_US_MAX: f64 = 100.0;

/// What other threads had in hundredths, below which none of them is named.
const NAMED_PERCENT_MIN: f64 = 0.5;

/// What keeps interrupts off a CPU.
const QUIETER_CPU: &str =
    "move interrupts as `outcry tune` says, and boot with nohz_full where cores are to spare";

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
    /// Of the time, what other threads of this machine had; none if the kernel does not say.
    #[serde(default)]
    pub(crate) threads_percent: Option<f64>,
    /// Which of them had most, if any had a tick of the kernel's clock.
    #[serde(default)]
    pub(crate) largest: Option<String>,
    /// Of the time, what the host had for others; none if the kernel does not say.
    #[serde(default)]
    pub(crate) host_percent: Option<f64>,
}

impl Jitter {
    /// Who had the CPU while our thread did not run, who had most first.
    pub(crate) fn takers(&self) -> String {
        // Threads are told apart by ticks, of which less than a half is nobody's.
        let is_told = self.threads_percent.is_some_and(|percent| NAMED_PERCENT_MIN <= percent);
        let largest = self.largest.as_ref().filter(|_| is_told);
        let largest = largest.map_or_else(String::new, |who| format!(" (most of it {who})"));
        let mut takers = [
            ("other threads", self.threads_percent, largest),
            ("the host", self.host_percent, String::new()),
            ("interrupts and what nobody is charged with", Some(self.uncharged_percent()), String::new()),
        ];
        takers.sort_by(|(_, one, _), (_, other, _)| other.unwrap_or(0.0).total_cmp(&one.unwrap_or(0.0)));
        let said = |(who, percent, more): &(&str, Option<f64>, String)| match percent {
            Some(percent) => format!("{who} {percent:.1} %{more}"),
            None => format!("{who} not known"),
        };
        takers.each_ref().map(said).join(", ")
    }

    /// Of the time, what neither other threads nor the host are charged with.
    fn uncharged_percent(&self) -> f64 {
        let known = self.threads_percent.unwrap_or(0.0) + self.host_percent.unwrap_or(0.0);
        (self.lost_percent - known).max(0.0)
    }

    /// What would give the CPU back, by who had most of it.
    pub(crate) fn remedy(&self) -> String {
        let (threads, host) = match (self.threads_percent, self.host_percent) {
            (None, None) => {
                return "stop what else runs there (`top -H` says who), or take a quieter host".into();
            }
            (threads, host) => (threads.unwrap_or(0.0), host.unwrap_or(0.0)),
        };
        let rest = self.uncharged_percent();
        if rest < threads && host <= threads {
            "stop what else runs there (`top -H` says who)".into()
        } else if rest < host {
            "ask for CPUs that the host gives to nobody else, or take a quieter host".into()
        } else if self.lost_percent <= LOST_PERCENT_MAX && self.p99_us <= GAP_US_MAX {
            format!(
                "{QUIETER_CPU}, or leave it: 99 of 100 gaps are within {}, the longest is {}",
                report::micros(self.p99_us),
                report::micros(self.max_us)
            )
        } else {
            format!("{QUIETER_CPU}; what stays then is the host's, which need not say so")
        }
    }
}

/// Nanoseconds for which this thread was ready and another one ran.
fn waited_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Nanoseconds of `cpu` that the host had for others, in steps of a tick.
fn stolen_ns(cpu: usize) -> Option<u64> {
    watch::stolen_ns(&std::fs::read_to_string("/proc/stat").ok()?, cpu)
}

/// Watches each CPU in turn for `time`.
pub(crate) fn measure(cpus: &[usize], time: Duration) -> Result<Vec<Jitter>, String> {
    cpus.iter().map(|&cpu| of_cpu(cpu, time)).collect()
}

fn of_cpu(cpu: usize, time: Duration) -> Result<Jitter, String> {
    let _pinned = machine::pin(cpu)?;
    let mut gaps = Histogram::<u64>::new(3).expect("three digits are allowed");
    let crowd = Crowd::of_threads();
    let (waited, stolen) = (waited_ns(), stolen_ns(cpu));
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
    #[allow(clippy::cast_precision_loss, reason = "seconds are far below 2^53 ns")]
    let percent = |before: Option<u64>, after: Option<u64>| {
        let ns = after?.saturating_sub(before?) as f64;
        Some(100.0 * ns / 1e9 / seconds)
    };
    let (threads_percent, host_percent) = (percent(waited, waited_ns()), percent(stolen, stolen_ns(cpu)));
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
        threads_percent,
        largest: crowd.largest(&Crowd::of_threads(), Some(cpu), true).map(|largest| largest.who),
        host_percent,
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
    for row in rows.iter().filter(|row| LOST_PERCENT_MAX < row.lost_percent) {
        use std::fmt::Write as _;
        writeln!(text, "CPU {}: {}", row.cpu, row.takers()).expect("a string takes all");
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
        assert!(table(&rows).lines().count() <= 3);
    }

    #[test]
    fn who_had_the_cpu_is_told_as_far_as_the_kernel_knows() {
        let row = Jitter {
            lost_percent: 67.0,
            threads_percent: Some(60.0),
            host_percent: Some(5.0),
            ..crate::summary::example().jitter_before[0].clone()
        };
        let rest = "interrupts and what nobody is charged with";
        assert_eq!(row.takers(), format!("other threads 60.0 %, the host 5.0 %, {rest} 2.0 %"));
        let silent = Jitter { threads_percent: None, host_percent: None, ..row.clone() };
        assert_eq!(silent.takers(), format!("{rest} 67.0 %, other threads not known, the host not known"));
        let named = Jitter {
            largest: Some("rustc (4711)".to_owned()),
            host_percent: Some(64.0),
            threads_percent: Some(3.0),
            ..row
        };
        let expected =
            format!("the host 64.0 %, other threads 3.0 % (most of it rustc (4711)), {rest} 0.0 %");
        assert_eq!(named.takers(), expected);
        assert!(!Jitter { threads_percent: Some(0.4), ..named }.takers().contains("rustc"));
        assert!(silent.remedy().contains("top -H") && silent.remedy().contains("quieter host"));
    }

    #[test]
    fn who_had_most_of_a_cpu_says_what_gives_it_back() {
        for (threads, host, lost, p99_us, expected) in [
            (60.0, 5.0, 67.0, 4_000.0, "stop what else runs there (`top -H` says who)"),
            (
                5.0,
                60.0,
                67.0,
                4_000.0,
                "ask for CPUs that the host gives to nobody else, or take a quieter host",
            ),
            (
                0.0,
                0.0,
                0.6,
                8.0,
                "move interrupts as `outcry tune` says, and boot with nohz_full where cores are to spare, or leave it: 99 of 100 gaps",
            ),
            (
                0.0,
                0.0,
                0.6,
                101.0,
                "move interrupts as `outcry tune` says, and boot with nohz_full where cores are to spare; what stays",
            ),
            (
                0.5,
                0.5,
                2.1,
                8.0,
                "move interrupts as `outcry tune` says, and boot with nohz_full where cores are to spare; what stays",
            ),
        ] {
            let row = Jitter {
                lost_percent: lost,
                p99_us,
                threads_percent: Some(threads),
                host_percent: Some(host),
                ..crate::summary::example().jitter_before[0].clone()
            };
            assert!(row.remedy().starts_with(expected), "{row:?}: {}", row.remedy());
        }
    }
}
