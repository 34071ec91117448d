//! Every refusal of the registrar: its status, its code and its text, in one table.

use crate::domain::reject::Wire;

macro_rules! refusals {
    ($( $(#[doc = $doc:literal])* $variant:ident = $status:literal, $code:literal, $text:literal; )*) => {
        /// Why the registrar refused an act. When one of these comes back, nothing has changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Refusal { $( $(#[doc = $doc])* $variant, )* }

        impl Refusal {
            /// Every refusal.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The status, code and text of this refusal: the field, the value it had (`{got}`, filled
            /// in by the answer's writer, as is `{allowed}`) and what is allowed.
            #[must_use]
            pub const fn wire(self) -> Wire {
                match self {
                    $( Self::$variant =>
                        Wire { status: $status, code: $code, error: $text, error_msg: $text }, )*
                }
            }

            /// What it means, as the table says it.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),*).trim_ascii(), )* }
            }
        }
    };
}

refusals! {
    /// The log has no room for this kind of act now; nothing was taken.
    LogFull = 503, "busy", "log: no room now; try again";
    /// The registry takes no more wallets. A sixteenth is kept for those that the operator credits or links.
    WalletsFull = 503, "table_full", "wallets: the table is full; raise sizes.wallets and restart";
    /// The registry takes no more API keys. A third is kept for revocations.
    KeysFull = 503, "keys_full", "keys: the table is full; raise sizes.wallets and restart";
    /// The registry takes no more markets.
    MarketsFull = 503, "markets_full", "markets: the table is full; raise sizes.markets and restart";
    /// There are as many events as there may be.
    EventsFull = 503, "events_full", "events: the table is full";
    /// This principal has made API keys of as many nonces as one may; those of revoked keys count.
    KeysOfOwnerFull = 400, "too_many_keys", "nonce: this owner has used 32 nonces, those of revoked keys included; make the key of one of them again";
    /// There are as many fill-rate breakers as there may be; one that was taken away has its place until a restart,
    /// for another of its owner's. Half is kept for owners that the operator ever credited.
    BreakersFull = 503, "breakers_full", "breakers: there is no room for another; use a key again that has one";
    /// This owner has as many fill-rate breakers as one may have.
    BreakersOfOwnerFull = 400, "too_many_breakers", "breakers: this owner has 32; take one away first";
    /// A breaker that no fill could trip.
    BreakerQuantity = 400, "breaker_quantity", "quantity: {got} is more than 1000000000 shares";
    /// A breaker without an interval, or with one that is too long.
    BreakerInterval = 400, "breaker_interval", "interval_ms: {got} is not within 1 to 86400000";
    /// A heartbeat shows another id than the last one was answered with; the answer names that one.
    HeartbeatStale = 400, "heartbeat_stale", "heartbeat_id is not that of the last heartbeat; use this one";
    /// There is no armed dead-man switch: it went off, was taken away, or never was.
    HeartbeatNotArmed = 400, "heartbeat_not_armed", "the dead-man switch of this key is not armed: a heartbeat was missed and its orders were canceled, or there was none; send an empty heartbeat_id to arm it";
    /// A heartbeat was missed, and the switch is armed again once its orders are canceled.
    SwitchGoingOff = 503, "switch_going_off", "the dead-man switch of this key went off and its orders are being canceled; try again";
    /// There is no breaker to reset.
    BreakerUnset = 404, "breaker_not_set", "this key has no fill-rate breaker; set one first";
    /// No wallet has this address.
    WalletUnknown = 404, "wallet_unknown", "wallet: {got} is not known here; credit or link it first";
    /// The address is a wallet of somebody, so it cannot be an owner.
    WalletNotAnOwner = 400, "wallet_not_an_owner", "owner: {got} is known here as a deposit, proxy, safe or fee wallet; name an owner's own address";
    /// The address is an owner's own, so it cannot be linked to another.
    WalletIsAnOwner = 409, "wallet_is_an_owner", "wallet: {got} is an owner's own address; only a deposit wallet can be linked";
    /// A credit says of a known wallet what it is not.
    WalletOfOtherKind = 409, "wallet_kind", "kind: {got} is known as another kind of wallet; leave kind out";
    /// The wallet has another owner.
    WalletLinkedElsewhere = 409, "wallet_linked", "wallet: {got} belongs to another owner; a link is final";
    /// The wallet belongs to nobody yet.
    WalletUnlinked = 409, "wallet_unlinked", "wallet: {got} belongs to nobody yet; link it to its owner first";
    /// The fee wallet takes fees only.
    WalletIsForFees = 400, "wallet_is_for_fees", "wallet: {got} is the fee wallet";
    /// No such key, or not of this owner, or revoked already.
    KeyUnknown = 404, "key_unknown", "Could not derive api key!";
    /// The key to be revoked is none of this owner's that live.
    KeyToRevokeUnknown = 404, "api_key_unknown", "apiKey: {got} is no living API key of this owner; GET /auth/api-keys lists them";
    /// More than the exchange may owe in all.
    AmountTooLarge = 400, "amount_too_large", "amount: {got} with what is credited already is more than 4611686018427.387904";
    /// A debit of more than the wallet has. What open buys would cost is no bar, unless it was set aside
    /// (`funding = "reserved"`): those that are not covered afterwards leave their books.
    NotEnough = 409, "not_enough_balance", "amount: got {got}; allowed: at most {allowed}, which the wallet has";
    /// Orders on other shards were taking the wallet's money or giving it back; nothing was taken.
    BalanceInUse = 503, "balance_in_use", "amount: orders are using the wallet's balance now; try again";
    /// The reference stands for another credit or debit.
    ReferenceTaken = 409, "reference_taken", "ref: {got} stands for another wallet, direction or amount; use a new one";
    /// No event has this slug.
    EventUnknown = 404, "event_unknown", "event: {got} is no slug of an event that is here; import it first";
    /// The text is longer than fits a frame beside the rest.
    TextTooLong = 400, "text_too_long", "text: at most 262144 bytes";
    /// A market is needed that is not there.
    MarketUnknown = 404, "market_unknown", "market: {got} is not known here";
    /// Another market has this condition.
    ConditionTaken = 409, "condition_taken", "conditionId: {got} is a market already";
    /// Another market has one of these tokens, or both are the same.
    TokenTaken = 409, "token_taken", "clobTokenIds: two different tokens that no other market has";
    /// Another market has this numeric id.
    MarketIdTaken = 409, "market_id_taken", "id: {got} is a market already";
    /// This principal has as many read-only keys as one may have.
    ReadonlyKeysOfOwnerFull = 400, "too_many_readonly_keys", "this owner has 8 read-only API keys; revoke one first";
    /// The nonce is one of those that are kept for read-only keys.
    NonceKept = 400, "nonce_kept", "nonce: this one is kept for read-only keys; use another";
}

impl Refusal {
    /// Seconds after which the same act may succeed, if waiting helps: a table that is full stays so until a restart.
    #[must_use]
    pub const fn retry_after_s(self) -> Option<u32> {
        match self {
            Self::LogFull | Self::SwitchGoingOff | Self::BalanceInUse => Some(1),
            _ => None,
        }
    }
}

const _: () = assert!(size_of::<Option<Refusal>>() == 1, "a refusal travels in one byte");

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.wire().error)
    }
}
