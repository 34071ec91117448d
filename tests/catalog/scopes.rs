//! Whose part of the catalog a site sees: `creator` narrows what an answer holds at every depth.

use crate::common::column;
use crate::site::Site;
use serde_json::{Value, json};

const ONE: &str = "0x1111111111111111111111111111111111111111";
const TWO: &str = "0x2222222222222222222222222222222222222222";

/// Event 810 has a market of each wallet, 811 one of the second wallet, and 812, which is the first
/// wallet's, one that names nobody. All of them are in series 80, and each market has a tag of its own, named after it.
fn rows() -> Value {
    let market = |n: u32, wallet: Option<&str>| {
        json!({"id": n.to_string(), "question": format!("Q{n}?"), "slug": format!("q{n}"),
            "submitted_by": wallet, "tags": [format!("T{n}")], "conditionId": format!("0x{n:064x}"),
            "clobTokenIds": format!("[\"{n}1\", \"{n}2\"]")})
    };
    let event = |n: u32, creator: Option<&str>, markets: Value| {
        json!({"id": n.to_string(), "slug": format!("e{n}"), "title": format!("E{n}"), "creator": creator,
            "series": [{"id": "80", "slug": "s80", "title": "S"}], "markets": markets})
    };
    json!([
        event(810, None, json!([market(820, Some(ONE)), market(821, Some(TWO))])),
        event(811, None, json!([market(822, Some(TWO))])),
        event(812, Some(ONE), json!([market(823, None)])),
    ])
}

/// The ids of what is in `field` of an object, or of the first row of a list.
#[track_caller]
fn within(site: &mut Site, path: &str, field: &str) -> String {
    let answer = site.read(path);
    let object = if answer.is_array() { &answer[0] } else { &answer };
    column(object[field].as_array().unwrap(), "id").join(" ")
}

#[test]
fn a_creator_finds_the_tags_of_its_markets_by_themselves() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    for (creator, ids) in [(ONE, "t820 t823"), (TWO, "t821 t822")] {
        let listed = site.read(&format!("/tags?ascending=true&creator={creator}"));
        assert_eq!(column(listed.as_array().unwrap(), "id").join(" "), ids, "{creator}");
        for (market, tag) in (820..824).map(|n| (n.to_string(), format!("t{n}"))) {
            let status = if ids.contains(&tag) { 200 } else { 404 };
            for path in
                [format!("/markets/{market}/tags"), format!("/tags/{tag}"), format!("/tags/slug/{tag}")]
            {
                assert_eq!(site.get(&format!("{path}?creator={creator}")).status, status, "{path} {creator}");
            }
        }
    }
    site.exchange.stop();
}

#[test]
fn a_creator_is_shown_nothing_within_an_object_that_is_not_found_by_itself() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    for (path, field, [everybodys, of_one, of_two]) in [
        ("/events?id=810&", "markets", ["820 821", "820", "821"]),
        ("/events/slug/e810?", "markets", ["820 821", "820", "821"]),
        ("/events/810?", "markets", ["820 821", "820", "821"]),
        ("/series?limit=100&", "events", ["810 811 812", "810 812", "810 811"]),
        ("/series/80?", "events", ["810 811 812", "810 812", "810 811"]),
    ] {
        assert_eq!(within(&mut site, path, field), everybodys, "{path}");
        for (creator, ids) in
            [(ONE, of_one), (TWO, of_two), (&TWO.to_uppercase().replace("0X", "0x"), of_two)]
        {
            let path = format!("{path}creator={creator}");
            assert_eq!(within(&mut site, &path, field), ids, "{path}");
        }
    }
    assert_eq!(within(&mut site, &format!("/events/812?creator={ONE}"), "markets"), "823", "its event's");
    assert_eq!(within(&mut site, &format!("/markets/820?creator={ONE}"), "events"), "810");
    for (path, status) in [("820", 200), ("821", 404), ("822", 404), ("823", 200)] {
        assert_eq!(site.get(&format!("/markets/{path}?creator={ONE}")).status, status, "{path}");
    }
    for (path, status) in [("810", 200), ("811", 404), ("812", 200)] {
        assert_eq!(site.get(&format!("/events/{path}?creator={ONE}")).status, status, "{path}");
    }
    site.exchange.stop();
}
