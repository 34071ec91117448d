//! Sockets of one loop: clients come, bytes come and go, clients leave.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::CoreLoop;
use super::guards;
use super::refuse;
use crate::domain::Position;
use crate::registrar::KeyOfOwner;
use crate::server::connections::List;
use crate::server::connections::connection::{Carried, Connection, Door, Hears};
use crate::server::connections::house::SAY_EVERY_MS;
use crate::server::connections::socket::{self, Interest, Moved, OTHERS_WATCHED, OtherEnd, Ready, Watched};
use crate::server::process::roles;
use crate::server::threads::marks::Marks;
use crate::server::threads::shared::Phase;
use crate::server::trading::work::WorkNo;

/// How long an answer may stay unsent: a client that reads nothing for so long is gone, or its answers are old.
pub(super) const UNSENT_MS: u64 = 10_000;

/// A client has to read as much of what is unsent, or all, to get its time anew: answers wait in a memory that all
/// clients share.
const READ_BYTES_MIN: usize = 64 << 10;

/// Clients taken from a listener in one turn.
const ACCEPTS_PER_TURN: usize = 16;

/// Streams of markets that have their turn in one of the loop's, as each takes a system call: orders come in between.
const STREAMS_PER_TURN: usize = 32;

/// Bytes of answers that the kernel is given in one call, as the loop waits while it copies them: the rest of a longer one
/// goes out in later turns.
const SENT_AT_ONCE_MAX: usize = 128 << 10;

/// Step 1: what epoll reports; connections begin and end.
impl CoreLoop {
    pub(super) fn take_events(&mut self, phase: Phase) -> bool {
        if self.events.is_empty() {
            self.wait_for_events(0);
        }
        let busy = !self.events.is_empty();
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event.watched {
                Watched::Bell => self.shared.wakers[self.mesh.no()].after_sleep(true),
                Watched::PublicDoor => self.accept(Door::Public, phase),
                Watched::AdminDoor => self.accept(Door::Admin, phase),
                Watched::Slot(slot) => self.receive(slot, event),
            }
        }
        self.events = events;
        busy
    }

    /// Waits for events up to `ms` milliseconds: those that the next turn takes, or this one.
    pub(super) fn wait_for_events(&mut self, ms: u64) {
        let watched = self.connections.count() as usize + OTHERS_WATCHED;
        let reported = self.watch.wait(ms, &mut self.events);
        // However long it waited, and stood still meanwhile: by the turn's time, which was read before.
        self.heard.note(self.elapsed_ms, reported, watched);
    }

    fn accept(&mut self, door: Door, phase: Phase) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(doors) = &self.doors else {
                return;
            };
            let listener = if door == Door::Admin { &doors.admin } else { &doors.http };
            let (client, peer) = match socket::accept(listener) {
                Ok(Some(client)) => client,
                Ok(None) => return,
                Err(fault) => return self.shut_doors(&fault),
            };
            // A full house closes the door in the newcomer's face: the socket is dropped here.
            let house = &self.shared.house;
            if let Err(full) = house.enter(door, peer) {
                if let Some(complaint) = house.complaint(full, door, peer, self.elapsed_ms) {
                    tracing::warn!("{complaint}");
                }
            } else if phase >= Phase::Draining || !self.adopt(client, peer, door, Carried::default()) {
                self.shared.house.leave(door, peer);
            }
        }
    }

    /// Lets nobody in before the next round of deadlines: clients that wait at a door and cannot be let in, for want
    /// of descriptors, would keep the loop from sleeping.
    fn shut_doors(&mut self, fault: &io::Error) {
        let Some(doors) = &mut self.doors else {
            return;
        };
        doors.shut = true;
        if doors.silent_until_ms <= self.elapsed_ms {
            doors.silent_until_ms = self.elapsed_ms + SAY_EVERY_MS;
            tracing::warn!(
                "listen.http, listen.admin: no client can be let in now ({fault}); it is tried again within a second \
                 or so; if descriptors are short, raise their limit (ulimit -n)"
            );
        }
        self.watch_doors(Interest::NOTHING);
    }

    /// Opens the doors again, if they were shut.
    pub(super) fn open_doors(&mut self) {
        if let Some(doors) = self.doors.as_mut().filter(|doors| doors.shut) {
            doors.shut = false;
            self.watch_doors(Interest::READABLE);
        }
    }

    fn watch_doors(&self, interest: Interest) {
        if let Some(doors) = &self.doors {
            for (listener, door) in [(&doors.http, Watched::PublicDoor), (&doors.admin, Watched::AdminDoor)] {
                self.watch
                    .change(listener, door, interest)
                    .expect("it is watched, and a change takes no memory");
            }
        }
    }

    /// Gives a client a slot; false if there is none.
    pub(super) fn adopt(&mut self, client: OwnedFd, peer: IpAddr, door: Door, carried: Carried) -> bool {
        let Some((slot, mut connection)) = self.connections.vacancy() else {
            return false;
        };
        if self.watch.add(&client, Watched::Slot(slot), Interest::READABLE).is_err() {
            self.connections.free(slot, connection);
            return false;
        }
        connection.occupy(client, peer, door);
        connection.interest = Interest::READABLE;
        connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.idle_ms;
        if connection.go_on(carried) {
            self.connections.note(List::Ready, slot, &mut connection);
        }
        connection.count_held(&self.shared.held);
        self.connections.put(slot, connection);
        true
    }

    fn receive(&mut self, slot: u32, event: Ready) {
        let Some(mut connection) = self.connections.take(slot) else {
            return;
        };
        if event.writable {
            self.connections.note(List::Dirty, slot, &mut connection);
        }
        let has_left = event.other_end != OtherEnd::There && connection.line.answers_for.is_some();
        if has_left && connection.says_last() {
            self.connections.put(slot, connection);
            return;
        }
        // A stream's last message may take back that its orders are to be removed.
        let may_say_last = has_left && connection.may_say_last();
        // Who answers for a key's orders and is gone leaves none behind. What it asked and was not taken yet, as it waits
        // for its limit or its turn, or was not even received, is not done any more.
        if has_left && !may_say_last {
            self.disconnected(&mut connection);
            self.connections.note(List::Dirty, slot, &mut connection);
            if connection.stream.is_none() {
                connection.hear_no_more();
                self.connections.put(slot, connection);
                return;
            }
        }
        if !event.readable && !may_say_last {
            self.connections.put(slot, connection);
            return;
        }
        let client = connection.socket.as_ref().expect("taken connections have a client");
        let began_ns = self.shared.clock.elapsed_ns();
        let room = connection.input.room();
        let moved = match (room.is_empty(), event.other_end == OtherEnd::Gone) {
            _ if !event.readable => Moved::Later,
            // A fault is received once, and after it the end.
            (false, is_gone) => match socket::receive(client, room) {
                Moved::Ended if is_gone => Moved::Gone,
                moved => moved,
            },
            // That is reported whatever is watched for, so it must be heard though nothing can be received.
            (true, true) => Moved::Gone,
            (true, false) => Moved::Later,
        };
        if may_say_last && !matches!(moved, Moved::Bytes(_)) {
            if !connection.input.unread().is_empty() {
                connection.hears = Hears::Buffered;
                self.connections.note(List::Ready, slot, &mut connection);
                self.connections.put(slot, connection);
                return;
            }
            self.disconnected(&mut connection);
            self.connections.note(List::Dirty, slot, &mut connection);
        }
        match moved {
            Moved::Bytes(count) => {
                connection.input.arrived(count, began_ns);
                if connection.stream.is_some() && connection.may_ask() {
                    connection.read_by_ms = self.stream_read_by_ms();
                }
                if connection.partial {
                    connection.input.completed(began_ns);
                }
                if !connection.may_ask() {
                    let unread = connection.input.unread().len();
                    connection.input.used(unread);
                }
                self.connections.note(List::Ready, slot, &mut connection);
            }
            Moved::Later => {}
            // Nothing more comes, but earlier requests are still done and answered.
            Moved::Ended if connection.stream.is_none() && connection.hears != Hears::Farewell => {
                if connection.hears == Hears::All {
                    connection.hears = Hears::Buffered;
                }
                self.connections.note(List::Ready, slot, &mut connection);
                self.connections.note(List::Dirty, slot, &mut connection);
            }
            Moved::Ended if !connection.line.is_idle() && !connection.interest.writable => {
                connection.hear_no_more();
                self.connections.note(List::Dirty, slot, &mut connection);
            }
            // What was asked and cannot be answered any more is not worth keeping the slot for.
            Moved::Ended | Moved::Gone => {
                self.leave(slot, connection);
                return;
            }
        }
        self.connections.put(slot, connection);
    }

    /// Hears what a client has said by now, before it is left, and refuses what is not taken any more, as it waits for its
    /// turn or its limit or has just come: so nobody has to guess what became of it.
    pub(super) fn hear_last(&self, connection: &mut Connection) {
        if connection.stream.is_some() || !connection.may_ask() {
            return;
        }
        let room = connection.input.room();
        if connection.hears == Hears::All
            && !room.is_empty()
            && let Some(client) = &connection.socket
            && let Moved::Bytes(count) = socket::receive(client, room)
        {
            connection.input.arrived(count, self.shared.clock.elapsed_ns());
        }
        if connection.may_open() && !connection.input.unread().is_empty() {
            refuse::refuse_rest(self, connection);
        }
    }

    /// A connection has ended, whichever side ended it: the orders that it answered for are removed, unless the server
    /// itself is ending.
    pub(super) fn disconnected(&mut self, connection: &mut Connection) {
        if let Some(key) = connection.line.answers_for.take() {
            self.lost(key, connection.line.last_work);
        }
    }

    /// Removes the orders of a key whose connection is lost, once that connection's last request is decided.
    pub(super) fn lost(&mut self, key: KeyOfOwner, last: Option<WorkNo>) {
        if self.shared.phase() == Phase::Serving {
            guards::lost(self, key, last);
        }
    }

    /// Closes a connection and frees its slot.
    pub(super) fn leave(&mut self, slot: u32, mut connection: Box<Connection>) {
        self.disconnected(&mut connection);
        if connection.stream.is_some()
            && let Some(streams) = self.follows.followed_mut()
        {
            streams.feed().leave(slot);
        }
        if let Some(client) = connection.vacate() {
            self.watch.remove(&client);
            self.shared.house.leave(connection.door, connection.peer);
        }
        connection.count_held(&self.shared.held);
        self.connections.free(slot, connection);
    }
}

/// Step 5: answers are released and sent. Step 7: streams send.
impl CoreLoop {
    pub(super) fn release(&mut self) -> bool {
        if self.marks.as_ref().is_some_and(|marks| roles::journal_failed(&self.shared, marks.log()))
            || self.connections.noted(List::Waiting) == 0
        {
            return false;
        }
        let mark = self.releasable();
        self.released = mark;
        let mut released = false;
        let now_ns = self.shared.clock.elapsed_ns();
        for _ in 0..self.connections.noted(List::Waiting) {
            let Some((slot, connection)) = self.connections.next(List::Waiting) else {
                break;
            };
            released |= self.release_slot(slot, connection, mark, now_ns);
        }
        released
    }

    /// Whether more answers may leave than at the last release.
    pub(super) fn may_release_more(&mut self) -> bool {
        self.marks.is_some() && self.releasable() != self.released
    }

    /// How far answers of this loop may leave. Where the reader is, they wait until it has
    /// applied what they tell of, so that a read that follows sees it.
    fn releasable(&mut self) -> Position {
        let mark = self.marks.as_mut().map_or(Position(0), Marks::advance);
        self.follows.reading().map_or(mark, |reading| mark.min(reading.applied()))
    }

    fn release_slot(
        &mut self,
        slot: u32,
        mut connection: Box<Connection>,
        mark: Position,
        now_ns: u64,
    ) -> bool {
        let highest = connection.line.release(mark, now_ns, self.tally(), &self.shared.plan.pages);
        if let Some(position) = highest {
            self.shared.tell(position);
            self.connections.note(List::Dirty, slot, &mut connection);
            if !connection.input.unread().is_empty() {
                self.connections.note(List::Ready, slot, &mut connection);
            }
        }
        self.connections.put(slot, connection);
        highest.is_some()
    }

    /// Sends to all connections that have something; to streams of markets only if they have more than what they are
    /// told.
    pub(super) fn send_all(&mut self, phase: Phase) {
        if self.connections.noted(List::Dirty) == 0 {
            return;
        }
        let mut since_ns = self.shared.clock.elapsed_ns();
        while let Some((slot, connection)) = self.connections.next(List::Dirty) {
            self.send_slot(slot, connection, phase, &mut since_ns);
        }
    }

    /// Sends to the streams of markets whose turn it is.
    pub(super) fn send_streams(&mut self, phase: Phase) {
        if self.connections.noted(List::Streaming) == 0 {
            return;
        }
        let mut since_ns = self.shared.clock.elapsed_ns();
        for _ in 0..STREAMS_PER_TURN {
            let Some((slot, connection)) = self.connections.next(List::Streaming) else {
                return;
            };
            self.send_slot(slot, connection, phase, &mut since_ns);
        }
    }

    /// Sends once, and sees what follows from what the socket took.
    fn send_slot(&mut self, slot: u32, mut connection: Box<Connection>, phase: Phase, since_ns: &mut u64) {
        let (had_room, was_idle) = (connection.line.has_room(), connection.line.is_idle());
        if self.send(&mut connection, since_ns)
            || (connection.is_over() && Self::may_go(&mut connection, self.elapsed_ms))
        {
            return self.leave(slot, connection);
        }
        // Requests that waited for the client to read may go on: those that had no room, and those that belong to
        // another loop and waited for the line to be empty.
        let freed = !had_room || (!was_idle && connection.line.is_idle());
        if freed && connection.may_open() && connection.stream.is_none() {
            self.read_anew(&mut connection, had_room);
        }
        if freed && connection.may_open() && !connection.input.unread().is_empty() {
            self.connections.note(List::Ready, slot, &mut connection);
        }
        let takes = connection.may_open() && phase < Phase::Draining && !connection.input.is_full();
        let readable = match connection.hears {
            Hears::All => takes,
            Hears::Farewell => true,
            Hears::Buffered | Hears::Refused | Hears::Nothing => false,
        };
        let hangup = connection.line.answers_for.is_some();
        let interest = Interest { readable, writable: connection.line.unsent() > 0, hangup };
        if interest != connection.interest {
            let client = connection.socket.as_ref().expect("taken connections have a client");
            if self.watch.change(client, Watched::Slot(slot), interest).is_err() {
                return self.leave(slot, connection);
            }
            connection.interest = interest;
        }
        self.note_owed(slot, &mut connection);
        self.connections.put(slot, connection);
    }

    /// A client that has read what was unsent gets its full time again: to send its next request, or the rest of one
    /// that was not read meanwhile.
    fn read_anew(&self, connection: &mut Connection, was_read: bool) {
        let limits = &self.shared.plan.limits;
        match (connection.partial, was_read) {
            (true, true) => {}
            (true, false) => connection.read_by_ms = self.elapsed_ms + limits.head_ms,
            (false, _) => connection.read_by_ms = self.elapsed_ms + limits.idle_ms,
        }
    }

    /// Sends once what there is to send, or its first part; true if the client is gone. The time it took counts from
    /// `since_ns`, which moves on to its end.
    fn send(&self, connection: &mut Connection, since_ns: &mut u64) -> bool {
        if connection.line.unsent() == 0 {
            return false;
        }
        let client = connection.socket.as_ref().expect("taken connections have a client");
        // A stream is behind if its socket does not take all, and who is heard for the last time may be gone soon.
        let in_parts = connection.stream.is_none() && connection.hears != Hears::Farewell;
        let at_once = if in_parts { SENT_AT_ONCE_MAX } else { usize::MAX };
        let to_send = connection.line.to_send();
        match socket::send(client, &to_send[..to_send.len().min(at_once)]) {
            Moved::Bytes(count) => {
                let now_ns = self.shared.clock.elapsed_ns();
                self.tally().sends.record(now_ns - *since_ns);
                *since_ns = now_ns;
                connection.line.was_sent(count);
                connection.count_held(&self.shared.held);
                connection.sent_bytes += count;
                if connection.line.unsent() == 0 {
                    (connection.send_by_ms, connection.sent_bytes) = (u64::MAX, 0);
                } else if connection.send_by_ms == u64::MAX
                    || connection.stream.is_some()
                    || READ_BYTES_MIN <= connection.sent_bytes
                {
                    // Streams have a rule of their own.
                    let by = self.elapsed_ms + UNSENT_MS;
                    (connection.send_by_ms, connection.sent_bytes) = (by, 0);
                }
            }
            Moved::Later => {
                let by = self.elapsed_ms + UNSENT_MS;
                connection.send_by_ms = connection.send_by_ms.min(by);
            }
            // It takes no more, but may have said more. The end is heard behind that.
            Moved::Ended | Moved::Gone if connection.may_take_back() => {
                connection.line.was_sent(connection.line.unsent());
                connection.count_held(&self.shared.held);
                (connection.send_by_ms, connection.sent_bytes) = (u64::MAX, 0);
            }
            Moved::Ended | Moved::Gone => return true,
        }
        Self::note_unread(connection, self.elapsed_ms);
        false
    }
}
