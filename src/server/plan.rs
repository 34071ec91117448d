//! The checked plan: options judged against each other and against this machine.
//!
//! Everything a thread needs to know before it starts is here as a number or an enum. A plan that
//! exists can be started; what cannot is refused here, with field, value, rule and remedy.
//!
//! | file | what it knows |
//! |---|---|
//! | `command` | the command line: names, flags, help |
//! | `options` | every key, as the file, the environment and flags say it |
//! | `topology` | which role runs on which loop, and which loop on which CPU |
//! | `cpus`, `waits` | what `cpu.*` says: which CPUs, and how loops wait |
//! | `spins` | who keeps off the CPU of a loop that spins |
//! | `sizes` | how much there is room for, and what memory that takes |
//! | `terms` | the smallest order, and what a market gets by default |

pub mod command;
pub mod options;
pub mod topology;

mod cpus;
mod sizes;
mod spins;
pub(super) mod terms;
mod waits;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::machine::files::this_machine;
use super::process::snapshotter::Pace;
use super::requests::pages::Pages;
use super::requests::proxies::Proxies;
use crate::auth::{KnownSigners, Venue};
use crate::catalog::MarketDefaults;
use crate::domain::Collateral;
use crate::journal::{self, Claimed, Disk};
use crate::ledger::CHECKPOINT_FRAMES;
use crate::limits;
use crate::reader::{AssetFormat, EndDateFormat, PriceSide, WalletSettings};
use crate::shard::Funding;
use crate::topology::machine::{Machine, counted};
use command::ServerArgs;
use options::Options;
use topology::Topology;

pub use crate::journal::Durability;
pub use sizes::Limits;

/// What the process is going to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The public listener.
    pub http: SocketAddr,
    /// The operator's listener, on loopback.
    pub admin: SocketAddr,
    /// Segments, identity, secrets.
    pub data_dir: PathBuf,
    /// Where the bound ports are written, if anywhere.
    pub ports_file: Option<PathBuf>,
    /// Whether it is ready, and its ports are written, only once somebody has said that it is seeded: `dev`.
    pub waits_for_seed: bool,
    /// Loops, roles and CPUs.
    pub topology: Topology,
    /// When an answer may leave.
    pub durability: Durability,
    /// The log's own path, if it is not the usual one.
    pub log_path: Option<PathBuf>,
    /// Bytes of the log ring.
    pub log_bytes: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Frames between two state hashes in the log.
    pub hash_every_frames: u64,
    /// Sealed segments that are kept when snapshots cover them; none for all.
    pub history_keep: Option<u64>,
    /// Below this many free bytes of disk: cancels only.
    pub disk_free_min: u64,
    /// The chain that signatures name.
    pub chain_id: u64,
    /// The venue of SERVICE_ requests.
    pub venue: Venue,
    /// The funding rule.
    pub funding: Funding,
    /// What a side means when a price is asked for.
    pub price_side: PriceSide,
    /// How wallet data is shown.
    pub wallet: WalletSettings,
    /// Seconds a signed write may be off the clock.
    pub window_s: u64,
    /// Seconds a signed read may be off the clock.
    pub read_window_s: u64,
    /// Bytes for the tables of signers that a shard's loop knows; 0: it keeps none.
    pub known_signers_bytes: u64,
    /// Sizes and times.
    pub limits: Limits,
    /// What is done about clients that ask too much.
    pub rate_mode: limits::Mode,
    /// How much is too much.
    pub rate_rules: limits::Rules,
    /// Whose forwarded addresses count.
    pub(crate) proxies: Proxies,
    /// Which web pages may read answers.
    pub(crate) pages: Pages,
    /// What a market gets where its row is silent.
    pub(crate) market_defaults: MarketDefaults,
    /// The smallest marketable BUY.
    pub(crate) min_notional: Collateral,
    /// The options this plan was made from: what only one role reads, it reads here.
    pub options: Options,
    /// `dev`: no token on the admin listener, and a deposit wallet that belongs to nobody is linked
    /// by its first accepted order.
    pub dev: bool,
    /// `dev`: a refused signature or credential says which check failed.
    pub explains: bool,
    /// What the operator claims about the data directory and the log's file.
    pub claimed: Claimed,
    /// What segments are written to: the real disk, except in tests.
    pub(crate) disk: Disk,
    /// What snapshots are written to: the same disk, except in tests.
    pub(crate) snapshot_disk: Disk,
    /// When snapshots are made by themselves.
    pub(crate) snapshot_pace: Pace,
}

/// What a command adds to the options.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Where the bound ports are written.
    pub ports_file: Option<PathBuf>,
    /// `dev`: nothing spins, no token.
    pub dev: bool,
    /// What the operator claims about the data directory and the log's file.
    pub claimed: Claimed,
}

impl Start {
    /// What `serve`'s flags say.
    #[must_use]
    pub fn of(args: &ServerArgs) -> Self {
        Self {
            ports_file: args.ports_file.clone(),
            dev: false,
            claimed: match (args.adopt_log, args.new_identity) {
                (true, _) => Claimed::AdoptLog,
                (false, true) => Claimed::NewIdentity,
                (false, false) => Claimed::AsItIs,
            },
        }
    }
}

/// Checks `options` against each other and against the CPUs this process may use.
pub fn plan(options: &Options, start: Start) -> Result<Plan, String> {
    plan_for(options, start, &this_machine())
}

/// Plans for these CPUs, each a core of its own: for tests.
pub fn plan_on(options: &Options, start: Start, cpus: &[usize]) -> Result<Plan, String> {
    plan_for(options, start, &Machine::plain(cpus))
}

/// Plans for a machine that need not be this one.
pub fn plan_for(options: &Options, start: Start, machine: &Machine) -> Result<Plan, String> {
    checked(options, start, machine).map_err(|fault| options.with_variable(fault))
}

fn checked(options: &Options, start: Start, machine: &Machine) -> Result<Plan, String> {
    let http = address("listen.http", &options.listen_http)?;
    let admin = address("listen.admin", &options.listen_admin)?;
    if !admin.ip().is_loopback() {
        return Err(format!(
            "listen.admin: got {admin}; allowed: a loopback address, such as 127.0.0.1; reach it by ssh"
        ));
    }
    if let Some(why) = same_listener(http, admin) {
        return Err(format!("listen.admin: {admin} is also listen.http{why}; give it another port"));
    }
    let durability = durability(options)?;
    let topology = topology::plan(options, machine, start.dev)?;
    let limits = sizes::limits(options, &topology)?;
    let known_signers_bytes = sizes::known_signers_bytes(options, &topology)?;
    let (log_bytes, segment_bytes) = journal_bytes(options, &topology)?;
    Ok(Plan {
        http,
        admin,
        data_dir: data_dir(options)?,
        ports_file: start.ports_file,
        waits_for_seed: false,
        topology,
        durability,
        log_path: options.log_path(),
        log_bytes,
        segment_bytes,
        hash_every_frames: hash_every(options.journal_hash_every_frames)?,
        history_keep: history_keep(&options.journal_history_keep)?,
        disk_free_min: disk_free_min(options.journal_disk_free_min)?,
        chain_id: chain(options.chain_id)?,
        venue: choice(
            "venue",
            &options.venue,
            &[("kuest", Venue::Kuest), ("polymarket", Venue::Polymarket)],
        )?,
        funding: choice(
            "funding",
            &options.funding,
            &[("shared", Funding::Market), ("reserved", Funding::Reserved)],
        )?,
        price_side: choice(
            "price_side",
            &options.price_side,
            &[("taker", PriceSide::Taker), ("book", PriceSide::Book)],
        )?,
        wallet: wallet(options)?,
        window_s: window("auth.window_s", options.auth_window_s)?,
        read_window_s: window("auth.read_window_s", options.auth_read_window_s)?,
        known_signers_bytes,
        limits,
        rate_mode: rate_mode(&options.limits_mode, start.dev)?,
        rate_rules: rate_rules(options)?,
        proxies: Proxies::parse(&options.trusted_proxies)?,
        pages: Pages::parse(&options.allowed_origins)?,
        market_defaults: terms::market_defaults(options)?,
        min_notional: terms::min_notional(options)?,
        options: options.clone(),
        dev: start.dev,
        explains: start.dev,
        claimed: start.claimed,
        disk: Disk::default(),
        snapshot_disk: Disk::default(),
        snapshot_pace: Pace::DEFAULT,
    })
}

impl Plan {
    /// What `serve` says at start about sizes, one line each.
    #[must_use]
    pub fn sizes(&self) -> Vec<String> {
        let limits = &self.limits;
        vec![
            format!("log {} MiB, segments {} MiB", self.log_bytes >> 20, self.segment_bytes >> 20),
            format!(
                "per shard: {} resting orders, {} of one owner, {} positions, {} of one wallet, {} MiB of books, \
                 {} digests",
                limits.resting_orders_max,
                limits.open_per_owner_max.min(limits.resting_orders_max),
                limits.positions_max,
                limits.positions_per_wallet_max.min(limits.positions_max),
                limits.books_bytes >> 20,
                limits.digests_max
            ),
            format!(
                "{} wallets, {} markets, {} connections, {} of one address",
                limits.wallets_max,
                limits.markets_max,
                limits.connections_max,
                limits.connections_per_address_max.min(limits.connections_max)
            ),
            format!("rate limits: {}; GET /limits tells them", self.rate_mode.text()),
        ]
    }

    /// What an answer promises, in plain words.
    #[must_use]
    pub fn durability_line(&self) -> String {
        let promise = match self.durability {
            Durability::Durable => {
                "an order that was answered is on the disk: it survives a crash of the process, of the \
                 machine, and a loss of power"
            }
            Durability::Committed => {
                "an order that was answered is in shared memory: it survives a crash of the process; a crash \
                 of the machine or a loss of power may lose the last ones that were answered"
            }
        };
        format!("durability {}: {promise}", self.durability.text())
    }

    /// What an operator should know before relying on this plan.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.chain_id == 137 {
            warnings.push(
                "chain_id 137: signatures made for this exchange are also good at the real venue".to_owned(),
            );
        }
        if self.durability == Durability::Committed {
            warnings.push(
                "journal.durability committed: a reboot, a container's stop or a logout with RemoveIPC=yes \
                 ends what is not yet in segments"
                    .to_owned(),
            );
        }
        if self.known_signers_bytes != 0 {
            warnings.push(format!(
                "auth.known_signers_bytes: signatures of {} signers a loop are checked by arithmetic that \
                 nobody outside has reviewed yet; 0 leaves all of them to libsecp256k1",
                self.known_signers_bytes / KnownSigners::TABLE_BYTES
            ));
        }
        warnings
    }

    /// The longest sleep of a loop that nothing wakes.
    #[must_use]
    pub fn nap(&self) -> Duration {
        Duration::from_millis(self.limits.head_ms.min(self.limits.idle_ms).min(1_000) / 2 + 1)
    }
}

fn data_dir(options: &Options) -> Result<PathBuf, String> {
    if options.data_dir.is_empty() {
        Err("data_dir: got nothing; allowed: a folder".to_owned())
    } else {
        Ok(options.data_path())
    }
}

/// What an answer waits for.
pub(crate) fn durability(options: &Options) -> Result<Durability, String> {
    let words = [Durability::Durable, Durability::Committed].map(|word| (word.text(), word));
    choice("journal.durability", &options.journal_durability, &words)
}

fn wallet(options: &Options) -> Result<WalletSettings, String> {
    let assets = [("condition", AssetFormat::Condition), ("token", AssetFormat::Token)];
    let ends = [("date-time", EndDateFormat::DateTime), ("polymarket", EndDateFormat::Polymarket)];
    Ok(WalletSettings {
        asset: choice("wallet.asset_format", &options.wallet_asset_format, &assets)?,
        end_date: choice("wallet.end_date_format", &options.wallet_end_date_format, &ends)?,
    })
}

fn journal_bytes(options: &Options, topology: &Topology) -> Result<(u64, u64), String> {
    let log = options.journal_log_bytes;
    let least = journal::log_bytes_min(topology.shards);
    if log < least {
        return Err(format!(
            "journal.log_bytes: got {log}; allowed: at least {least}, which {} need; give it more, or use fewer shards",
            counted(usize::from(topology.shards), "shard")
        ));
    }
    if LOG_BYTES_MAX < log || !log.is_multiple_of(4_096) {
        return Err(format!(
            "journal.log_bytes: got {log}; allowed: {least} to {LOG_BYTES_MAX}, a multiple of 4096"
        ));
    }
    let segment = options.journal_segment_bytes;
    // A start reads a segment whole.
    let (least, most) = (1 << 20, 1 << 30);
    if !(least..=most).contains(&segment) || !segment.is_multiple_of(4_096) {
        return Err(format!(
            "journal.segment_bytes: got {segment}; allowed: {least} to {most}, a multiple of 4096"
        ));
    }
    Ok((log, segment))
}

fn rate_mode(text: &str, dev: bool) -> Result<limits::Mode, String> {
    let auto = if dev { limits::Mode::Warn } else { limits::Mode::Enforce };
    let mut modes = vec![("auto", auto)];
    modes.extend(limits::Mode::ALL.map(|mode| (mode.text(), mode)));
    choice("limits.mode", text, &modes)
}

fn rate_rules(options: &Options) -> Result<limits::Rules, String> {
    let mut rules = limits::Scope::ALL.map(|_| None);
    for scope in limits::Scope::ALL {
        let text = &options.limits_scopes[scope as usize];
        if text == "none" {
            continue;
        }
        let rule = limits::Rule::parse(text).ok_or_else(|| {
            format!(
                "{}: got {text:?}; allowed: none, a rate such as 200/10s or 6000/10m (up to {} in up to {} s), \
                 or two of them, the longer time second",
                scope.setting(),
                limits::COUNT_MAX,
                limits::WINDOW_S_MAX
            )
        })?;
        rules[scope as usize] = Some(rule);
    }
    Ok(rules)
}

/// The most bytes of the log: far more memory than a machine has to share.
const LOG_BYTES_MAX: u64 = 1 << 40;
/// The longest that a signed request may be off the clock: whoever gets hold of one may send it again for as long.
const WINDOW_S_MAX: u64 = 3_600;
/// The most frames between two state hashes: at 20,000 orders a second, a contradiction is found within a minute or so.
const HASH_EVERY_FRAMES_MAX: u64 = 1_000_000;
/// The most bytes of disk that can be kept free: no disk has more, and the exchange would take nothing at all.
const DISK_FREE_MIN_MAX: u64 = 1 << 50;

/// Clients stamp whole seconds, so a window of less than one would admit them only by chance.
fn window(name: &str, seconds: u64) -> Result<u64, String> {
    within(name, seconds, 1, WINDOW_S_MAX)
}

fn hash_every(frames: u64) -> Result<u64, String> {
    within("journal.hash_every_frames", frames, CHECKPOINT_FRAMES, HASH_EVERY_FRAMES_MAX)
}

fn disk_free_min(bytes: u64) -> Result<u64, String> {
    within("journal.disk_free_min", bytes, 0, DISK_FREE_MIN_MAX)
}

fn within(name: &str, value: u64, least: u64, most: u64) -> Result<u64, String> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{name}: got {value}; allowed: {least} to {most}"))
    }
}

fn history_keep(text: &str) -> Result<Option<u64>, String> {
    match (text, text.parse()) {
        ("all", _) => Ok(None),
        (_, Ok(segments)) => Ok(Some(segments)),
        _ => Err(format!("journal.history_keep: got {text:?}; allowed: all, or a number of segments")),
    }
}

fn chain(chain_id: u64) -> Result<u64, String> {
    match chain_id {
        80_002 | 137 => Ok(chain_id),
        other => Err(format!("chain_id: got {other}; allowed: 80002, or 137, which have order contracts")),
    }
}

/// Whether the operator's listener would have the public one's address; the text says why if the
/// two differ.
fn same_listener(http: SocketAddr, admin: SocketAddr) -> Option<String> {
    // IPv6's address for "any" includes IPv4's, unless the kernel is told otherwise.
    let is_every_one = http.ip().is_unspecified() && (http.is_ipv6() || admin.is_ipv4());
    match http.port() == admin.port() && http.port() != 0 {
        true if http == admin => Some(String::new()),
        true if is_every_one => Some(format!(", for {http} is that port of every address")),
        _ => None,
    }
}

fn address(name: &str, text: &str) -> Result<SocketAddr, String> {
    let allowed = "an address and a port, such as 127.0.0.1:8080";
    text.parse().map_err(|_| format!("{name}: got {text:?}; allowed: {allowed}"))
}

fn choice<T: Copy>(name: &str, text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        format!("{name}: got {text:?}; allowed: {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl Fn(&mut Options)) -> String {
        let mut options = Options::default();
        change(&mut options);
        plan_on(&options, Start::default(), &[0, 1]).expect_err("refused")
    }

    #[test]
    fn the_defaults_are_a_plan_on_one_two_and_eight_cpus() {
        for cpus in [1, 2, 8] {
            let cpus: Vec<usize> = (0..cpus).collect();
            plan_on(&Options::default(), Start::default(), &cpus).expect("defaults fit everywhere");
        }
    }

    #[test]
    fn what_cannot_be_started_is_refused_by_field_value_and_rule() {
        let fault = refused(|options| options.listen_admin = "0.0.0.0:1".into());
        assert_eq!(
            fault,
            "listen.admin: got 0.0.0.0:1; allowed: a loopback address, such as 127.0.0.1; reach it by ssh"
        );
        let fault = refused(|options| options.journal_durability = "maybe".into());
        assert_eq!(fault, "journal.durability: got \"maybe\"; allowed: durable, committed");
        let fault = refused(|options| options.chain_id = 1);
        assert_eq!(fault, "chain_id: got 1; allowed: 80002, or 137, which have order contracts");
        let fault = refused(|options| options.journal_log_bytes = 4_096);
        assert!(fault.starts_with("journal.log_bytes: got 4096; allowed: at least "), "{fault}");
        for bytes in [(32 << 20) + 1, (1 << 40) + 4_096, u64::MAX - 4_095] {
            let fault = refused(|options| options.journal_log_bytes = bytes);
            let told = format!("journal.log_bytes: got {bytes}; allowed: ");
            let ends = " to 1099511627776, a multiple of 4096";
            assert!(fault.starts_with(&told) && fault.ends_with(ends), "{fault}");
        }
        let fault = refused(|options| options.journal_segment_bytes = (1 << 30) + 4_096);
        let rule = "got 1073745920; allowed: 1048576 to 1073741824, a multiple of 4096";
        assert_eq!(fault, format!("journal.segment_bytes: {rule}"));
        let fault = refused(|options| options.data_dir = String::new());
        assert_eq!(fault, "data_dir: got nothing; allowed: a folder");
    }

    #[test]
    fn a_number_is_refused_beyond_its_least_and_its_most() {
        for (name, least, most) in [
            ("auth.window_s", 1, 3_600),
            ("auth.read_window_s", 1, 3_600),
            ("journal.hash_every_frames", 64, 1_000_000),
            ("journal.disk_free_min", 0, 1 << 50),
        ] {
            let planned = |value: u64| {
                let mut options = Options::default();
                options.overlay_flag(name, &value.to_string()).expect("a number");
                plan_on(&options, Start::default(), &[0, 1]).map(drop)
            };
            assert_eq!((planned(least), planned(most)), (Ok(()), Ok(())), "{name}");
            for value in [least.checked_sub(1), Some(most + 1)].into_iter().flatten() {
                assert_eq!(planned(value), Err(format!("{name}: got {value}; allowed: {least} to {most}")));
            }
        }
    }

    #[test]
    fn one_port_is_not_for_both_listeners() {
        let both = |http: &str, admin: &str| {
            let options =
                Options { listen_http: http.into(), listen_admin: admin.into(), ..Options::default() };
            plan_on(&options, Start::default(), &[0, 1]).map(drop)
        };
        let same = both("127.0.0.1:7", "127.0.0.1:7").expect_err("refused");
        assert_eq!(same, "listen.admin: 127.0.0.1:7 is also listen.http; give it another port");
        for (http, admin) in [("0.0.0.0:7", "127.0.0.2:7"), ("[::]:7", "127.0.0.1:7"), ("[::]:7", "[::1]:7")]
        {
            let fault = both(http, admin).expect_err("refused");
            assert!(fault.contains(&format!("for {http} is that port of every address")), "{fault}");
        }
        for (http, admin) in [
            ("0.0.0.0:0", "127.0.0.1:0"),
            ("0.0.0.0:7", "127.0.0.1:8"),
            ("0.0.0.0:7", "[::1]:7"),
            ("127.0.0.2:7", "127.0.0.1:7"),
        ] {
            assert_eq!(both(http, admin), Ok(()), "{http} and {admin}");
        }
    }

    #[test]
    fn dev_takes_a_tenth_of_every_size_but_what_is_given_as_it_is_given() {
        let mut options = Options::of_dev();
        let found = |options: &Options| {
            let plan = plan_on(options, Start { dev: true, ..Start::default() }, &[0, 1]).expect("a plan");
            let limits = plan.limits;
            (limits.resting_orders_max, limits.wallets_max, limits.connections_max, plan.disk_free_min)
        };
        assert_eq!(found(&options), (100_000, 100_000, 1_000, Options::default().journal_disk_free_min / 10));
        options.overlay_flag("sizes.connections", "2000").expect("a number");
        options.overlay_flag("journal.disk_free_min", "7").expect("a number");
        assert_eq!(found(&options), (100_000, 100_000, 2_000, 7));
    }
}
