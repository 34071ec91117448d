//! How much others had of the CPUs that were measured on, by the kernel's own accounts. What a thread of the server that
//! may run elsewhere had there counts as if it had run on these CPUs.

use std::time::Instant;

use outcry::server::machine::crowd::{Crowd, Largest, TICK_NS};
use outcry::topology::checks::Named;
use outcry::topology::valid;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::machine;

/// CPU time since boot, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    /// Of the CPUs that are measured on, without idle time and waiting for disks; also without interrupts where the
    /// kernel's threads are counted apart.
    busy: u64,
    /// The part of it that the hypervisor took.
    stolen: u64,
    /// Of all threads of this process and the server.
    ours: u64,
    /// Of all threads of the server.
    server: u64,
    /// Of the kernel's own threads, where they are counted apart.
    kernel: u64,
}

/// How the kernel's own threads and interrupts count, which nobody here started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelThreads {
    /// As others: what was measured writes to no disk, so they work for somebody else.
    Others,
    /// Apart: what was measured writes to a disk, and they do that writing. A thread that an interrupt stops is charged
    /// with it all the same.
    Apart,
}

/// Measures CPU time from a moment on.
pub(crate) struct Watch {
    server: u32,
    /// The CPUs that are measured on.
    cpus: Vec<usize>,
    kernel: KernelThreads,
    crowd: Crowd,
    begin: Instant,
    spent: Spent,
}

/// What was spent between two moments, in CPUs: 1.0 is one CPU all of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// Of the hypervisor, for other guests.
    pub(crate) stolen: f64,
    /// Of processes that are neither the server nor this one.
    pub(crate) others: f64,
    /// Of the server; for a benchmark, of everything that it started.
    pub(crate) server: f64,
    /// Of the kernel's threads where they are counted apart from others, because they write to the disk
    /// for a benchmark, or for a server with its data there. 0 where they count as others.
    #[serde(default)]
    pub(crate) kernel: f64,
}

/// The process or thread that had most of what others had during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Other {
    /// Its name and number.
    pub(crate) who: String,
    /// Whether it is one of the kernel's own threads.
    pub(crate) is_kernels: bool,
    /// How many CPUs it had: 1.0 is one all of the time.
    pub(crate) cpus: f64,
    /// The CPUs on which it may run; none if not known, as of what has ended or in records from before it
    /// was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) may_have: Option<Vec<usize>>,
}

/// Which of the others had most: of all CPUs together, and of those that may have run on a given CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    pub(crate) largest: Option<Other>,
    pub(crate) of_cpus: Vec<(usize, Other)>,
}

impl Other {
    /// The name without the amount.
    pub(crate) fn named(&self) -> Named {
        Named { who: self.who.clone(), is_kernels: self.is_kernels }
    }
}

/// The part of the measured CPUs that others may have had.
pub(crate) const LOST_MAX: f64 = valid::SHARE_PERCENT_MAX as f64 / 100.0;

/// How long the starter of a process that has ended is watched: in this time a shell's loop starts
/// several.
const STARTER_WATCHED: std::time::Duration = std::time::Duration::from_millis(500);

impl Watch {
    /// Watches this process and the server on these CPUs.
    pub(crate) fn begin(server: u32, cpus: &[usize], kernel: KernelThreads) -> Self {
        let crowd = Crowd::of_processes(Some(server));
        let (begin, spent) = (Instant::now(), spent(server, cpus, kernel));
        Self { server, cpus: cpus.to_vec(), kernel, crowd, begin, spent }
    }

    /// What was spent since the start.
    pub(crate) fn share(&self) -> Share {
        share(self.spent, spent(self.server, &self.cpus, self.kernel), self.begin.elapsed().as_secs_f64())
    }

    /// Which of the others had most since the start, of all CPUs and of each of `cpus`.
    pub(crate) fn others(&self, cpus: &[usize]) -> Others {
        let seconds = self.begin.elapsed().as_secs_f64();
        let kernel_counts = self.kernel == KernelThreads::Others;
        let later = Crowd::of_processes(Some(self.server));
        let most = |cpu: Option<usize>| {
            let most = self.crowd.largest(&later, cpu, kernel_counts);
            largest(most.map(|most| most.or_who_keeps_starting(STARTER_WATCHED)), seconds)
        };
        let of_cpus = cpus.iter().filter_map(|&cpu| Some((cpu, most(Some(cpu))?))).collect();
        Others { largest: most(None), of_cpus }
    }
}

fn largest(largest: Option<Largest>, seconds: f64) -> Option<Other> {
    let other = |Largest { who, ns, is_kernels, cpus: may_have, .. }| {
        let cpus = crate::stats::as_micros(ns) / 1e6 / seconds;
        Other { who, is_kernels, cpus, may_have }
    };
    largest.map(other)
}

fn share(before: Spent, after: Spent, seconds: f64) -> Share {
    #[allow(clippy::cast_precision_loss, reason = "a run's nanoseconds are far below 2^53")]
    let cpus = |ns: u64| ns as f64 / 1e9 / seconds;
    let busy = after.busy.saturating_sub(before.busy);
    let stolen = after.stolen.saturating_sub(before.stolen);
    let ours = after.ours.saturating_sub(before.ours);
    let kernel = after.kernel.saturating_sub(before.kernel);
    let others = busy.saturating_sub(stolen).saturating_sub(ours).saturating_sub(kernel);
    let server = after.server.saturating_sub(before.server);
    Share { stolen: cpus(stolen), others: cpus(others), server: cpus(server), kernel: cpus(kernel) }
}

impl Spent {
    /// Of all allowed CPUs, with the children that were waited for in the server's place.
    fn of_family() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let (busy, stolen) = of_stat(&stat, &machine::allowed_cpus(), KernelThreads::Apart);
        let server = children_ns();
        Self { busy, stolen, ours: own_ns() + server, server, kernel: kernel_threads_ns() }
    }
}

/// Measures the CPU time of this process and of all that it starts and waits for, from a moment on.
pub(crate) struct FamilyWatch {
    begin: Instant,
    before: Spent,
    crowd: Crowd,
}

impl FamilyWatch {
    /// Starts now.
    pub(crate) fn begin() -> Self {
        let crowd = Crowd::of_processes(None);
        Self { begin: Instant::now(), before: Spent::of_family(), crowd }
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// What was spent since the start; a child counts once it has been waited for.
    pub(crate) fn share(&self) -> Share {
        share(self.before, Spent::of_family(), self.seconds())
    }

    /// Which of the others had most since the start.
    pub(crate) fn largest(&self) -> Option<Other> {
        largest(self.crowd.largest(&Crowd::of_processes(None), None, false), self.seconds())
    }
}

/// Nanoseconds of CPU time of this process, threads that have ended included.
fn own_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or_default());
    seconds * 1_000_000_000 + rest
}

/// Nanoseconds of CPU time of children that have been waited for, and of their own such children.
fn children_ns() -> u64 {
    of_children(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

fn of_children(stat: &str) -> u64 {
    // The name comes before, in brackets, and may contain anything.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split(' ').skip(13).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    ticks * TICK_NS
}

/// Nanoseconds of CPU time of the kernel's own threads, whose parent is process 2.
fn kernel_threads_ns() -> u64 {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let pids = processes.filter_map(|process| process.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_kernels = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(1)) == Some("2")
    };
    pids.filter(is_kernels).map(used_ns).sum()
}

fn spent(server: u32, cpus: &[usize], kernel: KernelThreads) -> Spent {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let (busy, stolen) = of_stat(&stat, cpus, kernel);
    let server = used_ns(server);
    let kernel = match kernel {
        KernelThreads::Others => 0,
        KernelThreads::Apart => kernel_threads_ns(),
    };
    Spent { busy, stolen, ours: server + used_ns(std::process::id()), server, kernel }
}

/// Busy and stolen nanoseconds of these CPUs, from the line of each; without interrupts where the kernel counts apart.
fn of_stat(stat: &str, cpus: &[usize], kernel: KernelThreads) -> (u64, u64) {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu: usize = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; the time of guests is within user.
        let interrupts = if kernel == KernelThreads::Others { at(5) + at(6) } else { 0 };
        let busy = at(0) + at(1) + at(2) + interrupts + at(7);
        cpus.contains(&cpu).then_some((busy * TICK_NS, at(7) * TICK_NS))
    };
    let of_cpus = stat.lines().filter_map(of_line);
    of_cpus.fold((0, 0), |(busy, stolen), of_one| (busy + of_one.0, stolen + of_one.1))
}

/// A column of a thread's `schedstat` (proc(5)).
#[derive(Clone, Copy)]
enum Column {
    /// Nanoseconds on a CPU.
    Ran,
    /// Nanoseconds for which it was ready while another thread ran.
    Waited,
}

/// Nanoseconds of CPU time by thread, summed over threads of the same name.
pub(crate) fn threads_ns(pid: u32) -> Vec<(String, u64)> {
    by_name(pid, Column::Ran)
}

/// Nanoseconds for which threads were ready while others ran, by name; empty where the kernel does not
/// count them.
pub(crate) fn run_delays_ns(pid: u32) -> Vec<(String, u64)> {
    by_name(pid, Column::Waited)
}

/// For how long this thread ran, and for how long it was ready while others ran, in nanoseconds since its start.
pub(crate) fn this_thread_ns() -> [Option<u64>; 2] {
    [Column::Ran, Column::Waited].map(|column| of_thread(std::path::Path::new("/proc/thread-self"), column))
}

fn by_name(pid: u32, column: Column) -> Vec<(String, u64)> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found: Vec<(String, u64)> = Vec::new();
    for thread in threads.filter_map(|thread| Some(thread.ok()?.path())) {
        let name = std::fs::read_to_string(thread.join("comm")).unwrap_or_default().trim().to_owned();
        let Some(ns) = of_thread(&thread, column) else { continue };
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += ns,
            None => found.push((name, ns)),
        }
    }
    found
}

/// A column of the thread in this folder; none if it has ended, or if the kernel does not count.
fn of_thread(folder: &std::path::Path, column: Column) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
    text.split_whitespace().nth(column as usize)?.parse().ok()
}

/// Nanoseconds of CPU time of all threads of a process.
fn used_ns(pid: u32) -> u64 {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    threads.filter_map(|thread| of_thread(&thread.ok()?.path(), Column::Ran)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_everything_but_idle_and_waiting_of_the_cpus_that_are_measured_on() {
        let stat = "cpu  111 1 52 9003 300 7 3 21 0 0\ncpu0 100 1 50 9000 300 7 3 20 0 0\ncpu1 1 0 2 3\n\
                    cpu10 10 0 0 0 0 0 0 1\nintr 5\n";
        for (cpus, busy, stolen) in [
            (&[0][..], 181, 20),
            (&[0, 1], 184, 20),
            // Others may do what they like elsewhere.
            (&[1], 3, 0),
            (&[0, 1, 10], 195, 21),
            (&[7], 0, 0),
        ] {
            let of = |kernel| of_stat(stat, cpus, kernel);
            assert_eq!(of(KernelThreads::Others), (busy * TICK_NS, stolen * TICK_NS), "{cpus:?}");
            let interrupts = if cpus.contains(&0) { 7 + 3 } else { 0 };
            let apart = (busy - interrupts) * TICK_NS;
            assert_eq!(of(KernelThreads::Apart), (apart, stolen * TICK_NS), "{cpus:?}");
        }
    }

    #[test]
    fn others_are_what_neither_we_nor_the_hypervisor_nor_a_kernel_that_is_told_apart_had() {
        // CPU seconds within two seconds, and the CPUs that they amount to: 0.25 of ours are the
        // client's.
        for (busy, stolen, ours, server, kernel, expected) in [
            (5.0, 1.0, 3.5, 2.0, 0.0, Share { stolen: 0.5, others: 0.25, server: 1.0, kernel: 0.0 }),
            (5.0, 1.0, 3.5, 2.0, 0.25, Share { stolen: 0.5, others: 0.125, server: 1.0, kernel: 0.125 }),
            (5.0, 1.0, 3.5, 2.0, 0.5, Share { stolen: 0.5, others: 0.0, server: 1.0, kernel: 0.25 }),
            // Ticks are coarser than what threads are charged with: nobody has less than nothing.
            (5.0, 1.0, 4.0, 2.0, 0.5, Share { stolen: 0.5, others: 0.0, server: 1.0, kernel: 0.25 }),
        ] {
            let ns = |seconds: f64| crate::schedule::nanos(std::time::Duration::from_secs_f64(seconds));
            // Since boot all of them have run for a while.
            let before = Spent { busy: 70, stolen: 10, ours: 20, server: 15, kernel: 40 };
            let after = Spent {
                busy: 70 + ns(busy),
                stolen: 10 + ns(stolen),
                ours: 20 + ns(ours),
                server: 15 + ns(server),
                kernel: 40 + ns(kernel),
            };
            assert_eq!(share(before, after, 2.0), expected, "kernel {kernel} s");
        }
    }

    #[test]
    fn the_kernels_threads_are_asked_for_only_where_they_are_told_apart() {
        let pid = std::process::id();
        assert_eq!(spent(pid, &[0], KernelThreads::Others).kernel, 0);
        // Some thread of the kernel has run since boot, if this machine shows them at all.
        let shown = 0 < kernel_threads_ns();
        assert_eq!(0 < spent(pid, &[0], KernelThreads::Apart).kernel, shown);
    }

    #[test]
    fn a_child_counts_with_its_time_once_it_has_ended() {
        let stat = "4711 (a) name) S 1 2 3 4 5 6 7 8 9 10 800 200 30 12 20 0";
        assert_eq!(of_children(stat), 42 * TICK_NS);
        let watch = FamilyWatch::begin();
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", script]).status().unwrap().success());
        assert!(0.0 < watch.share().server, "{:?}", watch.share());
    }

    #[test]
    fn our_own_time_grows_and_keeps_that_of_a_thread_that_has_ended() {
        let before = own_ns();
        let worked = std::thread::spawn(|| {
            let thread =
                || of_thread(std::path::Path::new("/proc/thread-self"), Column::Ran).unwrap_or_default();
            let begin = thread();
            while thread() < begin + 50_000_000 {
                std::hint::spin_loop();
            }
        });
        worked.join().unwrap();
        assert!(before + 50_000_000 <= own_ns());
    }
}
