//! What is judged before a frame: the order's own fields, then what a walk found.
//!
//! Rules are judged in one fixed order, so that the same order is always refused for the same reason.
//! [`Reject`]'s table follows it roughly: for example, a market's post-only mode is judged after the
//! stamp, and what stopped the walk is judged before a FOK that is not filled.

use super::recall::First;
use super::walk::{Left, SETTLE_TRIES, Taker};
use super::{Funding, Placed, REFUSED_PRICE_PLACES, ReadyOrder, Refusal, Shard};
use crate::book::legs::{Meeting, is_dust, least_of_worth};
use crate::book::{Face, Full};
use crate::domain::amount::{ONE, ORDER_AMOUNT_MAX};
use crate::domain::fee::cost_of_buy;
use crate::domain::order::Ratio;
use crate::domain::price::PRICE_ONE;
use crate::domain::time::MILLISECONDS_FROM;
use crate::domain::{Collateral, Mode, OrderType, Price, Reject, Shares, Side, Tick, TimeMs, WalletNo};
use crate::registry::MarketRow;

/// How far ahead of the server's clock an order's own stamp may be: as far as the clock of a client may be by the
/// default of `auth.window_s`. What is ahead stays longest in the memory of digests, and if it filled that, whatever has
/// an honest stamp would be too old: at the default sizes that takes 66,000 orders a second.
pub(super) const AHEAD_MS_MAX: u64 = 60_000;

/// What is to be done, after a walk, with an order that is not refused.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Why the order is killed: nothing is filled or rests, and the sums below are zero, but it gets a frame.
    pub(super) killed: Option<Reject>,
    /// The shares that rest.
    pub(super) open: Shares,
    /// What the taker's cell pays on arrival: legs, fees, and what is set aside.
    pub(super) due: Collateral,
    /// What a buy costs in all: its legs and fees on arrival, and what its rest may cost.
    pub(super) cost: Collateral,
    /// What the rest of a buy adds to its wallet's open buys.
    pub(super) resting: Collateral,
    /// Collateral set aside for what rests.
    pub(super) reserved: Collateral,
}

impl Verdict {
    /// The verdict of an order that has not been judged.
    pub(super) const NOTHING: Self = Self {
        killed: None,
        open: Shares::ZERO,
        due: Collateral::ZERO,
        cost: Collateral::ZERO,
        resting: Collateral::ZERO,
        reserved: Collateral::ZERO,
    };
}

/// The part of what a walk found that the rules judge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Whether anything is filled.
    pub(super) trades: bool,
    /// See [`super::walk::Plan::stopped`].
    pub(super) stopped: Option<Reject>,
    /// See [`super::walk::Plan::spent`].
    pub(super) spent: bool,
    /// See [`super::walk::Plan::open`].
    pub(super) open: Shares,
    /// The taker's legs and fees of all fills together.
    pub(super) paid: Collateral,
}

impl Found {
    /// What an order that counts shares finds if it meets nobody.
    pub(super) const fn nobody(taker: &Taker) -> Self {
        let open = taker.signed.shares;
        Self { trades: false, stopped: None, spent: false, open, paid: Collateral::ZERO }
    }
}

impl Shard {
    /// The first result of this digest, if it was this principal's. Any other principal is refused: a
    /// deposit wallet's digest does not name its owner, so somebody else may sign it too, but the
    /// wallet is the first one's.
    pub(super) fn replay(&self, order: &ReadyOrder) -> Option<Placed> {
        let (principal, first) = self.recall.find(&order.id)?;
        Some(match first {
            First::Order { status, making, taking, trade } if principal == order.principal => {
                Placed::Accepted { status, making, taking, trade, replayed: true }
            }
            First::Order { .. } | First::Act { .. } => Placed::Refused(Reject::MakerNotAuthorized.into()),
        })
    }

    /// Judges the order's own fields, and returns it with its limit on the grid.
    #[allow(clippy::inline_always, reason = "store forwarding, see `place`")]
    #[inline(always)]
    pub(super) fn judge_order(
        &self,
        now: TimeMs,
        order: &ReadyOrder,
        row: &MarketRow,
    ) -> Result<Taker, Refusal> {
        if !self.log.room_for_order(self.settings.shards) {
            return Err(Reject::Busy.into());
        }
        self.judge_exchange(order.post_only)?;
        if self.registry.wallet(order.principal).frozen() {
            return Err(Reject::Frozen.into());
        }
        if self.registry.has_tripped(order.principal, &order.owner) {
            return Err(Reject::FillRateTripped.into());
        }
        self.judge_stamp(now, order.stamp_ms)?;
        match row.mode() {
            Mode::Open => {}
            mode => judge_market_mode(mode, order.post_only)?,
        }
        judge_amounts(order.signed)?;
        let tick = row.tick();
        let buys_for_collateral = !order.order_type.rests() && order.side == Side::Buy;
        let price = judge_price(order.signed, tick, buys_for_collateral)?;
        if order.post_only && !order.order_type.rests() {
            return Err(Reject::PostOnlyType.into());
        }
        judge_expiration(now, order)?;
        if order.deadline_ms != 0 {
            let present_ms = now.0.saturating_sub(self.ahead_ms);
            if order.deadline_ms <= present_ms {
                return Err(Refusal {
                    reject: Reject::DeadlinePassed,
                    got: order.deadline_ms,
                    allowed: present_ms,
                });
            }
        }
        Ok(Taker {
            account: self.accounts.find(order.wallet, order.market),
            principal: order.principal,
            wallet: order.wallet,
            market: order.market,
            outcome: order.outcome,
            side: order.side,
            price,
            face: Face::of(order.side, order.outcome, price),
            signed: order.signed,
            order_type: order.order_type,
            post_only: order.post_only,
            self_trade: order.self_trade,
            tick,
            fee: row.fee,
            min_size: row.min_size,
        })
    }

    /// Judges the exchange's mode; an act that `rests_only` passes in post-only mode.
    pub(super) fn judge_exchange(&self, rests_only: bool) -> Result<(), Refusal> {
        match self.registry.exchange_mode() {
            Mode::Open => Ok(()),
            mode => judge_exchange_mode(mode, rests_only),
        }
    }

    /// Judges the client's own stamp: neither too old for the memory of digests nor too far ahead.
    pub(super) fn judge_stamp(&self, now: TimeMs, stamp_ms: u64) -> Result<(), Refusal> {
        let (oldest, newest) = (self.recall.horizon_ms() + 1, now.plus_ms(AHEAD_MS_MAX).0);
        let refuse = |reject, allowed| Err(Refusal { reject, got: stamp_ms, allowed });
        if stamp_ms < oldest {
            return refuse(Reject::TooOld, oldest);
        }
        if newest < stamp_ms {
            return refuse(Reject::TooNew, newest);
        }
        Ok(())
    }

    /// Judges what the last walk found. A refusal leaves `verdict` unchanged.
    pub(super) fn judge_plan(&self, taker: &Taker, verdict: &mut Verdict) -> Result<(), Refusal> {
        *verdict = self.judge_found(taker, &self.plan.found())?;
        Ok(())
    }

    /// Judges what a walk found.
    #[allow(clippy::inline_always, reason = "mostly constant for an order that meets nobody, see `rest`")]
    #[inline(always)]
    pub(super) fn judge_found(&self, taker: &Taker, found: &Found) -> Result<Verdict, Refusal> {
        let open = match taker.order_type {
            OrderType::Gtc | OrderType::Gtd if !is_dust(taker.price, found.open) => found.open,
            _ => Shares::ZERO,
        };
        self.judge_sizes(taker, found, open)?;
        let is_buy = taker.side == Side::Buy;
        let resting = if is_buy { cost_of_buy(taker.price, open, &taker.fee) } else { Collateral::ZERO };
        let paid = if is_buy { found.paid } else { Collateral::ZERO };
        let cost = paid + resting;
        self.judge_funds(taker, cost)?;
        if let Some(reject) = self.kill(taker, found) {
            return Ok(Verdict { killed: Some(reject), ..Verdict::NOTHING });
        }
        self.judge_room(taker, found, open)?;
        let reserved = match self.settings.funding {
            Funding::Reserved => resting,
            Funding::Market => Collateral::ZERO,
        };
        Ok(Verdict { killed: None, open, due: paid + reserved, cost, resting, reserved })
    }

    #[allow(clippy::inline_always, reason = "see `judge_found`")]
    #[inline(always)]
    fn judge_sizes(&self, taker: &Taker, found: &Found, open: Shares) -> Result<(), Refusal> {
        let &Found { trades, stopped, spent, .. } = found;
        let Ratio { collateral, shares } = taker.signed;
        // Whatever its size.
        if taker.post_only && (trades || stopped.is_some() || spent) {
            return Err(Reject::PostOnlyCrosses.into());
        }
        if !open.is_zero() && shares < taker.min_size {
            let (got, allowed) = (shares.0, taker.min_size.0);
            return Err(Refusal { reject: Reject::SizeTooSmall, got, allowed });
        }
        // An order that was stopped is killed for that, whatever its size.
        if taker.order_type.rests() && open.is_zero() && !trades && stopped.is_none() {
            let (got, allowed) = (shares.0, taker.min_size.max(least_of_worth(taker.tick)).0);
            return Err(Refusal { reject: Reject::SizeTooSmall, got, allowed });
        }
        let marketable = trades || !taker.order_type.rests();
        let least = self.settings.min_notional;
        if taker.side == Side::Buy && marketable && collateral < least {
            return Err(Refusal { reject: Reject::NotionalTooSmall, got: collateral.0, allowed: least.0 });
        }
        Ok(())
    }

    /// A buy is covered if the cell holds the wallet's other open buys in this market and, beside them,
    /// what was signed or what the order costs with fees, whichever is more. A sell is covered if its
    /// shares are free.
    #[allow(clippy::inline_always, reason = "see `judge_found`")]
    #[inline(always)]
    pub(super) fn judge_funds(&self, taker: &Taker, cost: Collateral) -> Result<(), Refusal> {
        let account = taker.account.map(|slot| &self.accounts[slot]);
        match taker.side {
            Side::Buy => {
                let others = account.map_or(Collateral::ZERO, |account| account.buying);
                let needed = others + taker.signed.collateral.max(cost);
                self.judge_cell(taker.wallet, needed, Collateral::ZERO)
            }
            Side::Sell => {
                let free = account.map_or(Shares::ZERO, |account| account.free(taker.outcome));
                judge_shares(taker.signed.shares, free)
            }
        }
    }

    /// Whether the wallet's cell, with what it has `beside`, holds what is needed. Busy while another shard may give
    /// back what is missing.
    #[allow(clippy::inline_always, reason = "see `judge_found`")]
    #[inline(always)]
    pub(super) fn judge_cell(
        &self,
        wallet: WalletNo,
        needed: Collateral,
        beside: Collateral,
    ) -> Result<(), Refusal> {
        if needed <= self.cells.balance(wallet) + beside {
            return Ok(());
        }
        self.judge_short_cell(wallet, needed, beside)
    }

    #[cold]
    fn judge_short_cell(
        &self,
        wallet: WalletNo,
        needed: Collateral,
        beside: Collateral,
    ) -> Result<(), Refusal> {
        for _ in 0..SETTLE_TRIES {
            if let Some(balance) = self.cells.settled(wallet, self.settings.shard) {
                let there = balance + beside;
                if needed <= there {
                    return Ok(());
                }
                return Err(Refusal { reject: Reject::NotEnoughBalance, got: needed.0, allowed: there.0 });
            }
            std::hint::spin_loop();
        }
        Err(Reject::Busy.into())
    }

    /// Why the order is killed, though it was a good order.
    #[allow(clippy::inline_always, reason = "see `judge_found`")]
    #[inline(always)]
    fn kill(&self, taker: &Taker, found: &Found) -> Option<Reject> {
        let &Found { trades, stopped, .. } = found;
        match taker.order_type {
            _ if !trades && stopped.is_some() => stopped,
            OrderType::Fok if self.is_full(taker) => None,
            // More makers might have filled it: this reason tells the client to try a smaller order.
            OrderType::Fok if stopped == Some(Reject::FillsLimit) => stopped,
            OrderType::Fok => Some(Reject::FokNotFilled),
            OrderType::Fak => (!trades).then_some(Reject::FakNoMatch),
            OrderType::Gtc | OrderType::Gtd => None,
        }
    }

    /// Whether the walk filled everything. What is left may be worth less than a millionth of a USDC to the next maker,
    /// which cannot be traded; of what counts collateral, also at the worst price reached.
    fn is_full(&self, taker: &Taker) -> bool {
        let plan = &self.plan;
        let Some(worst) = plan.fills.last() else {
            return false;
        };
        if plan.stopped.is_some() {
            return false;
        }
        let maker = &self.books.orders()[worst.maker];
        let price = Meeting::of(taker.side, maker.side).taker_price(maker.price);
        plan.spent
            || match plan.left {
                Left::Shares(_) => plan.left.is_nothing(),
                Left::Collateral(_) => is_dust(maker.price, plan.left.shares_at(price)),
            }
    }

    #[allow(clippy::inline_always, reason = "see `judge_found`")]
    #[inline(always)]
    fn judge_room(&self, taker: &Taker, found: &Found, open: Shares) -> Result<(), Refusal> {
        if !open.is_zero() {
            match self.books.room(taker.market, taker.tick) {
                Ok(()) => {}
                Err(Full::Orders) => return Err(Reject::BookFull.into()),
                Err(Full::Bytes) => return Err(Reject::NoRoomForBook.into()),
            }
        }
        let needs_row = found.trades || !open.is_zero();
        if needs_row && taker.account.is_none() {
            self.judge_account_room(taker.wallet)?;
        }
        if open.is_zero() { Ok(()) } else { self.judge_open_orders(taker.principal, 0, 1) }
    }

    /// Whether there is room for another account of this wallet.
    #[cold]
    pub(super) fn judge_account_room(&self, wallet: WalletNo) -> Result<(), Refusal> {
        self.judge_accounts_of(wallet)?;
        if self.accounts.is_full() { Err(Reject::TableFull.into()) } else { Ok(()) }
    }

    /// Whether this wallet may have another account.
    pub(super) fn judge_accounts_of(&self, wallet: WalletNo) -> Result<(), Refusal> {
        let (coming, most) = (self.accounts.wallet(wallet).rows + 1, self.settings.accounts_per_wallet_max);
        if most < coming {
            let (got, allowed) = (coming.into(), most.into());
            return Err(Refusal { reject: Reject::TooManyPositions, got, allowed });
        }
        Ok(())
    }

    /// Whether a principal may have so many orders open when `leaving` have left and `coming` have come. Who has more than
    /// it may, from before the bound was lowered, need only not get more.
    #[allow(clippy::inline_always, reason = "see `judge_found`")]
    #[inline(always)]
    pub(super) fn judge_open_orders(
        &self,
        principal: WalletNo,
        leaving: u32,
        coming: u32,
    ) -> Result<(), Refusal> {
        let (open, most) = (self.open_orders(principal) - leaving + coming, self.settings.open_per_owner_max);
        if open <= most || coming <= leaving {
            return Ok(());
        }
        Err(Refusal { reject: Reject::TooManyOpenOrders, got: open.into(), allowed: most.into() })
    }
}

/// Judges the expiration: a GTD order has one, in seconds and in the future; no other order has one.
#[allow(clippy::inline_always, reason = "see `judge_order`")]
#[inline(always)]
fn judge_expiration(now: TimeMs, order: &ReadyOrder) -> Result<(), Refusal> {
    let got = order.expiration_s;
    let is_gtd = order.order_type == OrderType::Gtd;
    if is_gtd != (got != 0) {
        let allowed = if is_gtd { MILLISECONDS_FROM } else { 0 };
        return Err(Refusal { reject: Reject::ExpirationType, got, allowed });
    }
    if !is_gtd {
        return Ok(());
    }
    if MILLISECONDS_FROM <= got {
        return Err(Refusal { reject: Reject::ExpirationTooLarge, got, allowed: MILLISECONDS_FROM });
    }
    if TimeMs::from_seconds(got) <= now {
        return Err(Refusal { reject: Reject::Expired, got, allowed: now.seconds() + 1 });
    }
    Ok(())
}

// Out of line, like the market's mode: inlined, each would become a jump table, and every order would go through
// both even on an open exchange.
#[cold]
fn judge_exchange_mode(mode: Mode, rests_only: bool) -> Result<(), Refusal> {
    match mode {
        Mode::Open => Ok(()),
        Mode::PostOnly if rests_only => Ok(()),
        Mode::PostOnly => Err(Reject::PostOnlyMode.into()),
        Mode::CancelOnly => Err(Reject::CancelOnly.into()),
        Mode::Closed | Mode::Resolved => Err(Reject::TradingDisabled.into()),
    }
}

#[cold]
fn judge_market_mode(mode: Mode, post_only: bool) -> Result<(), Refusal> {
    match mode {
        Mode::Open => Ok(()),
        Mode::PostOnly if post_only => Ok(()),
        Mode::PostOnly => Err(Reject::PostOnlyMode.into()),
        Mode::CancelOnly => Err(Reject::MarketPaused.into()),
        Mode::Closed => Err(Reject::MarketClosed.into()),
        Mode::Resolved => Err(Reject::MarketResolved.into()),
    }
}

/// Whether there are as many shares as are needed.
pub(super) fn judge_shares(needed: Shares, there: Shares) -> Result<(), Refusal> {
    if there < needed {
        return Err(Refusal { reject: Reject::NotEnoughBalance, got: needed.0, allowed: there.0 });
    }
    Ok(())
}

fn judge_amounts(signed: Ratio) -> Result<(), Refusal> {
    let (collateral, shares) = (signed.collateral.0, signed.shares.0);
    let (least, most) = (collateral.min(shares), collateral.max(shares));
    if least == 0 {
        return Err(Reject::AmountZero.into());
    }
    if ORDER_AMOUNT_MAX < most {
        return Err(Refusal { reject: Reject::AmountTooLarge, got: most, allowed: ORDER_AMOUNT_MAX });
    }
    Ok(())
}

/// The order's limit on the grid: exactly what was signed; a market buy's snaps.
fn judge_price(signed: Ratio, tick: Tick, snaps: bool) -> Result<Price, Refusal> {
    let price = if snaps { signed.snapped_price(tick) } else { signed.exact_price(tick) };
    price.ok_or_else(|| no_price(signed, tick))
}

/// Why an order has no price on the grid.
#[cold]
fn no_price(signed: Ratio, tick: Tick) -> Refusal {
    let refuse = |reject| {
        let one = 10_u64.pow(REFUSED_PRICE_PLACES);
        let ratio = u128::from(signed.collateral.0) * u128::from(one) / u128::from(signed.shares.0);
        let got = u64::try_from(ratio).unwrap_or(u64::MAX);
        Refusal { reject, got, allowed: u64::from(tick.ten_thousandths()) * (one / u64::from(PRICE_ONE)) }
    };
    let inside = || {
        let step = u64::from(tick.ten_thousandths()) * (ONE / u64::from(PRICE_ONE));
        let scaled = u128::from(signed.collateral.0) * u128::from(ONE);
        let shares = u128::from(signed.shares.0);
        shares * u128::from(step) <= scaled && scaled <= shares * u128::from(ONE - step)
    };
    refuse(if inside() { Reject::PriceOffTick } else { Reject::PriceOutOfRange })
}
