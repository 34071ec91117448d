//! One tag, series or creator that is a row of its own.

use super::event::{ID_RULE, event_key, may_be_text, merge, updated};
use super::fields::Fields;
use super::{EVENT_KEY_BYTES_MAX, Moment, Refused};
use crate::domain::ItemKind;

/// An item, ready to become a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedItem {
    /// What it is.
    pub kind: ItemKind,
    /// Its id in the file.
    pub key: String,
    /// Its `updatedAt`; the default if it has none.
    pub updated: Moment,
    /// Its JSON; a series' without `events`.
    pub text: String,
}

impl ImportedItem {
    /// The kind of a row, by the fields that only such rows have; `None` for events and markets.
    pub(super) fn kind_of(fields: &Fields<'_>) -> Option<ItemKind> {
        let has = |names: &[&str]| names.iter().any(|name| fields.has(name));
        if has(&["markets", "conditionId", "clobTokenIds", "question"]) {
            None
        } else if has(&["seriesType", "recurrence"]) {
            Some(ItemKind::Series)
        } else if has(&["creatorName", "creatorHandle"]) {
            Some(ItemKind::Creator)
        } else if has(&["label"]) && !has(&["title"]) {
            Some(ItemKind::Tag)
        } else {
            None
        }
    }

    /// Reads one object; `row` names it until its id is known.
    pub(super) fn read(kind: ItemKind, fields: &Fields<'_>, row: &str) -> Result<Self, Refused> {
        let text = fields.without("events");
        let key = event_key(&text)
            .ok_or_else(|| Refused::new(row, "id", fields.raw("id").unwrap_or("nothing"), ID_RULE))?;
        debug_assert!(key.len() <= EVENT_KEY_BYTES_MAX, "ids are bounded where they are read");
        may_be_text(&format!("{} {key}", kind.text()), &text)?;
        Ok(Self { kind, key, updated: updated(fields), text })
    }

    /// Merges another text of the same item into this one.
    pub(super) fn absorb(&mut self, other: &Self) {
        merge((&mut self.updated, &mut self.text), (other.updated, &other.text));
    }
}
