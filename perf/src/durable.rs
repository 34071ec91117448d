//! What an answer that waits for the disk costs, beside the least that any disk write costs.
//!
//! One mix runs over 64 connections, with the data on the disk. A sweep finds the rate that `durable` can hold, and
//! how many acts share one write at each rate (group commit). At half of that rate, runs with `committed` and with
//! `durable` then take turns in changing order, and after each pair, blocks are written to the same disk past the
//! page cache (`O_DIRECT`, `O_DSYNC`). An answer waits for one write that may have begun just before it came, and
//! for its own: that is two bare writes, and good is at most that.
//!
//! The wait is reported twice. As a client sees it, it is the difference of the two medians, with everything that
//! the client's CPU adds to them. The server's own is its stage `journal`, from the frame in the log until its loop
//! sees that the frame is on the disk; nothing of the client is in it.
//!
//! The verdict is of the runs in turn that count, and of the CPUs from the first run to the last. A run in turn during
//! which others had the CPUs does not count and is made anew, a few times in all. A rate of the sweep that was not
//! held is tried once more, and the second run counts, because the sweep only looks for a rate that can be held. What
//! acts share a write is told of the rates that were held while nobody else had the CPUs.
//!
//! A run that cannot be measured ends the sweep, or the runs in turn; what was measured before it is kept, INVALID.

use std::time::Duration;

use crate::bench;
use crate::compare;
use crate::figures::{Figure, Unit};
use crate::layers;
use crate::machine::{self, Environment};
use crate::report;
use crate::run::{self, Ground};
use crate::scenario::{Plan, Waits};
use crate::sheet::{self, Sheet};
use crate::stats::{self, Nanos, histogram};
use crate::summary::Summary;
use crate::verdict::{GENERATOR_LATE, Verdict};
use crate::watch::FamilyWatch;

mod rates;

use rates::{Step, capacity, climb, tried};

/// The part of the capacity at which the two are compared.
const PART: f64 = 0.5;

/// The wait may be at most this many bare writes.
const GOOD: f64 = 2.0;

/// The part of the wait up to which the client's lateness is ignored, even in runs that were late at p99.
///
/// A late hundredth of the requests moves a median by at most one hundredth of the other requests, and the client's
/// alarm is in every time, with `committed` as with `durable`. What lateness did to each median is known, because
/// each request is timed from when it was due and from when it was sent. If lateness did the same to both medians,
/// within this part of the wait between them, a late tail is no reason against the wait. Nor is it one if the wait is
/// good even by [`Found::wait_at_most_us`].
const LATE_PART: f64 = 0.05;

/// How many runs in turn are made anew in all.
const AGAIN_MAX: u32 = 12;

/// The stage in which the server waits for the disk.
const STAGE: &str = "journal";

/// The longest warm-up of a run.
const WARM_UP_MAX: Duration = Duration::from_mins(1);

/// The scenario whose mix is used.
const SCENARIO: &str = "journal-durable";

/// What an answer waits for.
const DURABILITIES: [&str; 2] = ["committed", "durable"];

/// The median of one run's orders that rest, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::struct_field_names, reason = "the unit is part of a name")]
struct Middle {
    /// Its time, from the moment at which it was due.
    order_us: f64,
    /// The part of it that is the client's lateness.
    late_us: f64,
    /// The server's own stage `journal`.
    journal_us: f64,
}

impl Middle {
    /// Takes orders that rest only: the median of all classes together would jump between theirs.
    fn of(summary: &Summary) -> Result<Self, String> {
        let times = summary.class("place").ok_or("no order was answered")?;
        let journal = times.stages.iter().find(|stage| stage.stage == STAGE);
        let journal = journal.ok_or_else(|| format!("the server does not tell its stage {STAGE}"))?;
        let order_us = times.latency.p50_us;
        let late_us = (order_us - times.service.p50_us).max(0.0);
        Ok(Self { order_us, late_us, journal_us: journal.time.p50_us })
    }

    /// The median of many runs, each part by itself.
    fn median(runs: &[Self]) -> Self {
        let of = |part: fn(&Self) -> f64| compare::median(&mut runs.iter().map(part).collect::<Vec<_>>());
        Self {
            order_us: of(|run| run.order_us),
            late_us: of(|run| run.late_us),
            journal_us: of(|run| run.journal_us),
        }
    }
}

/// What was found.
#[derive(Debug)]
struct Found {
    steps: Vec<Step>,
    rate: f64,
    /// Medians of the runs of each kind.
    committed: Middle,
    durable: Middle,
    /// How many runs were late at p99, and how many there were.
    late_runs: usize,
    runs: usize,
    /// Microseconds.
    bare_us: f64,
    bare_p99_us: f64,
}

impl Found {
    fn wait_us(&self) -> f64 {
        (self.durable.order_us - self.committed.order_us).max(0.0)
    }

    /// The longest that the wait of a client that is never late can be: none of the lateness with `durable` is taken
    /// off, because an order that is sent earlier may only wait longer for the write before; all of that with `committed`
    /// is.
    fn wait_at_most_us(&self) -> f64 {
        self.wait_us() + self.committed.late_us
    }

    /// How much of the wait is lateness.
    fn late_us(&self) -> f64 {
        (self.durable.late_us - self.committed.late_us).abs()
    }

    /// Whether lateness did next to nothing to the wait.
    fn is_on_time(&self) -> bool {
        self.late_us() <= LATE_PART * self.wait_us()
    }

    /// Whether runs that were late at p99 count nevertheless.
    fn counts_late_runs(&self) -> bool {
        let is_good = self.wait_at_most_us() <= GOOD * self.bare_us;
        self.is_on_time() || (0.0 < self.wait_us() && is_good)
    }
}

/// Measures the given number of pairs of runs and writes what was found.
pub(crate) fn run(ground: &Ground, plan: &Plan, pairs: u32) -> Result<(), String> {
    layers::on_a_disk(&ground.out)?;
    let environment = Environment::capture(&ground.project, &ground.profile);
    let watch = FamilyWatch::begin();
    let (steps, mut failed) = climb(&with(plan, DURABILITIES[1]), |plan| tried(ground, plan));
    let rate = match (capacity(&steps), failed.take()) {
        (Err(_), Some(fault)) => return Err(fault),
        (capacity, fault) => {
            failed = fault;
            PART * capacity?
        }
    };
    println!("{rate:.0} a second, half of what was held, in turn:");
    let plans = DURABILITIES.map(|durability| with(plan, durability).at(rate));
    let mut again = AGAIN_MAX;
    let measure = |side: usize| undisturbed(ground, &plans[side], DURABILITIES[side], &mut again);
    let (turns, fault) = in_turns(pairs, measure, || layers::bare(&ground.out));
    let failed = failed.or(fault);
    let Turns { middles, writes, mut reasons, late, settings } = turns;
    if writes.is_empty() {
        return failed.map_or(Ok(()), Err);
    }
    reasons.extend(failed.as_deref().and_then(|fault| fault.lines().next()).map(str::to_owned));
    let [committed, durable] = middles.each_ref().map(|runs| Middle::median(runs));
    let found = Found {
        steps,
        rate,
        committed,
        durable,
        late_runs: late.len(),
        runs: middles.iter().map(Vec::len).sum(),
        bare_us: stats::micros(&writes, 0.5),
        bare_p99_us: stats::micros(&writes, 0.99),
    };
    if !found.counts_late_runs() {
        reasons.extend(late);
    }
    print!("{}", text(&found));
    if plan.client.waits(machine::allowed_cpus().len()) == Waits::Sleeps {
        println!("The client shares its CPU with the journal's thread, so it slept while nothing was due.");
    }
    let verdict =
        Verdict::of_share(watch.share(), watch.largest().as_ref(), machine::allowed_cpus().len(), reasons);
    let times = (watch.seconds(), watch.share());
    let sheet = Sheet::new("durable".to_owned(), verdict, times, figures(&found), environment);
    let sheet = sheet.of_server(settings);
    print!("{}", bench::verdict(&sheet.verdict));
    println!("{}", sheet.write(&ground.out)?);
    failed.map_or(Ok(()), Err)
}

/// What the runs in turn came to, of whole pairs.
struct Turns {
    middles: [Vec<Middle>; 2],
    writes: Nanos,
    reasons: Vec<String>,
    late: Vec<String>,
    settings: Vec<String>,
}

/// Runs in turn, and bare writes after each pair; if one fails, the pairs before it, and which it was.
fn in_turns(
    pairs: u32,
    mut measure: impl FnMut(usize) -> Result<Summary, String>,
    mut bare: impl FnMut() -> Result<Nanos, String>,
) -> (Turns, Option<String>) {
    let (reasons, late, settings) = (Vec::new(), Vec::new(), Vec::new());
    let mut turns = Turns { middles: [Vec::new(), Vec::new()], writes: histogram(), reasons, late, settings };
    for pair in 0..pairs {
        let both = compare::sides_of(pair).into_iter().map(|side| {
            let of = |fault| format!("{}: {fault}", DURABILITIES[side]);
            let summary = measure(side).map_err(of)?;
            Ok((side, Middle::of(&summary).map_err(of)?, summary))
        });
        let both: Result<Vec<(usize, Middle, Summary)>, String> = both.collect();
        let (both, writes) = match both.and_then(|both| Ok((both, bare()?))) {
            Ok(whole) => whole,
            Err(fault) => {
                let number = pair + 1;
                return (turns, Some(format!("failed: pair {number} of {pairs}, {fault}")));
            }
        };
        for (side, middle, summary) in both {
            turns.middles[side].push(middle);
            let (of_lateness, others) = told(&summary, DURABILITIES[side]);
            turns.late.extend(of_lateness);
            turns.reasons.extend(others);
            turns.settings = in_turn(&summary.settings);
        }
        turns.writes.add(&writes).expect("the histogram grows");
    }
    (turns, None)
}

/// The scenario whose mix is used, with runs of `time` each.
pub(crate) fn plan(scenarios: &std::path::Path, time: Duration) -> Result<Plan, String> {
    let plan = Plan::read(scenarios, SCENARIO)?;
    Ok(Plan { time, warm_up: (time / 4).min(WARM_UP_MAX), ..plan })
}

/// The plan with answers that wait for `durability`.
fn with(plan: &Plan, durability: &str) -> Plan {
    plan.clone().set(&[format!("journal.durability={durability}")])
}

/// The settings of one run, rewritten for all runs, which differ only in what an answer waits for.
fn in_turn(settings: &[String]) -> Vec<String> {
    let of_both = |setting: &String| match setting.split_once('=') {
        Some(("journal.durability", _)) => format!("journal.durability={} in turn", DURABILITIES.join(", ")),
        _ => setting.clone(),
    };
    settings.iter().map(of_both).collect()
}

/// Why a run is not to be believed: first its lateness at p99, then every other reason.
fn told(summary: &Summary, name: &str) -> (Vec<String>, Vec<String>) {
    let reasons = summary.verdict.reasons.iter();
    let (late, others): (Vec<_>, Vec<_>) = reasons.partition(|reason| reason.starts_with(GENERATOR_LATE));
    let all = |reasons: Vec<&String>| reasons.iter().map(|reason| format!("{name}: {reason}")).collect();
    (all(late), all(others))
}

/// One run for a terminal.
fn line(name: &str, middle: Middle, summary: &Summary) -> String {
    let word = match told(summary, name) {
        (late, others) if late.is_empty() && others.is_empty() => "VALID".to_owned(),
        (_, others) if others.is_empty() => format!("late by {:.0} µs at p99", summary.late.p99_us),
        _ => "INVALID".to_owned(),
    };
    format!(
        "{name:10} p50 {:>9.1} µs, of it late {:>5.1} µs; {STAGE} p50 {:>9.1} µs  {word}",
        middle.order_us, middle.late_us, middle.journal_us
    )
}

/// A run, made anew while others had the CPUs and `again` is not used up; prints each.
fn undisturbed(ground: &Ground, plan: &Plan, name: &str, again: &mut u32) -> Result<Summary, String> {
    loop {
        let summary = run::run(ground, plan)?.summary;
        let line = line(name, Middle::of(&summary)?, &summary);
        if !summary.verdict.is_disturbed() || *again == 0 {
            println!("{line}");
            return Ok(summary);
        }
        println!("{line}, made anew");
        *again -= 1;
    }
}

fn text(found: &Found) -> String {
    let Found { committed, durable, .. } = found;
    let beside_bare = |us: f64| {
        let ratio = us / found.bare_us;
        let word = if ratio <= GOOD { "good" } else { "too much" };
        format!("{}, {ratio:.2} bare writes: {word}", report::micros(us))
    };
    let late = match found.late_runs {
        0 => String::new(),
        count => format!("{count} of {} runs sent late at p99, and {}\n", found.runs, of_late(found)),
    };
    format!(
        "committed p50 {} (of it sent late {}), durable p50 {} (of it {})\n\
         a bare write of 4 KiB p50 {}, p99 {}; good is at most {GOOD} of them\n\
         the wait as a client sees it, durable less committed: {}\n\
         the server's own, its stage {STAGE}: {} (committed {})\n{late}",
        report::micros(committed.order_us),
        report::micros(committed.late_us),
        report::micros(durable.order_us),
        report::micros(durable.late_us),
        report::micros(found.bare_us),
        report::micros(found.bare_p99_us),
        beside_bare(found.wait_us()),
        beside_bare(durable.journal_us),
        report::micros(committed.journal_us),
    )
}

/// Whether runs that were late at p99 count, and why.
fn of_late(found: &Found) -> String {
    let [late, at_most] = [found.late_us(), found.wait_at_most_us()].map(report::micros);
    let percent = 100.0 * LATE_PART;
    if found.is_on_time() {
        return format!(
            "count: lateness is in both medians and did {late} to the wait, at most {percent:.0} % of it"
        );
    }
    let word = if found.counts_late_runs() { "count" } else { "do not count" };
    let ratio = found.wait_at_most_us() / found.bare_us;
    format!(
        "{word}: lateness is in both medians and did {late} to the wait, more than {percent:.0} % of it; never late, \
         it would be at most {at_most}, {ratio:.2} bare writes"
    )
}

fn figures(found: &Found) -> Vec<Figure> {
    let us = |what: &str, value: f64| Figure::new(what, sheet::rounded(value), Unit::Us);
    let [committed, bare] = [found.committed.order_us, found.bare_us].map(sheet::rounded);
    let mut figures = vec![
        Figure::new("acts a second, half of what durable holds", sheet::rounded(found.rate), Unit::PerS),
        us("an order that waits for the disk, p50", found.durable.order_us).beside("committed", committed),
        us("the client's lateness in that p50", found.durable.late_us),
        us("the client's lateness in the p50 of committed", found.committed.late_us),
        us("the wait alone", found.wait_us()).beside("bare write of 4 KiB", bare),
        us("the wait alone of a client that is never late, at most", found.wait_at_most_us())
            .beside("bare write of 4 KiB", bare),
        us("the wait alone by the server's own stage, p50", found.durable.journal_us)
            .beside("bare write of 4 KiB", bare),
        us("a bare write of 4 KiB, p99", found.bare_p99_us),
    ];
    figures.extend(found.steps.iter().filter(|step| step.is_told()).map(|step| {
        let what = format!("acts that share a write at {}/s", report::count(step.offered_per_s));
        Figure::new(what, sheet::rounded(step.acts_per_write), Unit::Count)
    }));
    figures
}

/// A run whose server told how long it waited for the disk.
#[cfg(test)]
fn summary() -> Summary {
    let mut summary = crate::summary::example();
    let time = summary.classes[0].stages[0].time;
    summary.classes[0].stages.push(crate::summary::Stage { stage: STAGE.to_owned(), time });
    summary
}

#[cfg(test)]
mod tests {
    use super::rates::at;
    use super::*;

    fn middle(order_us: f64, late_us: f64, journal_us: f64) -> Middle {
        Middle { order_us, late_us, journal_us }
    }

    fn found() -> Found {
        let steps = vec![at(500.0, 500.0), at(2_000.0, 1_995.0), at(4_000.0, 2_500.0)];
        Found {
            steps,
            rate: 1_000.0,
            committed: middle(40.0, 0.4, 0.5),
            durable: middle(100.0, 2.0, 37.5),
            late_runs: 0,
            runs: 12,
            bare_us: 25.0,
            bare_p99_us: 80.0,
        }
    }

    #[test]
    fn what_shares_a_write_is_told_of_rates_that_were_held_while_nobody_else_had_the_cpus() {
        for (is_disturbed, achieved_per_s, count) in [(false, 500.0, 2), (true, 500.0, 1), (false, 200.0, 1)]
        {
            let mut found = found();
            found.steps[0] = Step { is_disturbed, ..at(500.0, achieved_per_s) };
            let told =
                figures(&found).into_iter().filter(|figure| figure.what.starts_with("acts that share"));
            assert_eq!(told.count(), count, "{is_disturbed}, {achieved_per_s} a second");
        }
    }

    #[test]
    fn both_waits_are_judged_by_bare_writes_of_the_same_run() {
        for (order_us, journal_us, client, server) in [
            (100.0, 37.5, "60.0 µs, 2.40 bare writes: too much", "37.5 µs, 1.50 bare writes: good"),
            (90.0, 50.0, "50.0 µs, 2.00 bare writes: good", "50.0 µs, 2.00 bare writes: good"),
            (90.0, 50.3, "50.0 µs, 2.00 bare writes: good", "50.3 µs, 2.01 bare writes: too much"),
            // On a busy machine the side that waits may be the quicker one.
            (30.0, 20.0, "0.0 µs, 0.00 bare writes: good", "20.0 µs, 0.80 bare writes: good"),
        ] {
            let said = text(&Found { durable: middle(order_us, 0.0, journal_us), ..found() });
            let ending = format!(
                "durable less committed: {client}\nthe server's own, its stage journal: {server} (committed 0.5 µs)\n"
            );
            assert!(said.ends_with(&ending), "{said}");
        }
    }

    #[test]
    fn a_late_tail_is_no_reason_against_a_wait_that_lateness_did_not_make_good() {
        // The wait is 60 µs, so 3 µs more lateness on one side than on the other is the bound.
        let moved = "lateness is in both medians and did";
        for (committed_us, durable_us, bare_us, said) in [
            (3.6, 4.6, 25.0, format!("count: {moved} 1.0 µs to the wait, at most 5 % of it")),
            (3.5, 6.5, 25.0, format!("count: {moved} 3.0 µs to the wait, at most 5 % of it")),
            (6.5, 3.5, 25.0, format!("count: {moved} 3.0 µs to the wait, at most 5 % of it")),
            // With one side's lateness in it the wait would still be good, or not.
            (
                3.5,
                6.6,
                31.75,
                format!(
                    "count: {moved} 3.1 µs to the wait, more than 5 % of it; never late, it would be at most 63.5 µs, 2.00 bare writes"
                ),
            ),
            (
                3.5,
                6.6,
                31.7,
                format!(
                    "do not count: {moved} 3.1 µs to the wait, more than 5 % of it; never late, it would be at most 63.5 µs, 2.00 bare writes"
                ),
            ),
            (
                9.5,
                3.5,
                34.0,
                format!(
                    "do not count: {moved} 6.0 µs to the wait, more than 5 % of it; never late, it would be at most 69.5 µs, 2.04 bare writes"
                ),
            ),
        ] {
            let late = |middle: Middle, late_us| Middle { late_us, ..middle };
            let found = Found { bare_us, ..found() };
            let (committed, durable) = (late(found.committed, committed_us), late(found.durable, durable_us));
            let found = Found { committed, durable, late_runs: 5, ..found };
            let text = text(&found);
            assert_eq!(
                text.lines().nth(4),
                Some(format!("5 of 12 runs sent late at p99, and {said}").as_str())
            );
            assert_eq!(found.counts_late_runs(), said.starts_with("count"));
        }
        assert_eq!(text(&found()).lines().count(), 4);
        // If there is no wait, no lateness is excused.
        let none = Found { durable: middle(30.0, 0.5, 20.0), late_runs: 1, ..found() };
        assert!(!none.counts_late_runs());
    }

    #[test]
    fn lateness_is_told_apart_from_every_other_reason() {
        let late = format!("{GENERATOR_LATE}: it sent 369 µs behind its schedule at p99");
        let (steal, missed) =
            ("steal: 3.0 % of the 2 CPUs".to_owned(), "rate missed: 900 of 1000".to_owned());
        for (reasons, of_lateness, others, word) in [
            (vec![], 0, vec![], "VALID"),
            (vec![&late], 1, vec![], "late by 60 µs at p99"),
            (vec![&late, &steal], 1, vec![&steal], "INVALID"),
            (vec![&missed, &late], 1, vec![&missed], "INVALID"),
            (vec![&steal], 0, vec![&steal], "INVALID"),
        ] {
            let mut summary = summary();
            summary.late.p99_us = 60.0;
            summary.verdict = Verdict::because(reasons.into_iter().cloned().collect());
            let told = told(&summary, "durable");
            let others: Vec<String> = others.into_iter().map(|reason| format!("durable: {reason}")).collect();
            assert_eq!((told.0.len(), told.1), (of_lateness, others));
            let line = line("durable", Middle::of(&summary).unwrap(), &summary);
            assert!(line.ends_with(&format!("  {word}")), "{line}");
        }
    }

    #[test]
    fn the_middle_of_runs_is_each_parts_own_and_needs_the_servers_stage() {
        let runs = [middle(90.0, 3.0, 20.0), middle(100.0, 1.0, 40.0), middle(80.0, 2.0, 30.0)];
        assert_eq!(Middle::median(&runs), middle(90.0, 2.0, 30.0));
        let mut silent = summary();
        silent.classes[0].stages.clear();
        assert_eq!(Middle::of(&silent).unwrap_err(), "the server does not tell its stage journal");
        silent.classes.clear();
        assert_eq!(Middle::of(&silent).unwrap_err(), "no order was answered");
    }

    #[test]
    fn a_run_that_fails_leaves_the_pairs_before_it() {
        // Runs come as committed durable, durable committed.
        for (fails_at, whole, failed) in [
            (1, 0, Some("failed: pair 1 of 2, committed: it died")),
            (2, 0, Some("failed: pair 1 of 2, durable: it died")),
            (4, 1, Some("failed: pair 2 of 2, committed: it died")),
            (5, 2, None),
        ] {
            let mut count = 0;
            let measure = |_| {
                count += 1;
                if count < fails_at { Ok(summary()) } else { Err("it died".to_owned()) }
            };
            let bare = || {
                let mut one = histogram();
                stats::record(&mut one, 1_000);
                Ok(one)
            };
            let (turns, told) = in_turns(2, measure, bare);
            assert_eq!(turns.middles.each_ref().map(Vec::len), [whole; 2], "{fails_at}");
            assert_eq!((turns.writes.len(), told.as_deref()), (whole as u64, failed), "{fails_at}");
        }
    }

    #[test]
    fn a_rate_that_was_not_held_has_no_figure() {
        let figures = figures(&found());
        assert_eq!(figures.len(), 8 + 2);
        assert_eq!(figures[9].what, "acts that share a write at 2,000/s");
    }

    #[test]
    fn only_what_an_answer_waits_for_changes() {
        let scenarios = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let plan = plan(&scenarios, std::time::Duration::from_secs(2)).unwrap();
        assert_eq!((plan.connections, plan.data), (64, crate::scenario::Data::Disk));
        let committed = with(&plan, "committed");
        assert_eq!(committed.settings, ["journal.durability=committed"]);
        assert_eq!(with(&committed, "durable"), plan);
        for durability in DURABILITIES {
            let settings = ["cpu.wait=spin".to_owned(), format!("journal.durability={durability}")];
            assert_eq!(
                in_turn(&settings),
                ["cpu.wait=spin", "journal.durability=committed, durable in turn"]
            );
        }
    }
}
