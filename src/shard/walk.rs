//! The walk over makers: once with loads only (*look*), once debiting those who pay (*take*).
//!
//! Both walks are this one function, so what *look* found holds for *take* unless a cell fell
//! in between. Makers are met best price first, in the order of their placement within a price.
//!
//! | met | what happens |
//! |---|---|
//! | an order whose key's fill-rate breaker has tripped | it leaves, swept or not |
//! | an order that what is left would buy less than a millionth of | the taker is spent and the walk ends |
//! | an order of the same principal, for either token | the taker's rule says who leaves |
//! | a buyer whose cell does not cover its leg and fee | it leaves, the walk goes on |
//! | anything else | a fill; if the rest is worth less than a millionth, it leaves as dust |

use super::judge::Found;
use super::{Refusal, Shard};
use crate::book::Face;
use crate::book::legs::{self, Legs, Meeting};
use crate::book::orders::Resting;
use crate::domain::order::Ratio;
use crate::domain::{
    Collateral, FeeSchedule, MarketNo, OrderId, OrderType, Outcome, Price, Reject, SelfTrade, Shares, Side,
    Tick, WalletNo,
};
use crate::journal::layout::RemovalReason;
use crate::journal::layout::order::{FILLS_MAX, REMOVALS_MAX};
use crate::memory::arena::Slot;

/// How often a walk looks again at a cell that another shard may be about to fill up again. A take
/// lasts well under a microsecond, so this many looks outlast it unless its thread was preempted.
pub(super) const SETTLE_TRIES: u32 = 64;

/// Another shard may still give its debits back, so whether a maker is short cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsettled;

impl From<Unsettled> for Refusal {
    fn from(_: Unsettled) -> Self {
        Reject::Busy.into()
    }
}

/// What a taker still wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Limit orders and market sells count shares.
    Shares(Shares),
    /// Market buys count collateral.
    Collateral(Collateral),
}

impl Left {
    pub(super) const fn is_nothing(self) -> bool {
        match self {
            Self::Shares(shares) => shares.is_zero(),
            Self::Collateral(collateral) => collateral.is_zero(),
        }
    }

    /// The shares still wanted, at a `price` in terms of the taker's token.
    pub(super) fn shares_at(self, price: Price) -> Shares {
        match self {
            Self::Shares(shares) => shares,
            Self::Collateral(collateral) => price.shares_for(collateral),
        }
    }

    fn less(self, shares: Shares, leg: Collateral) -> Self {
        match self {
            Self::Shares(left) => Self::Shares(left - shares),
            Self::Collateral(left) => Self::Collateral(left - leg),
        }
    }
}

/// An incoming order that passed every check that needs no book.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    /// The row of its wallet in its market, if there is one.
    pub(super) account: Option<Slot>,
    pub(super) principal: WalletNo,
    pub(super) wallet: WalletNo,
    pub(super) market: MarketNo,
    pub(super) outcome: Outcome,
    pub(super) side: Side,
    /// Its limit in terms of its own token, on the grid.
    pub(super) price: Price,
    pub(super) face: Face,
    pub(super) signed: Ratio,
    pub(super) order_type: OrderType,
    pub(super) post_only: bool,
    pub(super) self_trade: SelfTrade,
    pub(super) tick: Tick,
    pub(super) fee: FeeSchedule,
    pub(super) min_size: Shares,
}

impl Taker {
    /// What it wants before the first fill. Market buys count collateral.
    pub(super) const fn wants(&self) -> Left {
        match (self.side, self.order_type.rests()) {
            (Side::Buy, false) => Left::Collateral(self.signed.collateral),
            (Side::Buy, true) | (Side::Sell, _) => Left::Shares(self.signed.shares),
        }
    }
}

/// What a fill would move, whoever the maker is and whether or not it can pay.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// In terms of the taker's token.
    price: Price,
    shares: Shares,
    legs: Legs,
}

/// A fill, decided but not yet applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) maker: Slot,
    pub(super) shares: Shares,
    pub(super) legs: Legs,
    pub(super) maker_fee: Collateral,
    pub(super) taker_fee: Collateral,
    /// What *take* debits from the maker's cell; zero for a seller, and where collateral was set aside.
    pub(super) due: Collateral,
}

/// A maker that leaves without a fill, or the dust that a fill makes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaves {
    pub(super) maker: Slot,
    pub(super) reason: RemovalReason,
    /// False if it leaves only because of this walk's fills: it is dust, or short of what its wallet paid before.
    pub(super) in_any_case: bool,
}

/// What a walk found. Its lists keep their memory from order to order.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fills: Vec<Met>,
    pub(super) leaves: Vec<Leaves>,
    pub(super) left: Left,
    /// Why the walk ended before makers or taker were exhausted.
    pub(super) stopped: Option<Reject>,
    /// True if what is left of the taker is worth less than a millionth at the next maker it reaches.
    pub(super) spent: bool,
    /// How often breakers had tripped when makers were walked.
    pub(super) trips: u32,
    /// Sums over the fills.
    pub(super) shares: Shares,
    pub(super) collateral: Collateral,
    pub(super) taker_fees: Collateral,
    pub(super) maker_fees: Collateral,
}

impl Plan {
    pub(super) fn with_capacity() -> Self {
        Self {
            fills: Vec::with_capacity(FILLS_MAX),
            leaves: Vec::with_capacity(REMOVALS_MAX),
            left: Left::Shares(Shares::ZERO),
            stopped: None,
            spent: false,
            trips: 0,
            shares: Shares::ZERO,
            collateral: Collateral::ZERO,
            taker_fees: Collateral::ZERO,
            maker_fees: Collateral::ZERO,
        }
    }

    pub(super) fn begin(&mut self, left: Left) {
        self.fills.clear();
        self.leaves.clear();
        self.left = left;
        self.stopped = None;
        self.spent = false;
        self.shares = Shares::ZERO;
        self.collateral = Collateral::ZERO;
        self.taker_fees = Collateral::ZERO;
        self.maker_fees = Collateral::ZERO;
    }

    /// Shares that no maker is left for, if the order counts shares; zero if it was stopped or is spent.
    pub(super) fn open(&self) -> Shares {
        match self.left {
            Left::Shares(shares) if self.stopped.is_none() && !self.spent => shares,
            Left::Shares(_) | Left::Collateral(_) => Shares::ZERO,
        }
    }

    /// The part of it that the rules judge.
    pub(super) fn found(&self) -> Found {
        Found {
            trades: !self.fills.is_empty(),
            stopped: self.stopped,
            spent: self.spent,
            open: self.open(),
            paid: self.collateral + self.taker_fees,
        }
    }

    /// The terms on which `maker` meets what is left of `taker`; none if that would be worth less than a millionth.
    fn terms(&self, taker: &Taker, maker: &Resting) -> Option<Terms> {
        let price = Meeting::of(taker.side, maker.side).taker_price(maker.price);
        let shares = self.left.shares_at(price).min(maker.open);
        let legs = legs::legs(taker.side, maker.side, maker.price, shares, taker.signed)?;
        Some(Terms { price, shares, legs })
    }

    fn add(&mut self, met: Met) {
        self.left = self.left.less(met.shares, met.legs.taker);
        self.shares += met.shares;
        self.collateral += met.legs.taker;
        self.taker_fees += met.taker_fee;
        self.maker_fees += met.maker_fee;
        self.fills.push(met);
    }
}

/// Whether a walk moves money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// Only loads cells.
    Look,
    /// Debits each paying maker for its exact leg and fee, all or nothing.
    Take,
}

enum Payment {
    Paid,
    Short { in_any_case: bool },
}

impl Shard {
    /// Walks the makers that `taker` reaches and leaves the result in `self.plan`.
    #[inline]
    pub(super) fn walk(&mut self, walk: Walk, taker: &Taker) -> Result<(), Unsettled> {
        self.plan.begin(taker.wants());
        self.walks += 1;
        if self.meets_somebody(taker) { self.walk_makers(walk, taker) } else { Ok(()) }
    }

    /// Whether `taker` reaches any maker.
    #[inline]
    pub(super) fn meets_somebody(&self, taker: &Taker) -> bool {
        self.books.is_reached_by(taker.market, taker.face)
    }

    /// Out of line, so that an order that meets nobody does not pay for its set-up.
    #[inline(never)]
    fn walk_makers(&mut self, walk: Walk, taker: &Taker) -> Result<(), Unsettled> {
        let breakers = self.registry.any_breaker();
        self.plan.trips = self.registry.trips();
        let opposite = taker.face.side.opposite();
        let mut next = self.books.first(taker.market, opposite);
        self.prefetch_second(next);
        while let Some(slot) = next {
            let maker = self.books.orders()[slot];
            if !taker.face.reaches(maker.face().price) || self.plan.left.is_nothing() {
                break;
            }
            next = self.books.after(slot);
            self.prefetch_met(&maker.id, next);
            let owner = &self.placements[slot].owner;
            let tripped = breakers && self.registry.has_tripped(maker.principal, owner);
            let at_limit = self.plan.leaves.len() == REMOVALS_MAX || self.plan.fills.len() == FILLS_MAX;
            if !tripped {
                // Asked first: whoever is spent has got all it can, so nothing stops it and nobody leaves for it.
                let Some(terms) = self.plan.terms(taker, &maker) else {
                    self.plan.spent = true;
                    break;
                };
                if maker.principal != taker.principal && !at_limit {
                    self.meet(walk, taker, slot, &maker, terms)?;
                    continue;
                }
            }
            if at_limit {
                self.plan.stopped = Some(Reject::FillsLimit);
                break;
            }
            if tripped || taker.self_trade != SelfTrade::ExpireTaker {
                let reason = if tripped { RemovalReason::FillRate } else { RemovalReason::SelfTrade };
                self.plan.leaves.push(Leaves { maker: slot, reason, in_any_case: true });
            }
            if !tripped && taker.self_trade != SelfTrade::ExpireMaker {
                self.plan.stopped = Some(Reject::SelfTradeStopped);
                break;
            }
        }
        Ok(())
    }

    /// Prefetches what comes next: the index bucket of the order met, which may be removed; the account row of the next
    /// one; and everything kept of the one after that.
    fn prefetch_met(&self, met: &OrderId, next: Option<Slot>) {
        self.books.orders().prefetch(met);
        if let Some(next) = next {
            self.accounts.prefetch_row(self.placements[next].account);
        }
        self.prefetch_second(next);
    }

    fn prefetch_second(&self, next: Option<Slot>) {
        if let Some(second) = next.and_then(|next| self.books.after(next)) {
            self.prefetch_resting(second);
        }
    }

    /// Plans a fill of the maker, or its leaving if it cannot pay.
    fn meet(
        &mut self,
        walk: Walk,
        taker: &Taker,
        slot: Slot,
        maker: &Resting,
        terms: Terms,
    ) -> Result<(), Unsettled> {
        let Terms { price, shares, legs } = terms;
        let fee = taker.fee.taker_fee(shares, price);
        // A buy pays it on top, a sell out of its proceeds.
        let taker_fee = if taker.side == Side::Buy { fee } else { fee.min(legs.taker) };
        let placement = &self.placements[slot];
        let maker_fee = maker_fee(taker, maker, shares, legs.maker);
        let due = match maker.side {
            Side::Buy if !placement.reserves() => legs.maker + maker_fee,
            Side::Buy | Side::Sell => Collateral::ZERO,
        };
        match self.pay(walk, placement.account, due)? {
            Payment::Paid => {
                self.plan.add(Met { maker: slot, shares, legs, maker_fee, taker_fee, due });
                let rest = maker.open - shares;
                if !rest.is_zero() && legs::is_dust(maker.price, rest) {
                    let reason = RemovalReason::Dust;
                    self.plan.leaves.push(Leaves { maker: slot, reason, in_any_case: false });
                }
            }
            Payment::Short { in_any_case } => {
                self.plan.leaves.push(Leaves { maker: slot, reason: RemovalReason::Unfunded, in_any_case });
            }
        }
        Ok(())
    }

    /// Takes what a maker owes: tentatively in *look*, from its cell in *take*.
    fn pay(&mut self, walk: Walk, account: Slot, due: Collateral) -> Result<Payment, Unsettled> {
        if due.is_zero() {
            return Ok(Payment::Paid);
        }
        let wallet = self.accounts[account].wallet;
        let spent = match walk {
            Walk::Look => self.accounts[account].spent_in(self.walks),
            Walk::Take => Collateral::ZERO,
        };
        for _ in 0..SETTLE_TRIES {
            let paid = match walk {
                Walk::Look => spent + due <= self.cells.balance(wallet),
                Walk::Take => self.cells.debit(wallet, due),
            };
            if paid {
                self.accounts[account].spend_in(self.walks, due);
                return Ok(Payment::Paid);
            }
            match self.cells.settled(wallet, self.settings.shard) {
                Some(balance) if balance < spent + due => {
                    return Ok(Payment::Short { in_any_case: balance < due });
                }
                // Another shard's take has given the money back, or may still do so.
                Some(_) | None => std::hint::spin_loop(),
            }
        }
        Err(Unsettled)
    }
}

/// The maker's fee: at most the proceeds of a sell. A buy's fills, each rounded on its own, pay no more in all than it
/// counts as, or its own fills would leave it uncovered.
fn maker_fee(taker: &Taker, maker: &Resting, shares: Shares, leg: Collateral) -> Collateral {
    let of = |shares| taker.fee.maker_fee(shares, maker.price);
    let bound = match maker.side {
        Side::Buy => of(maker.open) - of(maker.open - shares),
        Side::Sell => leg,
    };
    of(shares).min(bound)
}
