//! Where the time of requests went, in words, and what can be done about the largest part.

use super::numbers::{count_of, micros};
use super::room;
use super::words::{beside_client, class};
use crate::parts::Parts;
use crate::stats::Quantiles;
use crate::summary::{ClassTimes, Journal, Summary};

/// Where the time of the commonest class went, in its middle and in its tail.
pub(super) fn of(summary: &Summary) -> Vec<String> {
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
                taken(stage, *us, parts, summary).unwrap_or_else(|| of_stage(stage, *us, parts, summary)),
            )
        })
        .collect();
    by_size.push(place(parts.late_us, "before they were sent", String::new()));
    let unseen = if let Some(client_us) = parts.client_us {
        by_size.push(place(client_us, "while the client was away", of_client(parts, summary)));
        if parts.stages.is_empty() { IN_SERVER_OR_UNSEEN } else { UNSEEN }
    } else {
        "outside the server's stages (kernel, network, scheduler, other processes, the client)"
    };
    by_size.push(place(parts.unseen_us(), unseen, of_unseen(parts, summary)));
    by_size.sort_by(|one, other| other.0.total_cmp(&one.0));
    let is_told = |us: f64| TOLD_PERCENT_MIN <= parts.percent(us);
    let told = by_size.iter().take_while(|(us, ..)| is_told(*us)).take(TOLD_MAX).count();
    let places: Vec<&str> = by_size[..told].iter().map(|(_, place, _)| place.as_str()).collect();
    let rest_us = by_size[told..].iter().map(|(us, ..)| us).sum::<f64>().max(0.0);
    format!(
        "{which} of {} ({} of them, {} on average{}) most of it passed {}; in all else, {}.{}",
        class(&parts.class),
        count_of(parts.requests),
        micros(parts.latency_us),
        shares(parts, summary),
        places.join("; then "),
        of(rest_us),
        waited(parts, summary)
            .unwrap_or_else(|| by_size.first().map_or_else(String::new, |(.., advice)| advice.clone()))
    )
}

/// From which share of their time on slow requests are told to have waited for a CPU that was taken, whatever stage
/// that shows in.
const WAITED_PERCENT_MIN: f64 = 30.0;

/// That slow requests waited for their loop's CPU, if the loop noticed so much of it during the run.
fn waited(parts: &Parts, summary: &Summary) -> Option<String> {
    let away = room::away(summary).filter(|_| !parts.stages.is_empty())?;
    let (waits_us, one_in) = match parts.of.as_str() {
        "p99" => (away.wait_p99_us, "a hundred"),
        "p99.9" => (away.wait_p999_us, "a thousand"),
        _ => return None,
    };
    (WAITED_PERCENT_MIN <= parts.percent(waits_us)).then(|| {
        format!(
            " The machine's is {:.0} % or more of it, whatever place it shows in: by the loop's own rounds during the run one in \
             {one_in} that came waited for {} or longer until the loop had its CPU back, and stages go by the clock, so what \
             came meanwhile lay unseen, in recv and in queue. No setting of the server changes that: whole cores of the host \
             do, or stopping whoever had them.",
            parts.percent(waits_us).min(100.0),
            micros(waits_us)
        )
    })
}

/// Whose the time was, in the tail: the rig's, the server's, or neither's.
fn shares(parts: &Parts, summary: &Summary) -> String {
    let is_told = parts.of != "p50" && !is_readers_too(parts, summary);
    let Some(client_us) = parts.client_us.filter(|_| is_told) else { return String::new() };
    if parts.stages.is_empty() {
        let rig = parts.percent(parts.late_us + client_us);
        return format!("; {rig:.0} % the rig's, the rest the server's or neither's");
    }
    let stages_us: f64 = parts.stages.iter().map(|(_, us)| us).sum();
    let [rig, server, neither] =
        [parts.late_us + client_us, stages_us, parts.unseen_us()].map(|us| parts.percent(us));
    format!("; {rig:.0} % the rig's, {server:.0} % in the server's stages, {neither:.0} % neither's")
}

/// Where nobody measures.
const UNSEEN: &str = "where no stage looks (kernel, network, scheduler, other processes)";
/// Likewise, of requests of which the server tells no stage.
const IN_SERVER_OR_UNSEEN: &str = "in the server, which tells no stages of them, or where nobody looks (kernel, network, scheduler, other processes)";

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

/// What can be done about a stage that takes most of the time, if anybody asks what to buy for it.
fn of_stage(stage: &str, us: f64, parts: &Parts, summary: &Summary) -> String {
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
            return format!(
                " In journal a durable answer waits for the disk.{} `journal.durability=committed` does without.",
                of_writes(us, parts, summary)
            );
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
        "; `auth.known_signers_bytes` brings a known signer's check to about a quarter of that (off until it has \
         been reviewed)"
    };
    format!(
        " A signature is the software's arithmetic at the CPU's speed, not a setting of the machine{known}."
    )
}

/// From which share of what requests waited for the journal on one of its causes is told to be the cause.
const CAUSE_MIN: f64 = 0.5;

/// Whether requests that waited `us` for the journal waited for the disk or for its thread's CPU.
fn of_writes(us: f64, parts: &Parts, summary: &Summary) -> String {
    const CHECK: &str =
        "`outcry check` says what a write takes there alone, and whether a mount with discard stops it";
    let Some(Journal { write, run_delay }) = summary.journal else { return format!(" {CHECK}.") };
    let (which, of): (_, fn(&Quantiles) -> f64) = match parts.of.as_str() {
        "p50" => ("half of them", |times| times.p50_us),
        "p99" => ("one in a hundred", |times| times.p99_us),
        _ => ("one in a thousand", |times| times.p999_us),
    };
    let told = format!(
        " Of {} writes meanwhile {which} took {} or more until the thread went on, the longest {}; for {which} the \
         thread was ready and had no CPU for {} or more, {} at most:",
        count_of(write.count),
        micros(of(&write)),
        micros(write.max_us),
        micros(of(&run_delay)),
        micros(run_delay.max_us)
    );
    let beside = if beside_client(summary).contains(&"journal") {
        format!(", which it shares with the client on CPU {} here", summary.client_cpu)
    } else {
        String::new()
    };
    if CAUSE_MIN * us <= of(&run_delay) {
        format!("{told} most of it is its CPU{beside}, and a core for the journal's thread ends that.")
    } else if CAUSE_MIN * us <= of(&write) {
        format!("{told} most of it is the disk. {CHECK}.")
    } else {
        format!(
            "{told} neither explains it alone. An answer that comes during a write waits for that one and its own."
        )
    }
}

/// Whether the client's part has what the server did, for both take turns on one CPU.
fn is_readers_too(parts: &Parts, summary: &Summary) -> bool {
    parts.class == "read" && beside_client(summary).contains(&"outcry-reader")
}

/// Whose the client's part is.
fn of_client(parts: &Parts, summary: &Summary) -> String {
    if is_readers_too(parts, summary) {
        let cpu = summary.client_cpu;
        return format!(
            " On CPU {cpu} the client takes turns with outcry-reader, so what the reader did is in there; with a core for \
             each they would be told apart."
        );
    }
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
    let around = summary.jitter_before.iter().chain(&summary.jitter_after).map(|row| row.max_us);
    let meanwhile = summary.loops.iter().filter_map(|told| Some(told.away.as_ref()?.max_us));
    // The requests in the middle meet no gap.
    let longest_us = around.chain(meanwhile).reduce(f64::max).filter(|_| parts.of != "p50");
    let mut said = match longest_us {
        _ if parts.stages.is_empty() => {
            " What the server had of it is stage `read` of /debug/latency, on the operator's listener."
                .to_owned()
        }
        None => String::new(),
        Some(gap_us) if gap_us < parts.unseen_us() => format!(
            " Of what no stage saw, one stop of the machine explains at most {} (the longest gap of a thread that only \
             spins, before, after or during the run); {} of it nothing here explains.",
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

#[cfg(test)]
mod tests {
    use super::super::words::limits;
    use super::*;
    use crate::away::Away;
    use crate::placement::Thread;

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
    fn of_a_read_nobody_is_blamed_where_the_reader_takes_turns_with_the_client() {
        let reader = Thread {
            name: "outcry-reader".to_owned(),
            cpu: Some(1),
            ..crate::summary::example().threads[0].clone()
        };
        for (client_cpu, is_blamed) in [(0, true), (1, false)] {
            let mut summary = Summary { client_cpu, ..crate::summary::example() };
            summary.threads = vec![reader.clone()];
            for parts in &mut summary.parts {
                "read".clone_into(&mut parts.class);
                parts.stages.clear();
                (parts.outside_us, parts.client_us) = (parts.latency_us, Some(parts.latency_us));
            }
            "read".clone_into(&mut summary.classes[0].class);
            let said = &limits(&summary)[1];
            assert_eq!(said.contains("% the rig's"), is_blamed, "{said}");
            assert_eq!(said.contains("That is the rig's"), is_blamed, "{said}");
            assert_eq!(said.contains("what the reader did is in there"), !is_blamed, "{said}");
        }
    }

    #[test]
    fn a_tail_that_waited_for_its_loops_cpu_is_the_machines_whatever_stage_it_shows_in() {
        for (wait, wait_p999_us, is_machines) in
            [("spin", 3_000.0, true), ("spin", 1_000.0, false), ("park", 3_000.0, false)]
        {
            let mut summary = crate::summary::example();
            wait.clone_into(&mut summary.threads[0].wait);
            let away = Away { lost_percent: 1.0, max_us: 9_000.0, wait_p999_us, wait_p99_us: 0.0 };
            summary.loops[0].away = Some(away);
            let tail = summary.parts.last_mut().expect("there is a tail");
            (tail.latency_us, tail.stages) = (4_000.0, vec![("queue".to_owned(), 3_900.0)]);
            let said = &limits(&summary)[1];
            assert_eq!(said.contains("The machine's is 75 % or more of it"), is_machines, "{said}");
            assert_eq!(said.contains("more shards"), !is_machines, "{said}");
        }
    }

    #[test]
    fn a_durable_tail_is_the_disks_or_its_threads_cpus() {
        // Of the slowest thousandth 3.9 ms are in journal.
        for (write_us, run_delay_us, cause) in [
            (3_800.0, 10.0, "most of it is the disk."),
            (3_800.0, 3_000.0, "most of it is its CPU, which it shares with the client on CPU 0 here,"),
            (1_000.0, 10.0, "neither explains it alone."),
        ] {
            let mut summary = Summary { client_cpu: 0, ..crate::summary::example() };
            let thread = summary.threads[0].clone();
            summary.threads.push(Thread { name: "journal".to_owned(), cpu: None, ..thread });
            let times = |p999_us| Quantiles { count: 7_000, p999_us, ..Quantiles::default() };
            summary.journal = Some(Journal { write: times(write_us), run_delay: times(run_delay_us) });
            let said = &limits(&summary)[1];
            assert!(said.contains(" Of 7,000 writes meanwhile one in a thousand took "), "{said}");
            assert!(said.contains(cause), "{cause}: {said}");
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
                    "spins, before, after or during the run); 3.7 ms of it nothing here explains",
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
                vec![unseen, "spins, before, after or during the run); 3.5 ms of it nothing here explains."],
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
            tail.contains("98 % (3.9 ms); in all else, 2 % (100 µs). In journal a durable answer waits for the disk. `outcry check`"),
            "{tail}"
        );
        let settings = vec!["journal.durability=committed".to_owned()];
        let committed = limits(&Summary { settings, ..example.clone() });
        assert!(
            committed[1].ends_with("reads on a connection of their own hold no order up."),
            "{committed:?}"
        );
    }
}
