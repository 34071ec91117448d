//! Books as the operator's console shows them: which markets there are to look at, and the levels
//! of one.

use std::cmp::Reverse;

use super::desk::{self, Place};
use crate::domain::Outcome;
use crate::json::Writer;
use crate::ledger::MarketRow;
use crate::server::core_loop::CoreLoop;

/// Markets that one list names: as many as a person looks through.
const MARKETS_MAX: usize = 100;

/// The markets with most resting orders, busiest first, and how many markets there are.
pub(super) fn list(core: &CoreLoop) -> Vec<u8> {
    let reader = desk::reader(core);
    let markets = reader.ledger().markets();
    let mut busiest: Vec<_> = markets.iter().collect();
    let busy = |row: &&MarketRow| (Reverse(row.live.len()), row.market);
    if busiest.len() > MARKETS_MAX {
        busiest.select_nth_unstable_by_key(MARKETS_MAX, busy);
        busiest.truncate(MARKETS_MAX);
    }
    busiest.sort_unstable_by_key(busy);
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object().key("count").number(markets.len() as u64).key("markets").open_array();
    for row in busiest {
        json.open_object();
        desk::short(&mut json, reader, row);
        json.close_object();
    }
    json.close_array().close_object();
    out
}

/// Both books of a market, each as `GET /book` has it.
pub(super) fn one(core: &CoreLoop, place: &Place) -> Vec<u8> {
    let reader = desk::reader(core);
    let row = reader.ledger().market(place.market).expect("just found");
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object();
    desk::short(&mut json, reader, row);
    json.key("outcomes").open_array();
    for (outcome, label) in [Outcome::Zero, Outcome::One].into_iter().zip(&row.labels) {
        json.open_object().key("outcome").text(label).key("book");
        reader.write_book_of(&mut json, place.market, outcome);
        json.close_object();
    }
    json.close_array().close_object();
    out
}
