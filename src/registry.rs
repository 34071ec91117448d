//! What is global and rarely changes: wallets, owners, API keys, breakers, markets, the mode.
//!
//! Append-only tables with one writer and any number of readers. A row is written whole, then
//! published, and from then on never moves; the few attributes that change later are atomics
//! inside the row. Lookups take no lock and allocate nothing, so every core loop reads the tables
//! directly while the registrar's loop goes on writing them.
//!
//! Invariants:
//! - REGISTRY-1: there is one [`RegistryWriter`] per [`Registry`]; it is not `Clone`.
//! - REGISTRY-2: a number is handed out only after its row is published, so every number in use
//!   names a complete row. Numbers are dense from 0 and never reused.
//! - REGISTRY-3: an index entry is stored (release) after its row, so a hit always finds a row.
//! - REGISTRY-4: no table grows. A full one refuses by name ([`Full`]), and nothing has changed then.
//!
//! The writer refuses only what a full table cannot take. The registrar sees to it that a row is new
//! and that the fact is in the log before it is published here.

mod breakers;
mod index;
mod rows;
mod table;
mod writer;

use crate::domain::{
    Address, ApiKey, ConditionId, MarketNo, Mode, Outcome, ShardNo, Shares, TimeMs, TokenId, WalletNo, Word,
};
use crate::memory::ahead;
pub use breakers::{BREAKERS_MAX, BreakerRow, INTERVAL_MS_MAX, QUANTITY_MAX};
use index::Index;
pub use rows::{KeyRow, KeyState, MarketFacts, MarketRow, WalletRow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use table::Table;
pub use writer::RegistryWriter;

/// A table of the registry has no free row; the registry has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// As many wallets as `sizes.wallets` allows.
    Wallets,
    /// As many API keys as there may be wallets.
    Keys,
    /// As many markets as `sizes.markets` allows.
    Markets,
    /// As many fill-rate breakers as there may be.
    Breakers,
}

/// The tables, as everybody reads them.
#[derive(Debug)]
pub struct Registry {
    wallets: Table<WalletRow>,
    keys: Table<KeyRow>,
    markets: Table<MarketRow>,
    wallet_by_address: Index,
    market_by_token: Index,
    market_by_condition: Index,
    market_by_id: Index,
    breakers: Table<BreakerRow>,
    /// Each owner's first breaker, from which the others are reached.
    breaker_by_owner: Index,
    /// How many breakers are set.
    breakers_set: AtomicU32,
    /// How often any breaker has tripped.
    trips: AtomicU32,
    exchange_mode: AtomicU8,
    /// The fee wallet's number, or [`NONE`].
    fee_wallet: AtomicU32,
}

/// "No number" in an atomic that holds one.
const NONE: u32 = u32::MAX;

/// The most rows of any table: token entries need two numbers per market, and one is [`NONE`].
pub const ROWS_MAX: u32 = 1 << 30;

impl Registry {
    /// Empty tables for this many wallets (as many API keys) and markets, and the right to write them.
    #[must_use]
    pub fn with_capacity(wallets: u32, markets: u32) -> (Arc<Self>, RegistryWriter) {
        assert!(wallets <= ROWS_MAX, "wallets are numbered in 30 bits");
        assert!(markets <= ROWS_MAX, "markets are numbered in 30 bits");
        let registry = Arc::new(Self {
            wallets: Table::with_capacity(wallets),
            keys: Table::with_capacity(wallets),
            markets: Table::with_capacity(markets),
            wallet_by_address: Index::with_capacity(wallets),
            market_by_token: Index::with_capacity(markets * 2),
            market_by_condition: Index::with_capacity(markets),
            market_by_id: Index::with_capacity(markets),
            breakers: Table::with_capacity(BREAKERS_MAX),
            breaker_by_owner: Index::with_capacity(BREAKERS_MAX),
            breakers_set: AtomicU32::new(0),
            trips: AtomicU32::new(0),
            exchange_mode: AtomicU8::new(Mode::Open as u8),
            fee_wallet: AtomicU32::new(NONE),
        });
        let writer = RegistryWriter::new(Arc::clone(&registry));
        (registry, writer)
    }

    /// The wallet that has this address.
    #[must_use]
    pub fn wallet_of(&self, address: &Address) -> Option<WalletNo> {
        let same = |number| self.wallets.row(number).address == *address;
        self.wallet_by_address.find(address.as_bytes(), same).map(WalletNo)
    }

    /// The row of a wallet that this registry numbered.
    #[must_use]
    pub fn wallet(&self, wallet: WalletNo) -> &WalletRow {
        self.wallets.row(wallet.0)
    }

    /// Prefetches the row of a wallet.
    pub fn prefetch_wallet(&self, wallet: WalletNo) {
        ahead::prefetch_whole(self.wallets.place(wallet.0));
    }

    /// How many wallets there are; their numbers are 0..count.
    #[must_use]
    pub fn wallet_count(&self) -> u32 {
        self.wallets.count()
    }

    /// A principal's wallets besides its EOA: proxy, safe and linked ones, the newest first.
    pub fn wallets_of(&self, principal: WalletNo) -> impl Iterator<Item = WalletNo> + '_ {
        let first = self.wallet(principal).first_sibling();
        std::iter::successors(first, |wallet| self.wallet(*wallet).next_sibling())
    }

    /// The wallet that fees are shown under, once there is one.
    #[must_use]
    pub fn fee_wallet(&self) -> Option<WalletNo> {
        rows::some_number(&self.fee_wallet).map(WalletNo)
    }

    /// The API keys of a principal that have rows, the newest first; revoked ones too.
    pub fn keys_of(&self, principal: WalletNo) -> impl Iterator<Item = &KeyRow> + '_ {
        let first = self.wallet(principal).first_key();
        std::iter::successors(first.map(|key| self.keys.row(key)), |row| {
            row.next().map(|key| self.keys.row(key))
        })
    }

    /// The key that a principal made with this nonce.
    #[must_use]
    pub fn key_of(&self, principal: WalletNo, nonce: &Word) -> Option<&KeyRow> {
        self.keys_of(principal).find(|row| row.nonce == *nonce)
    }

    /// Whether the key of (principal, nonce) lives, and in which generation; none if there never
    /// was one. The key of nonce 0 lives from the start: it has a row only once it was revoked.
    #[must_use]
    pub fn key_state(&self, principal: WalletNo, nonce: &Word) -> Option<KeyState> {
        match self.key_of(principal, nonce) {
            Some(row) => Some(row.state()),
            None if *nonce == Word::ZERO => Some(KeyState { generation: 0, active: true }),
            None => None,
        }
    }

    /// How many API keys have rows, revoked ones too.
    #[must_use]
    pub fn key_count(&self) -> u32 {
        self.keys.count()
    }

    /// The fill-rate breaker of a key of this owner. It may have been taken away since.
    #[must_use]
    pub fn breaker(&self, principal: WalletNo, key: &ApiKey) -> Option<&BreakerRow> {
        self.breakers_of(principal).find(|row| row.key() == *key)
    }

    /// The rows of an owner's breakers; those of breakers that were taken away too.
    pub fn breakers_of(&self, principal: WalletNo) -> impl Iterator<Item = &BreakerRow> + '_ {
        let same = |number| self.breakers.row(number).principal == principal;
        let first = self.breaker_by_owner.find(&principal.0.to_le_bytes(), same);
        std::iter::successors(first.map(|number| self.breakers.row(number)), |row| {
            row.next().map(|number| self.breakers.row(number))
        })
    }

    /// Counts a fill of an owner's order that came with `key`, which may trip that key's breaker.
    pub fn count_fill(&self, principal: WalletNo, key: &ApiKey, shares: Shares, now: TimeMs) {
        if self.any_breaker() && self.breaker(principal, key).is_some_and(|row| row.count(shares, now)) {
            // Release pairs with the acquire in `trips`: a reader that sees the number sees the row.
            self.trips.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether any key has a breaker.
    #[must_use]
    pub fn any_breaker(&self) -> bool {
        self.breakers_set.load(Ordering::Acquire) != 0
    }

    /// Whether the breaker of this owner's `key` has tripped and was not reset.
    #[must_use]
    pub fn has_tripped(&self, principal: WalletNo, key: &ApiKey) -> bool {
        self.any_breaker() && self.breaker(principal, key).is_some_and(BreakerRow::is_tripped)
    }

    /// How often any breaker has tripped since the start.
    #[must_use]
    pub fn trips(&self) -> u32 {
        self.trips.load(Ordering::Acquire)
    }

    /// The row of every breaker; those of breakers that were taken away too.
    pub fn breakers(&self) -> impl Iterator<Item = &BreakerRow> {
        (0..self.breakers.count()).map(|number| self.breakers.row(number))
    }

    /// The market and outcome of a token.
    #[must_use]
    pub fn token(&self, token: &TokenId) -> Option<(MarketNo, Outcome)> {
        let same = |entry: u32| {
            let (market, outcome) = token_of_entry(entry);
            self.market(market).tokens[outcome.index()] == *token
        };
        self.market_by_token.find(token.as_bytes(), same).map(token_of_entry)
    }

    /// The market of a condition.
    #[must_use]
    pub fn condition(&self, condition: &ConditionId) -> Option<MarketNo> {
        let same = |number| self.markets.row(number).condition == *condition;
        self.market_by_condition.find(condition.as_bytes(), same).map(MarketNo)
    }

    /// The market of a numeric id.
    #[must_use]
    pub fn market_by_id(&self, market_id: u64) -> Option<MarketNo> {
        let same = |number| self.markets.row(number).market_id == market_id;
        self.market_by_id.find(&market_id.to_le_bytes(), same).map(MarketNo)
    }

    /// The row of a market that this registry numbered.
    #[must_use]
    pub fn market(&self, market: MarketNo) -> &MarketRow {
        self.markets.row(market.0)
    }

    /// How many markets there are; their numbers are 0..count.
    #[must_use]
    pub fn market_count(&self) -> u32 {
        self.markets.count()
    }

    /// The shard that owns a market when there are `shards` of them.
    #[must_use]
    pub fn shard_of(&self, market: MarketNo, shards: u16) -> ShardNo {
        self.market(market).shard(shards)
    }

    /// The mode of the whole exchange.
    #[must_use]
    pub fn exchange_mode(&self) -> Mode {
        // Acquire pairs with the release in `RegistryWriter::set_exchange_mode`.
        rows::mode_of(self.exchange_mode.load(Ordering::Acquire))
    }
}

/// Tokens are indexed as market number x 2 + outcome.
const fn token_entry(market: MarketNo, outcome: Outcome) -> u32 {
    market.0 * 2 + outcome as u32
}

const fn token_of_entry(entry: u32) -> (MarketNo, Outcome) {
    (MarketNo(entry / 2), if entry.is_multiple_of(2) { Outcome::Zero } else { Outcome::One })
}

#[cfg(test)]
mod tests;
