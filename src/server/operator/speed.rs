//! How long one signature check takes on this machine, with the verifier that orders are checked by.

use std::time::{Duration, Instant};

use crate::auth::{Curve, Signer, keccak};
use crate::server::executor;

/// How long checks are tried.
const TIME: Duration = Duration::from_millis(10);

/// Checks that are tried at least, however long that takes.
const CHECKS_MIN: usize = 15;

/// The median of one check, in nanoseconds, on one of `cpus` if there are any; takes some 10 ms.
///
/// A thread of the lowest priority does it: an exchange that runs here keeps its CPUs.
pub(crate) fn signature_ns(cpus: &[usize]) -> Result<u64, String> {
    let cpus = cpus.to_vec();
    let thread = std::thread::Builder::new().name("speed".to_owned()).spawn(move || {
        executor::stand_back(&cpus);
        median_check_ns()
    });
    let thread = thread.map_err(|fault| format!("no thread to try it on: {fault}"))?;
    thread.join().map_err(|_| "the try died".to_owned())
}

fn median_check_ns() -> u64 {
    let signer = Signer::new([7; 32]).expect("a small number is a key");
    let (digest, curve) = (keccak(b"a signature check"), Curve::default());
    let signature = signer.sign(&digest);
    let mut checks = Vec::new();
    let began = Instant::now();
    while checks.len() < CHECKS_MIN || began.elapsed() < TIME {
        let before = Instant::now();
        let found = curve.recover(&digest, &signature);
        checks.push(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
        assert_eq!(found.as_ref(), Some(signer.address()), "who signed is found");
    }
    // A check that was interrupted is at the end of the row.
    checks.sort_unstable();
    checks[checks.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_takes_some_time_and_any_cpu_will_do() {
        assert!(signature_ns(&[]).is_ok_and(|ns| 0 < ns));
    }
}
