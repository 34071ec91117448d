//! A scenario file: options as written, checked into a [`Plan`].
//!
//! What depends on the machine is decided when a plan runs there ([`Plan::on`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::written::{Written, nearest};

mod reads;

/// What kind of request it is; each has a histogram of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    /// `POST /order` that rests.
    Place,
    /// `DELETE /order` of one that rests.
    Cancel,
    /// `POST /replace` of one quote by another.
    Replace,
    /// `POST /orders` of fifteen that rest.
    Batch,
    /// `POST /order` that is matched at once.
    Take,
    /// `GET /book`, `/midpoint` and `/price`.
    Read,
}

impl Class {
    /// All of them, in the order of the tables.
    pub(crate) const ALL: [Self; 6] =
        [Self::Place, Self::Cancel, Self::Replace, Self::Batch, Self::Take, Self::Read];

    /// The name in files and tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Cancel => "cancel",
            Self::Replace => "replace",
            Self::Batch => "batch",
            Self::Take => "take",
            Self::Read => "read",
        }
    }
}

/// When requests are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    /// At equal distances.
    Fixed,
    /// At random distances with the same mean, as independent clients arrive.
    Poisson,
}

impl Arrivals {
    /// The word in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Poisson => "poisson",
        }
    }
}

/// What the client does until the next request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// It polls for answers all the time: no wake-up is in the figures.
    Polls,
    /// It polls where it has a CPU of its own. Where a thread of the server that waits for the disk would have no CPU
    /// but the client's, it sleeps, because that thread would otherwise wait for the scheduler and not for the disk.
    SleepsWhereShared,
    /// It polls where it has a CPU of its own. Where a thread of the server would have no CPU but the client's, it
    /// yields that CPU after each look that found nothing, because that thread, and what the kernel does for it, would
    /// otherwise wait for milliseconds.
    YieldsWhereShared,
}

/// What the client does on this machine while nothing is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// It looks again.
    Polls,
    /// It yields its CPU, then looks again.
    Yields,
    /// It sleeps until something is due or arrives.
    Sleeps,
}

/// With this many CPUs the trading loop, the journal's thread and the client have one each.
const CPUS_APART: usize = 3;

/// The longest warm-up of a load, and the longest time that is measured of one, in seconds.
const WARM_UP_S_MAX: u32 = 300;
pub(crate) const TIME_S_MAX: u32 = 3_000;

/// How long it may take, in seconds, to sign everything and to place what rests before the clock starts.
const SIGNING_S_MAX: u32 = 300;

/// The largest `auth.window_s` of a server: how many seconds before it is sent a request may have been signed.
const WINDOW_S_MAX: u32 = 3_600;

/// The smallest that a load sets.
const WINDOW_S_MIN: u32 = 600;

const _: () = assert!(
    SIGNING_S_MAX + WARM_UP_S_MAX + TIME_S_MAX <= WINDOW_S_MAX,
    "the first signature holds until the last request was sent"
);

/// Nothing is measured with fewer CPUs than this: the server's and the client's.
const CPUS_MIN: u32 = 2;

/// The end of a scenario's name where `serve` places the threads.
const AS_SERVE: &str = "-as-serve";

impl Client {
    /// What it does on a machine with `cpus` CPUs.
    pub(crate) fn waits(self, cpus: usize) -> Waits {
        match self {
            Self::SleepsWhereShared if cpus < CPUS_APART => Waits::Sleeps,
            Self::YieldsWhereShared if cpus < CPUS_APART => Waits::Yields,
            _ => Waits::Polls,
        }
    }
}

/// Where the server keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// In shared memory: nothing is left behind and no disk is measured.
    Memory,
    /// In a directory on the disk that the project is on.
    Disk,
}

impl Data {
    /// The word in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

/// Rates for a sweep, in requests a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Steps {
    /// The first rate.
    pub(crate) first: f64,
    /// Each rate is the one before times this.
    pub(crate) factor: f64,
    /// At most this many rates.
    pub(crate) count: u32,
}

/// A checked scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The file's name without its ending.
    pub(crate) name: String,
    /// One sentence: what it is for.
    pub(crate) purpose: String,
    /// What everything random is drawn from.
    pub(crate) seed: u64,
    /// Requests a second.
    pub(crate) rate: f64,
    /// When they are due.
    pub(crate) arrivals: Arrivals,
    /// Requests that are due at one moment.
    pub(crate) burst: u32,
    /// Connections on which orders go out.
    pub(crate) connections: u32,
    /// Connections on which only reads go out; if 0, reads go out on those of orders.
    pub(crate) read_connections: u32,
    /// The time before what is measured.
    pub(crate) warm_up: Duration,
    /// The time that is measured.
    pub(crate) time: Duration,
    /// How late at p99 the generator may send in a VALID run.
    pub(crate) late_max: Duration,
    /// What the client does while nothing is due.
    pub(crate) client: Client,
    /// Parts of each class, in the order of [`Class::ALL`].
    pub(crate) mix: [u32; Class::ALL.len()],
    /// Markets with a book each.
    pub(crate) markets: u32,
    /// Orders that rest before the clock starts, at least.
    pub(crate) resting: u32,
    /// Wallets that trade, each with a key of its own; they are spread over the connections.
    pub(crate) wallets: u32,
    /// Orders that are placed and cancelled before everything else.
    pub(crate) history: u32,
    /// Where the server keeps its data.
    pub(crate) data: Data,
    /// Settings of the server, each `key=value`.
    pub(crate) settings: Vec<String>,
    /// CPUs that these settings need, the client's among them.
    pub(crate) cpus: u32,
    /// Settings that are laid over them on a machine with fewer CPUs.
    pub(crate) on_fewer: Option<Vec<String>>,
    /// What `sweep` does.
    pub(crate) sweep: Steps,
}

impl Plan {
    /// Reads the scenario `name` of `folder`, or the file if `name` is a path to one.
    pub(crate) fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let path = match name.strip_suffix(".toml") {
            Some(_) => PathBuf::from(name),
            None if name.contains('/') => {
                return Err(format!("scenario {name}: is not a name, and a file's path ends in .toml"));
            }
            None => folder.join(format!("{name}.toml")),
        };
        let text = std::fs::read_to_string(&path).map_err(|fault| missing(folder, name, &path, &fault))?;
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::parse(&stem, &text).map_err(|complaint| format!("{}: {complaint}", path.display()))
    }

    /// Checks the text of a scenario.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let file = Written::parse(text)?;
        file.only_known()?;
        let mix = {
            let mut mix = [0; Class::ALL.len()];
            for (part, class) in mix.iter_mut().zip(Class::ALL) {
                *part = file.small(&format!("mix.{}", class.name()), 0, 10_000, Some(0))?;
            }
            mix
        };
        if mix.iter().all(|&part| part == 0) {
            return Err("mix: all parts are 0; give at least one class a part".to_owned());
        }
        let rate = file.float("load.rate", 1.0, 10_000_000.0, None)?;
        let connections = file.small("load.connections", 1, 1_000, Some(8))?;
        // Answers leave a connection in request order, so an order behind a read would wait for the reader.
        let for_reads = if mix[Class::Read as usize] == 0 { 0 } else { connections };
        let read_connections = file.small("load.read_connections", 0, 1_000, Some(for_reads))?;
        let plan = Self {
            name: name.to_owned(),
            purpose: file.text("purpose", None)?,
            seed: file.whole("seed", 0, i64::MAX, Some(1))?.unsigned_abs(),
            rate,
            arrivals: match file.text("load.arrivals", Some("fixed"))?.as_str() {
                "fixed" => Arrivals::Fixed,
                "poisson" => Arrivals::Poisson,
                got => return Err(format!("load.arrivals: got {got}; allowed: fixed, poisson")),
            },
            burst: file.small("load.burst", 1, 10_000, Some(1))?,
            connections,
            read_connections,
            warm_up: Duration::from_secs_f64(file.float(
                "load.warm_up_s",
                0.0,
                f64::from(WARM_UP_S_MAX),
                Some(1.0),
            )?),
            time: Duration::from_secs_f64(file.float(
                "load.time_s",
                0.05,
                f64::from(TIME_S_MAX),
                Some(5.0),
            )?),
            late_max: Duration::from_micros(u64::from(file.small(
                "load.late_us_max",
                1,
                1_000_000,
                Some(100),
            )?)),
            client: match file.text("load.client", Some("polls"))?.as_str() {
                "polls" => Client::Polls,
                "sleeps-where-shared" => Client::SleepsWhereShared,
                "yields-where-shared" => Client::YieldsWhereShared,
                got => {
                    return Err(format!(
                        "load.client: got {got}; allowed: polls, sleeps-where-shared, yields-where-shared"
                    ));
                }
            },
            mix,
            markets: file.small("books.markets", 1, 10_000, Some(1))?,
            resting: file.small("books.resting", 0, 1_000_000, Some(100))?,
            wallets: file.small("books.wallets", connections, 100_000, Some(connections))?,
            history: file.small("books.history", 0, 3_000_000, Some(0))?,
            data: match file.text("server.data", Some("memory"))?.as_str() {
                "memory" => Data::Memory,
                "disk" => Data::Disk,
                got => return Err(format!("server.data: got {got}; allowed: memory, disk")),
            },
            settings: file.settings("server.set")?.unwrap_or_default(),
            cpus: file.small("server.cpus", CPUS_MIN, 1_024, Some(CPUS_MIN))?,
            on_fewer: file.settings("server.set_on_fewer")?,
            sweep: Steps {
                first: file.float("sweep.first", 1.0, 10_000_000.0, Some((rate / 4.0).max(1.0)))?,
                factor: file.float("sweep.factor", 1.01, 10.0, Some(1.5))?,
                count: file.small("sweep.steps", 1, 100, Some(12))?,
            },
        };
        if plan.on_fewer.is_some() && plan.cpus == CPUS_MIN {
            return Err(format!(
                "server.set_on_fewer: is never used; say with server.cpus how many CPUs server.set needs, {} to 1024",
                CPUS_MIN + 1
            ));
        }
        plan.has_what_is_read()?;
        if plan.purpose.trim().is_empty() {
            return Err("purpose: is empty; say in one sentence what the scenario is for".to_owned());
        }
        Ok(plan)
    }

    /// The plan as a machine with `cpus` CPUs runs it.
    pub(crate) fn on(&self, cpus: usize) -> Result<Self, String> {
        if self.cpus as usize <= cpus {
            return Ok(self.clone());
        }
        let over = self.on_fewer.as_ref().ok_or_else(|| {
            format!("{}: got {cpus} CPUs; needed: {}, or server.set_on_fewer in it", self.name, self.cpus)
        })?;
        // The overlay has been applied for these CPUs and must not be applied again.
        let plan = Self { cpus: 0, on_fewer: None, ..self.clone() };
        Ok(plan.set(over))
    }

    /// The plan with settings laid over its own: for the same key the new value wins, and a setting with nothing after
    /// its `=` removes the key.
    pub(crate) fn set(mut self, over: &[String]) -> Self {
        let key = |setting: &str| setting.split('=').next().unwrap_or_default().to_owned();
        for setting in over {
            self.settings.retain(|own| key(own) != key(setting));
            if !setting.ends_with('=') {
                self.settings.push(setting.clone());
            }
        }
        self
    }

    /// The plan with the server's threads where `serve` puts them by itself, waiting as they do there. It has a name
    /// of its own, so that a record of one is not taken for the other.
    pub(crate) fn as_serve(&self) -> Self {
        let settings = self.settings.iter().filter(|setting| !setting.starts_with("cpu.")).cloned();
        Self {
            name: format!("{}{AS_SERVE}", self.name),
            settings: settings.chain(["cpu.policy=auto".to_owned()]).collect(),
            cpus: CPUS_MIN,
            on_fewer: None,
            ..self.clone()
        }
    }

    /// The `auth.window_s` with which its requests, all signed before the clock starts, are taken to the last.
    pub(crate) fn window_s(&self) -> u64 {
        let load = self.warm_up + self.time + Duration::from_secs(1);
        (u64::from(SIGNING_S_MAX) + load.as_secs()).max(u64::from(WINDOW_S_MIN)).min(u64::from(WINDOW_S_MAX))
    }

    /// The plan at another rate.
    pub(crate) fn at(&self, rate: f64) -> Self {
        Self { rate, ..self.clone() }
    }
}

/// The message for a missing scenario, with those there are and the nearest name.
fn missing(folder: &Path, name: &str, path: &Path, fault: &std::io::Error) -> String {
    let names = names(folder);
    let near = nearest(name, names.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("scenario {name}: {}: {fault}{near} There are: {}", path.display(), names.join(", "))
}

/// Names of all scenarios in a folder, in alphabetical order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "purpose = \"A test.\"\n[load]\nrate = 100\n[mix]\nplace = 1\n";

    #[track_caller]
    fn refused(change: &str, complaint: &str) {
        let text = format!("{LEAST}{change}");
        assert_eq!(Plan::parse("t", &text), Err(complaint.to_owned()), "{text}");
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let plan = Plan::parse("t", LEAST).unwrap();
        assert_eq!((plan.connections, plan.markets, plan.burst), (8, 1, 1));
        assert_eq!((plan.wallets, plan.history), (8, 0));
        assert_eq!((plan.arrivals, plan.data), (Arrivals::Fixed, Data::Memory));
        assert_eq!(plan.sweep, Steps { first: 25.0, factor: 1.5, count: 12 });
    }

    #[test]
    fn a_wrong_word_is_refused_with_the_nearest_or_the_allowed_ones() {
        refused("place = 2", "line 6, column 1: duplicate key");
        refused("[purposes]", "purposes: unknown key; the nearest is purpose");
        refused("plaice = 2", "mix.plaice: unknown key; the nearest is mix.place");
        refused("[sweep]\nfactr = 2", "sweep.factr: unknown key; the nearest is sweep.factor");
        refused("[book]\nmarkets = 2", "book.markets: unknown key; the nearest is books.markets");
        refused("take = -1", "mix.take: got -1; allowed: a whole number, 0 to 10000");
        refused("take = 1.5", "mix.take: got 1.5; allowed: a whole number, 0 to 10000");
        refused("[server]\ndata = \"tape\"", "server.data: got tape; allowed: memory, disk");
        refused("[sweep]\nfactor = 1", "sweep.factor: got 1; allowed: 1.01 to 10");
        refused("[books]\nmarkets = 0", "books.markets: got 0; allowed: a whole number, 1 to 10000");
        refused("[books]\nwallets = 7", "books.wallets: got 7; allowed: a whole number, 8 to 100000");
        refused("[books]\nhistory = -1", "books.history: got -1; allowed: a whole number, 0 to 3000000");
        refused("[server]\nset = 3", "server.set: got 3; allowed: a table of the server's keys");
        refused("[server]\ncpus = 1", "server.cpus: got 1; allowed: a whole number, 2 to 1024");
        refused(
            "[server.set_on_fewer]\n\"cpu.wait\" = \"park\"",
            "server.set_on_fewer: is never used; say with server.cpus how many CPUs server.set needs, 3 to 1024",
        );
        refused(
            "[server]\ncpus = 3\n[server.set_on_fewer]\n\"a.b\" = 1.5",
            "server.set_on_fewer.\"a.b\": got 1.5; allowed: a text, a number, true, false",
        );
    }

    #[test]
    fn what_must_be_said_is_asked_for() {
        let wrong = |text: &str| Plan::parse("t", text).unwrap_err();
        assert_eq!(wrong("[load]\nrate = 1\n[mix]\nplace = 1"), "purpose: is missing");
        assert_eq!(
            wrong("purpose = \"x\"\n[mix]\nplace = 1"),
            "load.rate: is missing; allowed: 1 to 10000000"
        );
        assert_eq!(
            wrong("purpose = \"x\"\n[load]\nrate = 1"),
            "mix: all parts are 0; give at least one class a part"
        );
    }

    #[test]
    fn as_serve_places_its_threads_nothing_of_cpus_is_set() {
        for (settings, expected) in [
            ("", &["cpu.policy=auto"][..]),
            (
                "cpus = 3\n[server.set]\n\"cpu.policy\" = \"explicit\"\n\"cpu.shard_cpus\" = \"0\"\n\"sizes.wallets\" = 9\n\
                 [server.set_on_fewer]\n\"cpu.wait\" = \"park\"",
                &["sizes.wallets=9", "cpu.policy=auto"],
            ),
        ] {
            let plan = Plan::parse("t", &format!("{LEAST}[server]\n{settings}")).unwrap().as_serve();
            assert_eq!(
                (plan.name.as_str(), plan.settings.as_slice()),
                ("t-as-serve", &expected.iter().map(|&set| set.to_owned()).collect::<Vec<_>>()[..])
            );
            assert_eq!(plan.on(2), Ok(plan.clone()), "nothing is laid over it with fewer CPUs");
        }
    }

    #[test]
    fn a_client_leaves_its_cpu_only_where_it_says_so_and_shares_it() {
        let plan = |client: &str| {
            let text = LEAST.replacen("rate = ", &format!("client = \"{client}\"\nrate = "), 1);
            Plan::parse("t", &text)
        };
        for (client, cpus, waits) in [
            ("polls", 2, Waits::Polls),
            ("sleeps-where-shared", 1, Waits::Sleeps),
            ("sleeps-where-shared", 2, Waits::Sleeps),
            ("sleeps-where-shared", 3, Waits::Polls),
            ("yields-where-shared", 2, Waits::Yields),
            ("yields-where-shared", 3, Waits::Polls),
        ] {
            assert_eq!(plan(client).unwrap().client.waits(cpus), waits, "{client} with {cpus}");
        }
        assert_eq!(
            plan("naps").unwrap_err(),
            "load.client: got naps; allowed: polls, sleeps-where-shared, yields-where-shared"
        );
    }

    #[test]
    fn settings_of_the_server_are_handed_on_as_they_are() {
        let text = format!("{LEAST}[server.set]\n\"cpu.shards\" = 2\n\"journal.durability\" = \"durable\"\n");
        let plan = Plan::parse("t", &text).unwrap();
        assert_eq!(plan.settings, ["cpu.shards=2", "journal.durability=durable"]);
    }

    #[test]
    fn what_is_set_goes_by_the_number_of_cpus() {
        let set = "[server]\ncpus = 3\n[server.set]\n\"cpu.ingress\" = \"1\"\n\"cpu.wait\" = \"spin\"\n";
        let apart = ["cpu.ingress=1", "cpu.wait=spin"];
        let refusal = "t: got 2 CPUs; needed: 3, or server.set_on_fewer in it";
        for (on_fewer, cpus, settings) in [
            ("", 2, Err(refusal)),
            ("", 3, Ok(&apart[..])),
            ("\"cpu.wait\" = \"park\"", 3, Ok(&apart[..])),
            ("\"cpu.wait\" = \"park\"", 4, Ok(&apart[..])),
            ("\"cpu.wait\" = \"park\"", 2, Ok(&["cpu.ingress=1", "cpu.wait=park"][..])),
            ("\"cpu.ingress\" = \"\"", 1, Ok(&["cpu.wait=spin"][..])),
            ("\"cpu.reader\" = \"1\"", 2, Ok(&["cpu.ingress=1", "cpu.wait=spin", "cpu.reader=1"][..])),
        ] {
            let table = if on_fewer.is_empty() { "" } else { "[server.set_on_fewer]\n" };
            let plan = Plan::parse("t", &format!("{LEAST}{set}{table}{on_fewer}\n")).unwrap();
            let got = plan.on(cpus);
            let said = got.as_ref().map(|plan| plan.settings.as_slice()).map_err(String::as_str);
            let wanted = settings.map(|all| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
            assert_eq!(said, wanted.as_deref().map_err(|complaint| *complaint), "{on_fewer} on {cpus}");
            // Applied twice, the result is the same.
            if let Ok(once) = got {
                assert_eq!(once.on(cpus).as_ref(), Ok(&once));
            }
        }
    }

    #[test]
    fn every_scenario_of_the_project_is_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let names = names(&folder);
        for needed in [
            "batch15",
            "cancel-storm",
            "journal-durable",
            "maker-quote",
            "many-books",
            "mixed",
            "read-heavy",
            "smoke",
            "split-ingress",
            "taker-burst",
        ] {
            assert!(names.iter().any(|name| name == needed), "{needed} is missing");
        }
        for name in names {
            let plan = Plan::read(&folder, &name).unwrap();
            // The fewest CPUs on which the rig runs.
            plan.on(2).unwrap();
        }
    }

    #[test]
    fn a_scenario_that_is_not_there_is_answered_with_those_that_are() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let complaint = Plan::read(&folder, "smok").unwrap_err();
        assert!(complaint.contains("did you mean smoke?") && complaint.contains("read-heavy"), "{complaint}");
        let complaint = Plan::read(&folder, "../scenarios/smoke").unwrap_err();
        assert!(complaint.ends_with("is not a name, and a file's path ends in .toml"), "{complaint}");
    }
}
