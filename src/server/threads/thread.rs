//! The thread that a loop runs on, and where and how willingly a thread runs.

use std::thread::JoinHandle;

use crate::server::machine::system;
use crate::topology::placement::JOURNAL_PRIORITY;

/// One turn of a loop after the other, until it says that it is done.
pub(crate) trait Turns: Send + 'static {
    /// Does what is to be done now, waits if there is nothing; false ends the thread.
    fn turn(&mut self) -> bool;
}

/// A running loop.
pub(crate) struct Thread(JoinHandle<()>);

/// Starts `turns` on a thread called `name`, pinned to `cpu` if one is given.
pub(crate) fn start(name: &str, cpu: Option<usize>, mut turns: Box<impl Turns>) -> Result<Thread, String> {
    let handle = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            pin(cpu);
            while turns.turn() {}
        })
        .map_err(|fault| format!("{name}: no thread: {fault}"))?;
    Ok(Thread(handle))
}

impl Thread {
    /// Waits for the loop's end.
    pub(crate) fn join(self) -> Result<(), String> {
        let name = self.0.thread().name().expect("start names it").to_owned();
        self.0.join().map_err(|_| format!("{name}: the thread panicked"))
    }
}

/// Pins the calling thread and returns whether it is pinned. A CPU that went away since the plan, or a sandbox, leaves
/// it unpinned, with a warning.
pub(crate) fn pin(cpu: Option<usize>) -> bool {
    let Some(cpu) = cpu else { return false };
    let pinned = rustix::thread::sched_setaffinity(None, &set_of(&[cpu]));
    if let Err(fault) = pinned {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        tracing::warn!("{name} could not be pinned to CPU {cpu} and runs on any: {fault}");
    }
    pinned.is_ok()
}

/// Lets the calling thread, for which answers wait, run before others, as far as a sandbox lets it.
///
/// One that sleeps whenever it has nothing to do, on a CPU that was chosen for it, may be real-time. `nice` only weighs
/// who is ready: of the wake-ups of a thread at -20 beside a busy one of the same CPU, some of a hundred found that one
/// at work for 4 or 8 ms more (Linux 6.18). One that may run anywhere is better at -20: the scheduler moves it to where
/// nobody is, and would leave a real-time thread on the CPU of a loop.
pub(crate) fn come_first(may_be_real_time: bool) {
    /// As `nice` counts it.
    const HIGHEST_PRIORITY: i32 = -20;
    if !(may_be_real_time && system::be_real_time(JOURNAL_PRIORITY).is_ok()) {
        // On Linux a priority belongs to the thread that sets it.
        let _ = rustix::process::setpriority_process(None, HIGHEST_PRIORITY);
    }
}

/// Gives the calling thread the lowest priority and these CPUs, unless there are none: then it
/// runs wherever there is time. The threads that it makes inherit both.
pub(crate) fn stand_back(cpus: &[usize]) {
    const LOWEST_PRIORITY: i32 = 19;
    // On Linux a priority belongs to the thread that sets it. If a sandbox refuses, it stays as it was.
    let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
    if !cpus.is_empty() {
        let _ = rustix::thread::sched_setaffinity(None, &set_of(cpus));
    }
}

fn set_of(cpus: &[usize]) -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::plan::topology::allowed_cpus;
    use rustix::thread::{CpuSet, sched_getaffinity};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Sender, channel};

    /// Takes 200 turns, and tells in each which CPUs its thread may have.
    struct Tells(u32, Sender<(Option<String>, CpuSet)>);

    impl Turns for Tells {
        fn turn(&mut self) -> bool {
            let name = std::thread::current().name().map(ToOwned::to_owned);
            let _ = self.1.send((name, sched_getaffinity(None).expect("everybody may ask")));
            self.0 += 1;
            self.0 < 200
        }
    }

    #[test]
    fn a_loop_takes_its_turns_on_its_cpu_or_on_any_if_that_is_not_there() {
        let allowed = allowed_cpus();
        // No machine has the last.
        for (cpu, wanted) in [
            (None, &allowed[..]),
            (Some(allowed[0]), &allowed[..1]),
            (Some(CpuSet::MAX_CPU - 1), &allowed[..]),
        ] {
            let (sender, told) = channel();
            let thread = start("outcry-test", cpu, Box::new(Tells(0, sender))).expect("starts");
            thread.join().expect("ends");
            let told: Vec<_> = told.iter().collect();
            assert_eq!(told.len(), 200);
            assert!(told.iter().all(|told| *told == (Some("outcry-test".into()), set_of(wanted))), "{cpu:?}");
        }
    }

    /// The calling thread's nice value, real-time priority and policy: fields 19, 40 and 41 of `proc_pid_stat(5)`.
    fn standing() -> [i64; 3] {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("everybody may read it");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        let fields: Vec<&str> = fields.split(' ').collect();
        [19, 40, 41].map(|field| fields[field - 3].parse().expect("a number"))
    }

    #[test]
    fn who_comes_first_is_real_time_where_that_may_be_and_nobody_inherits_it() {
        let on_a_thread = |doing: fn() -> bool| std::thread::spawn(doing).join().expect("does not panic");
        let may_be_real_time = on_a_thread(|| system::be_real_time(JOURNAL_PRIORITY).is_ok());
        let may_be_nice = on_a_thread(|| rustix::process::setpriority_process(None, -20).is_ok());
        let [ordinary_nice, _, ordinary] = std::thread::spawn(standing).join().expect("does not panic");
        for asks in [true, false] {
            let place = move || {
                come_first(asks);
                [standing(), std::thread::spawn(standing).join().expect("does not panic")]
            };
            let [own, of_a_child] = std::thread::spawn(place).join().expect("does not panic");
            let [nice, priority, policy] = own;
            if asks && may_be_real_time {
                // The numbers of `SCHED_FIFO` and `SCHED_OTHER` in `sched(7)`.
                assert_eq!((priority, policy), (i64::from(JOURNAL_PRIORITY), 1), "{own:?}");
                assert_eq!(of_a_child, [0, 0, 0]);
            } else {
                let wanted = if may_be_nice { -20 } else { ordinary_nice };
                assert_eq!([nice, priority, policy], [wanted, 0, ordinary]);
            }
        }
    }

    struct Dies(Arc<AtomicU32>);

    impl Turns for Dies {
        fn turn(&mut self) -> bool {
            panic!("planted: this loop dies");
        }
    }

    impl Drop for Dies {
        fn drop(&mut self) {
            self.0.fetch_add(u32::from(std::thread::panicking()), Ordering::Relaxed);
        }
    }

    #[test]
    fn a_loop_that_dies_is_dropped_while_it_panics_and_is_named_at_its_join() {
        let dropped = Arc::new(AtomicU32::new(0));
        let thread = start("outcry-test", None, Box::new(Dies(Arc::clone(&dropped)))).expect("starts");
        let fault = thread.join().expect_err("it died");
        assert_eq!(fault, "outcry-test: the thread panicked");
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }
}
