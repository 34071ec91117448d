//! The one clock of the process. Everybody else is handed the time.
//!
//! A clock is real, or (for tests and demonstrations) stands still until it is moved. Two kinds
//! of time come from it: wall time for orders and frames, and elapsed time for timeouts. A loop
//! reads both once a turn and never lets its wall time run backwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::domain::TimeMs;
use crate::limits::Moment;

/// A clock that may be shared.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    began: Instant,
    manual: Option<Arc<AtomicU64>>,
}

impl Clock {
    /// The machine's clock.
    pub(crate) fn real() -> Self {
        Self { began: Instant::now(), manual: None }
    }

    /// A clock that stands at `now` until it is advanced.
    pub(crate) fn manual(now: TimeMs) -> Self {
        Self { began: Instant::now(), manual: Some(Arc::new(AtomicU64::new(now.0))) }
    }

    /// Wall time.
    pub(crate) fn now(&self) -> TimeMs {
        match &self.manual {
            Some(at) => TimeMs(at.load(Ordering::Relaxed)),
            None => wall(),
        }
    }

    /// Wall time in microseconds; a manual clock has whole milliseconds.
    pub(crate) fn now_us(&self) -> u64 {
        match &self.manual {
            Some(at) => at.load(Ordering::Relaxed).saturating_mul(1_000),
            None => since_1970().as_micros().try_into().unwrap_or(u64::MAX),
        }
    }

    /// Nanoseconds since this clock was made, never 0; never stands still.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// Milliseconds since this clock was made, for timeouts; never stands still.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.elapsed_ns() / 1_000_000
    }

    /// The time that limits go by: that of a manual clock, else what has elapsed, so that nobody is limited
    /// because the machine's clock was set back. `now` and `elapsed_ms` are what the turn has read.
    pub(crate) fn moment(&self, now: TimeMs, elapsed_ms: u64) -> Moment {
        Moment::of_ms(self.steady_ms(now, elapsed_ms))
    }

    /// The same in milliseconds.
    pub(crate) const fn steady_ms(&self, now: TimeMs, elapsed_ms: u64) -> u64 {
        if self.manual.is_some() { now.0 } else { elapsed_ms }
    }

    /// Moves a manual clock and returns the new time; `None` on a real one.
    pub(crate) fn advance_ms(&self, ms: u64) -> Option<TimeMs> {
        let at = self.manual.as_ref()?;
        Some(TimeMs(at.fetch_add(ms, Ordering::Relaxed).saturating_add(ms)))
    }
}

/// The machine's wall time.
pub(crate) fn wall() -> TimeMs {
    TimeMs(u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_it_is_moved() {
        let clock = Clock::manual(TimeMs(5));
        assert_eq!(clock.now(), TimeMs(5));
        assert_eq!(clock.clone().advance_ms(10), Some(TimeMs(15)));
        assert_eq!(clock.now(), TimeMs(15));
        assert_eq!(Clock::real().advance_ms(1), None);
    }
}
