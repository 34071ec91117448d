//! How far the log is acknowledged, as one loop sees it.
//!
//! *Committed*: the loop walks the commit words from its own last mark; no other thread is
//! involved. *Durable*: the journal thread says how far segments hold. Answers leave at or below
//! this mark and reads are answered from what lies below it, so nothing leaves the process before
//! it is as safe as the configuration says.

use std::sync::Arc;

use super::plan::Durability;
use crate::domain::Position;
use crate::journal::{CommittedMark, Log};

/// A loop's own view.
pub(crate) struct Marks {
    log: Arc<Log>,
    durability: Durability,
    committed: CommittedMark,
}

impl Marks {
    /// A view that begins where the log stands.
    pub(crate) fn new(log: Arc<Log>, durability: Durability) -> Self {
        let committed = CommittedMark::new(&log);
        Self { log, durability, committed }
    }

    /// Everything below this is acknowledged.
    pub(crate) fn advance(&mut self) -> Position {
        match self.durability {
            Durability::Committed => self.committed.advance(&self.log),
            Durability::Durable => self.log.durable(),
        }
    }

    /// The log itself.
    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// When answers may leave.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }
}
