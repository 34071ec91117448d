//! The reader's state as parts of a snapshot: the one list of what must be kept.
//!
//! | state | kept by | or rebuilt by |
//! |---|---|---|
//! | every table of the ledger | [`crate::ledger::Ledger::keep`] | |
//! | positions, activity and standing of wallets | [`Wallets::keep`](crate::wallet::Wallets) | |
//! | owners, lists of trades, last prices, prices over time, sequences of streams | [`PARTS`] | |
//! | levels, live orders, the catalog, names | | [`Reader::complete`], from the ledger's rows |
//!
//! A read model gets a part of its own in the first of these columns if no row of the ledger implies what it
//! knows, else a line in [`Reader::complete`]. The tests compare every answer of a restored reader with that
//! of one that followed all frames, so an omission here is noticed.

use super::Reader;
use crate::domain::Position;
use crate::journal::Archive;
use crate::memory::sections::{Name, Part, Sink, put_all, take};
use crate::memory::wire::{Damage, Wire};

/// What neither the ledger has nor its rows imply. A part that changes raises the version of snapshots.
const PARTS: &[Part<Reader>] = &[
    Part {
        name: *b"trades2 ",
        put: |reader, out| reader.index.trades().for_each(|trade| out.value(&trade)),
        take: |reader, input| reader.index.take_trade(&Wire::take(input)?),
    },
    Part {
        name: *b"walleti2",
        put: |reader, out| reader.index.principals().for_each(|kept| out.value(&kept)),
        take: |reader, input| Wire::take(input).map(|kept| reader.index.take_principal(kept)),
    },
    Part {
        name: *b"marketi3",
        put: |reader, out| reader.index.markets().for_each(|kept| out.value(&kept)),
        take: |reader, input| reader.index.take_market(Wire::take(input)?, &reader.ledger),
    },
    Part {
        name: *b"prices  ",
        put: |reader, out| reader.history.markets().iter().for_each(|bars| out.value(bars)),
        take: |reader, input| Wire::take(input).map(|bars| reader.history.take_market(bars)),
    },
];

impl Reader {
    /// Puts the whole state into `sink`; the same state always gives the same sections.
    pub fn keep(&self, sink: &mut dyn Sink) {
        self.ledger.keep(sink);
        self.model().keep(sink);
        put_all(self, PARTS, sink);
    }

    /// Sets the `archive` in which what is over is also searched.
    pub fn set_archive(&mut self, archive: Archive) {
        self.ledger.set_archive(archive);
    }

    /// See [`crate::ledger::Ledger::set_archive_at`].
    pub fn set_archive_at(&mut self, position: Position, archive: Archive) {
        self.ledger.set_archive_at(position, archive);
    }

    /// True if [`Self::shed`] has something to do.
    #[must_use]
    pub const fn can_shed(&self) -> bool {
        self.ledger.can_shed()
    }

    /// Forgets what is over and in the archive, after looking at `rows_max` rows; the state stays the same.
    pub fn shed(&mut self, rows_max: usize) {
        self.ledger.shed(rows_max);
    }

    /// Forgets all that is over, once an archive has it; the state stays the same.
    pub fn forget_over(&mut self) {
        self.ledger.forget_over();
    }

    /// Takes one section of a kept state into a reader that began empty. Sections come in the order in which
    /// they were put.
    pub fn take_section(&mut self, name: Name, bytes: &[u8]) -> Result<(), Damage> {
        if self.ledger.take_section(name, bytes)? {
            return Ok(());
        }
        if self.ledger.frames() == 0 {
            return Err(Damage::of("order of the sections"));
        }
        let known = self.wallets.kept_mut().take_section(name, bytes)? || take(self, PARTS, name, bytes)?;
        if known { Ok(()) } else { Err(Damage::of("name of the section")) }
    }

    /// Rebuilds what follows from the sections, when all of them were taken, and checks that they agree.
    pub fn complete(&mut self) -> Result<(), Damage> {
        if self.ledger.markets().len() < self.history.markets().len() {
            return Err(Damage::of("rows of the prices"));
        }
        self.wallets.complete(&self.ledger)?;
        self.index.complete(&self.ledger)
    }
}
