//! Runs a benchmark of the project as a run of the rig: builds it, then watches it, and keeps its
//! figures with the machine, the commit and the exact command.

use std::path::Path;
use std::process::Command;

use crate::figures::{Figure, IN_MEMORY, ON_DISK, VARIABLE};
use crate::leftovers::{self, Folder};
use crate::machine::{self, Environment};
use crate::report;
use crate::run::Ground;
use crate::sheet::{self, Sheet};
use crate::verdict::Verdict;
use crate::watch::FamilyWatch;

/// The benchmarks that write figures; the others only draw criterion's comparisons.
const BENCHES: [&str; 10] = [
    "cancels",
    "catalog",
    "footprint",
    "matching",
    "reads",
    "restart",
    "roundtrip",
    "search",
    "streams",
    "wallets",
];

/// The profile that `cargo bench` uses by default.
pub(crate) const PROFILE: &str = "bench";

/// Runs the benchmark `name` and writes its figures into a folder of their own.
pub(crate) fn run(ground: &Ground, name: &str, profile: &str, words: &[String]) -> Result<(), String> {
    known(name)?;
    let cpus = machine::allowed_cpus();
    let environment = Environment::capture(&ground.project, profile);
    let environment =
        Environment { command: typed(name, profile, words, &machine::variables()), ..environment };
    cargo(&ground.project, name, profile, &["--no-run"], &[])?;
    std::fs::create_dir_all(&ground.out).map_err(|fault| format!("{}: {fault}", ground.out.display()))?;
    let folders = [Folder::lasting_in(Path::new("/dev/shm"))?, Folder::lasting_in(&ground.out)?];
    let figures = folders[0].path().join("figures");
    // A benchmark that adds no figure leaves it empty.
    report::save(&figures, b"")?;
    let [in_memory, on_disk] = folders.each_ref().map(Folder::path);
    let places = [(VARIABLE, figures.as_path()), (IN_MEMORY, in_memory), (ON_DISK, on_disk)];
    let mut behind = vec!["--"];
    behind.extend(words.iter().map(String::as_str));
    let watch = FamilyWatch::begin();
    cargo(&ground.project, name, profile, &behind, &places)?;
    let (time_s, share, largest) = (watch.seconds(), watch.share(), watch.largest());
    let lines = std::fs::read_to_string(&figures).map_err(|fault| format!("the figures: {fault}"))?;
    let (figures, reasons) = sheet::read_lines(&lines).map_err(|fault| format!("bench {name}: {fault}"))?;
    let verdict = Verdict::of_share(share, largest.as_ref(), cpus.len(), reasons);
    print!("{}", text(&figures, &verdict));
    let sheet = Sheet::new(format!("bench-{name}"), verdict, (time_s, share), figures, environment);
    println!("{}", sheet.write(&ground.out)?);
    Ok(())
}

fn known(name: &str) -> Result<(), String> {
    if BENCHES.contains(&name) {
        return Ok(());
    }
    Err(format!("bench: got {name}; allowed: {}", BENCHES.join(", ")))
}

/// The command that repeats this benchmark; files are named without their folders.
fn typed(name: &str, profile: &str, words: &[String], set: &[(String, String)]) -> String {
    let mut all = ["scripts/perf", "bench", name].map(str::to_owned).to_vec();
    if profile != PROFILE {
        all.extend(["--profile".to_owned(), profile.to_owned()]);
    }
    if !words.is_empty() {
        all.push("--".to_owned());
        all.extend(words.iter().map(|word| machine::without_folders(word)));
    }
    machine::with_variables(set, &all.join(" "))
}

fn cargo(
    project: &Path,
    name: &str,
    profile: &str,
    words: &[&str],
    places: &[(&str, &Path)],
) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["bench", "--quiet", "--bench", name, "--profile", profile]).args(words);
    command.current_dir(project).env_remove(VARIABLE).envs(places.iter().copied());
    let status = leftovers::run(&mut command).map_err(|fault| format!("cargo: {fault}"))?;
    if status.success() { Ok(()) } else { Err(format!("bench {name}: it ended with {status}")) }
}

/// The figures for a terminal, and whether they may be kept.
pub(crate) fn text(figures: &[Figure], verdict: &Verdict) -> String {
    let mut lines: Vec<String> = figures
        .iter()
        .map(|figure| {
            let value = sheet::text_of(figure.value, figure.unit);
            let beside = figure.beside.as_ref().map_or_else(String::new, |beside| {
                let other = sheet::text_of(beside.value, figure.unit);
                format!("  {} {other}, ratio {:.2}", beside.what, figure.value / beside.value)
            });
            format!("{:56} {value:>12}{beside}", figure.what)
        })
        .collect();
    lines.push(crate::bench::verdict(verdict));
    lines.join("\n")
}

/// The verdict for a terminal, with every reason.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    let reasons = verdict.reasons.iter().map(|reason| format!("  {reason}\n"));
    std::iter::once(format!("{}\n", verdict.word())).chain(reasons).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_benchmark_is_answered_with_those_there_are() {
        let complaint = known("book").unwrap_err();
        assert!(complaint.starts_with("bench: got book; allowed: cancels, "), "{complaint}");
        let manifest = include_str!("../../Cargo.toml");
        for name in BENCHES {
            known(name).unwrap();
            assert!(manifest.contains(&format!("[[bench]]\nname = \"{name}\"\n")), "{name}");
        }
    }

    #[test]
    fn the_command_says_what_changes_the_figures_and_no_folders() {
        let words = ["10000000", "/somewhere/else/history", "auth.known_signers_bytes=16"].map(str::to_owned);
        let set = [("ROUNDTRIP_DURABILITY".to_owned(), "durable".to_owned())];
        assert_eq!(
            typed("restart", "release", &words, &set),
            "ROUNDTRIP_DURABILITY=durable scripts/perf bench restart --profile release -- 10000000 history \
             auth.known_signers_bytes=16"
        );
        assert_eq!(typed("matching", PROFILE, &[], &[]), "scripts/perf bench matching");
    }

    #[test]
    fn figures_stand_with_what_is_beside_them() {
        let sheet = sheet::example();
        let text = text(&sheet.figures, &sheet.verdict);
        assert!(text.contains("39.8 µs  floor 37.9 µs, ratio 1.05\n"), "{text}");
        assert!(text.ends_with("27.9 µs\nVALID\n"), "{text}");
    }
}
