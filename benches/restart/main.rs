//! How long a restart takes: from the start of a new process to `/ready`, with the page cache dropped.
//!
//! A history is written in steps of a million orders. After each step the exchange is started, which replays what is
//! behind the last snapshot (the first start has none), makes a snapshot and is killed. Then it is started three times
//! from the last snapshot.
//!
//! `cargo bench --bench restart -- [ORDERS] [DIRECTORY]`. A good number: ten million orders, of
//! which a million rest, within ten seconds on two cores. Only root may drop the page cache; without that the figures
//! say that it was warm.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[path = "../loopback/figures.rs"]
mod figures;
mod history;
#[path = "../loopback/status.rs"]
mod status;

use figures::Unit;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SEGMENT_BYTES: u64 = 64 << 20;
/// Orders between two snapshots: about the eight segments of 64 MiB after which a server makes one.
const STEP: usize = 1_000_000;

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let orders: u64 =
        words.first().map_or(Ok(100_000), |word| word.parse()).map_err(|_| "ORDERS: a number")?;
    let directory = words.get(1).map_or_else(|| std::env::temp_dir().join("outcry-restart"), PathBuf::from);
    let data_dir = directory.join("data");
    if !data_dir.join("journal").exists() {
        std::fs::create_dir_all(&directory).map_err(|fault| fault.to_string())?;
        outcry(&["init", "--data-dir", &text(&data_dir), "--config", &text(&directory.join("outcry.toml"))])?;
        for first in (0..orders).step_by(STEP) {
            step(&directory, first..orders.min(first + STEP as u64))?;
        }
    }
    let [segments, snapshots] = ["journal", "snapshots"].map(|name| mib(&data_dir.join(name)));
    println!("on disk: segments {segments} MiB, snapshots {snapshots} MiB");
    figures::note("segments on disk", bytes(segments), Unit::Bytes);
    figures::note("snapshots on disk", bytes(snapshots), Unit::Bytes);
    for start in ["first", "second", "third"] {
        let dropped = drop_page_cache();
        let (mut server, ready) = Server::start(&directory)?;
        println!(
            "start from the snapshot: ready in {ready:.1?} (page cache {dropped}), {} MiB resident",
            server.resident_mib()
        );
        let there = server.orders()?;
        if there != orders {
            return Err(format!(
                "{there} orders are there instead of {orders}: remove {}",
                directory.display()
            ));
        }
        let what = format!("{start} start from the snapshot, {orders} orders, page cache {}", word(dropped));
        figures::note(what, ready.as_secs_f64(), Unit::S);
        let what = format!("resident behind the {start} start");
        figures::note(what, bytes(server.resident_mib()), Unit::Bytes);
        server.kill();
    }
    Ok(())
}

/// Lengthens the history, starts the exchange on it, and makes a snapshot.
fn step(directory: &Path, orders: Range<u64>) -> Result<(), String> {
    let began = Instant::now();
    let last = orders.end;
    let end = history::write(&directory.join("data"), SEGMENT_BYTES, orders)?;
    println!("history: {last} orders, {} MiB of frames, written in {:.1?}", end.0 >> 20, began.elapsed());
    let dropped = drop_page_cache();
    let (mut server, ready) = Server::start(directory)?;
    println!(
        "start with {STEP} orders at most behind the last snapshot: ready in {ready:.1?} (page cache {dropped})"
    );
    let what = format!(
        "start with {STEP} orders at most behind the last snapshot, of {last}, page cache {}",
        word(dropped)
    );
    figures::note(what, ready.as_secs_f64(), Unit::S);
    println!("snapshot: {}", server.ask("POST", "/snapshot", "{}")?);
    println!("{} MiB resident after it", server.resident_mib());
    server.kill();
    Ok(())
}

struct Server {
    child: Child,
    admin: u16,
    token: String,
}

impl Server {
    /// Starts the exchange; returns it with the time until it was ready.
    fn start(directory: &Path) -> Result<(Self, Duration), String> {
        let ports = directory.join("ports.json");
        let _ = std::fs::remove_file(&ports);
        let data_dir = directory.join("data");
        let began = Instant::now();
        let log = std::fs::File::create(directory.join("server.log")).map_err(|fault| fault.to_string())?;
        let child = Command::new(env!("CARGO_BIN_EXE_outcry"))
            .args([
                "serve",
                "--config",
                &text(&directory.join("outcry.toml")),
                "--data-dir",
                &text(&data_dir),
            ])
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ports-file", &text(&ports)])
            .args(["--set", "cpu.shards=2", "--set", "sizes.resting_orders=2000000"])
            .args(["--set", "limits.mode=off"])
            .args(["--set", &format!("journal.log_path={}", text(&directory.join("log")))])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|fault| fault.to_string())?;
        let mut server = Self { child, admin: 0, token: String::new() };
        let found = loop {
            if let Ok(text) = std::fs::read_to_string(&ports) {
                break text;
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                let said = std::fs::read_to_string(directory.join("server.log")).unwrap_or_default();
                return Err(format!("the exchange ended with {status}: {said}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let admin = found.split("\"admin\":").nth(1).unwrap_or("").trim_end().trim_end_matches('}');
        server.admin = admin.parse().map_err(|_| format!("ports file: {found}"))?;
        let token = std::fs::read_to_string(data_dir.join("admin-token"));
        token.unwrap_or_default().trim().clone_into(&mut server.token);
        while !server.ask("GET", "/ready", "")?.contains("true") {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok((server, began.elapsed()))
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String, String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.admin)).map_err(|fault| fault.to_string())?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).map_err(|fault| fault.to_string())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(|fault| fault.to_string())?;
        Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or(answer))
    }

    /// How many orders there ever were.
    fn orders(&mut self) -> Result<u64, String> {
        let metrics = self.ask("GET", "/metrics", "")?;
        let count = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.trim().parse::<u64>().ok()).ok_or(format!("/metrics: no {name}"))
        };
        Ok(count("outcry_archived_rows ")? + count("outcry_orders_in_memory ")?)
    }

    fn resident_mib(&self) -> u64 {
        status::bytes(self.child.id(), "VmRSS:").unwrap_or(0) >> 20
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn outcry(words: &[&str]) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_outcry")).args(words).output();
    let output = output.map_err(|fault| fault.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn drop_page_cache() -> &'static str {
    let _ = Command::new("sync").status();
    match std::fs::write("/proc/sys/vm/drop_caches", "3") {
        Ok(()) => "dropped",
        Err(_) => "warm: only root may drop it",
    }
}

/// The first words of a text about the page cache, up to a colon.
fn word(dropped: &str) -> &str {
    dropped.split(':').next().unwrap_or(dropped)
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^53 bytes")]
fn bytes(mib: u64) -> f64 {
    (mib << 20) as f64
}

fn mib(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|about| about.len()).sum::<u64>() >> 20
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
