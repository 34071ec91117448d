//! The file that says which ports were bound, for whoever starts an exchange and waits until it serves.
//!
//! It appears whole, once the exchange serves, or in `dev` once everything is seeded. One of an earlier run is removed
//! at the start, as its ports are another process's by now. A path that is a link is followed, and keeps its link.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// As many links, one after another, as the kernel follows.
const LINKS_MAX: usize = 40;

/// Refuses a path at which [`write()`] would fail, or would take the place of something else than a file. A folder that
/// comes with `data_dir` may be missing.
pub(super) fn refuse(path: &Path, data_dir: &Path) -> Result<(), String> {
    let file = led_to(path);
    match std::fs::metadata(&file) {
        Ok(about) if about.is_dir() => return Err(refused(path, "is a folder; allowed: a file")),
        Ok(about) if !about.is_file() => {
            return Err(refused(path, "is a device, a pipe or a socket; allowed: a file"));
        }
        _ if !data_dir.exists() && is_below(&file, data_dir) => return Ok(()),
        _ => {}
    }
    let tried = beside(&file).and_then(|(beside, _)| std::fs::remove_file(&beside));
    tried.map_err(|fault| failed(path, &fault))
}

/// Whether a path leads into a folder, however either is written.
fn is_below(file: &Path, folder: &Path) -> bool {
    let [file, folder] = [file, folder].map(std::path::absolute);
    file.is_ok_and(|file| folder.is_ok_and(|folder| file.starts_with(folder)))
}

/// Removes the file of an earlier run.
pub(super) fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(led_to(path)) {
        Err(fault) if fault.kind() != ErrorKind::NotFound => Err(failed(path, &fault)),
        _ => Ok(()),
    }
}

/// Says at `path` which ports were bound.
pub(super) fn write(path: &Path, http: u16, admin: u16) -> Result<(), String> {
    let text = format!("{{\"http\":{http},\"admin\":{admin}}}\n");
    let path_led_to = led_to(path);
    let written = beside(&path_led_to).and_then(|(beside, mut file)| {
        let named = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&beside, &path_led_to));
        if named.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        named
    });
    written.map_err(|fault| failed(path, &fault))
}

/// Where the links at `path` lead, whether or not a file is there.
fn led_to(path: &Path) -> PathBuf {
    let mut file = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&file) else { break };
        file = file.parent().unwrap_or(Path::new("")).join(target);
    }
    file
}

/// Makes the file in which a ports file is written before it is renamed, so that nobody reads half of it. It has a name
/// that no other file has: the process's number, or the next that is free.
fn beside(path: &Path) -> std::io::Result<(PathBuf, File)> {
    let mut number = std::process::id();
    loop {
        let beside = path.with_extension(format!("new-{number}"));
        match File::create_new(&beside) {
            Err(fault) if fault.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|file| (beside, file)),
        }
    }
}

fn refused(path: &Path, why: &str) -> String {
    format!("--ports-file: {} {why}", path.display())
}

fn failed(path: &Path, fault: &std::io::Error) -> String {
    format!("--ports-file: {}: {fault}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_no_file_is_refused_and_stays_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
        symlink("/dev/null", at("link to a device")).expect("linked");
        for (path, why) in [
            (PathBuf::from("/dev/null"), Some(" is a device, a pipe or a socket; allowed: a file")),
            (at("socket"), Some(" is a device, a pipe or a socket; allowed: a file")),
            (at("link to a device"), Some(" is a device, a pipe or a socket; allowed: a file")),
            (folder.path().to_path_buf(), Some(" is a folder; allowed: a file")),
            (at("nowhere/ports"), Some(": No such file or directory (os error 2)")),
            (at("data/ports"), None),
            (at("ports"), None),
        ] {
            let told = why.map(|why| format!("--ports-file: {}{why}", path.display()));
            assert_eq!(refuse(&path, &at("data")).err(), told);
        }
        let data = Path::new("a-data-dir-that-is-not-there");
        refuse(&std::path::absolute(data).expect("a folder to work in").join("ports"), data)
            .expect("below it");
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .expect("readable")
            .map(|entry| entry.expect("one").file_name())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["link to a device", "socket"]);
    }

    #[test]
    fn a_link_is_followed_whether_or_not_its_file_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("run")).expect("made");
        symlink("second", at("first")).expect("linked");
        symlink(at("run/ports"), at("second")).expect("linked");
        let link = at("first");
        for round in 0..2 {
            refuse(&link, &at("data")).expect("a good path");
            remove(&link).expect("removed, or not there");
            assert!(!at("run/ports").exists());
            write(&link, 1, 2).expect("written");
            let text = std::fs::read_to_string(at("run/ports")).expect("there");
            assert_eq!(text, "{\"http\":1,\"admin\":2}\n", "{round}");
            assert!(link.is_symlink() && at("second").is_symlink());
        }
    }

    #[test]
    fn a_ports_file_leaves_what_is_beside_it_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.json");
        let others = ["run".to_owned(), "run.new".to_owned(), format!("run.new-{}", std::process::id())];
        for other in &others {
            std::fs::write(folder.path().join(other), other).expect("written");
        }
        refuse(&path, &folder.path().join("data")).expect("it may be written");
        write(&path, 8080, 8081).expect("it is written");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "{\"http\":8080,\"admin\":8081}\n");
        for other in &others {
            assert_eq!(&std::fs::read_to_string(folder.path().join(other)).expect("it is there"), other);
        }
        let count = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(count, others.len() + 1, "nothing else is left");
    }
}
