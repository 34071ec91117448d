//! What a maker is told of a rest that a fill leaves and nobody can fill.

use super::mirror::Book;
use super::{Site, confirmed};
use crate::common::text;
use crate::common::trader::{Wish, token};
use outcry::domain::Side;
use serde_json::json;

pub(super) fn a_rest_that_nobody_can_fill_ends_after_the_trade_that_left_it(feed: &str) {
    let mut site = Site::start(feed);
    let (resting, _) = site.order(0, 0, Side::Buy, 30, 10, "GTC");
    let (mut maker, _) = site.user(0, &json!({}));
    // For 2 and for 5 USDC at .70.
    for shares in [2_857_143, 7_142_858] {
        let (token, side, price) = (token(&site.tokens[1]), Side::Buy, 7_000);
        site.place(1, &Wish { kind: "FAK", ..Wish::of(side, token, price, shares) });
    }
    for (kind, status, matched, reason) in [
        ("UPDATE", "LIVE", "2.857142", ""),
        ("trade", "", "", ""),
        ("UPDATE", "LIVE", "9.999999", ""),
        ("trade", "", "", ""),
        ("CANCELLATION", "CANCELED", "9.999999", "dust"),
    ] {
        if kind == "trade" {
            confirmed(&mut maker);
            continue;
        }
        let said = maker.event();
        assert_eq!(
            ["id", "type", "status", "size_matched", "reason"].map(|name| text(&said[name])),
            [resting.as_str(), kind, status, matched, reason],
        );
    }
    assert!(site.books().values().all(|book| *book == Book::default()));
}
