//! Any frame, wherever it is: in the ring, or else in the segments.
//!
//! Segments are found through a sparse table: the first batch of each file and one about every 64
//! rows (256 KiB), 24 bytes each. From there the batch headers lead to the frame. The journal
//! thread adds to the table before it frees what the table is about, so whoever finds the ring
//! lapped finds the segments ready.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Fault;
use super::fault::Place;
use super::frame::{
    FRAME_ALIGN, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, Flaw, Frame, Span, length_is_possible, read,
};
use super::log::{Log, Look};
use super::segment::{self, BATCH_HEADER_BYTES, BatchHeader, JournalId, ROW_BYTES, u32_at};
use crate::domain::Position;

/// Rows between two entries of the table.
const ENTRY_ROWS: u32 = 64;

/// Where the batch that begins at a position lies.
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

    /// The oldest position that segments have.
    #[must_use]
    pub fn oldest(&self) -> Option<Position> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.first().map(|entry| entry.position)
    }
}

/// Reads frames by position. Each loop that does has its own.
#[derive(Debug)]
pub struct History {
    log: Option<Arc<Log>>,
    segments: Option<Arc<Segments>>,
    open: Option<(u64, File)>,
    batch: Option<BatchHeader>,
    buffer: Box<[u8]>,
}

/// Bytes in the buffer that should be a frame of an epoch.
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
        Self { log: Some(log), segments, open: None, batch: None, buffer }
    }

    /// A reader of segments alone.
    pub(crate) fn of_segments(segments: Arc<Segments>) -> Self {
        let buffer = vec![0; FRAME_BYTES_MAX].into_boxed_slice();
        Self { log: None, segments: Some(segments), open: None, batch: None, buffer }
    }

    /// All bytes of the frame at `at`, header and zeros too.
    pub(crate) fn bytes(&mut self, at: Position) -> Result<&[u8], Fault> {
        let found = self.in_segments(at)?;
        Ok(&self.buffer[..found.bytes])
    }

    /// The frame at `at`, if it is committed. The caller knows that a frame begins there.
    pub fn frame(&mut self, at: Position) -> Result<Option<Frame<'_>>, Fault> {
        let held = self.hold(at)?;
        Ok(held.map(|held| self.held(held)))
    }

    /// Brings the frame at `at` into the buffer.
    pub(crate) fn hold(&mut self, at: Position) -> Result<Option<Held>, Fault> {
        let in_ring = self.log.as_ref().map(|log| (log.copy(at, &mut self.buffer), log.epoch()));
        let found = match in_ring {
            Some((Look::NotYet, _)) => return Ok(None),
            Some((Look::Bytes(bytes), epoch)) => Found { bytes, epoch },
            Some((Look::Lapped, _)) | None => self.in_segments(at)?,
        };
        match read(&self.buffer[..found.bytes], at, found.epoch) {
            Ok(Frame { span, epoch, kind, payload }) => {
                Ok(Some(Held { span, kind, epoch, payload_bytes: payload.len() }))
            }
            Err(flaw) => Err(Fault::Damaged(Place::of(flaw, &self.file(), 0, at))),
        }
    }

    /// The frame that `hold` brought last.
    pub(crate) fn held(&self, held: Held) -> Frame<'_> {
        let payload = &self.buffer[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + held.payload_bytes];
        Frame { span: held.span, epoch: held.epoch, kind: held.kind, payload }
    }

    fn file(&self) -> PathBuf {
        match (&self.segments, &self.open) {
            (Some(segments), Some((number, _))) => segment::path(&segments.directory, *number),
            _ => PathBuf::from("the log"),
        }
    }

    fn in_segments(&mut self, at: Position) -> Result<Found, Fault> {
        let oldest = self.log.as_ref().map_or(at, |log| log.oldest());
        let Some(segments) = self.segments.clone() else {
            return Err(Fault::Lapped { position: at, oldest });
        };
        let within = |batch: &BatchHeader| batch.first <= at && at < batch.end();
        let batch = match self.batch {
            Some(batch) if within(&batch) => batch,
            last => {
                let near = last.filter(|batch| batch.end() == at).map(|batch| Entry {
                    position: at,
                    segment: batch.segment,
                    row: batch.row + batch.rows(),
                });
                let entry = || segments.before(at);
                match self.find(&segments, near, at)? {
                    Some(batch) => Some(batch),
                    None => self.find(&segments, entry(), at)?,
                }
                .ok_or(Fault::Lapped { position: at, oldest })?
            }
        };
        self.batch = Some(batch);
        let start = u64::from(batch.row) * ROW_BYTES + BATCH_HEADER_BYTES as u64 + (at.0 - batch.first.0);
        let rest = usize::try_from(batch.end().0 - at.0).expect("a batch fits memory");
        self.load(&segments, &batch, start, rest, at)
    }

    /// Reads the frame that begins at byte `start` of the open file into the buffer.
    fn load(
        &mut self,
        segments: &Segments,
        batch: &BatchHeader,
        start: u64,
        rest: usize,
        at: Position,
    ) -> Result<Found, Fault> {
        let path = segment::path(&segments.directory, batch.segment);
        let file = open(&mut self.open, segments, batch.segment)?;
        // Most frames are shorter than this; one read then does.
        let first = rest.min(1_024);
        file.read_exact_at(&mut self.buffer[..first], start).map_err(Fault::io("read", &path))?;
        let length = u32_at(&self.buffer, 0);
        if !length_is_possible(length) || rest < length as usize {
            let flaw = Flaw { field: "frame length", at: 0, expected: FRAME_ALIGN, found: u64::from(length) };
            return Err(Fault::Damaged(Place::of(flaw, &path, start, at)));
        }
        let bytes = length as usize;
        if first < bytes {
            let more = &mut self.buffer[first..bytes];
            file.read_exact_at(more, start + first as u64).map_err(Fault::io("read", &path))?;
        }
        Ok(Found { bytes, epoch: batch.epoch })
    }

    /// Walks the batch headers from `entry` to the batch that holds `at`, within one file.
    fn find(
        &mut self,
        segments: &Segments,
        entry: Option<Entry>,
        at: Position,
    ) -> Result<Option<BatchHeader>, Fault> {
        let Some(Entry { segment: number, mut row, .. }) = entry else {
            return Ok(None);
        };
        let file = open(&mut self.open, segments, number)?;
        loop {
            let mut header = [0; BATCH_HEADER_BYTES];
            if file.read_exact_at(&mut header, u64::from(row) * ROW_BYTES).is_err() {
                return Ok(None);
            }
            match BatchHeader::decode(&header, &segments.journal, number, row) {
                Ok(batch) if batch.first <= at && at < batch.end() => return Ok(Some(batch)),
                Ok(batch) if batch.first <= at => row += batch.rows(),
                _ => return Ok(None),
            }
        }
    }
}

fn open<'a>(slot: &'a mut Option<(u64, File)>, segments: &Segments, number: u64) -> Result<&'a File, Fault> {
    if slot.as_ref().is_none_or(|(open, _)| *open != number) {
        let path = segment::path(&segments.directory, number);
        *slot = Some((number, File::open(&path).map_err(Fault::io("open", &path))?));
    }
    let (_, file) = slot.as_ref().expect("it was opened above");
    Ok(file)
}
