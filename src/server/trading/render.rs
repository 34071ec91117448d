//! Trading answers as bytes, by form and by dialect.

use super::work::{Form, Item, Outcome, Refused, Work};
use crate::domain::{Dialect, Reject};
use crate::http::respond::{ContentType, Extras, Response};
use crate::json::Writer;
use crate::json::answer::{self, Accepted};
use crate::server::core_loop::connection_word;
use crate::server::requests::toll::Toll;
use crate::shard::ReplacePart;

/// The headers of an answer to a request that was refused before any shard heard of it.
pub(crate) fn extras_of_refused(refused: &Refused, toll: &Toll) -> Extras<'static> {
    let retry_after_s = toll.retry_after_s().or(refused.reject.retry_after_s());
    Extras { retry_after_s, rate_limit: toll.head(), ..Extras::default() }
}

/// Writes the answer of a refused request; returns where the value of `Server-Timing` ends.
pub(crate) fn refused(
    out: &mut Vec<u8>,
    (form, dialect): (Form, Dialect),
    refused: &Refused,
    explain: Option<&[u8]>,
    extras: &Extras<'_>,
) -> Option<usize> {
    let status = refused.reject.wire().status;
    let response = Response::begin(out, status, ContentType::Json, extras);
    let mut json = Writer::new(out);
    let retry_after_s = extras.retry_after_s;
    let refusal = answer::Refusal { retry_after_s, explain, dialect, ..refused.words() };
    if form == Form::Order {
        answer::order_refused(&mut json, &refusal);
    } else {
        answer::refused(&mut json, &refusal);
    }
    response.finish(out)
}

/// A request that is decided, and what `Server-Timing` says of it.
struct Decided<'a> {
    work: &'a Work,
    timing: Option<&'a str>,
}

/// Writes the answer of a request that is decided, with this `Server-Timing`; returns where that value ends.
pub(crate) fn decided(out: &mut Vec<u8>, work: &Work, timing: Option<&str>) -> Option<usize> {
    let decided = &Decided { work, timing };
    match work.form {
        Form::Order => order(out, decided),
        Form::Orders => orders(out, decided),
        // Nothing was cancelled and not every shard could be asked: the client has to ask again.
        Form::Cancel if work.short && work.cancelled.is_empty() => {
            let extras = Extras { seq: None, ..extras(decided, Some(Reject::Busy)) };
            refused(out, (Form::Cancel, work.dialect), &Refused::plain(Reject::Busy), None, &extras)
        }
        Form::Cancel => {
            let response = begin(out, decided, None, false);
            answer::cancel_result(&mut Writer::new(out), &work.cancelled, &work.not_cancelled, work.short);
            response.finish(out)
        }
        Form::Act => act(out, decided),
        Form::Replace => replace(out, decided),
        Form::Told => told(out, decided),
    }
}

fn begin(out: &mut Vec<u8>, decided: &Decided<'_>, refused: Option<Reject>, replayed: bool) -> Response {
    let status = refused.map_or(200, |reject| reject.wire().status);
    let extras = Extras { replayed, ..extras(decided, refused) };
    Response::begin(out, status, ContentType::Json, &extras)
}

/// The headers that every answer has.
fn extras<'a>(decided: &Decided<'a>, refused: Option<Reject>) -> Extras<'a> {
    let work = decided.work;
    Extras {
        connection: connection_word(work.keep_alive),
        seq: Some(work.at.0),
        retry_after_s: refused.and_then(Reject::retry_after_s),
        rate_limit: work.rate_limit,
        server_timing: decided.timing,
        ..Extras::default()
    }
}

fn order(out: &mut Vec<u8>, decided: &Decided<'_>) -> Option<usize> {
    let work = decided.work;
    let item = &work.items[0];
    let (reject, replayed) = match &item.outcome {
        Outcome::Accepted { replayed, .. } => (None, *replayed),
        Outcome::Refused { refused, replayed } => (Some(refused.reject), *replayed),
        Outcome::Open => unreachable!("a decided request has no open item"),
    };
    let response = begin(out, decided, reject, replayed);
    let mut json = Writer::new(out);
    match &item.outcome {
        Outcome::Refused { refused, .. } => answer::order_refused(&mut json, &named(refused, work, 0)),
        _ => accepted(&mut json, item),
    }
    response.finish(out)
}

fn orders(out: &mut Vec<u8>, decided: &Decided<'_>) -> Option<usize> {
    let work = decided.work;
    let response = begin(out, decided, None, false);
    let mut json = Writer::new(out);
    json.open_array();
    for (index, item) in work.items.iter().enumerate() {
        match &item.outcome {
            Outcome::Refused { refused, .. } => {
                answer::batch_order_refused(&mut json, &named(refused, work, index));
            }
            _ => accepted(&mut json, item),
        }
    }
    json.close_array();
    response.finish(out)
}

fn told(out: &mut Vec<u8>, decided: &Decided<'_>) -> Option<usize> {
    let said = decided.work.said.as_ref().expect("it is answered once the registrar has spoken");
    let extras = Extras { retry_after_s: said.retry_after_s, ..extras(decided, None) };
    let response = Response::begin(out, said.status, ContentType::Json, &extras);
    out.extend_from_slice(&said.body);
    response.finish(out)
}

fn replace(out: &mut Vec<u8>, decided: &Decided<'_>) -> Option<usize> {
    let work = decided.work;
    if let Some((refused, part)) = &work.replace.refused {
        let response = begin(out, decided, Some(refused.reject), false);
        let place = match *part {
            Some(ReplacePart::Leaving(at)) => Some(("cancel", at)),
            Some(ReplacePart::Coming(at)) => Some(("place", at)),
            None => None,
        };
        let explain = work.explained.first().map(|(_, explanation)| &explanation[..]);
        let refusal = answer::Refusal { explain, dialect: work.dialect, ..refused.words() };
        answer::replace_refused(&mut Writer::new(out), &refusal, place, work.replace.at_fault.as_ref());
        return response.finish(out);
    }
    let response = begin(out, decided, None, work.replace.replayed);
    let mut json = Writer::new(out);
    json.open_object().key("success").boolean(true).key("orders").open_array();
    for item in &work.items {
        accepted(&mut json, item);
    }
    json.close_array().key("kept_priority").open_array();
    for (at, item) in work.items.iter().enumerate() {
        if work.replace.kept_place & 1 << at != 0 {
            json.order_id(item.id.as_ref().expect("an order of a replace has its digest"));
        }
    }
    json.close_array();
    // Of what left, and of places that were kept, only the first answer knows.
    let not_cancelled = if work.replace.replayed { &[][..] } else { &work.not_cancelled };
    answer::cancelled_and_not(&mut json, &work.cancelled, not_cancelled);
    json.close_object();
    response.finish(out)
}

fn accepted(json: &mut Writer<'_>, item: &Item) {
    let Outcome::Accepted { status, making, taking, trade, .. } = item.outcome else {
        unreachable!("a decided item is accepted or refused");
    };
    let id = item.id.as_ref().expect("an accepted order has its digest");
    answer::order_accepted(json, &Accepted { id, status, making, taking, trade });
}

/// The refusal of an item, with its id and its explanation.
fn named<'a>(refused: &Refused, work: &'a Work, index: usize) -> answer::Refusal<'a> {
    let explained = work.explained.iter().find(|(item, _)| *item == index);
    let explain = explained.map(|(_, explanation)| &explanation[..]);
    let plain = answer::Refusal { explain, dialect: work.dialect, ..refused.words() };
    match &work.items[index].id {
        Some(id) => plain.of(id),
        None => plain,
    }
}

fn act(out: &mut Vec<u8>, decided: &Decided<'_>) -> Option<usize> {
    let work = decided.work;
    let item = &work.items[0];
    match &item.outcome {
        Outcome::Refused { refused, replayed } => {
            let response = begin(out, decided, Some(refused.reject), *replayed);
            answer::refused(&mut Writer::new(out), &named(refused, work, 0));
            response.finish(out)
        }
        Outcome::Accepted { making, taking, replayed, .. } => {
            let response = begin(out, decided, None, *replayed);
            let id = item.id.as_ref().expect("an act has its digest");
            let mut json = Writer::new(out);
            json.open_object().key("success").boolean(true).key("id").order_id(id);
            json.key("collateral").millionths_text(*making).key("shares").millionths_text(*taking);
            json.close_object();
            response.finish(out)
        }
        Outcome::Open => unreachable!("a decided request has no open item"),
    }
}
