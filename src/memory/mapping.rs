//! Words in memory of their own or in a file's, for whoever else has them mapped or comes after this process.
//!
//! A mapping begins where a huge page can begin, which the kernel does by itself for no file in memory unless it was
//! mounted for that. Of small pages a loop that writes a log from end to end comes to a new one every few frames, and
//! waits until the processor has found where it lies.
#![allow(unsafe_code, reason = "a mapping is system calls on addresses, and a slice over what they give")]

use super::sync::AtomicU64;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::null_mut;

/// A huge page of this processor.
pub const HUGE_BYTES: usize = 2 << 20;

/// What was mapped. All access to it, here and elsewhere, is by atomics.
#[derive(Debug)]
pub struct Mapping {
    /// Address space for the words and a huge page.
    reserved: *mut c_void,
    /// The first place in it where a huge page can begin: the first word.
    start: *mut c_void,
    bytes: usize,
    huge_bytes: usize,
}

// SAFETY: what is shared by it are atomics, and what was mapped stays where it is until nobody has it any more.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `bytes` of memory, all zero, in huge pages if the kernel gives them.
    pub fn anonymous(bytes: u64) -> io::Result<Self> {
        let mapping = Self::reserve(bytes)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: it takes the place of what was reserved, in which there is nothing yet.
        let mapped = unsafe {
            mmap_anonymous(mapping.start, mapping.bytes, rights, MapFlags::PRIVATE | MapFlags::FIXED)?
        };
        // SAFETY: the range is what was just mapped, and the advice changes nothing in it. Without it everything works.
        let _ = unsafe { madvise(mapped, mapping.bytes, Advice::LinuxHugepage) };
        Ok(mapping)
    }

    /// The first `bytes` of a file, which has them.
    pub fn of_file(file: impl AsFd, bytes: u64) -> io::Result<Self> {
        Self::shared(file, bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// The same to be only looked at: a store ends the process.
    pub fn read_only(file: impl AsFd, bytes: u64) -> io::Result<Self> {
        Self::shared(file, bytes, ProtFlags::READ)
    }

    fn shared(file: impl AsFd, bytes: u64, rights: ProtFlags) -> io::Result<Self> {
        let mapping = Self::reserve(bytes)?;
        // SAFETY: it takes the place of what was reserved, in which there is nothing yet.
        unsafe { mmap(mapping.start, mapping.bytes, rights, MapFlags::SHARED | MapFlags::FIXED, file, 0)? };
        Ok(mapping)
    }

    fn reserve(bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).expect("addresses have 64 bits");
        assert!(bytes != 0 && bytes.is_multiple_of(8), "a mapping consists of words");
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses a place where nothing is.
        let reserved = unsafe { mmap_anonymous(null_mut(), bytes + HUGE_BYTES, ProtFlags::empty(), flags)? };
        let start = reserved.wrapping_byte_add(reserved.cast::<u8>().align_offset(HUGE_BYTES));
        Ok(Self { reserved, start, bytes, huge_bytes: 0 })
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins on a page, is `bytes` long and lives as long as `self`; all access to it is by
        // atomics of this width. Safe code cannot share memory that outlives the process.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes / 8) }
    }

    /// Has every whole huge page of a file in memory put together from what is there of it: none of a file on a disk, and
    /// none before Linux 6.1. The content stays. It is done sooner where only one small page of each is there.
    pub fn gather(&mut self) {
        let huge = |at: &usize| {
            // SAFETY: the range lies in the mapping, and the advice changes nothing in it.
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
        // SAFETY: nobody has it any more.
        let _ = unsafe { munmap(self.reserved, self.bytes + HUGE_BYTES) };
    }
}

#[cfg(test)]
mod tests;
