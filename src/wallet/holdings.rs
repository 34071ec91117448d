//! Lots by wallet and by market.
//!
//! A row is made when a wallet first touches a market and is never removed: closed positions are
//! asked for too. Rows are in the order in which they were made; the indices are made from them.

use super::lot::Lot;
use crate::domain::{MarketNo, Outcome, WalletNo};
use crate::memory::wire::Damage;
use std::collections::BTreeMap;

/// Both outcomes of one market in one wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The wallet.
    pub wallet: WalletNo,
    /// The market.
    pub market: MarketNo,
    /// True if the wallet ever bought or sold in this market: a split is no trade.
    pub traded: bool,
    /// The two outcomes.
    pub lots: [Lot; 2],
}

impl Holding {
    /// The lot of one outcome.
    #[must_use]
    pub const fn lot(&self, outcome: Outcome) -> &Lot {
        &self.lots[outcome.index()]
    }

    /// True if it holds both outcomes, so that pairs can be merged.
    #[must_use]
    pub const fn is_mergeable(&self) -> bool {
        self.lots[0].is_open() && self.lots[1].is_open()
    }
}

/// What every wallet holds and held.
#[derive(Debug, Default)]
pub struct Holdings {
    rows: Vec<Holding>,
    /// A tree, which has no step at which all of it moves: that would hold up every read and stream.
    row_of: BTreeMap<(WalletNo, MarketNo), u32>,
    by_wallet: Vec<Vec<u32>>,
    by_market: Vec<Vec<u32>>,
}

impl Holdings {
    /// What `wallet` holds or held in `market`, if it ever did.
    #[must_use]
    pub fn of(&self, wallet: WalletNo, market: MarketNo) -> Option<&Holding> {
        self.row_of.get(&(wallet, market)).map(|&row| &self.rows[row as usize])
    }

    /// Everything that `wallet` holds or held, in the order in which it first did.
    #[must_use]
    pub fn of_wallet(&self, wallet: WalletNo) -> impl ExactSizeIterator<Item = &Holding> {
        self.listed(&self.by_wallet, wallet.index())
    }

    /// What every wallet holds or held of `market`, in the order in which they first did.
    #[must_use]
    pub fn of_market(&self, market: MarketNo) -> impl ExactSizeIterator<Item = &Holding> {
        self.listed(&self.by_market, market.index())
    }

    fn listed<'a>(
        &'a self,
        lists: &'a [Vec<u32>],
        index: usize,
    ) -> impl ExactSizeIterator<Item = &'a Holding> {
        let rows = lists.get(index).map_or(&[][..], Vec::as_slice);
        rows.iter().map(|&row| &self.rows[row as usize])
    }

    /// The row of `wallet` in `market`, made if there is none.
    pub(super) fn of_mut(&mut self, wallet: WalletNo, market: MarketNo) -> &mut Holding {
        let row = match self.row_of.get(&(wallet, market)) {
            Some(&row) => row,
            None => self.add(Holding { wallet, market, traded: false, lots: [Lot::default(); 2] }),
        };
        &mut self.rows[row as usize]
    }

    /// Every row, in the order in which they were made.
    #[must_use]
    pub fn rows(&self) -> &[Holding] {
        &self.rows
    }

    /// Takes the next row of a state that was kept; it is found after [`Self::complete`].
    pub(super) fn take(&mut self, holding: Holding) {
        self.rows.push(holding);
    }

    /// Lists the rows that were taken, if each is of another one of this many wallets and markets.
    pub(super) fn complete(&mut self, wallets: usize, markets: usize) -> Result<(), Damage> {
        for row in 0..self.rows.len() {
            let Holding { wallet, market, .. } = self.rows[row];
            let is_there = wallet.index() < wallets && market.index() < markets;
            if !is_there || self.row_of.contains_key(&(wallet, market)) {
                return Err(Damage::of("place of a holding"));
            }
            self.enlist(number(row));
        }
        Ok(())
    }

    /// Adds a row after all others and returns its index.
    fn add(&mut self, holding: Holding) -> u32 {
        let row = number(self.rows.len());
        self.rows.push(holding);
        self.enlist(row);
        row
    }

    fn enlist(&mut self, row: u32) {
        let Holding { wallet, market, .. } = self.rows[row as usize];
        self.row_of.insert((wallet, market), row);
        list(&mut self.by_wallet, wallet.index()).push(row);
        list(&mut self.by_market, market.index()).push(row);
    }
}

fn number(row: usize) -> u32 {
    u32::try_from(row).expect("four billion holdings fit no machine")
}

/// The list of `index`, made if there is none yet.
pub(super) fn list(lists: &mut Vec<Vec<u32>>, index: usize) -> &mut Vec<u32> {
    if lists.len() <= index {
        lists.resize_with(index + 1, Vec::new);
    }
    &mut lists[index]
}
