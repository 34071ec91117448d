//! Tags, series and creators, which events mention, each by its id.
//!
//! Nobody owns such an item: several events carry a copy of it, and it may be a row of its own. A
//! [`Shelf`] knows every [`Mention`] by its [`Source`] and shows the newest one; of two of the same
//! instant the longer, then the one whose source comes first. So the shelf is the same in whatever
//! order the texts came. An item that nothing mentions any more is not shown.
//!
//! A tag that is a plain string, or has a label and no id, is an item too: its label is the string, and its id and slug
//! are the string in the form of a slug. A creator that is a plain string has it as id, name and handle.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{BTreeSet, HashMap};

use super::fields::{Part, as_text, parts};
use super::sheet::{self, Form, Sheet, Span};
use super::value::KeptValue;
use super::{EVENT_KEY_BYTES_MAX, Moment};
use crate::domain::{ItemKind, TimeMs};

/// The owner of a text that mentions an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A row of its own.
    Row(u32),
    /// An event, by number.
    Event(u32),
    /// A market, by number.
    Market(u32),
}

/// Where texts are kept.
pub trait Texts {
    /// The whole text of a source.
    fn text(&self, source: Source) -> &str;
    /// When the source was added.
    fn added(&self, source: Source) -> TimeMs;
}

impl ItemKind {
    /// The fields of such an item.
    #[must_use]
    pub const fn form(self) -> &'static Form {
        match self {
            Self::Tag => &sheet::TAG,
            Self::Series => &sheet::SERIES,
            Self::Creator => &sheet::CREATOR,
        }
    }

    /// The fields that hold its label and its name in paths.
    const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Tag => ["label", "slug"],
            Self::Series => ["title", "slug"],
            Self::Creator => ["creatorName", "creatorHandle"],
        }
    }
}

/// The part of a text that is an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mention {
    span: Span,
    updated: Moment,
}

/// What is shown of an item: its best mention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The source of that mention.
    pub source: Source,
    /// What the catalog repeats of it.
    pub sheet: Sheet,
    /// What it is called.
    pub label: String,
    /// Its name in paths; a creator's handle.
    pub slug: String,
    /// How often a series recurs, in its own words; empty for others.
    pub recurrence: String,
    /// Whether a series says that it is closed.
    pub closed: bool,
    /// When it was made; if it does not say, when it last changed, else when its source came.
    pub created: Moment,
    /// When it last changed; if it does not say, when it was made, else when its source came.
    pub updated: Moment,
    rank: (Moment, u32, std::cmp::Reverse<Source>),
}

/// One item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub key: String,
    shown: Option<Shown>,
    mentions: BTreeMap<Source, Mention>,
}

impl Item {
    /// What is shown of it; `None` once nothing mentions it.
    #[must_use]
    pub const fn shown(&self) -> Option<&Shown> {
        self.shown.as_ref()
    }

    /// The numbers of the events that mention it.
    pub fn events(&self) -> impl Iterator<Item = u32> {
        self.mentions.keys().filter_map(|source| match source {
            Source::Event(event) => Some(*event),
            _ => None,
        })
    }

    /// True if this event mentions it.
    #[must_use]
    pub(super) fn is_of_event(&self, event: u32) -> bool {
        self.mentions.contains_key(&Source::Event(event))
    }

    /// The numbers of the markets that mention it themselves.
    pub fn markets(&self) -> impl Iterator<Item = u32> {
        self.mentions.keys().filter_map(|source| match source {
            Source::Market(market) => Some(*market),
            _ => None,
        })
    }
}

/// All items of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelf {
    kind: ItemKind,
    items: Vec<Item>,
    keys: HashMap<String, u32>,
    slugs: HashMap<String, BTreeSet<(KeptValue, u32)>>,
    order: BTreeSet<(KeptValue, u32)>,
}

impl Shelf {
    pub(super) fn new(kind: ItemKind) -> Self {
        Self { kind, items: Vec::new(), keys: HashMap::new(), slugs: HashMap::new(), order: BTreeSet::new() }
    }

    /// The item with this number.
    #[must_use]
    pub fn item(&self, number: u32) -> &Item {
        &self.items[number as usize]
    }

    /// The item with this id.
    #[must_use]
    pub fn by_key(&self, key: &str) -> Option<u32> {
        self.keys.get(key).copied().filter(|number| self.item(*number).shown.is_some())
    }

    /// The items with this slug, in the order of ids.
    pub fn by_slug(&self, slug: &str) -> impl Iterator<Item = u32> {
        self.slugs.get(slug).into_iter().flatten().map(|(_, number)| *number)
    }

    /// Every item that is shown, in the order of ids.
    pub(super) fn in_order(&self) -> &BTreeSet<(KeptValue, u32)> {
        &self.order
    }

    /// Adds what `source`, which mentions nothing yet, mentions at `spans` of its text; returns the items, each once.
    pub(super) fn mention(&mut self, source: Source, spans: &[Span], texts: &dyn Texts) -> Box<[u32]> {
        let mut items = Vec::new();
        for span in spans {
            let Some(read) = Read::of(self.kind, source, *span, texts) else {
                continue;
            };
            let number = self.number_of(&read.key);
            if let Entry::Vacant(place) = self.items[number as usize].mentions.entry(source) {
                items.push(number);
                place.insert(Mention { span: *span, updated: read.shown.rank.0 });
                if self.item(number).shown.as_ref().is_none_or(|shown| shown.rank < read.shown.rank) {
                    self.show(number, Some(read.shown));
                }
            }
        }
        items.into()
    }

    /// Removes the mentions of these items by `source`, whose text may have changed already.
    pub(super) fn forget(&mut self, source: Source, items: &[u32], texts: &dyn Texts) {
        for &number in items {
            let item = &mut self.items[number as usize];
            item.mentions.remove(&source);
            if item.shown.as_ref().is_some_and(|shown| shown.source == source) {
                let rank = |(source, mention): &(&Source, &Mention)| {
                    (mention.updated, mention.span.bytes(), std::cmp::Reverse(**source))
                };
                let best = item.mentions.iter().max_by_key(rank).map(|(source, mention)| (*source, *mention));
                let shown = best.and_then(|(source, best)| Read::of(self.kind, source, best.span, texts));
                self.show(number, shown.map(|read| read.shown));
            }
        }
    }

    fn number_of(&mut self, key: &str) -> u32 {
        if let Some(&number) = self.keys.get(key) {
            return number;
        }
        let number = u32::try_from(self.items.len()).expect("items are fewer than bytes of their texts");
        self.items.push(Item { key: key.to_owned(), ..Item::default() });
        self.keys.insert(key.to_owned(), number);
        number
    }

    fn show(&mut self, number: u32, shown: Option<Shown>) {
        let item = &mut self.items[number as usize];
        let place = (KeptValue::of(&item.key), number);
        let old = std::mem::replace(&mut item.shown, shown);
        if let Some(old) = old {
            self.order.remove(&place);
            let left = self.slugs.get_mut(&old.slug).expect("a shown item has its slug here");
            left.remove(&place);
            if left.is_empty() {
                self.slugs.remove(&old.slug);
            }
        }
        if let Some(new) = &self.items[number as usize].shown {
            self.slugs.entry(new.slug.clone()).or_default().insert(place.clone());
            self.order.insert(place);
        }
    }
}

/// A mention, read.
struct Read {
    key: String,
    shown: Shown,
}

impl Read {
    /// Reads the part of `source`'s text at `span`; `None` if it names no item.
    fn of(kind: ItemKind, source: Source, span: Span, texts: &dyn Texts) -> Option<Self> {
        let text = texts.text(source);
        let added = texts.added(source);
        let raw = span.of(text);
        if raw.starts_with('"') {
            return Self::of_name(kind, &as_text(raw)?, (source, span, added));
        }
        let parts = parts(raw)?;
        let [label_field, slug_field] = kind.names();
        let mut key = None;
        let (mut label, mut slug, mut recurrence) = (String::new(), String::new(), String::new());
        let (mut created, mut updated, mut closed) = (None, None, false);
        for Part { name, raw } in &parts {
            match name.as_ref() {
                "id" => key = as_text(raw).or_else(|| raw.parse::<u64>().ok().map(|_| (*raw).to_owned())),
                "createdAt" => created = as_text(raw).and_then(|text| Moment::parse(&text)),
                "recurrence" if kind == ItemKind::Series => recurrence = as_text(raw).unwrap_or_default(),
                "closed" if kind == ItemKind::Series => closed = *raw == "true",
                "updatedAt" => updated = as_text(raw).and_then(|text| Moment::parse(&text)),
                name if name == label_field => label = as_text(raw).unwrap_or_default(),
                name if name == slug_field => slug = as_text(raw).unwrap_or_default(),
                _ => {}
            }
        }
        let Some(key) = key.filter(|key| may_be_key(key)) else {
            let is_named = kind == ItemKind::Tag && !label.is_empty();
            return is_named.then(|| Self::of_name(kind, &label, (source, span, added)))?;
        };
        if kind == ItemKind::Creator {
            for name in [&mut label, &mut slug] {
                if name.is_empty() {
                    name.clone_from(&key);
                }
            }
        }
        let came = Moment::of(added);
        let shown = Shown {
            source,
            sheet: Sheet::of(kind.form(), text, raw, &parts),
            label,
            slug,
            recurrence,
            closed,
            created: created.or(updated).unwrap_or(came),
            updated: updated.or(created).unwrap_or(came),
            rank: (updated.unwrap_or_default(), span.bytes(), std::cmp::Reverse(source)),
        };
        Some(Self { key, shown })
    }

    /// Reads a mention that is only a name.
    fn of_name(kind: ItemKind, name: &str, (source, span, added): (Source, Span, TimeMs)) -> Option<Self> {
        let key = if kind == ItemKind::Creator { name.to_owned() } else { slug_of(name) };
        if !may_be_key(&key) {
            return None;
        }
        let came = Moment::of(added);
        let shown = Shown {
            source,
            sheet: Sheet::missing_all(kind.form()),
            label: name.to_owned(),
            slug: key.clone(),
            recurrence: String::new(),
            closed: false,
            created: came,
            updated: came,
            rank: (Moment::default(), span.bytes(), std::cmp::Reverse(source)),
        };
        Some(Self { key, shown })
    }
}

fn may_be_key(key: &str) -> bool {
    (1..=EVENT_KEY_BYTES_MAX).contains(&key.len())
}

/// A name as a segment of a path: letters and digits in lower case, each run of anything else one dash.
pub(crate) fn slug_of(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Events(Vec<&'static str>);

    impl Texts for Events {
        fn text(&self, source: Source) -> &str {
            match source {
                Source::Event(event) => self.0[event as usize],
                _ => "",
            }
        }
        fn added(&self, _: Source) -> TimeMs {
            TimeMs(7)
        }
    }

    fn whole(text: &str) -> [Span; 1] {
        [Span::within(text, text)]
    }

    #[test]
    fn the_newest_mention_is_shown_whatever_came_first() {
        let events = Events(vec![
            r#"{"id":"1","label":"Old","slug":"old","updatedAt":"2024-01-01T00:00:00Z"}"#,
            r#"{"id":"1","label":"New","slug":"new","updatedAt":"2025-01-01T00:00:00Z"}"#,
            r#"{"id":"1","label":"No date","slug":"none","more":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#,
        ]);
        for order in [[0_u32, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]] {
            let mut shelf = Shelf::new(ItemKind::Tag);
            for event in order {
                shelf.mention(Source::Event(event), &whole(events.0[event as usize]), &events);
            }
            assert_eq!(shelf.item(0).shown().expect("shown").label, "New");
            assert_eq!(shelf.by_slug("new").collect::<Vec<_>>(), [0]);
            assert_eq!(shelf.by_slug("old").count(), 0);
            shelf.forget(Source::Event(1), &[0], &events);
            assert_eq!(shelf.item(0).shown().expect("shown").label, "Old");
            shelf.forget(Source::Event(0), &[0], &events);
            shelf.forget(Source::Event(2), &[0], &events);
            assert_eq!((shelf.by_key("1"), shelf.in_order().len()), (None, 0));
        }
    }

    #[test]
    fn a_plain_name_is_a_tag_and_a_creator() {
        let events = Events(vec![r#""Élan Vital!""#]);
        let mut tags = Shelf::new(ItemKind::Tag);
        tags.mention(Source::Event(0), &whole(events.0[0]), &events);
        let tag = tags.item(0);
        assert_eq!(
            (tag.key.as_str(), tag.shown().expect("shown").label.as_str()),
            ("élan-vital", "Élan Vital!")
        );
        let mut creators = Shelf::new(ItemKind::Creator);
        creators.mention(Source::Event(0), &whole(events.0[0]), &events);
        assert_eq!(creators.item(0).key, "Élan Vital!");
    }

    #[test]
    fn what_names_nothing_is_passed_over() {
        let events = Events(vec!["7", "{}", r#"{"id":""}"#, r#""???""#, r#"{"id":[]}"#]);
        let mut tags = Shelf::new(ItemKind::Tag);
        for (event, text) in (0..).zip(&events.0) {
            assert!(tags.mention(Source::Event(event), &whole(text), &events).is_empty(), "{text}");
        }
    }
}
