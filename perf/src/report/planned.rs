//! What `outcry topology` said before the run, beside what the run showed.
//!
//! The plan is of orders alone, each with its signature. A run has cancels, batches and reads as well, so the rate at
//! which it would be full is told in such orders too: by what its mix would cost in the plan, which is a signature for
//! each that there was and the rest for each request that trades.

use super::numbers::{about, micros};
use super::room;
use crate::placement::Planned;
use crate::summary::{ClassTimes, Summary};
use crate::workload::BATCH;

/// One figure of both.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) plan: String,
    pub(super) showed: String,
    /// What was shown as a multiple of the plan's.
    pub(super) times: String,
    /// Why they may differ.
    pub(super) why: &'static str,
}

/// All that both know of.
pub(super) fn rows(summary: &Summary) -> Vec<Row> {
    let Some(planned) = &summary.planned else { return Vec::new() };
    signature(summary, planned).into_iter().chain(rate(summary, planned)).collect()
}

/// The rows for a terminal.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let line = |Row { what, plan, showed, times, .. }: Row| {
        format!("{what}: planned {plan}, shown {showed} ({times})")
    };
    rows(summary).into_iter().map(line).collect()
}

fn row(what: String, (plan, showed): (f64, f64), text: fn(f64) -> String, why: &'static str) -> Row {
    Row { what, plan: text(plan), showed: text(showed), times: format!("{:.2} times", showed / plan), why }
}

/// Signature checks of one request of a class.
fn signatures(times: &ClassTimes) -> usize {
    match times.class.as_str() {
        "place" | "replace" | "take" => 1,
        "batch" => BATCH,
        _ => 0,
    }
}

/// The commonest class with one signature has both figures of the same thing.
fn signature(summary: &Summary, planned: &Planned) -> Option<Row> {
    let one = summary.classes.iter().filter(|times| signatures(times) == 1);
    let most = one.max_by_key(|times| times.latency.count)?;
    let sign = most.stages.iter().find(|stage| stage.stage == "sign")?;
    let both = (planned.check_us, sign.time.p50_us);
    (both.0 > 0.0 && both.1 > 0.0).then(|| {
        row(
            "a signature check (stage sign, p50)".to_owned(),
            both,
            micros,
            "The plan tries one check after another, so its caches are warm: a lower bound. Between two orders a loop does \
             other work; a neighbour on the core's other thread and the clock's speed add to it.",
        )
    })
}

/// At which rate of orders alone the busiest loop would be full.
fn rate(summary: &Summary, planned: &Planned) -> Option<Row> {
    let shown = room::full_at_per_s(summary)?;
    let busiest = room::busiest(summary)?;
    #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
    let sum = |of: &dyn Fn(&ClassTimes) -> u64| summary.classes.iter().map(of).sum::<u64>() as f64;
    let all = sum(&|times| times.latency.count);
    let checks = sum(&|times| times.latency.count * signatures(times) as u64) / all;
    let trading = sum(&|times| if times.class == "read" { 0 } else { times.latency.count }) / all;
    let each_us = checks * planned.check_us + trading * planned.rest_us;
    // Of another loop the plan's rate says nothing.
    let is_same = planned.full_first.contains(&busiest.name);
    (is_same && each_us > 0.0).then(|| {
        let orders_each = each_us / (planned.check_us + planned.rest_us);
        row(
            format!(
                "orders a second at which {} is full (a request of this run, with {checks:.2} signatures, is {orders_each:.2} of \
                 one)",
                busiest.name
            ),
            (planned.orders_per_s, shown * orders_each),
            about,
            "The plan adds the tried check and the rest of an order as it is when one turn of a loop has many; with few \
             in a turn, with longer checks, and where others had the CPU, each costs more.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Quantiles;
    use crate::summary::{LoopBusy, example};

    fn class(name: &str, count: u64) -> ClassTimes {
        let latency = Quantiles { count, ..Quantiles::default() };
        ClassTimes { class: name.to_owned(), latency, ..example().classes[0].clone() }
    }

    #[test]
    fn the_plan_and_the_run_are_held_against_each_other_for_the_same_mix() {
        let busy = |name: &str| vec![LoopBusy { name: name.to_owned(), busy: 0.08, sending: None }];
        let sign = "a signature check (stage sign, p50): planned 25.0 µs, shown 26.0 µs (1.04 times)";
        let full = |request: &str| {
            format!(
                "orders a second at which outcry-shard0 is full (a request of this run, with {request} of one)"
            )
        };
        for (classes, loops, expected) in [
            // 28,000 orders of 35 µs each are 98 % of a second.
            (
                vec![class("place", 100)],
                busy("outcry-shard0"),
                vec![
                    sign.to_owned(),
                    format!(
                        "{}: planned 28,000, shown 25,000 (0.89 times)",
                        full("1.00 signatures, is 1.00")
                    ),
                ],
            ),
            // A quarter of them each: 16 signatures for four, three of which trade: 107.5 µs each.
            (
                vec![class("place", 10), class("batch", 10), class("cancel", 10), class("read", 10)],
                busy("outcry-shard0"),
                vec![
                    sign.to_owned(),
                    format!(
                        "{}: planned 28,000, shown 77,000 (2.74 times)",
                        full("4.00 signatures, is 3.07")
                    ),
                ],
            ),
            (vec![class("place", 100)], busy("outcry-shard1"), vec![sign.to_owned()]),
            (vec![class("cancel", 100)], Vec::new(), Vec::new()),
        ] {
            assert_eq!(lines(&Summary { classes, loops, ..example() }), expected);
        }
        assert_eq!(lines(&Summary { planned: None, ..example() }), [] as [String; 0]);
    }
}
