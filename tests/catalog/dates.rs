//! Lists are ordered by the dates that they show, even where the row's text names none.

use crate::site::Site;
use outcry::catalog::Moment;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What rows say about dates: all of them, some, another form, none.
fn said() -> Vec<Value> {
    vec![
        json!({"startDate": "2026-05-01T00:00:00Z", "endDate": "2027-05-01T00:00:00.5Z",
               "createdAt": "2026-04-01T00:00:00Z", "updatedAt": "2026-06-01T00:00:00.123456Z"}),
        json!({"createdAt": "2026-07-01T00:00:00Z"}),
        json!({"createdAt": "2026-02-01 00:00:16+00", "endDate": null}),
        json!({"startDate": "2028-01-01"}),
        json!({"endDate": "2025-01-01T00:00:00Z", "updatedAt": ""}),
        json!({}),
    ]
}

/// Each of these dates once on an event and once on its market.
fn rows() -> Value {
    let with = |mut row: Value, dates: &Value| {
        row.as_object_mut().unwrap().extend(dates.as_object().unwrap().clone());
        row
    };
    let rows = said().into_iter().zip(601_u32..).map(|(dates, n)| {
        let market = json!({
            "id": n.to_string(), "question": format!("Q{n}?"), "slug": format!("q{n}"),
            "conditionId": format!("0x{n:064x}"), "clobTokenIds": format!("[\"{n}1\", \"{n}2\"]")
        });
        let event = json!({"id": n.to_string(), "slug": format!("e{n}"), "title": format!("E{n}")});
        with(with(event, &dates), &json!({"markets": [with(market, &dates)]}))
    });
    rows.collect()
}

fn shown(row: &Value, name: &str) -> Moment {
    Moment::parse(row[name].as_str().unwrap()).unwrap_or_else(|| panic!("{name} of {row}"))
}

#[test]
fn lists_are_in_the_order_of_the_dates_that_they_show() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    for list in ["/events", "/markets"] {
        for name in ["startDate", "endDate", "createdAt", "updatedAt"] {
            let dates = |site: &mut Site, ascending: bool| -> Vec<Moment> {
                let rows = site.walk(&format!("{list}?order={name}&ascending={ascending}&"), 7);
                rows.iter().map(|row| shown(row, name)).collect()
            };
            assert!(dates(&mut site, true).is_sorted(), "{list} by {name}");
            assert!(dates(&mut site, false).iter().rev().is_sorted(), "{list} by {name}, the last first");
        }
    }
    site.exchange.stop();
}

#[test]
fn ranges_of_dates_hold_the_rows_that_show_such_dates() {
    let mut site = Site::dev();
    assert!(site.import(&rows()).0);
    for list in ["/events", "/markets"] {
        let all = site.walk(&format!("{list}?"), 100);
        for (range, name) in [("start_date", "startDate"), ("end_date", "endDate")] {
            for bound in &all {
                let at = bound[name].as_str().unwrap();
                for (end, holds) in [("min", Moment::ge as fn(&Moment, &Moment) -> bool), ("max", Moment::le)]
                {
                    let found = site.walk(&format!("{list}?{range}_{end}={at}&"), 100);
                    let ids = |rows: &[Value]| -> BTreeSet<String> {
                        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
                    };
                    let mut wanted = all.clone();
                    wanted.retain(|row| holds(&shown(row, name), &shown(bound, name)));
                    assert_eq!(ids(&found), ids(&wanted), "{list}?{range}_{end}={at}");
                }
            }
        }
    }
    site.exchange.stop();
}

#[test]
fn what_nobody_gave_an_end_ends_with_its_event_or_never() {
    const NEVER: &str = "9999-12-31T00:00:00Z";
    const AT: &str = "2027-03-01T00:00:00Z";
    let mut site = Site::dev();
    let market = |n: u32, end: &Value| {
        json!({"id": n.to_string(), "question": format!("Q{n}?"), "slug": format!("q{n}"), "endDate": end,
               "conditionId": format!("0x{n:064x}"), "clobTokenIds": format!("[\"{n}1\", \"{n}2\"]")})
    };
    let event = |n: u32, end: &Value, of_market: &Value| {
        json!({"id": n.to_string(), "slug": format!("e{n}"), "title": format!("E{n}"), "endDate": end,
               "createdAt": "2026-02-01T00:00:00Z", "markets": [market(n, of_market)]})
    };
    let none = Value::Null;
    let (early, late) = (json!("2027-02-01T00:00:00Z"), json!(AT));
    let rows = [event(611, &none, &none), event(612, &late, &none), event(613, &late, &early)];
    assert!(site.import(&json!(rows)).0);
    for (id, of_event, of_market) in
        [("611", NEVER, NEVER), ("612", AT, AT), ("613", AT, "2027-02-01T00:00:00Z")]
    {
        for (list, end) in [("/events", of_event), ("/markets", of_market)] {
            let row = site.walk(&format!("{list}?id={id}&"), 100).remove(0);
            assert_eq!(row["endDate"], end, "{list} {id}");
        }
    }
    for list in ["/events", "/markets"] {
        for (range, ids) in [("end_date_max=2027-12-31", "612 613"), ("end_date_min=2028-01-01", "611")] {
            let rows = site.walk(&format!("{list}?{range}&ascending=true&id=611&id=612&id=613&"), 100);
            let found: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
            assert_eq!(found.join(" "), ids, "{list} {range}");
        }
        let last = site.walk(&format!("{list}?order=endDate&id=611&id=612&id=613&"), 100).remove(0);
        assert_eq!(last["id"], "611", "{list}");
    }
    site.exchange.stop();
}
