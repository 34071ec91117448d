//! Lists in pages: parameters that many routes share, cursors, and what stands around the rows.
//!
//! A page's cursor is opaque to clients: hex of `list/limit/offset/values`. The list is a route's, with the words that
//! say what is listed and in which order; a parameter that contradicts one of them is refused. The values say where
//! the last row stood in that order, so that rows which come, go or change in between neither repeat a row nor hide
//! one that stays where it was. The offset only counts what earlier pages showed.

use super::super::super::ask::{Asked, Refused};
use super::super::LIST_BYTES_MAX;
use super::super::params::{Bounds, Params, invalid};
use crate::catalog::page_of;
use crate::domain::ConditionId;
use crate::domain::text::parse_hex_into;
use crate::json::{Writer, name};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Rows of a page.
pub(super) const LIMIT: Bounds = Bounds { min: 1, default: 100, max: 1_000 };

/// Conditions, or events, that one request may name.
const NAMED_MAX: usize = 20;

/// The longest cursor, in bytes: that of holders of twenty markets.
const CURSOR_BYTES_MAX: usize = 2_048;

const CURSOR_RULE: &str = "the next_cursor of a page of the same list";

/// The parameters of a request that may only have these `names`, each once and in either spelling.
pub(super) fn params<'a>(asked: &'a Asked<'a>, names: &[&str]) -> Result<Params<'a>, Refused> {
    Params::spelled(asked, names, plain)
}

/// A name with underscores, and of several names for one thing the one that the rows have.
fn plain(name: &str) -> Cow<'_, str> {
    let plain = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let mut plain = String::with_capacity(name.len() + 2);
        for letter in name.chars() {
            if letter.is_ascii_uppercase() {
                plain.push('_');
            }
            plain.push(letter.to_ascii_lowercase());
        }
        Cow::Owned(plain)
    } else {
        Cow::Borrowed(name)
    };
    match &*plain {
        "condition_id" => Cow::Borrowed("condition"),
        "id" => Cow::Borrowed("event_id"),
        "user_address" => Cow::Borrowed("user"),
        _ => plain,
    }
}

/// Conditions, if any are named; each once.
pub(super) fn conditions(params: &Params<'_>) -> Result<Option<Vec<ConditionId>>, Refused> {
    let conditions = params.conditions_filter("condition")?;
    few("condition", conditions.as_ref().map_or(0, Vec::len), NAMED_MAX)?;
    Ok(conditions)
}

/// Events, if any are named; each once.
pub(super) fn events(params: &Params<'_>) -> Result<Option<BTreeSet<String>>, Refused> {
    let events = params.events_filter("event_id")?;
    few("event_id", events.as_ref().map_or(0, BTreeSet::len), NAMED_MAX)?;
    Ok(events)
}

/// Refuses a list that is longer than it may be.
pub(super) fn few(field: &'static str, count: usize, max: usize) -> Result<(), Refused> {
    if count <= max {
        return Ok(());
    }
    Err(invalid(field, &format!("{count} of them"), format!("a list of at most {max}").into()))
}

/// Where a page begins, and how long it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The route, and the words that pin what is listed and how.
    list: Vec<String>,
    /// Rows at most.
    pub(super) limit: usize,
    /// Rows that earlier pages showed.
    pub(super) offset: u64,
    /// Where the last of them stood; none for the first page.
    pub(super) after: Option<Vec<i128>>,
}

impl Start {
    /// The page of `rows`, which are in an order that never calls two of them equal, and whether more are behind it.
    pub(super) fn cut<T>(
        &self,
        rows: impl Iterator<Item = T>,
        order: impl FnMut(&T, &T) -> Ordering,
    ) -> (Vec<T>, bool) {
        let mut page = page_of(rows, 0, self.limit + 1, order);
        let more = self.limit < page.len();
        page.truncate(self.limit);
        (page, more)
    }

    /// The page of `route` that the request's `limit` and `cursor` ask for. Further words of its list are read with
    /// [`Self::word`].
    pub(super) fn of(params: &Params<'_>, route: &str, limit: Bounds) -> Result<Self, Refused> {
        let parse = |text: &str| Self::parse(text).filter(|start| start.list[0] == route);
        let Some(mut start) = params.read("cursor", || CURSOR_RULE.into(), parse)? else {
            let list = vec![route.to_owned()];
            return Ok(Self { list, limit: params.limit(limit)?, offset: 0, after: None });
        };
        // Clients may repeat everything with each page, or nothing.
        let default = start.limit.clamp(limit.min, limit.max);
        start.limit = params.limit(Bounds { default, ..limit })?;
        Ok(start)
    }

    /// The next word of the list: a parameter, or what the cursor pins. Both have to say the same.
    pub(super) fn word<T: Copy + PartialEq>(
        &mut self,
        params: &Params<'_>,
        (place, field): (usize, &'static str),
        words: &[(&str, T)],
        default: T,
    ) -> Result<T, Refused> {
        let asked = params.word(field, words)?;
        let value_of =
            |pinned: &String| words.iter().find(|(word, _)| word == pinned).map(|(_, value)| *value);
        let Some(pinned) = self.list.get(place) else {
            if self.after.is_some() {
                return Err(self.invalid());
            }
            let value = asked.unwrap_or(default);
            let word = words.iter().find(|(_, known)| *known == value).expect("a word for every value");
            self.list.push(word.0.to_owned());
            return Ok(value);
        };
        let value = value_of(pinned).ok_or_else(|| self.invalid())?;
        match asked {
            Some(asked) if asked != value => {
                let got = words.iter().find(|(_, known)| *known == asked).map_or("", |(word, _)| word);
                Err(invalid(field, got, format!("{pinned}, as in the cursor").into()))
            }
            _ => Ok(value),
        }
    }

    /// The values of the cursor, of which there have to be so many; none for the first page.
    pub(super) fn after<const COUNT: usize>(&self) -> Result<Option<[i128; COUNT]>, Refused> {
        let Some(values) = self.values(COUNT)? else { return Ok(None) };
        Ok(Some(values.try_into().expect("they were counted")))
    }

    /// [`Self::after`], where their number is known later.
    pub(super) fn values(&self, count: usize) -> Result<Option<&[i128]>, Refused> {
        match self.after.as_deref() {
            Some(values) if values.len() != count => Err(self.invalid()),
            values => Ok(values),
        }
    }

    /// The refusal of the cursor that this was read from.
    pub(super) fn invalid(&self) -> Refused {
        let mut got = Vec::new();
        name::push_hex(&mut got, self.text().as_bytes());
        invalid("cursor", &String::from_utf8_lossy(&got), CURSOR_RULE.into())
    }

    /// Writes the page: at most `limit` of `rows`, fewer if they are long. `behind` is where the next page begins if
    /// all are shown and there are more; `mark` is where a row stands.
    pub(super) fn write<R>(
        &self,
        json: &mut Writer<'_>,
        rows: &[R],
        behind: Option<Vec<i128>>,
        mark: impl Fn(&R) -> Vec<i128>,
        mut write: impl FnMut(&mut Writer<'_>, &R),
    ) {
        let (mut shown, mut next) = (0, behind);
        json.open_object().key("data").open_array();
        let start = json.bytes();
        for row in rows {
            let before = json.bytes();
            write(json, row);
            if shown > 0 && json.bytes() - start > LIST_BYTES_MAX {
                json.cut(before);
                next = Some(mark(&rows[shown - 1]));
                break;
            }
            shown += 1;
        }
        json.close_array();
        self.write_end(json, shown, next);
        json.close_object();
    }

    /// Writes `pagination` after a page that showed so many rows; the next one begins at `next`.
    pub(super) fn write_end(&self, json: &mut Writer<'_>, shown: usize, next: Option<Vec<i128>>) {
        json.key("pagination").open_object().key("limit").number(self.limit as u64);
        json.key("offset").number(self.offset).key("has_more").boolean(next.is_some()).key("next_cursor");
        json.or_null(next, |json, after| {
            let offset = self.offset.saturating_add(shown as u64);
            json.hex(Self { offset, after: Some(after), ..self.clone() }.text().as_bytes())
        });
        json.close_object();
    }

    fn text(&self) -> String {
        let values = self.after.iter().flatten().map(|value| format!("/{value}"));
        format!("{}/{}/{}{}", self.list.join("."), self.limit, self.offset, values.collect::<String>())
    }

    fn parse(cursor: &str) -> Option<Self> {
        let mut bytes = [0; CURSOR_BYTES_MAX];
        let count = parse_hex_into(cursor.as_bytes(), &mut bytes)?;
        let mut parts = std::str::from_utf8(&bytes[..count]).ok()?.split('/');
        let list = parts.next()?.split('.').map(str::to_owned).collect();
        let (limit, offset) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let after: Option<Vec<i128>> = parts.map(|value| value.parse().ok()).collect();
        Some(Self { list, limit, offset, after: Some(after?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cursor_reads_back_and_nothing_else_does() {
        for after in [vec![], vec![0], vec![-1, i128::MAX, i128::MIN]] {
            let list = ["positions", "OPEN", "TOKENS"].map(str::to_owned).to_vec();
            let start = Start { list, limit: 7, offset: u64::MAX, after: Some(after) };
            let mut out = Vec::new();
            Writer::new(&mut out).hex(start.text().as_bytes());
            let text = String::from_utf8(out).expect("text");
            assert_eq!(Start::parse(text.trim_matches('"')), Some(start));
        }
        let hex = |text: &str| {
            let mut out = Vec::new();
            Writer::new(&mut out).hex(text.as_bytes());
            String::from_utf8(out).expect("text").trim_matches('"').to_owned()
        };
        let long = format!("a/1/2{}", "/3".repeat(CURSOR_BYTES_MAX));
        for bad in
            ["", "0x", "MA==", "0x6", &hex("trades"), &hex("trades/1"), &hex("trades/1/x"), &hex(&long)]
        {
            assert_eq!(Start::parse(bad), None, "{bad}");
        }
        assert!(Start::parse(&hex("trades/1/2/1.5")).is_none());
    }

    #[test]
    fn a_name_is_known_in_both_spellings() {
        for (spelled, known) in [
            ("user", "user"),
            ("sortBy", "sort_by"),
            ("sort_by", "sort_by"),
            ("condition", "condition"),
            ("condition_id", "condition"),
            ("conditionId", "condition"),
            ("eventId", "event_id"),
            ("id", "event_id"),
            ("userAddress", "user"),
            ("excludeDepositsWithdrawals", "exclude_deposits_withdrawals"),
        ] {
            assert_eq!(plain(spelled), known);
        }
    }
}
