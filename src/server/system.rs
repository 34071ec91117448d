//! The system calls that no crate here wraps. The only unsafe file of this room.
//!
//! INVARIANT SYSTEM-1: the kernel writes only into `parameters`, which is as large as the
//! kernel's `struct io_uring_params` (120 bytes) and outlives the call.
#![allow(unsafe_code, reason = "io_uring_setup has no safe wrapper; asked once, before any executor exists")]

use std::ffi::{c_int, c_long};

/// The number of `io_uring_setup`, the same on every architecture.
const IO_URING_SETUP: c_long = 425;

/// `struct io_uring_params`: 30 words, all zero when we ask.
#[repr(C)]
struct Parameters([u32; 30]);

const _: () = assert!(size_of::<Parameters>() == 120, "the kernel's struct io_uring_params");

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn close(descriptor: c_int) -> c_int;
}

/// Asks the kernel for a ring of one entry and gives it back: whether `io_uring` may be used here.
pub(crate) fn probe_io_uring() -> Result<(), std::io::Error> {
    let mut parameters = Parameters([0; 30]);
    // SAFETY: SYSTEM-1; the arguments are those of io_uring_setup(u32, struct io_uring_params *).
    let descriptor = unsafe { syscall(IO_URING_SETUP, 1_u32, &raw mut parameters) };
    let Ok(descriptor) = c_int::try_from(descriptor) else {
        return Err(std::io::Error::other("io_uring_setup returned no descriptor"));
    };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made by us and nobody else knows it.
    let _ = unsafe { close(descriptor) };
    Ok(())
}
