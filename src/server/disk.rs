//! How much room the data directory's disk has left, and what that means.
//!
//! | free bytes | then |
//! |---|---|
//! | below `journal.disk_free_min` | the exchange takes cancels only, until the operator says otherwise |
//! | below half of it | the server stops in good order, while the log can still be closed, and exits with failure |

use std::path::PathBuf;

/// Time between two looks.
const LOOK_EVERY_MS: u64 = 1_000;

/// What a look at the disk found out for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Cancels only from here on.
    CancelsOnly {
        /// What is free.
        free_bytes: u64,
    },
    /// The end.
    Stop {
        /// What is free.
        free_bytes: u64,
    },
}

/// Looks at a disk from time to time.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    data_dir: PathBuf,
    free_bytes_min: u64,
    next_look_ms: u64,
    known: Option<Shortage>,
}

impl DiskWatch {
    /// A watch over the disk of `data_dir`.
    pub(crate) fn new(data_dir: PathBuf, free_bytes_min: u64) -> Self {
        Self { data_dir, free_bytes_min, next_look_ms: 0, known: None }
    }

    /// Looks if it is time to; says only what is worse than what it said before.
    pub(crate) fn look(&mut self, elapsed_ms: u64) -> Option<Shortage> {
        if elapsed_ms < self.next_look_ms {
            return None;
        }
        self.next_look_ms = elapsed_ms + LOOK_EVERY_MS;
        // A disk that cannot be asked is the journal's to complain about.
        let disk = rustix::fs::statvfs(&self.data_dir).ok()?;
        self.judge(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn judge(&mut self, free_bytes: u64) -> Option<Shortage> {
        let shortage = if free_bytes < self.free_bytes_min / 2 {
            Shortage::Stop { free_bytes }
        } else if free_bytes < self.free_bytes_min {
            Shortage::CancelsOnly { free_bytes }
        } else {
            self.known = None;
            return None;
        };
        let worse = match (self.known, shortage) {
            (None, _) | (Some(Shortage::CancelsOnly { .. }), Shortage::Stop { .. }) => true,
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
        let mut watch = DiskWatch::new(PathBuf::from("/"), 1_000);
        assert_eq!(watch.judge(1_000), None);
        assert_eq!(watch.judge(999), Some(Shortage::CancelsOnly { free_bytes: 999 }));
        assert_eq!(watch.judge(500), None);
        assert_eq!(watch.judge(499), Some(Shortage::Stop { free_bytes: 499 }));
        assert_eq!(watch.judge(499), None);
        assert_eq!(watch.judge(1_000), None);
        assert_eq!(watch.judge(999), Some(Shortage::CancelsOnly { free_bytes: 999 }));
    }

    #[test]
    fn a_disk_is_looked_at_once_a_second() {
        let mut watch = DiskWatch::new(PathBuf::from("/"), u64::MAX);
        assert!(watch.look(0).is_some());
        watch.known = None;
        assert_eq!(watch.look(LOOK_EVERY_MS - 1), None);
        assert!(watch.look(LOOK_EVERY_MS).is_some());
    }
}
