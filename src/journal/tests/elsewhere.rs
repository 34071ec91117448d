//! A start with another log than the last process had: what is refused, and what goes on.

use std::ops::Range;

use super::verdict::{died_with_more, used};
use super::*;
use crate::journal::Claimed;
use crate::journal::identity::boot_id;
use crate::journal::log::{DURABLE_WORD, RECLAIMED_WORD};
use crate::journal::logfile::{LogFile, Owner};
use crate::journal::survey;

/// A home that died with all durable frames in one segment, and two more in its log.
fn died() -> Home {
    died_with_more(Home { segment_bytes: 64 * 1024, ..Home::new() })
}

/// The bytes of segment 1 with what is in its rows from `row` on, counted from the last one if negative, zeroed.
fn without_rows(home: &Home, row: isize) -> (PathBuf, Vec<u8>) {
    let (path, mut bytes, used) = used(home, 1);
    let first = if row < 0 { (used / 4_096).strict_add_signed(row + 1) } else { row.unsigned_abs() };
    bytes[first * 4_096..].fill(0);
    (path, bytes)
}

/// Changes a digit of the exchange in `identity`.
fn change_exchange(home: &Home) {
    let path = home.data.path().join("identity");
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.find("\nexchange ").unwrap() + "\nexchange ".len();
    let digit = if &text[at..=at] == "7" { "8" } else { "7" };
    std::fs::write(path, format!("{}{digit}{}", &text[..at], &text[at + 1..])).unwrap();
}

/// A start with another log than that of the last process.
fn start_elsewhere(home: &Home) -> Result<Opened, Fault> {
    let log_path = Some(home.memory.path().join("a-log"));
    open_on(Options { log_path, ..home.options() }, Disk::default(), boot_id().unwrap())
}

#[test]
fn durable_frames_that_segments_lost_are_not_passed_over_for_another_log_path() {
    type Harm = (&'static str, fn(&Home) -> (PathBuf, Vec<u8>), &'static str);
    let ahead = "says that segments go to position ";
    let harms: [Harm; 5] = [
        (
            "a bit of the last durable batch",
            |home| {
                let (path, mut bytes, used) = used(home, 1);
                bytes[used - 1] ^= 1;
                (path, bytes)
            },
            ahead,
        ),
        ("the last durable batch", |home| without_rows(home, -1), ahead),
        ("the last three", |home| without_rows(home, -3), ahead),
        ("all frames of the last start, but not its mark", |home| without_rows(home, 2), ahead),
        (
            "the last durable batch, and another exchange in `identity`",
            |home| {
                change_exchange(home);
                without_rows(home, -1)
            },
            "write the former into it",
        ),
    ];
    for (what, harm, says) in harms {
        let home = died();
        let (log_path, identity) = (home.log_path(), home.data.path().join("identity"));
        let good = (used(&home, 1).1, std::fs::read_to_string(&identity).unwrap());
        let (path, bytes) = harm(&home);
        std::fs::write(&path, &bytes).unwrap();
        let refused = start_elsewhere(&home).map(|_| ()).expect_err(what).to_string();
        assert!(refused.contains(says) && refused.contains(log_path.to_str().unwrap()), "{what}: {refused}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}: nothing was changed");

        let elsewhere = home.data.path().join("a-log");
        let data_dir = home.data.path().canonicalize().unwrap();
        let told = match survey(&data_dir, Some(&elsewhere), None, |_| Ok::<(), Fault>(())) {
            Err(fault) => fault.to_string(),
            Ok(survey) => survey.notes.join("\n"),
        };
        assert!(told.contains(&refused), "{what}: {told}");

        std::fs::write(path, good.0).unwrap();
        std::fs::write(identity, good.1).unwrap();
        let opened = open_on(home.options(), Disk::default(), boot_id().unwrap()).unwrap();
        assert_eq!(payloads(&opened), (0..8).map(payload).collect::<Vec<_>>(), "{what}");
    }
}

#[test]
fn taking_a_log_on_is_no_reason_to_pass_over_another_that_has_durable_frames() {
    let home = died();
    let (path, bytes) = without_rows(&home, 2);
    std::fs::write(path, bytes).unwrap();
    let log_path = Some(home.memory.path().join("a-log"));
    let options = Options { log_path, claimed: Claimed::AdoptLog, ..home.options() };
    let refused = open_on(options, Disk::default(), boot_id().unwrap()).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Fault::LogElsewhere { log, .. } if *log == home.log_path()), "{refused}");
    let opened = open_on(
        Options { claimed: Claimed::AdoptLog, ..home.options() },
        Disk::default(),
        boot_id().unwrap(),
    );
    assert_eq!(payloads(&opened.unwrap()), (0..8).map(payload).collect::<Vec<_>>());
}

#[test]
fn a_copy_is_refused_beside_a_log_of_its_original_that_went_on_torn_or_not() {
    for is_torn in [false, true] {
        let home = died();
        let end = LogFile::read_only(&home.log_path()).unwrap().unwrap().durable.0;
        leave_log(&home, "outcry-other", |owner| owner.place[1] ^= 1, end + 64, 90..99);
        std::fs::remove_file(home.log_path()).unwrap();
        let (path, mut bytes, used) = used(&home, 1);
        bytes[used - 1] ^= u8::from(is_torn);
        std::fs::write(path, bytes).unwrap();
        let refused = start_elsewhere(&home).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Fault::LogOfOtherDirectory { .. }), "torn: {is_torn}: {refused}");
    }
}

#[test]
fn of_two_logs_of_its_own_the_newest_counts() {
    let home = died();
    let newest = home.memory.path().join("outcry-newest");
    let end = LogFile::read_only(&home.log_path()).unwrap().unwrap().durable.0;
    leave_log(&home, "outcry-newest", |owner| owner.epoch += 1, end, 90..92);
    let refused = start_elsewhere(&home).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Fault::LogAhead { log, .. } if *log == newest), "{refused}");
}

/// A backup of before a stop in good order, in the place of what came after it.
#[test]
fn segments_that_lost_all_of_the_last_start_are_refused_under_every_log_path() {
    let home = Home::new();
    let directory = segment::directory(home.data.path());
    let begin = || start(open_on(home.options(), Disk::default(), boot_id().unwrap()).unwrap());
    begin().writer.stop(TimeMs(2)).unwrap();
    let backup = tempfile::tempdir().unwrap();
    copy(&directory, backup.path());
    let running = begin();
    running.writer.abandon().unwrap();
    drop(running.log);
    std::fs::remove_dir_all(&directory).unwrap();
    copy(backup.path(), &directory);
    let refused = start_elsewhere(&home).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Fault::LogAhead { log, .. } if *log == home.log_path()), "{refused}");
    std::fs::remove_file(home.log_path()).unwrap();
    assert!(start_elsewhere(&home).unwrap().recovered().closed, "as the refusal says");
}

/// Leaves a log of another owner than the home's last process, with other frames, from `begin` on.
fn leave_log(home: &Home, name: &str, change: fn(&mut Owner), begin: u64, payloads: Range<usize>) {
    let left = LogFile::read_only(&home.log_path()).unwrap().unwrap();
    let mut owner = left.owner.clone();
    change(&mut owner);
    let lock = std::fs::File::open(home.data.path()).unwrap();
    let file = LogFile::lock(&home.memory.path().join(name)).unwrap();
    let log = file.begin(&owner, lock, Position(begin)).unwrap();
    for index in payloads {
        log.append(KIND, &payload(index));
    }
}

#[test]
fn a_start_with_another_log_path_goes_on_beside_logs_that_are_not_its_own() {
    type Left = (&'static str, fn(&mut Owner), fn(u64) -> u64, Range<usize>, fn(u64) -> u64);
    let of_other_exchange = |owner: &mut Owner| owner.exchange[0] ^= 1;
    let of_original = |owner: &mut Owner| owner.place[1] ^= 1;
    let of_earlier_boot = |owner: &mut Owner| owner.boot[0] ^= 1;
    let of_earlier_start = |owner: &mut Owner| owner.epoch -= 1;
    let of_original_later = |owner: &mut Owner| {
        owner.place[1] ^= 1;
        owner.epoch += 1;
    };
    // Where each log begins and up to where it says that segments go, by the position at which the home's end.
    let lefts: [Left; 8] = [
        ("an inode used again: not ahead", of_other_exchange, |_| 64, 90..99, |end| end),
        ("an inode used again: ahead", of_other_exchange, |_| 64, 90..120, |end| end + 64),
        ("an inode used again: within a frame", of_other_exchange, |end| end - 64, 90..99, |end| end + 64),
        ("an inode used again: far ahead", of_other_exchange, |end| end + 64, 90..99, |end| end + 128),
        ("a copy that went on, and its original", of_original, |_| 64, 90..99, |end| end),
        ("another boot's", of_earlier_boot, |_| 64, 90..120, |end| end + 64),
        ("its original's, of a later start", of_original_later, |_| 64, 90..120, |end| end + 64),
        ("an earlier start's", of_earlier_start, |_| 64, 90..120, |end| end + 64),
    ];
    for (what, change, begin, frames, durable) in lefts {
        let home = died();
        let end = LogFile::read_only(&home.log_path()).unwrap().unwrap().durable.0;
        leave_log(&home, "outcry-other", change, begin(end), frames);
        let other = home.memory.path().join("outcry-other");
        let mut bytes = std::fs::read(&other).unwrap();
        bytes[8 * DURABLE_WORD..8 * DURABLE_WORD + 8].copy_from_slice(&durable(end).to_le_bytes());
        std::fs::write(&other, bytes).unwrap();
        std::fs::remove_file(home.log_path()).unwrap();
        let opened = start_elsewhere(&home).unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert_eq!(payloads(&opened), (0..6).map(payload).collect::<Vec<_>>(), "{what}");
        let recovered = opened.recovered();
        assert!(recovered.may_have_lost(), "{what}: {recovered:?}");
    }
}

#[test]
fn a_log_of_a_start_that_died_before_its_first_frame_was_durable_is_not_asked_for() {
    let home = died();
    let (path, bytes) = without_rows(&home, 2);
    std::fs::write(path, bytes).unwrap();
    let mut log = std::fs::read(home.log_path()).unwrap();
    log.copy_within(8 * RECLAIMED_WORD..8 * RECLAIMED_WORD + 8, 8 * DURABLE_WORD);
    std::fs::write(home.log_path(), log).unwrap();
    let opened = start_elsewhere(&home).unwrap();
    assert!(opened.recovered().closed && payloads(&opened).is_empty());
    assert_eq!(opened.recovered().before, 0, "it never went on");
    drop(opened);
    // With its own log it did: what the log has is of that start.
    let opened = open_on(home.options(), Disk::default(), boot_id().unwrap()).unwrap();
    assert_eq!(payloads(&opened), (0..8).map(payload).collect::<Vec<_>>());
    assert_eq!(opened.recovered().before, 1);
}

#[test]
fn after_a_stop_in_good_order_it_does_not_matter_where_the_log_was() {
    type Known = (&'static str, fn(&Path));
    let knowns: [Known; 4] = [
        ("gone", |_| ()),
        ("another program's", |path| std::fs::write(path, [7; 8_192]).unwrap()),
        ("a folder", |path| std::fs::create_dir(path).unwrap()),
        ("in what is no folder", |path| {
            std::fs::write(path, []).unwrap();
            let data_dir = path.parent().unwrap();
            std::fs::write(data_dir.join("log-path"), path.join("log").to_str().unwrap()).unwrap();
        }),
    ];
    for (what, known) in knowns {
        let home = Home::new();
        let ring = home.data.path().join("ring");
        let options = Options { log_path: Some(ring.clone()), ..home.options() };
        let running = start(open_on(options, Disk::default(), boot_id().unwrap()).unwrap());
        running.writer.stop(TimeMs(2)).unwrap();
        drop(running.log);
        known(&ring);
        let opened = start_elsewhere(&home).unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert!(opened.recovered().closed, "{what}");
    }
}

#[test]
fn a_log_that_was_moved_and_is_named_is_taken() {
    let home = died();
    std::fs::rename(home.log_path(), home.memory.path().join("a-log")).unwrap();
    let opened = start_elsewhere(&home).unwrap();
    assert_eq!(payloads(&opened), (0..8).map(payload).collect::<Vec<_>>());
}
