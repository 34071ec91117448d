//! Which resting order expires next: a binary heap whose members know their places.
//!
//! Orders leave for many reasons long before they expire, so each carries its place in its cold
//! line and leaves the heap in the same step: the heap never holds more than what rests.
//!
//! EXPIRIES-1: `heap[cold(slot).expiry_place].slot == slot` for every order with an expiry.

use crate::book::orders::Orders;
use crate::domain::{Position, TimeMs};
use crate::memory::arena::Slot;

/// An order without a place in the heap.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    expires: TimeMs,
    /// Breaks ties, so that the order of sweeps is that of placement.
    position: Position,
}

/// The resting orders that expire.
#[derive(Debug)]
pub(super) struct Expiries {
    heap: Vec<(Key, Slot)>,
}

impl Expiries {
    pub(super) fn with_capacity(resting_max: u32) -> Self {
        Self { heap: Vec::with_capacity(resting_max as usize) }
    }

    /// The order that expires next, if it has expired at `now`.
    pub(super) fn expired(&self, now: TimeMs) -> Option<Slot> {
        self.heap.first().filter(|(key, _)| key.expires <= now).map(|(_, slot)| *slot)
    }

    /// Adds a resting order with an expiry.
    pub(super) fn insert(&mut self, slot: Slot, orders: &mut Orders) {
        let key = Key { expires: orders[slot].expires, position: orders[slot].position };
        assert!(orders.cold(slot).expiry_place == NOWHERE, "an order expires once");
        self.heap.push((key, slot));
        self.rise(self.heap.len() - 1, orders);
    }

    /// Takes an order out, if it has an expiry.
    pub(super) fn remove(&mut self, slot: Slot, orders: &mut Orders) {
        let place = orders.cold(slot).expiry_place;
        if place == NOWHERE {
            return;
        }
        orders.cold_mut(slot).expiry_place = NOWHERE;
        let place = place as usize;
        assert!(self.heap[place].1 == slot, "EXPIRIES-1");
        let last = self.heap.pop().expect("the heap has this order");
        if place < self.heap.len() {
            self.heap[place] = last;
            self.sink(place, orders);
            self.rise(place, orders);
        }
    }

    fn rise(&mut self, mut place: usize, orders: &mut Orders) {
        while 0 < place {
            let above = (place - 1) / 2;
            if self.heap[above].0 <= self.heap[place].0 {
                break;
            }
            self.heap.swap(above, place);
            self.note(place, orders);
            place = above;
        }
        self.note(place, orders);
    }

    fn sink(&mut self, mut place: usize, orders: &mut Orders) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child].0) else {
                break;
            };
            if self.heap[place].0 <= self.heap[least].0 {
                break;
            }
            self.heap.swap(place, least);
            self.note(place, orders);
            place = least;
        }
        self.note(place, orders);
    }

    fn note(&self, place: usize, orders: &mut Orders) {
        let number = u32::try_from(place).expect("at most as many as slots");
        orders.cold_mut(self.heap[place].1).expiry_place = number;
    }
}
