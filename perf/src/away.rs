//! For how long the server's loops had no CPU while the load was on: told by those that spin, which notice it.
//!
//! `jitter` measures the machine before and after a run; what it takes differs by the second. A loop that spins and
//! finds no work knows how long that took, so its own rounds tell what was taken during the run. While it has work it
//! cannot tell, so the time that counts is the one without.

use outcry::server::jitter;
use outcry::topology::checks::Gaps;
use serde::{Deserialize, Serialize};

use crate::counts;
use crate::jitter::Jitter;
use crate::stats::as_micros;

/// What a loop that spun had no CPU for, in moments of 20 µs or more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Away {
    /// Of the time in which it had no work, in hundredths.
    pub(crate) lost_percent: f64,
    /// The part of it in moments of half a millisecond or more.
    #[serde(default)]
    pub(crate) long_percent: f64,
    /// The longest.
    pub(crate) max_us: f64,
    /// For how long one in a thousand that come at any moment of that time waits at least until the CPU is back.
    pub(crate) wait_p999_us: f64,
    /// Likewise of one in a hundred.
    #[serde(default)]
    pub(crate) wait_p99_us: f64,
    /// For how long those between p98.5 and p99.5 wait on average, as [`Parts`](crate::parts::Parts) picks them.
    #[serde(default)]
    pub(crate) around_p99_us: f64,
    /// Likewise of the slowest thousandth.
    #[serde(default)]
    pub(crate) slowest_us: f64,
    /// Of all the time, what other threads of this machine had of its CPU, by its run delay; none if nobody says.
    #[serde(default)]
    pub(crate) threads_percent: Option<f64>,
}

impl Away {
    /// By what a loop counted, shortest first, while it had no work for `idle_ns`.
    pub(crate) fn of(counts: &[[u64; 2]], idle_ns: u64, threads_percent: Option<f64>) -> Self {
        let gaps = counts::one_by_one(counts);
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

    /// For how long such requests wait on average until the loop has its CPU back; those in the middle meet no gap.
    pub(crate) fn of_us(&self, of: &str) -> Option<f64> {
        match of {
            "p99" => Some(self.around_p99_us),
            "p99.9" => Some(self.slowest_us),
            _ => None,
        }
    }

    /// The same as gaps of its CPU, of which the host is charged with `host_percent` meanwhile; `around` says the names:
    /// it was watched before or after. Other threads take a loop's CPU whether it has work or not, so their part of all
    /// the time is their part of the time without. Of that, as much was in short moments as around the run, if so much of
    /// all was: who takes a turn more has it for longer.
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

/// What the moments that wait longest wait on average: of all that come within `gaps`, those from the first to the second
/// of `times_ns`, longest first. Gaps ascending, in nanoseconds.
fn mean_us(gaps: &[u64], [from_ns, to_ns]: [u64; 2]) -> f64 {
    let [less, more] = [from_ns, to_ns].map(|time_ns| {
        let least_us = as_micros(jitter::wait(gaps, time_ns));
        // Who comes within a gap waits for its end, so that all waits above the least are met alike.
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
            // Around the run it was in short moments that they had it; more than that was in long ones.
            (Some(0.6), 0.7, 0.2, Taker::Unseen),
            (Some(2.5), 0.7, 0.2, Taker::Threads),
        ] {
            let away = Away { lost_percent: 3.0, long_percent, threads_percent, ..Away::default() };
            let around = Jitter { threads_long_percent: Some(long_around), ..threads_around.clone() };
            assert_eq!(away.gaps(&around, 0.0).taker(), expected, "{away:?} {long_around}");
        }
    }

    #[test]
    fn what_a_loop_had_no_cpu_for_is_of_the_time_without_work() {
        for (counts, idle_ns, lost_percent, max_us, wait_p999_us, means_us) in [
            (vec![], 1_000_000_000, 0.0, 0.0, 0.0, [0.0, 0.0]),
            // One in 20,000 comes in it, and waits for half of it.
            (vec![[50_000, 1]], 1_000_000_000, 0.005, 50.0, 0.0, [0.0, 1.25]),
            // Of a second a thousandth is a millisecond: of 4 ms that which lies further than 3 ms from the end.
            (vec![[4_000_000, 1]], 1_000_000_000, 0.4, 4_000.0, 3_000.0, [0.0, 3_500.0]),
            // Of those around p99, from the fifth to the fifteenth millisecond, half meet its last 5 ms.
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
