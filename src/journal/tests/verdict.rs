//! Segments and log file that do not fit together: what is said of them.

use super::pack::pack_all;
use super::snapshots::{keep, started};
use super::*;
use crate::journal::logfile::LogFile;
use crate::journal::segment::ROW_BYTES;
use crate::journal::snapshot::Base;

/// A home that died with sealed segments, a snapshot behind most of them, and a log that still has
/// every frame. Only the snapshot's end and what is behind it are scanned at a start.
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

/// The file of a segment, and how many of its bytes are not zeros at its end.
fn used(home: &Home, number: u64) -> (PathBuf, Vec<u8>, usize) {
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
        for number in 1..base.segment() {
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
        assert!(20 < refused, "{refused}");
        assert!(started(&home).is_ok());
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
