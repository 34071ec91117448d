//! Random catalogs against a plain twin, which keeps the last text of everything, and parses and
//! sorts all of it for every question.

mod lists;

use super::super::order::{Direction, Page};
use super::*;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use std::cmp::Ordering;

const NOW: TimeMs = TimeMs(1_800_000_000_000);

/// What the random texts are made of.
#[derive(Clone, Debug)]
struct Words {
    id: u32,
    slug: u8,
    title: Option<u8>,
    volume: Option<u16>,
    start: Option<u8>,
    created: Option<u8>,
    flags: u8,
    tags: Vec<u8>,
    series: Option<u8>,
    creator: Option<u8>,
}

#[derive(Clone, Debug)]
enum Act {
    AddEvent(Words),
    ChangeEvent(usize, Words),
    AddMarket(Words, Option<usize>, Life),
    ChangeMarket(usize, Words, Option<usize>),
    Stand(usize, Life),
    Trade(usize, u64, u32),
    Rest(usize, u32),
    PutTag(usize, u8),
}

/// The beginning of a day, as texts write it.
fn january(day: u8) -> String {
    format!("2026-01-{day:02}T00:00:00Z")
}

fn words() -> impl Strategy<Value = Words> {
    let more = (any::<u8>(), prop::collection::vec(0_u8..6, 0..4), prop::option::of(0_u8..3));
    (
        0_u32..1_000,
        0_u8..6,
        prop::option::of(0_u8..4),
        prop::option::of(0_u16..50),
        [prop::option::of(1_u8..28), prop::option::of(1_u8..28)],
        prop::option::of(0_u8..3),
        more,
    )
        .prop_map(|(id, slug, title, volume, [start, created], creator, (flags, tags, series))| Words {
            id,
            slug,
            title,
            volume,
            start,
            created,
            flags,
            tags,
            series,
            creator,
        })
}

/// Where a market stands.
fn life() -> impl Strategy<Value = Life> {
    prop_oneof![Just(Life::Open), Just(Life::Listed), (1_u64..40).prop_map(|since| Life::Over(TimeMs(since))),]
}

fn act() -> impl Strategy<Value = Act> {
    let place = 0_usize..8;
    prop_oneof![
        3 => words().prop_map(Act::AddEvent),
        2 => (place.clone(), words()).prop_map(|(at, words)| Act::ChangeEvent(at, words)),
        5 => (words(), prop::option::of(place.clone()), life())
            .prop_map(|(words, event, life)| Act::AddMarket(words, event, life)),
        2 => (place.clone(), words(), prop::option::of(place.clone()))
            .prop_map(|(at, words, event)| Act::ChangeMarket(at, words, event)),
        1 => (place.clone(), life()).prop_map(|(at, life)| Act::Stand(at, life)),
        2 => (place.clone(), 0_u64..3 * DAY_MS, 0_u32..1_000_000)
            .prop_map(|(at, ago, volume)| Act::Trade(at, ago, volume)),
        1 => (place.clone(), any::<u32>()).prop_map(|(at, rests)| Act::Rest(at, rests)),
        1 => (place, 0_u8..6).prop_map(|(at, tag)| Act::PutTag(at, tag)),
    ]
}

impl Words {
    fn flag(&self, bit: u8) -> bool {
        self.flags & (1 << bit) != 0
    }

    fn tags(&self) -> Vec<Json> {
        let tag = |tag: &u8| json!({"id": tag.to_string(), "label": format!("L{}", self.slug), "slug": format!("t{tag}")});
        self.tags.iter().map(tag).collect()
    }

    fn common(&self, number: usize) -> Json {
        let mut text = json!({
            // Numbers make ids different, also across "7" and "07".
            "id": format!("{}", self.id * 100 + u32::try_from(number).expect("few")),
            "slug": format!("s{}", self.slug), "tags": self.tags(),
            "active": !self.flag(0), "archived": self.flag(1), "featured": self.flag(2), "cyom": self.flag(4),
        });
        if let Some(volume) = self.volume {
            text["volume"] = json!(volume);
        }
        for (name, day) in [("startDate", self.start), ("createdAt", self.created)] {
            if let Some(day) = day {
                text[name] = json!(january(day));
            }
        }
        if let Some(day) = self.start.filter(|_| self.flag(7)) {
            text["endDate"] = json!(january(29 - day));
        }
        if let Some(creator) = self.creator {
            text["creator"] = json!(format!("C{creator}"));
        }
        text
    }

    fn event(&self, number: usize, id: Option<&str>) -> String {
        let mut text = self.common(number);
        text["closed"] = json!(self.flag(3));
        if let Some(title) = self.title {
            text["title"] = json!(named(title));
        }
        if let Some(series) = self.series {
            text["series"] = json!([{"id": series.to_string(), "slug": format!("x{series}"), "recurrence": recurrence_of(series)}]);
        }
        if let Some(creator) = self.creator.filter(|_| self.flag(6)) {
            let handle = text["creator"].take();
            text["eventCreators"] = json!([{"id": creator.to_string(), "creatorHandle": handle}]);
        }
        if let Some(id) = id {
            text["id"] = json!(id);
        }
        text.to_string()
    }

    fn market(&self, number: usize) -> String {
        let mut text = self.common(number);
        text["closed"] = json!(self.flag(3));
        let maker = if self.flag(6) { "submitted_by" } else { "creator" };
        text[maker] = text["creator"].take();
        text["clobTokenIds"] = if self.flag(5) { json!(["1", "2"]) } else { Json::Null };
        if let Some(title) = self.title {
            text["question"] = json!(named(title));
        }
        text.to_string()
    }
}

/// A title: some begin alike.
fn named(title: u8) -> String {
    if title.is_multiple_of(2) {
        format!("T{title}")
    } else {
        format!("The titles of some begin alike: {title}")
    }
}

/// How often a series recurs, by its id.
const fn recurrence_of(series: u8) -> &'static str {
    if series.is_multiple_of(2) { "daily" } else { "Weekly" }
}

/// The plain twin.
#[derive(Default)]
struct Plain {
    events: Vec<String>,
    markets: Vec<PlainMarket>,
    items: Vec<String>,
}

struct PlainMarket {
    text: String,
    id: u64,
    event: Option<u32>,
    life: Life,
    trades: Vec<(TimeMs, u64)>,
    resting: u128,
}

impl PlainMarket {
    fn over(&self) -> Option<TimeMs> {
        if let Life::Over(since) = self.life { Some(since) } else { None }
    }
}

impl Texts for Plain {
    fn text(&self, source: Source) -> &str {
        match source {
            Source::Event(event) => &self.events[event as usize],
            Source::Market(market) => &self.markets[market as usize].text,
            Source::Row(item) => &self.items[item as usize],
        }
    }

    fn added(&self, _: Source) -> TimeMs {
        TimeMs(1)
    }
}

/// Applies all acts to both.
fn done(acts: &[Act]) -> (Catalog, Plain) {
    let (mut catalog, mut plain) = (Catalog::default(), Plain::default());
    let mut time = NOW.0 - 4 * DAY_MS;
    for act in acts {
        let event_at = |plain: &Plain, at: &Option<usize>| {
            at.filter(|_| !plain.events.is_empty())
                .map(|at| u32::try_from(at % plain.events.len()).expect("few"))
        };
        match act {
            Act::AddEvent(words) => {
                plain.events.push(words.event(plain.events.len(), None));
                catalog.put_event(number(plain.events.len() - 1), &plain);
            }
            Act::ChangeEvent(at, words) if !plain.events.is_empty() => {
                let at = at % plain.events.len();
                let id = event_key(&plain.events[at]).expect("an id");
                plain.events[at] = words.event(at, Some(&id));
                catalog.put_event(number(at), &plain);
            }
            Act::AddMarket(words, event, life) => {
                let event = event_at(&plain, event);
                let id = u64::from(words.id) * 100 + plain.markets.len() as u64;
                let text = words.market(plain.markets.len());
                let (trades, resting) = (Vec::new(), 0);
                plain.markets.push(PlainMarket { text, id, event, life: *life, trades, resting });
                let entry = MarketEntry { id, event, added: TimeMs(1), life: *life };
                catalog.add_market(&entry, &plain);
            }
            Act::PutTag(at, tag) => {
                let at = at % (plain.items.len() + 1);
                let text =
                    json!({"id": tag.to_string(), "label": "own", "slug": format!("t{tag}")}).to_string();
                if at == plain.items.len() {
                    plain.items.push(text);
                } else {
                    plain.items[at] = text;
                }
                catalog.put_item(ItemKind::Tag, number(at), &plain);
            }
            _ if plain.markets.is_empty() => {}
            Act::ChangeMarket(at, words, event) => {
                let (at, event) = (at % plain.markets.len(), event_at(&plain, event));
                plain.markets[at].text = words.market(at);
                plain.markets[at].event = event;
                catalog.put_market_text(number(at), event, &plain);
            }
            Act::Stand(at, life) => {
                let at = at % plain.markets.len();
                plain.markets[at].life = *life;
                catalog.set_life(number(at), *life);
            }
            Act::Trade(at, later, volume) => {
                let at = at % plain.markets.len();
                time = (time + later / 8).min(NOW.0);
                plain.markets[at].trades.push((TimeMs(time), u64::from(*volume)));
                catalog.trade(number(at), TimeMs(time), u64::from(*volume));
            }
            Act::Rest(at, resting) => {
                let at = at % plain.markets.len();
                plain.markets[at].resting = u128::from(*resting) * 10_000;
                catalog.set_resting(number(at), u128::from(*resting) * 10_000);
            }
            Act::ChangeEvent(..) => {}
        }
    }
    (catalog, plain)
}

fn number(at: usize) -> u32 {
    u32::try_from(at).expect("few")
}

/// One row with everything that a filter or an order reads, computed from the texts.
#[derive(Debug)]
struct Row {
    number: u32,
    id: u64,
    text: Json,
    /// The end that a market's event names.
    event_end: Option<String>,
    closed: bool,
    /// When it was closed.
    closing: Option<TimeMs>,
    volume: u64,
    day: u64,
    liquidity: u64,
    tags: Vec<String>,
    series: Option<String>,
    creators: Vec<String>,
}

impl Row {
    /// When it starts; else when it was made; else the day of [`Plain::added`].
    fn start(&self) -> &str {
        let said = |name: &str| self.text[name].as_str();
        said("startDate").or(said("createdAt")).unwrap_or("1970-01-01T00:00:00Z")
    }

    /// When it ends by its own text or, of a market, its event's; else at no end.
    fn end(&self) -> &str {
        self.text["endDate"].as_str().or(self.event_end.as_deref()).unwrap_or("9999-12-31T00:00:00Z")
    }

    fn recurs(&self, often: &str) -> bool {
        let said = self.text["series"][0]["recurrence"].as_str();
        said.is_some_and(|said| said.eq_ignore_ascii_case(often))
    }
}

fn millionths(text: &Json) -> u64 {
    text["volume"].as_u64().unwrap_or(0) * 1_000_000
}

fn ids(text: &Json, name: &str) -> Vec<String> {
    let items = text[name].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
}

fn maker(text: &Json) -> Option<String> {
    let names = [&text["creator"], &text["submitted_by"], &text["eventCreators"][0]["creatorHandle"]];
    names.into_iter().find_map(Json::as_str).map(str::to_owned)
}

impl Plain {
    fn market(&self, at: usize) -> Row {
        let market = &self.markets[at];
        let text: Json = serde_json::from_str(&market.text).expect("JSON");
        let event = market.event.map(|event| self.event_text(event));
        let of_event = event.as_ref().map_or_else(Vec::new, |event| ids(event, "tags"));
        let day = market.trades.iter().filter(|(time, _)| time.0 > NOW.0 - DAY_MS);
        Row {
            number: number(at),
            id: market.id,
            closed: market.over().is_some(),
            closing: market.over(),
            volume: millionths(&text) + market.trades.iter().map(|(_, volume)| volume).sum::<u64>(),
            day: day.map(|(_, volume)| volume).sum(),
            liquidity: in_millionths(market.resting),
            tags: [ids(&text, "tags"), of_event].concat(),
            series: None,
            creators: maker(&text).into_iter().chain(event.as_ref().and_then(maker)).collect(),
            event_end: event.and_then(|event| event["endDate"].as_str().map(str::to_owned)),
            text,
        }
    }

    fn event_text(&self, event: u32) -> Json {
        serde_json::from_str(&self.events[event as usize]).expect("JSON")
    }

    fn event(&self, at: usize) -> Row {
        let text = self.event_text(number(at));
        let of = |market: &PlainMarket| market.event == Some(number(at));
        let markets: Vec<usize> =
            (0..self.markets.len()).filter(|market| of(&self.markets[*market])).collect();
        let rows: Vec<Row> = markets.iter().map(|market| self.market(*market)).collect();
        let traded: u64 =
            markets.iter().flat_map(|market| &self.markets[*market].trades).map(|(_, volume)| volume).sum();
        let all_closed = rows.iter().all(|row| row.closed);
        let is_open = markets.iter().any(|market| self.markets[*market].life == Life::Open);
        let imported: u64 = rows.iter().map(|row| millionths(&row.text)).sum();
        let resting: u128 = markets.iter().map(|market| self.markets[*market].resting).sum();
        Row {
            number: number(at),
            id: text["id"].as_str().expect("an id").parse().expect("a number"),
            closed: (!rows.is_empty() && all_closed) || (text["closed"] == true && !is_open),
            closing: rows.iter().filter(|_| all_closed).filter_map(|row| row.closing).max(),
            volume: text["volume"].as_u64().map_or(imported, |volume| volume * 1_000_000) + traded,
            day: rows.iter().map(|row| row.day).sum(),
            liquidity: in_millionths(resting),
            tags: ids(&text, "tags"),
            event_end: None,
            series: ids(&text, "series").into_iter().next(),
            creators: maker(&text)
                .into_iter()
                .chain(rows.iter().filter_map(|row| maker(&row.text)))
                .collect(),
            text,
        }
    }
}

proptest! {
    #[test]
    fn what_is_kept_for_lists_is_what_the_rows_say(acts in prop::collection::vec(act(), 0..40)) {
        let (catalog, plain) = done(&acts);
        let mut noted = catalog.clone();
        (0..number(plain.events.len())).for_each(|event| noted.note_event(event));
        (0..number(plain.markets.len())).for_each(|market| noted.note_market(market));
        prop_assert_eq!(noted, catalog);
    }

    #[test]
    fn a_catalog_built_from_the_last_texts_shows_the_same(acts in prop::collection::vec(act(), 0..40)) {
        let (followed, plain) = done(&acts);
        let mut built = Catalog::default();
        for at in (0..plain.items.len()).map(number) {
            built.put_item(ItemKind::Tag, at, &plain);
        }
        for at in (0..plain.events.len()).map(number) {
            built.put_event(at, &plain);
        }
        for (at, market) in plain.markets.iter().enumerate() {
            let (id, event, life) = (market.id, market.event, market.life);
            built.add_market(&MarketEntry { id, event, added: TimeMs(1), life }, &plain);
            built.set_resting(number(at), market.resting);
            market.trades.iter().for_each(|(time, volume)| built.trade(number(at), *time, *volume));
        }
        let all = Page { limit: usize::MAX, ..Page::default() };
        for kind in ItemKind::ALL {
            let shown = |catalog: &Catalog| {
                let items = catalog.list_items(kind, &all, |_| true);
                let item = |at: u32| {
                    let item = catalog.shelf(kind).item(at);
                    (item.key.clone(), item.shown().cloned(), item.events().collect::<Vec<_>>())
                };
                items.into_iter().map(item).collect::<Vec<_>>()
            };
            prop_assert_eq!(shown(&followed), shown(&built));
        }
        for (one, other) in followed.events().iter().zip(built.events()) {
            prop_assert_eq!(one.volume(), other.volume());
            prop_assert_eq!((one.liquidity(), one.is_closed()), (other.liquidity(), other.is_closed()));
            prop_assert_eq!(&one.facts, &other.facts);
            prop_assert!(one.markets().eq(other.markets()));
        }
    }
}
