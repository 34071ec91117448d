//! Which role runs on which loop, and which loop on which CPU.
//!
//! One loop is one OS thread. Each shard has a loop of its own, which also carries the sockets of
//! trading connections (its ingress) and, on shard 0, the registrar. One more loop carries reader,
//! feed, admin and the public listener. With one allowed CPU and one shard, all of it is on one
//! loop and nothing is pinned.
//!
//! The journal thread never shares a CPU with a loop that spins: a plan that says so is refused.

use super::options::Options;

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

/// Empty turns before a `spin-then-park` loop sleeps: about 50 µs.
pub const SPIN_TURNS: u32 = 400;

/// The most shards; each costs a core and slack in the log.
pub const SHARDS_MAX: u16 = 64;

/// One loop and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPlan {
    /// The thread's name, at most 15 bytes.
    pub name: String,
    /// The CPU it is pinned to.
    pub cpu: Option<usize>,
    /// How it waits.
    pub wait: Wait,
    /// The shard it runs; such a loop also has the sockets of trading connections.
    pub shard: Option<u16>,
    /// Whether it carries reader, feed, admin and the listeners.
    pub reader: bool,
}

/// All loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Loop i carries shard i; the reader's loop is the last one (or the only one).
    pub loops: Vec<LoopPlan>,
    /// How many shards.
    pub shards: u16,
    /// The journal thread's CPU, if it is pinned.
    pub journal_cpu: Option<usize>,
}

impl Topology {
    /// The loop that carries reader, admin and listeners.
    #[must_use]
    pub fn reader_loop(&self) -> usize {
        self.loops.len() - 1
    }

    /// Where threads that can wait belong: those of `allowed` that no loop is pinned to; if there
    /// are none, those without a shard, unless the loop there spins and would leave them no time.
    /// None at all means anywhere.
    #[must_use]
    pub fn cpus_for_waiting(&self, allowed: &[usize]) -> Vec<usize> {
        let without = |is_in_the_way: &dyn Fn(&LoopPlan) -> bool| -> Vec<usize> {
            let taken =
                |cpu: &usize| self.loops.iter().any(|plan| plan.cpu == Some(*cpu) && is_in_the_way(plan));
            allowed.iter().copied().filter(|cpu| !taken(cpu)).collect()
        };
        let beside_loops = without(&|_| true);
        if !beside_loops.is_empty() {
            return beside_loops;
        }
        without(&|plan| plan.shard.is_some() || plan.wait == Wait::Spin)
    }

    /// One line for each thread, for `topology` and for start.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let place = |cpu: Option<usize>| cpu.map_or_else(|| "any cpu".to_owned(), |cpu| format!("cpu {cpu}"));
        let mut lines: Vec<String> = self
            .loops
            .iter()
            .map(|plan| {
                let mut roles = Vec::new();
                if let Some(shard) = plan.shard {
                    roles.push(format!("ingress, shard {shard}"));
                    if shard == 0 {
                        roles.push("registrar".to_owned());
                    }
                }
                if plan.reader {
                    roles.push("reader, feed, admin".to_owned());
                }
                format!("{}: {} ({:?}): {}", plan.name, place(plan.cpu), plan.wait, roles.join(", "))
            })
            .collect();
        lines.push(format!("journal: {} (blocking)", place(self.journal_cpu)));
        lines.push("search: any cpu that no loop is pinned to, else any cpu (lowest priority)".to_owned());
        lines
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

/// Places every role. `dev` never spins.
pub(crate) fn plan(options: &Options, cpus: &[usize], dev: bool) -> Result<Topology, String> {
    if !options.cpu_ingress.is_empty() {
        return Err("cpu.ingress: separate ingress loops are not available; leave it empty, \
                    and every shard's loop has its own sockets"
            .to_owned());
    }
    let manual = match options.cpu_policy.as_str() {
        "auto" | "none" => false,
        "manual" => true,
        other => return Err(format!("cpu.policy: {other} is not one of auto, manual, none")),
    };
    let shards = shard_count(options, cpus, manual)?;
    let merged = cpus.len() == 1 && shards == 1;
    let loops = if merged { 1 } else { usize::from(shards) + 1 };
    let places = if manual {
        named_places(options, cpus, shards, merged)?
    } else if options.cpu_policy == "none" || cpus.len() < loops || merged {
        vec![None; loops]
    } else {
        cpus.iter().take(loops).map(|&cpu| Some(cpu)).collect()
    };
    let waits = waits(options, loops, cpus.len(), dev)?;
    let journal_cpu = match options.cpu_journal.as_str() {
        "auto" => journal_place(cpus, &places, &waits),
        text => Some(cpu("cpu.journal", text, cpus)?),
    };
    let topology = Topology { loops: assemble(&places, &waits, merged), shards, journal_cpu };
    refuse_a_shared_spin(&topology, cpus)?;
    Ok(topology)
}

/// A CPU of its own for the journal thread if there is one, else one that no loop spins on; none
/// if nothing is pinned or nothing spins.
fn journal_place(cpus: &[usize], places: &[Option<usize>], waits: &[Wait]) -> Option<usize> {
    if !places.iter().all(Option::is_some) {
        return None;
    }
    let spins =
        |cpu: usize| places.iter().zip(waits).any(|(place, wait)| *place == Some(cpu) && *wait == Wait::Spin);
    let own = cpus.iter().copied().find(|&cpu| !places.contains(&Some(cpu)));
    let shared = || cpus.iter().copied().find(|&cpu| !spins(cpu));
    own.or_else(|| if waits.contains(&Wait::Spin) { shared() } else { None })
}

fn assemble(places: &[Option<usize>], waits: &[Wait], merged: bool) -> Vec<LoopPlan> {
    let last = places.len() - 1;
    places
        .iter()
        .zip(waits)
        .enumerate()
        .map(|(index, (&cpu, &wait))| {
            let reader = index == last;
            let shard = (!reader || merged).then(|| u16::try_from(index).expect("at most SHARDS_MAX loops"));
            let name = match shard {
                Some(shard) => format!("outcry-shard{shard}"),
                None => "outcry-reader".to_owned(),
            };
            LoopPlan { name, cpu, wait, shard, reader }
        })
        .collect()
}

fn shard_count(options: &Options, cpus: &[usize], manual: bool) -> Result<u16, String> {
    let named = options.cpu_shard_cpus.len();
    let wanted = match options.cpu_shards {
        0 if manual => named.max(1),
        // One CPU for the reader, one for the journal thread, at most four matching: more
        // shards help only venues that one core cannot carry, and those say so.
        0 => cpus.len().saturating_sub(2).clamp(1, 4),
        shards => usize::try_from(shards).unwrap_or(usize::MAX),
    };
    if manual && named != 0 && named != wanted {
        return Err(format!("cpu.shard_cpus: names {named} CPUs for {wanted} shards; name one for each"));
    }
    match u16::try_from(wanted) {
        Ok(shards) if shards <= SHARDS_MAX => Ok(shards),
        _ => Err(format!("cpu.shards: {wanted} is above {SHARDS_MAX}")),
    }
}

fn named_places(
    options: &Options,
    cpus: &[usize],
    shards: u16,
    merged: bool,
) -> Result<Vec<Option<usize>>, String> {
    let mut places: Vec<Option<usize>> = if options.cpu_shard_cpus.is_empty() {
        vec![None; usize::from(shards)]
    } else {
        let named = options.cpu_shard_cpus.iter().map(|text| cpu("cpu.shard_cpus", text, cpus).map(Some));
        named.collect::<Result<_, _>>()?
    };
    if !merged {
        places.push(match options.cpu_reader.as_str() {
            "auto" => cpus.iter().copied().find(|&cpu| !places.contains(&Some(cpu))),
            text => Some(cpu("cpu.reader", text, cpus)?),
        });
    }
    for (index, place) in places.iter().enumerate() {
        if let Some(cpu) = place.filter(|_| places[..index].contains(place)) {
            return Err(format!(
                "cpu.shard_cpus, cpu.reader: {cpu} is named twice; give every loop its own CPU"
            ));
        }
    }
    Ok(places)
}

fn cpu(name: &str, text: &str, cpus: &[usize]) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(cpu) if cpus.contains(&cpu) => Ok(cpu),
        _ => Err(format!("{name}: {text} is not one of the CPUs this process may use: {cpus:?}")),
    }
}

fn waits(options: &Options, loops: usize, cpus: usize, dev: bool) -> Result<Vec<Wait>, String> {
    // Spinning is only for cores that nobody else needs: each loop, the journal thread and the
    // rest of the machine must have one left.
    let spare = cpus >= loops + 2 && !dev;
    let auto = |index: usize| if spare && index + 1 < loops { Wait::SpinThenPark } else { Wait::Park };
    let words: Vec<&str> = options.cpu_wait.split(',').map(str::trim).collect();
    if words.len() != 1 && words.len() != loops {
        return Err(format!("cpu.wait: names {} loops, there are {loops}", words.len()));
    }
    (0..loops)
        .map(|index| match *words.get(index).unwrap_or(&words[0]) {
            _ if dev => Ok(Wait::Park),
            "auto" => Ok(auto(index)),
            // One word for all is about the loops that match; the reader's has time.
            "spin" if words.len() == 1 && loops > 1 && index + 1 == loops => Ok(Wait::Park),
            "spin" => Ok(Wait::Spin),
            "spin-then-park" => Ok(Wait::SpinThenPark),
            "park" => Ok(Wait::Park),
            other => Err(format!("cpu.wait: {other} is not one of auto, spin, spin-then-park, park")),
        })
        .collect()
}

fn refuse_a_shared_spin(topology: &Topology, cpus: &[usize]) -> Result<(), String> {
    let spinning = topology.loops.iter().filter(|plan| plan.wait == Wait::Spin).count();
    if spinning >= cpus.len() {
        return Err(format!(
            "cpu.wait: spin on {spinning} of {} CPUs leaves none to the journal thread; use spin-then-park or park",
            cpus.len()
        ));
    }
    for plan in topology.loops.iter().filter(|plan| plan.wait == Wait::Spin) {
        if let Some(cpu) = plan.cpu.filter(|_| plan.cpu == topology.journal_cpu) {
            return Err(format!("cpu.journal: {cpu} is also where {} spins; give it another CPU", plan.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl Fn(&mut Options), cpus: usize) -> Result<Topology, String> {
        let mut options = Options::default();
        change(&mut options);
        plan(&options, &(0..cpus).collect::<Vec<_>>(), false)
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
        assert_eq!((auto(1), auto(2), auto(4)), (vec![0], vec![1], vec![3]));
        let spinning = |options: &mut Options| {
            options.cpu_policy = "manual".into();
            options.cpu_shard_cpus = vec!["0".into()];
            options.cpu_reader = "1".into();
            options.cpu_wait = "spin".into();
        };
        // Only shards spin then: the reader sleeps and leaves its CPU to others.
        assert_eq!((waiting(&spinning, 2), waiting(&spinning, 3)), (vec![1], vec![2]));
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
            options.cpu_policy = "manual".into();
            options.cpu_shard_cpus = vec!["0".into()];
            options.cpu_reader = "1".into();
            options.cpu_wait = "spin".into();
            options.cpu_journal = "0".into();
        };
        let fault = with(manual, 2).expect_err("refused");
        assert_eq!(fault, "cpu.journal: 0 is also where outcry-shard0 spins; give it another CPU");
    }

    #[test]
    fn a_spinning_loop_leaves_the_other_cpu_to_reader_and_journal() {
        let spin = |options: &mut Options| {
            options.cpu_policy = "manual".into();
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
    fn a_named_cpu_must_be_allowed_and_named_once() {
        let manual = |reader: &'static str| {
            move |options: &mut Options| {
                options.cpu_policy = "manual".into();
                options.cpu_shard_cpus = vec!["0".into()];
                options.cpu_reader = reader.into();
            }
        };
        assert!(with(manual("1"), 2).is_ok());
        assert!(with(manual("0"), 2).expect_err("twice").contains("named twice"));
        assert!(with(manual("7"), 2).expect_err("absent").starts_with("cpu.reader: 7 is not one of"));
    }
}
