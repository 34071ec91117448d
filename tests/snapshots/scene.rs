//! The parties that act on an exchange while snapshots are taken, their acts, and all answers that
//! are compared.

#![allow(unreachable_pub, reason = "every test is a crate of its own")]

use crate::common::exchange::{Exchange, outcry, outcry_succeeds};
use crate::common::random::Random;
use crate::common::trader::{KEYS, Trader, Wish, hex_text, token};
use crate::common::wire::Connection;
use outcry::domain::{Side, SignatureType};
use serde_json::Value;
use std::collections::BTreeMap;
use std::thread::JoinHandle;

/// Millionths in one share.
const SHARE: u64 = 1_000_000;
const TRADERS: usize = 4;

/// Refusals that have a frame, because they depend on the book at that moment.
const KILLED: [&str; 2] = ["fok_not_filled", "fak_no_match"];

/// Kinds of acts, each with its weight.
pub const KINDS: [(&str, u64); 14] = [
    ("place", 60),
    ("cancel", 10),
    ("cancel all", 1),
    ("split", 9),
    ("merge", 6),
    ("redeem", 6),
    ("credit", 5),
    ("debit", 2),
    ("create", 1),
    ("pause", 1),
    ("resume", 4),
    ("tick", 1),
    ("freeze", 1),
    ("resolve", 1),
];

struct Market {
    condition: String,
    tokens: Vec<String>,
    neg_risk: bool,
}

impl Market {
    /// A market as one of the public lists shows it.
    fn of(row: &Value) -> Self {
        let tokens = row["tokens"].as_array().unwrap().iter();
        Self {
            condition: row["condition_id"].as_str().unwrap().to_owned(),
            tokens: tokens.map(|token| token["token_id"].as_str().unwrap().to_owned()).collect(),
            neg_risk: row["neg_risk"] == true,
        }
    }
}

/// An order that got a frame, and its first answer.
#[derive(Clone)]
struct Placed {
    who: usize,
    id: String,
    body: String,
    status: u16,
    answer: Vec<u8>,
}

/// A split, merge or redeem that got a frame, and its first answer.
struct Moved {
    who: usize,
    path: &'static str,
    body: String,
    answer: Vec<u8>,
}

/// A running exchange, those who act on it, and what they have done so far.
pub struct Scene {
    random: Random,
    connection: Connection,
    admin: String,
    traders: Vec<Trader>,
    markets: Vec<Market>,
    /// Every order that got a frame.
    orders: Vec<Placed>,
    moved: Vec<Moved>,
    /// How often each kind of act was done.
    pub done: BTreeMap<&'static str, u64>,
    /// The exchange's second after the last act. Prices are compared up to here: later ones depend on when one asks.
    until_s: u64,
}

impl Scene {
    pub fn open(exchange: &Exchange, random: Random) -> Self {
        let mut connection = exchange.connect();
        let traders = KEYS[1..=TRADERS].iter().map(|key| Trader::new(key, &mut connection)).collect();
        let listed = connection.read("/simplified-markets");
        let (plain, neg_risk): (Vec<_>, Vec<_>) =
            listed["data"].as_array().unwrap().iter().map(Market::of).partition(|market| !market.neg_risk);
        let markets = plain.into_iter().take(2).chain(neg_risk.into_iter().take(2)).collect();
        let (orders, moved, done) = (Vec::new(), Vec::new(), BTreeMap::new());
        let admin = exchange.admin_url();
        let mut scene = Self { random, connection, admin, traders, markets, orders, moved, done, until_s: 0 };
        // So that every trader has something to sell.
        for who in 0..TRADERS {
            for market in 0..scene.markets.len() {
                let answer = scene.pairs(who, 0, market, 200 * SHARE);
                assert!(answer, "everybody has money at first");
            }
        }
        scene
    }

    /// Does `count` acts, each of a random kind.
    pub fn acts(&mut self, count: u64) {
        for _ in 0..count {
            let mut draw = self.random.below(KINDS.iter().map(|(_, share)| share).sum());
            let (kind, _) = KINDS
                .iter()
                .find(|(_, share)| {
                    let here = draw < *share;
                    draw = draw.saturating_sub(*share);
                    here
                })
                .unwrap();
            self.act(kind);
        }
        self.until_s = self.connection.read("/time").as_u64().unwrap();
    }

    pub fn act(&mut self, kind: &'static str) {
        let market = usize::try_from(self.random.below(self.markets.len() as u64)).unwrap();
        let who = usize::try_from(self.random.below(TRADERS as u64)).unwrap();
        let condition = self.markets[market].condition.clone();
        let wallet = hex_text(&self.traders[who].address.0);
        let cents = (1 + self.random.below(500)).to_string();
        let amount = (1 + self.random.below(60)) * SHARE;
        let done = match kind {
            "place" => self.place(who, market),
            "cancel" => self.cancel(),
            "cancel all" => self.trading(who, "DELETE", "/cancel-all", ""),
            "split" => self.pairs(who, 0, market, amount),
            "merge" => self.pairs(who, 1, market, amount),
            "redeem" => self.pairs(who, 2, market, amount),
            "credit" => self.operator(&["account", "credit", &wallet, &cents]),
            "debit" => self.operator(&["account", "debit", &wallet, &cents]),
            "create" => self.create(),
            "pause" | "resume" => self.operator(&["market", kind, &condition]),
            "tick" => {
                let tick = *self.random.pick(&["0.01", "0.001"]);
                self.operator(&["market", "tick", &condition, tick])
            }
            "freeze" => {
                self.operator(&["account", "freeze", &wallet])
                    && self.trading(who, "DELETE", "/cancel-all", "")
                    && self.operator(&["account", "freeze", "--undo", &wallet])
            }
            "resolve" => self.resolve(market),
            _ => unreachable!("{kind} is in the table"),
        };
        *self.done.entry(kind).or_default() += u64::from(done);
    }

    fn place(&mut self, who: usize, market: usize) -> bool {
        let Market { tokens, neg_risk, .. } = &self.markets[market];
        let wish = Wish {
            token: token(self.random.pick::<String>(tokens)),
            side: *self.random.pick(&[Side::Buy, Side::Buy, Side::Sell]),
            price: 100 * (40 + self.random.below(21)),
            shares: (5 + self.random.below(40)) * SHARE,
            kind: self.random.pick::<&str>(&["GTC", "GTC", "GTC", "FAK", "FOK"]),
            neg_risk: *neg_risk,
        };
        let order = self.traders[who].sign(&wish);
        let answer = self.traders[who].post(&mut self.connection, &order.body);
        let taken = accepted(answer.status, &answer.body);
        if taken || KILLED.iter().any(|code| answer.json()["code"] == *code) {
            let (id, body) = (order.id_text, order.body);
            self.orders.push(Placed { who, id, body, status: answer.status, answer: answer.body });
        }
        taken
    }

    /// Posts every order, split, merge and redeem once more: none is executed again, and each gets its first answer.
    #[track_caller]
    pub fn repeats(&self, exchange: &Exchange) {
        let mut connection = exchange.connect();
        for Placed { who, id, body, status, answer } in &self.orders {
            let again = self.traders[*who].post(&mut connection, body);
            assert_eq!((again.status, again.text()), (*status, std::str::from_utf8(answer).unwrap()), "{id}");
            assert_eq!(again.header("Idempotent-Replayed"), Some("true"), "{id}");
        }
        for Moved { who, path, body, answer } in &self.moved {
            let again = self.traders[*who].ask(&mut connection, "POST", path, body).unwrap();
            assert_eq!(
                (again.status, again.text()),
                (200, std::str::from_utf8(answer).unwrap()),
                "{path} {body}"
            );
            assert_eq!(again.header("Idempotent-Replayed"), Some("true"), "{path} {body}");
        }
    }

    fn cancel(&mut self) -> bool {
        let live: Vec<_> = self.orders.iter().rev().take(20).cloned().collect();
        if live.is_empty() {
            return false;
        }
        let Placed { who, id, .. } = self.random.pick(&live).clone();
        self.trading(who, "DELETE", "/order", &format!("{{\"orderID\":\"{id}\"}}"))
    }

    /// Splits (0), merges (1) or redeems (2).
    fn pairs(&mut self, who: usize, act: u8, market: usize, amount: u64) -> bool {
        let trader = &mut self.traders[who];
        let wallet = (trader.address, SignatureType::Eoa);
        let (path, body) = trader.sign_act(act, wallet, &self.markets[market].condition, amount);
        let answer = trader.ask(&mut self.connection, "POST", path, &body).unwrap();
        let taken = accepted(answer.status, &answer.body);
        if taken {
            self.moved.push(Moved { who, path, body, answer: answer.body });
        }
        taken
    }

    fn trading(&mut self, who: usize, method: &str, path: &str, body: &str) -> bool {
        let answer = self.traders[who].ask(&mut self.connection, method, path, body).unwrap();
        accepted(answer.status, &answer.body)
    }

    fn create(&mut self) -> bool {
        let question = format!("Question {}?", self.markets.len());
        let made = outcry_succeeds(&["market", "create", &question, "--admin", &self.admin]);
        let made: Value = serde_json::from_str(&made).unwrap();
        let path = format!("/markets/{}", made["conditionId"].as_str().unwrap());
        let market = Market::of(&self.connection.read(&path));
        self.markets.push(market);
        true
    }

    fn resolve(&mut self, market: usize) -> bool {
        let payout = *self.random.pick(&["1", "0", "0.5"]);
        let condition = self.markets[market].condition.clone();
        let redeem: &[&str] = if self.random.below(2) == 0 { &["--redeem"] } else { &[] };
        self.operator(&[&["market", "resolve", &condition, "--payout", payout], redeem].concat())
    }

    /// Runs one command of the operator; returns whether it was done or refused.
    fn operator(&self, words: &[&str]) -> bool {
        let output = outcry(&[words, &["--admin", &self.admin]].concat());
        let code = output.status.code();
        assert!(code == Some(0) || code == Some(1), "outcry {words:?}: {output:?}");
        code == Some(0)
    }

    /// Asks for a snapshot; the stream does not wait for it.
    pub fn snapshot(&self) -> JoinHandle<u64> {
        snapshot_at(self.admin.clone())
    }

    /// The reads that are compared before a stop and after each start.
    fn questions(&self) -> Vec<String> {
        let mut paths: Vec<String> =
            ["/simplified-markets", "/markets", "/sampling-markets", "/tags", "/series"]
                .map(str::to_owned)
                .to_vec();
        paths.push("/events?limit=100".to_owned());
        paths.push("/v1/leaderboard?timePeriod=ALL&limit=50".to_owned());
        for market in &self.markets {
            let condition = &market.condition;
            paths.push(format!("/markets/{condition}"));
            paths.push(format!("/clob-markets/{condition}"));
            for route in ["holders", "trades", "oi", "live-volume"] {
                paths.push(format!("/{route}?market={condition}"));
            }
            for token in &market.tokens {
                for route in ["book", "midpoint", "spread", "last-trade-price", "tick-size"] {
                    paths.push(format!("/{route}?token_id={token}"));
                }
                let window = format!("startTs=0&endTs={}&fidelity=1", self.until_s);
                paths.push(format!("/prices-history?market={token}&{window}"));
            }
        }
        for trader in &self.traders {
            let wallet = hex_text(&trader.address.0);
            for route in ["positions", "activity", "trades"] {
                paths.push(format!("/{route}?user={wallet}&limit=500"));
            }
            for route in ["closed-positions", "value", "traded", "volume"] {
                paths.push(format!("/{route}?user={wallet}"));
            }
        }
        paths
    }

    /// Every answer of `exchange`, by request.
    pub fn answers(&self, exchange: &Exchange) -> Vec<(String, u16, String)> {
        let mut connection = exchange.connect();
        let mut answers = Vec::new();
        let mut told = |path: &str, connection: &mut Connection| {
            let answer = connection.answer().unwrap();
            let text = answer.text().to_owned();
            answers.push((path.to_owned(), answer.status, text.clone()));
            text
        };
        for path in self.questions() {
            connection.send(&crate::common::wire::request("GET", &path, "", b"")).unwrap();
            told(&path, &mut connection);
        }
        for trader in &self.traders {
            for path in ["/notifications", "/balance-allowance?asset_type=COLLATERAL"] {
                connection.send(&trader.request("GET", path, "")).unwrap();
                told(path, &mut connection);
            }
            for list in ["/data/orders", "/data/trades"] {
                let mut cursor = "MA==".to_owned();
                while !["", "LTE="].contains(&cursor.as_str()) {
                    let path = format!("{list}?next_cursor={cursor}");
                    connection.send(&trader.request("GET", &path, "")).unwrap();
                    let page = told(&path, &mut connection);
                    let page: Value = serde_json::from_str(&page).unwrap();
                    page["next_cursor"].as_str().unwrap().clone_into(&mut cursor);
                }
            }
        }
        for Placed { who, id, .. } in &self.orders {
            let path = format!("/data/order/{id}");
            connection.send(&self.traders[*who].request("GET", &path, "")).unwrap();
            told(&path, &mut connection);
        }
        answers
    }
}

/// Asks the operator's listener at `admin` for a snapshot.
pub fn snapshot_at(admin: String) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let taken = outcry_succeeds(&["snapshot", "--admin", &admin]);
        serde_json::from_str::<Value>(&taken).unwrap()["position"].as_u64().unwrap()
    })
}

/// Whether an act was done. A refusal is a valid answer; a server error is not.
fn accepted(status: u16, body: &[u8]) -> bool {
    assert!(status < 500 && ![401, 425, 429].contains(&status), "{status} {}", String::from_utf8_lossy(body));
    status == 200
}
