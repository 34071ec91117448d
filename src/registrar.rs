//! The only writer of what is global: wallets and owners, API keys, operator money, markets, modes.
//!
//! Each act goes the same way: every refusal first, then the fact is appended to the log, then it is
//! published in the registry (or in a cell) for all loops to read; nothing fails after the last refusal.
//! Pure: the time is an argument, there is no I/O, and nobody else appends these records.
//!
//! Invariants:
//! - REGISTRAR-1: what the registrar publishes was in the log first, save that a key is revoked just
//!   before its frame. The answer to an act waits for [`Registrar::last_claimed`].
//! - REGISTRAR-2: money is debited before its frame and credited after it, so no prefix of the log
//!   has a negative cell. All credits less all debits never exceed [`money::OUTSTANDING_MAX`], so
//!   no sum of cells overflows.
//! - REGISTRAR-3: an act that would change nothing appends nothing and returns the first result.
//!
//! What belongs to one market (its mode, tick and payout) is written by its shard, not here.

mod entrance;
mod guards;
mod keys;
mod markets;
pub mod money;
mod readonly;
mod refusal;
mod restore;
mod wallets;

pub use entrance::{Caller, Entrance, Presented};
pub use guards::{BEAT_WITHIN_MS, BeatRefusal, KeyOfOwner};
pub use keys::ListedKey;
pub use markets::{MarketNames, NewMarket};
pub use money::MoneyOrder;
pub use refusal::Refusal;
pub use restore::restore;

use crate::auth::{Chain, MasterSecret};
use crate::domain::{ItemKind, Mode, Position, TimeMs, WalletNo};
use crate::journal::Log;
use crate::journal::layout::{ExchangeMode, MoneyDirection, Record};
use crate::ledger::{Ledger, MoneyRow};
use crate::memory::cells::Cells;
use crate::registry::{Registry, RegistryWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What makes an exchange's names and credentials its own.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Random bytes of this start: conditions of operator-made markets come from them, so that none is that of a market
    /// which a history that is gone had.
    pub start: [u8; 16],
    /// The secret that credentials are derived from.
    pub master: MasterSecret,
    /// The chain that signatures name.
    pub chain: Chain,
}

/// The writer of global state. One per process, on shard 0's loop.
#[derive(Debug)]
pub struct Registrar {
    writer: RegistryWriter,
    log: Arc<Log>,
    cells: Arc<Cells>,
    identity: Identity,
    shards: u16,
    time: TimeMs,
    last_claimed: Position,
    payload: Vec<u8>,
    // These grow for as long as the exchange lives. A tree has no step at which all of it moves, which would hold up
    // this loop's orders.
    references: BTreeMap<String, money::Moved>,
    /// Wallets that the operator ever put money into.
    credited: BTreeSet<WalletNo>,
    outstanding: u64,
    events: BTreeMap<String, u32>,
    event_count: u32,
    items: BTreeMap<(ItemKind, String), u32>,
    item_count: u32,
    next_market_id: u64,
    guards: guards::Guards,
}

impl Registrar {
    /// Takes over after recovery: `writer` and `cells` were restored from `ledger`, and so is what
    /// the registrar alone remembers.
    #[must_use]
    pub fn new(
        ledger: &Ledger,
        writer: RegistryWriter,
        log: Arc<Log>,
        cells: Arc<Cells>,
        identity: Identity,
        shards: u16,
    ) -> Self {
        let mut registrar = Self {
            writer,
            log,
            cells,
            identity,
            shards,
            time: ledger.time(),
            last_claimed: ledger.end(),
            payload: Vec::new(),
            references: BTreeMap::new(),
            credited: BTreeSet::new(),
            outstanding: 0,
            events: BTreeMap::new(),
            event_count: 0,
            items: BTreeMap::new(),
            item_count: 0,
            next_market_id: markets::OWN_MARKET_IDS_FROM,
            guards: guards::Guards::restore(ledger),
        };
        registrar.remember(ledger);
        registrar
    }

    /// The registry, as everybody reads it.
    #[must_use]
    pub const fn registry(&self) -> &Arc<Registry> {
        self.writer.registry()
    }

    /// The end of the last frame that the registrar appended. All its answers wait for this position.
    #[must_use]
    pub const fn last_claimed(&self) -> Position {
        self.last_claimed
    }

    /// Sets the mode of the whole exchange. Resolved is for markets.
    pub fn set_exchange_mode(&mut self, now: TimeMs, mode: Mode) -> Result<(), Refusal> {
        assert!(mode != Mode::Resolved, "resolved is for markets, and no reader takes it for the exchange");
        if self.registry().exchange_mode() == mode {
            return Ok(());
        }
        self.room_for_operator()?;
        let time = self.at(now);
        self.append(&ExchangeMode { time, mode }.into());
        self.writer.set_exchange_mode(mode);
        Ok(())
    }

    /// The time of an act: `now`, or that of the last act if the clock went back.
    fn at(&mut self, now: TimeMs) -> TimeMs {
        self.time = self.time.max(now);
        self.time
    }

    /// Claims and commits one frame. What it says is true from here on.
    fn append(&mut self, record: &Record) {
        self.payload.clear();
        record.encode(&mut self.payload);
        let span = self.log.append(record.kind(), &self.payload);
        assert!(self.last_claimed < span.end, "positions only grow");
        self.last_claimed = span.end;
    }

    /// Acts of users need as much room as orders do.
    fn room_for_user(&self) -> Result<(), Refusal> {
        if self.log.room_for_order(self.shards) { Ok(()) } else { Err(Refusal::LogFull) }
    }

    /// Acts that stop something, the operator's above all, work as long as cancels do.
    fn room_for_operator(&self) -> Result<(), Refusal> {
        if self.log.room_for_cancel(self.shards) { Ok(()) } else { Err(Refusal::LogFull) }
    }

    /// Imports stop early, so that they never hold up an order.
    fn room_for_bulk(&self) -> Result<(), Refusal> {
        let room = self.log.room_for_bulk() && self.log.room_for_order(self.shards);
        if room { Ok(()) } else { Err(Refusal::LogFull) }
    }

    /// Restores from a ledger what only the registrar remembers.
    fn remember(&mut self, ledger: &Ledger) {
        for (reference, row) in ledger.references() {
            let &MoneyRow { wallet, direction, amount, .. } = row;
            self.outstanding = match direction {
                MoneyDirection::Credit => self.outstanding.wrapping_add(amount.0),
                MoneyDirection::Debit => self.outstanding.wrapping_sub(amount.0),
            };
            self.keep_money(reference.to_owned(), money::Moved { wallet, direction, amount });
        }
        // The rows have no order, so partial sums may wrap around; the sum is what the exchange owes.
        assert!(self.outstanding <= money::OUTSTANDING_MAX, "the log holds more money than may exist");
        self.remember_markets(ledger);
    }
}

#[cfg(test)]
mod tests;
