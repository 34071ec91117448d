//! What a report says in words: what was measured, and what limits the box in front of us.

use super::numbers::{count, count_of, micros};
use super::{arrivals, room, went};
use outcry::topology::checks::Taker;
use outcry::topology::valid::{self, CLIENTS_OWN_FROM_CPUS};

use crate::jitter::GAP_US_MAX;
use crate::placement::MachineLimit;
use crate::run::DURABLE;
use crate::scenario::Data;
use crate::summary::{ClassTimes, Summary};
use crate::verdict::{LOST_PERCENT_MAX, RATE_MISSED};
use crate::watch::LOST_MAX;

/// The server's CPU and the client's: of these the verdict takes its shares.
const CPUS_OF_SHARES: f64 = 2.0;

/// Whether answers waited for the disk.
pub(super) fn is_durable(summary: &Summary) -> bool {
    summary.settings.iter().any(|setting| setting == DURABLE)
}

/// What a class is called in a sentence.
pub(crate) fn class(name: &str) -> &'static str {
    match name {
        "place" => "orders that rest",
        "cancel" => "cancels",
        "replace" => "replaces",
        "batch" => "batches of 15 orders",
        "take" => "orders that are matched",
        "read" => "reads",
        _ => "requests",
    }
}

/// What was offered and answered, in plain words.
pub(crate) fn offered(summary: &Summary) -> String {
    format!(
        "{} requests a second were offered over {} connections{} for {} s; {} a second were answered, and every \
         answer was checked.{}",
        count(summary.offered_per_s),
        summary.connections,
        match summary.read_connections {
            0 => String::new(),
            reads => format!(", and reads over {reads} of their own,"),
        },
        summary.time_s,
        count(summary.achieved_per_s),
        arrivals::words(&summary.arrivals, summary.burst, summary.offered_per_s)
            .map_or_else(String::new, |words| format!(" {words}"))
    )
}

/// How long each class took, a sentence each.
pub(crate) fn answers(summary: &Summary) -> Vec<String> {
    let sentence = |times: &ClassTimes| {
        let latency = times.latency;
        format!(
            "{}: half of them within {}, 99 of 100 within {}, the slowest of {} after {}.",
            capital(class(&times.class)),
            micros(latency.p50_us),
            micros(latency.p99_us),
            count_of(latency.count),
            micros(latency.max_us)
        )
    };
    summary.classes.iter().map(sentence).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Whether this box, as it was, can give a VALID run, whatever this one's verdict: each amount with its limit.
pub(crate) fn can_be_valid(summary: &Summary) -> String {
    let reasons = &summary.verdict.reasons;
    let is_boxes = |reason: &String| ["steal", "others had"].iter().any(|start| reason.starts_with(start));
    let had = lost(summary);
    if reasons.iter().any(is_boxes) {
        format!("As it was, this box cannot give a VALID run: {had}.")
    } else if reasons.is_empty() {
        format!("This box can give a VALID run: {had}.")
    } else {
        format!("This box can give a VALID run ({had}); the load or the client made this one INVALID.")
    }
}

/// What others had of the CPUs, by every account there is.
fn lost(summary: &Summary) -> String {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    let most = rows.map(|row| row.lost_percent).fold(0.0, f64::max);
    let kernel = kernel(summary).map_or_else(String::new, |words| format!("; {words}"));
    let share = |cpus: f64| {
        let of_all = cpus / CPUS_OF_SHARES;
        (100.0 * of_all, valid::beside(of_all <= LOST_MAX, valid::SHARE_PERCENT_MAX))
    };
    let ((others, beside_others), (host, beside_host)) =
        (share(summary.share.others), share(summary.share.stolen));
    let beside_most = valid::beside(most <= LOST_PERCENT_MAX, valid::LOST_PERCENT_MAX);
    format!(
        "other processes had {others:.1} % of the {CPUS_OF_SHARES} CPUs ({beside_others}) and the host {host:.1} % \
         ({beside_host}){kernel}; before and after, a thread that only spins lost {most:.1} % of a CPU ({beside_most})"
    )
}

/// What the kernel's own threads had, where they are told apart.
pub(crate) fn kernel(summary: &Summary) -> Option<String> {
    let had = summary.share.kernel;
    let is_apart = summary.data == Data::Disk.name();
    let who = "threads of the kernel, which write to the disk for the server,";
    is_apart.then(|| format!("{who} had {had:.3} CPUs"))
}

/// What limits this box, what was measured first, each with what to change.
pub(crate) fn limits(summary: &Summary) -> Vec<String> {
    let mut found = went::of(summary);
    found.extend(measured(summary).filter(|told| told.is_limit).map(|told| told.text));
    let governor = &summary.environment.governor;
    if summary.machine_limits.is_empty() && !["performance", "unknown"].contains(&governor.as_str()) {
        found.push(format!("The CPUs' governor is {governor}: their frequency changes under load."));
    }
    found
}

/// What limits the machine by the server's own account, the most costly first.
pub(crate) fn own_account(summary: &Summary) -> Vec<String> {
    let said = |machine: &MachineLimit| {
        let MachineLimit { limit, change, .. } = machine;
        let change = change.as_ref().map_or_else(String::new, |change| format!(" To change: {change}."));
        let apart = if machine.is_of_waking() { spins_here(summary) } else { String::new() };
        format!("{}{limit}.{apart}{change}", machine.whose())
    };
    summary.machine_limits.iter().map(said).collect()
}

/// The server's answers: what each is about, and what it says.
pub(crate) fn own_answers(summary: &Summary) -> Vec<(&str, String)> {
    let answers = summary.machine_answers.iter();
    answers
        .map(|text| text.split_once(": ").unwrap_or(("", text)))
        .map(|(about, says)| (about, says.to_owned()))
        .collect()
}

/// Loops that spun in this run and would sleep if `serve` had been left alone: its account is not of them.
fn spins_here(summary: &Summary) -> String {
    let sleeps = |name: &str| summary.threads_by_itself.iter().any(|own| own.name == name && !own.spins());
    let spins = summary.threads.iter().filter(|thread| thread.spins() && sleeps(&thread.name));
    let names: Vec<&str> = spins.map(|thread| thread.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        " That is of `serve` left alone: in this run {} spun, and its wake-ups are not in these figures.",
        names.join(", ")
    )
}

/// What to know before the figures are compared with others.
pub(crate) fn cautions(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(measured(summary).filter(|told| !told.is_limit).map(|told| told.text));
    let environment = &summary.environment;
    if environment.cpus.len() < CLIENTS_OWN_FROM_CPUS {
        let (count, cpu) = (environment.cpus.len(), summary.client_cpu);
        let names = beside_client(summary).join(", ");
        let beside = if names.is_empty() { names } else { format!(" beside {names}") };
        found.push(if summary.client_yields {
            format!(
                "There are {count} CPUs: the client is on CPU {cpu}{beside}, and lets these have it whenever it finds nothing \
                 to do; while they do, nothing is sent and no answer is read."
            )
        } else if summary.client_sleeps {
            format!(
                "There are {count} CPUs: the client is on CPU {cpu}{beside}, and sleeps until a request is due or an \
                 answer comes, so that these need not wait for it; every time has the client's wake-up in it.{}",
                orders_wait(summary)
            )
        } else {
            format!(
                "There are {count} CPUs: the client polls on CPU {cpu}{beside}, so these wait for it: reads, \
                 durable answers and all tails pay for the client's polling."
            )
        });
    }
    if environment.hypervisor != "none" {
        found.push(
            "This is a virtual machine: each wake-up and each packet crosses the hypervisor, and what its \
             other guests do is not visible from here."
                .to_owned(),
        );
    }
    if environment.isolated_cpus == "none" && environment.nohz_full == "none" {
        found.push(
            "No CPU is isolated from the scheduler (isolcpus, nohz_full): timers and other threads may \
             interrupt a loop at any moment."
                .to_owned(),
        );
    }
    if summary.data == "memory" {
        found.push(
            "All data were in shared memory: no disk is in these figures. By default `serve` answers when its disk has it: \
             `scripts/perf durable` measures that."
                .to_owned(),
        );
    }
    found
}

/// What it means if a thread that works on orders has no CPU but the client's.
fn orders_wait(summary: &Summary) -> String {
    let beside = beside_client(summary);
    let trading = summary.threads.iter().filter(|thread| thread.is_trading());
    let names: Vec<&str> =
        trading.map(|thread| thread.name.as_str()).filter(|name| beside.contains(name)).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        " {} works on orders there: while it does, nothing is sent and no answer is read, and while the client does, \
         orders wait. So the times say what these threads cost on one CPU, not what they can do with one each.",
        names.join(", ")
    )
}

/// Who shares the client's CPU, for a terminal.
pub(crate) fn shared(summary: &Summary) -> Option<String> {
    let beside = beside_client(summary);
    let waits = match (summary.client_sleeps, summary.client_yields) {
        (true, _) => "sleeps in between",
        (_, true) => "polls, and yields in between",
        _ => "polls",
    };
    let cpu = summary.client_cpu;
    (!beside.is_empty()).then(|| format!("the client ({waits}) shares CPU {cpu} with {}", beside.join(", ")))
}

/// Something that was measured, in words, and whether it limits the box.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) is_limit: bool,
    pub(super) text: String,
}

fn measured(summary: &Summary) -> impl Iterator<Item = Told> {
    pauses(summary).into_iter().chain(taken(summary)).chain(room::of(summary))
}

/// What the busiest loop had no CPU for while the load was on, if it spun and so knows.
fn taken(summary: &Summary) -> Option<Told> {
    let (busiest, away) = (room::busiest(summary)?, room::away(summary)?);
    let is_limit = GAP_US_MAX < away.wait_p999_us;
    let whose = if is_limit {
        " That much of p99.9 is the machine's, not the server's: another machine changes it, or whoever had the CPU."
    } else {
        ""
    };
    let by = away.threads_percent.map_or_else(String::new, |percent| {
        let rest = match away.taker() {
            Taker::Unseen => ", and interrupts are shorter: most of it was the host's, which need not say so",
            Taker::Interrupts => ": most of it was interrupts', or the host's",
            _ => ", which was most of it",
        };
        format!(" By its run delay other threads of this machine had its CPU for {percent:.2} % of the time{rest}.")
    });
    let text = format!(
        "While the load was on, {}, which spins, had no CPU for {:.2} % of the time in which it had no work, for up to {} at \
         once: one request in a hundred that came then waited for {} or longer, one in a thousand for {}.{by}{whose}",
        busiest.name,
        away.lost_percent,
        micros(away.max_us),
        micros(away.wait_p99_us),
        micros(away.wait_p999_us)
    );
    Some(Told { is_limit, text })
}

/// The server's threads that may run where the client does.
pub(super) fn beside_client(summary: &Summary) -> Vec<&str> {
    // Where there are more CPUs, a thread that is not pinned has others.
    let is_tight = summary.environment.cpus.len() < CLIENTS_OWN_FROM_CPUS;
    let may_run = |cpu: Option<usize>| cpu.map_or(is_tight, |cpu| cpu == summary.client_cpu);
    let there = summary.threads.iter().filter(|thread| may_run(thread.cpu));
    there.map(|thread| thread.name.as_str()).collect()
}

/// What a thread that only spins lost.
fn pauses(summary: &Summary) -> Option<Told> {
    let rows = || summary.jitter_before.iter().chain(&summary.jitter_after);
    let worst = rows().max_by(|one, other| one.max_us.total_cmp(&other.max_us))?;
    let most = rows().max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent))?;
    let is_quiet = worst.max_us <= GAP_US_MAX && most.lost_percent <= LOST_PERCENT_MAX;
    let text = if is_quiet {
        format!(
            "The cores are quiet: a thread that only spins never lost more than {} at once.",
            micros(worst.max_us)
        )
    } else {
        format!(
            "The machine stops a thread that only spins, without any load of ours: for up to {} at once (CPU {}), \
             and for {:.2} % of the time on CPU {}: {}. Tails up to that length may be the machine's doing, not \
             the server's. To change: {}.",
            micros(worst.max_us),
            worst.cpu,
            most.lost_percent,
            most.cpu,
            most.takers(),
            most.remedy()
        )
    };
    Some(Told { is_limit: !is_quiet, text })
}

/// What makes the next run VALID, as far as the reasons say.
pub(crate) fn next_time(summary: &Summary) -> Vec<String> {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    let most = rows.max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent));
    let of_cpu = most.map_or_else(String::new, |row| format!("CPU {}: {}.", row.cpu, row.remedy()));
    let rows = [
        ("others had CPU", of_cpu.as_str()),
        ("others had the machine", "Stop what else runs here (`top -H` says who), then run it again."),
        ("steal", "Ask for CPUs that the host gives to nobody else, or take another host."),
        ("generator late", "Give the client a CPU of its own, or offer less (`--rate`)."),
        (RATE_MISSED, "Offer less (`--rate`): the server cannot do more here."),
        ("errors", "Read what the server said, below."),
    ];
    let applies = |start: &str| summary.verdict.reasons.iter().any(|reason| reason.starts_with(start));
    rows.iter().filter(|(start, _)| applies(start)).map(|(_, words)| (*words).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::away::Away;
    use crate::jitter::Jitter;
    use crate::verdict::Verdict;

    #[test]
    fn limits_say_where_time_went_and_what_was_measured() {
        let said = limits(&crate::summary::example());
        for (place, start) in [
            (
                0,
                "Around the median of orders that rest (2,000 of them, 40.0 µs on average) most of it passed in sign, 65 %",
            ),
            (
                1,
                "In the slowest thousandth of orders that rest (10 of them, 4.0 ms on average) most of it passed in journal, 98 %",
            ),
        ] {
            assert!(said[place].starts_with(start), "{}", said[place]);
        }
    }

    #[test]
    fn the_servers_own_account_stands_apart() {
        let example = crate::summary::example();
        assert_eq!(own_account(&example), ["2 cores for 2 loops. To change: a machine with 4 cores."]);
        let (about, says) = &own_answers(&example)[0];
        assert_eq!(*about, "orders a second");
        assert!(says.starts_with("about 28,000"), "{says}");
        assert!(!limits(&example).iter().any(|words| words.contains("2 cores")));
    }

    #[test]
    fn a_wake_up_that_this_run_did_without_is_said_to_be_of_serve_left_alone() {
        let account = |kind: &str, wait: &str| {
            let mut summary = crate::summary::example();
            kind.clone_into(&mut summary.machine_limits[0].kind);
            wait.clone_into(&mut summary.threads[0].wait);
            own_account(&summary).remove(0)
        };
        let apart = "That is of `serve` left alone: in this run outcry-shard0 spun";
        for (kind, wait, is_apart) in [
            ("wake-ups", "spin", true),
            ("wake-ups", "spin-then-park", true),
            ("wake-ups", "park", false),
            ("disk", "spin", false),
            ("", "spin", false),
        ] {
            let said = account(kind, wait);
            assert!(said.contains(apart) == is_apart && said.contains("To change: "), "{said}");
        }
    }

    #[test]
    fn a_cpu_that_was_taken_during_the_run_is_told_of_a_loop_that_spun() {
        for (wait, lost_percent, wait_p999_us, is_told, is_limit) in [
            ("spin", 6.0, 4_000.0, true, true),
            ("spin", 0.1, 30.0, true, false),
            // What sleeps does not know.
            ("park", 0.0, 0.0, false, false),
        ] {
            let mut summary = crate::summary::example();
            wait.clone_into(&mut summary.threads[0].wait);
            summary.loops[0].away = Some(Away {
                lost_percent,
                max_us: 8_000.0,
                wait_p999_us,
                wait_p99_us: 0.0,
                threads_percent: None,
            });
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
        assert!(said.contains("for up to 4.0 ms at once (CPU 1)") && said.contains("To change: "), "{said}");
        assert!(!cautions(&summary).iter().any(|words| words.starts_with("The cores are quiet")));
    }

    #[test]
    fn who_shares_the_clients_cpu_is_named() {
        let mut example = crate::summary::example();
        let mut ingress = example.threads[0].clone();
        (ingress.name, ingress.wait) = ("outcry-ingress0".to_owned(), "park".to_owned());
        let mut reader = ingress.clone();
        reader.name = "outcry-reader".to_owned();
        example.threads.extend([ingress, reader]);
        for (ingress_cpu, reader_cpu, sleeps, line, orders_wait) in [
            (Some(2), Some(2), true, None, false),
            (
                Some(2),
                Some(1),
                true,
                Some("the client (sleeps in between) shares CPU 1 with outcry-reader"),
                false,
            ),
            (Some(2), None, false, Some("the client (polls) shares CPU 1 with outcry-reader"), false),
            (
                Some(1),
                Some(1),
                true,
                Some("the client (sleeps in between) shares CPU 1 with outcry-ingress0, outcry-reader"),
                true,
            ),
        ] {
            let mut summary = Summary { client_sleeps: sleeps, ..example.clone() };
            (summary.threads[1].cpu, summary.threads[2].cpu) = (ingress_cpu, reader_cpu);
            assert_eq!(shared(&summary).as_deref(), line);
            let said = cautions(&summary).join("\n");
            assert_eq!(said.contains("it. outcry-ingress0 works on orders there: "), orders_wait, "{said}");
        }
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
            (&["errors: 3", "steal: 3 %"], format!("As it was, this box cannot give a VALID run: {had}.")),
            (&["others had CPU 1: after"], format!("As it was, this box cannot give a VALID run: {had}.")),
        ] {
            let mut summary = crate::summary::example();
            summary.verdict = Verdict::because(reasons.iter().map(|&reason| reason.to_owned()).collect());
            assert_eq!(can_be_valid(&summary), expected);
        }
    }

    #[test]
    fn every_reason_against_a_run_has_something_to_do() {
        let mut summary = crate::summary::example();
        summary.jitter_after[1] =
            Jitter { lost_percent: 67.0, threads_percent: Some(60.0), ..summary.jitter_after[1].clone() };
        for (reason, word) in [
            ("others had CPU 1: after the run", "CPU 1: stop what runs there (`top -H`"),
            ("others had the machine: 3 %", "top -H"),
            ("steal: 3 %", "host"),
            ("generator late: it sent", "--rate"),
            ("rate missed: 1 of 2", "Offer less"),
            ("errors: 3 requests", "below"),
        ] {
            summary.verdict = Verdict::because(vec![reason.to_owned()]);
            let said = next_time(&summary);
            assert!(said.len() == 1 && said[0].contains(word), "{reason}: {said:?}");
        }
    }
}
