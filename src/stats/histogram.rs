//! A histogram of durations with one writer.
//!
//! Buckets as in Gil Tene's HDR histogram with two significant digits: up to 255 ns each value has its own,
//! then every power of two is cut into 128, so that a value is known to within 1/128 of itself.
//!
//! | nanoseconds        | width of a bucket | buckets            |
//! |--------------------|------------------:|--------------------|
//! | 0 to 255           |              1 ns | 0 to 255           |
//! | 2^(7+k) to 2^(8+k) |            2^k ns | 128 from 128+128·k |
//! | from 2^36 (69 s)   |                 – | the last           |

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets in one power of two.
const PARTS: usize = 128;
/// How many powers of two are cut; the highest is 2^35 to 2^36.
const CUTS: usize = 28;
const BUCKETS: usize = (CUTS + 2) * PARTS;

/// The end of the last bucket: 69 s. Longer durations are counted in it too.
pub const LARGEST_NS: u64 = (1 << 36) - 1;

/// Durations in nanoseconds. Only one thread may record at a time; any may read, and sees each count as of
/// some moment, but not all counts as of the same one.
#[derive(Debug)]
pub struct Histogram {
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        let counts = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { counts, sum_ns: AtomicU64::new(0), max_ns: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts one duration. Only the owner calls this. One above [`LARGEST_NS`] goes to the last bucket; sum
    /// and maximum take it as it is.
    pub fn record(&self, ns: u64) {
        // Relaxed, and no read-modify-write: there is one writer, and readers want numbers, not order.
        let add = |cell: &AtomicU64, more| {
            let sum = cell.load(Ordering::Relaxed).wrapping_add(more);
            cell.store(sum, Ordering::Relaxed);
        };
        add(&self.counts[bucket(ns)], 1);
        add(&self.sum_ns, ns);
        if self.max_ns.load(Ordering::Relaxed) < ns {
            self.max_ns.store(ns, Ordering::Relaxed);
        }
    }

    /// The sum of all durations, in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }

    /// The longest duration, in nanoseconds.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns.load(Ordering::Relaxed)
    }

    /// The buckets that are not empty, shortest first: the longest duration of each, and its count.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate();
        let counts = counts.map(|(bucket, count)| (longest(bucket), count.load(Ordering::Relaxed)));
        counts.filter(|&(_, count)| count != 0)
    }
}

/// The bucket of a duration.
fn bucket(ns: u64) -> usize {
    let ns = ns.min(LARGEST_NS);
    let cut = (ns.checked_ilog2().unwrap_or(0) as usize + 1).saturating_sub(8);
    let bucket = cut * PARTS + usize::try_from(ns >> cut).expect("at most 255");
    debug_assert!(bucket < BUCKETS, "LARGEST_NS is in the last bucket");
    bucket
}

/// The longest duration of a bucket.
fn longest(bucket: usize) -> u64 {
    let cut = (bucket / PARTS).saturating_sub(1);
    let part = (bucket - cut * PARTS) as u64;
    ((part + 1) << cut) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_without_gap_and_tell_a_value_to_within_a_128th() {
        let mut next = 0;
        for bucket_no in 0..BUCKETS {
            assert_eq!(bucket(next), bucket_no, "{next} ns begin a bucket");
            let last = longest(bucket_no);
            assert_eq!(bucket(last), bucket_no, "{last} ns end it");
            assert!(last - next <= next / 128, "{next} to {last}");
            next = last + 1;
        }
        assert_eq!(next, LARGEST_NS + 1);
    }

    #[test]
    fn what_was_recorded_is_counted_summed_and_bounded() {
        let histogram = Histogram::default();
        for ns in [0, 255, 256, 257, 41_000, u64::MAX] {
            histogram.record(ns);
        }
        let counts: Vec<_> = histogram.counts().collect();
        assert_eq!(counts, [(0, 1), (255, 1), (257, 2), (41_215, 1), (LARGEST_NS, 1)]);
        assert_eq!((histogram.sum_ns(), histogram.max_ns()), (41_767, u64::MAX));
    }
}
