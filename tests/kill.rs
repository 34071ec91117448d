//! Nothing that was acknowledged is lost: the real binary is killed under load, again and again.
//!
//! In each round two traders place and cancel on markets of two shards, and keep a list of the
//! answers. At an instant that a printed seed chooses, the process is killed with SIGKILL. After the
//! restart every order, cancel and trade on the lists must exist, none of them twice, and recovery
//! must have met the state hashes in the log. In half of the rounds the log file is deleted before
//! the restart, as a reboot would. Then `durable` still keeps everything, and `committed` keeps a
//! clean prefix and names the cut: everything before it is there, and it is not before what the disk was said to hold.
//!
//! `OUTCRY_KILL_ROUNDS` is the number of rounds (default 3), `OUTCRY_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan, journal};
use common::folder;
use common::random::Random;
use common::trader::{KEYS, Trader, Wish, micro, token};
use common::wire::{Answer, Connection};
use outcry::domain::{Side, TokenId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Acknowledged acts before the kill; the instant is a little after the last of them.
const ACTS_MIN: u64 = 200;

/// How much later: up to this many more acts, and up to this many microseconds.
const ACTS_SPREAD: u64 = 200;
const DELAY_US_MAX: u64 = 3_000;

/// Requests that one trader has in flight, so that the kill always meets some.
const PIPELINED: usize = 4;

/// Rounds on one data directory before a new one is made: history grows, verification with it.
const ROUNDS_ON_ONE_DIRECTORY: u64 = 8;

/// One acknowledged act.
#[derive(Clone, Debug)]
enum Act {
    /// An order got a frame: its id, what had been matched when it was answered, and its trade.
    Placed { id: String, matched: u64, trade: Option<String> },
    /// A cancel removed this order.
    Cancelled { id: String },
}

/// An act as its answer told it.
struct Told {
    /// The number of the request that was answered.
    number: u64,
    /// How far the answer goes in the log.
    position: u64,
    act: Act,
}

/// A trader and the list of the answers that it got, in order.
struct Party {
    trader: Trader,
    acts: Vec<Told>,
    answered: u64,
    live: Vec<String>,
    random: Random,
}

/// A request that has not been answered yet.
enum Sent {
    Place { id: String },
    Cancel { id: String },
}

struct Market {
    tokens: [TokenId; 2],
    neg_risk: bool,
}

/// One directory with the exchange's data, and the parties that trade on it.
struct Scene {
    _folder: tempfile::TempDir,
    plan: Plan,
    log_path: PathBuf,
    parties: Vec<Party>,
    markets: Vec<Market>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    Durable,
    Committed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogFile {
    Kept,
    Deleted,
}

#[test]
fn everything_acknowledged_survives_a_kill_at_any_instant() {
    let rounds: u64 = std::env::var("OUTCRY_KILL_ROUNDS").map_or(3, |text| text.parse().unwrap());
    let mut random = Random::printed("kill");
    let mut scene = Scene::new(&mut random);
    for round in 0..rounds {
        if round % ROUNDS_ON_ONE_DIRECTORY == ROUNDS_ON_ONE_DIRECTORY - 1 {
            scene = Scene::new(&mut random);
        }
        // Durable with the log kept, committed with it deleted, and so on: all four combinations in
        // turn.
        let durability = if round % 2 == 0 { Durability::Durable } else { Durability::Committed };
        let log_file = if (round / 2 + round) % 2 == 0 { LogFile::Kept } else { LogFile::Deleted };
        scene.round(round, durability, log_file, &mut random);
    }
}

impl Scene {
    fn new(random: &mut Random) -> Self {
        let folder = folder();
        let memory = PathBuf::from("/dev/shm");
        let name = format!("outcry-kill-{}-{}", std::process::id(), random.below(u64::MAX));
        let log_path = if memory.is_dir() { memory.join(name) } else { folder.path().join("log") };
        let plan = Plan::dev(folder.path())
            .set("cpu.shards=2")
            .set("journal.hash_every_frames=64")
            .set("journal.log_bytes=8388608")
            .set(&format!("journal.log_path={}", log_path.display()));
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let parties = [1, 2]
            .map(|account| Party {
                trader: Trader::new(KEYS[account], &mut connection),
                acts: Vec::new(),
                answered: 0,
                live: Vec::new(),
                random: Random::new(random.below(u64::MAX)),
            })
            .into();
        let markets = markets(&exchange);
        exchange.stop();
        Self { _folder: folder, plan, log_path, parties, markets }
    }

    fn round(&mut self, round: u64, durability: Durability, log_file: LogFile, random: &mut Random) {
        let setting = match durability {
            Durability::Durable => "journal.durability=durable",
            Durability::Committed => "journal.durability=committed",
        };
        let plan = self.plan.clone().set(setting);
        let mut exchange = plan.start();
        let before: Vec<usize> = self.parties.iter().map(|party| party.acts.len()).collect();
        let held = self.trade_until_killed(&mut exchange, random);
        if log_file == LogFile::Deleted {
            std::fs::remove_file(&self.log_path).unwrap();
        }
        self.assert_enough_was_done(&before, held);

        let exchange = plan.start();
        let output = exchange.output();
        let is_cut = durability == Durability::Committed && log_file == LogFile::Deleted;
        let cut = is_cut.then(|| end_of_journal(&output));
        if let Some(cut) = cut {
            assert!(held <= cut, "the disk held {held} and the journal ends at {cut}\n{output}");
        }
        let mut connection = exchange.connect();
        for party in &mut self.parties {
            party.check(&mut connection, cut);
        }
        exchange.stop();
        let met = hashes_met(&output);
        assert!(0 < met, "recovery met no state hash\n{output}");
        journal("verify", &self.plan.data_dir());
        let acts: usize = self
            .parties
            .iter()
            .zip(&before)
            .map(|(party, before)| party.acts.len() - before.min(&party.acts.len()))
            .sum();
        eprintln!("round {round}: {durability:?}, log {log_file:?}: {acts} acts there, {met} hashes met");
    }

    /// Returns a position up to which the disk was said to hold the log before the kill, with acts of this round.
    fn trade_until_killed(&mut self, exchange: &mut Exchange, random: &mut Random) -> u64 {
        let acts = AtomicU64::new(0);
        let wanted = ACTS_MIN + random.below(ACTS_SPREAD);
        let delay = Duration::from_micros(random.below(DELAY_US_MAX));
        let markets = &self.markets;
        let port = exchange.http;
        std::thread::scope(|scope| {
            for party in &mut self.parties {
                // Here, as what the others do may be enough before a thread begins.
                let connection = Connection::open(port);
                scope.spawn(|| party.trade(connection, markets, &acts));
            }
            let deadline = std::time::Instant::now() + Duration::from_mins(1);
            let (mut claimed, mut held) = (None, false);
            loop {
                let done = acts.load(Ordering::Relaxed);
                if claimed.is_none() && wanted / 2 <= done {
                    claimed = Some(exchange.metric("outcry_claimed_position"));
                }
                held = held
                    || claimed.is_some_and(|claimed| claimed <= exchange.metric("outcry_durable_position"));
                if held && wanted <= done {
                    break;
                }
                if deadline < std::time::Instant::now() {
                    exchange.kill();
                    panic!("only {done} acts in a minute, held: {held}\n{}", exchange.output());
                }
                std::thread::sleep(Duration::from_micros(100));
            }
            std::thread::sleep(delay);
            exchange.kill();
            claimed.expect("it is held")
        })
    }

    fn assert_enough_was_done(&self, before: &[usize], held: u64) {
        let new = || self.parties.iter().zip(before).flat_map(|(party, &before)| &party.acts[before..]);
        let fills = new().filter(|told| matches!(told.act, Act::Placed { trade: Some(_), .. })).count();
        let cancels = new().filter(|told| matches!(told.act, Act::Cancelled { .. })).count();
        assert!(ACTS_MIN <= new().count() as u64, "too few acts");
        let held = new().filter(|told| told.position <= held).count() as u64;
        assert!(ACTS_MIN / 2 <= held, "too few acts below what the disk holds: {held}");
        assert!(0 < fills, "no fill among the acts");
        assert!(0 < cancels, "no cancel among the acts");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.log_path);
    }
}

impl Party {
    /// Places and cancels until the connection breaks.
    fn trade(&mut self, mut connection: Connection, markets: &[Market], acts: &AtomicU64) {
        let mut flight = std::collections::VecDeque::new();
        loop {
            while flight.len() < PIPELINED {
                let (sent, bytes) = self.next(markets);
                if connection.send(&bytes).is_err() {
                    return;
                }
                flight.push_back(sent);
            }
            let Ok(answer) = connection.answer() else { return };
            let sent = flight.pop_front().expect("as many answers as requests");
            let known = self.acts.len();
            self.told(&sent, &answer);
            acts.fetch_add((self.acts.len() - known) as u64, Ordering::Relaxed);
        }
    }

    fn next(&mut self, markets: &[Market]) -> (Sent, Vec<u8>) {
        if !self.live.is_empty() && self.random.below(4) == 0 {
            let index = usize::try_from(self.random.below(self.live.len() as u64)).unwrap();
            let id = self.live.swap_remove(index);
            let bytes = self.trader.request("DELETE", "/order", &format!("{{\"orderID\":\"{id}\"}}"));
            return (Sent::Cancel { id }, bytes);
        }
        let market = self.random.pick(markets);
        let side = if self.random.below(4) == 0 { Side::Sell } else { Side::Buy };
        let kind = if self.random.below(4) == 0 { "FAK" } else { "GTC" };
        let wish = Wish {
            token: *self.random.pick(&market.tokens),
            side,
            price: 4_500 + 100 * self.random.below(11),
            shares: 1_000_000 * (5 + self.random.below(5)),
            kind,
            neg_risk: market.neg_risk,
        };
        let signed = self.trader.sign(&wish);
        let bytes = self.trader.request("POST", "/order", &signed.body);
        (Sent::Place { id: signed.id_text }, bytes)
    }

    fn told(&mut self, sent: &Sent, answer: &Answer) {
        let body = answer.json();
        self.answered += 1;
        let mut keep = |act| {
            let position = answer.header("X-Outcry-Seq").expect("it says how far it goes").parse().unwrap();
            self.acts.push(Told { number: self.answered, position, act });
        };
        match sent {
            Sent::Place { id } if answer.status == 200 => {
                assert!(body["orderID"] == id.as_str(), "{body}");
                let trade = body["tradeIDs"].as_array().and_then(|ids| ids.first()).map(text_of);
                let amount = |name: &str| micro(body[name].as_str().unwrap());
                let matched = amount("takingAmount").max(amount("makingAmount"));
                keep(Act::Placed { id: id.clone(), matched, trade });
                self.live.push(id.clone());
            }
            Sent::Cancel { id } if body["canceled"].as_array().is_some_and(|ids| !ids.is_empty()) => {
                keep(Act::Cancelled { id: id.clone() });
            }
            Sent::Place { .. } | Sent::Cancel { .. } => {
                // With `committed` the log may run full, until the disk has more of it.
                let is_busy = answer.status == 503 && body["code"] == "busy";
                assert!(answer.status < 500 || is_busy, "{} {body}", answer.status);
            }
        }
    }

    /// Compares the list with what the exchange shows; after a cut at a position, shortens it to what is there.
    ///
    /// The requests of one connection are executed in the order in which they were sent, on any
    /// shard. So a cut leaves a prefix of its acts, with all that lie before it in the log.
    fn check(&mut self, connection: &mut Connection, cut: Option<u64>) {
        let trades = self.trader.pages(connection, "/data/trades");
        let trade_ids: BTreeSet<String> = trades.iter().map(|trade| text_of(&trade["id"])).collect();
        assert!(trade_ids.len() == trades.len(), "a trade is listed twice");
        let live = self.trader.pages(connection, "/data/orders");
        let live_ids: BTreeSet<String> = live.iter().map(|order| text_of(&order["id"])).collect();
        assert!(live_ids.len() == live.len(), "an order is listed twice");
        let filled = filled(&trades);

        let acts = std::mem::take(&mut self.acts);
        let mut first_lost = None;
        for told in acts {
            let Told { number, position, act } = &told;
            let path = format!("/data/order/{}", act.id());
            let answer = self.trader.ask(connection, "GET", &path, "").unwrap();
            if answer.status == 200 && act.holds(&answer.json(), &trade_ids, &filled) {
                assert!(first_lost.is_none(), "a hole: {number} is there, {first_lost:?} is not: {act:?}");
                self.acts.push(told);
            } else {
                let body = answer.text();
                let is_behind = cut.is_some_and(|cut| cut < *position);
                assert!(is_behind, "lost: {act:?} at {position}, cut at {cut:?}\n{} {body}", answer.status);
                first_lost = first_lost.or(Some(*number));
            }
        }
        self.live.retain(|id| live_ids.contains(id));
    }
}

impl Act {
    fn id(&self) -> &str {
        match self {
            Self::Placed { id, .. } | Self::Cancelled { id } => id,
        }
    }

    /// True if the exchange's record shows at least what the trader was answered.
    fn holds(&self, record: &Value, trades: &BTreeSet<String>, filled: &BTreeMap<String, u64>) -> bool {
        let id = text_of(&record["id"]);
        let matched = micro(record["size_matched"].as_str().unwrap());
        assert!(
            filled.get(&id).copied().unwrap_or(0) == matched,
            "{id} matched {matched}, its trades add up to {:?}",
            filled.get(&id)
        );
        match self {
            Self::Placed { trade, matched: told, .. } => {
                (*told == 0 || 0 < matched) && trade.as_ref().is_none_or(|trade| trades.contains(trade))
            }
            Self::Cancelled { .. } => record["status"].as_str().unwrap().starts_with("CANCELED"),
        }
    }
}

/// How much of each order was filled, from the trades that name it as taker or maker.
fn filled(trades: &[Value]) -> BTreeMap<String, u64> {
    let mut filled = BTreeMap::new();
    let mut add = |id: &Value, size: &Value| {
        *filled.entry(text_of(id)).or_insert(0) += micro(size.as_str().unwrap());
    };
    for trade in trades {
        add(&trade["taker_order_id"], &trade["size"]);
        for maker in trade["maker_orders"].as_array().unwrap() {
            add(&maker["order_id"], &maker["matched_amount"]);
        }
    }
    filled
}

fn markets(exchange: &Exchange) -> Vec<Market> {
    let page = exchange.read("/markets");
    let open = page["data"].as_array().unwrap().iter().filter(|row| row["accepting_orders"] == true);
    let markets: Vec<_> = open
        .map(|row| Market {
            tokens: [0, 1].map(|index| token(row["tokens"][index]["token_id"].as_str().unwrap())),
            neg_risk: row["neg_risk"] == true,
        })
        .collect();
    assert!(2 <= markets.len(), "two shards need two markets");
    markets
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The number of state hashes that recovery says it met.
fn hashes_met(output: &str) -> u64 {
    let (before, _) = output.split_once(" state hashes").unwrap_or_else(|| panic!("{output}"));
    before.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{output}"))
}

/// Where the journal ends by what a start says whose log is gone.
fn end_of_journal(output: &str) -> u64 {
    let (_, end) = output.split_once("the journal ends at position ").unwrap_or_else(|| panic!("{output}"));
    end.split(',').next().unwrap().parse().unwrap_or_else(|_| panic!("{output}"))
}
