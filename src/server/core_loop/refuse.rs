//! Answers to requests that nobody takes: written at once, in their place in the line.

use super::CoreLoop;
use super::serve::Step;
use crate::domain::{Position, Reject};
use crate::http::respond::{self, ContentType, Extras, Response};
use crate::http::{self, BadRequest};
use crate::json::{ShortText, Writer, answer};
use crate::server::connections::connection::{Connection, Door, Hears, Intent, Line};
use crate::server::requests::refusal;

/// Opens a request and answers it at once.
pub(super) fn answer_now(line: &mut Line, write: impl FnOnce(&mut Vec<u8>)) {
    let number = line.open(Intent::Read);
    write(line.answer(number).expect("just opened"));
    line.ready(number, Position(0));
}

/// Answers bytes that become no request, and hears no more of them; a page that they come from may read why.
pub(super) fn answer_bytes(
    core: &CoreLoop,
    connection: &mut Connection,
    write: impl FnOnce(&mut Vec<u8>),
) -> Step {
    if connection.door == Door::Public {
        connection.line.page = core.shared.plan.pages.page(http::origin_of(connection.input.unread()));
    }
    let number = connection.line.next_number();
    answer_now(&mut connection.line, write);
    if http::asks_head(connection.input.unread()) {
        connection.line.drop_body(number);
    }
    hear_no_rest(connection)
}

/// Refuses bytes that are no request. If one header is at fault, it is named.
pub(super) fn refuse_bytes(core: &CoreLoop, connection: &mut Connection, bad: BadRequest) -> Step {
    let header = http::header_at_fault(connection.input.unread());
    let Some(header) = header.map(|name| ShortText::new(&String::from_utf8_lossy(name))) else {
        return answer_bytes(core, connection, |out| respond::bad_request(out, bad));
    };
    let (status, error) = bad.wire();
    let extras = Extras { connection: respond::Connection::Close, ..Extras::default() };
    answer_bytes(core, connection, |out| {
        let response = Response::begin(out, status, ContentType::Json, &extras);
        let mut json = Writer::new(out);
        refusal::write_words(json.open_object(), error, respond::BAD_REQUEST);
        json.key("field").text(header.as_str());
        if bad == BadRequest::HeaderTwice {
            json.key("got").text("twice").key("allowed").text("once");
        }
        json.close_object();
        response.finish(out);
    })
}

/// Refuses what a server that ends has not taken.
pub(super) fn refuse_rest(core: &CoreLoop, connection: &mut Connection) {
    answer_bytes(core, connection, |out| {
        write_refusal(out, Reject::Recovering, 503, respond::Connection::Close);
    });
}

/// What came of a refused request is dropped, and what still comes of it is.
fn hear_no_rest(connection: &mut Connection) -> Step {
    connection.hears = Hears::Refused;
    let rest = connection.input.unread().len();
    connection.input.used(rest);
    Step::Took
}

/// The limits have no room for a request: holds it if they will soon, else refuses it.
pub(super) fn refuse_or_hold(line: &mut Line, connection: respond::Connection) -> Step {
    if line.toll.held().is_some() {
        return Step::Held;
    }
    let refused = line.toll.refusal(Reject::RateLimited);
    let (retry_after_s, rate_limit) = (refused.retry_after_s, line.toll.head());
    let extras = Extras { connection, retry_after_s, rate_limit, ..Extras::default() };
    answer_now(line, |out| {
        let response = Response::begin(out, refused.status(), ContentType::Json, &extras);
        answer::refused(&mut Writer::new(out), &refused);
        response.finish(out);
    });
    Step::Took
}

/// Refuses a request while the server cannot take it yet, or not any more.
pub(super) fn refuse_unready(line: &mut Line, status: u16, connection: respond::Connection) {
    answer_now(line, |out| write_refusal(out, Reject::Recovering, status, connection));
}

/// Seconds after which a client should try again.
const RETRY_AFTER_S: u32 = 1;

/// Writes a refusal after which a client may ask again.
pub(super) fn write_refusal(out: &mut Vec<u8>, reject: Reject, status: u16, connection: respond::Connection) {
    let wire = reject.wire();
    let extras = Extras { connection, retry_after_s: Some(RETRY_AFTER_S), ..Extras::default() };
    respond::plain_error(out, status, wire.code, wire.error, &extras);
}
