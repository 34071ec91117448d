//! What an answer that waits for the disk costs, beside the least that any disk write costs.
//!
//! One mix over 64 connections, on the disk. A sweep finds what `durable` can hold, and how many acts share one
//! write at each rate (group commit). Then the mix runs at half of that by schedule, with `committed` and with
//! `durable` in turn, whose order changes, and between them blocks are written to the same disk past the page
//! cache (`O_DIRECT`, `O_DSYNC`). An answer has to wait for one write that may have begun just before it came,
//! and for its own: twice a bare write is what back-to-back writing comes to, and good is at most that.

use crate::bench;
use crate::compare;
use crate::figures::{Figure, Unit};
use crate::layers;
use crate::machine::{self, Environment};
use crate::report;
use crate::run::{self, Ground};
use crate::scenario::Plan;
use crate::sheet::{self, Sheet};
use crate::stats::{self, histogram};
use crate::summary::Summary;
use crate::sweep::{SATURATED, SATURATED_STEPS};
use crate::verdict::Verdict;
use crate::watch::FamilyWatch;

/// The part of the capacity at which the two are compared.
const PART: f64 = 0.5;

/// How many times a bare write the wait may be.
const GOOD: f64 = 2.0;

/// The scenario whose mix it is.
const SCENARIO: &str = "journal-durable";

/// What an answer waits for.
const DURABILITIES: [&str; 2] = ["committed", "durable"];

/// One rate of the sweep.
#[derive(Clone, Copy, Debug)]
struct Step {
    offered_per_s: f64,
    achieved_per_s: f64,
    p50_us: f64,
    /// Acts that share one write.
    acts_per_write: f64,
}

/// What was found.
#[derive(Debug)]
struct Found {
    steps: Vec<Step>,
    rate: f64,
    /// Medians of the medians of the runs, in microseconds.
    committed_us: f64,
    durable_us: f64,
    bare_us: f64,
    bare_p99_us: f64,
}

impl Found {
    fn wait_us(&self) -> f64 {
        (self.durable_us - self.committed_us).max(0.0)
    }

    fn ratio(&self) -> f64 {
        self.wait_us() / self.bare_us
    }
}

/// Measures so many pairs of runs and writes what was found.
pub(crate) fn run(ground: &Ground, plan: &Plan, pairs: u32) -> Result<(), String> {
    let environment = Environment::capture(&ground.project, &ground.profile);
    let watch = FamilyWatch::begin();
    let steps = sweep(ground, plan)?;
    let rate = PART * capacity(&steps)?;
    println!("{rate:.0} a second, half of what was held, in turn:");
    let mut p50: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut writes = histogram();
    let mut reasons = Vec::new();
    for pair in 0..pairs {
        let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for side in order {
            let summary = run::run(ground, &with(plan, DURABILITIES[side]).at(rate))?.summary;
            let place_us = place_us(&summary)?;
            println!("{:10} p50 {:>9.1} µs  {}", DURABILITIES[side], place_us, summary.verdict.word());
            p50[side].push(place_us);
            reasons.extend(told(&summary, DURABILITIES[side]));
        }
        writes.add(&layers::bare(&ground.out)?).expect("the histogram grows");
    }
    let [committed_us, durable_us] = p50.map(|mut values| compare::median(&mut values));
    let found = Found {
        steps,
        rate,
        committed_us,
        durable_us,
        bare_us: stats::micros(&writes, 0.5),
        bare_p99_us: stats::micros(&writes, 0.99),
    };
    print!("{}", text(&found));
    if plan.client.sleeps(machine::allowed_cpus().len()) {
        println!("The client shares its CPU with the journal's thread, so it slept while nothing was due.");
    }
    let verdict = Verdict::of_share(watch.share(), machine::allowed_cpus().len(), reasons);
    let times = (watch.seconds(), watch.share());
    let sheet = Sheet::new("durable".to_owned(), verdict, times, figures(&found), environment);
    print!("{}", bench::verdict(&sheet.verdict));
    println!("{}", sheet.write(&ground.out)?);
    Ok(())
}

/// The scenario whose mix is used, with runs of so many seconds.
pub(crate) fn plan(scenarios: &std::path::Path, time: std::time::Duration) -> Result<Plan, String> {
    let plan = Plan::read(scenarios, SCENARIO)?;
    Ok(Plan { time, warm_up: time / 4, ..plan })
}

/// The same with an answer that waits for this.
fn with(plan: &Plan, durability: &str) -> Plan {
    let mut settings = plan.settings.clone();
    settings.retain(|setting| !setting.starts_with("journal.durability="));
    settings.push(format!("journal.durability={durability}"));
    Plan { settings, ..plan.clone() }
}

/// The median of orders that rest: of all classes together it would lie between theirs, and jump.
fn place_us(summary: &Summary) -> Result<f64, String> {
    summary.class("place").map(|times| times.latency.p50_us).ok_or_else(|| "no order was answered".to_owned())
}

/// Why a run is not to be believed.
fn told(summary: &Summary, name: &str) -> Vec<String> {
    summary.verdict.reasons.iter().map(|reason| format!("{name}: {reason}")).collect()
}

/// Rising rates with `durable` until two in a row are not held, each of them tried twice.
fn sweep(ground: &Ground, plan: &Plan) -> Result<Vec<Step>, String> {
    println!("{:>11}{:>11}{:>11}{:>15}", "offered/s", "achieved/s", "p50 µs", "acts a write");
    let plan = with(plan, DURABILITIES[1]);
    let (mut steps, mut rate): (Vec<Step>, f64) = (Vec::new(), plan.sweep.first);
    for _ in 0..plan.sweep.count {
        let (summary, step) = tried(ground, &plan.at(rate))?;
        println!(
            "{:11.0}{:11.0}{:11.1}{:15.2}  {}",
            step.offered_per_s,
            step.achieved_per_s,
            step.p50_us,
            step.acts_per_write,
            summary.verdict.word()
        );
        steps.push(step);
        let last = &steps[steps.len().saturating_sub(SATURATED_STEPS)..];
        if last.len() == SATURATED_STEPS && last.iter().all(|step| !is_held(step)) {
            break;
        }
        rate *= plan.sweep.factor;
    }
    Ok(steps)
}

/// One rate; once more if it was not held, for one hiccup of the disk at the end is not its capacity.
fn tried(ground: &Ground, plan: &Plan) -> Result<(Summary, Step), String> {
    let once = || {
        let summary = run::run(ground, plan)?.summary;
        let step = step(&summary)?;
        Ok::<_, String>((summary, step))
    };
    let first = once()?;
    if is_held(&first.1) { Ok(first) } else { once() }
}

fn step(summary: &Summary) -> Result<Step, String> {
    let writes = summary.journal_writes.ok_or("the server does not count the writes of its journal")?;
    // Those of the warm-up are written too.
    let acts = summary.offered_per_s * (summary.time_s + summary.warm_up_s);
    #[allow(clippy::cast_precision_loss, reason = "writes are far fewer than 2^53")]
    let acts_per_write = acts / writes.max(1) as f64;
    Ok(Step {
        offered_per_s: summary.offered_per_s,
        achieved_per_s: summary.achieved_per_s,
        p50_us: place_us(summary)?,
        acts_per_write,
    })
}

fn is_held(step: &Step) -> bool {
    SATURATED * step.offered_per_s <= step.achieved_per_s
}

/// The highest rate that was held.
fn capacity(steps: &[Step]) -> Result<f64, String> {
    let held = steps.iter().filter(|step| is_held(step)).map(|step| step.offered_per_s).fold(0.0, f64::max);
    if held == 0.0 {
        return Err("no rate of the sweep was held, so there is no half of it".to_owned());
    }
    Ok(held)
}

fn text(found: &Found) -> String {
    let word = if found.ratio() <= GOOD { "good" } else { "too much" };
    format!(
        "committed p50 {}, durable p50 {}: the wait is {}\n\
         a bare write of 4 KiB p50 {}, p99 {}; the wait is {:.2} of them: {word} (good is at most {GOOD})\n",
        report::micros(found.committed_us),
        report::micros(found.durable_us),
        report::micros(found.wait_us()),
        report::micros(found.bare_us),
        report::micros(found.bare_p99_us),
        found.ratio(),
    )
}

fn figures(found: &Found) -> Vec<Figure> {
    let us = |what: &str, value: f64| Figure::new(what, sheet::rounded(value), Unit::Us);
    let [committed, bare] = [found.committed_us, found.bare_us].map(sheet::rounded);
    let mut figures = vec![
        Figure::new("acts a second, half of what durable holds", sheet::rounded(found.rate), Unit::PerS),
        us("an order that waits for the disk, p50", found.durable_us).beside("committed", committed),
        us("the wait alone", found.wait_us()).beside("bare write of 4 KiB", bare),
        us("a bare write of 4 KiB, p99", found.bare_p99_us),
    ];
    figures.extend(found.steps.iter().filter(|step| is_held(step)).map(|step| {
        let what = format!("acts that share a write at {}/s", report::count(step.offered_per_s));
        Figure::new(what, sheet::rounded(step.acts_per_write), Unit::Count)
    }));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offered_per_s: f64, achieved_per_s: f64) -> Step {
        Step { offered_per_s, achieved_per_s, p50_us: 90.0, acts_per_write: offered_per_s / 1_000.0 }
    }

    fn found() -> Found {
        let steps = vec![at(500.0, 500.0), at(2_000.0, 1_995.0), at(4_000.0, 2_500.0)];
        Found {
            steps,
            rate: 1_000.0,
            committed_us: 40.0,
            durable_us: 100.0,
            bare_us: 25.0,
            bare_p99_us: 80.0,
        }
    }

    #[test]
    fn the_wait_is_judged_by_bare_writes_of_the_same_run() {
        assert!(text(&found()).ends_with("the wait is 2.40 of them: too much (good is at most 2)\n"));
        let quick = Found { durable_us: 90.0, ..found() };
        assert!(text(&quick).ends_with("the wait is 2.00 of them: good (good is at most 2)\n"));
        // On a busy machine the one that waits may come out first.
        assert!(Found { durable_us: 30.0, ..found() }.wait_us() <= 0.0);
    }

    #[test]
    fn capacity_is_the_highest_rate_that_was_held() {
        assert_eq!(capacity(&found().steps), Ok(2_000.0));
        assert!(capacity(&found().steps[2..]).is_err());
    }

    #[test]
    fn acts_a_write_count_the_warm_up_too() {
        let summary = crate::summary::example();
        let step = step(&summary).unwrap();
        assert!((step.acts_per_write - 2_000.0 * 6.0 / 5_000.0).abs() < 1e-9, "{step:?}");
        assert!(super::step(&Summary { journal_writes: None, ..summary }).is_err());
    }

    #[test]
    fn a_rate_that_was_not_held_has_no_figure() {
        let figures = figures(&found());
        assert_eq!(figures.len(), 4 + 2);
        assert_eq!(figures[5].what, "acts that share a write at 2,000/s");
    }

    #[test]
    fn only_what_an_answer_waits_for_changes() {
        let scenarios = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let plan = plan(&scenarios, std::time::Duration::from_secs(2)).unwrap();
        assert_eq!((plan.connections, plan.data), (64, crate::scenario::Data::Disk));
        let committed = with(&plan, "committed");
        assert_eq!(committed.settings, ["journal.durability=committed"]);
        assert_eq!(with(&committed, "durable"), plan);
    }
}
