//! What loops say to each other.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::connections::Client;
use crate::domain::Position;

/// A piece of work of the loop that asks, and which of its items is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The work's place.
    pub(crate) work: u32,
    /// The item within it.
    pub(crate) item: u32,
}

/// A request to another loop's shard, as a fixed slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Where the answer belongs.
    pub(crate) ticket: Ticket,
}

/// The answer to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Where the answer belongs.
    pub(crate) ticket: Ticket,
    /// The shard's last claimed position: the answer waits for it.
    pub(crate) at: Position,
}

/// What goes through the post.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A connection that belongs to an ingress loop from now on. Not answered.
    Moved(Moved),
    /// A request for the reader; comes back with its answer.
    Read(Box<ReadJob>),
    /// An act for a shard or the registrar; comes back with its result.
    Act(Box<ActJob>),
}

/// A connection on its way to another loop.
#[derive(Debug)]
pub(crate) struct Moved {
    /// The socket.
    pub(crate) client: OwnedFd,
    /// Who is at the other end.
    pub(crate) peer: IpAddr,
    /// What came in and is not used yet.
    pub(crate) unread: Vec<u8>,
}

/// A request that is answered where the reader is.
#[derive(Debug)]
pub(crate) struct ReadJob {
    /// The loop that has the connection.
    pub(crate) origin: usize,
    /// The connection.
    pub(crate) client: Client,
    /// The request's number in the connection's line.
    pub(crate) number: u32,
    /// Head and decoded body.
    pub(crate) bytes: Vec<u8>,
    /// What had been acknowledged when the request was read: the answer must know of it.
    pub(crate) tag: Position,
    /// When to give up waiting for that.
    pub(crate) deadline_ms: u64,
    /// The whole answer, head and body.
    pub(crate) answer: Vec<u8>,
    /// What must be acknowledged before the answer leaves.
    pub(crate) at: Position,
}

/// An act that is not an order: the operator's or a key-holder's.
#[derive(Debug)]
pub(crate) struct ActJob {
    /// The loop that asks.
    pub(crate) origin: usize,
}
