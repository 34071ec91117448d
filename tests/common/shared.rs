//! Real data beside the repository, never copied into it.

#![allow(unreachable_pub, reason = "every test is a crate of its own")]

use std::path::{Path, PathBuf};

/// The file below `../shared`. If it is missing, the test is skipped with a line that says so,
/// except in CI, where the file must exist.
pub fn shared(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is absent, and this is CI", file.display());
    eprintln!("skipped: {} is absent", file.display());
    None
}
