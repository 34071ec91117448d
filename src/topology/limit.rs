//! What limits this machine: every cause with its amount and what to change, the most costly first.
//!
//! Causes are of different kinds, so each is weighed by the time that it can add to one order: a gap by
//! its length, a CPU that others have by the slice for which the scheduler gives it to them, a disk by
//! the write that was tried. The weights only order the list; what is told is what was found.

use super::checks::{DiskProbe, Finding, Gaps, Scene, Severity, Verdict, percent};
use super::cost::{self, DISCARD, WITHOUT_DISCARD, time};
use super::machine::{counted, cpus_of};
use super::placement::{Policy, SHARDS_AUTO_MAX, SHARDS_MAX, SPARE_CORES};

/// Conditions that cost whenever they fail, and have no cause of their own below.
const CONDITIONS: [&str; 8] = [
    "mem.room",
    "cpu.governor",
    "cpu.smt",
    "numa.local",
    "irq.affinity",
    "time.clocksource",
    "mem.swap",
    "time.ntp",
];

/// One thing that limits a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What it is, with its amount.
    pub text: String,
    /// What to buy or to change; none if nobody can.
    pub change: Option<String>,
    /// Whether nothing was found: then this is the only one, and says what would carry more.
    pub is_none: bool,
}

/// One cause, and what it can add to an order.
struct Cause {
    cost_ns: u64,
    text: String,
    change: Option<String>,
}

/// Every limit in a short line, the most costly first; at least one.
#[must_use]
pub fn causes(scene: &Scene<'_>, findings: &[Finding]) -> Vec<Limit> {
    let mut causes = fatal(findings);
    causes.extend(gaps(scene, findings));
    causes.extend(others(scene, findings));
    causes.extend(cores(scene, findings));
    causes.extend(disk(scene));
    for id in CONDITIONS {
        let failed = failed(findings, id).filter(|finding| finding.severity != Severity::Fatal);
        causes.extend(failed.map(condition));
    }
    if causes.is_empty() {
        return vec![one_core(scene)];
    }
    // Stable: what weighs the same stays in the order above.
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.cost_ns));
    causes.into_iter().map(|Cause { text, change, .. }| Limit { text, change, is_none: false }).collect()
}

/// The limits for people.
#[must_use]
pub fn text(limits: &[Limit]) -> String {
    let mut lines = Vec::new();
    for (index, limit) in limits.iter().enumerate() {
        if limit.is_none {
            lines.push(format!("what limits this machine: {}", limit.text));
        } else {
            lines.extend((index == 0).then(|| "what limits this machine, the most costly first:".to_owned()));
            lines.push(format!("  {}. {}", index + 1, limit.text));
        }
        lines.extend(limit.change.as_ref().map(|change| format!("     change: {change}")));
    }
    format!("{}\n", lines.join("\n"))
}

fn failed<'a>(findings: &'a [Finding], id: &str) -> impl Iterator<Item = &'a Finding> {
    findings.iter().filter(move |finding| finding.id == id && finding.verdict == Verdict::Failed)
}

/// What would mend the condition `id`, if it failed.
fn remedy(findings: &[Finding], id: &str) -> Option<String> {
    failed(findings, id).find_map(Finding::remedy)
}

fn condition(finding: &Finding) -> Cause {
    let amount = finding.amount.as_ref().map_or_else(String::new, |amount| format!("; {amount}"));
    Cause {
        cost_ns: cost::weight_ns(finding.id),
        text: format!("{}: {}; wanted: {}{amount}", finding.id, finding.current, finding.required),
        change: finding.remedy(),
    }
}

fn fatal(findings: &[Finding]) -> Vec<Cause> {
    let failed = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Fatal && finding.verdict == Verdict::Failed);
    let cause = |finding: &Finding| Cause {
        cost_ns: u64::MAX,
        text: format!("the exchange cannot run: {}, {}", finding.id, finding.current),
        change: finding.remedy(),
    };
    failed.map(cause).collect()
}

/// Each CPU that a loop or the journal has and that was taken from a thread which never sleeps.
fn gaps(scene: &Scene<'_>, findings: &[Finding]) -> Vec<Cause> {
    let cared_for = scene.cpus_with_loops();
    let measured = scene.probes.jitter.iter().flatten();
    let bad = measured.filter(|gaps| cared_for.contains(&gaps.cpu) && !gaps.is_quiet());
    let cause = |gaps: &Gaps| Cause {
        cost_ns: gaps.p99_ns.max(cost::share_of_slice(gaps.lost_millionths)),
        text: format!(
            "cpu {} ({}): a thread that never sleeps lost {} of it, p99 gap {} µs, longest {} µs",
            gaps.cpu,
            scene.needs.threads_on(gaps.cpu),
            percent(gaps.lost_millionths),
            gaps.p99_ns / 1_000,
            gaps.max_ns / 1_000
        ),
        change: remedy(findings, "jitter"),
    };
    bad.map(cause).collect()
}

/// The host and other processes, by what the kernel counts.
fn others(scene: &Scene<'_>, findings: &[Finding]) -> Vec<Cause> {
    let rows = [
        ("cpu.steal", scene.stolen_millionths(), "the host ran others on our CPUs"),
        ("cpu.others", scene.busiest().map(|(_, millionths)| millionths), "other processes use our CPUs"),
    ];
    let cause = |(id, millionths, what): (&str, Option<u64>, &str)| {
        let finding = failed(findings, id).next()?;
        let millionths = millionths.unwrap_or(0);
        Some(Cause {
            cost_ns: cost::share_of_slice(millionths),
            text: format!("{what}: {}; {}", finding.current, cost::of_share(millionths)),
            change: finding.remedy(),
        })
    };
    rows.into_iter().filter_map(cause).collect()
}

/// A quota, and too few cores for what would run on them; as it is set, not as it would be by itself.
fn cores(scene: &Scene<'_>, findings: &[Finding]) -> Vec<Cause> {
    let (machine, needs) = (scene.machine, scene.needs);
    let more_cores = || remedy(findings, "cpu.overcommit");
    let mut causes = Vec::new();
    if let Some(milli) = machine.quota_milli {
        let stop = time(cost::QUOTA_NS);
        let text =
            format!("a quota of {}: used up, every thread stands still for up to {stop}", cpus_of(milli));
        causes.push(Cause { cost_ns: cost::QUOTA_NS, text, change: remedy(findings, "cpu.cgroup_quota") });
    }
    if machine.allowed.len() == 1 {
        let text = format!(
            "one CPU carries orders, reads and the journal in turn: up to about {} an order behind a read",
            time(cost::ONE_CPU_NS)
        );
        causes.push(Cause { cost_ns: cost::ONE_CPU_NS, text, change: more_cores() });
        return causes;
    }
    let (cores, needed) = (machine.cores(), needs.loops + SPARE_CORES);
    let (loops, on_cores) = (counted(needs.loops, "loop"), counted(cores, "core"));
    let waits = format!("they wait for each other, up to {} an order", time(cost::SLICE_NS));
    if needs.policy == Policy::Unpinned {
        let text = format!("cpu.policy is unpinned: {loops} wander over {on_cores}; {}", spinning(scene));
        let change = Some("cpu.policy=auto, so that each loop has a CPU".to_owned());
        causes.push(Cause { cost_ns: cost::SLICE_NS, text, change });
    } else if machine.allowed.len() < needs.loops {
        let text = format!("{loops} on {on_cores}: {waits}; {}", fewer(scene));
        causes.push(Cause { cost_ns: cost::SLICE_NS, text, change: more_cores() });
    } else if cores < needed {
        let fewer = if 1 < needs.shards { format!("; {}", fewer(scene)) } else { String::new() };
        let text = format!(
            "{on_cores} for {loops}, the journal and the system, {needed} would do{fewer}: {}",
            spinning(scene)
        );
        causes.push(Cause { cost_ns: cost::WAKE_NS, text, change: more_cores() });
    } else if needs.spinning.is_empty() && machine.quota_milli.is_none() {
        let wake = time(cost::WAKE_NS);
        let text = format!("no loop spins (cpu.wait): an order also waits for a wake-up of some {wake}");
        let change = Some("cpu.wait=shard=spin-then-park,reader=park; it takes the shards' CPUs".to_owned());
        causes.push(Cause { cost_ns: cost::WAKE_NS, text, change });
    }
    causes
}

/// What spinning costs, or what nobody spinning costs.
fn spinning(scene: &Scene<'_>) -> String {
    match scene.needs.spinning.as_slice() {
        [] => format!("nothing spins, so an order also waits for a wake-up of some {}", time(cost::WAKE_NS)),
        names => format!("{} spins all the same, and the others share what is left", names.join(", ")),
    }
}

/// How many shards would leave room.
fn fewer(scene: &Scene<'_>) -> String {
    let others = scene.needs.loops - scene.needs.shards;
    let room = scene.machine.cores().saturating_sub(others + SPARE_CORES).max(1);
    let shards = if room < scene.needs.shards { room } else { 1 };
    format!("cpu.shards={shards} leaves more to each")
}

/// What a durable answer waits for.
fn disk(scene: &Scene<'_>) -> Option<Cause> {
    let Ok(DiskProbe { filesystem, direct_refused, discards, write_us, fsync_us, .. }) = &scene.probes.disk
    else {
        return None;
    };
    let (p50, p99) = if direct_refused.is_none() { *write_us } else { *fsync_us };
    let stops = if *discards { format!("; {DISCARD}, as it is mounted with discard") } else { String::new() };
    let sooner = "a disk that writes 4 KiB sooner, or journal.durability=committed: a power cut may lose the last \
                  answers then";
    let change = if *discards { format!("{WITHOUT_DISCARD}; {sooner}") } else { sooner.to_owned() };
    scene.needs.durable.then(|| Cause {
        cost_ns: p50 * 1_000,
        text: format!(
            "durable answers wait for the disk: {p50} µs at p50, {p99} µs at p99 for 4 KiB, one at a time with no load \
             of ours ({filesystem}){stops}"
        ),
        change: Some(change),
    })
}

/// Nothing was found: what would carry more is said all the same.
fn one_core(scene: &Scene<'_>) -> Limit {
    let needs = scene.needs;
    let idle = idle_for_shards(scene);
    let have = if idle == 1 { "has" } else { "have" };
    let idle_cores = counted(idle, "core");
    let cap = match idle {
        0 => String::new(),
        _ if needs.shards == SHARDS_AUTO_MAX => {
            format!("; auto makes no more than {SHARDS_AUTO_MAX} (cpu.shards), so {idle_cores} {have} none")
        }
        _ => format!("; {idle_cores} {have} none"),
    };
    let text = format!(
        "nothing in its settings; {} on {}, and one market is never faster than its one core{cap}",
        counted(needs.shards, "shard"),
        counted(needs.shards, "core")
    );
    let shards = (needs.shards + idle).min(usize::from(SHARDS_MAX));
    let more = if idle == 0 {
        "; cpu.shards and more cores for more markets at once".to_owned()
    } else if needs.shards < shards {
        format!("; cpu.shards={shards} for more markets at once, on cores that are here")
    } else {
        String::new()
    };
    let change = format!("faster cores for one market{more}");
    Limit { text, change: Some(change), is_none: true }
}

/// How many shards more would have a fast core each, with all loops and the spare cores as they are.
fn idle_for_shards(scene: &Scene<'_>) -> usize {
    let (machine, needs) = (scene.machine, scene.needs);
    let spare = machine.cores().saturating_sub(needs.loops + SPARE_CORES);
    let fast = machine.performance_cores().saturating_sub(needs.shards);
    spare.min(fast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Files;
    use crate::topology::checks::{self, Needs, Pinned, Probes};
    use crate::topology::machine::Machine;

    /// A machine that says nothing of itself.
    struct Silent;

    impl Files for Silent {
        fn text(&self, path: &str) -> Result<String, String> {
            Err(path.to_owned())
        }

        fn names(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    /// A machine that says only where its time went.
    struct Stat(String);

    impl Files for Stat {
        fn text(&self, path: &str) -> Result<String, String> {
            if path == "/proc/stat" { Ok(self.0.clone()) } else { Err(path.to_owned()) }
        }

        fn names(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    /// `shards` and a reader, pinned from CPU 0 on if they can be; shards spin if they are to.
    fn needs(cpus: usize, shards: usize, policy: Policy, spin: bool) -> Needs {
        let names: Vec<String> = (0..shards).map(|shard| format!("shard{shard}")).collect();
        let pinned = names.iter().cloned().chain(["reader".to_owned()]).enumerate().map(|(cpu, name)| {
            Pinned { is_hot: name != "reader", spins: spin && name != "reader", name, cpu }
        });
        Needs {
            pinned: if policy == Policy::Unpinned || cpus <= shards { Vec::new() } else { pinned.collect() },
            loops: shards + 1,
            shards,
            connections: 1,
            descriptors: 1,
            backlog: 1,
            journal_cpu: None,
            policy,
            spinning: if spin { names } else { Vec::new() },
            durable: true,
            free_bytes: 0,
            log_bytes: 0,
            memory_bytes: 0,
            memory_piece_bytes: 0,
            locked_bytes_per_loop: 0,
        }
    }

    fn of(cpus: usize, needs: &Needs, probes: &Probes) -> Vec<String> {
        limits(cpus, needs, probes).into_iter().map(|limit| limit.text).collect()
    }

    fn limits(cpus: usize, needs: &Needs, probes: &Probes) -> Vec<Limit> {
        let machine = Machine::plain(&(0..cpus).collect::<Vec<_>>());
        let scene = Scene { files: &Silent, machine: &machine, needs, probes };
        causes(&scene, &checks::run(&scene))
    }

    #[test]
    fn cores_limit_as_they_are_set_and_not_as_auto_would_set_them() {
        let wake = "nothing spins, so an order also waits for a wake-up of some 16 µs";
        let (auto, explicit, unpinned) = (Policy::Auto, Policy::Explicit, Policy::Unpinned);
        for (cpus, shards, policy, spin, expected) in [
            (1, 1, auto, false, "one CPU carries orders, reads and the journal in turn: up to about 1 ms an order behind a read".to_owned()),
            (2, 1, auto, false, format!("2 cores for 2 loops, the journal and the system, 4 would do: {wake}")),
            (
                2,
                1,
                explicit,
                true,
                "2 cores for 2 loops, the journal and the system, 4 would do: shard0 spins all the same, and \
                 the others share what is left"
                    .to_owned(),
            ),
            (2, 1, unpinned, false, format!("cpu.policy is unpinned: 2 loops wander over 2 cores; {wake}")),
            (
                2,
                2,
                auto,
                false,
                "3 loops on 2 cores: they wait for each other, up to 4 ms an order; cpu.shards=1 leaves more to each"
                    .to_owned(),
            ),
            (
                5,
                3,
                auto,
                false,
                format!(
                    "5 cores for 4 loops, the journal and the system, 6 would do; cpu.shards=2 leaves more to \
                     each: {wake}"
                ),
            ),
            (4, 1, auto, false, "no loop spins (cpu.wait): an order also waits for a wake-up of some 16 µs".to_owned()),
            (
                4,
                1,
                auto,
                true,
                "nothing in its settings; 1 shard on 1 core, and one market is never faster than its one core"
                    .to_owned(),
            ),
            (
                16,
                4,
                auto,
                true,
                "nothing in its settings; 4 shards on 4 cores, and one market is never faster than its one \
                 core; auto makes no more than 4 (cpu.shards), so 9 cores have none"
                    .to_owned(),
            ),
        ] {
            let came = of(cpus, &needs(cpus, shards, policy, spin), &Probes::none("no"));
            assert_eq!(came, [expected], "{cpus} CPUs, {shards} shards, {policy:?}");
        }
    }

    #[test]
    fn causes_come_with_amounts_the_most_costly_first() {
        let gaps = |cpu, p99_ns, lost_millionths| Gaps {
            cpu,
            per_second: 1,
            p50_ns: 1_000,
            p99_ns,
            p999_ns: p99_ns,
            max_ns: 2 * p99_ns,
            lost_millionths,
        };
        let disk = |p50| DiskProbe {
            filesystem: "ext4".to_owned(),
            is_local: true,
            direct_refused: None,
            discards: false,
            write_us: (p50, 3_000),
            fsync_us: (90, 4_000),
        };
        let stat = |busy| format!("cpu  0\ncpu0 {busy} 0 0 {} 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0\n", 200 - busy);
        let lost =
            "cpu 1 (reader): a thread that never sleeps lost 50.00 % of it, p99 gap 4000 µs, longest 8000 µs";
        let used = "other processes use our CPUs: cpu 0 (shard0): 40.00 %; about 1.6 ms an order on average, up to 4 ms";
        let disk_of = |p50| {
            format!(
                "durable answers wait for the disk: {p50} µs at p50, 3000 µs at p99 for 4 KiB, one at a time with \
                 no load of ours (ext4)"
            )
        };
        let wake = "2 cores for 2 loops";
        for (jitter, used_now, p50, starts) in [
            (
                Some(vec![gaps(0, 9_000, 5_000), gaps(1, 4_000_000, 500_000)]),
                0,
                80,
                vec![lost, &disk_of(80), wake],
            ),
            (Some(vec![gaps(0, 100_000, 10_000)]), 40, 80, vec![used, &disk_of(80), wake]),
            (None, 40, 8_000, vec![&disk_of(8_000), used, wake]),
            (None, 4, 9, vec![wake, &disk_of(9)]),
        ] {
            let mut probes = Probes::none("no");
            probes.jitter = jitter;
            probes.stat_quiet = Some([stat(0).replace(" 200 ", " 100 "), stat(used_now)]);
            probes.disk = Ok(disk(p50));
            let came = of(2, &needs(2, 1, Policy::Auto, false), &probes);
            assert_eq!(came.len(), starts.len(), "{came:?}");
            for (cause, start) in came.iter().zip(starts) {
                assert!(cause.starts_with(start), "{cause}\n{start}");
            }
        }
    }

    /// A machine whose CPUs are all on, of which this process may use some.
    fn masked(cpus: usize, allowed: &[usize]) -> Machine {
        let mut machine = Machine::plain(&(0..cpus).collect::<Vec<_>>());
        allowed.clone_into(&mut machine.allowed);
        machine
    }

    #[test]
    fn cores_that_are_kept_from_us_are_asked_for_before_a_larger_machine() {
        let lift = "kept from this process: lift its mask (taskset, the cpuset, systemd's CPUAffinity=)";
        let tails = "it runs as it is, with longer tails";
        for (machine, expected) in [
            (masked(2, &[1]), format!("CPU 0 is {lift}; beyond that a machine with 4 cores; {tails}")),
            (masked(4, &[1]), format!("CPUs 0,2-3 are {lift}; {tails}")),
            (masked(8, &[4, 5]), format!("CPUs 0-3,6-7 are {lift}; {tails}")),
            (masked(2, &[0, 1]), format!("a machine with 4 cores; {tails}")),
        ] {
            let mut needs = needs(machine.allowed.len(), 1, Policy::Auto, false);
            needs.loops = machine.allowed.len().min(2);
            // Where they are pinned is not the question here.
            needs.pinned.clear();
            let probes = Probes::none("no");
            let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
            let findings = checks::run(&scene);
            let came = causes(&scene, &findings);
            assert_eq!(came[0].change.as_ref(), Some(&expected), "{:?}", machine.allowed);
        }
        // The second thread of a core that we have is no core more.
        let mut machine = masked(2, &[0]);
        for cpu in &mut machine.cpus {
            cpu.threads = vec![0, 1];
        }
        assert_eq!((machine.kept(), machine.online_cores()), (vec![], 1));
    }

    #[test]
    fn a_cpu_that_loses_time_is_mended_by_who_had_it() {
        let lost = Gaps {
            cpu: 0,
            per_second: 250,
            p50_ns: 2_000,
            p99_ns: 200_000,
            p999_ns: 200_000,
            max_ns: 300_000,
            lost_millionths: 20_000,
        };
        // The fourth and the eighth number are what nobody used and what the host took.
        let stat = |busy: u64, stolen: u64| {
            let line = format!("{busy} 0 0 {} 0 0 0 {stolen}", 1_000 - busy - stolen);
            format!("cpu  {line}\ncpu0 {line}\n")
        };
        for (others, stolen, expected) in [
            (400, 0, "stop what runs on this CPU (top -H says who), or isolate it"),
            (3, 400, "ask for dedicated CPUs, or take a quieter host"),
            (0, 0, "no other thread and no host had it"),
            (20, 0, "stop other work on this CPU, isolate it, or take a quieter host"),
        ] {
            let mut probes = Probes::none("no");
            probes.jitter = Some(vec![lost.clone()]);
            probes.stat_quiet = Some([stat(0, 0).replace(" 1000 ", " 0 "), stat(others, stolen)]);
            probes.stat_before = Some(stat(0, 0).replace(" 1000 ", " 0 "));
            let machine = Machine::plain(&[0, 1]);
            let needs = needs(2, 1, Policy::Auto, false);
            let stat = Stat(stat(others, stolen));
            let scene = Scene { files: &stat, machine: &machine, needs: &needs, probes: &probes };
            let came = causes(&scene, &checks::run(&scene));
            let of_gaps =
                came.iter().find(|limit| limit.text.contains("never sleeps lost")).expect("a limit");
            let change = of_gaps.change.as_deref().expect("a remedy");
            assert!(change.starts_with(expected), "{change}");
        }
    }

    #[test]
    fn each_limit_says_what_to_change() {
        let (auto, unpinned) = (Policy::Auto, Policy::Unpinned);
        for (cpus, shards, policy, spin, expected) in [
            (1, 1, auto, false, "a machine with 4 cores; it runs as it is, with longer tails"),
            (2, 1, auto, false, "a machine with 4 cores; it runs as it is, with longer tails"),
            (
                2,
                2,
                auto,
                false,
                "a machine with 5 cores, or fewer shards (cpu.shards); it runs as it is, with longer tails",
            ),
            (2, 1, unpinned, false, "cpu.policy=auto, so that each loop has a CPU"),
            (4, 1, auto, false, "cpu.wait=shard=spin-then-park,reader=park; it takes the shards' CPUs"),
            (
                4,
                1,
                auto,
                true,
                "faster cores for one market; cpu.shards and more cores for more markets at once",
            ),
            (
                16,
                4,
                auto,
                true,
                "faster cores for one market; cpu.shards=13 for more markets at once, on cores that are here",
            ),
            (
                100,
                4,
                auto,
                true,
                "faster cores for one market; cpu.shards=64 for more markets at once, on cores that are here",
            ),
        ] {
            let came = limits(cpus, &needs(cpus, shards, policy, spin), &Probes::none("no"));
            assert_eq!(came[0].change.as_deref(), Some(expected), "{cpus} CPUs, {shards} shards, {policy:?}");
        }
    }

    #[test]
    fn limits_are_numbered_and_none_is_not() {
        let said = |spin| text(&limits(4, &needs(4, 1, Policy::Auto, spin), &Probes::none("no")));
        let none = said(true);
        assert!(
            none.starts_with("what limits this machine: nothing in its settings; 1 shard on 1 core"),
            "{none}"
        );
        assert!(none.contains("\n     change: faster cores") && !none.contains("1. "), "{none}");
        let one = said(false);
        assert!(
            one.starts_with("what limits this machine, the most costly first:\n  1. no loop spins"),
            "{one}"
        );
    }
}
