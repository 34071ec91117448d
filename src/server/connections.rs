//! The connections of one loop: slots that are reused, and the lists of slots with something to do.
//!
//! A slot keeps its lists from one client to the next. A connection is taken out of its slot
//! while somebody works on it and put back afterwards, so that work on it and work on the rest of
//! the loop do not borrow from each other; whoever finds the slot empty or with another
//! generation has come too late.
//!
//! | file | what it knows |
//! |---|---|
//! | `house` | who is let in, by which door |
//! | `descriptors` | how many sockets the system allows |
//! | `socket` | sockets and the epoll set of one loop |
//! | `connection` | one connection: bytes in, open requests, bytes out |
//! | `fair` | whose request gets its signature checks next |
//! | `held` | what clients hold up, over all connections |
//! | `heard` | until when a loop has heard its clients |
//! | `addresses` | a number for each address, for `house` and `held` |

mod addresses;
pub(super) mod connection;
pub(super) mod descriptors;
mod fair;
pub(super) mod heard;
pub(super) mod held;
pub(super) mod house;
pub(super) mod socket;

use std::collections::VecDeque;

use crate::limits::{Moment, Party};
use connection::Connection;
use fair::FairQueue;

/// The lists of slots. A slot stands in each at most once, and whoever was noted first is next. Those that wait for
/// signature checks stand in a queue of their own, [`FairQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// With bytes that are not judged yet.
    Ready,
    /// Whose oldest answer waits for a mark.
    Waiting,
    /// Whose next request is held by a limit.
    Held,
    /// With bytes to send, or with a change in what epoll should watch.
    Dirty,
    /// Of streams of markets that were told something.
    Streaming,
    /// Of streams of markets that are owed books, and have room for them.
    Owed,
}

impl List {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::Owed as usize + 1;
}

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
    lists: [VecDeque<u32>; List::COUNT],
    /// Those whose next request needs signature checks.
    signing: FairQueue,
    /// A buffer for a large answer, with whoever is worked on.
    large: Vec<u8>,
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
            lists: Default::default(),
            signing: FairQueue::new(),
            large: Vec::new(),
            hand: 0,
        }
    }

    /// How many clients there are.
    pub(crate) fn count(&self) -> u32 {
        self.occupied
    }

    /// Whether any has something that the next turn goes on with.
    pub(crate) fn any_to_serve(&self) -> bool {
        let lists = [List::Dirty, List::Streaming, List::Owed];
        lists.into_iter().any(|list| 0 < self.noted(list)) || self.any_ready()
    }

    /// Whether any has a request that is not judged yet.
    pub(crate) fn any_ready(&self) -> bool {
        0 < self.noted(List::Ready) || 0 < self.signing()
    }

    /// How many wait for signature checks.
    pub(crate) fn signing(&self) -> usize {
        self.signing.len()
    }

    /// How many slots stand in a list.
    pub(crate) fn noted(&self, list: List) -> usize {
        self.lists[list as usize].len()
    }

    /// The connections of a list that still have their clients.
    pub(crate) fn all_in(&self, list: List) -> impl Iterator<Item = &Connection> {
        self.lists[list as usize].iter().filter_map(|&slot| self.look(slot))
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
        // Every slot can be free and can stand in every list once; so none of them grows while clients are served.
        let wanted = self.slots.len();
        self.free.reserve(wanted);
        for list in &mut self.lists {
            list.reserve(wanted - list.len());
        }
        self.signing.reserve(wanted);
        self.occupied += 1;
        Some((slot, Box::new(Connection::empty())))
    }

    /// Takes the connection out of its slot to work on it.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Box<Connection>> {
        let connection = self.slots.get_mut(slot as usize)?;
        connection.as_ref()?.socket.as_ref()?;
        let mut connection = connection.take()?;
        connection.line.lend(&mut self.large);
        Some(connection)
    }

    /// Takes a client's connection out of its slot, if the client is still there.
    pub(crate) fn take_client(&mut self, client: Client) -> Option<Box<Connection>> {
        let generation = self.slots.get(client.slot as usize)?.as_ref()?.generation;
        if generation == client.generation { self.take(client.slot) } else { None }
    }

    /// Notes a slot in a list, if it does not stand there.
    pub(crate) fn note(&mut self, list: List, slot: u32, connection: &mut Connection) {
        if !std::mem::replace(&mut connection.listed[list as usize], true) {
            self.lists[list as usize].push_back(slot);
        }
    }

    /// Takes the next connection of a list that still has its client out of list and slot.
    pub(crate) fn next(&mut self, list: List) -> Option<(u32, Box<Connection>)> {
        while let Some(slot) = self.lists[list as usize].pop_front() {
            if let Some(connection) = self.slots[slot as usize].as_mut() {
                connection.listed[list as usize] = false;
            }
            if let Some(connection) = self.take(slot) {
                return Some((slot, connection));
            }
        }
        None
    }

    /// Notes a slot whose next request needs signature checks, if it is not noted.
    pub(crate) fn note_signing(&mut self, slot: u32, connection: &mut Connection, body_bytes: u64) {
        if !std::mem::replace(&mut connection.listed_signing, true) {
            self.signing.push(slot, connection.line.toll.address(), body_bytes);
        }
    }

    /// A request from `address` gets its signature checks without waiting.
    pub(crate) fn sign_at_once(&mut self, address: Party, body_bytes: u64) {
        self.signing.pass(address, body_bytes);
    }

    /// Takes the connection whose turn it is to get signature checks out of the queue and its slot.
    pub(crate) fn next_signing(&mut self) -> Option<(u32, Box<Connection>)> {
        let slot = self.signing.pop()?;
        let mut connection = self.take(slot).expect("who leaves is removed, and nobody else is at work");
        connection.listed_signing = false;
        Some((slot, connection))
    }

    /// Puts a connection back; one with an answer that waits for a mark is noted.
    pub(crate) fn put(&mut self, slot: u32, mut connection: Box<Connection>) {
        assert!(connection.socket.is_some(), "a connection without a client is freed");
        if connection.line.waits_for_mark().is_some() {
            self.note(List::Waiting, slot, &mut connection);
        }
        connection.line.give_up(&mut self.large);
        self.slots[slot as usize] = Some(connection);
    }

    /// Queues the slots whose requests were held long enough. Returns when the next one is due.
    pub(crate) fn release_held(&mut self, now: Moment) -> Option<Moment> {
        let mut next: Option<Moment> = None;
        for _ in 0..self.noted(List::Held) {
            // A client that left has nothing in the slot; one that came since is served as usual.
            let Some((slot, mut connection)) = self.next(List::Held) else {
                break;
            };
            let until = connection.line.toll.held().filter(|&until| now < until);
            let list = if until.is_some() { List::Held } else { List::Ready };
            self.note(list, slot, &mut connection);
            self.put(slot, connection);
            next = next.into_iter().chain(until).min();
        }
        next
    }

    /// Frees the slot; the client has been taken out of it.
    pub(crate) fn free(&mut self, slot: u32, mut connection: Box<Connection>) {
        assert!(connection.socket.is_none(), "the client leaves before its slot is given free");
        if std::mem::take(&mut connection.listed_signing) {
            self.signing.remove(slot);
        }
        connection.line.give_up(&mut self.large);
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
    use crate::domain::Position;
    use crate::server::connections::connection::{Door, Intent};
    use crate::server::connections::held::SMALL_BYTES_MAX;
    use crate::server::requests::pages::Pages;
    use crate::server::threads::tally::Tally;
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
            connections.note(List::Streaming, clients[at].slot, &mut connection);
            connections.put(clients[at].slot, connection);
        }
        let mut connection = connections.take_client(clients[0]).expect("is there");
        connection.vacate();
        connections.free(clients[0].slot, connection);
        let turns = |connections: &mut Connections| {
            let mut slots = Vec::new();
            while let Some((slot, connection)) = connections.next(List::Streaming) {
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
        connections.note(List::Streaming, next.slot, &mut connection);
        connections.put(next.slot, connection);
        assert_eq!((next.slot, turns(&mut connections)), (clients[0].slot, vec![next.slot]));
    }

    #[test]
    fn no_list_grows_once_every_client_has_come() {
        const CLIENTS: u32 = 100;
        const LISTS: [List; List::COUNT] =
            [List::Ready, List::Waiting, List::Held, List::Dirty, List::Streaming, List::Owed];
        let mut connections = Connections::new(CLIENTS);
        let clients: Vec<Client> = (0..CLIENTS).filter_map(|_| enter(&mut connections)).collect();
        let taken = |all: &Connections| (all.lists.each_ref().map(VecDeque::capacity), all.free.capacity());
        let before = taken(&connections);
        for list in LISTS {
            for round in 0..3 {
                for client in &clients {
                    let mut connection = connections.take_client(*client).expect("is there");
                    connections.note(list, client.slot, &mut connection);
                    connections.put(client.slot, connection);
                }
                for _ in 0..round * CLIENTS / 2 {
                    let (slot, connection) = connections.next(list).expect("all were noted");
                    connections.put(slot, connection);
                }
            }
        }
        for client in clients {
            let mut connection = connections.take_client(client).expect("is there");
            connection.vacate();
            connections.free(client.slot, connection);
        }
        assert_eq!(taken(&connections), before);
    }

    #[test]
    fn large_answers_to_all_clients_use_one_buffer() {
        let mut connections = Connections::new(3);
        let clients = [(); 3].map(|()| enter(&mut connections).expect("there is room"));
        let answer = vec![b'x'; 60_000];
        let mut buffers = Vec::new();
        for client in [clients, clients].concat() {
            let mut connection = connections.take_client(client).expect("is there");
            let number = connection.line.open(Intent::Read);
            connections.put(client.slot, connection);
            let mut connection = connections.take_client(client).expect("is there");
            connection.line.answer(number).expect("is open").extend_from_slice(&answer);
            connection.line.ready(number, Position(0));
            connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
            connection.line.was_sent(answer.len());
            connections.put(client.slot, connection);
            buffers.push((connections.large.as_ptr(), connections.large.capacity()));
        }
        assert!(buffers.iter().all(|(_, bytes)| (answer.len()..=SMALL_BYTES_MAX).contains(bytes)));
        assert!(buffers[3..].iter().all(|buffer| buffer == &buffers[3]), "{buffers:?}");
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
