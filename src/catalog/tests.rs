//! Tables of rows, files that are read twice, and the real files.

use super::*;
use crate::domain::{FeeSchedule, ItemKind, Mode, Payout, Shares, Tick};

pub(super) fn defaults() -> MarketDefaults {
    MarketDefaults {
        tick: Tick::new(100).expect("a tick"),
        min_size: Shares(5_000_000),
        fee: FeeSchedule { rate: 7, builder_share_bps: 3_000, ..FeeSchedule::FREE },
    }
}

pub(super) fn read(text: &str) -> Import {
    Import::read(text.as_bytes(), &defaults()).expect("a file")
}

/// Everything in these files, which may be packed.
fn read_all(files: &[&[u8]]) -> Import {
    let mut import = Import::default();
    for file in files {
        import.add_rows(0, &mut Rows::new(*file).expect("a file"), &defaults(), |_| ()).expect("rows");
    }
    import
}

/// A market row with `more` fields in front; `n` makes its id, question, condition and tokens.
pub(super) fn row(n: u32, more: &str) -> String {
    format!(
        r#"{{{more}"id":"{n}","question":"Q{n}?","conditionId":"0x{n:064x}","clobTokenIds":"[\"{n}1\", \"{n}2\"]"}}"#
    )
}

#[track_caller]
pub(super) fn only(text: &str) -> ImportedMarket {
    let import = read(text);
    assert_eq!(import.refused(), &[]);
    import.markets().first().expect("one market").clone()
}

#[track_caller]
fn refusal(more: &str) -> String {
    let import = read(&row(1, more));
    assert!(import.markets().is_empty());
    import.refused().first().expect("refused").to_string()
}

fn step(known: Option<&str>, event: &ImportedEvent) -> TextStep {
    text_step(known, event.updated, &event.text)
}

#[test]
fn tags_series_and_creators_may_be_rows_of_their_own() {
    let import = read(
        r#"[{"id":"1","label":"One","slug":"one"},{"id":1,"label":"One","forceShow":true},
            {"id":"7","title":"S","slug":"s","seriesType":"single","events":[{"id":"5","title":"E"}]},
            {"id":"9","creatorName":"N"},{"label":"nobody"}]"#,
    );
    let items: Vec<_> = import.items().iter().map(|item| (item.kind, item.key.as_str())).collect();
    assert_eq!(items, [(ItemKind::Tag, "1"), (ItemKind::Series, "7"), (ItemKind::Creator, "9")]);
    assert!(
        import.items()[0].text.contains(r#""slug":"one""#) && import.items()[0].text.contains("forceShow")
    );
    assert!(!import.items()[1].text.contains("events"));
    assert!(import.events()[0].text.contains(r#""series":[{"id":"7""#), "its events are in the series");
    assert_eq!(import.refused().len(), 1);
    assert_eq!(import.refused()[0].field, "id");
}

#[test]
fn values_are_kept_without_the_blanks_between_their_tokens() {
    for (value, kept) in [
        ("7 ", "7"),
        (r#""a  \" b""#, r#""a  \" b""#),
        ("[ 1 ,\n2 , [ ] ]", "[1,2,[]]"),
        ("{ \"a b\" :\t\" c \\\\\" , \"d\":\r\n{ } }", r#"{"a b":" c \\","d":{}}"#),
        (r#"[ "\\\" [ ]" , "é \u0020 😀" ]"#, r#"["\\\" [ ]","é \u0020 😀"]"#),
    ] {
        let import = read(&format!("[{{ \"id\" : \"1\", \"label\":\"L\" , \"x\" : {value} }}]"));
        assert_eq!(import.items()[0].text, format!(r#"{{"id":"1","label":"L","x":{kept}}}"#));
        let again = read(&format!("[{}]", import.items()[0].text));
        assert_eq!(again.items(), import.items());
    }
}

#[test]
fn a_silent_row_gets_the_defaults() {
    let market = only(&row(7, ""));
    assert_eq!((market.market_id, market.mode, market.payout), (Some(7), Mode::Open, None));
    assert_eq!(market.labels, ["Yes", "No"]);
    assert_eq!(
        (market.tick, market.min_size, market.fee),
        (defaults().tick, defaults().min_size, defaults().fee)
    );
    assert_eq!(market.tokens.map(|tokens| tokens[1].0[31]), Some(72));
    assert_eq!((market.neg_risk, market.event), (false, None));
}

#[test]
fn a_row_says_what_it_says_in_every_form() {
    let market = only(&row(
        7,
        r#""orderPriceMinTickSize":"0.001","orderMinSize":15.5,"negRisk":true,"outcomes":["Up","Down"],
           "feeSchedule":{"rate":0.25,"exponent":2,"takerOnly":true,"rebateRate":0.2},"#,
    ));
    assert_eq!((market.tick, market.min_size), (Tick::new(10).expect("a tick"), Shares(15_500_000)));
    assert_eq!((market.neg_risk, market.labels), (true, ["Up".to_owned(), "Down".to_owned()]));
    let fee = FeeSchedule { rate: 250_000, exponent: 2, rebate_rate: 200_000, ..defaults().fee };
    assert_eq!(market.fee, fee);
}

#[test]
fn a_market_charges_by_a_schedule_that_is_in_force_or_what_the_exchange_does() {
    let schedule = |rate, taker_only| FeeSchedule { rate, taker_only, ..defaults().fee };
    for (more, fee) in [
        ("", defaults().fee),
        (r#""feesEnabled":true,"#, defaults().fee),
        (r#""feeSchedule":{"rate":0.07},"#, schedule(70_000, true)),
        (r#""feesEnabled":true,"feeSchedule":{"rate":0.07,"takerOnly":false},"#, schedule(70_000, false)),
        // The schedule is not in force there: the exchange's own fee is, as for all that have none.
        (r#""feesEnabled":false,"feeSchedule":{"rate":0.07},"#, defaults().fee),
        (r#""feesEnabled":false,"#, defaults().fee),
    ] {
        assert_eq!(only(&row(1, more)).fee, fee, "{more}");
    }
}

#[test]
fn flags_decide_what_a_market_takes() {
    for (more, mode, payout) in [
        ("", Mode::Open, None),
        (r#""active":false,"#, Mode::Open, None),
        (r#""closed":true,"#, Mode::Closed, None),
        (r#""archived":true,"#, Mode::Closed, None),
        (r#""archived":true,"acceptingOrders":true,"#, Mode::Open, None),
        (r#""archived":true,"acceptingOrders":false,"#, Mode::Closed, None),
        (r#""closed":true,"acceptingOrders":false,"#, Mode::Closed, None),
        (r#""acceptingOrders":true,"enableOrderBook":true,"#, Mode::Open, None),
        (r#""acceptingOrders":null,"enableOrderBook":null,"#, Mode::Open, None),
        (r#""acceptingOrders":false,"#, Mode::CancelOnly, None),
        (r#""acceptingOrders":true,"enableOrderBook":false,"#, Mode::CancelOnly, None),
        (r#""archived":true,"acceptingOrders":true,"enableOrderBook":false,"#, Mode::CancelOnly, None),
        (r#""closed":true,"outcomePrices":"[\"0.5\", \"0.5\"]","#, Mode::Closed, None),
        (r#""closed":false,"outcomePrices":"[\"1\", \"0\"]","#, Mode::Open, None),
        (r#""closed":true,"outcomePrices":"[\"1\", \"0\"]","#, Mode::Resolved, Payout::new(1_000_000)),
        (r#""closed":true,"outcomePrices":["0","1.0"],"#, Mode::Resolved, Payout::new(0)),
    ] {
        let market = only(&row(1, more));
        assert_eq!((market.mode, market.payout), (mode, payout), "{more}");
    }
}

#[test]
fn a_market_without_tokens_is_in_the_catalog_only() {
    let market = only(&format!(r#"{{"id":"abc","question":"?","conditionId":"0x{}"}}"#, "1".repeat(64)));
    assert_eq!((market.tokens, market.first_mode(), market.market_id), (None, Mode::Closed, None));
    assert!(!market.trades());
    let flagged = only(&market.text.replace('{', r#"{"acceptingOrders":false,"#));
    assert_eq!(flagged.first_mode(), Mode::Closed);
    assert_eq!(market.row(), format!("market 0x{}", "1".repeat(64)), "it has no number to be found by");
}

#[test]
fn a_row_without_tokens_ends_no_market_that_trades() {
    let whole = only(&row(1, ""));
    let silent = |more: &str| {
        only(&format!(
            r#"{{{more}"id":"1","question":"?","conditionId":"0x{:064x}","clobTokenIds":"[]"}}"#,
            1
        ))
    };
    let (open, closed) = (silent(""), silent(r#""closed":true,"#));
    for (row_says, mode, closes, told) in [
        (&open, Mode::Open, false, &["clobTokenIds"][..]),
        (&open, Mode::CancelOnly, false, &["clobTokenIds"]),
        (&open, Mode::Closed, false, &[]),
        (&open, Mode::Resolved, false, &[]),
        (&closed, Mode::Open, true, &[]),
    ] {
        let here = KnownMarket { mode, ..known(&whole) };
        let MarketStep::Update(update) = market_step(&here, row_says, None) else {
            panic!("its text is another one");
        };
        let fields: Vec<_> = update.kept.iter().map(|kept| kept.field).collect();
        assert_eq!((update.closes, &fields[..]), (closes, told), "{mode:?} {}", row_says.text);
    }
}

#[test]
fn every_row_that_cannot_be_taken_is_named() {
    for (more, said) in [
        (
            r#""orderPriceMinTickSize":0.02,"#,
            "market 1: orderPriceMinTickSize: got 0.02; allowed: 0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001",
        ),
        (r#""closed":"true","#, r#"market 1: closed: got "true"; allowed: true or false"#),
        (r#""enableOrderBook":0,"#, "market 1: enableOrderBook: got 0; allowed: true or false"),
        (r#""negRisk":1,"#, "market 1: negRisk: got 1; allowed: true or false"),
        (r#""feesEnabled":"false","#, r#"market 1: feesEnabled: got "false"; allowed: true or false"#),
        (
            r#""feeSchedule":{"takerOnly":"false"},"#,
            r#"market 1: feeSchedule: got {"takerOnly":"false"}; allowed: rate 0 to 1, exponent 1 or 2, takerOnly true or false, rebateRate 0 to 1"#,
        ),
        (
            r#""orderMinSize":-1,"#,
            "market 1: orderMinSize: got -1; allowed: 0 to 1000000000 shares, at most six decimals",
        ),
        (
            r#""outcomes":"[\"A\",\"B\",\"C\"]","#,
            r#"market 1: outcomes: got "[\"A\",\"B\",\"C\"]"; allowed: two labels that differ, of 1 to 128 bytes"#,
        ),
        (
            r#""outcomes":["Yes","Yes"],"#,
            r#"market 1: outcomes: got ["Yes","Yes"]; allowed: two labels that differ, of 1 to 128 bytes"#,
        ),
        (
            r#""questionID":"0x1","#,
            r#"market 1: questionID: got "0x1"; allowed: 0x and 64 hex digits, or nothing"#,
        ),
        (
            r#""feeSchedule":{"rate":2},"#,
            r#"market 1: feeSchedule: got {"rate":2}; allowed: rate 0 to 1, exponent 1 or 2, takerOnly true or false, rebateRate 0 to 1"#,
        ),
    ] {
        assert_eq!(refusal(more), said);
    }
    let import = read(r#"[7, {"question":"?"}, {"id":"9","title":"T","markets":{}}, {"title":"no id"}]"#);
    let said: Vec<String> = import.refused().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "row 1: row: got 7; allowed: an event or market object of at most 1024 fields",
            "row 2: conditionId: got nothing; allowed: 0x and 64 hex digits",
            "event 9: markets: got {}; allowed: an array of market objects",
            "row 4: id: got nothing; allowed: a text of 1 to 64 bytes, or a number",
        ]
    );
}

#[test]
fn a_long_id_is_cut_where_a_refusal_names_it() {
    let import = read(&format!(r#"[{{"id":"{}","question":"?"}}]"#, "é".repeat(1_000)));
    assert_eq!(import.refused()[0].row, format!("market {}...", "é".repeat(GOT_BYTES_MAX / 2)));
}

#[test]
fn a_text_that_would_not_fit_a_frame_is_refused_by_name() {
    let long = format!(r#""description":"{}","#, "x".repeat(TEXT_BYTES_MAX));
    let said = refusal(&long);
    assert!(said.starts_with("market 1: text: got 262"), "{said}");
    assert!(said.ends_with("allowed: at most 262144 bytes"), "{said}");
}

#[test]
fn a_text_that_clients_could_not_read_is_refused_by_name() {
    let nested = |levels: usize| format!(r#""x":{}1{},"#, "[".repeat(levels), "]".repeat(levels));
    assert_eq!(only(&row(1, &nested(TEXT_DEPTH_MAX - 1))).market_id, Some(1));
    for levels in [TEXT_DEPTH_MAX, 100_000] {
        let said = format!("text: got {} levels of brackets; allowed: at most 64 levels", levels + 1);
        let x = nested(levels);
        let rows = format!(
            r#"[{}, {{"id":"5","title":"E",{x}"markets":[{}]}}, {{"id":"6",{x}"label":"L"}}]"#,
            row(1, &x),
            row(2, "")
        );
        let import = read(&rows);
        let refused: Vec<String> = import.refused().iter().map(ToString::to_string).collect();
        assert_eq!(refused, ["market 1", "event 5", "tag 6"].map(|name| format!("{name}: {said}")));
        assert_eq!((import.events().len(), import.items().len(), import.markets().len()), (0, 0, 1));
    }
}

#[test]
fn a_row_of_too_many_fields_is_refused_wherever_it_stands() {
    let many: Vec<String> = (0..100_000).map(|n| format!("\"{n}\":1")).collect();
    let many = format!("{{{}}}", many.join(","));
    for (file, said) in [
        (
            format!("[{many}]"),
            "row 1: row: got {0}...; allowed: an event or market object of at most 1024 fields",
        ),
        (
            format!(r#"[{{"id":"5","title":"E","markets":[{many}]}}]"#),
            "event 5, market 1: row: got {0}...; allowed: a market object of at most 1024 fields",
        ),
    ] {
        let import = read(&file);
        assert_eq!(import.refused().len(), 1);
        assert_eq!(import.refused()[0].to_string(), said.replace("{0}", &many[..GOT_BYTES_MAX]));
    }
}

#[test]
fn what_is_not_a_file_of_rows_is_refused_whole() {
    for (text, fault) in [
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        ("[{]", "not JSON: row 1: key must be a string at line 1 column 2"),
        ("[{},{\"a\":}]", "not JSON: row 2: expected value at line 1 column 6"),
        ("7", "neither an array nor an object of events or markets"),
    ] {
        assert_eq!(Import::read(text.as_bytes(), &defaults()).expect_err(text).to_string(), fault);
    }
}

#[test]
fn two_markets_of_one_file_never_share_a_token_or_an_id() {
    let import = read(&format!(
        r#"[{}, {{"id":"2","conditionId":"0x{1}","clobTokenIds":"[\"11\",\"5\"]"}}, {{"id":"1","conditionId":"0x{1}","clobTokenIds":"[\"6\",\"5\"]"}}]"#,
        row(1, ""),
        "2".repeat(64)
    ));
    assert_eq!(import.markets().len(), 1);
    assert_eq!(
        import.refused().iter().map(|refused| refused.field).collect::<Vec<_>>(),
        ["clobTokenIds", "id"]
    );
}

#[test]
fn the_newer_text_wins_in_either_order() {
    let newer = row(1, r#""updatedAt":"2026-02-07T20:57:04.974481Z","closed":true,"#);
    let older = row(1, r#""updatedAt":"2025-06-24T23:58:14.08158Z","#);
    for file in [format!("[{newer},{older}]"), format!("[{older},{newer}]")] {
        let import = read(&file);
        assert_eq!((import.markets().len(), import.repeated()), (1, 1));
        assert_eq!(import.markets()[0].mode, Mode::Closed);
    }
}

#[test]
fn an_abridged_event_takes_nothing_away_in_either_order() {
    let full =
        r#"{"id":"5","title":"Old","tags":[{"id":1.50}],"updatedAt":"2025-01-01T00:00:00Z","markets":[]}"#;
    let abridged = format!(
        r#"{{"id":"1","conditionId":"0x{}","clobTokenIds":"[\"1\",\"2\"]","events":[{{"id":"5","title":"New","updatedAt":"2026-01-01T00:00:00Z"}}]}}"#,
        "1".repeat(64)
    );
    let both = [read(&format!("[{full},{abridged}]")), read(&format!("[{abridged},{full}]"))];
    let text = r#"{"id":"5","title":"New","updatedAt":"2026-01-01T00:00:00Z","tags":[{"id":1.50}]}"#;
    for import in both {
        assert_eq!(import.events().len(), 1);
        assert_eq!(import.events()[0].text, text);
        assert_eq!(event_key(text), Some("5".to_owned()));
        assert_eq!(import.markets()[0].event.as_deref(), Some("5"));
        assert!(!import.markets()[0].text.contains("events"));
        // Against an exchange that has both, neither file says anything new.
        for again in [full, abridged.as_str()] {
            assert_eq!(step(Some(text), &read(again).events()[0]), TextStep::Keep);
        }
    }
}

#[test]
fn where_two_texts_together_are_too_long_the_newer_is_left_alone() {
    let event = |field: &str, second: u8| {
        let long = "x".repeat(TEXT_BYTES_MAX / 2);
        let text = format!(
            r#"{{"id":"6","title":"T","updatedAt":"2026-01-01T00:00:0{second}Z","{field}":"{long}"}}"#
        );
        read(&format!("[{text}]")).events()[0].clone()
    };
    let (older, newer) = (event("a", 1), event("b", 2));
    assert_eq!(step(Some(&older.text), &newer), TextStep::Update(newer.text.clone()));
    assert_eq!(step(Some(&newer.text), &older), TextStep::Keep);
    for files in [[&older, &newer], [&newer, &older]] {
        let rows = format!("[{},{}]", files[0].row(), files[1].row());
        assert_eq!(read(&rows).events(), std::slice::from_ref(&newer), "in either order");
    }
}

#[test]
fn half_a_character_in_a_text_is_replaced() {
    let import = read(&row(1, r#""description":"cut \ud83d","#));
    assert!(import.markets()[0].text.contains(r#""description":"cut \ufffd""#), "{:?}", import.markets());
}

#[test]
fn a_changed_event_replaces_what_it_mentions() {
    let known = r#"{"id":"5","title":"A","tags":[]}"#;
    let changed = read(r#"{"id":"5","title":"B","markets":[]}"#);
    let text = r#"{"id":"5","title":"B","tags":[]}"#.to_owned();
    assert_eq!(step(Some(known), &changed.events()[0]), TextStep::Update(text));
    assert_eq!(step(None, &changed.events()[0]), TextStep::Add);
}

pub(super) fn known(market: &ImportedMarket) -> KnownMarket<'_> {
    KnownMarket {
        text: &market.text,
        market_id: market.market_id.expect("a number"),
        event: None,
        question: market.question,
        tokens: market.tokens.expect("it trades"),
        labels: &market.labels,
        neg_risk: market.neg_risk,
        tick: market.tick,
        min_size: market.min_size,
        fee: market.fee,
        mode: market.mode,
        payout: market.payout,
        is_live: false,
    }
}

#[test]
fn the_same_file_again_changes_nothing() {
    let market = only(&row(1, ""));
    assert_eq!(market_step(&known(&market), &market, None), MarketStep::Keep);
}

#[test]
fn a_changed_file_updates_text_and_flags_and_never_a_live_market() {
    let market = only(&row(1, ""));
    let changed = only(&row(1, r#""closed":true,"outcomePrices":["1","0"],"orderPriceMinTickSize":0.001,"#));
    let text = Some(changed.text.clone());
    let live = KnownMarket { is_live: true, ..known(&market) };
    let MarketStep::Update(update) = market_step(&live, &changed, Some(3)) else {
        panic!("it changed");
    };
    let told: Vec<_> = update.kept.iter().map(|kept| (kept.field, &*kept.got)).collect();
    assert_eq!(told, [("orderPriceMinTickSize", "0.001"), ("outcomePrices", r#"["1","0"]"#)]);
    let expected = MarketUpdate {
        text,
        event: Some(3),
        closes: true,
        kept: update.kept.clone(),
        ..MarketUpdate::default()
    };
    assert_eq!(update, expected);

    // If no order rests and nobody holds shares, the file decides.
    let free = MarketStep::Update(MarketUpdate {
        tick: Tick::new(10),
        payout: Payout::new(1_000_000),
        kept: Vec::new(),
        ..expected
    });
    assert_eq!(market_step(&known(&market), &changed, Some(3)), free);
}

#[test]
fn the_same_text_ends_a_market_that_goes_on_and_does_nothing_else() {
    let coarse = r#""orderPriceMinTickSize":0.1,"#;
    let closed = r#""orderPriceMinTickSize":0.1,"closed":true,"#;
    let over = r#""orderPriceMinTickSize":0.1,"closed":true,"outcomePrices":["0","1"],"#;
    let ends =
        |closes, payout| MarketStep::Update(MarketUpdate { closes, payout, ..MarketUpdate::default() });
    let payout = Payout::new(0);
    // What a live market does not take is told each time.
    let waits = |closes| {
        let kept = vec![kept_result("market 1", payout.expect("a payout"), LIVE_RESULT)];
        MarketStep::Update(MarketUpdate { closes, kept, ..MarketUpdate::default() })
    };
    for (row_says, mode, is_live, step) in [
        (coarse, Mode::Open, false, MarketStep::Keep),
        (coarse, Mode::CancelOnly, false, MarketStep::Keep),
        (coarse, Mode::Closed, false, MarketStep::Keep),
        (coarse, Mode::Resolved, false, MarketStep::Keep),
        (closed, Mode::Open, false, ends(true, None)),
        (closed, Mode::Open, true, ends(true, None)),
        (closed, Mode::PostOnly, false, ends(true, None)),
        (closed, Mode::CancelOnly, false, ends(true, None)),
        (closed, Mode::Closed, false, MarketStep::Keep),
        (closed, Mode::Resolved, false, MarketStep::Keep),
        (over, Mode::Open, false, ends(true, payout)),
        (over, Mode::Open, true, waits(true)),
        (over, Mode::Closed, false, ends(false, payout)),
        (over, Mode::Closed, true, waits(false)),
        (over, Mode::Resolved, false, MarketStep::Keep),
    ] {
        let market = only(&row(1, row_says));
        let tick = Tick::new(10).expect("a tick that the operator chose");
        let here = KnownMarket { tick, mode, is_live, ..known(&market) };
        assert_eq!(market_step(&here, &market, None), step, "{row_says} {mode:?} live: {is_live}");
    }
}

#[test]
fn the_catalog_of_dev_is_taken_whole() {
    let import = read(DEV);
    assert_eq!(import.refused(), &[]);
    assert_eq!((import.events().len(), import.markets().len()), (8, 20));
    assert!(import.markets().iter().all(ImportedMarket::trades));
    let count = |test: &dyn Fn(&ImportedMarket) -> bool| {
        import.markets().iter().filter(|market| test(market)).count()
    };
    assert_eq!(count(&|market| market.neg_risk), 4);
    assert_eq!(count(&|market| market.fee.rate == 30_000), 1);
    assert_eq!(count(&|market| market.tick.ten_thousandths() == 10), 5);
}

/// Polymarket's markets and events, if this machine has them.
fn real_files() -> Option<[Vec<u8>; 2]> {
    let files = ["gamma-markets-500/polymarket_markets.json.gz", "gamma-events-100/events.json.gz"];
    let [markets, events] = files.map(|file| super::shared::shared(&format!("data/{file}")));
    Some([markets?, events?].map(|file| std::fs::read(file).expect("the file")))
}

#[test]
fn the_real_files_give_770_tradable_and_12_closed_markets_in_either_order() {
    let Some([markets, events]) = real_files() else { return };
    let read = |files: [&[u8]; 2]| {
        let import = read_all(&files);
        assert_eq!(import.refused(), &[]);
        assert_eq!((import.markets().len(), import.repeated(), import.events().len()), (782, 9, 146));
        assert_eq!(import.markets().iter().filter(|market| market.trades()).count(), 770);
        assert_eq!(import.markets().iter().filter(|market| market.payout.is_some()).count(), 12);
        let mut rows: Vec<_> = import.markets().to_vec();
        rows.sort_by_key(|market| market.condition);
        let mut texts: Vec<_> = import.events().to_vec();
        texts.sort_by(|left, right| left.key.cmp(&right.key));
        (rows, texts)
    };
    let (rows, texts) = read([&markets, &events]);
    assert_eq!(read([&events, &markets]), (rows.clone(), texts.clone()));
    for market in &rows {
        if market.trades() {
            assert_eq!(market_step(&known(market), market, None), MarketStep::Keep);
        }
    }
    for event in &texts {
        assert_eq!(step(Some(&event.text), event), TextStep::Keep);
    }
}

/// The result of a survey of `files` and of a second reading: every market as it would be sent.
fn surveyed(files: &[&[u8]]) -> (Import, Vec<String>) {
    let mut import = Import::survey();
    for (file, number) in files.iter().zip(0..) {
        let mut told = 0;
        let mut rows = Rows::new(*file).expect("a file");
        import.add_rows(number, &mut rows, &defaults(), |bytes| told = bytes).expect("a file");
        assert!(0 < told, "progress is told");
    }
    let cut = |market: usize| {
        let place = import.place(market).expect("a survey knows all places");
        let mut rows = Rows::new(files[place.file as usize]).expect("a file");
        let object = rows.cut(place.offset, place.bytes).expect("it is still there");
        market_row(object, import.markets()[market].event.as_deref()).expect("an object")
    };
    let texts = (0..import.markets().len()).map(cut).collect();
    (import, texts)
}

/// A survey reports of every row what a reading reports, and sends what a reading would have kept.
#[track_caller]
fn assert_same_by_survey(files: &[&[u8]]) {
    let whole = read_all(files);
    let (import, texts) = surveyed(files);
    assert_eq!((import.events(), import.items()), (whole.events(), whole.items()));
    assert_eq!((import.refused(), import.repeated()), (whole.refused(), whole.repeated()));
    assert_eq!(import.refused_rows().count(), import.refused().len());
    let again = read(&format!("[{}]", texts.join(",")));
    assert_eq!(again.refused(), &[]);
    assert_eq!(again.markets(), whole.markets());
    for (market, number) in import.markets().iter().zip(0..) {
        assert!(market.text.is_empty(), "a survey keeps no text");
        assert_eq!(market.market_id.and_then(|id| import.market_with_id(id)), Some(number));
    }
}

#[test]
fn a_survey_finds_what_a_reading_finds() {
    let first = format!(
        r#"[ {}, {{"id":"5","title":"E","markets":[{}, {{"id":"x"}}, {}]}},
            {{"id":"9","label":"L"}}, 7, {} ]"#,
        row(1, r#""events":[{"id":"5","title":"Abridged"},{"id":"6"}],"a":"}]{[\"\\","#),
        row(2, r#""events":null,"#),
        row(3, ""),
        row(4, r#""events":[{"title":"no id"}],"#),
    );
    let second = format!(
        "{{\"id\":\"6\", \"title\":\"F\",\n\t\"markets\": [{}, {}]}}",
        row(2, r#""updatedAt":"2026-01-01T00:00:00Z","events" : [ ] , "#),
        row(7, "").replace('}', " }"),
    );
    assert_same_by_survey(&[first.as_bytes(), second.as_bytes()]);
    assert_same_by_survey(&[second.as_bytes(), first.as_bytes()]);
    let (import, _) = surveyed(&[second.as_bytes(), first.as_bytes()]);
    let places: Vec<_> = import.refused_rows().map(|(at, refused)| (at, refused.row.as_str())).collect();
    assert_eq!(places, [((1, 2), "market x"), ((1, 4), "row 4"), ((1, 5), "row 5, event 1")]);
}

#[test]
fn a_survey_of_the_real_files_finds_what_a_reading_finds() {
    let Some([markets, events]) = real_files() else { return };
    assert_same_by_survey(&[&events]);
    assert_same_by_survey(&[&markets, &events]);
}

#[test]
fn a_fault_in_a_survey_names_its_row() {
    for (text, fault) in [
        ("[{},{\"a\":}]", "not JSON: row 2: expected value at line 1 column 6"),
        ("{\"a\":1", "not JSON: row 1: EOF while parsing an object at line 1 column 6"),
    ] {
        let mut rows = Rows::new(text.as_bytes()).expect("a file");
        let read = Import::survey().add_rows(0, &mut rows, &defaults(), |_| ());
        assert_eq!(read.expect_err(text).to_string(), fault);
    }
}
