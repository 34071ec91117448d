//! One scenario at rising rates: the server's capacity ends where the times start to climb.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::report::{self, Page};
use crate::run::{self, Ground, Outcome};
use crate::scenario::Plan;
use crate::stats::Quantiles;
use crate::summary::{LoopBusy, Summary};
use crate::verdict::{RATE_MISSED, Verdict};

/// A step is saturated if it achieved less than this part of its rate.
pub(crate) const SATURATED: f64 = 0.99;

/// After this many saturated steps in a row, a sweep ends.
pub(crate) const SATURATED_STEPS: usize = 2;

/// The file of a sweep's steps.
const STEPS: &str = "sweep.json";

/// One rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Requests a second by the schedule.
    pub(crate) offered_per_s: f64,
    /// Answers a second that came in the measured time.
    pub(crate) achieved_per_s: f64,
    /// All classes together, from the moment at which each was due.
    pub(crate) latency: Quantiles,
    /// The trading loop that worked most, if the server tells.
    pub(crate) busiest: Option<LoopBusy>,
    /// What one of its requests costs, as a part of an order with a signature; none if the run says nothing about
    /// orders.
    pub(crate) orders_each: Option<f64>,
    /// Whether its figures say something about the server.
    pub(crate) verdict: Verdict,
}

impl Step {
    fn of(summary: &Summary) -> Self {
        Self {
            offered_per_s: summary.offered_per_s,
            achieved_per_s: summary.achieved_per_s,
            latency: summary.all,
            busiest: report::busiest(summary).cloned(),
            orders_each: report::orders_each(summary),
            verdict: summary.verdict.clone(),
        }
    }

    fn is_saturated(&self) -> bool {
        self.achieved_per_s < SATURATED * self.offered_per_s
    }

    /// Whether it is INVALID only because the server could not do more.
    fn only_missed_the_rate(&self) -> bool {
        matches!(self.verdict.reasons.as_slice(), [only] if only.starts_with(RATE_MISSED))
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
        if step.verdict.valid || best.is_none() {
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

/// What the steps say: the highest VALID rate, and what happened at those above it.
fn capacity(steps: &[Step]) -> String {
    let known = steps.iter().filter(|step| step.verdict.valid).map(|step| step.offered_per_s);
    let known = known.fold(0.0, f64::max);
    let above: Vec<&Step> = steps.iter().filter(|step| known < step.offered_per_s).collect();
    let disturbed = above.iter().find(|step| !step.only_missed_the_rate());
    let first = if known > 0.0 {
        format!("{} requests a second is the highest rate that is VALID.", report::count(known))
    } else {
        "No rate was VALID.".to_owned()
    };
    let then = match (above.as_slice(), disturbed) {
        ([], _) => return format!("{first} It is the highest that was tried, so capacity lies above it."),
        (_, None) if known > 0.0 => "Above it the server is saturated.".to_owned(),
        (_, None) => "The server was saturated from the first on: begin lower (sweep.first).".to_owned(),
        (_, Some(step)) => format!(
            "What it can do above that is not known: {} was INVALID ({}).",
            report::count(step.offered_per_s),
            report::short_reasons(&step.verdict.reasons)
        ),
    };
    let most = |one: &&&Step, other: &&&Step| one.achieved_per_s.total_cmp(&other.achieved_per_s);
    let end = above.iter().max_by(most).map_or_else(String::new, |step| end(step));
    format!("{first} {then} {end}")
}

/// The step with the most answers: how many orders they amount to, and what was full.
fn end(step: &Step) -> String {
    let orders = step.orders_each.map_or_else(String::new, |each| {
        let rate = report::about(step.achieved_per_s * each);
        format!(", which cost it as much as {rate} orders with a signature each")
    });
    let full = step.busiest.as_ref().filter(|_| step.is_saturated());
    format!(
        "At most {} a second were answered, of {}{orders}.{}",
        report::count(step.achieved_per_s),
        report::count(step.offered_per_s),
        full.map_or_else(String::new, report::at_the_end)
    )
}

fn write(out: &Path, steps: &[Step], best: &Outcome) -> Result<String, String> {
    let summary = &best.summary;
    let name = format!("sweep-{}", summary.scenario);
    let folder = report::new_folder(out, &name, &summary.environment.date)?;
    report::histograms(&folder, best)?;
    report::save(&folder.join("summary.json"), summary.json().as_bytes())?;
    let mut json = serde_json::to_string_pretty(steps).expect("steps have no maps with odd keys");
    json.push('\n');
    report::save(&folder.join(STEPS), json.as_bytes())?;
    draw(&folder, steps, summary)?;
    Ok(folder.join("report.html").display().to_string())
}

/// The steps in the folder of a summary, if it is a sweep's.
pub(crate) fn steps(folder: &Path) -> Result<Option<Vec<Step>>, String> {
    let path = folder.join(STEPS);
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    serde_json::from_str(&text).map(Some).map_err(|fault| format!("{}: {fault}", path.display()))
}

/// Writes the page of a sweep into its folder; `summary` is of the step that the page shows in full.
pub(crate) fn draw(folder: &Path, steps: &[Step], summary: &Summary) -> Result<(), String> {
    let mut page = Page::new(&format!("outcry perf: a sweep of {}", summary.scenario));
    page.note(&summary.purpose);
    page.paragraph(&capacity(steps));
    if let Some(words) = disturbed(steps) {
        page.paragraph(&words);
    }
    page.hockey_stick(steps)?;
    let valid = summary.verdict.valid;
    page.heading(if valid { "The highest VALID rate" } else { "The first rate: none was VALID" });
    page.about(summary)?;
    report::save(&folder.join("report.html"), page.end().as_bytes())
}

/// How many rates say nothing about the server, saturated or not.
fn disturbed(steps: &[Step]) -> Option<String> {
    let count = steps.iter().filter(|step| !step.verdict.valid && !step.only_missed_the_rate()).count();
    (0 < count).then(|| {
        let all = steps.len();
        format!("INVALID for another reason than a missed rate: {count} of {all} rates; see the table.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(offered: f64, achieved: f64, reasons: &[&str]) -> Step {
        Step {
            offered_per_s: offered,
            achieved_per_s: achieved,
            latency: Quantiles::default(),
            busiest: None,
            orders_each: None,
            verdict: Verdict {
                valid: reasons.is_empty(),
                reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            },
        }
    }

    #[test]
    fn a_sweep_is_drawn_again_from_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(steps(folder.path()).unwrap().is_none(), "a run has none");
        let all = [step(1_000.0, 1_000.0, &[]), step(2_000.0, 1_500.0, &["rate missed: 1500 of 2000"])];
        report::save(&folder.path().join(STEPS), serde_json::to_string(&all).unwrap().as_bytes()).unwrap();
        let again = steps(folder.path()).unwrap().expect("there are steps");
        draw(folder.path(), &again, &crate::summary::example()).unwrap();
        let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        assert!(page.contains("At most 1,500 a second were answered, of 2,000."), "{page}");
    }

    #[test]
    fn a_rate_that_was_missed_while_others_had_the_cpus_is_told_among_the_disturbed() {
        let (missed, others) = ("rate missed: 2600 of 4000", "others had CPU 1: 67 %");
        for (reasons, expected) in [
            ([&[][..], &[], &[]], None),
            ([&[], &[missed], &[missed]], None),
            ([&[], &[others], &[missed]], Some(1)),
            ([&[others], &[missed, others], &[missed, others]], Some(3)),
        ] {
            let steps = reasons.map(|reasons| step(4_000.0, 2_600.0, reasons));
            let expected = expected.map(|count| {
                format!("INVALID for another reason than a missed rate: {count} of 3 rates; see the table.")
            });
            assert_eq!(disturbed(&steps), expected, "{reasons:?}");
        }
    }

    #[test]
    fn only_a_valid_rate_is_known_and_only_a_missed_one_is_the_servers_end() {
        let (one, two) = (step(1_000.0, 1_000.0, &[]), step(2_000.0, 1_990.0, &[]));
        let missed = step(4_000.0, 2_600.0, &["rate missed: 2600 of 4000"]);
        let late = step(4_000.0, 4_000.0, &["generator late: 200 µs"]);
        let late_two = step(2_000.0, 2_000.0, &["generator late: 200 µs"]);
        let both = step(4_000.0, 2_600.0, &["rate missed: 2600 of 4000", "others had CPU 1: 67 %"]);
        for (steps, expected) in [
            (
                vec![&one, &two],
                "2,000 requests a second is the highest rate that is VALID. It is the highest that was tried, so capacity lies above it.",
            ),
            (
                vec![&one, &two, &missed],
                "2,000 requests a second is the highest rate that is VALID. Above it the server is saturated. At most 2,600 a second were answered, of 4,000.",
            ),
            (
                vec![&one, &late],
                "1,000 requests a second is the highest rate that is VALID. What it can do above that is not known: 4,000 was INVALID (generator late). At most 4,000 a second were answered, of 4,000.",
            ),
            (
                vec![&one, &late_two, &missed],
                "1,000 requests a second is the highest rate that is VALID. What it can do above that is not known: 2,000 was INVALID (generator late). At most 2,600 a second were answered, of 4,000.",
            ),
            (
                vec![&two, &both],
                "2,000 requests a second is the highest rate that is VALID. What it can do above that is not known: 4,000 was INVALID (rate missed, others had CPU 1). At most 2,600 a second were answered, of 4,000.",
            ),
            (
                vec![&missed],
                "No rate was VALID. The server was saturated from the first on: begin lower (sweep.first). At most 2,600 a second were answered, of 4,000.",
            ),
            (
                vec![&late],
                "No rate was VALID. What it can do above that is not known: 4,000 was INVALID (generator late). At most 4,000 a second were answered, of 4,000.",
            ),
        ] {
            let steps: Vec<Step> = steps.into_iter().cloned().collect();
            assert_eq!(capacity(&steps), expected);
        }
    }
}
