//! Where the time of requests went, in words, and what can be done about the largest part.

use super::numbers::{count_of, micros};
use super::words::{beside_client, class};
use crate::parts::Parts;
use crate::summary::{ClassTimes, Summary};

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
             spins, before or after the run); {} of it nothing here explains.",
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
                    "spins, before or after the run); 3.7 ms of it nothing here explains",
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
                vec![unseen, "spins, before or after the run); 3.5 ms of it nothing here explains."],
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
}
