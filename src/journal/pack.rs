//! Packing: sealed segments are rewritten without the unused ends of their rows.
//!
//! A batch takes whole rows, and holds what was ready for one synchronous write. Where orders come one
//! by one, most of a segment is zeros. Once it is sealed, nothing is added to it and all of it is
//! durable, so the borders of its batches mean nothing any more: its frames go to as few batches as
//! hold them, in a new file, which takes the old one's name.
//!
//! | kept                                             | dropped                   |
//! |--------------------------------------------------|---------------------------|
//! | every frame, byte for byte, padding too          | zeros at the ends of rows |
//! | positions, the chain, the number of the segment  | rows that no batch has    |
//! | batches of one epoch each, for the same epochs   | borders within an epoch   |
//! | a mark of each epoch that left no frame          | marks beside frames       |
//! | durable marks that rise, at or below their batch | most of them              |
//!
//! 1. *Judge*: headers alone say what packing would save. Below a quarter the segment stays as it is.
//! 2. *Write*: read a piece, check every byte of it as a start does, write full batches and sync them.
//! 3. *Check*: read the new file the same way; it must reach the same end by the same chain.
//! 4. *Rename* it over the old one and sync the directory; then update the table of positions.
//!
//! A death at any moment leaves the old file or the new one, and perhaps an unfinished one beside it,
//! which the next start removes. After a fault everything is as before. Each step reads or writes
//! about a MiB and is finished when it returns, so that nothing queues up in front of the journal
//! thread's writes, and the caller can stop between any two.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Fault;
use super::batches::Shelf;
use super::disk::{Disk, files_with, free_bytes};
use super::fault::Place;
use super::frame::{Flaw, u64_at};
use super::history::{Entry, Segments};
use super::scan::{Scan, frame, frames_of, length, offset};
use super::segment::{
    self, BATCH_BYTES_MAX, BATCH_HEADER_BYTES, BatchBuffer, BatchHeader, FirstRow, Form, JournalId, ROW,
    ROW_BYTES, chain_next, rows, zeros,
};
use crate::domain::Position;

/// Packing must save one part in this many of a segment. Under load a batch of some ten rows wastes
/// half of one, and writing everything again is not worth that.
const WORTH_SHARE: u64 = 4;
/// Headers that are read in one step. Each may be on a row of its own: half a MiB of reading.
const HEADERS_PER_STEP: u32 = 128;
/// The bytes of frames in a full batch.
const BATCH_FRAMES_MAX: usize = BATCH_BYTES_MAX - BATCH_HEADER_BYTES;
/// The extension of a new segment's file until it has its name.
const EXTENSION: &str = "packing";

/// Packs the sealed segments of one data directory, the oldest first, a small step at a time.
///
/// It belongs to the one thread that also gives segments back. If a segment is given back between two
/// steps, what was made of it is dropped.
#[derive(Debug)]
pub struct Packer {
    shelf: Shelf,
    segments: Arc<Segments>,
    free_bytes_min: u64,
    /// The first segment that was not judged yet.
    next: u64,
    work: Option<Work>,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Every sealed segment was judged.
    Idle,
    /// There is more to do.
    Busy,
    /// A segment was packed.
    Packed(Packed),
}

/// A segment that was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Its number.
    pub segment: u64,
    /// The bytes of its file before.
    pub bytes_before: u64,
    /// The bytes of its file now.
    pub bytes: u64,
}

#[derive(Debug)]
enum Work {
    Judging(Judging),
    Writing(Box<Writing>),
    Checking(Box<Checking>),
}

impl Packer {
    pub(crate) fn new(shelf: Shelf, segments: Arc<Segments>) -> Self {
        Self { shelf, segments, free_bytes_min: 0, next: 1, work: None }
    }

    /// Packs nothing that would, even for a moment, leave less than `free_bytes_min` on the disk.
    #[must_use]
    pub fn leaving_free(self, free_bytes_min: u64) -> Self {
        Self { free_bytes_min, ..self }
    }

    /// Takes one step. After a fault nothing has changed, except that the segment may be packed
    /// already if only its directory could not be synced. A damaged segment is left alone; after any
    /// other fault the next step begins with the same segment.
    pub fn step(&mut self) -> Result<Step, Fault> {
        let oldest = self.segments.first();
        if self.next < oldest {
            (self.next, self.work) = (oldest, None);
        }
        let step = match self.work.take() {
            None => self.begin(),
            Some(Work::Judging(judging)) => self.judge(judging),
            Some(Work::Writing(writing)) => self.write(writing),
            Some(Work::Checking(checking)) => self.check(checking),
        };
        if matches!(step, Err(Fault::Damaged(_))) {
            self.next += 1;
        }
        step
    }

    fn begin(&mut self) -> Result<Step, Fault> {
        if self.segments.newest() <= self.next {
            return Ok(Step::Idle);
        }
        let sealed = Sealed::open(&self.shelf, self.next)?;
        if sealed.form == Form::Packed {
            self.learn_again(&sealed)?;
            self.next += 1;
        } else {
            self.work = Some(Work::Judging(Judging::of(sealed)));
        }
        Ok(Step::Busy)
    }

    /// Corrects the table if it still has the rows from before packing, as a snapshot's may.
    fn learn_again(&self, sealed: &Sealed) -> Result<(), Fault> {
        let known = self.segments.entries_of(sealed.number);
        let Some(last) = known.last() else {
            return Ok(());
        };
        if sealed
            .header(last.row)
            .is_ok_and(|header| header.is_some_and(|there| there.first == last.position))
        {
            return Ok(());
        }
        let (mut entries, mut row) = (Vec::new(), 1);
        while let Some(header) = sealed.header(row)? {
            Entry { position: header.first, segment: sealed.number, row }.push_if_far(&mut entries);
            row += header.rows();
        }
        self.segments.replace(sealed.number, entries);
        Ok(())
    }

    fn judge(&mut self, mut judging: Judging) -> Result<Step, Fault> {
        if !judging.step()? {
            self.work = Some(Work::Judging(judging));
        } else if judging.is_worth_it() {
            self.check_room(&judging)?;
            self.work = Some(Work::Writing(Box::new(Writing::begin(judging.sealed, &self.shelf)?)));
        } else {
            self.next += 1;
        }
        Ok(Step::Busy)
    }

    fn write(&mut self, mut writing: Box<Writing>) -> Result<Step, Fault> {
        self.work = Some(if writing.step()? {
            Work::Checking(Box::new(writing.finish()?))
        } else {
            Work::Writing(writing)
        });
        Ok(Step::Busy)
    }

    fn check(&mut self, mut checking: Box<Checking>) -> Result<Step, Fault> {
        if !checking.step()? {
            self.work = Some(Work::Checking(checking));
            return Ok(Step::Busy);
        }
        let Checking { before, after, unnamed } = *checking;
        same(&before, &after)?;
        self.shelf.disk.rename(&unnamed.path, &before.sealed.path)?;
        let number = before.sealed.number;
        self.segments.replace(number, after.scan.entries);
        self.next += 1;
        let (bytes_before, bytes) = (before.sealed.bytes, after.sealed.bytes);
        assert!(bytes < bytes_before, "what does not shrink is left alone");
        Ok(Step::Packed(Packed { segment: number, bytes_before, bytes }))
    }

    /// Refuses to write the new file if less would be left than must stay free.
    fn check_room(&self, judging: &Judging) -> Result<(), Fault> {
        let (bytes, free_bytes_min) = (judging.bytes_packed(), self.free_bytes_min);
        let directory = &self.shelf.directory;
        let free_bytes = free_bytes(directory).map_err(Fault::io("look at the disk of", directory))?;
        if free_bytes_min.saturating_add(bytes) <= free_bytes {
            return Ok(());
        }
        let segment = judging.sealed.path.clone();
        Err(Fault::NoRoomToPack { segment, bytes, free_bytes, free_bytes_min })
    }
}

/// Removes the unfinished files of a process that died while packing.
pub(crate) fn remove_unfinished(directory: &Path, disk: &Disk) -> Result<(), Fault> {
    files_with(directory, EXTENSION)?.iter().try_for_each(|path| disk.remove(path))
}

/// A segment that nobody writes to; it is of this journal, and as long as its first row says.
#[derive(Debug)]
struct Sealed {
    number: u64,
    path: PathBuf,
    file: File,
    journal: JournalId,
    form: Form,
    bytes: u64,
}

impl Sealed {
    fn open(shelf: &Shelf, number: u64) -> Result<Self, Fault> {
        let path = segment::path(&shelf.directory, number);
        let file = File::open(&path).map_err(Fault::io("open", &path))?;
        Self::of(file, path, &shelf.journal, number)
    }

    fn of(file: File, path: PathBuf, journal: &JournalId, number: u64) -> Result<Self, Fault> {
        let damaged = |flaw| Fault::Damaged(Place::of(flaw, &path, 0, Position(0)));
        let found = file.metadata().map_err(Fault::io("look at", &path))?.len();
        let mut row = vec![0; ROW.min(usize::try_from(found).unwrap_or(ROW))];
        file.read_exact_at(&mut row, 0).map_err(Fault::io("read", &path))?;
        let first = FirstRow::decode(&row, journal, number).map_err(damaged)?;
        let form = first.fits(found).map_err(damaged)?;
        Ok(Self { number, path, file, journal: *journal, form, bytes: found })
    }

    /// The header of the batch at `row`; none after the last one.
    fn header(&self, row: u32) -> Result<Option<BatchHeader>, Fault> {
        let start = offset(row) as u64;
        if self.bytes <= start {
            return Ok(None);
        }
        let mut header = [0; BATCH_HEADER_BYTES];
        self.file.read_exact_at(&mut header, start).map_err(Fault::io("read", &self.path))?;
        if self.form == Form::Written && zeros(&header, 0, "").is_ok() {
            return Ok(None);
        }
        let header = BatchHeader::decode(&header, &self.journal, self.number, row);
        header.map(Some).map_err(|flaw| self.damaged(flaw, row, Position(0)))
    }

    fn damaged(&self, flaw: Flaw, row: u32, position: Position) -> Fault {
        Fault::Damaged(Place::of(flaw, &self.path, offset(row) as u64, position))
    }
}

/// Reads from the headers what packing would save.
#[derive(Debug)]
struct Judging {
    sealed: Sealed,
    row: u32,
    epoch: u32,
    /// Bytes of frames of this epoch so far.
    epoch_bytes: u64,
    /// Rows that the epochs before will take when packed.
    rows_before: u64,
}

impl Judging {
    fn of(sealed: Sealed) -> Self {
        Self { sealed, row: 1, epoch: 0, epoch_bytes: 0, rows_before: 0 }
    }

    /// Reads some headers; true when it has read all.
    fn step(&mut self) -> Result<bool, Fault> {
        for _ in 0..HEADERS_PER_STEP {
            let Some(header) = self.sealed.header(self.row)? else {
                return Ok(true);
            };
            if header.epoch != self.epoch {
                self.rows_before += self.rows_of_epoch();
                (self.epoch, self.epoch_bytes) = (header.epoch, 0);
            }
            self.epoch_bytes += u64::from(header.bytes);
            self.row += header.rows();
        }
        Ok(false)
    }

    /// The rows that the last epoch will take when packed; each batch has a header and may end in
    /// mid-row.
    fn rows_of_epoch(&self) -> u64 {
        if self.epoch == 0 {
            return 0;
        }
        let batches = self.epoch_bytes.div_ceil(BATCH_FRAMES_MAX as u64).max(1);
        (self.epoch_bytes + batches * BATCH_HEADER_BYTES as u64).div_ceil(ROW_BYTES) + batches - 1
    }

    /// The bytes of the packed file, as far as headers tell: with large frames, batches are less than
    /// full, and a few rows are added.
    fn bytes_packed(&self) -> u64 {
        (1 + self.rows_before + self.rows_of_epoch()) * ROW_BYTES
    }

    fn is_worth_it(&self) -> bool {
        let bytes = self.sealed.bytes;
        1 < self.row && self.bytes_packed() + bytes / WORTH_SHARE <= bytes
    }
}

/// Reads a sealed segment from front to back, checking every byte of it as a start does.
#[derive(Debug)]
struct Reading {
    sealed: Sealed,
    piece: BatchBuffer,
    row: u32,
    /// What was read so far.
    scan: Scan,
    /// The chain before the first frame, and that frame's position.
    opening: (u64, Position),
    /// True once only zeros may follow.
    ended: bool,
}

impl Reading {
    /// Begins at the first batch; there is one.
    fn begin(sealed: Sealed) -> Result<Self, Fault> {
        let mut piece = BatchBuffer::new();
        let bytes = load(&sealed, 1, &mut piece)?;
        let scan = Scan::opening(&sealed.journal, sealed.number, &piece.bytes()[..bytes])
            .map_err(|flaw| sealed.damaged(flaw, 1, Position(0)))?;
        let opening = (scan.chain, scan.end);
        Ok(Self { sealed, piece, row: 1, scan, opening, ended: false })
    }

    /// Reads the next piece and passes the frames of each batch that is whole in it to `take`. False
    /// when there is nothing more.
    fn step(
        &mut self,
        mut take: impl FnMut(&BatchHeader, &[u8]) -> Result<(), Fault>,
    ) -> Result<bool, Fault> {
        let bytes = load(&self.sealed, self.row, &mut self.piece)?;
        let Self { sealed, scan, .. } = self;
        let piece = &self.piece.bytes()[..bytes];
        let mut at = 0;
        while at < bytes {
            let rest = &piece[at..];
            self.ended |= sealed.form == Form::Written && zeros(&rest[..ROW], 0, "").is_ok();
            let damaged = |flaw, position| sealed.damaged(flaw, self.row, position);
            if self.ended {
                zeros(rest, 0, "zeros after the last batch").map_err(|flaw| damaged(flaw, scan.end))?;
                self.row += u32::try_from(rest.len() / ROW).expect("a piece is at most 128 rows");
                return Ok(true);
            }
            let header = BatchHeader::decode(rest, &sealed.journal, sealed.number, self.row);
            let header = header.map_err(|flaw| damaged(flaw, scan.end))?;
            if rest.len() < offset(header.rows()) && 0 < at {
                // A piece has room for the largest batch, so the next one will have all of this.
                return Ok(true);
            }
            let taken = scan.take(&sealed.journal, sealed.number, self.row, rest, 0);
            let header = taken.map_err(|flaw| damaged(flaw, scan.end))?;
            take(&header, frames_of(&header, rest).expect("it was taken in"))?;
            at += offset(header.rows());
            self.row += header.rows();
        }
        Ok(0 < bytes)
    }
}

/// Reads the file from `row` on, as much as the piece has room for; returns how many bytes.
fn load(sealed: &Sealed, row: u32, piece: &mut BatchBuffer) -> Result<usize, Fault> {
    let start = offset(row) as u64;
    let bytes = sealed.bytes.saturating_sub(start).min(BATCH_BYTES_MAX as u64);
    let bytes = usize::try_from(bytes).expect("at most a batch");
    let piece = &mut piece.bytes()[..bytes];
    sealed.file.read_exact_at(piece, start).map_err(Fault::io("read", &sealed.path))?;
    Ok(bytes)
}

/// A file under a temporary name, which is removed unless it gets its own.
#[derive(Debug)]
struct Unnamed {
    path: PathBuf,
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        // Once renamed, it is not found here. Half of it is of no use, and its room may be needed.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes the frames of a segment to a new file.
#[derive(Debug)]
struct Writing {
    reading: Reading,
    out: Out,
}

impl Writing {
    fn begin(sealed: Sealed, shelf: &Shelf) -> Result<Self, Fault> {
        let reading = Reading::begin(sealed)?;
        let out = Out::begin(&reading, shelf)?;
        Ok(Self { reading, out })
    }

    /// Moves one piece; true when everything is written.
    fn step(&mut self) -> Result<bool, Fault> {
        let Self { reading, out } = self;
        let more = reading.step(|header, frames| {
            out.enter(header)?;
            let mut at = 0;
            while at < frames.len() {
                let bytes = length(&frame(frames, at, header).expect("it was checked"));
                out.put(&frames[at..at + bytes])?;
                at += bytes;
            }
            Ok(())
        })?;
        if !more {
            out.leave()?;
        }
        Ok(!more)
    }

    /// Writes the first row, which makes the file a segment, and begins to read it.
    fn finish(self) -> Result<Checking, Fault> {
        let Self { reading: before, mut out } = self;
        assert!(before.scan.chain == out.chain, "every frame went over");
        out.write_first_row()?;
        let Out { file, unnamed, .. } = out;
        let Sealed { journal, number, .. } = before.sealed;
        let after = Reading::begin(Sealed::of(file, unnamed.path.clone(), &journal, number)?)?;
        Ok(Checking { before, after, unnamed })
    }
}

/// The packed file as it grows.
#[derive(Debug)]
struct Out {
    disk: Disk,
    unnamed: Unnamed,
    file: File,
    journal: JournalId,
    number: u64,
    buffer: BatchBuffer,
    /// Bytes of frames in the buffer.
    filled: usize,
    /// The position of the first of them.
    first: Position,
    /// The epoch of the batch that is being filled; 0 before the first.
    epoch: u32,
    /// Whether that epoch has a batch already.
    has_batch: bool,
    chain: u64,
    row: u32,
}

impl Out {
    fn begin(reading: &Reading, shelf: &Shelf) -> Result<Self, Fault> {
        let path = reading.sealed.path.with_extension(EXTENSION);
        let unnamed = Unnamed { path };
        let file = shelf.disk.create(&unnamed.path)?;
        let (chain, first) = reading.opening;
        Ok(Self {
            disk: shelf.disk.clone(),
            unnamed,
            file,
            journal: shelf.journal,
            number: reading.sealed.number,
            buffer: BatchBuffer::new(),
            filled: 0,
            first,
            epoch: 0,
            has_batch: false,
            chain,
            row: 1,
        })
    }

    /// Lets all that follows be of the epoch of `header`.
    fn enter(&mut self, header: &BatchHeader) -> Result<(), Fault> {
        if header.epoch == self.epoch {
            return Ok(());
        }
        self.leave()?;
        assert!(header.first.0 == self.first.0, "nothing lies between two batches");
        (self.epoch, self.has_batch) = (header.epoch, false);
        Ok(())
    }

    /// Writes what is left of this epoch; if it has no batch yet, a mark of it.
    fn leave(&mut self) -> Result<(), Fault> {
        let is_epoch = self.epoch != 0;
        if is_epoch && (0 < self.filled || !self.has_batch) { self.write() } else { Ok(()) }
    }

    fn put(&mut self, frame: &[u8]) -> Result<(), Fault> {
        if BATCH_FRAMES_MAX < self.filled + frame.len() {
            self.write()?;
        }
        self.buffer.frames()[self.filled..self.filled + frame.len()].copy_from_slice(frame);
        self.filled += frame.len();
        self.chain = chain_next(self.chain, u64_at(frame, 0));
        Ok(())
    }

    /// Writes a batch and waits until the disk has it: what queues up there delays others.
    fn write(&mut self) -> Result<(), Fault> {
        let header = BatchHeader {
            first: self.first,
            // All before it is durable, and so are its frames; but no mark is above its batch's start.
            durable: self.first,
            chain: self.chain,
            segment: self.number,
            row: self.row,
            epoch: self.epoch,
            bytes: u32::try_from(self.filled).expect("a batch is at most BATCH_BYTES_MAX"),
        };
        let bytes = rows(self.filled) as usize * ROW;
        let batch = &mut self.buffer.bytes()[..bytes];
        batch[..BATCH_HEADER_BYTES].copy_from_slice(&header.encode(&self.journal));
        batch[BATCH_HEADER_BYTES + self.filled..].fill(0);
        let written = self.disk.write_at(&self.file, batch, offset(self.row) as u64);
        written.map_err(Fault::io("write", &self.unnamed.path))?;
        self.disk.sync(&self.file, &self.unnamed.path)?;
        self.row += header.rows();
        self.first = header.end();
        (self.filled, self.has_batch) = (0, true);
        Ok(())
    }

    fn write_first_row(&mut self) -> Result<(), Fault> {
        let row = FirstRow { form: Form::Packed, bytes: offset(self.row) as u64 };
        let row = row.encode(&self.journal, self.number);
        self.disk.write_at(&self.file, &row, 0).map_err(Fault::io("write", &self.unnamed.path))?;
        self.disk.sync(&self.file, &self.unnamed.path)
    }
}

/// Reads what was written, before it replaces what it was made from.
#[derive(Debug)]
struct Checking {
    before: Reading,
    after: Reading,
    unnamed: Unnamed,
}

impl Checking {
    /// Reads a piece; true when everything was read.
    fn step(&mut self) -> Result<bool, Fault> {
        self.after.step(|_, _| Ok(())).map(|more| !more)
    }
}

/// Checks that both files reach the same end by the same frames: the chain covers all their bytes.
fn same(before: &Reading, after: &Reading) -> Result<(), Fault> {
    let (was, is) = (&before.scan, &after.scan);
    let pairs = [
        ("position of the first frame", before.opening.1.0, after.opening.1.0),
        ("chain in front of the first frame", before.opening.0, after.opening.0),
        ("end of the packed segment", was.end.0, is.end.0),
        ("chain of the packed segment", was.chain, is.chain),
        ("epoch of the packed segment", u64::from(was.epoch), u64::from(is.epoch)),
        ("frames of the packed segment", was.frames, is.frames),
    ];
    for (field, expected, found) in pairs {
        if expected != found {
            return Err(after.sealed.damaged(Flaw { field, at: 0, expected, found }, 1, was.end));
        }
    }
    Ok(())
}
