//! One scenario at rising rates: the server's capacity ends where the times start to climb.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::report::{self, Page};
use crate::run::{self, Ground, Outcome};
use crate::scenario::Plan;
use crate::stats::Quantiles;
use crate::summary::{LoopBusy, Summary};
use crate::verdict::{RATE_MIN, RATE_MISSED, Verdict};

/// After this many saturated steps in a row, which missed their rates, a sweep ends.
const SATURATED_STEPS: usize = 2;

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

    /// A rate at which nothing could be measured.
    fn failed(rate: f64, fault: &str) -> Self {
        let what = fault.lines().next().unwrap_or_default();
        Self {
            offered_per_s: rate,
            achieved_per_s: 0.0,
            latency: Quantiles::default(),
            busiest: None,
            orders_each: None,
            verdict: Verdict::because(vec![format!("failed: {what}")]),
        }
    }

    /// Whether anything was measured.
    pub(crate) fn is_measured(&self) -> bool {
        0 < self.latency.count
    }

    fn is_saturated(&self) -> bool {
        self.achieved_per_s < RATE_MIN * self.offered_per_s
    }

    /// Whether it is INVALID only because the server could not do more.
    fn only_missed_the_rate(&self) -> bool {
        matches!(self.verdict.reasons.as_slice(), [only] if only.starts_with(RATE_MISSED))
    }
}

/// What a sweep came to.
struct Climbed {
    steps: Vec<Step>,
    /// The run that the page shows in full, if anything was measured.
    best: Option<Outcome>,
    /// Why the last step could not be measured.
    failed: Option<String>,
}

/// Runs a plan at each rate of its sweep, each with a server of its own. If one fails, those before it are kept.
pub(crate) fn run(ground: &Ground, plan: &Plan) -> Result<(), String> {
    println!("{}: {}", plan.name, plan.purpose);
    println!("{}", report::step_head());
    let Climbed { steps, best, failed } = climb(plan, |plan| run::run(ground, plan));
    if let Some(best) = &best {
        println!("{}", capacity(&steps));
        println!("{}", write(&ground.out, &steps, best)?);
    }
    failed.map_or(Ok(()), Err)
}

/// Rising rates until the server is saturated, or until one cannot be measured.
fn climb(plan: &Plan, mut measure: impl FnMut(&Plan) -> Result<Outcome, String>) -> Climbed {
    let mut climbed = Climbed { steps: Vec::new(), best: None, failed: None };
    let mut rate = plan.sweep.first;
    for _ in 0..plan.sweep.count {
        let outcome = match measure(&plan.at(rate)) {
            Ok(outcome) => outcome,
            Err(fault) => {
                let step = Step::failed(rate, &fault);
                println!("{}", report::step_line(&step));
                climbed.steps.push(step);
                climbed.failed = Some(format!("{} a second failed: {fault}", report::count(rate)));
                break;
            }
        };
        let step = Step::of(&outcome.summary);
        println!("{}", report::step_line(&step));
        if step.verdict.valid || climbed.best.is_none() {
            climbed.best = Some(outcome);
        }
        climbed.steps.push(step);
        if is_over(&climbed.steps, Step::is_saturated) {
            break;
        }
        rate *= plan.sweep.factor;
    }
    climbed
}

/// Whether as many of the last steps as end a sweep are beyond what can be held.
pub(crate) fn is_over<S>(steps: &[S], is_beyond: impl Fn(&S) -> bool) -> bool {
    let last = &steps[steps.len().saturating_sub(SATURATED_STEPS)..];
    last.len() == SATURATED_STEPS && last.iter().all(is_beyond)
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
    let answered = above.iter().filter(|step| step.is_measured());
    let end = answered.max_by(most).map_or_else(String::new, |step| format!(" {}", end(step)));
    format!("{first} {then}{end}")
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
            latency: Quantiles { count: 1, ..Quantiles::default() },
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
    fn a_rate_that_fails_ends_a_sweep_and_what_was_measured_before_it_is_kept() {
        let text = "purpose = \"x\"\n[load]\nrate = 1000\n[mix]\nplace = 1\n[sweep]\nfirst = 1000\nfactor = 2\nsteps = 3\n";
        let plan = Plan::parse("t", text).unwrap();
        for (fails_at, steps, best, failed) in [
            (1_000.0, 1, None, Some("1,000 a second failed: it died\nits words")),
            (2_000.0, 2, Some(1_000.0), Some("2,000 a second failed: it died\nits words")),
            (8_000.0, 3, Some(4_000.0), None),
        ] {
            let climbed = climb(&plan, |plan| {
                let summary = Summary {
                    offered_per_s: plan.rate,
                    achieved_per_s: plan.rate,
                    ..crate::summary::example()
                };
                let outcome = Outcome { summary, histograms: Vec::new(), place: Vec::new() };
                if plan.rate < fails_at { Ok(outcome) } else { Err("it died\nits words".to_owned()) }
            });
            assert_eq!(climbed.steps.len(), steps, "{fails_at}");
            assert_eq!(climbed.best.map(|best| best.summary.offered_per_s), best, "{fails_at}");
            assert_eq!(climbed.failed.as_deref(), failed);
            if let (Some(best), Some(_)) = (best, failed) {
                let folder = tempfile::tempdir().unwrap();
                draw(folder.path(), &climbed.steps, &crate::summary::example()).unwrap();
                let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
                let known =
                    format!("{} requests a second is the highest rate that is VALID.", report::count(best));
                let unknown = "What it can do above that is not known: 2,000 was INVALID (failed).</p>";
                assert!(page.contains(&format!("{known} {unknown}")), "{page}");
            }
        }
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
