//! What one rate of placement did to the cancels that ran beside it.

use super::figures::{self, Unit};
use super::micros;
use hdrhistogram::Histogram;

/// One round, or all of them.
pub(crate) struct Row {
    /// Orders a second by the schedule.
    pub(crate) offered: f64,
    /// Orders a second that rested, round by round.
    pub(crate) rested: Vec<f64>,
    /// Nanoseconds of each cancel from the moment at which it was due.
    pub(crate) took: Histogram<u64>,
    /// The part of `took` that is the client's own.
    pub(crate) late: Histogram<u64>,
    /// The most bytes that waited because one connection's socket took no more.
    pub(crate) unsent_bytes_max: usize,
    /// The largest part of a round for which the client had no CPU, which is not in its times.
    pub(crate) away: f64,
    /// The largest part of both CPUs' time that others had in a round.
    pub(crate) lost: f64,
}

impl Row {
    /// A row without rounds.
    pub(crate) fn new(offered: f64) -> Self {
        let histogram = || Histogram::new(3).expect("three digits");
        let (took, late) = (histogram(), histogram());
        Self { offered, rested: Vec::new(), took, late, unsent_bytes_max: 0, away: 0.0, lost: 0.0 }
    }

    /// Adds a round.
    pub(crate) fn add(&mut self, round: &mut Self) {
        self.rested.append(&mut round.rested);
        self.away = self.away.max(round.away);
        self.lost = self.lost.max(round.lost);
        self.took.add(&round.took).expect("the histogram grows");
        self.late.add(&round.late).expect("the histogram grows");
        self.unsent_bytes_max = self.unsent_bytes_max.max(round.unsent_bytes_max);
    }

    /// The number of rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.rested.len()
    }

    /// Orders a second that rested, on average.
    pub(crate) fn rested_per_s(&self) -> f64 {
        self.rested.iter().sum::<f64>() / self.rounds() as f64
    }

    /// Writes the cancels' figures, if figures are kept and there are any.
    pub(crate) fn note(&self, placement: &str) {
        if self.took.is_empty() {
            return;
        }
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            figures::note(format!("a cancel, {placement}, {name}"), micros(&self.took, quantile), Unit::Us);
        }
    }

    /// The names of the columns.
    pub(crate) fn head() {
        println!(
            "  placement  offered/s  rested/s |  cancels    p50 µs    p99 µs  p99.9 µs    max µs | client late p99 µs  away %  unsent kB  lost %"
        );
    }

    pub(crate) fn print(&self, name: &str) {
        println!(
            "{name:>11} {:10.0} {:9.0} | {:8} {:9.1} {:9.1} {:9.1} {:9.1} | {:18.1} {:7.1} {:10} {:7.1}",
            self.offered,
            self.rested_per_s(),
            self.took.len(),
            micros(&self.took, 0.5),
            micros(&self.took, 0.99),
            micros(&self.took, 0.999),
            micros(&self.took, 1.0),
            micros(&self.late, 0.99),
            100.0 * self.away,
            self.unsent_bytes_max / 1_000,
            100.0 * self.lost
        );
    }
}
