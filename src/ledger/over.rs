//! Orders that are over and are in a snapshot's archive instead of in memory.
//!
//! Live orders and those that ended since the last snapshot are in memory. Whoever makes a snapshot
//! writes the latter into runs ([`Archive`]) and forgets them. The reader, which follows the log
//! meanwhile, is given these runs and sheds what they hold, a few orders at a time. Records never name
//! an order that is over, so application looks into memory only, except that it asks the archive's index
//! too whether an id was placed before.
//!
//! | an order that is over | bytes in memory |
//! |---|---|
//! | as a row | 368, its list of trades, and some 100 in the tables by position and id |
//! | in a run | 32: its position, where its row begins, and the beginning of its id |
//!
//! A row of the archive that cannot be read is a [`Fault`], which names file and place, for whoever asks
//! for that row and for nobody else. If the directory `snapshots` is removed, the next start makes all
//! of it again from segments.

use super::rows::{OrderRow, OrderStamp};
use super::{Ledger, OrderState};
use crate::domain::{OrderId, Position};
use crate::journal::{Archive, ArchiveRow, Fault};
use crate::memory::wire::{Damage, Input, Wire};
use std::borrow::Cow;

impl Ledger {
    /// From here on, orders that are over are also looked for in `archive`, which has at least what the
    /// one before had.
    pub fn set_archive(&mut self, archive: Archive) {
        assert!(self.archive.rows() <= archive.rows(), "an archive only grows");
        self.archive = archive;
        self.shed_from = Some(Position(0));
    }

    /// Sets the archive of the snapshot at `position` as soon as everything before it is applied: until then the
    /// archive has orders that are still to be placed, and would seem to be placed twice.
    pub fn set_archive_at(&mut self, position: Position, archive: Archive) {
        self.coming_archive = Some((position, archive));
        self.take_coming_archive();
    }

    pub(super) fn take_coming_archive(&mut self) {
        if let Some((_, archive)) = self.coming_archive.take_if(|(position, _)| *position <= self.end) {
            self.set_archive(archive);
        }
    }

    /// Where orders that are over and not in memory are.
    #[must_use]
    pub const fn archive(&self) -> &Archive {
        &self.archive
    }

    /// True if there may be orders in memory that the archive has too.
    #[must_use]
    pub const fn can_shed(&self) -> bool {
        self.shed_from.is_some()
    }

    /// Compares the next `orders_max` orders in memory, by position, with the archive and forgets those
    /// that it has. An order that is over never changes, so the state stays the same.
    pub fn shed(&mut self, orders_max: usize) {
        let Some(from) = self.shed_from else {
            return;
        };
        let mut next = None;
        let mut held = Vec::new();
        for (compared, (&position, row)) in self.orders.range(from..).enumerate() {
            if compared == orders_max {
                next = Some(position);
                break;
            }
            if !row.is_live() && self.archive.holds(position) {
                held.push(position);
            }
        }
        for position in held {
            let row = self.orders.remove(&position).expect("just seen");
            self.order_by_id.remove(&row.id);
        }
        self.shed_from = next;
    }

    /// How many orders are in memory.
    #[must_use]
    pub fn orders_in_memory(&self) -> usize {
        self.orders.len()
    }

    /// The order placed at `position`, in memory or in the archive.
    pub fn find_at(&self, position: Position) -> Result<Option<Cow<'_, OrderRow>>, Fault> {
        match self.order_at(position) {
            Some(row) => Ok(Some(Cow::Borrowed(row))),
            None => Ok(self.archive.at(position, decode)?.map(Cow::Owned)),
        }
    }

    /// The order with this id, in memory or in the archive.
    pub fn find(&self, id: &OrderId) -> Result<Option<Cow<'_, OrderRow>>, Fault> {
        match self.order(id) {
            Some(row) => Ok(Some(Cow::Borrowed(row))),
            None => Ok(self.find_archived(id)?.map(Cow::Owned)),
        }
    }

    pub(super) fn find_archived(&self, id: &OrderId) -> Result<Option<OrderRow>, Fault> {
        let rows = self.archive.by_id_prefix(prefix(id), decode)?;
        Ok(rows.into_iter().find(|row| row.id == *id))
    }

    /// How many orders there ever were.
    #[must_use]
    pub fn orders_ever(&self) -> usize {
        let only_here = self.orders.keys().filter(|position| !self.archive.holds(**position)).count();
        only_here + self.archive.rows()
    }

    /// The orders in memory that are over, as rows of an archive.
    #[must_use]
    pub fn over(&self) -> Vec<ArchiveRow> {
        self.orders().filter(|row| !row.is_live()).map(archive_row).collect()
    }

    /// Forgets the orders that are over, which an archive must have.
    pub fn forget_over(&mut self) {
        self.orders.retain(|_, row| row.is_live());
        let orders = &self.orders;
        self.order_by_id.retain(|_, position| orders.contains_key(position));
    }

    /// Passes the stamps of archived orders to `take`, the newest run first, as long as `wants` returns
    /// true. `wants` is called with the highest signed time of what is left.
    pub fn archived_stamps(
        &self,
        wants: impl FnMut(u64) -> bool,
        mut take: impl FnMut(Vec<OrderStamp>),
    ) -> Result<(), Fault> {
        self.archive.stamps(wants, |bytes| {
            let mut input = Input::new(bytes);
            let mut stamps = Vec::new();
            while input.finish().is_err() {
                stamps.push(OrderStamp::take(&mut input)?);
            }
            take(stamps);
            Ok(())
        })
    }
}

/// Decodes a row of one archive for the next one.
pub fn archived_again(bytes: &[u8]) -> Result<ArchiveRow, Damage> {
    decode(bytes).map(|row| archive_row(&row))
}

fn archive_row(row: &OrderRow) -> ArchiveRow {
    let (mut stamp, mut bytes) = (Vec::with_capacity(80), Vec::with_capacity(400));
    OrderStamp::of(row).put(&mut stamp);
    row.put(&mut bytes);
    ArchiveRow {
        position: row.position,
        id_prefix: prefix(&row.id),
        stamp_ms: row.fields.timestamp_ms,
        stamp,
        row: bytes,
    }
}

impl OrderStamp {
    /// The stamp of an order.
    #[must_use]
    pub const fn of(row: &OrderRow) -> Self {
        Self {
            position: row.position,
            id: row.id,
            stamp_ms: row.fields.timestamp_ms,
            principal: row.principal,
            market: row.market,
            side: row.fields.side,
            killed: match row.state {
                OrderState::Killed(reject) => Some(reject),
                _ => None,
            },
            taken: row.taken,
            taken_shares: row.taken_shares,
        }
    }
}

fn prefix(id: &OrderId) -> u64 {
    u64::from_be_bytes(id.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
}

fn decode(bytes: &[u8]) -> Result<OrderRow, Damage> {
    OrderRow::take(&mut Input::new(bytes))
}
