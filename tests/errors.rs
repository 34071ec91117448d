//! The catalogue of errors: printed, kept in the repository, served, and complete as far as the sources
//! show.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its own sources has to stop")]

mod common;

use common::exchange::{Plan, outcry_succeeds};
use common::folder;
use outcry::domain::Reject;
use outcry::reader::errors::ERRORS;
use outcry::registrar::Refusal;
use std::collections::BTreeSet;
use std::path::Path;

/// Where the catalogue is kept, and how it is regenerated.
const KEPT: &str = "src/http/openapi/errors.md";
const ANEW: &str = "cargo run -- errors > src/http/openapi/errors.md";

#[test]
fn the_catalogue_in_the_repository_is_what_the_binary_prints() {
    let kept = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(KEPT)).unwrap_or_default();
    let printed = outcry_succeeds(&["errors"]);
    let stale = printed.lines().find(|line| !kept.lines().any(|known| known == *line));
    assert!(kept == printed, "{KEPT} is stale; make it anew with: {ANEW}\nmissing: {stale:?}");
}

#[test]
fn the_catalogue_is_served_with_every_refusal_and_its_texts() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("cpu.policy=unpinned").start();
    let served = exchange.read("/errors");
    let rows = served["errors"].as_array().unwrap();
    let wires = Reject::ALL.iter().map(|reject| ("trading", reject.wire()));
    for (of, wire) in wires.chain(Refusal::ALL.iter().map(|refusal| ("acts", refusal.wire()))) {
        let texts = [of, wire.code, wire.error, wire.error_msg];
        let is_this = |row: &&serde_json::Value| {
            ["of", "code", "error", "errorMsg"].map(|name| row[name].as_str().unwrap()) == texts
                && row["status"] == wire.status
        };
        assert_eq!(rows.iter().filter(is_this).count(), 1, "{texts:?}");
    }
    for list in ["reasons", "closes", "checks"] {
        assert!(!served[list].as_array().unwrap().is_empty(), "{list}");
    }
    exchange.stop();
}

/// The codes that are written as literals in calls of `makers`, whatever precedes them.
fn codes(text: &str, makers: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for maker in makers {
        for (at, _) in text.match_indices(maker) {
            let inside =
                text[at + maker.len()..].trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
            let inside = inside.trim_start_matches([',', ' ', '\n']);
            if let Some(code) = inside.strip_prefix('"').and_then(|rest| rest.split('"').next()) {
                found.insert(code.to_owned());
            }
        }
    }
    found
}

/// The sources of the read core, without its tests and the table itself.
fn sources_of_reads() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.join("reader")];
    let mut text = String::new();
    for file in ["reader.rs", "server/reading.rs"] {
        text += &std::fs::read_to_string(root.join(file)).unwrap();
    }
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "tests" {
                folders.push(path);
            } else if path.is_file() && !["tests.rs", "errors.rs"].contains(&name) {
                text += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    text
}

#[test]
fn every_code_of_a_read_is_in_the_table_and_every_code_of_the_table_is_one() {
    let text = sources_of_reads();
    let makers = ["Refused::new(", "Self::new(", "Refused::bad_request(", "Refused::wallet("];
    let written = codes(&text, &makers);
    let table: BTreeSet<String> = ERRORS.iter().map(|error| error.code.to_owned()).collect();
    let missing: Vec<_> = written.difference(&table).collect();
    assert!(missing.is_empty(), "src/reader/errors.rs lacks {missing:?}");
    assert!(25 < written.len(), "{written:?}");
    for error in ERRORS {
        assert!(
            text.contains(&format!("\"{}\"", error.code))
                || text.contains(&format!("\\\"{}\\\"", error.code))
        );
        assert!(error.error.is_empty() || text.contains(error.error), "{}", error.error);
    }
    let planted =
        "Refused::new(400, \"one\", \"\"); Refused::wallet(\n    \"two\", &detail); Refused::of(reject)";
    assert_eq!(codes(planted, &makers), ["one", "two"].map(str::to_owned).into(), "what is planted is found");
}
