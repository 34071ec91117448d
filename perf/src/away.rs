//! For how long the server's loops were without a CPU while the load was on, as reported by those that spin.
//!
//! `jitter` measures the machine before and after a run, but what a machine takes differs from second to second. A loop
//! that spins knows how long each empty round took, so its own rounds show what was taken during the run. It cannot
//! tell while it has work, so only the time without work counts.

use outcry::server::machine::jitter;
use outcry::topology::checks::Gaps;
use serde::{Deserialize, Serialize};

use crate::counts;
use crate::jitter::Jitter;
use crate::stats::as_micros;

/// What a loop that spun had no CPU for, in moments of 20 µs or more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Away {
    /// Lost part of the time in which the loop had no work, in percent.
    pub(crate) lost_percent: f64,
    /// The part of `lost_percent` in moments of half a millisecond or more.
    #[serde(default)]
    pub(crate) long_percent: f64,
    /// The longest.
    pub(crate) max_us: f64,
    /// One in a thousand requests that come at any moment of that time waits at least this long until the CPU is back.
    pub(crate) wait_p999_us: f64,
    /// One in a hundred waits at least this long; see `wait_p999_us`.
    #[serde(default)]
    pub(crate) wait_p99_us: f64,
    /// How long requests between p98.5 and p99.5 wait on average, as [`Parts`](crate::parts::Parts) picks them.
    #[serde(default)]
    pub(crate) around_p99_us: f64,
    /// How long the slowest thousandth wait on average.
    #[serde(default)]
    pub(crate) slowest_us: f64,
    /// Part of all the time that other threads of this machine had the loop's CPU, by its run delay; none if not known.
    #[serde(default)]
    pub(crate) threads_percent: Option<f64>,
}

impl Away {
    /// From a loop's counts of such moments, shortest first, and the time `idle_ns` in which it had no work. All of
    /// them lie within that time, but each counts as the longest of its bucket, and the loop's work was read a little
    /// earlier: if they are longer together, the loop had no CPU for all of it.
    pub(crate) fn of(counts: &[[u64; 2]], idle_ns: u64, threads_percent: Option<f64>) -> Self {
        let gaps = counts::one_by_one(counts);
        let idle_ns = idle_ns.max(gaps.iter().sum());
        let lost_us = as_micros(gaps.iter().sum());
        let long_us = as_micros(gaps.iter().filter(|&&gap| Gaps::LONG_NS <= gap).sum());
        Self {
            lost_percent: 100.0 * lost_us / as_micros(idle_ns.max(1)),
            long_percent: 100.0 * long_us / as_micros(idle_ns.max(1)),
            max_us: as_micros(gaps.last().copied().unwrap_or(0)),
            wait_p999_us: as_micros(jitter::wait(&gaps, idle_ns / 1_000)),
            wait_p99_us: as_micros(jitter::wait(&gaps, idle_ns / 100)),
            around_p99_us: mean_us(&gaps, [idle_ns / 200, 3 * idle_ns / 200]),
            slowest_us: mean_us(&gaps, [0, idle_ns / 1_000]),
            threads_percent,
        }
    }

    /// How long the requests at quantile `of` wait on average until the loop has its CPU back; none for those in the
    /// middle, which meet no gap.
    pub(crate) fn of_us(&self, of: &str) -> Option<f64> {
        match of {
            "p99" => Some(self.around_p99_us),
            "p99.9" => Some(self.slowest_us),
            _ => None,
        }
    }

    /// These moments as gaps of the loop's CPU, with the names that `around` found before or after the run;
    /// `host_percent` is what the host is charged with during the run.
    ///
    /// Other threads take a loop's CPU whether it has work or not, so their part of all the time is also their part of
    /// the time without work. What they had in short moments around the run counts as short here too, up to all that
    /// was lost in short moments; the rest counts as long, because a thread that takes one more turn keeps the CPU for
    /// longer.
    pub(crate) fn gaps(&self, around: &Jitter, host_percent: f64) -> Gaps {
        let around_short =
            around.threads_percent.zip(around.threads_long_percent).map(|(all, long)| all - long);
        let short = around_short.unwrap_or(0.0).min(self.lost_percent - self.long_percent).max(0.0);
        let threads_long = |percent: f64| (percent - short).clamp(0.0, self.long_percent);
        let meanwhile = Jitter {
            lost_percent: self.lost_percent,
            threads_percent: self.threads_percent,
            long_percent: Some(self.long_percent),
            threads_long_percent: self.threads_percent.map(threads_long),
            host_percent: Some(host_percent),
            ..around.clone()
        };
        if self.threads_percent.is_some() { meanwhile.gaps() } else { around.gaps() }
    }
}

/// The average wait of the moments that wait longest: of all moments within `gaps`, ordered by their wait, longest
/// first, those from `from_ns` to `to_ns`. Gaps are ascending, in nanoseconds.
fn mean_us(gaps: &[u64], [from_ns, to_ns]: [u64; 2]) -> f64 {
    let [less, more] = [from_ns, to_ns].map(|time_ns| {
        let least_us = as_micros(jitter::wait(gaps, time_ns));
        // A request that comes within a gap waits for its end, so all waits above the least are met equally often.
        let longer = gaps.iter().map(|&gap| as_micros(gap)).filter(|us| least_us < *us);
        longer.map(|us| (us * us - least_us * least_us) / 2.0).sum::<f64>()
    });
    let time_us = as_micros(to_ns.saturating_sub(from_ns));
    if time_us > 0.0 { (more - less) / time_us } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcry::topology::checks::Taker;

    #[test]
    fn whoever_had_the_cpu_meanwhile_counts_before_who_had_it_around() {
        let threads_around = Jitter {
            lost_percent: 2.0,
            threads_percent: Some(2.0),
            host_percent: Some(0.0),
            ..crate::summary::example().jitter_before[0].clone()
        };
        for (threads_percent, long_percent, long_around, expected) in [
            (None, 3.0, 1.0, Taker::Threads),
            (Some(1.6), 3.0, 2.0, Taker::Threads),
            (Some(0.1), 3.0, 2.0, Taker::Unseen),
            (Some(0.1), 0.09, 2.0, Taker::Interrupts),
            // Short ones are many, and of the long ones they had most.
            (Some(0.6), 0.7, 2.0, Taker::Threads),
            // Around the run they had it in short moments only; what exceeds that was in long ones.
            (Some(0.6), 0.7, 0.2, Taker::Unseen),
            (Some(2.5), 0.7, 0.2, Taker::Threads),
        ] {
            let away = Away { lost_percent: 3.0, long_percent, threads_percent, ..Away::default() };
            let around = Jitter { threads_long_percent: Some(long_around), ..threads_around.clone() };
            assert_eq!(away.gaps(&around, 0.0).taker(), expected, "{away:?} {long_around}");
        }
    }

    #[test]
    fn a_loop_loses_at_most_all_of_its_time_without_work() {
        for (idle_ns, lost_percent) in [(4_000_000, 50.0), (2_000_000, 100.0), (1_900_000, 100.0), (0, 100.0)]
        {
            let away = Away::of(&[[1_000_000, 2]], idle_ns, None);
            let told = [away.lost_percent, away.long_percent];
            assert!(told.iter().all(|told| (told - lost_percent).abs() < 1e-9), "{idle_ns} {away:?}");
        }
    }

    #[test]
    fn what_a_loop_had_no_cpu_for_is_of_the_time_without_work() {
        for (counts, idle_ns, lost_percent, max_us, wait_p999_us, means_us) in [
            (vec![], 1_000_000_000, 0.0, 0.0, 0.0, [0.0, 0.0]),
            // One in 20,000 comes within it, and waits for half of it on average.
            (vec![[50_000, 1]], 1_000_000_000, 0.005, 50.0, 0.0, [0.0, 1.25]),
            // A thousandth of a second is 1 ms: the first millisecond of the 4 ms, which is more than 3 ms from the
            // end.
            (vec![[4_000_000, 1]], 1_000_000_000, 0.4, 4_000.0, 3_000.0, [0.0, 3_500.0]),
            // Around p99 are the fifth to the fifteenth millisecond; half of them fall into the gap's last 5 ms.
            (vec![[10_000_000, 1]], 1_000_000_000, 1.0, 10_000.0, 9_000.0, [1_250.0, 9_500.0]),
        ] {
            let away = Away::of(&counts, idle_ns, None);
            assert!((away.lost_percent - lost_percent).abs() < 1e-9, "{away:?}");
            assert!(away.wait_p99_us <= away.wait_p999_us, "{away:?}");
            let told = [away.max_us, away.wait_p999_us, away.around_p99_us, away.slowest_us];
            let expected = [max_us, wait_p999_us, means_us[0], means_us[1]];
            assert!(
                told.iter().zip(expected).all(|(told, expected)| (told - expected).abs() < 1e-9),
                "{away:?}"
            );
        }
    }
}
