//! The makers of a trade, as its events show them: all to the taker, to a maker its own.
//!
//! A trade has two events for each account in it, each written once for every key that follows. They come one after
//! another, so what they share is kept from one to the next: the makers by account, found in one pass over the trade,
//! and the text of an account's own. One sweep of thousands of makers is told in time that grows with makers and
//! followers, not with their product.

use super::super::Reader;
use super::super::trades::maker_base_fee;
use crate::domain::{Position, WalletNo};
use crate::json::Writer;
use crate::ledger::OrderRow;

/// What was written last.
#[derive(Debug, Default)]
pub(super) struct Makers {
    /// The trade, by its taker's order, and the principals of its makers, each with the number of its leg.
    trade: Option<Position>,
    by_principal: Vec<(WalletNo, usize)>,
    /// Whose part is written down, and that.
    shown_to: Option<WalletNo>,
    text: Vec<u8>,
}

impl Makers {
    /// The list that an account is shown of the trade of `taker`, a JSON array. An archived maker that cannot be read is
    /// left out.
    pub(super) fn shown(&mut self, reader: &Reader, taker: &OrderRow, principal: WalletNo) -> &[u8] {
        if self.trade != Some(taker.position) {
            self.group(reader, taker.position);
        }
        if self.shown_to != Some(principal) {
            self.write(reader, taker, principal);
        }
        &self.text
    }

    fn group(&mut self, reader: &Reader, trade: Position) {
        self.by_principal.clear();
        for (number, leg) in reader.trade_of(trade).legs.iter().enumerate() {
            if let Ok(Some(maker)) = reader.ledger.find_at(leg.maker) {
                self.by_principal.push((maker.principal, number));
            }
        }
        self.by_principal.sort_unstable();
        (self.trade, self.shown_to) = (Some(trade), None);
    }

    fn write(&mut self, reader: &Reader, taker: &OrderRow, principal: WalletNo) {
        let maker_fee = maker_base_fee(&reader.market(taker.market).fee);
        let legs = reader.trade_of(taker.position).legs;
        let from = self.by_principal.partition_point(|(maker, _)| *maker < principal);
        let own = self.by_principal[from..].iter().take_while(|(maker, _)| *maker == principal);
        self.text.clear();
        let json = &mut Writer::new(&mut self.text);
        json.open_array();
        let mut show = |number: usize| {
            let leg = &legs[number];
            if let Ok(Some(maker)) = reader.ledger.find_at(leg.maker) {
                reader.write_leg(json, leg, &maker, maker_fee);
            }
        };
        if taker.principal == principal {
            (0..legs.len()).for_each(show);
        } else {
            own.for_each(|(_, number)| show(*number));
        }
        json.close_array();
        self.shown_to = Some(principal);
    }
}
