//! The words of a shard's refusals: its numbers in the units that people read.

use super::work::Refused;
use crate::domain::Reject;
use crate::json::ShortText;
use crate::shard::Refusal;

/// A refusal of an order.
pub(crate) fn of_order(refusal: &Refusal) -> Refused {
    let (field, text): (&'static str, fn(u64) -> ShortText) = match refusal.reject {
        Reject::PriceOutOfRange | Reject::PriceOffTick => ("price", ten_thousandths),
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
    match refusal.reject {
        Reject::NothingToMove | Reject::NotEnoughBalance => Refused {
            field: "amount",
            got: ShortText::millionths(refusal.got),
            allowed: ShortText::millionths(refusal.allowed),
            ..Refused::plain(refusal.reject)
        },
        reject => Refused::plain(reject),
    }
}

fn in_microseconds(ms: u64) -> ShortText {
    ShortText::integer(ms.saturating_mul(1_000))
}

fn ten_thousandths(value: u64) -> ShortText {
    ShortText::ten_thousandths(u16::try_from(value).unwrap_or(u16::MAX))
}
