//! How much room is left where the exchange writes, and what that means.
//!
//! Segments are in a folder of the data directory that may be a link or a mount, so both disks are checked, and the one
//! with less room decides.
//!
//! | free bytes | then |
//! |---|---|
//! | below `journal.disk_free_min` | the exchange takes cancels only, until the operator says otherwise |
//! | below half of it | the server stops in good order, while the log can still be closed, and exits with failure |

use std::path::{Path, PathBuf};

use crate::journal::{free_bytes, segments_directory};

/// Time between two checks.
const LOOK_EVERY_MS: u64 = 1_000;

/// What a check found out for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Cancels only from here on.
    CancelsOnly,
    /// The server stops.
    Stop,
}

/// A shortage and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short<'a> {
    /// What it means.
    pub(crate) shortage: Shortage,
    /// The folder on whose disk there is least room.
    pub(crate) folder: &'a Path,
    /// What is free there.
    pub(crate) free_bytes: u64,
}

/// Checks the disks from time to time.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    folders: [PathBuf; 2],
    free_bytes_min: u64,
    next_look_ms: u64,
    known: Option<Shortage>,
}

impl DiskWatch {
    /// A watch over the disk of `data_dir`, and over that of its segments.
    pub(crate) fn new(data_dir: &Path, free_bytes_min: u64) -> Self {
        let folders = [data_dir.to_path_buf(), segments_directory(data_dir)];
        Self { folders, free_bytes_min, next_look_ms: 0, known: None }
    }

    /// Checks if it is time to; returns a shortage only if it is worse than the one before.
    pub(crate) fn look(&mut self, elapsed_ms: u64) -> Option<Short<'_>> {
        if elapsed_ms < self.next_look_ms {
            return None;
        }
        self.next_look_ms = elapsed_ms + LOOK_EVERY_MS;
        // A disk that cannot be asked is the journal's to complain about.
        let free = |at: usize| Some((free_bytes(&self.folders[at]).ok()?, at));
        let (free_bytes, scarcest) = (0..self.folders.len()).filter_map(free).min()?;
        let shortage = self.judge(free_bytes)?;
        Some(Short { shortage, folder: &self.folders[scarcest], free_bytes })
    }

    /// Nothing could be done about the shortage that was found: the next check finds it anew.
    pub(crate) const fn forget(&mut self) {
        self.known = None;
    }

    fn judge(&mut self, free_bytes: u64) -> Option<Shortage> {
        let shortage = if free_bytes < self.free_bytes_min / 2 {
            Shortage::Stop
        } else if free_bytes < self.free_bytes_min {
            Shortage::CancelsOnly
        } else {
            self.known = None;
            return None;
        };
        let worse = match (self.known, shortage) {
            (None, _) | (Some(Shortage::CancelsOnly), Shortage::Stop) => true,
            (Some(_), _) => false,
        };
        self.known = Some(shortage);
        worse.then_some(shortage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_said_once_and_again_when_it_grows() {
        let mut watch = DiskWatch::new(Path::new("/"), 1_000);
        assert_eq!(watch.judge(1_000), None);
        assert_eq!(watch.judge(999), Some(Shortage::CancelsOnly));
        assert_eq!(watch.judge(500), None);
        assert_eq!(watch.judge(499), Some(Shortage::Stop));
        assert_eq!(watch.judge(499), None);
        assert_eq!(watch.judge(1_000), None);
        assert_eq!(watch.judge(999), Some(Shortage::CancelsOnly));
        assert_eq!(watch.judge(999), None);
        watch.forget();
        assert_eq!(watch.judge(999), Some(Shortage::CancelsOnly));
    }

    #[test]
    fn a_disk_is_looked_at_once_a_second() {
        let mut watch = DiskWatch::new(Path::new("/"), u64::MAX);
        assert!(watch.look(0).is_some());
        watch.known = None;
        assert_eq!(watch.look(LOOK_EVERY_MS - 1), None);
        assert!(watch.look(LOOK_EVERY_MS).is_some());
    }

    #[test]
    fn the_disk_with_less_room_decides_and_is_named() {
        // A file system without any room, whoever asks, beside one that has some.
        let none = Path::new("/proc");
        assert_eq!(free_bytes(none).ok(), Some(0));
        let data = tempfile::tempdir().expect("a folder");
        let found = |data_dir: &Path| {
            let mut watch = DiskWatch::new(data_dir, 1);
            watch.look(0).map(|short| (short.shortage, short.folder.to_path_buf(), short.free_bytes))
        };
        assert_eq!(found(data.path()), None, "there are no segments yet");
        let journal = segments_directory(data.path());
        std::os::unix::fs::symlink(none, &journal).expect("linked");
        assert_eq!(found(data.path()), Some((Shortage::CancelsOnly, journal, 0)));
        assert_eq!(found(none), Some((Shortage::CancelsOnly, none.to_path_buf(), 0)));
    }
}
