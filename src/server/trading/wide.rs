//! Cancels of many orders on their way to a shard and back.
//!
//! A [`WideJob`] is a letter's content that is filled, sent, filled by the shard, sent back and kept for the next time.
//! A loop takes its jobs at start; their lists keep what they have grown to, so cancels of as many orders as before soon
//! allocate nothing.
//!
//! WIDE-1: [`Works`](super::work::Works) lets at most [`WIDE_WORKS_MAX`] requests be under way that
//! send such jobs, and each has at most one with every shard, the loop's own included, so there is always a spare one.

use crate::domain::{OrderId, Position, WalletNo};
use crate::shard::{Leaving, OrderScope};

/// Requests under way on one loop that send wide jobs; more wait for the next turn.
pub(crate) const WIDE_WORKS_MAX: usize = 64;
/// Ids that a list has memory for at start; longer lists take more, once.
pub(crate) const IDS_KEPT: usize = 64;

/// What is asked of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wide {
    /// To cancel all orders of a scope.
    Cancel(OrderScope),
    /// To cancel the orders in the job's list.
    CancelList,
    /// To leave tombstones for the orders in the job's list, and cancel those that have arrived since
    /// they were looked for.
    Bury,
}

/// A wide cancel on its way to a shard and back.
#[derive(Debug)]
pub(crate) struct WideJob {
    /// The work of the loop that asks.
    pub(crate) work: u32,
    /// What is asked.
    pub(crate) wide: Wide,
    /// The orders' owner.
    pub(crate) principal: WalletNo,
    /// The orders, unless all of a scope are meant.
    pub(crate) ids: Vec<OrderId>,
    /// The orders of a scope that are still to leave, once they are chosen.
    pub(crate) leaving: Leaving,
    /// They are.
    pub(crate) is_begun: bool,
    /// What was cancelled; of a list in the list's order.
    pub(crate) cancelled: Vec<OrderId>,
    /// What was there once and is no more, in the list's order.
    pub(crate) gone: Vec<OrderId>,
    /// Something could not be done for want of room.
    pub(crate) short: bool,
    /// For which no tombstone could be left, in the list's order.
    pub(crate) unburied: Vec<OrderId>,
    /// The shard's last claimed position.
    pub(crate) at: Position,
    /// How long the shard took, in nanoseconds, over all its pieces.
    pub(crate) match_ns: u64,
}

impl WideJob {
    fn empty() -> Self {
        let list = || Vec::with_capacity(IDS_KEPT);
        Self {
            work: 0,
            wide: Wide::CancelList,
            principal: WalletNo(0),
            ids: list(),
            leaving: Leaving::with_capacity(IDS_KEPT),
            is_begun: false,
            cancelled: list(),
            gone: list(),
            short: false,
            unburied: list(),
            at: Position(0),
            match_ns: 0,
        }
    }

    /// Removes from `looking` what the other shard found; the job's lists are in the order of `looking`.
    pub(crate) fn strike_found(&self, looking: &mut Vec<OrderId>) {
        let (mut cancelled, mut gone) = (self.cancelled.iter().peekable(), self.gone.iter().peekable());
        looking.retain(|id| {
            let found = cancelled.next_if_eq(&id).is_some() || gone.next_if_eq(&id).is_some();
            !found
        });
        debug_assert!(cancelled.next().is_none() && gone.next().is_none(), "an order is on one shard only");
    }
}

/// The jobs of one loop that are not on their way.
#[derive(Debug)]
pub(crate) struct WideJobs {
    #[allow(clippy::vec_box, reason = "a job travels as a box, and the same box comes back")]
    spare: Vec<Box<WideJob>>,
}

impl WideJobs {
    /// All the jobs that a loop can have on their way to `shards` shards.
    pub(crate) fn new(shards: usize) -> Self {
        Self { spare: (0..shards * WIDE_WORKS_MAX).map(|_| Box::new(WideJob::empty())).collect() }
    }

    /// A job to be sent, without ids and results.
    #[allow(clippy::unnecessary_box_returns, reason = "a job travels as the box that it is kept in")]
    pub(crate) fn take(&mut self, work: u32, principal: WalletNo, wide: Wide) -> Box<WideJob> {
        let mut job = self.spare.pop().expect("WIDE-1: there is a job for every shard");
        job.work = work;
        job.principal = principal;
        job.wide = wide;
        job.ids.clear();
        job.is_begun = false;
        job.cancelled.clear();
        job.gone.clear();
        job.short = false;
        job.unburied.clear();
        job.at = Position(0);
        job.match_ns = 0;
        job
    }

    /// A job that came back, or was never sent.
    pub(crate) fn keep(&mut self, job: Box<WideJob>) {
        self.spare.push(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(bytes: &[u8]) -> Vec<OrderId> {
        bytes.iter().map(|byte| OrderId([*byte; 32])).collect()
    }

    #[test]
    fn what_a_shard_found_is_struck_from_the_list_and_the_rest_keeps_its_order() {
        for (cancelled, gone, left) in [
            (&[][..], &[][..], &[1, 2, 3, 4, 5][..]),
            (&[1, 5], &[3], &[2, 4]),
            (&[2], &[1, 4], &[3, 5]),
            (&[1, 2, 3, 4, 5], &[], &[]),
        ] {
            let mut job = WideJob::empty();
            job.cancelled = ids(cancelled);
            job.gone = ids(gone);
            let mut looking = ids(&[1, 2, 3, 4, 5]);
            job.strike_found(&mut looking);
            assert_eq!(looking, ids(left));
        }
    }

    #[test]
    fn a_job_comes_back_empty_with_the_memory_it_has_grown_to() {
        let mut jobs = WideJobs::new(1);
        let mut taken: Vec<_> =
            (0..WIDE_WORKS_MAX).map(|_| jobs.take(0, WalletNo(0), Wide::CancelList)).collect();
        assert!(jobs.spare.is_empty());
        let mut job = taken.pop().expect("there were some");
        let list = || ids(&[7; 3 * IDS_KEPT]);
        *job = WideJob {
            ids: list(),
            is_begun: true,
            cancelled: list(),
            gone: list(),
            short: true,
            unburied: list(),
            at: Position(9),
            match_ns: 9,
            ..WideJob::empty()
        };
        jobs.keep(job);
        let job = jobs.take(3, WalletNo(4), Wide::Bury);
        let fresh = WideJob { work: 3, principal: WalletNo(4), wide: Wide::Bury, ..WideJob::empty() };
        assert_eq!(format!("{job:?}"), format!("{fresh:?}"));
        assert!(job.ids.capacity() >= 3 * IDS_KEPT);
    }
}
