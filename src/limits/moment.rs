//! The clock of the limits, and how long a request may be held.

/// Microseconds in a second.
pub(super) const US_PER_S: u64 = 1_000_000;

/// The longest time that a request is held; beyond it, it is refused instead: long enough for a burst that is
/// a little too large, short enough that no client takes it for a hang.
pub const WAIT_US_MAX: u64 = 1_000_000;

/// A point in time, in microseconds since some beginning. Only distances matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(super) u64);

impl Moment {
    /// The moment `ms` milliseconds after the beginning.
    #[must_use]
    pub const fn of_ms(ms: u64) -> Self {
        Self(ms.wrapping_mul(1_000))
    }

    /// The moment `us` later, rounded up to a whole millisecond: callers read the time in milliseconds.
    pub(super) const fn after_us(self, us: u64) -> Self {
        Self(self.0.saturating_add(us.div_ceil(1_000) * 1_000))
    }

    /// The moment `seconds` later.
    #[must_use]
    pub const fn after_s(self, seconds: u32) -> Self {
        self.after_us(seconds as u64 * US_PER_S)
    }

    /// Milliseconds until `later`; 0 if that is past.
    #[must_use]
    pub const fn ms_until(self, later: Self) -> u64 {
        later.0.saturating_sub(self.0).div_ceil(1_000)
    }
}
