//! Each answer in a line of a table: what limits, by how much, and what to change first.

use super::{BATCH, HAND_OVER_NS, LINES, cpus_of_reads, journal_share, median_ns, sleeps};
use crate::topology::capacity::{
    Capacity, KNOWN_SETTING, REST_NS, if_signers_are_known, known_ns, micros, rounded,
};
use crate::topology::checks::{Gaps, Scene, Sleeps, Taker, percent};
use crate::topology::{cost, limit};

/// A line of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// What limits.
    pub by: String,
    /// How it is, in a number or two.
    pub amount: String,
    /// What to change first: what costs nothing before what is bought.
    pub first: String,
}

pub(super) fn median(scene: &Scene<'_>, capacity: &Capacity) -> Brief {
    let all_ns = median_ns(scene, capacity);
    let wake_ns = all_ns - capacity.order_ns;
    let check_ns = capacity.check_ns();
    let parts = [
        (check_ns, "signature check: the CPU's speed"),
        (REST_NS, "sockets, parsing, matching"),
        (wake_ns, "waking a loop that sleeps"),
    ];
    let (most_ns, what) = parts.into_iter().max().unwrap_or_default();
    let spin_ns = if limit::may_spin(scene) { wake_ns } else { 0 };
    let known = if capacity.knows_signers { 0 } else { check_ns - known_ns(check_ns) };
    let first = match (known, spin_ns) {
        (0, 0) => "a faster core".to_owned(),
        (0, ns) => format!("cpu.wait=shard=spin: {} less", micros(ns)),
        (ns, _) => format!("{KNOWN_SETTING}: {} less (not reviewed)", micros(ns)),
    };
    Brief { by: what.to_owned(), amount: format!("{}, {} of it", micros(all_ns), micros(most_ns)), first }
}

/// Of these CPUs the one on which one in a hundred, or by the other field one in a thousand, waits longest.
pub(super) fn worst<'a>(scene: &'a Scene<'_>, cpus: &[usize], wait_ns: fn(&Gaps) -> u64) -> Option<&'a Gaps> {
    let gaps = scene.probes.jitter.iter().flatten().filter(|gaps| cpus.contains(&gaps.cpu));
    gaps.max_by_key(|gaps| wait_ns(gaps))
}

pub(super) fn slow(scene: &Scene<'_>, capacity: &Capacity) -> Brief {
    let (percent, tenths) = LINES[0];
    let taken = worst(scene, &scene.cpus_of_orders(), |gaps| gaps.wait_p99_ns);
    // Of the two that is told for which one in a hundred waits longer, on a loop with room.
    if let Some(gaps) = taken.filter(|gaps| capacity.order_ns * tenths / 10 < gaps.wait_p99_ns) {
        return taken_cpu(gaps, gaps.wait_p99_ns, "1 in 100");
    }
    Brief {
        by: "orders before it on its loop".to_owned(),
        amount: format!(
            "{} at {percent} % load, {} behind a batch{}",
            micros(capacity.order_ns * tenths / 10),
            micros(BATCH * capacity.check_ns()),
            taken.map_or_else(String::new, |gaps| format!(
                ", {} for a taken CPU",
                cost::time(gaps.wait_p99_ns)
            ))
        ),
        first: "smaller batches; a core and a shard more".to_owned(),
    }
}

pub(super) fn slowest(scene: &Scene<'_>) -> Brief {
    match worst(scene, &scene.cpus_of_orders(), |gaps| gaps.wait_p999_ns) {
        Some(gaps) => taken_cpu(gaps, gaps.wait_p999_ns, "1 in 1,000"),
        None => Brief {
            by: "whoever takes its loop's CPU".to_owned(),
            amount: "not measured".to_owned(),
            first: "`outcry check --jitter` tells who and how long".to_owned(),
        },
    }
}

/// That a CPU is taken, by whom, and what ends it.
fn taken_cpu(gaps: &Gaps, wait_ns: u64, which: &str) -> Brief {
    let who = match gaps.taker() {
        Taker::Threads => gaps.largest.as_deref().unwrap_or("other programs here"),
        Taker::Host => "the host",
        Taker::Unseen => "the host (nobody is charged)",
        Taker::Interrupts => "interrupts",
        Taker::Unknown => "nobody says by whom",
    };
    Brief {
        by: format!("CPU {} is taken: {who}", gaps.cpu),
        amount: format!("{which} waits {} or more", cost::time(wait_ns)),
        first: gaps.remedy(),
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
        // Its price stands behind it.
        (Some(way), _) => way.split(';').next().unwrap_or_default().to_owned(),
        (None, Some(most)) => {
            format!("a core and a shard more; {KNOWN_SETTING}: up to {} (not reviewed)", rounded(most))
        }
        (None, None) => capacity.bought.first().cloned().unwrap_or_default(),
    };
    let others = if scene.lacks_cores() { coreless(scene) } else { String::new() };
    Brief { by, amount: format!("{} a second{others}", rounded(capacity.orders_per_second)), first }
}

/// What comes off the orders a second of a machine with too few cores.
fn coreless(scene: &Scene<'_>) -> String {
    match journal_share(scene).zip(scene.busiest()) {
        Some((journal, (cpu, others))) => {
            format!(", less journal {journal} and others {} of CPU {cpu}", percent(others))
        }
        None => " or less (`outcry check`)".to_owned(),
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
    let by = if is_disk { "a write of the disk" } else { "the order itself, as above" };
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

pub(super) fn reads(scene: &Scene<'_>, alone_ns: Option<u64>, first: &str, most: &str) -> Brief {
    let alone = alone_ns.map_or_else(String::new, |ns| format!("{} alone, ", micros(ns)));
    let spins = sleeps(scene) == Sleeps::AtOnce && limit::may_spin(scene);
    let spin = if spins { "; cpu.wait=shard=spin" } else { "" };
    Brief {
        by: format!("the CPU of {first}"),
        amount: format!("{alone}{most} a second or more"),
        first: format!("clients that pipeline{spin}"),
    }
}

pub(super) fn slow_reads(scene: &Scene<'_>, turn_ns: u64, name: &str, beside: &[String]) -> Brief {
    let (percent, tenths) = LINES[0];
    let line_ns = turn_ns * tenths / 10;
    let taken = worst(scene, &cpus_of_reads(scene), |gaps| gaps.wait_p99_ns);
    if let Some(gaps) = taken.filter(|gaps| line_ns < gaps.wait_p99_ns) {
        return taken_cpu(gaps, gaps.wait_p99_ns, "1 in 100");
    }
    let (shares, first) = match beside {
        [] => (String::new(), "fewer and smaller reads; a faster core"),
        names => (format!(", beside {}", names.join(", ")), "a core for the reader alone"),
    };
    Brief {
        by: format!("reads before it on {name}{shares}"),
        amount: format!("{} at {percent} % load", micros(line_ns)),
        first: first.to_owned(),
    }
}
