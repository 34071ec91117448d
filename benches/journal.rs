//! What it costs to write a decision down. Beside the log, the obvious twin: a buffer under a lock,
//! with the same checksum. A good number: an append of an order below 50 ns, so that the journal is
//! a fraction of the matching; a durable append within twice the disk's own sync.

#![allow(missing_docs, reason = "criterion's macros make public items")]

#[path = "loopback/figures.rs"]
mod figures;
#[path = "loopback/folder.rs"]
mod folder;

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

use outcry::domain::TimeMs;
use outcry::journal::{CommittedMark, Durability, FIRST_POSITION, Follower, Log, Options, open};

/// Any kind of record.
const KIND: u16 = 32;
/// Half of the default log.
const RING_BYTES: u64 = 16 * 1024 * 1024;
/// An order's record without fills has the length of the second of these, or of the third with a deposit wallet's
/// signature.
const PAYLOADS: [usize; 4] = [16, 288, 544, 1_000];

fn appends(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    for bytes in PAYLOADS {
        let payload = vec![7; bytes];
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::new("log", bytes), |bencher| {
            let log = Log::anonymous(RING_BYTES);
            bencher.iter(|| {
                let span = log.append(KIND, black_box(&payload));
                if log.room() < RING_BYTES / 2 {
                    log.free(span.end);
                }
            });
            assert_eq!(CommittedMark::new(&log).advance(&log), log.claimed());
        });
        group.bench_function(BenchmarkId::new("naive", bytes), |bencher| {
            let buffer = Mutex::new(Vec::with_capacity(1024 * 1024));
            bencher.iter(|| {
                let checksum = crc_fast::crc32_iscsi(black_box(&payload));
                let mut buffer = buffer.lock().expect("nobody panics");
                if 1024 * 1024 < buffer.len() + payload.len() + 4 {
                    buffer.clear();
                }
                buffer.extend_from_slice(&checksum.to_le_bytes());
                buffer.extend_from_slice(&payload);
            });
        });
    }
    group.finish();
}

fn follows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("follow");
    for bytes in PAYLOADS {
        let payload = vec![7; bytes];
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            let log = Arc::new(Log::anonymous(RING_BYTES));
            let mut follower = Follower::new(Arc::clone(&log), FIRST_POSITION, None);
            bencher.iter(|| {
                let span = log.append(KIND, &payload);
                let frame = follower.next(span.end).expect("never lapped").expect("committed");
                assert_eq!(frame.payload.len(), bytes);
                if log.room() < RING_BYTES / 2 {
                    log.free(span.end);
                }
            });
        });
    }
    group.finish();
}

fn durable(criterion: &mut Criterion) {
    let directory = folder::on_disk();
    let options = Options {
        log_path: Some(directory.path().join("log")),
        durability: Durability::Committed,
        ..Options::new(directory.path())
    };
    let opened = open(options).expect("the directory is new");
    let started = opened.start(TimeMs(1), 1, Box::new(|_| {})).expect("the log is large enough");
    let payload = [7; 288];
    criterion.bench_function("durable/288", |bencher| {
        bencher.iter(|| {
            let span = started.log.append(KIND, &payload);
            started.log.wake_writer();
            while started.log.durable() < span.end {
                std::hint::spin_loop();
            }
        });
    });
    started.writer.stop(TimeMs(2)).expect("the disk works");
}

criterion_group!(journal, appends, follows, durable);
criterion_main!(journal);
