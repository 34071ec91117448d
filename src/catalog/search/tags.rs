//! The tags that can be found: all that the catalog shows, by its numbers, whether a hit carries
//! them or they are only rows of their own.

use super::words::{self, Edits, Wanted};
use super::{FoundTag, TagText};
use crate::catalog::value::KeptValue;
use std::cmp::Reverse;

#[derive(Debug)]
struct Tag {
    id: String,
    slug: String,
    order: KeptValue,
    /// The label's words, as queries are compared with it.
    folded: String,
    /// The words of label and slug.
    words: Vec<String>,
}

/// All tags, by number.
#[derive(Debug, Default)]
pub(super) struct Tags(Vec<Option<Tag>>);

impl Tags {
    /// Sets the names of a tag; `None` removes it.
    pub(super) fn put(&mut self, tag: u32, text: Option<&TagText<'_>>) {
        let place = tag as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = text.map(|text| {
            let mut words = words::words(text.label);
            let folded = words.join(" ");
            words.extend(words::words(text.slug));
            words.sort_unstable();
            words.dedup();
            Tag {
                id: text.id.to_owned(),
                slug: text.slug.to_owned(),
                order: KeptValue::of(text.id),
                folded,
                words,
            }
        });
    }

    /// The numbers of the tags with one of these slugs.
    pub(super) fn with_slugs(&self, slugs: &[String]) -> Vec<u32> {
        self.numbers(|tag| slugs.contains(&tag.slug))
    }

    /// The numbers of the tags with one of these ids.
    pub(super) fn with_ids(&self, ids: &[String]) -> Vec<u32> {
        self.numbers(|tag| ids.contains(&tag.id))
    }

    /// The tags `start..end` of those that have every word in their label or slug: first the label
    /// that is the query, then labels that begin with it, then the rest; within these, tags that
    /// more hits carry first, then the lower id. `count` returns how many hits carry a tag, or
    /// `None` if it is not to be found.
    pub(super) fn find(
        &self,
        wanted: &Wanted,
        edits: &Edits,
        count: impl Fn(u32) -> Option<u64>,
        start: u64,
        end: u64,
    ) -> Vec<FoundTag> {
        let mut found: Vec<_> = (0..)
            .zip(&self.0)
            .filter_map(|(number, tag)| Some((number, tag.as_ref()?)))
            .filter(|(_, tag)| wanted.all_in(&tag.words, edits))
            .filter_map(|(tag_number, tag)| {
                let event_count = count(tag_number)?;
                let key = (wanted.title_tier(&tag.folded), Reverse(event_count), &tag.order);
                Some((key, FoundTag { tag: tag_number, event_count }))
            })
            .collect();
        found.sort_unstable_by(|(key, tag), (other, of_other)| {
            key.cmp(other).then(tag.tag.cmp(&of_other.tag))
        });
        let place = |place: u64| usize::try_from(place).unwrap_or(found.len()).min(found.len());
        found[place(start)..place(end)].iter().map(|(_, tag)| *tag).collect()
    }

    fn numbers(&self, wanted: impl Fn(&Tag) -> bool) -> Vec<u32> {
        let tags = (0..).zip(&self.0);
        tags.filter_map(|(number, tag)| tag.as_ref().is_some_and(&wanted).then_some(number)).collect()
    }
}
