//! Every condition that an operator should know of: what is wanted, what was found, how bad a failure is.
//!
//! A check reads files and [`Probes`], judges, and reports what it saw; none changes anything. What cannot be read is
//! reported as such and counts as neither passed nor failed. Only a failed check of [`Severity::Fatal`] makes
//! `outcry check` fail: the exchange would not start, or not run.

mod cpu;
mod gaps;
mod interrupts;
mod memory;
mod probes;
mod world;

use super::Files;
use super::cost;
use super::machine::{Machine, counted};
use super::placement::{INGRESS_MAX, Policy, SHARDS_MAX, SPARE_CORES};
use super::table;

pub(super) use cpu::{on_cpu, remedy_of, waits_for};
pub use cpu::{percent, used_by_others};
pub(super) use gaps::named;
pub use gaps::{Gaps, Named, Taker};
pub use memory::{available_bytes, cannot_be_had, held_bytes};
pub use probes::{DiskProbe, DiskUse, Others, OwnTime, Probes, Refusal};

/// How bad it is if a condition is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The exchange cannot start or cannot run.
    Fatal,
    /// It runs, slower or with pauses.
    Warning,
    /// Worth knowing; matters to those who want the last microsecond.
    Info,
}

impl Severity {
    /// Its word in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Fatal => "Fatal",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As wanted.
    Passed,
    /// Not as wanted.
    Failed,
    /// Not readable, or only reported.
    Neither,
}

impl Verdict {
    /// Its word in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Passed => "yes",
            Self::Failed => "no",
            Self::Neither => "-",
        }
    }

    const fn of(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// What would mend a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Write `value` into the file at `path`; lasts until the next boot.
    Set {
        /// A file below `/sys` or `/proc`.
        path: String,
        /// What to write.
        value: String,
    },
    /// Stop a service; lasts until the next boot.
    Stop(&'static str),
    /// A word for the kernel's command line.
    Boot(String),
    /// What only a person can decide.
    Advice(String),
}

/// One condition, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name, which never changes.
    pub id: &'static str,
    /// What is wanted.
    pub required: String,
    /// What was found.
    pub current: String,
    /// How bad a failure is.
    pub severity: Severity,
    /// Whether what was found is as wanted.
    pub verdict: Verdict,
    /// Why it matters, in one sentence.
    pub why: &'static str,
    /// What it costs an order, or what is missing; none if it passed or nobody can say.
    pub amount: Option<String>,
    /// What would mend it; empty if it passed.
    pub fixes: Vec<Fix>,
}

impl Finding {
    fn new(id: &'static str, severity: Severity, required: impl Into<String>, why: &'static str) -> Self {
        let (required, current) = (required.into(), String::new());
        let verdict = Verdict::Neither;
        Self { id, required, current, severity, verdict, why, amount: None, fixes: Vec::new() }
    }

    fn judged(mut self, passed: bool, current: impl Into<String>) -> Self {
        self.verdict = Verdict::of(passed);
        self.current = current.into();
        self
    }

    fn told(mut self, current: impl Into<String>) -> Self {
        self.current = current.into();
        self
    }

    fn unreadable(self, why: &str) -> Self {
        self.told(format!("not readable: {why}"))
    }

    /// Says what it costs or what is missing, if it failed.
    fn costing(mut self, amount: impl Into<String>) -> Self {
        if self.verdict == Verdict::Failed {
            self.amount = Some(amount.into());
        }
        self
    }

    /// Says by how much `had` is below `needed`, if it failed.
    fn short_by(self, needed: u64, had: u64, unit: Unit) -> Self {
        let missing = needed.saturating_sub(had);
        self.costing(format!("{} short", unit.text(missing)))
    }

    fn mended_by(mut self, fixes: Vec<Fix>) -> Self {
        if self.verdict == Verdict::Failed {
            self.fixes = fixes;
        }
        self
    }

    /// Judges what a probe found, or says why it could not look.
    fn probed<T>(self, probe: &Result<T, String>, judge: impl FnOnce(Self, &T) -> Self) -> Self {
        match probe {
            Ok(found) => judge(self, found),
            Err(why) => self.unreadable(why),
        }
    }
}

/// The unit of a shortage.
#[derive(Clone, Copy)]
enum Unit {
    One,
    MiB,
}

impl Unit {
    /// `amount`, a count or bytes, in this unit, rounded up.
    fn text(self, amount: u64) -> String {
        match self {
            Self::One => amount.to_string(),
            Self::MiB => format!("{} MiB", amount.div_ceil(1 << 20)),
        }
    }
}

/// What checks need to know of a pinned thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Its name.
    pub name: String,
    /// Its CPU.
    pub cpu: usize,
    /// Whether orders wait for it: a shard's loop, or one for ingress.
    pub is_hot: bool,
}

/// When a loop without work sleeps, the soonest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sleeps {
    /// At once.
    AtOnce,
    /// After it has spun for some 50 µs.
    AfterSpinning,
    /// Never.
    Never,
}

/// For whom a loop follows the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follower {
    /// The reader, and the feed if that shares its loop.
    Reader,
    /// The feed alone.
    Feed,
}

/// What one loop does for orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopWork {
    /// Its name.
    pub name: String,
    /// Its CPU, if it is pinned.
    pub cpu: Option<usize>,
    /// Whether it has connections that trade, and checks signatures.
    pub sockets: bool,
    /// Whether it matches.
    pub shard: bool,
    /// For whom it follows the log, if it does.
    pub follows: Option<Follower>,
    /// When it sleeps.
    pub sleeps: Sleeps,
}

/// How many orders one client may place: an address, or the owner of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOrders {
    /// As `limits.order` has it.
    pub rule: String,
    /// The long-run rate of that rule, in thousandths of an order a second.
    pub milli_per_second: u64,
    /// Whether more is refused, or only reported to the client.
    pub refuses: bool,
}

/// What the exchange is going to ask of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The loops that have a CPU of their own.
    pub pinned: Vec<Pinned>,
    /// How many loops there are, pinned or not.
    pub loops: usize,
    /// What each loop does.
    pub work: Vec<LoopWork>,
    /// Whether known signers are kept, whose checks take less.
    pub knows_signers: bool,
    /// How many orders one client may place; none if that is not counted.
    pub client_orders: Option<ClientOrders>,
    /// How many loops match.
    pub shards: usize,
    /// Connections open at once.
    pub connections: u64,
    /// Descriptors besides those of connections.
    pub descriptors: u64,
    /// Connections that may wait to be accepted.
    pub backlog: u64,
    /// The journal thread's CPU, if it is pinned.
    pub journal_cpu: Option<usize>,
    /// Whether the journal thread asks for a real-time priority.
    pub journal_asks_for_real_time: bool,
    /// How CPUs are chosen.
    pub policy: Policy,
    /// Whether an answer waits for the disk.
    pub durable: bool,
    /// Bytes that the data directory's disk must have free to start with.
    pub free_bytes: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes of the log's file.
    pub log_bytes: u64,
    /// What `journal.log_bytes` has to be raised to for each number of shards, from none on; none where it is enough.
    pub log_raised: Vec<Option<u64>>,
    /// Bytes of memory when every table is full, the log among them.
    pub memory_bytes: u64,
    /// What comes on top with as many markets, wallets and orders as there is room for: by and by, and while a snapshot
    /// is made. Rows differ in size, so this is an estimate.
    pub memory_on_top: [u64; 2],
    /// The largest part of `memory_bytes` that is asked for in one piece.
    pub memory_piece_bytes: u64,
    /// The parts of `memory_bytes` that a start takes at once, each with the setting that asks for it.
    pub memory_taken: Vec<(&'static str, u64)>,
}

impl Needs {
    /// The CPUs that orders wait for.
    fn hot(&self) -> Vec<usize> {
        let mut hot: Vec<usize> =
            self.pinned.iter().filter(|thread| thread.is_hot).map(|thread| thread.cpu).collect();
        hot.sort_unstable();
        hot
    }

    /// Whether orders wait for `cpu`: not if only loops without orders are pinned to it.
    #[must_use]
    pub fn orders_wait_for(&self, cpu: usize) -> bool {
        let mut there = self.pinned.iter().filter(|thread| thread.cpu == cpu).peekable();
        there.peek().is_none() || there.any(|thread| thread.is_hot)
    }

    /// Whether loops may run on `cpu` and all of them sleep, soon or later: the scheduler lets a woken thread preempt the
    /// one that runs.
    #[must_use]
    pub fn is_woken(&self, cpu: usize) -> bool {
        let may_run_there = |work: &&LoopWork| work.cpu.is_none_or(|own| own == cpu);
        let mut there = self.work.iter().filter(may_run_there).peekable();
        there.peek().is_some() && there.all(|work| work.sleeps != Sleeps::Never)
    }

    /// The names of the loops that sleep so, pinned or not.
    #[must_use]
    pub fn that_sleep(&self, how: Sleeps) -> Vec<&str> {
        self.work.iter().filter(|work| work.sleeps == how).map(|work| work.name.as_str()).collect()
    }

    /// How many loops are for ingress alone (`cpu.ingress`): then shards' loops have no sockets.
    #[must_use]
    pub fn ingress(&self) -> usize {
        self.work.iter().filter(|work| work.sockets && !work.shard).count()
    }

    /// How many loops take orders, and how many there may be: those for ingress if there are any, else the shards'.
    #[must_use]
    pub fn carriers(&self) -> (usize, usize) {
        match self.ingress() {
            0 => (self.shards, usize::from(SHARDS_MAX)),
            ingress => (ingress, INGRESS_MAX),
        }
    }

    /// The setting that says how many loops take orders.
    #[must_use]
    pub fn carriers_setting(&self) -> &'static str {
        if self.ingress() == 0 { self.shards_setting() } else { "cpu.ingress" }
    }

    /// Whether shards' CPUs are named: then a start refuses more shards than names, or fewer.
    fn names_shards(&self) -> bool {
        self.policy == Policy::Explicit && self.work.iter().any(|work| work.shard && work.cpu.is_some())
    }

    /// The setting that says how many shards there are.
    #[must_use]
    pub fn shards_setting(&self) -> &'static str {
        if self.names_shards() { "cpu.shards with cpu.shard_cpus" } else { "cpu.shards" }
    }

    /// The settings that make `count` shards.
    #[must_use]
    pub fn settings_of_shards(&self, count: usize) -> String {
        let named = format!(" with {} in cpu.shard_cpus", counted(count, "CPU"));
        format!("cpu.shards={count}{}", if self.names_shards() { named } else { String::new() })
    }

    /// The settings that let `count` loops take orders.
    #[must_use]
    pub fn settings_of_carriers(&self, count: usize) -> String {
        if self.policy == Policy::Explicit && self.ingress() != 0 {
            return format!("{count} CPUs in cpu.ingress");
        }
        if self.ingress() != 0 {
            return format!("cpu.ingress={count}");
        }
        let log = self.log_raised.get(count).copied().flatten();
        let log = log.map_or_else(String::new, |bytes| format!(" and journal.log_bytes={bytes}"));
        format!("{}{log}", self.settings_of_shards(count))
    }

    /// The setting with which no loop sleeps that orders wait for.
    #[must_use]
    pub fn spin_setting(&self) -> &'static str {
        if self.ingress() == 0 { "cpu.wait=shard=spin" } else { "cpu.wait=shard=spin,ingress=spin" }
    }

    /// What [`Self::spin_setting`] costs.
    #[must_use]
    pub fn spin_price(&self) -> &'static str {
        if self.ingress() == 0 {
            "burns a CPU for each shard day and night"
        } else {
            "burns a CPU for each shard and each loop for ingress day and night"
        }
    }

    /// Who is pinned to `cpu`, in words.
    #[must_use]
    pub fn threads_on(&self, cpu: usize) -> String {
        let loops = self.pinned.iter().filter(|thread| thread.cpu == cpu).map(|thread| thread.name.as_str());
        let journal = self.journal_cpu.filter(|&journal| journal == cpu).map(|_| "journal");
        let names: Vec<&str> = loops.chain(journal).collect();
        if names.is_empty() { "nothing pinned".to_owned() } else { names.join(", ") }
    }
}

/// All that a check reads.
pub struct Scene<'a> {
    /// The machine's files.
    pub files: &'a dyn Files,
    /// The machine.
    pub machine: &'a Machine,
    /// What is asked of it.
    pub needs: &'a Needs,
    /// What was tried.
    pub probes: &'a Probes,
}

impl Scene<'_> {
    /// The CPUs that orders wait for: those of hot loops, or all allowed ones if none is pinned.
    #[must_use]
    pub fn cpus_of_orders(&self) -> Vec<usize> {
        let hot = self.needs.hot();
        if hot.is_empty() { self.machine.allowed.clone() } else { hot }
    }

    /// The time to wake a loop that sleeps, as it was tried; an estimate where others had one of the CPUs meanwhile.
    pub(super) fn wake_ns(&self) -> u64 {
        self.wake_tried_ns().unwrap_or(cost::WAKE_NS)
    }

    fn wake_tried_ns(&self) -> Option<u64> {
        let is_theirs = self.others_on(&self.machine.allowed).is_some_and(|others| others.are_felt());
        self.probes.wake_ns.as_ref().ok().copied().filter(|_| !is_theirs)
    }

    /// [`Self::wake_ns`] for people, marked as tried or as an estimate.
    pub(super) fn wake(&self) -> String {
        let time = cost::time(self.wake_ns());
        if self.wake_tried_ns().is_some() { format!("{time} (tried)") } else { format!("some {time}") }
    }

    /// Whether there are fewer cores than loops, journal and system would fill.
    #[must_use]
    pub fn lacks_cores(&self) -> bool {
        self.machine.cores() < self.needs.loops + SPARE_CORES
    }

    /// The CPUs that a loop or the journal has; all allowed ones if nothing is pinned.
    #[must_use]
    pub fn cpus_with_loops(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> = self.needs.pinned.iter().map(|thread| thread.cpu).collect();
        if cpus.is_empty() {
            return self.machine.allowed.clone();
        }
        cpus.extend(self.needs.journal_cpu);
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// The share of all CPUs' time that the host gave to others, in millionths.
    #[must_use]
    pub fn stolen_millionths(&self) -> Option<u64> {
        cpu::stolen_share(self).map(|stolen| stolen.millionths)
    }

    /// What gives back the CPU of `gaps`.
    #[must_use]
    pub fn remedy(&self, gaps: &Gaps) -> String {
        gaps.remedy_beside(self.stop_writers().as_deref())
    }

    /// What ends others' use of the disk, if that is noticeable.
    fn stop_writers(&self) -> Option<String> {
        self.probes.disk_others().map(DiskUse::remedy_brief)
    }

    /// What others use of that one of `cpus` which they use most; none if nobody looked.
    #[must_use]
    pub fn others_on(&self, cpus: &[usize]) -> Option<Others> {
        cpu::others_on_each(self, cpus).into_iter().next()
    }

    /// Whether others may have `millionths` or more of one of `cpus`: not if all of these were looked at and others had
    /// less, nor of a machine that cannot be looked at.
    #[must_use]
    pub fn others_may_have(&self, cpus: &[usize], millionths: u64) -> bool {
        let may_have = |&cpu: &usize| cpu::at_most_others(self, cpu).is_none_or(|most| millionths <= most);
        self.probes.stat_quiet.is_some() && cpus.iter().any(may_have)
    }

    /// What others use of that CPU with a loop, or the journal, which they use most; none if nobody looked.
    #[must_use]
    pub fn busiest(&self) -> Option<Others> {
        self.others_on(&self.cpus_with_loops())
    }

    /// What others noticeably use of each CPU with a loop or the journal, those that orders wait for first; where
    /// nothing is pinned, of the CPU which they use most.
    #[must_use]
    pub fn taken(&self) -> Vec<Others> {
        let mut taken = cpu::others_on_each(self, &self.cpus_with_loops());
        taken.retain(Others::are_felt);
        // A stable sort: of several that orders wait for, the most used one stays first.
        taken.sort_by_key(|others| !self.needs.orders_wait_for(others.cpu));
        if self.needs.pinned.is_empty() {
            taken.truncate(1);
        }
        taken
    }
}

/// Every check, in the order of the table.
#[must_use]
pub fn run(scene: &Scene<'_>) -> Vec<Finding> {
    let mut findings = cpu::checks(scene);
    findings.extend(memory::checks(scene));
    findings.extend(world::checks(scene));
    for finding in &mut findings {
        if finding.verdict == Verdict::Failed && finding.amount.is_none() {
            finding.amount = cost::text(finding.id);
        }
    }
    findings
}

/// The table, then what each failure costs and what would mend it, and one line of counts.
#[must_use]
pub fn report(findings: &[Finding]) -> String {
    let row = |finding: &Finding| {
        [
            finding.id.to_owned(),
            finding.required.clone(),
            finding.current.clone(),
            finding.severity.text().to_owned(),
            finding.verdict.text().to_owned(),
        ]
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    let table = table::render(["condition", "required", "current", "severity", "passed"], &rows);
    let mut lines = vec![table];
    for finding in findings.iter().filter(|finding| finding.verdict == Verdict::Failed) {
        lines.push(format!("{}: {}", finding.id, finding.why));
        lines.extend(finding.amount.as_ref().map(|amount| format!("    costs: {amount}")));
        lines.extend(finding.remedy().map(|remedy| format!("    mend: {remedy}")));
    }
    let count = |verdict: Verdict, severity: Option<Severity>| {
        let of = |finding: &&Finding| {
            finding.verdict == verdict && severity.is_none_or(|severity| finding.severity == severity)
        };
        findings.iter().filter(of).count()
    };
    let failed = |severity: Severity, word: &str| counted(count(Verdict::Failed, Some(severity)), word);
    lines.push(format!(
        "{} passed; failed: {} fatal, {}, {}; {} not judged\n",
        count(Verdict::Passed, None),
        count(Verdict::Failed, Some(Severity::Fatal)),
        failed(Severity::Warning, "warning"),
        failed(Severity::Info, "info"),
        count(Verdict::Neither, None)
    ));
    lines.join("\n")
}

impl Finding {
    /// What would mend it, in one line; none if it passed or nothing can be done.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let first = match self.fixes.first()? {
            Fix::Set { path, value } => format!("outcry tune: write {value} into {path}"),
            Fix::Stop(name) => format!("outcry tune: stop {name}"),
            Fix::Boot(word) => format!("at boot: add {word} to the kernel's command line"),
            Fix::Advice(text) => text.clone(),
        };
        match self.fixes.len() {
            1 => Some(first),
            more => Some(format!("{first}, and {} more", more - 1)),
        }
    }
}

/// Whether `outcry tune` has a line that changes something.
#[must_use]
pub fn can_be_tuned(findings: &[Finding]) -> bool {
    let changes = |fix: &Fix| matches!(fix, Fix::Set { .. } | Fix::Stop(_) | Fix::Boot(_));
    findings.iter().any(|finding| finding.verdict == Verdict::Failed && finding.fixes.iter().any(changes))
}

/// Whether anything failed that the exchange cannot run without.
#[must_use]
pub fn is_fatal(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Fatal && finding.verdict == Verdict::Failed)
}
