//! The files that keep the log.

/// The segments of one data directory, for reading.
#[derive(Debug)]
pub struct Segments {}
