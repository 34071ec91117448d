//! Prefetching of cache lines.
//!
//! A load that misses every cache stalls its core. A **prefetch** asks now for a cache line that will be read or
//! written later, so that other work fills the time. It never blocks, and it may name an address that is not mapped.
#![allow(unsafe_code, reason = "a prefetch is an instruction of the processor")]

use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// A cache line: what one prefetch brings.
const LINE_BYTES: usize = 64;

/// Prefetches the line in which `value` begins.
#[inline]
pub fn prefetch<T>(value: &T) {
    prefetch_at(value);
}

/// Prefetches every line that holds a part of `value`.
#[inline]
pub fn prefetch_whole<T>(value: &T) {
    let first: *const T = value;
    let byte = |at: usize| first.cast::<u8>().wrapping_add(at);
    (0..size_of::<T>()).step_by(LINE_BYTES).for_each(|at| prefetch_at(byte(at)));
    prefetch_at(byte(size_of::<T>().saturating_sub(1)));
}

/// Prefetches the line at `place`, which need not be mapped: callers may compute it without a check.
#[inline]
pub fn prefetch_at<T>(place: *const T) {
    // SAFETY: a hint that reads nothing and faults nowhere.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}

/// Prefetches the line at `place` for writing: it leaves every other core's cache. `place` need not be mapped.
#[inline]
pub fn prefetch_to_write<T>(place: *const T) {
    // SAFETY: a hint that changes nothing and faults nowhere; to a processor without it, it is a no-op.
    unsafe { asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly)) }
}
