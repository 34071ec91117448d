//! Who took a CPU: one answer for all of a report, in the words of `outcry check`.
//!
//! Of the busiest loop's CPU the loop itself noticed what was taken while the load was on, if it spun; of any other,
//! and of one that slept, it is what a thread that only spins lost before and after.

use outcry::topology::checks::Gaps;

use super::room;
use crate::jitter::Jitter;
use crate::summary::Summary;

/// From this part of a CPU on what takes it is met by those in the middle too, and again and again by the slow ones.
const HARDLY_THERE_MILLIONTHS: u64 = 250_000;

/// What was taken of a CPU, with who had it; none if nobody looked at it.
pub(super) fn of_cpu(summary: &Summary, cpu: usize) -> Option<Gaps> {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    let around = worst(rows.filter(|row| row.cpu == cpu))?;
    let meanwhile = room::away(summary).filter(|_| of_loop(summary) == Some(cpu));
    Some(meanwhile.map_or_else(|| around.gaps(), |away| away.gaps(around, host_percent(summary))))
}

/// When that was.
pub(super) fn when(summary: &Summary, cpu: usize) -> &'static str {
    let is_meanwhile = of_loop(summary) == Some(cpu)
        && room::away(summary).is_some_and(|away| away.threads_percent.is_some());
    if is_meanwhile { "while the load was on" } else { "before and after" }
}

/// The same of the busiest loop's CPU or, if it has none of its own, of the one that lost most.
pub(super) fn of(summary: &Summary) -> Option<Gaps> {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    of_cpu(summary, of_loop(summary).or_else(|| Some(worst(rows)?.cpu))?)
}

/// That it was taken, and by whom, as the end of a sentence.
pub(super) fn by(summary: &Summary) -> String {
    of(summary).map_or_else(|| "its CPU was taken".to_owned(), |gaps| by_gaps(&gaps))
}

/// The same of a CPU's gaps.
pub(super) fn by_gaps(gaps: &Gaps) -> String {
    format!("CPU {} was taken: {}", gaps.cpu, gaps.who())
}

/// For how long such requests wait at least until a CPU that they need is back, the loop's or the client's, and who had
/// it; with no end where that CPU was hardly there. Those in the middle else meet no gap.
pub(super) fn met(summary: &Summary, of: &str) -> Option<(f64, Gaps)> {
    let cpus = || of_loop(summary).into_iter().chain([summary.client_cpu]);
    let hardly_there = |gaps: &Gaps| HARDLY_THERE_MILLIONTHS <= gaps.lost_millionths;
    let gaps = cpus().filter_map(|cpu| of_cpu(summary, cpu)).max_by_key(|gaps| gaps.lost_millionths);
    if let Some(gaps) = gaps.filter(hardly_there) {
        return Some((f64::INFINITY, gaps));
    }
    let around: fn(&Jitter) -> Option<f64> = match of {
        "p99" => |row| row.wait_p99_us,
        "p99.9" => |row| row.wait_p999_us,
        _ => return None,
    };
    let wait_us = |cpu: usize| {
        if let Some(away) = room::away(summary).filter(|_| of_loop(summary) == Some(cpu)) {
            return Some(if of == "p99" { away.wait_p99_us } else { away.wait_p999_us });
        }
        let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
        rows.filter(|row| row.cpu == cpu).filter_map(around).reduce(f64::max)
    };
    let met = cpus().filter_map(|cpu| Some((wait_us(cpu)?, of_cpu(summary, cpu)?)));
    met.max_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// What gives it back.
pub(super) fn remedy(summary: &Summary) -> String {
    of(summary).map_or_else(String::new, |gaps| gaps.remedy())
}

fn worst<'a>(rows: impl Iterator<Item = &'a Jitter>) -> Option<&'a Jitter> {
    rows.max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent))
}

/// The busiest loop's CPU.
fn of_loop(summary: &Summary) -> Option<usize> {
    let busiest = room::busiest(summary)?;
    summary.threads.iter().find(|thread| thread.name == busiest.name)?.cpu
}

/// What the host is charged with while the load was on, in hundredths of one CPU: it is told of all together.
fn host_percent(summary: &Summary) -> f64 {
    let cpus = summary.environment.cpus.len().max(1);
    100.0 * summary.share.stolen / f64::from(u32::try_from(cpus).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::away::Away;
    use crate::summary::example;

    fn away(threads_percent: f64) -> Away {
        Away {
            lost_percent: 3.0,
            max_us: 9_000.0,
            wait_p999_us: 3_000.0,
            wait_p99_us: 0.0,
            threads_percent: Some(threads_percent),
        }
    }

    #[test]
    fn what_a_loop_noticed_counts_before_what_was_lost_around_the_run() {
        let mut summary = example();
        // Around the run a program had the loop's CPU, and the host the other.
        let of = |cpu, threads, host| Jitter {
            lost_percent: 5.0,
            threads_percent: Some(threads),
            host_percent: Some(host),
            largest: Some("rustc (4711)".to_owned()),
            ..Jitter { cpu, ..example().jitter_before[0].clone() }
        };
        summary.jitter_before = vec![of(0, 4.9, 0.0), of(1, 0.1, 4.9)];
        let told = |summary: &Summary| [0, 1].map(|cpu| of_cpu(summary, cpu).expect("it was watched").who());
        assert_eq!(told(&summary), ["rustc (4711)", "the host"]);
        assert_eq!(by(&summary), "CPU 0 was taken: rustc (4711)");
        assert_eq!(of_cpu(&summary, 7), None);
        for (threads, stolen, expected) in [
            (2.9, 0.0, "rustc (4711)"),
            (0.1, 0.0, "the host (nobody is charged)"),
            // Of two CPUs: 3 % of each.
            (0.1, 0.06, "the host"),
        ] {
            summary.loops[0].away = Some(away(threads));
            summary.share.stolen = stolen;
            summary.environment.cpus = vec![0, 1];
            assert_eq!(told(&summary), [expected, "the host"], "{threads} {stolen}");
            assert_eq!(by(&summary), format!("CPU 0 was taken: {expected}"));
        }
    }

    #[test]
    fn those_in_the_middle_meet_a_cpu_that_is_hardly_there() {
        for (lost_percent, is_met) in [(24.9, false), (25.0, true)] {
            let mut summary = example();
            summary.jitter_after[1].lost_percent = lost_percent;
            assert_eq!(met(&summary, "p50").map(|(_, gaps)| gaps.cpu), is_met.then_some(1));
        }
    }
}
