//! The reader's role on its loop: frames in, reads out, nothing sooner than it may be known.
//!
//! Frames are applied up to the acknowledged mark and never beyond it. A read waits until what
//! had been acknowledged when it was read is applied; if that takes longer than
//! `Limits::read_wait_ms` it is answered 503 with `Retry-After`.
//!
//! Routes of wallets' owners live here too: who has an API key is checked before the reader is
//! asked, and acts on keys are sent to the registrar (`key_acts`).

use std::collections::VecDeque;
use std::sync::Arc;

use super::caller::{Caller, Callers, Window};
use super::core_loop::connection_word;
use super::ingress::SIGNATURES_PER_TURN;
use super::key_acts;
use super::message::{ActJob, ReadJob};
use crate::auth::Verifier;
use crate::domain::{Position, Reject, TimeMs};
use crate::http::respond::{self, ContentType, Extras, Response};
use crate::http::route::HostPrefixes;
use crate::http::{self, Class, Endpoint, Head, Method, Query, Route};
use crate::journal::layout::{Record, StateHash};
use crate::journal::{Follower, Log};
use crate::ledger::CHECKPOINT_FRAMES;
use crate::reader::{self, ReadRequest, Reader};

/// Frames applied in one turn.
const FRAMES_PER_TURN: usize = 256;
/// Reads answered in one turn.
const READS_PER_TURN: usize = 64;

/// What the reading role is made from.
pub(crate) struct Parts {
    /// The reader, as recovery left it.
    pub(crate) reader: Reader,
    /// What it goes on with.
    pub(crate) follower: Follower,
    /// Where state hashes go.
    pub(crate) log: Arc<Log>,
    /// How often they go there, in frames.
    pub(crate) hash_every_frames: u64,
    /// How many shards there are.
    pub(crate) shards: u16,
    /// Who calls.
    pub(crate) callers: Callers,
    /// Checks L1 requests.
    pub(crate) verifier: Verifier,
    /// How paths begin.
    pub(crate) prefixes: HostPrefixes,
}

/// The reader and the reads that wait for it.
pub(crate) struct Reading {
    pub(super) callers: Callers,
    pub(super) verifier: Verifier,
    reader: Reader,
    follower: Follower,
    log: Arc<Log>,
    hash_every_frames: u64,
    hashed_frames: u64,
    shards: u16,
    payload: Vec<u8>,
    prefixes: HostPrefixes,
    waiting: VecDeque<Box<ReadJob>>,
    done: VecDeque<Box<ReadJob>>,
    acts: VecDeque<Box<ActJob>>,
    body: Vec<u8>,
    signatures_left: usize,
}

/// What became of a read that was not answered at once.
pub(super) enum Read {
    /// The registrar is asked.
    Act(Box<ActJob>),
    /// There is no time for it in this turn.
    Later(Box<ReadJob>),
}

impl Reading {
    /// A reader that continues behind what recovery has applied.
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            callers: parts.callers,
            verifier: parts.verifier,
            reader: parts.reader,
            follower: parts.follower,
            log: parts.log,
            hash_every_frames: parts.hash_every_frames,
            // The first one comes at the first checkpoint, so that every start meets one soon.
            hashed_frames: 0,
            shards: parts.shards,
            payload: Vec::with_capacity(64),
            prefixes: parts.prefixes,
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            acts: VecDeque::new(),
            body: Vec::new(),
            signatures_left: SIGNATURES_PER_TURN,
        }
    }

    /// The reader itself.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Takes a request; it comes back by [`Self::next_done`].
    pub(crate) fn begin(&mut self, job: Box<ReadJob>) {
        self.waiting.push_back(job);
    }

    /// The next request that is answered.
    pub(crate) fn next_done(&mut self) -> Option<Box<ReadJob>> {
        self.done.pop_front()
    }

    /// The next act that must be sent to the registrar.
    pub(crate) fn next_act(&mut self) -> Option<Box<ActJob>> {
        self.acts.pop_front()
    }

    /// An act came back with its answer, which may leave when `at` is acknowledged.
    pub(crate) fn acted(&mut self, mut job: Box<ReadJob>, status: u16, body: &[u8], at: Position) {
        self.body.clear();
        self.body.extend_from_slice(body);
        job.at = at;
        self.finish(job, status);
    }

    /// The position that gives the reader work when it is acknowledged.
    pub(crate) fn awaits(&self) -> Position {
        Position(self.follower.position().0 + 1)
    }

    /// How far frames are applied.
    pub(crate) fn applied(&self) -> Position {
        self.follower.position()
    }

    /// True if a read can be answered without waiting for frames.
    pub(crate) fn has_work(&self) -> bool {
        self.waiting.front().is_some_and(|job| job.tag <= self.applied())
    }

    /// True if a read waits for frames.
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Applies frames and answers reads. Returns whether anything was done.
    pub(crate) fn work(&mut self, mark: Position, now: TimeMs, elapsed_ms: u64) -> bool {
        self.signatures_left = SIGNATURES_PER_TURN;
        let mut busy = self.follow(mark);
        for _ in 0..READS_PER_TURN {
            let applied = self.follower.position();
            let Some(job) = self.waiting.front() else {
                break;
            };
            if applied < job.tag && elapsed_ms < job.deadline_ms {
                break;
            }
            let job = self.waiting.pop_front().expect("just looked at");
            busy = true;
            if applied < job.tag {
                self.behind(job);
            } else if let Some(later) = self.answer(job, now) {
                self.waiting.push_front(later);
                break;
            }
        }
        busy
    }

    /// Applies what may be known. What the log says and cannot have happened is a bug of ours:
    /// nothing more may be served from this state.
    fn follow(&mut self, mark: Position) -> bool {
        for count in 0..FRAMES_PER_TURN {
            let frame = match self.follower.next(mark) {
                Ok(Some(frame)) => frame,
                Ok(None) => return count > 0,
                Err(fault) => panic!("the reader cannot follow the log: {fault:?}"),
            };
            let record =
                Record::decode(frame.kind, frame.payload).expect("frames are checked when they are read");
            let applied = self.reader.apply(frame.span.start, frame.span.end, &record);
            applied.unwrap_or_else(|contradiction| panic!("{contradiction}"));
            let frames = self.reader.ledger().frames();
            let due = frames - self.hashed_frames >= self.hash_every_frames;
            if due && frames.is_multiple_of(CHECKPOINT_FRAMES) {
                self.hashed_frames = frames;
                self.write_hash();
            }
        }
        true
    }

    /// Puts the state's hash into the log, for whoever replays it to meet. Left out when the log is
    /// short of room: orders and cancels need it more.
    fn write_hash(&mut self) {
        if !self.log.room_for_order(self.shards) {
            return;
        }
        let ledger = self.reader.ledger();
        self.payload.clear();
        StateHash { through: ledger.end(), hash: ledger.state_hash() }.encode(&mut self.payload);
        self.log.append(StateHash::KIND, &self.payload);
    }

    /// Answers a request; gives it back if there is no time for it in this turn.
    fn answer(&mut self, mut job: Box<ReadJob>, now: TimeMs) -> Option<Box<ReadJob>> {
        let bytes = std::mem::take(&mut job.bytes);
        let head = http::parse(&bytes, &http::Limits::DEFAULT);
        let head = head.expect("it was read before").expect("it was whole before");
        let body = &bytes[head.bytes..];
        let route = match http::route(head.method, head.path, Query::new(head.query), self.prefixes) {
            Ok(route) => route,
            Err(reason) => {
                respond::no_route(&mut job.answer, reason, connection_word(head.keep_alive));
                self.done.push_back(job);
                return None;
            }
        };
        self.body.clear();
        job.keep_alive = head.keep_alive;
        job.head_only = head.method == Method::Head;
        match self.read(&head, &route, body, now, job) {
            Ok((job, status)) => self.finish(job, status),
            Err(Read::Act(act)) => self.acts.push_back(act),
            Err(Read::Later(mut job)) => {
                job.bytes = bytes;
                return Some(job);
            }
        }
        None
    }

    fn read(
        &mut self,
        head: &Head<'_>,
        route: &Route<'_>,
        body: &[u8],
        now: TimeMs,
        job: Box<ReadJob>,
    ) -> Result<(Box<ReadJob>, u16), Read> {
        if route.class() == Class::L1 {
            if self.signatures_left == 0 {
                return Err(Read::Later(job));
            }
            self.signatures_left -= 1;
            return key_acts::of_wallet(self, head, route.endpoint, now, job);
        }
        let caller = if route.class() == Class::Account {
            let window = if key_acts::is_one(route.endpoint) { Window::Write } else { Window::Read };
            match self.callers.check(head, route, body, now, window) {
                Ok(caller) => Some(caller),
                Err(reject) => {
                    let status = self.refuse(reject);
                    return Ok((job, status));
                }
            }
        } else {
            None
        };
        if let Some(caller) = &caller
            && key_acts::is_one(route.endpoint)
        {
            return Err(Read::Act(Box::new(key_acts::of_key(caller, head, route.endpoint, job))));
        }
        let request = ReadRequest {
            endpoint: route.endpoint,
            capture: route.capture,
            query: Query::new(head.query),
            body,
            caller: caller.as_ref().map(of_reader),
            now,
        };
        let status = self.reader.answer(&request, &mut self.body);
        Ok((job, status))
    }

    /// Writes a refusal as the body and returns its status.
    pub(super) fn refuse(&mut self, reject: Reject) -> u16 {
        let wire = reject.wire();
        self.body.clear();
        let text = format!("{{\"error\":\"{}\",\"code\":\"{}\"}}", wire.error, wire.code);
        self.body.extend_from_slice(text.as_bytes());
        wire.status
    }

    /// The reader has not applied what this client was told of.
    fn behind(&mut self, job: Box<ReadJob>) {
        self.body.clear();
        self.body
            .extend_from_slice(b"{\"error\":\"the read model is behind, try again\",\"code\":\"behind\"}");
        self.finish(job, 503);
    }

    /// Puts head and body together.
    fn finish(&mut self, mut job: Box<ReadJob>, status: u16) {
        let extras = Extras {
            connection: connection_word(job.keep_alive),
            seq: Some(self.follower.position().0),
            retry_after_s: (status == 503).then_some(1),
            ..Extras::default()
        };
        let response = Response::begin(&mut job.answer, status, ContentType::Json, &extras);
        job.answer.extend_from_slice(&self.body);
        if job.head_only {
            response.finish_without_body(&mut job.answer);
        } else {
            response.finish(&mut job.answer);
        }
        self.done.push_back(job);
    }
}

fn of_reader(caller: &Caller) -> reader::Caller {
    reader::Caller { principal: caller.principal, key: caller.api_key, dialect: caller.dialect }
}

/// Endpoints whose answers are acts: they are waited for by reads behind them.
pub(crate) fn changes_state(endpoint: Endpoint) -> bool {
    endpoint.class() == Class::L1 || key_acts::is_one(endpoint)
}
