//! Time passes: deadlines, sleep, the end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::CoreLoop;
use super::acts;
use super::tables;
use crate::domain::Position;
use crate::journal::Durability;
use crate::registrar::Registrar;
use crate::server::connections::List;
use crate::server::connections::house::SAY_EVERY_MS;
use crate::server::machine::disk::Shortage;
use crate::server::plan::topology::{SPIN_TURNS, Wait};
use crate::server::process::signals::Ending;
use crate::server::reading::Reading;
use crate::server::reading::followed::Followed;
use crate::server::threads::marks::Marks;
use crate::server::threads::shared::Phase;
use crate::server::threads::tally::HANG_NS;
use crate::server::trading::Trade;
use crate::shard::Shard;

/// Connections whose deadlines are looked at in one turn.
const SWEEP_SLOTS_PER_TURN: usize = 64;
/// How long a loop sleeps at most while a read waits for frames.
const READ_NAP: Duration = Duration::from_millis(20);
/// The longest sleep while an import waits for room in the journal, which rings only for acknowledgements.
const ROOM_NAP: Duration = Duration::from_millis(1);

/// Step 7: deadlines. Step 8: draining and rest.
impl CoreLoop {
    /// Checks the deadlines of some connections; true if a client was let go, or others are left for the next turn.
    pub(super) fn check_times(&mut self) -> bool {
        if self.elapsed_ms < self.sweep_idle_until_ms {
            return false;
        }
        let count = self.connections.count();
        for _ in 0..SWEEP_SLOTS_PER_TURN {
            let Some(slot) = self.connections.next_by_hand() else {
                let round_ms = u64::try_from(self.shared.plan.nap().as_millis()).unwrap_or(u64::MAX);
                self.sweep_idle_until_ms = self.elapsed_ms + round_ms;
                self.open_doors();
                self.look_at_disk();
                self.look_at_tables();
                self.look_at_clock();
                self.look_at_log();
                self.look_at_write();
                return self.connections.count() != count;
            };
            let Some(connection) = self.connections.look(slot) else {
                continue;
            };
            if connection.stream.is_some() {
                self.check_stream(slot);
                continue;
            }
            let silent = connection.read_by_ms <= self.heard.until_ms() && !connection.is_kept_waiting();
            let unsent = connection.send_by_ms <= self.heard.until_ms();
            if (silent || unsent)
                && let Some(connection) = self.connections.take(slot)
            {
                self.leave(slot, connection);
            }
        }
        true
    }

    /// Checks the free space of the disks, once the registrar can be told; only on the reader's loop.
    fn look_at_disk(&mut self) {
        if self.marks.is_none() || self.shared.phase() != Phase::Serving {
            return;
        }
        let Some(short) = self.disk.as_mut().and_then(|disk| disk.look(self.elapsed_ms)) else {
            return;
        };
        let (free_bytes, folder, min) =
            (short.free_bytes, short.folder.display(), self.shared.plan.disk_free_min);
        match short.shortage {
            Shortage::CancelsOnly => {
                tracing::error!(
                    "journal.disk_free_min: {free_bytes} bytes are free on the disk of {folder}, needed are {min}; \
                     at most cancels are taken from here on; make room, then set the mode to open"
                );
                acts::cancels_only(self);
            }
            Shortage::Stop => {
                tracing::error!(
                    "journal.disk_free_min: {free_bytes} bytes are free on the disk of {folder}, less than half of \
                     {min}; stopping"
                );
                self.shared.ending.send(Ending::DiskFull);
            }
        }
    }

    /// Warns of tables that are nearly full; only on the reader's loop.
    fn look_at_tables(&mut self) {
        if self.disk.is_none() || self.elapsed_ms < self.tables_silent_until_ms {
            return;
        }
        for said in tables::complaints(self) {
            tracing::warn!("{said}");
            self.tables_silent_until_ms = self.elapsed_ms + SAY_EVERY_MS;
        }
    }

    /// Makes answers wait for the disk once the log's file is gone, if they do not anyway; only on the reader's loop.
    fn look_at_log(&self) {
        let is_committed = self.shared.plan.durability == Durability::Committed;
        if !is_committed || self.disk.is_none() || self.shared.phase() != Phase::Serving {
            return;
        }
        if self.marks.as_ref().is_some_and(|marks| marks.log().look_for_file()) {
            tracing::error!(
                "journal: somebody removed or renamed the log's file, so a crash would lose what only the log has; \
                 answers wait for the disk from here on, as with journal.durability durable; stop and start again to \
                 end that"
            );
        }
    }

    /// Says when the disk hangs and when that is over; only on the reader's loop.
    fn look_at_write(&mut self) {
        let hangs = self.disk.is_some() && self.shared.disk_hangs();
        if hangs == std::mem::replace(&mut self.disk_hangs, hangs) {
            return;
        }
        if hangs {
            tracing::error!(
                "journal: the disk has not finished a write for {} s; what must be durable waits",
                HANG_NS / 1_000_000_000
            );
        } else {
            tracing::warn!("journal: the disk writes again");
        }
    }

    /// Warns when the machine's clock was set; only on the reader's loop.
    fn look_at_clock(&mut self) {
        let now = self.shared.clock.now();
        let steps = self.clock_steps.as_mut();
        match steps.and_then(|steps| steps.step(now, self.shared.clock.elapsed_ms())) {
            None => {}
            Some(ms) if ms < 0 => tracing::warn!(
                "clock: this machine's was set back by {} ms; expirations, deadlines and logins follow it, frames keep \
                 the time of the newest until it has caught up",
                -ms
            ),
            Some(ms) => tracing::warn!(
                "clock: this machine's was set ahead by {ms} ms; expirations, deadlines and logins follow it, and \
                 frames will not go back if that was wrong"
            ),
        }
    }

    /// Sleeps until there is work, or lets another thread run, unless the loop is to spin; true if it did.
    pub(super) fn idle(&mut self, phase: Phase) -> bool {
        match self.wait {
            Wait::Spin => {
                std::hint::spin_loop();
                return false;
            }
            Wait::SpinThenPark if self.idle_turns < SPIN_TURNS => {
                self.idle_turns += 1;
                std::hint::spin_loop();
                return false;
            }
            Wait::SpinThenPark | Wait::Park => {}
        }
        let no = self.mesh.no();
        let awaited = self.awaited();
        // A commit that is under way on another core is over in no time; sleeping would miss it.
        let committed = |marks: &Marks| marks.durability() == Durability::Committed;
        if 0 < self.connections.noted(List::Waiting) && self.marks.as_ref().is_some_and(committed) {
            std::thread::yield_now();
            return true;
        }
        self.shared.await_position(no, awaited);
        self.shared.wakers[no].before_sleep();
        let mark = self.marks.as_mut().map_or(Position(0), Marks::advance);
        let is_marked = awaited.is_some_and(|position| position <= mark);
        if !self.work_came(phase) && !is_marked {
            self.wait_for_events(self.nap_ms());
        }
        self.shared.wakers[no].after_sleep(false);
        true
    }

    /// Whether something came, or the phase changed, after this turn looked and before the loop could be rung.
    fn work_came(&self, phase: Phase) -> bool {
        let looked = self.trips_looked;
        let has_tripped = |trade: &Trade| trade.registrar.is_some() && trade.registry.trips() != looked;
        self.mesh.anything_came()
            || !self.shared.roles[self.mesh.no()].is_empty()
            || self.shared.phase() != phase
            || self.follows.has_work()
            || self.trade.as_ref().is_some_and(has_tripped)
            || self.shard().is_some_and(Shard::has_fallen_cells)
    }

    /// How long the loop sleeps at most if nobody rings.
    fn nap_ms(&self) -> u64 {
        let nap = if self.desk.additions.waits_for_room() {
            ROOM_NAP
        } else if self.follows.reading().is_some_and(Reading::waits) {
            READ_NAP
        } else {
            self.shared.plan.nap()
        };
        let nap_ms = u64::try_from(nap.as_millis()).unwrap_or(u64::MAX);
        // Those who follow the log are still to be rung for the last frames.
        let owes_bell = self.trade.as_ref().is_some_and(|trade| trade.last_claimed() != self.claimed);
        let expiry = self.shard().and_then(Shard::next_expiry);
        let registrar = self.trade.as_ref().and_then(|trade| trade.registrar.as_ref());
        let switch_ms = registrar.and_then(Registrar::no_switch_before_ms);
        let steady_ms = self.shared.clock.steady_ms(self.elapsed_ms);
        // If the clock is moved, an order or a held request may be due sooner; it is found within a nap.
        let due = [
            owes_bell.then_some(1),
            expiry.map(|at| at.0.saturating_sub(self.now.0)),
            self.held_until.map(|until| self.moment.ms_until(until)),
            switch_ms.map(|at_ms| at_ms.saturating_sub(steady_ms)),
        ];
        due.into_iter().flatten().fold(nap_ms, |nap_ms, due_ms| nap_ms.min(due_ms.max(1)))
    }

    fn shard(&self) -> Option<&Shard> {
        self.trade.as_ref()?.shard.as_ref()
    }

    /// The lowest position that gives this loop work when it is acknowledged.
    fn awaited(&self) -> Option<Position> {
        let answers = self.connections.all_in(List::Waiting);
        let answers = answers.filter_map(|connection| connection.line.waits_for_mark()).min();
        let follows = self.follows.followed().map(Followed::awaits);
        match (answers, follows) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Lets nobody in any more.
    pub(super) fn close_doors(&mut self) {
        if let Some(doors) = self.doors.take() {
            self.watch.remove(&doors.http);
            self.watch.remove(&doors.admin);
        }
    }

    pub(super) fn drain(&mut self) {
        self.close_doors();
        for slot in self.connections.occupied_slots() {
            self.end_stream(slot);
            if let Some(mut connection) = self.connections.take(slot) {
                self.hear_last(&mut connection);
                if connection.line.is_idle() && Self::may_go(&mut connection, self.elapsed_ms) {
                    self.leave(slot, connection);
                } else {
                    self.connections.put(slot, connection);
                }
            }
        }
        let is_cancelling = self.trade.as_ref().is_some_and(Trade::is_cancelling);
        if !self.drained && self.connections.count() == 0 && self.mesh.in_flight() == 0 && !is_cancelling {
            self.drained = true;
            self.shared.drained.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn close_all(&mut self) {
        self.doors = None;
        for slot in self.connections.occupied_slots() {
            if let Some(connection) = self.connections.take(slot) {
                self.leave(slot, connection);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::server::connections::connection::{Connection, Intent, KEPT_BYTES_MAX};
    use crate::server::plan::{Start, plan_on};
    use crate::server::process::clock::Clock;
    use crate::server::process::start::{Running, start_but};
    use crate::server::tests::options;
    use crate::server::threads::thread::Turns;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// A server whose only loop the caller turns.
    #[allow(clippy::vec_box, reason = "a loop is too large to be moved about")]
    pub(in crate::server::core_loop) fn one_loop(data: &tempfile::TempDir) -> (Running, Vec<Box<CoreLoop>>) {
        let dev = Start { dev: true, ..Start::default() };
        let mut plan = plan_on(&options(data, 1), dev, &[0]).expect("a plan");
        // A turn with nothing to do must come back.
        plan.topology.loops[0].wait = Wait::Spin;
        start_but(1, plan, Clock::real()).expect("starts")
    }

    #[test]
    fn nobody_is_taken_for_silent_whose_request_has_come() {
        // Several times as many as epoll reports at once.
        const CLIENTS: u32 = 200;
        let data = tempfile::tempdir().expect("a directory");
        let (running, mut cores) = one_loop(&data);
        let core = &mut cores[0];
        let connect = |_| TcpStream::connect(running.http()).expect("connects");
        let mut clients: Vec<TcpStream> = (0..CLIENTS).map(connect).collect();
        while core.connections.count() < CLIENTS {
            assert!(core.turn());
        }
        // The process stands still. All ask, those first whose deadlines are looked at last; then the time of all is over.
        for client in clients.iter_mut().rev() {
            client.write_all(b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n").expect("writes");
        }
        let by_ms = core.elapsed_ms + 1;
        for slot in core.connections.occupied_slots() {
            let mut connection = core.connections.take(slot).expect("it is occupied");
            connection.read_by_ms = by_ms;
            core.connections.put(slot, connection);
        }
        core.sweep_idle_until_ms = 0;
        while core.shared.clock.elapsed_ms() < by_ms {
            std::hint::spin_loop();
        }
        while core.turn() && !core.rests() {}
        for client in &mut clients {
            let mut answer = [0; 12];
            client.read_exact(&mut answer).expect("it is answered");
            assert_eq!(&answer, b"HTTP/1.1 200");
        }
        assert_eq!(core.connections.count(), CLIENTS);
    }

    #[test]
    fn a_server_that_leaves_answers_what_has_come_and_cuts_off_nobody_who_sends_more() {
        const ASKS: &str = "GET /time HTTP/1.1\r\nHost: a\r\n\r\n";
        const CLOSES: &str = "GET /time HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        const PROMISE: &str = "X-Outcry-Cancel-On-Disconnect: true\r\n";
        let order = |method: &str, header: &str| {
            format!("{method} /order HTTP/1.1\r\nHost: a\r\n{header}Content-Length: 2\r\n\r\n{{}}")
        };
        let whole_buffer = {
            let head = |body: usize| {
                format!("POST /midpoints HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n")
            };
            let body = KEPT_BYTES_MAX - head(KEPT_BYTES_MAX).len();
            format!("{}[{:>2$}", head(body), ']', body - 1)
        };
        // What a client sends at once, and how it is answered before the end: what closes is marked.
        for (sent, answers) in [
            (ASKS.to_owned(), "200 close"),
            (ASKS.repeat(3), "200, 200, 200 close"),
            (format!("{CLOSES}{ASKS}"), "200 close"),
            // What comes behind one that fills the buffer has not been received when that is answered.
            (format!("{whole_buffer}{ASKS}"), "200 close"),
            // Nobody is promised any more that orders leave with the connection, so none is taken on that promise; and
            // what cancels, or promises nothing, is judged as ever.
            (order("POST", PROMISE), "425 close"),
            (order("POST", ""), "401 close"),
            (order("DELETE", PROMISE), "401 close"),
            // What is not whole when no more is taken is refused.
            (format!("{ASKS}{}", &ASKS[..20]), "200, 503 close"),
        ] {
            let data = tempfile::tempdir().expect("a directory");
            let (running, mut cores) = one_loop(&data);
            let core = &mut cores[0];
            let mut client = TcpStream::connect(running.http()).expect("connects");
            while core.connections.count() < 1 {
                assert!(core.turn());
            }
            core.shared.enter(Phase::Leaving);
            client.write_all(sent.as_bytes()).expect("writes");
            while core.turn() && !core.rests() {}
            core.shared.enter(Phase::Draining);
            while core.turn() && !core.rests() {}
            let mut told = String::new();
            client.read_to_string(&mut told).unwrap_or_else(|fault| panic!("{sent:?}: {fault}"));
            let told: Vec<_> = told
                .split("HTTP/1.1 ")
                .skip(1)
                .map(|answer| {
                    let closes = answer.contains("\r\nConnection: close\r\n");
                    format!("{}{}", &answer[..3], if closes { " close" } else { "" })
                })
                .collect();
            assert_eq!(told.join(", "), answers, "{sent:?}");
        }
    }

    /// What makes a connection a stream.
    pub(in crate::server::core_loop) fn upgrade(path: &str) -> Vec<u8> {
        let asks = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        asks.into_bytes()
    }

    /// Looks at a loop's only connection.
    fn with_client<T>(core: &mut CoreLoop, look: impl FnOnce(&mut Connection) -> T) -> T {
        let [slot] = core.connections.occupied_slots()[..] else { panic!("one client") };
        let mut connection = core.connections.take(slot).expect("it is occupied");
        let seen = look(&mut connection);
        core.connections.put(slot, connection);
        seen
    }

    #[test]
    fn who_waits_for_an_answer_is_not_taken_for_silent() {
        for waits in [true, false] {
            let data = tempfile::tempdir().expect("a directory");
            let (running, mut cores) = one_loop(&data);
            let core = &mut cores[0];
            let _client = TcpStream::connect(running.http()).expect("connects");
            while core.connections.count() == 0 {
                assert!(core.turn());
            }
            let now_ms = core.elapsed_ms;
            with_client(core, |client| {
                if waits {
                    client.line.open(Intent::Read);
                }
                client.read_by_ms = now_ms;
            });
            core.sweep_idle_until_ms = 0;
            while core.turn() && !core.rests() {}
            assert_eq!(core.connections.count(), u32::from(waits));
        }
    }

    #[test]
    fn a_request_that_comes_byte_by_byte_has_the_time_of_one_that_stops() {
        let data = tempfile::tempdir().expect("a directory");
        let (running, mut cores) = one_loop(&data);
        let core = &mut cores[0];
        let mut client = TcpStream::connect(running.http()).expect("connects");
        while core.connections.count() == 0 {
            assert!(core.turn());
        }
        let (mut said, mut ends) = (0, Vec::new());
        for piece in ["GET /time", "?", "a", "=", "b"] {
            client.write_all(piece.as_bytes()).expect("writes");
            said += piece.len();
            let before_ms = core.elapsed_ms;
            while core.elapsed_ms == before_ms
                || with_client(core, |client| client.input.unread().len() < said || !client.partial)
            {
                assert!(core.turn());
            }
            ends.push(with_client(core, |client| client.read_by_ms));
        }
        assert_eq!(ends, [ends[0]; 5]);
        assert!(ends[0] < core.elapsed_ms + core.shared.plan.limits.head_ms, "{ends:?}");
    }

    #[test]
    fn a_client_that_reads_nothing_of_what_it_is_sent_is_let_go_in_its_time() {
        // An answer of a hundred kilobytes or more, and a ping as long as one may be.
        let asks = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        let ping = [&b"\x89\xfd\0\0\0\0"[..], &[b'x'; 125]].concat();
        for (first, then) in [(Vec::new(), asks), (upgrade("/ws/market"), ping)] {
            let data = tempfile::tempdir().expect("a directory");
            let (running, mut cores) = one_loop(&data);
            let core = &mut cores[0];
            let mut client = TcpStream::connect(running.http()).expect("connects");
            client.write_all(&first).expect("writes");
            client.set_nonblocking(true).expect("a setting");
            while core.connections.count() == 0 {
                assert!(core.turn());
            }
            let is_stream = !first.is_empty();
            let (all, mut said) = (then.repeat(1 << 10), 0);
            while with_client(core, |client| client.send_by_ms == u64::MAX) {
                said += client.write(&all[said % then.len()..]).unwrap_or(0);
                while core.turn() && !core.rests() {}
            }
            let now_ms = core.elapsed_ms;
            let left_ms = with_client(core, |client| {
                assert_eq!(client.stream.is_some(), is_stream);
                std::mem::replace(&mut client.send_by_ms, now_ms).saturating_sub(now_ms)
            });
            assert!(left_ms <= super::super::sockets::UNSENT_MS, "a stream: {is_stream}, {left_ms} ms");
            core.sweep_idle_until_ms = 0;
            while core.turn() && !core.rests() {}
            assert_eq!(core.connections.count(), 0, "a stream: {is_stream}");
        }
    }
}
