//! Which rates `durable` holds, and how many acts share one write at each.

use super::Middle;
use crate::report;
use crate::run::{self, Ground};
use crate::scenario::Plan;
use crate::summary::Summary;
use crate::sweep::is_over;
use crate::verdict::RATE_MIN;

/// One rate of the sweep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) offered_per_s: f64,
    pub(super) achieved_per_s: f64,
    pub(super) p50_us: f64,
    /// Acts that shared one write.
    pub(super) acts_per_write: f64,
    /// Whether others had the CPUs meanwhile.
    pub(super) is_disturbed: bool,
}

impl Step {
    /// Whether it says how many acts share a write at its rate.
    pub(super) fn is_told(&self) -> bool {
        is_held(self) && !self.is_disturbed
    }
}

/// Rising rates until two in a row are not held, or until one cannot be measured; why it could not.
pub(super) fn climb(
    plan: &Plan,
    mut measure: impl FnMut(&Plan) -> Result<(Summary, Step), String>,
) -> (Vec<Step>, Option<String>) {
    println!("{:>11}{:>11}{:>11}{:>15}", "offered/s", "achieved/s", "p50 µs", "acts a write");
    let (mut steps, mut rate): (Vec<Step>, f64) = (Vec::new(), plan.sweep.first);
    for _ in 0..plan.sweep.count {
        let (summary, step) = match measure(&plan.at(rate)) {
            Ok(measured) => measured,
            Err(fault) => {
                return (steps, Some(format!("failed: {} a second: {fault}", report::count(rate))));
            }
        };
        println!(
            "{:11.0}{:11.0}{:11.1}{:15.2}  {}",
            step.offered_per_s,
            step.achieved_per_s,
            step.p50_us,
            step.acts_per_write,
            summary.verdict.word()
        );
        steps.push(step);
        if is_over(&steps, |step| !is_held(step)) {
            break;
        }
        rate *= plan.sweep.factor;
    }
    (steps, None)
}

/// Runs one rate, and once more if it was not held: a single hiccup of the disk is not its capacity.
pub(super) fn tried(ground: &Ground, plan: &Plan) -> Result<(Summary, Step), String> {
    let once = || {
        let summary = run::run(ground, plan)?.summary;
        let step = step(&summary)?;
        Ok::<_, String>((summary, step))
    };
    let first = once()?;
    if is_held(&first.1) { Ok(first) } else { once() }
}

fn step(summary: &Summary) -> Result<Step, String> {
    let shared = summary.acts_per_write();
    let acts_per_write = shared.ok_or("the server does not count the writes of its journal")?;
    Ok(Step {
        offered_per_s: summary.offered_per_s,
        achieved_per_s: summary.achieved_per_s,
        p50_us: Middle::of(summary)?.order_us,
        acts_per_write,
        is_disturbed: summary.verdict.is_disturbed(),
    })
}

fn is_held(step: &Step) -> bool {
    RATE_MIN * step.offered_per_s <= step.achieved_per_s
}

/// The highest rate that was held.
pub(super) fn capacity(steps: &[Step]) -> Result<f64, String> {
    let held = steps.iter().filter(|step| is_held(step)).map(|step| step.offered_per_s).fold(0.0, f64::max);
    if held == 0.0 {
        return Err("no rate of the sweep was held, so there is no half of it".to_owned());
    }
    Ok(held)
}

#[cfg(test)]
pub(super) fn at(offered_per_s: f64, achieved_per_s: f64) -> Step {
    let acts_per_write = offered_per_s / 1_000.0;
    Step { offered_per_s, achieved_per_s, p50_us: 90.0, acts_per_write, is_disturbed: false }
}

#[cfg(test)]
mod tests {
    use super::super::summary;
    use super::*;
    use crate::summary::ClassTimes;

    #[test]
    fn a_rate_that_fails_ends_the_sweep_and_leaves_those_before_it() {
        let text = "purpose = \"x\"\n[load]\nrate = 1000\n[mix]\nplace = 1\n[sweep]\nfirst = 1000\nfactor = 2\nsteps = 3\n";
        let plan = Plan::parse("t", text).unwrap();
        for (fails_at, steps, failed) in [
            (1_000.0, 0, Some("failed: 1,000 a second: it died")),
            (4_000.0, 2, Some("failed: 4,000 a second: it died")),
            (8_000.0, 3, None),
        ] {
            let measure = |plan: &Plan| {
                let rate = plan.rate;
                if rate < fails_at { Ok((summary(), at(rate, rate))) } else { Err("it died".to_owned()) }
            };
            let (found, told) = climb(&plan, measure);
            assert_eq!((found.len(), told.as_deref()), (steps, failed));
        }
    }

    #[test]
    fn capacity_is_the_highest_rate_that_was_held() {
        let steps = [at(500.0, 500.0), at(2_000.0, 1_995.0), at(4_000.0, 2_500.0)];
        assert_eq!(capacity(&steps), Ok(2_000.0));
        assert!(capacity(&steps[2..]).is_err());
    }

    #[test]
    fn acts_a_write_count_the_warm_up_and_no_reads() {
        let summary = summary();
        let mut half_reads = summary.clone();
        half_reads.classes.push(ClassTimes { class: "read".to_owned(), ..summary.classes[0].clone() });
        for (summary, acts) in [(&summary, 2_000.0 * 6.0), (&half_reads, 1_000.0 * 6.0)] {
            let step = step(summary).unwrap();
            assert!((step.acts_per_write - acts / 5_000.0).abs() < 1e-9, "{step:?}");
        }
        assert!(super::step(&Summary { journal_writes: None, ..summary }).is_err());
    }
}
