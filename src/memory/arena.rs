//! Values in numbered slots that are reused: no allocation after construction.
//!
//! - ARENA-1: a [`Slot`] is handed out by [`Arena::insert`] and dead after [`Arena::remove`]; the
//!   caller drops every copy of it then.
//! - ARENA-2: the slot freed last is reused first, as its cache lines are still warm.
//!
//! The memory of all slots is resident from construction on, in huge pages if the kernel gives them, because
//! slots are visited in any order. Access is bounds-checked: one compare per hop of a list has not shown in any
//! measurement.

use super::pages::make_ready;

/// The place of a value in its arena, or no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Slot(u32);

impl Slot {
    /// No place.
    pub const NONE: Self = Self(u32::MAX);

    /// The slot with this number, as it was stored by [`Slot::number`].
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// The slot as a number to store; `u32::MAX` for none.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The slot as an index into tables kept beside the arena.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The slot; `None` for [`Slot::NONE`].
    #[must_use]
    pub const fn some(self) -> Option<Self> {
        if self.0 == u32::MAX { None } else { Some(self) }
    }
}

/// First and last member of an intrusive list; both or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The oldest member.
    pub first: Slot,
    /// The newest member.
    pub last: Slot,
}

impl Ends {
    /// A list without members.
    pub const EMPTY: Self = Self { first: Slot::NONE, last: Slot::NONE };

    /// True if the list has no members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.first == Slot::NONE
    }
}

/// A fixed number of slots.
#[derive(Debug)]
pub struct Arena<T> {
    values: Vec<T>,
    free: Vec<Slot>,
    slots_max: usize,
}

impl<T: Copy> Arena<T> {
    /// An arena of `slots_max` slots, all free.
    #[must_use]
    pub fn with_capacity(slots_max: u32) -> Self {
        assert!(slots_max < u32::MAX, "the last number means no slot");
        let slots_max = slots_max as usize;
        let mut values = Vec::with_capacity(slots_max);
        make_ready(values.spare_capacity_mut());
        Self { values, free: Vec::with_capacity(slots_max), slots_max }
    }

    /// Puts a value into a free slot; `None` if there is none.
    #[allow(clippy::inline_always, reason = "otherwise the value is first copied to memory to be passed")]
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Option<Slot> {
        if let Some(slot) = self.free.pop() {
            self.values[slot.index()] = value;
            return Some(slot);
        }
        if self.values.len() == self.slots_max {
            return None;
        }
        let slot = Slot(u32::try_from(self.values.len()).expect("slots are numbered in 32 bits"));
        self.values.push(value);
        Some(slot)
    }

    /// Frees a slot.
    pub fn remove(&mut self, slot: Slot) {
        assert!(self.free.len() < self.values.len(), "a slot is freed once");
        self.free.push(slot);
    }

    /// How many slots are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// True if no slot is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if every slot is in use.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == self.slots_max
    }
}

impl<T> std::ops::Index<Slot> for Arena<T> {
    type Output = T;

    fn index(&self, slot: Slot) -> &T {
        &self.values[slot.index()]
    }
}

impl<T> std::ops::IndexMut<Slot> for Arena<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.values[slot.index()]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_arena_takes_exactly_its_slots_and_uses_them_again() {
        let mut arena = Arena::with_capacity(2);
        let first = arena.insert('a').unwrap();
        let second = arena.insert('b').unwrap();
        assert!(arena.is_full());
        assert_eq!(arena.insert('c'), None);
        arena.remove(first);
        assert!(!arena.is_full());
        assert_eq!(arena.insert('d'), Some(first));
        assert_eq!((arena[first], arena[second], arena.len()), ('d', 'b', 2));
    }

    #[test]
    #[should_panic(expected = "freed once")]
    fn a_slot_is_freed_once() {
        let mut arena = Arena::with_capacity(2);
        let slot = arena.insert('a').unwrap();
        arena.remove(slot);
        arena.remove(slot);
    }
}
