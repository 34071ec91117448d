//! Searching a running exchange: by title, by question, with typos, page by page. What was just
//! imported is found, and a wrong request is refused by name.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan};
use common::shared::shared;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::{Answer, Connection};
use common::{folder, unpacked};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// 5,711 resolved markets: 5,689 with a condition each, 22 without.
const TITLES: &str = "data/search-titles/markets.json.gz";
const MARKETS_WITH_TITLES: usize = 5_711;

/// 100 events with their markets.
const EVENTS: &str = "data/gamma-events-100/events.json.gz";

/// How long the index may take after a start or an import.
const PATIENCE: Duration = Duration::from_mins(2);

/// `text` as a value of a query.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").unwrap(),
        }
    }
    out
}

/// The result of a search.
#[track_caller]
fn search(connection: &mut Connection, term: &str, more: &str) -> Value {
    searched(connection, &format!("q={}{more}", encoded(term)))
}

/// The result of a search by its query.
#[track_caller]
fn searched(connection: &mut Connection, query: &str) -> Value {
    let path = format!("/public-search?{query}");
    let answer = in_the_end(|| get(connection, &path));
    assert_eq!(answer.status, 200, "{path}");
    answer.json()
}

/// What a search is answered, asked again while that is 503: the index is being built, or its
/// low-priority thread gets no time on a busy machine.
#[track_caller]
fn in_the_end(mut ask: impl FnMut() -> Answer) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = ask();
        if answer.status != 503 {
            return answer;
        }
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        assert!(Instant::now() < deadline, "the index is never there");
    }
}

fn titles(found: &Value) -> Vec<String> {
    let events = found["events"].as_array().unwrap().iter();
    events.map(|event| event["title"].as_str().unwrap().to_owned()).collect()
}

fn get(connection: &mut Connection, path: &str) -> Answer {
    connection.request("GET", path, "", b"").unwrap()
}

fn dev(folder: &tempfile::TempDir) -> Exchange {
    Plan::dev(folder.path()).start()
}

#[test]
fn the_catalog_of_dev_is_found_by_title_question_and_tag() {
    let folder = folder();
    let exchange = dev(&folder);
    let mut connection = exchange.connect();
    let lisbon = json!({
        "id": "9001",
        "ticker": "rain-in-lisbon-on-new-years-day",
        "slug": "rain-in-lisbon-on-new-years-day",
        "title": "Rain in Lisbon on New Year's Day"
    });
    for term in
        ["rain in lisbon", "RAIN lis", "Lisbon 1 January 2027", "weather station lisbon", "lisbn rain"]
    {
        let found = search(&mut connection, term, "");
        let [event] = found["events"].as_array().unwrap().as_slice() else { panic!("one event: {found}") };
        for (name, said) in lisbon.as_object().unwrap() {
            assert_eq!(event[name], *said, "{term}");
        }
        let listed = get(&mut connection, "/events?id=9001").json();
        assert_eq!(*event, listed[0], "as a list of events shows it");
    }
    let weather = search(&mut connection, "weather", "");
    assert_eq!(weather["tags"][0]["slug"], "weather");
    assert_eq!(weather["tags"][0]["event_count"], weather["pagination"]["totalResults"]);
    assert_eq!(search(&mut connection, "weather", "&search_tags=false")["tags"], json!([]));
    let nothing = search(&mut connection, "zzzz", "");
    assert_eq!(
        nothing,
        json!({"events": [], "tags": [], "pagination": {"hasMore": false, "totalResults": 0}})
    );
    assert!(titles(&search(&mut connection, "?!", "")).is_empty());
    drop(connection);
    exchange.stop();
}

#[test]
fn what_is_asked_wrongly_is_refused_by_field_value_and_rule() {
    let folder = folder();
    let exchange = dev(&folder);
    let mut connection = exchange.connect();
    let number = "1 or more; beyond 500 it is 500";
    let pages = "a whole number from 1 to 18446744073709551615";
    let sorts = "relevance, volume, volume_24hr, liquidity, competitive, start_date, end_date or closed_time";
    let long = "a".repeat(513);
    let many = "a,".repeat(101);
    for (query, error, field, got, allowed) in [
        ("", "q is required", "q", "", "1 to 512 bytes of text"),
        ("?q=", "q is required", "q", "", "1 to 512 bytes of text"),
        ("?q=%20+", "q is required", "q", "  ", "1 to 512 bytes of text"),
        ("?q=%ff", "q is invalid", "q", "%ff", "percent-encoded UTF-8"),
        (&format!("?q={long}"), "q is invalid", "q", "513 bytes", "1 to 512 bytes of text"),
        ("?q=a&limit_per_type=0", "limit_per_type is invalid", "limit_per_type", "0", number),
        ("?q=a&limit_per_type=ten", "limit_per_type is invalid", "limit_per_type", "ten", number),
        ("?q=a&page=0", "page is invalid", "page", "0", pages),
        ("?q=a&page=-1", "page is invalid", "page", "-1", pages),
        ("?q=a&page=18446744073709551616", "page is invalid", "page", "18446744073709551616", pages),
        ("?q=a&search_tags=yes", "search_tags is invalid", "search_tags", "yes", "true or false"),
        ("?q=a&search_profiles=1", "search_profiles is invalid", "search_profiles", "1", "true or false"),
        ("?q=a&optimized=2", "optimized is invalid", "optimized", "2", "true or false"),
        ("?q=a&cache=no", "cache is invalid", "cache", "no", "true or false"),
        ("?q=a&ascending=up", "ascending is invalid", "ascending", "up", "true or false"),
        (
            "?q=a&events_status=new",
            "events_status is invalid",
            "events_status",
            "new",
            "active, resolved or all",
        ),
        (
            "?q=a&keep_closed_markets=no",
            "keep_closed_markets is invalid",
            "keep_closed_markets",
            "no",
            "a whole number, true or false",
        ),
        (
            "?q=a&exclude_tag_id=1,x",
            "exclude_tag_id is invalid",
            "exclude_tag_id",
            "x",
            "a whole number, or the id of a tag",
        ),
        ("?q=a&events_tag=%ff", "events_tag is invalid", "events_tag", "%ff", "percent-encoded UTF-8"),
        (
            &format!("?q=a&events_tag={many}"),
            "events_tag is invalid",
            "events_tag",
            "101 values",
            "at most 100 values",
        ),
        ("?q=a&recurrence=%ff", "recurrence is invalid", "recurrence", "%ff", "percent-encoded UTF-8"),
        ("?q=a&sort=title", "sort is invalid", "sort", "title", sorts),
    ] {
        let answer = get(&mut connection, &format!("/public-search{query}"));
        assert_eq!(answer.status, 400, "{query}");
        let body = answer.json();
        assert_eq!(body["type"], "bad request", "{query}");
        assert!(body["code"].is_string(), "{query}");
        let said = [&body["error"], &body["field"], &body["got"], &body["allowed"]];
        assert_eq!(said, [error, field, got, allowed], "{query}");
    }
    for good in [
        "q=a&limit_per_type=500",
        "q=a&limit_per_type=501",
        "q=a&page=18446744073709551615",
        "q=a&search_profiles=true&other=1",
        "q=a&optimized=true&cache=False&recurrence=&sort=&events_tag=,&exclude_tag_id=&keep_closed_markets=",
    ] {
        searched(&mut connection, good);
    }
    searched(&mut connection, &format!("q={}", "a".repeat(512)));
}

#[test]
fn answers_leave_in_the_order_of_their_requests() {
    let folder = folder();
    let exchange = dev(&folder);
    let mut connection = exchange.connect();
    for _ in 0..20 {
        let get = |path: &str| common::wire::request("GET", path, "", b"");
        let requests = [get("/public-search?q=rain"), get("/time"), get("/public-search?q="), get("/ok")];
        let found = in_the_end(|| {
            connection.send(&requests.concat()).unwrap();
            let [found, time, refused, ok] = [(); 4].map(|()| connection.answer().unwrap());
            assert!(time.json().is_u64());
            assert_eq!(refused.status, 400);
            assert_eq!(ok.json(), "OK");
            found
        });
        assert_eq!(found.json()["pagination"]["totalResults"], 1);
    }
}

fn import(exchange: &Exchange, file: &Path) {
    let output = exchange.operator_output(&["import", "gamma", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
}

/// The rows of the file of titles as Gamma markets. Invented here: `id` (from 1,000,001), `slug` (the
/// title's words), `closed`, `description` (the same three words everywhere, by which all can be
/// listed), tags as objects whose id and label are the slug, and the condition of the 22 rows without
/// one. Taken from the file: title, outcomes, prices, dates, volume, and which tags there are. There
/// are no tokens.
fn title_markets(rows: &[Value]) -> BTreeMap<String, Value> {
    let mut markets = BTreeMap::new();
    for row in rows {
        let id = (1_000_001 + markets.len()).to_string();
        let title = row["question"].as_str().unwrap();
        let lower = title.to_lowercase();
        let words = lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        let slug = words.collect::<Vec<_>>().join("-");
        let tags = row["tags"].as_array().unwrap().iter();
        let tags: Vec<Value> = tags.map(|tag| json!({"id": tag, "label": tag, "slug": tag})).collect();
        let mut market = json!({
            "id": id, "question": title, "slug": slug, "closed": true, "active": true,
            "description": "kept for search", "tags": tags, "volume": row["volume"].to_string(),
        });
        for (name, from) in [
            ("conditionId", "conditionId"),
            ("outcomes", "outcomes"),
            ("outcomePrices", "outcomePrices"),
            ("startDate", "startDate"),
            ("createdAt", "createdAt"),
            ("endDate", "endDate"),
            ("updatedAt", "closedTime"),
        ] {
            if !row[from].is_null() {
                market[name] = row[from].clone();
            }
        }
        if row["conditionId"] == "" {
            market["conditionId"] = json!(format!("0x{id:0>64}"));
        }
        markets.insert(id, market);
    }
    markets
}

/// The ids on all pages of `limit`, each page but the last full, and the total on every page.
fn walk(connection: &mut Connection, term: &str, limit: usize) -> (Vec<String>, u64) {
    let mut ids = Vec::new();
    let mut total = 0;
    for page in 1.. {
        let found = search(connection, term, &format!("&limit_per_type={limit}&page={page}"));
        let events = found["events"].as_array().unwrap();
        ids.extend(events.iter().map(|event| event["id"].as_str().unwrap().to_owned()));
        total = found["pagination"]["totalResults"].as_u64().unwrap();
        if found["pagination"]["hasMore"] == false {
            break;
        }
        assert_eq!(events.len(), limit);
    }
    (ids, total)
}

/// The place of the hit with this id, from 1.
fn rank(found: &Value, id: &str) -> Option<usize> {
    found["events"].as_array().unwrap().iter().position(|event| event["id"] == id).map(|place| place + 1)
}

#[test]
fn every_one_of_5711_real_markets_is_found_by_its_title_and_on_a_walk_over_all_pages() {
    let Some(file) = shared(TITLES) else { return };
    let folder = folder();
    let exchange = dev(&folder);
    let markets = title_markets(unpacked(&file).as_array().unwrap());
    assert_eq!(markets.len(), MARKETS_WITH_TITLES);
    let gamma = folder.path().join("titles.json");
    let rows: Value = markets.values().cloned().collect();
    std::fs::write(&gamma, rows.to_string()).unwrap();
    import(&exchange, &gamma);
    let mut connection = exchange.connect();

    let names: Vec<String> = markets.keys().map(|id| format!("market-{id}")).collect();
    let (mut ids, total) = walk(&mut connection, "kept for search", 500);
    assert_eq!((ids.len(), total), (MARKETS_WITH_TITLES, MARKETS_WITH_TITLES as u64));
    ids.sort();
    assert!(ids.iter().eq(&names), "the walk finds each market once, under an id that is no event's");

    // Some titles belong to several markets, which share the first places.
    let mut same: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (id, market) in &markets {
        // Slugs are the words of titles, because punctuation does not tell titles apart.
        same.entry(market["slug"].to_string()).or_default().push(id);
    }
    let mut first = 0;
    for group in same.values() {
        let title = markets[group[0]]["question"].as_str().unwrap();
        let found = search(&mut connection, title, "");
        for id in group {
            let rank = rank(&found, &format!("market-{id}"))
                .unwrap_or_else(|| panic!("{title}: {id} is not in the first 25"));
            first += usize::from(rank <= group.len());
        }
    }
    eprintln!(
        "{first} of {MARKETS_WITH_TITLES} markets come first for their title, or share the first places"
    );
    assert_eq!(first, MARKETS_WITH_TITLES);
    exchange.stop();
}

/// `text` without the letter in the middle of its longest word of letters.
fn misspelt(text: &str) -> Option<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    let longest = words.filter(|word| 5 <= word.len()).max_by_key(|word| word.len())?;
    let at = text.find(longest)? + longest.len() / 2;
    Some(format!("{}{}", &text[..at], &text[at + 1..]))
}

#[test]
fn every_one_of_100_real_events_is_found_by_title_by_question_half_typed_and_misspelt() {
    let Some(file) = shared(EVENTS) else { return };
    let folder = folder();
    let exchange = dev(&folder);
    import(&exchange, &file);
    let mut connection = exchange.connect();
    let (mut asked, mut first) = ([0; 4], [0; 4]);
    for event in unpacked(&file).as_array().unwrap() {
        let id = event["id"].as_str().unwrap();
        let title = event["title"].as_str().unwrap();
        let half: String = title.chars().take(title.chars().count() * 2 / 3).collect();
        let mut terms = vec![(0, title.to_owned()), (1, half)];
        terms.extend(misspelt(title).map(|term| (2, term)));
        for market in event["markets"].as_array().unwrap() {
            terms.push((3, market["question"].as_str().unwrap().to_owned()));
        }
        for (kind, term) in terms {
            let found = search(&mut connection, &term, "");
            let rank = rank(&found, id).unwrap_or_else(|| panic!("{term:?} does not find {title:?}"));
            asked[kind] += 1;
            first[kind] += usize::from(rank == 1);
        }
    }
    for (kind, name) in ["whole titles", "titles cut after two thirds", "misspelt titles", "questions"]
        .into_iter()
        .enumerate()
    {
        eprintln!("{name}: {} of {} come first, all within 25", first[kind], asked[kind]);
    }
    assert_eq!(first[0], asked[0], "a whole title comes first");
    exchange.stop();
}

#[test]
fn what_the_operator_makes_or_closes_is_found_so_at_once() {
    let folder = folder();
    let exchange = dev(&folder);
    let mut connection = exchange.connect();
    for number in 0..20 {
        let question = format!("Will comet number {number} be seen?");
        exchange.market(&question);
        let found = search(&mut connection, "comet", "");
        assert_eq!(found["pagination"]["totalResults"], number + 1);
        assert_eq!(search(&mut connection, &question, "")["events"][0]["title"], *question);
    }
    // The first market has the lowest id, so it comes first. Pausing does not change that, closing
    // does.
    let found = search(&mut connection, "comet", "");
    let hit = found["events"][0]["id"].as_str().unwrap();
    let id = hit.strip_prefix("market-").unwrap();
    exchange.operator(&["market", "pause", id]);
    assert_eq!(rank(&search(&mut connection, "comet", ""), hit), Some(1));
    exchange.operator(&["market", "resolve", id, "--payout", "1"]);
    assert_eq!(rank(&search(&mut connection, "comet", ""), hit), Some(20));
    drop(connection);
    exchange.stop();
    let exchange = Plan::dev(folder.path()).start();
    let mut connection = exchange.connect();
    assert_eq!(rank(&search(&mut connection, "comet", ""), hit), Some(20));
}

/// 60 events "Pool party", which differ in everything that a search can filter or sort by.
fn pool(events: std::ops::Range<u64>) -> Value {
    let tag = |id: u64| json!({"id": id.to_string(), "label": format!("Depth {id}"), "slug": format!("depth-{id}")});
    let event = |number: u64| {
        json!({
            "id": (7_000 + number).to_string(), "slug": format!("pool-{number}"), "ticker": format!("p{number}"),
            "title": format!("Pool party {number}"), "closed": number.is_multiple_of(3), "volume": number * 37 % 11,
            "endDate": format!("2027-01-{:02}T00:00:00Z", 1 + number * 17 % 28), "markets": [],
            "tags": [tag(100 + number % 4), tag(200 + number % 3)],
            "series": [{"id": "31", "slug": "pools", "title": "Pools", "recurrence": if number.is_multiple_of(5) { "daily" } else { "weekly" }}],
        })
    };
    events.map(event).collect()
}

#[test]
fn filters_and_orders_show_what_the_list_of_events_shows() {
    let folder = folder();
    let exchange = dev(&folder);
    let file = folder.path().join("pool.json");
    std::fs::write(&file, pool(0..60).to_string()).unwrap();
    import(&exchange, &file);
    let mut connection = exchange.connect();
    let ids = |events: &Value| {
        let events = events.as_array().unwrap().iter();
        events.map(|event| event["id"].as_str().unwrap().parse().unwrap()).collect::<Vec<u64>>()
    };
    for (narrowed, listed) in [
        ("sort=volume", "order=volume"),
        ("sort=volume&ascending=true", "order=volume&ascending=true"),
        ("sort=end_date&ascending=true", "order=endDate&ascending=true"),
        ("sort=endDate", "order=endDate"),
        ("sort=liquidity&events_status=active", "order=liquidity&closed=false"),
        ("sort=volume_24hr&events_status=resolved", "order=volume24hr&closed=true"),
        ("sort=volume&events_tag=depth-101", "order=volume&tag_slug=depth-101"),
        ("sort=volume&exclude_tag_id=101", "order=volume&exclude_tag_id=101"),
        ("sort=volume&exclude_tag_id=101,202&keep_closed_markets=0", "order=volume&exclude_tag_id=101,202"),
        ("sort=competitive&events_tag=depth-103", "order=competitive&tag_slug=depth-103"),
    ] {
        let listed = get(&mut connection, &format!("/events?series_slug=pools&limit=100&{listed}")).json();
        let listed = ids(&listed);
        assert!(!listed.is_empty(), "{narrowed}");
        let mut walked = Vec::new();
        for page in 1.. {
            let found = search(&mut connection, "pool", &format!("&{narrowed}&limit_per_type=7&page={page}"));
            assert_eq!(found["pagination"]["totalResults"], listed.len(), "{narrowed}");
            walked.extend(ids(&found["events"]));
            if found["pagination"]["hasMore"] == false {
                break;
            }
        }
        assert_eq!(walked, listed, "{narrowed}");
    }
    let daily = search(&mut connection, "pool", "&recurrence=Daily&limit_per_type=100");
    let mut daily = ids(&daily["events"]);
    daily.sort_unstable();
    assert_eq!(daily, (0..60).step_by(5).map(|number| 7_000 + number).collect::<Vec<_>>());
    // The ranking: open ones first, then by volume, then by the lower id.
    let ranked = search(&mut connection, "pool", "&limit_per_type=100&search_tags=false");
    let mut expected: Vec<u64> = (0..60).collect();
    expected.sort_by_key(|number| (number % 3 == 0, std::cmp::Reverse(number * 37 % 11), *number));
    assert_eq!(ids(&ranked["events"]), expected.iter().map(|number| 7_000 + number).collect::<Vec<_>>());
    exchange.stop();
}

#[test]
fn every_page_is_right_for_its_moment_while_the_catalog_grows() {
    let folder = folder();
    let exchange = dev(&folder);
    let mut connection = exchange.connect();
    search(&mut connection, "pool", "");
    let growing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for step in 0..12_u64 {
                let file = folder.path().join(format!("pool-{step}.json"));
                std::fs::write(&file, pool(step * 5..step * 5 + 5).to_string()).unwrap();
                import(&exchange, &file);
            }
            growing.store(false, std::sync::atomic::Ordering::Release);
        });
        let mut least = 0;
        while growing.load(std::sync::atomic::Ordering::Acquire) {
            for page in 1.. {
                let found = search(&mut connection, "pool", &format!("&limit_per_type=7&page={page}"));
                let total = found["pagination"]["totalResults"].as_u64().unwrap();
                let rows = found["events"].as_array().unwrap().len() as u64;
                assert!(least <= total, "{total} after {least}");
                least = total;
                assert_eq!(rows, total.saturating_sub(7 * (page - 1)).min(7), "page {page} of {total}");
                let more = 7 * page < total;
                assert_eq!(found["pagination"]["hasMore"], more, "page {page} of {total}");
                if !more {
                    break;
                }
            }
        }
    });
    assert_eq!(search(&mut connection, "pool", "")["pagination"]["totalResults"], 60);
    exchange.stop();
}

#[test]
fn a_tag_that_is_imported_by_itself_is_found_and_so_is_its_new_name() {
    let folder = folder();
    let exchange = dev(&folder);
    let file = folder.path().join("tags.json");
    let mut connection = exchange.connect();
    let mut tag = json!({"id": "990", "label": "Lighthouses", "slug": "lighthouses", "updatedAt": "2026-01-01T00:00:00Z"});
    for label in ["Lighthouses", "Beacons"] {
        tag["label"] = json!(label);
        std::fs::write(&file, json!([tag]).to_string()).unwrap();
        import(&exchange, &file);
        let found = search(&mut connection, label, "");
        let expected = json!({"id": "990", "label": label, "slug": "lighthouses", "event_count": 0});
        assert_eq!(found["tags"], json!([expected]));
        assert_eq!(found["events"], json!([]));
        tag["updatedAt"] = json!("2026-02-01T00:00:00Z");
    }
    drop(connection);
    exchange.stop();
    let exchange = Plan::dev(folder.path()).start();
    let mut connection = exchange.connect();
    assert_eq!(search(&mut connection, "beacon", "")["tags"][0]["id"], "990");
    let ready = Connection::open(exchange.admin).request("GET", "/ready", "", b"").unwrap().json();
    assert_eq!((&ready["ready"], &ready["search"]), (&json!(true), &json!(true)));
}

#[test]
fn what_is_traded_decides_among_equals_as_soon_as_the_trade_is_acknowledged() {
    let folder = folder();
    let exchange = dev(&folder);
    let mut connection = exchange.connect();
    let mut traders = [KEYS[4], KEYS[5]].map(|key| Trader::new(key, &mut connection));
    let markets = [0, 1, 2].map(|number| exchange.market(&format!("Will meteor {number} be seen?")));
    let first = |connection: &mut Connection| search(connection, "meteor", "")["events"][0]["title"].clone();
    assert_eq!(first(&mut connection), "Will meteor 0 be seen?");
    for (number, shares) in [(1, 10), (2, 20), (0, 30), (1, 21)] {
        for (outcome, trader) in traders.iter_mut().enumerate() {
            let wish = Wish::buy(token(&markets[number].tokens[outcome]), 5_000, shares * 1_000_000);
            let order = trader.sign(&wish);
            let answer = trader.post(&mut connection, &order.body);
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        assert_eq!(first(&mut connection), format!("Will meteor {number} be seen?"));
    }
    exchange.stop();
}
