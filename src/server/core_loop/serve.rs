//! Requests in the buffers of ready connections: what they are, and who answers them.

use super::refuse::{answer_bytes, answer_now, refuse_bytes, refuse_or_hold, refuse_unready, write_refusal};
use super::{CoreLoop, connection_word};
use crate::domain::{Position, Reject};
use crate::http::respond::{self, Extras};
use crate::http::route::{Allowed, NoRoute, Route};
use crate::http::upgrade::NoUpgrade;
use crate::http::{self, Class, Endpoint, Method, Query, websocket};
use crate::reader::Channel;
use crate::server::connections::connection::{
    Connection, Door, Hears, Intent, Line, REQUEST_BYTES_MAX, Timed,
};
use crate::server::connections::{Client, List};
use crate::server::operator::admin;
use crate::server::reading::{self, Reading};
use crate::server::requests::proxies;
use crate::server::requests::request::{self, Found, Request};
use crate::server::threads::message::{Letter, Moved as MovedClient, ReadJob};
use crate::server::threads::shared::Phase;
use crate::server::trading::{self, Trade};
use crate::stats::{Laps, Stage};

/// How long a pass over many ready connections takes at most, but for its last request: what is refused counts as no
/// signature check and may have a long body. Who is left is served in the next turn.
const PASS_NS: u64 = 1_000_000;

/// How long a read may wait for what clients have been told: a reader that is later has a burst to apply, and its client
/// asks again.
const READ_WAIT_MS: u64 = 250;

/// What became of the request at the front of a connection's buffer.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// A request was taken; the connection's next one may follow.
    Took,
    /// A request was taken that costs curve operations; other connections come before this one's next request.
    TookMine,
    /// More bytes must come.
    Partial,
    /// Not in this turn.
    Later,
    /// Not before its turn among requests that need signature checks; its body has this many bytes.
    Queue(u64),
    /// Not before an open request is answered.
    Blocked,
    /// Not before its limit has room for it.
    Held,
    /// The connection belongs to this loop.
    Move(usize),
    /// The connection is a stream from here on.
    Upgraded(Channel),
}

/// Which requests a pass over the ready connections takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Cancels,
    All,
    /// That of one connection, whose turn it is to get signature checks.
    Signing,
}

/// Step 2: requests.
impl CoreLoop {
    /// Serves the cancels of ready connections, of as many as a pass has time for, and sends their answers before any
    /// other request begins: one signature check takes longer than most of this.
    pub(super) fn serve_cancels(&mut self, phase: Phase) -> bool {
        let ready = self.connections.noted(List::Ready);
        let Some(trade) = self.trade.as_mut() else {
            return false;
        };
        // A single ready connection is served next anyway, if no checks are left from the last turn and none wait.
        if ready == 0 || (ready == 1 && !trade.has_staged() && self.connections.signing() == 0) {
            return false;
        }
        let (mut took, ends_ns) = (false, self.pass_ends_ns(ready));
        for _ in 0..ready {
            let next = self.connections.next(List::Ready);
            took |= next.is_some_and(|next| self.serve(next, phase, Pass::Cancels));
            if self.is_over(ends_ns) {
                break;
            }
        }
        if took {
            self.finish();
            self.release();
            self.send_all(phase);
        }
        took
    }

    pub(super) fn serve_ready(&mut self, phase: Phase) -> bool {
        let mut took = false;
        if let Some(trade) = self.trade.as_mut() {
            took |= trade.run_left_over(self.now, &mut self.mesh);
        }
        if took {
            self.see_out(phase);
        }
        let ready = self.connections.noted(List::Ready);
        let ends_ns = self.pass_ends_ns(ready);
        for _ in 0..ready {
            let next = self.connections.next(List::Ready);
            if next.is_some_and(|next| self.serve(next, phase, Pass::All)) {
                took = true;
                self.see_out(phase);
            }
            if self.is_over(ends_ns) {
                break;
            }
        }
        // A time of their own, or requests that need no check could keep them out.
        let ends_ns = self.pass_ends_ns(self.connections.signing());
        while self.may_sign()
            && !self.is_over(ends_ns)
            && let Some(next) = self.connections.next_signing()
        {
            if self.serve(next, phase, Pass::Signing) {
                took = true;
                self.see_out(phase);
            }
        }
        took
    }

    /// When a pass over so many connections ends; none for a few, which are done sooner than many clocks are read.
    fn pass_ends_ns(&self, connections: usize) -> Option<u64> {
        const FEW: usize = 4;
        (FEW < connections).then(|| self.shared.clock.elapsed_ns() + PASS_NS)
    }

    fn is_over(&self, ends_ns: Option<u64>) -> bool {
        ends_ns.is_some_and(|ends_ns| ends_ns <= self.shared.clock.elapsed_ns())
    }

    fn may_sign(&self) -> bool {
        self.trade.as_ref().is_some_and(Trade::may_sign)
    }

    /// Wakes the journal's thread for what was just decided and sends the answers that are due before the next request
    /// begins, whose signature check takes about as long as a write. After a turn's last request, sending is left to
    /// the end of the turn.
    fn see_out(&mut self, phase: Phase) {
        self.tell_journal();
        if !self.connections.any_ready() {
            return;
        }
        self.finish();
        if self.may_release_more() && self.release() {
            self.send_all(phase);
        }
    }

    /// Serves a connection that was taken out of its slot; true if a request was taken.
    fn serve(
        &mut self,
        (slot, mut connection): (u32, Box<Connection>),
        phase: Phase,
        mut pass: Pass,
    ) -> bool {
        let was_held = connection.line.toll.held().is_some();
        if !connection.line.toll.release(self.moment) {
            // What cannot be read must not be reported in every turn.
            if connection.input.is_full() {
                self.connections.note(List::Dirty, slot, &mut connection);
            }
            self.connections.put(slot, connection);
            return false;
        }
        if was_held && connection.may_ask() {
            let limits = &self.shared.plan.limits;
            let idle_ms = if connection.stream.is_some() { limits.stream_idle_ms } else { limits.idle_ms };
            connection.read_by_ms = self.elapsed_ms + idle_ms;
        }
        let says_last = connection.stream.is_some() && connection.hears == Hears::Buffered;
        let client = Client { slot, generation: connection.generation };
        let mut took = false;
        let again = loop {
            if !connection.may_open() || phase >= Phase::Draining {
                break false;
            }
            match self.step(client, &mut connection, pass) {
                Step::Took | Step::Upgraded(_) => {
                    took = true;
                    if pass == Pass::Signing {
                        pass = Pass::All;
                    }
                }
                Step::TookMine => {
                    took = true;
                    break !connection.input.unread().is_empty();
                }
                Step::Partial => {
                    if connection.hears == Hears::Buffered {
                        connection.hear_no_more();
                    }
                    break false;
                }
                Step::Blocked => break false,
                Step::Held => {
                    self.hold(slot, &mut connection);
                    break false;
                }
                Step::Later => break true,
                Step::Queue(body_bytes) => {
                    // The client has sent the whole request, so it is neither idle nor slow.
                    connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.idle_ms;
                    self.connections.note_signing(slot, &mut connection, body_bytes);
                    break false;
                }
                Step::Move(to) if !self.mesh.may_post(to) => break true,
                Step::Move(to) => {
                    self.send_away(slot, connection, to);
                    return true;
                }
            }
        };
        if again {
            self.connections.note(List::Ready, slot, &mut connection);
        } else if says_last {
            connection.hear_no_more();
            self.disconnected(&mut connection);
        }
        connection.count_held(&self.shared.held);
        self.connections.note(List::Dirty, slot, &mut connection);
        self.connections.put(slot, connection);
        took
    }

    /// The connection's next request waits until its limit has room; it has been charged already.
    fn hold(&mut self, slot: u32, connection: &mut Connection) {
        let until = connection.line.toll.held();
        self.held_until = self.held_until.min(until).or(until);
        self.connections.note(List::Held, slot, connection);
    }

    fn step(&mut self, client: Client, connection: &mut Connection, pass: Pass) -> Step {
        if connection.stream.is_some() {
            if pass == Pass::Cancels {
                return Step::Later;
            }
            return self.listen(client, connection);
        }
        if connection.listed_signing && connection.line.signs {
            return Step::Blocked;
        }
        if connection.line.signs && pass == Pass::Cancels {
            return Step::Later;
        }
        if connection.input.unread().is_empty() {
            connection.partial = false;
            connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.idle_ms;
            return Step::Partial;
        }
        let decoded = match request::decode_chunks(connection) {
            Ok(decoded) => decoded,
            Err(bad) => return refuse_bytes(self, connection, bad),
        };
        if let (None, Some(chunks)) = (decoded, &connection.chunked) {
            let expects_continue = chunks.expects_continue;
            let step = self.partial(connection, REQUEST_BYTES_MAX);
            say_continue(connection, expects_continue);
            return step;
        }
        connection.line.came_ns = connection.input.came_ns();
        if self.trade.is_some() {
            connection.line.laps = self.laps_of_next(&connection.line);
        }
        let found = match request::find(&connection.input, decoded) {
            Ok(found) => found,
            Err(bad) => return refuse_bytes(self, connection, bad),
        };
        match found {
            Found::Partial { needed, expects_continue } => {
                let step = self.partial(connection, needed);
                say_continue(connection, expects_continue);
                step
            }
            Found::ChunksBegin { head_bytes, expects_continue } => {
                request::begin_chunks(connection, head_bytes, expects_continue);
                say_continue(connection, expects_continue);
                Step::Took
            }
            Found::Whole(mut request) => {
                let (bytes, client_stays) = (request.bytes.len(), request.head.keep_alive);
                // A server that leaves closes behind the last request that has come.
                let is_last = bytes == connection.input.unread().len();
                request.head.keep_alive &= !is_last || self.shared.phase() < Phase::Leaving;
                let keep_alive = request.head.keep_alive;
                let door = connection.door;
                let address = self.shared.plan.proxies.client(connection.peer, &request.head.forwarded_for);
                let address = proxies::party(&self.shared.limits, address);
                connection.line.is_shared = self.shared.plan.proxies.trust(connection.peer)
                    || request.head.forwarded_for.iter().any(Option::is_some);
                let came_us = self.shared.clock.steady_us(connection.line.came_ns);
                connection.line.toll = connection.line.toll.of(address, came_us);
                if door == Door::Public {
                    connection.line.page = self.shared.plan.pages.page(request.head.origin);
                }
                let number = connection.line.next_number();
                let step = self.dispatch(client, &mut connection.line, door, &request, pass);
                if request.head.method == Method::Head {
                    connection.line.drop_body(number);
                }
                if matches!(step, Step::Took | Step::TookMine | Step::Upgraded(_)) {
                    connection.input.used(bytes);
                    connection.chunked = None;
                    connection.continued = false;
                    connection.partial = false;
                    connection.line.forget_front();
                    connection.read_by_ms = self.elapsed_ms + self.shared.plan.limits.idle_ms;
                }
                if let Step::Upgraded(channel) = step {
                    self.begin_stream(client, connection, channel, address);
                } else if !keep_alive && matches!(step, Step::Took | Step::TookMine) {
                    // Whom the server leaves may be sending more already.
                    connection.hears = if client_stays { Hears::Refused } else { Hears::Nothing };
                }
                step
            }
        }
    }

    /// The laps up to now of the request at the front of the buffer: it was received, and may have waited for its turn
    /// since it was first seen.
    fn laps_of_next(&self, line: &Line) -> Laps {
        let now_ns = self.shared.clock.elapsed_ns();
        let mut laps = line.laps;
        if laps.has_begun() {
            laps.lap(Stage::Queue, now_ns);
        } else {
            laps = Laps::begin(line.came_ns);
            laps.lap(Stage::Recv, now_ns);
        }
        laps
    }

    /// The rest of a request, which will have at most `needed` bytes, must come within `head_ms` of its first bytes. It
    /// is refused if there is no room for it.
    fn partial(&self, connection: &mut Connection, needed: usize) -> Step {
        if !connection.input.hold_more(needed, 0, self.shared.held.of(connection.door, connection.peer)) {
            let status = Reject::Busy.wire().status;
            return answer_bytes(self, connection, |out| {
                write_refusal(out, Reject::Busy, status, respond::Connection::Close);
            });
        }
        // How long a client takes to send counts for no stage.
        connection.line.laps = Laps::default();
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
        pass: Pass,
    ) -> Step {
        let head = &request.head;
        if door == Door::Admin {
            return if pass == Pass::Cancels { Step::Later } else { self.admin(client, line, request) };
        }
        let query = Query::new(head.query);
        let route = http::route(head.method, head.host, head.path, query, self.prefixes);
        let is_trading = route.as_ref().is_ok_and(|route| route.class() == Class::Trading);
        let step = self.dispatch_public(client, line, request, pass, route);
        if matches!(step, Step::Took | Step::TookMine | Step::Upgraded(_)) {
            let tally = self.tally();
            let taken = if is_trading { &tally.trading } else { &tally.reading };
            taken.add_one();
        }
        step
    }

    /// A request of the public listener, with what it asks for.
    fn dispatch_public(
        &mut self,
        client: Client,
        line: &mut Line,
        request: &Request<'_>,
        pass: Pass,
        route: Result<Route<'_>, NoRoute>,
    ) -> Step {
        let head = &request.head;
        let connection = connection_word(head.keep_alive);
        let route = match route {
            Ok(route) => route,
            Err(reason) if head.method == Method::Options && line.page.is_some() => {
                return self.preflight(line, request, reason);
            }
            Err(reason) => {
                return self.answer_nothing(line, request, |out, extras| {
                    respond::no_route(out, reason, extras);
                });
            }
        };
        if pass == Pass::Cancels && !is_cancel(route.endpoint) {
            line.signs = trading::needs_signature(route.endpoint);
            return Step::Later;
        }
        match route.class() {
            Class::Trading => {}
            Class::Stream => return self.upgrade(line, request, route.endpoint),
            _ => return self.read(client, line, request, route.endpoint),
        }
        // A server that leaves keeps its makers' quotes, so it promises nothing any more.
        let is_promised =
            head.cancel_on_disconnect == Some("true") && trading::needs_signature(route.endpoint);
        if !self.has_recovered() || (is_promised && self.shared.phase() >= Phase::Leaving) {
            refuse_unready(line, Reject::Recovering.wire().status, connection);
            return Step::Took;
        }
        let Some(trade) = self.trade.as_mut() else {
            return if line.is_idle() { Step::Move(self.next_ingress()) } else { Step::Blocked };
        };
        // An order signed with a key that the client has revoked before it is not taken.
        if line.key_acts_open() || trade.is_behind_its_last(line) {
            return Step::Blocked;
        }
        if pass != Pass::Signing && trading::needs_signature(route.endpoint) {
            let body_bytes = request.body.len() as u64;
            if 0 < self.connections.signing() || !trade.may_sign() {
                line.signs = true;
                return Step::Queue(body_bytes);
            }
            self.connections.sign_at_once(line.toll.address(), body_bytes);
        }
        trade.begin(client, line, &route, request, self.now, &mut self.mesh)
    }

    /// The ingress loop that is in turn for a connection.
    fn next_ingress(&mut self) -> usize {
        let ingress = self.shared.plan.topology.ingress_loops();
        let to = ingress.start + self.next_ingress;
        self.next_ingress = (self.next_ingress + 1) % ingress.len();
        to
    }

    /// Sends a read, or an act on keys, to the reader's loop.
    fn read(&mut self, client: Client, line: &mut Line, request: &Request<'_>, endpoint: Endpoint) -> Step {
        if line.writes_open() {
            return Step::Blocked;
        }
        let connection = connection_word(request.head.keep_alive);
        if !self.has_recovered() || (endpoint == Endpoint::Ready && !self.is_ready()) {
            refuse_unready(line, 503, connection);
            return Step::Took;
        }
        let to = self.shared.plan.topology.reader_loop();
        // The reader answers what it has before it gets more.
        let has_room = self.follows.reading().map_or_else(|| self.mesh.may_post(to), Reading::has_room);
        let address = line.toll.address();
        if !has_room || !self.reads.has_room(address) {
            return Step::Later;
        }
        if line.toll.pay(&self.shared.limits, endpoint, request.body.len(), self.moment).is_err() {
            return refuse_or_hold(line, connection);
        }
        self.reads.begin(address);
        let number =
            if reading::changes_state(endpoint) { line.open_key_act() } else { line.open(Intent::Read) };
        line.timed(number, Timed::Read { came_ns: line.came_ns });
        let job = Box::new(ReadJob {
            origin: self.mesh.no(),
            client,
            number,
            bytes: request.bytes.to_vec(),
            tag: self.shared.told(),
            deadline_ms: self.elapsed_ms + READ_WAIT_MS,
            keep_alive: request.head.keep_alive,
            // The buffer of the request's place comes back with the answer in it.
            answer: std::mem::take(line.answer(number).expect("just opened")),
            at: Position(0),
            toll: line.toll,
        });
        if let Some(reading) = self.follows.reading_mut() {
            reading.begin(job);
            return Step::Took;
        }
        self.mesh.post(to, Letter::Read(job)).expect("may_post was asked first");
        Step::Took
    }

    /// Begins a request of the operator's, once what came before it on its connection is done: it is judged by what that
    /// left.
    fn admin(&mut self, client: Client, line: &mut Line, request: &Request<'_>) -> Step {
        if line.writes_open() {
            return Step::Blocked;
        }
        let number = line.open(Intent::Write);
        let mut answer = std::mem::take(line.answer(number).expect("just opened"));
        let done = admin::begin(self, client, number, request, &mut answer);
        *line.answer(number).expect("just opened") = answer;
        if let admin::Done::Answered(at) = done {
            line.ready(number, at);
        }
        Step::Took
    }

    /// Answers a browser that asks what a page may send. It costs what the request would that the page wants to send,
    /// so that one with no reads left can still cancel; without a route, what is asked for nothing costs.
    fn preflight(&self, line: &mut Line, request: &Request<'_>, reason: NoRoute) -> Step {
        let head = &request.head;
        let connection = connection_word(head.keep_alive);
        let allowed = match reason {
            NoRoute::WrongMethod(allowed) => allowed,
            NoRoute::NotFound => Allowed::default(),
        };
        let query = Query::new(head.query);
        let wanted = head
            .wanted_method
            .and_then(|wanted| http::route(wanted, head.host, head.path, query, self.prefixes).ok());
        let Some(wanted) = wanted else {
            return self.answer_nothing(line, request, |out, extras| {
                respond::preflight(out, allowed, extras);
            });
        };
        if line.toll.pay(&self.shared.limits, wanted.endpoint, request.body.len(), self.moment).is_err() {
            return refuse_or_hold(line, connection);
        }
        let extras = Extras { connection, rate_limit: line.toll.head(), ..Extras::default() };
        answer_now(line, |out| respond::preflight(out, allowed, &extras));
        Step::Took
    }

    /// Answers a request for nothing there is. It costs like any plain request.
    fn answer_nothing(
        &self,
        line: &mut Line,
        request: &Request<'_>,
        write: impl FnOnce(&mut Vec<u8>, &Extras<'_>),
    ) -> Step {
        let connection = connection_word(request.head.keep_alive);
        if line.toll.pay_for_nothing(&self.shared.limits, request.body.len(), self.moment).is_err() {
            return refuse_or_hold(line, connection);
        }
        let extras = Extras { connection, rate_limit: line.toll.head(), ..Extras::default() };
        answer_now(line, |out| write(out, &extras));
        Step::Took
    }

    /// A request to become a stream; only the feed's loop has streams.
    fn upgrade(&mut self, line: &mut Line, request: &Request<'_>, endpoint: Endpoint) -> Step {
        let key = request.head.websocket_key;
        let Some(key) = key.filter(|key| websocket::is_key(key)) else {
            let lacks = request.head.no_upgrade.unwrap_or_else(|| NoUpgrade::key(key));
            return self.answer_nothing(line, request, |out, extras| {
                respond::upgrade_required(out, &lacks, extras);
            });
        };
        let connection = connection_word(request.head.keep_alive);
        if !self.has_recovered() {
            refuse_unready(line, 503, connection);
            return Step::Took;
        }
        if !line.is_idle() {
            return Step::Blocked;
        }
        let feed = self.shared.plan.topology.feed_loop();
        if self.mesh.no() != feed {
            return Step::Move(feed);
        }
        if line.toll.pay(&self.shared.limits, endpoint, request.body.len(), self.moment).is_err() {
            return refuse_or_hold(line, connection);
        }
        respond::switching_protocols(line.output(), &websocket::accept_key(key));
        Step::Upgraded(if endpoint == Endpoint::UserStream { Channel::User } else { Channel::Market })
    }

    /// Moves a connection to another loop, which has room for it.
    fn send_away(&mut self, slot: u32, mut connection: Box<Connection>, to: usize) {
        let carried = connection.carried();
        let client = connection.vacate().expect("taken connections have a client");
        self.watch.remove(&client);
        connection.count_held(&self.shared.held);
        let letter = Letter::Moved(Box::new(MovedClient { client, peer: connection.peer, carried }));
        self.connections.free(slot, connection);
        self.mesh.post_one_way(to, letter).expect("may_post was asked first");
    }
}

const fn is_cancel(endpoint: Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::CancelOrder | Endpoint::CancelOrders | Endpoint::CancelAll | Endpoint::CancelMarketOrders
    )
}

fn say_continue(connection: &mut Connection, expected: bool) {
    if expected && !connection.continued && connection.line.open_count() == 0 {
        connection.continued = true;
        connection.line.output().extend_from_slice(respond::CONTINUE);
    }
}
