//! What an answer, and the operator's listener, report about the time that requests take.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use std::collections::BTreeMap;

use common::exchange::{Exchange, Plan, sample};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::{Answer, Connection};
use outcry::auth::KnownSigners;
use outcry::domain::SignatureType;
use serde_json::json;

/// How often `/metrics` is read for a value that must appear.
const LOOKS_MAX: usize = 1_000;

/// The words of `Server-Timing`, in their order.
const STAGES: [&str; 8] = ["recv", "parse", "auth", "sign", "queue", "match", "journal", "total"];

struct Site {
    exchange: Exchange,
    connection: Connection,
    trader: Trader,
    tokens: Vec<String>,
    condition: String,
    _folder: tempfile::TempDir,
}

impl Site {
    fn start(shards: u16, settings: &[&str]) -> Self {
        let folder = folder();
        let plan = Plan::dev(folder.path()).set("cpu.policy=unpinned").set(&format!("cpu.shards={shards}"));
        let exchange = settings.iter().fold(plan, |plan, setting| plan.set(setting)).start();
        let mut connection = exchange.connect();
        let trader = Trader::new(KEYS[1], &mut connection);
        let markets = exchange.read("/simplified-markets");
        let markets = markets["data"].as_array().unwrap();
        let condition = markets[0]["condition_id"].as_str().unwrap().to_owned();
        let tokens =
            markets.iter().map(|market| market["tokens"][0]["token_id"].as_str().unwrap().to_owned());
        let plain = |text: &String| exchange.read(&format!("/neg-risk?token_id={text}"))["neg_risk"] == false;
        let tokens = tokens.filter(plain).take(8).collect();
        Self { exchange, connection, trader, tokens, condition, _folder: folder }
    }

    fn order(&mut self, text: &str) -> common::trader::Signed {
        self.trader.sign(&Wish::buy(token(text), 100, 5_000_000))
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.connection.send(&self.trader.request(method, path, body)).unwrap();
        self.connection.answer().unwrap()
    }

    fn operator(&self, path: &str) -> Answer {
        Connection::open(self.exchange.admin).request("GET", path, "", b"").unwrap()
    }

    /// The samples of `/metrics`: everything before the last blank, and the value.
    fn metrics(&self) -> BTreeMap<String, f64> {
        let text = self.exchange.metrics();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.map(|line| line.rsplit_once(' ').unwrap());
        samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }

    /// How many durations of a stage `/metrics` counts, on all loops together.
    fn count(&self, stage: &str) -> f64 {
        let stage = format!("stage=\"{stage}\"}}");
        let metrics = self.metrics();
        let counts = metrics.iter().filter(|(name, _)| name.starts_with("outcry_duration_seconds_count"));
        counts.filter(|(name, _)| name.ends_with(&stage)).map(|(_, count)| count).sum()
    }

    /// Hits, fallbacks, misses and whole tables of the first shard's loop.
    fn known_signers(&self) -> [u64; 4] {
        let page = self.exchange.metrics();
        let shard = "loop=\"outcry-shard0\"";
        let [hits, fallbacks, misses] = ["hit", "fallback", "miss"].map(|result| {
            sample(&page, &format!("outcry_known_signer_checks_total{{{shard},result=\"{result}\"}}"))
        });
        [hits, fallbacks, misses, sample(&page, &format!("outcry_known_signer_tables_total{{{shard}}}"))]
    }
}

/// The signature in an order's body.
fn signature(body: &str) -> String {
    let (_, tail) = body.split_once("\"signature\":\"").unwrap();
    tail.split('"').next().unwrap().to_owned()
}

/// Milliseconds by stage, as an answer's header says.
fn timing(answer: &Answer) -> BTreeMap<String, f64> {
    let header =
        answer.header("Server-Timing").unwrap_or_else(|| panic!("no Server-Timing: {}", answer.head));
    let parts = header.split(',').map(|part| {
        let (name, duration) = part.trim().split_once(";dur=").unwrap();
        (name.to_owned(), duration.trim().parse().unwrap())
    });
    let parts: Vec<(String, f64)> = parts.collect();
    let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, STAGES, "{header}");
    parts.into_iter().collect()
}

#[test]
fn every_trading_answer_says_where_its_time_went_and_the_parts_are_the_whole() {
    for shards in [1, 2] {
        let mut site = Site::start(shards, &[]);
        let mut ids = Vec::new();
        let mut answers = Vec::new();
        for text in site.tokens.clone() {
            let order = site.order(&text);
            answers.push(("an order", true, site.ask("POST", "/order", &order.body)));
            ids.push(order.id_text);
        }
        let batch: Vec<String> = (0..3).map(|at| site.order(&site.tokens[at].clone()).body).collect();
        answers.push(("a batch", true, site.ask("POST", "/orders", &format!("[{}]", batch.join(",")))));
        for id in ids {
            let body = json!({ "orderID": id }).to_string();
            answers.push(("a cancel", false, site.ask("DELETE", "/order", &body)));
        }
        answers.push(("all cancelled", false, site.ask("DELETE", "/cancel-all", "")));
        answers.push(("a refused body", false, site.ask("POST", "/order", "{}")));
        for (act, what) in ["a split", "a merge"].into_iter().enumerate() {
            let act = u8::try_from(act).unwrap();
            answers.push((
                what,
                true,
                site.trader.act(&mut site.connection, act, &site.condition, 1_000_000),
            ));
        }
        let wallet = (site.trader.address, SignatureType::Eoa);
        let [one, other] = [1_000_000, 2_000_000].map(|amount| {
            let (_, body) = site.trader.sign_act(0, wallet, &site.condition, amount);
            body
        });
        let forged = one.replace(&signature(&one), &signature(&other));
        answers.push(("a forged split", true, site.ask("POST", "/positions/split", &forged)));
        let statuses: Vec<u16> = answers.iter().map(|(_, _, answer)| answer.status).collect();
        assert!(statuses.ends_with(&[400, 200, 200, 400]), "{statuses:?}");
        for (what, signs, answer) in &answers {
            let timing = timing(answer);
            let parts: f64 = STAGES[..7].iter().map(|stage| timing[*stage]).sum();
            // Each of eight values is cut to a ten-thousandth.
            assert!((timing["total"] - parts).abs() < 0.001, "{what}: {timing:?}");
            assert!(0.0 < timing["total"], "{what}: {timing:?}");
            // A curve operation takes microseconds on any machine; a request without one must
            // report none.
            assert_eq!(0.0 < timing["sign"], *signs, "{what}: {timing:?}");
            assert!(0.0 < timing["auth"], "{what}: {timing:?}");
            assert!(!signs || answer.status != 200 || 0.0 < timing["match"], "{what}: {timing:?}");
        }
    }
}

#[test]
fn a_request_that_nobody_signed_for_is_timed_too() {
    let mut site = Site::start(1, &[]);
    let answer = site.connection.request("POST", "/order", "", b"{}").unwrap();
    assert_eq!((answer.status, timing(&answer)["sign"] > 0.0), (401, false));
    // The wrong body under a signature is found by the HMAC, which is of `auth`.
    let mut forged = site.trader.request("POST", "/order", "{}");
    *forged.last_mut().unwrap() = b' ';
    site.connection.send(&forged).unwrap();
    let answer = site.connection.answer().unwrap();
    assert_eq!((answer.status, timing(&answer)["auth"] > 0.0), (401, true));
}

#[test]
fn the_header_can_be_switched_off_and_reads_have_none() {
    let mut site = Site::start(1, &["metrics.server_timing=false"]);
    let text = site.tokens[0].clone();
    let order = site.order(&text);
    for (method, path, body) in [("POST", "/order", order.body.as_str()), ("DELETE", "/cancel-all", "")] {
        let answer = site.ask(method, path, body);
        assert_eq!((answer.status, answer.header("Server-Timing")), (200, None), "{path}");
    }
    // What clients are not told is counted for the operator nevertheless.
    assert!(0.0 < site.count("total"));
    let mut told = Site::start(1, &[]);
    let answer = told.connection.request("GET", "/ok", "", b"").unwrap();
    assert_eq!(answer.header("Server-Timing"), None);
}

#[test]
fn the_operator_sees_every_request_once_and_buckets_that_only_grow() {
    for shards in [1, 2] {
        let mut site = Site::start(shards, &[]);
        let before = ["total", "sign", "match", "journal", "recv"].map(|stage| site.count(stage));
        let tokens = site.tokens.clone();
        let mut orders = 0;
        for text in tokens.iter().cycle().take(40) {
            let order = site.order(text);
            assert_eq!(site.ask("POST", "/order", &order.body).json()["status"], "live");
            orders += 1;
        }
        let after = ["total", "sign", "match", "journal", "recv"].map(|stage| site.count(stage));
        for (one, other) in before.into_iter().zip(after) {
            assert!((other - one - f64::from(orders)).abs() < 0.5, "{shards} shards: {one}, {other}");
        }
        let metrics = site.metrics();
        let buckets = |stage: &str, place: &str| -> Vec<f64> {
            let begins = format!("outcry_duration_seconds_bucket{{loop=\"{place}\",stage=\"{stage}\",le=\"");
            let found = metrics.iter().filter_map(|(name, count)| {
                let bound = name.strip_prefix(&begins)?.strip_suffix("\"}")?;
                Some((bound.parse::<f64>().unwrap(), *count))
            });
            let mut found: Vec<(f64, f64)> = found.collect();
            found.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert_eq!(found.last().map(|(bound, _)| *bound), Some(f64::INFINITY), "{stage}");
            found.into_iter().map(|(_, count)| count).collect()
        };
        let total = buckets("total", "outcry-shard0");
        assert!(
            total.is_sorted()
                && Some(&total[total.len() - 1])
                    == metrics.get("outcry_duration_seconds_count{loop=\"outcry-shard0\",stage=\"total\"}"),
            "{total:?}"
        );
        let resting: f64 = metrics
            .iter()
            .filter(|(name, _)| name.starts_with("outcry_resting_orders"))
            .map(|(_, count)| count)
            .sum();
        assert!(f64::from(orders) <= resting, "{resting} rest, of which {orders} are ours");
    }
}

#[test]
fn the_operator_sees_who_checked_the_signatures() {
    // Two accounts have quoted the sample markets before, neither often enough to become known.
    for (room, hits_and_fallbacks, tables, misses_min) in [(0, [0, 0], 0, 0), (3, [15, 1], 1, 65)] {
        let bytes = room * KnownSigners::TABLE_BYTES;
        let mut site = Site::start(1, &[&format!("auth.known_signers_bytes={bytes}")]);
        let text = site.tokens[0].clone();
        let orders: Vec<_> = (0..80).map(|_| site.order(&text)).collect();
        for order in &orders {
            assert_eq!(site.ask("POST", "/order", &order.body).status, 200);
        }
        let (last, forged) = (&orders[79], site.order(&text));
        let body = forged.body.replace(&signature(&forged.body), &signature(&last.body));
        assert_eq!(site.ask("POST", "/order", &body).status, 400, "another order's signature");

        // A loop counts a turn after its answers have left.
        let mut looks = std::iter::repeat_with(|| site.known_signers()).take(LOOKS_MAX);
        let counted = looks.find(|counts| counts[..2] == hits_and_fallbacks);
        let counted = counted.unwrap_or_else(|| site.known_signers());
        assert_eq!(counted[..2], hits_and_fallbacks, "hits and fallbacks of {counted:?}");
        assert_eq!(counted[3], tables, "whole tables of {counted:?}");
        assert!(misses_min <= counted[2] && (room != 0 || counted[2] == 0), "misses of {counted:?}");
    }
}

#[test]
fn percentiles_come_as_json_and_as_a_distribution_that_plotters_read() {
    let mut site = Site::start(2, &[]);
    for text in site.tokens.clone() {
        let order = site.order(&text);
        assert_eq!(site.ask("POST", "/order", &order.body).status, 200);
    }
    let loops = site.operator("/debug/latency").json();
    let of = |stage: &str, name: &str| -> Vec<u64> {
        let loops = loops.as_array().unwrap().iter();
        loops.filter_map(|one| one["stages"][stage][name].as_u64()).collect()
    };
    assert_eq!(of("total", "count").len(), 3, "two shards and the reader: {loops}");
    for at in 0..3 {
        let ladder = ["p50_ns", "p90_ns", "p99_ns", "p999_ns"].map(|name| of("total", name)[at]);
        assert!(ladder.is_sorted(), "{ladder:?}");
    }
    assert!(of("write", "count").len() == 1 && 0 < of("write", "count")[0], "the journal's thread: {loops}");
    assert_eq!(of("turn", "count").len(), of("total", "count").len(), "{loops}");
    let all: u64 = of("total", "count").iter().sum();
    let text = String::from_utf8(site.operator("/debug/latency.hgrm").body).unwrap();
    let total = text.rsplit_once("Total count    =").unwrap().1.trim_start();
    assert_eq!(total.split(']').next().unwrap().parse(), Ok(all), "{text}");
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(2)
        .take_while(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    for column in 0..3 {
        assert!(rows.iter().map(|row| row[column]).is_sorted(), "{text}");
    }
    let last = rows.last().unwrap();
    assert!((last[1] - 1.0).abs() < 1e-9 && format!("{}", last[2]) == all.to_string(), "{text}");
    let after = |name: &str| -> String {
        let (_, rest) = text.split_once(name).unwrap();
        rest.trim_start_matches([' ', '=']).split([',', ']']).next().unwrap().to_owned()
    };
    let max_us =
        std::time::Duration::from_nanos(of("total", "max_ns").into_iter().max().unwrap()).as_secs_f64() * 1e6;
    assert_eq!((after("Max"), after("SubBuckets")), (format!("{max_us:.3}"), "256".to_owned()), "{text}");
    assert!(last[0] <= max_us + 0.001, "no value is longer than the longest: {text}");
    for (query, status, begins) in [
        ("?stage=sign&loop=outcry-shard0", 200, "       Value     Percentile TotalCount"),
        ("?stage=write&loop=journal", 200, "       Value     Percentile TotalCount"),
        ("?stage=lunch", 400, "stage: got lunch; allowed: recv, parse,"),
        ("?stage=write&loop=outcry-shard0", 400, "stage: got write; allowed: recv, parse,"),
        ("?stage=total&loop=journal", 400, "stage: got total; allowed: write, run_delay\n"),
        (
            "?loop=core9",
            400,
            "loop: got core9; allowed: outcry-shard0, outcry-shard1, outcry-reader, journal",
        ),
        ("?stage=%zz", 400, "stage: its escapes are malformed"),
    ] {
        let answer = site.operator(&format!("/debug/latency.hgrm{query}"));
        let text = answer.text();
        assert!(answer.status == status && text.starts_with(begins), "{query}: {} {text}", answer.status);
    }
}
