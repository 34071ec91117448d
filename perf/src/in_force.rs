//! The options with which a server was measured: those that differ from its defaults, and what its answers wait for.
//!
//! The server itself is asked, by `config print`, because options come from the environment as well as from the rig.

use std::path::Path;
use std::process::{Command, Stdio};

use toml::{Table, Value};

/// Recorded whether or not it differs: no figure means anything without it.
const ALWAYS: &str = "journal.durability";

/// Where its files and listeners are: the rig's folders and ports, which no figure depends on.
const PLACES: [&str; 4] = ["data_dir", "journal.log_path", "listen.http", "listen.admin"];

/// The options of `server` under `settings`, as `key=value`; `settings` themselves if it cannot say.
pub(crate) fn of(server: &Path, settings: &[String]) -> Vec<String> {
    let in_force = printed(server, settings, true);
    let default = printed(server, &[], false);
    in_force
        .zip(default)
        .map_or_else(|| settings.to_vec(), |(in_force, default)| differing(&in_force, &default))
}

/// The configuration that the server prints, with or without the environment's part.
fn printed(server: &Path, settings: &[String], with_environment: bool) -> Option<Table> {
    let mut command = Command::new(server);
    command.args(["config", "print"]).stderr(Stdio::null());
    for setting in settings {
        command.args(["--set", setting]);
    }
    if !with_environment {
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|name| name.to_string_lossy().starts_with("OUTCRY_")) {
            command.env_remove(name);
        }
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.parse().ok()
}

/// The entries of `in_force` that `default` does not have so, in alphabetical order.
fn differing(in_force: &Table, default: &Table) -> Vec<String> {
    let default = flat(default);
    let is_told = |(key, value): &(String, String)| {
        let differs = default.iter().all(|(other, same)| other != key || same != value);
        key == ALWAYS || differs && !PLACES.contains(&key.as_str())
    };
    let told = flat(in_force).into_iter().filter(is_told);
    told.map(|(key, value)| format!("{key}={value}")).collect()
}

/// Every key with its value as a flag takes it.
fn flat(table: &Table) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => {
                all.extend(inner.iter().map(|(key, value)| (format!("{name}.{key}"), text(value))));
            }
            value => all.push((name.clone(), text(value))),
        }
    }
    all
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str = "chain_id = 80002\ndata_dir = \"x\"\n[cpu]\nshards = 0\nshard_cpus = []\n\
                           [journal]\ndurability = \"durable\"\nlog_path = \"\"\n";

    #[test]
    fn what_differs_is_told_as_flags_have_it_and_durability_always() {
        for (from, to, told) in [
            ("", "", vec!["journal.durability=durable"]),
            ("\"durable\"", "\"committed\"", vec!["journal.durability=committed"]),
            ("shards = 0", "shards = 2", vec!["cpu.shards=2", "journal.durability=durable"]),
            (
                "cpus = []",
                "cpus = [\"0\", \"2-3\"]",
                vec!["cpu.shard_cpus=0,2-3", "journal.durability=durable"],
            ),
            ("80002", "137", vec!["chain_id=137", "journal.durability=durable"]),
            // A key that the default does not have.
            ("shards = 0", "shards = 0\nnew = true", vec!["cpu.new=true", "journal.durability=durable"]),
            // Where the rig keeps its files is never recorded.
            ("\"x\"", "\"y\"", vec!["journal.durability=durable"]),
            ("log_path = \"\"", "log_path = \"/a/b\"", vec!["journal.durability=durable"]),
        ] {
            let in_force = DEFAULT.replacen(from, to, 1).parse().unwrap();
            assert_eq!(differing(&in_force, &DEFAULT.parse().unwrap()), told, "{to}");
        }
    }

    #[test]
    fn of_a_server_that_cannot_say_it_is_what_was_set() {
        let set = ["cpu.wait=spin".to_owned()];
        assert_eq!(of(Path::new("/nonexistent"), &set), set);
    }
}
