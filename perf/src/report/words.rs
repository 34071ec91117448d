//! What a report says in words: what was measured, and what limits this box.

use super::numbers::{count, count_of, micros};
use super::{arrivals, noise, planned, room, spell, went};
use outcry::topology::valid::CLIENTS_OWN_FROM_CPUS;

use crate::placement::MachineLimit;
use crate::run::DURABLE;
use crate::scenario::Data;
use crate::summary::{ClassTimes, Summary};

/// A time within this factor of a recorded one is called the same.
const ALIKE: f64 = 1.1;

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

/// How much the kernel's own threads had, where they are counted apart.
pub(crate) fn kernel(summary: &Summary) -> Option<String> {
    let had = summary.share.kernel;
    let is_apart = summary.data == Data::Disk.name();
    let who = "threads of the kernel, which write to the disk for the server,";
    is_apart.then(|| format!("{who} had {had:.3} CPUs"))
}

/// What limits this box, each limit with what to change; measured limits come first.
pub(crate) fn limits(summary: &Summary) -> Vec<String> {
    let mut found = went::of(summary);
    found.extend(spell::of(summary));
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

/// The server's answers, each as its subject and its text.
pub(crate) fn own_answers(summary: &Summary) -> Vec<(&str, String)> {
    let answers = summary.machine_answers.iter();
    answers
        .map(|text| text.split_once(": ").unwrap_or(("", text)))
        .map(|(about, says)| (about, says.to_owned()))
        .collect()
}

/// A note about loops that spun in this run and would sleep under `serve`, because the server's account is
/// of the latter.
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
    found
}

/// A note that no answer waited for a disk, as answers of `serve` do by default.
pub(super) fn without_disk(summary: &Summary) -> Option<String> {
    (!is_durable(summary)).then(|| {
        "No answer waited for a disk here (`committed`); those of `serve` do by default (`durable`). `scripts/perf run \
         journal-durable --as-serve` measures that."
            .to_owned()
    })
}

/// How much longer a signature check takes here than in the newest record of this CPU, or else of any.
pub(crate) fn beside_record(summary: &Summary) -> Option<String> {
    let recorded = summary.recorded.as_ref()?;
    let sign_us = summary.commonest(|times| planned::signatures(times) == 1)?.median_us("sign")?;
    let times = sign_us / recorded.check_us;
    let holds = if times < 1.0 / ALIKE {
        format!("{:.1} times as fast: that record's figures are longer than those here", 1.0 / times)
    } else if times <= ALIKE {
        "as fast: that record's figures may hold here while it is quiet".to_owned()
    } else {
        format!(
            "{times:.1} times as slow, alone or for what others have of it: that record's figures do not hold here"
        )
    };
    let beside = if recorded.is_of_this_cpu {
        "Beside the newest record of this CPU"
    } else {
        "No record is of this CPU: beside the newest of another"
    };
    Some(format!(
        "{beside} ({}) a core of this box was {holds} (a signature check, stage sign, p50: {} there, {} here).",
        recorded.of,
        micros(recorded.check_us),
        micros(sign_us)
    ))
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

/// Something measured, in words, and whether it limits the box.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) is_limit: bool,
    pub(super) text: String,
}

fn measured(summary: &Summary) -> impl Iterator<Item = Told> {
    noise::pauses(summary).into_iter().chain(noise::taken(summary)).chain(room::of(summary))
}

/// The server's threads that may run on the client's CPU.
pub(super) fn beside_client(summary: &Summary) -> Vec<&str> {
    // With more CPUs, a thread that is not pinned can run elsewhere.
    let is_tight = summary.environment.cpus.len() < CLIENTS_OWN_FROM_CPUS;
    let may_run = |cpu: Option<usize>| cpu.map_or(is_tight, |cpu| cpu == summary.client_cpu);
    let there = summary.threads.iter().filter(|thread| may_run(thread.cpu));
    there.map(|thread| thread.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Recorded;

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
                "In the slowest thousandth of orders that rest (10 of them, 4.0 ms on average) most of the 4.0 ms that they took longer than those around the median passed in journal, 98 %",
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
    fn a_run_says_whether_the_records_figures_hold_on_its_box() {
        let mut summary = crate::summary::example();
        assert_eq!(beside_record(&summary), None);
        let (own, of_another) = (
            "Beside the newest record of this CPU",
            "No record is of this CPU: beside the newest of another",
        );
        for (check_us, is_of_this_cpu, beside, told) in [
            (
                13.0,
                true,
                own,
                "2.0 times as slow, alone or for what others have of it: that record's figures do not hold here",
            ),
            (25.0, true, own, "as fast: that record's figures may hold here while it is quiet"),
            (52.0, true, own, "2.0 times as fast: that record's figures are longer than those here"),
            (25.0, false, of_another, "as fast: that record's figures may hold here while it is quiet"),
        ] {
            let of = "maker-quote on Some CPU, 2026-11-22".to_owned();
            summary.recorded = Some(Recorded { check_us, of, is_of_this_cpu });
            let check = format!("(a signature check, stage sign, p50: {check_us:.1} µs there, 26.0 µs here)");
            let expected = format!(
                "{beside} (maker-quote on Some CPU, 2026-11-22) a core of this box was {told} {check}."
            );
            assert_eq!(beside_record(&summary), Some(expected));
        }
    }

    #[test]
    fn answers_that_wait_for_no_disk_are_said_not_to_be_as_serves() {
        let mut summary = crate::summary::example();
        let said = without_disk(&summary).unwrap();
        assert!(said.starts_with(
            "No answer waited for a disk here (`committed`); those of `serve` do by default (`durable`). "
        ));
        summary.settings = vec![DURABLE.to_owned()];
        assert_eq!(without_disk(&summary), None);
    }
}
