//! From a request to a shard's decision to an answer: the trading role of a loop.

use super::connection::{Intent, Line};
use super::connections::Client;
use super::core_loop::connection_word;
use super::mesh::Mesh;
use super::message::ActJob;
use super::request::Request;
use crate::domain::{Position, Reject, TimeMs};
use crate::http::Route;
use crate::http::respond::{self, Extras};

/// Curve operations in one turn; each costs 26 µs.
pub(crate) const SIGNATURES_PER_TURN: usize = 2;

/// What became of a trading request.
pub(crate) enum Began {
    /// It was taken.
    Took,
    /// It was taken and costs curve operations: others are in turn.
    TookWithSignature,
    /// There is no time for it in this turn.
    Later,
}

/// Sockets' side and shard's side of trading on one loop.
pub(crate) struct Trade {}

impl Trade {
    /// A new turn: its budget, and what the last one left.
    pub(crate) fn begin_turn(&mut self, now: TimeMs, mesh: &mut Mesh) -> bool {
        let _ = (now, mesh);
        false
    }

    /// Takes one trading request.
    pub(crate) fn begin(
        &mut self,
        client: Client,
        line: &mut Line,
        route: &Route<'_>,
        request: &Request<'_>,
        now: TimeMs,
        mesh: &mut Mesh,
    ) -> Began {
        let _ = (client, route, now, mesh);
        let number = line.open(Intent::Write);
        let extras = Extras { connection: connection_word(request.head.keep_alive), ..Extras::default() };
        let wire = Reject::Busy.wire();
        respond::plain_error(
            line.answer(number).expect("just opened"),
            wire.status,
            wire.code,
            wire.error,
            &extras,
        );
        line.ready(number, Position(0));
        Began::Took
    }

    /// Takes what other loops ask of this shard and what they answered.
    pub(crate) fn take_messages(&mut self, now: TimeMs, mesh: &mut Mesh, messages_max: usize) -> bool {
        let _ = (now, mesh, messages_max);
        false
    }

    /// The shard's own work.
    pub(crate) fn work(&mut self, now: TimeMs, mesh: &mut Mesh) -> bool {
        let _ = (now, mesh);
        false
    }

    /// Does an act that came by post.
    pub(crate) fn act(&mut self, from: usize, act: Box<ActJob>, now: TimeMs, mesh: &mut Mesh) {
        let _ = (from, act, now, mesh);
    }

    /// The client of the next request that is decided.
    pub(crate) fn next_finished(&mut self) -> Option<Client> {
        None
    }

    /// Writes the answer of the request that [`Self::next_finished`] named.
    pub(crate) fn render(&mut self, line: Option<&mut Line>) {
        let _ = line;
    }
}
