//! The command line: what is asked for, and who does it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::compare::{self, Side};
use crate::run::{self, Cpus, Ground, Outcome};
use crate::scenario::{self, Plan, TIME_S_MAX};
use crate::summary::{AsServe, Summary};
use crate::{
    bench, durable, jitter, layers, leftovers, machine, placement, readme, records, report, scale, server,
    sweep,
};

/// Measures a running outcry from outside.
#[derive(Parser)]
#[command(name = "perf", bin_name = "scripts/perf")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    places: Places,
}

/// How long each CPU is watched before and after a run.
const JITTER: Duration = Duration::from_secs(1);

/// How long `jitter` may watch each, in seconds.
const JITTER_S_MAX: u32 = 3_600;

#[derive(Args)]
struct Places {
    /// The server's binary; by default the one beside this program.
    #[arg(long, global = true, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Where each run gets a folder; by default `target/perf`.
    #[arg(long, global = true, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// How server and rig were built, for the summary.
    #[arg(long, global = true, default_value = "release", value_name = "NAME", hide = true)]
    built: String,
}

#[derive(Args)]
struct Load {
    /// A name below perf/scenarios, or a file that ends in .toml.
    scenario: String,
    /// Requests a second instead of the scenario's; for a sweep, the first rate.
    #[arg(long)]
    rate: Option<f64>,
    /// Seconds that are measured, instead of the scenario's.
    #[arg(long)]
    seconds: Option<f64>,
    /// Places the server's threads where `serve` puts them here by itself, waiting as they do there.
    #[arg(long)]
    as_serve: bool,
}

#[derive(Subcommand)]
enum Command {
    /// A few seconds of everything, placed for measuring and as `serve` does; the last line is the path of the report.
    Smoke,
    /// One scenario at one rate.
    Run(Load),
    /// One scenario at rising rates, until the server is saturated.
    Sweep(Load),
    /// What each layer of one order costs, from the book to the loopback.
    Layers {
        /// Orders that are measured.
        #[arg(long, default_value_t = 5_000)]
        orders: usize,
    },
    /// What an order costs as books, wallets, open orders and history grow, and on two shards.
    Scale {
        /// The largest size of each, as a multiple of its base: 1, 10 or 100.
        #[arg(long, default_value_t = scale::FACTOR_MAX, value_parser = factor)]
        up_to: u32,
        /// Seconds that are measured for each size.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Orders with which shards are measured.
        #[arg(long, default_value_t = 40_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
        orders: u32,
    },
    /// What an answer that waits for the disk costs, beside a bare write to it.
    Durable {
        /// Pairs of runs, committed and durable; the order within each changes.
        #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        pairs: u32,
        /// Seconds that are measured in each run.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// Two servers, or two settings of one, under the same load, in turn; says whether they differ.
    Compare {
        /// A binary, or a revision whose binary is at target/perf/servers/REVISION/outcry.
        before: String,
        /// A binary or a revision, as BEFORE.
        after: String,
        /// The scenario.
        #[arg(long, default_value = "maker-quote")]
        scenario: String,
        /// A setting of A's server, laid over the scenario's; nothing after the = leaves the key out.
        #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
        a_set: Vec<String>,
        /// A setting of B's server, as --a-set.
        #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
        b_set: Vec<String>,
        /// Pairs of runs; the order within each changes.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(i64::from(compare::PAIRS_MIN)..=1_000))]
        pairs: u32,
        /// Seconds that are measured in each run.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// What the machine takes from a thread that only spins, CPU by CPU.
    Jitter {
        /// How long each CPU is watched.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// One of the project's benchmarks; its figures can be kept like a run.
    Bench {
        /// The name of the benchmark.
        name: String,
        /// How it is built.
        #[arg(long, default_value = bench::PROFILE, value_name = "NAME")]
        profile: String,
        /// Words for the benchmark itself.
        #[arg(last = true, value_name = "WORD")]
        words: Vec<String>,
    },
    /// Keeps a run or figures in perf/records; INVALID ones are refused.
    Record {
        /// A run's folder, or its summary.json or figures; by default the newest.
        run: Option<PathBuf>,
    },
    /// Draws the report of a run again, from its summary.
    Report {
        /// A run's folder.
        run: PathBuf,
    },
    /// Writes the tables of README and perf/FIGURES.md from perf/records.
    Readme {
        /// Only says whether they are up to date.
        #[arg(long)]
        check: bool,
    },
    /// The scenarios there are, and what each is for.
    List,
}

/// Reads the command line and does what it says.
pub(crate) fn execute() -> ExitCode {
    if let Some(fault) = leftovers::become_held() {
        eprintln!("perf: {fault}");
        return ExitCode::FAILURE;
    }
    let cli = Cli::parse();
    match leftovers::go_with_a_signal().and_then(|()| cli.execute()) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("perf: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// The project's folder: the rig runs from its own source tree.
fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the project").to_owned()
}

impl Cli {
    fn execute(&self) -> Result<ExitCode, String> {
        let project = project();
        let ground = self.places.ground(&project)?;
        let scenarios = project.join("perf/scenarios");
        match &self.command {
            Command::Smoke => smoke(&ground, &Plan::read(&scenarios, "smoke")?)?,
            Command::Run(load) => one(&ground, &load.plan(&scenarios)?)?,
            Command::Sweep(load) => sweep::run(&ground.among_many(), &load.plan(&scenarios)?)?,
            Command::Layers { orders } => layers::run(&ground, *orders)?,
            &Command::Scale { up_to, seconds, orders } => {
                scale::run(&ground, scale::Extent { factor_max: up_to, time: seconds_of(seconds)?, orders })?;
            }
            &Command::Durable { pairs, seconds } => {
                let plan = durable::plan(&scenarios, seconds_of(seconds)?)?;
                durable::run(&ground.among_many(), &plan, pairs)?;
            }
            Command::Compare { before, after, scenario, a_set, b_set, pairs, seconds } => {
                let plan = Plan::read(&scenarios, scenario)?;
                let plan = Plan { time: seconds_of(*seconds)?, warm_up: Duration::from_millis(500), ..plan };
                let sides = [Side { server: before, set: a_set }, Side { server: after, set: b_set }];
                compare::run(&ground.among_many(), &plan, sides, *pairs)?;
            }
            Command::Jitter { seconds } => {
                let allowed = machine::allowed_cpus();
                let both = Cpus::choose().map_or_else(|_| allowed.clone(), |cpus| cpus.both().to_vec());
                let of_run = placement::cpus(&placement::of(&ground.server, &[]).threads, &both);
                let rows = jitter::measure(&allowed, seconds_up_to(*seconds, JITTER_S_MAX)?);
                print!("{}", jitter::table(&rows, &of_run));
            }
            Command::Bench { name, profile, words } => bench::run(&ground, name, profile, words)?,
            Command::Record { run } => records::keep(&ground, run.as_deref())?,
            Command::Report { run } => {
                let summary = Summary::read(&run.join("summary.json"))?;
                match sweep::steps(run)? {
                    Some(steps) => sweep::draw(run, &steps, &summary)?,
                    None => report::draw(run, &summary)?,
                }
                println!("{}", run.join("report.html").display());
            }
            Command::Readme { check } => readme::update(&project, *check)?,
            Command::List => {
                for name in scenario::names(&scenarios) {
                    let plan = Plan::read(&scenarios, &name)?;
                    println!("{name:16} {}", plan.purpose);
                    let (rate, arrivals) = (report::count(plan.rate), plan.arrivals.name());
                    let at_once = if 1 < plan.burst {
                        format!(", {} at one moment", plan.burst)
                    } else {
                        String::new()
                    };
                    println!("{:16} {rate} requests a second, arrivals {arrivals}{at_once}", "");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Places {
    fn ground(&self, project: &Path) -> Result<Ground, String> {
        let server = match &self.server {
            Some(server) => server::binary(server)?,
            None => std::env::current_exe()
                .map_err(|fault| format!("this program's own path: {fault}"))?
                .with_file_name("outcry"),
        };
        Ok(Ground {
            project: project.to_owned(),
            server,
            out: self.out.clone().unwrap_or_else(|| project.join("target/perf")),
            profile: self.built.clone(),
            jitter: JITTER,
        })
    }
}

impl Load {
    fn plan(&self, scenarios: &Path) -> Result<Plan, String> {
        let mut plan = Plan::read(scenarios, &self.scenario)?;
        if let Some(rate) = self.rate {
            if !(1.0..=10_000_000.0).contains(&rate) {
                return Err(format!("--rate: got {rate}; allowed: 1 to 10000000"));
            }
            plan = plan.at(rate);
            plan.sweep.first = rate;
        }
        if let Some(seconds) = self.seconds {
            plan.time = seconds_of(seconds)?;
        }
        Ok(if self.as_serve { plan.as_serve() } else { plan })
    }
}

fn setting(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("got {text}; allowed: KEY=VALUE")),
    }
}

fn factor(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(factor @ (1 | 10 | 100)) => Ok(factor),
        _ => Err(format!("got {text}; allowed: 1, 10, 100")),
    }
}

/// The seconds of a load.
fn seconds_of(seconds: f64) -> Result<Duration, String> {
    seconds_up_to(seconds, TIME_S_MAX)
}

fn seconds_up_to(seconds: f64, max: u32) -> Result<Duration, String> {
    if (0.05..=f64::from(max)).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(format!("--seconds: got {seconds}; allowed: 0.05 to {max}"))
}

/// One run, its table, and the path of its report.
fn one(ground: &Ground, plan: &Plan) -> Result<(), String> {
    told(ground, &measured(ground, plan)?)
}

/// One run; if `serve` would place the threads differently, also the same load with them placed so.
fn smoke(ground: &Ground, plan: &Plan) -> Result<(), String> {
    let mut outcome = measured(ground, plan)?;
    let summary = &mut outcome.summary;
    if placement::differs(&summary.threads, &summary.threads_by_itself) {
        summary.as_serve = Some(AsServe::of(measured(&ground.among_many(), &plan.as_serve())?.summary));
    }
    told(ground, &outcome)
}

fn measured(ground: &Ground, plan: &Plan) -> Result<Outcome, String> {
    println!("{}: {}", plan.name, plan.purpose);
    run::run(ground, plan).map_err(|fault| format!("INVALID: nothing was measured: {fault}"))
}

fn told(ground: &Ground, outcome: &Outcome) -> Result<(), String> {
    let folder = report::write(&ground.out, outcome)?;
    print!("{}", report::text(&outcome.summary));
    println!("{}", folder.join("report.html").display());
    Ok(())
}
