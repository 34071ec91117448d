//! Conditions of CPUs and their nodes.

use std::cmp::Reverse;

use super::gaps::{GAP_P99_MAX_NS, without_writers};
use super::interrupts::{interrupts, irqbalance};
use super::{Finding, Fix, Gaps, LoopWork, Others, OwnTime, Scene, Severity, Sleeps};
use crate::topology::cost;
use crate::topology::list;
use crate::topology::machine::{Card, Cpu, counted, cpus_of};
use crate::topology::placement::SPARE_CORES;
use crate::topology::valid::LOST_PERCENT_MAX;

/// An order notices an idle state that takes longer than this to leave.
const IDLE_EXIT_MAX_US: u64 = 10;
/// Other processes may use one part in twenty of a CPU: the kernel counts in steps of one in fifty.
pub(super) const OTHERS_MAX_MILLIONTHS: u64 = 50_000;
/// The host may take one part in a thousand.
const STEAL_MAX_MILLIONTHS: u64 = 1_000;

pub(super) fn checks(scene: &Scene<'_>) -> Vec<Finding> {
    let mut findings = vec![quota(scene), overcommit(scene), smt(scene)];
    findings.extend(apart(scene));
    findings.extend([governor(scene), boost(scene), idle_states(scene), steal(scene), others(scene)]);
    findings.extend([interrupts(scene), irqbalance(scene), nodes(scene), jitter(scene)]);
    findings
}

fn quota(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "cpu.cgroup_quota",
        Severity::Warning,
        "no CPU quota",
        "when the quota of a period is used up every thread stands still until the next one",
    );
    match scene.machine.quota_milli {
        None => finding.judged(true, "none"),
        Some(milli) => {
            let period = cost::time(scene.machine.quota_period_ns);
            let advice = "give whole CPUs instead of a share of time: cpuset, not a limit (Kubernetes: static CPU manager)";
            finding
                .judged(false, cpus_of(milli))
                .costing(format!("up to {period} each time it is used up"))
                .mended_by(vec![Fix::Advice(advice.into())])
        }
    }
}

fn overcommit(scene: &Scene<'_>) -> Finding {
    let (cores, loops) = (scene.machine.cores(), scene.needs.loops);
    let needed = loops + SPARE_CORES;
    let finding = Finding::new(
        "cpu.overcommit",
        Severity::Warning,
        format!("{needed} cores ({}, journal, system)", counted(loops, "loop")),
        "threads that share a core wait for each other; nothing spins then, so orders also wait for wake-ups",
    );
    let by_quota = if scene.machine.quota_milli.is_some() { " (by the quota)" } else { "" };
    let missing = counted(needed.saturating_sub(cores), "core");
    let costs = if scene.needs.that_sleep(Sleeps::Never).is_empty() {
        format!("{} an order for a wake-up", cost::time(scene.wake_ns()))
    } else {
        format!("up to {} an order, while what spins has its core", cost::time(cost::SLICE_NS))
    };
    finding
        .judged(needed <= cores, format!("{}{by_quota}", counted(cores, "core")))
        .costing(format!("{missing} short: about {costs}"))
        .mended_by(vec![Fix::Advice(more_cores(scene))])
}

/// What gives each loop a core and leaves some over: first cores that are here but kept from this process.
fn more_cores(scene: &Scene<'_>) -> String {
    // One CPU carries the reader's loop as well; with more it has its own.
    let needed = scene.needs.loops.max(scene.needs.shards + 1) + SPARE_CORES;
    let shards = scene.needs.shards;
    let fewer = match scene.needs.shards_setting() {
        setting if 1 < shards => format!(", or fewer shards ({setting})"),
        _ => String::new(),
    };
    let lift = lifting(scene, needed);
    let what = match (lift, scene.machine.quota_milli) {
        (None, Some(_)) => format!("a quota of {needed} CPUs or none"),
        (None, None) => format!("a machine with {needed} cores"),
        (Some(lift), Some(_)) => format!("{lift}, and a quota of {needed} CPUs or none"),
        (Some(lift), None) if needed <= scene.machine.online_cores() => lift,
        (Some(lift), None) => format!("{lift}; beyond that a machine with {needed} cores"),
    };
    format!("{what}{fewer}; it runs as it is, with longer tails")
}

/// The remedy that costs nothing, if fewer cores than `needed` are allowed and others are here.
fn lifting(scene: &Scene<'_>, needed: usize) -> Option<String> {
    let kept = scene.machine.kept();
    if kept.is_empty() || needed <= scene.machine.distinct(Cpu::core) {
        return None;
    }
    let (cpus, verb) = if kept.len() == 1 { ("CPU", "is") } else { ("CPUs", "are") };
    Some(format!(
        "{cpus} {} {verb} kept from this process: lift its mask (taskset, the cpuset, systemd's CPUAffinity=)",
        list::text(&kept)
    ))
}

fn smt(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "cpu.smt",
        Severity::Warning,
        "no two loops on one core",
        "two threads of one core share its execution units and first caches",
    );
    let pinned = &scene.needs.pinned;
    let core = |cpu: usize| scene.machine.core_of(cpu);
    for (index, one) in pinned.iter().enumerate() {
        // Two on one CPU take turns, which `cpu.overcommit` reports.
        let shares = |cpu: usize| cpu != one.cpu && core(cpu) == core(one.cpu);
        if let Some(other) = pinned[..index].iter().find(|other| shares(other.cpu)) {
            let current = format!("cpus {} and {}: {}, {}", other.cpu, one.cpu, other.name, one.name);
            let advice = if scene.needs.loops <= scene.machine.distinct(Cpu::core) {
                "cpu.policy=auto, or CPUs of different cores (cpu.policy=explicit)".to_owned()
            } else {
                more_cores(scene)
            };
            return finding.judged(false, current).mended_by(vec![Fix::Advice(advice)]);
        }
    }
    let threads = scene.machine.usable().map(|cpu| cpu.threads.len()).max().unwrap_or(1);
    match (threads, pinned.is_empty()) {
        (1, _) => finding.judged(true, "SMT off"),
        (_, true) => finding.told("SMT on, nothing pinned"),
        (_, false) => finding.judged(true, format!("SMT on ({threads} threads a core), cores not shared")),
    }
}

/// The CPUs whose deferred work runs elsewhere: those that the kernel's command line names, and those without a tick.
fn without_callbacks(scene: &Scene<'_>, command_line: &str) -> Vec<usize> {
    let last = scene.machine.cpus.iter().map(|cpu| cpu.id).max().unwrap_or(0);
    let named = command_line.split(' ').find_map(|word| match word.strip_prefix("rcu_nocbs")? {
        // By itself the word only lets it be asked for later.
        "" => None,
        "=all" => Some((0..=last).collect()),
        some => list::parse(&some.strip_prefix('=')?.replace('N', &last.to_string())),
    });
    let named: Vec<usize> = named.unwrap_or_default();
    let is_without = |cpu: &&Cpu| cpu.nohz_full || named.contains(&cpu.id);
    scene.machine.cpus.iter().filter(is_without).map(|cpu| cpu.id).collect()
}

/// What keeps other work off the hot CPUs: three switches of the kernel's command line.
fn apart(scene: &Scene<'_>) -> Vec<Finding> {
    let hot = scene.needs.hot();
    let is_hot = |work: &&LoopWork| work.cpu.is_some_and(|cpu| hot.contains(&cpu));
    let spins = scene.needs.work.iter().filter(is_hot).any(|work| work.sleeps != Sleeps::AtOnce);
    let severity = if spins { Severity::Warning } else { Severity::Info };
    let of = |mark: fn(&Cpu) -> bool| -> Vec<usize> {
        scene.machine.cpus.iter().filter(|cpu| mark(cpu)).map(|cpu| cpu.id).collect()
    };
    let command_line = scene.files.line("/proc/cmdline").unwrap_or_default();
    let rows = [
        (
            "cpu.isolated",
            severity,
            of(|cpu| cpu.isolated),
            "isolcpus=managed_irq,domain,",
            "the scheduler puts other work on a CPU that is not isolated, milliseconds at a time",
        ),
        (
            "cpu.nohz_full",
            Severity::Info,
            of(|cpu| cpu.nohz_full),
            "nohz_full=",
            "the timer tick interrupts a CPU 100 to 1,000 times a second, some microseconds each",
        ),
        (
            "cpu.rcu_nocbs",
            Severity::Info,
            without_callbacks(scene, &command_line),
            "rcu_nocbs=",
            "the kernel's deferred work of a CPU runs there, unless it is offloaded",
        ),
    ];
    let judge =
        |(id, severity, marked, word, why): (&'static str, Severity, Vec<usize>, &str, &'static str)| {
            let current = if marked.is_empty() { "none".to_owned() } else { list::text(&marked) };
            if hot.is_empty() {
                return Finding::new(id, severity, "shards' cpus", why)
                    .told(format!("{current}; nothing pinned"));
            }
            let named = list::text(&hot);
            let passed = hot.iter().all(|cpu| marked.contains(cpu));
            Finding::new(id, severity, format!("shards' cpus: {named}"), why)
                .judged(passed, current)
                .mended_by(vec![boot_word(scene, word, &named, &marked)])
        };
    rows.map(judge).into()
}

/// The boot parameter that keeps the system off the hot CPUs, or why there is none.
fn boot_word(scene: &Scene<'_>, word: &str, named: &str, marked: &[usize]) -> Fix {
    if !marked.is_empty() && !marked.iter().any(|cpu| scene.machine.allowed.contains(cpu)) {
        return Fix::Advice(format!(
            "this process may not use {}: start it with taskset, or systemd's CPUAffinity=",
            list::text(marked)
        ));
    }
    if scene.lacks_cores() {
        return Fix::Advice(
            "nothing on a machine without cores to spare: the system needs them as well".into(),
        );
    }
    if scene.needs.hot().contains(&0) {
        let text = "cpu 0 carries the kernel's own work; name other CPUs first (cpu.policy=explicit)";
        return Fix::Advice(text.into());
    }
    Fix::Boot(format!("{word}{named}"))
}

fn governor(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "cpu.governor",
        Severity::Warning,
        "performance",
        "another governor lowers the clock of a CPU that waits, and an order pays for raising it again",
    );
    let cared_for = scene.cpus_of_orders();
    let cpus: Vec<&Cpu> = cared_for.iter().filter_map(|&id| scene.machine.cpu(id)).collect();
    let mut governors: Vec<&str> = cpus.iter().filter_map(|cpu| cpu.governor.as_deref()).collect();
    if governors.is_empty() {
        let host = if scene.machine.is_virtual { " (the host decides)" } else { "" };
        return finding.unreadable(&format!("no cpufreq{host}"));
    }
    governors.sort_unstable();
    governors.dedup();
    let wrong = cpus.iter().filter(|cpu| cpu.governor.as_deref().is_some_and(|name| name != "performance"));
    let set = |cpu: &&Cpu| Fix::Set {
        path: format!("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu.id),
        value: "performance".into(),
    };
    let fixes: Vec<Fix> = wrong.map(set).collect();
    let finding = finding.judged(governors == ["performance"], governors.join(", "));
    let finding = match slowest_clock(scene, &cpus) {
        Some((low, high)) => finding.costing(format!(
            "up to {}.{} times as long after a pause: the clock falls to {low} of {high} MHz",
            high / low,
            high % low * 10 / low
        )),
        None => finding,
    };
    finding.mended_by(fixes)
}

/// The lowest clock of one of `cpus`, and the highest of that CPU, in MHz, if the kernel reports them.
fn slowest_clock(scene: &Scene<'_>, cpus: &[&Cpu]) -> Option<(u64, u64)> {
    let of = |cpu: &Cpu, name: &str| {
        scene.files.number(&format!("/sys/devices/system/cpu/cpu{}/cpufreq/{name}", cpu.id))
    };
    let range =
        |cpu: &&Cpu| Some((of(cpu, "scaling_min_freq")? / 1_000, of(cpu, "cpuinfo_max_freq")? / 1_000));
    cpus.iter().filter_map(range).filter(|&(low, high)| 0 < low && low <= high).min()
}

fn boost(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "cpu.boost",
        Severity::Info,
        "reported",
        "boost is faster and less steady; both are good",
    );
    let on = scene.files.number("/sys/devices/system/cpu/cpufreq/boost").map(|value| value == 1);
    let on = on.or_else(|| Some(scene.files.number("/sys/devices/system/cpu/intel_pstate/no_turbo")? == 0));
    match on {
        Some(on) => finding.told(if on { "on" } else { "off" }),
        None => finding.unreadable("no cpufreq boost switch"),
    }
}

fn idle_states(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "cpu.cstates",
        Severity::Info,
        format!("none slower than {IDLE_EXIT_MAX_US} µs on shards' cpus"),
        "leaving a deep idle state takes as long as it says, and the first order pays",
    );
    let files = scene.files;
    let (mut slowest, mut fixes, mut known) = (0, Vec::new(), false);
    for cpu in scene.cpus_of_orders() {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        for state in files.names(&folder) {
            let Some(latency_us) = files.number(&format!("{folder}/{state}/latency")) else { continue };
            known = true;
            let path = format!("{folder}/{state}/disable");
            if IDLE_EXIT_MAX_US < latency_us && files.number(&path) != Some(1) {
                slowest = slowest.max(latency_us);
                fixes.push(Fix::Set { path, value: "1".into() });
            }
        }
    }
    if !known {
        return finding.unreadable("no cpuidle states");
    }
    let current = match slowest {
        0 => "none".to_owned(),
        slowest => format!("{slowest} µs"),
    };
    finding
        .judged(fixes.is_empty(), current)
        .costing(format!("up to {slowest} µs for an order after a pause"))
        .mended_by(fixes)
}

/// Stolen ticks and all ticks, from the first line of `/proc/stat`.
fn stolen(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // The ninth and tenth, guests' times, are contained in the first two.
    Some((*times.get(7)?, times.iter().take(8).sum()))
}

fn steal(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "cpu.steal",
        Severity::Warning,
        "below 0.1 %",
        "the host ran somebody else on our CPUs; no setting in here can mend that",
    );
    let Some(Stolen { millionths, ticks, since }) = stolen_share(scene) else {
        return finding.unreadable("/proc/stat");
    };
    let current = format!("{} {since}", percent(millionths));
    // One tick may be a moment of the host or ten milliseconds.
    finding
        .judged(millionths < STEAL_MAX_MILLIONTHS || ticks <= 1, current)
        .costing(cost::of_share(millionths, "an order"))
        .mended_by(vec![Fix::Advice(without_writers(
            scene.stop_writers().as_deref(),
            "ask for dedicated CPUs, or take another host",
        ))])
}

/// What the host took of all CPUs' time.
pub(super) struct Stolen {
    pub(super) millionths: u64,
    ticks: u64,
    since: String,
}

/// What the host took while this process looked, or since the boot.
pub(super) fn stolen_share(scene: &Scene<'_>) -> Option<Stolen> {
    let (stolen_now, all_now) = stolen(&scene.files.text("/proc/stat").ok()?)?;
    let before = scene.probes.stat_before.as_deref().and_then(stolen);
    let (stolen_before, all_before) = before.unwrap_or((0, 0));
    let all = all_now.saturating_sub(all_before);
    let ticks = stolen_now.saturating_sub(stolen_before);
    let millionths = (ticks * 1_000_000).checked_div(all)?;
    let seconds = (all * TICK_MS / 1_000 / scene.machine.cpus.len().max(1) as u64).max(1);
    let since = match (before, seconds) {
        (None, _) => "since boot".to_owned(),
        (Some(_), 1) => "in the last second".to_owned(),
        (Some(_), seconds) => format!("in the last {seconds} seconds"),
    };
    Some(Stolen { millionths, ticks, since })
}

/// Ticks of one CPU.
struct Ticks {
    /// Those that threads had.
    threads: u64,
    /// Those that went to interrupts.
    interrupts: u64,
    all: u64,
}

impl Ticks {
    /// Those of `cpu` between two texts of `/proc/stat`.
    fn between([before, after]: &[String; 2], cpu: usize) -> Option<Self> {
        let (before, after) = (Self::until(before, cpu)?, Self::until(after, cpu)?);
        Some(Self {
            threads: after.threads.saturating_sub(before.threads),
            interrupts: after.interrupts.saturating_sub(before.interrupts),
            all: after.all.saturating_sub(before.all),
        })
    }

    fn until(stat: &str, cpu: usize) -> Option<Self> {
        let name = format!("cpu{cpu} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        let times: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal
        let at = |index: usize| times.get(index).copied().unwrap_or(0);
        let all = times.iter().take(8).sum();
        Some(Self { threads: at(0) + at(1) + at(2), interrupts: at(5) + at(6), all })
    }

    fn all_used(&self) -> u64 {
        self.threads + self.interrupts
    }

    /// What `ticks` of them are, in millionths of all.
    fn share(&self, ticks: u64) -> Option<u64> {
        (ticks * 1_000_000).checked_div(self.all)
    }

    /// What `ns` are of them, in millionths of all.
    fn share_of_ns(&self, ns: u64) -> Option<u64> {
        ns.checked_div(self.all * TICK_MS)
    }
}

/// A tick of `/proc/stat` is a hundredth of a second.
const TICK_MS: u64 = 10;

/// What is left of a CPU on which this process runs is others' only from this share on, in millionths: who runs when the
/// kernel counts is a matter of chance, which a hundred ticks show to within 15 in a hundred.
const CHANCE_MILLIONTHS: u64 = 150_000;

/// What others use of each of `cpus`, the most used first; of equals, one that orders wait for.
pub(super) fn others_on_each(scene: &Scene<'_>, cpus: &[usize]) -> Vec<Others> {
    let mut others: Vec<Others> = cpus.iter().filter_map(|&cpu| others_of(scene, cpu)).collect();
    others.sort_by_key(|of| (Reverse(of.millionths), !scene.needs.orders_wait_for(of.cpu), of.cpu));
    others
}

fn others_of(scene: &Scene<'_>, cpu: usize) -> Option<Others> {
    let quiet = scene.probes.stat_quiet.as_ref()?;
    let millionths = used_by_others(quiet, scene.probes.own_time.as_ref(), cpu)?;
    let who = scene.probes.busy_with.iter().find(|(at, _)| *at == cpu).map(|(_, who)| who.clone());
    Some(Others { cpu, millionths, looked_ms: TICK_MS * Ticks::between(quiet, cpu)?.all, who })
}

/// The share of `cpu` that others used between two looks at `/proc/stat`, in millionths, at least: a process that runs
/// counts all that its threads may have had there as its own, and interrupts as well, which may be for its clients.
#[must_use]
pub fn used_by_others(quiet: &[String; 2], own: Option<&OwnTime>, cpu: usize) -> Option<u64> {
    let ticks = Ticks::between(quiet, cpu)?;
    let Some(own) = own else { return ticks.share(ticks.all_used()) };
    let ours = ticks.share_of_ns(own.pinned_ns(cpu) + own.wandering_ns)?;
    let theirs = ticks.share(ticks.threads)?.saturating_sub(ours);
    let may_be_chance = OTHERS_MAX_MILLIONTHS <= ours && theirs < CHANCE_MILLIONTHS;
    Some(if may_be_chance { 0 } else { theirs })
}

/// The most that others may have had of `cpu`, in millionths: all that is not known to be this process's own.
pub(super) fn at_most_others(scene: &Scene<'_>, cpu: usize) -> Option<u64> {
    let ticks = Ticks::between(scene.probes.stat_quiet.as_ref()?, cpu)?;
    let Some(own) = &scene.probes.own_time else { return ticks.share(ticks.all_used()) };
    Some(ticks.share(ticks.threads)?.saturating_sub(ticks.share_of_ns(own.pinned_ns(cpu))?))
}

fn others(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "cpu.others",
        Severity::Warning,
        format!("below {} on cpus of loops and journal", percent(OTHERS_MAX_MILLIONTHS)),
        "what runs there now takes a loop's CPU for milliseconds at a time",
    );
    if scene.probes.stat_quiet.is_none() {
        return finding.unreadable("needs two looks at a machine that runs");
    }
    let Some(busiest) = scene.busiest() else { return finding.unreadable("/proc/stat") };
    let taken = scene.taken();
    let told: Vec<String> = match taken.as_slice() {
        [] => vec![on_cpu(scene, &busiest)],
        taken => taken.iter().map(|others| on_cpu(scene, others)).collect(),
    };
    let costs = taken.iter().map(|others| waits_for(scene, others));
    let remedies = taken.iter().map(remedy_of);
    finding
        .judged(taken.is_empty(), told.join("; "))
        .costing(without_repeats(costs).join("; "))
        .mended_by(without_repeats(remedies).into_iter().map(Fix::Advice).collect())
}

/// Who is pinned to a CPU, and what others use of it.
pub(in crate::topology) fn on_cpu(scene: &Scene<'_>, others: &Others) -> String {
    format!("cpu {} ({}): {}", others.cpu, scene.needs.threads_on(others.cpu), others.amount())
}

/// What it costs an order, or a read where no order waits for that CPU.
pub(in crate::topology) fn waits_for(scene: &Scene<'_>, others: &Others) -> String {
    let one = if scene.needs.orders_wait_for(others.cpu) { "an order" } else { "a read" };
    if scene.needs.is_woken(others.cpu) {
        cost::of_woken(one)
    } else {
        cost::of_share(others.millionths, one)
    }
}

/// What ends it, and how to keep it off.
pub(in crate::topology) fn remedy_of(others: &Others) -> String {
    format!("{} (taskset, systemd: AllowedCPUs=)", others.remedy())
}

fn without_repeats(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}

/// Millionths as a percentage with two places.
#[must_use]
pub fn percent(millionths: u64) -> String {
    format!("{}.{:02} %", millionths / 10_000, millionths % 10_000 / 100)
}

fn nodes(scene: &Scene<'_>) -> Finding {
    const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
    let finding = Finding::new(
        "numa.local",
        Severity::Warning,
        "shards, their memory and the card on one node",
        "memory of another node is about twice as far, and balancing stops threads to move pages",
    );
    if scene.machine.cpus.iter().all(|cpu| cpu.node == scene.machine.cpus[0].node) {
        return finding.judged(true, "one node");
    }
    let mut nodes: Vec<usize> =
        scene.needs.hot().iter().filter_map(|&id| Some(scene.machine.cpu(id)?.node)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let balancing = scene.files.number(BALANCING).is_some_and(|value| value != 0);
    if nodes.is_empty() && !balancing {
        return finding.told("nothing pinned");
    }
    // Which of several cards orders come over is not known.
    let mut cards = scene.machine.cards.iter().filter(|card| card.node.is_some());
    let is_near = |card: &Card| card.node.is_some_and(|node| nodes == [node]);
    let far = if cards.clone().any(is_near) { None } else { cards.next() };
    let mut wrong = Vec::new();
    let mut fixes = Vec::new();
    if 1 < nodes.len() {
        wrong.push(format!("shards on nodes {}", list::text(&nodes)));
        fixes.push(Fix::Advice("fewer shards, or name CPUs of one node (cpu.policy=explicit)".into()));
    } else if let (Some(card), [node]) = (far, nodes.as_slice()) {
        wrong.push(format!("{} on another node than the shards (node {node})", card.name));
        fixes.push(Fix::Advice("name CPUs of the card's node (cpu.policy=explicit)".into()));
    }
    if balancing {
        wrong.push("numa_balancing on".to_owned());
        fixes.push(Fix::Set { path: BALANCING.into(), value: "0".into() });
    }
    let current =
        if wrong.is_empty() { format!("all on node {}", list::text(&nodes)) } else { wrong.join("; ") };
    finding.judged(wrong.is_empty(), current).mended_by(fixes)
}

fn jitter(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "jitter",
        Severity::Warning,
        format!("p99, 1 in 1,000 at most {} µs, {LOST_PERCENT_MAX} % lost", GAP_P99_MAX_NS / 1_000),
        "a thread that never sleeps was stopped this long, and so long waits what comes meanwhile",
    );
    let Some(measured) = &scene.probes.jitter else {
        return finding.told("not measured; ask with --jitter");
    };
    let cared_for = scene.cpus_with_loops();
    let rows = || measured.iter().filter(|gaps| cared_for.contains(&gaps.cpu));
    let Some(worst) =
        rows().max_by_key(|gaps| (!gaps.is_quiet(), gaps.lost_millionths, gaps.wait_p999_ns, gaps.p99_ns))
    else {
        return finding.unreadable("no CPU could be measured");
    };
    let (us, wait_us) = (worst.p99_ns / 1_000, worst.wait_p999_ns / 1_000);
    let lost = percent(worst.lost_millionths);
    let who = scene.needs.threads_on(worst.cpu);
    let one = if scene.needs.orders_wait_for(worst.cpu) { "an order" } else { "a read" };
    finding
        .judged(
            rows().all(Gaps::is_quiet),
            format!("cpu {} ({who}): p99 {us} µs, 1 in 1,000 waits {wait_us} µs, {lost} lost", worst.cpu),
        )
        .costing(format!("up to {} {one} (measured)", cost::time(worst.max_ns)))
        .mended_by(vec![Fix::Advice(scene.remedy(worst))])
}
