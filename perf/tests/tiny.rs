//! Runs the rig as a person would, against a server built for tests. No figure is judged, but every
//! file must exist, be readable, and count what was sent.

#![allow(clippy::unwrap_used, reason = "a test that cannot run the rig has to stop")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::Value;

/// A few requests of every class, so slow that a debug build on a busy machine keeps up.
const TINY: &str = "
purpose = \"Everything once, for a test.\"

[load]
rate = 100
arrivals = \"poisson\"
connections = 3
warm_up_s = 0.2
time_s = 1.5

[mix]
place = 30
cancel = 25
replace = 10
batch = 5
take = 10
read = 20

[books]
markets = 2
resting = 120

[server.set]
\"cpu.shards\" = 1
\"journal.durability\" = \"committed\"
\"sizes.resting_orders\" = 20000
\"sizes.digests\" = 20000
\"sizes.wallets\" = 1000
\"sizes.books_bytes\" = 16777216
";

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The server that `PERF_TEST_SERVER` names, or the one beside the rig, which is built first. As `cargo build` gives some
/// crates fewer features than `cargo test` does, these are built once more then.
fn server() -> PathBuf {
    if let Some(server) = std::env::var_os("PERF_TEST_SERVER") {
        return PathBuf::from(server);
    }
    let rig = Path::new(env!("CARGO_BIN_EXE_perf"));
    let folder = rig.parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--package", "outcry", "--package", "outcry-perf", "--bins"])
        .arg("--target-dir")
        .arg(folder.parent().unwrap())
        .current_dir(project())
        .status()
        .unwrap();
    assert!(built.success());
    folder.join("outcry")
}

fn perf(out: &Path, words: &[&str]) -> Output {
    let server = server();
    Command::new(env!("CARGO_BIN_EXE_perf"))
        .args(words)
        .arg("--out")
        .arg(out)
        .arg("--server")
        .arg(server)
        .output()
        .unwrap()
}

fn scenario(folder: &Path, text: &str) -> String {
    let path = folder.join("tiny.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_run_leaves_files_that_count_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), TINY);
    let output = perf(folder.path(), &["run", &scenario]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let report = PathBuf::from(said.lines().last().unwrap());
    let run = report.parent().unwrap();
    let summary: Value = serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
    let classes = summary["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 6, "{classes:?}");
    let mut counted = 0;
    for class in classes {
        let name = class["class"].as_str().unwrap();
        let bytes = std::fs::read(run.join(format!("{name}.hdr"))).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(Some(histogram.len()), class["latency"]["count"].as_u64(), "{name}");
        assert_eq!(total_of(&run.join(format!("{name}.hgrm"))), histogram.len(), "{name}");
        counted += histogram.len();
    }
    assert_eq!(Some(counted), summary["requests"].as_u64());
    assert_eq!(summary["unanswered"], 0);
    let moments = summary["time_line"].as_array().unwrap();
    let in_moments: u64 = moments.iter().map(|moment| moment["count"].as_u64().unwrap()).sum();
    assert_eq!(in_moments, counted);
    for key in ["verdict", "jitter_before", "jitter_after", "environment", "server_said", "settings", "late"]
    {
        assert!(!summary[key].is_null(), "{key}");
    }
    let settings = summary["settings"].as_array().unwrap();
    for setting in ["cpu.shards=1", "limits.mode=off", "journal.durability=committed"] {
        assert!(settings.iter().any(|told| told == setting), "{setting}: {settings:?}");
    }
    // The parts of a class's slow requests add up: late, in a stage, with the client or with
    // nobody, and nothing twice.
    let parts = summary["parts"].as_array().unwrap();
    assert!(!parts.is_empty(), "of no class");
    for parts in parts {
        let us = |key: &str| parts[key].as_f64().unwrap();
        let stages: f64 =
            parts["stages"].as_array().unwrap().iter().map(|stage| stage[1].as_f64().unwrap()).sum();
        let sum = us("late_us") + stages + us("outside_us");
        assert!((sum - us("latency_us")).abs() < 0.1 && us("client_us") <= us("outside_us"), "{parts}");
    }
    let html = std::fs::read_to_string(report).unwrap();
    assert!(html.matches("<svg").count() >= 2 && html.ends_with("</html>\n"));
}

/// The total count in the last lines of a percentile distribution.
fn total_of(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let count = text.split("Total count    =").nth(1).unwrap().split(']').next().unwrap();
    count.trim().parse().unwrap()
}

#[test]
fn a_run_as_serve_has_the_threads_that_serve_would_have() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &format!("{TINY}\"cpu.wait\" = \"spin\"\n"));
    let output = perf(folder.path(), &["run", &scenario, "--as-serve", "--seconds", "0.3"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("Placed for measuring"), "{said}");
    let summary = Path::new(said.lines().last().unwrap()).with_file_name("summary.json");
    let summary: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    assert_eq!(summary["scenario"], "tiny-as-serve");
    assert_eq!(summary["threads"], summary["threads_by_itself"]);
}

#[test]
fn what_the_server_refuses_is_told_in_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &format!("{TINY}\"cpu.wait\" = \"sleep-well\"\n"));
    let output = perf(folder.path(), &["run", &scenario]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("INVALID: nothing was measured") && said.contains("sleep-well"), "{said}");
}

#[test]
fn what_the_rig_has_started_dies_with_it() {
    let words = "exec 3<&0; \"$0\" held $$ sh -c 'echo ready; read word; echo survived' <&3 & wait";
    let mut rig = Command::new("sh");
    rig.args(["-c", words, env!("CARGO_BIN_EXE_perf")]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut rig = rig.spawn().unwrap();
    let mut said = BufReader::new(rig.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // Kept open: the end of its input would end it too.
    let input = rig.stdin.take();
    rig.kill().unwrap();
    rig.wait().unwrap();
    drop(input);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_server_that_is_no_file_here_is_not_looked_for_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["run", "smoke", "--server", "sh", "--out"];
    let output = Command::new(env!("CARGO_BIN_EXE_perf")).args(words).arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "perf: the server's binary sh: there is no such file here\n");
}

#[test]
fn a_sweep_has_a_row_for_each_rate() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = "[sweep]\nfirst = 60\nfactor = 1.5\nsteps = 2\n";
    let scenario = scenario(folder.path(), &format!("{TINY}\n{sweep}"));
    let output = perf(folder.path(), &["sweep", &scenario, "--seconds", "0.5"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let report = PathBuf::from(said.lines().last().unwrap());
    let steps: Value =
        serde_json::from_slice(&std::fs::read(report.with_file_name("sweep.json")).unwrap()).unwrap();
    let offered: Vec<f64> =
        steps.as_array().unwrap().iter().map(|step| step["offered_per_s"].as_f64().unwrap()).collect();
    assert!(offered.len() == 2 && offered[0] < offered[1], "{offered:?}");
    assert!(std::fs::read_to_string(report).unwrap().contains("Time against rate"));
}

#[test]
fn what_an_order_costs_is_told_for_each_number_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["scale", "--up-to", "1", "--seconds", "0.2", "--orders", "400"];
    let output = perf(folder.path(), &words);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().filter(|line| line.starts_with("base ")).count(), 2, "{said}");
    let path = PathBuf::from(said.lines().last().unwrap());
    let sheet: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((path.file_name().unwrap().to_str(), &sheet["sheet"]), (Some("scale.json"), &"scale".into()));
    let figures = sheet["figures"].as_array().unwrap();
    for what in ["CPU an order, outcry-shard0, 1 shard", "CPU an order, outcry-shard1, 2 shards"] {
        let figure = figures.iter().find(|figure| figure["what"] == what);
        let figure = figure.unwrap_or_else(|| panic!("{what} is missing: {figures:?}"));
        assert!(0.0 < figure["value"].as_f64().unwrap() && figure["unit"] == "us", "{figure}");
    }
}

#[test]
fn each_layer_of_an_order_is_told() {
    // On a disk, as the durable layers have to be.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = perf(folder.path(), &["layers", "--orders", "100"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let counts = [
        ("book, money, frame", "100"),
        ("head, HMAC, body", "100"),
        ("digest, signature", "100"),
        ("POST /order, loopback", "100"),
        ("durable on this disk", "500"),
        ("a bare write of 4 KiB", "500"),
    ];
    for (layer, count) in counts {
        let row = said.lines().find(|line| line.starts_with(layer) && line.contains(" p50 "));
        let row = row.unwrap_or_else(|| panic!("{layer} is missing: {said}"));
        assert_eq!(row[layer.len()..].split_whitespace().next(), Some(count), "{row}");
    }
    assert!(std::fs::read_to_string(said.lines().last().unwrap()).unwrap().contains("Layers"));
}

#[test]
fn an_unknown_scenario_is_answered_with_those_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let output = perf(folder.path(), &["run", "smoek"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("did you mean smoke?"), "{said}");
}
