//! The orders of lists: columns, how rows compare, and one page of them.
//!
//! A list without a named column is in the order of ids, descending unless it asks for ascending. Rows that are
//! equal in the named columns are in the order of ids in the same direction, so every order is total and pages never
//! overlap. A row that lacks the column's value comes last in both directions.
//!
//! [`page_of`] cuts a page out of any list without sorting the list.

use super::value::{KeptValue, Lead, Value};
use std::cmp::Ordering;

/// The most columns that one order may name.
pub const ORDER_COLUMNS_MAX: usize = 3;

/// What a list can be ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the field of the same name")]
pub enum Column {
    Id,
    Slug,
    Title,
    Ticker,
    Question,
    StartDate,
    EndDate,
    CreationDate,
    CreatedAt,
    UpdatedAt,
    ClosedTime,
    Volume,
    Volume24hr,
    Liquidity,
    Competitive,
}

impl Column {
    /// Whether its values are texts, of which two may begin alike. (So may ids, by which equal values are told apart.)
    const fn has_texts(self) -> bool {
        matches!(self, Self::Slug | Self::Title | Self::Ticker | Self::Question)
    }
}

/// The names of columns, and the columns that they mean.
pub type Columns = &'static [(&'static str, Column)];

/// What events can be ordered by.
pub const EVENT_COLUMNS: Columns = &[
    ("id", Column::Id),
    ("slug", Column::Slug),
    ("title", Column::Title),
    ("ticker", Column::Ticker),
    ("startDate", Column::StartDate),
    ("endDate", Column::EndDate),
    ("creationDate", Column::CreationDate),
    ("createdAt", Column::CreatedAt),
    ("updatedAt", Column::UpdatedAt),
    ("closedTime", Column::ClosedTime),
    ("volume", Column::Volume),
    ("volume24hr", Column::Volume24hr),
    ("liquidity", Column::Liquidity),
    ("competitive", Column::Competitive),
];

/// What markets can be ordered by.
pub const MARKET_COLUMNS: Columns = &[
    ("id", Column::Id),
    ("slug", Column::Slug),
    ("question", Column::Question),
    ("startDate", Column::StartDate),
    ("endDate", Column::EndDate),
    ("createdAt", Column::CreatedAt),
    ("updatedAt", Column::UpdatedAt),
    ("closedTime", Column::ClosedTime),
    ("volume", Column::Volume),
    ("volumeNum", Column::Volume),
    ("volume24hr", Column::Volume24hr),
    ("liquidity", Column::Liquidity),
    ("liquidityNum", Column::Liquidity),
    ("competitive", Column::Competitive),
];

/// What tags can be ordered by.
pub const TAG_COLUMNS: Columns = &[
    ("id", Column::Id),
    ("label", Column::Title),
    ("slug", Column::Slug),
    ("createdAt", Column::CreatedAt),
    ("updatedAt", Column::UpdatedAt),
];

/// What series can be ordered by.
pub const SERIES_COLUMNS: Columns = &[
    ("id", Column::Id),
    ("title", Column::Title),
    ("slug", Column::Slug),
    ("createdAt", Column::CreatedAt),
    ("updatedAt", Column::UpdatedAt),
];

/// What creators can be ordered by.
pub const CREATOR_COLUMNS: Columns = &[
    ("id", Column::Id),
    ("creatorName", Column::Title),
    ("creatorHandle", Column::Slug),
    ("createdAt", Column::CreatedAt),
    ("updatedAt", Column::UpdatedAt),
];

/// Which way a list goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Largest first.
    #[default]
    Descending,
    /// Smallest first.
    Ascending,
}

impl Direction {
    const fn turned(self, order: Ordering) -> Ordering {
        match self {
            Self::Ascending => order,
            Self::Descending => order.reverse(),
        }
    }
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// After so many rows.
    Offset(u64),
    /// After the last row of the page before.
    After(Mark),
}

impl Default for Begin {
    fn default() -> Self {
        Self::Offset(0)
    }
}

/// A row and the values that it had in a list's columns: where the list goes on, whatever became of the row since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The row.
    pub row: u32,
    values: Vec<Option<KeptValue>>,
}

impl Mark {
    /// The mark at `row`, whose values in the list's columns these are.
    pub(super) fn new<'a>(row: u32, values: impl Iterator<Item = Option<Value<'a>>>) -> Self {
        Self { row, values: values.map(|value| value.map(KeptValue::from)).collect() }
    }

    fn keys<'a>(&'a self, id: Value<'a>) -> Keys<'a> {
        let mut values = [None; ORDER_COLUMNS_MAX];
        for (place, value) in values.iter_mut().zip(&self.values) {
            *place = value.as_ref().map(KeptValue::value);
        }
        Keys { values, id }
    }

    /// The mark as a text: its row, and behind it `#` and a number, `"` with a text's length, `:` and the text, or `-` for
    /// each column.
    #[must_use]
    pub fn text(&self) -> String {
        let column = |value: &Option<KeptValue>| match value {
            None => "-".to_owned(),
            Some(KeptValue::Number(number)) => format!("#{number}"),
            Some(KeptValue::Text(text)) => format!("\"{}:{text}", text.len()),
        };
        std::iter::once(self.row.to_string()).chain(self.values.iter().map(column)).collect()
    }

    /// Reads the mark of a list with so many columns.
    #[must_use]
    pub fn parse(text: &str, columns: usize) -> Option<Self> {
        let (row, mut rest) = number_and_rest(text)?;
        let mut values = Vec::new();
        while let Some(kind) = rest.chars().next() {
            let behind = &rest[kind.len_utf8()..];
            let (value, left) = match kind {
                '-' => (None, behind),
                '#' => {
                    number_and_rest(behind).map(|(number, left)| (Some(KeptValue::Number(number)), left))?
                }
                '"' => {
                    let (bytes, left) = number_and_rest(behind)?;
                    let (text, left) =
                        left.strip_prefix(':')?.split_at_checked(usize::try_from(bytes).ok()?)?;
                    (Some(KeptValue::Text(text.to_owned())), left)
                }
                _ => return None,
            };
            values.push(value);
            rest = left;
        }
        (values.len() == columns).then_some(Self { row: u32::try_from(row).ok()?, values })
    }
}

/// The number at the beginning of a text, and what is behind it.
fn number_and_rest(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The columns, the most important first; an empty list means the id.
    pub columns: Vec<Column>,
    /// The direction of all of them.
    pub direction: Direction,
    /// Where it begins.
    pub begin: Begin,
    /// Rows on the page at most.
    pub limit: usize,
}

impl Page {
    /// What the cursors of this list begin with, so that no other list takes them: the initial of what it lists,
    /// a sign for its direction, a letter for each column, and a full stop.
    #[must_use]
    pub fn tag(&self, listed: &str) -> String {
        let sign = match self.direction {
            Direction::Ascending => '+',
            Direction::Descending => '-',
        };
        let initial = listed.chars().next();
        let columns = self.columns.iter().map(|column| char::from(b'a' + *column as u8));
        initial.into_iter().chain([sign]).chain(columns).chain(['.']).collect()
    }

    /// The column that orders first.
    pub(super) fn first(&self) -> Column {
        self.columns.first().copied().unwrap_or(Column::Id)
    }

    /// True if the list is in the order of ids.
    pub(super) fn is_by_id(&self) -> bool {
        self.first() == Column::Id
    }

    /// The page of `rows`, which come in the order of ids, ascending.
    pub(super) fn cut(
        &self,
        rows: impl DoubleEndedIterator<Item = u32>,
        passes: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        match self.direction {
            Direction::Ascending => self.cut_ordered(rows, passes),
            Direction::Descending => self.cut_ordered(rows.rev(), passes),
        }
    }

    fn cut_ordered(&self, mut rows: impl Iterator<Item = u32>, passes: impl Fn(u32) -> bool) -> Vec<u32> {
        let skip = match &self.begin {
            Begin::Offset(offset) => usize::try_from(*offset).unwrap_or(usize::MAX),
            Begin::After(last) => {
                rows.find(|row| *row == last.row);
                0
            }
        };
        rows.filter(|row| passes(*row)).skip(skip).take(self.limit).collect()
    }

    /// The page of `rows`, which come in any order, as [`page_of`] cuts it. A row's values are asked for only where its
    /// lead, that of its value in the [first](Self::first) column, does not tell.
    pub(super) fn sort<'a>(
        &self,
        rows: impl Iterator<Item = u32>,
        lead: impl Fn(u32) -> Lead,
        id: impl Fn(u32) -> Value<'a>,
        value: impl Fn(u32, Column) -> Option<Value<'a>>,
    ) -> Vec<u32> {
        let keys = |row: u32| {
            let mut values = [None; ORDER_COLUMNS_MAX];
            for (place, column) in values.iter_mut().zip(&self.columns) {
                *place = value(row, *column);
            }
            Keys { values, id: id(row) }
        };
        // Very many rows may have the same number: those that nobody traded today.
        let leads_are_values = self.columns.len() <= 1 && !self.first().has_texts();
        let compare = |(one, one_row): &(Lead, u32), (other, other_row): &(Lead, u32)| {
            let alike = || {
                if leads_are_values {
                    self.direction.turned(id(*one_row).cmp(&id(*other_row)))
                } else {
                    self.compare(&keys(*one_row), &keys(*other_row))
                }
            };
            one.cmp(other).then_with(alike).then(one_row.cmp(other_row))
        };
        let (offset, last) = match &self.begin {
            Begin::Offset(offset) => (usize::try_from(*offset).unwrap_or(usize::MAX), None),
            Begin::After(last) => (0, Some((last.keys(id(last.row)), last.row))),
        };
        let last = last.map(|(keys, row)| (keys.lead(&self.columns).turned(self.direction), keys, row));
        let behind = |(lead, row): &(Lead, u32)| {
            last.as_ref().is_none_or(|(last_lead, last_keys, last_row)| {
                let by_lead = last_lead.cmp(lead);
                by_lead.then_with(|| self.compare(last_keys, &keys(*row))).then(last_row.cmp(row)).is_lt()
            })
        };
        let led = rows.map(|row| (lead(row).turned(self.direction), row));
        page_of(led.filter(behind), offset, self.limit, compare).into_iter().map(|(_, row)| row).collect()
    }

    fn compare(&self, one: &Keys<'_>, other: &Keys<'_>) -> Ordering {
        one.compare(other, self.columns.len(), self.direction)
    }
}

/// The rows from `offset` on, at most `limit`, of the list that `rows` are in an order which never calls two of them
/// equal, so that every page is cut from the same list.
///
/// At most twice the rows up to the page's end are held, or [`ROWS_HELD_MIN`] if that is more, and only the page is
/// sorted. Of a long list most rows cost one comparison, with the last of the best rows so far. They are compared many
/// at a time, as each may wait for memory, and the waits of many overlap.
pub(crate) fn page_of<T>(
    rows: impl Iterator<Item = T>,
    offset: usize,
    limit: usize,
    mut order: impl FnMut(&T, &T) -> Ordering,
) -> Vec<T> {
    let is_beyond = rows.size_hint().1.is_some_and(|most| most <= offset);
    let end = offset.saturating_add(limit);
    if limit == 0 || is_beyond {
        return Vec::new();
    }
    let held_max = end.saturating_mul(2).max(ROWS_HELD_MIN);
    let mut held: Vec<T> = Vec::new();
    // The best rows among those before, once there are as many as the page ends with: the last of them stands last.
    let mut best = 0;
    for row in rows {
        held.push(row);
        if held.len() == held_max {
            keep_best(&mut held, best, end, &mut order);
            best = end;
        }
    }
    if end < held.len() {
        keep_best(&mut held, best, end, &mut order);
    }
    if held.len() <= offset {
        return Vec::new();
    }
    if 0 < offset {
        held.select_nth_unstable_by(offset, &mut order);
        held.drain(..offset);
    }
    held.sort_unstable_by(order);
    held
}

/// Drops all rows but the best `end`, of which the last then stands last. `best` is 0, or `end` if as many rows in front
/// are what was kept before.
fn keep_best<T>(held: &mut Vec<T>, best: usize, end: usize, order: &mut impl FnMut(&T, &T) -> Ordering) {
    if 0 < best {
        let mut kept = best;
        for at in best..held.len() {
            if order(&held[at], &held[best - 1]).is_lt() {
                held.swap(kept, at);
                kept += 1;
            }
        }
        held.truncate(kept);
    }
    if end < held.len() {
        held.select_nth_unstable_by(end - 1, order);
        held.truncate(end);
    }
}

/// Rows that are held at least before those after the page are dropped: few enough to stay in a cache.
const ROWS_HELD_MIN: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Keys<'a> {
    values: [Option<Value<'a>>; ORDER_COLUMNS_MAX],
    id: Value<'a>,
}

impl Keys<'_> {
    /// The lead of the first of its values, of the id if there are no columns.
    fn lead(&self, columns: &[Column]) -> Lead {
        Lead::of(if columns.is_empty() { Some(self.id) } else { self.values[0] })
    }

    fn compare(&self, other: &Self, columns: usize, direction: Direction) -> Ordering {
        let turned = |order| direction.turned(order);
        for (here, there) in self.values.iter().zip(&other.values).take(columns) {
            let order = match (here, there) {
                (Some(here), Some(there)) => turned(here.cmp(there)),
                (here, there) => there.is_some().cmp(&here.is_some()),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        turned(self.id.cmp(&other.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 0.. with these values; ids go up with the row.
    fn sorted(values: &[Option<u64>], direction: Direction, offset: u64, limit: usize) -> Vec<u32> {
        paged(values, &Page { columns: vec![Column::Volume], direction, begin: Begin::Offset(offset), limit })
    }

    fn paged(values: &[Option<u64>], page: &Page) -> Vec<u32> {
        let rows = 0..u32::try_from(values.len()).expect("few");
        let value = |row: u32, _| values[row as usize].map(Value::Number);
        let lead = |row| Lead::of(value(row, page.first()));
        page.sort(rows, lead, |row| Value::Number(row.into()), value)
    }

    #[test]
    fn a_missing_value_is_last_and_ids_break_ties_the_same_way() {
        let values = [Some(5), None, Some(7), Some(5), None];
        assert_eq!(sorted(&values, Direction::Descending, 0, 9), [2, 3, 0, 4, 1]);
        assert_eq!(sorted(&values, Direction::Ascending, 0, 9), [0, 3, 2, 1, 4]);
    }

    #[test]
    fn pages_join_to_the_whole() {
        let values: Vec<Option<u64>> = (0..23).map(|n| (n % 5 != 0).then_some((n * 7) % 4)).collect();
        for direction in [Direction::Ascending, Direction::Descending] {
            let whole = sorted(&values, direction, 0, 100);
            for limit in 1..=24 {
                let pages = (0_u64..24).step_by(limit).flat_map(|at| sorted(&values, direction, at, limit));
                assert_eq!(pages.collect::<Vec<_>>(), whole);
                let (mut pages, mut begin) = (Vec::new(), Begin::default());
                loop {
                    let page =
                        paged(&values, &Page { columns: vec![Column::Volume], direction, begin, limit });
                    let Some(last) = page.last() else {
                        break;
                    };
                    let mark = Mark::new(*last, [values[*last as usize].map(Value::Number)].into_iter());
                    assert_eq!(Mark::parse(&mark.text(), 1), Some(mark.clone()));
                    begin = Begin::After(mark);
                    pages.extend(page);
                }
                assert_eq!(pages, whole);
            }
            assert!(sorted(&values, direction, u64::MAX, 3).is_empty());
        }
    }

    #[test]
    fn a_list_goes_on_where_it_was_though_its_last_row_has_moved() {
        let mut values: Vec<Option<u64>> = (0..9).map(Some).collect();
        let page = |values: &[Option<u64>], begin| {
            let columns = vec![Column::Volume];
            paged(values, &Page { columns, direction: Direction::Descending, begin, limit: 3 })
        };
        assert_eq!(page(&values, Begin::default()), [8, 7, 6]);
        let mark = Mark::new(6, [Some(Value::Number(6))].into_iter());
        for moved in [Some(0), Some(99), None] {
            values[6] = moved;
            assert_eq!(page(&values, Begin::After(mark.clone())), [5, 4, 3], "{moved:?}");
        }
    }

    #[test]
    fn a_mark_is_read_back_and_nothing_else_is_one() {
        let values =
            [Some(Value::Text("a\":-#ü")), None, Some(Value::Number(u64::MAX)), Some(Value::Text(""))];
        let mark = Mark::new(7, values.into_iter());
        assert_eq!(Mark::parse(&mark.text(), 4), Some(mark.clone()));
        assert_eq!(Mark::parse(&mark.text(), 3), None, "of a list in another order");
        for plain in ["", "x", "-", "7#", "7\"9:short", "7\"x", "4294967296", "7?", "99999999999999999999"] {
            for columns in 0..2 {
                assert_eq!(Mark::parse(plain, columns), None, "{plain}");
            }
        }
    }

    #[test]
    fn a_mark_stays_short_whatever_the_texts_are() {
        let long = "ü".repeat(100_000);
        let mark = Mark::new(7, [Value::of_text(&long); ORDER_COLUMNS_MAX].into_iter());
        assert!(mark.text().len() < 2_000, "twice that in hexadecimal fits into a line of 12 KiB");
        assert_eq!(Mark::parse(&mark.text(), ORDER_COLUMNS_MAX), Some(mark));
    }

    #[test]
    fn more_rows_than_are_held_at_once_make_the_same_pages() {
        let count = 5 * ROWS_HELD_MIN as u64;
        let values: Vec<Option<u64>> =
            (0..count).map(|n| (n % 7 != 0).then_some(n * 7_919 % 1_009)).collect();
        for direction in [Direction::Ascending, Direction::Descending] {
            let whole = sorted(&values, direction, 0, usize::MAX);
            for (offset, limit) in [(0, 1), (0, 100), (511, 1), (512, 100), (1_024, 7), (count - 3, 100)] {
                let at = usize::try_from(offset).expect("few");
                let end = (at + limit).min(whole.len());
                assert_eq!(sorted(&values, direction, offset, limit), whole[at..end], "{offset} {limit}");
            }
        }
    }

    #[test]
    fn a_page_is_cut_out_of_the_sorted_list_in_whatever_order_it_comes() {
        const COUNT: usize = 3 * ROWS_HELD_MIN;
        // 7,919 and the count have no common divisor, so every number comes once.
        let mixed: Vec<usize> = (0..COUNT).map(|n| n * 7_919 % COUNT).collect();
        let sorted: Vec<usize> = (0..COUNT).collect();
        let reversed: Vec<usize> = sorted.iter().rev().copied().collect();
        let places = [0, 1, 2, 7, 511, 512, 513, 1_023, 1_024, 1_025, 2_048, COUNT - 1, COUNT, COUNT + 1];
        for rows in [&mixed, &sorted, &reversed] {
            for offset in places.into_iter().chain([usize::MAX]) {
                for limit in places.into_iter().chain([usize::MAX]) {
                    // With a count that is known in advance, and without.
                    let pages = [
                        page_of(rows.iter(), offset, limit, Ord::cmp),
                        page_of(rows.iter().filter(|_| true), offset, limit, Ord::cmp),
                    ];
                    for page in pages {
                        assert!(
                            page.into_iter().eq(sorted.iter().skip(offset).take(limit)),
                            "{limit} from {offset}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_after_the_page_is_compared_once_and_only_the_page_is_sorted() {
        const COUNT: usize = 100 * ROWS_HELD_MIN;
        let compared = |rows: &mut dyn Iterator<Item = usize>, offset: usize| {
            let mut count = 0;
            let page = page_of(rows, offset, 1, |one, other| {
                count += 1;
                one.cmp(other)
            });
            assert_eq!(page, [offset]);
            count
        };
        let mixed = || (1..=COUNT).map(|n| n * 7_919 % COUNT);
        assert!(compared(&mut (0..COUNT), 0) < COUNT + 10 * ROWS_HELD_MIN, "those that come are ever later");
        assert!(compared(&mut mixed(), 0) < COUNT + 10 * ROWS_HELD_MIN);
        // To sort them would take some sixteen comparisons of each row.
        assert!(compared(&mut mixed(), COUNT / 2) < 6 * COUNT);
    }
}
