//! Reading a data directory without taking it over: the basis of `outcry journal verify`, `dump` and `replay`.
//!
//! Nothing is locked, made or changed. A server may run meanwhile: then the batch that it is writing looks like a
//! torn tail, and what is read of it depends on the moment; so a flaw counts as damage only if it is found in the
//! same place when all is read again. The log file of a dead process is compared with the segments as the next start
//! will do it, with the same verdict. What only the log has is counted but not handed out, as the next start brings
//! it to the segments. Whose the directory is does not matter here: a copy is as good or bad as its bytes, and the
//! notes say what its start will ask for.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Fault;
use super::disk::Disk;
use super::frame::Frame;
use super::history::Segments;
use super::identity::{Identity, boot_id, is_in_use, place_at};
use super::logfile::{Left, LogFile, Owner, known_path, left_behind};
use super::open::{Claimed, SHARED_MEMORY, forget_newest, usual_log_path, visit_between};
use super::scan::{Cut, Reach, Scan, first_of, scan_between};
use super::segment::{self, JournalId};
use super::snapshot::{Base, Snapshots};
use super::verdict::{Heir, fit, inherit, refuse_elsewhere};
use crate::domain::Position;

/// What the segments of a data directory hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Frames that are not padding.
    pub frames: u64,
    /// Segment files.
    pub segments: u64,
    /// The end of the last frame.
    pub end: Position,
    /// The epoch of the last start.
    pub epoch: u32,
    /// The hash of all frames, whatever files they are in.
    pub chain: u64,
    /// The torn tail, if there is one.
    pub cut: Option<Cut>,
    /// Whether a process has locked the directory.
    pub in_use: bool,
    /// Bytes of frames that only the log file has: the next start adopts them.
    pub log_bytes: u64,
    /// Where the log file was looked for.
    pub log_path: PathBuf,
    /// Whether there is one, there or where the last start had it; an empty file counts as none. A process that stops in
    /// good order removes it.
    pub log_found: bool,
    /// What the next start will say of it.
    pub notes: Vec<String>,
}

/// Whether a journal was begun in this directory: it has segments, or the file `identity`, which comes first.
#[must_use]
pub fn was_begun(data_dir: &Path) -> bool {
    let has_segments = match segment::numbers(&segment::directory(data_dir)) {
        Ok(numbers) => !numbers.is_empty(),
        Err(fault) => matches!(fault, Fault::SegmentMissing(_) | Fault::Foreign { .. }),
    };
    has_segments || Identity::path(data_dir).exists()
}

/// Why a start on `data_dir` would be refused, as far as that shows without reading frames: whose the directory and the
/// log at `log_path` are, and whether the segments that it reads are as long as they were made. None of a directory that
/// is in use or has no journal.
#[must_use]
pub fn refusal(data_dir: &Path, log_path: Option<&Path>) -> Option<Fault> {
    if !was_begun(data_dir) {
        return None;
    }
    let look = || {
        let identity = identity(data_dir)?;
        if is_in_use(data_dir)? {
            return Ok(());
        }
        let directory = segment::directory(data_dir);
        let snapshots = snapshots(data_dir)?;
        snapshots.refuse_emptied()?;
        let numbers = segment::numbers(&directory)?;
        let first = first_of(&directory, &numbers, snapshots.newest_header()?.as_ref())?;
        for number in numbers.into_iter().filter(|number| first <= *number) {
            segment::check_length(&directory, &identity.journal(), number)?;
        }
        let log_path = log_path_of(log_path, data_dir, identity)?;
        let log = LogFile::read_only(&log_path)?;
        judged(log, &log_path, &heir(data_dir, identity)?, &mut Vec::new()).map(drop)
    };
    look().err()
}

/// The snapshots of a data directory, for reading.
pub fn snapshots(data_dir: &Path) -> Result<Snapshots, Fault> {
    let journal = identity(data_dir)?.journal();
    Ok(Snapshots::new(data_dir, journal, Disk::default()))
}

/// Whether the first frames are still there, or there never were any. If not, a survey has to begin at a snapshot.
pub fn has_first_segment(data_dir: &Path) -> Result<bool, Fault> {
    let directory = segment::directory(data_dir);
    match segment::numbers(&directory)?.first() {
        Some(&first) => Ok(first == 1),
        None => Ok(snapshots(data_dir)?.paths()?.is_empty()
            && known_path(data_dir)?.is_none()
            && directory.is_dir()),
    }
}

/// How many of the first segments are not there. Whether they were given back or lost, nothing here says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone(pub u64);

impl Gone {
    /// Those before the first of `numbers`.
    pub(crate) fn before(numbers: &[u64]) -> Self {
        Self(numbers.first().map_or(0, |first| first.saturating_sub(1)))
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => out.write_str("every segment is there"),
            1 => out.write_str("segment 1 is not there: given back, or lost"),
            last => write!(out, "segments 1 to {last} are not there: given back, or lost"),
        }
    }
}

/// How many of the first segments of `data_dir` are not there.
pub fn gone(data_dir: &Path) -> Result<Gone, Fault> {
    Ok(Gone::before(&segment::numbers(&segment::directory(data_dir))?))
}

fn identity(data_dir: &Path) -> Result<Identity, Fault> {
    std::fs::read_dir(data_dir).map_err(Fault::io("look for a data directory", data_dir))?;
    Identity::load(data_dir)?.ok_or_else(|| Fault::Foreign {
        path: data_dir.to_path_buf(),
        what: "a data directory: it has no `identity`; restore it",
    })
}

/// Checks every byte of the segments in `data_dir` after `base`, or from the first on, and calls `visit` with each
/// frame there, in order.
pub fn survey<E: From<Fault>>(
    data_dir: &Path,
    log_path: Option<&Path>,
    base: Option<&Base>,
    visit: impl FnMut(&Frame<'_>) -> Result<(), E>,
) -> Result<Survey, E> {
    let identity = identity(data_dir)?;
    let in_use = is_in_use(data_dir)?;
    let directory = segment::directory(data_dir);
    let journal = identity.journal();
    let mut found = if in_use {
        let found = settled(&directory, &journal, base)?;
        let frames = found.frames - base.map_or(0, |base| base.frames);
        visit_first(frames, &directory, &journal, base, visit)?;
        found
    } else {
        forget_newest(&directory)?;
        visit_between(&directory, &journal, base, None, visit)?
    };
    let log_path = log_path_of(log_path, data_dir, identity)?;
    let mut notes = Vec::new();
    let (log_found, log_bytes) = if in_use {
        (log_path.exists(), 0)
    } else {
        in_log(&log_path, data_dir, identity, &mut found, &mut notes)?
    };
    Ok(Survey {
        frames: found.frames,
        segments: found.numbers.len() as u64,
        end: found.end,
        epoch: found.epoch,
        chain: found.chain,
        cut: found.cut,
        in_use,
        log_bytes,
        log_found,
        log_path,
        notes,
    })
}

/// Scans until a scan succeeds, or meets the same fault twice. A server may have made a segment, and packed the one
/// before, after the directory was listed.
fn settled(directory: &Path, journal: &JournalId, base: Option<&Base>) -> Result<Scan, Fault> {
    let mut before = None;
    loop {
        let found = scan_between(directory, journal, Reach { base, until: None }, None);
        let fault = found.as_ref().err().map(Fault::to_string);
        if fault.is_none() || fault == before {
            return found;
        }
        before = fault;
    }
}

/// Visits the first `count` frames and reads nothing past them, where a server may be writing.
fn visit_first<E: From<Fault>>(
    count: u64,
    directory: &Path,
    journal: &JournalId,
    base: Option<&Base>,
    mut visit: impl FnMut(&Frame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut left = count;
    let mut refusal = None;
    let mut until_there = |frame: &Frame<'_>| {
        left -= 1;
        match visit(frame) {
            Ok(()) if 0 < left => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(()),
            Err(error) => {
                refusal = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    if 0 < count {
        scan_between(directory, journal, Reach { base, until: None }, Some(&mut until_there))?;
    }
    refusal.map_or(Ok(()), Err)
}

/// The log's file that a start on `data_dir` looks for; none before the first start, if no setting names it.
#[must_use]
pub fn log_path(named: Option<&Path>, data_dir: &Path) -> Option<PathBuf> {
    match named {
        Some(path) => Some(path.to_path_buf()),
        None => log_path_of(None, data_dir, identity(data_dir).ok()?).ok(),
    }
}

/// Whether nobody but the owner of `data_dir` can miss the log at `path`: its last process left it, or it holds nothing.
/// False if a process has it, or if whose it is cannot be told.
#[must_use]
pub fn log_is_of(path: &Path, data_dir: &Path) -> bool {
    let is_its = |owner: &Owner| place_at(data_dir).is_ok_and(|place| owner.place == place);
    let left =
        || left_behind(path.to_path_buf()).is_ok_and(|left| left.is_none_or(|(_, owner)| is_its(&owner)));
    !LogFile::is_in_use(path) && left()
}

/// Where the log is that a start looks for.
fn log_path_of(log_path: Option<&Path>, data_dir: &Path, identity: Identity) -> Result<PathBuf, Fault> {
    if let Some(path) = log_path {
        return Ok(path.to_path_buf());
    }
    let data_dir = data_dir.canonicalize().map_err(Fault::io("look at", data_dir))?;
    Ok(usual_log_path(Path::new(SHARED_MEMORY), &data_dir, identity.exchange))
}

/// Who would start on this directory, and claims nothing.
fn heir(data_dir: &Path, identity: Identity) -> Result<Heir<'_>, Fault> {
    let place = place_at(data_dir).map_err(Fault::io("look at", data_dir))?;
    let (exchange, claimed) = (identity.exchange, Claimed::AsItIs);
    Ok(Heir { exchange, boot: boot_id()?, data_dir, place, claimed })
}

/// What `left`, the log at `path`, is to the heir: its own, stale (none), or a reason to refuse.
fn judged(
    left: Option<Left>,
    path: &Path,
    heir: &Heir<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Left>, Fault> {
    if LogFile::is_in_use(path) {
        Err(Fault::LogInUse(path.to_path_buf()))
    } else {
        inherit(left, heir, notes)
    }
}

/// Takes a fault for a note on the next start, unless it says that bytes are not what was written.
fn unless_harm(fault: Fault, notes: &mut Vec<String>) -> Result<(), Fault> {
    match fault {
        Fault::Damaged(_) | Fault::LogDamaged(_) | Fault::LogAhead { .. } | Fault::LogDiffers { .. } => {
            Err(fault)
        }
        fault => {
            notes.push(format!("the next start is refused: {fault}"));
            Ok(())
        }
    }
}

/// Whether there is a log at `path`, and the bytes of committed frames that it has past the segments' end.
fn in_log(
    path: &Path,
    data_dir: &Path,
    identity: Identity,
    found: &mut Scan,
    notes: &mut Vec<String>,
) -> Result<(bool, u64), Fault> {
    let left = LogFile::read_only(path)?;
    let is_there = left.is_some();
    let heir = heir(data_dir, identity)?;
    let left = judged(left, path, &heir, notes).or_else(|fault| unless_harm(fault, notes).map(|()| None))?;
    let entries = std::mem::take(&mut found.entries);
    let segments = Arc::new(Segments::new(&segment::directory(data_dir), identity.journal(), entries));
    let Some(fit) = fit(left, found, &segments, &heir, notes)? else {
        let elsewhere = refuse_elsewhere(Path::new(SHARED_MEMORY), path, &heir, found, &segments);
        let is_elsewhere = elsewhere.or_else(|fault| unless_harm(fault, notes).map(|()| false))?;
        return Ok((is_there || is_elsewhere, 0));
    };
    Ok((is_there, fit.more_bytes))
}
