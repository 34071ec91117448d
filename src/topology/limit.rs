//! Every cause found to limit this machine, with its amount and what to change, what can add most to one order first.
//! [`super::answers`] says what limits each thing that people ask for.
//!
//! Causes are of different kinds, so each is weighed by the time that it can add to one order: a gap by its p99, a CPU
//! that others have by the scheduler's slice times their share, a disk by the median write that was tried. The weights
//! only order the list; the text reports what was found. Isolation and the timer tick touch only the slowest orders and
//! stand last, however long they make those wait.
//!
//! | kind | what limits |
//! |---|---|
//! | `fatal` | the exchange cannot start or cannot run |
//! | `gaps` | a CPU is taken from a thread that never sleeps; measured |
//! | `host` | the host runs others on our CPUs |
//! | `others` | other processes use our CPUs |
//! | `quota` | a quota of CPU time |
//! | `one-cpu` | one CPU carries everything |
//! | `cores` | fewer cores than would do |
//! | `unpinned` | loops wander |
//! | `wake-ups` | loops sleep, so an order waits until one is awake |
//! | `disk` | durable answers wait for it; measured |
//! | `condition` | a failed condition of the check's table, which the text names |
//! | `none` | nothing, or nothing but what the slowest orders meet; the text says what would carry more |

use super::capacity;
use super::checks::{
    self, DiskProbe, Finding, Follower, Gaps, Others, Scene, Severity, Sleeps, Verdict, percent,
};
use super::cost::{self, WITHOUT_DISCARD, time};
use super::machine::{Cpu, counted, cpus_of};
use super::placement::{Policy, SHARDS_AUTO_MAX, SPARE_CORES};

/// Conditions that cost something whenever they fail and have no cause of their own below, with what they touch.
const CONDITIONS: [(&str, Option<Touches>); 10] = [
    ("mem.room", None),
    ("cpu.governor", Some(Touches::P50)),
    ("cpu.smt", Some(Touches::P50)),
    ("numa.local", Some(Touches::P50)),
    ("irq.affinity", Some(Touches::P99)),
    ("rt.priority", Some(Touches::Durable)),
    ("time.clocksource", Some(Touches::P50)),
    ("mem.swap", Some(Touches::P99)),
    ("mem.damon", Some(Touches::P999)),
    ("time.ntp", None),
];

/// Conditions that only the slowest orders meet, the worst first; only the first that fails is listed.
const APART: [&str; 2] = ["cpu.isolated", "cpu.nohz_full"];

/// What sort of thing limits a machine; programs read its word, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The exchange cannot start or cannot run.
    Fatal,
    /// A CPU is taken from a thread that never sleeps.
    Gaps,
    /// The host runs others on our CPUs.
    Host,
    /// Other processes use our CPUs.
    Others,
    /// A quota of CPU time.
    Quota,
    /// One CPU carries everything.
    OneCpu,
    /// Fewer cores than would do.
    Cores,
    /// Loops have no CPUs of their own.
    Unpinned,
    /// Loops sleep, so an order waits until one is awake.
    WakeUps,
    /// Durable answers wait for the disk.
    Disk,
    /// A failed condition of the check's table.
    Condition,
    /// Nothing, or nothing but what the slowest orders meet: this entry is the first, and says what would carry more.
    None,
}

impl Kind {
    /// Its word in JSON.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Fatal => "fatal",
            Self::Gaps => "gaps",
            Self::Host => "host",
            Self::Others => "others",
            Self::Quota => "quota",
            Self::OneCpu => "one-cpu",
            Self::Cores => "cores",
            Self::Unpinned => "unpinned",
            Self::WakeUps => "wake-ups",
            Self::Disk => "disk",
            Self::Condition => "condition",
            Self::None => "none",
        }
    }
}

/// Whose time a limit adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touches {
    /// Every order's, so the median's too.
    P50,
    /// Some orders', the slow ones.
    P99,
    /// Few orders', the slowest.
    P999,
    /// That of answers which wait for the disk.
    Durable,
    /// That of reads: no order waits for the CPU.
    Reads,
}

impl Touches {
    const ALL: [Self; 5] = [Self::P50, Self::P99, Self::P999, Self::Durable, Self::Reads];

    /// Its word in lists and JSON.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Durable => "durable",
            Self::Reads => "reads",
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::P50 => "adds to every order, so to the median (p50) too",
            Self::P99 => "adds to some orders, the slow ones (p99 and beyond)",
            Self::P999 => "adds to few orders, the slowest (p99.9 and beyond), so it stands last",
            Self::Durable => "adds to answers that wait for the disk (journal.durability=durable)",
            Self::Reads => {
                "adds to reads, and to the journal's thread where it runs on that CPU; orders wait for it only behind a read on their own connection"
            }
        }
    }

    /// A CPU lost for a share of the time touches that share of the orders that wait for it; if none does, reads.
    fn on_cpu(scene: &Scene<'_>, cpu: usize, millionths: u64) -> Self {
        match Self::by_share(millionths) {
            _ if !scene.needs.orders_wait_for(cpu) => Self::Reads,
            // A woken loop preempts whoever runs, so the median meets nothing.
            Self::P50 if scene.needs.is_woken(cpu) => Self::P99,
            touches => touches,
        }
    }

    /// What is lost for a share of the time touches that share of the orders: from a half on, the median.
    const fn by_share(millionths: u64) -> Self {
        if 500_000 <= millionths { Self::P50 } else { Self::P99 }
    }
}

/// One thing that limits a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its kind.
    pub kind: Kind,
    /// Whose time it adds to; none if nobody's.
    pub touches: Option<Touches>,
    /// What it is, with its amount.
    pub text: String,
    /// What it can add to one order, by which the list is ordered; none if nothing runs, or nothing was found.
    pub cost_ns: Option<u64>,
    /// What to buy or to change; none if nobody can.
    pub change: Option<String>,
}

/// Every limit in a short line, the most costly first; at least one.
#[must_use]
pub fn causes(scene: &Scene<'_>, findings: &[Finding]) -> Vec<Limit> {
    let mut causes = fatal(findings);
    causes.extend(gaps(scene));
    causes.extend(host(scene, findings));
    causes.extend(others(scene));
    causes.extend(cores(scene, findings));
    causes.extend(disk(scene));
    for (id, touches) in CONDITIONS {
        let is_told = |finding: &&Finding| finding.severity != Severity::Fatal;
        let failed = failed(findings, id).filter(is_told);
        causes.extend(failed.map(|finding| condition(finding, touches)));
    }
    let apart = APART.iter().find_map(|id| failed(findings, id).next());
    let is_quiet = causes.is_empty();
    // A stable sort: equal weights stay in the order above. A fatal cause, which has no weight, comes first.
    causes.sort_by_key(|limit| std::cmp::Reverse(limit.cost_ns.unwrap_or(u64::MAX)));
    // However long a wait it causes, it is too rare to stand before what every order meets.
    causes.extend(apart.map(|finding| condition(finding, Some(Touches::P999))));
    if is_quiet {
        causes.insert(0, one_core(scene, apart.is_some()));
    }
    causes
}

/// The limits for people.
#[must_use]
pub fn text(limits: &[Limit]) -> String {
    let mut lines = Vec::new();
    let mut number = 0;
    for limit in limits {
        if limit.kind == Kind::None {
            lines.push(format!("what was found here: {}", limit.text));
        } else {
            number += 1;
            let head =
                "what was found here, what can add most to one order (marked [reads]: one read) first:";
            lines.extend(lines.is_empty().then(|| head.to_owned()));
            let mark = limit.touches.map_or_else(String::new, |touches| format!("[{}] ", touches.text()));
            lines.push(format!("  {number}. {mark}{}", limit.text));
        }
        lines.extend(limit.change.as_ref().map(|change| format!("     change: {change}")));
    }
    let met = Touches::ALL.into_iter().filter(|&mark| limits.iter().any(|limit| limit.touches == Some(mark)));
    lines.extend(met.map(|mark| format!("  [{}] {}", mark.text(), mark.meaning())));
    format!("{}\n", lines.join("\n"))
}

fn failed<'a>(findings: &'a [Finding], id: &str) -> impl Iterator<Item = &'a Finding> {
    findings.iter().filter(move |finding| finding.id == id && finding.verdict == Verdict::Failed)
}

/// What would mend the condition `id`, if it failed.
fn remedy(findings: &[Finding], id: &str) -> Option<String> {
    failed(findings, id).find_map(Finding::remedy)
}

fn condition(finding: &Finding, touches: Option<Touches>) -> Limit {
    let amount = finding.amount.as_ref().map_or_else(String::new, |amount| format!("; {amount}"));
    Limit {
        kind: Kind::Condition,
        touches,
        text: format!("{}: {}; wanted: {}{amount}", finding.id, finding.current, finding.required),
        cost_ns: Some(cost::weight_ns(finding.id)),
        change: finding.remedy(),
    }
}

fn fatal(findings: &[Finding]) -> Vec<Limit> {
    let failed = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Fatal && finding.verdict == Verdict::Failed);
    let limit = |finding: &Finding| Limit {
        kind: Kind::Fatal,
        touches: None,
        text: format!("the exchange cannot run: {}, {}", finding.id, finding.current),
        cost_ns: None,
        change: finding.remedy(),
    };
    failed.map(limit).collect()
}

/// Each CPU with a loop or the journal that was taken too often or too long from a thread which never sleeps.
fn gaps(scene: &Scene<'_>) -> Vec<Limit> {
    let cared_for = scene.cpus_with_loops();
    let measured = scene.probes.jitter.iter().flatten();
    let bad = measured.filter(|gaps| cared_for.contains(&gaps.cpu) && !gaps.is_quiet());
    let limit = |gaps: &Gaps| Limit {
        kind: Kind::Gaps,
        touches: Some(match Touches::on_cpu(scene, gaps.cpu, gaps.lost_millionths) {
            Touches::P99 if gaps.is_rare() => Touches::P999,
            touches => touches,
        }),
        text: format!(
            "cpu {} ({}): a thread that never sleeps lost {} of it, p99 gap {} µs, longest {} µs; one {} in 1,000 waits {} \
             µs or more for that; {}",
            gaps.cpu,
            scene.needs.threads_on(gaps.cpu),
            percent(gaps.lost_millionths),
            gaps.p99_ns / 1_000,
            gaps.max_ns / 1_000,
            if scene.needs.orders_wait_for(gaps.cpu) { "order" } else { "read" },
            gaps.wait_p999_ns / 1_000,
            gaps.takers()
        ),
        cost_ns: Some(gaps.p99_ns.max(cost::share_of_slice(gaps.lost_millionths))),
        change: Some(scene.remedy(gaps)),
    };
    bad.map(limit).collect()
}

/// The host, by what the kernel counts.
fn host(scene: &Scene<'_>, findings: &[Finding]) -> Option<Limit> {
    let finding = failed(findings, "cpu.steal").next()?;
    let millionths = scene.stolen_millionths().unwrap_or(0);
    let waits = finding.amount.as_deref().unwrap_or_default();
    Some(Limit {
        kind: Kind::Host,
        touches: Some(Touches::by_share(millionths)),
        text: format!("the host ran others on our CPUs: {}; {waits}", finding.current),
        cost_ns: Some(cost::share_of_slice(millionths)),
        change: finding.remedy(),
    })
}

/// Other processes, by what the kernel counts: one entry for each CPU that they take.
fn others(scene: &Scene<'_>) -> Vec<Limit> {
    let limit = |others: &Others| Limit {
        kind: Kind::Others,
        touches: Some(Touches::on_cpu(scene, others.cpu, others.millionths)),
        text: format!(
            "other processes use our CPUs: {}; {}",
            checks::on_cpu(scene, others),
            checks::waits_for(scene, others)
        ),
        cost_ns: Some(cost::share_of_slice(others.millionths)),
        change: Some(checks::remedy_of(others)),
    };
    scene.taken().iter().map(limit).collect()
}

/// A quota, and too few cores for what would run on them, with the settings as they are.
fn cores(scene: &Scene<'_>, findings: &[Finding]) -> Vec<Limit> {
    let (machine, needs) = (scene.machine, scene.needs);
    let limit = |kind, touches, cost_ns, text, change| Limit {
        kind,
        touches: Some(touches),
        text,
        cost_ns: Some(cost_ns),
        change,
    };
    let more_cores = || remedy(findings, "cpu.overcommit");
    let nothing_spins = needs.work.iter().all(|work| work.sleeps == Sleeps::AtOnce);
    let woken = |change| {
        let text = format!("no loop spins (cpu.wait): an order also waits for a wake-up of {}", scene.wake());
        nothing_spins.then(|| limit(Kind::WakeUps, Touches::P50, scene.wake_ns(), text, change))
    };
    let mut causes = Vec::new();
    if let Some(milli) = machine.quota_milli {
        let (cost_ns, change) = (machine.quota_period_ns, remedy(findings, "cpu.cgroup_quota"));
        let text = format!(
            "a quota of {}: used up, every thread stands still for up to {}",
            cpus_of(milli),
            time(cost_ns)
        );
        causes.push(limit(Kind::Quota, Touches::P99, cost_ns, text, change));
    }
    if machine.allowed.len() == 1 {
        let cost_ns = cost::ONE_CPU_NS;
        let text = format!(
            "one CPU carries orders, reads and the journal in turn: up to about {} an order behind a read",
            time(cost_ns)
        );
        causes.push(limit(Kind::OneCpu, Touches::P99, cost_ns, text, more_cores()));
        causes.extend(woken(more_cores()));
        return causes;
    }
    let (cores, needed) = (machine.cores(), needs.loops + SPARE_CORES);
    let (loops, on_cores) = (counted(needs.loops, "loop"), counted(cores, "core"));
    if needs.policy == Policy::Unpinned {
        let text = format!("cpu.policy is unpinned: {loops} wander over {on_cores}; {}", spinning(scene));
        let change = Some("cpu.policy=auto, so that each loop has a CPU".to_owned());
        causes.push(limit(Kind::Unpinned, Touches::P99, cost::SLICE_NS, text, change));
    } else if machine.allowed.len() < needs.loops {
        let waits = format!("they wait for each other, up to {} an order", time(cost::SLICE_NS));
        let fewer = fewer(scene).map_or_else(String::new, |fewer| format!("; {fewer}"));
        let text = format!("{loops} on {on_cores}: {waits}{fewer}");
        causes.push(limit(Kind::Cores, Touches::P99, cost::SLICE_NS, text, more_cores()));
        causes.extend(woken(more_cores()));
    } else if cores < needed {
        let fewer = fewer(scene).map_or_else(String::new, |fewer| format!("; {fewer}"));
        let text = format!(
            "{on_cores} for {loops}, the journal and the system, {needed} would do{fewer}: {}",
            spinning(scene)
        );
        let (kind, touches, change) = if nothing_spins {
            (Kind::WakeUps, Touches::P50, spin_first(scene, more_cores()))
        } else {
            (Kind::Cores, Touches::P99, more_cores())
        };
        causes.push(limit(kind, touches, scene.wake_ns(), text, change));
    } else {
        // What spins uses up a quota.
        let spin = "cpu.wait=shard=spin-then-park,reader=park; it takes the shards' CPUs";
        causes.extend(woken(Some(remedy(findings, "cpu.cgroup_quota").unwrap_or_else(|| spin.to_owned()))));
    }
    causes
}

/// Whether every loop that orders wait for could spin: journal and reader keep a CPU, and nobody else may have had a
/// loop's CPU half of the time. A loop that never sleeps is never woken ahead of others, but waits for its turn.
pub(super) fn may_spin(scene: &Scene<'_>) -> bool {
    let trading = scene.needs.work.iter().filter(|work| work.sockets || work.shard).count();
    // A thread that spins takes half of what its core's other thread has.
    let cores = scene.machine.distinct(Cpu::core);
    let is_room = 0 < trading && trading < cores && scene.machine.quota_milli.is_none();
    is_room && !scene.others_may_have(&scene.cpus_of_orders(), HALF)
}

/// From this share of a CPU on, in millionths, what others have of it delays the median order.
const HALF: u64 = 500_000;

/// The others that have at least [`HALF`] of a CPU that orders wait for, if any.
pub(super) fn with_half(scene: &Scene<'_>) -> Option<Others> {
    with_half_of(scene, &scene.cpus_of_orders())
}

/// The others that have at least [`HALF`] of one of `cpus`, if any.
pub(super) fn with_half_of(scene: &Scene<'_>, cpus: &[usize]) -> Option<Others> {
    scene.others_on(cpus).filter(|others| HALF <= others.millionths)
}

/// What ends the wake-ups: spinning, which costs nothing but a CPU, where one is left; then `bought`.
fn spin_first(scene: &Scene<'_>, bought: Option<String>) -> Option<String> {
    if !may_spin(scene) {
        return bought;
    }
    let spin = format!("{}, which {}", scene.needs.spin_setting(), scene.needs.spin_price());
    let more = bought.map_or_else(String::new, |text| {
        format!("; or {text}; with more cores loops look on for 50 µs before they sleep, so only busy ones save it")
    });
    Some(format!("{spin}{more}"))
}

/// What it costs that some loops spin, or that none does.
fn spinning(scene: &Scene<'_>) -> String {
    let that_sleep = |how| scene.needs.that_sleep(how).join(", ");
    let (never, later) = (that_sleep(Sleeps::Never), that_sleep(Sleeps::AfterSpinning));
    match (never.as_str(), later.as_str()) {
        ("", "") => format!("nothing spins, so an order also waits for a wake-up of {}", scene.wake()),
        ("", names) => format!(
            "{names} spins for some 50 µs before it sleeps, and an order after that waits for a wake-up of {}",
            scene.wake()
        ),
        (names, _) => format!("{names} spins all the same, and the others share what is left"),
    }
}

/// How many shards would leave room; of one shard, which loops besides it could be given up.
fn fewer(scene: &Scene<'_>) -> Option<String> {
    let needs = scene.needs;
    if 1 < needs.shards {
        let others = needs.loops - needs.shards;
        let room = scene.machine.cores().saturating_sub(others + SPARE_CORES).max(1);
        let shards = if room < needs.shards { room } else { 1 };
        return Some(format!("{} leaves more to each", needs.settings_of_shards(shards)));
    }
    let has_feed = needs.work.iter().any(|work| work.follows == Some(Follower::Feed));
    let apart = [(needs.ingress() != 0, "cpu.ingress"), (has_feed, "cpu.feed")];
    let apart: Vec<&str> =
        apart.into_iter().filter(|(is_apart, _)| *is_apart).map(|(_, name)| name).collect();
    (!apart.is_empty())
        .then(|| format!("without {} there are fewer loops, with more for each", apart.join(" and ")))
}

/// How long and how often the disk stalls, and at which rate one answer in a hundred meets it; none if it does not.
pub(super) fn stops(scene: &Scene<'_>) -> Option<String> {
    let discards = scene.needs.durable && scene.probes.disk.as_ref().is_ok_and(|disk| disk.discards);
    let bytes = scene.needs.segment_bytes;
    discards.then(|| {
        format!(
            "may stand still {}, every {} writes or so (an order alone is one): from {} writes a second on one answer in \
             a hundred meets that",
            cost::discard(),
            capacity::rounded(cost::writes_per_segment(bytes)),
            capacity::rounded(cost::writes_that_stop_one_in_a_hundred(bytes))
        )
    })
}

/// The disk, if answers wait for it.
fn disk(scene: &Scene<'_>) -> Option<Limit> {
    let disk = scene.probes.disk.as_ref().ok()?;
    let (DiskProbe { filesystem, discards, .. }, (p50, p99)) = (disk, disk.durable_us());
    let stops = stops(scene).map_or_else(String::new, |stops| format!("; mounted with discard it {stops}"));
    let sooner = "a disk that writes 4 KiB sooner, or journal.durability=committed: a power cut may lose the last \
                  answers then";
    let change = match (scene.probes.disk_others(), discards) {
        (Some(others), _) => others.remedy(),
        (None, true) => format!("{sooner}; {WITHOUT_DISCARD}"),
        (None, false) => sooner.to_owned(),
    };
    let beside = scene.probes.beside_writers();
    scene.needs.durable.then(|| Limit {
        kind: Kind::Disk,
        touches: Some(Touches::Durable),
        text: format!(
            "durable answers wait for the disk: {p50} µs at p50, {p99} µs at p99 for 4 KiB, one at a time, {beside} \
             ({filesystem}); orders that come meanwhile share the next write{stops}"
        ),
        cost_ns: Some(p50 * 1_000),
        change: Some(change),
    })
}

/// The entry for nothing, or nothing but what the slowest orders meet: it says what would carry more all the same.
fn one_core(scene: &Scene<'_>, but_for_the_slowest: bool) -> Limit {
    let needs = scene.needs;
    let capacity = capacity::of(scene);
    let idle = idle_for_orders(scene);
    let have = if idle == 1 { "has" } else { "have" };
    let idle_cores = counted(idle, "core");
    let cap = match idle {
        0 => String::new(),
        _ if needs.ingress() != 0 => format!("; {idle_cores} {have} no loop"),
        _ if needs.shards == SHARDS_AUTO_MAX && needs.policy != Policy::Explicit => {
            format!("; auto makes no more than {SHARDS_AUTO_MAX} (cpu.shards), so {idle_cores} {have} none")
        }
        _ => format!("; {idle_cores} {have} none"),
    };
    let full = capacity.as_ref().map_or_else(|_| String::new(), |capacity| format!("; {}", capacity.brief()));
    let but = if but_for_the_slowest { " but what the slowest orders meet" } else { "" };
    let text = format!(
        "nothing in its settings{but}; {} on {}, and one market is matched on one core{cap}{full}",
        counted(needs.shards, "shard"),
        counted(needs.shards, "core")
    );
    let (carriers, carriers_max) = needs.carriers();
    // Beside a shard or a reader that is full first, another loop for orders carries nothing.
    let room = if capacity.is_ok_and(|capacity| !capacity.first_has_sockets()) {
        0
    } else {
        carriers_max - carriers
    };
    let more = match idle.min(room) {
        _ if room == 0 => String::new(),
        0 => format!("; {} and more cores for more orders a second", needs.carriers_setting()),
        more => {
            let settings = needs.settings_of_carriers(carriers + more);
            format!("; {settings} for more orders a second, on cores that are here")
        }
    };
    let change = format!("faster cores for each order{more}");
    Limit { kind: Kind::None, touches: None, text, cost_ns: None, change: Some(change) }
}

/// How many more loops that take orders could have a fast core each, beside all loops and the spare cores as they are.
pub(super) fn idle_for_orders(scene: &Scene<'_>) -> usize {
    let (machine, needs) = (scene.machine, scene.needs);
    let spare = machine.cores().saturating_sub(needs.loops + SPARE_CORES);
    let fast = machine.performance_cores().saturating_sub(needs.shards + needs.ingress());
    spare.min(fast)
}

#[cfg(test)]
mod tests;
