//! A client's two connections, which may break at any byte.

use super::gate::{Gate, Open, Socket};
use super::{PATIENCE, Trouble};
use crate::common::random::Random;
use crate::common::stream;
use crate::common::text;
use crate::common::trader::Trader;
use crate::common::wire::{Answer, Connection};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Instant;
use tungstenite::{Message, WebSocket};

/// One request in this many is cut by its own client.
const CUT_ONE_IN: u64 = 24;

/// The outcome of one attempt at a request.
pub enum Attempt {
    Answered(Answer),
    /// It was not taken: at most a part of it was sent, or the exchange was leaving.
    NotTaken,
    /// All of it may have arrived.
    Unknown,
}

/// A request that has not been sent yet.
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub body: &'a str,
}

impl<'a> Request<'a> {
    pub fn new(method: &'a str, path: &'a str, body: &'a str) -> Self {
        Self { method, path, body }
    }
}

/// An answer, and whether a copy of its request may still be on its way to the same process.
pub struct Answered {
    pub answer: Answer,
    pub doubt: bool,
}

pub struct Link<'a> {
    pub client: usize,
    pub gate: &'a Gate,
    pub trouble: &'a Trouble,
    /// Header lines of every request.
    pub lines: &'static str,
    /// Whether the client cuts no more requests of its own.
    pub calm: bool,
    connection: Option<(u64, Connection)>,
    /// The last process that may have received something that it did not answer.
    pub unanswered: u64,
}

impl<'a> Link<'a> {
    pub fn new(client: usize, gate: &'a Gate, trouble: &'a Trouble, lines: &'static str) -> Self {
        Self { client, gate, trouble, lines, calm: true, connection: None, unanswered: 0 }
    }

    /// The process that a connection leads to; connects if there is no connection.
    fn connect(&mut self) -> Open {
        loop {
            let open = self.gate.wait();
            if self.connection.as_ref().is_some_and(|(generation, _)| *generation == open.generation) {
                return open;
            }
            let connection = Connection::try_open(open.port);
            if !self.gate.is_open(open.generation) {
                continue;
            }
            let connection = connection.expect("an open exchange takes connections");
            self.gate.has(self.client, Socket::Requests, connection.socket());
            self.connection = Some((open.generation, connection));
        }
    }

    /// Tries a request once, with current credentials; chance decides whether it is cut.
    pub fn attempt(&mut self, trader: &mut Trader, request: &Request<'_>, random: &mut Random) -> Attempt {
        let open = self.connect();
        trader.clock_ms = Some(open.now_ms);
        let bytes = trader.request_with(self.lines, request.method, request.path, request.body);
        let (_, connection) = self.connection.as_mut().expect("it was just made");
        let cut = if self.calm { u64::MAX } else { random.below(2 * CUT_ONE_IN) };
        if cut == 0 {
            let part = usize::try_from(random.below(bytes.len() as u64)).unwrap();
            let _ = connection.send(&bytes[..part]);
            self.trouble.cut_inside.fetch_add(1, Ordering::Relaxed);
            self.hang_up();
            return Attempt::NotTaken;
        }
        let sent = connection.send(&bytes);
        if cut == 1 {
            self.trouble.cut_behind.fetch_add(1, Ordering::Relaxed);
            self.hang_up();
        } else if sent.is_ok()
            && let Ok(answer) = connection.answer()
        {
            // A process that leaves says so, and that it did not take the request; the next one will.
            let leaves = [425, 503].contains(&answer.status) && answer.json()["code"] == "recovering";
            return if leaves { Attempt::NotTaken } else { Attempt::Answered(answer) };
        }
        self.connection = None;
        self.unanswered = open.generation;
        self.trouble.unknown.fetch_add(1, Ordering::Relaxed);
        Attempt::Unknown
    }

    fn hang_up(&mut self) {
        if let Some((_, connection)) = self.connection.take() {
            let _ = connection.socket().shutdown(Shutdown::Both);
        }
    }

    /// The number of the connected process.
    pub fn generation(&self) -> u64 {
        self.connection.as_ref().map_or(0, |(generation, _)| *generation)
    }

    /// Sends the same request until it is answered.
    pub fn ask(&mut self, trader: &mut Trader, request: &Request<'_>, random: &mut Random) -> Answered {
        let deadline = Instant::now() + PATIENCE;
        let mut unknown_at = 0;
        loop {
            match self.attempt(trader, request, random) {
                Attempt::Answered(answer) => {
                    return Answered { answer, doubt: unknown_at == self.generation() };
                }
                Attempt::NotTaken => {}
                Attempt::Unknown => unknown_at = self.unanswered,
            }
            assert!(Instant::now() < deadline, "{} is not answered", request.path);
        }
    }

    /// A private read, repeated until it is answered; none if there is no such thing.
    pub fn read(&mut self, trader: &mut Trader, path: &str, random: &mut Random) -> Option<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(trader, &Request::new("GET", path, ""), random).answer;
            match answer.status {
                200 => return Some(answer.json()),
                404 => return None,
                // It waited for the reader for as long as a read may wait.
                503 => assert!(Instant::now() < deadline, "GET {path} is not answered"),
                status => panic!("GET {path}: {status} {}", answer.json()),
            }
        }
    }

    /// All pages of a private list.
    pub fn pages(&mut self, trader: &mut Trader, path: &str, random: &mut Random) -> Vec<Value> {
        let (mut rows, mut cursor) = (Vec::new(), "MA==".to_owned());
        while cursor != "LTE=" {
            let page = self.read(trader, &format!("{path}?next_cursor={cursor}"), random);
            let page = page.expect("lists are always there");
            rows.extend(page["data"].as_array().unwrap().iter().cloned());
            text(&page["next_cursor"]).clone_into(&mut cursor);
        }
        rows
    }

    /// Opens a user stream that continues after a number; none if it broke on the way. Returns the
    /// exchange's first message.
    pub fn stream(&self, mut ask: Value, trader: &Trader) -> Option<(WebSocket<TcpStream>, Value)> {
        let open = self.gate.wait();
        let socket = TcpStream::connect(("127.0.0.1", open.port)).ok()?;
        if !self.gate.is_open(open.generation) {
            return None;
        }
        socket.set_read_timeout(Some(PATIENCE)).ok()?;
        self.gate.has(self.client, Socket::Stream, socket.try_clone().ok()?);
        let url = format!("ws://127.0.0.1:{}/ws/user", open.port);
        let mut stream = tungstenite::client(url, socket).ok()?.0;
        ask["type"] = json!("user");
        ask["auth"] = trader.stream_auth();
        stream.send(Message::text(ask.to_string())).ok()?;
        loop {
            match next(&mut stream) {
                Next::Message(said) if said["type"] == "subscribed" => return Some((stream, said)),
                // A message to every connection may come first: that the stream is quiet, or that the
                // exchange ends.
                Next::Message(said) => {
                    assert!(
                        said["type"] == "heartbeat" || said["type"] == "mode",
                        "instead of a stream: {said}"
                    );
                }
                Next::Nothing => panic!("a stream said nothing for {PATIENCE:?}"),
                Next::Broken => return None,
            }
        }
    }
}

/// What comes next on a stream.
pub enum Next {
    Message(Value),
    /// Nothing has come so far.
    Nothing,
    Broken,
}

pub fn next(stream: &mut WebSocket<TcpStream>) -> Next {
    loop {
        match stream.read() {
            Ok(Message::Text(text)) => return Next::Message(stream::read(&text)),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Err(tungstenite::Error::Io(fault)) if fault.kind() == ErrorKind::WouldBlock => {
                return Next::Nothing;
            }
            Ok(_) | Err(_) => return Next::Broken,
        }
    }
}
