//! What can go wrong in the world: files, disks, other processes. Each says what, where, what was
//! expected, what was found and what can be done.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::frame::Flaw;
use super::segment::{FIRST_ROW_FIELD, LENGTH_FIELD};
use super::snapshot::VERSION_FIELD;
use crate::domain::Position;

/// A place in a file where something else should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The offset of the byte in the file.
    pub offset: u64,
    /// The position in the log up to which all is well; 0 if that is not known.
    pub position: Position,
    /// Which field is wrong.
    pub field: &'static str,
    /// What should be there.
    pub expected: u64,
    /// What is there.
    pub found: u64,
}

impl Place {
    /// The place of `flaw`, which was found in something that begins at `start` in `file`.
    pub(crate) fn of(flaw: Flaw, file: &Path, start: u64, position: Position) -> Self {
        let Flaw { field, at, expected, found } = flaw;
        Self { file: file.to_path_buf(), offset: start + at, position, field, expected, found }
    }

    /// The names of the format that another version of Outcry wrote here and of the one that this version reads; they
    /// differ in the number at the end.
    fn formats(&self) -> Option<(String, String)> {
        let [found, expected] = [self.found, self.expected].map(u64::to_le_bytes);
        let ([name @ .., number], [expected_name @ .., _]) = (found, expected);
        let is_another = self.field.starts_with("magic") && name == expected_name && number.is_ascii_digit();
        let text = |format: [u8; 8]| String::from_utf8_lossy(&format).into_owned();
        is_another.then(|| (text(found), text(expected)))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, position, field, expected, found } = self;
        write!(out, "{}: byte {offset}", file.display())?;
        if *position != Position(0) {
            write!(out, ", position {}", position.0)?;
        }
        write!(out, ": {field}: ")?;
        write!(out, "expected {expected:#x}, found {found:#x}")
    }
}

/// Why the journal cannot continue, or cannot start.
#[derive(Debug)]
pub enum Fault {
    /// The system refused a file operation.
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Bytes that were durable are not what was written.
    Damaged(Place),
    /// A frame of the log, which a process that died had committed, is not what was written.
    LogDamaged(Place),
    /// A segment file is missing between others.
    SegmentMissing(PathBuf),
    /// The segment after a packed one is missing: none is packed before the next one holds frames.
    NewestMissing {
        /// The segment.
        segment: PathBuf,
        /// The packed one before it.
        packed: PathBuf,
    },
    /// All segments from which a snapshot could be continued are missing.
    SegmentsGone {
        /// The first one that should be.
        segment: PathBuf,
        /// The snapshot.
        snapshot: PathBuf,
    },
    /// Segments are there, but not the file that says whose they are.
    IdentityMissing {
        /// The file.
        identity: PathBuf,
        /// Where the segments are.
        segments: PathBuf,
    },
    /// The first segments are missing, and no whole snapshot stands in for them.
    NoBeginning {
        /// The segment before the first one that is there.
        missing: PathBuf,
        /// What is wrong with each snapshot; empty if there is none.
        snapshots: Vec<String>,
    },
    /// A file is not of this journal.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it should be, and is not, with a way out.
        what: &'static str,
    },
    /// Another process has this data directory.
    DataDirInUse(PathBuf),
    /// Another process has this log file.
    LogInUse(PathBuf),
    /// The directory is a copy of another one, whose exchange runs, and does not say so.
    OriginalRuns {
        /// The original's log.
        log: PathBuf,
        /// The original.
        owner: PathBuf,
        /// The copy.
        data_dir: PathBuf,
    },
    /// The data directory does not survive the machine, and `durable` was asked for.
    NotDurable {
        /// The data directory.
        data_dir: PathBuf,
        /// Its file system.
        file_system: &'static str,
    },
    /// The log file belongs to the directory that this one was copied or moved from.
    LogOfOtherDirectory {
        /// The log file.
        log: PathBuf,
        /// Where its directory was.
        owner: PathBuf,
        /// This directory.
        data_dir: PathBuf,
    },
    /// A log file that this process may not open.
    LogOfOtherUser {
        /// The log file.
        log: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A directory is said to be a copy, and its own last process left a log file.
    NoCopy {
        /// The log file.
        log: PathBuf,
        /// The directory.
        data_dir: PathBuf,
    },
    /// The last process of this directory left another log file than the one that is looked for.
    LogElsewhere {
        /// The log file.
        log: PathBuf,
        /// The exchange whose uuid is in it.
        owner: Uuid,
        /// This directory.
        data_dir: PathBuf,
        /// The exchange that this directory's identity names.
        exchange: Uuid,
    },
    /// The segment that is written to is not where it was opened.
    Moved {
        /// Where it was.
        segment: PathBuf,
    },
    /// The log file says that segments go further than they do.
    LogAhead {
        /// The log file.
        log: PathBuf,
        /// The epoch in the log file.
        log_epoch: u32,
        /// The durable position in the log file.
        log_durable: Position,
        /// The data directory.
        data_dir: PathBuf,
        /// The epoch of the segments.
        epoch: u32,
        /// Where segments end.
        end: Position,
        /// Whether the log has all that they lack.
        has_all: bool,
    },
    /// Log file and segments contradict each other.
    LogDiffers {
        /// The log file.
        log: PathBuf,
        /// The data directory.
        data_dir: PathBuf,
        /// The first frame that differs.
        position: Position,
        /// Whether a process of this directory left the log, and not one of a directory that this one is a copy of.
        is_own: bool,
    },
    /// Bytes of a snapshot are not what was written. Nothing is lost: the segments say the same.
    SnapshotDamaged(Place),
    /// A whole snapshot is of a log that the segments do not have.
    SnapshotMisfit {
        /// The snapshot.
        snapshot: PathBuf,
        /// Its position.
        position: Position,
        /// The segment that should lead there.
        segment: PathBuf,
    },
    /// A snapshot was asked for before the first batch of frames was durable.
    NothingToSnapshot,
    /// A snapshot would leave less room on its disk than must stay free.
    NoRoomForSnapshot {
        /// Where it would be.
        directory: PathBuf,
        /// What it is expected to take.
        bytes: u64,
        /// What is free.
        free_bytes: u64,
        /// What must stay free.
        free_bytes_min: u64,
    },
    /// Packing a segment would, for a moment, take room that must stay free.
    NoRoomToPack {
        /// The segment that is to be packed.
        segment: PathBuf,
        /// What its new file would take.
        bytes: u64,
        /// What is free.
        free_bytes: u64,
        /// What must stay free.
        free_bytes_min: u64,
    },
    /// A size in the options is below what can work.
    TooSmall {
        /// The option.
        field: &'static str,
        /// What it is.
        bytes: u64,
        /// What it must be at least.
        bytes_min: u64,
    },
    /// A follower fell behind what the ring keeps, and no segment has it.
    Lapped {
        /// The position it wanted.
        position: Position,
        /// The oldest position there is.
        oldest: Position,
    },
}

impl Fault {
    /// For `map_err`: the fault of an operation on `path`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { doing, path: path.to_path_buf(), error }
    }
}

impl fmt::Display for Fault {
    #[allow(clippy::too_many_lines, reason = "one line or two for each kind, side by side")]
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, error } => write!(out, "{}: {doing}: {error}", path.display()),
            Self::Damaged(place) if let Some((found, expected)) = place.formats() => write!(
                out,
                "{}: its format is {found}, of another version of Outcry, and this one reads {expected}; start \
                 the version that wrote it, nothing was changed",
                place.file.display()
            ),
            Self::Damaged(place) if place.field == LENGTH_FIELD => write!(
                out,
                "{}: it is {} bytes long, and was {} when it was made; restore the file from a copy, nothing was \
                 changed",
                place.file.display(),
                place.found,
                place.expected
            ),
            Self::Damaged(place) if place.field == FIRST_ROW_FIELD => write!(
                out,
                "{}: it is {} bytes long, and its first row alone was {}; restore the file from a copy, nothing \
                 was changed",
                place.file.display(),
                place.found,
                place.expected
            ),
            Self::Damaged(place) => write!(
                out,
                "damaged below the durable mark: {place}; restore the file from a copy, nothing was changed"
            ),
            Self::LogDamaged(place) => write!(
                out,
                "log_path: {place}; nothing was changed. If this exchange never had its log there, give another log_path. \
                 If it had, the log is damaged, and nobody has a copy of it: if journal.durability was durable, segments \
                 have all that was acknowledged, so move {log} away and start again; if it was committed, that loses what \
                 was acknowledged last",
                log = place.file.display()
            ),
            Self::SegmentMissing(path) => {
                write!(out, "{}: missing, and later segments are there; restore it", path.display())
            }
            Self::NewestMissing { segment, packed } => write!(
                out,
                "{}: missing, and {} was packed, as only a segment is that others follow; restore it and all \
                 after it from a copy, nothing was changed",
                segment.display(),
                packed.display()
            ),
            Self::IdentityMissing { identity, segments } => write!(
                out,
                "{}: missing, and segments are in {}; restore it, nothing was changed",
                identity.display(),
                segments.display()
            ),
            Self::SegmentsGone { segment, snapshot } => write!(
                out,
                "{}: missing, as is every one after it, and {} was made from it; restore the segments from a \
                 copy, nothing was changed",
                segment.display(),
                snapshot.display()
            ),
            Self::NoBeginning { missing, snapshots } if snapshots.is_empty() => write!(
                out,
                "{}: missing, and no snapshot is there that stands for it and all before it; restore a snapshot \
                 from a copy if journal.history_keep gave them back, or else the segments, nothing was changed",
                missing.display()
            ),
            Self::NoBeginning { missing, snapshots } => write!(
                out,
                "{}: missing, and no snapshot is whole that stands for it: {}; restore a snapshot or the \
                 segments from a copy, nothing was changed",
                missing.display(),
                snapshots.join("; ")
            ),
            Self::Foreign { path, what } => {
                write!(out, "{}: not {what}; nothing was changed", path.display())
            }
            Self::DataDirInUse(path) => {
                write!(out, "data_dir: {} is in use by another process", path.display())
            }
            Self::LogInUse(path) => write!(
                out,
                "log_path: {} is in use by another process; --new-identity if data_dir is a copy of its data \
                 directory, and another log_path unless none is set",
                path.display()
            ),
            Self::OriginalRuns { log, owner, data_dir } => write!(
                out,
                "data_dir: {} has the identity of {}, whose exchange runs with the log {}; --new-identity if it is a copy",
                data_dir.display(),
                owner.display(),
                log.display()
            ),
            Self::NotDurable { data_dir, file_system } => write!(
                out,
                "durability: durable, but data_dir {} is on {file_system} and ends with the machine; move it \
                 to a disk, or say committed",
                data_dir.display()
            ),
            Self::LogOfOtherDirectory { log, owner, data_dir } => write!(
                out,
                "log_path: {log} belongs to the data directory that was at {}, and {} has the same identity; \
                 --adopt-log if that one was moved here, --new-identity if this one is a copy, or rm {log} if this \
                 one is a backup in its place",
                owner.display(),
                data_dir.display(),
                log = log.display()
            ),
            Self::LogOfOtherUser { log, error } => write!(
                out,
                "log_path: {log}: open: {error}; it may have what segments do not: make it this user's (chown), or rm \
                 {log} to go on without what only it has; nothing was changed",
                log = log.display()
            ),
            Self::NoCopy { log, data_dir } => write!(
                out,
                "--new-identity: {} is no copy: its last process left the log {log}, and what only that may have would \
                 be lost; start without --new-identity (with log_path {log}, if that is not where it is looked for), \
                 or rm {log} to go on without it; nothing was changed",
                data_dir.display(),
                log = log.display()
            ),
            Self::LogElsewhere { log, owner, data_dir, exchange } if owner == exchange => write!(
                out,
                "log_path: {log} is what the last process of {} left, and another file is given; start with log_path \
                 {log} once, or rm {log} to go on without what only it has; nothing was changed",
                data_dir.display(),
                log = log.display()
            ),
            Self::LogElsewhere { log, owner, data_dir, exchange } => write!(
                out,
                "log_path: {log} is what the last process of {} left, of exchange {owner}, and `identity` there \
                 says exchange {exchange}; write the former into it, or rm {log} to go on without what only it \
                 has; nothing was changed",
                data_dir.display(),
                log = log.display()
            ),
            Self::Moved { segment } => write!(
                out,
                "journal: {} is not the segment that this exchange writes to: the directory was moved, or another \
                 put in its place, while it ran; what was acknowledged is in the directory that was here, and the \
                 newest of it in the log",
                segment.display()
            ),
            Self::LogAhead { log, log_epoch, log_durable, data_dir, epoch, end, has_all } => {
                let adopt = if *has_all { ", or --adopt-log to take the rest from the log" } else { "" };
                write!(
                    out,
                    "log_path: {log} (epoch {log_epoch}) says that segments go to position {}, but those in {} (epoch \
                     {epoch}) end at {}; put back the directory that has the newer ones{adopt}; to go on without \
                     them, rm {log} if this one was restored from a backup, or --new-identity if it is a copy",
                    log_durable.0,
                    data_dir.display(),
                    end.0,
                    log = log.display()
                )
            }
            Self::LogDiffers { log, data_dir, position, is_own } => {
                let way = if *is_own { format!("rm {}", log.display()) } else { "--new-identity".to_owned() };
                write!(
                    out,
                    "log_path: {} and the segments in {} differ at position {}; put back the directory that the log \
                     continues, or {way} to go on without what only the log has; nothing was changed",
                    log.display(),
                    data_dir.display(),
                    position.0
                )
            }
            Self::SnapshotDamaged(place) if place.field == VERSION_FIELD => write!(
                out,
                "{}: its version is {}, of another version of Outcry, and this one reads {}",
                place.file.display(),
                place.found,
                place.expected
            ),
            Self::SnapshotDamaged(place) => write!(out, "snapshot damaged: {place}"),
            Self::SnapshotMisfit { snapshot, position, segment } => write!(
                out,
                "{}: its state is of position {}, but {} does not lead there; restore the segments that it \
                 was made from, or move it away to start without it",
                snapshot.display(),
                position.0,
                segment.display()
            ),
            Self::NothingToSnapshot => {
                out.write_str("no frame is durable yet, so there is nothing to keep; ask again")
            }
            Self::NoRoomForSnapshot { directory, bytes, free_bytes, free_bytes_min } => write!(
                out,
                "{}: a snapshot of about {bytes} bytes would leave less than journal.disk_free_min = \
                 {free_bytes_min} of {free_bytes} free bytes; make room",
                directory.display()
            ),
            Self::NoRoomToPack { segment, bytes, free_bytes, free_bytes_min } => write!(
                out,
                "{}: packing it would for a moment take {bytes} bytes and leave less than \
                 journal.disk_free_min = {free_bytes_min} of {free_bytes} free bytes; make room",
                segment.display()
            ),
            Self::TooSmall { field, bytes, bytes_min } => {
                write!(out, "{field}: {bytes} is too small; give it at least {bytes_min}")
            }
            Self::Lapped { position, oldest } => {
                write!(out, "position {} is gone, the log starts at {}", position.0, oldest.0)
            }
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } | Self::LogOfOtherUser { error, .. } => Some(error),
            _ => None,
        }
    }
}
