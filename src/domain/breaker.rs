//! Fill-rate breakers.

use super::Shares;

/// How a key's breaker stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BreakerState {
    /// The filled quantity that trips it; zero if there is none.
    pub quantity: Shares,
    /// Within this many milliseconds.
    pub interval_ms: u64,
    /// Whether it has tripped and was not reset.
    pub tripped: bool,
}
