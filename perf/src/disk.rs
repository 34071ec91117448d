//! What a disk has written, by the kernel's own count: of that the journal's writes are ours, and the rest others'.

use std::path::{Path, PathBuf};
use std::time::Instant;

use outcry::server::disk_count::DiskCount;

/// How much the disk that a folder is on has written until a moment.
pub(crate) struct Count {
    folder: PathBuf,
    writes: u64,
    at: Instant,
}

impl Count {
    /// None if no disk is behind the folder, as behind memory.
    pub(crate) fn now(folder: &Path) -> Option<Self> {
        Some(Self {
            folder: folder.to_owned(),
            writes: DiskCount::of(folder).ok()?.writes,
            at: Instant::now(),
        })
    }

    /// What others have written since, writes a second, beside `own` writes of ours.
    #[allow(clippy::cast_precision_loss, reason = "writes are far fewer than 2^53")]
    pub(crate) fn others_per_s(&self, own: u64) -> Option<f64> {
        let all = DiskCount::of(&self.folder).ok()?.writes.saturating_sub(self.writes);
        Some(all.saturating_sub(own) as f64 / self.at.elapsed().as_secs_f64())
    }
}
