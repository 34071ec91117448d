//! Replaces on the twin, done on the state itself; if one is refused, a copy from before is put back.

use super::{First, Naive, NaiveOrder, Plan, Verdict, Work};
use crate::domain::{OrderId, Reject};
use crate::shard::{IfGone, PlaceOrder, Placed, Refusal, Replace, Status};
use std::cmp::Reverse;

/// What a replace did, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NaiveReplaced {
    /// True if an earlier post of the same replace placed its orders.
    pub replayed: bool,
    /// The orders that left.
    pub left: Vec<OrderId>,
    /// The orders that came, each with the one whose place in the queue it took, if any.
    pub came: Vec<(OrderId, Option<OrderId>)>,
}

impl Naive {
    /// Replaces orders, or changes nothing and says why.
    pub fn replace(&mut self, request: &Replace<'_, PlaceOrder>) -> Result<NaiveReplaced, Refusal> {
        self.expire(self.shard_of(request.coming[0].market));
        let before = self.clone();
        let done = self.try_replace(request);
        if done.is_err() {
            *self = before;
        }
        done
    }

    fn try_replace(&mut self, request: &Replace<'_, PlaceOrder>) -> Result<NaiveReplaced, Refusal> {
        let mut done = NaiveReplaced { replayed: self.all_came_before(request)?, ..NaiveReplaced::default() };
        if done.replayed {
            return Ok(done);
        }
        let first = &request.coming[0];
        let before = self.orders.clone();
        for id in request.leaving {
            let mine =
                |order: &&NaiveOrder| (order.principal, order.market) == (request.principal, first.market);
            match self.resting(id).filter(mine) {
                Some(_) => {
                    self.remove(id);
                    done.left.push(*id);
                }
                None if done.left.contains(id) => {}
                None if request.if_gone == IfGone::Place => {}
                None => return Err(Reject::ReplaceGone.into()),
            }
        }
        let open_per_owner_max = self.open_per_owner_max;
        if request.coming.len() <= done.left.len() {
            self.open_per_owner_max = usize::MAX;
        }
        let mut full: Option<Refusal> = None;
        for place in request.coming {
            if (place.market, place.wallet) != (first.market, first.wallet) {
                return Err(Reject::ReplaceMarkets.into());
            }
            let work = self.judge_coming(place)?;
            let reserved = match self.verdict(&work) {
                Verdict::Go { reserved, .. } => reserved,
                Verdict::Refuse(refusal) if judged_last(refusal.reject).is_some() => {
                    let is_before = |other: &Refusal| judged_last(other.reject) < judged_last(refusal.reject);
                    full = full.filter(is_before).or(Some(refusal));
                    0
                }
                Verdict::Refuse(refusal) => return Err(refusal),
                Verdict::Kill(reject) => return Err(reject.into()),
            };
            self.insert(&work, place.order.fields.shares().0, reserved);
            self.wallets[place.wallet.index()].cell -= reserved;
            done.came.push((place.id, None));
        }
        self.open_per_owner_max = open_per_owner_max;
        let left = before.into_iter().filter(|order| done.left.contains(&order.id));
        self.keep_places(left.collect(), &mut done.came);
        for place in request.coming {
            let placed =
                Placed::Accepted { status: Status::Live, making: 0, taking: 0, trade: None, replayed: false };
            let (shard, stamp) = (self.shard_of(place.market), place.order.fields.timestamp_ms);
            self.remember(shard, place.id, stamp, place.principal, First::Order(placed));
        }
        full.map_or(Ok(done), Err)
    }

    fn all_came_before(&self, request: &Replace<'_, PlaceOrder>) -> Result<bool, Refusal> {
        let mut known = Vec::new();
        for (at, place) in request.coming.iter().enumerate() {
            let ran = match self.first(self.shard_of(place.market), &place.id) {
                Some((principal, First::Order(placed))) if *principal == place.principal => {
                    if !matches!(placed, Placed::Accepted { status: Status::Live, .. }) {
                        return Err(Reject::ReplaceKnown.into());
                    }
                    true
                }
                Some(_) => return Err(Reject::MakerNotAuthorized.into()),
                None => false,
            };
            let twice = request.coming[..at].iter().any(|other| other.id == place.id);
            if twice || known.last().is_some_and(|last| *last != ran) {
                return Err(Reject::ReplaceKnown.into());
            }
            known.push(ran);
        }
        let market = request.coming[0].market;
        let rests = |id: &OrderId| {
            self.resting(id)
                .is_some_and(|order| (order.principal, order.market) == (request.principal, market))
        };
        // Orders are listed as they came.
        let place = |id: &OrderId| self.orders.iter().position(|order| order.id == *id);
        let last = request.coming.iter().filter_map(|order| place(&order.id)).max();
        let was_there = |id: &OrderId| request.if_gone == IfGone::Refuse || place(id) < last;
        if known[0] && request.leaving.iter().any(|id| rests(id) && was_there(id)) {
            return Err(Reject::ReplaceKnown.into());
        }
        Ok(known[0])
    }

    /// Judges a coming order, which must meet nobody, against the book without those that left.
    fn judge_coming(&self, place: &PlaceOrder) -> Result<Work, Refusal> {
        if !place.order.order_type.rests() {
            return Err(Reject::ReplaceType.into());
        }
        let price = self.judge(place)?;
        if self.is_cancelled(place.principal, &place.id) {
            return Err(Reject::CancelledBeforeArrival.into());
        }
        let size = place.order.fields.shares().0;
        let plan = Plan { left: size, ..Plan::default() };
        let work = Work { place: *place, price, plan, verdict: Verdict::Kill(Reject::Busy), again: false };
        let min_size = self.markets[place.market.index()].min_size;
        if size < min_size {
            return Err(Refusal { reject: Reject::SizeTooSmall, got: size, allowed: min_size });
        }
        if !self.makers(&work).is_empty() {
            return Err(Reject::ReplaceCrosses.into());
        }
        Ok(work)
    }

    /// Gives orders that came, and rest behind all others, the places of orders that left, which are listed as they were
    /// placed: to each, the largest first, that of the smallest that is large enough.
    fn keep_places(&mut self, mut left: Vec<NaiveOrder>, came: &mut [(OrderId, Option<OrderId>)]) {
        left.sort_by_key(|order| order.open);
        let mut larger_first: Vec<_> = came.iter_mut().collect();
        larger_first.sort_by_key(|(id, _)| Reverse(self.resting(id).expect("it came").open));
        for (id, former) in larger_first {
            let order = self.orders.iter_mut().find(|order| order.id == *id).expect("it came");
            let kind = |order: &NaiveOrder| (order.wallet, order.outcome, order.side, order.price);
            let fits = |old: &NaiveOrder| kind(old) == kind(order) && order.open <= old.open;
            if let Some(at) = left.iter().position(fits) {
                let old = left.remove(at);
                order.queue = old.queue;
                *former = Some(old.id);
            }
        }
    }
}

/// What is about room is judged when all coming orders have been, in this order.
fn judged_last(reject: Reject) -> Option<usize> {
    use Reject as R;
    let room = [R::BookFull, R::NoRoomForBook, R::TooManyPositions, R::TableFull, R::TooManyOpenOrders];
    room.iter().position(|about| *about == reject)
}
