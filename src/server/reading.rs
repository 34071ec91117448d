//! The reader's role on its loop: frames in, reads out, nothing sooner than it may be known.
//!
//! Frames are applied up to the acknowledged mark and never beyond it. A read waits until what
//! had been acknowledged when it was read is applied; if that takes longer than
//! `Limits::read_wait_ms` it is answered 503 with `Retry-After`.

use std::collections::VecDeque;

use super::core_loop::connection_word;
use super::mesh::Mesh;
use super::message::ReadJob;
use crate::domain::{Position, TimeMs};
use crate::http::respond::{self, Extras};
use crate::http::{self};
use crate::journal::Follower;

/// Frames applied in one turn.
const FRAMES_PER_TURN: usize = 256;
/// Reads answered in one turn.
const READS_PER_TURN: usize = 64;

/// The reader and the reads that wait for it.
pub(crate) struct Reading {
    follower: Follower,
    waiting: VecDeque<Box<ReadJob>>,
    done: VecDeque<Box<ReadJob>>,
}

impl Reading {
    /// A reader that continues behind what recovery has applied.
    pub(crate) fn new(follower: Follower) -> Self {
        Self { follower, waiting: VecDeque::new(), done: VecDeque::new() }
    }

    /// Takes a request; it comes back by [`Self::next_done`].
    pub(crate) fn begin(&mut self, job: Box<ReadJob>) {
        self.waiting.push_back(job);
    }

    /// The next request that is answered.
    pub(crate) fn next_done(&mut self) -> Option<Box<ReadJob>> {
        self.done.pop_front()
    }

    /// The position that gives the reader work when it is acknowledged.
    pub(crate) fn awaits(&self) -> Position {
        Position(self.follower.position().0 + 1)
    }

    /// Applies frames and answers reads. Returns whether anything was done.
    pub(crate) fn work(&mut self, mark: Position, now: TimeMs, elapsed_ms: u64, mesh: &mut Mesh) -> bool {
        let _ = mesh;
        let mut busy = self.follow(mark);
        let applied = self.follower.position();
        for _ in 0..READS_PER_TURN {
            let Some(job) = self.waiting.front() else {
                break;
            };
            if applied < job.tag && elapsed_ms < job.deadline_ms {
                break;
            }
            let mut job = self.waiting.pop_front().expect("just looked at");
            if applied < job.tag {
                behind(&mut job.answer);
            } else {
                self.answer(&mut job, now);
            }
            self.done.push_back(job);
            busy = true;
        }
        busy
    }

    fn follow(&mut self, mark: Position) -> bool {
        for count in 0..FRAMES_PER_TURN {
            match self.follower.next(mark) {
                Ok(Some(_frame)) => {}
                Ok(None) => return count > 0,
                Err(fault) => panic!("the reader cannot follow the log: {fault:?}"),
            }
        }
        true
    }

    fn answer(&mut self, job: &mut ReadJob, now: TimeMs) {
        let head = http::parse(&job.bytes, &http::Limits::DEFAULT);
        let head = head.expect("it was read before").expect("it was whole before");
        let extras = Extras {
            connection: connection_word(head.keep_alive),
            seq: Some(self.follower.position().0),
            ..Extras::default()
        };
        let response = respond::Response::begin(&mut job.answer, 200, respond::ContentType::Json, &extras);
        job.answer.extend_from_slice(now.seconds().to_string().as_bytes());
        response.finish(&mut job.answer);
    }
}

/// The reader has not applied what this client was told of.
fn behind(out: &mut Vec<u8>) {
    let extras = Extras { retry_after_s: Some(1), ..Extras::default() };
    respond::plain_error(out, 503, "behind", "the read model is behind, try again", &extras);
}
