//! Every domain in which a real client signs orders, on both chains: the exchange takes the order,
//! or says that it is of another version. The separators are derived here from the table alone.

#![allow(clippy::unwrap_used, reason = "a table test stops at its first bad row")]

mod common;

use common::exchange::Plan;
use common::folder;
use common::trader::{KEYS, Trader, Wish, hex_text, token_text};
use outcry::auth::{Chain, Domains, ORDER_TYPE, Signer, Venue, Verifier, keccak};
use outcry::domain::order::SIGNATURE_BYTES_MAX;
use outcry::domain::text::parse_hex;
use outcry::domain::{
    Address, ApiKey, OrderFields, OrderId, OrderType, Reject, SelfTrade, Side, SignatureType, SignedOrder,
    TokenId, Word,
};
use outcry::json::BodyReader;

/// What happens to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Taken,
    OtherVersion,
}
use Fate::{OtherVersion, Taken};

/// One exchange that clients sign for.
struct Row {
    /// The clients that sign for it, with their releases.
    clients: &'static str,
    /// The venue whose headers come with the order.
    venue: Venue,
    name: &'static str,
    version: &'static str,
    chain: Chain,
    /// The contract for normal markets, then the one for neg-risk markets.
    contracts: [&'static str; 2],
    types: &'static [SignatureType],
    fate: Fate,
}

const ALL: &[SignatureType] =
    &[SignatureType::Eoa, SignatureType::Proxy, SignatureType::Safe, SignatureType::Deposit];
/// Kuest's clients refuse to sign for any other wallet.
const DEPOSIT: &[SignatureType] = &[SignatureType::Deposit];

const KUEST: [&str; 2] =
    ["aa1b8dE834E16eC69C044F5300041673C968c9eF", "e7FA09cA716FDf498d74AFF618d32AFeacc310aB"];
const KUEST_FORMER: [&str; 2] =
    ["aCd95F4F42322c7bE215C170362EEc57Ef4E78c2", "961d3230B3BBdb2592D20fa34dBD12Fa19240603"];
const POLY: [&str; 2] =
    ["E111180000d2663C0091e4f400237545B87B996B", "e2222d279d744050d28e00520010520000310F59"];
const POLY_3_POLYGON: [&str; 2] = ["e3333700cA9d93003F00f0F71f8515005F6c00Aa"; 2];
const POLY_3_AMOY: [&str; 2] = ["9fE6e61422AdB6F610d8597F9684b16912D50C3D"; 2];

const KUEST_CLIENTS: &str = "kuest-py-clob-client 2.0.15, kuest-client-sdk 2.0.18";
const KUEST_FORMER_CLIENTS: &str = "older clients of Kuest, as its migration guide has them";
const POLY_CLIENTS: &str =
    "py-clob-client-v2 1.2.1, @polymarket/clob-client-v2 1.1.0, polymarket_client_sdk_v2 0.9.0";

#[rustfmt::skip]
const ROWS: [Row; 8] = [
    Row { clients: KUEST_CLIENTS, venue: Venue::Kuest, name: "CTF Exchange", version: "2",
          chain: Chain::Amoy, contracts: KUEST, types: DEPOSIT, fate: Taken },
    Row { clients: KUEST_CLIENTS, venue: Venue::Kuest, name: "CTF Exchange", version: "2",
          chain: Chain::Polygon, contracts: KUEST, types: DEPOSIT, fate: Taken },
    Row { clients: KUEST_FORMER_CLIENTS, venue: Venue::Kuest, name: "CTF Exchange", version: "2",
          chain: Chain::Amoy, contracts: KUEST_FORMER, types: DEPOSIT, fate: OtherVersion },
    Row { clients: KUEST_FORMER_CLIENTS, venue: Venue::Kuest, name: "CTF Exchange", version: "2",
          chain: Chain::Polygon, contracts: KUEST_FORMER, types: DEPOSIT, fate: OtherVersion },
    Row { clients: POLY_CLIENTS, venue: Venue::Polymarket, name: "Polymarket CTF Exchange", version: "2",
          chain: Chain::Amoy, contracts: POLY, types: ALL, fate: Taken },
    Row { clients: POLY_CLIENTS, venue: Venue::Polymarket, name: "Polymarket CTF Exchange", version: "2",
          chain: Chain::Polygon, contracts: POLY, types: ALL, fate: Taken },
    Row { clients: POLY_CLIENTS, venue: Venue::Polymarket, name: "Polymarket CTF Exchange", version: "3",
          chain: Chain::Amoy, contracts: POLY_3_AMOY, types: ALL, fate: OtherVersion },
    Row { clients: POLY_CLIENTS, venue: Venue::Polymarket, name: "Polymarket CTF Exchange", version: "3",
          chain: Chain::Polygon, contracts: POLY_3_POLYGON, types: ALL, fate: OtherVersion },
];

fn separator(row: &Row, contract: &str) -> Word {
    let kind = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
    let mut slots = [[0; 32]; 5];
    for (slot, text) in slots.iter_mut().zip([kind, row.name, row.version]) {
        *slot = keccak(text.as_bytes()).0;
    }
    slots[3][24..].copy_from_slice(&row.chain.id().to_be_bytes());
    slots[4][12..].copy_from_slice(&parse_hex::<20>(format!("0x{contract}").as_bytes()).unwrap());
    keccak(slots.as_flattened())
}

/// An order as a client with this key signs it under `separator`.
fn signed(signer: &Signer, domains: &Domains, separator: &Word, kind: SignatureType) -> SignedOrder {
    let (owner, deposit) = (*signer.address(), Address([0xdd; 20]));
    let wraps = kind == SignatureType::Deposit;
    let fields = OrderFields {
        salt: Word([1; 32]),
        maker: if wraps { deposit } else { owner },
        signer: if wraps { deposit } else { owner },
        token: TokenId([2; 32]),
        maker_amount: 5_000_000,
        taker_amount: 10_000_000,
        side: Side::Buy,
        signature_type: kind,
        timestamp_ms: 1_700_000_000_000,
        metadata: Word::ZERO,
        builder: Word::ZERO,
    };
    let hash = domains.order_hash(&fields);
    let digest = if wraps {
        domains.deposit_order_digest(separator, &hash, &deposit)
    } else {
        Word(Domains::order_id(separator, &hash).0)
    };
    let mut bytes = signer.sign(&digest).to_vec();
    if wraps {
        bytes.extend([&separator.0[..], &hash.0, ORDER_TYPE.as_bytes(), &[0x00, 0xba]].concat());
    }
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    signature[..bytes.len()].copy_from_slice(&bytes);
    SignedOrder {
        fields,
        signature,
        signature_len: u16::try_from(bytes.len()).unwrap(),
        expiration_s: 0,
        deadline_ms: 0,
        order_type: OrderType::Gtc,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
        owner: ApiKey::ZERO,
        condition: None,
    }
}

/// The answer of an exchange on `chain`, asked as the order path asks.
fn judged(
    chain: Chain,
    order: &SignedOrder,
    owner: &Address,
    row: &Row,
    neg: bool,
) -> Result<OrderId, Reject> {
    let mut verifier = Verifier::new(Domains::new(chain));
    match verifier.order(order, owner, row.venue, neg, |_| ()) {
        Err(Reject::SignatureInvalid) if verifier.is_for_another_version(order, owner) => {
            Err(Reject::OrderVersionMismatch)
        }
        other => other,
    }
}

#[test]
fn every_domain_of_a_real_client_is_taken_or_is_another_version() {
    let signer = Signer::new([5; 32]).unwrap();
    let owner = *signer.address();
    for row in &ROWS {
        let domains = Domains::new(row.chain);
        for (neg_risk, contract) in [false, true].into_iter().zip(row.contracts) {
            let separator = separator(row, contract);
            for &kind in row.types {
                let order = signed(&signer, &domains, &separator, kind);
                let id = Domains::order_id(&separator, &domains.order_hash(&order.fields));
                let expected = match row.fate {
                    Taken => Ok(id),
                    OtherVersion => Err(Reject::OrderVersionMismatch),
                };
                let case = format!("{}: {} {:?} {kind:?} {neg_risk}", row.clients, row.version, row.chain);
                assert_eq!(judged(row.chain, &order, &owner, row, neg_risk), expected, "{case}");

                // Signed for the other kind of market, or for the other chain, the order is
                // invalid.
                if row.fate == Taken {
                    let invalid = Err(Reject::SignatureInvalid);
                    assert_eq!(judged(row.chain, &order, &owner, row, !neg_risk), invalid, "{case}");
                }
                let other = if row.chain == Chain::Amoy { Chain::Polygon } else { Chain::Amoy };
                let invalid = Err(Reject::SignatureInvalid);
                assert_eq!(judged(other, &order, &owner, row, neg_risk), invalid, "{case}, elsewhere");
            }
        }
    }
}

#[test]
fn an_order_of_version_1_is_known_by_its_fields_whatever_contract_it_is_for() {
    let wallet = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    let body = format!(
        r#"{{"order":{{"salt":1,"maker":"{wallet}","signer":"{wallet}",
        "taker":"0x0000000000000000000000000000000000000000","tokenId":"7","makerAmount":"5","takerAmount":"10",
        "expiration":"0","nonce":"0","feeRateBps":"0","side":"BUY","signatureType":0,"signature":"0x{}"}},
        "owner":"00000000-0000-4000-8000-000000000001","orderType":"GTC"}}"#,
        "1c".repeat(65)
    );
    let refused = BodyReader::new().order(&mut body.into_bytes()).unwrap_err();
    assert_eq!(
        (refused.reject, refused.reject.wire().error),
        (Reject::OrderVersionMismatch, "order_version_mismatch")
    );
}

#[test]
fn an_exchange_tells_a_version_3_order_from_one_whose_token_is_nowhere() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[0], &mut connection);
    // Nobody here knows what version 3 calls a position.
    let token = TokenId([0x33; 32]);
    let draft = trader.draft(&Wish::buy(token, 5_000, 10_000_000));
    let body = trader.seal(&draft).body;
    let unknown = trader.post(&mut connection, &body);
    assert_eq!((unknown.status, unknown.json()["code"].as_str()), (400, Some("token_unknown")));
    let said = unknown.json();
    assert_eq!((&said["field"], &said["got"]), (&"tokenId".into(), &token_text(&token).into()), "{said}");

    let row = ROWS.iter().find(|row| row.version == "3" && row.chain == Chain::Amoy).unwrap();
    let separator = separator(row, row.contracts[0]);
    let id = Domains::order_id(&separator, &Domains::new(row.chain).order_hash(&draft.fields));
    let signer = Signer::new(parse_hex(format!("0x{}", KEYS[0]).as_bytes()).unwrap()).unwrap();
    let (head, _) = body.split_once("\"signature\":\"").unwrap();
    let (_, tail) = body.split_once("\"},\"owner\"").unwrap();
    let signature = hex_text(&signer.sign(&Word(id.0)));
    let body = format!("{head}\"signature\":\"{signature}\"}},\"owner\"{tail}");
    let answer = trader.post(&mut connection, &body);
    assert_eq!((answer.status, answer.json()["error"].as_str()), (400, Some("order_version_mismatch")));
    exchange.stop();
}
