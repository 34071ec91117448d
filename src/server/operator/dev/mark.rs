//! Whose a data directory is: `dev` leaves a mark in what it makes.
//!
//! Everybody knows the keys of `dev`'s accounts, and `--fresh` wipes. So `dev` takes a directory only if it has the
//! mark, or is empty; and `serve` takes none that has it. The mark is written before anything else. It also names the
//! logs that `dev` made at a configured path: `--fresh` removes these, and no other exchange's.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::server::process::secret;

/// The first line, for people.
const ABOUT: &str =
    "# `outcry dev` made this directory: the keys of its accounts are public, --fresh wipes it.\n";

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("made-by-dev")
}

fn is_marked(data_dir: &Path) -> bool {
    path(data_dir).is_file()
}

/// Refuses, for `dev`, a directory that another command made, or that holds anything else.
pub(super) fn refuse_anothers(data_dir: &Path) -> Result<(), String> {
    let at = data_dir.display();
    let mut entries = match fs::read_dir(data_dir) {
        Ok(entries) => entries,
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(format!("data_dir: {at}: {fault}")),
    };
    if is_marked(data_dir) || entries.next().is_none() {
        return Ok(());
    }
    Err(format!(
        "data_dir: {at} was not made by `outcry dev`; allowed: a folder that it made, or an empty one"
    ))
}

/// Refuses, for everything but `dev`, a directory that `dev` made.
pub(crate) fn refuse_devs(data_dir: &Path) -> Result<(), String> {
    if !is_marked(data_dir) {
        return Ok(());
    }
    let at = data_dir.display();
    Err(format!(
        "data_dir: {at} was made by `outcry dev`, and everybody knows the keys of its accounts; give another folder"
    ))
}

/// Marks a directory as `dev`'s, which is made if need be, and a log at a configured path if `dev` is going to make it.
pub(super) fn leave(data_dir: &Path, log_path: Option<&Path>) -> Result<(), String> {
    secret::make_directory(data_dir)?;
    let at = path(data_dir);
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&at)?;
        if file.metadata()?.len() == 0 {
            file.write_all(ABOUT.as_bytes())?;
        }
        if let Some(log) = log_path.filter(|log| !log.exists()) {
            let log = std::path::absolute(log)?;
            if !logs(data_dir).contains(&log) {
                file.write_all(format!("log {}\n", log.display()).as_bytes())?;
            }
        }
        file.sync_all()?;
        File::open(data_dir)?.sync_all()
    };
    written().map_err(|fault| format!("data_dir: {}: {fault}", at.display()))
}

/// Empties a directory that `dev` made, its mark last: one that is half empty is still `dev`'s. The directory stays, as
/// it may be a mount, or what a link leads to.
pub(super) fn wipe(data_dir: &Path) -> std::io::Result<()> {
    let mark = path(data_dir);
    for entry in fs::read_dir(data_dir)? {
        let entry = entry?;
        if entry.path() == mark {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(mark)
}

/// The logs at configured paths that `dev` made for this directory.
pub(super) fn logs(data_dir: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(path(data_dir)).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("log ")).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dev_and_the_others_never_take_each_other_s_directories() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = |name: &str, file: &[&str]| {
            let data_dir = folder.path().join(name);
            fs::create_dir(&data_dir).expect("made");
            for file in file {
                fs::write(data_dir.join(file), "").expect("written");
            }
            data_dir
        };
        let absent = folder.path().join("absent");
        for (data_dir, for_dev, for_serve) in [
            (absent.clone(), true, true),
            (made("empty", &[]), true, true),
            (made("dev's", &["made-by-dev"]), true, false),
            (made("a new one's", &["master-secret"]), false, true),
            (made("an old one's", &["identity"]), false, true),
            (made("letters", &["letter"]), false, true),
        ] {
            let name = data_dir.display();
            assert_eq!(refuse_anothers(&data_dir).is_ok(), for_dev, "{name}");
            assert_eq!(refuse_devs(&data_dir).is_ok(), for_serve, "{name}");
        }
        leave(&absent, None).expect("marked");
        assert!(refuse_anothers(&absent).is_ok() && refuse_devs(&absent).is_err());
    }

    #[test]
    fn only_a_log_that_was_not_there_before_counts_as_dev_s() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data_dir, mine, other) =
            (folder.path().join("data"), folder.path().join("mine"), folder.path().join("other's"));
        fs::write(&other, "frames").expect("written");
        for log in [None, Some(&mine), Some(&mine), Some(&other)] {
            leave(&data_dir, log.map(PathBuf::as_path)).expect("marked");
        }
        assert_eq!(logs(&data_dir), [mine]);
    }
}
