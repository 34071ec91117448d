//! How often a CPU is taken from a thread that never sleeps: what no setting of ours can improve.
//!
//! A thread on each CPU reads the clock without pause. Two readings that are apart by [`GAP_MIN_NS`] or more are a gap:
//! an interrupt, another thread, or the host.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::crowd::{Crowd, TICK_NS};
use super::run_delay::RunDelay;
use crate::server::process::clock::nanoseconds;
use crate::server::threads::thread;
use crate::topology::checks::Gaps;

/// The shortest gap: readings of the clock are only some tens of nanoseconds apart.
pub(crate) const GAP_MIN_NS: u64 = 1_000;
/// Gaps that are kept for one CPU, which ends its watch; a hundred thousand a second would be a CPU that does nothing else.
const GAPS_MAX: usize = 1 << 20;

/// Spins on every CPU of `cpus` at once for `time`: as in an exchange, where each of them has work.
#[must_use]
pub fn measure(cpus: &[usize], time: Duration) -> Vec<Gaps> {
    let together = Arc::new(Barrier::new(cpus.len()));
    let spin = |&cpu: &usize| {
        let together = Arc::clone(&together);
        std::thread::spawn(move || {
            thread::pin(Some(cpu));
            let gaps = Vec::with_capacity(GAPS_MAX);
            together.wait();
            let before = stolen_ns(cpu);
            let spun = spin(time, gaps);
            let host_ns = before.zip(stolen_ns(cpu)).map(|(before, after)| after.saturating_sub(before));
            summary(cpu, spun, host_ns)
        })
    };
    let before = Crowd::of_threads();
    let threads: Vec<_> = cpus.iter().map(spin).collect();
    let rows: Vec<Gaps> =
        threads.into_iter().map(|thread| thread.join().expect("reading a clock does not panic")).collect();
    let after = Crowd::of_threads();
    // What used most of the time that other threads used: stopping it gives the CPU back.
    let named = |gaps: Gaps| {
        let share = gaps.threads_millionths.unwrap_or(0);
        Gaps { largest: before.most_of(&after, gaps.cpu, share, time), ..gaps }
    };
    rows.into_iter().map(named).collect()
}

/// Nanoseconds of `cpu` that the host gave to others, in steps of a tick: the eighth number of its line.
fn stolen_ns(cpu: usize) -> Option<u64> {
    let (stat, name) = (std::fs::read_to_string("/proc/stat").ok()?, format!("cpu{cpu}"));
    let mut words = stat.lines().map(str::split_whitespace);
    let mut of_cpu = words.find_map(|mut words| (words.next()? == name).then_some(words))?;
    Some(of_cpu.nth(7)?.parse::<u64>().ok()? * TICK_NS)
}

/// What a thread that only spins met.
struct Spun {
    gaps_ns: Vec<u64>,
    elapsed: Duration,
    /// For how long others ran while it was ready, in all and in gaps of [`Gaps::LONG_NS`] or more; none if the kernel
    /// does not say.
    threads_ns: Option<[u64; 2]>,
}

/// Reads the clock for as long as `time`, or until it has met [`GAPS_MAX`] gaps, and keeps every gap.
fn spin(time: Duration, mut gaps_ns: Vec<u64>) -> Spun {
    let mut delay = RunDelay::of_this_thread();
    let mut threads_ns = Some([0; 2]);
    let mut had = |gap: Option<u64>| {
        threads_ns = threads_ns.zip(delay.since_last()).map(|([all, long], ns)| {
            // What came in short gaps since the last long one is little beside it.
            [all + ns, long + gap.map_or(0, |gap| ns.min(gap))]
        });
    };
    let began = Instant::now();
    let mut last = began;
    while last.duration_since(began) < time && gaps_ns.len() < GAPS_MAX {
        let now = Instant::now();
        let gap = nanoseconds(now.duration_since(last));
        last = now;
        if GAP_MIN_NS <= gap {
            gaps_ns.push(gap);
            if Gaps::LONG_NS <= gap {
                had(Some(gap));
                // Asking the kernel is not a gap.
                last = Instant::now();
            }
        }
    }
    had(None);
    Spun { gaps_ns, elapsed: last.duration_since(began), threads_ns }
}

/// Sums up the gaps; `host_ns` is the time that the host took.
fn summary(cpu: usize, spun: Spun, host_ns: Option<u64>) -> Gaps {
    let Spun { gaps_ns: mut gaps, elapsed, threads_ns } = spun;
    gaps.sort_unstable();
    let elapsed_ns = nanoseconds(elapsed).max(1);
    let (count, lost) = (u64::try_from(gaps.len()).expect("few"), gaps.iter().sum::<u64>());
    let share = |part: u64, scale: u64| u128::from(part) * u128::from(scale) / u128::from(elapsed_ns);
    let narrow = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    let long = gaps.iter().filter(|gap| Gaps::LONG_NS <= **gap).sum::<u64>();
    let millionths = |ns: u64| narrow(share(ns, 1_000_000));
    Gaps {
        cpu,
        per_second: narrow(share(count, 1_000_000_000)),
        p50_ns: percentile(&gaps, 500),
        p99_ns: percentile(&gaps, 990),
        p999_ns: percentile(&gaps, 999),
        max_ns: gaps.last().copied().unwrap_or(0),
        wait_p999_ns: wait(&gaps, elapsed_ns / 1_000),
        wait_p99_ns: wait(&gaps, elapsed_ns / 100),
        lost_millionths: millionths(lost),
        long_millionths: millionths(long),
        threads_millionths: threads_ns.map(|[all, _]| millionths(all)),
        threads_long_millionths: threads_ns.map(|[_, long]| millionths(long)),
        host_millionths: host_ns.map(millionths),
        largest: None,
    }
}

/// The wait that arrivals in `time_ns` of all moments exceed, where an arrival within a gap waits for its end: the
/// parts of all longer gaps that are further than this wait from their ends add up to `time_ns`. Gaps ascending, all in
/// nanoseconds; 0 if they add up to less.
#[must_use]
pub fn wait(sorted: &[u64], time_ns: u64) -> u64 {
    let mut sum = 0;
    for (count, gap) in (1..).zip(sorted.iter().rev()) {
        sum += gap;
        let shorter = sorted.iter().rev().nth(usize::try_from(count).unwrap_or(usize::MAX));
        let wait = sum.saturating_sub(time_ns) / count;
        if time_ns <= sum && shorter.is_none_or(|shorter| *shorter <= wait) {
            return wait;
        }
    }
    0
}

/// The value that `permille` of `sorted` do not exceed; 0 if there is none.
pub(crate) fn percentile(sorted: &[u64], permille: usize) -> u64 {
    let rank = (sorted.len() * permille).div_ceil(1_000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_there() {
        let hundred: Vec<u64> = (1..=100).collect();
        let of = |permille| percentile(&hundred, permille);
        assert_eq!((of(500), of(990), of(999), of(1_000)), (50, 99, 100, 100));
        assert_eq!((percentile(&[], 500), percentile(&[7], 1)), (0, 7));
    }

    #[test]
    fn gaps_are_counted_a_second_and_their_time_is_lost() {
        let spun =
            |gaps_ns: &[u64], elapsed, threads_ns| Spun { gaps_ns: gaps_ns.to_vec(), elapsed, threads_ns };
        let half = Duration::from_millis(500);
        let gaps = summary(3, spun(&[5_000, 1_000, 4_000], half, Some([1_500, 500])), None);
        assert_eq!((gaps.threads_millionths, gaps.threads_long_millionths), (Some(3), Some(1)));
        assert_eq!((gaps.host_millionths, gaps.long_millionths), (None, 0));
        let long = summary(3, spun(&[500_000, 1_000], 2 * half, None), Some(0));
        assert_eq!((long.long_millionths, long.host_millionths), (500, Some(0)));
        assert_eq!((long.threads_millionths, long.threads_long_millionths), (None, None));
        assert_eq!((gaps.cpu, gaps.per_second, gaps.lost_millionths), (3, 6, 20));
        assert_eq!((gaps.p50_ns, gaps.p99_ns, gaps.max_ns), (4_000, 5_000, 5_000));
    }

    #[test]
    fn who_comes_within_a_gap_waits_for_its_end_and_long_ones_are_met_more_often() {
        for (gaps, time, expected) in [
            // Of 100 those that come in the first 90 wait for more than 10.
            (vec![100], 90, 10),
            (vec![100], 100, 0),
            (vec![100], 101, 0),
            (vec![], 1, 0),
            // 90 of one and 90 of the other.
            (vec![100, 100], 180, 10),
            // More than 60: 40 of the longest; more than 20: 80 and 40.
            (vec![60, 100], 40, 60),
            (vec![60, 100], 120, 20),
            // A thousand short ones change nothing.
            ([vec![1; 1_000], vec![100]].concat(), 40, 60),
        ] {
            assert_eq!(wait(&gaps, time), expected, "{time} of {:?}", gaps.last());
        }
    }

    #[test]
    fn a_watched_cpu_says_what_it_lost() {
        let cpu = crate::server::plan::topology::allowed_cpus()[0];
        let rows = measure(&[cpu], Duration::from_millis(20));
        let [row] = rows.as_slice() else { panic!("one CPU was asked for") };
        assert_eq!(row.cpu, cpu);
        assert!(row.lost_millionths <= 1_000_000 && row.long_millionths <= row.lost_millionths, "{row:?}");
        assert!(
            row.p50_ns <= row.p99_ns && row.p99_ns <= row.max_ns && row.wait_p999_ns <= row.max_ns,
            "{row:?}"
        );
    }
}
