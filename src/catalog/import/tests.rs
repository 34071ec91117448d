//! What stands within rows: every part of a file is taken or named, wherever it stands.

use super::*;
use crate::catalog::TEXT_BYTES_MAX;
use crate::catalog::tests::{defaults, only, read, row};

/// Reads a file: the texts of its events, its markets with their events, and what is refused.
#[track_caller]
fn check(file: &str, events: &[&str], markets: &[&str], refused: &[&str]) {
    let import = read(file);
    let found: Vec<&str> = import.events().iter().map(|event| event.text.as_str()).collect();
    assert_eq!(found, events);
    let name = |market: &ImportedMarket| match &market.event {
        Some(event) => format!("{} of {event}", market.row()),
        None => market.row(),
    };
    assert_eq!(import.markets().iter().map(name).collect::<Vec<_>>(), markets);
    assert_eq!(import.refused().iter().map(ToString::to_string).collect::<Vec<_>>(), refused);
}

#[test]
fn the_events_of_a_series_come_with_their_markets_and_what_is_none_is_named() {
    let series =
        |events: &str| format!(r#"[{{"id":"7","title":"S","seriesType":"single","events":{events}}}]"#);
    let event = r#"{"id":"5","title":"E","series":[{"id":"7"}]}"#;
    check(
        &series(&format!(r#"[{{"id":"5","title":"E","markets":[{}, 8]}}, 17]"#, row(1, ""))),
        &[event],
        &["market 1 of 5"],
        &[
            "event 5, market 2: row: got 8; allowed: a market object of at most 1024 fields",
            "row 1, event 2: row: got 17; allowed: an event object of at most 1024 fields",
        ],
    );
    check(
        &series(r#""oops""#),
        &[],
        &[],
        &[r#"row 1: events: got "oops"; allowed: an array of event objects"#],
    );
    check(&series("null"), &[], &[], &[]);
}

#[test]
fn an_event_in_a_series_that_names_no_series_is_of_that_one() {
    // By what events are looked for; a series has thousands of events, and each would have a copy of the rest.
    let of_this = r#"[{"id":"7","slug":"s","recurrence":"daily"}]"#;
    for (said, series) in [
        ("", of_this),
        (r#""series":null,"#, of_this),
        (r#""series":[ ],"#, of_this),
        (r#""series":[{"id":"8"}],"#, r#"[{"id":"8"}]"#),
        (r#""series":"x","#, r#""x""#),
    ] {
        let import = read(&format!(
            r#"[{{"id":"7","seriesType":"single","slug":"s","recurrence":"daily","events":[{{{said}"id":"5"}}]}}]"#
        ));
        let event = Fields::parse(&import.events()[0].text).expect("an object");
        assert_eq!(event.raw("series"), Some(series), "{said}");
    }
}

#[test]
fn an_event_that_is_too_long_with_its_series_is_taken_without() {
    let event = format!(r#""x":"{}","#, "x".repeat(TEXT_BYTES_MAX - 20));
    let import = read(&format!(r#"[{{"id":"7","seriesType":"single","events":[{{{event}"id":"5"}}]}}]"#));
    assert_eq!((import.events().len(), import.items().len(), import.refused()), (1, 1, &[][..]));
    assert!(!import.events()[0].text.contains("series"));
}

#[test]
fn what_a_market_calls_its_events_is_taken_or_named() {
    for (events, said) in [
        (r#"{"id":"5"}"#, r#"row 1: events: got {"id":"5"}; allowed: an array of event objects"#),
        (r#""5""#, r#"row 1: events: got "5"; allowed: an array of event objects"#),
        ("[5]", "row 1, event 1: row: got 5; allowed: an event object of at most 1024 fields"),
        (r#"[{"id":true}]"#, "row 1, event 1: id: got true; allowed: a text of 1 to 64 bytes, or a number"),
        (r#"[{"id":{}}]"#, "row 1, event 1: id: got {}; allowed: a text of 1 to 64 bytes, or a number"),
    ] {
        check(&format!("[{}]", row(1, &format!(r#""events":{events},"#))), &[], &["market 1"], &[said]);
    }
}

#[test]
fn a_page_by_cursor_is_its_rows() {
    let event = r#"{"id":"5","title":"E"}"#;
    let of_event = format!(r#"{{"id":"5","title":"E","markets":[{}]}}"#, row(1, ""));
    let market = row(2, &format!(r#""events":[{event}],"#));
    for page in
        [format!(r#"{{"markets":[{market}],"next_cursor":"x"}}"#), format!(r#"[{{"markets":[{market}]}}]"#)]
    {
        check(&page, &[event], &["market 2 of 5"], &[]);
    }
    check(
        &format!(r#"{{"events":[{of_event},9],"next_cursor":"x"}}"#),
        &[event],
        &["market 1 of 5"],
        &["row 1, event 2: row: got 9; allowed: an event object of at most 1024 fields"],
    );
    check(
        r#"{"markets":"oops"}"#,
        &[],
        &[],
        &[r#"row 1: markets: got "oops"; allowed: an array of market objects"#],
    );
}

#[test]
fn a_survey_knows_where_markets_within_series_and_pages_stand() {
    let series = format!(
        r#"[{{"id":"7","seriesType":"single","events":[{{"id":"5","markets":[{}]}}]}}, {{"markets":[{}]}}]"#,
        row(1, r#""x":"\ud83d","#),
        row(2, "")
    );
    let mut import = Import::survey();
    let rows = || Rows::new(series.as_bytes()).expect("a file");
    import.add_rows(0, &mut rows(), &defaults(), |_| ()).expect("rows");
    let whole = read(&series);
    let mut again = rows();
    for (number, market) in whole.markets().iter().enumerate() {
        let place = import.place(number).expect("a survey knows all places");
        let object = again.cut(place.offset, place.bytes).expect("it is still there");
        let sent = market_row(object, market.event.as_deref()).expect("an object");
        assert_eq!(only(&sent), *market);
    }
    assert_eq!(whole.markets().len(), 2);
}

#[test]
fn a_row_is_sent_without_the_blanks_between_its_tokens() {
    for (object, event, sent) in [
        ("{ }", None, r#"{"events":[]}"#),
        ("{ \"a\" : [ 1 ] }", Some("5\""), r#"{"a":[1],"events":[{"id":"5\""}]}"#),
        (r#"{"events":[ {"id":"5","x":1}],"a":"b  c"}"#, Some("5"), r#"{"events":[{"id":"5"}],"a":"b  c"}"#),
    ] {
        assert_eq!(market_row(object, event).as_deref(), Some(sent));
    }
    assert_eq!(market_row("{]", None), None);
}

#[test]
fn an_id_leaves_room_for_those_that_the_exchange_gives() {
    for (id, taken) in [
        (4_503_599_627_370_495, Some(4_503_599_627_370_495)),
        (4_503_599_627_370_496, None),
        (9_007_199_254_740_991_u64, None),
    ] {
        let market = only(&row(1, "").replace(r#""id":"1""#, &format!(r#""id":"{id}""#)));
        assert_eq!(market.market_id, taken);
    }
}

#[test]
fn of_copies_of_an_event_the_newest_leads_in_any_order() {
    let copy = |day: u8, more: &str| {
        format!(r#"{{"id":"5","title":"T{day}",{more}"updatedAt":"2026-03-0{day}T00:00:00Z","markets":[]}}"#)
    };
    let copies = [copy(3, ""), copy(1, r#""ticker":"OLDEST","#), copy(2, r#""ticker":"MIDDLE","#)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let rows = order.map(|copy: usize| copies[copy].clone()).join(",");
        let import = read(&format!("[{rows}]"));
        let event = Fields::parse(&import.events()[0].text).expect("an object");
        assert_eq!(event.text("title").as_deref(), Some("T3"), "{order:?}");
        assert!(event.text("ticker").is_some(), "what the newest leaves out stays");
    }
}

#[test]
fn what_is_neither_a_market_nor_an_event_is_refused_as_such_however_long_it_is() {
    let page = |bytes| format!(r#"{{"data":["{}"],"next_cursor":"LTE="}}"#, "x".repeat(bytes));
    let kinds = "a market (conditionId), an event (title or markets), a tag, a series or a creator";
    for (file, got, rule) in [
        (page(TEXT_BYTES_MAX), format!(r#"{{"data":["{}..."#, "x".repeat(70)), kinds),
        (r#"[{"id":"7"}]"#.into(), r#"{"id":"7"}"#.into(), kinds),
        ("[7]".into(), "7".into(), "an event or market object of at most 1024 fields"),
    ] {
        check(&file, &[], &[], &[&format!("row 1: row: got {got}; allowed: {rule}")]);
    }
}

#[test]
fn only_so_many_refused_rows_are_named_and_all_are_counted() {
    for (rows, named, more) in [(NAMED_MAX, NAMED_MAX, 0), (NAMED_MAX + 2, NAMED_MAX, 2)] {
        let import = read(&format!("[{}7]", "7,".repeat(rows - 1)));
        assert_eq!((import.refused().len(), import.refused_more()), (named, more));
        assert_eq!(import.refused_rows().count(), named);
    }
}
