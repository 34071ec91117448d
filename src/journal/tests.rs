//! The journal as a whole: files in a directory of the test's own, a log file in another that
//! stands for shared memory, and a boot that the test names.

mod damage;
mod elsewhere;
mod identity;
mod moved;
mod pack;
mod recovery;
mod running;
mod runs;
mod snapshots;
mod syncs;
mod verdict;
mod write_errors;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::batches::{Batches, Shelf};
use super::disk::Disk;
use super::history::Segments;
use super::identity::Identity;
use super::layout::{Close, Start};
use super::log::{LOG_HEADER_BYTES, Log, Look};
use super::open::{Durability, Opened, Options, Started, log_bytes_min, open_on};
use super::scan::{Scan, scan};
use super::{Fault, segment};
use crate::domain::{Position, TimeMs};
use crate::memory::mapping::Mapping;

/// The kind of the tests' records: any that the journal does not write itself.
const KIND: u16 = 32;
const BOOT: [u8; 16] = [7; 16];
const SHARDS: u16 = 1;

/// Copies a directory and all that is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A data directory and a place for its log.
struct Home {
    data: TempDir,
    memory: TempDir,
    segment_bytes: u64,
}

impl Home {
    fn new() -> Self {
        Self { data: TempDir::new().unwrap(), memory: TempDir::new().unwrap(), segment_bytes: 32 * 1024 }
    }

    fn options(&self) -> Options {
        Options {
            shared_memory: self.memory.path().to_path_buf(),
            log_bytes: log_bytes_min(SHARDS),
            segment_bytes: self.segment_bytes,
            // Where the tests run there may be nothing but memory.
            durability: Durability::Committed,
            ..Options::new(self.data.path())
        }
    }

    fn open(&self) -> Result<Opened, Fault> {
        open_on(self.options(), Disk::default(), BOOT)
    }

    fn start(&self) -> Started {
        start(self.open().unwrap())
    }

    /// A home with one durable frame, whose journal thread has ended as in a crash; its log is still held.
    fn abandoned() -> (Self, Arc<Log>) {
        let home = Self::new();
        let Started { log, writer, .. } = home.start();
        let span = log.append(KIND, &payload(1));
        wait_durable(&log, span.end);
        writer.abandon().unwrap();
        (home, log)
    }

    fn log_path(&self) -> PathBuf {
        let identity = Identity::load(self.data.path()).unwrap().unwrap();
        self.memory.path().join(format!("outcry-{}", identity.exchange))
    }

    fn scan(&self) -> Result<Scan, Fault> {
        let identity = Identity::load(self.data.path()).unwrap().unwrap();
        scan(&segment::directory(self.data.path()), &identity.journal(), None)
    }

    /// The payloads of the tests' own frames, after a start that is not carried through.
    fn payloads(&self) -> Vec<Vec<u8>> {
        payloads(&self.open().unwrap())
    }
}

fn start(opened: Opened) -> Started {
    opened.start(TimeMs(1), SHARDS, Box::new(|_| {})).unwrap()
}

fn payloads(opened: &Opened) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let each = opened.for_each_frame::<Fault>(|frame| {
        if ![Start::KIND, Close::KIND].contains(&frame.kind) {
            payloads.push(frame.payload.to_vec());
        }
        Ok(())
    });
    each.unwrap();
    payloads
}

/// Waits until the journal thread has made everything up to `end` durable, or has given up.
fn wait_durable(log: &Log, end: Position) {
    while log.durable() < end && !log.failed() {
        log.wake_writer();
        std::thread::yield_now();
    }
}

/// The `index`-th of the payloads that a test tells apart.
fn payload(index: usize) -> Vec<u8> {
    let byte = u8::try_from(index % 255 + 1).unwrap();
    let mut payload = vec![byte; index * 37 % 400];
    payload.extend_from_slice(&(index as u64).to_le_bytes());
    payload
}

/// Segments that are written without a thread, so that a test knows each batch.
struct Bench {
    home: Home,
    log: Log,
    batches: Batches,
    /// The position of the next frame that a test makes without the log.
    next_position: Position,
}

impl Bench {
    fn new(segment_bytes: u64) -> Self {
        Self::at(Home { segment_bytes, ..Home::new() })
    }

    /// In memory if there is such a place: thousands of syncs go faster where they do nothing.
    fn in_memory(segment_bytes: u64) -> Self {
        Self::at(Home { segment_bytes, ..write_errors::in_memory() })
    }

    fn at(home: Home) -> Self {
        Self::on(home, Disk::default())
    }

    /// On a disk that may fail once the first segment is there.
    fn on(home: Home, disk: Disk) -> Self {
        let segment_bytes = home.segment_bytes;
        let identity = Identity::new();
        identity.store(home.data.path(), &Disk::default()).unwrap();
        let directory = segment::directory(home.data.path());
        std::fs::create_dir(&directory).unwrap();
        let found = home.scan().unwrap();
        let journal = identity.journal();
        let segments = Arc::new(Segments::new(&directory, journal, Vec::new()));
        let shelf = Shelf { directory, journal, segment_bytes, disk };
        let mut batches = Batches::at_end(shelf, &found, segments).unwrap();
        let epoch = batches.raise_epoch();
        let mapping = Mapping::anonymous(LOG_HEADER_BYTES + 1024 * 1024).unwrap();
        let log = Log::over(mapping, None, epoch, batches.end());
        let next_position = batches.end();
        Self { home, log, batches, next_position }
    }

    /// Writes one batch with these payloads.
    fn batch(&mut self, payloads: &[Vec<u8>]) {
        for payload in payloads {
            let span = self.log.append(KIND, payload);
            let look = self.log.copy(span.start, self.batches.free());
            assert!(matches!(look, Look::Bytes(_)));
            self.batches.take();
        }
        self.batches.write().unwrap();
    }

    fn segment(&self, number: u64) -> PathBuf {
        segment::path(&segment::directory(self.home.data.path()), number)
    }
}
