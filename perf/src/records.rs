//! What is kept: `perf/records/<date>-<scenario or sheet>-<commit>.json`, each a whole summary of a run or a whole
//! sheet of figures.
//!
//! Only results that are VALID and of a clean tree are kept, and only of its own server and scenarios. The same command on the same day and commit replaces its
//! older record; another command that would get the same name gets a number at its end.

use std::path::{Path, PathBuf};

use crate::machine::Environment;
use crate::report;
use crate::run::Ground;
use crate::sheet::Sheet;
use crate::summary::{Recorded, Summary};
use crate::verdict::Verdict;

/// The files that may be kept; a run's folder has one of them.
const FILES: [&str; 4] = ["summary.json", "bench.json", "scale.json", "durable.json"];

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// A scenario's run.
    Run(Box<Summary>),
    /// Any other figures.
    Figures(Box<Sheet>),
}

/// Everything that is on record, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Records {
    pub(crate) runs: Vec<Summary>,
    pub(crate) sheets: Vec<Sheet>,
}

impl Record {
    fn read(path: &Path) -> Result<Self, String> {
        let fault = |fault: String| format!("{}: {fault}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
        if value.get("sheet").is_some() {
            return Sheet::parse(&text).map(|sheet| Self::Figures(Box::new(sheet))).map_err(fault);
        }
        Summary::parse(&text).map(|summary| Self::Run(Box::new(summary))).map_err(fault)
    }

    fn name(&self) -> &str {
        match self {
            Self::Run(summary) => &summary.scenario,
            Self::Figures(sheet) => &sheet.name,
        }
    }

    fn verdict(&self) -> &Verdict {
        match self {
            Self::Run(summary) => &summary.verdict,
            Self::Figures(sheet) => &sheet.verdict,
        }
    }

    fn environment(&self) -> &Environment {
        match self {
            Self::Run(summary) => &summary.environment,
            Self::Figures(sheet) => &sheet.environment,
        }
    }

    /// The JSON, without the points of curves and time lines, which would fill pages and remain in the run's folder,
    /// and without the location of files.
    fn json(&self) -> String {
        match self {
            Self::Run(summary) => {
                let slim = Summary {
                    curves: Vec::new(),
                    time_line: Vec::new(),
                    typed: String::new(),
                    server_warned: Vec::new(),
                    ..Summary::clone(summary)
                };
                slim.json()
            }
            Self::Figures(sheet) => sheet.json(),
        }
    }

    /// The record's file name without its ending; an error says why it is not kept.
    fn file_stem(&self) -> Result<String, String> {
        let (name, verdict) = (self.name(), self.verdict());
        if !verdict.valid {
            let reasons = verdict.reasons.join("; ");
            return Err(format!("the run of {name} is INVALID and is not kept: {reasons}"));
        }
        let environment = self.environment();
        if environment.dirty {
            return Err(format!(
                "the run of {name} was of a tree with changes that are not committed; nobody could repeat it"
            ));
        }
        if let Some(of) = environment.not_of_this_tree() {
            return Err(format!("the run of {name} is not kept: it was {of}"));
        }
        if environment.is_sweep() {
            return Err(format!(
                "the sweep of {name} is not kept: it is no run at the scenario's rate; scripts/perf run {name} makes one"
            ));
        }
        Ok(format!("{}-{name}-{}", environment.day(), environment.commit))
    }
}

/// Keeps a run, or the newest one below the rig's folder.
pub(crate) fn keep(ground: &Ground, run: Option<&Path>) -> Result<(), String> {
    let path = match run {
        Some(run) if run.is_dir() => of_folder(run).ok_or_else(|| has_none(run))?,
        Some(run) => run.to_owned(),
        None => newest(&ground.out)?,
    };
    let name = keep_in(&ground.project.join("perf/records"), &Record::read(&path)?)?;
    println!("perf/records/{name}; scripts/record-to-readme puts it into perf/FIGURES.md");
    Ok(())
}

/// Writes a record into the folder of records; gives the file's name.
fn keep_in(folder: &Path, record: &Record) -> Result<String, String> {
    let stem = record.file_stem()?;
    std::fs::create_dir_all(folder).map_err(|fault| format!("{}: {fault}", folder.display()))?;
    let mut name = format!("{stem}.json");
    let mut number = 2;
    while is_of_another(&folder.join(&name), record)? {
        name = format!("{stem}-{number}.json");
        number += 1;
    }
    report::save(&folder.join(&name), record.json().as_bytes())?;
    Ok(name)
}

/// Whether a file is a record of another command, profile or machine, which this one does not replace.
fn is_of_another(path: &Path, record: &Record) -> Result<bool, String> {
    if !path.exists() {
        return Ok(false);
    }
    let (kept, new) = (Record::read(path)?, record.environment());
    let kept = kept.environment();
    Ok(kept.command != new.command || kept.profile != new.profile || !new.replaces(kept))
}

fn of_folder(folder: &Path) -> Option<PathBuf> {
    FILES.into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

fn has_none(folder: &Path) -> String {
    format!("{}: has none of {}", folder.display(), FILES.join(", "))
}

fn newest(out: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(out).map_err(|fault| format!("{}: {fault}", out.display()))?;
    let found = entries.filter_map(|entry| of_folder(&entry.ok()?.path()));
    // The names of folders begin with their time.
    found.max().ok_or_else(|| format!("{}: has no run", out.display()))
}

/// The signature check of the newest record that has one for signers that were not known, of this machine's CPU if there
/// is one, for another CPU's says little about this one. None if there is no such record, or if the records cannot be
/// read.
pub(crate) fn newest_check(folder: &Path, here: &Environment) -> Option<Recorded> {
    let records = all(folder).ok()?;
    let check = |run: &Summary| {
        let one = run.commonest(|times| matches!(times.class.as_str(), "place" | "replace" | "take"))?;
        let check_us = one.median_us("sign").filter(|_| !report::knows_signers(run))?;
        let of = format!("{} on {}, {}", run.scenario, run.environment.cpu_model, run.environment.day());
        Some(Recorded { check_us, of, is_of_this_cpu: here.has_cpu_of(&run.environment) })
    };
    let checks: Vec<Recorded> = records.runs.iter().rev().filter_map(check).collect();
    checks.iter().find(|check| check.is_of_this_cpu).or(checks.first()).cloned()
}

/// All records, oldest first.
pub(crate) fn all(folder: &Path) -> Result<Records, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Records::default()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    let mut records = Records::default();
    for path in paths {
        match Record::read(&path)? {
            Record::Run(summary) => records.runs.push(*summary),
            Record::Figures(sheet) => records.sheets.push(*sheet),
        }
    }
    // Names have the day and the commit, which do not give the order within a day.
    records.runs.sort_by(|one, other| one.environment.date.cmp(&other.environment.date));
    records.sheets.sort_by(|one, other| one.environment.date.cmp(&other.environment.date));
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet;
    use crate::summary::example;

    fn run() -> Record {
        Record::Run(Box::new(example()))
    }

    fn figures() -> Record {
        Record::Figures(Box::new(sheet::example()))
    }

    #[test]
    fn a_valid_run_of_a_commit_is_kept_under_its_day_and_name() {
        assert_eq!(run().file_stem(), Ok("2026-11-22-mixed-abc1234".to_owned()));
        assert_eq!(figures().file_stem(), Ok("2026-11-22-bench-roundtrip-abc1234".to_owned()));
    }

    #[test]
    fn an_invalid_run_and_one_of_a_changed_tree_are_refused() {
        let invalid = Verdict::because(vec!["steal: 3 %".to_owned()]);
        let (mut summary, mut figures) = (example(), sheet::example());
        summary.verdict = invalid.clone();
        figures.verdict = invalid;
        for (record, name) in [
            (Record::Run(Box::new(summary)), "mixed"),
            (Record::Figures(Box::new(figures)), "bench-roundtrip"),
        ] {
            let wanted = format!("the run of {name} is INVALID and is not kept: steal: 3 %");
            assert_eq!(record.file_stem(), Err(wanted));
        }
        let (mut summary, mut figures) = (example(), sheet::example());
        summary.environment.dirty = true;
        figures.environment.dirty = true;
        for record in [Record::Run(Box::new(summary)), Record::Figures(Box::new(figures))] {
            assert!(record.file_stem().unwrap_err().contains("not committed"));
        }
    }

    #[test]
    fn another_server_and_a_scenario_that_the_commit_may_not_have_are_refused() {
        let with = |command: &str| {
            let (mut summary, mut figures) = (example(), sheet::example());
            command.clone_into(&mut summary.environment.command);
            command.clone_into(&mut figures.environment.command);
            [Record::Run(Box::new(summary)), Record::Figures(Box::new(figures))]
        };
        for command in ["scripts/perf run mixed --server outcry", "scripts/perf run mixed.toml"] {
            for record in with(command) {
                let complaint = record.file_stem().unwrap_err();
                assert!(complaint.contains("is not kept: it was of a "), "{complaint}");
            }
        }
        assert!(with("scripts/perf run mixed --rate 5").iter().all(|record| record.file_stem().is_ok()));
    }

    #[test]
    fn a_sweep_is_no_record_of_its_scenario() {
        let of = |command: &str| {
            let mut summary = example();
            command.clone_into(&mut summary.environment.command);
            Record::Run(Box::new(summary)).file_stem()
        };
        for command in [
            "scripts/perf sweep mixed",
            "scripts/perf sweep mixed --rate 5",
            "OUTCRY_A_B=1 scripts/perf sweep mixed",
        ] {
            let complaint = of(command).unwrap_err();
            assert!(complaint.ends_with("; scripts/perf run mixed makes one"), "{command}: {complaint}");
        }
        assert!(of("scripts/perf run mixed").is_ok());
    }

    #[test]
    fn the_same_command_takes_its_records_place_and_another_one_gets_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let keep = |record: &Record| keep_in(folder.path(), record).unwrap();
        assert_eq!(keep(&figures()), "2026-11-22-bench-roundtrip-abc1234.json");
        let mut durable = sheet::example();
        durable.environment.command = format!("ROUNDTRIP_DURABILITY=durable {}", durable.environment.command);
        let durable = Record::Figures(Box::new(durable));
        for _ in 0..2 {
            assert_eq!(keep(&figures()), "2026-11-22-bench-roundtrip-abc1234.json");
            assert_eq!(keep(&durable), "2026-11-22-bench-roundtrip-abc1234-2.json");
        }
        assert_eq!(all(folder.path()).unwrap().sheets.len(), 2);
    }

    #[test]
    fn records_are_read_oldest_first_each_as_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(all(folder.path()), Ok(Records::default()));
        let here = example().environment;
        assert_eq!(newest_check(folder.path(), &here), None);
        // The later record of the same day has the commit that sorts first.
        for (date, commit) in [
            ("2026-11-23T00:00:00Z", "abc1234"),
            ("2026-11-22T05:00:00Z", "fff1234"),
            ("2026-11-22T06:00:00Z", "aaa1234"),
        ] {
            let mut summary = example();
            summary.environment.date = date.to_owned();
            summary.environment.commit = commit.to_owned();
            keep_in(folder.path(), &Record::Run(Box::new(summary))).unwrap();
        }
        keep_in(folder.path(), &figures()).unwrap();
        let records = all(folder.path()).unwrap();
        let commits: Vec<&str> = records.runs.iter().map(|row| row.environment.commit.as_str()).collect();
        assert_eq!(commits, ["fff1234", "aaa1234", "abc1234"]);
        assert!(records.runs.iter().all(|run| run.curves.is_empty() && run.time_line.is_empty()));
        assert!(records.runs.iter().all(|run| run.typed.is_empty()), "nobody's folders are on record");
        let of = "mixed on Some CPU, 2026-11-23".to_owned();
        let recorded = Recorded { check_us: 26.0, of, is_of_this_cpu: true };
        assert_eq!(newest_check(folder.path(), &here), Some(recorded.clone()));
        let elsewhere = Environment { cpu_model: "Another CPU".to_owned(), ..here.clone() };
        let of_another = Recorded { is_of_this_cpu: false, ..recorded.clone() };
        assert_eq!(newest_check(folder.path(), &elsewhere), Some(of_another));
        let mut later = example();
        later.environment = Environment { date: "2026-11-24T00:00:00Z".to_owned(), ..elsewhere };
        let file = keep_in(folder.path(), &Record::Run(Box::new(later))).unwrap();
        assert_eq!(newest_check(folder.path(), &here), Some(recorded), "not the newest, but of this CPU");
        std::fs::remove_file(folder.path().join(file)).unwrap();
        assert_eq!(records.sheets, [sheet::example()]);
        std::fs::write(folder.path().join("x.json"), "{}").unwrap();
        assert!(all(folder.path()).is_err());
        assert_eq!(newest_check(folder.path(), &here), None);
    }

    #[test]
    fn the_newest_folder_counts_whatever_it_is_of() {
        let out = tempfile::tempdir().unwrap();
        assert!(newest(out.path()).unwrap_err().ends_with("has no run"));
        for (folder, file) in [
            ("20261122T030405-mixed", "summary.json"),
            ("20261122T030406-bench-roundtrip", "bench.json"),
            ("20261122T030407-compare-mixed", "compare.json"),
        ] {
            std::fs::create_dir(out.path().join(folder)).unwrap();
            std::fs::write(out.path().join(folder).join(file), "{}").unwrap();
        }
        let bench = out.path().join("20261122T030406-bench-roundtrip");
        assert_eq!(newest(out.path()), Ok(bench.join("bench.json")));
        assert_eq!(of_folder(&out.path().join("20261122T030407-compare-mixed")), None);
        assert_eq!(FILES[1], sheet::file_name("bench-roundtrip"));
    }
}
