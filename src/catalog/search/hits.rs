//! What can be listed, and what it is ranked by: one row for each event and each market without one.
//!
//! A hit's number is twice its event's number, or twice its market's number plus one. That number
//! is also the key of the event's or market's own text in the index. What hits are ranked by is in
//! arrays by that number, so that ranking the hundred thousand matches of a common word walks
//! through memory in order; the rest is in rows.

use super::index::Document;
use super::words::{self, Wanted};
use super::{EventText, Hit, MarketText, Weight};
use crate::catalog::fields::{Fields, as_text, items};
use crate::catalog::value::KeptValue;
use std::cmp::Ordering;

/// The number of an event, or of a market without one, among all hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HitNo(pub(super) u32);

impl HitNo {
    /// The number of `hit`.
    pub(super) const fn of(hit: Hit) -> Self {
        match hit {
            Hit::Event(event) => Self(2 * event),
            Hit::Market(market) => Self(2 * market + 1),
        }
    }

    /// The hit with this number.
    pub(super) const fn hit(self) -> Hit {
        if self.is_event() { Hit::Event(self.0 / 2) } else { Hit::Market(self.0 / 2) }
    }

    /// True of an event, false of a market.
    pub(super) const fn is_event(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

/// The sort key within a tier, lowest first: open hits before closed ones, then the larger volume,
/// then the lower id as far as a number holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    weight: u64,
    id: u64,
}

/// The bit of a weight that means closed; the bits below hold `CLOSED - 1` less the volume.
const CLOSED: u64 = 1 << 63;

/// The bit that marks the number of an id that is not a number.
const NO_NUMBER: u64 = 1 << 63;

/// A row that can be listed, without what it is ranked by.
#[derive(Debug)]
struct Row {
    /// The title's words, as queries are compared with it.
    folded: Box<str>,
    id: KeptValue,
    tags: Box<[u32]>,
    /// The recurrences of its series.
    recurrences: Box<[String]>,
}

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Hits {
    events: Vec<Option<Row>>,
    /// Markets by number; only those without an event have a row.
    alone: Vec<Option<Box<Row>>>,
    /// Closed or not, and the volume; by hit number, as are the two arrays below.
    weights: Vec<u64>,
    /// The ids as numbers.
    ids: Vec<u64>,
    /// The first bytes of folded titles.
    heads: Vec<u64>,
    /// How many hits carry each tag, by its number.
    tag_counts: Vec<u64>,
}

impl Hits {
    /// Adds or replaces an event; returns the document to find it by.
    pub(super) fn put_event(&mut self, event: &EventText<'_>) -> Document {
        let hit = HitNo::of(Hit::Event(event.event));
        let fields = Fields::parse(event.text).unwrap_or_default();
        let said = |name: &str| fields.words(name).unwrap_or_default();
        let title = said("title");
        let mut rest = vec![said("ticker"), said("slug"), said("description")];
        rest.extend(labels(&fields));
        let row = Row {
            folded: words::folded(&title).into(),
            id: KeptValue::of(&said("id")),
            tags: event.tags.into(),
            recurrences: recurrences(&fields),
        };
        self.list(hit, row);
        self.weigh(hit, event.weight);
        Document { key: hit.0, hit: hit.0, heading: title, rest, creators: creators(&fields) }
    }

    /// Adds or replaces a market; returns the document to find it by.
    pub(super) fn put_market(&mut self, market: &MarketText<'_>) -> Document {
        let own = HitNo::of(Hit::Market(market.market));
        let fields = Fields::parse(market.text).unwrap_or_default();
        let said = |name: &str| fields.words(name).unwrap_or_default();
        let question = said("question");
        let mut rest = vec![said("slug"), said("description"), said("groupItemTitle")];
        let hit = if let Some(event) = market.event {
            self.unlist(own);
            // The event itself may come later.
            let hit = HitNo::of(Hit::Event(event));
            self.make_room(hit);
            hit
        } else {
            rest.extend(labels(&fields));
            let row = Row {
                folded: words::folded(&question).into(),
                id: KeptValue::of(&market.market_id.to_string()),
                tags: market.tags.into(),
                recurrences: Box::default(),
            };
            self.list(own, row);
            self.weigh(own, market.weight);
            own
        };
        Document { key: own.0, hit: hit.0, heading: question, rest, creators: creators(&fields) }
    }

    /// Sets whether a hit is closed, and its volume.
    pub(super) fn weigh(&mut self, hit: HitNo, weight: Weight) {
        let closed = if weight.closed { CLOSED } else { 0 };
        let short_of = (CLOSED - 1) - weight.volume.min(CLOSED - 1);
        *place(&mut self.weights, hit) = closed | short_of;
    }

    /// An exclusive bound of the numbers of all hits.
    pub(super) fn number_end(&self) -> usize {
        2 * self.events.len().max(self.alone.len())
    }

    /// True if it can be listed: an event whose text came, or a market that is in no event.
    pub(super) fn is_listed(&self, hit: HitNo) -> bool {
        self.row(hit).is_some()
    }

    /// The tier of a hit whose title has all the words. Most titles differ from the query in their
    /// first bytes.
    pub(super) fn title_tier(&self, hit: HitNo, wanted: &Wanted) -> u8 {
        let asked = wanted.folded().as_bytes();
        let mask = u64::MAX.checked_shl(8 * (8 - u32::try_from(asked.len().min(8)).expect("at most 8")));
        let differs = (self.heads[hit.0 as usize] ^ head(asked)) & mask.unwrap_or(0);
        if differs == 0 { wanted.title_tier(&self.listed(hit).folded) } else { 2 }
    }

    /// True if nothing of it is open.
    pub(super) fn is_closed(&self, hit: HitNo) -> bool {
        self.weights[hit.0 as usize] & CLOSED != 0
    }

    /// What decides within a tier, except for ids that are not numbers.
    pub(super) fn rank(&self, hit: HitNo) -> Rank {
        Rank { weight: self.weights[hit.0 as usize], id: self.ids[hit.0 as usize] }
    }

    /// The order of two hits of the same rank: by their ids, then by their numbers.
    pub(super) fn order_of_ids(&self, one: HitNo, other: HitNo) -> Ordering {
        self.listed(one).id.cmp(&self.listed(other).id).then(one.cmp(&other))
    }

    /// The tags of a hit.
    pub(super) fn tags(&self, hit: HitNo) -> &[u32] {
        &self.listed(hit).tags
    }

    /// True if one of its series has this recurrence.
    pub(super) fn recurs(&self, hit: HitNo, recurrence: &str) -> bool {
        self.listed(hit).recurrences.iter().any(|one| one == recurrence)
    }

    /// How many hits carry a tag.
    pub(super) fn tag_count(&self, tag: u32) -> u64 {
        self.tag_counts.get(tag as usize).copied().unwrap_or(0)
    }

    /// How many of the hits in `scope` carry each tag.
    pub(super) fn tag_counts(&self, scope: &[u32]) -> Vec<u64> {
        let mut counts = vec![0; self.tag_counts.len()];
        for hit in scope {
            for tag in self.tags(HitNo(*hit)) {
                counts[*tag as usize] += 1;
            }
        }
        counts
    }

    fn row(&self, hit: HitNo) -> Option<&Row> {
        let number = (hit.0 / 2) as usize;
        if hit.is_event() { self.events.get(number)?.as_ref() } else { self.alone.get(number)?.as_deref() }
    }

    fn listed(&self, hit: HitNo) -> &Row {
        self.row(hit).expect("what is not listed was sorted out")
    }

    fn list(&mut self, hit: HitNo, row: Row) {
        self.unlist(hit);
        for tag in &row.tags {
            let tag = *tag as usize;
            if self.tag_counts.len() <= tag {
                self.tag_counts.resize(tag + 1, 0);
            }
            self.tag_counts[tag] += 1;
        }
        *place(&mut self.heads, hit) = head(row.folded.as_bytes());
        *place(&mut self.ids, hit) = match &row.id {
            KeptValue::Number(number) => (*number).min(NO_NUMBER - 1),
            KeptValue::Text(text) => NO_NUMBER | head(text.as_bytes()) >> 1,
        };
        let number = (hit.0 / 2) as usize;
        if hit.is_event() {
            self.events[number] = Some(row);
        } else {
            self.alone[number] = Some(Box::new(row));
        }
    }

    fn make_room(&mut self, hit: HitNo) {
        let count = (hit.0 / 2) as usize + 1;
        if hit.is_event() {
            self.events.resize_with(self.events.len().max(count), || None);
        } else {
            self.alone.resize_with(self.alone.len().max(count), || None);
        }
    }

    /// Makes room for a hit and removes its former row and tags.
    fn unlist(&mut self, hit: HitNo) {
        self.make_room(hit);
        let number = (hit.0 / 2) as usize;
        let old = if hit.is_event() {
            self.events[number].take()
        } else {
            self.alone[number].take().map(|row| *row)
        };
        for tag in old.iter().flat_map(|row| &row.tags) {
            self.tag_counts[*tag as usize] -= 1;
        }
    }
}

/// The place of a hit in an array by hit number, made if there is none.
fn place(array: &mut Vec<u64>, hit: HitNo) -> &mut u64 {
    let place = hit.0 as usize;
    if array.len() <= place {
        array.resize(place + 1, 0);
    }
    &mut array[place]
}

/// The first eight bytes as a big-endian number, which compares as they do; missing bytes are zero.
fn head(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    let count = bytes.len().min(8);
    head[..count].copy_from_slice(&bytes[..count]);
    u64::from_be_bytes(head)
}

/// The labels and slugs of the tags that the text names.
fn labels(fields: &Fields<'_>) -> Vec<String> {
    let mut labels = Vec::new();
    for raw in fields.raw("tags").and_then(items).unwrap_or_default() {
        match Fields::parse(raw) {
            Some(tag) => labels.extend(["label", "slug"].into_iter().filter_map(|name| tag.words(name))),
            None => labels.extend(as_text(raw)),
        }
    }
    labels
}

/// The recurrences of its series, in lower case.
fn recurrences(fields: &Fields<'_>) -> Box<[String]> {
    let series = fields.raw("series").and_then(items).unwrap_or_default();
    let recurrence = |raw: &str| Fields::parse(raw)?.words("recurrence");
    series.into_iter().filter_map(recurrence).map(|text| text.to_lowercase()).collect()
}

/// Everybody that a text names as its maker, in lower case.
fn creators(fields: &Fields<'_>) -> Vec<String> {
    let own = ["creator", "submitted_by"].into_iter().filter_map(|name| fields.words(name));
    let mut names: Vec<String> = own.collect();
    for raw in fields.raw("eventCreators").and_then(items).unwrap_or_default() {
        match Fields::parse(raw) {
            Some(creator) => names.extend(
                ["id", "creatorName", "creatorHandle"].into_iter().filter_map(|name| creator.words(name)),
            ),
            None => names.extend(as_text(raw)),
        }
    }
    names.retain(|name| !name.is_empty());
    names.into_iter().map(|name| name.to_lowercase()).collect()
}
