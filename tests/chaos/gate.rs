//! Where the exchange is at the moment; clients that lost it wait here until it is back.
//!
//! The gate is closed before the process ends, and opened when the next one is ready. If it stood open
//! for the same process before and after a connection was made, the connection was made to that
//! process.

use super::PATIENCE;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, Mutex};

/// One run of the process.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub port: u16,
    /// The number of this process.
    pub generation: u64,
    /// The time that the exchange's clock shows.
    pub now_ms: u64,
}

#[derive(Debug, Default)]
struct State {
    open: Option<Open>,
    generation: u64,
    ending: bool,
    /// The client that must stay off its stream until the next process.
    held: Option<usize>,
}

/// A client's sockets, kept so that another thread can cut them.
#[derive(Debug, Default)]
struct Sockets([Option<TcpStream>; 2]);

/// One of the two sockets.
#[derive(Clone, Copy, Debug)]
pub enum Socket {
    Requests,
    Stream,
}

pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    sockets: Vec<Mutex<Sockets>>,
}

impl Gate {
    pub fn closed(clients: usize) -> Self {
        let sockets = std::iter::repeat_with(Mutex::default).take(clients).collect();
        Self { state: Mutex::default(), changed: Condvar::new(), sockets }
    }

    pub fn open(&self, port: u16, now_ms: u64) {
        let mut state = self.state.lock().unwrap();
        state.generation += 1;
        state.held = None;
        state.open = Some(Open { port, generation: state.generation, now_ms });
        self.changed.notify_all();
    }

    pub fn close(&self) {
        self.state.lock().unwrap().open = None;
    }

    /// Records that the exchange's clock was moved.
    pub fn moved(&self, now_ms: u64) {
        if let Some(open) = &mut self.state.lock().unwrap().open {
            open.now_ms = now_ms;
        }
    }

    /// Tells clients to finish what they are doing.
    pub fn end(&self) {
        self.state.lock().unwrap().ending = true;
    }

    pub fn is_ending(&self) -> bool {
        self.state.lock().unwrap().ending
    }

    /// Keeps one client off its stream until there is another process.
    pub fn hold(&self, client: usize) {
        self.state.lock().unwrap().held = Some(client);
        self.cut(client, Socket::Stream);
    }

    pub fn is_held(&self, client: usize) -> bool {
        self.state.lock().unwrap().held == Some(client)
    }

    /// The process that runs now, or the next one.
    pub fn wait(&self) -> Open {
        let state = self.state.lock().unwrap();
        let (state, waited) =
            self.changed.wait_timeout_while(state, PATIENCE, |state| state.open.is_none()).unwrap();
        assert!(!waited.timed_out(), "the exchange did not come back");
        state.open.expect("that is what was waited for")
    }

    /// Whether this process is the one that runs.
    pub fn is_open(&self, generation: u64) -> bool {
        self.state.lock().unwrap().open.is_some_and(|open| open.generation == generation)
    }

    /// Records a client's new socket.
    pub fn has(&self, client: usize, which: Socket, socket: TcpStream) {
        self.sockets[client].lock().unwrap().0[which as usize] = Some(socket);
    }

    /// Cuts a client's socket, whatever is on its way.
    pub fn cut(&self, client: usize, which: Socket) {
        if let Some(socket) = self.sockets[client].lock().unwrap().0[which as usize].take() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
