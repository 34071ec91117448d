//! GET /public-search: its parameters and its answer. The search itself runs elsewhere, on its own time.
//!
//! | parameter | values | default |
//! |---|---|---|
//! | `q` | 1 to [`TERM_BYTES_MAX`] bytes that are not all blank | required |
//! | `limit_per_type` | 1 or more; beyond [`LIMIT_MAX`] it is that | 25 |
//! | `page` | from 1 | 1 |
//! | `search_tags` | `true`, `false` | `true` |
//! | `search_profiles` | `true`, `false`; nothing is found either way | `false` |
//! | `creator` | an address, an id, a name or a handle | everybody's |
//! | `events_status` | `active` = `open`, `resolved` = `closed`, `all` | `all` |
//! | `keep_closed_markets` | `0` or `false` leaves out closed markets, alone or within their event; `true` or any other whole number keeps them | `1` |
//! | `events_tag` | slugs of tags; an event must have one of them | any |
//! | `exclude_tag_id` | ids of tags; an event must have none of them | none |
//! | `recurrence` | how often one of the event's series recurs | any |
//! | `sort` | `relevance`, or one of [`SORTS`] | `relevance` |
//! | `ascending` | `true`, `false`; the ranking has one direction only | `false` |
//! | `optimized`, `cache` | `true`, `false`; accepted, without effect | `true` |
//!
//! An empty value counts as none, an unknown name is ignored. Of a repeated name the first value that is not
//! empty counts; lists may be repeated or joined by commas, and their values add up. Filters narrow events and markets,
//! not tags. Markets have no list of their own: one that belongs to an event lifts that event; one that
//! does not is listed among the events, by its slug (which is also its ticker) and its question. Its id
//! there is `market-` and its own, because events and markets are numbered apart.
//!
//! A hit is shown as a list of events shows it, with its markets, as far as some [`WHOLE_BYTES`] go; one that would not
//! fit only has what names it.
//!
//! The search finds numbers; the answer is written from what the catalog says of them at the time of the
//! answer. `totalResults` counts events and markets, and `hasMore` tells whether more follow this page.
//! Both are right at the moment of the answer: pages that are requested one after the other may overlap if
//! the catalog, or what was traded, has changed in between.

use super::ask::Refused;
use super::catalog::params::{Params, TAG_RULE, invalid};
use super::catalog::{HitForm, Scope, is_number};
use super::{ReadRequest, Reader};
use crate::catalog::search::{Filter, Found, Query, TERM_BYTES_MAX};
use crate::catalog::{Column, Direction};
use crate::domain::{ItemKind, TimeMs};
use crate::json::Writer;

/// The most rows of one kind on a page.
const LIMIT_MAX: u64 = 500;

/// Rows of one kind on a page by default.
const LIMIT_DEFAULT: u64 = 25;

/// Some bytes of an answer, beyond which no hit goes with more than what names it.
const WHOLE_BYTES: usize = 1 << 20;

/// What hits can be ordered by besides the ranking.
const SORTS: [(&str, Column); 7] = [
    ("volume", Column::Volume),
    ("volume_24hr", Column::Volume24hr),
    ("liquidity", Column::Liquidity),
    ("competitive", Column::Competitive),
    ("start_date", Column::StartDate),
    ("end_date", Column::EndDate),
    ("closed_time", Column::ClosedTime),
];

const TERM_RULE: &str = "1 to 512 bytes of text";
const _: () = assert!(TERM_BYTES_MAX == 512, "the rule above says so");
const LIMIT_RULE: &str = "1 or more; beyond 500 it is 500";
const _: () = assert!(LIMIT_MAX == 500, "the rule above says so");
const SORT_RULE: &str =
    "relevance, volume, volume_24hr, liquidity, competitive, start_date, end_date or closed_time";
const STATUS_RULE: &str = "active, resolved or all";

impl Reader {
    /// Reads the parameters of a search, or writes the body of a refusal and returns its status.
    pub fn read_search(&self, request: &ReadRequest<'_>, out: &mut Vec<u8>) -> Result<Query, u16> {
        let tags = self.catalog().shelf(ItemKind::Tag);
        let is_tag = |id: &str| tags.by_key(id).is_some();
        query_of(Params::of(request.query), is_tag).map_err(|refused| refused.tell(out))
    }

    /// Writes the body of the answer as of `now`.
    pub fn write_found(&self, found: &Found, now: TimeMs, out: &mut Vec<u8>) {
        let catalog = self.catalog();
        let sorted = found.page.as_ref().map(|page| catalog.page_of_hits(&found.hits, page, now));
        let mut json = Writer::new(out);
        json.open_object().key("events").open_array();
        let Filter { creator, without_closed_markets, .. } = &found.filter;
        let scope = Scope { now, creator: creator.clone(), without_closed_markets: *without_closed_markets };
        for hit in sorted.as_ref().unwrap_or(&found.hits) {
            let fits = json.bytes() + self.hit_bytes(*hit, &scope) <= WHOLE_BYTES;
            let form = if fits { HitForm::Listed } else { HitForm::Named };
            self.write_hit(&mut json, *hit, form, &scope);
        }
        json.close_array().key("tags").open_array();
        let tags = catalog.shelf(ItemKind::Tag);
        for found in &found.tags {
            let tag = tags.item(found.tag);
            // The tag was removed since it was found.
            let Some(shown) = tag.shown() else { continue };
            json.open_object().key("id").text(&tag.key).key("label").text(&shown.label);
            json.key("slug").text(&shown.slug).key("event_count").number(found.event_count).close_object();
        }
        json.close_array().key("pagination").open_object();
        json.key("hasMore").boolean(found.has_more).key("totalResults").number(found.hits_total);
        json.close_object().close_object();
    }
}

fn query_of(params: Params<'_>, is_tag: impl Fn(&str) -> bool) -> Result<Query, Refused> {
    let term = params.text("q")?.unwrap_or_default();
    if term.trim().is_empty() {
        return Err(Refused::bad_request("missing_parameter", "q is required").about("q", &term, TERM_RULE));
    }
    if term.len() > TERM_BYTES_MAX {
        return Err(invalid("q", &format!("{} bytes", term.len()), TERM_RULE));
    }
    let limit_per_type = params.rows("limit_per_type", LIMIT_RULE, LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let page = params.integer("page", 1)?.unwrap_or(1);
    let with_tags = params.flag("search_tags")?.unwrap_or(true);
    params.flags_without_effect(&["search_profiles", "optimized", "cache"])?;
    Ok(Query {
        term,
        limit_per_type,
        page,
        with_tags,
        filter: filter_of(params, is_tag)?,
        order: order_of(params)?,
    })
}

fn filter_of(params: Params<'_>, is_tag: impl Fn(&str) -> bool) -> Result<Filter, Refused> {
    let status = params.text("events_status")?;
    let closed = match status.as_deref() {
        None | Some("all") => None,
        Some("active" | "open") => Some(false),
        Some("resolved" | "closed") => Some(true),
        Some(other) => return Err(invalid("events_status", other, STATUS_RULE)),
    };
    let keep_closed = params.text("keep_closed_markets")?;
    let without_closed_markets = match keep_closed.as_deref() {
        None | Some("1" | "true") => false,
        Some("0" | "false") => true,
        // Clients of the venue send hours since the closing; however many they are, all are kept.
        Some(hours) if is_number(hours) => false,
        Some(other) => return Err(invalid("keep_closed_markets", other, "a whole number, true or false")),
    };
    Ok(Filter {
        creator: params.text("creator")?,
        closed,
        without_closed_markets,
        tag_slugs: params.all(&["events_tag"])?.unwrap_or_default(),
        without_tag_ids: params.ids("exclude_tag_id", TAG_RULE, is_tag)?.unwrap_or_default(),
        recurrence: params.text("recurrence")?.map(|text| text.to_lowercase()),
    })
}

fn order_of(params: Params<'_>) -> Result<Option<(Column, Direction)>, Refused> {
    let ascending = params.flag("ascending")?.unwrap_or(false);
    let direction = if ascending { Direction::Ascending } else { Direction::Descending };
    let Some(name) = params.text("sort")? else {
        return Ok(None);
    };
    if name == "relevance" {
        return Ok(None);
    }
    // Lists of the catalog use the same names without the underscore.
    let same = |sort: &str| sort == name || sort.replace('_', "") == name.to_lowercase();
    let column = SORTS.iter().find(|(sort, _)| same(sort)).map(|(_, column)| *column);
    column.map(|column| Some((column, direction))).ok_or_else(|| invalid("sort", &name, SORT_RULE))
}
