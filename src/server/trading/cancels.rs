//! Cancels, for which every shard is asked.
//!
//! An id does not say which shard its order is on. An id that no shard knows leaves a tombstone on all of them, which
//! kills the order if it arrives later. So a cancel of named orders asks the other shards at most twice. An order may
//! arrive at its shard between the two rounds: a shard buries only what it still does not know, and cancels the rest.
//!
//! A cancel of all orders means those that are open when it begins. They are chosen at once, and leave in pieces, one a
//! turn for all that go on, so that others' orders come in between; nothing that its client sends afterwards is begun
//! before all of them have left. Another one of the same owner begins when the first is over.

use super::Trade;
use super::wide::{Wide, WideJob};
use super::work::Work;
use crate::domain::{OrderId, Position, TimeMs, WalletNo};
use crate::journal::layout::RemovalReason;
use crate::json::answer::{NotCancelled, WhyNot};
use crate::json::read::CancelScope;
use crate::server::requests::caller::Caller;
use crate::server::threads::mesh::{Mesh, Share};
use crate::server::threads::message::{Answer, Asked, Errand, Letter, Question, Report, Ticket};
use crate::shard::{CancelRefusal, LEAVING_PER_PIECE, Leaving, OrderScope, Shard};
use crate::stats::Stage;

/// Open orders that a cancel looked at and left, which limits count as one request more.
const IN_VAIN_COUNTED_AS_ONE: usize = 1_024;

/// Cancels that go on in one turn, if few orders leave by each.
const CANCELS_PER_TURN: usize = 8;

/// What an errand does once orders have left this shard, and how many: see [`Trade::remove_orders`].
type Then = Box<dyn FnOnce(&mut Trade, usize) -> Report + Send>;

/// How far the search for orders to be cancelled has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// Shards look for the orders.
    Looking,
    /// Shards leave tombstones for those that no shard knew, or cancel what has arrived since.
    Burying,
}

impl Trade {
    /// Cancels the orders in `self.ids`.
    pub(super) fn cancel_list(&mut self, work: u32, caller: &Caller, now: TimeMs, mesh: &mut Mesh) {
        self.begin_cancel(work, caller);
        if 1 < self.ids.len() {
            self.works.mark_wide(work);
        }
        self.seek_everywhere(work, now, mesh);
        self.answered(work, now, mesh);
    }

    /// Does a round for the orders in `self.ids`: here, and on the other shards for those that are not found.
    fn seek_everywhere(&mut self, work: u32, now: TimeMs, mesh: &mut Mesh) {
        let pending = self.works.work(work);
        let (principal, round) = (pending.principal, pending.round);
        match &mut self.shard {
            Some(shard) => {
                seek_all(shard, now, principal, &self.ids, round, |id, answer| note(pending, id, answer));
            }
            // An ingress loop knows no order itself.
            None => pending.looking.extend_from_slice(&self.ids),
        }
        let at = self.last_decided();
        self.works.work(work).decided_at(at);
        self.lap_of(work, Stage::Match);
        self.ask_others(work, mesh);
    }

    /// Cancels all orders of the caller, or those of a market or a token.
    pub(super) fn cancel_wide(
        &mut self,
        work: u32,
        caller: &Caller,
        scope: OrderScope,
        now: TimeMs,
        mesh: &mut Mesh,
    ) {
        self.begin_cancel(work, caller);
        self.works.mark_wide(work);
        for to in 0..usize::from(self.shards) {
            self.send_wide(work, to, Wide::Cancel(scope), mesh);
        }
        if self.shard.is_some() {
            let job = self.wide_jobs.take(work, caller.principal, Wide::Cancel(scope));
            self.do_wide(mesh.no(), job, now, mesh);
        } else {
            self.answered(work, now, mesh);
        }
    }

    /// Counts the orders that this loop's shard just looked at and left, or a cancel that meets none of many orders
    /// could be repeated as often as one that does nothing.
    pub(in crate::server) fn count_in_vain(&self, principal: WalletNo) {
        let in_vain = self.shard.as_ref().map_or(0, Shard::looked_in_vain);
        let count = u32::try_from(in_vain / IN_VAIN_COUNTED_AS_ONE).expect("slots are numbered in 32 bits");
        if count != 0 {
            self.callers.owe_for_cancels(principal, count);
        }
    }

    /// Cancels what a scope names; a market or token that does not exist has no orders.
    pub(super) fn cancel_scope(
        &mut self,
        work: u32,
        caller: &Caller,
        scope: &CancelScope,
        now: TimeMs,
        mesh: &mut Mesh,
    ) {
        let market = scope.market.map(|condition| self.registry.condition(&condition));
        let token = scope.token.map(|token| self.registry.token(&token));
        if market == Some(None) || token == Some(None) {
            self.works.expect(work);
            self.works.came(work);
            return;
        }
        let scope = OrderScope { market: market.flatten(), token: token.flatten(), ..OrderScope::ALL };
        self.cancel_wide(work, caller, scope, now, mesh);
    }

    /// Takes another shard's answer about the one order of a cancel.
    pub(super) fn told_of_cancel(
        &mut self,
        work: u32,
        answer: &Answer,
        at: Position,
        now: TimeMs,
        mesh: &mut Mesh,
    ) {
        let pending = self.works.work(work);
        pending.decided_at(at);
        if let Some(id) = pending.looking.pop() {
            note(pending, id, *answer);
        }
        self.answered(work, now, mesh);
    }

    /// Takes a shard's answer about many orders.
    pub(in crate::server) fn told_of_wide(&mut self, mut job: Box<WideJob>, now: TimeMs, mesh: &mut Mesh) {
        self.lap_elsewhere(job.work, job.match_ns);
        let pending = self.works.work(job.work);
        pending.decided_at(job.at);
        pending.short |= job.short;
        pending.unburied.extend_from_slice(&job.unburied);
        if !matches!(job.wide, Wide::Cancel(_)) {
            job.strike_found(&mut pending.looking);
        }
        // A long list is not copied.
        if pending.cancelled.is_empty() && pending.cancelled.capacity() < job.cancelled.capacity() {
            std::mem::swap(&mut pending.cancelled, &mut job.cancelled);
        } else {
            pending.cancelled.extend_from_slice(&job.cancelled);
        }
        let gone = job.gone.iter().map(|&id| NotCancelled { id, why: WhyNot::Gone });
        pending.not_cancelled.extend(gone);
        let work = job.work;
        self.wide_jobs.keep(job);
        self.answered(work, now, mesh);
    }

    /// Does what a loop's cancel asks of this shard, or its first piece.
    pub(in crate::server) fn do_wide(
        &mut self,
        from: usize,
        mut job: Box<WideJob>,
        now: TimeMs,
        mesh: &mut Mesh,
    ) {
        let principal = job.principal;
        match job.wide {
            Wide::Cancel(_) if self.leaving.iter().any(|(_, job)| job.principal == principal) => {
                return self.waiting.push_back((from, job));
            }
            Wide::Cancel(_) => {
                self.cancel_some(from, job, now, mesh);
                return;
            }
            Wide::CancelList | Wide::Bury => {
                let began_ns = self.clock.elapsed_ns();
                let round = if job.wide == Wide::Bury { Round::Burying } else { Round::Looking };
                let WideJob { ids, cancelled, gone, short, unburied, .. } = &mut *job;
                seek_all(self.own_shard(), now, principal, ids, round, |id, answer| match answer {
                    Answer::Cancelled(Ok(())) => cancelled.push(id),
                    Answer::Cancelled(Err(CancelRefusal::Gone)) => gone.push(id),
                    Answer::Cancelled(Err(CancelRefusal::Unknown)) | Answer::Buried(true) => {}
                    Answer::Cancelled(Err(CancelRefusal::Busy)) => *short = true,
                    Answer::Buried(false) => unburied.push(id),
                    Answer::Placed(_) | Answer::Acted(_) => unreachable!("a cancel is answered as one"),
                });
                job.match_ns += self.clock.elapsed_ns() - began_ns;
            }
        }
        self.hand_back(from, job, now, mesh);
    }

    /// Goes on with the cancels that go on here, in turn, until a piece's number of orders have left. Returns whether there
    /// were any.
    pub(in crate::server) fn go_on_cancelling(&mut self, now: TimeMs, mesh: &mut Mesh) -> bool {
        let busy = self.is_cancelling();
        let mut left = 0;
        for _ in 0..CANCELS_PER_TURN {
            let Some((from, job)) = self.leaving.pop_front() else {
                break;
            };
            left += self.cancel_some(from, job, now, mesh);
            if LEAVING_PER_PIECE <= left {
                break;
            }
        }
        busy
    }

    /// Whether a cancel goes on here.
    pub(in crate::server) fn is_cancelling(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Removes the next of the orders that a cancel means, which it chooses when it begins. Returns how many have left.
    fn cancel_some(&mut self, from: usize, mut job: Box<WideJob>, now: TimeMs, mesh: &mut Mesh) -> usize {
        let (principal, began_ns) = (job.principal, self.clock.elapsed_ns());
        if let Wide::Cancel(scope) = job.wide
            && !std::mem::replace(&mut job.is_begun, true)
        {
            self.own_shard().choose_open(principal, scope, &mut job.leaving);
            self.count_in_vain(principal);
        }
        let (reason, before) = (RemovalReason::Cancelled, job.cancelled.len());
        let done = self.own_shard().remove_some(now, &mut job.leaving, reason, &mut job.cancelled);
        job.short = done.is_err();
        job.match_ns += self.clock.elapsed_ns() - began_ns;
        let left = job.cancelled.len() - before;
        if job.short || job.leaving.is_over() {
            self.hand_back(from, job, now, mesh);
            // The owner's next one behind everybody's: it will find little.
            if let Some(at) = self.waiting.iter().position(|(_, job)| job.principal == principal) {
                self.leaving.extend(self.waiting.remove(at));
            }
        } else {
            self.leaving.push_back((from, job));
        }
        left
    }

    /// Gives a wide job back to the loop that asked.
    fn hand_back(&mut self, from: usize, mut job: Box<WideJob>, now: TimeMs, mesh: &mut Mesh) {
        job.at = self.own_shard().last_claimed();
        if from == mesh.no() {
            self.told_of_wide(job, now, mesh);
        } else {
            mesh.reply(from, Letter::Wide(job));
        }
    }

    /// Removes a principal's orders from this shard, those that are in `scope` when that begins: a piece in each of the
    /// turns to come. Then does what is to be done `then`, which gets how many have left.
    pub(in crate::server) fn remove_orders(
        &self,
        principal: WalletNo,
        scope: impl FnOnce(&Self) -> OrderScope + Send + 'static,
        reason: RemovalReason,
        then: Then,
    ) -> Report {
        self.go_on_here(Box::new(move |trade, now| {
            let (scope, mut leaving) = (scope(trade), Leaving::default());
            trade.own_shard().choose_open(principal, scope, &mut leaving);
            trade.count_in_vain(principal);
            trade.remove_some(now, leaving, 0, reason, then)
        }))
    }

    /// Goes on with an errand in a turn to come, of which each has a few.
    pub(in crate::server) fn go_on_here(&self, errand: Errand) -> Report {
        let here = self.shard_no().expect("a loop with a shard");
        Report::Next(here.0.into(), errand)
    }

    fn remove_some(
        &mut self,
        now: TimeMs,
        mut leaving: Leaving,
        before: usize,
        reason: RemovalReason,
        then: Then,
    ) -> Report {
        let mut left = Vec::new();
        // Busy: the log may have room in the next turn.
        let _ = self.own_shard().remove_some(now, &mut leaving, reason, &mut left);
        let left = before + left.len();
        if leaving.is_over() {
            return then(self, left);
        }
        self.go_on_here(Box::new(move |trade, now| trade.remove_some(now, leaving, left, reason, then)))
    }

    fn begin_cancel(&mut self, work: u32, caller: &Caller) {
        let pending = self.works.work(work);
        pending.principal = caller.principal;
        pending.round = Round::Looking;
        // Our own part counts as one answer, so that the request cannot end before it is done.
        self.works.expect(work);
    }

    /// Asks every other shard about the ids that are still looked for.
    fn ask_others(&mut self, work: u32, mesh: &mut Mesh) {
        if self.works.work(work).looking.is_empty() {
            return;
        }
        for to in 0..usize::from(self.shards) {
            if self.is_here(to) {
                continue;
            }
            let pending = self.works.work(work);
            let (principal, round) = (pending.principal, pending.round);
            if let [id] = pending.looking[..] {
                let question = match round {
                    Round::Looking => Question::Cancel { principal, id },
                    Round::Burying => Question::Bury { principal, id },
                };
                let asked = Asked { ticket: Ticket { work, item: 0 }, question };
                if mesh.ask(to, &asked, Share::Cancel) {
                    self.works.expect(work);
                } else {
                    not_asked(self.works.work(work));
                }
            } else {
                let wide = match round {
                    Round::Looking => Wide::CancelList,
                    Round::Burying => Wide::Bury,
                };
                self.send_wide(work, to, wide, mesh);
            }
        }
    }

    /// True if the shard is on this loop.
    fn is_here(&self, shard: usize) -> bool {
        self.shard_no().is_some_and(|own| usize::from(own.0) == shard)
    }

    fn send_wide(&mut self, work: u32, to: usize, wide: Wide, mesh: &mut Mesh) {
        if self.is_here(to) {
            return;
        }
        let pending = self.works.work(work);
        let mut job = self.wide_jobs.take(work, pending.principal, wide);
        job.ids.extend_from_slice(&pending.looking);
        match mesh.post(to, Letter::Wide(job)) {
            Ok(()) => self.works.expect(work),
            Err(Letter::Wide(job)) => {
                not_asked(pending);
                self.wide_jobs.keep(job);
            }
            Err(_) => unreachable!("a letter comes back as it was"),
        }
    }

    /// One answer of a cancel came: the last one of a round begins the next round or ends the cancel.
    fn answered(&mut self, work: u32, now: TimeMs, mesh: &mut Mesh) {
        let pending = self.works.work(work);
        if pending.open == 1 && !pending.looking.is_empty() {
            // A shard that could not be asked may know the order: nothing is buried then.
            if pending.round == Round::Looking && !pending.short {
                self.bury(work, now, mesh);
                return self.answered(work, now, mesh);
            }
            let (short, unburied) = (pending.short, &mut pending.unburied);
            unburied.sort_unstable();
            let gone = pending.looking.drain(..).map(|id| {
                let why = match (short, unburied.binary_search(&id)) {
                    (true, _) => WhyNot::Busy,
                    (false, Ok(_)) => WhyNot::Gone,
                    (false, Err(_)) => WhyNot::Tombstone,
                };
                NotCancelled { id, why }
            });
            pending.not_cancelled.extend(gone);
        }
        self.works.came(work);
    }

    /// Leaves tombstones for the ids that no shard knows, here and on the others.
    fn bury(&mut self, work: u32, now: TimeMs, mesh: &mut Mesh) {
        let pending = self.works.work(work);
        pending.round = Round::Burying;
        self.ids.clear();
        self.ids.append(&mut pending.looking);
        self.seek_everywhere(work, now, mesh);
    }
}

/// Cancels an order if the shard knows it; else, in the second round, leaves a tombstone for it.
pub(super) fn seek(
    shard: &mut Shard,
    now: TimeMs,
    principal: WalletNo,
    id: &OrderId,
    round: Round,
) -> Answer {
    match shard.cancel(now, principal, id) {
        Err(CancelRefusal::Unknown) if round == Round::Burying => {
            Answer::Buried(shard.tombstone(now, principal, id))
        }
        found => Answer::Cancelled(found),
    }
}

/// The same for each order of a list.
fn seek_all(
    shard: &mut Shard,
    now: TimeMs,
    principal: WalletNo,
    ids: &[OrderId],
    round: Round,
    mut found: impl FnMut(OrderId, Answer),
) {
    for (index, id) in ids.iter().enumerate() {
        shard.prefetch_for_cancels(&ids[index + 1..]);
        found(*id, seek(shard, now, principal, id, round));
    }
}

/// Notes that a shard could not be asked.
fn not_asked(pending: &mut Work) {
    match pending.round {
        Round::Looking => pending.short = true,
        Round::Burying => pending.unburied.extend_from_slice(&pending.looking),
    }
}

/// Notes what a shard said about one order.
fn note(pending: &mut Work, id: OrderId, answer: Answer) {
    match answer {
        Answer::Cancelled(Ok(())) => return pending.cancelled.push(id),
        Answer::Cancelled(Err(CancelRefusal::Gone)) => {
            return pending.not_cancelled.push(NotCancelled { id, why: WhyNot::Gone });
        }
        Answer::Cancelled(Err(CancelRefusal::Unknown)) | Answer::Buried(true) => {}
        Answer::Cancelled(Err(CancelRefusal::Busy)) => pending.short = true,
        Answer::Buried(false) => pending.unburied.push(id),
        Answer::Placed(_) | Answer::Acted(_) => unreachable!("a cancel is answered as one"),
    }
    pending.looking.push(id);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Dialect;
    use crate::server::connections::Client;
    use crate::server::trading::work::{Asker, Form, Works};

    #[test]
    fn an_order_that_a_shard_had_no_room_to_cancel_is_neither_gone_nor_unknown() {
        let mut works = Works::new();
        let client = Client { slot: 0, generation: 0 };
        let id = OrderId([7; 32]);
        // What is told as cancelled and as not cancelled, what is looked for still, and what is short or unburied.
        for (answer, told) in [
            (Answer::Cancelled(Ok(())), [1, 0, 0, 0, 0]),
            (Answer::Cancelled(Err(CancelRefusal::Gone)), [0, 1, 0, 0, 0]),
            (Answer::Cancelled(Err(CancelRefusal::Unknown)), [0, 0, 1, 0, 0]),
            (Answer::Cancelled(Err(CancelRefusal::Busy)), [0, 0, 1, 1, 0]),
            (Answer::Buried(true), [0, 0, 1, 0, 0]),
            (Answer::Buried(false), [0, 0, 1, 0, 1]),
        ] {
            let asker = Asker { client, number: 0, keep_alive: true };
            let place = works.begin(asker, Dialect::Poly, Form::Cancel);
            let work = works.work(place);
            note(work, id, answer);
            let lists = [&work.cancelled, &work.looking, &work.unburied].map(Vec::len);
            let [cancelled, looking, unburied] = lists;
            let found = [cancelled, work.not_cancelled.len(), looking, usize::from(work.short), unburied];
            assert_eq!(found, told, "{answer:?}");
        }
    }
}
