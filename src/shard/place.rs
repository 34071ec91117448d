//! An order's way through the four steps.
//!
//! [`Shard::place`] runs the stages one after another. Tests run them one by one, with other shards'
//! stages in between, at exactly the points where cells are read and lowered.
//!
//! What the stages know lies in one place, is filled in there and read there, field by field. A value that was
//! just written in its fields and is read in larger pieces, as to copy it, waits until every store before it has
//! reached the cache, and the frames' lines in the log are never there.

use super::judge::Verdict;
use super::placements::Placement;
use super::recall::First;
use super::walk::{Met, Taker, Walk};
use super::{Placed, ReadyOrder, Refusal, Shard, Status};
use crate::book::legs::Meeting;
use crate::book::orders::{NEVER, Resting};
use crate::domain::{
    Collateral, MarketNo, OrderId, Outcome, Position, Reject, Shares, Side, Tick, TimeMs, WalletNo,
};
use crate::journal::layout::{
    Decision, Ending, Fill, MatchKind, OrderPlaced, PlacedResult, Removal, RemovalReason,
};
use crate::journal::{Claim, Span};
use crate::memory::arena::Slot;
use std::ops::ControlFlow;

/// The next step of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Walk with loads only.
    Look,
    /// Walk and debit.
    Take,
    /// Take the frame's position.
    Claim,
    /// Write, commit, change everything.
    Apply,
}

/// What lies between two stages.
#[derive(Debug)]
pub(super) struct Work {
    taker: Option<Taker>,
    /// True once a take was given back: the next one is the last.
    again: bool,
    /// Debits that are not claimed yet may be out.
    taking: bool,
    verdict: Verdict,
    ending: Ending,
    claim: Option<Claim>,
}

impl Work {
    pub(super) const fn idle() -> Self {
        Self {
            taker: None,
            again: false,
            taking: false,
            verdict: Verdict::NOTHING,
            ending: Ending::NONE,
            claim: None,
        }
    }

    const fn taker(&self) -> &Taker {
        self.taker.as_ref().expect(BEGUN)
    }
}

const BEGUN: &str = "an order was begun";

impl Shard {
    /// Places an order: fills what it meets, rests what may rest, writes one frame.
    pub fn place(&mut self, now: TimeMs, order: &ReadyOrder) -> Placed {
        let stage = match self.begin(now, order) {
            ControlFlow::Continue(stage) => stage,
            ControlFlow::Break(placed) => return placed,
        };
        let mut work = self.work.take().expect("it is put back below");
        let decided = if stage == Stage::Claim { Ok(()) } else { self.look_and_take(&mut work) };
        let placed = match decided {
            Ok(()) => {
                self.claim(&mut work, order);
                self.apply(&mut work, order)
            }
            Err(refusal) => Placed::Refused(refusal),
        };
        self.work = Some(work);
        placed
    }

    fn look_and_take(&mut self, work: &mut Work) -> Result<(), Refusal> {
        while self.look(work)? != Stage::Claim && self.take(work)? != Stage::Claim {}
        Ok(())
    }

    /// Has what [`Shard::place`] will look for under this digest fetched into the cache, and waits for nothing.
    /// Between digest and decision lies the check of the signature.
    pub fn fetch_ahead(&self, id: &OrderId) {
        self.recall.fetch_ahead(id);
        self.books.orders().fetch_ahead(id);
    }

    /// Has the maker that such an order would meet first fetched into the cache, and waits for nothing: makers
    /// trade oldest first, so most have long left every cache. Nothing if another shard has the market.
    pub fn fetch_maker_ahead(&self, market: MarketNo, outcome: Outcome, side: Side) {
        let opposite = match outcome {
            Outcome::Zero => side.opposite(),
            Outcome::One => side,
        };
        if let Some(slot) = self.books.first(market, opposite) {
            self.fetch_resting(slot);
        }
    }

    /// Has all that is kept of an order that rests fetched into the cache.
    pub(super) fn fetch_resting(&self, slot: Slot) {
        self.books.fetch_ahead(slot);
        self.placements.fetch_ahead(slot);
    }

    /// Whether an order would rest or be filled if it were placed now, else what it comes to: why
    /// not, or what it came to before. Loads only, and nothing is remembered.
    pub fn foresee(&mut self, now: TimeMs, order: &ReadyOrder) -> Result<(), Placed> {
        let stage = match self.begin(now, order) {
            ControlFlow::Continue(Stage::Look) => self.advance(order, Stage::Look),
            other => other,
        };
        match (stage, self.begun().verdict.killed) {
            (ControlFlow::Break(placed), _) => Err(placed),
            (ControlFlow::Continue(_), Some(reject)) => Err(Placed::Refused(reject.into())),
            (ControlFlow::Continue(_), None) => Ok(()),
        }
    }

    /// Judges the order itself. Whatever continues must be advanced to its end before another
    /// command (SHARD-1).
    pub fn begin(&mut self, now: TimeMs, order: &ReadyOrder) -> ControlFlow<Placed, Stage> {
        let now = self.clock(now);
        let row = self.registry.market(order.market);
        assert!(row.shard(self.settings.shards) == self.settings.shard, "a market has one shard");
        assert!(self.begun().claim.is_none() && !self.begun().taking, "SHARD-1");
        if let Some(first) = self.replay(order) {
            return ControlFlow::Break(first);
        }
        let price = match self.judge_order(now, order, row) {
            Ok(price) => price,
            Err(refusal) => return ControlFlow::Break(Placed::Refused(refusal)),
        };
        let taker = self.taker(now, order, row, price);
        let wants = taker.wants();
        **self.work.as_mut().expect(BEGUN) = Work { taker: Some(taker), ..Work::idle() };
        if self.tombstones.waits(&order.id, order.principal, now) {
            self.plan.begin(wants);
            self.begun_mut().verdict.killed = Some(Reject::CancelledBeforeArrival);
            return ControlFlow::Continue(Stage::Claim);
        }
        ControlFlow::Continue(Stage::Look)
    }

    /// Does one step of the order that was begun.
    pub fn advance(&mut self, order: &ReadyOrder, stage: Stage) -> ControlFlow<Placed, Stage> {
        let mut work = self.work.take().expect("it is put back below");
        let next = match stage {
            Stage::Look => self.look(&mut work),
            Stage::Take => self.take(&mut work),
            Stage::Claim => {
                self.claim(&mut work, order);
                Ok(Stage::Apply)
            }
            Stage::Apply => {
                let placed = self.apply(&mut work, order);
                self.work = Some(work);
                return ControlFlow::Break(placed);
            }
        };
        self.work = Some(work);
        match next {
            Ok(stage) => ControlFlow::Continue(stage),
            Err(refusal) => ControlFlow::Break(Placed::Refused(refusal)),
        }
    }

    /// The next stage is *claim* or *take*.
    fn look(&mut self, work: &mut Work) -> Result<Stage, Refusal> {
        let taker = work.taker.as_ref().expect(BEGUN);
        if taker.side == Side::Buy && taker.order_type.rests() {
            self.watch(taker.wallet);
        }
        self.walk(Walk::Look, taker)?;
        self.judge_plan(taker, &mut work.verdict)?;
        if work.verdict.killed.is_some() {
            // A killed order fills nobody, so who is short only after its fills stays.
            self.plan.leaves.retain(|leaves| leaves.in_any_case);
            self.drop_fills(taker);
            return Ok(Stage::Claim);
        }
        let moves_nothing = self.plan.fills.is_empty() && work.verdict.due.is_zero();
        Ok(if moves_nothing { Stage::Claim } else { Stage::Take })
    }

    /// The next stage is *claim*, or once more *look*.
    fn take(&mut self, work: &mut Work) -> Result<Stage, Refusal> {
        let taker = work.taker.as_ref().expect(BEGUN);
        self.cells.begin_take(self.settings.shard);
        work.taking = true;
        if self.pay_as_looked(taker, &work.verdict) {
            return Ok(Stage::Claim);
        }
        if let Err(unsettled) = self.walk(Walk::Take, taker) {
            self.give_back();
            work.taking = false;
            return Err(unsettled.into());
        }
        let mut judged = self.judge_plan(taker, &mut work.verdict);
        if judged.is_ok() && work.verdict.killed.is_none() {
            if self.cells.debit(taker.wallet, work.verdict.due) {
                return Ok(Stage::Claim);
            }
            judged = Err(Reject::NotEnoughBalance.into());
        }
        self.give_back();
        work.taking = false;
        if !work.again {
            work.again = true;
            return Ok(Stage::Look);
        }
        judged?;
        // What was short may not be without the fills that were given back.
        self.plan.leaves.retain(|leaves| leaves.reason != RemovalReason::Unfunded);
        self.drop_fills(taker);
        Ok(Stage::Claim)
    }

    /// Debits what *look* found, without another walk; false, and nothing is debited, if a cell fell meanwhile. A
    /// walk would find the same if everybody can pay; if *look* found somebody short, it may not.
    fn pay_as_looked(&self, taker: &Taker, verdict: &Verdict) -> bool {
        if self.plan.leaves.iter().any(|leaves| leaves.reason == RemovalReason::Unfunded) {
            return false;
        }
        let fills = &self.plan.fills;
        let short =
            fills.iter().position(|met| !met.due.is_zero() && !self.cells.debit(self.payer(met), met.due));
        let paid = short.unwrap_or(fills.len());
        if paid == fills.len()
            && self.judge_funds(taker, verdict.cost).is_ok()
            && self.cells.debit(taker.wallet, verdict.due)
        {
            return true;
        }
        self.put_back(&fills[..paid]);
        false
    }

    /// Puts every debit of the last walk back, and ends the take.
    fn give_back(&self) {
        self.put_back(&self.plan.fills);
        self.cells.end_take(self.settings.shard);
    }

    fn put_back(&self, debited: &[Met]) {
        for met in debited {
            self.cells.credit(self.payer(met), met.due);
        }
    }

    fn payer(&self, met: &Met) -> WalletNo {
        self.accounts[self.placements[met.maker].account].wallet
    }

    fn drop_fills(&mut self, taker: &Taker) {
        let (leaves, stopped) = (std::mem::take(&mut self.plan.leaves), self.plan.stopped);
        self.plan.begin(taker.wants());
        self.plan.leaves = leaves;
        self.plan.stopped = stopped;
    }

    fn claim(&mut self, work: &mut Work, order: &ReadyOrder) {
        work.ending = self.write_decision(work, order);
        work.claim = Some(self.log.claim(work.ending.bytes));
        // From here nothing can fail, and what was taken is spent.
        if work.taking {
            self.cells.end_take(self.settings.shard);
            work.taking = false;
        }
    }

    fn apply(&mut self, work: &mut Work, order: &ReadyOrder) -> Placed {
        let claim = work.claim.take().expect("claimed just before");
        let payload = order.received.payload(self.time, work.ending, &self.payload);
        let span = self.log.commit_parts(claim, OrderPlaced::KIND, &payload);
        self.last = span.end;
        for index in 0..self.plan.leaves.len() {
            let leaves = self.plan.leaves[index];
            self.unrest(leaves.maker, Collateral::ZERO);
        }
        for index in 0..self.plan.fills.len() {
            let met = self.plan.fills[index];
            self.fill_maker(&met);
        }
        if work.verdict.killed.is_none() {
            self.fill_taker(work.taker(), &work.verdict, order, span);
        }
        let fees = self.plan.taker_fees + self.plan.maker_fees;
        self.cells.fee_credit(self.settings.shard, fees);
        let placed = self.outcome(work, span);
        if let Placed::Accepted { status, making, taking, trade, .. } = placed {
            let first = First::Order { status, making, taking, trade };
            self.recall.remember(self.now, &order.id, order.stamp_ms, order.principal, first);
        }
        placed
    }

    fn fill_maker(&mut self, met: &Met) {
        let (maker, placement) = (&self.books.orders()[met.maker], &self.placements[met.maker]);
        self.registry.count_fill(&placement.owner, met.shares, self.now);
        let account = &mut self.accounts[placement.account];
        let outcome = maker.outcome.index();
        let mut spent = Collateral::ZERO;
        match maker.side {
            Side::Buy => {
                account.shares[outcome] += met.shares;
                if placement.reserves() {
                    spent = met.legs.maker + met.maker_fee;
                } else {
                    self.cells.lowered(account.wallet);
                }
            }
            Side::Sell => {
                account.shares[outcome] -= met.shares;
                self.cells.credit(account.wallet, met.legs.maker - met.maker_fee);
            }
        }
        if met.shares == maker.open {
            self.unrest(met.maker, spent);
        } else {
            self.shrink(met.maker, met.shares);
            self.placements[met.maker].reserved -= spent;
            self.books.reduce(met.maker, met.shares);
        }
    }

    fn fill_taker(&mut self, taker: &Taker, verdict: &Verdict, order: &ReadyOrder, span: Span) {
        let &Verdict { open, reserved, due, resting, .. } = verdict;
        if !self.plan.fills.is_empty() {
            self.registry.count_fill(&order.owner, self.plan.shares, self.now);
        }
        let account = match taker.account {
            // Who left may have been all that a row was for.
            Some(account) if self.plan.leaves.is_empty() => account,
            Some(_) | None => {
                let opened = self.accounts.open(taker.wallet, taker.market);
                opened.expect("the room was looked at before the take")
            }
        };
        let outcome = taker.outcome.index();
        match taker.side {
            Side::Buy => self.accounts[account].shares[outcome] += self.plan.shares,
            Side::Sell => {
                self.accounts[account].shares[outcome] -= self.plan.shares;
                self.cells.credit(taker.wallet, self.plan.collateral - self.plan.taker_fees);
            }
        }
        if !open.is_zero() {
            let placement = Placement::new(order.owner, account, reserved);
            self.rest(taker.tick, &new_order(taker, order, open, span.start), placement, resting);
        }
        self.accounts.settle(account);
        if !due.is_zero() {
            self.cells.lowered(taker.wallet);
        }
    }

    /// Puts an order into its book and counts it.
    pub(super) fn rest(&mut self, tick: Tick, order: &Resting, placement: Placement, cost: Collateral) {
        let slot = self.books.rest(tick, order).expect("the room was looked at before the take");
        self.enlist(slot, placement, cost);
    }

    /// Counts an order that has just come to rest. If it is a buy, it may cost `cost`.
    pub(super) fn enlist(&mut self, slot: Slot, placement: Placement, cost: Collateral) {
        self.placements[slot] = placement;
        let account = placement.account;
        self.placements.join(&mut self.accounts[account].orders, slot);
        self.accounts.add_order(account);
        let order = &self.books.orders()[slot];
        match order.side {
            Side::Buy if placement.reserves() => {}
            Side::Buy => self.accounts.add_buying(account, cost),
            Side::Sell => self.accounts[account].selling[order.outcome.index()] += order.open,
        }
        if order.expires_s < NEVER {
            self.expiries.insert(slot, order, &mut self.placements);
        }
    }

    fn outcome(&self, work: &Work, span: Span) -> Placed {
        let plan = &self.plan;
        let filled = !plan.fills.is_empty();
        let status = match work.verdict.killed {
            Some(reject) => Status::Killed(reject),
            None if filled => Status::Matched,
            None => Status::Live,
        };
        let (making, taking) = match work.taker().side {
            Side::Buy => (plan.collateral.0, plan.shares.0),
            Side::Sell => (plan.shares.0, plan.collateral.0),
        };
        Placed::Accepted { status, making, taking, trade: filled.then_some(span.start), replayed: false }
    }

    /// Writes what was decided behind what was received.
    fn write_decision(&mut self, work: &Work, order: &ReadyOrder) -> Ending {
        let taker = work.taker();
        let Verdict { killed, open, reserved, .. } = work.verdict;
        let result = match killed {
            Some(reject) => PlacedResult::Killed(reject),
            None if open.is_zero() => PlacedResult::Filled,
            None => PlacedResult::Rests,
        };
        let orders = self.books.orders();
        let fills = self.plan.fills.iter().map(|met| {
            let maker = &orders[met.maker];
            Fill {
                maker: maker.position,
                shares: met.shares,
                maker_leg: met.legs.maker,
                taker_leg: met.legs.taker,
                maker_fee: met.maker_fee,
                taker_fee: met.taker_fee,
                kind: kind(Meeting::of(taker.side, maker.side)),
                price: maker.price,
            }
        });
        let removed = self.plan.leaves.iter();
        let removed =
            removed.map(|leaves| Removal { order: orders[leaves.maker].position, reason: leaves.reason });
        let (price, stopped) = (taker.price, self.plan.stopped.or(killed));
        let decision = Decision { price, result, stopped, open, reserved, fills, removed };
        order.received.decide(self.time, decision, &mut self.payload)
    }

    fn begun(&self) -> &Work {
        self.work.as_ref().expect(BEGUN)
    }

    fn begun_mut(&mut self) -> &mut Work {
        self.work.as_mut().expect(BEGUN)
    }
}

/// An order as it comes to rest.
pub(super) fn new_order(taker: &Taker, order: &ReadyOrder, open: Shares, position: Position) -> Resting {
    Resting {
        id: order.id,
        open,
        position,
        expires_s: expires_s(order.expiration_s),
        principal: taker.principal,
        market: taker.market,
        price: taker.price,
        side: taker.side,
        outcome: taker.outcome,
    }
}

/// From which second on an order no longer trades; what is said to expire after 2106 never does.
pub(super) fn expires_s(expiration_s: u64) -> u32 {
    if expiration_s == 0 { NEVER } else { u32::try_from(expiration_s).unwrap_or(NEVER) }
}

const fn kind(meeting: Meeting) -> MatchKind {
    match meeting {
        Meeting::Transfer => MatchKind::Transfer,
        Meeting::Mint => MatchKind::Mint,
        Meeting::Merge => MatchKind::Merge,
    }
}
