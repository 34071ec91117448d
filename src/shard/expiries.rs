//! Which resting order expires next: a binary heap whose members know their places.
//!
//! Orders leave for many reasons long before they expire, so each carries its place in its
//! placement and leaves the heap in the same step: the heap never holds more than what rests.
//!
//! EXPIRIES-1: `heap[placement(slot).expiry_place].slot == slot` for every order with an expiry.

use crate::book::orders::Orders;
use crate::domain::{Position, TimeMs};
use crate::memory::arena::Slot;

/// An order without a place in the heap.
const NOWHERE: u32 = u32::MAX;

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

    /// The order that expires next, if it has expired at `now`.
    pub(super) fn expired(&self, now: TimeMs) -> Option<Slot> {
        let due = |(key, _): &&(Key, Slot)| TimeMs::from_seconds(key.expires_s.into()) <= now;
        self.heap.first().filter(due).map(|(_, slot)| *slot)
    }

    /// Adds a resting order with an expiry.
    pub(super) fn insert(&mut self, slot: Slot, orders: &mut Orders) {
        let key = Key { expires_s: orders[slot].expires_s, position: orders[slot].position };
        assert!(orders.placement(slot).expiry_place == NOWHERE, "an order expires once");
        self.heap.push((key, slot));
        self.rise(self.heap.len() - 1, orders);
    }

    /// Takes an order out, if it has an expiry.
    pub(super) fn remove(&mut self, slot: Slot, orders: &mut Orders) {
        let place = orders.placement(slot).expiry_place;
        if place == NOWHERE {
            return;
        }
        orders.placement_mut(slot).expiry_place = NOWHERE;
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
        orders.placement_mut(self.heap[place].1).expiry_place = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Books;
    use crate::book::orders::NewOrder;
    use crate::domain::{
        ApiKey, Collateral, MarketNo, OrderId, Outcome, Price, Shares, Side, Tick, WalletNo,
    };
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn order(position: u64, expires_s: u32) -> NewOrder {
        let mut id = OrderId::ZERO;
        id.0[..8].copy_from_slice(&position.to_le_bytes());
        NewOrder {
            id,
            owner: ApiKey::ZERO,
            open: Shares(5),
            position: Position(position),
            reserved: Collateral::ZERO,
            expires_s,
            principal: WalletNo(0),
            market: MarketNo(0),
            account: Slot::NONE,
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
            let mut expiries = Expiries::with_capacity(256);
            let mut plain = BTreeMap::new();
            for (position, (add, expires, which)) in (1_u64..).zip(acts) {
                if add {
                    let tick = Tick::new(100).unwrap();
                    let slot = books.rest(tick, &order(position, expires)).unwrap();
                    expiries.insert(slot, books.orders_mut());
                    plain.insert((expires, position), slot);
                } else if let Some((&key, &slot)) = plain.iter().nth(which % plain.len().max(1)) {
                    expiries.remove(slot, books.orders_mut());
                    expiries.remove(slot, books.orders_mut());
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
