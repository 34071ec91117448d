//! What the operator does to markets, accounts, modes and time: from a request on the operator's
//! listener to errands on the loops of the registrar and the shards, and back.
//!
//! An errand is a closure that runs on another loop with everything that loop has (its shard, on
//! the first loop also the registrar) and reports a status and a JSON body. [`super::acts`] brings
//! it there, lets every loop confirm it if it binds them, and answers.

use super::admin::{Done, Pending};
use super::core_loop::{CoreLoop, connection_word};
use super::request::Request;
use crate::domain::Position;
use crate::http::respond::{self, Extras};

/// Takes a request that `admin` has admitted and does not answer itself.
pub(crate) fn begin(
    core: &mut CoreLoop,
    pending: Pending,
    request: &Request<'_>,
    answer: &mut Vec<u8>,
) -> Done {
    let _ = (core, request);
    let extras = Extras { connection: connection_word(pending.keep_alive), ..Extras::default() };
    respond::plain_error(answer, 404, "not_found", "not found", &extras);
    Done::Answered(Position(0))
}
