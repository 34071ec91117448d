//! The operator's listener: who may talk to it, and what it is told.

use super::connections::Client;
use super::core_loop::{CoreLoop, connection_word};
use super::message::ActJob;
use super::request::Request;
use super::shared::Phase;
use crate::domain::Position;
use crate::http::respond::{self, Extras};

/// What became of an operator's request.
pub(crate) enum Done {
    /// It is answered; the answer may leave when this is acknowledged.
    Answered(Position),
    /// Somebody is working on it.
    Later,
}

/// Takes one request of the operator.
pub(crate) fn begin(
    core: &mut CoreLoop,
    client: Client,
    number: u32,
    request: &Request<'_>,
    phase: Phase,
    answer: &mut Vec<u8>,
) -> Done {
    let _ = (core, client, number, phase);
    let extras = Extras { connection: connection_word(request.head.keep_alive), ..Extras::default() };
    respond::plain_error(answer, 404, "not_found", "not found", &extras);
    Done::Answered(Position(0))
}

/// Takes the result of an act that this loop asked for.
pub(crate) fn acted(core: &mut CoreLoop, act: Box<ActJob>) {
    let _ = (core, act);
}
