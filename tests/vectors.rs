//! Golden vectors: what the real clients sign is verified here, byte for byte.
//!
//! `vectors.json` has what the named clients made with the well-known test keys of Anvil and Hardhat.
#![allow(clippy::unwrap_used, reason = "a vector that lacks a field fails its test")]

use outcry::auth::l1::Claim;
use outcry::auth::l2::{self, Request};
use outcry::auth::{Chain, Curve, Domains, MacKey, Signer, Venue, Verifier, derive, l1, sign_order, text};
use outcry::domain::order::Ratio;
use outcry::domain::text::{parse_hex, parse_uint256};
use outcry::domain::{
    Address, ApiKey, Collateral, FeeSchedule, OrderFields, OrderId, OrderType, Price, Reject, SelfTrade,
    Shares, Side, SignatureType, SignedOrder, TimeMs, TokenId, Word,
};
use outcry::json::decimal;
use serde_json::Value;

/// Runs `check` on every vector of `kind` from both clients, and says how many there were.
fn each(kind: &str, mut check: impl FnMut(Venue, &Value)) -> usize {
    let vectors: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let mut count = 0;
    for (client, venue) in [("kuest", Venue::Kuest), ("polymarket_py_v2", Venue::Polymarket)] {
        for vector in vectors[client][kind].as_array().into_iter().flatten() {
            check(venue, vector);
            count += 1;
        }
    }
    assert!(0 < count, "the file has vectors of {kind}");
    count
}

fn text_of<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field].as_str().unwrap_or_else(|| panic!("{field} is a text"))
}

fn address(text: &str) -> Address {
    text::address(text.as_bytes()).unwrap()
}

fn word(text: &str) -> Word {
    Word(parse_hex(text.as_bytes()).unwrap())
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix("0x").unwrap();
    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn chain(vector: &Value) -> Chain {
    Chain::new(vector["chain_id"].as_u64().unwrap()).unwrap()
}

fn order_of(vector: &Value) -> SignedOrder {
    let order = &vector["order"];
    let number = |field: &str| text_of(order, field).parse().unwrap();
    let signed = bytes(text_of(order, "signature"));
    let mut signature = [0; 317];
    signature[..signed.len()].copy_from_slice(&signed);
    SignedOrder {
        fields: OrderFields {
            salt: Word(parse_uint256(order["salt"].to_string().as_bytes()).unwrap()),
            maker: address(text_of(order, "maker")),
            signer: address(text_of(order, "signer")),
            token: TokenId(parse_uint256(text_of(order, "tokenId").as_bytes()).unwrap()),
            maker_amount: number("makerAmount"),
            taker_amount: number("takerAmount"),
            side: if text_of(order, "side") == "BUY" { Side::Buy } else { Side::Sell },
            signature_type: SignatureType::from_byte(order["signatureType"].to_string().parse().unwrap())
                .unwrap(),
            timestamp_ms: number("timestamp"),
            metadata: word(text_of(order, "metadata")),
            builder: word(text_of(order, "builder")),
        },
        signature,
        signature_len: u16::try_from(signed.len()).unwrap(),
        expiration_s: number("expiration"),
        deadline_ms: 0,
        order_type: OrderType::Gtc,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
        owner: ApiKey::ZERO,
        condition: None,
    }
}

/// Whether the vector's order was signed for a neg-risk market; none for version 3.
fn neg_risk(vector: &Value) -> Option<bool> {
    match &vector["exchange"] {
        Value::String(exchange) if exchange == "v3" => None,
        Value::String(exchange) => Some(exchange == "neg_risk"),
        _ => Some(vector["neg_risk"].as_bool().unwrap()),
    }
}

#[test]
fn every_l1_request_is_the_owners() {
    each("l1", |_, vector| {
        let nonce = vector["nonce"].to_string();
        let claim = Claim {
            address: text_of(vector, "address").as_bytes(),
            signature: text_of(vector, "signature").as_bytes(),
            timestamp: text_of(vector, "timestamp").as_bytes(),
            nonce: Some(nonce.as_bytes()),
            chain_id: None,
        };
        let now = TimeMs::from_seconds(text_of(vector, "timestamp").parse().unwrap());
        let proof = l1::check(&claim, &Domains::new(chain(vector)), &Curve::default(), now, 60).unwrap();
        assert_eq!(proof.address, address(text_of(vector, "address")));
        assert_eq!(Some(proof.nonce), parse_uint256(nonce.as_bytes()).map(Word));

        let signer = Signer::new(parse_hex(text_of(vector, "private_key").as_bytes()).unwrap()).unwrap();
        let digest =
            Domains::new(chain(vector)).clob_auth_digest(signer.address(), claim.timestamp, &proof.nonce);
        assert_eq!(signer.sign(&digest).to_vec(), bytes(text_of(vector, "signature")));
    });
}

#[test]
fn every_l2_request_is_signed_and_signing_it_gives_the_same_text() {
    each("l2", |_, vector| {
        let key = MacKey::new(&text::base64_32(text_of(vector, "secret").as_bytes()).unwrap());
        let path = text_of(vector, "path");
        let request = Request {
            timestamp: text_of(vector, "timestamp").as_bytes(),
            method: text_of(vector, "method").as_bytes(),
            path: path.split('?').next().unwrap().as_bytes(),
            prefix: b"",
            body: vector["body"].as_str().unwrap_or("").as_bytes(),
        };
        let signature = text_of(vector, "signature").as_bytes();
        assert!(l2::is_signed(&request, &key, signature), "{vector}");
        assert_eq!(l2::sign(&request, &key), signature);
    });
}

#[test]
fn every_order_hashes_to_the_clients_digests() {
    each("orders", |venue, vector| {
        let domains = Domains::new(chain(vector));
        let order = order_of(vector);
        let separator = match neg_risk(vector) {
            Some(neg_risk) => domains.orders(venue, neg_risk),
            None => domains.orders_version_3(),
        };
        let hash = domains.order_hash(&order.fields);
        let id = Domains::order_id(separator, &hash);
        assert_eq!(*separator, word(text_of(vector, "app_domain_separator")));
        assert_eq!(hash, word(text_of(vector, "order_struct_hash")));
        assert_eq!(id, OrderId(word(text_of(vector, "order_digest_eip712")).0));
        let signed = match order.fields.signature_type {
            SignatureType::Deposit => domains.deposit_order_digest(separator, &hash, &order.fields.maker),
            _ => Word(id.0),
        };
        assert_eq!(signed, word(text_of(vector, "signed_digest")));
        let recovered = Curve::default().recover(&signed, &order.signature()[..65]);
        assert_eq!(recovered, Some(address(text_of(vector, "recovered_signer"))));
    });
}

#[test]
fn every_order_verifies_or_is_known_for_its_version() {
    let (mut good, mut version_3) = (0, 0);
    let count = each("orders", |venue, vector| {
        let mut verifier = Verifier::new(Domains::new(chain(vector)));
        let order = order_of(vector);
        let owner = address(text_of(vector, "eoa"));
        if let Some(neg_risk) = neg_risk(vector) {
            let id = OrderId(word(text_of(vector, "order_digest_eip712")).0);
            assert_eq!(verifier.order(&order, &owner, venue, neg_risk, |_| ()), Ok(id));
            good += 1;
        } else {
            let judged = verifier.order(&order, &owner, venue, false, |_| ());
            assert_eq!(judged, Err(Reject::SignatureInvalid));
            assert!(verifier.is_for_another_version(&order, &owner));
            version_3 += 1;
        }
    });
    assert_eq!(good + version_3, count);
    assert!(0 < version_3);
}

#[test]
fn signing_every_order_anew_gives_the_clients_bytes() {
    each("orders", |venue, vector| {
        let Some(neg_risk) = neg_risk(vector) else { return };
        let signer = Signer::new(parse_hex(text_of(vector, "private_key").as_bytes()).unwrap()).unwrap();
        let order = order_of(vector);
        let (signature, length) =
            sign_order(&signer, &Domains::new(chain(vector)), venue, neg_risk, &order.fields);
        assert_eq!(signature[..usize::from(length)], *order.signature());
    });
}

#[test]
fn every_maker_is_a_wallet_that_we_derive_for_its_owner() {
    each("orders", |_, vector| {
        let owner = address(text_of(vector, "eoa"));
        let maker = order_of(vector).fields.maker;
        assert!([owner, derive::proxy(&owner), derive::safe(&owner)].contains(&maker), "{vector}");
    });
}

fn millionths(vector: &Value, field: &str) -> u64 {
    decimal::parse_millionths(vector[field].to_string().as_bytes()).unwrap()
}

fn price(vector: &Value) -> Price {
    decimal::parse_price(vector["price"].to_string().as_bytes()).unwrap()
}

#[test]
fn every_amount_that_a_client_rounds_is_read_as_the_price_it_meant() {
    each("amounts", |_, vector| {
        let tick = decimal::parse_tick(text_of(vector, "tick").as_bytes()).unwrap();
        let [maker, taker]: [u64; 2] =
            ["makerAmount", "takerAmount"].map(|field| text_of(vector, field).parse().unwrap());
        let buys = text_of(vector, "side") == "BUY";
        let (collateral, shares) = if buys { (maker, taker) } else { (taker, maker) };
        let signed = Ratio { collateral: Collateral(collateral), shares: Shares(shares) };
        let read = match text_of(vector, "kind") {
            "market" if buys => signed.snapped_price(tick),
            _ => signed.exact_price(tick),
        };
        assert_eq!(read, Some(price(vector)), "{vector}");
    });
}

#[test]
fn every_fee_is_the_clients_to_the_last_millionth() {
    each("fees", |_, vector| {
        let schedule = FeeSchedule {
            rate: millionths(vector, "rate").try_into().unwrap(),
            exponent: vector["exponent"].as_u64().unwrap().try_into().unwrap(),
            builder_share_bps: vector["builder_taker_fee_share_bps"].as_u64().unwrap().try_into().unwrap(),
            ..FeeSchedule::FREE
        };
        let fee = schedule.taker_fee(Shares(millionths(vector, "shares")), price(vector));
        assert_eq!(fee, Collateral(millionths(vector, "total_fee")), "{vector}");
    });
}
