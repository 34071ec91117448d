//! One running exchange for many scripts: its process, its operator, its clock.

use crate::common::exchange::{Exchange, Plan, journal};
use crate::common::folder;
use crate::common::trader::{KEYS, Trader};
use crate::common::wire::Connection;
use crate::language::Setup;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The smallest memory of digests with which an exchange starts.
pub const DIGESTS_MIN: u32 = 16;
/// The wallets, and rows of wallets in markets, of an exchange whose table can be filled: its own
/// test accounts, the script's and the filler's take 43.
pub const ACCOUNTS_MIN: u32 = 48;
/// How far the clock is moved at the start. No test takes that long, so a restart, after which the
/// clock stands at the machine's time again, can move it to where it was.
const AHEAD_MS: i64 = 3_600_000;
/// The two test accounts that quote `dev`'s own markets.
const QUOTING: [usize; 2] = [8, 9];

/// The settings of an exchange. Scripts that need the same ones share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    shards: u16,
    ingress: u16,
    reserved: bool,
    notional: u64,
    orders: Option<u32>,
    open: Option<u32>,
    digests: Option<u32>,
    accounts: Option<u32>,
    each: Option<u32>,
    builder_bps: u16,
}

impl Shape {
    /// The shape that a script asks for; `plain` is the setup of scripts that ask for nothing.
    pub fn of(setup: &Setup, plain: &Setup, builder_bps: u16, shards: u16, ingress: u16) -> Self {
        let asked = |value: u32, plain: u32| (value != plain).then_some(value);
        assert_eq!(setup.ladders, plain.ladders, "an exchange has a mebibyte of books at least");
        Self {
            shards,
            ingress,
            reserved: setup.reserved,
            notional: setup.notional,
            orders: asked(setup.orders, plain.orders),
            open: asked(setup.open, plain.open),
            digests: asked(setup.digests, plain.digests),
            accounts: asked(setup.accounts, plain.accounts),
            each: asked(setup.each, plain.each),
            builder_bps,
        }
    }

    /// Digests that are remembered before the script begins.
    pub fn digests_filled(&self) -> u32 {
        self.digests.map_or(0, |wanted| DIGESTS_MIN - wanted)
    }

    /// Rows of the account table that are taken before the script begins.
    pub fn accounts_filled(&self) -> u32 {
        self.accounts.map_or(0, |wanted| ACCOUNTS_MIN - wanted)
    }

    fn settings(&self) -> Vec<String> {
        let mut settings = vec![
            format!("cpu.shards={}", self.shards),
            format!("cpu.ingress={}", self.ingress),
            format!("orders.min_notional={}", crate::language::text(self.notional, 1_000_000)),
            format!("fees.builder_share_bps={}", self.builder_bps),
            format!("funding={}", if self.reserved { "reserved" } else { "shared" }),
        ];
        let sizes = [
            ("resting_orders", self.orders),
            ("digests", self.digests.map(|_| DIGESTS_MIN)),
            ("positions", self.accounts.map(|_| ACCOUNTS_MIN)),
            ("positions_per_wallet", self.each),
        ];
        settings.extend(self.open.map(|open| format!("orders.open_per_owner_max={open}")));
        for (name, size) in sizes {
            settings.extend(size.map(|size| format!("sizes.{name}={size}")));
        }
        settings
    }
}

/// A running exchange whose clock stands until it is moved.
pub struct Site {
    pub shape: Shape,
    pub public: Connection,
    pub now_ms: u64,
    admin: Connection,
    exchange: Exchange,
    plan: Plan,
    /// Removed with the site, its files included.
    folder: TempDir,
}

impl Site {
    /// Starts one and removes the quotes of its own markets, which would take up room.
    pub fn start(shape: Shape) -> Self {
        let folder = folder();
        // Scripts have nothing to do with the disk, and other tests wait for it.
        let mut plan =
            Plan::dev(folder.path()).words(["--clock", "manual"]).set("journal.durability=committed");
        for setting in shape.settings() {
            plan = plan.set(&setting);
        }
        let exchange = plan.start();
        let (public, admin) = (exchange.connect(), Connection::open(exchange.admin));
        let mut site = Self { shape, public, now_ms: 0, admin, exchange, plan, folder };
        site.advance(AHEAD_MS);
        for account in QUOTING {
            let trader = Trader::at(KEYS[account], &mut site.public, Some(site.now_ms));
            let answer = trader.ask(&mut site.public, "DELETE", "/cancel-all", "").unwrap();
            assert_eq!(answer.status, 200, "the quotes are cancelled");
        }
        site
    }

    /// Sends a request of the operator; the error is the code of its refusal.
    pub fn operate(&mut self, path: &str, body: &Value) -> Result<Value, String> {
        let answer = self.admin.request("POST", path, "", body.to_string().as_bytes()).unwrap();
        let said = answer.json();
        if answer.status == 200 { Ok(said) } else { Err(said["code"].as_str().unwrap().to_owned()) }
    }

    /// What the operator sees.
    pub fn look_up(&mut self, path: &str) -> Value {
        self.admin.read(path)
    }

    /// Moves the clock, on or back.
    pub fn advance(&mut self, ms: i64) {
        let moved = self.operate("/clock", &json!({ "advance_ms": ms })).unwrap();
        self.now_ms = moved["timeMs"].as_u64().unwrap();
    }

    /// Stops it, starts it again on its data, and moves its clock to where it was.
    pub fn restart(self) -> Self {
        let Self { shape, now_ms: then_ms, exchange, plan, folder, .. } = self;
        exchange.stop();
        let exchange = plan.start();
        let (public, admin) = (exchange.connect(), Connection::open(exchange.admin));
        let mut site = Self { shape, public, now_ms: 0, admin, exchange, plan, folder };
        site.advance(0);
        let passed_ms = then_ms.checked_sub(site.now_ms).expect("a test takes less than an hour");
        site.advance(passed_ms.cast_signed());
        site
    }

    /// Stops it and checks everything that it wrote.
    pub fn stop(self) {
        self.exchange.stop();
        let said = journal("verify", &self.plan.data_dir());
        assert!(said.ends_with("good\n"), "{said}");
    }
}
