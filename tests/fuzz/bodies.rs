//! What must hold of each parser for any bytes: plain functions that panic if it does not.
//!
//! libFuzzer drives them (`fuzz_targets/`), and so does a test on the stable toolchain
//! (`tests/fuzz_bodies.rs`), each from the seeds in `seeds/<name>/` and its own variations of them.

use std::cell::RefCell;

use crate::domain::text::{parse_hex_into, parse_uuid};
use crate::domain::{ApiKey, Position};
use crate::http::head::{BodyFraming, Head, Limits};
use crate::http::query::{Query, segment_text};
use crate::http::route::{HostPrefixes, route};
use crate::http::websocket::{Fault, Frames, MESSAGE_BYTES_MAX, Said};
use crate::http::{BadRequest, Chunked, parse};
use crate::json::{BodyReader, Cursor, Writer, decimal, name};

/// A check for any bytes.
pub type Body = fn(&[u8]);

/// The bodies by the names of their targets and seeds.
pub const BODIES: &[(&str, Body)] = &[
    ("head", head),
    ("chunked", chunked),
    ("query", query),
    ("body", body),
    ("cursor", cursor),
    ("number", number),
    ("frames", frames),
];

/// Inputs are cut to this length where a check tries every prefix, because that is quadratic.
const PREFIXES_BYTES_MAX: usize = 600;

/// A head does not depend on what follows it; its prefixes are incomplete until they are whole or
/// wrong, and from then on the answer never changes.
pub fn head(bytes: &[u8]) {
    let tight = Limits { line_bytes: 40, head_bytes: 200, headers: 4, body_bytes: 100 };
    for limits in [Limits::SERVED, tight] {
        let bytes = &bytes[..bytes.len().min(PREFIXES_BYTES_MAX)];
        let whole = parse(bytes, &limits);
        if let Ok(Some(head)) = whole {
            check_head(&head, bytes, &limits);
        }
        let mut settled: Option<Result<Option<Head<'_>>, BadRequest>> = None;
        for end in 0..=bytes.len() {
            let outcome = parse(&bytes[..end], &limits);
            match settled {
                // Which of two faults is named may depend on how much has arrived; that there is
                // one may not.
                Some(Err(_)) => assert!(outcome.is_err(), "good again at {end}"),
                Some(good) => assert_eq!(outcome, good, "changed at {end}"),
                None if outcome != Ok(None) => settled = Some(outcome),
                None => {}
            }
        }
    }
}

fn check_head(head: &Head<'_>, bytes: &[u8], limits: &Limits) {
    assert!(head.bytes <= bytes.len() && head.bytes <= limits.head_bytes);
    assert!(bytes[..head.bytes].ends_with(b"\r\n\r\n"));
    assert!(head.path.starts_with('/') && head.path.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(head.path.len() + head.query.map_or(0, str::len) < limits.line_bytes);
    // A parser that accepts more than this one must read whatever this one accepts in the same way.
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut other = httparse::Request::new(&mut headers);
    assert_eq!(other.parse(bytes), Ok(httparse::Status::Complete(head.bytes)));
    let (path, query) = match other.path.expect("whole").split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (other.path.expect("whole"), None),
    };
    assert_eq!((path, query), (head.path, head.query));
    let hosts = other.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let hosts: Vec<_> = hosts.map(|header| Some(header.value)).collect();
    assert!(hosts.len() <= 1 && hosts.first().copied().flatten() == head.host.map(str::as_bytes));
    if let BodyFraming::Length(length) = head.body {
        assert!(length <= limits.body_bytes);
    }
    for prefixes in [HostPrefixes::Off, HostPrefixes::On] {
        if let Ok(found) = route(head.method, head.host, head.path, Query::new(head.query), prefixes) {
            // A host prefix alone is the root, whose slash is not in it.
            assert!(found.path == "/" || head.path.ends_with(found.path), "{}", head.path);
            assert_eq!(found.full_path, head.path);
            assert!(found.path.contains(found.capture) && !found.capture.contains('/'));
        }
    }
}

/// The first byte says where the rest is cut; a body in two pieces decodes like one in a single
/// piece.
pub fn chunked(bytes: &[u8]) {
    const BODY_BYTES_MAX: usize = 300;
    let Some((cut, wire)) = bytes.split_first() else {
        return;
    };
    let at_once = decode(&[wire], BODY_BYTES_MAX);
    let cut = usize::from(*cut).min(wire.len());
    let (first, second) = wire.split_at(cut);
    let in_two = decode(&[first, second], BODY_BYTES_MAX);
    // A fault after the body's end belongs to the next request and is not examined.
    assert_eq!(at_once, in_two, "cut at {cut}");
    if let Ok((whole, body, rest)) = at_once {
        assert!(body.len() <= BODY_BYTES_MAX && body.len() + rest.len() <= wire.len());
        assert!(wire.ends_with(&rest));
        assert!(!whole || wire.len() - rest.len() >= body.len() + b"0\r\n\r\n".len());
    }
}

type Decoded = Result<(bool, Vec<u8>, Vec<u8>), BadRequest>;

fn decode(pieces: &[&[u8]], body_bytes_max: usize) -> Decoded {
    let mut chunked = Chunked::new(body_bytes_max);
    let mut buffer = Vec::new();
    let mut whole = false;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if !whole {
            let progress = chunked.decode(&mut buffer)?;
            buffer.truncate(progress.held);
            whole = progress.whole;
        }
    }
    let rest = buffer.split_off(chunked.body_bytes());
    Ok((whole, buffer, rest))
}

/// Pairs come from the text in order, and what decodes survives being encoded again.
pub fn query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let query = Query::new(Some(text));
    let (mut scratch, mut again) = (Vec::new(), Vec::new());
    let mut at = 0;
    for (name, value) in query.pairs() {
        at += text[at..].find(value.raw()).expect("values come in order") + value.raw().len();
        assert!(!value.raw().contains('&'));
        assert!(query.first(&name).is_some() && query.all(&name).count() > 0);
        if let Ok(decoded) = value.text(&mut scratch) {
            assert!(decoded.len() <= value.raw().len());
            let escapes: Vec<String> = decoded.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let encoded = escapes.concat();
            assert_eq!(segment_text(&encoded, &mut again), Ok(decoded));
        }
    }
}

thread_local! {
    static READER: RefCell<BodyReader> = RefCell::new(BodyReader::new());
}

/// Every reader accepts any bytes; whatever the order reader takes, another parser reads in the
/// same way; whatever is refused can be answered in valid JSON.
pub fn body(bytes: &[u8]) {
    READER.with_borrow_mut(|reader| {
        let (mut ids, mut asks, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        match reader.order(&mut bytes.to_vec()) {
            Ok(order) => compare(bytes, &order),
            Err(error) => {
                assert_same_verdict(bytes, (error.field, error.allowed) != ("body", "JSON"));
                let mut out = Vec::new();
                crate::json::answer::order_refused(&mut Writer::new(&mut out), &error.refusal());
                serde_json::from_slice::<serde_json::Value>(&out).expect("an answer is JSON");
            }
        }
        if reader.orders(&mut bytes.to_vec(), &mut orders).is_ok() {
            assert!((1..=crate::json::read::ORDERS_MAX).contains(&orders.len()));
        }
        if reader.cancels(&mut bytes.to_vec(), &mut ids).is_ok() {
            let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
            assert_eq!(distinct.len(), ids.len());
        }
        let _ = reader.cancel(&mut bytes.to_vec());
        let _ = reader.cancel_scope(&mut bytes.to_vec());
        let _ = reader.order_ids(&mut bytes.to_vec(), &mut ids);
        let _ = reader.tokens(&mut bytes.to_vec(), &mut asks);
        let _ = reader.act(&mut bytes.to_vec());
        let _ = reader.heartbeat(&mut bytes.to_vec());
        if let Ok((quantity, _)) = reader.breaker(&mut bytes.to_vec()) {
            assert!(!quantity.is_zero(), "a breaker that nothing trips is refused");
        }
        if reader.replace(&mut bytes.to_vec(), &mut ids, &mut orders).is_ok() {
            let (most, batch) = (crate::json::read::REPLACED_MAX, crate::json::read::ORDERS_MAX);
            assert!(ids.len() <= most && (1..=batch).contains(&orders.len()));
        }
        let _ = reader.key(&mut bytes.to_vec());
    });
}

/// Another parser must agree on whether bytes are JSON.
fn assert_same_verdict(bytes: &[u8], ours: bool) {
    match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(json) => assert!(ours || depth(&json) > DEPTH_MAX, "we refuse what is JSON"),
        // It reads numbers with a point as floats, and some numbers do not fit one.
        Err(error) if error.to_string().starts_with("number out of range") => {}
        Err(error) => assert!(!ours, "we read what is not JSON: {error}"),
    }
}

/// The deepest nesting that bodies may have; the other parser allows more.
const DEPTH_MAX: usize = 64;

fn depth(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn compare(bytes: &[u8], order: &crate::domain::SignedOrder) {
    let json: serde_json::Value = match serde_json::from_slice(bytes) {
        Ok(json) => json,
        Err(error) if error.to_string().starts_with("number out of range") => return,
        Err(error) => panic!("we read what is not JSON: {error}"),
    };
    let signed = &json["order"];
    let number = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.parse::<u64>().ok(),
        other => other.as_u64(),
    };
    assert_eq!(number(&signed["makerAmount"]), Some(order.fields.maker_amount));
    assert_eq!(number(&signed["takerAmount"]), Some(order.fields.taker_amount));
    assert_eq!(number(&signed["timestamp"]), Some(order.fields.timestamp_ms));
    assert_eq!(signed["signatureType"].as_u64(), Some(order.fields.signature_type as u64));
    let text = |value: &serde_json::Value| value.as_str().map(str::to_ascii_uppercase);
    assert_eq!(text(&signed["side"]).as_deref(), Some(order.fields.side.text()));
    assert_eq!(text(&json["orderType"]).as_deref(), Some(order.order_type.text()));
    assert_eq!(json["postOnly"].as_bool().unwrap_or(false), order.post_only);
    let mut maker = Vec::new();
    name::push_hex(&mut maker, order.fields.maker.as_bytes());
    let lower = signed["maker"].as_str().map(str::to_ascii_lowercase);
    assert_eq!(lower.as_deref().map(str::as_bytes), Some(&maker[..]));
    let mut signature = Vec::new();
    name::push_hex(&mut signature, order.signature());
    let lower = signed["signature"].as_str().map(str::to_ascii_lowercase);
    assert_eq!(lower.as_deref().map(str::as_bytes), Some(&signature[..]));
}

/// A cursor that was read is written as a text that reads back, and so is any number.
pub fn cursor(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(cursor) = Cursor::parse(text)
    {
        assert_reads_back(cursor);
    }
    if let Some((eight, rest)) = bytes.split_first_chunk::<8>() {
        let offset = u64::from_le_bytes(*eight);
        let position = rest.first_chunk::<8>().map(|next| Position(u64::from_le_bytes(*next)));
        assert_reads_back(Cursor::From { offset, position });
    }
}

fn assert_reads_back(cursor: Cursor) {
    let mut out = Vec::new();
    cursor.push(&mut out);
    let text = String::from_utf8(out).expect("ASCII");
    assert_eq!(Cursor::parse(&text), Ok(cursor), "{text}");
}

/// Whatever reads as a number or a name is written as a text that reads the same.
pub fn number(bytes: &[u8]) {
    let mut out = Vec::new();
    if let Ok(value) = decimal::parse_millionths(bytes) {
        decimal::push_millionths(&mut out, value);
        assert_eq!(decimal::parse_millionths(&out), Ok(value));
        assert!(out.len() <= bytes.len());
    }
    if let Ok(price) = decimal::parse_price(bytes) {
        out.clear();
        decimal::push_price(&mut out, price);
        assert_eq!(decimal::parse_price(&out), Ok(price));
    }
    if let Ok(word) = decimal::parse_uint256(bytes) {
        out.clear();
        decimal::push_uint256(&mut out, &word);
        let digits = bytes.iter().position(|&byte| byte != b'0').unwrap_or(bytes.len() - 1);
        assert_eq!(out, bytes[digits..]);
    }
    if let Some(key) = parse_uuid(bytes).or_else(|| name::parse_ulid(bytes)) {
        assert_key_reads_back(key);
    }
    if let Some(sixteen) = bytes.first_chunk::<16>() {
        assert_key_reads_back(ApiKey(*sixteen));
    }
    let mut room = [0; 40];
    if let Some(length) = parse_hex_into(bytes, &mut room) {
        out.clear();
        name::push_hex(&mut out, &room[..length]);
        assert!(out.eq_ignore_ascii_case(bytes));
    }
}

fn assert_key_reads_back(key: ApiKey) {
    let (mut long, mut short) = (Vec::new(), Vec::new());
    name::push_uuid(&mut long, key);
    name::push_ulid(&mut short, key);
    assert_eq!((parse_uuid(&long), name::parse_ulid(&short)), (Some(key), Some(key)));
}

/// WebSocket frames read the same however their bytes arrive, and nothing is read after a close or
/// a fault.
pub fn frames(bytes: &[u8]) {
    let whole = said(bytes, bytes.len().max(1));
    for step in [1, 2, 5] {
        assert_eq!(said(bytes, step), whole, "in pieces of {step}");
    }
    let ends =
        whole.iter().position(|said| said.is_err() || matches!(said, Ok(text) if text.starts_with("close")));
    assert!(ends.is_none_or(|at| at + 1 == whole.len()), "something was said behind the end");
}

/// What is read when the bytes arrive in pieces of `step`.
fn said(bytes: &[u8], step: usize) -> Vec<Result<String, Fault>> {
    let mut frames = Frames::new();
    let (mut all, mut input) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(step) {
        input.extend_from_slice(piece);
        loop {
            let before = input.len();
            let (said, used) = match frames.next(&mut input) {
                Ok((said, used)) => (said.map(|said| text_of(&said)), used),
                Err(fault) => {
                    all.push(Err(fault));
                    break;
                }
            };
            assert!(used <= before, "more was used than there is");
            input.drain(..used);
            let Some(said) = said else {
                break;
            };
            all.push(Ok(said));
        }
    }
    all
}

fn text_of(said: &Said<'_>) -> String {
    match said {
        Said::Text(text) => {
            assert!(text.len() <= MESSAGE_BYTES_MAX);
            format!("text {text}")
        }
        Said::Ping(payload) => format!("ping {payload:?}"),
        Said::Pong(payload) => format!("pong {payload:?}"),
        Said::Close(said) => format!("close {said:?}"),
    }
}
