//! The real data that lies beside the repository and is never copied into it.

use std::path::{Path, PathBuf};

/// The file below `../shared`. Where it is absent the test is skipped with a line that says so,
/// except in CI, where it has to be there.
pub fn shared(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is absent, and this is CI", file.display());
    eprintln!("skipped: {} is absent", file.display());
    None
}
