//! Replies, cut out of received bytes; and a client for setting up, which asks one thing at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The longest reply to anything that is asked here.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// How long a reply may take that is not measured.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where the parts of a reply are in the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The length of the whole reply.
    pub(crate) bytes: usize,
    /// The length of the head, with the empty line that ends it.
    pub(crate) head_bytes: usize,
    /// The status.
    pub(crate) status: u16,
    /// The bounds of the value of `Server-Timing`, if there is one.
    pub(crate) timing: Option<(usize, usize)>,
}

/// Finds the reply at the front of `bytes`; `None` until it is whole.
pub(crate) fn cut(bytes: &[u8]) -> Result<Option<Cut>, String> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let wrong = |what: &str| format!("{what}: {}", String::from_utf8_lossy(&bytes[..end]));
    let head = &bytes[..end + 2];
    let status = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| number(rest.get(..3)?));
    let status = status.ok_or_else(|| wrong("the reply has no status"))?;
    let (mut length, mut timing) = (None, None);
    let mut at = 0;
    while let Some(line_bytes) = memchr::memmem::find(&head[at..], b"\r\n") {
        let line = &head[at..at + line_bytes];
        if let Some(value) = value_of(line, b"content-length:") {
            length = number(value.trim_ascii());
        } else if let Some(value) = value_of(line, b"server-timing:") {
            timing = Some((at + line_bytes - value.len(), at + line_bytes));
        }
        at += line_bytes + 2;
    }
    let length = length.ok_or_else(|| wrong("the reply has no length"))?;
    let whole = end + 4 + length;
    if bytes.len() < whole {
        return Ok(None);
    }
    let status = u16::try_from(status).expect("three digits");
    Ok(Some(Cut { bytes: whole, head_bytes: end + 4, status, timing }))
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (front, value) = line.split_at_checked(name.len())?;
    front.eq_ignore_ascii_case(name).then_some(value)
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A whole reply.
pub(crate) struct Reply {
    cut: Cut,
    text: String,
}

impl Reply {
    /// What it says, if its status is 200.
    pub(crate) fn body(&self) -> Result<&str, String> {
        match self.cut.status {
            200 => Ok(&self.text[self.cut.head_bytes..]),
            _ => Err(format!("the server says: {}", self.text)),
        }
    }
}

/// A connection that carries one request at a time.
pub(crate) struct Http {
    stream: TcpStream,
    patience: Duration,
}

impl Http {
    /// Connects to a port of this machine.
    pub(crate) fn connect(port: u16) -> Result<Self, String> {
        Self::connect_for(port, PATIENCE)
    }

    /// Connects to a port of this machine; a reply may take as long as `patience`.
    pub(crate) fn connect_for(port: u16, patience: Duration) -> Result<Self, String> {
        let stream =
            TcpStream::connect(("127.0.0.1", port)).map_err(|fault| format!("port {port}: {fault}"))?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(patience)))
            .map_err(|fault| format!("port {port}: {fault}"))?;
        Ok(Self { stream, patience })
    }

    /// Sends a request and waits for its reply.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Result<Reply, String> {
        self.stream.write_all(request).map_err(|fault| format!("the connection broke: {fault}"))?;
        let mut bytes = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                // A signal interrupts a read that has a timeout, whichever thread it was for.
                Err(fault) if fault.kind() == ErrorKind::Interrupted => continue,
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => {
                    return Err(format!("a request was never answered: no reply for {:?}", self.patience));
                }
                Err(fault) => return Err(format!("no reply: {fault}")),
            }
            if let Some(cut) = cut(&bytes)? {
                let text = String::from_utf8(bytes).map_err(|fault| format!("the reply: {fault}"))?;
                return Ok(Reply { cut, text });
            }
            if REPLY_BYTES_MAX < bytes.len() {
                return Err(format!("a reply of more than {REPLY_BYTES_MAX} bytes"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-LENGTH: 4\r\n\
        Server-Timing: recv;dur=0.001, total;dur=0.02\r\n\r\ntrue";

    #[test]
    fn a_reply_cut_anywhere_is_not_whole_and_never_wrong() {
        for bytes in 0..REPLY.len() {
            assert_eq!(cut(&REPLY[..bytes]), Ok(None), "{bytes}");
        }
        let found = cut(&[REPLY, b"HTTP/1.1 4"].concat()).unwrap().unwrap();
        assert_eq!((found.status, found.bytes), (200, REPLY.len()));
        assert_eq!(&REPLY[found.head_bytes..found.bytes], b"true");
        let (from, to) = found.timing.unwrap();
        assert_eq!(&REPLY[from..to], b" recv;dur=0.001, total;dur=0.02");
    }

    #[test]
    fn a_server_that_says_nothing_is_said_to_say_nothing() {
        let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = silent.local_addr().unwrap().port();
        let mut asked = Http::connect_for(port, Duration::from_millis(1)).unwrap();
        let fault = asked.ask(b"GET / HTTP/1.1\r\n\r\n").err().unwrap();
        assert_eq!(fault, "a request was never answered: no reply for 1ms");
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        assert!(cut(b"HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(cut(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(cut(b"SSH-2.0\r\n\r\n").is_err());
    }
}
