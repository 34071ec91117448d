//! Words in plain memory, or in a file that other processes map too or that outlives this one.
//!
//! A mapping starts at an address where a huge page can start; for a file in memory the kernel ensures that only if the
//! file system was mounted for huge pages. With small pages, a loop that writes a log from end to end reaches a new
//! page every few frames, and each costs a TLB miss.
#![allow(unsafe_code, reason = "a mapping is system calls on addresses, and a slice over what they return")]

use super::sync::AtomicU64;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::null_mut;

/// A huge page of this processor.
pub const HUGE_BYTES: usize = 2 << 20;

/// Mapped memory. What is read of it is read by atomic loads of words; the log also stores whole lines by instructions
/// of its own.
#[derive(Debug)]
pub struct Mapping {
    /// Reserved address space: the words, and one huge page more for the alignment.
    reserved: *mut c_void,
    /// The first huge page boundary in it, where the words begin.
    start: *mut c_void,
    bytes: usize,
    huge_bytes: usize,
}

// SAFETY: it shares atomics only, and what was mapped stays in place until it is dropped.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `bytes` of memory, all zero, in huge pages if the kernel gives them.
    pub fn anonymous(bytes: u64) -> io::Result<Self> {
        let mapping = Self::reserve(bytes)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: it replaces part of the reservation, which holds nothing yet.
        let mapped = unsafe {
            mmap_anonymous(mapping.start, mapping.bytes, rights, MapFlags::PRIVATE | MapFlags::FIXED)?
        };
        // SAFETY: the range was mapped just now, and the advice changes no content. Refused, it only costs speed.
        let _ = unsafe { madvise(mapped, mapping.bytes, Advice::LinuxHugepage) };
        Ok(mapping)
    }

    /// Maps the first `bytes` of a file that is at least that long.
    pub fn of_file(file: impl AsFd, bytes: u64) -> io::Result<Self> {
        Self::shared(file, bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps the first `bytes` of a file for reading only: a store ends the process.
    pub fn read_only(file: impl AsFd, bytes: u64) -> io::Result<Self> {
        Self::shared(file, bytes, ProtFlags::READ)
    }

    fn shared(file: impl AsFd, bytes: u64, rights: ProtFlags) -> io::Result<Self> {
        let mapping = Self::reserve(bytes)?;
        // SAFETY: it replaces part of the reservation, which holds nothing yet.
        unsafe { mmap(mapping.start, mapping.bytes, rights, MapFlags::SHARED | MapFlags::FIXED, file, 0)? };
        Ok(mapping)
    }

    fn reserve(bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).expect("addresses have 64 bits");
        assert!(bytes != 0 && bytes.is_multiple_of(8), "a mapping consists of words");
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses a range that is not in use.
        let reserved = unsafe { mmap_anonymous(null_mut(), bytes + HUGE_BYTES, ProtFlags::empty(), flags)? };
        let start = reserved.wrapping_byte_add(reserved.cast::<u8>().align_offset(HUGE_BYTES));
        Ok(Self { reserved, start, bytes, huge_bytes: 0 })
    }

    /// The mapped words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins on a page, is `bytes` long and lives as long as `self`; Rust accesses it by
        // atomics of this width, and what the log stores by instructions of its own (`put_line`), nobody relies on
        // before it is committed. Safe code cannot share memory that outlives the process.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes / 8) }
    }

    /// Turns every whole huge page's worth of small pages into a huge page, content unchanged. The kernel does this for
    /// files in memory only, from Linux 6.1 on, and sooner if just one small page of each is resident.
    pub fn gather(&mut self) {
        let huge = |at: &usize| {
            // SAFETY: the range is within the mapping, and the advice changes no content.
            0 == unsafe { libc::madvise(self.start.wrapping_byte_add(*at), HUGE_BYTES, libc::MADV_COLLAPSE) }
        };
        let whole = self.bytes / HUGE_BYTES * HUGE_BYTES;
        self.huge_bytes = (0..whole).step_by(HUGE_BYTES).filter(huge).count() * HUGE_BYTES;
    }

    /// How many bytes [`Mapping::gather`] has put into huge pages.
    #[must_use]
    pub const fn huge_bytes(&self) -> usize {
        self.huge_bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody borrows it any more.
        let _ = unsafe { munmap(self.reserved, self.bytes + HUGE_BYTES) };
    }
}

#[cfg(test)]
mod tests;
