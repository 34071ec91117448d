//! What the machine does to a thread that only spins: the moments at which it did not run.
//!
//! A run on a CPU that was taken away for long says little of the server, so every run has these gaps
//! from before and after, and its verdict goes by them. They are measured as `outcry check --jitter` does it,
//! on all CPUs at once.

use std::time::Duration;

use outcry::topology::checks::{Gaps, Named, Taker};
use serde::{Deserialize, Serialize};

use crate::report;
use crate::verdict::LOST_PERCENT_MAX;

/// Gaps that a tail cannot be told from: longer than this, the box is the limit.
pub(crate) const GAP_US_MAX: f64 = 100.0;

/// What other threads had in hundredths, below which none of them is named.
const NAMED_PERCENT_MIN: f64 = 0.5;

/// What keeps interrupts off a CPU.
const QUIETER_CPU: &str =
    "`outcry tune` moves interrupts off shards' CPUs; boot with nohz_full where cores are to spare";

/// The gaps of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// For how long one in a thousand that come at any moment waits at least until the CPU is back; none in old
    /// summaries.
    #[serde(default)]
    pub(crate) wait_p999_us: Option<f64>,
    /// Likewise one in a hundred.
    #[serde(default)]
    pub(crate) wait_p99_us: Option<f64>,
    /// The part of the time that was lost, in hundredths.
    pub(crate) lost_percent: f64,
    /// Of the time, what other threads of this machine had; none if the kernel does not say.
    #[serde(default)]
    pub(crate) threads_percent: Option<f64>,
    /// Which of them had most, if any had a tick of the kernel's clock.
    #[serde(default)]
    pub(crate) largest: Option<String>,
    /// Whether that is one of the kernel's own.
    #[serde(default)]
    pub(crate) largest_is_kernels: bool,
    /// Of the time, what the host had for others; none if the kernel does not say.
    #[serde(default)]
    pub(crate) host_percent: Option<f64>,
    /// Of the time, what was lost in gaps of half a millisecond or more, and what of that other threads had.
    #[serde(default)]
    pub(crate) long_percent: Option<f64>,
    /// See `long_percent`.
    #[serde(default)]
    pub(crate) threads_long_percent: Option<f64>,
}

impl Jitter {
    #[allow(clippy::cast_precision_loss, reason = "nanoseconds of an hour are far below 2^53")]
    fn of(gaps: &Gaps, time: Duration) -> Self {
        let micros = |ns: u64| ns as f64 / 1e3;
        let percent = |millionths: u64| millionths as f64 / 1e4;
        Self {
            cpu: gaps.cpu,
            seconds: time.as_secs_f64(),
            gaps_per_s: gaps.per_second as f64,
            p50_us: micros(gaps.p50_ns),
            p99_us: micros(gaps.p99_ns),
            p999_us: micros(gaps.p999_ns),
            max_us: micros(gaps.max_ns),
            wait_p999_us: Some(micros(gaps.wait_p999_ns)),
            wait_p99_us: Some(micros(gaps.wait_p99_ns)),
            lost_percent: percent(gaps.lost_millionths),
            threads_percent: gaps.threads_millionths.map(percent),
            largest: gaps.largest.as_ref().map(|largest| largest.who.clone()),
            largest_is_kernels: gaps.largest.as_ref().is_some_and(|largest| largest.is_kernels),
            host_percent: gaps.host_millionths.map(percent),
            long_percent: Some(percent(gaps.long_millionths)),
            threads_long_percent: gaps.threads_long_millionths.map(percent),
        }
    }

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

    /// The same as `outcry check` knows them; from before long gaps were told apart, with none of those.
    pub(crate) fn gaps(&self) -> Gaps {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share is from 0 to 100"
        )]
        let millionths = |percent: f64| (percent * 1e4).round() as u64;
        Gaps {
            lost_millionths: millionths(self.lost_percent),
            long_millionths: millionths(self.long_percent.unwrap_or(0.0)),
            threads_millionths: self.threads_percent.map(millionths),
            threads_long_millionths: self.threads_long_percent.map(millionths),
            host_millionths: self.host_percent.map(millionths),
            largest: self
                .largest
                .as_ref()
                .map(|who| Named { who: who.clone(), is_kernels: self.largest_is_kernels }),
            ..Gaps::default()
        }
    }

    /// What would give the CPU back, by who had most of it.
    pub(crate) fn remedy(&self) -> String {
        let gaps = self.gaps();
        match gaps.taker() {
            Taker::Interrupts if self.lost_percent <= LOST_PERCENT_MAX && self.p99_us <= GAP_US_MAX => {
                format!(
                    "{QUIETER_CPU}, or leave it: 99 of 100 gaps are within {}, the longest is {}",
                    report::micros(self.p99_us),
                    report::micros(self.max_us)
                )
            }
            Taker::Interrupts => {
                format!("{QUIETER_CPU}; what stays then is the host's, which need not say so")
            }
            Taker::Threads | Taker::Host | Taker::Unseen | Taker::Unknown => gaps.remedy(),
        }
    }
}

/// Watches all of these CPUs at once for `time`.
pub(crate) fn measure(cpus: &[usize], time: Duration) -> Vec<Jitter> {
    let rows = outcry::server::jitter::measure(cpus, time);
    rows.iter().map(|gaps| Jitter::of(gaps, time)).collect()
}

/// The gaps as a table for a terminal.
pub(crate) fn table(rows: &[Jitter]) -> String {
    let mut text =
        String::from("CPU     gaps/s    p50 µs    p99 µs  p99.9 µs    max µs  1 in 1,000 µs   time lost\n");
    for row in rows {
        use std::fmt::Write as _;
        writeln!(
            text,
            "{:3} {:10.0} {:9.1} {:9.1} {:9.1} {:9.1} {:14.1} {:9.2} %",
            row.cpu,
            row.gaps_per_s,
            row.p50_us,
            row.p99_us,
            row.p999_us,
            row.max_us,
            row.wait_p999_us.unwrap_or(0.0),
            row.lost_percent
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
        let (stop, ask) = ("stop rustc (4711), or keep it off this CPU", "a host that sells whole cores");
        let interrupts = |then: &str| {
            format!(
                "`outcry tune` moves interrupts off shards' CPUs; boot with nohz_full where cores are to spare{then}"
            )
        };
        for (threads, host, lost, long, p99_us, expected) in [
            (60.0, 5.0, 67.0, None, 4_000.0, stop.to_owned()),
            (5.0, 60.0, 67.0, None, 4_000.0, ask.to_owned()),
            (0.0, 0.0, 0.6, None, 8.0, interrupts(", or leave it: 99 of 100 gaps")),
            (0.0, 0.0, 0.6, None, 101.0, interrupts("; what stays")),
            (0.5, 0.5, 2.1, None, 8.0, interrupts("; what stays")),
            // What was lost in long gaps decides, where one in a thousand meets them.
            (0.5, 0.0, 2.1, Some((0.6, 0.4)), 8.0, stop.to_owned()),
            (0.5, 0.0, 2.1, Some((0.6, 0.1)), 8.0, ask.to_owned()),
            (0.5, 0.0, 2.1, Some((0.05, 0.05)), 8.0, interrupts("; what stays")),
        ] {
            let row = Jitter {
                lost_percent: lost,
                p99_us,
                threads_percent: Some(threads),
                host_percent: Some(host),
                long_percent: long.map(|(long, _)| long),
                threads_long_percent: long.map(|(_, threads)| threads),
                largest: Some("rustc (4711)".to_owned()),
                ..crate::summary::example().jitter_before[0].clone()
            };
            assert!(row.remedy().starts_with(&expected), "{row:?}: {}", row.remedy());
            let kernels = Jitter { largest_is_kernels: true, ..row };
            assert_eq!(kernels.remedy().starts_with("it is the kernel's own work"), expected == stop);
        }
    }
}
