//! What other loops sent, and the roles' own work.

use super::acts;
use super::guards;
use super::refuse::write_refusal;
use super::{CoreLoop, REGISTRAR_LOOP, connection_word};
use crate::domain::{Position, Reject};
use crate::journal::Durability;
use crate::server::connections::connection::Door;
use crate::server::connections::held::SMALL_BYTES_MAX;
use crate::server::connections::{Client, List};
use crate::server::operator::intake;
use crate::server::process::snapshotter;
use crate::server::reading::Reading;
use crate::server::reading::follows::Follows;
use crate::server::threads::message::{ActJob, Letter, ReadJob, Report};

/// Messages taken from one other loop in one turn.
pub(super) const MESSAGES_PER_TURN: usize = 64;

/// Errands that are run in one turn at most, or pieces of them, and for how long others are begun after the first: what
/// else waits has its turn later.
const ERRANDS_PER_TURN: usize = 64;
const ERRANDS_NS: u64 = 50_000;

/// Step 3: other loops, and what goes on here. Step 4: the roles' own work. Step 5: answers of decided requests.
impl CoreLoop {
    pub(super) fn take_messages(&mut self) -> bool {
        let mut busy = false;
        acts::send_again(self);
        for from in 0..self.mesh.loops() {
            for _ in 0..MESSAGES_PER_TURN {
                let Some(letter) = self.mesh.next_letter(from) else {
                    break;
                };
                busy = true;
                self.open_letter(from, letter);
            }
            for _ in 0..MESSAGES_PER_TURN {
                let Some(letter) = self.mesh.next_reply(from) else {
                    break;
                };
                busy = true;
                self.open_reply(letter);
            }
        }
        busy |= self.run_errands();
        if let Some(trade) = self.trade.as_mut() {
            busy |= trade.go_on_cancelling(self.now, &mut self.mesh);
            busy |= trade.take_messages(self.now, &mut self.mesh, MESSAGES_PER_TURN);
        }
        busy
    }

    fn open_letter(&mut self, from: usize, letter: Letter) {
        // The sender saw that roles are given out; ours may have come in the middle of this turn.
        self.take_roles();
        match letter {
            Letter::Moved(moved) => {
                let answers_for = moved.carried.answers_for();
                let peer = moved.peer;
                if !self.adopt(moved.client, peer, Door::Public, moved.carried) {
                    self.shared.house.leave(Door::Public, peer);
                    if let Some(key) = answers_for {
                        self.lost(key, None);
                    }
                }
            }
            Letter::Read(job) => {
                let reading = self.follows.reading_mut();
                reading.expect("reads are posted after recovery, to the reader's loop").begin(job);
            }
            Letter::Wide(job) => {
                let trade = self.trade.as_mut();
                let trade = trade.expect("cancels are posted to loops with a shard");
                trade.do_wide(from, job, self.now, &mut self.mesh);
            }
            Letter::Replace(mut job) => {
                let trade = self.trade.as_mut();
                trade.expect("replaces are posted to loops with a shard").do_replace(&mut job, self.now);
                self.mesh.reply(from, Letter::Replace(job));
            }
            Letter::Act(job) => {
                // If the clock was moved before the act was sent, the act and all that follows must see the new time,
                // though this turn may have begun earlier.
                self.now = self.shared.clock.now_after(self.now);
                self.errands.push_back((from, job));
            }
        }
    }

    /// Runs some errands, or a piece of each that continues here, so that orders come in between. Returns whether there
    /// were any.
    fn run_errands(&mut self) -> bool {
        let count = self.errands.len().min(ERRANDS_PER_TURN);
        if count == 0 {
            return false;
        }
        let until_ns = self.shared.clock.elapsed_ns() + ERRANDS_NS;
        for _ in 0..count {
            let (from, job) = self.errands.pop_front().expect("they were just counted");
            self.run(from, job);
            if until_ns <= self.shared.clock.elapsed_ns() {
                break;
            }
        }
        true
    }

    fn run(&mut self, from: usize, mut job: Box<ActJob>) {
        let trade = self.trade.as_mut();
        trade.expect("errands are posted to trading loops").run_errand(&mut job, self.now);
        match job.report.take() {
            // Going by the sender's loop would cost two bells for each piece.
            Some(Report::Next(to, errand)) if to == self.mesh.no() => {
                job.errand = Some(errand);
                self.errands.push_back((from, job));
            }
            report => {
                job.report = report;
                self.mesh.reply(from, Letter::Act(job));
            }
        }
    }

    fn open_reply(&mut self, letter: Letter) {
        match letter {
            Letter::Read(job) => self.deliver(*job),
            Letter::Wide(job) => {
                let trade = self.trade.as_mut();
                let trade = trade.expect("cancels come back to the loop that took them");
                trade.told_of_wide(job, self.now, &mut self.mesh);
            }
            Letter::Replace(job) => {
                let trade = self.trade.as_mut();
                trade.expect("replaces come back to the loop that took them").told_of_replace(job);
            }
            Letter::Act(job) => acts::came_back(self, job),
            Letter::Moved(_) => unreachable!("a move is not answered"),
        }
    }

    /// Puts the answer of a read into its place in the line; a large one only if there is memory for it.
    pub(super) fn deliver(&mut self, mut job: ReadJob) {
        self.reads.end(job.toll.address());
        // If the client is gone, so is the answer.
        let takes = self.connections.look(job.client.slot).is_none_or(|connection| {
            self.shared.held.of(connection.door, connection.peer).takes(job.answer.len())
        });
        if !takes {
            let connection = connection_word(job.keep_alive);
            job.answer = Vec::new();
            write_refusal(&mut job.answer, Reject::Busy, Reject::Busy.wire().status, connection);
        }
        if SMALL_BYTES_MAX < job.answer.len() {
            job.answer.shrink_to_fit();
        }
        self.put_answer(job.client, job.number, job.at, |place| *place = job.answer);
    }

    /// Puts an answer into its place in the line, if its client is still there.
    pub(in crate::server) fn answer(&mut self, client: Client, number: u32, answer: &[u8], at: Position) {
        self.put_answer(client, number, at, |place| place.extend_from_slice(answer));
    }

    fn put_answer(&mut self, client: Client, number: u32, at: Position, put: impl FnOnce(&mut Vec<u8>)) {
        let Some(mut connection) = self.connections.take_client(client) else {
            return;
        };
        if let Some(place) = connection.line.answer(number) {
            put(place);
            connection.line.ready(number, at);
            connection.count_held(&self.shared.held);
        }
        self.connections.put(client.slot, connection);
    }

    pub(super) fn work(&mut self) -> bool {
        guards::look(self);
        let mut busy = false;
        if let Some(trade) = &mut self.trade {
            busy |= trade.work(self.now);
            let trips = trade.registry.trips();
            if trips != self.trips_rung {
                // A breaker that tripped is in the log only once the registrar has written that it did.
                self.trips_rung = trips;
                self.mesh.touch(REGISTRAR_LOOP);
            }
            let claimed = trade.last_claimed();
            if claimed != self.claimed {
                if let Some(shard) = &trade.shard {
                    // What was spent here may have been counted on there.
                    shard.others_with_fallen_cells().for_each(|no| self.mesh.touch(usize::from(no.0)));
                }
                // One bell a millisecond is enough for those who follow, whom a read or a stream's client wakes anyway:
                // waking another core costs more than everything else about an order but its signature.
                if self.elapsed_ms != self.rang_followers_ms {
                    (self.claimed, self.rang_followers_ms) = (claimed, self.elapsed_ms);
                    let topology = &self.shared.plan.topology;
                    topology.followers().for_each(|no| self.mesh.touch(no));
                }
            }
        }
        self.tell_journal();
        let Some(marks) = &mut self.marks else {
            return false;
        };
        let mark = marks.advance();
        if let Some(followed) = self.follows.followed_mut() {
            followed.callers.moment = self.moment;
            let handover = self.shared.snapshots.handover(self.mesh.no());
            handover.note(followed.applied(), followed.reader.ledger().orders_in_memory());
            if let Some((position, archive)) = handover.next_archive() {
                followed.set_archive_at(position, archive);
            }
        }
        match &mut self.follows {
            Follows::Nothing => busy,
            Follows::Feed(feed) => busy | feed.follow(mark, self.now, |_, _| {}) | feed.shed(),
            Follows::Reader(reading) => {
                let busy = busy | reading.work(mark, self.now, self.elapsed_ms);
                self.hand_on_reads();
                busy | snapshotter::answer(self) | intake::go_on_adding(self)
            }
        }
    }

    /// Sends the registrar the acts among the reads, and answers those that are done.
    fn hand_on_reads(&mut self) {
        while let Some(job) = self.follows.reading_mut().and_then(Reading::next_act) {
            acts::send(self, REGISTRAR_LOOP, job);
        }
        while let Some(job) = self.follows.reading_mut().and_then(Reading::next_done) {
            if job.origin == self.mesh.no() {
                self.deliver(*job);
            } else {
                let origin = job.origin;
                self.mesh.reply(origin, Letter::Read(job));
            }
        }
    }

    /// Wakes the journal's thread if frames were claimed since it was last woken and answers wait for the disk.
    pub(super) fn tell_journal(&mut self) {
        let (Some(marks), Some(trade)) = (&self.marks, &self.trade) else {
            return;
        };
        let claimed = trade.last_claimed();
        if marks.durability() == Durability::Durable && claimed != self.told_journal {
            self.told_journal = claimed;
            marks.log().wake_writer();
        }
    }

    /// Renders the answer of each decided request into its place in the line.
    pub(super) fn finish(&mut self) {
        loop {
            let Some(trade) = self.trade.as_mut() else {
                return;
            };
            let Some(client) = trade.next_finished() else {
                return;
            };
            if let Some(mut connection) = self.connections.take_client(client) {
                trade.render(Some(&mut connection.line));
                // The client's next request may have waited for this one.
                if !connection.input.unread().is_empty() {
                    self.connections.note(List::Ready, client.slot, &mut connection);
                }
                self.connections.put(client.slot, connection);
            } else {
                trade.render(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::idle::tests::one_loop;
    use super::*;
    use crate::domain::{Dialect, OrderId, WalletNo};
    use crate::json::answer::WhyNot;
    use crate::server::threads::thread::Turns;
    use crate::server::trading::wide::{Wide, WideJobs};
    use crate::server::trading::work::{Asker, Form};

    #[test]
    fn an_order_that_a_shard_had_no_room_to_look_for_is_not_kept_out() {
        let data = tempfile::tempdir().expect("a directory");
        let (_running, mut cores) = one_loop(&data);
        let core = &mut cores[0];
        while core.turn() && !core.rests() {}
        let id = OrderId([7; 32]);
        for (short, why, kept_out) in [(true, WhyNot::Busy, false), (false, WhyNot::Tombstone, true)] {
            let client = Client { slot: 0, generation: 0 };
            let trade = core.trade.as_mut().expect("it has recovered");
            let asker = Asker { client, number: 0, keep_alive: true };
            let work = trade.works.begin(asker, Dialect::Poly, Form::Cancel);
            trade.works.expect(work);
            trade.works.work(work).looking.push(id);
            let before = trade.last_claimed();
            let mut job = WideJobs::new(1).take(work, WalletNo(0), Wide::CancelList);
            job.short = short;
            core.open_reply(Letter::Wide(job));
            let trade = core.trade.as_mut().expect("it has recovered");
            assert_eq!(trade.works.next_finished(), Some(work));
            let told: Vec<_> = trade.works.work(work).not_cancelled.iter().map(|told| told.why).collect();
            assert_eq!(told, [why]);
            assert_eq!(before < trade.last_claimed(), kept_out, "a tombstone is in the log");
            trade.works.end();
        }
    }
}
