//! Taking over a data directory: who may, what it holds, and where this start continues.
//!
//! The order of the steps makes a death at any point harmless:
//!
//! 1. lock the directory, then the log file; refuse what is not ours ([`Fault`] names both);
//! 2. load the newest whole snapshot and check the segments after it; cut and name a torn tail, refuse damage;
//! 3. if the log file is of the segments' own epoch, compare the overlap and append its other committed frames to the
//!    segments, still in that epoch;
//! 4. reserve the room for the new log, store the directory's new identity, if it is to have one, and write a mark in
//!    the next epoch, which makes the old log file stale;
//! 5. empty the log file, and make the first frame of the epoch durable: from here on the journal goes on.
//!
//! A start that is refused on the way leaves the identity as it was, so the next start finds the log file that this one
//! would have left aside. A new directory gets its identity before its first segment. An epoch without a frame is one of
//! a start that never went on: nobody was told anything, so nothing of that epoch can be missing. What was missing before
//! it is in `doubt` until a start has gone on.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::Fault;
use super::batches::{Batches, Shelf};
use super::disk::{Disk, in_memory};
use super::doubt::Doubt;
use super::frame::Frame;
use super::history::Segments;
use super::identity::{DataDir, Identity, boot_id, identify, log_name};
use super::layout::Start;
use super::log::Log;
use super::logfile::{LogFile, Owner, keep_path, known_path, strangers};
use super::offline::Gone;
use super::pack::{self, Packer};
use super::scan::{Cut, Reach, Scan, scan_between};
use super::segment::{self, ROW_BYTES, SEGMENT_BYTES_MIN};
use super::snapshot::{Base, SnapshotReader, Snapshots};
use super::verdict::{Fit, Heir, fit, inherit, refuse_elsewhere};
use super::writer::{Listener, WriterHandle};
use crate::domain::{Position, TimeMs};

/// What an acknowledged act survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The death of the process: it is in the log.
    Committed,
    /// The death of the machine: it is in a segment.
    #[default]
    Durable,
}

impl Durability {
    /// Its name in the configuration.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Durable => "durable",
        }
    }
}

/// What the operator claims about a directory and a log file that do not belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claimed {
    /// Nothing: they must belong together.
    #[default]
    AsItIs,
    /// `--adopt-log`: the directory was moved; the log file is its own.
    AdoptLog,
    /// `--new-identity`: the directory is a copy; the log file is the original's. For one start only: given again after
    /// a crash, it is refused for the log of the directory's own last start.
    NewIdentity,
}

/// Where logs are that have no path of their own.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// The settings with which a journal is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory that holds identity and segments.
    pub data_dir: PathBuf,
    /// The log file; none means `outcry-<uuid>` in `shared_memory`, or `log` in `data_dir` where that is no directory.
    pub log_path: Option<PathBuf>,
    /// The file system in memory that holds log files without a path of their own.
    pub shared_memory: PathBuf,
    /// Bytes of the ring, a multiple of 4096.
    pub log_bytes: u64,
    /// Bytes of a segment, a multiple of 4096.
    pub segment_bytes: u64,
    /// What an acknowledged act survives.
    pub durability: Durability,
    /// How often the journal thread polls for more to write before it sleeps. Polling burns its CPU and spares others
    /// the wake-up. With [`u32::MAX`] it never sleeps.
    pub looks_max: u32,
    /// What to do if directory and log file do not belong together.
    pub claimed: Claimed,
}

impl Options {
    /// The defaults for `data_dir`: log 32 MiB, segments 64 MiB, durable, a journal thread that does not poll.
    #[must_use]
    pub fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_path_buf(),
            log_path: None,
            shared_memory: PathBuf::from(SHARED_MEMORY),
            log_bytes: 32 * 1024 * 1024,
            segment_bytes: 64 * 1024 * 1024,
            durability: Durability::default(),
            looks_max: 0,
            claimed: Claimed::default(),
        }
    }
}

/// What a start found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Frames in the segments, including those taken from the log file.
    pub frames: u64,
    /// The position of the snapshot that this start loaded, and how many frames came before it.
    pub snapshot: Option<(Position, u64)>,
    /// The end of the last frame: where this start begins.
    pub end: Position,
    /// The epoch of this start.
    pub epoch: u32,
    /// The epoch of the last start that went on; 0 if there was none.
    pub before: u32,
    /// Whether the last process that went on stopped in good order, or there was none.
    pub closed: bool,
    /// Whether the last process's log file was there: if so, nothing that was committed is missing.
    pub log_taken: bool,
    /// The torn tail of the segments, which was zeroed again.
    pub cut: Option<Cut>,
    /// Bytes of frames that only the log file had.
    pub adopted_bytes: u64,
    /// Bytes that earlier starts found and dropped, which then did not go on.
    cut_before_bytes: u64,
    /// Bytes in the log file after the first claim that was never committed; dropped.
    pub uncommitted_bytes: u64,
    /// The first segments that are not there; a snapshot stands for them.
    pub gone: Gone,
    /// What people should know: stale files, a log that is not in memory, files of others.
    pub notes: Vec<String>,
}

impl Recovered {
    /// True if frames that were committed, and perhaps acknowledged, may be missing: the last process did not stop in
    /// good order, and its log file is missing, empty or stale.
    #[must_use]
    pub const fn may_have_lost(&self) -> bool {
        !self.closed && !self.log_taken
    }

    /// Bytes that were found and dropped. None of them was durable, and if the log file was there, none was committed:
    /// it still had what was torn in the segments.
    #[must_use]
    pub fn cut_bytes(&self) -> u64 {
        let torn = self.cut.as_ref().filter(|_| !self.log_taken).map_or(0, |cut| cut.bytes);
        torn + self.uncommitted_bytes + self.cut_before_bytes
    }
}

/// A data directory that is locked, whole, and not yet written to in this epoch.
#[derive(Debug)]
pub struct Opened {
    options: Options,
    data_dir: DataDir,
    identity: Identity,
    /// An identity that is not stored yet.
    unstored: Option<Identity>,
    boot: [u8; 16],
    log_file: LogFile,
    batches: Batches,
    segments: Arc<Segments>,
    recovered: Recovered,
    base: Option<Base>,
    disk: Disk,
}

/// A running journal.
#[derive(Debug)]
pub struct Started {
    /// What all loops append to.
    pub log: Arc<Log>,
    /// The segments, for what the log no longer holds.
    pub segments: Arc<Segments>,
    /// The thread that makes it durable.
    pub writer: WriterHandle,
}

/// Takes over the data directory and recovers what it holds, from the first frame on.
pub fn open(options: Options) -> Result<Opened, Fault> {
    open_on(options, Disk::default(), boot_id()?)
}

/// Takes over the data directory and recovers what it holds, from the newest snapshot that `load` can load on; also
/// returns what `load` made of it.
pub(crate) fn open_with<T>(
    options: Options,
    disk: Disk,
    load: impl FnMut(&mut SnapshotReader) -> Result<T, Fault>,
) -> Result<(Opened, Option<T>), Fault> {
    open_from(options, disk, boot_id()?, load)
}

/// `open` on a given disk in a given boot.
pub(crate) fn open_on(options: Options, disk: Disk, boot: [u8; 16]) -> Result<Opened, Fault> {
    let taken = take(options, &disk)?;
    recover(taken, None, disk, boot)
}

/// `open_with` on a given disk in a given boot.
pub(crate) fn open_from<T>(
    options: Options,
    disk: Disk,
    boot: [u8; 16],
    load: impl FnMut(&mut SnapshotReader) -> Result<T, Fault>,
) -> Result<(Opened, Option<T>), Fault> {
    let mut taken = take(options, &disk)?;
    let snapshots = Snapshots::new(&taken.data_dir.path, taken.identity.journal(), disk.clone());
    let (base, state) = snapshots.newest(&mut taken.notes, load)?.unzip();
    Ok((recover(taken, base, disk, boot)?, state))
}

/// A data directory and a log file, both locked by this process.
struct Taken {
    options: Options,
    data_dir: DataDir,
    identity: Identity,
    /// An identity that is not stored yet.
    unstored: Option<Identity>,
    log_file: LogFile,
    notes: Vec<String>,
}

fn take(options: Options, disk: &Disk) -> Result<Taken, Fault> {
    check_sizes(&options)?;
    let data_dir = DataDir::lock(&options.data_dir, disk)?;
    if options.durability == Durability::Durable {
        refuse_memory(&data_dir.path)?;
    }
    let (identity, is_new) = identify(&data_dir.path, options.claimed)?;
    if is_new {
        data_dir.keep_name(disk)?;
    }
    let mut notes = Vec::new();
    let log_file = lock_log(&options, &data_dir.path, identity.exchange, &mut notes)?;
    let unstored = is_new.then_some(identity);
    Ok(Taken { options, data_dir, identity, unstored, log_file, notes })
}

/// Refuses file systems in memory, which end with the machine, for the directory and for the folder of its segments,
/// which may be a link or a mount.
pub(crate) fn refuse_memory(data_dir: &Path) -> Result<(), Fault> {
    let look = |path: &Path| match File::open(path).map(|file| in_memory(&file)) {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(file_system))) => Err(Fault::NotDurable { data_dir: path.to_path_buf(), file_system }),
        Ok(Err(fault)) => Err(Fault::io("look at the file system of", path)(fault)),
        // It will be made in a directory that was checked.
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(Fault::io("open", path)(fault)),
    };
    look(data_dir)?;
    look(&segment::directory(data_dir))
}

/// Has the newest segments read from the disk: the one that the last batch went to, and the spare after it, if any.
pub(super) fn forget_newest(directory: &Path) -> Result<(), Fault> {
    let numbers = segment::numbers(directory)?;
    numbers
        .iter()
        .rev()
        .take(2)
        .try_for_each(|&number| Disk::forget_cached(&segment::path(directory, number)))
}

/// Checks what follows `base` against itself and the log file, and adopts frames that only the latter has.
fn recover(taken: Taken, base: Option<Base>, disk: Disk, boot: [u8; 16]) -> Result<Opened, Fault> {
    let Taken { options, data_dir, identity, mut unstored, log_file, mut notes } = taken;
    let directory = segment::directory(&data_dir.path);
    forget_newest(&directory)?;
    let reach = Reach { base: base.as_ref(), until: None };
    let mut found = scan_between(&directory, &identity.journal(), reach, None)?;
    let segments =
        Arc::new(Segments::new(&directory, identity.journal(), std::mem::take(&mut found.entries)));
    let heir = Heir {
        exchange: identity.exchange,
        boot,
        data_dir: &data_dir.path,
        place: data_dir.place,
        claimed: options.claimed,
    };
    let left = inherit(log_file.left()?, &heir, &mut notes)?;
    let fit = fit(left, &found, &segments, &heir, &mut notes)?;
    let seen_elsewhere =
        fit.is_none() && refuse_elsewhere(&options.shared_memory, &log_file.path, &heir, &found, &segments)?;
    let doubt =
        if found.never_went_on() { Doubt::of(&data_dir.path, found.epoch)? } else { Doubt::default() };
    let log_taken = (fit.is_some() || seen_elsewhere) && !doubt.lost;
    // Nothing is refused from here on, and files change.
    disk.create_dir(&directory)?;
    if found.numbers.is_empty()
        && let Some(unstored) = unstored.take()
    {
        // Segments without an identity are refused, so it is stored before the first one is made.
        unstored.store(&data_dir.path, &disk)?;
    }
    pack::remove_unfinished(&directory, &disk)?;
    let shelf = Shelf {
        directory,
        journal: identity.journal(),
        segment_bytes: options.segment_bytes,
        disk: disk.clone(),
    };
    let mut batches = Batches::at_end(shelf, &found, Arc::clone(&segments))?;
    let adopted = match &fit {
        Some(fit) => adopt(fit, &mut batches)?,
        None => Adopted::default(),
    };
    // Frames that only the log has come after any mark in the segments.
    let closed = adopted.frames == 0 && found.is_closed() && !doubt.lost;
    if !closed && !log_taken {
        notes.push(loss(&log_file.path, &data_dir.path, found.end));
    }
    let recovered = Recovered {
        frames: found.frames + adopted.frames,
        snapshot: base.as_ref().map(|base| (base.position, base.frames)),
        closed,
        log_taken,
        end: batches.end(),
        epoch: found.epoch + 1,
        before: if adopted.frames == 0 { found.frames_epoch } else { found.epoch },
        cut: found.cut,
        adopted_bytes: adopted.bytes,
        cut_before_bytes: doubt.cut_bytes,
        uncommitted_bytes: adopted.uncommitted_bytes,
        gone: Gone::before(&found.numbers),
        notes,
    };
    Ok(Opened {
        options,
        data_dir,
        identity,
        unstored,
        boot,
        log_file,
        batches,
        segments,
        recovered,
        base,
        disk,
    })
}

/// Says that a log is missing, and where it was looked for.
fn loss(log_path: &Path, data_dir: &Path, end: Position) -> String {
    let known = known_path(data_dir).ok().flatten().filter(|known| known != log_path);
    let known = known.map_or_else(String::new, |known| {
        format!(" and, where the last start had it, at {}", known.display())
    });
    format!(
        "journal: the last process did not stop in good order and its log file is gone, empty or stale; it was looked \
         for at {}{known}; the journal ends at position {}, and what was committed after it but not durable is lost",
        log_path.display(),
        end.0
    )
}

impl Opened {
    /// What was found.
    #[must_use]
    pub const fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// The uuid by which log files know this exchange.
    #[must_use]
    pub const fn exchange(&self) -> Uuid {
        self.identity.exchange
    }

    /// The log file.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log_file.path
    }

    /// The segment that holds the end of the snapshot that this start loaded; 0 without one.
    #[must_use]
    pub fn snapshot_segment(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.segment)
    }

    /// The snapshots of this directory.
    #[must_use]
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::new(&self.data_dir.path, self.identity.journal(), self.disk.clone())
    }

    /// The packer for the segments of this directory.
    #[must_use]
    pub fn packer(&self) -> Packer {
        Packer::new(self.batches.shelf().clone(), Arc::clone(&self.segments))
    }

    /// Calls `visit` with every frame after the snapshot, or with all if there is none, in order, until it refuses one.
    /// A fault if this reading of the segments does not come to the end that the first one found.
    pub fn for_each_frame<E: From<Fault>>(
        &self,
        visit: impl FnMut(&Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let directory = segment::directory(&self.data_dir.path);
        let found = visit_between(&directory, &self.identity.journal(), self.base.as_ref(), None, visit)?;
        found.reaches(self.recovered.end, &directory)?;
        Ok(())
    }

    /// Raises the epoch, empties the log file, and starts the journal thread.
    ///
    /// `shards` is the number of loops that decide orders. The log begins with a `Start` record, the first frame for
    /// whoever follows from `recovered().end`, which is durable when this returns. A refusal leaves nothing that the next
    /// start would miss.
    pub fn start(
        mut self,
        time: TimeMs,
        shards: u16,
        mut listener: Box<dyn Listener>,
    ) -> Result<Started, Fault> {
        let ring_bytes = self.options.log_bytes;
        let bytes_min = log_bytes_min(shards);
        if ring_bytes < bytes_min {
            return Err(Fault::TooSmall { field: "journal.log_bytes", bytes: ring_bytes, bytes_min });
        }
        // A start that fails for want of room is to leave the epoch and the old log as they are.
        self.log_file.take_room(ring_bytes)?;
        // Whoever replays may refuse too, so only here is it certain that this start leaves the old log aside.
        if let Some(unstored) = self.unstored.take() {
            unstored.store(&self.data_dir.path, &self.disk)?;
        }
        let doubt = Doubt { cut_bytes: self.recovered.cut_bytes(), lost: self.recovered.may_have_lost() };
        doubt.keep(&self.data_dir.path, self.recovered.epoch, &self.disk)?;
        let epoch = self.batches.raise_epoch();
        assert!(epoch == self.recovered.epoch, "the epoch rises by one");
        self.batches.write()?;
        if let Err(fault) = self.batches.tend_spare() {
            listener.not_ahead(&fault);
        }
        keep_path(&self.data_dir.path, &self.log_file.path, &self.disk)?;
        let owner = Owner {
            exchange: *self.identity.exchange.as_bytes(),
            boot: self.boot,
            place: self.data_dir.place,
            epoch,
            data_dir: self.data_dir.path,
            ring_bytes,
        };
        let path = self.log_file.path.clone();
        let log = self.log_file.begin(&owner, self.data_dir.file, self.recovered.end)?;
        let log = Arc::new(log);
        let start = Start { time, cut_bytes: self.recovered.cut_bytes(), shards };
        let mut payload = Vec::new();
        start.encode(&mut payload);
        log.append(Start::KIND, &payload);
        // Half of the ring, or half of what remains beside all that claims may need at once.
        let keep_bytes = (ring_bytes / 2).min((ring_bytes - ring_bytes / 8 - Log::slack(shards)) / 2);
        let looks_max = self.options.looks_max;
        let writer = WriterHandle::spawn(&log, path.clone(), self.batches, keep_bytes, looks_max, listener);
        // It has only a `Start` that nobody was told of, and left behind it would be ahead of a backup in the
        // directory's place.
        let writer = writer.inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Doubt::clear(&owner.data_dir);
        Ok(Started { log, segments: self.segments, writer })
    }
}

/// The smallest ring with which `shards` shards can work.
#[must_use]
pub const fn log_bytes_min(shards: u16) -> u64 {
    2 * Log::slack(shards)
}

/// Calls `visit` with every frame after `base` up to `until`, until it refuses one, and returns where the walk ended.
pub(crate) fn visit_between<E: From<Fault>>(
    directory: &Path,
    journal: &segment::JournalId,
    base: Option<&Base>,
    until: Option<Position>,
    mut visit: impl FnMut(&Frame<'_>) -> Result<(), E>,
) -> Result<Scan, E> {
    let mut refusal = None;
    let mut until_refused = |frame: &Frame<'_>| match visit(frame) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            refusal = Some(error);
            ControlFlow::Break(())
        }
    };
    let reach = Reach { base, until };
    let found = scan_between(directory, journal, reach, Some(&mut until_refused))?;
    refusal.map_or(Ok(found), Err)
}

fn check_sizes(options: &Options) -> Result<(), Fault> {
    let (bytes, bytes_min) = (options.segment_bytes, SEGMENT_BYTES_MIN);
    if bytes < bytes_min {
        return Err(Fault::TooSmall { field: "journal.segment_bytes", bytes, bytes_min });
    }
    assert!(bytes.is_multiple_of(ROW_BYTES), "a segment is whole rows");
    assert!(options.log_bytes.is_multiple_of(ROW_BYTES), "a ring is whole pages");
    Ok(())
}

/// Where the log file is that no setting places.
pub(crate) fn usual_log_path(shared_memory: &Path, data_dir: &Path, exchange: Uuid) -> PathBuf {
    if shared_memory.is_dir() { shared_memory.join(log_name(exchange)) } else { data_dir.join("log") }
}

/// Chooses the path of the log file, and locks it.
fn lock_log(
    options: &Options,
    data_dir: &Path,
    exchange: Uuid,
    notes: &mut Vec<String>,
) -> Result<LogFile, Fault> {
    let path = match &options.log_path {
        Some(path) => path.clone(),
        None => usual_log_path(&options.shared_memory, data_dir, exchange),
    };
    if options.log_path.is_none() {
        notes.extend(strangers(&options.shared_memory, &path));
    }
    let file = LogFile::lock(&path)?;
    if !file.is_in_memory()? {
        notes.push(format!(
            "log_path: {} is not in memory; it is never synced, but the system writes it back and appends \
             may wait for that",
            path.display()
        ));
    }
    Ok(file)
}

#[derive(Default)]
struct Adopted {
    frames: u64,
    bytes: u64,
    uncommitted_bytes: u64,
}

/// Appends to the segments what only the log file has after their end.
fn adopt(Fit { left, more_bytes }: &Fit, batches: &mut Batches) -> Result<Adopted, Fault> {
    let mut adopted = Adopted::default();
    let mut frame = Vec::new();
    let start = batches.end();
    let mut at = start;
    while left.frame(at, &mut frame)? {
        if batches.free().len() < frame.len() {
            batches.write()?;
        }
        batches.free()[..frame.len()].copy_from_slice(&frame);
        batches.take();
        at.0 += frame.len() as u64;
        adopted.frames += 1;
    }
    if start < at {
        batches.write()?;
    }
    adopted.bytes = at.0 - start.0;
    assert!(adopted.bytes == *more_bytes, "nobody else writes to the log");
    adopted.uncommitted_bytes = left.uncommitted(at);
    Ok(adopted)
}
