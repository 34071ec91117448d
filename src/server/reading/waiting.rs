//! Reads that wait for the reader, fairly by address: who asks for what takes long waits for itself, and a read of another
//! address stands behind the one that is being answered and not behind all that came before it.
//!
//! As with signature checks, this is start-time fair queuing ([`fair`](crate::limits::fair)), in nanoseconds of the
//! reader. What a read costs is known once it is answered; its address is charged then.
//!
//! - A read may have to wait for frames. Those of other addresses go first meanwhile.
//! - The reads of one address are answered in the order in which they came.

use std::collections::VecDeque;
use std::time::Duration;

use crate::limits::Party;
use crate::limits::fair::VirtualTime;
use crate::server::process::clock::nanoseconds;
use crate::server::threads::mesh::POST_SLOTS;
use crate::server::threads::message::ReadJob;

/// Rows of the table: few addresses that are busy at once share one.
const ROWS: usize = 1 << 10;

/// Reads of one address that a loop has under way: a part of what it may have in all, so that one address does not take
/// the room of all others.
const OF_ADDRESS_MAX: u16 = 64;

const _: () = assert!(4 * OF_ADDRESS_MAX as usize <= POST_SLOTS, "four addresses at least have room");

/// The reads of one address.
#[derive(Debug)]
struct Lane<T> {
    address: Party,
    /// The how-manieth lane it was to begin, for those with equal beginnings.
    number: u64,
    reads: VecDeque<T>,
}

/// What has an address.
pub(super) trait OfAddress {
    /// Where it came from.
    fn address(&self) -> Party;
}

impl OfAddress for Box<ReadJob> {
    fn address(&self) -> Party {
        self.toll.address()
    }
}

/// Reads that wait, in a lane for each address that has some.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    lanes: Vec<Lane<T>>,
    /// How many lanes there were so far.
    began: u64,
    /// In nanoseconds of the reader.
    time: VirtualTime,
}

impl<T: OfAddress> Waiting<T> {
    pub(super) fn new() -> Self {
        Self { lanes: Vec::new(), began: 0, time: VirtualTime::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Adds a read behind the others of its address.
    pub(super) fn push(&mut self, read: T) {
        self.lane(read.address()).push_back(read);
    }

    /// Puts back the read that was taken last.
    pub(super) fn put_back(&mut self, read: T) {
        self.lane(read.address()).push_front(read);
    }

    /// Whether the next read of any address is ready.
    pub(super) fn any(&self, is_ready: impl Fn(&T) -> bool) -> bool {
        self.next(is_ready).is_some()
    }

    /// Takes the read whose turn it is, among those that are the next of their address and ready.
    pub(super) fn pop(&mut self, is_ready: impl Fn(&T) -> bool) -> Option<T> {
        let next = self.next(is_ready)?;
        self.time.turn_to(self.time.beginning(self.lanes[next].address));
        let read = self.lanes[next].reads.pop_front();
        if self.lanes[next].reads.is_empty() {
            self.lanes.swap_remove(next);
        }
        read
    }

    /// What an address's read took.
    pub(super) fn took(&mut self, address: Party, time: Duration) {
        self.time.charge(address, nanoseconds(time));
    }

    fn lane(&mut self, address: Party) -> &mut VecDeque<T> {
        let known = self.lanes.iter().position(|lane| lane.address == address);
        let at = known.unwrap_or_else(|| {
            self.began += 1;
            self.lanes.push(Lane { address, number: self.began, reads: VecDeque::new() });
            self.lanes.len() - 1
        });
        &mut self.lanes[at].reads
    }

    fn next(&self, is_ready: impl Fn(&T) -> bool) -> Option<usize> {
        let ready = |at: &usize| self.lanes[*at].reads.front().is_some_and(&is_ready);
        (0..self.lanes.len()).filter(ready).min_by_key(|at| self.beginning(&self.lanes[*at]))
    }

    fn beginning(&self, lane: &Lane<T>) -> (u64, u64) {
        (self.time.beginning(lane.address), lane.number)
    }
}

/// How many reads of each address a loop has under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    rows: Box<[u16; ROWS]>,
}

impl UnderWay {
    pub(crate) fn new() -> Self {
        Self { rows: Box::new([0; ROWS]) }
    }

    /// Whether one more of this address may begin.
    pub(crate) fn has_room(&self, address: Party) -> bool {
        self.rows[address.row(ROWS)] < OF_ADDRESS_MAX
    }

    /// One begins, for which there is room.
    pub(crate) fn begin(&mut self, address: Party) {
        self.rows[address.row(ROWS)] += 1;
    }

    /// One has its answer.
    pub(crate) fn end(&mut self, address: Party) {
        self.rows[address.row(ROWS)] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl OfAddress for &str {
        fn address(&self) -> Party {
            Party::of_row(self.as_bytes()[0].into())
        }
    }

    /// Addresses are letters; `a3` is a read of `a` that takes 3 ns, `a!` one that waits for frames, and `.` a turn.
    fn turns(script: &str) -> String {
        let mut waiting = Waiting::new();
        let mut taken = Vec::new();
        for word in script.split_whitespace() {
            if word != "." {
                waiting.push(word);
                continue;
            }
            let read = waiting.pop(|read| !read.ends_with('!')).unwrap_or("-");
            if let Ok(ns) = read[1..].parse() {
                waiting.took(read.address(), Duration::from_nanos(ns));
            }
            taken.push(read);
        }
        taken.join(" ")
    }

    #[test]
    fn whose_reads_took_longest_waits_for_itself() {
        for (script, taken) in [
            ("a1 b1 . . .", "a1 b1 -"),
            ("a9 a8 a7 b1 b2 b3 . . . . . .", "a9 b1 b2 b3 a8 a7"),
            ("a9 a9 . b1 c1 . . .", "a9 b1 c1 a9"),
            // Nobody saves up while it is idle.
            ("a9 . a9 . b3 b3 b3 b3 b3 a1 . . . . . .", "a9 a9 b3 b3 b3 b3 a1 b3"),
            ("a1 a2 a3 . . .", "a1 a2 a3"),
            ("a9 . b! a1 b1 . .", "a9 a1 -"),
        ] {
            assert_eq!(turns(script), taken, "{script}");
        }
    }

    #[test]
    fn a_read_that_is_put_back_is_the_next_of_its_address() {
        let mut waiting = Waiting::new();
        waiting.push("a1");
        waiting.push("a2");
        let mut pop = |back: bool| {
            let read = waiting.pop(|_| true);
            read.filter(|_| back).into_iter().for_each(|read| waiting.put_back(read));
            read
        };
        assert_eq!(
            [pop(true), pop(false), pop(false), pop(false)],
            [Some("a1"), Some("a1"), Some("a2"), None]
        );
        assert!(waiting.is_empty());
    }

    #[test]
    fn one_address_leaves_room_for_the_others() {
        let mut under_way = UnderWay::new();
        let [one, other] = ["a", "b"].map(|address| address.address());
        for _ in 0..OF_ADDRESS_MAX {
            assert!(under_way.has_room(one));
            under_way.begin(one);
        }
        assert!(!under_way.has_room(one) && under_way.has_room(other));
        under_way.end(one);
        assert!(under_way.has_room(one));
    }
}
