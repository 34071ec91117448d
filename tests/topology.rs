//! `topology`, `check` and `tune` on recorded machines, as an operator sees them.
//!
//! Each folder below `tests/topology` is a machine. `files` lists the contents of its `/sys` and
//! `/proc`, a line `path = content` for each file; `{0-3}` in a path stands for four lines, and `{}`
//! or `{+16}` in the content for that number, or 16 more. The other files are the expected output of
//! the commands: they show anybody who changes a rule what that means for six machines.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;
#[path = "topology/refused.rs"]
mod refused;
#[path = "topology/tune.rs"]
mod tune;

use common::exchange::{Plan, outcry, outcry_succeeds, said, sample};
use common::folder;
use common::trader::{KEYS, Trader};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MACHINES: [&str; 6] = ["guest", "desktop", "server", "laptop", "container", "single"];

fn recorded(machine: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/topology").join(machine)
}

/// Writes the files of `machine` below `folder`.
fn unpack(machine: &str, folder: &Path) {
    let text = std::fs::read_to_string(recorded(machine).join("files")).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (path, content) = line.split_once(" =").unwrap();
        let content = content.strip_prefix(' ').unwrap_or(content);
        let content = content.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\");
        for (path, number) in paths(path) {
            let file = folder.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{}\n", filled(&content, number))).unwrap();
        }
    }
}

/// `a{0-2}b` is a0b, a1b and a2b, each with its number.
fn paths(path: &str) -> Vec<(String, usize)> {
    let Some((before, rest)) = path.split_once('{') else { return vec![(path.to_owned(), 0)] };
    let (range, after) = rest.split_once('}').unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let numbers = first.parse::<usize>().unwrap()..=last.parse().unwrap();
    numbers.map(|number| (format!("{before}{number}{after}"), number)).collect()
}

/// Replaces `{}` by `number`, `{+16}` by 16 more and `{-16}` by 16 less.
fn filled(content: &str, number: usize) -> String {
    let Some((before, rest)) = content.split_once('{') else { return content.to_owned() };
    let (step, after) = rest.split_once('}').unwrap();
    let number_here = number.checked_add_signed(if step.is_empty() { 0 } else { step.parse().unwrap() });
    format!("{before}{}{}", number_here.unwrap(), filled(after, number))
}

fn unpacked(machine: &str) -> (tempfile::TempDir, String) {
    let folder = folder();
    unpack(machine, folder.path());
    let path = folder.path().to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn every_recorded_machine_is_planned_checked_and_tuned_as_written() {
    let mut wrong = Vec::new();
    let came = Path::new(env!("CARGO_TARGET_TMPDIR")).join("topology-came");
    for machine in MACHINES {
        let (_folder, path) = unpacked(machine);
        for command in ["topology", "check", "tune"] {
            let printed = outcry_succeeds(&[command, "--machine", &path]);
            let expected = recorded(machine).join(command);
            if std::fs::read_to_string(&expected).unwrap_or_default() != printed {
                let copy = came.join(machine).join(command);
                std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
                std::fs::write(&copy, &printed).unwrap();
                wrong.push(format!(
                    "{}\n  is not what came: {}\n{printed}",
                    expected.display(),
                    copy.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the threads are: `shard0=2 shard1=3 reader=4 journal=5`, and how each loop waits.
fn places(machine: &str, settings: &str) -> String {
    let (_folder, path) = unpacked(machine);
    let mut words = vec!["topology", "--json", "--machine", &path];
    words.extend(settings.split_whitespace().flat_map(|setting| ["--set", setting]));
    let output = outcry(&words);
    if !output.status.success() {
        let fault = String::from_utf8(output.stderr).unwrap();
        return fault.trim().trim_start_matches("outcry: ").to_owned();
    }
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let place = |thread: &Value| {
        let name = thread["thread"].as_str().unwrap().trim_start_matches("outcry-");
        let cpu = thread["cpu"].as_u64().map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
        let wait = thread["wait"].as_str().unwrap();
        (name != "search, snapshots").then(|| format!("{name}={cpu} {wait}"))
    };
    let places: Vec<String> = json["threads"].as_array().unwrap().iter().filter_map(place).collect();
    places.join(", ")
}

/// Machine, settings, and where every thread is put or why that is refused.
const PLACES: &[(&str, &str, &str)] = &[
    ("guest", "", "shard0=0 park, reader=1 park, journal=any park"),
    ("guest", "cpu.policy=spread", "shard0=0 park, reader=1 park, journal=any park"),
    ("guest", "cpu.policy=pack", "shard0=0 park, reader=1 park, journal=any park"),
    ("guest", "cpu.policy=unpinned", "shard0=any park, reader=any park, journal=any park"),
    ("guest", "cpu.shards=2", "shard0=any park, shard1=any park, reader=any park, journal=any park"),
    ("guest", "cpu.policy=explicit cpu.shard_cpus=1", "shard0=1 park, reader=0 park, journal=any park"),
    (
        "guest",
        "cpu.policy=explicit cpu.shard_cpus=1 cpu.wait=spin",
        "shard0=1 spin, reader=0 park, journal=0 park",
    ),
    (
        "guest",
        "cpu.policy=explicit cpu.shard_cpus=1 cpu.wait=shard=spin,reader=spin",
        "cpu.wait: spin on 2 of 2 CPUs leaves none to the journal thread; use spin-then-park or park",
    ),
    (
        "guest",
        "cpu.policy=explicit",
        "cpu.policy: explicit, but no CPU is named; allowed: with cpu.shard_cpus, cpu.ingress, cpu.reader, \
        cpu.feed or cpu.journal, or another policy",
    ),
    ("guest", "cpu.policy=explicit cpu.shard_cpus=[\"1\"]", "shard0=1 park, reader=0 park, journal=any park"),
    (
        "guest",
        "cpu.policy=explicit cpu.shard_cpus=2",
        "cpu.shard_cpus: got \"2\"; allowed: the CPUs this process may use: [0, 1]",
    ),
    ("guest", "cpu.policy=fast", "cpu.policy: got \"fast\"; allowed: auto, spread, pack, explicit, unpinned"),
    ("guest", "cpu.reader=1", "cpu.reader: names CPUs, but cpu.policy is auto; say cpu.policy=explicit"),
    (
        "guest",
        "cpu.shard_cpus=1",
        "cpu.shard_cpus: names CPUs, but cpu.policy is auto; say cpu.policy=explicit",
    ),
    (
        "guest",
        "cpu.feed=1",
        "cpu.feed: names CPUs, but cpu.policy is auto; say cpu.policy=explicit, or cpu.feed=own",
    ),
    (
        "guest",
        "cpu.feed=apart",
        "cpu.feed: got \"apart\"; allowed: auto, own, or the CPUs this process may use: [0, 1]",
    ),
    (
        "guest",
        "cpu.reader=own",
        "cpu.reader: got \"own\"; allowed: auto, or the CPUs this process may use: [0, 1]",
    ),
    (
        "guest",
        "cpu.journal=own",
        "cpu.journal: got \"own\"; allowed: auto, or the CPUs this process may use: [0, 1]",
    ),
    ("guest", "cpu.shard_cpus=own", "cpu.shard_cpus: got \"own\"; allowed: CPUs, or ranges such as 2-5"),
    (
        "single",
        "cpu.policy=explicit cpu.reader=apart",
        "cpu.reader: got \"apart\"; allowed: auto, or the CPUs this process may use: [0]",
    ),
    ("guest", "cpu.feed=own", "shard0=any park, feed=any park, reader=any park, journal=any park"),
    (
        "guest",
        "cpu.policy=explicit cpu.shard_cpus=0 cpu.reader=1 cpu.feed=1",
        "shard0=0 park, reader=1 park, journal=any park",
    ),
    (
        "desktop",
        "cpu.policy=explicit cpu.shard_cpus=1 cpu.reader=2 cpu.feed=3",
        "shard0=1 spin-then-park, feed=3 spin-then-park, reader=2 park, journal=4 spin-then-park",
    ),
    (
        "guest",
        "cpu.wait=feed=park",
        "cpu.wait: feed shares the reader's loop and waits as it does; say reader=…",
    ),
    (
        "desktop",
        "",
        "shard0=1 spin-then-park, shard1=2 spin-then-park, shard2=3 spin-then-park, \
        shard3=4 spin-then-park, reader=5 park, journal=6 spin-then-park",
    ),
    (
        "desktop",
        "cpu.policy=spread cpu.wait=park",
        "shard0=8 park, shard1=1 park, shard2=9 park, shard3=2 park, reader=10 park, \
        journal=3 park",
    ),
    (
        "desktop",
        "cpu.policy=pack cpu.shards=8 cpu.wait=park",
        "shard0=1 park, shard1=2 park, shard2=3 park, shard3=4 park, shard4=5 park, shard5=6 park, \
        shard6=7 park, shard7=17 park, reader=18 park, journal=8 park",
    ),
    (
        "desktop",
        "cpu.policy=explicit cpu.shard_cpus=2-3,10 cpu.reader=11 cpu.journal=12 cpu.wait=shard=spin,reader=park",
        "shard0=2 spin, shard1=3 spin, shard2=10 spin, reader=11 park, \
        journal=12 spin-then-park",
    ),
    (
        "desktop",
        "cpu.policy=explicit cpu.shard_cpus=x",
        "cpu.shard_cpus: got \"x\"; allowed: CPUs, or ranges such as 2-5",
    ),
    (
        "server",
        "",
        "shard0=17 spin-then-park, shard1=18 spin-then-park, shard2=19 spin-then-park, \
        shard3=20 spin-then-park, reader=21 park, journal=22 spin-then-park",
    ),
    ("server", "cpu.shards=1", "shard0=17 spin-then-park, reader=18 park, journal=19 spin-then-park"),
    (
        "laptop",
        "",
        "shard0=0 spin-then-park, shard1=2 spin-then-park, shard2=4 spin-then-park, \
        shard3=6 spin-then-park, reader=9 park, journal=10 spin-then-park",
    ),
    ("container", "", "shard0=4 park, reader=5 park, journal=6 park"),
    ("container", "cpu.wait=spin", "shard0=4 spin, reader=5 park, journal=6 park"),
    (
        "desktop",
        "cpu.ingress=2 cpu.wait=park",
        "shard0=1 park, ingress0=2 park, ingress1=3 park, reader=4 park, journal=5 park",
    ),
    (
        "desktop",
        "cpu.policy=explicit cpu.shard_cpus=2 cpu.ingress=3-4 cpu.reader=5 cpu.wait=shard=spin,ingress=park",
        "shard0=2 spin, ingress0=3 park, ingress1=4 park, reader=5 park, \
        journal=1 spin-then-park",
    ),
    ("desktop", "cpu.ingress=11", "cpu.ingress: got 11 loops; allowed: up to 10"),
    ("desktop", "cpu.ingress=x", "cpu.ingress: got \"x\"; allowed: a number of loops up to 10"),
    (
        "desktop",
        "cpu.ingress=3,4",
        "cpu.ingress: names CPUs, but cpu.policy is auto; say how many loops, or cpu.policy=explicit",
    ),
    ("guest", "cpu.ingress=1", "shard0=any park, ingress0=any park, reader=any park, journal=any park"),
    ("single", "", "shard0=any park, journal=any park"),
    ("single", "cpu.shards=2", "shard0=any park, shard1=any park, reader=any park, journal=any park"),
];

#[test]
fn each_policy_puts_each_role_where_the_table_says() {
    let mut wrong = Vec::new();
    for (machine, settings, expected) in PLACES {
        let came = places(machine, settings);
        if came != *expected {
            wrong.push(format!("{machine}, {settings}:\n  expected {expected}\n  came     {came}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_plan_for_more_cpus_is_made_as_if_there_were_so_many() {
    let cores = |count: &str| {
        let json: Value =
            serde_json::from_str(&outcry_succeeds(&["topology", "--json", "--plan", count])).unwrap();
        (json["shards"].as_u64().unwrap(), json["threads"][0]["cpu"].as_u64())
    };
    assert_eq!(
        (cores("1"), cores("2"), cores("4"), cores("64")),
        ((1, None), (1, Some(0)), (1, Some(1)), (4, Some(1)))
    );
    let refused = outcry(&["topology", "--plan", "0"]);
    assert!(said(&refused).contains("--plan: got 0; allowed: 1 to 1024 CPUs"), "{}", said(&refused));
    let refused = outcry(&["topology", "--machine", "/nonexistent"]);
    assert!(!refused.status.success() && said(&refused).contains("--machine: /nonexistent has neither"));
    let (folder, path) = unpacked("single");
    for (cpus, count) in [("0-1024", 1_025), ("0-8191", 8_192)] {
        let status = format!("Cpus_allowed_list:\t{cpus}\n");
        std::fs::write(folder.path().join("proc/self/status"), status).unwrap();
        std::fs::write(folder.path().join("sys/devices/system/cpu/online"), format!("{cpus}\n")).unwrap();
        for command in ["topology", "check", "tune"] {
            let refused = outcry(&[command, "--machine", &path]);
            let told = format!("has {count} CPUs; allowed: up to 1024");
            assert!(!refused.status.success() && said(&refused).contains(&told), "{}", said(&refused));
        }
    }
}

#[test]
fn the_shards_that_a_plan_advises_are_planned_as_advised() {
    for count in ["5", "28", "32", "48", "64"] {
        let json: Value =
            serde_json::from_str(&outcry_succeeds(&["topology", "--json", "--plan", count])).unwrap();
        let mut advised = 0;
        for text in texts(&json).iter().filter(|text| text.contains("cpu.shards=")) {
            let settings = text.split([' ', ';', ',']);
            let settings = settings.filter(|word| {
                ["cpu.shards=", "journal.log_bytes="].iter().any(|name| word.starts_with(name))
            });
            let mut words = vec!["topology", "--plan", count];
            words.extend(settings.flat_map(|setting| ["--set", setting]));
            outcry_succeeds(&words);
            advised += 1;
        }
        assert!(advised != 0, "--plan {count}");
    }
}

/// Every text in `json`.
fn texts(json: &Value) -> Vec<&str> {
    match json {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn check_fails_when_the_exchange_could_not_start_and_says_why() {
    let folder = folder();
    let plan = Plan::serve(folder.path());
    let (exchange, data_dir) = (plan.start(), plan.data_dir());
    let taken = format!("127.0.0.1:{}", exchange.http);
    let here = ["check", "--admin-listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap()];
    let refused = outcry(&[&here[..], &["--listen", &taken]].concat());
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    let row = |text: &str, id: &str| text.lines().find(|line| line.starts_with(id)).unwrap().to_owned();
    let text = said(&refused);
    assert!(row(&text, "port.bind").contains(&taken) && row(&text, "port.bind").ends_with("no"), "{text}");
    assert!(row(&text, "data.lock").contains("is in use"), "{text}");
    assert!(text.contains("\n    mend: stop who uses it, or give another data_dir\n"), "{text}");
    assert!(text.contains("\n  1. the exchange cannot run: port.bind"), "{text}");
    exchange.stop();
    let free = outcry(&[&here[..], &["--listen", "127.0.0.1:0"]].concat());
    let text = said(&free);
    assert!(row(&text, "port.bind").ends_with("yes") && row(&text, "data.lock").ends_with("yes"), "{text}");

    // No file can be created there, whatever the permissions.
    let nowhere =
        ["check", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir", "/proc/x"];
    let refused = outcry(&nowhere);
    assert_eq!(refused.status.code(), Some(1));
    for id in ["io.free_space", "data.lock"] {
        assert!(row(&said(&refused), id).contains("not writable"), "{}", said(&refused));
    }
    assert!(said(&refused).contains("write there, or name another place\n"), "{}", said(&refused));

    let refused = outcry(&[&here[..], &["--set", "journal.durability=maybe"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(row(&said(&refused), "config.valid").contains("got \"maybe\"; allowed: durable, committed"));
    // Where the disk is looked for is part of the configuration.
    assert!(row(&said(&refused), "io.others").contains("waits for a valid configuration"));
}

#[test]
fn check_fails_where_a_start_would_refuse_the_journal() {
    let folder = folder();
    let plan = Plan::serve(folder.path());
    let (mut exchange, data_dir) = (plan.start(), plan.data_dir());
    exchange.kill();
    let log_path = format!("journal.log_path={}", folder.path().join("ring").display());
    let judged = |data_dir: &Path| -> String {
        let listen = ["check", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        let about = ["--set", &log_path, "--data-dir", data_dir.to_str().unwrap()];
        let output = outcry(&[&listen[..], &about].concat());
        let row = said(&output).lines().find(|line| line.starts_with("data.journal")).unwrap().to_owned();
        assert_eq!(output.status.success(), row.ends_with("yes"), "{row}");
        row
    };
    assert!(judged(&data_dir).ends_with("yes"));

    let copy = folder.path().join("copy");
    assert!(Command::new("cp").arg("-r").args([&data_dir, &copy]).status().unwrap().success());
    assert!(judged(&copy).contains("belongs to the data directory that was at"));
    let identity = data_dir.join("identity");
    let good = std::fs::read(&identity).unwrap();
    std::fs::write(&identity, "junk").unwrap();
    assert!(judged(&data_dir).contains("identity: not two lines"));
    std::fs::write(&identity, good).unwrap();
    // The one behind it is a spare, whose length says nothing.
    let segment = data_dir.join("journal/00000001.segment");
    std::fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(8_192).unwrap();
    assert!(judged(&data_dir).contains("it is 8192 bytes long"));
}

#[test]
fn a_copy_of_this_machine_is_judged_like_it() {
    let folder = folder();
    let copy = folder.path().join("copy");
    let copy = copy.to_str().unwrap();
    let words = ["--json", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let rows = |output: &Output| -> Vec<(String, String)> {
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let rows = json["conditions"].as_array().unwrap();
        rows.iter().map(|row| (text(row, "condition"), text(row, "current"))).collect()
    };
    let data_dir = folder.path().join("data");
    let here = [&["check", "--copy", copy, "--data-dir", data_dir.to_str().unwrap()], &words[..]].concat();
    let here = rows(&outcry(&here));
    let there = rows(&outcry(&[&["check", "--machine", copy], &words[..]].concat()));
    assert_eq!(here.len(), there.len());
    // Conditions that must be tried, or that change while the machine runs.
    let moves = ["cpu.steal", "mem.room"];
    for ((id, here), (_, there)) in here.iter().zip(&there) {
        let is_tried = there.contains("a copy cannot be tried") || there.contains("needs two looks");
        assert!(here == there || is_tried || moves.contains(&id.as_str()), "{id}: {here}, {there}");
    }
}

#[test]
fn what_fails_says_what_it_costs_and_every_warning_how_it_is_mended() {
    for machine in MACHINES {
        let (_folder, path) = unpacked(machine);
        let json: Value =
            serde_json::from_str(&outcry_succeeds(&["check", "--json", "--machine", &path])).unwrap();
        for row in json["conditions"].as_array().unwrap() {
            let is_wrong = row["passed"] == false && row["severity"] != "Info";
            assert!(row["remedy"].is_string() || !is_wrong, "{machine}: {row}");
            assert!(row["remedy"].is_null() || row["passed"] == false, "{machine}: {row}");
            // A failed condition says what it costs or what is missing, whether or not it can be
            // mended.
            assert_eq!(row["costs"].is_string(), row["passed"] == false, "{machine}: {row}");
        }
        let limits = json["limits"].as_array().unwrap();
        assert!(!limits.is_empty() && json["changes"].is_null(), "{machine}: one list");
        for limit in limits {
            // Only a limit that cannot be weighed has no cost.
            let is_weighed = !["fatal", "none"].contains(&limit["kind"].as_str().unwrap());
            assert_eq!(limit["cost_ns"].is_u64(), is_weighed, "{machine}: {limit}");
            let (limit, change) = (limit["text"].as_str().unwrap(), limit["change"].as_str().unwrap());
            assert!(!limit.starts_with("what limits") && limit.chars().count() < 160, "{limit}");
            // A limit has its amount, and its change says more than where to look.
            assert!(
                limit.bytes().any(|byte| byte.is_ascii_digit()) && 20 < change.len(),
                "{limit}: {change}"
            );
        }
    }
}

#[test]
fn a_control_groups_limits_count_where_they_can_be_reached() {
    let (folder, path) = unpacked("container");
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
    let told = |command: &str| -> Value {
        serde_json::from_slice(&outcry(&[command, "--json", "--machine", &path]).stdout).unwrap()
    };
    for (quota, stands_still) in [
        // As much as the three CPUs that are allowed.
        ("300000 100000", None),
        ("100000000 100000", None),
        ("1000000 1000000", Some("up to 1000 ms")),
        ("10000 5000", Some("up to 5 ms")),
    ] {
        write("sys/fs/cgroup/cpu.max", quota);
        let json = told("topology");
        let mut limits = json["limits"].as_array().unwrap().iter();
        let text = limits.find(|limit| limit["kind"] == "quota").map(|limit| limit["text"].as_str().unwrap());
        assert_eq!(text.is_some(), stands_still.is_some(), "{quota}: {json}");
        assert!(stands_still.is_none_or(|part| text.unwrap().ends_with(part)), "{quota}: {text:?}");
    }
    write("proc/meminfo", "MemTotal: 196608000 kB\nMemAvailable: 190000000 kB\nSwapTotal: 0 kB\n");
    for (limit, severity, current) in [
        ("1610612736", "Warning", "1536 MiB left to the control group (memory.max)"),
        ("536870912", "Fatal", "allowed: up to 512 MiB on this machine"),
    ] {
        write("sys/fs/cgroup/memory.max", limit);
        let json = told("check");
        let mut rows = json["conditions"].as_array().unwrap().iter();
        let row = rows.find(|row| row["condition"] == "mem.room").unwrap();
        assert!(row["severity"] == severity && row["passed"] == false, "{row}");
        assert!(row["current"].as_str().unwrap().ends_with(current), "{row}");
    }
}

#[test]
fn gaps_are_measured_on_every_cpu_when_asked_for() {
    let folder = folder();
    let data_dir = folder.path().join("data");
    let output = outcry(&[
        "check",
        "--json",
        "--jitter",
        "1",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().unwrap(),
    ]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let gaps = json["jitter"].as_array().unwrap();
    assert!(!gaps.is_empty());
    let valid = &json["valid_run"];
    assert!(
        valid["text"].as_str().unwrap().contains("VALID run of `scripts/perf` can be had here"),
        "{valid}"
    );
    assert_eq!(valid["can_be"].as_bool(), Some(valid["change"].is_null()), "{valid}");
    for gaps in gaps {
        let of = |name: &str| gaps[name].as_u64().unwrap();
        assert!(
            of("p50_ns") <= of("p99_ns") && of("p99_ns") <= of("p999_ns") && of("p999_ns") <= of("max_ns")
        );
    }
    assert!(!data_dir.exists(), "a check makes no data directory");
}

#[test]
fn serve_says_where_it_runs_what_an_answer_promises_and_what_it_found() {
    let folder = folder();
    for (durability, promise) in [("durable", "on the disk"), ("committed", "in shared memory")] {
        let plan = Plan::serve(folder.path()).set(&format!("journal.durability={durability}"));
        let exchange = plan.start();
        let text = exchange.output();
        for part in [
            "outcry: outcry-shard0: ",
            ": ingress, shard 0, registrar",
            &format!("outcry: durability {durability}: an order that was answered is {promise}"),
            "outcry: recovered from ",
            "state hash ",
            "outcry: serving on http://",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        exchange.stop();
    }
}

#[test]
fn trading_connections_are_dealt_out_to_the_loops_for_ingress_and_to_no_others() {
    let folder = folder();
    let plan = Plan::dev(folder.path()).set("cpu.policy=unpinned").set("cpu.shards=2").set("cpu.ingress=2");
    let exchange = plan.start();
    for key in [KEYS[1], KEYS[2]] {
        let mut connection = exchange.connect();
        let trader = Trader::new(key, &mut connection);
        connection.send(&trader.request("DELETE", "/cancel-all", "")).unwrap();
        assert_eq!(connection.answer().unwrap().status, 200);
    }
    let metrics = exchange.metrics();
    // The quotes of `dev`'s own markets are among them.
    for (name, trades) in
        [("shard0", false), ("shard1", false), ("ingress0", true), ("ingress1", true), ("reader", false)]
    {
        let count =
            sample(&metrics, &format!("outcry_requests_total{{loop=\"outcry-{name}\",kind=\"trading\"}}"));
        assert_eq!(0 < count, trades, "{name}\n{metrics}");
    }
    exchange.stop();
}
