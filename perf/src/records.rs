//! Runs that are kept: `perf/records/<date>-<scenario>-<commit>.json`, each a whole summary.

use std::path::{Path, PathBuf};

use crate::report;
use crate::run::Ground;
use crate::summary::Summary;

/// Points of curves and time lines fill pages and are in the run's own folder.
fn slimmed(summary: Summary) -> Summary {
    Summary { curves: Vec::new(), time_line: Vec::new(), ..summary }
}

/// Keeps a run, or the newest one below the rig's folder.
pub(crate) fn keep(ground: &Ground, run: Option<&Path>) -> Result<(), String> {
    let path = match run {
        Some(run) if run.is_dir() => run.join("summary.json"),
        Some(run) => run.to_owned(),
        None => newest(&ground.out)?,
    };
    let summary = Summary::read(&path)?;
    let name = file_name(&summary)?;
    let folder = ground.project.join("perf/records");
    std::fs::create_dir_all(&folder).map_err(|fault| format!("{}: {fault}", folder.display()))?;
    let kept = folder.join(&name);
    report::save(&kept, slimmed(summary).json().as_bytes())?;
    println!("perf/records/{name}; scripts/record-to-readme puts it into README");
    Ok(())
}

/// What a run is kept as; the error says why it is not.
fn file_name(summary: &Summary) -> Result<String, String> {
    if !summary.verdict.valid {
        return Err(format!(
            "the run of {} is INVALID and is not kept: {}",
            summary.scenario,
            summary.verdict.reasons.join("; ")
        ));
    }
    let environment = &summary.environment;
    if environment.dirty {
        return Err(format!(
            "the run of {} was of a tree with changes that are not committed; nobody could repeat it",
            summary.scenario
        ));
    }
    let day = environment.date.get(..10).unwrap_or(&environment.date);
    Ok(format!("{day}-{}-{}.json", summary.scenario, environment.commit))
}

fn newest(out: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(out).map_err(|fault| format!("{}: {fault}", out.display()))?;
    let summaries = entries.filter_map(|entry| Some(entry.ok()?.path().join("summary.json")));
    // Folders begin with their time.
    summaries.filter(|path| path.is_file()).max().ok_or_else(|| format!("{}: has no run", out.display()))
}

/// All records, oldest first.
pub(crate) fn all(folder: &Path) -> Result<Vec<Summary>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    paths.iter().map(|path| Summary::read(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::example;

    #[test]
    fn a_valid_run_of_a_commit_is_kept_under_its_day_and_name() {
        assert_eq!(file_name(&example()), Ok("2026-11-22-mixed-abc1234.json".to_owned()));
    }

    #[test]
    fn an_invalid_run_and_one_of_a_changed_tree_are_refused() {
        let mut summary = example();
        summary.verdict.valid = false;
        summary.verdict.reasons = vec!["steal: 3 %".to_owned()];
        assert_eq!(
            file_name(&summary).unwrap_err(),
            "the run of mixed is INVALID and is not kept: steal: 3 %"
        );
        let mut summary = example();
        summary.environment.dirty = true;
        assert!(file_name(&summary).unwrap_err().contains("not committed"));
    }

    #[test]
    fn records_are_read_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(all(folder.path()), Ok(Vec::new()));
        for day in ["2026-11-23", "2026-11-22"] {
            let mut summary = example();
            summary.environment.date = format!("{day}T00:00:00Z");
            std::fs::write(folder.path().join(file_name(&summary).unwrap()), summary.json()).unwrap();
        }
        let days: Vec<String> =
            all(folder.path()).unwrap().into_iter().map(|row| row.environment.date).collect();
        assert_eq!(days, ["2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"]);
        std::fs::write(folder.path().join("x.json"), "{}").unwrap();
        assert!(all(folder.path()).is_err());
    }
}
