//! `outcry dev`: an exchange to try things on, in one command and without a network.
//!
//! It is the same server as `serve`, on loopback only, with a tenth of every size that is not given, and no token.
//! What is special is what a client could do as well: the catalog is imported and accounts are
//! credited through the operator's listener, quotes and flow come through the public one, signed
//! with the ten test keys that every Ethereum developer knows. Every seed has a fixed name (a
//! reference, a condition, an order's digest), so a restart finds all of it done and adds nothing.
//!
//! The ports are written, and the page is printed, when everything is seeded.
//!
//! It takes no directory that it did not make: [`mark`].

mod flow;
pub(crate) mod mark;
mod page;
mod seed;
mod trader;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::probes;
use crate::journal::{self, Durability};
use crate::server::plan::command::{ClockKind, DevArgs};
use crate::server::plan::options::Options;
use crate::server::plan::{self, Plan, Start};
use crate::server::process::clock::{self, Clock};
use crate::server::process::run::{complain, say};
use crate::server::process::start::{self, End, Running};

/// The most orders a second of sample flow; whoever wants load takes the load generator.
const FLOW_MAX: u32 = 200;

/// Does `dev`.
pub(crate) fn run(args: &DevArgs) -> Result<ExitCode, String> {
    if FLOW_MAX < args.flow {
        return Err(format!("--flow: got {}; allowed: 0 to {FLOW_MAX} orders a second", args.flow));
    }
    let home = home();
    let data_dir = home.as_ref().map(|home| home.display().to_string()).unwrap_or_default();
    let options = args.server.config.options_over(Options { data_dir, ..Options::of_dev() })?;
    if options.data_dir.is_empty() {
        home?;
    }
    let data_dir = options.data_path();
    mark::refuse_anothers(&data_dir)?;
    let mut plan = plan::plan(&options, Start { dev: true, ..Start::of(&args.server) })?;
    if !plan.http.ip().is_loopback() {
        return Err(format!(
            "listen.http: got {}; allowed: a loopback address, for everybody knows dev's keys",
            plan.http
        ));
    }
    plan.waits_for_seed = true;
    let last = if args.fresh { Last::of(&data_dir)? } else { None };
    if let Some(fault) = probes::ports(&plan).into_iter().next() {
        return Err(fault);
    }
    start::refuse_early(&plan)?;
    start::refuse_full_disk(&plan)?;
    if let Some(last) = last {
        refuse_before_wipe(&plan)?;
        last.wipe(&data_dir)?;
    }
    let clock = match args.clock {
        ClockKind::Real => Clock::real(),
        ClockKind::Manual => Clock::manual(clock::wall()),
    };
    mark::leave(&data_dir, plan.log_path.as_deref())?;
    let mut running = start::start(plan.clone(), clock.clone())?;
    complain(running.recovered());
    if let Err(fault) = seed_and_trade(&running, &plan, &clock, args.flow) {
        // In good order, so that no log stays in memory.
        running.stop();
        return Err(fault);
    }
    Ok(match running.wait() {
        End::Clean => ExitCode::SUCCESS,
        End::Broken => ExitCode::FAILURE,
    })
}

/// Refuses, before anything is wiped, what a start would refuse once it has locked what is its own.
fn refuse_before_wipe(plan: &Plan) -> Result<(), String> {
    if plan.durability == Durability::Durable {
        journal::refuse_memory(&plan.data_dir).map_err(|fault| fault.to_string())?;
    }
    match plan.log_path.as_deref().filter(|log| !journal::log_is_of(log, &plan.data_dir)) {
        None => Ok(()),
        Some(log) => Err(format!(
            "journal.log_path: got {log}, which is not the log of {}; allowed: another path, or rm {log} if nobody \
             needs it",
            plan.data_dir.display(),
            log = log.display()
        )),
    }
}

fn seed_and_trade(running: &Running, plan: &Plan, clock: &Clock, flow_per_second: u32) -> Result<(), String> {
    // The seed's requests come from the address of whoever tries things, and must not use up its limits.
    running.shared.limits.suspend();
    let seeded = seed::seed(running.http(), running.admin(), plan, clock)?;
    running.shared.limits.resume();
    running.shared.note_seeded();
    running.write_ports()?;
    // The exchange is good without its page.
    if let Err(fault) = say(&page::page(running.http(), running.admin(), plan, &seeded)) {
        complain(&fault);
    }
    for line in &seeded.refused {
        complain(line);
    }
    if flow_per_second > 0 {
        flow::start(seeded, flow_per_second)?;
    }
    Ok(())
}

/// Where `dev` keeps its data if nobody says otherwise.
fn home() -> Result<PathBuf, String> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = named("XDG_DATA_HOME").or_else(|| named("HOME").map(|home| home.join(".local/share")));
    let data = data.ok_or("data_dir: neither XDG_DATA_HOME nor HOME is set; give --data-dir")?;
    Ok(data.join("outcry").join("dev"))
}

/// The data of the last time, which `dev` made, held so that no exchange starts on it.
struct Last {
    _folder: File,
    logs: Vec<PathBuf>,
}

impl Last {
    /// None if nothing is there; refused if an exchange runs on it.
    fn of(data_dir: &Path) -> Result<Option<Self>, String> {
        let at = data_dir.display();
        let folder = match File::open(data_dir) {
            Ok(folder) => folder,
            Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(format!("--fresh: {at}: {fault}")),
        };
        if folder.try_lock().is_err() {
            return Err(format!("--fresh: {at} is in use by a running exchange; stop it first"));
        }
        let usual = journal::log_path(None, data_dir);
        let logs: Vec<PathBuf> = usual.into_iter().chain(mark::logs(data_dir)).collect();
        let is_used = |log: &&PathBuf| File::open(log).is_ok_and(|file| file.try_lock().is_err());
        match logs.iter().find(is_used) {
            Some(log) => {
                Err(format!("--fresh: {} is the log of a running exchange; stop it first", log.display()))
            }
            None => Ok(Some(Self { _folder: folder, logs })),
        }
    }

    /// Removes what is in it, and its logs; a log that another exchange left there since is not its own.
    fn wipe(self, data_dir: &Path) -> Result<(), String> {
        for log in self.logs.iter().filter(|log| journal::log_is_of(log, data_dir)) {
            let _ = std::fs::remove_file(log);
        }
        mark::wipe(data_dir).map_err(|fault| format!("--fresh: {}: {fault}", data_dir.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TimeMs;

    #[test]
    fn fresh_removes_what_dev_made_and_no_log_that_another_exchange_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let [data, mine, others, unknown] =
            ["data", "mine", "other's", "unknown"].map(|name| folder.path().join(name));
        assert!(Last::of(&data).expect("nothing there").is_none());
        for log in [&mine, &others, &unknown] {
            mark::leave(&data, Some(log)).expect("marked");
        }
        // As processes leave them that die.
        for (data_dir, log) in [(&data, &mine), (&folder.path().join("other's data"), &others)] {
            let options = journal::Options {
                log_path: Some(log.clone()),
                log_bytes: 8 << 20,
                segment_bytes: 4 << 20,
                durability: Durability::Committed,
                ..journal::Options::new(data_dir)
            };
            let started = journal::open(options).expect("opens").start(TimeMs(1), 1, Box::new(|_| ()));
            started.expect("starts").writer.abandon().expect("left");
        }
        std::fs::write(&unknown, "what is no log").expect("written");
        std::os::unix::fs::symlink(&data, folder.path().join("link")).expect("linked");
        let data_dir = folder.path().join("link");
        Last::of(&data_dir).expect("dev's").expect("there").wipe(&data_dir).expect("wiped");
        assert!(data_dir.is_symlink() && std::fs::read_dir(&data).expect("it stays").next().is_none());
        assert!(!mine.exists() && others.exists() && unknown.exists());
    }
}
