//! What long bodies cost.

use super::Site;

#[test]
fn each_further_32_kib_of_a_body_are_owed_by_the_address_whatever_becomes_of_the_request() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.cancel=9/9s"]);
    for (bytes, remaining) in [((32 << 10) - 1, 8), (32 << 10, 6), (64 << 10, 3)] {
        let answer = site.ask("DELETE", "/orders", &" ".repeat(bytes));
        assert_eq!(answer.status, 400, "{bytes}");
        let after = site.ask("DELETE", "/cancel-all", "");
        assert_eq!(after.header("RateLimit-Remaining"), Some(&*(remaining - 1).to_string()), "{bytes}");
        site.exchange.advance(1_000);
    }
}

#[test]
fn a_long_batch_that_costs_more_than_there_ever_is_costs_all_that_its_body_leaves() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.cancel=9/9m"]);
    let ids: Vec<String> = (0..1_000).map(|id| format!("\"0x{id:064x}\"")).collect();
    // Its body alone costs 2, and its 63 sixteens are more than there can be.
    let cancel = format!("[{}]", ids.join(","));
    assert_eq!(super::said(&site.ask("DELETE", "/orders", &cancel)), "200 9 0 540");
    assert_eq!(super::said(&site.ask("DELETE", "/orders", "[]")), "429 9 0 540 retry 60");
}

#[test]
fn a_body_costs_the_same_where_nothing_wants_it() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.clob=9/9s", "allowed_origins=*"]);
    let page = "Origin: https://app.example\r\n";
    for (method, path, headers, status) in [
        ("POST", "/nowhere", "", 404),
        ("DELETE", "/book", "", 405),
        ("GET", "/ws/market", "", 426),
        ("OPTIONS", "/nowhere", page, 200),
        ("OPTIONS", "/order", page, 200),
        ("OPTIONS", "/book", &*format!("{page}Access-Control-Request-Method: GET\r\n"), 200),
        ("POST", "/midpoints", "", 400),
    ] {
        site.exchange.advance(9_000);
        let answer = site.connection.request(method, path, headers, " ".repeat(64 << 10).as_bytes()).unwrap();
        let after = site.connection.request("GET", "/nowhere", "", b"").unwrap();
        let left = [&answer, &after].map(|answer| answer.header("RateLimit-Remaining").unwrap_or_default());
        assert_eq!((answer.status, left), (status, ["8", "5"]), "{method} {path}");
    }
}

#[test]
fn a_body_is_owed_once_though_its_request_is_held_and_judged_again() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.cancel=9/9s", "trusted_proxies=127.0.0.1"]);
    let [one, other] = ["1.0.0.1", "1.0.0.2"].map(|client| format!("X-Forwarded-For: {client}\r\n"));
    for _ in 0..9 {
        site.connection.send(&site.trader.request_with(&one, "DELETE", "/cancel-all", "")).unwrap();
        assert_eq!(site.connection.answer().unwrap().status, 200);
    }
    // Its address has room, its owner has none.
    let mut held = site.exchange.connect();
    held.send(&site.trader.request_with(&other, "DELETE", "/orders", &" ".repeat(64 << 10))).unwrap();
    site.until_held(1);
    site.exchange.advance(1_000);
    assert_eq!(held.answer().unwrap().status, 400);
    // The request and twice 32 KiB, of which a second has made room for one, and this one.
    let after = site.connection.request("DELETE", "/cancel-all", &other, b"").unwrap();
    assert_eq!((after.status, after.header("RateLimit-Remaining")), (401, Some("6")));
}
