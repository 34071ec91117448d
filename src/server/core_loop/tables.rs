//! How full the exchange's tables are.
//!
//! Who finds one full is refused, and only a start with a larger size makes room. So the operator is told before: by a
//! warning once a minute, by the console, and by `outcry_table_max` in `/metrics` beside what is taken. Digests are no
//! such table: the oldest give way.

use super::CoreLoop;
use crate::server::connections::house::SAY_EVERY_MS;
use crate::server::plan::Limits;

/// The names of the tables, as in `/metrics` and in the `sizes`, with how much each takes.
pub(crate) fn sizes(limits: &Limits) -> [(&'static str, u64); 6] {
    [
        ("resting_orders", u64::from(limits.resting_orders_max)),
        ("positions", u64::from(limits.positions_max)),
        ("books_bytes", limits.books_bytes),
        ("digests", u64::from(limits.digests_max)),
        ("wallets", u64::from(limits.wallets_max)),
        ("markets", u64::from(limits.markets_max)),
    ]
}

/// Says from time to time which tables are nearly full.
#[derive(Debug, Default)]
pub(crate) struct TableWatch {
    silent_until_ms: u64,
}

impl TableWatch {
    /// What is to be said now. Only the loop with the doors asks.
    pub(crate) fn look(&mut self, core: &CoreLoop) -> Vec<String> {
        if core.elapsed_ms < self.silent_until_ms {
            return Vec::new();
        }
        let shared = &core.shared;
        let limits = &shared.plan.limits;
        let mut said = Vec::new();
        for (tally, plan) in shared.tallies.iter().zip(&shared.plan.topology.loops) {
            let place = format!(" of the shard of loop {}", plan.name);
            said.extend(complaint(
                "resting_orders",
                &place,
                tally.resting.get(),
                limits.resting_orders_max.into(),
            ));
            said.extend(complaint("positions", &place, tally.positions.get(), limits.positions_max.into()));
            said.extend(complaint("books_bytes", &place, tally.books_bytes.get(), limits.books_bytes));
        }
        if let Some(reading) = core.follows.reading() {
            let ledger = reading.reader().ledger();
            said.extend(complaint("wallets", "", ledger.wallets().len() as u64, limits.wallets_max.into()));
            said.extend(complaint("markets", "", ledger.markets().len() as u64, limits.markets_max.into()));
        }
        if !said.is_empty() {
            self.silent_until_ms = core.elapsed_ms + SAY_EVERY_MS;
        }
        said
    }
}

/// What is to be said of a table, if it is nearly full.
fn complaint(name: &str, place: &str, taken: u64, max: u64) -> Option<String> {
    // Nine of ten parts.
    (max.saturating_mul(9) <= taken.saturating_mul(10)).then(|| {
        format!("sizes.{name}: {taken} of {max}{place} are taken; when all are, what needs more is refused until a start with a larger size")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_nearly_full_from_nine_of_ten_parts_on() {
        for (taken, max, is_said) in
            [(0, 10, false), (8, 10, false), (9, 10, true), (10, 10, true), (89, 99, false)]
        {
            assert_eq!(complaint("markets", "", taken, max).is_some(), is_said, "{taken} of {max}");
        }
        let said =
            complaint("positions", " of the shard of loop outcry-shard0", 90, 100).expect("nearly full");
        assert!(
            said.starts_with("sizes.positions: 90 of 100 of the shard of loop outcry-shard0 are taken"),
            "{said}"
        );
    }
}
