//! What the head of a request costs, beside httparse, which finds no route and checks no lengths; and what an answer's
//! head costs, beside the same head made by `write!`. A good number: both together below 0.5 µs, where the check of the
//! signature takes 26 µs.

#![allow(missing_docs, reason = "criterion's macros make public items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::io::Write;

use outcry::http::respond::{ContentType, Extras, Response};
use outcry::http::route::HostPrefixes;
use outcry::http::{Endpoint, Limits, Method, Query, parse, route};

/// A head as the TypeScript client sends it.
const HEAD: &[u8] = b"POST /order HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\
    Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: @polymarket/clob-client\r\n\
    POLY_ADDRESS: 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\r\n\
    POLY_SIGNATURE: 5oQz3n2c2K0eX1T3b2S0nKq7v8w9x0y1z2A3B4C5D6E=\r\nPOLY_TIMESTAMP: 1713398400\r\n\
    POLY_API_KEY: 00000000-0000-4000-8000-000000000001\r\n\
    POLY_PASSPHRASE: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n\
    Content-Type: application/json\r\nContent-Length: 762\r\n\r\n";

/// Any body; reading one is the room `json`'s.
const BODY: &[u8] = b"{\"success\":true}";

/// What an order's request is judged by: its route, and the identity that it claims.
#[derive(Debug, PartialEq)]
struct Asked<'a>(Method, [Option<&'a str>; 8]);

fn ours(bytes: &[u8]) -> (Asked<'_>, Endpoint) {
    let head = parse(bytes, &Limits::SERVED).expect("good").expect("whole");
    let found = route(head.method, head.host, head.path, Query::new(head.query), HostPrefixes::Off);
    let auth = head.auth.expect("it has credentials");
    let asked = [
        Some(head.path),
        head.host,
        head.content_type,
        auth.address,
        auth.signature,
        auth.timestamp,
        auth.api_key,
        auth.passphrase,
    ];
    (Asked(head.method, asked), found.expect("it has a route").endpoint)
}

/// The library finds the headers; their names are compared in the usual way.
fn with_httparse(bytes: &[u8]) -> Asked<'_> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    assert_eq!(request.parse(bytes), Ok(httparse::Status::Complete(bytes.len())));
    let mut found = [None; 8];
    found[0] = request.path;
    for header in request.headers.iter() {
        if let Some(at) = NAMES.iter().position(|name| header.name.eq_ignore_ascii_case(name)) {
            found[at + 1] = str::from_utf8(header.value).ok();
        }
    }
    let method = match request.method {
        Some("POST") => Method::Post,
        Some("DELETE") => Method::Delete,
        _ => Method::Get,
    };
    Asked(method, found)
}

const NAMES: [&str; 7] = [
    "Host",
    "Content-Type",
    "POLY_ADDRESS",
    "POLY_SIGNATURE",
    "POLY_TIMESTAMP",
    "POLY_API_KEY",
    "POLY_PASSPHRASE",
];

fn heads(criterion: &mut Criterion) {
    assert_eq!(ours(HEAD), (with_httparse(HEAD), Endpoint::PlaceOrder));
    let mut group = criterion.benchmark_group("head");
    group.throughput(Throughput::Bytes(HEAD.len() as u64));
    group.bench_function("outcry", |bencher| bencher.iter(|| ours(black_box(HEAD))));
    group.bench_function("httparse", |bencher| bencher.iter(|| with_httparse(black_box(HEAD))));
    group.bench_function("httparse, headers not looked at", |bencher| {
        bencher.iter(|| {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut headers);
            assert_eq!(request.parse(black_box(HEAD)), Ok(httparse::Status::Complete(HEAD.len())));
        });
    });
    group.finish();
}

/// The head of an answer to an order, which is usually made by formatting.
fn answers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("answer's head");
    let extras = Extras { seq: Some(123_456), ..Extras::default() };
    let ours = |out: &mut Vec<u8>| {
        out.clear();
        let response = Response::begin(out, 200, ContentType::Json, black_box(&extras));
        out.extend_from_slice(BODY);
        response.finish(out);
    };
    let formatted = |out: &mut Vec<u8>| {
        out.clear();
        let seq = black_box(&extras).seq.expect("it has one");
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Outcry-Seq: {seq}\r\n\
             Connection: keep-alive\r\nCache-Control: no-store\r\nContent-Length: {:10}\r\n\r\n",
            BODY.len()
        )
        .expect("a vector takes everything");
        out.extend_from_slice(BODY);
    };
    let (mut out, mut theirs) = (Vec::with_capacity(4_096), Vec::with_capacity(4_096));
    ours(&mut out);
    formatted(&mut theirs);
    assert_eq!(out, theirs);
    group.bench_function("outcry", |bencher| bencher.iter(|| ours(&mut out)));
    group.bench_function("format", |bencher| bencher.iter(|| formatted(&mut theirs)));
    group.finish();
}

criterion_group!(benches, heads, answers);
criterion_main!(benches);
