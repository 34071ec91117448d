//! What a stream is told as time passes.

use super::super::idle::tests::{one_loop, upgrade};
use super::*;
use crate::server::process::start::Running;
use crate::server::threads::shared::Phase;
use crate::server::threads::thread::Turns;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// A stream on a loop that the caller turns.
struct Followed {
    core: Box<CoreLoop>,
    client: TcpStream,
    _running: Running,
    _data: tempfile::TempDir,
}

impl Followed {
    fn begin(path: &str) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let (running, mut cores) = one_loop(&data);
        let core = cores.pop().expect("one loop");
        let client = TcpStream::connect(running.http()).expect("connects");
        client.set_nonblocking(true).expect("a setting");
        let mut followed = Self { core, client, _running: running, _data: data };
        followed.client.write_all(&upgrade(path)).expect("writes");
        while followed.core.connections.count() == 0 {
            assert!(followed.core.turn());
        }
        assert!(followed.told().starts_with("HTTP/1.1 101"));
        followed
    }

    /// What the client is told until the loop rests.
    fn told(&mut self) -> String {
        while self.core.turn() && !self.core.rests() {}
        let (mut told, mut piece) = (Vec::new(), [0; 4 << 10]);
        loop {
            match self.client.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => told.extend_from_slice(&piece[..count]),
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => break,
                Err(fault) => panic!("{fault}"),
            }
        }
        String::from_utf8_lossy(&told).into_owned()
    }

    /// What the client is told once `change` was made to its stream.
    fn told_after(&mut self, change: impl FnOnce(&mut Stream)) -> String {
        self.with_stream(change);
        self.core.sweep_idle_until_ms = 0;
        self.told()
    }

    fn with_stream<T>(&mut self, look: impl FnOnce(&mut Stream) -> T) -> T {
        let [slot] = self.core.connections.occupied_slots()[..] else { panic!("one client") };
        let mut connection = self.core.connections.take(slot).expect("it is occupied");
        let seen = look(connection.stream.as_mut().expect("a stream"));
        self.core.connections.put(slot, connection);
        seen
    }
}

#[test]
fn a_stream_is_told_how_far_it_is_and_pinged_in_turn_and_is_not_kept_if_nobody_says_whose_it_is() {
    const NOW: u64 = 0;
    for (path, is_users) in [("/ws/market", false), ("/ws/user", true)] {
        let mut followed = Followed::begin(path);
        let known_by_ms = followed.with_stream(|stream| stream.known_by_ms);
        assert_eq!(known_by_ms == u64::MAX, !is_users, "{path}");
        let told = followed.told_after(|stream| stream.beat_at_ms = NOW);
        assert_eq!(told.matches("\"heartbeat\"").count(), 1, "{told}");
        assert_eq!(followed.told_after(|stream| stream.ping_at_ms = NOW), "\u{fffd}\0", "a ping");
        assert_eq!(followed.told_after(|_| ()), "", "neither is due again");
        let now_ms = followed.core.elapsed_ms;
        let due = followed.with_stream(|stream| [stream.beat_at_ms, stream.ping_at_ms]);
        for (due_ms, every_ms) in due.into_iter().zip([BEAT_MS, PING_MS]) {
            assert!(due_ms <= now_ms + every_ms, "{path}: in {} ms", due_ms - now_ms);
        }
        if is_users {
            assert!(known_by_ms <= now_ms + KNOWN_WITHIN_MS, "{known_by_ms}");
            let told = followed.told_after(|stream| stream.known_by_ms = NOW);
            assert!(told.contains("no credentials were taken"), "{told}");
        }
    }
}

#[test]
fn a_stream_that_a_stop_ends_is_told_so_before_it_is_closed() {
    for path in ["/ws/market", "/ws/user"] {
        let mut followed = Followed::begin(path);
        for phase in [Phase::Leaving, Phase::Draining] {
            followed.core.shared.enter(phase);
        }
        let told = followed.told();
        let [ending, closed] = ["\"mode\":\"ending\"", ENDING.reason].map(|words| told.find(words));
        assert!(ending.is_some() && ending < closed, "{told}");
    }
}
