//! Lists in pages: `{"data":[…],"next_cursor":…,"limit":…,"count":…}`.
//!
//! The list is ordered by a key that never changes for a row. A page's cursor is `offset@key`: how
//! many rows were shown, and the key of the last row looked at. The next page begins after that
//! key, so rows that come or go in between neither repeat a row nor hide one. A plain offset
//! (`MTAw`) counts rows as they are now. A page ends at its row limit, at [`PAGE_BYTES_MAX`] (with
//! at least one row) or after [`WORK_MAX`]; a filter may then leave it few rows or none, and its
//! cursor leads on. A plain offset behind more than that is refused, because no cursor could say how
//! many are left to skip.

use super::ask::{Asked, Refused, too_long};
use crate::domain::Position;
use crate::json::{Cursor, Writer, cursor};

/// Rows of a page of orders or trades.
pub(super) const ROWS_OF_ACCOUNT: u64 = 100;

/// Rows of a page of markets.
pub(super) const ROWS_OF_MARKETS: u64 = 500;

/// The cursor after the last page, at which every client stops.
pub(super) const END: &str = cursor::END;

/// What is wrong with the cursor of a list that has no other parameters.
pub(super) const BAD_CURSOR: Refused = Refused::new(400, "invalid_cursor", "Invalid next_cursor");

const CURSOR_RULE: &str = "MA==, or the next_cursor of a page";

/// Bytes of rows in a page; a longer single row is a page of its own.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Work that one page may be, and that of one more row: about a millisecond.
pub(super) const WORK_MAX: u64 = 100_000;

/// Looking at a row that is at hand.
pub(super) const WORK_OF_ROW: u64 = 1;

/// Looking at an order that has to be found in memory.
pub(super) const WORK_OF_ORDER: u64 = 10;

/// Looking at one that is in an archive: a read of a file, which is some 25 us where nobody has read it lately.
pub(super) const WORK_OF_ARCHIVED: u64 = 500;

/// How many of its trades are work for one more, as its row is read whole: eight bytes each.
pub(super) const TRADES_OF_WORK: u64 = 2;

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// Rows that earlier pages showed.
    offset: u64,
    /// The key of the last row that they looked at; none if the offset has to be counted off.
    pub(super) after_key: Option<u64>,
}

/// A row that was looked at.
pub(super) struct Looked<R> {
    /// What the list is ordered by.
    pub(super) key: u64,
    /// What work that was.
    pub(super) work: u64,
    /// The row, if it passes the filter.
    pub(super) row: Option<R>,
}

/// Reads the request's cursor; `None` is the one after the last page.
pub(super) fn start(asked: &Asked<'_>, refused: Refused) -> Result<Option<Start>, Refused> {
    let text = asked.text("next_cursor")?.unwrap_or_default();
    match Cursor::parse(&text) {
        Ok(Cursor::End) => Ok(None),
        Ok(Cursor::From { offset, position }) => {
            Ok(Some(Start { offset, after_key: position.map(|position| position.0) }))
        }
        Err(cursor::BadCursor) => Err(refused.about("next_cursor", &text, CURSOR_RULE)),
    }
}

/// Writes an empty page that is the last one.
pub(super) fn empty(json: &mut Writer<'_>, limit: u64, end: &str) {
    json.open_object().key("data").open_array().close_array().key("next_cursor").text(end);
    json.key("limit").number(limit).key("count").number(0).close_object();
}

/// Writes one page of `rows`, which begin after `from`. `row` writes a row and returns what work that was. If one cannot
/// be read, or the page begins too far behind, it is refused.
pub(super) fn write<R>(
    json: &mut Writer<'_>,
    (limit, end): (u64, &str),
    from: Start,
    rows: impl Iterator<Item = Result<Looked<R>, Refused>>,
    mut row: impl FnMut(&mut Writer<'_>, R) -> Result<u64, Refused>,
) -> Result<(), Refused> {
    let mut to_skip = if from.after_key.is_some() { 0 } else { from.offset };
    let (mut count, mut worked, mut after_key) = (0, 0, from.after_key);
    let mut next = None;
    let mut text = Vec::new();
    json.open_object().key("data").open_array();
    let rows_start = json.bytes();
    for next_row in rows {
        let Looked { key, work, row: passed } = next_row?;
        let here =
            Cursor::From { offset: from.offset.saturating_add(count), position: after_key.map(Position) };
        if worked >= WORK_MAX {
            if to_skip > 0 {
                let mut got = Vec::new();
                Cursor::From { offset: from.offset, position: None }.push(&mut got);
                let got = String::from_utf8_lossy(&got);
                return Err(too_long().about("next_cursor", &got, CURSOR_RULE));
            }
            next = Some(here);
            break;
        }
        worked += work;
        if let Some(passed) = passed {
            if to_skip > 0 {
                to_skip -= 1;
            } else {
                text.clear();
                if count < limit {
                    worked += row(&mut Writer::new(&mut text), passed)?;
                }
                let fits = json.bytes() - rows_start + text.len() <= PAGE_BYTES_MAX;
                if count == limit || (count > 0 && !fits) {
                    next = Some(here);
                    break;
                }
                json.raw(&text);
                count += 1;
            }
        }
        after_key = Some(key);
    }
    json.close_array().key("next_cursor");
    match next {
        Some(cursor) => json.quoted(|out| cursor.push(out)),
        None => json.text(end),
    };
    json.key("limit").number(limit).key("count").number(count).close_object();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a page over keys 0.. of which every `pass`-th passes, and the page's cursor.
    fn page(keys: u64, pass: u64, limit: u64, row_bytes: usize, cursor: &str) -> (Vec<u64>, String) {
        try_page(keys, pass, limit, row_bytes, cursor).expect("not refused")
    }

    fn try_page(
        keys: u64,
        pass: u64,
        limit: u64,
        row_bytes: usize,
        cursor: &str,
    ) -> Result<(Vec<u64>, String), Refused> {
        let Ok(Cursor::From { offset, position }) = Cursor::parse(cursor) else {
            panic!("a cursor that begins somewhere");
        };
        let from = Start { offset, after_key: position.map(|position| position.0) };
        let first = from.after_key.map_or(0, |key| key + 1);
        let rows = (first..keys)
            .map(|key| Ok(Looked { key, work: WORK_OF_ROW, row: key.is_multiple_of(pass).then_some(key) }));
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), (limit, END), from, rows, |json, key| {
            json.open_array().number(key).text(&"x".repeat(row_bytes)).close_array();
            Ok(0)
        })?;
        let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let rows = value["data"].as_array().expect("rows");
        assert_eq!(value["count"], rows.len());
        let keys = rows.iter().map(|row| row[0].as_u64().expect("a key")).collect();
        Ok((keys, value["next_cursor"].as_str().expect("a cursor").to_owned()))
    }

    fn all(keys: u64, pass: u64, limit: u64, row_bytes: usize) -> (Vec<u64>, usize) {
        let (mut rows, mut pages, mut cursor) = (Vec::new(), 0, "MA==".to_owned());
        while cursor != END {
            let (more, next) = page(keys, pass, limit, row_bytes, &cursor);
            rows.extend(more);
            cursor = next;
            pages += 1;
        }
        (rows, pages)
    }

    #[test]
    fn pages_join_to_the_whole_list_at_every_length() {
        for keys in [0, 1, 2, 3, 4, 5, 6, 7] {
            let (rows, pages) = all(keys, 1, 3, 0);
            assert_eq!(rows, (0..keys).collect::<Vec<_>>());
            assert_eq!(pages as u64, keys.div_ceil(3).max(1), "no empty page at the end");
        }
    }

    #[test]
    fn a_page_ends_at_a_mebibyte_and_holds_at_least_one_row() {
        assert_eq!(all(4, 1, 100, 400_000), (vec![0, 1, 2, 3], 2));
        assert_eq!(all(3, 1, 100, 2_000_000), (vec![0, 1, 2], 3));
    }

    #[test]
    fn a_filter_that_passes_little_ends_a_page_early_and_loses_nothing() {
        let (rows, pages) = all(WORK_MAX * 2 + 1, WORK_MAX, 100, 0);
        assert_eq!(rows, [0, WORK_MAX, WORK_MAX * 2]);
        assert_eq!(pages, 3);
    }

    #[test]
    fn a_page_ends_after_the_row_that_used_up_its_work() {
        let from = Start { offset: 0, after_key: None };
        for (work, expected) in [(WORK_MAX / 2, 2), (WORK_MAX / 2 + 1, 2), (WORK_MAX - 1, 2), (WORK_MAX, 1)] {
            let mut looked_at = 0;
            let rows =
                (0..9).map(|key| Ok(Looked { key, work, row: None::<u64> })).inspect(|_| looked_at += 1);
            write(&mut Writer::new(&mut Vec::new()), (9, END), from, rows, |_, _| Ok(0)).expect("a page");
            assert_eq!(looked_at - 1, expected, "{work} each; the next one is not counted");
        }
    }

    #[test]
    fn a_plain_offset_counts_rows() {
        assert_eq!(page(5, 1, 2, 0, "Mw==").0, [3, 4]);
        assert_eq!(page(5, 1, 2, 0, "Mw==").1, END);
        assert_eq!(page(9, 2, 2, 0, "MQ==").0, [2, 4]);
    }

    #[test]
    fn a_plain_offset_behind_more_rows_than_a_page_looks_at_is_refused() {
        // Two rows are skipped: the second is the last that may be looked at, or the one behind it.
        let begin = |pass| try_page(WORK_MAX * 2, pass, 1, 0, "Mg==");
        let (rows, next) = begin(WORK_MAX - 1).expect("not too far behind");
        assert_eq!((rows, next == END), (vec![], false));
        let refused = begin(WORK_MAX).expect_err("too far behind");
        assert_eq!((refused.status, refused.code), (400, "payload_exceeds_limit"));
        let mut told = Vec::new();
        refused.tell(&mut told);
        let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
        assert_eq!((&told["field"], &told["got"]), (&"next_cursor".into(), &"Mg==".into()));
    }
}
