//! Which of the remembered digests has the oldest stamp, found at once however many there are.
//!
//! Stamps are the clients' own, so they arrive nearly in order, each client's lagging the clock by an amount of its
//! own. A new entry joins a *lane*, a list in which stamps never fall: of the lanes that it may join, the one with
//! the newest last stamp, as in patience sorting. So the oldest entry is the first of some lane, and joining and
//! leaving touch only the ends of lists. A heap of four million would touch a dozen cache lines each time.
//!
//! Entries that no lane takes are in a heap: those with stamps ahead of the clock, which would shut a lane to all
//! others until the clock has caught up, and those with stamps older than the last of every lane.
//!
//! - AGES-1: a lane's stamps never fall from its first entry to its last, whose stamps are `first_ms` and `last_ms`.
//! - AGES-2: from lane to lane the last stamps fall, so the first lane that an entry may join has the newest of them.

use super::recall::Entry;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most lanes: this many different lags need no heap.
const LANES: usize = 16;

/// The number of no entry.
pub(super) const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Lane {
    first_ms: u64,
    last_ms: u64,
    first: u32,
    last: u32,
}

/// The numbers of entries, by age.
#[derive(Debug)]
pub(super) struct Ages {
    /// The lanes that have an entry, see AGES-2.
    lanes: Vec<Lane>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Ages {
    /// No entries; the heap takes over the memory of `heap`.
    pub(super) fn new(heap: Vec<Reverse<(u64, u32)>>) -> Self {
        Self { lanes: Vec::with_capacity(LANES), heap: BinaryHeap::from(heap) }
    }

    /// Adds an entry, whose next is [`NOBODY`]. `now_ms` is the clock's time.
    pub(super) fn join(&mut self, entries: &mut [Entry], number: u32, now_ms: u64) {
        let stamp_ms = entries[number as usize].stamp_ms;
        debug_assert!(entries[number as usize].next == NOBODY, "AGES-1");
        let fits = |lane: &&mut Lane| lane.last_ms <= stamp_ms && stamp_ms <= now_ms;
        if let Some(lane) = self.lanes.iter_mut().find(fits) {
            entries[lane.last as usize].next = number;
            (lane.last, lane.last_ms) = (number, stamp_ms);
        } else {
            self.join_nobody(number, stamp_ms, now_ms);
        }
    }

    /// Begins a lane, or adds to the heap.
    #[cold]
    fn join_nobody(&mut self, number: u32, stamp_ms: u64, now_ms: u64) {
        if self.lanes.len() < LANES && stamp_ms <= now_ms {
            self.lanes.push(Lane { first_ms: stamp_ms, last_ms: stamp_ms, first: number, last: number });
        } else {
            self.heap.push(Reverse((stamp_ms, number)));
        }
    }

    /// The oldest stamp and its number.
    pub(super) fn oldest(&self) -> Option<(u64, u32)> {
        let lane = self.lanes.iter().min_by_key(|lane| lane.first_ms);
        let in_lane = lane.map(|lane| (lane.first_ms, lane.first));
        let in_heap = self.heap.peek().map(|Reverse(oldest)| *oldest);
        match (in_lane, in_heap) {
            (Some(lane), Some(heap)) => Some(if heap.0 < lane.0 { heap } else { lane }),
            (lane, heap) => lane.or(heap),
        }
    }

    /// Takes out the entry that [`Ages::oldest`] returns.
    pub(super) fn leave(&mut self, entries: &[Entry]) {
        let (_, number) = self.oldest().expect("somebody is there to leave");
        let Some(at) = self.lanes.iter().position(|lane| lane.first == number) else {
            self.heap.pop();
            return;
        };
        let next = entries[number as usize].next;
        match entries.get(next as usize) {
            Some(entry) => (self.lanes[at].first, self.lanes[at].first_ms) = (next, entry.stamp_ms),
            None => drop(self.lanes.remove(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Clients behind and ahead of the clock by many amounts, more than there are lanes.
        #[test]
        fn the_oldest_is_the_heaps_whatever_comes(
            comes in proptest::collection::vec((0_u64..3, -40_i64..10, any::<bool>()), 1..400),
        ) {
            let mut ages = Ages::new(Vec::new());
            let (mut entries, mut plain, mut now_ms) = (Vec::new(), BinaryHeap::new(), 100);
            for (passes, distance, leaves) in comes {
                now_ms += passes;
                let number = u32::try_from(entries.len()).expect("a few");
                let stamp_ms = now_ms.saturating_add_signed(distance);
                entries.push(Entry::stamped(stamp_ms));
                ages.join(&mut entries, number, now_ms);
                plain.push(Reverse(stamp_ms));
                let oldest = |ages: &Ages| ages.oldest().map(|(stamp_ms, _)| stamp_ms);
                prop_assert_eq!(oldest(&ages), plain.peek().map(|oldest| oldest.0));
                prop_assert!(ages.lanes.is_sorted_by(|lane, next| next.last_ms < lane.last_ms), "AGES-2");
                if leaves {
                    ages.leave(&entries);
                    plain.pop();
                    prop_assert_eq!(oldest(&ages), plain.peek().map(|oldest| oldest.0));
                }
            }
            while let Some(Reverse(oldest_ms)) = plain.pop() {
                let (stamp_ms, number) = ages.oldest().expect("as many as in the heap");
                prop_assert_eq!((stamp_ms, entries[number as usize].stamp_ms), (oldest_ms, oldest_ms));
                ages.leave(&entries);
            }
            prop_assert_eq!(ages.oldest(), None);
        }
    }

    #[test]
    fn clients_behind_the_clock_by_their_own_distances_need_no_heap() {
        let mut ages = Ages::new(Vec::new());
        let mut entries = Vec::new();
        for now_ms in 1_000..2_000_u64 {
            for behind_ms in [5, 80, 0, 300, 81, 900] {
                let number = u32::try_from(entries.len()).expect("thousands");
                entries.push(Entry::stamped(now_ms - behind_ms));
                ages.join(&mut entries, number, now_ms);
            }
        }
        assert!(ages.heap.is_empty());
    }
}
