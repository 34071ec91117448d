//! Whether a run says something about the server, or only about what disturbed it.

use outcry::topology::valid;
use serde::{Deserialize, Serialize};

use crate::generator::PATIENCE;
use crate::jitter::Jitter;
use crate::placement::Thread;
use crate::summary::LoopBusy;
use crate::watch::{LOST_MAX, Other, Share};

/// The part of the offered rate that must be achieved. What is under way at the end of the measured time counts as
/// missed, so a stall of the last hundredth of it is one too.
pub(crate) const RATE_MIN: f64 = 0.99;

/// The start of the one reason that is the server's own: it answered less than was offered.
pub(crate) const RATE_MISSED: &str = "rate missed";

/// The start of the reason that the client sent behind its schedule at p99.
pub(crate) const GENERATOR_LATE: &str = "generator late";

/// The start of the reason that the hypervisor had the CPUs.
const STEAL: &str = "steal";

/// The most that a thread that only spins may lose of a CPU, in percent; the same limit as in `outcry check --jitter`.
pub(crate) const LOST_PERCENT_MAX: f64 = valid::LOST_PERCENT_MAX as f64;

/// A loop that works more of the time than this has too little idle time to notice what is taken.
const NOTICING_BUSY_MAX: f64 = 0.9;

/// What was lost of a CPU while the load was on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meanwhile {
    pub(crate) cpu: usize,
    pub(crate) lost_percent: f64,
    /// Whether that is all of the loss. Waiting for the CPU is only the part that other threads had: a host that takes
    /// the CPU makes nobody here wait for it.
    pub(crate) is_all: bool,
    /// The loss as a sentence, named by the thread that noticed it.
    pub(crate) text: String,
}

/// The known loss of each CPU while the load was on. A trading loop that only spun knows it from its own rounds; a loop
/// that slept, if only after a while, and the client, from how long they waited for the CPU.
pub(crate) fn meanwhile(
    loops: &[LoopBusy],
    threads: &[Thread],
    (client_cpu, client_lost_percent): (usize, Option<f64>),
) -> Vec<Meanwhile> {
    let of_thread = |thread: &Thread| {
        let told = loops.iter().find(|told| told.name == thread.name)?;
        let (cpu, name) = (thread.cpu?, &told.name);
        if thread.never_sleeps() {
            let away = told.away.as_ref().filter(|_| told.busy <= NOTICING_BUSY_MAX)?;
            let lost_percent = away.lost_percent;
            let text = format!(
                "{name}, which spins, had none of CPU {cpu} for {lost_percent:.1} % of its time without work"
            );
            return Some(Meanwhile { cpu, lost_percent, is_all: true, text });
        }
        let lost_percent = told.waited_percent?;
        let text =
            format!("{name} waited for CPU {cpu}, which others had, for {lost_percent:.1} % of the time");
        Some(Meanwhile { cpu, lost_percent, is_all: false, text })
    };
    let trading = threads.iter().filter(|thread| thread.is_trading());
    let mut all: Vec<Meanwhile> = trading.filter_map(of_thread).collect();
    let clients = client_lost_percent.filter(|_| all.iter().all(|told| told.cpu != client_cpu));
    all.extend(clients.map(|lost_percent| Meanwhile {
        cpu: client_cpu,
        lost_percent,
        is_all: false,
        text: format!("others had {lost_percent:.1} % of CPU {client_cpu}, which is the client's"),
    }));
    all
}

/// What counts of the loss of a thread that only spins, before or after the run. If what other threads had while the
/// load was on is known, only what nobody here is charged with counts, and only if it is more. Nothing counts if all of
/// the loss is known.
fn counted_percent(meanwhile: &[Meanwhile], row: &Jitter) -> Option<f64> {
    let Some(told) = meanwhile.iter().find(|told| told.cpu == row.cpu) else { return Some(row.lost_percent) };
    Some(row.uncharged_percent()).filter(|percent| !told.is_all && told.lost_percent < *percent)
}

/// What the verdict is judged by.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    /// Requests a second by the schedule.
    pub(crate) offered: f64,
    /// Answers a second that came in the measured time.
    pub(crate) achieved: f64,
    /// Requests that were not answered until the client gave up.
    pub(crate) unanswered: u64,
    /// Whether answers still came when the client gave up.
    pub(crate) is_still_answering: bool,
    /// How late requests were sent, in microseconds at p99.
    pub(crate) late_p99_us: f64,
    /// How late they may be at p99, in microseconds.
    pub(crate) late_max_us: f64,
    /// Who had the CPUs.
    pub(crate) share: Share,
    /// Who of the others had most of them.
    pub(crate) largest: Option<Other>,
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
        let is_behind = 0 < evidence.unanswered && evidence.is_still_answering;
        if is_behind || evidence.achieved < RATE_MIN * evidence.offered {
            let behind = if is_behind {
                let after_s = PATIENCE.as_secs();
                format!(
                    "; {} had no answer {after_s} s after the last was due, while answers still came",
                    evidence.unanswered
                )
            } else {
                String::new()
            };
            reasons.push(format!(
                "{RATE_MISSED}: {:.0} of {:.0} requests a second were answered ({:.1} %; at least {:.0} %){behind}",
                evidence.achieved,
                evidence.offered,
                100.0 * evidence.achieved / evidence.offered,
                100.0 * RATE_MIN
            ));
        }
        if 0 < evidence.unanswered && !is_behind {
            reasons.push(format!("errors: {} requests were never answered", evidence.unanswered));
        }
        if evidence.late_max_us < evidence.late_p99_us {
            reasons.push(format!(
                "{GENERATOR_LATE}: it sent {:.0} µs behind its schedule at p99 (at most {:.0} µs)",
                evidence.late_p99_us, evidence.late_max_us
            ));
        }
        reasons.extend(lost(evidence.share, evidence.largest.as_ref(), evidence.cpus));
        Self::because(reasons)
    }

    /// Judges a measurement without a schedule of the rig: it is valid if nobody else had the CPUs and there is no
    /// other reason.
    pub(crate) fn of_share(
        share: Share,
        largest: Option<&Other>,
        cpus: usize,
        mut reasons: Vec<String>,
    ) -> Self {
        reasons.extend(lost(share, largest, cpus));
        Self::because(reasons)
    }

    /// VALID if there is no reason.
    pub(crate) fn because(reasons: Vec<String>) -> Self {
        Self { valid: reasons.is_empty(), reasons }
    }

    /// Judges the CPUs of the run as well: by what was lost of them while the load was on. Where that is not known, or
    /// only the part that other threads had, by what a thread that only spins lost before or after the run, whichever is
    /// more.
    pub(crate) fn and_cpus(mut self, meanwhile: &[Meanwhile], before: &[Jitter], after: &[Jitter]) -> Self {
        for Meanwhile { cpu, text, .. } in
            meanwhile.iter().filter(|told| LOST_PERCENT_MAX < told.lost_percent)
        {
            let reason = format!(
                "others had CPU {cpu}: while the load was on, {text} (at most {LOST_PERCENT_MAX:.0} %)"
            );
            self.reasons.push(reason);
        }
        let around = before.iter().map(|row| ("before", row)).chain(after.iter().map(|row| ("after", row)));
        let counted: Vec<_> = around
            .filter_map(|(when, row)| Some((when, row, counted_percent(meanwhile, row)?)))
            .filter(|(.., percent)| LOST_PERCENT_MAX < *percent)
            .collect();
        let is_worst = |cpu: usize, percent: f64| {
            counted.iter().all(|(_, other, others)| other.cpu != cpu || *others <= percent)
        };
        for (when, row, percent) in counted.iter().filter(|(_, row, percent)| is_worst(row.cpu, *percent)) {
            let which = if *percent < row.lost_percent { ", which no thread here had" } else { "" };
            self.reasons.push(format!(
                "others had CPU {}: {when} the run a thread that only spins lost {percent:.1} % of it{which} (at most \
                 {LOST_PERCENT_MAX:.0} %): {}",
                row.cpu,
                row.takers()
            ));
        }
        self.valid = self.reasons.is_empty();
        self
    }

    /// Whether others, or the host, had the CPUs.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.reasons.iter().any(|reason| [STEAL, "others had"].iter().any(|start| reason.starts_with(start)))
    }

    /// VALID or INVALID.
    pub(crate) fn word(&self) -> &'static str {
        if self.valid { "VALID" } else { "INVALID" }
    }
}

/// If the largest process that was seen had less than this part of what others had, most of it was somebody else's.
const LARGEST_MIN: f64 = 0.1;

/// The reasons about who else had the CPUs, if they had enough to matter.
fn lost(share: Share, largest: Option<&Other>, cpus: usize) -> Vec<String> {
    #[allow(clippy::cast_precision_loss, reason = "CPUs are few")]
    let cpus = cpus as f64;
    let mut reasons = Vec::new();
    let most = largest.map_or_else(
        || "; nobody is charged: interrupts, or what has ended".to_owned(),
        |Other { who, cpus: had, .. }| {
            let ended = if *had < LARGEST_MIN * share.others {
                "; so most of it had what has ended meanwhile, or nobody is charged: interrupts, the host"
            } else {
                ""
            };
            format!("; the largest of them: {who}, {:.1} %{ended}", 100.0 * had.min(share.others) / cpus)
        },
    );
    for (what, had, who) in [
        (STEAL, share.stolen, "; the host had them, for other guests or for this one's disks and cards"),
        ("others had the machine", share.others, most.as_str()),
    ] {
        if LOST_MAX * cpus < had {
            reasons.push(format!(
                "{what}: {:.1} % of the {cpus} CPUs (at most {:.0} %){who}",
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
    use crate::away::Away;

    const QUIET: Evidence = Evidence {
        offered: 1_000.0,
        achieved: 1_000.0,
        unanswered: 0,
        is_still_answering: false,
        late_p99_us: 5.0,
        late_max_us: 100.0,
        share: Share { stolen: 0.0, others: 0.0, server: 1.0, kernel: 0.0 },
        largest: None,
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
        // A server that is behind has lost nothing.
        let behind = Evidence { unanswered: 7, is_still_answering: true, ..QUIET };
        let missed = "rate missed: 500 of 1000 requests a second were answered (50.0 %; at least 99 %); 7 had no answer 15 s \
                      after the last was due, while answers still came";
        reasons(&Evidence { achieved: 500.0, ..behind.clone() }, &[missed]);
        reasons(&behind, &["rate missed: 1000 of 1000"]);
        reasons(&Evidence { is_still_answering: true, ..QUIET }, &[]);
        reasons(&Evidence { late_p99_us: 100.0, ..QUIET }, &[]);
        reasons(&Evidence { late_p99_us: 100.1, ..QUIET }, &["generator late"]);
        let share = |stolen, others| Share { stolen, others, ..QUIET.share };
        reasons(&Evidence { share: share(0.02, 0.02), ..QUIET }, &[]);
        reasons(&Evidence { share: share(0.021, 0.0), ..QUIET }, &["steal"]);
        reasons(&Evidence { share: share(0.0, 0.021), ..QUIET }, &["others had the machine"]);
        // What the kernel's threads had, counted apart, belongs to the load.
        let kernel = |others| Share { others, kernel: 0.5, ..QUIET.share };
        reasons(&Evidence { share: kernel(0.02), ..QUIET }, &[]);
        reasons(&Evidence { share: kernel(0.021), ..QUIET }, &["others had the machine"]);
    }

    #[test]
    fn what_has_no_schedule_is_judged_by_its_share_and_its_own_words() {
        let quiet = Share { others: 0.02, ..QUIET.share };
        assert_eq!(Verdict::of_share(quiet, None, 2, Vec::new()).word(), "VALID");
        let own = vec!["it says so".to_owned()];
        assert_eq!(Verdict::of_share(quiet, None, 2, own.clone()).reasons, own);
        let loud = Verdict::of_share(Share { stolen: 0.5, ..quiet }, None, 2, own);
        assert!(loud.reasons[1].starts_with("steal: 25.0 %"), "{loud:?}");
    }

    #[test]
    fn who_had_most_is_named_in_the_reason() {
        let share = Share { stolen: 0.5, others: 0.062, ..QUIET.share };
        let of = |largest| Verdict::of(&Evidence { share, largest, ..QUIET }).reasons;
        let steal = "steal: 25.0 % of the 2 CPUs (at most 1 %); the host had them, for other guests or for this one's disks and cards";
        let rustc =
            |cpus| Some(Other { who: "rustc (4711)".to_owned(), is_kernels: false, cpus, may_have: None });
        for (largest, others) in [
            (rustc(0.052), "the largest of them: rustc (4711), 2.6 %"),
            (
                rustc(0.004),
                "the largest of them: rustc (4711), 0.2 %; so most of it had what has ended meanwhile, or nobody is charged: \
                 interrupts, the host",
            ),
            // Ticks are coarser than the rest that remains after everything known is subtracted.
            (rustc(0.1), "the largest of them: rustc (4711), 3.1 %"),
            (None, "nobody is charged: interrupts, or what has ended"),
        ] {
            let others = format!("others had the machine: 3.1 % of the 2 CPUs (at most 1 %); {others}");
            assert_eq!(of(largest), [steal.to_owned(), others]);
        }
    }

    #[test]
    fn a_cpu_of_the_run_that_others_had_before_or_after_is_a_reason() {
        let row = |cpu, lost_percent| Jitter {
            cpu,
            lost_percent,
            ..crate::summary::example().jitter_before[0].clone()
        };
        let quiet = [row(0, 0.5), row(1, 2.0)];
        let busy = [row(0, 2.1), row(1, 67.0)];
        let louder = [row(0, 5.0), row(1, 60.0)];
        for (before, after, starts) in [
            (&quiet, &quiet, vec![]),
            (&quiet, &busy, vec!["others had CPU 0: after the run", "others had CPU 1: after the run"]),
            (&busy, &quiet, vec!["others had CPU 0: before the run", "others had CPU 1: before the run"]),
            (&louder, &busy, vec!["others had CPU 0: before the run", "others had CPU 1: after the run"]),
        ] {
            let verdict = Verdict::of(&QUIET).and_cpus(&[], before, after);
            assert_eq!((verdict.valid, verdict.reasons.len()), (starts.is_empty(), starts.len()));
            for (reason, start) in verdict.reasons.iter().zip(starts) {
                assert!(reason.starts_with(start), "{reason}");
            }
        }
        let all = Verdict::of(&Evidence { unanswered: 1, ..QUIET }).and_cpus(&[], &busy, &quiet);
        assert!(
            all.reasons[0].starts_with("errors") && all.reasons[2].contains("lost 67.0 % of it"),
            "{all:?}"
        );
    }

    #[test]
    fn what_a_cpu_lost_while_the_load_was_on_counts_before_what_it_lost_around() {
        let example = crate::summary::example();
        let (of_loop, of_client) = (
            "CPU 0: while the load was on, outcry-shard0, which spins, had none of CPU 0 for 2.1 % of its time without work",
            "CPU 1: while the load was on, others had 2.1 % of CPU 1, which is the client's (at most 2 %)",
        );
        let after = ["CPU 0: before the run", "CPU 1: before the run"];
        let of_host = [
            "CPU 0: before the run a thread that only spins lost 2.9 % of it, which no thread here had (at most 2 %)",
            "CPU 1: before the run a thread that only spins lost 2.9 % of it, which no thread here had (at most 2 %)",
        ];
        let of_sleeper = "CPU 0: while the load was on, outcry-shard0 waited for CPU 0, which others had, for 2.1 % of the time";
        // Around the run 3 % of both CPUs were lost, this much of it to other threads.
        let (threads, host) = (2.9, 0.1);
        for (wait, busy, of_its_loop, of_clients, around, starts) in [
            ("spin", 0.5, Some(2.0), Some(2.0), threads, vec![]),
            ("spin", 0.5, Some(2.1), Some(0.1), threads, vec![of_loop]),
            ("spin", 0.5, Some(0.1), Some(2.1), threads, vec![of_client]),
            ("park", 0.5, Some(2.0), Some(0.1), threads, vec![]),
            ("park", 0.5, Some(2.1), Some(0.1), threads, vec![of_sleeper]),
            // A host takes a CPU without making anybody here wait; only a loop that spins notices.
            ("spin", 0.5, Some(0.1), Some(0.1), host, vec![of_host[1]]),
            ("park", 0.5, Some(0.1), Some(0.1), host, of_host.to_vec()),
            // The larger of the two counts.
            ("park", 0.5, Some(3.1), Some(0.1), host, vec!["CPU 0: while the load was on", of_host[1]]),
            // Where nobody noticed: a loop with hardly any idle time, or a server or kernel that does not report it.
            ("park", 0.5, None, Some(0.1), threads, vec![after[0]]),
            ("spin", 0.95, Some(0.1), Some(0.1), threads, vec![after[0]]),
            ("spin", 0.5, None, None, threads, after.to_vec()),
        ] {
            let rows = [0, 1].map(|cpu| Jitter {
                cpu,
                lost_percent: 3.0,
                threads_percent: Some(around),
                ..example.jitter_before[0].clone()
            });
            let away = of_its_loop.map(|lost_percent| Away { lost_percent, ..Away::default() });
            let loops = [LoopBusy { busy, away, waited_percent: of_its_loop, ..example.loops[0].clone() }];
            let threads = [Thread { cpu: Some(0), wait: wait.to_owned(), ..example.threads[0].clone() }];
            let told = meanwhile(&loops, &threads, (1, of_clients));
            let Verdict { reasons, .. } = Verdict::of(&QUIET).and_cpus(&told, &rows, &[]);
            assert_eq!(reasons.len(), starts.len(), "{reasons:?}");
            assert!(
                reasons
                    .iter()
                    .zip(starts)
                    .all(|(reason, start)| reason["others had ".len()..].starts_with(start)),
                "{reasons:?}"
            );
        }
    }

    #[test]
    fn all_reasons_are_told() {
        let share = Share { stolen: 1.0, others: 1.0, server: 0.0, kernel: 0.0 };
        let worst = Evidence { achieved: 1.0, unanswered: 3, late_p99_us: 1e6, share, ..QUIET };
        reasons(&worst, &["rate missed", "errors", "generator late", "steal", "others had the machine"]);
    }
}
