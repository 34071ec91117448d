//! All buckets of the process: a table of fixed size that every loop charges.
//!
//! A bucket is one word, so that a charge is one compare-and-swap and a client with connections on several
//! loops has one bucket and not several:
//!
//! | bits | what |
//! |---:|---|
//! | upper 22 | the tag: the same bits of the hash of client and scope, whose lower bits choose the set |
//! | lower 42 | the theoretical arrival time in microseconds, modulo 2^42 |
//!
//! Eight words are a set, which is one cache line. The table never grows: a client that is not in its set
//! replaces the bucket **nearest to idle**. With an idle bucket nothing is lost; with any other, the smallest
//! count of the set is. Made-up addresses that come once each are always nearer to idle than a client at its
//! limit, so they push out each other. Hashes contain a secret of this process, so nobody can aim at a set.
//!
//! - Two clients with the same set and tag share a bucket: a chance of 8 in 4 million, and never the same two
//!   for longer than a process lives.
//! - Two loops that see a client for the first time while the rest of its set changes may take two places for
//!   it; the first one counts from then on, and one charge is lost. No other charge ever is (`tests/loom`).
//! - Each loop reads the time once a turn, so that of another may be behind: a bucket is then further ahead for the
//!   one than it was for the other.
//! - 42 bits are 50 days. A word that is further ahead than its bucket can be for the slowest loop counts as idle, so
//!   the time may wrap around or start again without locking anybody out for longer than two windows and a
//!   minute.

use super::moment::{Moment, US_PER_S, WAIT_US_MAX};
use super::rate::{COUNT_MAX, Cost, Rate, WINDOW_S_MAX};
use crate::memory::sync::{AtomicU64, Ordering};

/// Buckets in a set: a cache line of words.
const WAYS: usize = 8;
const TIME_BITS: u32 = 42;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// How long a loop's turn may last, and so how far the time of one may be behind another's.
const TURN_US_MAX: u64 = 60_000_000;
/// No bucket is further ahead: twice the longest window, its intervals rounded up, the longest wait, and the longest
/// turn.
const AHEAD_US_MAX: u64 = 2 * (WINDOW_S_MAX as u64 * US_PER_S + COUNT_MAX as u64) + WAIT_US_MAX + TURN_US_MAX;

const _: () = assert!(AHEAD_US_MAX < TIME_MASK / 2, "what is ahead is told from what is past");

/// The table.
#[derive(Debug)]
pub(super) struct Buckets {
    words: Box<[AtomicU64]>,
}

/// A bucket's answer to a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether the charge was taken; if not, nothing has changed.
    pub(super) fits: bool,
    /// How far ahead the bucket is now.
    pub(super) ahead_us: u64,
    /// How long the request waits, or would have to.
    pub(super) wait_us: u64,
}

impl Buckets {
    /// At least `count` buckets, all idle.
    pub(super) fn new(count: usize) -> Self {
        let sets = count.div_ceil(WAYS).next_power_of_two();
        Self { words: (0..sets * WAYS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Charges the bucket of this hash, unless the request would have to wait longer than `wait_us_max`.
    pub(super) fn charge(&self, hash: u64, rate: Rate, cost: Cost, now: Moment, wait_us_max: u64) -> Taken {
        self.change(hash, rate, now, |before_us| {
            let filled = rate.fill(before_us, cost);
            let fits = filled.wait_us <= wait_us_max;
            let ahead_us = if fits { filled.ahead_us } else { before_us };
            (fits.then_some(ahead_us), Taken { fits, ahead_us, wait_us: filled.wait_us })
        })
    }

    /// Charges the bucket of this hash however far ahead it is, up to `most_us`.
    pub(super) fn owe(&self, hash: u64, rate: Rate, cost: Cost, now: Moment, most_us: u64) {
        self.change(hash, rate, now, |before_us| {
            let ahead_us = rate.fill(before_us, cost).ahead_us.min(most_us);
            // For a loop that is ahead of this one it may be there already.
            (Some(ahead_us.max(before_us)), ())
        });
    }

    /// Gives a charge of `cost_us` back; what others have charged meanwhile stays.
    pub(super) fn give_back(&self, hash: u64, rate: Rate, cost_us: u64, now: Moment) {
        self.change(hash, rate, now, |before_us| {
            // An idle bucket may be another's by now.
            ((before_us != 0).then(|| before_us.saturating_sub(cost_us)), ())
        });
    }

    /// Moves the bucket of this hash from how far ahead it is to where `step` says, if it says so.
    fn change<T>(&self, hash: u64, rate: Rate, now: Moment, step: impl Fn(u64) -> (Option<u64>, T)) -> T {
        loop {
            let (word, seen) = self.find(hash, now);
            let max_us = rate.ahead_us_max() + TURN_US_MAX;
            let before_us = if tag(seen) == tag(hash) { ahead_us(seen, now, max_us) } else { 0 };
            // A failure means that another loop has changed this word, so some loop makes progress.
            match step(before_us) {
                (Some(after_us), _) if !swap(word, seen, hash, after_us, now) => {}
                (_, said) => return said,
            }
        }
    }

    /// The bucket of this hash, else the one of its set that is nearest to idle.
    fn find(&self, hash: u64, now: Moment) -> (&AtomicU64, u64) {
        let sets = self.words.len() / WAYS;
        let low = usize::try_from(hash & TIME_MASK).expect("42 bits fit");
        let set = &self.words[(low & (sets - 1)) * WAYS..][..WAYS];
        let mut nearest = (&set[0], set[0].load(Ordering::Relaxed));
        for word in set {
            // Relaxed: a word is the whole bucket, and nothing else is known by it.
            let seen = word.load(Ordering::Relaxed);
            if tag(seen) == tag(hash) {
                return (word, seen);
            }
            if ahead_us(seen, now, AHEAD_US_MAX) < ahead_us(nearest.1, now, AHEAD_US_MAX) {
                nearest = (word, seen);
            }
        }
        nearest
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

fn swap(word: &AtomicU64, seen: u64, hash: u64, ahead_us: u64, now: Moment) -> bool {
    let time = now.0.wrapping_add(ahead_us) & TIME_MASK;
    let new = (tag(hash) << TIME_BITS) | time;
    word.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

const fn tag(word: u64) -> u64 {
    word >> TIME_BITS
}

/// How far ahead of now a bucket is. A word that is further ahead than `max_us` is old: its bucket is idle.
const fn ahead_us(word: u64, now: Moment, max_us: u64) -> u64 {
    let ahead = word.wrapping_sub(now.0) & TIME_MASK;
    if ahead <= max_us { ahead } else { 0 }
}
