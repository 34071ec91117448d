//! Ten thousand mixed orders, from the bytes on a socket to the bytes of the answer, without one
//! allocation on the loop that matches.
//!
//! The server runs in this process; its first loop, which has the trading connections and the
//! shard, is turned by this thread, and only allocations within those turns are counted. The last
//! test plants one, because a counter that cannot count proves nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;
#[path = "common/counting.rs"]
mod counting;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::random::Random;
use common::trader::{KEYS, Signed, Trader, Wish};
use common::wire::Connection;
use counting::{COUNT, Counting};
use outcry::domain::{Collateral, Side, TokenId};
use outcry::server::options::Options;
use outcry::server::rig::Rig;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Orders and cancels before counting: buffers reach their size, pages are touched.
const WARM_UP: usize = 2_000;
/// Orders and cancels that are counted.
const COUNTED: usize = 10_000;
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the acts must come to often enough for the count to mean something: orders that rest and
/// trade, kills, cancels, repeats.
const OUTCOMES: [&str; 5] = ["\"live\"", "\"matched\"", "FAK orders", "\"canceled\":[\"0x", "Replayed: true"];
const OUTCOMES_MIN: usize = 200;

/// A server, two traders, and the connection that they share.
struct Scene {
    rig: Rig,
    client: TcpStream,
    traders: Vec<Trader>,
    tokens: [TokenId; 2],
    live: VecDeque<(usize, Signed)>,
    random: Random,
    allocations: u64,
    outcomes: [usize; 5],
    answer: Vec<u8>,
    _data: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let options = Options {
            listen_http: "127.0.0.1:0".into(),
            listen_admin: "127.0.0.1:0".into(),
            data_dir: data.path().display().to_string(),
            journal_log_path: data.path().join("log").display().to_string(),
            journal_durability: "committed".into(),
            cpu_policy: "none".into(),
            ..Options::default()
        };
        let mut rig = Rig::start(&options).unwrap();
        let port = rig.http().port();
        // Credentials are made on other loops and by the registrar, which is on ours.
        let makers = std::thread::spawn(move || {
            let mut connection = Connection::open(port);
            [0, 1].map(|account| Trader::new(KEYS[account], &mut connection))
        });
        while !makers.is_finished() {
            rig.turn();
        }
        let traders: Vec<Trader> = makers.join().unwrap().into();
        let owners: Vec<_> = traders.iter().map(|trader| trader.address).collect();
        let tokens = rig.seed(&owners, Collateral(1_000_000_000_000)).unwrap();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.set_nodelay(true).unwrap();
        client.set_nonblocking(true).unwrap();
        let random = Random::new(7);
        Self {
            rig,
            client,
            traders,
            tokens,
            live: VecDeque::new(),
            random,
            allocations: 0,
            outcomes: [0; 5],
            answer: vec![0; 64 << 10],
            _data: data,
        }
    }

    /// Sends a request and turns the loop until its answer is here; counts only the turns.
    fn ask(&mut self, bytes: &[u8]) -> String {
        self.client.write_all(bytes).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut length = 0;
        loop {
            let before = COUNT.get();
            self.rig.turn();
            self.allocations += COUNT.get() - before;
            match self.client.read(&mut self.answer[length..]) {
                Ok(0) => panic!("the server closed the connection"),
                Ok(count) => length += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            if let Some(text) = whole(&self.answer[..length]) {
                for (count, word) in self.outcomes.iter_mut().zip(OUTCOMES) {
                    *count += usize::from(text.contains(word));
                }
                return text;
            }
            assert!(Instant::now() < deadline, "no answer came");
        }
    }

    /// One act of a random kind: rest, cross, kill, cancel, repeat, break a rule.
    fn act(&mut self) {
        let who = usize::try_from(self.random.below(2)).unwrap();
        let kind = self.random.below(10);
        if kind < 3
            && let Some((owner, signed)) = self.live.pop_front()
        {
            let body = format!("{{\"orderID\":\"{}\"}}", signed.id_text);
            let request = self.traders[owner].request("DELETE", "/order", &body);
            let answer = self.ask(&request);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            return;
        }
        let wish = Wish {
            token: self.tokens[who],
            side: Side::Buy,
            price: 100 * (30 + self.random.below(41)),
            shares: 1_000_000 * (1 + self.random.below(20)),
            kind: ["GTC", "GTC", "FAK", "FOK"][usize::try_from(self.random.below(4)).unwrap()],
            neg_risk: false,
        };
        let signed = self.traders[who].sign(&wish);
        let request = self.traders[who].request("POST", "/order", &signed.body);
        let answer = self.ask(&request);
        if kind == 9 {
            self.ask(&request);
        }
        if answer.contains("\"live\"") {
            self.live.push_back((who, signed));
        }
    }
}

/// The answer, if it is here to its last byte.
fn whole(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length:"))?;
    (body.len() == length.trim().parse::<usize>().ok()?).then(|| text.to_owned())
}

#[test]
fn an_order_allocates_nothing_from_socket_to_answer() {
    let mut scene = Scene::new();
    for _ in 0..WARM_UP {
        scene.act();
    }
    scene.allocations = 0;
    scene.outcomes = [0; 5];
    for _ in 0..COUNTED {
        scene.act();
    }
    for (count, word) in scene.outcomes.iter().zip(OUTCOMES) {
        assert!(OUTCOMES_MIN <= *count, "{word}: only {count} times");
    }
    assert_eq!(scene.allocations, 0, "allocations within the turns of {COUNTED} acts");
}

#[test]
fn a_planted_allocation_is_counted() {
    let before = COUNT.get();
    std::hint::black_box(Box::new(1_u64));
    assert_eq!(COUNT.get() - before, 1);
}
