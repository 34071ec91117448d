//! How far the log is acknowledged, as one loop sees it.
//!
//! *Committed*: the loop walks the commit words from its own last mark; no other thread is
//! involved. *Durable*: the journal's thread reports how far the segments have it. Answers leave at
//! or below this mark and reads are answered from what is below it, so nothing leaves the process
//! before it is as safe as the configuration says. If somebody removes the log's file, what is
//! committed does not outlive the process any more, and answers wait for the disk from then on.

use std::sync::Arc;

use crate::domain::Position;
use crate::journal::{CommittedMark, Durability, Log};

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

    /// Moves the mark on and returns it: everything below it is acknowledged.
    pub(crate) fn advance(&mut self) -> Position {
        match self.durability() {
            Durability::Committed => self.committed.advance(&self.log),
            // What was acknowledged before the log was lost stays so.
            Durability::Durable => self.committed.position().max(self.log.durable()),
        }
    }

    /// The log itself.
    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// When answers may leave: once the log's file is lost, only from the disk.
    pub(crate) fn durability(&self) -> Durability {
        if self.log.is_lost() { Durability::Durable } else { self.durability }
    }
}
