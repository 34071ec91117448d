//! What one rate of placement did to the cancels beside it.

use super::micros;
use hdrhistogram::Histogram;

/// One round, or all of them.
pub(crate) struct Row {
    /// Orders a second by the schedule.
    pub(crate) offered: f64,
    /// Orders a second that rested, round by round.
    pub(crate) rested: Vec<f64>,
    /// Nanoseconds of each cancel from the moment at which it was to be sent.
    pub(crate) took: Histogram<u64>,
    /// The part of them before it was sent.
    pub(crate) late: Histogram<u64>,
    /// The most bytes of one connection that found no room in its socket.
    pub(crate) unsent_bytes_max: usize,
    /// The 99th percentile in microseconds, round by round.
    pub(crate) p99s: Vec<f64>,
}

impl Row {
    /// A row of no rounds yet.
    pub(crate) fn new(offered: f64) -> Self {
        let histogram = || Histogram::new(3).expect("three digits");
        let (took, late) = (histogram(), histogram());
        Self { offered, rested: Vec::new(), took, late, unsent_bytes_max: 0, p99s: Vec::new() }
    }

    /// Adds a round.
    pub(crate) fn add(&mut self, round: &mut Self) {
        self.rested.append(&mut round.rested);
        self.p99s.append(&mut round.p99s);
        self.took.add(&round.took).expect("the histogram grows");
        self.late.add(&round.late).expect("the histogram grows");
        self.unsent_bytes_max = self.unsent_bytes_max.max(round.unsent_bytes_max);
    }

    /// The 99th percentile of the round in the middle.
    pub(crate) fn median_p99(&self) -> f64 {
        let mut sorted = self.p99s.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// The names of the columns.
    pub(crate) fn head() {
        println!(
            "placement  offered/s  rested/s |  cancels    p50 µs    p99 µs  p99.9 µs    max µs | sent late p99 µs  unsent kB"
        );
    }

    pub(crate) fn print(&self, name: &str) {
        println!(
            "{name:>9} {:10.0} {:9.0} | {:8} {:9.1} {:9.1} {:9.1} {:9.1} | {:16.1} {:10}",
            self.offered,
            self.rested.iter().sum::<f64>() / self.rested.len() as f64,
            self.took.len(),
            micros(&self.took, 0.5),
            micros(&self.took, 0.99),
            micros(&self.took, 0.999),
            micros(&self.took, 1.0),
            micros(&self.late, 0.99),
            self.unsent_bytes_max / 1_000
        );
    }
}
