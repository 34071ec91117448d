//! One event of a file.

use super::facts::words;
use super::fields::{self, Fields};
use super::{EVENT_KEY_BYTES_MAX, Moment, Refused, TEXT_BYTES_MAX, TEXT_DEPTH_MAX};

/// An event, ready to become a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedEvent {
    /// Its id in the file: how markets and later files name it.
    pub key: String,
    /// Its `updatedAt`; the default if it has none.
    pub updated: Moment,
    /// Its JSON without `markets`.
    pub text: String,
}

impl ImportedEvent {
    /// Reads one event object; `row` names it until its id is known.
    pub(super) fn read(fields: &Fields<'_>, row: &str) -> Result<Self, Refused> {
        let key = key_of(fields)
            .ok_or_else(|| Refused::new(row, "id", fields.raw("id").unwrap_or("nothing"), ID_RULE))?;
        let text = fields.without("markets");
        may_be_text(&format!("event {key}"), &text)?;
        Ok(Self { key, updated: updated(fields), text })
    }

    /// The event as a row of a file: with `markets`, so that it is read as an event whatever its fields are.
    #[must_use]
    pub fn row(&self) -> String {
        let fields = self.text.strip_suffix('}').expect("texts of events are objects with an id");
        format!("{fields},\"markets\":[]}}")
    }

    /// True if the text is nothing but an id.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        Fields::parse(&self.text).is_some_and(|fields| fields.names().count() == 1)
    }

    /// Merges another text of the same event into this one.
    pub(super) fn absorb(&mut self, other: &Self) {
        merge((&mut self.updated, &mut self.text), (other.updated, &other.text));
    }
}

/// Merges another text of the same event or item into `text`, which is of the instant `at`. Which of the two
/// comes first makes no difference: the newer leads, and of two of the same instant the longer. Where both
/// together are too long, the one that leads is left alone. Of more than two texts the newest leads all the
/// same, but a field that only older ones have may be of any of those: where it came from is not kept.
pub(super) fn merge((at, text): (&mut Moment, &mut String), (other_at, other): (Moment, &str)) {
    // Every market of an event carries a copy of it, and nearly all copies are equal.
    if text == other {
        return;
    }
    let here = (*at, text.len(), text.as_str());
    let there = (other_at, other.len(), other);
    let [older, newer] = if here < there { [here.2, other] } else { [other, here.2] };
    let fields = Fields::parse(newer).zip(Fields::parse(older));
    let (lead, rest) = fields.expect("texts were rendered here");
    *text = together(newer, &lead, &rest);
    *at = other_at.max(*at);
}

/// What the id of an event or item may be.
pub(super) const ID_RULE: &str = "a text of 1 to 64 bytes, or a number";

/// Refuses the text of `row` if it fits in no frame, or nests deeper than clients read.
pub(super) fn may_be_text(row: &str, text: &str) -> Result<(), Refused> {
    if TEXT_BYTES_MAX < text.len() {
        return Err(Refused::new(row, "text", &format!("{} bytes", text.len()), "at most 262144 bytes"));
    }
    let depth = fields::depth(text);
    if TEXT_DEPTH_MAX < depth {
        return Err(Refused::new(row, "text", &format!("{depth} levels of brackets"), "at most 64 levels"));
    }
    Ok(())
}

/// The id that an event's text names.
#[must_use]
pub fn event_key(text: &str) -> Option<String> {
    key_of(&Fields::parse(text)?)
}

/// `text`, whose fields are `lead`, followed by the fields that only `rest` has; alone if both together are too long.
pub(super) fn together(text: &str, lead: &Fields<'_>, rest: &Fields<'_>) -> String {
    let together = lead.with_rest_of(rest).filter(|together| together.len() <= TEXT_BYTES_MAX);
    together.unwrap_or_else(|| text.to_owned())
}

/// The `updatedAt` of a row.
pub(super) fn updated(fields: &Fields<'_>) -> Moment {
    fields.text("updatedAt").and_then(|text| Moment::parse(&text)).unwrap_or_default()
}

fn key_of(fields: &Fields<'_>) -> Option<String> {
    Some(words(fields.raw("id")?)).filter(|key| (1..=EVENT_KEY_BYTES_MAX).contains(&key.len()))
}
