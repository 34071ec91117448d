//! The reader's role on its loop: frames in, reads out, nothing sooner than it may be known.
//!
//! Frames are applied up to the acknowledged mark and never beyond it. A read waits until the highest position that any
//! client had been told when its request was read is applied; if that takes longer than `READ_WAIT_MS` of the loop it is
//! answered 503 with `Retry-After`.
//!
//! Account routes are here too: API keys are checked before the reader is asked, and acts on keys are sent to the
//! registrar.
//!
//! | file | what it knows |
//! |---|---|
//! | `followed` | the state as far as the loop has followed the log, and the streams that are told of it |
//! | `follows` | what a loop follows the log with: this role, or the feed alone |
//! | `searching`, `searcher` | searches as the loop sees them, and the thread that does them |
//! | `waiting` | whose read is next |
//! | `key_acts` | what key-holders do to their keys |
//! | `errors` | the catalogue of errors |

pub(super) mod errors;
pub(super) mod followed;
pub(super) mod follows;
mod key_acts;
pub(super) mod searcher;
pub(super) mod searching;
pub(super) mod waiting;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::core_loop::connection_word;
use super::requests::caller::Caller;
use super::requests::explain::{self, Judged};
use super::requests::toll::{self, Toll};
use super::threads::mesh::POST_SLOTS;
use super::threads::message::{ActJob, ReadJob, Said};
use super::trading::SIGNATURES_PER_TURN;
use crate::auth::Verifier;
use crate::catalog::search::Query as Search;
use crate::domain::{Dialect, Position, Reject, TimeMs};
use crate::http::respond::{self, ContentType, Extras, Response};
use crate::http::route::HostPrefixes;
use crate::http::{self, Class, Endpoint, Head, Query, Route};
use crate::journal::Log;
use crate::journal::layout::StateHash;
use crate::json::Writer;
use crate::json::answer::{self, Refusal};
use crate::ledger::{CHECKPOINT_FRAMES, HASH_LAG_BYTES_MAX, Ledger};
use crate::reader::{self, ReadRequest, Reader};
use followed::Followed;
use searching::{Late, Searching};
use waiting::Waiting;

/// Unreadable places that are reported one by one; later ones are only counted.
const UNREADABLE_SAID_MAX: usize = 100;
/// Requests of the loop's own clients that are not answered: as many as another loop may send. More stay in their
/// connections' buffers, which are bounded.
const OWN_MAX: usize = POST_SLOTS;
/// Requests that are held by the limits of their owners. One more is answered 429 instead. Each holds a letter of its
/// loop, and a place of its address, until then, and one key alone could have all of those held.
const HELD_MAX: usize = 32;
/// Reads answered in one turn.
const READS_PER_TURN: usize = 64;
/// When no other read of a turn is begun: its loop has also streams to write, clients to let in, and an operator.
const READS_TIME: Duration = Duration::from_millis(1);

/// What the reading role is made from.
pub(crate) struct Parts {
    /// The state, as recovery left it.
    pub(crate) followed: Followed,
    /// Where state hashes go.
    pub(crate) log: Arc<Log>,
    /// Frames between two state hashes.
    pub(crate) hash_every_frames: u64,
    /// How many shards there are.
    pub(crate) shards: u16,
    /// Checks L1 requests.
    pub(crate) verifier: Verifier,
    /// How paths begin.
    pub(crate) prefixes: HostPrefixes,
    /// Where searches go.
    pub(crate) searching: Searching,
    /// The loop that it is for.
    pub(crate) home: usize,
    /// Refused credentials are explained.
    pub(crate) explains: bool,
}

/// The reader and the reads that wait for it.
pub(crate) struct Reading {
    followed: Followed,
    verifier: Verifier,
    hashes: Hashes,
    prefixes: HostPrefixes,
    searching: Searching,
    waiting: Waiting<Box<ReadJob>>,
    /// Requests whose owners' limits have no room yet.
    held: VecDeque<Box<ReadJob>>,
    /// The loop that this is on.
    home: usize,
    /// Requests of its own clients that are not answered.
    own_count: usize,
    done: VecDeque<Box<ReadJob>>,
    acts: VecDeque<Box<ActJob>>,
    body: Vec<u8>,
    signatures_left: usize,
    unreadable: u64,
    unreadable_said: BTreeSet<Box<str>>,
    /// Refused credentials are explained: `dev` only.
    explains: bool,
}

/// What became of a read.
enum Read {
    /// It has its whole answer.
    Written(Box<ReadJob>),
    /// It has a body, in [`Reading::body`], and a status, and gets its head now.
    Body(Box<ReadJob>, u16),
    /// The registrar is asked.
    Act(Box<ActJob>),
    /// There is no time for it in this turn.
    Later(Box<ReadJob>),
    /// Not before its limit has room for it.
    Held(Box<ReadJob>),
    /// The search thread is asked.
    Search(Box<ReadJob>, Box<Search>),
}

impl Reading {
    /// A reader that continues after what recovery has applied.
    pub(crate) fn new(parts: Parts) -> Self {
        let hashes = Hashes {
            log: parts.log,
            every_frames: parts.hash_every_frames,
            // The first hash comes at the first checkpoint, so that every run writes one soon.
            hashed_frames: 0,
            shards: parts.shards,
            payload: Vec::with_capacity(64),
        };
        Self {
            followed: parts.followed,
            verifier: parts.verifier,
            hashes,
            prefixes: parts.prefixes,
            searching: parts.searching,
            waiting: Waiting::new(),
            held: VecDeque::new(),
            home: parts.home,
            own_count: 0,
            done: VecDeque::new(),
            acts: VecDeque::new(),
            body: Vec::new(),
            signatures_left: SIGNATURES_PER_TURN,
            unreadable: 0,
            unreadable_said: BTreeSet::new(),
            explains: parts.explains,
        }
    }

    /// The reader itself.
    pub(crate) fn reader(&self) -> &Reader {
        &self.followed.reader
    }

    /// Takes a request; it comes back by [`Self::next_done`].
    pub(crate) fn begin(&mut self, job: Box<ReadJob>) {
        self.own_count += usize::from(job.origin == self.home);
        self.waiting.push(job);
    }

    /// The next request that is answered.
    pub(crate) fn next_done(&mut self) -> Option<Box<ReadJob>> {
        let job = self.done.pop_front()?;
        self.own_count -= usize::from(job.origin == self.home);
        Some(job)
    }

    /// Whether it takes one more request of this loop's own clients.
    pub(crate) const fn has_room(&self) -> bool {
        self.own_count < OWN_MAX
    }

    /// Requests of this loop's own clients that are not answered.
    pub(crate) const fn own_count(&self) -> usize {
        self.own_count
    }

    /// The next act that must be sent to the registrar.
    pub(crate) fn next_act(&mut self) -> Option<Box<ActJob>> {
        self.acts.pop_front()
    }

    /// An act came back with its answer, which may leave when `at` is acknowledged.
    pub(crate) fn acted(&mut self, mut job: Box<ReadJob>, said: &Said, at: Position) {
        self.body.clear();
        self.body.extend_from_slice(&said.body);
        job.at = at;
        let retry_after_s = said.retry_after_s.or(job.toll.retry_after_s());
        self.finish_later(job, said.status, retry_after_s);
    }

    /// How far frames are applied.
    pub(crate) fn applied(&self) -> Position {
        self.followed.applied()
    }

    /// How many requests were not answered because part of the history cannot be read.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// True if a read can be answered without waiting for frames, a search can go on, or orders can leave memory.
    pub(crate) fn has_work(&self) -> bool {
        self.waiting.any(|job| job.tag <= self.applied())
            || self.searching.has_work()
            || self.followed.can_shed()
    }

    /// True if a read waits for frames, or for what it searches.
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty() || !self.held.is_empty() || self.searching.waits()
    }

    /// Applies frames and answers reads. Returns whether anything was done.
    pub(crate) fn work(&mut self, mark: Position, now: TimeMs, elapsed_ms: u64) -> bool {
        self.signatures_left = SIGNATURES_PER_TURN;
        self.release_held();
        self.searching.begin_turn(elapsed_ms);
        let mut busy = self.follow(mark, now);
        let began = Instant::now();
        let mut last = began;
        for _ in 0..READS_PER_TURN {
            if READS_TIME < last.duration_since(began) {
                break;
            }
            let applied = self.applied();
            let ready = self.waiting.pop(|job| job.tag <= applied || job.deadline_ms <= elapsed_ms);
            let Some(job) = ready else {
                break;
            };
            let address = job.toll.address();
            busy = true;
            let later = if applied < job.tag {
                self.answer_late(job);
                None
            } else {
                self.answer(job, now)
            };
            let answered = Instant::now();
            self.waiting.took(address, answered.duration_since(last));
            last = answered;
            if let Some(later) = later {
                self.waiting.put_back(later);
                break;
            }
        }
        busy |= self.followed.shed();
        busy | self.search(now)
    }

    /// Queues the requests that were held long enough.
    fn release_held(&mut self) {
        for _ in 0..self.held.len() {
            let mut job = self.held.pop_front().expect("they were just counted");
            let over = job.toll.release(self.followed.callers.moment);
            if over { self.waiting.push(job) } else { self.held.push_back(job) }
        }
    }

    /// Sends the search thread what it has to know, and answers the searches that it has done.
    fn search(&mut self, now: TimeMs) -> bool {
        let mut busy = self.searching.send(&self.followed.reader);
        let began = Instant::now();
        while began.elapsed() < READS_TIME
            && let Some((job, found)) = self.searching.next_done()
        {
            busy = true;
            match found {
                Some(found) => {
                    self.body.clear();
                    self.followed.reader.write_found(&found, now, &mut self.body);
                    self.finish(job, 200);
                }
                None => self.busy_searching(job),
            }
        }
        busy
    }

    /// True once everything can be found.
    pub(crate) fn search_is_complete(&self) -> bool {
        self.searching.is_complete()
    }

    /// Answers 503: there are too many searches, or the index is not built yet.
    fn busy_searching(&mut self, job: Box<ReadJob>) {
        let (error, code, seconds) = match self.searching.late() {
            Late::Building { seconds } => ("the search index is being built", "search_building", seconds),
            Late::Busy => ("search is busy, try again", "search_busy", 1),
        };
        self.body.clear();
        let text = format!(
            "{{\"type\":\"service unavailable\",\"error\":\"{error}\",\"code\":\"{code}\",\"retry_after_seconds\":{seconds}}}"
        );
        self.body.extend_from_slice(text.as_bytes());
        self.finish_later(job, 503, Some(seconds));
    }

    /// Applies frames up to `mark`; returns whether there were any.
    pub(crate) fn follow(&mut self, mark: Position, now: TimeMs) -> bool {
        let Self { followed, searching, hashes, .. } = self;
        followed.follow(mark, now, |record, reader| {
            searching.note(record, reader);
            hashes.follow(reader.ledger());
        })
    }

    /// Answers a request; gives it back if there is no time for it in this turn.
    fn answer(&mut self, mut job: Box<ReadJob>, now: TimeMs) -> Option<Box<ReadJob>> {
        let bytes = std::mem::take(&mut job.bytes);
        let head = http::parse(&bytes, &http::Limits::SERVED);
        let head = head.expect("it was read before").expect("it was whole before");
        let body = &bytes[head.bytes..];
        let route = http::route(head.method, head.host, head.path, Query::new(head.query), self.prefixes);
        let route = route.expect("it had one before");
        self.body.clear();
        match self.read(&head, &route, body, now, job) {
            Read::Body(job, status) => self.finish(job, status),
            Read::Written(job) => self.done.push_back(job),
            Read::Act(act) => self.acts.push_back(act),
            Read::Search(job, query) => {
                if let Err(job) = self.searching.begin(job, *query) {
                    self.busy_searching(job);
                }
            }
            Read::Later(mut job) => {
                job.bytes = bytes;
                return Some(job);
            }
            Read::Held(mut job) => {
                job.bytes = bytes;
                self.held.push_back(job);
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
    ) -> Read {
        if route.class() == Class::L1 {
            if self.signatures_left == 0 {
                return Read::Later(job);
            }
            self.signatures_left -= 1;
            return key_acts::of_wallet(self, head, route.endpoint, now, job);
        }
        let (caller, job) = match self.admit(head, route, body, now, job) {
            Ok(admitted) => admitted,
            Err(read) => return read,
        };
        if route.endpoint == Endpoint::Limits {
            let mut json = Writer::new(&mut self.body);
            toll::write(json.open_object(), self.followed.callers.limits());
            json.close_object();
            return Read::Body(job, 200);
        }
        let request = ReadRequest {
            endpoint: route.endpoint,
            capture: route.capture,
            query: Query::new(head.query),
            body,
            caller: caller.as_ref().map(of_reader),
            now,
        };
        if let Some(caller) = &caller
            && key_acts::is_one(route.endpoint)
        {
            return self.key_act(&request, caller, job);
        }
        if route.endpoint == Endpoint::ValidateReadonlyKey {
            let valid = reader::read_shown_key(&request, &mut self.body).map(|(address, key)| {
                let valid = self.followed.callers.is_readonly_key(&address, &key);
                self.body.extend_from_slice(format!("{{\"valid\":{valid}}}").as_bytes());
            });
            return Read::Body(job, valid.err().unwrap_or(200));
        }
        if route.endpoint == Endpoint::Errors {
            self.body.extend_from_slice(&errors::JSON);
            return Read::Body(job, 200);
        }
        if route.endpoint == Endpoint::Search {
            return match self.followed.reader.read_search(&request, &mut self.body) {
                Ok(query) => Read::Search(job, Box::new(query)),
                Err(status) => Read::Body(job, status),
            };
        }
        self.write(&request, job)
    }

    /// Who asks, if the route is for a key-holder; the error is what becomes of a request that is not let in.
    fn admit(
        &mut self,
        head: &Head<'_>,
        route: &Route<'_>,
        body: &[u8],
        now: TimeMs,
        mut job: Box<ReadJob>,
    ) -> Result<(Option<Caller>, Box<ReadJob>), Read> {
        if route.class() != Class::Account {
            return Ok((None, job));
        }
        if self.held.len() == HELD_MAX {
            job.toll.cannot_be_held();
        }
        match self.followed.callers.check(head, route, body, now, &mut job.toll) {
            Ok(caller) => Ok((Some(caller), job)),
            Err(_) if job.toll.held().is_some() => Err(Read::Held(job)),
            Err(reject) => {
                let judged = Judged { now, window_s: self.followed.callers.window_s(route.endpoint) };
                let explain = (self.explains && reject == Reject::Unauthorized).then(|| {
                    let found = self.followed.callers.explain(head, route, body, now);
                    explain::presenting(&found, head, route, body, judged)
                });
                let status = self.refuse((reject, head.dialect()), &job.toll, explain.as_deref());
                Err(Read::Body(job, status))
            }
        }
    }

    /// A key-holder's act on keys, which the registrar is asked for.
    fn key_act(&mut self, request: &ReadRequest<'_>, caller: &Caller, job: Box<ReadJob>) -> Read {
        let act = match request.endpoint {
            Endpoint::ApiKeys => key_acts::list(caller, &request.query, job),
            Endpoint::ApiKeyRevoke => match reader::read_revoked_key(request, &mut self.body) {
                Ok(meant) => key_acts::revoke(caller, meant.unwrap_or(caller.api_key), job),
                Err(status) => return Read::Body(job, status),
            },
            Endpoint::ReadonlyKeyRevoke => {
                match self.followed.reader.read_key(request.body, &mut self.body) {
                    Ok(meant) => key_acts::of_readonly(caller, request.endpoint, Some(meant), job),
                    Err(status) => return Read::Body(job, status),
                }
            }
            endpoint => key_acts::of_readonly(caller, endpoint, None, job),
        };
        Read::Act(Box::new(act))
    }

    /// Writes an answer in place after the head that nearly all answers have. If its status needs another head, its
    /// body is left in `self.body` for the caller.
    fn write(&mut self, request: &ReadRequest<'_>, mut job: Box<ReadJob>) -> Read {
        let extras = Extras { book: self.followed.book_mark(request), ..self.extras(&job) };
        let response = Response::begin(&mut job.answer, 200, ContentType::Json, &extras);
        let body_at = job.answer.len();
        let status = self.followed.reader.answer(request, &mut job.answer);
        self.note_unreadable();
        if status == 200 {
            response.finish(&mut job.answer);
            return Read::Written(job);
        }
        self.body.extend_from_slice(&job.answer[body_at..]);
        job.answer.clear();
        Read::Body(job, status)
    }

    /// Reports what could not be read, each place once: clients may ask for it as often as they like.
    fn note_unreadable(&mut self) {
        let Some(fault) = self.followed.reader.take_unreadable() else {
            return;
        };
        self.unreadable += 1;
        if self.unreadable_said.len() < UNREADABLE_SAID_MAX && !self.unreadable_said.contains(&fault) {
            tracing::error!("a request is answered 500: {fault}");
            self.unreadable_said.insert(fault);
        }
    }

    /// Writes a refusal as the body and returns its status.
    fn refuse(&mut self, (reject, dialect): (Reject, Dialect), toll: &Toll, explain: Option<&[u8]>) -> u16 {
        self.body.clear();
        let refusal = Refusal { explain, dialect, ..toll.refusal(reject) };
        answer::refused(&mut Writer::new(&mut self.body), &refusal);
        refusal.status()
    }

    /// Answers 503: the reader has not applied what some client was told.
    fn answer_late(&mut self, job: Box<ReadJob>) {
        self.body.clear();
        let status = reader::write_behind(&mut self.body);
        self.finish(job, status);
    }

    /// Puts head and body together.
    fn finish(&mut self, job: Box<ReadJob>, status: u16) {
        let retry_after_s = respond::retry_after_s(status).or(job.toll.retry_after_s());
        self.finish_later(job, status, retry_after_s);
    }

    /// Puts head and body together, with the seconds after which the client should ask again.
    fn finish_later(&mut self, mut job: Box<ReadJob>, status: u16, retry_after_s: Option<u32>) {
        let extras = Extras { retry_after_s, ..self.extras(&job) };
        let response = Response::begin(&mut job.answer, status, ContentType::Json, &extras);
        job.answer.extend_from_slice(&self.body);
        response.finish(&mut job.answer);
        self.done.push_back(job);
    }

    /// The headers that every answer has.
    fn extras(&self, job: &ReadJob) -> Extras<'static> {
        let seq = Some(self.applied().max(job.at).0);
        let rate_limit = job.toll.head();
        Extras { connection: connection_word(job.keep_alive), seq, rate_limit, ..Extras::default() }
    }
}

/// The state's hashes on their way into the log.
struct Hashes {
    log: Arc<Log>,
    every_frames: u64,
    hashed_frames: u64,
    shards: u16,
    payload: Vec<u8>,
}

impl Hashes {
    /// Puts the state's hash into the log if it is time for one, for whoever replays it to meet. Left out when the log
    /// is short of room, because orders and cancels need it more, and when `ledger` lags so far that a replay may have
    /// forgotten the state which it is of.
    fn follow(&mut self, ledger: &Ledger) {
        let frames = ledger.frames();
        if frames - self.hashed_frames < self.every_frames || !frames.is_multiple_of(CHECKPOINT_FRAMES) {
            return;
        }
        self.hashed_frames = frames;
        let lag_bytes = self.log.claimed().0 - ledger.end().0;
        if HASH_LAG_BYTES_MAX <= lag_bytes || !self.log.room_for_order(self.shards) {
            return;
        }
        self.payload.clear();
        StateHash { through: ledger.end(), hash: ledger.state_hash() }.encode(&mut self.payload);
        self.log.append(StateHash::KIND, &self.payload);
    }
}

fn of_reader(caller: &Caller) -> reader::Caller {
    reader::Caller { principal: caller.principal, key: caller.api_key, dialect: caller.dialect }
}

/// Endpoints that change state: later reads of the same client wait for them.
pub(crate) fn changes_state(endpoint: Endpoint) -> bool {
    endpoint.class() == Class::L1 || key_acts::is_one(endpoint)
}
