//! What a disk has written, by the kernel's own count: of that the journal's writes are ours, and the rest others'.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{major, minor};

/// How much the disk that a folder is on has written until a moment.
pub(crate) struct Count {
    folder: PathBuf,
    writes: u64,
    at: Instant,
}

impl Count {
    /// None if no disk is behind the folder, as behind memory.
    pub(crate) fn now(folder: &Path) -> Option<Self> {
        Some(Self { folder: folder.to_owned(), writes: writes(folder)?, at: Instant::now() })
    }

    /// What others have written since, writes a second, beside `own` writes of ours.
    #[allow(clippy::cast_precision_loss, reason = "writes are far fewer than 2^53")]
    pub(crate) fn others_per_s(&self, own: u64) -> Option<f64> {
        let all = writes(&self.folder)?.saturating_sub(self.writes);
        Some(all.saturating_sub(own) as f64 / self.at.elapsed().as_secs_f64())
    }
}

/// Writes since the boot (the kernel's Documentation/block/stat.rst).
fn writes(folder: &Path) -> Option<u64> {
    let device = std::fs::metadata(folder).ok()?.dev();
    let path = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    parse(&std::fs::read_to_string(path).ok()?)
}

fn parse(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disks_writes_are_the_fifth_number() {
        for (stat, expected) in
            [("  17 0 99 3 4711 0 800 8 0 100\n", Some(4_711)), ("17 0 99 3", None), ("", None)]
        {
            assert_eq!(parse(stat), expected, "{stat}");
        }
    }
}
