//! Objects of the catalog: the imported text, with the fields put in that the exchange knows better.
//!
//! | object | the exchange's fields, true at the time of the answer |
//! |---|---|
//! | market | `id`, `conditionId`, `outcomes`, `clobTokenIds`, `outcomePrices`, `bestBid`, `bestAsk`, `spread`, `lastTradePrice`, `volume`, `volumeNum`, `volume24hr`, `liquidity`, `liquidityNum`, `active`, `closed`, `closedTime`, `archived`, `acceptingOrders`, `enableOrderBook`, `orderPriceMinTickSize`, `orderMinSize`, `negRisk`, `feesEnabled`, `feeSchedule`, `makerBaseFee`, `takerBaseFee`; `tags` if asked for |
//! | event | `id`, `active`, `closed`, `closedTime`, `archived`, `volume`, `volume24hr`, `liquidity`, `tags`, `series`, `markets`, `eventCreators` if it has any |
//! | tag, series, creator | `id`; the newest of all copies is shown |
//!
//! - `crate::catalog`'s model defines what volumes and liquidity count.
//! - Prices are of the first outcome. Where nobody bids, `bestBid` is 0, and where nobody asks, `bestAsk` is 1, as at the
//!   venue. `lastTradePrice` is the text's until there is a trade here, and 0 without either; `outcomePrices` is the
//!   payout, else the middle of the book, else the last trade, else the text's, else one half.
//! - A field of the contract that the text lacks is filled in: with an empty string, the flag of an ordinary row, or
//!   the date on which the row was made or imported. A market without an end has its event's; without that, nothing
//!   ends before [`catalog::NO_END`].
//! - An event shows the markets, and a series the events, that the request's `creator` leaves ([`Scope`]); sums and flags
//!   are of all of them.
//! - Tags, series and creators are objects, whatever the text has: strict clients refuse a page for one that is a string.
//! - `creationDate` is left out of a list's items, and an event within a market or a series has neither tags, markets,
//!   series, creators nor metadata. Nor has one in a list that would be longer than [`EVENT_OF_LIST_BYTES`],
//!   or for which the other rows of its page leave no room.

use super::super::books::shown_bests;
use super::super::markets::write_span;
use super::super::trades::{base_fee, maker_base_fee};
use super::super::{ANSWER_BYTES_MAX, Reader, Token};
use super::scope::Scope;
use crate::catalog::search::Hit;
use crate::catalog::{
    self, Column, EventFacts, Form, Kind, Market, MarketFacts, Moment, Sheet, Shown, Source, Span, Texts,
};
use crate::domain::{ItemKind, MarketNo, Outcome, TimeMs, TokenId, Word};
use crate::json::Writer;
use crate::ledger::MarketRow;

/// A series has its newest events by their ids with it, for its page to stay small whatever comes every five minutes,
/// and fewer if the answer has no room for these; all of them are in `/events?series_slug=`, which begins with these.
const EVENTS_OF_SERIES_MAX: usize = 100;

/// How long an event of a list is about, for a page always to have room for one: half of what an answer may have.
const EVENT_OF_LIST_BYTES: usize = ANSWER_BYTES_MAX / 2;

/// About how long is what is put into each imported text.
const ADDED_BYTES: usize = 1_000;

/// How much of an event is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventForm {
    /// Everything.
    Whole,
    /// An item of a list.
    Listed,
    /// Within a market or a series, or an item of a list that would be too long.
    Summary,
}

/// How much of a market is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MarketForm {
    /// With a summary of its event.
    Alone,
    /// With a summary of its event, and the tags of its event and its own.
    AloneWithTags,
    /// Within its event.
    InEvent,
}

/// How much of a search's hit is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::reader) enum HitForm {
    /// As an item of a list of events.
    Listed,
    /// What names it.
    Named,
}

/// What precedes a market's id in that of the event for which it stands: events and markets are numbered apart.
pub(super) const MARKET_AS_EVENT: &str = "market-";

fn id_as_event(market: &Market) -> String {
    format!("{MARKET_AS_EVENT}{}", market.id)
}

impl Reader {
    /// A hit of a search. A market without an event stands as an event whose only market it is.
    pub(in crate::reader) fn write_hit(&self, json: &mut Writer<'_>, hit: Hit, form: HitForm, scope: &Scope) {
        let catalog = self.index.catalog();
        match hit {
            Hit::Event(event) if form == HitForm::Listed => {
                self.write_event(json, event, EventForm::Listed, scope);
            }
            Hit::Event(event) => {
                let facts = &catalog.event(event).facts;
                json.open_object().key("id").text(&facts.id).key("ticker").text(&facts.ticker);
                json.key("slug").text(&facts.slug).key("title").text(&facts.title).close_object();
            }
            Hit::Market(number) => {
                let market = catalog.market(number);
                let facts = &market.facts;
                json.open_object().key("id").text(&id_as_event(market));
                json.key("ticker").text(&facts.slug).key("slug").text(&facts.slug);
                json.key("title").text(&facts.question);
                if form == HitForm::Listed {
                    json.key("active").boolean(!facts.inactive).key("closed").boolean(market.is_closed());
                    json.key("archived").boolean(facts.archived).key("markets").open_array();
                    self.write_catalog_market(json, number, MarketForm::InEvent, scope);
                    json.close_array();
                }
                json.close_object();
            }
        }
    }

    /// An event by itself.
    pub(super) fn write_whole_event(&self, json: &mut Writer<'_>, event: Hit, scope: &Scope) {
        match event {
            Hit::Event(event) => self.write_event(json, event, EventForm::Whole, scope),
            Hit::Market(market) => self.write_market_as_event(json, market, scope),
        }
    }

    /// A market without an event as the event that searches and wallets' rows name: all that it says is the market's.
    fn write_market_as_event(&self, json: &mut Writer<'_>, number: u32, scope: &Scope) {
        let catalog = self.index.catalog();
        let market = catalog.market(number);
        let MarketFacts { slug, question, .. } = &market.facts;
        let facts = EventFacts {
            slug: slug.clone(),
            ticker: slug.clone(),
            title: question.clone(),
            ..EventFacts::parse("{}")
        };
        let date = |column| catalog.date_of_market(number, column);
        json.open_object().key("id").text(&id_as_event(market));
        write_missing(
            json,
            &facts.sheet,
            &catalog::EVENT,
            |name| said_by_event(&facts, name),
            |name| shown_date(date(date_column(name))),
        );
        write_date(json, "creationDate", "", date(Column::CreatedAt));
        json.key("active").boolean(!market.facts.inactive).key("closed").boolean(market.is_closed());
        let text = &self.market(MarketNo(number)).text;
        write_date(json, "closedTime", market.facts.closed_time.of(text), date(Column::ClosedTime));
        json.key("archived").boolean(market.facts.archived);
        json.key("volume").millionths_number(market.volume());
        json.key("volume24hr").millionths_number(market.volume_of_day(scope.now));
        json.key("liquidity").millionths_number(market.liquidity()).key("tags");
        self.write_market_tags(json, number);
        json.key("markets").open_array();
        self.write_catalog_market(json, number, MarketForm::InEvent, scope);
        json.close_array().key("series").open_array().close_array();
        json.key("eventMetadata").open_object().close_object().close_object();
    }

    /// How long a hit of a search is about, as it is listed: its imported texts, and what is put into each.
    pub(in crate::reader) fn hit_bytes(&self, hit: Hit, scope: &Scope) -> usize {
        let of_market = |market: u32| self.market(MarketNo(market)).text.len() + ADDED_BYTES;
        match hit {
            Hit::Market(market) => of_market(market),
            Hit::Event(event) => {
                let catalog = self.index.catalog();
                let markets =
                    catalog.event(event).markets().filter(|market| scope.has_market(catalog, *market));
                self.ledger.text(Source::Event(event)).len()
                    + ADDED_BYTES
                    + markets.map(of_market).sum::<usize>()
            }
        }
    }

    /// An event of a list, with its markets if there is room for them.
    pub(super) fn write_event_of_list(&self, json: &mut Writer<'_>, event: u32, room: usize, scope: &Scope) {
        let before = json.bytes();
        if self.hit_bytes(Hit::Event(event), scope) <= room.min(EVENT_OF_LIST_BYTES) {
            self.write_event(json, event, EventForm::Listed, scope);
            if json.bytes() - before <= room {
                return;
            }
            // It was longer than its texts are.
            json.cut(before);
        }
        self.write_event(json, event, EventForm::Summary, scope);
    }

    /// About how long an event's summary is.
    pub(super) fn summary_bytes(&self, event: u32) -> usize {
        bytes_of(&self.index.catalog().event(event).facts.sheet)
    }

    /// About how long a market is that stands alone.
    pub(super) fn market_bytes(&self, market: u32) -> usize {
        let market = self.index.catalog().market(market);
        bytes_of(&market.facts.sheet) + market.event.map_or(0, |event| self.summary_bytes(event))
    }

    /// About how long a tag, series or creator is, without a series' events.
    pub(super) fn item_bytes(&self, kind: ItemKind, item: u32) -> usize {
        let shown = self.index.catalog().shelf(kind).item(item).shown();
        shown.map_or(0, |shown| bytes_of(&shown.sheet))
    }

    pub(super) fn write_event(&self, json: &mut Writer<'_>, number: u32, form: EventForm, scope: &Scope) {
        let catalog = self.index.catalog();
        let event = catalog.event(number);
        let facts = &event.facts;
        let text = self.ledger.text(Source::Event(number));
        json.open_object().key("id").text(&facts.id);
        write_kept(json, &facts.sheet, text);
        write_missing(
            json,
            &facts.sheet,
            &catalog::EVENT,
            |name| said_by_event(facts, name),
            |name| shown_date(event.date(date_column(name))),
        );
        if form != EventForm::Listed {
            write_date(json, "creationDate", facts.creation_date.of(text), event.date(Column::CreationDate));
        }
        json.key("active").boolean(!facts.inactive).key("closed").boolean(event.is_closed());
        write_date(json, "closedTime", facts.closed_time.of(text), event.date(Column::ClosedTime));
        json.key("archived").boolean(facts.archived);
        json.key("volume").millionths_number(event.volume());
        json.key("volume24hr").millionths_number(catalog.volume_of_day(event, scope.now));
        json.key("liquidity").millionths_number(event.liquidity());
        if form != EventForm::Summary {
            json.key("tags");
            self.write_copies(json, ItemKind::Tag, event.tags());
            json.key("markets").open_array();
            for market in event.markets().filter(|market| scope.has_market(catalog, *market)) {
                self.write_catalog_market(json, market, MarketForm::InEvent, scope);
                // The answer is refused then.
                if ANSWER_BYTES_MAX < json.bytes() {
                    break;
                }
            }
            json.close_array().key("series");
            self.write_copies(json, ItemKind::Series, event.series());
            if !event.creators().is_empty() {
                json.key("eventCreators");
                self.write_copies(json, ItemKind::Creator, event.creators());
            }
            write_metadata(json, facts.metadata, text, form);
        }
        json.close_object();
    }

    pub(super) fn write_catalog_market(
        &self,
        json: &mut Writer<'_>,
        number: u32,
        form: MarketForm,
        scope: &Scope,
    ) {
        let catalog = self.index.catalog();
        let market = catalog.market(number);
        let row = self.market(MarketNo(number));
        let facts = &market.facts;
        json.open_object().key("id").number_text(row.market_id).key("conditionId").condition(&row.condition);
        write_kept(json, &facts.sheet, &row.text);
        write_missing(
            json,
            &facts.sheet,
            &catalog::MARKET,
            |name| said_by_market(facts, row, name),
            |name| shown_date(catalog.date_of_market(number, date_column(name))),
        );
        let labels = row.labels.each_ref().map(|label| json_text(|json| json.text(label)));
        json.key("outcomes").text(&pair(&labels));
        json.key("clobTokenIds").text(&pair(&row.tokens.each_ref().map(token_text)));
        let prices = [Outcome::Zero, Outcome::One].map(|outcome| {
            let price = self.shown_price(row, outcome);
            json_text(|json| json.millionths_text(price))
        });
        json.key("outcomePrices").text(&pair(&prices));
        self.write_prices(json, row, facts);
        json.key("volume").millionths_text(market.volume());
        json.key("volumeNum").millionths_number(market.volume());
        json.key("volume24hr").millionths_number(market.volume_of_day(scope.now));
        json.key("liquidity").millionths_text(market.liquidity());
        json.key("liquidityNum").millionths_number(market.liquidity());
        json.key("active").boolean(!facts.inactive).key("closed").boolean(market.is_closed());
        let closed_time = catalog.date_of_market(number, Column::ClosedTime);
        write_date(json, "closedTime", facts.closed_time.of(&row.text), closed_time);
        json.key("archived").boolean(facts.archived);
        json.key("acceptingOrders").boolean(self.accepts_orders(row));
        json.key("enableOrderBook").boolean(!row.mode.is_closed());
        json.key("orderPriceMinTickSize").ten_thousandths_number(row.tick.ten_thousandths());
        json.key("orderMinSize").millionths_number(row.min_size.0);
        json.key("negRisk").boolean(row.neg_risk).key("feesEnabled").boolean(0 < row.fee.rate);
        json.key("makerBaseFee").number(maker_base_fee(&row.fee));
        json.key("takerBaseFee").number(base_fee(row.fee.rate)).key("feeSchedule").open_object();
        json.key("rate").millionths_number(row.fee.rate.into());
        json.key("exponent").number(row.fee.exponent.into());
        json.key("takerOnly").boolean(row.fee.taker_only);
        json.key("rebateRate").millionths_number(row.fee.rebate_rate.into()).close_object();
        if form == MarketForm::AloneWithTags {
            json.key("tags");
            self.write_market_tags(json, number);
        }
        if form != MarketForm::InEvent {
            json.key("events").open_array();
            if let Some(event) = market.event {
                self.write_event(json, event, EventForm::Summary, scope);
            }
            json.close_array();
        }
        json.close_object();
    }

    /// `bestBid`, `bestAsk`, `spread` and `lastTradePrice`.
    fn write_prices(&self, json: &mut Writer<'_>, row: &MarketRow, facts: &MarketFacts) {
        let token = Token { market: row.market, outcome: Outcome::Zero };
        let [bid, ask] = shown_bests(self.bests(token));
        json.key("bestBid").ten_thousandths_number(bid).key("bestAsk").ten_thousandths_number(ask);
        json.key("spread").ten_thousandths_number(ask.saturating_sub(bid)).key("lastTradePrice");
        match self.last_trade(token) {
            Some((price, _)) => json.ten_thousandths_number(price.ten_thousandths()),
            None => json.millionths_number(facts.last_price.unwrap_or(0)),
        };
    }

    /// GET /markets/{id}/description.
    pub(super) fn write_description(&self, json: &mut Writer<'_>, number: u32) {
        let row = self.market(MarketNo(number));
        let facts = self.index.facts(row.market);
        json.open_object().key("id").number_text(row.market_id).key("conditionId").condition(&row.condition);
        json.key("marketMakerAddress").text(&facts.market_maker).key("description");
        write_span(json, facts.description, &row.text);
        json.close_object();
    }

    /// The tags of a market as objects.
    pub(super) fn write_market_tags(&self, json: &mut Writer<'_>, number: u32) {
        let tags: Vec<u32> = self.index.catalog().tags_of_market(number).collect();
        self.write_copies(json, ItemKind::Tag, &tags);
    }

    /// The tags of a market as an array of their labels, as the order book's form and the streams have them; a tag
    /// that nobody gave a label is not among them.
    pub(in crate::reader) fn write_tag_labels(&self, json: &mut Writer<'_>, market: MarketNo) {
        let catalog = self.index.catalog();
        json.open_array();
        for tag in catalog.tags_of_market(market.0) {
            let shown = catalog.shelf(ItemKind::Tag).item(tag).shown();
            if let Some(shown) = shown.filter(|shown| !shown.label.is_empty()) {
                json.text(&shown.label);
            }
        }
        json.close_array();
    }

    /// Tags, series or creators as objects, as they stand within others.
    pub(super) fn write_copies(&self, json: &mut Writer<'_>, kind: ItemKind, items: &[u32]) {
        json.open_array();
        for item in items {
            self.write_copy(json, kind, *item);
            json.close_object();
        }
        json.close_array();
    }

    /// The newest events that a series has with it, the newest last; a tag or creator has none.
    pub(super) fn newest_events(&self, kind: ItemKind, number: u32, scope: &Scope) -> Vec<u32> {
        if kind != ItemKind::Series {
            return Vec::new();
        }
        let catalog = self.index.catalog();
        let events = catalog.shelf(kind).item(number).events();
        catalog.newest_of(events.filter(|event| scope.has_event(catalog, *event)), EVENTS_OF_SERIES_MAX)
    }

    /// The last of these events: as many as `room` has room for, as summaries.
    pub(super) fn last_with_room<'e>(&self, events: &'e [u32], mut room: usize) -> &'e [u32] {
        let fits = |event: &&u32| {
            let rest = room.checked_sub(self.summary_bytes(**event));
            room = rest.unwrap_or(room);
            rest.is_some()
        };
        let count = events.iter().rev().take_while(fits).count();
        &events[events.len() - count..]
    }

    /// A tag, series or creator by itself; a series has these events.
    pub(super) fn write_item(
        &self,
        json: &mut Writer<'_>,
        kind: ItemKind,
        number: u32,
        events: &[u32],
        scope: &Scope,
    ) {
        self.write_copy(json, kind, number);
        if kind == ItemKind::Series {
            json.key("events").open_array();
            for event in events {
                self.write_event(json, *event, EventForm::Summary, scope);
            }
            json.close_array();
        }
        json.close_object();
    }

    /// The fields of a tag, series or creator, without the brace at the end.
    fn write_copy(&self, json: &mut Writer<'_>, kind: ItemKind, number: u32) {
        let item = self.index.catalog().shelf(kind).item(number);
        json.open_object().key("id").text(&item.key);
        if let Some(shown) = item.shown() {
            write_kept(json, &shown.sheet, self.ledger.text(shown.source));
            write_missing(
                json,
                &shown.sheet,
                kind.form(),
                |name| said_by_item(shown, name),
                |name| (if name == "updatedAt" { shown.updated } else { shown.created }).in_ms(),
            );
        }
    }
}

/// About how long an object is with what [`write_kept`] writes of its text.
fn bytes_of(sheet: &Sheet) -> usize {
    let kept: u64 = sheet.kept().iter().map(|run| u64::from(run.bytes())).sum();
    ADDED_BYTES + usize::try_from(kept).expect("texts are in memory")
}

fn write_kept(json: &mut Writer<'_>, sheet: &Sheet, text: &str) {
    for run in sheet.kept() {
        json.raw(run.of(text).as_bytes());
    }
}

/// Writes the fields that the contract requires and the text lacks.
fn write_missing(
    json: &mut Writer<'_>,
    sheet: &Sheet,
    form: &'static Form,
    said: impl Fn(&str) -> String,
    date: impl Fn(&str) -> TimeMs,
) {
    for (name, kind) in sheet.missing(form) {
        json.key(name);
        match kind {
            Kind::Text => json.text(&said(name)),
            Kind::Date => json.date_time(date(name)),
            Kind::Flag(flag) => json.boolean(flag),
        };
    }
}

/// A date as the text says it, else as known here; nothing if there is none.
fn write_date(json: &mut Writer<'_>, name: &'static str, said: &str, date: Option<Moment>) {
    let Some(date) = date else { return };
    json.key(name);
    if said.is_empty() {
        json.instant(date.in_ms())
    } else {
        json.raw(said.as_bytes())
    };
}

/// Metadata: always in the whole form, in a list's item only if the text has some.
fn write_metadata(json: &mut Writer<'_>, metadata: Span, text: &str, form: EventForm) {
    if !metadata.is_empty() {
        json.key("eventMetadata").raw(metadata.of(text).as_bytes());
    } else if form == EventForm::Whole {
        json.key("eventMetadata").open_object().close_object();
    }
}

fn said_by_event(facts: &EventFacts, name: &str) -> String {
    match name {
        "slug" => facts.slug.clone(),
        "title" => facts.title.clone(),
        "ticker" => facts.ticker.clone(),
        _ => String::new(),
    }
}

fn said_by_market(facts: &MarketFacts, row: &MarketRow, name: &str) -> String {
    match name {
        "question" => facts.question.clone(),
        "slug" => facts.slug.clone(),
        "questionID" if row.question != Word::ZERO => {
            json_text(|json| json.hex(row.question.as_bytes())).trim_matches('"').to_owned()
        }
        _ => String::new(),
    }
}

fn said_by_item(shown: &Shown, name: &str) -> String {
    match name {
        "label" | "title" | "creatorName" => shown.label.clone(),
        "slug" | "creatorHandle" => shown.slug.clone(),
        _ => String::new(),
    }
}

/// The column of a date that the contract requires in every object.
fn date_column(name: &str) -> Column {
    let column = catalog::EVENT_COLUMNS.iter().find(|(column, _)| *column == name);
    column.expect("lists can be ordered by every date of the contract").1
}

fn shown_date(date: Option<Moment>) -> TimeMs {
    date.expect("only the time of closing may be absent").in_ms()
}

/// Two JSON values as the array that Gamma nests in a string.
fn pair([zero, one]: &[String; 2]) -> String {
    format!("[{zero}, {one}]")
}

fn token_text(token: &TokenId) -> String {
    json_text(|json| json.token(token))
}

/// One JSON value as text.
fn json_text(write: impl for<'w, 'o> FnOnce(&'w mut Writer<'o>) -> &'w mut Writer<'o>) -> String {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    String::from_utf8(out).expect("the writer writes text")
}
