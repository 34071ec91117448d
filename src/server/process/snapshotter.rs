//! The thread that makes snapshots: when the operator asks, and when enough segments were sealed.
//!
//! It loads the last snapshot into a state of its own and applies what segments hold after it: recovery itself, while
//! the server runs. It has the lowest priority, runs beside the pinned loops, and shares nothing with shards and reader
//! but the files; so neither of them ever waits for it. When a snapshot is complete, the reader, and a feed apart from
//! it, are handed the archive that it names, and forget what that holds.
//!
//! A snapshot that cannot be made is reported and changes nothing: the older ones stay, and what it had written of its
//! archive goes. It is tried again as soon as somebody asks, and by itself a little later.
//!
//! When it has nothing else to do it packs sealed segments ([`Packer`]), one small step after the
//! other, and rests as long after each as the step took: so others have the disk half of the time,
//! and a request or a stop waits for one step.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::queue::ArrayQueue;

use super::recovery::{self, Stop};
use crate::domain::Position;
use crate::journal::{Archive, Base, Fault, Log, Packer, Segments, SnapshotReader, Snapshots, Step};
use crate::json::Writer;
use crate::ledger::{Ledger, archived_again};
use crate::reader::{Reader, Settings};
use crate::server::core_loop::CoreLoop;
use crate::server::machine::system;
use crate::server::operator::admin::{self, Pending};
use crate::server::plan::topology::allowed_cpus;
use crate::server::requests::refusal;
use crate::server::threads::message::Said;
use crate::server::threads::shared::Shared;
use crate::server::threads::thread;

/// When snapshots are made by themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Sealed segments after the last snapshot at which the next one is made.
    pub(crate) segments_every: u64,
    /// Time between two looks for sealed segments.
    pub(crate) look_every: Duration,
    /// How long it waits after one that failed before it tries again.
    pub(crate) retry_after: Duration,
}

impl Pace {
    /// At 64 MiB a segment, eight are half a GiB of frames for a start to apply: a few seconds. They
    /// hold about a million orders, which is what the reader keeps of those that are over.
    pub(crate) const DEFAULT: Self = Self {
        segments_every: 8,
        look_every: Duration::from_millis(500),
        retry_after: Duration::from_mins(1),
    };
}

/// Requests of the operator that may wait at once.
const ASKED_MAX: usize = 16;

/// Requests for snapshots on their way to the thread, and their answers on their way back.
#[derive(Debug)]
pub(crate) struct Requests {
    asked: ArrayQueue<Pending>,
    done: ArrayQueue<(Pending, Result<Taken, String>)>,
    /// One for each loop that follows the log, from this loop on.
    handovers: Vec<Handover>,
    first_follower: usize,
}

/// Between the thread and one loop that follows the log.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The newest archive, and where its snapshot was taken, on its way to the loop.
    archive: ArrayQueue<(Position, Archive)>,
    /// How far the loop has followed the log: it still reads the segments from there on.
    applied: AtomicU64,
    /// How many orders its state has in memory.
    orders: AtomicU64,
}

/// A snapshot that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    position: Position,
    bytes: u64,
    milliseconds: u64,
    frames: u64,
    hash: u128,
}

impl Requests {
    /// No requests yet; the log is followed by the loops `followers`.
    pub(crate) fn new(followers: Range<usize>) -> Self {
        let handover = |_| Handover {
            archive: ArrayQueue::new(1),
            applied: AtomicU64::new(0),
            orders: AtomicU64::new(0),
        };
        Self {
            asked: ArrayQueue::new(ASKED_MAX),
            done: ArrayQueue::new(ASKED_MAX),
            first_follower: followers.start,
            handovers: followers.map(handover).collect(),
        }
    }

    /// Asks for a snapshot; false if too many wait for one.
    pub(crate) fn ask(&self, pending: Pending) -> bool {
        self.asked.push(pending).is_ok()
    }

    /// What loop `no`, which follows the log, is handed.
    pub(crate) fn handover(&self, no: usize) -> &Handover {
        &self.handovers[no - self.first_follower]
    }

    /// How far all have followed the log.
    fn applied_by_all(&self) -> Position {
        let applied = self.handovers.iter().map(Handover::applied);
        applied.min().expect("the reader follows the log")
    }
}

impl Handover {
    /// Notes how far this loop has followed the log, and how many orders it has in memory.
    pub(crate) fn note(&self, applied: Position, orders: usize) {
        // Relaxed: nothing else is told by them.
        self.applied.store(applied.0, Ordering::Relaxed);
        self.orders.store(orders as u64, Ordering::Relaxed);
    }

    /// How far this loop had followed the log when its last turn began.
    pub(crate) fn applied(&self) -> Position {
        Position(self.applied.load(Ordering::Relaxed))
    }

    /// How many orders it had in memory then.
    pub(crate) fn orders(&self) -> u64 {
        self.orders.load(Ordering::Relaxed)
    }

    /// The archive of the last snapshot, if this loop does not have it yet.
    pub(crate) fn next_archive(&self) -> Option<(Position, Archive)> {
        self.archive.pop()
    }
}

/// Answers what was asked for and is done. Returns whether anything was.
pub(crate) fn answer(core: &mut CoreLoop) -> bool {
    let mut busy = false;
    while let Some((pending, taken)) = core.shared.snapshots.done.pop() {
        busy = true;
        let mut body = Vec::new();
        let mut json = Writer::new(&mut body);
        json.open_object();
        let status = match taken {
            Ok(taken) => {
                json.key("position").number(taken.position.0);
                json.key("bytes").number(taken.bytes).key("milliseconds").number(taken.milliseconds);
                json.key("frames").number(taken.frames);
                json.key("stateHash").text(&format!("{:032x}", taken.hash));
                200
            }
            Err(fault) => {
                refusal::write_words(&mut json, &format!("snapshot: {fault}"), "snapshot_failed");
                503
            }
        };
        json.close_object();
        admin::finish(core, pending, &Said { status, retry_after_s: None, body }, Position(0));
    }
    busy
}

/// The thread, as its owner sees it.
#[derive(Debug)]
pub(crate) struct Handle {
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// Asks the thread to end; a snapshot that is not finished is dropped.
    pub(crate) fn begin_stop(&self) {
        // Relaxed: it orders nothing else.
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
    }

    /// Waits until the thread has ended, which may take as long as a large file is written.
    pub(crate) fn stop(self) {
        self.begin_stop();
        if self.thread.join().is_err() {
            tracing::error!("snapshot: the thread that makes them died");
        }
    }
}

/// What the thread is made from.
pub(crate) struct Parts {
    pub(crate) snapshots: Snapshots,
    /// None if segments stay as they were written.
    pub(crate) packer: Option<Packer>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) log: Arc<Log>,
    pub(crate) settings: Settings,
    /// The segment in which the last snapshot ends; 0 if there is none.
    pub(crate) last_segment: u64,
    /// The archive that the reader has, and a feed apart from it.
    pub(crate) archive: Archive,
}

/// Starts the thread.
pub(crate) fn start(shared: &Arc<Shared>, parts: Parts) -> Result<Handle, String> {
    match parts.snapshots.forget_unfinished() {
        Ok(0) => {}
        Ok(gone) => tracing::info!("snapshot: {gone} unfinished files of an earlier process were removed"),
        Err(fault) => tracing::warn!("snapshot: {fault}"),
    }
    let stopping = Arc::new(AtomicBool::new(false));
    let snapshotter = Snapshotter {
        shared: Arc::clone(shared),
        stopping: Arc::clone(&stopping),
        not_before: Instant::now(),
        pace: shared.plan.snapshot_pace,
        before: Archive::default(),
        pack_not_before: Instant::now(),
        parts,
    };
    let thread = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || snapshotter.run());
    let thread = thread.map_err(|fault| format!("snapshot: start a thread: {fault}"))?;
    Ok(Handle { stopping, thread })
}

struct Snapshotter {
    shared: Arc<Shared>,
    stopping: Arc<AtomicBool>,
    not_before: Instant,
    pace: Pace,
    /// The archive before the one in `parts`, as far as others have it too.
    before: Archive,
    pack_not_before: Instant,
    parts: Parts,
}

impl Snapshotter {
    fn run(mut self) {
        thread::stand_back(&self.shared.plan.topology.cpus_for_waiting(&allowed_cpus()));
        while !self.stopping.load(Ordering::Relaxed) {
            if let Some(pending) = self.shared.snapshots.asked.pop() {
                let taken = self.take();
                // As many are answered as were asked, so there is room.
                let _ = self.shared.snapshots.done.push((pending, taken));
                self.ring_reader();
            } else if self.is_due() {
                let _ = self.take();
            } else {
                self.before.forget_unshared();
                let pause = self.pack().unwrap_or(self.pace.look_every);
                std::thread::park_timeout(pause);
            }
        }
    }

    /// Goes on packing by one step and says how long that took; none if there is nothing to pack.
    fn pack(&mut self) -> Option<Duration> {
        let began = Instant::now();
        let packer = self.parts.packer.as_mut().filter(|_| self.pack_not_before <= began)?;
        match packer.step() {
            Ok(Step::Idle) => return None,
            Ok(Step::Busy) => {}
            Ok(Step::Packed(packed)) => tracing::info!(
                "journal: segment {} packed: {} bytes before, {} now",
                packed.segment,
                packed.bytes_before,
                packed.bytes
            ),
            Err(fault) => {
                self.pack_not_before = began + self.pace.retry_after;
                tracing::error!("journal.pack: {fault}");
            }
        }
        Some(began.elapsed())
    }

    fn is_due(&self) -> bool {
        let sealed = self.parts.segments.newest().saturating_sub(1);
        self.parts.last_segment + self.pace.segments_every <= sealed && self.not_before <= Instant::now()
    }

    fn ring_reader(&self) {
        self.shared.wakers[self.shared.plan.topology.reader_loop()].ring();
    }

    fn take(&mut self) -> Result<Taken, String> {
        let taken = self.try_take();
        if taken.is_err()
            && let Err(fault) = self.parts.snapshots.forget_unfinished()
        {
            tracing::warn!("snapshot: {fault}");
        }
        // A second state and most rows of the last run were in memory, which the allocator would keep for the next
        // time.
        system::give_back_freed_memory();
        match &taken {
            Ok(taken) => tracing::info!(
                "snapshot: position {}, {} bytes in {} ms",
                taken.position.0,
                taken.bytes,
                taken.milliseconds
            ),
            Err(_) if self.stopping.load(Ordering::Relaxed) => {
                tracing::info!("snapshot: not finished, because the server ends");
            }
            Err(fault) => {
                self.not_before = Instant::now() + self.pace.retry_after;
                tracing::error!("snapshot: {fault}");
            }
        }
        taken
    }

    fn try_take(&mut self) -> Result<Taken, String> {
        let began = Instant::now();
        let until = self.parts.log.durable();
        let Following { mut base, mut reader } = self.follow(until).map_err(|stop| stop.to_string())?;
        let ledger: &Ledger = reader.ledger();
        ledger.conserved().map_err(|imbalance| imbalance.to_string())?;
        self.goes_on()?;
        // What a start would refuse is not kept: the snapshots before it stay.
        ledger.check_whole().map_err(|field| format!("{field}: the state contradicts itself"))?;
        let (hash, frames) = (ledger.state_hash(), ledger.frames());
        self.goes_on()?;
        let archived = self.parts.snapshots.archive(&mut base, ledger.over(), archived_again);
        archived.map_err(|fault| fault.to_string())?;
        self.goes_on()?;
        reader.forget_over();
        self.parts.segments.correct(&mut base);
        let written = self.parts.snapshots.write(&mut base, hash, |out| reader.keep(out));
        let written = written.map_err(|fault| fault.to_string())?;
        self.parts.last_segment = base.segment;
        self.hand_over(&base).map_err(|fault| fault.to_string())?;
        self.parts.snapshots.forget_old().map_err(|fault| fault.to_string())?;
        self.give_back();
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Taken { position: written.position, bytes: written.bytes, milliseconds, frames, hash })
    }

    /// Whether there is time for the next part of a snapshot.
    fn goes_on(&self) -> Result<(), String> {
        if self.stopping.load(Ordering::Relaxed) { Err(Stop::Ending.to_string()) } else { Ok(()) }
    }

    /// Gives the loops that follow the log the archive of the snapshot at `base`. The one before stays here until they
    /// have dropped theirs: so no loop is ever the last that has it, and none frees its memory.
    fn hand_over(&mut self, base: &Base) -> Result<(), Fault> {
        let archive = self.parts.snapshots.archive_of(base, &self.parts.archive)?;
        self.before = std::mem::replace(&mut self.parts.archive, archive.clone());
        for handover in &self.shared.snapshots.handovers {
            handover.archive.force_push((base.position, archive.clone()));
        }
        for no in self.shared.plan.topology.followers() {
            self.shared.wakers[no].ring();
        }
        Ok(())
    }

    /// Gives back the segments that nobody has to keep.
    fn give_back(&self) {
        let Parts { snapshots, segments, log, .. } = &self.parts;
        let Some(keep) = self.shared.plan.history_keep else {
            return;
        };
        match snapshots.give_back(segments, log, self.shared.snapshots.applied_by_all(), keep) {
            Ok(0) => {}
            Ok(gone) => tracing::info!("journal.history_keep: {gone} sealed segments were given back"),
            Err(fault) => {
                tracing::error!("journal.history_keep: {fault}; segments are kept until that is mended");
            }
        }
    }

    /// The state at `until`, from the last snapshot and the segments after it.
    fn follow(&self, until: Position) -> Result<Following, Stop> {
        let Parts { snapshots, settings, archive, .. } = &self.parts;
        let mut notes = Vec::new();
        let load = |snapshot: &mut SnapshotReader| {
            let reader = recovery::load(settings, snapshot, archive)?;
            // A start has not read these rows. The snapshot before has them in another file, or else the
            // frames have them.
            reader.ledger().archive().check_unfilled()?;
            Ok(reader)
        };
        let newest = snapshots.newest(&mut notes, load)?;
        for note in notes {
            tracing::warn!("{note}");
        }
        let (base, reader) = newest.unzip();
        let mut reader = reader.unwrap_or_else(|| Reader::new(settings.clone()));
        let base = snapshots.follow(base.as_ref(), until, |frame| {
            if self.stopping.load(Ordering::Relaxed) {
                return Err(Stop::Ending);
            }
            recovery::apply(&mut reader, frame)
        })?;
        Ok(Following { base, reader })
    }
}

struct Following {
    base: Base,
    reader: Reader,
}
