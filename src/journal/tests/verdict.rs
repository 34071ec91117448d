//! Segments and log file that do not fit together: what is said of them, and that a start and a
//! survey say the same.

use std::ops::Range;

use super::pack::pack_all;
use super::snapshots::{keep, started};
use super::*;
use crate::journal::disk::in_memory;
use crate::journal::identity::boot_id;
use crate::journal::log::{DURABLE_WORD, FREED_WORD, RECLAIMED_WORD};
use crate::journal::logfile::{LogFile, Owner};
use crate::journal::segment::{BATCH_HEADER_BYTES, ROW_BYTES};
use crate::journal::snapshot::Base;
use crate::journal::{Survey, refusal, survey};

/// A home that died with sealed segments, a snapshot after most of them, and a log that still has
/// every frame. Only the snapshot's end and what follows it are scanned at a start.
fn died_behind_a_snapshot(is_packed: bool) -> (Home, Base) {
    let home = Home { segment_bytes: 4 * ROW_BYTES, ..Home::new() };
    let opened = home.open().unwrap();
    let (mut packer, snapshots) = (opened.packer(), opened.snapshots());
    let running = start(opened);
    for index in 0..12 {
        let span = running.log.append(KIND, &payload(index));
        wait_durable(&running.log, span.end);
    }
    let base = keep(&snapshots, running.log.durable()).unwrap();
    if is_packed {
        assert!(!pack_all(&mut packer).unwrap().is_empty(), "some are packed");
    }
    running.writer.abandon().unwrap();
    (home, base)
}

/// The file of a segment, its bytes, and how many there are without the zeros at its end.
pub(super) fn used(home: &Home, number: u64) -> (PathBuf, Vec<u8>, usize) {
    let path = segment::path(&segment::directory(home.data.path()), number);
    let bytes = std::fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    (path, bytes, used)
}

/// A start must refuse in the words of a scan of all segments; where it does not look, it must serve.
fn refused_as_scanned(home: &Home, what: &str) -> bool {
    let scanned = home.scan().unwrap_err();
    match (started(home), &scanned) {
        (Err(fault), _) => {
            assert_eq!(fault.to_string(), scanned.to_string(), "{what}");
            true
        }
        (Ok(_), Fault::Damaged(place)) => {
            let unseen = place.field.starts_with("zeros") || place.offset < ROW_BYTES;
            assert!(unseen, "{what}: {scanned}");
            false
        }
        (Ok(_), other) => panic!("{what}: {other}"),
    }
}

#[test]
fn a_damaged_segment_in_front_of_a_snapshot_is_named_and_not_called_another_story() {
    for is_packed in [false, true] {
        let (home, base) = died_behind_a_snapshot(is_packed);
        assert!(started(&home).is_ok());
        let mut refused = 0;
        for number in 1..base.segment {
            let (path, good, used) = used(&home, number);
            for at in (0..used).step_by(131) {
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                std::fs::write(&path, bad).unwrap();
                refused += u32::from(refused_as_scanned(&home, &format!("byte {at} of {number}")));
            }
            for kept in [0, 98, 4_096, 4_100, used - 1] {
                std::fs::write(&path, &good[..kept]).unwrap();
                assert!(refused_as_scanned(&home, &format!("{number} cut to {kept}")));
            }
            std::fs::write(&path, good).unwrap();
        }
        assert!(0 < refused, "some of the damage is where a start looks");
        assert!(started(&home).is_ok());
    }
}

#[test]
fn first_segments_that_are_gone_are_not_compared_and_one_that_cannot_be_read_is_named() {
    for is_packed in [false, true] {
        let (home, base) = died_behind_a_snapshot(is_packed);
        let all = started(&home).unwrap().0;
        for number in 1..base.segment {
            let path = used(&home, number).0;
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(&path).unwrap();
            let fault = started(&home).map(|_| ()).unwrap_err().to_string();
            let path_read = path.canonicalize().unwrap();
            assert!(fault.starts_with(&format!("{}: read: ", path_read.display())), "{fault}");
            std::fs::remove_dir(&path).unwrap();
            let (found, opened) = started(&home).unwrap_or_else(|fault| panic!("without {number}: {fault}"));
            let recovered = opened.recovered();
            assert_eq!((found, recovered.gone.0), (all.clone(), number), "packed: {is_packed}");
            assert!(recovered.log_taken && !recovered.may_have_lost());
        }
    }
}

#[test]
fn a_damaged_header_on_the_way_to_a_snapshot_is_named_and_an_older_segment_leads_elsewhere() {
    let (home, base) = died_behind_a_snapshot(false);
    let (path, good, _) = used(&home, base.segment);
    let row_bytes = usize::try_from(ROW_BYTES).unwrap();
    for at in row_bytes..row_bytes + BATCH_HEADER_BYTES {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(&path, bad).unwrap();
        let fault = started(&home).map(|_| ()).unwrap_err().to_string();
        let named = format!("damaged below the durable mark: {}: byte ", path.display());
        assert!(fault.starts_with(&named), "{at}: {fault}");
    }
    let mut older = good.clone();
    older[row_bytes..].fill(0);
    std::fs::write(&path, older).unwrap();
    assert!(matches!(started(&home), Err(Fault::SnapshotMisfit { .. })), "it ends before the snapshot");
    std::fs::write(&path, good).unwrap();
    assert!(started(&home).is_ok());
}

#[test]
fn a_refusal_is_foretold_of_what_a_start_reads_and_of_nothing_else() {
    for is_packed in [false, true] {
        let (home, base) = died_behind_a_snapshot(is_packed);
        let foretold = || refusal(home.data.path(), Some(&home.log_path())).map(|fault| fault.to_string());
        assert_eq!(foretold(), None);
        for number in 1..=base.segment {
            let (path, good, _) = used(&home, number);
            std::fs::write(&path, &good[..4_096]).unwrap();
            let came = started(&home).map(|_| ()).err().map(|fault| fault.to_string());
            assert_eq!(foretold(), came.clone().filter(|_| number == base.segment), "{number}: {came:?}");
            std::fs::write(&path, good).unwrap();
        }
        // Without the segment that it needs, and then without any.
        for number in (1..=base.segment).rev() {
            std::fs::remove_file(used(&home, number).0).unwrap();
            let came = started(&home).map(|_| ()).err().map(|fault| fault.to_string());
            assert!(came.is_some() && foretold() == came, "{number}: {came:?}");
        }
        std::fs::remove_dir_all(home.data.path().join("snapshots")).unwrap();
        let came = started(&home).map(|_| ()).err().map(|fault| fault.to_string());
        assert!(came.is_some() && foretold() == came, "no snapshot: {came:?}");
    }
}

/// What is done to a whole log file, and which field the next start names; none for an empty log.
type Harm = (&'static str, fn(&mut Vec<u8>), Option<&'static str>);

#[test]
fn a_log_that_was_cut_or_has_another_magic_is_damage_and_an_empty_one_is_none() {
    let harms: [Harm; 6] = [
        ("another program's", |bytes| bytes[..7].copy_from_slice(b"SQLite "), Some("magic of the log")),
        ("a bit of the magic", |bytes| bytes[0] ^= 1, Some("magic of the log")),
        ("cut in its header", |bytes| bytes.truncate(100), Some("length of the log")),
        ("cut behind its header", |bytes| bytes.truncate(4_096), Some("length of the log")),
        ("emptied", Vec::clear, None),
        ("as it is while it is made", |bytes| bytes.fill(0), None),
    ];
    for (what, harm, expected) in harms {
        let (home, _) = died_behind_a_snapshot(false);
        let mut bytes = std::fs::read(home.log_path()).unwrap();
        harm(&mut bytes);
        std::fs::write(home.log_path(), bytes).unwrap();
        match (started(&home), expected) {
            (Err(fault), Some(field)) => {
                let fault = fault.to_string();
                let says_what = fault.starts_with("log_path: ") && fault.contains("give another log_path");
                assert!(fault.contains(field) && says_what, "{what}: {fault}");
            }
            (Ok((_, opened)), None) => {
                let note = "its log file is gone, empty or stale";
                let recovered = opened.recovered();
                assert!(recovered.notes.iter().any(|found| found.contains(note)), "{what}: {recovered:?}");
            }
            (came, _) => panic!("{what}: {:?}", came.map(|_| ())),
        }
    }
}

#[test]
fn pages_of_a_log_that_a_stopped_machine_never_wrote_back_are_stale_on_a_disk_and_damage_in_memory() {
    let harms: [Harm; 2] = [
        ("the first page", |bytes| bytes[..4_096].fill(0), Some("magic of the log")),
        ("the sector with the mark of what is free", |bytes| bytes[2_560..3_072].fill(0xff), None),
    ];
    for (what, harm, in_memory_field) in harms {
        for directory in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
            let (mut home, _) = died_behind_a_snapshot(false);
            let mut bytes = std::fs::read(home.log_path()).unwrap();
            harm(&mut bytes);
            let Ok(memory) = tempfile::tempdir_in(&directory) else { continue };
            home.memory = memory;
            std::fs::write(home.log_path(), bytes).unwrap();
            let is_memory = in_memory(&std::fs::File::open(home.log_path()).unwrap()).unwrap().is_some();
            // Another boot, as the machine stopped.
            match (open_on(home.options(), Disk::default(), [8; 16]), in_memory_field.filter(|_| is_memory)) {
                (Err(fault), Some(field)) => assert!(fault.to_string().contains(field), "{what}: {fault}"),
                (Ok(opened), None) => {
                    let notes = opened.recovered().notes.join("\n");
                    assert!(
                        notes.contains("stale; ignored") || notes.contains("gone, empty or stale"),
                        "{notes}"
                    );
                }
                (came, _) => panic!("{what} in {}: {:?}", directory.display(), came.map(|_| ())),
            }
        }
    }
}

#[test]
fn a_frame_that_the_log_lost_is_damage_of_the_log() {
    let (home, _) = died_behind_a_snapshot(false);
    let start = LogFile::read_only(&home.log_path()).unwrap().unwrap().start;
    let mut bytes = std::fs::read(home.log_path()).unwrap();
    let first = usize::try_from(LOG_HEADER_BYTES + start.0).unwrap();
    bytes[first..first + 64].fill(0);
    std::fs::write(home.log_path(), bytes).unwrap();
    let error = started(&home).unwrap_err().to_string();
    let place = format!("{}: byte {first}, position {}: frame bytes", home.log_path().display(), start.0);
    assert!(error.contains(&place), "{error}");
}

/// A home that died with frames in both its segments and its log, and two more in the log.
fn died_with_more_in_the_log() -> Home {
    died_with_more(Home::new())
}

pub(super) fn died_with_more(home: Home) -> Home {
    let running = start(open_on(home.options(), Disk::default(), boot_id().unwrap()).unwrap());
    for index in 0..6 {
        let span = running.log.append(KIND, &payload(index));
        wait_durable(&running.log, span.end);
    }
    running.writer.abandon().unwrap();
    for index in 6..8 {
        running.log.append(KIND, &payload(index));
    }
    home
}

fn surveyed(home: &Home) -> Result<Survey, Fault> {
    survey(&home.data.path().canonicalize().unwrap(), Some(&home.log_path()), None, |_| Ok::<(), Fault>(()))
}

/// Changes a file, compares a survey with a start, and puts everything back. True if both refuse.
fn agreed(home: &Home, path: &Path, bad: &[u8], what: &str) -> bool {
    let kept = tempfile::tempdir().unwrap();
    let directory = segment::directory(home.data.path());
    copy(&directory, kept.path());
    let log = std::fs::read(home.log_path()).unwrap();
    std::fs::write(path, bad).unwrap();
    let survey = surveyed(home);
    let opened = open_on(home.options(), Disk::default(), boot_id().unwrap());
    let refused = opened.is_err();
    match (survey, opened) {
        (Ok(survey), Ok(opened)) => {
            let recovered = opened.recovered();
            let found = (survey.end.0 + survey.log_bytes, survey.log_bytes, survey.epoch);
            assert_eq!(found, (recovered.end.0, recovered.adopted_bytes, recovered.epoch - 1), "{what}");
            assert_eq!(survey.cut, recovered.cut, "{what}");
        }
        (Err(survey), Err(start)) => assert_eq!(survey.to_string(), start.to_string(), "{what}"),
        (survey, opened) => panic!("{what}: survey {survey:?}, start {:?}", opened.map(|_| ())),
    }
    std::fs::remove_dir_all(&directory).unwrap();
    copy(kept.path(), &directory);
    std::fs::write(home.log_path(), log).unwrap();
    refused
}

/// How often both refuse with one bit of `range` flipped.
fn flips(home: &Home, path: &Path, range: Range<usize>, step: usize) -> u32 {
    let good = std::fs::read(path).unwrap();
    let flip = |at: usize| {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        u32::from(agreed(home, path, &bad, &format!("byte {at} of {}", path.display())))
    };
    range.step_by(step).map(flip).sum()
}

#[test]
fn a_survey_and_a_start_come_to_the_same_verdict() {
    let home = died_with_more_in_the_log();
    let (path, good, used) = used(&home, 1);
    assert!(!agreed(&home, &path, &good, "untouched"));
    for rows in 1..used / 4_096 {
        let mut bad = good.clone();
        bad[used / 4_096 * 4_096 - (rows - 1) * 4_096..].fill(0);
        assert!(agreed(&home, &path, &bad, &format!("the last {rows} rows zeroed")));
        assert!(agreed(&home, &path, &good[..used - rows * 4_096], &format!("{rows} rows cut")));
    }
    assert!(0 < flips(&home, &path, 0..used, 499));

    let log = home.log_path();
    let ring = usize::try_from(LOG_HEADER_BYTES).unwrap();
    assert!(0 < flips(&home, &log, 0..ring, 37));
    assert!(0 < flips(&home, &log, ring..ring + 4_096, 61));
    let bytes = std::fs::read(&log).unwrap();
    for kept in [0, ring, bytes.len() / 8 * 4 / 64 * 64] {
        agreed(&home, &log, &bytes[..kept], &format!("log cut to {kept}"));
    }
}

/// Where in its log's file the first frame is that only the log has.
fn first_unshared(home: &Home) -> usize {
    let left = LogFile::read_only(&home.log_path()).unwrap().unwrap();
    usize::try_from(LOG_HEADER_BYTES + left.durable.0).unwrap()
}

#[test]
fn a_damaged_log_is_not_passed_over_for_another_log_path() {
    type Harm = (&'static str, fn(usize, &mut Vec<u8>));
    let harms: [Harm; 5] = [
        ("a frame that segments lack", |at, bytes| bytes[at + 8] ^= 1),
        ("another length", |_, bytes| bytes.truncate(bytes.len() / 2 + 1)),
        ("another magic", |_, bytes| bytes[0] ^= 1),
        ("another owner", |_, bytes| bytes[16] ^= 1),
        ("more is free than was written", |_, bytes| bytes[8 * FREED_WORD + 6] = 1),
    ];
    for (what, harm) in harms {
        let home = died_with_more_in_the_log();
        let good = std::fs::read(home.log_path()).unwrap();
        let mut bytes = good.clone();
        harm(first_unshared(&home), &mut bytes);
        std::fs::write(home.log_path(), bytes).unwrap();
        let start =
            |log_path| open_on(Options { log_path, ..home.options() }, Disk::default(), boot_id().unwrap());
        let elsewhere = start(Some(home.data.path().join("a-log"))).map(|_| ());
        let refused = elsewhere.expect_err(what).to_string();
        assert!(
            refused.contains("the log is damaged") && refused.contains(" away and start again"),
            "{what}: {refused}"
        );
        std::fs::write(home.log_path(), good).unwrap();
        assert!(start(home.options().log_path).unwrap().recovered().log_taken, "{what}: nothing was changed");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_log_is_refused_by_whoever_looks_and_waited_for_by_nobody() {
    let home = died_with_more_in_the_log();
    let log_path = home.log_path();
    std::fs::remove_file(&log_path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&log_path).status().unwrap().success());
    let told = [
        home.open().map(drop).unwrap_err(),
        surveyed(&home).map(drop).unwrap_err(),
        refusal(home.data.path(), Some(&log_path)).unwrap(),
    ];
    for told in told.map(|fault| fault.to_string()) {
        assert!(told.ends_with("a pipe or a socket; give another log_path; nothing was changed"), "{told}");
    }
    assert!(!LogFile::is_in_use(&log_path));
}

#[test]
fn a_damaged_mark_of_a_log_is_named_with_its_byte_by_a_start_and_a_survey() {
    for (word, field) in [
        (DURABLE_WORD, "durable mark of the log"),
        (RECLAIMED_WORD, "start of the log"),
        (FREED_WORD, "free mark of the log"),
    ] {
        for bit in (0..64).filter(|bit| !(6..40).contains(bit)) {
            let home = died_with_more_in_the_log();
            let mut bytes = std::fs::read(home.log_path()).unwrap();
            bytes[8 * word + bit / 8] ^= 1 << (bit % 8);
            let place = format!("{}: byte {}: {field}: ", home.log_path().display(), 8 * word);
            assert!(agreed(&home, &home.log_path(), &bytes, field), "{field}, bit {bit}");
            std::fs::write(home.log_path(), bytes).unwrap();
            let told = surveyed(&home).unwrap_err().to_string();
            assert!(told.contains(&place), "{field}, bit {bit}: {told}");
        }
    }
}

#[test]
fn a_log_that_was_cut_is_damaged_in_its_own_boot_wherever_it_was_cut() {
    let home = died_with_more_in_the_log();
    let good = std::fs::read(home.log_path()).unwrap();
    let end = first_unshared(&home);
    for kept in [end, end + 64, good.len() - 64] {
        assert!(agreed(&home, &home.log_path(), &good[..kept], "cut"), "{kept} of {}", good.len());
        std::fs::write(home.log_path(), &good[..kept]).unwrap();
        let told = surveyed(&home).unwrap_err().to_string();
        let says = format!("length of the log: expected {:#x}, found {kept:#x}", good.len());
        assert!(told.contains(&says), "{told}");
        // A machine that stops may have kept any length.
        assert!(open_on(home.options(), Disk::default(), [8; 16]).is_ok());
    }
    // Of a version that did not tell its length, the ring ends where its file does.
    std::fs::write(home.log_path(), &good).unwrap();
    let left = LogFile::read_only(&home.log_path()).unwrap().unwrap();
    let untold = Owner { ring_bytes: 0, ..left.owner };
    let mut of_before = good;
    of_before[64..72].copy_from_slice(&u64::from(untold.checksum()).to_le_bytes());
    of_before[8 * 138..8 * 139].fill(0);
    assert!(!agreed(&home, &home.log_path(), &of_before, "no length told"));
}

/// The first word of a frame is stored last and whole, so half of it is no claim that was being written.
#[test]
fn a_frame_whose_length_was_lost_is_damage_and_no_end_of_the_log() {
    let home = died_with_more_in_the_log();
    let (at, good) = (first_unshared(&home), std::fs::read(home.log_path()).unwrap());
    for (zeros, is_damage) in [(4, true), (8, false)] {
        let mut bytes = good.clone();
        bytes[at..at + zeros].fill(0);
        assert_eq!(agreed(&home, &home.log_path(), &bytes, "without a length"), is_damage, "{zeros}");
    }
}

#[test]
fn a_copy_is_good_and_is_told_what_its_start_will_ask_for() {
    let home = died_with_more_in_the_log();
    let copied = tempfile::tempdir().unwrap();
    copy(home.data.path(), copied.path());
    let look = |data: &Path| survey(data, Some(&home.log_path()), None, |_| Ok::<(), Fault>(())).unwrap();
    let (original, copy) = (look(home.data.path()), look(copied.path()));
    assert_eq!((copy.frames, copy.chain, copy.log_bytes), (original.frames, original.chain, 0));
    assert!(original.notes.is_empty() && 0 < original.log_bytes, "{original:?}");
    let [note] = &copy.notes[..] else { panic!("{copy:?}") };
    assert!(note.starts_with("the next start is refused: ") && note.contains("--new-identity if"), "{note}");
}
