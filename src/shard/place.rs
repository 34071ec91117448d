//! An order's way through the four stages.
//!
//! [`Shard::place`] takes the short way (`rest`) if the order meets nobody; otherwise it runs the stages one after
//! another. Tests run them one by one, with other shards' stages in between, at exactly the points where cells are
//! read and lowered.
//!
//! **Store forwarding.** What one stage has just written, the next reads with the width it was written with. A wide
//! load over several narrow recent stores, as in copying a struct, cannot be forwarded from them: it waits until
//! every earlier store has reached the cache, and the log's lines are never in it. So [`Taker`] and [`Work`] are
//! built in place and never copied, and what touches them is `inline(always)`. Only an order that tests run stage
//! by stage is stored away in between. `Work` does not hold the taker, as an order that meets nobody needs none.

use super::judge::Verdict;
use super::placements::Placement;
use super::recall::First;
use super::rest::new_order;
use super::walk::{Met, Taker, Walk};
use super::{Placed, ReadyOrder, Refusal, Shard, Status};
use crate::book::legs::Meeting;
use crate::domain::{Collateral, Reject, Side, TimeMs, WalletNo};
use crate::journal::layout::{
    Decided, Decision, Fill, MatchKind, OrderPlaced, PlacedResult, Removal, RemovalReason,
};
use crate::journal::{Claim, Span};
use std::ops::ControlFlow;

/// A stage of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Walk and judge; cells are only loaded.
    Look,
    /// Walk and debit.
    Take,
    /// Claim the frame's position.
    Claim,
    /// Write and commit the frame, change everything.
    Apply,
}

/// What one stage leaves for the next.
#[derive(Debug)]
pub(super) struct Work {
    /// True once a take was given back; the next take is the last.
    again: bool,
    /// True while there may be debits whose frame is not claimed yet.
    taking: bool,
    verdict: Verdict,
}

impl Work {
    /// Before the first stage.
    const NOTHING: Self = Self { again: false, taking: false, verdict: Verdict::NOTHING };
}

/// What was decided, and its frame's place in the log.
#[derive(Debug)]
pub(super) struct Framed {
    decided: Decided,
    claim: Claim,
}

impl Shard {
    /// Places an order: fills what it meets, rests what may rest, writes one frame.
    pub fn place(&mut self, now: TimeMs, order: &ReadyOrder) -> Placed {
        let taker = match self.judge(now, order) {
            Ok(taker) => taker,
            Err(placed) => return placed,
        };
        if self.comes_to_rest(&taker, order) {
            return self.place_to_rest(&taker, order).unwrap_or_else(Placed::Refused);
        }
        self.place_in_stages(&taker, order)
    }

    // Out of line, so that an order that meets nobody does not pay for its set-up.
    #[inline(never)]
    fn place_in_stages(&mut self, taker: &Taker, order: &ReadyOrder) -> Placed {
        let mut work = Work::NOTHING;
        if !self.kill_if_cancelled(taker, &mut work, order)
            && let Err(refusal) = self.look_and_take(taker, &mut work)
        {
            return Placed::Refused(refusal);
        }
        let framed = self.claim(taker, &mut work, order);
        self.apply(taker, &work, framed, order)
    }

    fn look_and_take(&mut self, taker: &Taker, work: &mut Work) -> Result<(), Refusal> {
        loop {
            if self.look(taker, work)? == Stage::Claim || self.take(taker, work)? == Stage::Claim {
                return Ok(());
            }
        }
    }

    /// Whether an order would rest or be filled if it were placed now, else what it comes to: why
    /// not, or what it came to before. Nothing of it is remembered.
    pub fn foresee(&mut self, now: TimeMs, order: &ReadyOrder) -> Result<(), Placed> {
        let taker = self.judge(now, order)?;
        let mut work = Work::NOTHING;
        if !self.kill_if_cancelled(&taker, &mut work, order) {
            self.look(&taker, &mut work).map_err(Placed::Refused)?;
        }
        work.verdict.killed.map_or(Ok(()), |reject| Err(Placed::Refused(reject.into())))
    }

    /// Judges the order itself. If it continues, it must be advanced to its end before the next
    /// command (SHARD-1).
    pub fn begin(&mut self, now: TimeMs, order: &ReadyOrder) -> ControlFlow<Placed, Stage> {
        let taker = match self.judge(now, order) {
            Ok(taker) => taker,
            Err(placed) => return ControlFlow::Break(placed),
        };
        let mut work = Work::NOTHING;
        let stage = if self.kill_if_cancelled(&taker, &mut work, order) { Stage::Claim } else { Stage::Look };
        self.begun = Some((taker, work, None));
        ControlFlow::Continue(stage)
    }

    /// Runs one stage of the order that was begun.
    pub fn advance(&mut self, order: &ReadyOrder, stage: Stage) -> ControlFlow<Placed, Stage> {
        let (taker, mut work, mut framed) = self.begun.take().expect("an order was begun");
        let next = match stage {
            Stage::Look => self.look(&taker, &mut work),
            Stage::Take => self.take(&taker, &mut work),
            Stage::Claim => {
                framed = Some(self.claim(&taker, &mut work, order));
                Ok(Stage::Apply)
            }
            Stage::Apply => {
                let framed = framed.expect("claimed just before");
                return ControlFlow::Break(self.apply(&taker, &work, framed, order));
            }
        };
        match next {
            Ok(stage) => {
                self.begun = Some((taker, work, framed));
                ControlFlow::Continue(stage)
            }
            Err(refusal) => ControlFlow::Break(Placed::Refused(refusal)),
        }
    }

    /// Judges the order itself; returns the taker, or an answer if the order ends here.
    #[allow(clippy::inline_always, reason = "store forwarding, see above")]
    #[inline(always)]
    fn judge(&mut self, now: TimeMs, order: &ReadyOrder) -> Result<Taker, Placed> {
        let now = self.clock(now);
        assert!(self.begun.is_none(), "SHARD-1");
        let swept = self.expire(now);
        let row = self.registry.market(order.market);
        assert!(row.shard(self.settings.shards) == self.settings.shard, "a market has one shard");
        if let Some(first) = self.replay(order) {
            return Err(first);
        }
        if !swept {
            return Err(Placed::Refused(Reject::Busy.into()));
        }
        self.judge_order(now, order, row).map_err(Placed::Refused)
    }

    /// Whether a cancel came before the order. If so, kills the order, which then needs no walk.
    fn kill_if_cancelled(&mut self, taker: &Taker, work: &mut Work, order: &ReadyOrder) -> bool {
        let is_cancelled = self.tombstones.waits(&order.id, order.principal, self.now);
        if is_cancelled {
            self.plan.begin(taker.wants());
            work.verdict.killed = Some(Reject::CancelledBeforeArrival);
        }
        is_cancelled
    }

    /// Returns the next stage: *claim* or *take*.
    fn look(&mut self, taker: &Taker, work: &mut Work) -> Result<Stage, Refusal> {
        if taker.order_type.rests() {
            self.prepare_rest(taker);
        }
        self.walk(Walk::Look, taker)?;
        self.judge_plan(taker, &mut work.verdict)?;
        if work.verdict.killed.is_some() {
            // A killed order fills nobody, so a maker that is short only after its fills stays.
            self.plan.leaves.retain(|leaves| leaves.in_any_case);
            self.drop_fills(taker);
            return Ok(Stage::Claim);
        }
        let moves_nothing = self.plan.fills.is_empty() && work.verdict.due.is_zero();
        Ok(if moves_nothing { Stage::Claim } else { Stage::Take })
    }

    /// Returns the next stage: *claim*, or *look* once more.
    fn take(&mut self, taker: &Taker, work: &mut Work) -> Result<Stage, Refusal> {
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
            judged = Err(Reject::Busy.into());
        }
        self.give_back();
        work.taking = false;
        if !work.again {
            work.again = true;
            return Ok(Stage::Look);
        }
        judged?;
        // Makers that were short may be covered without the fills that were given back, which made no dust either.
        self.plan.leaves.retain(|leaves| leaves.in_any_case && leaves.reason != RemovalReason::Unfunded);
        self.drop_fills(taker);
        Ok(Stage::Claim)
    }

    /// Debits what *look* found, without another walk. False, with nothing debited, if a cell has fallen or a breaker
    /// tripped since, or if *look* found a maker short: only when every maker could pay is a second walk sure to find
    /// the same.
    fn pay_as_looked(&self, taker: &Taker, verdict: &Verdict) -> bool {
        let fills = &self.plan.fills;
        let has_tripped = !fills.is_empty() && self.plan.trips != self.registry.trips();
        if has_tripped || self.plan.leaves.iter().any(|leaves| leaves.reason == RemovalReason::Unfunded) {
            return false;
        }
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

    /// Gives every debit of the last walk back, and ends the take.
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

    #[allow(clippy::inline_always, reason = "store forwarding, see above")]
    #[inline(always)]
    fn claim(&mut self, taker: &Taker, work: &mut Work, order: &ReadyOrder) -> Framed {
        let decided = self.write_decision(taker, work, order);
        let claim = self.log.claim(order.received.payload(&decided, &self.payload).bytes());
        // From here nothing can fail, and what was taken is spent.
        if work.taking {
            self.cells.end_take(self.settings.shard);
            work.taking = false;
        }
        Framed { decided, claim }
    }

    #[allow(clippy::inline_always, reason = "store forwarding, see above")]
    #[inline(always)]
    fn apply(&mut self, taker: &Taker, work: &Work, framed: Framed, order: &ReadyOrder) -> Placed {
        let Framed { decided, claim } = framed;
        let payload = order.received.payload(&decided, &self.payload);
        let span = self.log.commit_parts(claim, OrderPlaced::KIND, &payload);
        self.last = span.end;
        for index in 0..self.plan.fills.len() {
            let met = self.plan.fills[index];
            self.fill_maker(&met);
        }
        for index in 0..self.plan.leaves.len() {
            let leaves = self.plan.leaves[index];
            self.unrest(leaves.maker, Collateral::ZERO);
        }
        if work.verdict.killed.is_none() {
            self.fill_taker(taker, &work.verdict, order, span);
        }
        let fees = self.plan.taker_fees + self.plan.maker_fees;
        self.cells.fee_credit(self.settings.shard, fees);
        let placed = self.outcome(taker, work, span);
        if let Placed::Accepted { status, making, taking, trade, .. } = placed {
            let first = First::Order { status, making, taking, trade };
            self.recall.remember(self.now, &order.id, order.stamp_ms, order.principal, first);
        }
        placed
    }

    fn fill_maker(&mut self, met: &Met) {
        let (maker, placement) = (&self.books.orders()[met.maker], &self.placements[met.maker]);
        self.registry.count_fill(maker.principal, &placement.owner, met.shares, self.now);
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
            self.registry.count_fill(order.principal, &order.owner, self.plan.shares, self.now);
        }
        let account = match taker.account {
            // An order that left may have been all that the taker's row was kept for.
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
        if open.is_zero() {
            self.accounts.settle(account);
        } else {
            let placement = Placement::new(order.owner, account, reserved);
            self.rest(taker.tick, &new_order(taker, order, open, span.start), placement, resting);
        }
        if !due.is_zero() {
            self.cells.lowered(taker.wallet);
        }
    }

    fn outcome(&self, taker: &Taker, work: &Work, span: Span) -> Placed {
        let plan = &self.plan;
        let filled = !plan.fills.is_empty();
        let status = match work.verdict.killed {
            Some(reject) => Status::Killed(reject),
            None if filled => Status::Matched,
            None => Status::Live,
        };
        let (making, taking) = match taker.side {
            Side::Buy => (plan.collateral.0, plan.shares.0),
            Side::Sell => (plan.shares.0, plan.collateral.0),
        };
        Placed::Accepted { status, making, taking, trade: filled.then_some(span.start), replayed: false }
    }

    /// The decision as its frame says it.
    fn write_decision(&mut self, taker: &Taker, work: &Work, order: &ReadyOrder) -> Decided {
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
}

const fn kind(meeting: Meeting) -> MatchKind {
    match meeting {
        Meeting::Transfer => MatchKind::Transfer,
        Meeting::Mint => MatchKind::Mint,
        Meeting::Merge => MatchKind::Merge,
    }
}
