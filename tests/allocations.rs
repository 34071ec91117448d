//! Ten thousand mixed requests, from the bytes on a socket to the bytes of the answer, without one
//! allocation on the loops that match: with one shard, and with two that ask each other over the
//! mesh.
//!
//! The server runs in this process. This thread turns its trading loops, which have the connections
//! and the shards, and only allocations within those turns are counted. The last test plants one,
//! because a counter that cannot count proves nothing.
//!
//! Counted are orders of every type, batches and cancels that span the shards, repeats, splits,
//! merges, redeems, expiries, and refusals of all of them. The buffers of a connection and the
//! lists of a cancel grow to the size that is used and keep it; [`Scene::warm_up`] brings them
//! there. They come one by one: of those that come together, some may find no buffer that is kept.
//! Not counted, and free to allocate, are acts of the operator and what happens once (ticks, modes,
//! resolutions, imports, credits, a connection that comes or moves), and reads, which are the
//! reader's.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;
#[path = "common/counting.rs"]
mod counting;

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::folder;
use common::random::Random;
use common::rig::{connect, while_turning};
use common::trader::{KEYS, Signed, Trader, Wish, hex_text, now_ms};
use common::wire::Connection;
use counting::{COUNT, Counting};
use outcry::auth::KnownSigners;
use outcry::domain::{Collateral, Side};
use outcry::server::plan::options::Options;
use outcry::server::rig::{Rig, RigMarket};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests before counting: buffers reach their size, pages are touched.
const WARM_UP: usize = 2_000;
/// Requests that are counted.
const COUNTED: usize = 10_000;
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// The most unanswered requests of a connection.
const PLACES: usize = 32;
/// Orders in a batch.
const BATCH_MAX: u64 = 15;
/// Seconds from the one in which an order is signed to the one in which it expires; one less is time enough to be taken.
const EXPIRES_S: u64 = 3;
/// The most orders of one trader that may be open before all are cancelled.
const LIVE_MAX: usize = 40;

/// The answers that each kind of request must produce, and how often, for the count to mean
/// something.
const OUTCOMES: [(&str, &str, usize); 21] = [
    ("order", "\"live\"", 400),
    ("order", "\"matched\"", 400),
    ("order", "FAK orders", 100),
    ("order", "FOK orders", 100),
    ("order", "crosses book", 20),
    ("again", "Replayed: true", 100),
    ("batch", "\"live\"", 300),
    ("batch", "\"matched\"", 300),
    ("cancel", "\"canceled\":[\"0x", 200),
    ("stranger", "\"canceled\":[]", 100),
    ("list", "\"canceled\":[\"0x", 100),
    ("all", "\"canceled\":[\"0x", 100),
    ("scope", "\"canceled\":[\"0x", 50),
    ("replace", "\"canceled\":[\"0x", 50),
    ("expired", "\"canceled\":[]", 2),
    ("split", "\"success\":true", 100),
    ("merge", "\"success\":true", 100),
    ("redeem", "\"success\":true", 100),
    ("split", "HTTP/1.1 400", 10),
    ("merge", "HTTP/1.1 400", 10),
    ("redeem", "HTTP/1.1 400", 10),
];

/// A server, two traders with a connection each, two markets that trade and two that are resolved.
/// With two shards each has one market of both kinds, and each connection is on another loop.
struct Scene {
    rig: Rig,
    clients: [TcpStream; 2],
    traders: [Trader; 2],
    markets: [RigMarket; 2],
    resolved: [RigMarket; 2],
    live: [VecDeque<Signed>; 2],
    random: Random,
    allocations: BTreeMap<&'static str, u64>,
    outcomes: [usize; OUTCOMES.len()],
    answer: Vec<u8>,
    /// Allocates once within every turn, to check that this is noticed.
    plants: bool,
    _data: tempfile::TempDir,
}

impl Scene {
    fn new(shards: u64, known_signers_bytes: u64) -> Self {
        let data = folder();
        let options = Options {
            auth_known_signers_bytes: known_signers_bytes,
            ..common::rig::options(data.path(), shards)
        };
        let mut rig = Rig::start(&options).unwrap();
        let port = rig.http().port();
        // Credentials are made on other loops and by the registrar, which is on ours.
        let traders = while_turning(&mut rig, || {
            let mut connection = Connection::open(port);
            [0, 1].map(|account| Trader::new(KEYS[account], &mut connection))
        });
        let owners = traders.each_ref().map(|trader| trader.address);
        rig.credit(&owners, Collateral(1_000_000_000_000)).unwrap();
        let [a, b, c, d] = [(); 4].map(|()| rig.market().unwrap());
        let apart = rig.shard_of(&a).unwrap() != rig.shard_of(&b).unwrap();
        assert_eq!(apart, shards == 2, "each connection trades on every shard");
        Self {
            clients: [connect(port), connect(port)],
            rig,
            traders,
            markets: [a, b],
            resolved: [c, d],
            live: [VecDeque::new(), VecDeque::new()],
            random: Random::new(7),
            allocations: BTreeMap::new(),
            outcomes: [0; OUTCOMES.len()],
            answer: vec![0; 256 << 10],
            plants: false,
            _data: data,
        }
    }

    /// Gets shares to merge and redeem, the largest answer into every place of each connection, and
    /// then a mixture like the one that is counted.
    fn warm_up(&mut self) {
        for who in 0..2 {
            for market in self.markets.into_iter().chain(self.resolved) {
                self.move_shares(who, "split", &market, 50_000_000_000);
            }
        }
        // The second trader's orders all trade, and such answers are the longest.
        for [first, second] in [[0, 1], [1, 0]] {
            for _ in 0..PLACES {
                self.post_crossing(first);
                self.post_crossing(second);
            }
        }
        self.live.iter_mut().for_each(VecDeque::clear);
        for market in self.resolved {
            self.rig.resolve(&market).unwrap();
        }
        for _ in 0..WARM_UP {
            self.act();
        }
        self.allocations.clear();
        self.outcomes = [0; OUTCOMES.len()];
    }

    /// Sends a request and turns the loops until its answer is here; counts only the turns.
    fn ask(&mut self, who: usize, kind: &'static str, bytes: &[u8]) -> String {
        self.clients[who].write_all(bytes).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut length = 0;
        loop {
            let before = COUNT.get();
            self.rig.turn();
            if self.plants {
                std::hint::black_box(Box::new(1_u64));
            }
            let count = COUNT.get() - before;
            if count != 0 {
                *self.allocations.entry(kind).or_default() += count;
            }
            match self.clients[who].read(&mut self.answer[length..]) {
                Ok(0) => panic!("the server closed the connection"),
                Ok(count) => length += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            if let Some(text) = whole(&self.answer[..length]) {
                for (count, (of, word, _)) in self.outcomes.iter_mut().zip(OUTCOMES) {
                    *count += usize::from(of == kind && text.contains(word));
                }
                return text;
            }
            assert!(Instant::now() < deadline, "no answer came");
        }
    }

    /// One request of a random kind.
    fn act(&mut self) {
        let who = usize::from(self.random.below(2) == 1);
        if LIVE_MAX < self.live[who].len() {
            return self.cancel_all(who);
        }
        match self.random.below(100) {
            0..45 => self.post(who),
            45..55 => {
                let count = 2 + self.random.below(BATCH_MAX - 1);
                let orders: Vec<Signed> = (0..count).map(|_| self.order(who).1).collect();
                self.post_batch(who, &orders);
            }
            55..70 => self.cancel(who),
            70..75 => self.cancel_unknown(who),
            75..80 => self.cancel_list(who),
            80..83 => self.cancel_all(who),
            83..86 => self.cancel_scope(who),
            86..89 => self.replace(who),
            89..92 => self.move_some(who, "split"),
            92..96 => self.move_some(who, "merge"),
            _ => self.move_some(who, "redeem"),
        }
    }

    /// A signed order of a random type, and the name of that type. The traders buy opposite
    /// outcomes, and sell what they have bought, so that their orders meet.
    fn order(&mut self, who: usize) -> (&'static str, Signed) {
        let market = *self.random.pick(&self.markets);
        let side = if self.random.below(3) == 0 { Side::Sell } else { Side::Buy };
        let kind = *self.random.pick(&["GTC", "GTC", "GTD", "FAK", "FOK", "post-only"]);
        let wish = Wish {
            token: market.tokens[who],
            side,
            price: 100 * (30 + self.random.below(41)),
            shares: 1_000_000 * (1 + self.random.below(20)),
            kind: if kind == "post-only" { "GTC" } else { kind },
            neg_risk: false,
        };
        let mut draft = self.traders[who].draft(&wish);
        draft.post_only = kind == "post-only";
        if kind == "GTD" {
            draft.expiration = now_ms() / 1_000 + 1 + self.random.below(3);
        }
        (kind, self.traders[who].seal(&draft))
    }

    fn post(&mut self, who: usize) {
        let (_, signed) = self.order(who);
        let request = self.traders[who].request("POST", "/order", &signed.body);
        let answer = self.ask(who, "order", &request);
        if self.random.below(10) == 0 {
            self.ask(who, "again", &request);
        }
        if answer.contains("\"live\"") {
            self.live[who].push_back(signed);
        }
    }

    /// A full batch that rests, or trades with the other trader's.
    fn post_crossing(&mut self, who: usize) {
        let wish = Wish::buy(self.markets[0].tokens[who], 6_000, 12_345_600);
        let orders: Vec<Signed> = (0..BATCH_MAX).map(|_| self.traders[who].sign(&wish)).collect();
        self.post_batch(who, &orders);
    }

    fn post_batch(&mut self, who: usize, orders: &[Signed]) {
        let bodies: Vec<&str> = orders.iter().map(|signed| signed.body.as_str()).collect();
        let body = format!("[{}]", bodies.join(","));
        let request = self.traders[who].request("POST", "/orders", &body);
        let answer = self.ask(who, "batch", &request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        self.live[who].extend(orders.iter().cloned());
    }

    fn cancel(&mut self, who: usize) {
        if let Some(signed) = self.live[who].pop_front() {
            let body = format!("{{\"orderID\":\"{}\"}}", signed.id_text);
            self.cancelled(who, "cancel", "/order", &body);
        }
    }

    /// Cancels an order that nobody has sent: it leaves a tombstone on every shard.
    fn cancel_unknown(&mut self, who: usize) {
        let body = format!("{{\"orderID\":\"0x{:064x}\"}}", self.random.next());
        self.cancelled(who, "stranger", "/order", &body);
    }

    /// Cancels some open orders, and one that nobody has sent.
    fn cancel_list(&mut self, who: usize) {
        let count = self.live[who].len().min(20);
        let mut ids: Vec<String> =
            self.live[who].drain(..count).map(|signed| format!("\"{}\"", signed.id_text)).collect();
        ids.push(format!("\"0x{:064x}\"", self.random.next()));
        ids.push(format!("\"0x{:064x}\"", self.random.next()));
        self.cancelled(who, "list", "/orders", &format!("[{}]", ids.join(",")));
    }

    /// Replaces some open orders by two low bids, some of which would still trade.
    fn replace(&mut self, who: usize) {
        let market = *self.random.pick(&self.markets);
        let count = self.live[who].len().min(3);
        let ids: Vec<String> =
            self.live[who].drain(..count).map(|signed| format!("\"{}\"", signed.id_text)).collect();
        let orders: Vec<Signed> = (0..2)
            .map(|_| {
                let price = 100 * (20 + self.random.below(15));
                let shares = 1_000_000 * (1 + self.random.below(20));
                self.traders[who].sign(&Wish::buy(market.tokens[who], price, shares))
            })
            .collect();
        let bodies: Vec<&str> = orders.iter().map(|signed| signed.body.as_str()).collect();
        let body = format!(
            "{{\"cancel\":[{}],\"place\":[{}],\"ifGone\":\"place\"}}",
            ids.join(","),
            bodies.join(",")
        );
        let request = self.traders[who].request("POST", "/replace", &body);
        let answer = self.ask(who, "replace", &request);
        if answer.starts_with("HTTP/1.1 200") {
            self.live[who].extend(orders);
        }
    }

    fn cancel_all(&mut self, who: usize) {
        self.cancelled(who, "all", "/cancel-all", "");
        self.live[who].clear();
    }

    /// Cancels all orders of one market, or of one token.
    fn cancel_scope(&mut self, who: usize) {
        let market = *self.random.pick(&self.markets);
        let body = if self.random.below(2) == 0 {
            format!("{{\"market\":\"{}\"}}", hex_text(&market.condition.0))
        } else {
            format!("{{\"asset_id\":\"{}\"}}", common::trader::token_text(&market.tokens[who]))
        };
        self.cancelled(who, "scope", "/cancel-market-orders", &body);
    }

    /// Rests orders of both traders until they have expired, which cancels of all of them then find.
    fn expire(&mut self) {
        let orders = [0, 1].map(|who| self.rest_for_seconds(who));
        let over_ms = 1_000 * (now_ms() / 1_000 + EXPIRES_S);
        // What has expired leaves before the next order at the latest.
        let mut is_over = false;
        while !is_over {
            is_over = over_ms <= now_ms();
            for (who, orders) in orders.iter().enumerate() {
                let request = self.traders[who].request("POST", "/order", &orders[0].body);
                self.ask(who, "again", &request);
            }
        }
        for (who, orders) in orders.iter().enumerate() {
            let ids: Vec<String> = orders.iter().map(|signed| format!("\"{}\"", signed.id_text)).collect();
            self.cancelled(who, "expired", "/orders", &format!("[{}]", ids.join(",")));
        }
    }

    /// Rests orders that expire [`EXPIRES_S`] after they are signed, and that nobody meets.
    fn rest_for_seconds(&mut self, who: usize) -> Vec<Signed> {
        let (token, side) = (self.markets[0].tokens[who], Side::Buy);
        let wish = Wish { kind: "GTD", ..Wish::of(side, token, 100, 100_000_000) };
        let rest = |_| {
            let mut draft = self.traders[who].draft(&wish);
            draft.expiration = now_ms() / 1_000 + EXPIRES_S;
            let signed = self.traders[who].seal(&draft);
            let request = self.traders[who].request("POST", "/order", &signed.body);
            let answer = self.ask(who, "order", &request);
            assert!(answer.contains("\"live\""), "{answer}");
            signed
        };
        (0..10).map(rest).collect()
    }

    fn cancelled(&mut self, who: usize, kind: &'static str, path: &str, body: &str) {
        let request = self.traders[who].request("DELETE", path, body);
        let answer = self.ask(who, kind, &request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn move_some(&mut self, who: usize, kind: &'static str) {
        let markets = if kind == "redeem" { self.resolved } else { self.markets };
        let market = *self.random.pick(&markets);
        // Now and then more than anybody has.
        let most = if self.random.below(8) == 0 { 1_000_000_000_000_000 } else { 1_000_000 };
        let amount = most * (1 + self.random.below(20));
        self.move_shares(who, kind, &market, amount);
    }

    fn move_shares(&mut self, who: usize, kind: &'static str, market: &RigMarket, amount: u64) {
        let act = ["split", "merge", "redeem"].iter().position(|name| *name == kind).unwrap();
        let condition = hex_text(&market.condition.0);
        let act = u8::try_from(act).unwrap();
        let request = self.traders[who].act_request(act, &condition, amount);
        self.ask(who, kind, &request);
    }
}

/// The answer, once its last byte is here.
fn whole(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length:"))?;
    (body.len() == length.trim().parse::<usize>().ok()?).then(|| text.to_owned())
}

#[track_caller]
fn check(shards: u64, known_signers_bytes: u64) -> Scene {
    let mut scene = Scene::new(shards, known_signers_bytes);
    scene.warm_up();
    for _ in 0..COUNTED {
        scene.act();
    }
    scene.expire();
    for (count, (kind, word, least)) in scene.outcomes.iter().zip(OUTCOMES) {
        assert!(least <= *count, "{kind}: {word} only {count} times");
    }
    let none = BTreeMap::new();
    assert_eq!(scene.allocations, none, "allocations within the turns of {COUNTED} requests, by kind");
    scene
}

#[test]
fn nothing_on_the_order_path_allocates_with_one_shard() {
    check(1, 0);
}

#[test]
fn nothing_on_the_order_path_allocates_where_requests_cross_between_two_shards() {
    check(2, 0);
}

#[test]
fn nothing_on_the_order_path_allocates_where_one_of_two_signers_is_known() {
    let mut scene = check(1, KnownSigners::TABLE_BYTES);
    let tally = scene.rig.known_signers(0).unwrap().expect("there is room for one");
    assert_eq!(tally.tables, 1, "one stays, the other goes on asking for its place");
    assert!(COUNTED as u64 / 4 < tally.hits, "{tally:?}");
    assert!(COUNTED as u64 / 4 < tally.misses, "{tally:?}");
}

#[test]
fn a_planted_allocation_is_counted() {
    let mut scene = Scene::new(1, 0);
    scene.warm_up();
    scene.plants = true;
    scene.cancel_all(0);
    assert!(1 <= scene.allocations["all"]);
}
