//! In which order connections get the signature checks that their next requests need: fairly by address, so that who
//! sends much waits for itself, and an order of another address stands behind what is being checked and not behind all
//! that came before it.
//!
//! It is start-time fair queuing ([`fair`](crate::limits::fair)).
//!
//! - A request costs as many units as its body has bytes: what it says is not read before its turn, and a batch of
//!   fifteen orders is about fifteen times as long as an order.
//! - A slot stands here at most once, and not after its client has left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::limits::Party;
use crate::limits::fair::VirtualTime;

/// Where a slot stands, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    beginning: u64,
    /// The how-manieth it was to come, for those with equal beginnings.
    number: u64,
    slot: u32,
}

/// Slots that wait for their turn.
#[derive(Debug)]
pub(super) struct FairQueue {
    waiting: BinaryHeap<Reverse<Place>>,
    /// How many slots came so far.
    came: u64,
    /// In bytes of bodies.
    time: VirtualTime,
}

impl FairQueue {
    pub(super) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), came: 0, time: VirtualTime::new() }
    }

    /// Has room for as many slots from here on.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.waiting.reserve(slots - self.waiting.len());
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a slot whose next request comes from `address`.
    pub(super) fn push(&mut self, slot: u32, address: Party, body_bytes: u64) {
        let beginning = self.time.charge(address, body_bytes.max(1));
        self.came += 1;
        self.waiting.push(Reverse(Place { beginning, number: self.came, slot }));
    }

    /// Removes a slot whose client has left; what its address was charged stays charged.
    pub(super) fn remove(&mut self, slot: u32) {
        self.waiting.retain(|Reverse(place)| place.slot != slot);
    }

    /// A request that need not wait takes its turn.
    pub(super) fn pass(&mut self, address: Party, body_bytes: u64) {
        let beginning = self.time.charge(address, body_bytes.max(1));
        self.time.turn_to(beginning);
    }

    /// The slot whose turn it is.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let Reverse(Place { beginning, slot, .. }) = self.waiting.pop()?;
        self.time.turn_to(beginning);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses are letters; `a3` is a request of `a` of 3 bytes, `a3!` one that need not wait, `a3-` one that came as
    /// `a3` and whose client leaves; and `.` is a turn.
    fn turns(script: &str) -> String {
        let mut queue = FairQueue::new();
        let mut came: Vec<&str> = Vec::new();
        let mut taken: Vec<&str> = Vec::new();
        for word in script.split_whitespace() {
            if word == "." {
                taken.push(queue.pop().map_or("-", |slot| came[slot as usize]));
                continue;
            }
            if let Some(left) = word.strip_suffix('-') {
                let slot = came.iter().rposition(|&one| one == left).expect("it came");
                queue.remove(u32::try_from(slot).expect("few"));
                continue;
            }
            let address = Party::of_row(word.as_bytes()[0].into());
            let bytes = word[1..].trim_end_matches('!').parse().expect("a length");
            if word.ends_with('!') {
                queue.pass(address, bytes);
            } else {
                queue.push(u32::try_from(came.len()).expect("few"), address, bytes);
                came.push(word);
            }
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
            ("a1 a1 b1 b1 c1 c1 . . . . . .", "a1 b1 c1 a1 b1 c1"),
            // What need not wait counts too, and is over for those who come later.
            ("a9! a9 b1 . .", "b1 a9"),
            ("a9! a9! a9! b1 a9 . .", "b1 a9"),
            // Who left has no turn, and has had its share.
            ("a5 a4 b1 a4- . . .", "a5 b1 -"),
            ("a5 a5 a5- . b1 a1 . .", "a5 b1 a1"),
        ] {
            assert_eq!(turns(script), expected, "{script}");
        }
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
