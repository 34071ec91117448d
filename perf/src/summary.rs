//! `summary.json`: everything about one run, as it is kept in `perf/records/` too.
//!
//! The fields below, with their units in their names, are the schema; `perf/README.md` has them as
//! a table. A field may be added; another meaning of one is a new `schema`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::away::Away;
use crate::jitter::Jitter;
use crate::machine::Environment;
use crate::parts::Parts;
use crate::placement::{Durable, MachineLimit, Planned, Thread};
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
    /// Whether the figures are the server's.
    pub(crate) verdict: Verdict,
    /// Requests a second by the schedule.
    pub(crate) offered_per_s: f64,
    /// Requests a second that were answered.
    pub(crate) achieved_per_s: f64,
    /// When requests were due, a word of the scenario's `load.arrivals`; empty from before it was told.
    #[serde(default)]
    pub(crate) arrivals: String,
    /// So many were due at one moment.
    #[serde(default)]
    pub(crate) burst: u32,
    /// Seconds that counted, and before them.
    pub(crate) time_s: f64,
    /// See `time_s`.
    pub(crate) warm_up_s: f64,
    /// Requests that counted.
    pub(crate) requests: u64,
    /// Those of them that were never answered.
    pub(crate) unanswered: u64,
    /// What everything random was drawn from.
    pub(crate) seed: u64,
    /// Connections of orders, and of reads too if those had none of their own.
    pub(crate) connections: u32,
    /// Connections on which only reads went out.
    #[serde(default)]
    pub(crate) read_connections: u32,
    /// Whether the client slept until the next request was due.
    #[serde(default)]
    pub(crate) client_sleeps: bool,
    /// Whether it let others have its CPU whenever it found nothing to do.
    #[serde(default)]
    pub(crate) client_yields: bool,
    /// All classes together, from the moment at which each request was due.
    pub(crate) all: Quantiles,
    /// Each class: from the moment at which a request was due, and from when it was sent.
    pub(crate) classes: Vec<ClassTimes>,
    /// How late requests were sent.
    pub(crate) late: Quantiles,
    /// The server's own stages, if it tells them.
    pub(crate) stages: Vec<Stage>,
    /// Where the time of the middle and of the slowest requests of each class went.
    #[serde(default)]
    pub(crate) parts: Vec<Parts>,
    /// The share of the time for which each of the server's loops worked, if it tells that.
    #[serde(default)]
    pub(crate) loops: Vec<LoopBusy>,
    /// What the stages of all requests that counted kept trading loops busy with: 1.0 is one loop.
    #[serde(default)]
    pub(crate) loops_needed: f64,
    /// Answers by tenths of a second.
    pub(crate) time_line: Vec<Moment>,
    /// The percentile curve of each class, for plots.
    pub(crate) curves: Vec<Curve>,
    /// Batches that the journal wrote to the disk, if the server counts them.
    #[serde(default)]
    pub(crate) journal_writes: Option<u64>,
    /// What the disk under the journal wrote beside them, writes a second; none of a journal in memory, or if nobody tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) others_writes_per_s: Option<f64>,
    /// Which of them wrote most of it, if anybody is seen to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) others_writer: Option<String>,
    /// What they took, if the server tells.
    #[serde(default)]
    pub(crate) journal: Option<Journal>,
    /// What reads took in the server, from their bytes to their answers' release, if it tells.
    #[serde(default)]
    pub(crate) reads_in_server: Option<Quantiles>,
    /// CPUs used by the server and lost to others.
    pub(crate) share: Share,
    /// Which of the others had most of them; none if no process had any, or from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) largest_other: Option<Other>,
    /// The same of those that may have had it on the server's CPU and on the client's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others_of_cpus: Vec<(usize, Other)>,
    /// The client's CPU, and the one that the server's trading loop was put on.
    pub(crate) client_cpu: usize,
    /// See `client_cpu`.
    pub(crate) server_cpu: usize,
    /// Of the time, what threads that are neither its own nor the server's had of the client's CPU while it was ready, in
    /// hundredths; none if the kernel does not say, or from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_lost_percent: Option<f64>,
    /// The server's options that differ from its defaults, the environment's among them, and always
    /// `journal.durability`; in records from before they were asked for, what the scenario set.
    pub(crate) settings: Vec<String>,
    /// Where its data were: `memory` or `disk`.
    pub(crate) data: String,
    /// Its threads as they were measured, and as it would have put them here by itself.
    #[serde(default)]
    pub(crate) threads: Vec<Thread>,
    /// See `threads`.
    #[serde(default)]
    pub(crate) threads_by_itself: Vec<Thread>,
    /// The same load with the threads where `serve` puts them by itself, if it was run too.
    #[serde(default)]
    pub(crate) as_serve: Option<AsServe>,
    /// How many orders a second the server said that the run's placement can take, before the run.
    #[serde(default)]
    pub(crate) planned: Option<Planned>,
    /// Of a run as `serve` places it whose answers did not wait for a disk: what `outcry check` says that they would add up
    /// to in the server if they did, as is its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) durable: Option<Durable>,
    /// The signature check of the newest record, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recorded: Option<Recorded>,
    /// What was typed, as it can be typed again; in no record, for where files lie is nobody's business.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) typed: String,
    /// What the server says limits the machine, with its own placement.
    #[serde(default)]
    pub(crate) machine_limits: Vec<MachineLimit>,
    /// What it says of the median, the slow orders, orders a second and so on, with its own placement.
    #[serde(default)]
    pub(crate) machine_answers: Vec<String>,
    /// What the server printed at its start: placement, sizes, durability.
    pub(crate) server_said: Vec<String>,
    /// The same CPUs before the run, with nothing of ours on them.
    pub(crate) jitter_before: Vec<Jitter>,
    /// And after it.
    pub(crate) jitter_after: Vec<Jitter>,
    /// The machine and the build.
    pub(crate) environment: Environment,
}

/// The times of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClassTimes {
    /// The class.
    pub(crate) class: String,
    /// From the moment at which a request was due to its answer.
    pub(crate) latency: Quantiles,
    /// From the moment at which it was sent.
    pub(crate) service: Quantiles,
    /// What the server said of this class alone.
    #[serde(default)]
    pub(crate) stages: Vec<Stage>,
}

/// A run of the same load as `serve` places its threads by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AsServe {
    /// Whether its figures are the server's.
    pub(crate) verdict: Verdict,
    /// Each class by its name, from the moment at which a request was due.
    pub(crate) classes: Vec<(String, Quantiles)>,
    /// What half of each class took at most in the server's stages together.
    #[serde(default)]
    pub(crate) in_server_us: Vec<(String, f64)>,
    /// What waking a loop that sleeps was planned to take, if the server said so.
    #[serde(default)]
    pub(crate) wake_us: Option<f64>,
    /// See [`Summary::durable`].
    #[serde(default)]
    pub(crate) durable: Option<Durable>,
}

impl Summary {
    /// See its field: of this run, or of the one as `serve` is placed.
    pub(crate) fn durable(&self) -> Option<&Durable> {
        let of_serve = self.as_serve.as_ref().and_then(|as_serve| as_serve.durable.as_ref());
        self.durable.as_ref().or(of_serve)
    }
}

impl AsServe {
    /// What is kept of that run.
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

/// A run on record, of which README has the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Its signature check, p50.
    pub(crate) check_us: f64,
    /// What it was, on which machine and when.
    pub(crate) of: String,
}

/// How busy one of the server's loops was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopBusy {
    /// Its thread's name.
    pub(crate) name: String,
    /// The part of the time in which it had work.
    pub(crate) busy: f64,
    /// Of the time, what it wrote answers to sockets for, if the server tells.
    #[serde(default)]
    pub(crate) sending: Option<f64>,
    /// Of the time, in hundredths, for how long it was ready while threads that are not the server's had its CPU; none if it
    /// has none of its own, or nobody tells.
    #[serde(default)]
    pub(crate) waited_percent: Option<f64>,
    /// What it had no CPU for while it spun; none if it does not spin, or the server does not tell.
    #[serde(default)]
    pub(crate) away: Option<Away>,
}

/// What the journal's thread did while the load was on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// What each write of a batch to the disk took, until the thread went on.
    pub(crate) write: Spans,
    /// For how long the thread was ready and had no CPU, for each write: as it was woken, and when the disk was done.
    pub(crate) run_delay: Spans,
}

/// Spans of time, and who meets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spans {
    /// How long they were.
    pub(crate) each: Quantiles,
    /// For how long one in a hundred that come at any moment waits at least until one ends: a long one is met by more
    /// of them than a short one.
    pub(crate) wait_p99_us: f64,
    /// Likewise one in a thousand.
    pub(crate) wait_p999_us: f64,
}

/// One stage as the server told it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stage {
    /// Its name in `Server-Timing`.
    pub(crate) stage: String,
    /// How long it took.
    pub(crate) time: Quantiles,
}

/// A tenth of a second; requests are in the one in which they were due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// Its start, in seconds from the first request that counts.
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
    /// The median of a stage, if the server told it and it took any time.
    pub(crate) fn median_us(&self, stage: &str) -> Option<f64> {
        let stage = self.stages.iter().find(|told| told.stage == stage)?;
        Some(stage.time.p50_us).filter(|us| *us > 0.0)
    }
}

impl Summary {
    /// The class with most requests, of those that are meant.
    pub(crate) fn commonest(&self, is_meant: impl Fn(&ClassTimes) -> bool) -> Option<&ClassTimes> {
        let meant = self.classes.iter().filter(|times| is_meant(times));
        meant.max_by_key(|times| times.latency.count)
    }

    /// Whether it is known where the time of a class went.
    pub(crate) fn has_parts(&self, times: &ClassTimes) -> bool {
        self.parts.iter().any(|parts| parts.class == times.class)
    }

    /// How many trading requests shared one write of the journal, those of the warm-up among them.
    pub(crate) fn acts_per_write(&self) -> Option<f64> {
        let acts = self.offered_per_s * (self.time_s + self.warm_up_s);
        #[allow(clippy::cast_precision_loss, reason = "writes are far fewer than 2^53")]
        self.journal_writes.map(|writes| acts / writes.max(1) as f64)
    }

    /// What is known of each CPU while the load was on.
    pub(crate) fn meanwhile(&self) -> Vec<Meanwhile> {
        verdict::meanwhile(&self.loops, &self.threads, (self.client_cpu, self.client_lost_percent))
    }

    /// What a thread that only spins lost before and after of each CPU of which that is not known.
    pub(crate) fn around(&self) -> impl Iterator<Item = &Jitter> {
        let meanwhile = self.meanwhile();
        let rows = self.jitter_before.iter().chain(&self.jitter_after);
        rows.filter(move |row| meanwhile.iter().all(|told| told.cpu != row.cpu))
    }

    /// Reads one that was written.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
        Self::parse(&text).map_err(|fault| format!("{}: {fault}", path.display()))
    }

    /// Reads the text of one that was written.
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

    /// The times of a class, if any request was of it.
    pub(crate) fn class(&self, name: &str) -> Option<&ClassTimes> {
        self.classes.iter().find(|times| times.class == name)
    }
}

/// A run that was never made, for tests of what is written about runs.
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

/// A machine that never was.
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
