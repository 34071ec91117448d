//! How long one signature check and one read take on this machine, with the code that orders and reads go through.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::auth::{Curve, Signer, keccak};
use crate::server::executor;

mod read;

/// How long checks are tried.
const CHECKS_TIME: Duration = Duration::from_millis(10);

/// How long reads are.
const READS_TIME: Duration = Duration::from_millis(3);

/// How often each is tried at least, however long that takes.
const TRIES_MIN: usize = 15;

/// The median of one check, in nanoseconds, on one of `cpus` if there are any; takes some 10 ms.
pub(crate) fn signature_ns(cpus: &[usize]) -> Result<u64, String> {
    tried(cpus, median_check_ns)
}

/// The median of one answer about a market, in nanoseconds, on one of `cpus` if there are any; takes some 3 ms.
pub(crate) fn read_ns(cpus: &[usize]) -> Result<u64, String> {
    tried(cpus, || {
        let mut market = read::Market::new();
        median_ns(READS_TIME, || assert!(!market.read().is_empty(), "an answer has a head"))
    })
}

/// How often a thread is woken, and how long it sleeps before each, as loops do at some thousand orders a second.
const WAKES: usize = 100;
const SLEEP: Duration = Duration::from_micros(500);

/// From a call that wakes a thread which sleeps on `cpu` until it runs, in nanoseconds: a quarter are shorter, for the
/// time for which others have that CPU is no cost of waking. Takes some 60 ms. Whoever sends to a loop wakes it from
/// another CPU, so that it cannot be tried with one.
pub(crate) fn wake_ns(cpu: usize, allowed: &[usize]) -> Result<u64, String> {
    let others: Vec<usize> = allowed.iter().copied().filter(|other| *other != cpu).collect();
    if others.is_empty() {
        return Err("one CPU".to_owned());
    }
    tried(&others, move || {
        let (waker, calls) = mpsc::channel::<Instant>();
        let sleeper = std::thread::spawn(move || {
            // It does next to nothing there, and a loop has no lower priority either.
            executor::pin(Some(cpu));
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

/// What a thread of the lowest priority found: an exchange that runs here keeps its CPUs.
fn tried(cpus: &[usize], try_it: impl FnOnce() -> u64 + Send + 'static) -> Result<u64, String> {
    let cpus = cpus.to_vec();
    let thread = std::thread::Builder::new().name("speed".to_owned()).spawn(move || {
        executor::stand_back(&cpus);
        try_it()
    });
    let thread = thread.map_err(|fault| format!("no thread to try it on: {fault}"))?;
    thread.join().map_err(|_| "the try died".to_owned())
}

fn median_check_ns() -> u64 {
    let signer = Signer::new([7; 32]).expect("a small number is a key");
    let (digest, curve) = (keccak(b"a signature check"), Curve::default());
    let signature = signer.sign(&digest);
    median_ns(CHECKS_TIME, || {
        let found = curve.recover(&digest, &signature);
        assert_eq!(found.as_ref(), Some(signer.address()), "who signed is found");
    })
}

fn median_ns(time: Duration, mut once: impl FnMut()) -> u64 {
    let mut tries = Vec::new();
    let began = Instant::now();
    while tries.len() < TRIES_MIN || began.elapsed() < time {
        let before = Instant::now();
        once();
        tries.push(nanoseconds(before.elapsed()));
    }
    quantile(tries, 2)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The value below which one `part`-th of the tries is. One that was interrupted is at the end of the row.
fn quantile(mut tries: Vec<u64>, part: usize) -> u64 {
    tries.sort_unstable();
    tries[tries.len() / part]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::topology::allowed_cpus;

    #[test]
    fn a_try_takes_some_time_and_any_cpu_will_do() {
        for tried in [signature_ns(&[]), read_ns(&[])] {
            assert!(tried.is_ok_and(|ns| 0 < ns));
        }
        let allowed = allowed_cpus();
        assert_eq!(wake_ns(allowed[0], &allowed).is_ok_and(|ns| 0 < ns), 1 < allowed.len());
        assert_eq!(wake_ns(3, &[3]), Err("one CPU".to_owned()));
    }
}
