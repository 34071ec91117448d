//! Where time goes: histograms with one writer that anybody may read, and a request's laps.
//!
//! A loop records into its own histograms while it works; `/metrics` and others read them at any time, from
//! any thread. Nothing here reads a clock, allocates after start-up, locks, or keeps the writer waiting: a
//! record is a few loads and stores on lines that only its loop writes.

mod histogram;
mod laps;

pub use histogram::{Histogram, LARGEST_NS};
pub use laps::{Laps, Stage};
