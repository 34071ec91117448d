//! The ids of a data directory's streams. Each start makes one; those of earlier starts stay good as long as all that was
//! told under them has happened.
//!
//! A client comes back with the number of the last event that it was told of, and with the id under which it was told.
//! Numbers follow from the journal alone. A backup that is put in the directory's place goes on from an earlier time with
//! other events of the same numbers: what was told since is of an id that the backup does not know.
//!
//! | `stream-ids` in the data directory | so earlier ids |
//! |---|---|
//! | was written by the last start that went on, after which nothing is missing | stay good, the newest [`KEPT`] |
//! | is of another start than the journal's last one, or of the exchange that this one is a copy of, or cannot be read | are forgotten |
//! | is there, but frames that clients were told of may be lost | are forgotten |
//!
//! A start writes it once the journal has gone on, before anybody is told anything; one that is refused leaves it, and the
//! journal knows of a loss until then.
//!
//! A client whose id was forgotten reads anew, as one that was away for too long.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::secret;
use crate::journal::Disk;
use crate::reader::StreamIds;

/// Ids that are kept, this start's included: as many starts may a client have been away for.
const KEPT: usize = 64;

/// One start of one exchange. A copy with an identity of its own is another exchange, whose history parts from its
/// original's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) exchange: u128,
    pub(super) epoch: u32,
}

impl Start {
    fn line(self) -> String {
        format!("epoch {} of {:032x}", self.epoch, self.exchange)
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("stream-ids")
}

/// The ids for a new start, where `before` is the last one that went on. Earlier ones are among them if the history
/// `is_continued`: nothing that clients were told is missing.
pub(super) fn ids(data_dir: &Path, before: Start, is_continued: bool) -> Result<StreamIds, String> {
    let path = path(data_dir);
    let mut ids = if is_continued { earlier(&path, before) } else { Vec::new() };
    let now = secret::random_hex().map_err(|fault| format!("stream ids: {fault}"))?;
    ids.push(now.clone());
    ids.drain(..ids.len().saturating_sub(KEPT));
    Ok(StreamIds { now: now.into(), known: ids.into_iter().map(Into::into).collect() })
}

/// Writes down the ids of a start.
pub(super) fn keep(data_dir: &Path, start: Start, ids: &StreamIds) -> Result<(), String> {
    let text = format!("{}\n{}\n", start.line(), ids.known.join("\n"));
    Disk::default().replace(&path(data_dir), text.as_bytes()).map_err(|fault| format!("stream ids: {fault}"))
}

/// The ids in a file that the start `before` wrote; none in any other.
fn earlier(path: &Path, before: Start) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|fault| {
        if fault.kind() != ErrorKind::NotFound {
            tracing::warn!("stream ids: {}: {fault}; clients that come back read anew", path.display());
        }
        String::new()
    });
    let mut lines = text.lines();
    let is_of = lines.next().is_some_and(|line| line == before.line());
    if is_of { lines.map(str::to_owned).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(epoch: u32) -> Start {
        Start { exchange: 1, epoch }
    }

    /// Starts after the start of epoch `before`, and says which of these ids are still good.
    fn start(data_dir: &Path, before: u32, is_continued: bool, earlier: &[&str]) -> (String, Vec<bool>) {
        let ids = ids(data_dir, of(before), is_continued).expect("found");
        assert!(ids.know(&ids.now) && !ids.know("") && !ids.know("epoch 1"));
        keep(data_dir, of(before + 1), &ids).expect("written");
        let known = earlier.iter().map(|id| ids.know(id)).collect();
        (ids.now.into(), known)
    }

    #[test]
    fn an_id_is_good_as_long_as_nothing_that_was_told_under_it_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let [data, backup] = ["data", "backup"].map(|name| folder.path().join(name));
        fs::create_dir(&data).expect("made");
        fs::create_dir(&backup).expect("made");
        let copy = |from: &Path, to: &Path| fs::copy(path(from), path(to)).expect("copied");
        let (first, _) = start(&data, 0, true, &[]);
        copy(&data, &backup);
        let (second, known) = start(&data, 1, true, &[&first]);
        assert_eq!(known, [true]);
        let (third, known) = start(&data, 2, true, &[&first, &second]);
        assert_eq!(known, [true, true]);
        // The whole directory is put back: what the second start told has not happened.
        copy(&backup, &data);
        let (other, known) = start(&data, 1, true, &[&first, &second, &third]);
        assert_eq!(known, [true, false, false]);
        // The journal alone is put back.
        let (_, known) = start(&data, 1, true, &[&first, &other]);
        assert_eq!(known, [false, false]);
        // What was told may be lost.
        let (last, _) = start(&data, 2, true, &[]);
        let (_, known) = start(&data, 3, false, &[&last]);
        assert_eq!(known, [false]);
        for damaged in ["", "epoch x\n", "epoch 4\n\u{1}", "no epoch"] {
            fs::write(path(&data), damaged).expect("written");
            start(&data, 4, true, &[]);
        }
        fs::write(path(&data), [0xFF]).expect("written");
        start(&data, 5, true, &[]);
    }

    #[test]
    fn a_start_that_was_refused_forgets_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path();
        let (first, _) = start(data, 0, true, &[]);
        // Refused before it raised the epoch, or after that.
        ids(data, of(1), true).expect("found");
        let (second, known) = start(data, 1, true, &[&first]);
        assert_eq!(known, [true]);
        ids(data, of(2), false).expect("found");
        let (third, known) = start(data, 2, true, &[&first, &second]);
        assert_eq!(known, [true, true]);
        // A copy got an identity of its own, whether or not the start that gave it went on.
        let copy = Start { exchange: 2, ..of(3) };
        let ids = ids(data, copy, true).expect("found");
        assert!([first, second, third].iter().all(|id| !ids.know(id)));
    }

    #[test]
    fn only_so_many_ids_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ids: Vec<String> = Vec::new();
        for before in 0..200 {
            let newest: Vec<&str> = ids.iter().rev().map(String::as_str).collect();
            let (id, known) = start(folder.path(), before, true, &newest);
            let good = known.iter().take_while(|known| **known).count();
            assert_eq!((good, known.iter().filter(|known| **known).count()), (ids.len().min(KEPT - 1), good));
            ids.push(id);
        }
    }
}
