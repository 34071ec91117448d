//! What the twin does besides orders: cancels, splits, merges, redeems, sweeps.

use super::{BUY, First, Naive, NaiveOrder};
use crate::domain::amount::ORDER_AMOUNT_MAX;
use crate::domain::{MarketNo, Mode, OrderId, Outcome, Reject, Shares, Side, WalletNo};
use crate::journal::layout::{ActKind, Tombstone};
use crate::shard::{Refusal, UserAct};
use std::collections::BTreeSet;

impl Naive {
    /// Cancels one order; false if it does not rest.
    pub fn cancel(&mut self, principal: WalletNo, id: &OrderId) -> bool {
        let mine = self.resting(id).is_some_and(|order| order.principal == principal);
        if mine {
            self.remove(id);
        }
        mine
    }

    /// Whether this principal's order or act with this digest was decided on any shard.
    #[must_use]
    pub fn decided(&self, principal: WalletNo, id: &OrderId) -> bool {
        (0..self.shards).any(|shard| self.first(shard, id).is_some_and(|(owner, _)| *owner == principal))
    }

    /// Removes every order for which `leaves` holds; returns their ids in the order of placement.
    pub fn remove_where(&mut self, leaves: impl Fn(&NaiveOrder) -> bool) -> Vec<OrderId> {
        let ids: Vec<OrderId> =
            self.orders.iter().filter(|order| leaves(order)).map(|order| order.id).collect();
        for id in &ids {
            self.remove(id);
        }
        ids
    }

    /// Stops a principal from trading and removes its orders, or lets it trade again; returns what was removed.
    pub fn freeze(&mut self, principal: WalletNo, frozen: bool) -> Vec<OrderId> {
        self.wallets[principal.index()].frozen = frozen;
        self.remove_where(|order| frozen && order.principal == principal)
    }

    /// A cancel that came before its order; a second one while it waits does not prolong it. Those that wait no more
    /// are forgotten then, even if the clock is set to when they did.
    pub fn tombstone(&mut self, principal: WalletNo, id: &OrderId, until: u64) {
        if self.is_cancelled(principal, id) {
            return;
        }
        let now = self.now.0;
        self.tombstones.retain(|_, until| waits(*until, now));
        self.tombstones.insert((*id, principal), until);
    }

    /// Whether a cancel by this principal waits for this order.
    pub(super) fn is_cancelled(&self, principal: WalletNo, id: &OrderId) -> bool {
        self.tombstones.get(&(*id, principal)).is_some_and(|until| waits(*until, self.now.0))
    }

    /// Splits, merges or redeems; returns the collateral moved and the sells that left.
    pub fn act(&mut self, request: &UserAct) -> Result<(u64, Vec<OrderId>), Refusal> {
        let UserAct { act, principal, wallet, market, id, timestamp_ms: stamp, .. } = *request;
        let amount = request.amount.0;
        let shard = self.shard_of(market);
        self.expire(shard);
        if let Some((owner, first)) = self.first(shard, &id) {
            return match first {
                First::Act(collateral) if *owner == principal => Ok((*collateral, Vec::new())),
                _ => Err(Reject::MakerNotAuthorized.into()),
            };
        }
        self.judge_act(request)?;
        let held = self.held(wallet, market);
        let most = match act {
            ActKind::Split => ORDER_AMOUNT_MAX,
            ActKind::Merge => held[0].min(held[1]),
            ActKind::Redeem => held[0].max(held[1]),
        };
        let wanted = if act == ActKind::Redeem && amount == 0 { most } else { amount };
        if wanted == 0 || most < wanted {
            return Err(Refusal { reject: Reject::NothingToMove, got: amount, allowed: most });
        }
        if act == ActKind::Split {
            self.judge_row(wallet, market)?;
        }
        let mut removed = Vec::new();
        let short = act == ActKind::Split && self.wallets[wallet.index()].cell < wanted;
        if short && self.others_take(shard) {
            return Err(Reject::Busy.into());
        }
        let cell = &mut self.wallets[wallet.index()].cell;
        let collateral = match act {
            ActKind::Split => {
                let there = *cell;
                *cell = there.checked_sub(wanted).ok_or(Refusal {
                    reject: Reject::NotEnoughBalance,
                    got: wanted,
                    allowed: there,
                })?;
                self.shares.insert((wallet, market), [held[0] + wanted, held[1] + wanted]);
                wanted
            }
            ActKind::Merge => {
                *cell += wanted;
                self.shares.insert((wallet, market), [held[0] - wanted, held[1] - wanted]);
                removed = self.drop_uncovered_sells(wallet, market);
                wanted
            }
            ActKind::Redeem => {
                let payout = self.markets[market.index()].payout.expect("judged");
                let taken = held.map(|held| held.min(wanted));
                let paid = payout.of(taken.map(Shares)).0;
                *cell += paid;
                self.shares.insert((wallet, market), [held[0] - taken[0], held[1] - taken[1]]);
                paid
            }
        };
        self.remember(shard, id, stamp, principal, First::Act(collateral));
        Ok((collateral, removed))
    }

    fn judge_act(&self, request: &UserAct) -> Result<(), Refusal> {
        let UserAct { act, principal, market, timestamp_ms: stamp, .. } = *request;
        if act == ActKind::Split {
            match self.exchange {
                Mode::Open | Mode::PostOnly => {}
                Mode::CancelOnly => return Err(Reject::CancelOnly.into()),
                Mode::Closed | Mode::Resolved => return Err(Reject::TradingDisabled.into()),
            }
        }
        if act != ActKind::Merge && self.wallets[principal.index()].frozen {
            return Err(Reject::Frozen.into());
        }
        self.judge_stamp(self.shard_of(market), stamp)?;
        let mode = self.markets[market.index()].mode;
        match (act, mode) {
            (ActKind::Redeem, Mode::Resolved) => {}
            (ActKind::Redeem, _) => return Err(Reject::NotResolved.into()),
            (_, Mode::Resolved) => return Err(Reject::MarketResolved.into()),
            (ActKind::Split, Mode::CancelOnly) => return Err(Reject::MarketPaused.into()),
            (ActKind::Split, Mode::Closed) => return Err(Reject::MarketClosed.into()),
            _ => {}
        }
        let (got, allowed) = (request.amount.0, ORDER_AMOUNT_MAX);
        if allowed < got {
            return Err(Refusal { reject: Reject::AmountTooLarge, got, allowed });
        }
        Ok(())
    }

    fn drop_uncovered_sells(&mut self, wallet: WalletNo, market: MarketNo) -> Vec<OrderId> {
        let mut gone = Vec::new();
        for outcome in [Outcome::Zero, Outcome::One] {
            let held = self.held(wallet, market)[outcome.index()];
            while held < self.selling(wallet, market, outcome) {
                let mine = |order: &&NaiveOrder| {
                    (order.wallet, order.market, order.outcome, order.side)
                        == (wallet, market, outcome, Side::Sell)
                };
                let newest = self.orders.iter().rev().find(mine).expect("something is being sold").id;
                let at = self.orders.iter().position(|order| order.id == newest).expect("it rests");
                gone.push((at, newest));
                self.remove(&newest);
            }
        }
        gone.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether another shard has taken money that it may still give back.
    pub(super) fn others_take(&self, shard: u16) -> bool {
        self.taking.iter().any(|other| *other != shard)
    }

    /// Removes from a shard's books what has expired: before every order, replace and act, and before it is asked who
    /// is covered.
    pub(super) fn expire(&mut self, shard: u16) {
        let (now, shards) = (self.now.0, self.shards);
        self.remove_where(|order| {
            order.expires_ms <= now && order.market.0 % u32::from(shards) == u32::from(shard)
        });
    }

    /// Removes from a shard's books what has expired, is of a key whose breaker tripped, or is not covered.
    pub fn sweep(&mut self, shard: u16) {
        self.expire(shard);
        let tripped = self.orders.iter().filter(|order| self.has_tripped(order.key));
        let tripped = tripped.filter(|order| self.shard_of(order.market) == shard);
        let tripped: BTreeSet<OrderId> = tripped.map(|order| order.id).collect();
        self.remove_where(|order| tripped.contains(&order.id));
        if !self.others_take(shard) {
            let rows: BTreeSet<_> = self.orders.iter().map(|order| (order.wallet, order.market)).collect();
            for (wallet, market) in rows {
                while self.shard_of(market) == shard
                    && self.wallets[wallet.index()].cell < self.buying(wallet, market)
                {
                    let mine = |order: &&NaiveOrder| {
                        (order.wallet, order.market, order.side, order.reserved) == (wallet, market, BUY, 0)
                    };
                    let newest = self.orders.iter().rev().find(mine).expect("something is being bought").id;
                    self.remove(&newest);
                }
            }
        }
    }
}

/// Whether a cancel that waits until `until` still waits at `now`, and the clock was not set back by more than its life.
fn waits(until: u64, now: u64) -> bool {
    (now + 1..=now + 2 * Tombstone::LIFE_MS).contains(&until)
}
