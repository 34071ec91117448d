//! Who took a CPU: one answer for the whole of a report, in the words of `outcry check`.
//!
//! If the busiest loop spun, it noticed itself what was taken of its CPU while the load was on. For any other CPU, and
//! for a loop that slept, the answer is what a thread that only spins lost before and after. A name found at one time
//! is used for another only if its amount fits: a process that had most of 0.5 % afterwards did not have 27 % of the
//! run. Nor is a process blamed for a CPU on which it may not run, or for one that lost far less than the process had
//! in all.

use outcry::topology::checks::{Gaps, Named, Taker};

use super::room;
use crate::away::Away;
use crate::jitter::Jitter;
use crate::summary::Summary;
use crate::verdict::LOST_PERCENT_MAX;
use crate::watch::Other;

/// If this part of a CPU is lost, the loss affects the middle requests too, and the slow ones several times.
const HARDLY_THERE_MILLIONTHS: u64 = 250_000;

/// A process took a CPU if it had at least this part of what was lost.
const MOST: f64 = 0.5;

/// A process with less CPU time than this during a run may have had none: ticks of the kernel's clock are coarser.
const TELLING_S: f64 = 0.05;

/// What was taken of a CPU, and who had it, as far as anybody knows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) gaps: Gaps,
    /// Who had most during the run, for when nobody had enough to be named.
    perhaps: Option<Named>,
    /// What ends others' writes to the disk, if they were felt before the run.
    stop_writers: Option<String>,
}

impl Taken {
    /// Who had most of it, in a few words.
    pub(super) fn who(&self) -> String {
        if !self.is_nobody_known() {
            return self.gaps.who();
        }
        let which = self
            .perhaps
            .as_ref()
            .map_or_else(|| "not known which".to_owned(), |named| format!("perhaps {}", named.who));
        format!("other threads here, which had {:.2} % of it, {which}", self.had_percent())
    }

    /// What gives the CPU back, in a few words.
    pub(super) fn remedy(&self) -> String {
        if self.is_nobody_known() {
            let ask = "`outcry check --jitter` while it lasts says who";
            return self.perhaps.as_ref().map_or_else(
                || ask.to_owned(),
                |named| format!("if it was {}: {}; {ask}", named.who, named.remedy()),
            );
        }
        self.gaps.remedy_beside(self.stop_writers.as_deref())
    }

    /// Percent of all the CPU's time that others had. Where other threads took it, this is the loop's run delay; the
    /// part lost of the time without work is larger, because what arrives meanwhile is worked on in one go.
    #[allow(clippy::cast_precision_loss, reason = "a share is at most a million")]
    pub(super) fn had_percent(&self) -> f64 {
        let threads = self.gaps.threads_millionths.filter(|_| self.gaps.taker() == Taker::Threads);
        threads.unwrap_or(self.gaps.lost_millionths) as f64 / 1e4
    }

    /// See [`Gaps::in_all`].
    pub(super) fn in_all(self) -> Self {
        Self { gaps: self.gaps.in_all(), ..self }
    }

    /// The end of a sentence: that the CPU was taken, and by whom.
    pub(super) fn by(&self) -> String {
        format!("CPU {} was taken: {}", self.gaps.cpu, self.who())
    }

    fn is_nobody_known(&self) -> bool {
        self.gaps.taker() == Taker::Threads && self.gaps.largest.is_none()
    }
}

/// What was taken of a CPU, and by whom; none if that CPU was not watched.
pub(super) fn of_cpu(summary: &Summary, cpu: usize) -> Option<Taken> {
    let around = worst(around(summary, cpu))?;
    let meanwhile = room::away(summary).filter(|_| of_loop(summary) == Some(cpu));
    let of_client = clients(summary, cpu);
    let mut gaps = match (meanwhile, of_client) {
        (Some(away), _) => away.gaps(around, host_percent(summary)),
        (None, Some(percent)) => beside_client(around, percent).gaps(),
        (None, None) => around.gaps(),
    };
    let threads_percent = meanwhile.map_or(of_client, |away: &Away| away.threads_percent);
    if let Some(threads_percent) = threads_percent {
        gaps.largest = had(summary, cpu, threads_percent);
    }
    let seen_there = threads_percent.and_then(|_| largest(summary, cpu));
    // A process that has ended cannot be stopped, so a guess about it helps nobody.
    let perhaps = seen_there.filter(|other| other.may_have.is_some()).map(Other::named);
    Some(Taken { gaps, perhaps, stop_writers: stop_writers(summary) })
}

fn stop_writers(summary: &Summary) -> Option<String> {
    summary.durable()?.stop_writers.clone()
}

/// How much of a CPU others had while the load was on, if it is the client's.
fn clients(summary: &Summary, cpu: usize) -> Option<f64> {
    summary.client_lost_percent.filter(|_| summary.client_cpu == cpu)
}

/// What a thread that only spins lost around the run, with the part of other threads replaced by what they had during
/// it.
fn beside_client(around: &Jitter, threads_percent: f64) -> Jitter {
    let meanwhile =
        |all: f64, threads: Option<f64>| (all - threads.unwrap_or(0.0)).max(0.0) + threads_percent;
    Jitter {
        lost_percent: meanwhile(around.lost_percent, around.threads_percent),
        long_percent: around.long_percent.map(|long| meanwhile(long, around.threads_long_percent)),
        threads_percent: Some(threads_percent),
        threads_long_percent: Some(threads_percent),
        ..around.clone()
    }
}

/// What was taken of a CPU before and after the run, whatever happened during it.
pub(super) fn of_around(summary: &Summary, cpu: usize) -> Option<Taken> {
    Some(Taken {
        gaps: worst(around(summary, cpu))?.gaps(),
        perhaps: None,
        stop_writers: stop_writers(summary),
    })
}

/// Who had the client's CPU, if they had so much of it that requests at quantile `of` were sent or read late because of
/// that.
pub(super) fn of_client(summary: &Summary, of: &str) -> Option<Taken> {
    summary.client_lost_percent.filter(|percent| met_percent(of) <= *percent)?;
    of_cpu(summary, summary.client_cpu)
}

/// If this part of a CPU's time is taken, in percent, requests at quantile `of` notice it.
fn met_percent(of: &str) -> f64 {
    match of {
        "p50" => 25.0,
        "p99" => 1.0,
        _ => 0.1,
    }
}

/// The CPU that lost most while the load was on, if it lost more than a VALID run may.
pub(super) fn most_taken(summary: &Summary) -> Option<usize> {
    let taken = summary.meanwhile().into_iter().filter(|told| LOST_PERCENT_MAX < told.lost_percent);
    taken.max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent)).map(|told| told.cpu)
}

/// What others had of the busiest loop's CPU, if it was more than a VALID run may lose. A loop that is stopped while it
/// works is busy by the clock, so its busy time includes the stop.
pub(super) fn beside(summary: &Summary) -> Option<Taken> {
    let taken = of_cpu(summary, of_loop(summary)?)?.in_all();
    Some(taken).filter(|taken| LOST_PERCENT_MAX < taken.had_percent())
}

/// The process that had at least half of what others had of all CPUs during the run.
pub(super) fn of_all(summary: &Summary) -> Option<&Other> {
    summary.largest_other.as_ref().filter(|other| MOST * summary.share.others <= other.cpus)
}

fn around(summary: &Summary, cpu: usize) -> impl Iterator<Item = &Jitter> {
    summary.jitter_before.iter().chain(&summary.jitter_after).filter(move |row| row.cpu == cpu)
}

/// Who had at least half of `threads_percent` of a CPU while the load was on: the largest process during the run, of
/// those that may have had it there. If none was recorded during the run, the largest around it, if it had as much
/// then.
fn had(summary: &Summary, cpu: usize, threads_percent: f64) -> Option<Named> {
    let enough = MOST * threads_percent;
    let time_s = summary.time_s + summary.warm_up_s;
    let fits = |other: &&Other| TELLING_S <= other.cpus * time_s && enough <= 100.0 * other.cpus;
    let meanwhile = meanwhile(summary, cpu, threads_percent).filter(fits);
    let is_looked_at = !summary.others_of_cpus.is_empty();
    meanwhile.map(Other::named).or_else(|| {
        if is_looked_at {
            return None;
        }
        let fits = |row: &&Jitter| row.threads_percent.is_some_and(|percent| enough <= percent);
        let row = worst(around(summary, cpu).filter(|row| row.largest.is_some()).filter(fits))?;
        row.gaps().largest
    })
}

/// The largest process during the run, if it may have had so much of this CPU. It must be able to run nowhere else, or
/// have had at least half of what all others had, and at most twice what this CPU lost: otherwise nobody knows on which
/// CPU it ran.
fn meanwhile(summary: &Summary, cpu: usize, threads_percent: f64) -> Option<&Other> {
    let is_only_here = |other: &Other| other.may_have.as_ref().is_some_and(|cpus| *cpus == [cpu]);
    let is_here = |other: &&Other| {
        is_only_here(other)
            || (100.0 * other.cpus * MOST <= threads_percent && MOST * summary.share.others <= other.cpus)
    };
    largest(summary, cpu).filter(is_here)
}

/// The largest process during the run, of those that may have run on this CPU.
fn largest(summary: &Summary, cpu: usize) -> Option<&Other> {
    let of_cpu = summary.others_of_cpus.iter().find(|(of, _)| *of == cpu).map(|(_, other)| other);
    // Old records do not have them by CPU.
    of_cpu.or(summary.largest_other.as_ref().filter(|_| summary.others_of_cpus.is_empty()))
}

/// Whether the loss was during the run or around it, in words.
pub(super) fn when(summary: &Summary, cpu: usize) -> &'static str {
    if is_meanwhile(summary, cpu) { "while the load was on" } else { "before and after" }
}

/// Whether the loss of a CPU is known for the time in which the load was on.
pub(super) fn is_meanwhile(summary: &Summary, cpu: usize) -> bool {
    of_loop(summary) == Some(cpu) && room::away(summary).is_some_and(|away| away.threads_percent.is_some())
        || most_taken(summary) == Some(cpu)
}

/// What was taken of the busiest loop's CPU, or if it has none of its own, of the CPU that lost most.
pub(super) fn of(summary: &Summary) -> Option<Taken> {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    of_cpu(summary, of_loop(summary).or_else(|| Some(worst(rows)?.cpu))?)
}

/// The end of a sentence: that this CPU was taken, and by whom.
pub(super) fn by(summary: &Summary) -> String {
    of(summary).map_or_else(|| "its CPU was taken".to_owned(), |taken| taken.by())
}

/// How long requests at quantile `of` wait until a CPU that they need is back, the loop's or the client's, and who had
/// it. The wait is infinite where that CPU was hardly there; otherwise none for requests in the middle, which meet no
/// gap.
pub(super) fn met(summary: &Summary, of: &str) -> Option<(f64, Taken)> {
    let cpus = || of_loop(summary).into_iter().chain([summary.client_cpu]);
    let hardly_there = |taken: &Taken| HARDLY_THERE_MILLIONTHS <= taken.gaps.lost_millionths;
    let taken = cpus().filter_map(|cpu| of_cpu(summary, cpu)).max_by_key(|taken| taken.gaps.lost_millionths);
    if let Some(taken) = taken.filter(hardly_there) {
        return Some((f64::INFINITY, taken));
    }
    let wait_around: fn(&Jitter) -> Option<f64> = match of {
        "p99" => |row| row.wait_p99_us,
        "p99.9" => |row| row.wait_p999_us,
        _ => return None,
    };
    // A loss around the run is not a loss during it.
    let is_quiet =
        summary.client_lost_percent.is_some_and(|percent| percent + host_percent(summary) < met_percent(of));
    let wait_us = |cpu: usize| {
        if let Some(away) = room::away(summary).filter(|_| of_loop(summary) == Some(cpu)) {
            return away.of_us(of);
        }
        around(summary, cpu).filter_map(wait_around).reduce(f64::max).filter(|_| !is_quiet)
    };
    let met = cpus().filter_map(|cpu| Some((wait_us(cpu)?, of_cpu(summary, cpu)?)));
    met.max_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// What gives that CPU back.
pub(super) fn remedy(summary: &Summary) -> String {
    of(summary).map_or_else(String::new, |taken| taken.remedy())
}

fn worst<'a>(rows: impl Iterator<Item = &'a Jitter>) -> Option<&'a Jitter> {
    rows.max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent))
}

/// The busiest loop's CPU.
fn of_loop(summary: &Summary) -> Option<usize> {
    let busiest = room::busiest(summary)?;
    summary.threads.iter().find(|thread| thread.name == busiest.name)?.cpu
}

/// What the host is charged with while the load was on, in percent of one CPU; it is only reported for all CPUs
/// together.
fn host_percent(summary: &Summary) -> f64 {
    let cpus = summary.share_cpus.max(1);
    100.0 * summary.share.stolen / f64::from(u32::try_from(cpus).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::away::Away;
    use crate::placement::Durable;
    use crate::summary::example;

    fn away(threads_percent: f64) -> Away {
        Away {
            lost_percent: 3.0,
            long_percent: 3.0,
            max_us: 9_000.0,
            wait_p999_us: 3_000.0,
            threads_percent: Some(threads_percent),
            ..Away::default()
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
            (0.1, 0.0, "most likely the host (nobody is charged)"),
            // Of two CPUs: 3 % of each.
            (0.1, 0.06, "the host"),
        ] {
            summary.loops[0].away = Some(away(threads));
            summary.share.stolen = stolen;
            assert_eq!(told(&summary), [expected, "the host"], "{threads} {stolen}");
            assert_eq!(by(&summary), format!("CPU 0 was taken: {expected}"));
        }
    }

    #[test]
    fn a_name_is_told_only_of_as_much_as_it_had() {
        let kdamond = |cpu, percent| Jitter {
            lost_percent: percent,
            threads_percent: Some(percent),
            largest: Some("kdamond.0 (77)".to_owned()),
            largest_is_kernels: true,
            ..Jitter { cpu, ..example().jitter_before[0].clone() }
        };
        let ended = "what bash (22868) had started, which has ended";
        let other = |cpus| Some(Other { who: ended.to_owned(), is_kernels: false, cpus, may_have: None });
        let by_name = "the kernel's own work, kdamond.0 (77)";
        // A process that has ended is never named with "perhaps".
        let unknown = |lost: f64| format!("other threads here, which had {lost:.2} % of it, not known which");
        let while_it_lasts = "`outcry check --jitter` while it lasts says who";
        for (lost, after, during, who, remedy) in [
            // A loop that had 24.8 % while the load was on, and had ended when the rest was looked at.
            (27.2, 0.51, other(0.248), ended.to_owned(), "nothing while it is gone"),
            (21.4, 1.46, other(0.212), ended.to_owned(), "nothing while it is gone"),
            // Neither had as much.
            (27.2, 0.51, other(0.10), unknown(27.2), while_it_lasts),
            (27.2, 0.51, None, unknown(27.2), while_it_lasts),
            // Half of it is enough, if that is more than ticks can show.
            (0.6, 0.0, other(0.003), unknown(0.6), while_it_lasts),
            (1.0, 0.51, None, by_name.to_owned(), "`outcry tune` switches kdamond off (mem.damon)"),
        ] {
            let mut summary = Summary { largest_other: during, ..example() };
            summary.loops[0].away = Some(Away { lost_percent: lost, long_percent: lost, ..away(lost) });
            if after > 0.0 {
                summary.jitter_after = vec![kdamond(0, after), kdamond(1, after)];
            }
            let taken = of(&summary).expect("the loop spun");
            assert_eq!((taken.who(), taken.gaps.cpu), (who, 0), "{lost}");
            assert!(taken.remedy().starts_with(remedy), "{}", taken.remedy());
        }
    }

    #[test]
    fn who_was_there_in_the_second_beside_the_run_is_not_told_of_the_run() {
        let kdamond = |cpus| Other {
            who: "kdamond.0 (77)".to_owned(),
            is_kernels: true,
            cpus,
            may_have: Some(vec![0, 1]),
        };
        let kernels = "the kernel's own work, kdamond.0 (77)";
        let perhaps = "other threads here, which had 0.60 % of it, perhaps kdamond.0 (77)";
        for (others_of_cpus, share, expected) in [
            (vec![], 0.0, "agent (9)".to_owned()),
            (vec![(0, kdamond(0.005))], 0.0, perhaps.to_owned()),
            (vec![(0, kdamond(0.01))], 0.015, kernels.to_owned()),
            // It had too little of all that others had to say on which CPU.
            (vec![(0, kdamond(0.01))], 0.03, perhaps.to_owned()),
        ] {
            let mut summary = Summary { others_of_cpus, ..example() };
            summary.share.others = share;
            summary.loops[0].away = Some(Away { lost_percent: 0.6, long_percent: 0.6, ..away(0.6) });
            summary.jitter_after = vec![Jitter {
                lost_percent: 0.61,
                threads_percent: Some(0.61),
                largest: Some("agent (9)".to_owned()),
                ..Jitter { cpu: 0, ..example().jitter_before[0].clone() }
            }];
            assert_eq!(of(&summary).expect("the loop spun").who(), expected, "{share}");
        }
    }

    #[test]
    fn what_the_host_has_is_first_mended_by_who_keeps_the_disk_busy() {
        let stop = "stop dd (8), which writes there";
        let with = |threads| {
            let durable = Durable {
                us: [5e3, 5e3],
                by: "the disk".to_owned(),
                first: stop.to_owned(),
                stop_writers: Some(stop.to_owned()),
            };
            let mut summary = Summary { durable: Some(durable), ..example() };
            summary.loops[0].away = Some(away(threads));
            of(&summary).expect("the loop spun").remedy()
        };
        let first =
            format!("{stop}, and measure again: the host may have our CPUs for that; else a host that");
        assert!(with(0.1).starts_with(&first), "{}", with(0.1));
        assert!(!with(2.9).contains("dd (8)"), "{}", with(2.9));
    }

    #[test]
    fn the_clients_cpu_is_met_only_if_it_was_taken_during_the_run() {
        for (client_lost_percent, stolen, of, cpu) in [
            (None, 0.0, "p99", 1),
            (Some(0.05), 0.0, "p99", 0),
            (Some(1.0), 0.0, "p99", 1),
            (Some(0.05), 0.0, "p99.9", 0),
            (Some(0.1), 0.0, "p99.9", 1),
            // Of two CPUs: 1 % of each.
            (Some(0.05), 0.02, "p99", 1),
        ] {
            let mut summary = Summary { client_lost_percent, ..example() };
            summary.share.stolen = stolen;
            summary.loops[0].away = Some(Away { slowest_us: 100.0, around_p99_us: 50.0, ..away(0.6) });
            summary.jitter_before = vec![Jitter {
                lost_percent: 3.0,
                host_percent: Some(3.0),
                wait_p999_us: Some(9_000.0),
                wait_p99_us: Some(400.0),
                ..Jitter { cpu: 1, ..example().jitter_before[0].clone() }
            }];
            let of_loop = Jitter { cpu: 0, ..example().jitter_before[0].clone() };
            summary.jitter_after = vec![of_loop];
            let (_, taken) = met(&summary, of).expect("both were watched");
            assert_eq!(taken.gaps.cpu, cpu, "{client_lost_percent:?} {stolen} {of}");
        }
    }

    #[test]
    fn nobody_is_told_of_a_cpu_that_it_may_not_have_had() {
        let sh = |cpus, may_have: Option<&[usize]>| Other {
            who: "sh (7)".to_owned(),
            is_kernels: false,
            cpus,
            may_have: may_have.map(<[usize]>::to_vec),
        };
        let [perhaps, unknown] = ["perhaps sh (7)", "not known which"]
            .map(|which| format!("other threads here, which had 10.00 % of it, {which}"));
        // Of CPU 0 others had 10 %.
        for (other, who) in [
            (sh(0.1, Some(&[0])), "sh (7)"),
            // It had more CPU time than its loop lost.
            (sh(0.5, Some(&[0])), "sh (7)"),
            (sh(0.1, Some(&[0, 1])), "sh (7)"),
            (sh(0.1, None), "sh (7)"),
            (sh(0.5, Some(&[0, 1])), perhaps.as_str()),
            (sh(0.5, None), unknown.as_str()),
        ] {
            // The largest process of all was confined to the other CPU.
            let largest_other = Some(Other { who: "dd (8)".to_owned(), ..sh(0.9, Some(&[1])) });
            let others_of_cpus = vec![(0, other), (1, largest_other.clone().expect("it was seen"))];
            let mut summary = Summary { largest_other, others_of_cpus, ..example() };
            summary.loops[0].away = Some(away(10.0));
            assert_eq!(of(&summary).expect("the loop spun").who(), who, "{:?}", summary.others_of_cpus[0]);
        }
    }

    #[test]
    fn those_in_the_middle_meet_a_cpu_that_is_hardly_there() {
        for (lost_percent, is_met) in [(24.9, false), (25.0, true)] {
            let mut summary = example();
            summary.jitter_after[1].lost_percent = lost_percent;
            assert_eq!(met(&summary, "p50").map(|(_, taken)| taken.gaps.cpu), is_met.then_some(1));
        }
    }
}
