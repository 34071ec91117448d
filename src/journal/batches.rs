//! Writing batches to segments: one synchronous write each, one after another.
//!
//! The next segment, the **spare**, is made by a thread of its own as soon as one is begun, so that
//! writing goes on without a pause when that one is full. A spare that could not be made is no fault
//! yet: it is tried again each time half of the room left at the last try is used up, and at last when
//! it is needed. What then stands in the way is the fault.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::Fault;
use super::disk::{Direct, Disk};
use super::frame::{u32_at, u64_at};
use super::history::{Entry, Segments};
use super::identity::{place, place_at};
use super::scan::Scan;
use super::segment::{
    self, BATCH_BYTES_MAX, BATCH_HEADER_BYTES, BatchBuffer, BatchHeader, FirstRow, Form, JournalId, ROW,
    ROW_BYTES, chain_next, rows,
};
use crate::domain::Position;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The directory of the segments, and what they have in common.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    pub(crate) directory: PathBuf,
    pub(crate) journal: JournalId,
    pub(crate) segment_bytes: u64,
    pub(crate) disk: Disk,
}

impl Shelf {
    fn first_row(&self, number: u64) -> Result<FirstRow, Fault> {
        segment::first_row(&self.directory, &self.journal, number)
    }

    /// Makes segment `number`. If it exists, syncs its name, as the process that gave it may have died
    /// before it was on the disk.
    fn prepare(&self, number: u64) -> Result<(), Fault> {
        if segment::path(&self.directory, number).exists() {
            return self.disk.sync_dir(&self.directory);
        }
        segment::prepare(&self.directory, &self.journal, number, self.segment_bytes, &self.disk)
    }
}

/// The segment after the one that batches go to.
#[derive(Debug)]
enum Spare {
    /// No try is made before this row is reached, unless the segment is needed earlier.
    Missing {
        again_at: u32,
    },
    Making(JoinHandle<Result<(), Fault>>),
    Made,
}

/// The segment that batches go to.
#[derive(Debug)]
struct Current {
    file: File,
    direct: Direct,
    bytes: u64,
    path: PathBuf,
    /// Its device and inode.
    place: [u64; 2],
}

impl Current {
    fn open(shelf: &Shelf, number: u64, direct: Direct) -> Result<Self, Fault> {
        let FirstRow { bytes, .. } = shelf.first_row(number)?;
        let path = segment::path(&shelf.directory, number);
        let (file, direct) = Disk::open_synchronous(&path, direct)?;
        let place = place(&file.metadata().map_err(Fault::io("look at", &path))?);
        Ok(Self { file, direct, bytes, path, place })
    }

    /// Refuses to go on where its path leads to another file, or to none: somebody moved the directory or put another
    /// in its place, and would lose what goes to this one.
    fn refuse_moved(&self) -> Result<(), Fault> {
        match place_at(&self.path) {
            Ok(place) if place == self.place => Ok(()),
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(Fault::io("look at", &self.path)(error))
            }
            Ok(_) | Err(_) => Err(Fault::Moved { segment: self.path.clone() }),
        }
    }
}

/// The end of the segments, where batches are added.
#[derive(Debug)]
pub(crate) struct Batches {
    shelf: Shelf,
    segments: Arc<Segments>,
    buffer: BatchBuffer,
    filled: usize,
    current: Current,
    number: u64,
    row: u32,
    epoch: u32,
    end: Position,
    chain: u64,
    spare: Spare,
    /// Where threads may run, as it is before the journal's gets a CPU of its own.
    cpus: Option<CpuSet>,
}

impl Batches {
    /// Continues at the end that `scan` found; makes the first segment if there is none.
    pub(crate) fn at_end(shelf: Shelf, scan: &Scan, segments: Arc<Segments>) -> Result<Self, Fault> {
        let (number, row) = (scan.segment.max(1), scan.row);
        shelf.prepare(number)?;
        let form = shelf.first_row(number)?.form;
        assert!(
            form == Form::Written,
            "a packed segment is never the last with batches: a scan refuses that"
        );
        let current = Current::open(&shelf, number, Direct::Yes)?;
        let batches = Self {
            shelf,
            segments,
            buffer: BatchBuffer::new(),
            filled: 0,
            current,
            number,
            row,
            epoch: scan.epoch,
            end: scan.end,
            chain: scan.chain,
            spare: Spare::Missing { again_at: row },
            cpus: sched_getaffinity(None).ok(),
        };
        batches.clear_after_end(scan)?;
        Ok(batches)
    }

    /// Zeroes what was cut and syncs what was read, before anything is added.
    fn clear_after_end(&self, scan: &Scan) -> Result<(), Fault> {
        for &number in scan.numbers.iter().filter(|_| scan.cut.is_some()) {
            let path = segment::path(&self.shelf.directory, number);
            let start = match number.cmp(&self.number) {
                std::cmp::Ordering::Less => continue,
                std::cmp::Ordering::Equal => u64::from(self.row) * ROW_BYTES,
                std::cmp::Ordering::Greater => ROW_BYTES,
            };
            let file = std::fs::OpenOptions::new().write(true).open(&path);
            let file = file.map_err(Fault::io("open", &path))?;
            let end = self.shelf.first_row(number)?.bytes;
            segment::fill_zero(&file, &path, start..end, &self.shelf.disk)?;
            self.shelf.disk.sync(&file, &path)?;
        }
        self.shelf.disk.sync(&self.current.file, &self.current.path)
    }

    /// Where its files are.
    pub(crate) const fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Raises the epoch: all that follows belongs to a new start.
    pub(crate) fn raise_epoch(&mut self) -> u32 {
        assert!(self.filled == 0, "a batch is of one epoch");
        self.epoch += 1;
        self.epoch
    }

    /// The table that batches are added to.
    #[cfg(test)]
    pub(crate) fn segments(&self) -> Arc<Segments> {
        Arc::clone(&self.segments)
    }

    /// Whether a thread makes the next segment.
    #[cfg(test)]
    pub(crate) fn makes_spare(&self) -> bool {
        matches!(self.spare, Spare::Making(_))
    }

    /// The end of what was written.
    pub(crate) fn end(&self) -> Position {
        self.end
    }

    /// The room for frames in the next batch.
    pub(crate) fn free(&mut self) -> &mut [u8] {
        let most = usize::try_from(self.current.bytes - ROW_BYTES).unwrap_or(usize::MAX).min(BATCH_BYTES_MAX);
        &mut self.buffer.frames()[self.filled..most - BATCH_HEADER_BYTES]
    }

    /// Adds to the batch the frame that was put at the front of `free`.
    pub(crate) fn take(&mut self) {
        let frame = &self.buffer.frames()[self.filled..];
        self.chain = chain_next(self.chain, u64_at(frame, 0));
        self.filled += u32_at(frame, 0) as usize;
    }

    /// Writes the batch; without frames it is a mark that says how far all is durable.
    ///
    /// When this returns, everything up to `end` survives the machine. After an error nothing more may
    /// be written: what the disk holds is unknown then.
    pub(crate) fn write(&mut self) -> Result<(), Fault> {
        let rows = rows(self.filled);
        if self.current.bytes < u64::from(self.row + rows) * ROW_BYTES {
            self.next_segment()?;
        }
        let header = BatchHeader {
            first: self.end,
            durable: self.end,
            chain: self.chain,
            segment: self.number,
            row: self.row,
            epoch: self.epoch,
            bytes: u32::try_from(self.filled).expect("a batch is at most BATCH_BYTES_MAX"),
        };
        let bytes = rows as usize * ROW;
        let batch = &mut self.buffer.bytes()[..bytes];
        batch[..BATCH_HEADER_BYTES].copy_from_slice(&header.encode(&self.shelf.journal));
        batch[BATCH_HEADER_BYTES + self.filled..].fill(0);
        self.write_rows(bytes)?;
        let entry = Entry { position: header.first, segment: self.number, row: self.row };
        self.segments.add(entry);
        self.row += rows;
        self.end = header.end();
        self.filled = 0;
        Ok(())
    }

    fn write_rows(&mut self, bytes: usize) -> Result<(), Fault> {
        let offset = u64::from(self.row) * ROW_BYTES;
        let batch = &self.buffer.bytes()[..bytes];
        let mut written = self.shelf.disk.write_at(&self.current.file, batch, offset);
        let refused = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput);
        if refused && self.current.direct == Direct::Yes {
            // Some file systems open with O_DIRECT and refuse the write; nothing was written.
            self.current = Current::open(&self.shelf, self.number, Direct::No)?;
            written = self.shelf.disk.write_at(&self.current.file, batch, offset);
        }
        written.map_err(Fault::io("write", &self.current.path))?;
        // Afterwards, as what is acknowledged now has to be where the next start looks for it.
        self.current.refuse_moved()
    }

    fn next_segment(&mut self) -> Result<(), Fault> {
        let number = self.number + 1;
        let is_made = match std::mem::replace(&mut self.spare, Spare::Missing { again_at: 1 }) {
            Spare::Made => true,
            // What stood in its way may be gone by now: a failed try is repeated below.
            Spare::Making(thread) => end_of(thread).is_ok(),
            Spare::Missing { .. } => false,
        };
        if !is_made {
            self.shelf.prepare(number)?;
        }
        let next = Current::open(&self.shelf, number, self.current.direct)?;
        // Found in the directory that the full one is in: in another one's, later frames would have none before them.
        self.current.refuse_moved()?;
        self.current = next;
        self.number = number;
        self.row = 1;
        Ok(())
    }

    /// Starts to make the next segment if it is time to, and reports each failed try once. A failure
    /// loses nothing yet: writing goes on.
    pub(crate) fn tend_spare(&mut self) -> Result<(), Fault> {
        let again_at = self.halfway();
        match std::mem::replace(&mut self.spare, Spare::Missing { again_at }) {
            Spare::Making(thread) if thread.is_finished() => {
                end_of(thread)?;
                self.spare = Spare::Made;
            }
            Spare::Missing { again_at } if again_at <= self.row => {
                self.spare = Spare::Making(self.make_spare()?);
            }
            other => self.spare = other,
        }
        Ok(())
    }

    /// The row at which half of the rows that are left now will be used.
    fn halfway(&self) -> u32 {
        let rows = u32::try_from(self.current.bytes / ROW_BYTES).unwrap_or(u32::MAX);
        self.row + rows.saturating_sub(self.row).div_ceil(2).max(1)
    }

    fn make_spare(&self) -> Result<JoinHandle<Result<(), Fault>>, Fault> {
        let (shelf, number, cpus) = (self.shelf.clone(), self.number + 1, self.cpus);
        let path = segment::path(&shelf.directory, number);
        let thread = std::thread::Builder::new().name("journal-spare".to_owned()).spawn(move || {
            // Not the journal thread's nice value and CPU, which it would inherit: it would take the time of whom it
            // works for, or get none.
            let _ = rustix::process::setpriority_process(None, 0);
            let _ = cpus.map(|cpus| sched_setaffinity(None, &cpus));
            shelf.prepare(number)
        });
        thread.map_err(Fault::io("start a thread to make", &path))
    }
}

fn end_of(thread: JoinHandle<Result<(), Fault>>) -> Result<(), Fault> {
    thread.join().expect("preparing a segment does not panic")
}

impl Drop for Batches {
    /// Waits for a file that is being made, as the directory's lock is released after this.
    fn drop(&mut self) {
        if let Spare::Making(thread) = std::mem::replace(&mut self.spare, Spare::Made) {
            // Its failure matters only to whoever needs the file: the next start makes it again.
            let _ = thread.join();
        }
    }
}
