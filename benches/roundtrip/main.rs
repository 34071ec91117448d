//! The round trip of one signed POST /order, beside the least that any server must do for it.
//!
//! `cargo bench --bench roundtrip` starts Outcry and the floor server (`floor`), pins both to CPU 0 and itself
//! to CPU 1, and sends them the same kind of order in turn, round by round, over one connection each. It prints
//! the medians, the tails and the ratio of the medians. Good would be a ratio of 1.3 at most: then what Outcry
//! does beyond the floor (routing, registry, book, money, log, an answer that waits for its frame) costs less
//! than a third of the floor.
//!
//! With `ROUNDTRIP_DURABILITY=durable` an answer waits for the disk, and after each round blocks are written bare to the
//! same disk, by the client while both servers are suspended. Good is then a median of at most one such write, the
//! floor's median and 25 µs.
//!
//! Every reply is checked: an order that does not rest ends the run. Arguments after `--` are settings of
//! Outcry, as in `cargo bench --bench roundtrip -- auth.known_signers_bytes=16777216`.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

#[path = "../loopback/bare.rs"]
mod bare;
#[path = "../loopback/client.rs"]
mod client;
#[path = "../loopback/figures.rs"]
mod figures;
mod floor;
#[path = "../loopback/folder.rs"]
mod folder;
#[path = "../loopback/outcry.rs"]
mod outcry;
#[path = "../loopback/sign.rs"]
mod sign;

use alloy_primitives::U256;
use bare::Bare;
use client::{Client, Credentials};
use figures::Unit;
use outcry::{Outcry, Running, pin};
use sign::Signer;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Rounds; each goes to both servers.
const ROUNDS: usize = 24;

/// Orders in a round on each server.
const ORDERS_PER_ROUND: usize = 250;

/// Orders at the start of a round that are not counted, but by the server's own stages.
const WARM_UP: usize = 50;

/// What `durable` may add to a bare write and the floor.
const DURABLE_US: f64 = 25.0;

/// The first public test key of Anvil.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// Collateral in millionths for 5 shares, at a price of 0.01: it rests.
const BID: u64 = 50_000;

const SERVER_CPU: usize = 0;
const CLIENT_CPU: usize = 1;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, secret, domain] = arguments.as_slice()
        && word == "floor"
    {
        let _pinned = pin(SERVER_CPU);
        return floor::serve(secret, domain);
    }
    let signer = Signer::new(KEY);
    // `durable` is refused on tmpfs, which `committed` uses so that nothing stays on the disk.
    let durability = std::env::var("ROUNDTRIP_DURABILITY").unwrap_or_else(|_| "committed".to_owned());
    let directory = match durability.as_str() {
        "committed" => folder::in_memory(),
        _ => folder::on_disk(),
    };
    let (exchange, token) = start_outcry(directory.path(), &signer, &durability, &arguments);
    let credentials = client::credentials(exchange.http, &signer);
    let (floor_process, floor_port) = start_floor(&credentials);
    let _pinned = pin(CLIENT_CPU);

    let mut outcry = (&exchange.process, Client::connect(exchange.http));
    let mut floor = (&floor_process, Client::connect(floor_port));
    let mut salt = 0;
    let mut requests = |count: usize| -> Vec<Vec<u8>> {
        let made = (0..count as u64).map(|next| client::bid(&signer, &credentials, token, BID, salt + next));
        let made = made.collect();
        salt += count as u64;
        made
    };
    let mut disk =
        (durability == "durable").then(|| Bare::make(directory.path()).expect("a disk that takes O_DIRECT"));
    let (mut ours, mut theirs, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let orders = requests(WARM_UP + ORDERS_PER_ROUND);
        if round.is_multiple_of(2) {
            ours.extend(measure(&mut outcry, &floor_process, &orders));
            theirs.extend(measure(&mut floor, &exchange.process, &orders));
        } else {
            theirs.extend(measure(&mut floor, &exchange.process, &orders));
            ours.extend(measure(&mut outcry, &floor_process, &orders));
        }
        if let Some(disk) = &mut disk {
            exchange.process.let_run(false);
            floor_process.let_run(false);
            writes.extend((0..ORDERS_PER_ROUND).map(|_| disk.write().expect("the disk takes it")));
        }
    }
    println!(
        "{ROUNDS} rounds of {ORDERS_PER_ROUND} orders each, durability {durability}, server CPU {SERVER_CPU}, client CPU {CLIENT_CPU}"
    );
    let [ours, ours_p99] = summary("outcry", ours);
    let [theirs, theirs_p99] = summary("floor", theirs);
    figures::note_beside("signed POST /order, p50", micros(ours), Unit::Us, "floor", micros(theirs));
    figures::note_beside("signed POST /order, p99", micros(ours_p99), Unit::Us, "floor", micros(theirs_p99));
    if disk.is_some() {
        let [bare, _] = summary("bare", writes);
        let most = micros(bare) + micros(theirs) + DURABLE_US;
        println!("outcry's median may be {most:.1} µs: a bare write, the floor and {DURABLE_US} µs");
        let beside = format!("a bare write, the floor and {DURABLE_US} µs");
        figures::note_beside("an order that waits for the disk, p50", micros(ours), Unit::Us, &beside, most);
        figures::note("a bare write of 4 KiB, p50", micros(bare), Unit::Us);
    }
    exchange.process.let_run(true);
    let stages = &exchange.asked("/debug/latency")[0]["stages"];
    let stages = stages.as_object().expect("the trading loop's stages").iter();
    // Nothing passed the others. How long the loop was away says nothing of a server that was stopped every other round.
    let stages = stages.filter(|(stage, spent)| *stage != "away" && spent["count"] != 0);
    let stages = stages.map(|(stage, spent)| {
        figures::note(format!("server's {stage}, p50"), spent["p50_ns"].as_f64().expect("ns"), Unit::Ns);
        format!("{stage} {} ns", spent["p50_ns"])
    });
    println!("medians on the server: {}", stages.collect::<Vec<_>>().join(", "));
    println!("ratio of medians: {:.2}", ours.as_secs_f64() / theirs.as_secs_f64());
}

/// One round on one server while the other is suspended.
fn measure(server: &mut (&Running, Client), other: &Running, orders: &[Vec<u8>]) -> Vec<Duration> {
    other.let_run(false);
    server.0.let_run(true);
    run(&mut server.1, &orders[..WARM_UP]);
    run(&mut server.1, &orders[WARM_UP..])
}

fn run(client: &mut Client, orders: &[Vec<u8>]) -> Vec<Duration> {
    let one = |order: &Vec<u8>| {
        let (took, reply) = client.round_trip(order);
        assert!(reply.contains("\"status\":\"live\""), "an order did not rest: {reply}");
        took
    };
    orders.iter().map(one).collect()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Prints percentiles in microseconds and returns the median and the 99th.
fn summary(name: &str, mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort_unstable();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1_000];
    println!(
        "{name:>8}: p50 {:7.1} µs   p90 {:7.1} µs   p99 {:7.1} µs   p99.9 {:7.1} µs",
        micros(at(500)),
        micros(at(900)),
        micros(at(990)),
        micros(at(999))
    );
    [at(500), at(990)]
}

fn start_floor(credentials: &Credentials) -> (Running, u16) {
    let mut child = Command::new(std::env::current_exe().expect("we run"))
        .args(["floor", &credentials.secret, &sign::order_domain().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("our own binary starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("the floor prints its port");
    (Running(child), line.trim().parse().expect("a port"))
}

/// A server with one market, where the signer's wallet has money; and the market's first token.
fn start_outcry(directory: &Path, signer: &Signer, durability: &str, arguments: &[String]) -> (Outcry, U256) {
    let mut settings = vec![
        format!("journal.durability={durability}"),
        "cpu.policy=explicit".to_owned(),
        format!("cpu.shard_cpus={SERVER_CPU}"),
        "cpu.wait=spin".to_owned(),
    ];
    settings.extend(arguments.iter().filter(|argument| argument.contains('=')).cloned());
    let outcry = Outcry::start(directory, &settings);
    outcry.operator(&["market", "create", "Will it be fast?", "--tick", "0.001"]);
    outcry.operator(&["account", "credit", &signer.address.to_string(), "100000", "--ref", "roundtrip"]);
    let token = outcry.token();
    (outcry, token)
}
