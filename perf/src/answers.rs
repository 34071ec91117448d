//! What the answers of a run say: their times by class, by stage and by moment, and how many came.

use std::time::Duration;

use crate::generator::{NEVER, Times};
use crate::line::{self, Line};
use crate::parts::{self, Seen};
use crate::run::Loaded;
use crate::scenario::{Class, Plan, Waits};
use crate::schedule::{Schedule, nanos};
use crate::stats::{self, Nanos, Quantiles, histogram, record};
use crate::summary::{ClassTimes, Curve, Moment, Stage};
use crate::timing;

/// The width of a point of the time line.
const MOMENT: Duration = Duration::from_millis(100);

/// Points of a percentile curve each time the part above it halves.
const CURVE_POINTS: u32 = 6;

/// The times of every class that has requests.
#[derive(Default)]
pub(crate) struct Classes {
    pub(crate) times: Vec<ClassTimes>,
    pub(crate) curves: Vec<Curve>,
    pub(crate) histograms: Vec<(Class, Nanos)>,
    pub(crate) parts: Vec<parts::Parts>,
}

impl Classes {
    /// `line` is of the one loop that had all connections, if that is known.
    pub(crate) fn of(schedule: &Schedule, loaded: &Loaded, line: Option<&Line>) -> Self {
        let mut all = Self::default();
        for class in Class::ALL {
            let counted = schedule.warm_up..schedule.due_ns.len();
            let of_class = counted.filter(|&index| loaded.requests[index].class == class);
            all.add(class, &of_class.collect::<Vec<_>>(), schedule, loaded, line);
        }
        all
    }

    /// Adds a class with these requests.
    fn add(
        &mut self,
        class: Class,
        requests: &[usize],
        schedule: &Schedule,
        loaded: &Loaded,
        line: Option<&Line>,
    ) {
        let times = &loaded.times;
        let (mut due, mut sent, mut seen) = (histogram(), histogram(), Vec::new());
        for &index in requests {
            let Some(latency_ns) = answered_after(times, index, schedule.due_ns[index]) else { continue };
            let service_ns = answered_after(times, index, times.sent_ns[index]).unwrap_or(latency_ns);
            record(&mut due, latency_ns);
            record(&mut sent, service_ns);
            let late_ns = latency_ns.saturating_sub(service_ns);
            let away_ns = (loaded.client_waits != Waits::Sleeps).then(|| times.away_ns[index]);
            let timing = times.timing(index).unwrap_or_default();
            let lay_ns = [times.sent_ns[index], line::seen_ns(times, index)];
            seen.push(Seen { latency_ns, late_ns, away_ns, lay_ns, timing });
        }
        if due.is_empty() {
            return;
        }
        let name = class.name().to_owned();
        let (latency, service) = (Quantiles::of(&due), Quantiles::of(&sent));
        let stages = stages(requests.iter().copied(), times, None);
        self.parts.extend(parts::of_class(&name, seen, line));
        self.curves.push(Curve { class: name.clone(), points: curve(&due) });
        self.times.push(ClassTimes { class: name, latency, service, stages });
        self.histograms.push((class, due));
    }

    /// All classes together.
    pub(crate) fn all(&self) -> Quantiles {
        let mut all = histogram();
        for (_, times) in &self.histograms {
            all.add(times).expect("the histogram grows");
        }
        Quantiles::of(&all)
    }
}

fn answered_after(times: &Times, index: usize, from_ns: u64) -> Option<u64> {
    let answered = times.answered_ns[index];
    (answered != NEVER).then(|| answered.saturating_sub(from_ns))
}

pub(crate) struct Rates {
    /// Measured requests a second by the schedule.
    pub(crate) offered: f64,
    /// Answers a second that came in the measured time, those to the warm-up's requests included.
    pub(crate) achieved: f64,
    /// Measured requests without an answer.
    pub(crate) unanswered: u64,
}

/// The measured time, in nanoseconds from the start of the run.
fn measured_ns(plan: &Plan) -> std::ops::Range<u64> {
    nanos(plan.warm_up)..nanos(plan.warm_up + plan.time)
}

/// The requests that were answered in the measured time. Where the server is behind, the first of them are the
/// warm-up's: it works on those before it comes to the measured ones.
fn answered_meanwhile(plan: &Plan, times: &Times) -> impl Iterator<Item = usize> {
    let measured = measured_ns(plan);
    times.answered_ns.iter().enumerate().filter(move |(_, at)| measured.contains(at)).map(|(index, _)| index)
}

/// The rate offered in the measured time, and the rate answered in it.
pub(crate) fn rates(plan: &Plan, schedule: &Schedule, times: &Times) -> Rates {
    let counted = &times.answered_ns[schedule.warm_up..];
    #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
    let per_s = |requests: usize| requests as f64 / plan.time.as_secs_f64();
    Rates {
        offered: per_s(counted.len()),
        achieved: per_s(answered_meanwhile(plan, times).count()),
        unanswered: counted.iter().filter(|&&at| at == NEVER).count() as u64,
    }
}

/// Times by tenths of a second.
pub(crate) fn time_line(plan: &Plan, schedule: &Schedule, times: &Times) -> Vec<Moment> {
    let begin = nanos(plan.warm_up);
    let width = nanos(MOMENT);
    let mut moments = Vec::new();
    let mut index = schedule.warm_up;
    for number in 0..nanos(plan.time).div_ceil(width) {
        let end = begin + (number + 1) * width;
        let mut all = histogram();
        while index < schedule.due_ns.len() && schedule.due_ns[index] < end {
            if let Some(latency) = answered_after(times, index, schedule.due_ns[index]) {
                record(&mut all, latency);
            }
            index += 1;
        }
        if !all.is_empty() {
            let Quantiles { count, p50_us, p99_us, max_us, .. } = Quantiles::of(&all);
            moments.push(Moment {
                at_s: stats::as_micros(number * width) / 1e6,
                count,
                p50_us,
                p99_us,
                max_us,
            });
        }
    }
    moments
}

/// The stages that the server reports, in its order. The entry named `sum` is everything about a
/// request except the signature.
pub(crate) fn stages(counted: impl Iterator<Item = usize>, times: &Times, sum: Option<&str>) -> Vec<Stage> {
    let mut found: Vec<(String, Nanos)> = Vec::new();
    let mut note = |name: &str, nanos: u64| {
        let place = found.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            found.push((name.to_owned(), histogram()));
            found.len() - 1
        });
        record(&mut found[place].1, nanos);
    };
    for value in counted.filter_map(|index| times.timing(index)) {
        let mut together = 0;
        for (name, nanos) in timing::parse(value) {
            note(name, nanos);
            together += if matches!(name, "sign" | "total") { 0 } else { nanos };
        }
        if let Some(sum) = sum {
            note(sum, together);
        }
    }
    found.into_iter().map(|(stage, times)| Stage { stage, time: Quantiles::of(&times) }).collect()
}

/// How many trading loops the requests that were answered in the measured time kept busy with the stages in which a loop
/// works.
pub(crate) fn loops_needed(plan: &Plan, times: &Times) -> f64 {
    let told = answered_meanwhile(plan, times).filter_map(|index| times.timing(index));
    stats::as_micros(told.map(parts::busy_ns).sum()) / 1e6 / plan.time.as_secs_f64()
}

/// Points of the percentile curve: quantile and microseconds.
fn curve(histogram: &Nanos) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for step in histogram.iter_quantiles(CURVE_POINTS) {
        let quantile = step.quantile_iterated_to();
        if quantile < 1.0 {
            points.push((quantile, stats::as_micros(step.value_iterated_to())));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_climbs_and_ends_before_all() {
        let mut times = histogram();
        (1..=10_000).for_each(|micros| record(&mut times, micros * 1_000));
        let points = curve(&times);
        assert!(points.is_sorted_by(|one, next| one.0 <= next.0 && one.1 <= next.1), "{points:?}");
        assert!(points.last().unwrap().0 < 1.0 && 0.999 < points.last().unwrap().0);
    }

    #[test]
    fn what_was_answered_is_counted_while_it_was_measured_whosever_the_backlog_is() {
        let rate_1000 = |warm_up_s: f64, time_s: f64| {
            let load = format!("rate = 1000\nwarm_up_s = {warm_up_s:?}\ntime_s = {time_s:?}");
            Plan::parse("t", &format!("purpose = \"x\"\n[mix]\nplace = 1\n[load]\n{load}")).unwrap()
        };
        // A server that takes so many milliseconds for each request, and answers nothing after an end.
        for (warm_up_s, time_s, each_ms, end_ms, achieved, loops, unanswered) in [
            (1.0, 1.0, 0.4, f64::MAX, 1_000.0, 0.4, 0),
            (1.0, 5.0, 2.0, f64::MAX, 500.0, 1.0, 0),
            // Nothing but the warm-up was answered in the measured time.
            (1.0, 1.0, 5.0, f64::MAX, 200.0, 1.0, 0),
            (0.0, 1.0, 5.0, f64::MAX, 199.0, 0.995, 0),
            (1.0, 1.0, 5.0, 1_500.0, 100.0, 0.5, 1_000),
            (1.0, 1.0, 5.0, 900.0, 0.0, 0.0, 1_000),
        ] {
            let plan = rate_1000(warm_up_s, time_s);
            let schedule = Schedule::of(&plan);
            let due_ms = schedule.due_ns.iter().map(|&due| stats::as_micros(due) / 1e3);
            let answered_ms: Vec<f64> = due_ms
                .scan(0.0_f64, |free_ms, due_ms: f64| {
                    *free_ms = free_ms.max(due_ms) + each_ms;
                    Some(*free_ms)
                })
                .collect();
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "seconds in nanoseconds"
            )]
            let at = |ms: f64| if ms <= end_ms { (ms * 1e6).round() as u64 } else { NEVER };
            let answered_ns: Vec<u64> = answered_ms.into_iter().map(at).collect();
            let timings = vec![format!("sign;dur={each_ms}"); answered_ns.len()];
            let timings: Vec<&str> = timings.iter().map(String::as_str).collect();
            let times = Times::told(&schedule.due_ns, &answered_ns, &timings, &vec![0; answered_ns.len()]);
            let rates = rates(&plan, &schedule, &times);
            let of = format!("{warm_up_s} s, {time_s} s, {each_ms} ms");
            let near = |one: f64, other: f64| (one - other).abs() <= 0.011 * other;
            assert!(
                near(rates.offered, 1_000.0) && near(rates.achieved, achieved),
                "{of}: {}",
                rates.achieved
            );
            assert!(near(loops_needed(&plan, &times), loops), "{of}: {}", loops_needed(&plan, &times));
            assert_eq!(rates.unanswered, unanswered, "{of}");
        }
    }
}
