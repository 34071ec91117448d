//! Where the time of the middle requests of a class went, and of its slowest ones.
//!
//! A quantile of a stage is not a part of the same quantile of the whole: the slowest `sign` and the
//! slowest answer are seldom one request. So the requests around a quantile are picked, and what
//! each stage took of *them* is averaged. What is left between sending and answer lies outside the
//! server's stages. Of that the client knows its own part, for it knows when it looked at its sockets; the remainder
//! is seen by nobody: the kernel's sockets, the network, the scheduler, other processes. So a request's time is
//! what was late, its stages, the client's part and that remainder, which add up to it.

use serde::{Deserialize, Serialize};

use crate::stats::as_micros;
use crate::timing;

/// Stages in which a trading loop works for this request alone; in the others a request waits, or its
/// time is that of a whole turn.
pub(crate) const BUSY: [&str; 4] = ["parse", "auth", "sign", "match"];

/// The stage that a request is in first.
const FIRST: &str = "recv";

/// Fewer requests than this have no middle and no tail.
const REQUESTS_MIN: usize = 10;

/// One request that was answered, as the client and the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    /// From the moment at which it was due to its answer.
    pub(crate) latency_ns: u64,
    /// Of that, before it was sent.
    pub(crate) late_ns: u64,
    /// For how long the client was away at most, between sending and answer; none of one that sleeps.
    pub(crate) away_ns: Option<u64>,
    /// What the server said, or nothing.
    pub(crate) timing: &'a str,
}

impl Seen<'_> {
    /// What the server said of each stage. Of a request behind others on its connection it counts the first from
    /// when their bytes came; what of that lies before the request was sent is left out.
    fn stages(&self) -> impl Iterator<Item = (&str, u64)> {
        let told = || timing::parse(self.timing).filter(|(name, _)| *name != "total");
        let sum: u64 = told().map(|(_, ns)| ns).sum();
        let before_ns = sum.saturating_sub(self.latency_ns - self.late_ns);
        told().map(move |(name, ns)| (name, if name == FIRST { ns.saturating_sub(before_ns) } else { ns }))
    }
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
    /// Of that, for which at most the client was writing, at other answers, or without its CPU; none if it slept in
    /// between, or did not tell.
    #[serde(default)]
    pub(crate) client_us: Option<f64>,
    /// The server's stages, `total` left out.
    pub(crate) stages: Vec<(String, f64)>,
}

impl Parts {
    /// A part of the whole in hundredths.
    pub(crate) fn percent(&self, part_us: f64) -> f64 {
        if self.latency_us > 0.0 { 100.0 * part_us / self.latency_us } else { 0.0 }
    }

    /// What neither a stage nor the client has.
    pub(crate) fn unseen_us(&self) -> f64 {
        (self.outside_us - self.client_us.unwrap_or(0.0)).max(0.0)
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
            (one.latency_ns - one.late_ns).saturating_sub(one.stages().map(|(_, ns)| ns).sum())
        };
        let away = |one: &Seen<'_>| one.away_ns.unwrap_or(0).min(outside(one));
        let mut stages: Vec<(String, f64)> = Vec::new();
        for (name, ns) in seen.iter().flat_map(Seen::stages) {
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
            client_us: seen.iter().all(|one| one.away_ns.is_some()).then(|| mean(&away)),
            stages,
        }
    }
}

/// The middle and the tail of a class; none of one that has few requests. Of one whose stages are never told, as of
/// reads, there are the client's part and the remainder, if the client told its own.
pub(crate) fn of_class(class: &str, mut seen: Vec<Seen<'_>>) -> Vec<Parts> {
    let is_silent = seen.iter().all(|one| one.timing.is_empty());
    seen.retain(|one| if is_silent { one.away_ns.is_some() } else { !one.timing.is_empty() });
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
            away_ns: Some(2_000),
            timing: "sign;dur=0.026, journal;dur=0.001, total;dur=0.03",
        };
        let slow = Seen {
            latency_ns: 4_000_000,
            late_ns: 0,
            // More than is outside: it was away while the disk wrote, too.
            away_ns: Some(3_000_000),
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
            let [late, client, unseen] =
                [parts.late_us, parts.client_us.unwrap(), parts.unseen_us()].map(f64::round);
            format!(
                "{} of {}: {stage} {:.0} %, client {client}, unseen {unseen}, late {late}",
                parts.of,
                parts.requests,
                parts.percent(us)
            )
        };
        assert_eq!(parts(&middle), "p50 of 200: sign 65 %, client 2, unseen 10, late 1");
        assert_eq!(parts(&slow), "p99 of 10: sign 65 %, client 2, unseen 10, late 1");
        assert_eq!(parts(&tail), "p99.9 of 1: journal 98 %, client 74, unseen 0, late 0");
    }

    #[test]
    fn the_parts_of_a_request_add_up_to_it() {
        for (away_ns, timing) in [
            (Some(7_000), "sign;dur=0.026, journal;dur=0.001, total;dur=0.03"),
            (Some(0), "sign;dur=0.026, total;dur=0.03"),
            (None, "recv;dur=0.0004, total;dur=0.03"),
            (Some(90_000), "total;dur=0.03"),
            // Its bytes came behind those of others, which waited since before it was sent.
            (Some(2_000), "recv;dur=0.05, sign;dur=0.026, queue;dur=0.002, total;dur=0.078"),
        ] {
            let one = Seen { latency_ns: 40_000, late_ns: 1_000, away_ns, timing };
            for parts in of_class("place", vec![one; 2_000]) {
                let stages: f64 = parts.stages.iter().map(|(_, us)| us).sum();
                let sum = parts.late_us + stages + parts.client_us.unwrap_or(0.0) + parts.unseen_us();
                assert!((sum - parts.latency_us).abs() < 1e-6, "{parts:?}");
                assert_eq!(parts.client_us.is_some(), away_ns.is_some(), "{parts:?}");
            }
        }
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
        let silent = |away_ns: Option<u64>| {
            let seen = all.iter().map(|one| Seen { timing: "", away_ns, ..one.clone() });
            of_class("read", seen.collect())
        };
        assert_eq!(silent(None), []);
        let middle = &silent(Some(2_000))[0];
        assert_eq!((middle.client_us, middle.unseen_us(), middle.stages.len()), (Some(2.0), 37.0, 0));
    }

    #[test]
    fn waiting_keeps_no_loop_busy() {
        assert_eq!(busy_ns("recv;dur=0.001, sign;dur=0.02, queue;dur=3, journal;dur=5, total;dur=9"), 20_000);
    }
}
