//! What all threads of the process share. Everything here is atomic, bounded or never changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use crossbeam::queue::ArrayQueue;
use crossbeam::utils::CachePadded;

use super::mesh::Posts;
use super::tally::{JournalTally, Tally};
use super::waker::Waker;
use crate::domain::Position;
use crate::limits::RateLimits;
use crate::server::connections::held::Held;
use crate::server::connections::house::House;
use crate::server::core_loop::Roles;
use crate::server::machine::view::MachineView;
use crate::server::plan::Plan;
use crate::server::process::clock::Clock;
use crate::server::process::signals::EndingSender;
use crate::server::process::snapshotter::Requests;

/// How far the process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// The listener is open, the log is being replayed: trading answers 425.
    Recovering = 0,
    /// Everything works.
    Serving = 1,
    /// No new clients; requests are taken, and the answer of the last that has come on a connection closes it.
    Leaving = 2,
    /// No new requests; what is open is answered.
    Draining = 3,
    /// Every loop ends now; what is open stays unanswered.
    Stopped = 4,
}

/// The process, as every thread sees it.
pub(crate) struct Shared {
    /// What was planned.
    pub(crate) plan: Plan,
    /// The clock.
    pub(crate) clock: Clock,
    /// The rate limits of all callers.
    pub(crate) limits: Arc<RateLimits>,
    /// One bell for each loop.
    pub(crate) wakers: Vec<Waker>,
    /// Letters between loops.
    pub(crate) posts: Posts,
    /// Roles on their way to their loops, once recovery is done.
    pub(crate) roles: Vec<ArrayQueue<Roles>>,
    /// What was seen of the machine, for the operator.
    pub(crate) machine: Arc<MachineView>,
    /// Requests for snapshots and their answers.
    pub(crate) snapshots: Requests,
    /// How any thread ends the process.
    pub(crate) ending: EndingSender,
    /// Clients on all loops together.
    pub(crate) house: House,
    /// Bytes of answers that clients have not read.
    pub(crate) held: Held,
    /// Loops that have nothing open any more.
    pub(crate) drained: AtomicU32,
    /// What each loop has done, for metrics.
    pub(crate) tallies: Vec<CachePadded<Tally>>,
    /// What the journal's thread has done, for metrics.
    pub(crate) journal_tally: CachePadded<JournalTally>,
    phase: AtomicU8,
    seeded: AtomicBool,
    told: CachePadded<AtomicU64>,
    awaited: Vec<CachePadded<AtomicU64>>,
}

/// "This loop waits for no position."
const NOTHING_AWAITED: u64 = u64::MAX;

impl Shared {
    /// A process that recovers.
    pub(crate) fn new(plan: Plan, clock: Clock, ending: EndingSender) -> std::io::Result<Arc<Self>> {
        let loops = plan.topology.loops.len();
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
        let (one, other) = secret.split_at(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("half of sixteen bytes"));
        let limits = RateLimits::new(plan.rate_mode, plan.rate_rules, [word(one), word(other)]);
        Ok(Arc::new(Self {
            clock,
            limits: Arc::new(limits),
            wakers: (0..loops).map(|_| Waker::new()).collect::<Result<_, _>>()?,
            posts: Posts::new(loops),
            roles: (0..loops).map(|_| ArrayQueue::new(1)).collect(),
            machine: Arc::new(MachineView::new(&plan)),
            snapshots: Requests::new(plan.topology.followers()),
            ending,
            house: House::new(&plan),
            held: Held::new(plan.proxies.clone()),
            drained: AtomicU32::new(0),
            tallies: (0..loops).map(|_| CachePadded::default()).collect(),
            journal_tally: CachePadded::default(),
            phase: AtomicU8::new(Phase::Recovering as u8),
            seeded: AtomicBool::new(!plan.waits_for_seed),
            told: CachePadded::new(AtomicU64::new(0)),
            awaited: (0..loops).map(|_| CachePadded::new(AtomicU64::new(NOTHING_AWAITED))).collect(),
            plan,
        }))
    }

    /// Whether it serves, and has what it waits for to be ready.
    pub(crate) fn is_ready(&self) -> bool {
        // Relaxed: whoever is told so finds the rest by asking.
        self.seeded.load(Ordering::Relaxed) && self.phase() == Phase::Serving
    }

    /// Whether the disk has had a write for too long.
    pub(crate) fn disk_hangs(&self) -> bool {
        self.journal_tally.hangs(self.clock.elapsed_ns())
    }

    /// What it waits for to be ready is in it now.
    pub(crate) fn note_seeded(&self) {
        // Relaxed: see `is_ready`.
        self.seeded.store(true, Ordering::Relaxed);
    }

    /// How far the process is.
    pub(crate) fn phase(&self) -> Phase {
        // Acquire pairs with the Release in `enter`: a thread that sees a phase sees what came
        // before it.
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Recovering,
            1 => Phase::Serving,
            2 => Phase::Leaving,
            3 => Phase::Draining,
            _ => Phase::Stopped,
        }
    }

    /// Goes on to a later phase and rings every bell. An earlier phase is never entered again.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Release);
        for waker in &self.wakers {
            waker.ring();
        }
    }

    /// Whether `loops` loops have nothing open and no client is left: one on its way to another loop, which may have
    /// counted itself among them before, is on neither.
    pub(crate) fn is_drained(&self, loops: u32) -> bool {
        // Pairs with the Release of each loop, which has let its clients in before that.
        loops <= self.drained.load(Ordering::Acquire) && self.house.inside() == 0
    }

    /// An answer whose frame ends at `position` is released: its client is told.
    pub(crate) fn tell(&self, position: Position) {
        // Release pairs with the Acquire in `told`.
        self.told.fetch_max(position.0, Ordering::Release);
    }

    /// The highest position that any client was told.
    pub(crate) fn told(&self) -> Position {
        Position(self.told.load(Ordering::Acquire))
    }

    /// Loop `no` is about to sleep and has work once the log is durable up to `position`.
    pub(crate) fn await_position(&self, no: usize, position: Option<Position>) {
        let position = position.map_or(NOTHING_AWAITED, |position| position.0);
        // Relaxed: the fence in `Waker::before_sleep` follows, and the one in `wake_up_to`.
        self.awaited[no].store(position, Ordering::Relaxed);
    }

    /// The log became durable up to `mark`: wakes the loops that wait for that.
    pub(crate) fn wake_up_to(&self, mark: Position) {
        // Pairs with the fence in `Waker::before_sleep`: either the sleeper sees the new mark in
        // its last check, or we see what it awaits.
        fence(Ordering::SeqCst);
        for (awaited, waker) in self.awaited.iter().zip(&self.wakers) {
            if awaited.load(Ordering::Relaxed) <= mark.0 {
                waker.wake();
            }
        }
    }
}
