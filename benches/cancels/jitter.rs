//! What the machine itself does to a thread that only spins: the times at which it did not run.

use super::load::record;
use super::outcry::pin;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// How long each CPU is watched.
const TIME: Duration = Duration::from_secs(2);

/// A thread that runs reads the clock far more often than this.
const GAP: Duration = Duration::from_micros(10);

/// Watches each CPU while nothing else of this program runs on it.
pub(crate) fn report(when: &str, cpus: [usize; 2]) {
    for cpu in cpus {
        let _pinned = pin(cpu);
        let mut gaps = Histogram::new(3).expect("three digits");
        let (begin, mut lost) = (Instant::now(), Duration::ZERO);
        let mut last = begin;
        while last.duration_since(begin) < TIME {
            let now = Instant::now();
            let gap = now.duration_since(last);
            if GAP <= gap {
                lost += gap;
                record(&mut gaps, gap);
            }
            last = now;
        }
        let lost = lost.as_secs_f64() / TIME.as_secs_f64();
        println!(
            "jitter {when}, CPU {cpu}: {:.0} gaps/s, p50 {:.1} µs, p99 {:.1}, max {:.1}; {:.2} % of the time lost",
            gaps.len() as f64 / TIME.as_secs_f64(),
            super::micros(&gaps, 0.5),
            super::micros(&gaps, 0.99),
            super::micros(&gaps, 1.0),
            100.0 * lost
        );
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average {when}: {}", load.trim());
}
