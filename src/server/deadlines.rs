//! Until when an order may be judged.
#![allow(
    clippy::result_large_err,
    reason = "a refusal carries its words by value, so that nothing allocates"
)]

use super::ingress::Trade;
use super::toll::Toll;
use super::work::Refused;
use crate::domain::{Reject, TimeMs};
use crate::http::Head;
use crate::json::{ShortText, decimal};
use crate::shard::ReadyOrder;

impl Trade {
    /// The time at which an order is judged: the turn's, or this moment's where a deadline is to be kept.
    pub(super) fn time_for(&self, place: &ReadyOrder, now: TimeMs) -> TimeMs {
        if place.has_deadline() { now.max(self.clock.now()) } else { now }
    }

    /// Milliseconds that no clock that is set moves; a manual clock's own.
    pub(super) fn steady_ms(&self, now: TimeMs) -> u64 {
        self.clock.steady_ms(now, self.clock.elapsed_ms())
    }

    /// From when on the request's orders are refused by their books: `X-Outcry-Deadline` is in microseconds
    /// since 1970, or from now behind a `+`. Cut to whole milliseconds, so that no order is late by a part
    /// of one; 0 without the header. Now is when the request came, not when a limit let it go on.
    pub(super) fn deadline_ms(&self, head: &Head<'_>, toll: &Toll) -> Result<u64, Refused> {
        let Some(text) = head.deadline else {
            return Ok(0);
        };
        let (digits, from_us) = match text.strip_prefix('+') {
            Some(digits) => {
                let waited_us = toll.waited_ms(self.callers.moment) * 1_000;
                (digits, self.clock.now_us().saturating_sub(waited_us))
            }
            None => (text, 0),
        };
        match decimal::parse_integer(digits.as_bytes()) {
            Ok(us) => Ok((from_us.saturating_add(us) / 1_000).max(1)),
            Err(_) => Err(Refused {
                field: "X-Outcry-Deadline",
                got: ShortText::new(text),
                allowed: ShortText::new("microseconds since 1970, or + and microseconds from now"),
                ..Refused::plain(Reject::InvalidPayload)
            }),
        }
    }
}
