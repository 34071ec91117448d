//! Hits in the order of one of the catalog's columns, some of which change with every order placed.

use super::Hit;
use super::hits::HitNo;
use crate::catalog::Catalog;
use crate::catalog::order::{Column, Page};
use crate::domain::TimeMs;

impl Catalog {
    /// One page of `hits` in the page's order at `now`; a hit that lacks the column's value comes last.
    #[must_use]
    pub fn page_of_hits(&self, hits: &[Hit], page: &Page, now: TimeMs) -> Vec<Hit> {
        let id = |number: u32| match HitNo(number).hit() {
            Hit::Event(event) => self.id_of_event(event),
            Hit::Market(market) => self.id_of_market(market),
        };
        let value = |number: u32, column: Column| match HitNo(number).hit() {
            Hit::Event(event) => self.value_of_event(event, column, now),
            Hit::Market(market) => self.value_of_market(market, column, now),
        };
        let of_events = self.leads_of_events(page.first(), now);
        let of_markets = self.leads_of_markets(page.first(), now);
        let lead = |number: u32| match HitNo(number).hit() {
            Hit::Event(event) => of_events(event),
            Hit::Market(market) => of_markets(market),
        };
        let numbers = hits.iter().map(|hit| HitNo::of(*hit).0);
        page.sort(numbers, lead, id, value).into_iter().map(|number| HitNo(number).hit()).collect()
    }
}
