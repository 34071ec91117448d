//! A catalog as large as the largest venue's: 164,000 markets, made from the real rows that lie beside
//! the repository, or from the sample catalog where those are absent, with ids of their own.
//!
//! `cargo bench --bench catalog -- [--markets N] [--seed N] [--file PATH] [import | lists]`
//!
//! - `import` runs the command against a running exchange, twice: the second run must change nothing.
//!   It prints seconds, rows a second, the CPU time of each part, and the most memory of either side.
//! - `lists` prints how long each step of an import takes within one thread, and what a page of each
//!   list costs; beside every list of markets the obvious twin, which parses every text for every request and
//!   must find the same. Nothing is traded there, so no volume of a day is added up.
//! - With `--file PATH` the rows are written there and kept. Without `import` or `lists` both are run.
//!
//! A good number: a venue's whole catalog within ten seconds on two cores, with a client whose memory
//! stays below a fifth of the file; a page of 100 in the default order within a millisecond, in any
//! other order within the time that a read may wait.

#![allow(clippy::print_stdout, reason = "it says what it measured")]

use outcry::catalog::{
    Begin, Catalog, Column, Direction, Event, Filter, Import, ImportedMarket, Life, Market, MarketDefaults,
    MarketEntry, Page, Source, Texts,
};
use outcry::domain::{FeeSchedule, Mode, Shares, Tick, TimeMs};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[path = "loopback/figures.rs"]
mod figures;
#[path = "loopback/folder.rs"]
mod folder;
#[path = "catalog/import.rs"]
mod import;
#[path = "catalog/rows.rs"]
mod rows;
#[path = "loopback/status.rs"]
mod status;

const MARKETS: u64 = 164_000;
const SEED: u64 = 7;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let value = |flag: &str| words.iter().skip_while(|word| *word != flag).nth(1);
    let number = |flag: &str, default: u64| {
        value(flag).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{flag}: a number")))
    };
    let (count, seed) = (number("--markets", MARKETS), number("--seed", SEED));
    let markets = usize::try_from(count).expect("64 bits");
    let folder = folder::on_disk();
    let file = value("--file").map_or_else(|| folder.path().join("markets.json"), PathBuf::from);
    let bytes = rows::write(&file, 0..count, seed);
    println!("{markets} markets, {} MiB, seed {seed}", bytes >> 20);
    let all = !words.iter().any(|word| word == "import" || word == "lists");
    if all || words.iter().any(|word| word == "import") {
        import::measure(&file, markets, rows::FIRST_ID + count - 1);
    }
    if all || words.iter().any(|word| word == "lists") {
        let text = std::fs::read(&file).expect("just written");
        let tick = Tick::new(100).expect("0.01 is a tick");
        let defaults = MarketDefaults { tick, min_size: Shares(5_000_000), fee: FeeSchedule::FREE };
        let import = timed("read the file", markets, || {
            Import::read(&text, &defaults).expect("the rows are Gamma JSON")
        });
        assert_eq!((import.markets().len(), import.refused().len()), (markets, 0));
        drop(text);
        let (catalog, rows) = timed("build the catalog", markets, || built(&import));
        lists(&catalog, &rows);
    }
}

/// Does `work` and prints how long it took, and how many of `count` things that is a second.
#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn timed<T>(what: &str, count: usize, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    let seconds = start.elapsed().as_secs_f64();
    println!("{what}: {seconds:.2} s, {:.0} markets/s", count as f64 / seconds);
    figures::note(format!("{what}, {count} markets"), seconds, figures::Unit::S);
    done
}

/// The texts, in place of the ledger's.
struct Rows<'a>(&'a Import);

impl Texts for Rows<'_> {
    fn text(&self, source: Source) -> &str {
        match source {
            Source::Event(event) => &self.0.events()[event as usize].text,
            Source::Market(market) => &self.0.markets()[market as usize].text,
            Source::Row(item) => &self.0.items()[item as usize].text,
        }
    }

    fn added(&self, _: Source) -> TimeMs {
        TimeMs(1)
    }
}

fn built(import: &Import) -> (Catalog, Rows<'_>) {
    let (mut catalog, rows) = (Catalog::default(), Rows(import));
    let mut numbers = HashMap::new();
    for (event, number) in import.events().iter().zip(0_u32..) {
        catalog.put_event(number, &rows);
        numbers.insert(event.key.as_str(), number);
    }
    for market in import.markets() {
        let event = market.event.as_deref().and_then(|key| numbers.get(key)).copied();
        let life = if market.mode == Mode::Open { Life::Open } else { Life::Over(TimeMs(1)) };
        let id = market.market_id.expect("every row has a number");
        catalog.add_market(&MarketEntry { id, event, added: TimeMs(1), life }, &rows);
    }
    (catalog, rows)
}

/// Lists: what they are ordered by, and whether they begin in the middle.
const LISTS: [(&str, &[Column], bool); 8] = [
    ("newest ids", &[], false),
    ("volume", &[Column::Volume], false),
    // Nothing was traded, so all are equal in it.
    ("the day's volume", &[Column::Volume24hr], false),
    ("end date", &[Column::EndDate], false),
    ("question", &[Column::Question], false),
    ("newest ids, from the middle", &[], true),
    ("volume, from the middle", &[Column::Volume], true),
    ("question, from the middle", &[Column::Question], true),
];

/// A list is made so often, and the median counts.
const TIMES: usize = 9;

fn lists(catalog: &Catalog, rows: &Rows<'_>) {
    let open = Filter { closed: Some(false), ..Filter::default() };
    for (what, columns, from_middle) in LISTS {
        let offset = if from_middle { catalog.markets().len() / 2 } else { 0 };
        let page = Page {
            columns: columns.to_vec(),
            direction: Direction::Descending,
            begin: Begin::Offset(offset as u64),
            limit: 100,
        };
        let twin = Instant::now();
        let expected = naive(rows.0.markets(), columns, offset);
        let twin = twin.elapsed();
        let (fast, found) = median(|| catalog.list_markets(&open, &page, TimeMs(2)));
        let ids: Vec<u64> = found.iter().map(|market| id_of(catalog.market(*market))).collect();
        assert_eq!(ids, expected, "{what}");
        println!("100 markets by {what}: {fast:?}; naive {twin:?}");
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let name = format!("100 markets by {what}");
        figures::note_beside(name, micros(fast), figures::Unit::Us, "naive", micros(twin));
        let (took, events) = median(|| catalog.list_events(&open, &page, TimeMs(2)));
        let are_open = catalog.events().iter().filter(|event| is_open(event)).count();
        assert_eq!(events.len(), 100.min(are_open.saturating_sub(offset)));
        println!("100 events by {what}: {took:?}");
        if !events.is_empty() {
            figures::note(format!("100 events by {what}"), micros(took), figures::Unit::Us);
        }
    }
    let no_markets = Filter { featured: Some(true), cyom: Some(true), ..Filter::default() };
    let page = Page { limit: 100, ..Page::default() };
    let (took, found) = median(|| catalog.list_markets(&no_markets, &page, TimeMs(2)));
    assert!(found.is_empty(), "no market has both flags");
    println!("a list of markets that none is in: {took:?}");
    figures::note("a list of markets that none is in", took.as_secs_f64() * 1e6, figures::Unit::Us);
}

/// How long `work` takes, and what it makes.
fn median<T>(work: impl Fn() -> T) -> (Duration, T) {
    let mut times: Vec<Duration> = Vec::new();
    loop {
        let start = Instant::now();
        let made = work();
        times.push(start.elapsed());
        if times.len() == TIMES {
            times.sort_unstable();
            return (times[TIMES / 2], made);
        }
    }
}

const fn id_of(market: &Market) -> u64 {
    market.id
}

fn is_open(event: &Event) -> bool {
    !event.is_closed()
}

/// The ids of 100 open markets in an order from `offset` on, found by parsing everything.
fn naive(markets: &[ImportedMarket], columns: &[Column], offset: usize) -> Vec<u64> {
    let mut keyed: Vec<(u64, String, u64)> = markets
        .iter()
        .map(|market| {
            let row: serde_json::Value = serde_json::from_str(&market.text).expect("JSON");
            let volume = row["volumeNum"].to_string();
            let (whole, places) = volume.split_once('.').unwrap_or((&volume, ""));
            let millionths = format!("{whole}{places:0<6.6}").parse().unwrap_or(0);
            let id = row["id"].as_str().and_then(|id| id.parse().ok()).expect("a number");
            let end = row["endDate"].as_str().unwrap_or_default().to_owned();
            match columns.first() {
                Some(Column::Volume) => (millionths, String::new(), id),
                Some(Column::EndDate) => (0, end, id),
                Some(Column::Question) => (0, row["question"].as_str().unwrap_or_default().to_owned(), id),
                _ => (0, String::new(), id),
            }
        })
        .collect();
    keyed.sort_by(|one, other| other.cmp(one));
    keyed.into_iter().skip(offset).take(100).map(|(_, _, id)| id).collect()
}
