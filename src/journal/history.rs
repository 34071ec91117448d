//! Any frame, wherever it is: in the ring, or else in the segments.
//!
//! Segments are found through a sparse table: the first batch of each file and one about every 64
//! rows (256 KiB), 24 bytes each. From there the batch headers lead to the frame. The journal
//! thread adds an entry to the table before it frees those frames, so whoever finds the ring lapped
//! finds the segments ready.
//!
//! The table is a hint. A sealed segment may be packed at any moment: its name then leads to another
//! file, with the same frames on other rows, and the table is updated a moment later. So a batch
//! belongs to the open file in which it was found, and an open file stays as it was, whatever its
//! name leads to by now. Where a header does not lead to the position that is sought, the file is
//! opened anew by its name and walked from its first row.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Fault;
use super::fault::Place;
use super::frame::u32_at;
use super::frame::{
    FRAME_ALIGN, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, Flaw, Frame, Span, length_is_possible, read,
};
use super::log::{Log, Look};
use super::scan::check_at;
use super::segment::{self, BATCH_HEADER_BYTES, BatchHeader, JournalId, ROW_BYTES};
use super::snapshot::Base;
use crate::domain::Position;

/// Rows between two entries of the table.
const ENTRY_ROWS: u32 = 64;

/// The place of the batch that begins at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    pub(crate) segment: u64,
    pub(crate) row: u32,
}

impl Entry {
    /// Adds the entry if the last one is of another file or far enough away.
    pub(crate) fn push_if_far(self, entries: &mut Vec<Self>) {
        let near = entries
            .last()
            .is_some_and(|last| last.segment == self.segment && self.row < last.row + ENTRY_ROWS);
        if !near {
            entries.push(self);
        }
    }
}

/// The segments of one data directory, for reading while they grow.
#[derive(Debug)]
pub struct Segments {
    directory: PathBuf,
    journal: JournalId,
    entries: Mutex<Vec<Entry>>,
}

impl Segments {
    pub(crate) fn new(directory: &Path, journal: JournalId, entries: Vec<Entry>) -> Self {
        Self { directory: directory.to_path_buf(), journal, entries: Mutex::new(entries) }
    }

    pub(crate) fn add(&self, entry: Entry) {
        // A poisoned table is still whole: nothing panics between its changes.
        entry.push_if_far(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn before(&self, at: Position) -> Option<Entry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let after = entries.partition_point(|entry| entry.position <= at);
        after.checked_sub(1).map(|last| entries[last])
    }

    /// The number of the segment that is being written; 0 if there is none yet.
    #[must_use]
    pub fn newest(&self) -> u64 {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last().map_or(0, |entry| entry.segment)
    }

    /// Drops the entries of segments before `number`, which are about to be removed.
    pub(crate) fn forget_before(&self, number: u64) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| number <= entry.segment);
    }

    /// Replaces the entries of segment `number`, if it has any.
    pub(crate) fn replace(&self, number: u64, with: Vec<Entry>) {
        assert!(with.iter().all(|entry| entry.segment == number), "the entries are of that segment");
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let range = of_segment(&entries, number);
        if !range.is_empty() {
            entries.splice(range, with);
        }
    }

    /// The entries of segment `number`.
    pub(crate) fn entries_of(&self, number: u64) -> Vec<Entry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries[of_segment(&entries, number)].to_vec()
    }

    /// Gives `base` the current entries for everything before it: its own, from an older snapshot,
    /// may be of segments that were packed since.
    pub fn correct(&self, base: &mut Base) {
        /// Copied at a time, as the journal's thread waits for the table meanwhile. Only the caller's thread removes
        /// entries or replaces them.
        const PIECE: usize = 1_024;
        let mut copied = Vec::new();
        loop {
            copied.reserve(PIECE);
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let from = copied.len();
            let end = entries.partition_point(|entry| entry.position < base.position);
            copied.extend_from_slice(&entries[from..end.min(from + PIECE)]);
            if copied.len() == end {
                break;
            }
        }
        base.entries = copied;
    }

    /// Says why the frame at `at` is not what it should be: by what is wrong with its segment, if anything
    /// is, with file and byte as a scan would name them; or else by `fault`.
    pub(crate) fn blame(&self, at: Position, fault: Fault) -> Fault {
        let entries = self.entries_of(self.segment_of(at));
        let checked = entries.first().map(|&first| check_at(&self.directory, &self.journal, first, at));
        checked.and_then(Result::err).unwrap_or(fault)
    }

    /// The number of the oldest segment; 0 if there is none.
    pub(crate) fn first(&self) -> u64 {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.first().map_or(0, |entry| entry.segment)
    }

    /// The segment that holds `at`; 0 if none does.
    pub(crate) fn segment_of(&self, at: Position) -> u64 {
        self.before(at).map_or(0, |entry| entry.segment)
    }

    /// The oldest position that segments have.
    pub(crate) fn oldest(&self) -> Option<Position> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.first().map(|entry| entry.position)
    }
}

/// The range of segment `number` in the table.
fn of_segment(entries: &[Entry], number: u64) -> std::ops::Range<usize> {
    let first = entries.partition_point(|entry| entry.segment < number);
    first..entries.partition_point(|entry| entry.segment <= number)
}

/// A segment file that is being read.
#[derive(Debug)]
struct OpenFile {
    number: u64,
    path: PathBuf,
    file: File,
    /// The batch that was last found in it.
    batch: Option<BatchHeader>,
}

impl OpenFile {
    fn open(segments: &Segments, number: u64) -> Result<Self, Fault> {
        let path = segment::path(&segments.directory, number);
        let file = File::open(&path).map_err(Fault::io("open", &path))?;
        Ok(Self { number, path, file, batch: None })
    }

    /// Walks the batch headers from `row` to the batch that holds `at`; none if they do not lead there.
    fn walk(
        &mut self,
        journal: &JournalId,
        mut row: u32,
        at: Position,
    ) -> Result<Option<BatchHeader>, Fault> {
        loop {
            let mut header = [0; BATCH_HEADER_BYTES];
            match self.file.read_exact_at(&mut header, u64::from(row) * ROW_BYTES) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
                read => read.map_err(Fault::io("read", &self.path))?,
            }
            let Ok(batch) = BatchHeader::decode(&header, journal, self.number, row) else {
                return Ok(None);
            };
            if at < batch.first {
                return Ok(None);
            }
            if at < batch.end() {
                self.batch = Some(batch);
                return Ok(Some(batch));
            }
            row += batch.rows();
        }
    }
}

/// Reads frames by position. Each loop that reads any has its own.
#[derive(Debug)]
pub struct History {
    log: Option<Arc<Log>>,
    segments: Option<Arc<Segments>>,
    open: Option<OpenFile>,
    buffer: Box<[u8]>,
}

/// Bytes in the buffer that should be a frame of this epoch.
struct Found {
    bytes: usize,
    epoch: u32,
}

/// What is known of the frame in the buffer, which has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) span: Span,
    pub(crate) kind: u16,
    epoch: u32,
    payload_bytes: usize,
}

impl History {
    /// A reader of `log` and, for what it no longer holds, of `segments`.
    #[must_use]
    pub fn new(log: Arc<Log>, segments: Option<Arc<Segments>>) -> Self {
        let buffer = vec![0; FRAME_BYTES_MAX].into_boxed_slice();
        Self { log: Some(log), segments, open: None, buffer }
    }

    /// A reader of segments alone.
    pub(crate) fn of_segments(segments: Arc<Segments>) -> Self {
        let buffer = vec![0; FRAME_BYTES_MAX].into_boxed_slice();
        Self { log: None, segments: Some(segments), open: None, buffer }
    }

    /// All bytes of the frame at `at`, including header and zeros.
    pub(crate) fn bytes(&mut self, at: Position) -> Result<&[u8], Fault> {
        let found = self.in_segments(at)?;
        Ok(&self.buffer[..found.bytes])
    }

    /// The frame at `at`, if it is committed. A frame must begin there.
    pub fn frame(&mut self, at: Position) -> Result<Option<Frame<'_>>, Fault> {
        let held = self.hold(at)?;
        Ok(held.map(|held| self.held(held)))
    }

    /// Loads the frame at `at` into the buffer.
    pub(crate) fn hold(&mut self, at: Position) -> Result<Option<Held>, Fault> {
        let in_ring = self.log.as_ref().map(|log| (log.copy(at, &mut self.buffer), log.epoch()));
        let found = match in_ring {
            Some((Look::NotYet, _)) => return Ok(None),
            Some((Look::Bytes(bytes), epoch)) => {
                // Caught up: a file kept open would take its room even after its removal.
                self.open = None;
                Found { bytes, epoch }
            }
            Some((Look::Lapped, _)) | None => self.in_segments(at)?,
        };
        match read(&self.buffer[..found.bytes], at, found.epoch) {
            Ok(Frame { span, epoch, kind, payload }) => {
                Ok(Some(Held { span, kind, epoch, payload_bytes: payload.len() }))
            }
            Err(flaw) => {
                let fault = Fault::Damaged(Place::of(flaw, &self.file(), 0, at));
                // Without an open file the frame came from the ring.
                match (&self.open, &self.segments) {
                    (Some(_), Some(segments)) => Err(segments.blame(at, fault)),
                    _ => Err(fault),
                }
            }
        }
    }

    /// The frame that `hold` loaded last.
    pub(crate) fn held(&self, held: Held) -> Frame<'_> {
        let payload = &self.buffer[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + held.payload_bytes];
        Frame { span: held.span, epoch: held.epoch, kind: held.kind, payload }
    }

    fn file(&self) -> PathBuf {
        self.open.as_ref().map_or_else(|| PathBuf::from("the log"), |open| open.path.clone())
    }

    fn in_segments(&mut self, at: Position) -> Result<Found, Fault> {
        let Some(segments) = self.segments.clone() else {
            let oldest = self.log.as_ref().expect("what has no segments has a log").oldest();
            return Err(Fault::Lapped { position: at, oldest });
        };
        let found = match self.find(&segments, at) {
            Ok(Some(batch)) => self.load_from(batch, at),
            Ok(None) => Err(Fault::Lapped { position: at, oldest: segments.oldest().unwrap_or(at) }),
            Err(fault) => Err(fault),
        };
        found.map_err(|fault| segments.blame(at, fault))
    }

    fn load_from(&mut self, batch: BatchHeader, at: Position) -> Result<Found, Fault> {
        let start = u64::from(batch.row) * ROW_BYTES + BATCH_HEADER_BYTES as u64 + (at.0 - batch.first.0);
        let rest = usize::try_from(batch.end().0 - at.0).expect("a batch fits memory");
        let bytes = self.load(start, rest, at)?;
        Ok(Found { bytes, epoch: batch.epoch })
    }

    /// Finds the batch that holds `at`; the file that it is in is open then.
    fn find(&mut self, segments: &Segments, at: Position) -> Result<Option<BatchHeader>, Fault> {
        let journal = &segments.journal;
        if let Some(open) = &mut self.open
            && let Some(last) = open.batch
        {
            if last.first <= at && at < last.end() {
                return Ok(Some(last));
            }
            let next = last.row + last.rows();
            if last.end() == at
                && let Some(batch) = open.walk(journal, next, at)?
            {
                return Ok(Some(batch));
            }
        }
        let Some(Entry { segment: number, row, .. }) = segments.before(at) else {
            return Ok(None);
        };
        let mut open = match self.open.take() {
            Some(open) if open.number == number => open,
            _ => OpenFile::open(segments, number)?,
        };
        let mut found = open.walk(journal, row, at)?;
        if found.is_none() {
            open = OpenFile::open(segments, number)?;
            found = open.walk(journal, 1, at)?;
        }
        self.open = Some(open);
        Ok(found)
    }

    /// Reads the frame at byte `start` of the open file into the buffer; returns its length.
    fn load(&mut self, start: u64, rest: usize, at: Position) -> Result<usize, Fault> {
        let OpenFile { path, file, .. } = self.open.as_ref().expect("its batch was found in it");
        // Most frames are shorter: one read is enough.
        let first = rest.min(1_024);
        file.read_exact_at(&mut self.buffer[..first], start).map_err(Fault::io("read", path))?;
        let length = u32_at(&self.buffer, 0);
        if !length_is_possible(length) || rest < length as usize {
            let flaw = Flaw { field: "frame length", at: 0, expected: FRAME_ALIGN, found: u64::from(length) };
            return Err(Fault::Damaged(Place::of(flaw, path, start, at)));
        }
        let bytes = length as usize;
        if first < bytes {
            let more = &mut self.buffer[first..bytes];
            file.read_exact_at(more, start + first as u64).map_err(Fault::io("read", path))?;
        }
        Ok(bytes)
    }
}
