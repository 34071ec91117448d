//! What a start finds after a death.

use std::os::unix::fs::FileExt;

use super::super::Fault;
use super::super::disk::Disk;
use super::super::follow::Follower;
use super::super::frame::FRAME_ALIGN;
use super::super::layout::Start;
use super::super::offline::survey;
use super::super::open::{Options, open_on};
use super::super::segment::{self, ROW_BYTES};
use super::{BOOT, Bench, Home, KIND, SHARDS, payload, payloads, start, wait_durable};
use crate::domain::{Position, TimeMs};

#[test]
fn a_new_directory_begins_empty_and_goes_on_after_a_stop() {
    let home = Home::new();
    let opened = home.open().unwrap();
    assert_eq!((opened.recovered().frames, opened.recovered().epoch), (0, 1));
    assert_eq!(opened.recovered().cut_bytes(), 0);
    let started = start(opened);
    for index in 0..50 {
        started.log.append(KIND, &payload(index));
    }
    let last = started.log.claimed();
    started.writer.stop(TimeMs(2)).unwrap();
    assert!(last < started.log.durable());
    drop(started.log);

    let opened = home.open().unwrap();
    assert_eq!(payloads(&opened), (0..50).map(payload).collect::<Vec<_>>());
    // Start, 50, Close.
    assert_eq!((opened.recovered().frames, opened.recovered().epoch), (52, 2));
    assert_eq!((opened.recovered().adopted_bytes, opened.recovered().cut_bytes()), (0, 0));
    assert_eq!(opened.recovered().cut, None);
    assert!(opened.recovered().closed);
}

#[test]
fn a_start_that_never_went_on_has_lost_nothing_wherever_it_ended() {
    // What was before: nothing, or a start and a stop in good order, which left a `Start` and a `Close`.
    for stops in [0, 1] {
        let mut raised = 0;
        for good in 0.. {
            let home = Home::new();
            for _ in 0..stops {
                home.start().writer.stop(TimeMs(1)).unwrap();
            }
            let opened = open_on(home.options(), Disk::failing_after(good, 5), BOOT);
            let started = opened.and_then(|opened| opened.start(TimeMs(1), SHARDS, Box::new(|_| ())));
            if let Ok(started) = started {
                // The disk that a start needs, and not one operation more.
                started.writer.abandon().unwrap();
                break;
            }
            let mut logs = std::fs::read_dir(home.memory.path()).unwrap();
            assert!(logs.next().is_none(), "a start that was refused leaves no log");
            let opened = home.open().unwrap();
            let recovered = opened.recovered();
            assert!(!recovered.may_have_lost(), "{good}: {recovered:?}");
            assert!(recovered.notes.iter().all(|note| !note.contains("lost")), "{good}: {recovered:?}");
            assert_eq!((recovered.frames, recovered.before), (2 * u64::from(stops), stops), "{good}");
            raised += u32::from(stops + 1 < recovered.epoch);
        }
        assert!(0 < raised, "some of them had raised the epoch");
    }
}

#[test]
fn what_an_earlier_start_found_missing_is_read_or_the_start_is_refused() {
    let mut refused = 0;
    for good in 0.. {
        let home = Home::new();
        home.start().writer.stop(TimeMs(1)).unwrap();
        let opened = open_on(home.options(), Disk::failing_after(good, 5), BOOT);
        if let Ok(started) = opened.and_then(|opened| opened.start(TimeMs(1), SHARDS, Box::new(|_| ()))) {
            started.writer.abandon().unwrap();
            break;
        }
        let doubt = home.data.path().canonicalize().unwrap().join("doubt");
        std::fs::create_dir(&doubt).unwrap();
        match home.open() {
            Ok(opened) => assert_eq!(opened.recovered().epoch, 2, "{good}: it had not raised the epoch"),
            Err(fault) => {
                assert!(fault.to_string().starts_with(&format!("{}: read: ", doubt.display())), "{fault}");
                refused += 1;
            }
        }
    }
    assert!(0 < refused, "some of them had raised the epoch");
}

#[test]
fn a_death_after_the_first_frame_is_no_stop_in_good_order() {
    for stops in [0, 1] {
        let home = Home::new();
        for _ in 0..stops {
            home.start().writer.stop(TimeMs(1)).unwrap();
        }
        let started = home.start();
        started.writer.abandon().unwrap();
        started.log.append(KIND, &payload(1));
        drop(started.log);
        std::fs::remove_file(home.log_path()).unwrap();

        let opened = home.open().unwrap();
        let recovered = opened.recovered();
        let epoch = u32::try_from(stops).unwrap() + 1;
        assert_eq!((recovered.frames, recovered.closed, recovered.before), (2 * stops + 1, false, epoch));
        assert!(recovered.may_have_lost());
        assert!(
            recovered.notes.iter().any(|note| note.contains("its log file is gone, empty or stale")),
            "{recovered:?}"
        );
    }
}

#[test]
fn a_loss_is_known_until_a_start_has_gone_on() {
    // A start on a disk that fails after so many writes; true if it is refused.
    let is_refused = |home: &Home, good| {
        let started = open_on(home.options(), Disk::failing_after(good, 5), BOOT)
            .and_then(|opened| opened.start(TimeMs(2), SHARDS, Box::new(|_| ())));
        let refused = started.is_err();
        if let Ok(started) = started {
            started.writer.stop(TimeMs(3)).unwrap_or(());
        }
        let _ = std::fs::remove_file(home.log_path());
        refused
    };
    // Refused once and then again somewhere, before or after it raised the epoch.
    let (mut refusals, mut good) = (0, [0, 0]);
    loop {
        let home = Home::new();
        let started = home.start();
        started.writer.abandon().unwrap();
        started.log.append(KIND, &payload(1));
        drop(started.log);
        std::fs::remove_file(home.log_path()).unwrap();
        if !is_refused(&home, good[0]) {
            break;
        }
        if !is_refused(&home, good[1]) {
            good = [good[0] + 1, 0];
            continue;
        }
        let opened = home.open().unwrap();
        assert!(opened.recovered().may_have_lost(), "{good:?}: {:?}", opened.recovered());
        start(opened).writer.stop(TimeMs(3)).unwrap();
        assert!(!home.open().unwrap().recovered().may_have_lost(), "{good:?}: it was said");
        assert!(!home.data.path().join("doubt").exists(), "{good:?}");
        (refusals, good[1]) = (refusals + 1, good[1] + 1);
    }
    assert!(9 < refusals, "{refusals}");
}

#[test]
fn a_start_whose_log_has_no_room_leaves_everything_to_the_next_one() {
    let new = Home::new();
    let died = Home::new();
    let started = died.start();
    for index in 0..3 {
        started.log.append(KIND, &payload(index));
    }
    started.writer.abandon().unwrap();
    // What follows is only in the log.
    started.log.append(KIND, &payload(3));
    drop(started.log);
    for (home, expected) in [(new, 0), (died, 4)] {
        let before = home.open().unwrap().recovered().epoch;
        for _ in 0..2 {
            // No file system has room for a ring of a PiB.
            let options = Options { log_bytes: 1 << 50, ..home.options() };
            let opened = open_on(options, Disk::default(), BOOT).unwrap();
            let refused = opened.start(TimeMs(1), SHARDS, Box::new(|_| {})).unwrap_err().to_string();
            assert!(refused.contains("reserve log_bytes for"), "{refused}");
        }
        let opened = home.open().unwrap();
        let recovered = opened.recovered();
        assert!(!recovered.may_have_lost(), "{recovered:?}");
        assert!(recovered.notes.iter().all(|note| !note.contains("lost")), "{recovered:?}");
        assert_eq!(recovered.epoch, before);
        assert_eq!(payloads(&opened), (0..expected).map(payload).collect::<Vec<_>>());
        start(opened).writer.stop(TimeMs(2)).unwrap();
    }
}

#[test]
fn a_death_at_every_frame_boundary_loses_nothing_that_was_committed() {
    let home = Home::new();
    let mut expected = Vec::new();
    for round in 0..12 {
        let started = home.start();
        for _ in 0..round {
            expected.push(payload(expected.len()));
            started.log.append(KIND, expected.last().unwrap());
        }
        // How much of it reached the segments depends on the moment, and must not matter.
        started.writer.abandon().unwrap();
        drop(started.log);
        let opened = home.open().unwrap();
        assert_eq!(payloads(&opened), expected, "round {round}");
        assert_eq!(opened.recovered().epoch, round + 2);
        assert!(opened.recovered().log_taken);
        assert_eq!(opened.recovered().cut_bytes(), 0);
    }
}

#[test]
fn a_machine_that_died_leaves_a_clean_prefix() {
    let home = Home::new();
    let started = home.start();
    let durable = started.log.append(KIND, &payload(0)).end;
    wait_durable(&started.log, durable);
    for index in 1..20 {
        started.log.append(KIND, &payload(index));
    }
    started.writer.abandon().unwrap();
    drop(started.log);
    std::fs::remove_file(home.log_path()).unwrap();
    let opened = home.open().unwrap();
    assert!(!opened.recovered().closed && !opened.recovered().log_taken);
    let notes = opened.recovered().notes.join("\n");
    let end = format!("the journal ends at position {}", opened.recovered().end.0);
    assert!(notes.contains(&end), "{notes}");
    let found = payloads(&opened);
    assert!(!found.is_empty());
    assert_eq!(found, (0..found.len()).map(payload).collect::<Vec<_>>());
}

#[test]
fn a_torn_tail_is_cut_and_zeroed_and_the_log_goes_on_after_it() {
    let mut bench = Bench::new(8 * ROW_BYTES);
    bench.batch(&[payload(1)]);
    let end = bench.batches.end();
    bench.batch(&[vec![2; 9_000]]);
    let path = bench.segment(1);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // Rows of one write reach the disk in any order: the first is missing.
    file.write_all_at(&[0; 4_096], 2 * ROW_BYTES).unwrap();
    let Bench { home, batches, .. } = bench;
    drop(batches);

    let opened = home.open().unwrap();
    let cut = opened.recovered().cut.clone().unwrap();
    assert_eq!((cut.place.position, opened.recovered().end), (end, end));
    assert!(8_000 < cut.bytes, "{}", cut.bytes);
    assert_eq!(opened.recovered().cut_bytes(), cut.bytes);
    let rest = std::fs::read(&path).unwrap()[usize::try_from(2 * ROW_BYTES).unwrap()..].to_vec();
    assert!(rest.iter().all(|&byte| byte == 0));

    let started = start(opened);
    let span = started.log.append(KIND, &payload(3));
    wait_durable(&started.log, span.end);
    // The cut is in the log.
    let mut follower = Follower::new(started.log.clone(), end, None);
    let frame = follower.next(span.end).unwrap().unwrap();
    assert_eq!(frame.kind, Start::KIND);
    let record = Start::decode(frame.payload).unwrap();
    assert_eq!((record.cut_bytes, record.shards), (cut.bytes, 1));
    started.writer.stop(TimeMs(2)).unwrap();
    drop(follower);
    drop(started.log);
    assert_eq!(home.payloads(), [payload(1), payload(3)]);
}

#[test]
fn a_file_that_lost_its_tail_is_refused_with_both_lengths_and_stays_as_it_is() {
    // Two batches, then zeros: whatever is gone, a death does not shorten a file that has its name.
    for (kept, told) in [
        (7 * ROW_BYTES, "it is 28672 bytes long, and was 32768 when it was made"),
        (3 * ROW_BYTES, "it is 12288 bytes long, and was 32768 when it was made"),
        (2 * ROW_BYTES + 100, "it is 8292 bytes long, and was 32768 when it was made"),
        (ROW_BYTES, "it is 4096 bytes long, and was 32768 when it was made"),
        (100, "it is 100 bytes long, and its first row alone was 4096"),
        (0, "it is 0 bytes long, and its first row alone was 4096"),
    ] {
        let mut bench = Bench::new(8 * ROW_BYTES);
        bench.batch(&[payload(1)]);
        bench.batch(&[payload(2)]);
        let path = bench.segment(1);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(kept).unwrap();
        let before = std::fs::read(&path).unwrap();
        let text = bench.home.open().unwrap_err().to_string();
        assert!(text.contains("00000001.segment: ") && text.contains(told), "{kept} bytes: {text}");
        let survey = survey(bench.home.data.path(), None, None, |_| Ok::<(), Fault>(()));
        assert!(survey.unwrap_err().to_string().contains(told), "what a start refuses, a survey does");
        assert!(std::fs::read(&path).unwrap() == before, "a refusal changes nothing");
    }
}

#[test]
fn nothing_behind_a_claim_that_was_never_committed_is_durable_or_found_again() {
    let home = Home::new();
    let started = home.start();
    let before = started.log.append(KIND, &payload(1));
    let claimed = started.log.claim(100);
    let behind = started.log.append(KIND, &payload(2));
    wait_durable(&started.log, before.end);
    // The stop waits for nobody: the claimer is gone.
    started.writer.stop(TimeMs(2)).unwrap();
    assert_eq!(started.log.durable(), before.end);
    assert!(before.end < behind.end);
    drop(claimed);
    drop(started.log);

    let opened = home.open().unwrap();
    assert_eq!(payloads(&opened), [payload(1)]);
    assert_eq!(opened.recovered().end, before.end);
    assert!(100 < opened.recovered().uncommitted_bytes);
    assert_eq!(opened.recovered().cut_bytes(), opened.recovered().uncommitted_bytes);
}

#[test]
fn a_stop_with_a_log_that_is_full_behind_a_hole_leaves_it_to_the_next_start() {
    let home = Home::new();
    let started = home.start();
    let before = started.log.append(KIND, &payload(1));
    let claimed = started.log.claim(100);
    while started.log.room_for_cancel(0) {
        started.log.append(KIND, &vec![7; 100_000]);
    }
    while FRAME_ALIGN <= started.log.room() {
        started.log.append(KIND, &[]);
    }
    wait_durable(&started.log, before.end);
    started.writer.stop(TimeMs(2)).unwrap();
    drop((claimed, started.log));
    assert!(home.log_path().exists());
    let opened = home.open().unwrap();
    assert_eq!(payloads(&opened), [payload(1)]);
    assert!(!opened.recovered().closed && opened.recovered().log_taken);
}

#[test]
fn segments_that_change_between_two_readings_of_a_start_are_refused() {
    let (home, log) = Home::abandoned();
    drop(log);
    let opened = home.open().unwrap();
    let path = segment::path(&segment::directory(home.data.path()), 1);
    let good = std::fs::read(&path).unwrap();
    let used = good.iter().rposition(|&byte| byte != 0).unwrap();
    let (mut shorter, mut flipped) = (good.clone(), good.clone());
    shorter[used / 4_096 * 4_096..].fill(0);
    flipped[used] ^= 1;
    for (what, bad) in [("without its last row", shorter), ("a bit of it flipped", flipped)] {
        std::fs::write(&path, bad).unwrap();
        let refused = opened.for_each_frame::<Fault>(|_| Ok(())).unwrap_err();
        assert!(matches!(refused, Fault::Damaged(_)), "{what}: {refused}");
    }
    std::fs::write(&path, good).unwrap();
    assert_eq!(payloads(&opened), [payload(1)]);
}

#[test]
fn a_damaged_frame_in_the_log_file_refuses_to_start_and_names_the_place() {
    let home = Home::new();
    let started = home.start();
    // The journal writes none of these, so that the log file alone has them.
    started.log.fail();
    started.log.append(KIND, &payload(1));
    let span = started.log.append(KIND, &vec![5; 200_000]);
    started.writer.abandon().unwrap();
    drop(started.log);
    let file = std::fs::OpenOptions::new().write(true).open(home.log_path()).unwrap();
    file.write_all_at(&[0], 4_096 + span.start.0 + 1_000).unwrap();
    let error = home.open().unwrap_err().to_string();
    let position = format!("position {}", span.start.0);
    assert!(error.contains("outcry-") && error.contains(&position), "{error}");
    assert!(error.contains("frame checksum"), "{error}");
}

#[test]
fn every_start_raises_the_epoch_and_never_the_position() {
    let home = Home::new();
    let mut end = Position(64);
    for epoch in 1..8 {
        let opened = home.open().unwrap();
        assert_eq!(opened.recovered().epoch, epoch);
        assert!(end <= opened.recovered().end);
        end = opened.recovered().end;
        if epoch % 2 == 0 {
            start(opened).writer.abandon().unwrap();
        }
        // A start that is not carried through leaves no epoch behind.
        else {
            drop(opened);
            start(home.open().unwrap()).writer.stop(TimeMs(3)).unwrap();
        }
    }
    let found = home.scan().unwrap();
    assert_eq!((found.epoch, found.durable <= found.end), (7, true));
}

#[test]
fn the_log_spans_many_segments_and_starts() {
    let home = Home { segment_bytes: 5 * ROW_BYTES, ..Home::new() };
    let mut expected = Vec::new();
    for _ in 0..3 {
        let started = home.start();
        for _ in 0..60 {
            expected.push(payload(expected.len()));
            let span = started.log.append(KIND, expected.last().unwrap());
            wait_durable(&started.log, span.end);
        }
        started.writer.stop(TimeMs(2)).unwrap();
    }
    assert_eq!(home.payloads(), expected);
    let numbers = segment::numbers(&segment::directory(home.data.path())).unwrap();
    assert!(40 < numbers.len(), "{}", numbers.len());
}
