//! `summary.json`: everything about one run, as it is kept in `perf/records/` too.
//!
//! The fields below, with their units in their names, are the schema; `perf/README.md` has them as
//! a table. A field may be added; another meaning of one is a new `schema`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::jitter::Jitter;
use crate::machine::Environment;
use crate::stats::Quantiles;
use crate::verdict::Verdict;
use crate::watch::Share;

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
    /// Connections.
    pub(crate) connections: u32,
    /// Time from the moment at which each request was due, and from when it was sent.
    pub(crate) classes: Vec<ClassTimes>,
    /// How late requests were sent.
    pub(crate) late: Quantiles,
    /// The server's own stages, if it tells them.
    pub(crate) stages: Vec<Stage>,
    /// Answers by tenths of a second.
    pub(crate) time_line: Vec<Moment>,
    /// The percentile curve of each class, for plots.
    pub(crate) curves: Vec<Curve>,
    /// CPUs used by the server and lost to others.
    pub(crate) share: Share,
    /// The client's CPU, and the one that the server's trading loop was put on.
    pub(crate) client_cpu: usize,
    /// See `client_cpu`.
    pub(crate) server_cpu: usize,
    /// The server's settings.
    pub(crate) settings: Vec<String>,
    /// Where its data were: `memory` or `disk`.
    pub(crate) data: String,
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

impl Summary {
    /// Reads one that was written.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
        let summary: Self =
            serde_json::from_str(&text).map_err(|fault| format!("{}: {fault}", path.display()))?;
        if summary.schema != SCHEMA {
            let schema = summary.schema;
            return Err(format!("{}: schema {schema}; this program reads {SCHEMA}", path.display()));
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
