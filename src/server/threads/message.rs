//! What loops say to each other.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use crate::domain::{OrderId, Position, TimeMs, WalletNo};
use crate::registrar::KeyOfOwner;
use crate::server::connections::Client;
use crate::server::connections::connection::Carried;
use crate::server::operator::admin::Pending;
use crate::server::requests::toll::Toll;
use crate::server::trading::Trade;
use crate::server::trading::replaces::ReplaceJob;
use crate::server::trading::wide::WideJob;
use crate::shard::{Acted, CancelRefusal, Placed, ReadyOrder, Refusal, UserAct};

/// A piece of work of the loop that asks, and which of its items is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The work's place.
    pub(crate) work: u32,
    /// The item within it.
    pub(crate) item: u32,
}

/// What another loop's shard is asked.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "a ring's slot is as large as its largest question")]
pub(crate) enum Question {
    /// To place an order.
    Place(ReadyOrder),
    /// To cancel one.
    Cancel {
        /// The order's owner.
        principal: WalletNo,
        /// The order.
        id: OrderId,
    },
    /// To leave a tombstone for one, or to cancel it if it has arrived since it was looked for.
    Bury {
        /// The order's owner.
        principal: WalletNo,
        /// The order.
        id: OrderId,
    },
    /// To split, merge or redeem.
    Act(UserAct),
}

/// A request to another loop's shard, as a fixed slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Where the answer belongs.
    pub(crate) ticket: Ticket,
    /// What is asked.
    pub(crate) question: Question,
}

/// What the shard said.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// Of an order.
    Placed(Placed),
    /// Of a cancel.
    Cancelled(Result<(), CancelRefusal>),
    /// Of a tombstone: whether it is there.
    Buried(bool),
    /// Of a split, merge or redeem.
    Acted(Result<Acted, Refusal>),
}

/// The answer to a request to another loop's shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Where the answer belongs.
    pub(crate) ticket: Ticket,
    /// The shard's last claimed position: the answer waits for it.
    pub(crate) at: Position,
    /// What the shard said.
    pub(crate) answer: Answer,
    /// How long it took to decide, in nanoseconds.
    pub(crate) match_ns: u64,
}

/// What goes through the post.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A connection that belongs to the receiving loop from now on. Not answered.
    Moved(Box<Moved>),
    /// A request for the reader; comes back with its answer.
    Read(Box<ReadJob>),
    /// A cancel of many orders for a shard; comes back with what it found.
    Wide(Box<WideJob>),
    /// A replace for a shard; comes back with what it decided.
    Replace(Box<ReplaceJob>),
    /// An act for the registrar or a shard; comes back with its result.
    Act(Box<ActJob>),
}

/// A connection on its way to another loop.
#[derive(Debug)]
pub(crate) struct Moved {
    /// The socket.
    pub(crate) client: OwnedFd,
    /// Who is at the other end.
    pub(crate) peer: IpAddr,
    /// What it takes along.
    pub(crate) carried: Carried,
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
    /// The highest position that any client had been told when the request was read: the answer
    /// must include it.
    pub(crate) tag: Position,
    /// When to give up waiting for that.
    pub(crate) deadline_ms: u64,
    /// Whether the connection stays open after the answer.
    pub(crate) keep_alive: bool,
    /// The whole answer, head and body.
    pub(crate) answer: Vec<u8>,
    /// What must be acknowledged before the answer leaves.
    pub(crate) at: Position,
    /// What the request has paid.
    pub(crate) toll: Toll,
}

/// Something to be done on a trading loop, with all that its trading role has.
pub(crate) type Errand = Box<dyn FnOnce(&mut Trade, TimeMs) -> Report + Send>;

/// What came of an errand.
pub(crate) enum Report {
    /// The answer.
    Answer(Said),
    /// Something else must be done on that loop before there is an answer.
    Next(usize, Errand),
    /// An import goes on with this where the registrar is, when the log has room for it.
    WhenRoom(Errand),
    /// What became of an order.
    Placed(Placed),
}

impl Report {
    /// It is done; this is the body.
    pub(crate) const fn done(body: Vec<u8>) -> Self {
        Self::Answer(Said::done(body))
    }
}

/// What an act is answered with.
#[derive(Debug)]
pub(crate) struct Said {
    /// The HTTP status.
    pub(crate) status: u16,
    /// When to ask again, in seconds, if waiting helps.
    pub(crate) retry_after_s: Option<u32>,
    /// JSON.
    pub(crate) body: Vec<u8>,
}

impl Said {
    /// It is done; this is the body.
    pub(crate) const fn done(body: Vec<u8>) -> Self {
        Self { status: 200, retry_after_s: None, body }
    }
}

/// Whom an act's answer is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A key-holder, whose request is at the reader's.
    Reader(Box<ReadJob>),
    /// The operator.
    Operator(Pending),
    /// The operator, whose next import or new market begins after this one.
    Addition(Pending),
    /// An order of this loop, which had to link its wallet first.
    Order(Ticket),
    /// A key-holder, whose request is under way on this loop.
    Request(u32),
    /// Nobody: the server acts by itself.
    House,
    /// Nobody: orders leave because this key has lost a connection.
    Lost(KeyOfOwner),
}

/// Whether every loop must have seen an act before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// It concerns nobody else, or publishing it is enough.
    Nobody,
    /// Every trading loop must have begun a later turn, and every shard have read what they judged before that: freeze,
    /// revoke, link, modes.
    EveryShard,
}

/// An act that is not an order: the operator's or a key-holder's.
pub(crate) struct ActJob {
    /// Whom the answer is for.
    pub(crate) purpose: Purpose,
    /// Who must have seen it.
    pub(crate) binding: Binding,
    /// What is to be done; `None` once it is.
    pub(crate) errand: Option<Errand>,
    /// What came of it.
    pub(crate) report: Option<Report>,
    /// The loop that has to confirm next.
    pub(crate) confirm_next: usize,
    /// The highest position that any loop named.
    pub(crate) at: Position,
    /// How long loops took to do it, in nanoseconds.
    pub(crate) match_ns: u64,
}

impl ActJob {
    /// An act that nobody has done yet.
    pub(crate) fn new(purpose: Purpose, binding: Binding, errand: Errand) -> Self {
        let at = Position(0);
        Self { purpose, binding, errand: Some(errand), report: None, confirm_next: 0, at, match_ns: 0 }
    }
}

impl std::fmt::Debug for ActJob {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ActJob")
            .field("purpose", &self.purpose)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
