//! What a refusal says of the limit that was met.

use super::*;

/// The words of a refusal: which limit was met, how much it takes, and whose it is.
fn met(refused: &Answer) -> String {
    let body = refused.json();
    assert_eq!((refused.status, &body["error"]), (429, &json!("Too Many Requests")), "{body}");
    let [field, allowed, got] = ["field", "allowed", "got"].map(|name| body[name].as_str().unwrap());
    format!("{field} {allowed}: {got}")
}

#[test]
fn a_refusal_names_the_limit_that_was_met_and_whose_it_is() {
    let mut site = Site::start(&[
        "limits.mode=enforce",
        "limits.order=1/10m",
        "limits.tags=5/90s",
        "limits.catalog=1/10m",
        "limits.data_trades=1/10m",
        "limits.new_wallets=1/10m",
        "trusted_proxies=127.0.0.1",
    ]);
    assert_eq!(site.place().status, 200);
    assert_eq!(met(&site.place()), "limits.order 1/10m: more of this address");
    let order = site.order();
    let forwarded = site.trader.request_with("X-Forwarded-For: 1.0.0.1\r\n", "POST", "/order", &order);
    site.connection.send(&forwarded).unwrap();
    assert_eq!(met(&site.connection.answer().unwrap()), "limits.order 1/10m: more of this owner");

    // A read is counted in two, of which one is met.
    assert_eq!(site.forwarded("1.0.0.1", "/tags").status, 200);
    assert_eq!(met(&site.forwarded("1.0.0.1", "/tags")), "limits.catalog 1/10m: more of this address");

    assert_eq!(site.signed("1.0.0.2", "/data/trades").status, 200);
    assert_eq!(met(&site.signed("1.0.0.3", "/data/trades")), "limits.data_trades 1/10m: more of this owner");

    let [one, two] = ["11", "12"].map(|byte| byte.repeat(32));
    assert_eq!(site.first_key("1.0.0.4", &one).status, 200);
    assert_eq!(met(&site.first_key("1.0.0.4", &two)), "limits.new_wallets 1/10m: more of this address");
}

#[test]
fn a_warning_about_an_address_is_told_to_each_owner_that_asks_from_there() {
    let mut site = Site::start(&["limits.order=1/10m"]);
    assert_eq!(said(&site.place()), "200 1 0 600");
    let now_ms = site.exchange.read("/time").as_u64().unwrap() * 1_000;
    site.trader = Trader::at(KEYS[2], &mut site.connection, Some(now_ms));
    assert_eq!(said(&site.place()), "200 1 0 600 warning over", "its own limit has room");
    assert_eq!(site.count("warned"), 1);
}
