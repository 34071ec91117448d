//! Replaces, and places in a queue that outlive the orders from which they date.

use super::apply::{Applied, contradiction, require};
use super::{Ledger, hash};
use crate::domain::Position;
use crate::journal::layout::{OrdersReplaced, PlacedResult, RemovalReason};

impl Ledger {
    /// Applies a replace. A successor's place is determined before its predecessor leaves it.
    pub(super) fn replace(&mut self, start: Position, record: &OrdersReplaced) -> Applied {
        let mut places = Vec::new();
        for (position, quote) in record.each_placed(start) {
            let Some(former) = quote.takes_place_of else {
                continue;
            };
            require(record.removed.contains(&former), "an order took the place of one that stays")?;
            let row = self.order_at(former).ok_or(contradiction("an order took the place of none"))?;
            let order = &quote.order;
            let same = (row.wallet, row.market, row.outcome, row.fields.side, row.price)
                == (order.wallet, order.market, order.outcome, order.fields.side, order.price);
            require(same && order.open <= row.open, "an order took the place of another kind of order")?;
            let from = self.place_of(former);
            require(places.iter().all(|(_, other)| *other != from), "two orders took one place")?;
            places.push((position, from));
        }
        for &order in &record.removed {
            self.remove(order, RemovalReason::Replaced, record.time)?;
        }
        for (position, quote) in record.each_placed(start) {
            let order = &quote.order;
            let rests =
                order.result == PlacedResult::Rests && order.fills.is_empty() && order.removed.is_empty();
            require(
                rests && order.market == record.market,
                "an order of a replace did more than rest there",
            )?;
            self.place(position, order)?;
        }
        for (order, from) in places {
            self.hash = self.hash.wrapping_add(hash::place(order, from));
            self.places.insert(order, from);
        }
        Ok(())
    }

    /// Forgets the place that an order which ended had taken over.
    pub(super) fn leave_place(&mut self, order: Position) {
        if let Some(from) = self.places.remove(&order) {
            self.hash = self.hash.wrapping_sub(hash::place(order, from));
        }
    }
}
