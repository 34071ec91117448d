//! A replace: a maker's orders leave a book and others come to rest in it, all or nothing.
//!
//! Everything is judged before anything is done, as if the leaving orders had left already; then one
//! frame records all of it. All orders are of one market, and the coming orders are of one wallet.
//! Each coming order rests: one that would trade at once refuses the whole replace, so there is no
//! walk, and no maker's cell that could change what was judged.
//!
//! | a coming order | its place in the queue |
//! |---|---|
//! | same wallet, token, side and price as a leaving one, no larger than its open shares | that one's |
//! | any other | behind all others at its price |
//!
//! A place is taken once. The larger coming orders choose first, of equals the one named first; each takes the place of
//! the smallest that is large enough, of equals the one placed first, whatever their places. So as many places are kept
//! as can be, a size that comes again keeps its own, and which are kept does not depend on the order of either list.
//!
//! REPLACE-1: between the judging and the frame nothing of what was judged changes but the wallet's cell, and that only
//! where collateral is set aside: the debit is the last thing that can fail.

use super::judge::judge_shares;
use super::placements::Placement;
use super::recall::First;
use super::rest::new_order;
use super::walk::Taker;
use super::{Funding, Placed, ReadyOrder, Refusal, Shard, Status};
use crate::book::Full;
use crate::book::orders::Resting;
use crate::domain::fee::cost_of_buy;
use crate::domain::{Collateral, OrderId, Outcome, Position, Reject, Shares, Side, TimeMs, WalletNo};
use crate::journal::layout::order::{REPLACE_PLACED_MAX, REPLACE_REMOVED_MAX};
use crate::journal::layout::{Decision, OrdersReplaced};
use crate::memory::arena::Slot;
use crate::memory::wire::{Out, Room, Wire, put_count};
use std::cmp::Reverse;

/// What a replace does if some of its leaving orders are not there any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfGone {
    /// Nothing: the coming orders are not placed.
    #[default]
    Refuse,
    /// Those that are there leave, and the coming orders are placed.
    Place,
}

/// What a replace is asked to do. The naive twin takes each `Order` as a [`super::PlaceOrder`].
#[derive(Clone, Copy, Debug)]
pub struct Replace<'a, Order = ReadyOrder> {
    /// The owner of the leaving orders.
    pub principal: WalletNo,
    /// The leaving orders, at most [`REPLACE_REMOVED_MAX`].
    pub leaving: &'a [OrderId],
    /// The coming orders, 1..=[`REPLACE_PLACED_MAX`].
    pub coming: &'a [Order],
    /// What to do if a leaving order is not there.
    pub if_gone: IfGone,
}

/// Which part of a replace a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacePart {
    /// The leaving order at this index.
    Leaving(u8),
    /// The coming order at this index.
    Coming(u8),
}

/// Why a replace did not happen. Nothing of it has changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplaceRefusal {
    /// The rule.
    pub refusal: Refusal,
    /// The order that broke it; none if it is not about one order.
    pub part: Option<ReplacePart>,
}

/// What a replace did. Every order that came rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// True if an earlier post of the same replace placed its orders; then nothing was done now.
    pub replayed: bool,
    /// A bit for each order that left, by its index in [`Replace::leaving`].
    pub left: u64,
    /// A bit for each order that took the place of a leaving one, by its index in [`Replace::coming`].
    pub kept_place: u64,
}

const _: () = assert!(REPLACE_REMOVED_MAX <= 64 && REPLACE_PLACED_MAX <= 64, "a bit for each order");

/// Lists for judging a replace; they keep their memory.
#[derive(Debug)]
pub(super) struct Scratch {
    takers: Vec<Taker>,
    /// For each coming order the leaving one whose place it takes.
    heirs: Vec<Option<Slot>>,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self { takers: Vec::with_capacity(REPLACE_PLACED_MAX), heirs: Vec::with_capacity(REPLACE_PLACED_MAX) }
    }
}

impl Shard {
    /// Replaces orders: one frame, or a refusal and nothing.
    pub fn replace(&mut self, now: TimeMs, request: &Replace<'_>) -> Result<Replaced, ReplaceRefusal> {
        assert!(request.leaving.len() <= REPLACE_REMOVED_MAX, "the reader of bodies counts");
        assert!((1..=REPLACE_PLACED_MAX).contains(&request.coming.len()), "the reader of bodies counts");
        let now = self.clock(now);
        let swept = self.expire(now);
        if self.came_before(request)? {
            return Ok(Replaced { replayed: true, left: 0, kept_place: 0 });
        }
        if !swept {
            return Err(ReplaceRefusal { refusal: Reject::Busy.into(), part: None });
        }
        let left = self.choose_leaving(request)?;
        self.scratch.takers.clear();
        for (at, order) in request.coming.iter().enumerate() {
            let judged = self.judge_coming(now, request, order);
            let taker = judged.map_err(|refusal| about(ReplacePart::Coming, at, refusal))?;
            self.scratch.takers.push(taker);
        }
        self.judge_replace_room(request).map_err(|refusal| ReplaceRefusal { refusal, part: None })?;
        let kept_place = self.find_heirs();
        self.commit_replace(request).map_err(|refusal| ReplaceRefusal { refusal, part: None })?;
        Ok(Replaced { replayed: false, left, kept_place })
    }

    /// Whether this replace was done before: then its coming orders are all known, and rested unfilled.
    /// If only some are known, it is refused.
    fn came_before(&self, request: &Replace<'_>) -> Result<bool, ReplaceRefusal> {
        let mut known = 0;
        for (at, order) in request.coming.iter().enumerate() {
            let refuse = |refusal| Err(about(ReplacePart::Coming, at, refusal));
            match self.replay(order) {
                None if known == 0 => {}
                Some(Placed::Refused(refusal)) => return refuse(refusal),
                Some(Placed::Accepted { status: Status::Live, .. }) if known == at => known += 1,
                // The first one was placed before, and this one was not.
                None => return Err(about(ReplacePart::Coming, 0, Reject::ReplaceKnown.into())),
                Some(Placed::Accepted { .. }) => return refuse(Reject::ReplaceKnown.into()),
            }
            if request.coming[..at].iter().any(|other| other.id == order.id) {
                return refuse(Reject::ReplaceKnown.into());
            }
        }
        if known == 0 {
            return Ok(false);
        }
        // If an order that was to leave still rests, the coming ones were placed one by one and not by this replace. One
        // that has come since proves nothing where the replace goes on without those that are not there.
        let orders = self.books.orders();
        let came = request.coming.iter().filter_map(|order| orders.find(order.id()));
        let last = came.map(|slot| orders[slot].position).max();
        let was_there = |slot: Slot| {
            request.if_gone == IfGone::Refuse || last.is_some_and(|last| orders[slot].position < last)
        };
        match request.leaving.iter().position(|id| self.leaves(request, id).is_some_and(was_there)) {
            Some(at) => Err(about(ReplacePart::Leaving, at, Reject::ReplaceKnown.into())),
            None => Ok(true),
        }
    }

    /// The order with this id, if it rests in the replace's market. One in another market counts as not
    /// there, whether it is on this shard or on another, which cannot be seen from here.
    fn leaves(&self, request: &Replace<'_>, id: &OrderId) -> Option<Slot> {
        let orders = self.books.orders();
        let slot = orders.find(id)?;
        let (principal, market) = (orders[slot].principal, orders[slot].market);
        (principal == request.principal && market == request.coming[0].market).then_some(slot)
    }

    /// Chooses the leaving orders, each once; returns a bit for each id that was found.
    fn choose_leaving(&mut self, request: &Replace<'_>) -> Result<u64, ReplaceRefusal> {
        self.slots.clear();
        let mut left = 0;
        for (at, id) in request.leaving.iter().enumerate() {
            match self.leaves(request, id) {
                Some(slot) => {
                    left |= 1 << at;
                    if !self.slots.contains(&slot) {
                        self.slots.push(slot);
                    }
                }
                None if request.if_gone == IfGone::Place => {}
                None => return Err(about(ReplacePart::Leaving, at, Reject::ReplaceGone.into())),
            }
        }
        Ok(left)
    }

    /// Judges one coming order, as if the leaving orders had left and the coming ones before it rested.
    fn judge_coming(
        &mut self,
        now: TimeMs,
        request: &Replace<'_>,
        order: &ReadyOrder,
    ) -> Result<Taker, Refusal> {
        let first = &request.coming[0];
        if order.market != first.market || order.wallet != first.wallet {
            return Err(Reject::ReplaceMarkets.into());
        }
        if !order.order_type.rests() {
            return Err(Reject::ReplaceType.into());
        }
        let row = self.registry.market(order.market);
        let taker = self.judge_order(now, order, row)?;
        if self.tombstones.waits(&order.id, order.principal, now) {
            return Err(Reject::CancelledBeforeArrival.into());
        }
        let size = taker.signed.shares;
        if size < taker.min_size {
            let allowed = taker.min_size.0;
            return Err(Refusal { reject: Reject::SizeTooSmall, got: size.0, allowed });
        }
        if self.would_trade(&taker) {
            return Err(Reject::ReplaceCrosses.into());
        }
        self.judge_replace_funds(&taker)?;
        Ok(taker)
    }

    /// Whether it meets an order that stays, or one that comes with it.
    fn would_trade(&self, taker: &Taker) -> bool {
        let against = taker.face.side.opposite();
        let with_it = self.scratch.takers.iter();
        if with_it.map(|other| other.face).any(|face| face.side == against && taker.face.reaches(face.price))
        {
            return true;
        }
        let mut next = self.books.first(taker.market, against);
        while let Some(slot) = next {
            if !taker.face.reaches(self.books.orders()[slot].face().price) {
                return false;
            }
            if !self.slots.contains(&slot) {
                return true;
            }
            next = self.books.after(slot);
        }
        false
    }

    /// The funding rule, without the leaving orders and with the coming ones before this one.
    fn judge_replace_funds(&mut self, taker: &Taker) -> Result<(), Refusal> {
        if taker.side == Side::Buy {
            self.watch(taker.wallet);
        }
        let account = taker.account.map(|slot| self.accounts[slot]);
        let earlier = self.scratch.takers.iter().filter(|other| other.side == taker.side);
        match taker.side {
            Side::Buy => {
                let open = account.map_or(Collateral::ZERO, |account| account.buying);
                let with_it: Collateral = earlier.map(cost).sum();
                let others = open - self.leaving_buys(taker) + with_it;
                let needed = others + taker.signed.collateral.max(cost(taker));
                self.judge_cell(taker.wallet, needed, self.leaving_reserves(taker.wallet))
            }
            Side::Sell => {
                let free = account.map_or(Shares::ZERO, |account| account.free(taker.outcome));
                let with_it = earlier.filter(|other| other.outcome == taker.outcome);
                let with_it: Shares = with_it.map(|other| other.signed.shares).sum();
                let there = free + self.leaving_sells(taker.wallet, taker.outcome);
                judge_shares(with_it + taker.signed.shares, there)
            }
        }
    }

    fn leaving(&self, wallet: WalletNo, side: Side) -> impl Iterator<Item = (Slot, &Resting)> {
        let orders = self.books.orders();
        let own = move |slot: &Slot| self.accounts[self.placements[*slot].account].wallet == wallet;
        let rows = self.slots.iter().copied().filter(own).map(move |slot| (slot, &orders[slot]));
        rows.filter(move |(_, order)| order.side == side)
    }

    fn leaving_buys(&self, taker: &Taker) -> Collateral {
        let counted =
            self.leaving(taker.wallet, Side::Buy).filter(|(slot, _)| !self.placements[*slot].reserves());
        counted.map(|(_, order)| cost_of_buy(order.price, order.open, &taker.fee)).sum()
    }

    fn leaving_reserves(&self, wallet: WalletNo) -> Collateral {
        self.leaving(wallet, Side::Buy).map(|(slot, _)| self.placements[slot].reserved).sum()
    }

    fn leaving_sells(&self, wallet: WalletNo, outcome: Outcome) -> Shares {
        let sells = self.leaving(wallet, Side::Sell).filter(|(_, order)| order.outcome == outcome);
        sells.map(|(_, order)| order.open).sum()
    }

    fn judge_replace_room(&self, request: &Replace<'_>) -> Result<(), Refusal> {
        let taker = self.scratch.takers[0];
        let stays = self.books.orders().len() - self.slots.len();
        if (self.settings.resting_max as usize) < stays + request.coming.len() {
            return Err(Reject::BookFull.into());
        }
        // A full arena was checked above. If orders leave, there is a ladder, or the bytes it gives back.
        if self.slots.is_empty() && self.books.room(taker.market, taker.tick) == Err(Full::Bytes) {
            return Err(Reject::NoRoomForBook.into());
        }
        if taker.account.is_none() {
            // None of the wallet's own accounts is of this market, so none of them leaves.
            self.judge_accounts_of(taker.wallet)?;
            if self.accounts.is_full() && !self.gives_a_row_back() {
                return Err(Reject::TableFull.into());
            }
        }
        let orders = self.books.orders();
        let leaving = self.slots.iter().filter(|slot| orders[**slot].principal == taker.principal).count();
        let [leaving, coming] = [leaving, request.coming.len()]
            .map(|count| u32::try_from(count).expect("a replace has few orders"));
        self.judge_open_orders(taker.principal, leaving, coming)
    }

    /// Whether some account is nothing but leaving orders.
    fn gives_a_row_back(&self) -> bool {
        let mut rows = self.slots.iter().map(|slot| self.placements[*slot].account);
        let all = rows.clone();
        rows.any(|row| self.accounts[row].is_idle_without(all.clone().filter(|other| *other == row).count()))
    }

    /// Which orders that come have the place of one that leaves; a bit for each.
    fn find_heirs(&mut self) -> u64 {
        let Scratch { takers, heirs, .. } = &mut self.scratch;
        let (orders, accounts, placements) = (self.books.orders(), &self.accounts, &self.placements);
        heirs.clear();
        heirs.resize(takers.len(), None);
        let mut larger_first: [usize; REPLACE_PLACED_MAX] = std::array::from_fn(|at| at);
        let larger_first = &mut larger_first[..takers.len()];
        larger_first.sort_unstable_by_key(|at| (Reverse(takers[*at].signed.shares), *at));
        for at in larger_first {
            let taker = &takers[*at];
            let fits = |slot: &Slot| {
                let order = &orders[*slot];
                (order.outcome, order.side, order.price) == (taker.outcome, taker.side, taker.price)
                    && taker.signed.shares <= order.open
                    && accounts[placements[*slot].account].wallet == taker.wallet
            };
            let free = |slot: &Slot| !heirs.contains(&Some(*slot));
            let free = self.slots.iter().copied().filter(|slot| fits(slot) && free(slot));
            heirs[*at] = free.min_by_key(|slot| (orders[*slot].open, orders[*slot].position));
        }
        heirs.iter().enumerate().map(|(at, heir)| u64::from(heir.is_some()) << at).sum()
    }

    fn commit_replace(&mut self, request: &Replace<'_>) -> Result<(), Refusal> {
        let wallet = request.coming[0].wallet;
        let wanted: Collateral =
            self.scratch.takers.iter().map(|taker| reserved(self.settings.funding, taker)).sum();
        let freed = self.leaving_reserves(wallet);
        let due = wanted.checked_sub(freed).unwrap_or_default();
        self.cells.begin_take(self.settings.shard);
        if !self.cells.debit(wallet, due) {
            // It was there when the orders were judged, so another shard has taken it since.
            self.cells.end_take(self.settings.shard);
            return Err(Reject::Busy.into());
        }
        let bytes = self.write_replace(request);
        let payload = &self.payload.as_flattened()[..bytes];
        let claim = self.log.claim(bytes);
        // From here nothing can fail, and what was taken is spent.
        self.cells.end_take(self.settings.shard);
        let span = self.log.commit(claim, OrdersReplaced::KIND, payload);
        self.last = span.end;
        self.apply_replace(request, span.start);
        self.cells.credit(wallet, freed.checked_sub(wanted).unwrap_or_default());
        if !due.is_zero() {
            self.cells.lowered(wallet);
        }
        Ok(())
    }

    /// Writes an [`OrdersReplaced`]; each order in it is written as in a frame of its own. Returns the bytes.
    fn write_replace(&mut self, request: &Replace<'_>) -> usize {
        let orders = self.books.orders();
        let payload = self.payload.as_flattened_mut();
        let mut room = Room::new(payload);
        self.time.put(&mut room);
        request.coming[0].market.put(&mut room);
        put_count(self.slots.len(), &mut room);
        self.slots.iter().for_each(|slot| orders[*slot].position.put(&mut room));
        put_count(request.coming.len(), &mut room);
        let judged = self.scratch.takers.iter().zip(&self.scratch.heirs);
        for (order, (taker, heir)) in request.coming.iter().zip(judged) {
            let reserved = reserved(self.settings.funding, taker);
            room.words(&Decision::rests(taker.price, taker.signed.shares, reserved).head(self.time));
            room.bytes(order.received.lines().as_flattened().as_flattened());
            heir.map(|slot| orders[slot].position).put(&mut room);
        }
        let left = room.left();
        payload.len() - left
    }

    /// Leaving orders whose place is not taken go first, so that no two orders ever cross (BOOK-1), and because the row
    /// of the coming ones may be one that they give back.
    fn apply_replace(&mut self, request: &Replace<'_>, start: Position) {
        let kept = self.scratch.takers[0].account;
        for index in 0..self.slots.len() {
            let slot = self.slots[index];
            if !self.scratch.heirs.contains(&Some(slot)) {
                self.leave_behind(slot, kept);
            }
        }
        let account = self.accounts.open(request.coming[0].wallet, request.coming[0].market);
        let account = account.expect("the room was looked at before the frame");
        for (at, order) in request.coming.iter().enumerate() {
            let (taker, heir) = (self.scratch.takers[at], self.scratch.heirs[at]);
            let position = Position(start.0 + at as u64);
            let new = new_order(&taker, order, taker.signed.shares, position);
            let placement = Placement::new(order.owner, account, reserved(self.settings.funding, &taker));
            let counts = cost(&taker);
            match heir {
                Some(former) => {
                    self.uncount(former);
                    let slot = self.books.succeed(former, &new);
                    self.enlist(slot, placement, counts);
                }
                None => self.rest(taker.tick, &new, placement, counts),
            }
            self.recall.remember(self.now, &order.id, order.stamp_ms, order.principal, First::RESTS);
        }
        self.accounts.settle(account);
    }

    /// Removes a leaving order. If its row is the one `kept` for the coming orders, the row stays, and
    /// what was set aside for the order is counted against them: only what is left over is credited.
    fn leave_behind(&mut self, slot: Slot, kept: Option<Slot>) {
        if Some(self.placements[slot].account) == kept {
            self.uncount(slot);
            self.books.remove(slot);
        } else {
            self.unrest(slot, Collateral::ZERO);
        }
    }
}

fn cost(taker: &Taker) -> Collateral {
    cost_of_buy(taker.price, taker.signed.shares, &taker.fee)
}

/// What is set aside for an order that rests.
fn reserved(funding: Funding, taker: &Taker) -> Collateral {
    match (funding, taker.side) {
        (Funding::Reserved, Side::Buy) => cost(taker),
        (Funding::Reserved, Side::Sell) | (Funding::Market, _) => Collateral::ZERO,
    }
}

fn about(part: fn(u8) -> ReplacePart, at: usize, refusal: Refusal) -> ReplaceRefusal {
    let at = u8::try_from(at).expect("a replace has few orders");
    ReplaceRefusal { refusal, part: Some(part(at)) }
}
