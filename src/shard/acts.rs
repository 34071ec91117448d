//! Splits, merges and redeems: a pair for one USDC, one USDC for a pair, a payout for shares.
//!
//! | act | exchange and market must | takes | gives |
//! |---|---|---|---|
//! | split | take orders | collateral | as many shares of both tokens |
//! | merge | not be resolved | shares of both tokens | as much collateral |
//! | redeem | be resolved | shares | their payout, rounded down once |
//!
//! A merge may take shares that open sells count on; the sells that are no longer covered leave in the
//! same frame, newest first.

use super::recall::First;
use super::{Acted, Refusal, Shard, UserAct};
use crate::domain::amount::ORDER_AMOUNT_MAX;
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{
    Collateral, MarketNo, Mode, OrderId, Outcome, Reject, Shares, Side, TimeMs, WalletNo, Word,
};
use crate::journal::layout::acts::REMOVED_MAX;
use crate::journal::layout::{ActKind, PositionAct, RemovalReason};

impl Shard {
    /// Splits, merges or redeems; one frame.
    pub fn act(&mut self, now: TimeMs, act: &UserAct) -> Result<Acted, Refusal> {
        assert!(self.owns(act.market), "a market has one shard");
        let now = self.clock(now);
        let swept = self.expire(now);
        let signed = act.id != OrderId::ZERO;
        if let Some((principal, first)) = self.recall.find(&act.id).filter(|_| signed) {
            return match first {
                First::Act { collateral, shares, position } if principal == act.principal => {
                    Ok(Acted { collateral, shares, position, replayed: true })
                }
                First::Act { .. } | First::Order { .. } => Err(Reject::MakerNotAuthorized.into()),
            };
        }
        if !swept {
            return Err(Reject::Busy.into());
        }
        self.judge_act(now, act, signed)?;
        let (shares, collateral) = self.size(act)?;
        self.slots.clear();
        if act.act == ActKind::Merge {
            self.choose_unshared(act, shares[0]);
            if !self.room_for_chosen() {
                return Err(Reject::Busy.into());
            }
            self.leave_room_in_frame(RemovalReason::Unfunded)?;
        }
        if act.act == ActKind::Split {
            self.judge_cell(act.wallet, collateral, Collateral::ZERO)?;
            if !self.cells.debit(act.wallet, collateral) {
                // Another shard has taken it since.
                return Err(Reject::Busy.into());
            }
        }
        // From here nothing can fail.
        Ok(self.apply_act(act, shares, collateral))
    }

    fn judge_act(&self, now: TimeMs, act: &UserAct, signed: bool) -> Result<(), Refusal> {
        if !self.log.room_for_order(self.settings.shards) {
            return Err(Reject::Busy.into());
        }
        if act.act == ActKind::Split {
            self.judge_exchange(true)?;
        }
        let frozen = self.registry.wallet(act.principal).frozen();
        if signed && frozen && act.act != ActKind::Merge {
            return Err(Reject::Frozen.into());
        }
        if signed {
            self.judge_stamp(now, act.timestamp_ms)?;
        }
        match (act.act, self.registry.market(act.market).mode()) {
            (ActKind::Redeem, Mode::Resolved) => {}
            (ActKind::Redeem, _) => return Err(Reject::NotResolved.into()),
            (_, Mode::Resolved) => return Err(Reject::MarketResolved.into()),
            (ActKind::Split, Mode::CancelOnly) => return Err(Reject::MarketPaused.into()),
            (ActKind::Split, Mode::Closed) => return Err(Reject::MarketClosed.into()),
            (ActKind::Split | ActKind::Merge, _) => {}
        }
        if ORDER_AMOUNT_MAX < act.amount.0 {
            let (got, allowed) = (act.amount.0, ORDER_AMOUNT_MAX);
            return Err(Refusal { reject: Reject::AmountTooLarge, got, allowed });
        }
        Ok(())
    }

    /// Shares of each outcome and collateral that the act moves.
    fn size(&self, act: &UserAct) -> Result<([Shares; 2], Collateral), Refusal> {
        let row = self.accounts.find(act.wallet, act.market);
        let held = row.map_or([Shares::ZERO; 2], |row| self.accounts[row].shares);
        let most = match act.act {
            ActKind::Split => Shares(ORDER_AMOUNT_MAX),
            ActKind::Merge => held[0].min(held[1]),
            ActKind::Redeem => held[0].max(held[1]),
        };
        let wanted = if act.act == ActKind::Redeem && act.amount.is_zero() { most } else { act.amount };
        if wanted.is_zero() || most < wanted {
            return Err(Refusal { reject: Reject::NothingToMove, got: act.amount.0, allowed: most.0 });
        }
        if act.act == ActKind::Split && row.is_none() {
            self.judge_account_room(act.wallet)?;
        }
        if act.act == ActKind::Redeem {
            let payout = self.registry.market(act.market).payout().expect("a resolved market has a payout");
            let shares = held.map(|held| held.min(wanted));
            return Ok((shares, payout.of(shares)));
        }
        Ok(([wanted; 2], Collateral(wanted.0)))
    }

    fn apply_act(&mut self, act: &UserAct, shares: [Shares; 2], collateral: Collateral) -> Acted {
        let orders = self.books.orders();
        let record = &mut self.moved;
        record.time = self.time;
        record.act = act.act;
        record.wallet = act.wallet;
        record.market = act.market;
        record.shares = shares;
        record.collateral = collateral;
        record.id = act.id;
        record.salt = act.salt;
        record.timestamp_ms = act.timestamp_ms;
        record.signature.clear();
        record.signature.extend_from_slice(&act.signature[..usize::from(act.signature_len)]);
        record.removed.clear();
        record.removed.extend(self.slots.iter().map(|slot| orders[*slot].position));
        let payload = record.encode_in(self.payload.as_flattened_mut());
        let span = self.log.append(PositionAct::KIND, payload);
        self.last = span.end;
        self.unrest_chosen();
        let account = self.accounts.open(act.wallet, act.market).expect("it has shares, or room was seen");
        for (held, moved) in self.accounts[account].shares.iter_mut().zip(shares) {
            *held = if act.act == ActKind::Split { *held + moved } else { *held - moved };
        }
        self.accounts.settle(account);
        if act.act == ActKind::Split {
            self.cells.lowered(act.wallet);
        } else {
            self.cells.credit(act.wallet, collateral);
        }
        if act.id != OrderId::ZERO {
            let first = First::Act { collateral, shares, position: span.start };
            self.recall.remember(self.now, &act.id, act.timestamp_ms, act.principal, first);
        }
        Acted { collateral, shares, position: span.start, replayed: false }
    }

    /// Chooses the newest sells, those not covered once `taken` shares of each outcome are taken.
    fn choose_unshared(&mut self, act: &UserAct, taken: Shares) {
        let Some(row) = self.accounts.find(act.wallet, act.market) else {
            return;
        };
        let account = &self.accounts[row];
        for outcome in [Outcome::Zero, Outcome::One] {
            let left = account.shares[outcome.index()] - taken;
            let mut selling = account.selling[outcome.index()];
            let orders = self.books.orders();
            for slot in self.placements.of_account_newest(account.orders) {
                if selling <= left {
                    break;
                }
                let order = &orders[slot];
                if order.side == Side::Sell && order.outcome == outcome {
                    selling -= order.open;
                    self.slots.push(slot);
                }
            }
        }
        self.sort_chosen();
        self.slots.reverse();
    }

    /// If more orders are chosen than one record holds, removes the first of them in frames of
    /// their own.
    pub(super) fn leave_room_in_frame(&mut self, reason: RemovalReason) -> Result<(), Refusal> {
        if self.slots.len() <= REMOVED_MAX {
            return Ok(());
        }
        let first = self.slots.len() - REMOVED_MAX;
        let left = self.remove_first(first, reason);
        self.slots.drain(..left);
        if left < first { Err(Reject::Busy.into()) } else { Ok(()) }
    }

    /// Takes the chosen orders out of their books, once the frame that names them is written.
    pub(super) fn unrest_chosen(&mut self) {
        for index in 0..self.slots.len() {
            self.unrest(self.slots[index], Collateral::ZERO);
        }
        self.slots.clear();
    }

    /// Wallets with shares in a market, in no particular order; for the operator's redeem of a
    /// resolved market. Reads every account.
    pub fn holders(&self, market: MarketNo) -> impl Iterator<Item = WalletNo> + '_ {
        self.accounts.holders(market)
    }
}

/// The record that is filled in anew for every split, merge and redeem, with room for the largest.
pub(super) fn blank() -> PositionAct {
    PositionAct {
        time: TimeMs(0),
        act: ActKind::Split,
        wallet: WalletNo(0),
        market: MarketNo(0),
        shares: [Shares::ZERO; 2],
        collateral: Collateral(0),
        id: OrderId::ZERO,
        salt: Word::ZERO,
        timestamp_ms: 0,
        signature: Vec::with_capacity(SIGNATURE_BYTES_MAX),
        removed: Vec::with_capacity(REMOVED_MAX),
    }
}
