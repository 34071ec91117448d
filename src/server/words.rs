//! The words of a shard's refusals: its numbers in the units that people read.

use super::work::Refused;
use crate::domain::amount::ONE;
use crate::domain::{Address, Reject};
use crate::json::ShortText;
use crate::shard::Refusal;

/// A refusal of an order.
pub(crate) fn of_order(refusal: &Refusal) -> Refused {
    let (field, text): (&'static str, fn(u64) -> ShortText) = match refusal.reject {
        Reject::PriceOutOfRange => {
            return Refused {
                field: "price",
                got: ShortText::millionths(refusal.got),
                allowed: ShortText::millionths_between(refusal.allowed, ONE - refusal.allowed),
                ..Refused::plain(refusal.reject)
            };
        }
        Reject::PriceOffTick => ("price", ShortText::millionths),
        Reject::SizeTooSmall => ("size", ShortText::millionths),
        Reject::NotionalTooSmall | Reject::NotEnoughBalance => ("makerAmount", ShortText::millionths),
        Reject::AmountTooLarge => ("makerAmount", ShortText::integer),
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
        Reject::NothingToMove | Reject::NotEnoughBalance | Reject::AmountTooLarge => {
            ("amount", ShortText::millionths)
        }
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

/// A refusal of whatever the owner of `address` asks for while it is frozen.
pub(crate) fn frozen(address: &Address) -> Refused {
    Refused { got: ShortText::hex(&address.0), ..Refused::plain(Reject::Frozen) }
}

fn in_microseconds(ms: u64) -> ShortText {
    ShortText::integer(ms.saturating_mul(1_000))
}
