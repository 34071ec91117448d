//! The round trip of one signed POST /order, beside the least that any server must do for it.
//!
//! `cargo bench --bench roundtrip` starts Outcry and the floor server (`floor`), pins both to
//! CPU 0 and itself to CPU 1, and sends them the same kind of order in turn, round by round, over
//! one connection each. It prints the medians, the tails and the ratio of the medians. Good would
//! be a ratio of 1.3 at most: what Outcry does beyond the floor (routing, registry, book, money,
//! log, one answer that waits for its frame) then costs less than a third of the whole.
//!
//! Every reply is checked: an order that does not rest ends the run.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

mod client;
mod floor;
mod sign;

use alloy_primitives::U256;
use client::{Client, Credentials};
use rustix::process::{Pid, Signal, kill_process};
use sign::Signer;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Rounds; each goes to both servers.
const ROUNDS: usize = 24;

/// Orders in a round on each server.
const ORDERS_PER_ROUND: usize = 250;

/// Orders at the start of a round that do not count.
const WARM_UP: usize = 50;

/// The first public test key of Anvil.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

const SERVER_CPU: usize = 0;
const CLIENT_CPU: usize = 1;

/// A process that ends with this value.
struct Running(Child);

impl Running {
    /// Lets the process run, or stops it where it is: two servers that poll on one CPU would take
    /// turns by the scheduler's slices, and neither would be measured.
    fn let_run(&self, runs: bool) {
        let signal = if runs { Signal::CONT } else { Signal::STOP };
        kill_process(Pid::from_child(&self.0), signal).expect("our own child");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait().map(drop)).expect("our own child");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, secret, domain] = arguments.as_slice()
        && word == "floor"
    {
        pin(SERVER_CPU);
        return floor::serve(secret, domain);
    }
    let signer = Signer::new(KEY);
    // `durable` is refused on tmpfs; `committed` puts all of it there and leaves nothing behind.
    let durability = std::env::var("ROUNDTRIP_DURABILITY").unwrap_or_else(|_| "committed".to_owned());
    let directory = match durability.as_str() {
        "committed" => tempfile::tempdir_in("/dev/shm"),
        _ => tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")),
    };
    let directory = directory.expect("a temporary directory");
    let (outcry_process, port, token) = start_outcry(directory.path(), &signer, &durability);
    let credentials = client::credentials(port, &signer);
    let (floor_process, floor_port) = start_floor(&credentials);
    pin(CLIENT_CPU);

    let mut outcry = (outcry_process, Client::connect(port));
    let mut floor = (floor_process, Client::connect(floor_port));
    let mut salt = 0;
    let mut requests = |count: usize| -> Vec<Vec<u8>> {
        let made =
            (0..count as u64).map(|next| client::order_request(&signer, &credentials, token, salt + next));
        let made = made.collect();
        salt += count as u64;
        made
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let orders = requests(WARM_UP + ORDERS_PER_ROUND);
        if round.is_multiple_of(2) {
            ours.extend(measure(&mut outcry, &floor.0, &orders));
            theirs.extend(measure(&mut floor, &outcry.0, &orders));
        } else {
            theirs.extend(measure(&mut floor, &outcry.0, &orders));
            ours.extend(measure(&mut outcry, &floor.0, &orders));
        }
    }
    println!(
        "{ROUNDS} rounds of {ORDERS_PER_ROUND} orders each, durability {durability}, server CPU {SERVER_CPU}, client CPU {CLIENT_CPU}"
    );
    let ours = summary("outcry", ours);
    let theirs = summary("floor", theirs);
    println!("ratio of medians: {:.2}", ours.as_secs_f64() / theirs.as_secs_f64());
}

/// One round on one server while the other stands still.
fn measure(server: &mut (Running, Client), other: &Running, orders: &[Vec<u8>]) -> Vec<Duration> {
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

/// Prints percentiles in microseconds and returns the median.
fn summary(name: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1_000];
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    println!(
        "{name:>8}: p50 {:7.1} µs   p90 {:7.1} µs   p99 {:7.1} µs   p99.9 {:7.1} µs",
        micros(at(500)),
        micros(at(900)),
        micros(at(990)),
        micros(at(999))
    );
    at(500)
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

/// A server with one market, and the signer's wallet funded; its port and a token.
fn start_outcry(directory: &Path, signer: &Signer, durability: &str) -> (Running, u16, U256) {
    let ports = directory.join("ports.json");
    let data = directory.join("data");
    let token_file = data.join("admin-token");
    let log_path = format!("journal.log_path={}", directory.join("log").display());
    let durability = format!("journal.durability={durability}");
    let shard_cpu = format!("cpu.shard_cpus={SERVER_CPU}");
    let child = Command::new(env!("CARGO_BIN_EXE_outcry"))
        .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .args(["--set", &durability, "--set", "cpu.policy=manual", "--set", &shard_cpu])
        .args(["--set", "cpu.wait=spin", "--set", &log_path])
        .arg("--data-dir")
        .arg(&data)
        .arg("--ports-file")
        .arg(&ports)
        .stdout(Stdio::null())
        .spawn()
        .expect("outcry starts");
    let running = Running(child);
    let (http, admin) = wait_for_ports(&ports);
    let operator = |words: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_outcry"))
            .args(words)
            .args(["--admin", &format!("http://127.0.0.1:{admin}"), "--token-file"])
            .arg(&token_file)
            .output()
            .expect("outcry runs");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    operator(&["market", "create", "Will it be fast?", "--tick", "0.001"]);
    operator(&["account", "credit", &signer.address.to_string(), "100000", "--ref", "roundtrip"]);
    let mut client = Client::connect(http);
    let (_, reply) = client.round_trip(b"GET /simplified-markets HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let token = reply.split("\"token_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let token = token.unwrap_or_else(|| panic!("no token in {reply}")).parse().expect("a decimal token");
    (running, http, token)
}

fn wait_for_ports(path: &Path) -> (u16, u16) {
    loop {
        if let Ok(text) = std::fs::read_to_string(path)
            && let Ok(ports) = serde_json::from_str::<serde_json::Value>(&text)
        {
            let port = |name: &str| u16::try_from(ports[name].as_u64().expect("a number")).expect("a port");
            return (port("http"), port("admin"));
        }
        std::thread::yield_now();
    }
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("the CPU is allowed");
}
