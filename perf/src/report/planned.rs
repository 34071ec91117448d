//! What `outcry topology` said before the run, beside what the run showed.
//!
//! The plan is about orders alone, each with its signature. A run also has cancels, batches and reads. So the rate at
//! which it would be full is converted into such orders, by what its mix would cost in the plan: a signature check for
//! each signature, and the rest of an order for each request that trades.
//!
//! For p99 the plan says how long an order waits for a batch, or for another order. That wait is in the stages before
//! its signature, and before its loop looked at it; so these are compared with it, and not p99 as a whole
//! ([`left_out`]).

use super::numbers::{about, micros, range};
use super::{room, went, words};
use crate::placement::Planned;
use crate::summary::{ClassTimes, Summary};
use crate::workload::BATCH;

/// One figure, as planned and as shown.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) plan: String,
    pub(super) showed: String,
    /// What was shown, as a multiple of the plan.
    pub(super) times: String,
    /// Why the two may differ.
    pub(super) why: String,
}

/// All figures that both have.
pub(super) fn rows(summary: &Summary) -> Vec<Row> {
    let Some(planned) = &summary.planned else { return Vec::new() };
    let all = [
        in_server(summary, planned),
        waking(summary, planned),
        rate(summary, planned),
        in_line(summary, planned),
        slowest(summary),
    ];
    all.into_iter().flatten().collect()
}

/// What is not compared with the plan, and why; none if there was no plan.
pub(super) fn left_out(summary: &Summary) -> Option<String> {
    let planned = summary.planned.as_ref()?;
    let durable = if words::is_durable(summary) && planned.durable_us.is_none() {
        "; durable answers, for the server did not say what they add up to on this disk"
    } else {
        ""
    };
    Some(format!(
        "Not held against the plan: p99 as a whole, for it knows neither this rate nor how often others take a CPU; reads, and \
         where they are most requests, the rate; a wait in line where those around p99 stood behind nobody{durable}."
    ))
}

/// The rows for a terminal.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let line = |Row { what, plan, showed, times, .. }: Row| {
        format!("{what}: planned {plan}, shown {showed} ({times})")
    };
    rows(summary).into_iter().map(line).collect()
}

fn row(what: String, (plan, showed): (f64, f64), text: fn(f64) -> String, why: &str) -> Row {
    let times = format!("{:.2} times", showed / plan);
    Row { what, plan: text(plan), showed: text(showed), times, why: why.to_owned() }
}

/// A loop's time says what orders cost if at least this part of all requests trade.
const TRADING_MIN: f64 = 0.5;

/// How many signatures are checked for one request of a class.
pub(super) fn signatures(times: &ClassTimes) -> usize {
    match times.class.as_str() {
        "place" | "replace" | "take" => 1,
        "batch" => BATCH,
        _ => 0,
    }
}

/// The commonest class with one signature, like the plan's orders.
fn commonest(summary: &Summary) -> Option<&ClassTimes> {
    summary.commonest(|times| signatures(times) == 1)
}

/// One part of an order's median in the server, as planned and as it was.
struct Part {
    name: &'static str,
    plan_us: f64,
    shown_us: f64,
}

impl Part {
    fn more_us(&self) -> f64 {
        self.shown_us - self.plan_us
    }
}

/// A difference of up to this part of what was planned is not explained.
const ALIKE: f64 = 0.05;

/// An order's median in the server, part by part, as planned and by the server's own account. Waking its loop is in no
/// stage, so both leave it out; they leave out the journal too, unless the plan says what the disk would add.
fn in_server(summary: &Summary, planned: &Planned) -> Option<Row> {
    let times = commonest(summary)?;
    let (sign_us, total_us) = (times.median_us("sign")?, times.median_us("total")?);
    let waits_us = times.median_us("journal").filter(|_| words::is_durable(summary)).unwrap_or(0.0);
    let mut parts = vec![
        Part { name: "sign", plan_us: planned.check_us, shown_us: sign_us },
        Part {
            name: "the rest",
            plan_us: planned.rest_us,
            shown_us: (total_us - sign_us - waits_us).max(0.0),
        },
    ];
    let durable_us = planned.durable_us.filter(|_| words::is_durable(summary));
    let woken_us = planned.median_us.map_or(0.0, |[least_us, _]| least_us - planned.order_us());
    parts.extend(durable_us.map(|[least_us, most_us]| {
        let plan_us = f64::midpoint(least_us, most_us) - planned.order_us() - woken_us;
        Part { name: "the disk", plan_us, shown_us: waits_us }
    }));
    let what = match (words::is_durable(summary), durable_us) {
        (false, _) => "an order in the server (stage total, p50)",
        (true, Some(_)) => "a durable order in the server (stage total, p50)",
        (true, None) => "an order in the server but for the journal (stages, p50)",
    };
    let sum = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>();
    let (plan_us, shown_us) = (sum(|part| part.plan_us), sum(|part| part.shown_us));
    let told = |us: f64, of: fn(&Part) -> f64| {
        let each: Vec<_> = parts.iter().map(|part| format!("{} {}", part.name, micros(of(part)))).collect();
        format!("{}: {}", micros(us), each.join(", "))
    };
    // Of the parts that differ in the direction of the whole, the one that differs most.
    let way = (shown_us - plan_us).signum();
    let most = parts.iter().max_by(|one, other| (way * one.more_us()).total_cmp(&(way * other.more_us())))?;
    let by = if (shown_us - plan_us).abs() <= ALIKE * plan_us {
        String::new()
    } else {
        format!(", most of the difference in {}", most.name)
    };
    (plan_us > 0.0).then(|| Row {
        what: what.to_owned(),
        plan: told(plan_us, |part| part.plan_us),
        showed: told(shown_us, |part| part.shown_us),
        times: format!("{:.2} times{by}", shown_us / plan_us),
        why: why_in_server(summary, durable_us.is_some()),
    })
}

fn why_in_server(summary: &Summary, has_disk: bool) -> String {
    let unseen = room::in_no_stage_us(summary)
        .map_or_else(String::new, |us| format!(" (with what a turn costs, {} a request here)", micros(us)));
    let disk = if has_disk {
        " The disk: the plan adds one write, tried with no other load, to the middle of what handing over takes; an answer that \
         comes while a write is under way waits for that one as well."
    } else {
        ""
    };
    format!(
        "Sign: the plan tries one check after another, with warm caches; other work in between, a neighbour on the core and \
         the clock's speed add to it. The rest: reading and writing sockets are in the plan, and in no stage{unseen}; \
         what was taken of the loop's CPU is in the run.{disk} Waking a loop that sleeps is in neither."
    )
}

/// If two times are more than this multiple of their difference, the difference is noise.
const OUTSIDE_TIMES_MAX: f64 = 10.0;

/// How long a request waits until its loop is awake, where loops sleep. No stage has this. It is within the client's
/// median less the server's; if the same load also ran on loops that spin, it is the excess over that run.
fn waking(summary: &Summary, planned: &Planned) -> Option<Row> {
    let times = commonest(summary)?;
    let outside_us = times.latency.p50_us - times.median_us("total")?;
    let of_class = |(name, us): &(String, f64)| (*name == times.class).then_some(*us);
    if let Some(wake_us) = planned.wake_us() {
        return Some(Row {
            what: "waking the loop (the client's median less stage total)".to_owned(),
            plan: micros(wake_us),
            showed: format!("at most {}", micros(outside_us)),
            times: format!("{:.2} times or less", outside_us / wake_us),
            why: format!(
                "The way through the kernel, both ways, and what the client waits for{} are in there too; a run with \
                 `cpu.wait=spin` has these without the wake-up.",
                if summary.client_sleeps { ", its own wake-up as well," } else { "" }
            ),
        });
    }
    let as_serve = summary.as_serve.as_ref().filter(|as_serve| as_serve.verdict.valid)?;
    let own = as_serve.classes.iter().find(|(name, _)| *name == times.class)?;
    let own_outside_us = own.1.p50_us - as_serve.in_server_us.iter().find_map(of_class)?;
    // If a disturbance is larger than the wake-up, or if both are far larger, nothing is known about it.
    let shown_us =
        Some(own_outside_us - outside_us).filter(|us| *us > 0.0 && outside_us < OUTSIDE_TIMES_MAX * us)?;
    as_serve.wake_us.map(|wake_us| {
        row(
            "waking the loop, as serve does it (the client's median less stage total, there less here)".to_owned(),
            (wake_us, shown_us),
            micros,
            "A CPU that sleeps has to come back first, on a virtual machine by its host; whatever else the two runs differ in \
             is in there too.",
        )
    })
}

/// What an order was planned to take in the server, in a few words; the first row has it part by part.
pub(super) fn median(summary: &Summary) -> Option<String> {
    let planned = summary.planned.as_ref()?;
    if words::is_durable(summary) {
        return planned.durable_us.map(|both_us| format!("{} from arrival to answer", range(both_us)));
    }
    let wake =
        planned.wake_us().map_or_else(String::new, |us| format!(", and {} to wake its loop", micros(us)));
    Some(format!("{} in the server{wake}", micros(planned.order_us())))
}

/// A run's requests as orders of the plan.
pub(super) struct Orders {
    /// Signatures of one request, on average.
    checks: f64,
    /// What one request costs in the plan, as a part of an order's cost.
    each: f64,
    /// The number of orders a second at which the busiest loop would be full.
    pub(super) full_at: f64,
}

/// None if the run says nothing about orders: mostly reads, or a loop that hardly worked.
pub(super) fn as_orders(summary: &Summary) -> Option<Orders> {
    let planned = summary.planned.as_ref()?;
    #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
    let sum = |of: &dyn Fn(&ClassTimes) -> u64| summary.classes.iter().map(of).sum::<u64>() as f64;
    let all = sum(&|times| times.latency.count);
    let checks = sum(&|times| times.latency.count * signatures(times) as u64) / all;
    let trading = sum(&|times| if times.class == "read" { 0 } else { times.latency.count }) / all;
    let each = (checks * planned.check_us + trading * planned.rest_us) / (planned.check_us + planned.rest_us);
    let full_at = room::full_at_per_s(summary)? * each;
    (TRADING_MIN <= trading && each > 0.0).then_some(Orders { checks, each, full_at })
}

/// What one request of a run costs, as a part of an order; none if the run says nothing about orders.
pub(crate) fn orders_each(summary: &Summary) -> Option<f64> {
    as_orders(summary).map(|orders| orders.each)
}

/// The rate of orders alone at which the busiest loop would be full.
fn rate(summary: &Summary, planned: &Planned) -> Option<Row> {
    let (busiest, orders) = (room::busiest(summary)?, as_orders(summary)?);
    // The plan's rate says nothing about any other loop.
    planned.full_first.contains(&busiest.name).then(|| {
        row(
            format!(
                "orders a second at which {} is full (a request of this run, with {:.2} signatures, is {:.2} of \
                 one)",
                busiest.name, orders.checks, orders.each
            ),
            (planned.orders_per_s, orders.full_at),
            about,
            "The plan is of turns with many orders; with few in a turn, longer checks, and where others had the CPU, each costs \
             more: a run shows the least, and a sweep the rate itself.",
        )
    })
}

/// A request that waited for less than this part of a signature check met no other request.
const MET_MIN: f64 = 0.5;

/// How long the slow requests of the commonest class wait in line, beside what the plan says is before them; none if
/// they met no other request, because the plan says nothing about that.
fn in_line(summary: &Summary, planned: &Planned) -> Option<Row> {
    let class = &commonest(summary)?.class;
    let slow = summary.parts.iter().find(|parts| parts.class == *class && parts.of == "p99")?;
    let in_stages_us: f64 = went::IN_LINE.iter().filter_map(|stage| slow.stage_us(stage)).sum();
    let shown_us = in_stages_us + slow.line_us.unwrap_or(0.0);
    #[allow(clippy::cast_precision_loss, reason = "a batch is small")]
    let (who, checks) = match summary.class("batch") {
        Some(_) => ("a batch of 15", BATCH as f64),
        None => ("another order", 1.0),
    };
    let most_us = checks * planned.check_us;
    let met_one = MET_MIN * planned.check_us <= shown_us;
    (most_us > 0.0 && met_one).then(|| Row {
        what: format!("an order's wait in line (before its loop and in stages recv and queue, average around p99), planned behind {who}"),
        plan: format!("up to {}", micros(most_us)),
        showed: micros(shown_us),
        times: if shown_us <= most_us {
            "within it".to_owned()
        } else {
            format!("{:.2} times", shown_us / most_us)
        },
        why: "The plan is of an order that meets one of them as it begins; it does not say how often one does. The fuller the \
             loop, the more of them stand before it, and what was sent late, or came while a CPU was taken, comes at once."
            .to_owned(),
    })
}

/// With fewer requests, p99.9 is the slowest one alone.
const THOUSAND: u64 = 1_000;

/// What the machine alone does to one order in a thousand, beside what one order in a thousand took. None where answers
/// wait for the disk, whose stops are longer.
fn slowest(summary: &Summary) -> Option<Row> {
    if words::is_durable(summary) {
        return None;
    }
    let class = commonest(summary).filter(|class| THOUSAND <= class.latency.count)?;
    let busiest = room::busiest(summary)?;
    let of_loop = summary.threads.iter().find(|thread| thread.name == busiest.name)?.cpu?;
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    let needed = rows.filter(|row| [of_loop, summary.client_cpu].contains(&row.cpu));
    let waits: Vec<f64> = needed.filter_map(|row| row.wait_p999_us).collect();
    let least_us = waits.iter().copied().reduce(f64::min)?;
    let most_us = waits.iter().copied().reduce(f64::max)?;
    let shown_us = class.latency.p999_us;
    // What a loop that spun noticed during the run says more than what was measured around it.
    let meanwhile = room::away(summary).map(|away| away.wait_p999_us);
    let most_us = meanwhile.unwrap_or(most_us);
    let which = if meanwhile.is_some() {
        "the loop's, during the run"
    } else {
        "the loop's and the client's, around the run"
    };
    (most_us > 0.0).then(|| Row {
        what: format!(
            "the slowest of a thousand {} (p99.9), beside what one in a thousand waits for a CPU that was taken ({which})",
            words::class(&class.class)
        ),
        plan: meanwhile.map_or_else(|| range([least_us, most_us]), micros),
        showed: micros(shown_us),
        times: format!("{:.2} times", shown_us / most_us),
        why: "The first is the machine's alone, and differs by the second. A request needs both CPUs and then stands behind all \
              that came meanwhile. Where the two are of one size the tail is the machine's. The multiple is of the larger."
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::away::Away;
    use crate::jitter::Jitter;
    use crate::parts::Parts;
    use crate::stats::Quantiles;
    use crate::summary::{AsServe, LoopBusy, Stage, example};
    use crate::verdict::Verdict;

    fn class(name: &str, count: u64) -> ClassTimes {
        let latency = Quantiles { count, ..Quantiles::default() };
        ClassTimes { class: name.to_owned(), latency, ..example().classes[0].clone() }
    }

    #[test]
    fn the_plan_and_the_run_are_held_against_each_other_for_the_same_mix() {
        let busy = |name: &str| {
            vec![LoopBusy {
                name: name.to_owned(),
                busy: 0.08,
                sending: None,
                waited_percent: None,
                away: None,
            }]
        };
        let sign = "an order in the server (stage total, p50): planned 35.0 µs: sign 25.0 µs, the rest 10.0 µs, shown 30.0 µs: sign \
                    26.0 µs, the rest 4.0 µs (0.86 times, most of the difference in the rest)";
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
            // A quarter of each: 16 signatures for four requests, three of which trade: 107.5 µs each.
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
            // The plan does not have a loop's work for reads.
            (vec![class("place", 49), class("read", 51)], busy("outcry-shard0"), vec![sign.to_owned()]),
            (vec![class("cancel", 100)], Vec::new(), Vec::new()),
        ] {
            assert_eq!(lines(&Summary { classes, loops, ..example() }), expected);
        }
        assert_eq!(lines(&Summary { planned: None, ..example() }), [] as [String; 0]);
    }

    #[test]
    fn the_slow_orders_wait_in_line_is_held_against_what_the_plan_puts_before_them() {
        let slow = |class: &str, stages: &[(&str, f64)]| {
            let stages = stages.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect();
            let first = example().parts.remove(0);
            Parts { class: class.to_owned(), of: "p99".to_owned(), stages, ..first }
        };
        let waits = [("recv", 1.5), ("sign", 26.0), ("queue", 298.5)];
        let row = |who: &str, told: &str| {
            let what = "an order's wait in line (before its loop and in stages recv and queue, average around p99), planned behind";
            format!("{what} {who}: {told}")
        };
        for (classes, parts, expected) in [
            (
                vec![class("place", 90), class("batch", 10)],
                slow("place", &waits),
                Some(row("a batch of 15", "planned up to 375 µs, shown 300 µs (within it)")),
            ),
            (
                vec![class("place", 100)],
                slow("place", &waits),
                Some(row("another order", "planned up to 25.0 µs, shown 300 µs (12.00 times)")),
            ),
            // Requests that met no other say nothing about the plan, with or without batches.
            (vec![class("place", 100)], slow("place", &waits[..2]), None),
            (vec![class("place", 90), class("batch", 10)], slow("place", &waits[..2]), None),
            (
                vec![class("place", 100)],
                slow("place", &[("recv", 12.5)]),
                Some(row("another order", "planned up to 25.0 µs, shown 12.5 µs (within it)")),
            ),
            // Nothing is known about another class, or without a tail.
            (vec![class("place", 100)], slow("take", &waits), None),
            (vec![class("cancel", 100)], slow("cancel", &waits), None),
        ] {
            let summary = Summary { classes, parts: vec![parts], loops: Vec::new(), ..example() };
            let came = lines(&summary).into_iter().find(|line| line.contains("in line"));
            assert_eq!(came, expected);
        }
    }

    #[test]
    fn the_slowest_of_a_thousand_are_held_against_what_the_cpus_lose_by_themselves() {
        let base = example();
        let on = |cpu, wait_p999_us| Jitter { cpu, wait_p999_us, ..base.jitter_before[0].clone() };
        for (count, rows, expected) in [
            (
                1_000,
                vec![on(0, Some(40.0)), on(1, Some(160.0))],
                Some("planned 40.0 µs to 160 µs, shown 80.0 µs (0.50 times)"),
            ),
            // A CPU that no request needs, a summary without the wait, and too few requests.
            (
                1_000,
                vec![on(0, Some(40.0)), on(7, Some(160.0))],
                Some("planned 40.0 µs, shown 80.0 µs (2.00 times)"),
            ),
            (1_000, vec![on(0, None)], None),
            (999, vec![on(0, Some(40.0))], None),
        ] {
            let mut times = class("place", count);
            times.latency.p999_us = 80.0;
            let summary = Summary {
                classes: vec![times],
                jitter_before: rows,
                jitter_after: Vec::new(),
                client_cpu: 1,
                ..base.clone()
            };
            let came = lines(&summary).into_iter().find(|line| line.contains("(p99.9)"));
            let told = came.as_ref().map(|line| line.rsplit_once(": ").expect("a line says what").1);
            assert_eq!(told, expected, "{count}");
            let mut meanwhile = summary.clone();
            meanwhile.loops[0].away =
                Some(Away { lost_percent: 1.0, max_us: 900.0, wait_p999_us: 20.0, ..Away::default() });
            "spin".clone_into(&mut meanwhile.threads[0].wait);
            let came =
                lines(&meanwhile).into_iter().find(|line| line.contains("(the loop's, during the run)"));
            assert_eq!(came.is_some(), expected.is_some());
            assert!(came.is_none_or(|line| line.ends_with("planned 20.0 µs, shown 80.0 µs (4.00 times)")));
        }
    }

    /// The example, with this median of the stage `name`.
    fn with(name: &str, us: f64) -> Summary {
        let mut summary = example();
        let stages = &mut summary.classes[0].stages;
        stages.retain(|stage| stage.stage != name);
        let time = Quantiles { p50_us: us, ..Quantiles::default() };
        stages.push(Stage { stage: name.to_owned(), time });
        summary
    }

    #[test]
    fn the_part_that_explains_a_difference_is_named() {
        for (stage, us, expected) in [
            ("total", 36.0, "shown 36.0 µs: sign 26.0 µs, the rest 10.0 µs (1.03 times)"),
            (
                "total",
                56.0,
                "shown 56.0 µs: sign 26.0 µs, the rest 30.0 µs (1.60 times, most of the difference in the rest)",
            ),
            (
                "total",
                28.0,
                "shown 28.0 µs: sign 26.0 µs, the rest 2.0 µs (0.80 times, most of the difference in the rest)",
            ),
            (
                "sign",
                10.0,
                "shown 30.0 µs: sign 10.0 µs, the rest 20.0 µs (0.86 times, most of the difference in sign)",
            ),
        ] {
            let said = lines(&with(stage, us)).remove(0);
            assert!(said.ends_with(expected), "{said}");
        }
    }

    #[test]
    fn a_durable_run_is_held_against_what_its_parts_add_up_to() {
        let why = "; durable answers, for the server did not say";
        for (durability, durable_us, row, left_out_too) in [
            ("committed", None, "an order in the server (stage total, p50): planned 35.0 µs: ", false),
            (
                "durable",
                // 16 µs of it are the loop's wake-up.
                Some([96.0, 106.0]),
                "a durable order in the server (stage total, p50): planned 85.0 µs: sign 25.0 µs, the rest 10.0 µs, the disk 50.0 µs, \
                 shown 130 µs: sign 26.0 µs, the rest 4.0 µs, the disk 100 µs (1.53 times, most of the difference in the disk)",
                false,
            ),
            (
                "durable",
                None,
                "an order in the server but for the journal (stages, p50): planned 35.0 µs: sign 25.0 µs, the rest 10.0 µs, \
                 shown 30.0 µs: sign 26.0 µs, the rest 4.0 µs (0.86",
                true,
            ),
        ] {
            let mut summary = with("journal", 100.0);
            let total = summary.classes[0].stages.iter_mut().find(|stage| stage.stage == "total").unwrap();
            total.time.p50_us = 130.0;
            summary.settings = vec![format!("journal.durability={durability}")];
            let planned = summary.planned.as_mut().unwrap();
            (planned.durable_us, planned.median_us) = (durable_us, Some([51.0, 51.0]));
            assert!(lines(&summary)[0].starts_with(row), "{:?}", lines(&summary));
            assert_eq!(left_out(&summary).unwrap().contains(why), left_out_too, "{durability}");
        }
        assert_eq!(left_out(&Summary { planned: None, ..example() }), None);
    }

    #[test]
    fn a_wake_up_is_told_as_it_was_measured_beside_what_was_planned() {
        let waking = |summary: &Summary| lines(summary).into_iter().find(|line| line.starts_with("waking"));
        let mut sleeps = example();
        // The client's median is 40 µs, the server's 30.
        sleeps.planned.as_mut().unwrap().median_us = Some([51.0, 51.0]);
        let alone = "waking the loop (the client's median less stage total): planned 16.0 µs, shown at most 10.0 µs (0.62 times or less)";
        assert_eq!(waking(&sleeps).as_deref(), Some(alone));
        assert_eq!(median(&sleeps).as_deref(), Some("35.0 µs in the server, and 16.0 µs to wake its loop"));
        let mut spins = example();
        assert_eq!(waking(&spins), None);
        sleeps.classes[0].latency.p50_us = 80.0;
        spins.as_serve = Some(AsServe::of(sleeps));
        let both = "waking the loop, as serve does it (the client's median less stage total, there less here): planned 16.0 µs, \
                    shown 40.0 µs (2.50 times)";
        assert_eq!(waking(&spins).as_deref(), Some(both));
        let mut disturbed = spins.clone();
        let own = disturbed.as_serve.as_mut().expect("set just above");
        own.verdict = Verdict::because(vec!["steal: 3 %".to_owned()]);
        assert_eq!(waking(&disturbed), None, "an INVALID run shows nothing");
        // A client that hardly had a CPU.
        spins.classes[0].latency.p50_us = 4_500.0;
        spins.as_serve.as_mut().expect("set just above").classes[0].1.p50_us = 4_600.0;
        assert_eq!(waking(&spins), None);
        assert_eq!(median(&spins).as_deref(), Some("35.0 µs in the server"));
    }
}
