//! A benchmark's figures, for whoever keeps them: JSON lines in the file that `OUTCRY_FIGURES` names.
//!
//! `{"what":"POST /order, p50","value":39.8,"unit":"us","beside":{"what":"floor","value":37.9}}` is a
//! figure; the value beside it has the same unit and was measured in the same run. A benchmark that
//! knows that it was disturbed writes `{"invalid":"why"}`. Without the variable nothing is written.
//! `scripts/perf bench` sets it and reads the lines; this file is the format that both sides share.

#![allow(dead_code, reason = "each benchmark uses a part of it, and its reader another")]

use serde::{Deserialize, Serialize};
use std::io::Write;

/// The variable with the name of the file to which lines are appended.
pub(crate) const VARIABLE: &str = "OUTCRY_FIGURES";

/// The variables with the places for a server's data in shared memory, and on a disk: see `folder`.
pub(crate) const IN_MEMORY: &str = "OUTCRY_BENCH_IN_MEMORY";
pub(crate) const ON_DISK: &str = "OUTCRY_BENCH_ON_DISK";

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Seconds.
    S,
    /// Things a second.
    PerS,
    /// One value divided by another.
    Ratio,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// What was measured; unique within a run.
    pub(crate) what: String,
    /// How much it was.
    pub(crate) value: f64,
    /// The unit of the value.
    pub(crate) unit: Unit,
    /// The value to compare it with, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) beside: Option<Beside>,
}

/// Another value of the same unit and run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beside {
    /// What was measured.
    pub(crate) what: String,
    /// How much it was.
    pub(crate) value: f64,
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// A figure.
    Figure(Figure),
    /// Why no figure of this run may be kept.
    Invalid {
        /// In words.
        invalid: String,
    },
}

impl Figure {
    /// A figure that stands alone.
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { what: what.into(), value, unit, beside: None }
    }

    /// This figure beside another value.
    pub(crate) fn beside(self, what: impl Into<String>, value: f64) -> Self {
        Self { beside: Some(Beside { what: what.into(), value }), ..self }
    }
}

/// Writes a figure that stands alone, if figures are kept.
pub(crate) fn note(what: impl Into<String>, value: f64, unit: Unit) {
    add(&Line::Figure(Figure::new(what, value, unit)));
}

/// Writes a figure beside another value, if figures are kept.
pub(crate) fn note_beside(
    what: impl Into<String>,
    value: f64,
    unit: Unit,
    other: impl Into<String>,
    other_value: f64,
) {
    add(&Line::Figure(Figure::new(what, value, unit).beside(other, other_value)));
}

/// Writes why the run's figures may not be kept.
pub(crate) fn invalid(reason: &str) {
    add(&Line::Invalid { invalid: reason.to_owned() });
}

fn add(line: &Line) {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let mut text = serde_json::to_string(line).expect("a line has only texts and numbers");
    text.push('\n');
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.unwrap_or_else(|fault| panic!("{VARIABLE}: {}: {fault}", path.display()));
}
