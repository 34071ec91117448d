//! What `init` writes, and what it leaves behind where it fails.

use crate::common::exchange::{binary, outcry, outcry_succeeds};
use crate::common::folder;
use std::path::Path;

#[test]
fn init_writes_a_configuration_once_and_config_print_shows_what_is_in_force() {
    let folder = folder();
    let config = folder.path().join("outcry.toml");
    let data_dir = folder.path().join("data");
    let (config, data_dir) = (config.to_str().unwrap(), data_dir.to_str().unwrap());
    outcry_succeeds(&["init", "--config", config, "--data-dir", data_dir]);
    let again = outcry(&["init", "--config", config]);
    assert!(String::from_utf8(again.stderr).unwrap().contains("is there already"));
    outcry_succeeds(&[
        "check",
        "--config",
        config,
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ]);
    let printed = outcry_succeeds(&["config", "print", "--config", config, "--set", "fees.rate=7"]);
    assert!(
        printed.contains(&format!("data_dir = \"{data_dir}\"")) && printed.contains("rate = 7"),
        "{printed}"
    );

    let elsewhere = folder.path().join("elsewhere");
    let other = folder.path().join("other.toml");
    let made = binary()
        .args(["init", "--config", other.to_str().unwrap()])
        .env("OUTCRY_DATA_DIR", &elsewhere)
        .output()
        .unwrap();
    assert!(made.status.success() && elsewhere.join("master-secret").is_file());
    assert!(std::fs::read_to_string(other).unwrap().contains(&format!("data_dir = {elsewhere:?}")));

    std::fs::write(config, "[fees]\nrates = 7\n").unwrap();
    let unknown = outcry(&["config", "print", "--config", config]);
    let text = String::from_utf8(unknown.stderr).unwrap();
    assert!(text.contains("fees.rates: no such setting; did you mean fees.rate?"), "{text}");
    assert!(outcry_succeeds(&["version"]).starts_with("outcry "));
}

#[test]
fn the_configuration_that_init_writes_means_the_same_from_every_folder() {
    let (folder, elsewhere) = (folder(), folder());
    let run = |at: &Path, words: &[&str]| {
        let output = binary().current_dir(at).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let here = folder.path().canonicalize().unwrap();
    for (words, data_dir) in [
        (&["init"][..], "outcry-data"),
        (&["init", "--config", "b.toml", "--data-dir", "./sub/data"], "sub/data"),
    ] {
        run(&here, words);
        let config = here.join(words.get(2).unwrap_or(&"outcry.toml"));
        let printed = run(elsewhere.path(), &["config", "print", "--config", config.to_str().unwrap()]);
        let line = format!("data_dir = \"{}\"", here.join(data_dir).display());
        assert!(printed.contains(&line) && here.join(data_dir).join("master-secret").is_file(), "{printed}");
    }
}

#[test]
fn an_init_that_fails_for_its_data_directory_can_be_repeated() {
    let folder = folder();
    let (config, file) = (folder.path().join("outcry.toml"), folder.path().join("file"));
    std::fs::write(&file, "").unwrap();
    let at = |data_dir: &str| {
        let data_dir = folder.path().join(data_dir);
        outcry(&["init", "--config", config.to_str().unwrap(), "--data-dir", data_dir.to_str().unwrap()])
    };
    for _ in 0..2 {
        let refused = at("file");
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains("is a file; allowed: a folder"), "{text}");
        assert!(!config.exists());
    }
    assert!(at("data").status.success() && config.is_file());
}

#[test]
fn init_refuses_what_serve_would_refuse_and_makes_nothing() {
    for (name, value, said) in [
        ("OUTCRY_DATA_DIR", "", "OUTCRY_DATA_DIR: data_dir: got nothing; allowed: a folder"),
        ("OUTCRY_CPU_POLICY", "nonsense", "OUTCRY_CPU_POLICY: cpu.policy: got \"nonsense\"; allowed: auto"),
        ("OUTCRY_LISTEN_ADMIN", "0.0.0.0:1", "listen.admin: got 0.0.0.0:1; allowed: a loopback address"),
    ] {
        let folder = folder();
        let refused = binary().current_dir(folder.path()).arg("init").env(name, value).output().unwrap();
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains(said), "{name} {text}");
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "{name} left something");
    }
}
