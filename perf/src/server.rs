//! The server under measurement as a process: started with settings, given markets and money, and ended by
//! its own process id.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::U256;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::counts::Counted;
use crate::http::Http;
use crate::leftovers;

/// How long a start or a stop may take before it counts as hung.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that is asked only for the time and has not answered by then hangs.
const SILENCE: Duration = Duration::from_secs(5);

/// How long a server that has closed its sockets may take to end.
const ENDING: Duration = Duration::from_secs(1);

/// How many lines of its log are kept of a server that failed, or that warned.
const LAST_LINES: usize = 20;

/// Settings of every measured server: the exchange is measured, not the limit of one client.
const SETTINGS: [&str; 1] = ["limits.mode=off"];

/// All settings of a server that is started with `settings`, in order.
pub(crate) fn with_the_rigs(settings: &[String]) -> Vec<String> {
    SETTINGS.iter().map(|&setting| setting.to_owned()).chain(settings.iter().cloned()).collect()
}

/// The absolute path of the binary at `path`. A name without a folder would mean whatever `PATH` has by that name.
pub(crate) fn binary(path: &Path) -> Result<PathBuf, String> {
    let fault = |what: &dyn std::fmt::Display| format!("the server's binary {}: {what}", path.display());
    if !path.is_file() {
        return Err(fault(&"there is no such file here"));
    }
    std::path::absolute(path).map_err(|error| fault(&error))
}

/// A running `outcry serve`.
pub(crate) struct Server {
    child: Child,
    /// The public port.
    pub(crate) http: u16,
    admin: u16,
    token: String,
    log: PathBuf,
}

impl Server {
    /// Starts the server with its data in `folder` and its log in `memory`, and waits until it has bound its ports. What
    /// it prints goes to `folder/server.log`; if it ends before that, the error has it.
    pub(crate) fn start(
        binary: &Path,
        folder: &Path,
        memory: &Path,
        settings: &[String],
    ) -> Result<Self, String> {
        let (data, ports, log) = (folder.join("data"), folder.join("ports.json"), folder.join("server.log"));
        let fault = |what: &Path, fault: std::io::Error| format!("{}: {fault}", what.display());
        let output = File::create(&log).map_err(|error| fault(&log, error))?;
        let mut command = leftovers::held(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        for setting in with_the_rigs(settings) {
            command.args(["--set", &setting]);
        }
        command.args(["--set", &format!("journal.log_path={}", memory.join("log").display())]);
        command.arg("--data-dir").arg(&data).arg("--ports-file").arg(&ports);
        command.env("NO_COLOR", "1").env_remove("OUTCRY_ADMIN_TOKEN");
        command.stdout(Stdio::null()).stderr(output);
        let mut child = leftovers::spawn(&mut command).map_err(|error| fault(binary, error))?;
        let found = wait_for_ports(&mut child, &ports);
        let mut server = Self { child, http: 0, admin: 0, token: String::new(), log };
        (server.http, server.admin) =
            found.map_err(|complaint| format!("{complaint}\nthe server's words:\n{}", server.said()))?;
        let token = data.join("admin-token");
        let text = std::fs::read_to_string(&token).map_err(|error| fault(&token, error))?;
        text.trim().clone_into(&mut server.token);
        Ok(server)
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Makes `count` markets and returns their tokens.
    pub(crate) fn markets(&self, count: u32) -> Result<Vec<[U256; 2]>, String> {
        let mut admin = Http::connect(self.admin)?;
        let mut made = Vec::new();
        for number in 0..count {
            let question = format!("Will measurement {number} repeat?");
            let body =
                format!("{{\"question\":\"{question}\",\"outcomes\":[\"Yes\",\"No\"],\"tick\":\"0.01\"}}");
            let answer = self.operator(&mut admin, "/markets", &body)?;
            let token = |index: usize| -> Option<U256> { answer["tokens"][index].as_str()?.parse().ok() };
            let tokens =
                token(0).zip(token(1)).ok_or_else(|| format!("a market without tokens: {answer}"))?;
            made.push([tokens.0, tokens.1]);
        }
        Ok(made)
    }

    /// Gives a wallet collateral.
    pub(crate) fn credit(&self, address: &str, amount: u64) -> Result<(), String> {
        let body = format!("{{\"amount\":\"{amount}\",\"ref\":\"{address}\"}}");
        self.operator(&mut Http::connect(self.admin)?, &format!("/accounts/{address}/credit"), &body)
            .map(drop)
    }

    /// A number from the operator's metrics; `None` if a server of another version does not have it.
    pub(crate) fn metric(&self, name: &str) -> Result<Option<u64>, String> {
        let text = self.metrics()?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .map(|text| text.parse().map_err(|_| format!("{name}: got {text}; needed: a number")))
            .transpose()
    }

    /// Waits until reads include everything that was answered, so that no work is left.
    pub(crate) fn settle(&self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let at = |name: &str| {
            let position = self.metric(&format!("outcry_{name}_position"))?;
            position.ok_or_else(|| format!("the server does not tell outcry_{name}_position"))
        };
        let answered = at("acknowledged")?;
        while at("applied")? < answered {
            if deadline < Instant::now() {
                return Err(format!("reads are behind after {} s", PATIENCE.as_secs()));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// How long each loop has worked since its start; empty if the server does not report it.
    pub(crate) fn worked(&self) -> Vec<Worked> {
        self.metrics().map(|text| worked(&text)).unwrap_or_default()
    }

    /// What its threads have counted since its start.
    pub(crate) fn counted(&self) -> Counted {
        self.read("/debug/latency?counts=true").map(|text| Counted::parse(&text)).unwrap_or_default()
    }

    fn metrics(&self) -> Result<String, String> {
        self.read("/metrics")
    }

    /// Whether it still answers anything at all.
    pub(crate) fn answers(&self) -> bool {
        let asked = Http::connect_for(self.http, SILENCE);
        asked.and_then(|mut http| http.ask(b"GET /time HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).is_ok()
    }

    /// A complaint about what it did, with how it ended, if it did, and the last that it said: its folder, with the log
    /// in it, is removed. A server that is silent is killed, because it would not react to a signal to end either.
    pub(crate) fn told(&mut self, complaint: &str) -> String {
        let end = if self.answers() {
            String::new()
        } else if let Some(status) = ended_within(&mut self.child, ENDING) {
            format!("\nthe server had ended: {status}")
        } else {
            self.signal(Signal::KILL);
            "\nthe server was silent, and is killed".to_owned()
        };
        format!("{complaint}{end}\nthe server's last words:\n{}", last_lines(&self.said(), LAST_LINES))
    }

    /// What the operator's listener answers to a read.
    fn read(&self, path: &str) -> Result<String, String> {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n", self.token);
        let reply = Http::connect(self.admin)?.ask(request.as_bytes())?;
        reply.body().map(str::to_owned)
    }

    fn operator(&self, admin: &mut Http, path: &str, body: &str) -> Result<Value, String> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        let reply = admin.ask(request.as_bytes()).map_err(|fault| format!("POST {path}: {fault}"))?;
        let answer = reply.body().map_err(|fault| format!("POST {path}: {fault}"))?;
        serde_json::from_str(answer).map_err(|fault| format!("the answer to POST {path}: {fault}"))
    }

    fn signal(&mut self, signal: Signal) {
        // A process that has ended keeps its pid until it has been waited for; then it may be another's.
        if let Ok(None) = leftovers::try_wait(&mut self.child) {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        let mut is_killed = false;
        while let Ok(None) = leftovers::try_wait(&mut self.child) {
            if !is_killed && deadline < Instant::now() {
                self.signal(Signal::KILL);
                is_killed = true;
            }
            std::thread::yield_now();
        }
    }
}

/// How long a loop has worked since its start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Worked {
    /// Its thread's name.
    pub(crate) name: String,
    /// Seconds of all turns that had work.
    pub(crate) turns_s: f64,
    /// The part of them that went into writing to sockets.
    pub(crate) sends_s: Option<f64>,
}

/// The sums of each loop's turns and of its writes, from a page of `/metrics`.
fn worked(page: &str) -> Vec<Worked> {
    let of = |stage: &str| -> Vec<(String, f64)> {
        let end = format!("\",stage=\"{stage}\"");
        let of_line = |line: &str| {
            let (labels, seconds) =
                line.strip_prefix("outcry_duration_seconds_sum{loop=\"")?.split_once("} ")?;
            Some((labels.strip_suffix(&end)?.to_owned(), seconds.parse().ok()?))
        };
        page.lines().filter_map(of_line).collect()
    };
    let sends = of("send");
    let sent = |name: &str| sends.iter().find(|(known, _)| known == name).map(|(_, seconds)| *seconds);
    let turns = of("turn").into_iter();
    turns.map(|(name, turns_s)| Worked { sends_s: sent(&name), name, turns_s }).collect()
}

/// How the process ended, if it does within `patience`.
fn ended_within(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + patience;
    loop {
        if let Ok(ended @ Some(_)) = leftovers::try_wait(child) {
            return ended;
        }
        if deadline < Instant::now() {
            return None;
        }
        std::thread::yield_now();
    }
}

/// At most so many of the last lines.
fn last_lines(said: &str, count: usize) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The log's lines that are more than information: their second word is the level.
pub(crate) fn warnings(said: &str) -> Vec<String> {
    let is_more = |line: &&str| matches!(line.split_whitespace().nth(1), Some("WARN" | "ERROR"));
    let lines: Vec<&str> = said.lines().filter(is_more).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|&line| line.to_owned()).collect()
}

fn wait_for_ports(child: &mut Child, path: &Path) -> Result<(u16, u16), String> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Ok(text) = std::fs::read_to_string(path)
            && let Ok(ports) = serde_json::from_str::<Value>(&text)
        {
            let port = |name: &str| ports[name].as_u64().and_then(|port| u16::try_from(port).ok());
            return port("http").zip(port("admin")).ok_or_else(|| format!("no ports in {text}"));
        }
        if let Ok(Some(status)) = leftovers::try_wait(child) {
            return Err(format!("the server ended before it served: {status}"));
        }
        std::thread::yield_now();
    }
    Err(format!("the server did not serve within {} s", PATIENCE.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_binary_is_a_file_that_was_named_and_never_one_of_the_path() {
        // Tests run in the package's folder.
        for (path, is_there) in [("Cargo.toml", true), ("./src/main.rs", true), ("sh", false), ("src", false)]
        {
            let found = binary(Path::new(path));
            assert_eq!(found.is_ok(), is_there, "{path}");
            match found {
                Ok(found) => assert!(found.is_absolute() && found.is_file(), "{found:?}"),
                Err(complaint) => {
                    assert_eq!(complaint, format!("the server's binary {path}: there is no such file here"));
                }
            }
        }
    }

    #[test]
    fn of_a_log_its_end_and_its_warnings_are_kept() {
        let said = "outcry: a WARN of itself\n2026 INFO a: b\n2026  WARN a: c\n2026 ERROR a: d\nthread 'x' panicked\n";
        assert_eq!(warnings(said), ["2026  WARN a: c", "2026 ERROR a: d"]);
        assert_eq!(last_lines(said, 2), "2026 ERROR a: d\nthread 'x' panicked");
        assert_eq!((last_lines("", 2), last_lines("a", 2)), (String::new(), "a".to_owned()));
        let many: Vec<String> = (0..100).map(|number| format!("t WARN {number}")).collect();
        assert_eq!(warnings(&many.join("\n")), many[100 - LAST_LINES..]);
    }

    #[test]
    fn a_complaint_about_a_server_that_has_ended_has_its_end_and_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("server.log");
        std::fs::write(&log, "out of patience\n").unwrap();
        let child = leftovers::spawn(Command::new("sh").args(["-c", "exit 3"])).unwrap();
        // Nobody listens where a listener has just been.
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let mut server = Server { child, http: port, admin: port, token: String::new(), log };
        let expected = "the server closed a connection\nthe server had ended: exit status: 3\nthe server's last words:\n\
                        out of patience";
        assert_eq!(server.told("the server closed a connection"), expected);
    }

    #[test]
    fn what_each_loop_worked_is_the_sum_of_its_turns() {
        let page = "# TYPE x histogram\n\
            outcry_duration_seconds_sum{loop=\"outcry-shard0\",stage=\"sign\"} 1.5\n\
            outcry_duration_seconds_sum{loop=\"outcry-shard0\",stage=\"turn\"} 2.5\n\
            outcry_duration_seconds_sum{loop=\"outcry-shard0\",stage=\"send\"} 0.5\n\
            outcry_duration_seconds_count{loop=\"outcry-shard0\",stage=\"turn\"} 9\n\
            outcry_duration_seconds_sum{loop=\"outcry-reader\",stage=\"turn\"} 0.25\n";
        let of = |name: &str, turns_s, sends_s| Worked { name: name.to_owned(), turns_s, sends_s };
        assert_eq!(worked(page), [of("outcry-shard0", 2.5, Some(0.5)), of("outcry-reader", 0.25, None)]);
    }
}
