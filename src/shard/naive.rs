//! The naive twin: the same rules in plain lists and maps, obviously right and slow.
//!
//! Tests run every script on the shards and on this twin, and benches compare them. It knows nothing
//! of slots, ladders, frames or atomics: makers are found by sorting all orders, sums are counted
//! when they are needed, and after a sweep every open buy is covered because all are checked. It has
//! the same four stages, so that tests can interleave several of its shards; all are in one [`Naive`].

mod acts;
mod breakers;
mod judge;
mod replace;

pub use replace::NaiveReplaced;

use super::{Funding, PlaceOrder, Placed, Refusal, Stage, Status};
use crate::domain::{
    ApiKey, FeeSchedule, MarketNo, Mode, OrderId, Outcome, Payout, Price, Reject, SelfTrade, Shares, Side,
    Tick, TimeMs, WalletNo,
};
use crate::journal::layout::RemovalReason;
use crate::journal::layout::order::{FILLS_MAX, REMOVALS_MAX};
use breakers::NaiveBreaker;
use std::collections::{BTreeMap, BTreeSet};

/// A wallet as the twin keeps it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NaiveWallet {
    pub principal: WalletNo,
    pub cell: u64,
    pub frozen: bool,
}

/// A market as the twin keeps it; its shard is its number modulo the shards.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NaiveMarket {
    pub tick: Tick,
    pub mode: Mode,
    pub fee: FeeSchedule,
    pub min_size: u64,
    pub payout: Option<Payout>,
}

/// A resting order as the twin keeps it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NaiveOrder {
    pub id: OrderId,
    /// The API key that it came with.
    pub key: ApiKey,
    pub principal: WalletNo,
    pub wallet: WalletNo,
    pub market: MarketNo,
    pub outcome: Outcome,
    pub side: Side,
    pub price: Price,
    pub open: u64,
    pub reserved: u64,
    pub expires_ms: u64,
    /// Its place among all orders of its price: the lower comes first.
    pub queue: u64,
}

/// Everything that an order did, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The answer, with the frame of the trade left out.
    pub placed: Placed,
    /// Makers, shares, and the makers' prices.
    pub fills: Vec<(OrderId, Shares, Price)>,
    /// The makers that left on the way, and why.
    pub removed: Vec<(OrderId, RemovalReason)>,
    /// What rests.
    pub open: Shares,
}

impl From<Refusal> for Report {
    fn from(refusal: Refusal) -> Self {
        Self { placed: Placed::Refused(refusal), fills: Vec::new(), removed: Vec::new(), open: Shares::ZERO }
    }
}

#[derive(Clone, Debug)]
struct Fill {
    maker: OrderId,
    shares: u64,
    maker_leg: u64,
    taker_leg: u64,
    maker_fee: u64,
    taker_fee: u64,
    due: u64,
}

#[derive(Clone, Debug, Default)]
struct Plan {
    fills: Vec<Fill>,
    leaves: Vec<(OrderId, RemovalReason, bool)>,
    left: u64,
    stopped: Option<Reject>,
    spent: bool,
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Go { open: u64, reserved: u64, due: u64 },
    Kill(Reject),
    Refuse(Refusal),
}

#[derive(Clone, Debug)]
struct Work {
    place: PlaceOrder,
    price: Price,
    plan: Plan,
    verdict: Verdict,
    again: bool,
}

/// A whole exchange without a log.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Naive {
    pub shards: u16,
    pub funding: Funding,
    pub min_notional: u64,
    pub orders_max: usize,
    pub open_per_owner_max: usize,
    pub accounts_max: usize,
    pub accounts_per_wallet_max: usize,
    pub digests_max: usize,
    pub now: TimeMs,
    pub exchange: Mode,
    pub wallets: Vec<NaiveWallet>,
    pub markets: Vec<NaiveMarket>,
    pub shares: BTreeMap<(WalletNo, MarketNo), [u64; 2]>,
    /// In the order of their placement.
    pub orders: Vec<NaiveOrder>,
    pub fees: u64,
    queues: u64,
    /// First results by shard and digest, with their stamps.
    seen: Vec<BTreeMap<OrderId, (u64, WalletNo, First)>>,
    horizons: Vec<u64>,
    tombstones: BTreeMap<(OrderId, WalletNo), u64>,
    breakers: BTreeMap<ApiKey, NaiveBreaker>,
    works: BTreeMap<u16, Work>,
    taking: BTreeSet<u16>,
}

#[derive(Clone, Debug)]
enum First {
    Order(Placed),
    Act(u64),
}

const BUY: Side = Side::Buy;

impl Naive {
    /// An empty exchange.
    #[must_use]
    pub fn new(shards: u16, funding: Funding) -> Self {
        Self {
            shards,
            funding,
            min_notional: 0,
            orders_max: usize::MAX,
            open_per_owner_max: usize::MAX,
            accounts_max: usize::MAX,
            accounts_per_wallet_max: usize::MAX,
            digests_max: usize::MAX,
            now: TimeMs(0),
            exchange: Mode::Open,
            wallets: Vec::new(),
            markets: Vec::new(),
            shares: BTreeMap::new(),
            orders: Vec::new(),
            fees: 0,
            queues: 0,
            seen: vec![BTreeMap::new(); usize::from(shards)],
            horizons: vec![0; usize::from(shards)],
            tombstones: BTreeMap::new(),
            breakers: BTreeMap::new(),
            works: BTreeMap::new(),
            taking: BTreeSet::new(),
        }
    }

    /// The shard of a market.
    #[must_use]
    pub fn shard_of(&self, market: MarketNo) -> u16 {
        u16::try_from(market.0 % u32::from(self.shards)).expect("a remainder of a u16")
    }

    /// Places an order, from its first stage to its last.
    pub fn place(&mut self, order: &PlaceOrder) -> Report {
        let mut next = self.begin(order);
        loop {
            next = match next {
                Ok(stage) => self.advance(order, stage),
                Err(report) => return report,
            };
        }
    }

    /// The checks before the book.
    pub fn begin(&mut self, place: &PlaceOrder) -> Result<Stage, Report> {
        let shard = self.shard_of(place.market);
        self.expire(shard);
        if let Some((principal, first)) = self.first(shard, &place.id) {
            return Err(match first {
                First::Order(Placed::Accepted { status, making, taking, trade, .. })
                    if *principal == place.principal =>
                {
                    let (status, making, taking, trade) = (*status, *making, *taking, *trade);
                    Report {
                        placed: Placed::Accepted { status, making, taking, trade, replayed: true },
                        fills: Vec::new(),
                        removed: Vec::new(),
                        open: Shares::ZERO,
                    }
                }
                _ => Refusal::from(Reject::MakerNotAuthorized).into(),
            });
        }
        let price = self.judge(place).map_err(Report::from)?;
        let work = Work {
            place: *place,
            price,
            plan: Plan::default(),
            verdict: Verdict::Kill(Reject::Busy),
            again: false,
        };
        self.works.insert(shard, work);
        if self.is_cancelled(place.principal, &place.id) {
            let work = self.works.get_mut(&shard).expect("just made");
            work.verdict = Verdict::Kill(Reject::CancelledBeforeArrival);
            return Ok(Stage::Claim);
        }
        Ok(Stage::Look)
    }

    /// Runs one stage of the order that was begun on its shard.
    pub fn advance(&mut self, place: &PlaceOrder, stage: Stage) -> Result<Stage, Report> {
        let shard = self.shard_of(place.market);
        match stage {
            Stage::Look => self.look(shard),
            Stage::Take => self.take(shard),
            Stage::Claim => {
                self.taking.remove(&shard);
                Ok(Stage::Apply)
            }
            Stage::Apply => Err(self.apply(shard)),
        }
    }

    fn look(&mut self, shard: u16) -> Result<Stage, Report> {
        let mut work = self.works[&shard].clone();
        let Ok(plan) = self.walk(shard, &work, false) else {
            return Err(Refusal::from(Reject::Busy).into());
        };
        work.plan = plan;
        work.verdict = self.verdict(&work);
        let next = match work.verdict {
            Verdict::Refuse(refusal) => return Err(refusal.into()),
            Verdict::Kill(_) => {
                work.plan.leaves.retain(|(_, _, in_any_case)| *in_any_case);
                work.plan.fills.clear();
                Stage::Claim
            }
            Verdict::Go { due: 0, .. } if work.plan.fills.is_empty() => Stage::Claim,
            Verdict::Go { .. } => Stage::Take,
        };
        self.works.insert(shard, work);
        Ok(next)
    }

    fn take(&mut self, shard: u16) -> Result<Stage, Report> {
        let mut work = self.works[&shard].clone();
        let before = self.wallets.clone();
        self.taking.insert(shard);
        let Ok(plan) = self.walk(shard, &work, true) else {
            self.wallets = before;
            self.taking.remove(&shard);
            return Err(Refusal::from(Reject::Busy).into());
        };
        work.plan = plan;
        work.verdict = self.verdict(&work);
        if let Verdict::Go { due, .. } = work.verdict {
            let cell = &mut self.wallets[work.place.wallet.index()].cell;
            if due <= *cell {
                *cell -= due;
                self.works.insert(shard, work);
                return Ok(Stage::Claim);
            }
            work.verdict = Verdict::Refuse(Reject::Busy.into());
        }
        self.wallets = before;
        self.taking.remove(&shard);
        if !work.again {
            work.again = true;
            self.works.insert(shard, work);
            return Ok(Stage::Look);
        }
        if let Verdict::Refuse(refusal) = work.verdict {
            return Err(refusal.into());
        }
        work.plan
            .leaves
            .retain(|(_, reason, in_any_case)| *in_any_case && *reason != RemovalReason::Unfunded);
        work.plan.fills.clear();
        self.works.insert(shard, work);
        Ok(Stage::Claim)
    }

    /// The makers that the order reaches, best first for the taker, then oldest first.
    fn makers(&self, work: &Work) -> Vec<(u64, NaiveOrder)> {
        let place = &work.place;
        let side = place.order.fields.side;
        let limit = u64::from(work.price.ten_thousandths());
        let mut makers = Vec::new();
        for order in self.orders.iter().filter(|order| order.market == place.market) {
            let own = u64::from(order.price.ten_thousandths());
            let price = match (order.outcome == place.outcome, order.side == side) {
                (true, false) => own,
                (false, true) => 10_000 - own,
                _ => continue,
            };
            if if side == BUY { price <= limit } else { limit <= price } {
                makers.push((price, order.clone()));
            }
        }
        makers
            .sort_by_key(|(price, order)| (if side == BUY { *price } else { 10_000 - *price }, order.queue));
        makers
    }

    fn walk(&mut self, shard: u16, work: &Work, take: bool) -> Result<Plan, ()> {
        let place = &work.place;
        let order = &place.order;
        let fields = &order.fields;
        let for_collateral = fields.side == BUY && !order.order_type.rests();
        let fee = self.markets[place.market.index()].fee;
        let mut plan = Plan {
            left: if for_collateral { fields.collateral().0 } else { fields.shares().0 },
            ..Plan::default()
        };
        let mut spent: BTreeMap<WalletNo, u64> = BTreeMap::new();
        for (price, maker) in self.makers(work) {
            if plan.left == 0 {
                break;
            }
            let tripped = self.has_tripped(maker.key);
            let wanted = if for_collateral { wide(plan.left, 10_000, price) } else { plan.left };
            let shares = wanted.min(maker.open);
            if floor(shares, maker.price) == 0 && !tripped {
                plan.spent = true;
                break;
            }
            if plan.fills.len() == FILLS_MAX || plan.leaves.len() == REMOVALS_MAX {
                plan.stopped = Some(Reject::FillsLimit);
                break;
            }
            let mut leave = |reason| plan.leaves.push((maker.id, reason, true));
            if tripped {
                leave(RemovalReason::FillRate);
                continue;
            }
            if maker.principal == place.principal {
                if order.self_trade != SelfTrade::ExpireTaker {
                    leave(RemovalReason::SelfTrade);
                }
                if order.self_trade == SelfTrade::ExpireMaker {
                    continue;
                }
                plan.stopped = Some(Reject::SelfTradeStopped);
                break;
            }
            let fill = Self::fill(work, &maker, shares, &fee);
            let lent = if take { 0 } else { spent.get(&maker.wallet).copied().unwrap_or(0) };
            let cell = self.wallets[maker.wallet.index()].cell;
            if cell < lent + fill.due {
                if self.others_take(shard) {
                    return Err(());
                }
                plan.leaves.push((maker.id, RemovalReason::Unfunded, cell < fill.due));
                continue;
            }
            if take {
                self.wallets[maker.wallet.index()].cell -= fill.due;
            } else {
                *spent.entry(maker.wallet).or_default() += fill.due;
            }
            plan.left -= if for_collateral { fill.taker_leg } else { shares };
            plan.fills.push(fill);
            if shares < maker.open && floor(maker.open - shares, maker.price) == 0 {
                plan.leaves.push((maker.id, RemovalReason::Dust, false));
            }
        }
        Ok(plan)
    }

    fn fill(work: &Work, maker: &NaiveOrder, shares: u64, fee: &FeeSchedule) -> Fill {
        let fields = &work.place.order.fields;
        let (signed_collateral, signed_shares) = (fields.collateral().0, fields.shares().0);
        let pair = maker.outcome != work.place.outcome;
        let (down, up) = (floor(shares, maker.price), ceil(shares, maker.price));
        // What the taker would pay, or get, if the maker's leg were rounded up.
        let taker_up = if pair { shares - up } else { up };
        let (theirs, signed) = (times(taker_up, signed_shares), times(signed_collateral, shares));
        let fits = if fields.side == BUY { theirs <= signed } else { signed <= theirs };
        let maker_leg = if maker.side == Side::Sell && fits { up } else { down };
        let taker_leg = if pair { shares - maker_leg } else { maker_leg };
        let taker_price = if pair { maker.price.complement() } else { maker.price };
        let within = |side, fee: u64, leg: u64| if side == BUY { fee } else { fee.min(leg) };
        let taker_fee = within(fields.side, fee.taker_fee(Shares(shares), taker_price).0, taker_leg);
        let of_maker = |shares| fee.maker_fee(Shares(shares), maker.price).0;
        let mut maker_fee = within(maker.side, of_maker(shares), maker_leg);
        if maker.side == BUY {
            maker_fee = maker_fee.min(of_maker(maker.open) - of_maker(maker.open - shares));
        }
        let due = if maker.side == BUY && maker.reserved == 0 { maker_leg + maker_fee } else { 0 };
        Fill { maker: maker.id, shares, maker_leg, taker_leg, maker_fee, taker_fee, due }
    }

    fn apply(&mut self, shard: u16) -> Report {
        let work = self.works.remove(&shard).expect("an order was begun");
        let Work { place, plan, verdict, .. } = &work;
        let fields = &place.order.fields;
        let mut report = Report {
            placed: Placed::Refused(Reject::Busy.into()),
            fills: Vec::new(),
            removed: plan.leaves.iter().map(|(id, reason, _)| (*id, *reason)).collect(),
            open: Shares::ZERO,
        };
        let (mut collateral, mut shares, mut proceeds) = (0, 0, 0);
        for fill in &plan.fills {
            report.fills.push((fill.maker, Shares(fill.shares), self.settle_maker(fill)));
            self.fees += fill.maker_fee + fill.taker_fee;
            collateral += fill.taker_leg;
            shares += fill.shares;
            if fields.side == Side::Sell {
                proceeds += fill.taker_leg - fill.taker_fee;
            }
        }
        for (id, ..) in &plan.leaves {
            self.remove(id);
        }
        if shares > 0 {
            self.count_fill(place.order.owner, shares);
        }
        self.move_shares(place.wallet, place.market, place.outcome, fields.side, shares);
        self.wallets[place.wallet.index()].cell += proceeds;
        let status = match verdict {
            Verdict::Kill(reject) => Status::Killed(*reject),
            _ if plan.fills.is_empty() => Status::Live,
            _ => Status::Matched,
        };
        if let Verdict::Go { open, reserved, .. } = *verdict
            && open > 0
        {
            report.open = Shares(open);
            self.insert(&work, open, reserved);
        }
        let (making, taking) = if fields.side == BUY { (collateral, shares) } else { (shares, collateral) };
        report.placed = Placed::Accepted { status, making, taking, trade: None, replayed: false };
        self.remember(shard, place.id, fields.timestamp_ms, place.principal, First::Order(report.placed));
        report
    }

    /// Puts an order behind all others.
    fn insert(&mut self, work: &Work, open: u64, reserved: u64) {
        let Work { place, price, .. } = work;
        let expiration_s = place.order.expiration_s;
        self.queues += 1;
        self.orders.push(NaiveOrder {
            id: place.id,
            key: place.order.owner,
            principal: place.principal,
            wallet: place.wallet,
            market: place.market,
            outcome: place.outcome,
            side: place.order.fields.side,
            price: *price,
            open,
            reserved,
            expires_ms: if expiration_s == 0 { u64::MAX } else { expiration_s * 1_000 },
            queue: self.queues,
        });
    }

    fn settle_maker(&mut self, fill: &Fill) -> Price {
        let maker = self.resting(&fill.maker).expect("a planned maker rests").clone();
        self.count_fill(maker.key, fill.shares);
        self.move_shares(maker.wallet, maker.market, maker.outcome, maker.side, fill.shares);
        if maker.side == Side::Sell {
            self.wallets[maker.wallet.index()].cell += fill.maker_leg - fill.maker_fee;
        }
        let order = self.orders.iter_mut().find(|order| order.id == fill.maker).expect("it rests");
        order.open -= fill.shares;
        if order.reserved > 0 {
            order.reserved -= fill.maker_leg + fill.maker_fee;
        }
        if order.open == 0 {
            self.remove(&fill.maker);
        }
        maker.price
    }

    fn move_shares(&mut self, wallet: WalletNo, market: MarketNo, outcome: Outcome, side: Side, shares: u64) {
        let held = &mut self.shares.entry((wallet, market)).or_default()[outcome.index()];
        if side == BUY {
            *held += shares;
        } else {
            *held -= shares;
        }
    }

    fn remember(&mut self, shard: u16, id: OrderId, stamp: u64, principal: WalletNo, first: First) {
        let shard = usize::from(shard);
        self.seen[shard].insert(id, (stamp, principal, first));
        if self.seen[shard].len() > self.digests_max {
            let oldest = self.seen[shard].iter().min_by_key(|(_, (stamp, ..))| *stamp).map(|(id, _)| *id);
            let (stamp, ..) = self.seen[shard].remove(&oldest.expect("there are some")).expect("just found");
            self.horizons[shard] = self.horizons[shard].max(stamp);
        }
    }

    fn first(&self, shard: u16, id: &OrderId) -> Option<(&WalletNo, &First)> {
        let shard = usize::from(shard);
        let seen = self.seen[shard].get(id).filter(|(stamp, ..)| self.horizons[shard] < *stamp);
        seen.map(|(_, principal, first)| (principal, first))
    }

    /// Takes an order out; what was set aside goes back.
    fn remove(&mut self, id: &OrderId) {
        let at = self.orders.iter().position(|order| order.id == *id).expect("only resting orders leave");
        let order = self.orders.remove(at);
        self.wallets[order.wallet.index()].cell += order.reserved;
    }

    fn resting(&self, id: &OrderId) -> Option<&NaiveOrder> {
        self.orders.iter().find(|order| order.id == *id)
    }

    fn held(&self, wallet: WalletNo, market: MarketNo) -> [u64; 2] {
        self.shares.get(&(wallet, market)).copied().unwrap_or_default()
    }

    fn cost(open: u64, price: Price, fee: &FeeSchedule) -> u64 {
        ceil(open, price) + fee.maker_fee(Shares(open), price).0
    }

    fn buying(&self, wallet: WalletNo, market: MarketNo) -> u64 {
        let fee = &self.markets[market.index()].fee;
        let open = self.orders.iter().filter(|order| order.wallet == wallet && order.market == market);
        let buys = open.filter(|order| order.side == BUY && order.reserved == 0);
        buys.map(|order| Self::cost(order.open, order.price, fee)).sum()
    }

    fn selling(&self, wallet: WalletNo, market: MarketNo, outcome: Outcome) -> u64 {
        let open = self.orders.iter().filter(|order| order.wallet == wallet && order.market == market);
        open.filter(|order| order.side == Side::Sell && order.outcome == outcome)
            .map(|order| order.open)
            .sum()
    }

    fn has_row(&self, wallet: WalletNo, market: MarketNo) -> bool {
        self.held(wallet, market) != [0; 2]
            || self.orders.iter().any(|order| order.wallet == wallet && order.market == market)
    }
}

fn floor(shares: u64, price: Price) -> u64 {
    wide(shares, u64::from(price.ten_thousandths()), 10_000)
}

fn ceil(shares: u64, price: Price) -> u64 {
    let product = times(shares, u64::from(price.ten_thousandths()));
    u64::try_from(product.div_ceil(10_000)).expect("a cost is at most the shares")
}

fn times(left: u64, right: u64) -> u128 {
    u128::from(left) * u128::from(right)
}

/// `value` x `by` / `per`, rounded down.
fn wide(value: u64, by: u64, per: u64) -> u64 {
    u64::try_from(times(value, by) / u128::from(per)).expect("amounts are bounded")
}
