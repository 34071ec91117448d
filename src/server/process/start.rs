//! Starting and stopping the process.
//!
//! 1. What cannot be had is refused, and the listeners are opened: a second server is refused here.
//! 2. The loops start without roles: trading is answered 425 from the first moment.
//! 3. The journal is opened and replayed, the roles are restored from it and sent to their loops. Until the journal goes
//!    on, a signal ends the process at once.
//! 4. `Serving` begins, and then the bound ports are written (`dev`: once it is seeded): whoever has read them is served.
//! 5. At the end: no new clients, open requests are answered, loops end, the log is synced and
//!    closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::ports_file;
use super::roles;
use super::signals::{self, Ending, Endings};
use crate::journal;
use crate::server::connections::descriptors;
use crate::server::connections::socket;
use crate::server::core_loop::{CoreLoop, Doors};
use crate::server::machine::disk::{DiskWatch, Shortage};
use crate::server::operator::probes;
use crate::server::plan::Plan;
use crate::server::threads::mesh;
use crate::server::threads::shared::{Phase, Shared};
use crate::server::threads::thread::{self, Thread};

/// A server that runs.
pub(crate) struct Running {
    pub(in crate::server) shared: Arc<Shared>,
    endings: Endings,
    threads: Vec<Thread>,
    roles: roles::Held,
    http: SocketAddr,
    admin: SocketAddr,
}

/// How a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything was answered, the log is closed.
    Clean,
    /// Something broke, or the disk is full: nobody asked. Unless the log was closed, clients do not know what became
    /// of requests without an answer.
    Broken,
}

/// Starts a server; returns when it serves.
pub(crate) fn start(plan: Plan, clock: Clock) -> Result<Running, String> {
    let (mut running, _) = begin(0, plan, clock)?;
    let signals = |fault: std::io::Error| format!("signals: {fault}");
    // Nobody was told anything before the journal goes on, and its log is empty: an end at once loses nothing.
    let until_it_goes_on = signals::end_at_once().map_err(signals)?;
    running.recover(|shared| {
        shared.ending.listen_to_signals().map_err(signals)?;
        until_it_goes_on.over();
        Ok(())
    })?;
    running.tell_ports()?;
    Ok(running)
}

/// Starts a server without threads for the first `by_hand` loops, which the caller turns.
#[allow(clippy::vec_box, reason = "a loop is too large to be moved about")]
pub(crate) fn start_but(
    by_hand: usize,
    plan: Plan,
    clock: Clock,
) -> Result<(Running, Vec<Box<CoreLoop>>), String> {
    let (mut running, left) = begin(by_hand, plan, clock)?;
    running.recover(|_| Ok(()))?;
    running.tell_ports()?;
    Ok((running, left))
}

/// Opens the doors and starts the loops, which have no roles before [`Running::recover`].
#[allow(clippy::vec_box, reason = "a loop is too large to be moved about")]
pub(crate) fn begin(
    by_hand: usize,
    mut plan: Plan,
    clock: Clock,
) -> Result<(Running, Vec<Box<CoreLoop>>), String> {
    refuse_early(&plan)?;
    let doors =
        Doors::new(socket::listen("listen.http", plan.http)?, socket::listen("listen.admin", plan.admin)?);
    // One that runs on this directory has the file for itself, and this start will be refused.
    if let Some(path) = &plan.ports_file
        && !journal::is_in_use(&plan.data_dir).unwrap_or(false)
    {
        ports_file::remove(path)?;
    }
    if let Err(short) = descriptors::make_room(plan.limits.connections_max) {
        tracing::warn!("{}", short.said);
        plan.limits.connections_max = short.connections_max;
    }
    let address = |listener: &std::net::TcpListener| listener.local_addr().map_err(|fault| fault.to_string());
    let (http, admin) = (address(&doors.http)?, address(&doors.admin)?);
    let (sender, endings) = signals::endings().map_err(|fault| format!("signals: {fault}"))?;
    let shared = Shared::new(plan, clock, sender).map_err(|fault| format!("wakers: {fault}"))?;

    let (threads, left) = start_loops(&shared, doors, by_hand)?;
    Ok((Running { shared, endings, threads, roles: roles::Held::default(), http, admin }, left))
}

/// Refuses, before anything is made, what cannot be had: a table that is too large would end the process with its log's
/// file left, and a log that is too large would first take all the room there is.
pub(crate) fn refuse_early(plan: &Plan) -> Result<(), String> {
    if let Some(fault) = probes::refusal(plan) {
        return Err(fault);
    }
    plan.ports_file.as_deref().map_or(Ok(()), |path| ports_file::refuse(path, &plan.data_dir))
}

/// Refuses a disk with so little room that a running exchange would soon stop: whoever starts it again and again would
/// have it take orders for a moment each time.
pub(crate) fn refuse_full_disk(plan: &Plan) -> Result<(), String> {
    // The folder of a new exchange is made on the disk of the one above it.
    let there = plan.data_dir.ancestors().find(|folder| folder.exists()).unwrap_or(&plan.data_dir);
    match DiskWatch::new(there, plan.disk_free_min).look(0) {
        Some(short) if short.shortage == Shortage::Stop => Err(format!(
            "journal.disk_free_min: {} bytes are free on the disk of {}; needed for a start: {}, half of it; make room",
            short.free_bytes,
            short.folder.display(),
            plan.disk_free_min / 2
        )),
        _ => Ok(()),
    }
}

#[allow(clippy::vec_box, reason = "a loop is too large to be moved about")]
fn start_loops(
    shared: &Arc<Shared>,
    doors: Doors,
    by_hand: usize,
) -> Result<(Vec<Thread>, Vec<Box<CoreLoop>>), String> {
    let topology = &shared.plan.topology;
    let mut doors = Some(doors);
    let mut threads = Vec::new();
    let mut left = Vec::new();
    for (mesh, plan) in mesh::mesh(shared).into_iter().zip(&topology.loops) {
        let doors = if plan.reader { doors.take() } else { None };
        let by_hand = mesh.no() < by_hand;
        let core = Box::new(CoreLoop::new(shared, mesh, doors)?);
        if by_hand {
            left.push(core);
        } else {
            threads.push(thread::start(&plan.name, plan.cpu, core)?);
        }
    }
    Ok((threads, left))
}

impl Running {
    /// Replays the journal, gives every loop its roles and begins to serve. `goes_on` is called when the journal is
    /// replayed and about to go on.
    pub(crate) fn recover(
        &mut self,
        goes_on: impl FnOnce(&Shared) -> Result<(), String>,
    ) -> Result<(), String> {
        match roles::restore(&self.shared, goes_on) {
            Ok(held) => self.roles = held,
            Err(fault) => {
                self.end_loops();
                return Err(fault);
            }
        }
        self.shared.enter(Phase::Serving);
        Ok(())
    }

    /// Writes the ports file, if one is wanted, unless it waits for the seed.
    fn tell_ports(&mut self) -> Result<(), String> {
        if self.shared.plan.waits_for_seed {
            return Ok(());
        }
        let written = self.write_ports();
        if written.is_err() {
            self.stop();
        }
        written
    }

    /// Writes the ports file, if one is wanted. Whoever has read it is served.
    pub(crate) fn write_ports(&self) -> Result<(), String> {
        let path = self.shared.plan.ports_file.as_deref();
        path.map_or(Ok(()), |path| ports_file::write(path, self.http.port(), self.admin.port()))
    }

    /// What the start found in the journal, in one sentence.
    pub(crate) fn recovered(&self) -> &str {
        self.roles.recovered()
    }

    /// The public listener's address.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http
    }

    /// The operator's listener's address.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Waits until the server should end, and ends it.
    pub(crate) fn wait(mut self) -> End {
        let ending = self.endings.wait();
        tracing::info!("ending: {ending:?}");
        match ending {
            Ending::Asked => self.stop(),
            Ending::DiskFull => {
                self.stop();
                End::Broken
            }
            Ending::JournalFault | Ending::LoopDied => {
                // Answers that wait are not sent: their outcome is unknown until the restart.
                self.end_loops();
                self.roles.abandon();
                End::Broken
            }
        }
    }

    /// Takes leave of the clients, answers what is open, ends the loops, syncs and closes the log. If a loop dies
    /// meanwhile, the log is left as it is.
    pub(crate) fn stop(&mut self) -> End {
        let limits = &self.shared.plan.limits;
        let [left_by, by] = [limits.leave_ms, limits.leave_ms + limits.stop_ms]
            .map(|ms| Instant::now() + Duration::from_millis(ms));
        self.shared.enter(Phase::Leaving);
        while 0 < self.shared.house.inside() && Instant::now() < left_by {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.shared.enter(Phase::Draining);
        let loops = u32::try_from(self.threads.len()).expect("loops are few");
        while !self.shared.is_drained(loops) && Instant::now() < by {
            std::thread::sleep(Duration::from_millis(2));
        }
        if !self.end_loops() {
            self.roles.abandon();
            return End::Broken;
        }
        match self.roles.close(self.shared.clock.now()) {
            Ok(()) => End::Clean,
            Err(fault) => {
                tracing::error!("journal: {fault}");
                End::Broken
            }
        }
    }

    /// Ends the loops; false if one had died, so that what it had open is unknown until the restart.
    fn end_loops(&mut self) -> bool {
        self.shared.enter(Phase::Stopped);
        let mut all_lived = true;
        for thread in self.threads.drain(..) {
            if let Err(fault) = thread.join() {
                tracing::error!("{fault}");
                all_lived = false;
            }
        }
        self.roles.end_search();
        all_lived
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end_loops();
    }
}

#[cfg(test)]
mod tests {
    mod leave;
    mod streams;

    use super::*;
    use crate::server::operator::journal::verify;
    use crate::server::plan::options::Options;
    use crate::server::plan::topology::Wait;
    use crate::server::plan::{Start, plan_on};
    use crate::server::threads::thread::Turns;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// A server on a data directory of its own, which goes away with it.
    struct Server {
        running: Running,
        _data: tempfile::TempDir,
    }

    impl std::ops::Deref for Server {
        type Target = Running;

        fn deref(&self) -> &Running {
            &self.running
        }
    }

    impl Server {
        fn stop(&mut self) -> End {
            self.running.stop()
        }
    }

    fn options(data: &tempfile::TempDir) -> Options {
        Options {
            listen_http: "127.0.0.1:0".into(),
            listen_admin: "127.0.0.1:0".into(),
            data_dir: data.path().display().to_string(),
            journal_log_path: data.path().join("log").display().to_string(),
            journal_log_bytes: 8 << 20,
            journal_segment_bytes: 4 << 20,
            journal_durability: "committed".into(),
            cpu_policy: "unpinned".into(),
            ..Options::of_dev()
        }
    }

    fn serve(cpus: usize, change: impl Fn(&mut Plan)) -> Server {
        let data = tempfile::tempdir().expect("a directory");
        let cpus: Vec<usize> = (0..cpus).collect();
        let dev = Start { dev: true, ..Start::default() };
        let mut plan = plan_on(&options(&data), dev, &cpus).expect("a plan");
        change(&mut plan);
        Server { running: start(plan, Clock::real()).expect("starts"), _data: data }
    }

    fn ask(address: SocketAddr, bytes: &[u8]) -> String {
        let mut client = TcpStream::connect(address).expect("connects");
        client.write_all(bytes).expect("writes");
        let mut text = String::new();
        client.read_to_string(&mut text).expect("reads to the end");
        text
    }

    #[test]
    fn pipelined_requests_are_answered_in_order_across_loops() {
        for cpus in [1, 2] {
            let mut running = serve(cpus, |_| ());
            let text = ask(
                running.http(),
                b"GET /time HTTP/1.1\r\nHost: a\r\n\r\nPOST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}\
                  GET /time HTTP/1.1\r\nHost: a\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            );
            let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
            assert_eq!(statuses, ["200", "401", "200", "404"], "{text}");
            assert_eq!(running.stop(), End::Clean);
        }
    }

    #[test]
    fn every_way_of_waiting_answers() {
        for wait in [Wait::Spin, Wait::SpinThenPark, Wait::Park] {
            let mut running =
                serve(2, |plan| plan.topology.loops.iter_mut().for_each(|core| core.wait = wait));
            for _ in 0..3 {
                let text = ask(running.http(), b"GET /time HTTP/1.0\r\n\r\n");
                assert!(text.starts_with("HTTP/1.1 200"), "{wait:?}: {text}");
            }
            assert_eq!(running.stop(), End::Clean);
        }
    }

    #[test]
    fn trading_is_too_early_while_the_log_is_replayed() {
        let data = tempfile::tempdir().expect("a directory");
        let dev = Start { dev: true, ..Start::default() };
        let plan = plan_on(&options(&data), dev, &[0, 1]).expect("a plan");
        let (mut running, _) = begin(0, plan, Clock::real()).expect("begins");
        let (address, operator) = (running.http(), running.admin());
        let text = ask(address, b"DELETE /order HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 425") && text.contains("service not ready"), "{text}");
        let text = ask(address, b"GET /book HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 503") && text.contains("Retry-After: 1"), "{text}");
        let text = ask(operator, b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 503"), "{text}");
        running.recover(|_| Ok(())).expect("an empty directory");
        let text = ask(operator, b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn a_client_that_reads_late_gets_every_answer() {
        const REQUESTS: usize = 3_000;
        let mut running = serve(2, |_| ());
        let mut client = TcpStream::connect(running.http()).expect("connects");
        let mut writer = client.try_clone().expect("a clone");
        let sender = std::thread::spawn(move || {
            for _ in 0..REQUESTS {
                writer.write_all(b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n").expect("writes");
            }
            writer.write_all(b"GET /time HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("writes");
        });
        let mut text = String::new();
        client.read_to_string(&mut text).expect("reads to the end");
        sender.join().expect("everything was sent");
        assert_eq!(text.matches("HTTP/1.1 404").count(), REQUESTS);
        assert_eq!(text.matches("HTTP/1.1 200").count(), 1);
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn a_busy_client_is_told_with_an_answer_that_its_connection_closes() {
        const CLIENTS: usize = 8;
        // Not needed: it goes on once all have left.
        let mut running = serve(2, |plan| plan.limits.leave_ms = 600_000);
        let (address, begun) = (running.http(), Arc::new(std::sync::Barrier::new(CLIENTS + 1)));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let begun = Arc::clone(&begun);
                std::thread::spawn(move || {
                    let mut client = TcpStream::connect(address).expect("connects");
                    for asked in 0.. {
                        client.write_all(b"HEAD /time HTTP/1.1\r\nHost: a\r\n\r\n").expect("writes");
                        let mut answer = String::new();
                        while !answer.ends_with("\r\n\r\n") {
                            let mut byte = [0];
                            client.read_exact(&mut byte).expect("no connection closes before its answer");
                            answer.push(char::from(byte[0]));
                        }
                        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                        if answer.contains("Connection: close") {
                            break;
                        }
                        if asked == 0 {
                            begun.wait();
                        }
                    }
                })
            })
            .collect();
        begun.wait();
        assert_eq!(running.stop(), End::Clean);
        for client in clients {
            client.join().expect("it was told");
        }
    }

    #[test]
    fn whatever_has_come_when_a_server_stops_is_answered_or_refused() {
        let mut running = serve(2, |plan| plan.limits.leave_ms = 0);
        let clients: Vec<_> = (0..20)
            .map(|number| {
                let mut client = TcpStream::connect(running.http()).expect("connects");
                // Who has been answered is inside.
                client.write_all(b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n").expect("writes");
                let mut first = [0; 12];
                client.read_exact(&mut first).expect("reads");
                let (asked, request): (usize, &[u8]) = match number % 3 {
                    0 => (2, b"GET /time HTTP/1.1\r\nHost: a\r\n\r\nGET /time HTTP/1.1\r\nHost: a\r\n\r\n"),
                    1 => (1, b"POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"),
                    _ => (1, b"POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{"),
                };
                client.write_all(request).expect("writes");
                (client, asked)
            })
            .collect();
        assert_eq!(running.stop(), End::Clean);
        for (mut client, asked) in clients {
            let mut text = String::new();
            client.read_to_string(&mut text).expect("reads to the end");
            let (_, last) = text.rsplit_once("HTTP/1.1 ").expect("an answer");
            let are_all = text.matches("HTTP/1.1 ").count() == asked;
            assert!(are_all || last.contains("Connection: close"), "{text}");
        }
    }

    #[test]
    fn a_disk_that_gets_full_ends_the_server_in_good_order() {
        let Server { running, _data } = serve(2, |plan| plan.disk_free_min = u64::MAX);
        let (data_dir, log_path) =
            (running.shared.plan.data_dir.clone(), running.shared.plan.log_path.clone());
        assert_eq!(running.wait(), End::Broken);
        let text = verify(&data_dir, log_path.as_deref()).expect("good");
        assert!(text.contains("stopped in good order"), "{text}");
    }

    struct Dies;

    impl Turns for Dies {
        fn turn(&mut self) -> bool {
            panic!("planted: this loop dies");
        }
    }

    #[test]
    fn a_loop_that_dies_while_the_server_stops_is_no_stop_in_good_order() {
        let Server { mut running, _data } = serve(2, |plan| plan.limits.stop_ms = 1);
        running.threads.push(thread::start("outcry-test", None, Box::new(Dies)).expect("starts"));
        assert_eq!(running.stop(), End::Broken);
        assert!(running.shared.plan.log_path.as_ref().is_some_and(|path| path.exists()), "the log is left");
    }

    #[test]
    fn a_request_that_does_not_arrive_whole_in_its_time_is_closed() {
        let mut running = serve(2, |plan| plan.limits.head_ms = 20);
        let text = ask(running.http(), b"GET /time HTT");
        assert_eq!(text, "");
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn an_idle_connection_is_closed_in_its_time() {
        let mut running = serve(2, |plan| plan.limits.idle_ms = 20);
        assert!(ask(running.http(), b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200"));
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn a_client_that_was_let_go_for_its_silence_is_counted_no_more() {
        let mut running = serve(2, |plan| plan.limits.idle_ms = 20);
        ask(running.http(), b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n");
        let deadline = Instant::now() + Duration::from_mins(2);
        while running.shared.tallies.iter().any(|tally| tally.connections.get() != 0) {
            assert!(Instant::now() < deadline, "it is still counted");
            std::thread::yield_now();
        }
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn a_client_above_the_limit_is_not_let_in() {
        let mut running = serve(2, |plan| plan.limits.connections_max = 1);
        let _first = TcpStream::connect(running.http()).expect("connects");
        let mut second = TcpStream::connect(running.http()).expect("the kernel takes it");
        let mut text = String::new();
        let refused = second.read_to_string(&mut text);
        assert!(refused.is_err() || text.is_empty());
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn the_operator_is_let_in_whoever_fills_the_public_house() {
        let mut running = serve(2, |plan| plan.limits.connections_max = 2);
        let _inside = [(); 2].map(|()| TcpStream::connect(running.http()).expect("connects"));
        let mut third = TcpStream::connect(running.http()).expect("the kernel takes it");
        let mut text = String::new();
        assert!(third.read_to_string(&mut text).is_err() || text.is_empty(), "{text}");
        let metrics =
            ask(running.admin(), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        for line in [
            "\noutcry_connections 3\n",
            "\noutcry_connections_refused_total{listener=\"http\"} 1\n",
            "\noutcry_connections_refused_total{listener=\"admin\"} 0\n",
        ] {
            assert!(metrics.contains(line), "{line} is missing from {metrics}");
        }
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn a_second_server_on_the_port_is_refused_by_name() {
        let mut running = serve(2, |_| ());
        let taken = running.http();
        let data = tempfile::tempdir().expect("a directory");
        let options = Options { listen_http: taken.to_string(), ..options(&data) };
        let plan = plan_on(&options, Start { dev: true, ..Start::default() }, &[0, 1]).expect("a plan");
        let fault = start(plan, Clock::real()).err().expect("refused");
        assert!(fault.contains("is taken by another process"), "{fault}");
        assert_eq!(running.stop(), End::Clean);
    }

    #[test]
    fn a_log_that_there_is_no_room_for_is_refused_before_anything_is_made() {
        let data = tempfile::tempdir().expect("a directory");
        let mut plan = plan_on(&options(&data), Start::default(), &[0, 1]).expect("a plan");
        plan.log_bytes = 1 << 60;
        let fault = start(plan, Clock::real()).err().expect("refused");
        assert!(fault.starts_with("journal.log_bytes: got 1152921504606846976; allowed: up to "), "{fault}");
        assert_eq!(std::fs::read_dir(data.path()).expect("readable").count(), 0);
    }

    #[test]
    fn ports_of_an_earlier_run_are_gone_once_a_start_goes_on_and_those_of_one_that_runs_stay() {
        let folder = tempfile::tempdir().expect("a directory");
        let ports = folder.path().join("ports");
        std::fs::write(&ports, "an earlier run's").expect("written");
        let mut running = serve(2, |plan| {
            plan.waits_for_seed = true;
            plan.ports_file = Some(ports.clone());
        });
        assert!(!ports.exists(), "it is not seeded yet");
        running.write_ports().expect("written");
        let said = std::fs::read_to_string(&ports).expect("there");
        let second = start(running.shared.plan.clone(), Clock::real()).err().expect("refused");
        assert!(second.contains("in use"), "{second}");
        assert_eq!(std::fs::read_to_string(&ports).expect("there"), said);
        assert_eq!(running.stop(), End::Clean);
    }
}
