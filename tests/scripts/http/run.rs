//! Runs a script over HTTP against a real exchange, and beside it on the naive twin.
//!
//! After every line the whole state is read back through the routes that clients use (money,
//! shares, live orders, both books of every market) and compared with the twin's, and every order
//! that left a book is asked for its reason. The twin sweeps after every line, as the server does
//! by itself; `words` has the other differences of HTTP. Nothing waits for a time: only where a
//! sweep has something to do, the state is read again until it is done.

mod acts;
mod people;
mod place;
mod replace;
mod seen;
mod site;
mod words;

pub use site::{Shape, Site};

use crate::language::{Command, Line, MarketLine, Setup};
use crate::names::Names;
use outcry::domain::{Mode, OrderId, TimeMs};
use outcry::shard::Funding;
use outcry::shard::naive::Naive;
use people::People;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a sweep may take before it counts as not done. Generous, because CI machines are slow.
const PATIENCE: Duration = Duration::from_mins(2);

/// The result of a line, here and on the twin.
pub struct Done {
    http: String,
    twin: String,
    /// The twin's orders that left during the line, with their reasons.
    left: BTreeMap<OrderId, &'static str>,
}

impl Done {
    fn same(text: &str) -> Self {
        Self::of(text.to_owned(), text.to_owned())
    }

    fn of(http: String, twin: String) -> Self {
        Self { http, twin, left: BTreeMap::new() }
    }

    fn removed(self, orders: &[OrderId], reason: &'static str) -> Self {
        let left = orders.iter().map(|id| (*id, reason)).collect();
        Self { left, ..self }
    }
}

/// One script on one exchange.
pub struct Run {
    site: Site,
    twin: Naive,
    names: Names,
    people: People,
    begin_ms: u64,
    acts: BTreeMap<String, acts::Sent>,
    drafts: BTreeMap<String, place::Drafted>,
    /// Orders as they came to rest, which is the order of every queue.
    placed: Vec<OrderId>,
    /// Who ever had a breaker.
    guarded: BTreeSet<String>,
    /// Labels of orders that the server swept before the script did.
    swept: BTreeSet<String>,
    /// Whether the exchange is post-only because the script's one market is.
    narrowed: bool,
    fact: String,
    at: String,
    lines: Vec<Line>,
    /// Where the twin, and HTTP with it, has another result than the script expects.
    pub differ: Vec<String>,
}

impl Run {
    /// Prepares `site` for the script that holds `fact`.
    pub fn new(mut site: Site, fact: &str, setup: &Setup, lines: &[Line], shards: u16) -> Self {
        site.advance((1_000 - site.now_ms % 1_000).cast_signed());
        let funding = if setup.reserved { Funding::Reserved } else { Funding::Market };
        let mut twin = Naive::new(shards, funding);
        twin.min_notional = setup.notional;
        twin.orders_max = setup.orders as usize;
        twin.open_per_owner_max = setup.open as usize;
        twin.accounts_max = setup.accounts as usize;
        twin.accounts_per_wallet_max = setup.each as usize;
        twin.digests_max = setup.digests as usize;
        twin.now = TimeMs(site.now_ms);
        let mut run = Self {
            begin_ms: site.now_ms,
            people: People::of(fact),
            site,
            twin,
            names: Names::default(),
            acts: BTreeMap::new(),
            drafts: BTreeMap::new(),
            placed: Vec::new(),
            guarded: BTreeSet::new(),
            swept: BTreeSet::new(),
            narrowed: false,
            fact: fact.to_owned(),
            at: fact.to_owned(),
            lines: lines.to_vec(),
            differ: Vec::new(),
        };
        run.add_market(&MarketLine::first());
        run.fill_tables();
        run
    }

    /// Gives the exchange back as it was found.
    pub fn end(mut self) -> Site {
        if self.narrowed || self.twin.exchange != Mode::Open {
            self.site.operate("/mode", &json!({ "mode": "open" })).unwrap();
        }
        self.site
    }

    /// Runs one line on both and compares everything that clients can see.
    pub fn line(mut self, line: &Line) -> Self {
        self.at = format!("{}, line {}: {}", self.fact, line.number, line.text);
        let before = self.twin_live();
        if matches!(line.command, Command::Restart) {
            self.site = self.site.restart();
            self.twin.forget_fills();
        }
        let done = self.command(&line.command);
        let swept = self.sweep_twin();
        self.settles(!swept.is_empty());
        self.departures(&before, &done, &swept);
        assert_eq!(done.http, main_part(&done.twin), "HTTP (left) and the naive twin differ at {}", self.at);
        if let Some(expected) = &line.expected {
            let [came, expected] = [&done.twin, expected].map(|text| words::without(text, &self.swept));
            if came != expected {
                self.differ.push(format!("{came}, not {expected}, at {}", self.at));
            }
        }
        self.swept.extend(swept.keys().map(|id| self.names.label(id)));
        self.conserved();
        self
    }

    fn twin_live(&self) -> BTreeSet<OrderId> {
        self.twin.orders.iter().map(|order| order.id).collect()
    }

    /// Sweeps the twin; returns the orders that left, and the reasons for which the server may have
    /// removed each.
    fn sweep_twin(&mut self) -> BTreeMap<OrderId, Vec<&'static str>> {
        let before = self.twin.orders.clone();
        for shard in 0..self.twin.shards {
            self.twin.sweep(shard);
        }
        let after = self.twin_live();
        let now = self.twin.now.0;
        let left = before.iter().filter(|order| !after.contains(&order.id));
        left.map(|order| {
            let tripped = self.twin.breaker(order.key).is_some_and(|(.., tripped)| tripped);
            let reasons = match () {
                () if order.expires_ms <= now => vec!["expired"],
                // What tripped the breaker may have left other orders uncovered, which a shard notices by itself.
                () if tripped => vec!["fill_rate", "unfunded"],
                () => vec!["unfunded"],
            };
            (order.id, reasons)
        })
        .collect()
    }

    /// Waits until the state from outside is the twin's: at once, or while a sweep is under way,
    /// soon.
    fn settles(&mut self, sweeping: bool) {
        let twin = self.twin_state();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.seen();
            if seen == twin {
                return;
            }
            let patient = sweeping && Instant::now() < deadline;
            assert!(patient, "HTTP {seen:#?}\nand the naive twin {twin:#?}\ndiffer after {}", self.at);
        }
    }

    /// Every order that left is asked for its reason.
    fn departures(
        &mut self,
        before: &BTreeSet<OrderId>,
        done: &Done,
        swept: &BTreeMap<OrderId, Vec<&'static str>>,
    ) {
        let after = self.twin_live();
        for id in before.difference(&after) {
            let label = self.names.label(id);
            let record = self.record(&label).expect("what rested is known");
            let (status, reason) = (record["status"].as_str().unwrap(), record["reason"].as_str().unwrap());
            let (wanted, reasons) = match (done.left.get(id), swept.get(id)) {
                (Some(&"market_resolved"), _) => ("CANCELED_MARKET_RESOLVED", vec!["market_resolved"]),
                (Some(&reason), _) => ("CANCELED", vec![reason]),
                (None, Some(reasons)) => ("CANCELED", reasons.clone()),
                (None, None) => ("MATCHED", vec!["filled"]),
            };
            assert_eq!(status, wanted, "the status of #{label} after {}", self.at);
            assert!(reasons.contains(&reason), "#{label}: {reason}, not {reasons:?}, after {}", self.at);
        }
    }

    fn command(&mut self, command: &Command) -> Done {
        match command {
            Command::Setup | Command::Sweep { .. } | Command::Restart => Done::same(""),
            Command::Go { .. } => unreachable!("stages are not run over HTTP"),
            Command::Market(line) => {
                self.add_market(line);
                Done::same("")
            }
            Command::Credit { who, amount } => self.money(who, "credit", *amount),
            Command::Debit { who, amount } => self.money(who, "debit", *amount),
            Command::Order(line) => self.order(line),
            Command::Again { label, who } => self.again(label, who.as_deref()),
            Command::Cancel { who, label } => self.cancel(who, label),
            Command::CancelScope { who, market, outcome } => {
                self.cancel_scope(who, market.as_deref(), *outcome)
            }
            Command::Tombstone { who, label } => self.tombstone(who, label),
            Command::Replace { .. } => self.replace(command),
            Command::Breaker { who, act } => self.breaker(who, *act),
            Command::Act { .. } => self.act(command),
            Command::Tick { market, tick } => self.tick(market, *tick),
            Command::Mode { market, mode } => self.mode(market, *mode),
            Command::Resolve { market, payout } => self.resolve(market, *payout),
            Command::Freeze { who, frozen } => self.freeze(who, *frozen),
            Command::Exchange(mode) => self.exchange(*mode),
            Command::Wait { seconds } => {
                self.site.advance(seconds * 1_000);
                self.people.set_clock(self.site.now_ms);
                self.twin.now = TimeMs(self.site.now_ms);
                Done::same("")
            }
            // The state is read after every line anyway, and is the twin's by then.
            Command::Book { market } => {
                let market = self.names.market(market);
                let swept = self.sweep_twin();
                assert!(swept.is_empty(), "the line before has swept");
                let text = self.names.book_text(&self.twin_book(market));
                Done::same(&text)
            }
            Command::Has { who, market } => {
                let wallet = self.wallet(who);
                let market = self.names.market(market);
                Done::same(&self.twin_has(wallet, market))
            }
            Command::Fees => Done::same(&crate::language::text(self.twin.fees, 1_000_000)),
        }
    }
}

/// A result without the orders that left on the way, which are asked about afterwards over HTTP.
fn main_part(text: &str) -> String {
    let left = |part: &&str| part.starts_with('-') && part.contains(' ') && !part.contains(" -");
    let parts = text.split(", ").filter(|part| !left(part));
    parts.collect::<Vec<_>>().join(", ")
}
