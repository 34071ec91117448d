//! Fill-rate breakers: how much of each key's orders was filled lately, over all shards.
//!
//! A breaker trips when the fills of its key within its interval reach its quantity. Time is cut
//! into windows of an eighth of the interval, of which the newest nine count, so every fill of the
//! last interval is counted: a breaker never trips later than its rule says, but counts all of nine windows.
//! Windows have whole milliseconds, an eighth of the interval rounded up: with an interval of 1 ms, fills of
//! the last 9 ms may count. If the clock was set back by an interval or less, what was filled before still
//! counts. A window's count is one word that all shards add to:
//!
//! | bits | hold |
//! |-----:|------|
//! |   24 | the window's number; a word of another number counts nothing and is begun anew |
//! |   40 | thousandths of shares, each fill rounded up; full above a billion shares, which trips any |
//!
//! Counting costs a search among the rows of the maker's owner and one among the taker's, and one load while
//! nobody has a breaker.
//!
//! An owner's rows are a list, at most 32 long, which only grows; of a breaker that is taken away, the row goes to the
//! next key of its owner that gets one. So an owner never has more rows than it had breakers at a time. A shard that
//! looked at a row just before it changed its key, quantity or interval ends its one count by what it had read: it may
//! count that fill for the key that has the row now, trip it by the former quantity, or begin its window anew.

use super::NONE;
use super::rows::some_number;
use crate::domain::{ApiKey, BreakerState, Shares, TimeMs, WalletNo};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

/// The most rows of breakers: 128 bytes each.
pub const BREAKERS_MAX: u32 = 16_384;

/// The longest interval: a day.
pub const INTERVAL_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// The largest quantity, in millionths: that of the largest order.
pub const QUANTITY_MAX: Shares = Shares(crate::domain::amount::ORDER_AMOUNT_MAX);

/// Windows per interval.
const PARTS: u64 = 8;
/// Windows that are kept: those that an interval may touch.
const WINDOWS: usize = 9;
const COUNT_BITS: u32 = 40;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
/// Millionths of a share in a unit of a count.
const UNIT: u64 = 1_000;

const _: () = assert!(QUANTITY_MAX.0 / UNIT <= COUNT_MAX, "a full window trips the largest breaker");

/// One key's breaker.
#[derive(Debug)]
pub struct BreakerRow {
    /// The key, in halves.
    key: [AtomicU64; 2],
    /// The key's owner.
    pub principal: WalletNo,
    /// The owner's next row, or [`NONE`].
    next: AtomicU32,
    /// Millionths of shares; 0 while there is no breaker.
    quantity: AtomicU64,
    interval_ms: AtomicU64,
    tripped: AtomicBool,
    windows: [AtomicU64; WINDOWS],
}

impl BreakerRow {
    pub(super) fn new(principal: WalletNo, key: ApiKey) -> Self {
        Self {
            key: halves(key).map(AtomicU64::new),
            principal,
            next: AtomicU32::new(NONE),
            quantity: AtomicU64::new(0),
            interval_ms: AtomicU64::new(1),
            tripped: AtomicBool::new(false),
            windows: [const { AtomicU64::new(0) }; WINDOWS],
        }
    }

    /// The key that has the row. While the row changes hands it may read as halves of two keys, a name that no key has.
    #[must_use]
    pub fn key(&self) -> ApiKey {
        let [low, high] = self.key.each_ref().map(|half| u128::from(half.load(Ordering::Acquire)));
        ApiKey((high << 64 | low).to_le_bytes())
    }

    /// Gives the row, in which no breaker is set, to another key of its owner.
    pub(super) fn give_to(&self, key: ApiKey) {
        assert!(!self.is_set(), "a key keeps the row of its breaker");
        self.forget();
        for (half, value) in self.key.iter().zip(halves(key)) {
            half.store(value, Ordering::Release);
        }
    }

    pub(super) fn next(&self) -> Option<u32> {
        some_number(&self.next)
    }

    pub(super) fn set_next(&self, number: u32) {
        self.next.store(number, Ordering::Release);
    }

    /// Whether there is a breaker.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.quantity.load(Ordering::Acquire) != 0
    }

    /// How it stands.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        // Acquire pairs with the release in `set`: a quantity is seen with its interval.
        let quantity = Shares(self.quantity.load(Ordering::Acquire));
        BreakerState {
            quantity,
            interval_ms: self.interval_ms.load(Ordering::Relaxed),
            tripped: self.tripped.load(Ordering::Acquire),
        }
    }

    /// Sets it anew; only the one writer calls it. The counts stay if the interval does.
    pub(super) fn set(&self, state: BreakerState) {
        self.quantity.store(0, Ordering::Release);
        if self.interval_ms.swap(state.interval_ms.max(1), Ordering::Relaxed) != state.interval_ms {
            self.forget();
        }
        self.tripped.store(state.tripped, Ordering::Release);
        // Release pairs with the acquire in `state` and `count`.
        self.quantity.store(state.quantity.0, Ordering::Release);
    }

    /// Forgets what was counted so far.
    pub(super) fn forget(&self) {
        self.windows.iter().for_each(|window| window.store(0, Ordering::Relaxed));
    }

    /// Counts a fill; true if that trips the breaker.
    pub(super) fn count(&self, shares: Shares, now: TimeMs) -> bool {
        let quantity = self.quantity.load(Ordering::Acquire);
        if quantity == 0 {
            return false;
        }
        let number = self.window_number(now);
        let units = shares.0.div_ceil(UNIT);
        let add = |word: u64| {
            let before = if tag_of(word) == tag(number) { word & COUNT_MAX } else { 0 };
            Some(tag(number) << COUNT_BITS | (before + units).min(COUNT_MAX))
        };
        let window = &self.windows[place(number)];
        window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).expect("every word has a successor");
        // Two shards may add to different windows at one moment: one of them at least sees both.
        fence(Ordering::SeqCst);
        let reached = quantity.div_ceil(UNIT) <= self.units(number);
        reached && !self.tripped.swap(true, Ordering::AcqRel)
    }

    /// What was filled lately, as it counts at `now`.
    #[must_use]
    pub fn filled(&self, now: TimeMs) -> Shares {
        Shares(self.units(self.window_number(now)) * UNIT)
    }

    /// True from when it trips until it is reset or taken away.
    pub(super) fn is_tripped(&self) -> bool {
        self.tripped.load(Ordering::Acquire) && self.is_set()
    }

    fn window_number(&self, now: TimeMs) -> u64 {
        now.0 / self.interval_ms.load(Ordering::Relaxed).div_ceil(PARTS)
    }

    fn units(&self, number: u64) -> u64 {
        let words = self.windows.iter().map(|window| window.load(Ordering::Relaxed));
        let counts = words.filter(|word| {
            let [ahead, behind] = [(tag_of(*word), number), (number, tag_of(*word))];
            [ahead, behind].iter().any(|(later, earlier)| tag(later.wrapping_sub(*earlier)) <= PARTS)
        });
        counts.map(|word| word & COUNT_MAX).sum()
    }
}

fn halves(key: ApiKey) -> [u64; 2] {
    let (halves, _) = key.0.as_chunks();
    [halves[0], halves[1]].map(u64::from_le_bytes)
}

/// A window's number as its word holds it, cut to 24 bits.
const fn tag(number: u64) -> u64 {
    number & ((1 << (64 - COUNT_BITS)) - 1)
}

const fn tag_of(word: u64) -> u64 {
    word >> COUNT_BITS
}

fn place(number: u64) -> usize {
    usize::try_from(number % WINDOWS as u64).expect("below nine")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(shares: u64, interval_ms: u64) -> BreakerRow {
        let row = BreakerRow::new(WalletNo(0), ApiKey::ZERO);
        row.set(BreakerState { quantity: Shares(shares * 1_000_000), interval_ms, tripped: false });
        row
    }

    /// Fills (milliseconds, shares), and the index of the fill at which a breaker trips.
    #[test]
    fn a_breaker_trips_when_an_interval_holds_its_quantity() {
        const START: u64 = 1_700_000_000_000;
        type Case = (u64, u64, &'static [(u64, u64)], Option<usize>);
        let cases: [Case; 13] = [
            (10, 800, &[(0, 9)], None),
            (10, 800, &[(0, 9), (0, 1)], Some(1)),
            (10, 800, &[(0, 5), (799, 5)], Some(1)),
            // Fills that are an interval and an eighth apart do not count together.
            (10, 800, &[(0, 5), (901, 5)], None),
            (10, 800, &[(0, 5), (901, 4), (1_000, 4), (1_001, 2)], Some(3)),
            (10, 1, &[(0, 9), (9, 9), (18, 9)], None),
            // An eighth of these is no whole number of milliseconds; none of them trips too late.
            (10, 15, &[(0, 5), (14, 5)], Some(1)),
            (10, 23, &[(7, 5), (29, 5)], Some(1)),
            (10, 1_007, &[(3, 5), (1_009, 5)], Some(1)),
            (1, 800, &[(0, 50)], Some(0)),
            // The clock is set back, by an interval and by more.
            (10, 800, &[(10_000, 5), (9_200, 5)], Some(1)),
            (10, 800, &[(10_000, 5), (9_099, 5)], None),
            (10, 800, &[(10_000, 3), (9_500, 3), (10_100, 4)], Some(2)),
        ];
        for (quantity, interval_ms, fills, trips) in cases {
            let row = row(quantity, interval_ms);
            let tripped = fills
                .iter()
                .position(|(ms, shares)| row.count(Shares(shares * 1_000_000), TimeMs(START + ms)));
            assert_eq!(tripped, trips, "{quantity} in {interval_ms} ms: {fills:?}");
            assert_eq!(row.is_tripped(), trips.is_some());
        }
    }

    #[test]
    fn a_breaker_trips_once_and_again_when_it_was_reset() {
        let row = row(10, 1_000);
        let now = TimeMs(1_700_000_000_000);
        assert!(row.count(Shares(11_000_000), now));
        assert!(!row.count(Shares(11_000_000), now));
        row.forget();
        row.set(BreakerState { tripped: false, ..row.state() });
        assert_eq!((row.is_tripped(), row.filled(now)), (false, Shares::ZERO));
        assert!(row.count(Shares(11_000_000), now));
    }

    #[test]
    fn a_breaker_that_was_taken_away_counts_nothing() {
        let row = row(10, 1_000);
        row.set(BreakerState::default());
        assert!(!row.count(Shares(u64::MAX / 2), TimeMs(5)) && !row.is_tripped());
    }

    #[test]
    fn the_smallest_fill_counts_as_a_thousandth_and_a_window_is_full_at_the_largest_quantity() {
        let row = row(1_000_000_000, 1_000);
        let now = TimeMs(1_700_000_000_000);
        assert!(!row.count(Shares(1), now));
        assert_eq!(row.filled(now), Shares(1_000));
        assert!(!row.count(Shares(QUANTITY_MAX.0 - 1_000_000), now));
        assert!(row.count(Shares(1_000_000), now));
        assert!(row.filled(now) <= Shares(9 * COUNT_MAX * UNIT));
    }

    /// A quantity, and what is filled at one moment; only the last fill reaches it.
    #[test]
    fn a_breaker_trips_at_its_quantity_and_no_fill_before() {
        let (most, share) = (QUANTITY_MAX.0, 1_000_000);
        for (quantity, fills) in [
            (1, &[1][..]),
            (1_000, &[1_000]),
            (1_500, &[1_000, 1]),
            (2_001, &[1_000, 1_000, 1]),
            (most, &[most]),
            // More than a window counts.
            (most, &[most - share, most]),
        ] {
            let row = BreakerRow::new(WalletNo(0), ApiKey::ZERO);
            row.set(BreakerState { quantity: Shares(quantity), interval_ms: 1_000, tripped: false });
            let now = TimeMs(1_700_000_000_000);
            let tripped: Vec<bool> = fills.iter().map(|&fill| row.count(Shares(fill), now)).collect();
            let last = (0..fills.len()).map(|index| index + 1 == fills.len());
            assert!(tripped.iter().copied().eq(last), "{quantity}: {fills:?} trips {tripped:?}");
        }
    }
}
