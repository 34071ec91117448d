//! What one turn of a trading loop does first, and how much of it: cancels before everything else, never more
//! than two signature checks, each answer before the next check, and streams last. And what is between the turns
//! of two loops.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;
#[path = "turns/fair.rs"]
mod fair;
#[path = "turns/left.rs"]
mod left;
#[path = "turns/parts.rs"]
mod parts;
#[path = "turns/rest.rs"]
mod rest;

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use common::folder;
use common::rig::{arrived, connect, while_turning};
use common::trader::{KEYS, Signed, Trader, Wish, hex_text, token_text};
use common::wire::{Connection, upgrade};
use outcry::domain::{Collateral, TokenId};
use outcry::server::plan::options::Options;
use outcry::server::rig::Rig;
use rustix::event::epoll;

/// Orders in a batch, and the checks of one turn.
const BATCH: usize = 15;
const CHECKS_PER_TURN: usize = 2;
const PATIENCE: Duration = Duration::from_mins(2);

fn rig(shards: u64, ingress: u64) -> (Rig, tempfile::TempDir) {
    let data = folder();
    (Rig::start(&options(&data, shards, ingress)).unwrap(), data)
}

fn options(data: &tempfile::TempDir, shards: u64, ingress: u64) -> Options {
    Options { cpu_ingress: vec![ingress.to_string()], ..common::rig::options(data.path(), shards) }
}

/// A trader with collateral, whose credentials the rig has made.
fn trader(rig: &mut Rig) -> Trader {
    let port = rig.http().port();
    let trader = while_turning(rig, || Trader::new(KEYS[0], &mut Connection::open(port)));
    rig.credit(&[trader.address], Collateral(1_000_000_000)).unwrap();
    trader
}

fn bid(token: TokenId, price: u64) -> Wish<'static> {
    Wish::buy(token, price, 5_000_000)
}

/// Turns until something arrived; returns how many turns that took.
fn turn_until(rig: &mut Rig, client: &mut TcpStream) -> (usize, String) {
    let deadline = Instant::now() + PATIENCE;
    for turns in 1.. {
        rig.turn();
        let text = arrived(client);
        if !text.is_empty() {
            return (turns, text);
        }
        assert!(Instant::now() < deadline, "no answer came");
    }
    unreachable!("the loop ends by an answer or by the deadline")
}

#[test]
fn a_cancel_overtakes_a_batch_whose_signatures_take_many_turns() {
    for ingress in [0, 1] {
        a_cancel_overtakes_a_batch(ingress);
    }
}

/// With the sockets on the shard's loop, or on a loop of their own.
fn a_cancel_overtakes_a_batch(ingress: u64) {
    let (mut rig, _data) = rig(1, ingress);
    let port = rig.http().port();
    let mut trader = trader(&mut rig);
    let wish = bid(rig.market().unwrap().tokens[0], 1_000);
    // Both connections carry a trading request first, so both are on the loop that is turned.
    let mut clients = [connect(port), connect(port)];
    let mut resting = Vec::new();
    for client in &mut clients {
        let signed = trader.sign(&wish);
        client.write_all(&trader.request("POST", "/order", &signed.body)).unwrap();
        let (_, text) = turn_until(&mut rig, client);
        assert!(text.contains("\"live\""), "{text}");
        resting.push(signed);
    }
    let bodies: Vec<String> = (0..BATCH).map(|_| trader.sign(&wish).body).collect();
    let batch = trader.request("POST", "/orders", &format!("[{}]", bodies.join(",")));
    let cancel = format!("{{\"orderID\":\"{}\"}}", resting[0].id_text);
    let cancel = trader.request("DELETE", "/order", &cancel);
    let [batcher, canceller] = &mut clients;
    batcher.write_all(&batch).unwrap();
    canceller.write_all(&cancel).unwrap();
    let (turns, text) = turn_until(&mut rig, canceller);
    assert!(turns <= 2 && text.contains(&resting[0].id_text), "after {turns} turns: {text}");
    let (more, text) = turn_until(&mut rig, batcher);
    assert_eq!(text.matches("\"success\":true").count(), BATCH, "{text}");
    assert!(turns + more >= BATCH.div_ceil(CHECKS_PER_TURN), "a batch in {turns} + {more} turns");
}

/// Sends one request and turns until it is answered.
fn ask(rig: &mut Rig, client: &mut TcpStream, request: &[u8]) -> String {
    client.write_all(request).unwrap();
    turn_until(rig, client).1
}

#[test]
fn an_order_that_arrives_between_the_rounds_of_its_cancel_does_not_stay() {
    const TURNS: usize = 4;
    let (mut rig, _data) = rig(2, 0);
    let port = rig.http().port();
    let mut trader = trader(&mut rig);
    let markets = [rig.market().unwrap(), rig.market().unwrap()];
    let mut clients = [connect(port), connect(port)];
    // A connection goes to the shard of its first order; the cancel's is on the other shard than the order's.
    let mut shards = Vec::new();
    for (client, market) in clients.iter_mut().zip(&markets) {
        let order = trader.sign(&bid(market.tokens[0], 1_000));
        let text = ask(&mut rig, client, &trader.request("POST", "/order", &order.body));
        assert!(text.contains("\"live\""), "{text}");
        shards.push(rig.shard_of(market).unwrap());
    }
    let [canceller, placer] = &mut clients;
    let mut cancelled = 0;
    for turns in 0..TURNS * TURNS * TURNS {
        let turns = [turns % TURNS, turns / TURNS % TURNS, turns / TURNS / TURNS];
        let orders = [0; 2].map(|_| trader.sign(&bid(markets[1].tokens[0], 1_000)));
        let cancel = match turns[0] % 2 {
            0 => ("/order", format!("{{\"orderID\":\"{}\"}}", orders[0].id_text)),
            _ => ("/orders", format!("[\"{}\",\"{}\"]", orders[0].id_text, orders[1].id_text)),
        };
        canceller.write_all(&trader.request("DELETE", cancel.0, &cancel.1)).unwrap();
        for (shard, turns) in [(shards[0], turns[0]), (shards[1], turns[1])] {
            for _ in 0..turns {
                rig.turn_loop(shard);
            }
        }
        let over = turns == [TURNS - 1; 3];
        let early = over.then(|| turn_until(&mut rig, canceller).1);
        placer.write_all(&trader.request("POST", "/order", &orders[0].body)).unwrap();
        for _ in 0..turns[2] {
            rig.turn_loop(shards[1]);
        }
        let said = early.unwrap_or_else(|| turn_until(&mut rig, canceller).1);
        let placed = turn_until(&mut rig, placer).1;
        // If the answer says so, it left; otherwise it was killed on arrival. In either case it does not rest.
        let left = said.contains(&format!("\"canceled\":[\"{}\"", orders[0].id_text));
        assert_eq!(left, placed.contains("\"live\""), "{turns:?}\n{said}\n{placed}");
        assert!(!(left && over), "who comes behind the answer is killed\n{said}\n{placed}");
        cancelled += usize::from(left);
        let again = ask(&mut rig, canceller, &trader.request("DELETE", cancel.0, &cancel.1));
        assert!(again.contains("\"canceled\":[]"), "{turns:?}\n{said}\n{placed}\n{again}");
    }
    assert!(0 < cancelled, "some came in between");
}

/// Connections with one cancel each, about which another shard must be asked; more than the slots of the ring
/// between two loops.
const CANCELLERS: usize = 900;

#[test]
fn cancels_wait_for_the_ring_to_another_shard_and_are_never_refused_for_it() {
    let (mut rig, _data) = rig(2, 0);
    let port = rig.http().port();
    let trader = trader(&mut rig);
    let nobody = |number: usize| format!("0x{number:064x}");
    let mut clients: Vec<TcpStream> = (0..CANCELLERS).map(|_| connect(port)).collect();
    // One trading request each, one after another, so that each connection is on the loop where its cancels
    // begin.
    for client in &mut clients {
        let asked = ask(&mut rig, client, &trader.request("DELETE", "/order", &cancel_body(&nobody(0))));
        assert!(asked.starts_with("HTTP/1.1 200"), "{asked}");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(&trader.request("DELETE", "/order", &cancel_body(&nobody(number)))).unwrap();
    }
    // Each shard begins all that it can before the other receives any of it.
    for shard in [0, 1] {
        for _ in 0..CANCELLERS {
            rig.turn_loop(shard);
        }
    }
    for client in &mut clients {
        let (_, answer) = turn_until(&mut rig, client);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

fn cancel_body(id: &str) -> String {
    format!("{{\"orderID\":\"{id}\"}}")
}

/// A maker whose bid for `Yes` rests, a taker with money, a connection of each, and the tokens.
struct Ground {
    rig: Rig,
    maker: Trader,
    taker: Trader,
    clients: [TcpStream; 2],
    tokens: [TokenId; 2],
    resting: Signed,
    _data: tempfile::TempDir,
}

impl Ground {
    fn new(ingress: u64) -> Self {
        let (mut rig, data) = rig(1, ingress);
        let port = rig.http().port();
        let [mut maker, mut taker] = while_turning(&mut rig, || {
            [0, 1].map(|number: usize| Trader::new(KEYS[number], &mut Connection::open(port)))
        });
        rig.credit(&[maker.address, taker.address], Collateral(1_000_000_000)).unwrap();
        let tokens = rig.market().unwrap().tokens;
        // Both connections carry a trading request first, so both are on the loop that is turned.
        let mut clients = [connect(port), connect(port)];
        let resting = maker.sign(&bid(tokens[0], 5_000));
        let aside = taker.sign(&bid(tokens[1], 1_000));
        for (client, (trader, order)) in clients.iter_mut().zip([(&maker, &resting), (&taker, &aside)]) {
            client.write_all(&trader.request("POST", "/order", &order.body)).unwrap();
            let (_, text) = turn_until(&mut rig, client);
            assert!(text.contains("\"live\""), "{text}");
        }
        Self { rig, maker, taker, clients, tokens, resting, _data: data }
    }

    /// The maker cancels its bid.
    fn cancel(&mut self) {
        let cancel = format!("{{\"orderID\":\"{}\"}}", self.resting.id_text);
        self.clients[0].write_all(&self.maker.request("DELETE", "/order", &cancel)).unwrap();
    }
}

#[test]
fn a_cancel_is_done_before_what_the_last_turn_left_of_a_batch() {
    for ingress in [0, 1] {
        a_cancel_is_done_before_the_rest_of_a_batch(Ground::new(ingress));
    }
}

fn a_cancel_is_done_before_the_rest_of_a_batch(mut ground: Ground) {
    // The first two are checked in the turn in which they arrive; the third would meet the maker's bid.
    let prices = [1_000, 1_000, 5_000];
    let bodies = prices.map(|price| ground.taker.sign(&bid(ground.tokens[1], price)).body);
    let batch = ground.taker.request("POST", "/orders", &format!("[{}]", bodies.join(",")));
    ground.clients[1].write_all(&batch).unwrap();
    ground.rig.turn();
    ground.cancel();
    let (_, text) = turn_until(&mut ground.rig, &mut ground.clients[0]);
    assert!(text.contains(&format!("\"canceled\":[\"{}\"]", ground.resting.id_text)), "{text}");
    let (_, text) = turn_until(&mut ground.rig, &mut ground.clients[1]);
    assert_eq!(text.matches("\"live\"").count(), prices.len(), "{text}");
}

#[test]
fn what_a_revoked_key_left_of_a_batch_is_not_placed() {
    const ROUNDS: usize = 20;
    for ingress in [0, 1] {
        // A revocation goes by several loops, whose turns may be fewer than those of the batch.
        assert!((0..ROUNDS).any(|_| a_revoked_key_places_no_more(Ground::new(ingress))));
    }
}

/// Whether the revocation came before the end of the batch.
fn a_revoked_key_places_no_more(mut ground: Ground) -> bool {
    let bodies = [1_000; BATCH].map(|price| ground.taker.sign(&bid(ground.tokens[1], price)).body);
    let batch = ground.taker.request("POST", "/orders", &format!("[{}]", bodies.join(",")));
    let [revoker, batcher] = &mut ground.clients;
    batcher.write_all(&batch).unwrap();
    ground.rig.turn();
    let revoked = ask(&mut ground.rig, revoker, &ground.taker.request("DELETE", "/auth/api-key", ""));
    assert!(revoked.starts_with("HTTP/1.1 200"), "{revoked}");
    let (_, text) = turn_until(&mut ground.rig, batcher);
    let placed = text.matches("\"live\"").count();
    assert_eq!(text.matches("Unauthorized").count(), BATCH - placed, "{text}");
    placed < BATCH
}

#[test]
fn orders_sent_behind_a_revocation_of_their_key_are_not_taken() {
    for ingress in [0, 1] {
        let Ground { mut rig, mut taker, mut clients, tokens, _data, .. } = Ground::new(ingress);
        let mut requests = taker.request("DELETE", "/auth/api-key", "");
        for _ in 0..2 {
            let order = taker.sign(&bid(tokens[1], 1_000));
            requests.extend(taker.request("POST", "/order", &order.body));
        }
        clients[1].write_all(&requests).unwrap();
        let mut told = String::new();
        while told.matches("HTTP/1.1 ").count() < 3 {
            told += &turn_until(&mut rig, &mut clients[1]).1;
        }
        let codes: Vec<&str> = told.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(codes, ["200", "401", "401"], "{told}");
    }
}

#[test]
fn an_order_whose_breaker_has_tripped_trades_no_more_in_the_very_turn() {
    let Ground { mut rig, mut maker, mut taker, mut clients, tokens, resting, _data } = Ground::new(0);
    let second = maker.sign(&bid(tokens[0], 5_000));
    for (path, body) in
        [("/breaker", "{\"quantity\":\"5\",\"interval_ms\":60000}"), ("/order", second.body.as_str())]
    {
        let answer = ask(&mut rig, &mut clients[0], &maker.request("POST", path, body));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // Each would meet one of the two, and the first that does trips the breaker.
    let takes = [0; 2].map(|_| taker.sign(&bid(tokens[1], 5_000)).body);
    for (client, body) in clients.iter_mut().zip(&takes) {
        client.write_all(&taker.request("POST", "/order", body)).unwrap();
    }
    let mut answers = clients.each_mut().map(|client| turn_until(&mut rig, client).1);
    answers.sort_by_key(|answer| answer.contains("\"live\""));
    assert!(answers[0].contains("\"matched\"") && answers[1].contains("\"live\""), "{answers:?}");
    let body = format!("[\"{}\",\"{}\"]", resting.id_text, second.id_text);
    let answer = ask(&mut rig, &mut clients[0], &maker.request("DELETE", "/orders", &body));
    assert!(answer.contains("\"canceled\":[]"), "one was filled, one removed: {answer}");
}

#[test]
fn the_answer_of_a_cancel_leaves_before_an_order_of_the_same_turn_is_looked_at() {
    let mut ground = Ground::new(0);
    // An epoll set reports sockets in the order in which bytes arrived on them.
    let order_of_answers = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    for (number, client) in ground.clients.iter().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&order_of_answers, client, data, epoll::EventFlags::IN).unwrap();
    }
    let order = ground.taker.sign(&bid(ground.tokens[1], 1_000));
    ground.cancel();
    ground.clients[1].write_all(&ground.taker.request("POST", "/order", &order.body)).unwrap();
    ground.rig.turn();
    let mut events = Vec::with_capacity(ground.clients.len());
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    epoll::wait(&order_of_answers, rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap();
    let answered: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
    assert_eq!(answered, [0, 1], "the cancel's answer is the first of one turn");
}

/// Followers of one token: more than are sent to in one turn.
const FOLLOWERS: usize = 250;

/// One loop that is shard and reader, a trader, and clients that follow the token that it trades.
struct Followed {
    rig: Rig,
    trader: Trader,
    token: TokenId,
    /// The trader's, then the followers'.
    clients: Vec<TcpStream>,
    /// Reports each client once that something has arrived for, in the order in which it did.
    arrivals: OwnedFd,
    _data: tempfile::TempDir,
}

impl Followed {
    fn new() -> Self {
        let data = folder();
        let mut rig = Rig::start_on_one_loop(&options(&data, 1, 0)).unwrap();
        let port = rig.http().port();
        let trader = trader(&mut rig);
        let token = rig.market().unwrap().tokens[0];
        let mut clients: Vec<TcpStream> = (0..=FOLLOWERS).map(|_| connect(port)).collect();
        let follow = format!("{{\"type\":\"market\",\"assets_ids\":[\"{}\"]}}", token_text(&token));
        for client in &mut clients[1..] {
            assert!(ask(&mut rig, client, &upgrade("market")).starts_with("HTTP/1.1 101"));
            let told = ask(&mut rig, client, &text_frame(&follow));
            assert!(told.contains("\"book\""), "{told}");
        }
        let arrivals = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        for (number, client) in clients.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&arrivals, client, data, epoll::EventFlags::IN | epoll::EventFlags::ET).unwrap();
        }
        let mut followed = Self { rig, trader, token, clients, arrivals, _data: data };
        // Heartbeats that came meanwhile are nobody's answer.
        followed.clients.iter_mut().for_each(|client| drop(arrived(client)));
        followed.arrived();
        followed
    }

    /// Sends an order that will rest.
    fn place(&mut self) {
        let order = self.trader.sign(&bid(self.token, 1_000));
        self.clients[0].write_all(&self.trader.request("POST", "/order", &order.body)).unwrap();
    }

    /// Turns until the trader's answer has come; returns for whom something has arrived by then.
    fn turn_until_answered(&mut self) -> Vec<usize> {
        let (mut told, deadline) = (Vec::new(), Instant::now() + PATIENCE);
        while !told.contains(&0) {
            assert!(self.rig.turn() && Instant::now() < deadline, "told: {told:?}");
            told.extend(self.arrived());
        }
        let answer = arrived(&mut self.clients[0]);
        assert!(answer.contains("\"live\""), "{answer}");
        told
    }

    /// For whom something has arrived since this was asked last.
    fn arrived(&self) -> Vec<usize> {
        let mut events = Vec::with_capacity(self.clients.len());
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&self.arrivals, rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap();
        events.iter().map(|event| usize::try_from(event.data.u64()).unwrap()).collect()
    }

    /// The first frame that waits for a client, which stays there.
    fn first_word(&self, client: usize) -> String {
        let mut bytes = [0; 32];
        let count = self.clients[client].peek(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    /// Turns until every follower has been told of as many changes.
    fn turn_until_all_are_told(&mut self, changes: usize) {
        let (mut told, deadline) = (vec![0; FOLLOWERS], Instant::now() + PATIENCE);
        while told != [changes; FOLLOWERS] {
            assert!(self.rig.turn() && Instant::now() < deadline, "told: {told:?}");
            for (count, client) in told.iter_mut().zip(&mut self.clients[1..]) {
                *count += arrived(client).matches("\"price_change\"").count();
            }
        }
    }
}

#[test]
fn the_answer_of_an_order_leaves_before_anybody_who_follows_the_book_is_told() {
    let mut followed = Followed::new();
    followed.place();
    let told = followed.turn_until_answered();
    for early in told.iter().take_while(|client| **client != 0) {
        // A heartbeat may be due at any time.
        let said = followed.first_word(*early);
        assert!(said.contains("\"heartbeat\""), "{early} is told before the one who placed it: {said}");
    }
    followed.turn_until_all_are_told(1);
}

#[test]
fn the_answer_of_an_order_does_not_wait_until_all_who_follow_the_book_are_told_of_the_one_before() {
    let mut followed = Followed::new();
    followed.place();
    let mut told = followed.turn_until_answered();
    followed.place();
    told.extend(followed.turn_until_answered());
    told.retain(|client| *client != 0);
    assert!(
        !told.is_empty() && told.len() < FOLLOWERS,
        "between two answers some are told, not all: {told:?}"
    );
    followed.turn_until_all_are_told(2);
}

#[test]
fn who_begins_to_follow_finds_all_that_was_done_before_it_spoke() {
    const SHARD: usize = 0;
    const FEED: usize = 1;
    let data = folder();
    let apart = Options { cpu_feed: "own".into(), ..options(&data, 1, 0) };
    let mut rig = Rig::start(&apart).unwrap();
    let mut trader = trader(&mut rig);
    let token = rig.market().unwrap().tokens[0];
    let mut clients = [connect(rig.http().port()), connect(rig.http().port())];
    let [placer, follower] = &mut clients;
    assert!(ask(&mut rig, follower, &upgrade("market")).starts_with("HTTP/1.1 101"));
    // The placer's connection gets to the shard's loop.
    let first = trader.sign(&bid(token, 1_000));
    assert!(ask(&mut rig, placer, &trader.request("POST", "/order", &first.body)).contains("\"live\""));
    let second = trader.sign(&bid(token, 2_000));
    placer.write_all(&trader.request("POST", "/order", &second.body)).unwrap();
    // The feed stands still until the placer has its answer.
    let told = turn_one_until(&mut rig, SHARD, placer);
    assert!(told.contains("\"live\""), "{told}");
    let mut follow = |rig: &mut Rig, token| {
        let follow = format!("{{\"type\":\"market\",\"assets_ids\":[\"{}\"]}}", token_text(&token));
        follower.write_all(&text_frame(&follow)).unwrap();
        turn_one_until(rig, FEED, follower)
    };
    let told = follow(&mut rig, token);
    assert!(told.contains("\"price\":\"0.2\"") && !told.contains("price_change"), "{told}");
    // A market that nobody was told of.
    let unseen = rig.market().unwrap().tokens[0];
    let told = follow(&mut rig, unseen);
    assert!(told.contains("\"refused\":[]"), "{told}");
}

#[test]
fn who_was_told_by_a_stream_reads_no_older_state() {
    const FEED: usize = 1;
    const READER: usize = 2;
    /// More frames than a turn of the reader follows.
    const MARKETS: usize = 600;
    let data = folder();
    let apart = Options { cpu_feed: "own".into(), ..options(&data, 1, 0) };
    let mut rig = Rig::start_whole(&apart).unwrap();
    let mut clients = [connect(rig.http().port()), connect(rig.http().port())];
    let [asker, follower] = &mut clients;
    assert!(ask(&mut rig, follower, &upgrade("market")).starts_with("HTTP/1.1 101"));
    let follow = "{\"type\":\"market\",\"assets_ids\":[],\"custom_feature_enabled\":true}";
    let told = ask(&mut rig, follower, &text_frame(follow));
    assert!(told.contains("\"subscribed\""), "{told}");
    assert!(ask(&mut rig, asker, b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200"));
    let newest = (0..MARKETS).map(|_| rig.market().unwrap()).last().unwrap();
    let condition = hex_text(&newest.condition.0);
    // The reader stands still until the follower was told of the newest market.
    let mut told = String::new();
    while !told.contains(&condition) {
        told += &turn_one_until(&mut rig, FEED, follower);
    }
    asker.write_all(format!("GET /markets/{condition} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
    let answer = turn_one_until(&mut rig, READER, asker);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Turns one loop until something arrived.
fn turn_one_until(rig: &mut Rig, no: usize, client: &mut TcpStream) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        rig.turn_loop(no);
        let text = arrived(client);
        if !text.is_empty() {
            return text;
        }
        assert!(Instant::now() < deadline, "no answer came");
    }
}

/// A frame with a text, and a mask of zeros, which leaves the text as it is (RFC 6455, section 5.2).
fn text_frame(text: &str) -> Vec<u8> {
    const LAST_TEXT: u8 = 0x81;
    const MASKED: u8 = 0x80;
    const LENGTH_16: u8 = 126;
    let bytes = u16::try_from(text.len()).unwrap();
    let length = match u8::try_from(bytes).ok().filter(|bytes| *bytes < LENGTH_16) {
        Some(short) => vec![MASKED | short],
        None => [&[MASKED | LENGTH_16], &bytes.to_be_bytes()[..]].concat(),
    };
    [&[LAST_TEXT], &length[..], &[0; 4], text.as_bytes()].concat()
}

/// Milliseconds of a stage, as `Server-Timing` of an answer says.
fn lasted(answer: &str, stage: &str) -> f64 {
    let (_, timing) = answer.split_once("Server-Timing: ").unwrap();
    let (_, tail) = timing.split_once(&format!("{stage};dur=")).unwrap();
    tail.split([',', '\r']).next().unwrap().trim().parse().unwrap()
}

#[test]
fn an_answer_does_not_wait_for_the_signature_of_the_next_order() {
    const ROUNDS: usize = 25;
    let Ground { mut rig, mut maker, mut taker, mut clients, tokens, _data, .. } = Ground::new(0);
    let mut apart = 0;
    for _ in 0..ROUNDS {
        let orders = [maker.sign(&bid(tokens[0], 1_000)), taker.sign(&bid(tokens[1], 1_000))];
        for (client, (trader, order)) in clients.iter_mut().zip([&maker, &taker].into_iter().zip(&orders)) {
            client.write_all(&trader.request("POST", "/order", &order.body)).unwrap();
        }
        let mut answers = clients.each_mut().map(|client| turn_until(&mut rig, client).1);
        assert!(answers.iter().all(|answer| answer.contains("\"live\"")), "{answers:?}");
        answers.sort_by(|one, other| lasted(one, "total").total_cmp(&lasted(other, "total")));
        let [first, second] = answers;
        // Both were received at once; if they left at once too, the times of both would be the same.
        let between = lasted(&second, "total") - lasted(&first, "total");
        apart += usize::from(lasted(&second, "sign") / 2.0 < between);
    }
    // Not each time: a thread that loses its CPU between two receipts looks the same.
    assert!(ROUNDS / 2 < apart, "{apart} of {ROUNDS} times");
}
