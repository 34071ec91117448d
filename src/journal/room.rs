//! How much of the ring must be free before something is decided.
//!
//! Room is checked before a decision, never while it is written: from the claim on nothing may
//! fail. Between check and claim every other loop may claim too, so what all of them can take at
//! once is kept free (the slack). Orders stop first: an eighth of the ring is for cancels and
//! removals alone. Bulk writers stop long before.

use super::frame::FRAME_BYTES_MAX;
use super::log::Log;

/// The room kept for one claimer: a frame, and as much again for padding.
const CLAIMER_BYTES_MAX: u64 = 2 * FRAME_BYTES_MAX as u64;
/// Claimers besides the shards: the registrar and the reader's state hash.
const OTHER_CLAIMERS: u64 = 2;

impl Log {
    /// The room below which claims of all loops at once might overrun the ring.
    #[must_use]
    pub const fn slack(shards: u16) -> u64 {
        (shards as u64 + OTHER_CLAIMERS) * CLAIMER_BYTES_MAX
    }

    /// Whether an order may be decided now. Each loop checks this before each decision.
    #[must_use]
    pub fn room_for_order(&self, shards: u16) -> bool {
        Self::slack(shards) + self.ring_bytes() / 8 <= self.room()
    }

    /// Whether a cancel or a removal may be decided now: an eighth of the ring is theirs alone.
    #[must_use]
    pub fn room_for_cancel(&self, shards: u16) -> bool {
        Self::slack(shards) <= self.room()
    }

    /// Whether a bulk writer may go on: it stops when more than a quarter of the ring is not
    /// durable yet, or less than a quarter is free.
    #[must_use]
    pub fn room_for_bulk(&self) -> bool {
        let unwritten = self.claimed().0.saturating_sub(self.durable().0);
        unwritten <= self.ring_bytes() / 4 && self.ring_bytes() / 4 <= self.room()
    }
}
