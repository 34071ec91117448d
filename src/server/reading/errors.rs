//! The catalogue of errors: every status, code and text, what it means, and how streams end.
//!
//! It is put together from the tables that answers are written from, so it cannot say another text than
//! they do. `outcry errors` prints it as Markdown, which is also kept in the repository
//! (`tests/errors.rs` says when that is stale), and `GET /errors` serves it as JSON.

use crate::auth::explain::Check;
use crate::domain::Reject;
use crate::http::head::BadRequest;
use crate::http::respond::retry_after_s;
use crate::http::websocket::Fault;
use crate::journal::layout::RemovalReason;
use crate::json::Writer;
use crate::reader::errors::ERRORS;
use crate::registrar::Refusal;
use crate::server::core_loop::CLOSES;
use std::fmt::Write;
use std::sync::LazyLock;

/// One error.
struct Row {
    status: u16,
    code: &'static str,
    error: &'static str,
    error_msg: &'static str,
    meaning: String,
    retry_after_s: Option<u32>,
}

/// Errors of one kind of request.
struct Section {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    rows: Vec<Row>,
}

/// Refusals of the protocol itself, besides those of what is no request at all.
const PLAIN: [(u16, &str, &str, &str); 3] = [
    (404, "not_found", "not found", "No route has this path."),
    (405, "method_not_allowed", "method not allowed", "The path is known with the methods of Allow."),
    (
        426,
        "upgrade_required",
        "this is a WebSocket: ask with Upgrade, version 13 and a key",
        "A stream was asked for as a page, or not as RFC 6455 wants: `field` is what is wrong first.",
    ),
];

/// Why an order that rested left its book.
const REASONS: [(RemovalReason, &str); 12] = [
    (RemovalReason::Cancelled, "Its owner cancelled it."),
    (RemovalReason::Expired, "Its expiration came."),
    (RemovalReason::Unfunded, "The wallet's money or shares no longer covered it."),
    (RemovalReason::SelfTrade, "It would have traded with an order of the same owner, which asked for this."),
    (RemovalReason::TickChanged, "It lay off the grid of the market's new tick."),
    (RemovalReason::MarketResolved, "Its market was resolved."),
    (RemovalReason::Operator, "The operator removed it."),
    (
        RemovalReason::Dust,
        "What a fill left of it is worth less than a millionth, so nobody could fill that.",
    ),
    (RemovalReason::Replaced, "Its owner replaced it."),
    (RemovalReason::HeartbeatMissed, "Its key's dead-man switch went off."),
    (RemovalReason::Disconnected, "The connection that answered for its key's orders was lost."),
    (RemovalReason::FillRate, "Its key's fill-rate breaker tripped."),
];

/// The catalogue as `GET /errors` serves it.
pub(crate) static JSON: LazyLock<Vec<u8>> = LazyLock::new(json);

fn sections() -> Vec<Section> {
    let section = |name, title, about, rows| Section { name, title, about, rows };
    let trading = Reject::ALL.iter().map(|reject| {
        let wire = reject.wire();
        let retry_after_s = reject.retry_after_s();
        row((wire.status, wire.code, wire.error, wire.error_msg), reject.meaning(), retry_after_s)
    });
    let reads = ERRORS.iter().map(|error| {
        row((error.status, error.code, error.error, error.error), error.meaning, retry_after_s(error.status))
    });
    let malformed = BadRequest::ALL.iter().map(|reason| {
        let (status, text) = reason.wire();
        row((status, "bad_request", text, text), reason.meaning(), None)
    });
    let plain =
        PLAIN.iter().map(|&(status, code, text, meaning)| row((status, code, text, text), meaning, None));
    let acts = Refusal::ALL.iter().map(|refusal| {
        let wire = refusal.wire();
        row((wire.status, wire.code, wire.error, wire.error), refusal.meaning(), refusal.retry_after_s())
    });
    vec![
        section(
            "trading",
            "Orders, cancels and acts on positions",
            "Roughly in the order in which they are judged. A batch answers 200 with one result each. While the log is \
             replayed after a start, reads answer `recovering` with 503.",
            trading.collect(),
        ),
        section("reads", "Reads and streams", "An empty text names its field instead.", reads.collect()),
        section("http", "HTTP", "`bad_request` closes the connection.", malformed.chain(plain).collect()),
        section(
            "acts",
            "API keys, and the operator's acts",
            "`{got}` is what was named, `{allowed}` what there is.",
            acts.collect(),
        ),
    ]
}

fn row(
    (status, code, error, error_msg): (u16, &'static str, &'static str, &'static str),
    meaning: &str,
    retry_after_s: Option<u32>,
) -> Row {
    // Meanings are doc comments, whose links lead nowhere outside the sources.
    let meaning = meaning.replace("[`", "`").replace("`]", "`");
    Row { status, code, error, error_msg, meaning, retry_after_s }
}

/// The catalogue as Markdown.
pub(crate) fn markdown() -> String {
    let mut out = String::from(
        "# Errors\n\n\
         Printed by `outcry errors`, and served as JSON at `GET /errors`; not written by hand. Codes and texts never\n\
         change. Beside `error` and `code` an answer may name `field`, `got`, `allowed` and `nearest`; with\n\
         `Retry-After` it has `retry_after_seconds`. `POLY_` requests get the text of `error` in both fields, `KUEST_`\n\
         requests that of `errorMsg`; in a batch a result has `errorMsg` alone.\n",
    );
    let mut table = |title: &str, about: &str, head: &[&str], rows: &[Vec<String>]| {
        let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
        let _ = write!(out, "\n## {title}\n\n{about}\n\n{}{}", line(head), line(&vec!["---"; head.len()]));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            out += &line(&cells.iter().map(String::as_str).collect::<Vec<_>>());
        }
    };
    for section in sections() {
        let rows: Vec<_> = section.rows.iter().map(cells).collect();
        table(
            section.title,
            section.about,
            &["status", "code", "`error`", "`errorMsg`, if another", "meaning"],
            &rows,
        );
    }
    let reasons = REASONS.map(|(reason, meaning)| vec![code(reason.text()), meaning.to_owned()]);
    table(
        "Why an order left its book",
        "`reason` of orders and of events; an order that stopped on arrival has the code of its refusal there. One that \
         was filled has `filled`, or `rest_not_filled` if it took what there was and does not rest.",
        &["reason", "meaning"],
        &reasons,
    );
    let closes = closes().map(|(number, text, meaning)| vec![number.to_string(), text.to_owned(), meaning]);
    let about = "What the server closes a stream with.";
    table("How streams close", about, &["code", "reason", "meaning"], &closes.collect::<Vec<_>>());
    let checks = Check::ALL.iter().map(|check| vec![code(check.word()), check.hint().to_owned()]);
    let about = "`explain.check`, in `outcry dev` only.";
    table("Which check of a signature failed", about, &["check", "hint"], &checks.collect::<Vec<_>>());
    out
}

fn cells(row: &Row) -> Vec<String> {
    let other = if row.error_msg == row.error { "" } else { row.error_msg };
    let meaning = match row.retry_after_s {
        Some(seconds) => format!("{} Try again after {seconds} s.", row.meaning),
        None => row.meaning.clone(),
    };
    vec![row.status.to_string(), code(row.code), row.error.to_owned(), other.to_owned(), meaning]
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

/// Close codes with their reasons: ours, then those of frames that break the protocol.
fn closes() -> impl Iterator<Item = (u16, &'static str, String)> {
    let own = CLOSES.iter().map(|close| (close.code, close.reason, close.meaning));
    let faults = Fault::ALL.iter().map(|fault| (fault.code(), fault.reason(), fault.meaning()));
    own.chain(faults)
        .map(|(code, reason, meaning)| (code, reason, meaning.replace("[`", "`").replace("`]", "`")))
}

fn json() -> Vec<u8> {
    let mut out = Vec::new();
    let json = &mut Writer::new(&mut out);
    json.open_object().key("errors").open_array();
    for section in sections() {
        for row in &section.rows {
            json.open_object().key("of").text(section.name).key("status").number(row.status.into());
            json.key("code").text(row.code).key("error").text(row.error).key("errorMsg").text(row.error_msg);
            json.key("meaning").text(&row.meaning);
            if let Some(seconds) = row.retry_after_s {
                json.key("retry_after_seconds").number(seconds.into());
            }
            json.close_object();
        }
    }
    json.close_array().key("reasons").open_array();
    for (reason, meaning) in REASONS {
        json.open_object().key("reason").text(reason.text()).key("meaning").text(meaning).close_object();
    }
    json.close_array().key("closes").open_array();
    for (code, reason, meaning) in closes() {
        json.open_object().key("code").number(code.into()).key("reason").text(reason);
        json.key("meaning").text(&meaning).close_object();
    }
    json.close_array().key("checks").open_array();
    for check in Check::ALL {
        json.open_object().key("check").text(check.word()).key("hint").text(check.hint()).close_object();
    }
    json.close_array().close_object();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_in_the_table_once() {
        let all: Vec<_> = (0..=u8::MAX).map_while(RemovalReason::from_byte).collect();
        assert_eq!(REASONS.map(|(reason, _)| reason).to_vec(), all);
    }

    #[test]
    fn every_row_says_what_it_means_in_a_sentence() {
        for row in sections().iter().flat_map(|section| &section.rows) {
            assert!(
                row.meaning.ends_with('.') && !row.meaning.contains('['),
                "{}: {}",
                row.code,
                row.meaning
            );
        }
    }
}
