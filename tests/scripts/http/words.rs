//! Where HTTP words differ from the engine's, all in one place, with the reasons.
//!
//! - **The server sweeps by itself.** A loop removes expired and uncovered orders in the turn in
//!   which they become so, and those of a key whose breaker tripped soon after. So `sweep` has nothing left to do, and an order that a script still sees
//!   before its own sweep has already left: [`without`] removes it from the expected result.
//! - **A stranger is refused earlier.** To a shard, the same order by another principal is for a
//!   wallet of the first; over HTTP the credentials are compared first ([`STRANGERS_ORDER`]).
//! - **Stamps** that a script gives as plain numbers keep their order, an hour before it begins;
//!   those after midnight keep their distance from the script's begin ([`stamp_ms`]).
//! - **One market's post-only mode** has no operator's route of its own: the whole exchange gets it.
//! - **The same result twice** is refused by a shard; the operator, who may have missed the first
//!   answer, gets a success ([`RESOLVED_SO`]).
//! - **An act with another amount is another act**, because the amount is signed: the first act is
//!   repeated instead.

use crate::language::START_MS;
use std::collections::BTreeSet;

/// The answer to a stranger who sends another trader's order.
pub const STRANGERS_ORDER: &str = "refused owner_mismatch";
/// The answer to a stranger who sends another trader's split, merge or redeem.
pub const STRANGERS_ACT: &str = "refused maker_not_authorized";
/// A shard's answer to both.
pub const STRANGERS: &str = "refused maker_not_authorized";
/// The answer to the operator who resolves a market as it is already resolved.
pub const RESOLVED_SO: &str = "ok";

/// Plain stamps of scripts are this long before the script begins.
const PLAIN_STAMPS_MS: u64 = 3_600_000;

/// The stamp for a script's stamp, in an exchange where the script begins at `begin_ms`.
pub fn stamp_ms(stamp_ms: u64, begin_ms: u64) -> u64 {
    match stamp_ms.checked_sub(START_MS) {
        Some(after_ms) => begin_ms + after_ms,
        None if stamp_ms < PLAIN_STAMPS_MS => begin_ms - PLAIN_STAMPS_MS + stamp_ms,
        None => panic!("a stamp is below {PLAIN_STAMPS_MS} or from {START_MS}"),
    }
}

/// A result without its mentions of the orders in `gone`, in any form: `a 5@50, b 5@49 |`,
/// `-a expired, done`, `-a -b`, `#a #b`.
pub fn without(expected: &str, gone: &BTreeSet<String>) -> String {
    let is_gone = |word: &str| gone.contains(word.trim_start_matches(['-', '#']));
    let first = |part: &str| part.split(' ').next().unwrap_or_default().to_owned();
    if let Some((bids, asks)) = expected.split_once('|') {
        let side = |side: &str| {
            let rows = side.trim().split(", ").filter(|row| !is_gone(&first(row)));
            rows.collect::<Vec<_>>().join(", ")
        };
        return format!("{} | {}", side(bids), side(asks)).trim().to_owned();
    }
    let parts = expected.split(", ").filter_map(|part| {
        let names = part.split(' ').filter(|word| word.starts_with(['-', '#'])).count();
        if part.starts_with('-') && names == 1 && part.contains(' ') {
            return (!is_gone(&first(part))).then(|| part.to_owned());
        }
        if names == 0 {
            return Some(part.to_owned());
        }
        let left: Vec<&str> = part.split(' ').filter(|word| !is_gone(word)).collect();
        let nobody = if part.starts_with('-') { "ok" } else { "none" };
        Some(if left.is_empty() { nobody.to_owned() } else { left.join(" ") })
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[test]
fn results_lose_exactly_what_is_gone() {
    let gone: BTreeSet<String> = ["a".to_owned(), "b".to_owned()].into();
    for (expected, left) in [
        ("a 5@50, c 5@49 | b 5@60", "c 5@49 |"),
        ("c 2@50, -a expired, -d unfunded, done", "c 2@50, -d unfunded, done"),
        ("a 2@50, done", "a 2@50, done"),
        ("-a -c", "-c"),
        ("-a", "ok"),
        ("#a #b", "none"),
        ("5, -a unfunded", "5"),
        ("90 yes 10 no 0", "90 yes 10 no 0"),
    ] {
        assert_eq!(without(expected, &gone), left, "{expected}");
    }
}
