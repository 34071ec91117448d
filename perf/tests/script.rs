//! `scripts/perf` as it is called from any folder: what it builds, and where the rig then runs. Cargo and the rig are
//! scripts that say how they were called.

#![allow(clippy::unwrap_used, reason = "a test that cannot run the script has to stop")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Says its name, where it runs, and its words.
const SAYS: &str = "#!/bin/sh\necho \"${0##*/} in $PWD: $*\"\n";

fn program(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, SAYS).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn paths_are_relative_to_where_they_are_typed() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    program(&folder.join("bin/cargo"));
    program(&folder.join("work/built/release/perf"));
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let target = folder.join("work/built");
    for given in [target.to_str().unwrap(), "built", "../work/built"] {
        let ran = Command::new(project.join("scripts/perf"))
            .args(["run", "read.toml", "--out", "out1"])
            .current_dir(folder.join("work"))
            .env("PATH", &path)
            .env("CARGO_TARGET_DIR", given)
            .env_remove("PERF_PROFILE")
            .output()
            .unwrap();
        let words = "--profile release --package outcry --package outcry-perf --bins --target-dir";
        let expected = format!(
            "cargo in {}: build {words} {}\nperf in {}: --built release run read.toml --out out1\n",
            project.display(),
            target.display(),
            folder.join("work").display()
        );
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{given}: {ran:?}");
    }
}
