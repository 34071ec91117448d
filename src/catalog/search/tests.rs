//! The ranking as a table, and a comparison with a naive scorer that reads every text.

mod random;

use super::words::{self, Edits, Wanted};
use super::{EventText, Filter, Found, Hit, MarketText, Query, Search, TagText, Weight};
use crate::catalog::{Catalog, Column, Direction, Life, MarketEntry, Source, event_key};
use crate::domain::{ItemKind, TimeMs};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const NOW: TimeMs = TimeMs(1_700_000_000_000);

fn query(term: &str) -> Query {
    Query {
        term: term.to_owned(),
        limit_per_type: 500,
        page: 1,
        with_tags: true,
        filter: Filter::default(),
        order: None,
    }
}

/// What the catalog is made from.
#[derive(Clone, Default)]
struct Texts {
    events: Vec<Value>,
    /// Event, whether it is closed, and text; the numeric id is a thousand plus the number.
    markets: Vec<(Option<u32>, bool, Value)>,
    /// Tags that came by themselves.
    tags: Vec<Value>,
}

/// The texts as strings, where the catalog reads them.
#[derive(Default)]
struct Kept(BTreeMap<Source, String>);

impl crate::catalog::Texts for Kept {
    fn text(&self, source: Source) -> &str {
        &self.0[&source]
    }

    fn added(&self, _: Source) -> TimeMs {
        TimeMs(1)
    }
}

/// A catalog, and a search that follows it.
struct World {
    texts: Texts,
    kept: Kept,
    catalog: Catalog,
    search: Search,
    tags: BTreeSet<u32>,
}

impl Texts {
    fn world(self) -> World {
        let mut world = World {
            texts: Texts::default(),
            kept: Kept::default(),
            catalog: Catalog::default(),
            search: Search::new(1).expect("an index"),
            tags: BTreeSet::new(),
        };
        (0..).zip(self.tags).for_each(|(number, tag)| world.put_tag(number, tag));
        (0..).zip(self.events).for_each(|(number, event)| world.put_event(number, event));
        for (number, (event, closed, text)) in (0..).zip(self.markets) {
            world.put_market(number, event, closed, text);
        }
        world
    }
}

/// Replaces the element with this number, or adds it.
fn put<T>(all: &mut Vec<T>, number: u32, value: T) {
    match all.get_mut(number as usize) {
        Some(place) => *place = value,
        None => all.push(value),
    }
}

const fn life(closed: bool) -> Life {
    if closed { Life::Over(NOW) } else { Life::Open }
}

impl World {
    fn put_event(&mut self, event: u32, text: Value) {
        self.kept.0.insert(Source::Event(event), text.to_string());
        put(&mut self.texts.events, event, text);
        self.catalog.put_event(event, &self.kept);
        let tags = self.catalog.event(event).tags();
        let text = &self.kept.0[&Source::Event(event)];
        let event = EventText { event, text, tags, weight: self.weight(Hit::Event(event)) };
        self.tags.extend(tags);
        self.search.put_event(&event).expect("put");
        self.tell();
    }

    fn put_market(&mut self, market: u32, event: Option<u32>, closed: bool, text: Value) {
        self.kept.0.insert(Source::Market(market), text.to_string());
        let market_id = 1_000 + u64::from(market);
        if self.texts.markets.len() == market as usize {
            let entry = MarketEntry { id: market_id, event, added: TimeMs(1), life: life(closed) };
            self.catalog.add_market(&entry, &self.kept);
        } else {
            self.catalog.put_market_text(market, event, &self.kept);
            self.catalog.set_life(market, life(closed));
        }
        put(&mut self.texts.markets, market, (event, closed, text));
        let tags = self.catalog.market(market).tags();
        let text = &self.kept.0[&Source::Market(market)];
        let weight = self.weight(Hit::Market(market));
        self.tags.extend(tags);
        let text = MarketText { market, event, market_id, text, tags, weight };
        self.search.put_market(&text).expect("put");
        self.tell();
    }

    fn put_tag(&mut self, row: u32, text: Value) {
        let key = event_key(&text.to_string()).expect("it has an id");
        self.kept.0.insert(Source::Row(row), text.to_string());
        put(&mut self.texts.tags, row, text);
        self.catalog.put_item(ItemKind::Tag, row, &self.kept);
        self.tags.insert(self.catalog.shelf(ItemKind::Tag).by_key(&key).expect("it is shown"));
        self.tell();
    }

    fn close(&mut self, market: u32, closed: bool) {
        self.texts.markets[market as usize].1 = closed;
        self.catalog.set_life(market, life(closed));
        self.tell();
    }

    fn trade(&mut self, market: u32, volume: u64) {
        self.catalog.trade(market, NOW, volume);
        self.tell();
    }

    /// Passes all tags and weights to the search; only the server knows which of them have changed.
    fn tell(&mut self) {
        for tag in &self.tags {
            let item = self.catalog.shelf(ItemKind::Tag).item(*tag);
            let text =
                item.shown().map(|shown| TagText { id: &item.key, label: &shown.label, slug: &shown.slug });
            self.search.put_tag(*tag, text.as_ref());
        }
        for hit in self.hits() {
            self.search.weigh(hit, self.weight(hit));
        }
    }

    fn hits(&self) -> Vec<Hit> {
        let events = (0..).zip(self.catalog.events()).map(|(number, _)| Hit::Event(number));
        let markets = (0..).zip(self.catalog.markets()).filter(|(_, market)| market.event.is_none());
        events.chain(markets.map(|(number, _)| Hit::Market(number))).collect()
    }

    fn weight(&self, hit: Hit) -> Weight {
        match hit {
            Hit::Event(event) => {
                let event = self.catalog.event(event);
                Weight { closed: event.is_closed(), volume: event.volume() }
            }
            Hit::Market(market) => {
                let market = self.catalog.market(market);
                Weight { closed: market.is_closed(), volume: market.volume() }
            }
        }
    }

    fn find(&mut self, query: &Query) -> Found {
        self.search.refresh().expect("refreshed");
        let mut found = self.search.find(query).expect("found");
        if let Some(page) = found.page.take() {
            assert_eq!(found.hits.len() as u64, found.hits_total);
            found.hits = self.catalog.page_of_hits(&found.hits, &page, NOW);
        }
        found
    }

    fn ids_of(&self, found: &Found) -> Vec<String> {
        let id = |hit: &Hit| match hit {
            Hit::Event(event) => self.catalog.event(*event).facts.id.clone(),
            Hit::Market(market) => self.catalog.market(*market).id.to_string(),
        };
        found.hits.iter().map(id).collect()
    }

    fn ids(&mut self, query: &Query) -> Vec<String> {
        let found = self.find(query);
        self.ids_of(&found)
    }

    fn tags(&mut self, query: &Query) -> Vec<(String, u64)> {
        let found = self.find(query);
        let shelf = self.catalog.shelf(ItemKind::Tag);
        found.tags.iter().map(|tag| (shelf.item(tag.tag).key.clone(), tag.event_count)).collect()
    }
}

/// The events of a table, one per line: id, open or closed, volume, title, and further fields.
fn events(table: &str) -> Vec<Value> {
    table
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            json!({
                "id": cells[0], "closed": cells[1] == "closed", "volume": cells[2].parse::<u64>().expect("a number"),
                "title": cells[3], "slug": cells[4], "description": cells[5],
            })
        })
        .collect()
}

#[test]
fn the_better_tier_comes_first_then_open_then_volume_then_the_lower_id() {
    let mut texts = Texts {
        tags: Vec::new(),
        events: events(
            "12 | open   |   5 | Rates                  | x            | fed rates fall soon
              9 | open   |  90 | Will the Fed cut?      | fed-rates    | rates
             10 | open   |   7 | Cut rates at the Fed   | x            | x
              3 | closed | 900 | Rates of the Fed       | x            | x
              4 | open   |   7 | Fed and rates          | x            | x
              2 | open   |   8 | Fed and no rates       | x            | x
              5 | closed |   1 | Fed rates              | x            | x
              6 | open   |   1 | Fed rates fall in May? | x            | x
              7 | closed |   2 | Fed ratesetters        | x            | x
             11 | open   |   3 | Central banks          | x            | x
              8 | open   |   3 | Gold                   | x            | x",
        ),
        markets: vec![
            (Some(9), false, json!({"question": "Will rates of the Fed fall?", "slug": "a"})),
            (Some(10), false, json!({"question": "Fed?", "slug": "a", "description": "rates"})),
        ],
    };
    // Event 8 has each word, but in two texts, so it is only found if nothing stricter is.
    texts.markets.push((None, false, json!({"question": "Rates (Fed)", "slug": "alone", "volume": "7.5"})));
    let mut world = texts.world();
    let found = world.find(&query("fed RATES"));
    let expected = ["5", "6", "7", "2", "1002", "4", "10", "3", "11", "9", "12", "8"];
    assert_eq!(world.ids_of(&found), expected);
    assert_eq!((found.hits_total, found.has_more), (12, false));
    assert_eq!(found.hits[4], Hit::Market(2));
}

#[test]
fn words_of_different_texts_and_typos_are_only_tried_if_nothing_stricter_is_there() {
    let mut texts = Texts { events: events("1 | open | 1 | Fed meeting | x | x"), ..Texts::default() };
    texts.markets = vec![(Some(0), false, json!({"question": "Will it be a hike?"}))];
    let mut world = texts.world();
    assert_eq!(world.ids(&query("fed hike")), ["1"]);
    assert_eq!(world.ids(&query("meetign hike")), ["1"]);
    world.put_event(1, json!({"id": "2", "title": "Fed hike"}));
    assert_eq!(world.ids(&query("fed hike")), ["2"]);
    // Words of three letters are taken literally, and so are numbers.
    for term in ["fid hike", "fed 2026"] {
        assert_eq!(world.find(&query(term)), Found::default(), "{term}");
    }
}

#[test]
fn a_word_that_is_known_is_only_taken_for_a_typo_if_nothing_else_helps() {
    let mut world = Texts {
        events: vec![
            json!({"id": "1", "title": "Form of the committee"}),
            json!({"id": "2", "title": "Letter from the committee"}),
        ],
        ..Texts::default()
    }
    .world();
    // "comittee" is in no text, "form" is in one: both events would match with typos in both.
    assert_eq!(world.ids(&query("form comittee")), ["1"]);
    // No text has both "letter" and "form", so "form" may be a typo of "from".
    assert_eq!(world.ids(&query("letter form committee")), ["2"]);
}

#[test]
fn a_query_may_have_typos_in_eight_of_its_words() {
    let title = "alpha bravo charlie delta golf hotel india juliett kilo";
    let mut world = Texts { events: vec![json!({"id": "1", "title": title})], ..Texts::default() }.world();
    for (typos, found) in [(0, true), (1, true), (8, true), (9, false)] {
        let mistyped = |(at, word): (usize, &str)| {
            if at < typos { word.replacen(char::is_alphabetic, "z", 1) } else { word.to_owned() }
        };
        let term: Vec<String> = title.split(' ').enumerate().map(mistyped).collect();
        assert_eq!(world.ids(&query(&term.join(" "))).len(), usize::from(found), "{typos} typos");
    }
}

#[test]
fn a_text_that_is_put_again_replaces_what_was_there() {
    let mut world = Texts {
        events: vec![
            json!({"id": "1", "title": "Gold", "tags": [{"id": "7", "label": "Metal", "slug": "metals"}]}),
        ],
        markets: vec![(None, false, json!({"question": "Silver above 50?", "tags": ["Metal"]}))],
        ..Texts::default()
    }
    .world();
    let tag = |id: &str, count: u64| (id.to_owned(), count);
    assert_eq!(world.tags(&query("metal")), [tag("7", 1), tag("metal", 1)]);
    world.put_event(0, json!({"id": "1", "title": "Copper"}));
    assert_eq!(world.ids(&query("gold")), [""; 0]);
    assert_eq!(world.ids(&query("copper")), ["1"]);
    assert_eq!(world.tags(&query("metal")), [tag("metal", 1)]);
    // A market that gets an event is no longer a hit of its own, and its tags are not counted.
    assert_eq!(world.ids(&query("silver")), ["1000"]);
    let text = world.texts.markets[0].2.clone();
    world.put_market(0, Some(0), false, text);
    assert_eq!(world.ids(&query("silver")), ["1"]);
    assert_eq!(world.tags(&query("metal")), [tag("metal", 0)]);
}

#[test]
fn an_event_is_closed_when_all_its_markets_are_whatever_its_text_says() {
    let mut world = Texts {
        events: vec![
            json!({"id": "1", "title": "Tea", "volume": 2, "closed": true}),
            json!({"id": "2", "title": "Tea"}),
        ],
        markets: vec![(Some(0), false, json!({"question": "a"})), (Some(0), true, json!({"question": "b"}))],
        ..Texts::default()
    }
    .world();
    assert_eq!(world.ids(&query("tea")), ["1", "2"]);
    world.close(0, true);
    assert_eq!(world.ids(&query("tea")), ["2", "1"]);
    world.close(0, false);
    assert_eq!(world.ids(&query("tea")), ["1", "2"]);
}

#[test]
fn what_is_traded_here_counts_beside_what_was_traded_before() {
    let mut world = Texts {
        events: vec![json!({"id": "1", "title": "Tea", "volume": 2}), json!({"id": "2", "title": "Tea"})],
        markets: vec![
            (Some(1), false, json!({"question": "a", "volume": "1.5"})),
            (None, false, json!({"question": "Tea", "volume": "1"})),
        ],
        ..Texts::default()
    }
    .world();
    assert_eq!(world.ids(&query("tea")), ["1", "2", "1001"]);
    world.trade(0, 500_001);
    assert_eq!(world.ids(&query("tea")), ["2", "1", "1001"]);
    world.trade(1, 1_000_001);
    assert_eq!(world.ids(&query("tea")), ["2", "1001", "1"]);
    world.trade(1, 1);
    assert_eq!(world.ids(&query("tea")), ["1001", "2", "1"]);
}

#[test]
fn a_creator_narrows_events_and_counts_of_tags() {
    let tags = json!([{"id": "7", "label": "Tea", "slug": "tea"}]);
    let mut world = Texts {
        events: vec![
            json!({"id": "1", "title": "Tea", "creator": "0xABCD", "tags": tags}),
            json!({"id": "2", "title": "Tea", "eventCreators": [{"id": "5", "creatorHandle": "Mia"}], "tags": tags}),
            json!({"id": "3", "title": "Tea", "tags": tags}),
        ],
        markets: vec![(Some(2), false, json!({"question": "a", "creator": "mia"}))],
        ..Texts::default()
    }
    .world();
    for (creator, expected) in
        [("0xabcd", vec!["1"]), ("MIA", vec!["2", "3"]), ("5", vec!["2"]), ("me", vec![])]
    {
        let filter = Filter { creator: Some(creator.to_owned()), ..Filter::default() };
        let of_creator = Query { filter, ..query("tea") };
        assert_eq!(world.ids(&of_creator), expected, "{creator}");
        let counts: Vec<_> = world.tags(&of_creator).into_iter().map(|(_, count)| count).collect();
        let count = expected.len() as u64;
        assert_eq!(counts, if count == 0 { vec![] } else { vec![count] }, "{creator}");
    }
}

#[test]
fn a_filter_leaves_out_what_it_names_and_pages_count_the_rest() {
    let tag = |id: &str, slug: &str| json!({"id": id, "label": slug, "slug": slug});
    let mut world = Texts {
        events: vec![
            json!({"id": "1", "title": "Tea", "closed": true, "tags": [tag("7", "drinks")]}),
            json!({"id": "2", "title": "Tea", "tags": [tag("7", "drinks"), tag("8", "green")]}),
            json!({"id": "3", "title": "Tea", "series": [{"id": "1", "recurrence": "Weekly"}]}),
        ],
        markets: vec![
            (None, true, json!({"question": "Tea", "tags": [tag("8", "green")]})),
            (None, false, json!({"question": "Tea"})),
        ],
        ..Texts::default()
    }
    .world();
    let none = Filter::default;
    let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    for (filter, expected) in [
        (none(), vec!["2", "3", "1001", "1", "1000"]),
        (Filter { closed: Some(true), ..none() }, vec!["1", "1000"]),
        (Filter { closed: Some(false), ..none() }, vec!["2", "3", "1001"]),
        (Filter { without_closed_markets: true, ..none() }, vec!["2", "3", "1001", "1"]),
        (Filter { tag_slugs: texts(&["drinks"]), ..none() }, vec!["2", "1"]),
        (Filter { tag_slugs: texts(&["green", "drinks"]), ..none() }, vec!["2", "1", "1000"]),
        (Filter { tag_slugs: texts(&["nothing"]), ..none() }, vec![]),
        (Filter { without_tag_ids: texts(&["7", "99"]), ..none() }, vec!["3", "1001", "1000"]),
        (Filter { recurrence: Some("weekly".into()), ..none() }, vec!["3"]),
        (Filter { tag_slugs: texts(&["drinks"]), without_tag_ids: texts(&["8"]), ..none() }, vec!["1"]),
    ] {
        let mut narrowed = Query { filter: filter.clone(), limit_per_type: 1, ..query("tea") };
        let mut walked = Vec::new();
        loop {
            let found = world.find(&narrowed);
            assert_eq!(found.hits_total, expected.len() as u64, "{filter:?}");
            walked.extend(world.ids_of(&found));
            narrowed.page += 1;
            if !found.has_more {
                break;
            }
        }
        assert_eq!(walked, expected, "{filter:?}");
    }
}

#[test]
fn another_order_is_that_of_the_catalog_s_column_and_pages_are_cut_out_of_it() {
    let mut world = Texts {
        events: vec![
            json!({"id": "1", "title": "Tea", "volume": 5, "closedTime": "2027-01-01T00:00:00Z"}),
            json!({"id": "2", "title": "Green tea", "volume": 9}),
            json!({"id": "3", "title": "x", "description": "tea", "closedTime": "2026-01-01T00:00:00Z"}),
        ],
        markets: vec![(
            None,
            false,
            json!({"question": "Tea", "volume": "7", "closedTime": "2028-01-01T00:00:00Z"}),
        )],
        ..Texts::default()
    }
    .world();
    for (column, direction, expected) in [
        (Column::Volume, Direction::Descending, ["2", "1000", "1", "3"]),
        (Column::Volume, Direction::Ascending, ["3", "1", "1000", "2"]),
        // A hit without a date comes last either way.
        (Column::ClosedTime, Direction::Ascending, ["3", "1", "1000", "2"]),
        (Column::ClosedTime, Direction::Descending, ["1000", "1", "3", "2"]),
    ] {
        let order = Some((column, direction));
        for limit_per_type in 1..=5 {
            let mut walked = Vec::new();
            for page in 1.. {
                let found = world.find(&Query { limit_per_type, page, order, ..query("tea") });
                walked.extend(world.ids_of(&found));
                if !found.has_more {
                    break;
                }
            }
            assert_eq!(walked, expected, "{column:?} {direction:?} by {limit_per_type}");
        }
    }
}

#[test]
fn tags_are_found_by_label_and_slug_the_label_itself_first() {
    let tagged = |id: &str, tags: Value| json!({"id": id, "title": "t", "tags": tags});
    let tag = |id: &str, label: &str| json!({"id": id, "label": label, "slug": format!("{id}-slug")});
    let mut world = Texts {
        events: vec![
            tagged(
                "1",
                json!([tag("20", "US Politics"), tag("3", "Politics of Peru"), tag("30", "Politics")]),
            ),
            tagged("2", json!([tag("20", "US Politics"), tag("4", "Politics in Mali"), tag("4", "twice")])),
        ],
        ..Texts::default()
    }
    .world();
    let mut found = |term: &str, limit: u64, page: u64| {
        let tags = world.tags(&Query { limit_per_type: limit, page, ..query(term) });
        tags.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(found("politics", 9, 1), ["30", "3", "4", "20"]);
    assert_eq!(found("politics", 2, 1), ["30", "3"]);
    assert_eq!(found("politics", 2, 2), ["4", "20"]);
    assert_eq!(found("poltics", 9, 1), ["20", "3", "4", "30"]);
    assert_eq!(found("4 slug", 9, 1), ["4"]);
    assert_eq!(found("mal", 9, 1), ["4"]);
}

#[test]
fn a_tag_that_came_by_itself_is_found_and_its_newest_text_shown() {
    let mut world = Texts {
        events: vec![
            json!({"id": "1", "title": "Gold", "tags": [{"id": "7", "label": "Metal", "slug": "metal"}]}),
        ],
        tags: vec![
            json!({"id": "7", "label": "Metals", "slug": "metals", "updatedAt": "2026-01-01T00:00:00Z"}),
            json!({"id": "8", "label": "Metal bands", "slug": "metal-bands"}),
        ],
        ..Texts::default()
    }
    .world();
    let tag = |id: &str, count: u64| (id.to_owned(), count);
    assert_eq!(world.tags(&query("metal")), [tag("7", 1), tag("8", 0)]);
    assert_eq!(world.tags(&query("metals")), [tag("7", 1)]);
    assert_eq!(world.tags(&query("bans metal")), [tag("8", 0)], "with a typo");
    assert_eq!(world.tags(&Query { with_tags: false, ..query("metals") }), []);
    let filter = Filter { creator: Some("me".into()), ..Filter::default() };
    assert_eq!(world.tags(&Query { filter, ..query("metal") }), [], "nobody's tags");
    world.put_tag(1, json!({"id": "8", "label": "Rock bands", "slug": "rock"}));
    assert_eq!(world.tags(&query("metal")), [tag("7", 1)]);
    assert_eq!(world.tags(&query("rock")), [tag("8", 0)]);
}

#[test]
fn whatever_is_typed_finds_what_its_letters_and_digits_say() {
    let titles = [
        ("1", "Élection présidentielle: qui gagne?"),
        ("2", "東京オリンピック 2036"),
        ("3", "Will \"Dune\" win? (don't)"),
        ("4", "Rocket \u{1f680} to $1.5M by Q4"),
        ("5", "The of and a"),
        ("6", "Ærø, Łódź & Straße"),
        ("7", "Москва: снег"),
        ("8", "aa"),
    ];
    let events = titles.map(|(id, title)| json!({"id": id, "title": title}));
    let mut world = Texts { events: events.to_vec(), ..Texts::default() }.world();
    let long = "a".repeat(super::TERM_BYTES_MAX);
    let words = "the of and a ".repeat(super::TERM_BYTES_MAX / 13);
    for (term, expected) in [
        ("", vec![]),
        ("   ", vec![]),
        ("?!\"'()*:\\^~", vec![]),
        ("\u{1f680}", vec![]),
        ("\u{0}\u{301}", vec![]),
        ("rocket \u{1f680} to", vec!["4"]),
        ("$1.5m", vec!["4"]),
        ("q4 rocket!!!", vec!["4"]),
        ("\"dune\"", vec!["3"]),
        ("\"win dune\"", vec!["3"]),
        ("dune AND win", vec![]),
        ("don't", vec!["3"]),
        ("don t", vec!["3"]),
        ("title:dune", vec![]),
        ("dune*", vec!["3"]),
        ("election presidentielle", vec!["1"]),
        ("E\u{301}LECTION", vec!["1"]),
        ("aero lodz strasse", vec!["6"]),
        ("МОСКВА", vec!["7"]),
        ("снeг", vec!["7"]),
        ("東京", vec!["2"]),
        ("京東", vec!["2"]),
        ("オリ", vec!["2"]),
        ("東京2036", vec!["2"]),
        ("the of and a", vec!["5"]),
        ("of the", vec!["5"]),
        (&words, vec!["5"]),
        // One letter: the beginning of any word of a title.
        ("d", vec!["3"]),
        ("w", vec!["3"]),
        ("a", vec!["6", "8", "5"]),
        ("г", vec![]),
        ("с", vec!["7"]),
        // A letter that is said twice counts as a whole word.
        ("a a", vec!["5"]),
        (&long, vec![]),
    ] {
        assert_eq!(world.ids(&query(term)), expected, "{term:?}");
    }
}
