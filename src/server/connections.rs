//! The connections of one loop: slots that are reused, and the lists of slots with something to do.
//!
//! A slot keeps its memory from one client to the next. A connection is taken out of its slot
//! while somebody works on it and put back afterwards, so that work on it and work on the rest of
//! the loop do not borrow from each other; whoever finds the slot empty or with another
//! generation has come too late.

use std::collections::VecDeque;

use super::connection::Connection;
use crate::limits::Moment;

/// Names a client; its slot alone may have been given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// Its slot.
    pub(crate) slot: u32,
    /// Which of the slot's clients it is.
    pub(crate) generation: u32,
}

/// All connections of a loop.
#[derive(Debug)]
pub(crate) struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    occupied: u32,
    slots_max: u32,
    /// Slots with bytes that are not judged yet, in turn.
    pub(crate) ready: VecDeque<u32>,
    /// Slots whose oldest answer waits for a mark.
    pub(crate) waiting: Vec<u32>,
    /// Slots whose next request is held by a limit.
    pub(crate) held: Vec<u32>,
    /// Slots with bytes to send, or with a change in what epoll should watch.
    pub(crate) dirty: Vec<u32>,
    /// Slots of streams of markets that were told something, to be sent in turn: who was told first is sent first.
    pub(crate) streaming: VecDeque<u32>,
    /// The next slot whose deadlines are checked, like the hand of a clock.
    hand: u32,
}

impl Connections {
    /// Room for `slots_max` clients; memory is taken when they come.
    pub(crate) fn new(slots_max: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            occupied: 0,
            slots_max,
            ready: VecDeque::new(),
            waiting: Vec::new(),
            held: Vec::new(),
            dirty: Vec::new(),
            streaming: VecDeque::new(),
            hand: 0,
        }
    }

    /// How many clients there are.
    pub(crate) fn count(&self) -> u32 {
        self.occupied
    }

    /// Whether any has something that the next turn goes on with.
    pub(crate) fn any_to_serve(&self) -> bool {
        !self.ready.is_empty() || !self.dirty.is_empty() || !self.streaming.is_empty()
    }

    /// A slot for a new client, with the connection taken out of it; `None` when all are taken.
    pub(crate) fn vacancy(&mut self) -> Option<(u32, Box<Connection>)> {
        if let Some(slot) = self.free.pop() {
            let connection = self.slots[slot as usize].take().expect("a free slot holds its memory");
            self.occupied += 1;
            return Some((slot, connection));
        }
        let slot = u32::try_from(self.slots.len()).expect("slots are counted in 32 bits");
        if slot == self.slots_max {
            return None;
        }
        self.slots.push(None);
        // Every slot can stand in every list once; so no list grows while clients are served.
        self.free.reserve(1);
        self.occupied += 1;
        let wanted = self.slots.len();
        self.ready.reserve(wanted.saturating_sub(self.ready.len()));
        self.waiting.reserve(wanted.saturating_sub(self.waiting.len()));
        self.held.reserve(wanted.saturating_sub(self.held.len()));
        self.dirty.reserve(wanted.saturating_sub(self.dirty.len()));
        self.streaming.reserve(wanted.saturating_sub(self.streaming.len()));
        Some((slot, Box::new(Connection::empty())))
    }

    /// Takes the connection out of its slot to work on it.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Box<Connection>> {
        let connection = self.slots.get_mut(slot as usize)?;
        connection.as_ref()?.socket.as_ref()?;
        connection.take()
    }

    /// Takes a client's connection out of its slot, if the client is still there.
    pub(crate) fn take_client(&mut self, client: Client) -> Option<Box<Connection>> {
        let generation = self.slots.get(client.slot as usize)?.as_ref()?.generation;
        if generation == client.generation { self.take(client.slot) } else { None }
    }

    /// Takes the next connection with bytes to be judged.
    pub(crate) fn pop_ready(&mut self) -> Option<(u32, Box<Connection>)> {
        self.take_next(|all| all.ready.pop_front(), |connection| &mut connection.queued)
    }

    /// Takes the next connection to be sent or watched.
    pub(crate) fn pop_dirty(&mut self) -> Option<(u32, Box<Connection>)> {
        self.take_next(|all| all.dirty.pop(), |connection| &mut connection.dirty)
    }

    /// Takes the next stream to be sent.
    pub(crate) fn pop_streaming(&mut self) -> Option<(u32, Box<Connection>)> {
        self.take_next(|all| all.streaming.pop_front(), |connection| &mut connection.streaming)
    }

    /// Takes the next connection of a list that still has its client; `flag` says whether a slot stands in the list.
    fn take_next(
        &mut self,
        pop: impl Fn(&mut Self) -> Option<u32>,
        flag: impl Fn(&mut Connection) -> &mut bool,
    ) -> Option<(u32, Box<Connection>)> {
        while let Some(slot) = pop(self) {
            if let Some(connection) = self.slots[slot as usize].as_mut() {
                *flag(connection) = false;
            }
            if let Some(connection) = self.take(slot) {
                return Some((slot, connection));
            }
        }
        None
    }

    /// Takes a connection whose answers were waiting for a mark.
    pub(crate) fn take_waiting(&mut self, slot: u32) -> Option<Box<Connection>> {
        if let Some(connection) = self.slots[slot as usize].as_mut() {
            connection.waits = false;
        }
        self.take(slot)
    }

    /// Puts a connection back and notes it in the lists that it belongs to.
    pub(crate) fn put(&mut self, slot: u32, mut connection: Box<Connection>) {
        assert!(connection.socket.is_some(), "a connection without a client is freed");
        if !connection.waits && connection.line.waits_for_mark().is_some() {
            connection.waits = true;
            self.waiting.push(slot);
        }
        self.slots[slot as usize] = Some(connection);
    }

    /// Notes that a slot has bytes to be judged.
    pub(crate) fn queue(&mut self, slot: u32, connection: &mut Connection) {
        if !connection.queued {
            connection.queued = true;
            self.ready.push_back(slot);
        }
    }

    /// Notes that a slot's next request is held.
    pub(crate) fn hold(&mut self, slot: u32, connection: &mut Connection) {
        if !connection.held {
            connection.held = true;
            self.held.push(slot);
        }
    }

    /// Queues the slots whose requests were held long enough. Returns when the next one is due.
    pub(crate) fn release_held(&mut self, now: Moment) -> Option<Moment> {
        let mut next: Option<Moment> = None;
        for index in (0..self.held.len()).rev() {
            let slot = self.held[index];
            let connection = self.slots[slot as usize].as_mut().expect("nobody works on it between turns");
            if let Some(until) = connection.line.toll.held().filter(|&until| now < until) {
                next = Some(next.map_or(until, |next| next.min(until)));
                continue;
            }
            connection.held = false;
            self.held.swap_remove(index);
            // A client that left has nothing in the slot; one that came since is served as usual.
            if connection.socket.is_some() && !connection.queued {
                connection.queued = true;
                self.ready.push_back(slot);
            }
        }
        next
    }

    /// Notes that a slot has something to send or to be watched for.
    pub(crate) fn touch(&mut self, slot: u32, connection: &mut Connection) {
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Notes that a stream was told something.
    pub(crate) fn stream(&mut self, slot: u32, connection: &mut Connection) {
        if !connection.streaming {
            connection.streaming = true;
            self.streaming.push_back(slot);
        }
    }

    /// Frees the slot; the client has been taken out of it.
    pub(crate) fn free(&mut self, slot: u32, connection: Box<Connection>) {
        assert!(connection.socket.is_none(), "the client leaves before its slot is given free");
        self.slots[slot as usize] = Some(connection);
        self.free.push(slot);
        self.occupied -= 1;
    }

    /// The next slot that the hand points at; `None` at the end of a round.
    pub(crate) fn next_by_hand(&mut self) -> Option<u32> {
        if self.hand as usize >= self.slots.len() {
            self.hand = 0;
            return None;
        }
        self.hand += 1;
        Some(self.hand - 1)
    }

    /// A connection, which stays in its slot.
    pub(crate) fn look(&self, slot: u32) -> Option<&Connection> {
        self.slots.get(slot as usize)?.as_deref().filter(|connection| connection.socket.is_some())
    }

    /// Every slot that has a client.
    pub(crate) fn occupied_slots(&self) -> Vec<u32> {
        (0..u32::try_from(self.slots.len()).expect("slots are counted in 32 bits"))
            .filter(|&slot| self.look(slot).is_some())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::connection::Door;
    use std::net::IpAddr;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn socket() -> OwnedFd {
        UnixStream::pair().expect("a pair").0.into()
    }

    fn enter(connections: &mut Connections) -> Option<Client> {
        let (slot, mut connection) = connections.vacancy()?;
        connection.occupy(socket(), IpAddr::from([127, 0, 0, 1]), Door::Public);
        let client = Client { slot, generation: connection.generation };
        connections.put(slot, connection);
        Some(client)
    }

    #[test]
    fn streams_have_their_turn_in_order_and_one_who_left_has_none() {
        let mut connections = Connections::new(3);
        let clients = [(); 3].map(|()| enter(&mut connections).expect("there is room"));
        // The second is told twice and has one turn; the first leaves, and another comes, who is told later.
        for at in [1, 0, 1, 2] {
            let mut connection = connections.take_client(clients[at]).expect("is there");
            connections.stream(clients[at].slot, &mut connection);
            connections.put(clients[at].slot, connection);
        }
        let mut connection = connections.take_client(clients[0]).expect("is there");
        connection.vacate();
        connections.free(clients[0].slot, connection);
        let turns = |connections: &mut Connections| {
            let mut slots = Vec::new();
            while let Some((slot, connection)) = connections.pop_streaming() {
                connections.put(slot, connection);
                slots.push(slot);
            }
            slots
        };
        assert!(connections.any_to_serve());
        assert_eq!(turns(&mut connections), [clients[1].slot, clients[2].slot]);
        assert!(!connections.any_to_serve());
        let next = enter(&mut connections).expect("there is room again");
        let mut connection = connections.take_client(next).expect("is there");
        connections.stream(next.slot, &mut connection);
        connections.put(next.slot, connection);
        assert_eq!((next.slot, turns(&mut connections)), (clients[0].slot, vec![next.slot]));
    }

    #[test]
    fn the_slot_of_one_who_left_is_another_clients_and_says_so() {
        let mut connections = Connections::new(1);
        let first = enter(&mut connections).expect("there is room");
        assert!(enter(&mut connections).is_none());
        let mut connection = connections.take_client(first).expect("is there");
        connection.vacate();
        connections.free(first.slot, connection);
        assert!(connections.take(first.slot).is_none());
        let second = enter(&mut connections).expect("there is room again");
        assert_eq!(first.slot, second.slot);
        assert!(connections.take_client(first).is_none());
        assert!(connections.take_client(second).is_some());
        assert_eq!(connections.count(), 1);
    }
}
