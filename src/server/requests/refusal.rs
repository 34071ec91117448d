//! What a refused act is answered with: what is wrong, as a text and as a code, and when to ask again.
//!
//! Trading's refusals, which say more of an order, are `crate::json::answer`'s.

use crate::domain::reject::Wire;
use crate::http::respond::retry_after_s;
use crate::json::Writer;
use crate::registrar::Refusal;
use crate::server::threads::message::Report;

/// The fields that every refusal begins with.
pub(crate) fn write_words(json: &mut Writer<'_>, error: &str, code: &str) {
    json.key("error").text(error).key("code").text(code);
}

/// The fields of a refusal by its row: its words, and after how many seconds to ask again, if its status says that.
pub(crate) fn write(json: &mut Writer<'_>, wire: &Wire) {
    write_as(json, wire, wire.error);
}

fn write_as(json: &mut Writer<'_>, wire: &Wire, error: &str) {
    write_words(json, error, wire.code);
    if let Some(seconds) = retry_after_s(wire.status) {
        json.key("retry_after_seconds").number(seconds.into());
    }
}

/// An object with these fields.
pub(crate) fn body(wire: &Wire) -> Vec<u8> {
    body_of(wire, wire.error)
}

fn body_of(wire: &Wire, error: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    write_as(json.open_object(), wire, error);
    json.close_object();
    out
}

/// What is reported of an act that the registrar refused.
pub(crate) fn report(refusal: Refusal) -> Report {
    let wire = refusal.wire();
    Report::Answer(wire.status, body(&wire))
}

/// The same, of a refusal whose words name what was `got`.
pub(crate) fn report_of(refusal: Refusal, got: &str) -> Report {
    let wire = refusal.wire();
    let error = wire.error.replace("{got}", got);
    Report::Answer(wire.status, body_of(&wire, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_when_to_ask_again_if_there_was_no_room() {
        let said = |refusal: Refusal| String::from_utf8(body(&refusal.wire())).expect("JSON is text");
        let full = said(Refusal::LogFull);
        assert!(full.starts_with(r#"{"error":""#), "{full}");
        assert!(full.ends_with(r#","retry_after_seconds":1}"#), "{full}");
        assert!(!said(Refusal::KeyUnknown).contains("retry_after_seconds"));
    }
}
