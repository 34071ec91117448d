//! Who keeps off the CPU of a loop that spins, which orders wait for, and how that is refused.

use super::topology::{Topology, Wait};
use crate::topology::machine::Machine;
use crate::topology::placement;

/// If every loop but the last `followers`, who follow the log, has a CPU, gives those of them that have none, and do
/// not spin, the first one on which no loop spins: elsewhere they would take turns with a loop that spins, and orders
/// would wait for them.
pub(super) fn keep_followers_off_a_spin(
    places: &mut [Option<usize>],
    order: &[usize],
    waits: &[Wait],
    followers: usize,
) {
    let trading = places.len() - followers.min(places.len());
    if trading == 0 || places[..trading].contains(&None) || !waits.contains(&Wait::Spin) {
        return;
    }
    let spins =
        |cpu| places.iter().zip(waits).any(|(&place, wait)| place == Some(cpu) && *wait == Wait::Spin);
    let quiet = order.iter().copied().find(|&cpu| !spins(cpu));
    for (place, wait) in places.iter_mut().zip(waits).skip(trading) {
        if *wait != Wait::Spin {
            *place = place.or(quiet);
        }
    }
}

/// A CPU of its own for the journal thread if there is one, else one that no loop spins on; none
/// if nothing is pinned or nothing spins.
pub(super) fn journal_place(
    machine: &Machine,
    order: &[usize],
    places: &[Option<usize>],
    waits: &[Wait],
) -> Option<usize> {
    let taken: Vec<usize> = places.iter().copied().collect::<Option<_>>()?;
    let spins =
        |cpu: usize| taken.iter().zip(waits).any(|(&place, wait)| place == cpu && *wait == Wait::Spin);
    let shared = || machine.allowed.iter().copied().find(|&cpu| !spins(cpu));
    let own = placement::free_cpu(machine, order, &taken);
    own.or_else(|| if waits.contains(&Wait::Spin) { shared() } else { None })
}

/// A reader, or a feed of its own, that spins and has no CPU may run on a shard's, and orders would wait for it.
pub(super) fn refuse_a_homeless_spin(role: &str, place: Option<usize>, wait: Wait) -> Result<(), String> {
    if (place, wait) != (None, Wait::Spin) {
        return Ok(());
    }
    Err(format!(
        "cpu.wait: {role}=spin wants a CPU of its own, and none is left; give it one by cpu.{role}, or say {role}=park"
    ))
}

pub(super) fn refuse_a_shared_spin(topology: &Topology, cpus: &[usize]) -> Result<(), String> {
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

/// How the journal's thread waits: as it is `said`, else as cores to spare allow. A thread that spins would take its
/// CPU from whatever else runs there, so it has to have one of its own.
pub(super) fn journal_wait(
    said: Option<Wait>,
    topology: &Topology,
    may_look_on: bool,
) -> Result<Wait, String> {
    let beside = topology.loops.iter().find(|plan| plan.cpu.is_none() || plan.cpu == topology.journal_cpu);
    let shares = match (topology.journal_cpu, beside) {
        (None, _) => "it is not pinned".to_owned(),
        (Some(cpu), Some(plan)) => format!("CPU {cpu} is also where {} may run", plan.name),
        (Some(_), None) if may_look_on => return Ok(said.unwrap_or(Wait::SpinThenPark)),
        (Some(_), None) => return Ok(said.unwrap_or(Wait::Park)),
    };
    match said {
        None | Some(Wait::Park) => Ok(Wait::Park),
        Some(wait) => Err(format!(
            "cpu.wait: journal={} wants a CPU of its own, and {shares}; give it one by cpu.journal, or say \
             journal=park",
            wait.text()
        )),
    }
}
