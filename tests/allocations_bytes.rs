//! From the bytes of a request to the bytes of its answer, without one allocation: heads,
//! chunked bodies, credentials, signatures, orders, batches, cancels, results and refusals.
//!
//! The counter counts this thread's allocations only. The last test plants one, because a
//! counter that cannot count proves nothing.

#[path = "common/counting.rs"]
mod counting;

use counting::{COUNT, Counting};
use outcry::auth::l2::{self, Request};
use outcry::auth::{
    Chain, Domains, KeyName, MacKey, MasterSecret, Signer, Venue, Verifier, sign_order, text,
};
use outcry::domain::{
    ApiKey, OrderFields, OrderId, OrderType, Reject, SelfTrade, Side, SignatureType, SignedOrder, TimeMs,
    TokenId, WalletKind, Word,
};
use outcry::http::respond::{ContentType, Extras, Response, bad_request};
use outcry::http::route::HostPrefixes;
use outcry::http::{BadRequest, Chunked, Limits, Query, parse, route};
use outcry::json::answer::{
    Accepted, NotCancelled, Refusal, WhyNot, cancel_result, order_accepted, order_refused,
};
use outcry::json::{BodyReader, ShortText, Writer};
use outcry::registrar::{Entrance, Presented};
use outcry::registry::Registry;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(act: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    act();
    COUNT.get() - before
}

const ROUNDS: usize = 1_000;

const HEAD: &[u8] = b"POST /order HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nPOLY_ADDRESS: 0xf39F\r\n\
    POLY_SIGNATURE: sig=\r\nPOLY_TIMESTAMP: 1713398400\r\nPOLY_PASSPHRASE: ab\r\n\
    POLY_API_KEY: 00000000-0000-4000-8000-000000000001\r\nContent-Length: 2\r\n\r\n{}";

fn order() -> String {
    let signature = "1c".repeat(317);
    let wallet = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    format!(
        r#"{{"order":{{"salt":479249096354,"maker":"{wallet}","signer":"{wallet}",
        "tokenId":"71321045679252212594626385532706912750332728571942532289631379312455583992563",
        "makerAmount":"50000000","takerAmount":"100000000","side":"BUY","expiration":"0",
        "signatureType":3,"timestamp":"1713398400000","metadata":"","builder":"",
        "signature":"0x{signature}"}},"owner":"00000000-0000-4000-8000-000000000001",
        "orderType":"GTC","deferExec":false,"postOnly":false}}"#
    )
}

#[test]
fn a_head_is_parsed_and_routed_without_allocating() {
    let count = allocations_of(|| {
        for _ in 0..ROUNDS {
            let head = parse(HEAD, &Limits::SERVED).expect("good").expect("whole");
            let found = route(head.method, head.host, head.path, Query::new(head.query), HostPrefixes::On);
            assert!(found.is_ok() && head.auth.is_some());
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn a_chunked_body_is_decoded_without_allocating() {
    let mut buffer = *b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n";
    let count = allocations_of(|| {
        let progress = Chunked::new(100).decode(&mut buffer).expect("good");
        assert!(progress.whole);
    });
    assert_eq!(count, 0);
}

#[test]
fn bodies_are_read_without_allocating() {
    let mut reader = BodyReader::new();
    let (mut orders, mut ids) = (Vec::with_capacity(15), Vec::with_capacity(3_000));
    let single = order().into_bytes();
    let broken = order().replace("BUY", "HOLD").into_bytes();
    let batch = format!("[{}]", vec![order(); 15].join(",")).into_bytes();
    let cancels = format!("[{}]", vec![format!("\"0x{}\"", "ab".repeat(32)); 3_000].join(",")).into_bytes();
    let mut body = Vec::with_capacity(cancels.len());
    let count = allocations_of(|| {
        for _ in 0..ROUNDS / 10 {
            for source in [&single, &broken] {
                body.clear();
                body.extend_from_slice(source);
                assert_eq!(reader.order(&mut body).is_ok(), source == &single);
            }
            body.clear();
            body.extend_from_slice(&batch);
            reader.orders(&mut body, &mut orders).expect("a list");
            assert!(orders.len() == 15 && orders.iter().all(Result::is_ok));
            body.clear();
            body.extend_from_slice(&cancels);
            reader.cancels(&mut body, &mut ids).expect("a list");
            assert_eq!(ids.len(), 1);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn requests_are_admitted_without_allocating() {
    let (registry, mut writer) = Registry::with_capacity(4, 0);
    let master = MasterSecret::new(&[1; 32]);
    let address = *Signer::new([2; 32]).expect("a key").address();
    writer.add_wallet(address, WalletKind::Eoa, None).expect("room");
    let name = KeyName { chain: Chain::Amoy, address, nonce: Word::ZERO, generation: 0 };
    let made = master.credentials(&name);
    let request = Request {
        timestamp: b"1700000000",
        method: b"POST",
        path: b"/clob/order",
        prefix: b"/clob",
        body: b"{\"it\":\"isn't\"}",
    };
    let signature = l2::sign(&Request { path: b"/order", ..request }, &MacKey::new(&made.secret));
    let (address, api_key) = (text::checksummed(&address), ShortText::uuid(made.api_key));
    let presented = Presented {
        address: &address,
        api_key: api_key.as_str().as_bytes(),
        passphrase: &made.passphrase,
        signature: &signature,
    };
    let mut entrance = Entrance::new(master, Chain::Amoy, 16);
    let count = allocations_of(|| {
        for _ in 0..ROUNDS {
            let now = TimeMs::from_seconds(1_700_000_000);
            entrance.admit(&registry, &presented, &request, now, 60).expect("signed");
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn order_signatures_are_checked_without_allocating() {
    let signer = Signer::new([2; 32]).expect("a key");
    let address = *signer.address();
    let mut verifier = Verifier::new(Domains::new(Chain::Amoy));
    let orders = [SignatureType::Eoa, SignatureType::Deposit].map(|signature_type| {
        let fields = OrderFields {
            salt: Word([1; 32]),
            maker: address,
            signer: address,
            token: TokenId([2; 32]),
            maker_amount: 5_000_000,
            taker_amount: 10_000_000,
            side: Side::Buy,
            signature_type,
            timestamp_ms: 1_700_000_000_000,
            metadata: Word::ZERO,
            builder: Word::ZERO,
        };
        let (signature, signature_len) =
            sign_order(&signer, verifier.domains(), Venue::Kuest, false, &fields);
        SignedOrder {
            fields,
            signature,
            signature_len,
            expiration_s: 0,
            deadline_ms: 0,
            order_type: OrderType::Gtc,
            post_only: false,
            self_trade: SelfTrade::ExpireTaker,
            owner: ApiKey::ZERO,
            condition: None,
        }
    });
    let count = allocations_of(|| {
        for order in &orders {
            assert!(verifier.order(order, &address, Venue::Kuest, false, |_| ()).is_ok());
            assert!(verifier.order(order, &address, Venue::Kuest, true, |_| ()).is_err());
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn answers_are_written_without_allocating() {
    let id = OrderId([7; 32]);
    let accepted = Accepted { id: &id, status: "live", making: 0, taking: 19_607_800, trade: None };
    let gone = [NotCancelled { id, why: WhyNot::Tombstone }];
    let extras = Extras { seq: Some(64), retry_after_s: Some(1), ..Extras::default() };
    let mut out = Vec::with_capacity(4_096);
    let count = allocations_of(|| {
        for reject in Reject::ALL {
            out.clear();
            let refusal = Refusal {
                field: "price",
                got: ShortText::millionths(510_500),
                allowed: ShortText::hex(&[7; 32]),
                nearest: ShortText::millionths(510_000),
                ..Refusal::plain(*reject)
            };
            let response = Response::begin(&mut out, refusal.status(), ContentType::Json, &extras);
            order_refused(&mut Writer::new(&mut out), &refusal.of(&id));
            response.finish(&mut out);
            order_accepted(&mut Writer::new(&mut out), &accepted);
            cancel_result(&mut Writer::new(&mut out), &[id], &gone, true);
            bad_request(&mut out, BadRequest::ChunkMalformed);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn a_planted_allocation_is_counted() {
    assert_eq!(allocations_of(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(1)))), 1);
}
