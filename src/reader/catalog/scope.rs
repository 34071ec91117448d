//! Whose part of the catalog a request asks for, as of when.
//!
//! `creator` narrows whatever an answer holds, at every depth: a list's rows, the markets within an event and the
//! events within a series. So nothing is listed within another object that would not be found by itself.

use super::super::ask::{Asked, Refused};
use super::params::Params;
use crate::catalog::Catalog;
use crate::domain::{ItemKind, TimeMs};

/// What an answer may hold.
pub(in crate::reader) struct Scope {
    /// When the answer is made.
    pub(in crate::reader) now: TimeMs,
    /// The wallet or site that it is narrowed to; nobody's is left out without one.
    pub(in crate::reader) creator: Option<String>,
    /// Leaves out, within an event, the markets that are closed.
    pub(in crate::reader) without_closed_markets: bool,
}

impl Scope {
    pub(super) fn of(asked: &Asked<'_>) -> Result<Self, Refused> {
        let creator = Params::of(asked.request.query).text("creator")?;
        Ok(Self { now: asked.now(), creator, without_closed_markets: false })
    }

    pub(super) fn has_event(&self, catalog: &Catalog, event: u32) -> bool {
        let is_of = |creator: &String| catalog.event_is_of(catalog.event(event), creator);
        self.creator.as_ref().is_none_or(is_of)
    }

    pub(super) fn has_market(&self, catalog: &Catalog, market: u32) -> bool {
        let market = catalog.market(market);
        let is_of = |creator: &String| catalog.market_is_of(market, creator);
        self.creator.as_ref().is_none_or(is_of) && !(self.without_closed_markets && market.is_closed())
    }

    /// Whether an item is mentioned by an event or a market that is in scope.
    pub(super) fn has_item(&self, catalog: &Catalog, kind: ItemKind, item: u32) -> bool {
        let item = catalog.shelf(kind).item(item);
        self.creator.is_none()
            || item.events().any(|event| self.has_event(catalog, event))
            || item.markets().any(|market| self.has_market(catalog, market))
    }
}
