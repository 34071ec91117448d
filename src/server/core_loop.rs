//! One core loop: the turn that everything on its thread happens in.
//!
//! A turn, in this order, each step bounded:
//! 1. what epoll reports: new clients, bytes in, room to send;
//! 2. requests: cancels of all ready sockets first, then the rest, at most
//!    [`super::ingress::SIGNATURES_PER_TURN`] signature checks;
//! 3. what other loops sent;
//! 4. the roles' own work: expiries and removals of the shard, frames for the reader;
//! 5. answers whose position is acknowledged go out, one send for each connection;
//! 6. bells, once for each loop that got something;
//! 7. if nothing happened: spin or sleep, as the plan says.
//!
//! Loops start before recovery is done and get their roles when it is; until then trading is
//! answered 425 and reads 503.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::acts;
use super::admin;
use super::connection::{Connection, Door, Intent, Line};
use super::connections::{Client, Connections};
use super::executor::Turns;
use super::ingress::Trade;
use super::marks::Marks;
use super::mesh::Mesh;
use super::message::{Letter, Moved as MovedClient, ReadJob};
use super::plan::Durability;
use super::reading::{self, Reading};
use super::request::{self, Found, Request};
use super::roles;
use super::shared::{Phase, Shared};
use super::socket::{self, Moved, Ready, Watch, Watched};
use super::topology::{SPIN_TURNS, Wait};
use crate::domain::{Position, Reject, TimeMs};
use crate::http::respond::{self, Extras};
use crate::http::{self, BadRequest, Class, Endpoint, Query};

/// What a loop gets when recovery is done.
pub(crate) struct Roles {
    /// How far the log is acknowledged.
    pub(crate) marks: Marks,
    /// Sockets of trading connections, a shard, perhaps the registrar.
    pub(crate) trade: Option<Trade>,
    /// The reader.
    pub(crate) reading: Option<Reading>,
}

/// The listeners; the reader's loop has them.
pub(crate) struct Doors {
    /// For everybody.
    pub(crate) http: TcpListener,
    /// For the operator.
    pub(crate) admin: TcpListener,
}

/// The registrar is with shard 0, whose loop is the first.
pub(crate) const REGISTRAR_LOOP: usize = 0;
/// Clients taken from a listener in one turn.
const ACCEPTS_PER_TURN: usize = 16;
/// Messages taken from one other loop in one turn.
const MESSAGES_PER_TURN: usize = 64;
/// How long a loop sleeps at most while a read waits for frames.
const READ_NAP: Duration = Duration::from_millis(20);
/// Connections whose deadlines are looked at in one turn.
const HAND_SLOTS_PER_TURN: usize = 64;

/// One thread's whole state.
pub(crate) struct CoreLoop {
    pub(super) shared: Arc<Shared>,
    pub(super) mesh: Mesh,
    pub(super) roles: Option<Roles>,
    pub(super) connections: Connections,
    pub(super) now: TimeMs,
    pub(super) elapsed_ms: u64,
    pub(super) token: admin::Token,
    claimed: Position,
    wait: Wait,
    watch: Watch,
    events: Vec<Ready>,
    doors: Option<Doors>,
    limits: http::Limits,
    prefixes: http::route::HostPrefixes,
    spare: Vec<u32>,
    idle_turns: u32,
    hand_rests_until_ms: u64,
    next_ingress: usize,
    drained: bool,
}

/// What became of the front of a connection's buffer.
enum Step {
    /// A request was taken; the next one may be looked at.
    Took,
    /// A request was taken; others are in turn before this connection's next one.
    TookMine,
    /// More bytes must come.
    Partial,
    /// Not in this turn.
    Later,
    /// Not before an open request is answered.
    Blocked,
    /// The connection belongs to an ingress loop.
    Move,
}

/// Which requests a pass over the ready connections takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Cancels,
    All,
}

impl CoreLoop {
    /// A loop that has no roles yet.
    pub(crate) fn new(shared: &Arc<Shared>, mesh: Mesh, doors: Option<Doors>) -> Result<Self, String> {
        let name = &shared.plan.topology.loops[mesh.no()].name;
        let token = admin::Token::load(&shared.plan)?;
        Self::watching(shared, mesh, doors, token).map_err(|fault| format!("{name}: {fault}"))
    }

    fn watching(
        shared: &Arc<Shared>,
        mesh: Mesh,
        doors: Option<Doors>,
        token: admin::Token,
    ) -> std::io::Result<Self> {
        let watch = Watch::new()?;
        watch.add(shared.wakers[mesh.no()].bell(), Watched::Bell, true, false)?;
        if let Some(doors) = &doors {
            watch.add(&doors.http, Watched::PublicDoor, true, false)?;
            watch.add(&doors.admin, Watched::AdminDoor, true, false)?;
        }
        let prefixes = roles::prefixes(&shared.plan);
        Ok(Self {
            wait: shared.plan.topology.loops[mesh.no()].wait,
            connections: Connections::new(shared.plan.limits.connections_max),
            shared: Arc::clone(shared),
            mesh,
            roles: None,
            now: TimeMs(0),
            elapsed_ms: 0,
            token,
            claimed: Position(0),
            watch,
            events: Vec::with_capacity(64),
            doors,
            limits: http::Limits::DEFAULT,
            prefixes,
            spare: Vec::new(),
            idle_turns: 0,
            hand_rests_until_ms: 0,
            next_ingress: 0,
            drained: false,
        })
    }
}

impl Turns for CoreLoop {
    fn turn(&mut self) -> bool {
        let phase = self.shared.phase();
        if phase == Phase::Stopped {
            self.close_all();
            return false;
        }
        self.now = self.now.max(self.shared.clock.now());
        self.elapsed_ms = self.shared.clock.elapsed_ms();
        if self.roles.is_none() {
            self.roles = self.shared.roles[self.mesh.no()].pop();
        }
        let mut busy = self.take_events(phase);
        busy |= self.serve_ready(phase);
        busy |= self.take_messages();
        busy |= self.work();
        self.finish();
        busy |= self.release();
        self.send_all(phase);
        self.mesh.ring_bells();
        self.check_times();
        if phase == Phase::Draining {
            self.drain();
        }
        if busy || !self.connections.ready.is_empty() {
            self.idle_turns = 0;
        } else {
            self.rest(phase);
        }
        true
    }
}

/// Step 1: sockets.
impl CoreLoop {
    fn take_events(&mut self, phase: Phase) -> bool {
        if self.events.is_empty() {
            self.watch.wait(0, &mut self.events);
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

    fn accept(&mut self, door: Door, phase: Phase) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(doors) = &self.doors else {
                return;
            };
            let listener = if door == Door::Admin { &doors.admin } else { &doors.http };
            let Ok(Some((client, peer))) = socket::accept(listener) else {
                return;
            };
            let clients = self.shared.clients.fetch_add(1, Ordering::Relaxed);
            let full = clients >= self.shared.plan.limits.connections_max;
            // A full house closes the door in the newcomer's face: the socket is dropped here.
            if full || phase >= Phase::Draining || !self.adopt(client, peer, door, &[]) {
                self.shared.clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Gives a client a slot; false if there is none.
    fn adopt(
        &mut self,
        client: std::os::fd::OwnedFd,
        peer: std::net::IpAddr,
        door: Door,
        unread: &[u8],
    ) -> bool {
        let Some((slot, mut connection)) = self.connections.vacancy() else {
            return false;
        };
        if self.watch.add(&client, Watched::Slot(slot), true, false).is_err() {
            self.connections.free(slot, connection);
            return false;
        }
        connection.occupy(client, peer, door);
        connection.watched = (true, false);
        connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.idle_ms;
        if !unread.is_empty() {
            connection.input.refill(unread);
            self.connections.queue(slot, &mut connection);
        }
        self.connections.put(slot, connection);
        true
    }

    fn receive(&mut self, slot: u32, event: Ready) {
        let Some(mut connection) = self.connections.take(slot) else {
            return;
        };
        if event.writable {
            self.connections.touch(slot, &mut connection);
        }
        if !event.readable {
            self.connections.put(slot, connection);
            return;
        }
        let client = connection.socket.as_ref().expect("taken connections have a client");
        let room = connection.input.room();
        let moved = if room.is_empty() { Moved::Later } else { socket::receive(client, room) };
        match moved {
            Moved::Bytes(count) => {
                connection.input.arrived(count);
                self.connections.queue(slot, &mut connection);
            }
            Moved::Later => {}
            // What was asked and cannot be answered any more is not worth keeping the slot for.
            Moved::Gone if connection.line.is_idle() || connection.watched.1 => {
                self.leave(slot, connection);
                return;
            }
            Moved::Gone => {
                connection.closing = true;
                self.connections.touch(slot, &mut connection);
            }
        }
        self.connections.put(slot, connection);
    }

    /// Closes a connection and gives its slot free.
    fn leave(&mut self, slot: u32, mut connection: Box<Connection>) {
        if let Some(client) = connection.vacate() {
            let _ = self.watch.remove(&client);
            self.shared.clients.fetch_sub(1, Ordering::Relaxed);
        }
        self.connections.free(slot, connection);
    }
}

/// Step 2: requests.
impl CoreLoop {
    fn serve_ready(&mut self, phase: Phase) -> bool {
        let ready = self.connections.ready.len();
        let mut took = false;
        if let Some(trade) = self.roles.as_mut().and_then(|roles| roles.trade.as_mut()) {
            took |= trade.begin_turn(self.now, &mut self.mesh);
            if ready > 1 {
                for _ in 0..ready {
                    took |= self.serve_next(phase, Pass::Cancels);
                }
            }
        }
        for _ in 0..self.connections.ready.len() {
            took |= self.serve_next(phase, Pass::All);
        }
        took
    }

    fn serve_next(&mut self, phase: Phase, pass: Pass) -> bool {
        let Some((slot, mut connection)) = self.connections.pop_ready() else {
            return false;
        };
        let client = Client { slot, generation: connection.generation };
        let mut took = false;
        let again = loop {
            if !connection.may_open() || phase >= Phase::Draining {
                break false;
            }
            match self.step(client, &mut connection, phase, pass) {
                Step::Took => took = true,
                Step::TookMine => {
                    took = true;
                    break !connection.input.unread().is_empty();
                }
                Step::Partial | Step::Blocked => break false,
                Step::Later => break true,
                Step::Move => match self.send_away(slot, connection) {
                    None => return true,
                    Some(back) => {
                        connection = back;
                        break true;
                    }
                },
            }
        };
        if again {
            self.connections.queue(slot, &mut connection);
        }
        self.connections.touch(slot, &mut connection);
        self.connections.put(slot, connection);
        took
    }

    fn step(&mut self, client: Client, connection: &mut Connection, phase: Phase, pass: Pass) -> Step {
        if connection.input.unread().is_empty() {
            connection.partial = false;
            connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.idle_ms;
            return Step::Partial;
        }
        let decoded = match request::decode_chunks(connection, &self.limits) {
            Ok(None) if connection.chunked.is_some() => return self.partial(connection),
            Ok(decoded) => decoded,
            Err(bad) => return refuse_bytes(connection, bad),
        };
        let found = match request::find(&connection.input, decoded, &self.limits) {
            Ok(found) => found,
            Err(bad) => return refuse_bytes(connection, bad),
        };
        match found {
            Found::Partial { needed, expects_continue } => {
                connection.input.hold(needed);
                say_continue(connection, expects_continue);
                self.partial(connection)
            }
            Found::ChunksBegin { head_bytes, expects_continue } => {
                request::begin_chunks(connection, head_bytes, &self.limits);
                say_continue(connection, expects_continue);
                Step::Took
            }
            Found::Whole(request) => {
                let (bytes, keep_alive) = (request.bytes.len(), request.head.keep_alive);
                let door = connection.door;
                let step = self.dispatch(client, &mut connection.line, door, &request, phase, pass);
                if matches!(step, Step::Took | Step::TookMine) {
                    connection.input.used(bytes);
                    connection.chunked = None;
                    connection.continued = false;
                    connection.partial = false;
                    connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.idle_ms;
                    connection.closing |= !keep_alive;
                }
                step
            }
        }
    }

    /// The rest of a request has its time, counted from the first byte.
    fn partial(&self, connection: &mut Connection) -> Step {
        if !connection.partial {
            connection.partial = true;
            connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.head_ms;
        }
        Step::Partial
    }

    fn dispatch(
        &mut self,
        client: Client,
        line: &mut Line,
        door: Door,
        request: &Request<'_>,
        phase: Phase,
        pass: Pass,
    ) -> Step {
        let head = &request.head;
        if door == Door::Admin {
            return if pass == Pass::All { self.admin(client, line, request, phase) } else { Step::Later };
        }
        let connection = connection_word(head.keep_alive);
        let route = match http::route(head.method, head.path, Query::new(head.query), self.prefixes) {
            Ok(route) => route,
            Err(reason) => {
                answer_now(line, |out| respond::no_route(out, reason, connection));
                return Step::Took;
            }
        };
        if route.class() != Class::Trading {
            return if pass == Pass::All { self.read(client, line, request, phase) } else { Step::Later };
        }
        if pass == Pass::Cancels && !is_cancel(route.endpoint) {
            return Step::Later;
        }
        let Some(roles) = &mut self.roles else {
            refuse(line, Reject::Recovering, connection);
            return Step::Took;
        };
        let Some(trade) = &mut roles.trade else {
            return if line.is_idle() { Step::Move } else { Step::Blocked };
        };
        match trade.begin(client, line, &route, request, self.now, &mut self.mesh) {
            super::ingress::Began::Took => Step::Took,
            super::ingress::Began::TookWithSignature => Step::TookMine,
            super::ingress::Began::Later => Step::Later,
        }
    }

    /// A request that only asks, or that is answered where reads are.
    fn read(&mut self, client: Client, line: &mut Line, request: &Request<'_>, phase: Phase) -> Step {
        if line.writes_open() {
            return Step::Blocked;
        }
        let connection = connection_word(request.head.keep_alive);
        if phase == Phase::Recovering || self.roles.is_none() {
            refuse_for(line, Reject::Recovering, 503, connection);
            return Step::Took;
        }
        let intent = match http::route(
            request.head.method,
            request.head.path,
            Query::new(request.head.query),
            self.prefixes,
        ) {
            Ok(route) if reading::changes_state(route.endpoint) => Intent::Write,
            _ => Intent::Read,
        };
        let number = line.open(intent);
        let job = Box::new(ReadJob {
            origin: self.mesh.no(),
            client,
            number,
            bytes: request.bytes.to_vec(),
            tag: self.shared.acknowledged(),
            deadline_ms: self.elapsed_ms + self.shared.plan.limits.read_wait_ms,
            keep_alive: request.head.keep_alive,
            head_only: false,
            answer: Vec::new(),
            at: Position(0),
        });
        let to = self.shared.plan.topology.reader_loop();
        if to == self.mesh.no() {
            let reading = self.roles.as_mut().and_then(|roles| roles.reading.as_mut());
            reading.expect("the reader's loop has the reader").begin(job);
            return Step::Took;
        }
        if let Err(Letter::Read(job)) = self.mesh.post(to, Letter::Read(job)) {
            refuse_open(line, job.number, Reject::Busy, connection);
        }
        Step::Took
    }

    fn admin(&mut self, client: Client, line: &mut Line, request: &Request<'_>, phase: Phase) -> Step {
        let number = line.open(Intent::Write);
        let mut answer = std::mem::take(line.answer(number).expect("just opened"));
        let done = admin::begin(self, client, number, request, phase, &mut answer);
        *line.answer(number).expect("just opened") = answer;
        if let admin::Done::Answered(at) = done {
            line.ready(number, at);
        }
        Step::Took
    }

    /// Moves a connection to an ingress loop, each in turn; gives it back if that has no room now.
    fn send_away(&mut self, slot: u32, mut connection: Box<Connection>) -> Option<Box<Connection>> {
        let shards = usize::from(self.shared.plan.topology.shards);
        let to = self.next_ingress % shards;
        let client = connection.socket.take().expect("taken connections have a client");
        let _ = self.watch.remove(&client);
        let unread = connection.input.unread().to_vec();
        let letter = Letter::Moved(MovedClient { client, peer: connection.peer, unread });
        match self.mesh.post_one_way(to, letter) {
            Ok(()) => {
                self.next_ingress = (to + 1) % shards;
                connection.vacate();
                self.connections.free(slot, connection);
                None
            }
            Err(Letter::Moved(back)) => {
                let _ = self.watch.add(&back.client, Watched::Slot(slot), true, false);
                connection.watched = (true, false);
                connection.socket = Some(back.client);
                Some(connection)
            }
            Err(_) => unreachable!("a letter comes back as it was"),
        }
    }
}

/// Steps 3 and 4: other loops, and the roles' own work.
impl CoreLoop {
    fn take_messages(&mut self) -> bool {
        let mut busy = false;
        for from in 0..self.mesh.loops() {
            for _ in 0..MESSAGES_PER_TURN {
                let Some(letter) = self.mesh.next_letter(from) else {
                    break;
                };
                busy = true;
                self.open_letter(from, letter);
            }
            for _ in 0..MESSAGES_PER_TURN {
                let Some(letter) = self.mesh.next_reply(from) else {
                    break;
                };
                busy = true;
                self.open_reply(letter);
            }
        }
        if let Some(trade) = self.roles.as_mut().and_then(|roles| roles.trade.as_mut()) {
            busy |= trade.take_messages(self.now, &mut self.mesh, MESSAGES_PER_TURN);
        }
        busy
    }

    fn open_letter(&mut self, from: usize, letter: Letter) {
        match letter {
            Letter::Moved(moved) => {
                if !self.adopt(moved.client, moved.peer, Door::Public, &moved.unread) {
                    self.shared.clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Letter::Read(job) => {
                let reading = self.roles.as_mut().and_then(|roles| roles.reading.as_mut());
                reading.expect("reads are posted after recovery, to the reader's loop").begin(job);
            }
            Letter::Wide(mut job) => {
                let trade = self.roles.as_mut().and_then(|roles| roles.trade.as_mut());
                trade.expect("cancels are posted to loops with a shard").do_wide(&mut job, self.now);
                self.mesh.reply(from, Letter::Wide(job));
            }
            Letter::Act(mut job) => {
                let trade = self.roles.as_mut().and_then(|roles| roles.trade.as_mut());
                trade.expect("errands are posted to loops with a shard").run_errand(&mut job, self.now);
                self.mesh.reply(from, Letter::Act(job));
            }
        }
    }

    fn open_reply(&mut self, letter: Letter) {
        match letter {
            Letter::Read(job) => self.deliver(&job),
            Letter::Wide(job) => {
                let trade = self.roles.as_mut().and_then(|roles| roles.trade.as_mut());
                let trade = trade.expect("cancels are posted by loops with a shard");
                trade.told_of_wide(job, self.now, &mut self.mesh);
            }
            Letter::Act(job) => acts::came_back(self, job),
            Letter::Moved(_) => unreachable!("a move is not answered"),
        }
    }

    /// Puts the answer of a read into its place in the line.
    pub(super) fn deliver(&mut self, job: &ReadJob) {
        self.answer(job.client, job.number, &job.answer, job.at);
    }

    /// Puts an answer into its place in the line, if its client is still there.
    pub(super) fn answer(&mut self, client: Client, number: u32, answer: &[u8], at: Position) {
        let Some(mut connection) = self.connections.take_client(client) else {
            return;
        };
        if let Some(place) = connection.line.answer(number) {
            place.extend_from_slice(answer);
            connection.line.ready(number, at);
        }
        self.connections.put(client.slot, connection);
    }

    fn work(&mut self) -> bool {
        let Some(roles) = &mut self.roles else {
            return false;
        };
        let mut busy = false;
        if self.mesh.no() == REGISTRAR_LOOP
            && let Some(main) = self.shared.errands.pop()
            && let Some(trade) = &mut roles.trade
        {
            // Whoever does not wait any more does not want to know.
            let _ = main.sender.send((main.errand)(trade, self.now));
            busy = true;
        }
        if let Some(trade) = &mut roles.trade {
            busy |= trade.work(self.now);
            let claimed = trade.last_claimed();
            if claimed != self.claimed {
                self.claimed = claimed;
                // The reader follows, and the journal thread need not wait for its next nap.
                self.mesh.touch(self.shared.plan.topology.reader_loop());
                if roles.marks.durability() == Durability::Durable {
                    roles.marks.log().wake_writer();
                }
            }
        }
        let mark = roles.marks.advance();
        if let Some(reading) = &mut roles.reading {
            busy |= reading.work(mark, self.now, self.elapsed_ms);
            while let Some(job) = self.roles.as_mut().and_then(|roles| roles.reading.as_mut()?.next_act()) {
                acts::send(self, REGISTRAR_LOOP, job);
            }
            while let Some(job) = self.roles.as_mut().and_then(|roles| roles.reading.as_mut()?.next_done()) {
                if job.origin == self.mesh.no() {
                    self.deliver(&job);
                } else {
                    let origin = job.origin;
                    self.mesh.reply(origin, Letter::Read(job));
                }
            }
        }
        busy
    }

    /// Renders what the shards have decided into its place in the line.
    fn finish(&mut self) {
        loop {
            let Some(trade) = self.roles.as_mut().and_then(|roles| roles.trade.as_mut()) else {
                return;
            };
            let Some(client) = trade.next_finished() else {
                return;
            };
            if let Some(mut connection) = self.connections.take_client(client) {
                trade.render(Some(&mut connection.line));
                self.connections.put(client.slot, connection);
            } else {
                trade.render(None);
            }
        }
    }
}

/// Step 5: answers leave.
impl CoreLoop {
    fn release(&mut self) -> bool {
        let mark = match &mut self.roles {
            Some(roles) if roles::journal_failed(&self.shared, roles.marks.log()) => return false,
            _ if self.connections.waiting.is_empty() => return false,
            Some(roles) => roles.marks.advance(),
            None => Position(0),
        };
        let mut waiting = std::mem::replace(&mut self.connections.waiting, std::mem::take(&mut self.spare));
        let mut released = false;
        for slot in waiting.drain(..) {
            released |= self.release_slot(slot, mark);
        }
        self.spare = waiting;
        released
    }

    fn release_slot(&mut self, slot: u32, mark: Position) -> bool {
        let Some(mut connection) = self.connections.take_waiting(slot) else {
            return false;
        };
        let highest = connection.line.release(mark);
        if let Some(position) = highest {
            self.shared.acknowledge(position);
            self.shared.answered.fetch_add(1, Ordering::Relaxed);
            self.connections.touch(slot, &mut connection);
            if !connection.input.unread().is_empty() {
                self.connections.queue(slot, &mut connection);
            }
        }
        self.connections.put(slot, connection);
        highest.is_some()
    }

    fn send_all(&mut self, phase: Phase) {
        while let Some((slot, mut connection)) = self.connections.pop_dirty() {
            if self.send(&mut connection) || (connection.closing && connection.line.is_idle()) {
                self.leave(slot, connection);
                continue;
            }
            let readable = connection.may_open() && phase < Phase::Draining && !connection.input.is_full();
            let watched = (readable, connection.line.unsent() > 0);
            if watched != connection.watched {
                let client = connection.socket.as_ref().expect("taken connections have a client");
                if self.watch.change(client, Watched::Slot(slot), watched.0, watched.1).is_err() {
                    self.leave(slot, connection);
                    continue;
                }
                connection.watched = watched;
            }
            self.connections.put(slot, connection);
        }
    }

    /// Sends once what there is to send; true if the client is gone.
    fn send(&self, connection: &mut Connection) -> bool {
        if connection.line.unsent() == 0 {
            return false;
        }
        let was_below = connection.line.has_room();
        let client = connection.socket.as_ref().expect("taken connections have a client");
        match socket::send(client, connection.line.to_send()) {
            Moved::Bytes(count) => {
                connection.line.was_sent(count);
                let unsent_ms = self.shared.plan.limits.unsent_ms;
                let over = connection.line.unsent() == 0;
                connection.send_by_ms = if over { u64::MAX } else { self.elapsed_ms + unsent_ms };
            }
            Moved::Later => {
                let by = self.elapsed_ms + self.shared.plan.limits.unsent_ms;
                connection.send_by_ms = connection.send_by_ms.min(by);
            }
            Moved::Gone => return true,
        }
        let _ = was_below;
        false
    }
}

/// Steps 6 and 7: time, rest, the end.
impl CoreLoop {
    fn check_times(&mut self) {
        if self.elapsed_ms < self.hand_rests_until_ms {
            return;
        }
        for _ in 0..HAND_SLOTS_PER_TURN {
            let Some(slot) = self.connections.next_by_hand() else {
                let round_ms = u64::try_from(self.shared.plan.nap().as_millis()).unwrap_or(u64::MAX);
                self.hand_rests_until_ms = self.elapsed_ms + round_ms;
                return;
            };
            let Some(connection) = self.connections.look(slot) else {
                continue;
            };
            let nothing_open = connection.line.open_count() == 0;
            let silent = connection.read_by_ms <= self.elapsed_ms && nothing_open;
            let unsent = connection.send_by_ms <= self.elapsed_ms;
            if (silent || unsent)
                && let Some(connection) = self.connections.take(slot)
            {
                self.leave(slot, connection);
            }
        }
    }

    fn rest(&mut self, phase: Phase) {
        match self.wait {
            Wait::Spin => return std::hint::spin_loop(),
            Wait::SpinThenPark if self.idle_turns < SPIN_TURNS => {
                self.idle_turns += 1;
                return std::hint::spin_loop();
            }
            Wait::SpinThenPark | Wait::Park => {}
        }
        let no = self.mesh.no();
        let awaited = self.awaited();
        // A commit that is under way on another core is over in no time; sleeping would miss it.
        let committed = |roles: &Roles| roles.marks.durability() == Durability::Committed;
        if !self.connections.waiting.is_empty() && self.roles.as_ref().is_some_and(committed) {
            return std::thread::yield_now();
        }
        self.shared.await_position(no, awaited);
        self.shared.wakers[no].before_sleep();
        let mark = self.roles.as_mut().map_or(Position(0), |roles| roles.marks.advance());
        let work_came = self.mesh.anything_came()
            || !self.shared.roles[no].is_empty()
            || (no == REGISTRAR_LOOP && !self.shared.errands.is_empty())
            || self.shared.phase() != phase
            || awaited.is_some_and(|position| position <= mark)
            || self.roles.as_ref().and_then(|roles| roles.reading.as_ref()).is_some_and(Reading::has_work);
        if !work_came {
            let reading = self.roles.as_ref().and_then(|roles| roles.reading.as_ref());
            let nap = if reading.is_some_and(Reading::waits) { READ_NAP } else { self.shared.plan.nap() };
            let nap_ms = u64::try_from(nap.as_millis()).unwrap_or(u64::MAX);
            self.watch.wait(nap_ms, &mut self.events);
        }
        self.shared.wakers[no].after_sleep(false);
    }

    /// The lowest position that gives this loop work when it is acknowledged.
    fn awaited(&self) -> Option<Position> {
        let answers = self.connections.waiting.iter();
        let answers = answers.filter_map(|&slot| self.connections.look(slot)?.line.waits_for_mark()).min();
        let reading = self.roles.as_ref().and_then(|roles| roles.reading.as_ref()).map(Reading::awaits);
        match (answers, reading) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn drain(&mut self) {
        if let Some(doors) = self.doors.take() {
            let _ = self.watch.remove(&doors.http);
            let _ = self.watch.remove(&doors.admin);
        }
        for slot in self.connections.occupied_slots() {
            if let Some(connection) = self.connections.take(slot) {
                if connection.line.is_idle() {
                    self.leave(slot, connection);
                } else {
                    self.connections.put(slot, connection);
                }
            }
        }
        if !self.drained && self.connections.count() == 0 && !self.mesh.anything_in_flight() {
            self.drained = true;
            self.shared.drained.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn close_all(&mut self) {
        self.doors = None;
        for slot in self.connections.occupied_slots() {
            if let Some(connection) = self.connections.take(slot) {
                self.leave(slot, connection);
            }
        }
    }
}

const fn is_cancel(endpoint: Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::CancelOrder | Endpoint::CancelOrders | Endpoint::CancelAll | Endpoint::CancelMarketOrders
    )
}

/// The answer's word about the connection.
pub(super) const fn connection_word(keep_alive: bool) -> respond::Connection {
    if keep_alive { respond::Connection::KeepAlive } else { respond::Connection::Close }
}

/// Opens a request and answers it at once.
fn answer_now(line: &mut Line, write: impl FnOnce(&mut Vec<u8>)) {
    let number = line.open(Intent::Read);
    write(line.answer(number).expect("just opened"));
    line.ready(number, Position(0));
}

fn refuse_bytes(connection: &mut Connection, bad: BadRequest) -> Step {
    answer_now(&mut connection.line, |out| respond::bad_request(out, bad));
    connection.closing = true;
    let rest = connection.input.unread().len();
    connection.input.used(rest);
    Step::Took
}

fn refuse(line: &mut Line, reject: Reject, connection: respond::Connection) {
    refuse_for(line, reject, reject.wire().status, connection);
}

fn refuse_for(line: &mut Line, reject: Reject, status: u16, connection: respond::Connection) {
    answer_now(line, |out| write_refusal(out, reject, status, connection));
}

fn refuse_open(line: &mut Line, number: u32, reject: Reject, connection: respond::Connection) {
    write_refusal(line.answer(number).expect("open"), reject, reject.wire().status, connection);
    line.ready(number, Position(0));
}

/// Seconds after which a client should try again.
const RETRY_AFTER_S: u32 = 1;

fn write_refusal(out: &mut Vec<u8>, reject: Reject, status: u16, connection: respond::Connection) {
    let wire = reject.wire();
    let extras = Extras { connection, retry_after_s: Some(RETRY_AFTER_S), ..Extras::default() };
    respond::plain_error(out, status, wire.code, wire.error, &extras);
}

fn say_continue(connection: &mut Connection, expected: bool) {
    if expected && !connection.continued && connection.line.open_count() == 0 {
        connection.continued = true;
        connection.line.output().extend_from_slice(respond::CONTINUE);
    }
}
