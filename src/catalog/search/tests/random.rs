//! Seeded catalogs and queries, compared with a naive scorer that reads every text for every query.

use super::*;

/// A small generator, which draws the same numbers everywhere.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).expect("31 bits") % bound
    }

    fn words(&mut self, most: usize) -> String {
        const WORDS: [&str; 28] = [
            "fed",
            "rate",
            "rates",
            "cut",
            "May",
            "June",
            "Bitcoin",
            "bitcoins",
            "Ethereum",
            "gold",
            "Gözde",
            "élection",
            "elections",
            "Paris",
            "peace",
            "treaty",
            "2025",
            "2026",
            "win",
            "wins",
            "winner",
            "a",
            "ceasefire",
            "Trump",
            "東京",
            "\u{1f680}",
            "don't",
            "(x)",
        ];
        let count = self.below(most + 1);
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(if self.below(4) == 0 { "-" } else { " " })
    }

    fn event(&mut self, number: usize) -> Value {
        json!({
            "id": (number * 7 % 101).to_string(), "title": self.words(4), "slug": self.words(2),
            "description": self.words(6), "closed": self.below(3) == 0, "volume": self.below(4),
            "tags": self.tags(), "creator": (["", "mia", "0xab"][self.below(3)]),
            "series": if self.below(3) == 0 { json!([{"id": "1", "recurrence": "Daily"}]) } else { json!([]) },
        })
    }

    fn tags(&mut self) -> Value {
        let count = self.below(3);
        (0..count).map(|_| self.tag()).collect()
    }

    fn tag(&mut self) -> Value {
        const TAGS: [(&str, &str, &str); 4] = [
            ("1", "Fed", "fed"),
            ("2", "Elections", "all-elections"),
            ("3", "Gold rates", "gold"),
            ("4", "Peace", "p"),
        ];
        let (id, label, slug) = TAGS[self.below(TAGS.len())];
        json!({"id": id, "label": label, "slug": slug})
    }

    fn filter(&mut self) -> Filter {
        let some = |is: bool, text: &str| is.then(|| text.to_owned());
        Filter {
            creator: some(self.below(6) == 0, ["MIA", "0xAB"][self.below(2)]),
            closed: [None, None, None, None, Some(true), Some(false)][self.below(6)],
            without_closed_markets: self.below(4) == 0,
            tag_slugs: some(self.below(6) == 0, ["fed", "gold"][self.below(2)]).into_iter().collect(),
            without_tag_ids: some(self.below(4) == 0, ["1", "2"][self.below(2)]).into_iter().collect(),
            recurrence: some(self.below(8) == 0, "daily"),
        }
    }

    fn market(&mut self, events: usize) -> (Option<u32>, bool, Value) {
        let event = (self.below(4) > 0).then(|| u32::try_from(self.below(events)).expect("few"));
        let text = json!({
            "question": self.words(4), "slug": self.words(2), "description": self.words(5),
            "volume": self.below(4).to_string(), "tags": self.tags(),
        });
        (event, self.below(3) == 0, text)
    }

    /// Words of the corpus, perhaps with an edit, perhaps with the last one cut short.
    fn term(&mut self) -> String {
        let mut letters: Vec<char> = (self.words(3) + " win").chars().collect();
        if self.below(2) == 0 {
            letters.truncate(letters.len() - 4);
        }
        if self.below(4) == 0 {
            letters.extend([' ', ['b', 'r', 'e', 'p'][self.below(4)]]);
        }
        for _ in 0..self.below(3) {
            let at = self.below(letters.len().max(1));
            match self.below(3) {
                0 if at < letters.len() => drop(letters.remove(at)),
                1 if at + 1 < letters.len() => letters.swap(at, at + 1),
                _ => letters.insert(at, 'q'),
            }
        }
        letters.into_iter().collect()
    }
}

/// A hit as the naive scorer sees it.
struct NaiveHit {
    hit: Hit,
    id: String,
    title: String,
    weight: Weight,
    /// The markets of an event.
    questions: Vec<String>,
    /// The title or question of each text, and the whole text.
    texts: Vec<(String, String)>,
    tags: Vec<(String, String)>,
    creators: Vec<String>,
    recurs: bool,
}

fn said(text: &Value, name: &str) -> String {
    text[name].as_str().unwrap_or("").to_owned()
}

fn naive_tags(text: &Value) -> BTreeSet<(String, String)> {
    text["tags"].as_array().into_iter().flatten().map(|tag| (said(tag, "id"), said(tag, "slug"))).collect()
}

fn naive_hits(world: &World) -> Vec<NaiveHit> {
    let all = |text: &Value, names: &[&str]| -> String {
        let labels = text["tags"].as_array().into_iter().flatten();
        let labels = labels.map(|tag| said(tag, "label") + " " + &said(tag, "slug") + " ");
        names.iter().map(|name| said(text, name) + " ").chain(labels).collect()
    };
    let texts = &world.texts;
    let mut hits = Vec::new();
    for (number, event) in (0..).zip(&texts.events) {
        let mine = || texts.markets.iter().filter(|market| market.0 == Some(number));
        let mut all_texts = vec![(said(event, "title"), all(event, &["title", "slug", "description"]))];
        // The tags of a market that has an event are not words of its text.
        let words = |text: &Value| {
            let mut text = text.clone();
            text["tags"] = json!([]);
            all(&text, &["question", "slug", "description"])
        };
        all_texts.extend(mine().map(|market| (said(&market.2, "question"), words(&market.2))));
        hits.push(NaiveHit {
            hit: Hit::Event(number),
            id: said(event, "id"),
            title: said(event, "title"),
            weight: world.weight(Hit::Event(number)),
            questions: mine().map(|market| said(&market.2, "question")).collect(),
            texts: all_texts,
            tags: naive_tags(event).into_iter().collect(),
            creators: vec![said(event, "creator")],
            recurs: event["series"][0]["recurrence"] == "Daily",
        });
    }
    for (number, (event, _, text)) in (0..).zip(&texts.markets) {
        if event.is_none() {
            hits.push(NaiveHit {
                hit: Hit::Market(number),
                id: (1_000 + number).to_string(),
                title: said(text, "question"),
                weight: world.weight(Hit::Market(number)),
                questions: Vec::new(),
                texts: vec![(said(text, "question"), all(text, &["question", "slug", "description"]))],
                tags: naive_tags(text).into_iter().collect(),
                creators: vec![],
                recurs: false,
            });
        }
    }
    hits
}

fn naive_passes(hit: &NaiveHit, filter: &Filter) -> bool {
    let is_market = matches!(hit.hit, Hit::Market(_));
    filter.creator.as_ref().is_none_or(|creator| hit.creators.contains(&creator.to_lowercase()))
        && filter.closed.is_none_or(|closed| closed == hit.weight.closed)
        && !(filter.without_closed_markets && is_market && hit.weight.closed)
        && (filter.tag_slugs.is_empty() || hit.tags.iter().any(|(_, slug)| filter.tag_slugs.contains(slug)))
        && !hit.tags.iter().any(|(id, _)| filter.without_tag_ids.contains(id))
        && (filter.recurrence.is_none() || hit.recurs)
}

/// True if a text has every word; a beginning of one or two letters counts only in the heading.
fn text_has_all(wanted: &Wanted, heading: &str, text: &str, edits: &Edits) -> bool {
    let (heading, text) = (words::words(heading), words::words(text));
    wanted.words().iter().zip(edits).all(|(word, edits_max)| {
        let short = word.text.chars().count() < 3;
        let fits = |other: &String, unfinished| {
            words::edits(&word.text, other, unfinished) <= usize::from(*edits_max)
        };
        heading.iter().any(|other| fits(other, word.unfinished))
            || text.iter().any(|other| fits(other, word.unfinished && !short))
    })
}

/// The ids of everything that is found, in order, by the rules of the room's doc, one by one.
fn naive(world: &World, term: &str, filter: &Filter) -> Vec<String> {
    let wanted = Wanted::new(term);
    if wanted.is_empty() {
        return Vec::new();
    }
    let everything = naive_hits(world);
    let is_known = |word: &words::Word| {
        let mut texts = everything.iter().flat_map(|hit| &hit.texts);
        texts.any(|(_, text)| {
            words::words(text)
                .iter()
                .any(|other| other == &word.text || (word.unfinished && other.starts_with(&word.text)))
        })
    };
    let unknown =
        wanted.words().iter().map(|word| if is_known(word) { 0 } else { words::typos_max(&word.text) });
    let hits: Vec<_> = everything.iter().filter(|hit| naive_passes(hit, filter)).collect();
    let few = |edits: &words::Edits| {
        edits.iter().filter(|edits| 0 < **edits).count() <= super::super::WORDS_WITH_TYPOS_MAX
    };
    for edits in [wanted.no_edits(), unknown.collect(), wanted.edits_max()].into_iter().filter(few) {
        let exact = edits == wanted.no_edits();
        let has_all = |text: &String| wanted.all_in(&words::words(text), &edits);
        let text_has_all = |heading: &str, text: &str| text_has_all(&wanted, heading, text, &edits);
        let tier = |hit: &NaiveHit| match hit {
            hit if has_all(&hit.title) && exact => Some(wanted.title_tier(&words::folded(&hit.title))),
            hit if has_all(&hit.title) => Some(2),
            hit if hit.questions.iter().any(has_all) => Some(3),
            hit if hit.texts.iter().any(|(heading, text)| text_has_all(heading, text)) => Some(4),
            _ => None,
        };
        let across = |hit: &NaiveHit| {
            let (headings, texts): (Vec<_>, Vec<_>) = hit.texts.iter().cloned().unzip();
            text_has_all(&headings.join(" "), &texts.join(" ")).then_some(5)
        };
        for pass in [&tier as &dyn Fn(&NaiveHit) -> Option<u8>, &across] {
            let mut found: Vec<_> = hits.iter().filter_map(|hit| Some((pass(hit)?, hit))).collect();
            found.sort_by_key(|(tier, hit)| {
                let id: u64 = hit.id.parse().expect("a number");
                let number = match hit.hit {
                    Hit::Event(event) => 2 * event,
                    Hit::Market(market) => 2 * market + 1,
                };
                (*tier, hit.weight.closed, Reverse(hit.weight.volume), id, number)
            });
            if !found.is_empty() {
                return found.into_iter().map(|(_, hit)| hit.id.clone()).collect();
            }
        }
    }
    Vec::new()
}

/// The tags that are found without typos, in order.
fn naive_tag_ids(world: &World, term: &str) -> Vec<(String, u64)> {
    let wanted = Wanted::new(term);
    let texts = &world.texts;
    let events = texts.events.iter();
    let alone = texts.markets.iter().filter(|market| market.0.is_none()).map(|market| &market.2);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for text in events.clone().chain(alone) {
        for (id, _) in naive_tags(text) {
            *counts.entry(id).or_default() += 1;
        }
    }
    let markets = texts.markets.iter().map(|market| &market.2);
    let nested = events.chain(markets).filter_map(|text| text["tags"].as_array()).flatten();
    let mut tags: BTreeMap<String, &Value> = BTreeMap::new();
    tags.extend(nested.chain(&texts.tags).map(|tag| (said(tag, "id"), tag)));
    let mut found: Vec<_> = tags
        .into_iter()
        .filter(|(_, tag)| {
            let words = words::words(&(said(tag, "label") + " " + &said(tag, "slug")));
            !wanted.is_empty() && wanted.all_in(&words, &wanted.no_edits())
        })
        .map(|(id, tag)| {
            let count = counts.get(&id).copied().unwrap_or(0);
            (wanted.title_tier(&words::folded(&said(tag, "label"))), Reverse(count), id)
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, Reverse(count), id)| (id, count)).collect()
}

/// Changes something: a text, the event of a market, what is closed or traded, a tag.
fn change(world: &mut World, draw: &mut Draw) {
    let events = world.texts.events.len();
    let event = draw.below(events);
    let text = draw.event(event);
    world.put_event(u32::try_from(event).expect("few"), text);
    if draw.below(3) == 0 {
        let row = draw.below(world.texts.tags.len() + 1);
        let mut tag = draw.tag();
        if let Some(old) = world.texts.tags.get(row) {
            tag["id"] = old["id"].clone();
            tag["label"] = old["label"].clone();
            tag["slug"] = old["slug"].clone();
        }
        world.put_tag(u32::try_from(row).expect("few"), tag);
    }
    if world.texts.markets.is_empty() {
        return;
    }
    let market = u32::try_from(draw.below(world.texts.markets.len())).expect("few");
    match draw.below(3) {
        0 => {
            let (event, closed, text) = draw.market(events);
            world.put_market(market, event, closed, text);
        }
        1 => world.close(market, draw.below(2) == 0),
        _ => world.trade(market, draw.below(3_000_000) as u64),
    }
}

#[test]
fn random_catalogs_are_searched_as_the_naive_scorer_does() {
    let mut passes: BTreeMap<usize, usize> = BTreeMap::new();
    for seed in 1..=40_u64 {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let events = 1 + draw.below(12);
        let texts = Texts {
            events: (0..events).map(|number| draw.event(number)).collect(),
            markets: (0..draw.below(24)).map(|_| draw.market(events)).collect(),
            tags: Vec::new(),
        };
        let mut world = texts.world();
        for round in 0..30 {
            if round % 5 == 4 {
                change(&mut world, &mut draw);
            }
            let term = match draw.below(12) {
                chosen @ 0..4 => ["fed", "all elec", "gold rat", "pea"][chosen].to_owned(),
                _ => draw.term(),
            };
            let filter = if round % 2 == 0 { Filter::default() } else { draw.filter() };
            let expected = naive(&world, &term, &filter);
            let query = Query { filter, ..query(&term) };
            let found = world.find(&query);
            assert_eq!(world.ids_of(&found), expected, "seed {seed}, round {round}: {query:?}");
            assert_eq!(found.hits_total, expected.len() as u64);
            *passes.entry(expected.len().min(2)).or_default() += 1;
            let pages = pages(&mut world, &query, 1 + draw.below(4));
            assert_eq!(pages, expected, "seed {seed}, round {round}: {query:?} page by page");
            sorted(&mut world, &query, &expected);
            let tags = naive_tag_ids(&world, &term);
            if query.filter.creator.is_none() && !tags.is_empty() {
                assert_eq!(world.tags(&query), tags, "seed {seed}, round {round}: {term}");
                *passes.entry(9).or_default() += 1;
            }
        }
    }
    assert!(passes.values().all(|&count| 100 < count), "hardly anything was tried: {passes:?}");
}

/// The ids on all pages, until one says that it is the last.
fn pages(world: &mut World, query: &Query, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    for page in 1.. {
        let found = world.find(&Query { limit_per_type: limit as u64, page, ..query.clone() });
        all.extend(world.ids_of(&found));
        if !found.has_more {
            let behind = Query { limit_per_type: limit as u64, page: page + 1, ..query.clone() };
            assert!(world.ids(&behind).is_empty(), "{query:?}: something is behind the last page");
            break;
        }
        assert_eq!(found.hits.len(), limit, "{query:?}: a page before the last is full");
    }
    all
}

/// Checks that a search ordered by volume finds the same hits.
fn sorted(world: &mut World, query: &Query, expected: &[String]) {
    let order = Some((Column::Volume, Direction::Ascending));
    let found = world.find(&Query { order, ..query.clone() });
    let mut volumes: Vec<u64> = found.hits.iter().map(|hit| world.weight(*hit).volume).collect();
    assert!(volumes.is_sorted(), "{query:?}: {volumes:?}");
    volumes.clear();
    let (mut ids, mut expected) = (world.ids_of(&found), expected.to_vec());
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected, "{query:?}");
}
