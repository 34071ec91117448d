//! Answers, written into the caller's buffer.
//!
//! [`Response::begin`] writes the head with blanks in place of the length, the caller appends the
//! body to the same buffer, and [`Response::finish`] fills in the length. A body is thus written
//! once, into the buffer that it is sent from; only growth moves that buffer.
//!
//! The length is right-aligned and padded with blanks (`Content-Length:     123`): blanks before a
//! value are optional white space, while zeros would be digits.

use super::head::BadRequest;
use super::route::{Allowed, NoRoute};
use super::upgrade::NoUpgrade;
use super::websocket::ACCEPT_TEXT_BYTES;

/// The answer to `Expect: 100-continue` before the body arrives.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Digits kept for the length: bodies stay below 10 GB. Reads end far before; a cancel of everything names all that it
/// cancelled, 69 bytes each.
const LENGTH_DIGITS: u32 = 10;
/// The longest body: what these digits can say.
pub const BODY_BYTES_MAX: usize = 10_usize.pow(LENGTH_DIGITS) - 1;

/// Seconds after which a client may ask again that was refused with this status: there was no room, or the state was
/// behind. Limits, modes and searches say their own.
#[must_use]
pub const fn retry_after_s(status: u16) -> Option<u32> {
    if status == 503 { Some(1) } else { None }
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// `application/json`.
    Json,
    /// `text/plain; charset=utf-8`.
    Text,
    /// `text/html; charset=utf-8`.
    Html,
    /// `text/javascript; charset=utf-8`.
    Script,
    /// `text/css; charset=utf-8`.
    Style,
}

impl ContentType {
    const fn text(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Style => "text/css; charset=utf-8",
        }
    }
}

/// Whether the connection stays open after an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// It stays open. Always written out, because HTTP/1.0 clients need the header.
    #[default]
    KeepAlive,
    /// It closes.
    Close,
}

/// The headers that an answer may carry besides type and length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras<'a> {
    /// Whether the connection stays open.
    pub connection: Connection,
    /// `X-Outcry-Seq`: the log position that the answer's state has reached.
    pub seq: Option<u64>,
    /// `Idempotent-Replayed: true`: this repeats the first result of an order that was sent again.
    pub replayed: bool,
    /// `Retry-After`, in seconds.
    pub retry_after_s: Option<u32>,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`, as
    /// draft-ietf-httpapi-ratelimit-headers-06 defines them, and `RateLimit-Warning`.
    pub rate_limit: Option<RateLimit>,
    /// `Allow`, for 405.
    pub allow: Option<&'a str>,
    /// `X-Outcry-Stream-Id`, `X-Outcry-Book-Sequence` and `X-Outcry-Book-Crc`: a book's place in its stream.
    pub book: Option<BookMark<'a>>,
    /// `Upgrade: websocket` and its version, for 426.
    pub upgrade: bool,
    /// `Server-Timing`.
    pub server_timing: Option<&'a str>,
    /// Further headers of this answer alone, as name and value.
    pub others: &'a [(&'a str, &'a str)],
}

/// A client's standing in the limit that its request was counted against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How many requests are taken at once.
    pub limit: u32,
    /// How many would be taken now.
    pub remaining: u32,
    /// Seconds until all of them would be taken again.
    pub reset_s: u32,
    /// `RateLimit-Warning: over`: the limit is exceeded, and is not enforced.
    pub over: bool,
}

/// A book's place in its stream, and the checksum of its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookMark<'a> {
    /// The stream's id.
    pub stream_id: &'a str,
    /// The last sequence number of the market.
    pub sequence: u64,
    /// The CRC-32 that the stream's messages carry as `crc`.
    pub crc: u32,
}

/// An answer whose head is written and whose body is being appended.
#[derive(Debug)]
#[must_use = "an answer without its length cannot be read"]
pub struct Response {
    length_at: usize,
    body_at: usize,
    timing_end: Option<usize>,
}

impl Response {
    /// Writes the head of an answer to the end of `out`.
    pub fn begin(out: &mut Vec<u8>, status: u16, content_type: ContentType, extras: &Extras<'_>) -> Self {
        out.extend_from_slice(b"HTTP/1.1 ");
        push_number(out, status.into());
        out.push(b' ');
        out.extend_from_slice(reason(status).as_bytes());
        header(out, "Content-Type", content_type.text());
        if let Some(seq) = extras.seq {
            out.extend_from_slice(b"\r\nX-Outcry-Seq: ");
            push_number(out, seq);
        }
        if extras.replayed {
            header(out, "Idempotent-Replayed", "true");
        }
        if let Some(seconds) = extras.retry_after_s {
            out.extend_from_slice(b"\r\nRetry-After: ");
            push_number(out, seconds.into());
        }
        if let Some(rate) = extras.rate_limit {
            out.extend_from_slice(b"\r\nRateLimit-Limit: ");
            push_number(out, rate.limit.into());
            out.extend_from_slice(b"\r\nRateLimit-Remaining: ");
            push_number(out, rate.remaining.into());
            out.extend_from_slice(b"\r\nRateLimit-Reset: ");
            push_number(out, rate.reset_s.into());
            if rate.over {
                header(out, "RateLimit-Warning", "over");
            }
        }
        if let Some(methods) = extras.allow {
            header(out, "Allow", methods);
        }
        if let Some(book) = extras.book {
            header(out, "X-Outcry-Stream-Id", book.stream_id);
            out.extend_from_slice(b"\r\nX-Outcry-Book-Sequence: ");
            push_number(out, book.sequence);
            out.extend_from_slice(b"\r\nX-Outcry-Book-Crc: ");
            push_number(out, book.crc.into());
        }
        if extras.upgrade {
            header(out, "Upgrade", "websocket");
            header(out, "Sec-WebSocket-Version", "13");
        }
        for (name, value) in extras.others {
            header(out, name, value);
        }
        let timing_end = extras.server_timing.map(|timing| {
            header(out, "Server-Timing", timing);
            out.len()
        });
        let connection = match (extras.connection, extras.upgrade) {
            (Connection::KeepAlive, false) => "keep-alive",
            (Connection::Close, false) => "close",
            // Who names an upgrade says so here as well (RFC 9110, 7.8).
            (Connection::KeepAlive, true) => "upgrade, keep-alive",
            (Connection::Close, true) => "upgrade, close",
        };
        header(out, "Connection", connection);
        // What is told is how things stood at one moment, and much of it is for one reader only.
        out.extend_from_slice(b"\r\nCache-Control: no-store\r\nContent-Length: ");
        let length_at = out.len();
        out.extend_from_slice(&[b' '; LENGTH_DIGITS as usize]);
        out.extend_from_slice(b"\r\n\r\n");
        Self { length_at, body_at: out.len(), timing_end }
    }

    /// Fills in the length: everything in `out` after the head is the body. Returns where the value
    /// of `Server-Timing` ends, for a caller that has more to append to it.
    #[allow(clippy::must_use_candidate, reason = "most callers only need the length filled in")]
    pub fn finish(self, out: &mut [u8]) -> Option<usize> {
        let mut left = out.len() - self.body_at;
        assert!(left <= BODY_BYTES_MAX, "a body is below 10 GB");
        for digit in out[self.length_at..self.length_at + LENGTH_DIGITS as usize].iter_mut().rev() {
            *digit = b'0' + u8::try_from(left % 10).expect("a digit");
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.timing_end
    }
}

/// The code of every answer to bytes that are not a request.
pub const BAD_REQUEST: &str = "bad_request";

/// Answers bytes that are not a request. The connection closes after this answer.
pub fn bad_request(out: &mut Vec<u8>, reason: BadRequest) {
    let (status, text) = reason.wire();
    let extras = Extras { connection: Connection::Close, ..Extras::default() };
    plain_error(out, status, BAD_REQUEST, text, &extras);
}

/// Answers a request that has no route.
pub fn no_route(out: &mut Vec<u8>, reason: NoRoute, extras: &Extras<'_>) {
    match reason {
        NoRoute::NotFound => plain_error(out, 404, "not_found", "not found", extras),
        NoRoute::WrongMethod(allowed) => {
            let extras = Extras { allow: Some(allowed.text()), ..*extras };
            plain_error(out, 405, "method_not_allowed", "method not allowed", &extras);
        }
    }
}

/// Answers a browser that asks, for a page that may read answers, how the page may ask: with any header, and with every
/// method that some path takes, so that it reads the refusal of one that this path does not. It takes the methods
/// `allowed`. The browser may keep this for two hours.
pub fn preflight(out: &mut Vec<u8>, allowed: Allowed, extras: &Extras<'_>) {
    // The Fetch standard counts Authorization as a header that `*` does not name.
    let others = [
        ("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE"),
        ("Access-Control-Allow-Headers", "*, Authorization"),
        ("Access-Control-Max-Age", "7200"),
    ];
    let extras = Extras { allow: Some(allowed.text()), others: &others, ..*extras };
    Response::begin(out, 200, ContentType::Text, &extras).finish(out);
}

/// Answers a request for a stream that does not ask to be upgraded as it should.
pub fn upgrade_required(out: &mut Vec<u8>, lacks: &NoUpgrade<'_>, extras: &Extras<'_>) {
    /// As much of what a client said as an answer repeats.
    const GOT_BYTES_MAX: usize = 64;
    let extras = Extras { upgrade: true, ..*extras };
    let got = &lacks.got[..lacks.got.len().min(GOT_BYTES_MAX)];
    let got: String = got.iter().map(|&byte| if is_clean(byte) { char::from(byte) } else { '?' }).collect();
    let text = "this is a WebSocket: ask with Upgrade, version 13 and a key";
    let about = [("field", lacks.field), ("got", &got), ("allowed", lacks.allowed)];
    error_about(out, (426, "upgrade_required", text), &about, &extras);
}

/// Accepts a request for a stream: everything after this answer is WebSocket frames.
pub fn switching_protocols(out: &mut Vec<u8>, accept: &[u8; ACCEPT_TEXT_BYTES]) {
    out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade");
    out.extend_from_slice(b"\r\nSec-WebSocket-Accept: ");
    out.extend_from_slice(accept);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Answers with `{"error": text, "code": code}`, and `retry_after_seconds` if the head has
/// `Retry-After`. Both words are our own and need no JSON escapes; answers that quote a client go
/// through the `json` room.
pub fn plain_error(
    out: &mut Vec<u8>,
    status: u16,
    code: &'static str,
    text: &'static str,
    extras: &Extras<'_>,
) {
    error_about(out, (status, code, text), &[], extras);
}

/// The same, and what else it is about; words that need no escapes, too.
fn error_about(
    out: &mut Vec<u8>,
    (status, code, text): (u16, &'static str, &'static str),
    about: &[(&'static str, &str)],
    extras: &Extras<'_>,
) {
    let clean = |word: &str| word.bytes().all(is_clean);
    debug_assert!(clean(code) && clean(text), "needs no escapes: {text}");
    let response = Response::begin(out, status, ContentType::Json, extras);
    for piece in ["{\"error\":\"", text, "\",\"code\":\"", code, "\""] {
        out.extend_from_slice(piece.as_bytes());
    }
    for (name, word) in about {
        debug_assert!(clean(word), "needs no escapes: {word}");
        for piece in [",\"", name, "\":\"", word, "\""] {
            out.extend_from_slice(piece.as_bytes());
        }
    }
    if let Some(seconds) = extras.retry_after_s {
        out.extend_from_slice(b",\"retry_after_seconds\":");
        push_number(out, seconds.into());
    }
    out.push(b'}');
    response.finish(out);
}

/// Whether a byte stands in a JSON text as it is.
const fn is_clean(byte: u8) -> bool {
    matches!(byte, 0x20..0x7f) && byte != b'"' && byte != b'\\'
}

fn header(out: &mut Vec<u8>, name: &str, value: &str) {
    debug_assert!(value.bytes().all(|byte| byte >= 0x20), "a header value is one line");
    for piece in ["\r\n", name, ": ", value] {
        out.extend_from_slice(piece.as_bytes());
    }
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    const DIGITS_MAX: usize = 20;
    let mut digits = [0; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(left % 10).expect("a digit");
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        425 => "Too Early",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn the_length_is_filled_in_after_the_head() {
        let answer = written(|out| {
            out.extend_from_slice(b"before");
            let response = Response::begin(out, 200, ContentType::Json, &Extras::default());
            out.extend_from_slice(b"{\"success\":true}");
            response.finish(out);
        });
        assert_eq!(
            answer,
            "beforeHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n\
             Cache-Control: no-store\r\nContent-Length:         16\r\n\r\n{\"success\":true}"
        );
    }

    #[test]
    fn an_empty_body_has_a_length_too() {
        let empty = written(|out| {
            Response::begin(out, 503, ContentType::Text, &Extras::default()).finish(out);
        });
        assert!(empty.ends_with("Content-Length:          0\r\n\r\n"), "{empty}");
    }

    #[test]
    fn every_extra_header_stands_on_its_own_line() {
        let extras = Extras {
            connection: Connection::Close,
            seq: Some(u64::MAX),
            replayed: true,
            retry_after_s: Some(0),
            rate_limit: Some(RateLimit { limit: 9, remaining: 0, reset_s: u32::MAX, over: true }),
            allow: Some("GET, HEAD"),
            upgrade: true,
            book: Some(BookMark { stream_id: "ab", sequence: 7, crc: u32::MAX }),
            server_timing: Some("total;dur=0.012"),
            others: &[("X-Frame-Options", "DENY"), ("Cache-Control", "no-store")],
        };
        let answer = written(|out| {
            Response::begin(out, 425, ContentType::Json, &extras).finish(out);
        });
        for line in [
            "HTTP/1.1 425 Too Early\r\n",
            "\r\nX-Outcry-Seq: 18446744073709551615\r\n",
            "\r\nIdempotent-Replayed: true\r\n",
            "\r\nRetry-After: 0\r\n",
            "\r\nRateLimit-Limit: 9\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 4294967295\r\n",
            "\r\nRateLimit-Warning: over\r\n",
            "\r\nAllow: GET, HEAD\r\n",
            "\r\nX-Outcry-Stream-Id: ab\r\nX-Outcry-Book-Sequence: 7\r\nX-Outcry-Book-Crc: 4294967295\r\n",
            "\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            "\r\nX-Frame-Options: DENY\r\nCache-Control: no-store\r\n",
            "\r\nServer-Timing: total;dur=0.012\r\n",
            "\r\nConnection: upgrade, close\r\n",
        ] {
            assert!(answer.contains(line), "{line:?} in {answer}");
        }
    }

    #[test]
    fn an_error_says_when_to_come_again_in_its_head_and_in_its_body() {
        let extras = Extras { retry_after_s: Some(7), ..Extras::default() };
        let answer = written(|out| plain_error(out, 503, "busy", "try again", &extras));
        assert!(answer.contains("\r\nRetry-After: 7\r\n"), "{answer}");
        assert!(answer.ends_with("{\"error\":\"try again\",\"code\":\"busy\",\"retry_after_seconds\":7}"));
    }

    #[test]
    fn who_is_within_a_limit_is_not_warned() {
        let rate_limit = Some(RateLimit { limit: 9, remaining: 0, reset_s: 1, over: false });
        let extras = Extras { rate_limit, ..Extras::default() };
        let answer = written(|out| {
            Response::begin(out, 200, ContentType::Json, &extras).finish(out);
        });
        assert!(answer.contains("\r\nRateLimit-Remaining: 0\r\n") && !answer.contains("Warning"), "{answer}");
    }

    #[test]
    fn what_a_stream_s_request_lacks_is_quoted_in_part_and_in_plain_letters() {
        let got = [&b"a\"\\\xff\t"[..], &[b'x'; 80]].concat();
        let lacks = NoUpgrade { field: "Upgrade", got: &got, allowed: "websocket" };
        let answer = written(|out| upgrade_required(out, &lacks, &Extras::default()));
        let quoted = format!("\"got\":\"a????{}\",", "x".repeat(59));
        assert!(answer.contains(&quoted), "{answer}");
        assert!(answer.contains("\r\nConnection: upgrade, keep-alive\r\n"), "{answer}");
    }

    #[test]
    fn every_bad_request_closes_with_a_status_that_has_a_name() {
        for bad in BadRequest::ALL {
            let (status, text) = bad.wire();
            let answer = written(|out| bad_request(out, *bad));
            assert_ne!(reason(status), "Status", "{status}");
            assert!(answer.contains("\r\nConnection: close\r\n"));
            assert!(answer.ends_with(&format!("{{\"error\":\"{text}\",\"code\":\"bad_request\"}}")));
        }
    }

    #[test]
    fn a_wrong_method_names_the_right_ones() {
        let wrong = super::super::route::route(
            super::super::head::Method::Get,
            None,
            "/order",
            super::super::query::Query::default(),
            super::super::route::HostPrefixes::Off,
        );
        let answer = written(|out| no_route(out, wrong.expect_err("no GET"), &Extras::default()));
        assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
        assert!(answer.contains("\r\nAllow: POST, DELETE\r\n"));
    }
}
