//! A single kept-alive connection: requests as bytes, answers with a length.

use serde_json::Value;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take. A read waits at most 250 ms for its write by contract.
const ANSWER_MAX: Duration = Duration::from_mins(2);

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as a text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The value of a header, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A connection to one port of loopback.
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    #[track_caller]
    pub fn open(port: u16) -> Self {
        Self::try_open(port).unwrap()
    }

    pub fn try_open(port: u16) -> Result<Self, Error> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Self { stream, read: Vec::new() })
    }

    /// The socket of this connection, for a test that cuts it.
    pub fn socket(&self) -> TcpStream {
        self.stream.try_clone().unwrap()
    }

    /// Sends bytes as they are; several requests in them are pipelined.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stream.write_all(bytes)
    }

    /// Whether something of an answer has come, or the connection is closed.
    pub fn has_answer(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        peeked.is_ok()
    }

    /// The next answer.
    pub fn answer(&mut self) -> Result<Answer, Error> {
        loop {
            if let Some((answer, bytes)) = parse(&self.read) {
                self.read.drain(..bytes);
                return Ok(answer);
            }
            let mut chunk = [0; 16_384];
            let count = match self.stream.read(&mut chunk) {
                // A signal interrupts a read here, if the test runs the server in its own process.
                Err(fault) if fault.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.read.extend_from_slice(&chunk[..count]);
        }
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Result<Answer, Error> {
        self.send(&request(method, path, headers, body))?;
        self.answer()
    }

    /// A read without credentials.
    #[track_caller]
    pub fn read(&mut self, path: &str) -> Value {
        let answer = self.request("GET", path, "", b"").unwrap();
        assert!(answer.status == 200, "GET {path}: {} {}", answer.status, answer.text());
        answer.json()
    }
}

/// A request as bytes. `headers` are whole lines.
pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = match body.len() {
        0 => String::new(),
        bytes => format!("Content-Type: application/json\r\nContent-Length: {bytes}\r\n"),
    };
    let mut bytes =
        format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}{length}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The request that makes a connection a stream of this channel.
pub fn upgrade(channel: &str) -> Vec<u8> {
    let headers = "Upgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    request("GET", &format!("/ws/{channel}"), headers, b"")
}

fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let head_bytes = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..head_bytes]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: Vec::new() };
    let body_bytes: usize = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
    answer.body = bytes.get(head_bytes..head_bytes + body_bytes)?.to_vec();
    Some((answer, head_bytes + body_bytes))
}
