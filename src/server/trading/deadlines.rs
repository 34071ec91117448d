//! Deadlines: until when a request's orders may be judged.

use super::Trade;
use super::work::Refused;
use crate::domain::{Reject, TimeMs};
use crate::http::Head;
use crate::json::{ShortText, decimal};
use crate::server::requests::toll::Toll;
use crate::shard::ReadyOrder;

impl Trade {
    /// The time at which an order is judged: the turn's, or the present moment if the order has a deadline. While time
    /// stands still, as the clock was corrected back, the shard is told how far it is ahead of the clock, by which
    /// deadlines are judged.
    pub(super) fn time_for(&mut self, place: &ReadyOrder, now: TimeMs) -> TimeMs {
        if !place.has_deadline() {
            return now;
        }
        let shard = self.shard.as_mut().expect("only a shard's loop judges orders");
        shard.let_expire(now.max(self.clock.now()));
        let present = self.clock.now();
        let time = now.max(present);
        shard.stands_ahead(time.0 - present.0);
        time
    }

    /// Milliseconds that setting the clock neither adds to nor takes from.
    pub(super) fn steady_ms(&self) -> u64 {
        self.clock.steady_ms(self.clock.elapsed_ms())
    }

    /// The millisecond from which on books refuse the request's orders; 0 without the header. `X-Outcry-Deadline` is in
    /// microseconds since 1970, or from now if it begins with `+`; now is when the request came, not when its turn or a
    /// limit let it go on. Rounded down, so that no order is late by part of a millisecond.
    pub(super) fn deadline_ms(&self, head: &Head<'_>, toll: &Toll) -> Result<u64, Refused> {
        let Some(text) = head.deadline else {
            return Ok(0);
        };
        let (digits, from_us) = match text.strip_prefix('+') {
            Some(digits) => {
                let waited_us = toll.waited_us(self.clock.steady_us(self.clock.elapsed_ns()));
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
