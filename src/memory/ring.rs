//! A ring of fixed slots from one core to one other core.
//!
//! The idea: each slot carries the turn in which it may be used next, so that both ends look only
//! at the slot they are about to use and share no counter. A slot for index `i` (counted from 0
//! without end, stored at `i % slots`) goes through
//!
//! | sequence    | means                                   |
//! |-------------|-----------------------------------------|
//! | `i`         | empty: the producer may fill it         |
//! | `i + 1`     | full: the consumer may empty it         |
//! | `i + slots` | empty again, for the next turn          |
//!
//! - RING-1: only the producer touches the value of a slot whose sequence is its own index.
//! - RING-2: only the consumer touches the value of a slot whose sequence is its index plus one.
//! - RING-3: there is one [`Producer`] and one [`Consumer`], neither is `Clone`, and both push and
//!   pop take `&mut self`.
//!
//! Neither end waits, allocates or makes a system call. Each slot has 64-byte lines of its own.
#![allow(unsafe_code, reason = "values move between threads through slots whose sequence names the owner")]

use std::mem::MaybeUninit;

use super::sync::{Arc, AtomicU64, Ordering, UnsafeCell};

/// The ring has no empty slot; nothing was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

#[derive(Debug)]
#[repr(align(64))]
struct Slot<T> {
    sequence: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

#[derive(Debug)]
struct Ring<T> {
    slots: Box<[Slot<T>]>,
    mask: u64,
}

// SAFETY: RING-1 and RING-2: at any time a slot's value is touched by one of the two ends only,
// and it changes hands by a release store and an acquire load of its sequence. `T: Send` lets the
// value itself cross.
unsafe impl<T: Copy + Send> Sync for Ring<T> {}
// SAFETY: the ring owns its slots; see `Sync`.
unsafe impl<T: Copy + Send> Send for Ring<T> {}

impl<T> Ring<T> {
    fn slot(&self, index: u64) -> &Slot<T> {
        let at = usize::try_from(index & self.mask).expect("the mask is below the number of slots");
        &self.slots[at]
    }
}

/// The end that fills slots.
#[derive(Debug)]
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    next: u64,
}

/// The end that empties slots.
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    next: u64,
}

/// A ring of `slots` slots, a power of two and at least 2; all its memory is taken here.
#[must_use]
pub fn ring<T: Copy + Send>(slots: usize) -> (Producer<T>, Consumer<T>) {
    assert!(slots.is_power_of_two(), "a ring's slots are a power of two");
    // One slot that was filled would look like one that is free for the next push.
    assert!(2 <= slots, "a ring has two slots or more");
    let mask = slots as u64 - 1;
    let slots = (0..=mask)
        .map(|index| Slot { sequence: AtomicU64::new(index), value: UnsafeCell::new(MaybeUninit::uninit()) })
        .collect();
    let ring = Arc::new(Ring { slots, mask });
    (Producer { ring: Arc::clone(&ring), next: 0 }, Consumer { ring, next: 0 })
}

impl<T: Copy + Send> Producer<T> {
    /// Fills the next slot, or returns [`Full`] if there is none.
    pub fn push(&mut self, value: &T) -> Result<(), Full> {
        let slot = self.ring.slot(self.next);
        // Acquire pairs with the Release in `pop`: the consumer has read the old value.
        if slot.sequence.load(Ordering::Acquire) != self.next {
            return Err(Full);
        }
        slot.value.with_mut(|cell| {
            // SAFETY: RING-1: the sequence is our index, and RING-3: we are the only producer.
            unsafe { cell.write(MaybeUninit::new(*value)) };
        });
        // Release pairs with the Acquire in `pop`: the value is there before the sequence says so.
        slot.sequence.store(self.next + 1, Ordering::Release);
        self.next += 1;
        Ok(())
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Empties the next slot; `None` if the producer has not filled it.
    pub fn pop(&mut self) -> Option<T> {
        let slot = self.ring.slot(self.next);
        // Acquire pairs with the Release in `push`.
        if slot.sequence.load(Ordering::Acquire) != self.next + 1 {
            return None;
        }
        let value = slot.value.with(|cell| {
            // SAFETY: RING-2: the sequence is our index plus one, and RING-3: we are the only
            // consumer.
            unsafe { cell.read() }
        });
        // SAFETY: RING-2: `push` wrote the value before it stored this sequence.
        let value = unsafe { value.assume_init() };
        // Release pairs with the Acquire in `push`: the value has been read.
        slot.sequence.store(self.next + self.ring.mask + 1, Ordering::Release);
        self.next += 1;
        Some(value)
    }

    /// Calls `look` on the value that comes `behind` places after the one that [`Consumer::pop`] would return;
    /// `None` if the producer has not filled that slot.
    pub fn peek<R>(&self, behind: u64, look: impl FnOnce(&T) -> R) -> Option<R> {
        let index = self.next + behind;
        let slot = self.ring.slot(index);
        // Acquire pairs with the Release in `push`.
        if slot.sequence.load(Ordering::Acquire) != index + 1 {
            return None;
        }
        Some(slot.value.with(|cell| {
            // SAFETY: RING-2: the sequence is its index plus one, so nobody writes the value before `pop`, which
            // cannot run meanwhile: it takes `&mut self` (RING-3).
            let value = unsafe { &*cell };
            // SAFETY: RING-2: `push` wrote the value before it stored this sequence.
            look(unsafe { value.assume_init_ref() })
        }))
    }

    /// Whether `pop` would find nothing now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Acquire, as a loop that sleeps on this must see what `pop` would.
        self.ring.slot(self.next).sequence.load(Ordering::Acquire) != self.next + 1
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::{Full, ring};

    #[test]
    fn values_come_out_in_the_order_they_went_in() {
        let (mut producer, mut consumer) = ring::<[u64; 7]>(8);
        for lap in 0..5_u64 {
            for index in 0..8 {
                assert_eq!(producer.push(&[lap, index, 0, 0, 0, 0, 0]), Ok(()));
            }
            for index in 0..8 {
                assert_eq!(consumer.pop(), Some([lap, index, 0, 0, 0, 0, 0]));
            }
            assert_eq!(consumer.pop(), None);
        }
    }

    #[test]
    #[should_panic(expected = "two slots or more")]
    fn a_ring_of_one_slot_is_refused() {
        let _ = ring::<u32>(1);
    }

    #[test]
    fn a_full_ring_takes_nothing_and_loses_nothing() {
        let (mut producer, mut consumer) = ring::<u32>(4);
        for value in 0..4 {
            assert_eq!(producer.push(&value), Ok(()));
        }
        assert_eq!(producer.push(&4), Err(Full));
        assert_eq!(consumer.pop(), Some(0));
        assert_eq!(producer.push(&4), Ok(()));
        assert_eq!(producer.push(&5), Err(Full));
        let seen: Vec<u32> = (0..).map_while(|behind| consumer.peek(behind, |value| *value)).collect();
        assert_eq!(seen, [1, 2, 3, 4]);
        let rest: Vec<u32> = std::iter::from_fn(|| consumer.pop()).collect();
        assert_eq!(rest, [1, 2, 3, 4]);
        assert!(consumer.is_empty());
    }

    #[test]
    fn two_threads_pass_every_value_once() {
        let (mut producer, mut consumer) = ring::<u64>(16);
        let count = 20_000;
        let sender = std::thread::spawn(move || {
            for value in 0..count {
                while producer.push(&value) == Err(Full) {
                    std::thread::yield_now();
                }
            }
        });
        for expected in 0..count {
            let value = loop {
                match consumer.pop() {
                    Some(value) => break value,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(value, expected);
        }
        sender.join().unwrap();
        assert!(consumer.is_empty());
    }
}
