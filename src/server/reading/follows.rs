//! What a loop follows the log with.

use super::Reading;
use super::followed::Followed;
use crate::domain::{Position, TimeMs};

/// The reader's loop has the state that reads are answered from, and with it all streams; with `cpu.feed` another loop
/// has a second copy of the state, and the streams instead.
pub(crate) enum Follows {
    /// It follows nothing, or has not recovered yet.
    Nothing,
    /// The reader.
    Reader(Box<Reading>),
    /// The feed, apart from the reader.
    Feed(Box<Followed>),
}

impl Follows {
    /// The reader, where it is.
    pub(crate) fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Reader(reading) => Some(reading),
            Self::Nothing | Self::Feed(_) => None,
        }
    }

    /// The reader, where it is.
    pub(crate) fn reading_mut(&mut self) -> Option<&mut Reading> {
        match self {
            Self::Reader(reading) => Some(reading),
            Self::Nothing | Self::Feed(_) => None,
        }
    }

    /// The state and its streams.
    pub(crate) fn followed(&self) -> Option<&Followed> {
        match self {
            Self::Nothing => None,
            Self::Reader(reading) => Some(&reading.followed),
            Self::Feed(followed) => Some(followed),
        }
    }

    /// The state and its streams.
    pub(crate) fn followed_mut(&mut self) -> Option<&mut Followed> {
        match self {
            Self::Nothing => None,
            Self::Reader(reading) => Some(&mut reading.followed),
            Self::Feed(followed) => Some(followed),
        }
    }

    /// Applies frames up to `mark`; returns whether there were any.
    pub(crate) fn follow(&mut self, mark: Position, now: TimeMs) -> bool {
        match self {
            Self::Nothing => false,
            Self::Reader(reading) => reading.follow(mark, now),
            Self::Feed(followed) => followed.follow(mark, now, |_, _| {}),
        }
    }

    /// True if there is something to do without new frames.
    pub(crate) fn has_work(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Reader(reading) => reading.has_work(),
            Self::Feed(followed) => followed.can_shed(),
        }
    }
}
