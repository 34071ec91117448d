//! How loops talk: a pair of rings for what is hot, a pair of bounded queues for what is not.
//!
//! Between every two loops there is, in each direction, a **ring** of fixed slots that carries
//! orders and single cancels (and, back, their results), and a **post** that carries the rest as
//! boxed letters: reads, wide cancels, key acts, operator acts, connections that move.
//!
//! MESH-1: a loop never has more requests in flight to another than the way back has slots, so an
//! answer always finds room and nobody waits. At the limit an order is refused before anything is
//! taken, and a cancel or a read is not begun yet. New orders leave [`CANCEL_SHARE`] slots to cancels.
//!
//! Bells are rung once a turn, only for loops that got something and only if they sleep.

use std::sync::Arc;

use crossbeam::queue::ArrayQueue;

use super::message::{Asked, Letter, Told};
use super::shared::Shared;
use crate::memory::ring::{Consumer, Producer, ring};

/// Slots of a ring; an ask is about 1 KiB.
pub(crate) const RING_SLOTS: usize = 256;
/// Slots of a ring that new orders leave to cancels.
const CANCEL_SHARE: usize = 64;
/// Letters on their way from one loop to another.
pub(crate) const POST_SLOTS: usize = 256;

/// What a ring's request is about, for its share of the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// It may take the last slot.
    Cancel,
    /// It leaves some to cancels.
    Order,
}

/// Both directions between this loop and one other.
struct Pair {
    ask: Producer<Asked>,
    told: Consumer<Told>,
    asked: Consumer<Asked>,
    tell: Producer<Told>,
    in_flight: usize,
}

/// The queues of letters between all loops: `from` x `to`.
#[derive(Debug)]
pub(crate) struct Posts {
    requests: Vec<ArrayQueue<Letter>>,
    replies: Vec<ArrayQueue<Letter>>,
    loops: usize,
}

impl Posts {
    /// Empty queues between `loops` loops.
    pub(crate) fn new(loops: usize) -> Self {
        let queues = || (0..loops * loops).map(|_| ArrayQueue::new(POST_SLOTS)).collect();
        Self { requests: queues(), replies: queues(), loops }
    }

    fn between(&self, from: usize, to: usize) -> usize {
        from * self.loops + to
    }
}

/// One loop's ends of everything.
pub(crate) struct Mesh {
    no: usize,
    pairs: Vec<Option<Pair>>,
    letters_in_flight: Vec<usize>,
    touched: Vec<bool>,
    shared: Arc<Shared>,
}

/// The ends of all loops, in order.
pub(crate) fn mesh(shared: &Arc<Shared>) -> Vec<Mesh> {
    let loops = shared.plan.topology.loops.len();
    let mut meshes: Vec<Mesh> = (0..loops)
        .map(|no| Mesh {
            no,
            pairs: (0..loops).map(|_| None).collect(),
            letters_in_flight: vec![0; loops],
            touched: vec![false; loops],
            shared: Arc::clone(shared),
        })
        .collect();
    let topology = &shared.plan.topology;
    let (shards, trading) = (usize::from(topology.shards), topology.trading_loops());
    for left in 0..loops {
        for right in left + 1..loops {
            // Ingress loops ask shards, never each other; the loops of reader and feed ask by letter.
            if left < shards && right < trading {
                let (one, other) = pair();
                meshes[left].pairs[right] = Some(one);
                meshes[right].pairs[left] = Some(other);
            }
        }
    }
    meshes
}

fn pair() -> (Pair, Pair) {
    let (left_asks, right_hears) = ring(RING_SLOTS);
    let (right_tells, left_learns) = ring(RING_SLOTS);
    let (right_asks, left_hears) = ring(RING_SLOTS);
    let (left_tells, right_learns) = ring(RING_SLOTS);
    let pair = |ask, told, asked, tell| Pair { ask, told, asked, tell, in_flight: 0 };
    (
        pair(left_asks, left_learns, left_hears, left_tells),
        pair(right_asks, right_learns, right_hears, right_tells),
    )
}

impl Mesh {
    /// This loop's number.
    pub(crate) fn no(&self) -> usize {
        self.no
    }

    /// How many loops there are.
    pub(crate) fn loops(&self) -> usize {
        self.pairs.len()
    }

    /// Sends a request to another shard's loop; false if it must be refused as busy.
    #[must_use]
    pub(crate) fn ask(&mut self, to: usize, asked: &Asked, share: Share) -> bool {
        let pair = self.pairs[to].as_mut().expect("shards are asked by loops that have rings to them");
        let kept = if share == Share::Order { CANCEL_SHARE } else { 0 };
        if pair.in_flight + kept >= RING_SLOTS || pair.ask.push(asked).is_err() {
            return false;
        }
        pair.in_flight += 1;
        self.touched[to] = true;
        true
    }

    /// Whether [`Mesh::ask`] would find room for a cancel now, whatever shard it goes to.
    pub(crate) fn may_ask_all(&self) -> bool {
        self.pairs.iter().flatten().all(|pair| pair.in_flight < RING_SLOTS)
    }

    /// Reads the request from another loop that [`Mesh::next_asked`] will return after `behind` others, if it has come.
    pub(crate) fn peek_asked<R>(
        &self,
        from: usize,
        behind: u64,
        look: impl FnOnce(&Asked) -> R,
    ) -> Option<R> {
        self.pairs[from].as_ref()?.asked.peek(behind, look)
    }

    /// The next request from another loop.
    pub(crate) fn next_asked(&mut self, from: usize) -> Option<Asked> {
        self.pairs[from].as_mut()?.asked.pop()
    }

    /// Answers a request from another loop.
    pub(crate) fn tell(&mut self, to: usize, told: &Told) {
        let pair = self.pairs[to].as_mut().expect("answers go where requests came from");
        pair.tell.push(told).expect("MESH-1: whoever asks keeps room for the answer");
        self.touched[to] = true;
    }

    /// The next answer from another loop.
    pub(crate) fn next_told(&mut self, from: usize) -> Option<Told> {
        let pair = self.pairs[from].as_mut()?;
        let told = pair.told.pop()?;
        pair.in_flight -= 1;
        Some(told)
    }

    /// Whether [`Mesh::post`] would find room now, whatever shard it goes to.
    pub(crate) fn may_post_all(&self, shards: u16) -> bool {
        (0..usize::from(shards)).all(|to| to == self.no || self.may_post(to))
    }

    /// Whether [`Mesh::post`] would find room now.
    pub(crate) fn may_post(&self, to: usize) -> bool {
        let posts = &self.shared.posts;
        self.letters_in_flight[to] < POST_SLOTS && !posts.requests[posts.between(self.no, to)].is_full()
    }

    /// Sends a letter that is answered; gives it back if it must be refused as busy.
    pub(crate) fn post(&mut self, to: usize, letter: Letter) -> Result<(), Letter> {
        if self.letters_in_flight[to] == POST_SLOTS {
            return Err(letter);
        }
        self.post_one_way(to, letter)?;
        self.letters_in_flight[to] += 1;
        Ok(())
    }

    /// Sends a letter that nobody answers; gives it back if there is no room now.
    pub(crate) fn post_one_way(&mut self, to: usize, letter: Letter) -> Result<(), Letter> {
        let posts = &self.shared.posts;
        posts.requests[posts.between(self.no, to)].push(letter)?;
        self.touched[to] = true;
        Ok(())
    }

    /// The next letter from another loop (or this one) that asks for something.
    pub(crate) fn next_letter(&mut self, from: usize) -> Option<Letter> {
        let posts = &self.shared.posts;
        posts.requests[posts.between(from, self.no)].pop()
    }

    /// Answers a letter.
    pub(crate) fn reply(&mut self, to: usize, letter: Letter) {
        let posts = &self.shared.posts;
        let kept = posts.replies[posts.between(self.no, to)].push(letter);
        assert!(kept.is_ok(), "MESH-1: whoever posts keeps room for the reply");
        self.touched[to] = true;
    }

    /// The next answered letter from another loop.
    pub(crate) fn next_reply(&mut self, from: usize) -> Option<Letter> {
        let posts = &self.shared.posts;
        let letter = posts.replies[posts.between(from, self.no)].pop()?;
        self.letters_in_flight[from] -= 1;
        Some(letter)
    }

    /// Questions to other loops that are not answered yet.
    pub(crate) fn in_flight(&self) -> usize {
        let asked: usize = self.pairs.iter().flatten().map(|pair| pair.in_flight).sum();
        asked + self.letters_in_flight.iter().sum::<usize>()
    }

    /// True if something came that was not taken yet; cheap, for the last check before sleep.
    pub(crate) fn anything_came(&self) -> bool {
        let posts = &self.shared.posts;
        (0..self.pairs.len()).any(|from| {
            let letters = posts.between(from, self.no);
            let rings =
                self.pairs[from].as_ref().is_some_and(|pair| !pair.asked.is_empty() || !pair.told.is_empty());
            rings || !posts.requests[letters].is_empty() || !posts.replies[letters].is_empty()
        })
    }

    /// Notes that a loop has something to do that did not go through the mesh.
    pub(crate) fn touch(&mut self, to: usize) {
        self.touched[to] = true;
    }

    /// Rings the loops that got something this turn.
    pub(crate) fn ring_bells(&mut self) {
        for (to, touched) in self.touched.iter_mut().enumerate() {
            if std::mem::take(touched) && to != self.no {
                self.shared.wakers[to].wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{OrderId, Position, WalletNo};
    use crate::server::plan::options::Options;
    use crate::server::plan::{Start, plan_on};
    use crate::server::process::clock::Clock;
    use crate::server::process::signals;
    use crate::server::threads::message::{Answer, Question, Ticket};
    use crate::server::trading::wide::{Wide, WideJobs};

    fn meshes() -> Vec<Mesh> {
        let options = Options { cpu_shards: 2, ..Options::of_dev() };
        let plan = plan_on(&options, Start { dev: true, ..Start::default() }, &[0, 1]).expect("a plan");
        let (sender, _endings) = signals::endings().expect("a pair");
        mesh(&Shared::new(plan, Clock::real(), sender).expect("wakers"))
    }

    fn asked() -> Asked {
        let question = Question::Cancel { principal: WalletNo(0), id: OrderId::ZERO };
        Asked { ticket: Ticket { work: 0, item: 0 }, question }
    }

    #[test]
    fn a_full_ring_refuses_orders_first_and_every_answer_has_room() {
        let mut meshes = meshes();
        let (left, right) = meshes.split_at_mut(1);
        let (left, right) = (&mut left[0], &mut right[0]);
        let mut taken = 0;
        while left.ask(1, &asked(), Share::Order) {
            taken += 1;
        }
        assert_eq!(taken, RING_SLOTS - CANCEL_SHARE);
        while left.ask(1, &asked(), Share::Cancel) {
            taken += 1;
        }
        assert_eq!(taken, RING_SLOTS);
        assert!(0 < left.in_flight() && right.anything_came());
        for _ in 0..RING_SLOTS {
            let asked = right.next_asked(0).expect("it was asked");
            let answer = Answer::Buried(true);
            right.tell(0, &Told { ticket: asked.ticket, at: Position(64), answer, match_ns: 0 });
        }
        // Whoever asked has the room back when it has heard the answer, not before.
        assert!(!left.ask(1, &asked(), Share::Cancel));
        assert!(left.next_told(1).is_some());
        assert!(left.ask(1, &asked(), Share::Cancel));
    }

    #[test]
    fn letters_are_refused_when_their_replies_would_find_no_room() {
        let mut meshes = meshes();
        let letter = || {
            let mut jobs = WideJobs::new(1);
            Letter::Wide(jobs.take(0, WalletNo(0), Wide::Bury))
        };
        for _ in 0..POST_SLOTS {
            meshes[0].post(1, letter()).expect("there is room");
        }
        assert!(meshes[0].post(1, letter()).is_err());
        while let Some(letter) = meshes[1].next_letter(0) {
            meshes[1].reply(0, letter);
        }
        assert!(meshes[0].post(1, letter()).is_err());
        assert!(meshes[0].next_reply(1).is_some());
        assert!(meshes[0].post(1, letter()).is_ok());
    }
}
