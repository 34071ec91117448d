//! What a refused act is answered with: what is wrong, as a text and as a code, and when to ask again.
//!
//! Trading's refusals, which say more of an order, are `crate::json::answer`'s.

use crate::domain::Reject;
use crate::domain::reject::Wire;
use crate::json::Writer;
use crate::registrar::Refusal;
use crate::server::threads::message::{Report, Said};

/// The fields that every refusal begins with.
pub(crate) fn write_words(json: &mut Writer<'_>, error: &str, code: &str) {
    json.key("error").text(error).key("code").text(code);
}

/// The fields of what the registrar refused: its words, and after how many seconds to ask again, if waiting helps.
pub(crate) fn write(json: &mut Writer<'_>, refusal: Refusal) {
    write_as(json, refusal.wire().error, refusal.wire().code, refusal.retry_after_s());
}

fn write_as(json: &mut Writer<'_>, error: &str, code: &str, retry_after_s: Option<u32>) {
    write_words(json, error, code);
    write_retry(json, retry_after_s);
}

/// After how many seconds to ask again, if waiting helps.
pub(crate) fn write_retry(json: &mut Writer<'_>, retry_after_s: Option<u32>) {
    if let Some(seconds) = retry_after_s {
        json.key("retry_after_seconds").number(seconds.into());
    }
}

fn said(wire: &Wire, error: &str, retry_after_s: Option<u32>) -> Said {
    let mut body = Vec::new();
    let mut json = Writer::new(&mut body);
    write_as(json.open_object(), error, wire.code, retry_after_s);
    json.close_object();
    Said { status: wire.status, retry_after_s, body }
}

/// What an act is answered with for which there is no room now.
pub(crate) fn busy() -> Said {
    rejected(Reject::Busy, Reject::Busy.wire().error)
}

/// What an act is answered with that is refused as an order would be, in these words.
pub(crate) fn rejected(reject: Reject, error: &str) -> Said {
    said(&reject.wire(), error, reject.retry_after_s())
}

/// What is reported of an act that the registrar refused.
pub(crate) fn report(refusal: Refusal) -> Report {
    report_of(refusal, "")
}

/// The same, of a refusal whose words name what was `got`.
pub(crate) fn report_of(refusal: Refusal, got: &str) -> Report {
    let wire = refusal.wire();
    Report::Answer(said(&wire, &wire.error.replace("{got}", got), refusal.retry_after_s()))
}

/// The same, of a refusal whose words also name what would have been `allowed`; both are numbers.
pub(crate) fn report_within(refusal: Refusal, got: &str, allowed: &str) -> Report {
    let wire = refusal.wire();
    let error = wire.error.replace("{got}", got).replace("{allowed}", allowed);
    Report::Answer(said(&wire, &error, refusal.retry_after_s()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_when_to_ask_again_if_waiting_helps() {
        for (refusal, seconds) in [
            (Refusal::LogFull, Some(1)),
            (Refusal::SwitchGoingOff, Some(1)),
            (Refusal::BalanceInUse, Some(1)),
            (Refusal::KeysFull, None),
            (Refusal::WalletsFull, None),
            (Refusal::BreakersFull, None),
            (Refusal::KeyUnknown, None),
        ] {
            let Report::Answer(said) = report(refusal) else { unreachable!("a refusal is an answer") };
            let body = String::from_utf8(said.body).expect("JSON is text");
            assert!(body.starts_with(r#"{"error":""#), "{body}");
            assert_eq!(body.ends_with(r#","retry_after_seconds":1}"#), seconds.is_some(), "{body}");
            assert_eq!((said.status, said.retry_after_s), (refusal.wire().status, seconds), "{body}");
        }
    }
}
