//! What the clients do: orders by schedule or as fast as they are answered, and one cancel at a time
//! between them.
//!
//! One thread does it all, without ever sleeping and with few system calls in a row: before each of
//! them it serves the cancels. On two CPUs a second thread would take turns with this one by the
//! scheduler's slices, and the benchmark would measure those.

use super::client::{self, Credentials};
use super::clock::Clock;
use super::due::{Due, Ready};
use super::sign::{Signer, hmac};
use alloy_primitives::U256;
use hdrhistogram::Histogram;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Connections that place orders.
pub(crate) const PLACERS: usize = 8;

/// Orders under way on each connection at the pace [`Pace::Answered`].
pub(crate) const PIPELINED: usize = 16;

/// Bytes of replies read at once: some twenty, so that a cancel does not wait long for its own
/// client.
const CHUNK_BYTES: usize = 8 << 10;

/// How long answers may take after the last order.
const PATIENCE: Duration = Duration::from_mins(1);

/// Collateral in millionths for 5 shares, at a price of 0.01: it rests.
const BID: u64 = 50_000;

/// A client that trades one token.
pub(crate) struct Account {
    signer: Signer,
    credentials: Credentials,
    token: U256,
    salt: u64,
}

impl Account {
    /// Makes the credentials of `signer` on the server at `port`.
    pub(crate) fn new(port: u16, signer: Signer, token: U256) -> Self {
        let credentials = client::credentials(port, &signer);
        Self { signer, credentials, token, salt: 0 }
    }

    /// Whole requests of `count` orders that rest.
    pub(crate) fn orders(&mut self, count: usize) -> Vec<Vec<u8>> {
        let first = self.salt;
        self.salt += count as u64;
        (first..self.salt)
            .map(|salt| client::bid(&self.signer, &self.credentials, self.token, BID, salt))
            .collect()
    }

    /// The whole request that cancels an order.
    fn cancel(&self, id: &str) -> Vec<u8> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs().to_string();
        let body = format!("{{\"orderID\":\"{id}\"}}");
        let mac = hmac(&self.credentials.secret, &seconds, "DELETE", "/order", &body);
        format!(
            "DELETE /order HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: cancels\r\n\
             POLY_ADDRESS: {}\r\nPOLY_SIGNATURE: {mac}\r\nPOLY_TIMESTAMP: {seconds}\r\nPOLY_API_KEY: {}\r\n\
             POLY_PASSPHRASE: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.signer.address,
            self.credentials.api_key,
            self.credentials.passphrase,
            body.len()
        )
        .into_bytes()
    }
}

/// A connection with any number of requests under way.
pub(crate) struct Pipe {
    stream: TcpStream,
    unsent: Vec<u8>,
    sent: usize,
    unread: Vec<u8>,
    under_way: usize,
}

impl Pipe {
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).expect("a fresh socket");
        Self { stream, unsent: Vec::new(), sent: 0, unread: Vec::new(), under_way: 0 }
    }

    /// Sends as much of `request` as the socket takes; the rest waits here.
    fn push(&mut self, request: &[u8]) {
        self.unsent.extend_from_slice(request);
        self.under_way += 1;
        self.flush();
    }

    fn flush(&mut self) {
        match self.stream.write(&self.unsent[self.sent..]) {
            Ok(count) => self.sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("the connection broke: {error}"),
        }
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
    }

    /// Reads once and passes on each whole reply.
    fn receive(&mut self, mut each: impl FnMut(&str)) {
        let mut chunk = [0; CHUNK_BYTES];
        match self.stream.read(&mut chunk) {
            Ok(0) => panic!("the server closed the connection"),
            Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("the connection broke: {error}"),
        }
        let mut used = 0;
        while let Some(bytes) = client::reply_bytes(&self.unread[used..]) {
            let Some(reply) = self.unread.get(used..used + bytes) else {
                break;
            };
            each(std::str::from_utf8(reply).expect("replies are UTF-8"));
            used += bytes;
            self.under_way -= 1;
        }
        self.unread.drain(..used);
    }
}

/// When the next order goes out.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// As soon as fewer than [`PIPELINED`] are under way on a connection.
    Answered,
    /// By schedule, at this many orders a second, whatever the answers do.
    Scheduled(f64),
}

/// Orders on their way over [`PLACERS`] connections.
pub(crate) struct Placement {
    pipes: Vec<Pipe>,
    orders: Vec<Vec<u8>>,
    pace: Pace,
    next: usize,
    /// Orders that rest, by their answers.
    pub(crate) answered: usize,
    /// The most bytes that waited here because a socket took no more.
    pub(crate) unsent_bytes_max: usize,
    looks_at: usize,
}

impl Placement {
    pub(crate) fn new(port: u16, orders: Vec<Vec<u8>>, pace: Pace) -> Self {
        let pipes = (0..PLACERS).map(|_| Pipe::connect(port)).collect();
        Self { pipes, orders, pace, next: 0, answered: 0, unsent_bytes_max: 0, looks_at: 0 }
    }

    /// Sends at most one order and reads answers once.
    fn step(&mut self, since: Duration, sends: bool) {
        self.looks_at = (self.looks_at + 1) % PLACERS;
        let (pipe, is_due) = match self.pace {
            Pace::Answered => (self.looks_at, self.pipes[self.looks_at].under_way < PIPELINED),
            Pace::Scheduled(rate) => (self.next % PLACERS, (self.next as f64) < since.as_secs_f64() * rate),
        };
        if sends && is_due {
            let order = self.orders.get(self.next).expect("enough orders were signed for the whole time");
            self.pipes[pipe].push(order);
            self.next += 1;
        }
        let pipe = &mut self.pipes[self.looks_at];
        if !pipe.unsent.is_empty() {
            pipe.flush();
            self.unsent_bytes_max = self.unsent_bytes_max.max(pipe.unsent.len() - pipe.sent);
        }
        let answered = &mut self.answered;
        pipe.receive(|reply| {
            assert!(reply.contains("\"status\":\"live\""), "an order did not rest: {reply}");
            *answered += 1;
        });
    }

    /// Waits for what is under way.
    pub(crate) fn drain(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.answered < self.next {
            self.step(Duration::ZERO, false);
            assert!(Instant::now() < deadline, "answers did not come");
        }
    }
}

/// Cancels of one maker, one under way at a time.
pub(crate) struct Cancels {
    pipe: Pipe,
    /// The requests and what their answers must say.
    requests: Vec<(Vec<u8>, String)>,
    due: Due,
    /// Cancels that were answered.
    answered: usize,
    /// When the one under way was due.
    under_way: Option<Duration>,
    /// Nanoseconds from the moment at which a cancel was due to its answer.
    pub(crate) took: Histogram<u64>,
    /// The part of `took` that is the client's own: from when it could have sent a cancel until it did.
    pub(crate) late: Histogram<u64>,
}

impl Cancels {
    /// Rests as many orders of `maker` as will be cancelled within `time`, one each `interval`.
    pub(crate) fn rest(port: u16, maker: &mut Account, interval: Duration, time: Duration) -> Self {
        let count = usize::try_from(time.as_nanos() / interval.as_nanos()).expect("few") + 1;
        let orders = maker.orders(count);
        let mut pipe = Pipe::connect(port);
        let (mut sent, mut ids) = (0, Vec::new());
        while ids.len() < count {
            if sent < count && pipe.under_way < PIPELINED {
                pipe.push(&orders[sent]);
                sent += 1;
            }
            pipe.receive(|reply| {
                assert!(reply.contains("\"status\":\"live\""), "an order did not rest: {reply}");
                let id = reply.split("\"orderID\":\"").nth(1).and_then(|rest| rest.split('"').next());
                ids.push(id.expect("an order has an id").to_owned());
            });
            if !pipe.unsent.is_empty() {
                pipe.flush();
            }
        }
        let requests = ids.iter().map(|id| (maker.cancel(id), format!("\"canceled\":[\"{id}\"]"))).collect();
        let histogram = || Histogram::new(3).expect("three digits");
        let due = Due::new(interval, time);
        Self { pipe, requests, due, answered: 0, under_way: None, took: histogram(), late: histogram() }
    }

    /// Whether all that were due are answered.
    fn is_over(&self) -> bool {
        self.due.is_over() && self.under_way.is_none()
    }

    /// Sends at most one cancel or reads an answer once.
    fn step(&mut self, clock: &mut Clock) {
        let Some(due) = self.under_way else {
            if let Some(Ready { due, late }) = self.due.take(clock.now()) {
                let (request, _) = self.requests.get(self.answered).expect("as many rest as are cancelled");
                record(&mut self.late, late);
                self.pipe.push(request);
                self.under_way = Some(due);
            }
            return;
        };
        let (mut is_answered, expected) = (false, &self.requests[self.answered].1);
        self.pipe.receive(|reply| {
            assert!(reply.contains(expected), "a cancel did not cancel: {reply}");
            is_answered = true;
        });
        if is_answered {
            let now = clock.now();
            record(&mut self.took, now.saturating_sub(due));
            self.due.answered(now);
            self.under_way = None;
            self.answered += 1;
        }
    }
}

/// What one run of both came to.
pub(crate) struct Ran {
    /// Orders that rested within its time.
    pub(crate) rested: usize,
    /// How long the client had no CPU, which is not in that time.
    pub(crate) away: Duration,
}

/// Runs both for `time`, then until every cancel that was due in it is answered.
pub(crate) fn run(
    time: Duration,
    mut placement: Option<&mut Placement>,
    mut cancels: Option<&mut Cancels>,
) -> Ran {
    let mut clock = Clock::start();
    let mut rested = 0;
    loop {
        let since = clock.now();
        let sends = since < time;
        if let Some(cancels) = &mut cancels {
            cancels.step(&mut clock);
        }
        if !sends && cancels.as_ref().is_none_or(|cancels| cancels.is_over()) {
            return Ran { rested, away: clock.away() };
        }
        if let Some(placement) = &mut placement {
            placement.step(since, sends);
            if sends {
                rested = placement.answered;
            }
        }
    }
}

/// Counts a time in nanoseconds.
pub(crate) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.record(u64::try_from(time.as_nanos()).expect("short")).expect("the histogram grows");
}
