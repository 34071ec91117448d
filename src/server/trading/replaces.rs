//! Replaces: the orders of one request are judged one by one like any others, then go to their
//! market's shard all together.
//!
//! A [`ReplaceJob`] is filled, done here or sent to the shard's loop and back, and kept for the next
//! time, so a replace allocates only until there are as many jobs as were ever under way at once.

use super::words;
use super::work::{Asker, Form, Item, Outcome, Refused};
use super::{Trade, of_read};
use crate::domain::{OrderId, Position, Reject, TimeMs, WalletNo};
use crate::http::{Endpoint, Head};
use crate::journal::layout::order::{REPLACE_PLACED_MAX, REPLACE_REMOVED_MAX};
use crate::json::answer::{NotCancelled, WhyNot};
use crate::json::read::{ORDERS_MAX, REPLACED_MAX};
use crate::server::requests::caller::Caller;
use crate::server::requests::toll::Toll;
use crate::server::threads::mesh::Mesh;
use crate::server::threads::message::Letter;
use crate::shard::{IfGone, ReadyOrder, Replace, ReplacePart, ReplaceRefusal, Replaced, Shard};

const _: () = assert!(
    ORDERS_MAX <= REPLACE_PLACED_MAX && REPLACED_MAX <= REPLACE_REMOVED_MAX,
    "a body names no more than a frame holds"
);

/// A replace on its way to a shard and back.
#[derive(Debug)]
pub(crate) struct ReplaceJob {
    /// The work of the loop that asks.
    pub(crate) work: u32,
    principal: WalletNo,
    leaving: Vec<OrderId>,
    coming: Vec<ReadyOrder>,
    if_gone: IfGone,
    done: Option<Result<Replaced, ReplaceRefusal>>,
    at: Position,
    /// How long the shard took to decide, in nanoseconds.
    match_ns: u64,
}

/// What came of a replace, beside its lists of orders.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplaceEnd {
    /// Why nothing was done, and which part of the request is at fault.
    pub(crate) refused: Option<(Refused, Option<ReplacePart>)>,
    /// The id of the order that is at fault, if it is known.
    pub(crate) at_fault: Option<OrderId>,
    /// A bit for each order that has the place of one that left.
    pub(crate) kept_place: u64,
    /// Its orders had come before.
    pub(crate) replayed: bool,
}

impl ReplaceJob {
    fn empty() -> Self {
        Self {
            work: 0,
            principal: WalletNo(0),
            leaving: Vec::with_capacity(REPLACE_REMOVED_MAX),
            coming: Vec::with_capacity(REPLACE_PLACED_MAX),
            if_gone: IfGone::Refuse,
            done: None,
            at: Position(0),
            match_ns: 0,
        }
    }

    /// Does it, on the loop of its market.
    pub(crate) fn run(&mut self, shard: &mut Shard, now: TimeMs) {
        let request = Replace {
            principal: self.principal,
            leaving: &self.leaving,
            coming: &self.coming,
            if_gone: self.if_gone,
        };
        self.done = Some(shard.replace(now, &request));
        self.at = shard.last_claimed();
    }
}

/// Jobs of one loop: the one that orders are being judged for, and those that are not in use.
#[derive(Debug, Default)]
pub(crate) struct ReplaceJobs {
    staged: Option<Box<ReplaceJob>>,
    #[allow(clippy::vec_box, reason = "a job travels as a box, and the same box comes back")]
    spare: Vec<Box<ReplaceJob>>,
}

impl ReplaceJobs {
    /// True while the orders that are judged are those of a replace.
    pub(crate) fn is_staged(&self) -> bool {
        self.staged.is_some()
    }
}

impl Trade {
    /// Reads a replace and takes a place for it; its orders are in `self.orders`.
    pub(super) fn take_replace(
        &mut self,
        asker: Asker,
        head: &Head<'_>,
        caller: &Caller,
        toll: &mut Toll,
    ) -> Result<u32, Refused> {
        let read = self.bodies.replace(&mut self.body, &mut self.ids, &mut self.orders);
        let anyway = read.map_err(|error| of_read(&error))?;
        let paid = self.callers.charge_more(toll, Endpoint::Replace, caller, self.orders.len());
        paid.map_err(Refused::plain)?;
        let deadline_ms = self.deadline_ms(head, toll)?;
        self.orders.iter_mut().flatten().for_each(|order| order.deadline_ms = deadline_ms);
        let work = self.begin_work(asker, caller, Form::Replace);
        self.works.expect(work);
        let mut job = self.replaces.spare.pop().unwrap_or_else(|| Box::new(ReplaceJob::empty()));
        job.work = work;
        job.principal = caller.principal;
        job.if_gone = if anyway { IfGone::Place } else { IfGone::Refuse };
        job.coming.clear();
        job.leaving.clear();
        job.leaving.extend_from_slice(&self.ids);
        job.done = None;
        self.replaces.staged = Some(job);
        Ok(work)
    }

    /// One more order of the replace was judged.
    pub(super) fn add_to_replace(&mut self, place: &ReadyOrder) {
        self.replaces.staged.as_mut().expect("a replace is staged").coming.push(*place);
    }

    /// An order of the replace was refused before its shard heard of it, and so is all of it.
    pub(super) fn refuse_replace(&mut self, item: usize, refused: Refused) {
        let job = self.replaces.staged.take().expect("a replace is staged");
        let part = ReplacePart::Coming(u8::try_from(item).expect("a replace has few orders"));
        self.works.work(job.work).replace.refused = Some((refused, Some(part)));
        self.works.came(job.work);
        self.replaces.spare.push(job);
    }

    /// All orders were judged: the market's shard decides.
    pub(super) fn run_replace(&mut self, now: TimeMs, mesh: &mut Mesh) {
        let Some(mut job) = self.replaces.staged.take() else {
            return;
        };
        let owner = self.registry.shard_of(job.coming[0].market(), self.shards);
        if Some(owner) == self.shard_no() {
            self.do_replace(&mut job, now);
            self.told_of_replace(job);
            return;
        }
        match mesh.post(usize::from(owner.0), Letter::Replace(job)) {
            Ok(()) => {}
            Err(Letter::Replace(job)) => {
                self.works.work(job.work).replace.refused = Some((Refused::plain(Reject::Busy), None));
                self.works.came(job.work);
                self.replaces.spare.push(job);
            }
            Err(_) => unreachable!("a letter comes back as it was"),
        }
    }

    /// Does a replace on this shard.
    pub(in crate::server) fn do_replace(&mut self, job: &mut ReplaceJob, now: TimeMs) {
        let began_ns = self.clock.elapsed_ns();
        let now = job.coming.iter().map(|place| self.time_for(place, now)).max().unwrap_or(now);
        job.run(self.own_shard(), now);
        job.match_ns = self.clock.elapsed_ns() - began_ns;
    }

    /// Takes what the shard decided.
    pub(in crate::server) fn told_of_replace(&mut self, job: Box<ReplaceJob>) {
        self.lap_elsewhere(job.work, job.match_ns);
        let work = self.works.work(job.work);
        work.decided_at(job.at);
        match job.done.expect("the shard has decided") {
            Err(ReplaceRefusal { refusal, part }) => {
                work.replace.refused = Some((words::of_order(&refusal), part));
                work.replace.at_fault = part.map(|part| match part {
                    ReplacePart::Leaving(at) => job.leaving[usize::from(at)],
                    ReplacePart::Coming(at) => *job.coming[usize::from(at)].id(),
                });
            }
            Ok(Replaced { replayed, left, kept_place }) => {
                work.replace = ReplaceEnd { kept_place, replayed, ..ReplaceEnd::default() };
                let mut ids = job.leaving.iter().enumerate();
                while let Some((at, &id)) = ids.find(|(at, id)| !job.leaving[..*at].contains(id)) {
                    if left & 1 << at != 0 {
                        work.cancelled.push(id);
                    } else {
                        work.not_cancelled.push(NotCancelled { id, why: WhyNot::Elsewhere });
                    }
                }
                work.items.clear();
                work.items
                    .extend(job.coming.iter().map(|place| Item { id: Some(*place.id()), outcome: RESTS }));
            }
        }
        self.works.came(job.work);
        self.replaces.spare.push(job);
    }
}

/// What became of every order of a replace that was done.
const RESTS: Outcome =
    Outcome::Accepted { status: "live", making: 0, taking: 0, trade: None, replayed: false };
