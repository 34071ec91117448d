//! What a report says in words: what was measured, and what limits the box in front of us.

use super::numbers::{count, count_of, micros};
use super::{arrivals, room};
use crate::jitter::GAP_US_MAX;
use crate::parts::Parts;
use crate::placement::{self, MachineLimit};
use crate::scenario::Data;
use crate::summary::{ClassTimes, Summary};
use crate::verdict::{LOST_PERCENT_MAX, RATE_MISSED};

/// With fewer CPUs than this the client cannot have one of its own.
const CLIENTS_OWN_FROM_CPUS: usize = 4;

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
        "{} requests a second were offered over {} connections for {} s; {} a second were answered, and every \
         answer was checked.{}",
        count(summary.offered_per_s),
        summary.connections,
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

/// What others had of the CPUs, by every account there is.
pub(crate) fn lost(summary: &Summary) -> String {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    let most = rows.map(|row| row.lost_percent).fold(0.0, f64::max);
    let kernel = kernel(summary).map_or_else(String::new, |words| format!("; {words}"));
    format!(
        "Meanwhile other processes had {:.3} CPUs and the host {:.3}{kernel}; before and after, a thread that only \
         spins lost at most {most:.2} % of a CPU.",
        summary.share.others, summary.share.stolen
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
    let mut found = where_time_went(summary);
    found.extend(measured(summary).filter(|told| told.is_limit).map(|told| told.text));
    found.extend(summary.machine_limits.iter().map(|machine| {
        let MachineLimit { limit, change, .. } = machine;
        let change = change.as_ref().map_or_else(String::new, |change| format!(" To change: {change}."));
        let apart = if machine.is_of_waking() { spins_here(summary) } else { String::new() };
        format!("By the server's own account{}: {limit}.{apart}{change}", machine.whose())
    }));
    let answers = summary.machine_answers.iter();
    found.extend(answers.map(|text| format!("By the server's own account, left alone, {text}")));
    let governor = &summary.environment.governor;
    if summary.machine_limits.is_empty() && !["performance", "unknown"].contains(&governor.as_str()) {
        found.push(format!("The CPUs' governor is {governor}: their frequency changes under load."));
    }
    found
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

/// What to know before the figures are compared with others, or believed of `serve`.
pub(crate) fn cautions(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(placement::caution(&summary.threads, &summary.threads_by_itself));
    found.extend(measured(summary).filter(|told| !told.is_limit).map(|told| told.text));
    let environment = &summary.environment;
    if environment.cpus.len() < CLIENTS_OWN_FROM_CPUS {
        let (count, cpu) = (environment.cpus.len(), summary.client_cpu);
        let names = beside_client(summary).join(", ");
        let beside = if names.is_empty() { names } else { format!(" beside {names}") };
        found.push(if summary.client_sleeps {
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
        found.push("All data were in shared memory: no disk is in these figures.".to_owned());
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
    let waits = if summary.client_sleeps { "sleeps in between" } else { "polls" };
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
    pauses(summary).into_iter().chain(room::of(summary))
}

/// Where the time of the commonest class went, in its middle and in its tail.
fn where_time_went(summary: &Summary) -> Vec<String> {
    let told = |times: &&ClassTimes| summary.parts.iter().any(|parts| parts.class == times.class);
    let Some(most) = summary.classes.iter().filter(told).max_by_key(|times| times.latency.count) else {
        return Vec::new();
    };
    let of_most = summary.parts.iter().filter(|parts| parts.class == most.class);
    of_most.map(|parts| went(parts, summary)).collect()
}

/// Places where less of the time went are not told, nor more places than this.
const TOLD_PERCENT_MIN: f64 = 3.0;
/// See [`TOLD_PERCENT_MIN`].
const TOLD_MAX: usize = 3;

fn went(parts: &Parts, summary: &Summary) -> String {
    let which = match parts.of.as_str() {
        "p50" => "Around the median",
        "p99" => "Around p99",
        _ => "In the slowest thousandth",
    };
    let of = |us: f64| format!("{:.0} % ({})", parts.percent(us), micros(us));
    let place = |us: f64, what: &str, advice: String| (us, format!("{what}, {}", of(us)), advice);
    let mut by_size: Vec<(f64, String, String)> = parts
        .stages
        .iter()
        .map(|(stage, us)| {
            place(
                *us,
                &format!("in {stage}"),
                taken(stage, *us, parts, summary).unwrap_or_else(|| of_stage(stage, summary)),
            )
        })
        .collect();
    by_size.push(place(parts.late_us, "before they were sent", String::new()));
    let unseen = if let Some(client_us) = parts.client_us {
        by_size.push(place(client_us, "while the client was away", of_client(summary)));
        "where no stage looks (kernel, network, scheduler, other processes)"
    } else {
        "outside the server's stages (kernel, network, scheduler, other processes, the client)"
    };
    by_size.push(place(parts.unseen_us(), unseen, of_unseen(parts, summary)));
    by_size.sort_by(|one, other| other.0.total_cmp(&one.0));
    let is_told = |us: f64| TOLD_PERCENT_MIN <= parts.percent(us);
    let told = by_size.iter().take_while(|(us, ..)| is_told(*us)).take(TOLD_MAX).count();
    let places: Vec<&str> = by_size[..told].iter().map(|(_, place, _)| place.as_str()).collect();
    let rest_us: f64 = by_size[told..].iter().map(|(us, ..)| us).sum();
    format!(
        "{which} of {} ({} of them, {} on average) most of it passed {}; in all else, {}.{}",
        class(&parts.class),
        count_of(parts.requests),
        micros(parts.latency_us),
        places.join("; then "),
        of(rest_us),
        by_size.first().map_or("", |(.., advice)| advice)
    )
}

/// What can be done about a stage that takes most of the time, if anybody asks what to buy for it.
/// Stages in which a request is computed with and waits for nothing.
const COMPUTES: [&str; 4] = ["parse", "auth", "sign", "match"];
/// From so many times its median on it did not compute there.
const TAKEN_TIMES_MIN: f64 = 5.0;

/// That it was not the computing that took so long, if so.
fn taken(stage: &str, us: f64, parts: &Parts, summary: &Summary) -> Option<String> {
    let told = summary.class(&parts.class)?.stages.iter().find(|told| told.stage == stage)?;
    let is_taken = COMPUTES.contains(&stage) && TAKEN_TIMES_MIN * told.time.p50_us < us;
    is_taken.then(|| {
        format!(
            " A request is only computed with in {stage}, half of them for {} at most: for as long as this the CPU was \
             taken. `outcry check --jitter 10` says by whom.",
            micros(told.time.p50_us)
        )
    })
}

fn of_stage(stage: &str, summary: &Summary) -> String {
    const KNOWN: &str = "auth.known_signers_bytes=";
    let is_committed = summary.settings.iter().any(|setting| setting == "journal.durability=committed");
    match stage {
        "sign" => {}
        "queue" => {
            return " In queue a request waits for the signatures of others on its loop, of which a batch has up to 15: \
                    more shards (`cpu.shards`) or known signers (`auth.known_signers_bytes`) make that shorter."
                .to_owned();
        }
        "journal" if !is_committed => {
            return " In journal a durable answer waits for the disk: `outcry check` says how long a write takes there, and \
                    whether a mount with discard stops it for milliseconds; `journal.durability=committed` does without."
                .to_owned();
        }
        "journal" => {
            return " In journal an answer waits for nothing on a disk here (`committed`): it leaves behind those before it on \
                    its connection, in request order, as behind a read that the reader still has: reads on a connection of their \
                    own hold no order up."
                .to_owned();
        }
        _ => return String::new(),
    }
    let is_on = |setting: &String| setting.strip_prefix(KNOWN).is_some_and(|bytes| bytes != "0");
    let known = if summary.settings.iter().any(is_on) {
        ""
    } else {
        "; `auth.known_signers_bytes` brings a known signer's check from some 26 µs to 7 (off until it has been \
         reviewed)"
    };
    format!(
        " A signature is the software's arithmetic at the CPU's speed, not a setting of the machine{known}."
    )
}

/// Whose the client's part is.
fn of_client(summary: &Summary) -> String {
    let beside = beside_client(summary).join(", ");
    let turns = if beside.is_empty() {
        String::new()
    } else {
        let cpu = summary.client_cpu;
        format!(" or had no CPU, for it takes turns on CPU {cpu} with {beside}")
    };
    format!(
        " That is the rig's, and no reason to buy anything for the server: the answer may have lain there while the \
         client sent, read others{turns}."
    )
}

/// What is known of the remainder that no stage has: what the machine explains of it, and what the rig does.
fn of_unseen(parts: &Parts, summary: &Summary) -> String {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    // The requests in the middle meet no gap.
    let longest_us = rows.map(|row| row.max_us).reduce(f64::max).filter(|_| parts.of != "p50");
    let mut said = match longest_us {
        None => String::new(),
        Some(gap_us) if gap_us < parts.unseen_us() => format!(
            " Of what no stage saw, one stop of the machine explains at most {} (the longest gap of a thread that only \
             spins, on one CPU after another); {} of it nothing here explains. `outcry check --jitter 10` keeps all CPUs busy \
             at once, as this run did, and tells what they lose then.",
            micros(gap_us),
            micros(parts.unseen_us() - gap_us)
        ),
        Some(gap_us) => format!(
            " One stop of the machine may be all that no stage saw: a thread that only spins lost up to {} at once.",
            micros(gap_us)
        ),
    };
    let beside = beside_client(summary).join(", ");
    if parts.client_us.is_none() && !beside.is_empty() {
        let cpu = summary.client_cpu;
        let what = if summary.client_sleeps { "its own wake-ups are" } else { "what it waited for them is" };
        let shared = format!(
            " The client shared CPU {cpu} with {beside}: {what} in there too, by how much was not measured, and no \
             reason to buy anything for the server."
        );
        said.push_str(&shared);
    }
    said
}

/// The server's threads that may run where the client does.
fn beside_client(summary: &Summary) -> Vec<&str> {
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
    use crate::jitter::Jitter;
    use crate::verdict::Verdict;

    #[test]
    fn limits_say_where_time_went_and_what_was_measured() {
        let said = limits(&crate::summary::example());
        for (place, start) in [
            (2, "By the server's own account: 2 cores for 2 loops. To change: a machine with 4 cores."),
            (3, "By the server's own account, left alone, orders a second: about 28,000"),
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
    fn computing_that_takes_many_times_its_median_was_not_computing() {
        for (stage, us, is_taken) in [
            ("sign", 2_400.0, true),
            ("sign", 100.0, false),
            ("queue", 2_400.0, false),
            ("send", 2_400.0, false),
        ] {
            let mut summary = crate::summary::example();
            summary.classes[0].stages[0].stage = stage.to_owned();
            summary.parts[1].stages = vec![(stage.to_owned(), us)];
            let said = &limits(&summary)[1];
            let expected = format!("only computed with in {stage}, half of them for 26.0 µs at most");
            assert_eq!(said.contains(&expected), is_taken, "{stage} {us}: {said}");
        }
    }

    #[test]
    fn a_wake_up_that_this_run_did_without_is_said_to_be_of_serve_left_alone() {
        let account = |kind: &str, wait: &str| {
            let mut summary = crate::summary::example();
            kind.clone_into(&mut summary.machine_limits[0].kind);
            wait.clone_into(&mut summary.threads[0].wait);
            limits(&summary).remove(2)
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
    fn what_takes_most_says_whose_it_is() {
        let example = crate::summary::example();
        let sign = "not a setting of the machine; `auth.known_signers_bytes` brings";
        assert!(limits(&example)[0].contains(sign), "{}", limits(&example)[0]);
        let known = |bytes: &str| Summary {
            settings: vec![format!("auth.known_signers_bytes={bytes}")],
            ..example.clone()
        };
        assert!(limits(&known("0"))[0].contains(sign));
        assert!(limits(&known("16777216"))[0].ends_with("not a setting of the machine."));

        let tail = |longest_us: f64, client_cpu: usize, client_us: Option<f64>| {
            let mut summary = Summary { client_cpu, ..example.clone() };
            summary.parts[1].stages[1].1 = 100.0;
            (summary.parts[1].outside_us, summary.parts[1].client_us) = (3_874.0, client_us);
            summary.jitter_after[0].max_us = longest_us;
            limits(&summary).remove(1)
        };
        let shared = "The client shared CPU 0 with outcry-shard0: what it waited for them is in there too";
        let outside = "passed outside the server's stages (kernel, network, scheduler, other processes, the client), 97 % (3.9 ms)";
        let unseen = "passed where no stage looks (kernel, network, scheduler, other processes), 92 % (3.7 ms); then while the client was away, 5 % (200 µs)";
        let away = "passed while the client was away, 92 % (3.7 ms); then where no stage looks (kernel, network, scheduler, other \
                    processes), 4 % (174 µs); in all else, 3 % (126 µs). That is the rig's";
        let turns = "read others or had no CPU, for it takes turns on CPU 0 with outcry-shard0.";
        for (longest_us, client_cpu, client_us, parts, is_shared) in [
            (
                193.0,
                0,
                None,
                vec![
                    outside,
                    "explains at most 193 µs",
                    "spins, on one CPU after another); 3.7 ms of it nothing here explains",
                ],
                true,
            ),
            (193.0, 1, None, vec![outside, "explains at most 193 µs"], false),
            (
                4_000.0,
                1,
                None,
                vec!["may be all that no stage saw: a thread that only spins lost up to 4.0 ms"],
                false,
            ),
            (
                193.0,
                0,
                Some(200.0),
                vec![unseen, "spins, on one CPU after another); 3.5 ms of it nothing here explains."],
                false,
            ),
            (193.0, 0, Some(3_700.0), vec![away, turns], false),
            (193.0, 1, Some(3_700.0), vec![away, "the client sent, read others."], false),
        ] {
            let said = tail(longest_us, client_cpu, client_us);
            for part in &parts {
                assert!(said.contains(part), "{part}\n{said}");
            }
            assert_eq!(said.contains(shared), is_shared, "{said}");
        }
        // A disk that takes most is told, and nothing is said of the machine's stops.
        let tail = limits(&example).remove(1);
        assert!(
            tail.contains("98 % (3.9 ms); in all else, 2 % (100 µs). In journal a durable answer waits for the disk: `outcry check`"),
            "{tail}"
        );
        let settings = vec!["journal.durability=committed".to_owned()];
        let committed = limits(&Summary { settings, ..example.clone() });
        assert!(
            committed[1].ends_with("reads on a connection of their own hold no order up."),
            "{committed:?}"
        );
    }

    #[test]
    fn a_pause_is_a_limit_and_quiet_cores_are_only_told() {
        let mut summary = crate::summary::example();
        let told = cautions(&summary);
        assert!(
            told[0].starts_with("This placement was chosen for measuring: outcry-shard0 on CPU 0 (spin).")
        );
        assert!(told[1].starts_with("The cores are quiet"), "{}", told[1]);
        assert!(
            told[2].starts_with(
                "outcry-shard0 worked 6 % of the time, 30.0 µs for each of 2,000 requests a second. Of that"
            ),
            "{}",
            told[2]
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
    fn every_reason_against_a_run_has_something_to_do() {
        let mut summary = crate::summary::example();
        summary.jitter_after[1] =
            Jitter { lost_percent: 67.0, threads_percent: Some(60.0), ..summary.jitter_after[1].clone() };
        for (reason, word) in [
            ("others had CPU 1: after the run", "CPU 1: stop what else runs there (`top -H`"),
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
