//! The system calls that no crate here wraps. The only unsafe file of the server.
//!
//! INVARIANT SYSTEM-1: the kernel writes only into `timex`, which is as large as the kernel's
//! `struct timex` (208 bytes) and outlives the call.
#![allow(unsafe_code, reason = "these have no safe wrapper; none is near a loop")]

use std::ffi::c_int;

unsafe extern "C" {
    fn adjtimex(timex: *mut Timex) -> c_int;
    #[cfg(target_env = "gnu")]
    fn malloc_trim(padding: usize) -> c_int;
}

/// Makes glibc return every wholly free page to the kernel, also those between pieces in use. A thread that allocates
/// from the same part waits meanwhile, milliseconds at most. Other allocators are not asked.
pub(crate) fn give_back_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and touches nothing but what the allocator has for free (malloc_trim(3)).
    let _ = unsafe { malloc_trim(0) };
}

/// Gives the calling thread a real-time priority, 1 being the least: from its wake-up on it has its CPU before every
/// thread of a lower one or of none, until it waits. 0 takes it back. Threads that it makes are ordinary ones.
///
/// # Errors
/// A process needs `CAP_SYS_NICE` for that, or an `RLIMIT_RTPRIO` of that priority (`sched(7)`).
pub fn be_real_time(priority: u8) -> Result<(), std::io::Error> {
    let policy = if priority == 0 { libc::SCHED_OTHER } else { libc::SCHED_FIFO };
    let asked = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the kernel only reads `asked`, which outlives the call (sched_setscheduler(2)); 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &raw const asked) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// `struct timex` on 64-bit Linux, as far as we read it: 26 words, all zero when we ask.
#[repr(C)]
struct Timex([u64; 26]);

const _: () = assert!(size_of::<Timex>() == 208, "the kernel's struct timex");

/// Word 4 of it: the estimated error in microseconds.
const TIMEX_ERROR: usize = 4;
/// What `adjtimex` returns if nobody keeps the clock in step.
const TIME_ERROR: c_int = 5;

/// Whether the system's clock is kept in step, and the kernel's estimate of its error in microseconds.
pub(crate) fn clock_is_in_step() -> Result<(bool, u64), std::io::Error> {
    let mut timex = Timex([0; 26]);
    // SAFETY: SYSTEM-1; no bit of `modes` is set, so the kernel changes no clock and only fills it in.
    let state = unsafe { adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok((state != TIME_ERROR, timex.0[TIMEX_ERROR]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_can_be_asked() {
        let (_, error_us) = clock_is_in_step().expect("everybody may read it");
        // The kernel lets its estimate grow to 16 s and no further.
        assert!(error_us <= 16_000_000, "{error_us}");
    }
}
