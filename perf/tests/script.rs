//! `scripts/perf` as it is called from any folder: what it builds, and where the rig then runs. Cargo and the rig are
//! scripts that say how they were called.

#![allow(clippy::unwrap_used, reason = "a test that cannot run the script has to stop")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Says its path's last two parts, where it runs, and its words.
const SAYS: &str = "#!/bin/sh\nfolder=${0%/*}\necho \"${folder##*/}/${0##*/} in $PWD: $*\"\n";

fn program(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, SAYS).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Calls the script in `work`, where the target directory may be `given`, and with this profile: what ran, and how.
#[track_caller]
fn check(given: &str, profile: Option<&str>, built: &str, ran: &str) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (work, target) = (folder.join("work"), folder.join("work/built"));
    program(&folder.join("bin/cargo"));
    for profile in ["debug", "release", "own"] {
        program(&target.join(profile).join("perf"));
    }
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut script = Command::new(project.join("scripts/perf"));
    script.args(["run", "read.toml", "--out", "out1"]).current_dir(&work).env("PATH", &path);
    let given = given.replace("TARGET", target.to_str().unwrap());
    script.env("CARGO_TARGET_DIR", &given).env_remove("PERF_PROFILE");
    script.envs(profile.map(|name| ("PERF_PROFILE", name)));
    let said = script.output().unwrap();
    let words = "--package outcry --package outcry-perf --bins --target-dir";
    let expected = format!(
        "bin/cargo in {}: build --profile {built} {words} {}\n{ran}/perf in {}: --built {built} run read.toml --out out1\n",
        project.display(),
        target.display(),
        work.display()
    );
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected, "{given}, {profile:?}: {said:?}");
}

#[test]
fn paths_are_relative_to_where_they_are_typed() {
    for given in ["TARGET", "built", "../work/built"] {
        check(given, None, "release", "release");
    }
}

#[test]
fn the_rig_that_runs_is_the_one_that_was_built() {
    for (profile, folder) in
        [("release", "release"), ("bench", "release"), ("dev", "debug"), ("test", "debug"), ("own", "own")]
    {
        check("built", Some(profile), profile, folder);
    }
}
