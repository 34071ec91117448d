//! Book and money over HTTP: every script runs against the real exchange, as clients see it.
//!
//! The scripts and their language are those of `tests/book.rs`; `tests/scripts/http` turns a line
//! into requests. Scripts that need the same settings share one exchange, each with markets and
//! wallets of its own, on one shard and on two. At the end the exchange stops and its journal is
//! verified.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(unreachable_pub, reason = "the scripts' files are shared with the tests of the engine")]

mod common;
#[path = "scripts/http/run.rs"]
mod http;
#[allow(dead_code, reason = "the tests of the engine use the rest")]
#[path = "scripts/language.rs"]
mod language;
#[allow(dead_code, reason = "the tests of the engine use the rest")]
#[path = "scripts/names.rs"]
mod names;

#[allow(dead_code, reason = "the tests of the engine use the rest")]
#[path = "scripts/random.rs"]
mod random;

use http::{Run, Shape, Site};
use language::{Command, Line, Setup, parse, scripts};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

const FILES: [&str; 9] = [
    include_str!("scripts/wrongs.txt"),
    include_str!("scripts/orders.txt"),
    include_str!("scripts/replace.txt"),
    include_str!("scripts/pairs.txt"),
    include_str!("scripts/money.txt"),
    include_str!("scripts/life.txt"),
    include_str!("scripts/again.txt"),
    include_str!("scripts/shards.txt"),
    include_str!("scripts/breakers.txt"),
];

/// Why a script is not run over HTTP as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// An order stops between two stages of the engine, which no request can do, so the script is
    /// not run. It must have such a stage.
    Stages,
    /// It shows what an order meets before a sweep, and the server sweeps first. So the script is
    /// compared with the twin alone, which sweeps like the server. It must expect something else.
    SweepsFirst,
}

/// The scripts that only the engine can run as they stand, by the facts that they hold.
const NOT_OVER_HTTP: &[(&str, Why)] = &[
    ("a maker's money is taken once, by whoever takes first", Why::Stages),
    ("a fok whose maker was emptied meanwhile gives everything back and is killed", Why::Stages),
    ("a taker whose own money went elsewhere is refused after everything was given back", Why::Stages),
    ("money that a fok borrowed for a moment removes nobody", Why::Stages),
    ("what is claimed is spent, though it is not committed yet", Why::Stages),
    ("a credit is spent only after its frame", Why::Stages),
    ("what rests of a taker is covered when it takes, or the taker is refused", Why::Stages),
    ("a maker that was short when the taker looked, and is covered when it takes, trades", Why::Stages),
    (
        "a fok that is killed because a maker fell short twice leaves the makers that its own debits made short",
        Why::Stages,
    ),
    ("a breaker that another shard trips between look and take counts", Why::Stages),
    ("a maker that can pay this fill trades, though not all it offers is covered", Why::SweepsFirst),
];

/// Random scripts for each number of shards, and their lines after the first ones.
const RANDOM_SCRIPTS: usize = 4;
const RANDOM_LINES: usize = 60;

struct Script {
    fact: String,
    setup: Setup,
    lines: Vec<Line>,
}

fn all() -> Vec<Script> {
    FILES.into_iter().flat_map(scripts).map(|(fact, text)| Script::read(fact.to_owned(), text)).collect()
}

/// The random scripts of every `shards`-th seed. Some draws have no form over HTTP: sizes that each
/// script would need for itself, two markets with different shares for builders, and a single
/// post-only market among others.
fn random_scripts(shards: u16) -> Vec<Script> {
    let seeds = (u64::from(shards)..).step_by(2);
    let scripts = seeds.filter_map(|seed| {
        let text = random::script(&mut random::Draw::from_seed(seed), RANDOM_LINES);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("postonly")).collect();
        let builders =
            lines.iter().filter(|line| line.starts_with("market")).map(|line| line.contains("builder"));
        let builders: Vec<bool> = builders.collect();
        let alike = builders.iter().all(|builder| *builder == builders[0]);
        let sized = lines.iter().any(|line| line.starts_with("limits"));
        (alike && !sized).then(|| Script::read(format!("seed {seed}"), &lines.join("\n")))
    });
    scripts.take(RANDOM_SCRIPTS).collect()
}

impl Script {
    fn read(fact: String, text: &str) -> Self {
        let (setup, lines) = parse(text);
        Self { fact, setup, lines }
    }

    fn left_out(&self) -> Option<Why> {
        NOT_OVER_HTTP.iter().find(|(fact, _)| *fact == self.fact).map(|(_, why)| *why)
    }

    fn run(&self, site: Site, shards: u16) -> Site {
        let mut run = Run::new(site, &self.fact, &self.setup, &self.lines, shards);
        for line in &self.lines {
            run = run.line(line);
        }
        let differ = run.differ.len();
        match self.left_out() {
            Some(Why::SweepsFirst) => assert!(0 < differ, "{}: it holds over HTTP as it stands", self.fact),
            _ => assert!(differ == 0, "what came (left) is not what was expected: {:#?}", run.differ),
        }
        run.end()
    }

    fn shape(&self, shards: u16, ingress: u16) -> Shape {
        let builder_bps = self.lines.iter().map(|line| match &line.command {
            Command::Market(market) => market.builder_bps,
            _ => 0,
        });
        Shape::of(&self.setup, &parse("").0, builder_bps.max().unwrap_or_default(), shards, ingress)
    }

    fn has_stages(&self) -> bool {
        self.lines.iter().any(|line| match &line.command {
            Command::Go { .. } => true,
            Command::Order(order) => order.hold.is_some(),
            _ => false,
        })
    }
}

/// Runs scripts, with loops for ingress alone if any are asked for.
fn run(shards: u16, ingress: u16, scripts: Vec<Script>) {
    let mut by_shape: BTreeMap<Shape, Vec<Script>> = BTreeMap::new();
    for script in scripts {
        if script.left_out() != Some(Why::Stages) && script.setup.shards.contains(&shards) {
            by_shape.entry(script.shape(shards, ingress)).or_default().push(script);
        }
    }
    let mut failed = Vec::new();
    for (shape, scripts) in by_shape {
        let mut site = Some(Site::start(shape));
        for script in scripts {
            let there = site.take().unwrap_or_else(|| Site::start(shape));
            site = catch_unwind(AssertUnwindSafe(|| script.run(there, shards))).ok();
            if site.is_none() {
                let text: Vec<&str> = script.lines.iter().map(|line| line.text.as_str()).collect();
                eprintln!("{}:\n{}", script.fact, text.join("\n"));
                failed.push(script.fact);
            }
            if 0 < shape.accounts_filled()
                && let Some(full) = site.take()
            {
                // What a script leaves in a full table would be missing to the next.
                full.stop();
            }
        }
        if let Some(site) = site {
            site.stop();
        }
    }
    assert!(failed.is_empty(), "these do not hold over HTTP: {failed:#?}");
}

#[test]
fn every_script_holds_over_http_on_one_shard() {
    run(1, 0, all());
}

#[test]
fn every_script_holds_over_http_on_two_shards() {
    run(2, 0, all());
}

#[test]
fn every_script_holds_over_http_where_ingress_has_loops_of_its_own() {
    run(1, 1, all());
    run(2, 2, all());
}

#[test]
fn random_scripts_over_http_agree_with_the_naive_twin() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        run(shards, ingress, random_scripts(shards));
    }
}

#[test]
fn only_scripts_with_stages_are_not_run() {
    let scripts = all();
    for script in &scripts {
        assert_eq!(script.left_out() == Some(Why::Stages), script.has_stages(), "{}", script.fact);
    }
    for (fact, _) in NOT_OVER_HTTP {
        assert!(scripts.iter().any(|script| script.fact == *fact), "{fact}: no such script");
    }
}
