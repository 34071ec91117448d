//! The state of the exchange as the log tells it: the one place that knows what a record means.
//!
//! A [`Ledger`] starts empty or from a snapshot, and only [`Ledger::apply`] changes what it says. Recovery,
//! `journal verify`, `journal replay` and the reader all are a ledger that followed the log; the shards and the
//! registry are restored from one at start. Application is pure: it decides nothing, it only checks that what
//! was decided was possible, and stops at the first contradiction.
//!
//! | file | what it knows |
//! |---|---|
//! | `rows` | what is kept of each wallet, key, event, market and order |
//! | `apply`, `catalog`, `guards`, `replace` | what records do to them |
//! | `tombstones` | cancels that wait for their orders |
//! | `over` | what is over and in a snapshot's archive: orders, splits, merges and redeems |
//! | `conserve`, `hash` | the law of conservation; one hash for each row |
//! | `keep`, `whole` | the state as parts of a snapshot, and what these must say of each other |
//!
//! **Invariants**, checked by [`Ledger::conserved`]:
//! - cells + fees + reserves + backing = credits - debits, over the whole exchange;
//! - in every market that is not resolved, backing = shares of token 0 = shares of token 1;
//! - in every resolved market, backing covers what all remaining shares would be paid.
//!
//! **State hash.** The sum modulo 2^128 of one hash per row (`hash`): wallets, keys, switches, breakers,
//! events, items, markets, holdings, live orders and places that they took over, references, fees, mode. A sum
//! does not depend on the order in which rows were made, and a changed row costs one subtraction and one
//! addition, so the same log gives the same hash with any number of shards on any machine.

mod apply;
mod catalog;
mod conserve;
mod guards;
mod hash;
mod keep;
mod over;
mod replace;
mod rows;
mod tombstones;
mod whole;

pub use conserve::{Imbalance, Totals};
pub use over::archived_again;
pub use rows::{
    ActRow, EventRow, ItemRow, KeyRow, MarketRow, MoneyRow, OrderRow, OrderStamp, OrderState, Signed,
    WalletRow,
};

use crate::domain::{
    ApiKey, BreakerState, Collateral, MarketNo, Mode, OrderId, Position, Shares, TimeMs, WalletNo, Word,
};
use crate::journal::layout::Tombstone;
use crate::journal::{Archive, FRAME_ALIGN};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use tombstones::Tombstones;

/// The ledger remembers its hash after every this many frames. A hash goes into the log only where it does, so
/// `journal.hash_every_frames` is rounded up to a multiple.
pub const CHECKPOINT_FRAMES: u64 = 64;

/// Remembered hashes: of the last million frames. What a hash frame says of frames before them cannot be
/// verified, and is passed over.
const CHECKPOINTS_MAX: usize = 16_384;

/// Whoever writes a hash frame leaves it out if this many bytes or more were claimed since the frames it covers:
/// half of what the remembered frames take at least, as others claim meanwhile.
pub const HASH_LAG_BYTES_MAX: u64 = CHECKPOINTS_MAX as u64 * CHECKPOINT_FRAMES * FRAME_ALIGN / 2;

/// A record says something that cannot have happened in this state. The log's checksums were
/// right, so this is a bug of ours or a forged log; nothing may be served from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// What is impossible.
    pub what: &'static str,
}

impl std::fmt::Display for Contradiction {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the log contradicts itself: {}", self.what)
    }
}

/// Everything there is, after the last applied record.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    wallets: Vec<WalletRow>,
    keys: BTreeMap<(WalletNo, Word), KeyRow>,
    events: Vec<EventRow>,
    items: Vec<ItemRow>,
    markets: Vec<MarketRow>,
    holdings: HashMap<(WalletNo, MarketNo), [Shares; 2]>,
    orders: BTreeMap<Position, Box<OrderRow>>,
    /// Signed splits, merges and redeems.
    acts: BTreeMap<Position, ActRow>,
    /// Where in `orders` or `acts` a digest is.
    by_id: HashMap<OrderId, Position>,
    /// How many orders were ever placed.
    orders_ever: u64,
    archive: Archive,
    /// The next one, and the position of its snapshot, which this ledger has not reached.
    coming_archive: Option<(Position, Archive)>,
    /// How far what is over was compared with what the archive holds; none: to the end.
    shed_from: Option<Position>,
    money: HashMap<String, MoneyRow>,
    tombstones: Tombstones,
    /// Live orders that took over another's place in the queue, with the position from which it dates.
    places: BTreeMap<Position, Position>,
    switches: BTreeSet<(WalletNo, ApiKey)>,
    breakers: BTreeMap<(WalletNo, ApiKey), BreakerState>,
    exchange_mode: Option<Mode>,
    fees: Collateral,
    credited: u128,
    debited: u128,
    hash: u128,
    end: Position,
    time: TimeMs,
    frames: u64,
    checkpoints: VecDeque<(Position, u128)>,
    hashes_met: u64,
}

impl Ledger {
    /// The state before the first frame.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The end of the last applied frame: where the next one starts.
    #[must_use]
    pub const fn end(&self) -> Position {
        self.end
    }

    /// The latest time that any record named. Time never runs backwards from here.
    #[must_use]
    pub const fn time(&self) -> TimeMs {
        self.time
    }

    /// How many frames were applied.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// How many recorded state hashes this ledger met on its way.
    #[must_use]
    pub const fn hashes_met(&self) -> u64 {
        self.hashes_met
    }

    /// Whether the hash at this position was remembered once, if it is a checkpoint, and is not any more.
    fn has_forgotten(&self, position: Position) -> bool {
        let forgot = self.frames / CHECKPOINT_FRAMES != self.checkpoints.len() as u64;
        forgot && self.checkpoints.front().is_none_or(|(oldest, _)| position < *oldest)
    }

    /// The state hash; see the room's doc.
    #[must_use]
    pub const fn state_hash(&self) -> u128 {
        self.hash
    }

    /// Every wallet, by number.
    #[must_use]
    pub fn wallets(&self) -> &[WalletRow] {
        &self.wallets
    }

    /// One wallet.
    #[must_use]
    pub fn wallet(&self, wallet: WalletNo) -> Option<&WalletRow> {
        self.wallets.get(wallet.index())
    }

    /// Every API key that was ever made with a nonce of its own or revoked, in order.
    pub fn keys(&self) -> impl Iterator<Item = (WalletNo, &Word, &KeyRow)> {
        self.keys.iter().map(|((principal, nonce), row)| (*principal, nonce, row))
    }

    /// Every event, by number.
    #[must_use]
    pub fn events(&self) -> &[EventRow] {
        &self.events
    }

    /// Every tag, series and creator that was listed by itself, by number.
    #[must_use]
    pub fn items(&self) -> &[ItemRow] {
        &self.items
    }

    /// Every market, by number.
    #[must_use]
    pub fn markets(&self) -> &[MarketRow] {
        &self.markets
    }

    /// One market.
    #[must_use]
    pub fn market(&self, market: MarketNo) -> Option<&MarketRow> {
        self.markets.get(market.index())
    }

    /// The shares of both outcomes that `wallet` holds in `market`.
    #[must_use]
    pub fn holding(&self, wallet: WalletNo, market: MarketNo) -> [Shares; 2] {
        self.holdings.get(&(wallet, market)).copied().unwrap_or_default()
    }

    /// Every holding that is not zero, in no order.
    pub fn holdings(&self) -> impl Iterator<Item = (WalletNo, MarketNo, [Shares; 2])> {
        self.holdings.iter().map(|(&(wallet, market), &shares)| (wallet, market, shares))
    }

    /// Every order in memory, live or over, in the order of their frames; see [`Self::find_at`].
    pub fn orders(&self) -> impl Iterator<Item = &OrderRow> {
        self.orders.values().map(|row| &**row)
    }

    /// The order placed at `position`, if it is in memory, as every live one is.
    #[must_use]
    pub fn order_at(&self, position: Position) -> Option<&OrderRow> {
        self.orders.get(&position).map(|row| &**row)
    }

    /// The order with this id, if it is in memory, as every live one is.
    #[must_use]
    pub fn order(&self, id: &OrderId) -> Option<&OrderRow> {
        self.order_at(*self.by_id.get(id)?)
    }

    /// The live orders of `market` in the order of their placement.
    pub fn live_orders(&self, market: MarketNo) -> impl Iterator<Item = &OrderRow> {
        self.markets[market.index()].live.iter().map(|position| &*self.orders[position])
    }

    /// The live orders of `market` by their priority within a price.
    #[must_use]
    pub fn by_priority(&self, market: MarketNo) -> Vec<&OrderRow> {
        let mut orders: Vec<&OrderRow> = self.live_orders(market).collect();
        orders.sort_by_key(|row| self.place_of(row.position));
        orders
    }

    /// The position from which a live order's place in the queue dates: its own, unless it took over another's.
    fn place_of(&self, order: Position) -> Position {
        self.places.get(&order).copied().unwrap_or(order)
    }

    /// Every reference of operator money, in no order.
    pub fn references(&self) -> impl Iterator<Item = (&str, &MoneyRow)> {
        self.money.iter().map(|(reference, row)| (reference.as_str(), row))
    }

    /// Cancels that wait for their orders. Some may have expired since the last of them was left: they expire
    /// by the machine's clock, which the ledger does not know.
    pub fn tombstones(&self) -> impl Iterator<Item = &Tombstone> {
        self.tombstones.rows.values()
    }

    /// The mode of the whole exchange.
    #[must_use]
    pub fn exchange_mode(&self) -> Mode {
        self.exchange_mode.unwrap_or(Mode::Open)
    }

    /// All fees collected and not yet paid out: what the fee wallet shows.
    #[must_use]
    pub const fn fees(&self) -> Collateral {
        self.fees
    }
}

#[cfg(test)]
pub(crate) mod tests;
