//! What limits this box, as a table: each figure of the run, what most of it was, what to change first, and what
//! `outcry topology` had said.

use super::numbers::{about, micros};
use super::went::{self, Place, READER, Where};
use super::words::class;
use super::{planned, room, taker, words, writes};
use crate::parts::Parts;
use crate::summary::{ClassTimes, Summary};

/// The table's head.
pub(super) const HEAD: [&str; 5] =
    ["", "in this run", "most of it", "to change first", "topology had said, set as here"];

const KNOWN: &str = "known signers (auth.known_signers_bytes, not reviewed)";
const NOT_THE_SERVERS: &str = "nothing: it is the rig's";
const SPIN: &str = "cpu.wait=shard=spin, which burns a CPU for each shard";

/// A row for each figure that the run has.
pub(super) fn rows(summary: &Summary) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    // The plan is about orders with a signature each.
    let told = |is_meant: fn(&ClassTimes) -> bool| {
        summary.commonest(|times| is_meant(times) && summary.has_parts(times))
    };
    let orders = told(|times| planned::signatures(times) == 1);
    if let Some(most) = orders.or_else(|| told(|times| times.class != "read")) {
        let is_order = planned::signatures(most) == 1;
        rows.extend(quantiles(summary, most, if is_order { ["median", "slow", "slowest"] } else { [""; 3] }));
    }
    rows.extend(full(summary));
    rows.extend(writes::row(summary));
    rows.extend(writes::row_if_none_waited(summary));
    if let Some(reads) = told(|times| times.class == "read") {
        rows.extend(quantiles(summary, reads, ["reads", "slow-reads", ""]));
        rows.extend(reader_full(summary, reads));
    }
    rows
}

fn row(what: String, shown: String, (by, first): (String, String), planned: &str) -> [String; 5] {
    [what, shown, by, first, planned.to_owned()]
}

/// What the server had said about `asked`.
pub(super) fn had_said<'a>(summary: &'a Summary, asked: &str) -> &'a str {
    let told = summary.planned.iter().flat_map(|planned| &planned.how_much);
    told.into_iter().find(|(about, _)| about == asked).map_or("", |(_, much)| much)
}

/// Rows for the middle and the tails of a class; `asked` is the plan's word for it.
fn quantiles<'a>(
    summary: &'a Summary,
    times: &'a ClassTimes,
    asked: [&'a str; 3],
) -> impl Iterator<Item = [String; 5]> + 'a {
    let latency = &times.latency;
    let all = [("p50", latency.p50_us), ("p99", latency.p99_us), ("p99.9", latency.p999_us)];
    all.into_iter().zip(asked).filter_map(move |((of, us), asked)| {
        let parts = summary.parts.iter().find(|parts| parts.class == times.class && parts.of == of)?;
        let what = format!("{}, {of}", class(&times.class));
        let said = match asked {
            "median" => planned::median(summary).unwrap_or_default(),
            asked => had_said(summary, asked).to_owned(),
        };
        let above = went::beyond(parts, summary)
            .map_or_else(String::new, |_| format!(", {} above the median", micros(us - latency.p50_us)));
        Some(row(
            what,
            micros(us) + &as_serve(of, times, summary) + &in_server(parts, times, summary) + &above,
            largest(parts, summary),
            &said,
        ))
    })
}

/// The same figure placed as `serve` does, which is what users get, if that run was VALID; one run has too few requests
/// for p99.9.
fn as_serve(of: &str, times: &ClassTimes, summary: &Summary) -> String {
    let valid = summary.as_serve.iter().filter(|as_serve| as_serve.verdict.valid);
    let classes = valid.flat_map(|as_serve| &as_serve.classes);
    let own = classes.filter(|(class, _)| *class == times.class).find_map(|(_, own)| match of {
        "p50" => Some(own.p50_us),
        "p99" => Some(own.p99_us),
        _ => None,
    });
    own.map_or_else(String::new, |us| format!(" (as serve: {})", micros(us)))
}

/// How much of it was in the server: for reads by the server's own count there, for others at the median.
fn in_server(parts: &Parts, times: &ClassTimes, summary: &Summary) -> String {
    let of_orders = times.median_us("total").filter(|_| parts.of == "p50");
    let us = went::in_server_us(parts, summary).or(of_orders);
    us.map_or_else(String::new, |us| format!(", {} in the server", micros(us)))
}

/// A part that has less of a time than this is not called its cause.
const ALONE_PERCENT_MIN: f64 = 35.0;

/// What most of the time was (for slow requests, of the time above the median), and what would shorten it.
fn largest(parts: &Parts, summary: &Summary) -> (String, String) {
    let more = went::beyond(parts, summary);
    let of = if more.is_some() { " of that" } else { "" };
    let parts = more.as_ref().unwrap_or(parts);
    if let Some(percent) = went::waited_percent(parts, summary) {
        return (format!("{}, some {percent:.0} %{of}", taker::by(summary)), taker::remedy(summary));
    }
    let places = went::places(parts);
    let Some(Place { us, at }) = places.first() else { return (String::new(), String::new()) };
    let (by, first) = place(at, *us, parts, summary);
    let percent = parts.percent(*us).min(100.0);
    let alone = if percent < ALONE_PERCENT_MIN { "nothing alone; the largest part: " } else { "" };
    (format!("{alone}{by}, {percent:.0} %{of}"), first)
}

/// A place in a few words, and what would shorten the time there.
fn place(at: &Where, us: f64, parts: &Parts, summary: &Summary) -> (String, String) {
    let told = |by: &str, first: &str| (by.to_owned(), first.to_owned());
    if let Some(taken) = went::clients(at, parts, summary) {
        return (format!("the rig's client, whose {}", taken.by()), taken.remedy());
    }
    match at {
        Where::Late => told("sent late", NOT_THE_SERVERS),
        Where::Client if went::is_readers_too(parts, summary) => {
            told("the reader and the client, in turn on one CPU", "a core for each")
        }
        Where::Client => told("the client's own time", NOT_THE_SERVERS),
        Where::Line => {
            told(&format!("in line before the loop, behind {}", went::behind(parts)), shorter_line(summary))
        }
        Where::Unseen if parts.stages.is_empty() => match went::in_server_us(parts, summary) {
            None => {
                told("the server and the kernel, not told apart", "stage `read` of /debug/latency says which")
            }
            Some(in_server_us) if in_server_us < writes::CAUSE_MIN * us => unseen(us, parts, summary),
            Some(_) if words::beside_client(summary).contains(&READER) => {
                told("in the server: its reader shares a CPU with the client", "a core for the reader")
            }
            Some(_) => told("in the server: its reader", "fewer or smaller reads; a faster core"),
        },
        Where::Unseen => unseen(us, parts, summary),
        Where::Stage(stage) if went::stood_still(stage, us, parts, summary) => {
            (format!("{}, which shows in {stage}", taker::by(summary)), taker::remedy(summary))
        }
        Where::Stage(stage) => match stage.as_str() {
            "sign" if went::knows_signers(summary) => told("the signature check", "a faster core"),
            "sign" => told("the signature check", KNOWN),
            "recv" | "queue" => told("in line behind others on its loop", shorter_line(summary)),
            "journal" if words::is_durable(summary) => writes::place(us, parts, summary),
            "journal" => told("behind answers before it", "reads on connections of their own"),
            stage => (format!("stage {stage}"), "a faster core".to_owned()),
        },
    }
}

/// What shortens the line before a loop.
fn shorter_line(summary: &Summary) -> &'static str {
    if went::has_batches(summary) { "smaller batches; more shards" } else { "more shards" }
}

/// Time in no stage: a CPU that was taken for as long, or else the way through the kernel, which includes the wake-up
/// where the loop sleeps.
fn unseen(us: f64, parts: &Parts, summary: &Summary) -> (String, String) {
    let sleeps = summary.threads.iter().any(|thread| thread.is_trading() && !thread.spins());
    let told = |by: &str, first: &str| (by.to_owned(), first.to_owned());
    match taker::met(summary, &parts.of) {
        Some((wait_us, taken)) if writes::CAUSE_MIN * us <= wait_us => (taken.by(), taken.remedy()),
        Some((wait_us, taken)) => (
            format!("no stage (stops of CPU {} explain {})", taken.gaps.cpu, micros(wait_us)),
            "nothing that is known here".to_owned(),
        ),
        None if parts.of != "p50" => {
            told("no stage; no CPU was watched", "`scripts/perf jitter` watches them")
        }
        None if sleeps => told("waking the loop, and the way through the kernel", SPIN),
        None => told("the way through the kernel", "a faster core"),
    }
}

/// The rate at which the busiest loop would be full, if the run says anything about orders.
fn full(summary: &Summary) -> Option<[String; 5]> {
    let (orders, busiest) = (planned::as_orders(summary)?, room::busiest(summary)?);
    let by = format!("the CPU of {}, {:.0} % busy", busiest.name, 100.0 * busiest.busy);
    let mix = room::full_at_per_s(summary).map_or_else(String::new, about);
    let (shown, by, first) = match taker::beside(summary) {
        None => (
            format!("{} or more would fill it ({mix} requests of this mix)", about(orders.full_at)),
            by,
            "a core and a shard more (cpu.shards)".to_owned(),
        ),
        // Its busy time includes the time that others had, so the rate is no lower bound any more.
        Some(taken) => (
            format!(
                "{} ({mix} requests of this mix) by what each took at this load and beside others, who had {:.0} % of CPU {} {}; \
                 more without them",
                about(orders.full_at),
                taken.had_percent(),
                taken.gaps.cpu,
                taker::when(summary, taken.gaps.cpu)
            ),
            format!("{by}, which others had too"),
            taken.remedy(),
        ),
    };
    Some(row("orders a second".to_owned(), shown, (by, first), had_said(summary, "orders-per-second")))
}

/// The reader's time includes its work for orders, so with a smaller part of reads than this it says nothing.
const READS_TELLING: f64 = 0.5;

/// The rate of such reads at which the reader would be full.
fn reader_full(summary: &Summary, reads: &ClassTimes) -> Option<[String; 5]> {
    let reader =
        summary.loops.iter().find(|share| share.name == READER && room::BUSY_TELLING <= share.busy)?;
    #[allow(clippy::cast_precision_loss, reason = "reads are far fewer than 2^53")]
    let (reads, all) = (reads.latency.count as f64, summary.requests as f64);
    if reads < READS_TELLING * all {
        return None;
    }
    let rate = reads / summary.time_s;
    let shared =
        if words::beside_client(summary).contains(&READER) { ", shared with the client" } else { "" };
    let by = format!("the CPU of {READER}, {:.0} % busy{shared}", 100.0 * reader.busy);
    let first = "clients that pipeline; a faster core".to_owned();
    let shown = format!("{} or more would fill it", about(rate / reader.busy));
    Some(row("reads a second".to_owned(), shown, (by, first), had_said(summary, "reads")))
}

/// The rows for a terminal.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let line =
        |[what, shown, by, first, _]: [String; 5]| format!("{what}: {shown}; {by}; to change: {first}");
    let rows = rows(summary).into_iter().map(line);
    rows.chain(words::shared(summary)).collect()
}

#[cfg(test)]
mod tests;
