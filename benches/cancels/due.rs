//! When each cancel is due, and how late the client is with it.
//!
//! One is under way at a time, so a slow answer holds up the cancels behind it. That is the server's time and not the
//! client's: such a cancel still counts from the moment at which it was due, and its client is late only from the
//! moment at which it could have sent it. Those that a slow server held up past the end of the round are sent too.

use std::time::Duration;

/// Cancels at equal distances, from 0 to the end of a round.
pub(crate) struct Due {
    interval: Duration,
    end: Duration,
    /// When the next one is due.
    next: Duration,
    /// When the answer to the one before it was read.
    answered: Duration,
}

/// One cancel that is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    /// When it was due.
    pub(crate) due: Duration,
    /// How late the client is with it.
    pub(crate) late: Duration,
}

impl Due {
    pub(crate) fn new(interval: Duration, end: Duration) -> Self {
        Self { interval, end, next: Duration::ZERO, answered: Duration::ZERO }
    }

    /// Whether all of the round were sent.
    pub(crate) fn is_over(&self) -> bool {
        self.end <= self.next
    }

    /// The next cancel, if it is due; the one before it must have been answered.
    pub(crate) fn take(&mut self, now: Duration) -> Option<Ready> {
        let due = self.next;
        if self.is_over() || now < due {
            return None;
        }
        self.next += self.interval;
        Some(Ready { due, late: now.saturating_sub(due.max(self.answered)) })
    }

    /// The one under way was answered.
    pub(crate) fn answered(&mut self, now: Duration) {
        self.answered = now;
    }
}
