//! The journal: one log of frames for the whole exchange, and the files that keep it.
//!
//! Every change of state is one frame: a decision together with its results. All loops append to one
//! ring in shared memory ([`log`]); a thread of its own carries what is committed to segment files
//! (`writer`, `batches`); a start reads them all and continues (`open`). Files that have their last
//! frame are rewritten without their unused room (`pack`).
//!
//! ```text
//!  loops ──append──▶ ring in /dev/shm ──journal thread──▶ segments on disk
//!                        │                                   │
//!  followers ◀───────────┴──────── if a lap behind ──────────┘
//! ```
//!
//! - *Committed*: the frame and all before it are in the ring; survives the process.
//! - *Durable*: in a segment; survives the machine.
//! - A **position** counts bytes of frames since the first one and never falls. It is not an offset in
//!   any file.
//! - An **epoch** is the number of a start. It rises with each, so that what an earlier start left is
//!   never taken for what this one wrote.
//! - What was acknowledged is never dropped: if any of it is in doubt, the start is refused, naming
//!   the place.
//!
//! | file | what it knows |
//! |---|---|
//! | `log`, `frame`, `checksum` | the ring; one frame; its sum |
//! | `room`, `mark` | how much of the ring must be free; how far it is committed |
//! | `logfile` | the ring's file: whose it is, what a process left in it |
//! | `segment`, `batches` | segments, and writing batches to them |
//! | `writer` | the journal's thread |
//! | `open`, `identity`, `verdict` | taking over a directory: how, whose it is, what of it belongs together |
//! | `doubt` | what a start found missing, until one has gone on |
//! | `scan`, `history`, `follow` | reading segments, any frame, and each frame once as they come |
//! | `pack` | rewriting full segments |
//! | `snapshot`, `archive` | the state at one position, and rows that are over |
//! | `offline` | reading without taking over |
//! | `layout` | what frames say |
//! | `disk`, `fault` | every operation that changes files, and what can go wrong |
//!
//! Nothing here knows what a frame means; [`layout`] says what is in it and `ledger` what it does.

mod archive;
mod batches;
mod checksum;
mod disk;
mod doubt;
mod fault;
mod follow;
pub mod frame;
mod history;
mod identity;
pub mod layout;
pub mod log;
mod logfile;
mod mark;
mod offline;
mod open;
mod pack;
mod room;
mod scan;
mod segment;
mod snapshot;
mod verdict;
mod writer;

pub use archive::{Archive, ArchiveRow};
pub(crate) use disk::{Disk, free_bytes};
pub use fault::{Fault, Place};
pub use follow::Follower;
pub use frame::{FIRST_POSITION, FRAME_ALIGN, FRAME_BYTES_MAX, Frame, PAYLOAD_BYTES_MAX, Span};
pub use history::{History, Segments};
pub(crate) use identity::is_in_use;
pub use log::{Claim, Log, Parts};
pub use mark::CommittedMark;
pub use offline::{
    Gone, Survey, gone, has_first_segment, log_is_of, log_path, refusal, snapshots, survey, was_begun,
};
pub use open::{Claimed, Durability, Opened, Options, Recovered, Started, log_bytes_min, open};
pub(crate) use open::{SHARED_MEMORY, open_with, refuse_memory};
pub use pack::{Packed, Packer, Step};
pub use scan::Cut;
pub(crate) use segment::directory as segments_directory;
pub use snapshot::{Base, SnapshotReader, SnapshotWriter, Snapshots, Written};
pub use writer::{Listener, WriterHandle};

#[cfg(test)]
mod tests;
