//! Pages among equals, what is too small for a page, and cursors that no page has.

use super::*;

/// After [`traded`], Alice's safe has lost with both outcomes what it sold to Carol.
fn lost() -> Exchange {
    let mut exchange = traded();
    exchange.acts(ALICES_SAFE, RAIN, ActKind::Split, [10, 10]);
    for outcome in SIDES {
        let ask = exchange.rests(ALICES_SAFE, Side::Sell, outcome, 40, 10);
        let buy = exchange.order(CAROL, Side::Buy, outcome, 40, 10);
        exchange.fills(buy, &[(ask, 10)]);
    }
    exchange
}

#[test]
fn a_rank_counts_all_before_it_wherever_a_page_begins() {
    let board = pages_join(&mut lost(), "/v2/leaderboard?sort_by=PNL");
    assert_eq!(column(&board, "user_id"), [ALICE, BOB, CAROL, ALICES_SAFE].map(address_text));
    let shown =
        |name: &str| board.iter().map(|row| row[name].as_f64().expect("a number")).collect::<Vec<_>>();
    assert_eq!(shown("pnl"), [6.0, 0.0, 0.0, -2.0]);
    assert_eq!(shown("rank"), [1.0, 2.0, 2.0, 4.0]);
}

#[test]
fn who_only_lost_has_won_nothing() {
    let stats = data(&mut lost(), &format!("/v2/user-stats?user={}", address_text(ALICES_SAFE)));
    shows(&stats, &[("biggest_win", 0.0)]);
    shows(&stats["all_time_pnl"], &[("realized_pnl", -2.0)]);
}

#[test]
fn dust_is_listed_only_where_nothing_can_be_done_with_it_alone() {
    for (millionths, open, redeemable) in [(99_999, 0, 0), (100_000, 2, 1)] {
        let mut exchange = Exchange::opened();
        exchange.acts_exactly(CAROL, SNOW, ActKind::Split, [Shares(millionths); 2]);
        let target = format!("/v2/positions?user={}&status=", address_text(CAROL));
        let count = |exchange: &mut Exchange, status| rows(exchange, &format!("{target}{status}")).len();
        assert_eq!(["OPEN", "MERGEABLE"].map(|status| count(&mut exchange, status)), [open, 2]);
        exchange.resolves(SNOW, 1_000_000);
        let counts = ["OPEN", "REDEEMABLE", "REDEEMABLE_LOST"].map(|status| count(&mut exchange, status));
        assert_eq!(counts, [open, redeemable, 1], "{millionths}");
    }
}

/// Clients hand cursors back as they got them; these are of somebody who makes some.
#[test]
fn a_cursor_that_no_page_has_asks_for_nothing_that_a_request_cannot() {
    let mut exchange = spread();
    let alice = address_text(ALICE);
    for (cursor, limit) in [
        ("positions.OPEN.TOKENS.DESC/7/3/1/0/0/0", Some(7)),
        ("positions.OPEN.TOKENS.DESC/0/3/1/0/0/0", Some(1)),
        ("positions.OPEN.TOKENS.DESC/1001/3/1/0/0/0", Some(1_000)),
        ("positions.OPEN.TOKENS/7/3/1/0/0/0", None),
        ("positions.OPEN/7/3/1/0/0/0", None),
        ("positions/7/3/1/0/0/0", None),
        ("positions.OPEN.TOKENS.UP/7/3/1/0/0/0", None),
        ("positions.OPEN.TOKENS.DESC/7/3/1/0/0", None),
        ("positions.OPEN.TOKENS.DESC/7/3", None),
        ("trades.OPEN.TOKENS.DESC/7/3/1/0/0/0", None),
    ] {
        let target = format!("/v2/positions?user={alice}&cursor={}", hex_text(cursor.as_bytes()));
        match limit {
            Some(limit) => assert_eq!(exchange.reads(&target)["pagination"]["limit"], limit, "{cursor}"),
            None => assert_eq!(refused(&mut exchange, &target)["field"], "cursor", "{cursor}"),
        }
    }
}
