//! The words of a shard's refusals: of an order's numbers in the units that people read, of an act's as it has them.

use super::work::Refused;
use crate::domain::time::MILLISECONDS_FROM;
use crate::domain::{Address, ApiKey, ConditionId, OrderFields, Reject, SignatureType, TokenId};
use crate::json::{ShortText, answer};
use crate::server::requests::toll::Toll;
use crate::shard::{REFUSED_PRICE_PLACES, Refusal};

/// What a GTD order's expiration has to be.
const EXPIRATION_RULE: &str = "seconds since 1970, below 100000000000";
const _: () = assert!(MILLISECONDS_FROM == 100_000_000_000, "the rule above says so");

/// A refusal of an order.
pub(crate) fn of_order(refusal: &Refusal) -> Refused {
    let (field, text): (&'static str, fn(u64) -> ShortText) = match refusal.reject {
        Reject::PriceOutOfRange => {
            return Refused {
                field: "price",
                got: price(refusal.got),
                allowed: prices_from(refusal.allowed),
                ..Refused::plain(refusal.reject)
            };
        }
        Reject::ExpirationType | Reject::ExpirationTooLarge => {
            let allowed = if refusal.allowed == 0 { "0" } else { EXPIRATION_RULE };
            return Refused {
                field: "expiration",
                got: ShortText::integer(refusal.got),
                allowed: ShortText::new(allowed),
                ..Refused::plain(refusal.reject)
            };
        }
        Reject::PriceOffTick => ("price", price),
        Reject::SizeTooSmall => ("size", ShortText::millionths),
        Reject::NotionalTooSmall | Reject::NotEnoughBalance => ("makerAmount", ShortText::millionths),
        Reject::TooManyOpenOrders | Reject::TooManyPositions => ("", ShortText::integer),
        Reject::TooOld | Reject::TooNew => ("timestamp", ShortText::integer),
        Reject::Expired => ("expiration", ShortText::integer),
        Reject::DeadlinePassed => ("X-Outcry-Deadline", in_microseconds),
        _ => return Refused::plain(refusal.reject),
    };
    Refused {
        field,
        got: text(refusal.got),
        allowed: text(refusal.allowed),
        ..Refused::plain(refusal.reject)
    }
}

/// A refusal of a split, merge or redeem.
pub(crate) fn of_act(refusal: &Refusal) -> Refused {
    let (field, text): (&'static str, fn(u64) -> ShortText) = match refusal.reject {
        Reject::NothingToMove | Reject::NotEnoughBalance => ("amount", ShortText::integer),
        Reject::TooManyPositions => ("", ShortText::integer),
        Reject::TooOld | Reject::TooNew => ("timestamp", ShortText::integer),
        reject => return Refused::plain(reject),
    };
    Refused {
        field,
        got: text(refusal.got),
        allowed: text(refusal.allowed),
        ..Refused::plain(refusal.reject)
    }
}

/// A refusal of a request; if a limit refused it, with the words for that.
pub(crate) fn of_limit(refused: Refused, toll: &Toll) -> Refused {
    if refused.reject != Reject::RateLimited {
        return refused;
    }
    let answer::Refusal { field, got, allowed, .. } = toll.refusal(refused.reject);
    Refused { field, got, allowed, ..refused }
}

/// A refusal of an order that names another API key than that of its request, which is not told.
pub(crate) fn of_another_key(owner: ApiKey) -> Refused {
    Refused {
        field: "owner",
        got: ShortText::uuid(owner),
        allowed: ShortText::new("the API key of the request"),
        ..Refused::plain(Reject::OwnerMismatch)
    }
}

/// A refusal of a cancel that names neither market nor token.
pub(crate) fn scope_missing() -> Refused {
    Refused {
        field: "body",
        allowed: ShortText::new("market, asset_id or both"),
        ..Refused::plain(Reject::CancelScopeMissing)
    }
}

/// A refusal of an order whose token is none of this exchange.
pub(crate) fn token_unknown(token: &TokenId) -> Refused {
    Refused {
        field: "tokenId",
        got: ShortText::uint256(&token.0),
        allowed: ShortText::new("a token that has a market here"),
        ..Refused::plain(Reject::TokenUnknown)
    }
}

/// A refusal of an order for the market that it names.
pub(crate) fn of_condition(reject: Reject, condition: &ConditionId) -> Refused {
    of_market(reject, condition, "the market of tokenId")
}

/// A refusal of a split, merge or redeem in a market that is none of this exchange.
pub(crate) fn condition_unknown(condition: &ConditionId) -> Refused {
    of_market(Reject::ConditionUnknown, condition, "a market of this exchange")
}

fn of_market(reject: Reject, condition: &ConditionId, allowed: &str) -> Refused {
    Refused {
        field: "conditionId",
        got: ShortText::hex(&condition.0),
        allowed: ShortText::new(allowed),
        ..Refused::plain(reject)
    }
}

/// A refusal of a wallet that is not the owner's of the key; `field` names it.
pub(crate) fn not_authorized(field: &'static str, wallet: &Address) -> Refused {
    Refused {
        field,
        got: ShortText::hex(&wallet.0),
        allowed: ShortText::new("a wallet of the API key's owner"),
        ..Refused::plain(Reject::MakerNotAuthorized)
    }
}

/// A refusal of the parties that an order names, by what `Verifier::parties` found.
pub(crate) fn of_parties(reject: Reject, order: &OrderFields, caller: &Address) -> Refused {
    let is_deposit = order.signature_type == SignatureType::Deposit;
    let (field, got, allowed) = match reject {
        Reject::SignerMismatch => ("signer", &order.signer, if is_deposit { &order.maker } else { caller }),
        _ => ("maker", &order.maker, caller),
    };
    Refused {
        field,
        got: ShortText::hex(&got.0),
        allowed: ShortText::hex(&allowed.0),
        ..Refused::plain(reject)
    }
}

/// A refusal of whatever the owner of `address` asks for while it is frozen.
pub(crate) fn frozen(address: &Address) -> Refused {
    Refused { got: ShortText::hex(&address.0), ..Refused::plain(Reject::Frozen) }
}

fn price(value: u64) -> ShortText {
    ShortText::scaled(value, REFUSED_PRICE_PLACES)
}

/// From the first price on a tick to the last.
fn prices_from(tick: u64) -> ShortText {
    ShortText::scaled_between(tick, 10_u64.pow(REFUSED_PRICE_PLACES) - tick, REFUSED_PRICE_PLACES)
}

fn in_microseconds(ms: u64) -> ShortText {
    ShortText::integer(ms.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_s_amount_is_told_in_millionths_as_it_was_asked_for() {
        for reject in [Reject::NothingToMove, Reject::NotEnoughBalance] {
            let told = of_act(&Refusal { reject, got: 20_000_000, allowed: 12_250_000 });
            assert_eq!(
                (told.field, told.got.as_str(), told.allowed.as_str()),
                ("amount", "20000000", "12250000")
            );
        }
    }
}
