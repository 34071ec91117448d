//! How long one signature check and one read take on this machine, with the code that orders and reads go through.

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
        tries.push(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    // One that was interrupted is at the end of the row.
    tries.sort_unstable();
    tries[tries.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_takes_some_time_and_any_cpu_will_do() {
        for tried in [signature_ns(&[]), read_ns(&[])] {
            assert!(tried.is_ok_and(|ns| 0 < ns));
        }
    }
}
