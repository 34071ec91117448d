//! From the command line to an exit code: who does what was asked.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use super::clock::Clock;
use super::logging;
use super::secret;
use super::signals;
use super::start::{self, End};
use crate::server::operator::dev::mark;
use crate::server::operator::{account, dev, host, import, journal, market};
use crate::server::plan::command::{Cli, Command, ConfigArgs, ConfigCommand, InitArgs, ServerArgs};
use crate::server::plan::topology;
use crate::server::plan::{self, Start};

/// Reads the command line, does what it says and reports how that went.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let began = signals::fail_what_is_too_long().map_err(|fault| format!("signals: {fault}"));
    let done = began.and_then(|()| logging::begin()).and_then(|log| {
        let done = execute(&cli.command);
        log.flush();
        done
    });
    done.unwrap_or_else(|fault| {
        complain(&fault);
        ExitCode::FAILURE
    })
}

fn execute(command: &Command) -> Result<ExitCode, String> {
    match command {
        Command::Serve(args) => serve(args),
        Command::Dev(args) => dev::run(args),
        Command::Init(args) => init(args).map(|()| ExitCode::SUCCESS),
        Command::Config(ConfigCommand::Print(args)) => print_options(args),
        Command::Errors => say(&crate::server::reading::errors::markdown()),
        Command::Version { verbose } => say(&version(*verbose)),
        Command::Import(command) => import::run(command),
        Command::Market(command) => market::run(command),
        Command::Account(command) => account::run(command),
        Command::Journal(command) => journal::run(command),
        Command::Topology(args) => host::topology(args),
        Command::Check(args) => host::check(args),
        Command::Tune(args) => host::tune(args),
        Command::Snapshot(admin) => market::snapshot(admin),
        Command::Mode { admin, mode } => market::exchange_mode(admin, mode),
    }
}

/// Prints to standard output.
pub(crate) fn say(text: &str) -> Result<ExitCode, String> {
    let mut out = std::io::stdout();
    said(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What came of printing: whoever read enough of it (`| head`) is no fault of ours, but a full disk is told.
pub(crate) fn said(printed: std::io::Result<()>) -> Result<ExitCode, String> {
    match printed {
        Err(fault) if fault.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("standard output: {fault}"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints to standard error.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "outcry: {text}");
}

fn serve(args: &ServerArgs) -> Result<ExitCode, String> {
    let options = args.config.options()?;
    let plan = plan::plan(&options, Start::of(args))?;
    mark::refuse_devs(&plan.data_dir)?;
    if let Some(config) = &args.config.config {
        secret::refuse_none(&plan.data_dir, config)?;
    }
    start::refuse_full_disk(&plan)?;
    let is_new = !secret::was_begun(&plan.data_dir);
    complain(&format!("version {}", env!("CARGO_PKG_VERSION")));
    let said = [plan.topology.lines(), vec![plan.durability_line()], plan.sizes(), plan.warnings()];
    for line in said.concat() {
        complain(&line);
    }
    let data_dir = plan.data_dir.clone();
    let running = start::start(plan, Clock::real())?;
    complain(running.recovered());
    if is_new {
        complain(&format!(
            "began a new exchange in {}; keep its master-secret, no client's key survives its loss",
            data_dir.display()
        ));
    }
    if crate::server::operator::admin::token_of_environment().is_none() {
        complain(&format!("operator's token in {}", secret::admin_token_path(&data_dir).display()));
    }
    complain(&format!("serving on http://{}, operator on http://{}", running.http(), running.admin()));
    Ok(match running.wait() {
        End::Clean => ExitCode::SUCCESS,
        End::Broken => ExitCode::FAILURE,
    })
}

/// Prints what is in force, which is nothing if `serve` would refuse it.
fn print_options(args: &ConfigArgs) -> Result<ExitCode, String> {
    let options = args.options()?;
    plan::plan(&options, Start::default())?;
    say(&options.printed())
}

/// Writes a commented configuration that `serve` takes, never over one that is there, and the master secret. The
/// configuration gets its name last, so an `init` that fails, or is killed, can be repeated.
fn init(args: &InitArgs) -> Result<(), String> {
    let options = args.options()?;
    plan::plan(&options, Start::default())?;
    mark::refuse_devs(&options.data_path())?;
    let path = args.config.display();
    let said = |fault: std::io::Error| match fault.kind() {
        std::io::ErrorKind::AlreadyExists => format!("--config: {path} is there already; move it away first"),
        _ => format!("--config: {path}: {fault}"),
    };
    if std::fs::symlink_metadata(&args.config).is_ok() {
        return Err(said(std::io::ErrorKind::AlreadyExists.into()));
    }
    let beside = args.config.with_extension(format!("new-{}", std::process::id()));
    let written = std::fs::write(&beside, options.commented()).map_err(said);
    let secret = written.and_then(|()| secret::make_master(&options.data_path()));
    // A link never takes another file's place.
    let named =
        secret.and_then(|made| std::fs::hard_link(&beside, &args.config).map_err(said).map(|()| made));
    let _ = std::fs::remove_file(&beside);
    let secret = named?;
    say(&format!(
        "wrote {path}\nmaster secret in {}{}; keep it, no client's key survives its loss\n",
        secret.path.display(),
        if secret.was_there { ", as before" } else { "" }
    ))?;
    if secret.replaces {
        complain(
            "the master secret is another than the journal's clients knew: each has to make its keys again",
        );
    }
    Ok(())
}

fn version(verbose: bool) -> String {
    let mut text = format!("outcry {}\n", env!("CARGO_PKG_VERSION"));
    if verbose {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        let _ = writeln!(text, "built for {arch} {os}\nallowed cpus: {:?}", topology::allowed_cpus());
    }
    text
}
