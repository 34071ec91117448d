//! What answers and streams take that clients have not read, over all connections: who asks for much and reads nothing
//! must not take the memory that others trade with.
//!
//! A connection counts while it has more than [`KEPT_BYTES_MAX`] of them. Beyond [`HELD_BYTES_MAX`] in all, a read whose
//! answer is larger than [`KEPT_BYTES_MAX`] is answered 503, and a stream ends that a message would leave with more than
//! that; smaller ones go on, as each connection's share is bounded. Buffers that grow are counted behind it, so the sum
//! may be above the limit by as much as the last one grew.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::connection::KEPT_BYTES_MAX;

/// What all answers together may take: some 250 of the largest, which are lists of 1 MiB.
pub(crate) const HELD_BYTES_MAX: usize = 256 << 20;

/// The sum over all loops' connections.
#[derive(Debug, Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
    /// A connection that counted for `counted` bytes has `bytes` now. Returns for what it counts.
    pub(crate) fn count(&self, counted: usize, bytes: usize) -> usize {
        let counts = if KEPT_BYTES_MAX < bytes { bytes } else { 0 };
        // Relaxed: a sum that orders nothing.
        if counted < counts {
            self.0.fetch_add(counts - counted, Ordering::Relaxed);
        } else if counts < counted {
            self.0.fetch_sub(counted - counts, Ordering::Relaxed);
        }
        counts
    }

    /// Whether one more answer of so many bytes may be kept for its client. Loops that ask at the same moment may each
    /// be told yes.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes <= KEPT_BYTES_MAX || self.takes_more(bytes)
    }

    /// Whether a stream that holds more than every connection may can be told so many bytes more.
    pub(crate) fn takes_more(&self, bytes: usize) -> bool {
        self.bytes() + bytes <= HELD_BYTES_MAX
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_are_taken_until_all_together_are_too_much_and_small_ones_always() {
        let held = Held::default();
        let first = held.count(0, KEPT_BYTES_MAX);
        assert_eq!((first, held.bytes()), (0, 0), "what every connection may keep is not counted");
        let first = held.count(first, HELD_BYTES_MAX - (1 << 20));
        assert!(held.takes(1 << 20));
        assert!(!held.takes((1 << 20) + 1));
        let second = held.count(0, 1 << 20);
        assert!(!held.takes(KEPT_BYTES_MAX + 1));
        assert!(held.takes(KEPT_BYTES_MAX));
        assert_eq!(held.count(first, 0), 0);
        assert_eq!(held.bytes(), second);
        assert_eq!(held.count(second, 7), 0);
        assert_eq!(held.bytes(), 0);
    }
}
