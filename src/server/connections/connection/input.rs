//! The bytes that came in and are not used yet, and when they came.

use std::collections::VecDeque;

use super::{KEPT_BYTES_MAX, Share};
use crate::http::Limits;
use crate::server::connections::held::SMALL_BYTES_MAX;

/// What a connection's input buffer holds without growing: several orders, one full head.
const INPUT_BYTES: usize = KEPT_BYTES_MAX;

/// The most that it holds: the longest request, and room for the next piece of a body in chunks, which is decoded in place
/// as it comes.
pub(crate) const REQUEST_BYTES_MAX: usize =
    Limits::SERVED.head_bytes + Limits::SERVED.body_bytes + INPUT_BYTES;

/// Arrivals that are told apart; later bytes count as come with the last of them, so that a deadline that such a request
/// gives in microseconds from now on is over a little sooner.
const ARRIVALS_MAX: usize = 16;

/// The bytes that came in and are not used yet.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Of what is unread, front first.
    arrivals: VecDeque<Arrival>,
    /// The bytes that it counts for in its [`Share`].
    counted_bytes: usize,
}

/// Bytes that came at one moment.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Where the next bytes begin.
    end: usize,
    at_ns: u64,
}

impl Input {
    /// What its list takes.
    pub(super) const LIST_BYTES: usize = ARRIVALS_MAX * size_of::<Arrival>();

    pub(super) fn new() -> Self {
        let arrivals = VecDeque::with_capacity(ARRIVALS_MAX);
        Self { bytes: vec![0; INPUT_BYTES], start: 0, end: 0, arrivals, counted_bytes: 0 }
    }

    /// What came in and is not used yet.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// What came in and is not used yet, for parsers that work in place.
    pub(crate) fn unread_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// When the first unread byte came; 0 if there is none.
    pub(crate) fn came_ns(&self) -> u64 {
        self.arrivals.front().map_or(0, |arrival| arrival.at_ns)
    }

    /// Where the socket writes to; empty when the buffer is full.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.end == self.bytes.len() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            for arrival in &mut self.arrivals {
                arrival.end -= self.start;
            }
            self.start = 0;
        }
        &mut self.bytes[self.end..]
    }

    /// `count` bytes came in.
    pub(crate) fn arrived(&mut self, count: usize, at_ns: u64) {
        self.end += count;
        assert!(self.end <= self.bytes.len(), "a socket never writes more than there is room");
        let are_all = self.arrivals.len() == ARRIVALS_MAX;
        match self.arrivals.back_mut() {
            Some(last) if are_all => last.end = self.end,
            _ => self.arrivals.push_back(Arrival { end: self.end, at_ns }),
        }
    }

    /// The last part of the request at the front came, before which nothing could be done: all of it counts from now.
    pub(crate) fn completed(&mut self, at_ns: u64) {
        self.arrivals.clear();
        self.arrivals.push_back(Arrival { end: self.end, at_ns });
    }

    /// `count` bytes are used.
    pub(crate) fn used(&mut self, count: usize) {
        self.start += count;
        assert!(self.start <= self.end, "only what came in is used");
        while self.arrivals.front().is_some_and(|arrival| arrival.end <= self.start) {
            self.arrivals.pop_front();
        }
        self.shrink();
    }

    /// Gives back what a large request took, once what is behind it fits into a buffer as every connection has it.
    fn shrink(&mut self) {
        let unread = self.unread();
        if self.bytes.len() <= INPUT_BYTES || INPUT_BYTES < unread.len() {
            return;
        }
        let mut bytes = vec![0; INPUT_BYTES];
        bytes[..unread.len()].copy_from_slice(unread);
        self.arrivals.iter_mut().for_each(|arrival| arrival.end -= self.start);
        (self.bytes, self.start, self.end) = (bytes, 0, self.end - self.start);
    }

    /// Drops all unread bytes but the first `count`.
    pub(crate) fn keep(&mut self, count: usize) {
        assert!(self.start + count <= self.end, "only what came in is kept");
        self.end = self.start + count;
        for arrival in &mut self.arrivals {
            arrival.end = arrival.end.min(self.end);
        }
    }

    /// Makes room for more of a request that will have at most `bytes`: as much again as has come, for what it says of
    /// itself may never come. Of a message in fragments, those before take `fragments_bytes`. False if there is no room
    /// among what all clients hold, which an operator's request does not need.
    #[must_use]
    pub(crate) fn hold_more(&mut self, bytes: usize, fragments_bytes: usize, held: Share<'_>) -> bool {
        let bytes = size_for(bytes.min(2 * self.unread().len())).max(self.bytes.len());
        let more = held_bytes(bytes, fragments_bytes).saturating_sub(self.counted_bytes);
        if SMALL_BYTES_MAX < self.counted_bytes + more && 0 < more && !held.takes_request(more) {
            return false;
        }
        self.hold(bytes);
        self.count_held(fragments_bytes, held);
        true
    }

    /// Counts its memory, and that of fragments, among what all clients hold.
    pub(super) fn count_held(&mut self, fragments_bytes: usize, held: Share<'_>) {
        self.counted_bytes = held.count(self.counted_bytes, held_bytes(self.bytes.len(), fragments_bytes));
    }

    fn hold(&mut self, bytes: usize) {
        if self.bytes.len() < bytes {
            self.bytes.reserve_exact(bytes - self.bytes.len());
            self.bytes.resize(bytes, 0);
        }
    }

    /// True if unread bytes fill the whole buffer.
    pub(crate) fn is_full(&self) -> bool {
        self.end - self.start == self.bytes.len()
    }

    /// Takes all of it away, with the times; it counts for nobody until [`Input::count_held`].
    pub(super) fn take(&mut self) -> Self {
        let taken = std::mem::replace(self, Self::new());
        self.counted_bytes = taken.counted_bytes;
        Self { counted_bytes: 0, ..taken }
    }

    pub(super) fn reset(&mut self) {
        self.start = 0;
        self.end = 0;
        self.arrivals.clear();
        self.shrink();
    }
}

/// What is held by a buffer and by fragments, unless there is only what every connection has.
const fn held_bytes(buffer_bytes: usize, fragments_bytes: usize) -> usize {
    if INPUT_BYTES < buffer_bytes + fragments_bytes { buffer_bytes + fragments_bytes } else { 0 }
}

/// What a buffer has for `bytes`.
fn size_for(bytes: usize) -> usize {
    bytes.next_power_of_two().min(REQUEST_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::connections::connection::Door;
    use crate::server::connections::held::Held;
    use crate::server::requests::proxies::Proxies;

    #[test]
    fn a_request_gets_memory_as_its_bytes_come_and_gives_it_back_when_it_is_used() {
        let (mut input, held) = (Input::new(), Held::new(Proxies::default()));
        let share = held.of(Door::Public, [9, 9, 9, 9].into());
        for needed in [INPUT_BYTES + 1, 1 << 20] {
            let mut came = 0;
            while came < needed {
                assert!(input.hold_more(needed, 0, share));
                assert!(input.bytes.len() <= INPUT_BYTES.max(4 * came), "{} for {came}", input.bytes.len());
                let count = input.room().len().min(needed - came);
                assert!(0 < count, "there is always room for more");
                input.arrived(count, 1);
                came += count;
            }
            assert_eq!((input.unread().len(), input.bytes.len()), (needed, held.bytes()));
            input.used(needed - 3);
            assert_eq!((input.unread(), input.came_ns()), (&[0; 3][..], 1), "what is behind it stays");
            input.count_held(0, share);
            assert_eq!((input.bytes.len(), held.bytes()), (INPUT_BYTES, 0));
            input.used(3);
        }
    }

    /// What happens to a buffer.
    #[derive(Clone, Copy, Debug)]
    enum Does {
        /// This many bytes come at this time.
        Comes(usize, u64),
        /// This many are used.
        Used(usize),
        /// Only this many are kept.
        Kept(usize),
        /// A request that began before is whole at this time.
        Whole(u64),
    }

    #[test]
    fn what_is_at_the_front_came_when_its_own_bytes_did() {
        use Does::{Comes, Kept, Used, Whole};
        for (name, rows) in [
            ("one after another", vec![(Comes(10, 5), 5), (Used(10), 0), (Comes(1, 9), 9)]),
            ("two of one read", vec![(Comes(20, 5), 5), (Used(10), 5), (Used(10), 0)]),
            ("behind others", vec![(Comes(10, 5), 5), (Comes(10, 8), 5), (Used(10), 8), (Comes(1, 9), 8)]),
            (
                "a front that is used in part",
                vec![(Comes(10, 5), 5), (Comes(10, 8), 5), (Used(9), 5), (Used(2), 8)],
            ),
            ("in parts", vec![(Comes(10, 5), 5), (Comes(10, 8), 5), (Whole(8), 8), (Used(20), 0)]),
            ("a body in chunks", vec![(Comes(10, 5), 5), (Comes(10, 8), 5), (Kept(8), 5), (Used(8), 0)]),
        ] {
            let mut input = Input::new();
            for (at, (does, came_ns)) in rows.into_iter().enumerate() {
                match does {
                    Comes(count, at_ns) => input.arrived(count, at_ns),
                    Used(count) => input.used(count),
                    Kept(count) => input.keep(count),
                    Whole(at_ns) => input.completed(at_ns),
                }
                assert_eq!(input.came_ns(), came_ns, "{name}: {at}, {does:?}");
            }
        }
    }

    #[test]
    fn more_arrivals_than_are_told_apart_count_as_come_with_the_last_of_those() {
        let mut input = Input::new();
        let last_ns = ARRIVALS_MAX as u64;
        for at_ns in 1..=last_ns + 3 {
            input.arrived(1, at_ns);
        }
        for at_ns in 1..=last_ns + 3 {
            assert_eq!(input.came_ns(), at_ns.min(last_ns));
            input.used(1);
        }
        assert_eq!((input.came_ns(), input.arrivals.capacity()), (0, ARRIVALS_MAX), "nothing grew");
    }

    #[test]
    fn a_partial_request_moves_to_the_front_when_the_buffer_is_full() {
        let mut input = Input::new();
        let filled = input.room().len();
        input.room().fill(b'x');
        input.arrived(filled - 3, 1);
        input.arrived(3, 2);
        assert!(input.room().is_empty());
        input.used(filled - 3);
        assert_eq!(input.room().len(), filled - 3);
        assert_eq!((input.unread(), input.came_ns()), (&b"xxx"[..], 2));
        input.used(1);
        assert_eq!(input.came_ns(), 2);
        input.hold(size_for(2 * filled));
        assert!(input.room().len() >= 2 * filled - 3);
    }
}
