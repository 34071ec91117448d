//! `outcry import gamma FILE` against a running `outcry serve`, each in a process of its own.

use super::figures::{self, Unit};
use super::{folder, status, timed};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a running process is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Linux counts a process's CPU time in hundredths of a second, whatever its kernel's tick is.
const TICKS_PER_SECOND: u64 = 100;

/// Imports `file`, which holds `markets` markets, twice; prints how long that took, and the CPU
/// time of each part of the exchange.
pub(crate) fn measure(file: &Path, markets: usize, last_id: u64) {
    let folder = folder::on_disk();
    let server = Server::start(folder.path());
    let mut before = server.threads();
    for (turn, added) in [("first", markets), ("second", 0)] {
        let client = timed(&format!("{turn} import"), markets, || server.import(file, folder.path()));
        assert!(client.status.success(), "{}", client.said);
        let wanted = format!("markets: {added} added, 0 updated, {} unchanged", markets - added);
        assert!(client.said.contains(&wanted), "{}", client.said);
        println!("  client: {:.2} s of CPU, {} MiB resident at most", client.cpu_s, client.resident_mib);
        figures::note(format!("{turn} import, client's CPU"), client.cpu_s, Unit::S);
        figures::note(format!("{turn} import, client's memory"), bytes(client.resident_mib), Unit::Bytes);
        let after = server.threads();
        for (name, cpu_s) in &after {
            let earlier = before.iter().find(|(known, _)| known == name).map_or(0.0, |(_, cpu_s)| *cpu_s);
            // Threads that have ended took their time with them.
            let cpu_s = (cpu_s - earlier).max(0.0);
            println!("  {name}: {cpu_s:.2} s of CPU");
            figures::note(format!("{turn} import, CPU of {name}"), cpu_s, Unit::S);
        }
        let resident_mib = peak_mib(server.child.id());
        println!("  exchange: {resident_mib} MiB resident at most");
        figures::note(format!("{turn} import, exchange's memory"), bytes(resident_mib), Unit::Bytes);
        before = after;
        assert_eq!(server.status_of(&format!("/markets/{last_id}")), 200, "the last row is there");
    }
    let start = Instant::now();
    while server.status_of("/public-search?q=anything") != 200 {
        std::thread::sleep(LOOK_EVERY);
    }
    let behind = start.elapsed();
    println!("search is up to date {behind:.2?} behind that");
    figures::note("search up to date behind the second import", behind.as_secs_f64(), Unit::S);
}

/// The result of the command.
struct Client {
    status: ExitStatus,
    said: String,
    cpu_s: f64,
    resident_mib: u64,
}

struct Server {
    child: Child,
    http: u64,
    admin: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait().map(drop)).expect("our own child");
    }
}

impl Server {
    fn start(folder: &Path) -> Self {
        let (ports, output) = (folder.join("ports.json"), folder.join("output"));
        let child = Command::new(env!("CARGO_BIN_EXE_outcry"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("data"))
            .args(["--set", &format!("journal.log_path={}", folder.join("log").display()), "--ports-file"])
            .arg(&ports)
            .args(["--set", "limits.mode=off"])
            .stdout(Stdio::null())
            .stderr(File::create(&output).expect("a file"))
            .spawn()
            .expect("outcry starts");
        let mut server = Self { child, http: 0, admin: 0 };
        let found = loop {
            let text = std::fs::read_to_string(&ports).unwrap_or_default();
            if let Ok(found) = serde_json::from_str::<serde_json::Value>(&text) {
                break found;
            }
            let ended = server.child.try_wait().expect("our own child");
            assert!(ended.is_none(), "{}", std::fs::read_to_string(&output).unwrap_or_default());
            std::thread::sleep(LOOK_EVERY);
        };
        server.http = found["http"].as_u64().expect("a port");
        server.admin = found["admin"].as_u64().expect("a port");
        while server.status_of("/ok") != 200 {
            std::thread::sleep(LOOK_EVERY);
        }
        server
    }

    fn import(&self, file: &Path, folder: &Path) -> Client {
        let (output, faults) = (folder.join("import.out"), folder.join("import.err"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_outcry"))
            .args(["import", "gamma", "--admin", &format!("http://127.0.0.1:{}", self.admin), "--token-file"])
            .arg(folder.join("data/admin-token"))
            .arg(file)
            .stdout(File::create(&output).expect("a file"))
            .stderr(File::create(&faults).expect("a file"))
            .spawn()
            .expect("outcry runs");
        let (mut cpu_s, mut resident_mib) = (0.0, 0);
        let status = loop {
            // The figures of a process vanish when it ends, so the last ones read count.
            cpu_s = cpu_seconds(&format!("/proc/{}/stat", child.id())).unwrap_or(cpu_s);
            resident_mib = peak_mib(child.id()).max(resident_mib);
            if let Some(status) = child.try_wait().expect("our own child") {
                break status;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let said = [output, faults].map(|path| std::fs::read_to_string(path).unwrap_or_default()).concat();
        Client { status, said, cpu_s, resident_mib }
    }

    /// The CPU time of all threads, summed by name.
    fn threads(&self) -> Vec<(String, f64)> {
        let mut all: Vec<(String, f64)> = Vec::new();
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("a process");
        for task in tasks.filter_map(Result::ok) {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            // The search's helpers come and go with their times, so they count as one.
            let name = name.trim().trim_end_matches(|last: char| last.is_ascii_digit() || last == '-');
            let is_own = ["outcry", "journal", "snapshot"].iter().any(|own| name.starts_with(own));
            let name = if is_own { name } else { "search's helpers" };
            let cpu_s = thread_seconds(&task.path()).unwrap_or(0.0);
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += cpu_s,
                None => all.push((name.to_owned(), cpu_s)),
            }
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    fn status_of(&self, path: &str) -> u16 {
        let ask = || -> std::io::Result<u16> {
            let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(self.http).expect("a port")))?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            reader.read_line(&mut line)?;
            reader.read_to_end(&mut Vec::new())?;
            Ok(line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0))
        };
        ask().expect("it answers")
    }
}

/// CPU time of the thread in this folder of /proc, to the nanosecond; none once it has ended.
#[allow(clippy::cast_precision_loss, reason = "seconds for people")]
fn thread_seconds(folder: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
    let ns: u64 = text.split(' ').next()?.parse().ok()?;
    Some(ns as f64 / 1e9)
}

/// User and system time from a `stat` file of /proc, threads that have ended included; none once the process has ended.
#[allow(clippy::cast_precision_loss, reason = "seconds for people")]
fn cpu_seconds(path: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    // The name before it is in brackets and may contain anything.
    let (_, fields) = text.rsplit_once(") ")?;
    let ticks = |at: usize| fields.split(' ').nth(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / TICKS_PER_SECOND as f64)
}

#[allow(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
fn bytes(mib: u64) -> f64 {
    (mib << 20) as f64
}

/// The most memory that a process has had, in MiB.
fn peak_mib(id: u32) -> u64 {
    status::bytes(id, "VmHWM:").unwrap_or(0) >> 20
}
