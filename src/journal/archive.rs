//! Rows that no longer change, in files beside the snapshots: written once, read one by one.
//!
//! A snapshot that held every order of a long history would be read whole at every start. So rows
//! that are over go to a **run** when a snapshot is made: a file of at most [`ROWS_MAX`] rows, which
//! never changes and which the snapshot names. A start reads the indices of its runs and no row.
//!
//! A run begins and ends like a snapshot; in between it has these sections:
//!
//! | section | holds |
//! |---------|-------|
//! | `index   ` | highest stamp; by position: where rows begin; by the first 8 bytes of ids: which rows |
//! | `stamps  ` | what is needed of each row to recognise its repetition; read at a start, in bulk |
//! | `rows    ` | the rows' bytes, each with its length and CRC-32C in front |
//!
//! What a row means is the ledger's business. A new snapshot rewrites the last run together with the rows
//! that came since, until it is full: so there are few runs, and no row is rewritten for ever.

use super::checksum;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Fault;
use super::fault::Place;
use super::frame::Flaw;
use super::frame::u32_at;
use super::identity::place;
use super::segment::JournalId;
use super::snapshot::{Place as SectionPlace, SnapshotReader};
use crate::domain::Position;
use crate::memory::sections::Name;
use crate::memory::wire::{Damage, Input, Wire, structs};

/// Rows of one run: its index takes 32 MiB of memory, making it about ten times that for a moment. Few in the rooms'
/// own tests, which so have several runs.
pub(crate) const ROWS_MAX: usize = if cfg!(test) { 16 } else { 1 << 20 };

pub(crate) const INDEX: Name = *b"index   ";
pub(crate) const STAMPS: Name = *b"stamps  ";
pub(crate) const ROWS: Name = *b"rows    ";

/// Length and checksum in front of a row.
const ROW_HEAD_BYTES: usize = 8;
/// Most rows are shorter: one read is enough.
const ROW_BYTES_GUESS: usize = 512;

/// A row on its way into a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveRow {
    /// Its position, which is its name.
    pub position: Position,
    /// The first bytes of its id, by which it can also be found.
    pub id_prefix: u64,
    /// When it was signed: the oldest are the first that memories drop.
    pub stamp_ms: u64,
    /// What is needed to recognise its repetition.
    pub stamp: Vec<u8>,
    /// The row.
    pub row: Vec<u8>,
}

/// The index of a run: what a start reads of it.
#[derive(Debug)]
struct Index {
    stamp_max: u64,
    positions: Vec<u64>,
    /// Where the rows begin, counted from the start of their section.
    offsets: Vec<u64>,
    /// First bytes of ids and the numbers of the rows they belong to, sorted.
    ids: Vec<(u64, u32)>,
    /// The bytes of all rows.
    rows_bytes: u64,
}

structs! { Index { stamp_max, positions, offsets, ids, rows_bytes } }

/// What these rows take in runs, but for what a run without rows takes.
pub(crate) fn bytes(rows: &[ArchiveRow]) -> u64 {
    // In the index: position, offset, first bytes of the id and number of the row.
    const INDEX_BYTES: usize = 8 + 8 + 8 + 4;
    let of_row = |row: &ArchiveRow| INDEX_BYTES + row.stamp.len() + ROW_HEAD_BYTES + row.row.len();
    rows.iter().map(|row| of_row(row) as u64).sum()
}

/// The sections of a run with these rows, which are sorted by position.
pub(crate) fn sections(rows: &[ArchiveRow]) -> [(Name, Vec<u8>); 3] {
    assert!(rows.len() <= ROWS_MAX, "a run has at most ROWS_MAX rows");
    let (mut stamps, mut bytes, mut offsets) = (Vec::new(), Vec::new(), Vec::with_capacity(rows.len()));
    for row in rows {
        offsets.push(bytes.len() as u64);
        stamps.extend_from_slice(&row.stamp);
        u32::try_from(row.row.len()).expect("a row is short").put(&mut bytes);
        checksum::sum(&row.row).put(&mut bytes);
        bytes.extend_from_slice(&row.row);
    }
    let mut ids: Vec<(u64, u32)> = rows.iter().map(|row| row.id_prefix).zip(0..).collect();
    ids.sort_unstable();
    let index = Index {
        stamp_max: rows.iter().map(|row| row.stamp_ms).max().unwrap_or(0),
        positions: rows.iter().map(|row| row.position.0).collect(),
        offsets,
        ids,
        rows_bytes: bytes.len() as u64,
    };
    let mut head = Vec::new();
    index.put(&mut head);
    [(INDEX, head), (STAMPS, stamps), (ROWS, bytes)]
}

/// All runs of one snapshot. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    runs: Vec<Arc<Run>>,
}

/// One run: its file, and where its rows are.
#[derive(Debug)]
struct Run {
    path: PathBuf,
    file: File,
    index: Index,
    stamps: SectionPlace,
    rows: SectionPlace,
}

impl Archive {
    /// Opens the runs of these names, oldest first. Reads the indices of those that `beside` does not
    /// have.
    pub(crate) fn open(
        directory: &Path,
        names: &[String],
        journal: &JournalId,
        beside: &Self,
    ) -> Result<Self, Fault> {
        let open = |name: &String| {
            let path = directory.join(name);
            match beside.runs.iter().find(|run| run.path == path && run.is_there()) {
                Some(run) => Ok(Arc::clone(run)),
                None => Run::open(&path, journal).map(Arc::new),
            }
        };
        Ok(Self { runs: names.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// Closes the runs that no other archive shares, and frees their indices.
    pub(crate) fn forget_unshared(&mut self) {
        self.runs.retain(|run| 1 < Arc::strong_count(run));
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.runs.iter().map(|run| run.index.positions.len()).sum()
    }

    /// True if it has the row at `position`.
    #[must_use]
    pub fn holds(&self, position: Position) -> bool {
        self.runs.iter().any(|run| run.index.positions.binary_search(&position.0).is_ok())
    }

    /// The row at `position`, as `decode` reads it from its bytes.
    pub fn at<T>(
        &self,
        position: Position,
        decode: impl Fn(&[u8]) -> Result<T, Damage>,
    ) -> Result<Option<T>, Fault> {
        for run in self.runs.iter().rev() {
            if let Ok(row) = run.index.positions.binary_search(&position.0) {
                return run.row(row, decode).map(Some);
            }
        }
        Ok(None)
    }

    /// Every row whose id begins like this: at most one, but for a collision.
    pub fn by_id_prefix<T>(
        &self,
        id_prefix: u64,
        decode: impl Fn(&[u8]) -> Result<T, Damage>,
    ) -> Result<Vec<T>, Fault> {
        let mut found = Vec::new();
        for run in self.runs.iter().rev() {
            let first = run.index.ids.partition_point(|(prefix, _)| *prefix < id_prefix);
            let same = run.index.ids[first..].iter().take_while(|(prefix, _)| *prefix == id_prefix);
            for (_, row) in same {
                found.push(run.row(*row as usize, &decode)?);
            }
        }
        Ok(found)
    }

    /// Passes the stamps of each run to `take`, the newest run first, as long as `wants` returns true.
    /// `wants` is called before each with the highest stamp of the runs that are left.
    pub fn stamps(
        &self,
        mut wants: impl FnMut(u64) -> bool,
        mut take: impl FnMut(&[u8]) -> Result<(), Damage>,
    ) -> Result<(), Fault> {
        for (index, run) in self.runs.iter().enumerate().rev() {
            let highest = self.runs[..=index].iter().map(|run| run.index.stamp_max).max().unwrap_or(0);
            if !wants(highest) {
                break;
            }
            let taken = take(&run.stamps.read(&run.file, &run.path)?);
            taken.map_err(|damage| run.meaningless(&damage, run.stamps.start(), Position(0)))?;
        }
        Ok(())
    }

    /// Reads and checks all of the last run if it has room for more: the next snapshot rewrites its rows,
    /// so it cannot be made if one of their bytes is wrong.
    pub fn check_unfilled(&self) -> Result<(), Fault> {
        self.check_unfilled_stamps()?;
        self.last_unfilled().map_or(Ok(()), |run| run.rows.read(&run.file, &run.path).map(drop))
    }

    /// The part of [`Self::check_unfilled`] that is about what every start reads.
    pub fn check_unfilled_stamps(&self) -> Result<(), Fault> {
        self.last_unfilled().map_or(Ok(()), |run| run.stamps.read(&run.file, &run.path).map(drop))
    }

    /// The rows of the last run if it has room for more, to be rewritten together with new ones.
    pub(crate) fn unfilled(&self) -> Result<Option<Vec<Vec<u8>>>, Fault> {
        let Some(run) = self.last_unfilled() else {
            return Ok(None);
        };
        let bytes = run.rows.read(&run.file, &run.path)?;
        let row = |&at: &u64| {
            let at = usize::try_from(at).expect("it was read into memory");
            let end = at + ROW_HEAD_BYTES + u32_at(&bytes, at) as usize;
            bytes[at + ROW_HEAD_BYTES..end].to_vec()
        };
        Ok(Some(run.index.offsets.iter().map(row).collect()))
    }

    fn last_unfilled(&self) -> Option<&Arc<Run>> {
        self.runs.last().filter(|run| run.index.positions.len() < ROWS_MAX)
    }
}

impl Run {
    fn open(path: &Path, journal: &JournalId) -> Result<Self, Fault> {
        let mut reader = SnapshotReader::open(path, journal)?;
        let index = match reader.next()? {
            Some((INDEX, bytes)) => Index::take(&mut Input::new(bytes)),
            _ => return Err(reader.meaningless("name of the run's first section", 0)),
        };
        let index = index.map_err(|damage| reader.meaningless(damage.field, damage.at))?;
        let (stamps, rows) = (reader.place(STAMPS)?, reader.place(ROWS)?);
        if rows.bytes() != index.rows_bytes {
            return Err(reader.meaningless("bytes of the rows", 8));
        }
        Ok(Self { path: path.to_path_buf(), file: reader.into_file(), index, stamps, rows })
    }

    /// True if its name still leads to this file, and not to another run.
    fn is_there(&self) -> bool {
        std::fs::metadata(&self.path)
            .is_ok_and(|there| self.file.metadata().is_ok_and(|ours| place(&there) == place(&ours)))
    }

    fn row<T>(&self, number: usize, decode: impl Fn(&[u8]) -> Result<T, Damage>) -> Result<T, Fault> {
        let at = self.index.offsets[number];
        let end = self.index.offsets.get(number + 1).copied().unwrap_or(self.index.rows_bytes);
        let bytes = usize::try_from(end - at).expect("a row fits memory");
        let mut guess = [0; ROW_BYTES_GUESS];
        let mut long = Vec::new();
        let whole: &mut [u8] = if bytes <= guess.len() {
            &mut guess[..bytes]
        } else {
            long.resize(bytes, 0);
            &mut long
        };
        let start = self.rows.start() + at;
        self.file.read_exact_at(whole, start).map_err(Fault::io("read", &self.path))?;
        let (head, row) = whole.split_at(ROW_HEAD_BYTES);
        let position = Position(self.index.positions[number]);
        let (expected, found) = (checksum::sum(row), u32_at(head, 4));
        if expected != found || u32_at(head, 0) as usize != row.len() {
            let (expected, found) = (u64::from(expected), u64::from(found));
            let flaw = Flaw { field: "checksum of the row", at: 4, expected, found };
            return Err(Fault::SnapshotDamaged(Place::of(flaw, &self.path, start, position)));
        }
        decode(row).map_err(|damage| self.meaningless(&damage, start, position))
    }

    /// The fault of bytes at `start` whose checksum is right and which have no meaning.
    fn meaningless(&self, damage: &Damage, start: u64, position: Position) -> Fault {
        let flaw = Flaw { field: damage.field, at: damage.at as u64, expected: 0, found: 0 };
        Fault::SnapshotDamaged(Place::of(flaw, &self.path, start, position))
    }
}
