//! A count per window of time, and the arithmetic of one bucket.
//!
//! A bucket is one number, the **theoretical arrival time**: when the next request would be due if everything
//! that was taken had come evenly, at the rate's interval. How far it is ahead of now is how full the bucket
//! is: a rate of 200/10s has an interval of 50 ms and a depth of 10 s, so 200 may come at once and from then
//! on one every 50 ms. That is a token bucket without a second number and without anything to refill (GCRA).

use std::fmt;

use super::moment::{US_PER_S, WAIT_US_MAX};
use super::scope::Rule;

/// The most that a rate may count: an interval is a microsecond at least.
pub const COUNT_MAX: u32 = 1_000_000;
/// The longest window: the range of a bucket's word is limited.
pub const WINDOW_S_MAX: u32 = 3_600;

/// A count per window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In how many seconds.
    pub window_s: u32,
}

/// The cost of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// What it is charged.
    pub now: u32,
    /// What it has paid into the same bucket before, which is given back if it is refused.
    pub paid: u32,
    /// What it owes the same bucket besides, whatever becomes of it.
    pub owed: u32,
}

impl Cost {
    /// That of nothing.
    pub const NONE: Self = Self { now: 0, paid: 0, owed: 0 };
    /// The cost of nearly every request.
    pub const ONE: Self = Self { now: 1, ..Self::NONE };
    /// That of a request that has paid [`Self::ONE`] before.
    pub const PAID: Self = Self { paid: 1, ..Self::NONE };
}

/// A bucket after one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// How far the theoretical arrival time is ahead then.
    pub(super) ahead_us: u64,
    /// How long the request has to wait before the rate allows it.
    pub(super) wait_us: u64,
}

impl Rate {
    pub(super) const fn of(count: u32, window_s: u32) -> Self {
        assert!(0 < count && count <= COUNT_MAX, "an interval is a microsecond at least");
        assert!(0 < window_s && window_s <= WINDOW_S_MAX, "a window is a second at least");
        Self { count, window_s }
    }

    /// How long one takes; rounded up, so that a rate is never exceeded by rounding.
    pub(super) const fn interval_us(self) -> u64 {
        (self.window_s as u64 * US_PER_S).div_ceil(self.count as u64)
    }

    /// How far ahead a full bucket is.
    pub(super) const fn depth_us(self) -> u64 {
        self.interval_us() * self.count as u64
    }

    /// How far ahead a request can take a bucket: full, and waiting as long as it may.
    pub(super) const fn waiting_us_max(self) -> u64 {
        self.depth_us() + WAIT_US_MAX
    }

    /// How far ahead a bucket can be: so far, and what a request turned out to cost owed behind that.
    pub(super) const fn ahead_us_max(self) -> u64 {
        self.waiting_us_max() + self.depth_us()
    }

    /// What `cost.now` takes, on top of what the same request has paid and owes: together at most the whole bucket, or
    /// a larger request would never be allowed.
    pub(super) fn cost_us(self, cost: Cost) -> u64 {
        let at_most = self.count.saturating_sub(cost.paid).saturating_sub(cost.owed);
        self.interval_us() * u64::from(cost.now.min(at_most))
    }

    /// The bucket after one more request of this cost.
    pub(super) fn fill(self, ahead_us: u64, cost: Cost) -> Filled {
        let ahead_us = ahead_us + self.cost_us(cost);
        Filled { ahead_us, wait_us: ahead_us.saturating_sub(self.depth_us()) }
    }

    /// How many requests of cost one there is room for.
    pub(super) fn remaining(self, ahead_us: u64) -> u32 {
        let remaining = self.depth_us().saturating_sub(ahead_us) / self.interval_us();
        u32::try_from(remaining).expect("never more than the count")
    }

    fn parse(text: &str) -> Option<Self> {
        let (count, window) = text.trim().split_once('/')?;
        let (window, factor) = match window.split_at_checked(window.len().checked_sub(1)?)? {
            (seconds, "s") => (seconds, 1),
            (minutes, "m") => (minutes, 60),
            _ => return None,
        };
        let (count, window): (u32, u32) = (digits(count)?, digits(window)?);
        let window_s = window.checked_mul(factor)?;
        let fits = (1..=COUNT_MAX).contains(&count) && (1..=WINDOW_S_MAX).contains(&window_s);
        fits.then_some(Self { count, window_s })
    }
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.window_s.is_multiple_of(60) {
            write!(out, "{}/{}m", self.count, self.window_s / 60)
        } else {
            write!(out, "{}/{}s", self.count, self.window_s)
        }
    }
}

impl Rule {
    /// Reads `2400/10s`, or `2400/10s, 24000/10m` with the longer window second.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Some((burst, sustained)) = text.split_once(',') else {
            return Rate::parse(text).map(|burst| Self { burst, sustained: None });
        };
        let (burst, sustained) = (Rate::parse(burst)?, Rate::parse(sustained)?);
        (burst.window_s < sustained.window_s).then_some(Self { burst, sustained: Some(sustained) })
    }

    /// What it takes in the long run, in thousandths per second: the tighter of its rates.
    #[must_use]
    pub fn sustained_milli_per_s(&self) -> u64 {
        let rates = self.rates().map(|rate| u64::from(rate.count) * 1_000 / u64::from(rate.window_s));
        rates.min().expect("a rule has a rate")
    }

    /// Its one or two rates.
    pub(super) fn rates(&self) -> impl Iterator<Item = Rate> + use<> {
        std::iter::once(self.burst).chain(self.sustained)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sustained {
            None => self.burst.fmt(out),
            Some(sustained) => write!(out, "{}, {sustained}", self.burst),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_rate_is_what_it_takes_in_the_long_run() {
        for (text, milli_per_s) in [
            ("2400/10s", 240_000),
            ("2400/10s, 24000/10m", 40_000),
            ("10/10s, 24000/10m", 1_000),
            ("1/60m", 0),
            ("1/3s", 333),
        ] {
            let rule = Rule::parse(text).expect("a rule");
            assert_eq!(rule.sustained_milli_per_s(), milli_per_s, "{text}");
        }
    }

    #[test]
    fn a_rule_reads_back_as_it_was_written() {
        for text in ["1/1s", "200/10s", "2400/10s, 24000/10m", "1000000/60m"] {
            assert_eq!(Rule::parse(text).map(|rule| rule.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_no_rule_is_not_taken() {
        for text in [
            "",
            "200",
            "200/",
            "200/10",
            "/10s",
            "0/10s",
            "200/0s",
            "+1/1s",
            "200/10h",
            "-1/10s",
            "1000001/10s",
            "1/61m",
            "200/10s,",
            "200/10m, 1/10s",
            "200/10s, 100/10s",
            "1/1s, 2/2s, 3/3s",
            "1/99999999999s",
            "1/ 1s",
            "1/71582789m",
        ] {
            assert_eq!(Rule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_full_burst_fits_and_one_more_waits_an_interval() {
        for rate in [Rate::of(2_400, 10), Rate::of(3, 1), Rate::of(COUNT_MAX, 1), Rate::of(7, WINDOW_S_MAX)] {
            let full = rate.fill(0, Cost { now: rate.count, ..Cost::NONE });
            assert_eq!((full.ahead_us, full.wait_us), (rate.depth_us(), 0), "{rate}");
            assert_eq!(rate.remaining(full.ahead_us), 0);
            assert_eq!(rate.fill(full.ahead_us, Cost::ONE).wait_us, rate.interval_us());
            assert_eq!(rate.remaining(0), rate.count);
        }
    }

    #[test]
    fn what_costs_more_than_a_burst_costs_a_burst() {
        let rate = Rate::of(3, 10);
        for (now, paid, owed, taken) in [
            (15, 0, 0, 3),
            (3, 0, 0, 3),
            (14, 1, 0, 2),
            (14, 1, 1, 1),
            (1, 2, 0, 1),
            (1, 3, 0, 0),
            (1, 0, 3, 0),
            (1, 9, 9, 0),
        ] {
            let cost = Cost { now, paid, owed };
            assert_eq!(rate.cost_us(cost), taken * rate.interval_us(), "{cost:?}");
        }
    }
}
