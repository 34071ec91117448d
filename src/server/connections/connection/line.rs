//! Open requests in their order, and the bytes that leave.

use std::collections::VecDeque;

use super::KEPT_BYTES_MAX;
use crate::domain::Position;
use crate::registrar::KeyOfOwner;
use crate::server::connections::held::{SMALL_BYTES_MAX, Share};
use crate::server::requests::pages::{Page, Pages};
use crate::server::requests::toll::Toll;
use crate::server::threads::tally::Tally;
use crate::server::trading::timing;
use crate::server::trading::work::WorkNo;
use crate::stats::{Laps, Stage};

/// Open requests per connection; more stay unread.
pub(crate) const OPEN_MAX: usize = 32;
/// Bytes of unsent answers per connection, open reads counted with a guess; above it the socket is not read.
pub(crate) const UNSENT_BYTES_MAX: usize = 256 << 10;
/// The lowest guess of a read's answer, so that small answers do not let in many large ones at once.
const LEAST_GUESS_BYTES: usize = UNSENT_BYTES_MAX / 8;
/// The guess for a connection's first read, which is open alone until its answer is known.
const FIRST_GUESS_BYTES: usize = UNSENT_BYTES_MAX + 1;
/// Bytes of a new answer's buffer.
const ANSWER_BYTES: usize = 1 << 10;
/// Buffers that are kept for answers: one for each place, or fewer of which some are larger.
const SPARES_MAX: usize = OPEN_MAX;
/// What they have together.
pub(super) const SPARES_BYTES_MAX: usize = SPARES_MAX * ANSWER_BYTES;
/// An answer of this size that leaves alone is swapped into the output instead of copied.
const SWAPPED_BYTES_MIN: usize = 4 << 10;

/// How far the answer of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Somebody is working on it.
    Waiting,
    /// It is written and may leave when this position is acknowledged.
    Ready(Position),
}

#[derive(Debug)]
struct Open {
    state: State,
    answer: Vec<u8>,
    /// The answer's bytes; the guess while a read waits.
    held_bytes: usize,
    timed: Timed,
    /// It is of a HEAD request.
    head_only: bool,
    /// The page that may read it.
    page: Option<Page>,
}

/// Cuts an answer down to its head, and gives back what a large body took.
fn keep_head(answer: &mut Vec<u8>) {
    const END: &[u8] = b"\r\n\r\n";
    if let Some(at) = answer.windows(END.len()).position(|bytes| bytes == END) {
        answer.truncate(at + END.len());
        answer.shrink_to(KEPT_BYTES_MAX);
    }
}

/// What is known of the time that a request takes, from the moment its bytes were there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timed {
    /// Nothing.
    No,
    /// A read, which came at this moment.
    Read { came_ns: u64 },
    /// A trading request.
    Trade {
        /// What its time went to.
        laps: Laps,
        /// Where in its answer the value of `Server-Timing` ends, if it has one.
        timing_end: Option<usize>,
    },
}

/// Open requests in their order, and the bytes that leave.
#[derive(Debug)]
pub(crate) struct Line {
    output: Vec<u8>,
    sent: usize,
    /// Buffers for answers, which have at most [`SPARES_BYTES_MAX`] together. The one that is used next is the last, so the
    /// first ones stay small.
    spares: VecDeque<Vec<u8>>,
    /// The large buffer that the loop's connections share, while somebody works on this one.
    lent: Vec<u8>,
    open: Box<[Open]>,
    /// The sum over open requests.
    held_bytes: usize,
    /// The part of it that is written.
    ready_bytes: usize,
    /// The bytes that it counts for in its [`Share`].
    counted_bytes: usize,
    /// The guess of the next read's answer: the last answer's bytes or half the last guess, whichever is more.
    guess_bytes: usize,
    first: u32,
    next: u32,
    /// The number after the newest open request that changes state.
    behind_writes: u32,
    /// The number after the newest open act on keys.
    behind_key_acts: u32,
    /// The newest trading request of this client: its place among the works of the loop.
    pub(crate) last_work: Option<WorkNo>,
    /// The key whose orders are cancelled when the connection is lost.
    pub(crate) answers_for: Option<KeyOfOwner>,
    /// What the request at the front of the buffer has paid.
    pub(crate) toll: Toll,
    /// The request at the front of the buffer came by a proxy, whose connections many share.
    pub(crate) is_shared: bool,
    /// The page that the request at the front of the buffer comes from, if it may read the answer.
    pub(crate) page: Option<Page>,
    /// The request at the front of the buffer is whole and costs curve operations, so that it need not be
    /// parsed again while it waits for its turn.
    pub(crate) signs: bool,
    /// When the bytes at the front of the buffer came.
    pub(crate) came_ns: u64,
    /// The laps of the request at the front of the buffer, once it was seen.
    pub(crate) laps: Laps,
}

/// Whether a request changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// It only reads.
    Read,
    /// It changes something; a later read waits for its answer.
    Write,
}

impl Line {
    /// What its lists take.
    pub(super) const LISTS_BYTES: usize = OPEN_MAX * size_of::<Open>() + SPARES_MAX * size_of::<Vec<u8>>();

    pub(super) fn new() -> Self {
        let open = (0..OPEN_MAX).map(|_| Open {
            state: State::Waiting,
            answer: Vec::new(),
            held_bytes: 0,
            timed: Timed::No,
            head_only: false,
            page: None,
        });
        Self {
            output: Vec::new(),
            sent: 0,
            spares: VecDeque::with_capacity(SPARES_MAX),
            lent: Vec::new(),
            open: open.collect(),
            held_bytes: 0,
            ready_bytes: 0,
            counted_bytes: 0,
            guess_bytes: FIRST_GUESS_BYTES,
            first: 0,
            next: 0,
            behind_writes: 0,
            behind_key_acts: 0,
            last_work: None,
            answers_for: None,
            toll: Toll::default(),
            is_shared: false,
            page: None,
            signs: false,
            came_ns: 0,
            laps: Laps::default(),
        }
    }

    pub(super) fn reset(&mut self) {
        self.output = Vec::new();
        self.open.iter_mut().for_each(|open| open.answer = Vec::new());
        self.spares.clear();
        (self.held_bytes, self.ready_bytes) = (0, 0);
        self.guess_bytes = FIRST_GUESS_BYTES;
        self.sent = 0;
        self.first = 0;
        self.next = 0;
        self.behind_writes = 0;
        self.behind_key_acts = 0;
        self.last_work = None;
        self.answers_for = None;
        self.came_ns = 0;
        self.forget_front();
    }

    /// The request at the front of the buffer is taken; what is known of it does not hold for the next.
    pub(crate) fn forget_front(&mut self) {
        self.toll = Toll::default();
        self.page = None;
        self.signs = false;
        self.laps = Laps::default();
    }

    /// True if one more request may be open.
    pub(crate) fn has_room(&self) -> bool {
        self.open_count() < OPEN_MAX && self.unsent() + self.held_bytes <= UNSENT_BYTES_MAX
    }

    /// True while a request that changes state is not answered.
    pub(crate) fn writes_open(&self) -> bool {
        self.is_open_before(self.behind_writes)
    }

    /// True while an act on keys is not answered.
    pub(crate) fn key_acts_open(&self) -> bool {
        self.is_open_before(self.behind_key_acts)
    }

    /// True if the request before this number is open. That may be long ago: a line may see more than half of all
    /// numbers after its last act, so the sign of a difference would not tell.
    fn is_open_before(&self, number: u32) -> bool {
        let from_first = number.wrapping_sub(self.first) as usize;
        0 < from_first && from_first <= self.open_count()
    }

    /// True if nothing is open and nothing is unsent.
    pub(crate) fn is_idle(&self) -> bool {
        self.first == self.next && self.unsent() == 0
    }

    /// How many requests are not answered yet.
    pub(crate) fn open_count(&self) -> usize {
        self.next.wrapping_sub(self.first) as usize
    }

    /// The number that the next request gets.
    pub(crate) fn next_number(&self) -> u32 {
        self.next
    }

    /// Cuts the answer of a HEAD request down to its head, now or when it is written.
    pub(crate) fn drop_body(&mut self, number: u32) {
        if let Some(answer) = self.answer(number) {
            keep_head(answer);
            self.place(number).head_only = true;
        }
    }

    /// Takes a place in the line for an act on keys and returns its number.
    pub(crate) fn open_key_act(&mut self) -> u32 {
        let number = self.open(Intent::Write);
        self.behind_key_acts = self.next;
        number
    }

    /// Takes a place in the line and returns the request's number.
    pub(crate) fn open(&mut self, intent: Intent) -> u32 {
        assert!(self.open_count() < OPEN_MAX, "may_open was asked first");
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let guess_bytes = match intent {
            Intent::Read => self.guess_bytes.max(LEAST_GUESS_BYTES),
            Intent::Write => 0,
        };
        if intent == Intent::Write {
            self.behind_writes = self.next;
        }
        self.held_bytes += guess_bytes;
        let page = self.page;
        let is_large =
            intent == Intent::Read && (KEPT_BYTES_MAX + 1..FIRST_GUESS_BYTES).contains(&self.guess_bytes);
        let answer = if is_large {
            let mut large = std::mem::take(&mut self.lent);
            // One that is a little longer than the last does not double it.
            let expected = self.guess_bytes + self.guess_bytes / 8;
            large.reserve_exact(expected.min(SMALL_BYTES_MAX));
            large
        } else {
            self.spares.pop_back().unwrap_or_else(|| Vec::with_capacity(ANSWER_BYTES))
        };
        let place = self.place(number);
        place.state = State::Waiting;
        place.held_bytes = guess_bytes;
        place.timed = Timed::No;
        place.head_only = false;
        place.page = page;
        place.answer = answer;
        number
    }

    /// Where the answer of request `number` is written; `None` if nobody waits for it.
    pub(crate) fn answer(&mut self, number: u32) -> Option<&mut Vec<u8>> {
        if number.wrapping_sub(self.first) as usize >= self.open_count() {
            return None;
        }
        Some(&mut self.place(number).answer)
    }

    /// The answer of request `number` is written and may leave when `at` is acknowledged.
    pub(crate) fn ready(&mut self, number: u32, at: Position) {
        assert!(
            (number.wrapping_sub(self.first) as usize) < self.open_count(),
            "only open requests are answered"
        );
        let place = self.place(number);
        place.state = State::Ready(at);
        if place.head_only {
            keep_head(&mut place.answer);
        }
        let (bytes, guessed) = (place.answer.len(), place.held_bytes);
        place.held_bytes = bytes;
        self.held_bytes = self.held_bytes - guessed + bytes;
        self.ready_bytes += bytes;
        if 0 < guessed {
            self.guess_bytes = bytes.max(self.guess_bytes / 2);
        }
    }

    /// Notes what is known of the time that request `number` takes.
    pub(crate) fn timed(&mut self, number: u32, timed: Timed) {
        self.place(number).timed = timed;
    }

    /// Moves the answers that may leave to the output, counts them and records their times. Returns the highest
    /// position that was released.
    pub(crate) fn release(
        &mut self,
        mark: Position,
        now_ns: u64,
        tally: &Tally,
        pages: &Pages,
    ) -> Option<Position> {
        let (mut highest, oldest) = (None, self.first);
        while self.first != self.next {
            let index = self.first as usize % OPEN_MAX;
            let State::Ready(at) = self.open[index].state else {
                break;
            };
            if mark < at {
                break;
            }
            highest = highest.max(Some(at));
            self.held_bytes -= self.open[index].held_bytes;
            self.ready_bytes -= self.open[index].held_bytes;
            let Open { answer, timed, page, .. } = &mut self.open[index];
            match timed {
                Timed::No => {}
                Timed::Read { came_ns } => tally.reads.record(now_ns.saturating_sub(*came_ns)),
                Timed::Trade { laps, timing_end } => {
                    laps.lap(Stage::Journal, now_ns);
                    tally.answered(laps);
                    if let Some(end) = *timing_end {
                        timing::fill_in(answer, end, laps);
                    }
                }
            }
            // More lines for a page go behind the first one.
            let lines = page.map_or("", |page| pages.lines(page));
            let at = if lines.is_empty() { 0 } else { first_line_bytes(answer) };
            if self.output.is_empty() && SWAPPED_BYTES_MIN <= answer.len() {
                answer.reserve_exact(lines.len());
                answer.splice(at..at, lines.bytes());
                std::mem::swap(&mut self.output, answer);
            } else {
                for piece in [&answer[..at], lines.as_bytes(), &answer[at..]] {
                    self.output.extend_from_slice(piece);
                }
            }
            let buffer = std::mem::take(answer);
            self.give_back(buffer);
            self.first = self.first.wrapping_add(1);
        }
        if self.first != oldest {
            tally.answers.add(u64::from(self.first.wrapping_sub(oldest)));
        }
        highest
    }

    /// The position that the oldest open request's answer waits for, once it is written.
    pub(crate) fn waits_for_mark(&self) -> Option<Position> {
        if self.first == self.next {
            return None;
        }
        match self.open[self.first as usize % OPEN_MAX].state {
            State::Ready(at) => Some(at),
            State::Waiting => None,
        }
    }

    /// What is to be sent.
    pub(crate) fn to_send(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// `count` bytes were sent.
    pub(crate) fn was_sent(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.output.len(), "only what there is can be sent");
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
            if self.output.capacity() > KEPT_BYTES_MAX {
                let next = self.spares.pop_back().unwrap_or_default();
                let buffer = std::mem::replace(&mut self.output, next);
                self.give_back(buffer);
            }
        } else if KEPT_BYTES_MAX < self.sent && 8 * self.unsent() <= self.sent {
            // A client that is never quite up to date would keep everything that it was ever sent. Little is moved beside
            // what was sent, as every long answer comes by here.
            self.output.drain(..self.sent);
            self.sent = 0;
            self.output.shrink_to(KEPT_BYTES_MAX.max(2 * self.output.len()));
        }
    }

    /// How many bytes the client has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Counts the memory of its answers, or of a stream's messages, among what all clients hold.
    pub(super) fn count_held(&mut self, held: Share<'_>) {
        let bytes = self.output.capacity() + self.ready_bytes;
        self.counted_bytes = held.count(self.counted_bytes, bytes);
    }

    /// The bytes that it counts for in [`Held`].
    #[cfg(test)]
    pub(crate) fn counted_bytes(&self) -> usize {
        self.counted_bytes
    }

    /// Where bytes are put that do not wait for anything, such as `100 Continue`.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    fn place(&mut self, number: u32) -> &mut Open {
        &mut self.open[number as usize % OPEN_MAX]
    }

    /// Gets the buffer that the loop's connections share, before somebody works on this one.
    pub(crate) fn lend(&mut self, large: &mut Vec<u8>) {
        self.lent = std::mem::take(large);
    }

    /// Returns it, or one that is free by now, unless another connection has returned a larger one.
    pub(crate) fn give_up(&mut self, large: &mut Vec<u8>) {
        let lent = std::mem::take(&mut self.lent);
        if large.capacity() < lent.capacity() {
            *large = lent;
        }
    }

    /// Keeps the buffer of an answer that left, among its own if it is small, for all if it is not too large. Its own that
    /// were not used for longest make room for it.
    fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        let bytes = buffer.capacity();
        if (ANSWER_BYTES..=KEPT_BYTES_MAX).contains(&bytes) {
            let mut kept_bytes = bytes + self.spares.iter().map(Vec::capacity).sum::<usize>();
            while SPARES_BYTES_MAX < kept_bytes {
                kept_bytes -= self.spares.pop_front().map_or(0, |oldest| oldest.capacity());
            }
            self.spares.push_back(buffer);
        } else if (self.lent.capacity() + 1..=SMALL_BYTES_MAX).contains(&bytes) && KEPT_BYTES_MAX < bytes {
            self.lent = buffer;
        }
    }
}

/// The length of an answer's first line with its end.
fn first_line_bytes(answer: &[u8]) -> usize {
    answer.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests;
