//! Second laps: freeing, claiming anew, walking and reading at the same time.

use loom::sync::Arc;

use crate::domain::Position;
use crate::journal::frame::{FIRST_POSITION, read};
use crate::journal::log::{Log, Look};
use crate::journal::mark::CommittedMark;

const KIND: u16 = 32;
/// Four lines: three can be claimed.
const RING_BYTES: u64 = 256;

/// The payload of the frame at `at`, if the ring still has it, whole.
fn payload(log: &Log, at: Position) -> Option<u8> {
    let mut bytes = [0; 64];
    match log.copy(at, &mut bytes) {
        Look::Bytes(length) => {
            let frame = read(&bytes[..length], at, 1).expect("what is read is whole");
            Some(frame.payload[0])
        }
        Look::Lapped | Look::NotYet => None,
    }
}

#[test]
fn a_reader_that_is_lapped_is_told_and_never_sees_a_torn_frame() {
    loom::model(|| {
        let log = Arc::new(Log::anonymous(RING_BYTES));
        let mut end = FIRST_POSITION;
        for byte in 1..=3 {
            end = log.append(KIND, &[byte]).end;
        }
        let writer = {
            let log = Arc::clone(&log);
            loom::thread::spawn(move || {
                log.free(Position(FIRST_POSITION.0 + 128));
                // The second of these is written where the frame that is being read was.
                log.append(KIND, &[4]);
                log.append(KIND, &[5]);
            })
        };
        if let Some(byte) = payload(&log, FIRST_POSITION) {
            assert_eq!(byte, 1);
        }
        writer.join().expect("the writer does not panic");
        assert_eq!(payload(&log, FIRST_POSITION), None);
        assert_eq!(payload(&log, Position(end.0 + 64)), Some(5));
    });
}

#[test]
fn a_claim_never_gets_bytes_that_are_still_being_zeroed() {
    loom::model(|| {
        let log = Arc::new(Log::anonymous(RING_BYTES));
        for byte in 1..=3 {
            log.append(KIND, &[byte]);
        }
        let keeper = {
            let log = Arc::clone(&log);
            loom::thread::spawn(move || log.free(Position(FIRST_POSITION.0 + 64)))
        };
        while log.room() < 64 {
            loom::thread::yield_now();
        }
        let span = log.append(KIND, &[4]);
        keeper.join().expect("the keeper does not panic");
        assert_eq!(payload(&log, span.start), Some(4));
        assert_eq!(CommittedMark::new(&log).advance(&log), span.end);
    });
}

#[test]
fn a_mark_that_was_lapped_goes_on_at_what_is_left() {
    loom::model(|| {
        let log = Arc::new(Log::anonymous(RING_BYTES));
        let mut mark = CommittedMark::new(&log);
        let first = log.append(KIND, &[1]);
        let second = log.append(KIND, &[2]);
        let writer = {
            let log = Arc::clone(&log);
            loom::thread::spawn(move || {
                log.free(first.end);
                log.append(KIND, &[3]).end
            })
        };
        let seen = mark.advance(&log);
        assert!(second.end <= seen);
        let end = writer.join().expect("the writer does not panic");
        assert!(seen <= end);
        assert_eq!(mark.advance(&log), end);
    });
}
