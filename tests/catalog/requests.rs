//! Wrong requests: every parameter at min-1, min, max and max+1, in one table.

use crate::common::column;
use crate::site::Site;
use serde_json::{Value, json};

const LISTS: &[&str] = &["/events", "/markets", "/tags", "/series", "/events/creators"];

const EVENT_ORDERS: &str = "id, slug, title, ticker, startDate, endDate, creationDate, createdAt, \
     updatedAt, closedTime, volume, volume24hr, liquidity, competitive; several joined by commas";

#[track_caller]
fn refused(site: &mut Site, path: &str, field: &str, got: &str, allowed: &str) {
    let answer = site.get(path);
    assert_eq!(answer.status, 400, "{path}: {}", answer.text());
    let body = answer.json();
    assert_eq!(body["type"], "bad request", "{path}");
    assert_eq!(body["error"], format!("{field} is invalid"), "{path}");
    assert_eq!(body["code"], "invalid_parameter", "{path}");
    assert_eq!([&body["field"], &body["got"], &body["allowed"]], [field, got, allowed], "{path}");
}

#[track_caller]
fn taken(site: &mut Site, path: &str) -> Value {
    let answer = site.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

#[test]
fn pages_have_bounds_on_every_list() {
    let mut site = Site::dev();
    for list in LISTS {
        for (limit, rows) in [("1", 1), ("100", 100), ("101", 100), ("18446744073709551616", 100)] {
            let page = taken(&mut site, &format!("{list}?limit={limit}"));
            assert!(page.as_array().unwrap().len() <= rows, "{list}");
        }
        for got in ["0", "-1", "1.0", "+1", "ten"] {
            let path = format!("{list}?limit={got}").replace('+', "%2B");
            refused(&mut site, &path, "limit", got, "1 or more; beyond 100 it is 100");
        }
        for offset in ["0", "1", "10001", "18446744073709551615"] {
            taken(&mut site, &format!("{list}?offset={offset}&limit=1"));
        }
        for got in ["-1", "1.5", "x", "18446744073709551616"] {
            let rule = "a whole number from 0 to 18446744073709551615";
            refused(&mut site, &format!("{list}?offset={got}&limit=1"), "offset", got, rule);
        }
        for got in ["yes", "1", "truth"] {
            refused(&mut site, &format!("{list}?limit=1&ascending={got}"), "ascending", got, "true or false");
        }
        // Absent, empty and unknown values all match nothing.
        let page = taken(&mut site, &format!("{list}?limit=2"));
        for more in ["offset=", "creator=", "order=", "color=red", "ascending=false", "LIMIT=0"] {
            assert_eq!(taken(&mut site, &format!("{list}?limit=2&{more}")), page, "{list} {more}");
        }
        refused(&mut site, &format!("{list}?limit=1&creator=%ff"), "creator", "%ff", "percent-encoded UTF-8");
    }
    let default = taken(&mut site, "/events?offset=0");
    assert_eq!(default, taken(&mut site, "/events"));
    site.exchange.stop();
}

#[test]
fn filters_name_what_they_cannot_take() {
    let mut site = Site::dev();
    let flag = "true or false";
    let hex = "0x and 64 hex digits";
    for list in ["/events", "/markets"] {
        for name in ["active", "closed", "archived", "featured", "cyom", "related_tags"] {
            for good in ["true", "false", "True"] {
                taken(&mut site, &format!("{list}?limit=1&{name}={good}"));
            }
            refused(&mut site, &format!("{list}?limit=1&{name}=maybe"), name, "maybe", flag);
        }
        for name in ["tag_id", "exclude_tag_id"] {
            let tag = "a whole number, or the id of a tag";
            refused(&mut site, &format!("{list}?limit=1&{name}=weather"), name, "weather", tag);
        }
        refused(&mut site, &format!("{list}?limit=1&tag_match=some"), "tag_match", "some", "any or all");
        let amount = "a number from 0 up";
        for name in ["volume_min", "volume_max", "liquidity_min", "liquidity_num_max"] {
            // As the venue's own client writes floats.
            for good in ["0.000001", "1e-05", "1e%2B16", "0.30000000000000004", "100000000000000"] {
                taken(&mut site, &format!("{list}?limit=1&{name}={good}"));
            }
            for bad in ["-1", "1e", "nan"] {
                refused(&mut site, &format!("{list}?limit=1&{name}={bad}"), name, bad, amount);
            }
        }
        let date = "a date or an RFC 3339 instant, from 1970 on";
        for name in ["start_date_min", "start_date_max", "end_date_min", "end_date_max"] {
            for good in ["1970-01-01", "2026-11-21", "2026-11-21T00:00:00Z", "2026-11-21T00:00:00.5%2B02:00"]
            {
                taken(&mut site, &format!("{list}?limit=1&{name}={good}"));
            }
            for bad in ["soon", "1969-12-31", "1969-12-31T23:59:59Z"] {
                refused(&mut site, &format!("{list}?limit=1&{name}={bad}"), name, bad, date);
            }
        }
        let many = |count: usize| "&slug=x".repeat(count);
        assert_eq!(taken(&mut site, &format!("{list}?limit=1{}", many(100))), json!([]));
        let path = format!("{list}?limit=1{}", many(101));
        refused(&mut site, &path, "slug", "101 values", "at most 100 values");
    }
    refused(&mut site, "/markets?mirror=x", "mirror", "x", flag);
    for path in ["/markets", "/markets/900000001", "/markets/slug/will-it-rain-in-lisbon-on-1-january-2027"] {
        refused(&mut site, &format!("{path}?include_tag=1"), "include_tag", "1", flag);
    }
    for path in ["/events?include_chat", "/events?include_template", "/series?include_chat"] {
        let name = path.split_once('?').unwrap().1;
        refused(&mut site, &format!("{path}=x"), name, "x", flag);
        taken(&mut site, &format!("{path}=true"));
    }
    for list in ["/events", "/series"] {
        refused(&mut site, &format!("{list}?recurrence=%ff"), "recurrence", "%ff", "percent-encoded UTF-8");
    }
    refused(&mut site, "/markets?id=12a", "id", "12a", "a whole number");
    refused(&mut site, "/markets?event_id=x", "event_id", "x", "a whole number, or the id of an event");
    for name in ["conditionId", "condition_id", "condition_ids"] {
        refused(&mut site, &format!("/markets?{name}=0x12"), name, "0x12", hex);
    }
    refused(&mut site, "/markets?question_ids=0x12", "question_ids", "0x12", hex);
    refused(&mut site, "/markets?clob_token_ids=0x12", "clob_token_ids", "0x12", "a token id in decimal");
    refused(&mut site, "/events?order=price", "order", "price", EVENT_ORDERS);
    refused(&mut site, "/events?order=start_date", "order", "start_date", EVENT_ORDERS);
    taken(&mut site, "/events?order=volume,endDate,id");
    refused(&mut site, "/events?order=id,id,id,id", "order", "4 columns", "at most 3 columns");
    site.exchange.stop();
}

/// Every row of a list by cursors, in pages of `limit`; `path` ends in `?` or `&`.
#[track_caller]
fn walk(site: &mut Site, path: &str, name: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = taken(site, &format!("{path}limit={limit}{after}"));
        let rows = page[name].as_array().unwrap();
        assert!(rows.len() <= limit, "{path}");
        all.extend(rows.iter().cloned());
        match page.get("next_cursor") {
            Some(cursor) => after = format!("&after_cursor={}", cursor.as_str().unwrap()),
            None => return all,
        }
    }
}

#[test]
fn pages_by_cursor_join_to_the_list_that_pages_by_offset_make() {
    let mut site = Site::dev();
    let open = "active=true&closed=false&archived=false&";
    for (list, name, unsaid) in [("/events", "events", ""), ("/markets", "markets", open)] {
        for order in ["", "order=volume&", "order=endDate,volume&ascending=false&", "ascending=false&"] {
            // By cursor a list is ascending unless it says otherwise.
            let direction = if order.contains("ascending") { "" } else { "ascending=true&" };
            let whole = site.walk(&format!("{list}?{unsaid}{direction}{order}"), 100);
            assert!(2 < whole.len(), "{list}");
            for limit in [1, 2, whole.len(), 100] {
                let path = format!("{list}/keyset?{order}");
                assert_eq!(walk(&mut site, &path, name, limit), whole, "{path} by {limit}");
            }
        }
        let path = format!("{list}/keyset");
        let rule = "none: after_cursor, with the next_cursor of the page before";
        refused(&mut site, &format!("{path}?offset=0"), "offset", "0", rule);
        let rule = "a next_cursor of the same route, order and direction";
        for got in ["!", "LTE=", "MA==", "0x", "0xzz", "0x393939393939"] {
            refused(&mut site, &format!("{path}?after_cursor={got}"), "after_cursor", got, rule);
        }
        let other = if name == "events" { "/markets" } else { "/events" };
        let page = taken(&mut site, &format!("{path}?limit=1&order=volume"));
        let cursor = page["next_cursor"].as_str().unwrap();
        for elsewhere in [
            format!("{path}?"),
            format!("{path}?order=slug&"),
            format!("{path}?order=volume&ascending=false&"),
            format!("{other}/keyset?order=volume&"),
        ] {
            let asked = format!("{elsewhere}after_cursor={cursor}");
            refused(&mut site, &asked, "after_cursor", cursor, rule);
        }
        refused(&mut site, &format!("{path}?limit=0"), "limit", "0", "1 or more; beyond 100 it is 100");
        assert_eq!(taken(&mut site, &format!("{path}?slug=no-such")), json!({ name: [] }));
    }
    assert_eq!(taken(&mut site, "/markets/keyset?closed=true"), json!({ "markets": [] }));
    site.exchange.stop();
}

#[test]
fn a_market_that_comes_between_two_pages_by_cursor_is_the_last_one() {
    let mut site = Site::dev();
    let known = walk(&mut site, "/markets/keyset?", "markets", 100);
    let first = taken(&mut site, "/markets/keyset?limit=2");
    let made = site.exchange.market("Will it snow?");
    let after = format!("&after_cursor={}", first["next_cursor"].as_str().unwrap());
    let rest = taken(&mut site, &format!("/markets/keyset?limit=100{after}"));
    let mut rows = first["markets"].as_array().unwrap().clone();
    rows.extend(rest["markets"].as_array().unwrap().iter().cloned());
    let last = rows.pop().unwrap();
    assert_eq!(
        (rows, &last["conditionId"], &last["marketMakerAddress"]),
        (known, &made.condition.into(), &"".into())
    );
    assert_eq!(rest.get("next_cursor"), None);
    site.exchange.stop();
}

#[test]
fn what_is_not_there_is_not_found_by_id_or_slug() {
    let mut site = Site::dev();
    let nobody = format!("0x{}", "ab".repeat(32));
    for (path, error) in [
        ("/events/99", "id not found"),
        ("/events/99/tags", "id not found"),
        ("/events/slug/none", "slug not found"),
        ("/events/creators/99", "id not found"),
        ("/events/9001?creator=nobody", "id not found"),
        ("/events/slug/rain-in-lisbon-on-new-years-day?creator=nobody", "slug not found"),
        ("/markets/99", "id not found"),
        ("/markets/99999999999999999999", "id not found"),
        ("/markets/99/tags", "id not found"),
        ("/markets/99/description", "id not found"),
        (&format!("/markets/{nobody}/tags"), "id not found"),
        (&format!("/markets/{nobody}?creator=nobody"), "id not found"),
        ("/markets/900000001?creator=nobody", "id not found"),
        ("/markets/slug/none", "slug not found"),
        ("/tags/99", "id not found"),
        ("/tags/slug/none", "slug not found"),
        ("/tags/110?creator=nobody", "id not found"),
        ("/series/99", "id not found"),
    ] {
        let answer = site.get(path);
        assert_eq!(answer.status, 404, "{path}");
        let body = answer.json();
        assert_eq!(
            (&body["type"], &body["code"]),
            (&"not found error".into(), &"not_found".into()),
            "{path}"
        );
        assert_eq!(body["error"], error, "{path}");
        let (field, got) = (body["field"].as_str().unwrap(), body["got"].as_str().unwrap());
        assert_eq!(error, format!("{field} not found"), "{path}");
        assert!(path.split(['/', '?']).any(|part| part == got), "{path}: {got}");
        assert!(body["allowed"].as_str().unwrap().ends_with("of the creator if one is named"), "{path}");
    }
    refused(&mut site, "/events/none", "id", "none", "a whole number");
    refused(&mut site, "/events/none/tags", "id", "none", "a whole number");
    refused(&mut site, "/markets/none", "id", "none", "a whole number, or 0x and 64 hex digits");
    refused(&mut site, "/markets/0x12/tags", "id", "0x12", "a whole number, or 0x and 64 hex digits");
    refused(&mut site, "/tags/slug/%ff", "slug", "%ff", "percent-encoded UTF-8");
    site.exchange.stop();
}

#[test]
fn the_two_forms_of_markets_are_told_apart() {
    let mut site = Site::dev();
    let by_id = taken(&mut site, "/markets/900000001");
    let condition = by_id["conditionId"].as_str().unwrap().to_owned();
    assert_eq!(taken(&mut site, &format!("/markets/{condition}"))["condition_id"], condition.as_str());
    assert!(taken(&mut site, "/markets")["data"].is_array());
    assert!(taken(&mut site, "/markets?next_cursor=MA==")["data"].is_array());
    let tokens: Vec<String> = serde_json::from_str(by_id["clobTokenIds"].as_str().unwrap()).unwrap();
    let event = &by_id["events"][0];
    for query in [
        "id=900000001".to_owned(),
        format!("conditionId={condition}"),
        format!("condition_ids={condition}&condition_ids={condition}"),
        format!("question_ids={}", by_id["questionID"].as_str().unwrap()),
        format!("clob_token_ids={}", tokens[1]),
        format!("clob_token_ids={},{}", tokens[0], tokens[1]),
        format!("slug={}", by_id["slug"].as_str().unwrap()),
        format!("slug={}&id=900000001", by_id["slug"].as_str().unwrap()),
        format!("event_id={}", event["id"].as_str().unwrap()),
        format!("eventSlug={}", event["slug"].as_str().unwrap()),
        format!("event_slug={}&tag=weather", event["slug"].as_str().unwrap()),
    ] {
        let found = taken(&mut site, &format!("/markets?{query}"));
        assert_eq!(found, Value::Array(vec![by_id.clone()]), "{query}");
    }
    assert_eq!(taken(&mut site, "/markets?id=900000001&id=1&slug=none"), json!([]));
    assert_eq!(taken(&mut site, "/markets?id=900000001&exclude_tag_id=110"), json!([]));
    assert_eq!(taken(&mut site, "/markets?mirror=true"), json!([]));
    site.exchange.stop();
}

#[test]
fn a_tag_that_is_a_plain_name_filters_by_the_id_that_it_is_listed_with() {
    let mut site = Site::dev();
    let condition = format!("0x{}", "77".repeat(32));
    site.import(&json!([{ "question": "Plain?", "conditionId": condition, "tags": ["Plain Name"] }]));
    let tag = taken(&mut site, "/tags/slug/plain-name");
    let id = tag["id"].as_str().unwrap();
    assert!(id.parse::<u64>().is_err(), "{id} is a text");
    let found = taken(&mut site, &format!("/markets?tag_id={id}"));
    assert_eq!(found[0]["conditionId"], *condition, "{found}");
    let unknown = 999_999_999;
    for (how, found) in [("any", true), ("all", false)] {
        let query = format!("/markets?tag_id={id}&tag_id={unknown}&tag_match={how}");
        assert_eq!(taken(&mut site, &query) != json!([]), found, "{how}");
    }
    let others = taken(&mut site, &format!("/markets?limit=100&exclude_tag_id={id}"));
    assert!(others.as_array().unwrap().iter().all(|market| market["conditionId"] != *condition));
    site.exchange.stop();
}

#[test]
fn an_event_whose_id_is_a_text_has_its_markets_by_that_id() {
    let mut site = Site::dev();
    let market = |n: u32| {
        json!({"id": n.to_string(), "question": format!("Q{n}?"), "slug": format!("q{n}"),
            "conditionId": format!("0x{n:064x}"), "clobTokenIds": format!("[\"{n}1\", \"{n}2\"]")})
    };
    let event = |id: &str, n: u32| json!({"id": id, "slug": id, "title": "E", "markets": [market(n)]});
    assert!(site.import(&json!([event("my-event", 830), event("31", 831)])).0);
    assert_eq!(taken(&mut site, "/events/my-event")["markets"][0]["id"], "830");
    for (ids, markets) in [("my-event", "830"), ("31,my-event", "830 831"), ("31&event_id=999", "831")] {
        let found = taken(&mut site, &format!("/markets?ascending=true&event_id={ids}"));
        assert_eq!(column(found.as_array().unwrap(), "id").join(" "), markets, "{ids}");
    }
    site.exchange.stop();
}
