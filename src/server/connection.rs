//! One client's connection: bytes in, open requests, bytes out.
//!
//! Requests are numbered from 0. An answer is put into its request's place whenever it is ready and whoever made it;
//! [`Line::release`] moves answers to the output in request order, and only those whose position is acknowledged. All
//! memory is taken when the connection opens and kept for the next one in the same slot; only a large body or a large
//! answer takes more, and gives it back.
//!
//! | limit | value | at it |
//! |---|---|---|
//! | open requests | [`OPEN_MAX`] | the socket is not read |
//! | bytes of answers that are not sent | [`UNSENT_BYTES_MAX`] | the socket is not read |
//! | unsent for 10 s | `Limits::unsent_ms` | closed |
//! | head, idle | `Limits::{head_ms, idle_ms}` | closed |

mod input;

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::held::Held;
use super::socket::Interest;
use super::tally::Tally;
use super::timing;
use super::toll::Toll;
use super::work::WorkNo;
use crate::domain::{ApiKey, Position, WalletNo};
use crate::http::Chunked;
use crate::http::websocket::Frames;
use crate::limits::Party;
use crate::reader::Channel;
use crate::stats::{Laps, Stage};

pub(crate) use input::Input;

/// Open requests per connection; more stay unread.
pub(crate) const OPEN_MAX: usize = 32;
/// Bytes of unsent answers per connection, open reads counted with a guess; above it the socket is not read.
pub(crate) const UNSENT_BYTES_MAX: usize = 256 << 10;
/// The lowest guess of a read's answer, so that small answers do not let in many large ones at once.
const LEAST_GUESS_BYTES: usize = UNSENT_BYTES_MAX / 8;
/// The guess for a connection's first read, which is open alone until its answer is known.
const FIRST_GUESS_BYTES: usize = UNSENT_BYTES_MAX + 1;
/// Bytes that an answer's place keeps from one request to the next.
const ANSWER_BYTES: usize = 1 << 10;
/// An answer of this size that leaves alone is swapped into the output instead of copied.
const SWAPPED_BYTES_MIN: usize = 4 << 10;
/// Above this a buffer is given back instead of being kept.
pub(crate) const KEPT_BYTES_MAX: usize = 64 << 10;

/// An API key and its owner.
pub(crate) type KeyName = (WalletNo, ApiKey);

/// Which listener a connection came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// The public one.
    Public,
    /// The operator's.
    Admin,
}

/// How far the answer of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Somebody is working on it.
    Waiting,
    /// It is written and may leave when this position is acknowledged.
    Ready(Position),
}

#[derive(Debug)]
struct Open {
    state: State,
    answer: Vec<u8>,
    /// The answer's bytes; the guess while a read waits.
    held_bytes: usize,
    timed: Timed,
    /// It is of a HEAD request.
    head_only: bool,
}

/// Cuts an answer down to its head.
fn keep_head(answer: &mut Vec<u8>) {
    const END: &[u8] = b"\r\n\r\n";
    if let Some(at) = answer.windows(END.len()).position(|bytes| bytes == END) {
        answer.truncate(at + END.len());
    }
}

/// What is known of the time that a request takes, from the moment its bytes were there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timed {
    /// Nothing.
    No,
    /// A read, which came at this moment.
    Read { came_ns: u64 },
    /// A trading request.
    Trade {
        /// What its time went to.
        laps: Laps,
        /// Where in its answer the value of `Server-Timing` ends, if it has one.
        timing_end: Option<usize>,
    },
}

/// What becomes of further bytes from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    /// It is taken.
    All,
    /// It has said all that it will say: what has come whole is still done and answered.
    Buffered,
    /// It was refused unread; closed when everything is answered and sent, and the client had time to read that.
    Refused,
    /// Nothing more is read; closed when everything is answered and sent.
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
    /// What the messages so far cost and is not paid.
    pub(crate) owes: u32,
    /// When its client is told next how far the reader is.
    pub(crate) beat_at_ms: u64,
    /// When its client is pinged next.
    pub(crate) ping_at_ms: u64,
    /// When its credentials must have come.
    pub(crate) known_by_ms: u64,
    /// What was unsent after the last attempt to send.
    pub(crate) unread_bytes: usize,
    /// Since when that has been too much; `u64::MAX` while it is not.
    pub(crate) slow_since_ms: u64,
}

/// What a connection takes along to another loop; empty for a new one.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// The key whose orders are cancelled when it is lost.
    answers_for: Option<KeyName>,
    /// What came in and is not used yet.
    unread: Vec<u8>,
    /// How far a chunked body in it is decoded, which happens in place.
    chunked: Option<(usize, Chunked)>,
    /// Whether `100 Continue` was sent.
    continued: bool,
}

impl Carried {
    /// The key that loses its orders if nobody takes the connection.
    pub(crate) const fn answers_for(&self) -> Option<KeyName> {
        self.answers_for
    }
}

/// A client's connection.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each says for itself in which list the slot stands")]
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
    /// Whether the slot stands in the loop's list of slots with unused bytes.
    pub(crate) queued: bool,
    /// Whether the slot stands in the loop's list of slots with answers that wait for a mark.
    pub(crate) waits: bool,
    /// Whether the slot stands in the loop's list of slots whose next request is held.
    pub(crate) held: bool,
    /// Whether the slot stands in the loop's list of slots to be sent.
    pub(crate) dirty: bool,
    /// Whether the slot stands in the loop's queue of streams to be sent.
    pub(crate) streaming: bool,
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
    /// A chunked body on its way in, and how many bytes of head precede it.
    pub(crate) chunked: Option<(usize, Chunked)>,
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
            queued: false,
            waits: false,
            held: false,
            dirty: false,
            streaming: false,
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
            unread: self.input.unread().to_vec(),
            chunked: self.chunked.take(),
            continued: self.continued,
        }
    }

    /// Continues with what it took along from another loop; true if there is something unread.
    pub(crate) fn go_on(&mut self, carried: Carried, now_ns: u64) -> bool {
        let Carried { answers_for, unread, chunked, continued } = carried;
        self.line.answers_for = answers_for;
        (self.chunked, self.continued) = (chunked, continued);
        if !unread.is_empty() {
            self.input.refill(&unread, now_ns);
        }
        !unread.is_empty()
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

    /// Nothing more is taken from this client.
    pub(crate) fn hear_no_more(&mut self) {
        if self.may_ask() {
            self.hears = Hears::Nothing;
        }
    }

    /// Counts the memory of what it says and of its answers, or of a stream's messages, among all.
    pub(crate) fn count_held(&mut self, held: &Held) {
        self.input.count_held(held);
        let bytes = self.line.output.capacity() + self.line.ready_bytes;
        self.line.counted_bytes = held.count(self.line.counted_bytes, bytes);
    }

    /// True if another request may be taken from the input.
    pub(crate) fn may_open(&self) -> bool {
        self.line.has_room() && self.may_ask()
    }
}

/// Open requests in their order, and the bytes that leave.
#[derive(Debug)]
pub(crate) struct Line {
    output: Vec<u8>,
    sent: usize,
    open: Box<[Open]>,
    /// The sum over open requests.
    held_bytes: usize,
    /// The part of it that is written.
    ready_bytes: usize,
    /// The bytes that it counts for in [`Held`].
    counted_bytes: usize,
    /// The guess of the next read's answer: the last answer's bytes or half the last guess, whichever is more;
    /// [`LEAST_GUESS_BYTES`] at least.
    guess_bytes: usize,
    first: u32,
    next: u32,
    /// The number after the newest open request that changes state.
    behind_writes: u32,
    /// The newest trading request of this client: its place among the works of the loop.
    pub(crate) last_work: Option<WorkNo>,
    /// The key whose orders are cancelled when the connection is lost.
    pub(crate) answers_for: Option<KeyName>,
    /// What the request at the front of the buffer has paid.
    pub(crate) toll: Toll,
    /// The request at the front of the buffer is whole and costs curve operations, so that it need not be
    /// parsed again while it waits for its turn.
    pub(crate) signs: bool,
    /// When the bytes at the front of the buffer came.
    pub(crate) came_ns: u64,
    /// The laps of the request at the front of the buffer, once it was seen.
    pub(crate) laps: Laps,
}

/// Whether a request changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// It only reads.
    Read,
    /// It changes something; a later read waits for its answer.
    Write,
}

impl Line {
    fn new() -> Self {
        let open = (0..OPEN_MAX).map(|_| Open {
            state: State::Waiting,
            answer: Vec::with_capacity(ANSWER_BYTES),
            held_bytes: 0,
            timed: Timed::No,
            head_only: false,
        });
        Self {
            output: Vec::with_capacity(4 * ANSWER_BYTES),
            sent: 0,
            open: open.collect(),
            held_bytes: 0,
            ready_bytes: 0,
            counted_bytes: 0,
            guess_bytes: FIRST_GUESS_BYTES,
            first: 0,
            next: 0,
            behind_writes: 0,
            last_work: None,
            answers_for: None,
            toll: Toll::default(),
            signs: false,
            came_ns: 0,
            laps: Laps::default(),
        }
    }

    fn reset(&mut self) {
        self.output.clear();
        if self.output.capacity() > KEPT_BYTES_MAX {
            self.output = Vec::with_capacity(4 * ANSWER_BYTES);
        }
        self.open.iter_mut().for_each(|open| give_back(&mut open.answer));
        (self.held_bytes, self.ready_bytes) = (0, 0);
        self.guess_bytes = FIRST_GUESS_BYTES;
        self.sent = 0;
        self.first = 0;
        self.next = 0;
        self.behind_writes = 0;
        self.last_work = None;
        self.answers_for = None;
        self.toll = Toll::default();
        self.signs = false;
        self.came_ns = 0;
        self.laps = Laps::default();
    }

    /// True if one more request may be open.
    pub(crate) fn has_room(&self) -> bool {
        self.open_count() < OPEN_MAX && self.unsent() + self.held_bytes <= UNSENT_BYTES_MAX
    }

    /// True while a request that changes state is not answered.
    pub(crate) fn writes_open(&self) -> bool {
        self.first != self.next && self.behind_writes.wrapping_sub(self.first).cast_signed() > 0
    }

    /// True if nothing is open and nothing is unsent.
    pub(crate) fn is_idle(&self) -> bool {
        self.first == self.next && self.unsent() == 0
    }

    /// How many requests are not answered yet.
    pub(crate) fn open_count(&self) -> usize {
        self.next.wrapping_sub(self.first) as usize
    }

    /// The number that the next request gets.
    pub(crate) fn next_number(&self) -> u32 {
        self.next
    }

    /// Cuts the answer of a HEAD request down to its head, now or when it is written.
    pub(crate) fn drop_body(&mut self, number: u32) {
        if let Some(answer) = self.answer(number) {
            keep_head(answer);
            self.place(number).head_only = true;
        }
    }

    /// Takes a place in the line and returns the request's number.
    pub(crate) fn open(&mut self, intent: Intent) -> u32 {
        assert!(self.open_count() < OPEN_MAX, "may_open was asked first");
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let guess_bytes = match intent {
            Intent::Read => self.guess_bytes,
            Intent::Write => 0,
        };
        if intent == Intent::Write {
            self.behind_writes = self.next;
        }
        self.held_bytes += guess_bytes;
        let place = self.place(number);
        place.state = State::Waiting;
        place.held_bytes = guess_bytes;
        place.timed = Timed::No;
        place.head_only = false;
        place.answer.clear();
        // It is too large, or went with a request and did not come back.
        if !(ANSWER_BYTES..=KEPT_BYTES_MAX).contains(&place.answer.capacity()) {
            place.answer = Vec::with_capacity(ANSWER_BYTES);
        }
        number
    }

    /// Where the answer of request `number` is written; `None` if nobody waits for it.
    pub(crate) fn answer(&mut self, number: u32) -> Option<&mut Vec<u8>> {
        if number.wrapping_sub(self.first) as usize >= self.open_count() {
            return None;
        }
        Some(&mut self.place(number).answer)
    }

    /// The answer of request `number` is written and may leave when `at` is acknowledged.
    pub(crate) fn ready(&mut self, number: u32, at: Position) {
        assert!(
            (number.wrapping_sub(self.first) as usize) < self.open_count(),
            "only open requests are answered"
        );
        let place = self.place(number);
        place.state = State::Ready(at);
        if place.head_only {
            keep_head(&mut place.answer);
        }
        let (bytes, guessed) = (place.answer.len(), place.held_bytes);
        place.held_bytes = bytes;
        self.held_bytes = self.held_bytes - guessed + bytes;
        self.ready_bytes += bytes;
        if 0 < guessed {
            self.guess_bytes = bytes.max(self.guess_bytes / 2).max(LEAST_GUESS_BYTES);
        }
    }

    /// Notes what is known of the time that request `number` takes.
    pub(crate) fn timed(&mut self, number: u32, timed: Timed) {
        self.place(number).timed = timed;
    }

    /// Moves the answers that may leave to the output, and records their times. Returns the highest position that was
    /// released.
    pub(crate) fn release(&mut self, mark: Position, now_ns: u64, tally: &Tally) -> Option<Position> {
        let mut highest = None;
        while self.first != self.next {
            let index = self.first as usize % OPEN_MAX;
            let State::Ready(at) = self.open[index].state else {
                break;
            };
            if mark < at {
                break;
            }
            highest = highest.max(Some(at));
            self.held_bytes -= self.open[index].held_bytes;
            self.ready_bytes -= self.open[index].held_bytes;
            let answer = &mut self.open[index].answer;
            match &mut self.open[index].timed {
                Timed::No => {}
                Timed::Read { came_ns } => tally.reads.record(now_ns.saturating_sub(*came_ns)),
                Timed::Trade { laps, timing_end } => {
                    laps.lap(Stage::Journal, now_ns);
                    tally.answered(laps);
                    if let Some(end) = *timing_end {
                        timing::fill_in(answer, end, laps);
                    }
                }
            }
            if self.output.is_empty() && SWAPPED_BYTES_MIN <= answer.len() {
                std::mem::swap(&mut self.output, answer);
            } else {
                self.output.extend_from_slice(answer);
                give_back(answer);
            }
            self.first = self.first.wrapping_add(1);
        }
        highest
    }

    /// The position that the oldest open request's answer waits for, once it is written.
    pub(crate) fn waits_for_mark(&self) -> Option<Position> {
        if self.first == self.next {
            return None;
        }
        match self.open[self.first as usize % OPEN_MAX].state {
            State::Ready(at) => Some(at),
            State::Waiting => None,
        }
    }

    /// What is to be sent.
    pub(crate) fn to_send(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// `count` bytes were sent.
    pub(crate) fn was_sent(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.output.len(), "only what there is can be sent");
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
            if self.output.capacity() > KEPT_BYTES_MAX {
                self.output = Vec::with_capacity(4 * ANSWER_BYTES);
            }
        } else if KEPT_BYTES_MAX < self.sent && self.unsent() <= self.sent {
            // A client that is never quite up to date would keep everything that it was ever sent. No more is moved
            // than was sent.
            self.output.drain(..self.sent);
            self.sent = 0;
            self.output.shrink_to(KEPT_BYTES_MAX.max(2 * self.output.len()));
        }
    }

    /// How many bytes the client has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }

    /// The bytes that it counts for in [`Held`].
    #[cfg(test)]
    pub(crate) fn counted_bytes(&self) -> usize {
        self.counted_bytes
    }

    /// Where bytes are put that do not wait for anything, such as `100 Continue`.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    fn place(&mut self, number: u32) -> &mut Open {
        &mut self.open[number as usize % OPEN_MAX]
    }
}

/// Lets go of a buffer that is too large to be kept; the next request in its place gets another.
fn give_back(buffer: &mut Vec<u8>) {
    if KEPT_BYTES_MAX < buffer.capacity() {
        *buffer = Vec::new();
    }
}

#[cfg(test)]
mod tests;
