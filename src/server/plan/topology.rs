//! Which role runs on which loop, and which loop on which CPU.
//!
//! One loop is one OS thread. Each shard has a loop of its own, which also carries the sockets of
//! trading connections (its ingress) and, on shard 0, the registrar. With `cpu.ingress` those sockets,
//! and parsing, limits, HMAC and signatures with them, are on loops of their own, and a shard's loop does
//! nothing but match. One more loop carries reader, admin and the public listener, and the streams (the feed), unless
//! `cpu.feed` gives them a loop of their own, which follows the log by itself. With one allowed CPU and one shard, all
//! of it is on one loop and nothing is pinned. Which CPU is whose, and why, is `topology::placement`'s to say.
//!
//! The journal thread never shares a CPU with a loop that spins: a plan that says so is refused.

use std::ops::Range;

use super::cpus::{self, cpu};
use super::durability;
use super::options::Options;
use super::spins;
use super::waits::{self, Loops, Waits};
use crate::journal::Durability;
use crate::topology::list;
use crate::topology::machine::Machine;
use crate::topology::placement::{self, Policy, Row, SPARE_CORES};

/// How a loop waits when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Never sleeps; burns its CPU.
    Spin,
    /// Spins for a while ([`SPIN_TURNS`]) after the last work, then sleeps.
    SpinThenPark,
    /// Sleeps at once.
    Park,
}

impl Wait {
    /// Every way to wait.
    pub(crate) const ALL: [Self; 3] = [Self::Spin, Self::SpinThenPark, Self::Park];

    /// Its word.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::SpinThenPark => "spin-then-park",
            Self::Park => "park",
        }
    }
}

/// Empty turns before a `spin-then-park` loop sleeps: about 50 µs.
pub const SPIN_TURNS: u32 = 400;

/// One loop and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPlan {
    /// The thread's name, at most 15 bytes.
    pub name: String,
    /// The CPU it is pinned to.
    pub cpu: Option<usize>,
    /// How it waits.
    pub wait: Wait,
    /// The shard it runs.
    pub shard: Option<u16>,
    /// Whether it has sockets of trading connections: every shard's loop, unless there are loops for
    /// that alone.
    pub ingress: bool,
    /// Whether it carries reader, admin and the listeners.
    pub reader: bool,
    /// Whether it carries the streams: the reader's, unless there is a loop for that alone.
    pub feed: bool,
}

impl LoopPlan {
    fn roles(&self) -> String {
        let mut roles = Vec::new();
        if self.ingress {
            roles.push("ingress".to_owned());
        }
        if let Some(shard) = self.shard {
            roles.push(format!("shard {shard}"));
            if shard == 0 {
                roles.push("registrar".to_owned());
            }
        }
        if self.reader {
            roles.push("reader".to_owned());
        }
        if self.feed {
            roles.push("feed".to_owned());
        }
        if self.reader {
            roles.push("admin".to_owned());
        }
        roles.join(", ")
    }
}

/// All loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Loop i carries shard i; after them come loops for ingress alone, if any, and one for the feed alone, if it is
    /// apart; the reader's loop is the last one (or the only one).
    pub loops: Vec<LoopPlan>,
    /// How many shards.
    pub shards: u16,
    /// The journal thread's CPU, if it is pinned.
    pub journal_cpu: Option<usize>,
    /// How the journal thread waits while there is nothing to write.
    pub journal_wait: Wait,
    /// How CPUs were chosen.
    pub policy: Policy,
    /// The CPUs that are not isolated and on whose core no loop that trades is pinned.
    pub off_trading: Vec<usize>,
    /// Every thread with its place and the reason, for people.
    pub rows: Vec<Row>,
}

impl Topology {
    /// The loop that carries reader, admin and listeners.
    #[must_use]
    pub fn reader_loop(&self) -> usize {
        self.loops.len() - 1
    }

    /// The loop that carries the streams.
    #[must_use]
    pub fn feed_loop(&self) -> usize {
        self.loops.iter().position(|plan| plan.feed).expect("somebody has the streams")
    }

    /// The loops that follow the log: the feed's, if it is apart, and the reader's.
    #[must_use]
    pub fn followers(&self) -> Range<usize> {
        self.feed_loop()..self.loops.len()
    }

    /// How many loops take part in trading: shards' and ingress loops, which come first.
    #[must_use]
    pub fn trading_loops(&self) -> usize {
        self.loops.iter().filter(|plan| plan.shard.is_some() || plan.ingress).count()
    }

    /// The loops that trading connections are dealt out to.
    #[must_use]
    pub fn ingress_loops(&self) -> Range<usize> {
        let first = self.loops.iter().position(|plan| plan.ingress).expect("somebody has sockets");
        first..self.trading_loops()
    }

    /// Whether the journal's thread may be real-time: it sleeps whenever it has nothing to do, and has its CPU. See
    /// `threads::thread::come_first`.
    #[must_use]
    pub fn journal_may_be_real_time(&self) -> bool {
        self.journal_cpu.is_some() && self.journal_wait == Wait::Park
    }

    /// CPUs for threads that can wait, none on which the journal's thread spins: those of `allowed` that no loop is
    /// pinned to, without those beside trading or isolated if others are left; if every one has a loop, those without
    /// trading or a spinning loop; if there are none of these either and a loop spins, those on which none does. None at
    /// all means anywhere.
    #[must_use]
    pub fn cpus_for_waiting(&self, allowed: &[usize]) -> Vec<usize> {
        // At the lowest priority nothing is left of a CPU on which the journal's thread spins.
        let spun = self.journal_cpu.filter(|_| self.journal_wait == Wait::Spin);
        let without = |is_in_the_way: &dyn Fn(&LoopPlan) -> bool| -> Vec<usize> {
            let taken =
                |cpu: &usize| self.loops.iter().any(|plan| plan.cpu == Some(*cpu) && is_in_the_way(plan));
            allowed.iter().copied().filter(|cpu| !taken(cpu) && Some(*cpu) != spun).collect()
        };
        let mut beside_loops = without(&|_| true);
        if !beside_loops.is_empty() {
            if beside_loops.iter().any(|cpu| self.off_trading.contains(cpu)) {
                beside_loops.retain(|cpu| self.off_trading.contains(cpu));
            }
            return beside_loops;
        }
        let beside_the_reader =
            without(&|plan| plan.shard.is_some() || plan.ingress || plan.wait == Wait::Spin);
        if !beside_the_reader.is_empty() || self.loops.iter().all(|plan| plan.wait != Wait::Spin) {
            return beside_the_reader;
        }
        without(&|plan| plan.wait == Wait::Spin)
    }

    /// One line for each thread, for the start and the operator's listener.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |row: &Row| {
            let mut place = row.cpu.map_or_else(|| "any cpu".to_owned(), |cpu| format!("cpu {cpu}"));
            let mut facts = Vec::new();
            if let Some(node) = row.node {
                facts.push(format!("node {node}"));
            }
            if !row.siblings.is_empty() {
                facts.push(format!("sibling {}", list::text(&row.siblings)));
            }
            if !row.interrupts.is_empty() {
                facts.push(format!("interrupts of {}", row.interrupts.join(", ")));
            }
            if !facts.is_empty() {
                place = format!("{place} ({})", facts.join(", "));
            }
            format!("{}: {place}, {}: {}; {}", row.thread, row.wait, row.roles, row.why)
        };
        self.rows.iter().map(line).collect()
    }
}

/// The CPUs this process may run on.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return vec![0];
    };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Places every role on `machine`. In `dev` nothing spins unless it is told to.
pub(crate) fn plan(options: &Options, machine: &Machine, dev: bool) -> Result<Topology, String> {
    let allowed = machine.allowed.as_slice();
    let policy = cpus::policy(options, allowed)?;
    let ingress = cpus::ingress_count(options, policy)?;
    let feed = cpus::has_feed_apart(options);
    let shards = cpus::shard_count(options, machine, policy, ingress, usize::from(feed))?;
    let merged = allowed.len() == 1 && shards == 1 && ingress == 0 && !feed;
    let count = if merged { 1 } else { usize::from(shards) + ingress + usize::from(feed) + 1 };
    let named_journal = match options.cpu_journal.as_str() {
        "auto" => None,
        text => Some(cpu("cpu.journal", text, "auto, or ", allowed)?),
    };
    let mut order = placement::order(machine, policy, count);
    if let Some(cpu) = named_journal {
        placement::leave_to_the_journal(machine, policy, &mut order, cpu);
    }
    let mut places = match policy {
        Policy::Explicit => cpus::named_places(options, &order, shards, merged)?,
        Policy::Unpinned => vec![None; count],
        _ if allowed.len() < count || merged => vec![None; count],
        _ => order.iter().take(count).map(|&cpu| Some(cpu)).collect(),
    };
    // A loop that spins uses up a quota in which it has done nothing.
    let has_spare_cores = !dev && count + SPARE_CORES <= machine.cores() && machine.quota_milli.is_none();
    let loops = Loops { count, ingress, feed, has_spare_cores };
    let Waits { loops: waits, journal: said } = waits::parse(&options.cpu_wait, loops)?;
    spins::keep_followers_off_a_spin(&mut places, &order, &waits, 1 + usize::from(feed));
    if policy == Policy::Explicit && !merged {
        let roles = ["reader", "feed"].into_iter().take(1 + usize::from(feed));
        for (role, (place, wait)) in roles.zip(places.iter().zip(&waits).rev()) {
            spins::refuse_a_homeless_spin(role, *place, *wait)?;
        }
    }
    let journal_cpu = named_journal.or_else(|| spins::journal_place(machine, &order, &places, &waits));
    let loops = assemble(&places, &waits, shards, feed);
    let off_trading = cpus::off_trading(machine, &loops);
    let journal_wait = Wait::Park;
    let mut topology =
        Topology { loops, shards, journal_cpu, journal_wait, policy, off_trading, rows: Vec::new() };
    spins::refuse_a_shared_spin(&topology, allowed)?;
    let answers_wait = durability(options)? == Durability::Durable;
    topology.journal_wait = spins::journal_wait(said, &topology, has_spare_cores && answers_wait)?;
    topology.rows = rows(machine, &topology, options);
    Ok(topology)
}

fn assemble(places: &[Option<usize>], waits: &[Wait], shards: u16, feed_is_apart: bool) -> Vec<LoopPlan> {
    let last = places.len() - 1;
    let feed_at = last - usize::from(feed_is_apart);
    let ingress_is_apart = usize::from(shards) < feed_at;
    places
        .iter()
        .zip(waits)
        .enumerate()
        .map(|(index, (&cpu, &wait))| {
            let (reader, feed) = (index == last, index == feed_at);
            let shard = u16::try_from(index).ok().filter(|&number| number < shards);
            let name = match shard {
                Some(shard) => format!("outcry-shard{shard}"),
                None if reader => "outcry-reader".to_owned(),
                None if feed => "outcry-feed".to_owned(),
                None => format!("outcry-ingress{}", index - usize::from(shards)),
            };
            let ingress = if ingress_is_apart { shard.is_none() && index < feed_at } else { shard.is_some() };
            LoopPlan { name, cpu, wait, shard, ingress, reader, feed }
        })
        .collect()
}

/// Every thread with its place and the reason.
fn rows(machine: &Machine, topology: &Topology, options: &Options) -> Vec<Row> {
    let pinned: Vec<(String, usize)> =
        topology.loops.iter().filter_map(|plan| Some((plan.name.clone(), plan.cpu?))).collect();
    let mut rows = Vec::new();
    for plan in &topology.loops {
        let others: Vec<_> = pinned.iter().filter(|(name, _)| *name != plan.name).cloned().collect();
        let mut row = Row::on(machine, &plan.name, &plan.roles(), plan.cpu, plan.wait.text());
        let why = placement::why(machine, topology.policy, &row, &others);
        let is_named = topology.policy == Policy::Explicit && cpus::is_named(options, plan);
        row.why = if is_named { format!("named; {why}") } else { why };
        rows.push(row);
    }
    let mut journal = Row::on(
        machine,
        "journal",
        "makes the log durable",
        topology.journal_cpu,
        topology.journal_wait.text(),
    );
    let core = |cpu: usize| machine.cpu(cpu).map(crate::topology::machine::Cpu::core);
    journal.why = match journal.cpu {
        None if pinned.is_empty() => "nothing is pinned".to_owned(),
        None => "no CPU is left; it sleeps most of the time, and no loop there spins".to_owned(),
        Some(_) if options.cpu_journal != "auto" => "named".to_owned(),
        Some(cpu) => match pinned.iter().find(|(_, other)| core(*other) == core(cpu)) {
            Some((name, _)) => format!("shares its core with {name}: no other is left"),
            None => "a core where no loop runs".to_owned(),
        },
    };
    rows.push(journal);
    let mut others = Row::on(machine, "search, snapshots", "index and files", None, "blocks");
    "lowest priority, beside the pinned loops where there is room".clone_into(&mut others.why);
    rows.push(others);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl Fn(&mut Options), cpus: usize) -> Result<Topology, String> {
        let mut options = Options::default();
        change(&mut options);
        plan(&options, &Machine::plain(&(0..cpus).collect::<Vec<_>>()), false)
    }

    #[test]
    fn one_cpu_carries_every_role_on_one_loop_and_pins_nothing() {
        let topology = with(|_| (), 1).expect("a topology");
        assert_eq!(topology.loops.len(), 1);
        let only = &topology.loops[0];
        assert_eq!((only.cpu, only.shard, only.reader, only.wait), (None, Some(0), true, Wait::Park));
    }

    #[test]
    fn two_cpus_carry_a_shard_and_a_reader_and_nothing_spins() {
        let topology = with(|_| (), 2).expect("a topology");
        assert_eq!(topology.loops.iter().map(|plan| plan.cpu).collect::<Vec<_>>(), [Some(0), Some(1)]);
        assert!(topology.loops.iter().all(|plan| plan.wait == Wait::Park));
        assert_eq!((topology.loops[0].shard, topology.loops[0].reader), (Some(0), false));
        assert_eq!((topology.loops[1].shard, topology.loops[1].reader), (None, true));
    }

    #[test]
    fn what_can_wait_runs_beside_the_pinned_loops_and_never_on_a_shard_s_cpu() {
        let waiting = |change: &dyn Fn(&mut Options), cpus: usize| {
            let allowed: Vec<usize> = (0..cpus).collect();
            with(change, cpus).expect("a topology").cpus_for_waiting(&allowed)
        };
        let auto = |cpus| waiting(&|_| (), cpus);
        assert_eq!((auto(1), auto(2), auto(4)), (vec![0], vec![1], vec![0, 3]));
        let spinning = |options: &mut Options| {
            options.cpu_policy = "explicit".into();
            options.cpu_shard_cpus = vec!["0".into()];
            options.cpu_reader = "1".into();
            options.cpu_wait = "spin".into();
        };
        // Only shards spin then: the reader sleeps and leaves its CPU to others.
        assert_eq!((waiting(&spinning, 2), waiting(&spinning, 3)), (vec![1], vec![2]));
        // Nor does the journal's thread leave anything of a CPU on which it spins: the reader does.
        let journal = |options: &mut Options| {
            options.cpu_shards = 2;
            options.cpu_wait = "journal=spin".into();
        };
        assert_eq!(waiting(&journal, 4), [2]);
    }

    #[test]
    fn more_shards_than_cpus_run_unpinned() {
        let topology = with(|options| options.cpu_shards = 4, 2).expect("a topology");
        assert_eq!(topology.loops.len(), 5);
        assert!(topology.loops.iter().all(|plan| plan.cpu.is_none()));
    }

    #[test]
    fn the_journal_thread_never_shares_a_core_with_a_spinning_loop() {
        let fault = with(|options| options.cpu_wait = "spin".into(), 1).expect_err("refused");
        assert!(fault.starts_with("cpu.wait: spin on 1 of 1 CPUs"), "{fault}");
        let manual = |options: &mut Options| {
            options.cpu_policy = "explicit".into();
            options.cpu_shard_cpus = vec!["0".into()];
            options.cpu_reader = "1".into();
            options.cpu_wait = "spin".into();
            options.cpu_journal = "0".into();
        };
        let fault = with(manual, 2).expect_err("refused");
        assert_eq!(fault, "cpu.journal: 0 is also where outcry-shard0 spins; give it another CPU");
    }

    #[test]
    fn a_journal_thread_that_looks_on_has_a_cpu_of_its_own() {
        let looks_on = |cpus, policy: &str| {
            let change = |options: &mut Options| {
                options.cpu_wait = "journal=spin-then-park".into();
                options.cpu_policy = policy.into();
            };
            with(change, cpus)
        };
        let four = looks_on(4, "auto").expect("a topology");
        assert!(four.loops.iter().all(|plan| plan.cpu != four.journal_cpu), "{four:?}");
        for (cpus, durability, expected) in
            [(2, "durable", Wait::Park), (4, "durable", Wait::SpinThenPark), (4, "committed", Wait::Park)]
        {
            let left_alone = with(|options| options.journal_durability = durability.into(), cpus);
            assert_eq!(left_alone.expect("a topology").journal_wait, expected, "{cpus} CPUs, {durability}");
        }
        assert_eq!(
            four.rows.iter().find(|row| row.thread == "journal").expect("a row").wait,
            "spin-then-park"
        );
        let wants = "cpu.wait: journal=spin-then-park wants a CPU of its own, and";
        let instead = "give it one by cpu.journal, or say journal=park";
        for (cpus, policy) in [(1, "auto"), (2, "auto"), (4, "unpinned")] {
            let fault = looks_on(cpus, policy).expect_err("refused");
            assert_eq!(fault, format!("{wants} it is not pinned; {instead}"), "{cpus} CPUs, {policy}");
        }
        let shared = |options: &mut Options| {
            options.cpu_policy = "explicit".into();
            options.cpu_shard_cpus = vec!["0".into()];
            options.cpu_reader = "1".into();
            options.cpu_journal = "1".into();
            options.cpu_wait = "journal=spin".into();
        };
        let fault = with(shared, 3).expect_err("refused");
        assert!(fault.contains("CPU 1 is also where outcry-reader may run"), "{fault}");
    }

    #[test]
    fn a_spinning_loop_leaves_the_other_cpu_to_reader_and_journal() {
        let spin = |options: &mut Options| {
            options.cpu_policy = "explicit".into();
            options.cpu_shard_cpus = vec!["0".into()];
            options.cpu_wait = "spin".into();
        };
        let topology = with(spin, 2).expect("a topology");
        assert_eq!(topology.loops.iter().map(|plan| plan.cpu).collect::<Vec<_>>(), [Some(0), Some(1)]);
        assert_eq!((topology.loops[0].wait, topology.loops[1].wait), (Wait::Spin, Wait::Park));
        assert_eq!(topology.journal_cpu, Some(1));
        assert_eq!(with(|_| (), 2).expect("a topology").journal_cpu, None);
        assert_eq!(with(|_| (), 4).expect("a topology").journal_cpu, Some(3));
    }

    #[test]
    fn who_has_no_cpu_of_its_own_keeps_off_a_loop_that_spins() {
        // Two CPUs, the shard on 0 and sockets on 1: how loops wait; the CPUs of reader, journal and what can wait.
        for (wait, reader, journal, waiting) in [
            ("shard=spin,ingress=park", Some(1), Some(1), vec![1]),
            ("shard=park,ingress=spin", Some(0), Some(0), vec![0]),
            ("park", None, None, vec![]),
        ] {
            let topology = with(
                |options| {
                    options.cpu_policy = "explicit".into();
                    options.cpu_shard_cpus = vec!["0".into()];
                    options.cpu_ingress = vec!["1".into()];
                    options.cpu_wait = wait.into();
                },
                2,
            )
            .expect(wait);
            let cpus: Vec<_> = topology.loops.iter().map(|plan| plan.cpu).collect();
            assert_eq!(cpus, [Some(0), Some(1), reader], "{wait}");
            assert_eq!(
                (topology.journal_cpu, topology.cpus_for_waiting(&[0, 1])),
                (journal, waiting),
                "{wait}"
            );
            let why = &topology.rows[2].why;
            assert_eq!(why.contains("shares this one with outcry-"), reader.is_some(), "{why}");
        }
    }

    #[test]
    fn the_feed_shares_the_readers_loop_or_has_one_before_it() {
        // Policy, shards' CPUs, the feed, the reader's CPU, of how many: the loops with their CPUs.
        for (policy, shards, feed, reader, cpus, expected) in [
            ("auto", "", "auto", "auto", 4, "shard0@1 reader+feed@2"),
            ("auto", "", "own", "auto", 8, "shard0@1 shard1@2 shard2@3 shard3@4 feed@5 reader@6"),
            ("auto", "", "own", "auto", 4, "shard0@0 feed@1 reader@2"),
            ("auto", "", "own", "auto", 2, "shard0 feed reader"),
            ("auto", "", "own", "auto", 1, "shard0 feed reader"),
            ("unpinned", "", "own", "auto", 4, "shard0 feed reader"),
            ("explicit", "0", "2", "1", 3, "shard0@0 feed@2 reader@1"),
            ("explicit", "0", "own", "1", 2, "shard0@0 feed reader@1"),
            ("explicit", "0", "own", "1", 3, "shard0@0 feed@2 reader@1"),
            ("explicit", "0", "2", "auto", 3, "shard0@0 feed@2 reader@1"),
            ("explicit", "0", "1", "1", 3, "shard0@0 reader+feed@1"),
        ] {
            let set = |options: &mut Options| {
                options.cpu_policy = policy.into();
                options.cpu_shard_cpus = shards.split_terminator(',').map(str::to_owned).collect();
                (options.cpu_feed, options.cpu_reader) = (feed.into(), reader.into());
            };
            let topology = with(set, cpus).unwrap_or_else(|fault| panic!("{policy}, {feed}: {fault}"));
            let shown = topology.loops.iter().map(|plan| {
                let shared = if plan.reader && plan.feed { "+feed" } else { "" };
                let place = plan.cpu.map_or_else(String::new, |cpu| format!("@{cpu}"));
                format!("{}{shared}{place}", plan.name.replace("outcry-", ""))
            });
            assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{policy}, {feed}, {cpus} CPUs");
            let roles: Vec<&str> = topology.rows.iter().map(|row| row.roles.as_str()).collect();
            let apart = topology.feed_loop() != topology.reader_loop();
            assert_eq!(roles.contains(&"feed"), apart, "{roles:?}");
            assert_eq!(roles.contains(&"reader, feed, admin"), !apart, "{roles:?}");
            assert_eq!(topology.trading_loops() + topology.followers().len(), topology.loops.len());
        }
        let refused = |policy: &str, feed: &str| {
            let set = |options: &mut Options| {
                (options.cpu_policy, options.cpu_feed) = (policy.into(), feed.into());
            };
            with(set, 4).expect_err("refused")
        };
        assert_eq!(
            refused("auto", "2"),
            "cpu.feed: names CPUs, but cpu.policy is auto; say cpu.policy=explicit, or cpu.feed=own"
        );
        assert_eq!(
            refused("explicit", "alone"),
            "cpu.feed: got \"alone\"; allowed: auto, own, or the CPUs this process may use: [0, 1, 2, 3]"
        );
    }

    #[test]
    fn a_feed_of_its_own_keeps_off_named_cpus_and_off_a_spin() {
        let plan = |cpus, journal: &str| {
            let set = |options: &mut Options| {
                (options.cpu_policy, options.cpu_feed) = ("explicit".into(), "own".into());
                (options.cpu_shard_cpus, options.cpu_reader) = (vec!["0".into()], "1".into());
                (options.cpu_journal, options.cpu_wait) = (journal.into(), "shard=spin".into());
            };
            let topology = with(set, cpus).expect("a topology");
            (topology.loops.iter().map(|plan| plan.cpu).collect::<Vec<_>>(), topology.journal_cpu)
        };
        assert_eq!(plan(4, "2"), (vec![Some(0), Some(3), Some(1)], Some(2)));
        // No CPU is left to it or to the journal: both share the reader's, and not the one that spins.
        assert_eq!(plan(2, "auto"), (vec![Some(0), Some(1), Some(1)], Some(1)));
        let spins = |options: &mut Options| {
            (options.cpu_policy, options.cpu_feed) = ("explicit".into(), "own".into());
            (options.cpu_shard_cpus, options.cpu_reader) = (vec!["0".into()], "1".into());
            options.cpu_wait = "feed=spin".into();
        };
        assert!(with(spins, 3).is_ok());
        assert_eq!(
            with(spins, 2).expect_err("refused"),
            "cpu.wait: feed=spin wants a CPU of its own, and none is left; give it one by cpu.feed, or say feed=park"
        );
    }

    #[test]
    fn a_named_cpu_must_be_allowed_and_named_once() {
        let manual = |reader: &'static str| {
            move |options: &mut Options| {
                options.cpu_policy = "explicit".into();
                options.cpu_shard_cpus = vec!["0".into()];
                options.cpu_reader = reader.into();
            }
        };
        assert!(with(manual("1"), 2).is_ok());
        assert!(with(manual("0"), 2).expect_err("twice").contains("named twice"));
        assert!(with(manual("7"), 2).expect_err("absent").starts_with("cpu.reader: got \"7\"; allowed: "));
    }
}
