//! L2: every request of a key's owner carries HMAC(secret, timestamp + METHOD + path + body).
//!
//! The bytes are taken as received: the header's text, the path without its query, the body. Three
//! clients replace `'` by `"` in the body before they hash it, and one signs the path without the
//! host's prefix, so a request whose plain form does not fit is tried in those forms.

use super::mac::{MacKey, same};
use super::text;
use crate::domain::TimeMs;
use crate::domain::time::MILLISECONDS_FROM;

/// The parts of a request that are signed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The text of `…_TIMESTAMP`.
    pub timestamp: &'a [u8],
    /// `GET`, `POST`, `DELETE`.
    pub method: &'a [u8],
    /// The path as it came, without query; it may start with `prefix`.
    pub path: &'a [u8],
    /// The host prefix that routing removed, such as `/clob`; empty for none.
    pub prefix: &'a [u8],
    /// The body as it came.
    pub body: &'a [u8],
}

/// True if whoever made `signature` knows the key's secret and meant this request.
#[must_use]
pub fn is_signed(request: &Request<'_>, key: &MacKey, signature: &[u8]) -> bool {
    let Some(claimed) = text::base64_32(signature) else { return false };
    let quoted = request.body.contains(&b'\'');
    let short = request.path.strip_prefix(request.prefix).filter(|path| path.len() < request.path.len());
    [Some(request.path), short].into_iter().flatten().any(|path| {
        same(&code(request, path, key), &claimed)
            || quoted && same(&code_with_double_quotes(request, path, key), &claimed)
    })
}

/// True if a timestamp in seconds or milliseconds lies within `window_s` of `now`, either way.
#[must_use]
pub fn is_fresh(timestamp: &[u8], now: TimeMs, window_s: u64) -> bool {
    time_of(timestamp).is_some_and(|at| at.0.abs_diff(now.0) <= window_s.saturating_mul(1_000))
}

/// The time that a timestamp means, in seconds or milliseconds.
pub(super) fn time_of(timestamp: &[u8]) -> Option<TimeMs> {
    let number = text::decimal_u64(timestamp)?;
    Some(if number < MILLISECONDS_FROM { TimeMs::from_seconds(number) } else { TimeMs(number) })
}

/// The code that a client sends for `request`, as text; for clients and tests.
#[must_use]
pub fn sign(request: &Request<'_>, key: &MacKey) -> [u8; text::SECRET_TEXT_BYTES] {
    text::base64_text(&code(request, request.path, key))
}

fn code(request: &Request<'_>, path: &[u8], key: &MacKey) -> [u8; 32] {
    key.over([request.timestamp, request.method, path, request.body])
}

fn code_with_double_quotes(request: &Request<'_>, path: &[u8], key: &MacKey) -> [u8; 32] {
    let body = request.body.iter().map(|byte| if *byte == b'\'' { b'"' } else { *byte });
    key.over_mapped([request.timestamp, request.method, path], body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> MacKey {
        MacKey::new(&[9; 32])
    }

    const REQUEST: Request<'static> = Request {
        timestamp: b"1700000000",
        method: b"POST",
        path: b"/order",
        prefix: b"",
        body: br#"{"a":"it's"}"#,
    };

    #[test]
    fn every_signed_byte_counts() {
        let signature = sign(&REQUEST, &key());
        assert!(is_signed(&REQUEST, &key(), &signature));
        let others = [
            Request { timestamp: b"1700000001", ..REQUEST },
            Request { method: b"GET", ..REQUEST },
            Request { path: b"/orders", ..REQUEST },
            Request { body: b"", ..REQUEST },
            Request { body: br#"{"a":"its"}"#, ..REQUEST },
        ];
        for other in others {
            assert!(!is_signed(&other, &key(), &signature), "{other:?}");
        }
        assert!(!is_signed(&REQUEST, &MacKey::new(&[8; 32]), &signature));
        for index in 0..signature.len() {
            assert!(!is_signed(&REQUEST, &key(), &signature[..index]) || index == 43, "cut at {index}");
        }
    }

    #[test]
    fn a_body_that_was_hashed_with_double_quotes_is_taken() {
        let hashed_alike = |path| sign(&Request { path, body: br#"{"a":"it"s"}"#, ..REQUEST }, &key());
        assert!(is_signed(&REQUEST, &key(), &hashed_alike(b"/order")));
        for bytes in [1, 1_023, 1_024, 1_025, 2_048, 2_049] {
            let [single, double] = [b'\'', b'"'].map(|quote| [vec![b'x'; bytes - 1], vec![quote]].concat());
            let hashed = sign(&Request { body: &double, ..REQUEST }, &key());
            assert!(is_signed(&Request { body: &single, ..REQUEST }, &key(), &hashed), "{bytes} bytes");
        }
        let whole = Request { path: b"/clob/order", prefix: b"/clob", ..REQUEST };
        assert!(is_signed(&whole, &key(), &hashed_alike(b"/order")), "without the host's prefix");
        let plain = Request { body: br#"{"a":"it"s"}"#, ..REQUEST };
        let single = sign(&REQUEST, &key());
        assert!(!is_signed(&plain, &key(), &single), "never the other way round");
    }

    #[test]
    fn a_path_may_be_signed_with_and_without_the_hosts_prefix() {
        let whole = Request { path: b"/clob/order", prefix: b"/clob", ..REQUEST };
        assert!(is_signed(&whole, &key(), &sign(&whole, &key())));
        assert!(is_signed(&whole, &key(), &sign(&REQUEST, &key())));
        let other = Request { path: b"/gamma/order", ..REQUEST };
        assert!(!is_signed(&whole, &key(), &sign(&other, &key())));
    }

    #[test]
    fn freshness_is_judged_in_seconds_and_in_milliseconds() {
        let now = TimeMs(1_700_000_000_000);
        for (timestamp, fresh) in [
            ("1700000000", true),
            ("1700000060", true),
            ("1700000061", false),
            ("1699999940", true),
            ("1699999939", false),
            ("1700000060000", true),
            ("1700000060001", false),
            ("1699999940000", true),
            ("1699999939999", false),
            ("99999999999", false),
            ("", false),
            ("-1700000000", false),
            ("1700000000.0", false),
            ("17000000000000000000", false),
        ] {
            assert_eq!(is_fresh(timestamp.as_bytes(), now, 60), fresh, "{timestamp}");
        }
    }
}
