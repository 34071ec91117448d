//! What a row holds: facts that never change as plain fields, the others as atomics.

use super::NONE;
use crate::domain::{
    Address, ConditionId, FeeSchedule, Mode, Outcome, Payout, ShardNo, Shares, Tick, TokenId, WalletKind,
    WalletNo, Word,
};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// One wallet.
#[derive(Debug)]
pub struct WalletRow {
    /// Its address.
    pub address: Address,
    /// Which account of its principal it is.
    pub kind: WalletKind,
    frozen: AtomicBool,
    principal: AtomicU32,
    first_sibling: AtomicU32,
    next_sibling: AtomicU32,
    first_key: AtomicU32,
}

impl WalletRow {
    /// A row that belongs to nobody yet.
    pub(super) const fn new(address: Address, kind: WalletKind) -> Self {
        Self {
            address,
            kind,
            frozen: AtomicBool::new(false),
            principal: AtomicU32::new(NONE),
            first_sibling: AtomicU32::new(NONE),
            next_sibling: AtomicU32::new(NONE),
            first_key: AtomicU32::new(NONE),
        }
    }

    /// The owner, by the number of its EOA. None for an unlinked deposit wallet and for the fee
    /// wallet.
    #[must_use]
    pub fn principal(&self) -> Option<WalletNo> {
        some_number(&self.principal).map(WalletNo)
    }

    /// True if the operator froze the principal whose EOA this is. Ask the principal's row.
    #[must_use]
    pub fn frozen(&self) -> bool {
        // Acquire pairs with the release in `set_frozen`.
        self.frozen.load(Ordering::Acquire)
    }

    pub(super) fn set_frozen(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::Release);
    }

    /// Joins the wallet to a principal that owns `next_sibling` already. The sibling is stored
    /// first, so a reader that follows the chain to this row can go on.
    pub(super) fn join(&self, principal: WalletNo, next_sibling: Option<WalletNo>) {
        self.next_sibling.store(next_sibling.map_or(NONE, |wallet| wallet.0), Ordering::Release);
        self.principal.store(principal.0, Ordering::Release);
    }

    pub(super) fn first_sibling(&self) -> Option<WalletNo> {
        some_number(&self.first_sibling).map(WalletNo)
    }

    pub(super) fn set_first_sibling(&self, wallet: WalletNo) {
        self.first_sibling.store(wallet.0, Ordering::Release);
    }

    pub(super) fn next_sibling(&self) -> Option<WalletNo> {
        some_number(&self.next_sibling).map(WalletNo)
    }

    pub(super) fn first_key(&self) -> Option<u32> {
        some_number(&self.first_key)
    }

    pub(super) fn set_first_key(&self, key: u32) {
        self.first_key.store(key, Ordering::Release);
    }
}

/// A published number, or none. The acquire pairs with the release stores of the setters above: the
/// row that the number names is complete.
pub(super) fn some_number(cell: &AtomicU32) -> Option<u32> {
    match cell.load(Ordering::Acquire) {
        NONE => None,
        number => Some(number),
    }
}

/// Whether a key lives, and in which generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// Counts revocations; part of what the credentials are made from.
    pub generation: u32,
    /// False once revoked and until it is created again.
    pub active: bool,
}

/// One API key: what (principal, nonce) says about its credentials. No secret is here.
#[derive(Debug)]
pub struct KeyRow {
    /// The key's owner.
    pub principal: WalletNo,
    /// The nonce of the L1 request that made it.
    pub nonce: Word,
    /// Generation x 2 + active, in one word so that no reader sees half a change.
    state: AtomicU64,
    next: AtomicU32,
}

impl KeyRow {
    pub(super) fn new(principal: WalletNo, nonce: Word, state: KeyState, next: Option<u32>) -> Self {
        Self {
            principal,
            nonce,
            state: AtomicU64::new(packed(state)),
            next: AtomicU32::new(next.unwrap_or(NONE)),
        }
    }

    /// Whether the key lives, and in which generation, as of now.
    #[must_use]
    pub fn state(&self) -> KeyState {
        // Acquire pairs with the release in `set_state`: after a revoke no reader sees the old state.
        let word = self.state.load(Ordering::Acquire);
        let generation = u32::try_from(word >> 1).expect("packed from a u32");
        KeyState { generation, active: word & 1 == 1 }
    }

    pub(super) fn set_state(&self, state: KeyState) {
        self.state.store(packed(state), Ordering::Release);
    }

    pub(super) fn next(&self) -> Option<u32> {
        some_number(&self.next)
    }
}

fn packed(state: KeyState) -> u64 {
    u64::from(state.generation) << 1 | u64::from(state.active)
}

/// Everything that a market starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketFacts {
    /// The condition.
    pub condition: ConditionId,
    /// Its two tokens; token 0 is the one in whose terms the book is kept.
    pub tokens: [TokenId; 2],
    /// The numeric id that people use.
    pub market_id: u64,
    /// The question's id.
    pub question_id: Word,
    /// True if its orders are signed in the neg-risk domain.
    pub neg_risk: bool,
    /// The smallest order that may rest.
    pub min_size: Shares,
    /// Its fees.
    pub fee: FeeSchedule,
    /// The number that decides its shard: its event's, else its own.
    pub shard_key: u32,
    /// The price step.
    pub tick: Tick,
    /// Its mode.
    pub mode: Mode,
    /// Its payout, if it is resolved already.
    pub payout: Option<Payout>,
}

/// One market.
#[derive(Debug)]
pub struct MarketRow {
    /// The condition.
    pub condition: ConditionId,
    /// Its two tokens; token 0 is the one in whose terms the book is kept.
    pub tokens: [TokenId; 2],
    /// The numeric id that people use.
    pub market_id: u64,
    /// The question's id.
    pub question_id: Word,
    /// True if its orders are signed in the neg-risk domain.
    pub neg_risk: bool,
    /// The smallest order that may rest.
    pub min_size: Shares,
    /// Its fees.
    pub fee: FeeSchedule,
    /// The number that decides its shard: its event's, else its own.
    pub shard_key: u32,
    tick: AtomicU16,
    mode: AtomicU8,
    /// Millionths that a share of token 0 pays, or [`NONE`].
    payout: AtomicU32,
}

impl MarketRow {
    pub(super) fn new(facts: &MarketFacts) -> Self {
        Self {
            condition: facts.condition,
            tokens: facts.tokens,
            market_id: facts.market_id,
            question_id: facts.question_id,
            neg_risk: facts.neg_risk,
            min_size: facts.min_size,
            fee: facts.fee,
            shard_key: facts.shard_key,
            tick: AtomicU16::new(facts.tick.ten_thousandths()),
            mode: AtomicU8::new(facts.mode as u8),
            payout: AtomicU32::new(facts.payout.map_or(NONE, |payout| payout.per_share(Outcome::Zero))),
        }
    }

    /// [`super::Registry::shard_of`], for whoever has the row.
    pub(crate) fn shard(&self, shards: u16) -> ShardNo {
        ShardNo::of_key(self.shard_key, shards)
    }

    /// The price step, as of now.
    #[must_use]
    pub fn tick(&self) -> Tick {
        // Acquire pairs with the release in `set_tick`.
        Tick::new(self.tick.load(Ordering::Acquire)).expect("only ticks are stored")
    }

    /// Publishes a new price step. The market's shard calls it, after the fact is in the log.
    pub fn set_tick(&self, tick: Tick) {
        self.tick.store(tick.ten_thousandths(), Ordering::Release);
    }

    /// The market's mode, as of now.
    #[must_use]
    pub fn mode(&self) -> Mode {
        // Acquire pairs with the release in `set_mode` and `resolve`.
        mode_of(self.mode.load(Ordering::Acquire))
    }

    /// Publishes a new mode other than resolved. The market's shard calls it, after the fact is in
    /// the log.
    pub fn set_mode(&self, mode: Mode) {
        assert!(mode != Mode::Resolved, "resolving goes with a payout");
        assert!(self.mode() != Mode::Resolved, "resolved is final");
        self.mode.store(mode as u8, Ordering::Release);
    }

    /// What the shares pay; `Some` once the mode is resolved.
    #[must_use]
    pub fn payout(&self) -> Option<Payout> {
        some_number(&self.payout).map(|zero| Payout::new(zero).expect("only payouts are stored"))
    }

    /// Publishes the payout, and with it the mode resolved. The market's shard calls it, after the
    /// fact is in the log.
    pub fn resolve(&self, payout: Payout) {
        assert!(self.payout().is_none(), "resolved is final");
        // The payout first: a reader that sees the mode resolved finds it.
        self.payout.store(payout.per_share(Outcome::Zero), Ordering::Release);
        self.mode.store(Mode::Resolved as u8, Ordering::Release);
    }
}

pub(super) fn mode_of(byte: u8) -> Mode {
    Mode::from_byte(byte).expect("only modes are stored")
}
