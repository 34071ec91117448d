//! Rows of positions as last written, so that the row of an unchanged position is copied.
//!
//! A table of [`PLACES`] keeps rows as JSON, each beside everything that it was made from: the
//! wallet's holding, and the state and price of the market. A row is valid while those are the same; a
//! text that changes invalidates every row.

use crate::domain::Outcome;
use crate::json::Writer;
use crate::wallet::Holding;
use std::cell::RefCell;

/// Rows that are kept; each place has the one that was last written.
const PLACES: usize = 4_096;
/// Longer rows are written anew each time, which bounds the table: 11 MiB.
const KEPT_BYTES_MAX: usize = 2_048;

const _: () = assert!(PLACES * (size_of::<Option<Kept>>() + KEPT_BYTES_MAX) <= 11 << 20);

/// What a row is made from besides texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) holding: Holding,
    pub(super) outcome: Outcome,
    pub(super) price_millionths: u32,
    pub(super) resolved: bool,
    pub(super) neg_risk: bool,
}

impl Made {
    fn place(&self) -> usize {
        let token = 2 * self.holding.market.index() + self.outcome.index();
        // Keeps wallets that hold the same tokens far apart: 2^32 over the golden ratio.
        self.holding.wallet.index().wrapping_mul(2_654_435_769).wrapping_add(token) % PLACES
    }
}

#[derive(Debug)]
struct Kept {
    made: Made,
    edition: u64,
    json: Box<[u8]>,
}

/// The rows that are kept.
#[derive(Debug, Default)]
pub(super) struct RowTable {
    places: RefCell<Vec<Option<Kept>>>,
    /// How often texts have changed.
    edition: u64,
}

impl RowTable {
    /// Invalidates every kept row: a text changed.
    pub(super) fn renew(&mut self) {
        self.edition += 1;
    }

    /// Writes the row made from `made`: the kept one, or the value that `write` appends.
    pub(super) fn write(&self, json: &mut Writer<'_>, made: &Made, write: impl FnOnce(&mut Writer<'_>)) {
        let mut places = self.places.borrow_mut();
        if places.is_empty() {
            places.resize_with(PLACES, || None);
        }
        let place = &mut places[made.place()];
        if let Some(kept) = place
            && kept.edition == self.edition
            && kept.made == *made
        {
            json.raw(&kept.json);
            return;
        }
        let before = json.bytes();
        write(json);
        let row = json.written_after(before);
        if row.len() <= KEPT_BYTES_MAX {
            *place = Some(Kept { made: *made, edition: self.edition, json: row.into() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{MarketNo, Shares, WalletNo};
    use crate::wallet::Lot;

    fn made(wallet: u32, market: u32) -> Made {
        let lots = [Lot::default(); 2];
        let holding = Holding { wallet: WalletNo(wallet), market: MarketNo(market), traded: false, lots };
        Made { holding, outcome: Outcome::One, price_millionths: 500_000, resolved: false, neg_risk: false }
    }

    /// What is written after another row, and whether it was written anew.
    fn written(table: &RowTable, made: &Made, text: &str) -> (String, bool) {
        let (mut out, mut anew) = (Vec::new(), false);
        let mut json = Writer::new(&mut out);
        json.open_array().number(0);
        table.write(&mut json, made, |json| {
            anew = true;
            json.open_object().key("text").text(text).close_object();
        });
        json.close_array();
        (String::from_utf8(out).expect("text"), anew)
    }

    #[test]
    fn a_row_is_written_once_until_something_in_it_changes() {
        let mut table = RowTable::default();
        let first = made(1, 3);
        let says = |text: &str, anew| (format!("[0,{{\"text\":\"{text}\"}}]"), anew);
        assert_eq!(written(&table, &first, "a"), says("a", true));
        assert_eq!(written(&table, &first, "b"), says("a", false));
        let mut more = first;
        more.holding.lots[1].shares = Shares(1);
        let changes = [
            Made { price_millionths: 510_000, ..first },
            Made { resolved: true, ..first },
            Made { neg_risk: true, ..first },
            Made { outcome: Outcome::Zero, ..first },
            more,
        ];
        for changed in changes {
            assert_eq!(written(&table, &changed, "c"), says("c", true), "{changed:?}");
            assert_eq!(written(&table, &changed, "d"), says("c", false), "{changed:?}");
        }
        table.renew();
        assert_eq!(written(&table, &first, "e"), says("e", true));
        assert_eq!(written(&table, &first, "f"), says("e", false));
    }

    #[test]
    fn a_place_has_the_newest_and_no_long_rows() {
        let table = RowTable::default();
        let there = made(1, 3);
        let same_place = made(1, 3 + u32::try_from(PLACES / 2).expect("small"));
        assert_eq!(there.place(), same_place.place());
        assert!(written(&table, &there, "a").1);
        assert!(written(&table, &same_place, "b").1);
        assert!(written(&table, &there, "c").1);
        assert!(!written(&table, &there, "d").1);
        let long = "x".repeat(KEPT_BYTES_MAX);
        assert!(written(&table, &same_place, &long).1);
        assert!(written(&table, &same_place, &long).1);
    }
}
