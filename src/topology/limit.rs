//! The one thing that limits this machine most, in a sentence.

use super::checks::{Finding, Needs, Severity, Verdict};
use super::machine::{Machine, counted, cpus_of};
use super::placement::SPARE_CORES;

/// What an operator would have to change first; the causes in the order of what they cost.
#[must_use]
pub fn sentence(machine: &Machine, needs: &Needs, findings: &[Finding]) -> String {
    let failed =
        |id: &str| findings.iter().find(|finding| finding.id == id && finding.verdict == Verdict::Failed);
    let fatal = findings
        .iter()
        .find(|finding| finding.severity == Severity::Fatal && finding.verdict == Verdict::Failed);
    let said = if let Some(fatal) = fatal {
        format!("the exchange cannot run: {}, {}", fatal.id, fatal.current)
    } else {
        of_cpus(machine, needs).unwrap_or_else(|| {
            const BY_COST: [&str; 8] = [
                "cpu.steal",
                "jitter",
                "cpu.smt",
                "numa.local",
                "io.journal_fs",
                "cpu.governor",
                "irq.affinity",
                "time.clocksource",
            ];
            match BY_COST.iter().find_map(|id| failed(id)) {
                Some(finding) => format!("{} ({}): {}", finding.id, finding.current, finding.why),
                None => of_shards(needs),
            }
        })
    };
    format!("what limits this machine: {said}")
}

fn of_cpus(machine: &Machine, needs: &Needs) -> Option<String> {
    let (cores, needed) = (machine.cores(), needs.loops + SPARE_CORES);
    if let Some(milli) = machine.quota_milli {
        return Some(format!(
            "a quota of {}; when it is used up every thread stands still for the rest of the period",
            cpus_of(milli)
        ));
    }
    if machine.allowed.len() == 1 {
        return Some("one CPU carries orders, reads and the journal in turn".to_owned());
    }
    (cores < needed).then(|| {
        format!(
            "{cores} cores for {} loops, the journal thread and the system, {needed} would do: nothing can spin, \
             so an order also waits until its loop has been woken",
            needs.loops
        )
    })
}

fn of_shards(needs: &Needs) -> String {
    format!(
        "nothing in its settings; {} on {}, and one market is never faster than its one core",
        counted(needs.shards, "shard"),
        counted(needs.shards, "core")
    )
}
