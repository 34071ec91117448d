//! Whether a scenario's reads have something to read.

use super::{Class, Plan};
use crate::workload::BATCH;

/// Orders for each outcome, on average, with which none that is read is without one: they are spread at random, so one of
/// 10,000 markets would be in one of some 20,000 runs.
const READ_ORDERS_MIN: u32 = 20;

impl Plan {
    /// Whether every book that is read has orders on both sides for certain, to the end: without them there is no
    /// midpoint, and the answer would be taken for a fault of the server.
    pub(crate) fn has_what_is_read(&self) -> Result<(), String> {
        let part = |class: Class| self.mix[class as usize];
        if part(Class::Read) == 0 {
            return Ok(());
        }
        let of_books = READ_ORDERS_MIN * 2 * self.markets;
        let batch = u32::try_from(BATCH).expect("fifteen");
        let fewer = part(Class::Cancel).saturating_sub(part(Class::Place) + batch * part(Class::Batch));
        let requests = self.rate * (self.warm_up + self.time).as_secs_f64();
        let cancelled = (requests * f64::from(fewer) / f64::from(self.mix.iter().sum::<u32>())).ceil();
        if f64::from(of_books) + cancelled <= f64::from(self.resting) {
            return Ok(());
        }
        let more = if fewer == 0 {
            String::new()
        } else {
            format!(", and {cancelled:.0} for cancels that outnumber new orders")
        };
        Err(format!(
            "books.resting: got {}; allowed with reads: at least {of_books} for {} markets{more}, or a book may have \
             no orders on one side",
            self.resting, self.markets
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "purpose = \"A test.\"\n[load]\nrate = 100\n[mix]\nplace = 1\n";

    #[test]
    fn books_that_are_read_have_orders_to_the_end() {
        // 100 requests a second for 6 s.
        for (mix, books, expected) in [
            ("read = 1", "resting = 0", Err("at least 40 for 1 markets,")),
            ("read = 1", "resting = 39", Err("at least 40 for 1 markets,")),
            ("read = 1", "resting = 40", Ok(())),
            ("read = 1", "markets = 1000", Err("at least 40000 for 1000 markets,")),
            ("read = 0", "markets = 1000\nresting = 0", Ok(())),
            ("read = 1\ncancel = 1", "resting = 40", Ok(())),
            (
                "read = 1\ncancel = 2",
                "resting = 189",
                Err("at least 40 for 1 markets, and 150 for cancels that outnumber new orders,"),
            ),
            ("read = 1\ncancel = 2", "resting = 190", Ok(())),
            ("read = 1\ncancel = 16\nbatch = 1", "resting = 40", Ok(())),
        ] {
            let plan = Plan::parse("t", &format!("{LEAST}{mix}\n[books]\n{books}\n"));
            match expected {
                Ok(()) => assert!(plan.is_ok(), "{mix}, {books}: {plan:?}"),
                Err(words) => {
                    let complaint = plan.unwrap_err();
                    assert!(
                        complaint.starts_with("books.resting: got ") && complaint.contains(words),
                        "{complaint}"
                    );
                }
            }
        }
        let plan =
            Plan::parse("t", &format!("{LEAST}read = 1\ncancel = 2\n[books]\nresting = 190\n")).unwrap();
        assert!(plan.at(101.0).has_what_is_read().is_err());
    }
}
