//! Whether a run says something about the server, or about what disturbed it.

use serde::{Deserialize, Serialize};

use crate::watch::{LOST_MAX, Share};

/// The part of the offered rate that has to be achieved.
const RATE_MIN: f64 = 0.99;

/// What the verdict goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Requests a second by the schedule.
    pub(crate) offered: f64,
    /// Requests a second that were answered.
    pub(crate) achieved: f64,
    /// Requests that were never answered.
    pub(crate) unanswered: u64,
    /// How late requests were sent, in microseconds at p99.
    pub(crate) late_p99_us: f64,
    /// How late they may be.
    pub(crate) late_max_us: f64,
    /// Who had the CPUs.
    pub(crate) share: Share,
    /// How many CPUs were measured on.
    pub(crate) cpus: usize,
}

/// VALID, or INVALID with every reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// True if no reason was found.
    pub(crate) valid: bool,
    /// Why not.
    pub(crate) reasons: Vec<String>,
}

impl Verdict {
    /// Judges a run.
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let mut reasons = Vec::new();
        if evidence.achieved < RATE_MIN * evidence.offered {
            reasons.push(format!(
                "rate missed: {:.0} of {:.0} requests a second were answered ({:.1} %; at least {:.0} %)",
                evidence.achieved,
                evidence.offered,
                100.0 * evidence.achieved / evidence.offered,
                100.0 * RATE_MIN
            ));
        }
        if 0 < evidence.unanswered {
            reasons.push(format!("errors: {} requests were never answered", evidence.unanswered));
        }
        if evidence.late_max_us < evidence.late_p99_us {
            reasons.push(format!(
                "generator late: it sent {:.0} µs behind its schedule at p99 (at most {:.0} µs)",
                evidence.late_p99_us, evidence.late_max_us
            ));
        }
        reasons.extend(lost(evidence.share, evidence.cpus));
        Self::because(reasons)
    }

    /// Judges what kept no schedule of ours: it is valid if nobody else had the CPUs and nothing else
    /// speaks against it.
    pub(crate) fn of_share(share: Share, cpus: usize, mut reasons: Vec<String>) -> Self {
        reasons.extend(lost(share, cpus));
        Self::because(reasons)
    }

    /// VALID if there is no reason against it.
    pub(crate) fn because(reasons: Vec<String>) -> Self {
        Self { valid: reasons.is_empty(), reasons }
    }

    /// The word.
    pub(crate) fn word(&self) -> &'static str {
        if self.valid { "VALID" } else { "INVALID" }
    }
}

/// Who else had the CPUs, if that was enough to matter.
fn lost(share: Share, cpus: usize) -> Vec<String> {
    #[allow(clippy::cast_precision_loss, reason = "CPUs are few")]
    let cpus = cpus as f64;
    let mut reasons = Vec::new();
    for (what, had) in [("steal", share.stolen), ("others had the machine", share.others)] {
        if LOST_MAX * cpus < had {
            reasons.push(format!(
                "{what}: {:.1} % of the {cpus} CPUs (at most {:.0} %)",
                100.0 * had / cpus,
                100.0 * LOST_MAX
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Evidence = Evidence {
        offered: 1_000.0,
        achieved: 1_000.0,
        unanswered: 0,
        late_p99_us: 5.0,
        late_max_us: 100.0,
        share: Share { stolen: 0.0, others: 0.0, server: 1.0, kernel: 0.0 },
        cpus: 2,
    };

    #[track_caller]
    fn reasons(evidence: &Evidence, starts: &[&str]) {
        let verdict = Verdict::of(evidence);
        assert_eq!(verdict.valid, starts.is_empty());
        assert_eq!(verdict.reasons.len(), starts.len(), "{verdict:?}");
        for (reason, start) in verdict.reasons.iter().zip(starts) {
            assert!(reason.starts_with(start), "{reason}");
        }
    }

    #[test]
    fn each_disturbance_is_a_reason_and_a_quiet_run_has_none() {
        reasons(&QUIET, &[]);
        reasons(&Evidence { achieved: 990.0, ..QUIET }, &[]);
        reasons(&Evidence { achieved: 989.9, ..QUIET }, &["rate missed"]);
        reasons(&Evidence { unanswered: 1, ..QUIET }, &["errors"]);
        reasons(&Evidence { late_p99_us: 100.0, ..QUIET }, &[]);
        reasons(&Evidence { late_p99_us: 100.1, ..QUIET }, &["generator late"]);
        let share = |stolen, others| Share { stolen, others, ..QUIET.share };
        reasons(&Evidence { share: share(0.02, 0.02), ..QUIET }, &[]);
        reasons(&Evidence { share: share(0.021, 0.0), ..QUIET }, &["steal"]);
        reasons(&Evidence { share: share(0.0, 0.021), ..QUIET }, &["others had the machine"]);
    }

    #[test]
    fn what_has_no_schedule_is_judged_by_its_share_and_its_own_words() {
        let quiet = Share { others: 0.02, ..QUIET.share };
        assert_eq!(Verdict::of_share(quiet, 2, Vec::new()).word(), "VALID");
        let own = vec!["it says so".to_owned()];
        assert_eq!(Verdict::of_share(quiet, 2, own.clone()).reasons, own);
        let loud = Verdict::of_share(Share { stolen: 0.5, ..quiet }, 2, own);
        assert!(loud.reasons[1].starts_with("steal: 25.0 %"), "{loud:?}");
    }

    #[test]
    fn all_reasons_are_told() {
        let share = Share { stolen: 1.0, others: 1.0, server: 0.0, kernel: 0.0 };
        let worst = Evidence { achieved: 1.0, unanswered: 3, late_p99_us: 1e6, share, ..QUIET };
        reasons(&worst, &["rate missed", "errors", "generator late", "steal", "others had the machine"]);
    }
}
