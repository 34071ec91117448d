//! Searching a catalog as large as the venue's: 164,000 markets.
//!
//! Texts are made here, the same every time: events of four markets, titles and questions of common
//! and rare words (the n-th word is drawn with a weight of 1/n, as in real text), descriptions of a
//! hundred words. Before criterion times anything, the index is built once, and the seconds and the
//! memory that this took are printed. Then queries of every kind are run in turn, so that hardly
//! any is still cached from its last run, and the median and the 99th percentile of each kind are
//! printed.
//!
//! Beside the index, a naive scan over the same folded texts must find as many events.
//!
//! A good number, set before the first run: a search that leaves time for the next person typing,
//! so a median below 1 ms and a 99th percentile below 10 ms, on one core; and an index that is
//! built in less than a minute.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]
#![allow(missing_docs, reason = "criterion's macros make items without any")]

#[path = "loopback/figures.rs"]
mod figures;
#[path = "loopback/status.rs"]
mod status;

use criterion::{Criterion, criterion_group, criterion_main};
use outcry::catalog::search::{EventText, Filter, MarketText, Query, Search, TagText, Weight};
use std::hint::black_box;
use std::time::Instant;

const MARKETS: u32 = 164_000;
const MARKETS_PER_EVENT: u32 = 4;
const WORDS: usize = 30_000;
const WORDS_OF_DESCRIPTION: usize = 100;

/// Searches of each kind for the percentiles.
const SEARCHES: usize = 400;

/// A small random generator, the same everywhere.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// A number below `WORDS`, the small ones more often: 1/n by inverting the integral of 1/n.
    fn rank(&mut self) -> usize {
        #[allow(clippy::cast_precision_loss, reason = "a share between 0 and 1")]
        let share = self.next() as f64 / (1_u64 << 53) as f64;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank is from 1 to WORDS"
        )]
        let rank = (WORDS as f64).powf(share) as usize;
        rank.min(WORDS) - 1
    }
}

/// The word of a rank: letters only, longer if it is rarer.
fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 20] = [
        "ka", "lo", "mi", "tu", "re", "so", "va", "ne", "di", "po", "gar", "bel", "tor", "min", "sul", "fen",
        "rak", "hol", "zim", "qua",
    ];
    let mut text = String::new();
    let mut rest = rank + 20;
    while 0 < rest {
        text.push_str(SYLLABLES[rest % 20]);
        rest /= 20;
    }
    text
}

fn sentence(draw: &mut Draw, words: usize) -> String {
    (0..words).map(|_| word(draw.rank())).collect::<Vec<_>>().join(" ")
}

struct Corpus {
    events: Vec<String>,
    markets: Vec<String>,
    /// What each event is ranked by.
    weights: Vec<Weight>,
    /// The words of the event and of its markets, text by text, and the titles for queries.
    texts: Vec<Vec<String>>,
    titles: Vec<String>,
}

const TAGS: u32 = 500;

fn label(tag: u32) -> String {
    word(100 + tag as usize)
}

fn corpus() -> Corpus {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let mut corpus = Corpus {
        events: Vec::new(),
        markets: Vec::new(),
        weights: Vec::new(),
        texts: Vec::new(),
        titles: Vec::new(),
    };
    for number in 0..MARKETS / MARKETS_PER_EVENT {
        let words = 4 + draw.below(7);
        let title = sentence(&mut draw, words);
        let description = sentence(&mut draw, WORDS_OF_DESCRIPTION);
        let slug = title.replace(' ', "-");
        let weight = Weight { volume: draw.below(1_000_000) as u64, closed: draw.below(4) != 0 };
        let label = label(number % TAGS);
        corpus.events.push(format!(
            r#"{{"id":"{number}","ticker":"{slug}","slug":"{slug}","title":"{title}","description":"{description}",
                "volume":{},"closed":{},"tags":[{{"id":"{tag}","label":"{label}","slug":"{label}"}}]}}"#,
            weight.volume,
            weight.closed,
            tag = number % TAGS,
        ));
        corpus.weights.push(weight);
        let mut texts = vec![format!("{title} {description} {label}")];
        for _ in 0..MARKETS_PER_EVENT {
            let question = format!("{title} {}", sentence(&mut draw, 3));
            let slug = question.replace(' ', "-");
            let description = sentence(&mut draw, WORDS_OF_DESCRIPTION);
            corpus.markets.push(format!(
                r#"{{"question":"{question}","slug":"{slug}","description":"{description}","volume":"1.5"}}"#
            ));
            texts.push(format!("{question} {description}"));
        }
        corpus.texts.push(texts);
        corpus.titles.push(title);
    }
    corpus
}

fn built(corpus: &Corpus) -> Search {
    let mut search = Search::new(1).unwrap();
    for tag in 0..TAGS {
        let label = label(tag);
        search.put_tag(tag, Some(&TagText { id: &tag.to_string(), label: &label, slug: &label }));
    }
    for ((event, text), weight) in (0..).zip(&corpus.events).zip(&corpus.weights) {
        search.put_event(&EventText { event, text, tags: &[event % TAGS], weight: *weight }).unwrap();
    }
    for (market, text) in (0..).zip(&corpus.markets) {
        let event = Some(market / MARKETS_PER_EVENT);
        let (market_id, weight) = (u64::from(market), Weight::default());
        search.put_market(&MarketText { market, event, market_id, text, tags: &[], weight }).unwrap();
    }
    search.refresh().unwrap();
    search
}

/// The resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    status::bytes(std::process::id(), "VmRSS:").unwrap() >> 10
}

fn query(term: &str) -> Query {
    Query {
        term: term.to_owned(),
        limit_per_type: 25,
        page: 1,
        with_tags: true,
        filter: Filter::default(),
        order: None,
    }
}

/// How many events have a text with every word of `term`, the last of which may be unfinished.
fn naive_total(corpus: &Corpus, term: &str) -> u64 {
    let words: Vec<&str> = term.split(' ').collect();
    let (last, others) = words.split_last().unwrap();
    let has_all = |text: &String| {
        others.iter().all(|wanted| text.split(' ').any(|word| word == *wanted))
            && text.split(' ').any(|word| word.starts_with(last))
    };
    corpus.texts.iter().filter(|texts| texts.iter().any(has_all)).count() as u64
}

/// A kind of query, and how to make one.
type Kind = (&'static str, fn(&Corpus, &mut Draw) -> String);

const KINDS: [Kind; 7] = [
    ("a whole title", |corpus, draw| corpus.titles[draw.below(corpus.titles.len())].clone()),
    ("half a title", |corpus, draw| {
        let title = &corpus.titles[draw.below(corpus.titles.len())];
        title[..title.len() / 2].trim_end().to_owned()
    }),
    ("one rare word", |_, draw| word(WORDS / 10 + draw.below(WORDS / 2))),
    ("one common word", |_, draw| word(draw.below(20))),
    ("two letters", |_, draw| word(draw.below(20))[..2].to_owned()),
    ("a title with a typo", |corpus, draw| {
        let title = &corpus.titles[draw.below(corpus.titles.len())];
        let longest = title.split(' ').max_by_key(|word| word.len()).unwrap();
        title.replacen(longest, &format!("{}x{}", &longest[..3], &longest[3..]), 1)
    }),
    ("512 bytes of typos", |_, draw| {
        let mut term = String::new();
        while term.len() < 512 {
            let word = word(draw.below(WORDS));
            term.extend([&word[..2], "x", &word[2..], " "]);
        }
        term.truncate(512);
        term
    }),
];

fn percentiles(corpus: &Corpus, search: &mut Search) {
    let mut draw = Draw(7);
    let mut micros: Vec<Vec<u128>> = vec![Vec::new(); KINDS.len() + 1];
    let mut timed = |query: &Query| {
        let start = Instant::now();
        black_box(search.find(query).unwrap());
        start.elapsed().as_micros()
    };
    for _ in 0..SEARCHES {
        for (place, (_, make)) in KINDS.iter().enumerate() {
            micros[place].push(timed(&query(&make(corpus, &mut draw))));
        }
        let common = query(&word(draw.below(20)));
        timed(&common);
        micros[KINDS.len()].push(timed(&Query { page: 2, ..common }));
    }
    let names = KINDS.iter().map(|(name, _)| *name).chain(["the next page of one common word"]);
    for (name, mut micros) in names.zip(micros) {
        micros.sort_unstable();
        let at = |percent: usize| micros[(micros.len() - 1) * percent / 100];
        eprintln!("{name}: p50 {} µs, p99 {} µs, max {} µs", at(50), at(99), at(100));
        for percent in [50, 99] {
            let micros = u32::try_from(at(percent)).unwrap();
            figures::note(format!("{name}, p{percent}"), micros.into(), figures::Unit::Us);
        }
    }
}

fn search(criterion: &mut Criterion) {
    let corpus = corpus();
    let before_kib = resident_kib();
    let start = Instant::now();
    let mut search = built(&corpus);
    let seconds = start.elapsed().as_secs_f64();
    let grown_mib = (resident_kib() - before_kib) / 1024;
    eprintln!("{MARKETS} markets in {} events: {seconds:.1} s, {grown_mib} MiB", corpus.events.len());
    figures::note(format!("index of {MARKETS} markets built"), seconds, figures::Unit::S);
    percentiles(&corpus, &mut search);

    let title = corpus.titles[4_711].clone();
    for (name, term) in [("a whole title", title), ("one rare word", word(WORDS / 3))] {
        let total = naive_total(&corpus, &term);
        assert!(0 < total, "{term} is there");
        assert_eq!(search.find(&query(&term)).unwrap().hits_total, total, "{term}");
        let mut group = criterion.benchmark_group(name);
        group.bench_function("index, remembered", |bencher| {
            let query = query(&term);
            bencher.iter(|| black_box(search.find(&query).unwrap()));
        });
        group.sample_size(10);
        group.bench_function("naive scan", |bencher| {
            bencher.iter(|| assert_eq!(naive_total(&corpus, &term), total));
        });
        group.finish();
    }
}

criterion_group!(benches, search);
criterion_main!(benches);
