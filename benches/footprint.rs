//! What state takes of memory: what one more row of a table adds to a process, and what a market, a wallet and a resting
//! order add as they come.
//!
//! `cargo bench --bench footprint -- [ROWS]`
//!
//! - **Tables**, whose memory a start takes at once: an exchange is started with tables of their usual sizes, and once with
//!   each of them twice as long; that of wallets, of which each shard has a part, with several shards too.
//! - **On top**, so that it can be read: markets are imported, wallets get money, or orders rest in one book, each in four
//!   steps of ROWS (40,000 if it is not said) and in an exchange of its own. What the process has grown by is divided by how
//!   many have come. Lists that double make that uneven, so the least and the most of the four are told. The same is done
//!   with the feed on a loop of its own, and what that adds is told alone.
//! - **A snapshot** is made behind all of a kind: how much more memory the process has meanwhile than before it, by what
//!   that is more than for an exchange with nothing in it.
//!
//! Markets are made from the real rows beside the repository; without these the figures say so and are not kept.
//!
//! A good number: what `Plan::memory_taken` and `Plan::memory_on_top` count (`src/server/plan/sizes.rs`), from which
//! `outcry check` says whether there is room.

#![allow(clippy::print_stdout, reason = "it says what it measured")]

#[path = "loopback/client.rs"]
mod client;
#[path = "loopback/figures.rs"]
mod figures;
#[path = "loopback/folder.rs"]
mod folder;
#[allow(dead_code, reason = "benches share it, and each uses a part")]
#[path = "loopback/outcry.rs"]
mod outcry;
#[path = "catalog/rows.rs"]
mod rows;
#[path = "loopback/sign.rs"]
mod sign;
#[path = "loopback/status.rs"]
mod status;

use client::{Client, Credentials};
use figures::Unit;
use outcry::{Desk, Outcry};
use sign::Signer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Rows of a kind that are added at once, if the command does not say.
const ROWS: u64 = 40_000;

/// How often as many are added.
const STEPS: u64 = 4;

const SEED: u64 = 7;

/// Tables that a start takes at once, and their usual rows.
const TABLES: [(&str, u64); 4] =
    [("resting_orders", 1_000_000), ("digests", 4_000_000), WALLETS, ("positions", 1_000_000)];

const WALLETS: (&str, u64) = ("wallets", 1_000_000);

/// The first public test key of Anvil.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// Collateral in millionths for 5 shares, at a price of 0.01: it rests.
const BID: u64 = 50_000;

/// How often it is looked whether all that happened was read.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// For how many looks a process's memory has to stay as it is before it is read, for what goes on behind the loops: the
/// search.
const QUIET_LOOKS: u32 = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let step = words.first().map_or(ROWS, |word| word.parse().expect("ROWS: a number"));
    tables();
    if !Path::new(rows::REAL).exists() {
        figures::invalid("the real rows of a catalog are not here, and the sample's are much shorter");
    }
    let folder = folder::on_disk();
    let mut bytes = 0;
    let files: Vec<PathBuf> = (0..STEPS)
        .map(|number| {
            let file = folder.path().join(format!("markets-{number}.json"));
            bytes += rows::write(&file, number * step..(number + 1) * step, SEED);
            file
        })
        .collect();
    note("a market's row in the file, its event included", ratio(bytes, STEPS * step));

    for kind in Kind::ALL {
        came(kind, &files, step);
    }
}

/// What one row more of each table takes.
fn tables() {
    let resident = |longer: &str, shards: u16| {
        let mut settings = TABLES
            .map(|(table, rows)| format!("sizes.{table}={}", if table == longer { 2 * rows } else { rows }))
            .to_vec();
        settings.push(format!("cpu.shards={shards}"));
        Site::start(&settings.iter().map(String::as_str).collect::<Vec<_>>()).resident()
    };
    let row = |table, rows, shards, usual| {
        let more = resident(table, shards).checked_sub(usual).expect("a longer table takes more");
        ratio(more, rows)
    };
    let usual = resident("", 1);
    for (table, rows) in TABLES {
        note(&format!("a row of sizes.{table}"), row(table, rows, 1, usual));
    }
    let (table, rows) = WALLETS;
    for shards in [2, 4] {
        note(
            &format!("a row of sizes.{table} with {shards} shards"),
            row(table, rows, shards, resident("", shards)),
        );
    }
}

/// What one more of a kind takes once it has come: on top, in a snapshot, and in a loop of the feed's own.
fn came(kind: Kind, files: &[PathBuf], step: u64) {
    let one = kind.one();
    let counts = || (1..).map(|number| number * step);
    let mut alone = Site::start(&[]);
    let snapshot_of_nothing = alone.snapshot();
    let grown = alone.grow(kind, files, step);
    let snapshot = alone.snapshot().saturating_sub(snapshot_of_nothing);
    drop(alone);
    let grown_with_feed = Site::start(&["cpu.feed=own"]).grow(kind, files, step);
    let once = grown.iter().zip(counts()).map(|(bytes, count)| ratio(*bytes, count));
    least_and_most(&format!("{one} on top"), once);
    let again = grown_with_feed.iter().zip(&grown).zip(counts());
    let again = again.map(|((both, one), count)| ratio(both.saturating_sub(*one), count));
    least_and_most(&format!("{one} again, for a loop of the feed's own"), again);
    note(&format!("{one} again, while a snapshot is made"), ratio(snapshot, STEPS * step));
}

/// What comes into an exchange.
#[derive(Clone, Copy)]
enum Kind {
    Market,
    Wallet,
    RestingOrder,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Market, Self::Wallet, Self::RestingOrder];

    const fn one(self) -> &'static str {
        match self {
            Self::Market => "a market",
            Self::Wallet => "a wallet",
            Self::RestingOrder => "a resting order",
        }
    }
}

/// A running exchange, and who trades on it.
struct Site {
    outcry: Outcry,
    desk: Desk,
    trader: Client,
    signer: Signer,
    credentials: Credentials,
    token: alloy_primitives::U256,
    _folder: tempfile::TempDir,
}

impl Site {
    /// Starts an exchange with one market and one trader.
    fn start(settings: &[&str]) -> Self {
        let folder = folder::in_memory();
        // Neither what an answer waits for nor which CPU a loop has changes what it holds.
        let always = ["journal.durability=committed", "cpu.policy=unpinned", "cpu.shards=1"];
        let settings: Vec<String> =
            always.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        let outcry = Outcry::start(folder.path(), &settings);
        let signer = Signer::new(KEY);
        outcry.operator(&["account", "credit", &signer.address.to_string(), "1000000"]);
        outcry.operator(&["market", "create", "Does it rain?"]);
        let (token, credentials) = (outcry.token(), client::credentials(outcry.http, &signer));
        let (desk, trader) = (outcry.desk(), Client::connect(outcry.http));
        let mut site = Self { outcry, desk, trader, signer, credentials, token, _folder: folder };
        site.settle();
        site
    }

    /// Adds rows of a kind; how much they have grown the process by after each step, in bytes.
    fn grow(&mut self, kind: Kind, files: &[PathBuf], step: u64) -> Vec<u64> {
        let before = self.resident();
        let grown = (0..).zip(files).map(|(number, file)| {
            self.add(kind, file, number * step..(number + 1) * step);
            self.settle();
            self.resident().saturating_sub(before)
        });
        grown.collect()
    }

    /// Adds the rows with these numbers; markets are those of `file`.
    fn add(&mut self, kind: Kind, file: &Path, numbers: std::ops::Range<u64>) {
        match kind {
            Kind::Market => self.outcry.operator(&["import", "gamma", &file.display().to_string()]),
            Kind::Wallet => {
                for number in numbers {
                    let path = format!("/accounts/0x{:040x}/credit", 1 + number);
                    self.desk.ask("POST", &path, "{\"amount\":\"1\"}");
                }
            }
            Kind::RestingOrder => {
                for number in numbers {
                    let bid = client::bid(&self.signer, &self.credentials, self.token, BID, number);
                    let (_, reply) = self.trader.round_trip(&bid);
                    assert!(reply.contains("\"status\":\"live\""), "{reply}");
                }
            }
        }
    }

    /// Waits until all who follow the log have read it, and the process's memory stays as it is.
    fn settle(&mut self) {
        let (mut resident, mut looks) = (0, 0);
        while looks < QUIET_LOOKS {
            std::thread::sleep(LOOK_EVERY);
            let page = self.desk.ask("GET", "/metrics", "");
            let read = ["outcry_applied_position", "outcry_feed_position"].map(|name| metric(&page, name));
            let written = metric(&page, "outcry_claimed_position");
            let now = self.resident();
            let quiet = now == resident && read.into_iter().flatten().all(|read| Some(read) == written);
            (resident, looks) = (now, if quiet { looks + 1 } else { 0 });
        }
    }

    /// The process's own memory in bytes; the log, which is in shared memory, is not in it.
    fn resident(&self) -> u64 {
        self.status("RssAnon:")
    }

    /// How much more memory the process has, at most, while it makes a snapshot.
    fn snapshot(&mut self) -> u64 {
        let process = format!("/proc/{}", self.outcry.process.0.id());
        // From here on the most is told anew (`man 5 proc`).
        std::fs::write(format!("{process}/clear_refs"), "5").expect("our own child");
        let before = self.status("VmRSS:");
        self.desk.ask("POST", "/snapshot", "{}");
        self.status("VmHWM:").saturating_sub(before)
    }

    fn status(&self, name: &str) -> u64 {
        status::bytes(self.outcry.process.0.id(), name).expect("our own child, and Linux has this line")
    }
}

/// The value of a metric without labels, if there is one.
fn metric(page: &str, name: &str) -> Option<u64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

fn least_and_most(what: &str, each: impl Iterator<Item = f64> + Clone) {
    note(&format!("{what}, least"), each.clone().fold(f64::INFINITY, f64::min));
    note(&format!("{what}, most"), each.fold(0.0, f64::max));
}

fn note(what: &str, bytes: f64) {
    println!("{what:56} {bytes:8.1} bytes");
    figures::note(what, bytes, Unit::Bytes);
}

#[allow(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
fn ratio(bytes: u64, rows: u64) -> f64 {
    bytes as f64 / rows as f64
}
