//! Where atomics come from: `std`, or loom's models of them when built with `--cfg loom`.
//!
//! Every atomic of `memory` and of the log is taken from here, so that loom can run the same
//! source through all its interleavings.

#[cfg(not(loom))]
pub use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

#[cfg(loom)]
pub use loom::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// `std`'s cell with the interface of loom's: access is a closure over the raw pointer.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Hands out the pointer for reading.
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Hands out the pointer for writing.
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
