//! What the ledger keeps of each wallet, key, event, market and order.

use crate::catalog::{Closing, Life};
use crate::domain::amount::ONE;
use crate::domain::{
    Address, ApiKey, Collateral, ConditionId, FeeSchedule, ItemKind, MarketNo, Mode, OrderFields, OrderId,
    OrderType, Outcome, Payout, Position, Price, Reject, SelfTrade, Shares, Side, Tick, TimeMs, TokenId,
    WalletKind, WalletNo, Word,
};
use crate::journal::layout::{MoneyDirection, RemovalReason};
use std::collections::BTreeSet;

/// A wallet and its money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletRow {
    /// Its number.
    pub wallet: WalletNo,
    /// Its address.
    pub address: Address,
    /// Which account of its principal it is.
    pub kind: WalletKind,
    /// Its principal; none for a deposit wallet that is not linked yet.
    pub principal: Option<WalletNo>,
    /// Its collateral, without what is set aside for orders.
    pub cell: Collateral,
    /// True if this is a principal that may not trade.
    pub frozen: bool,
}

/// The state of one API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Counts revocations.
    pub generation: u32,
    /// False while revoked.
    pub active: bool,
    /// When that last changed.
    pub changed: TimeMs,
}

/// An event and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Its number.
    pub event: u32,
    /// When it was added.
    pub added: TimeMs,
    /// Its JSON as imported, without its markets.
    pub text: String,
}

/// A tag, series or creator that a file listed by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemRow {
    /// Its number.
    pub item: u32,
    /// What it is.
    pub kind: ItemKind,
    /// When it was added.
    pub added: TimeMs,
    /// Its JSON as imported.
    pub text: String,
}

/// A market, its rules and what it owes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketRow {
    /// Its number.
    pub market: MarketNo,
    /// The event that holds it.
    pub event: Option<u32>,
    /// The number that decides its shard.
    pub shard_key: u32,
    /// The numeric id that people use.
    pub market_id: u64,
    /// The condition.
    pub condition: ConditionId,
    /// The question.
    pub question: Word,
    /// Its two tokens.
    pub tokens: [TokenId; 2],
    /// The labels of its outcomes.
    pub labels: [String; 2],
    /// True if its orders are signed for the neg-risk domain.
    pub neg_risk: bool,
    /// The price step.
    pub tick: Tick,
    /// The smallest order that may rest.
    pub min_size: Shares,
    /// Its fees.
    pub fee: FeeSchedule,
    /// Its mode.
    pub mode: Mode,
    /// Since when it is over; none while it has a book, and while it is only not traded (see [`Closing`]).
    pub over: Option<TimeMs>,
    /// Its payout once resolved.
    pub payout: Option<Payout>,
    /// When it was resolved.
    pub resolved: Option<TimeMs>,
    /// When it was added.
    pub added: TimeMs,
    /// Its JSON as imported.
    pub text: String,
    /// Collateral that backs its shares and was not paid out yet.
    pub backing: Collateral,
    /// All shares of each outcome.
    pub shares: [Shares; 2],
    /// When a frame last touched its book: an order, a removal, a new tick; levels may be as before.
    pub book_changed: TimeMs,
    /// Where its live orders were placed.
    pub live: BTreeSet<Position>,
}

impl MarketRow {
    /// Changes the mode at `time`. A market that is over and then resolved keeps the time at which it was over.
    pub(super) fn set_mode(&mut self, mode: Mode, time: TimeMs) {
        self.mode = mode;
        self.over = match mode {
            Mode::Closed if Closing::of(&self.text) == Closing::OnlyListed => None,
            Mode::Closed | Mode::Resolved => Some(self.over.unwrap_or(time)),
            Mode::Open | Mode::PostOnly | Mode::CancelOnly => None,
        };
    }

    /// Changes the text at `time`.
    pub(super) fn set_text(&mut self, text: String, time: TimeMs) {
        self.text = text;
        if self.mode == Mode::Closed {
            self.over = match Closing::of(&self.text) {
                Closing::OnlyListed => None,
                Closing::Ended => Some(self.over.unwrap_or(time)),
                Closing::Unsaid => self.over,
            };
        }
    }

    /// How far it is, as the catalog sees it.
    #[must_use]
    pub fn life(&self) -> Life {
        match self.over {
            Some(since) => Life::Over(since),
            None if self.mode.is_closed() => Life::Listed,
            None => Life::Open,
        }
    }

    /// The outcome whose shares are paid in full; none before the resolution, and none if both are paid in part.
    #[must_use]
    pub fn winner(&self) -> Option<Outcome> {
        let payout = self.payout?;
        [Outcome::Zero, Outcome::One].into_iter().find(|&outcome| u64::from(payout.per_share(outcome)) == ONE)
    }
}

/// What has become of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderState {
    /// It rests.
    Live,
    /// It ended with everything, or as much as its type allows, filled.
    Filled,
    /// It never rested and nothing of it was filled.
    Killed(Reject),
    /// It rested and left for this reason; some of it may have been filled.
    Removed(RemovalReason),
}

/// An order and its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRow {
    /// Where it was placed: its name in the log, and its priority unless it took another's place.
    pub position: Position,
    /// Its digest: its name on the wire.
    pub id: OrderId,
    /// When it was placed.
    pub placed: TimeMs,
    /// When it was last filled or removed.
    pub changed: TimeMs,
    /// Its market.
    pub market: MarketNo,
    /// Its token's side of the market.
    pub outcome: Outcome,
    /// The wallet that trades.
    pub wallet: WalletNo,
    /// The principal of that wallet.
    pub principal: WalletNo,
    /// The API key it came with.
    pub owner: ApiKey,
    /// What was signed.
    pub fields: OrderFields,
    /// Unix seconds from which it no longer trades; 0 for never.
    pub expiration_s: u64,
    /// GTC, GTD, FOK or FAK.
    pub order_type: OrderType,
    /// It asked not to trade on arrival.
    pub post_only: bool,
    /// Which order gives way in a self-trade.
    pub self_trade: SelfTrade,
    /// Its limit in terms of its own token.
    pub price: Price,
    /// What has become of it.
    pub state: OrderState,
    /// Why it went no further on arrival, if only a part was filled, or why it was killed.
    pub stopped: Option<Reject>,
    /// Shares filled so far, on arrival and while resting.
    pub filled: Shares,
    /// Shares that rest now.
    pub open: Shares,
    /// Collateral still set aside for it.
    pub reserved: Collateral,
    /// What it paid or received on arrival, without fees.
    pub taken: Collateral,
    /// Shares filled on arrival.
    pub taken_shares: Shares,
    /// The frames that filled it: its own, and those of the takers that met it.
    pub trades: Vec<Position>,
}

const _: () = assert!(size_of::<OrderRow>() == 368, "the table of `over` counts these bytes");

impl OrderRow {
    /// True while it rests.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        matches!(self.state, OrderState::Live)
    }

    /// Its size in shares as signed.
    #[must_use]
    pub const fn size(&self) -> Shares {
        self.fields.shares()
    }

    /// Whether it asked for more than it got. A FOK never does. A FAK buy asks for an amount of collateral, of which
    /// rounding may leave a millionth.
    #[must_use]
    pub fn falls_short(&self) -> bool {
        match (self.order_type, self.fields.side) {
            (OrderType::Fok, _) => false,
            (OrderType::Fak, Side::Buy) => 1 < self.fields.maker_amount.saturating_sub(self.taken.0),
            _ => self.filled < self.size(),
        }
    }
}

/// What is needed of an order to answer its repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStamp {
    /// Where it was placed.
    pub position: Position,
    /// Its digest.
    pub id: OrderId,
    /// When it was signed.
    pub stamp_ms: u64,
    /// Its principal.
    pub principal: WalletNo,
    /// Its market.
    pub market: MarketNo,
    /// Its side.
    pub side: Side,
    /// Why it never rested, if nothing of it was filled either.
    pub killed: Option<Reject>,
    /// What it paid or received on arrival.
    pub taken: Collateral,
    /// Shares filled on arrival.
    pub taken_shares: Shares,
}

/// A credit or debit by the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyRow {
    /// The wallet.
    pub wallet: WalletNo,
    /// Credit or debit.
    pub direction: MoneyDirection,
    /// How much.
    pub amount: Collateral,
    /// The position of its frame.
    pub position: Position,
    /// When.
    pub time: TimeMs,
}

/// A signed split, merge or redeem: its first result, which a repeat gets again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActRow {
    /// The position of its frame.
    pub position: Position,
    /// Its digest.
    pub id: OrderId,
    /// The wallet whose shares and collateral changed.
    pub wallet: WalletNo,
    /// The market.
    pub market: MarketNo,
    /// Shares taken or given of each outcome.
    pub shares: [Shares; 2],
    /// Collateral paid or received.
    pub collateral: Collateral,
    /// The request's time in milliseconds.
    pub timestamp_ms: u64,
}

const _: () = assert!(size_of::<ActRow>() == 80, "the table of `over` counts these bytes");

/// What somebody signed and what became of it: an order, of which an `O` says it, or a split, merge or redeem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed<O> {
    /// An order.
    Order(O),
    /// A split, merge or redeem.
    Act(ActRow),
}
