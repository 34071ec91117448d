//! Real data beside the repository, never copied into it.

#![allow(unreachable_pub, reason = "every test is a crate of its own")]

use std::path::{Path, PathBuf};

/// The file below `../shared`. If it is missing, the test is skipped with a line that says so, unless
/// `TESTS_NEED_DATA` is set, as where this project is checked.
pub fn shared(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var_os("TESTS_NEED_DATA").is_none(), "{} is absent, and tests need it", file.display());
    eprintln!("skipped: {} is absent", file.display());
    None
}
