//! Doubly linked lists of slots, with the links kept apart from the values.
//!
//! Taking a member out of the middle touches its two neighbours: here that is eight bytes each, so the links of a
//! hundred thousand members stay in a core's own cache, where their values would not.
//!
//! - LINKS-1: a slot is in at most one list of a `Links`; which one is known to whoever holds the lists' [`Ends`].

use super::ahead;
use super::arena::{Ends, Slot};
use super::pages::filled;

#[derive(Clone, Copy, Debug)]
struct Link {
    next: Slot,
    previous: Slot,
}

/// The links of all lists over one set of slots.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
}

impl Links {
    /// Bytes per slot.
    pub const BYTES: usize = size_of::<Link>();

    /// Links for slots `0..slots_max`, none of which is in a list.
    #[must_use]
    pub fn with_capacity(slots_max: u32) -> Self {
        Self { links: filled(slots_max as usize, Link { next: Slot::NONE, previous: Slot::NONE }) }
    }

    /// Prefetches a member's links; [`Slot::NONE`] is allowed.
    pub fn prefetch(&self, slot: Slot) {
        ahead::prefetch_at(self.links.as_ptr().wrapping_add(slot.index()));
    }

    /// Prefetches the links of a member's two neighbours. This reads the member's own links, which the caller should
    /// have prefetched.
    pub fn prefetch_neighbours(&self, slot: Slot) {
        let Link { next, previous } = self.links[slot.index()];
        self.prefetch(next);
        self.prefetch(previous);
    }

    /// The member after this one.
    #[must_use]
    pub fn next(&self, slot: Slot) -> Option<Slot> {
        self.links[slot.index()].next.some()
    }

    /// The member before this one.
    #[must_use]
    pub fn previous(&self, slot: Slot) -> Option<Slot> {
        self.links[slot.index()].previous.some()
    }

    /// Appends `slot` and returns the list's new ends.
    #[must_use]
    pub fn push(&mut self, list: Ends, slot: Slot) -> Ends {
        self.links[slot.index()] = Link { next: Slot::NONE, previous: list.last };
        match list.last.some() {
            Some(last) => self.links[last.index()].next = slot,
            None => return Ends { first: slot, last: slot },
        }
        Ends { last: slot, ..list }
    }

    /// Takes `slot` out of its list if it has neighbours on both sides; otherwise changes nothing and returns false.
    /// The list's ends stay as they are, so the caller need not know which list it is.
    #[must_use]
    pub fn remove_between(&mut self, slot: Slot) -> bool {
        let Link { next, previous } = self.links[slot.index()];
        let (Some(before), Some(behind)) = (previous.some(), next.some()) else { return false };
        self.links[before.index()].next = behind;
        self.links[behind.index()].previous = before;
        true
    }

    /// Takes `slot` out and returns the list's new ends.
    #[must_use]
    pub fn remove(&mut self, list: Ends, slot: Slot) -> Ends {
        let Link { next, previous } = self.links[slot.index()];
        self.join(list, previous, next, next, previous)
    }

    /// Puts `slot` in the place of `former`, which may be the same, and returns the list's new ends.
    #[must_use]
    pub fn replace(&mut self, list: Ends, former: Slot, slot: Slot) -> Ends {
        let Link { next, previous } = self.links[former.index()];
        self.links[slot.index()] = Link { next, previous };
        self.join(list, previous, slot, next, slot)
    }

    /// Makes `behind` follow `previous`, or begin the list, and `before` precede `next`, or end it.
    fn join(&mut self, mut list: Ends, previous: Slot, behind: Slot, next: Slot, before: Slot) -> Ends {
        match previous.some() {
            Some(previous) => self.links[previous.index()].next = behind,
            None => list.first = behind,
        }
        match next.some() {
            Some(next) => self.links[next.index()].previous = before,
            None => list.last = before,
        }
        list
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOTS: u32 = 16;

    fn members(links: &Links, list: Ends) -> Vec<u32> {
        let forth: Vec<u32> =
            std::iter::successors(list.first.some(), |slot| links.next(*slot)).map(Slot::number).collect();
        let mut back: Vec<u32> =
            std::iter::successors(list.last.some(), |slot| links.previous(*slot)).map(Slot::number).collect();
        back.reverse();
        assert_eq!(forth, back, "a list is the same from both ends");
        forth
    }

    proptest! {
        #[test]
        fn two_lists_over_the_same_slots_are_those_of_two_plain_lists(
            acts in proptest::collection::vec((0_usize..4, 0_usize..2, 0_u32..SLOTS, 0_u32..SLOTS), 1..200),
        ) {
            let mut links = Links::with_capacity(SLOTS);
            let mut lists = [Ends::EMPTY; 2];
            let mut plain: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
            for (act, which, one, other) in acts {
                let (slot, heir) = (Slot::from_number(one), Slot::from_number(other));
                let place = plain[which].iter().position(|member| *member == one);
                let is_free = |slot: u32| !plain.iter().flatten().any(|member| *member == slot);
                match (act, place) {
                    (0, None) if is_free(one) => {
                        lists[which] = links.push(lists[which], slot);
                        plain[which].push(one);
                    }
                    (1, Some(place)) => {
                        lists[which] = links.remove(lists[which], slot);
                        plain[which].remove(place);
                    }
                    (3, Some(place)) => {
                        let is_between = 0 < place && place + 1 < plain[which].len();
                        prop_assert_eq!(links.remove_between(slot), is_between);
                        if is_between {
                            plain[which].remove(place);
                        }
                    }
                    (2, Some(place)) if one == other || is_free(other) => {
                        lists[which] = links.replace(lists[which], slot, heir);
                        plain[which][place] = other;
                    }
                    _ => {}
                }
                for (list, plain) in lists.iter().zip(&plain) {
                    prop_assert_eq!(&members(&links, *list), plain);
                    prop_assert_eq!(list.is_empty(), plain.is_empty());
                }
            }
        }
    }
}
