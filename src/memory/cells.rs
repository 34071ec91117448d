//! Collateral that every shard can reach: one lock-free cell per wallet, one fee cell per shard.
//!
//! The idea: a debit is one compare-and-swap that takes all of it or nothing, a credit is one add. A
//! shard debits before it claims a frame, and credits after that frame is committed. So whoever spends
//! a credit claims a later position, and no prefix of the log has a negative cell.
//!
//! **When funds fall.** A shard in whose books a wallet has an open buy *watches* the wallet. Whoever
//! lowers a cell commits first and then calls [`Cells::lowered`], which raises one flag for each
//! watching shard. Unlike a queue of messages, flags cannot overflow: a raised flag that is raised
//! again stays up.
//!
//! - CELLS-1: one side watches, fences and reads the cell; the other lowers the cell, fences and reads
//!   the watchers. If both do so at once, at least one sees the other's write, so no shard goes on
//!   relying on spent money without hearing of it.
//! - CELLS-2: between [`Cells::begin_take`] and [`Cells::end_take`] a shard's debits may still be
//!   given back. [`Cells::settled`] answers only if the balance it read includes no such debit, so no
//!   order is removed for want of money that is back a moment later.
//! - CELLS-3: a flag is set before the summary bits above it and taken after they are cleared, and
//!   whoever cleared a bit checks again what is below it: no raised flag is ever lost.

use super::ahead;
use super::padded::Padded;
use super::pages::filled_with;
use super::sync::{AtomicU64, Ordering, fence};
use crate::domain::{Collateral, ShardNo, WalletNo};

/// The most shards of one process: each has a bit in a wallet's word.
pub const SHARDS_MAX: u16 = 64;

/// A wallet's money and the shards that watch it, alone on a cache line against false sharing.
#[derive(Debug)]
#[repr(align(64))]
struct Cell {
    balance: AtomicU64,
    watchers: AtomicU64,
}

const _: () = assert!(size_of::<Cell>() == 64, "a cell shares its line with nobody");

/// What belongs to one shard: the fees it collected, its take count, and the flags raised for it.
#[derive(Debug)]
struct ShardCell {
    fees: Padded<AtomicU64>,
    /// Odd while debits of this shard may still be given back.
    takes: Padded<AtomicU64>,
    dirty: Flags,
}

/// The money of all wallets. Shared by `Arc`.
#[derive(Debug)]
pub struct Cells {
    cells: Box<[Cell]>,
    shards: Box<[ShardCell]>,
}

impl Cells {
    /// Empty cells for the given numbers of wallets and shards.
    #[must_use]
    pub fn new(wallets_max: u32, shards: u16) -> Self {
        assert!(0 < shards && shards <= SHARDS_MAX, "a wallet's word has a bit for each shard");
        let cell = || Cell { balance: AtomicU64::new(0), watchers: AtomicU64::new(0) };
        let shard = |_| ShardCell {
            fees: Padded(AtomicU64::new(0)),
            takes: Padded(AtomicU64::new(0)),
            dirty: Flags::new(wallets_max),
        };
        let cells = filled_with(wallets_max as usize, cell).into_boxed_slice();
        Self { cells, shards: (0..shards).map(shard).collect() }
    }

    /// How many wallets there is room for.
    #[must_use]
    pub fn wallets_max(&self) -> usize {
        self.cells.len()
    }

    /// The wallet's balance now, with debits subtracted that may still be given back.
    #[must_use]
    pub fn balance(&self, wallet: WalletNo) -> Collateral {
        // Acquire pairs with the releases in `debit` and `credit`.
        Collateral(self.cell(wallet).balance.load(Ordering::Acquire))
    }

    /// Takes all of `amount` out of the wallet, or takes nothing and returns false.
    #[must_use]
    pub fn debit(&self, wallet: WalletNo, amount: Collateral) -> bool {
        if amount.is_zero() {
            return true;
        }
        // AcqRel: acquires the credit it spends; releases the `begin_take` before it (CELLS-2).
        self.cell(wallet)
            .balance
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |balance| balance.checked_sub(amount.0))
            .is_ok()
    }

    /// Adds `amount` to the wallet.
    pub fn credit(&self, wallet: WalletNo, amount: Collateral) {
        if amount.is_zero() {
            return;
        }
        // AcqRel: whoever spends this credit sees everything that came before it.
        let before = self.cell(wallet).balance.fetch_add(amount.0, Ordering::AcqRel);
        assert!(before <= u64::MAX - amount.0, "all collateral that was ever credited fits u64");
    }

    /// Prefetches the wallet's cell.
    pub fn prefetch(&self, wallet: WalletNo) {
        ahead::prefetch(self.cell(wallet));
    }

    /// Adds to the fees that a shard has collected. Only that shard calls this.
    pub fn fee_credit(&self, shard: ShardNo, amount: Collateral) {
        if amount.is_zero() {
            return;
        }
        // Release: pairs with the Acquire in `fee_debit`. The shard has already claimed its frame, so
        // whoever pays out this fee claims a later position.
        self.shard(shard).fees.fetch_add(amount.0, Ordering::Release);
    }

    /// Takes `amount` out of the fees of all shards together; if they are less, takes nothing and
    /// returns false. Only the registrar calls this: meanwhile shards only add, so fees that it saw
    /// stay there.
    #[must_use]
    pub fn fee_debit(&self, amount: Collateral) -> bool {
        let seen = |shard: &ShardCell| shard.fees.load(Ordering::Acquire);
        if self.shards.iter().map(seen).sum::<u64>() < amount.0 {
            return false;
        }
        let mut left = amount.0;
        for shard in &self.shards {
            let taken = left.min(seen(shard));
            shard.fees.fetch_sub(taken, Ordering::AcqRel);
            left -= taken;
        }
        assert!(left == 0, "fees fell by somebody else's hand");
        true
    }

    /// The fees that a shard has collected and that are not paid out.
    #[must_use]
    pub fn fees(&self, shard: ShardNo) -> Collateral {
        Collateral(self.shard(shard).fees.load(Ordering::Relaxed))
    }

    /// Makes `shard` watch the wallet: its flag is raised when the wallet's cell falls. Call this
    /// before reading the cell for an order that may rest, so that no later fall goes unnoticed.
    pub fn watch(&self, wallet: WalletNo, shard: ShardNo) {
        self.cell(wallet).watchers.fetch_or(bit(shard), Ordering::Relaxed);
        // Pairs with the fence in `lowered` (CELLS-1).
        fence(Ordering::SeqCst);
    }

    /// Ends the watch. A flag that is up stays up.
    pub fn unwatch(&self, wallet: WalletNo, shard: ShardNo) {
        self.cell(wallet).watchers.fetch_and(!bit(shard), Ordering::Relaxed);
    }

    /// Raises the flag of every shard that watches the wallet. Call this once the debit is committed
    /// to the log.
    pub fn lowered(&self, wallet: WalletNo) {
        // Pairs with the fence in `watch` (CELLS-1).
        fence(Ordering::SeqCst);
        let mut watchers = self.cell(wallet).watchers.load(Ordering::Relaxed);
        while watchers != 0 {
            let shard = ShardNo(u16::try_from(watchers.trailing_zeros()).expect("a bit of 64"));
            watchers &= watchers - 1;
            self.shard(shard).dirty.raise(wallet);
        }
    }

    /// Raises a wallet's flag again for a shard that could not decide yet.
    pub fn raise(&self, shard: ShardNo, wallet: WalletNo) {
        self.shard(shard).dirty.raise(wallet);
    }

    /// Takes down one raised flag of the shard, the lowest wallet first. Only that shard calls it.
    #[must_use]
    pub fn next_dirty(&self, shard: ShardNo) -> Option<WalletNo> {
        self.shard(shard).dirty.take()
    }

    /// Whether any flag of the shard is up: one load.
    #[must_use]
    pub fn any_dirty(&self, shard: ShardNo) -> bool {
        self.shard(shard).dirty.any()
    }

    /// From here on the shard's debits may be given back. Only that shard calls it.
    pub fn begin_take(&self, shard: ShardNo) {
        let takes = &self.shard(shard).takes;
        let count = takes.load(Ordering::Relaxed);
        assert!(count.is_multiple_of(2), "a shard takes for one order at a time");
        // Relaxed: the debits that follow release it (CELLS-2).
        takes.store(count + 1, Ordering::Relaxed);
    }

    /// The shard has claimed its frame, or has given everything back. Only that shard calls it.
    pub fn end_take(&self, shard: ShardNo) {
        let takes = &self.shard(shard).takes;
        let count = takes.load(Ordering::Relaxed);
        assert!(!count.is_multiple_of(2), "a take ends once");
        // Release pairs with the Acquire in `takes_ended`: credits that gave debits back are visible.
        takes.store(count + 1, Ordering::Release);
    }

    /// The wallet's balance, if no debit by another shard than `reader` in it may still be given back;
    /// `None` while that is uncertain. Debits by `reader` itself count as spent.
    #[must_use]
    pub fn settled(&self, wallet: WalletNo, reader: ShardNo) -> Option<Collateral> {
        let before = self.takes_ended(reader)?;
        // Acquire: whoever sees a debit in this balance also sees the `begin_take` before it.
        let balance = self.balance(wallet);
        let after = self.takes_ended(reader)?;
        (before == after).then_some(balance)
    }

    /// The sum of the other shards' take counts, or `None` while one of them is taking. Counts only
    /// grow, so equal sums mean equal counts.
    fn takes_ended(&self, reader: ShardNo) -> Option<u64> {
        let mut sum = 0;
        for (index, shard) in self.shards.iter().enumerate() {
            if index == usize::from(reader.0) {
                continue;
            }
            // Acquire pairs with the Release in `end_take`.
            let count = shard.takes.load(Ordering::Acquire);
            if !count.is_multiple_of(2) {
                return None;
            }
            sum += count;
        }
        Some(sum)
    }

    fn cell(&self, wallet: WalletNo) -> &Cell {
        &self.cells[wallet.index()]
    }

    fn shard(&self, shard: ShardNo) -> &ShardCell {
        &self.shards[usize::from(shard.0)]
    }
}

const fn bit(shard: ShardNo) -> u64 {
    1 << shard.0
}

/// A set of wallets to which many threads add and from which one takes: words of flags, and above them
/// levels of words that say which words below are not zero, up to a single word.
#[derive(Debug)]
struct Flags {
    /// The flags first, the single word last.
    levels: Box<[Box<[AtomicU64]>]>,
}

impl Flags {
    fn new(flags: u32) -> Self {
        let mut levels = Vec::new();
        let mut words = (flags as usize).div_ceil(64).max(1);
        loop {
            levels.push((0..words).map(|_| AtomicU64::new(0)).collect());
            if words == 1 {
                return Self { levels: levels.into() };
            }
            words = words.div_ceil(64);
        }
    }

    fn raise(&self, wallet: WalletNo) {
        let mut index = wallet.index();
        for level in &self.levels {
            // AcqRel pairs with `take`: whoever takes the flag sees the lowered cell.
            level[index / 64].fetch_or(1 << (index % 64), Ordering::AcqRel);
            index /= 64;
        }
    }

    fn any(&self) -> bool {
        self.top().load(Ordering::Acquire) != 0
    }

    fn take(&self) -> Option<WalletNo> {
        while self.any() {
            if let Some(index) = self.take_below(self.levels.len() - 1, 0) {
                return Some(WalletNo(u32::try_from(index).expect("wallets are numbered in 32 bits")));
            }
        }
        None
    }

    /// Takes one flag from below word `word` of `level`; `None` if there is none, as summaries may be
    /// stale.
    fn take_below(&self, level: usize, word: usize) -> Option<usize> {
        loop {
            let bits = self.levels[level][word].load(Ordering::Acquire);
            if bits == 0 {
                return None;
            }
            let lowest = bits.trailing_zeros();
            let index = word * 64 + lowest as usize;
            // Cleared before the level below is read: a flag raised in between sets it anew (CELLS-3).
            self.levels[level][word].fetch_and(!(1 << lowest), Ordering::AcqRel);
            if level == 0 {
                return Some(index);
            }
            let found = self.take_below(level - 1, index);
            if self.levels[level - 1][index].load(Ordering::Acquire) != 0 {
                self.levels[level][word].fetch_or(1 << lowest, Ordering::AcqRel);
            }
            if found.is_some() {
                return found;
            }
        }
    }

    fn top(&self) -> &AtomicU64 {
        &self.levels[self.levels.len() - 1][0]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ALICE: WalletNo = WalletNo(0);
    const HERE: ShardNo = ShardNo(0);
    const THERE: ShardNo = ShardNo(1);

    #[test]
    fn a_debit_takes_all_or_nothing() {
        let cells = Cells::new(2, 1);
        cells.credit(ALICE, Collateral(10));
        assert!(!cells.debit(ALICE, Collateral(11)));
        assert_eq!(cells.balance(ALICE), Collateral(10));
        assert!(cells.debit(ALICE, Collateral(10)));
        assert_eq!(cells.balance(ALICE), Collateral::ZERO);
    }

    #[test]
    fn fees_of_all_shards_are_paid_out_together_and_never_more() {
        let cells = Cells::new(1, 3);
        for (shard, amount) in [(0, 5), (2, 4)] {
            cells.fee_credit(ShardNo(shard), Collateral(amount));
        }
        let left = || (0..3).map(|shard| cells.fees(ShardNo(shard)).0).sum::<u64>();
        for (amount, paid, expected) in
            [(10, false, 9), (6, true, 3), (4, false, 3), (3, true, 0), (1, false, 0)]
        {
            assert_eq!((cells.fee_debit(Collateral(amount)), left()), (paid, expected), "{amount}");
        }
    }

    #[test]
    fn only_those_who_watch_hear_that_funds_fell() {
        let cells = Cells::new(2, 2);
        cells.watch(ALICE, THERE);
        cells.lowered(ALICE);
        assert!(!cells.any_dirty(HERE));
        assert_eq!(cells.next_dirty(THERE), Some(ALICE));
        assert_eq!(cells.next_dirty(THERE), None);
        cells.unwatch(ALICE, THERE);
        cells.lowered(ALICE);
        assert!(!cells.any_dirty(THERE));
    }

    #[test]
    fn each_of_several_watchers_hears_until_it_ends_its_own_watch() {
        let cells = Cells::new(2, 3);
        cells.watch(ALICE, HERE);
        cells.watch(ALICE, THERE);
        cells.lowered(ALICE);
        assert_eq!([HERE, THERE].map(|shard| cells.next_dirty(shard)), [Some(ALICE); 2]);
        cells.unwatch(ALICE, HERE);
        cells.lowered(ALICE);
        assert_eq!([HERE, THERE].map(|shard| cells.next_dirty(shard)), [None, Some(ALICE)]);
    }

    #[test]
    fn every_raised_flag_comes_down_once_and_in_order() {
        for wallets in [1, 64, 65, 4_096, 4_097, 300_000] {
            let cells = Cells::new(wallets, 1);
            let raised: Vec<u32> = [0, 1, 63, 64, 4_095, 4_096, 262_143, 262_144, 299_999]
                .into_iter()
                .filter(|wallet| *wallet < wallets)
                .collect();
            for wallet in raised.iter().chain(&raised) {
                cells.raise(HERE, WalletNo(*wallet));
            }
            let taken: Vec<u32> =
                std::iter::from_fn(|| cells.next_dirty(HERE)).map(|wallet| wallet.0).collect();
            assert_eq!(taken, raised);
            assert!(!cells.any_dirty(HERE));
        }
    }

    #[test]
    fn money_lent_for_a_moment_is_nobodys_loss() {
        let cells = Cells::new(1, 2);
        cells.credit(ALICE, Collateral(10));
        cells.begin_take(THERE);
        assert!(cells.debit(ALICE, Collateral(4)));
        assert_eq!(cells.settled(ALICE, HERE), None);
        assert_eq!(cells.settled(ALICE, THERE), Some(Collateral(6)));
        cells.credit(ALICE, Collateral(4));
        cells.end_take(THERE);
        assert_eq!(cells.settled(ALICE, HERE), Some(Collateral(10)));
    }

    #[test]
    #[should_panic(expected = "one order at a time")]
    fn a_shard_never_takes_twice_at_once() {
        let cells = Cells::new(1, 1);
        cells.begin_take(HERE);
        cells.begin_take(HERE);
    }
}
