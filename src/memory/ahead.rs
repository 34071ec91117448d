//! Lines that are fetched into the cache before they are looked at.
//!
//! A load that no cache has keeps its core waiting. Who knows early where it will look asks for the line, does
//! something else meanwhile, and finds it there.
#![allow(unsafe_code, reason = "fetching ahead is an instruction of the processor")]

use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// What a cache fetches at once.
const LINE_BYTES: usize = 64;

/// Has the line in which `value` begins fetched into the core's own cache, and waits for nothing.
#[inline]
pub fn fetch<T>(value: &T) {
    fetch_at(value);
}

/// The same of every line on which a part of `value` lies.
#[inline]
pub fn fetch_whole<T>(value: &T) {
    let first: *const T = value;
    let byte = |at: usize| first.cast::<u8>().wrapping_add(at);
    (0..size_of::<T>()).step_by(LINE_BYTES).for_each(|at| fetch_at(byte(at)));
    fetch_at(byte(size_of::<T>().saturating_sub(1)));
}

/// The same of a place that need not be there, so that nobody looks whether it is.
#[inline]
pub fn fetch_at<T>(place: *const T) {
    // SAFETY: a hint that reads nothing and faults nowhere.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}

/// Has the line at `place` fetched into the core's own cache to be written there, out of every other core's, and waits
/// for nothing. There need be nothing at `place`.
#[inline]
pub fn fetch_to_write<T>(place: *const T) {
    // SAFETY: a hint that changes nothing and faults nowhere; a processor that does not know it passes over it.
    unsafe { asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly)) }
}
