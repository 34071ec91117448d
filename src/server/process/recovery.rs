//! The reader as the log leaves it: from a snapshot and the frames after it.
//!
//! The start and the snapshotter both use this, so a snapshot is made by the code that will read
//! it.

use crate::domain::Position;
use crate::journal::layout::Record;
use crate::journal::{Archive, Base, Fault, Frame, SnapshotReader};
use crate::ledger::Contradiction;
use crate::reader::{Reader, Settings};

/// Why the log cannot be followed to its end.
pub(crate) enum Stop {
    /// A file is not what was written.
    Fault(Fault),
    /// A frame does not say what its kind says.
    Record(Position, String),
    /// A record cannot have happened.
    Contradiction(Position, Contradiction),
    /// The process ends.
    Ending,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fault(fault) => write!(out, "{fault}"),
            Self::Record(position, damage) => write!(out, "journal: position {}: {damage}", position.0),
            Self::Contradiction(position, why) => write!(out, "journal: position {}: {why}", position.0),
            Self::Ending => out.write_str("the server ends"),
        }
    }
}

/// Loads the reader from a snapshot. Runs that `beside` has are not read again.
pub(crate) fn load(
    settings: &Settings,
    snapshot: &mut SnapshotReader,
    beside: &Archive,
) -> Result<Reader, Fault> {
    let mut reader = Reader::new(settings.clone());
    reader.set_archive(snapshot.archive(beside)?);
    while let Some((name, bytes)) = snapshot.next()? {
        if let Err(damage) = reader.take_section(name, bytes) {
            return Err(snapshot.meaningless(damage.field, damage.at));
        }
    }
    reader.complete().map_err(|damage| snapshot.meaningless(damage.field, damage.at))?;
    check(&reader, snapshot.base()).map_err(|field| snapshot.meaningless(field, 0))?;
    Ok(reader)
}

/// Checks that the snapshot's header and its state agree.
fn check(reader: &Reader, base: &Base) -> Result<(), &'static str> {
    let ledger = reader.ledger();
    match () {
        () if ledger.state_hash() != base.hash => Err("state hash"),
        () if ledger.end() > base.position => Err("position of the state"),
        () => Ok(()),
    }
}

/// Applies one frame.
pub(crate) fn apply(reader: &mut Reader, frame: &Frame<'_>) -> Result<(), Stop> {
    let start = frame.span.start;
    let record = Record::decode(frame.kind, frame.payload)
        .map_err(|damage| Stop::Record(start, damage.to_string()))?;
    reader.apply(start, frame.span.end, &record).map_err(|why| Stop::Contradiction(start, why))
}
