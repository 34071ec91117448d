//! Whether the segments and the log file that a process left belong together: what a start continues
//! with or refuses, and what `outcry journal verify` says of it beforehand.

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::Fault;
use super::history::{History, Segments};
use super::logfile::{Left, LogFile, Owner, in_use, known_path, left_elsewhere};
use super::open::Claimed;
use super::scan::Scan;
use crate::domain::Position;

/// Who wants to continue with a log file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heir<'a> {
    pub(crate) exchange: Uuid,
    pub(crate) boot: [u8; 16],
    pub(crate) data_dir: &'a Path,
    /// Device and inode of the data directory.
    pub(crate) place: [u64; 2],
    pub(crate) claimed: Claimed,
}

/// A log file that continues where the segments end.
#[derive(Debug)]
pub(crate) struct Fit {
    pub(crate) left: Left,
    /// Bytes of committed frames that only it has.
    pub(crate) more_bytes: u64,
}

/// Judges whose the log file is: the heir's, stale (none), or a reason to refuse.
pub(crate) fn inherit(
    left: Option<Left>,
    heir: &Heir<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Left>, Fault> {
    let Some(left) = left else {
        return Ok(None);
    };
    let path = left.path.clone();
    if left.owner.exchange != *heir.exchange.as_bytes() {
        let what = "the log of this exchange: another one's uuid is in it; give another log_path";
        return Err(Fault::Foreign { path, what });
    }
    if left.owner.boot != heir.boot {
        notes.push(format!("log_path: {} is of another boot and stale; ignored", path.display()));
        return Ok(None);
    }
    if left.owner.place != heir.place && heir.claimed != Claimed::AdoptLog {
        return Err(Fault::LogOfOtherDirectory {
            log: path,
            owner: left.owner.data_dir,
            data_dir: heir.data_dir.to_path_buf(),
        });
    }
    left.check_marks()?;
    Ok(Some(left))
}

/// Compares a log file with the segments; none if it is stale. Every frame in it is checked, so
/// nothing is left to refuse for whoever adopts what only the log has.
pub(crate) fn fit(
    left: Option<Left>,
    found: &Scan,
    segments: &Arc<Segments>,
    heir: &Heir<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Fit>, Fault> {
    let Some(left) = not_stale(left, found, notes) else {
        return Ok(None);
    };
    refuse_ahead(&left, found, heir)?;
    compare(&left, segments, found.end, heir)?;
    let (mut at, mut frame) = (found.end, Vec::new());
    while left.frame(at, &mut frame)? {
        at.0 += frame.len() as u64;
    }
    Ok(Some(Fit { left, more_bytes: at.0 - found.end.0 }))
}

/// Refuses to go on without a log in `shared_memory`, or where the heir's last process had it, other than the one at
/// `log_path`, that this process left and that alone has some frames, or may have, as it is damaged or the segments are.
/// For an heir with a new identity any log that its directory left is a reason, as it says that it is a copy. True if
/// there is a log and segments have all of it.
pub(crate) fn refuse_elsewhere(
    shared_memory: &Path,
    log_path: &Path,
    heir: &Heir<'_>,
    found: &Scan,
    segments: &Arc<Segments>,
) -> Result<bool, Fault> {
    let known = known_path(heir.data_dir)?;
    refuse_beside_original(known.as_deref().filter(|known| *known != log_path), heir)?;
    let places = (shared_memory, known);
    let Some((log, owner)) = left_elsewhere(places, log_path, heir, found)? else {
        return Ok(false);
    };
    let data_dir = heir.data_dir.to_path_buf();
    if heir.claimed == Claimed::NewIdentity {
        return Err(Fault::NoCopy { log, data_dir });
    }
    let of_other = |log| {
        Err(Fault::LogOfOtherDirectory { log, owner: owner.data_dir.clone(), data_dir: data_dir.clone() })
    };
    let elsewhere = |log| {
        let owner = Uuid::from_bytes(owner.exchange);
        Err(Fault::LogElsewhere { log, owner, data_dir: data_dir.clone(), exchange: heir.exchange })
    };
    let may_be_copy = owner.place != heir.place && heir.claimed == Claimed::AsItIs;
    let is_named = owner.exchange == *heir.exchange.as_bytes();
    match fit_elsewhere(&log, found, segments, heir) {
        // Its original went on after the copy was made, or may have.
        Err(Fault::LogAhead { .. } | Fault::LogDamaged(_) | Fault::Damaged(_)) if may_be_copy => {
            of_other(log)
        }
        Err(fault @ Fault::Io { .. }) => Err(fault),
        // Both went on.
        Err(_) if may_be_copy => Ok(false),
        // `identity` is to be put right first.
        Err(Fault::LogAhead { .. }) if !is_named => elsewhere(log),
        Err(fault) => Err(fault),
        Ok(None) => Ok(false),
        Ok(Some(fit)) if fit.more_bytes == 0 => Ok(true),
        Ok(Some(_)) if may_be_copy => of_other(log),
        // Of a start that never went on: nobody was told anything.
        Ok(Some(fit)) if found.is_closed() && fit.left.durable <= found.end => Ok(false),
        Ok(Some(_)) => elsewhere(log),
    }
}

/// `fit` of a log that is not where the heir looks for it. None if it is of another exchange whose directory was in this
/// one's place, as an inode is used again: then it differs from the segments, or has nothing in common with them. With
/// the same frames it is the heir's, and `identity` was changed.
fn fit_elsewhere(
    log: &Path,
    found: &Scan,
    segments: &Arc<Segments>,
    heir: &Heir<'_>,
) -> Result<Option<Fit>, Fault> {
    let Some(left) = LogFile::read_only(log)? else {
        return Ok(None);
    };
    left.check_marks()?;
    if left.owner.exchange != *heir.exchange.as_bytes() {
        if found.end < left.start {
            return Ok(None);
        }
        match compare(&left, segments, found.end, heir) {
            Err(fault @ (Fault::LogDamaged(_) | Fault::Io { .. })) => return Err(fault),
            Err(_) => return Ok(None),
            Ok(()) => {}
        }
    }
    fit(Some(left), found, segments, heir, &mut Vec::new())
}

/// Refuses a copy that does not say so while its original runs, whose log is `known` from the original.
fn refuse_beside_original(known: Option<&Path>, heir: &Heir<'_>) -> Result<(), Fault> {
    let original = known.and_then(|log| Some((log, in_use(log)?)));
    let is_original =
        |owner: &Owner| owner.exchange == *heir.exchange.as_bytes() && owner.place != heir.place;
    match original.filter(|(_, owner)| is_original(owner)) {
        None => Ok(()),
        Some((log, owner)) => Err(Fault::OriginalRuns {
            log: log.to_path_buf(),
            owner: owner.data_dir,
            data_dir: heir.data_dir.to_path_buf(),
        }),
    }
}

/// Leaves a log file of an earlier epoch aside: segments have gone on without it.
fn not_stale(left: Option<Left>, found: &Scan, notes: &mut Vec<String>) -> Option<Left> {
    let left = left?;
    if found.epoch <= left.owner.epoch {
        return Some(left);
    }
    notes.push(format!(
        "log_path: {} is of epoch {} and stale, the segments are of epoch {}; ignored",
        left.path.display(),
        left.owner.epoch,
        found.epoch
    ));
    None
}

/// Refuses a log file that begins, or says that it is durable, past the end of its own segments. If the heir says that
/// it was moved, a log that has all that segments lack makes up for it: they were copied while they were written, and
/// may be cut in their last batch.
fn refuse_ahead(left: &Left, found: &Scan, heir: &Heir<'_>) -> Result<(), Fault> {
    let is_older = found.epoch < left.owner.epoch;
    let has_all = left.start <= found.end && !is_older;
    let is_behind = found.end < left.start || found.end < left.durable;
    match &found.cut {
        _ if has_all && heir.claimed == Claimed::AdoptLog => Ok(()),
        Some(cut) if is_behind && !has_all => Err(Fault::Damaged(cut.place.clone())),
        _ if is_behind || is_older => Err(Fault::LogAhead {
            log: left.path.clone(),
            log_epoch: left.owner.epoch,
            log_durable: left.durable,
            data_dir: heir.data_dir.to_path_buf(),
            epoch: found.epoch,
            end: found.end,
            has_all,
        }),
        _ => Ok(()),
    }
}

/// Checks that log file and segments are the same, byte for byte, where both have frames. A snapshot stands for the
/// first segments that are not there.
fn compare(left: &Left, segments: &Arc<Segments>, end: Position, heir: &Heir<'_>) -> Result<(), Fault> {
    let mut history = History::of_segments(Arc::clone(segments));
    let mut bytes = Vec::new();
    let mut at = segments.oldest().map_or(left.start, |oldest| oldest.max(left.start));
    while at < end {
        let same = left.frame(at, &mut bytes)? && history.bytes(at)? == bytes;
        if !same {
            let (log, data_dir) = (left.path.clone(), heir.data_dir.to_path_buf());
            let is_own = left.owner.place == heir.place;
            // A start from a snapshot has not read the segments before it.
            return Err(segments.blame(at, Fault::LogDiffers { log, data_dir, position: at, is_own }));
        }
        at.0 += bytes.len() as u64;
    }
    assert!(at == end, "equal frames end alike");
    Ok(())
}
