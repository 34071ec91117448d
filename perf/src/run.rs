//! One run: the machine, the server, the load, and what came of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::answers::{Classes, loops_needed, rates, stages, time_line};
use crate::disk;
use crate::generator::{Generator, NEVER, Times};
use crate::in_force;
use crate::jitter::{self, Jitter};
use crate::leftovers::Folder;
use crate::line::Line;
use crate::looks::{Look, Told};
use crate::machine::{self, Environment};
use crate::orders::Account;
use crate::placement::{self, Placement, Planned, Thread};
use crate::records;
use crate::scenario::{Class, Data, Plan, Waits};
use crate::schedule::{Schedule, nanos};
use crate::server::{self, Server};
use crate::stats::{self, Nanos, Quantiles, histogram, record};
use crate::summary::{Recorded, SCHEMA, Stage, Summary};
use crate::verdict::{Evidence, Verdict, meanwhile};
use crate::watch::{KernelThreads, Others, Share, Watch};
use crate::workload::{Request, Workload};

/// Collateral of every account, in USDC.
const MONEY: u64 = 100_000_000;

/// The metric that counts the batches that the journal has written.
const WRITES: &str = "outcry_journal_writes_total";

/// The setting with which an answer waits for the disk.
pub(crate) const DURABLE: &str = "journal.durability=durable";

/// The sum of all stages of a request except the signature, which costs the same whatever the state is.
pub(crate) const BUT_SIGN: &str = "all but sign";

/// Orders of a history that are made at once, so that a million orders need little memory.
const PAST_AT_ONCE: usize = 20_000;

/// Where everything is.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// The project's folder.
    pub(crate) project: PathBuf,
    /// The server's binary.
    pub(crate) server: PathBuf,
    /// Each run gets a folder in this one.
    pub(crate) out: PathBuf,
    /// The profile with which the server was built.
    pub(crate) profile: String,
    /// How long each CPU is watched before and after a run.
    pub(crate) jitter: Duration,
}

impl Ground {
    /// The ground for one of many runs: together they watch the CPUs often enough.
    pub(crate) fn among_many(&self) -> Self {
        Self { jitter: self.jitter / 4, ..self.clone() }
    }
}

/// A run and its histograms.
pub(crate) struct Outcome {
    pub(crate) summary: Summary,
    /// Latency by class.
    pub(crate) histograms: Vec<(Class, Nanos)>,
    /// The server's stages of orders that rest, with their sum [`BUT_SIGN`].
    pub(crate) place: Vec<Stage>,
}

/// The CPUs of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpus {
    /// The generator's, where nothing else of ours spins.
    pub(crate) client: usize,
    /// The trading loop's.
    pub(crate) server: usize,
}

impl Cpus {
    /// The last CPU for the client, the first for the server.
    pub(crate) fn choose() -> Result<Self, String> {
        match machine::allowed_cpus().as_slice() {
            [server, .., client] => Ok(Self { client: *client, server: *server }),
            few => Err(format!("CPUs: got {few:?}; needed: two, one for the server and one for the client")),
        }
    }

    /// The server's is that of the first of its trading loops that has one.
    fn with_the_loop_of(self, threads: &[Thread]) -> Self {
        let pinned = threads.iter().filter(|thread| thread.is_trading()).find_map(|thread| thread.cpu);
        Self { server: pinned.unwrap_or(self.server), ..self }
    }

    pub(crate) fn both(self) -> [usize; 2] {
        [self.server, self.client]
    }
}

/// A server with markets, accounts and money, and connections to it.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) generator: Generator,
    pub(crate) accounts: Vec<Account>,
    pub(crate) tokens: Vec<[alloy_primitives::U256; 2]>,
    folder: Folder,
    /// Where the log is, in memory.
    memory: Folder,
}

/// The tokens, accounts and connections of a rig.
type Filled = (Vec<[alloy_primitives::U256; 2]>, Vec<Account>, Generator);

/// The settings of a plan's server: its own, and if they do not mention CPUs, one trading loop that
/// polls on the server's CPU. Its requests are taken however long ago they were signed.
pub(crate) fn settings(plan: &Plan, cpus: Cpus) -> Vec<String> {
    let mut settings = plan.settings.clone();
    let says = |name: &str| plan.settings.iter().any(|setting| setting.starts_with(name));
    if !says("cpu.") {
        settings.push("cpu.policy=explicit".to_owned());
        settings.push(format!("cpu.shard_cpus={}", cpus.server));
        settings.push("cpu.wait=spin".to_owned());
    }
    if !says("journal.durability=") {
        settings.push("journal.durability=committed".to_owned());
    }
    if !says("auth.window_s=") {
        settings.push(format!("auth.window_s={}", plan.window_s()));
    }
    settings
}

/// What the client of this plan does here until something is due.
fn waits(plan: &Plan) -> Waits {
    plan.client.waits(machine::allowed_cpus().len())
}

/// How the kernel's threads count while this plan runs. With the data on a disk they write for the
/// server, so their time is a cost of the load and not a disturbance.
fn kernel_threads(plan: &Plan) -> KernelThreads {
    match plan.data {
        Data::Memory => KernelThreads::Others,
        Data::Disk => KernelThreads::Apart,
    }
}

/// Where data is that no disk has, and every server's log, as it is without settings: the system writes a log on a disk
/// back, and appends wait for that.
const MEMORY: &str = "/dev/shm";

/// The folder in which a server keeps its data; it is created.
fn place(ground: &Ground, data: Data) -> Result<PathBuf, String> {
    let place = match data {
        Data::Memory => PathBuf::from(MEMORY),
        Data::Disk => ground.out.clone(),
    };
    std::fs::create_dir_all(&place).map_err(|fault| format!("{}: {fault}", place.display()))?;
    Ok(place)
}

impl Rig {
    /// Starts `binary` with the plan's settings, then makes its markets and accounts.
    pub(crate) fn set(ground: &Ground, binary: &Path, plan: &Plan, cpus: Cpus) -> Result<Self, String> {
        let place = place(ground, plan.data)?;
        let [folder, memory] = [Folder::new_in(&place)?, Folder::new_in(Path::new(MEMORY))?];
        let mut server = Server::start(binary, folder.path(), memory.path(), &settings(plan, cpus))?;
        let filled = Self::fill(&server, plan).map_err(|fault| server.told(&fault));
        let (tokens, accounts, generator) = filled?;
        Ok(Self { server, generator, accounts, tokens, folder, memory })
    }

    /// Makes a server's markets and accounts, and connects to it.
    fn fill(server: &Server, plan: &Plan) -> Result<Filled, String> {
        let tokens = server.markets(plan.markets)?;
        let mut accounts = Vec::new();
        for index in 0..=plan.wallets as usize {
            let account = Account::open(server.http, plan.seed, index)?;
            server.credit(&account.address(), MONEY)?;
            accounts.push(account);
        }
        let connections = (plan.connections + plan.read_connections) as usize;
        let generator = Generator::connect(server.http, connections, waits(plan))?;
        Ok((tokens, accounts, generator))
    }

    /// Sends a schedule's requests, on the client's CPU; `watched` are the CPUs of the client and of the server's loops.
    pub(crate) fn load(
        &mut self,
        plan: &Plan,
        schedule: &Schedule,
        cpus: Cpus,
        watched: &[usize],
    ) -> Result<Loaded, String> {
        let loaded = self.load_whole(plan, schedule, cpus, watched);
        loaded.map_err(|fault| self.server.told(&fault))
    }

    fn load_whole(
        &mut self,
        plan: &Plan,
        schedule: &Schedule,
        cpus: Cpus,
        watched: &[usize],
    ) -> Result<Loaded, String> {
        self.live_through(plan, cpus)?;
        let Workload { before, requests } = Workload::make(plan, schedule, &self.tokens, &mut self.accounts);
        let _pinned = machine::pin(cpus.client)?;
        self.generator.flood(&before).map_err(|fault| format!("before the clock started: {fault}"))?;
        let writes = self.server.metric(WRITES)?;
        let disk = disk::Count::now(self.folder.path(), self.server.pid());
        let before = Look::at(&self.server);
        let watch = Watch::begin(self.server.pid(), watched, kernel_threads(plan));
        let times = self.generator.run(&requests, &schedule.due_ns)?;
        let (unanswered, count) = (times.unanswered(), requests.len());
        if 0 < unanswered && !self.server.answers() {
            // Its counts cannot be read either, and each attempt would take until its timeout.
            return Err(format!(
                "a request was never answered: {unanswered} of {count}, and the server is silent"
            ));
        }
        let share = watch.share();
        let told = before.until(&Look::at(&self.server));
        // Last, because it reads every process.
        let others = watch.others(watched);
        let writes = self.server.metric(WRITES)?.zip(writes).map(|(after, before)| after - before);
        let others_writes = disk.zip(writes).and_then(|(disk, own)| disk.others(own));
        Ok(Loaded { requests, times, client_waits: waits(plan), share, others, writes, others_writes, told })
    }

    /// Places and cancels the plan's history.
    fn live_through(&mut self, plan: &Plan, cpus: Cpus) -> Result<(), String> {
        let mut left = plan.history as usize;
        while 0 < left {
            let count = left.min(PAST_AT_ONCE);
            let parts = Workload::past(plan, &self.tokens, &mut self.accounts, count);
            let _pinned = machine::pin(cpus.client)?;
            for part in parts {
                self.generator.flood(&part).map_err(|fault| format!("the history: {fault}"))?;
            }
            left -= count;
        }
        if 0 < plan.history { self.server.settle() } else { Ok(()) }
    }

    /// Ends the server; its folder is removed with whatever it left on a disk.
    pub(crate) fn end(self) -> String {
        let said = self.server.said();
        drop(self.generator);
        drop(self.server);
        drop((self.folder, self.memory));
        said
    }
}

/// What was sent and what was measured.
pub(crate) struct Loaded {
    pub(crate) requests: Vec<Request>,
    pub(crate) times: Times,
    /// What the client did until the next request was due.
    pub(crate) client_waits: Waits,
    pub(crate) share: Share,
    /// Who else had most of the CPUs.
    others: Others,
    /// Batches that the journal wrote to the disk meanwhile, if the server counts them.
    pub(crate) writes: Option<u64>,
    /// What others wrote to the disk that has the journal.
    others_writes: Option<disk::OthersWrites>,
    /// What the server's threads reported about themselves.
    told: Told,
}

/// Runs a plan.
pub(crate) fn run(ground: &Ground, plan: &Plan) -> Result<Outcome, String> {
    let cpus = Cpus::choose()?;
    let plan = &plan.on(machine::allowed_cpus().len())?;
    // Its rate and time may be others than the scenario's.
    plan.has_what_is_read()?;
    let environment = Environment::capture(&ground.project, &ground.profile);
    let schedule = Schedule::of(plan);
    if schedule.due_ns.len() == schedule.warm_up {
        return Err(format!("{}: nothing is due in {:?} at {} a second", plan.name, plan.time, plan.rate));
    }
    let set = settings(plan, cpus);
    let Placement { threads, mut planned, .. } = placement::of(&ground.server, &set);
    let is_durable = set.iter().any(|setting| setting == DURABLE);
    if let Some(planned) = planned.as_mut().filter(|_| is_durable) {
        let durable = placement::durable(&ground.server, &set, &place(ground, plan.data)?);
        planned.durable_us = durable.map(|durable| durable.us);
    }
    let in_force = in_force::of(&ground.server, &server::with_the_rigs(&set));
    let by_itself = placement::of(&ground.server, &[]);
    let durable = if is_durable || placement::differs(&threads, &by_itself.threads) {
        None
    } else {
        let set = plan.clone().set(&[DURABLE.to_owned()]).settings;
        placement::durable(&ground.server, &set, &place(ground, Data::Disk)?)
    };
    // From here on nothing is placed by it: the settings are made.
    let cpus = cpus.with_the_loop_of(&threads);
    let watched = placement::cpus(&threads, &cpus.both());
    let jitter_before = jitter::measure(&watched, ground.jitter);
    let mut stage = Rig::set(ground, &ground.server, plan, cpus)?;
    let loaded = stage.load(plan, &schedule, cpus, &watched)?;
    let said = stage.end();
    let jitter_after = jitter::measure(&watched, ground.jitter);
    let recorded = records::newest_check(&ground.project.join("perf/records"), &environment);
    let about = About {
        cpus,
        watched,
        environment,
        said,
        settings: in_force,
        jitter_before,
        jitter_after,
        threads,
        planned,
        by_itself,
        durable,
        recorded,
    };
    Ok(outcome(plan, &schedule, &loaded, about))
}

/// What a summary says besides times.
struct About {
    cpus: Cpus,
    /// The CPUs that were measured on.
    watched: Vec<usize>,
    environment: Environment,
    said: String,
    settings: Vec<String>,
    jitter_before: Vec<Jitter>,
    jitter_after: Vec<Jitter>,
    threads: Vec<Thread>,
    planned: Option<Planned>,
    by_itself: Placement,
    durable: Option<placement::Durable>,
    recorded: Option<Recorded>,
}

fn outcome(plan: &Plan, schedule: &Schedule, loaded: &Loaded, about: About) -> Outcome {
    let counted = schedule.warm_up..schedule.due_ns.len();
    let is_one_loops = about.threads.iter().filter(|thread| thread.is_trading()).count() == 1;
    // If the client sleeps, nobody can tell when an answer left.
    let is_told = is_one_loops && loaded.client_waits != Waits::Sleeps;
    let line = is_told.then(|| Line::of(&loaded.requests, &loaded.times));
    let classes = Classes::of(schedule, loaded, line.as_ref());
    let mut late = histogram();
    for index in counted.clone().filter(|&index| loaded.times.sent_ns[index] != NEVER) {
        record(&mut late, loaded.times.sent_ns[index].saturating_sub(schedule.due_ns[index]));
    }
    let rates = rates(plan, schedule, &loaded.times);
    let late = Quantiles::of(&late);
    let client_lost_percent = loaded.told.client_lost_percent(&about.threads, about.cpus.client);
    let loops = loaded.told.loops(&about.threads, about.cpus.client);
    let verdict = Verdict::of(&Evidence {
        offered: rates.offered,
        achieved: rates.achieved,
        unanswered: rates.unanswered,
        is_still_answering: loaded.times.is_still_answering(),
        late_p99_us: late.p99_us,
        late_max_us: stats::as_micros(nanos(plan.late_max)),
        share: loaded.share,
        largest: loaded.others.largest.clone(),
        cpus: about.watched.len(),
    })
    .and_cpus(
        &meanwhile(&loops, &about.threads, (about.cpus.client, client_lost_percent)),
        &about.jitter_before,
        &about.jitter_after,
    );
    let summary = Summary {
        schema: SCHEMA,
        scenario: plan.name.clone(),
        purpose: plan.purpose.clone(),
        verdict,
        offered_per_s: rates.offered,
        achieved_per_s: rates.achieved,
        arrivals: plan.arrivals.name().to_owned(),
        burst: plan.burst,
        time_s: plan.time.as_secs_f64(),
        warm_up_s: plan.warm_up.as_secs_f64(),
        requests: counted.len() as u64,
        unanswered: rates.unanswered,
        seed: plan.seed,
        connections: plan.connections,
        read_connections: plan.read_connections,
        client_sleeps: loaded.client_waits == Waits::Sleeps,
        client_yields: loaded.client_waits == Waits::Yields,
        all: classes.all(),
        classes: classes.times,
        late,
        stages: stages(counted.clone(), &loaded.times, None),
        parts: classes.parts,
        loops,
        loops_needed: loops_needed(plan, &loaded.times),
        time_line: time_line(plan, schedule, &loaded.times),
        curves: classes.curves,
        journal_writes: loaded.writes,
        others_writes_per_s: loaded.others_writes.as_ref().map(|others| others.per_s),
        others_writer: loaded.others_writes.as_ref().and_then(|others| others.who.clone()),
        journal: loaded.told.journal,
        reads_in_server: loaded.told.reads,
        share: loaded.share,
        share_cpus: about.watched.len(),
        largest_other: loaded.others.largest.clone(),
        others_of_cpus: loaded.others.of_cpus.clone(),
        client_cpu: about.cpus.client,
        client_lost_percent,
        server_cpu: about.cpus.server,
        settings: about.settings,
        data: plan.data.name().to_owned(),
        threads: about.threads,
        threads_by_itself: about.by_itself.threads,
        as_serve: None,
        planned: about.planned,
        durable: about.durable,
        recorded: about.recorded,
        typed: machine::typed(),
        machine_limits: about.by_itself.limits,
        machine_answers: about.by_itself.answers,
        server_said: words_of(&about.said),
        server_warned: server::warnings(&about.said),
        jitter_before: about.jitter_before,
        jitter_after: about.jitter_after,
        environment: about.environment,
    };
    let placed = counted.filter(|&index| loaded.requests[index].class == Class::Place);
    Outcome { summary, histograms: classes.histograms, place: stages(placed, &loaded.times, Some(BUT_SIGN)) }
}

/// The lines that the server printed while it started, without the log's.
fn words_of(said: &str) -> Vec<String> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("outcry: "));
    lines.filter(|line| !line.contains("token in")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_says_nothing_of_cpus_gets_one_loop_that_polls() {
        let text = "purpose = \"x\"\n[load]\nrate = 1\n[mix]\nplace = 1\n";
        let cpus = Cpus { client: 7, server: 3 };
        let plan = Plan::parse("t", text).unwrap();
        assert_eq!(
            settings(&plan, cpus),
            [
                "cpu.policy=explicit",
                "cpu.shard_cpus=3",
                "cpu.wait=spin",
                "journal.durability=committed",
                "auth.window_s=600"
            ]
        );
        let plan = Plan::parse("t", &format!("{text}[server.set]\n\"cpu.shards\" = 2\n")).unwrap();
        assert_eq!(
            settings(&plan, cpus),
            ["cpu.shards=2", "journal.durability=committed", "auth.window_s=600"]
        );
    }

    #[test]
    fn the_servers_cpu_is_that_of_its_loop() {
        let thread = |name: &str, cpu| Thread { name: name.to_owned(), cpu, wait: "spin".to_owned() };
        for (threads, server) in [
            (vec![], 0),
            (vec![thread("outcry-shard0", Some(2)), thread("outcry-shard1", Some(1))], 2),
            (vec![thread("outcry-reader", Some(1)), thread("outcry-ingress0", Some(2))], 2),
            (vec![thread("outcry-shard0", None), thread("outcry-shard1", Some(1))], 1),
            (vec![thread("outcry-shard0", None), thread("outcry-reader", Some(1))], 0),
        ] {
            let cpus = Cpus { client: 3, server: 0 }.with_the_loop_of(&threads);
            assert_eq!(cpus, Cpus { client: 3, server }, "{threads:?}");
        }
    }

    #[test]
    fn a_signature_holds_until_the_last_request_of_the_load_is_sent() {
        let cpus = Cpus { client: 1, server: 0 };
        for (load, set, window_s) in [
            ("", "", 600),
            ("warm_up_s = 1\ntime_s = 298.9", "", 600),
            ("warm_up_s = 1\ntime_s = 300", "", 602),
            ("warm_up_s = 300\ntime_s = 3000", "", 3_600),
            ("time_s = 600", "[server.set]\n\"auth.window_s\" = 60", 60),
        ] {
            let text = format!("purpose = \"x\"\n[load]\nrate = 1\n{load}\n[mix]\nplace = 1\n{set}\n");
            let plan = Plan::parse("t", &text).unwrap();
            let expected = format!("auth.window_s={window_s}");
            for plan in [plan.as_serve(), plan] {
                assert!(settings(&plan, cpus).contains(&expected), "{load}: {:?}", settings(&plan, cpus));
            }
        }
    }
}
