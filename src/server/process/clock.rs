//! The one clock of the process. Everybody else is handed the time.
//!
//! A clock is real, or (for tests and demonstrations) stands still until it is moved. Two kinds of time come from it:
//! wall time for orders and frames, and elapsed time for timeouts. A loop reads both once a turn. Its wall time stands
//! still while the machine's is corrected back by at most [`STEP_MS`], and follows a larger step back, so that clients
//! with the right time are let in again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::domain::TimeMs;
use crate::json::date::LAST;
use crate::limits::Moment;

/// A correction of the machine's clock by this much is a step, which is followed and warned about.
pub(crate) const STEP_MS: u64 = 1_000;

/// A clock that may be shared.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    began: Instant,
    manual: Option<Arc<Manual>>,
}

/// Where a manual clock stands. Like a machine's, its two times have nothing to do with each other.
#[derive(Debug)]
struct Manual {
    wall_ms: AtomicU64,
    /// By how much it was advanced since its start.
    steady_ms: AtomicU64,
}

impl Clock {
    /// The machine's clock.
    pub(crate) fn real() -> Self {
        Self { began: Instant::now(), manual: None }
    }

    /// A clock that stands at `now` until it is advanced.
    pub(crate) fn manual(now: TimeMs) -> Self {
        let manual = Manual { wall_ms: AtomicU64::new(now.0), steady_ms: AtomicU64::new(0) };
        Self { began: Instant::now(), manual: Some(Arc::new(manual)) }
    }

    /// Whether it stands still until it is moved.
    pub(crate) const fn is_manual(&self) -> bool {
        self.manual.is_some()
    }

    /// Moves a manual clock on to the time of the newest frame, if that is ahead, whatever it was set back to since.
    pub(crate) fn go_on_from(&self, newest: TimeMs) {
        if let Some(manual) = &self.manual {
            // Pairs with the Acquire in `Manual::now`; the steady time is where it was.
            manual.wall_ms.fetch_max(newest.0, Ordering::Release);
        }
    }

    /// Wall time.
    pub(crate) fn now(&self) -> TimeMs {
        match &self.manual {
            Some(manual) => manual.now(),
            None => wall(),
        }
    }

    /// Wall time for a loop whose last turn had `before`.
    pub(crate) fn now_after(&self, before: TimeMs) -> TimeMs {
        followed(before, self.now())
    }

    /// A watch over the machine's clock from now on; none for a manual one.
    pub(crate) fn steps(&self) -> Option<Steps> {
        self.manual.is_none().then(|| Steps::new(self.now(), self.elapsed_ms()))
    }

    /// Wall time in microseconds; a manual clock has whole milliseconds.
    pub(crate) fn now_us(&self) -> u64 {
        match &self.manual {
            Some(manual) => manual.now().0.saturating_mul(1_000),
            None => since_1970().as_micros().try_into().unwrap_or(u64::MAX),
        }
    }

    /// Nanoseconds since this clock was made, never 0; never stands still.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        nanoseconds(self.began.elapsed()).max(1)
    }

    /// Milliseconds since this clock was made, for timeouts; never stands still.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.elapsed_ns() / 1_000_000
    }

    /// The time that limits count by: [`Self::steady_ms`], so that nobody is limited because the clock was set back.
    pub(crate) fn moment(&self, elapsed_ms: u64) -> Moment {
        Moment::of_ms(self.steady_ms(elapsed_ms))
    }

    /// Milliseconds since the clock was made, whatever it was set to since: `elapsed_ms`, as the turn has read it, or
    /// by how much a manual clock was advanced.
    pub(crate) fn steady_ms(&self, elapsed_ms: u64) -> u64 {
        self.manual.as_ref().map_or(elapsed_ms, |manual| manual.steady_ms.load(Ordering::Relaxed))
    }

    /// The same in microseconds, at the moment at which [`Self::elapsed_ns`] said `elapsed_ns`; of a manual clock, now.
    pub(crate) fn steady_us(&self, elapsed_ns: u64) -> u64 {
        let advanced_ms = self.manual.as_ref().map(|manual| manual.steady_ms.load(Ordering::Relaxed));
        advanced_ms.map_or(elapsed_ns / 1_000, |ms| ms.saturating_mul(1_000))
    }

    /// Moves a manual clock and returns the new time. Below zero it is set back, which the steady time knows nothing of.
    pub(crate) fn advance_ms(&self, ms: i64) -> Result<TimeMs, Unmoved> {
        self.manual.as_ref().ok_or(Unmoved::Real)?.advance_ms(ms).ok_or(Unmoved::OutOfRange)
    }
}

impl Manual {
    fn now(&self) -> TimeMs {
        // Pairs with the Release in `advance_ms` and `go_on_from`: who sees the new wall time sees the steady time that
        // belongs to it.
        TimeMs(self.wall_ms.load(Ordering::Acquire))
    }

    /// None, and nothing is moved, if the new time would have no date.
    fn advance_ms(&self, ms: i64) -> Option<TimeMs> {
        let after = |before: u64| before.checked_add_signed(ms).filter(|&after| after <= LAST.0);
        after(self.now().0)?;
        self.steady_ms.fetch_add(u64::try_from(ms).unwrap_or(0), Ordering::Relaxed);
        // Pairs with the Acquire in `now`.
        let before = self.wall_ms.fetch_update(Ordering::Release, Ordering::Relaxed, after).ok()?;
        after(before).map(TimeMs)
    }
}

/// Why a clock was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmoved {
    /// It is the machine's.
    Real,
    /// The new time would be before 1970 or after the year 9999.
    OutOfRange,
}

/// The wall time that comes after `before` when a clock says `now`.
fn followed(before: TimeMs, now: TimeMs) -> TimeMs {
    if now.plus_ms(STEP_MS) < before { now } else { before.max(now) }
}

/// Steps of the machine's clock, as wall and elapsed time show them together.
#[derive(Debug)]
pub(crate) struct Steps {
    began: TimeMs,
    began_ms: u64,
}

impl Steps {
    /// Watches from this moment on.
    const fn new(now: TimeMs, elapsed_ms: u64) -> Self {
        Self { began: now, began_ms: elapsed_ms }
    }

    /// By how many milliseconds the clock was set ahead (below zero: back) since the last step; none if by less than
    /// [`STEP_MS`]. Slow corrections add up to a step in the end.
    pub(crate) fn step(&mut self, now: TimeMs, elapsed_ms: u64) -> Option<i64> {
        let expected = self.began.0 + elapsed_ms.saturating_sub(self.began_ms);
        if now.0.abs_diff(expected) < STEP_MS {
            return None;
        }
        *self = Self::new(now, elapsed_ms);
        Some(now.0.wrapping_sub(expected).cast_signed())
    }
}

/// The machine's wall time.
pub(crate) fn wall() -> TimeMs {
    TimeMs(u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX))
}

/// A duration in nanoseconds; centuries are as long as can be.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
        assert_eq!(clock.clone().advance_ms(10), Ok(TimeMs(15)));
        assert_eq!((clock.now(), clock.steady_ms(7)), (TimeMs(15), 10));
        assert_eq!(clock.advance_ms(-8), Ok(TimeMs(7)));
        for beyond in [-8, i64::MIN, i64::MAX] {
            assert_eq!(clock.advance_ms(beyond), Err(Unmoved::OutOfRange), "{beyond}");
        }
        assert_eq!((clock.now(), clock.steady_ms(7)), (TimeMs(7), 10));
        assert_eq!(Clock::real().advance_ms(1), Err(Unmoved::Real));
        assert_eq!(Clock::real().steady_ms(7), 7);
        assert!(clock.steps().is_none());
        for (newest, expected) in [(6, 7), (9, 9)] {
            clock.go_on_from(TimeMs(newest));
            assert_eq!((clock.now(), clock.steady_ms(7)), (TimeMs(expected), 10));
        }
    }

    #[test]
    fn a_small_correction_is_waited_for_and_a_step_is_followed() {
        for (before, now, expected) in [
            (0, 5_000, 5_000),
            (5_000, 5_000, 5_000),
            (5_000, 4_999, 5_000),
            (5_000, 4_000, 5_000),
            (5_000, 3_999, 3_999),
            (u64::MAX, 1, 1),
        ] {
            assert_eq!(followed(TimeMs(before), TimeMs(now)), TimeMs(expected), "{now} behind {before}");
        }
    }

    #[test]
    fn a_step_is_told_once_and_time_that_passes_is_none() {
        let mut steps = Steps::new(TimeMs(10_000), 50);
        for (now, elapsed_ms, expected) in [
            (10_900, 950, None),
            (13_949, 3_000, None),
            (7_000, 3_100, Some(-6_050)),
            (7_100, 3_200, None),
            (99_000, 3_300, Some(91_800)),
            (99_000, 4_299, None),
            (99_000, 4_300, Some(-1_000)),
        ] {
            assert_eq!(steps.step(TimeMs(now), elapsed_ms), expected, "{now} after {elapsed_ms}");
        }
    }
}
