//! In which order connections get the signature checks that their next requests need: fairly by address, so that who
//! sends much waits for itself, and an order of another address stands behind what is being checked and not behind all
//! that came before it.
//!
//! The idea is start-time fair queuing (Goyal, Vin and Cheng, 1996). Work has a **virtual time**. A request begins at
//! the later of now and the end of the last one of its address, and ends by its cost after that; the earliest beginning
//! is next, and is now. Whoever was idle begins now, so nobody saves up.
//!
//! - A request costs as many units as its body has bytes: what it says is not read before its turn, and a batch of
//!   fifteen orders is about fifteen times as long as an order.
//! - Addresses that share a row of the table share its turns.
//! - A slot stands here at most once, like in a list of slots; who left it is passed over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::limits::Party;

/// Rows of the table, which is 8 KiB.
const ROWS: usize = 1 << 10;

/// Where a slot stands: its beginning, and among equal ones the order in which they came.
type Entry = Reverse<(u64, u64, u32)>;

/// Slots that wait for their turn.
#[derive(Debug)]
pub(super) struct FairQueue {
    waiting: BinaryHeap<Entry>,
    now: u64,
    came: u64,
    /// The end of the last request of each row's addresses.
    ends: Box<[u64; ROWS]>,
}

impl FairQueue {
    pub(super) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), now: 0, came: 0, ends: Box::new([0; ROWS]) }
    }

    /// Has room for as many slots from here on.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.waiting.reserve(slots - self.waiting.len());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a slot whose next request comes from `address`.
    pub(super) fn push(&mut self, slot: u32, address: Party, cost: u64) {
        let beginning = self.begin(address, cost);
        self.came += 1;
        self.waiting.push(Reverse((beginning, self.came, slot)));
    }

    /// A request that need not wait takes its turn.
    pub(super) fn pass(&mut self, address: Party, cost: u64) {
        self.now = self.begin(address, cost);
    }

    /// The slot whose turn it is.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let Reverse((beginning, _, slot)) = self.waiting.pop()?;
        self.now = self.now.max(beginning);
        Some(slot)
    }

    /// When the next request of `address` begins.
    fn begin(&mut self, address: Party, cost: u64) -> u64 {
        let end = &mut self.ends[address.row(ROWS)];
        let beginning = self.now.max(*end);
        *end = beginning + cost.max(1);
        beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses are letters; `a3` is a request of `a` that costs 3, and `.` is a turn.
    fn turns(script: &str) -> String {
        let mut queue = FairQueue::new();
        let mut came: Vec<&str> = Vec::new();
        let mut taken: Vec<&str> = Vec::new();
        for word in script.split_whitespace() {
            if word == "." {
                taken.push(queue.pop().map_or("-", |slot| came[slot as usize]));
                continue;
            }
            let (letter, cost) = word.split_at(1);
            let address = Party::of_row(letter.as_bytes()[0].into());
            queue.push(u32::try_from(came.len()).expect("few"), address, cost.parse().expect("a cost"));
            came.push(word);
        }
        taken.join(" ")
    }

    #[test]
    fn who_sends_much_waits_for_itself() {
        for (script, expected) in [
            // Alone: as they came.
            ("a1 a5 a2 . . . .", "a1 a5 a2 -"),
            // One behind many.
            ("a9 a9 a9 b1 . . . .", "a9 b1 a9 a9"),
            // One that comes when many were served already.
            ("a9 a9 a9 a9 . . b1 . . .", "a9 a9 b1 a9 a9"),
            // Small ones get as many turns as a large one is long.
            ("a4 a4 b1 b1 b1 b1 b1 . . . . . . .", "a4 b1 b1 b1 b1 a4 b1"),
            // Nobody saves up while idle, and nobody pays for having been alone.
            ("a5 a5 a5 . . . b5 b5 b5 a5 . . . .", "a5 a5 a5 b5 b5 a5 b5"),
            ("a1 b1 c1 a1 b1 c1 . . . . . .", "a1 b1 c1 a1 b1 c1"),
        ] {
            assert_eq!(turns(script), expected, "{script}");
        }
    }

    #[test]
    fn what_need_not_wait_counts_too() {
        let mut queue = FairQueue::new();
        let [one, other] = [1, 2].map(Party::of_row);
        queue.pass(one, 9);
        queue.push(1, one, 9);
        queue.push(2, other, 9);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(2), Some(1), None]);
    }

    #[test]
    fn nobody_waits_for_more_than_one_request_of_each_other() {
        const OTHERS: u64 = 20;
        for many in [1, 10, 100] {
            let mut queue = FairQueue::new();
            queue.reserve(10_000);
            for other in 0..OTHERS {
                (0..many).for_each(|_| queue.push(0, Party::of_row(other), 15));
            }
            queue.pop();
            queue.push(1, Party::of_row(OTHERS), 1);
            let before = std::iter::from_fn(|| queue.pop()).take_while(|&slot| slot != 1).count() as u64;
            assert!(before < OTHERS, "{before} of {many} each");
        }
    }
}
