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
    let mut connections = Vec::<Connection>::new();
    let mut events = Vec::with_capacity(64);
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).expect("a fresh socket");
            let data = epoll::EventData::new_u64(connections.len() as u64);
            epoll::add(&poller, &stream, data, epoll::EventFlags::IN).expect("a fresh socket");
            connections.push(Connection {
                stream,
                unread: Vec::new(),
                unsent: Vec::new(),
                buffer: vec![0; REQUEST_BYTES_MAX],
            });
        }
        events.clear();
        epoll::wait(&poller, rustix::buffer::spare_capacity(&mut events), Some(&now)).expect("epoll works");
        for event in &events {
            let index = usize::try_from(event.data.u64()).expect("connections are few");
            connections[index].receive(&reply);
        }
        connections.iter_mut().for_each(Connection::send);
    }
}

impl Connection {
    /// Reads once and answers every whole request.
    fn receive(&mut self, reply: &[u8]) {
        let Ok(count) = self.stream.read(&mut self.buffer) else {
            return;
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
