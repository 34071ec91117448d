//! A shard as the frames left it.
//!
//! Books, shares, first results and tombstones come out of a ledger that followed the log. Cells and
//! fees are not restored here: they belong to all shards and are filled once, before the first
//! command, by the code that starts the process.

use super::placements::Placement;
use super::recall::First;
use super::rest::expires_s;
use super::tombstones::{PER_PRINCIPAL_MAX, TOMBSTONES_MAX};
use super::{Shard, ShardSettings, Status};
use crate::book::Full;
use crate::book::orders::Resting;
use crate::domain::fee::cost_of_buy;
use crate::domain::{OrderId, Position, Side, TimeMs, WalletNo};
use crate::journal::{Fault, Log};
use crate::ledger::{ActRow, Ledger, OrderRow, OrderStamp, Signed};
use crate::memory::arena::Slot;
use crate::memory::cells::Cells;
use crate::registry::Registry;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Why a shard cannot be restored.
#[derive(Debug)]
pub enum Unrestored {
    /// The archive's memory of orders cannot be read.
    Archive(Fault),
    /// There was more than its settings have room for.
    Full(Lacks),
}

/// Which of the [`ShardSettings`] is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// `resting_max`.
    Orders,
    /// `accounts_max`.
    Accounts,
    /// `books_bytes`.
    Books,
}

impl Shard {
    /// A shard that goes on where `ledger` ends. Fails if the settings have no room for what was there, for example
    /// with fewer shards than before, or if the archive's memory of orders cannot be read.
    pub fn restore(
        settings: ShardSettings,
        cells: Arc<Cells>,
        registry: Arc<Registry>,
        log: Arc<Log>,
        ledger: &Ledger,
    ) -> Result<Self, Unrestored> {
        let mut shard = Self::new(settings, cells, registry, log);
        (shard.now, shard.time) = (ledger.time(), ledger.time());
        for (wallet, market, shares) in ledger.holdings() {
            if shard.owns(market) {
                let row = shard.accounts.open(wallet, market).ok_or(Unrestored::Full(Lacks::Accounts))?;
                shard.accounts[row].shares = shares;
            }
        }
        for row in ledger.markets() {
            if shard.owns(row.market) {
                // Orders join the queues by priority, and then the accounts' lists by placement.
                let orders = ledger.by_priority(row.market);
                let restored = orders.into_iter().map(|order| Ok((shard.restore_order(order)?, order)));
                let mut resting = restored.collect::<Result<Vec<(Slot, &OrderRow)>, Unrestored>>()?;
                resting.sort_unstable_by_key(|(_, order)| order.position);
                for (slot, order) in resting {
                    shard.recount_order(slot, order)?;
                }
            }
        }
        shard.restore_recall(ledger).map_err(Unrestored::Archive)?;
        shard.restore_tombstones(ledger);
        Ok(shard)
    }

    fn restore_order(&mut self, row: &OrderRow) -> Result<Slot, Unrestored> {
        let order = Resting {
            id: row.id,
            open: row.open,
            position: row.position,
            expires_s: expires_s(row.expiration_s),
            principal: row.principal,
            market: row.market,
            price: row.price,
            side: row.fields.side,
            outcome: row.outcome,
        };
        let tick = self.registry.market(row.market).tick();
        self.books.rest(tick, &order).map_err(|full| {
            Unrestored::Full(match full {
                Full::Orders => Lacks::Orders,
                Full::Bytes => Lacks::Books,
            })
        })
    }

    fn recount_order(&mut self, slot: Slot, row: &OrderRow) -> Result<(), Unrestored> {
        let account = self.accounts.open(row.wallet, row.market);
        let account = account.ok_or(Unrestored::Full(Lacks::Accounts))?;
        let order = &self.books.orders()[slot];
        let cost = cost_of_buy(order.price, order.open, &self.registry.market(row.market).fee);
        self.enlist(slot, Placement::new(row.owner, account, row.reserved), cost);
        if row.fields.side == Side::Buy && row.reserved.is_zero() {
            self.watch(row.wallet);
            // The cell may have fallen since it was last compared.
            self.cells.raise(self.settings.shard, row.wallet);
        }
        Ok(())
    }

    /// Restores the first results with the newest stamps: as many as are remembered and one more, which
    /// gives the horizon. That depends on stamps only, so it is what it was (RECALL-2), whatever the
    /// order of the results and however many older ones there were.
    fn restore_recall(&mut self, ledger: &Ledger) -> Result<(), Fault> {
        let enough = self.settings.digests_max as usize + 1;
        let memory = |signed: Signed<OrderStamp>| match signed {
            Signed::Order(order) => self.owns(order.market).then(|| order_memory(&order)),
            Signed::Act(act) => self.owns(act.market).then(|| act_memory(ledger, &act)),
        };
        let memories: Vec<Memory> = ledger.stamps().filter_map(memory).collect();
        let memories = std::cell::RefCell::new(memories);
        let wants = |highest_ms| {
            let mut memories = memories.borrow_mut();
            if memories.len() < enough {
                return true;
            }
            let (_, last, _) =
                memories.select_nth_unstable_by_key(enough - 1, |memory| Reverse(memory.stamp_ms));
            let wanted = last.stamp_ms < highest_ms;
            memories.truncate(enough);
            wanted
        };
        ledger.archived_stamps(wants, |stamps| {
            memories.borrow_mut().extend(stamps.into_iter().filter_map(memory));
        })?;
        // In the order of their stamps all join one lane, whose front is what is dropped.
        let mut memories = memories.into_inner();
        memories.sort_unstable_by_key(|memory| (memory.stamp_ms, memory.position));
        for memory in memories {
            let Memory { stamp_ms, principal, first, .. } = memory;
            self.recall.remember(TimeMs(u64::MAX), &memory.id, stamp_ms, principal, first);
        }
        Ok(())
    }

    /// Every shard keeps every tombstone: an order's market is not known before it arrives. Those that have run
    /// out are left to the first command's time to find, because the log's time may be ahead of the clock; the newest
    /// come first where there is no room for them too.
    fn restore_tombstones(&mut self, ledger: &Ledger) {
        let mut waiting: Vec<_> = ledger.tombstones().collect();
        waiting.sort_by_key(|tombstone| Reverse((tombstone.until, tombstone.id, tombstone.principal)));
        let mut counts = HashMap::new();
        waiting.retain(|tombstone| {
            let count = counts.entry(tombstone.principal).or_insert(0_u16);
            *count = count.saturating_add(1);
            *count <= PER_PRINCIPAL_MAX
        });
        waiting.truncate(TOMBSTONES_MAX as usize);
        for tombstone in waiting.into_iter().rev() {
            self.tombstones.put(&tombstone.id, tombstone.principal, tombstone.until, &mut self.accounts);
        }
    }
}

struct Memory {
    position: Position,
    id: OrderId,
    stamp_ms: u64,
    principal: WalletNo,
    first: First,
}

fn order_memory(row: &OrderStamp) -> Memory {
    let filled = !row.taken_shares.is_zero();
    let status = match row.killed {
        Some(reject) => Status::Killed(reject),
        None if filled => Status::Matched,
        None => Status::Live,
    };
    let (making, taking) = match row.side {
        Side::Buy => (row.taken.0, row.taken_shares.0),
        Side::Sell => (row.taken_shares.0, row.taken.0),
    };
    Memory {
        position: row.position,
        id: row.id,
        stamp_ms: row.stamp_ms,
        principal: row.principal,
        first: First::Order { status, making, taking, trade: filled.then_some(row.position) },
    }
}

fn act_memory(ledger: &Ledger, row: &ActRow) -> Memory {
    let principal = ledger.wallet(row.wallet).and_then(|wallet| wallet.principal).unwrap_or(row.wallet);
    Memory {
        position: row.position,
        id: row.id,
        stamp_ms: row.timestamp_ms,
        principal,
        first: First::Act { collateral: row.collateral, shares: row.shares, position: row.position },
    }
}
