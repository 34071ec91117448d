//! Lists of the catalog: rows that are longer than an answer may be, and rows that lack what is asked for.

use super::*;
use crate::domain::Payout;
use crate::journal::layout::{MarketMode, MarketText, Resolved};
use serde_json::json;

impl Exchange {
    /// Adds the next event, with this id and what else its text says.
    fn open_event(&mut self, event: u32, id: u32, more: &str) {
        let text = format!(r#"{{"id":"{id}","slug":"e{id}","title":"E{id}"{more}}}"#);
        self.says(EventText { time: TimeMs(1), event, text });
    }

    /// Adds these markets to an event, each with a text of some 256 KiB.
    fn open_long_markets(&mut self, event: u32, numbers: std::ops::Range<u32>) {
        let text = format!(r#"{{"question":"Long?","description":"{}"}}"#, "x".repeat(260_000));
        for market in numbers.map(MarketNo) {
            self.open_market(market, "{}");
            self.says(MarketText { time: self.time(), market, event: Some(event), text: text.clone() });
        }
    }

    fn refuses(&mut self, target: &str) -> Value {
        let (status, text) = self.sends(None, &format!("GET {target}"), "");
        assert_eq!(status, 400, "{target}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }
}

#[test]
fn an_event_that_is_too_long_for_a_list_stands_there_without_its_markets() {
    let mut exchange = Exchange::opened();
    let text = r#"{"id":"76","slug":"before","title":"Before"}"#;
    exchange.says(EventText { time: TimeMs(1), event: 1, text: text.into() });
    let whole = |exchange: &mut Exchange| exchange.reads("/events/77")["markets"].as_array().map(Vec::len);
    exchange.open_long_markets(0, 2..30);
    assert_eq!(whole(&mut exchange), Some(29));
    assert_eq!(exchange.reads("/events?limit=1")[0]["markets"].as_array().map(Vec::len), Some(29));
    exchange.open_long_markets(0, 30..40);
    assert_eq!(whole(&mut exchange), Some(39), "one answer has room for it");
    let listed = |exchange: &mut Exchange| {
        let first = exchange.reads("/events?limit=1&ascending=false");
        let second = exchange.reads("/events?limit=1&ascending=false&offset=1");
        assert_eq!(second[0]["id"], "76");
        let page = exchange.reads("/events/keyset?limit=1&ascending=false");
        assert_eq!(page["events"], first);
        let cursor = page["next_cursor"].as_str().expect("more").to_owned();
        let page = exchange.reads(&format!("/events/keyset?limit=1&ascending=false&after_cursor={cursor}"));
        assert_eq!(page, json!({ "events": second }));
        first[0].clone()
    };
    let short = listed(&mut exchange);
    assert_eq!((&short["id"], &short["title"]), (&json!("77"), &json!("Weather")));
    for absent in ["markets", "tags", "series"] {
        assert!(short.get(absent).is_none(), "{absent}");
    }
    exchange.open_long_markets(0, 40..70);
    assert_eq!(listed(&mut exchange)["id"], "77");
    for (target, field, got) in [("/events/77", "id", "77"), ("/events/slug/weather", "slug", "weather")] {
        let refused = exchange.refuses(target);
        assert_eq!(refused["code"], "answer_too_long");
        assert_eq!((&refused["field"], &refused["got"]), (&json!(field), &json!(got)));
        assert_eq!(
            refused["allowed"],
            "at most 16 MiB of answer; /markets?event_id= has an event's markets in pages"
        );
    }
    let refused = exchange.refuses("/markets?event_id=77&limit=100");
    assert_eq!((&refused["field"], &refused["got"]), (&json!("limit"), &json!("100")));
    assert_eq!(exchange.reads("/markets?event_id=77&limit=9").as_array().map(Vec::len), Some(9));
}

#[test]
fn events_for_which_a_page_has_no_room_stand_there_without_their_markets() {
    let mut exchange = Exchange::opened();
    // Each of the first four has 5.2 MB of markets, and an answer has 16.8 MB.
    for (event, id) in (1..).zip(78..83) {
        exchange.open_event(event, id, "");
        let first = 20 * event - 18;
        exchange.open_long_markets(event, first..if id < 82 { first + 20 } else { first + 1 });
    }
    let page = exchange.reads("/events?limit=100&ascending=true");
    let shown: Vec<_> = page.as_array().expect("rows").iter().collect();
    let shown: Vec<_> =
        shown.iter().map(|event| (event["id"].as_str(), event["markets"].as_array().map(Vec::len))).collect();
    let expected = [
        ("77", Some(1)),
        ("78", Some(20)),
        ("79", Some(20)),
        ("80", Some(20)),
        ("81", None),
        ("82", Some(1)),
    ];
    assert_eq!(shown, expected.map(|(id, markets)| (Some(id), markets)));
    assert_eq!(exchange.reads("/events?limit=2&ascending=true&offset=4")[0]["markets"][19]["id"], "1081");
}

#[test]
fn a_series_has_as_many_of_its_newest_events_as_an_answer_has_room_for() {
    let mut exchange = Exchange::opened();
    let long = format!(r#","description":"{}""#, "x".repeat(260_000));
    for (event, id) in (1..).zip(101..171) {
        let series = if id == 170 { 6 } else { 5 };
        let more = format!(r#","series":[{{"id":"{series}","slug":"s{series}","title":"S"}}]{long}"#);
        exchange.open_event(event, id, &more);
    }
    let ids = |series: &Value| {
        let ids: Vec<u32> = column(series["events"].as_array().expect("events"), "id")
            .iter()
            .map(|id| id.parse().expect("a number"))
            .collect();
        (ids[0], *ids.last().expect("some"), ids.len())
    };
    assert_eq!(ids(&exchange.reads("/series/5")), (106, 169, 64), "of 69, in 16 MiB");
    let listed = exchange.reads("/series?limit=100&ascending=true");
    let of = |id: &str| listed.as_array().expect("rows").iter().find(|row| row["id"] == id).expect(id);
    assert_eq!(ids(of("6")), (170, 170, 1));
    assert_eq!(ids(of("5")), (107, 169, 63), "what the other's one leaves it");
    // Even the summaries of so many events are too long.
    let refused = exchange.refuses("/events?limit=70");
    assert_eq!((&refused["code"], &refused["field"]), (&json!("answer_too_long"), &json!("limit")));
    assert_eq!(exchange.reads("/events?limit=60").as_array().map(Vec::len), Some(60));
}

/// Each of three series has more events than an answer has room for.
#[test]
fn series_of_one_page_have_equal_parts_of_its_room() {
    let mut exchange = Exchange::opened();
    let long = format!(r#","description":"{}""#, "x".repeat(500_000));
    for (event, id) in (1..).zip(101..137) {
        let series = 5 + id % 3;
        let more = format!(r#","series":[{{"id":"{series}","slug":"s{series}","title":"S"}}]{long}"#);
        exchange.open_event(event, id, &more);
    }
    let listed = exchange.reads("/series?limit=100&ascending=true");
    let counts = listed.as_array().expect("rows").iter().map(|row| row["events"].as_array().map(Vec::len));
    assert_eq!(counts.collect::<Vec<_>>(), [Some(11); 3], "of 12, in 16 MiB");
}

#[test]
fn a_page_by_cursor_leaves_out_what_is_put_away_unless_it_is_asked_for() {
    let mut exchange = Exchange::opened();
    let text = r#"{"question":"Will it snow?","slug":"snow","archived":true}"#.to_owned();
    exchange.says(MarketText { time: exchange.time(), market: SNOW, event: None, text });
    for (more, slugs) in [("", &["rain"][..]), ("?archived=false", &["rain"]), ("?archived=true", &["snow"])]
    {
        let page = exchange.reads(&format!("/markets/keyset{more}"));
        assert_eq!(column(page["markets"].as_array().expect("rows"), "slug"), slugs, "{more}");
    }
}

#[test]
fn a_series_is_found_by_a_slug_that_another_creators_series_has_too() {
    let mut exchange = Exchange::opened();
    for (event, id, creator) in [(1, 301, "alice"), (2, 302, "bob")] {
        let series = format!(r#"[{{"id":"{id}","slug":"daily","title":"Daily"}}]"#);
        exchange.open_event(event, id, &format!(r#","creator":"{creator}","series":{series}"#));
    }
    for (path, id) in [
        ("/series/daily", "301"),
        ("/series/daily?creator=alice", "301"),
        ("/series/daily?creator=bob", "302"),
        ("/series/302?creator=bob", "302"),
    ] {
        assert_eq!(exchange.reads(path)["id"], id, "{path}");
    }
    for path in ["/series/daily?creator=carol", "/series/301?creator=bob"] {
        assert_eq!(exchange.sends(None, &format!("GET {path}"), "").0, 404, "{path}");
    }
}

#[test]
fn what_has_no_name_comes_last_in_both_directions() {
    let mut exchange = Exchange::opened();
    let text = r#"{"id":"78","slug":"air","title":"Air",
        "tags":[{"id":"1"},{"id":"3","label":"Wind","slug":"wind"},{"id":"2","label":"Air","slug":"air"}],
        "series":[{"id":"1"},{"id":"3","title":"Wind","slug":"wind"},{"id":"2","title":"Air","slug":"air"}]}"#;
    exchange.says(EventText { time: TimeMs(1), event: 1, text: text.into() });
    for list in ["/tags?order=label", "/tags?order=slug", "/series?order=title", "/series?order=slug"] {
        for (ascending, ids) in [(true, ["2", "3", "1"]), (false, ["3", "2", "1"])] {
            let rows = exchange.reads(&format!("{list}&ascending={ascending}"));
            let mut found = column(rows.as_array().expect("rows"), "id");
            found.retain(|id| ids.contains(id));
            assert_eq!(found, ids, "{list} {ascending}");
        }
    }
}

#[test]
fn a_question_id_that_means_none_finds_nothing() {
    let mut exchange = Exchange::opened();
    let none = format!("0x{}", "00".repeat(32));
    assert_eq!(exchange.reads(&format!("/markets?question_ids={none}")), json!([]));
    assert_eq!(exchange.reads(&format!("/v2/resolutions?question_id={none}"))["data"], json!([]));
}

#[test]
fn a_market_is_over_since_it_was_closed_and_not_since_it_was_only_put_away() {
    const OPEN: &str = r#""closed":false,"clobTokenIds":["300","301"]"#;
    const ARCHIVED: &str = r#""closed":false,"archived":true,"clobTokenIds":["300","301"]"#;
    const WITHOUT_TOKENS: &str = r#""closed":false"#;
    const CLOSED: &str = r#""closed":true"#;
    let texts = [OPEN, ARCHIVED, WITHOUT_TOKENS, CLOSED];
    let mut exchange = Exchange::opened();
    for (second, (said, over)) in (1..).zip([
        (ARCHIVED, None),
        ("mode closed", None),
        // Nobody has ended it, and a file opens nothing.
        (OPEN, None),
        (CLOSED, Some(4)),
        (OPEN, Some(4)),
        (WITHOUT_TOKENS, None),
        (OPEN, None),
        ("mode open", None),
        // A row closes its market before its text is here.
        ("mode closed", Some(9)),
        (CLOSED, Some(9)),
        ("mode open", None),
        (OPEN, None),
        // The operator ends it, whatever its text says.
        ("mode closed", Some(13)),
        (OPEN, Some(13)),
        (ARCHIVED, None),
        ("resolve", Some(16)),
        (OPEN, Some(16)),
        (ARCHIVED, Some(16)),
    ]) {
        exchange.now += 1_000;
        let (time, market) = (exchange.time(), RAIN);
        if texts.contains(&said) {
            let text = format!(r#"{{"question":"Will it rain?","slug":"rain",{said}}}"#);
            exchange.says(MarketText { time, market, event: Some(0), text });
        } else if let Some(mode) = said.strip_prefix("mode ") {
            let mode = if mode == "open" { Mode::Open } else { Mode::Closed };
            exchange.says(MarketMode { time, market, mode });
        } else {
            let payout = Payout::new(0).expect("a payout");
            exchange.says(Resolved { time, market, payout });
        }
        let time = over.map(|second| format!("2023-12-29T18:40:{second:02}.000Z"));
        let market = exchange.reads("/markets/1000");
        for shown in [&market, &market["events"][0], &exchange.reads("/events/77")] {
            assert_eq!(shown["closed"], over.is_some(), "{second} {said}");
            assert_eq!(shown["closedTime"].as_str(), time.as_deref(), "{second} {said}");
        }
    }
}

/// The operator undoes a wrong closing.
#[test]
fn what_was_opened_again_is_open_in_lists_whatever_the_texts_say() {
    const OVER: &str = r#""closed":true,"closedTime":"2025-05-05T00:00:00Z""#;
    let mut exchange = Exchange::opened();
    let event = format!(r#"{{"id":"77","slug":"weather","title":"Weather",{OVER}}}"#);
    exchange.says(EventText { time: TimeMs(1), event: 0, text: event });
    let text = format!(r#"{{"question":"Will it rain?","slug":"rain",{OVER}}}"#);
    exchange.says(MarketText { time: exchange.time(), market: RAIN, event: Some(0), text });
    for (mode, closed) in [(Mode::Closed, true), (Mode::Open, false), (Mode::Closed, true)] {
        exchange.says(MarketMode { time: exchange.time(), market: RAIN, mode });
        let listed = exchange.reads(&format!("/events?closed={closed}&slug=weather"));
        let market = exchange.reads("/markets/1000");
        for shown in [&market, &market["events"][0], &listed[0], &exchange.reads("/events/77")] {
            let time = closed.then_some("2025-05-05T00:00:00Z");
            assert_eq!((&shown["closed"], shown["closedTime"].as_str()), (&closed.into(), time), "{mode:?}");
        }
    }
}
