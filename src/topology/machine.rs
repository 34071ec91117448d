//! The machine as the kernel reports it.
//!
//! Everything is read once. What cannot be read is taken as on the plainest machine: a CPU without topology is a
//! core of its own, on node 0, in one cache with all others.

use super::{Files, list};

/// One CPU as the scheduler sees it: a hardware thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: usize,
    /// The threads of its core, itself among them, ascending.
    pub threads: Vec<usize>,
    /// The package (socket) it is in.
    pub package: usize,
    /// The node whose memory is near.
    pub node: usize,
    /// The lowest CPU that shares its level-2 cache.
    pub l2: usize,
    /// The lowest CPU that shares its last cache (level 3).
    pub l3: usize,
    /// Whether it is one of the slower cores of a machine that has two kinds.
    pub efficient: bool,
    /// Whether the scheduler keeps other work off it.
    pub isolated: bool,
    /// Whether its timer tick stops while one thread runs.
    pub nohz_full: bool,
    /// Its frequency governor.
    pub governor: Option<String>,
}

impl Cpu {
    fn plain(id: usize, first: usize) -> Self {
        Self {
            id,
            threads: vec![id],
            package: 0,
            node: 0,
            l2: id,
            l3: first,
            efficient: false,
            isolated: false,
            nohz_full: false,
            governor: None,
        }
    }

    /// The lowest thread of its core: the core's name.
    #[must_use]
    pub fn core(&self) -> usize {
        self.threads.first().copied().unwrap_or(self.id)
    }

    /// The other threads of its core.
    #[must_use]
    pub fn siblings(&self) -> Vec<usize> {
        self.threads.iter().copied().filter(|&thread| thread != self.id).collect()
    }
}

/// One interrupt of a network card or a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub number: usize,
    /// What it is for, as its driver says.
    pub name: String,
    /// Where it is handled now.
    pub cpus: Vec<usize>,
}

impl Interrupt {
    /// Whether it is of a disk.
    #[must_use]
    pub fn is_of_disk(&self) -> bool {
        DISK_QUEUES.iter().any(|part| self.name.contains(part))
    }
}

/// One network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The interface's name.
    pub name: String,
    /// The node it is attached to, if the machine has nodes.
    pub node: Option<usize>,
    /// The names of its receive queues.
    pub receive_queues: Vec<String>,
    /// The names of its send queues.
    pub send_queues: Vec<String>,
}

/// A machine, or the part of one that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name.
    pub model: String,
    /// Whether it is a virtual one.
    pub is_virtual: bool,
    /// Every CPU that is on, ascending.
    pub cpus: Vec<Cpu>,
    /// Those that this process may run on, ascending, at least one.
    pub allowed: Vec<usize>,
    /// How much CPU time the control group gives, in thousandths of a CPU.
    pub quota_milli: Option<u64>,
    /// The quota's period in nanoseconds: once it is used up, everything stands still until the next one.
    pub quota_period_ns: u64,
    /// Interrupts of network cards and disks.
    pub interrupts: Vec<Interrupt>,
    /// Network cards.
    pub cards: Vec<Card>,
}

impl Machine {
    /// A machine whose `cpus` are cores of their own, on one node and in one cache, all allowed.
    #[must_use]
    pub fn plain(cpus: &[usize]) -> Self {
        assert!(!cpus.is_empty(), "a process runs on some CPU");
        Self {
            model: "unknown".to_owned(),
            is_virtual: false,
            cpus: cpus.iter().map(|&cpu| Cpu::plain(cpu, cpus[0])).collect(),
            allowed: cpus.to_vec(),
            quota_milli: None,
            quota_period_ns: QUOTA_PERIOD_NS,
            interrupts: Vec::new(),
            cards: Vec::new(),
        }
    }

    /// Reads the machine from its `files`; `fallback` are the allowed CPUs if these do not say.
    #[must_use]
    pub fn read(files: &dyn Files, fallback: &[usize]) -> Self {
        let allowed = allowed(files).unwrap_or_else(|| fallback.to_vec());
        let online = files.line("/sys/devices/system/cpu/online").and_then(|text| list::parse(&text));
        let online = online.filter(|cpus| !cpus.is_empty()).unwrap_or_else(|| allowed.clone());
        let mut machine = Self::plain(&online);
        machine.allowed = allowed.into_iter().filter(|cpu| online.contains(cpu)).collect();
        if machine.allowed.is_empty() {
            machine.allowed.clone_from(&online);
        }
        for cpu in &mut machine.cpus {
            read_cpu(files, cpu);
        }
        read_nodes(files, &mut machine.cpus);
        read_kinds(files, &mut machine.cpus);
        for (name, mark) in [("isolated", true), ("nohz_full", false)] {
            let marked = files.line(&format!("/sys/devices/system/cpu/{name}"));
            let marked = marked.and_then(|text| list::parse(&text)).unwrap_or_default();
            for cpu in machine.cpus.iter_mut().filter(|cpu| marked.contains(&cpu.id)) {
                if mark {
                    cpu.isolated = true;
                } else {
                    cpu.nohz_full = true;
                }
            }
        }
        let info = files.text("/proc/cpuinfo").unwrap_or_default();
        machine.is_virtual = info.split_whitespace().any(|word| word == "hypervisor");
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        model.map_or("unknown", |(_, name)| name.trim()).clone_into(&mut machine.model);
        // A quota of all allowed CPUs, or more, cannot be used up.
        let had = u64::try_from(machine.allowed.len()).unwrap_or(u64::MAX).saturating_mul(1_000);
        if let Some((milli, period_ns)) = quota(files).filter(|(milli, _)| *milli < had) {
            (machine.quota_milli, machine.quota_period_ns) = (Some(milli), period_ns);
        }
        machine.cards = cards(files);
        machine.interrupts = interrupts(files, &machine.cards);
        machine
    }

    /// The CPU with this number.
    #[must_use]
    pub fn cpu(&self, id: usize) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.id == id)
    }

    /// The core of the CPU with this number; one that is not known counts as a core of its own.
    #[must_use]
    pub fn core_of(&self, id: usize) -> usize {
        self.cpu(id).map_or(id, Cpu::core)
    }

    /// The allowed CPUs.
    pub fn usable(&self) -> impl Iterator<Item = &Cpu> {
        self.cpus.iter().filter(|cpu| self.allowed.contains(&cpu.id))
    }

    /// The CPUs that are on but kept from this process by its mask or cpuset, if they are on cores of which it
    /// has no thread: lifting the mask would gain these cores.
    #[must_use]
    pub fn kept(&self) -> Vec<usize> {
        let had: Vec<usize> = self.usable().map(Cpu::core).collect();
        self.cpus.iter().filter(|cpu| !had.contains(&cpu.core())).map(|cpu| cpu.id).collect()
    }

    /// How many whole cores the allowed CPUs make, by the quota if there is one: at least one.
    #[must_use]
    pub fn cores(&self) -> usize {
        let cores = self.distinct(Cpu::core);
        let quota = self.quota_milli.map(|milli| usize::try_from(milli / 1_000).unwrap_or(usize::MAX));
        quota.map_or(cores, |quota| cores.min(quota)).max(1)
    }

    /// How many cores the CPUs that are on make, allowed or not.
    #[must_use]
    pub fn online_cores(&self) -> usize {
        count_distinct(self.cpus.iter().map(Cpu::core))
    }

    /// How many of the allowed cores are of the faster kind, or of the only one.
    #[must_use]
    pub fn performance_cores(&self) -> usize {
        count_distinct(self.usable().filter(|cpu| !cpu.efficient).map(Cpu::core))
    }

    /// How many different values `of` has among the allowed CPUs.
    #[must_use]
    pub fn distinct(&self, of: impl Fn(&Cpu) -> usize) -> usize {
        count_distinct(self.usable().map(of))
    }

    /// The governors of the allowed CPUs, each once.
    fn governors(&self) -> String {
        let mut governors: Vec<&str> = self.usable().filter_map(|cpu| cpu.governor.as_deref()).collect();
        governors.sort_unstable();
        governors.dedup();
        match governors.as_slice() {
            [] if self.is_virtual => "not told (the host decides)".to_owned(),
            [] => "not told".to_owned(),
            governors => governors.join(", "),
        }
    }

    /// One paragraph for people.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let kind = if self.is_virtual { " (a virtual machine)" } else { "" };
        let sorts = match self.cores().saturating_sub(self.performance_cores()) {
            0 => String::new(),
            _ if self.quota_milli.is_some() => String::new(),
            efficient => format!(" ({efficient} of them efficiency cores)"),
        };
        let mut lines = vec![
            format!("processor: {}{kind}", self.model),
            format!(
                "cpus: {} online ({}), {} allowed ({})",
                self.cpus.len(),
                list::text(&self.cpus.iter().map(|cpu| cpu.id).collect::<Vec<_>>()),
                self.allowed.len(),
                list::text(&self.allowed)
            ),
            format!(
                "allowed: {}{sorts}, {}, {}, {}, SMT {}",
                counted(self.distinct(Cpu::core), "core"),
                counted(self.distinct(|cpu| cpu.l3), "level-3 cache"),
                counted(self.distinct(|cpu| cpu.package), "socket"),
                counted(self.distinct(|cpu| cpu.node), "node"),
                if self.cpus.iter().any(|cpu| cpu.threads.len() > 1) { "on" } else { "off" }
            ),
        ];
        let of = |mark: fn(&Cpu) -> bool| -> String {
            let marked: Vec<usize> = self.cpus.iter().filter(|cpu| mark(cpu)).map(|cpu| cpu.id).collect();
            if marked.is_empty() { "none".to_owned() } else { list::text(&marked) }
        };
        lines.push(format!(
            "isolated: {}; without tick: {}",
            of(|cpu| cpu.isolated),
            of(|cpu| cpu.nohz_full)
        ));
        lines.push(format!("frequency governor: {}", self.governors()));
        if let Some(milli) = self.quota_milli {
            lines.push(format!("quota: {} of CPU time", cpus_of(milli)));
        }
        for card in &self.cards {
            let node = card.node.map_or(String::new(), |node| format!(", node {node}"));
            let receive = counted(card.receive_queues.len(), "receive queue");
            let send = counted(card.send_queues.len(), "send queue");
            lines.push(format!("network card {}: {receive}, {send}{node}", card.name));
        }
        lines
    }
}

/// `count` of something whose plural takes an s.
#[must_use]
pub fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Thousandths of a CPU as text: `2.500 CPUs`.
#[must_use]
pub fn cpus_of(milli: u64) -> String {
    format!("{}.{:03} CPUs", milli / 1_000, milli % 1_000)
}

/// How many different values there are.
pub(in crate::topology) fn count_distinct(values: impl Iterator<Item = usize>) -> usize {
    values.collect::<std::collections::BTreeSet<_>>().len()
}

fn allowed(files: &dyn Files) -> Option<Vec<usize>> {
    let status = files.text("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list::parse(line).filter(|cpus| !cpus.is_empty())
}

fn read_cpu(files: &dyn Files, cpu: &mut Cpu) {
    let folder = format!("/sys/devices/system/cpu/cpu{}", cpu.id);
    let cpus = |name: &str| files.line(&format!("{folder}/{name}")).and_then(|text| list::parse(&text));
    if let Some(threads) = cpus("topology/thread_siblings_list").filter(|cpus| cpus.contains(&cpu.id)) {
        cpu.threads = threads;
    }
    let package = files.number(&format!("{folder}/topology/physical_package_id"));
    cpu.package = package.and_then(|id| usize::try_from(id).ok()).unwrap_or(0);
    cpu.l2 = cpu.core();
    let caches = files.names(&format!("{folder}/cache"));
    for index in caches.iter().filter(|name| name.starts_with("index")) {
        let of = |name: &str| files.line(&format!("{folder}/cache/{index}/{name}"));
        let shared = of("shared_cpu_list").and_then(|text| list::parse(&text));
        match (of("level").as_deref(), shared.and_then(|cpus| cpus.first().copied())) {
            (Some("2"), Some(first)) => cpu.l2 = first,
            (Some("3"), Some(first)) => cpu.l3 = first,
            _ => {}
        }
    }
    cpu.governor = files.line(&format!("{folder}/cpufreq/scaling_governor"));
}

fn read_nodes(files: &dyn Files, cpus: &mut [Cpu]) {
    for name in files.names("/sys/devices/system/node") {
        let Some(node) = name.strip_prefix("node").and_then(|number| number.parse().ok()) else { continue };
        let of_node = files.line(&format!("/sys/devices/system/node/{name}/cpulist"));
        let of_node = of_node.and_then(|text| list::parse(&text)).unwrap_or_default();
        for cpu in cpus.iter_mut().filter(|cpu| of_node.contains(&cpu.id)) {
            cpu.node = node;
        }
    }
}

/// A core below this share of the fastest one's speed is of the slower kind: boost gives some cores of
/// one kind up to a tenth more than others, and two kinds are a quarter apart at least.
const EFFICIENT_BELOW_PERCENT: u64 = 78;

/// Which cores are of the slower kind: the kernel names them on some machines, else their speeds tell.
fn read_kinds(files: &dyn Files, cpus: &mut [Cpu]) {
    let named = files.line("/sys/devices/cpu_atom/cpus").and_then(|text| list::parse(&text));
    if let Some(named) = named {
        for cpu in cpus {
            cpu.efficient = named.contains(&cpu.id);
        }
        return;
    }
    for name in ["cpu_capacity", "cpufreq/cpuinfo_max_freq"] {
        let speed = |cpu: &Cpu| files.number(&format!("/sys/devices/system/cpu/cpu{}/{name}", cpu.id));
        let speeds: Vec<Option<u64>> = cpus.iter().map(speed).collect();
        let Some(fastest) = speeds.iter().flatten().max().copied() else { continue };
        for (cpu, speed) in cpus.iter_mut().zip(speeds) {
            cpu.efficient |= speed.is_some_and(|speed| speed * 100 < fastest * EFFICIENT_BELOW_PERCENT);
        }
    }
}

/// The folders of this process's control group and of those above it, the outermost first.
pub(super) fn groups_above(files: &dyn Files) -> Vec<String> {
    let groups = files.text("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim_end_matches('/');
    let ends = group.match_indices('/').map(|(at, _)| at).chain([group.len()]);
    ends.map(|end| format!("/sys/fs/cgroup{}", &group[..end])).collect()
}

/// The kernel's default period.
const QUOTA_PERIOD_NS: u64 = 100_000_000;

/// The tightest limit of CPU time among this process's control group and those above it, in thousandths of a CPU,
/// and its period in nanoseconds.
fn quota(files: &dyn Files) -> Option<(u64, u64)> {
    let mut tightest: Option<(u64, u64)> = None;
    let mut note = |quota_us: u64, period_us: u64| {
        if let Some(milli) = quota_us.saturating_mul(1_000).checked_div(period_us) {
            let found = (milli, period_us.saturating_mul(1_000));
            tightest = Some(tightest.map_or(found, |tightest| tightest.min(found)));
        }
    };
    for group in groups_above(files) {
        let Some(line) = files.line(&format!("{group}/cpu.max")) else { continue };
        if let Some((quota, period)) = line.split_once(' ')
            && let (Ok(quota), Ok(period)) = (quota.parse(), period.parse())
        {
            note(quota, period);
        }
    }
    // Control groups of version 1; -1 says that there is no limit.
    let of = |name: &str| files.number(&format!("/sys/fs/cgroup/cpu/{name}"));
    if let (Some(quota), Some(period)) = (of("cpu.cfs_quota_us"), of("cpu.cfs_period_us")) {
        note(quota, period);
    }
    tightest
}

fn cards(files: &dyn Files) -> Vec<Card> {
    let real = |name: &String| !files.names(&format!("/sys/class/net/{name}/device")).is_empty();
    let names = files.names("/sys/class/net").into_iter().filter(real);
    let card = |name: String| {
        let queues = files.names(&format!("/sys/class/net/{name}/queues"));
        let of = |kind: &str| queues.iter().filter(|queue| queue.starts_with(kind)).cloned().collect();
        let node = files.number(&format!("/sys/class/net/{name}/device/numa_node"));
        Card {
            node: node.and_then(|node| usize::try_from(node).ok()),
            receive_queues: of("rx-"),
            send_queues: of("tx-"),
            name,
        }
    };
    names.map(card).collect()
}

/// What drivers call the interrupts of cards' queues, where they do not use the card's name.
const CARD_QUEUES: &[&str] = &["-input.", "-output.", "TxRx", "mlx"];
/// And those of disks' queues.
const DISK_QUEUES: &[&str] = &["-req.", "nvme"];

fn interrupts(files: &dyn Files, cards: &[Card]) -> Vec<Interrupt> {
    let text = files.text("/proc/interrupts").unwrap_or_default();
    let interrupt = |line: &str| {
        let (number, rest) = line.trim().split_once(':')?;
        let number = number.parse().ok()?;
        let name = rest.split_whitespace().last()?.to_owned();
        let is_queue = CARD_QUEUES.iter().chain(DISK_QUEUES).any(|part| name.contains(part));
        if !is_queue && !cards.iter().any(|card| name.contains(&card.name)) {
            return None;
        }
        let cpus = |file: &str| {
            let text = files.line(&format!("/proc/irq/{number}/{file}"))?;
            list::parse(&text).filter(|cpus| !cpus.is_empty())
        };
        let cpus = cpus("effective_affinity_list").or_else(|| cpus("smp_affinity_list"))?;
        Some(Interrupt { number, name, cpus })
    };
    text.lines().filter_map(interrupt).collect()
}
