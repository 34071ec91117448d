//! What a trading command does: the trade core of some markets, without I/O and without a clock.
//!
//! A shard owns the books and the outcome shares of its markets; collateral is in cells that all
//! shards share. Every command that changes anything becomes one frame in the log, and no answer
//! leaves before the log is durable up to [`Shard::last_claimed`]. Commands carry registry numbers:
//! signatures, names and rate limits were checked before.
//!
//! | file | what it knows |
//! |---|---|
//! | `ready` | an order as it comes, ready to be judged |
//! | `place` | its way through the four stages |
//! | `judge` | what is judged before a frame |
//! | `walk` | the walk over makers: looking, and taking |
//! | `rest` | how an order comes to rest, and the short way of one that meets nobody |
//! | `leave` | orders that leave without a fill: cancels and sweeps |
//! | `replace` | some leave and others come, all or nothing |
//! | `acts` | splits, merges and redeems |
//! | `markets` | what the operator does to a market |
//! | `placements` | what is kept of a resting order outside its book |
//! | `expiries` | which resting order expires next |
//! | `recall`, `ages` | what was decided before, by digest, and which of it is the oldest |
//! | `tombstones` | cancels that came before their orders |
//! | `ahead` | fetching ahead for commands to come |
//! | `restore` | a shard as the frames left it |
//! | `naive` | the same rules in plain lists and maps |
//!
//! **One match, four stages** ([`Stage`]).
//!
//! 1. *Look*: walk the makers, judge what was found, refuse or kill. Cells are only loaded, so a
//!    refused order has changed nothing.
//! 2. *Take*: walk again and debit each paying maker for its exact leg and fee, all or nothing; a
//!    maker that is short is left out. Debit the taker last, for its exact sum. If the taker or a
//!    FOK falls short, give everything back and *look* once more; the second time, refuse or kill.
//! 3. *Claim* the finished frame's position. From here nothing can fail.
//! 4. *Apply*: write and commit the frame, change books and shares, publish credits, notify the
//!    shards that watch a lowered cell.
//!
//! Debits come before the claim and credits after the commit, so an order that spends a credit has
//! a later position than the credit: no prefix of the log has a negative cell.
//!
//! - SHARD-1: one command at a time; what one stage leaves for the next is in scratch space.
//! - SHARD-2: no order, cancel, sweep, split, merge or redeem allocates. Every list has its capacity
//!   from the start. What the operator does to a market may allocate.
//! - SHARD-3: the same frames make the same shard: [`Shard::restore`] forgets nothing that a
//!   command could ask for.
//!
//! A **killed** order is a good order that ends with nothing filled and nothing resting: it gets a
//! frame and is remembered. A **refused** one gets no frame and is judged anew if it is sent again.

mod acts;
mod ages;
pub mod ahead;
mod expiries;
mod judge;
mod leave;
mod markets;
pub mod naive;
mod place;
mod placements;
mod ready;
mod recall;
mod replace;
mod rest;
mod restore;
mod tombstones;
mod walk;

use crate::account::Accounts;
use crate::book::Books;
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{
    Collateral, MarketNo, OrderId, Outcome, Position, Reject, ShardNo, Shares, SignedOrder, TimeMs, WalletNo,
    Word,
};
use crate::journal::layout::{ActKind, PositionAct};
use crate::journal::{Log, PAYLOAD_BYTES_MAX};
use crate::memory::arena::Slot;
use crate::memory::cells::Cells;
use crate::registry::Registry;
use expiries::Expiries;
use place::{Framed, Work};
use placements::Placements;
use recall::Recall;
use std::sync::Arc;
use tombstones::Tombstones;
use walk::{Plan, Taker};

pub use leave::{LEAVING_PER_PIECE, Leaving, OrderScope};
pub use place::Stage;
pub use ready::ReadyOrder;
pub use replace::{IfGone, Replace, ReplacePart, ReplaceRefusal, Replaced};
pub use restore::{Lacks, Unrestored};

/// Whether collateral is set aside for a resting buy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Funding {
    /// A wallet's open buys of one market must be covered together; different markets may count on
    /// the same money. When funds fall, what is no longer covered is removed, newest first.
    #[default]
    Market,
    /// Every resting buy has its collateral set aside.
    Reserved,
}

/// What a shard is made with. Its memory is allocated once, by these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// Which shard this is.
    pub shard: ShardNo,
    /// How many shards there are.
    pub shards: u16,
    /// Whether collateral is set aside for resting buys.
    pub funding: Funding,
    /// The smallest notional of a buy that trades on arrival.
    pub min_notional: Collateral,
    /// The most resting orders.
    pub resting_max: u32,
    /// The most of them that are one principal's, so that nobody alone can fill the table. What rests already stays.
    pub open_per_owner_max: u32,
    /// The most orders and acts whose first result is remembered.
    pub digests_max: u32,
    /// The most (wallet, market) pairs with shares or open orders.
    pub accounts_max: u32,
    /// The most of them that are one wallet's, so that nobody alone can fill the table. What is there already stays.
    pub accounts_per_wallet_max: u32,
    /// The most markets of the whole exchange.
    pub markets_max: u32,
    /// Bytes for price ladders.
    pub books_bytes: u64,
    /// A random odd number of this process, so that nobody can aim digests at one bucket.
    pub secret: u64,
}

/// An order whose signature was checked, with the registry numbers of its names; [`PlaceOrder::ready`] makes the
/// form that its shard takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceOrder {
    /// What was signed and sent.
    pub order: SignedOrder,
    /// Its digest.
    pub id: OrderId,
    /// The order's owner.
    pub principal: WalletNo,
    /// The wallet that trades.
    pub wallet: WalletNo,
    /// The market of its token.
    pub market: MarketNo,
    /// Its token's side of the market.
    pub outcome: Outcome,
}

/// Decimals of a price in a [`Refusal`]: enough to show that one millionth in an amount puts it off the grid, unless
/// the order is very large.
pub const REFUSED_PRICE_PLACES: u32 = 12;

/// Why an act did not happen. Nothing of it has changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub reject: Reject,
    /// The value that broke it: an amount in millionths, a price with [`REFUSED_PRICE_PLACES`]
    /// decimals, or a time in the unit in which it was sent; 0 if there is none.
    pub got: u64,
    /// The rule's bound in the same unit: the tick, the smallest size, the balance.
    pub allowed: u64,
}

impl From<Reject> for Refusal {
    fn from(reject: Reject) -> Self {
        Self { reject, got: 0, allowed: 0 }
    }
}

/// What became of an order that got a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It rests, and nothing of it was filled.
    Live,
    /// Something was filled; what is left may rest.
    Matched,
    /// Nothing was filled and nothing rests.
    Killed(Reject),
}

/// The answer to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Refused; nothing of it has changed anything.
    Refused(Refusal),
    /// It got a frame.
    Accepted {
        /// What became of it.
        status: Status,
        /// Millionths that it gave on arrival: collateral without fees for a buy, shares for a sell.
        making: u64,
        /// Millionths that it got on arrival.
        taking: u64,
        /// The position that names its trade, if anything was filled.
        trade: Option<Position>,
        /// True if this is the first result of an earlier post of the same order.
        replayed: bool,
    },
}

/// Why an order was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelRefusal {
    /// No order of this principal with this id rests here, and none is remembered.
    Unknown,
    /// It was here, and was filled, cancelled or killed.
    Gone,
    /// The log has no room, not even for cancels.
    Busy,
}

/// A split, merge or redeem, asked for by its wallet's owner or queued by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserAct {
    /// Which of the three.
    pub act: ActKind,
    /// The wallet's owner.
    pub principal: WalletNo,
    /// The wallet.
    pub wallet: WalletNo,
    /// The market.
    pub market: MarketNo,
    /// Shares of each outcome; 0 in a redeem means all of them.
    pub amount: Shares,
    /// The digest of the signed request; zero when the operator redeems.
    pub id: OrderId,
    /// The request's salt.
    pub salt: Word,
    /// The request's time in milliseconds.
    pub timestamp_ms: u64,
    /// The signature's bytes; only the first `signature_len` count.
    pub signature: [u8; SIGNATURE_BYTES_MAX],
    /// The signature's length: 65, 317, or 0 when the operator redeems.
    pub signature_len: u16,
}

/// What a split, merge or redeem did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acted {
    /// Collateral paid (split) or received (merge, redeem).
    pub collateral: Collateral,
    /// Shares received (split) or given (merge, redeem) of each outcome.
    pub shares: [Shares; 2],
    /// Its frame.
    pub position: Position,
    /// True if this is the result of an earlier post of the same act.
    pub replayed: bool,
}

/// The trade core of one shard.
#[derive(Debug)]
pub struct Shard {
    settings: ShardSettings,
    cells: Arc<Cells>,
    registry: Arc<Registry>,
    log: Arc<Log>,
    books: Books,
    placements: Placements,
    accounts: Accounts,
    recall: Recall,
    tombstones: Tombstones,
    expiries: Expiries,
    /// The time that orders are judged by: the one last handed in, earlier again if the clock was set back.
    now: TimeMs,
    /// By how much that is ahead of the clock, in milliseconds, when an order with a deadline is judged.
    ahead_ms: u64,
    /// The time that frames record: `now`, but never earlier than in a frame before.
    time: TimeMs,
    last: Position,
    /// Counts walks, so that what one has spent tentatively does not count in the next.
    walks: u64,
    plan: Plan,
    /// The order that tests run stage by stage, and its frame once that is claimed.
    begun: Option<(Taker, Work, Option<Framed>)>,
    slots: Vec<Slot>,
    /// Open orders that the last choice by scope or key looked at and left.
    in_vain: usize,
    moved: PositionAct,
    scratch: replace::Scratch,
    payload: Box<[[u8; 8]]>,
}

impl Shard {
    /// A shard without orders and shares; takes all its memory.
    #[must_use]
    pub fn new(settings: ShardSettings, cells: Arc<Cells>, registry: Arc<Registry>, log: Arc<Log>) -> Self {
        assert!(settings.shard.0 < settings.shards, "shards are numbered from 0");
        assert!(!settings.secret.is_multiple_of(2), "an even secret would lose a bit of every digest");
        let ShardSettings { resting_max, secret, .. } = settings;
        Self {
            books: Books::new(settings.markets_max, resting_max, settings.books_bytes, secret),
            placements: Placements::with_capacity(resting_max),
            accounts: Accounts::with_capacity(
                settings.accounts_max,
                cells.wallets_max(),
                settings.markets_max,
                secret,
            ),
            recall: Recall::with_capacity(settings.digests_max, secret),
            tombstones: Tombstones::new(),
            expiries: Expiries::with_capacity(resting_max),
            now: TimeMs(0),
            ahead_ms: 0,
            time: TimeMs(0),
            last: log.claimed(),
            walks: 0,
            plan: Plan::with_capacity(),
            begun: None,
            slots: Vec::with_capacity(resting_max as usize),
            in_vain: 0,
            moved: acts::blank(),
            scratch: replace::Scratch::new(),
            payload: vec![[0; 8]; PAYLOAD_BYTES_MAX / 8].into(),
            settings,
            cells,
            registry,
            log,
        }
    }

    /// The end of the last frame that this shard claimed. All its answers wait for this position.
    #[must_use]
    pub const fn last_claimed(&self) -> Position {
        self.last
    }

    /// What the shard was made with.
    #[must_use]
    pub const fn settings(&self) -> &ShardSettings {
        &self.settings
    }

    /// How many orders of `principal` rest.
    #[must_use]
    pub const fn open_orders(&self, principal: WalletNo) -> u32 {
        self.accounts.wallet(principal).open
    }

    /// Whether this shard owns `market`.
    #[must_use]
    pub fn owns(&self, market: MarketNo) -> bool {
        self.registry.shard_of(market, self.settings.shards) == self.settings.shard
    }

    /// What a wallet holds of both outcomes of a market.
    #[must_use]
    pub fn shares(&self, wallet: WalletNo, market: MarketNo) -> [Shares; 2] {
        self.accounts.shares(wallet, market)
    }

    /// The resting orders of a market, bids first, each side in the order in which it trades:
    /// the position of each one's placement, and its open shares.
    pub fn resting(&self, market: MarketNo) -> impl Iterator<Item = (Position, Shares)> + '_ {
        self.books.walk(market).map(|slot| {
            let orders = self.books.orders();
            (orders[slot].position, orders[slot].open)
        })
    }

    /// How many orders rest.
    #[must_use]
    pub fn resting_count(&self) -> usize {
        self.books.orders().len()
    }

    /// How many (wallet, market) pairs have shares or open orders.
    #[must_use]
    pub fn position_count(&self) -> usize {
        self.accounts.len()
    }

    /// Bytes of the books, of `books_bytes`.
    #[must_use]
    pub const fn books_bytes(&self) -> u64 {
        self.books.bytes()
    }

    /// How many digests are remembered; the oldest stamps give way.
    #[must_use]
    pub const fn digest_count(&self) -> usize {
        self.recall.len()
    }

    /// Deadlines are judged by a clock that the times handed in are ahead of by this much, until it is said anew.
    pub const fn stands_ahead(&mut self, ahead_ms: u64) {
        self.ahead_ms = ahead_ms;
    }

    /// Sets the clock to the time handed in, and returns it.
    fn clock(&mut self, now: TimeMs) -> TimeMs {
        self.time = self.time.max(now);
        self.now = now;
        now
    }
}
