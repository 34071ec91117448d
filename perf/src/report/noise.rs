//! What took the CPUs of a run, whether a VALID run is possible, and what to do if not.

use outcry::topology::valid;

use super::numbers::micros;
use super::room;
use super::taker::{self, Taken};
use super::words::{Told, kernel};
use crate::jitter::{GAP_US_MAX, Jitter};
use crate::summary::Summary;
use crate::verdict::{LOST_PERCENT_MAX, RATE_MISSED};
use crate::watch::LOST_MAX;

/// Whether this box, as it was, can give a VALID run, whatever this run's verdict. Each amount has its limit beside it;
/// the reasons of a verdict have theirs already.
pub(crate) fn can_be_valid(summary: &Summary) -> String {
    if summary.verdict.is_disturbed() {
        return "As it was, this box cannot give a VALID run.".to_owned();
    }
    let had = lost(summary);
    if summary.verdict.valid {
        format!("This box can give a VALID run: {had}.")
    } else {
        format!("This box can give a VALID run ({had}); the load or the client made this one INVALID.")
    }
}

/// How much of the CPUs others had, by every account there is.
fn lost(summary: &Summary) -> String {
    let kernel = kernel(summary).map_or_else(String::new, |words| format!("; {words}"));
    let cpus = summary.share_cpus;
    #[allow(clippy::cast_precision_loss, reason = "CPUs are few")]
    let share = |had: f64| {
        let of_all = had / cpus as f64;
        (100.0 * of_all, valid::beside(of_all <= LOST_MAX, valid::SHARE_PERCENT_MAX))
    };
    let ((others, beside_others), (host, beside_host)) =
        (share(summary.share.others), share(summary.share.stolen));
    let beside = |percent: f64| valid::beside(percent <= LOST_PERCENT_MAX, valid::LOST_PERCENT_MAX);
    let meanwhile = summary.meanwhile();
    let mut lost: Vec<String> =
        meanwhile.iter().map(|told| format!("{} ({})", told.text, beside(told.lost_percent))).collect();
    let around = summary.around().map(|row| row.lost_percent).reduce(f64::max);
    lost.extend(around.map(|most| {
        format!("before and after, a thread that only spins lost {most:.1} % of a CPU ({})", beside(most))
    }));
    let uncharged = summary.beside_waiting().map(Jitter::uncharged_percent).reduce(f64::max);
    lost.extend(uncharged.map(|most| {
        format!("before and after, a thread that only spins lost {most:.1} % with which no thread here is charged ({})", beside(most))
    }));
    let all = summary.jitter_before.iter().chain(&summary.jitter_after);
    let is_told = |row: &&Jitter| meanwhile.iter().any(|told| told.cpu == row.cpu);
    let most = all.filter(is_told).max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent));
    lost.extend(most.filter(|row| LOST_PERCENT_MAX < row.lost_percent).map(|row| {
        let taken = taker::of_around(summary, row.cpu).map(Taken::in_all);
        let who = taken.map_or_else(String::new, |taken| {
            format!(" of {}; to change: {}", taken.who(), taken.remedy())
        });
        format!(
            "the {:.1} % of CPU {} that a thread which only spins lost before or after do not count, for it lost what is told above \
             while the load was on; so this run does not show what users meet{who}",
            row.lost_percent, row.cpu
        )
    }));
    format!(
        "other processes had {others:.1} % of the {cpus} CPUs ({beside_others}) and the host {host:.1} % \
         ({beside_host}){kernel}; {}",
        lost.join("; ")
    )
}

/// The moments in which the busiest loop had no CPU while the load was on, if it spun and so noticed them.
pub(super) fn taken(summary: &Summary) -> Option<Told> {
    let (busiest, away) = (room::busiest(summary)?, room::away(summary)?);
    let is_limit = GAP_US_MAX < away.wait_p999_us;
    let taken = taker::of(summary)?;
    let by = away.threads_percent.map_or_else(String::new, |_| taken_by(&taken));
    let change = if is_limit { format!(" To change: {}.", taken.remedy()) } else { String::new() };
    let text = format!(
        "While the load was on, {}, which spins, had no CPU for {:.2} % of the time in which it had no work, for up to {} at \
         once: one request in a hundred that came then waited for {} or longer, one in a thousand for {}.{by}{change}",
        busiest.name,
        away.lost_percent,
        micros(away.max_us),
        micros(away.wait_p99_us),
        micros(away.wait_p999_us)
    );
    Some(Told { is_limit, text })
}

/// Who had how much of that time, and who had most of it.
fn taken_by(taken: &Taken) -> String {
    let gaps = &taken.gaps;
    #[allow(clippy::cast_precision_loss, reason = "a share is at most a million")]
    let percent = |millionths: u64| millionths as f64 / 1e4;
    let threads = gaps.threads_millionths.unwrap_or(0).min(gaps.lost_millionths);
    let host = gaps.host_millionths.unwrap_or(0).min(gaps.lost_millionths - threads);
    let which = if gaps.has_another_in_all() {
        let long = percent(gaps.long_millionths);
        format!(" In stops of half a millisecond or more, {long:.2} % of the time, which slow requests meet:")
    } else {
        String::new()
    };
    format!(
        " Of these {:.2} % other threads of this machine had {:.2}, the host is charged with {:.2}, nobody with {:.2}.{which} {}.",
        percent(gaps.lost_millionths),
        percent(threads),
        percent(host),
        percent(gaps.lost_millionths - threads - host),
        taken.by()
    )
}

/// What a thread that only spins lost, on CPUs for which no loop reports the loss while the load was on.
pub(super) fn pauses(summary: &Summary) -> Option<Told> {
    let told = room::away(summary).and_then(|_| taker::of(summary)).map(|taken| taken.gaps.cpu);
    let rows =
        || summary.jitter_before.iter().chain(&summary.jitter_after).filter(|row| Some(row.cpu) != told);
    let worst = rows().max_by(|one, other| one.max_us.total_cmp(&other.max_us))?;
    let most = rows().max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent))?;
    let is_quiet = worst.max_us <= GAP_US_MAX && most.lost_percent <= LOST_PERCENT_MAX;
    let text = if is_quiet && told.is_none() {
        format!(
            "The cores are quiet: a thread that only spins never lost more than {} at once.",
            micros(worst.max_us)
        )
    } else if is_quiet {
        return None;
    } else {
        let taken = taker::of_around(summary, most.cpu)?.in_all();
        format!(
            "Before and after, a thread that only spins lost up to {} at once (CPU {}), and {:.2} % of the time of CPU {}. {}; to \
             change: {}.",
            micros(worst.max_us),
            worst.cpu,
            most.lost_percent,
            most.cpu,
            taken.by(),
            taken.remedy()
        )
    };
    Some(Told { is_limit: !is_quiet, text })
}

/// What makes the next run VALID, as far as the reasons show.
pub(crate) fn next_time(summary: &Summary) -> Vec<String> {
    let errors = summary.server_warned.last().map_or_else(
        || "The server's log has no warning of it. Offer less (`--rate`).".to_owned(),
        |last| format!("The server's log says last, and the page has what it said before: {last}"),
    );
    let rows = [
        ("generator late", "Give the client a CPU of its own, or offer less (`--rate`)."),
        (RATE_MISSED, "Offer less (`--rate`): the server cannot do more here."),
        ("errors", &errors),
    ];
    let of_load =
        rows.iter().filter(|(start, _)| has_reason(summary, start)).map(|(_, words)| (*words).to_owned());
    // If others had the CPUs, that may be why the client was late and the rate was missed.
    noise(summary).map_or_else(|| of_load.collect(), |words| vec![words])
}

fn has_reason(summary: &Summary, start: &str) -> bool {
    summary.verdict.reasons.iter().any(|reason| reason.starts_with(start))
}

/// If others' use of the CPUs made the run INVALID: who it was, whether that can be ended here, and what to do
/// otherwise.
fn noise(summary: &Summary) -> Option<String> {
    const QUIET: &str = "`scripts/perf jitter` (or `outcry check --jitter`) tells when it is quiet";
    let most = summary.around().max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent));
    // What was there while the load was on comes first; losses before and after have names of their own.
    let uncharged = summary.beside_waiting().filter(|row| LOST_PERCENT_MAX < row.uncharged_percent());
    let uncharged =
        uncharged.max_by(|one, other| one.uncharged_percent().total_cmp(&other.uncharged_percent()));
    let cpu = taker::most_taken(summary).or(uncharged.or(most).map(|row| row.cpu));
    let of = |cpu| {
        let of = if taker::is_meanwhile(summary, cpu) { taker::of_cpu } else { taker::of_around };
        of(summary, cpu)
    };
    let taken = cpu.filter(|_| has_reason(summary, "others had CPU")).and_then(of);
    // A run is INVALID for all that was lost, not for what the slowest requests met.
    Some(match taken.map(Taken::in_all) {
        Some(taken) => format!(
            "CPU {} {}, most of what it lost: {}; to change: {}; {QUIET}.",
            taken.gaps.cpu,
            taker::when(summary, taken.gaps.cpu),
            taken.who(),
            taken.remedy()
        ),
        None if has_reason(summary, "others had the machine") => match taker::of_all(summary) {
            Some(other) => format!(
                "Most of what others had: {}, {:.1} % of a CPU; to change: {}; {QUIET}.",
                other.who,
                100.0 * other.cpus,
                other.named().remedy()
            ),
            None => format!("Stop what else runs here (`top -H` says who), or wait and try again: {QUIET}."),
        },
        None if has_reason(summary, "steal") => {
            format!("The host had it: a host that sells whole cores, or wait and try again: {QUIET}.")
        }
        None => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::{cautions, limits};
    use super::*;
    use crate::away::Away;
    use crate::verdict::Verdict;
    use crate::watch::Other;

    #[test]
    fn a_cpu_that_was_taken_during_the_run_is_told_of_a_loop_that_spun() {
        for (wait, lost_percent, wait_p999_us, is_told, is_limit) in [
            ("spin", 6.0, 4_000.0, true, true),
            ("spin", 0.1, 30.0, true, false),
            // A loop that sleeps does not know.
            ("park", 0.0, 0.0, false, false),
        ] {
            let mut summary = crate::summary::example();
            wait.clone_into(&mut summary.threads[0].wait);
            summary.loops[0].away =
                Some(Away { lost_percent, max_us: 8_000.0, wait_p999_us, ..Away::default() });
            let has = |said: &[String]| said.iter().any(|words| words.starts_with("While the load was on"));
            let (limits, cautions) = (limits(&summary), cautions(&summary));
            assert_eq!(has(&limits), is_limit, "{limits:?}");
            assert_eq!(has(&cautions), is_told && !is_limit, "{cautions:?}");
        }
    }

    #[test]
    fn a_pause_is_a_limit_and_quiet_cores_are_only_told() {
        let mut summary = crate::summary::example();
        let told = cautions(&summary);
        assert!(told[0].starts_with("The cores are quiet"), "{}", told[0]);
        assert!(
            told[1].starts_with(
                "outcry-shard0 worked 6 % of the time, 30.0 µs for each of 2,000 requests a second. Of that"
            ),
            "{}",
            told[1]
        );
        summary.jitter_after[1].max_us = 4_000.0;
        let said = limits(&summary).remove(2);
        assert!(said.contains("lost up to 4.0 ms at once (CPU 1)") && said.contains("to change: "), "{said}");
        assert!(!cautions(&summary).iter().any(|words| words.starts_with("The cores are quiet")));
    }

    #[test]
    fn whether_the_box_can_give_a_valid_run_is_said_whatever_the_verdict() {
        let had = "other processes had 0.1 % of the 2 CPUs (within 1 %) and the host 0.0 % (within 1 %); before and after, a \
                   thread that only spins lost 0.1 % of a CPU (within 2 %)";
        for (reasons, expected) in [
            (&[][..], format!("This box can give a VALID run: {had}.")),
            (
                &["rate missed: 1 of 2"],
                format!(
                    "This box can give a VALID run ({had}); the load or the client made this one INVALID."
                ),
            ),
            (&["errors: 3", "steal: 3 %"], "As it was, this box cannot give a VALID run.".to_owned()),
            (&["others had CPU 1: after"], "As it was, this box cannot give a VALID run.".to_owned()),
        ] {
            let mut summary = crate::summary::example();
            summary.verdict = Verdict::because(reasons.iter().map(|&reason| reason.to_owned()).collect());
            assert_eq!(can_be_valid(&summary), expected);
        }
        let mut summary = crate::summary::example();
        (summary.client_cpu, summary.client_lost_percent) = (1, Some(0.5));
        summary.loops[0].away = Some(Away { lost_percent: 0.3, ..Away::default() });
        let meanwhile = "outcry-shard0, which spins, had none of CPU 0 for 0.3 % of its time without work (within 2 %); others had \
                         0.5 % of CPU 1, which is the client's (within 2 %); before and after, a thread that only spins lost 0.1 % with \
                         which no thread here is charged (within 2 %).";
        assert!(can_be_valid(&summary).ends_with(meanwhile), "{}", can_be_valid(&summary));
        let before = &mut summary.jitter_before[0];
        (before.lost_percent, before.threads_percent) = (64.1, Some(64.0));
        before.largest = Some("sh (7)".to_owned());
        let around = "; the 64.1 % of CPU 0 that a thread which only spins lost before or after do not count, for it lost what is \
                      told above while the load was on; so this run does not show what users meet of sh (7); to change: stop sh \
                      (7), or keep it off this CPU.";
        assert!(can_be_valid(&summary).ends_with(around), "{}", can_be_valid(&summary));
    }

    #[test]
    fn every_reason_against_a_run_has_something_to_do() {
        let mut summary = crate::summary::example();
        let quiet = "`scripts/perf jitter` (or `outcry check --jitter`) tells when it is quiet.";
        for (reason, threads, is_kernels, start) in [
            (
                "others had CPU 1: after the run",
                60.0,
                false,
                "CPU 1 before and after, most of what it lost: rustc (4711); to change: stop rustc (4711), or keep it off this CPU; `scripts/perf",
            ),
            (
                "others had CPU 1: after the run",
                60.0,
                true,
                "CPU 1 before and after, most of what it lost: the kernel's own work, rustc (4711); to change: it is",
            ),
            (
                "others had CPU 1: after the run",
                1.0,
                false,
                "CPU 1 before and after, most of what it lost: most likely the host (nobody is charged); to change: a host that sells whole cores, or wait and try again; `scripts/perf",
            ),
            (
                "others had the machine: 3 %",
                0.0,
                false,
                "Stop what else runs here (`top -H` says who), or wait and try again: `scripts/perf",
            ),
            (
                "steal: 3 %",
                0.0,
                false,
                "The host had it: a host that sells whole cores, or wait and try again: `scripts/perf",
            ),
            ("generator late: it sent", 0.0, false, "Give the client a CPU of its own"),
            ("rate missed: 1 of 2", 0.0, false, "Offer less"),
            ("errors: 3 requests", 0.0, false, "The server's log has no warning of it. Offer less"),
        ] {
            summary.jitter_after[1] = Jitter {
                lost_percent: 67.0,
                threads_percent: Some(threads),
                long_percent: Some(67.0),
                threads_long_percent: Some(threads),
                largest: Some("rustc (4711)".to_owned()),
                largest_is_kernels: is_kernels,
                ..summary.jitter_after[1].clone()
            };
            summary.verdict = Verdict::because(vec![reason.to_owned()]);
            let is_noise = !["generator", "rate", "errors"].iter().any(|load| reason.starts_with(load));
            if is_noise {
                summary.verdict.reasons.push("rate missed: 1 of 2".to_owned());
            }
            let said = next_time(&summary);
            assert!(said.len() == 1 && said[0].starts_with(start), "{reason}: {said:?}");
            assert_eq!(said[0].ends_with(quiet), is_noise, "{said:?}");
        }
        summary.server_warned = ["t WARN a: b", "t ERROR a: c"].map(str::to_owned).to_vec();
        summary.verdict = Verdict::because(vec!["errors: 3 requests".to_owned()]);
        let last = "The server's log says last, and the page has what it said before: t ERROR a: c";
        assert_eq!(next_time(&summary), [last]);
        let other = Other { who: "sh (7)".to_owned(), is_kernels: false, cpus: 0.248, may_have: None };
        summary.largest_other = Some(other);
        summary.verdict = Verdict::because(vec!["others had the machine: 12 %".to_owned()]);
        let named = "Most of what others had: sh (7), 24.8 % of a CPU; to change: stop sh (7), or keep it off this CPU; `scripts";
        assert!(next_time(&summary)[0].starts_with(named), "{:?}", next_time(&summary));
        // A process that had only a little of it is not the one to stop.
        summary.share.others = 0.5;
        assert!(next_time(&summary)[0].starts_with("Stop what else runs here"), "{:?}", next_time(&summary));
    }

    #[test]
    fn what_was_lost_before_the_run_has_the_taker_that_it_had_then() {
        let mut summary = crate::summary::example();
        (summary.client_cpu, summary.client_lost_percent) = (1, None);
        summary.jitter_before = vec![Jitter {
            lost_percent: 47.3,
            threads_percent: Some(29.5),
            largest: Some("sh (7), which keeps starting dd".to_owned()),
            ..Jitter { cpu: 1, ..summary.jitter_before[0].clone() }
        }];
        summary.verdict = Verdict::because(vec!["others had CPU 1: before".to_owned()]);
        let next = "CPU 1 before and after, most of what it lost: sh (7), which keeps starting dd; to change: stop sh (7), ";
        assert!(next_time(&summary)[0].starts_with(next), "{:?}", next_time(&summary));
    }

    #[test]
    fn the_same_stop_of_a_cpu_has_one_taker_in_all_of_a_report() {
        let mut summary = crate::summary::example();
        summary.client_cpu = 0;
        summary.loops[0].away = Some(Away {
            long_percent: 6.0,
            lost_percent: 6.0,
            max_us: 8_000.0,
            wait_p999_us: 4_000.0,
            wait_p99_us: 900.0,
            threads_percent: Some(0.5),
            ..Away::default()
        });
        // Around the run the kernel had most of the same CPU.
        summary.jitter_before[0] = Jitter {
            lost_percent: 9.0,
            max_us: 9_000.0,
            threads_percent: Some(9.0),
            largest: Some("kworker (7)".to_owned()),
            largest_is_kernels: true,
            ..summary.jitter_before[0].clone()
        };
        summary.parts[1].stages[1] = ("queue".to_owned(), 3_900.0);
        summary.verdict = Verdict::because(vec!["others had CPU 0: before".to_owned()]);
        let all = [
            limits(&summary),
            cautions(&summary),
            super::super::glance::lines(&summary),
            next_time(&summary),
        ]
        .concat();
        let next = "CPU 0 while the load was on, most of what it lost: most likely the host (nobody is charged); to change: a host";
        assert!(all.last().is_some_and(|words| words.starts_with(next)), "{all:?}");
        let took: Vec<&String> = all.iter().filter(|words| words.contains("was taken: ")).collect();
        assert_eq!(took.len(), 3, "{all:?}");
        assert!(
            took.iter()
                .all(|words| words.contains("CPU 0 was taken: most likely the host (nobody is charged)")),
            "{took:?}"
        );
        assert!(!all.iter().any(|words| words.contains("kernel's own")), "{all:?}");
        let parts = "Of these 6.00 % other threads of this machine had 0.50, the host is charged with 0.00, nobody with 5.50.";
        assert!(all.iter().any(|words| words.contains(parts)), "{all:?}");
    }
}
