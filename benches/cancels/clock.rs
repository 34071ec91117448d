//! The client's clock, which stands still while the client has no CPU.
//!
//! Reader, journal and kernel have no CPU but the client's, and take it for milliseconds when a table of the reader
//! grows or a file of the log is prepared. A client on a machine of its own does not wait for them, so that time is not
//! the server's: neither is anything due in it, nor does it count for what is under way.

use std::time::{Duration, Instant};

/// The client looks at its clock each few microseconds, and its own steps take tens of them. Of a longer gap only this
/// much counts; in the rest the client had no CPU.
const GAP_MAX: Duration = Duration::from_micros(100);

/// Time since its start, without the gaps.
pub(crate) struct Clock {
    begin: Instant,
    looked: Duration,
    away: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { begin: Instant::now(), looked: Duration::ZERO, away: Duration::ZERO }
    }

    /// Time in which the client had its CPU.
    pub(crate) fn now(&mut self) -> Duration {
        let elapsed = self.begin.elapsed();
        self.away += elapsed.saturating_sub(self.looked + GAP_MAX);
        self.looked = elapsed;
        elapsed.saturating_sub(self.away)
    }

    /// Time that was left out.
    pub(crate) fn away(&self) -> Duration {
        self.away
    }
}
