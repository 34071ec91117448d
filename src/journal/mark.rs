//! How far the log is committed without a gap.

use super::log::{Log, Look};
use crate::domain::Position;

/// A loop's own mark: the end of the gap-free committed part of the log.
///
/// Each loop walks the frames' first words from where it stopped last; no other thread is involved.
#[derive(Clone, Debug)]
pub struct CommittedMark {
    at: Position,
}

impl CommittedMark {
    /// A mark at the oldest frame that the log holds: everything before it is durable.
    #[must_use]
    pub fn new(log: &Log) -> Self {
        Self { at: log.oldest() }
    }

    /// Walks to the first frame that is not committed, and returns its position.
    pub fn advance(&mut self, log: &Log) -> Position {
        loop {
            match log.look(self.at) {
                Look::Bytes(bytes) => self.at.0 += bytes as u64,
                // What was zeroed is durable, so it was committed: continue after it.
                Look::Lapped => self.at = log.oldest(),
                Look::NotYet => return self.at,
            }
        }
    }

    /// Where `advance` stopped last.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.at
    }
}
