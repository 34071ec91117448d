//! What the twin judges: the order's own fields, then what a walk found.

use super::{BUY, Naive, NaiveOrder, Verdict, Work, floor, wide};
use crate::domain::amount::ORDER_AMOUNT_MAX;
use crate::domain::time::MILLISECONDS_FROM;
use crate::domain::{MarketNo, Mode, OrderType, Price, Reject, WalletNo};
use crate::shard::{Funding, PlaceOrder, Refusal};
use std::collections::BTreeSet;

impl Naive {
    pub(super) fn judge(&self, place: &PlaceOrder) -> Result<Price, Refusal> {
        let order = &place.order;
        let fields = &order.fields;
        let market = &self.markets[place.market.index()];
        let refuse = |reject: Reject| Err(Refusal::from(reject));
        match self.exchange {
            Mode::Open => {}
            Mode::PostOnly if order.post_only => {}
            Mode::PostOnly => return refuse(Reject::PostOnlyMode),
            Mode::CancelOnly => return refuse(Reject::CancelOnly),
            Mode::Closed | Mode::Resolved => return refuse(Reject::TradingDisabled),
        }
        if self.wallets[place.principal.index()].frozen {
            return refuse(Reject::Frozen);
        }
        if self.has_tripped(order.owner) {
            return refuse(Reject::FillRateTripped);
        }
        self.judge_stamp(self.shard_of(place.market), fields.timestamp_ms)?;
        match market.mode {
            Mode::Open => {}
            Mode::PostOnly if order.post_only => {}
            Mode::PostOnly => return refuse(Reject::PostOnlyMode),
            Mode::CancelOnly => return refuse(Reject::MarketPaused),
            Mode::Closed => return refuse(Reject::MarketClosed),
            Mode::Resolved => return refuse(Reject::MarketResolved),
        }
        if fields.maker_amount == 0 || fields.taker_amount == 0 {
            return refuse(Reject::AmountZero);
        }
        let most = fields.maker_amount.max(fields.taker_amount);
        if most > ORDER_AMOUNT_MAX {
            return Err(Refusal { reject: Reject::AmountTooLarge, got: most, allowed: ORDER_AMOUNT_MAX });
        }
        let price = self.price_of(place)?;
        if order.post_only && matches!(order.order_type, OrderType::Fok | OrderType::Fak) {
            return refuse(Reject::PostOnlyType);
        }
        if (order.order_type == OrderType::Gtd) != (order.expiration_s > 0) {
            let allowed = if order.expiration_s > 0 { 0 } else { MILLISECONDS_FROM };
            let reject = Reject::ExpirationType;
            return Err(Refusal { reject, got: order.expiration_s, allowed });
        }
        if order.expiration_s >= MILLISECONDS_FROM {
            let reject = Reject::ExpirationTooLarge;
            return Err(Refusal { reject, got: order.expiration_s, allowed: MILLISECONDS_FROM });
        }
        if order.expiration_s > 0 && order.expiration_s * 1_000 <= self.now.0 {
            let allowed = self.now.0 / 1_000 + 1;
            return Err(Refusal { reject: Reject::Expired, got: order.expiration_s, allowed });
        }
        if order.deadline_ms > 0 && order.deadline_ms <= self.now.0 {
            return Err(Refusal {
                reject: Reject::DeadlinePassed,
                got: order.deadline_ms,
                allowed: self.now.0,
            });
        }
        Ok(price)
    }

    pub(super) fn judge_stamp(&self, shard: u16, stamp: u64) -> Result<(), Refusal> {
        let (horizon, newest) = (self.horizons[usize::from(shard)], self.now.0 + 60_000);
        if stamp <= horizon {
            return Err(Refusal { reject: Reject::TooOld, got: stamp, allowed: horizon + 1 });
        }
        if stamp > newest {
            return Err(Refusal { reject: Reject::TooNew, got: stamp, allowed: newest });
        }
        Ok(())
    }

    /// The price among all those of the grid that equals what was signed; of a market buy, if that is below one, the
    /// highest that asks for at most a twentieth of a tick more.
    fn price_of(&self, place: &PlaceOrder) -> Result<Price, Refusal> {
        let fields = &place.order.fields;
        let (collateral, shares) = (u128::from(fields.collateral().0), u128::from(fields.shares().0));
        let tick = self.markets[place.market.index()].tick;
        let step = u128::from(tick.ten_thousandths());
        let snaps = fields.side == BUY && !place.order.order_type.rests();
        let grid = || (step..10_000).step_by(tick.ten_thousandths().into());
        let exact = grid().find(|price| price * shares == collateral * 10_000);
        let below = grid()
            .filter(|price| {
                collateral < shares && 20 * price * shares <= 20 * collateral * 10_000 + step * shares
            })
            .max();
        let found = if snaps { below } else { exact };
        let inside = step * shares <= collateral * 10_000 && collateral * 10_000 <= (10_000 - step) * shares;
        found.and_then(|price| Price::new(u16::try_from(price).ok()?)).ok_or(Refusal {
            reject: if inside { Reject::PriceOffTick } else { Reject::PriceOutOfRange },
            got: u64::try_from(collateral * 1_000_000_000_000 / shares).unwrap_or(u64::MAX),
            allowed: u64::try_from(step * 100_000_000).expect("a tick is small"),
        })
    }

    pub(super) fn verdict(&self, work: &Work) -> Verdict {
        let (place, plan) = (&work.place, &work.plan);
        let fields = &place.order.fields;
        let kind = place.order.order_type;
        let market = &self.markets[place.market.index()];
        let trades = !plan.fills.is_empty();
        let ends = plan.stopped.is_some() || plan.spent || !kind.rests();
        let open = if ends || floor(plan.left, work.price) == 0 { 0 } else { plan.left };
        let refuse = |reject, got, allowed| Verdict::Refuse(Refusal { reject, got, allowed });
        if place.order.post_only && (trades || plan.stopped.is_some() || plan.spent) {
            return refuse(Reject::PostOnlyCrosses, 0, 0);
        }
        if open > 0 && fields.shares().0 < market.min_size {
            return refuse(Reject::SizeTooSmall, fields.shares().0, market.min_size);
        }
        if kind.rests() && open == 0 && !trades && plan.stopped.is_none() {
            let worth = 10_000_u64.div_ceil(market.tick.ten_thousandths().into());
            return refuse(Reject::SizeTooSmall, fields.shares().0, market.min_size.max(worth));
        }
        let marketable = fields.side == BUY && (trades || !kind.rests());
        if marketable && fields.collateral().0 < self.min_notional {
            return refuse(Reject::NotionalTooSmall, fields.collateral().0, self.min_notional);
        }
        let resting = if fields.side == BUY { Self::cost(open, work.price, &market.fee) } else { 0 };
        let paid: u64 = plan.fills.iter().map(|fill| fill.taker_leg + fill.taker_fee).sum();
        let paid = if fields.side == BUY { paid } else { 0 };
        let (needed, there) = if fields.side == BUY {
            let others = self.buying(place.wallet, place.market);
            (others + fields.collateral().0.max(paid + resting), self.wallets[place.wallet.index()].cell)
        } else {
            let held = self.held(place.wallet, place.market)[place.outcome.index()];
            (fields.shares().0, held - self.selling(place.wallet, place.market, place.outcome))
        };
        if there < needed && fields.side == BUY && self.others_take(self.shard_of(place.market)) {
            return Verdict::Refuse(Reject::Busy.into());
        }
        if there < needed {
            return refuse(Reject::NotEnoughBalance, needed, there);
        }
        if let Some(reject) = self.kill(work) {
            return Verdict::Kill(reject);
        }
        let shard = self.shard_of(place.market);
        let here = self.orders.iter().filter(|order| self.shard_of(order.market) == shard).count();
        if open > 0 && here == self.orders_max {
            return refuse(Reject::BookFull, 0, 0);
        }
        if (trades || open > 0)
            && let Err(refusal) = self.judge_row(place.wallet, place.market)
        {
            return Verdict::Refuse(refusal);
        }
        let owned = self.open_orders(place.principal, shard);
        if open > 0 && owned >= self.open_per_owner_max {
            let [got, allowed] = [owned + 1, self.open_per_owner_max].map(|count| count as u64);
            return refuse(Reject::TooManyOpenOrders, got, allowed);
        }
        let reserved = if self.funding == Funding::Reserved { resting } else { 0 };
        Verdict::Go { open, reserved, due: paid + reserved }
    }

    /// Whether there is room for what the wallet has in the market.
    pub(super) fn judge_row(&self, wallet: WalletNo, market: MarketNo) -> Result<(), Refusal> {
        if self.has_row(wallet, market) {
            return Ok(());
        }
        let rows = self.rows(self.shard_of(market));
        let own = rows.iter().filter(|(owner, _)| *owner == wallet).count();
        if own >= self.accounts_per_wallet_max {
            let [got, allowed] = [own + 1, self.accounts_per_wallet_max].map(|count| count as u64);
            return Err(Refusal { reject: Reject::TooManyPositions, got, allowed });
        }
        if rows.len() == self.accounts_max { Err(Reject::TableFull.into()) } else { Ok(()) }
    }

    fn rows(&self, shard: u16) -> BTreeSet<(WalletNo, MarketNo)> {
        let held = self.shares.iter().filter(|(_, shares)| **shares != [0; 2]).map(|(row, _)| *row);
        let open = self.orders.iter().map(|order| (order.wallet, order.market));
        held.chain(open).filter(|(_, market)| self.shard_of(*market) == shard).collect()
    }

    /// How many orders of `principal` rest on a shard.
    fn open_orders(&self, principal: WalletNo, shard: u16) -> usize {
        let own = |order: &&NaiveOrder| order.principal == principal && self.shard_of(order.market) == shard;
        self.orders.iter().filter(own).count()
    }

    fn kill(&self, work: &Work) -> Option<Reject> {
        let plan = &work.plan;
        let trades = !plan.fills.is_empty();
        if !trades && plan.stopped.is_some() {
            return plan.stopped;
        }
        match work.place.order.order_type {
            OrderType::Fok if self.is_full(work) => None,
            OrderType::Fok if plan.stopped == Some(Reject::FillsLimit) => plan.stopped,
            OrderType::Fok => Some(Reject::FokNotFilled),
            OrderType::Fak if !trades => Some(Reject::FakNoMatch),
            _ => None,
        }
    }

    fn is_full(&self, work: &Work) -> bool {
        let plan = &work.plan;
        let Some(worst) = plan.fills.last().filter(|_| plan.stopped.is_none()) else {
            return false;
        };
        let maker = self.resting(&worst.maker).expect("a planned maker rests");
        let own = maker.price.ten_thousandths();
        let price = u64::from(if maker.outcome == work.place.outcome { own } else { 10_000 - own });
        let for_collateral = work.place.order.fields.side == BUY;
        let is_nothing = if for_collateral {
            floor(wide(plan.left, 10_000, price), maker.price) == 0
        } else {
            plan.left == 0
        };
        plan.spent || is_nothing
    }
}
