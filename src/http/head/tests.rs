//! Heads as tables: what is taken, what is refused, and every limit from both sides.

use super::*;
use crate::domain::Dialect;

const ORDER: &str = "POST /order HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nPOLY_ADDRESS: 0xf39F\r\n\
    poly_signature: sig=\r\nPoly_Timestamp: 1713398400\r\nPOLY_API_KEY: 00000000-0000-4000-8000-000000000001\r\n\
    POLY_PASSPHRASE: ab\r\nPOLY_BUILDER_API_KEY: passed-over\r\nContent-Type: application/json\r\n\
    Content-Length: 12\r\n\r\n";

fn read(text: &str) -> Result<Option<Head<'_>>, BadRequest> {
    parse(text.as_bytes(), &Limits::SERVED)
}

fn whole(text: &str) -> Head<'_> {
    read(text).expect("a good head").expect("a whole head")
}

/// A good request with `lines` among its headers.
fn with(lines: &str) -> String {
    format!("POST /order HTTP/1.1\r\nHost: h\r\n{lines}\r\n")
}

#[test]
fn an_order_as_a_client_sends_it_is_read() {
    let head = whole(ORDER);
    assert_eq!((head.method, head.path, head.query), (Method::Post, "/order", None));
    assert_eq!(head.body, BodyFraming::Length(12));
    assert_eq!(head.host, Some("127.0.0.1:8080"));
    assert_eq!(head.content_type, Some("application/json"));
    assert_eq!(head.bytes, ORDER.len());
    assert!(head.keep_alive && !head.expect_continue);
    let auth = head.auth.expect("five headers of one family");
    assert_eq!(auth.dialect, Dialect::Poly);
    assert_eq!(auth.address, Some("0xf39F"));
    assert_eq!(auth.signature, Some("sig="));
    assert_eq!(auth.timestamp, Some("1713398400"));
    assert_eq!(auth.api_key, Some("00000000-0000-4000-8000-000000000001"));
    assert_eq!(auth.passphrase, Some("ab"));
    assert_eq!(auth.nonce, None);
}

#[test]
fn a_head_cut_anywhere_is_incomplete_and_never_wrong() {
    for text in
        [ORDER, "\r\nGET / HTTP/1.0\r\n\r\n", &with("X: \r\nA:\tb c \t\r\nTransfer-Encoding: Chunked\r\n")]
    {
        for end in 0..text.len() {
            assert_eq!(read(&text[..end]), Ok(None), "cut at {end} of {text:?}");
        }
        assert_eq!(whole(&format!("{text}rest")).bytes, text.len());
    }
}

#[test]
fn what_is_wrong_stays_wrong_whatever_follows() {
    for text in
        ["GET /\n", "GET / HTTP/1.1\r\nHost : h\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/1.1\r\n fold\r\n"]
    {
        let first = read(text).expect_err("wrong");
        assert_eq!(read(&format!("{text}Host: h\r\n\r\n")), Err(first), "{text:?}");
    }
}

#[test]
fn request_lines_are_taken_or_refused() {
    for (line, expected) in [
        ("GET / HTTP/1.1", Ok((Method::Get, "/", None))),
        ("HEAD /ok HTTP/1.1", Ok((Method::Head, "/ok", None))),
        ("DELETE /order HTTP/1.1", Ok((Method::Delete, "/order", None))),
        ("PROPFIND /x HTTP/1.1", Ok((Method::Other, "/x", None))),
        ("get / HTTP/1.1", Ok((Method::Other, "/", None))),
        ("GET /a?b=c?d HTTP/1.1", Ok((Method::Get, "/a", Some("b=c?d")))),
        ("GET /a? HTTP/1.1", Ok((Method::Get, "/a", Some("")))),
        ("GET /%00 HTTP/1.1", Ok((Method::Get, "/%00", None))),
        ("GET  / HTTP/1.1", Err(BadRequest::LineMalformed)),
        (" GET / HTTP/1.1", Err(BadRequest::LineMalformed)),
        ("GET / HTTP/1.1 ", Err(BadRequest::LineMalformed)),
        ("GET /", Err(BadRequest::LineMalformed)),
        ("GET", Err(BadRequest::LineMalformed)),
        // An empty line is passed over once, and then the host line is no request line.
        ("", Err(BadRequest::LineMalformed)),
        ("G(T / HTTP/1.1", Err(BadRequest::LineMalformed)),
        ("GET\t/ HTTP/1.1", Err(BadRequest::LineMalformed)),
        ("GET / http/1.1", Err(BadRequest::LineMalformed)),
        ("GET / HTTP/11", Err(BadRequest::LineMalformed)),
        ("GET / HTTP/1.2", Err(BadRequest::VersionUnsupported)),
        ("PRI * HTTP/2.0", Err(BadRequest::VersionUnsupported)),
        ("GET http://h/ HTTP/1.1", Err(BadRequest::TargetMalformed)),
        ("CONNECT h:80 HTTP/1.1", Err(BadRequest::TargetMalformed)),
        ("OPTIONS * HTTP/1.1", Err(BadRequest::TargetMalformed)),
        ("GET /a#b HTTP/1.1", Err(BadRequest::TargetMalformed)),
        ("GET /é HTTP/1.1", Err(BadRequest::TargetMalformed)),
        ("GET /a\tb HTTP/1.1", Err(BadRequest::TargetMalformed)),
    ] {
        let text = format!("{line}\r\nHost: h\r\n\r\n");
        let outcome =
            read(&text).map(|head| head.map(|head| (head.method, head.path, head.query)).expect("whole"));
        assert_eq!(outcome, expected, "{line:?}");
    }
}

#[test]
fn header_lines_that_two_servers_might_read_differently_are_refused() {
    for (lines, expected) in [
        ("Content-Length: 1\r\nContent-Length: 1\r\n", BadRequest::HeaderTwice),
        ("Content-Length: 1, 1\r\n", BadRequest::LengthMalformed),
        ("Content-Length: +1\r\n", BadRequest::LengthMalformed),
        ("Content-Length: -1\r\n", BadRequest::LengthMalformed),
        ("Content-Length: 1 1\r\n", BadRequest::LengthMalformed),
        ("Content-Length: 0x1\r\n", BadRequest::LengthMalformed),
        ("Content-Length:\r\n", BadRequest::LengthMalformed),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", BadRequest::LengthConflict),
        ("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", BadRequest::LengthConflict),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", BadRequest::HeaderTwice),
        ("Transfer-Encoding: gzip, chunked\r\n", BadRequest::CodingUnknown),
        ("Transfer-Encoding: identity\r\n", BadRequest::CodingUnknown),
        ("Transfer-Encoding: xchunked\r\n", BadRequest::CodingUnknown),
        ("Transfer-Encoding:\r\n", BadRequest::CodingUnknown),
        ("Transfer-Encoding : chunked\r\n", BadRequest::HeaderMalformed),
        ("Content-Length\t: 1\r\n", BadRequest::HeaderMalformed),
        ("No colon\r\n", BadRequest::HeaderMalformed),
        ("Nothing\r\n", BadRequest::HeaderMalformed),
        (": nameless\r\n", BadRequest::HeaderMalformed),
        ("Na(me: x\r\n", BadRequest::HeaderMalformed),
        ("Ünicode: x\r\n", BadRequest::HeaderMalformed),
        (" folded: x\r\n", BadRequest::HeaderFolded),
        ("A: b\r\n\tfolded\r\n", BadRequest::HeaderFolded),
        ("A: b\rc\r\n", BadRequest::BareCr),
        ("A: b\r\r\n", BadRequest::BareCr),
        ("A: b\nC: d\r\n", BadRequest::BareLf),
        ("A: b\0\r\n", BadRequest::ControlByte),
        ("A: \x1b[2J\r\n", BadRequest::ControlByte),
        ("A: \x7f\r\n", BadRequest::ControlByte),
        ("Host: h\r\n", BadRequest::HeaderTwice),
        ("Origin: a\r\nOrigin: a\r\n", BadRequest::HeaderTwice),
        ("Authorization: a\r\nauthorization: b\r\n", BadRequest::HeaderTwice),
        ("Authorization: é\r\n", BadRequest::HeaderMalformed),
        ("POLY_NONCE: 0\r\npoly_nonce: 0\r\n", BadRequest::HeaderTwice),
        ("POLY_NONCE: 0\r\nKUEST_NONCE: 0\r\n", BadRequest::FamiliesMixed),
        ("SERVICE_API_KEY: 0\r\nPOLY_ADDRESS: 0\r\n", BadRequest::FamiliesMixed),
        ("Content-Encoding: gzip\r\nContent-Length: 1\r\n", BadRequest::BodyCompressed),
        (
            "Content-Encoding: gzip\r\nContent-Encoding: utf-8\r\nContent-Length: 1\r\n",
            BadRequest::BodyCompressed,
        ),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: identity, Zstd\r\n", BadRequest::BodyCompressed),
        ("Expect: 200-ok\r\n", BadRequest::ExpectationUnknown),
    ] {
        assert_eq!(read(&with(lines)), Err(expected), "{lines:?}");
    }
}

#[test]
fn the_header_at_fault_is_named() {
    for (lines, name) in [
        ("A: b\r\nOrigin: a\r\norigin: a\r\n", Some("origin")),
        ("POLY_NONCE: 0\r\npoly_nonce: 0\r\n", Some("poly_nonce")),
        ("POLY_NONCE: 0\r\nKUEST_NONCE: 0\r\n", Some("KUEST_NONCE")),
        ("Authorization: é\r\n", Some("Authorization")),
        ("Na(me: x\r\n", Some("Na(me")),
        ("No colon\r\n", Some("No colon")),
        (" folded: x\r\n", Some(" folded")),
        ("Host: h\r\n", Some("Host")),
        ("Expect: 200-ok\r\n", Some("Expect")),
        // These are at fault together, or not as headers.
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", None),
        ("A: b\0\r\n", None),
    ] {
        let text = with(lines);
        assert!(read(&text).is_err(), "{lines:?}");
        for text in [&text, &format!("\r\n{text}")] {
            assert_eq!(header_at_fault(text.as_bytes()), name.map(str::as_bytes), "{text:?}");
        }
    }
    for line in ["GET /\r\nHost: h\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nHos", ""] {
        assert_eq!(header_at_fault(line.as_bytes()), None, "{line:?}");
    }
}

#[test]
fn of_bytes_that_are_no_request_the_method_and_the_page_are_still_told() {
    for (text, is_head, page) in [
        ("HEAD / HTTP/9.9\r\nOrigin: https://a\r\n", true, Some("https://a")),
        ("\r\nHEAD / HTTP/1.1\r\nA : b\r\noRIGIN:https://a \r\n\r\n", true, Some("https://a")),
        ("\r\n\r\nHEAD / HTTP/1.1\r\n", false, None),
        ("HEADER / HTTP/1.1\r\nX-Origin: a\r\n", false, None),
        ("head / HTTP/1.1\r\nOrigin: é\r\n", false, None),
        ("POST / HTTP/1.1\r\n\r\nOrigin: of the body\r\n", false, None),
    ] {
        assert_eq!((asks_head(text.as_bytes()), origin_of(text.as_bytes())), (is_head, page), "{text:?}");
    }
}

#[test]
fn header_lines_that_mean_one_thing_are_taken() {
    for lines in [
        "A: é\r\n",
        "A:\r\nA: \r\nA: \t b\t \r\n",
        "POLY_NONCE: 0\r\nKUEST_REFERRAL: 0x0\r\nKUEST_BUILDER_API_KEY: x\r\n",
        "X-Forwarded-For: a\r\nX-Forwarded-For: b\r\n",
        "Content-Encoding: gzip\r\nContent-Length: 0\r\n",
        "Content-Encoding: utf-8\r\nContent-Encoding:\r\n",
        "Accept: */*\r\nAccept-Encoding: gzip\r\nUser-Agent: py_clob_client\r\n",
    ] {
        assert_eq!(whole(&with(lines)).body, BodyFraming::Length(0), "{lines:?}");
    }
    let head =
        with("X-Forwarded-For: a\r\nX-Forwarded-For: b, c\r\nX-Chain-Id:80002\r\nSec-Fetch-Site: none\r\n");
    let head = whole(&head);
    assert_eq!(head.forwarded_for, [None, None, Some("a"), Some("b, c")]);
    assert_eq!((head.chain_id, head.sec_fetch_site), (Some("80002"), Some("none")));
    let lines = ["a", "b", "c", "d", "e", "f"].map(|line| format!("X-Forwarded-For: {line}\r\n")).concat();
    assert_eq!(whole(&with(&lines)).forwarded_for, ["c", "d", "e", "f"].map(Some));
}

#[test]
fn a_host_is_needed_once_and_must_look_like_one() {
    let ask = |lines: &str, version: &str| {
        read(&format!("GET / {version}\r\n{lines}\r\n"))
            .map(|head| head.and_then(|head| head.host.map(str::to_owned)))
    };
    assert_eq!(ask("", "HTTP/1.1"), Err(BadRequest::HostMalformed));
    assert_eq!(ask("", "HTTP/1.0"), Ok(None));
    for good in ["localhost", "[::1]:80", "a-b_c.example:8080"] {
        assert_eq!(ask(&format!("Host: {good}\r\n"), "HTTP/1.1"), Ok(Some(good.to_owned())));
    }
    for bad in ["", "a b", "a/b", "u@h", "a,b", "h?", "h\\i"] {
        assert_eq!(ask(&format!("Host: {bad}\r\n"), "HTTP/1.1"), Err(BadRequest::HostMalformed), "{bad:?}");
    }
}

#[test]
fn connections_stay_open_as_each_version_has_it() {
    for (version, line, expected) in [
        ("HTTP/1.1", "", true),
        ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: keep-alive, CLOSE\r\n", false),
        ("HTTP/1.1", "Connection: close, keep-alive\r\n", false),
        ("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("HTTP/1.1", "Connection: upgrade\r\n", true),
        ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
        ("HTTP/1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let text = format!("GET / {version}\r\nHost: h\r\n{line}\r\n");
        assert_eq!(whole(&text).keep_alive, expected, "{version} {line:?}");
    }
}

#[test]
fn bodies_are_framed_by_length_or_by_chunks() {
    for zeros in [0, 2, 17, 18, 40] {
        let line = format!("Content-Length: {}7\r\n", "0".repeat(zeros));
        assert_eq!(whole(&with(&line)).body, BodyFraming::Length(7), "{zeros} zeros");
    }
    assert_eq!(whole(&with("TRANSFER-ENCODING: CHUNKED\r\n")).body, BodyFraming::Chunked);
    assert_eq!(
        whole("GET /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n[]").body,
        BodyFraming::Length(2)
    );
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read(old), Err(BadRequest::CodingUnknown));
}

#[test]
fn a_client_that_waits_for_leave_to_send_is_noticed() {
    assert!(whole(&with("Expect: 100-Continue\r\nContent-Length: 5\r\n")).expect_continue);
    assert!(!whole(&with("Expect: 100-continue\r\n")).expect_continue);
    let old = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    assert!(!whole(old).expect_continue);
}

#[test]
fn a_websocket_key_counts_only_with_its_upgrade() {
    let (key, upgrade) = ("Sec-WebSocket-Key: abc\r\n", "Upgrade: WebSocket\r\n");
    let (connection, version) = ("Connection: keep-alive, Upgrade\r\n", "Sec-WebSocket-Version: 13\r\n");
    let get = "GET /ws/market HTTP/1.1";
    let (alive, old) = ("Connection: keep-alive\r\n", "Sec-WebSocket-Version: 8\r\n");
    for (asks, lines, said) in [
        (get, vec![key, upgrade, connection, version], Ok("abc")),
        (get, vec![key, "Upgrade: h2c, websocket\r\n", connection, version], Ok("abc")),
        (get, vec![key, "Upgrade: h2c\r\n", upgrade, connection, version], Ok("abc")),
        (get, vec![key, upgrade, "Upgrade: h2c\r\n", connection, version], Ok("abc")),
        (
            get,
            vec![key, "Upgrade: websockets\r\n", connection, version],
            Err("Upgrade: websockets, not websocket"),
        ),
        (get, vec![key], Err("Upgrade: , not websocket")),
        (get, vec![key, connection, version], Err("Upgrade: , not websocket")),
        (get, vec![key, upgrade, version], Err("Connection: , not Upgrade")),
        (get, vec![key, upgrade, version, alive], Err("Connection: keep-alive, not Upgrade")),
        (get, vec![key, upgrade, connection], Err("Sec-WebSocket-Version: , not 13")),
        (get, vec![key, upgrade, connection, old], Err("Sec-WebSocket-Version: 8, not 13")),
        ("HEAD /ws/market HTTP/1.1", vec![key, upgrade, connection, version], Err("method: HEAD, not GET")),
        ("POST /ws/market HTTP/1.1", vec![key, upgrade, connection, version], Err("method: POST, not GET")),
        (
            "GET /ws/market HTTP/1.0",
            vec![key, upgrade, connection, version],
            Err("version: HTTP/1.0, not HTTP/1.1"),
        ),
    ] {
        let text = format!("{asks}\r\nHost: h\r\n{}\r\n", lines.concat());
        let head = whole(&text);
        let lacks = head.no_upgrade.map(|lacks| {
            format!("{}: {}, not {}", lacks.field, String::from_utf8_lossy(lacks.got), lacks.allowed)
        });
        assert_eq!((head.websocket_key, lacks.as_deref()), (said.ok(), said.err()), "{asks} {lines:?}");
    }
}

#[test]
fn pipelined_requests_come_off_one_by_one() {
    let text = format!("{ORDER}{{\"order\":{{}}}}GET /time HTTP/1.1\r\nHost: h\r\n\r\n");
    let first = whole(&text);
    let BodyFraming::Length(body_bytes) = first.body else { panic!("a length") };
    let second = whole(&text[first.bytes + body_bytes..]);
    assert_eq!(second.path, "/time");
    assert_eq!(first.bytes + body_bytes + second.bytes, text.len());
}

#[test]
fn limits_hold_at_their_value_and_break_one_above() {
    let limits = Limits { line_bytes: 40, head_bytes: 120, headers: 3, body_bytes: 9 };
    let read = |text: &str| parse(text.as_bytes(), &limits).map(|head| head.expect("whole").bytes);

    let line = |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "p".repeat(bytes - 14));
    assert!(read(&line(39)).is_ok() && read(&line(40)).is_ok());
    assert_eq!(read(&line(41)), Err(BadRequest::LineTooLong));
    assert_eq!(read(&"G".repeat(41)), Err(BadRequest::LineTooLong));
    assert_eq!(parse("G".repeat(40).as_bytes(), &limits), Ok(None));

    let head = |bytes: usize| format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(bytes - 32));
    assert_eq!(read(&head(119)), Ok(119));
    assert_eq!(read(&head(120)), Ok(120));
    assert_eq!(read(&head(121)), Err(BadRequest::HeadTooLong));
    assert_eq!(parse(&head(121).as_bytes()[..119], &limits), Ok(None));
    assert_eq!(parse(&head(121).as_bytes()[..120], &limits), Err(BadRequest::HeadTooLong));

    let headers = |count: usize| format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: x\r\n".repeat(count - 1));
    assert!(read(&headers(2)).is_ok() && read(&headers(3)).is_ok());
    assert_eq!(read(&headers(4)), Err(BadRequest::TooManyHeaders));

    let body = |bytes: &str| format!("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: {bytes}\r\n\r\n");
    assert!(read(&body("8")).is_ok() && read(&body("9")).is_ok());
    for above in ["10", "18446744073709551616", "99999999999999999999999999"] {
        assert_eq!(read(&body(above)), Err(BadRequest::BodyTooLong), "{above}");
    }
}

#[test]
fn a_request_that_is_over_a_limit_is_told_the_limit() {
    let Limits { line_bytes, head_bytes, headers, body_bytes } = Limits::SERVED;
    for (reason, limit) in [
        (BadRequest::LineTooLong, line_bytes),
        (BadRequest::HeadTooLong, head_bytes),
        (BadRequest::TooManyHeaders, headers),
        (BadRequest::BodyTooLong, body_bytes),
    ] {
        let (_, text) = reason.wire();
        assert!(text.split(' ').any(|word| word == limit.to_string()), "{text}");
    }
}
