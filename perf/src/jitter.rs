//! What the machine does to a thread that only spins: the gaps in which it did not run.
//!
//! A run on a CPU that was taken away for long says little about the server. So these gaps are measured before and
//! after every run, and its verdict uses them. They are measured as `outcry check --jitter` does, on all CPUs at once.

use std::time::Duration;

use outcry::topology::checks::{Gaps, Named};
use outcry::topology::valid;
use serde::{Deserialize, Serialize};

use crate::verdict::LOST_PERCENT_MAX;

/// Gaps longer than this are reported as a limit of the box: a tail cannot be told from them.
pub(crate) const GAP_US_MAX: f64 = 100.0;

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
    /// One in a thousand requests that come at any moment waits at least this long until the CPU is back; none in old
    /// summaries.
    #[serde(default)]
    pub(crate) wait_p999_us: Option<f64>,
    /// One in a hundred waits at least this long; see `wait_p999_us`.
    #[serde(default)]
    pub(crate) wait_p99_us: Option<f64>,
    /// The part of the time that was lost, in percent.
    pub(crate) lost_percent: f64,
    /// Percent of the time that other threads of this machine had; none if the kernel does not say.
    #[serde(default)]
    pub(crate) threads_percent: Option<f64>,
    /// Which of them had at least half of that; none if no single thread did.
    #[serde(default)]
    pub(crate) largest: Option<String>,
    /// Whether that is one of the kernel's own.
    #[serde(default)]
    pub(crate) largest_is_kernels: bool,
    /// Percent of the time that the host had for others; none if the kernel does not say.
    #[serde(default)]
    pub(crate) host_percent: Option<f64>,
    /// Percent of the time that was lost in gaps of half a millisecond or more.
    #[serde(default)]
    pub(crate) long_percent: Option<f64>,
    /// The part of `long_percent` that other threads had.
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

    /// The part of the loss that no thread of this machine is charged with: interrupts, and what the host took.
    pub(crate) fn uncharged_percent(&self) -> f64 {
        (self.lost_percent - self.threads_percent.unwrap_or(0.0)).max(0.0)
    }

    /// Who had what of it, in the words of `outcry check`. If the slowest orders meet long gaps and somebody else had
    /// most of those, says who.
    pub(crate) fn takers(&self) -> String {
        let gaps = self.gaps();
        let all = gaps.shares();
        if gaps.in_all().taker() == gaps.taker() {
            return all;
        }
        let long = self.long_percent.unwrap_or(0.0);
        format!("{all}; of {long:.2} % in gaps of half a millisecond or more most: {}", gaps.who())
    }

    /// These gaps in the form of `outcry check`; without long gaps in summaries from before they were recorded.
    pub(crate) fn gaps(&self) -> Gaps {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share is from 0 to 100"
        )]
        let millionths = |percent: f64| (percent * 1e4).round() as u64;
        Gaps {
            cpu: self.cpu,
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
}

/// Watches all of these CPUs at once for `time`.
pub(crate) fn measure(cpus: &[usize], time: Duration) -> Vec<Jitter> {
    let rows = outcry::server::machine::jitter::measure(cpus, time);
    rows.iter().map(|gaps| Jitter::of(gaps, time)).collect()
}

/// The gaps as a table for a terminal; `of_run` are the CPUs that a run would measure on.
pub(crate) fn table(rows: &[Jitter], of_run: &[usize]) -> String {
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
    let of_run: Vec<&Jitter> = rows.iter().filter(|row| of_run.contains(&row.cpu)).collect();
    text + &quiet(&of_run)
}

/// Whether a run on these CPUs could be VALID now, by the limits of the verdict.
fn quiet(rows: &[&Jitter]) -> String {
    let most = rows.iter().map(|row| row.lost_percent).fold(0.0, f64::max);
    let count = f64::from(u32::try_from(rows.len()).unwrap_or(u32::MAX).max(1));
    let mean = |of: fn(&Jitter) -> Option<f64>| rows.iter().filter_map(|row| of(row)).sum::<f64>() / count;
    let shares = [mean(|row| row.threads_percent), mean(|row| row.host_percent)];
    let share_max = f64::from(valid::SHARE_PERCENT_MAX);
    let is_quiet = most <= LOST_PERCENT_MAX && shares.iter().all(|share| *share <= share_max);
    let [threads, host] = shares.map(|share| {
        format!("{share:.1} % ({})", valid::beside(share <= share_max, valid::SHARE_PERCENT_MAX))
    });
    format!(
        "{}: of the CPUs of a run, the one that lost most lost {most:.1} % ({}), other threads had {threads} of all, the host \
         {host}\n",
        if is_quiet { "quiet enough for a VALID run" } else { "too loud for a VALID run" },
        valid::beside(most <= LOST_PERCENT_MAX, valid::LOST_PERCENT_MAX)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_a_loud_cpu_is_told_in_the_words_of_check_and_whether_it_is_quiet() {
        let row = |lost_percent, threads, host| Jitter {
            lost_percent,
            threads_percent: Some(threads),
            host_percent: Some(host),
            ..crate::summary::example().jitter_before[0].clone()
        };
        for (row, last) in [
            (
                row(2.0, 1.0, 1.0),
                "quiet enough for a VALID run: of the CPUs of a run, the one that lost most lost 2.0 % (within 2 %), other threads had 1.0 % (within 1 %) \
                 of all, the host 1.0 % (within 1 %)",
            ),
            (
                row(2.1, 0.0, 0.0),
                "too loud for a VALID run: of the CPUs of a run, the one that lost most lost 2.1 % (above 2 %), other threads had 0.0 % (within 1 %) \
                 of all, the host 0.0 % (within 1 %)",
            ),
            (
                row(2.0, 0.0, 1.1),
                "too loud for a VALID run: of the CPUs of a run, the one that lost most lost 2.0 % (within 2 %), other threads had 0.0 % (within 1 %) \
                 of all, the host 1.1 % (above 1 %)",
            ),
        ] {
            // What happens on another CPU is shown, and is no matter.
            let rows = [row.clone(), Jitter { cpu: 7, lost_percent: 90.0, ..row.clone() }];
            let text = table(&rows, &[row.cpu]);
            assert!(row.gaps().takers().starts_with(&row.takers()), "{}", row.takers());
            assert!(
                row.takers().starts_with("other threads ") && row.takers().ends_with(" %"),
                "{}",
                row.takers()
            );
            assert_eq!(text.lines().last(), Some(last));
            let says = |cpu: usize| text.lines().any(|line| line.starts_with(&format!("CPU {cpu}: ")));
            assert_eq!([says(row.cpu), says(7)], [LOST_PERCENT_MAX < row.lost_percent, true], "{text}");
        }
    }

    #[test]
    fn who_had_most_of_the_long_gaps_is_told_where_it_is_another() {
        for (long_percent, threads_long_percent, told) in [
            (
                1.5,
                0.2,
                Some(
                    "; of 1.50 % in gaps of half a millisecond or more most: most likely the host (nobody is charged)",
                ),
            ),
            (1.5, 1.4, None),
            (0.05, 0.0, None),
        ] {
            let row = Jitter {
                lost_percent: 4.0,
                threads_percent: Some(3.0),
                host_percent: Some(0.0),
                long_percent: Some(long_percent),
                threads_long_percent: Some(threads_long_percent),
                ..crate::summary::example().jitter_before[0].clone()
            };
            let all =
                "other threads 3.00 %, the host 0.00 % (as far as it says), nobody that is charged 1.00 %";
            assert_eq!(row.takers(), format!("{all}{}", told.unwrap_or_default()));
        }
    }
}
