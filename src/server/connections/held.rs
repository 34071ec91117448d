//! What clients hold up, over all connections: the bytes of answers and stream messages that they have not read, and of
//! requests that come or wait. A client that asks for much and reads nothing, or begins much and ends nothing, must not
//! take the memory that others trade with.
//!
//! A connection's answers count while they are more than [`KEPT_BYTES_MAX`], and so does its buffer of requests. When
//! the sum is at [`HELD_BYTES_MAX`], a read whose answer is larger than [`KEPT_BYTES_MAX`] is answered 503, and a stream
//! ends if a message would leave it with more than that; smaller ones go on, as each connection's share is bounded. From
//! [`REQUESTS_BYTES_MAX`] on, a request that grows above [`KEPT_BYTES_MAX`] is refused, unless it is an operator's, so
//! that requests leave room for answers. A buffer of answers is counted after it has grown, so the sum may be above the
//! limit by as much as the last one grew.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::connection::KEPT_BYTES_MAX;

/// What all together may take for an answer to be kept: some 250 of the largest, which are lists of 1 MiB.
pub(crate) const HELD_BYTES_MAX: usize = 256 << 20;

/// What all together may take for a request to get more than every connection may keep: some 125 of the largest.
pub(crate) const REQUESTS_BYTES_MAX: usize = HELD_BYTES_MAX / 2;

/// The sum over all loops' connections.
#[derive(Debug, Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
    /// Counts `bytes` for a connection that counted for `counted` before. Returns what it counts for now.
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

    /// Whether one more answer of `bytes` may be kept for its client. Loops that ask at the same moment may all get a
    /// yes.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes <= KEPT_BYTES_MAX || self.takes_more(bytes)
    }

    /// Whether `bytes` more fit for a stream that then holds more than every connection may.
    pub(crate) fn takes_more(&self, bytes: usize) -> bool {
        self.bytes() + bytes <= HELD_BYTES_MAX
    }

    /// Whether the buffer of a request may count for `bytes` more. Loops that ask at the same moment may all get a yes.
    pub(crate) fn takes_request(&self, bytes: usize) -> bool {
        self.bytes() + bytes <= REQUESTS_BYTES_MAX
    }

    /// The sum.
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

    #[test]
    fn requests_grow_until_half_of_it_is_taken() {
        let held = Held::default();
        held.count(0, REQUESTS_BYTES_MAX - (1 << 20));
        assert!(held.takes_request(1 << 20));
        assert!(!held.takes_request((1 << 20) + 1));
        assert!(held.takes(HELD_BYTES_MAX - REQUESTS_BYTES_MAX), "answers still have the other half");
    }
}
