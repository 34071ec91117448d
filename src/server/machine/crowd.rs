//! Who else ran on the machine, by name: the CPU time of all processes, or of all threads, between two looks at them.
//!
//! The kernel adds an ended process to the one that waited for it, so a build that starts a thousand compilers is named
//! by what started them. Names and times are all that is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::topology::checks::Named;
use crate::topology::list;

/// A tick of `/proc/stat`: a hundredth of a second (`USER_HZ`, proc(5)).
pub const TICK_NS: u64 = 10_000_000;

/// The kernel's own threads are children of this one (`kthreadd`).
const KERNEL: u32 = 2;

/// One process or thread, by its `stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct One {
    id: u32,
    /// The process that a thread belongs to; a process's own number.
    process: u32,
    name: String,
    /// Whether it has ended and was not waited for yet.
    has_ended: bool,
    /// When it started, in ticks since the boot. This and the number identify it; the name does not, as a kernel
    /// worker's says what it does at the moment.
    started: u64,
    parent: u32,
    own_ns: u64,
    /// CPU time of its ended children and of theirs.
    ended_ns: u64,
    /// The CPUs that it may have used: of a thread the last one, of a process all that it may run on.
    cpus: Vec<usize>,
}

/// Ancestors further up are not looked for: a look takes some milliseconds, in which numbers may be given anew, and a
/// line of ancestors must not go in a circle.
const GENERATIONS_MAX: usize = 64;

/// A look at every process or thread but this process's and the server's.
#[derive(Debug)]
pub struct Crowd(Vec<One>);

/// Who used the most CPU time, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// Its name and its number.
    pub who: String,
    /// Nanoseconds of CPU.
    pub ns: u64,
    /// Whether it is one of the kernel's own threads.
    pub is_kernels: bool,
    /// The CPUs that it may have used; none if unknown, as for what has ended.
    pub cpus: Option<Vec<usize>>,
    /// The process that had started what has ended.
    pub starter: Option<u32>,
}

impl Largest {
    /// Names the starter of what has ended instead, if that starts more of one name while it is watched for `time`, or
    /// has another child at work: then the starter is what can be stopped.
    #[must_use]
    pub fn or_who_keeps_starting(self, time: Duration) -> Self {
        let Some(id) = self.starter else { return self };
        let began = Instant::now();
        let mut seen = Vec::new();
        while began.elapsed() < time {
            seen.extend(numbers("/proc").filter_map(|id| One::read(Path::new(&format!("/proc/{id}")))));
            seen.retain(|one: &One| one.parent == id);
            std::thread::sleep(LOOKS_APART);
        }
        let starter = One::read(Path::new(&format!("/proc/{id}")));
        let Some(starter) = starter else { return self };
        match (kept_starting(&seen), at_work(&seen)) {
            (Some(child), _) => Self { who: starter.who_keeps_starting(child), ..self },
            (None, Some(child)) => Self { who: starter.who_has_started(child), ..self },
            (None, None) => self,
        }
    }

    /// Whether it used at least half of this share, in millionths, of a CPU's `time`: then stopping it gives the CPU
    /// back. False for a share of zero.
    #[must_use]
    pub fn is_most_of(&self, millionths: u64, time: Duration) -> bool {
        0 < millionths && u128::from(millionths) * time.as_nanos() <= 2 * u128::from(self.ns) * 1_000_000
    }
}

impl Crowd {
    /// All processes but this one and `server`.
    #[must_use]
    pub fn of_processes(server: Option<u32>) -> Self {
        let rows = numbers("/proc").filter(|&id| !is_ours(id, server));
        Self(rows.filter_map(|id| One::read(Path::new(&format!("/proc/{id}")))?.anywhere_allowed()).collect())
    }

    /// All threads of all processes but this one.
    #[must_use]
    pub fn of_threads() -> Self {
        let rows = numbers("/proc").filter(|&id| !is_ours(id, None)).flat_map(|id| {
            let folder = format!("/proc/{id}/task");
            let tids: Vec<u32> = numbers(&folder).collect();
            let read = move |tid| {
                let folder = format!("{folder}/{tid}");
                let one = One::read(Path::new(&folder))?;
                let own_ns = ran_ns(Path::new(&folder)).unwrap_or(one.own_ns);
                Some(One { process: id, own_ns, ..one })
            };
            tids.into_iter().filter_map(read)
        });
        // Ended children count for the whole process, so only its first thread keeps them.
        let once = |one: One| One { ended_ns: if one.id == one.process { one.ended_ns } else { 0 }, ..one };
        Self(rows.map(once).collect())
    }

    /// Who used at least half of this share, in millionths, of a CPU's `time`: what was there `later`, or else the
    /// ended children of one process. Where these ran is unknown, so they count only up to that share.
    #[must_use]
    pub fn most_of(&self, later: &Self, cpu: usize, millionths: u64, time: Duration) -> Option<Named> {
        let is_most = |largest: &Largest| largest.is_most_of(millionths, time);
        let there = later.0.iter().filter(|one| one.cpus.contains(&cpu));
        let largest =
            there.map(|one| (one, self.of_itself(later, one))).max_by_key(|(_, largest)| largest.ns);
        if let Some((one, largest)) = largest.filter(|(_, largest)| is_most(largest)) {
            // Stopping one of a series only brings the next one.
            let is_next =
                self.then(one).is_none() && self.gone(later, one.parent).any(|then| then.name == one.name);
            let starter = later.0.iter().find(|other| is_next && other.id == one.parent);
            let who = starter.map_or(largest.who, |starter| starter.who_keeps_starting(&one.name));
            return Some(Named { who, is_kernels: largest.is_kernels });
        }
        let had_ns = u128::from(millionths) * time.as_nanos() / 1_000_000 + u128::from(TICK_NS);
        let given_ns = self.given_ns(later);
        let ended = later.0.iter().map(|parent| (parent, self.of_ended(later, parent, &given_ns)));
        let (parent, largest) = ended
            .filter(|(_, largest)| is_most(largest) && u128::from(largest.ns) <= had_ns)
            .max_by_key(|(_, largest)| largest.ns)?;
        let is_new = |now: &&One| now.parent == parent.id && self.0.iter().all(|then| then.id != now.id);
        let mut gone = self.gone(later, parent.id).filter(|one| one.id == one.process);
        let who = match (later.0.iter().find(is_new), gone.next(), gone.next()) {
            (Some(child), ..) => parent.who_keeps_starting(&child.name),
            (None, Some(one), None) => format!("{}{}", self.who(one), Named::HAS_ENDED),
            _ => largest.who,
        };
        Some(Named { who, is_kernels: false })
    }

    /// Who used most CPU time until `later`, among what is there and the ended children of each process: anywhere, or
    /// what may have used `cpu`; the kernel's own threads only if `kernel_counts`.
    #[must_use]
    pub fn largest(&self, later: &Self, cpu: Option<usize>, kernel_counts: bool) -> Option<Largest> {
        let is_asked_for = |one: &&One| kernel_counts || one.parent != KERNEL;
        let given_ns = self.given_ns(later);
        let had = |now: &One| [self.of_itself(later, now), self.of_ended(later, now, &given_ns)];
        let may_be = |one: &Largest| {
            cpu.is_none_or(|cpu| one.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))) && 0 < one.ns
        };
        let all = later.0.iter().filter(is_asked_for).flat_map(had);
        all.filter(may_be).max_by_key(|largest| largest.ns)
    }

    /// The CPU time that one used until `later`, without its children's.
    fn of_itself(&self, later: &Self, now: &One) -> Largest {
        Largest {
            who: format!("{}{}", later.who(now), if now.has_ended { Named::HAS_ENDED } else { "" }),
            ns: now.own_ns.saturating_sub(self.then(now).map_or(0, |then| then.own_ns)),
            is_kernels: now.parent == KERNEL,
            cpus: Some(now.cpus.clone()),
            starter: None,
        }
    }

    /// The CPU time that ended children of `parent`, and theirs, used until `later`. What they had used before this
    /// look is no part of it, see [`Self::given_ns`].
    fn of_ended(&self, later: &Self, parent: &One, given_ns: &BTreeMap<u32, u64>) -> Largest {
        let then_ns = self.then(parent).map_or(0, |then| then.ended_ns);
        let before_ns = then_ns + given_ns.get(&parent.id).unwrap_or(&0);
        Largest {
            who: format!("what {} had started{}", later.who(parent), Named::HAS_ENDED),
            ns: parent.ended_ns.saturating_sub(before_ns),
            is_kernels: parent.parent == KERNEL,
            cpus: None,
            starter: Some(parent.id),
        }
    }

    /// What those that were there at this look and have ended by `later` had used before it, for each process that may
    /// have been given it when they ended.
    ///
    /// A process gives its whole life's time, with that of its ended children, to the parent that waits for it, and
    /// this one in turn to its own. Nobody sees in which order the two ended: if the parent did first, an ancestor
    /// further up waited instead. So the time of one whose parent has ended too counts for every ancestor, and what
    /// these have left may be too little, but never what was used before.
    fn given_ns(&self, later: &Self) -> BTreeMap<u32, u64> {
        let there: BTreeSet<u32> = later.0.iter().map(|now| now.process).collect();
        let has_ended = |one: &One| !there.contains(&one.process);
        let parent = |one: &One| self.0.iter().find(|other| other.id == one.parent);
        let mut given_ns = BTreeMap::new();
        for one in self.0.iter().filter(|one| has_ended(one)) {
            let generations = if parent(one).is_some_and(has_ended) { GENERATIONS_MAX } else { 1 };
            let line = std::iter::successors(Some(one), |one| parent(one)).take(generations);
            for ancestor in line.map(|one| one.parent) {
                *given_ns.entry(ancestor).or_default() += one.own_ns + one.ended_ns;
            }
        }
        given_ns
    }

    /// The same process or thread as this look saw it.
    fn then(&self, now: &One) -> Option<&One> {
        self.0.iter().find(|then| then.id == now.id && then.started == now.started)
    }

    /// Children of `parent` that are not there `later`, with all their threads.
    fn gone(&self, later: &Self, parent: u32) -> impl Iterator<Item = &One> {
        let is_gone = |then: &&One| later.0.iter().all(|now| now.process != then.process);
        self.0.iter().filter(move |then| then.parent == parent).filter(is_gone)
    }

    /// Its name and number; a thread's after its process's.
    fn who(&self, one: &One) -> String {
        let of =
            (one.process != one.id).then(|| self.0.iter().find(|other| other.id == one.process)).flatten();
        match of {
            Some(process) => format!("{} ({}), thread {} ({})", process.name, process.id, one.name, one.id),
            None => one.who(),
        }
    }
}

/// Time between two looks at a process's children.
const LOOKS_APART: Duration = Duration::from_millis(10);

/// The name that more than one of the children seen had; of several names, that with most CPU time.
fn kept_starting(seen: &[One]) -> Option<&str> {
    let is_again = |one: &&One| {
        seen.iter().any(|other| other.name == one.name && (other.id, other.started) != (one.id, one.started))
    };
    seen.iter().filter(is_again).max_by_key(|one| one.own_ns).map(|one| one.name.as_str())
}

/// Of the children seen, in order, the one that used most CPU time meanwhile.
fn at_work(seen: &[One]) -> Option<&One> {
    let since_ns = |now: &One| {
        let first = seen.iter().find(|then| (then.id, then.started) == (now.id, now.started));
        first.map_or(0, |then| (now.own_ns + now.ended_ns).saturating_sub(then.own_ns + then.ended_ns))
    };
    seen.iter().filter(|one| 0 < since_ns(one)).max_by_key(|one| since_ns(one))
}

pub(super) fn is_ours(id: u32, server: Option<u32>) -> bool {
    id == std::process::id() || Some(id) == server
}

/// A process's name as it may be told: it is that process's to choose, and a line break in it would begin a line of
/// its own in a report, or in a script that root runs.
pub(super) fn shown(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}

/// How long a thread ran, to the nanosecond if the kernel says so: in `stat` a thread that ran for a moment may have a
/// whole tick.
pub(super) fn ran_ns(folder: &Path) -> Option<u64> {
    std::fs::read_to_string(folder.join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
}

/// The folders below `folder` that are numbers.
pub(super) fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

impl One {
    /// Its name and its number.
    fn who(&self) -> String {
        format!("{} ({})", self.name, self.id)
    }

    fn who_has_started(&self, child: &Self) -> String {
        format!("{}, which has started {} too", self.who(), child.who())
    }

    fn who_keeps_starting(&self, child: &str) -> String {
        format!("{}, which keeps starting {child}", self.who())
    }

    /// `None` if it has ended meanwhile.
    fn read(folder: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(folder.join("stat")).ok()?)
    }

    /// This process with all CPUs that it may run on; none if it has ended meanwhile.
    fn anywhere_allowed(self) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        Some(Self { cpus: allowed(&status)?, ..self })
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name stands in brackets and may hold anything.
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let both_ns = |index: usize| Some((number(index)? + number(index + 1)?) * TICK_NS);
        Some(Self {
            id: id.parse().ok()?,
            process: id.parse().ok()?,
            name: shown(name),
            has_ended: fields.first() == Some(&"Z"),
            started: number(19)?,
            parent: fields.get(1)?.parse().ok()?,
            own_ns: both_ns(11)?,
            ended_ns: both_ns(13)?,
            cpus: vec![fields.get(36)?.parse().ok()?],
        })
    }
}

/// Where a process may run, by its `status` (proc(5)).
fn allowed(status: &str) -> Option<Vec<usize>> {
    list::parse(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: u32, name: &str, parent: u32, [own_ns, ended_ns]: [u64; 2], cpu: usize) -> One {
        One {
            id,
            process: id,
            name: name.to_owned(),
            has_ended: false,
            started: 22,
            parent,
            own_ns,
            ended_ns,
            cpus: vec![cpu],
        }
    }

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name_is() {
        let numbers: Vec<String> = (5..=52).map(|field: u64| field.to_string()).collect();
        let stat = format!("4711 (a) S (b) R 1 {}\n", numbers.join(" "));
        let expected = one(4_711, "a) S (b", 1, [29 * TICK_NS, 33 * TICK_NS], 39);
        assert_eq!(One::parse(&stat), Some(expected));
        let breaks = stat.replace("a) S (b", "x\nid -u>q;# \u{1b}[2J");
        let name = One::parse(&breaks).map(|one| one.name);
        assert_eq!(name.as_deref(), Some("x\u{fffd}id -u>q;# \u{fffd}[2J"));
        for cut in ["", "4711", "4711 (a) R 1 2 3"] {
            assert_eq!(One::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn who_had_most_is_named_by_where_it_ran_and_by_what_it_started() {
        let before = Crowd(vec![
            one(7, "editor", 1, [900, 0], 0),
            one(8, "build", 1, [10, 100], 1),
            one(9, "kworker", 2, [0, 0], 0),
        ]);
        let after = |editor: u64, build: u64, kernel, new| {
            Crowd(vec![
                one(7, "editor", 1, [900 + editor, 0], 0),
                one(8, "build", 1, [10, 100 + build], 1),
                one(9, "kworker", 2, [kernel, 0], 0),
                one(10, "compiler", 8, [new, 0], 1),
            ])
        };
        for (later, cpu, kernel_counts, expected) in [
            (after(50, 40, 0, 0), None, true, Some(("editor (7)", 50))),
            (after(50, 60, 0, 0), None, true, Some(("what build (8) had started, which has ended", 60))),
            (after(50, 60, 0, 70), None, true, Some(("compiler (10)", 70))),
            (after(50, 0, 0, 70), Some(0), true, Some(("editor (7)", 50))),
            // Where something ran that has ended is unknown.
            (after(50, 60, 0, 70), Some(0), true, Some(("what build (8) had started, which has ended", 60))),
            (after(50, 0, 80, 0), None, true, Some(("kworker (9)", 80))),
            (after(50, 0, 80, 0), None, false, Some(("editor (7)", 50))),
            (after(0, 0, 80, 0), Some(1), true, None),
        ] {
            let largest = before.largest(&later, cpu, kernel_counts);
            assert_eq!(largest.as_ref().map(|one| (one.who.as_str(), one.ns)), expected);
        }
    }

    #[test]
    fn a_taker_is_named_if_it_had_at_least_half() {
        let second = Duration::from_secs(1);
        for (ns, expected) in [(49_999_999, false), (50_000_000, true), (0, false)] {
            let largest = Crowd(vec![]).of_itself(&Crowd(vec![]), &one(7, "kworker", 2, [ns, 0], 0));
            assert_eq!(largest.is_most_of(100_000, second), expected, "{ns}");
        }
    }

    #[test]
    fn who_had_half_of_a_cpu_is_named_though_it_has_ended() {
        let second = Duration::from_secs(1);
        let tick = TICK_NS;
        let shell = |ended| one(8, "sh", 1, [0, ended * tick], 0);
        let thread = One { process: 1, ..one(75, "worker", 0, [60 * tick, 0], 1) };
        let (init, old) = (one(1, "init", 0, [0, 0], 0), one(9, "loop", 8, [5 * tick, 0], 1));
        for (before, later, expected) in [
            (vec![old.clone()], vec![one(9, "loop", 8, [65 * tick, 0], 1)], Some("loop (9)")),
            (vec![], vec![One { has_ended: true, ..old.clone() }], None),
            (
                vec![],
                vec![One { has_ended: true, own_ns: 60 * tick, ..old.clone() }],
                Some("loop (9), which has ended"),
            ),
            (vec![init.clone()], vec![init.clone(), thread], Some("init (1), thread worker (75)")),
            (vec![shell(0), old.clone()], vec![shell(65)], Some("loop (9), which has ended")),
            (vec![shell(0)], vec![shell(60)], Some("what sh (8) had started, which has ended")),
            (
                vec![shell(0), old.clone()],
                vec![shell(60), one(99, "dd", 8, [0, 0], 1)],
                Some("sh (8), which keeps starting dd"),
            ),
            (
                vec![shell(0), one(98, "dd", 8, [20 * tick, 0], 1)],
                vec![shell(20), One { has_ended: true, ..one(99, "dd", 8, [40 * tick, 0], 1) }],
                Some("sh (8), which keeps starting dd"),
            ),
            // Not half, and more than was had there.
            (vec![shell(0)], vec![shell(29)], None),
            (vec![shell(0)], vec![shell(62)], None),
        ] {
            let named = Crowd(before).most_of(&Crowd(later), 1, 600_000, second);
            assert_eq!(named.as_ref().map(|named| named.who.as_str()), expected);
        }
    }

    #[test]
    fn a_worker_that_is_called_otherwise_by_now_had_only_what_it_had_since() {
        let then = one(9, "kworker/0:1-events", 2, [700, 0], 0);
        let now = one(9, "kworker/0:1-mm_percpu_wq", 2, [730, 0], 0);
        let another = One { started: 4_000, ..now.clone() };
        for (now, expected) in [(now, 30), (another, 730)] {
            let largest = Crowd(vec![then.clone()]).largest(&Crowd(vec![now]), Some(0), true);
            assert_eq!(largest.map(|largest| largest.ns), Some(expected));
        }
    }

    #[test]
    fn of_a_child_that_has_ended_only_what_it_had_since_counts() {
        let before = Crowd(vec![one(8, "build", 1, [0, 100], 0), one(9, "compiler", 8, [70, 5], 0)]);
        for (ended_ns, expected) in [(100 + 75 + 20, Some(20)), (100 + 75, None)] {
            let later = Crowd(vec![one(8, "build", 1, [0, ended_ns], 0)]);
            assert_eq!(before.largest(&later, None, true).map(|largest| largest.ns), expected);
        }
    }

    #[test]
    fn what_a_grandchild_had_used_before_is_nobodys() {
        // Below bash runs `sh -c 'burn; true'`: burn had burnt 1,200, and sh 5, when the load began.
        let bash = |ended_ns| one(8, "bash", 1, [3, ended_ns], 0);
        let sh = |ended_ns| one(9, "sh", 8, [5, ended_ns], 0);
        let burn = one(10, "burn", 9, [1_200, 0], 0);
        let init = |ended_ns| one(1, "init", 0, [0, ended_ns], 0);
        let before = Crowd(vec![init(70), bash(100), sh(0), burn.clone()]);
        for (later, expected) in [
            (vec![init(70), bash(100 + 5 + 1_200)], None),
            (vec![init(70), bash(100 + 5 + 1_200 + 20)], Some(("bash (8)", 20))),
            // The shell lives on, so what it was given is not yet bash's.
            (vec![init(70), bash(100), sh(1_200 + 20)], Some(("sh (9)", 20))),
            (vec![init(70), bash(100 + 20), sh(1_200)], Some(("bash (8)", 20))),
            // The shell ended first, and whoever inherits orphans waited for burn.
            (vec![init(70 + 1_200), bash(100 + 5)], None),
            (vec![init(70 + 1_200 + 20), bash(100 + 5)], Some(("init (1)", 20))),
            (vec![init(70), bash(100 + 5), burn.clone()], None),
        ] {
            let largest = before.largest(&Crowd(later), None, true);
            let expected =
                expected.map(|(who, ns)| (format!("what {who} had started{}", Named::HAS_ENDED), ns));
            assert_eq!(largest.map(|largest| (largest.who, largest.ns)), expected);
        }
    }

    #[test]
    fn a_line_of_ancestors_that_goes_in_a_circle_is_left() {
        let before = Crowd(vec![one(8, "sh", 9, [5, 0], 0), one(9, "sh", 8, [7, 0], 0)]);
        assert_eq!(before.largest(&Crowd(vec![]), None, true), None);
    }

    #[test]
    fn a_parent_keeps_starting_what_more_than_one_of_its_children_is_called() {
        let child = |id, name: &str, own_ns| one(id, name, 8, [own_ns, 0], 0);
        for (seen, expected) in [
            (vec![], None),
            // The same one twice.
            (vec![child(9, "dd", 10), child(9, "dd", 20)], None),
            (vec![child(9, "dd", 10), child(10, "sleep", 0)], None),
            (
                vec![child(9, "dd", 10), child(10, "sleep", 0), child(11, "dd", 0), child(12, "sleep", 0)],
                Some("dd"),
            ),
        ] {
            assert_eq!(kept_starting(&seen), expected, "{seen:?}");
        }
    }

    #[test]
    fn who_has_another_one_at_work_is_told_with_it() {
        let child = |id, own_ns| one(id, "cargo", 8, [own_ns, 0], 0);
        for (seen, expected) in [
            (vec![child(9, 10), child(9, 10)], None),
            (vec![child(9, 10), child(10, 70), child(9, 30), child(10, 75)], Some(9)),
        ] {
            assert_eq!(at_work(&seen).map(|one| one.id), expected, "{seen:?}");
        }
        let told = one(8, "bash", 1, [0, 0], 0).who_has_started(&child(9, 30));
        assert_eq!(told, "bash (8), which has started cargo (9) too");
    }

    #[test]
    fn a_process_may_run_where_its_mask_says() {
        for (status, expected) in [
            ("Name:\tsh\nCpus_allowed:\t2\nCpus_allowed_list:\t1\n", Some(vec![1])),
            ("Cpus_allowed_list:\t0-1,3\n", Some(vec![0, 1, 3])),
            ("Name:\tsh\n", None),
        ] {
            assert_eq!(allowed(status), expected, "{status}");
        }
    }

    #[test]
    fn a_child_that_works_is_seen_and_we_ourselves_are_not() {
        let before = Crowd::of_processes(None);
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let id = child.id();
        let own = |crowd: &Crowd| crowd.0.iter().find(|one| one.id == id).map(|one| one.own_ns);
        let seen = loop {
            let now = Crowd::of_processes(None);
            if own(&now).is_some_and(|ns| 5 * TICK_NS <= ns) {
                break now;
            }
        };
        let hidden = Crowd::of_processes(Some(id));
        let threads = Crowd::of_threads();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(before.largest(&seen, None, true).is_some_and(|largest| 5 * TICK_NS <= largest.ns));
        assert_eq!((own(&before), own(&hidden)), (None, None));
        assert!(own(&threads).is_some());
        assert!([&seen, &threads].iter().all(|crowd| crowd.0.iter().all(|one| one.id != std::process::id())));
    }
}
