//! Every client knows what it has, whatever breaks: makers and takers trade on real connections while their
//! connections are cut and the exchange is killed and restarted, again and again.
//!
//! Each client keeps a ledger of its own, from answers and its stream alone (`chaos/ledger.rs`). A request that was
//! not answered it sends again, the same signed bytes; or it leaves the outcome to the stream, or cancels the order
//! by its id, which also settles it. A stream that broke continues after the last number; where the exchange cannot
//! tell what was missed, the client starts again from `GET /account`. At the end each ledger must agree with
//! everything that the exchange says about that client (`chaos/compare.rs`): each order, each trade, each balance;
//! and every answer must have been kept.
//!
//! The exchange's clock stands still until the test moves it, so that dead-man switches go off when the test wants
//! it. What happens next depends on how much was done, never on how much time went by.
//!
//! `OUTCRY_CHAOS_ROUNDS` is how many times the process ends (default 9, at least 4), `OUTCRY_SEED` repeats the choices.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]
#![allow(unreachable_pub, reason = "every test is a crate of its own")]

#[path = "chaos/acts.rs"]
mod acts;
#[path = "chaos/client.rs"]
mod client;
mod common;
#[path = "chaos/compare.rs"]
mod compare;
#[path = "chaos/gate.rs"]
mod gate;
#[path = "chaos/ledger.rs"]
mod ledger;
#[path = "chaos/link.rs"]
mod link;

use client::{Client, Role};
use common::exchange::{Exchange, Market, Plan, journal};
use common::random::Random;
use common::{folder, text};
use compare::{Told, differences};
use gate::{Gate, Socket};
use ledger::{Ledger, State, Word};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);

const ROLES: [Role; 6] = [
    Role::Maker,
    Role::MakerOnConnection,
    Role::MakerOnStream,
    Role::MakerWithSwitch,
    Role::Taker,
    Role::Taker,
];

/// The collateral of every test account in `dev`, in millionths.
const CREDITED: i128 = 100_000_000_000;

/// The third end is a stop, after which a client starts again from its account; the fourth gives it time to.
const ROUNDS_MIN: u64 = 4;

/// The fewest acts of all clients together between two ends of the process, and how many more there may be.
const ACTS_MIN: u64 = 1_000;
const ACTS_SPREAD: u64 = 1_000;

/// One act in this many is followed by a cut of somebody's socket.
const CUT_ONE_IN: u64 = 40;

/// Longer than a switch waits for a beat, and shorter than a signed request may be late.
const SWITCHES_GO_OFF_MS: i64 = 16_000;

/// The disturbances that clients went through.
#[derive(Debug, Default)]
struct Trouble {
    cut_inside: AtomicU64,
    cut_behind: AtomicU64,
    unknown: AtomicU64,
    events: AtomicU64,
    replays: AtomicU64,
    recoveries: AtomicU64,
    repeats: AtomicU64,
    refused: Mutex<BTreeMap<String, u64>>,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Killed,
    /// Stopped after a snapshot during which one client had no stream, so that it cannot be told what it missed.
    Stopped,
}

/// The acts by which clients may be ahead of the storm. While the storm waits for a snapshot, the state to be
/// snapshotted must not grow all the time.
const ACTS_AHEAD: usize = 500;

struct Storm<'a> {
    /// Each start takes the next one in turn.
    plans: &'a [Plan; 2],
    starts: usize,
    exchange: Option<Exchange>,
    gate: &'a Gate,
    random: Random,
    /// One message for each act of a client.
    acts: Receiver<()>,
}

impl Storm<'_> {
    fn run(&mut self, rounds: u64) {
        for round in 0..rounds {
            let end = if round % 3 == 2 { End::Stopped } else { End::Killed };
            if end == End::Stopped {
                self.gate.hold(self.whom());
            }
            let wanted = ACTS_MIN + self.random.below(ACTS_SPREAD);
            self.watch(wanted / 2);
            if self.random.below(2) == 0 {
                let now_ms = self.exchange.as_ref().unwrap().advance(SWITCHES_GO_OFF_MS);
                self.gate.moved(now_ms);
            }
            if end == End::Stopped || self.random.below(4) == 0 {
                self.exchange.as_ref().unwrap().operator(&["snapshot"]);
            }
            self.watch(wanted - wanted / 2);
            self.restart(end);
        }
        self.gate.end();
    }

    fn whom(&mut self) -> usize {
        usize::try_from(self.random.below(ROLES.len() as u64)).unwrap()
    }

    /// Lets clients act, and cuts their sockets.
    fn watch(&mut self, acts: u64) {
        // Acts that were done before do not count.
        while self.acts.try_recv().is_ok() {}
        for _ in 0..acts {
            self.acts.recv_timeout(PATIENCE).expect("clients go on");
            if self.random.below(CUT_ONE_IN) == 0 {
                let (whom, which) = (self.whom(), *self.random.pick(&[Socket::Requests, Socket::Stream]));
                self.gate.cut(whom, which);
            }
        }
    }

    fn restart(&mut self, end: End) {
        self.gate.close();
        let mut exchange = self.exchange.take().expect("one runs");
        match end {
            End::Killed => exchange.kill(),
            End::Stopped => exchange.stop(),
        }
        self.starts += 1;
        let exchange = self.plans[self.starts % self.plans.len()].start();
        self.gate.open(exchange.http, exchange.advance(0));
        self.exchange = Some(exchange);
    }
}

/// An exchange with markets on both of its shards, and the folder of its data.
struct Site {
    folder: tempfile::TempDir,
    /// One directory, with the feed on the reader's loop and on a loop of its own.
    plans: [Plan; 2],
    exchange: Exchange,
    markets: Vec<Market>,
}

impl Site {
    fn start() -> Self {
        let folder = folder();
        let plans = ["auto", "own"].map(|feed| {
            Plan::dev(folder.path())
                .words(["--clock", "manual"])
                .set("cpu.policy=unpinned")
                .set("cpu.shards=2")
                .set(&format!("cpu.feed={feed}"))
                .set("journal.hash_every_frames=64")
                .set("journal.log_bytes=8388608")
                .set("journal.durability=committed")
        });
        let exchange = plans[0].start();
        let markets = ["Does it rain?", "Does it snow?"].map(|question| exchange.market(question));
        Self { folder, plans, exchange, markets: markets.into() }
    }
}

/// Clients with shares of every market.
fn clients<'a>(
    roles: &[Role],
    markets: &'a [Market],
    gate: &'a Gate,
    trouble: &'a Trouble,
    random: &mut Random,
) -> Vec<Client<'a>> {
    let number = |(number, role): (usize, &Role)| {
        let own = Random::new(random.below(u64::MAX));
        let mut client = Client::new(number, *role, own, markets, gate, trouble);
        assert_eq!(client.ledger.balances.collateral, CREDITED);
        // The client with little collateral left cannot cover all of its buys.
        let pairs = if *role == Role::MakerOnStream { 49_900 } else { 300 };
        for market in 0..markets.len() {
            client.pairs_of(0, market, pairs * 1_000_000);
        }
        client
    };
    roles.iter().enumerate().map(number).collect()
}

/// Acts until the storm is over.
fn trade<'a>(mut client: Client<'a>, done: &SyncSender<()>) -> Client<'a> {
    client.link.calm = false;
    while !client.link.gate.is_ending() {
        client.act();
        let _ = done.send(());
    }
    client.link.calm = true;
    client
}

/// What both sides say about a client once nothing happens any more.
fn both(client: &mut Client<'_>) -> (Ledger, Told) {
    client.catch_up();
    let told = client.everything();
    (client.ledger.clone(), told)
}

/// Compares each client's ledger with the exchange, and the sum of all with what was credited.
fn assert_all_agree(clients: &mut [Client<'_>], markets: &[Market]) {
    for client in &mut *clients {
        let (ledger, told) = both(client);
        let found = differences(&ledger, &told);
        assert!(found.is_empty(), "{:?}:\n{}", client.role, found.join("\n"));
    }
    let sum = |token: &String| -> i128 {
        clients
            .iter()
            .map(|client| client.ledger.balances.shares.get(token).copied().unwrap_or_default())
            .sum()
    };
    let mut all: i128 = clients.iter().map(|client| client.ledger.balances.collateral).sum();
    for market in markets {
        let [pairs, others] = [&market.tokens[0], &market.tokens[1]].map(sum);
        assert_eq!(pairs, others, "shares are pairs");
        all += pairs;
    }
    assert_eq!(all, CREDITED * clients.len() as i128, "what was credited is there");
}

#[test]
fn every_client_knows_what_it_has_whatever_breaks() {
    let rounds: u64 = std::env::var("OUTCRY_CHAOS_ROUNDS").map_or(9, |text| text.parse().unwrap());
    assert!(ROUNDS_MIN <= rounds, "OUTCRY_CHAOS_ROUNDS: got {rounds}; allowed: {ROUNDS_MIN} or more");
    let mut random = Random::printed("chaos");
    let Site { folder: _folder, plans, exchange, markets } = Site::start();
    let (gate, trouble) = (Gate::closed(ROLES.len()), Trouble::default());
    gate.open(exchange.http, exchange.advance(0));
    let clients = clients(&ROLES, &markets, &gate, &trouble, &mut random);
    let (done, acts) = sync_channel(ACTS_AHEAD);
    let random = Random::new(random.below(u64::MAX));
    let mut storm = Storm { plans: &plans, starts: 0, exchange: Some(exchange), gate: &gate, random, acts };
    let mut clients: Vec<Client<'_>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(|| trade(client, &done))).collect();
        storm.run(rounds);
        // A client that waits to be counted goes on until it ends.
        storm.acts = sync_channel(0).1;
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // After one more start nothing is on its way, not even what a lost connection takes with it.
    storm.restart(End::Killed);
    assert_all_agree(&mut clients, &markets);
    let orders: usize = clients.iter().map(|client| client.ledger.orders.len()).sum();
    let trades: usize = clients.iter().map(|client| client.ledger.trades.len()).sum();
    eprintln!("{rounds} ends, {orders} orders, {trades} trades of a client, {trouble:?}");
    drop(clients);
    storm.exchange.take().expect("one runs").stop();
    journal("verify", &plans[0].data_dir());
    for (what, count) in [
        ("a trade", trades as u64),
        ("an unknown outcome", trouble.unknown.into_inner()),
        ("a replay", trouble.replays.into_inner()),
        ("a recovery", trouble.recoveries.into_inner()),
        ("a repeated order", trouble.repeats.into_inner()),
    ] {
        assert!(0 < count, "{what} did not happen");
    }
}

/// A change of a ledger that the comparison has to find.
type Mistake = (&'static str, fn(&mut Ledger));

const MISTAKES: [Mistake; 13] = [
    ("a trade is missed", |ledger| drop(ledger.trades.pop_first())),
    ("a trade is counted that never was", |ledger| {
        let trade = ledger.trades.values().next().unwrap().clone();
        ledger.trades.insert("another".to_owned(), trade);
    }),
    ("a leg is another's", |ledger| {
        ledger.trades.values_mut().next().unwrap().legs[0].shares += 1;
    }),
    ("a fill is counted twice", |ledger| first(ledger, State::Filled).filled *= 2),
    ("an end is missed", |ledger| first(ledger, State::Ended).state = State::Live),
    ("a fill is missed", |ledger| first(ledger, State::Filled).state = State::Live),
    ("a placement is missed", |ledger| first(ledger, State::Live).state = State::Signed),
    ("an order is taken that was not", |ledger| first(ledger, State::Signed).state = State::Ended),
    ("a refusal is not kept", |ledger| first(ledger, State::Live).said = [Word::Refused].into()),
    ("a cancel is not kept", |ledger| first(ledger, State::Filled).said = [Word::Cancelled].into()),
    ("collateral is off by a millionth", |ledger| ledger.balances.collateral -= 1),
    ("a split is counted twice", |ledger| ledger.untraded.collateral -= 1),
    ("shares are off by a millionth", |ledger| *ledger.balances.shares.values_mut().next().unwrap() += 1),
];

fn first(ledger: &mut Ledger, state: State) -> &mut ledger::Order {
    ledger.orders.values_mut().find(|order| order.state == state).expect("there is one of every kind")
}

#[test]
fn whatever_a_client_has_wrong_is_found() {
    let mut random = Random::printed("mistakes");
    let Site { folder: _folder, exchange, markets, .. } = Site::start();
    let (gate, trouble) = (Gate::closed(2), Trouble::default());
    gate.open(exchange.http, exchange.advance(0));
    let mut clients = clients(&[Role::Maker, Role::Taker], &markets, &gate, &trouble, &mut random);
    // An order of every kind, whatever chance has left.
    let lacks = |client: &Client, state| client.ledger.orders.values().all(|order| order.state != state);
    let mut acts = 0;
    while acts < 400 || lacks(&clients[0], State::Filled) || lacks(&clients[0], State::Ended) {
        clients.iter_mut().for_each(Client::act);
        acts += 1;
    }
    clients[0].sign(0, true, &["GTC"]);
    // The taker may just have met the last one: only orders that are live once everything was reported count.
    clients[0].catch_up();
    while clients[0].ledger.live().next().is_none() {
        clients[0].order();
        clients[0].catch_up();
    }
    assert_all_agree(&mut clients, &markets);
    let (ledger, told) = both(&mut clients[0]);
    for (what, make) in MISTAKES {
        let mut wrong = ledger.clone();
        make(&mut wrong);
        assert!(!differences(&wrong, &told).is_empty(), "{what}");
    }
    // A wrong statement of the exchange is found as well.
    let mut wrong = told.clone();
    wrong.trades.push(told.trades[0].clone());
    assert!(!differences(&ledger, &wrong).is_empty(), "a trade is listed twice");
    let mut wrong = told.clone();
    wrong.live.pop();
    assert!(!differences(&ledger, &wrong).is_empty(), "a live order is not listed");
    // So is an event that is missing or repeated.
    let trade = told.trades.iter().find(|trade| ledger.trades[text(&trade["id"])].streamed).unwrap();
    let (id, order) = ledger.live().next().unwrap();
    let end = json!({ "event_type": "order", "type": "CANCELLATION", "status": "CANCELED", "id": id });
    for (what, event, filled, behind, good) in [
        ("an end", &end, order.filled, 1, true),
        ("an end behind another", &end, order.filled, 2, false),
        ("an end again", &end, order.filled, 0, false),
        ("an end of more", &end, order.filled + 1, 1, false),
        ("a trade again", trade, 0, 1, false),
    ] {
        let mut event = event.clone();
        event["sequence"] = json!(ledger.sequence + behind);
        if event["event_type"].is_null() {
            event["event_type"] = json!("trade");
        } else {
            event["size_matched"] = json!(format!("{}.{:06}", filled / 1_000_000, filled % 1_000_000));
        }
        assert_eq!(ledger.clone().note(&event).is_ok(), good, "{what}");
    }
    exchange.stop();
}
