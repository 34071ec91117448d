//! What the operator's listener reports of the machine: what `outcry topology` and `outcry check` find without trying
//! anything out, as of some seconds ago.
//!
//! That is some hundred small files of the kernel's, which take milliseconds that no loop has. So a request gets what
//! was seen last, and if that is old, a thread of the lowest priority looks again, off the loops' CPUs where there are
//! others. The first request gets nothing; a second later there is something.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::TimeMs;
use crate::server::operator::host;
use crate::server::plan::Plan;
use crate::server::plan::topology::allowed_cpus;
use crate::server::threads::thread;

/// The age at which what was seen is renewed when somebody asks.
const OLD_MS: u64 = 5_000;

/// The thread's name.
const NAME: &str = "machine-view";

/// What was seen of the machine.
pub(crate) struct MachineView {
    /// The thread's CPUs; none means any.
    cpus: Vec<usize>,
    is_looking: AtomicBool,
    seen: Mutex<Option<Seen>>,
}

struct Seen {
    elapsed_ms: u64,
    json: Arc<[u8]>,
}

impl MachineView {
    /// Nothing was seen yet. To be called on a thread that is not pinned.
    pub(crate) fn new(plan: &Plan) -> Self {
        let cpus = plan.topology.cpus_for_waiting(&allowed_cpus());
        Self { cpus, is_looking: AtomicBool::new(false), seen: Mutex::new(None) }
    }

    /// What was seen last as JSON, if anything; looks again if that is old. `now` and `elapsed_ms` are
    /// the same moment.
    pub(crate) fn ask(self: &Arc<Self>, plan: &Plan, now: TimeMs, elapsed_ms: u64) -> Option<Arc<[u8]>> {
        // The thread holds it only while it stores what it saw: a loop does not wait even for that.
        let seen = self.seen.try_lock().ok()?;
        let is_old = seen.as_ref().is_none_or(|seen| seen.elapsed_ms + OLD_MS <= elapsed_ms);
        let json = seen.as_ref().map(|seen| Arc::clone(&seen.json));
        drop(seen);
        // Pairs with the Release below: who begins a look sees that the one before has ended.
        if is_old && !self.is_looking.swap(true, Ordering::Acquire) {
            self.look(plan.clone(), now, elapsed_ms);
        }
        json
    }

    fn look(self: &Arc<Self>, plan: Plan, now: TimeMs, elapsed_ms: u64) {
        let view = Arc::clone(self);
        let thread = std::thread::Builder::new().name(NAME.to_owned()).spawn(move || {
            thread::stand_back(&view.cpus);
            let json = host::seen(plan, now).into();
            *view.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Seen { elapsed_ms, json });
            view.is_looking.store(false, Ordering::Release);
        });
        if let Err(fault) = thread {
            tracing::warn!("{NAME}: no thread: {fault}");
            self.is_looking.store(false, Ordering::Release);
        }
    }
}
