//! Acts on their way: posted to the loop that does them, confirmed by every loop that they bind,
//! answered when that is done.

use super::guards;
use super::work::MESSAGES_PER_TURN;
use super::{CoreLoop, REGISTRAR_LOOP};
use crate::domain::{Mode, Reject};
use crate::server::operator::admin;
use crate::server::operator::intake;
use crate::server::requests::refusal;
use crate::server::threads::mesh::RING_SLOTS;
use crate::server::threads::message::{ActJob, Binding, Errand, Letter, Purpose, Report, Said, Ticket};
use crate::shard::Placed;

/// Turns in which a shard's loop reads a whole ring.
const RING_TURNS: usize = RING_SLOTS.div_ceil(MESSAGES_PER_TURN);

/// Sends an act to the loop that does it. If that has no room, the act is refused as busy; the server's own acts are
/// sent again in the next turn.
pub(crate) fn send(core: &mut CoreLoop, to: usize, job: Box<ActJob>) {
    if let Err(Letter::Act(job)) = core.mesh.post(to, Letter::Act(job)) {
        match job.purpose {
            Purpose::Order(ticket) => placed(core, ticket, &job, &Placed::Refused(Reject::Busy.into())),
            // Nobody would ask for it again.
            Purpose::House | Purpose::Lost(_) => core.unsent.push_back((to, job)),
            _ => busy(core, *job),
        }
    }
}

/// Refuses an act for which there is no room now.
pub(crate) fn busy(core: &mut CoreLoop, job: ActJob) {
    answer(core, job, refusal::busy());
}

/// Sends again the server's own acts and the confirmations for which there was no room.
pub(crate) fn send_again(core: &mut CoreLoop) {
    for _ in 0..core.unsent.len() {
        let (to, job) = core.unsent.pop_front().expect("they were just counted");
        send_or_keep(core, to, job);
    }
}

/// Sends what must not be refused for want of room: it waits for the next turn.
fn send_or_keep(core: &mut CoreLoop, to: usize, job: Box<ActJob>) {
    if let Err(Letter::Act(job)) = core.mesh.post(to, Letter::Act(job)) {
        core.unsent.push_back((to, job));
    }
}

/// An act came back: it goes on, or is confirmed, or is answered.
pub(crate) fn came_back(core: &mut CoreLoop, mut job: Box<ActJob>) {
    match job.report.take().expect("whoever does an act reports") {
        Report::Next(to, errand) => {
            job.errand = Some(errand);
            // A part of it may be done, so it is not refused any more.
            send_or_keep(core, to, job);
        }
        Report::WhenRoom(errand) => {
            job.errand = Some(errand);
            intake::wait_for_room(core, job);
        }
        Report::Placed(result) => match job.purpose {
            Purpose::Order(ticket) => placed(core, ticket, &job, &result),
            _ => unreachable!("only orders are placed"),
        },
        Report::Answer(said) => {
            let topology = &core.shared.plan.topology;
            let (trading, shards) = (topology.trading_loops(), usize::from(topology.shards));
            let confirms = match job.binding {
                Binding::Nobody => 0,
                Binding::EveryShard if trading == 1 => 1,
                Binding::EveryShard => trading + shards,
            };
            let asked = job.confirm_next;
            if confirms <= asked {
                return answer(core, *job, said);
            }
            // What loops judged before the act is on its way to the shards once all of them have confirmed it.
            let turns = if asked < trading { 0 } else { RING_TURNS };
            job.errand = Some(once_rings_are_read(turns, said));
            job.confirm_next += 1;
            // It is done: only its answer waits.
            send_or_keep(core, asked % trading, job);
        }
    }
}

/// Answers after so many more turns of a shard's loop, after [`RING_TURNS`] with all read that its rings held.
fn once_rings_are_read(turns: usize, said: Said) -> Errand {
    Box::new(move |trade, _| match turns.checked_sub(1) {
        None => Report::Answer(said),
        Some(turns) => trade.go_on_here(once_rings_are_read(turns, said)),
    })
}

/// Lets the exchange take cancels at most: an act of the server itself, which nobody waits for. One that is closed stays
/// closed.
pub(crate) fn cancels_only(core: &mut CoreLoop) {
    let errand: Errand = Box::new(|trade, now| {
        if trade.registry.exchange_mode() == Mode::Closed {
            return Report::done(Vec::new());
        }
        match trade.own_registrar().set_exchange_mode(now, Mode::CancelOnly) {
            Ok(()) => Report::done(Vec::new()),
            Err(refusal) => {
                let body = refusal.to_string().into_bytes();
                Report::Answer(Said { status: refusal.wire().status, retry_after_s: None, body })
            }
        }
    });
    send(core, REGISTRAR_LOOP, Box::new(ActJob::new(Purpose::House, Binding::Nobody, errand)));
}

fn placed(core: &mut CoreLoop, ticket: Ticket, job: &ActJob, placed: &Placed) {
    let trade = core.trade.as_mut().expect("orders come back to the loop that took them");
    trade.lap_elsewhere(ticket.work, job.match_ns);
    trade.placed(ticket, placed, job.at);
}

fn answer(core: &mut CoreLoop, job: ActJob, said: Said) {
    let (at, match_ns) = (job.at, job.match_ns);
    match job.purpose {
        Purpose::House if said.status == 200 => {}
        Purpose::House => {
            tracing::error!("cancels only: {}; it is tried again", String::from_utf8_lossy(&said.body));
            if let Some(disk) = &mut core.disk {
                disk.forget();
            }
        }
        Purpose::Lost(key) => guards::lost_is_over(core, key),
        Purpose::Operator(pending) => {
            admin::finish(core, pending, &said, at);
        }
        Purpose::Addition(pending) => {
            admin::finish(core, pending, &said, at);
            intake::ended(core, at);
        }
        Purpose::Request(work) => {
            let trade = core.trade.as_mut();
            let trade = trade.expect("acts come back to the loop that took them");
            trade.told_of_act(work, said, at, match_ns);
        }
        Purpose::Order(_) => unreachable!("an order is answered by what it came to"),
        Purpose::Reader(read) => {
            let reading = core.follows.reading_mut();
            reading.expect("acts come back to the reader's loop").acted(read, &said, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::idle::tests::one_loop;
    use super::*;
    use crate::server::threads::thread::Turns;

    #[test]
    fn a_disk_that_gets_full_leaves_cancels_and_opens_nothing_that_is_closed() {
        let data = tempfile::tempdir().expect("a directory");
        let (_running, mut cores) = one_loop(&data);
        let core = &mut cores[0];
        let rests = |core: &mut CoreLoop| while core.turn() && !core.rests() {};
        for (before, then) in [
            (Mode::Open, Mode::CancelOnly),
            (Mode::PostOnly, Mode::CancelOnly),
            (Mode::CancelOnly, Mode::CancelOnly),
            (Mode::Closed, Mode::Closed),
        ] {
            rests(core);
            let now = core.now;
            let trade = core.trade.as_mut().expect("it has recovered");
            trade.own_registrar().set_exchange_mode(now, before).expect("there is room");
            cancels_only(core);
            rests(core);
            let trade = core.trade.as_ref().expect("it has recovered");
            assert_eq!(trade.registry.exchange_mode(), then, "{before:?}");
        }
    }
}
