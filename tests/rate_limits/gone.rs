//! Clients that leave while a limit holds what they asked.

use super::{PATIENCE, Site};
use std::time::Instant;

/// Orders that a maker sends at once behind one that is held.
const BEHIND: usize = 40;

#[test]
fn a_maker_that_is_gone_leaves_no_quotes_while_its_next_order_is_held() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.order=2/2s"]);
    let mut maker = site.exchange.connect();
    let promise = "X-Outcry-Cancel-On-Disconnect: true\r\n";
    for _ in 0..2 {
        let body = site.order();
        maker.send(&site.trader.request_with(promise, "POST", "/order", &body)).unwrap();
        assert_eq!(maker.answer().unwrap().status, 200);
    }
    // More than a connection's buffer takes; the first is held.
    for _ in 0..BEHIND {
        let body = site.order();
        maker.send(&site.trader.request("POST", "/order", &body)).unwrap();
    }
    site.until_held(1);
    drop(maker);
    let deadline = Instant::now() + PATIENCE;
    while !site.trader.pages(&mut site.connection, "/data/orders").is_empty() {
        assert!(Instant::now() < deadline, "its quotes are still there");
    }
    site.exchange.advance(2_000);
    let ended = site.trader.read(&mut site.connection, "/account")["sequence"].clone();
    assert_eq!(ended, 4, "two orders were placed and cancelled, and the third never was");
}
