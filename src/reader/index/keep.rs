//! Which part of the indices a snapshot keeps, and how the rest is rebuilt.

use super::{Index, LastTrade, Leg, PrincipalIndex, Trade, number};
use crate::domain::amount::ONE;
use crate::domain::{Position, Shares, TimeMs, WalletNo};
use crate::ledger::Ledger;
use crate::memory::wire::{Damage, structs};

/// What is kept of a wallet number.
pub(in crate::reader) struct KeptPrincipal {
    wallets: Vec<WalletNo>,
    /// Indices of trades, ascending.
    trades: Vec<u32>,
    events: u64,
}

/// A trade as it is kept.
pub(in crate::reader) struct KeptTrade {
    position: Position,
    time: TimeMs,
    shares: Shares,
    price_millionths: u64,
    legs: Box<[Leg]>,
}

/// What is kept of a market.
pub(in crate::reader) struct KeptMarket {
    last_trade: Option<LastTrade>,
    /// The times of trades, each with all that was traded by then.
    tape: Vec<(TimeMs, u64)>,
    sequence: u64,
}

structs! {
    KeptTrade { position, time, shares, price_millionths, legs }
    Leg { maker, shares }
    LastTrade { price, side }
    KeptPrincipal { wallets, trades, events }
    KeptMarket { last_trade, tape, sequence }
}

impl Index {
    pub(in crate::reader) fn trades(&self) -> impl Iterator<Item = KeptTrade> {
        (0..number(self.trades.len())).map(|index| {
            let Trade { position, time, shares, price_millionths, legs } = self.trade(index);
            KeptTrade { position, time, shares, price_millionths, legs: legs.into() }
        })
    }

    pub(in crate::reader) fn take_trade(&mut self, kept: &KeptTrade) -> Result<(), Damage> {
        let &KeptTrade { position, time, shares, price_millionths, ref legs } = kept;
        // A mean of prices, all of which are below one.
        if ONE < price_millionths {
            return Err(Damage::of("price of a trade"));
        }
        let last = self.trades.last();
        if last.is_some_and(|last| position <= last.position) || legs.iter().any(|leg| position <= leg.maker)
        {
            return Err(Damage::of("position of a trade"));
        }
        self.push_trade(&Trade { position, time, shares, price_millionths, legs });
        Ok(())
    }

    pub(in crate::reader) fn principals(&self) -> impl Iterator<Item = KeptPrincipal> {
        self.principals.iter().map(|row| KeptPrincipal {
            wallets: row.wallets.clone(),
            trades: row.trades.clone(),
            events: row.events,
        })
    }

    pub(in crate::reader) fn take_principal(&mut self, kept: KeptPrincipal) {
        let KeptPrincipal { wallets, trades, events } = kept;
        self.principals.push(PrincipalIndex { wallets, trades, events, ..PrincipalIndex::default() });
    }

    pub(in crate::reader) fn markets(&self) -> impl Iterator<Item = KeptMarket> {
        self.markets.iter().zip(self.catalog.markets()).map(|(row, listed)| KeptMarket {
            last_trade: row.last_trade,
            tape: listed.tape().to_vec(),
            sequence: row.sequence,
        })
    }

    /// Takes the next market, whose row and event the ledger already has.
    pub(in crate::reader) fn take_market(&mut self, kept: KeptMarket, ledger: &Ledger) -> Result<(), Damage> {
        let KeptMarket { last_trade, tape, sequence } = kept;
        let row = ledger.markets().get(self.markets.len());
        let row = row.ok_or(Damage::of("rows of the indices"))?;
        if !tape.is_sorted_by_key(|(_, traded)| traded) {
            return Err(Damage::of("tape of a market"));
        }
        self.list_events(ledger);
        self.add_market(ledger, row.market);
        let market = &mut self.markets[row.market.index()];
        (market.last_trade, market.sequence) = (last_trade, sequence);
        let mut before = 0;
        for (time, traded) in tape {
            self.catalog.trade(row.market.0, time, traded - before);
            before = traded;
        }
        Ok(())
    }

    fn list_events(&mut self, ledger: &Ledger) {
        for row in &ledger.events()[self.catalog.events().len()..] {
            self.catalog.put_event(row.event, ledger);
        }
    }

    /// Rebuilds what the ledger's rows imply: books and live orders.
    pub(in crate::reader) fn complete(&mut self, ledger: &Ledger) -> Result<(), Damage> {
        if self.principals.len() != ledger.wallets().len() || self.markets.len() != ledger.markets().len() {
            return Err(Damage::of("rows of the indices"));
        }
        if self.trades.last().is_some_and(|last| ledger.end() <= last.position) {
            return Err(Damage::of("position of a trade"));
        }
        self.check_principals(ledger)?;
        self.list_events(ledger);
        for row in ledger.markets() {
            let levels = &mut self.markets[row.market.index()].levels;
            for order in ledger.live_orders(row.market) {
                levels.add(order.outcome, order.fields.side, order.price, order.open);
                self.principals[order.principal.index()].live.insert(order.position);
            }
            self.catalog.set_resting(row.market.0, levels.value());
        }
        ledger.items().iter().for_each(|row| self.catalog.put_item(row.kind, row.item, ledger));
        Ok(())
    }

    /// Every owned wallet is in the list of its owner and in no other, and every list names trades in order.
    fn check_principals(&self, ledger: &Ledger) -> Result<(), Damage> {
        let mut listed = vec![false; self.principals.len()];
        for (row, wallet) in self.principals.iter().zip(ledger.wallets()) {
            for owned in &row.wallets {
                let owner = ledger.wallet(*owned).and_then(|owned| owned.principal);
                if owner != Some(wallet.wallet) || std::mem::replace(&mut listed[owned.index()], true) {
                    return Err(Damage::of("wallets of a principal"));
                }
            }
            let in_order = row.trades.is_sorted_by(|one, next| one < next);
            let there = row.trades.last().is_none_or(|last| (*last as usize) < self.trades.len());
            if !in_order || !there {
                return Err(Damage::of("trades of a principal"));
            }
        }
        let mut rows = ledger.wallets().iter().zip(listed);
        let agree = rows.all(|(wallet, listed)| listed == wallet.principal.is_some());
        if agree { Ok(()) } else { Err(Damage::of("owner of a wallet")) }
    }
}
