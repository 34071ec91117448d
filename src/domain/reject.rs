//! Every refusal of a trading act: its HTTP status, its code and its texts, in one table.
//!
//! The rows follow an order on its way in, which is only roughly the order of judging: for example,
//! `Recovering` is answered before `RateLimited`, a market's `PostOnlyMode` after `TooNew`, and what
//! stopped a walk (`SelfTradeStopped`, `FillsLimit`) before `FokNotFilled` and `FakNoMatch`.
//!
//! Each row has the byte by which the log knows it, for good: a new row takes the next one, wherever
//! it stands. `error` is what Polymarket's clients match on, and `error_msg` what Kuest's site does, where it has a text
//! of its own; some of its texts stand for several rules. `{id}`, `{got}` and `{allowed}` in a text are filled in by the
//! answer's writer. Once released, a code or text never changes.

/// What a refusal looks like on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The HTTP status of a single request; in a batch the status is 200.
    pub status: u16,
    /// The machine-readable code.
    pub code: &'static str,
    /// The `error` text.
    pub error: &'static str,
    /// The `errorMsg` text.
    pub error_msg: &'static str,
}

macro_rules! rejects {
    ($( $(#[doc = $doc:literal])* $variant:ident = $byte:literal, $status:literal, $code:literal, $error:literal $(, $error_msg:literal)?; )*) => {
        /// Why an act was refused. When one of these comes back, nothing has changed; only an order that was
        /// killed may have taken resting orders with it, which it met and which could not stay.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reject { $( $(#[doc = $doc])* $variant = $byte, )* }

        impl Reject {
            /// Every refusal, in the order of the table.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The status, code and texts of this refusal.
            #[must_use]
            pub const fn wire(self) -> Wire {
                match self {
                    $( Self::$variant => Wire {
                        status: $status,
                        code: $code,
                        error: $error,
                        error_msg: rejects!(@msg $error $(, $error_msg)?),
                    }, )*
                }
            }

            /// What it means, as the table says it.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),*).trim_ascii(), )* }
            }
        }
    };
    (@msg $error:literal) => { $error };
    (@msg $error:literal, $error_msg:literal) => { $error_msg };
}

rejects! {
    /// More requests than the limits allow: of the address, before anything of the request is checked, or of the
    /// key's owner, once its signature is.
    RateLimited = 54, 429, "rate_limited", "Too Many Requests";
    /// The server is replaying its log, or is stopping. GET /ready says so as well until `dev` is seeded, and while the
    /// disk hangs for which answers wait.
    Recovering = 0, 425, "recovering", "service not ready";
    /// The log has no room, or a ring between two cores none for orders, or a large answer would be more than 256 MiB
    /// that clients have not read, or a request above 64 KiB more than 128 MiB that they have not read or not sent
    /// whole (for those of one address a quarter of either), or more orders expire than one request waits for, or
    /// another shard may still give back money that is missing; nothing was taken.
    Busy = 1, 503, "busy", "the exchange is busy, try again";
    /// The exchange takes no orders and no splits. Cancels are always taken.
    TradingDisabled = 2, 503, "trading_disabled", "Trading is currently disabled. Check polymarket.com for updates", "system_paused";
    /// The exchange takes no orders and no splits for now, and cancels as ever.
    CancelOnly = 3, 503, "cancel_only", "Trading is currently cancel-only. New orders are not accepted, but cancels are allowed.", "system_paused";
    /// The exchange or the market takes post-only orders and cancels.
    PostOnlyMode = 4, 503, "post_only_mode", "post-only mode: only post-only orders and cancels are allowed";
    /// Key, passphrase, signature or freshness of the L2 headers is wrong.
    Unauthorized = 5, 401, "invalid_l2", "Unauthorized/Invalid api key", "invalid_l2";
    /// The L1 headers are wrong.
    InvalidL1 = 6, 401, "invalid_l1", "Invalid L1 Request headers";
    /// A read-only API key was shown for an act, or for what it may not read.
    ReadonlyKey = 53, 401, "readonly_key", "a read-only API key reads what its owner has, but no API keys and no breaker, and does nothing else";
    /// The body is not an order, or has one of its names in another spelling.
    InvalidPayload = 7, 400, "invalid_payload", "Invalid order payload";
    /// More orders than one request may carry.
    TooManyOrders = 8, 400, "too_many_orders", "Too many orders in payload: {got}, max allowed: {allowed}";
    /// A V1 order, or one for a domain that we do not serve.
    OrderVersionMismatch = 9, 400, "order_version_mismatch", "order_version_mismatch";
    /// `owner` is not the API key of the request.
    OwnerMismatch = 10, 400, "owner_mismatch", "the order owner has to be the owner of the API KEY", "owner_address_mismatch";
    /// `signer` is not the address of the API key.
    SignerMismatch = 11, 400, "signer_mismatch", "the order signer address has to be the address of the API KEY", "owner_address_mismatch";
    /// `tokenId` names no token.
    TokenUnknown = 12, 400, "token_unknown", "token is not registered";
    /// `conditionId` names no market.
    ConditionUnknown = 13, 400, "condition_unknown", "condition is not registered";
    /// `conditionId` is not the market of `tokenId`.
    ConditionMismatch = 14, 400, "condition_mismatch", "conditionId is not the market of tokenId";
    /// `maker` is not a wallet of the signer.
    MakerNotAuthorized = 15, 400, "maker_not_authorized", "maker is not a wallet of the order's signer";
    /// The signature is not the signer's.
    SignatureInvalid = 16, 400, "invalid_signature", "invalid signature", "invalid order signature";
    /// The operator froze this principal.
    Frozen = 17, 400, "address_banned", "'{got}' address banned", "user_banned";
    /// The fill-rate breaker of the order's key has tripped.
    FillRateTripped = 52, 409, "fill_rate_tripped", "the fill-rate breaker of this key has tripped; reset it to place orders again";
    /// The order's timestamp lies behind what the duplicate memory reaches.
    TooOld = 18, 400, "order_too_old", "order too old";
    /// The order's timestamp lies more than a minute ahead.
    TooNew = 19, 400, "order_too_new", "order too new";
    /// The market is paused.
    MarketPaused = 20, 409, "condition_paused", "the market is not yet ready to process new orders", "condition_paused";
    /// The market is closed.
    MarketClosed = 21, 400, "market_closed", "the market is closed";
    /// The market is resolved.
    MarketResolved = 22, 400, "market_resolved", "the market is resolved";
    /// An amount is zero.
    AmountZero = 23, 400, "amount_zero", "makerAmount and takerAmount must be positive", "makeramount must be positive";
    /// An amount is above a billion.
    AmountTooLarge = 24, 400, "amount_too_large", "order is invalid. Amount ({got}) higher than the maximum: {allowed}";
    /// The price is outside tick..=1-tick.
    PriceOutOfRange = 25, 400, "price_out_of_range", "order {id} is invalid. Price ({got}) is outside {allowed}", "order is invalid. price breaks minimum tick size rules";
    /// The price is not a multiple of the market's tick.
    PriceOffTick = 26, 400, "price_off_tick", "order {id} is invalid. Price ({got}) breaks minimum tick size rule: {allowed}", "order is invalid. price breaks minimum tick size rules";
    /// Post-only with FOK or FAK.
    PostOnlyType = 27, 400, "post_only_type", "invalid post-only order: only GTC and GTD order types are allowed", "postonly requires gtc or gtd";
    /// An expiration on an order that is not GTD, or a GTD without one.
    ExpirationType = 28, 400, "expiration_type", "invalid expiration", "a GTD order needs an expiration; other types take none";
    /// An expiration is in seconds; this one is so large that it must be in milliseconds.
    ExpirationTooLarge = 56, 400, "expiration_too_large", "invalid expiration", "expiration must be in seconds since 1970";
    /// The expiration is not in the future.
    Expired = 29, 400, "expired", "invalid expiration", "expiration must be in the future";
    /// The request's own deadline passed before the order was judged.
    DeadlinePassed = 46, 400, "deadline_passed", "the request's deadline has passed";
    /// A cancel for this order arrived before it did. It is remembered: the same order gets this answer again, even
    /// later. A replace with such an order changes nothing, and is not remembered.
    CancelledBeforeArrival = 38, 400, "cancelled_before_arrival", "order was canceled before it arrived";
    /// A resting order is smaller than the market allows, or what it would trade is worth less than a millionth.
    SizeTooSmall = 30, 400, "size_too_small", "order {id} is invalid. Size ({got}) lower than the minimum: {allowed}", "order is invalid. size lower than the minimum";
    /// An immediate buy is worth less than the smallest notional.
    NotionalTooSmall = 31, 400, "notional_too_small", "invalid amount for a marketable BUY order (${got}), min size: ${allowed}", "order is invalid. size lower than the minimum";
    /// A post-only order would trade at once.
    PostOnlyCrosses = 32, 400, "post_only_crosses", "invalid post-only order: order crosses book", "postonly would cross the best bid or ask";
    /// Collateral or shares do not cover the order with what is open in the same market.
    NotEnoughBalance = 33, 400, "not_enough_balance", "not enough balance / allowance";
    /// A FOK cannot be filled whole. It is remembered: the same order gets this answer again.
    FokNotFilled = 34, 400, "fok_not_filled", "order couldn't be fully filled. FOK orders are fully filled or killed.", "order couldn't be fully filled, fok orders are fully filled/killed";
    /// A FAK found nothing. It is remembered: the same order gets this answer again.
    FakNoMatch = 35, 400, "fak_no_match", "no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.", "order couldn't be fully filled, fok orders are fully filled/killed";
    /// The first thing the order met was the principal's own order. It is remembered: the same order gets this answer
    /// again.
    SelfTradeStopped = 36, 400, "self_trade", "order would trade with an order of the same owner";
    /// The order met 2,048 makers, or 4,096 orders that it removes. It is remembered: the same order gets this answer
    /// again.
    FillsLimit = 37, 400, "fills_limit", "order met more resting orders than one order may fill";
    /// The order's owner has as many open orders in its market's shard as `orders.open_per_owner_max` allows.
    TooManyOpenOrders = 55, 400, "too_many_open_orders", "too many open orders of this owner: {got}, max allowed: {allowed}";
    /// The wallet has shares or open orders in as many of the shard's markets as `sizes.positions_per_wallet` allows.
    TooManyPositions = 57, 400, "too_many_positions", "too many positions of this wallet: {got}, max allowed: {allowed}";
    /// The arena of resting orders is full.
    BookFull = 39, 503, "book_full", "order book is full, try again";
    /// The pool of book bytes is full.
    NoRoomForBook = 40, 503, "no_room_for_book", "no room for another book";
    /// A table of wallets, positions or keys is full.
    TableFull = 41, 503, "table_full", "no room for another account, try again later";
    /// The id in a cancel is not an order id.
    OrderIdInvalid = 42, 400, "invalid_order_id", "Invalid orderID";
    /// A cancel for the market names neither market nor token.
    CancelScopeMissing = 43, 400, "cancel_scope_missing", "Invalid order payload";
    /// A merge or redeem asks for more than the wallet has, or the amount is zero.
    NothingToMove = 44, 400, "nothing_to_move", "amount is zero or more than the wallet holds";
    /// A redeem before the market is resolved.
    NotResolved = 45, 409, "market_not_resolved", "the market is not resolved yet";
    /// The orders that a replace places are of several markets or wallets.
    ReplaceMarkets = 47, 400, "replace_markets", "the orders that a replace places are of one market and one wallet";
    /// An order of a replace is FOK or FAK.
    ReplaceType = 48, 400, "replace_type", "a replace places GTC and GTD orders only";
    /// An order of a replace would trade at once, with others or with one that comes with it.
    ReplaceCrosses = 49, 400, "replace_crosses", "an order of the replace would trade at once; nothing was changed";
    /// An order that a replace should cancel is not open in its market.
    ReplaceGone = 50, 409, "replace_gone", "an order to be replaced is not open in this market; nothing was changed";
    /// Some order of a replace came before, but not all in this replace.
    ReplaceKnown = 51, 409, "replace_known", "an order of the replace was placed before, or stands in it twice; nothing was changed";
}

const _: () = assert!(size_of::<Option<Reject>>() == 1, "a refusal travels in one byte");

impl Reject {
    /// Seconds after which the same act may succeed, if waiting helps. None for [`Reject::RateLimited`]: only
    /// the limit itself knows how long it lasts.
    #[must_use]
    pub const fn retry_after_s(self) -> Option<u32> {
        /// Nobody knows when the operator changes a mode; a client that follows a stream hears of it at once.
        const MODE_S: u32 = 5;
        match self {
            Self::TradingDisabled | Self::CancelOnly | Self::PostOnlyMode => Some(MODE_S),
            _ => match self.wire().status {
                425 | 503 => Some(1),
                _ => None,
            },
        }
    }

    /// The refusal of a stored byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|reject| *reject as u8 == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_passes_by_itself_says_when_to_come_again() {
        for (reject, seconds) in [
            (Reject::Recovering, Some(1)),
            (Reject::BookFull, Some(1)),
            (Reject::TradingDisabled, Some(5)),
            (Reject::CancelOnly, Some(5)),
            (Reject::PostOnlyMode, Some(5)),
            // Only the limit that refused knows.
            (Reject::RateLimited, None),
            (Reject::MarketPaused, None),
            (Reject::NotEnoughBalance, None),
        ] {
            assert_eq!(reject.retry_after_s(), seconds, "{reject:?}");
        }
    }

    #[test]
    fn a_client_can_tell_every_refusal_apart() {
        let codes: BTreeSet<_> = Reject::ALL.iter().map(|reject| reject.wire().code).collect();
        assert_eq!(codes.len(), Reject::ALL.len());
        for reject in Reject::ALL {
            assert!((400..=503).contains(&reject.wire().status));
        }
    }

    #[test]
    fn a_stored_byte_names_one_refusal_whatever_the_order_of_the_rows() {
        let count = u8::try_from(Reject::ALL.len()).expect("a byte");
        for byte in 0..count {
            assert_eq!(Reject::from_byte(byte).map(|reject| reject as u8), Some(byte));
        }
        assert_eq!(Reject::from_byte(count), None);
        let stored = [(0, Reject::Recovering), (37, Reject::FillsLimit), (52, Reject::FillRateTripped)];
        for (byte, reject) in stored {
            assert_eq!(Reject::from_byte(byte), Some(reject));
        }
    }
}
