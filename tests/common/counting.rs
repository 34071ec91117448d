//! An allocator that counts the allocations of each thread. A test makes it its global allocator.

#![allow(unsafe_code, reason = "counting allocations takes an allocator of our own")]
#![allow(unreachable_pub, reason = "every test is a crate of its own")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting.
pub struct Counting;

thread_local! {
    /// Allocations of this thread so far.
    pub static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged; the counter is a plain cell
// of this thread that allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's layout is passed on as it is.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `alloc` above, hence from the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}
