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
    pub(crate) offered: f64,
    pub(crate) achieved: f64,
    pub(crate) unanswered: u64,
}

/// The rate offered in the counted time, and the rate answered until the last of its answers.
pub(crate) fn rates(plan: &Plan, schedule: &Schedule, times: &Times) -> Rates {
    let counted = &times.answered_ns[schedule.warm_up..];
    let answered: Vec<u64> = counted.iter().copied().filter(|&at| at != NEVER).collect();
    let last = answered.iter().copied().max().unwrap_or(0);
    let begin = nanos(plan.warm_up);
    // The last request is due one interval before the end, so an answer within that interval is no
    // loss.
    let took_s = stats::as_micros(last.saturating_sub(begin)) / 1e6;
    let took_s = took_s.max(plan.time.as_secs_f64());
    #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
    let count = |requests: usize| requests as f64;
    Rates {
        offered: count(counted.len()) / plan.time.as_secs_f64(),
        achieved: count(answered.len()) / took_s,
        unanswered: (counted.len() - answered.len()) as u64,
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

/// How many trading loops the counted requests kept busy with the stages in which a loop works.
pub(crate) fn loops_needed(counted: std::ops::Range<usize>, times: &Times, time: Duration) -> f64 {
    let busy_ns: u64 = counted.filter_map(|index| times.timing(index)).map(parts::busy_ns).sum();
    stats::as_micros(busy_ns) / 1e6 / time.as_secs_f64()
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
}
