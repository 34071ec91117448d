//! Time as a number that somebody hands in: no room below `server` reads a clock.

/// From this number on a client's time is in milliseconds, below it in seconds: 1e11 seconds are the
/// year 5138, 1e11 milliseconds the year 1973.
pub const MILLISECONDS_FROM: u64 = 100_000_000_000;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TimeMs(pub u64);

impl TimeMs {
    /// Whole seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1_000
    }

    /// The instant at which second `seconds` begins; saturates.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// The instant `ms` later; saturates.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}
