//! The wallets' state as parts of a snapshot: rows in their order, from which the lists are rebuilt.

use super::{Atto, Holding, Lot, Period, Wallets};
use crate::domain::WalletNo;
use crate::memory::sections::{Name, Part, Sink, put_all, take};
use crate::memory::wire::{Damage, Input, Out, Wire, structs};

/// Everything that a [`Wallets`] consists of. A part that changes raises the version of snapshots.
const PARTS: &[Part<Wallets>] = &[
    Part {
        name: *b"w.held  ",
        put: |wallets, out| wallets.holdings.rows().iter().for_each(|row| out.value(row)),
        take: |wallets, input| Wire::take(input).map(|row| wallets.holdings.take(row)),
    },
    Part {
        name: *b"w.acts  ",
        put: |wallets, out| wallets.activity.rows().iter().for_each(|row| out.value(row)),
        take: |wallets, input| wallets.activity.take(Wire::take(input)?),
    },
    Part {
        name: *b"w.stand ",
        put: |wallets, out| wallets.standings.kept().for_each(|standing| out.value(&standing)),
        take: |wallets, input| wallets.standings.take_wallet(&Wire::take(input)?),
    },
    Part {
        name: *b"w.volume",
        put: |wallets, out| wallets.standings.volumes().iter().for_each(|volume| out.value(volume)),
        take: |wallets, input| Wire::take(input).map(|volume| wallets.standings.take_volume(volume)),
    },
];

impl Wallets {
    /// Puts the whole state into `sink`; the same state always gives the same sections.
    pub fn keep(&self, sink: &mut dyn Sink) {
        put_all(self, PARTS, sink);
    }

    /// Takes one section of a state that was kept; false if the section is not the wallets'.
    pub fn take_section(&mut self, name: Name, bytes: &[u8]) -> Result<bool, Damage> {
        take(self, PARTS, name, bytes)
    }

    /// Rebuilds the lists when all sections were taken. Refuses rows of wallets or markets that are not there:
    /// there are this many of each.
    pub fn complete(&mut self, wallets: usize, markets: usize) -> Result<(), Damage> {
        self.holdings.complete(wallets, markets)?;
        self.activity.complete(wallets, markets)?;
        let standings = &self.standings;
        if wallets < standings.board(Period::All).len() || markets < standings.volumes().len() {
            return Err(Damage::of("standing of a wallet"));
        }
        let traded = |wallet| self.holdings.of_wallet(wallet).filter(|row| row.traded).count();
        let mut numbers = (0..).map(WalletNo).take(wallets);
        if numbers.all(|wallet| traded(wallet) == standings.markets(wallet) as usize) {
            Ok(())
        } else {
            Err(Damage::of("markets of a wallet"))
        }
    }
}

structs! {
    Holding { wallet, market, traded, lots }
    Lot { shares, bought, cost, realized, closed_shares, closed_cost, changed }
}

impl Wire for Atto {
    fn put(&self, out: &mut impl Out) {
        self.0.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Wire::take(input).map(Self)
    }
}

impl Wire for [Lot; 2] {
    fn put(&self, out: &mut impl Out) {
        for lot in self {
            lot.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Ok([Lot::take(input)?, Lot::take(input)?])
    }
}
