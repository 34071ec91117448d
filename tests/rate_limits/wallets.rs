//! Wallets that the exchange does not know yet.

use super::{KEYS, Site, said};

#[test]
fn wallets_that_are_new_are_counted_by_the_address_that_they_come_from() {
    let settings = ["limits.mode=enforce", "limits.new_wallets=2/10m", "trusted_proxies=127.0.0.1"];
    let mut site = Site::start(&settings);
    let [one, two, three, four] = ["11", "12", "13", "14"].map(|byte| byte.repeat(32));
    for (client, key, status) in [
        ("10.0.0.1", KEYS[2], 200), // has money, so it is known
        ("10.0.0.1", &one, 200),
        ("10.0.0.1", &two, 200),
        ("10.0.0.1", &three, 429),
        ("10.0.0.1", &one, 200), // known by now
        ("10.0.0.2", &four, 200),
    ] {
        assert_eq!(site.first_key(client, key).status, status, "{key} from {client}");
    }
    assert_eq!(said(&site.first_key("10.0.0.1", &three)), "429 2 0 600 retry 300");
    site.exchange.advance(300_000);
    assert_eq!(site.first_key("10.0.0.1", &three).status, 200);
}
