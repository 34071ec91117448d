//! Whole files: every row is taken or refused, the first [`NAMED_MAX`] by name, and rows that repeat each other are
//! merged.
//!
//! An [`Import`] of a request's body keeps every text. One that surveys files keeps the texts of
//! events and items, which are merged from many rows, but only the place of a market's row: a
//! second reading brings the text. So a survey of a venue's whole dump takes about a kilobyte per
//! market, however long the rows are.

use std::collections::HashMap;
use std::hash::Hasher;

use super::Refused;
use super::event::ImportedEvent;
use super::fields::{self, FIELDS_MAX, Fields};
use super::file::FileFault;
use super::item::ImportedItem;
use super::market::{ImportedMarket, MarketDefaults};
use super::rows::Rows;
use super::sheet::Span;
use crate::domain::{ConditionId, ItemKind, TokenId};

/// The place of a market's object in the files of a survey.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which file, from 0.
    pub file: u32,
    /// How many bytes of the unpacked file precede it.
    pub offset: u64,
    /// How long it is.
    pub bytes: u32,
    /// The number of the file's row that holds it, from 1.
    pub row: u32,
}

/// A market's object as a row that an import reads again: without blanks between tokens, and with the bare id
/// of `event` for its events. `None` if `object` is no object.
#[must_use]
pub fn market_row(object: &str, event: Option<&str>) -> Option<String> {
    let whole = fields::with_whole_characters(object);
    let events = event.map_or_else(|| "[]".to_owned(), |key| format!("[{{\"id\":{}}}]", fields::quoted(key)));
    Some(Fields::parse(&whole)?.with("events", &events).compact())
}

/// Refused rows that are named one by one; further ones are counted.
pub const NAMED_MAX: usize = 1_000;

/// What a row may be.
const ROW_RULE: &str = "an event or market object of at most 1024 fields";

/// What tells the kinds of rows apart.
const KIND_RULE: &str = "a market (conditionId), an event (title or markets), a tag, a series or a creator";

/// A list of objects within a row.
#[derive(Clone, Copy)]
struct List {
    field: &'static str,
    /// What one of them is called.
    one: &'static str,
    allowed: &'static str,
    allowed_one: &'static str,
}

const EVENTS: List = List {
    field: "events",
    one: "event",
    allowed: "an array of event objects",
    allowed_one: "an event object of at most 1024 fields",
};

const MARKETS: List = List {
    field: "markets",
    one: "market",
    allowed: "an array of market objects",
    allowed_one: "a market object of at most 1024 fields",
};

/// The event with `series` as its series, if it names none and does not become too large.
fn in_series<'a>(event: &Fields<'a>, series: &'a str) -> Option<Fields<'a>> {
    let names_none = match event.raw("series") {
        None => true,
        Some(raw) => fields::items(raw).is_some_and(|named| named.is_empty()),
    };
    let with = event.clone().with("series", series);
    let fits = with.names().count() <= FIELDS_MAX && ImportedEvent::read(&with, "").is_ok();
    (names_none && fits).then_some(with)
}

/// True if this is what stands around the rows of a page by cursor.
fn is_page(fields: &Fields<'_>) -> bool {
    let mut names = fields.names();
    (fields.has("events") || fields.has("markets"))
        && names.all(|name| ["events", "markets", "next_cursor"].contains(&name))
}

/// The row that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Here {
    file: u32,
    row: u32,
    offset: u64,
}

/// How a text compares with another of the same instant: the longer wins, and between two of the
/// same length either, as long as it is always the same one.
type Weight = (usize, u64);

fn weight(text: &str) -> Weight {
    // The hasher's keys are fixed, so every run of a build weighs alike.
    let mut hash = std::hash::DefaultHasher::new();
    hash.write(text.as_bytes());
    (text.len(), hash.finish())
}

/// Everything that was read, each event and each market once.
#[derive(Clone, Debug, Default)]
pub struct Import {
    surveys: bool,
    here: Here,
    events: Vec<ImportedEvent>,
    items: Vec<ImportedItem>,
    markets: Vec<ImportedMarket>,
    /// The place and weight of every market, in a survey.
    places: Vec<(Place, Weight)>,
    /// The first [`NAMED_MAX`] that were refused.
    refused: Vec<Refused>,
    /// The file and the row of each of `refused`.
    refused_at: Vec<(u32, u32)>,
    /// How many more were.
    refused_more: usize,
    repeated: usize,
    event_index: HashMap<String, usize>,
    item_index: HashMap<(ItemKind, String), usize>,
    market_index: HashMap<ConditionId, usize>,
    tokens: HashMap<TokenId, ConditionId>,
    ids: HashMap<u64, ConditionId>,
}

impl Import {
    /// Reads a request's body, which is not packed: it would unpack to a thousand times its length.
    pub fn read(body: &[u8], defaults: &MarketDefaults) -> Result<Self, FileFault> {
        let mut import = Self::default();
        import.add_rows(0, &mut Rows::plain(body), defaults, |_| ())?;
        Ok(import)
    }

    /// An import that keeps no market's text; see [`Self::add_rows`].
    #[must_use]
    pub fn survey() -> Self {
        Self { surveys: true, ..Self::default() }
    }

    /// Reads file number `file` row by row; `progress` is called with how many of its bytes were
    /// read so far. After a fault some rows may have been taken, and the import is of no more use.
    pub fn add_rows(
        &mut self,
        file: u32,
        rows: &mut Rows<'_>,
        defaults: &MarketDefaults,
        mut progress: impl FnMut(u64),
    ) -> Result<(), FileFault> {
        while let Some(row) = rows.next_row()? {
            self.here = Here { file, row: row.number, offset: row.offset };
            self.add_row(row.text, &format!("row {}", row.number), defaults)?;
            progress(self.here.offset + row.text.len() as u64);
        }
        Ok(())
    }

    /// The place of a market of a survey, by its index in [`Self::markets`].
    #[must_use]
    pub fn place(&self, market: usize) -> Option<&Place> {
        self.places.get(market).map(|(place, _)| place)
    }

    /// The index in [`Self::markets`] of the market with this numeric id.
    #[must_use]
    pub fn market_with_id(&self, id: u64) -> Option<usize> {
        self.market_index.get(self.ids.get(&id)?).copied()
    }

    /// The rows of [`Self::refused`], with the number of its file, from 0, and of its row in
    /// that file, from 1.
    pub fn refused_rows(&self) -> impl Iterator<Item = ((u32, u32), &Refused)> {
        self.refused_at.iter().copied().zip(&self.refused)
    }

    /// Every event, in the order in which they were first named.
    #[must_use]
    pub fn events(&self) -> &[ImportedEvent] {
        &self.events
    }

    /// Every tag, series and creator that came by itself, in the order in which they were first
    /// named.
    #[must_use]
    pub fn items(&self) -> &[ImportedItem] {
        &self.items
    }

    /// Every market, in the order in which they were first named.
    #[must_use]
    pub fn markets(&self) -> &[ImportedMarket] {
        &self.markets
    }

    /// The first [`NAMED_MAX`] rows that could not be taken, and why.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// How many more could not be taken.
    #[must_use]
    pub const fn refused_more(&self) -> usize {
        self.refused_more
    }

    /// How many rows repeated a market; of each market the newest text was kept.
    #[must_use]
    pub const fn repeated(&self) -> usize {
        self.repeated
    }

    /// Takes a row in. What stands around the rows of a page by cursor is taken off, and they are rows.
    fn add_row(&mut self, raw: &str, row: &str, defaults: &MarketDefaults) -> Result<(), FileFault> {
        let raw = &*fields::with_whole_characters(raw);
        let Some(row_fields) = Fields::parse(raw) else {
            if let Some(why) = fields::fault(raw) {
                return Err(FileFault::NotJson(format!("{row}: {why}")));
            }
            self.refuse(Refused::new(row, "row", raw, ROW_RULE));
            return Ok(());
        };
        if !is_page(&row_fields) {
            self.add_object(raw, raw, &row_fields, row, defaults);
            return Ok(());
        }
        for list in [EVENTS, MARKETS] {
            self.each_of(&row_fields, list, row, |import, object, fields, row| {
                import.add_object(raw, object, fields, row, defaults);
            });
        }
        Ok(())
    }

    /// Takes in `object`, which stands in the row `whole` or is it. One that is no item (see [`ImportedItem`])
    /// is an event if it holds markets, or if it has a title and none of a market's fields; a market has one of these.
    fn add_object(
        &mut self,
        whole: &str,
        object: &str,
        fields: &Fields<'_>,
        row: &str,
        defaults: &MarketDefaults,
    ) {
        let is_market = ["conditionId", "clobTokenIds", "question"].iter().any(|name| fields.has(name));
        if let Some(kind) = ImportedItem::kind_of(fields) {
            self.add_item(whole, kind, fields, row, defaults);
        } else if fields.has("markets") || (!is_market && fields.has("title")) {
            self.add_event(whole, fields, row, defaults);
        } else if is_market {
            self.add_market_of_array(whole, object, fields, row, defaults);
        } else {
            self.refuse(Refused::new(row, "row", object, KIND_RULE));
        }
    }

    fn refuse(&mut self, refused: Refused) {
        if self.refused.len() == NAMED_MAX {
            self.refused_more += 1;
            return;
        }
        self.refused.push(refused);
        self.refused_at.push((self.here.file, self.here.row));
    }

    /// Calls `take` for each object of a list within `row`; whatever else stands there is refused.
    fn each_of(
        &mut self,
        fields: &Fields<'_>,
        list: List,
        row: &str,
        mut take: impl FnMut(&mut Self, &str, &Fields<'_>, &str),
    ) {
        let Some(raw) = fields.raw(list.field) else {
            return;
        };
        let Some(objects) = fields::items(raw) else {
            return self.refuse(Refused::new(row, list.field, raw, list.allowed));
        };
        for (object, number) in objects.into_iter().zip(1..) {
            let row = format!("{row}, {} {number}", list.one);
            match Fields::parse(object) {
                Some(fields) => take(self, object, &fields, &row),
                None => self.refuse(Refused::new(&row, "row", object, list.allowed_one)),
            }
        }
    }

    /// A series brings its events with their markets. An event that names no series belongs to it.
    fn add_item(
        &mut self,
        whole: &str,
        kind: ItemKind,
        fields: &Fields<'_>,
        row: &str,
        defaults: &MarketDefaults,
    ) {
        let item = match ImportedItem::read(kind, fields, row) {
            Ok(item) => item,
            Err(refused) => return self.refuse(refused),
        };
        if kind == ItemKind::Series {
            // What the lists and searches of events look for; the series itself is shown from its own text.
            let part = |name| fields.raw(name).map(|raw| format!("\"{name}\":{raw}"));
            let parts: Vec<String> = ["id", "slug", "recurrence"].into_iter().filter_map(part).collect();
            let series = format!("[{{{}}}]", parts.join(","));
            self.each_of(fields, EVENTS, row, |import, _, event, row| {
                let named = in_series(event, &series);
                import.add_event(whole, named.as_ref().unwrap_or(event), row, defaults);
            });
        }
        let place = (kind, item.key.clone());
        if let Some(&index) = self.item_index.get(&place) {
            self.items[index].absorb(&item);
        } else {
            self.item_index.insert(place, self.items.len());
            self.items.push(item);
        }
    }

    fn add_event(&mut self, whole: &str, fields: &Fields<'_>, row: &str, defaults: &MarketDefaults) {
        let key = self.keep_event(fields, row);
        let row = key.as_ref().map_or_else(|| row.to_owned(), |key| format!("event {key}"));
        self.each_of(fields, MARKETS, &row, |import, market, fields, row| {
            import.add_market(Span::within(whole, market), fields, row, key.clone(), defaults);
        });
    }

    /// A market of an array carries the event that holds it; if it carries several, the first counts.
    fn add_market_of_array(
        &mut self,
        whole: &str,
        object: &str,
        fields: &Fields<'_>,
        row: &str,
        defaults: &MarketDefaults,
    ) {
        let mut key = None;
        self.each_of(fields, EVENTS, row, |import, _, event, row| {
            let kept = import.keep_event(event, row);
            key = key.take().or(kept);
        });
        self.add_market(Span::within(whole, object), fields, row, key, defaults);
    }

    fn keep_event(&mut self, fields: &Fields<'_>, row: &str) -> Option<String> {
        let event = match ImportedEvent::read(fields, row) {
            Ok(event) => event,
            Err(refused) => {
                self.refuse(refused);
                return None;
            }
        };
        let key = event.key.clone();
        if let Some(&index) = self.event_index.get(&key) {
            self.events[index].absorb(&event);
        } else {
            self.event_index.insert(key.clone(), self.events.len());
            self.events.push(event);
        }
        Some(key)
    }

    /// `span` is the place of the market's object in its row.
    fn add_market(
        &mut self,
        span: Span,
        fields: &Fields<'_>,
        row: &str,
        event: Option<String>,
        defaults: &MarketDefaults,
    ) {
        match ImportedMarket::read(fields, row, event, defaults).and_then(|market| self.clash(market)) {
            Ok(market) => {
                let place = Place {
                    file: self.here.file,
                    offset: self.here.offset + span.start() as u64,
                    bytes: span.bytes(),
                    row: self.here.row,
                };
                self.keep_market(market, place);
            }
            Err(refused) => self.refuse(refused),
        }
    }

    /// Two conditions of one import never share a token or an id.
    fn clash(&self, market: ImportedMarket) -> Result<ImportedMarket, Refused> {
        let other = |held: Option<&ConditionId>| held.is_some_and(|held| *held != market.condition);
        if market.tokens.iter().flatten().any(|token| other(self.tokens.get(token))) {
            return Err(Refused::new(
                &market.row(),
                "clobTokenIds",
                "a token of another market",
                "tokens of its own",
            ));
        }
        if market.market_id.is_some_and(|id| other(self.ids.get(&id))) {
            return Err(Refused::new(&market.row(), "id", "the id of another market", "an id of its own"));
        }
        Ok(market)
    }

    fn keep_market(&mut self, mut market: ImportedMarket, place: Place) {
        for token in market.tokens.iter().flatten() {
            self.tokens.insert(*token, market.condition);
        }
        if let Some(id) = market.market_id {
            self.ids.insert(id, market.condition);
        }
        let known = self.market_index.get(&market.condition).copied();
        let heavy = if self.surveys || known.is_some() { weight(&market.text) } else { Weight::default() };
        if self.surveys {
            market.text = String::new();
            market.labels = [String::new(), String::new()];
        }
        let Some(index) = known else {
            self.market_index.insert(market.condition, self.markets.len());
            self.markets.push(market);
            if self.surveys {
                self.places.push((place, heavy));
            }
            return;
        };
        self.repeated += 1;
        let kept = &mut self.markets[index];
        let kept_weight = self.places.get(index).map_or_else(|| weight(&kept.text), |(_, heavy)| *heavy);
        if (market.updated, heavy) > (kept.updated, kept_weight) {
            market.event = market.event.take().or_else(|| kept.event.take());
            *kept = market;
            if self.surveys {
                self.places[index] = (place, heavy);
            }
        } else if kept.event.is_none() {
            kept.event = market.event;
        }
    }
}

#[cfg(test)]
mod tests;
