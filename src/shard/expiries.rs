//! Which resting order expires next: a binary heap whose members know their places.
//!
//! Orders leave for many reasons long before they expire, so each order's placement holds its place
//! in the heap, and it leaves the heap as it leaves its book: the heap holds resting orders only.
//!
//! EXPIRIES-1: `heap[placements[slot].expiry_place].slot == slot` for every order with an expiry.

use super::placements::Placements;
use crate::book::orders::Resting;
use crate::domain::{Position, TimeMs};
use crate::memory::arena::Slot;

/// The place of an order that is not in the heap.
pub(super) const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    expires_s: u32,
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

    /// When the next order expires.
    pub(super) fn next(&self) -> Option<TimeMs> {
        self.heap.first().map(|(key, _)| TimeMs::from_seconds(key.expires_s.into()))
    }

    /// The order that expires next, if it has expired at `now`.
    pub(super) fn expired(&self, now: TimeMs) -> Option<Slot> {
        let due = |(key, _): &&(Key, Slot)| TimeMs::from_seconds(key.expires_s.into()) <= now;
        self.heap.first().filter(due).map(|(_, slot)| *slot)
    }

    /// Adds a resting order with an expiry.
    pub(super) fn insert(&mut self, slot: Slot, order: &Resting, placements: &mut Placements) {
        let key = Key { expires_s: order.expires_s, position: order.position };
        assert!(placements[slot].expiry_place == NOWHERE, "an order expires once");
        self.heap.push((key, slot));
        self.rise(self.heap.len() - 1, placements);
    }

    /// Takes an order out, if it has an expiry.
    pub(super) fn remove(&mut self, slot: Slot, placements: &mut Placements) {
        let place = placements[slot].expiry_place;
        if place == NOWHERE {
            return;
        }
        placements[slot].expiry_place = NOWHERE;
        let place = place as usize;
        assert!(self.heap[place].1 == slot, "EXPIRIES-1");
        let last = self.heap.pop().expect("the heap has this order");
        if place < self.heap.len() {
            self.heap[place] = last;
            self.sink(place, placements);
            self.rise(place, placements);
        }
    }

    fn rise(&mut self, mut place: usize, placements: &mut Placements) {
        while 0 < place {
            let above = (place - 1) / 2;
            if self.heap[above].0 <= self.heap[place].0 {
                break;
            }
            self.heap.swap(above, place);
            self.note(place, placements);
            place = above;
        }
        self.note(place, placements);
    }

    fn sink(&mut self, mut place: usize, placements: &mut Placements) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child].0) else {
                break;
            };
            if self.heap[place].0 <= self.heap[least].0 {
                break;
            }
            self.heap.swap(place, least);
            self.note(place, placements);
            place = least;
        }
        self.note(place, placements);
    }

    fn note(&self, place: usize, placements: &mut Placements) {
        let number = u32::try_from(place).expect("at most as many as slots");
        placements[self.heap[place].1].expiry_place = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Books;
    use crate::book::orders::Resting;
    use crate::domain::{MarketNo, OrderId, Outcome, Price, Shares, Side, Tick, WalletNo};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn order(position: u64, expires_s: u32) -> Resting {
        let mut id = OrderId::ZERO;
        id.0[..8].copy_from_slice(&position.to_le_bytes());
        Resting {
            id,
            open: Shares(5),
            position: Position(position),
            expires_s,
            principal: WalletNo(0),
            market: MarketNo(0),
            price: Price::new(5_000).unwrap(),
            side: Side::Buy,
            outcome: Outcome::Zero,
        }
    }

    proptest! {
        #[test]
        fn the_next_to_expire_is_that_of_a_sorted_map(
            acts in proptest::collection::vec((any::<bool>(), 0_u32..20, 0_usize..64), 1..200),
        ) {
            let mut books = Books::new(1, 256, 1 << 20, 1);
            let mut placements = Placements::with_capacity(256);
            let mut expiries = Expiries::with_capacity(256);
            let mut plain = BTreeMap::new();
            for (position, (add, expires, which)) in (1_u64..).zip(acts) {
                if add {
                    let tick = Tick::new(100).unwrap();
                    let slot = books.rest(tick, &order(position, expires)).unwrap();
                    expiries.insert(slot, &books.orders()[slot], &mut placements);
                    plain.insert((expires, position), slot);
                } else if let Some((&key, &slot)) = plain.iter().nth(which % plain.len().max(1)) {
                    expiries.remove(slot, &mut placements);
                    expiries.remove(slot, &mut placements);
                    books.remove(slot);
                    plain.remove(&key);
                }
                let first = plain.first_key_value().map(|((expires, _), slot)| (*expires, *slot));
                prop_assert_eq!(expiries.expired(TimeMs(u64::MAX)), first.map(|(_, slot)| slot));
                prop_assert_eq!(expiries.expired(TimeMs(9_999)), first.filter(|(at, _)| *at <= 9).map(|(_, slot)| slot));
            }
        }
    }
}
