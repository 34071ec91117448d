//! The open-loop client: one thread sends each request at its moment, whatever the answers do. It polls and never
//! sleeps, unless a thread that the figures are about would have to wait for the client's CPU.
//!
//! While the clock runs it does little. It sends what is due, one write per connection; it asks epoll, without waiting
//! if it polls; it checks whole answers and notes their times in memory that was touched before. Everything else is
//! worked out afterwards. A time counts from the moment at which the request was due, so a stall is charged to every
//! request that it held up.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rustix::event::epoll;

use crate::http;
use crate::machine;
use crate::scenario::Waits;
use crate::schedule::nanos;
use crate::workload::Request;

/// Bytes of answers that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Requests in flight on a connection during [`Generator::flood`].
const PIPELINED: usize = 16;

/// How long answers may take after the last request was due.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// A server of which an answer came within this time before the client gave up was still answering.
const STILL: Duration = Duration::from_secs(5);

/// Room for one value of `Server-Timing`: eight stages, each at most 8 letters, `;dur=`, 10 digits of milliseconds and
/// `, ` (8 × 25 bytes), and some more for other servers. What is longer is cut.
const TIMING_BYTES: usize = 256;

/// How long [`Generator::flood`] waits for the next answer: others may have the server's CPU.
const UNMEASURED_PATIENCE: Duration = Duration::from_mins(1);

/// The longest sleep of the client.
const IDLE_MAX: Duration = Duration::from_millis(10);

/// The time of a request that was not answered, or not sent.
pub(crate) const NEVER: u64 = u64::MAX;

/// What became of the requests, in nanoseconds since the start; [`NEVER`] if it did not happen.
pub(crate) struct Times {
    /// When the request was given to the socket.
    pub(crate) sent_ns: Vec<u64>,
    /// When its answer was whole.
    pub(crate) answered_ns: Vec<u64>,
    /// The most of that time for which the client was busy elsewhere: while it wrote the request to the socket, and
    /// from its last look that did not find the answer until it read the answer. In that second span it sends and reads
    /// other requests, or has no CPU. Says nothing for a client that sleeps.
    pub(crate) away_ns: Vec<u64>,
    /// When the client gave up waiting for answers; [`NEVER`] if all came.
    gave_up_ns: u64,
    /// The `Server-Timing` value of each answer. Every request has its own room from the start: if it had to grow, the
    /// copying of millions of bytes would be charged to the server as a stall.
    timings: Box<[[u8; TIMING_BYTES]]>,
    /// The length of each value.
    timing_bytes: Box<[u16]>,
}

const _: () = assert!(TIMING_BYTES <= u16::MAX as usize, "a value's length is kept in 16 bits");

impl Times {
    fn of(count: usize) -> Self {
        Self {
            sent_ns: touched(NEVER, count),
            answered_ns: touched(NEVER, count),
            away_ns: touched(0, count),
            gave_up_ns: NEVER,
            timings: touched([0; TIMING_BYTES], count).into(),
            timing_bytes: touched(0, count).into(),
        }
    }

    /// Whether answers still came when the client gave up: the server was behind, and no request was lost.
    pub(crate) fn is_still_answering(&self) -> bool {
        let last_ns = self.answered_ns.iter().copied().filter(|&at| at != NEVER).max();
        let since = last_ns.map(|last_ns| self.gave_up_ns.saturating_sub(last_ns));
        self.gave_up_ns != NEVER && since.is_some_and(|since| since <= nanos(STILL))
    }

    /// How many requests have no answer.
    pub(crate) fn unanswered(&self) -> usize {
        self.answered_ns.iter().filter(|&&answered_ns| answered_ns == NEVER).count()
    }

    /// When the answer of an answered request left the server, as far as the client can tell: `away_ns` before it was
    /// read.
    pub(crate) fn left_ns(&self, request: usize) -> u64 {
        self.answered_ns[request].saturating_sub(self.away_ns[request])
    }

    /// What the server said about the stages of one request, if anything.
    pub(crate) fn timing(&self, request: usize) -> Option<&str> {
        let value = &self.timings[request][..usize::from(self.timing_bytes[request])];
        std::str::from_utf8(value).ok().filter(|value| !value.is_empty())
    }
}

/// Memory that was written to: a page that is first touched while the clock runs costs a fault. `vec!` only asks the
/// kernel for zeros.
fn touched<T: Clone>(value: T, count: usize) -> Vec<T> {
    std::iter::repeat_n(std::hint::black_box(value), count).collect()
}

/// A connection with any number of requests in flight.
struct Pipe {
    stream: TcpStream,
    unsent: Vec<u8>,
    sent: usize,
    /// Whether a request was added since the last write; `wrote_ns` is when that write began and ended.
    is_staged: bool,
    wrote_ns: [u64; 2],
    unread: Vec<u8>,
    /// Requests in flight, oldest first.
    under_way: VecDeque<usize>,
}

/// One look at all connections.
struct Look {
    /// When the run began.
    begin: Instant,
    /// When the client looked before this, in nanoseconds since `begin`.
    last_ns: u64,
}

/// The client.
pub(crate) struct Generator {
    pipes: Vec<Pipe>,
    poller: rustix::fd::OwnedFd,
    events: Vec<epoll::Event>,
    chunk: Vec<u8>,
    waits: Waits,
}

/// How exact the client's alarms are; the kernel's default is 50 µs.
const SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

impl Generator {
    /// Opens the given number of connections to a port of this machine; `waits` is what the client does while nothing
    /// is due.
    pub(crate) fn connect(port: u16, connections: usize, waits: Waits) -> Result<Self, String> {
        let fault = |fault: std::io::Error| format!("port {port}: {fault}");
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| fault(error.into()))?;
        let mut pipes = Vec::with_capacity(connections);
        for index in 0..connections {
            let stream = TcpStream::connect(("127.0.0.1", port)).map_err(fault)?;
            stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(fault)?;
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&poller, &stream, data, epoll::EventFlags::IN).map_err(|error| fault(error.into()))?;
            pipes.push(Pipe {
                stream,
                unsent: Vec::with_capacity(1 << 20),
                sent: 0,
                is_staged: false,
                wrote_ns: [0; 2],
                unread: Vec::with_capacity(1 << 20),
                under_way: VecDeque::with_capacity(1 << 12),
            });
        }
        let events = Vec::with_capacity(connections.clamp(1, 256));
        Ok(Self { pipes, poller, events, chunk: vec![1; CHUNK_BYTES], waits })
    }

    /// Sends everything as fast as it is answered; an unexpected answer is an error.
    pub(crate) fn flood(&mut self, requests: &[Request]) -> Result<(), String> {
        let begin = Instant::now();
        let mut times = Times::of(requests.len());
        let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); self.pipes.len()];
        for (index, request) in requests.iter().enumerate() {
            waiting[request.connection].push_back(index);
        }
        let mut answered = 0;
        let mut last = begin;
        while answered < requests.len() {
            for (pipe, waiting) in self.pipes.iter_mut().zip(&mut waiting) {
                while pipe.under_way.len() < PIPELINED
                    && let Some(index) = waiting.pop_front()
                {
                    pipe.stage(index, &requests[index].bytes);
                }
                pipe.flush()?;
            }
            let came = self.receive(Duration::ZERO, &Look { begin, last_ns: 0 }, requests, &mut times)?;
            answered += came;
            if 0 < came {
                last = Instant::now();
            } else if UNMEASURED_PATIENCE < last.elapsed() {
                return Err(format!(
                    "{} of {} orders were not answered",
                    requests.len() - answered,
                    requests.len()
                ));
            }
        }
        Ok(())
    }

    /// Sends each request when it is due and waits for the last answers. A request that is not answered [`PATIENCE`] after
    /// the last was due has no time in the result; an unexpected answer is an error.
    pub(crate) fn run(&mut self, requests: &[Request], due_ns: &[u64]) -> Result<Times, String> {
        assert_eq!(requests.len(), due_ns.len());
        let mut times = Times::of(requests.len());
        let end = Duration::from_nanos(due_ns.last().copied().unwrap_or(0)) + PATIENCE;
        let (mut next, mut answered) = (0, 0);
        if self.waits == Waits::Sleeps {
            rustix::thread::set_current_timer_slack(Some(SLACK_NS))
                .map_err(|fault| format!("alarms: {fault}"))?;
        }
        // Else it would wait for the server's threads on its CPU, as no client does that has a machine of its own.
        let _first = (self.waits == Waits::Sleeps).then(machine::come_first);
        let begin = Instant::now();
        let mut last_ns = 0;
        loop {
            let now = begin.elapsed();
            next = self.send_due(begin, requests, due_ns, next, &mut times)?;
            let idle = match self.waits {
                Waits::Sleeps => until_due(begin, due_ns.get(next)),
                Waits::Polls | Waits::Yields => Duration::ZERO,
            };
            let looks_ns = nanos_since(begin);
            let came = self.receive(idle, &Look { begin, last_ns }, requests, &mut times)?;
            if came == 0 && self.waits == Waits::Yields {
                std::thread::yield_now();
            }
            answered += came;
            last_ns = looks_ns;
            if next == requests.len() && answered == next {
                return Ok(times);
            }
            if end < now {
                times.gave_up_ns = nanos(now);
                return Ok(times);
            }
        }
    }

    /// Sends what is due, one write per connection; returns the index of the next request.
    fn send_due(
        &mut self,
        begin: Instant,
        requests: &[Request],
        due_ns: &[u64],
        first: usize,
        times: &mut Times,
    ) -> Result<usize, String> {
        let now = nanos_since(begin);
        let mut next = first;
        while next < requests.len() && due_ns[next] <= now {
            let request = &requests[next];
            self.pipes[request.connection].stage(next, &request.bytes);
            next += 1;
        }
        for (index, request) in requests.iter().enumerate().take(next).skip(first) {
            let pipe = &mut self.pipes[request.connection];
            // Otherwise its bytes went out with those of an earlier request.
            if pipe.is_staged {
                let began_ns = nanos_since(begin);
                pipe.flush()?;
                pipe.wrote_ns = [began_ns, nanos_since(begin)];
            }
            let [began_ns, ended_ns] = pipe.wrote_ns;
            times.sent_ns[index] = began_ns;
            times.away_ns[index] = ended_ns - began_ns;
        }
        if first == next {
            for pipe in self.pipes.iter_mut().filter(|pipe| !pipe.unsent.is_empty()) {
                pipe.flush()?;
            }
        }
        Ok(next)
    }

    /// Looks at all connections once, waiting up to `idle` for something to come; returns how many answers came.
    fn receive(
        &mut self,
        idle: Duration,
        look: &Look,
        requests: &[Request],
        times: &mut Times,
    ) -> Result<usize, String> {
        let Self { pipes, poller, events, chunk, .. } = self;
        events.clear();
        let idle = rustix::time::Timespec::try_from(idle).expect("an idle time is short");
        match epoll::wait(&*poller, rustix::buffer::spare_capacity(events), Some(&idle)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(fault) => return Err(format!("epoll: {fault}")),
        }
        let mut answered = 0;
        for event in events.iter() {
            let pipe = usize::try_from(event.data.u64()).expect("an index of ours");
            answered += pipes[pipe].receive(chunk, look, requests, times)?;
        }
        Ok(answered)
    }
}

/// How long nothing is due, at most [`IDLE_MAX`].
fn until_due(begin: Instant, due_ns: Option<&u64>) -> Duration {
    let due = due_ns.map_or(IDLE_MAX, |&due| Duration::from_nanos(due.saturating_sub(nanos_since(begin))));
    due.min(IDLE_MAX)
}

impl Pipe {
    /// Appends a request to what is to be sent.
    fn stage(&mut self, index: usize, request: &[u8]) {
        self.is_staged = true;
        self.unsent.extend_from_slice(request);
        self.under_way.push_back(index);
    }

    /// Sends as much as there is room for; the rest waits here.
    fn flush(&mut self) -> Result<(), String> {
        self.is_staged = false;
        if self.unsent.is_empty() {
            return Ok(());
        }
        match self.stream.write(&self.unsent[self.sent..]) {
            Ok(count) => self.sent += count,
            Err(fault) if fault.kind() == ErrorKind::WouldBlock => {}
            Err(fault) => return Err(format!("a connection broke: {fault}")),
        }
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
        Ok(())
    }

    fn receive(
        &mut self,
        chunk: &mut [u8],
        look: &Look,
        requests: &[Request],
        times: &mut Times,
    ) -> Result<usize, String> {
        match self.stream.read(chunk) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
            Err(fault) if fault.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(fault) => return Err(format!("a connection broke: {fault}")),
        }
        let now = nanos_since(look.begin);
        let (mut used, mut answered) = (0, 0);
        while let Some(cut) = http::cut(&self.unread[used..])? {
            let reply = &self.unread[used..used + cut.bytes];
            let index = self.under_way.pop_front().ok_or("an answer to nothing that was asked")?;
            let request = &requests[index];
            if !request.expect.is(cut.status, &reply[cut.head_bytes..]) {
                return Err(wrong(request, reply));
            }
            times.answered_ns[index] = now;
            let gone_ns = times.sent_ns[index].saturating_add(times.away_ns[index]);
            times.away_ns[index] += now.saturating_sub(look.last_ns.max(gone_ns));
            if let Some((from, to)) = cut.timing {
                times.keep_timing(index, &reply[from..to]);
            }
            used += cut.bytes;
            answered += 1;
        }
        if used == self.unread.len() {
            self.unread.clear();
        } else {
            self.unread.drain(..used);
        }
        Ok(answered)
    }
}

#[cfg(test)]
impl Times {
    /// Times as tests state them.
    pub(crate) fn told(sent_ns: &[u64], answered_ns: &[u64], timings: &[&str], away_ns: &[u64]) -> Self {
        let mut times = Self::of(sent_ns.len());
        times.sent_ns.copy_from_slice(sent_ns);
        times.answered_ns.copy_from_slice(answered_ns);
        times.away_ns.copy_from_slice(away_ns);
        timings.iter().enumerate().for_each(|(index, timing)| times.keep_timing(index, timing.as_bytes()));
        times
    }
}

impl Times {
    fn keep_timing(&mut self, request: usize, value: &[u8]) {
        let value = &value[..value.len().min(TIMING_BYTES)];
        self.timings[request][..value.len()].copy_from_slice(value);
        self.timing_bytes[request] = u16::try_from(value.len()).expect("no longer than its room");
    }
}

fn wrong(request: &Request, reply: &[u8]) -> String {
    format!(
        "a wrong answer to a {}: expected {:?}, got {}\nthe request was {}",
        request.class.name(),
        request.expect,
        String::from_utf8_lossy(reply),
        String::from_utf8_lossy(&request.bytes)
    )
}

fn nanos_since(begin: Instant) -> u64 {
    crate::schedule::nanos(begin.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Class;
    use crate::workload::Expect;

    /// Answers `requests` requests together, once all of them have come.
    fn answer(listener: &std::net::TcpListener, requests: usize) {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut came, mut chunk) = (Vec::new(), [0; 1_024]);
        while memchr::memmem::find_iter(&came, b"\r\n\r\n").count() < requests {
            let count = stream.read(&mut chunk).unwrap();
            came.extend_from_slice(&chunk[..count]);
        }
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"status\":\"live\"}";
        stream.write_all(answer.repeat(requests).as_bytes()).unwrap();
    }

    #[test]
    fn what_the_server_says_of_each_request_has_its_room_before_the_clock_starts() {
        let longest = "x".repeat(TIMING_BYTES);
        for (value, kept) in [
            ("", None),
            ("recv;dur=0.0021", Some("recv;dur=0.0021")),
            (&longest, Some(longest.as_str())),
            (&(longest.clone() + "cut"), Some(longest.as_str())),
        ] {
            let mut times = Times::of(3);
            let memory = times.timings.as_ptr_range();
            // Answers come in any order.
            for request in [2, 0, 1] {
                times.keep_timing(request, value.as_bytes());
            }
            assert_eq!([0, 1, 2].map(|request| times.timing(request)), [kept; 3]);
            assert_eq!(times.timings.as_ptr_range(), memory, "nothing was copied elsewhere");
        }
    }

    #[test]
    fn a_server_still_answers_if_an_answer_came_shortly_before_the_client_gave_up() {
        let second = 1_000_000_000;
        for (answered_ns, gave_up_ns, is_still_answering) in [
            ([second, 2 * second], NEVER, false),
            ([second, NEVER], 16 * second, false),
            ([11 * second - 1, NEVER], 16 * second, false),
            ([11 * second, NEVER], 16 * second, true),
            ([NEVER, 16 * second], 16 * second, true),
            ([NEVER, NEVER], 16 * second, false),
        ] {
            let mut times = Times::told(&[0, 0], &answered_ns, &[], &[0, 0]);
            times.gave_up_ns = gave_up_ns;
            assert_eq!(times.is_still_answering(), is_still_answering, "{answered_ns:?}, {gave_up_ns}");
        }
    }

    #[test]
    fn the_longest_value_of_our_own_server_has_room() {
        let names = outcry::stats::Stage::ALL.map(outcry::stats::Stage::name);
        let stages = names.into_iter().chain(["total"]).map(|name| format!("{name};dur=99999.9999"));
        let value = stages.collect::<Vec<_>>().join(", ");
        assert!(value.len() <= TIMING_BYTES, "{} bytes: {value}", value.len());
    }

    #[test]
    fn requests_of_one_write_are_sent_at_one_moment_and_the_client_is_away_no_longer_than_they_took() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || answer(&listener, 3));
        let request = Request {
            class: Class::Place,
            connection: 0,
            bytes: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            expect: Expect::Rests,
        };
        let mut generator = Generator::connect(port, 1, Waits::Polls).unwrap();
        let times = generator.run(&vec![request; 3], &[0, 0, 0]).unwrap();
        server.join().unwrap();
        assert!(times.sent_ns.iter().all(|&sent_ns| sent_ns == times.sent_ns[0]), "{:?}", times.sent_ns);
        for index in 0..3 {
            let (sent_ns, answered_ns) = (times.sent_ns[index], times.answered_ns[index]);
            assert!(answered_ns != NEVER && times.away_ns[index] <= answered_ns - sent_ns, "{index}");
        }
    }
}
