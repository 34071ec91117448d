//! Where the time of the middle requests of a class went, and of its slowest ones.
//!
//! A quantile of a stage is not a part of the same quantile of the whole: the slowest `sign` and the
//! slowest answer are seldom one request. So the requests around a quantile are picked, and what
//! each stage took of *them* is averaged. What is left between sending and answer lies outside the
//! server's stages: the kernel's sockets, wake-ups, and the client.

use serde::{Deserialize, Serialize};

use crate::stats::as_micros;
use crate::timing;

/// Stages in which a trading loop works for this request alone; in the others a request waits, or its
/// time is that of a whole turn.
pub(crate) const BUSY: [&str; 4] = ["parse", "auth", "sign", "match"];

/// Fewer requests than this have no middle and no tail.
const REQUESTS_MIN: usize = 10;

/// One request that was answered, as the client and the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    /// From the moment at which it was due to its answer.
    pub(crate) latency_ns: u64,
    /// Of that, before it was sent.
    pub(crate) late_ns: u64,
    /// What the server said, or nothing.
    pub(crate) timing: &'a str,
}

/// Where the time of some requests went, on average of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parts {
    /// Their class.
    pub(crate) class: String,
    /// Which of the class: `p50`, those between p40 and p60; `p99`, those between p98.5 and p99.5; `p99.9`, the
    /// slowest thousandth.
    pub(crate) of: String,
    /// How many they are.
    pub(crate) requests: u64,
    /// From the moment at which each was due.
    pub(crate) latency_us: f64,
    /// Of that, before it was sent.
    pub(crate) late_us: f64,
    /// Of that, between sending and answer, but in none of the server's stages.
    pub(crate) outside_us: f64,
    /// The server's stages, `total` left out.
    pub(crate) stages: Vec<(String, f64)>,
}

impl Parts {
    /// A part of the whole in hundredths.
    pub(crate) fn percent(&self, part_us: f64) -> f64 {
        if self.latency_us > 0.0 { 100.0 * part_us / self.latency_us } else { 0.0 }
    }

    /// What a stage took, if the server told it.
    pub(crate) fn stage_us(&self, stage: &str) -> Option<f64> {
        self.stages.iter().find(|(name, _)| name == stage).map(|(_, us)| *us)
    }

    fn of(class: &str, of: &str, seen: &[Seen<'_>]) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
        let count = seen.len() as f64;
        let mean = |ns: &dyn Fn(&Seen<'_>) -> u64| as_micros(seen.iter().map(ns).sum::<u64>()) / count;
        let outside = |one: &Seen<'_>| {
            let inside = timing::parse(one.timing).find(|(name, _)| *name == "total").map_or(0, |(_, ns)| ns);
            (one.latency_ns - one.late_ns).saturating_sub(inside)
        };
        let mut stages: Vec<(String, f64)> = Vec::new();
        for (name, ns) in seen.iter().flat_map(|one| timing::parse(one.timing)) {
            if name == "total" {
                continue;
            }
            let part = as_micros(ns) / count;
            match stages.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += part,
                None => stages.push((name.to_owned(), part)),
            }
        }
        Self {
            class: class.to_owned(),
            of: of.to_owned(),
            requests: seen.len() as u64,
            latency_us: mean(&|one| one.latency_ns),
            late_us: mean(&|one| one.late_ns),
            outside_us: mean(&outside),
            stages,
        }
    }
}

/// The middle and the tail of a class; none of one that has few requests or whose stages are not told.
pub(crate) fn of_class(class: &str, mut seen: Vec<Seen<'_>>) -> Vec<Parts> {
    seen.retain(|one| !one.timing.is_empty());
    let count = seen.len();
    if count < REQUESTS_MIN {
        return Vec::new();
    }
    seen.sort_unstable_by_key(|one| one.latency_ns);
    let middle = &seen[count * 4 / 10..count * 6 / 10];
    let slow = &seen[count * 985 / 1_000..count * 995 / 1_000];
    let tail = &seen[count - count.div_ceil(1_000)..];
    let mut parts = vec![Parts::of(class, "p50", middle)];
    if REQUESTS_MIN <= slow.len() {
        parts.push(Parts::of(class, "p99", slow));
    }
    parts.push(Parts::of(class, "p99.9", tail));
    parts
}

/// Nanoseconds for which one answer kept a loop busy.
pub(crate) fn busy_ns(timing: &str) -> u64 {
    timing::parse(timing).filter(|(name, _)| BUSY.contains(name)).map(|(_, ns)| ns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 999 requests of 40 µs, 26 of them signature, and one of 4 ms, 3.9 of them the disk.
    fn thousand() -> Vec<Seen<'static>> {
        let quick = Seen {
            latency_ns: 40_000,
            late_ns: 1_000,
            timing: "sign;dur=0.026, journal;dur=0.001, total;dur=0.03",
        };
        let slow = Seen {
            latency_ns: 4_000_000,
            late_ns: 0,
            timing: "sign;dur=0.026, journal;dur=3.9, total;dur=3.95",
        };
        std::iter::repeat_n(quick, 999).chain([slow]).collect()
    }

    #[test]
    fn the_middle_and_the_tail_spend_their_time_elsewhere() {
        let [middle, slow, tail] = of_class("place", thousand()).try_into().unwrap();
        let parts = |parts: &Parts| {
            let most = parts.stages.iter().max_by(|one, other| one.1.total_cmp(&other.1));
            let (stage, us) = most.cloned().unwrap();
            let (late, outside) = (parts.late_us.round(), parts.outside_us.round());
            format!(
                "{} of {}: {stage} {:.0} %, outside {outside}, late {late}",
                parts.of,
                parts.requests,
                parts.percent(us)
            )
        };
        assert_eq!(parts(&middle), "p50 of 200: sign 65 %, outside 9, late 1");
        assert_eq!(parts(&slow), "p99 of 10: sign 65 %, outside 9, late 1");
        assert_eq!(parts(&tail), "p99.9 of 1: journal 98 %, outside 50, late 0");
    }

    #[test]
    fn few_requests_and_silent_servers_have_no_parts() {
        let all = thousand();
        assert_eq!(of_class("place", all[..9].to_vec()), []);
        assert_eq!(of_class("place", all[..10].to_vec()).len(), 2);
        assert_eq!(
            (of_class("place", all[..899].to_vec()).len(), of_class("place", all.clone()).len()),
            (2, 3)
        );
        assert_eq!(of_class("read", all.into_iter().map(|one| Seen { timing: "", ..one }).collect()), []);
    }

    #[test]
    fn waiting_keeps_no_loop_busy() {
        assert_eq!(busy_ns("recv;dur=0.001, sign;dur=0.02, queue;dur=3, journal;dur=5, total;dur=9"), 20_000);
    }
}
