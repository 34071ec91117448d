//! The least that a server of reads must do: split requests off a socket and send back the same
//! bytes, whatever was asked. It shares no code with Outcry.

use rustix::event::epoll;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// One client: what it sent that is not yet answered, and what has yet to be sent to it.
struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    unsent: Vec<u8>,
    buffer: Vec<u8>,
}

/// Serves for ever on a free port, which it prints; every reply is the file at `path`.
pub(crate) fn serve(path: &str) {
    let reply = std::fs::read(path).expect("the parent wrote the reply");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let port = listener.local_addr().expect("a bound listener has an address").port();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{port}").and_then(|()| stdout.flush()).expect("the parent reads the port");
    listener.set_nonblocking(true).expect("a fresh socket");
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll is there");
    // A connection that its client has closed leaves its slot to the next: epoll would report it for ever.
    let mut connections = Vec::<Option<Connection>>::new();
    let mut events = Vec::with_capacity(64);
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).expect("a fresh socket");
            let slot = connections.iter().position(Option::is_none).unwrap_or_else(|| {
                connections.push(None);
                connections.len() - 1
            });
            let data = epoll::EventData::new_u64(slot as u64);
            epoll::add(&poller, &stream, data, epoll::EventFlags::IN).expect("a fresh socket");
            connections[slot] = Some(Connection {
                stream,
                unread: Vec::new(),
                unsent: Vec::new(),
                buffer: vec![0; REQUEST_BYTES_MAX],
            });
        }
        events.clear();
        epoll::wait(&poller, rustix::buffer::spare_capacity(&mut events), Some(&now)).expect("epoll works");
        for event in &events {
            let slot = usize::try_from(event.data.u64()).expect("connections are few");
            let is_open = connections[slot].as_mut().is_some_and(|connection| connection.receive(&reply));
            if !is_open {
                connections[slot] = None;
            }
        }
        connections.iter_mut().flatten().for_each(Connection::send);
    }
}

impl Connection {
    /// Reads once and answers every whole request; false if the client has closed the connection.
    fn receive(&mut self, reply: &[u8]) -> bool {
        let count = match self.stream.read(&mut self.buffer) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        };
        self.unread.extend_from_slice(&self.buffer[..count]);
        let mut used = 0;
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut headers);
            match request.parse(&self.unread[used..]).expect("our own client") {
                httparse::Status::Complete(head) => used += head,
                httparse::Status::Partial => break,
            }
            self.unsent.extend_from_slice(reply);
        }
        self.unread.drain(..used);
        true
    }

    fn send(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        match self.stream.write(&self.unsent) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    }
}
