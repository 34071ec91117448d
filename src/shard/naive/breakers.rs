//! Fill-rate breakers on the twin: every fill is kept, and those that count are added up.

use super::Naive;
use crate::domain::ApiKey;

/// A key's breaker as the twin keeps it.
#[derive(Clone, Debug)]
pub(super) struct NaiveBreaker {
    quantity: u64,
    interval_ms: u64,
    tripped: bool,
    /// When, and how many millionths of shares, rounded up to a thousandth of a share.
    fills: Vec<(u64, u64)>,
}

impl NaiveBreaker {
    /// What counts at `now_ms`: fills of this eighth of the interval, and of the eight before. These are all fills of
    /// the last interval at least, and of an interval and a quarter at most. Of fills before the clock was set back
    /// count those of the eight eighths behind it.
    fn filled(&self, now_ms: u64) -> u64 {
        let eighths_apart = |ms| window(self.interval_ms, ms).abs_diff(window(self.interval_ms, now_ms));
        let sum = |counts: &dyn Fn(u64) -> bool| {
            self.fills.iter().filter(|(ms, _)| counts(*ms)).map(|(_, shares)| shares).sum::<u64>()
        };
        let filled = sum(&|ms| eighths_apart(ms) <= 8);
        let late = sum(&|ms| (now_ms + 1).saturating_sub(self.interval_ms) <= ms && ms <= now_ms);
        assert!(late <= filled, "never later than the rule says");
        let oldest = now_ms.saturating_sub(9 * self.interval_ms.div_ceil(8));
        assert!(filled <= sum(&|ms| oldest <= ms), "nor for older fills");
        filled
    }
}

impl Naive {
    /// Sets a key's breaker anew, or takes it away with a quantity of zero.
    pub fn set_breaker(&mut self, key: ApiKey, quantity: u64, interval_ms: u64) {
        self.breakers.remove(&key);
        if quantity > 0 {
            let breaker = NaiveBreaker { quantity, interval_ms, tripped: false, fills: Vec::new() };
            self.breakers.insert(key, breaker);
        }
    }

    /// Lets a key trade again, its fills forgotten; false if it has no breaker.
    pub fn reset_breaker(&mut self, key: ApiKey) -> bool {
        let Some(NaiveBreaker { quantity, interval_ms, .. }) = self.breakers.get(&key) else {
            return false;
        };
        self.set_breaker(key, *quantity, *interval_ms);
        true
    }

    /// What was filled lately of a key's orders, what trips its breaker, and whether it has tripped.
    #[must_use]
    pub fn breaker(&self, key: ApiKey) -> Option<(u64, u64, bool)> {
        let breaker = self.breakers.get(&key)?;
        Some((breaker.filled(self.now.0), breaker.quantity, breaker.tripped))
    }

    /// A start: what tripped stays so, what was filled before no longer counts.
    pub fn forget_fills(&mut self) {
        self.breakers.values_mut().for_each(|breaker| breaker.fills.clear());
    }

    pub(super) fn count_fill(&mut self, key: ApiKey, shares: u64) {
        let now = self.now.0;
        if let Some(breaker) = self.breakers.get_mut(&key) {
            // Nine windows are kept: one that is begun anew forgets what it held.
            let NaiveBreaker { interval_ms, fills, .. } = breaker;
            let apart = |ms| window(*interval_ms, ms).abs_diff(window(*interval_ms, now));
            fills.retain(|(ms, _)| apart(*ms) == 0 || !apart(*ms).is_multiple_of(9));
            breaker.fills.push((now, shares.next_multiple_of(1_000)));
            breaker.tripped |= breaker.quantity <= breaker.filled(now);
        }
    }

    pub(super) fn has_tripped(&self, key: ApiKey) -> bool {
        self.breakers.get(&key).is_some_and(|breaker| breaker.tripped)
    }
}

/// The eighth of an interval that this time is in.
const fn window(interval_ms: u64, ms: u64) -> u64 {
    ms / interval_ms.div_ceil(8)
}
