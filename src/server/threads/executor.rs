//! Where a loop's thread comes from: a pinned glommio executor, or a plain pinned thread.
//!
//! The kernel is asked for an `io_uring` before any executor exists, because glommio's own message
//! in that case misleads. Where `io_uring` is blocked (Docker's default profile) or too little
//! memory may be locked, the very same loop runs on a plain thread: nothing on the order path
//! needs `io_uring`. This is the only file that names glommio.
//!
//! A loop is one task that never waits inside the executor: measured, glommio's own socket path
//! costs 20 µs a round trip, an epoll loop as one task costs 6.9 µs.
//!
//! INVARIANT EXECUTOR-1: a loop keeps its thread from its first turn to its last. Between two tasks glommio starts its
//! preemption timer and then asks whether that has expired, before it looks whether anything can run. A thread that
//! loses its CPU just there finds the timer expired, takes that for "nothing ran", and sleeps with its task ready and
//! nobody to wake it. So a loop never goes back to the executor, and the timer that it meets on its way in does not
//! expire.

use std::sync::mpsc;
use std::time::Duration;

use crate::server::machine::system;

/// One turn of a loop after the other, until it says that it is done.
pub(crate) trait Turns: Send + 'static {
    /// Does what is to be done now, waits if there is nothing; false ends the thread.
    fn turn(&mut self) -> bool;
}

/// What the threads of this process run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// glommio executors.
    Executors,
    /// Plain threads, and why.
    Threads(String),
}

/// A running loop.
pub(crate) struct Thread(Box<dyn FnOnce() -> Result<(), String> + Send>);

/// glommio pins 30 MiB for each executor by default; a loop does no disk I/O through it.
const IO_MEMORY_BYTES: usize = 64 << 10;
const RING_ENTRIES: usize = 8;
/// The time after which a task should let its siblings run. There are none, and it must not pass between an executor's
/// start and a loop's first turn: EXECUTOR-1.
const PREEMPT: Duration = Duration::from_hours(24);

/// Asks the kernel what it allows and says in one sentence what that means.
pub(crate) fn ground() -> Ground {
    if let Err(fault) = system::probe_io_uring() {
        return Ground::Threads(remedy(&fault));
    }
    // A ring may be possible where an executor is not, which locks memory for three of them.
    match builder(glommio::Placement::Unbound).make() {
        Ok(_executor) => Ground::Executors,
        Err(fault) => Ground::Threads(format!("no executor can be made here: {fault}")),
    }
}

fn builder(placement: glommio::Placement) -> glommio::LocalExecutorBuilder {
    glommio::LocalExecutorBuilder::new(placement)
        .io_memory(IO_MEMORY_BYTES)
        .ring_depth(RING_ENTRIES)
        .preempt_timer(PREEMPT)
}

fn remedy(fault: &std::io::Error) -> String {
    let why = match fault.raw_os_error() {
        Some(1) => {
            "io_uring is blocked here (a seccomp profile such as Docker's, or kernel.io_uring_disabled); \
             to allow it: docker run --security-opt seccomp=unconfined, or sysctl kernel.io_uring_disabled=0"
        }
        Some(38) => "this kernel has no io_uring; 5.8 or newer has",
        _ => "io_uring cannot be set up",
    };
    format!("{why} ({fault})")
}

/// Starts `turns` on a thread called `name`, pinned to `cpu` if one is given.
pub(crate) fn start(
    ground: &Ground,
    name: &str,
    cpu: Option<usize>,
    turns: Box<impl Turns>,
) -> Result<Thread, String> {
    match ground {
        Ground::Executors => start_executor(name, cpu, turns),
        Ground::Threads(_) => start_thread(name, cpu, turns),
    }
}

impl Thread {
    /// Waits for the loop's end.
    pub(crate) fn join(self) -> Result<(), String> {
        (self.0)()
    }

    /// A loop that has panicked.
    #[cfg(test)]
    pub(crate) fn that_died() -> Self {
        Self(Box::new(|| Err("a loop died".to_owned())))
    }
}

fn start_executor(name: &str, cpu: Option<usize>, turns: Box<impl Turns>) -> Result<Thread, String> {
    let placement = cpu.map_or(glommio::Placement::Unbound, glommio::Placement::Fixed);
    let builder = builder(placement).name(name);
    let name = name.to_owned();
    let (begun, has_begun) = mpsc::channel();
    let handle = builder
        .spawn(move || async move {
            let mut turns = turns;
            let _ = begun.send(());
            // Nothing is awaited: EXECUTOR-1.
            while turns.turn() {}
        })
        .map_err(|fault| format!("{name}: no executor: {fault}"))?;
    // The executor is made, and pinned, on its own thread, which drops the loop if that fails.
    if has_begun.recv().is_err() {
        let why =
            handle.join().err().map_or_else(|| "its thread ended".to_owned(), |fault| fault.to_string());
        return Err(format!(
            "{name}: no executor: {why}; if it may not be pinned, set cpu.policy to unpinned"
        ));
    }
    Ok(Thread(Box::new(move || handle.join().map_err(|fault| format!("{name}: {fault}")))))
}

fn start_thread(name: &str, cpu: Option<usize>, turns: Box<impl Turns>) -> Result<Thread, String> {
    let handle = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            pin(cpu);
            let mut turns = turns;
            while turns.turn() {}
        })
        .map_err(|fault| format!("{name}: no thread: {fault}"))?;
    let name = name.to_owned();
    Ok(Thread(Box::new(move || handle.join().map_err(|_| format!("{name}: the thread panicked")))))
}

/// Pins the calling thread. A CPU that went away since the plan, or a sandbox, leaves it unpinned, with a warning.
pub(crate) fn pin(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        if let Err(fault) = rustix::thread::sched_setaffinity(None, &set) {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("a thread");
            tracing::warn!("{name} could not be pinned to CPU {cpu} and runs on any: {fault}");
        }
    }
}

/// Gives the calling thread the lowest priority and these CPUs, unless there are none: then it
/// runs wherever there is time. The threads that it makes inherit both.
pub(crate) fn stand_back(cpus: &[usize]) {
    const LOWEST_PRIORITY: i32 = 19;
    // On Linux a priority belongs to the thread that sets it. If a sandbox refuses, it stays as it was.
    let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
    if !cpus.is_empty() {
        let mut set = rustix::thread::CpuSet::new();
        for &cpu in cpus {
            set.set(cpu);
        }
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    struct Count(Arc<AtomicU32>);

    impl Turns for Count {
        fn turn(&mut self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) < 200
        }
    }

    #[test]
    fn the_same_loop_runs_on_an_executor_and_on_a_plain_thread() {
        for ground in [ground(), Ground::Threads("wanted".into())] {
            let turns = Arc::new(AtomicU32::new(0));
            let thread =
                start(&ground, "outcry-test", None, Box::new(Count(Arc::clone(&turns)))).expect("starts");
            thread.join().expect("ends");
            assert_eq!(turns.load(Ordering::Relaxed), 201);
        }
    }

    #[test]
    fn an_executor_that_cannot_be_pinned_refuses_its_loop() {
        if ground() != Ground::Executors {
            return;
        }
        // No machine has this many.
        let refused = start(&Ground::Executors, "outcry-test", Some(1_000), Box::new(Count(Arc::default())));
        let fault = refused.err().expect("there is no such CPU");
        assert!(fault.starts_with("outcry-test: no executor: "), "{fault}");
    }

    /// Counts how often the executor chose what to run, since it was last asked.
    struct Choices {
        turns: u32,
        choices: Arc<AtomicU64>,
    }

    impl Turns for Choices {
        fn turn(&mut self) -> bool {
            self.turns += 1;
            self.choices.fetch_add(glommio::executor().executor_stats().scheduler_runs(), Ordering::Relaxed);
            self.turns < 1_000
        }
    }

    #[test]
    fn a_loop_never_gives_its_thread_back_to_an_executor_that_might_sleep() {
        if ground() != Ground::Executors {
            return;
        }
        let choices = Arc::new(AtomicU64::new(0));
        let turns = Box::new(Choices { turns: 0, choices: Arc::clone(&choices) });
        let thread = start(&Ground::Executors, "outcry-test", None, turns).expect("starts");
        thread.join().expect("ends");
        assert_eq!(choices.load(Ordering::Relaxed), 1, "EXECUTOR-1: chosen once, for its first turn");
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
        for ground in [ground(), Ground::Threads("wanted".into())] {
            let dropped = Arc::new(AtomicU32::new(0));
            let thread =
                start(&ground, "outcry-test", None, Box::new(Dies(Arc::clone(&dropped)))).expect("starts");
            let fault = thread.join().expect_err("it died");
            assert!(fault.starts_with("outcry-test: "), "{fault}");
            assert_eq!(dropped.load(Ordering::Relaxed), 1, "{ground:?}");
        }
    }

    #[test]
    fn a_blocked_io_uring_is_named_with_its_remedy() {
        let text = remedy(&std::io::Error::from_raw_os_error(1));
        assert!(text.contains("seccomp") && text.contains("sysctl"), "{text}");
    }
}
