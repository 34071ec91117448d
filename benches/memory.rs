//! What the fixed-capacity structures cost, each beside the library that most people would use instead.
//!
//! | ours | beside | a good number |
//! |---|---|---|
//! | ring | `rtrb`, crossbeam's `ArrayQueue` | no more than `rtrb` across two threads |
//! | index | the standard `HashMap`, with its hash and with ours | no more than the map with our hash |
//! | arena | `slab`, a `Box` a value | no more than `slab` |
//! | bitset | `BTreeSet` | below 10 ns, however long the gap |
//!
//! The two threads run on two CPUs only if the process has two.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam::queue::ArrayQueue;
use crossbeam::utils::Backoff;
use outcry::memory::arena::Arena;
use outcry::memory::bitset::Shape;
use outcry::memory::ring::ring;
use outcry::memory::table::{Index, digest_key, spread};

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// Vigna's splitmix64.
fn random(number: u64) -> u64 {
    let mut word = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn below(bound: usize, number: u64) -> usize {
    usize::try_from(random(number) % bound as u64).unwrap()
}

/// A message that fills a cache line together with a ring's sequence.
type Message = [u64; 7];

const SLOTS: usize = 1_024;
/// Messages of one pass from thread to thread: enough to make the thread's start negligible.
const MESSAGES: u64 = 500_000;

/// One thread has both ends: what a push and a pop cost where neither waits.
fn one_thread(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring, push and pop");
    let (mut producer, mut consumer) = ring(SLOTS);
    there_and_back(&mut group, "outcry", |sent| producer.push(sent).is_ok(), || consumer.pop());
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(SLOTS);
    there_and_back(&mut group, "rtrb", |sent| producer.push(*sent).is_ok(), || consumer.pop().ok());
    let queue = ArrayQueue::new(SLOTS);
    there_and_back(&mut group, "crossbeam", |sent| queue.push(*sent).is_ok(), || queue.pop());
    group.finish();
}

fn there_and_back(
    group: &mut Group,
    name: &str,
    mut push: impl FnMut(&Message) -> bool,
    mut pop: impl FnMut() -> Option<Message>,
) {
    let mut number = 0;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            number += 1;
            assert!(push(black_box(&[number; 7])));
            assert_eq!(pop(), Some([number; 7]));
        });
    });
}

fn two_threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring, 500,000 messages from thread to thread");
    group.sample_size(10).throughput(Throughput::Elements(MESSAGES));
    let (mut producer, mut consumer) = ring(SLOTS);
    across(&mut group, "outcry", |sent| producer.push(sent).is_ok(), || consumer.pop());
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(SLOTS);
    across(&mut group, "rtrb", |sent| producer.push(*sent).is_ok(), || consumer.pop().ok());
    let queue = ArrayQueue::new(SLOTS);
    across(&mut group, "crossbeam", |sent| queue.push(*sent).is_ok(), || queue.pop());
    group.finish();
}

fn across(
    group: &mut Group,
    name: &str,
    mut push: impl FnMut(&Message) -> bool + Send,
    mut pop: impl FnMut() -> Option<Message> + Send,
) {
    let expected = (0..MESSAGES).fold(0, |sum, number| chained(sum, &[number; 7]));
    let mut pass = || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    let backoff = Backoff::new();
                    while !push(&[number; 7]) {
                        backoff.snooze();
                    }
                }
            });
            (0..MESSAGES).fold(0, |sum, _| {
                let backoff = Backoff::new();
                loop {
                    match pop() {
                        Some(message) => break chained(sum, &message),
                        None => backoff.snooze(),
                    }
                }
            })
        })
    };
    assert_eq!(pass(), expected, "{name}: every message once, whole, and in order");
    group.bench_function(name, |bencher| bencher.iter(|| assert_eq!(pass(), expected)));
}

/// A checksum that depends on every word of the messages and on their order.
fn chained(sum: u64, message: &Message) -> u64 {
    message.iter().fold(sum, |sum, word| sum.rotate_left(5).wrapping_add(*word))
}

/// Numbers by digest.
trait Table {
    fn insert(&mut self, digest: &Digest, number: u32);
    fn find(&self, digest: &Digest) -> Option<u32>;
    fn remove(&mut self, digest: &Digest) -> Option<u32>;
}

type Digest = [u8; 32];

/// The room's hash for a standard map, which takes any hasher: a digest is random already.
#[derive(Clone, Copy, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        // The length of the array is hashed first, and is ignored.
        if let Ok(digest) = bytes.try_into() {
            self.0 = hash(digest);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn hash(digest: &Digest) -> u64 {
    spread(digest_key(digest), 0x9e37_79b9_7f4a_7c15)
}

/// Our index keeps no keys: those are stored with what the numbers name.
struct Ours {
    index: Index,
    digests: Vec<Digest>,
}

impl Ours {
    fn with_capacity(numbers_max: u32) -> Self {
        Self { index: Index::with_capacity(numbers_max), digests: vec![[0; 32]; numbers_max as usize] }
    }
}

impl Table for Ours {
    fn insert(&mut self, digest: &Digest, number: u32) {
        self.digests[number as usize] = *digest;
        assert!(self.index.insert(hash(digest), number));
    }

    fn find(&self, digest: &Digest) -> Option<u32> {
        self.index.find(hash(digest), |number| self.digests[number as usize] == *digest)
    }

    fn remove(&mut self, digest: &Digest) -> Option<u32> {
        let number = self.find(digest)?;
        self.index.remove(hash(digest), number);
        Some(number)
    }
}

impl<H: BuildHasher> Table for HashMap<Digest, u32, H> {
    fn insert(&mut self, digest: &Digest, number: u32) {
        assert_eq!(self.insert(*digest, number), None);
    }

    fn find(&self, digest: &Digest) -> Option<u32> {
        self.get(digest).copied()
    }

    fn remove(&mut self, digest: &Digest) -> Option<u32> {
        self.remove(digest)
    }
}

fn tables(criterion: &mut Criterion) {
    for count in [10_000_u32, 1_000_000] {
        let digests: Vec<Digest> = (0..2 * count).map(|number| digest(number.into())).collect();
        let capacity = count as usize;
        let mut ours = Ours::with_capacity(count);
        let mut std = HashMap::with_capacity(capacity);
        let mut std_spread = HashMap::with_capacity_and_hasher(capacity, BuildHasherDefault::<Spread>::new());
        let tables: [&mut dyn Table; 3] = [&mut ours, &mut std, &mut std_spread];
        for table in tables {
            for (digest, number) in digests.iter().zip(0..count) {
                table.insert(digest, number);
            }
        }
        for digest in &digests {
            assert_eq!(ours.find(digest), std.find(digest));
            assert_eq!(ours.find(digest), std_spread.find(digest));
        }
        let mut group = criterion.benchmark_group(format!("digests, {count}, find"));
        find(&mut group, "outcry", &ours, &digests);
        find(&mut group, "std", &std, &digests);
        find(&mut group, "std, our hash", &std_spread, &digests);
        group.finish();
        let mut group = criterion.benchmark_group(format!("digests, {count}, replace one"));
        replace(&mut group, "outcry", &mut ours, &digests);
        replace(&mut group, "std", &mut std, &digests);
        replace(&mut group, "std, our hash", &mut std_spread, &digests);
        group.finish();
    }
}

fn digest(number: u64) -> Digest {
    let mut digest = [0; 32];
    for (part, word) in digest.chunks_exact_mut(8).zip(number * 4..) {
        part.copy_from_slice(&random(word).to_le_bytes());
    }
    digest
}

/// Looks up random digests, the first half of which are in the table.
fn find(group: &mut Group, name: &str, table: &impl Table, digests: &[Digest]) {
    let mut turn = 0;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            turn += 1;
            let wanted = below(digests.len(), turn);
            let found = table.find(black_box(&digests[wanted]));
            assert_eq!(found.is_some(), wanted < digests.len() / 2);
        });
    });
}

/// Removes the oldest digest and inserts a new one under its number.
fn replace(group: &mut Group, name: &str, table: &mut impl Table, digests: &[Digest]) {
    let mut oldest = 0;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let newest = (oldest + digests.len() / 2) % digests.len();
            let number = table.remove(black_box(&digests[oldest]));
            table.insert(&digests[newest], number.unwrap());
            oldest = (oldest + 1) % digests.len();
        });
    });
}

/// A cache line, as a resting order takes.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

const LINES: usize = 100_000;

/// Random values are removed, each for a new one.
fn arenas(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("arena, 100,000 lines, replace one");
    let line = |number| Line([number; 8]);
    let mut arena = Arena::with_capacity(u32::try_from(LINES).unwrap());
    let mut slots: Vec<_> = (0..LINES as u64).map(|number| arena.insert(line(number)).unwrap()).collect();
    churn(&mut group, "outcry", |at, number| {
        let gone = arena[slots[at]];
        arena.remove(slots[at]);
        slots[at] = arena.insert(line(number)).unwrap();
        gone.0[7]
    });
    let mut slab = slab::Slab::with_capacity(LINES);
    let mut keys: Vec<_> = (0..LINES as u64).map(|number| slab.insert(line(number))).collect();
    churn(&mut group, "slab", |at, number| {
        let gone = slab.remove(keys[at]);
        keys[at] = slab.insert(line(number));
        gone.0[7]
    });
    let mut boxes: Vec<_> = (0..LINES as u64).map(|number| Box::new(line(number))).collect();
    churn(&mut group, "boxes", |at, number| {
        let gone = std::mem::replace(&mut boxes[at], Box::new(line(number)));
        gone.0[7]
    });
    group.finish();
}

/// Calls `replace` with a place and its next value; it must return the value before.
fn churn(group: &mut Group, name: &str, mut replace: impl FnMut(usize, u64) -> u64) {
    let mut values: Vec<u64> = (0..LINES as u64).collect();
    let mut number = LINES as u64;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            number += 1;
            let at = below(LINES, number);
            let gone = replace(black_box(at), number);
            assert_eq!(gone, std::mem::replace(&mut values[at], number));
        });
    });
}

const PRICES: usize = 10_000;

/// The next price that has orders, on a grid on which one price in 500 has some.
fn bitsets(criterion: &mut Criterion) {
    let occupied: BTreeSet<usize> = (0..PRICES as u64 / 500).map(|number| below(PRICES, number)).collect();
    let shape = Shape::of(PRICES);
    let mut bits = vec![0; shape.len()];
    for price in &occupied {
        shape.insert(&mut bits, *price);
    }
    for price in 0..PRICES {
        assert_eq!(shape.next_up(&bits, price), occupied.range(price..).next().copied());
    }
    let mut group = criterion.benchmark_group("bitset, next of 10,000 prices");
    let mut turn = 0;
    let mut any = || {
        turn += 1;
        below(PRICES, turn)
    };
    group.bench_function("outcry", |bencher| bencher.iter(|| shape.next_up(black_box(&bits), any())));
    group.bench_function("btree", |bencher| {
        bencher.iter(|| black_box(&occupied).range(any()..).next().copied());
    });
    group.finish();
}

criterion_group!(benches, one_thread, two_threads, tables, arenas, bitsets);
criterion_main!(benches);
