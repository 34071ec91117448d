//! What the bytes of an order cost on their way in and out, each beside a general library that
//! does the same. A good number: head, body and answer together below 2 µs, where the check of
//! the signature takes 26 µs.

#![allow(missing_docs, reason = "criterion's macros make public items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

use outcry::domain::OrderId;
use outcry::http::respond::{ContentType, Extras, Response};
use outcry::http::route::HostPrefixes;
use outcry::http::{Endpoint, Limits, Query, parse, route};
use outcry::json::answer::{Accepted, order_accepted};
use outcry::json::{BodyReader, Writer};

/// A head as the TypeScript client sends it.
const HEAD: &[u8] = b"POST /order HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\
    Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: @polymarket/clob-client\r\n\
    POLY_ADDRESS: 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\r\n\
    POLY_SIGNATURE: 5oQz3n2c2K0eX1T3b2S0nKq7v8w9x0y1z2A3B4C5D6E=\r\nPOLY_TIMESTAMP: 1713398400\r\n\
    POLY_API_KEY: 00000000-0000-4000-8000-000000000001\r\n\
    POLY_PASSPHRASE: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n\
    Content-Type: application/json\r\nContent-Length: 762\r\n\r\n";

/// An order as a client sends it.
const ORDER: &[u8] = include_bytes!("../tests/fuzz/seeds/body/order");

fn heads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("head");
    group.throughput(Throughput::Bytes(HEAD.len() as u64));
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| {
            let head = parse(black_box(HEAD), &Limits::DEFAULT).expect("good").expect("whole");
            let found = route(head.method, head.host, head.path, Query::new(head.query), HostPrefixes::Off);
            assert_eq!(found.map(|found| found.endpoint), Ok(Endpoint::PlaceOrder));
        });
    });
    group.bench_function("httparse", |bencher| {
        bencher.iter(|| {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut headers);
            assert_eq!(request.parse(black_box(HEAD)), Ok(httparse::Status::Complete(HEAD.len())));
        });
    });
    group.finish();
}

fn bodies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("order");
    group.throughput(Throughput::Bytes(ORDER.len() as u64));
    let mut reader = BodyReader::new();
    let mut body = ORDER.to_vec();
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| {
            body.copy_from_slice(ORDER);
            let order = reader.order(black_box(&mut body)).expect("good");
            assert_eq!(order.fields.maker_amount, 50_000_000);
        });
    });
    let mut buffers = simd_json::Buffers::new(4_096);
    group.bench_function("simd_json", |bencher| {
        bencher.iter(|| {
            body.copy_from_slice(ORDER);
            let value =
                simd_json::to_borrowed_value_with_buffers(black_box(&mut body), &mut buffers).expect("JSON");
            assert_eq!(value["order"]["makerAmount"], "50000000");
        });
    });
    group.bench_function("serde_json", |bencher| {
        bencher.iter(|| {
            let value: serde_json::Value = serde_json::from_slice(black_box(ORDER)).expect("JSON");
            assert_eq!(value["order"]["makerAmount"], "50000000");
        });
    });
    group.finish();
}

fn answers(criterion: &mut Criterion) {
    let id = OrderId([7; 32]);
    let accepted = Accepted { id: &id, status: "live", making: 0, taking: 0, trade: None };
    let extras = Extras { seq: Some(123_456), ..Extras::default() };
    let mut out = Vec::with_capacity(4_096);
    criterion.bench_function("answer/outcry", |bencher| {
        bencher.iter(|| {
            out.clear();
            let response = Response::begin(&mut out, 200, ContentType::Json, &extras);
            order_accepted(&mut Writer::new(&mut out), black_box(&accepted));
            response.finish(&mut out);
            assert!(out.ends_with(b"\"tradeIDs\":[]}"));
        });
    });
}

criterion_group!(benches, heads, bodies, answers);
criterion_main!(benches);
