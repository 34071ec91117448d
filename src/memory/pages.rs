//! Memory that is there before it is used.
//!
//! Fresh memory costs a page fault where it is first touched: about a microsecond, more in a virtual machine. A
//! table that is touched at random pays that for nearly every new entry, and again for finding
//! its page among many small ones. So its memory is asked for in huge pages and touched beforehand.
#![allow(unsafe_code, reason = "advice about memory is a system call on an address")]

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Tables below this lie on few pages, and those are warm soon.
const BYTES_MIN: usize = 1 << 20;

/// Has the memory of `values` there, in huge pages if the kernel gives them (`transparent_hugepage` is `madvise` or
/// `always`); the values stay as they are. A kernel before 5.14 leaves them to be touched later.
pub fn make_ready<T>(values: &mut [T]) {
    if size_of_val(values) < BYTES_MIN {
        return;
    }
    let page_bytes = page_size();
    let range = values.as_mut_ptr_range();
    let start = range.start.cast::<u8>();
    let skipped = start.align_offset(page_bytes);
    let bytes = (size_of_val(values) - skipped) / page_bytes * page_bytes;
    for advice in [Advice::LinuxHugepage, Advice::LinuxPopulateWrite] {
        // SAFETY: the range is whole pages of memory that `values` borrows for itself, and neither advice
        // changes what is in it: one says how large its pages may be, the other touches them.
        let advised = unsafe { madvise(start.wrapping_add(skipped).cast(), bytes, advice) };
        // Without it everything works, later.
        let _ = advised;
    }
}

/// `count` times `value`, in memory that is there: what is written before it is asked for in huge pages gets none.
#[must_use]
pub fn filled<T: Copy>(count: usize, value: T) -> Vec<T> {
    filled_with(count, || value)
}

/// The same of values that are made one by one.
#[must_use]
pub fn filled_with<T>(count: usize, value: impl FnMut() -> T) -> Vec<T> {
    let mut values = Vec::with_capacity(count);
    make_ready(values.spare_capacity_mut());
    values.resize_with(count, value);
    values
}

#[cfg(test)]
mod tests;
