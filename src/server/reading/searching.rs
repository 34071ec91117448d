//! Searches as the reader's loop sees them: what the search thread must be told, and which requests
//! wait for it.
//!
//! One line holds texts, tags and queries in the order in which they came; from its front they are
//! sent as long as there is room. Each text and tag stands in it by number only and at most once,
//! so the line is never longer than the catalog, and the newest text is sent. The weights that rank
//! hits change with every trade, so a change is only noted, once for each hit, and sent ahead of
//! the next query: trading without searching costs the thread nothing.
//!
//! **Read your writes**: when a query enters the line, its client's acts are applied; their news is
//! before it in the line, or is noted. So a client that was told that something was imported,
//! closed or traded finds it so.
//!
//! A query that is not answered in [`WAIT_MS`] is answered 503: the index is being built
//! ([`Late::Building`]), or there is more to do than this thread of low priority can. If building
//! will take longer than that, a query is not even taken.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;

use super::searcher::{BYTES_PER_LETTER, Ends, LETTERS_MAX, Letter, NEWS_PER_LETTER, News};
use crate::catalog::search::{Found, Hit, Query, Weight};
use crate::catalog::{Catalog, event_key};
use crate::domain::{ItemKind, MarketNo};
use crate::journal::layout::Record;
use crate::reader::Reader;
use crate::server::threads::message::ReadJob;

/// Searches that wait for their answers. One more is answered 503. Each holds a letter of its loop until then, and
/// other reads, which are fast, need most of those.
const SEARCHES_MAX: usize = 64;

/// How long a search may take, with all that is before it.
const WAIT_MS: u64 = 2_000;

/// Letters sent in one turn: at most 1 MiB of texts is copied.
const LETTERS_PER_TURN: usize = 4;

/// The longest that a client is told to wait while the index is being built.
const RETRY_AFTER_S_MAX: u32 = 60;

/// What stands in line.
enum Item {
    Event(u32),
    Market(u32),
    Tag(u32),
    /// Everything before it was there at the start.
    Complete,
    Query(u64, Query),
}

/// A request that waits.
struct Waiting {
    number: u64,
    job: Box<ReadJob>,
    until_ms: u64,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The index is not there yet; it may be in this many seconds.
    Building {
        /// From 1 to [`RETRY_AFTER_S_MAX`].
        seconds: u32,
    },
    /// There are too many searches.
    Busy,
}

/// The loop's side of searching.
pub(in crate::server) struct Searching {
    ends: Ends,
    line: VecDeque<Item>,
    events: Vec<Known>,
    markets: Vec<Known>,
    /// Which tags stand in line.
    tags_in_line: Vec<bool>,
    /// Hits whose weight the thread has yet to be told.
    weights: Noted,
    /// How many items there were in line at the start, and how many of them still are.
    at_start: usize,
    left_of_start: usize,
    /// When the first turn began.
    began_ms: Option<u64>,
    sent: u64,
    seen: u64,
    waiting: VecDeque<Waiting>,
    next_number: u64,
    now_ms: u64,
}

/// What the thread was told of an event or market, or will be.
#[derive(Clone, Debug, Default)]
struct Known {
    in_line: bool,
    /// The event of a market.
    event: Option<u32>,
    tags: Box<[u32]>,
}

/// A set of hits.
#[derive(Debug, Default)]
struct Noted {
    hits: Vec<Hit>,
    events: Vec<bool>,
    markets: Vec<bool>,
}

impl Noted {
    fn flag(&mut self, hit: Hit) -> &mut bool {
        let (flags, number) = match hit {
            Hit::Event(event) => (&mut self.events, event as usize),
            Hit::Market(market) => (&mut self.markets, market as usize),
        };
        grown(flags, number)
    }

    fn note(&mut self, hit: Hit) {
        if !std::mem::replace(self.flag(hit), true) {
            self.hits.push(hit);
        }
    }

    fn take(&mut self) -> Option<Hit> {
        let hit = self.hits.pop()?;
        *self.flag(hit) = false;
        Some(hit)
    }
}

impl Searching {
    /// Begins with everything that `reader` has.
    pub(in crate::server) fn new(ends: Ends, reader: &Reader) -> Self {
        let mut searching = Self {
            ends,
            line: VecDeque::new(),
            events: Vec::new(),
            markets: Vec::new(),
            tags_in_line: Vec::new(),
            weights: Noted::default(),
            at_start: 0,
            left_of_start: 0,
            began_ms: None,
            sent: 0,
            seen: 0,
            waiting: VecDeque::new(),
            next_number: 0,
            now_ms: 0,
        };
        let (ledger, catalog) = (reader.ledger(), reader.catalog());
        ledger.items().iter().for_each(|row| searching.note_item(row.kind, &row.text, catalog));
        ledger.events().iter().for_each(|row| searching.note_event(row.event, catalog));
        ledger.markets().iter().for_each(|row| searching.note_market(row.market.0, catalog));
        // Texts are sent with what they are ranked by.
        searching.weights = Noted::default();
        searching.line.push_back(Item::Complete);
        searching.at_start = searching.line.len();
        searching.left_of_start = searching.at_start;
        searching
    }

    /// Notes what a record that was applied changes.
    pub(super) fn note(&mut self, record: &Record, reader: &Reader) {
        let catalog = reader.catalog();
        match record {
            Record::EventText(record) => self.note_event(record.event, catalog),
            Record::ItemText(record) => self.note_item(record.kind, &record.text, catalog),
            Record::MarketAdded(record) => self.note_market(record.market.0, catalog),
            Record::MarketText(record) => self.note_market(record.market.0, catalog),
            Record::MarketMode(record) => self.note_weight(record.market, catalog),
            Record::Resolved(record) => self.note_weight(record.market, catalog),
            Record::OrderPlaced(record) if !record.fills.is_empty() => {
                self.note_weight(record.market, catalog);
            }
            _ => {}
        }
    }

    /// Takes a search; gives it back if too many wait, or if the index will not be there in time.
    pub(super) fn begin(&mut self, job: Box<ReadJob>, query: Query) -> Result<(), Box<ReadJob>> {
        let hopeless =
            matches!(self.late(), Late::Building { seconds } if WAIT_MS < u64::from(seconds) * 1_000);
        if hopeless || self.waiting.len() == SEARCHES_MAX {
            return Err(job);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.line.push_back(Item::Query(number, query));
        self.waiting.push_back(Waiting { number, job, until_ms: self.now_ms + WAIT_MS });
        Ok(())
    }

    /// True if a search waits.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if something can be sent, or an answer came.
    pub(super) fn has_work(&self) -> bool {
        (!self.line.is_empty() && self.has_room())
            || self.ends.progress.answered.load(Ordering::Acquire) != self.seen
    }

    /// True once everything that there was at the start can be found.
    pub(super) fn is_complete(&self) -> bool {
        // Pairs with the Release in the thread.
        self.ends.progress.complete.load(Ordering::Acquire)
    }

    /// Why a search was not answered. The time that building still takes is estimated from its time
    /// so far.
    pub(super) fn late(&self) -> Late {
        if self.is_complete() {
            return Late::Busy;
        }
        let (done, left) = (self.at_start - self.left_of_start, self.left_of_start);
        let taken_ms = self.now_ms - self.began_ms.unwrap_or(self.now_ms);
        let left_ms = taken_ms.saturating_mul(left as u64).checked_div(done as u64).unwrap_or(0);
        let seconds = u32::try_from(left_ms.div_ceil(1_000)).unwrap_or(u32::MAX);
        Late::Building { seconds: seconds.clamp(1, RETRY_AFTER_S_MAX) }
    }

    /// Begins a turn, `now_ms` milliseconds after the start.
    pub(super) fn begin_turn(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.began_ms.get_or_insert(now_ms);
    }

    /// Sends what there is room for. Returns whether anything was sent.
    pub(super) fn send(&mut self, reader: &Reader) -> bool {
        for count in 0..LETTERS_PER_TURN {
            if !self.has_room() {
                return count > 0;
            }
            let Some(letter) = self.next_letter(reader) else {
                return count > 0;
            };
            match self.ends.letters.try_send(letter) {
                Ok(()) => self.sent += 1,
                // The thread has ended and said why; requests time out.
                Err(TrySendError::Disconnected(_)) => {}
                Err(TrySendError::Full(_)) => unreachable!("what was not taken is counted"),
            }
        }
        true
    }

    /// The next search that is over: what was found, or nothing if it took too long.
    pub(super) fn next_done(&mut self) -> Option<(Box<ReadJob>, Option<Found>)> {
        // An answer that is counted is whole. The channel would wait for one that is only begun, and the thread that has
        // begun it has the lowest priority.
        while self.seen < self.ends.progress.answered.load(Ordering::Acquire)
            && let Ok((number, found)) = self.ends.answers.try_recv()
        {
            self.seen += 1;
            // The answer to a request that was given up is dropped.
            if let Ok(place) = self.waiting.binary_search_by_key(&number, |waiting| waiting.number) {
                let waiting = self.waiting.remove(place).expect("it was just found");
                return Some((waiting.job, Some(found)));
            }
        }
        if self.waiting.front()?.until_ms <= self.now_ms {
            let late = self.waiting.pop_front().expect("just looked at");
            return Some((late.job, None));
        }
        None
    }

    fn has_room(&self) -> bool {
        let taken = self.ends.progress.taken.load(Ordering::Acquire);
        self.sent - taken < LETTERS_MAX as u64
    }

    /// What stands first in line, with what fits into the same letter.
    fn next_letter(&mut self, reader: &Reader) -> Option<Letter> {
        let mut news = Vec::new();
        let mut bytes = 0;
        while news.len() < NEWS_PER_LETTER && bytes < BYTES_PER_LETTER {
            let next = match self.line.front() {
                Some(Item::Query(..)) => match self.weights.take() {
                    Some(hit) => News::Weight { hit, weight: weight(hit, reader.catalog()) },
                    None => break,
                },
                Some(Item::Complete) | None => break,
                Some(Item::Event(_) | Item::Market(_) | Item::Tag(_)) => {
                    let item = self.line.pop_front().expect("just looked at");
                    self.left_of_start = self.left_of_start.saturating_sub(1);
                    self.news_of(&item, reader)
                }
            };
            if let News::Event { text, .. } | News::Market { text, .. } = &next {
                bytes += text.len();
            }
            news.push(next);
        }
        if !news.is_empty() {
            return Some(Letter::News(news));
        }
        loop {
            match self.line.pop_front()? {
                Item::Complete => {
                    self.left_of_start = 0;
                    return Some(Letter::Complete);
                }
                Item::Query(number, query) => {
                    // Nobody waits for it any more.
                    if self.waiting.binary_search_by_key(&number, |waiting| waiting.number).is_ok() {
                        return Some(Letter::Query { number, query });
                    }
                }
                item => {
                    self.line.push_front(item);
                    return self.next_letter(reader);
                }
            }
        }
    }

    fn news_of(&mut self, item: &Item, reader: &Reader) -> News {
        let (ledger, catalog) = (reader.ledger(), reader.catalog());
        match *item {
            Item::Event(event) => {
                self.events[event as usize].in_line = false;
                News::Event {
                    event,
                    text: ledger.events()[event as usize].text.clone(),
                    tags: catalog.event(event).tags().into(),
                    weight: weight(Hit::Event(event), catalog),
                }
            }
            Item::Market(market) => {
                self.markets[market as usize].in_line = false;
                let row =
                    ledger.market(MarketNo(market)).expect("records name markets that the ledger holds");
                News::Market {
                    market,
                    event: row.event,
                    market_id: row.market_id,
                    text: row.text.clone(),
                    tags: catalog.market(market).tags().into(),
                    weight: weight(Hit::Market(market), catalog),
                }
            }
            Item::Tag(tag) => {
                self.tags_in_line[tag as usize] = false;
                let item = catalog.shelf(ItemKind::Tag).item(tag);
                let names = |label: &String, slug: &String| [item.key.clone(), label.clone(), slug.clone()];
                News::Tag { tag, names: item.shown().map(|shown| names(&shown.label, &shown.slug)) }
            }
            Item::Complete | Item::Query(..) => unreachable!("these are letters of their own"),
        }
    }

    fn note_event(&mut self, event: u32, catalog: &Catalog) {
        let known = grown(&mut self.events, event as usize);
        if !std::mem::replace(&mut known.in_line, true) {
            self.line.push_back(Item::Event(event));
        }
        let tags = catalog.event(event).tags().into();
        let old = std::mem::replace(&mut known.tags, tags);
        self.queue_tags(&old);
        self.queue_tags(catalog.event(event).tags());
    }

    fn note_market(&mut self, market: u32, catalog: &Catalog) {
        let now = catalog.market(market);
        let known = grown(&mut self.markets, market as usize);
        if !std::mem::replace(&mut known.in_line, true) {
            self.line.push_back(Item::Market(market));
        }
        let old_tags = std::mem::replace(&mut known.tags, now.tags().into());
        let old_event = std::mem::replace(&mut known.event, now.event);
        self.queue_tags(&old_tags);
        self.queue_tags(now.tags());
        // Its event is as open as its markets, and may have their volume.
        old_event.into_iter().chain(now.event).for_each(|event| self.weights.note(Hit::Event(event)));
    }

    fn note_item(&mut self, kind: ItemKind, text: &str, catalog: &Catalog) {
        if kind == ItemKind::Tag
            && let Some(key) = event_key(text)
            && let Some(tag) = catalog.shelf(kind).by_key(&key)
        {
            self.queue_tags(&[tag]);
        }
    }

    fn note_weight(&mut self, market: MarketNo, catalog: &Catalog) {
        let event = catalog.market(market.0).event;
        self.weights.note(event.map_or(Hit::Market(market.0), Hit::Event));
    }

    fn queue_tags(&mut self, tags: &[u32]) {
        for tag in tags {
            if !std::mem::replace(grown(&mut self.tags_in_line, *tag as usize), true) {
                self.line.push_back(Item::Tag(*tag));
            }
        }
    }
}

/// What a hit is ranked by, as the catalog has it.
fn weight(hit: Hit, catalog: &Catalog) -> Weight {
    match hit {
        Hit::Event(event) => {
            let event = catalog.event(event);
            Weight { closed: event.is_closed(), volume: event.volume() }
        }
        Hit::Market(market) => {
            let market = catalog.market(market);
            Weight { closed: market.is_closed(), volume: market.volume() }
        }
    }
}

/// The place of a number, made if need be.
fn grown<T: Clone + Default>(all: &mut Vec<T>, number: usize) -> &mut T {
    if all.len() <= number {
        all.resize(number + 1, T::default());
    }
    &mut all[number]
}

#[cfg(test)]
mod tests;
