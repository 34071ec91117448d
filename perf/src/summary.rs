//! `summary.json`: everything about one run, as kept in `perf/records/` too.
//!
//! The fields below, with their units in their names, are the schema; `perf/README.md` lists them. A field may be
//! added; a changed meaning needs a new `schema`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::away::Away;
use crate::jitter::Jitter;
use crate::machine::Environment;
use crate::parts::Parts;
use crate::placement::{Durable, MachineLimit, Planned, Thread};
use crate::scenario::Class;
use crate::stats::Quantiles;
use crate::verdict::{self, Meanwhile, Verdict};
use crate::watch::{Other, Share};

/// Raised when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 1;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// The scenario's name.
    pub(crate) scenario: String,
    /// What it is for.
    pub(crate) purpose: String,
    /// Whether the figures say something about the server.
    pub(crate) verdict: Verdict,
    /// Requests a second by the schedule.
    pub(crate) offered_per_s: f64,
    /// Answers a second that came in the measured time, those to requests of the warm-up included; in records from
    /// before 2026-11-30, those to the measured requests, until the last of them.
    pub(crate) achieved_per_s: f64,
    /// When requests were due, a word of the scenario's `load.arrivals`; empty in records from before it was kept.
    #[serde(default)]
    pub(crate) arrivals: String,
    /// Requests that were due at one moment.
    #[serde(default)]
    pub(crate) burst: u32,
    /// Seconds that were measured.
    pub(crate) time_s: f64,
    /// Seconds of warm-up before them.
    pub(crate) warm_up_s: f64,
    /// Requests that were measured.
    pub(crate) requests: u64,
    /// Those of them that were not answered until the client gave up.
    pub(crate) unanswered: u64,
    /// What everything random was drawn from.
    pub(crate) seed: u64,
    /// Connections of orders, and of reads too if reads had none of their own.
    pub(crate) connections: u32,
    /// Connections on which only reads went out.
    #[serde(default)]
    pub(crate) read_connections: u32,
    /// Whether the client slept until the next request was due.
    #[serde(default)]
    pub(crate) client_sleeps: bool,
    /// Whether the client yielded its CPU whenever it found nothing to do.
    #[serde(default)]
    pub(crate) client_yields: bool,
    /// All classes together, from the moment at which each request was due.
    pub(crate) all: Quantiles,
    /// Each class: from the moment at which a request was due, and from when it was sent.
    pub(crate) classes: Vec<ClassTimes>,
    /// How late requests were sent.
    pub(crate) late: Quantiles,
    /// The server's own stages, if it reports them.
    pub(crate) stages: Vec<Stage>,
    /// Where the time of the middle and of the slowest requests of each class went.
    #[serde(default)]
    pub(crate) parts: Vec<Parts>,
    /// The part of the time that each of the server's loops worked, if it reports that.
    #[serde(default)]
    pub(crate) loops: Vec<LoopBusy>,
    /// How many trading loops the stages of those answers kept busy: 1.0 is one loop.
    #[serde(default)]
    pub(crate) loops_needed: f64,
    /// Answers by tenths of a second.
    pub(crate) time_line: Vec<Moment>,
    /// The percentile curve of each class, for plots.
    pub(crate) curves: Vec<Curve>,
    /// Batches that the journal wrote to the disk, if the server counts them.
    #[serde(default)]
    pub(crate) journal_writes: Option<u64>,
    /// Writes a second that others made to the disk under the journal; none if the journal is in memory, or if not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) others_writes_per_s: Option<f64>,
    /// The process that made at least half of all writes there, in bytes, if one was seen to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) others_writer: Option<String>,
    /// What the journal's batches took, if the server reports it.
    #[serde(default)]
    pub(crate) journal: Option<Journal>,
    /// How long reads took in the server, from their bytes to the release of their answers, those of the warm-up
    /// included, if it reports that.
    #[serde(default)]
    pub(crate) reads_in_server: Option<Quantiles>,
    /// How many CPUs the server and others had.
    pub(crate) share: Share,
    /// Of how many CPUs that is: those of the client and of the server's pinned threads. Records from before it was kept
    /// are of machines with two.
    #[serde(default = "two")]
    pub(crate) share_cpus: usize,
    /// Who of the others had most of them; none if no process had any, or in records from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) largest_other: Option<Other>,
    /// The largest of those others that may have run on each of the CPUs that were measured on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others_of_cpus: Vec<(usize, Other)>,
    /// The client's CPU.
    pub(crate) client_cpu: usize,
    /// The CPU of the first of the server's trading loops that has one; if none has, the first CPU that is allowed.
    pub(crate) server_cpu: usize,
    /// Percent of the time that threads of neither the client nor the server had the client's CPU while it was ready;
    /// none if the kernel does not say, or in records from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_lost_percent: Option<f64>,
    /// The server's options that differ from its defaults, the environment's included, and always `journal.durability`;
    /// in records from before the server was asked, what the scenario set.
    pub(crate) settings: Vec<String>,
    /// Where the server's data were: `memory` or `disk`.
    pub(crate) data: String,
    /// The server's threads as they were measured.
    #[serde(default)]
    pub(crate) threads: Vec<Thread>,
    /// The server's threads as it would have placed them here by itself.
    #[serde(default)]
    pub(crate) threads_by_itself: Vec<Thread>,
    /// The same load with the threads where `serve` puts them by itself, if it was run too.
    #[serde(default)]
    pub(crate) as_serve: Option<AsServe>,
    /// What the server said before the run that its placement can do.
    #[serde(default)]
    pub(crate) planned: Option<Planned>,
    /// What durable answers would add up to in the server, by `outcry check`. Only for a run placed as `serve` does
    /// whose answers did not wait for a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) durable: Option<Durable>,
    /// The signature check of the newest record of this CPU, or else of any, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recorded: Option<Recorded>,
    /// The command, ready to be typed again; not kept in records, because it has the location of files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) typed: String,
    /// What the server says limits the machine, with its own placement.
    #[serde(default)]
    pub(crate) machine_limits: Vec<MachineLimit>,
    /// The server's answers about the median, slow orders, orders a second and so on, with its own placement.
    #[serde(default)]
    pub(crate) machine_answers: Vec<String>,
    /// What the server printed at its start: placement, sizes, durability.
    pub(crate) server_said: Vec<String>,
    /// The last lines of its log that were warnings or errors; not kept in records, because they may have the location of
    /// files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) server_warned: Vec<String>,
    /// The gaps of the run's CPUs before the run, with nothing of the rig on them.
    pub(crate) jitter_before: Vec<Jitter>,
    /// The gaps after the run.
    pub(crate) jitter_after: Vec<Jitter>,
    /// The machine and the build.
    pub(crate) environment: Environment,
}

fn two() -> usize {
    2
}

/// The times of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClassTimes {
    /// The class.
    pub(crate) class: String,
    /// From the moment at which a request was due to its answer.
    pub(crate) latency: Quantiles,
    /// From the moment at which a request was sent to its answer.
    pub(crate) service: Quantiles,
    /// The server's stages of this class alone.
    #[serde(default)]
    pub(crate) stages: Vec<Stage>,
}

/// A run of the same load, with the threads where `serve` places them by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AsServe {
    /// Whether its figures say something about the server.
    pub(crate) verdict: Verdict,
    /// Each class by its name, from the moment at which a request was due.
    pub(crate) classes: Vec<(String, Quantiles)>,
    /// The median of each class in the server's stages together.
    #[serde(default)]
    pub(crate) in_server_us: Vec<(String, f64)>,
    /// How long waking a loop that sleeps was planned to take, if the server said so.
    #[serde(default)]
    pub(crate) wake_us: Option<f64>,
    /// See [`Summary::durable`].
    #[serde(default)]
    pub(crate) durable: Option<Durable>,
}

impl Summary {
    /// [`Summary::durable`] of this run, or else that of the run placed as `serve` does.
    pub(crate) fn durable(&self) -> Option<&Durable> {
        let of_serve = self.as_serve.as_ref().and_then(|as_serve| as_serve.durable.as_ref());
        self.durable.as_ref().or(of_serve)
    }
}

impl AsServe {
    /// What is kept of the run placed as `serve` does.
    pub(crate) fn of(summary: Summary) -> Self {
        let total = |times: &ClassTimes| Some((times.class.clone(), times.median_us("total")?));
        Self {
            in_server_us: summary.classes.iter().filter_map(total).collect(),
            wake_us: summary.planned.as_ref().and_then(Planned::wake_us),
            durable: summary.durable,
            verdict: summary.verdict,
            classes: summary.classes.into_iter().map(|times| (times.class, times.latency)).collect(),
        }
    }
}

/// The record with which a run's signature check is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Its signature check, p50.
    pub(crate) check_us: f64,
    /// The record's scenario, machine and date.
    pub(crate) of: String,
    /// Whether the record is of this CPU.
    #[serde(default)]
    pub(crate) is_of_this_cpu: bool,
}

/// How busy one of the server's loops was, and what it lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopBusy {
    /// Its thread's name.
    pub(crate) name: String,
    /// The part of the time in which it had work.
    pub(crate) busy: f64,
    /// The part of the time in which it wrote answers to sockets, if the server reports it.
    #[serde(default)]
    pub(crate) sending: Option<f64>,
    /// Percent of the time that it was ready while threads of neither the client nor the server had its CPU; none if it
    /// has no CPU of its own, or if not known.
    #[serde(default)]
    pub(crate) waited_percent: Option<f64>,
    /// The moments in which it had no CPU while it spun; none if it does not spin, or if the server does not report
    /// them.
    #[serde(default)]
    pub(crate) away: Option<Away>,
}

/// What the journal's thread did while the load was on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// How long each write of a batch to the disk took, until the thread went on.
    pub(crate) write: Spans,
    /// For each write, how long the thread was ready and had no CPU: when it was woken, and when the disk was done.
    pub(crate) run_delay: Spans,
}

/// Spans of time, and how long requests that meet one wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spans {
    /// How long they were.
    pub(crate) each: Quantiles,
    /// One in a hundred requests that come at any moment waits at least this long until a span ends; more of them meet
    /// a long span than a short one.
    pub(crate) wait_p99_us: f64,
    /// One in a thousand waits at least this long; see `wait_p99_us`.
    pub(crate) wait_p999_us: f64,
}

/// One stage, as the server reported it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stage {
    /// Its name in `Server-Timing`.
    pub(crate) stage: String,
    /// How long it took.
    pub(crate) time: Quantiles,
}

/// A tenth of a second; a request belongs to the tenth in which it was due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// Its start, in seconds from the start of the measured time.
    pub(crate) at_s: f64,
    /// Requests.
    pub(crate) count: u64,
    /// Their latency.
    pub(crate) p50_us: f64,
    /// See `p50_us`.
    pub(crate) p99_us: f64,
    /// See `p50_us`.
    pub(crate) max_us: f64,
}

/// Points of a percentile curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    /// The class.
    pub(crate) class: String,
    /// Quantile below 1, and microseconds.
    pub(crate) points: Vec<(f64, f64)>,
}

impl ClassTimes {
    /// The median of a stage, if the server reported the stage and it took any time.
    pub(crate) fn median_us(&self, stage: &str) -> Option<f64> {
        let stage = self.stages.iter().find(|told| told.stage == stage)?;
        Some(stage.time.p50_us).filter(|us| *us > 0.0)
    }
}

impl Summary {
    /// The class with the most requests, of those that `is_meant` picks.
    pub(crate) fn commonest(&self, is_meant: impl Fn(&ClassTimes) -> bool) -> Option<&ClassTimes> {
        let meant = self.classes.iter().filter(|times| is_meant(times));
        meant.max_by_key(|times| times.latency.count)
    }

    /// Whether it is known where the time of a class went.
    pub(crate) fn has_parts(&self, times: &ClassTimes) -> bool {
        self.parts.iter().any(|parts| parts.class == times.class)
    }

    /// How many trading requests shared one write of the journal, those of the warm-up included.
    pub(crate) fn acts_per_write(&self) -> Option<f64> {
        let count = |is_meant: fn(&ClassTimes) -> bool| {
            let meant = self.classes.iter().filter(|times| is_meant(times));
            meant.map(|times| times.latency.count).sum::<u64>()
        };
        let (all, reads) = (count(|_| true), count(|times| times.class == Class::Read.name()));
        #[allow(clippy::cast_precision_loss, reason = "requests and writes are far fewer than 2^53")]
        let [trading, writes] =
            [(all - reads) as f64 / all.max(1) as f64, self.journal_writes?.max(1) as f64];
        Some(self.offered_per_s * (self.time_s + self.warm_up_s) * trading / writes)
    }

    /// What is known about the loss of each CPU while the load was on.
    pub(crate) fn meanwhile(&self) -> Vec<Meanwhile> {
        verdict::meanwhile(&self.loops, &self.threads, (self.client_cpu, self.client_lost_percent))
    }

    /// For each CPU without such knowledge, what a thread that only spins lost of it before and after the run.
    pub(crate) fn around(&self) -> impl Iterator<Item = &Jitter> {
        let meanwhile = self.meanwhile();
        let rows = self.jitter_before.iter().chain(&self.jitter_after);
        rows.filter(move |row| meanwhile.iter().all(|told| told.cpu != row.cpu))
    }

    /// What a thread that only spins lost of the CPUs of which only the part of other threads is known while the load
    /// was on.
    pub(crate) fn beside_waiting(&self) -> impl Iterator<Item = &Jitter> {
        let meanwhile = self.meanwhile();
        let rows = self.jitter_before.iter().chain(&self.jitter_after);
        rows.filter(move |row| meanwhile.iter().any(|told| told.cpu == row.cpu && !told.is_all))
    }

    /// Reads a summary from a file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
        Self::parse(&text).map_err(|fault| format!("{}: {fault}", path.display()))
    }

    /// Reads the text of a summary.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let summary: Self = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        if summary.schema != SCHEMA {
            return Err(format!("schema {}; this program reads {SCHEMA}", summary.schema));
        }
        Ok(summary)
    }

    /// The JSON.
    pub(crate) fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a summary has no maps with odd keys");
        text.push('\n');
        text
    }

    /// The times of a class, if it had any request.
    pub(crate) fn class(&self, name: &str) -> Option<&ClassTimes> {
        self.classes.iter().find(|times| times.class == name)
    }
}

/// An invented run, for tests of what is written about runs.
#[cfg(test)]
pub(crate) fn example() -> Summary {
    let quantiles = |count, p50_us: f64| Quantiles {
        count,
        p50_us,
        p90_us: p50_us + 5.0,
        p99_us: p50_us * 1.5,
        p999_us: p50_us + 50.0,
        p9999_us: p50_us + 60.0,
        max_us: p50_us + 70.0,
    };
    let stages = vec![
        Stage { stage: "sign".to_owned(), time: quantiles(10_000, 26.0) },
        Stage { stage: "total".to_owned(), time: quantiles(10_000, 30.0) },
    ];
    Summary {
        schema: SCHEMA,
        scenario: "mixed".to_owned(),
        purpose: "An example.".to_owned(),
        verdict: Verdict { valid: true, reasons: Vec::new() },
        offered_per_s: 2_000.0,
        achieved_per_s: 2_000.0,
        arrivals: "fixed".to_owned(),
        burst: 1,
        time_s: 5.0,
        warm_up_s: 1.0,
        requests: 10_000,
        unanswered: 0,
        seed: 1,
        connections: 4,
        read_connections: 0,
        client_sleeps: false,
        client_yields: false,
        all: quantiles(10_000, 40.0),
        classes: vec![ClassTimes {
            class: "place".to_owned(),
            latency: quantiles(10_000, 40.0),
            service: quantiles(10_000, 39.0),
            stages: stages.clone(),
        }],
        late: quantiles(10_000, 1.0),
        stages,
        parts: vec![
            example_parts("p50", 2_000, 40.0, 26.0, 1.0),
            example_parts("p99.9", 10, 4_000.0, 26.0, 3_900.0),
        ],
        loops: vec![example_loop()],
        loops_needed: 0.06,
        time_line: vec![Moment { at_s: 0.0, count: 200, p50_us: 40.0, p99_us: 60.0, max_us: 110.0 }],
        curves: vec![Curve {
            class: "place".to_owned(),
            points: vec![(0.0, 35.0), (0.5, 40.0), (0.99, 60.0)],
        }],
        journal_writes: Some(5_000),
        others_writes_per_s: None,
        others_writer: None,
        journal: None,
        reads_in_server: None,
        share: Share { stolen: 0.0, others: 0.001, server: 1.0, kernel: 0.0 },
        share_cpus: 2,
        largest_other: None,
        others_of_cpus: Vec::new(),
        client_cpu: 1,
        client_lost_percent: None,
        server_cpu: 0,
        settings: vec!["cpu.wait=spin".to_owned()],
        data: "memory".to_owned(),
        threads: vec![example_thread("spin")],
        threads_by_itself: vec![example_thread("park")],
        as_serve: None,
        planned: Some(example_planned()),
        durable: None,
        recorded: None,
        typed: "scripts/perf run mixed".to_owned(),
        machine_limits: vec![MachineLimit {
            kind: "cores".to_owned(),
            touches: None,
            limit: "2 cores for 2 loops".to_owned(),
            change: Some("a machine with 4 cores".to_owned()),
        }],
        machine_answers: vec!["orders a second: about 28,000".to_owned()],
        server_said: vec!["durability committed".to_owned()],
        server_warned: Vec::new(),
        jitter_before: vec![example_jitter(0), example_jitter(1)],
        jitter_after: vec![example_jitter(0), example_jitter(1)],
        environment: example_environment(),
    }
}

#[cfg(test)]
fn example_jitter(cpu: usize) -> Jitter {
    Jitter {
        cpu,
        seconds: 1.0,
        gaps_per_s: 250.0,
        p50_us: 2.0,
        p99_us: 8.0,
        p999_us: 9.0,
        max_us: 10.0,
        wait_p999_us: Some(4.0),
        wait_p99_us: Some(0.0),
        lost_percent: 0.1,
        threads_percent: Some(0.0),
        largest: None,
        largest_is_kernels: false,
        host_percent: Some(0.0),
        long_percent: Some(0.0),
        threads_long_percent: Some(0.0),
    }
}

#[cfg(test)]
fn example_planned() -> Planned {
    Planned {
        check_us: 25.0,
        rest_us: 10.0,
        orders_per_s: 28_000.0,
        full_first: vec!["outcry-shard0".to_owned()],
        durable_us: None,
        median_us: Some([35.0, 35.0]),
        how_much: vec![("median".to_owned(), "36 µs, 26 µs of it".to_owned())],
    }
}

#[cfg(test)]
fn example_thread(wait: &str) -> Thread {
    Thread { name: "outcry-shard0".to_owned(), cpu: Some(0), wait: wait.to_owned() }
}

#[cfg(test)]
fn example_loop() -> LoopBusy {
    let name = "outcry-shard0".to_owned();
    LoopBusy { name, busy: 0.06, sending: None, waited_percent: None, away: None }
}

#[cfg(test)]
fn example_parts(of: &str, requests: u64, latency_us: f64, sign_us: f64, journal_us: f64) -> Parts {
    Parts {
        class: "place".to_owned(),
        of: of.to_owned(),
        requests,
        latency_us,
        late_us: 0.0,
        outside_us: latency_us - sign_us - journal_us,
        client_us: None,
        line_us: None,
        behind: None,
        stages: vec![("sign".to_owned(), sign_us), ("journal".to_owned(), journal_us)],
    }
}

/// An invented machine.
#[cfg(test)]
pub(crate) fn example_environment() -> Environment {
    Environment {
        cpu_model: "Some CPU".to_owned(),
        cpus: vec![0, 1],
        hypervisor: "none".to_owned(),
        kernel: "6.18.1-generic".to_owned(),
        kernel_tuning: "none".to_owned(),
        governor: "performance".to_owned(),
        isolated_cpus: "none".to_owned(),
        nohz_full: "none".to_owned(),
        clocksource: "tsc".to_owned(),
        mitigations: Vec::new(),
        huge_pages: "madvise".to_owned(),
        load_average: "0.00 0.00 0.00".to_owned(),
        memory_bytes: 1 << 34,
        commit: "abc1234".to_owned(),
        dirty: false,
        rustc: "rustc 1.95.0".to_owned(),
        profile: "bench".to_owned(),
        command: "scripts/perf run mixed".to_owned(),
        date: "2026-11-22T03:04:05Z".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_reads_back_as_it_was_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), example().json()).unwrap();
        assert_eq!(Summary::read(file.path()), Ok(example()));
        std::fs::write(file.path(), example().json().replacen("\"schema\": 1", "\"schema\": 2", 1)).unwrap();
        assert!(Summary::read(file.path()).unwrap_err().ends_with("schema 2; this program reads 1"));
    }
}
