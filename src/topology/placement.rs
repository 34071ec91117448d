//! Which CPU each loop gets, and why.
//!
//! | policy | a loop gets |
//! |---|---|
//! | `auto` | a whole core of the fast kind, all of them on one node and in one cache as far as they fit; second threads of cores only when cores run out |
//! | `spread` | as `auto`, but the caches of the node in turn, so that shards do not evict each other's books |
//! | `pack` | the next thread of the same cache, second threads too, before another cache or node is begun |
//! | `explicit` | the CPU that is named |
//! | `unpinned` | any |
//!
//! Isolated CPUs come first: whoever isolated them meant them for this. On a machine that has a core
//! to spare, the lowest one that is not isolated (of the slow kind, if there are two) is left to the system.

use std::cmp::Reverse;

use super::list;
use super::machine::{Cpu, Machine};

/// How loops are put on CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// For people who do not care.
    Auto,
    /// Shards in caches of their own.
    Spread,
    /// All as close as possible.
    Pack,
    /// As named.
    Explicit,
    /// Nothing is pinned.
    Unpinned,
}

impl Policy {
    /// Every policy by its word.
    pub const NAMES: [(&str, Self); 5] = [
        ("auto", Self::Auto),
        ("spread", Self::Spread),
        ("pack", Self::Pack),
        ("explicit", Self::Explicit),
        ("unpinned", Self::Unpinned),
    ];

    /// Its word.
    #[must_use]
    pub fn text(self) -> &'static str {
        Self::NAMES.iter().find(|(_, policy)| *policy == self).map_or("", |(name, _)| name)
    }
}

/// Cores that should be left beside the loops': one for the journal's thread, and one for the system.
pub const SPARE_CORES: usize = 2;

/// The most shards that are made when nobody says, without loops for ingress: more help only venues that four cores cannot carry.
pub const SHARDS_AUTO_MAX: usize = 4;

/// The most shards there can be; each costs a core and slack in the log.
pub const SHARDS_MAX: u16 = 64;

/// The most loops for ingress alone; each checks some 30,000 signatures a second.
pub const INGRESS_MAX: usize = 10;

/// The loops for ingress alone whose orders one shard matches, made when nobody says: it is full with the orders of
/// twelve of them, or of five if all signers are known (`capacity`).
pub const INGRESS_OF_A_SHARD: usize = 5;

/// How many shards suit `machine` when nobody says: a fast core each, one core left to the reader, one to each of the
/// loops for `ingress` or a feed alone, and the spare ones, without which no loop spins. A loop that sleeps is woken
/// for every order; a second shard helps only where one is full, which with loops for ingress is late.
#[must_use]
pub fn shards_for(machine: &Machine, ingress: usize, feeds: usize) -> usize {
    let left = machine.cores().saturating_sub(1 + ingress + feeds + SPARE_CORES);
    let most = if ingress == 0 { SHARDS_AUTO_MAX } else { ingress.div_ceil(INGRESS_OF_A_SHARD) };
    machine.performance_cores().min(left).clamp(1, most)
}

/// The CPUs for `loops` loops in the order in which they are taken, the shards' first. All allowed
/// CPUs are in it, whatever `loops` is.
#[must_use]
pub fn order(machine: &Machine, policy: Policy, loops: usize) -> Vec<usize> {
    let has_isolated = machine.usable().any(|cpu| cpu.isolated);
    let home = home_node(machine, loops, has_isolated);
    let rank = |cpu: &Cpu| {
        let away = if cpu.node == home { 0 } else { 1 + cpu.node };
        (has_isolated && !cpu.isolated, cpu.efficient, away)
    };
    let spread = |cpu: &Cpu| if policy == Policy::Spread { place_in_cache(machine, cpu) } else { 0 };
    let cache = |cpu: &Cpu| (Reverse(cores_in_cache(machine, cpu.l3)), cpu.l3);
    let mut cpus: Vec<&Cpu> = machine.usable().collect();
    if policy == Policy::Pack {
        cpus.sort_by_key(|cpu| (rank(cpu), cache(cpu), thread_no(machine, cpu), cpu.core()));
    } else {
        cpus.sort_by_key(|cpu| (thread_no(machine, cpu), rank(cpu), spread(cpu), cache(cpu), cpu.core()));
    }
    let mut order: Vec<usize> = cpus.iter().map(|cpu| cpu.id).collect();
    if loops + SPARE_CORES <= machine.cores() {
        leave_to_the_system(machine, &mut order);
    }
    order
}

/// Moves the threads of the lowest core of which none is isolated, a slow one's if there are slow ones, to the end of
/// `order`.
fn leave_to_the_system(machine: &Machine, order: &mut [usize]) {
    let isolated: Vec<usize> = machine.usable().filter(|cpu| cpu.isolated).map(Cpu::core).collect();
    let shared = machine.usable().filter(|cpu| !isolated.contains(&cpu.core()));
    let Some((_, lowest)) = shared.map(|cpu| (!cpu.efficient, cpu.core())).min() else { return };
    order.sort_by_key(|&id| machine.cpu(id).map(Cpu::core) == Some(lowest));
}

/// Moves the CPU that is named for the journal's thread to the end of `order`: a loop that nobody named has it only if
/// no other is left. The other threads of its core, where that thread mostly sleeps, come before those of cores where
/// loops run.
pub fn leave_to_the_journal(machine: &Machine, policy: Policy, order: &mut [usize], journal: usize) {
    let core = machine.cpu(journal).map(Cpu::core);
    order.sort_by_key(|&id| match machine.cpu(id) {
        _ if id == journal => 3,
        _ if policy == Policy::Pack => 0,
        Some(cpu) if Some(cpu.core()) == core => 1,
        Some(cpu) if 0 < thread_no(machine, cpu) => 2,
        _ => 0,
    });
}

/// 0 for a core's first allowed thread, 1 for its second.
fn thread_no(machine: &Machine, cpu: &Cpu) -> usize {
    cpu.threads.iter().filter(|&&thread| thread < cpu.id && machine.allowed.contains(&thread)).count()
}

/// How many fast cores share the cache `l3`.
fn cores_in_cache(machine: &Machine, l3: usize) -> usize {
    let first = |cpu: &&Cpu| cpu.l3 == l3 && !cpu.efficient && thread_no(machine, cpu) == 0;
    machine.usable().filter(first).count()
}

/// How many cores of its cache come before this one.
fn place_in_cache(machine: &Machine, cpu: &Cpu) -> usize {
    let before = |other: &&Cpu| {
        other.l3 == cpu.l3
            && other.efficient == cpu.efficient
            && other.core() < cpu.core()
            && thread_no(machine, other) == 0
    };
    machine.usable().filter(before).count()
}

/// The node that the loops go to: the network card's if they fit there, else the one with most cores.
fn home_node(machine: &Machine, loops: usize, has_isolated: bool) -> usize {
    let good = |cpu: &&Cpu| !cpu.efficient && thread_no(machine, cpu) == 0 && (!has_isolated || cpu.isolated);
    let cores_of = |node: usize| machine.usable().filter(good).filter(|cpu| cpu.node == node).count();
    let of_card = machine.cards.iter().find_map(|card| card.node).filter(|&node| loops <= cores_of(node));
    let most = || machine.usable().map(|cpu| cpu.node).min_by_key(|&node| (Reverse(cores_of(node)), node));
    of_card.or_else(most).unwrap_or(0)
}

/// The journal thread's real-time priority, as `SCHED_FIFO` counts it, where it asks for one: the least but one, so that a
/// client on the same CPU can come before ordinary threads and after this one.
pub const JOURNAL_PRIORITY: u8 = 2;

/// A CPU of its own for a thread that mostly sleeps, beside loops on `taken`: a core where no loop runs,
/// the next in the loops' own order; else a second thread, a shard's core last. Of several as good it is one that gets a
/// disk's interrupts: elsewhere a write also waits until that CPU has woken the thread's (some 25 µs on one guest).
#[must_use]
pub fn free_cpu(machine: &Machine, order: &[usize], taken: &[usize]) -> Option<usize> {
    let beside =
        |id: usize| taken.iter().rposition(|&loop_cpu| machine.core_of(loop_cpu) == machine.core_of(id));
    let free = order.iter().copied().filter(|id| !taken.contains(id));
    // The reader's is the last of `taken`: a thread beside it disturbs no shard.
    let gets_a_disks = |id| {
        machine.interrupts.iter().any(|interrupt| interrupt.is_of_disk() && interrupt.cpus.contains(&id))
    };
    free.min_by_key(|&id| (beside(id).map_or(0, |at| taken.len() - at), !gets_a_disks(id)))
}

/// One thread and where it is, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The thread's name.
    pub thread: String,
    /// What it carries.
    pub roles: String,
    /// Its CPU, if it is pinned.
    pub cpu: Option<usize>,
    /// The core that CPU is a thread of, by its lowest thread.
    pub core: Option<usize>,
    /// The other threads of that core.
    pub siblings: Vec<usize>,
    /// The node of that CPU.
    pub node: Option<usize>,
    /// How it waits.
    pub wait: &'static str,
    /// Why it is there.
    pub why: String,
    /// Interrupts of network cards and disks that are handled on that CPU.
    pub interrupts: Vec<String>,
}

impl Row {
    /// A thread called `thread` on `cpu` of `machine`, with no reason yet.
    #[must_use]
    pub fn on(machine: &Machine, thread: &str, roles: &str, cpu: Option<usize>, wait: &'static str) -> Self {
        let found = cpu.and_then(|id| machine.cpu(id));
        let here = machine.interrupts.iter().filter(|interrupt| cpu.is_some_and(|id| interrupt.cpus == [id]));
        Self {
            thread: thread.to_owned(),
            roles: roles.to_owned(),
            cpu,
            core: found.map(Cpu::core),
            siblings: found.map(Cpu::siblings).unwrap_or_default(),
            node: found.map(|cpu| cpu.node),
            wait,
            why: String::new(),
            interrupts: here.map(|interrupt| interrupt.name.clone()).collect(),
        }
    }
}

/// Why the loop on `row` is where it is; `others` are the CPUs of the other loops with their names.
#[must_use]
pub fn why(machine: &Machine, policy: Policy, row: &Row, others: &[(String, usize)]) -> String {
    let Some(cpu) = row.cpu.and_then(|id| machine.cpu(id)) else {
        return match policy {
            Policy::Unpinned => "cpu.policy is unpinned".to_owned(),
            Policy::Explicit => "no CPU is named for it".to_owned(),
            _ if machine.allowed.len() == 1 => {
                "one CPU carries everything; pinning would change nothing".to_owned()
            }
            _ => "more loops than CPUs: pinned ones would wait for each other".to_owned(),
        };
    };
    let mut reasons = Vec::new();
    if cpu.isolated {
        reasons.push("isolated from other work".to_owned());
    }
    reasons.push(core_reason(machine, cpu, others));
    if 1 < machine.distinct(|cpu| cpu.l3) {
        reasons.push(cache_reason(machine, cpu, others));
    }
    if 1 < machine.distinct(|cpu| cpu.node) {
        let card = machine.cards.iter().find(|card| card.node == Some(cpu.node));
        let card = card.map_or(String::new(), |card| format!(", where {} is", card.name));
        reasons.push(format!("node {}{card}", cpu.node));
    }
    reasons.join("; ")
}

fn core_reason(machine: &Machine, cpu: &Cpu, others: &[(String, usize)]) -> String {
    let has_kinds = machine.usable().any(|other| other.efficient != cpu.efficient);
    let kind = match (has_kinds, cpu.efficient) {
        (false, _) => "core",
        (true, true) => "efficiency core",
        (true, false) => "performance core",
    };
    let beside: Vec<&str> = others
        .iter()
        .filter(|(_, other)| cpu.siblings().contains(other))
        .map(|(name, _)| name.as_str())
        .collect();
    let siblings = list::text(&cpu.siblings());
    let here: Vec<&str> =
        others.iter().filter(|(_, other)| *other == cpu.id).map(|(name, _)| name.as_str()).collect();
    if !here.is_empty() {
        return format!("not every loop has a CPU: shares this one with {}", here.join(", "));
    }
    match (cpu.threads.len(), beside.is_empty()) {
        (1, _) => format!("a {kind} of its own").replace("a eff", "an eff"),
        (_, true) => {
            format!("a whole {kind}, its other thread ({siblings}) without a loop").replace("a eff", "an eff")
        }
        (_, false) => format!("shares its {kind} with {}", beside.join(", ")),
    }
}

fn cache_reason(machine: &Machine, cpu: &Cpu, others: &[(String, usize)]) -> String {
    let near = |other: usize| machine.cpu(other).is_some_and(|other| other.l3 == cpu.l3);
    let beside: Vec<&str> =
        others.iter().filter(|(_, other)| near(*other)).map(|(name, _)| name.as_str()).collect();
    match beside.len() {
        0 => "a level-3 cache of its own".to_owned(),
        all if all == others.len() => "one level-3 cache with all other loops".to_owned(),
        _ => format!("one level-3 cache with {}", beside.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::machine::Interrupt;

    /// Cores of two threads each, `i` and `i + cores`, in caches of `per_cache` cores.
    fn smt(cores: usize, per_cache: usize) -> Machine {
        let mut machine = Machine::plain(&(0..2 * cores).collect::<Vec<_>>());
        for cpu in &mut machine.cpus {
            let core = cpu.id % cores;
            cpu.threads = vec![core, core + cores];
            cpu.l3 = core / per_cache * per_cache;
        }
        machine
    }

    #[test]
    fn policies_differ_in_caches_and_second_threads() {
        let machine = smt(8, 4);
        let first = |policy, loops| order(&machine, policy, loops)[..6].to_vec();
        // Room to spare: core 0 is the system's.
        assert_eq!(first(Policy::Auto, 3), [1, 2, 3, 4, 5, 6]);
        assert_eq!(first(Policy::Spread, 3), [4, 1, 5, 2, 6, 3]);
        assert_eq!(first(Policy::Pack, 3), [1, 2, 3, 9, 10, 11]);
        // None to spare: it begins with the first one.
        assert_eq!(first(Policy::Auto, 8), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_system_keeps_a_core_beside_those_that_are_isolated() {
        for (cpus, isolated, loops, expected) in [
            (4, vec![1], 2, vec![1, 2, 3, 0]),
            (5, vec![1, 2], 3, vec![1, 2, 3, 4, 0]),
            (8, vec![7], 4, vec![7, 1, 2, 3, 4, 5, 6, 0]),
            (8, vec![0, 1], 4, vec![0, 1, 3, 4, 5, 6, 7, 2]),
            // None to spare, or none that is not isolated.
            (4, vec![1], 3, vec![1, 0, 2, 3]),
            (4, vec![0, 1, 2, 3], 2, vec![0, 1, 2, 3]),
        ] {
            let mut machine = Machine::plain(&(0..cpus).collect::<Vec<_>>());
            for cpu in &mut machine.cpus {
                cpu.isolated = isolated.contains(&cpu.id);
            }
            assert_eq!(order(&machine, Policy::Auto, loops), expected, "{isolated:?} of {cpus}");
        }
    }

    #[test]
    fn every_allowed_cpu_is_in_the_order_once() {
        for policy in [Policy::Auto, Policy::Spread, Policy::Pack] {
            for loops in 1..20 {
                let mut all = order(&smt(8, 4), policy, loops);
                all.sort_unstable();
                assert_eq!(all, (0..16).collect::<Vec<_>>(), "{policy:?} {loops}");
            }
        }
    }

    #[test]
    fn the_journal_thread_gets_a_core_without_a_loop_then_the_reader_s_second_thread() {
        let machine = smt(3, 3);
        let order = order(&machine, Policy::Auto, 3);
        assert_eq!(free_cpu(&machine, &order, &[0, 1]), Some(2));
        assert_eq!(free_cpu(&machine, &order, &[0, 1, 2]), Some(5));
        assert_eq!(free_cpu(&machine, &order, &[0, 1, 2, 3, 4, 5]), None);
    }

    #[test]
    fn of_cores_without_a_loop_the_journal_thread_gets_the_one_with_the_disk_s_interrupts() {
        let mut machine = Machine::plain(&[0, 1, 2, 3, 4]);
        let order = order(&machine, Policy::Auto, 2);
        let mut with = |interrupts: &[(&str, usize)]| {
            let of =
                |&(name, cpu): &(&str, usize)| Interrupt { number: 0, name: name.into(), cpus: vec![cpu] };
            machine.interrupts = interrupts.iter().map(of).collect();
            free_cpu(&machine, &order, &[1, 2])
        };
        // The system has core 0 while there is another.
        assert_eq!(with(&[]), Some(3));
        assert_eq!(with(&[("virtio1-req.0", 4)]), Some(4));
        assert_eq!(with(&[("virtio1-req.0", 2), ("virtio2-output.0", 4)]), Some(3));
        assert_eq!(with(&[("nvme0q1", 3), ("nvme0q2", 4)]), Some(3));
    }

    #[test]
    fn a_cpu_that_is_named_for_the_journal_comes_last_and_its_core_before_second_threads() {
        for (cores, loops, policy, journal, expected) in [
            (2, 2, Policy::Auto, 1, vec![0, 3, 2, 1]),
            (4, 4, Policy::Auto, 3, vec![0, 1, 2, 7, 4, 5, 6, 3]),
            (2, 2, Policy::Pack, 1, vec![0, 2, 3, 1]),
        ] {
            let machine = smt(cores, cores);
            let mut order = order(&machine, policy, loops);
            leave_to_the_journal(&machine, policy, &mut order, journal);
            assert_eq!(order, expected, "{policy:?} {cores}");
        }
    }

    #[test]
    fn shards_are_counted_by_fast_whole_cores_and_by_the_quota() {
        assert_eq!(shards_for(&Machine::plain(&[0]), 0, 0), 1);
        // A core more is a shard more, once the reader, the journal and the system have theirs.
        for (cpus, shards) in [(2, 1), (3, 1), (4, 1), (5, 2), (6, 3), (7, 4), (64, 4)] {
            assert_eq!(shards_for(&Machine::plain(&(0..cpus).collect::<Vec<_>>()), 0, 0), shards, "{cpus}");
        }
        assert_eq!(shards_for(&Machine::plain(&[0, 1, 2, 3, 4, 5]), 0, 1), 2);
        // Loops for ingress are full long before the shard that they ask.
        for (cpus, ingress, shards) in [(8, 2, 1), (16, 5, 1), (16, 6, 2), (9, 6, 1), (64, 10, 2)] {
            let machine = Machine::plain(&(0..cpus).collect::<Vec<_>>());
            assert_eq!(shards_for(&machine, ingress, 0), shards, "{cpus} {ingress}");
        }
        assert_eq!((shards_for(&smt(3, 3), 0, 0), shards_for(&smt(16, 8), 0, 0)), (1, 4));
        let mut machine = smt(16, 8);
        machine.quota_milli = Some(3_500);
        assert_eq!((machine.cores(), shards_for(&machine, 0, 0)), (3, 1));
        machine.quota_milli = None;
        for cpu in machine.cpus.iter_mut().filter(|cpu| 1 < cpu.core()) {
            cpu.efficient = true;
        }
        assert_eq!(shards_for(&machine, 0, 0), 2);
    }
}
