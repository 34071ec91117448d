//! Requests as lines, and the row each one finds.

use super::*;
use std::collections::BTreeSet;

const CONDITION: &str = "/markets/0x5f65177b394277fd294cd75650044e32ba009a95022d88a0c1d565897d72f8f1";

fn ask(line: &str, prefixes: HostPrefixes) -> Result<(Endpoint, String), String> {
    ask_host("127.0.0.1:8080", line, prefixes)
}

fn ask_host(host: &str, line: &str, prefixes: HostPrefixes) -> Result<(Endpoint, String), String> {
    let (method, target) = line.split_once(' ').expect("METHOD target");
    let method = [Method::Get, Method::Head, Method::Post, Method::Delete]
        .into_iter()
        .find(|known| known.text() == method)
        .unwrap_or(Method::Other);
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    match route(method, Some(host), path, Query::new(query), prefixes) {
        Ok(found) => Ok((found.endpoint, found.capture.to_owned())),
        Err(NoRoute::NotFound) => Err("404".to_owned()),
        Err(NoRoute::WrongMethod(allowed)) => Err(format!("405 {}", allowed.text())),
    }
}

#[test]
fn every_row_is_reached_by_its_own_path() {
    for row in TABLE.iter().filter(|row| !row.before.is_empty()) {
        let path = match row.after {
            Some(after) if row.endpoint == Endpoint::ClobMarket => format!("{CONDITION}{after}"),
            Some(after) => format!("{}x%20y{after}", row.before),
            None => row.before.to_owned(),
        };
        let found =
            route(row.method, None, &path, Query::default(), HostPrefixes::Off).expect("in the table");
        assert_eq!(found.endpoint, row.endpoint, "{path}");
        assert_eq!((found.path, found.full_path), (path.as_str(), path.as_str()));
        assert_eq!(found.capture.is_empty(), row.after.is_none());
    }
}

#[test]
fn no_two_rows_answer_the_same_request() {
    let mut seen = BTreeSet::new();
    for row in TABLE.iter().filter(|row| !row.before.is_empty()) {
        assert!(seen.insert((row.method.text(), row.before, row.after)), "{} twice", row.before);
    }
}

#[test]
fn unknown_paths_are_404_and_known_ones_name_their_methods() {
    for (line, expected) in [
        ("GET /nothing", "404"),
        ("GET //", "404"),
        ("POST //order", "404"),
        ("POST /order//", "404"),
        ("POST /%6frder", "404"),
        ("POST /Order", "404"),
        ("GET /data/order/", "404"),
        ("GET /data/order/a/b", "404"),
        ("GET /order", "405 POST, DELETE"),
        ("PUT /orders", "405 POST, DELETE"),
        ("POST /", "405 GET, HEAD"),
        ("DELETE /data/orders", "405 GET, HEAD, POST"),
        ("HEAD /cancel-all", "405 DELETE"),
        ("GET /gamma/events", "404"),
    ] {
        assert_eq!(ask(line, HostPrefixes::Off).expect_err("no such row"), expected, "{line}");
    }
}

#[test]
fn one_slash_at_the_end_is_passed_over() {
    let plain = |line| ask(line, HostPrefixes::Off).map(|(endpoint, _)| endpoint);
    assert_eq!(plain("POST /order/"), Ok(Endpoint::PlaceOrder));
    assert_eq!(plain("GET /"), Ok(Endpoint::Root));
    assert_eq!(plain("HEAD /time/"), Ok(Endpoint::Time));
}

#[test]
fn markets_have_two_meanings_and_the_request_says_which() {
    for (line, expected) in [
        ("GET /markets", Endpoint::ClobMarkets),
        ("GET /markets?next_cursor=MA==", Endpoint::ClobMarkets),
        ("GET /markets?unknown=1", Endpoint::ClobMarkets),
        ("GET /markets?limit=5", Endpoint::CatalogMarkets),
        ("GET /markets?tag_id=5", Endpoint::CatalogMarkets),
        ("GET /markets?game_id=5", Endpoint::CatalogMarkets),
        ("GET /markets?rewards_min_size=1", Endpoint::CatalogMarkets),
        ("GET /markets?sports_market_types=x", Endpoint::CatalogMarkets),
        ("GET /markets?uma_resolution_status=x", Endpoint::CatalogMarkets),
        ("GET /markets?market_maker_address=x", Endpoint::CatalogMarkets),
        ("GET /markets?event_slug=x", Endpoint::CatalogMarkets),
        ("GET /markets/540900", Endpoint::CatalogMarket),
        ("GET /markets/0x12", Endpoint::CatalogMarket),
        ("GET /markets/slug/abc", Endpoint::CatalogMarketBySlug),
        // A slug may be a word that other paths end in.
        ("GET /markets/slug/tags", Endpoint::CatalogMarketBySlug),
        ("GET /events/slug/tags", Endpoint::EventBySlug),
        ("GET /gamma/markets", Endpoint::CatalogMarkets),
        ("GET /gamma/markets/540900", Endpoint::CatalogMarket),
        ("GET /clob/markets?limit=5", Endpoint::ClobMarkets),
        ("GET /markets?limit=", Endpoint::ClobMarkets),
    ] {
        assert_eq!(ask(line, HostPrefixes::On).map(|(endpoint, _)| endpoint), Ok(expected), "{line}");
    }
    for spelled in
        [CONDITION.replace("0x", "0X"), CONDITION.replace("/0x", "/%30x"), CONDITION.replace('f', "F")]
    {
        let asked = ask(&format!("GET {spelled}"), HostPrefixes::Off);
        assert_eq!(asked.map(|(endpoint, _)| endpoint), Ok(Endpoint::ClobMarket), "{spelled}");
    }
    let by_condition = |tail: &str| ask(&format!("GET {CONDITION}{tail}"), HostPrefixes::Off);
    assert_eq!(by_condition("").map(|(endpoint, _)| endpoint), Ok(Endpoint::ClobMarket));
    assert_eq!(by_condition("?creator=").map(|(endpoint, _)| endpoint), Ok(Endpoint::ClobMarket));
    assert_eq!(by_condition("?creator=x").map(|(endpoint, _)| endpoint), Ok(Endpoint::CatalogMarket));
}

#[test]
fn a_host_that_is_named_after_a_service_decides_what_markets_are() {
    let condition = format!("GET {CONDITION}");
    let with_creator = format!("{condition}?creator=x");
    for (host, line, expected) in [
        ("gamma.example.com", "GET /markets", Endpoint::CatalogMarkets),
        ("GAMMA-API.example.com:443", "GET /markets?next_cursor=MA==", Endpoint::CatalogMarkets),
        ("gamma-api.example.com", &condition, Endpoint::CatalogMarket),
        ("clob.example.com", "GET /markets?limit=5", Endpoint::ClobMarkets),
        ("clob.example.com", "GET /markets/540900", Endpoint::ClobMarket),
        ("clob-staging:8080", &with_creator, Endpoint::ClobMarket),
        ("clob:8080", &with_creator, Endpoint::ClobMarket),
        ("data-api.example.com", "GET /markets?limit=5", Endpoint::ClobMarkets),
        ("gammas.example.com", "GET /markets", Endpoint::ClobMarkets),
        ("api.gamma.example.com", "GET /markets", Endpoint::ClobMarkets),
        ("example.com", "GET /markets?limit=5", Endpoint::CatalogMarkets),
        ("[::1]:8080", "GET /markets/540900", Endpoint::CatalogMarket),
        ("gamma.example.com", "POST /order", Endpoint::PlaceOrder),
        ("clob.example.com", "GET /events", Endpoint::Events),
    ] {
        for prefixes in [HostPrefixes::Off, HostPrefixes::On] {
            let found = ask_host(host, line, prefixes).map(|(endpoint, _)| endpoint);
            assert_eq!(found, Ok(expected), "{host} {line}");
        }
    }
    let clob_in_path = ask_host("gamma.example.com", "GET /clob/markets", HostPrefixes::On);
    assert_eq!(clob_in_path.map(|(endpoint, _)| endpoint), Ok(Endpoint::ClobMarkets));
}

#[test]
fn host_prefixes_come_off_only_in_front_of_their_own_rows() {
    for (line, expected) in [
        ("POST /clob/order", Ok(Endpoint::PlaceOrder)),
        ("GET /clob", Ok(Endpoint::Root)),
        ("GET /clob/", Ok(Endpoint::Root)),
        ("GET /data/orders", Ok(Endpoint::Orders)),
        ("DELETE /data/orders", Err("405 GET, HEAD, POST".to_owned())),
        ("GET /clob/data/orders", Ok(Endpoint::Orders)),
        ("GET /data/positions", Ok(Endpoint::Positions)),
        ("GET /data/trades", Ok(Endpoint::Trades)),
        ("GET /data/trades?maker=0x1&limit=5", Ok(Endpoint::Trades)),
        ("GET /data/trades?user=", Ok(Endpoint::Trades)),
        ("GET /data/trades?user=0x1", Ok(Endpoint::WalletTrades)),
        ("GET /data/trades/?market=0x1&takerOnly=true", Ok(Endpoint::WalletTrades)),
        ("GET /clob/data/trades?user=0x1", Ok(Endpoint::Trades)),
        ("GET /gamma/events/slug/x", Ok(Endpoint::EventBySlug)),
        ("POST /gamma/order", Err("404".to_owned())),
        ("DELETE /data/order", Err("404".to_owned())),
        ("GET /clob/events", Err("404".to_owned())),
        ("POST /clobber/order", Err("404".to_owned())),
        ("POST /clob/clob/order", Err("404".to_owned())),
    ] {
        assert_eq!(ask(line, HostPrefixes::On).map(|(endpoint, _)| endpoint), expected, "{line}");
    }
    assert_eq!(ask("GET /data/trades?user=0x1", HostPrefixes::Off).expect("known").0, Endpoint::Trades);
    let found = route(Method::Post, None, "/clob/order", Query::default(), HostPrefixes::On).expect("known");
    assert_eq!((found.full_path, found.path), ("/clob/order", "/order"));
}

#[test]
fn classes_place_connections() {
    assert_eq!(Endpoint::PlaceOrder.class(), Class::Trading);
    assert_eq!(Endpoint::Split.class(), Class::Trading);
    assert_eq!(Endpoint::Orders.class(), Class::Account);
    assert_eq!(Endpoint::ApiKeyCreate.class(), Class::L1);
    assert_eq!(Endpoint::Book.class(), Class::PublicRead);
    assert_eq!(Endpoint::CatalogMarket.class(), Class::Catalog);
    assert_eq!(Endpoint::Holders.class(), Class::Wallet);
    assert_eq!(Endpoint::UserStream.class(), Class::Stream);
}
