//! The durations that the server has counted since its start, and what was added between two looks
//! at them.

use outcry::server::machine::jitter;
use serde_json::Value;

use crate::stats::{self, Quantiles};
use crate::summary::Spans;

/// Pairs of a duration's upper bound in nanoseconds and how many were counted.
pub(crate) type Counts = Vec<[u64; 2]>;

/// An answer to `/debug/latency?counts=true`; empty if the server does not provide it.
#[derive(Debug, Default)]
pub(crate) struct Counted(Value);

impl Counted {
    /// Reads the answer.
    pub(crate) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// What a thread counted for a stage.
    fn of(&self, thread: &str, stage: &str) -> Option<Counts> {
        let threads = self.0.as_array()?;
        let told = threads.iter().find(|told| told["loop"] == thread)?;
        let counts = told["stages"][stage]["counts"].as_array()?;
        let pair = |pair: &Value| Some([pair[0].as_u64()?, pair[1].as_u64()?]);
        Some(counts.iter().filter_map(pair).collect())
    }

    /// What was added after `before`, shortest first; none if either answer has no such stage.
    pub(crate) fn since(&self, before: &Self, thread: &str, stage: &str) -> Option<Counts> {
        let before = before.of(thread, stage)?;
        let had = |longest: u64| before.iter().find(|[ns, _]| *ns == longest).map_or(0, |[_, count]| *count);
        let mut more: Counts =
            self.of(thread, stage)?.iter().map(|&[ns, count]| [ns, count.saturating_sub(had(ns))]).collect();
        more.retain(|[_, count]| 0 < *count);
        more.sort_unstable();
        Some(more)
    }
}

/// The quantiles of counted durations, which may be in any order.
pub(crate) fn quantiles(counts: &[[u64; 2]]) -> Quantiles {
    let mut histogram = stats::histogram();
    for &[ns, count] in counts {
        histogram.record_n(ns, count).expect("the histogram grows");
    }
    Quantiles::of(&histogram)
}

/// The spans of these durations within `time_ns`; shortest first.
pub(crate) fn spans(counts: &[[u64; 2]], time_ns: u64) -> Spans {
    let all = one_by_one(counts);
    let wait_us = |one_in: u64| stats::as_micros(jitter::wait(&all, time_ns / one_in));
    Spans { each: quantiles(counts), wait_p99_us: wait_us(100), wait_p999_us: wait_us(1_000) }
}

/// Each duration as often as it was counted.
pub(crate) fn one_by_one(counts: &[[u64; 2]]) -> Vec<u64> {
    let several = |&[ns, count]: &[u64; 2]| {
        std::iter::repeat_n(ns, usize::try_from(count).expect("counts fit into memory"))
    };
    counts.iter().flat_map(several).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_between_two_looks_is_what_a_thread_counted_more() {
        let look = |counts: &str| {
            Counted::parse(&format!(
                r#"[{{"loop":"outcry-shard0","stages":{{"turn":{{"counts":[[1,2]]}},"away":{{"count":3,"counts":{counts}}}}}}},
                {{"loop":"journal","stages":{{"write":{{"counts":[[60000,7]]}}}}}}]"#
            ))
        };
        let (before, after) = (look("[[50000,2],[900000,1]]"), look("[[50000,2],[900000,3],[20000,1]]"));
        for (from, thread, stage, expected) in [
            (&before, "outcry-shard0", "away", Some(vec![[20_000, 1], [900_000, 2]])),
            (&after, "outcry-shard0", "away", Some(vec![])),
            (&before, "journal", "write", Some(vec![])),
            (&before, "journal", "away", None),
            (&before, "outcry-reader", "away", None),
            (&Counted::parse("no such route"), "outcry-shard0", "away", None),
        ] {
            assert_eq!(after.since(from, thread, stage), expected, "{thread} {stage}");
        }
    }

    #[test]
    fn a_long_span_is_met_by_more_than_it_is_of_all() {
        // The long one alone covers three quarters of a hundredth of ten seconds.
        let Spans { each, wait_p99_us, wait_p999_us } =
            spans(&[[50_000, 99], [75_000_000, 1]], 10_000_000_000);
        assert_eq!(each.count, 100);
        for (got, wanted) in [(each.p99_us, 50.0), (each.max_us, 75e3), (wait_p999_us, 65e3)] {
            assert!((got / wanted - 1.0).abs() < 0.001, "{got} for {wanted}");
        }
        assert!(wait_p99_us < 50.0, "{wait_p99_us}");
    }
}
