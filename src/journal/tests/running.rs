//! Laps, followers that fall behind, and looking from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::follow::Follower;
use super::super::layout::Start;
use super::super::{Fault, History, survey};
use super::{Home, KIND, SHARDS, payload, wait_durable};
use crate::domain::{Position, TimeMs};

/// Payloads that fill the ring several times over.
fn large(index: usize) -> Vec<u8> {
    let byte = u8::try_from(index % 251 + 1).unwrap();
    vec![byte; 20_000 + index * 97_711 % 280_000]
}

#[test]
fn a_follower_that_was_lapped_reads_segments_until_it_has_caught_up() {
    let home = Home { segment_bytes: 2 * 1024 * 1024, ..Home::new() };
    let started = home.start();
    let mut slow = Follower::new(Arc::clone(&started.log), Position(64), Some(Arc::clone(&started.segments)));
    let mut spans = Vec::new();
    for index in 0..120 {
        while !started.log.room_for_order(SHARDS) {
            started.log.wake_writer();
            std::thread::yield_now();
        }
        spans.push(started.log.append(KIND, &large(index)));
    }
    let end = spans.last().unwrap().end;
    wait_durable(&started.log, end);
    assert!(4 * started.log.ring_bytes() < end.0, "several laps");
    assert!(Position(64) < started.log.oldest());

    assert_eq!(slow.next(end).unwrap().unwrap().kind, Start::KIND);
    for (index, span) in spans.iter().enumerate() {
        let frame = slow.next(end).unwrap().unwrap();
        assert_eq!((frame.span, frame.kind), (*span, KIND), "frame {index}");
        assert!(frame.payload == large(index), "frame {index}");
    }
    assert!(slow.next(end).unwrap().is_none());

    let mut history = History::new(Arc::clone(&started.log), Some(Arc::clone(&started.segments)));
    for index in (0..spans.len()).rev().step_by(7) {
        let frame = history.frame(spans[index].start).unwrap().unwrap();
        assert_eq!(frame.span, spans[index]);
        assert!(frame.payload == large(index), "frame {index}");
    }
    let mut alone = Follower::new(Arc::clone(&started.log), Position(64), None);
    assert!(matches!(alone.next(end), Err(Fault::Lapped { .. })));
    started.writer.stop(TimeMs(2)).unwrap();
}

#[test]
fn followers_beside_writers_see_every_frame_once_and_whole() {
    let home = Home { segment_bytes: 2 * 1024 * 1024, ..Home::new() };
    let started = home.start();
    let log = &started.log;
    let count = 4_000_u64;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let segments = Some(Arc::clone(&started.segments));
            scope.spawn(move || {
                let mut follower = Follower::new(Arc::clone(log), Position(64), segments);
                let mut seen = 0;
                while seen < count {
                    match follower.next(log.durable()).unwrap() {
                        Some(frame) if frame.kind == KIND => {
                            assert_eq!(frame.payload[..8], seen.to_le_bytes());
                            assert_eq!(frame.payload.len() as u64, 8 + seen * 31 % 9_000);
                            seen += 1;
                        }
                        Some(_) => {}
                        None => std::thread::yield_now(),
                    }
                }
            });
        }
        for index in 0..count {
            while !log.room_for_order(SHARDS) {
                log.wake_writer();
                std::thread::yield_now();
            }
            let mut payload = vec![1; 8 + usize::try_from(index * 31 % 9_000).unwrap()];
            payload[..8].copy_from_slice(&index.to_le_bytes());
            log.append(KIND, &payload);
        }
        wait_durable(log, log.claimed());
    });
    assert!(4 * log.ring_bytes() < log.claimed().0);
    started.writer.stop(TimeMs(2)).unwrap();
}

#[test]
fn a_death_in_any_lap_of_the_ring_loses_nothing() {
    let home = Home { segment_bytes: 2 * 1024 * 1024, ..Home::new() };
    let started = home.start();
    for index in 0..90 {
        while !started.log.room_for_order(SHARDS) {
            started.log.wake_writer();
            std::thread::yield_now();
        }
        started.log.append(KIND, &large(index));
    }
    started.writer.abandon().unwrap();
    assert!(2 * started.log.ring_bytes() < started.log.claimed().0);
    drop(started.log);
    let found = home.payloads();
    assert_eq!(found.len(), 90);
    assert!(found.iter().enumerate().all(|(index, found)| *found == large(index)));
}

#[test]
fn the_waker_hears_of_every_step_of_the_durable_mark() {
    let home = Home::new();
    let heard = Arc::new(AtomicU64::new(0));
    let ear = Arc::clone(&heard);
    let waker = Box::new(move |upto: Position| {
        assert!(ear.swap(upto.0, Ordering::Relaxed) < upto.0);
    });
    let started = home.open().unwrap().start(TimeMs(1), SHARDS, waker).unwrap();
    for index in 0..20 {
        let span = started.log.append(KIND, &payload(index));
        wait_durable(&started.log, span.end);
    }
    started.writer.stop(TimeMs(2)).unwrap();
    assert_eq!(heard.load(Ordering::Relaxed), started.log.durable().0);
}

#[test]
fn a_survey_reads_beside_a_running_server_and_after_it() {
    let home = Home::new();
    let look = || {
        let mut count = 0_u64;
        let survey = survey(home.data.path(), None, None, |_| {
            count += 1;
            Ok::<(), Fault>(())
        })
        .unwrap();
        assert_eq!(survey.frames, count);
        survey
    };
    let started = home.start();
    let span = started.log.append(KIND, &payload(1));
    wait_durable(&started.log, span.end);
    let running = look();
    assert_eq!((running.end, running.frames, running.in_use), (span.end, 2, true));
    assert!(home.data.path().exists());
    started.writer.stop(TimeMs(2)).unwrap();
    let end = started.log.durable();
    drop(started.log);
    let stopped = look();
    assert_eq!((stopped.end, stopped.frames, stopped.in_use), (end, 3, false));
    assert_eq!((home.scan().unwrap().durable, stopped.cut, stopped.epoch), (end, None, 1));
}

#[test]
fn a_survey_counts_what_only_the_log_file_has() {
    let home = Home::new();
    let started = home.start();
    started.writer.abandon().unwrap();
    let boot = super::super::identity::boot_id().unwrap();
    drop(started.log);
    let opened = super::open_on(home.options(), super::Disk::default(), boot).unwrap();
    let started = super::start(opened);
    wait_durable(&started.log, started.log.claimed());
    started.writer.abandon().unwrap();
    let span = started.log.append(KIND, &payload(1));
    drop(started.log);
    let survey = survey(home.data.path(), Some(&home.log_path()), None, |_| Ok::<(), Fault>(())).unwrap();
    assert_eq!(survey.log_bytes, span.end.0 - span.start.0);
    let text = survey_of_nothing(home.memory.path());
    assert!(text.contains("it has no `identity`"), "{text}");
}

fn survey_of_nothing(path: &std::path::Path) -> String {
    survey(path, None, None, |_| Ok::<(), Fault>(())).unwrap_err().to_string()
}
