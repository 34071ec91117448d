//! Memory that is resident before its first use.
//!
//! Fresh memory costs a page fault at its first touch: about a microsecond, more in a virtual machine. A table that
//! is accessed at random pays that for nearly every new entry, and with many small pages a TLB miss besides. So its
//! memory is requested in huge pages and populated beforehand.
#![allow(unsafe_code, reason = "advice about memory is a system call on an address")]

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Smaller tables have few pages, which are soon resident.
const BYTES_MIN: usize = 1 << 20;

/// Makes the memory of `values` resident, in huge pages if the kernel gives them (`transparent_hugepage` is
/// `madvise` or `always`); the values stay as they are. A kernel before 5.14 leaves the faults to the first touch.
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
        // SAFETY: the range is whole pages of memory that `values` borrows exclusively, and neither advice changes
        // its content: one says how large its pages may be, the other touches them.
        let advised = unsafe { madvise(start.wrapping_add(skipped).cast(), bytes, advice) };
        // Refused advice only costs speed later.
        let _ = advised;
    }
}

/// `count` copies of `value`, in resident memory: huge pages are requested before the first write, which would
/// fault in small ones.
#[must_use]
pub fn filled<T: Copy>(count: usize, value: T) -> Vec<T> {
    filled_with(count, || value)
}

/// `count` values that `value` makes one by one, in resident memory like those of [`filled`].
#[must_use]
pub fn filled_with<T>(count: usize, value: impl FnMut() -> T) -> Vec<T> {
    let mut values = Vec::with_capacity(count);
    make_ready(values.spare_capacity_mut());
    values.resize_with(count, value);
    values
}

#[cfg(test)]
mod tests;
