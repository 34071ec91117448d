//! The catalog as lists and pages see it: small facts of every event, market, tag, series and
//! creator, and how to find them. The texts stay where they are kept ([`Texts`]).
//!
//! A [`Catalog`] is a function of the texts and of a few live numbers per market: closed or not,
//! what was traded here and when, and what rests in its book. So it can be built again from the
//! ledger's rows, and the reader's tests do that. The sums of an event are updated with every
//! change of one of its markets, so that a list ordered by volume adds nothing up.
//!
//! - **Volume** is the text's (what was traded before the import, at the venue that the text comes
//!   from) plus what was traded here, in collateral, as the takers paid or received it without
//!   fees. An event whose text names none has the sum of its markets' texts instead.
//! - **Volume of 24 hours** is what was traded here in the 24 hours before the answer.
//! - **Liquidity** is what rests here: for every open order, the collateral that it takes to buy
//!   its shares, or those of the other outcome if it sells. Texts do not count towards it.
//! - A **date** that the text does not name is the day on which it was made, else on which the row
//!   came, because the contract wants every date. An **end** is never made up so: a market whose text
//!   names none ends with its event, and what nobody named an end for ends at [`NO_END`]. Lists show,
//!   order by and narrow by the same date.
//!   The time of closing is the text's, else that of the closing here, for an event that of its last market. What its
//!   text calls closed and is open here has none.
//! - A market is **closed** if it is over ([`Closing`](super::Closing)), an event if all of its markets are, or if its
//!   text says so and none of its markets is open: one that was opened again opens its event, whatever the text says.

use std::collections::{BTreeSet, HashMap};

use super::facts::{EventFacts, MarketFacts};
use super::listed::Listed;
use super::order::Column;
use super::shelf::{Shelf, Source, Texts};
use super::value::KeptValue;
use super::{Moment, event_key};
use crate::domain::{ItemKind, TimeMs};

/// When that ends of which nobody said when: 9999-12-31, behind every end that somebody plans. The contract
/// wants a date, and any nearer one would be believed.
pub const NO_END: Moment = Moment(253_402_214_400_000_000);

/// A day, over which recent trades are counted.
const DAY_MS: u64 = 86_400_000;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// What its text says.
    pub facts: EventFacts,
    /// When it came.
    pub added: TimeMs,
    markets: BTreeSet<u32>,
    /// Those of them that are over, by when they were closed.
    over: BTreeSet<(TimeMs, u32)>,
    /// How many of them are open.
    open: u32,
    imported: u64,
    traded: u64,
    resting: u128,
    /// By kind.
    items: [Box<[u32]>; ItemKind::ALL.len()],
}

impl Event {
    /// The numbers of its markets, in the order in which they came.
    pub fn markets(&self) -> impl Iterator<Item = u32> {
        self.markets.iter().copied()
    }

    /// Its tags, in the order of its text.
    #[must_use]
    pub fn tags(&self) -> &[u32] {
        &self.items[ItemKind::Tag as usize]
    }

    /// Its series.
    #[must_use]
    pub fn series(&self) -> &[u32] {
        &self.items[ItemKind::Series as usize]
    }

    /// Its creators.
    #[must_use]
    pub fn creators(&self) -> &[u32] {
        &self.items[ItemKind::Creator as usize]
    }

    /// The date that is shown in a column, by which lists are ordered and narrowed as well.
    #[must_use]
    pub fn date(&self, column: Column) -> Option<Moment> {
        let EventFacts { start, end, creation, created, updated, closed_at, .. } = self.facts;
        let was_opened = self.facts.closed && !self.is_closed();
        let closed_at = closed_at.or(self.over_since().map(Moment::of)).filter(|_| !was_opened);
        Dates { start, end, creation, created, updated, closed_at, added: self.added }.shown(column)
    }

    /// True if nothing of it is open.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.over_since().is_some() || (self.facts.closed && self.open == 0)
    }

    /// When the last of its markets was closed; `None` while one is open, and without markets.
    fn over_since(&self) -> Option<TimeMs> {
        let (last, _) = self.over.last()?;
        (self.over.len() == self.markets.len()).then_some(*last)
    }

    /// Its volume, in millionths.
    #[must_use]
    pub fn volume(&self) -> u64 {
        self.facts.volume.unwrap_or(self.imported).saturating_add(self.traded)
    }

    /// Its liquidity, in millionths.
    #[must_use]
    pub fn liquidity(&self) -> u64 {
        in_millionths(self.resting)
    }
}

/// How far a market is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// In lists only: its text says that it takes no orders, and nothing has ended it.
    #[default]
    Listed,
    /// Its mode is none of those in which it takes neither orders nor cancels.
    Open,
    /// Over since then.
    Over(TimeMs),
}

/// One market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Market {
    /// What its text says.
    pub facts: MarketFacts,
    /// When it came.
    pub added: TimeMs,
    /// Its numeric id.
    pub id: u64,
    /// The number of the event that holds it.
    pub event: Option<u32>,
    tags: Box<[u32]>,
    life: Life,
    traded: u64,
    resting: u128,
    /// The time of each trade, and the volume up to and including it, in millionths.
    tape: Vec<(TimeMs, u64)>,
}

impl Market {
    /// Its own tags; those of its event are not among them.
    #[must_use]
    pub fn tags(&self) -> &[u32] {
        &self.tags
    }

    /// True if it is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.over().is_some()
    }

    /// Since when it is over, if it is.
    const fn over(&self) -> Option<TimeMs> {
        match self.life {
            Life::Over(since) => Some(since),
            Life::Listed | Life::Open => None,
        }
    }

    /// Its volume, in millionths.
    #[must_use]
    pub const fn volume(&self) -> u64 {
        self.facts.volume.saturating_add(self.traded)
    }

    /// Its liquidity, in millionths.
    #[must_use]
    pub fn liquidity(&self) -> u64 {
        in_millionths(self.resting)
    }

    /// The time of each trade, and the volume up to and including it, in millionths.
    #[must_use]
    pub fn tape(&self) -> &[(TimeMs, u64)] {
        &self.tape
    }

    /// What was traded in the 24 hours before `now`, in millionths.
    #[must_use]
    pub fn volume_of_day(&self, now: TimeMs) -> u64 {
        let before = self.tape.partition_point(|(time, _)| *time <= day_before(now));
        self.traded - before.checked_sub(1).map_or(0, |last| self.tape[last].1)
    }
}

/// The dates that a text names, and when it came.
pub(super) struct Dates {
    start: Option<Moment>,
    end: Option<Moment>,
    creation: Option<Moment>,
    created: Option<Moment>,
    updated: Option<Moment>,
    closed_at: Option<Moment>,
    added: TimeMs,
}

impl Dates {
    pub(super) fn shown(&self, column: Column) -> Option<Moment> {
        let said = match column {
            Column::StartDate => self.start,
            Column::EndDate => return self.end.or(Some(NO_END)),
            Column::CreationDate => self.creation,
            Column::CreatedAt => self.created,
            Column::UpdatedAt => self.updated,
            Column::ClosedTime => return self.closed_at,
            _ => return None,
        };
        said.or(self.created).or(Some(Moment::of(self.added)))
    }
}

/// Prices are ten-thousandths and shares millionths, so their product is 1e-10.
fn in_millionths(resting: u128) -> u64 {
    u64::try_from(resting / 10_000).unwrap_or(u64::MAX)
}

/// A market as it comes.
#[derive(Clone, Copy, Debug)]
pub struct MarketEntry {
    /// Its numeric id.
    pub id: u64,
    /// The number of the event that holds it.
    pub event: Option<u32>,
    /// When it came.
    pub added: TimeMs,
    /// How far it is.
    pub life: Life,
}

/// Everything in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    pub(super) events: Vec<Event>,
    pub(super) markets: Vec<Market>,
    pub(super) listed_events: Listed,
    pub(super) listed_markets: Listed,
    event_ids: HashMap<String, u32>,
    event_slugs: Names,
    market_slugs: Names,
    /// By who made an event, and who made and who submitted a market, as their texts name them.
    event_creators: Creators,
    market_creators: Creators,
    market_submitters: Creators,
    pub(super) event_order: BTreeSet<(KeptValue, u32)>,
    pub(super) market_order: BTreeSet<(u64, u32)>,
    /// By kind.
    shelves: [Shelf; ItemKind::ALL.len()],
    /// The items that each row of its own names.
    rows: Vec<Box<[u32]>>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            markets: Vec::new(),
            listed_events: Listed::with_texts(&[Column::Slug, Column::Title, Column::Ticker]),
            listed_markets: Listed::with_texts(&[Column::Slug, Column::Question]),
            event_ids: HashMap::new(),
            event_slugs: Names::default(),
            market_slugs: Names::default(),
            event_creators: Creators::default(),
            market_creators: Creators::default(),
            market_submitters: Creators::default(),
            event_order: BTreeSet::new(),
            market_order: BTreeSet::new(),
            shelves: ItemKind::ALL.map(Shelf::new),
            rows: Vec::new(),
        }
    }
}

impl Catalog {
    /// Every event, by number.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Every market, by number.
    #[must_use]
    pub fn markets(&self) -> &[Market] {
        &self.markets
    }

    /// The event with this number.
    #[must_use]
    pub fn event(&self, number: u32) -> &Event {
        &self.events[number as usize]
    }

    /// The market with this number.
    #[must_use]
    pub fn market(&self, number: u32) -> &Market {
        &self.markets[number as usize]
    }

    /// The items of one kind.
    #[must_use]
    pub const fn shelf(&self, kind: ItemKind) -> &Shelf {
        &self.shelves[kind as usize]
    }

    fn shelf_mut(&mut self, kind: ItemKind) -> &mut Shelf {
        &mut self.shelves[kind as usize]
    }

    /// The event with this id.
    #[must_use]
    pub fn event_by_id(&self, id: &str) -> Option<u32> {
        self.event_ids.get(id).copied()
    }

    /// The market with this id.
    #[must_use]
    pub fn market_by_id(&self, id: u64) -> Option<u32> {
        let first = self.market_order.range((id, 0)..).next();
        first.filter(|(found, _)| *found == id).map(|(_, number)| *number)
    }

    /// The events with this slug, by number.
    pub fn events_by_slug(&self, slug: &str) -> impl Iterator<Item = u32> {
        self.event_slugs.of(slug)
    }

    /// The markets with this slug, by number.
    pub fn markets_by_slug(&self, slug: &str) -> impl Iterator<Item = u32> {
        self.market_slugs.of(slug)
    }

    /// The events whose text names this wallet or site as their creator, in any case of letters.
    pub(super) fn events_by_creator(&self, creator: &str) -> impl Iterator<Item = u32> {
        self.event_creators.of(creator)
    }

    /// The markets whose text names this wallet or site as creator or submitter, in any case of letters; some twice.
    pub(super) fn markets_by_creator(&self, creator: &str) -> impl Iterator<Item = u32> {
        self.market_creators.of(creator).chain(self.market_submitters.of(creator))
    }

    /// Takes the new or changed text of event `number`; `texts` has it already.
    pub fn put_event(&mut self, number: u32, texts: &dyn Texts) {
        let source = Source::Event(number);
        let text = texts.text(source);
        let facts = EventFacts::parse(text);
        if number as usize == self.events.len() {
            let key = event_key(text).unwrap_or_default();
            self.event_order.insert((KeptValue::of(&key), number));
            self.event_ids.entry(key).or_insert(number);
            self.events.push(Event { added: texts.added(source), ..Event::default() });
        }
        let event = &mut self.events[number as usize];
        self.event_slugs.change(number, &event.facts.slug, &facts.slug);
        self.event_creators.change(number, event.facts.creator.as_deref(), facts.creator.as_deref());
        let end_before = event.facts.end;
        event.facts = facts;
        for ((shelf, items), spans) in self.shelves.iter_mut().zip(&mut event.items).zip(&event.facts.spans) {
            shelf.forget(source, items, texts);
            *items = shelf.mention(source, spans, texts);
        }
        self.note_event(number);
        let event = &self.events[number as usize];
        if event.facts.end != end_before {
            // The end of those that name none.
            event.markets.clone().into_iter().for_each(|market| self.note_market(market));
        }
    }

    /// Adds the next market; `texts` has its text already.
    pub fn add_market(&mut self, entry: &MarketEntry, texts: &dyn Texts) {
        let number = u32::try_from(self.markets.len()).expect("market numbers are u32");
        self.market_order.insert((entry.id, number));
        self.markets.push(Market { added: entry.added, id: entry.id, life: entry.life, ..Market::default() });
        self.put_market_text(number, entry.event, texts);
    }

    /// Takes the changed text or event of a market; `texts` has the text already.
    pub fn put_market_text(&mut self, number: u32, event: Option<u32>, texts: &dyn Texts) {
        let source = Source::Market(number);
        self.leave_event(number);
        let market = &mut self.markets[number as usize];
        let facts = MarketFacts::parse(texts.text(source));
        self.market_slugs.change(number, &market.facts.slug, &facts.slug);
        self.market_creators.change(number, market.facts.creator.as_deref(), facts.creator.as_deref());
        self.market_submitters.change(
            number,
            market.facts.submitted_by.as_deref(),
            facts.submitted_by.as_deref(),
        );
        (market.facts, market.event) = (facts, event);
        let shelf = &mut self.shelves[ItemKind::Tag as usize];
        shelf.forget(source, &market.tags, texts);
        market.tags = shelf.mention(source, &market.facts.tag_spans, texts);
        self.note_market(number);
        self.enter_event(number);
    }

    /// Takes the new or changed row of an item of its own; `texts` has it already.
    pub fn put_item(&mut self, kind: ItemKind, row: u32, texts: &dyn Texts) {
        if row as usize == self.rows.len() {
            self.rows.push(Box::default());
        }
        let source = Source::Row(row);
        let text = texts.text(source);
        let old = std::mem::take(&mut self.rows[row as usize]);
        let shelf = self.shelf_mut(kind);
        shelf.forget(source, &old, texts);
        let named = shelf.mention(source, &[super::sheet::Span::within(text, text)], texts);
        self.rows[row as usize] = named;
    }

    /// Says how far a market is now.
    pub fn set_life(&mut self, number: u32, life: Life) {
        self.leave_event(number);
        self.markets[number as usize].life = life;
        self.note_market(number);
        self.enter_event(number);
    }

    /// Adds a trade of `volume` millionths of collateral in a market.
    pub fn trade(&mut self, number: u32, time: TimeMs, volume: u64) {
        let market = &mut self.markets[number as usize];
        market.traded = market.traded.saturating_add(volume);
        market.tape.push((time, market.traded));
        self.listed_markets.traded(number, time);
        self.listed_markets.set(number, Column::Volume, market.volume());
        if let Some(number) = market.event {
            let event = &mut self.events[number as usize];
            event.traded = event.traded.saturating_add(volume);
            self.listed_events.traded(number, time);
            self.listed_events.set(number, Column::Volume, event.volume());
        }
    }

    /// Sets what rests in a market, in 1e-10 of collateral.
    pub fn set_resting(&mut self, number: u32, resting: u128) {
        let market = &mut self.markets[number as usize];
        let old = std::mem::replace(&mut market.resting, resting);
        self.listed_markets.set(number, Column::Liquidity, market.liquidity());
        if let Some(number) = market.event {
            let event = &mut self.events[number as usize];
            event.resting = event.resting - old + resting;
            self.listed_events.set(number, Column::Liquidity, event.liquidity());
        }
    }

    /// The date of a market that is shown in a column, by which lists are ordered and narrowed as well.
    #[must_use]
    pub fn date_of_market(&self, number: u32, column: Column) -> Option<Moment> {
        self.dates_of_market(number).shown(column)
    }

    pub(super) fn dates_of_market(&self, number: u32) -> Dates {
        let market = self.market(number);
        let MarketFacts { start, created, updated, closed_at, .. } = market.facts;
        let was_opened = market.facts.closed && market.life == Life::Open;
        let closed_at = closed_at.or(market.over().map(Moment::of)).filter(|_| !was_opened);
        let end = self.end_of_market(number);
        Dates { start, end, creation: None, created, updated, closed_at, added: market.added }
    }

    /// When a market ends, by its own text or else by its event's; none if neither says.
    #[must_use]
    pub fn end_of_market(&self, number: u32) -> Option<Moment> {
        let market = self.market(number);
        market.facts.end.or_else(|| self.event(market.event?).facts.end)
    }

    /// The tags of a market: its event's, then its own, each once.
    pub fn tags_of_market(&self, number: u32) -> impl Iterator<Item = u32> {
        let market = self.market(number);
        let of_event = market.event.map_or(&[][..], |event| self.event(event).tags());
        let tags = self.shelf(ItemKind::Tag);
        let is_own = move |tag: &&u32| market.event.is_none_or(|event| !tags.item(**tag).is_of_event(event));
        of_event.iter().chain(market.tags().iter().filter(is_own)).copied()
    }

    /// What was traded in the 24 hours before `now` in all markets of an event, in millionths.
    #[must_use]
    pub fn volume_of_day(&self, event: &Event, now: TimeMs) -> u64 {
        event.markets().map(|market| self.market(market).volume_of_day(now)).sum()
    }

    fn leave_event(&mut self, number: u32) {
        let market = &self.markets[number as usize];
        let Some(holder) = market.event else {
            return;
        };
        let event = &mut self.events[holder as usize];
        if event.markets.remove(&number) {
            match market.life {
                Life::Over(since) => drop(event.over.remove(&(since, number))),
                Life::Open => event.open -= 1,
                Life::Listed => {}
            }
            event.imported = event.imported.saturating_sub(market.facts.volume);
            event.traded -= market.traded;
            event.resting -= market.resting;
            self.note_event(holder);
        }
    }

    fn enter_event(&mut self, number: u32) {
        let market = &self.markets[number as usize];
        let Some(holder) = market.event else {
            return;
        };
        let event = &mut self.events[holder as usize];
        if event.markets.insert(number) {
            match market.life {
                Life::Over(since) => drop(event.over.insert((since, number))),
                Life::Open => event.open += 1,
                Life::Listed => {}
            }
            event.imported = event.imported.saturating_add(market.facts.volume);
            event.traded += market.traded;
            event.resting += market.resting;
            self.listed_events.traded(holder, self.listed_markets.last_trade(number));
            self.note_event(holder);
        }
    }
}

/// The moment up to which trades are no longer of the last 24 hours.
pub(super) const fn day_before(now: TimeMs) -> TimeMs {
    TimeMs(now.0.saturating_sub(DAY_MS))
}

/// Rows by name. A slug should name one row; if it names several, all are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names(HashMap<String, Vec<u32>>);

impl Names {
    fn of(&self, name: &str) -> impl Iterator<Item = u32> + use<'_> {
        self.0.get(name).into_iter().flatten().copied()
    }

    /// Changes the name of row `number`; no row is found by an empty one.
    fn change(&mut self, number: u32, old: &str, new: &str) {
        if old == new {
            return;
        }
        if let Some(rows) = self.0.get_mut(old) {
            rows.retain(|row| *row != number);
            if rows.is_empty() {
                self.0.remove(old);
            }
        }
        if !new.is_empty() {
            let rows = self.0.entry(new.to_owned()).or_default();
            let place = rows.partition_point(|row| *row < number);
            rows.insert(place, number);
        }
    }
}

/// Rows by who made them, which is found in any case of letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Creators(Names);

impl Creators {
    fn of(&self, creator: &str) -> impl Iterator<Item = u32> + use<'_> {
        self.0.of(&creator.to_ascii_lowercase())
    }

    /// Changes who made row `number`.
    fn change(&mut self, number: u32, old: Option<&str>, new: Option<&str>) {
        let name = |creator: Option<&str>| creator.unwrap_or_default().to_ascii_lowercase();
        if old != new {
            self.0.change(number, &name(old), &name(new));
        }
    }
}

#[cfg(test)]
mod tests;
