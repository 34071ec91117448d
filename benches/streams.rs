//! How long a change takes to reach all who follow a book: 10,000 subscribers of one market on one core.
//!
//! `cargo bench --bench streams` starts Outcry with all its loops on CPU 0 and follows one token over 10,000
//! connections from CPU 1. Then orders that rest are posted one by one. For each, two times are taken from
//! its `send` on: until its answer was read, and until its `price_change` had been read from each connection. The
//! client reads changes as they come, and looks for the answer in between. Reading 10,000 sockets takes it most of that
//! time, so the server needs less. Then orders are posted in pairs, the second when the first is answered, while
//! subscribers are still told of it: how long the second one's answer takes.
//!
//! It prints the median and the 99th percentile over all orders and subscribers, and of the last subscriber of each
//! order. Good would be 5 µs a subscriber: one copy and one `send`; for the second of a pair, the time of its turn.
//!
//! Every message is checked: the run ends only when each subscriber has received each change.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

#[path = "loopback/client.rs"]
mod client;
#[path = "loopback/figures.rs"]
mod figures;
#[path = "loopback/folder.rs"]
mod folder;
#[allow(dead_code, reason = "benches share it, and each uses a part")]
#[path = "loopback/outcry.rs"]
mod outcry;
#[path = "loopback/sign.rs"]
mod sign;

use alloy_primitives::U256;
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
    let directory = folder::in_memory();
    let settings = [
        "journal.durability=committed",
        "cpu.policy=unpinned",
        "cpu.shards=1",
        "sizes.connections=10100",
        "sizes.connections_per_address=10100",
    ];
    let settings = settings.map(str::to_owned);
    let on_server = pin(SERVER_CPU);
    let outcry = Outcry::start(directory.path(), &settings);
    drop(on_server);
    let _pinned = pin(CLIENT_CPU);
    let signer = Signer::new(KEY);
    let address = signer.address.to_string();
    outcry.operator(&["account", "credit", &address, "1000000", "--ref", "bench"]);
    outcry.operator(&["market", "create", "Does it rain?"]);
    let token = outcry.token();
    let credentials = client::credentials(outcry.http, &signer);
    let bids: Vec<Vec<u8>> = (0..WARM_UP + 3 * ORDERS)
        .map(|salt| client::bid(&signer, &credentials, token, BID, salt as u64))
        .collect();

    let mut crowd = Crowd::new(outcry.http, token);
    let (mut answers, mut changes, mut last) = (Vec::new(), Vec::new(), Vec::new());
    let (single, pairs) = bids.split_at(WARM_UP + ORDERS);
    for (number, bid) in single.iter().enumerate() {
        let (took, times) = crowd.orders(&[bid]);
        if WARM_UP <= number {
            answers.extend(took);
            last.push(*times.iter().max().expect("there are subscribers"));
            changes.extend(times);
        }
    }
    let (pairs, _) = pairs.as_chunks::<2>();
    let behind = pairs.iter().map(|[first, second]| crowd.orders(&[first, second]).0[1]).collect();
    println!(
        "{SUBSCRIBERS} subscribers of one token, {ORDERS} orders; server CPU {SERVER_CPU}, client CPU {CLIENT_CPU}"
    );
    let all = [
        ("answer", answers),
        ("each subscriber", changes),
        ("last subscriber", last),
        ("answer behind another", behind),
    ];
    for (name, times) in all {
        percentiles(name, times);
    }
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

    /// Sends orders that rest, each when the one before is answered, and reads until each subscriber was told of all.
    /// Returns how long each answer took, and when each change had come, counted from the first `send`.
    fn orders(&mut self, bids: &[&Vec<u8>]) -> (Vec<Duration>, Vec<Duration>) {
        // Few at once, as an answer is looked for in between.
        const EVENTS: usize = 8;
        let (mut answer, mut took) = (Vec::new(), Vec::new());
        let mut times = Vec::with_capacity(SUBSCRIBERS * bids.len());
        let mut told = vec![0; SUBSCRIBERS];
        let start = Instant::now();
        let mut sent = start;
        self.send(bids[0]);
        while took.len() < bids.len() || times.len() < SUBSCRIBERS * bids.len() {
            let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
            let (events, _) = epoll::wait(&self.ready, &mut room, None).expect("events");
            for event in events {
                let number = usize::try_from(event.data.u64()).expect("it was an index");
                if number < SUBSCRIBERS {
                    // Changes are shorter than a segment of loopback, so they arrive whole.
                    let text = self.read(number);
                    let changes = text.windows(WORD.len()).filter(|window| *window == WORD).count();
                    times.extend(std::iter::repeat_n(start.elapsed(), changes));
                    told[number] += changes;
                }
            }
            answer.extend_from_slice(self.read(SUBSCRIBERS));
            if client::reply_bytes(&answer).is_some_and(|bytes| bytes <= answer.len()) {
                took.push(sent.elapsed());
                let text = String::from_utf8(std::mem::take(&mut answer)).expect("answers are UTF-8");
                assert!(text.contains("\"status\":\"live\""), "an order did not rest: {text}");
                if let Some(next) = bids.get(took.len()) {
                    sent = Instant::now();
                    self.send(next);
                }
            }
        }
        assert!(told.iter().all(|changes| *changes == bids.len()), "each is told of each");
        (took, times)
    }

    /// What has come on a socket, without waiting.
    fn read(&mut self, number: usize) -> &[u8] {
        match self.sockets[number].read(&mut self.chunk) {
            Ok(0) => panic!("the server closed a connection"),
            Ok(count) => &self.chunk[..count],
            Err(fault) if fault.kind() == ErrorKind::WouldBlock => &[],
            Err(fault) => panic!("a connection broke: {fault}"),
        }
    }

    fn send(&mut self, bid: &[u8]) {
        self.sockets[SUBSCRIBERS].write_all(bid).expect("an order is shorter than a socket's buffer");
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
    println!("{name:>21}: p50 {:9.1} µs   p99 {:9.1} µs", at(50), at(99));
    for percent in [50, 99] {
        figures::note(format!("{name}, {SUBSCRIBERS} follow, p{percent}"), at(percent), figures::Unit::Us);
    }
}
