//! What others have written to a disk, by the kernel's own counts: its writes less those of the journal.

use std::path::{Path, PathBuf};
use std::time::Instant;

use outcry::server::machine::disk_count::DiskCount;
use outcry::server::machine::disk_writers::DiskWriters;

/// How much the disk under a folder had written at a moment.
pub(crate) struct Count {
    folder: PathBuf,
    disk: DiskCount,
    writers: DiskWriters,
    server: u32,
    at: Instant,
}

/// What others wrote to a disk.
pub(crate) struct OthersWrites {
    pub(crate) per_s: f64,
    /// The process that wrote at least half of all bytes there, if one was seen to.
    pub(crate) who: Option<String>,
}

impl Count {
    /// None if the folder is on no disk, as one in memory.
    pub(crate) fn now(folder: &Path, server: u32) -> Option<Self> {
        Some(Self {
            folder: folder.to_owned(),
            disk: DiskCount::of(folder).ok()?,
            writers: DiskWriters::now(Some(server)),
            server,
            at: Instant::now(),
        })
    }

    /// What others have written since, if the server itself made `own` writes.
    #[allow(clippy::cast_precision_loss, reason = "writes are far fewer than 2^53")]
    pub(crate) fn others(&self, own: u64) -> Option<OthersWrites> {
        let disk = DiskCount::of(&self.folder).ok()?;
        let seconds = self.at.elapsed().as_secs_f64();
        let all = disk.writes.saturating_sub(self.disk.writes);
        let later = DiskWriters::now(Some(self.server));
        Some(OthersWrites {
            per_s: all.saturating_sub(own) as f64 / seconds,
            who: self.writers.most_of(&later, self.disk.bytes_until(&disk)),
        })
    }
}
