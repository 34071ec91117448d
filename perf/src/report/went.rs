//! Where the time of requests went, in words, and what can be done about the largest part.

use super::numbers::{count_of, micros};
use super::taker::Taken;
use super::words::{beside_client, class, is_durable};
use super::{arrivals, room, taker, writes};
use crate::parts::Parts;
use crate::summary::Summary;
use crate::workload::BATCH;

/// Where the time of the commonest class went, in its middle and in its tail.
pub(super) fn of(summary: &Summary) -> Vec<String> {
    let Some(most) = summary.commonest(|times| summary.has_parts(times)) else {
        return Vec::new();
    };
    let of_most = summary.parts.iter().filter(|parts| parts.class == most.class);
    of_most.map(|parts| went(parts, summary)).collect()
}

/// The name of the reader's thread.
pub(super) const READER: &str = "outcry-reader";

/// Places with a smaller part of the time than this are not reported.
const TOLD_PERCENT_MIN: f64 = 3.0;
/// No more places than this are reported.
const TOLD_MAX: usize = 3;

fn went(parts: &Parts, summary: &Summary) -> String {
    let which = match parts.of.as_str() {
        "p50" => "Around the median",
        "p99" => "Around p99",
        _ => "In the slowest thousandth",
    };
    let (all, more) = (parts, beyond(parts, summary));
    let parts = more.as_ref().unwrap_or(parts);
    let of = |us: f64| format!("{:.0} % ({})", parts.percent(us), micros(us));
    let by_size = places(parts);
    let is_told = |place: &&Place| TOLD_PERCENT_MIN <= parts.percent(place.us);
    let it = more.as_ref().map_or_else(
        || "it".to_owned(),
        |more| format!("the {} that they took longer than those around the median", micros(more.latency_us)),
    );
    let told = by_size.iter().take_while(is_told).take(TOLD_MAX).count();
    let places = by_size[..told].iter().map(|Place { us, at }| format!("{}, {}", at.words(parts), of(*us)));
    let places: Vec<String> = places.collect();
    let rest_us = by_size[told..].iter().map(|place| place.us).sum::<f64>().max(0.0);
    format!(
        "{which} of {} ({} of them, {} on average{}) most of {it} passed {}; in all else, {}.{}",
        class(&parts.class),
        count_of(parts.requests),
        micros(all.latency_us),
        shares(all, summary),
        places.join("; then "),
        of(rest_us),
        waited(parts, summary).unwrap_or_else(|| by_size
            .first()
            .map_or_else(String::new, |place| place.advice(parts, summary)))
    )
}

/// From this multiple of the median on, only what slow requests took longer is explained.
const SLOW_TIMES_MIN: f64 = 1.25;

/// What slow requests took longer than those around the median. None for those around the median, for requests that are
/// hardly slower, and for reads, which have no stages.
pub(super) fn beyond(parts: &Parts, summary: &Summary) -> Option<Parts> {
    let is_middle = |other: &&Parts| other.class == parts.class && other.of == "p50";
    let middle = summary.parts.iter().find(is_middle).filter(|_| !parts.stages.is_empty())?;
    (SLOW_TIMES_MIN * middle.latency_us <= parts.latency_us).then(|| parts.beyond(middle))
}

/// A place where requests spent their time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// In a stage of the server's.
    Stage(String),
    /// Before they were sent.
    Late,
    /// While the client was away.
    Client,
    /// Waiting for a loop that worked on others.
    Line,
    /// Where nothing measures.
    Unseen,
}

/// How much time went to a place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) us: f64,
    pub(super) at: Where,
}

/// Every place, the one with most of the time first.
pub(super) fn places(parts: &Parts) -> Vec<Place> {
    let stages = parts.stages.iter().map(|(stage, us)| Place { us: *us, at: Where::Stage(stage.clone()) });
    let mut all: Vec<Place> = stages.collect();
    all.push(Place { us: parts.late_us, at: Where::Late });
    all.extend(parts.client_us.map(|us| Place { us, at: Where::Client }));
    all.extend(parts.line_us.map(|us| Place { us, at: Where::Line }));
    all.push(Place { us: parts.unseen_us(), at: Where::Unseen });
    all.sort_by(|one, other| other.us.total_cmp(&one.us));
    all
}

impl Where {
    fn words(&self, parts: &Parts) -> String {
        match self {
            Self::Stage(stage) => format!("in {stage}"),
            Self::Late => "before they were sent".to_owned(),
            Self::Client => "while the client was away".to_owned(),
            Self::Line => format!("in line before their loop, behind {}", behind(parts)),
            Self::Unseen if parts.client_us.is_none() => {
                "outside the server's stages (the client, kernel, network, a CPU that was taken)".to_owned()
            }
            Self::Unseen if parts.stages.is_empty() => IN_SERVER_OR_UNSEEN.to_owned(),
            Self::Unseen => UNSEEN.to_owned(),
        }
    }
}

impl Place {
    /// What can be done about it, as a sentence that follows others.
    fn advice(&self, parts: &Parts, summary: &Summary) -> String {
        if let Some(taken) = clients(&self.at, parts, summary) {
            return format!(
                " The client had no CPU: while the load was on others had {:.1} % of its own. {}; to change: {}.",
                summary.client_lost_percent.unwrap_or(0.0),
                taken.by(),
                taken.remedy()
            );
        }
        match &self.at {
            Where::Stage(stage) => taken(stage, self.us, parts, summary)
                .unwrap_or_else(|| of_stage(stage, self.us, parts, summary)),
            Where::Late => String::new(),
            Where::Client => of_client(parts, summary),
            Where::Line => of_line(parts, summary),
            Where::Unseen => of_unseen(parts, summary),
        }
    }
}

/// The class of requests that the loop worked on for most of the time in which these waited for it.
pub(super) fn behind(parts: &Parts) -> &'static str {
    parts.behind.as_deref().map_or("others", class)
}

/// What can be done about the requests before them.
fn of_line(parts: &Parts, summary: &Summary) -> String {
    let batch = if has_batches(summary) { "smaller batches, " } else { "" };
    format!(
        " By the client's clock and the server's stages the loop was at others while these lay in the kernel, mostly at {}: \
         {batch}more shards (`cpu.shards`) or known signers (`auth.known_signers_bytes`) make that shorter.",
        behind(parts)
    )
}

/// Who had the client's CPU, if the place is the client's and others had its CPU for long enough.
pub(super) fn clients(at: &Where, parts: &Parts, summary: &Summary) -> Option<Taken> {
    matches!(at, Where::Late | Where::Client).then(|| taker::of_client(summary, &parts.of))?
}

/// Slow requests are said to have waited for a CPU that was taken if that was at least this part of their time, in
/// whichever stage it shows.
const WAITED_PERCENT_MIN: f64 = 30.0;

/// How long slow requests waited for their loop's CPU, if the loop noticed that much during the run.
fn waited_us(parts: &Parts, summary: &Summary) -> Option<f64> {
    let away = room::away(summary).filter(|_| !parts.stages.is_empty())?;
    let waits_us = away.of_us(&parts.of)?;
    // What was the rig's while the loop had no CPU, or shows as waiting for others, is not reported twice.
    let rigs_us = parts.late_us + parts.client_us.unwrap_or(0.0);
    let known_us = rigs_us.max(parts.line_us.unwrap_or(0.0));
    Some(waits_us).filter(|us| WAITED_PERCENT_MIN <= parts.percent(*us) && known_us < *us)
}

/// The part of their time that this wait was, in percent.
pub(super) fn waited_percent(parts: &Parts, summary: &Summary) -> Option<f64> {
    waited_us(parts, summary).map(|us| parts.percent(us).min(100.0))
}

/// This wait as a sentence.
fn waited(parts: &Parts, summary: &Summary) -> Option<String> {
    waited_us(parts, summary).map(|waits_us| {
        format!(
            " The machine's is some {:.0} % of it, whatever place it shows in: by the loop's own rounds during the run those around \
             {} waited for {} on average until the loop had its CPU back, and stages go by the clock, so what came meanwhile lay \
             unseen, in recv and in queue. {}; to change: {}.",
            parts.percent(waits_us).min(100.0),
            parts.of,
            micros(waits_us),
            taker::by(summary),
            taker::remedy(summary)
        )
    })
}

/// Whose the tail's time was: the rig's, the server's, or neither's.
fn shares(parts: &Parts, summary: &Summary) -> String {
    let is_told = parts.of != "p50" && !is_readers_too(parts, summary);
    let Some(client_us) = parts.client_us.filter(|_| is_told) else { return String::new() };
    let whose =
        taker::of_client(summary, &parts.of).map_or("the rig's", |_| "the rig's, whose CPU was taken");
    if parts.stages.is_empty() {
        let rig = parts.percent(parts.late_us + client_us);
        return format!("; {rig:.0} % {whose}, the rest the server's or neither's");
    }
    let stages_us: f64 = parts.stages.iter().map(|(_, us)| us).sum();
    let [rig, server, neither] =
        [parts.late_us + client_us, stages_us, parts.unseen_us()].map(|us| parts.percent(us));
    let line = parts
        .line_us
        .map_or_else(String::new, |us| format!(", {:.0} % in line before its loop", parts.percent(us)));
    format!("; {rig:.0} % {whose}, {server:.0} % in the server's stages{line}, {neither:.0} % neither's")
}

/// Where nothing measures, in words.
const UNSEEN: &str = "where no stage looks (kernel, network, a CPU that was taken)";
/// Where nothing measures, for requests that have no stages.
const IN_SERVER_OR_UNSEEN: &str = "in the server, which tells no stages of them, or where nobody looks (kernel, network, a CPU that was taken)";

/// Stages in which a request is worked on and waits for nothing.
const COMPUTES: [&str; 4] = ["parse", "auth", "sign", "match"];
/// From this multiple of its median on, a stage was not only work.
const TAKEN_TIMES_MIN: f64 = 5.0;

/// Stages in which a request waits for others on its loop.
pub(super) const IN_LINE: [&str; 2] = ["recv", "queue"];
/// If a loop has room, a request waits for at most this many arrivals at once: batches, or bursts.
const LINES_MAX: f64 = 3.0;
/// If requests come one by one at random, it waits for at most this many: on a loop that is 80 % full, one in a hundred
/// waits for 10 (M/D/1).
const LINE_AT_RANDOM_MAX: f64 = 12.0;
/// A loop that works less than this part of the time has room.
const ROOM: f64 = 0.8;

/// How long everything takes that may be before a request in its loop's line; none if the loop has no room, or if not
/// known.
fn line_us(summary: &Summary) -> Option<f64> {
    let check = summary.stages.iter().find(|told| told.stage == "sign")?;
    let batch = if has_batches(summary) { u32::try_from(BATCH).unwrap_or(u32::MAX) } else { 1 };
    let at_once = LINES_MAX * f64::from(summary.burst.max(batch));
    let line = if arrivals::at_random(summary) { at_once.max(LINE_AT_RANDOM_MAX) } else { at_once };
    let has_room = room::busiest(summary).is_some_and(|busiest| busiest.busy < ROOM);
    has_room.then_some(line * check.time.p50_us)
}

/// Whether there were requests with several orders.
pub(super) fn has_batches(summary: &Summary) -> bool {
    summary.class("batch").is_some()
}

/// A sentence if neither work nor the requests before it explain its time in a stage.
fn taken(stage: &str, us: f64, parts: &Parts, summary: &Summary) -> Option<String> {
    let by_whom = || {
        format!(
            "for as long as this the loop stood still. {}; to change: {}.",
            taker::by(summary),
            taker::remedy(summary)
        )
    };
    if IN_LINE.contains(&stage) {
        return line_us(summary).filter(|line_us| *line_us < us).map(|line_us| {
            format!(
                " The loop had room, so requests before it in {stage} explain {} at most: {}",
                micros(line_us),
                by_whom()
            )
        });
    }
    let told = summary.class(&parts.class)?.stages.iter().find(|told| told.stage == stage)?;
    let median_us = told.time.p50_us;
    (COMPUTES.contains(&stage) && TAKEN_TIMES_MIN * median_us < us).then(|| {
        format!(
            " A request is only computed with in {stage}, half of them for {} at most: {}",
            micros(median_us),
            by_whom()
        )
    })
}

/// Whether the loop stood still while a request was in a stage.
pub(super) fn stood_still(stage: &str, us: f64, parts: &Parts, summary: &Summary) -> bool {
    taken(stage, us, parts, summary).is_some()
}

/// Whether the run had tables of known signers.
pub(crate) fn knows_signers(summary: &Summary) -> bool {
    let bytes = |setting: &String| setting.strip_prefix("auth.known_signers_bytes=").map(str::to_owned);
    summary.settings.iter().filter_map(bytes).any(|bytes| bytes != "0")
}

/// What can be done about a stage that takes most of the time; empty for stages without advice.
fn of_stage(stage: &str, us: f64, parts: &Parts, summary: &Summary) -> String {
    match stage {
        "sign" => {}
        "queue" => {
            let batch = if has_batches(summary) { ", of which a batch has up to 15" } else { "" };
            return format!(
                " In queue a request waits for the signatures of others on its loop{batch}: more shards (`cpu.shards`) or known \
                 signers (`auth.known_signers_bytes`) make that shorter."
            );
        }
        "journal" if is_durable(summary) => {
            return format!(
                " In journal a durable answer waits for the disk.{} `journal.durability=committed` does without.",
                writes::of(us, parts, summary)
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
    let known = if knows_signers(summary) {
        ""
    } else {
        "; `auth.known_signers_bytes` brings a known signer's check to about a quarter of that (off until it has \
         been reviewed)"
    };
    format!(
        " A signature is the software's arithmetic at the CPU's speed, not a setting of the machine{known}."
    )
}

/// Whether the client's part includes the reader's work, because both take turns on one CPU.
pub(super) fn is_readers_too(parts: &Parts, summary: &Summary) -> bool {
    parts.class == "read" && beside_client(summary).contains(&READER)
}

/// Whose the client's part is, as a sentence.
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

/// What reads as slow as these took in the server, if it reported that.
pub(super) fn in_server_us(parts: &Parts, summary: &Summary) -> Option<f64> {
    let reads = summary.reads_in_server.filter(|_| parts.class == "read")?;
    Some(match parts.of.as_str() {
        "p50" => reads.p50_us,
        "p99" => reads.p99_us,
        _ => reads.p999_us,
    })
}

/// What the server had of slow reads, as a sentence.
fn in_server(parts: &Parts, summary: &Summary) -> String {
    let Some(us) = in_server_us(parts, summary) else {
        return " What the server had of it is stage `read` of /debug/latency, on the operator's listener."
            .to_owned();
    };
    let beside = if us < writes::CAUSE_MIN * parts.unseen_us() {
        ": most of it lay outside".to_owned()
    } else if beside_client(summary).contains(&READER) {
        let cpu = summary.client_cpu;
        format!(
            ", where the reader waits for CPU {cpu} while the client has it: a core for the reader ends that"
        )
    } else {
        String::new()
    };
    let (one_in, _) = writes::met(parts);
    format!(
        " By the server's own count {one_in} of all reads took {} or more there, from their bytes to their answers{beside}.",
        micros(us)
    )
}

/// What is known about the time in no stage: how much the machine explains, and what the rig does.
fn of_unseen(parts: &Parts, summary: &Summary) -> String {
    let around = summary.jitter_before.iter().chain(&summary.jitter_after).map(|row| row.max_us);
    let meanwhile = summary.loops.iter().filter_map(|told| Some(told.away.as_ref()?.max_us));
    // The requests in the middle meet no gap.
    let longest_us = around.chain(meanwhile).reduce(f64::max).filter(|_| parts.of != "p50");
    let mut said = match longest_us {
        _ if parts.stages.is_empty() => in_server(parts, summary),
        None => String::new(),
        Some(gap_us) if gap_us < parts.unseen_us() => format!(
            " Of what no stage saw, one stop of the machine explains at most {} (the longest gap of a thread that only \
             spins, before, after or during the run); {}.",
            micros(gap_us),
            room::taken_meanwhile(summary, parts).map_or_else(
                || format!("{} of it nothing here explains", micros(parts.unseen_us() - gap_us)),
                |taken| format!("but {taken}, so several stops may be in it")
            )
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
    use crate::summary::ClassTimes;

    #[test]
    fn what_takes_many_times_what_it_could_was_a_loop_that_stood_still() {
        let computed = "only computed with in sign, half of them for 26.0 µs at most";
        // Three batches of 15 checks of 26 µs each, or of more that are due at once.
        let in_line =
            |time: &str| format!("The loop had room, so requests before it in queue explain {time} at most");
        let (fixed, poisson) = ("fixed", "poisson");
        for (stage, us, busy, burst, (batches, arrivals), expected) in [
            ("sign", 2_400.0, 0.1, 1, (true, fixed), Some(computed.to_owned())),
            ("sign", 100.0, 0.1, 1, (true, fixed), None),
            ("queue", 1_100.0, 0.1, 1, (true, fixed), None),
            ("queue", 2_400.0, 0.1, 1, (true, fixed), Some(in_line("1.2 ms"))),
            ("queue", 2_400.0, 0.1, 64, (true, fixed), None),
            ("queue", 9_000.0, 0.1, 64, (true, fixed), Some(in_line("5.0 ms"))),
            ("queue", 2_400.0, 0.9, 1, (true, fixed), None),
            ("send", 2_400.0, 0.1, 1, (true, fixed), None),
            // Without batches: three orders at equal distances, or twelve that come at random.
            ("queue", 300.0, 0.1, 1, (false, fixed), Some(in_line("78.0 µs"))),
            ("queue", 300.0, 0.1, 1, (false, poisson), None),
            ("queue", 1_100.0, 0.1, 1, (false, poisson), Some(in_line("312 µs"))),
            ("queue", 1_100.0, 0.1, 1, (true, poisson), None),
        ] {
            let mut summary = Summary { burst, arrivals: arrivals.to_owned(), ..crate::summary::example() };
            if batches {
                let batch = ClassTimes { class: "batch".to_owned(), ..summary.classes[0].clone() };
                summary.classes.push(batch);
            }
            summary.loops[0].busy = busy;
            summary.parts[1].stages = vec![(stage.to_owned(), us)];
            let said = &limits(&summary)[1];
            match expected {
                Some(expected) => assert!(said.contains(&expected), "{stage} {us}: {said}"),
                None => assert!(!said.contains("the loop stood still"), "{stage} {us}: {said}"),
            }
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
        for (wait, slowest_us, late_us, is_machines) in [
            ("spin", 750.0, 0.0, true),
            ("spin", 250.0, 0.0, false),
            ("park", 750.0, 0.0, false),
            // Most of it was the rig's.
            ("spin", 750.0, 800.0, false),
        ] {
            let mut summary = crate::summary::example();
            summary.loops[0].busy = ROOM;
            wait.clone_into(&mut summary.threads[0].wait);
            let away = Away { lost_percent: 1.0, max_us: 9_000.0, slowest_us, ..Away::default() };
            summary.loops[0].away = Some(away);
            let tail = summary.parts.last_mut().expect("there is a tail");
            (tail.latency_us, tail.late_us) = (1_000.0, late_us);
            tail.stages = vec![("queue".to_owned(), 975.0 - late_us)];
            let said = &limits(&summary)[1];
            assert_eq!(said.contains("The machine's is some 78 % of it"), is_machines, "{said}");
            assert_eq!(said.contains("more shards"), !is_machines && late_us == 0.0, "{said}");
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
        let outside = "passed outside the server's stages (the client, kernel, network, a CPU that was taken), 98 % (3.9 ms)";
        let unseen = "passed where no stage looks (kernel, network, a CPU that was taken), 92 % (3.7 ms); then while the client was away, 5 % (200 µs)";
        let away = "passed while the client was away, 93 % (3.7 ms); then where no stage looks (kernel, network, a CPU \
                    that was taken), 4 % (161 µs); in all else, 2 % (99.0 µs). That is the rig's";
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
        // If the disk takes most, that is reported, and the machine's stops are not mentioned.
        let of = |durability: &str| {
            let settings = vec![format!("journal.durability={durability}")];
            limits(&Summary { settings, ..example.clone() }).remove(1)
        };
        let tail = of("durable");
        assert!(
            tail.contains("98 % (3.9 ms); in all else, 2 % (61.0 µs). In journal a durable answer waits for the disk. `outcry check`"),
            "{tail}"
        );
        let tail = of("committed");
        assert!(tail.ends_with("reads on a connection of their own hold no order up."), "{tail}");
    }
}
