//! The first reading: what the files hold.

use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::catalog::{Import, MarketDefaults, Rows};

/// What is read from a file at once.
const READ_BYTES: usize = 256 << 10;

/// How often progress is said.
const PACE: Duration = Duration::from_secs(1);

/// A file that can be read twice.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    /// Its bytes, if it is a pipe, which can be read only once.
    held: Option<Vec<u8>>,
}

impl File {
    /// Opens a file; a pipe is read to its end.
    pub(super) fn open(path: &PathBuf) -> Result<Self, String> {
        let fault = |fault: std::io::Error| named(path, &fault);
        let mut file = std::fs::File::open(path).map_err(fault)?;
        let kind = file.metadata().map_err(fault)?;
        let mut held = None;
        if !kind.is_file() {
            file.read_to_end(held.insert(Vec::new())).map_err(fault)?;
        }
        Ok(Self { path: path.clone(), held })
    }

    /// Its rows from the first.
    pub(super) fn rows(&self) -> Result<Rows<'_>, String> {
        let rows = if let Some(bytes) = &self.held {
            Rows::new(&bytes[..])
        } else {
            let file = std::fs::File::open(&self.path).map_err(|fault| named(&self.path, &fault))?;
            Rows::new(BufReader::with_capacity(READ_BYTES, file))
        };
        rows.map_err(|fault| self.named(&fault))
    }

    /// A fault of this file.
    pub(super) fn named(&self, fault: &dyn std::fmt::Display) -> String {
        named(&self.path, fault)
    }
}

fn named(path: &Path, fault: &dyn std::fmt::Display) -> String {
    format!("{}: {fault}", path.display())
}

/// How people find a row: its file and its number in it.
pub(super) fn place_name(files: &[File], file: u32, row: u32) -> String {
    let file = files.get(file as usize).map_or_else(String::new, |file| format!("{}, ", file.path.display()));
    format!("{file}row {row}")
}

/// Reads all files into one import; reports progress once a second.
pub(super) fn read(
    files: &[File],
    defaults: &MarketDefaults,
    mut say: impl FnMut(&str),
) -> Result<Import, String> {
    let mut import = Import::survey();
    let mut pace = Pace::default();
    for (file, number) in files.iter().zip(0..) {
        let progress = |bytes: u64| {
            if pace.is_due() {
                say(&format!("import: {}: {} MiB read", file.path.display(), bytes >> 20));
            }
        };
        let read = import.add_rows(number, &mut file.rows()?, defaults, progress);
        read.map_err(|fault| file.named(&fault))?;
    }
    Ok(import)
}

/// When something is to be said again.
#[derive(Debug)]
pub(super) struct Pace {
    said: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self { said: Instant::now() }
    }
}

impl Pace {
    /// True once a second.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = PACE <= self.said.elapsed();
        if is_due {
            self.said = Instant::now();
        }
        is_due
    }
}
