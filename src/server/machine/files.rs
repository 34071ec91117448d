//! The machine's own files, or a copy of another machine's below some folder.
//!
//! What was read can be copied below a folder: such a copy answers the same reads, and holds nothing else.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::server::plan::topology::allowed_cpus;
use crate::topology::Files;
use crate::topology::machine::Machine;

/// Files below a folder that stands for `/`.
pub(crate) struct Below {
    root: PathBuf,
    /// What was read so far, by its path; `None` for a folder that a listing named.
    read: RefCell<BTreeMap<PathBuf, Option<Vec<u8>>>>,
}

impl Below {
    /// This machine's.
    pub(crate) fn this_machine() -> Self {
        Self::folder(Path::new("/"))
    }

    /// A copy's, such as a support bundle's.
    pub(crate) fn folder(folder: &Path) -> Self {
        Self { root: folder.to_owned(), read: RefCell::default() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Writes what was read so far below `folder`, which need not be there yet.
    pub(crate) fn copy_what_was_read(&self, folder: &Path) -> Result<(), String> {
        for (path, content) in self.read.borrow().iter() {
            let copy = folder.join(path);
            let fault = |fault: std::io::Error| format!("--copy: {}: {fault}", copy.display());
            let Some(content) = content else {
                std::fs::create_dir_all(&copy).map_err(fault)?;
                continue;
            };
            std::fs::create_dir_all(copy.parent().unwrap_or(folder)).map_err(fault)?;
            std::fs::write(&copy, content).map_err(fault)?;
        }
        Ok(())
    }

    fn keep(&self, path: &Path, content: Option<&[u8]>) {
        self.read.borrow_mut().insert(path.to_owned(), content.map(<[u8]>::to_vec));
    }
}

impl Files for Below {
    fn text(&self, path: &str) -> Result<String, String> {
        let bytes = std::fs::read(self.path(path)).map_err(|fault| format!("{path}: {fault}"))?;
        self.keep(Path::new(path.trim_start_matches('/')), Some(&bytes));
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A link to a folder counts as one: a network card is such a link.
            if entry.path().is_dir() {
                self.keep(&Path::new(path.trim_start_matches('/')).join(&name), None);
            }
            names.push(name);
        }
        names.sort_unstable();
        names
    }
}

/// The machine that this process runs on.
pub(crate) fn this_machine() -> Machine {
    Machine::read(&Below::this_machine(), &allowed_cpus())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_reads_like_what_it_was_made_of() {
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        for (path, text) in [("sys/a/value", "1\n"), ("sys/a/secret", "x\n"), ("sys/b/value", "2\n")] {
            let path = one.path().join(path);
            std::fs::create_dir_all(path.parent().expect("below a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let read = |files: &Below| {
            let names = files.names("/sys");
            let texts: Vec<_> = names.iter().map(|name| files.text(&format!("/sys/{name}/value"))).collect();
            (names, texts, files.text("/sys/none").is_err())
        };
        let files = Below::folder(one.path());
        let came = read(&files);
        files.copy_what_was_read(other.path()).expect("copied");
        assert_eq!(read(&Below::folder(other.path())), came);
        assert!(!other.path().join("sys/a/secret").exists(), "nobody asked for it");
    }
}
