//! The command line: names, flags and their help. What a command does is elsewhere.
//!
//! Flags that set a configuration key win over the environment, which wins over the file. Every
//! command that starts a server takes the same ones.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::options::{Options, environment};

/// An exchange for prediction markets in one binary.
#[derive(Parser, Debug)]
#[command(name = "outcry", version, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Everything `outcry` can be told to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start an exchange to try things on: loopback only, seeded markets, funded test accounts
    Dev(DevArgs),
    /// Start the exchange
    Serve(ServerArgs),
    /// Write a commented configuration and the master secret
    Init(InitArgs),
    /// Take markets over from somewhere else
    #[command(subcommand)]
    Import(ImportCommand),
    /// Make and steer markets
    #[command(subcommand)]
    Market(MarketCommand),
    /// Move operator money, link and freeze wallets
    #[command(subcommand)]
    Account(AccountCommand),
    /// Look into a journal, offline
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Ask a running exchange for a snapshot
    Snapshot(AdminArgs),
    /// Say what the whole exchange takes: open, post-only, cancel-only or closed
    Mode {
        /// How to reach the exchange.
        #[command(flatten)]
        admin: AdminArgs,
        /// open, post-only, cancel-only or closed
        mode: String,
    },
    /// Show the machine, which role would run on which CPU, and why
    Topology(TopologyArgs),
    /// Check configuration and machine, start nothing
    Check(CheckArgs),
    /// Print a script that tunes this machine; changes nothing
    Tune(TuneArgs),
    /// Show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print every error with its status, code, texts and meaning, as Markdown
    Errors,
    /// Show the version
    Version {
        /// Also what it was built for and which CPUs it may use
        #[arg(long)]
        verbose: bool,
    },
}

/// Where the configuration comes from.
#[derive(Args, Debug, Default, Clone)]
pub struct ConfigArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE", env = "OUTCRY_CONFIG", value_parser = any_path())]
    pub config: Option<PathBuf>,
    /// The public listener's address; port 0 picks one
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// The operator's listener's address, on loopback
    #[arg(long, value_name = "ADDRESS")]
    pub admin_listen: Option<String>,
    /// Where segments, identity and secrets are kept
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Any configuration key, as in --set journal.durability=committed
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// What `topology` takes.
#[derive(Args, Debug, Default, Clone)]
pub struct TopologyArgs {
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// Plan for a machine of N CPUs instead: each a core of its own, one node, one level-3 cache
    #[arg(long, value_name = "N", conflicts_with = "machine")]
    pub plan: Option<usize>,
    /// Look at a copy of another machine's /sys and /proc below this folder; `check --copy` makes one there
    #[arg(long, value_name = "DIR")]
    pub machine: Option<PathBuf>,
}

/// What `check` takes.
#[derive(Args, Debug, Default, Clone)]
pub struct CheckArgs {
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// Also spin on every allowed CPU at once, this long, and show how often each was taken away
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=3_600),
        conflicts_with = "machine"
    )]
    pub jitter: Option<u64>,
    /// Look at a copy of another machine's /sys and /proc below this folder; --copy makes one there
    #[arg(long, value_name = "DIR")]
    pub machine: Option<PathBuf>,
    /// Also copy every file below /sys and /proc that was looked at into this folder, for --machine
    /// elsewhere; the names of processes are among them
    #[arg(long, value_name = "DIR", conflicts_with = "machine")]
    pub copy: Option<PathBuf>,
}

/// What `tune` takes.
#[derive(Args, Debug, Default, Clone)]
pub struct TuneArgs {
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Print the script that takes back what the other one changed
    #[arg(long)]
    pub undo: bool,
    /// Look at a copy of another machine's /sys and /proc below this folder; `check --copy` makes one there
    #[arg(long, value_name = "DIR")]
    pub machine: Option<PathBuf>,
}

/// What every command takes that starts a server.
#[derive(Args, Debug, Default, Clone)]
pub struct ServerArgs {
    /// Where the configuration comes from.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Write the bound ports here as {"http":PORT,"admin":PORT}
    #[arg(long, value_name = "FILE")]
    pub ports_file: Option<PathBuf>,
    /// Take over a log file that belongs to another copy of this data directory
    #[arg(long)]
    pub adopt_log: bool,
    /// Give this data directory a new identity of its own
    #[arg(long, conflicts_with = "adopt_log")]
    pub new_identity: bool,
}

/// What `dev` takes besides.
#[derive(Args, Debug, Default, Clone)]
pub struct DevArgs {
    /// What every server takes.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Wipe the data of the last time first
    #[arg(long)]
    pub fresh: bool,
    /// Orders a second of sample flow; 0 turns it off
    #[arg(long, default_value_t = 2)]
    pub flow: u32,
    /// Whether time runs by itself or stands until POST /clock moves it; a later start goes on from the newest frame's
    /// time, if that is ahead
    #[arg(long, value_enum, default_value_t = ClockKind::Real)]
    pub clock: ClockKind,
}

/// How time passes in `dev`.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockKind {
    /// By the machine's clock.
    #[default]
    Real,
    /// Only when it is told to.
    Manual,
}

/// What `init` takes.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// Where to write the configuration
    #[arg(long, value_name = "FILE", default_value = "outcry.toml")]
    pub config: PathBuf,
    /// Where segments, identity and secrets will be kept
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// How to reach a running exchange's operator listener.
#[derive(Args, Debug, Clone)]
pub struct AdminArgs {
    /// The operator listener's address
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081", env = "OUTCRY_ADMIN")]
    pub admin: String,
    /// A file that holds the operator's token; else the variable `OUTCRY_ADMIN_TOKEN`
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Sources of markets.
#[derive(Subcommand, Debug)]
pub enum ImportCommand {
    /// Gamma JSON: events or markets, gzipped or not
    ///
    /// What is new is added, what changed is updated, and what a market does not take is told. A
    /// market that its row closes is closed, also one that was opened again by hand; no row opens one.
    /// One that is neither closed nor archived and whose row says `acceptingOrders` or
    /// `enableOrderBook` false is added cancel-only; the mode of one that is here already stays.
    Gamma {
        /// How to reach the exchange.
        #[command(flatten)]
        admin: AdminArgs,
        /// The files, in any order
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// What can be done with markets.
#[derive(Subcommand, Debug)]
pub enum MarketCommand {
    /// Make a market
    Create {
        /// How to reach the exchange.
        #[command(flatten)]
        admin: AdminArgs,
        /// The question
        question: String,
        /// Labels of the two outcomes
        #[arg(long, value_name = "A,B", default_value = "Yes,No")]
        outcomes: String,
        /// The tick: 0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001
        #[arg(long, default_value = "0.01", allow_negative_numbers = true)]
        tick: String,
        /// Smallest resting order in shares
        #[arg(long, allow_negative_numbers = true)]
        min_size: Option<String>,
        /// The event it belongs to, by slug; in a neg-risk event it is a neg-risk market
        #[arg(long)]
        event: Option<String>,
    },
    /// List the markets
    List {
        /// How to reach the exchange.
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Show one market
    Show(MarketName),
    /// Take cancels only
    Pause(MarketName),
    /// Take orders again
    Resume(MarketName),
    /// Say what is taken: open, post-only or cancel-only
    Mode {
        /// The market.
        #[command(flatten)]
        market: MarketName,
        /// open, post-only or cancel-only
        mode: String,
    },
    /// Say what came out; final
    Resolve {
        /// The market.
        #[command(flatten)]
        market: MarketName,
        /// What one share of the first outcome pays, from 0 to 1; one of the other pays the rest
        #[arg(long, allow_negative_numbers = true)]
        payout: String,
        /// Also pay every holder; to be said again with the same payout, if not the first time
        #[arg(long)]
        redeem: bool,
    },
    /// Change the tick
    Tick {
        /// The market.
        #[command(flatten)]
        market: MarketName,
        /// The new tick: 0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001
        #[arg(allow_negative_numbers = true)]
        tick: String,
    },
}

/// One market of a running exchange.
#[derive(Args, Debug, Clone)]
pub struct MarketName {
    /// How to reach the exchange.
    #[command(flatten)]
    pub admin: AdminArgs,
    /// Market id or condition id
    pub market: String,
}

/// What can be done with accounts.
#[derive(Subcommand, Debug)]
pub enum AccountCommand {
    /// Give a wallet collateral
    Credit {
        /// How much, and to whom.
        #[command(flatten)]
        money: MoneyArgs,
        /// What the wallet is; a new one is an owner's own address if this is not said
        #[arg(long, value_enum)]
        kind: Option<CreditedKind>,
    },
    /// Take collateral from a wallet; from `fees`, fees that were collected
    Debit(MoneyArgs),
    /// Link a deposit wallet to its owner
    Link {
        /// How to reach the exchange.
        #[command(flatten)]
        admin: AdminArgs,
        /// The deposit wallet's address
        wallet: String,
        /// The owner's address
        owner: String,
    },
    /// Show a wallet; `fees` is the one that fees are collected in
    Show(WalletName),
    /// Stop a wallet's principal from trading and remove its open orders, or let it trade again
    Freeze {
        /// The wallet.
        #[command(flatten)]
        wallet: WalletName,
        /// Let it trade again
        #[arg(long)]
        undo: bool,
    },
}

/// One wallet of a running exchange.
#[derive(Args, Debug, Clone)]
pub struct WalletName {
    /// How to reach the exchange.
    #[command(flatten)]
    pub admin: AdminArgs,
    /// The wallet's address
    pub wallet: String,
}

/// Operator money.
#[derive(Args, Debug, Clone)]
pub struct MoneyArgs {
    /// The wallet.
    #[command(flatten)]
    pub wallet: WalletName,
    /// How much, in USDC
    #[arg(allow_negative_numbers = true)]
    pub amount: String,
    /// A name for this movement; the same name again returns the first result
    #[arg(long = "ref", value_name = "TEXT")]
    pub reference: Option<String>,
}

/// What a credited wallet is.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditedKind {
    /// An owner's own address.
    Owner,
    /// A deposit wallet, which belongs to nobody until it is linked.
    Deposit,
}

impl CreditedKind {
    /// The word that the operator's listener takes.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Deposit => "deposit",
        }
    }
}

/// What can be done with a journal.
#[derive(Subcommand, Debug)]
pub enum JournalCommand {
    /// Prove frames, chain, conservation and state hashes; exit 0 if they are good, even where a line says that a start
    /// here would be refused, as of a copy beside its original
    Verify(JournalArgs),
    /// Print every frame, one JSON line each
    Dump(JournalArgs),
    /// Apply every frame and print the state that comes out
    Replay(JournalArgs),
}

/// One journal.
#[derive(Args, Debug, Clone)]
pub struct JournalArgs {
    /// The configuration file of the exchange
    #[arg(long, value_name = "FILE", env = "OUTCRY_CONFIG", value_parser = any_path())]
    pub config: Option<PathBuf>,
    /// The data directory; else what the configuration says
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The log's file; else what the configuration says, else the usual one
    #[arg(long, value_name = "FILE")]
    pub log_path: Option<PathBuf>,
}

impl JournalArgs {
    /// The data directory, and the log's file if it is not the usual one.
    pub fn places(&self) -> Result<(PathBuf, Option<PathBuf>), String> {
        let mut options = Options::default().read(self.config.as_deref(), environment()?)?;
        overlay_path(&mut options, "data_dir", self.data_dir.as_deref())?;
        overlay_path(&mut options, "journal.log_path", self.log_path.as_deref())?;
        Ok((options.data_path(), options.log_path()))
    }
}

/// What can be done with the configuration.
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Print the configuration in force
    Print(ConfigArgs),
}

impl ConfigArgs {
    /// The options in force: default, file, environment, flag.
    pub fn options(&self) -> Result<Options, String> {
        self.options_over(Options::default())
    }

    /// The options in force over other defaults.
    pub(in crate::server) fn options_over(&self, defaults: Options) -> Result<Options, String> {
        let mut options = defaults.read(self.config.as_deref(), environment()?)?;
        for (name, value) in [("listen.http", &self.listen), ("listen.admin", &self.admin_listen)] {
            if let Some(value) = value {
                options.overlay_flag(name, value)?;
            }
        }
        overlay_path(&mut options, "data_dir", self.data_dir.as_deref())?;
        for pair in &self.set {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| format!("--set: {pair} is not KEY=VALUE"))?;
            options.overlay_flag(name, value)?;
        }
        Ok(options)
    }
}

impl InitArgs {
    /// The options to write: default, environment, flag. Their paths are absolute, so that the file means the same
    /// whatever folder a command runs in.
    pub(in crate::server) fn options(&self) -> Result<Options, String> {
        let mut options = Options::default().read(None, environment()?)?;
        overlay_path(&mut options, "data_dir", self.data_dir.as_deref())?;
        let paths = [("data_dir", Some(options.data_path())), ("journal.log_path", options.log_path())];
        for (name, path) in paths {
            // An empty one is refused elsewhere, with the variable that it is from.
            let path = path.filter(|path| !path.as_os_str().is_empty());
            overlay_path(&mut options, name, path.map(|path| absolute(name, &path)).transpose()?.as_deref())?;
        }
        Ok(options)
    }
}

/// What `path`, the value of a key, is in this folder.
fn absolute(name: &str, path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|fault| format!("{name}: {}: {fault}", path.display()))
}

/// Takes an empty path too, which is refused in our own words: they say which variable it may be from.
fn any_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Sets a key whose value is a path. Options are text, so one that is not UTF-8 would become another path.
fn overlay_path(options: &mut Options, name: &str, path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path else {
        return Ok(());
    };
    let text =
        path.to_str().ok_or_else(|| format!("{name}: got {}; allowed: a path in UTF-8", path.display()))?;
    options.overlay_flag(name, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_path_that_is_not_utf_8_is_refused_and_never_another_one() {
        let path = PathBuf::from(OsString::from_vec(b"/data\xff".to_vec()));
        let server = ConfigArgs { data_dir: Some(path.clone()), ..ConfigArgs::default() };
        let init = InitArgs { config: PathBuf::new(), data_dir: Some(path.clone()) };
        let of_data = JournalArgs { config: None, data_dir: Some(path.clone()), log_path: None };
        let of_log = JournalArgs { config: None, data_dir: None, log_path: Some(path) };
        for (name, refused) in [
            ("data_dir", server.options().map(drop)),
            ("data_dir", init.options().map(drop)),
            ("data_dir", of_data.places().map(drop)),
            ("journal.log_path", of_log.places().map(drop)),
        ] {
            assert_eq!(refused, Err(format!("{name}: got /data\u{fffd}; allowed: a path in UTF-8")));
        }
    }

    #[test]
    fn a_log_is_not_adopted_under_a_new_identity() {
        for (flags, taken) in [
            (&["--adopt-log"][..], true),
            (&["--new-identity"], true),
            (&["--adopt-log", "--new-identity"], false),
        ] {
            for command in ["serve", "dev"] {
                let words = [&["outcry", command], flags].concat();
                assert_eq!(Cli::try_parse_from(words).is_ok(), taken, "{command} {flags:?}");
            }
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_flag_names_any_key() {
        let args = ConfigArgs {
            set: vec!["cpu.shards=2".into()],
            listen: Some("127.0.0.1:0".into()),
            ..ConfigArgs::default()
        };
        let options = args.options().expect("good");
        assert_eq!((options.cpu_shards, options.listen_http.as_str()), (2, "127.0.0.1:0"));
        let args = ConfigArgs { set: vec!["cpu.shard=2".into()], ..ConfigArgs::default() };
        assert_eq!(
            args.options().expect_err("a typing error"),
            "cpu.shard: no such setting; did you mean cpu.shards?"
        );
    }
}
