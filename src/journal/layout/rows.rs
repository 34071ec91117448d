//! The journal's own marks, and the registrar's rows.

use super::record;
use crate::domain::{
    Address, ConditionId, FeeSchedule, ItemKind, MarketNo, Mode, Payout, Position, Shares, Tick, TimeMs,
    TokenId, WalletKind, WalletNo, Word,
};

record! {
    /// A process took the log over.
    pub struct Start {
        /// When.
        pub time: TimeMs,
        /// Bytes of unfinished frames that recovery cut off before this frame.
        pub cut_bytes: u64,
        /// Shards of this start; for people.
        pub shards: u16,
    }
}

record! {
    /// The process stopped in good order: everything before is durable.
    pub struct Close {
        /// When.
        pub time: TimeMs,
    }
}

record! {
    /// What the state hashes to.
    pub struct StateHash {
        /// The end of the last frame that the hash covers.
        pub through: Position,
        /// The sum of the rows' hashes, modulo 2^128.
        pub hash: u128,
    }
}

record! {
    /// An address has a wallet number from here on.
    pub struct WalletAdded {
        /// When.
        pub time: TimeMs,
        /// The next free number.
        pub wallet: WalletNo,
        /// The address.
        pub address: Address,
        /// Which account of its principal it is.
        pub kind: WalletKind,
        /// Its principal; none for an unlinked deposit wallet. An EOA is its own.
        pub principal: Option<WalletNo>,
    }
}

record! {
    /// A deposit wallet belongs to a principal from here on.
    pub struct WalletLinked {
        /// When.
        pub time: TimeMs,
        /// The wallet.
        pub wallet: WalletNo,
        /// Its owner.
        pub principal: WalletNo,
    }
}

record! {
    /// The API key of (principal, nonce) is valid in this generation, or is revoked.
    pub struct KeyChanged {
        /// When.
        pub time: TimeMs,
        /// The principal whose key it is.
        pub principal: WalletNo,
        /// The nonce of the L1 request.
        pub nonce: Word,
        /// Counts revocations; the credentials are derived from it and others.
        pub generation: u32,
        /// False from its revocation until it is created again.
        pub active: bool,
    }
}

record! {
    /// An event of the catalog, new or changed.
    pub struct EventText {
        /// When.
        pub time: TimeMs,
        /// Its registry number: the next free one, or that of the row it replaces.
        pub event: u32,
        /// Its JSON as imported, without its markets.
        pub text: String,
    }
}

record! {
    /// A tag, series or creator that a file listed by itself, new or changed. Those that only
    /// events mention are in the events' texts.
    pub struct ItemText {
        /// When.
        pub time: TimeMs,
        /// What it is: 0 a tag, 1 a series, 2 a creator.
        pub kind: ItemKind,
        /// Its row number: the next free one, or that of the row it replaces, of the same kind.
        pub item: u32,
        /// Its JSON as imported; for a series, without its events.
        pub text: String,
    }
}

record! {
    /// A market exists from here on.
    pub struct MarketAdded {
        /// When.
        pub time: TimeMs,
        /// The next free number.
        pub market: MarketNo,
        /// The event that holds it, if any.
        pub event: Option<u32>,
        /// The number that decides its shard: its event's, else its own.
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
        pub labels: Vec<String>,
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
        /// Its payout, if it was imported as resolved.
        pub payout: Option<Payout>,
        /// Its JSON as imported.
        pub text: String,
    }
}

record! {
    /// A market's text changed; its book, tick and tokens did not.
    pub struct MarketText {
        /// When.
        pub time: TimeMs,
        /// The market.
        pub market: MarketNo,
        /// The event that holds it, if any.
        pub event: Option<u32>,
        /// Its JSON as imported.
        pub text: String,
    }
}
