//! Parameters of the catalog and of searches: read by kind, refused by name, value and rule.

use super::super::ask::Refused;
use crate::catalog::{Begin, Between, Column, Columns, Direction, Mark, Moment, ORDER_COLUMNS_MAX, Page};
use crate::domain::text::parse_hex_into;
use crate::http::Query;
use crate::json::Writer;
use crate::json::decimal::{NotDecimal, parse_millionths_down, parse_millionths_up};
use std::borrow::Cow;

/// Rows of a page by default.
const LIMIT_DEFAULT: u64 = 20;

/// Rows of a page at most.
const LIMIT_MAX: u64 = 100;

/// Values of one repeated parameter at most.
const REPEATED_MAX: usize = 100;

/// What [`Params::ids`] of tags have to be.
pub(in crate::reader) const TAG_RULE: &str = "a whole number, or the id of a tag";

/// What is listed, what it can be ordered by, and the same in words.
pub(super) type List = (&'static str, Columns, &'static str);

/// A request's query.
#[derive(Clone, Copy)]
pub(in crate::reader) struct Params<'a> {
    query: Query<'a>,
}

impl<'a> Params<'a> {
    pub(in crate::reader) const fn of(query: Query<'a>) -> Self {
        Self { query }
    }

    /// The first value of a parameter; empty is absent.
    pub(in crate::reader) fn text(self, name: &'static str) -> Result<Option<String>, Refused> {
        Ok(self.values(name)?.into_iter().next())
    }

    /// The first value of the first of these names that has one.
    pub(in crate::reader) fn first(self, names: &[&'static str]) -> Result<Option<String>, Refused> {
        for name in names {
            if let Some(text) = self.text(name)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Every value of these names, repeated or joined by commas; none if there is none.
    pub(in crate::reader) fn all(self, names: &[&'static str]) -> Result<Option<Vec<String>>, Refused> {
        let mut all = Vec::new();
        for name in names {
            for value in self.values(name)? {
                all.extend(value.split(',').filter(|one| !one.is_empty()).map(str::to_owned));
            }
            if all.len() > REPEATED_MAX {
                return Err(invalid(name, &format!("{} values", all.len()), "at most 100 values"));
            }
        }
        Ok(Some(all).filter(|all| !all.is_empty()))
    }

    /// Every value of this name, each an id, which is a whole number unless `is_known` knows another.
    pub(in crate::reader) fn ids(
        self,
        name: &'static str,
        rule: &'static str,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<Option<Vec<String>>, Refused> {
        let all = self.all(&[name])?;
        match all.iter().flatten().find(|one| !super::is_number(one) && !is_known(one)) {
            Some(wrong) => Err(invalid(name, wrong, rule)),
            None => Ok(all),
        }
    }

    /// A flag.
    pub(in crate::reader) fn flag(self, name: &'static str) -> Result<Option<bool>, Refused> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(invalid(name, &text, "true or false")),
        }
    }

    /// Flags of other venues that change nothing here; a malformed one is refused all the same.
    pub(in crate::reader) fn flags_without_effect(self, names: &[&'static str]) -> Result<(), Refused> {
        names.iter().try_for_each(|name| self.flag(name).map(drop))
    }

    /// A range of amounts, in millionths, under any of these names. A float as clients write it is read too; what
    /// is between two millionths becomes the one that lets the same amounts pass.
    pub(in crate::reader) fn amounts(self, names: &[[&'static str; 2]]) -> Result<Between, Refused> {
        let smallest = |text: &str| amount(parse_millionths_up(text.as_bytes()));
        let largest = |text: &str| amount(parse_millionths_down(text.as_bytes()));
        self.between(names, "a number from 0 up", [smallest, largest])
    }

    /// A range of instants, in microseconds.
    pub(in crate::reader) fn moments(self, names: [&'static str; 2]) -> Result<Between, Refused> {
        let moment = |text: &str| Moment::parse(text).map(|moment| moment.0);
        self.between(&[names], "a date or an RFC 3339 instant, from 1970 on", [moment; 2])
    }

    /// A range; its smallest and its largest are read in their own ways.
    fn between(
        self,
        names: &[[&'static str; 2]],
        rule: &'static str,
        read: [fn(&str) -> Option<u64>; 2],
    ) -> Result<Between, Refused> {
        let mut ends = [None, None];
        for pair in names {
            for ((end, read), name) in ends.iter_mut().zip(read).zip(pair) {
                if let Some(text) = self.text(name)? {
                    *end = Some(read(&text).ok_or_else(|| invalid(name, &text, rule))?);
                }
            }
        }
        Ok(Between { min: ends[0], max: ends[1] })
    }

    /// The page and its order.
    pub(in crate::reader) fn page(self, columns: Columns, rule: &'static str) -> Result<Page, Refused> {
        let offset = self.integer("offset", 0)?;
        let begin = Begin::Offset(offset.unwrap_or(0));
        let columns = self.order(columns, rule)?;
        Ok(Page { columns, direction: self.direction(Direction::Descending)?, begin, limit: self.limit()? })
    }

    /// The page of a list that goes on behind its last row, of which there are `rows`, and its order; ascending, unless
    /// it says otherwise.
    pub(in crate::reader) fn keyset_page(
        self,
        (listed, columns, rule): List,
        rows: usize,
    ) -> Result<Page, Refused> {
        if let Some(offset) = self.text("offset")? {
            return Err(invalid(
                "offset",
                &offset,
                "none: after_cursor, with the next_cursor of the page before",
            ));
        }
        let mut page = Page {
            columns: self.order(columns, rule)?,
            direction: self.direction(Direction::Ascending)?,
            begin: Begin::default(),
            limit: self.limit()?,
        };
        if let Some(text) = self.text("after_cursor")? {
            let mark = mark_of(&text, &page, listed).filter(|mark| (mark.row as usize) < rows);
            let rule = "a next_cursor of the same route, order and direction";
            page.begin = Begin::After(mark.ok_or_else(|| invalid("after_cursor", &text, rule))?);
        }
        Ok(page)
    }

    /// Rows of a page; more than there may be are cut, as the venues do.
    fn limit(self) -> Result<usize, Refused> {
        let limit = self.rows("limit", "1 or more; beyond 100 it is 100", LIMIT_MAX)?;
        Ok(usize::try_from(limit.unwrap_or(LIMIT_DEFAULT)).expect("at most 100"))
    }

    /// How many rows are wanted, from 1; more than `max` is cut, however long the number is.
    pub(in crate::reader) fn rows(
        self,
        name: &'static str,
        rule: &'static str,
        max: u64,
    ) -> Result<Option<u64>, Refused> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match text.parse::<u64>() {
            Ok(number) if 0 < number && super::is_number(&text) => Ok(Some(number.min(max))),
            Err(_) if super::is_number(&text) => Ok(Some(max)),
            _ => Err(invalid(name, &text, rule)),
        }
    }

    fn direction(self, unsaid: Direction) -> Result<Direction, Refused> {
        Ok(match self.flag("ascending")? {
            Some(true) => Direction::Ascending,
            Some(false) => Direction::Descending,
            None => unsaid,
        })
    }

    fn order(self, columns: Columns, rule: &'static str) -> Result<Vec<Column>, Refused> {
        let mut order = Vec::new();
        for text in self.all(&["order"])?.into_iter().flatten() {
            let column = columns.iter().find(|(column, _)| *column == text.trim());
            let (_, column) = column.ok_or_else(|| invalid("order", &text, rule))?;
            order.push(*column);
        }
        if order.len() > ORDER_COLUMNS_MAX {
            return Err(invalid("order", &format!("{} columns", order.len()), "at most 3 columns"));
        }
        Ok(order)
    }

    /// A whole number from `min`.
    pub(in crate::reader) fn integer(self, name: &'static str, min: u64) -> Result<Option<u64>, Refused> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| super::is_number(&text) && min <= *number);
        let rule = || format!("a whole number from {min} to {}", u64::MAX);
        number.map(Some).ok_or_else(|| invalid(name, &text, rule()))
    }

    fn values(self, name: &'static str) -> Result<Vec<String>, Refused> {
        let mut scratch = Vec::new();
        let mut values = Vec::new();
        for value in self.query.all(name) {
            match value.text(&mut scratch) {
                Ok("") => {}
                Ok(text) => values.push(text.to_owned()),
                Err(_) => return Err(invalid(name, value.raw(), "percent-encoded UTF-8")),
            }
        }
        Ok(values)
    }
}

/// The amount that was read; what is too large becomes the largest.
fn amount(read: Result<u64, NotDecimal>) -> Option<u64> {
    match read {
        Err(NotDecimal::TooLarge) => Some(u64::MAX),
        read => read.ok(),
    }
}

/// A page's last row as a cursor.
pub(super) fn write_cursor(json: &mut Writer<'_>, mark: &Mark, page: &Page, listed: &str) {
    json.hex(format!("{}{}", page.tag(listed), mark.text()).as_bytes());
}

/// The mark that a cursor is, if [`write_cursor`] wrote it for the same list.
fn mark_of(cursor: &str, page: &Page, listed: &str) -> Option<Mark> {
    let mut bytes = vec![0; cursor.len() / 2];
    let count = parse_hex_into(cursor.as_bytes(), &mut bytes)?;
    let text = std::str::from_utf8(&bytes[..count]).ok()?;
    Mark::parse(text.strip_prefix(&page.tag(listed))?, page.columns.len())
}

/// A refusal of a parameter's value.
pub(in crate::reader) fn invalid(
    field: &'static str,
    got: &str,
    allowed: impl Into<Cow<'static, str>>,
) -> Refused {
    Refused::bad_request("invalid_parameter", "").about(field, got, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_amounts_is_read_as_clients_write_floats() {
        for (query, min, max) in [
            ("", None, None),
            ("volume_min=0&volume_max=2.5", Some(0), Some(2_500_000)),
            ("volume_num_min=1&volume_num_max=1", Some(1_000_000), Some(1_000_000)),
            ("volume_min=1e-05&volume_max=1e-05", Some(10), Some(10)),
            ("volume_min=1e-07&volume_max=1e-07", Some(1), Some(0)),
            ("volume_min=0.30000000000000004&volume_max=0.30000000000000004", Some(300_001), Some(300_000)),
            ("volume_min=1e%2B16&volume_max=1e%2B16", Some(u64::MAX), Some(u64::MAX)),
            ("volume_max=100000000000000", None, Some(u64::MAX)),
        ] {
            let names = [["volume_min", "volume_max"], ["volume_num_min", "volume_num_max"]];
            let between = Params::of(Query::new(Some(query))).amounts(&names).expect(query);
            assert_eq!(between, Between { min, max }, "{query}");
        }
    }
}
