//! Each answer as a row of a table: what limits, by how much, and what to change first.

use super::reads::cpus_of_reads;
use super::{BATCH, HAND_OVER_NS, LINES, beside, cpu_others, is_unseen, median_ns, sleeps, woken};
use crate::topology::capacity::{
    Capacity, KNOWN_SETTING, REST_NS, if_signers_are_known, known_ns, micros, rounded,
};
use crate::topology::checks::{Gaps, Others, Scene, Sleeps, named, percent};
use crate::topology::{cost, limit};

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// What limits.
    pub by: String,
    /// The amount, in a number or two.
    pub amount: String,
    /// What to change first: what is free before what is bought.
    pub first: String,
}

pub(super) fn median(scene: &Scene<'_>, capacity: &Capacity) -> Brief {
    let all_ns = median_ns(scene, capacity);
    let others = limit::with_half(scene);
    // A loop that sleeps mostly preempts whoever runs there when it is woken, so only the p99 meets the wait.
    if let Some(others) = others.as_ref().filter(|_| sleeps(scene) == Sleeps::Never) {
        let without = format!(", {} without them", micros(all_ns));
        return had_by_others(others, &without);
    }
    let wake_ns = all_ns - capacity.order_ns;
    let check_ns = capacity.check_ns();
    let check = match capacity.disturbed() {
        Some(_) => "signature check, tried on a CPU that others had too",
        None => "signature check: the CPU's speed",
    };
    let waking = if woken(scene, Sleeps::AtOnce) < 2 {
        "waking a loop that sleeps"
    } else {
        "waking loops that sleep"
    };
    let parts = [(check_ns, check), (REST_NS, "sockets, parsing, matching"), (wake_ns, waking)];
    let (most_ns, what) = parts.into_iter().max().unwrap_or_default();
    let spin_ns = if limit::may_spin(scene) { wake_ns } else { 0 };
    let saved_ns = if capacity.knows_signers { 0 } else { check_ns - known_ns(check_ns) };
    let spin = || format!("{}: {} less", scene.needs.spin_setting(), micros(spin_ns));
    let known = |less: &str| format!("{KNOWN_SETTING}: {} {less} (not reviewed)", micros(saved_ns));
    // The reviewed setting comes first, whichever saves more: both amounts are measured anew each time.
    let first = match (spin_ns, saved_ns) {
        (0, 0) => "a faster core".to_owned(),
        (_, 0) => spin(),
        (0, _) => known("less"),
        (_, _) => format!("{}; and {}", spin(), known("less on top")),
    };
    let amount = format!("{}, {} of it", micros(all_ns), micros(most_ns));
    match others {
        None => Brief { by: what.to_owned(), amount, first },
        Some(others) => Brief {
            by: format!("{what}; others have CPU {} too", others.cpu),
            amount: format!("{amount}, or more: {}", theirs(&others)),
            first: others.remedy(),
        },
    }
}

fn theirs(others: &Others) -> String {
    format!("{} of CPU {} is theirs", percent(others.millionths), others.cpu)
}

/// The end of a sentence: an order takes longer where others have its CPU.
pub(super) fn more_beside_others(scene: &Scene<'_>) -> String {
    let after = match sleeps(scene) {
        Sleeps::Never => "",
        Sleeps::AtOnce | Sleeps::AfterSpinning => ", before whom a loop that sleeps is mostly woken",
    };
    limit::with_half(scene).map_or_else(String::new, |others| {
        let (cpu, had) = (others.cpu, others.amount());
        format!("; more where it waits for cpu {cpu}, of which others had {had}{after}")
    })
}

/// The row for a CPU that others have, where nobody measured for how long at a time.
fn had_by_others(others: &Others, without: &str) -> Brief {
    Brief {
        by: format!("CPU {} is taken: {}", others.cpu, named(others.who.as_ref())),
        amount: format!(
            "{} of it; waits of {}, or several{without}",
            percent(others.millionths),
            cost::time(cost::SLICE_NS)
        ),
        first: others.remedy(),
    }
}

/// Others that one order or read in a hundred meets on these CPUs; none where waits were measured, which say more.
fn unmeasured(scene: &Scene<'_>, cpus: &[usize]) -> Option<Others> {
    let is_measured = scene.probes.jitter.is_some();
    scene.others_on(cpus).filter(|others| !is_measured && others.are_felt())
}

/// The gaps of that one of `cpus` on which `wait_ns`, the wait of one in a hundred or thousand, is longest.
pub(super) fn worst<'a>(scene: &'a Scene<'_>, cpus: &[usize], wait_ns: fn(&Gaps) -> u64) -> Option<&'a Gaps> {
    let gaps = scene.probes.jitter.iter().flatten().filter(|gaps| cpus.contains(&gaps.cpu));
    gaps.max_by_key(|gaps| wait_ns(gaps))
}

pub(super) fn slow(scene: &Scene<'_>, capacity: &Capacity) -> Brief {
    let (percent, tenths) = LINES[0];
    let taken = worst(scene, &scene.cpus_of_orders(), |gaps| gaps.wait_p99_ns);
    // The row names the line or the taken CPU, whichever makes one in a hundred wait longer on a loop with room.
    if let Some(gaps) = taken.filter(|gaps| capacity.order_ns * tenths / 10 < gaps.wait_p99_ns) {
        return taken_cpu(scene, gaps, gaps.wait_p99_ns, "1 in 100");
    }
    if let Some(others) = unmeasured(scene, &scene.cpus_of_orders()) {
        return had_by_others(&others, "");
    }
    Brief {
        by: "orders before it on its loop".to_owned(),
        amount: format!(
            "on top of the median: {} in line at {percent} % load, {} behind a batch{}",
            micros(capacity.order_ns * tenths / 10),
            micros(BATCH * capacity.check_ns()),
            taken.map_or_else(String::new, |gaps| format!(
                ", {} for a taken CPU",
                cost::time(gaps.wait_p99_ns)
            ))
        ),
        first: format!("smaller batches; {}", capacity.one_core_more_or_faster()),
    }
}

pub(super) fn slowest(scene: &Scene<'_>, capacity: &Capacity) -> Brief {
    match worst(scene, &scene.cpus_of_orders(), |gaps| gaps.wait_p999_ns) {
        Some(gaps) => taken_cpu(scene, gaps, gaps.wait_p999_ns, "1 in 1,000"),
        None if unmeasured(scene, &scene.cpus_of_orders()).is_some() => slow(scene, capacity),
        None => Brief {
            by: "whoever takes its loop's CPU".to_owned(),
            amount: "not measured".to_owned(),
            first: "`outcry check --jitter` tells who and how long".to_owned(),
        },
    }
}

/// The row for a CPU that is taken: by whom, and what ends it.
fn taken_cpu(scene: &Scene<'_>, gaps: &Gaps, wait_ns: u64, which: &str) -> Brief {
    Brief {
        by: format!("CPU {} is taken: {}", gaps.cpu, gaps.who()),
        amount: format!("{which} waits {} or more", cost::time(wait_ns)),
        first: scene.remedy(gaps),
    }
}

pub(super) fn orders(scene: &Scene<'_>, capacity: &Capacity) -> Brief {
    let by = if capacity.is_quota {
        "the quota of CPU time".to_owned()
    } else {
        format!("the CPU of {}", capacity.first.join(", "))
    };
    let known = if_signers_are_known(scene)
        .filter(|_| !capacity.knows_signers && !capacity.is_quota && capacity.first_has_sockets());
    let reviewed = capacity.free.iter().find(|way| !way.starts_with(KNOWN_SETTING));
    let first = match (reviewed, known) {
        // What follows the semicolon is its price.
        (Some(way), _) => way.split(';').next().unwrap_or_default().to_owned(),
        (None, Some(most)) => {
            let more = capacity.one_core_more_or_faster();
            format!("{more}; {KNOWN_SETTING}: up to {} (not reviewed)", rounded(most))
        }
        (None, None) => capacity.bought.first().cloned().unwrap_or_default(),
    };
    let beside = beside::of(scene, capacity);
    let alone = rounded(capacity.orders_per_second);
    let less = if is_unseen(scene) { " or less (`outcry check`)" } else { "" };
    let amount = match &beside {
        Some(beside) if rounded(beside.orders_per_second) != alone => beside.brief(less, &alone),
        Some(_) | None => format!("{alone} a second{less}"),
    };
    match beside.and_then(|beside| beside.others).filter(Others::are_felt) {
        Some(others) => Brief { by: format!("{by}, which others have too"), amount, first: others.remedy() },
        None => Brief { by, amount, first },
    }
}

pub(super) fn durable(scene: &Scene<'_>, capacity: &Capacity) -> Brief {
    let committed = "journal.durability=committed waits for none";
    if !scene.needs.durable {
        return Brief { by: "nothing: none waits".to_owned(), ..Brief::default() };
    }
    let Ok(disk) = &scene.probes.disk else {
        return Brief {
            by: "a write of the disk".to_owned(),
            amount: "not tried".to_owned(),
            first: "`outcry check` tries it".to_owned(),
        };
    };
    let (order_ns, (p50_us, _)) = (median_ns(scene, capacity), disk.durable_us());
    let [least_ns, _] = HAND_OVER_NS.map(|ns| order_ns + p50_us * 1_000 + ns);
    let is_disk = order_ns < p50_us * 1_000;
    if let Some(others) = scene.probes.disk_others() {
        return Brief {
            by: match &others.who {
                Some(who) => format!("the disk, on which {who} writes"),
                None => "the disk, which others use".to_owned(),
            },
            amount: format!(
                "{} or more; {} of the time theirs",
                micros(least_ns),
                percent(others.busy_millionths)
            ),
            first: others.remedy_brief(),
        };
    }
    let by = if is_disk { "a write of the disk" } else { "the order itself, as above" };
    if let Some(others) = cpu_others(scene) {
        let cpu = others.cpu;
        return Brief {
            by: format!("{by}, beside others on CPU {cpu}"),
            amount: format!(
                "{} or more, {p50_us} µs of it the disk; {} more, or several, for CPU {cpu} ({} others')",
                micros(least_ns),
                cost::time(cost::SLICE_NS),
                percent(others.millionths)
            ),
            first: others.remedy(),
        };
    }
    let sooner = if is_disk { cost::SOONER_BRIEF } else { committed };
    let first = match limit::stops(scene) {
        Some(_) => format!("{sooner}; {}", cost::WITHOUT_DISCARD_BRIEF),
        None => sooner.to_owned(),
    };
    Brief {
        by: by.to_owned(),
        amount: format!("{} or more, {p50_us} µs of it the disk", micros(least_ns)),
        first,
    }
}

pub(super) fn reads(scene: &Scene<'_>, alone_ns: Option<[u64; 2]>, first: &str, most: &str) -> Brief {
    let spins = sleeps(scene) == Sleeps::AtOnce && limit::may_spin(scene);
    let first_alone =
        if spins { format!("alone: {}; many: ", scene.needs.spin_setting()) } else { String::new() };
    let (by_alone, alone) = match alone_ns {
        None => (String::new(), String::new()),
        Some([least_ns, most_ns]) if least_ns < most_ns => (
            "alone: waking what sleeps, and its own time; many: ".to_owned(),
            format!("alone {}, up to {} of it waking; many: ", micros(most_ns), micros(most_ns - least_ns)),
        ),
        Some([_, most_ns]) => {
            ("alone: its own time; many: ".to_owned(), format!("alone {}; many: ", micros(most_ns)))
        }
    };
    let by = format!("{by_alone}the CPU of {first}");
    match limit::with_half_of(scene, &cpus_of_reads(scene)) {
        None => Brief {
            by,
            amount: format!("{alone}{most} a second or more"),
            first: format!("{first_alone}clients that pipeline"),
        },
        Some(others) => Brief {
            by: format!("{by}, which others have too"),
            amount: format!("without others: {alone}{most} a second; {}", theirs(&others)),
            first: others.remedy(),
        },
    }
}

pub(super) fn slow_reads(scene: &Scene<'_>, turn_ns: u64, name: &str, beside: &[String]) -> Brief {
    let (percent, tenths) = LINES[0];
    let line_ns = turn_ns * tenths / 10;
    let taken = worst(scene, &cpus_of_reads(scene), |gaps| gaps.wait_p99_ns);
    if let Some(gaps) = taken.filter(|gaps| line_ns < gaps.wait_p99_ns) {
        return taken_cpu(scene, gaps, gaps.wait_p99_ns, "1 in 100");
    }
    if let Some(others) = unmeasured(scene, &cpus_of_reads(scene)) {
        return had_by_others(&others, "");
    }
    let (shares, first) = match beside {
        [] => (String::new(), "fewer and smaller reads; a faster core"),
        names => (format!(", beside {}", names.join(", ")), "a core for the reader alone"),
    };
    Brief {
        by: format!("reads before it on {name}{shares}"),
        amount: format!("on top of one alone: {} in line at {percent} % load", micros(line_ns)),
        first: first.to_owned(),
    }
}
