//! Folders for a server's data. `scripts/perf bench` names places whose content it removes if a signal ends the benchmark.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use super::figures::{IN_MEMORY, ON_DISK};
use tempfile::TempDir;

/// A folder in shared memory: the disk is not measured, and nothing stays on it.
pub(crate) fn in_memory() -> TempDir {
    folder(IN_MEMORY, "/dev/shm")
}

/// A folder on the disk on which cargo builds; where temporary files go is often memory.
pub(crate) fn on_disk() -> TempDir {
    folder(ON_DISK, env!("CARGO_TARGET_TMPDIR"))
}

/// A folder that goes when the value is dropped, in the place that a variable names.
fn folder(variable: &str, place: &str) -> TempDir {
    let place = std::env::var_os(variable).unwrap_or_else(|| place.into());
    tempfile::tempdir_in(place).expect("a temporary directory")
}
