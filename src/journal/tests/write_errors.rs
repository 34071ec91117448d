//! A disk that fails at its n-th operation, for every n.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::Fault;
use super::super::disk::Disk;
use super::super::open::open_on;
use super::super::segment::ROW_BYTES;
use super::{BOOT, Bench, Home, KIND, SHARDS, payload, payloads, start, wait_durable};
use crate::domain::TimeMs;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Thousands of syncs go faster where they do nothing; what fails is up to the seam.
pub(super) fn in_memory() -> Home {
    let home = Home::new();
    match tempfile::tempdir_in("/dev/shm") {
        Ok(data) => Home { data, ..home },
        Err(_) => home,
    }
}

fn is_io(fault: &Fault, errno: i32) -> bool {
    matches!(fault, Fault::Io { error, .. } if error.raw_os_error() == Some(errno))
}

/// Runs with a disk that does `good` operations, and says how many frames were appended and whether
/// the disk failed.
fn run(home: &Home, good: u64, errno: i32) -> (usize, bool) {
    let opened = match open_on(home.options(), Disk::failing_after(good, errno), BOOT) {
        Ok(opened) => opened,
        Err(fault) => {
            assert!(is_io(&fault, errno), "{fault}");
            return (0, true);
        }
    };
    let told = Arc::new(AtomicBool::new(false));
    let bell = Arc::clone(&told);
    let waker = Box::new(move |_| bell.store(true, Ordering::Relaxed));
    let started = match opened.start(TimeMs(1), SHARDS, waker) {
        Ok(started) => started,
        Err(fault) => {
            assert!(is_io(&fault, errno), "{fault}");
            return (0, true);
        }
    };
    let log = started.log;
    let mut appended = 0;
    while appended < 24 && !log.failed() {
        let span = log.append(KIND, &payload(100 + appended));
        appended += 1;
        wait_durable(&log, span.end);
    }
    if !log.failed() {
        let stopped = started.writer.stop(TimeMs(2));
        assert!(stopped.as_ref().err().is_none_or(|fault| is_io(fault, errno)));
        return (appended, stopped.is_err());
    }
    // From the error on nothing becomes durable, whatever is committed.
    let durable = log.durable();
    assert!(durable < log.claimed());
    log.append(KIND, &payload(100 + appended));
    appended += 1;
    log.wake_writer();
    let fault = started.writer.stop(TimeMs(2)).unwrap_err();
    assert!(is_io(&fault, errno), "{fault}");
    assert_eq!(log.durable(), durable);
    assert!(told.load(Ordering::Relaxed), "whoever waits is told");
    assert!(home.log_path().exists());
    (appended, true)
}

fn nothing_is_lost_whenever_the_disk_fails(errno: i32) {
    let mut failures = 0;
    for good in 0.. {
        let home = Home { segment_bytes: 5 * ROW_BYTES, ..in_memory() };
        let first = home.start();
        for index in 0..5 {
            first.log.append(KIND, &payload(index));
        }
        first.writer.abandon().unwrap();
        drop(first.log);

        let (appended, failed) = run(&home, good, errno);
        let opened = home.open().unwrap();
        let expected: Vec<_> = (0..5).chain(100..100 + appended).map(payload).collect();
        assert_eq!(payloads(&opened), expected, "after {good} operations");
        // It also goes on from there.
        let started = start(opened);
        started.log.append(KIND, &payload(7));
        started.writer.stop(TimeMs(3)).unwrap();
        drop(started.log);
        assert_eq!(home.payloads().len(), expected.len() + 1);
        if !failed {
            break;
        }
        failures += 1;
    }
    assert!(40 < failures, "{failures} places to fail at");
}

#[test]
fn nothing_is_lost_whenever_the_disk_reports_an_error() {
    nothing_is_lost_whenever_the_disk_fails(EIO);
}

#[test]
fn nothing_is_lost_whenever_the_disk_is_full() {
    nothing_is_lost_whenever_the_disk_fails(ENOSPC);
}

#[test]
fn a_new_directory_on_a_failing_disk_can_be_opened_later() {
    for good in 0..12 {
        let home = Home::new();
        let opened = open_on(home.options(), Disk::failing_after(good, EIO), BOOT);
        let failed = opened.is_err_and(|fault| is_io(&fault, EIO));
        assert!(failed || 6 < good, "after {good} operations");
        assert_eq!(home.payloads().len(), 0);
    }
    let error = Fault::io("write", std::path::Path::new("x"))(io::Error::from_raw_os_error(ENOSPC));
    assert!(error.to_string().starts_with("x: write: No space left"), "{error}");
}

/// A bench in whose first segment ten rows are free, and the disk that it writes to.
fn bench_that_may_fail() -> (Bench, Disk) {
    let disk = Disk::failing_after(u64::MAX, ENOSPC);
    let home = Home { segment_bytes: 11 * ROW_BYTES, ..in_memory() };
    (Bench::on(home, disk.clone()), disk)
}

/// Waits for the thread that makes the next segment; returns why it failed, if it did.
fn spare_ended(bench: &mut Bench) -> Option<Fault> {
    let next = bench.segment(2);
    loop {
        match bench.batches.tend_spare() {
            Err(fault) => return Some(fault),
            Ok(()) if next.exists() => return None,
            Ok(()) => std::thread::yield_now(),
        }
    }
}

/// Writes `rows` batches of one row, and gives how many there are then.
fn write_rows(bench: &mut Bench, from: usize, rows: usize) -> usize {
    (from..from + rows).for_each(|index| bench.batch(&[payload(index)]));
    from + rows
}

#[test]
fn a_segment_that_could_not_be_made_ahead_is_made_when_it_is_needed() {
    let (mut bench, disk) = bench_that_may_fail();
    // Its file is made and cannot be filled.
    disk.fail_after(1);
    let fault = spare_ended(&mut bench).unwrap();
    assert!(is_io(&fault, ENOSPC), "{fault}");
    assert!(!bench.segment(2).with_extension("new").exists(), "nothing half takes the room");
    disk.mend();
    // More than the first segment takes, and nobody looks after the next one.
    let count = write_rows(&mut bench, 0, 15);
    let Bench { home, batches, .. } = bench;
    drop(batches);
    assert_eq!(home.payloads(), (0..count).map(payload).collect::<Vec<_>>());
}

#[test]
fn a_segment_that_could_not_be_made_ahead_is_tried_again_before_it_is_needed() {
    let (mut bench, disk) = bench_that_may_fail();
    let (mut count, mut tries) = (0, Vec::new());
    while count < 10 {
        disk.fail();
        // The try at the row, if there is one, is over when this returns.
        if bench.batches.tend_spare().is_ok() && bench.batches.makes_spare() {
            spare_ended(&mut bench).unwrap();
            tries.push(count);
        }
        disk.mend();
        count = write_rows(&mut bench, count, 1);
    }
    assert_eq!(tries, [0, 5, 8, 9], "whenever half of what was left is taken");
    assert!(!bench.segment(2).exists());
    write_rows(&mut bench, count, 1);
    assert!(bench.segment(2).exists());
}

#[test]
fn what_stands_in_the_way_of_a_segment_when_it_is_needed_is_the_fault() {
    let (mut bench, disk) = bench_that_may_fail();
    disk.fail();
    assert!(spare_ended(&mut bench).is_some());
    disk.mend();
    let count = write_rows(&mut bench, 0, 10);
    disk.fail();
    let fault = bench.batches.write().unwrap_err();
    assert!(is_io(&fault, ENOSPC) && fault.to_string().contains("00000002.new"), "{fault}");
    disk.mend();
    let Bench { home, batches, .. } = bench;
    drop(batches);
    assert_eq!(home.payloads(), (0..count).map(payload).collect::<Vec<_>>());
}
