//! The catalog's form of a market and the order book's show the same tags.

use crate::common::column;
use crate::site::Site;
use serde_json::{Value, json};

#[test]
fn both_forms_of_a_market_have_the_same_tags() {
    let mut site = Site::dev();
    assert!(site.import(&json!([{"id": "5001", "label": "Zeta", "slug": "zeta"}])).0);
    for (n, (of_event, own, labels)) in (880..).zip([
        (json!([{"id": "5001"}]), json!([]), &["Zeta"][..]),
        (json!([{"id": "5001"}]), json!(["Plain", {"id": 5001}]), &["Zeta", "Plain"]),
        (json!([{"label": "No id"}, {"id": "5002", "label": "No slug"}]), json!([]), &["No id", "No slug"]),
        (json!([]), json!([{"id": "5001", "label": "Older"}]), &["Zeta"]),
        (json!([7, {}, "???"]), json!([]), &[]),
    ]) {
        let market = json!({"id": n.to_string(), "question": "Q?", "slug": format!("q{n}"), "tags": own,
            "conditionId": format!("0x{n:064x}"), "clobTokenIds": format!("[\"{n}1\", \"{n}2\"]")});
        let event = json!({"id": (n + 50).to_string(), "slug": format!("e{n}"), "title": "E", "tags": of_event,
            "markets": [market]});
        assert!(site.import(&json!([event])).0);
        let catalog: Value = site.read(&format!("/markets/{n}/tags"));
        assert_eq!(column(catalog.as_array().unwrap(), "label"), labels, "{event}");
        assert_eq!(site.read(&format!("/markets/0x{n:064x}"))["tags"], json!(labels), "{event}");
    }
    site.exchange.stop();
}
