//! A data directory that is moved, or replaced, while its exchange runs.

use std::path::Path;

use super::super::disk::Disk;
use super::super::open::{Claimed, Options, Started, open_on};
use super::super::{Fault, segment};
use super::{BOOT, Home, KIND, payload, payloads, wait_durable};
use crate::domain::TimeMs;

/// Copies segments while they are written, without one that is being made.
fn copy_segments(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for number in segment::numbers(from).unwrap() {
        std::fs::copy(segment::path(from, number), segment::path(to, number)).unwrap();
    }
}

/// Moves the segments away while the journal runs, as far as they are written then, and lets `meanwhile` see to what
/// stands in their place; returns what was durable, with one frame more that only the log gets.
fn moved(home: &Home, meanwhile: impl FnOnce(&Path, &Path)) -> Vec<Vec<u8>> {
    let Started { log, writer, .. } = home.start();
    let append = |index| {
        let span = log.append(KIND, &payload(index));
        wait_durable(&log, span.end);
        log.durable() == span.end
    };
    assert!(append(1));
    let segments = segment::directory(home.data.path());
    let aside = home.data.path().join("aside");
    copy_segments(&segments, &aside);
    assert!(append(2), "what was copied is behind by one frame");
    meanwhile(&segments, &aside);
    assert!(!append(3), "what goes to a file that the next start does not find is acknowledged to nobody");
    assert!(log.failed());
    let fault = writer.abandon().unwrap_err();
    assert!(matches!(&fault, Fault::Moved { segment } if segment.starts_with(&segments)), "{fault}");
    assert!(fault.to_string().contains("while it ran"), "{fault}");
    (1..=3).map(payload).collect()
}

#[test]
fn a_directory_that_is_put_back_where_it_was_has_lost_nothing() {
    let home = Home::new();
    let away = home.data.path().join("away");
    let expected = moved(&home, |segments, aside| {
        std::fs::rename(segments, &away).unwrap();
        std::fs::rename(aside, segments).unwrap();
    });
    assert!(matches!(home.open(), Err(Fault::LogAhead { .. })), "a copy is older than its log");
    std::fs::remove_dir_all(segment::directory(home.data.path())).unwrap();
    std::fs::rename(&away, segment::directory(home.data.path())).unwrap();
    assert_eq!(home.payloads(), expected);
}

#[test]
fn a_copy_made_while_it_was_written_has_the_rest_from_the_log_if_it_is_adopted() {
    let home = Home::new();
    let expected = moved(&home, |segments, aside| {
        std::fs::remove_dir_all(segments).unwrap();
        std::fs::rename(aside, segments).unwrap();
    });
    let fault = home.open().unwrap_err();
    assert!(matches!(fault, Fault::LogAhead { .. }) && fault.to_string().contains("--adopt-log"), "{fault}");
    let adopting = Options { claimed: Claimed::AdoptLog, ..home.options() };
    assert_eq!(payloads(&open_on(adopting, Disk::default(), BOOT).unwrap()), expected);
    assert_eq!(home.payloads(), expected, "they are in segments now");
}

/// Cuts a copy in its last batch, as one that was made while that was written.
fn tear(aside: &Path) {
    let path = segment::path(aside, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[last - 4..=last].fill(0);
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn a_copy_that_is_cut_in_its_last_batch_is_told_the_same_way_out() {
    let home = Home::new();
    let expected = moved(&home, |segments, aside| {
        std::fs::remove_dir_all(segments).unwrap();
        tear(aside);
        std::fs::rename(aside, segments).unwrap();
    });
    let fault = home.open().unwrap_err();
    assert!(fault.to_string().contains("--adopt-log"), "{fault}");
    let adopting = Options { claimed: Claimed::AdoptLog, ..home.options() };
    assert_eq!(payloads(&open_on(adopting, Disk::default(), BOOT).unwrap()), expected);
}

#[test]
fn a_directory_that_is_swapped_is_noticed_wherever_its_segment_ends() {
    // One of these fills the first segment, so that the next write begins the copy's spare.
    for rows in 1..=8 {
        let home = Home::new();
        let Started { log, writer, .. } = home.start();
        let segments = segment::directory(home.data.path());
        let (aside, away) = (home.data.path().join("aside"), home.data.path().join("away"));
        let durable = |index| {
            let span = log.append(KIND, &payload(index));
            wait_durable(&log, span.end);
            !log.failed()
        };
        while !segment::path(&segments, 2).exists() {
            std::thread::yield_now();
        }
        assert!((1..rows).all(durable));
        copy_segments(&segments, &aside);
        assert!(durable(rows));
        std::fs::rename(&segments, &away).unwrap();
        std::fs::rename(&aside, &segments).unwrap();
        assert!(!durable(rows + 1), "after {rows} the copy is written to");
        assert!(matches!(writer.abandon(), Err(Fault::Moved { .. })));
        drop(log);
        std::fs::remove_dir_all(&segments).unwrap();
        std::fs::rename(&away, &segments).unwrap();
        assert_eq!(home.payloads(), (1..=rows + 1).map(payload).collect::<Vec<_>>());
    }
}

#[test]
fn a_stop_leaves_the_log_where_segments_were_moved_away() {
    let home = Home::new();
    let Started { log, writer, .. } = home.start();
    let span = log.append(KIND, &payload(1));
    wait_durable(&log, span.end);
    let (segments, away) = (segment::directory(home.data.path()), home.data.path().join("away"));
    std::fs::rename(&segments, &away).unwrap();
    assert!(matches!(writer.stop(TimeMs(2)), Err(Fault::Moved { .. })));
    drop(log);
    std::fs::rename(&away, &segments).unwrap();
    assert!(home.log_path().exists());
    assert_eq!(home.payloads(), [payload(1)]);
}

#[test]
fn a_log_that_was_moved_away_is_told_once_and_a_stop_leaves_what_is_in_its_place() {
    let home = Home::new();
    let Started { log, writer, .. } = home.start();
    assert!(!log.look_for_file() && !log.is_lost());
    let (path, away) = (home.log_path(), home.data.path().join("away"));
    std::fs::rename(&path, &away).unwrap();
    assert!(log.look_for_file() && log.is_lost());
    assert!(!log.look_for_file() && log.is_lost(), "it is told once");
    writer.stop(TimeMs(2)).unwrap();

    // Nobody looked before the stop.
    let home = Home::new();
    let Started { writer, .. } = home.start();
    let path = home.log_path();
    std::fs::rename(&path, &away).unwrap();
    std::fs::write(&path, b"another's").unwrap();
    writer.stop(TimeMs(2)).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"another's");
}
