//! The body of `POST /order` on its way in, and its answer on the way out, each beside the usual
//! libraries with derived types. All of them produce the same value, or the same bytes.
//!
//! A good number: body and answer together below 1.5 µs, where the check of the signature takes 26 µs,
//! and neither slower than the fastest of the others.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use outcry::domain::text::{parse_hex, parse_uint256, parse_uuid};
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use outcry::auth::text;
use outcry::domain::order::SIGNATURE_BYTES_MAX;
use outcry::domain::{
    Address, ApiKey, OrderFields, OrderId, OrderType, SelfTrade, Side, SignatureType, SignedOrder, TokenId,
    Word,
};
use outcry::json::answer::{Accepted, TradeName, order_accepted};
use outcry::json::{BodyReader, ShortText, Writer, decimal};
use serde::{Deserialize, Serialize};

/// An order as a client sends it.
const ORDER: &[u8] = include_bytes!("../tests/fuzz/seeds/body/order");

/// The body as a derive reads it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow)]
    order: Fields<'a>,
    owner: &'a str,
    order_type: &'a str,
    post_only: bool,
    self_trade: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    salt: u64,
    maker: &'a str,
    signer: &'a str,
    token_id: &'a str,
    maker_amount: &'a str,
    taker_amount: &'a str,
    side: &'a str,
    expiration: &'a str,
    signature_type: u8,
    timestamp: &'a str,
    metadata: &'a str,
    builder: &'a str,
    signature: &'a str,
}

impl Body<'_> {
    /// Converts the texts to the values that they stand for.
    fn order(&self) -> Option<SignedOrder> {
        let order = &self.order;
        let mut salt = Word::ZERO;
        salt.0[24..].copy_from_slice(&order.salt.to_be_bytes());
        let mut signature = [0; SIGNATURE_BYTES_MAX];
        signature[..65].copy_from_slice(&parse_hex::<65>(order.signature.as_bytes())?);
        Some(SignedOrder {
            fields: OrderFields {
                salt,
                maker: address(order.maker)?,
                signer: address(order.signer)?,
                token: TokenId(parse_uint256(order.token_id.as_bytes())?),
                maker_amount: order.maker_amount.parse().ok()?,
                taker_amount: order.taker_amount.parse().ok()?,
                side: if order.side == "BUY" { Side::Buy } else { Side::Sell },
                signature_type: SignatureType::from_byte(order.signature_type)?,
                timestamp_ms: order.timestamp.parse().ok()?,
                metadata: word(order.metadata)?,
                builder: word(order.builder)?,
            },
            signature,
            signature_len: 65,
            expiration_s: order.expiration.parse().ok()?,
            deadline_ms: 0,
            order_type: if self.order_type == "GTC" { OrderType::Gtc } else { OrderType::Fok },
            post_only: self.post_only,
            self_trade: match self.self_trade {
                "expire_both" => SelfTrade::ExpireBoth,
                "expire_maker" => SelfTrade::ExpireMaker,
                _ => SelfTrade::ExpireTaker,
            },
            owner: parse_uuid(self.owner.as_bytes())?,
            condition: None,
        })
    }
}

fn address(from: &str) -> Option<Address> {
    parse_hex(from.as_bytes()).map(Address)
}

fn word(from: &str) -> Option<Word> {
    if from.is_empty() { Some(Word::ZERO) } else { parse_hex(from.as_bytes()).map(Word) }
}

fn simd_json_order(body: &mut [u8], buffers: &mut simd_json::Buffers) -> Option<SignedOrder> {
    simd_json::serde::from_slice_with_buffers::<Body<'_>>(body, buffers).ok()?.order()
}

fn serde_json_order(body: &[u8]) -> Option<SignedOrder> {
    serde_json::from_slice::<Body<'_>>(body).ok()?.order()
}

fn orders(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read an order");
    group.throughput(Throughput::Bytes(ORDER.len() as u64));
    let (mut reader, mut buffers) = (BodyReader::new(), simd_json::Buffers::new(4_096));
    let expected = reader.order(&mut ORDER.to_vec()).unwrap();
    assert_eq!(simd_json_order(&mut ORDER.to_vec(), &mut buffers), Some(expected));
    assert_eq!(serde_json_order(ORDER), Some(expected));
    // Outcry and simd-json rewrite their input, so each time they get a fresh copy.
    let mut body = ORDER.to_vec();
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| {
            body.copy_from_slice(black_box(ORDER));
            reader.order(&mut body)
        });
    });
    group.bench_function("simd_json", |bencher| {
        bencher.iter(|| {
            body.copy_from_slice(black_box(ORDER));
            simd_json_order(&mut body, &mut buffers)
        });
    });
    group.bench_function("serde_json", |bencher| bencher.iter(|| serde_json_order(black_box(ORDER))));
    group.finish();
}

/// The answer as a derive writes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    success: bool,
    error_msg: &'a str,
    #[serde(rename = "orderID")]
    order_id: &'a str,
    order_hash: &'a str,
    taking_amount: String,
    making_amount: String,
    status: &'a str,
    transactions_hashes: Vec<String>,
    #[serde(rename = "tradeIDs")]
    trade_ids: Vec<String>,
}

impl Answer<'_> {
    fn write(accepted: &Accepted<'_>, out: &mut Vec<u8>) {
        let id = hex(accepted.id.as_bytes());
        let answer = Answer {
            success: true,
            error_msg: "",
            order_id: &id,
            order_hash: &id,
            taking_amount: millionths(accepted.taking),
            making_amount: millionths(accepted.making),
            status: accepted.status,
            transactions_hashes: accepted.trade.iter().map(|trade| hex(trade.hash.as_bytes())).collect(),
            trade_ids: accepted.trade.iter().map(|trade| uuid(trade.id)).collect(),
        };
        serde_json::to_writer(out, &answer).unwrap();
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    let mut digits = [0; 64];
    text::lower_hex(bytes, &mut digits);
    format!("0x{}", str::from_utf8(&digits).unwrap())
}

fn uuid(id: ApiKey) -> String {
    ShortText::uuid(id).as_str().to_owned()
}

fn millionths(value: u64) -> String {
    if value == 0 {
        return String::new();
    }
    let text = format!("{}.{:06}", value / 1_000_000, value % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn answers(criterion: &mut Criterion) {
    let id = OrderId([7; 32]);
    let trade = TradeName { id: ApiKey([9; 16]), hash: Word([8; 32]) };
    let live = Accepted { id: &id, status: "live", making: 0, taking: 0, trade: None };
    let matched =
        Accepted { status: "matched", making: 19_607_800, taking: 40_000_000, trade: Some(trade), ..live };
    for accepted in [live, matched] {
        let (mut ours, mut theirs) = (Vec::with_capacity(4_096), Vec::with_capacity(4_096));
        order_accepted(&mut Writer::new(&mut ours), &accepted);
        Answer::write(&accepted, &mut theirs);
        assert_eq!(str::from_utf8(&ours), str::from_utf8(&theirs));
        let mut group = criterion.benchmark_group(format!("write an answer, {}", accepted.status));
        group.throughput(Throughput::Bytes(ours.len() as u64));
        group.bench_function("outcry", |bencher| {
            bencher.iter(|| {
                ours.clear();
                order_accepted(&mut Writer::new(&mut ours), black_box(&accepted));
            });
        });
        group.bench_function("serde_json", |bencher| {
            bencher.iter(|| {
                theirs.clear();
                Answer::write(black_box(&accepted), &mut theirs);
            });
        });
        group.finish();
        assert_eq!(ours, theirs, "the last ones are the same too");
    }
}

/// An amount read in the usual way: both sides of the point by the standard library.
fn usual_millionths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part = format!("{part:0<6}");
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part.parse().ok()?)
}

fn amounts(criterion: &mut Criterion) {
    let texts = ["0.5", "100", "19.607843", "1000000.000001", "0.01", "12345.6"];
    for text in texts {
        assert_eq!(decimal::parse_millionths(text.as_bytes()).ok(), usual_millionths(text), "{text}");
    }
    let mut next = texts.iter().cycle();
    let mut any = || black_box(*next.next().unwrap());
    let mut group = criterion.benchmark_group("read an amount");
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| decimal::parse_millionths(any().as_bytes()).unwrap());
    });
    group.bench_function("usual", |bencher| bencher.iter(|| usual_millionths(any()).unwrap()));
    group.finish();
}

criterion_group!(benches, orders, answers, amounts);
criterion_main!(benches);
