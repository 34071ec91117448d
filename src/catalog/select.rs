//! Which rows a list shows: filters on parsed facts, then one page.
//!
//! A filter starts from a list of rows where it can (ids, slugs, tags, series, events, creators), and
//! examines every row only if it has nothing but flags and ranges, or what most rows have. Rows given by
//! ids come in the order of the page, not in the order of those ids.

use std::collections::BTreeSet;

use super::listed::{Listed, Wanted};
use super::model::{Catalog, Event, Market};
use super::order::{Column, Direction, Mark, Page};
use super::shelf::Item;
use super::value::{Lead, Value, id_value};
use crate::domain::{ItemKind, TimeMs};

/// A range, both ends included; `None` is an open end. A row without a value is only in the range
/// without ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// The smallest that passes.
    pub min: Option<u64>,
    /// The largest that passes.
    pub max: Option<u64>,
}

impl Between {
    fn holds(self, value: Option<u64>) -> bool {
        match value {
            Some(value) => self.min.is_none_or(|min| min <= value) && self.max.is_none_or(|max| value <= max),
            None => self == Self::default(),
        }
    }
}

/// What a list is narrowed to. A set that is `None` filters nothing; an empty set of rows, events,
/// tags or series to be in passes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Active or not.
    pub active: Option<bool>,
    /// Closed or not.
    pub closed: Option<bool>,
    /// Archived or not.
    pub archived: Option<bool>,
    /// Featured or not.
    pub featured: Option<bool>,
    /// Open for anybody to make (`cyom`), or not.
    pub cyom: Option<bool>,
    /// Markets that mirror another venue's, or those that do not.
    pub mirror: Option<bool>,
    /// These rows only, by number.
    pub only: Option<BTreeSet<u32>>,
    /// With a tag of each of these sets.
    pub tags: Vec<BTreeSet<u32>>,
    /// With none of these tags.
    pub without_tags: BTreeSet<u32>,
    /// In a series of each of these sets.
    pub series: Vec<BTreeSet<u32>>,
    /// Markets of one of these events.
    pub events: Option<BTreeSet<u32>>,
    /// Made by this wallet or site.
    pub creator: Option<String>,
    /// The volume, in millionths.
    pub volume: Between,
    /// The liquidity, in millionths.
    pub liquidity: Between,
    /// The start date, in microseconds.
    pub start: Between,
    /// The end date, in microseconds.
    pub end: Between,
}

impl Catalog {
    /// One page of the events that pass.
    #[must_use]
    pub fn list_events(&self, filter: &Filter, page: &Page, now: TimeMs) -> Vec<u32> {
        let (wanted, asks_more) = (Wanted::of(filter), filter.asks_more());
        let passes = |event: u32| {
            self.listed_events.has(event, wanted) && (!asks_more || self.event_passes(event, filter))
        };
        let id = |event: u32| self.id_of_event(event);
        let lead = self.leads_of_events(page.first(), now);
        let value = |event, column| self.value_of_event(event, column, now);
        match self.events_to_look_at(filter) {
            Some(rows) => page.sort(rows.into_iter().filter(|row| passes(*row)), lead, id, value),
            None if page.is_by_id() => page.cut(self.event_order.iter().map(|(_, row)| *row), passes),
            None => page.sort((0..count(self.events())).filter(|row| passes(*row)), lead, id, value),
        }
    }

    /// One page of the markets that pass.
    #[must_use]
    pub fn list_markets(&self, filter: &Filter, page: &Page, now: TimeMs) -> Vec<u32> {
        let (wanted, asks_more) = (Wanted::of(filter), filter.asks_more());
        let passes = |market: u32| {
            self.listed_markets.has(market, wanted) && (!asks_more || self.market_passes(market, filter))
        };
        let id = |market: u32| self.id_of_market(market);
        let lead = self.leads_of_markets(page.first(), now);
        let value = |market, column| self.value_of_market(market, column, now);
        match self.markets_to_look_at(filter) {
            Some(rows) => page.sort(rows.into_iter().filter(|row| passes(*row)), lead, id, value),
            None if page.is_by_id() => page.cut(self.market_order.iter().map(|(_, row)| *row), passes),
            None => page.sort((0..count(self.markets())).filter(|row| passes(*row)), lead, id, value),
        }
    }

    /// Where a list of events in this order goes on behind one of them.
    #[must_use]
    pub fn mark_at_event(&self, event: u32, columns: &[Column], now: TimeMs) -> Mark {
        Mark::new(event, columns.iter().map(|column| self.value_of_event(event, *column, now)))
    }

    /// Where a list of markets in this order goes on behind one of them.
    #[must_use]
    pub fn mark_at_market(&self, market: u32, columns: &[Column], now: TimeMs) -> Mark {
        Mark::new(market, columns.iter().map(|column| self.value_of_market(market, *column, now)))
    }

    /// The last of these events in the order of ids, at most `limit`: those with which a list of them begins that asks
    /// for no other order.
    #[must_use]
    pub fn newest_of(&self, events: impl Iterator<Item = u32>, limit: usize) -> Vec<u32> {
        let first = Page { direction: Direction::Descending, limit, ..Page::default() };
        let lead = |event| Lead::of(Some(self.id_of_event(event)));
        let mut newest = first.sort(events, lead, |event| self.id_of_event(event), |_, _| None);
        newest.reverse();
        newest
    }

    /// One page of the items of a kind that pass.
    #[must_use]
    pub fn list_items(&self, kind: ItemKind, page: &Page, passes: impl Fn(&Item) -> bool) -> Vec<u32> {
        let shelf = self.shelf(kind);
        let passes = |number: u32| passes(shelf.item(number));
        let rows = shelf.in_order().iter().map(|(_, row)| *row);
        if page.is_by_id() {
            return page.cut(rows, passes);
        }
        let id = |number: u32| id_value(&shelf.item(number).key);
        let value = |number: u32, column| {
            let shown = shelf.item(number).shown()?;
            match column {
                Column::Id => Some(id(number)),
                Column::Slug => Value::of_text(&shown.slug),
                Column::Title => Value::of_text(&shown.label),
                Column::CreatedAt => Some(Value::Number(shown.created.0)),
                Column::UpdatedAt => Some(Value::Number(shown.updated.0)),
                _ => None,
            }
        };
        page.sort(rows.filter(|row| passes(*row)), |row| Lead::of(value(row, page.first())), id, value)
    }

    /// The series that recur as often as `recurrence` says, in any case of letters.
    #[must_use]
    pub fn series_by_recurrence(&self, recurrence: &str) -> BTreeSet<u32> {
        let series = self.shelf(ItemKind::Series);
        let comes = |number: &u32| {
            let shown = series.item(*number).shown();
            shown.is_some_and(|shown| shown.recurrence.eq_ignore_ascii_case(recurrence))
        };
        series.in_order().iter().map(|(_, number)| *number).filter(comes).collect()
    }

    /// True if an event is of this wallet or site: its text or one of its creators names it, or
    /// one of its markets does.
    #[must_use]
    pub fn event_is_of(&self, event: &Event, creator: &str) -> bool {
        self.event_names(event, creator)
            || event.markets().any(|market| market_names(self.market(market), creator))
    }

    /// True if a market is of this wallet or site: its text names it as creator or submitter, or
    /// the text or a creator of its event does.
    #[must_use]
    pub fn market_is_of(&self, market: &Market, creator: &str) -> bool {
        let of_event = |event| self.event_names(self.event(event), creator);
        market_names(market, creator) || market.event.is_some_and(of_event)
    }

    /// The events of this wallet or site, by number.
    #[must_use]
    pub fn events_of(&self, creator: &str) -> BTreeSet<u32> {
        self.events_with_creator(creator).collect()
    }

    /// The markets of this wallet or site, by number.
    #[must_use]
    pub fn markets_of(&self, creator: &str) -> BTreeSet<u32> {
        self.markets_with_creator(creator).collect()
    }

    /// The events of [`Self::events_of`], some twice.
    fn events_with_creator(&self, creator: &str) -> impl Iterator<Item = u32> {
        let of_markets = self.markets_by_creator(creator).filter_map(|market| self.market(market).event);
        self.events_naming(creator).chain(of_markets)
    }

    /// The markets of [`Self::markets_of`], some twice.
    fn markets_with_creator(&self, creator: &str) -> impl Iterator<Item = u32> {
        let of_events = self.events_naming(creator).flat_map(|event| self.event(event).markets());
        self.markets_by_creator(creator).chain(of_events)
    }

    /// The events whose own text or one of whose creators names this wallet or site, some twice.
    fn events_naming(&self, creator: &str) -> impl Iterator<Item = u32> {
        let shelf = self.shelf(ItemKind::Creator);
        let is = |number: &u32| item_names(shelf.item(*number), creator);
        // Creators are few beside what they made.
        let items: Vec<u32> = shelf.in_order().iter().map(|(_, number)| *number).filter(is).collect();
        self.events_by_creator(creator).chain(items.into_iter().flat_map(|item| shelf.item(item).events()))
    }

    fn event_names(&self, event: &Event, creator: &str) -> bool {
        let is = |name: &str| name.eq_ignore_ascii_case(creator);
        let of_item = |number: &u32| item_names(self.shelf(ItemKind::Creator).item(*number), creator);
        event.facts.creator.as_deref().is_some_and(is) || event.creators().iter().any(of_item)
    }

    /// The only rows that can pass; `None` if every row has to be examined.
    fn events_to_look_at(&self, filter: &Filter) -> Option<BTreeSet<u32>> {
        let of = |kind, items: &BTreeSet<u32>| {
            items.iter().flat_map(|item| self.shelf(kind).item(*item).events()).collect()
        };
        filter
            .only
            .clone()
            .or_else(|| filter.series.first().map(|series| of(ItemKind::Series, series)))
            .or_else(|| self.rare_tags(filter).map(|tags| of(ItemKind::Tag, tags)))
            .or_else(|| few(self.events_with_creator(filter.creator.as_deref()?), self.events().len()))
    }

    /// The tags that a row has to have one of, unless so many have them that to list those takes longer than to look at
    /// every row.
    fn rare_tags<'f>(&self, filter: &'f Filter) -> Option<&'f BTreeSet<u32>> {
        let tags = filter.tags.first()?;
        let items = || tags.iter().map(|tag| self.shelf(ItemKind::Tag).item(*tag));
        let [events, markets] = [self.events().len() / PART, self.markets().len() / PART];
        let are_rare = items().flat_map(Item::events).nth(events).is_none()
            && items().flat_map(Item::markets).nth(markets).is_none();
        are_rare.then_some(tags)
    }

    fn markets_to_look_at(&self, filter: &Filter) -> Option<BTreeSet<u32>> {
        let of_events = |events: &BTreeSet<u32>| {
            events.iter().flat_map(|event| self.event(*event).markets()).collect::<BTreeSet<u32>>()
        };
        let of_tags = |tags: &BTreeSet<u32>| {
            let items = tags.iter().map(|tag| self.shelf(ItemKind::Tag).item(*tag));
            let mut markets = of_events(&items.clone().flat_map(Item::events).collect());
            markets.extend(items.flat_map(Item::markets));
            markets
        };
        let only = filter.only.clone();
        only.or_else(|| filter.events.as_ref().map(of_events))
            .or_else(|| self.rare_tags(filter).map(of_tags))
            .or_else(|| few(self.markets_with_creator(filter.creator.as_deref()?), self.markets().len()))
    }

    /// Whether an event passes what a filter asks besides flags.
    fn event_passes(&self, number: u32, filter: &Filter) -> bool {
        // The event itself lies elsewhere, so it is read last.
        let event = self.event(number);
        let tagged =
            |tags: &BTreeSet<u32>| !tags.is_empty() && event.tags().iter().any(|tag| tags.contains(tag));
        let in_series = |all: &BTreeSet<u32>| event.series().iter().any(|one| all.contains(one));
        filter.ranges_hold(&self.listed_events, number)
            && filter.tags.iter().all(tagged)
            && !tagged(&filter.without_tags)
            && filter.series.iter().all(in_series)
            && filter.creator.as_ref().is_none_or(|creator| self.event_is_of(event, creator))
    }

    /// Whether a market passes what a filter asks besides flags.
    fn market_passes(&self, number: u32, filter: &Filter) -> bool {
        // The market and its event lie elsewhere, so they are read last.
        let market = self.market(number);
        let of_event = || market.event.map_or(&[][..], |event| self.event(event).tags());
        let tagged = |tags: &BTreeSet<u32>| {
            !tags.is_empty() && market.tags().iter().chain(of_event()).any(|tag| tags.contains(tag))
        };
        filter.ranges_hold(&self.listed_markets, number)
            && filter.events.as_ref().is_none_or(|all| market.event.is_some_and(|event| all.contains(&event)))
            && filter.tags.iter().all(tagged)
            && !tagged(&filter.without_tags)
            && filter.creator.as_ref().is_none_or(|creator| self.market_is_of(market, creator))
    }
}

impl Filter {
    /// Whether it asks for more than flags.
    fn asks_more(&self) -> bool {
        let Self { tags, without_tags, series, events, creator, volume, liquidity, start, end, .. } = self;
        let has_sets = !(tags.is_empty() && without_tags.is_empty() && series.is_empty());
        let has_ranges =
            [volume, liquidity, start, end].into_iter().any(|range| *range != Between::default());
        has_sets || has_ranges || events.is_some() || creator.is_some()
    }

    /// Whether a row is in the ranges of all columns that have one.
    fn ranges_hold(&self, listed: &Listed, row: u32) -> bool {
        let ranges = [
            (self.volume, Column::Volume),
            (self.liquidity, Column::Liquidity),
            (self.start, Column::StartDate),
            (self.end, Column::EndDate),
        ];
        ranges
            .into_iter()
            .all(|(range, column)| range == Between::default() || range.holds(listed.number(row, column)))
    }
}

/// The part of all rows from which on it takes longer to list some than to look at every one.
const PART: usize = if cfg!(test) { 2 } else { 8 };

/// These rows of so many, each once, unless they are so many that to list them takes longer than to look at every row.
fn few(rows: impl Iterator<Item = u32>, all: usize) -> Option<BTreeSet<u32>> {
    let most = all / PART;
    let rows: Vec<u32> = rows.take(most + 1).collect();
    (rows.len() <= most).then(|| rows.into_iter().collect())
}

fn item_names(item: &Item, creator: &str) -> bool {
    let is = |name: &str| name.eq_ignore_ascii_case(creator);
    is(&item.key) || item.shown().is_some_and(|shown| is(&shown.slug) || is(&shown.label))
}

fn market_names(market: &Market, creator: &str) -> bool {
    let names = [&market.facts.creator, &market.facts.submitted_by];
    names.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(creator))
}

fn count<T>(rows: &[T]) -> u32 {
    u32::try_from(rows.len()).expect("rows have u32 numbers")
}
