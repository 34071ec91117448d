//! What shards decided about orders, here and on other loops, and what other loops ask of this one.

use super::Trade;
use super::cancels::{Round, seek};
use super::words;
use super::work::{Outcome, Refused};
use crate::auth;
use crate::domain::trade::{TradeId, settlement_hash};
use crate::domain::{Position, ShardNo, TimeMs};
use crate::json::answer::TradeName;
use crate::registrar::Registrar;
use crate::server::threads::mesh::Mesh;
use crate::server::threads::message::{Answer, Asked, Question, Ticket, Told};
use crate::shard::ahead::{Before, Coming};
use crate::shard::{Placed, Shard, Status};

/// What shards said, here and elsewhere.
impl Trade {
    /// This loop's shard; other loops send questions only to a loop that has one.
    pub(in crate::server) fn own_shard(&mut self) -> &mut Shard {
        self.shard.as_mut().expect("shards are asked on their own loops")
    }

    /// The number of this loop's shard, if it has one.
    pub(super) fn shard_no(&self) -> Option<ShardNo> {
        self.shard.as_ref().map(|shard| shard.settings().shard)
    }

    /// The registrar, for acts that were sent to its loop.
    pub(in crate::server) fn own_registrar(&mut self) -> &mut Registrar {
        self.registrar.as_mut().expect("the registrar is asked on its own loop")
    }

    /// The end of the last frame that this loop's shard made.
    pub(super) fn last_decided(&self) -> Position {
        self.shard.as_ref().map_or(Position(0), Shard::last_claimed)
    }

    pub(in crate::server) fn placed(&mut self, ticket: Ticket, placed: &Placed, at: Position) {
        let work = self.works.work(ticket.work);
        work.decided_at(at);
        let item = &mut work.items[ticket.item as usize];
        item.outcome = match *placed {
            Placed::Refused(refusal) => {
                Outcome::Refused { refused: words::of_order(&refusal), replayed: false }
            }
            Placed::Accepted { status: Status::Killed(reject), replayed, .. } => {
                Outcome::Refused { refused: Refused::plain(reject), replayed }
            }
            Placed::Accepted { status, making, taking, trade, replayed } => Outcome::Accepted {
                status: if status == Status::Live { "live" } else { "matched" },
                making,
                taking,
                trade: trade.map(trade_name),
                replayed,
            },
        };
        self.works.came(ticket.work);
    }

    fn told(&mut self, told: &Told, now: TimeMs, mesh: &mut Mesh) {
        self.lap_elsewhere(told.ticket.work, told.match_ns);
        match &told.answer {
            Answer::Placed(placed) => self.placed(told.ticket, placed, told.at),
            Answer::Acted(acted) => self.acted(told.ticket, acted, told.at),
            Answer::Cancelled(_) | Answer::Buried(_) => {
                self.told_of_cancel(told.ticket.work, &told.answer, told.at, now, mesh);
            }
        }
    }

    /// Prefetches what the next requests of another loop will read, while the one before them is done.
    fn prefetch_for(&self, from: usize, mesh: &Mesh) {
        let shard = self.shard.as_ref().expect("shards are asked on their own loops");
        for before in Before::ALL {
            mesh.peek_asked(from, before.commands() as u64, |asked| match &asked.question {
                Question::Place(place) => {
                    shard.prefetch(place.coming(), before);
                }
                Question::Cancel { id, .. } | Question::Bury { id, .. } => {
                    shard.prefetch(Coming::cancel(id), before);
                }
                Question::Act(_) => {}
            });
        }
    }

    /// Does what another loop asks of this shard.
    fn reply_to(&mut self, asked: &Asked, now: TimeMs) -> Answer {
        match &asked.question {
            Question::Place(place) => {
                let time = self.time_for(place, now);
                Answer::Placed(self.own_shard().place(time, place))
            }
            Question::Cancel { principal, id } => seek(self.own_shard(), now, *principal, id, Round::Looking),
            Question::Bury { principal, id } => seek(self.own_shard(), now, *principal, id, Round::Burying),
            Question::Act(act) => Answer::Acted(self.own_shard().act(now, act)),
        }
    }
}

/// Messages of other loops.
impl Trade {
    /// Takes what other loops ask of this shard and what they answered.
    pub(crate) fn take_messages(&mut self, now: TimeMs, mesh: &mut Mesh, messages_max: usize) -> bool {
        let mut busy = false;
        for from in 0..mesh.loops() {
            for _ in 0..messages_max {
                let Some(asked) = mesh.next_asked(from) else {
                    break;
                };
                busy = true;
                let began_ns = self.clock.elapsed_ns();
                self.prefetch_for(from, mesh);
                let answer = self.reply_to(&asked, now);
                let match_ns = self.clock.elapsed_ns() - began_ns;
                let told = Told { ticket: asked.ticket, at: self.last_decided(), answer, match_ns };
                mesh.tell(from, &told);
            }
            for _ in 0..messages_max {
                let Some(told) = mesh.next_told(from) else {
                    break;
                };
                busy = true;
                self.told(&told, now, mesh);
            }
        }
        busy
    }
}

/// What clients call the trade that an order made.
fn trade_name(position: Position) -> TradeName {
    let keccak = |bytes: &[u8]| auth::keccak(bytes).0;
    TradeName { id: TradeId::new(position).uuid(), hash: settlement_hash(position, keccak) }
}
