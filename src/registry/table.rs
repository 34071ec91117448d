//! Rows that are written once, in order, and read by everybody.
//!
//! The memory for all rows is taken at the start, so a row never moves and a reference to it
//! lives as long as the table.

use crate::memory::pages::filled_with;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A fixed number of rows, filled from 0.
#[derive(Debug)]
pub(super) struct Table<Row> {
    rows: Box<[OnceLock<Row>]>,
    count: AtomicU32,
}

impl<Row> Table<Row> {
    pub(super) fn with_capacity(rows: u32) -> Self {
        let rows = filled_with(rows as usize, OnceLock::new).into_boxed_slice();
        Self { rows, count: AtomicU32::new(0) }
    }

    /// The row `number`, which this table handed out.
    pub(super) fn row(&self, number: u32) -> &Row {
        self.place(number).get().expect("a number is handed out after its row is published")
    }

    /// The place of the row `number`, which need not be filled.
    pub(super) fn place(&self, number: u32) -> &OnceLock<Row> {
        &self.rows[number as usize]
    }

    /// Rows so far. Every number below it names a row.
    pub(super) fn count(&self) -> u32 {
        // Acquire pairs with the release in `publish`.
        self.count.load(Ordering::Acquire)
    }

    /// Rows that are still free.
    pub(super) fn free(&self) -> u32 {
        u32::try_from(self.rows.len()).expect("tables have at most 2^30 rows") - self.count()
    }

    /// Publishes the next row and returns its number. If the table is full, drops the row and
    /// returns `None`. Only the one writer calls it.
    pub(super) fn publish(&self, row: Row) -> Option<u32> {
        let number = self.count();
        let place = self.rows.get(number as usize)?;
        assert!(place.set(row).is_ok(), "only the one writer fills rows, each once");
        // Release pairs with the acquire in `count`: a reader that sees the count sees the row.
        self.count.store(number + 1, Ordering::Release);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_exactly_its_capacity() {
        let table = Table::with_capacity(2);
        assert_eq!((table.publish('a'), table.publish('b')), (Some(0), Some(1)));
        assert_eq!((table.publish('c'), table.count(), table.free()), (None, 2, 0));
        assert_eq!((*table.row(0), *table.row(1)), ('a', 'b'));
    }

    #[test]
    #[should_panic(expected = "after its row is published")]
    fn a_number_that_was_never_handed_out_is_a_bug() {
        Table::<char>::with_capacity(1).row(0);
    }
}
