//! What the operator's listener reports of the process's work: `/metrics` as Prometheus reads it, and percentiles as
//! people and HDR histogram tools do.

use std::fmt::Write;

use hdrhistogram::Histogram as Hdr;

use super::admin::write_json;
use super::request::Refusal;
use crate::domain::Position;
use crate::http::Query;
use crate::http::respond::{ContentType, Extras, Response};
use crate::journal::Log;
use crate::json::Writer;
use crate::limits::Limited;
use crate::server::connections::connection::Door;
use crate::server::core_loop::{CoreLoop, tables};
use crate::server::threads::shared::Shared;
use crate::server::threads::tally::{JournalTally, Tally};
use crate::stats::{Histogram, LARGEST_NS, Stage};

/// Upper bounds of the buckets in `/metrics`, in nanoseconds, and as Prometheus wants them, in seconds.
const BOUNDS: [(u64, &str); 19] = [
    (1_000, "0.000001"),
    (2_000, "0.000002"),
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (20_000, "0.00002"),
    (30_000, "0.00003"),
    (50_000, "0.00005"),
    (75_000, "0.000075"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (1_000_000_000, "1"),
    (10_000_000_000, "10"),
];

/// What loops report besides the stages.
const OTHERS: [&str; 5] = ["total", "read", "send", "turn", "away"];
/// The journal's thread.
const JOURNAL: &str = "journal";
/// What it reports.
const OF_JOURNAL: [&str; 2] = ["write", "run_delay"];

/// A number of one loop.
type Number = fn(&Tally) -> u64;

/// The percentiles of each histogram.
const QUANTILES: [(&str, f64); 4] = [("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999)];

/// What a thread reports.
struct Told<'a> {
    thread: &'a str,
    /// By their names.
    histograms: Vec<(&'static str, &'a Histogram)>,
    /// Only of a loop.
    stalls: Option<u64>,
}

/// The histograms of one loop by name: the stages, then [`OTHERS`].
fn histograms(tally: &Tally) -> Vec<(&'static str, &Histogram)> {
    let others = [&tally.total, &tally.reads, &tally.sends, &tally.turns, &tally.away];
    let stages = Stage::ALL.map(Stage::name).into_iter().zip(&tally.stages);
    stages.chain(OTHERS.into_iter().zip(others)).collect()
}

/// The loops, then the journal's thread.
fn threads(shared: &Shared) -> impl Iterator<Item = Told<'_>> {
    let JournalTally { writes, run_delay, .. } = &*shared.journal_tally;
    let of_journal = OF_JOURNAL.into_iter().zip([writes, run_delay]).collect();
    let journal = Told { thread: JOURNAL, histograms: of_journal, stalls: None };
    let loops = shared.tallies.iter().zip(&shared.plan.topology.loops).map(|(tally, plan)| Told {
        thread: &plan.name,
        histograms: histograms(tally),
        stalls: Some(tally.stalls.get()),
    });
    loops.chain([journal])
}

/// `GET /metrics`.
pub(crate) fn write(out: &mut Vec<u8>, core: &mut CoreLoop, extras: &Extras<'_>) {
    let mut page = Page(String::with_capacity(64 << 10));
    process(&mut page, core);
    loops(&mut page, core);
    durations(&mut page, core);
    let response = Response::begin(out, 200, ContentType::Text, extras);
    out.extend_from_slice(page.0.as_bytes());
    response.finish(out);
}

/// A page in Prometheus' text format.
struct Page(String);

impl Page {
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    fn number(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.about(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes everything");
    }
}

fn process(page: &mut Page, core: &mut CoreLoop) {
    connections(page, &core.shared);
    disk(page, &core.shared);
    if let Some(marks) = &mut core.marks {
        let mark = marks.advance();
        log(page, marks.log(), mark, core.shared.plan.log_bytes);
        reads(page, core);
    }
    let name = "outcry_table_max";
    page.about(name, "gauge", "What tables have room for; in each shard, but for wallets and markets.");
    for (table, max) in tables::sizes(&core.shared.plan.limits) {
        page.line(format_args!("{name}{{table=\"{table}\"}} {max}"));
    }
    page.about("outcry_limited_requests_total", "counter", "Requests that rate limits held or refused.");
    for (what, limited) in Limited::NAMES {
        let count = core.shared.limits.counted(limited);
        page.line(format_args!("outcry_limited_requests_total{{what=\"{what}\"}} {count}"));
    }
}

fn connections(page: &mut Page, shared: &Shared) {
    let connections = shared.house.inside().into();
    page.number("outcry_connections", "gauge", "Connections that are open.", connections);
    let name = "outcry_connections_refused_total";
    let help = "Connections closed at once because a listener, or their address, had as many as it may.";
    page.about(name, "counter", help);
    for (listener, door) in [("http", Door::Public), ("admin", Door::Admin)] {
        let count = shared.house.turned_away(door);
        page.line(format_args!("{name}{{listener=\"{listener}\"}} {count}"));
    }
    let help = "Bytes of large answers and of what streams hold that clients have not read yet, and of large requests.";
    page.number("outcry_held_bytes", "gauge", help, shared.held.bytes() as u64);
    let told = shared.told().0;
    page.number("outcry_acknowledged_position", "gauge", "Log position that clients were told of.", told);
}

fn disk(page: &mut Page, shared: &Shared) {
    let writes = shared.journal_tally.writes.counts().map(|(_, count)| count).sum();
    page.number("outcry_journal_writes_total", "counter", "Batches of frames written to the disk.", writes);
    let help = "For how long the disk has had the write that is under way; 0 if there is none.";
    let writes_for_ms = shared.journal_tally.writes_for_ns(shared.clock.elapsed_ns()) / 1_000_000;
    page.number("outcry_journal_write_milliseconds", "gauge", help, writes_for_ms);
}

fn log(page: &mut Page, log: &Log, mark: Position, bytes: u64) {
    for (name, help, at) in [
        ("marked", "Log position up to which answers may leave.", mark),
        ("claimed", "Log position up to which frames are begun.", log.claimed()),
        ("durable", "Log position up to which the disk holds frames.", log.durable()),
    ] {
        page.number(&format!("outcry_{name}_position"), "gauge", help, at.0);
    }
    page.number("outcry_log_bytes", "gauge", "Size of the log ring.", bytes);
    let huge_bytes = log.huge_bytes() as u64;
    page.number("outcry_log_huge_bytes", "gauge", "How much of the log lies in huge pages.", huge_bytes);
    let help =
        "1 if the log's file was removed or renamed under committed, so that answers wait for the disk.";
    page.number("outcry_log_lost", "gauge", help, log.is_lost().into());
    page.number("outcry_log_room_bytes", "gauge", "Room for new frames in the log ring.", log.room());
}

/// What the reader knows, and the feed where it is apart.
fn reads(page: &mut Page, core: &CoreLoop) {
    let shared = &core.shared;
    if let Some(reading) = core.follows.reading() {
        let ledger = reading.reader().ledger();
        let behind_s = ledger.time().0.saturating_sub(shared.clock.now().0) / 1_000;
        let help = "How far the machine's clock is behind the newest frame.";
        page.number("outcry_clock_behind_seconds", "gauge", help, behind_s);
        let applied = reading.applied().0;
        page.number("outcry_applied_position", "gauge", "Log position that reads know of.", applied);
        let unreadable = reading.unreadable();
        let help = "Old rows that could not be read.";
        page.number("outcry_history_unreadable_total", "counter", help, unreadable);
        let archived = "Orders and signed splits, merges and redeems in snapshots' archives.";
        for (name, help, count) in [
            ("wallets", "Wallets, of sizes.wallets.", ledger.wallets().len()),
            ("markets", "Markets, over or not, of sizes.markets.", ledger.markets().len()),
            ("orders_in_memory", "Orders in the reader's memory.", ledger.orders_in_memory()),
            ("acts_in_memory", "Signed splits, merges and redeems there.", ledger.acts_in_memory()),
            ("archived_rows", archived, ledger.archive().rows()),
        ] {
            page.number(&format!("outcry_{name}"), "gauge", help, count as u64);
        }
    }
    let topology = &shared.plan.topology;
    if topology.feed_loop() != topology.reader_loop() {
        let feed = shared.snapshots.handover(topology.feed_loop());
        let help = "Log position that streams know of; the feed is apart from the reader.";
        page.number("outcry_feed_position", "gauge", help, feed.applied().0);
        let help = "Orders in the memory of the feed, apart from the reader's.";
        page.number("outcry_feed_orders_in_memory", "gauge", help, feed.orders());
    }
}

fn loops(page: &mut Page, core: &CoreLoop) {
    let loops = || core.shared.tallies.iter().zip(&core.shared.plan.topology.loops);
    page.about(
        "outcry_requests_total",
        "counter",
        "Whole requests taken from sockets of the public listener, upgrades included.",
    );
    for (tally, plan) in loops() {
        for (kind, count) in [("trading", &tally.trading), ("reading", &tally.reading)] {
            let (place, count) = (&plan.name, count.get());
            page.line(format_args!("outcry_requests_total{{loop=\"{place}\",kind=\"{kind}\"}} {count}"));
        }
    }
    let name = "outcry_known_signer_checks_total";
    page.about(
        name,
        "counter",
        "Signatures by what tables of known signers said; only a hit needs no recovery.",
    );
    for (tally, plan) in loops() {
        let known = &tally.known_signers;
        let results = [("hit", &known.hits), ("fallback", &known.fallbacks), ("miss", &known.misses)];
        for (result, count) in results {
            let (place, count) = (&plan.name, count.get());
            page.line(format_args!("{name}{{loop=\"{place}\",result=\"{result}\"}} {count}"));
        }
    }
    let numbers: [(&str, &str, &str, Number); 10] = [
        ("answers_total", "counter", "Answers released.", |tally| tally.answers.get()),
        ("stalls_total", "counter", "Turns with work that took over a millisecond.", |tally| {
            tally.stalls.get()
        }),
        ("loop_connections", "gauge", "Connections on this loop.", |tally| tally.connections.get()),
        ("undecided_requests", "gauge", "Trading requests under way.", |tally| tally.undecided.get()),
        ("questions_in_flight", "gauge", "Questions to other loops without answer.", |tally| {
            tally.in_flight.get()
        }),
        ("resting_orders", "gauge", "Orders that rest in the loop's shard.", |tally| tally.resting.get()),
        ("positions", "gauge", "Positions in the loop's shard, of sizes.positions.", |tally| {
            tally.positions.get()
        }),
        ("books_bytes", "gauge", "Bytes of the books of the loop's shard, of sizes.books_bytes.", |tally| {
            tally.books_bytes.get()
        }),
        (
            "digests",
            "gauge",
            "Digests that the loop's shard remembers, of sizes.digests; then the oldest give way.",
            |tally| tally.digests.get(),
        ),
        (
            "known_signer_tables_total",
            "counter",
            "Tables of known signers that became whole; some were given to others since.",
            |tally| tally.known_signers.tables.get(),
        ),
    ];
    for (name, kind, help, number) in numbers {
        page.about(&format!("outcry_{name}"), kind, help);
        for (tally, plan) in loops() {
            page.line(format_args!("outcry_{name}{{loop=\"{}\"}} {}", plan.name, number(tally)));
        }
    }
}

fn durations(page: &mut Page, core: &CoreLoop) {
    let name = "outcry_duration_seconds";
    page.about(
        name,
        "histogram",
        "What requests, sends, turns and the journal's writes took, and for how long spinning loops and the journal's \
         thread had no CPU, by stage. total is what recv to journal are together, so stages are not to be added up.",
    );
    for Told { thread, histograms, .. } in threads(&core.shared) {
        for (stage, histogram) in histograms {
            let labels = format!("loop=\"{thread}\",stage=\"{stage}\"");
            let mut counts = histogram.counts().peekable();
            let mut count = 0;
            if counts.peek().is_none() {
                continue;
            }
            for (bound_ns, le) in BOUNDS {
                while let Some((_, more)) = counts.next_if(|&(longest_ns, _)| longest_ns <= bound_ns) {
                    count += more;
                }
                page.line(format_args!("{name}_bucket{{{labels},le=\"{le}\"}} {count}"));
            }
            count += counts.map(|(_, more)| more).sum::<u64>();
            page.line(format_args!("{name}_bucket{{{labels},le=\"+Inf\"}} {count}"));
            let (whole, part) = (histogram.sum_ns() / 1_000_000_000, histogram.sum_ns() % 1_000_000_000);
            page.line(format_args!("{name}_sum{{{labels}}} {whole}.{part:09}"));
            page.line(format_args!("{name}_count{{{labels}}} {count}"));
        }
    }
}

/// `GET /debug/latency`: percentiles of every loop and of the journal's thread in nanoseconds, as JSON. With
/// `counts=true` also the buckets themselves, `[longest_ns, count]` each: two answers show what came in between.
pub(crate) fn latency(out: &mut Vec<u8>, core: &CoreLoop, query: Query<'_>, extras: &Extras<'_>) {
    let counts = query.first("counts").map_or("false", |value| value.raw());
    if !matches!(counts, "true" | "false") {
        let refusal = Refusal::new(400, "invalid_field", "counts", counts, "true or false");
        return write_json(out, 400, extras, |json| {
            json.raw(&refusal.said().body);
        });
    }
    write_json(out, 200, extras, |json| percentiles(json, core, counts == "true"));
}

fn percentiles(json: &mut Writer<'_>, core: &CoreLoop, with_counts: bool) {
    json.open_array();
    for Told { thread, histograms, stalls } in threads(&core.shared) {
        json.open_object().key("loop").text(thread).key("stages").open_object();
        for (stage, histogram) in histograms {
            let hdr = merged([histogram].into_iter());
            json.key(stage).open_object().key("count").number(hdr.len());
            // A bucket stands for its longest duration, which may be longer than any that was measured.
            let max_ns = histogram.max_ns();
            for (name, quantile) in QUANTILES {
                json.key(name).number(hdr.value_at_quantile(quantile).min(max_ns));
            }
            json.key("max_ns").number(max_ns);
            if with_counts {
                json.key("counts").open_array();
                for (longest_ns, count) in histogram.counts() {
                    json.open_array().number(longest_ns).number(count).close_array();
                }
                json.close_array();
            }
            json.close_object();
        }
        json.close_object();
        if let Some(stalls) = stalls {
            json.key("stalls").number(stalls);
        }
        json.close_object();
    }
    json.close_array();
}

/// `GET /debug/latency.hgrm?stage=total&loop=outcry-shard0`: the percentile distribution that HDR histogram
/// plotters read, in microseconds; without `loop` of all of them together.
pub(crate) fn hgrm(out: &mut Vec<u8>, core: &CoreLoop, query: Query<'_>, extras: &Extras<'_>) {
    let found = asked(core, query).map(|asked| distribution(&asked));
    let (status, text) = match found {
        Ok(text) => (200, text),
        Err(text) => (400, text),
    };
    let response = Response::begin(out, status, ContentType::Text, extras);
    out.extend_from_slice(text.as_bytes());
    response.finish(out);
}

/// The histograms that a query means, or what is wrong with the query.
fn asked<'a>(core: &'a CoreLoop, query: Query<'_>) -> Result<Vec<&'a Histogram>, String> {
    let word = |name: &'static str| {
        let text = query.first(name).map(|value| value.text(&mut Vec::new()).map(str::to_owned));
        text.transpose().map_err(|_| format!("{name}: its escapes are malformed\n"))
    };
    let stage = word("stage")?.unwrap_or_else(|| "total".to_owned());
    let place = word("loop")?;
    let known: Vec<Told<'_>> = threads(&core.shared).collect();
    if let Some(place) = place.as_ref().filter(|place| known.iter().all(|told| told.thread != **place)) {
        let names: Vec<&str> = known.iter().map(|told| told.thread).collect();
        return Err(format!("loop: got {place}; allowed: {}\n", names.join(", ")));
    }
    let asked = known.iter().filter(|told| place.as_ref().is_none_or(|place| place == told.thread));
    let (mut names, mut found) = (Vec::new(), Vec::new());
    for &(name, histogram) in asked.flat_map(|told| &told.histograms) {
        if !names.contains(&name) {
            names.push(name);
        }
        if name == stage {
            found.push(histogram);
        }
    }
    if found.is_empty() {
        return Err(format!("stage: got {stage}; allowed: {}\n", names.join(", ")));
    }
    Ok(found)
}

/// Histograms merged into one of the crate's, with two digits, which is what ours keep.
fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Hdr<u64> {
    let mut hdr = Hdr::new_with_bounds(1, LARGEST_NS, 2).expect("the bounds are in order");
    for (longest_ns, count) in histograms.flat_map(Histogram::counts) {
        hdr.record_n(longest_ns, count).expect("LARGEST_NS is the bound");
    }
    hdr
}

/// In how many parts each bucket is divided; all buckets but the first share the lower half of theirs with others.
fn sub_buckets(hdr: &Hdr<u64>) -> usize {
    2 * hdr.distinct_values() / (usize::from(hdr.buckets()) + 1)
}

/// The lines of `outputPercentileDistribution`, five for every halving of what is left.
fn distribution(asked: &[&Histogram]) -> String {
    let hdr = merged(asked.iter().copied());
    // As in `/debug/latency`, a bucket's end may be longer than any duration that was measured.
    let max_ns = asked.iter().map(|histogram| histogram.max_ns()).max().unwrap_or(0);
    let micros = |ns: f64| ns / 1e3;
    #[allow(clippy::cast_precision_loss, reason = "below 2^36")]
    let value = |ns: u64| micros(ns.min(max_ns) as f64);
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut line =
        |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string takes everything");
    let mut total = 0;
    for step in hdr.iter_quantiles(5) {
        total += step.count_since_last_iteration();
        let (at, quantile) = (value(step.value_iterated_to()), step.quantile_iterated_to());
        if quantile < 1.0 {
            line(format_args!("{at:12.3} {quantile:14.12} {total:10} {:14.2}", 1.0 / (1.0 - quantile)));
        } else {
            line(format_args!("{at:12.3} {quantile:14.12} {total:10}"));
        }
    }
    line(format_args!(
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n\
         #[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]",
        micros(hdr.mean()),
        micros(hdr.stdev()),
        value(max_ns),
        hdr.len(),
        hdr.buckets(),
        sub_buckets(&hdr)
    ));
    text
}
