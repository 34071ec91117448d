//! One snapshot file: written from front to back, read from front to back.

use super::super::checksum;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::Base;
use crate::domain::Position;
use crate::journal::Fault;
use crate::journal::archive::Archive;
use crate::journal::disk::Disk;
use crate::journal::fault::Place as FaultPlace;
use crate::journal::frame::Flaw;
use crate::journal::frame::{u32_at, u64_at};
use crate::journal::history::Entry;
use crate::journal::segment::{JournalId, zeros};
use crate::memory::sections::{Name, Sink};
use crate::memory::wire::{Input, Wire, structs};

const MAGIC: u64 = u64::from_le_bytes(*b"OUTCSNAP");
/// Raised when the content of a section changes; a snapshot of another version is not read.
const VERSION: u32 = 8;
/// The field of a snapshot of another version.
pub(crate) const VERSION_FIELD: &str = "version of the snapshot";
const HEADER_BYTES: usize = 128;
const HEAD_BYTES: usize = 24;
/// Payloads begin on multiples of this.
const ALIGN: usize = 8;
/// Bytes per write: enough to keep the disk busy, few enough to keep in memory.
const BUFFER_BYTES: usize = 4 << 20;
/// The longest payload: a bound on what a forged count makes us allocate.
const PAYLOAD_BYTES_MAX: u64 = 1 << 32;

const FILES: Name = *b"files   ";
const END: Name = *b"end     ";

structs! { Entry { position, segment, row } }

/// A snapshot that is being written, under a temporary name.
#[derive(Debug)]
pub struct SnapshotWriter {
    disk: Disk,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Bytes that are in the file.
    written: u64,
    /// Of everything that was put so far.
    checksum: u32,
    failed: Option<Fault>,
}

impl SnapshotWriter {
    /// Begins the file of `base` at `path`.
    pub(crate) fn begin(path: &Path, base: &Base, journal: &JournalId, disk: &Disk) -> Result<Self, Fault> {
        let file = disk.create(path)?;
        let mut writer = Self {
            disk: disk.clone(),
            path: path.to_path_buf(),
            file,
            buffer: Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 2),
            written: 0,
            checksum: 0,
            failed: None,
        };
        writer.put(&header(base, journal));
        let mut table = Vec::new();
        base.entries.put(&mut table);
        base.runs.put(&mut table);
        writer.section(FILES, &table);
        Ok(writer)
    }

    /// Writes what is left and syncs the file; returns its length.
    pub(crate) fn finish(mut self) -> Result<u64, Fault> {
        let mut head = [0; HEAD_BYTES];
        let bytes = self.written + self.buffer.len() as u64;
        head[0..8].copy_from_slice(&END);
        head[8..16].copy_from_slice(&bytes.to_le_bytes());
        let checksum = checksum::append(self.checksum, &head[..16]);
        head[16..20].copy_from_slice(&checksum.to_le_bytes());
        self.put(&head);
        self.flush();
        if let Some(fault) = self.failed.take() {
            return Err(fault);
        }
        self.disk.sync(&self.file, &self.path)?;
        Ok(self.written)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.checksum = checksum::append(self.checksum, bytes);
        self.buffer.extend_from_slice(bytes);
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            let written = self.disk.write_at(&self.file, &self.buffer, self.written);
            self.failed = written.map_err(Fault::io("write", &self.path)).err();
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
    }
}

impl Sink for SnapshotWriter {
    fn section(&mut self, name: Name, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let payload = checksum::sum(bytes);
        let head = section_head(name, bytes.len() as u64, payload);
        self.put(&head);
        self.checksum = checksum::combine(self.checksum, payload, bytes.len());
        self.buffer.extend_from_slice(bytes);
        self.put(&[0; ALIGN][..padding(bytes.len())]);
        if BUFFER_BYTES <= self.buffer.len() {
            self.flush();
        }
    }
}

/// A snapshot that is being read; once its end is reached, every byte of it was checked.
#[derive(Debug)]
pub struct SnapshotReader {
    path: PathBuf,
    journal: JournalId,
    file: File,
    base: Base,
    payload: Vec<u8>,
    at: u64,
    checksum: u32,
    ended: bool,
}

impl SnapshotReader {
    /// Opens the snapshot at `path` and reads its header and the journal's own section.
    pub(crate) fn open(path: &Path, journal: &JournalId) -> Result<Self, Fault> {
        let mut file = File::open(path).map_err(Fault::io("open", path))?;
        let mut bytes = [0; HEADER_BYTES];
        read_exact(&mut file, &mut bytes, path, 0)?;
        let base = read_header(&bytes, journal, path).map_err(|flaw| damaged(flaw, path, 0))?;
        let mut reader = Self {
            path: path.to_path_buf(),
            journal: *journal,
            file,
            base,
            payload: Vec::new(),
            at: HEADER_BYTES as u64,
            checksum: checksum::sum(&bytes),
            ended: false,
        };
        match reader.next()? {
            Some((FILES, payload)) => {
                let mut input = Input::new(payload);
                let tables = Wire::take(&mut input).and_then(|tables| input.finish().map(|()| tables));
                let tables = tables.map_err(|_| reader.flaw("tables of files", 0, 0, 0))?;
                (reader.base.entries, reader.base.runs) = tables;
                Ok(reader)
            }
            _ => Err(reader.flaw("name of the first section", 0, u64::from_le_bytes(FILES), 0)),
        }
    }

    /// What the header says.
    #[must_use]
    pub const fn base(&self) -> &Base {
        &self.base
    }

    /// The next section; none at the end, when the whole file has proved to be what was written.
    #[allow(clippy::should_implement_trait, reason = "sections are lent, iterators cannot lend")]
    pub fn next(&mut self) -> Result<Option<(Name, &[u8])>, Fault> {
        if self.ended {
            return Ok(None);
        }
        let mut head = [0; HEAD_BYTES];
        read_exact(&mut self.file, &mut head, &self.path, self.at)?;
        let name: Name = head[..8].try_into().expect("eight bytes");
        let bytes = u64_at(&head, 8);
        zeros(&head[20..], 20, "zeros of the section").map_err(|flaw| damaged(flaw, &self.path, self.at))?;
        if name == END {
            return self.end(&head, bytes);
        }
        if PAYLOAD_BYTES_MAX < bytes {
            return Err(self.flaw("bytes of the section", 8, PAYLOAD_BYTES_MAX, bytes));
        }
        let length = usize::try_from(bytes).expect("at most PAYLOAD_BYTES_MAX");
        // A forged count reads to the end of the file and no further.
        let whole = length + padding(length);
        self.payload.clear();
        let read = (&mut self.file).take(whole as u64).read_to_end(&mut self.payload);
        read.map_err(Fault::io("read", &self.path))?;
        if self.payload.len() < whole {
            return Err(self.flaw("bytes of the section", 8, bytes, self.payload.len() as u64));
        }
        let payload = checksum::sum(&self.payload[..length]);
        let expected = section_head(name, bytes, payload);
        if head != expected {
            return Err(self.flaw("checksum of the section", 16, u64_at(&expected, 16), u64_at(&head, 16)));
        }
        let pad = &self.payload[length..];
        zeros(pad, 0, "zeros after the section").map_err(|flaw| damaged(flaw, &self.path, self.at))?;
        self.checksum = checksum::append(self.checksum, &head);
        self.checksum = checksum::combine(self.checksum, payload, length);
        self.checksum = checksum::append(self.checksum, pad);
        self.at += (HEAD_BYTES + whole) as u64;
        Ok(Some((name, &self.payload[..length])))
    }

    fn end(&mut self, head: &[u8; HEAD_BYTES], bytes: u64) -> Result<Option<(Name, &[u8])>, Fault> {
        let checksum = checksum::append(self.checksum, &head[..16]);
        if bytes != self.at {
            return Err(self.flaw("bytes of the snapshot", 8, self.at, bytes));
        }
        if checksum != u32_at(head, 16) {
            return Err(self.flaw("checksum of the snapshot", 16, u64::from(checksum), u64_at(head, 16)));
        }
        let behind = self.file.read(&mut [0]).map_err(Fault::io("read", &self.path))?;
        if behind != 0 {
            return Err(self.flaw("end of the file", HEAD_BYTES as u64, 0, 1));
        }
        self.ended = true;
        Ok(None)
    }

    /// Skips the next section, which must have this name, without reading it; returns its place.
    pub(crate) fn place(&mut self, name: Name) -> Result<Place, Fault> {
        let mut head = [0; HEAD_BYTES];
        read_exact(&mut self.file, &mut head, &self.path, self.at)?;
        if head[..8] != name {
            return Err(self.flaw("name of the section", 0, u64::from_le_bytes(name), u64_at(&head, 0)));
        }
        let bytes = u64_at(&head, 8);
        if PAYLOAD_BYTES_MAX < bytes {
            return Err(self.flaw("bytes of the section", 8, PAYLOAD_BYTES_MAX, bytes));
        }
        let place = Place { head, at: self.at };
        self.at = place.start() + bytes.next_multiple_of(ALIGN as u64);
        let sought = self.file.seek(SeekFrom::Start(self.at));
        sought.map_err(Fault::io("read", &self.path)).map(|_| place)
    }

    /// The file, for reading at places.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// The runs that the snapshot names; those that `beside` has are not read again.
    pub fn archive(&self, beside: &Archive) -> Result<Archive, Fault> {
        let directory = self.path.parent().expect("a file has a directory");
        Archive::open(directory, &self.base.runs, &self.journal, beside)
    }

    /// The fault of a section whose bytes are whole but have no meaning.
    #[must_use]
    pub fn meaningless(&self, field: &'static str, at: usize) -> Fault {
        self.flaw(field, at as u64, 0, 0)
    }

    fn flaw(&self, field: &'static str, at: u64, expected: u64, found: u64) -> Fault {
        damaged(Flaw { field, at, expected, found }, &self.path, self.at)
    }
}

/// The place of a section that is read only in part, or later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    head: [u8; HEAD_BYTES],
    at: u64,
}

impl Place {
    /// The first byte of its payload in the file.
    pub(crate) fn start(&self) -> u64 {
        self.at + HEAD_BYTES as u64
    }

    /// The bytes of its payload.
    pub(crate) fn bytes(&self) -> u64 {
        u64_at(&self.head, 8)
    }

    /// Its payload, whole and checked.
    pub(crate) fn read(&self, file: &File, path: &Path) -> Result<Vec<u8>, Fault> {
        let mut payload = vec![0; usize::try_from(self.bytes()).expect("it was bounded")];
        file.read_exact_at(&mut payload, self.start()).map_err(Fault::io("read", path))?;
        let name = self.head[..8].try_into().expect("eight bytes");
        let expected = section_head(name, self.bytes(), checksum::sum(&payload));
        let field = "checksum of the section";
        let flaw = Flaw { field, at: 16, expected: u64_at(&expected, 16), found: u64_at(&self.head, 16) };
        if expected == self.head { Ok(payload) } else { Err(damaged(flaw, path, self.at)) }
    }
}

fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN) - bytes
}

fn section_head(name: Name, bytes: u64, payload: u32) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[0..8].copy_from_slice(&name);
    head[8..16].copy_from_slice(&bytes.to_le_bytes());
    let checksum = checksum::append(payload, &head[..16]);
    head[16..20].copy_from_slice(&checksum.to_le_bytes());
    head
}

fn header(base: &Base, journal: &JournalId) -> [u8; HEADER_BYTES] {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    MAGIC.put(&mut out);
    VERSION.put(&mut out);
    base.epoch.put(&mut out);
    journal.put(&mut out);
    base.position.put(&mut out);
    base.chain.put(&mut out);
    base.hash.put(&mut out);
    base.frames.put(&mut out);
    base.durable.put(&mut out);
    base.segment.put(&mut out);
    base.last_kind.put(&mut out);
    out.resize(HEADER_BYTES - 4, 0);
    checksum::sum(&out).put(&mut out);
    out.try_into().expect("the fields above are the header")
}

fn read_header(bytes: &[u8; HEADER_BYTES], journal: &JournalId, path: &Path) -> Result<Base, Flaw> {
    let equal = |field, at, expected, found| {
        if expected == found { Ok(()) } else { Err(Flaw { field, at, expected, found }) }
    };
    equal("magic of the snapshot", 0, MAGIC, u64_at(bytes, 0))?;
    let checksum = checksum::sum(&bytes[..HEADER_BYTES - 4]);
    equal("checksum of the header", 124, u64::from(checksum), u64::from(u32_at(bytes, 124)))?;
    equal(VERSION_FIELD, 8, u64::from(VERSION), u64::from(u32_at(bytes, 8)))?;
    equal("uuid of the journal", 16, u64_at(journal, 0), u64_at(bytes, 16))?;
    equal("uuid of the journal", 24, u64_at(journal, 8), u64_at(bytes, 24))?;
    zeros(&bytes[90..124], 90, "zeros of the header")?;
    Ok(Base {
        file: path.to_path_buf(),
        epoch: u32_at(bytes, 12),
        position: Position(u64_at(bytes, 32)),
        chain: u64_at(bytes, 40),
        hash: u128::from_le_bytes(bytes[48..64].try_into().expect("sixteen bytes")),
        frames: u64_at(bytes, 64),
        durable: Position(u64_at(bytes, 72)),
        segment: u64_at(bytes, 80),
        last_kind: u16::from_le_bytes([bytes[88], bytes[89]]),
        entries: Vec::new(),
        runs: Vec::new(),
    })
}

fn read_exact(file: &mut File, bytes: &mut [u8], path: &Path, at: u64) -> Result<(), Fault> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let field = "bytes of the file";
            damaged(Flaw { field, at: 0, expected: bytes.len() as u64, found: 0 }, path, at)
        }
        _ => Fault::io("read", path)(error),
    })
}

fn damaged(flaw: Flaw, path: &Path, start: u64) -> Fault {
    Fault::SnapshotDamaged(FaultPlace::of(flaw, path, start, Position(0)))
}
