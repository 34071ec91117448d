//! The machine's own files, or a copy of another machine's below some folder.

use std::path::{Path, PathBuf};

use super::topology::allowed_cpus;
use crate::topology::Files;
use crate::topology::machine::Machine;

/// Files below a folder that stands for `/`.
pub(crate) struct Below(PathBuf);

impl Below {
    /// This machine's.
    pub(crate) fn this_machine() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A copy's, such as a support bundle's.
    pub(crate) fn folder(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

impl Files for Below {
    fn text(&self, path: &str) -> Result<String, String> {
        let bytes = std::fs::read(self.path(path)).map_err(|fault| format!("{path}: {fault}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

/// The machine that this process runs on.
pub(crate) fn this_machine() -> Machine {
    Machine::read(&Below::this_machine(), &allowed_cpus())
}
