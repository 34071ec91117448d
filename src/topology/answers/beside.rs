//! The orders a second that are left where others share the CPUs of the loops that are full first.
//!
//! A pinned loop has its CPU. Loops that are not pinned share the CPUs of the cores which pinned ones leave: of each
//! CPU they get what others leave, but a fair share at least, and a loop that is full by itself gets the best of them.

use super::capacity::{Capacity, Part, SECOND_NS, rounded};
use super::{Gaps, Others, SHARE_PERCENT_MAX, Scene, percent};
use crate::topology::list;
use crate::topology::machine::count_distinct;

/// The whole of a CPU, in millionths.
const ALL: u64 = 1_000_000;

/// What is left, and who has the rest.
pub(super) struct Beside {
    pub(super) orders_per_second: u64,
    cpus: Vec<usize>,
    /// Their share of the time of all these CPUs; of several, named by the one that they use most.
    pub(super) others: Option<Others>,
    /// The share of a CPU that the journal's thread takes while one write follows another, in millionths.
    journal: Option<u64>,
    /// The share of these CPUs that no thread of this machine took, in millionths.
    host: Option<u64>,
}

/// None where nobody takes anything of those CPUs, or nobody looked.
pub(super) fn of(scene: &Scene<'_>, capacity: &Capacity) -> Option<Beside> {
    let full = capacity.parts.iter().find(|part| capacity.first.contains(&part.name))?;
    let cpus = cpus_of(scene, full);
    let journal = journal_on(scene, &cpus);
    let left: Vec<u64> = cpus.iter().map(|&cpu| left_of(scene, cpu, journal, cpus.len())).collect();
    let orders_per_second = match full.cpu {
        Some(_) => capacity.orders_per_second * mean(&left) / ALL,
        None => of_wandering(scene, capacity, &cpus, &left),
    };
    let host: Vec<u64> = cpus.iter().filter_map(|&cpu| of_host(scene, cpu)).collect();
    let host = (!host.is_empty()).then(|| host.iter().sum::<u64>() / count(cpus.len()));
    let is_less = orders_per_second < capacity.orders_per_second;
    let others = others_on(scene, &cpus);
    is_less.then_some(Beside { orders_per_second, cpus, others, journal, host })
}

/// A loop's own CPU; of one that is not pinned, the CPUs of cores that no loop is pinned to.
fn cpus_of(scene: &Scene<'_>, part: &Part) -> Vec<usize> {
    if let Some(cpu) = part.cpu {
        return vec![cpu];
    }
    let taken: Vec<usize> =
        scene.needs.work.iter().filter_map(|work| Some(scene.machine.core_of(work.cpu?))).collect();
    let allowed = &scene.machine.allowed;
    let free: Vec<usize> =
        allowed.iter().copied().filter(|&cpu| !taken.contains(&scene.machine.core_of(cpu))).collect();
    if free.is_empty() { allowed.clone() } else { free }
}

/// The rate of loops without CPUs of their own, of which one runs on one core at a time.
fn of_wandering(scene: &Scene<'_>, capacity: &Capacity, cpus: &[usize], left: &[u64]) -> u64 {
    let times_ns = || capacity.parts.iter().filter(|part| part.cpu.is_none()).map(|part| part.order_ns);
    let (sum_ns, longest_ns) = (times_ns().sum::<u64>().max(1), times_ns().max().unwrap_or(1).max(1));
    let cores = count_distinct(cpus.iter().map(|&cpu| scene.machine.core_of(cpu)));
    let of_all = SECOND_NS * count(cores) / sum_ns * mean(left) / ALL;
    let of_one = SECOND_NS / longest_ns * left.iter().copied().max().unwrap_or(0) / ALL;
    of_all.min(of_one).min(capacity.orders_per_second)
}

/// What the journal's thread takes, if it runs on `cpus`.
fn journal_on(scene: &Scene<'_>, cpus: &[usize]) -> Option<u64> {
    let is_near = scene.needs.journal_cpu.map_or(scene.lacks_cores(), |journal| cpus.contains(&journal));
    scene.probes.disk.as_ref().ok().filter(|_| is_near).map(|disk| disk.cpu_millionths)
}

/// What others use of `cpu`, if it counts.
fn others_of(scene: &Scene<'_>, cpu: usize) -> Option<Others> {
    let others = scene.others_on(&[cpu]);
    others.filter(|others| 0 < others.millionths && (scene.lacks_cores() || others.are_felt()))
}

/// The share of `cpu` that is left, in millionths, where the journal has its part of one of `cpus`.
fn left_of(scene: &Scene<'_>, cpu: usize, journal: Option<u64>, cpus: usize) -> u64 {
    let others = others_of(scene, cpu).map(|others| others.millionths);
    let shares = || others.into_iter().chain(journal.map(|share| share / count(cpus)));
    // Threads that are always ready get equal shares, so the loop has at least one of what the host leaves.
    let left = ALL.saturating_sub(shares().sum()).max(ALL / (1 + count(shares().count())));
    left * ALL.saturating_sub(of_host(scene, cpu).unwrap_or(0)) / ALL
}

/// What others use of all of `cpus`, and who, if one CPU has all that is felt of it.
fn others_on(scene: &Scene<'_>, cpus: &[usize]) -> Option<Others> {
    let here: Vec<Others> = cpus.iter().filter_map(|&cpu| others_of(scene, cpu)).collect();
    let busiest = here.iter().max_by_key(|others| others.millionths)?;
    let is_one = here.iter().filter(|others| others.are_felt()).count() < 2;
    let who = busiest.who.clone().filter(|_| is_one);
    let millionths = here.iter().map(|others| others.millionths).sum::<u64>() / count(cpus.len());
    Some(Others { millionths, who, ..*busiest })
}

/// The share of `cpu` that nobody on this machine took, in millionths, if it is noticeable: what a thread that never
/// sleeps lost there and no other thread had; where that was not measured, what the host is charged with.
fn of_host(scene: &Scene<'_>, cpu: usize) -> Option<u64> {
    let unseen = |gaps: &Gaps| gaps.lost_millionths.saturating_sub(gaps.threads_millionths.unwrap_or(0));
    let measured = scene.probes.jitter.iter().flatten().find(|gaps| gaps.cpu == cpu).map(unseen);
    let charged = || scene.probes.stat_before.as_ref().and_then(|_| scene.stolen_millionths());
    measured.or_else(charged).filter(|share| u64::from(SHARE_PERCENT_MAX) * 10_000 <= *share)
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

fn mean(shares: &[u64]) -> u64 {
    shares.iter().sum::<u64>() / count(shares.len()).max(1)
}

impl Beside {
    fn who(&self) -> String {
        let journal = self.journal.map(|share| format!("the journal ({} %)", share.div_ceil(10_000)));
        let others = self.others.as_ref().map(|others| format!("others ({})", percent(others.millionths)));
        let host = self.host.map(|share| format!("the host and interrupts ({})", percent(share)));
        journal.into_iter().chain(others).chain(host).collect::<Vec<_>>().join(", ")
    }

    /// The rate as it is, then what it would be `alone` on these CPUs.
    pub(super) fn brief(&self, less: &str, alone: &str) -> String {
        let (cpus, own) = match self.cpus.as_slice() {
            [cpu] => (format!("CPU {cpu}"), "itself"),
            cpus => (format!("CPUs {}", list::text(cpus)), "themselves"),
        };
        let (rate, who) = (rounded(self.orders_per_second), self.who());
        format!("{rate} a second as it is{less}, beside {who} on {cpus}; {alone} with {cpus} to {own}")
    }

    pub(super) fn text(&self) -> String {
        let journal = self.journal.map(|share| {
            format!(
                "the journal's thread takes up to {} % of a CPU while one write follows another (tried)",
                share.div_ceil(10_000)
            )
        });
        let others = self.others.as_ref().map(|others| format!("other programs had {}", others.amount()));
        let host = self.host.map(|share| format!("the host and interrupts took {}", percent(share)));
        let who = journal.into_iter().chain(others).chain(host).collect::<Vec<_>>().join(", ");
        let shares = match self.cpus.as_slice() {
            [cpu] => format!("it shares cpu {cpu}"),
            cpus => format!("they share cpus {}", list::text(cpus)),
        };
        format!("about {} where {shares}: {who}", rounded(self.orders_per_second))
    }
}
