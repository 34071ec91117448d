//! How full the exchange's tables are.
//!
//! Who finds one full is refused, and only a start with a larger size makes room. So the operator is told before: by a
//! warning once a minute, by the console, and by `outcry_table_max` in `/metrics` beside what is taken. Digests are no
//! such table: the oldest give way.

use super::CoreLoop;
use crate::server::plan::Limits;
use crate::server::threads::tally::Tally;

/// A table of each shard that refuses when it is full.
struct OfShard {
    /// The name of its size and of its gauge.
    name: &'static str,
    taken: fn(&Tally) -> u64,
    max: fn(&Limits) -> u64,
}

const OF_SHARDS: [OfShard; 3] = [
    OfShard {
        name: "resting_orders",
        taken: |tally| tally.resting.get(),
        max: |limits| limits.resting_orders_max.into(),
    },
    OfShard {
        name: "positions",
        taken: |tally| tally.positions.get(),
        max: |limits| limits.positions_max.into(),
    },
    OfShard { name: "books_bytes", taken: |tally| tally.books_bytes.get(), max: |limits| limits.books_bytes },
];

/// How much each table takes, by its name.
pub(crate) fn sizes(limits: &Limits) -> impl Iterator<Item = (&'static str, u64)> {
    let others = [
        ("digests", u64::from(limits.digests_max)),
        ("wallets", u64::from(limits.wallets_max)),
        ("markets", u64::from(limits.markets_max)),
    ];
    OF_SHARDS.map(|OfShard { name, max, .. }| (name, max(limits))).into_iter().chain(others)
}

/// What is to be said of tables that are nearly full. Only the reader's loop knows all of them.
pub(super) fn complaints(core: &CoreLoop) -> Vec<String> {
    let shared = &core.shared;
    let limits = &shared.plan.limits;
    let mut said = Vec::new();
    for (tally, plan) in shared.tallies.iter().zip(&shared.plan.topology.loops) {
        let place = format!(" of the shard of loop {}", plan.name);
        said.extend(
            OF_SHARDS.map(|OfShard { name, taken, max }| complaint(name, &place, taken(tally), max(limits))),
        );
    }
    if let Some(reading) = core.follows.reading() {
        let ledger = reading.reader().ledger();
        said.push(complaint("wallets", "", ledger.wallets().len() as u64, limits.wallets_max.into()));
        said.push(complaint("markets", "", ledger.markets().len() as u64, limits.markets_max.into()));
    }
    said.into_iter().flatten().collect()
}

/// What is to be said of a table, if it is nearly full.
fn complaint(name: &str, place: &str, taken: u64, max: u64) -> Option<String> {
    // Nine of ten parts.
    (max.saturating_mul(9) <= taken.saturating_mul(10)).then(|| {
        format!(
            "sizes.{name}: {taken} of {max}{place} are taken; when all are, what needs more is refused until a start \
             with a larger size"
        )
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
