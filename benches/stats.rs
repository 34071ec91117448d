//! Recording one duration in a histogram, beside the crate whose bucket layout ours shares.
//!
//! Any thread may read ours while it is written. A good number: no more than the crate, which forbids that.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hdrhistogram::Histogram as Hdr;
use outcry::stats::{Histogram, LARGEST_NS};

/// Durations as of requests: most some 40 µs, one in 64 up to 17 ms.
fn durations() -> Vec<u64> {
    let mut state = 7_u64;
    (0..4_096)
        .map(|number| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let spread = if number % 64 == 0 { 1 << 24 } else { 1 << 14 };
            32_768 + (state >> 33) % spread
        })
        .collect()
}

fn record(criterion: &mut Criterion) {
    let durations = durations();
    let ours = Histogram::default();
    let mut hdr = Hdr::<u64>::new_with_bounds(1, LARGEST_NS, 2).unwrap();
    for ns in &durations {
        ours.record(*ns);
        hdr.record(*ns).unwrap();
    }
    let counted =
        hdr.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration()));
    assert_eq!(ours.counts().collect::<Vec<_>>(), counted.collect::<Vec<_>>());

    let mut group = criterion.benchmark_group("record a duration");
    let mut turns = durations.iter().cycle();
    group.bench_function("outcry", |bencher| {
        bencher.iter(|| ours.record(black_box(*turns.next().unwrap())));
    });
    group.bench_function("hdrhistogram", |bencher| {
        bencher.iter(|| hdr.record(black_box(*turns.next().unwrap())));
    });
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
