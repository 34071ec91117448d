//! Search by text over events, markets and tags: an index in memory, and a ranking defined so that
//! two readers of this page would order hits alike.
//!
//! A **hit** is an event, or a market that belongs to no event; a match in a market of an event
//! lifts that event. Texts and queries become [`words`]: lower case, without accents, cut at
//! whatever is neither letter nor digit. A hit matches if one of its texts (the event's, or one
//! market's) has every word of the query. The last word may be unfinished; if it has one or two
//! letters, it counts as the beginning of a word only in titles and questions, because half of all
//! texts have such a word.
//!
//! | tier | every word of the query is |
//! |-----:|---|
//! | 0 | the title, word for word |
//! | 1 | the beginning of the title |
//! | 2 | in the title |
//! | 3 | in the question of a market of the event |
//! | 4 | in one text: titles, questions, slugs, tickers, descriptions, labels of tags |
//! | 5 | somewhere in the event and its markets |
//!
//! Within a tier open hits come before closed ones, then the larger volume, then the lower id.
//! [`Search::weigh`] sets closed and volume without touching the index, because they change with every trade.
//!
//! **A looser match is tried only if no stricter one exists**: tier 5 if tiers 0 to 4 are empty,
//! and if that is empty too, all tiers with typos, first only in words that no text has, then in
//! all words. A word of four letters or more may be one edit away, of eight or more two
//! ([`words::typos_max`]). An edit is a letter too many, a letter too few, a wrong letter, or two
//! neighbours swapped. Words with digits are taken literally: 2025 is not a typo of 2026. So are words of more than 32
//! letters, and all of them where more than [`WORDS_WITH_TYPOS_MAX`] might have typos: near words are looked up one by
//! one. What a filter leaves out does not count as a match.
//!
//! The postings are `tantivy`'s (`index`); what is ranked by is kept beside it (`hits`, `tags`).
//! What was found in the index is cached until the index changes (`recent`), so that the next page
//! of the same search is only ranked again. Everything here belongs to one thread, and the same
//! texts and weights give the same answers.

mod hits;
mod index;
mod order;
mod recent;
mod tags;
mod words;

#[cfg(test)]
mod tests;

use super::order::{Begin, Column, Direction, Page};
use hits::{HitNo, Hits, Rank};
use index::{Index, Part};
use recent::{Pass, Recent};
use std::rc::Rc;
use tags::Tags;
use words::{Edits, Wanted};

/// Words of a query that may have typos at once. Titles have some ten words, of which few are mistyped.
const WORDS_WITH_TYPOS_MAX: usize = 8;

/// The longest search term in bytes: three times the longest title of 5,690 real ones.
pub const TERM_BYTES_MAX: usize = 512;

/// A search as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What is searched for; at most [`TERM_BYTES_MAX`].
    pub term: String,
    /// Rows of each kind on a page.
    pub limit_per_type: u64,
    /// Which page, from 1.
    pub page: u64,
    /// Whether tags are searched too.
    pub with_tags: bool,
    /// Which events and markets may be found.
    pub filter: Filter,
    /// An order instead of the ranking.
    pub order: Option<(Column, Direction)>,
}

/// What events and markets are narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only what this creator made: a wallet's address, an id, a name or a handle. Tags are
    /// narrowed to those that such hits carry.
    pub creator: Option<String>,
    /// Only what is closed, or only what is open.
    pub closed: Option<bool>,
    /// Leaves out closed markets that belong to no event; an event is shown without those that it has.
    pub without_closed_markets: bool,
    /// Only what has a tag with one of these slugs, if there are any.
    pub tag_slugs: Vec<String>,
    /// Only what has no tag with one of these ids.
    pub without_tag_ids: Vec<String>,
    /// Only events with a series of this recurrence, in lower case.
    pub recurrence: Option<String>,
}

/// What can be found: an event, or a market that belongs to none, by its registry number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hit {
    /// An event.
    Event(u32),
    /// A market.
    Market(u32),
}

/// What decides among equally good hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// True if nothing of it is open.
    pub closed: bool,
    /// What was traded in it, in millionths.
    pub volume: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Events, and markets without one, best first; if `page` is set, all that match, in no order.
    pub hits: Vec<Hit>,
    /// Tags, best first.
    pub tags: Vec<FoundTag>,
    /// How many events and markets match in all.
    pub hits_total: u64,
    /// Whether there are more hits after this page.
    pub has_more: bool,
    /// The query's filter, which is also about the markets that an event is shown with.
    pub filter: Filter,
    /// What [`Catalog::page_of_hits`](super::Catalog::page_of_hits) cuts the answer by: the order
    /// asked for needs numbers that only the catalog has.
    pub page: Option<Page>,
}

/// A tag that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTag {
    /// Its number on the catalog's shelf.
    pub tag: u32,
    /// Events, and markets without one, that carry it.
    pub event_count: u64,
}

/// An event, as the catalog has it.
#[derive(Clone, Copy, Debug)]
pub struct EventText<'a> {
    /// Its registry number.
    pub event: u32,
    /// Its JSON.
    pub text: &'a str,
    /// The numbers of its tags.
    pub tags: &'a [u32],
    /// What it is ranked by.
    pub weight: Weight,
}

/// A market, as the catalog has it.
#[derive(Clone, Copy, Debug)]
pub struct MarketText<'a> {
    /// Its registry number.
    pub market: u32,
    /// The registry number of its event.
    pub event: Option<u32>,
    /// The numeric id that people use.
    pub market_id: u64,
    /// Its JSON.
    pub text: &'a str,
    /// The numbers of its own tags.
    pub tags: &'a [u32],
    /// What it is ranked by, if it is in no event.
    pub weight: Weight,
}

/// A tag, as the catalog shows it.
#[derive(Clone, Copy, Debug)]
pub struct TagText<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its label.
    pub label: &'a str,
    /// Its slug.
    pub slug: &'a str,
}

/// The library failed: a bug of ours or out of memory. Nothing may be answered from the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(String);

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "search: {}", self.0)
    }
}

/// Everything that can be found.
pub struct Search {
    index: Index,
    hits: Hits,
    tags: Tags,
    recent: Recent,
    /// The best tier of each hit while a query goes through the texts.
    tiers: Vec<u8>,
}

/// The tier of a hit that does not match.
const NO_TIER: u8 = u8::MAX;

/// How many tiers there are.
const TIERS: usize = 6;

/// A hit that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    hit: HitNo,
    tier: u8,
}

impl Search {
    /// An empty index, which takes in texts on `writers` threads besides the caller's.
    pub fn new(writers: usize) -> Result<Self, Fault> {
        Ok(Self {
            index: Index::new(writers)?,
            hits: Hits::default(),
            tags: Tags::default(),
            recent: Recent::default(),
            tiers: Vec::new(),
        })
    }

    /// Adds an event or replaces what is known of it. Queries see its words after
    /// [`Self::refresh`].
    pub fn put_event(&mut self, event: &EventText<'_>) -> Result<(), Fault> {
        self.index.put(&self.hits.put_event(event))
    }

    /// Adds a market or replaces what is known of it. Queries see its words after
    /// [`Self::refresh`].
    pub fn put_market(&mut self, market: &MarketText<'_>) -> Result<(), Fault> {
        self.index.put(&self.hits.put_market(market))
    }

    /// Sets how a tag of the catalog is shown; `None` if it no longer is. Queries see it at once.
    pub fn put_tag(&mut self, tag: u32, text: Option<&TagText<'_>>) {
        self.tags.put(tag, text);
    }

    /// Sets what a hit is ranked by. Queries see it at once.
    pub fn weigh(&mut self, hit: Hit, weight: Weight) {
        self.hits.weigh(HitNo::of(hit), weight);
    }

    /// Lets queries see everything that was put; costs nothing if nothing was.
    pub fn refresh(&mut self) -> Result<(), Fault> {
        if self.index.refresh()? {
            self.recent.forget();
        }
        Ok(())
    }

    /// One page of what `query` finds. A term without a letter or digit finds nothing.
    pub fn find(&mut self, query: &Query) -> Result<Found, Fault> {
        let wanted = Wanted::new(&query.term);
        if wanted.is_empty() {
            return Ok(Found::default());
        }
        let filter = self.filter_of(&query.filter)?;
        let (matches, edits) = self.matches(&wanted, &filter)?;
        let hits_total = matches.len() as u64;
        let start = (query.page - 1).saturating_mul(query.limit_per_type);
        let end = start.saturating_add(query.limit_per_type);
        let (has_more, shown) = (end < hits_total, query.filter.clone());
        let mut found = Found { hits_total, has_more, filter: shown, ..Found::default() };
        if let Some((column, direction)) = query.order {
            found.hits = matches.iter().map(|one| one.hit.hit()).collect();
            let limit = usize::try_from(query.limit_per_type).unwrap_or(usize::MAX);
            found.page = Some(Page { columns: vec![column], direction, begin: Begin::Offset(start), limit });
        } else {
            let place = |place: u64| usize::try_from(place).unwrap_or(matches.len()).min(matches.len());
            found.hits = self.page_of(&matches, place(start), place(end));
        }
        if query.with_tags {
            found.tags = self.tags_of(&wanted, &edits, filter.scope.as_deref(), start, end);
        }
        Ok(found)
    }

    /// Every matching hit with its tier, in no order, found by the strictest pass that finds
    /// anything; and the edits of that pass.
    fn matches(&mut self, wanted: &Wanted, filter: &Passes) -> Result<(Rc<[Match]>, Edits), Fault> {
        let mut tried = wanted.no_edits();
        let found = self.with_edits(wanted, &tried, filter)?;
        if !found.is_empty() {
            return Ok((found, tried));
        }
        let all = wanted.edits_max();
        let mut unknown = all.clone();
        for (word, edits) in wanted.words().iter().zip(&mut unknown) {
            if 0 < *edits && self.index.has(word)? {
                *edits = 0;
            }
        }
        for edits in [unknown, all] {
            let with_typos = edits.iter().filter(|edits| 0 < **edits).count();
            if edits == tried || WORDS_WITH_TYPOS_MAX < with_typos {
                continue;
            }
            let found = self.with_edits(wanted, &edits, filter)?;
            if !found.is_empty() {
                return Ok((found, edits));
            }
            tried = edits;
        }
        Ok((Rc::default(), tried))
    }

    /// What is found with these edits and passes the filter: in one text, else across texts.
    fn with_edits(&mut self, wanted: &Wanted, edits: &Edits, filter: &Passes) -> Result<Rc<[Match]>, Fault> {
        for pass in [Pass::InOneText, Pass::AcrossTexts] {
            let found = if let Some(found) = self.recent.find(wanted, edits, pass) {
                found
            } else {
                let found = match pass {
                    Pass::InOneText => self.in_one_text(wanted, edits)?,
                    Pass::AcrossTexts => self.across_texts(wanted, edits)?,
                };
                self.recent.keep(wanted, edits, pass, found)
            };
            let passing = self.passing(found, filter);
            if !passing.is_empty() {
                return Ok(passing);
            }
        }
        Ok(Rc::default())
    }

    /// Tiers 0 to 4.
    fn in_one_text(&mut self, wanted: &Wanted, edits: &Edits) -> Result<Vec<Match>, Fault> {
        let as_it_is = edits.iter().all(|edits| *edits == 0);
        let (tiers, hits) = (&mut self.tiers, &self.hits);
        tiers.clear();
        tiers.resize(hits.number_end(), NO_TIER);
        let mut found = Vec::new();
        self.index.with_all(wanted, edits, |hit, part| {
            let tier = &mut tiers[hit as usize];
            let hit = HitNo(hit);
            if *tier == NO_TIER {
                if !hits.is_listed(hit) {
                    return;
                }
                found.push(hit);
            }
            let better = match part {
                Part::Title if as_it_is => hits.title_tier(hit, wanted),
                Part::Title => 2,
                Part::Question => 3,
                Part::Text => 4,
            };
            *tier = better.min(*tier);
        })?;
        Ok(found.into_iter().map(|hit| Match { hit, tier: tiers[hit.0 as usize] }).collect())
    }

    /// Tier 5: every word in some text of the hit.
    fn across_texts(&self, wanted: &Wanted, edits: &Edits) -> Result<Vec<Match>, Fault> {
        if wanted.words().len() == 1 {
            return Ok(Vec::new());
        }
        let hits = self.index.with_each(wanted, edits, self.hits.number_end())?;
        let hits = hits.into_iter().map(HitNo).filter(|hit| self.hits.is_listed(*hit));
        Ok(hits.map(|hit| Match { hit, tier: 5 }).collect())
    }

    /// The hits at `start..end` in the order of the ranking; both are at most the count of matches.
    /// Only the hits on the page are sorted, and only tiers that reach into it are read.
    fn page_of(&self, matches: &[Match], start: usize, end: usize) -> Vec<Hit> {
        let mut counts = [0; TIERS];
        for one in matches {
            counts[usize::from(one.tier)] += 1;
        }
        let order = |one: &(Rank, HitNo), other: &(Rank, HitNo)| {
            one.0.cmp(&other.0).then_with(|| self.hits.order_of_ids(one.1, other.1))
        };
        let mut page = Vec::with_capacity(end - start);
        let mut before = 0;
        for (tier, count) in (0..).zip(counts) {
            let from = start.clamp(before, before + count) - before;
            let to = end.clamp(before, before + count) - before;
            before += count;
            if from == to {
                continue;
            }
            let of_tier = matches.iter().filter(|one| one.tier == tier);
            let mut keys: Vec<_> = of_tier.map(|one| (self.hits.rank(one.hit), one.hit)).collect();
            if to < count {
                keys.select_nth_unstable_by(to, order);
                keys.truncate(to);
            }
            if 0 < from {
                keys.select_nth_unstable_by(from, order);
            }
            let on_page = &mut keys[from..];
            on_page.sort_unstable_by(order);
            page.extend(on_page.iter().map(|(_, hit)| hit.hit()));
        }
        page
    }

    /// The tags found without typos; if there are none, and events were only found with typos,
    /// those with the same typos.
    fn tags_of(
        &self,
        wanted: &Wanted,
        edits: &Edits,
        scope: Option<&[u32]>,
        start: u64,
        end: u64,
    ) -> Vec<FoundTag> {
        let in_scope = scope.map(|scope| self.hits.tag_counts(scope));
        let count = |tag: u32| match &in_scope {
            None => Some(self.hits.tag_count(tag)),
            Some(counts) => counts.get(tag as usize).copied().filter(|count| 0 < *count),
        };
        let as_it_is = wanted.no_edits();
        let any = |edits| !self.tags.find(wanted, edits, count, 0, 1).is_empty();
        let edits = if *edits == as_it_is || any(&as_it_is) { &as_it_is } else { edits };
        self.tags.find(wanted, edits, count, start, end)
    }

    fn filter_of(&self, filter: &Filter) -> Result<Passes, Fault> {
        let scope = match &filter.creator {
            Some(creator) => {
                let mut hits = self.index.of_creator(&creator.to_lowercase())?;
                hits.retain(|hit| self.hits.is_listed(HitNo(*hit)));
                Some(hits)
            }
            None => None,
        };
        let any_tag = !filter.tag_slugs.is_empty();
        Ok(Passes {
            scope,
            closed: filter.closed,
            without_closed_markets: filter.without_closed_markets,
            tags: any_tag.then(|| self.tags.with_slugs(&filter.tag_slugs)),
            without_tags: self.tags.with_ids(&filter.without_tag_ids),
            recurrence: filter.recurrence.clone(),
        })
    }

    /// The matches of `found` that pass.
    fn passing(&self, found: Rc<[Match]>, filter: &Passes) -> Rc<[Match]> {
        if *filter == Passes::default() {
            return found;
        }
        found.iter().filter(|one| filter.passes(&self.hits, one.hit)).copied().collect()
    }
}

/// A filter whose names are looked up; the default passes everything.
#[derive(Debug, Default, PartialEq, Eq)]
struct Passes {
    /// Only these hits, in order.
    scope: Option<Vec<u32>>,
    closed: Option<bool>,
    without_closed_markets: bool,
    /// Only hits with one of these tags.
    tags: Option<Vec<u32>>,
    without_tags: Vec<u32>,
    recurrence: Option<String>,
}

impl Passes {
    fn passes(&self, hits: &Hits, hit: HitNo) -> bool {
        let closed = hits.is_closed(hit);
        let tagged = |tags: &Vec<u32>| hits.tags(hit).iter().any(|tag| tags.contains(tag));
        self.closed.is_none_or(|wanted| wanted == closed)
            && !(self.without_closed_markets && closed && !hit.is_event())
            && self.scope.as_ref().is_none_or(|scope| scope.binary_search(&hit.0).is_ok())
            && self.tags.as_ref().is_none_or(tagged)
            && !tagged(&self.without_tags)
            && self.recurrence.as_ref().is_none_or(|recurrence| hits.recurs(hit, recurrence))
    }
}
