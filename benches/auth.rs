//! What it costs to know who sent an order: the digest that was signed, the HMAC over the request,
//! and the signature, by recovery and from a known signer's table. A good number: digest and HMAC
//! below 2 µs together, and the table's answer in a third of the recovery's time.

#![allow(missing_docs, reason = "criterion's macros make public items")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;

use outcry::auth::{Chain, Curve, Domains, KnownSigners, MacKey, SIGNATURE_BYTES, Signer, Venue, keccak};
use outcry::domain::{Address, OrderFields, Side, SignatureType, TokenId, Word};

/// Different signatures that each way of checking gets in turn.
const SIGNATURES: usize = 1_000;

/// Enough orders to make a signer known, and some more.
const ORDERS_UNTIL_KNOWN: usize = 80;

/// An order as a client sends it.
const ORDER: &[u8] = include_bytes!("../tests/fuzz/seeds/body/order");

struct Signed {
    digest: Word,
    signature: [u8; SIGNATURE_BYTES],
}

fn signer() -> Signer {
    Signer::new([7; 32]).expect("a small number is a key")
}

fn signed(signer: &Signer) -> Vec<Signed> {
    (0..SIGNATURES)
        .map(|number| {
            let digest = keccak(&number.to_le_bytes());
            Signed { digest, signature: signer.sign(&digest) }
        })
        .collect()
}

/// Checks one order as a trading loop does; true if no recovery was needed.
fn order(known: &mut KnownSigners, curve: &Curve, signer: &Address, order: &Signed) -> bool {
    let vouched = known.vouches(signer, &order.digest, &order.signature);
    if !vouched {
        let key = curve.recover_key(&order.digest, &order.signature).expect("a good signature");
        known.learn(signer, &key);
    }
    vouched
}

fn digests(criterion: &mut Criterion) {
    let domains = Domains::new(Chain::Amoy);
    let owner = *signer().address();
    let fields = OrderFields {
        salt: Word([1; 32]),
        maker: owner,
        signer: owner,
        token: TokenId([2; 32]),
        maker_amount: 50_000_000,
        taker_amount: 100_000_000,
        side: Side::Buy,
        signature_type: SignatureType::Eoa,
        timestamp_ms: 1_713_398_400_000,
        metadata: Word::ZERO,
        builder: Word::ZERO,
    };
    let separator = domains.orders(Venue::Kuest, false);
    let wanted = Domains::order_id(separator, &domains.order_hash(&fields));
    criterion.bench_function("digest/order", |bencher| {
        bencher.iter(|| {
            let id = Domains::order_id(separator, &domains.order_hash(black_box(&fields)));
            assert_eq!(id, wanted);
        });
    });
}

fn macs(criterion: &mut Criterion) {
    let key = MacKey::new(&[7; 32]);
    let wanted = key.over([ORDER]);
    criterion.bench_function("hmac/body", |bencher| {
        bencher.iter(|| assert_eq!(key.over([black_box(ORDER)]), wanted));
    });
}

fn signatures(criterion: &mut Criterion) {
    let (curve, signer) = (Curve::default(), signer());
    let orders = signed(&signer);
    let mut known = KnownSigners::new(KnownSigners::TABLE_BYTES);
    for made in &orders[..ORDERS_UNTIL_KNOWN] {
        order(&mut known, &curve, signer.address(), made);
    }
    let mut group = criterion.benchmark_group("signature");
    let mut next = 0;
    let mut turn = || {
        next = (next + 1) % SIGNATURES;
        next
    };
    group.bench_function("recovered", |bencher| {
        bencher.iter(|| {
            let made = &orders[turn()];
            assert_eq!(curve.recover(&made.digest, &made.signature), Some(*signer.address()));
        });
    });
    group.bench_function("known", |bencher| {
        bencher.iter(|| {
            let made = &orders[turn()];
            assert!(known.vouches(signer.address(), &made.digest, &made.signature));
        });
    });
    group.bench_function("known, forged", |bencher| {
        bencher.iter(|| {
            let index = turn();
            let (made, other) = (&orders[index], &orders[(index + 1) % SIGNATURES]);
            assert!(!known.vouches(signer.address(), &made.digest, &other.signature));
        });
    });
    group.finish();
}

/// All that makes a signer known, beside the same orders where nothing is learned.
fn learning(criterion: &mut Criterion) {
    let (curve, signer) = (Curve::default(), signer());
    let orders = &signed(&signer)[..ORDERS_UNTIL_KNOWN];
    let mut group = criterion.benchmark_group("eighty orders");
    for (name, bytes) in [("unknown", 0), ("until known", KnownSigners::TABLE_BYTES)] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || KnownSigners::new(bytes),
                |known| {
                    let hits = orders.iter().filter(|made| order(known, &curve, signer.address(), made));
                    assert_eq!(hits.count() != 0, bytes != 0);
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, digests, macs, signatures, learning);
criterion_main!(benches);
