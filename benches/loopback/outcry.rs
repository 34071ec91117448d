//! The server under measurement as a process: started on its CPU, told what to hold, ended.

use super::client::Client;
use super::folder;
use alloy_primitives::U256;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A process that ends when this value is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Lets the process run, or suspends it: two servers that poll on one CPU would take turns by
    /// the scheduler's slices, and neither would be measured.
    pub(crate) fn let_run(&self, runs: bool) {
        let signal = if runs { Signal::CONT } else { Signal::STOP };
        kill_process(Pid::from_child(&self.0), signal).expect("our own child");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait().map(drop)).expect("our own child");
    }
}

/// A running `outcry serve` with its data below one directory.
pub(crate) struct Outcry {
    pub(crate) process: Running,
    /// The public port.
    pub(crate) http: u16,
    admin: u16,
    token_file: PathBuf,
    _log: TempDir,
}

impl Outcry {
    /// Starts it with these settings, each `key=value`, and waits until it has bound its ports. Its log is in memory,
    /// as a server's is that is told nothing: on a disk the system writes it back, and appends wait for that.
    pub(crate) fn start(directory: &Path, settings: &[String]) -> Self {
        let ports = directory.join("ports.json");
        let data = directory.join("data");
        let token_file = data.join("admin-token");
        let mut command = Command::new(env!("CARGO_BIN_EXE_outcry"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        // The exchange is measured, not how fast it lets one client be.
        command.args(["--set", "limits.mode=off"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let log = folder::in_memory();
        command.args(["--set", &format!("journal.log_path={}", log.path().join("log").display())]);
        command.arg("--data-dir").arg(&data).arg("--ports-file").arg(&ports).stdout(Stdio::null());
        let process = Running(command.spawn().expect("outcry starts"));
        let (http, admin) = wait_for_ports(&ports);
        Self { process, http, admin, token_file, _log: log }
    }

    /// What the operator's listener answers at a path.
    pub(crate) fn asked(&self, path: &str) -> serde_json::Value {
        serde_json::from_str(&self.desk().ask("GET", path, "")).expect("JSON")
    }

    /// A connection to the operator's listener.
    pub(crate) fn desk(&self) -> Desk {
        let token = std::fs::read_to_string(&self.token_file).expect("serve makes its token");
        Desk { client: Client::connect(self.admin), token: token.trim().to_owned() }
    }

    /// The first outcome's token of the only market.
    pub(crate) fn token(&self) -> U256 {
        let mut client = Client::connect(self.http);
        let (_, reply) = client.round_trip(b"GET /simplified-markets HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let token = reply.split("\"token_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        token.unwrap_or_else(|| panic!("no token in {reply}")).parse().expect("a decimal token")
    }

    /// Runs one of the operator's commands, which must succeed.
    pub(crate) fn operator(&self, words: &[&str]) {
        let done = Command::new(env!("CARGO_BIN_EXE_outcry"))
            .args(words)
            .args(["--admin", &format!("http://127.0.0.1:{}", self.admin), "--token-file"])
            .arg(&self.token_file)
            .output()
            .expect("outcry runs");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The operator's listener, over one connection.
pub(crate) struct Desk {
    client: Client,
    token: String,
}

impl Desk {
    /// The body of the answer to this request, which must succeed.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> String {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        let (_, reply) = self.client.round_trip(request.as_bytes());
        let (head, body) = reply.split_once("\r\n\r\n").expect("an answer has a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {reply}");
        body.to_owned()
    }
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

/// Keeps the calling thread, and processes that it starts meanwhile, on one CPU until the value is
/// dropped.
pub(crate) struct Pinned(rustix::thread::CpuSet);

/// Keeps the calling thread on `cpu`.
pub(crate) fn pin(cpu: usize) -> Pinned {
    let before = rustix::thread::sched_getaffinity(None).expect("it is known");
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("the CPU is allowed");
    Pinned(before)
}

impl Drop for Pinned {
    fn drop(&mut self) {
        rustix::thread::sched_setaffinity(None, &self.0).expect("the CPUs were allowed before");
    }
}
