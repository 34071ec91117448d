//! What is over and is in a snapshot's archive instead of in memory: orders, and signed splits, merges and redeems.
//!
//! Live orders and what ended since the last snapshot are in memory. Whoever makes a snapshot writes the
//! latter into runs ([`Archive`]) and forgets it. The reader, which follows the log meanwhile, is given
//! these runs and sheds what they hold, a few rows at a time. Records never name an order that is over, so
//! application looks into memory only, except that it asks the archive's index too whether a digest was
//! applied before.
//!
//! | what is over | bytes in memory |
//! |---|---|
//! | an order's row | 368, its list of trades, and some 100 in the tables by position and id |
//! | a split, merge or redeem's row | 80, and some 100 likewise |
//! | either in a run | 32: its position, where its row begins, and the beginning of its id |
//!
//! A row of the archive that cannot be read is a [`Fault`], which names file and place, for whoever asks
//! for that row and for nobody else. If the directory `snapshots` is removed, the next start makes all
//! of it again from segments.

use super::keep::{ACT, ORDER};
use super::rows::{ActRow, OrderRow, OrderStamp, Signed};
use super::{Ledger, OrderState};
use crate::domain::{OrderId, Position};
use crate::journal::{Archive, ArchiveRow, Fault};
use crate::memory::wire::{Damage, Input, Wire};
use std::borrow::Cow;

impl Ledger {
    /// From here on, what is over is also looked for in `archive`, which has at least what the one before had.
    pub fn set_archive(&mut self, archive: Archive) {
        assert!(self.archive.rows() <= archive.rows(), "an archive only grows");
        self.archive = archive;
        self.shed_from = Some(Position(0));
    }

    /// Sets the archive of the snapshot at `position` as soon as everything before it is applied: until then the
    /// archive has what is still to be applied, and would seem to be applied twice.
    pub fn set_archive_at(&mut self, position: Position, archive: Archive) {
        self.coming_archive = Some((position, archive));
        self.take_coming_archive();
    }

    pub(super) fn take_coming_archive(&mut self) {
        if let Some((_, archive)) = self.coming_archive.take_if(|(position, _)| *position <= self.end) {
            self.set_archive(archive);
        }
    }

    /// Where what is over and not in memory is.
    #[must_use]
    pub const fn archive(&self) -> &Archive {
        &self.archive
    }

    /// True if there may be something in memory that the archive has too.
    #[must_use]
    pub const fn can_shed(&self) -> bool {
        self.shed_from.is_some()
    }

    /// Compares the next `rows_max` rows in memory with the archive and forgets those that it has. What is over
    /// never changes, so the state stays the same.
    pub fn shed(&mut self, rows_max: usize) {
        let Some(from) = self.shed_from else {
            return;
        };
        let acts = self.shed_acts(rows_max);
        if acts < rows_max {
            self.shed_from = self.shed_orders(from, rows_max - acts);
        }
    }

    /// Forgets the oldest splits, merges and redeems, at most `rows_max`, as long as the archive has them; returns how
    /// many. An archive has all before some position, so the first that it lacks is the end.
    fn shed_acts(&mut self, rows_max: usize) -> usize {
        for shed in 0..rows_max {
            match self.acts.first_entry().filter(|act| self.archive.holds(*act.key())) {
                Some(act) => self.by_id.remove(&act.remove().id),
                None => return shed,
            };
        }
        rows_max
    }

    /// Compares at most `orders_max` orders from `from` on and forgets those that are over and in the archive; returns
    /// where to go on, none at the end.
    fn shed_orders(&mut self, from: Position, orders_max: usize) -> Option<Position> {
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
            self.by_id.remove(&row.id);
        }
        next
    }

    /// How many orders are in memory.
    #[must_use]
    pub fn orders_in_memory(&self) -> usize {
        self.orders.len()
    }

    /// How many signed splits, merges and redeems are in memory.
    #[must_use]
    pub fn acts_in_memory(&self) -> usize {
        self.acts.len()
    }

    /// The order placed at `position`, in memory or in the archive.
    pub fn find_at(&self, position: Position) -> Result<Option<Cow<'_, OrderRow>>, Fault> {
        match self.order_at(position) {
            Some(row) => Ok(Some(Cow::Borrowed(row))),
            None => Ok(self.archive.at(position, decode)?.and_then(Signed::order).map(Cow::Owned)),
        }
    }

    /// The order with this id, in memory or in the archive.
    pub fn find(&self, id: &OrderId) -> Result<Option<Cow<'_, OrderRow>>, Fault> {
        match self.order(id) {
            Some(row) => Ok(Some(Cow::Borrowed(row))),
            None => Ok(self.find_archived(id)?.and_then(Signed::order).map(Cow::Owned)),
        }
    }

    pub(super) fn find_archived(&self, id: &OrderId) -> Result<Option<Signed<OrderRow>>, Fault> {
        let rows = self.archive.by_id_prefix(prefix(id), decode)?;
        Ok(rows.into_iter().find(|row| row.id() == id))
    }

    /// How many orders there ever were.
    #[must_use]
    pub const fn orders_ever(&self) -> u64 {
        self.orders_ever
    }

    /// What is in memory and over, as rows of an archive.
    #[must_use]
    pub fn over(&self) -> Vec<ArchiveRow> {
        let orders = self.orders.values().filter(|row| !row.is_live()).map(|row| order_over(row));
        orders.chain(self.acts.values().map(act_over)).collect()
    }

    /// Forgets what is over, which an archive must have.
    pub fn forget_over(&mut self) {
        self.orders.retain(|_, row| row.is_live());
        self.acts.clear();
        let orders = &self.orders;
        self.by_id.retain(|_, position| orders.contains_key(position));
    }

    /// The stamps of what is in memory, live or over, in no order.
    pub fn stamps(&self) -> impl Iterator<Item = Signed<OrderStamp>> {
        let orders = self.orders().map(|row| Signed::Order(OrderStamp::of(row)));
        orders.chain(self.acts.values().copied().map(Signed::Act))
    }

    /// Passes the stamps of what is archived to `take`, the newest run first, as long as `wants` returns
    /// true. `wants` is called with the highest signed time of what is left.
    pub fn archived_stamps(
        &self,
        wants: impl FnMut(u64) -> bool,
        mut take: impl FnMut(Vec<Signed<OrderStamp>>),
    ) -> Result<(), Fault> {
        self.archive.stamps(wants, |bytes| {
            let mut input = Input::new(bytes);
            let mut stamps = Vec::new();
            while input.finish().is_err() {
                stamps.push(Wire::take(&mut input)?);
            }
            take(stamps);
            Ok(())
        })
    }
}

/// Decodes a row of one archive for the next one.
pub fn archived_again(bytes: &[u8]) -> Result<ArchiveRow, Damage> {
    decode(bytes).map(|row| match row {
        Signed::Order(order) => order_over(&order),
        Signed::Act(act) => act_over(&act),
    })
}

fn order_over(order: &OrderRow) -> ArchiveRow {
    // As a `Signed` has it.
    let (mut stamp, mut row) = (vec![ORDER], Vec::with_capacity(400));
    OrderStamp::of(order).put(&mut stamp);
    row.push(ORDER);
    order.put(&mut row);
    ArchiveRow {
        position: order.position,
        id_prefix: prefix(&order.id),
        stamp_ms: order.fields.timestamp_ms,
        stamp,
        row,
    }
}

fn act_over(act: &ActRow) -> ArchiveRow {
    let mut row = vec![ACT];
    act.put(&mut row);
    ArchiveRow {
        position: act.position,
        id_prefix: prefix(&act.id),
        stamp_ms: act.timestamp_ms,
        stamp: row.clone(),
        row,
    }
}

impl<O> Signed<O> {
    /// The order, if it is one.
    fn order(self) -> Option<O> {
        match self {
            Self::Order(order) => Some(order),
            Self::Act(_) => None,
        }
    }
}

impl Signed<OrderRow> {
    const fn id(&self) -> &OrderId {
        match self {
            Self::Order(order) => &order.id,
            Self::Act(act) => &act.id,
        }
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

fn decode(bytes: &[u8]) -> Result<Signed<OrderRow>, Damage> {
    Wire::take(&mut Input::new(bytes))
}
