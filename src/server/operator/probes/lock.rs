//! Whether the data directory and the log's file can be taken: they are there or can be made, and nobody has them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use super::{nearest_folder, no_folder, no_place_for_log, writable};
use crate::topology::checks::Refusal;

/// Why it matters that files can be made there.
const NOWHERE: &str = "what clients were told has to be written down, in data_dir and in the log's file";

/// Why the data directory or the log could not be taken, if so. A fault ends with what mends it, after a semicolon,
/// unless that is the right to write or the setting that it names.
pub(super) fn refusal(data_dir: &Path, log_path: Option<&Path>) -> Option<Refusal> {
    let nowhere = |fault| Some(Refusal { fault, why: NOWHERE });
    if let Some(file) = data_dir.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir()) {
        return nowhere(format!("data_dir: {} is a file; allowed: a folder", file.display()));
    }
    if let Some(Refusal { fault, why }) = log_path.and_then(|path| of_log(path, data_dir)) {
        return Some(Refusal { fault: format!("journal.log_path: {fault}"), why });
    }
    let Some(folder) = nearest_folder(data_dir) else {
        return nowhere(format!("{}; give another", no_folder()));
    };
    let is_there = data_dir.is_dir();
    if let Err(fault) = writable(&folder) {
        return nowhere(format!("not writable: {fault}"));
    }
    if !is_there {
        return None;
    }
    let tried = File::open(data_dir).map(|file| file.try_lock_shared());
    match tried.map_err(|fault| fault.to_string()) {
        Ok(Ok(())) => None,
        Ok(Err(TryLockError::WouldBlock)) => Some(in_use(data_dir, "data_dir")),
        Ok(Err(TryLockError::Error(fault))) => nowhere(fault.to_string()),
        Err(fault) => nowhere(fault),
    }
}

/// Why a start could not take this file for the log, if so.
fn of_log(path: &Path, data_dir: &Path) -> Option<Refusal> {
    if let Some(fault) = no_place_for_log(path, data_dir) {
        return Some(Refusal { fault, why: NOWHERE });
    }
    let at = path.display();
    match OpenOptions::new().read(true).write(true).open(path).map(|file| file.try_lock_shared()) {
        Ok(Err(TryLockError::WouldBlock)) => Some(in_use(path, "journal.log_path")),
        Err(fault) if fault.kind() != ErrorKind::NotFound => {
            Some(Refusal { fault: format!("{at}: {fault}"), why: NOWHERE })
        }
        _ => None,
    }
}

fn in_use(path: &Path, setting: &str) -> Refusal {
    let fault = format!("{} is in use; stop who uses it, or give another {setting}", path.display());
    Refusal { fault, why: Refusal::TWO_PROCESSES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_free_until_somebody_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let data_dir = at("data");
        let shown = |name: &str| at(name).display().to_string();
        let said = |data_dir: &Path, log: Option<&Path>| {
            refusal(data_dir, log).map(|Refusal { fault, why }| (fault, why))
        };
        let log = |path: &Path| said(&data_dir, Some(path));
        for name in ["taken", "file"] {
            File::create(at(name)).expect("room");
        }
        assert_eq!(said(&data_dir, None), None, "not there yet, and not made");
        assert_eq!(log(&at("log")), None, "it can be made");
        assert_eq!(log(&data_dir.join("log")), None, "its folder is made with the directory");
        assert_eq!(log(&at("taken")), None);
        let holder = File::open(at("taken")).expect("open");
        holder.lock().expect("locked");
        for (log_path, fault, why) in [
            (
                folder.path().to_path_buf(),
                format!("{} is a folder; allowed: a file", folder.path().display()),
                NOWHERE,
            ),
            (
                "/dev/null".into(),
                "/dev/null is a device, a pipe or a socket; allowed: a file".to_owned(),
                NOWHERE,
            ),
            (
                at("none/log"),
                format!(
                    "{}: there is no folder {}; allowed: a file in a folder that is there",
                    shown("none/log"),
                    shown("none")
                ),
                NOWHERE,
            ),
            (
                at("taken"),
                format!("{} is in use; stop who uses it, or give another journal.log_path", shown("taken")),
                Refusal::TWO_PROCESSES,
            ),
        ] {
            assert_eq!(log(&log_path), Some((format!("journal.log_path: {fault}"), why)));
        }
        let within = format!("data_dir: {} is a file; allowed: a folder", shown("file"));
        assert_eq!(said(&at("file/within"), None), Some((within, NOWHERE)));
        // Even root makes no file there, though its permissions let everybody in.
        let (fault, why) = said(Path::new("/proc/outcry"), None).expect("refused");
        assert!(fault.starts_with("not writable: /proc: ") && why == NOWHERE, "{fault}: {why}");
        assert!(!data_dir.exists());
        std::fs::create_dir(&data_dir).expect("made");
        assert_eq!(said(&data_dir, None), None);
        let holder = File::open(&data_dir).expect("open");
        holder.lock().expect("locked");
        assert_eq!(
            said(&data_dir, None),
            Some((
                format!("{} is in use; stop who uses it, or give another data_dir", shown("data")),
                Refusal::TWO_PROCESSES
            ))
        );
    }
}
