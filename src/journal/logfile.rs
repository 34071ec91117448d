//! The log's file: whose it is, and what a process that died left in it.
//!
//! Its first page, in words of 8 bytes (the ring follows; `log` explains the marks):
//!
//! | word | words | field                                             |
//! |-----:|------:|---------------------------------------------------|
//! |    0 |     1 | magic; stored last                                |
//! |    1 |     2 | uuid of the exchange                              |
//! |    3 |     2 | boot id                                           |
//! |    5 |     2 | device and inode of the data directory            |
//! |    7 |     1 | epoch                                             |
//! |    8 |     1 | CRC-32C of words 1..8, path, and word 138 if told |
//! |    9 |     1 | bytes of the path                                 |
//! |   10 |   128 | path of the data directory, for people            |
//! |  138 |     1 | bytes of the ring; zero if they were not told     |
//! |  256 |     1 | durable position                                  |
//! |  288 |     1 | where the ring's content starts                   |
//! |  320 |     1 | up to where the ring is zero and free             |
//!
//! A file without the magic is one whose maker died before using it: it holds nothing.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::Fault;
use super::checksum;
use super::disk::{Disk, in_memory, is_locked, lock, open_shared, reserve, reserve_keeping_length};
use super::fault::Place;
use super::frame::{FRAME_ALIGN, Flaw, length_is_possible, read};
use super::identity::place;
use super::log::{DURABLE_WORD, FREED_WORD, Files, LOG_HEADER_BYTES, Log, RECLAIMED_WORD, words_in};
use super::scan::Scan;
use super::verdict::Heir;
use crate::domain::Position;
use crate::memory::mapping::{HUGE_BYTES, Mapping};
use crate::memory::sync::Ordering;

const LOG_MAGIC: u64 = u64::from_le_bytes(*b"OUTCLOG3");
const LENGTH_FIELD: &str = "length of the log";
const MAGIC_FIELD: &str = "magic of the log";
const CHECKSUM_WORD: usize = 8;
const PATH_BYTES_WORD: usize = 9;
const PATH_WORD: usize = 10;
const PATH_BYTES_MAX: usize = 1_024;
const RING_BYTES_WORD: usize = PATH_WORD + PATH_BYTES_MAX / 8;
/// The file of a data directory that says where its log was.
const KNOWN_PATH: &str = "log-path";
/// Enough to see what is going on; a directory full of them must not bury the other notes.
const STRANGERS_NAMED_MAX: usize = 4;

const _: () = assert!(RING_BYTES_WORD < DURABLE_WORD, "the marks come last");

/// The owner of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) exchange: [u8; 16],
    pub(crate) boot: [u8; 16],
    pub(crate) place: [u64; 2],
    pub(crate) epoch: u32,
    pub(crate) data_dir: PathBuf,
    /// Bytes of the ring; zero if an earlier version did not tell them.
    pub(crate) ring_bytes: u64,
}

/// The logs in `directory` but `ours` that no process has, and whose they are.
fn others(directory: &Path, ours: &Path) -> impl Iterator<Item = (PathBuf, Owner)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let logs = entries.map(|entry| entry.path()).filter(move |path| {
        path != ours && path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"outcry-"))
    });
    logs.filter_map(|path| left_behind(path).ok()?)
}

/// The log at `path` and whose it is, if no process has it: one that is in use may be emptied while it is read. None if
/// no file is there. A fault if the file is no log, or one whose owner cannot be told.
pub(crate) fn left_behind(path: PathBuf) -> Result<Option<(PathBuf, Owner)>, Fault> {
    Ok(owner_if(&path, false)?.map(|owner| (path, owner)))
}

/// Whose the log at `path` is, if a process has it. What that writes meanwhile is not looked at.
pub(crate) fn in_use(path: &Path) -> Option<Owner> {
    owner_if(path, true).ok()?
}

fn owner_if(path: &Path, in_use: bool) -> Result<Option<Owner>, Fault> {
    let file = match opened(path) {
        Ok(Some(file)) => file,
        Ok(None) | Err(Fault::Foreign { .. }) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    if is_locked(&file).map_err(Fault::io("look at", path))? != in_use {
        return Ok(None);
    }
    let left = read_left(&file, path, |file, _| copied(file, LOG_HEADER_BYTES))?;
    Ok(left.map(|left| left.owner))
}

/// The log, other than `ours`, that the last process of the heir's data directory left, in `directory` or where `known`
/// says that it had it, if it ran in this boot and in the segments' epoch; or that of the directory that this one was
/// copied or moved from, or that was in its place. A fault if the known one may not be read, or is damaged.
///
/// Segments that end with a stop in good order miss nothing, unless they lost all that came after it: so a log of the
/// heir's own counts even then, and if it is of a later epoch.
pub(crate) fn left_elsewhere(
    (directory, known): (&Path, Option<PathBuf>),
    ours: &Path,
    heir: &Heir<'_>,
    found: &Scan,
) -> Result<Option<(PathBuf, Owner)>, Fault> {
    let known = match known.filter(|path| path != ours).map_or(Ok(None), left_behind) {
        Err(_) if found.is_closed() => None,
        known => known?,
    };
    let is_last = |owner: &Owner| {
        let (is_here, is_named) = (owner.place == heir.place, owner.exchange == *heir.exchange.as_bytes());
        owner.boot == heir.boot
            && if is_here && is_named {
                found.epoch <= owner.epoch
            } else {
                (is_here || is_named) && owner.epoch == found.epoch && !found.is_closed()
            }
    };
    // Of equal ones the last counts, which is the known one.
    let all = others(directory, ours).chain(known).filter(|(_, owner)| is_last(owner));
    Ok(all.max_by_key(|(_, owner)| owner.epoch))
}

/// The file at `path`, if anything is there, for whoever only reads. A fault if it is no file, or may not be read: it may
/// have what segments do not.
fn opened(path: &Path) -> Result<Option<File>, Fault> {
    // To open a pipe would wait for whoever writes to it.
    let is_file = std::fs::metadata(path).map(|about| about.is_file());
    match is_file.and_then(|is_file| is_file.then(|| File::open(path)).transpose()) {
        Ok(None) => Err(no_file(path)),
        Ok(file) => Ok(file),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unopened(path, error)),
    }
}

fn no_file(path: &Path) -> Fault {
    let what = "a log: it is a folder, a device, a pipe or a socket; give another log_path";
    Fault::Foreign { path: path.to_path_buf(), what }
}

/// Why a log cannot be opened, with a way out if it is another user's.
fn unopened(path: &Path, error: std::io::Error) -> Fault {
    match error.kind() {
        ErrorKind::PermissionDenied => Fault::LogOfOtherUser { log: path.to_path_buf(), error },
        _ => Fault::io("open", path)(error),
    }
}

/// Where the newest start of `data_dir` had its log; none if none has begun a journal.
pub(crate) fn known_path(data_dir: &Path) -> Result<Option<PathBuf>, Fault> {
    let path = data_dir.join(KNOWN_PATH);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(PathBuf::from(OsString::from_vec(bytes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::io("read", &path)(error)),
    }
}

/// Writes down where this start has its log, before it is there.
pub(crate) fn keep_path(data_dir: &Path, log: &Path, disk: &Disk) -> Result<(), Fault> {
    // One that cannot be read is written anew.
    if known_path(data_dir).is_ok_and(|known| known.as_deref() == Some(log)) {
        return Ok(());
    }
    disk.replace(&data_dir.join(KNOWN_PATH), log.as_os_str().as_bytes())
}

/// Notes on log files in `directory` whose data directory cannot be seen from here. They may be another
/// container's, so they are named and never touched.
pub(crate) fn strangers(directory: &Path, ours: &Path) -> Vec<String> {
    let mut notes: Vec<String> = others(directory, ours)
        .filter_map(|(path, owner)| {
            let about = std::fs::metadata(&owner.data_dir).ok();
            if about.is_some_and(|about| place(&about) == owner.place) {
                return None;
            }
            let (path, data_dir) = (path.display(), owner.data_dir.display());
            Some(format!(
                "{path} is the log of the data directory {data_dir}, which is not to be seen here; if nobody \
             needs it: rm {path}"
            ))
        })
        .collect();
    let more = notes.len().saturating_sub(STRANGERS_NAMED_MAX);
    if 0 < more {
        notes.truncate(STRANGERS_NAMED_MAX);
        notes.push(format!("{}: {more} more logs like these", directory.display()));
    }
    notes
}

/// A log file that this process has locked. It is removed with this value if it holds nothing: a start that was refused
/// leaves none behind. A start that a signal ended may leave an empty file, which the next one takes.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    file: File,
}

impl LogFile {
    /// Opens the file, makes it if need be, and locks it. Only a regular file will do: logs get removed.
    pub(crate) fn lock(path: &Path) -> Result<Self, Fault> {
        let file = open_shared(path).map_err(|error| unopened(path, error))?;
        if !file.metadata().map_err(Fault::io("look at", path))?.is_file() {
            return Err(no_file(path));
        }
        // Who had it before may have removed it meanwhile.
        let is_there = |file: &File| {
            let (ours, there) = (file.metadata().ok()?, std::fs::metadata(path).ok()?);
            Some(place(&ours) == place(&there))
        };
        if lock(&file).map_err(Fault::io("lock", path))? && is_there(&file) == Some(true) {
            Ok(Self { path: path.to_path_buf(), file })
        } else {
            Err(Fault::LogInUse(path.to_path_buf()))
        }
    }

    /// Whether a process has the log at `path`.
    pub(crate) fn is_in_use(path: &Path) -> bool {
        opened(path).is_ok_and(|file| file.is_some_and(|file| is_locked(&file).unwrap_or(false)))
    }

    /// Whether the file is in memory, where the kernel never writes it back.
    pub(crate) fn is_in_memory(&self) -> Result<bool, Fault> {
        Ok(in_memory(&self.file).map_err(Fault::io("look at the file system of", &self.path))?.is_some())
    }

    /// What the last process left, if it is a log at all.
    pub(crate) fn left(&self) -> Result<Option<Left>, Fault> {
        read_left(&self.file, &self.path, |file, bytes| Mapping::read_only(file, bytes))
    }

    /// What the log at `path` holds, for whoever only reads; none if there is no such file. It is copied, as a process
    /// that starts meanwhile empties the file.
    pub(crate) fn read_only(path: &Path) -> Result<Option<Left>, Fault> {
        opened(path)?.map_or(Ok(None), |file| read_left(&file, path, copied))
    }

    /// Reserves room for a ring of `ring_bytes`. What the file holds stays as it is, so a start that is
    /// refused here has changed nothing.
    pub(crate) fn take_room(&self, ring_bytes: u64) -> Result<(), Fault> {
        let bytes = self.file.metadata().map_err(Fault::io("look at", &self.path))?.len();
        reserve_keeping_length(&self.file, LOG_HEADER_BYTES + ring_bytes).map_err(|error| {
            // Some file systems keep what they reserved before they failed.
            let _ = self.file.set_len(bytes);
            Fault::io("reserve log_bytes for", &self.path)(error)
        })
    }

    /// Empties the file and makes it the log of `owner`, from `start` on.
    ///
    /// `data_dir` is the lock on the directory; the log keeps both locks.
    pub(crate) fn begin(self, owner: &Owner, data_dir: File, start: Position) -> Result<Log, Fault> {
        let path = &self.path;
        // The lock is of both.
        let lock = self.file.try_clone().map_err(Fault::io("open", path))?;
        // A process that dies in here leaves a file without the magic.
        self.file.set_len(0).map_err(Fault::io("empty", path))?;
        let mapping = made(&self.file, path, LOG_HEADER_BYTES + owner.ring_bytes).inspect_err(|_| {
            // What it held is in segments by now; left behind, it would only take up memory.
            let _ = self.file.set_len(0);
        })?;
        // Touched now, so that no append takes a page fault.
        mapping.words().iter().step_by(512).for_each(|word| word.store(0, Ordering::Relaxed));
        let log = Log::over(mapping, Some(Files::new(lock, path.clone(), data_dir)), owner.epoch, start);
        owner.store(&log);
        log.header_word(0).store(LOG_MAGIC, Ordering::Release);
        Ok(log)
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|about| about.len() == 0) {
            // If it cannot be removed, it is in nobody's way.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Gives the empty file its `bytes`, reserved from now on, and maps it.
fn made(file: &File, path: &Path, bytes: u64) -> Result<Mapping, Fault> {
    file.set_len(bytes).map_err(Fault::io("size", path))?;
    let mut mapping = Mapping::of_file(file, bytes).map_err(Fault::io("map", path))?;
    let reserved = |at, bytes| reserve(file, at, bytes).map_err(Fault::io("reserve log_bytes for", path));
    // One byte of each huge page first: the kernel makes one sooner if few of its small pages are there.
    (0..bytes).step_by(HUGE_BYTES).try_for_each(|at| reserved(at, 1))?;
    mapping.gather();
    // And the rest, where no huge page was to be had.
    reserved(0, bytes)?;
    Ok(mapping)
}

/// The first `bytes` of the file, a multiple of eight, in memory of our own. Of a file that is shorter by now, a mapping
/// would end the process.
fn copied(file: &File, bytes: u64) -> std::io::Result<Mapping> {
    let copy = Mapping::anonymous(bytes)?;
    let mut piece = [0; 8 * 1024];
    let mut at = 0;
    for words in copy.words().chunks(piece.len() / 8) {
        let piece = &mut piece[..words.len() * 8];
        file.read_exact_at(piece, at)?;
        for (word, eight) in words.iter().zip(piece.as_chunks().0) {
            word.store(u64::from_ne_bytes(*eight), Ordering::Relaxed);
        }
        at += piece.len() as u64;
    }
    Ok(copy)
}

fn read_left(
    file: &File,
    path: &Path,
    mapping: impl FnOnce(&File, u64) -> std::io::Result<Mapping>,
) -> Result<Option<Left>, Fault> {
    let bytes = file.metadata().map_err(Fault::io("look at", path))?.len();
    if bytes == 0 {
        return Ok(None);
    }
    let damaged = |field, expected, found| {
        let flaw = Flaw { field, at: 0, expected, found };
        Err(Fault::LogDamaged(Place::of(flaw, path, 0, Position(0))))
    };
    let least = LOG_HEADER_BYTES + 4 * FRAME_ALIGN;
    if bytes < least || !bytes.is_multiple_of(FRAME_ALIGN) {
        return damaged(LENGTH_FIELD, bytes.max(least).next_multiple_of(FRAME_ALIGN), bytes);
    }
    let mapping = mapping(file, bytes).map_err(Fault::io("read", path))?;
    let word = |index: usize| mapping.words()[index].load(Ordering::Acquire);
    if word(0) != LOG_MAGIC {
        // A process that dies while it makes the file leaves no frame, and zero in the magic's place. On a disk so does
        // a machine that stops, with any of the frames: which pages were written back by then is chance.
        let frames = &mapping.words()[words_in(LOG_HEADER_BYTES)..];
        let is_empty = || frames.iter().all(|word| word.load(Ordering::Relaxed) == 0);
        let on_disk = || in_memory(file).is_ok_and(|kind| kind.is_none());
        let is_no_log = word(0) == 0 && (is_empty() || on_disk());
        return if is_no_log { Ok(None) } else { damaged(MAGIC_FIELD, LOG_MAGIC, word(0)) };
    }
    let path_bytes = usize::try_from(word(PATH_BYTES_WORD)).unwrap_or(usize::MAX).min(PATH_BYTES_MAX);
    let mut data_dir: Vec<u8> =
        (PATH_WORD..PATH_WORD + PATH_BYTES_MAX / 8).flat_map(|index| word(index).to_le_bytes()).collect();
    data_dir.truncate(path_bytes);
    let owner = Owner {
        exchange: bytes_of([word(1), word(2)]),
        boot: bytes_of([word(3), word(4)]),
        place: [word(5), word(6)],
        epoch: u32::try_from(word(7)).unwrap_or(0),
        data_dir: PathBuf::from(OsString::from_vec(data_dir)),
        ring_bytes: word(RING_BYTES_WORD),
    };
    let (expected, found) = (u64::from(owner.checksum()), word(CHECKSUM_WORD));
    if expected != found {
        let flaw = Flaw { field: "checksum of the log's owner", at: 64, expected, found };
        return Err(Fault::LogDamaged(Place::of(flaw, path, 0, Position(0))));
    }
    let (start, durable) = (Position(word(RECLAIMED_WORD)), Position(word(DURABLE_WORD)));
    let freed = word(FREED_WORD);
    Ok(Some(Left { path: path.to_path_buf(), owner, start, durable, freed, mapping }))
}

impl Owner {
    fn words(&self) -> [u64; 7] {
        let (exchange, boot) = (words_of(self.exchange), words_of(self.boot));
        let [device, inode] = self.place;
        [exchange[0], exchange[1], boot[0], boot[1], device, inode, u64::from(self.epoch)]
    }

    fn path(&self) -> &[u8] {
        let path = self.data_dir.as_os_str().as_bytes();
        &path[..path.len().min(PATH_BYTES_MAX)]
    }

    pub(super) fn checksum(&self) -> u32 {
        let sum = self.words().iter().fold(0, |sum, word| checksum::append(sum, &word.to_le_bytes()));
        let sum = checksum::append(sum, self.path());
        if self.ring_bytes == 0 { sum } else { checksum::append(sum, &self.ring_bytes.to_le_bytes()) }
    }

    fn store(&self, log: &Log) {
        let put = |index: usize, value: u64| log.header_word(index).store(value, Ordering::Relaxed);
        for (index, word) in (1..).zip(self.words()) {
            put(index, word);
        }
        put(CHECKSUM_WORD, u64::from(self.checksum()));
        put(PATH_BYTES_WORD, self.path().len() as u64);
        put(RING_BYTES_WORD, self.ring_bytes);
        for (index, chunk) in (PATH_WORD..).zip(self.path().chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            put(index, u64::from_le_bytes(word));
        }
    }
}

/// The content of a log whose process is gone.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
    pub(crate) start: Position,
    pub(crate) durable: Position,
    freed: u64,
    mapping: Mapping,
}

impl Left {
    /// Checks the length of the file, and the marks against each other. Of three, the one that disagrees with the two
    /// others is named; if only the free mark and the durable one are too far apart, the free one. Only those of this
    /// boot need agree: of a file on a disk, a machine that stops leaves some sectors new and others old.
    pub(crate) fn check_marks(&self) -> Result<(), Fault> {
        let told = self.owner.ring_bytes;
        if told != 0 && told != self.ring_bytes() {
            let (expected, found) = (LOG_HEADER_BYTES + told, LOG_HEADER_BYTES + self.ring_bytes());
            let flaw = Flaw { field: LENGTH_FIELD, at: 0, expected, found };
            return Err(Fault::LogDamaged(Place::of(flaw, &self.path, 0, Position(0))));
        }
        let &Self { start: Position(start), durable: Position(durable), freed, .. } = self;
        let agree = |low: u64, high: u64| {
            let are_of_frames = low.is_multiple_of(FRAME_ALIGN) && high.is_multiple_of(FRAME_ALIGN);
            are_of_frames && low <= high && high - low <= self.ring_bytes()
        };
        let (field, word, expected, found) =
            match (agree(freed, start), agree(start, durable), agree(freed, durable)) {
                (true, true, true) => return Ok(()),
                (_, true, _) => ("free mark of the log", FREED_WORD, start, freed),
                (_, _, true) => ("start of the log", RECLAIMED_WORD, durable, start),
                _ => ("durable mark of the log", DURABLE_WORD, start, durable),
            };
        let flaw = Flaw { field, at: word as u64 * 8, expected, found };
        Err(Fault::LogDamaged(Place::of(flaw, &self.path, 0, Position(0))))
    }

    /// Copies the frame at `at` into `into` and checks it; false at the first one that is not committed.
    /// Below the durable position, a frame that is missing is damage.
    pub(crate) fn frame(&self, at: Position, into: &mut Vec<u8>) -> Result<bool, Fault> {
        into.clear();
        if self.gap() <= at.0 {
            return Ok(false);
        }
        let first = self.word(at.0);
        let length = u32::try_from(first & u64::from(u32::MAX)).expect("masked to 32 bits");
        // The first word is stored last and whole.
        if first == 0 && self.durable <= at {
            return Ok(false);
        }
        let fits = length_is_possible(length)
            && at.0 % self.ring_bytes() + u64::from(length) <= self.ring_bytes()
            && at.0 + u64::from(length) <= self.gap();
        let bytes = if fits { u64::from(length) } else { 0 };
        into.extend((at.0..at.0 + bytes).step_by(8).flat_map(|at| self.word(at).to_le_bytes()));
        let offset = LOG_HEADER_BYTES + at.0 % self.ring_bytes();
        read(into, at, self.owner.epoch)
            .map_err(|flaw| Fault::LogDamaged(Place::of(flaw, &self.path, offset, at)))?;
        Ok(true)
    }

    /// Bytes from `end`, where the first frame that is not committed would begin, up to the last one that
    /// is not zero: claims that were being written. Nobody was told what is in them.
    pub(crate) fn uncommitted(&self, end: Position) -> u64 {
        let last = (end.0..self.gap()).step_by(8).filter(|&at| self.word(at) != 0).last();
        last.map_or(0, |last| last + 8 - end.0)
    }

    /// The highest position that claims can have reached: the ring is never quite full.
    fn gap(&self) -> u64 {
        self.freed + self.ring_bytes() - FRAME_ALIGN
    }

    fn ring_bytes(&self) -> u64 {
        self.mapping.words().len() as u64 * 8 - LOG_HEADER_BYTES
    }

    fn word(&self, at: u64) -> u64 {
        let index = usize::try_from((LOG_HEADER_BYTES + at % self.ring_bytes()) / 8);
        self.mapping.words()[index.expect("a mapped length fits usize")].load(Ordering::Acquire)
    }
}

fn words_of(bytes: [u8; 16]) -> [u64; 2] {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [word(0), word(8)]
}

fn bytes_of(words: [u64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_le_bytes());
    bytes[8..].copy_from_slice(&words[1].to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_copy_of_a_log_that_got_shorter_is_an_error_and_no_end_of_the_process() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        file.write_all(&bytes).unwrap();
        let copy = copied(&file, bytes.len() as u64).unwrap();
        let words = copy.words().iter().map(|word| word.load(Ordering::Relaxed));
        assert_eq!(words.flat_map(u64::to_ne_bytes).collect::<Vec<_>>(), bytes);
        file.set_len(100_000).unwrap();
        let fault = copied(&file, bytes.len() as u64).unwrap_err();
        assert_eq!(fault.kind(), std::io::ErrorKind::UnexpectedEof);
    }
}
