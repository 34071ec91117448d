//! What each loop has done since the start, for whoever watches.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::auth;
use crate::stats::{Histogram, Laps, Stage};

/// A turn with work in it that is longer than this is a stall: every client of the loop waited for it.
const STALL_NS: u64 = 1_000_000;

/// A turn that found nothing to do and did not sleep ends long before this; in a longer one the loop's CPU was taken.
const AWAY_NS: u64 = 20_000;

/// A disk that has not written a batch after this hangs. Tests do not wait that long.
pub(crate) const HANG_NS: u64 = if cfg!(test) { 100_000_000 } else { 5_000_000_000 };

/// What one loop has done since the start. Only that loop writes, so nobody waits for a cache line.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Trading requests taken from sockets of this loop.
    pub(crate) trading: Count,
    /// Other public requests taken from sockets of this loop.
    pub(crate) reading: Count,
    /// Answers released on this loop.
    pub(crate) answers: Count,
    /// What answered trading requests spent on each stage, in the order of [`Stage::ALL`].
    pub(crate) stages: [Histogram; Stage::ALL.len()],
    /// What answered trading requests took, from their bytes to their answers' release.
    pub(crate) total: Histogram,
    /// What other public requests took, from their bytes to their answers' release.
    pub(crate) reads: Histogram,
    /// What it took to hand released answers, or what a stream is told, to a socket.
    pub(crate) sends: Histogram,
    /// Turns in which there was work.
    pub(crate) turns: Histogram,
    /// Turns with work that were longer than [`STALL_NS`].
    pub(crate) stalls: Count,
    /// Turns without work or sleep that were longer than [`AWAY_NS`]: what others took of the loop's CPU while it spun.
    pub(crate) away: Histogram,
    /// Connections that are open.
    pub(crate) connections: Gauge,
    /// Trading requests that no shard has decided yet.
    pub(crate) undecided: Gauge,
    /// Questions to other loops that are not answered yet.
    pub(crate) in_flight: Gauge,
    /// Orders that rest in this loop's shard.
    pub(crate) resting: Gauge,
    /// (wallet, market) pairs with shares or open orders in its shard.
    pub(crate) positions: Gauge,
    /// Bytes of its shard's books.
    pub(crate) books_bytes: Gauge,
    /// Digests that its shard remembers.
    pub(crate) digests: Gauge,
    /// What came of asking whether a signer is known.
    pub(crate) known_signers: KnownSigners,
}

impl Tally {
    /// A trading request was answered.
    pub(crate) fn answered(&self, laps: &Laps) {
        for (stage, histogram) in Stage::ALL.into_iter().zip(&self.stages) {
            let spent = laps.spent_ns(stage);
            // A stage that the request did not have says nothing.
            if spent != 0 {
                histogram.record(spent);
            }
        }
        self.total.record(laps.total_ns());
    }

    /// A turn with work in it is over.
    pub(crate) fn turned(&self, ns: u64) {
        self.turns.record(ns);
        if STALL_NS < ns {
            self.stalls.add_one();
        }
    }

    /// A turn without work or sleep is over.
    pub(crate) fn spun(&self, ns: u64) {
        if AWAY_NS < ns {
            self.away.record(ns);
        }
    }
}

/// What the journal's thread has done since the start. Only that thread writes.
#[derive(Debug, Default)]
pub(crate) struct JournalTally {
    /// What each write of a batch took, until the thread went on.
    pub(crate) writes: Histogram,
    /// For how long it was ready and had no CPU, from the end of one write to the end of the next: after it was woken,
    /// and after the disk was done. Nothing where the kernel does not count.
    pub(crate) run_delay: Histogram,
    /// When the write under way began; 0 if there is none.
    began_ns: AtomicU64,
}

impl JournalTally {
    /// A batch goes to the disk.
    pub(crate) fn writing(&self, now_ns: u64) {
        // Relaxed, as for counts.
        self.began_ns.store(now_ns.max(1), Ordering::Relaxed);
    }

    /// It was written.
    pub(crate) fn wrote(&self, now_ns: u64, run_delay_ns: Option<u64>) {
        self.writes.record(self.writes_for_ns(now_ns));
        self.began_ns.store(0, Ordering::Relaxed);
        if let Some(ns) = run_delay_ns {
            self.run_delay.record(ns);
        }
    }

    /// For how long the write under way has been; 0 if there is none.
    pub(crate) fn writes_for_ns(&self, now_ns: u64) -> u64 {
        match self.began_ns.load(Ordering::Relaxed) {
            0 => 0,
            began_ns => now_ns.saturating_sub(began_ns),
        }
    }

    /// Whether the disk hangs: it has had a write for longer than [`HANG_NS`].
    pub(crate) fn hangs(&self, now_ns: u64) -> bool {
        HANG_NS < self.writes_for_ns(now_ns)
    }
}

/// What a loop's tables of known signers have counted; all zero where there are none.
#[derive(Debug, Default)]
pub(crate) struct KnownSigners {
    /// A table said yes.
    pub(crate) hits: Count,
    /// The signer's table was whole and said no.
    pub(crate) fallbacks: Count,
    /// The signer had no whole table.
    pub(crate) misses: Count,
    /// Tables that became whole.
    pub(crate) tables: Count,
}

impl KnownSigners {
    /// Takes over what the tables have counted by now.
    pub(crate) fn set(&self, now: auth::Tally) {
        let auth::Tally { hits, fallbacks, misses, tables } = now;
        self.hits.rise_to(hits);
        self.fallbacks.rise_to(fallbacks);
        self.misses.rise_to(misses);
        self.tables.rise_to(tables);
    }
}

/// A number with one writer that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// One more. Only the loop that owns the count calls this.
    pub(crate) fn add_one(&self) {
        // Relaxed: a reader wants a number, not what came before it.
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// As many more. Only the loop that owns the count calls this.
    pub(crate) fn add(&self, more: u64) {
        self.rise_to(self.get() + more);
    }

    /// Raises it to what another counter of the same loop says. Only that loop calls this.
    pub(crate) fn rise_to(&self, count: u64) {
        debug_assert!(self.get() <= count, "a count never falls");
        self.0.store(count, Ordering::Relaxed);
    }

    /// How many.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How much there is of something now, as its one writer last said.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    /// There is this much.
    pub(crate) fn set(&self, value: usize) {
        // Relaxed, as for counts.
        self.0.store(value as u64, Ordering::Relaxed);
    }

    /// How much there is.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_hangs_while_one_write_takes_too_long() {
        let tally = JournalTally::default();
        assert!(!tally.hangs(u64::MAX), "nothing is written");
        tally.writing(7);
        assert_eq!((tally.writes_for_ns(7 + HANG_NS), tally.hangs(7 + HANG_NS)), (HANG_NS, false));
        assert!(tally.hangs(8 + HANG_NS));
        tally.wrote(8 + HANG_NS, None);
        assert_eq!((tally.writes_for_ns(u64::MAX), tally.writes.counts().count()), (0, 1));
    }

    #[test]
    fn an_answer_is_counted_in_the_stages_that_it_had_and_in_the_whole() {
        let tally = Tally::default();
        let mut laps = Laps::begin(1);
        laps.lap(Stage::Recv, 101);
        laps.lap(Stage::Match, 301);
        tally.answered(&laps);
        let counts = |histogram: &Histogram| histogram.counts().collect::<Vec<_>>();
        assert_eq!(counts(&tally.stages[Stage::Recv as usize]), [(100, 1)]);
        assert_eq!(counts(&tally.stages[Stage::Match as usize]), [(200, 1)]);
        assert_eq!(counts(&tally.stages[Stage::Sign as usize]), []);
        assert_eq!(tally.total.sum_ns(), 300);
    }

    #[test]
    fn a_long_turn_is_a_stall() {
        let tally = Tally::default();
        for ns in [STALL_NS - 1, STALL_NS, STALL_NS + 1] {
            tally.turned(ns);
        }
        assert_eq!((tally.stalls.get(), tally.turns.max_ns()), (1, STALL_NS + 1));
    }

    #[test]
    fn a_long_turn_without_work_is_one_in_which_the_cpu_was_taken() {
        let tally = Tally::default();
        for ns in [1_000, AWAY_NS, AWAY_NS + 1] {
            tally.spun(ns);
        }
        assert_eq!((tally.away.sum_ns(), tally.turns.sum_ns()), (AWAY_NS + 1, 0));
    }
}
