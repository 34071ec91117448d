//! The snapshots of a data directory: which exist, which one a start takes, which are removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Base, SnapshotReader, SnapshotWriter};
use crate::domain::Position;
use crate::journal::Fault;
use crate::journal::archive::{self, Archive, ArchiveRow};
use crate::journal::disk::{Disk, files_with, free_bytes};
use crate::journal::fault::Place;
use crate::journal::frame::{Flaw, Frame};
use crate::journal::history::Segments;
use crate::journal::identity::Identity;
use crate::journal::log::Log;
use crate::journal::logfile::known_path;
use crate::journal::open::visit_between;
use crate::journal::segment::{self, JournalId};
use crate::memory::sections::Sink;
use crate::memory::wire::Damage;

/// How many whole snapshots are kept: the newest, and one more in case that gets damaged.
const KEPT: usize = 2;

/// The snapshots of one data directory, and the segments that they are made from.
#[derive(Debug)]
pub struct Snapshots {
    data_dir: PathBuf,
    journal: JournalId,
    disk: Disk,
    free_bytes_min: u64,
    /// Runs that were read from end to end; each is read once, as it never changes.
    read_runs: Mutex<BTreeSet<String>>,
}

/// A snapshot that was written and got its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its file.
    pub path: PathBuf,
    /// The position of its state.
    pub position: Position,
    /// How large it is.
    pub bytes: u64,
}

impl Snapshots {
    pub(crate) fn new(data_dir: &Path, journal: JournalId, disk: Disk) -> Self {
        let data_dir = data_dir.to_path_buf();
        Self { data_dir, journal, disk, free_bytes_min: 0, read_runs: Mutex::default() }
    }

    /// Snapshots without segments, for tests of what is in them.
    #[cfg(test)]
    pub(crate) fn alone(data_dir: &Path) -> Self {
        Self::new(data_dir, [7; 16], Disk::default())
    }

    /// The runs that `base` names; those that `beside` has are not read again.
    pub(crate) fn archive_of(&self, base: &Base, beside: &Archive) -> Result<Archive, Fault> {
        Archive::open(&self.directory(), &base.runs, &self.journal, beside)
    }

    /// These snapshots on another disk than the one that the journal writes to.
    #[must_use]
    pub(crate) fn on(self, disk: Disk) -> Self {
        Self { disk, ..self }
    }

    /// Refuses to write a snapshot that would leave less than `free_bytes_min` on the disk.
    #[must_use]
    pub fn leaving_free(self, free_bytes_min: u64) -> Self {
        Self { free_bytes_min, ..self }
    }

    fn directory(&self) -> PathBuf {
        self.data_dir.join("snapshots")
    }

    /// The files of all snapshots, the newest first.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, Fault> {
        let position = |path: &Path| path.file_stem()?.to_str()?.parse::<u64>().ok();
        let files = files_with(&self.directory(), "snapshot")?.into_iter();
        let mut found: Vec<_> = files.filter_map(|path| Some((position(&path)?, path))).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    /// Loads the newest whole snapshot, and notes of each newer one why it is not used. That there is none
    /// is a fault, unless the first segment is there, or no segment and no snapshot at all.
    pub fn newest<T>(
        &self,
        notes: &mut Vec<String>,
        load: impl FnMut(&mut SnapshotReader) -> Result<T, Fault>,
    ) -> Result<Option<(Base, T)>, Fault> {
        self.first_whole(self.paths()?, notes, load)
    }

    /// Loads the oldest whole snapshot: from there on, frames lead to all the others.
    pub fn oldest<T>(
        &self,
        notes: &mut Vec<String>,
        load: impl FnMut(&mut SnapshotReader) -> Result<T, Fault>,
    ) -> Result<Option<(Base, T)>, Fault> {
        let mut paths = self.paths()?;
        paths.reverse();
        self.first_whole(paths, notes, load)
    }

    fn first_whole<T>(
        &self,
        paths: Vec<PathBuf>,
        notes: &mut Vec<String>,
        mut load: impl FnMut(&mut SnapshotReader) -> Result<T, Fault>,
    ) -> Result<Option<(Base, T)>, Fault> {
        let mut damaged: Vec<String> = Vec::new();
        let mut found = None;
        for path in paths {
            let loaded = SnapshotReader::open(&path, &self.journal).and_then(|mut reader| {
                let state = load(&mut reader)?;
                // `load` may have stopped early; the rest must be whole too.
                while reader.next()?.is_some() {}
                Ok((reader.base().clone(), state))
            });
            match loaded {
                Ok(loaded) => {
                    found = Some(loaded);
                    break;
                }
                Err(fault) => damaged.push(fault.to_string()),
            }
        }
        if found.is_none()
            && let Some(missing) = self.missing_first(!damaged.is_empty())?
        {
            return Err(Fault::NoBeginning { missing, snapshots: damaged });
        }
        notes.extend(damaged.iter().map(|fault| format!("{fault}; it is not used")));
        Ok(found)
    }

    /// What a start continues after, as far as headers tell: the newest snapshot whose header can be read, if any.
    pub(crate) fn newest_header(&self) -> Result<Option<Base>, Fault> {
        let header = |path: &PathBuf| SnapshotReader::open(path, &self.journal).ok();
        Ok(self.paths()?.iter().find_map(header).map(|reader| reader.base().clone()))
    }

    /// Refuses a directory without a snapshot whose first segments are missing.
    pub(crate) fn refuse_emptied(&self) -> Result<(), Fault> {
        if !self.paths()?.is_empty() {
            return Ok(());
        }
        match self.missing_first(false)? {
            Some(missing) => Err(Fault::NoBeginning { missing, snapshots: Vec::new() }),
            None => Ok(()),
        }
    }

    /// The segment before the oldest one that is there, unless that is the first of all. If none is there,
    /// nothing was begun yet, unless a snapshot, whole or not, says otherwise, or the path of a log, which is written
    /// down once there is a segment, or an identity without a directory of segments, which is made first.
    fn missing_first(&self, was_begun: bool) -> Result<Option<PathBuf>, Fault> {
        let directory = segment::directory(&self.data_dir);
        let missing = match segment::numbers(&directory)?.first() {
            Some(&first) => {
                // Of another version of Outcry, it says so, and nothing is missing.
                segment::first_row(&directory, &self.journal, first)?;
                first.saturating_sub(1)
            }
            None => u64::from(
                was_begun
                    || known_path(&self.data_dir)?.is_some()
                    || !directory.exists() && Identity::path(&self.data_dir).exists(),
            ),
        };
        Ok((0 < missing).then(|| segment::path(&directory, missing)))
    }

    /// Calls `visit` with every frame after `base` up to `until`, which is durable; returns where the walk
    /// ended: the end of the batch that holds `until`.
    pub fn follow<E: From<Fault>>(
        &self,
        base: Option<&Base>,
        until: Position,
        visit: impl FnMut(&Frame<'_>) -> Result<(), E>,
    ) -> Result<Base, E> {
        let directory = segment::directory(&self.data_dir);
        let runs = base.map_or_else(Vec::new, |base| base.runs.clone());
        let found = visit_between(&directory, &self.journal, base, Some(until), visit)?;
        found.reaches(until, &directory)?;
        if found.segment == 0 {
            return Err(Fault::NothingToSnapshot.into());
        }
        Ok(Base { runs, ..Base::of(found, PathBuf::new(), 0) })
    }

    /// Writes rows that are over into runs, and adds the runs' names to `base`. The last run that it names
    /// is rewritten together with them if it has room; `again` decodes its rows. A run counts for nothing
    /// until a snapshot names it, so room for both is asked for at once.
    pub fn archive(
        &self,
        base: &mut Base,
        rows: Vec<ArchiveRow>,
        again: fn(&[u8]) -> Result<ArchiveRow, Damage>,
    ) -> Result<(), Fault> {
        if rows.is_empty() {
            return Ok(());
        }
        let directory = self.directory();
        self.disk.create_dir(&directory)?;
        let mut rows = rows;
        if let Some(unfilled) = self.last_run(base)?.unfilled()? {
            let last = base.runs.pop().expect("what has room is a run");
            for bytes in unfilled {
                let flaw = |damage: Damage| Flaw { field: damage.field, at: 0, expected: 0, found: 0 };
                let damaged = |damage| {
                    Fault::SnapshotDamaged(Place::of(flaw(damage), &directory.join(&last), 0, base.position))
                };
                rows.push(again(&bytes).map_err(damaged)?);
            }
        }
        rows.sort_unstable_by_key(|row| row.position);
        self.check_room(archive::bytes(&rows) + self.newest_bytes()?)?;
        for (index, rows) in rows.chunks(archive::ROWS_MAX).enumerate() {
            let name = format!("{:020}-{index:03}.run", base.position.0);
            let (path, unnamed) = (directory.join(&name), directory.join(format!("{name}.new")));
            let nameless = Base { entries: Vec::new(), runs: Vec::new(), ..base.clone() };
            let mut writer = SnapshotWriter::begin(&unnamed, &nameless, &self.journal, &self.disk)?;
            for (name, bytes) in archive::sections(rows) {
                writer.section(name, &bytes);
            }
            let written = writer.finish().and_then(|_| self.disk.rename(&unnamed, &path));
            written.inspect_err(|_| drop(std::fs::remove_file(&unnamed)))?;
            base.runs.push(name);
        }
        Ok(())
    }

    /// Writes the snapshot of the state at `base` with the hash `hash`; `put` adds its sections. After a fault everything
    /// is as before.
    pub fn write(
        &self,
        base: &mut Base,
        hash: u128,
        put: impl FnOnce(&mut SnapshotWriter),
    ) -> Result<Written, Fault> {
        let directory = self.directory();
        self.disk.create_dir(&directory)?;
        let path = directory.join(format!("{:020}.snapshot", base.position.0));
        let unnamed = path.with_extension("new");
        base.hash = hash;
        base.file.clone_from(&path);
        let written = self.write_unnamed(&unnamed, base, put).and_then(|bytes| {
            self.disk.rename(&unnamed, &path)?;
            Ok(bytes)
        });
        let bytes = written.inspect_err(|_| {
            // Half a snapshot is of no use, and its room may be what was missing.
            let _ = std::fs::remove_file(&unnamed);
        })?;
        Ok(Written { path, position: base.position, bytes })
    }

    fn write_unnamed(
        &self,
        unnamed: &Path,
        base: &Base,
        put: impl FnOnce(&mut SnapshotWriter),
    ) -> Result<u64, Fault> {
        self.check_room(self.newest_bytes()?)?;
        let mut writer = SnapshotWriter::begin(unnamed, base, &self.journal, &self.disk)?;
        put(&mut writer);
        let bytes = writer.finish()?;
        self.check_room(0)?;
        Ok(bytes)
    }

    /// What the next snapshot is expected to take: as much as the newest one, 0 without one.
    fn newest_bytes(&self) -> Result<u64, Fault> {
        let newest = self.paths()?.into_iter().next();
        Ok(newest.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |about| about.len()))
    }

    /// Refuses to take `bytes` if less would be left than must stay free.
    fn check_room(&self, bytes: u64) -> Result<(), Fault> {
        let free_bytes =
            free_bytes(&self.data_dir).map_err(Fault::io("look at the disk of", &self.data_dir))?;
        if self.free_bytes_min.saturating_add(bytes) <= free_bytes {
            return Ok(());
        }
        let (directory, free_bytes_min) = (self.directory(), self.free_bytes_min);
        Err(Fault::NoRoomForSnapshot { directory, bytes, free_bytes, free_bytes_min })
    }

    /// Removes the oldest segments: all but the newest `keep` sealed ones, as far as neither two whole
    /// snapshots nor the log's ring need them, nor whoever has only followed the log up to `followed`.
    /// Returns how many were removed. Runs that both snapshots name are the only ones there are, so each has to be
    /// whole too.
    ///
    /// A death in between leaves a shorter history, which begins at a later segment.
    pub fn give_back(
        &self,
        segments: &Segments,
        log: &Log,
        followed: Position,
        keep: u64,
    ) -> Result<u64, Fault> {
        let read = log.oldest().min(followed);
        let mut needed = segments.newest().saturating_sub(keep).min(segments.segment_of(read));
        let kept = self.newest_whole()?;
        if kept.len() < KEPT {
            return Ok(0);
        }
        for base in &kept {
            needed = needed.min(base.segment);
        }
        let directory = segment::directory(&self.data_dir);
        let mut old = segment::numbers(&directory)?.into_iter().filter(|&number| number < needed).peekable();
        if old.peek().is_some() {
            kept.iter().try_for_each(|base| self.read_runs_of(base))?;
        }
        let mut gone = 0;
        segments.forget_before(needed);
        for number in old {
            self.disk.remove(&segment::path(&directory, number))?;
            // One by one, so that the rest has no hole whenever the machine stops.
            self.disk.sync_dir(&directory)?;
            gone += 1;
        }
        Ok(gone)
    }

    /// Reads each run that `base` names from end to end, unless that was done before.
    fn read_runs_of(&self, base: &Base) -> Result<(), Fault> {
        let mut read = self.read_runs.lock().unwrap_or_else(PoisonError::into_inner);
        for run in &base.runs {
            if !read.contains(run) {
                self.whole(&self.directory().join(run), |_| Ok(()))?;
                read.insert(run.clone());
            }
        }
        Ok(())
    }

    /// Every snapshot, the newest first: its header if it and its runs are whole and `load` finds nothing
    /// wrong, or else the fault. One that a server removes meanwhile is left out.
    pub fn check(
        &self,
        mut load: impl FnMut(&mut SnapshotReader) -> Result<(), Fault>,
    ) -> Result<Vec<Result<Base, Fault>>, Fault> {
        let mut check = |path: &Path| {
            let base = self.whole(path, &mut load)?;
            for run in &base.runs {
                self.whole(&self.directory().join(run), |_| Ok(()))?;
            }
            Ok(base)
        };
        let mut checked = Vec::new();
        for path in self.paths()? {
            let found = check(&path);
            if found.is_ok() || path.exists() {
                checked.push(found);
            }
        }
        Ok(checked)
    }

    /// Reads a snapshot or a run to its end.
    fn whole(
        &self,
        path: &Path,
        load: impl FnOnce(&mut SnapshotReader) -> Result<(), Fault>,
    ) -> Result<Base, Fault> {
        let mut reader = SnapshotReader::open(path, &self.journal)?;
        load(&mut reader)?;
        while reader.next()?.is_some() {}
        Ok(reader.base().clone())
    }

    /// Removes what snapshots left that were not finished, files without their names and runs that no snapshot names;
    /// returns how many. What comes back when the machine stops is found again by the next start.
    pub fn forget_unfinished(&self) -> Result<u64, Fault> {
        let mut unfinished = files_with(&self.directory(), "new")?;
        unfinished.append(&mut self.unnamed_runs()?);
        for path in &unfinished {
            std::fs::remove_file(path).map_err(Fault::io("remove", path))?;
        }
        Ok(unfinished.len() as u64)
    }

    /// The newest snapshots, at most [`KEPT`], from which a start could continue and the next be made.
    fn newest_whole(&self) -> Result<Vec<Base>, Fault> {
        let whole = |path: PathBuf| {
            let base = self.whole(&path, |_| Ok(())).ok()?;
            self.last_run(&base).ok()?.check_unfilled().ok()?;
            base.runs.iter().all(|run| self.directory().join(run).exists()).then_some(base)
        };
        Ok(self.paths()?.into_iter().filter_map(whole).take(KEPT).collect())
    }

    /// Only the last run that `base` names.
    fn last_run(&self, base: &Base) -> Result<Archive, Fault> {
        let last = &base.runs[base.runs.len().saturating_sub(1)..];
        Archive::open(&self.directory(), last, &self.journal, &Archive::default())
    }

    /// Removes snapshots that are older than the two newest whole ones, whole or damaged. A damaged one does not count as
    /// kept: otherwise the only other whole one would make way for it.
    pub fn forget_old(&self) -> Result<(), Fault> {
        let directory = self.directory();
        let kept = self.newest_whole()?;
        let oldest = kept.get(KEPT - 1).map(|base| base.file.clone());
        let paths = self.paths()?;
        let old = paths.into_iter().skip_while(|path| Some(path) != oldest.as_ref()).skip(1);
        let mut any = false;
        for path in old {
            self.disk.remove(&path)?;
            any = true;
        }
        for path in self.unnamed_runs()? {
            self.disk.remove(&path)?;
            any = true;
        }
        if any { self.disk.sync_dir(&directory) } else { Ok(()) }
    }

    /// The runs that no snapshot names; none as long as some snapshot cannot be read.
    fn unnamed_runs(&self) -> Result<Vec<PathBuf>, Fault> {
        let mut named = Vec::new();
        for path in self.paths()? {
            match SnapshotReader::open(&path, &self.journal) {
                Ok(reader) => named.extend(reader.base().runs.iter().cloned()),
                Err(_) => return Ok(Vec::new()),
            }
        }
        let mut unnamed = files_with(&self.directory(), "run")?;
        unnamed.retain(|path| !named.iter().any(|name| path.ends_with(name)));
        Ok(unnamed)
    }
}
