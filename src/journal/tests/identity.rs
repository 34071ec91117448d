//! Whose a directory and a log file are.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::disk::{Disk, in_memory};
use super::super::identity::Identity;
use super::super::log::LOG_HEADER_BYTES;
use super::super::logfile::LogFile;
use super::super::open::{Claimed, Durability, Options, log_bytes_min, open_from, open_on, refuse_memory};
use super::super::{Fault, has_first_segment, log_is_of, refusal, segment, was_begun};
use super::{BOOT, Home, KIND, SHARDS, copy, payload, payloads, start, wait_durable};
use crate::domain::TimeMs;

/// A home with one durable frame and one that only its log file has.
fn died() -> Home {
    let (home, log) = Home::abandoned();
    log.append(KIND, &payload(2));
    home
}

#[test]
fn a_second_process_on_a_data_directory_is_refused_by_name() {
    let home = Home::new();
    let started = home.start();
    let error = home.open().unwrap_err();
    assert!(matches!(&error, Fault::DataDirInUse(path) if *path == home.data.path().canonicalize().unwrap()));
    assert!(error.to_string().contains("in use by another process"));
    started.writer.stop(TimeMs(2)).unwrap();
    assert!(matches!(home.open(), Err(Fault::DataDirInUse(_))), "the log still lives");
    drop(started.log);
    assert!(home.open().is_ok());
}

#[test]
fn a_second_process_on_a_log_file_is_refused_by_name() {
    let (first, second) = (Home::new(), Home::new());
    let log_path = first.memory.path().join("the-log");
    let options = |home: &Home| Options { log_path: Some(log_path.clone()), ..home.options() };
    let started = start(open_on(options(&first), Disk::default(), BOOT).unwrap());
    let refused = open_on(options(&second), Disk::default(), BOOT);
    assert!(matches!(refused, Err(Fault::LogInUse(path)) if path == log_path));
    started.writer.abandon().unwrap();
    drop(started.log);
    let refused = open_on(options(&second), Disk::default(), BOOT);
    assert!(matches!(refused, Err(Fault::Foreign { path, .. }) if path == log_path));
}

#[test]
fn a_clean_stop_leaves_no_log_behind_and_the_next_start_misses_nothing() {
    let home = Home::new();
    let started = home.start();
    started.log.append(KIND, &payload(1));
    started.writer.stop(TimeMs(2)).unwrap();
    assert!(std::fs::read_dir(home.memory.path()).unwrap().next().is_none());
    drop(started.log);
    assert_eq!(home.payloads(), [payload(1)]);
}

#[test]
fn a_copied_directory_must_say_what_it_is() {
    let home = died();
    let copied = Home { memory: tempfile::tempdir_in(home.memory.path()).unwrap(), ..Home::new() };
    copy(home.data.path(), copied.data.path());
    let options =
        |claimed| Options { shared_memory: home.memory.path().to_path_buf(), claimed, ..copied.options() };
    let open = |claimed| open_on(options(claimed), Disk::default(), BOOT);
    let error = open(Claimed::AsItIs).unwrap_err();
    assert!(matches!(error, Fault::LogOfOtherDirectory { .. }));
    let text = error.to_string();
    for words in ["--adopt-log", "--new-identity", home.data.path().file_name().unwrap().to_str().unwrap()] {
        assert!(text.contains(words), "{text}");
    }

    // As a copy it goes on from the segments, and the original keeps its log.
    let opened = open(Claimed::NewIdentity).unwrap();
    assert_eq!(payloads(&opened)[0], payload(1));
    start(opened).writer.stop(TimeMs(2)).unwrap();
    assert!(open(Claimed::AsItIs).is_ok());
    assert_eq!(home.payloads(), [payload(1), payload(2)]);
}

fn identity_of(home: &Home) -> Option<String> {
    std::fs::read_to_string(home.data.path().join("identity")).ok()
}

/// Names in the place for log files.
fn logs(home: &Home) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(home.memory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_new_identity_that_is_refused_was_never_given() {
    let home = died();
    let (log_path, before) = (home.log_path(), identity_of(&home));
    let options = |claimed| Options { log_path: Some(log_path.clone()), claimed, ..home.options() };
    let open = |claimed| open_on(options(claimed), Disk::default(), BOOT);
    let refused = open(Claimed::NewIdentity);
    assert!(matches!(refused, Err(Fault::Foreign { path, .. }) if path == log_path));
    assert_eq!(identity_of(&home), before);
    assert_eq!(payloads(&open(Claimed::AdoptLog).unwrap()), [payload(1), payload(2)]);
    assert_eq!(payloads(&open(Claimed::AsItIs).unwrap()), [payload(1), payload(2)]);
}

/// A copy of a home with the log of its original beside it.
fn copied(home: &Home) -> Home {
    let copied = Home::new();
    copy(home.data.path(), copied.data.path());
    copy(home.memory.path(), copied.memory.path());
    copied
}

#[test]
fn a_new_identity_is_given_by_a_start_that_is_carried_through() {
    let home = copied(&died());
    let (before, logs_before) = (identity_of(&home), logs(&home));
    let claimed = Options { claimed: Claimed::NewIdentity, ..home.options() };
    drop(open_on(claimed.clone(), Disk::default(), BOOT).unwrap());
    let small = Options { log_bytes: log_bytes_min(SHARDS) - 4_096, ..claimed.clone() };
    let opened = open_on(small, Disk::default(), BOOT).unwrap();
    opened.start(TimeMs(1), SHARDS, Box::new(|_| {})).unwrap_err();
    assert_eq!((identity_of(&home), logs(&home)), (before.clone(), logs_before.clone()));
    assert!(matches!(home.open(), Err(Fault::LogOfOtherDirectory { .. })));

    start(open_on(claimed, Disk::default(), BOOT).unwrap()).writer.stop(TimeMs(2)).unwrap();
    assert_ne!(identity_of(&home), before);
    assert_eq!((home.payloads(), logs(&home)), (vec![payload(1)], logs_before), "the original's stays");
}

#[test]
fn a_new_identity_is_refused_where_it_would_lose_what_only_the_log_has() {
    let home = died();
    let (before, logs_before) = (identity_of(&home), logs(&home));
    let claimed = Options { claimed: Claimed::NewIdentity, ..home.options() };
    let fault = open_on(claimed.clone(), Disk::default(), BOOT).unwrap_err();
    assert!(matches!(&fault, Fault::NoCopy { log, .. } if *log == home.log_path()), "{fault}");
    let said = fault.to_string();
    assert!(said.contains("is no copy") && said.contains("start without --new-identity"), "{said}");
    assert_eq!((identity_of(&home), logs(&home)), (before, logs_before));
    assert_eq!(home.payloads(), [payload(1), payload(2)]);
    // Given to a copy once and left in its unit file, it is refused after a crash as well, and harmless after a stop.
    let copied = copied(&home);
    let claimed = Options { claimed: Claimed::NewIdentity, ..copied.options() };
    let again = || open_on(claimed.clone(), Disk::default(), BOOT);
    let started = start(again().unwrap());
    let span = started.log.append(KIND, &payload(3));
    wait_durable(&started.log, span.end);
    started.writer.abandon().unwrap();
    started.log.append(KIND, &payload(4));
    drop(started.log);
    assert!(matches!(again(), Err(Fault::NoCopy { .. })));
    start(copied.open().unwrap()).writer.stop(TimeMs(2)).unwrap();
    assert_eq!(payloads(&again().unwrap()), [1, 2, 3, 4].map(payload));
}

#[test]
fn a_new_identity_again_is_refused_after_a_crash_though_segments_have_it_all() {
    let home = died();
    let copied = copied(&home);
    let claimed = Options { claimed: Claimed::NewIdentity, ..copied.options() };
    let again = || open_on(claimed.clone(), Disk::default(), BOOT);
    let started = start(again().unwrap());
    started.writer.abandon().unwrap();
    drop(started.log);
    assert!(matches!(again(), Err(Fault::NoCopy { .. })));
    assert!(!copied.open().unwrap().recovered().may_have_lost());
}

#[test]
fn a_directory_that_was_moved_finds_its_log_at_another_path_too() {
    let home = died();
    let moved = copied(&home);
    let elsewhere = |claimed| {
        let log_path = Some(home.memory.path().join("a-log"));
        open_on(Options { log_path, claimed, ..moved.options() }, Disk::default(), BOOT)
    };
    let fault = elsewhere(Claimed::AsItIs).unwrap_err();
    assert!(matches!(&fault, Fault::LogOfOtherDirectory { log, .. } if *log == home.log_path()), "{fault}");
    let fault = elsewhere(Claimed::AdoptLog).unwrap_err();
    assert!(matches!(&fault, Fault::LogElsewhere { log, .. } if *log == home.log_path()), "{fault}");
    assert_eq!(payloads(&elsewhere(Claimed::NewIdentity).unwrap()), [payload(1)], "a copy goes on without");
}

#[test]
fn a_log_elsewhere_of_which_segments_have_all_is_no_loss() {
    let (home, log) = Home::abandoned();
    drop(log);
    let elsewhere = Options { log_path: Some(home.memory.path().join("a-log")), ..home.options() };
    let opened = open_on(elsewhere, Disk::default(), BOOT).unwrap();
    let recovered = opened.recovered();
    assert!(!recovered.may_have_lost(), "{recovered:?}");
    assert!(recovered.notes.iter().all(|note| !note.contains("lost")), "{recovered:?}");
}

#[test]
fn a_start_that_dies_at_any_step_of_giving_an_identity_leaves_a_directory_that_starts() {
    for is_new in [true, false] {
        for good in 0.. {
            let home = if is_new { Home::new() } else { copied(&died()) };
            let claimed = Options { claimed: Claimed::NewIdentity, ..home.options() };
            let opened = open_on(claimed, Disk::failing_after(good, 5), BOOT);
            let started = opened.and_then(|opened| opened.start(TimeMs(1), SHARDS, Box::new(|_| {})));
            if let Ok(started) = started {
                // Its thread may have met the disk's end too.
                let _ = started.writer.abandon();
                break;
            }
            let opened = home.open().or_else(|fault| {
                assert!(!is_new && matches!(fault, Fault::LogOfOtherDirectory { .. }), "{good}: {fault}");
                let again = Options { claimed: Claimed::NewIdentity, ..home.options() };
                open_on(again, Disk::default(), BOOT)
            });
            let opened = opened.unwrap_or_else(|fault| panic!("{is_new}, {good}: {fault}"));
            let expected: &[_] = if is_new { &[] } else { &[payload(1)] };
            assert_eq!(payloads(&opened), expected, "{is_new}, {good}");
            start(opened).writer.stop(TimeMs(2)).unwrap();
        }
    }
}

#[test]
fn a_log_is_looked_for_where_the_last_start_had_it() {
    let home = Home::new();
    let elsewhere = Options { log_path: Some(home.memory.path().join("a-ring")), ..home.options() };
    let started = start(open_on(elsewhere.clone(), Disk::default(), BOOT).unwrap());
    let span = started.log.append(KIND, &payload(1));
    wait_durable(&started.log, span.end);
    started.writer.abandon().unwrap();
    started.log.append(KIND, &payload(2));
    drop(started.log);
    let fault = home.open().unwrap_err();
    assert!(matches!(&fault, Fault::LogElsewhere { .. }), "{fault}");
    assert!(fault.to_string().contains("a-ring once, or rm "), "{fault}");
    assert_eq!(logs(&home), ["a-ring"], "nothing more is there");
    start(open_on(elsewhere, Disk::default(), BOOT).unwrap()).writer.stop(TimeMs(2)).unwrap();
    assert_eq!(home.payloads(), [payload(1), payload(2)]);
}

#[test]
fn a_start_that_is_refused_leaves_no_log() {
    let home = Home::new();
    home.start().writer.stop(TimeMs(2)).unwrap();
    let (segment, hidden) =
        (segment::path(&segment::directory(home.data.path()), 1), home.data.path().join("x"));
    std::fs::rename(&segment, &hidden).unwrap();
    for claimed in [Claimed::AsItIs, Claimed::AdoptLog, Claimed::NewIdentity] {
        let refused = open_from(Options { claimed, ..home.options() }, Disk::default(), BOOT, |_| Ok(()));
        let fault = refused.unwrap_err();
        assert!(matches!(&fault, Fault::NoBeginning { missing, .. } if *missing == segment), "{fault}");
        assert!(logs(&home).is_empty());
    }
    // Nor is it good, or fit to start, for whoever only looks.
    assert!(!has_first_segment(home.data.path()).unwrap());
    let refused = refusal(home.data.path(), None).unwrap().to_string();
    assert!(refused.contains("00000001.segment: missing, and no snapshot is there"), "{refused}");
    std::fs::rename(&hidden, &segment).unwrap();
    assert!(home.open().is_ok() && refusal(home.data.path(), None).is_none());
}

#[test]
fn the_log_that_a_directory_left_is_not_passed_over_for_another_name() {
    let home = died();
    let (path, identity) = (home.data.path().join("identity"), identity_of(&home).unwrap());
    let log_path = home.log_path();
    let other_digit = |digit: &str| if digit == "7" { "8" } else { "7" };
    let at = identity.find("\nexchange ").unwrap() + "\nexchange ".len();
    let changed = format!("{}{}{}", &identity[..at], other_digit(&identity[at..=at]), &identity[at + 1..]);
    std::fs::write(&path, changed).unwrap();
    let fault = home.open().unwrap_err();
    assert!(matches!(&fault, Fault::LogElsewhere { log, .. } if *log == log_path));
    assert_eq!(logs(&home), [log_path.file_name().unwrap()], "nothing more is there");
    assert!(fault.to_string().contains(identity[at..at + 36].trim()), "{fault}");

    std::fs::write(&path, identity).unwrap();
    let elsewhere = Options { log_path: Some(home.data.path().join("a-log")), ..home.options() };
    let fault = open_on(elsewhere.clone(), Disk::default(), BOOT).unwrap_err().to_string();
    assert!(fault.contains("start with log_path "), "{fault}");
    assert_eq!(home.payloads(), [payload(1), payload(2)]);

    // Once it is removed, or a start went on with it, nothing is in the way.
    start(home.open().unwrap()).writer.stop(TimeMs(2)).unwrap();
    assert!(open_on(elsewhere, Disk::default(), BOOT).is_ok());
}

#[test]
fn segments_without_an_identity_are_refused_in_its_name() {
    let home = died();
    std::fs::remove_file(home.data.path().join("identity")).unwrap();
    let logs_before = logs(&home);
    for claimed in [Claimed::AsItIs, Claimed::AdoptLog, Claimed::NewIdentity] {
        let error = open_on(Options { claimed, ..home.options() }, Disk::default(), BOOT).unwrap_err();
        assert!(matches!(error, Fault::IdentityMissing { .. }), "{error}");
        assert!(error.to_string().contains("/identity: missing, and segments are in "), "{error}");
        assert_eq!((identity_of(&home), logs(&home)), (None, logs_before.clone()));
    }
}

#[test]
fn a_moved_directory_adopts_its_log() {
    let home = died();
    let moved = Home::new();
    copy(home.data.path(), moved.data.path());
    let options = Options {
        shared_memory: home.memory.path().to_path_buf(),
        claimed: Claimed::AdoptLog,
        ..moved.options()
    };
    let opened = open_on(options.clone(), Disk::default(), BOOT).unwrap();
    assert_eq!(payloads(&opened), [payload(1), payload(2)]);
    start(opened).writer.abandon().unwrap();
    // From now on the log is the moved directory's, and the old one is the stranger.
    assert!(open_on(Options { claimed: Claimed::AsItIs, ..options }, Disk::default(), BOOT).is_ok());
    assert!(matches!(home.open(), Err(Fault::LogOfOtherDirectory { .. })));
}

#[test]
fn a_running_original_keeps_its_copy_out() {
    let home = Home::new();
    let started = home.start();
    let copied = Home::new();
    copy(home.data.path(), copied.data.path());
    let options = Options { shared_memory: home.memory.path().to_path_buf(), ..copied.options() };
    let refused = open_on(options, Disk::default(), BOOT);
    assert!(matches!(refused, Err(Fault::LogInUse(_))));
    // Nor is another place for its log a way around that.
    let elsewhere = |claimed| {
        let log_path = Some(copied.memory.path().join("its-own"));
        open_on(Options { log_path, claimed, ..copied.options() }, Disk::default(), BOOT)
    };
    let refused = elsewhere(Claimed::AsItIs).unwrap_err();
    assert!(matches!(&refused, Fault::OriginalRuns { .. }) && refused.to_string().contains("--new-identity"));
    start(elsewhere(Claimed::NewIdentity).unwrap()).writer.stop(TimeMs(3)).unwrap();
    started.writer.stop(TimeMs(2)).unwrap();
}

#[test]
fn a_log_of_another_boot_is_stale_and_said() {
    let home = died();
    let opened = open_on(home.options(), Disk::default(), [8; 16]).unwrap();
    let notes = opened.recovered().notes.join("\n");
    assert!(notes.contains("of another boot and stale"), "{notes}");
    assert_eq!(opened.recovered().adopted_bytes, 0);
    assert_eq!(payloads(&opened)[0], payload(1));
}

#[test]
fn a_log_of_an_earlier_start_is_stale_and_said() {
    let home = died();
    let log_path = home.log_path();
    let old = std::fs::read(&log_path).unwrap();
    home.start().writer.stop(TimeMs(2)).unwrap();
    std::fs::write(&log_path, old).unwrap();
    let opened = home.open().unwrap();
    let notes = opened.recovered().notes.join("\n");
    assert!(notes.contains("is of epoch 1 and stale, the segments are of epoch 2"), "{notes}");
    assert_eq!(payloads(&opened), [payload(1), payload(2)]);
}

#[test]
fn segments_older_than_their_log_are_refused_naming_both() {
    let home = Home::new();
    home.start().writer.stop(TimeMs(2)).unwrap();
    let backup = tempfile::tempdir().unwrap();
    copy(&segment::directory(home.data.path()), backup.path());

    // Older by frames of the same epoch, then by an epoch.
    for _ in 0..2 {
        let started = home.start();
        let span = started.log.append(KIND, &payload(1));
        wait_durable(&started.log, span.end);
        started.writer.abandon().unwrap();
        drop(started.log);
        let now = tempfile::tempdir().unwrap();
        copy(&segment::directory(home.data.path()), now.path());
        copy(backup.path(), &segment::directory(home.data.path()));
        let error = home.open().unwrap_err();
        assert!(matches!(error, Fault::LogAhead { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("outcry-") && text.contains(home.data.path().to_str().unwrap()), "{text}");
        let way_out = format!("rm {} if this one was restored from a backup", home.log_path().display());
        assert!(text.contains(&way_out), "{text}");
        copy(now.path(), &segment::directory(home.data.path()));
        assert!(home.open().is_ok());
    }
}

#[test]
fn a_log_that_tells_another_story_is_refused_naming_both() {
    let home = died();
    let file = LogFile::lock(&home.log_path()).unwrap();
    let left = file.left().unwrap().unwrap();
    let (owner, begin) = (left.owner.clone(), left.start);
    drop(left);
    let lock = std::fs::File::open(home.data.path()).unwrap();
    let log = file.begin(&owner, lock, begin).unwrap();
    log.append(KIND, b"another story, as long as the first record");
    drop(log);
    let error = home.open().unwrap_err();
    assert!(matches!(error, Fault::LogDiffers { position, .. } if position == begin), "{error}");
    let text = error.to_string();
    let way_out = format!("rm {} to go on", home.log_path().display());
    assert!(text.contains("differ at position 64") && text.contains(&way_out), "{text}");
    assert!(!text.contains("--new-identity"), "it would be refused: {text}");
    // The log of the directory that this one is a copy of is not to be removed.
    let copied = copied(&home);
    let open = |claimed| open_on(Options { claimed, ..copied.options() }, Disk::default(), BOOT);
    let text = open(Claimed::AdoptLog).unwrap_err().to_string();
    assert!(text.contains("or --new-identity to go on") && !text.contains("rm "), "{text}");
    assert!(open(Claimed::NewIdentity).is_ok());
    std::fs::remove_file(home.log_path()).unwrap();
    assert!(home.open().is_ok());
}

#[test]
fn a_log_that_is_gone_is_told_with_every_place_where_it_was_looked_for() {
    let home = died();
    let (log, known) = (home.log_path(), home.data.path().canonicalize().unwrap().join("log-path"));
    std::fs::remove_file(&log).unwrap();
    for (says, told) in [
        (log.to_str().unwrap(), String::new()),
        ("/nowhere/outcry", " and, where the last start had it, at /nowhere/outcry".to_owned()),
    ] {
        std::fs::write(&known, says).unwrap();
        let notes = home.open().unwrap().recovered().notes.join("\n");
        let told = format!("it was looked for at {}{told}; the journal ends", log.display());
        assert!(notes.contains(&told), "{notes}");
    }
    // Where it was cannot be read, so nobody knows whether it is gone.
    std::fs::remove_file(&known).unwrap();
    std::fs::create_dir(&known).unwrap();
    let fault = home.open().map(|_| ()).unwrap_err().to_string();
    assert!(fault.starts_with(&format!("{}: read: ", known.display())), "{fault}");
}

#[test]
fn a_log_file_whose_maker_died_at_once_is_empty() {
    let home = died();
    let content = std::fs::read(home.log_path()).unwrap();
    let header = usize::try_from(LOG_HEADER_BYTES).unwrap();
    // The file has its length at once, then come its marks, then whose it is, and the magic last.
    for written in [8..8, header / 2..header, 8..header] {
        let mut begun = vec![0; content.len()];
        begun[written.clone()].copy_from_slice(&content[written]);
        std::fs::write(home.log_path(), begun).unwrap();
        assert_eq!(home.open().unwrap().recovered().adopted_bytes, 0);
    }
    std::fs::write(home.log_path(), []).unwrap();
    assert_eq!(home.open().unwrap().recovered().adopted_bytes, 0);
}

#[test]
fn a_log_whose_directory_is_not_to_be_seen_is_named_and_left_alone() {
    let gone = died();
    let log_path = gone.log_path();
    let Home { data, memory, .. } = gone;
    let neighbour = Home { memory, ..Home::new() };
    let notes = |home: &Home| home.open().unwrap().recovered().notes.join("\n");
    let rm = format!("rm {}", log_path.display());
    let said = notes(&neighbour);
    assert!(!said.contains(&rm), "{said}");
    drop(data);
    let said = notes(&neighbour);
    assert!(said.contains(&rm), "{said}");
    assert!(log_path.exists());
    // Of many, some are named and the others counted.
    for index in 0..6 {
        std::fs::copy(&log_path, log_path.with_extension(index.to_string())).unwrap();
    }
    let said = notes(&neighbour);
    assert_eq!(said.matches("not to be seen here").count(), 4, "{said}");
    assert!(said.contains(": 3 more logs like these"), "{said}");
}

#[test]
fn durable_on_memory_is_refused_by_name() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let home = Home { data: memory, ..Home::new() };
    let options = Options { durability: Durability::Durable, ..home.options() };
    let error = open_on(options, Disk::default(), BOOT).unwrap_err();
    assert!(matches!(error, Fault::NotDurable { file_system: "tmpfs" | "ramfs", .. }), "{error}");
    assert!(home.open().is_ok(), "committed is fine there");
    // Segments that a link leads there end with the machine too.
    let linked = Home::new();
    let segments = segment::directory(linked.data.path());
    std::os::unix::fs::symlink(home.data.path(), &segments).unwrap();
    let error = refuse_memory(linked.data.path()).unwrap_err();
    let is_on_disk = in_memory(&std::fs::File::open(linked.data.path()).unwrap()).unwrap().is_none();
    let named = if is_on_disk { &segments } else { linked.data.path() };
    assert!(matches!(&error, Fault::NotDurable { data_dir, .. } if data_dir == named), "{error}");
}

#[test]
fn without_shared_memory_the_log_is_in_the_data_directory_and_says_so() {
    let home = Home::new();
    let options = Options { shared_memory: home.memory.path().join("absent"), ..home.options() };
    let opened = open_on(options, Disk::default(), BOOT).unwrap();
    assert_eq!(opened.log_path(), home.data.path().canonicalize().unwrap().join("log"));
    assert!(opened.log_path().exists());
}

#[test]
fn sizes_below_what_can_work_are_refused_by_name() {
    let home = Home::new();
    let small = Options { segment_bytes: 4_096, ..home.options() };
    let refused = open_on(small, Disk::default(), BOOT);
    assert!(matches!(refused, Err(Fault::TooSmall { field: "journal.segment_bytes", .. })));
    let small = Options { log_bytes: log_bytes_min(SHARDS) - 4_096, ..home.options() };
    let opened = open_on(small, Disk::default(), BOOT).unwrap();
    let refused = opened.start(TimeMs(1), SHARDS, Box::new(|_| {}));
    assert!(matches!(refused, Err(Fault::TooSmall { field: "journal.log_bytes", .. })));
}

#[test]
fn what_people_traded_is_for_the_owner_alone() {
    let home = Home::new();
    let data_dir = home.data.path().join("new");
    let opened =
        open_on(Options { data_dir: data_dir.clone(), ..home.options() }, Disk::default(), BOOT).unwrap();
    let mut paths = vec![data_dir.clone(), opened.log_path().to_path_buf()];
    let running = start(opened);
    for folder in [&data_dir, &segment::directory(&data_dir)] {
        paths.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    assert!(5 < paths.len(), "{paths:?}");
    for path in paths {
        // The spare may get its name meanwhile.
        let Ok(about) = std::fs::metadata(&path) else { continue };
        assert_eq!(about.mode() & 0o077, 0, "{}: {:o}", path.display(), about.mode());
    }
    running.writer.stop(TimeMs(2)).unwrap();
}

#[test]
fn a_log_may_go_with_its_directory_if_nobody_else_can_miss_it() {
    let (home, log) = Home::abandoned();
    let (path, other) = (home.log_path(), tempfile::tempdir().unwrap());
    assert!(!log_is_of(&path, home.data.path()), "a process has it");
    drop(log);
    assert!(log_is_of(&path, home.data.path()));
    assert!(!log_is_of(&path, other.path()), "it is another's");
    std::fs::write(&path, []).unwrap();
    assert!(log_is_of(&path, other.path()), "it holds nothing");
    std::fs::remove_file(&path).unwrap();
    assert!(log_is_of(&path, other.path()), "it is gone");
}

/// What is in a directory, whether a journal was begun in it, and whether its first frames are there.
#[test]
fn a_directory_without_segments_had_none_unless_something_says_otherwise() {
    type Sign = (&'static str, fn(&Path), bool, bool);
    let signs: [Sign; 7] = [
        ("an identity", |_| (), true, true),
        ("the path of a log", |data| std::fs::write(data.join("log-path"), "/log").unwrap(), true, false),
        (
            "a snapshot",
            |data| {
                std::fs::create_dir(data.join("snapshots")).unwrap();
                std::fs::write(data.join("snapshots/00000000000000000064.snapshot"), "").unwrap();
            },
            true,
            false,
        ),
        ("no folder of segments", |data| std::fs::remove_dir(segment::directory(data)).unwrap(), true, false),
        ("nothing", |data| std::fs::remove_file(Identity::path(data)).unwrap(), false, true),
        (
            "segments with a hole, and no identity",
            |data| {
                std::fs::remove_file(Identity::path(data)).unwrap();
                for number in [1, 3] {
                    std::fs::write(segment::path(&segment::directory(data), number), "").unwrap();
                }
            },
            true,
            true,
        ),
        (
            "a segment under another name, and no identity",
            |data| {
                std::fs::remove_file(Identity::path(data)).unwrap();
                std::fs::write(segment::directory(data).join("1.segment"), "").unwrap();
            },
            true,
            true,
        ),
    ];
    for (what, sign, is_begun, has_first) in signs {
        let home = Home::new();
        let data = home.data.path();
        Identity::new().store(data, &Disk::default()).unwrap();
        std::fs::create_dir(segment::directory(data)).unwrap();
        sign(data);
        assert_eq!(was_begun(data), is_begun, "{what}");
        if Identity::path(data).exists() {
            assert_eq!(has_first_segment(data).unwrap(), has_first, "{what}");
        }
    }
}
