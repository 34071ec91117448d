//! Where cards' interrupts are handled, and who moves them.

use super::{Finding, Fix, Scene, Severity};
use crate::topology::list;

pub(super) fn interrupts(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "irq.affinity",
        Severity::Warning,
        "cards' interrupts off shards' cpus",
        "an interrupt takes a shard's CPU for several microseconds, in the middle of a match",
    );
    // The kernel itself places those of disks' queues and refuses others: each comes to the CPU that asked the disk, or near
    // it, and shards ask for nothing.
    let movable: Vec<_> =
        scene.machine.interrupts.iter().filter(|interrupt| !interrupt.is_of_disk()).collect();
    if movable.is_empty() {
        return finding.unreadable("no interrupts of network cards");
    }
    let hot = scene.needs.hot();
    if hot.is_empty() {
        return finding.told("nothing pinned");
    }
    let on_hot = |cpus: &[usize]| cpus.iter().any(|cpu| hot.contains(cpu));
    let wrong: Vec<_> = movable.iter().filter(|interrupt| on_hot(&interrupt.cpus)).collect();
    let mut others: Vec<usize> =
        scene.machine.cpus.iter().map(|cpu| cpu.id).filter(|id| !hot.contains(id)).collect();
    // The second thread of a hot core is better left alone as well, if there are other cores.
    let beside_hot = |id: &usize| {
        scene.machine.cpu(*id).is_some_and(|cpu| cpu.threads.iter().any(|thread| hot.contains(thread)))
    };
    if !others.iter().all(beside_hot) {
        others.retain(|id| !beside_hot(id));
    }
    let mut fixes: Vec<Fix> = wrong
        .iter()
        .map(|interrupt| Fix::Set {
            path: format!("/proc/irq/{}/smp_affinity_list", interrupt.number),
            value: list::text(&others),
        })
        .collect();
    if others.is_empty() {
        fixes = vec![Fix::Advice("every CPU carries a shard; leave one to interrupts".into())];
    }
    let current = match wrong.as_slice() {
        [] => format!("{} elsewhere", movable.len()),
        [one] => format!("{} on cpu {}", one.name, list::text(&one.cpus)),
        [one, rest @ ..] => format!("{} on cpu {}, {} more", one.name, list::text(&one.cpus), rest.len()),
    };
    finding.judged(wrong.is_empty(), current).mended_by(fixes)
}

pub(super) fn irqbalance(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "irq.irqbalance",
        Severity::Warning,
        "not running",
        "it moves interrupts back onto shards' CPUs",
    );
    let processes: Vec<String> = scene
        .files
        .names("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    if processes.is_empty() {
        return finding.unreadable("no processes in /proc");
    }
    let is_it =
        |id: &String| scene.files.line(&format!("/proc/{id}/comm")).is_some_and(|name| name == "irqbalance");
    let runs = processes.iter().any(is_it);
    finding
        .judged(!runs || scene.needs.pinned.is_empty(), if runs { "running" } else { "not running" })
        .mended_by(vec![Fix::Stop("irqbalance")])
}
