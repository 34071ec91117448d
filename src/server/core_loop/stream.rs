//! Connections that became streams: frames in, messages out, and how they end.
//!
//! | close code | why |
//! |---|---|
//! | 1000, or the client's own | the client closed |
//! | 1002, 1003, 1007, 1009 | frames that break RFC 6455, or that we do not take |
//! | those of [`CLOSES`] | what is said there |
//!
//! | file | what it does |
//! |---|---|
//! | `put` | frames into the memory of a connection |
//! | `books` | first books, as far as clients read |

mod books;
mod put;

use super::CoreLoop;
use super::serve::Step;
use crate::domain::Position;
use crate::http::websocket::{self, Frames, Said};
use crate::limits::{Cost, Due, Party, Scope};
use crate::reader::{Channel, Heard};
use crate::server::connections::connection::{Connection, Hears, Stream};
use crate::server::connections::socket;
use crate::server::connections::{Client, List};
use crate::server::reading::followed::Followed;
use crate::server::reading::follows::Follows;
use crate::server::threads::marks::Marks;
use books::AHEAD_OF_BOOKS_MAX;
use put::{put_frame, unread_bytes};

/// An end of a stream that the server decides on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Close {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) meaning: &'static str,
}

const fn close(code: u16, reason: &'static str, meaning: &'static str) -> Close {
    Close { code, reason, meaning }
}

const ENDING: Close = close(1_001, "the server ends", "The server stops or restarts: come back.");
const STRANGER: Close = close(
    1_008,
    "Unauthorized/Invalid api key",
    "A user stream's credentials are nobody's, missing or read-only.",
);
const NAMELESS: Close =
    close(1_008, "no credentials were taken", "No credentials that hold came within 30 s.");
const REVOKED: Close = close(1_008, "the key of this stream was revoked", "Come back with one that lives.");
/// More than [`UNREAD_BYTES`] unread for [`SLOW_FOR_MS`], or ever more than `Limits::unread_bytes_max`.
const SLOW: Close = close(
    4_000,
    "too much is unread",
    "More than 1 MiB has waited for 5 s, or more than `streams.unread_bytes_max` at once; the reason goes on with the \
     numbers. Read faster or follow less, and come back with `from`. Who reads nothing at all for 10 s is cut without a \
     close frame, which could not reach it.",
);
/// More than `SMALL_BYTES_MAX` unread or unfinished, and `Held` has no room for it.
const BUSY: Close = close(
    4_002,
    "too much is unread by all",
    "256 MiB of answers wait for clients that do not read, and this stream had more than 64 KiB of them; or clients \
     hold 128 MiB, and a message on its way took more than 64 KiB, with the buffer that its fragments come in; of one \
     address, a quarter of either is enough. Come back with `from`.",
);
/// Nothing received for `Limits::stream_idle_ms`.
const IDLE: Close =
    close(4_001, "nothing came for too long", "Not even a pong came: the connection is taken for dead.");

/// Every end that the server decides on.
pub(crate) const CLOSES: [Close; 7] = [ENDING, STRANGER, NAMELESS, REVOKED, SLOW, IDLE, BUSY];

const NORMAL: u16 = 1_000;

/// Bytes that may wait for one client for as long as it reads some: a hundred large books.
const UNREAD_BYTES: usize = 1 << 20;
/// How long more than [`UNREAD_BYTES`] may wait, as after a burst or a long replay.
const SLOW_FOR_MS: u64 = 5_000;
/// How often a loop follows some frames before it hears the first client of a turn: up to 4,096 frames.
const CATCH_UPS_MAX: u32 = 16;
/// Messages on their way to clients past which it goes no further: 24 MiB of who gets which.
const CATCH_UP_SENDS_MAX: usize = 1 << 20;
/// Messages taken from one client in one turn: orders come in between.
const MESSAGES_PER_TURN: usize = 16;
/// Bytes of answers to all clients past which no more messages are taken: they leave before more are made.
const ANSWER_BYTES_PER_TURN: usize = 256 << 10;
/// Bytes of an answer that cost as much as a message: answers are a few hundred; books and what is replayed may be
/// megabytes.
const ANSWER_BYTES_PER_COST: usize = 16 << 10;
/// Bytes behind which a frame for a stream does not wait for its turn.
const QUEUED_BYTES_MAX: usize = 16 << 10;
/// How often a stream's client is told how far its streams are.
const BEAT_MS: u64 = 5_000;
/// How often a client is pinged, so that it need not send anything by itself.
const PING_MS: u64 = 25_000;
/// How long a client may take to close after our close frame.
const LINGER_MS: u64 = 2_000;
/// How long at least a client still has to say who it is, after a turn in which it was not heard.
const UNHEARD_MS: u64 = 1_000;
/// How long a user stream waits for credentials.
const KNOWN_WITHIN_MS: u64 = 30_000;

/// Why a loop that has a stream follows the log.
const HERE: &str = "streams are on the feed's loop";

/// What follows a client's message.
enum Next {
    Listen,
    Wait,
    Close(u16, &'static str),
}

/// Streams: what clients say, in step 2, and what they are told, in step 7.
impl CoreLoop {
    /// Makes a connection a stream.
    pub(super) fn begin_stream(
        &mut self,
        client: Client,
        connection: &mut Connection,
        channel: Channel,
        party: Party,
    ) {
        connection.stream = Some(Box::new(begun(channel, party, self.elapsed_ms)));
        connection.read_by_ms = self.stream_read_by_ms();
        self.streams().feed().join(client.slot, channel);
    }

    /// When a stream is taken for dead of which nothing more comes.
    pub(super) fn stream_read_by_ms(&self) -> u64 {
        self.elapsed_ms + self.shared.plan.limits.stream_idle_ms
    }

    /// Takes frames from a stream's input.
    pub(super) fn listen(&mut self, client: Client, connection: &mut Connection) -> Step {
        let Some(told_bytes) = self.bytes_once_caught_up() else {
            return self.hear_later(connection);
        };
        for _ in 0..MESSAGES_PER_TURN {
            if connection.input.unread().is_empty() {
                return Step::Partial;
            }
            let waiting_bytes = self.streams().feed().waiting_bytes();
            if ANSWER_BYTES_PER_TURN <= waiting_bytes - told_bytes {
                return self.hear_later(connection);
            }
            if Frames::has_message(connection.input.unread()) && !self.pay_for_message(connection) {
                connection.read_by_ms = self.stream_read_by_ms();
                return Step::Held;
            }
            let held = self.shared.held.of(connection.door, connection.peer);
            let Connection { input, stream, line, .. } = connection;
            let stream = stream.as_mut().expect("it is a stream");
            let (next, used) = match stream.frames.next(input.unread_mut()) {
                Err(fault) => (Next::Close(fault.code(), fault.reason()), 0),
                Ok((None, used)) => (Next::Wait, used),
                Ok((Some(said), used)) => {
                    let streams = self.follows.followed_mut().expect(HERE);
                    let next = match said {
                        Said::Text(text) => match streams.hear(client.slot, text, self.now, line.answers_for)
                        {
                            Heard::Stays => {
                                let room = AHEAD_OF_BOOKS_MAX.saturating_sub(line.unsent());
                                while streams.feed().owes_books(client.slot)
                                    && streams.feed().waiting_bytes() - waiting_bytes < room
                                {
                                    streams.give_books(client.slot, self.now);
                                }
                                let feed = streams.feed();
                                stream.has_paid = false;
                                let bytes = feed.waiting_bytes() - waiting_bytes;
                                let due = due_for(stream.party, text.len(), bytes);
                                self.shared.limits.owe_all(due, self.moment);
                                let armed = feed.answers_for(client.slot);
                                if armed.is_some() || line.answers_for == feed.key_of(client.slot) {
                                    line.answers_for = armed;
                                }
                                Next::Listen
                            }
                            Heard::Unauthorized => Next::Close(STRANGER.code, STRANGER.reason),
                        },
                        Said::Ping(payload) => {
                            websocket::push_pong(line.output(), payload);
                            stream.has_paid = false;
                            Next::Listen
                        }
                        Said::Pong(_) => Next::Listen,
                        Said::Close(said) => Next::Close(said.map_or(NORMAL, |(code, _)| code), ""),
                    };
                    (next, used)
                }
            };
            input.used(used);
            stream.frames.free_message();
            let needs = if matches!(next, Next::Wait) { stream.frames.needs() } else { 0 };
            let has_room = input.hold_more(needs, stream.frames.message_bytes(), held);
            let (code, reason) = match next {
                Next::Close(code, reason) => (code, reason),
                _ if !has_room => (BUSY.code, BUSY.reason),
                Next::Wait => return Step::Partial,
                Next::Listen => {
                    self.note_owed(client.slot, connection);
                    continue;
                }
            };
            self.close_stream(client.slot, connection, code, reason);
            return Step::Took;
        }
        Step::Later
    }

    /// Leaves what has come on a stream for a later turn. That it is not heard is not its fault.
    fn hear_later(&self, connection: &mut Connection) -> Step {
        let has_come = !connection.input.unread().is_empty();
        if let Some(stream) = connection.stream.as_mut().filter(|_| has_come) {
            stream.known_by_ms = stream.known_by_ms.max(self.elapsed_ms + UNHEARD_MS);
            connection.read_by_ms = self.stream_read_by_ms();
        }
        Step::Later
    }

    /// Follows the log before the first client of a turn is heard, and returns how many bytes streams are to be told
    /// then; none if frames are left. All that clients say in a turn has arrived before, so whoever was told something
    /// elsewhere finds it here: its order, its key.
    fn bytes_once_caught_up(&mut self) -> Option<usize> {
        if self.told_before_hearing.is_none() {
            self.catch_up();
        }
        // What an operator's request of this step has let the reader follow is nothing new to who begins to follow.
        self.write_streams();
        let streams = self.follows.followed_mut().expect(HERE);
        let bytes = *self.told_before_hearing.get_or_insert_with(|| streams.feed().waiting_bytes());
        streams.is_at_mark().then_some(bytes)
    }

    /// Follows the log to the mark of now, unless that is far, or goes to very many.
    fn catch_up(&mut self) {
        let (now, mark) = (self.now, self.marks.as_mut().map_or(Position(0), Marks::advance));
        for _ in 0..CATCH_UPS_MAX {
            self.follows.follow(mark, now);
            self.write_streams();
            let streams = self.streams();
            if streams.is_at_mark() || CATCH_UP_SENDS_MAX <= streams.feed().waiting_sends() {
                break;
            }
        }
    }

    /// Pays for the next message, unless that is done; false if the stream must wait before it.
    fn pay_for_message(&self, connection: &mut Connection) -> bool {
        let Connection { stream, line, .. } = connection;
        let stream = stream.as_mut().expect("it is a stream");
        if !stream.has_paid {
            stream.has_paid = line.toll.pay_message(&self.shared.limits, stream.party, self.moment);
        }
        line.toll.held().is_none()
    }

    /// Writes what streams are told of the frames that were followed, if that is not done.
    pub(super) fn write_streams(&mut self) {
        let now = self.now;
        if let Some(streams) = self.follows.followed_mut() {
            streams.flush(now);
        }
    }

    /// Appends the frames of all streams to what their connections send: at once those about an account, in turn those
    /// about markets, which may go to many. Behind them books that are owed.
    pub(super) fn deliver_streams(&mut self) {
        self.deliver_frames();
        self.give_owed_books();
    }

    fn deliver_frames(&mut self) {
        let unread_bytes_max = self.shared.plan.limits.unread_bytes_max;
        self.tell_of_streams();
        let Some(streams) = self.follows.followed_mut() else {
            return;
        };
        let feed = streams.feed();
        let mut ended = Vec::new();
        for (slot, frame) in feed.sends() {
            let Some(mut connection) = self.connections.take(slot) else {
                continue;
            };
            if let Some(stream) = connection.stream.as_ref().filter(|_| connection.may_ask()) {
                let channel = stream.channel;
                let slow_for_ms = self.heard.until_ms().saturating_sub(stream.slow_since_ms);
                let end = if unread_bytes_max < unread_bytes(&connection) || SLOW_FOR_MS <= slow_for_ms {
                    Some(SLOW)
                } else {
                    put_frame(&mut connection, frame, &self.shared.held).err()
                };
                if let Some(end) = end {
                    say_end(&mut connection, end, unread_bytes_max);
                    ended.push((slot, connection.line.answers_for.take()));
                }
                match channel {
                    Channel::User => self.connections.note(List::Dirty, slot, &mut connection),
                    Channel::Market => self.connections.note(List::Streaming, slot, &mut connection),
                }
            }
            self.connections.put(slot, connection);
        }
        while let Some(slot) = streams.next_revoked() {
            self.shared.tell(streams.applied());
            if let Some(mut connection) = self.connections.take(slot) {
                say_close(&mut connection, REVOKED.code, REVOKED.reason);
                self.connections.note(List::Dirty, slot, &mut connection);
                ended.push((slot, connection.line.answers_for.take()));
                self.connections.put(slot, connection);
            }
        }
        let feed = streams.feed();
        feed.sent();
        for (slot, _) in &ended {
            feed.leave(*slot);
        }
        for key in ended.into_iter().filter_map(|(_, key)| key) {
            self.lost(key, None);
        }
    }

    /// Notes, before a feed apart tells anybody anything, how far it is: who was told reads no older state than that.
    fn tell_of_streams(&mut self) {
        if let Follows::Feed(apart) = &mut self.follows
            && 0 < apart.feed().waiting_bytes()
            && self.shared.told() < apart.applied()
        {
            self.shared.tell(apart.applied());
        }
    }

    /// Appends a stream's last frames to its connection, which is about to end.
    fn deliver_to(&mut self, slot: u32, connection: &mut Connection) {
        self.tell_of_streams();
        let feed = self.follows.followed_mut().expect(HERE).feed();
        for (_, frame) in feed.sends().filter(|(client, _)| *client == slot) {
            if let Err(end) = put_frame(connection, frame, &self.shared.held) {
                return say_close(connection, end.code, end.reason);
            }
        }
    }

    /// Whether a connection that has nothing more to send may close now. A stream's client, and one that may still be
    /// sending what is not taken any more, first get time to read the last of it: closing a socket that has unread input
    /// would discard it.
    pub(super) fn may_go(connection: &mut Connection, now_ms: u64) -> bool {
        let may_still_send = match connection.hears {
            Hears::Farewell => return connection.read_by_ms <= now_ms,
            Hears::All | Hears::Nothing => connection.stream.is_some(),
            Hears::Refused => true,
            Hears::Buffered => false,
        };
        let Some(client) = connection.socket.as_ref().filter(|_| may_still_send) else {
            return true;
        };
        connection.hears = Hears::Farewell;
        connection.read_by_ms = now_ms + LINGER_MS;
        socket::say_all_was_said(client);
        false
    }

    /// Notes, after an attempt to send, how much a stream's client has not read.
    pub(super) fn note_unread(connection: &mut Connection, now_ms: u64) {
        let unsent = connection.line.unsent();
        let Some(stream) = &mut connection.stream else {
            return;
        };
        stream.is_behind = 0 < unsent;
        stream.slow_since_ms =
            if unsent <= UNREAD_BYTES { u64::MAX } else { stream.slow_since_ms.min(now_ms) };
    }

    /// Checks whether a stream is due a ping or a beat, or has to end.
    pub(super) fn check_stream(&mut self, slot: u32) {
        let Some(mut connection) = self.connections.take(slot) else {
            return;
        };
        let (now_ms, heard_ms) = (self.elapsed_ms, self.heard.until_ms());
        if connection.send_by_ms <= heard_ms {
            return self.leave(slot, connection);
        }
        let stream = connection.stream.as_mut().expect("it is a stream");
        let (beats, pings) = (stream.beat_at_ms <= now_ms, stream.ping_at_ms <= now_ms);
        if beats {
            stream.beat_at_ms = now_ms + BEAT_MS;
        }
        if pings {
            stream.ping_at_ms = now_ms + PING_MS;
        }
        // Its credentials may be in what its limit holds, but not for ever.
        let is_held = connection.line.toll.held().is_some();
        let known_by_ms = stream.known_by_ms.saturating_add(if is_held { 2 * KNOWN_WITHIN_MS } else { 0 });
        let unknown = known_by_ms <= heard_ms;
        let is_late = connection.read_by_ms <= heard_ms && !connection.is_kept_waiting();
        if !connection.may_ask() && is_late {
            return self.leave(slot, connection);
        }
        if is_late {
            self.close_stream(slot, &mut connection, IDLE.code, IDLE.reason);
        } else if unknown && self.streams().feed().is_silent(slot) {
            self.close_stream(slot, &mut connection, NAMELESS.code, NAMELESS.reason);
        } else if connection.may_ask() {
            if pings {
                websocket::push_ping(connection.line.output());
                self.connections.note(List::Dirty, slot, &mut connection);
            }
            if beats {
                let now = self.now;
                self.streams().beat(slot, now);
            }
        }
        self.connections.put(slot, connection);
    }

    /// Says goodbye to a stream when the server ends.
    pub(super) fn end_stream(&mut self, slot: u32) {
        let Some(mut connection) = self.connections.take(slot) else {
            return;
        };
        if connection.stream.is_some() && connection.may_ask() {
            let now = self.now;
            self.streams().feed().say_goodbye(slot, now);
            self.close_stream(slot, &mut connection, ENDING.code, ENDING.reason);
        }
        self.connections.put(slot, connection);
    }

    /// Ends the stream of a connection that is taken out of its slot, behind the last that it is told.
    fn close_stream(&mut self, slot: u32, connection: &mut Connection, code: u16, reason: &str) {
        self.deliver_to(slot, connection);
        say_close(connection, code, reason);
        self.disconnected(connection);
        self.streams().feed().leave(slot);
        self.connections.note(List::Dirty, slot, connection);
    }

    fn streams(&mut self) -> &mut Followed {
        self.follows.followed_mut().expect(HERE)
    }
}

/// A stream that begins now.
fn begun(channel: Channel, party: Party, now_ms: u64) -> Stream {
    Stream {
        frames: Frames::new(),
        channel,
        party,
        has_paid: false,
        unpaid_bytes: 0,
        beat_at_ms: now_ms + BEAT_MS,
        ping_at_ms: now_ms + PING_MS,
        is_behind: false,
        slow_since_ms: u64::MAX,
        known_by_ms: if channel == Channel::User { now_ms + KNOWN_WITHIN_MS } else { u64::MAX },
    }
}

/// What a message of so many bytes and its answer cost, beyond one.
fn due_for(party: Party, message_bytes: usize, answer_bytes: usize) -> Due {
    /// A message that names a market or two has some hundred bytes; reading takes longer than writing.
    const MESSAGE_BYTES_PER_COST: usize = 4 << 10;
    let more = message_bytes / MESSAGE_BYTES_PER_COST + answer_bytes / ANSWER_BYTES_PER_COST;
    let now = u32::try_from(more).unwrap_or(u32::MAX);
    Due { party, scope: Scope::StreamMessages, cost: Cost { now, ..Cost::PAID } }
}

/// Ends a stream for this reason, with the numbers if too much is unread.
fn say_end(connection: &mut Connection, end: Close, unread_bytes_max: usize) {
    if end.code != SLOW.code {
        return say_close(connection, end.code, end.reason);
    }
    let (reason, got, s) = (end.reason, connection.line.unsent(), SLOW_FOR_MS / 1_000);
    let reason =
        format!("{reason}: got {got} bytes; allowed: {UNREAD_BYTES} for {s} s, {unread_bytes_max} at once");
    say_close(connection, end.code, &reason);
}

/// Ends a stream: nothing more is read, and only the close frame follows what is unsent.
fn say_close(connection: &mut Connection, code: u16, reason: &str) {
    if !connection.may_ask() {
        return;
    }
    websocket::push_close(connection.line.output(), code, reason);
    connection.hear_no_more();
    connection.line.forget_front();
    if let Some(stream) = &mut connection.stream {
        stream.frames = Frames::new();
    }
    let unread = connection.input.unread().len();
    connection.input.used(unread);
}

#[cfg(test)]
mod tests;
