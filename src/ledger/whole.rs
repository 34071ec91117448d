//! What the rows of a state that was kept must say of each other. Whoever goes on from it takes all this for
//! granted: the registry and the shards that are restored, the records that are applied, the answers.

use super::{CHECKPOINTS_MAX, Ledger, OrderRow};
use crate::domain::{MarketNo, Mode, WalletKind, WalletNo};
use std::collections::HashSet;
use std::hash::Hash;

/// What cannot be, if something cannot.
pub(super) type Checked = Result<(), &'static str>;

const fn require(holds: bool, field: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(field) }
}

impl Ledger {
    /// Names the first thing that no log can have led to; conservation is [`Ledger::conserved`]'s.
    pub(crate) fn check_whole(&self) -> Checked {
        self.check_wallets()?;
        self.check_catalog()?;
        self.check_orders()?;
        self.check_places()
    }

    fn check_wallets(&self) -> Checked {
        for (row, wallet) in self.wallets.iter().zip((0..).map(WalletNo)) {
            require(row.wallet == wallet, "number of a wallet")?;
            let is_own = row.principal == Some(wallet);
            let owner = row.principal.map(|principal| self.wallet(principal));
            let owned = owner.is_none_or(|owner| owner.is_some_and(|owner| owner.kind == WalletKind::Eoa));
            require(owned && is_own == (row.kind == WalletKind::Eoa), "principal of a wallet")?;
            require(!row.frozen || is_own, "freeze of a wallet")?;
        }
        require(differ(self.wallets.iter().map(|row| row.address)), "address of a wallet")?;
        let fees = self.wallets.iter().filter(|row| row.kind == WalletKind::Fee).count();
        require(fees <= 1, "kind of a wallet")?;
        let named = self.keys.keys().map(|(principal, _)| principal);
        let named = named.chain(self.switches.iter().map(|(principal, _)| principal));
        let mut named = named.chain(self.breakers.keys().map(|(principal, _)| principal));
        require(named.all(|principal| self.is_wallet(*principal)), "principal of a key")?;
        let mut breakers = self.breakers.values();
        require(breakers.all(|row| !row.quantity.is_zero() && 0 < row.interval_ms), "breaker of a key")
    }

    fn check_catalog(&self) -> Checked {
        require((0..).zip(&self.events).all(|(number, row)| row.event == number), "number of an event")?;
        require((0..).zip(&self.items).all(|(number, row)| row.item == number), "number of an item")?;
        for (row, market) in self.markets.iter().zip((0..).map(MarketNo)) {
            require(row.market == market, "number of a market")?;
            let event = row.event.is_none_or(|event| (event as usize) < self.events.len());
            require(event, "event of a market")?;
            require(row.payout.is_some() == (row.mode == Mode::Resolved), "payout of a market")?;
        }
        require(differ(self.markets.iter().map(|row| row.condition)), "condition of a market")?;
        require(differ(self.markets.iter().flat_map(|row| row.tokens)), "token of a market")?;
        require(differ(self.markets.iter().map(|row| row.market_id)), "id of a market")
    }

    /// The live lists of markets name the live orders, each once.
    fn check_orders(&self) -> Checked {
        require(self.by_id.len() == self.orders.len() + self.acts.len(), "id of an order")?;
        require(self.orders.len() as u64 <= self.orders_ever, "number of orders")?;
        let mut live = 0;
        for row in self.orders.values() {
            let market = self.market(row.market).ok_or("market of an order")?;
            let wallets = self.is_wallet(row.wallet) && self.is_wallet(row.principal);
            require(wallets, "wallet of an order")?;
            require(row.position < self.end, "position of an order")?;
            require(row.is_live() != row.open.is_zero(), "open shares of an order")?;
            if row.is_live() {
                live += 1;
                require(market.live.contains(&row.position), "live orders of a market")?;
                require(market.tick.holds(row.price), "price of an order")?;
            }
        }
        let listed: usize = self.markets.iter().map(|market| market.live.len()).sum();
        require(live == listed, "live orders of a market")?;
        let mut placed = self.places.keys();
        require(placed.all(|order| self.order_at(*order).is_some_and(OrderRow::is_live)), "place of an order")
    }

    /// Whatever names a wallet or a market names one that there is.
    fn check_places(&self) -> Checked {
        let is_place = |wallet, market| self.is_wallet(wallet) && self.market(market).is_some();
        require(self.holdings.keys().all(|&(wallet, market)| is_place(wallet, market)), "holding")?;
        let mut acts = self.acts.values();
        require(acts.all(|row| row.position < self.end && is_place(row.wallet, row.market)), "act")?;
        require(self.money.values().all(|row| self.is_wallet(row.wallet)), "wallet of a reference")?;
        require(self.tombstones().all(|row| self.is_wallet(row.principal)), "principal of a tombstone")?;
        let ends = self.checkpoints.iter().map(|(end, _)| end);
        let in_order = ends.is_sorted_by(|one, next| one < next);
        let last = self.checkpoints.back().is_none_or(|(last, _)| *last <= self.end);
        require(in_order && last && self.checkpoints.len() <= CHECKPOINTS_MAX, "remembered hashes")
    }

    fn is_wallet(&self, wallet: WalletNo) -> bool {
        wallet.index() < self.wallets.len()
    }
}

fn differ<T: Eq + Hash>(values: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    values.into_iter().all(|value| seen.insert(value))
}
