//! Trading requests under way on one loop: what was asked, what the shards said so far.
//!
//! A request takes a place in the table before anything else happens; without a place it is
//! refused as busy. It is decided when every item is, and its answer waits for the highest
//! position that any shard named. Places keep their memory.

use std::collections::VecDeque;

use super::cancels::Round;
use super::replaces::ReplaceEnd;
use super::wide::{IDS_KEPT, WIDE_WORKS_MAX};
use crate::domain::{Dialect, OrderId, Position, Reject, WalletNo};
use crate::http::respond::RateLimit;
use crate::json::ShortText;
use crate::json::answer::{NotCancelled, Refusal, TradeName};
use crate::json::read::ORDERS_MAX;
use crate::server::connections::Client;
use crate::server::requests::explain::Explanation;
use crate::server::threads::message::Said;
use crate::stats::Laps;

/// Trading requests under way on one loop.
const WORKS_MAX: u32 = 1_024;

/// The request that an answer goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// Who asked.
    pub(crate) client: Client,
    /// The request's number in its line.
    pub(crate) number: u32,
    /// Whether the connection stays open after the answer.
    pub(crate) keep_alive: bool,
}

/// Names a request under way; its place alone may have been given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkNo {
    place: u32,
    serial: u32,
}

/// What form the answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One order's result.
    Order,
    /// A list of orders' results.
    Orders,
    /// What was cancelled and what was not.
    Cancel,
    /// A split, merge or redeem.
    Act,
    /// What a replace did.
    Replace,
    /// What the registrar said.
    Told,
}

/// A refusal with the words it needs, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Why.
    pub(crate) reject: Reject,
    /// The field at fault; `""` for none.
    pub(crate) field: &'static str,
    /// What was sent, or what was found.
    pub(crate) got: ShortText,
    /// What would have been taken.
    pub(crate) allowed: ShortText,
    /// The nearest value that would have been taken.
    pub(crate) nearest: ShortText,
}

impl Refused {
    /// A refusal that needs no more words.
    pub(crate) const fn plain(reject: Reject) -> Self {
        Self {
            reject,
            field: "",
            got: ShortText::EMPTY,
            allowed: ShortText::EMPTY,
            nearest: ShortText::EMPTY,
        }
    }

    /// The refusal as the writer of answers takes it.
    pub(crate) const fn words<'a>(&self) -> Refusal<'a> {
        Refusal {
            reject: self.reject,
            id: None,
            field: self.field,
            got: self.got,
            allowed: self.allowed,
            nearest: self.nearest,
            retry_after_s: None,
            explain: None,
            dialect: Dialect::Service,
        }
    }
}

/// What became of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// Somebody is working on it.
    Open,
    /// The order was taken.
    Accepted {
        /// `live`, `matched`, …
        status: &'static str,
        /// Given so far, in millionths.
        making: u64,
        /// Taken so far, in millionths.
        taking: u64,
        /// The trade it made.
        trade: Option<TradeName>,
        /// The same order came before, and this is what became of it then.
        replayed: bool,
    },
    /// It was refused.
    Refused {
        /// Why.
        refused: Refused,
        /// The same order was killed before, and this is what became of it then.
        replayed: bool,
    },
}

/// One order of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// The order's digest, once it is known.
    pub(crate) id: Option<OrderId>,
    /// What became of it.
    pub(crate) outcome: Outcome,
}

/// A trading request under way.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about the request")]
pub(crate) struct Work {
    /// Who asked.
    pub(crate) client: Client,
    /// The request's number in its line.
    pub(crate) number: u32,
    /// Whether the connection stays open after the answer.
    pub(crate) keep_alive: bool,
    /// Whose conventions the answer follows.
    pub(crate) dialect: Dialect,
    /// What form the answer has.
    pub(crate) form: Form,
    /// The orders, in request order.
    pub(crate) items: Vec<Item>,
    /// Items that were refused, and why in more words: `dev` only, so this has no memory elsewhere.
    pub(crate) explained: Vec<(usize, Explanation)>,
    /// What was cancelled.
    pub(crate) cancelled: Vec<OrderId>,
    /// What was not there to be cancelled.
    pub(crate) not_cancelled: Vec<NotCancelled>,
    /// Whose orders are cancelled.
    pub(crate) principal: WalletNo,
    /// Ids that no shard has been found for so far.
    pub(crate) looking: Vec<OrderId>,
    /// How far the search for them is.
    pub(crate) round: Round,
    /// Some shard could not be asked for them, or had no room to cancel.
    pub(crate) short: bool,
    /// Those of them for which some shard left no tombstone, in any order, perhaps repeated.
    pub(crate) unburied: Vec<OrderId>,
    /// What the registrar said, if it was asked.
    pub(crate) said: Option<Said>,
    /// What came of it, if it is a replace.
    pub(crate) replace: ReplaceEnd,
    /// It sends wide jobs.
    is_wide: bool,
    /// Answers that are still to come.
    pub(crate) open: u32,
    /// The highest position that any shard named.
    pub(crate) at: Position,
    /// How its client stands in the limits that it was counted in.
    pub(crate) rate_limit: Option<RateLimit>,
    /// What its time went to.
    pub(crate) laps: Laps,
    /// Raised whenever the place is given to another request.
    serial: u32,
}

impl Work {
    fn empty() -> Self {
        Self {
            client: Client { slot: 0, generation: 0 },
            number: 0,
            keep_alive: true,
            dialect: Dialect::Service,
            form: Form::Order,
            items: Vec::with_capacity(ORDERS_MAX),
            explained: Vec::new(),
            cancelled: Vec::with_capacity(IDS_KEPT),
            not_cancelled: Vec::with_capacity(IDS_KEPT),
            principal: WalletNo(0),
            looking: Vec::with_capacity(IDS_KEPT),
            round: Round::Looking,
            short: false,
            unburied: Vec::with_capacity(IDS_KEPT),
            said: None,
            replace: ReplaceEnd::default(),
            is_wide: false,
            open: 0,
            at: Position(0),
            rate_limit: None,
            laps: Laps::default(),
            serial: 0,
        }
    }

    /// A shard has decided something: the answer waits for its last position.
    pub(crate) fn decided_at(&mut self, at: Position) {
        self.at = self.at.max(at);
    }
}

/// All requests under way.
#[derive(Debug)]
pub(crate) struct Works {
    places: Box<[Work]>,
    free: Vec<u32>,
    finished: VecDeque<u32>,
    /// How many of them send wide jobs.
    wide_count: usize,
}

impl Works {
    /// An empty table with its memory.
    pub(crate) fn new() -> Self {
        Self {
            places: (0..WORKS_MAX).map(|_| Work::empty()).collect(),
            free: (0..WORKS_MAX).rev().collect(),
            finished: VecDeque::with_capacity(WORKS_MAX as usize),
            wide_count: 0,
        }
    }

    /// How many requests are under way.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// True if there is a place.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// True if one more request may send wide jobs (WIDE-1).
    pub(crate) fn has_room_for_wide(&self) -> bool {
        self.wide_count < WIDE_WORKS_MAX
    }

    /// The request in a place sends wide jobs; `has_room_for_wide` was asked.
    pub(crate) fn mark_wide(&mut self, place: u32) {
        assert!(self.has_room_for_wide(), "has_room_for_wide was asked first");
        self.wide_count += 1;
        self.places[place as usize].is_wide = true;
    }

    /// Takes a place; `has_room` was asked.
    pub(crate) fn begin(&mut self, asker: Asker, dialect: Dialect, form: Form) -> u32 {
        let place = self.free.pop().expect("has_room was asked first");
        let work = &mut self.places[place as usize];
        work.client = asker.client;
        work.number = asker.number;
        work.keep_alive = asker.keep_alive;
        work.serial = work.serial.wrapping_add(1);
        work.dialect = dialect;
        work.form = form;
        work.items.clear();
        work.explained.clear();
        work.cancelled.clear();
        work.not_cancelled.clear();
        work.looking.clear();
        work.short = false;
        work.unburied.clear();
        work.replace = ReplaceEnd::default();
        work.is_wide = false;
        work.open = 0;
        work.at = Position(0);
        place
    }

    /// The name of the request in a place.
    pub(crate) fn name(&self, place: u32) -> WorkNo {
        WorkNo { place, serial: self.places[place as usize].serial }
    }

    /// True while some shard has not decided about the request.
    pub(crate) fn is_undecided(&self, work: WorkNo) -> bool {
        let place = &self.places[work.place as usize];
        place.serial == work.serial && place.open > 0
    }

    /// Whether a request may still place orders.
    pub(crate) fn may_place(&self, work: WorkNo) -> bool {
        let form = self.places[work.place as usize].form;
        matches!(form, Form::Order | Form::Orders | Form::Replace) && self.is_undecided(work)
    }

    /// A request under way.
    pub(crate) fn work(&mut self, place: u32) -> &mut Work {
        &mut self.places[place as usize]
    }

    /// One more answer is to come.
    pub(crate) fn expect(&mut self, place: u32) {
        self.places[place as usize].open += 1;
    }

    /// One answer came; the last one finishes the request.
    pub(crate) fn came(&mut self, place: u32) {
        let work = &mut self.places[place as usize];
        assert!(0 < work.open, "every answer was asked for");
        work.open -= 1;
        if work.open == 0 {
            self.finished.push_back(place);
        }
    }

    /// The next request that is decided.
    pub(crate) fn next_finished(&self) -> Option<u32> {
        self.finished.front().copied()
    }

    /// Frees the place of the request that [`Self::next_finished`] named.
    pub(crate) fn end(&mut self) {
        let place = self.finished.pop_front().expect("a request was finished");
        self.wide_count -= usize::from(self.places[place as usize].is_wide);
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::answer::WhyNot;

    #[test]
    fn a_request_is_decided_when_its_last_answer_came() {
        let mut works = Works::new();
        let asker = Asker { client: Client { slot: 1, generation: 2 }, number: 3, keep_alive: true };
        let place = works.begin(asker, Dialect::Poly, Form::Orders);
        let name = works.name(place);
        works.expect(place);
        works.expect(place);
        works.came(place);
        assert!(works.is_undecided(name));
        assert_eq!(works.next_finished(), None);
        works.came(place);
        assert_eq!(works.next_finished(), Some(place));
        assert!(!works.is_undecided(name));
        works.end();
        works.begin(asker, Dialect::Poly, Form::Orders);
        works.expect(place);
        assert!(!works.is_undecided(name));
        works.came(place);
        works.end();
        assert_eq!(works.next_finished(), None);
    }

    #[test]
    fn requests_that_send_wide_jobs_have_room_up_to_their_limit() {
        let mut works = Works::new();
        let asker = Asker { client: Client { slot: 0, generation: 0 }, number: 0, keep_alive: true };
        let mut places = Vec::new();
        for _ in 0..WIDE_WORKS_MAX {
            assert!(works.has_room_for_wide());
            let place = works.begin(asker, Dialect::Poly, Form::Cancel);
            works.mark_wide(place);
            works.expect(place);
            places.push(place);
        }
        assert!(!works.has_room_for_wide() && works.has_room());
        works.came(places[0]);
        works.end();
        assert!(works.has_room_for_wide());
        // The place is given to a request that sends none.
        let place = works.begin(asker, Dialect::Poly, Form::Order);
        works.expect(place);
        works.came(place);
        works.end();
        let last = works.begin(asker, Dialect::Poly, Form::Cancel);
        works.mark_wide(last);
        assert!(!works.has_room_for_wide(), "one was free, and that was taken");
    }

    #[test]
    fn a_request_finds_nothing_in_its_place_of_the_one_before() {
        let mut works = Works::new();
        let asker = Asker { client: Client { slot: 1, generation: 2 }, number: 3, keep_alive: true };
        let begin = |works: &mut Works| {
            let place = works.begin(asker, Dialect::Poly, Form::Cancel);
            let fresh = Work { serial: 0, ..std::mem::replace(works.work(place), Work::empty()) };
            (place, format!("{fresh:?}"), fresh)
        };
        let (place, empty, fresh) = begin(&mut works);
        *works.work(place) = fresh;
        works.mark_wide(place);
        let (id, work) = (OrderId([7; 32]), works.work(place));
        work.items.push(Item { id: Some(id), outcome: Outcome::Open });
        work.explained.push((0, Box::default()));
        work.cancelled.push(id);
        work.not_cancelled.push(NotCancelled { id, why: WhyNot::Gone });
        work.looking.push(id);
        work.unburied.push(id);
        work.short = true;
        work.replace = ReplaceEnd { kept_place: 1, replayed: true, ..ReplaceEnd::default() };
        work.decided_at(Position(9));
        works.expect(place);
        works.came(place);
        works.end();
        let (again, found, _) = begin(&mut works);
        assert_eq!((again, found), (place, empty));
    }

    #[test]
    fn what_places_orders_may_do_so_until_it_is_decided() {
        let mut works = Works::new();
        let asker = Asker { client: Client { slot: 0, generation: 0 }, number: 0, keep_alive: true };
        for (form, places) in [
            (Form::Order, true),
            (Form::Orders, true),
            (Form::Replace, true),
            (Form::Cancel, false),
            (Form::Act, false),
            (Form::Told, false),
        ] {
            let place = works.begin(asker, Dialect::Poly, form);
            works.expect(place);
            let name = works.name(place);
            assert_eq!(works.may_place(name), places, "{form:?}");
            works.came(place);
            assert!(!works.may_place(name), "{form:?}");
            works.end();
        }
    }

    #[test]
    fn a_full_table_has_no_room_and_room_again_after_an_end() {
        let mut works = Works::new();
        let client = Client { slot: 0, generation: 0 };
        for number in 0..WORKS_MAX {
            assert!(works.has_room());
            let place = works.begin(Asker { client, number, keep_alive: true }, Dialect::Poly, Form::Order);
            works.expect(place);
        }
        assert!(!works.has_room());
        works.came(0);
        works.end();
        assert!(works.has_room());
    }
}
