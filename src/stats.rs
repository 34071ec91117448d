//! What time goes to: histograms of one writer that anybody may read, and a request's laps.
//!
//! A loop records into its own histograms while it works; `/metrics` and whoever else asks reads them
//! at any time, from any thread. Nothing here reads a clock, allocates after start-up, locks, or keeps the
//! writer waiting: a record is one load and one store on lines that only its loop writes.

mod histogram;
mod laps;

pub use histogram::{Histogram, LARGEST_NS};
pub use laps::{Laps, Stage};
