//! Book and money: every script runs on the shards and on their naive twin.
//!
//! A script is a table that a trader can read (`tests/scripts/language.rs` is its dictionary). The
//! files in `tests/scripts` are grouped by what they are about; the facts are the tests below.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(unreachable_pub, reason = "the scripts' files are shared with the tests over HTTP")]

#[path = "scripts/check.rs"]
mod check;
#[path = "scripts/fast.rs"]
mod fast;
#[path = "scripts/language.rs"]
mod language;
#[allow(dead_code, reason = "the tests over HTTP use the rest")]
#[path = "scripts/names.rs"]
mod names;
#[path = "scripts/random.rs"]
mod random;

use check::{check_all, check_random, last_result};
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn the_sixteen_wrongs_of_order_books_do_not_happen() {
    check_all(include_str!("scripts/wrongs.txt"));
}

#[test]
fn order_types_self_trades_and_refusals() {
    check_all(include_str!("scripts/orders.txt"));
}

#[test]
fn replaces_are_whole_or_nothing_and_smaller_ones_keep_their_place() {
    check_all(include_str!("scripts/replace.txt"));
}

#[test]
fn pairs_cost_and_return_exactly_one() {
    check_all(include_str!("scripts/pairs.txt"));
}

#[test]
fn funding_fees_and_falling_funds() {
    check_all(include_str!("scripts/money.txt"));
}

#[test]
fn expiry_ticks_modes_resolution_and_restarts() {
    check_all(include_str!("scripts/life.txt"));
}

#[test]
fn nothing_runs_twice_and_a_cancel_may_come_first() {
    check_all(include_str!("scripts/again.txt"));
}

#[test]
fn a_breaker_stops_its_key_and_nobody_else() {
    check_all(include_str!("scripts/breakers.txt"));
}

#[test]
fn shards_that_interleave_lose_and_lend_nothing() {
    check_all(include_str!("scripts/shards.txt"));
}

#[test]
fn random_scripts_agree_with_the_naive_twin() {
    let met = [
        "rests",
        "done",
        "live",
        "matched",
        "unfunded",
        "expired",
        "self_trade",
        "fok_not_filled",
        "fak_no_match",
        "not_enough_balance",
        "size_too_small",
        "notional_too_small",
        "price_off_tick",
        "post_only_crosses",
        "book_full",
        "too_many_open_orders",
        "table_full",
        "too_many_positions",
        "order_too_old",
        "cancelled_before_arrival",
        "condition_paused",
        "market_resolved",
        "nothing_to_move",
        "replace_crosses",
        "replace_gone",
        "fill_rate",
        "fill_rate_tripped",
        "dust",
    ];
    check_random(150, |draw| random::script(draw, 120), &met);
}

#[test]
fn random_scripts_whose_clock_is_set_back_agree_with_the_naive_twin() {
    let met = ["rests", "matched", "cancelled_before_arrival", "expired", "replace_gone"];
    check_random(200, |draw| random::set_back(draw, 80), &met);
}

#[test]
fn random_scripts_of_two_interleaved_shards_agree_with_the_naive_twin() {
    let met =
        ["held", "busy", "unfunded", "done", "fok_not_filled", "not_enough_balance", "fill_rate", "dust"];
    check_random(300, |draw| random::interleaved(draw, 120), &met);
}

/// Replaces orders at one price by orders at the same price: sizes by number, and the order in which each list names
/// them. Returns the size of each that came in the place of another, with the number of that one, sorted.
fn places_kept(leaving: &[u64], coming: &[u64], names: &[Vec<usize>; 2]) -> Vec<(u64, String)> {
    let placed = (0..).zip(leaving).map(|(at, size)| format!("alice buy yes 40 x{size} gtc #{at}\n"));
    let leave: Vec<String> = names[0].iter().map(|at| format!("#{at}")).collect();
    let come: Vec<String> =
        names[1].iter().map(|at| format!("buy yes 40 x{} gtc #c{at}", coming[*at])).collect();
    let script = format!(
        "credit alice 1000\n{}alice replace {} by {}",
        placed.collect::<String>(),
        leave.join(" "),
        come.join(", ")
    );
    let result = last_result(&script);
    let (_, came) = result.split_once(" by ").unwrap();
    let heirs = came.split(' ').filter_map(|word| word.strip_prefix("#c")?.split_once("=#"));
    let mut kept: Vec<(u64, String)> =
        heirs.map(|(at, former)| (coming[at.parse::<usize>().unwrap()], former.to_owned())).collect();
    kept.sort_unstable();
    kept
}

/// How many of `coming` find one of `leaving` each that is as large at least.
fn places_max(mut leaving: Vec<u64>, mut coming: Vec<u64>) -> usize {
    leaving.sort_unstable();
    coming.sort_unstable();
    let mut coming = coming.into_iter().peekable();
    leaving.into_iter().filter(|size| coming.next_if(|wanted| wanted <= size).is_some()).count()
}

proptest! {
    #[test]
    fn which_places_a_replace_keeps_does_not_depend_on_the_order_of_its_lists(
        (leaving, coming, names) in (vec(1_u64..7, 1..7), vec(1_u64..7, 1..7)).prop_flat_map(|(leaving, coming)| {
            let names = |sizes: &[u64]| Just((0..sizes.len()).collect::<Vec<_>>()).prop_shuffle();
            let names = [names(&leaving), names(&coming)];
            (Just(leaving), Just(coming), names)
        }),
    ) {
        let kept = places_kept(&leaving, &coming, &names);
        let as_numbered = [&leaving, &coming].map(|sizes| (0..sizes.len()).collect());
        prop_assert_eq!(&kept, &places_kept(&leaving, &coming, &as_numbered));
        prop_assert_eq!(kept.len(), places_max(leaving, coming));
    }
}
