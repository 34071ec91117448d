//! Lists in pages: parameters that many routes share, cursors, and what stands around the rows.
//!
//! A page's cursor is opaque to clients: hex of `list/limit/offset/values`. The list is a route's, with the words that
//! say what is listed and in which order; a parameter that contradicts one of them is refused. The values say where
//! the last row stood in that order, so that rows which come, go or change in between neither repeat a row nor hide
//! one that stays where it was. The offset only counts what earlier pages showed.

use super::super::super::ask::{Asked, Refused};
use super::super::LIST_BYTES_MAX;
use super::super::params::{Bounds, Params, invalid, one_of};
use crate::domain::ConditionId;
use crate::json::{Writer, name};
use std::borrow::Cow;

/// Rows of a page.
pub(super) const LIMIT: Bounds = Bounds { min: 1, default: 100, max: 1_000 };

/// Conditions that one request may name.
const CONDITIONS_MAX: usize = 20;

/// The longest cursor, in bytes.
const CURSOR_BYTES_MAX: usize = 512;

const CURSOR_RULE: &str = "the next_cursor of a page of the same list";

/// The parameters of a request that may only have these `names`, each once and in either spelling.
pub(super) fn params<'a>(asked: &'a Asked<'a>, names: &[&str]) -> Result<Params<'a>, Refused> {
    Params::spelled(asked, names, plain)
}

/// A name with underscores; a condition's id is plainly its condition.
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
    if plain == "condition_id" { Cow::Borrowed("condition") } else { plain }
}

/// Conditions, if any are named; each once.
pub(super) fn conditions(params: &Params<'_>) -> Result<Option<Vec<ConditionId>>, Refused> {
    let conditions = params.conditions_filter("condition")?;
    match conditions.as_ref().map(Vec::len) {
        Some(count) if CONDITIONS_MAX < count => {
            Err(invalid("condition", &format!("{count} conditions"), "at most 20 conditions".into()))
        }
        _ => Ok(conditions),
    }
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
    /// The page of `route` that the request's `limit` and `cursor` ask for. Further words of its list are read with
    /// [`Self::word`].
    pub(super) fn of(params: &Params<'_>, route: &str, limit: Bounds) -> Result<Self, Refused> {
        let parse = |text: &str| Self::parse(text).filter(|start| start.list[0] == route);
        let Some(mut start) = params.read("cursor", || CURSOR_RULE.into(), parse)? else {
            let list = vec![route.to_owned()];
            return Ok(Self { list, limit: params.limit(limit)?, offset: 0, after: None });
        };
        // Clients may repeat everything with each page, or nothing.
        start.limit = params.limit(Bounds { default: start.limit.min(limit.max), ..limit })?;
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
                return Err(invalid("cursor", &self.list.join("."), CURSOR_RULE.into()));
            }
            let value = asked.unwrap_or(default);
            let word = words.iter().find(|(_, known)| *known == value).expect("a word for every value");
            self.list.push(word.0.to_owned());
            return Ok(value);
        };
        let value = value_of(pinned).ok_or_else(|| invalid("cursor", pinned, one_of(words).into()))?;
        match asked {
            Some(asked) if asked != value => {
                Err(invalid(field, "another one than the cursor's", pinned.clone().into()))
            }
            _ => Ok(value),
        }
    }

    /// The values of the cursor, of which there have to be so many; none for the first page.
    pub(super) fn after<const COUNT: usize>(&self) -> Result<Option<[i128; COUNT]>, Refused> {
        let refused = |values: &Vec<i128>| invalid("cursor", &format!("{values:?}"), CURSOR_RULE.into());
        let values = self.after.as_ref();
        values.map(|values| values.as_slice().try_into().map_err(|_| refused(values))).transpose()
    }

    /// Writes the page: at most `limit` of `rows`, fewer if they are long. `behind` is where the next page begins if
    /// all are shown and there are more; `mark` is where a row stands.
    pub(super) fn write<R>(
        &self,
        json: &mut Writer<'_>,
        rows: &[R],
        behind: Option<Vec<i128>>,
        mark: impl Fn(&R) -> Vec<i128>,
        mut write: impl FnMut(&mut Writer<'_>, &R) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let (mut shown, mut next) = (0, behind);
        json.open_object().key("data").open_array();
        let start = json.bytes();
        for row in rows {
            let before = json.bytes();
            write(json, row)?;
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
        Ok(())
    }

    /// Writes `pagination` after a page that showed so many rows; the next one begins at `next`.
    pub(super) fn write_end(&self, json: &mut Writer<'_>, shown: usize, next: Option<Vec<i128>>) {
        json.key("pagination").open_object().key("limit").number(self.limit as u64);
        json.key("offset").number(self.offset).key("has_more").boolean(next.is_some()).key("next_cursor");
        match next {
            None => json.null(),
            Some(after) => {
                let offset = self.offset.saturating_add(shown as u64);
                json.hex(Self { offset, after: Some(after), ..self.clone() }.text().as_bytes())
            }
        };
        json.close_object();
    }

    fn text(&self) -> String {
        let values = self.after.iter().flatten().map(|value| format!("/{value}"));
        format!("{}/{}/{}{}", self.list.join("."), self.limit, self.offset, values.collect::<String>())
    }

    fn parse(cursor: &str) -> Option<Self> {
        let mut bytes = [0; CURSOR_BYTES_MAX];
        let count = name::parse_hex_into(cursor.as_bytes(), &mut bytes)?;
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
            ("excludeDepositsWithdrawals", "exclude_deposits_withdrawals"),
        ] {
            assert_eq!(plain(spelled), known);
        }
    }
}
