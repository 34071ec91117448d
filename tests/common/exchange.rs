//! The binary under test as a process: started, asked, stopped, killed.

use super::text;
use super::wire::Connection;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a start or a stop may take before it counts as hung. Generous, because CI machines are
/// slow.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running `outcry`.
pub struct Exchange {
    child: Child,
    pub http: u16,
    pub admin: u16,
    log: PathBuf,
}

/// A market as its clients know it.
#[derive(Clone, Debug)]
pub struct Market {
    pub condition: String,
    pub tokens: [String; 2],
}

/// How to start one.
#[derive(Clone)]
pub struct Plan {
    folder: PathBuf,
    words: Vec<String>,
}

impl Plan {
    /// `outcry dev` without sample flow, with its data below `folder`.
    pub fn dev(folder: &Path) -> Self {
        Self::of(folder, "dev").words(["--flow", "0"])
    }

    /// `outcry serve` with its data below `folder`, as small as `dev`.
    pub fn serve(folder: &Path) -> Self {
        Self::of(folder, "serve")
            .set("sizes.books_bytes=16777216")
            .set("sizes.digests=10000")
            .set("sizes.resting_orders=10000")
            .set("sizes.wallets=10000")
    }

    fn of(folder: &Path, command: &str) -> Self {
        let plan = Self { folder: folder.to_owned(), words: Vec::new() };
        let data_dir = plan.data_dir();
        plan.words([command, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .words(["--data-dir", data_dir.to_str().unwrap()])
            // Not in /dev/shm, where nothing would clean up after a test.
            .set(&format!("journal.log_path={}", folder.join("ring").display()))
            // Small segments: a start fills one with zeros, and a check reads all of them.
            .set("journal.segment_bytes=4194304")
    }

    pub fn words<const N: usize>(mut self, words: [&str; N]) -> Self {
        self.words.extend(words.map(str::to_owned));
        self
    }

    /// Replaces the value of a flag that was given before.
    pub fn flag(mut self, flag: &str, value: &str) -> Self {
        let at = self.words.iter().position(|word| word == flag).unwrap();
        value.clone_into(&mut self.words[at + 1]);
        self
    }

    pub fn set(self, setting: &str) -> Self {
        self.words(["--set", setting])
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts it and waits until it is ready.
    pub fn start(&self) -> Exchange {
        let mut exchange = self.spawn();
        exchange.until_ready(&self.ports_file());
        exchange
    }

    /// Starts it with another standard error, and waits until it is ready.
    pub fn start_saying_to(&self, stderr: impl Into<Stdio>) -> Exchange {
        let mut exchange = self.spawn_saying_to(Some(stderr.into()));
        exchange.until_ready(&self.ports_file());
        exchange
    }

    /// Runs it to its end: for starts that must be refused.
    pub fn run(&self) -> Output {
        self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
    }

    fn ports_file(&self) -> PathBuf {
        self.folder.join("ports.json")
    }

    fn command(&self) -> Command {
        let mut command = binary();
        command.args(&self.words).arg("--ports-file").arg(self.ports_file()).stdin(Stdio::null());
        command
    }

    fn spawn(&self) -> Exchange {
        self.spawn_saying_to(None)
    }

    fn spawn_saying_to(&self, stderr: Option<Stdio>) -> Exchange {
        std::fs::create_dir_all(&self.folder).unwrap();
        let _ = std::fs::remove_file(self.ports_file());
        let log = self.folder.join("output");
        let file = File::create(&log).unwrap();
        let child = self
            .command()
            .stdout(file.try_clone().unwrap())
            .stderr(stderr.unwrap_or_else(|| file.into()))
            .spawn()
            .unwrap();
        Exchange { child, http: 0, admin: 0, log }
    }
}

impl Exchange {
    /// Opens a new connection to the public listener.
    pub fn connect(&self) -> Connection {
        Connection::open(self.http)
    }

    /// Opens a new connection to the operator's listener.
    pub fn operators(&self) -> Connection {
        Connection::open(self.admin)
    }

    /// A read of the public listener, as JSON; any status but 200 fails the test.
    pub fn read(&self, path: &str) -> Value {
        self.connect().read(path)
    }

    /// The operator's listener, as `--admin` takes it.
    pub fn admin_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    /// Runs a command of the operator that must succeed; returns what it printed, as JSON.
    #[track_caller]
    pub fn operator(&self, words: &[&str]) -> Value {
        let text = outcry_succeeds(&[words, &["--admin", &self.admin_url()]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Runs a command of the operator and returns what it did.
    pub fn operator_output(&self, words: &[&str]) -> Output {
        outcry(&[words, &["--admin", &self.admin_url()]].concat())
    }

    /// A new market, in which nobody quotes.
    #[track_caller]
    pub fn market(&self, question: &str) -> Market {
        let made = self.operator(&["market", "create", question]);
        Market {
            condition: text(&made["conditionId"]).to_owned(),
            tokens: [0, 1].map(|outcome| text(&made["tokens"][outcome]).to_owned()),
        }
    }

    /// The page of the operator's metrics.
    #[track_caller]
    pub fn metrics(&self) -> String {
        let answer = self.operators().request("GET", "/metrics", "", b"").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        String::from_utf8(answer.body).unwrap()
    }

    /// One number of the operator's metrics; the name is with its labels.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        sample(&self.metrics(), name)
    }

    /// Moves a clock that stands still; returns what it shows then, in milliseconds.
    #[track_caller]
    pub fn advance(&self, ms: i64) -> u64 {
        let body = json!({ "advance_ms": ms }).to_string();
        let answer = self.operators().request("POST", "/clock", "", body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["timeMs"].as_u64().unwrap()
    }

    /// Sets how many descriptors it may have; returns how many it might.
    pub fn limit_descriptors(&self, allowed: Option<u64>) -> Option<u64> {
        let limit = Rlimit { current: allowed, maximum: getrlimit(Resource::Nofile).maximum };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Nofile, limit).unwrap().current
    }

    /// How many of what its epoll sets know they watch for nothing but errors.
    pub fn unwatched(&self) -> usize {
        const ERRORS_ONLY: &str = "events:       18 ";
        let infos = std::fs::read_dir(format!("/proc/{}/fdinfo", self.child.id())).unwrap();
        // A descriptor may be closed meanwhile.
        let texts = infos.filter_map(|info| std::fs::read_to_string(info.unwrap().path()).ok());
        texts.map(|text| text.matches(ERRORS_ONLY).count()).sum()
    }

    /// What it has printed so far.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Kills it, as a power failure would, and waits until it has ended.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop; it must end by itself, with success.
    pub fn stop(self) {
        self.stop_by(Signal::TERM);
    }

    /// The same by another signal.
    pub fn stop_by(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "a graceful stop ended with {status}\n{}", self.output());
                return;
            }
            assert!(Instant::now() < deadline, "a graceful stop took too long\n{}", self.output());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn until_ready(&mut self, ports_file: &Path) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status}\n{}", self.output());
            }
            if self.ports(ports_file).is_some() {
                assert!(self.is_ready(), "who has read the ports is served\n{}", self.output());
                return;
            }
            assert!(Instant::now() < deadline, "the server did not become ready\n{}", self.output());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn ports(&mut self, ports_file: &Path) -> Option<()> {
        let ports: Value = serde_json::from_str(&std::fs::read_to_string(ports_file).ok()?).ok()?;
        self.http = u16::try_from(ports["http"].as_u64()?).unwrap();
        self.admin = u16::try_from(ports["admin"].as_u64()?).unwrap();
        Some(())
    }

    fn is_ready(&self) -> bool {
        Connection::try_open(self.admin)
            .and_then(|mut connection| connection.request("GET", "/ready", "", b""))
            .is_ok_and(|answer| answer.status == 200)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One number on a page of metrics; the name is with its labels.
#[track_caller]
pub fn sample(metrics: &str, name: &str) -> u64 {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}\n{metrics}")).parse().unwrap()
}

/// Runs one of the binary's other commands and returns what it did.
pub fn outcry(words: &[&str]) -> Output {
    binary().args(words).stdin(Stdio::null()).output().unwrap()
}

/// Everything that a command said.
#[track_caller]
pub fn said(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

/// Runs one of the commands on a journal, which must succeed; returns its standard output.
#[track_caller]
pub fn journal(command: &str, data_dir: &Path) -> String {
    outcry_succeeds(&["journal", command, "--data-dir", data_dir.to_str().unwrap()])
}

/// Runs one of the commands on a journal and returns what it did.
pub fn journal_output(command: &str, data_dir: &Path) -> Output {
    outcry(&["journal", command, "--data-dir", data_dir.to_str().unwrap()])
}

/// The binary under test, without what the environment would configure, and with SIGHUP as a terminal's programs have
/// it, though the tests may run under `nohup`.
pub fn binary() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_outcry")]);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"OUTCRY_")) {
        command.env_remove(name);
    }
    command
}

/// Runs a command that must succeed; returns its standard output.
#[track_caller]
pub fn outcry_succeeds(words: &[&str]) -> String {
    let output = outcry(words);
    assert!(output.status.success(), "outcry {words:?}\n{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
