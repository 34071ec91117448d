//! The journal: one log of frames for the whole exchange, and the files that keep it.

pub mod follow;
pub mod frame;
pub mod layout;
#[allow(dead_code, reason = "what opens and writes the log comes next")]
pub mod log;
#[allow(dead_code, reason = "what opens and writes the log comes next")]
pub mod segment;

pub use follow::Follower;
pub use frame::{FRAME_BYTES_MAX, Frame, PAYLOAD_BYTES_MAX, Span};
pub use log::{Claim, CommittedMark, Log};
pub use segment::Segments;

use crate::domain::Position;

/// What went wrong in the world: files, disks, other processes.
#[derive(Debug)]
pub enum Fault {
    /// A follower fell behind what the ring keeps, and there are no segments to read.
    Lapped {
        /// What it wanted.
        position: Position,
        /// What there is.
        oldest: Position,
    },
}
