//! For how long a thread was ready to run and had no CPU: the kernel's run delay.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// What a line of `schedstat` has: three numbers of at most 20 digits.
const LINE: usize = 64;

/// The run delay of the thread that made it, read again and again.
#[derive(Debug)]
pub(crate) struct RunDelay {
    /// None where the kernel does not count (`CONFIG_SCHED_INFO`).
    stat: Option<File>,
    seen_ns: u64,
}

impl RunDelay {
    /// Counts for the calling thread, from now on.
    pub(crate) fn of_this_thread() -> Self {
        // The file is about the thread that opens it, whichever thread reads it.
        let mut delay = Self { stat: File::open("/proc/thread-self/schedstat").ok(), seen_ns: 0 };
        delay.since_last();
        delay
    }

    /// Nanoseconds since the last call in which the thread was ready and another one ran; none if the kernel does not
    /// count.
    pub(crate) fn since_last(&mut self) -> Option<u64> {
        let mut line = [0; LINE];
        let read = self.stat.as_ref()?.read_at(&mut line, 0).ok()?;
        let ns = run_delay_ns(std::str::from_utf8(&line[..read]).ok()?)?;
        let since = ns.saturating_sub(self.seen_ns);
        self.seen_ns = ns;
        Some(since)
    }
}

/// The second number of `schedstat` (proc(5): time on the CPU, time on a run queue, slices).
fn run_delay_ns(line: &str) -> Option<u64> {
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_what_a_thread_waited() {
        for (line, expected) in [("123 456 7\n", Some(456)), ("123", None), ("1 x 2", None), ("", None)] {
            assert_eq!(run_delay_ns(line), expected, "{line:?}");
        }
    }

    #[test]
    fn time_that_was_told_once_is_not_told_again() {
        let mut delay = RunDelay { stat: None, seen_ns: 0 };
        assert_eq!(delay.since_last(), None, "nobody counts");
        delay = RunDelay::of_this_thread();
        let seen_ns = delay.seen_ns;
        if let Some(since_ns) = delay.since_last() {
            assert_eq!(delay.seen_ns, seen_ns + since_ns);
        }
    }
}
