//! What a wallet holds in a market, and what its open orders there ask of it.
//!
//! One row per (wallet, market) pair that has shares or open orders. Collateral is not here: it is
//! in cells that all shards share. The row keeps the sums that the funding rule compares:
//!
//! - a sell is covered while the shares of its token cover all open sells of that token
//!   ([`Account::selling`] is never above [`Account::shares`]: ACCOUNT-1);
//! - a buy is covered while the wallet's cell covers all open buys *of the same market*
//!   ([`Account::buying`]); buys of other markets may count on the same money.
//!
//! ACCOUNT-2: a wallet's rows with open orders form a list, so that cancelling everything and
//! removing what is no longer covered touch no other rows. ACCOUNT-3: a wallet's
//! [`Wallet::largest`] is never below the largest `buying` of its rows, so that one comparison
//! shows that a fallen cell still covers everything.

use crate::domain::{Collateral, MarketNo, Outcome, Shares, WalletNo};
use crate::memory::ahead;
use crate::memory::arena::{Arena, Ends, Slot};
use crate::memory::pages::filled;
use crate::memory::table::{Index, spread};

/// What one wallet has in one market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The wallet.
    pub wallet: WalletNo,
    /// The market.
    pub market: MarketNo,
    /// Shares held, those in open sells included.
    pub shares: [Shares; 2],
    /// Shares in open sells.
    pub selling: [Shares; 2],
    /// What the open buys may cost, except those with collateral set aside.
    pub buying: Collateral,
    /// Its open orders, oldest first.
    pub orders: Ends,
    /// How many open orders it has.
    pub open: u32,
    next: Slot,
    previous: Slot,
    /// The walk that `spent` belongs to.
    walk: u64,
    spent: Collateral,
}

impl Account {
    /// Shares of `outcome` that no open sell counts on.
    #[must_use]
    pub fn free(&self, outcome: Outcome) -> Shares {
        self.shares[outcome.index()] - self.selling[outcome.index()]
    }

    /// What the walk with this number has tentatively spent of the wallet's cell.
    #[must_use]
    pub fn spent_in(&self, walk: u64) -> Collateral {
        if self.walk == walk { self.spent } else { Collateral::ZERO }
    }

    /// Counts `amount` as tentatively spent by the walk with this number.
    pub fn spend_in(&mut self, walk: u64, amount: Collateral) {
        self.spent = self.spent_in(walk) + amount;
        self.walk = walk;
    }

    /// Whether it is nothing but these many open orders.
    #[must_use]
    pub fn is_idle_without(&self, orders: usize) -> bool {
        self.open as usize == orders && self.shares == [Shares::ZERO; 2]
    }
}

/// What a shard knows of a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wallet {
    /// The first of its rows with open orders.
    first: Slot,
    /// How many rows it has.
    pub rows: u32,
    /// Open orders of this principal, whichever of its wallets they are of.
    pub open: u32,
    /// Cancels of this principal that wait for their orders.
    pub tombstones: u16,
    /// Whether this shard asked to be notified when the cell falls.
    pub watched: bool,
    /// At least the largest `buying` of its rows.
    pub largest: Collateral,
}

/// All rows of a shard.
#[derive(Debug)]
pub struct Accounts {
    rows: Arena<Account>,
    index: Index,
    wallets: Box<[Wallet]>,
    /// How many rows each market has.
    markets: Box<[u32]>,
    secret: u64,
}

impl Accounts {
    /// No rows, for wallets `0..wallets_max` and markets `0..markets_max`.
    #[must_use]
    pub fn with_capacity(accounts_max: u32, wallets_max: usize, markets_max: u32, secret: u64) -> Self {
        let wallet = Wallet {
            first: Slot::NONE,
            rows: 0,
            open: 0,
            tombstones: 0,
            watched: false,
            largest: Collateral::ZERO,
        };
        Self {
            rows: Arena::with_capacity(accounts_max),
            index: Index::with_capacity(accounts_max),
            wallets: filled(wallets_max, wallet).into_boxed_slice(),
            markets: filled(markets_max as usize, 0).into_boxed_slice(),
            secret,
        }
    }

    /// The row of (wallet, market), if there is one.
    #[must_use]
    #[inline]
    pub fn find(&self, wallet: WalletNo, market: MarketNo) -> Option<Slot> {
        let same = |number| {
            let row = &self.rows[Slot::from_number(number)];
            row.wallet == wallet && row.market == market
        };
        self.index.find(self.hash(wallet, market), same).map(Slot::from_number)
    }

    /// Prefetches what this shard knows of a wallet, and the index bucket of (wallet, market).
    pub fn prefetch_bucket(&self, wallet: WalletNo, market: MarketNo) {
        ahead::prefetch(&self.wallets[wallet.index()]);
        self.index.prefetch(self.hash(wallet, market));
    }

    /// Prefetches the row of (wallet, market). It reads the index bucket, so fetch that earlier.
    pub fn prefetch(&self, wallet: WalletNo, market: MarketNo) {
        if let Some(row) = self.index.guess(self.hash(wallet, market)) {
            self.prefetch_row(Slot::from_number(row));
        }
    }

    /// Prefetches a row.
    pub fn prefetch_row(&self, row: Slot) {
        ahead::prefetch_whole(&self.rows[row]);
    }

    /// The row of (wallet, market), made if need be; `None` if the table is full. A row that got
    /// neither shares nor orders is to be given back by [`Accounts::settle`].
    pub fn open(&mut self, wallet: WalletNo, market: MarketNo) -> Option<Slot> {
        if let Some(slot) = self.find(wallet, market) {
            return Some(slot);
        }
        let slot = self.rows.insert(Account {
            wallet,
            market,
            shares: [Shares::ZERO; 2],
            selling: [Shares::ZERO; 2],
            buying: Collateral::ZERO,
            orders: Ends::EMPTY,
            open: 0,
            next: Slot::NONE,
            previous: Slot::NONE,
            walk: 0,
            spent: Collateral::ZERO,
        })?;
        let indexed = self.index.insert(self.hash(wallet, market), slot.number());
        assert!(indexed, "the index holds as many as the arena");
        self.wallets[wallet.index()].rows += 1;
        self.markets[market.index()] += 1;
        Some(slot)
    }

    /// True if no row can be made.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows.is_full()
    }

    /// Gives a row back if it has neither shares nor open orders.
    #[inline]
    pub fn settle(&mut self, slot: Slot) {
        let row = &self.rows[slot];
        debug_assert!(row.selling[0] <= row.shares[0] && row.selling[1] <= row.shares[1], "ACCOUNT-1");
        if row.is_idle_without(0) {
            self.give_back(slot);
        }
    }

    #[cold]
    fn give_back(&mut self, slot: Slot) {
        let row = &self.rows[slot];
        assert!(row.buying.is_zero(), "without orders nothing is being bought");
        self.wallets[row.wallet.index()].rows -= 1;
        self.markets[row.market.index()] -= 1;
        self.index.remove(self.hash(row.wallet, row.market), slot.number());
        self.rows.remove(slot);
    }

    /// What the wallet holds of both outcomes.
    #[must_use]
    pub fn shares(&self, wallet: WalletNo, market: MarketNo) -> [Shares; 2] {
        self.find(wallet, market).map_or([Shares::ZERO; 2], |slot| self.rows[slot].shares)
    }

    /// Counts one open order more for a row.
    pub fn add_order(&mut self, slot: Slot) {
        let row = &mut self.rows[slot];
        row.open += 1;
        if row.open > 1 {
            return;
        }
        let wallet = &mut self.wallets[row.wallet.index()];
        let next = std::mem::replace(&mut wallet.first, slot);
        row.previous = Slot::NONE;
        row.next = next;
        if let Some(next) = next.some() {
            self.rows[next].previous = slot;
        }
    }

    /// Counts one open order fewer for a row.
    pub fn drop_order(&mut self, slot: Slot) {
        let row = &mut self.rows[slot];
        row.open -= 1;
        if row.open > 0 {
            return;
        }
        let Account { wallet, previous, next, .. } = *row;
        match previous.some() {
            Some(previous) => self.rows[previous].next = next,
            None => self.wallets[wallet.index()].first = next,
        }
        if let Some(next) = next.some() {
            self.rows[next].previous = previous;
        }
    }

    /// Counts what an open buy may cost.
    pub fn add_buying(&mut self, slot: Slot, cost: Collateral) {
        let row = &mut self.rows[slot];
        row.buying += cost;
        let wallet = &mut self.wallets[row.wallet.index()];
        wallet.largest = wallet.largest.max(row.buying);
    }

    /// The rows of a wallet that have open orders.
    pub fn with_orders(&self, wallet: WalletNo) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(self.wallets[wallet.index()].first.some(), |slot| self.rows[*slot].next.some())
    }

    /// Computes a wallet's largest `buying` anew, stores it and returns it.
    pub fn measure(&mut self, wallet: WalletNo) -> Collateral {
        let largest = self.with_orders(wallet).map(|slot| self.rows[slot].buying).max().unwrap_or_default();
        assert!(largest <= self.wallets[wallet.index()].largest, "ACCOUNT-3");
        self.wallets[wallet.index()].largest = largest;
        largest
    }

    /// What this shard knows of a wallet.
    #[must_use]
    pub const fn wallet(&self, wallet: WalletNo) -> &Wallet {
        &self.wallets[wallet.index()]
    }

    /// What this shard knows of a wallet, to change.
    pub const fn wallet_mut(&mut self, wallet: WalletNo) -> &mut Wallet {
        &mut self.wallets[wallet.index()]
    }

    /// Wallets with shares in a market; reads rows of all markets until it has met each of this one's, so none if the
    /// market has none.
    pub fn holders(&self, market: MarketNo) -> impl Iterator<Item = WalletNo> + '_ {
        let rows = self.index.numbers().map(|number| &self.rows[Slot::from_number(number)]);
        let of_market = rows.filter(move |row| row.market == market);
        let holding = of_market.take(self.markets[market.index()] as usize);
        holding.filter(|row| row.shares != [Shares::ZERO; 2]).map(|row| row.wallet)
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn hash(&self, wallet: WalletNo, market: MarketNo) -> u64 {
        spread(u64::from(wallet.0) << 32 | u64::from(market.0), self.secret)
    }
}

impl std::ops::Index<Slot> for Accounts {
    type Output = Account;

    fn index(&self, slot: Slot) -> &Account {
        &self.rows[slot]
    }
}

impl std::ops::IndexMut<Slot> for Accounts {
    fn index_mut(&mut self, slot: Slot) -> &mut Account {
        &mut self.rows[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: WalletNo = WalletNo(3);

    #[test]
    fn a_row_lives_while_it_has_shares_or_orders() {
        let mut accounts = Accounts::with_capacity(1, 4, 4, 1);
        let slot = accounts.open(ALICE, MarketNo(1)).unwrap();
        assert_eq!(accounts.open(ALICE, MarketNo(2)), None);
        accounts[slot].shares[0] = Shares(1);
        accounts.settle(slot);
        assert_eq!(accounts.find(ALICE, MarketNo(1)), Some(slot));
        assert_eq!(accounts.wallet(ALICE).rows, 1);
        accounts[slot].shares[0] = Shares::ZERO;
        accounts.settle(slot);
        assert_eq!(accounts.find(ALICE, MarketNo(1)), None);
        assert_eq!(accounts.wallet(ALICE).rows, 0);
        assert!(accounts.open(ALICE, MarketNo(2)).is_some());
    }

    #[test]
    fn rows_with_orders_are_found_by_their_wallet_and_the_largest_is_kept_as_a_bound() {
        let mut accounts = Accounts::with_capacity(8, 4, 4, 1);
        let slots = [1, 2, 3].map(|market| {
            let slot = accounts.open(ALICE, MarketNo(market)).unwrap();
            accounts.add_order(slot);
            accounts.add_buying(slot, Collateral(u64::from(market) * 10));
            slot
        });
        assert_eq!(accounts.wallet(ALICE).largest, Collateral(30));
        accounts[slots[2]].buying = Collateral::ZERO;
        accounts.drop_order(slots[1]);
        let rows: Vec<Slot> = accounts.with_orders(ALICE).collect();
        assert_eq!(rows, [slots[2], slots[0]]);
        accounts.add_buying(slots[2], Collateral(5));
        assert_eq!(accounts.wallet(ALICE).largest, Collateral(30), "never below the largest of its rows");
        assert_eq!(accounts.measure(ALICE), Collateral(10));
        assert_eq!(accounts.wallet(ALICE).largest, Collateral(10));
    }

    #[test]
    fn rows_whose_orders_come_and_go_in_any_order_stay_listed_once_each() {
        let mut accounts = Accounts::with_capacity(3, 4, 4, 1);
        let slots = [1, 2, 3].map(|market| accounts.open(ALICE, MarketNo(market)).unwrap());
        let mut listed: Vec<Slot> = Vec::new();
        for at in [0, 1, 2, 1, 0, 1, 0, 2, 2, 1, 0, 0, 2, 0, 1, 2] {
            let slot = slots[at];
            if listed.contains(&slot) {
                accounts.drop_order(slot);
                listed.retain(|other| *other != slot);
            } else {
                accounts.add_order(slot);
                listed.insert(0, slot);
            }
            assert_eq!(accounts.with_orders(ALICE).take(4).collect::<Vec<_>>(), listed);
        }
    }

    #[test]
    fn holders_are_of_their_market_alone() {
        let mut accounts = Accounts::with_capacity(8, 4, 4, 1);
        for (wallet, market, shares) in [(0, 1, 5), (1, 1, 0), (2, 1, 7), (0, 2, 3)] {
            let slot = accounts.open(WalletNo(wallet), MarketNo(market)).unwrap();
            accounts[slot].shares[1] = Shares(shares);
        }
        let holders = |accounts: &Accounts, market| {
            let mut holders: Vec<u32> = accounts.holders(MarketNo(market)).map(|wallet| wallet.0).collect();
            holders.sort_unstable();
            holders
        };
        for (market, expected) in [(1, vec![0, 2]), (2, vec![0]), (3, vec![])] {
            assert_eq!(holders(&accounts, market), expected, "market {market}");
        }
        let slot = accounts.find(WalletNo(0), MarketNo(2)).unwrap();
        accounts[slot].shares[1] = Shares::ZERO;
        accounts.settle(slot);
        assert_eq!((holders(&accounts, 1), holders(&accounts, 2)), (vec![0, 2], vec![]));
    }

    #[test]
    fn a_walk_forgets_what_another_walk_spent() {
        let mut accounts = Accounts::with_capacity(1, 4, 4, 1);
        let slot = accounts.open(ALICE, MarketNo(1)).unwrap();
        accounts[slot].spend_in(1, Collateral(5));
        accounts[slot].spend_in(1, Collateral(5));
        assert_eq!(accounts[slot].spent_in(1), Collateral(10));
        assert_eq!(accounts[slot].spent_in(2), Collateral::ZERO);
        accounts[slot].spend_in(2, Collateral(3));
        assert_eq!(accounts[slot].spent_in(2), Collateral(3));
    }
}
