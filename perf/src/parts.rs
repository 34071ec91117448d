//! Where the time of a class's middle requests went, and that of its slowest.
//!
//! A quantile of a stage is not a part of the same quantile of the whole: the slowest `sign` and the slowest answer are
//! seldom the same request. So the requests around a quantile are picked, and the time of each stage is averaged over
//! *them*. What is left between sending and answer is outside the server's stages. The client knows its own part of
//! that, because it knows when it looked at its sockets. The remainder nobody sees: the kernel's sockets, the network,
//! the scheduler, other processes. So a request's time is the sum of its lateness, its stages, the client's part and
//! that remainder. Where it is known what the loop was working on meanwhile ([`Line`]), that part of the remainder is
//! named.

use serde::{Deserialize, Serialize};

use crate::line::Line;
use crate::scenario::Class;
use crate::stats::as_micros;
use crate::timing;

/// Stages in which a trading loop works for this request alone. In the others a request waits, or the time is that of a
/// whole turn.
pub(crate) const BUSY: [&str; 4] = ["parse", "auth", "sign", "match"];

/// The stage that a request is in first.
const FIRST: &str = "recv";

/// A request that took longer than this multiple of p99 was slow for other reasons, and would dominate an average.
const AROUND_TIMES_MAX: u64 = 2;

/// Classes with fewer requests than this have no middle and no tail.
const REQUESTS_MIN: usize = 10;

/// One request that was answered, as the client and the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    /// From the moment at which it was due to its answer.
    pub(crate) latency_ns: u64,
    /// The part of it before the request was sent.
    pub(crate) late_ns: u64,
    /// The longest that the client can have been away between sending and answer; none if it sleeps.
    pub(crate) away_ns: Option<u64>,
    /// When it was sent and when the server first looked at it, in nanoseconds since the start.
    pub(crate) lay_ns: [u64; 2],
    /// What the server said, or an empty text.
    pub(crate) timing: &'a str,
}

impl Seen<'_> {
    /// The server's stages of this request. If the request follows others on its connection, the server counts the
    /// first stage from when their bytes came; what was before this request was sent is left out.
    fn stages(&self) -> impl Iterator<Item = (&str, u64)> {
        let told = || timing::parse(self.timing).filter(|(name, _)| *name != "total");
        let sum: u64 = told().map(|(_, ns)| ns).sum();
        let before_ns = sum.saturating_sub(self.latency_ns - self.late_ns);
        told().map(move |(name, ns)| (name, if name == FIRST { ns.saturating_sub(before_ns) } else { ns }))
    }

    /// What its loop worked on while its bytes waited.
    fn met<'a>(&self, line: Option<&'a Line>) -> impl Iterator<Item = (Class, u64)> + use<'a> {
        let [from_ns, to_ns] = self.lay_ns;
        line.into_iter().flat_map(move |line| line.within(from_ns, to_ns))
    }
}

/// Where the time of some requests went, on average.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parts {
    /// Their class.
    pub(crate) class: String,
    /// Which of the class: `p50`, between p40 and p60; `p99`, between p98.5 and p99.5 and of at most twice p99;
    /// `p99.9`, the slowest thousandth.
    pub(crate) of: String,
    /// How many they are.
    pub(crate) requests: u64,
    /// From the moment at which each was due.
    pub(crate) latency_us: f64,
    /// The part of it before they were sent.
    pub(crate) late_us: f64,
    /// The part of it between sending and answer that is in none of the server's stages.
    pub(crate) outside_us: f64,
    /// The most of `outside_us` for which the client was writing, at other answers, or without its CPU; none if it
    /// slept, or if that is not known.
    #[serde(default)]
    pub(crate) client_us: Option<f64>,
    /// The most of `outside_us` for which the loop worked on requests before them; none if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line_us: Option<f64>,
    /// The class of those requests, for most of that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) behind: Option<String>,
    /// The server's stages, `total` left out.
    pub(crate) stages: Vec<(String, f64)>,
}

impl Parts {
    /// A part of the latency, in percent.
    pub(crate) fn percent(&self, part_us: f64) -> f64 {
        if self.latency_us > 0.0 { 100.0 * part_us / self.latency_us } else { 0.0 }
    }

    /// The part of `outside_us` that is neither the client's nor spent on requests before them.
    pub(crate) fn unseen_us(&self) -> f64 {
        (self.outside_us - self.client_us.unwrap_or(0.0) - self.line_us.unwrap_or(0.0)).max(0.0)
    }

    /// How much longer slow requests took than those around the median, part by part.
    pub(crate) fn beyond(&self, middle: &Self) -> Self {
        let more =
            |slow: Option<f64>, quick: Option<f64>| slow.map(|us| (us - quick.unwrap_or(0.0)).max(0.0));
        let client_us = more(self.client_us, middle.client_us);
        let line_us = more(self.line_us, middle.line_us);
        let unseen_us = (self.unseen_us() - middle.unseen_us()).max(0.0);
        let of_stage = |(stage, us): &(String, f64)| {
            (stage.clone(), (us - middle.stage_us(stage).unwrap_or(0.0)).max(0.0))
        };
        Self {
            latency_us: self.latency_us - middle.latency_us,
            late_us: (self.late_us - middle.late_us).max(0.0),
            outside_us: client_us.unwrap_or(0.0) + line_us.unwrap_or(0.0) + unseen_us,
            client_us,
            line_us,
            stages: self.stages.iter().map(of_stage).collect(),
            ..self.clone()
        }
    }

    /// The time in a stage, if the server reported it.
    pub(crate) fn stage_us(&self, stage: &str) -> Option<f64> {
        self.stages.iter().find(|(name, _)| name == stage).map(|(_, us)| *us)
    }

    fn of(class: &str, of: &str, seen: &[Seen<'_>], line: Option<&Line>) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
        let count = seen.len() as f64;
        let mean = |ns: &dyn Fn(&Seen<'_>) -> u64| as_micros(seen.iter().map(ns).sum::<u64>()) / count;
        let outside = |one: &Seen<'_>| {
            (one.latency_ns - one.late_ns).saturating_sub(one.stages().map(|(_, ns)| ns).sum())
        };
        let away = |one: &Seen<'_>| one.away_ns.unwrap_or(0).min(outside(one));
        let in_line = |one: &Seen<'_>| {
            let met_ns: u64 = one.met(line).map(|(_, ns)| ns).sum();
            met_ns.min(outside(one) - away(one))
        };
        let at_ns = |class: &Class| -> u64 {
            let met = seen.iter().flat_map(|one| one.met(line));
            met.filter(|(met, _)| met == class).map(|(_, ns)| ns).sum()
        };
        let behind = Class::ALL.into_iter().max_by_key(at_ns).filter(|class| 0 < at_ns(class));
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
            line_us: line.map(|_| mean(&in_line)),
            behind: behind.map(|class| class.name().to_owned()),
            stages,
        }
    }
}

/// The middle and the tail of a class; none if it has few requests. A class without stages, such as reads, has only the
/// client's part and the remainder, if the client's part is known. `line` is that of the one loop that had all
/// connections.
pub(crate) fn of_class(class: &str, mut seen: Vec<Seen<'_>>, line: Option<&Line>) -> Vec<Parts> {
    let is_silent = seen.iter().all(|one| one.timing.is_empty());
    seen.retain(|one| if is_silent { one.away_ns.is_some() } else { !one.timing.is_empty() });
    let count = seen.len();
    if count < REQUESTS_MIN {
        return Vec::new();
    }
    seen.sort_unstable_by_key(|one| one.latency_ns);
    let middle = &seen[count * 4 / 10..count * 6 / 10];
    let around = &seen[count * 985 / 1_000..count * 995 / 1_000];
    let most_ns = AROUND_TIMES_MAX * seen[count * 99 / 100].latency_ns;
    let slow = &around[..around.partition_point(|one| one.latency_ns <= most_ns)];
    let tail = &seen[count - count.div_ceil(1_000)..];
    let mut parts = vec![Parts::of(class, "p50", middle, line)];
    if REQUESTS_MIN <= around.len() {
        parts.push(Parts::of(class, "p99", slow, line));
    }
    parts.push(Parts::of(class, "p99.9", tail, line));
    parts
}

/// Nanoseconds of loop time that one answer took.
pub(crate) fn busy_ns(timing: &str) -> u64 {
    timing::parse(timing).filter(|(name, _)| BUSY.contains(name)).map(|(_, ns)| ns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Span;

    /// 999 requests of 40 µs, 26 of them signature, and one of 4 ms, 3.9 of them the disk.
    fn thousand() -> Vec<Seen<'static>> {
        let quick = Seen {
            latency_ns: 40_000,
            late_ns: 1_000,
            away_ns: Some(2_000),
            lay_ns: [0, 0],
            timing: "sign;dur=0.026, journal;dur=0.001, total;dur=0.03",
        };
        let slow = Seen {
            latency_ns: 4_000_000,
            late_ns: 0,
            // More than is outside: the client was also away while the disk wrote.
            away_ns: Some(3_000_000),
            lay_ns: [0, 0],
            timing: "sign;dur=0.026, journal;dur=3.9, total;dur=3.95",
        };
        std::iter::repeat_n(quick, 999).chain([slow]).collect()
    }

    #[test]
    fn the_middle_and_the_tail_spend_their_time_elsewhere() {
        let [middle, slow, tail] = of_class("place", thousand(), None).try_into().unwrap();
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
            // Its bytes came after others', which had been waiting since before it was sent.
            (Some(2_000), "recv;dur=0.05, sign;dur=0.026, queue;dur=0.002, total;dur=0.078"),
        ] {
            let one = Seen { latency_ns: 40_000, late_ns: 1_000, away_ns, lay_ns: [0, 0], timing };
            for parts in of_class("place", vec![one; 2_000], None) {
                let stages: f64 = parts.stages.iter().map(|(_, us)| us).sum();
                let sum = parts.late_us + stages + parts.client_us.unwrap_or(0.0) + parts.unseen_us();
                assert!((sum - parts.latency_us).abs() < 1e-6, "{parts:?}");
                assert_eq!(parts.client_us.is_some(), away_ns.is_some(), "{parts:?}");
            }
        }
    }

    #[test]
    fn what_a_loop_was_at_others_for_is_told_and_what_is_slow_for_other_reasons_is_left_out() {
        // Some waited 40 µs for a batch, some until a stop of 400 µs ended.
        let one = |latency_ns, lay_ns| Seen {
            latency_ns,
            late_ns: 0,
            away_ns: Some(5_000),
            lay_ns,
            timing: "sign;dur=0.026, total;dur=0.03",
        };
        let quick = one(40_000, [900_000, 900_000]);
        let behind = one(80_000, [440_000, 480_000]);
        let stopped = one(440_000, [900_000, 900_000]);
        let all = |[quicks, behinds, stops]: [usize; 3]| {
            let quicks = std::iter::repeat_n(quick.clone(), quicks);
            let behinds = std::iter::repeat_n(behind.clone(), behinds);
            quicks.chain(behinds).chain(std::iter::repeat_n(stopped.clone(), stops)).collect()
        };
        let batch = Span { from_ns: 10_000, to_ns: 500_000, class: Class::Batch };
        let line = Line::in_order(vec![batch]);
        let told = |counts| {
            let parts = of_class("place", all(counts), Some(&line));
            let slow = parts[1].beyond(&parts[0]);
            let sum = slow.late_us
                + slow.stages.iter().map(|(_, us)| us).sum::<f64>()
                + slow.client_us.unwrap()
                + slow.line_us.unwrap()
                + slow.unseen_us();
            assert!((sum - slow.latency_us).abs() < 1e-6, "{slow:?}");
            let text = format!(
                "{:.0}: {:.0} in line, {:.0} unseen",
                slow.latency_us,
                slow.line_us.unwrap(),
                slow.unseen_us()
            );
            (parts[0].behind.clone(), parts[0].line_us, slow.behind.clone(), text)
        };
        let batch = Some("batch".to_owned());
        let expected = (None, Some(0.0), batch.clone(), "40: 40 in line, 0 unseen".to_owned());
        assert_eq!(told([980, 20, 0]), expected);
        assert_eq!(told([972, 20, 8]), expected);
        assert_eq!(told([1_000, 0, 0]), (None, Some(0.0), None, "0: 0 in line, 0 unseen".to_owned()));
        assert_eq!(of_class("place", all([980, 20, 0]), None)[1].line_us, None);
    }

    #[test]
    fn few_requests_and_silent_servers_have_no_parts() {
        let all = thousand();
        assert_eq!(of_class("place", all[..9].to_vec(), None), []);
        assert_eq!(of_class("place", all[..10].to_vec(), None).len(), 2);
        assert_eq!(
            (of_class("place", all[..899].to_vec(), None).len(), of_class("place", all.clone(), None).len()),
            (2, 3)
        );
        let silent = |away_ns: Option<u64>| {
            let seen = all.iter().map(|one| Seen { timing: "", away_ns, ..one.clone() });
            of_class("read", seen.collect(), None)
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
