//! Answers to trading acts: the result of an order, what was cancelled, and every refusal with its
//! texts filled in.
//!
//! One object serves every client: the keys of the specification, `orderHash` beside `orderID`
//! (both the digest; of a refused order `orderHash` alone, if it is known by then), and
//! `transactionsHashes` and `tradeIDs`, which are always given together, because some clients that
//! see a trade without a hash poll for it for half a minute.

use super::short::ShortText;
use super::write::{Pieces, Writer};
use crate::domain::{Dialect, OrderId, Reject, Word};

/// The two names by which clients know a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradeName {
    /// The trade's id; a UUID on the wire.
    pub id: crate::domain::ApiKey,
    /// The trade's settlement hash.
    pub hash: Word,
}

/// An order that was taken.
#[derive(Clone, Copy, Debug)]
pub struct Accepted<'a> {
    /// The order's digest.
    pub id: &'a OrderId,
    /// `live`, `matched`, …
    pub status: &'static str,
    /// What the order gave in its fills so far, in millionths; 0 is written as `""`.
    pub making: u64,
    /// What the order took in them, in millionths; 0 is written as `""`.
    pub taking: u64,
    /// The trade it made, if any.
    pub trade: Option<TradeName>,
}

/// An act that was refused, with what its texts need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Why.
    pub reject: Reject,
    /// The order's digest, if it is known by then.
    pub id: Option<&'a OrderId>,
    /// The field at fault; `""` for none.
    pub field: &'static str,
    /// What was sent, or what was found.
    pub got: ShortText,
    /// What would have been taken.
    pub allowed: ShortText,
    /// The nearest value that would have been taken.
    pub nearest: ShortText,
    /// Seconds after which the act may be taken, if only the limit that refused it knows; `None`
    /// for the constant of the reject.
    pub retry_after_s: Option<u32>,
    /// Which check failed, as JSON; only `outcry dev` says so.
    pub explain: Option<&'a [u8]>,
    /// Whose texts it has: [`Dialect::Service`] both, in `error` Polymarket's and in `errorMsg` Kuest's; the others in
    /// both fields their own.
    pub dialect: Dialect,
}

impl<'a> Refusal<'a> {
    /// A refusal that needs no more words.
    #[must_use]
    pub const fn plain(reject: Reject) -> Self {
        Self {
            reject,
            id: None,
            field: "",
            got: ShortText::EMPTY,
            allowed: ShortText::EMPTY,
            nearest: ShortText::EMPTY,
            retry_after_s: None,
            explain: None,
            dialect: Dialect::Service,
        }
    }

    /// This refusal, naming the order `id`.
    #[must_use]
    pub const fn of(self, id: &'a OrderId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The HTTP status when the refused act was the whole request.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.reject.wire().status
    }
}

/// Appends the result of an order that was taken.
pub fn order_accepted(json: &mut Writer<'_>, order: &Accepted<'_>) {
    json.open_object().key("success").boolean(true).key("errorMsg").text("");
    json.key("orderID").order_id(order.id).key("orderHash").order_id(order.id);
    amount(json.key("takingAmount"), order.taking);
    amount(json.key("makingAmount"), order.making);
    json.key("status").text(order.status).key("transactionsHashes").open_array();
    if let Some(trade) = order.trade {
        json.hex(trade.hash.as_bytes());
    }
    json.close_array().key("tradeIDs").open_array();
    if let Some(trade) = order.trade {
        json.uuid(trade.id);
    }
    json.close_array().close_object();
}

/// Appends the answer to a single order that was refused: the error and the result in one.
pub fn order_refused(json: &mut Writer<'_>, refusal: &Refusal<'_>) {
    json.open_object();
    error_fields(json, refusal);
    refused_result(json, refusal);
    json.close_object();
}

/// Appends the result of a batch's order that was refused. It has no `error`: the request as a
/// whole went well.
pub fn batch_order_refused(json: &mut Writer<'_>, refusal: &Refusal<'_>) {
    json.open_object();
    detail_fields(json, refusal);
    refused_result(json, refusal);
    json.close_object();
}

/// Appends the answer to any other act that was refused: `error`, `code` and details.
pub fn refused(json: &mut Writer<'_>, refusal: &Refusal<'_>) {
    json.open_object();
    error_fields(json, refusal);
    json.close_object();
}

/// Why an order was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCancelled {
    /// The order.
    pub id: OrderId,
    /// Why not.
    pub why: WhyNot,
}

/// What is known of an order that was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It is not there: cancelled or matched before, or never seen.
    Gone,
    /// It is unknown so far and will be refused if it arrives.
    Tombstone,
    /// It may still be there: not every shard could be asked, or the log had no room.
    Busy,
    /// It is not open in the market that was asked for; it may be in another.
    Elsewhere,
}

/// The reason of an order that may still be there.
const STILL_THERE: &str = "the exchange is busy, try again";

/// The reason of an order that a replace found not open in its market.
const NOT_IN_MARKET: &str = "order is not open in the market of the orders to be placed";

/// The reason that clients match on for an order that is not there.
const ALREADY_GONE: &str = "order can't be found - already canceled or matched";

/// Appends the answer to a cancel. An unknown order that left a tombstone is in `not_canceled` like
/// any other that was not there; `tombstone` and `tombstones` name it in addition.
/// `incomplete` tells that others than those named may still be there.
pub fn cancel_result(
    json: &mut Writer<'_>,
    cancelled: &[OrderId],
    not_cancelled: &[NotCancelled],
    incomplete: bool,
) {
    json.open_object();
    cancelled_and_not(json, cancelled, not_cancelled);
    if incomplete {
        json.key("incomplete").boolean(true);
    }
    let is_tombstone = |order: &&NotCancelled| order.why == WhyNot::Tombstone;
    if not_cancelled.iter().any(|order| is_tombstone(&order)) {
        json.key("tombstone").boolean(true).key("tombstones").open_array();
        for order in not_cancelled.iter().filter(is_tombstone) {
            json.order_id(&order.id);
        }
        json.close_array();
    }
    json.close_object();
}

/// Appends the members `canceled` and `not_canceled`.
pub fn cancelled_and_not(json: &mut Writer<'_>, cancelled: &[OrderId], not_cancelled: &[NotCancelled]) {
    json.key("canceled").open_array();
    for id in cancelled {
        json.order_id(id);
    }
    json.close_array().key("not_canceled").open_object();
    for order in not_cancelled {
        let reason = match order.why {
            WhyNot::Gone | WhyNot::Tombstone => ALREADY_GONE,
            WhyNot::Busy => STILL_THERE,
            WhyNot::Elsewhere => NOT_IN_MARKET,
        };
        json.order_id(&order.id).names().text(reason);
    }
    json.close_object();
}

/// Appends the answer to a replace that was refused; `part` is the list at fault and the index in it, and `id` names the
/// order there, if that is known.
pub fn replace_refused(
    json: &mut Writer<'_>,
    refusal: &Refusal<'_>,
    part: Option<(&'static str, u8)>,
    id: Option<&OrderId>,
) {
    json.open_object();
    error_fields(json, refusal);
    if let Some((list, at)) = part {
        json.key("part").text(list).key("index").number(at.into());
    }
    if let Some(id) = id {
        json.key("orderHash").order_id(id);
    }
    json.key("success").boolean(false).close_object();
}

fn error_fields(json: &mut Writer<'_>, refusal: &Refusal<'_>) {
    let wire = refusal.reject.wire();
    let text = if refusal.dialect == Dialect::Kuest { wire.error_msg } else { wire.error };
    json.key("error").pieces(|pieces| fill(pieces, text, refusal));
    detail_fields(json, refusal);
}

fn detail_fields(json: &mut Writer<'_>, refusal: &Refusal<'_>) {
    json.key("code").text(refusal.reject.wire().code);
    for (key, text) in [
        ("field", refusal.field),
        ("got", refusal.got.as_str()),
        ("allowed", refusal.allowed.as_str()),
        ("nearest", refusal.nearest.as_str()),
    ] {
        // Where a field is named, an empty `got` is said too: the empty text is what was sent.
        if !text.is_empty() || (key == "got" && !refusal.field.is_empty()) {
            json.key(key).text(text);
        }
    }
    if let Some(seconds) = refusal.retry_after_s.or(refusal.reject.retry_after_s()) {
        json.key("retry_after_seconds").number(seconds.into());
    }
    if let Some(explain) = refusal.explain {
        json.key("explain").raw(explain);
    }
}

fn refused_result(json: &mut Writer<'_>, refusal: &Refusal<'_>) {
    let wire = refusal.reject.wire();
    let text = if refusal.dialect == Dialect::Poly { wire.error } else { wire.error_msg };
    json.key("success").boolean(false);
    json.key("errorMsg").pieces(|pieces| fill(pieces, text, refusal));
    json.key("orderID").text("");
    if let Some(id) = refusal.id {
        json.key("orderHash").order_id(id);
    }
    for key in ["takingAmount", "makingAmount", "status"] {
        json.key(key).text("");
    }
    for key in ["transactionsHashes", "tradeIDs"] {
        json.key(key).open_array().close_array();
    }
}

fn amount(json: &mut Writer<'_>, millionths: u64) {
    if millionths == 0 {
        json.text("");
    } else {
        json.millionths_text(millionths);
    }
}

/// Appends `template` with `{id}`, `{got}` and `{allowed}` filled in. Without an id its placeholder
/// is dropped, with the blank after it.
fn fill(pieces: &mut Pieces<'_>, template: &str, refusal: &Refusal<'_>) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        pieces.text(before);
        let (name, after) = after.split_once('}').expect("a placeholder is closed");
        rest = after;
        match (name, refusal.id) {
            ("id", Some(id)) => pieces.hex(id.as_bytes()),
            ("id", None) => rest = after.strip_prefix(' ').unwrap_or(after),
            ("got", _) => pieces.text(refusal.got.as_str()),
            ("allowed", _) => pieces.text(refusal.allowed.as_str()),
            _ => unreachable!("a placeholder is id, got or allowed"),
        }
    }
    pieces.text(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ApiKey;

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out));
        String::from_utf8(out).expect("UTF-8")
    }

    fn parsed(text: &str) -> serde_json::Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn a_resting_and_a_matched_order_answer_with_the_same_keys() {
        let id = OrderId([0xab; 32]);
        let hex = format!("0x{}", "ab".repeat(32));
        let live = Accepted { id: &id, status: "live", making: 0, taking: 0, trade: None };
        assert_eq!(
            written(|json| order_accepted(json, &live)),
            format!(
                r#"{{"success":true,"errorMsg":"","orderID":"{hex}","orderHash":"{hex}","takingAmount":"","makingAmount":"","status":"live","transactionsHashes":[],"tradeIDs":[]}}"#
            )
        );
        let trade = TradeName { id: ApiKey([0x11; 16]), hash: Word([0xcd; 32]) };
        let matched = Accepted {
            status: "matched",
            making: 10_000_000,
            taking: 19_607_800,
            trade: Some(trade),
            ..live
        };
        let answer = parsed(&written(|json| order_accepted(json, &matched)));
        assert_eq!((&answer["makingAmount"], &answer["takingAmount"]), (&"10".into(), &"19.6078".into()));
        assert_eq!(answer["transactionsHashes"][0], format!("0x{}", "cd".repeat(32)));
        assert_eq!(answer["tradeIDs"][0], "11111111-1111-1111-1111-111111111111");
    }

    #[test]
    fn every_refusal_fills_its_texts_with_and_without_an_id() {
        let id = OrderId([1; 32]);
        for reject in Reject::ALL {
            let refusal = Refusal {
                field: "price",
                got: ShortText::new("GOT\"\n"),
                allowed: ShortText::new("ALLOWED"),
                nearest: ShortText::new("0.51"),
                ..Refusal::plain(*reject)
            };
            for refusal in [refusal, refusal.of(&id)] {
                let wire = reject.wire();
                for (dialect, text) in [(Dialect::Poly, wire.error), (Dialect::Kuest, wire.error_msg)] {
                    let venue = Refusal { dialect, ..refusal };
                    let single = parsed(&written(|json| order_refused(json, &venue)));
                    let batch = parsed(&written(|json| batch_order_refused(json, &venue)));
                    let begins = text.split(['{', '$']).next().expect("a beginning");
                    assert!(
                        single["error"].as_str().is_some_and(|said| said.starts_with(begins)),
                        "{single}"
                    );
                    assert_eq!([&single["errorMsg"], &batch["errorMsg"]], [&single["error"]; 2]);
                }
                let single = parsed(&written(|json| order_refused(json, &refusal)));
                let batch = parsed(&written(|json| batch_order_refused(json, &refusal)));
                let other = parsed(&written(|json| refused(json, &refusal)));
                for text in [&single["error"], &single["errorMsg"], &batch["errorMsg"], &other["error"]] {
                    let text = text.as_str().expect("a text");
                    assert!(!text.is_empty() && !text.contains(['{', '}']), "{text}");
                    assert!(!text.contains("  "), "{text}");
                }
                assert_eq!(
                    single["error"].as_str().map(|text| text.contains("GOT\"\n")),
                    Some(wire.error.contains("{got}"))
                );
                assert_eq!(
                    (single["code"].as_str(), other["code"].as_str()),
                    (Some(wire.code), Some(wire.code))
                );
                assert_eq!((&single["success"], &batch["success"]), (&false.into(), &false.into()));
                assert!(batch.get("error").is_none() && other.get("success").is_none());
                let hash = refusal.id.map(|_| format!("0x{}", "01".repeat(32)));
                assert_eq!(
                    (single["orderHash"].as_str(), single["orderID"].as_str()),
                    (hash.as_deref(), Some(""))
                );
                assert_eq!((&batch["orderHash"], other.get("orderHash")), (&single["orderHash"], None));
                assert_eq!((&single["field"], &single["nearest"]), (&"price".into(), &"0.51".into()));
            }
        }
    }

    #[test]
    fn a_plain_refusal_says_no_more_than_it_knows() {
        let refusal = Refusal::plain(Reject::NotEnoughBalance);
        assert_eq!(refusal.status(), 400);
        assert_eq!(
            written(|json| refused(json, &refusal)),
            r#"{"error":"not enough balance / allowance","code":"not_enough_balance"}"#
        );
        let missing = Refusal { field: "owner", ..Refusal::plain(Reject::InvalidPayload) };
        assert_eq!(
            written(|json| refused(json, &missing)),
            r#"{"error":"Invalid order payload","code":"invalid_payload","field":"owner","got":""}"#
        );
    }

    #[test]
    fn a_refusal_says_when_to_come_again_by_its_limit_or_else_by_its_kind() {
        for (reject, of_limit, said) in [
            (Reject::Busy, None, Some(1)),
            (Reject::Busy, Some(7), Some(7)),
            (Reject::RateLimited, Some(3), Some(3)),
            (Reject::TooOld, None, None),
        ] {
            let refusal = Refusal { retry_after_s: of_limit, ..Refusal::plain(reject) };
            let answer = parsed(&written(|json| refused(json, &refusal)));
            assert_eq!(answer["retry_after_seconds"].as_u64(), said, "{reject:?} {of_limit:?}");
        }
    }

    #[test]
    fn a_refused_replace_names_the_list_the_place_in_it_and_the_order() {
        let refusal = Refusal { explain: Some(b"{\"check\":\"x\"}"), ..Refusal::plain(Reject::ReplaceGone) };
        let id = OrderId([9; 32]);
        let answer = written(|json| replace_refused(json, &refusal, Some(("cancel", 2)), Some(&id)));
        let answer = parsed(&answer);
        assert_eq!((&answer["part"], &answer["index"]), (&"cancel".into(), &2.into()));
        assert_eq!(answer["orderHash"], format!("0x{}", "09".repeat(32)));
        assert_eq!((&answer["success"], &answer["explain"]["check"]), (&false.into(), &"x".into()));
        let nothing_named = parsed(&written(|json| replace_refused(json, &refusal, None, None)));
        assert!(["part", "index", "orderHash"].iter().all(|name| nothing_named.get(name).is_none()));
    }

    #[test]
    fn a_cancel_names_what_went_and_what_did_not() {
        let id = |byte| OrderId([byte; 32]);
        let gone = [(3, WhyNot::Gone), (4, WhyNot::Tombstone), (5, WhyNot::Busy), (6, WhyNot::Elsewhere)]
            .map(|(byte, why)| NotCancelled { id: id(byte), why });
        let answer = parsed(&written(|json| cancel_result(json, &[id(1), id(2)], &gone, true)));
        assert_eq!(answer["canceled"].as_array().map(Vec::len), Some(2));
        assert_eq!(answer["not_canceled"][format!("0x{}", "03".repeat(32))], ALREADY_GONE);
        assert_eq!(answer["not_canceled"][format!("0x{}", "04".repeat(32))], ALREADY_GONE);
        assert_eq!(answer["not_canceled"][format!("0x{}", "05".repeat(32))], STILL_THERE);
        assert_eq!(answer["not_canceled"][format!("0x{}", "06".repeat(32))], NOT_IN_MARKET);
        assert_eq!(answer["incomplete"], true);
        assert_eq!(answer["tombstone"], true);
        assert_eq!(answer["tombstones"].as_array().map(Vec::len), Some(1));
        assert_eq!(answer["tombstones"][0], format!("0x{}", "04".repeat(32)));
        assert_eq!(
            written(|json| cancel_result(json, &[], &[], false)),
            r#"{"canceled":[],"not_canceled":{}}"#
        );
    }
}
