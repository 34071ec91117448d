//! The ring by itself, without files.

use std::sync::Arc;

use super::super::Fault;
use super::super::follow::Follower;
use super::super::frame::{FIRST_POSITION, FRAME_ALIGN, FRAME_BYTES_MAX, PAYLOAD_BYTES_MAX, frame_bytes};
use super::super::mark::CommittedMark;
use super::{Log, Look};
use crate::domain::Position;

const KIND: u16 = 32;

fn frames(log: &Arc<Log>, from: Position, limit: Position) -> Vec<Vec<u8>> {
    let mut follower = Follower::new(Arc::clone(log), from, None);
    let mut payloads = Vec::new();
    while let Some(frame) = follower.next(limit).unwrap() {
        assert_eq!(frame.kind, KIND);
        assert_eq!(frame.epoch, 1);
        payloads.push(frame.payload.to_vec());
    }
    payloads
}

#[test]
fn what_is_appended_is_followed_in_order() {
    let log = Arc::new(Log::anonymous(4_096));
    let payloads: Vec<Vec<u8>> = (0..20_u8).map(|length| vec![length; usize::from(length)]).collect();
    let mut end = FIRST_POSITION;
    for payload in &payloads {
        let span = log.append(KIND, payload);
        assert_eq!(span.start, end);
        end = span.end;
    }
    assert_eq!(log.claimed(), end);
    assert_eq!(CommittedMark::new(&log).advance(&log), end);
    assert_eq!(frames(&log, FIRST_POSITION, end), payloads);
}

#[test]
fn a_follower_stops_at_its_limit() {
    let log = Arc::new(Log::anonymous(4_096));
    let first = log.append(KIND, b"first");
    let second = log.append(KIND, b"second");
    assert_eq!(frames(&log, FIRST_POSITION, first.start).len(), 0);
    assert_eq!(frames(&log, FIRST_POSITION, first.end).len(), 1);
    assert_eq!(frames(&log, FIRST_POSITION, Position(second.end.0 - FRAME_ALIGN)).len(), 1);
    assert_eq!(frames(&log, FIRST_POSITION, second.end).len(), 2);
}

#[test]
fn no_mark_passes_a_claim_that_is_not_committed() {
    let log = Arc::new(Log::anonymous(4_096));
    let before = log.append(KIND, b"before");
    let hole = log.claim(100);
    let behind = log.append(KIND, b"behind");
    let mut mark = CommittedMark::new(&log);
    assert_eq!(mark.advance(&log), before.end);
    assert_eq!(frames(&log, FIRST_POSITION, behind.end).len(), 1);
    let span = log.commit(hole, KIND, &[7; 100]);
    assert_eq!(span.end, behind.start);
    assert_eq!(mark.advance(&log), behind.end);
    assert_eq!(frames(&log, FIRST_POSITION, behind.end).len(), 3);
}

#[test]
fn frames_of_every_size_survive_many_laps() {
    let log = Arc::new(Log::anonymous(2_048));
    let mut mark = CommittedMark::new(&log);
    let mut follower = Follower::new(Arc::clone(&log), FIRST_POSITION, None);
    for turn in 0..2_000_usize {
        let payload = vec![u8::try_from(turn % 251).unwrap() | 1; turn * 7 % 600];
        let span = log.append(KIND, &payload);
        assert_eq!(mark.advance(&log), span.end);
        let frame = follower.next(span.end).unwrap().unwrap();
        assert_eq!(frame.span, span);
        assert_eq!(frame.payload, payload);
        log.free(span.end);
    }
    assert!(20 * log.ring_bytes() < log.claimed().0);
}

#[test]
fn the_ring_is_never_quite_full() {
    let log = Log::anonymous(1_024);
    assert_eq!(log.room(), 960);
    let mut last = FIRST_POSITION;
    while log.room() != 0 {
        last = log.append(KIND, &[1; 16]).end;
    }
    // A walk must stop although the next word belongs to the oldest frame.
    let mut mark = CommittedMark::new(&log);
    assert_eq!(mark.advance(&log), last);
    assert_eq!(mark.advance(&log), last);
    log.free(Position(FIRST_POSITION.0 + 64));
    assert_eq!(log.room(), 64);
}

#[test]
#[should_panic(expected = "the caller saw the room")]
fn a_claim_without_room_is_a_bug() {
    let log = Log::anonymous(1_024);
    for _ in 0..16 {
        log.append(KIND, &[]);
    }
}

#[test]
fn a_lapped_reader_is_told_and_a_lapped_mark_moves_on() {
    let log = Arc::new(Log::anonymous(1_024));
    let mut mark = CommittedMark::new(&log);
    let mut follower = Follower::new(Arc::clone(&log), FIRST_POSITION, None);
    let mut end = FIRST_POSITION;
    for _ in 0..40 {
        end = log.append(KIND, b"payload of some length").end;
        log.free(end);
    }
    assert!(matches!(follower.next(end), Err(Fault::Lapped { position: FIRST_POSITION, .. })));
    assert_eq!(log.look(FIRST_POSITION), Look::Lapped);
    assert_eq!(mark.advance(&log), end);
}

#[test]
fn the_largest_frame_fits_and_a_byte_more_is_a_bug() {
    let log = Arc::new(Log::anonymous(3 * FRAME_BYTES_MAX as u64));
    let payload = vec![5; PAYLOAD_BYTES_MAX];
    let span = log.append(KIND, &payload);
    assert_eq!(span.end.0 - span.start.0, FRAME_BYTES_MAX as u64);
    assert_eq!(frames(&log, span.start, span.end), [payload]);
    assert!(std::panic::catch_unwind(|| frame_bytes(PAYLOAD_BYTES_MAX + 1)).is_err());
}

#[test]
fn a_bulk_writer_stops_where_a_quarter_of_the_ring_is_not_durable_or_no_quarter_is_free() {
    let log = Log::anonymous(64 * 1_024);
    let quarter = log.ring_bytes() / 4;
    while log.room_for_bulk() {
        log.append(KIND, &[]);
    }
    assert_eq!(log.claimed().0 - log.durable().0, quarter + FRAME_ALIGN);
    log.set_durable(log.claimed());
    while log.room_for_bulk() {
        let span = log.append(KIND, &[]);
        log.set_durable(span.end);
    }
    assert_eq!(log.room(), quarter - FRAME_ALIGN);
    log.free(log.claimed());
    assert!(log.room_for_bulk());
}

#[test]
fn room_is_kept_for_every_claimer_and_more_of_it_for_cancels() {
    let log = Log::anonymous(16 * 1_024 * 1_024);
    let slack = Log::slack(2);
    assert_eq!(slack, 4 * 2 * FRAME_BYTES_MAX as u64);
    let payload = vec![1; PAYLOAD_BYTES_MAX];
    while log.room_for_order(2) {
        log.append(KIND, &payload);
    }
    assert!(!log.room_for_bulk());
    assert!(log.room_for_cancel(2));
    while log.room_for_cancel(2) {
        log.append(KIND, &[]);
    }
    // Each claimer's worst case still fits.
    for _ in 0..7 {
        log.append(KIND, &payload);
    }
}

#[test]
fn many_threads_append_and_a_follower_sees_each_frame_whole() {
    let log = Arc::new(Log::anonymous(64 * 1_024));
    let (threads, each) = (3_u8, 3_000_u32);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let log = &log;
            scope.spawn(move || {
                for index in 0..each {
                    while log.room() < 4_096 {
                        std::thread::yield_now();
                    }
                    let mut payload = vec![thread; 5 + index as usize % 300];
                    payload[..4].copy_from_slice(&index.to_le_bytes());
                    log.append(KIND, &payload);
                }
            });
        }
        let mut mark = CommittedMark::new(&log);
        let mut follower = Follower::new(Arc::clone(&log), FIRST_POSITION, None);
        let mut next = [0_u32; 3];
        while next.iter().any(|&next| next < each) {
            let limit = mark.advance(&log);
            while let Some(frame) = follower.next(limit).unwrap() {
                let index = u32::from_le_bytes(frame.payload[..4].try_into().unwrap());
                let thread = usize::from(frame.payload[4]);
                assert!(frame.payload[4..].iter().all(|&byte| usize::from(byte) == thread));
                assert_eq!(frame.payload.len(), 5 + index as usize % 300);
                assert_eq!(next[thread], index);
                next[thread] += 1;
            }
            log.free(limit);
        }
    });
}
