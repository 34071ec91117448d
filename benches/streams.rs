//! How long a change takes to reach all who follow a book: 10,000 subscribers of one market on one core.
//!
//! `cargo bench --bench streams` starts Outcry with all its loops on CPU 0 and follows one token over 10,000
//! connections from CPU 1. Then orders that rest are posted one by one. For each, two times are taken from
//! its `send` on: until its answer was read, and until its `price_change` had been read from each connection. The
//! client reads answer and changes as they come. Reading 10,000 sockets takes it most of that time, so the server needs
//! less. It prints the median
//! and the 99th percentile over all orders and subscribers, and of the last subscriber of each order. Good
//! would be 5 µs a subscriber: one copy and one `send`.
//!
//! Every message is checked: the run ends only when each subscriber has received each change.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

#[path = "loopback/client.rs"]
mod client;
#[path = "loopback/figures.rs"]
mod figures;
#[allow(dead_code, reason = "benches share it, and each uses a part")]
#[path = "loopback/outcry.rs"]
mod outcry;
#[path = "loopback/sign.rs"]
mod sign;

use alloy_primitives::U256;
use client::Client;
use outcry::{Outcry, pin};
use rustix::event::epoll;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sign::Signer;
use std::io::{ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Connections that follow the token.
const SUBSCRIBERS: usize = 10_000;

/// Orders that are measured.
const ORDERS: usize = 100;

/// Orders before those that are measured.
const WARM_UP: usize = 10;

/// The first public test key of Anvil.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// Collateral in millionths for 5 shares, at a price of 0.01: it rests.
const BID: u64 = 50_000;

const SERVER_CPU: usize = 0;
const CLIENT_CPU: usize = 1;

/// Descriptors besides those of subscribers.
const OTHER_FILES: u64 = 100;

fn main() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = SUBSCRIBERS as u64 + OTHER_FILES;
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .expect("10,100 descriptors are allowed: raise the limit (ulimit -Hn)");
    let directory = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let settings =
        ["journal.durability=committed", "cpu.policy=unpinned", "cpu.shards=1", "sizes.connections=10100"];
    let settings = settings.map(str::to_owned);
    let on_server = pin(SERVER_CPU);
    let outcry = Outcry::start(directory.path(), &settings);
    drop(on_server);
    let _pinned = pin(CLIENT_CPU);
    let signer = Signer::new(KEY);
    let address = signer.address.to_string();
    outcry.operator(&["account", "credit", &address, "1000000", "--ref", "bench"]);
    outcry.operator(&["market", "create", "Does it rain?"]);
    let token = token(outcry.http);
    let credentials = client::credentials(outcry.http, &signer);
    let bids: Vec<Vec<u8>> = (0..WARM_UP + ORDERS)
        .map(|salt| client::bid(&signer, &credentials, token, BID, salt as u64))
        .collect();

    let mut crowd = Crowd::new(outcry.http, token);
    let (mut answers, mut changes, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for (number, bid) in bids.iter().enumerate() {
        let (took, times) = crowd.order(bid);
        if WARM_UP <= number {
            answers.push(took);
            last.push(*times.iter().max().expect("there are subscribers"));
            changes.extend(times);
        }
    }
    println!(
        "{SUBSCRIBERS} subscribers of one token, {ORDERS} orders; server CPU {SERVER_CPU}, client CPU {CLIENT_CPU}"
    );
    for (name, times) in [("answer", answers), ("each subscriber", changes), ("last subscriber", last)] {
        percentiles(name, times);
    }
}

/// The first outcome's token of the only market.
fn token(port: u16) -> U256 {
    let mut client = Client::connect(port);
    let request = b"GET /simplified-markets HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let (_, reply) = client.round_trip(request);
    let (_, body) = reply.split_once("\r\n\r\n").expect("a whole reply");
    let markets: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let token = markets["data"][0]["tokens"][0]["token_id"].as_str().expect("a token").to_owned();
    token.parse().expect("a number")
}

/// All subscribers, and the client that trades.
struct Crowd {
    /// The subscribers', then the one of the orders.
    sockets: Vec<TcpStream>,
    ready: OwnedFd,
    chunk: Vec<u8>,
}

impl Crowd {
    fn new(port: u16, token: U256) -> Self {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll set");
        let mut sockets: Vec<TcpStream> = (0..SUBSCRIBERS).map(|_| subscriber(port, token)).collect();
        let trader = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        trader.set_nodelay(true).expect("a fresh socket");
        sockets.push(trader);
        for (number, socket) in sockets.iter().enumerate() {
            socket.set_nonblocking(true).expect("a socket");
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&ready, socket, data, epoll::EventFlags::IN).expect("room in the set");
        }
        Self { sockets, ready, chunk: vec![0; 64 << 10] }
    }

    /// Sends an order that rests, and reads until its answer and each subscriber's change have come; returns when they
    /// did, counted from the `send`.
    fn order(&mut self, bid: &[u8]) -> (Duration, Vec<Duration>) {
        const EVENTS: usize = 256;
        let (mut answer, mut took) = (Vec::new(), None);
        let mut times = Vec::with_capacity(SUBSCRIBERS);
        let start = Instant::now();
        self.sockets[SUBSCRIBERS].write_all(bid).expect("an order is shorter than a socket's buffer");
        while took.is_none() || times.len() < SUBSCRIBERS {
            let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
            let (events, _) = epoll::wait(&self.ready, &mut room, None).expect("events");
            for event in events {
                let number = usize::try_from(event.data.u64()).expect("it was an index");
                // A change is shorter than a segment of loopback, so it arrives whole.
                let count = match self.sockets[number].read(&mut self.chunk) {
                    Ok(0) => panic!("the server closed a connection"),
                    Ok(count) => count,
                    Err(fault) if fault.kind() == ErrorKind::WouldBlock => continue,
                    Err(fault) => panic!("a connection broke: {fault}"),
                };
                let text = &self.chunk[..count];
                if number == SUBSCRIBERS {
                    answer.extend_from_slice(text);
                    took = client::reply_bytes(&answer)
                        .filter(|&bytes| bytes <= answer.len())
                        .map(|_| start.elapsed());
                } else if text.windows(WORD.len()).any(|window| window == WORD) {
                    times.push(start.elapsed());
                }
            }
        }
        let answer = String::from_utf8(answer).expect("answers are UTF-8");
        assert!(answer.contains("\"status\":\"live\""), "an order did not rest: {answer}");
        (took.expect("it was answered"), times)
    }
}

const WORD: &[u8] = b"price_change\"";

/// A connection that follows the token and has read everything that came first.
fn subscriber(port: u16, token: U256) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let upgrade = "GET /ws/market HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let said = format!("{{\"type\":\"market\",\"assets_ids\":[\"{token}\"]}}");
    let length = u8::try_from(said.len()).ok().filter(|length| *length < LONGER);
    let length = length.expect("the message has the short form of a length");
    let mut bytes = upgrade.as_bytes().to_vec();
    // A mask of zeros leaves the text as it is.
    bytes.extend_from_slice(&[LAST_TEXT, MASKED | length, 0, 0, 0, 0]);
    bytes.extend_from_slice(said.as_bytes());
    socket.write_all(&bytes).expect("a fresh socket");
    let mut read = Vec::new();
    let mut chunk = [0; 8 << 10];
    while !read.windows(BOOK.len()).any(|window| window == BOOK) {
        let count = socket.read(&mut chunk).expect("the server answers");
        assert!(0 < count, "the server closed a stream");
        read.extend_from_slice(&chunk[..count]);
    }
    socket
}

/// The first byte of a text frame, the bit of a mask, and the first length that takes more bytes.
const LAST_TEXT: u8 = 0x81;
const MASKED: u8 = 0x80;
const LONGER: u8 = 126;

const BOOK: &[u8] = b"\"event_type\":\"book\"";

/// Prints the median and the 99th percentile in microseconds.
fn percentiles(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |per_cent: usize| times[(times.len() - 1) * per_cent / 100].as_secs_f64() * 1e6;
    println!("{name:>16}: p50 {:9.1} µs   p99 {:9.1} µs", at(50), at(99));
    for percent in [50, 99] {
        figures::note(format!("{name}, {SUBSCRIBERS} follow, p{percent}"), at(percent), figures::Unit::Us);
    }
}
