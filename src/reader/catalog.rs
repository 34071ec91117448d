//! The catalog's routes: events, catalog markets, tags, series and creators.
//!
//! Lists are filtered on facts that were parsed when a text came (`crate::catalog`). Only the rows of the page are
//! written, each by copying its text and putting in the exchange's own fields (`write`). Parameters are read in
//! `params`; unknown names are ignored.
//!
//! | route | parameters besides `creator` |
//! |---|---|
//! | `/events` | page, order, flags, `id` `slug` (repeated), `tag` = `tag_slug`, `tag_id`, `tag_match`, `exclude_tag_id`, `series_slug`, `series_id`, `recurrence`, `featured`, `cyom`, ranges of `volume`, `liquidity`, `start_date`, `end_date` |
//! | `/markets` | the same without series and `recurrence`; `event_id`, `event_slug`, `conditionId` = `condition_ids`, `clob_token_ids`, `question_ids`, `mirror`, `include_tag`; ranges also as `volume_num`, `liquidity_num` |
//! | `/tags` | page, order |
//! | `/series` | page, order, `slug` (repeated), `closed`, `recurrence` |
//! | `/markets/{id}`, `/markets/slug/{slug}` | `include_tag` |
//! | `/events/creators` | page, order, `creator_name`, `creator_handle` |
//!
//! `/events/keyset` and `/markets/keyset` take the same with `after_cursor` for `offset`: a cursor has the last row of
//! a page and its values in the columns, and the next page is what comes behind these, so that rows which come or move
//! meanwhile neither repeat nor hide others. They are
//! ascending unless they say otherwise.
//!
//! Page is `limit` (20; more than 100 is 100) and `offset`; order is `order` (columns of the kind, joined by
//! commas) and `ascending`; flags are `active`, `closed`, `archived`; ranges end in `_min`, `_max`.
//!
//! `related_tags` of `/events` and `/markets`, `include_chat` of `/events` and `/series` and
//! `include_template` of `/events` have to be `true` or `false` and change nothing: no imported row
//! says which tags are related, and there are no chats and no templates here.

mod lists;
pub(super) mod params;
mod scope;
mod write;

use super::ask::{self, Asked, Refused, condition_id};
use super::{ANSWER_BYTES_MAX, Reader};
use crate::catalog::search::Hit;
use crate::domain::{ItemKind, MarketNo};
use crate::http::Endpoint;
use crate::json::Writer;
use lists::Paging;
use params::Params;
pub(super) use scope::Scope;
pub(super) use write::HitForm;
use write::{MARKET_AS_EVENT, MarketForm};

/// Nothing has this id, or nothing of the creator that is asked for.
fn no_id(id: &str) -> Refused {
    Refused::not_found("id not found").about("id", id, "an id in the catalog, of the creator if one is named")
}

/// Nothing has this slug, or nothing of the creator that is asked for.
fn no_slug(slug: &str) -> Refused {
    const KNOWN: &str = "a slug in the catalog, of the creator if one is named";
    Refused::not_found("slug not found").about("slug", slug, KNOWN)
}

impl Reader {
    /// Every route of the catalog.
    pub(super) fn write_catalog(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        use Endpoint as E;
        match asked.endpoint() {
            E::Events => self.list_events(asked, Paging::Offset, json),
            E::EventsKeyset => self.list_events(asked, Paging::Keyset, json),
            E::CatalogMarkets => self.list_markets(asked, Paging::Offset, json),
            E::MarketsKeyset => self.list_markets(asked, Paging::Keyset, json),
            E::Tags => self.list_items(ItemKind::Tag, asked, json),
            E::SeriesList => self.list_items(ItemKind::Series, asked, json),
            E::Creators => self.list_items(ItemKind::Creator, asked, json),
            E::Event => {
                let event = self.event_by_id(asked)?;
                self.write_whole_event(json, event, &Scope::of(asked)?);
                Ok(())
            }
            E::EventBySlug => {
                let (slug, scope) = (captured(asked, "slug")?, Scope::of(asked)?);
                let event = self.event_by_slug(&slug, &scope).ok_or_else(|| no_slug(&slug))?;
                self.write_whole_event(json, event, &scope);
                Ok(())
            }
            E::EventTags => {
                match self.event_by_id(asked)? {
                    Hit::Event(event) => {
                        self.write_copies(json, ItemKind::Tag, self.index.catalog().event(event).tags());
                    }
                    Hit::Market(market) => self.write_market_tags(json, market),
                }
                Ok(())
            }
            E::CatalogMarket => {
                let market = self.market_by_name(asked)?;
                let form = market_form(Params::of(asked.request.query))?;
                self.write_catalog_market(json, market, form, &Scope::of(asked)?);
                Ok(())
            }
            E::CatalogMarketBySlug => {
                let (slug, scope) = (captured(asked, "slug")?, Scope::of(asked)?);
                let form = market_form(Params::of(asked.request.query))?;
                let catalog = self.index.catalog();
                let mut markets = catalog.markets_by_slug(&slug);
                let market = markets.find(|market| scope.has_market(catalog, *market));
                let market = market.ok_or_else(|| no_slug(&slug))?;
                self.write_catalog_market(json, market, form, &scope);
                Ok(())
            }
            E::MarketDescription => {
                let market = self.market_by_name(asked)?;
                self.write_description(json, market);
                Ok(())
            }
            E::MarketTags => {
                let market = self.market_by_name(asked)?;
                self.write_market_tags(json, market);
                Ok(())
            }
            E::Tag => self.one_item(ItemKind::Tag, asked, json),
            E::Series => self.one_item(ItemKind::Series, asked, json),
            E::Creator => self.one_item(ItemKind::Creator, asked, json),
            E::TagBySlug => {
                let (slug, scope) = (captured(asked, "slug")?, Scope::of(asked)?);
                let catalog = self.index.catalog();
                let mut tags = catalog.shelf(ItemKind::Tag).by_slug(&slug);
                let tag = tags.find(|tag| scope.has_item(catalog, ItemKind::Tag, *tag));
                let tag = tag.ok_or_else(|| no_slug(&slug))?;
                self.write_item(json, ItemKind::Tag, tag, &[], &scope);
                Ok(())
            }
            _ => Err(ask::no_route()),
        }?;
        // A page has few rows, but one event may hold many markets.
        if ANSWER_BYTES_MAX < json.bytes() { Err(too_long(asked)) } else { Ok(()) }
    }

    /// The event that the path names by its id, or the market that has none and stands for one. The venues' ids are
    /// numbers, so a path that is neither a known id nor a number is a mistake.
    fn event_by_id(&self, asked: &Asked<'_>) -> Result<Hit, Refused> {
        let (id, scope) = (captured(asked, "id")?, Scope::of(asked)?);
        let catalog = self.index.catalog();
        if let Some(event) = catalog.event_by_id(&id) {
            return if scope.has_event(catalog, event) { Ok(Hit::Event(event)) } else { Err(no_id(&id)) };
        }
        let Some(market) = id.strip_prefix(MARKET_AS_EVENT).filter(|market| is_number(market)) else {
            return Err(if is_number(&id) { no_id(&id) } else { bad_id(&id, "a whole number") });
        };
        let market = market.parse().ok().and_then(|market| catalog.market_by_id(market));
        let market = market.filter(|market| self.stands_as_event(*market, &scope));
        market.map(Hit::Market).ok_or_else(|| no_id(&id))
    }

    /// The event with this slug, or the market that has none and stands for one.
    fn event_by_slug(&self, slug: &str, scope: &Scope) -> Option<Hit> {
        let catalog = self.index.catalog();
        let event = catalog.events_by_slug(slug).find(|event| scope.has_event(catalog, *event));
        let market = || catalog.markets_by_slug(slug).find(|market| self.stands_as_event(*market, scope));
        event.map(Hit::Event).or_else(|| market().map(Hit::Market))
    }

    fn stands_as_event(&self, market: u32, scope: &Scope) -> bool {
        let catalog = self.index.catalog();
        catalog.market(market).event.is_none() && scope.has_market(catalog, market)
    }

    /// The market that the path names by its number or its condition.
    fn market_by_name(&self, asked: &Asked<'_>) -> Result<u32, Refused> {
        let (id, scope) = (captured(asked, "id")?, Scope::of(asked)?);
        let catalog = self.index.catalog();
        let found = if is_number(&id) {
            id.parse().ok().and_then(|id| catalog.market_by_id(id))
        } else {
            let condition = condition_id(id.as_bytes());
            let condition =
                condition.ok_or_else(|| bad_id(&id, "a whole number, or 0x and 64 hex digits"))?;
            self.index.condition(&condition).map(|MarketNo(market)| market)
        };
        found.filter(|market| scope.has_market(catalog, *market)).ok_or_else(|| no_id(&id))
    }

    /// A tag, series or creator by its id; a series also by its slug.
    fn one_item(&self, kind: ItemKind, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let (id, scope) = (captured(asked, "id")?, Scope::of(asked)?);
        let catalog = self.index.catalog();
        let shelf = catalog.shelf(kind);
        let is_in_scope = |item: &u32| scope.has_item(catalog, kind, *item);
        let by_slug = || (kind == ItemKind::Series).then(|| shelf.by_slug(&id).find(is_in_scope)).flatten();
        let item = shelf.by_key(&id).filter(is_in_scope).or_else(by_slug);
        let item = item.ok_or_else(|| no_id(&id))?;
        let newest = self.newest_events(kind, item, &scope);
        let room = ANSWER_BYTES_MAX.saturating_sub(self.item_bytes(kind, item));
        self.write_item(json, kind, item, self.last_with_room(&newest, room), &scope);
        Ok(())
    }
}

/// The refusal of an answer that is too long: of a page, or of what the path names.
fn too_long(asked: &Asked<'_>) -> Refused {
    let refused = Refused::bad_request("answer_too_long", "the answer is too long");
    let named = asked.request.capture;
    if named.is_empty() {
        let got = Params::of(asked.request.query).text("limit").ok().flatten().unwrap_or_default();
        return refused.about("limit", &got, "a smaller page: the answer has more than 16 MiB");
    }
    let field = if asked.endpoint() == Endpoint::EventBySlug { "slug" } else { "id" };
    refused.about(
        field,
        named,
        "at most 16 MiB of answer; /markets?event_id= has an event's markets in pages",
    )
}

/// How a market that stands alone is shown.
fn market_form(params: Params<'_>) -> Result<MarketForm, Refused> {
    let with_tags = params.flag("include_tag")?.unwrap_or(false);
    Ok(if with_tags { MarketForm::AloneWithTags } else { MarketForm::Alone })
}

/// The captured segment of the path.
fn captured(asked: &Asked<'_>, field: &'static str) -> Result<String, Refused> {
    let refused = Refused::bad_request("invalid_parameter", "");
    asked.captured().map_err(|_| refused.about(field, asked.request.capture, "percent-encoded UTF-8"))
}

fn bad_id(got: &str, allowed: &'static str) -> Refused {
    Refused::bad_request("invalid_parameter", "").about("id", got, allowed)
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
