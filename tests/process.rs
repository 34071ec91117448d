//! The binary as a process: it stops when asked, and never shares what must be its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Plan, binary, journal, outcry, outcry_succeeds, said};
use common::folder;
use common::wire::Connection;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_graceful_stop_ends_with_success_and_a_closing_mark() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    plan.start().stop();
    let verified = journal("verify", &plan.data_dir());
    assert!(verified.contains("stopped in good order"), "{verified}");
}

#[test]
fn a_stopped_exchange_starts_again_where_it_was() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    plan.start().stop();
    let hash = |text: &str| text.lines().find(|line| line.starts_with("state hash ")).unwrap().to_owned();
    let first = hash(&journal("verify", &plan.data_dir()));
    plan.start().stop();
    assert_eq!(hash(&journal("verify", &plan.data_dir())), first);
}

#[test]
fn a_start_on_a_disk_that_is_nearly_full_is_refused_before_it_makes_anything() {
    for plan in [Plan::dev, Plan::serve] {
        let folder = folder();
        let plan = plan(folder.path()).set("journal.disk_free_min=1125899906842624");
        let refused = plan.run();
        let text = said(&refused);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(text.contains("needed for a start: 562949953421312, half of it"), "{text}");
        assert!(!plan.data_dir().exists(), "{text}");
    }
}

/// Somebody moved the directory away, or its disk is not mounted.
#[test]
fn a_configuration_whose_exchange_is_not_there_begins_no_empty_one() {
    let folder = folder();
    let (data_dir, config) = (folder.path().join("data"), folder.path().join("outcry.toml"));
    let here = ["--config", config.to_str().unwrap(), "--data-dir", data_dir.to_str().unwrap()];
    let plan = Plan::serve(folder.path());
    let configured = plan.clone().words(["--config", here[1]]);
    outcry_succeeds(&[&["init"], &here[..]].concat());
    let first = configured.start();
    assert!(!first.output().contains("began a new exchange"), "{}", first.output());
    first.stop();
    std::fs::rename(&data_dir, folder.path().join("elsewhere")).unwrap();
    let refused = configured.run();
    let text = said(&refused);
    assert!(!refused.status.success() && text.contains("has no exchange, neither a master secret"), "{text}");
    assert!(!data_dir.exists(), "{text}");
    let checked = outcry(&["check", "--config", here[1]]);
    let text = said(&checked);
    assert!(!checked.status.success(), "{text}");
    assert!(
        text.contains("data_dir: ") && text.contains("has no exchange, neither a master secret"),
        "{text}"
    );
    // Without a configuration nothing says that there should be one.
    let new = plan.start();
    assert!(new.output().contains("began a new exchange in"), "{}", new.output());
    new.stop();
}

#[test]
fn a_second_instance_on_the_same_data_directory_is_refused_by_name() {
    let (folder, other) = (folder(), folder());
    let plan = Plan::dev(folder.path());
    let exchange = plan.start();
    let data_dir = plan.data_dir();
    let second = Plan::dev(other.path()).flag("--data-dir", data_dir.to_str().unwrap()).run();
    assert!(!second.status.success(), "it started");
    assert!(said(&second).contains(data_dir.to_str().unwrap()), "{}", said(&second));
    assert!(exchange.connect().read("/time").is_u64(), "the first one runs on");
    exchange.stop();
}

#[test]
fn a_second_instance_on_the_same_port_is_refused_by_name() {
    let (folder, other) = (folder(), folder());
    let exchange = Plan::dev(folder.path()).start();
    let address = format!("127.0.0.1:{}", exchange.http);
    let second = Plan::dev(other.path()).flag("--listen", &address).run();
    assert!(!second.status.success(), "it started");
    assert!(said(&second).contains(&address), "{}", said(&second));
    exchange.stop();
}

#[test]
fn what_a_start_cannot_have_is_refused_before_it_makes_anything() {
    let folder = folder();
    let exchange = Plan::serve(&folder.path().join("other")).start();
    let taken = format!("127.0.0.1:{}", exchange.http);
    let nowhere = folder.path().join("nowhere/ports");
    let (free, nowhere) = ("127.0.0.1:0", nowhere.to_str().unwrap());
    let data_dir = folder.path().join("data");
    for (listen, admin, ports_file, said) in [
        (taken.as_str(), free, None, format!("listen.http: {taken} is taken by another process")),
        (free, taken.as_str(), None, format!("listen.admin: {taken} is taken by another process")),
        (free, free, Some(nowhere), format!("--ports-file: {nowhere}: No such file")),
        (free, free, folder.path().to_str(), "is a folder; allowed: a file".to_owned()),
        (free, free, Some("/dev/null"), "--ports-file: /dev/null is a device".to_owned()),
    ] {
        for words in [&["dev", "--fresh"][..], &["serve"]] {
            let mut command = binary();
            command.args(words).args(["--listen", listen, "--admin-listen", admin, "--data-dir"]);
            command.arg(&data_dir).args(ports_file.into_iter().flat_map(|path| ["--ports-file", path]));
            let refused = command.output().unwrap();
            let text = self::said(&refused);
            assert!(!refused.status.success() && text.contains(&said), "{words:?} {text}");
            assert!(!text.contains("recovered from"), "it went through a start: {text}");
            assert!(!data_dir.exists(), "{words:?} {text}");
        }
    }
    exchange.stop();
}

#[test]
fn a_fresh_start_that_is_refused_has_wiped_nothing() {
    let folder = folder();
    let other = Plan::serve(&folder.path().join("other")).set("journal.durability=committed");
    other.start().kill();
    let others_log = folder.path().join("other/ring");
    let frames = std::fs::read(&others_log).unwrap();
    let memory = tempfile::TempDir::with_prefix_in("outcry-process-", "/dev/shm").unwrap();
    let (on_disk, in_memory) = (Plan::dev(folder.path()), Plan::dev(memory.path()));
    on_disk.start().stop();
    in_memory.clone().set("journal.durability=committed").start().stop();
    let at = |path: &str| format!("journal.log_path={}", folder.path().join(path).display());
    let durable = "journal.durability=durable".to_owned();
    for (plan, setting, said) in [
        (&on_disk, "sizes.resting_orders=4000000000".to_owned(), "sizes.resting_orders: asks for"),
        (&on_disk, at("nofolder/log"), "there is no folder"),
        (&on_disk, at("data"), "is a folder; allowed: a file"),
        (
            &on_disk,
            "journal.log_path=/dev/null".to_owned(),
            "/dev/null is a device, a pipe or a socket; allowed",
        ),
        (&on_disk, at("other/ring"), "other/ring, which is not the log of"),
        (&in_memory, durable, "is on tmpfs and ends with the machine"),
    ] {
        let verified = journal("verify", &plan.data_dir());
        let refused = plan.clone().words(["--fresh"]).set(&setting).run();
        assert!(!refused.status.success() && self::said(&refused).contains(said), "{}", self::said(&refused));
        assert_eq!(journal("verify", &plan.data_dir()), verified, "{setting}");
    }
    assert!(std::fs::read(&others_log).unwrap() == frames, "the other exchange's log was changed");
}

#[test]
fn a_data_directory_that_is_said_is_the_one_that_dev_takes_whatever_its_name() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("outcry-data")).unwrap();
    std::fs::write(at("outcry-data/letter"), "").unwrap();
    std::fs::write(at("config"), "data_dir = \"outcry-data\"\n").unwrap();
    for (words, variable) in [
        (&["--data-dir", "outcry-data"][..], "OTHER"),
        (&["--set", "data_dir=outcry-data"], "OTHER"),
        (&["--config", "config"], "OTHER"),
        (&[], "OUTCRY_DATA_DIR"),
    ] {
        let mut command = binary();
        command.current_dir(folder.path()).env("XDG_DATA_HOME", at("home")).env(variable, "outcry-data");
        // Whatever directory it takes, it does not start.
        let refused = command.args(["dev", "--ports-file", "/dev/null"]).args(words).output().unwrap();
        let text = said(&refused);
        assert!(text.contains("data_dir: outcry-data was not made by `outcry dev`"), "{words:?} {text}");
    }
}

#[test]
fn dev_with_its_flow_takes_one_connection_of_two() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).flag("--flow", "200").set("sizes.connections=2").start();
    let placed = || exchange.metric("outcry_claimed_position");
    let (before, deadline) = (placed(), Instant::now() + Duration::from_mins(1));
    while placed() == before {
        assert!(Instant::now() < deadline, "{}", exchange.output());
    }
    exchange.stop();
}

#[test]
fn a_terminal_that_closes_ends_it_in_good_order() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    plan.start().stop_by(rustix::process::Signal::HUP);
    assert!(journal("verify", &plan.data_dir()).contains("stopped in good order"));
}

/// Lets a connection in that there is no room for, which is warned of; then the exchange still has to answer.
fn warns_and_goes_on(exchange: &common::exchange::Exchange) {
    let mut inside = [(); 2].map(|()| exchange.connect());
    assert!(inside.iter_mut().all(|connection| connection.read("/time").is_u64()));
    let third =
        Connection::try_open(exchange.http).and_then(|mut third| third.request("GET", "/time", "", b""));
    assert!(third.is_err(), "there was room for it");
    assert!(inside.iter_mut().all(|connection| connection.read("/time").is_u64()));
}

#[test]
fn a_standard_error_that_is_closed_or_full_or_read_by_nobody_holds_nothing_up() {
    let settled = |stderr: Stdio, when_ready: &mut dyn FnMut()| {
        let folder = folder();
        let plan = Plan::serve(folder.path()).set("cpu.shards=1").set("sizes.connections=2");
        let exchange = plan.start_saying_to(stderr);
        when_ready();
        warns_and_goes_on(&exchange);
        exchange.stop();
        assert!(journal("verify", &plan.data_dir()).contains("stopped in good order"));
    };
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    settled(full.into(), &mut || ());

    let (reader, writer) = std::io::pipe().unwrap();
    let mut reader = Some(reader);
    settled(writer.into(), &mut || drop(reader.take()));

    let (_reader, mut writer) = std::io::pipe().unwrap();
    let stderr = writer.try_clone().unwrap();
    settled(stderr.into(), &mut || {
        // Filled to the last byte; the mode is the pipe's, so it has to wait again afterwards.
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        while writer.write(b".").is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).unwrap();
    });
}

#[test]
fn without_descriptors_nobody_is_let_in_and_who_waits_is_once_there_are_some_again() {
    const WARNING: &str = "no client can be let in";
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut inside = exchange.connect();
    assert!(inside.read("/time").is_u64());
    // Those of the standard streams, which are taken.
    let before = exchange.limit_descriptors(Some(3));
    let mut waiting = exchange.connect();
    let deadline = Instant::now() + Duration::from_mins(1);
    // Both listeners, so that the loop sleeps.
    while !exchange.output().contains(WARNING) || exchange.unwatched() != 2 {
        assert!(inside.read("/time").is_u64() && Instant::now() < deadline, "{}", exchange.output());
    }
    exchange.limit_descriptors(before);
    assert!(waiting.read("/time").is_u64());
    while exchange.unwatched() != 0 {
        assert!(Instant::now() < deadline, "a listener is still left alone");
    }
    assert_eq!(exchange.output().matches(WARNING).count(), 1, "it is said once a minute");
    exchange.stop();
}

#[test]
fn a_command_whose_output_finds_no_room_fails_and_one_whose_reader_left_does_not() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    plan.start().stop();
    let data_dir = plan.data_dir();
    let data_dir = data_dir.to_str().unwrap();
    for words in [
        &["errors"][..],
        &["version"],
        &["config", "print"],
        &["tune", "--undo"],
        &["journal", "verify", "--data-dir", data_dir],
        &["journal", "replay", "--data-dir", data_dir],
        &["journal", "dump", "--data-dir", data_dir],
    ] {
        let to = |stdout: Stdio| {
            binary()
                .args(words)
                .stdout(stdout)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
                .wait_with_output()
                .unwrap()
        };
        let full = to(OpenOptions::new().write(true).open("/dev/full").unwrap().into());
        let text = String::from_utf8(full.stderr).unwrap();
        assert_eq!(full.status.code(), Some(1), "{words:?} {text}");
        assert!(text.contains("outcry: standard output: No space left on device"), "{words:?} {text}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let left = to(writer.into());
        assert!(left.status.success(), "{words:?} {}", said(&left));
    }
}

#[test]
fn only_variables_of_its_own_can_stop_it() {
    for (name, value, refused) in [
        ("LANG", &b"\xff"[..], None),
        ("OUTCRY_DATA_DIR", b"data", None),
        ("OUTCRY_CONFIG", b"", Some("--config, or OUTCRY_CONFIG: got nothing; allowed: a file")),
        ("OUTCRY_DATA_DIR", b"\xff", Some("OUTCRY_DATA_DIR: got \u{fffd}; allowed: UTF-8")),
        ("OUTCRY_LOG", b"debug", None),
        ("OUTCRY_LOG", b"warning", Some("OUTCRY_LOG: got warning; allowed: error, warn, info, debug, trace")),
        (
            "OUTCRY_JOURNAL_DURABILITY",
            b"banana",
            Some(
                "OUTCRY_JOURNAL_DURABILITY: journal.durability: got \"banana\"; allowed: durable, committed",
            ),
        ),
    ] {
        let ended = binary().args(["config", "print"]).env(name, OsStr::from_bytes(value)).output().unwrap();
        assert_eq!(ended.status.success(), refused.is_none(), "{name} {}", said(&ended));
        assert_eq!(ended.stdout.is_empty(), refused.is_some(), "{name}");
        assert!(refused.is_none_or(|refused| said(&ended).contains(refused)), "{name} {}", said(&ended));
    }
}
