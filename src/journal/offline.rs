//! Reading a data directory without taking it: what `outcry journal verify`, `dump` and `replay`
//! stand on.
//!
//! Nothing is locked, made or changed. A server may run meanwhile: then the batch that it is
//! writing looks like a torn tail, and what is read of it depends on the moment; so a flaw counts as
//! damage only if it is still in the same place when all is read again. What only the log file of a
//! dead process has is not read, but counted: the next start brings it to the segments.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Fault;
use super::disk::Disk;
use super::frame::Frame;
use super::identity::{Identity, boot_id, is_in_use, log_name};
use super::logfile::LogFile;
use super::open::visit_between;
use super::scan::{Cut, Reach, Scan, scan_between};
use super::segment::{self, JournalId};
use super::snapshot::{Base, Snapshots};
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
    /// The highest durable mark in the segments.
    pub durable: Position,
    /// The torn tail, if there is one.
    pub cut: Option<Cut>,
    /// Whether a process has the directory.
    pub in_use: bool,
    /// Bytes of frames that only the log file has: the next start takes them in.
    pub log_bytes: u64,
    /// Where the log file was looked for.
    pub log_path: PathBuf,
    /// Whether there is one. It goes when a process stops in good order.
    pub log_found: bool,
}

/// The snapshots of a data directory, for looking at.
pub fn snapshots(data_dir: &Path) -> Result<Snapshots, Fault> {
    let journal = identity(data_dir)?.journal();
    Ok(Snapshots::new(data_dir, journal, Disk::default()))
}

/// Whether the first frames are still there. If not, a survey begins at a snapshot.
pub fn has_first_segment(data_dir: &Path) -> Result<bool, Fault> {
    let numbers = segment::numbers(&segment::directory(data_dir))?;
    Ok(numbers.first().is_none_or(|&first| first == 1))
}

fn identity(data_dir: &Path) -> Result<Identity, Fault> {
    Identity::load(data_dir)?.ok_or_else(|| Fault::Foreign {
        path: data_dir.to_path_buf(),
        what: "a data directory: it has no `identity`",
    })
}

/// Checks every byte of the segments in `data_dir` behind `base`, or from the first on, and calls
/// `visit` with each frame there, in order.
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
    let found = if in_use {
        let found = settled(&directory, &journal, base)?;
        let frames = found.frames - base.map_or(0, |base| base.frames);
        visit_first(frames, &directory, &journal, base, visit)?;
        found
    } else {
        visit_between(&directory, &journal, base, None, visit)?
    };
    let usual = || Path::new("/dev/shm").join(log_name(identity.exchange));
    let log_path = log_path.map_or_else(usual, Path::to_path_buf);
    let log_bytes = if in_use { 0 } else { in_log(&log_path, &identity, &found)? };
    Ok(Survey {
        frames: found.frames,
        segments: found.numbers.len() as u64,
        end: found.end,
        epoch: found.epoch,
        chain: found.chain,
        durable: found.durable,
        cut: found.cut,
        in_use,
        log_bytes,
        log_found: log_path.exists(),
        log_path,
    })
}

/// Reads until it succeeds, or finds the same damage twice.
fn settled(directory: &Path, journal: &JournalId, base: Option<&Base>) -> Result<Scan, Fault> {
    let mut before = None;
    loop {
        match scan_between(directory, journal, Reach { base, until: None }, None) {
            Err(Fault::Damaged(place)) if before.as_ref() != Some(&place) => before = Some(place),
            other => return other,
        }
    }
}

/// Visits the first `count` frames and looks at nothing behind them, which may be being written.
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

/// Bytes of committed frames behind the segments' end in the log at `path`.
fn in_log(path: &Path, identity: &Identity, found: &Scan) -> Result<u64, Fault> {
    let Some(left) = LogFile::read_only(path)? else {
        return Ok(0);
    };
    let ours = left.owner.exchange == *identity.exchange.as_bytes()
        && left.owner.boot == boot_id()?
        && left.owner.epoch == found.epoch
        && left.start <= found.end;
    let mut at = found.end;
    let mut frame = Vec::new();
    while ours && left.frame(at, &mut frame)? {
        at.0 += frame.len() as u64;
    }
    Ok(at.0 - found.end.0)
}
