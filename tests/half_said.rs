//! A request is taken once and whole, in whichever loop its connection ends up and however it ends: the first trading
//! request of a connection moves it to another loop.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use common::exchange::{Exchange, Plan};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::{Answer, Connection, request, upgrade};
use serde_json::Value;

fn exchange() -> (Exchange, tempfile::TempDir) {
    let folder = folder();
    (Plan::dev(folder.path()).start(), folder)
}

/// A signed order of a trader with money, as it goes over the wire.
fn order(exchange: &Exchange) -> Vec<u8> {
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[0], &mut connection);
    let markets = connection.read("/simplified-markets");
    let token = token(markets["data"][0]["tokens"][0]["token_id"].as_str().unwrap());
    let signed = trader.sign(&Wish::buy(token, 1_000, 10_000_000));
    trader.request("POST", "/order", &signed.body)
}

/// The request `whole` with its body in chunks of `chunk_bytes`.
fn in_chunks(whole: &[u8], chunk_bytes: usize) -> Vec<u8> {
    let end = whole.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let head = std::str::from_utf8(&whole[..end]).unwrap();
    let lines = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("content-length"));
    let mut out = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\r\n");
    out.push_str("\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut out = out.into_bytes();
    for chunk in whole[end..].chunks(chunk_bytes) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// What comes until `words` have come.
fn read_until(client: &mut TcpStream, words: &str) -> String {
    client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let (mut told, mut bytes) = (String::new(), [0; 4_096]);
    while !told.contains(words) {
        let count = client.read(&mut bytes).expect("something comes");
        assert_ne!(count, 0, "the server closed the connection: {told}");
        told += std::str::from_utf8(&bytes[..count]).unwrap();
    }
    told
}

fn statuses(connection: &mut Connection, count: usize) -> Vec<u16> {
    (0..count).map(|_| connection.answer().unwrap().status).collect()
}

#[test]
fn a_body_in_chunks_is_decoded_once_though_its_connection_moves() {
    let (exchange, _folder) = exchange();
    let order = order(&exchange);
    for chunk_bytes in [1, 100, 10_000] {
        let mut connection = exchange.connect();
        connection.send(&in_chunks(&order, chunk_bytes)).unwrap();
        // The same order again gets its first answer.
        assert_eq!(statuses(&mut connection, 1), [200], "chunks of {chunk_bytes}");
    }
    // What is in a body is never a request.
    let within = b"0\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
    let nobodys = request("POST", "/order", "", within);
    let mut connection = exchange.connect();
    connection.send(&in_chunks(&nobodys, 10_000)).unwrap();
    connection.send(&request("GET", "/time", "", b"")).unwrap();
    assert_eq!(statuses(&mut connection, 2), [401, 200]);
}

#[test]
fn a_client_that_has_said_all_it_will_say_is_answered() {
    let (exchange, _folder) = exchange();
    let order = order(&exchange);
    for (said, expected) in [
        (order.clone(), vec![200]),
        ([order.clone(), request("GET", "/time", "", b"")].concat(), vec![200, 200]),
        (in_chunks(&order, 100), vec![200]),
        ([order.clone(), order[..order.len() - 1].to_vec()].concat(), vec![200]),
    ] {
        let mut connection = exchange.connect();
        connection.send(&said).unwrap();
        connection.socket().shutdown(Shutdown::Write).unwrap();
        assert_eq!(statuses(&mut connection, expected.len()), expected);
        assert!(connection.answer().is_err(), "closed behind the last answer");
    }
}

#[test]
fn an_upload_that_is_refused_while_it_is_sent_says_why() {
    let (exchange, _folder) = exchange();
    let large = request("POST", "/orders", "", &vec![b' '; 3 << 20]);
    let mut connection = exchange.connect();
    connection.send(&large).unwrap();
    assert_eq!(statuses(&mut connection, 1), [413]);
}

#[test]
fn requests_that_do_not_end_are_refused_before_those_of_an_address_take_too_much() {
    const BODY_BYTES: usize = 1_000_000;
    /// A buffer has 1 MiB for one of these, and a little more for a body in chunks; one address may have 32.
    const BEGUN: usize = 60;
    let (exchange, _folder) = exchange();
    let order = order(&exchange);
    let body = vec![b' '; BODY_BYTES];
    let whole = request("POST", "/orders", "", &body);
    let head =
        format!("POST /orders HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{BODY_BYTES:x}\r\n");
    let chunked = [head.as_bytes(), &body[1..]].concat();
    let mut begun: Vec<Connection> = (0..BEGUN).map(|_| exchange.connect()).collect();
    for (connection, half) in begun.iter_mut().zip([&whole[..whole.len() - 1], &chunked].into_iter().cycle())
    {
        connection.send(half).unwrap();
    }
    // Whoever takes too long to end is closed unanswered, and so may some be by now.
    let mut answers = || -> Vec<Answer> {
        let some = begun.iter_mut().filter_map(|connection| connection.has_answer().then_some(connection));
        some.filter_map(|connection| connection.answer().ok()).collect()
    };
    let mut refused = until(|| Some(answers()).filter(|answers| !answers.is_empty()));

    let mut small = exchange.connect();
    small.send(&order).unwrap();
    assert_eq!(statuses(&mut small, 1), [200], "what every connection may have is taken");
    let mut operator = Connection::open(exchange.admin);
    operator.send(&request("POST", "/markets", "", &body)).unwrap();
    assert_eq!(statuses(&mut operator, 1), [400], "an operator's request is heard to its end");
    refused.extend(answers());
    for refused in &refused {
        assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("busy")));
    }
    assert!(refused.len() < BEGUN / 2, "{} of {BEGUN} were refused", refused.len());

    // Whoever leaves makes room.
    drop(begun);
    until(|| {
        let mut again = exchange.connect();
        again.send(&whole).unwrap();
        (statuses(&mut again, 1) == [401]).then_some(())
    });
}

/// A frame of a text message, which is the first or a further one, and the last or not, masked by zeros, which leave its
/// bytes as they are.
fn frame(is_first: bool, is_last: bool, bytes: &[u8]) -> Vec<u8> {
    const MASKED_LENGTH_16: u8 = 0xfe;
    let first = u8::from(is_first) | if is_last { 0x80 } else { 0 };
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[first, MASKED_LENGTH_16], &length[..], &[0; 4], bytes].concat()
}

/// Reads until one of these has come; returns which.
fn which_comes(client: &mut TcpStream, words: &[&[u8]]) -> usize {
    client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let (mut told, mut bytes) = (Vec::new(), [0; 4_096]);
    loop {
        let count = client.read(&mut bytes).expect("something comes");
        assert_ne!(count, 0, "the server closed the connection: {told:?}");
        told.extend_from_slice(&bytes[..count]);
        let has_come = |word: &&[u8]| told.windows(word.len()).any(|part| part == *word);
        if let Some(word) = words.iter().position(has_come) {
            return word;
        }
    }
}

#[test]
fn a_message_in_fragments_is_held_until_it_is_whole_and_ends_its_stream_where_others_hold_too_much() {
    const PING: [u8; 6] = [0x89, 0x80, 0, 0, 0, 0];
    const PONG: &[u8] = &[0x8a, 0];
    const TOO_MUCH_BY_ALL: &[u8] = &4_002_u16.to_be_bytes();
    /// What comes on the streams of one address may take 32 MiB.
    const STREAMS_MAX: usize = (32 << 20) / 120_000;
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("limits.mode=off").start();
    let open = || {
        let mut client = TcpStream::connect(("127.0.0.1", exchange.http)).unwrap();
        client.write_all(&upgrade("market")).unwrap();
        assert!(read_until(&mut client, "\r\n\r\n").starts_with("HTTP/1.1 101"));
        client
    };
    let held = |is_it: fn(u64) -> bool| until(|| is_it(exchange.metric("outcry_held_bytes")).then_some(()));
    let half = vec![b' '; 60_000];
    // A ping may stand between fragments, and the last one never comes.
    let begins = [frame(true, false, &half), frame(false, false, &half), PING.to_vec()].concat();
    let mut first = open();
    first.write_all(&begins).unwrap();
    assert_eq!(which_comes(&mut first, &[PONG]), 0);
    held(|bytes| 120_000 <= bytes);
    first.write_all(&frame(false, true, &half[..200])).unwrap();
    held(|bytes| bytes == 0);

    let mut streams = Vec::new();
    let refused = (0..=STREAMS_MAX).find(|_| {
        let mut stream = open();
        stream.write_all(&begins).unwrap();
        let is_refused = which_comes(&mut stream, &[PONG, TOO_MUCH_BY_ALL]) == 1;
        streams.push(stream);
        is_refused
    });
    assert!((STREAMS_MAX / 2..=STREAMS_MAX).contains(&refused.expect("they are counted")), "{refused:?}");
    let spaces = " ".repeat(200);
    let short = [format!("{{\"type\":{spaces}"), format!("\"market\",{spaces}\"assets_ids\":[]}}")];
    let short = [frame(true, false, short[0].as_bytes()), frame(false, true, short[1].as_bytes())].concat();
    first.write_all(&short).unwrap();
    assert_eq!(which_comes(&mut first, &[b"\"subscribed\""]), 0, "a short one is heard");
    drop(streams);
    held(|bytes| bytes == 0);
}

#[test]
fn who_waits_to_be_told_to_send_a_body_is_told_so_behind_another_request_too() {
    let (exchange, _folder) = exchange();
    let order = order(&exchange);
    let head_bytes = order.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let (head, body) = order.split_at(head_bytes);
    let expects = |head: &[u8]| {
        let head = std::str::from_utf8(head).unwrap().trim_end();
        format!("{head}\r\nExpect: 100-continue\r\n\r\n").into_bytes()
    };
    let chunked = in_chunks(&order, 100);
    let chunked_head = chunked.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    for (head, body) in [(head, body), chunked.split_at(chunked_head)] {
        let mut client = TcpStream::connect(("127.0.0.1", exchange.http)).unwrap();
        // Once more on the same connection, which is told anew.
        for (reads, first) in [(20, "HTTP/1.1 200"), (0, "HTTP/1.1 100")] {
            let reads = request("GET", "/simplified-markets", "", b"").repeat(reads);
            client.write_all(&[reads, expects(head)].concat()).unwrap();
            let told = read_until(&mut client, "HTTP/1.1 100 Continue\r\n\r\n");
            assert!(told.starts_with(first), "the answers keep their order: {told}");
            client.write_all(body).unwrap();
            let placed = read_until(&mut client, "}");
            assert!(placed.starts_with("HTTP/1.1 200") && placed.contains("\"success\""), "{placed}");
        }
    }
}

/// What `look` finds at last.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "nothing was found");
        std::thread::yield_now();
    }
}

#[test]
fn more_reads_than_the_reader_takes_at_once_are_all_answered() {
    let (exchange, _folder) = exchange();
    let order = order(&exchange);
    let mut traded: Vec<Connection> = (0..20).map(|_| exchange.connect()).collect();
    for connection in &mut traded {
        connection.send(&order).unwrap();
        assert_eq!(statuses(connection, 1), [200]);
    }
    let reads = request("GET", "/simplified-markets", "", b"").repeat(32);
    for connection in &mut traded {
        connection.send(&reads).unwrap();
    }
    for connection in &mut traded {
        assert_eq!(statuses(connection, 32), [200; 32]);
    }
}

#[test]
fn an_operators_act_is_done_or_refused_for_want_of_room_and_never_forgotten() {
    let (exchange, _folder) = exchange();
    let market = br#"{"question":"Will there be room?","outcomes":["Yes","No"],"tick":"0.01"}"#;
    let acts = request("POST", "/markets", "", market).repeat(30);
    let mut operators: Vec<Connection> = (0..10).map(|_| Connection::open(exchange.admin)).collect();
    for connection in &mut operators {
        connection.send(&acts).unwrap();
    }
    let mut made = 0;
    for connection in &mut operators {
        let told = statuses(connection, 30);
        assert!(told.iter().all(|status| [200, 503].contains(status)), "{told:?}");
        made += told.iter().filter(|status| **status == 200).count();
        connection.send(&request("GET", "/health", "", b"")).unwrap();
        assert_eq!(statuses(connection, 1), [200]);
    }
    let mut reader = exchange.connect();
    let asked = "Will there be room?";
    until(|| {
        // Those and what `dev` has are fewer than 400.
        let pages = (0..400).step_by(100).map(|at| reader.read(&format!("/markets?limit=100&offset={at}")));
        let count = |page: &Value| {
            page.as_array().unwrap().iter().filter(|market| market["question"] == asked).count()
        };
        let there: usize = pages.map(|page| count(&page)).sum();
        (there == made).then_some(())
    });
    exchange.stop();
}

#[test]
fn what_answers_a_head_has_no_body_whatever_it_says() {
    let (exchange, _folder) = exchange();
    let public = ["/time 200", "/nowhere 404", "/order 405", "/ws/market 426", "/ws/user 426"];
    let admin = ["/health 200", "/ready 200", "/metrics 200", "/console 200", "/books 200", "/mode 404"];
    for (port, asks, last) in [(exchange.http, &public[..], "/time"), (exchange.admin, &admin, "/health")] {
        let mut bytes = String::new();
        for ask in asks {
            let (path, _) = ask.split_once(' ').unwrap();
            write!(bytes, "HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        }
        write!(bytes, "GET {last} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(bytes.as_bytes()).unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        let heads: Vec<&str> = said.split("\r\n\r\n").collect();
        assert_eq!(heads.len(), asks.len() + 2, "{said}");
        for (ask, head) in asks.iter().zip(&heads) {
            let (_, status) = ask.split_once(' ').unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "HEAD {ask}: {head}");
        }
        assert!(
            heads[asks.len()].starts_with("HTTP/1.1 200 ") && !heads[asks.len() + 1].is_empty(),
            "{said}"
        );
    }
}

#[test]
fn what_refuses_a_head_has_no_body_either() {
    let (exchange, _folder) = exchange();
    let many = "A: b\r\n".repeat(65);
    let long = format!("/{}", "x".repeat(12 << 10));
    let families = "Host: h\r\nPOLY_NONCE: 0\r\nKUEST_NONCE: 0\r\n";
    let chunks = "Host: h\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n";
    for (begins, path, lines, status) in [
        ("", "/time", "", "400"),
        ("\r\n", "/time", "", "400"),
        ("", "/time", "Host: h\r\nExpect: foo\r\n", "417"),
        ("", "/time", &many, "431"),
        ("", "/time", families, "400"),
        ("", "/time", chunks, "400"),
        ("", "time", "Host: h\r\n", "400"),
        ("", &long, "Host: h\r\n", "414"),
    ] {
        for method in ["HEAD", "GET", "HEADS"] {
            let mut client = TcpStream::connect(("127.0.0.1", exchange.http)).unwrap();
            let asked = format!("{begins}{method} {path} HTTP/1.1\r\n{lines}\r\n");
            client.write_all(asked.as_bytes()).unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).unwrap();
            assert_eq!(said.split(' ').nth(1), Some(status), "{method} {path} {lines}: {said}");
            let (_, body) = said.split_once("\r\n\r\n").unwrap();
            assert_eq!(body.is_empty(), method == "HEAD", "{method} {path} {lines}: {said}");
        }
    }
    exchange.stop();
}
