//! Settings with which no start succeeds are fatal in the check as well, and leave nothing behind.

use crate::common::exchange::{binary, outcry, said};
use crate::common::folder;
use serde_json::Value;
use std::path::Path;

/// Serve's and check's complaint about the same settings, and whether the start left its log behind.
fn refusals(settings: &[&str], data_dir: &Path, log_path: &Path) -> (String, String, bool) {
    let log = format!("journal.log_path={}", log_path.display());
    let data_dir = data_dir.to_str().unwrap();
    let mut words = vec!["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir", data_dir];
    words.extend(["--set", &log]);
    words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let serve = outcry(&[&["serve"], &words[..]].concat());
    let check = outcry(&[&["check"], &words[..]].concat());
    assert_eq!((serve.status.success(), check.status.success()), (false, false), "{}", said(&serve));
    (said(&serve), said(&check), log_path.exists())
}

#[test]
fn what_a_start_refuses_is_fatal_in_the_check_and_leaves_no_log() {
    let (folder, linked) = (folder(), folder());
    let memory = tempfile::TempDir::with_prefix_in("outcry-topology-", "/dev/shm").unwrap();
    let row = |text: &str, id: &str| text.lines().find(|line| line.starts_with(id)).unwrap().to_owned();
    // Only its segments are in memory.
    std::fs::create_dir(linked.path().join("data")).unwrap();
    std::os::unix::fs::symlink(memory.path(), linked.path().join("data/journal")).unwrap();
    for (settings, folder, id, serve_says, check_says) in [
        (
            vec!["journal.durability=durable"],
            memory.path(),
            "io.journal_fs",
            "tmpfs",
            "tmpfs: durable is refused there",
        ),
        (
            vec!["journal.durability=durable"],
            linked.path(),
            "io.journal_fs",
            "data/journal is on tmpfs",
            "tmpfs: durable is refused there",
        ),
        (
            vec!["journal.durability=committed", "sizes.books_bytes=1000000000000"],
            folder.path(),
            "mem.room",
            "sizes.books_bytes of a shard: got 953674 MiB; allowed: up to",
            "sizes.books_bytes of a shard: got 953674 MiB",
        ),
        (
            vec!["journal.durability=committed", "sizes.digests=4294967294"],
            folder.path(),
            "mem.room",
            "sizes.digests: asks for ",
            "MiB; allowed: up to",
        ),
        (
            vec!["journal.durability=committed", "sizes.wallets=4294967295"],
            folder.path(),
            "config.valid",
            "sizes.wallets: got 4294967295; allowed: 16 to 1073741824",
            "sizes.wallets: got 4294967295; allowed: 16 to 1073741824",
        ),
        (
            vec!["journal.durability=committed", "journal.log_path=/dev/null"],
            folder.path(),
            "data.lock",
            "/dev/null",
            "journal.log_path: /dev/null is a device",
        ),
        (
            vec!["journal.durability=committed", "journal.log_bytes=1099511627776"],
            folder.path(),
            "mem.log",
            "journal.log_bytes: got 1099511627776; allowed: up to ",
            "MiB free in",
        ),
    ] {
        // In memory there is less room than the largest log takes, whatever the disk has.
        let (serve, check, is_left) = refusals(&settings, &folder.join("data"), &memory.path().join("log"));
        let row = row(&check, id);
        assert!(serve.contains(serve_says), "{serve}");
        assert!(row.contains(check_says) && row.contains("Fatal") && row.ends_with("no"), "{row}");
        assert!(!is_left, "{id}: the start left its log");
    }
}

#[test]
fn too_little_memory_for_one_process_is_refused_before_anything_is_made() {
    let folder = folder();
    let data_dir = folder.path().join("data");
    for flag in ["-v", "-d"] {
        for command in ["serve", "check"] {
            // In KiB: enough to look, and not enough for what the sizes say.
            let limited = format!("ulimit {flag} 400000; exec \"$@\"");
            let output = std::process::Command::new("sh")
                .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_outcry"), command, "--data-dir"])
                .arg(&data_dir)
                .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
                .args(["--set", "journal.durability=committed"])
                .output()
                .unwrap();
            let text = said(&output);
            assert!(
                !output.status.success() && text.contains("memory when books and tables are full: got "),
                "{text}"
            );
            assert!(text.contains(&format!("MiB; allowed: up to 390 MiB (ulimit {flag})")), "{text}");
            assert!(!data_dir.join("journal").exists(), "{command}");
        }
    }
}

#[test]
fn a_refusal_says_its_rule_and_the_reason_that_goes_with_its_cause() {
    let folder = folder();
    let (plain, devs) = (folder.path().join("data"), folder.path().join("devs"));
    std::fs::create_dir(&devs).unwrap();
    std::fs::write(devs.join("made-by-dev"), "").unwrap();
    let cannot = "not writable: /proc: ";
    for (token, data_dir, id, fault, why) in [
        (
            "short",
            plain.as_path(),
            "data.secret",
            "OUTCRY_ADMIN_TOKEN: got 5 characters; allowed: at least 16",
            "the operator's token opens all that the operator may do",
        ),
        (
            "0123456789abcdef\n0",
            &plain,
            "data.secret",
            "OUTCRY_ADMIN_TOKEN: got 2 lines; allowed: one",
            "the operator's token opens all",
        ),
        ("", &devs, "data.secret", "was made by `outcry dev`", "who knows an account's key can trade"),
        ("", Path::new("/proc/x"), "data.lock", cannot, "what clients were told has to be written down"),
    ] {
        let mut check = binary();
        check.args(["check", "--json", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        let checked =
            check.arg("--data-dir").arg(data_dir).env("OUTCRY_ADMIN_TOKEN", token).output().unwrap();
        let json: Value = serde_json::from_slice(&checked.stdout).unwrap();
        let row = json["conditions"].as_array().unwrap().iter().find(|row| row["condition"] == id).unwrap();
        let is_said = |key: &str, words: &str| row[key].as_str().is_some_and(|text| text.contains(words));
        assert!(is_said("current", fault) && is_said("why", why), "{row}");
        assert_eq!(row["passed"], false, "{row}");
    }
}
