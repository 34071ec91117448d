//! What a start found missing, until a start has gone on and its first frame says so.
//!
//! A start that raises the epoch and is refused after that leaves an epoch without a frame, which by itself would mean
//! that nothing is missing. So it writes down beforehand what it knows.
//!
//! | `doubt` in the data directory | |
//! |---|---|
//! | `epoch N` | the epoch that it was about to raise to |
//! | `bytes N` | what it cut off |
//! | `lost` | what was committed may be missing |

use std::path::{Path, PathBuf};

use super::Fault;
use super::disk::Disk;

/// What is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// Bytes that were found and dropped.
    pub(crate) cut_bytes: u64,
    /// Whether frames that were committed may be missing.
    pub(crate) lost: bool,
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("doubt")
}

impl Doubt {
    /// What is known of the start of `epoch`, which never went on: it wrote that down, or a later one did that did not
    /// even raise the epoch.
    pub(crate) fn of(data_dir: &Path, epoch: u32) -> Result<Self, Fault> {
        let path = path(data_dir);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(Fault::io("read", &path))?,
        };
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok());
        let epoch = u64::from(epoch);
        if number("epoch ").is_none_or(|about| about != epoch && about != epoch + 1) {
            return Ok(Self::default());
        }
        Ok(Self { cut_bytes: number("bytes ").unwrap_or(0), lost: text.lines().any(|line| line == "lost") })
    }

    /// Writes it down before the epoch is raised, if there is any.
    pub(crate) fn keep(self, data_dir: &Path, epoch: u32, disk: &Disk) -> Result<(), Fault> {
        if self == Self::default() {
            return Ok(());
        }
        let lost = if self.lost { "lost\n" } else { "" };
        disk.replace(&path(data_dir), format!("epoch {epoch}\nbytes {}\n{lost}", self.cut_bytes).as_bytes())
    }

    /// The epoch's first frame says it now. If the file stays, its epoch has frames, and it counts for nothing.
    pub(crate) fn clear(data_dir: &Path) {
        let _ = std::fs::remove_file(path(data_dir));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_down_counts_for_the_start_that_it_is_about_and_for_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let (path, nothing) = (path(directory.path()), Doubt::default());
        let all = Doubt { cut_bytes: 5, lost: true };
        assert_eq!(Doubt::of(directory.path(), 3).unwrap(), nothing);
        all.keep(directory.path(), 3, &Disk::default()).unwrap();
        // It may have died before it raised the epoch.
        for (epoch, known) in [(1, nothing), (2, all), (3, all), (4, nothing)] {
            assert_eq!(Doubt::of(directory.path(), epoch).unwrap(), known, "epoch {epoch}");
        }
        for (text, known) in [
            ("epoch 3\nbytes 5\n", Doubt { lost: false, ..all }),
            ("epoch 3\nlost\n", Doubt { cut_bytes: 0, ..all }),
            ("bytes 5\nlost\n", nothing),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Doubt::of(directory.path(), 3).unwrap(), known, "{text}");
        }
        Doubt::clear(directory.path());
        assert!(!path.exists());
    }
}
