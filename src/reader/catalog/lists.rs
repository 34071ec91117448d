//! Lists of the catalog: parameters become a filter and a page, then the page's rows are written.

use std::collections::BTreeSet;

use super::super::ask::{Asked, Refused, TOKEN_RULE, WORD_RULE, token_id};
use super::params::{List, Params, TAG_RULE, invalid, write_cursor};
use super::scope::Scope;
use super::{market_form, too_long};
use crate::catalog::{
    CREATOR_COLUMNS, Catalog, Columns, EVENT_COLUMNS, Filter, Item, MARKET_COLUMNS, Mark, Page,
    SERIES_COLUMNS, TAG_COLUMNS,
};
use crate::domain::text::parse_hex;
use crate::domain::{ConditionId, ItemKind, Word};
use crate::json::Writer;
use crate::reader::{ANSWER_BYTES_MAX, Reader};

const EVENT_RULE: &str = "a whole number, or the id of an event";

const EVENT_ORDERS: &str = "id, slug, title, ticker, startDate, endDate, creationDate, createdAt, updatedAt, \
     closedTime, volume, volume24hr, liquidity, competitive; several joined by commas";
const MARKET_ORDERS: &str = "id, slug, question, startDate, endDate, createdAt, updatedAt, closedTime, \
     volume, volumeNum, volume24hr, liquidity, liquidityNum, competitive; several joined by commas";
const TAG_ORDERS: &str = "id, label, slug, createdAt, updatedAt; several joined by commas";
const SERIES_ORDERS: &str = "id, title, slug, createdAt, updatedAt; several joined by commas";
const CREATOR_ORDERS: &str = "id, creatorName, creatorHandle, createdAt, updatedAt; several joined by commas";

const EVENTS: List = ("events", EVENT_COLUMNS, EVENT_ORDERS);
const MARKETS: List = ("markets", MARKET_COLUMNS, MARKET_ORDERS);

impl Reader {
    /// GET /events and /events/keyset.
    pub(super) fn list_events(
        &self,
        asked: &Asked<'_>,
        paging: Paging,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let params = Params::of(asked.request.query);
        let catalog = self.index.catalog();
        let page = paging.page(params, EVENTS, catalog.events().len())?;
        let mut filter = self.common_filter(params)?;
        filter.only = both(
            named(params.all(&["id"])?, |id| catalog.event_by_id(id)),
            named(params.all(&["slug"])?, |slug| catalog.events_by_slug(slug).collect::<Vec<_>>()),
        );
        let lists = [
            items(catalog, ItemKind::Series, params.all(&["series_slug"])?),
            named(params.all(&["series_id"])?, |id| catalog.shelf(ItemKind::Series).by_key(id)),
            params.text("recurrence")?.map(|often| catalog.series_by_recurrence(&often)),
        ];
        filter.series = lists.into_iter().flatten().collect();
        params.flags_without_effect(&["include_chat", "include_template"])?;
        let list = |page: &Page| catalog.list_events(&filter, page, asked.now());
        let scope = Scope::of(asked)?;
        let least = |event| self.summary_bytes(event);
        let write = |json: &mut Writer<'_>, event, room| self.write_event_of_list(json, event, room, &scope);
        let mark = |event| catalog.mark_at_event(event, &page.columns, asked.now());
        write_page(asked, json, (paging, EVENTS.0), &page, list, mark, Row { least, write })
    }

    /// GET /markets in the catalog's form, and /markets/keyset, which leaves out what does not trade unless it is asked
    /// for.
    pub(super) fn list_markets(
        &self,
        asked: &Asked<'_>,
        paging: Paging,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let params = Params::of(asked.request.query);
        let catalog = self.index.catalog();
        let mut filter = self.common_filter(params)?;
        let page = paging.page(params, MARKETS, catalog.markets().len())?;
        if paging == Paging::Keyset {
            filter.active = filter.active.or(Some(true));
            filter.closed = filter.closed.or(Some(false));
            filter.archived = filter.archived.or(Some(false));
        }
        filter.mirror = params.flag("mirror")?;
        let form = market_form(params)?;
        let event = |id: &str| catalog.event_by_id(id);
        filter.events = both(
            named(params.ids("event_id", EVENT_RULE, |id| event(id).is_some())?, event),
            named(params.all(&["event_slug", "eventSlug"])?, |slug| {
                catalog.events_by_slug(slug).collect::<Vec<_>>()
            }),
        );
        filter.only = self.markets_named(params)?;
        let list = |page: &Page| catalog.list_markets(&filter, page, asked.now());
        let scope = Scope::of(asked)?;
        let least = |market| self.market_bytes(market);
        let write = |json: &mut Writer<'_>, market, _| self.write_catalog_market(json, market, form, &scope);
        let mark = |market| catalog.mark_at_market(market, &page.columns, asked.now());
        write_page(asked, json, (paging, MARKETS.0), &page, list, mark, Row { least, write })
    }

    /// GET /tags, /series, /events/creators.
    pub(super) fn list_items(
        &self,
        kind: ItemKind,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let params = Params::of(asked.request.query);
        let (columns, rule): (Columns, _) = match kind {
            ItemKind::Tag => (TAG_COLUMNS, TAG_ORDERS),
            ItemKind::Series => (SERIES_COLUMNS, SERIES_ORDERS),
            ItemKind::Creator => (CREATOR_COLUMNS, CREATOR_ORDERS),
        };
        let page = params.page(columns, rule)?;
        let scope = Scope::of(asked)?;
        let names = match kind {
            ItemKind::Creator => [params.text("creator_name")?, params.text("creator_handle")?],
            ItemKind::Tag | ItemKind::Series => [None, None],
        };
        let (slugs, closed, recurrence) = if kind == ItemKind::Series {
            params.flags_without_effect(&["include_chat"])?;
            (params.all(&["slug"])?, params.flag("closed")?, params.text("recurrence")?)
        } else {
            (None, None, None)
        };
        let catalog = self.index.catalog();
        // Popular tags are in most events and markets, so the creator's are collected once.
        let of_creator =
            scope.creator.as_ref().map(|creator| (catalog.events_of(creator), catalog.markets_of(creator)));
        let passes = |item: &Item| {
            let is = |wanted: &Option<String>, found: fn(&crate::catalog::Shown) -> &str| {
                let found = item.shown().map_or("", found);
                wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
            };
            is(&names[0], |shown| &shown.label)
                && is(&names[1], |shown| &shown.slug)
                && is(&recurrence, |shown| &shown.recurrence)
                && slugs
                    .as_ref()
                    .is_none_or(|slugs| item.shown().is_some_and(|shown| slugs.contains(&shown.slug)))
                && closed.is_none_or(|closed| item.shown().is_some_and(|shown| shown.closed) == closed)
                && of_creator.as_ref().is_none_or(|(events, markets)| {
                    item.events().any(|event| events.contains(&event))
                        || item.markets().any(|market| markets.contains(&market))
                })
        };
        let rows = catalog.list_items(kind, &page, passes);
        let least = |item| self.item_bytes(kind, item);
        let newest: Vec<_> = rows.iter().map(|item| self.newest_events(kind, *item, &scope)).collect();
        let bytes = |events: &Vec<u32>| events.iter().map(|event| self.summary_bytes(*event)).sum::<usize>();
        let (mut left, mut behind) = (rows.len(), newest.iter().map(bytes).sum::<usize>());
        let mut newest = newest.iter();
        let write = |json: &mut Writer<'_>, item, room: usize| {
            let events = newest.next().expect("one list for each row");
            behind -= bytes(events);
            // The events of a series have their part of the room, or more if those of the series behind it leave more.
            let room = room.saturating_sub(least(item));
            let room = (room / left).max(room.saturating_sub(behind));
            left -= 1;
            self.write_item(json, kind, item, self.last_with_room(events, room), &scope);
        };
        write_rows(asked, json, &rows, Row { least, write })
    }

    /// The filters that events and markets share.
    fn common_filter(&self, params: Params<'_>) -> Result<Filter, Refused> {
        let catalog = self.index.catalog();
        let tag = |id: &str| catalog.shelf(ItemKind::Tag).by_key(id);
        let is_tag = |id: &str| tag(id).is_some();
        params.flags_without_effect(&["related_tags"])?;
        let by_slug =
            items(catalog, ItemKind::Tag, params.first(&["tag_slug", "tag"])?.map(|slug| vec![slug]));
        let ids = params.ids("tag_id", TAG_RULE, is_tag)?;
        let by_id: Vec<_> = match params.text("tag_match")?.as_deref() {
            None | Some("any") => named(ids, tag).into_iter().collect(),
            Some("all") => {
                let each: BTreeSet<_> = ids.into_iter().flatten().map(|id| tag(&id)).collect();
                each.into_iter().map(|tag| tag.into_iter().collect()).collect()
            }
            Some(other) => return Err(invalid("tag_match", other, "any or all")),
        };
        let without = named(params.ids("exclude_tag_id", TAG_RULE, is_tag)?, tag).unwrap_or_default();
        Ok(Filter {
            active: params.flag("active")?,
            closed: params.flag("closed")?,
            archived: params.flag("archived")?,
            featured: params.flag("featured")?,
            cyom: params.flag("cyom")?,
            tags: by_slug.into_iter().chain(by_id).collect(),
            without_tags: without,
            creator: params.text("creator")?,
            volume: params.amounts(&[["volume_min", "volume_max"], ["volume_num_min", "volume_num_max"]])?,
            liquidity: params
                .amounts(&[["liquidity_min", "liquidity_max"], ["liquidity_num_min", "liquidity_num_max"]])?,
            start: params.moments(["start_date_min", "start_date_max"])?,
            end: params.moments(["end_date_min", "end_date_max"])?,
            ..Filter::default()
        })
    }

    /// The markets that match every way in which the request names some; none if it names none.
    fn markets_named(&self, params: Params<'_>) -> Result<Option<BTreeSet<u32>>, Refused> {
        let catalog = self.index.catalog();
        let ids = params.ids("id", "a whole number", |_| false)?;
        let slugs = params.all(&["slug"])?;
        let conditions = words(params, &["conditionId", "condition_id", "condition_ids"])?;
        let questions = words(params, &["question_ids"])?;
        let tokens = params.all(&["clob_token_ids"])?;
        for token in tokens.iter().flatten() {
            if token_id(token.as_bytes()).is_none() {
                return Err(invalid("clob_token_ids", token, TOKEN_RULE));
            }
        }
        let by_token = |text: &String| {
            let token = token_id(text.as_bytes()).and_then(|token| self.index.token(&token));
            token.map(|token| token.market.0)
        };
        let condition = |word: &Word| self.index.condition(&ConditionId(word.0)).map(|market| market.0);
        let question = |word: &Word| self.index.question(word).iter().map(|market| market.0);
        let mut only = both(
            named(ids, |id| id.parse().ok().and_then(|id| catalog.market_by_id(id))),
            named(slugs, |slug| catalog.markets_by_slug(slug).collect::<Vec<_>>()),
        );
        only = both(only, conditions.map(|all| all.iter().filter_map(condition).collect()));
        only = both(only, tokens.map(|all| all.iter().filter_map(by_token).collect()));
        Ok(both(only, questions.map(|all| all.iter().flat_map(question).collect())))
    }
}

/// How a list is paged, and so what stands around its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// By `offset`; the answer is the rows.
    Offset,
    /// By `after_cursor`; the answer has the rows and, unless they are the last, `next_cursor`.
    Keyset,
}

impl Paging {
    /// The page that is asked for, of a list of at most so many rows.
    fn page(self, params: Params<'_>, list: List, rows: usize) -> Result<Page, Refused> {
        match self {
            Self::Offset => params.page(list.1, list.2),
            Self::Keyset => params.keyset_page(list, rows),
        }
    }
}

/// A page by cursor ends when it has so many bytes.
const KEYSET_BYTES: usize = ANSWER_BYTES_MAX / 4;

/// How a row of a list is written.
struct Row<L, W> {
    /// About how long it is where there is no room for more.
    least: L,
    /// Writes it, with about how many bytes there are for it.
    write: W,
}

/// Lists a page and writes it.
fn write_page(
    asked: &Asked<'_>,
    json: &mut Writer<'_>,
    (paging, name): (Paging, &'static str),
    page: &Page,
    list: impl Fn(&Page) -> Vec<u32>,
    mark: impl Fn(u32) -> Mark,
    mut row: Row<impl Fn(u32) -> usize, impl FnMut(&mut Writer<'_>, u32, usize)>,
) -> Result<(), Refused> {
    match paging {
        Paging::Offset => write_rows(asked, json, &list(page), row),
        Paging::Keyset => {
            let rows = list(&Page { limit: page.limit + 1, ..page.clone() });
            json.open_object().key(name).open_array();
            let mut shown = 0;
            for number in rows.iter().take(page.limit) {
                let room = ANSWER_BYTES_MAX - json.bytes();
                (row.write)(json, *number, room);
                shown += 1;
                // A page of large rows is shorter.
                if KEYSET_BYTES < json.bytes() {
                    break;
                }
            }
            json.close_array();
            if shown < rows.len() {
                write_cursor(json.key("next_cursor"), &mark(rows[shown - 1]), page, name);
            }
            json.close_object();
            Ok(())
        }
    }
}

/// Writes a page's rows, each with the room that the least of those behind it leaves. A page that has no room for that
/// is refused before anything is written; what grows beyond all the same is refused by the caller.
fn write_rows(
    asked: &Asked<'_>,
    json: &mut Writer<'_>,
    rows: &[u32],
    mut row: Row<impl Fn(u32) -> usize, impl FnMut(&mut Writer<'_>, u32, usize)>,
) -> Result<(), Refused> {
    let mut behind: usize = rows.iter().map(|number| (row.least)(*number)).sum();
    if ANSWER_BYTES_MAX < behind {
        return Err(too_long(asked));
    }
    json.open_array();
    for number in rows {
        behind -= (row.least)(*number);
        let room = ANSWER_BYTES_MAX.saturating_sub(json.bytes() + behind);
        (row.write)(json, *number, room);
        if ANSWER_BYTES_MAX < json.bytes() {
            break;
        }
    }
    json.close_array();
    Ok(())
}

/// Texts that have to be 32 bytes in hex.
fn words(params: Params<'_>, names: &[&'static str]) -> Result<Option<Vec<Word>>, Refused> {
    let mut words = Vec::new();
    for name in names {
        for text in params.all(&[name])?.into_iter().flatten() {
            let word = parse_hex(text.as_bytes()).map(Word);
            words.push(word.ok_or_else(|| invalid(name, &text, WORD_RULE))?);
        }
    }
    Ok(Some(words).filter(|words| !words.is_empty()))
}

/// The rows that texts name; unknown ones name nothing.
fn named<R: IntoIterator<Item = u32>>(
    texts: Option<Vec<String>>,
    look_up: impl Fn(&str) -> R,
) -> Option<BTreeSet<u32>> {
    texts.map(|texts| texts.iter().flat_map(|text| look_up(text)).collect())
}

/// The items that slugs name.
fn items(catalog: &Catalog, kind: ItemKind, slugs: Option<Vec<String>>) -> Option<BTreeSet<u32>> {
    named(slugs, |slug| catalog.shelf(kind).by_slug(slug).collect::<Vec<_>>())
}

/// The rows that pass both filters.
fn both(one: Option<BTreeSet<u32>>, other: Option<BTreeSet<u32>>) -> Option<BTreeSet<u32>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.intersection(&other).copied().collect()),
        (one, other) => one.or(other),
    }
}
