//! Reading a data directory without taking it: what `outcry journal verify`, `dump` and `replay`
//! stand on.
//!
//! Nothing is locked, made or changed. A server may run meanwhile: then the batch that it is
//! writing looks like a torn tail, and what is read of it depends on the moment; so a flaw counts as
//! damage only if it is still in the same place when all is read again. What only the log file of a
//! dead process has is not read, but counted: the next start brings it to the segments.

use std::ops::ControlFlow;
use std::path::Path;

use super::Fault;
use super::frame::Frame;
use super::identity::{Identity, boot_id, is_in_use};
use super::logfile::LogFile;
use super::open::visit_all;
use super::scan::{Cut, Scan, scan};
use super::segment::{self, JournalId};
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
}

/// Checks every byte of the segments in `data_dir` and calls `visit` with each frame, in order.
pub fn survey<E: From<Fault>>(
    data_dir: &Path,
    log_path: Option<&Path>,
    visit: impl FnMut(&Frame<'_>) -> Result<(), E>,
) -> Result<Survey, E> {
    let Some(identity) = Identity::load(data_dir)? else {
        let path = data_dir.to_path_buf();
        return Err(Fault::Foreign { path, what: "a data directory: it has no `identity`" }.into());
    };
    let in_use = is_in_use(data_dir)?;
    let directory = segment::directory(data_dir);
    let journal = identity.journal();
    let found = if in_use {
        let found = settled(&directory, &journal)?;
        visit_first(found.frames, &directory, &journal, visit)?;
        found
    } else {
        visit_all(&directory, &journal, visit)?
    };
    let default = Path::new("/dev/shm").join(format!("outcry-{}", identity.exchange));
    let log_bytes = if in_use { 0 } else { in_log(log_path.unwrap_or(&default), &identity, &found)? };
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
    })
}

/// Reads until it succeeds, or finds the same damage twice.
fn settled(directory: &Path, journal: &JournalId) -> Result<Scan, Fault> {
    let mut before = None;
    loop {
        match scan(directory, journal, None) {
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
        scan(directory, journal, Some(&mut until_there))?;
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
