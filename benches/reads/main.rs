//! What reads cost: beside a canned reply, and to those who trade.
//!
//! `cargo bench --bench reads` makes 64 markets in each of which account 0 has a position. Then it
//! 1. requests `GET /markets/{id}` and `GET /positions`, over 4 connections with 8 requests under
//!    way on each, in turn with two replies of the same length that nobody has to make:
//!    - `stored`, of the same server: a market's description, which is copied out of its text. It passes the same
//!      loop, parser and connections. Good would be half of this rate or more.
//!    - `canned`, of another process that sends the very same bytes for everything and shares no code with Outcry:
//!      what could still be gained in the loop itself.
//! 2. measures the round trip of one signed POST /order without and with a flood of `/events`,
//!    `/public-search` and `/positions` on 4 other connections, in turn. Client and flood send the next request when
//!    they have the answer to the last. With four CPUs good would be 1.1 at most. With two, a client that polls shares
//!    one CPU with the flood and the reader, so the flood gets a small part of what the reader can answer (the figure
//!    `reads that the flood got` says how much), and the ratio says little.
//!
//! Every reply is checked: an order that does not rest, or a read that is not 200, ends the run.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

mod canned;
#[path = "../loopback/client.rs"]
mod client;
#[path = "../loopback/figures.rs"]
mod figures;
#[path = "../loopback/folder.rs"]
mod folder;
#[allow(dead_code, reason = "benches share it, and each uses a part")]
#[path = "../loopback/outcry.rs"]
mod outcry;
#[path = "../loopback/sign.rs"]
mod sign;

use alloy_primitives::{U256, keccak256};
use client::{Client, Credentials};
use figures::Unit;
use outcry::{Outcry, Running, pin};
use sign::Signer;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Markets, and positions of account 0.
const MARKETS: u64 = 64;

/// Rounds; each measures every side.
const ROUNDS: usize = 12;

/// Reads in a round on each server.
const READS_PER_ROUND: usize = 4_000;

/// Connections that read at the same time.
const READERS: usize = 4;

/// Requests under way on one connection.
const PIPELINED: usize = 8;

/// Orders in a round without and with the flood.
const ORDERS_PER_ROUND: usize = 250;

/// Orders at the start of a round that are not counted.
const WARM_UP: usize = 50;

/// The description of the traded markets, and of every event.
const DESCRIPTION: &str = "This market resolves to Yes if what its question asks for has happened by its \
                           end, and to No in every other case. Whoever runs the exchange decides.";

/// Collateral in millionths for 5 shares: at 0.01 a bid rests, at 0.5 it matches its counterpart.
const BID_THAT_RESTS: u64 = 50_000;
const BID_THAT_MEETS: u64 = 2_500_000;

/// The first two public test keys of Anvil.
const KEYS: [&str; 2] = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, path] = arguments.as_slice()
        && word == "canned"
    {
        let _pinned = pin(0);
        return canned::serve(path);
    }
    let directory = folder::in_memory();
    let cpus = std::thread::available_parallelism().expect("it is known").get();
    println!("{cpus} CPUs, {MARKETS} markets, durability committed");
    beside_canned_replies(&directory.path().join("reads"));
    beside_a_flood(&directory.path().join("flood"), cpus);
}

/// A market maker with its credentials.
struct Account {
    signer: Signer,
    credentials: Credentials,
}

/// A server with a catalog and positions.
struct Ground {
    outcry: Outcry,
    accounts: [Account; 2],
    tokens: Vec<[U256; 2]>,
}

impl Ground {
    fn start(directory: &Path, settings: &[String]) -> Self {
        std::fs::create_dir_all(directory).expect("a directory");
        let outcry = Outcry::start(directory, settings);
        let tokens: Vec<[U256; 2]> = (0..MARKETS).map(tokens_of).collect();
        import(&outcry, directory, &gamma_file(0, &tokens, DESCRIPTION));
        let accounts = KEYS.map(|key| {
            let signer = Signer::new(key);
            let address = signer.address.to_string();
            outcry.operator(&["account", "credit", &address, "1000000", "--ref", &address]);
            Account { credentials: client::credentials(outcry.http, &signer), signer }
        });
        let ground = Self { outcry, accounts, tokens };
        let mut client = Client::connect(ground.outcry.http);
        for (number, tokens) in ground.tokens.iter().enumerate() {
            for (account, (token, status)) in
                ground.accounts.iter().zip(tokens.iter().zip(["live", "matched"]))
            {
                let bid = account.bid(*token, BID_THAT_MEETS, number as u64);
                let (_, reply) = client.round_trip(&bid);
                assert!(reply.contains(&format!("\"status\":\"{status}\"")), "{reply}");
            }
        }
        ground
    }

    fn positions(&self) -> String {
        format!("/positions?user={}", self.accounts[0].signer.address)
    }

    /// The reply to a request.
    fn reply(&self, request: &[u8]) -> Vec<u8> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.outcry.http)).expect("it listens");
        connection.write_all(request).expect("a fresh socket");
        read_replies(&mut connection, 1)
    }

    /// The request for the description of a new market, made so long that the reply has `bytes`
    /// bytes. The new markets are numbered from `first` on.
    fn stored(&self, directory: &Path, first: u64, bytes: usize) -> Vec<u8> {
        let mut length = bytes / 2;
        for number in first.. {
            let market = gamma_file(number, &[tokens_of(number)], &"x".repeat(length));
            import(&self.outcry, directory, &market);
            let request = get(&format!("/markets/{}/description", number + 1));
            let reply = self.reply(&request);
            if reply.len() == bytes {
                return request;
            }
            length = length + bytes - reply.len();
        }
        unreachable!("the second one is as long as the first one was not")
    }
}

fn import(outcry: &Outcry, directory: &Path, markets: &str) {
    let file = directory.join("markets.json");
    std::fs::write(&file, markets).expect("written");
    outcry.operator(&["import", "gamma", file.to_str().expect("UTF-8")]);
}

impl Account {
    fn bid(&self, token: U256, collateral: u64, salt: u64) -> Vec<u8> {
        client::bid(&self.signer, &self.credentials, token, collateral, salt)
    }
}

fn tokens_of(market: u64) -> [U256; 2] {
    [0, 1].map(|outcome| keccak256(format!("token {outcome} of {market}")).into())
}

/// Markets as a Gamma file, two to an event, numbered from `first` on.
fn gamma_file(first: u64, tokens: &[[U256; 2]], description: &str) -> String {
    let mut text = String::from("[");
    for (number, [zero, one]) in (first..).zip(tokens) {
        let separator = if number == first { "" } else { "," };
        let (event, condition) = (number / 2, keccak256(format!("condition {number}")));
        write!(
            text,
            "{separator}{{\"id\":\"{}\",\"question\":\"Will thing {number} happen?\",\"conditionId\":\"{condition}\",\
             \"slug\":\"thing-{number}\",\"description\":\"{description}\",\"outcomes\":\"[\\\"Yes\\\", \\\"No\\\"]\",\
             \"clobTokenIds\":\"[\\\"{zero}\\\", \\\"{one}\\\"]\",\"orderPriceMinTickSize\":0.01,\"orderMinSize\":5,\
             \"active\":true,\"closed\":false,\"archived\":false,\"endDate\":\"2030-01-01T00:00:00Z\",\
             \"events\":[{{\"id\":\"{}\",\"slug\":\"event-{event}\",\"title\":\"Event {event}\",\"description\":\"{DESCRIPTION}\"}}]}}",
            number + 1,
            event + 1,
        )
        .expect("texts take everything");
    }
    text + "]"
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: reads\r\n\r\n").into_bytes()
}

/// Part 1: the reader's rate beside the rates of stored and canned replies of the same length.
fn beside_canned_replies(directory: &Path) {
    let settings =
        ["journal.durability=committed", "cpu.policy=explicit", "cpu.shard_cpus=1", "cpu.reader=0"];
    let settings = settings.map(str::to_owned);
    let mut settings = settings.to_vec();
    settings.push("cpu.wait=park,spin".to_owned());
    let ground = Ground::start(directory, &settings);
    let _pinned = pin(1);
    for (number, path) in ["/markets/1".to_owned(), ground.positions()].into_iter().enumerate() {
        let request = get(&path);
        let reply = ground.reply(&request);
        let stored_request = ground.stored(directory, MARKETS + 10 * number as u64, reply.len());
        let file = directory.join("reply");
        std::fs::write(&file, &reply).expect("written");
        let (canned, canned_port) = start_canned(&file);
        let [mut ours, mut stored, mut theirs] = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            canned.let_run(false);
            ours.push(rate(ground.outcry.http, &request));
            stored.push(rate(ground.outcry.http, &stored_request));
            canned.let_run(true);
            ground.outcry.process.let_run(false);
            theirs.push(rate(canned_port, &request));
            ground.outcry.process.let_run(true);
        }
        let [ours, stored, theirs] = [ours, stored, theirs].map(median);
        let name = path.split('?').next().expect("split gives one");
        println!(
            "GET {name}, {} bytes: outcry {ours:.0}/s, stored {stored:.0}/s, ratio {:.2}, canned {theirs:.0}/s, ratio {:.2}",
            reply.len(),
            ours / stored,
            ours / theirs
        );
        let what = format!("GET {name}, {} bytes", reply.len());
        figures::note_beside(&what, ours, Unit::PerS, "stored", stored);
        figures::note_beside(what + ", against another process", ours, Unit::PerS, "canned", theirs);
    }
}

/// Reads per second over [`READERS`] connections.
fn rate(port: u16, request: &[u8]) -> f64 {
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let mut connections: Vec<TcpStream> = (0..READERS).map(|_| connect()).collect();
    let batch = request.repeat(PIPELINED);
    let start = Instant::now();
    let mut left = READS_PER_ROUND;
    while left > 0 {
        for connection in &mut connections {
            connection.write_all(&batch).expect("the server reads");
        }
        for connection in &mut connections {
            read_replies(connection, PIPELINED);
        }
        left = left.saturating_sub(READERS * PIPELINED);
    }
    #[allow(clippy::cast_precision_loss, reason = "a rate is for people")]
    let reads = READS_PER_ROUND as f64;
    reads / start.elapsed().as_secs_f64()
}

/// The next `count` replies, as received. All must be 200 and as long as the first.
fn read_replies(connection: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 128 * 1024];
    loop {
        let read = connection.read(&mut chunk).expect("the server answers");
        assert!(read > 0, "the server closed the connection");
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(one) = client::reply_bytes(&bytes).filter(|one| one * count <= bytes.len()) {
            let is_good = |reply: &[u8]| reply.starts_with(b"HTTP/1.1 200");
            let are_good = bytes.len() == one * count && bytes.chunks_exact(one).all(is_good);
            assert!(are_good, "a read failed: {}", String::from_utf8_lossy(&bytes));
            return bytes;
        }
    }
}

fn start_canned(file: &Path) -> (Running, u16) {
    let mut child = Command::new(std::env::current_exe().expect("we run"))
        .arg("canned")
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("our own binary starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it prints its port");
    (Running(child), line.trim().parse().expect("a port"))
}

/// Part 2: what a flood of reads does to those who trade.
fn beside_a_flood(directory: &Path, cpus: usize) {
    let last = cpus - 1;
    let settings = [
        "journal.durability=committed".to_owned(),
        "cpu.policy=explicit".to_owned(),
        "cpu.shard_cpus=0".to_owned(),
        "cpu.reader=1".to_owned(),
        "cpu.wait=spin,park".to_owned(),
    ];
    let ground = Ground::start(directory, &settings);
    let (client_cpu, flood_cpu) = (2.min(last), 3.min(last));
    println!("shard on CPU 0, reader on CPU 1, client on CPU {client_cpu}, flood on CPU {flood_cpu}");
    let port = ground.outcry.http;
    let searches = "/public-search?q=thing";
    let requests = ["/events", searches, ground.positions().as_str()].map(get);
    let (floods, over, served) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let (mut quiet, mut flooded) = (Vec::new(), Vec::new());
    let mut flood_time = Duration::ZERO;
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| flood(port, flood_cpu, &requests, &floods, &over, &served));
        }
        let _pinned = pin(client_cpu);
        let mut client = Client::connect(port);
        let account = &ground.accounts[0];
        let mut salt = 1_000;
        for _ in 0..ROUNDS {
            for with_flood in [false, true] {
                let bids = (0..WARM_UP + ORDERS_PER_ROUND)
                    .map(|_| {
                        salt += 1;
                        account.bid(ground.tokens[0][0], BID_THAT_RESTS, salt)
                    })
                    .collect::<Vec<_>>();
                floods.store(with_flood, Ordering::Relaxed);
                let start = Instant::now();
                let times = orders(&mut client, &bids);
                if with_flood {
                    flood_time += start.elapsed();
                    flooded.extend(times);
                } else {
                    quiet.extend(times);
                }
                floods.store(false, Ordering::Relaxed);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    #[allow(clippy::cast_precision_loss, reason = "a rate is for people")]
    let reads = served.load(Ordering::Relaxed) as f64 / flood_time.as_secs_f64();
    println!("the flood had {reads:.0} reads/s");
    let (quiet, flooded) = (percentiles("quiet", quiet), percentiles("flooded", flooded));
    println!("ratios: p50 {:.2}, p99 {:.2}", flooded[0] / quiet[0], flooded[1] / quiet[1]);
    for (name, flooded, quiet) in [("p50", flooded[0], quiet[0]), ("p99", flooded[1], quiet[1])] {
        let what = format!("signed POST /order beside a flood of reads, {name}");
        figures::note_beside(what, flooded, Unit::Us, "without", quiet);
    }
    figures::note("reads that the flood got", reads, Unit::PerS);
}

fn orders(client: &mut Client, bids: &[Vec<u8>]) -> Vec<Duration> {
    let one = |bid: &Vec<u8>| {
        let (took, reply) = client.round_trip(bid);
        assert!(reply.contains("\"status\":\"live\""), "an order did not rest: {reply}");
        took
    };
    bids.iter().map(one).skip(WARM_UP).collect()
}

/// One connection that reads as fast as it is answered, while `floods` is set.
fn flood(
    port: u16,
    cpu: usize,
    requests: &[Vec<u8>],
    floods: &AtomicBool,
    over: &AtomicBool,
    served: &AtomicU64,
) {
    let _pinned = pin(cpu);
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    while !over.load(Ordering::Relaxed) {
        if !floods.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        for request in requests {
            connection.write_all(request).expect("the server reads");
            read_replies(&mut connection, 1);
            served.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Prints the median and the 99th percentile in microseconds and returns them.
fn percentiles(name: &str, mut times: Vec<Duration>) -> [f64; 2] {
    times.sort_unstable();
    let at = |per_cent: usize| times[(times.len() - 1) * per_cent / 100].as_secs_f64() * 1e6;
    println!("{name:>8}: p50 {:7.1} µs   p99 {:7.1} µs", at(50), at(99));
    [at(50), at(99)]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
