//! What this process's own threads use of each CPU: of a machine that it runs on, only the rest is others'.

use rustix::time::{ClockId, clock_gettime};

use super::crowd::{numbers, ran_ns};
use crate::topology::checks::OwnTime;
use crate::topology::list;

/// A look at the CPU time of this process and of those of its threads that have one CPU.
#[derive(Debug)]
pub(crate) struct OwnThreads {
    /// Of all its threads together, ended ones too.
    all_ns: u64,
    pinned: Vec<OneThread>,
}

#[derive(Clone, Copy, Debug)]
struct OneThread {
    id: u32,
    cpu: usize,
    ns: u64,
}

impl OwnThreads {
    pub(crate) fn now() -> Self {
        let pinned = numbers("/proc/self/task").filter_map(OneThread::pinned).collect();
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let parts = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
        Self { all_ns: parts[0] * 1_000_000_000 + parts[1], pinned }
    }

    /// What they used until `later`. A thread that was not there at this look began at nothing.
    pub(crate) fn until(&self, later: &Self) -> OwnTime {
        let then_ns =
            |now: &OneThread| self.pinned.iter().find(|then| then.id == now.id).map_or(0, |then| then.ns);
        let used = later.pinned.iter().map(|now| (now.cpu, now.ns.saturating_sub(then_ns(now))));
        let pinned: Vec<(usize, u64)> = used.collect();
        let all_ns = later.all_ns.saturating_sub(self.all_ns);
        let wandering_ns = all_ns.saturating_sub(pinned.iter().map(|(_, ns)| ns).sum());
        OwnTime { pinned, wandering_ns }
    }
}

impl OneThread {
    /// None if it may run on several CPUs, has ended meanwhile, or the kernel does not say how long it ran.
    fn pinned(id: u32) -> Option<Self> {
        let folder = format!("/proc/self/task/{id}");
        let status = std::fs::read_to_string(format!("{folder}/status")).ok()?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let [cpu] = list::parse(allowed)?[..] else { return None };
        Some(Self { id, cpu, ns: ran_ns(folder.as_ref())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_used_is_told_by_cpu_and_the_rest_may_have_run_anywhere() {
        let one = |id, cpu, ns| OneThread { id, cpu, ns };
        let look = |all_ns, pinned: &[OneThread]| OwnThreads { all_ns, pinned: pinned.to_vec() };
        let before = look(1_000, &[one(7, 0, 500), one(8, 1, 100)]);
        for (later, pinned, wandering_ns) in [
            (look(1_000, &[one(7, 0, 500), one(8, 1, 100)]), vec![(0, 0), (1, 0)], 0),
            (look(1_090, &[one(7, 0, 560), one(8, 1, 110)]), vec![(0, 60), (1, 10)], 20),
            // One that began, and one that ended or is no longer pinned.
            (look(1_090, &[one(7, 0, 560), one(9, 1, 5)]), vec![(0, 60), (1, 5)], 25),
            // More time passed between threads and process at the first look than at the second.
            (look(1_050, &[one(7, 0, 560)]), vec![(0, 60)], 0),
        ] {
            assert_eq!(before.until(&later), OwnTime { pinned, wandering_ns }, "{later:?}");
        }
    }

    #[test]
    fn a_thread_that_works_is_seen_to() {
        let before = OwnThreads::now();
        let used_ns = || {
            let used = before.until(&OwnThreads::now());
            used.wandering_ns + used.pinned.iter().map(|(_, ns)| ns).sum::<u64>()
        };
        // To look is work, so that this ends.
        while used_ns() == 0 {}
    }
}
