//! One client's connection: bytes in, open requests, bytes out.
//!
//! Requests are numbered from 0. An answer is put into its request's place whenever it is ready and whoever made it;
//! [`Line::release`] moves answers to the output in request order, and only those whose position is acknowledged. A
//! buffer that is no longer used is kept for the next bytes or answer, if it is small: at most [`IDLE_BYTES_MAX`] are
//! kept in all.
//!
//! | limit | value | at it |
//! |---|---|---|
//! | open requests | [`OPEN_MAX`] | the socket is not read |
//! | bytes of answers that are not sent | `line::UNSENT_BYTES_MAX` | the socket is not read |
//! | unsent | `UNSENT_MS` of the loop's sockets | closed |
//! | head, idle | `Limits::{head_ms, idle_ms}` | closed |

mod input;
mod line;

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::List;
use super::held::{Held, Share};
use super::socket::Interest;
use crate::http::Chunked;
use crate::http::websocket::Frames;
use crate::limits::Party;
use crate::reader::Channel;
use crate::registrar::KeyOfOwner;

pub(crate) use input::{Input, REQUEST_BYTES_MAX};
pub(crate) use line::{Intent, Line, OPEN_MAX, Timed};

/// What is kept of each: the buffer of what comes, that of what leaves, and one for an answer.
pub(crate) const KEPT_BYTES_MAX: usize = 16 << 10;

/// What a connection that waits for nothing keeps at most.
pub(crate) const IDLE_BYTES_MAX: usize = size_of::<Connection>()
    + Input::LIST_BYTES
    + Line::LISTS_BYTES
    + 2 * KEPT_BYTES_MAX
    + line::SPARES_BYTES_MAX;

/// Which listener a connection came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// The public one.
    Public,
    /// The operator's.
    Admin,
}

/// What becomes of further bytes from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    /// It is taken.
    All,
    /// It has said all that it will say: what has come whole is still done and answered.
    Buffered,
    /// Nothing more is taken, though the client may still send: it was refused unread, or the server leaves. Closed when
    /// everything is answered and sent, and the client had time to read that.
    Refused,
    /// The client asks for nothing more, or its stream was told to end; closed when everything is answered and sent.
    Nothing,
    /// Everything is sent; what still comes in is discarded until the client closes.
    Farewell,
}

/// The state of a connection that speaks WebSocket.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What comes in.
    pub(crate) frames: Frames,
    /// What it is told about.
    pub(crate) channel: Channel,
    /// Who pays for its messages.
    pub(crate) party: Party,
    /// Whether its next message, which had to wait for that, is paid for.
    pub(crate) has_paid: bool,
    /// Bytes of first books that it got and that are too few to cost something yet.
    pub(crate) unpaid_bytes: usize,
    /// When its client is told next how far its streams are.
    pub(crate) beat_at_ms: u64,
    /// When its client is pinged next.
    pub(crate) ping_at_ms: u64,
    /// When its credentials must have come.
    pub(crate) known_by_ms: u64,
    /// Whether the socket did not take all at the last attempt to send.
    pub(crate) is_behind: bool,
    /// Since when that has been too much; `u64::MAX` while it is not.
    pub(crate) slow_since_ms: u64,
}

/// A chunked body on its way in.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// How many bytes of head precede it.
    pub(crate) head_bytes: usize,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
    /// How far it is decoded.
    pub(crate) body: Chunked,
}

/// What a connection takes along to another loop; empty for a new one.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// The key whose orders are cancelled when it is lost.
    answers_for: Option<KeyOfOwner>,
    /// What came in and is not used yet.
    input: Option<Input>,
    /// How far a chunked body in it is decoded, which happens in place.
    chunked: Option<Chunks>,
    /// Whether `100 Continue` was sent.
    continued: bool,
}

impl Carried {
    /// The key that loses its orders if nobody takes the connection.
    pub(crate) const fn answers_for(&self) -> Option<KeyOfOwner> {
        self.answers_for
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The socket; `None` in a slot that is free.
    pub(crate) socket: Option<OwnedFd>,
    /// Raised whenever the slot is given to another client.
    pub(crate) generation: u32,
    /// Who is at the other end.
    pub(crate) peer: IpAddr,
    /// Which listener it came from.
    pub(crate) door: Door,
    /// Bytes in.
    pub(crate) input: Input,
    /// What becomes of what comes in.
    pub(crate) hears: Hears,
    /// In which of the loop's lists the slot stands.
    pub(crate) listed: [bool; List::COUNT],
    /// Whether it waits for signature checks.
    pub(crate) listed_signing: bool,
    /// What epoll watches for.
    pub(crate) interest: Interest,
    /// When the next byte of a request, or its rest, must have arrived.
    pub(crate) read_by_ms: u64,
    /// When the client must have read something; `u64::MAX` until the socket has not taken all.
    pub(crate) send_by_ms: u64,
    /// Bytes it has read since that was set.
    pub(crate) sent_bytes: usize,
    /// Set while a request's bytes are incomplete: the head time counts from its first byte.
    pub(crate) partial: bool,
    /// A chunked body on its way in.
    pub(crate) chunked: Option<Chunks>,
    /// What is read once the connection is a stream.
    pub(crate) stream: Option<Box<Stream>>,
    /// True once `100 Continue` was sent for the request that is coming in.
    pub(crate) continued: bool,
    /// Open requests and bytes out.
    pub(crate) line: Line,
}

impl Connection {
    /// An empty slot with its memory.
    pub(crate) fn empty() -> Self {
        Self {
            socket: None,
            generation: 0,
            peer: IpAddr::from([0, 0, 0, 0]),
            door: Door::Public,
            input: Input::new(),
            hears: Hears::All,
            listed: [false; List::COUNT],
            listed_signing: false,
            interest: Interest::NOTHING,
            read_by_ms: u64::MAX,
            send_by_ms: u64::MAX,
            sent_bytes: 0,
            partial: false,
            chunked: None,
            stream: None,
            continued: false,
            line: Line::new(),
        }
    }

    /// Gives the slot to a client.
    pub(crate) fn occupy(&mut self, socket: OwnedFd, peer: IpAddr, door: Door) {
        assert!(self.socket.is_none(), "a slot has one client at a time");
        self.socket = Some(socket);
        self.peer = peer;
        self.door = door;
    }

    /// Takes the client out of the slot; what comes back for it later finds another generation.
    pub(crate) fn vacate(&mut self) -> Option<OwnedFd> {
        self.generation = self.generation.wrapping_add(1);
        self.input.reset();
        self.hears = Hears::All;
        self.interest = Interest::NOTHING;
        self.read_by_ms = u64::MAX;
        self.send_by_ms = u64::MAX;
        self.sent_bytes = 0;
        self.partial = false;
        self.chunked = None;
        self.stream = None;
        self.continued = false;
        self.line.reset();
        self.socket.take()
    }

    /// Takes what goes along to another loop.
    pub(crate) fn carried(&mut self) -> Carried {
        Carried {
            answers_for: self.line.answers_for,
            input: Some(self.input.take()),
            chunked: self.chunked.take(),
            continued: self.continued,
        }
    }

    /// Continues with what it took along from another loop; true if there is something unread.
    pub(crate) fn go_on(&mut self, carried: Carried) -> bool {
        let Carried { answers_for, input, chunked, continued } = carried;
        self.line.answers_for = answers_for;
        (self.chunked, self.continued) = (chunked, continued);
        if let Some(input) = input {
            self.input = input;
        }
        !self.input.unread().is_empty()
    }

    /// True if nothing more will be asked and everything that was is answered and sent.
    pub(crate) fn is_over(&self) -> bool {
        let asks_no_more =
            !self.may_ask() || (self.hears == Hears::Buffered && self.input.unread().is_empty());
        asks_no_more && self.line.is_idle()
    }

    /// True if what has come in may still be a request.
    pub(crate) fn may_ask(&self) -> bool {
        matches!(self.hears, Hears::All | Hears::Buffered)
    }

    /// True if what a stream's client said before it left may still be heard: it does not wait for a limit.
    pub(crate) fn may_say_last(&self) -> bool {
        self.stream.is_some() && self.hears == Hears::All && self.line.toll.held().is_none()
    }

    /// True if a stream's client that takes nothing any more may still have said that its orders are to stay.
    pub(crate) fn may_take_back(&self) -> bool {
        self.stream.is_some()
            && self.line.answers_for.is_some()
            && self.may_ask()
            && self.line.toll.held().is_none()
    }

    /// True if what has come of a stream's client that has left is to be heard before more is received: all that it
    /// said, or as much as there is room for.
    pub(crate) fn says_last(&self) -> bool {
        let has_come = self.hears == Hears::Buffered || self.input.is_full();
        self.stream.is_some() && self.listed[List::Ready as usize] && has_come
    }

    /// Nothing more is taken from this client.
    pub(crate) fn hear_no_more(&mut self) {
        if self.may_ask() {
            self.hears = Hears::Nothing;
        }
    }

    /// Counts the memory of what it says and of its answers, or of a stream's messages, among all.
    pub(crate) fn count_held(&mut self, held: &Held) {
        let share = held.of(self.door, self.peer);
        let fragments_bytes = self.stream.as_ref().map_or(0, |stream| stream.frames.message_bytes());
        self.input.count_held(fragments_bytes, share);
        self.line.count_held(share);
    }

    /// True if the client waits for the server and not the other way round: for an answer and all of its bytes, for a
    /// signature check, or until a limit has room or what has come is looked at. A stream, which is sent something all
    /// the time, waits only while it is not read because too much is unsent.
    pub(crate) fn is_kept_waiting(&self) -> bool {
        let is_its_turn = if self.stream.is_some() { self.line.has_room() } else { self.line.is_idle() };
        !is_its_turn
            || self.listed_signing
            || self.listed[List::Ready as usize]
            || self.line.toll.held().is_some()
    }

    /// True if another request may be taken from the input.
    pub(crate) fn may_open(&self) -> bool {
        self.line.has_room() && self.may_ask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_sent_an_answer_waits_for_its_last_byte() {
        let mut connection = Connection::empty();
        for is_head_partial in [false, true] {
            connection.partial = is_head_partial;
            connection.line.output().extend_from_slice(b"an answer");
            for (sent_bytes, is_kept_waiting) in [(0, true), (8, true), (1, false)] {
                connection.line.was_sent(sent_bytes);
                let unsent = connection.line.unsent();
                assert_eq!(connection.is_kept_waiting(), is_kept_waiting, "{unsent} unsent");
            }
        }
    }

    #[test]
    fn what_moves_to_another_loop_came_when_it_did() {
        let (mut one, mut other) = (Connection::empty(), Connection::empty());
        one.input.arrived(10, 5);
        one.input.arrived(10, 8);
        assert!(other.go_on(one.carried()));
        assert_eq!((other.input.unread().len(), other.input.came_ns()), (20, 5));
        other.input.used(10);
        assert_eq!((other.input.unread().len(), other.input.came_ns()), (10, 8));
    }
}
