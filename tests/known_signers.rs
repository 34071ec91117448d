//! The switch that lets tables check signatures, on the real binary: whatever is refused without it is refused
//! with it in the same bytes, and whatever is taken is taken.
//!
//! One exchange is run twice on the same data: first as it is by default, then with room for a signer. The
//! second run gets the same requests to the byte, each before the signer's table is complete and after.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan};
use common::folder;
use common::trader::{KEYS, Signed, Trader, Wish, resigned, token};
use common::wire::{Answer, Connection};
use outcry::auth::{KnownSigners, Signer};
use outcry::domain::text::parse_hex;
use outcry::domain::{TokenId, Word};
use serde_json::Value;

/// More orders than it takes to complete a table.
const ORDERS: usize = 80;

/// Every way to spoil a signature, by name.
fn spoilt(signed: &Signed) -> Vec<(String, Vec<u8>)> {
    let key = |index: usize| parse_hex(format!("0x{}", KEYS[index]).as_bytes()).unwrap();
    let digest = Word(signed.id.0);
    let good = Signer::new(key(1)).unwrap().sign(&digest);
    let mut all = vec![
        ("nobody's".to_owned(), vec![0; 65]),
        ("another's".to_owned(), Signer::new(key(2)).unwrap().sign(&digest).to_vec()),
        ("too short".to_owned(), good[..64].to_vec()),
    ];
    let mut changed = |name: &str, change: fn(&mut [u8])| {
        let mut signature = good.to_vec();
        change(&mut signature);
        all.push((name.to_owned(), signature));
    };
    changed("a bit of r", |signature| signature[7] ^= 1);
    changed("a bit of s", |signature| signature[63] ^= 1);
    changed("the other v", |signature| signature[64] = 27 + 28 - signature[64]);
    changed("a v of 0", |signature| signature[64] = 0);
    changed("an r of 0", |signature| signature[..32].fill(0));
    changed("an s of 0", |signature| signature[32..64].fill(0));
    changed("r above the order", |signature| signature[..32].fill(0xff));
    changed("a large s", |signature| signature[32] |= 0x80);
    all
}

struct Site {
    exchange: Exchange,
    connection: Connection,
    trader: Trader,
}

impl Site {
    fn start(plan: &Plan) -> Self {
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let trader = Trader::new(KEYS[1], &mut connection);
        Self { exchange, connection, trader }
    }

    fn sign(&mut self, token: TokenId) -> Signed {
        self.trader.sign(&Wish::buy(token, 1_000, 10_000_000))
    }

    fn send(&mut self, request: &[u8]) -> Answer {
        self.connection.send(request).unwrap();
        self.connection.answer().unwrap()
    }

    fn takes_orders(&mut self, token: TokenId) {
        for _ in 0..ORDERS {
            let signed = self.sign(token);
            let answer = self.send(&self.trader.request("POST", "/order", &signed.body));
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.json()["orderID"], Value::from(signed.id_text));
        }
    }

    fn answers(&mut self, requests: &[(String, Vec<u8>)]) -> Vec<Answer> {
        requests.iter().map(|(_, request)| self.send(request)).collect()
    }
}

#[test]
fn room_for_less_than_one_signer_is_refused() {
    let folder = folder();
    let output = Plan::dev(folder.path()).set("auth.known_signers_bytes=139263").run();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("auth.known_signers_bytes: got 139263; allowed: 0 (off), or 139264"), "{said}");
}

#[test]
fn what_is_refused_is_refused_in_the_same_bytes_whoever_checks_it() {
    let folder = folder();
    // The second run gets what was stamped for the first, and no answer shows how many came before, or how long
    // they took.
    let plan = Plan::dev(folder.path()).set("cpu.policy=unpinned").set("auth.window_s=3600");
    let plan = plan.set("limits.mode=off").set("metrics.server_timing=false");
    let mut site = Site::start(&plan);
    let token = token(&site.exchange.market("Does it rain?").tokens[0]);
    site.takes_orders(token);
    let signed = site.sign(token);
    let requests: Vec<(String, Vec<u8>)> = spoilt(&signed)
        .into_iter()
        .map(|(name, signature)| {
            let body = resigned(&signed.body, &signature);
            (name, site.trader.request("POST", "/order", &body))
        })
        .collect();
    let recovered = site.answers(&requests);
    for ((name, _), answer) in requests.iter().zip(&recovered) {
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
    }
    site.exchange.stop();

    let plan = plan.set(&format!("auth.known_signers_bytes={}", KnownSigners::TABLE_BYTES));
    let mut site = Site::start(&plan);
    for times in ["before its table is whole", "when the signer is known"] {
        for ((name, _), (now, then)) in requests.iter().zip(site.answers(&requests).iter().zip(&recovered)) {
            assert_eq!(now, then, "{name}, {times}");
        }
        site.takes_orders(token);
    }
    let good = site.send(&site.trader.request("POST", "/order", &signed.body));
    assert_eq!(good.status, 200, "the order itself: {}", good.text());
    site.exchange.stop();
}
