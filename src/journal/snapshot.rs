//! Snapshots: the whole state at one position of the log, so that a start need not read all frames.
//!
//! A snapshot is made by a follower that reads segments, never by a loop that decides, and it says
//! nothing that the segments do not say. So a damaged one costs time and no data: the start takes the
//! one before, or all segments, and reports that. What is in the sections is for others to know, but
//! for the first, the journal's own: the table from positions to rows of segments, and the names of
//! the files that hold rows which are over (`archive`).
//!
//! | header | bytes | field                                                            |
//! |-------:|------:|------------------------------------------------------------------|
//! |      0 |     8 | magic                                                            |
//! |      8 |     4 | version                                                          |
//! |     12 |     4 | epoch of the batch that ends at the position                     |
//! |     16 |    16 | the journal's uuid                                               |
//! |     32 |     8 | position: the end of a batch                                     |
//! |     40 |     8 | chain of the log up to there                                     |
//! |     48 |    16 | state hash                                                       |
//! |     64 |     8 | frames up to there                                               |
//! |     72 |     8 | durable mark of that batch                                       |
//! |     80 |     8 | the segment that holds that batch                                |
//! |     88 |     2 | kind of the last frame                                           |
//! |     90 |    34 | zero                                                             |
//! |    124 |     4 | CRC-32C of the 124 bytes before                                  |
//!
//! | section | bytes | field                                                           |
//! |--------:|------:|-----------------------------------------------------------------|
//! |       0 |     8 | name                                                            |
//! |       8 |     8 | bytes of the payload                                            |
//! |      16 |     4 | CRC-32C of the payload, then of the 16 bytes before             |
//! |      20 |     4 | zero                                                            |
//! |      24 |       | payload, then zeros to the next multiple of 8                   |
//!
//! The end is a section named `end` without payload. Its count of bytes is the length of the file
//! before it; its CRC-32C covers the file before it, then its own first 16 bytes.
//!
//! A snapshot gets its name only when it is whole and on the disk. After that, the two newest that
//! are whole are kept.

mod file;
mod shelf;

pub(crate) use file::{Place, VERSION_FIELD};
pub use file::{SnapshotReader, SnapshotWriter};
pub use shelf::{Snapshots, Written};

use std::path::PathBuf;

use super::history::Entry;
use super::scan::Scan;
use crate::domain::Position;

/// A place in the log from which reading continues as if all before it had been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The snapshot of the state there.
    pub(crate) file: PathBuf,
    /// Up to which all was read.
    pub(crate) position: Position,
    pub(crate) chain: u64,
    /// The state hash there.
    pub(crate) hash: u128,
    pub(crate) epoch: u32,
    pub(crate) frames: u64,
    pub(crate) durable: Position,
    /// The segment that the position is in.
    pub(crate) segment: u64,
    pub(crate) last_kind: u16,
    /// Where batches before it are.
    pub(crate) entries: Vec<Entry>,
    /// The files that hold rows which are over, oldest first.
    pub(crate) runs: Vec<String>,
}

impl Base {
    /// The place before the first frame.
    #[cfg(test)]
    pub(crate) fn first() -> Self {
        let (position, chain, hash) = (crate::journal::FIRST_POSITION, 0, 0);
        let (epoch, frames, segment, last_kind) = (1, 0, 1, 0);
        let (file, entries, runs) = (PathBuf::new(), Vec::new(), Vec::new());
        Self {
            file,
            position,
            chain,
            hash,
            epoch,
            frames,
            durable: position,
            segment,
            last_kind,
            entries,
            runs,
        }
    }

    /// The end of `scan`, with the hash of the state there.
    pub(crate) fn of(scan: Scan, file: PathBuf, hash: u128) -> Self {
        Self {
            file,
            position: scan.end,
            chain: scan.chain,
            hash,
            epoch: scan.epoch,
            frames: scan.frames,
            durable: scan.durable,
            segment: scan.segment,
            last_kind: scan.last_kind,
            entries: scan.entries,
            runs: Vec::new(),
        }
    }
}
