//! Reading the log while it grows: each frame once, in order, whole.
//!
//! A follower copies frames out of the ring into a buffer of its own. If it falls behind by more
//! than the ring keeps, the ring says so and it reads segments until it has caught up.

use std::sync::Arc;

use super::Fault;
use super::frame::{Frame, PADDING};
use super::history::{History, Segments};
use super::log::Log;
use crate::domain::Position;

/// Gives the frames from a position on, one after another.
#[derive(Debug)]
pub struct Follower {
    history: History,
    next: Position,
}

impl Follower {
    /// A follower whose first frame is the one at `from`. Without segments (in tests), falling a
    /// lap behind is a fault.
    #[must_use]
    pub fn new(log: Arc<Log>, from: Position, segments: Option<Arc<Segments>>) -> Self {
        Self { history: History::new(log, segments), next: from }
    }

    /// The next frame that ends at or below `limit`, the end of what is acknowledged.
    pub fn next(&mut self, limit: Position) -> Result<Option<Frame<'_>>, Fault> {
        while self.next < limit {
            let Some(held) = self.history.hold(self.next)? else {
                return Ok(None);
            };
            if limit < held.span.end {
                return Ok(None);
            }
            self.next = held.span.end;
            if held.kind != PADDING {
                return Ok(Some(self.history.held(held)));
            }
        }
        Ok(None)
    }

    /// The position of the frame that comes next.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.next
    }
}
