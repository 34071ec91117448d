//! What each kind of record does to the rows.
//!
//! Every change of a hashed row takes the old row's hash out of the sum and puts the new one's in.
//! For wallets, market states, orders and holdings the `change_*` functions at the end do that.

use super::rows::{ActRow, KeyRow, MarketRow, MoneyRow, OrderRow, OrderState, WalletRow};
use super::{CHECKPOINT_FRAMES, CHECKPOINTS_MAX, Contradiction, Ledger, hash};
use crate::domain::{
    Collateral, MarketNo, Mode, OrderId, Outcome, Position, Shares, Side, TimeMs, WalletKind, WalletNo,
};
use crate::journal::layout::{
    ActKind, Fill, KeyChanged, MatchKind, Money, MoneyDirection, OrderPlaced, OrdersRemoved, PlacedResult,
    PositionAct, Record, RemovalReason, Resolved, StateHash, TickChanged, WalletAdded, WalletLinked,
};

pub(super) type Applied = Result<(), Contradiction>;

pub(super) const fn contradiction(what: &'static str) -> Contradiction {
    Contradiction { what }
}

/// Checks that what a record says is possible.
pub(super) const fn require(holds: bool, what: &'static str) -> Applied {
    if holds { Ok(()) } else { Err(contradiction(what)) }
}

impl Ledger {
    /// Applies the record of the frame at `start..end`.
    ///
    /// Frames come in the order of the log; only padding is left out. After a contradiction the
    /// ledger is half changed and must be dropped.
    pub fn apply(&mut self, start: Position, end: Position, record: &Record) -> Result<(), Contradiction> {
        require(start >= self.end && end > start, "a frame starts before the last one ended")?;
        match record {
            Record::Start(_) | Record::Close(_) => Ok(()),
            Record::StateHash(record) => self.meet(record),
            Record::WalletAdded(record) => self.add_wallet(record),
            Record::WalletLinked(record) => self.link_wallet(record),
            Record::KeyChanged(record) => self.change_key(record),
            Record::Frozen(record) => self.change_wallet(record.principal, |row| {
                require(row.kind == WalletKind::Eoa, "a freeze names a wallet that is no principal")?;
                row.frozen = record.frozen;
                Ok(())
            }),
            Record::ExchangeMode(record) => self.set_exchange_mode(record.mode),
            Record::Money(record) => self.move_money(start, record),
            Record::EventText(record) => self.put_event(record),
            Record::ItemText(record) => self.put_item(record),
            Record::MarketAdded(record) => self.add_market(record),
            Record::MarketText(record) => self.put_market_text(record),
            Record::OrderPlaced(record) => self.place(start, record),
            Record::OrdersRemoved(record) => self.remove_all(record),
            Record::Tombstone(record) => {
                self.wallet(record.principal).ok_or(contradiction("a tombstone names no principal"))?;
                self.tombstones.leave(record);
                Ok(())
            }
            Record::PositionAct(record) => self.act_on_position(start, record),
            Record::TickChanged(record) => self.change_tick(record),
            Record::MarketMode(record) => self.change_market(record.market, |row| {
                require(row.mode != Mode::Resolved, "a resolved market changed its mode")?;
                row.set_mode(record.mode, record.time);
                Ok(())
            }),
            Record::Resolved(record) => self.resolve(record),
            Record::OrdersReplaced(record) => self.replace(start, record),
            Record::SwitchArmed(record) => self.arm_switch(record),
            Record::BreakerSet(record) => self.set_breaker(record),
        }?;
        self.end = end;
        self.take_coming_archive();
        self.time = self.time.max(record.time());
        self.frames += 1;
        if self.frames.is_multiple_of(CHECKPOINT_FRAMES) {
            if self.checkpoints.len() == CHECKPOINTS_MAX {
                self.checkpoints.pop_front();
            }
            self.checkpoints.push_back((self.end, self.hash));
        }
        Ok(())
    }

    /// Compares a recorded hash with the one kept at its position; frames may have come in between.
    fn meet(&mut self, record: &StateHash) -> Applied {
        if self.has_forgotten(record.through) {
            return Ok(());
        }
        let then = self.checkpoints.iter().rev().find(|(end, _)| *end == record.through);
        let (_, hash) = then.ok_or(contradiction("a state hash names a position that is no checkpoint"))?;
        require(*hash == record.hash, "the state does not meet its recorded hash")?;
        self.hashes_met += 1;
        Ok(())
    }

    fn add_wallet(&mut self, record: &WalletAdded) -> Applied {
        require(record.wallet.index() == self.wallets.len(), "wallet numbers are not dense")?;
        let own = record.principal == Some(record.wallet);
        require(own == (record.kind == WalletKind::Eoa), "only an EOA is its own principal")?;
        let row = WalletRow {
            wallet: record.wallet,
            address: record.address,
            kind: record.kind,
            principal: record.principal,
            cell: Collateral::ZERO,
            frozen: false,
        };
        self.hash = self.hash.wrapping_add(hash::wallet(&row));
        self.wallets.push(row);
        Ok(())
    }

    fn link_wallet(&mut self, record: &WalletLinked) -> Applied {
        let owner = self.wallet(record.principal).ok_or(contradiction("a link names no principal"))?;
        require(owner.kind == WalletKind::Eoa, "a link names a principal that is not an EOA")?;
        self.change_wallet(record.wallet, |row| {
            require(row.principal.is_none(), "a link names a wallet that has a principal")?;
            row.principal = Some(record.principal);
            Ok(())
        })
    }

    fn change_key(&mut self, record: &KeyChanged) -> Applied {
        self.wallet(record.principal).ok_or(contradiction("a key names no principal"))?;
        let place = (record.principal, record.nonce);
        let row = KeyRow { generation: record.generation, active: record.active, changed: record.time };
        if let Some(old) = self.keys.insert(place, row) {
            self.hash = self.hash.wrapping_sub(hash::key(record.principal, &record.nonce, &old));
            require(old.generation <= record.generation, "a key's generation fell")?;
        }
        self.hash = self.hash.wrapping_add(hash::key(record.principal, &record.nonce, &row));
        Ok(())
    }

    fn set_exchange_mode(&mut self, mode: Mode) -> Applied {
        require(mode != Mode::Resolved, "the exchange cannot be resolved")?;
        self.hash = self.hash.wrapping_sub(hash::exchange_mode(self.exchange_mode));
        self.exchange_mode = Some(mode);
        self.hash = self.hash.wrapping_add(hash::exchange_mode(self.exchange_mode));
        Ok(())
    }

    fn move_money(&mut self, position: Position, record: &Money) -> Applied {
        require(!self.money.contains_key(&record.reference), "a reference was used twice")?;
        match record.direction {
            MoneyDirection::Credit => self.pay(record.wallet, record.amount)?,
            MoneyDirection::Debit => match self.wallet(record.wallet).map(|row| row.kind) {
                Some(WalletKind::Fee) => self.pay_out_fees(record.amount)?,
                _ => self.charge(record.wallet, record.amount)?,
            },
        }
        match record.direction {
            MoneyDirection::Credit => self.credited += u128::from(record.amount.0),
            MoneyDirection::Debit => self.debited += u128::from(record.amount.0),
        }
        let row = MoneyRow {
            wallet: record.wallet,
            direction: record.direction,
            amount: record.amount,
            position,
            time: record.time,
        };
        self.hash = self.hash.wrapping_add(hash::money(&record.reference, &row));
        self.money.insert(record.reference.clone(), row);
        Ok(())
    }

    pub(super) fn place(&mut self, position: Position, record: &OrderPlaced) -> Applied {
        self.require_new(&record.id, "an order was placed twice")?;
        self.wallet(record.principal).ok_or(contradiction("an order names no principal"))?;
        let side = record.fields.side;
        for fill in &record.fills {
            self.fill_maker(position, record, fill)?;
            self.settle(record.wallet, side, fill.taker_leg, fill.taker_fee)?;
            self.move_shares(record.wallet, record.market, record.outcome, side, fill.shares)?;
        }
        for removal in &record.removed {
            self.remove(removal.order, removal.reason, record.time)?;
        }
        self.charge(record.wallet, record.reserved)?;
        let rests = record.result == PlacedResult::Rests;
        require(
            rests != record.open.is_zero(),
            "an order rests with nothing open, or has open shares and does not rest",
        )?;
        self.tombstones.remove(&record.id, record.principal);
        let row = OrderRow {
            position,
            id: record.id,
            placed: record.time,
            changed: record.time,
            market: record.market,
            outcome: record.outcome,
            wallet: record.wallet,
            principal: record.principal,
            owner: record.owner,
            fields: record.fields,
            expiration_s: record.expiration_s,
            order_type: record.order_type,
            post_only: record.post_only,
            self_trade: record.self_trade,
            price: record.price,
            state: match record.result {
                PlacedResult::Rests => OrderState::Live,
                PlacedResult::Filled => OrderState::Filled,
                PlacedResult::Killed(reject) => OrderState::Killed(reject),
            },
            stopped: record.stopped,
            filled: record.filled_shares(),
            open: record.open,
            reserved: record.reserved,
            taken: record.filled_collateral(),
            taken_shares: record.filled_shares(),
            trades: if record.fills.is_empty() { Vec::new() } else { vec![position] },
        };
        self.hash = self.hash.wrapping_add(hash::order(&row));
        let market =
            self.markets.get_mut(record.market.index()).ok_or(contradiction("an order names no market"))?;
        if rests {
            market.live.insert(position);
        }
        if rests || !record.fills.is_empty() {
            market.book_changed = record.time;
        }
        self.by_id.insert(record.id, position);
        self.orders.insert(position, Box::new(row));
        self.orders_ever += 1;
        Ok(())
    }

    /// Checks that nothing that was signed and applied has this digest.
    fn require_new(&self, id: &OrderId, again: &'static str) -> Applied {
        // Reads only archived rows whose digests begin with the same eight bytes: by chance there are none.
        let archived = self
            .find_archived(id)
            .map_err(|_| contradiction("a digest is that of an archived row, as far as that can be read"))?;
        require(!self.by_id.contains_key(id) && archived.is_none(), again)
    }

    /// Applies the maker's half of one fill, and the fees and backing of both halves.
    fn fill_maker(&mut self, trade: Position, taker: &OrderPlaced, fill: &Fill) -> Applied {
        let maker = self.order_at(fill.maker).ok_or(contradiction("a fill names no order"))?;
        require(
            maker.is_live() && maker.market == taker.market,
            "a fill names an order that does not rest there",
        )?;
        require(maker.price == fill.price, "a maker was filled at another price than its own")?;
        require(
            !fill.shares.is_zero() && fill.shares <= maker.open,
            "a maker was filled for more than is open",
        )?;
        let (wallet, side, outcome) = (maker.wallet, maker.fields.side, maker.outcome);
        let from_reserve = !maker.reserved.is_zero();
        let kind = match (taker.fields.side, side, taker.outcome == outcome) {
            (Side::Buy, Side::Sell, true) | (Side::Sell, Side::Buy, true) => MatchKind::Transfer,
            (Side::Buy, Side::Buy, false) => MatchKind::Mint,
            (Side::Sell, Side::Sell, false) => MatchKind::Merge,
            _ => return Err(contradiction("a fill joins two orders that do not match")),
        };
        require(kind == fill.kind, "a fill names another kind of match")?;
        let pair = fill.maker_leg + fill.taker_leg;
        match kind {
            MatchKind::Transfer => require(fill.maker_leg == fill.taker_leg, "a transfer's legs differ")?,
            MatchKind::Mint | MatchKind::Merge => {
                require(pair.0 == fill.shares.0, "a pair did not cost or return exactly one")?;
            }
        }
        let backing = fill.shares.0;
        self.change_market(taker.market, |row| {
            match kind {
                MatchKind::Transfer => {}
                MatchKind::Mint => row.backing += Collateral(backing),
                MatchKind::Merge => {
                    row.backing = row
                        .backing
                        .checked_sub(Collateral(backing))
                        .ok_or(contradiction("backing fell below zero"))?;
                }
            }
            Ok(())
        })?;
        let charge = fill.maker_leg + fill.maker_fee;
        if side == Side::Buy && from_reserve {
            self.change_order(fill.maker, |row| {
                row.reserved =
                    row.reserved.checked_sub(charge).ok_or(contradiction("a reserve fell below zero"))?;
                Ok(())
            })?;
        } else {
            self.settle(wallet, side, fill.maker_leg, fill.maker_fee)?;
        }
        self.move_shares(wallet, taker.market, outcome, side, fill.shares)?;
        self.collect(fill.maker_fee + fill.taker_fee);
        let time = taker.time;
        self.change_order(fill.maker, |row| {
            row.open -= fill.shares;
            row.filled += fill.shares;
            row.changed = time;
            if row.trades.last() != Some(&trade) {
                row.trades.push(trade);
            }
            Ok(())
        })?;
        if self.order_at(fill.maker).is_some_and(|row| row.open.is_zero()) {
            self.end_order(fill.maker, OrderState::Filled, time)?;
        }
        Ok(())
    }

    /// Moves a leg and its fee: out of a buyer's cell, or into a seller's.
    fn settle(&mut self, wallet: WalletNo, side: Side, leg: Collateral, fee: Collateral) -> Applied {
        match side {
            Side::Buy => self.charge(wallet, leg + fee),
            Side::Sell => {
                let proceeds = leg.checked_sub(fee).ok_or(contradiction("a fee is above the proceeds"))?;
                self.pay(wallet, proceeds)
            }
        }
    }

    fn move_shares(
        &mut self,
        wallet: WalletNo,
        market: MarketNo,
        outcome: Outcome,
        side: Side,
        shares: Shares,
    ) -> Applied {
        let mut change = [Shares::ZERO; 2];
        change[outcome.index()] = shares;
        match side {
            Side::Buy => self.give_shares(wallet, market, change),
            Side::Sell => self.take_shares(wallet, market, change),
        }
    }

    fn remove_all(&mut self, record: &OrdersRemoved) -> Applied {
        record.orders.iter().try_for_each(|&order| self.remove(order, record.reason, record.time))
    }

    pub(super) fn remove(&mut self, order: Position, reason: RemovalReason, time: TimeMs) -> Applied {
        let row = self.order_at(order).ok_or(contradiction("a removal names no order"))?;
        require(row.is_live(), "an order was removed twice")?;
        self.end_order(order, OrderState::Removed(reason), time)
    }

    /// Ends a resting order: what was set aside for it goes back to its wallet.
    fn end_order(&mut self, order: Position, state: OrderState, time: TimeMs) -> Applied {
        let row = self.order_at(order).ok_or(contradiction("an ended order is unknown"))?;
        let (wallet, market, reserved) = (row.wallet, row.market, row.reserved);
        self.change_order(order, |row| {
            row.state = state;
            row.open = Shares::ZERO;
            row.reserved = Collateral::ZERO;
            row.changed = time;
            Ok(())
        })?;
        self.leave_place(order);
        let market = &mut self.markets[market.index()];
        market.live.remove(&order);
        market.book_changed = time;
        self.pay(wallet, reserved)
    }

    fn act_on_position(&mut self, position: Position, record: &PositionAct) -> Applied {
        let pair = record.shares[0].0 == record.collateral.0 && record.shares[1].0 == record.collateral.0;
        match record.act {
            ActKind::Split => {
                require(pair, "a split is not one pair for one collateral")?;
                self.charge(record.wallet, record.collateral)?;
                self.give_shares(record.wallet, record.market, record.shares)?;
            }
            ActKind::Merge => {
                require(pair, "a merge is not one pair for one collateral")?;
                self.take_shares(record.wallet, record.market, record.shares)?;
                self.pay(record.wallet, record.collateral)?;
            }
            ActKind::Redeem => {
                let row = self.market(record.market).ok_or(contradiction("a redeem names no market"))?;
                let payout = row.payout.ok_or(contradiction("a redeem before the market was resolved"))?;
                require(payout.of(record.shares) == record.collateral, "a redeem paid another sum")?;
                self.take_shares(record.wallet, record.market, record.shares)?;
                self.pay(record.wallet, record.collateral)?;
            }
        }
        self.change_market(record.market, |row| {
            row.backing = match record.act {
                ActKind::Split => row.backing + record.collateral,
                ActKind::Merge | ActKind::Redeem => row
                    .backing
                    .checked_sub(record.collateral)
                    .ok_or(contradiction("backing fell below zero"))?,
            };
            Ok(())
        })?;
        for &order in &record.removed {
            self.remove(order, RemovalReason::Unfunded, record.time)?;
        }
        if record.id != OrderId::ZERO {
            self.require_new(&record.id, "a signed act was applied twice")?;
            let row = ActRow {
                position,
                id: record.id,
                wallet: record.wallet,
                market: record.market,
                shares: record.shares,
                collateral: record.collateral,
                timestamp_ms: record.timestamp_ms,
            };
            self.by_id.insert(record.id, position);
            self.acts.insert(position, row);
        }
        Ok(())
    }

    fn change_tick(&mut self, record: &TickChanged) -> Applied {
        for &order in &record.removed {
            self.remove(order, RemovalReason::TickChanged, record.time)?;
        }
        self.change_market(record.market, |row| {
            row.tick = record.tick;
            row.book_changed = record.time;
            Ok(())
        })?;
        let off_grid = self.live_orders(record.market).any(|row| !record.tick.holds(row.price));
        require(!off_grid, "an order stayed off the new tick's grid")
    }

    fn resolve(&mut self, record: &Resolved) -> Applied {
        self.change_market(record.market, |row| {
            require(row.payout.is_none(), "a market was resolved twice")?;
            row.set_mode(Mode::Resolved, record.time);
            (row.payout, row.resolved) = (Some(record.payout), Some(record.time));
            Ok(())
        })?;
        let live: Vec<Position> = self.markets[record.market.index()].live.iter().copied().collect();
        live.into_iter().try_for_each(|order| self.remove(order, RemovalReason::MarketResolved, record.time))
    }

    /// Pays into a wallet's cell.
    fn pay(&mut self, wallet: WalletNo, amount: Collateral) -> Applied {
        self.change_wallet(wallet, |row| {
            row.cell = row.cell.checked_add(amount).ok_or(contradiction("a cell overflowed"))?;
            Ok(())
        })
    }

    /// Takes out of a wallet's cell.
    fn charge(&mut self, wallet: WalletNo, amount: Collateral) -> Applied {
        self.change_wallet(wallet, |row| {
            row.cell = row.cell.checked_sub(amount).ok_or(contradiction("a cell fell below zero"))?;
            Ok(())
        })
    }

    fn collect(&mut self, fee: Collateral) {
        self.hash = self.hash.wrapping_sub(hash::fees(self.fees));
        self.fees += fee;
        self.hash = self.hash.wrapping_add(hash::fees(self.fees));
    }

    fn pay_out_fees(&mut self, amount: Collateral) -> Applied {
        let left = self.fees.checked_sub(amount);
        let left = left.ok_or(contradiction("more fees were paid out than collected"))?;
        self.hash = self.hash.wrapping_sub(hash::fees(self.fees)).wrapping_add(hash::fees(left));
        self.fees = left;
        Ok(())
    }

    fn give_shares(&mut self, wallet: WalletNo, market: MarketNo, shares: [Shares; 2]) -> Applied {
        self.change_holding(wallet, market, |held, all| {
            for outcome in 0..2 {
                held[outcome] += shares[outcome];
                all[outcome] += shares[outcome];
            }
            Ok(())
        })
    }

    fn take_shares(&mut self, wallet: WalletNo, market: MarketNo, shares: [Shares; 2]) -> Applied {
        self.change_holding(wallet, market, |held, all| {
            for outcome in 0..2 {
                held[outcome] = held[outcome]
                    .checked_sub(shares[outcome])
                    .ok_or(contradiction("a wallet gave shares that it does not hold"))?;
                all[outcome] -= shares[outcome];
            }
            Ok(())
        })
    }

    fn change_wallet(&mut self, wallet: WalletNo, change: impl FnOnce(&mut WalletRow) -> Applied) -> Applied {
        let row = self.wallets.get_mut(wallet.index()).ok_or(contradiction("a record names no wallet"))?;
        let before = hash::wallet(row);
        change(row)?;
        self.hash = self.hash.wrapping_sub(before).wrapping_add(hash::wallet(row));
        Ok(())
    }

    fn change_market(&mut self, market: MarketNo, change: impl FnOnce(&mut MarketRow) -> Applied) -> Applied {
        let row = self.markets.get_mut(market.index()).ok_or(contradiction("a record names no market"))?;
        let before = hash::market_state(row);
        change(row)?;
        self.hash = self.hash.wrapping_sub(before).wrapping_add(hash::market_state(row));
        Ok(())
    }

    fn change_order(&mut self, order: Position, change: impl FnOnce(&mut OrderRow) -> Applied) -> Applied {
        let row = self.orders.get_mut(&order).ok_or(contradiction("a record names no order"))?;
        let before = hash::order(row);
        change(row)?;
        self.hash = self.hash.wrapping_sub(before).wrapping_add(hash::order(row));
        Ok(())
    }

    fn change_holding(
        &mut self,
        wallet: WalletNo,
        market: MarketNo,
        change: impl FnOnce(&mut [Shares; 2], &mut [Shares; 2]) -> Applied,
    ) -> Applied {
        require(wallet.index() < self.wallets.len(), "a holding names no wallet")?;
        let mut held = self.holding(wallet, market);
        let before = held;
        self.change_market(market, |row| change(&mut held, &mut row.shares))?;
        let counted = |shares: [Shares; 2]| {
            if shares == [Shares::ZERO; 2] { 0 } else { hash::holding(wallet, market, shares) }
        };
        self.hash = self.hash.wrapping_sub(counted(before)).wrapping_add(counted(held));
        if held == [Shares::ZERO; 2] {
            self.holdings.remove(&(wallet, market));
        } else {
            self.holdings.insert((wallet, market), held);
        }
        Ok(())
    }
}
