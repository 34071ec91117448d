//! How long one signature check and one read take on this machine, with the code that orders and reads go through.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::probes::thread_cpu_ns;
use crate::auth::{Curve, Signer, keccak};
use crate::server::machine::run_delay::RunDelay;
use crate::server::process::clock::nanoseconds;
use crate::server::threads::thread;

mod read;

/// CPU time for which signature checks are tried.
const CHECKS_TIME: Duration = Duration::from_millis(10);

/// CPU time for which reads are tried.
const READS_TIME: Duration = Duration::from_millis(3);

/// How long each is tried at most where others have the CPU.
const TIME_MAX: Duration = Duration::from_millis(100);

/// How often each is tried at least, however long that takes.
const TRIES_MIN: usize = 15;

/// What came of tries in a row.
#[derive(Debug)]
pub(crate) struct Tried {
    /// The shortest, in nanoseconds: other threads, and what they leave in the caches, only make one longer.
    pub(crate) least_ns: u64,
    /// What others had of the CPU while this thread was ready, in millionths of the time; 0 if the kernel does not say.
    pub(crate) lost_millionths: u64,
}

/// One check, on one of `cpus` if there are any; takes some 10 ms.
pub(crate) fn signature(cpus: &[usize]) -> Result<Tried, String> {
    tried(cpus, checks)
}

/// One answer about a market, in nanoseconds, on one of `cpus` if there are any; takes some 3 ms.
pub(crate) fn read_ns(cpus: &[usize]) -> Result<u64, String> {
    tried(cpus, || {
        let mut market = read::Market::new();
        least(READS_TIME, || assert!(!market.read().is_empty(), "an answer has a head")).least_ns
    })
}

/// How often a thread is woken, and how long it sleeps before each, as loops do at some thousand orders a second.
const WAKES: usize = 100;
const SLEEP: Duration = Duration::from_micros(500);

/// Nanoseconds from the call that wakes a thread which sleeps on `cpu` until it runs. A quarter of the tries are
/// shorter: in longer ones others may have had that CPU, which is no cost of waking. Takes some 60 ms. A loop is woken
/// from another CPU, so this cannot be tried with one.
pub(crate) fn wake_ns(cpu: usize, allowed: &[usize]) -> Result<u64, String> {
    let others: Vec<usize> = allowed.iter().copied().filter(|other| *other != cpu).collect();
    if others.is_empty() {
        return Err("one CPU".to_owned());
    }
    tried(&others, move || {
        let (waker, calls) = mpsc::channel::<Instant>();
        let sleeper = std::thread::spawn(move || {
            // It does next to nothing there, and a loop has no lower priority either.
            thread::pin(Some(cpu));
            calls.into_iter().map(|called| nanoseconds(called.elapsed())).collect::<Vec<_>>()
        });
        for _ in 0..WAKES {
            std::thread::sleep(SLEEP);
            waker.send(Instant::now()).expect("it listens until this end is gone");
        }
        drop(waker);
        quantile(sleeper.join().expect("reading a clock does not panic"), 4)
    })
}

/// The name of threads that try something, and of those that they start.
const NAME: &str = "speed";

/// The longest wait for a try: while a shell starts one busy program after another, a thread of the lowest priority may
/// get no CPU at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tries something on a thread of the lowest priority: an exchange that runs here keeps its CPUs.
fn tried<T: Send + 'static>(
    cpus: &[usize],
    try_it: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    tried_within(PATIENCE, cpus, try_it)
}

fn tried_within<T: Send + 'static>(
    patience: Duration,
    cpus: &[usize],
    try_it: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let cpus = cpus.to_vec();
    let (finder, found) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(NAME.to_owned()).spawn(move || {
        thread::stand_back(&cpus);
        // Nobody may be waiting any more.
        let _ = finder.send(try_it());
    });
    thread.map_err(|fault| format!("no thread to try it on: {fault}"))?;
    found.recv_timeout(patience).map_err(|missing| match missing {
        mpsc::RecvTimeoutError::Timeout => {
            let_go();
            format!("others left no CPU for it within {} s", patience.as_secs_f64())
        }
        mpsc::RecvTimeoutError::Disconnected => "the try died".to_owned(),
    })
}

/// Lets tries that are not over run wherever this thread may: a thread that gets no CPU cannot end either, nor can its
/// process.
fn let_go() {
    let Ok(everywhere) = rustix::thread::sched_getaffinity(None) else { return };
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let id = task.file_name().to_str().and_then(|id| rustix::process::Pid::from_raw(id.parse().ok()?));
        if name.trim_end() == NAME && id.is_some() {
            let _ = rustix::thread::sched_setaffinity(id, &everywhere);
        }
    }
}

fn checks() -> Tried {
    let signer = Signer::new([7; 32]).expect("a small number is a key");
    let (digest, curve) = (keccak(b"a signature check"), Curve::default());
    let signature = signer.sign(&digest);
    least(CHECKS_TIME, || {
        let found = curve.recover(&digest, &signature);
        assert_eq!(found.as_ref(), Some(signer.address()), "who signed is found");
    })
}

/// Tries until this thread has had the CPU for `own`.
fn least(own: Duration, mut once: impl FnMut()) -> Tried {
    let (mut least_ns, mut tries) = (u64::MAX, 0);
    let mut delay = RunDelay::of_this_thread();
    let (began, until_ns) = (Instant::now(), thread_cpu_ns() + nanoseconds(own));
    while tries < TRIES_MIN || (thread_cpu_ns() < until_ns && began.elapsed() < TIME_MAX) {
        let before = Instant::now();
        once();
        least_ns = least_ns.min(nanoseconds(before.elapsed()));
        tries += 1;
    }
    let lost_ns = delay.since_last().unwrap_or(0);
    let lost_millionths = lost_ns.saturating_mul(1_000_000) / nanoseconds(began.elapsed()).max(1);
    Tried { least_ns, lost_millionths: lost_millionths.min(1_000_000) }
}

/// The value below which one `part`-th of the tries is. Those that were interrupted are at the end.
fn quantile(mut tries: Vec<u64>, part: usize) -> u64 {
    tries.sort_unstable();
    tries[tries.len() / part]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::plan::topology::allowed_cpus;

    #[test]
    fn a_try_that_gets_no_cpu_is_given_up() {
        let (sender, never) = mpsc::channel::<()>();
        let tried = tried_within(Duration::ZERO, &[], move || never.recv().is_ok());
        assert_eq!(tried, Err("others left no CPU for it within 0 s".to_owned()));
        drop(sender);
        // A busy machine may leave a thread of the lowest priority no CPU for long.
        assert_eq!(
            tried_within(Duration::from_mins(10), &[], || -> u64 { panic!("tried") }),
            Err("the try died".to_owned())
        );
    }

    #[test]
    fn a_try_takes_some_time_and_any_cpu_will_do() {
        let checks = signature(&[]).expect("tried");
        assert!(0 < checks.least_ns && checks.lost_millionths <= 1_000_000, "{checks:?}");
        assert!(read_ns(&[]).is_ok_and(|ns| 0 < ns));
        let allowed = allowed_cpus();
        assert_eq!(wake_ns(allowed[0], &allowed).is_ok_and(|ns| 0 < ns), 1 < allowed.len());
        assert_eq!(wake_ns(3, &[3]), Err("one CPU".to_owned()));
    }
}
