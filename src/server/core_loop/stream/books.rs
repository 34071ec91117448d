//! First books that streams are owed: written in turn, for as long as their clients read.

use super::put::{put_frame, send_now};
use super::{ANSWER_BYTES_PER_COST, ANSWER_BYTES_PER_TURN, due_for};
use crate::server::connections::List;
use crate::server::connections::connection::Connection;
use crate::server::core_loop::CoreLoop;

/// Bytes that may be unsent when another market's books are put behind them. With its two books, which have some hundred
/// KB each, that is less than the least that `streams.unread_bytes_max` may be.
pub(super) const AHEAD_OF_BOOKS_MAX: usize = 64 << 10;

impl CoreLoop {
    /// Notes that a stream goes on with the books that it is owed, if there are any and it has room for them. If it has
    /// none, something is unsent, and it is noted once that is.
    pub(in crate::server::core_loop) fn note_owed(&mut self, slot: u32, connection: &mut Connection) {
        if connection.line.unsent() <= AHEAD_OF_BOOKS_MAX && self.is_owed(slot, connection) {
            self.connections.note(List::Owed, slot, connection);
        }
    }

    /// Whether a stream is owed books. One whose client has ended it is not, though it follows until it is left.
    fn is_owed(&mut self, slot: u32, connection: &Connection) -> bool {
        let is_told = connection.stream.is_some() && connection.may_ask();
        let streams = self.follows.followed_mut().filter(|_| is_told);
        streams.is_some_and(|streams| streams.feed().owes_books(slot))
    }

    /// Writes books to streams that have room for them, behind all that was put into their connections before.
    pub(super) fn give_owed_books(&mut self) {
        let mut given_bytes = 0;
        while given_bytes < ANSWER_BYTES_PER_TURN
            && let Some((slot, mut connection)) = self.connections.next(List::Owed)
        {
            given_bytes += self.give_books(slot, &mut connection, ANSWER_BYTES_PER_TURN - given_bytes);
            self.connections.put(slot, connection);
        }
    }

    /// Writes books to one stream until they have so many bytes, or its client has to read first. Returns their bytes.
    fn give_books(&mut self, slot: u32, connection: &mut Connection, bytes_max: usize) -> usize {
        let (now, mut given_bytes) = (self.now, 0);
        while given_bytes < bytes_max && self.is_owed(slot, connection) {
            if AHEAD_OF_BOOKS_MAX < connection.line.unsent() {
                send_now(connection);
            }
            self.connections.note(List::Streaming, slot, connection);
            if AHEAD_OF_BOOKS_MAX < connection.line.unsent() {
                // It is noted again when it has read.
                return given_bytes;
            }
            self.streams().give_books(slot, now);
            self.tell_of_streams();
            let feed = self.follows.followed_mut().expect(super::HERE).feed();
            given_bytes += feed.waiting_bytes();
            let stream = connection.stream.as_mut().expect("it is owed books");
            stream.unpaid_bytes += feed.waiting_bytes();
            self.shared.limits.owe_all(due_for(stream.party, 0, stream.unpaid_bytes), self.moment);
            stream.unpaid_bytes %= ANSWER_BYTES_PER_COST;
            let put = feed.sends().try_for_each(|(_, frame)| put_frame(connection, frame, &self.shared.held));
            feed.sent();
            if let Err(end) = put {
                self.close_stream(slot, connection, end.code, end.reason);
            }
        }
        self.note_owed(slot, connection);
        given_bytes
    }
}
