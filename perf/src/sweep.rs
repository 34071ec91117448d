//! One scenario at rising rates: where the time starts to climb, the server's capacity ends.

use std::path::Path;

use serde::Serialize;

use crate::report::{self, Page};
use crate::run::{self, Ground, Outcome};
use crate::scenario::Plan;
use crate::stats::Quantiles;
use crate::summary::Summary;
use crate::verdict::Verdict;

/// A step whose achieved part of the rate is below this is saturated.
pub(crate) const SATURATED: f64 = 0.99;

/// Saturated steps in a row behind which nothing new is to be seen.
pub(crate) const SATURATED_STEPS: usize = 2;

/// One rate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Step {
    /// Requests a second by the schedule.
    pub(crate) offered_per_s: f64,
    /// Requests a second that were answered.
    pub(crate) achieved_per_s: f64,
    /// All classes together, from the moment at which each was due.
    pub(crate) latency: Quantiles,
    /// Whether it says something about the server.
    pub(crate) verdict: Verdict,
}

impl Step {
    fn of(summary: &Summary) -> Self {
        Self {
            offered_per_s: summary.offered_per_s,
            achieved_per_s: summary.achieved_per_s,
            latency: summary.all,
            verdict: summary.verdict.clone(),
        }
    }

    fn is_saturated(&self) -> bool {
        self.achieved_per_s < SATURATED * self.offered_per_s
    }
}

/// Runs a plan at each rate of its sweep, each with a server of its own.
pub(crate) fn run(ground: &Ground, plan: &Plan) -> Result<(), String> {
    println!("{}: {}", plan.name, plan.purpose);
    println!("{}", report::step_head());
    let mut steps: Vec<Step> = Vec::new();
    let mut best: Option<Outcome> = None;
    let mut rate = plan.sweep.first;
    for _ in 0..plan.sweep.count {
        let outcome = run::run(ground, &plan.at(rate))?;
        let step = Step::of(&outcome.summary);
        println!("{}", report::step_line(&step));
        if !step.is_saturated() || best.is_none() {
            best = Some(outcome);
        }
        steps.push(step);
        let last = &steps[steps.len().saturating_sub(SATURATED_STEPS)..];
        if last.len() == SATURATED_STEPS && last.iter().all(Step::is_saturated) {
            break;
        }
        rate *= plan.sweep.factor;
    }
    let best = best.expect("a sweep has at least one step");
    println!("{}", capacity(&steps));
    let folder = write(&ground.out, &steps, &best)?;
    println!("{folder}");
    Ok(())
}

/// What the steps say in one sentence.
fn capacity(steps: &[Step]) -> String {
    let held = steps.iter().filter(|step| !step.is_saturated()).map(|step| step.offered_per_s);
    let held = held.fold(0.0, f64::max);
    let most = steps.iter().map(|step| step.achieved_per_s).fold(0.0, f64::max);
    if steps.iter().all(Step::is_saturated) {
        format!(
            "No rate was held; the server answered {} requests a second at most. Begin lower (sweep.first).",
            report::count(most)
        )
    } else if steps.iter().any(|step| held < step.offered_per_s) {
        format!(
            "{} requests a second were held; offered more, the server answered {} a second at most.",
            report::count(held),
            report::count(most)
        )
    } else {
        format!(
            "The highest rate, {} requests a second, was held, so capacity lies above it.",
            report::count(held)
        )
    }
}

fn write(out: &Path, steps: &[Step], best: &Outcome) -> Result<String, String> {
    let summary = &best.summary;
    let name = format!("sweep-{}", summary.scenario);
    let folder = report::new_folder(out, &name, &summary.environment.date)?;
    report::histograms(&folder, best)?;
    report::save(&folder.join("summary.json"), summary.json().as_bytes())?;
    let mut json = serde_json::to_string_pretty(steps).expect("steps have no maps with odd keys");
    json.push('\n');
    report::save(&folder.join("sweep.json"), json.as_bytes())?;
    let mut page = Page::new(&format!("outcry perf: a sweep of {}", summary.scenario));
    page.note(&summary.purpose);
    page.paragraph(&capacity(steps));
    let invalid = steps.iter().filter(|step| !step.verdict.valid && !step.is_saturated()).count();
    if 0 < invalid {
        page.paragraph(&format!(
            "{invalid} of {} rates are INVALID for another reason than saturation; see the table.",
            steps.len()
        ));
    }
    page.hockey_stick(steps)?;
    let held = !Step::of(summary).is_saturated();
    page.heading(if held { "The highest rate that was held" } else { "The first rate, which was not held" });
    page.about(summary)?;
    let path = folder.join("report.html");
    report::save(&path, page.end().as_bytes())?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(offered: f64, achieved: f64) -> Step {
        Step {
            offered_per_s: offered,
            achieved_per_s: achieved,
            latency: Quantiles::default(),
            verdict: Verdict { valid: true, reasons: Vec::new() },
        }
    }

    #[test]
    fn capacity_is_what_was_held_and_what_was_answered_at_most() {
        let steps = [step(1_000.0, 1_000.0), step(2_000.0, 1_990.0), step(4_000.0, 2_600.0)];
        assert_eq!(
            capacity(&steps),
            "2,000 requests a second were held; offered more, the server answered 2,600 a second at most."
        );
        assert_eq!(
            capacity(&steps[..2]),
            "The highest rate, 2,000 requests a second, was held, so capacity lies above it."
        );
        let disturbed = [step(500.0, 480.0), step(2_000.0, 2_000.0)];
        assert_eq!(capacity(&disturbed), capacity(&steps[..2]));
        assert_eq!(
            capacity(&steps[2..]),
            "No rate was held; the server answered 2,600 requests a second at most. Begin lower (sweep.first)."
        );
    }
}
