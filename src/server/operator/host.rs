//! `topology`, `check` and `tune`: what the machine is, what is wrong with it, how to mend that.
//!
//! All three make the same plan that `serve` would, for this machine or for a copy of another one's files
//! (`--machine`); nothing of a copy can be tried out, so its probes say so. A running exchange reports the same of its
//! own machine and plan ([`seen`]), without trying anything out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::{probes, speed};
use crate::domain::TimeMs;
use crate::json::Writer;
use crate::json::read::ORDERS_MAX;
use crate::server::machine::files::Below;
use crate::server::machine::jitter;
use crate::server::plan::command::{CheckArgs, ConfigArgs, TopologyArgs, TuneArgs};
use crate::server::plan::options::Options;
use crate::server::plan::topology::allowed_cpus;
use crate::server::plan::{self, Plan, Start};
use crate::server::process::run::say;
use crate::topology::answers::{self, Answer, Brief};
use crate::topology::capacity::{self, Capacity};
use crate::topology::checks::{self, Finding, Gaps, Needs, Probes, Scene, Verdict};
use crate::topology::limit::{self, Limit, Touches};
use crate::topology::machine::{Machine, counted};
use crate::topology::placement::Row;
use crate::topology::valid::{self, Valid};
use crate::topology::{Files, list, table, tune as script};

/// The most CPUs of a machine that is not this one: as many as Linux's CPU set holds (`CPU_SETSIZE`). The time to place
/// loops on them grows with more than the square of their number, and is below a second up to here.
const PLANNED_CPUS_MAX: usize = 1_024;

/// What the words of the plan's table mean.
const WORDS: &str = "ingress: connections, parsing and signature checks; shard: the books of some markets; registrar: markets, wallets \
                     and keys\nreader: all reads; feed: streams; admin: the operator's listener\n\
                     park: sleeps until there is work; spin: never sleeps; spin-then-park: looks on for some 50 µs after the last work (the journal's thread for 1 ms), then sleeps\n";

/// What a look at files alone cannot say of the machine at hand.
const UNTRIED: &str = "the disk and the host were not tried: `outcry check` does, and with --jitter it measures \
                       each pause and says whether a VALID run of `scripts/perf` can be had here\n";

/// What a number of CPUs does not say.
const PLANNED: &str = "a machine by its number of CPUs alone, with cores like these: its disk, its host, its interrupts and other \
                       programs limit it besides, as `outcry check` says of this one\n";

/// A machine, this one or another, and what would run on it.
struct Look {
    files: Below,
    machine: Machine,
    plan: Plan,
    is_here: bool,
}

const _: () = assert!(answers::BATCH == ORDERS_MAX as u64, "a batch is what requests may hold");

/// What is reported of a machine.
struct Judged {
    findings: Vec<Finding>,
    limits: Vec<Limit>,
    capacity: Result<Capacity, String>,
    answers: Vec<Answer>,
    valid: Option<Valid>,
}

impl Judged {
    /// What limits the machine and what it can take, for people.
    fn text(&self) -> String {
        let unknown = self.capacity.as_ref().err().map(|why| capacity::unknown(why)).unwrap_or_default();
        let (brief, full) = (answers::brief(&self.answers), answers::text(&self.answers));
        let readme = self.capacity.as_ref().map(Capacity::beside_readme).unwrap_or_default();
        [brief, readme, unknown, limit::text(&self.limits), full].concat()
    }

    fn json(&self, json: &mut Writer<'_>) {
        limits_json(json, &self.limits);
        capacity_json(json, &self.capacity);
        answers_json(json, &self.answers);
    }
}

impl Look {
    fn at(args: &ConfigArgs, folder: Option<&PathBuf>) -> Result<Self, String> {
        let (files, machine) = machine_at(folder.map(PathBuf::as_path))?;
        let plan = plan::plan_for(&args.options()?, Start::default(), &machine)?;
        Ok(Self { files, machine, plan, is_here: folder.is_none() })
    }

    /// Every condition, what limits the machine, and what it can take.
    fn judged(&self, probes: &Probes) -> Judged {
        let needs = probes::needs(&self.plan);
        let scene = Scene { files: &self.files, machine: &self.machine, needs: &needs, probes };
        let findings = checks::run(&scene);
        let limits = limit::causes(&scene, &findings);
        let capacity = capacity::of(&scene);
        let answers = answers::of(&scene, &capacity);
        Judged { findings, limits, capacity, answers, valid: valid::of(&scene) }
    }

    /// What was tried, for an exchange that this configuration was written for, if there is one.
    fn probes(&self, config: Option<&Path>) -> Probes {
        if self.is_here { probes::look(&self.plan, config) } else { not_tried() }
    }
}

fn not_tried() -> Probes {
    Probes::none("a copy cannot be tried")
}

fn machine_at(folder: Option<&Path>) -> Result<(Below, Machine), String> {
    let Some(folder) = folder else {
        let files = Below::this_machine();
        let machine = Machine::read(&files, &allowed_cpus());
        return Ok((files, machine));
    };
    let files = Below::folder(folder);
    if files.line("/proc/self/status").is_none() && files.names("/sys/devices/system/cpu").is_empty() {
        return Err(format!(
            "--machine: {} has neither proc/self/status nor sys/devices/system/cpu; \
             give a folder with copies of a machine's /proc and /sys",
            folder.display()
        ));
    }
    let machine = Machine::read(&files, &[0]);
    match machine.cpus.len() {
        count if count <= PLANNED_CPUS_MAX => Ok((files, machine)),
        count => Err(format!(
            "--machine: {} has {count} CPUs; allowed: up to {PLANNED_CPUS_MAX}",
            folder.display()
        )),
    }
}

/// Does `topology`.
pub(crate) fn topology(args: &TopologyArgs) -> Result<ExitCode, String> {
    let look = match args.plan {
        None => Look::at(&args.config, args.machine.as_ref())?,
        Some(count) if (1..=PLANNED_CPUS_MAX).contains(&count) => {
            let machine = Machine::plain(&(0..count).collect::<Vec<_>>());
            let plan = plan::plan_for(&args.config.options()?, Start::default(), &machine)?;
            Look { files: Below::folder(Path::new("/nonexistent")), machine, plan, is_here: false }
        }
        Some(count) => return Err(format!("--plan: got {count}; allowed: 1 to {PLANNED_CPUS_MAX} CPUs")),
    };
    let mut probes = not_tried();
    if args.machine.is_none() {
        // Another plan's CPUs are not those of this machine.
        let here = look.is_here.then(|| look.plan.topology.cpus_for_waiting(&look.machine.allowed));
        let cpus = here.unwrap_or_default();
        probes::try_signatures(&mut probes, &cpus);
        probes.read_ns = speed::read_ns(&cpus);
        if look.is_here {
            probes.wake_ns = probes::wake_ns(&look.plan);
            // While others run, neither what was tried nor what spinning saves holds.
            probes::look_at_others(&mut probes, None, probes::QUIET_TIME_MIN);
        }
    }
    let judged = look.judged(&probes);
    let rows = &look.plan.topology.rows;
    if args.json {
        return say(&json(|json| topology_json(json, &look, &judged)));
    }
    let summary = match args.plan {
        Some(count) => vec![format!("{count} CPUs, each a core of its own, one node, one level-3 cache")],
        None => look.machine.summary(),
    };
    let policy = look.plan.topology.policy.text();
    let shards = counted(usize::from(look.plan.topology.shards), "shard");
    let (summary, told) = (lines(&summary), judged.text());
    let untried = match args.plan {
        Some(_) => PLANNED,
        None if look.is_here => UNTRIED,
        None => "",
    };
    say(&format!("{summary}\npolicy {policy}, {shards}\n\n{}{WORDS}\n{told}{untried}", plan_table(rows)))
}

fn lines(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// The plan for people.
fn plan_table(rows: &[Row]) -> String {
    let number = |value: Option<usize>| value.map_or_else(|| "any".to_owned(), |value| value.to_string());
    let cells = |row: &Row| {
        let siblings = if row.siblings.is_empty() { "-".to_owned() } else { list::text(&row.siblings) };
        [
            row.thread.clone(),
            row.roles.clone(),
            number(row.cpu),
            number(row.core),
            siblings,
            number(row.node),
            row.wait.to_owned(),
            row.why.clone(),
        ]
    };
    let heads = ["thread", "roles", "cpu", "core", "siblings", "node", "wait", "why"];
    table::render(heads, &rows.iter().map(cells).collect::<Vec<_>>())
}

/// What files say of this machine, on which `plan` runs, as JSON; `now` is written as the time of the look. Takes a
/// second, over which the shares of the host and of other programs are counted: since the boot they would be diluted.
pub(crate) fn seen(plan: Plan, now: TimeMs) -> Vec<u8> {
    let files = Below::this_machine();
    let machine = Machine::read(&files, &allowed_cpus());
    let look = Look { files, machine, plan, is_here: true };
    let mut probes = Probes::none("not tried while the exchange runs");
    probes.held_bytes = Some(checks::held_bytes(&look.files));
    probes.stat_before = look.files.text("/proc/stat").ok();
    probes::look_beside_ourselves(&mut probes, Duration::from_secs(1));
    let judged = look.judged(&probes);
    let text = json(|json| {
        json.open_object().key("looked_at_ms").number(now.0);
        json.key("summary").open_array();
        for line in look.machine.summary() {
            json.text(&line);
        }
        json.close_array();
        placement_json(json, &look);
        conditions_json(json, &judged.findings);
        judged.json(json);
        json.close_object();
    });
    text.into_bytes()
}

fn topology_json(json: &mut Writer<'_>, look: &Look, judged: &Judged) {
    json.open_object();
    json.key("machine").open_object();
    json.key("processor").text(&look.machine.model).key("virtual").boolean(look.machine.is_virtual);
    json.key("allowed").open_array();
    for &cpu in &look.machine.allowed {
        json.number(wide(cpu));
    }
    json.close_array();
    json.key("quota_milli_cpus").number_or_null(look.machine.quota_milli);
    json.key("cpus").open_array();
    for cpu in &look.machine.cpus {
        json.open_object().key("cpu").number(wide(cpu.id)).key("core").number(wide(cpu.core()));
        json.key("package").number(wide(cpu.package)).key("node").number(wide(cpu.node));
        json.key("l2").number(wide(cpu.l2)).key("l3").number(wide(cpu.l3));
        json.key("efficient").boolean(cpu.efficient).key("isolated").boolean(cpu.isolated);
        json.key("nohz_full").boolean(cpu.nohz_full).key("governor").text_or_null(cpu.governor.as_deref());
        json.close_object();
    }
    json.close_array().close_object();
    placement_json(json, look);
    judged.json(json);
    json.close_object();
}

fn placement_json(json: &mut Writer<'_>, look: &Look) {
    let topology = &look.plan.topology;
    json.key("policy").text(topology.policy.text()).key("shards").number(u64::from(topology.shards));
    json.key("threads").open_array();
    for row in &topology.rows {
        thread_json(json, row);
    }
    json.close_array();
}

fn limits_json(json: &mut Writer<'_>, limits: &[Limit]) {
    json.key("limits").open_array();
    for limit in limits {
        json.open_object().key("kind").text(limit.kind.text());
        json.key("touches").text_or_null(limit.touches.map(Touches::text));
        json.key("text").text(&limit.text).key("cost_ns").number_or_null(limit.cost_ns);
        json.key("change").text_or_null(limit.change.as_deref()).close_object();
    }
    json.close_array();
}

/// What the plan can take; every number is null if the signature check was not measured, and `text` says why.
fn capacity_json(json: &mut Writer<'_>, capacity: &Result<Capacity, String>) {
    let known = capacity.as_ref().ok();
    let text = capacity.as_ref().map_or_else(|why| format!("not measured: {why}"), Capacity::text);
    json.key("capacity").open_object().key("text").text(&text);
    json.key("signature_ns").number_or_null(known.map(|capacity| capacity.signature_ns));
    json.key("rest_of_order_ns").number(capacity::REST_NS).key("reader_order_ns").number(capacity::READER_NS);
    json.key("order_ns").number_or_null(known.map(|capacity| capacity.order_ns));
    json.key("orders_per_second").number_or_null(known.map(|capacity| capacity.orders_per_second));
    json.key("orders_per_second_before_median_climbs")
        .number_or_null(known.map(Capacity::comfortable_per_second));
    json.key("full_first").open_array();
    for name in known.into_iter().flat_map(|capacity| &capacity.first) {
        json.text(name);
    }
    json.close_array().key("loops").open_array();
    for part in known.into_iter().flat_map(|capacity| &capacity.parts) {
        json.open_object().key("loop").text(&part.name).key("cpu").number_or_null(part.cpu.map(wide));
        json.key("ns_per_order_of_all").number(part.order_ns);
        json.key("full_at_orders_per_second_of_all").number(part.orders_per_second);
        json.key("shares_core_with").open_array();
        for name in &part.beside {
            json.text(name);
        }
        json.close_array().close_object();
    }
    json.close_array().close_object();
}

fn answers_json(json: &mut Writer<'_>, answers: &[Answer]) {
    json.key("answers").open_array();
    for answer in answers {
        json.open_object().key("asked").text(answer.asked).key("title").text(answer.title);
        json.key("now").text(&answer.now).key("amount_ns");
        json.or_null(answer.amount_ns, |json, [least_ns, most_ns]| {
            json.open_array().number(least_ns).number(most_ns).close_array()
        });
        json.key("free").text_or_null(answer.free.as_deref());
        json.key("bought").text_or_null(answer.bought.as_deref());
        let Brief { by, amount, first } = &answer.brief;
        json.key("limited_by").text(by).key("how_much").text(amount).key("change_first").text(first);
        json.close_object();
    }
    json.close_array();
}

fn thread_json(json: &mut Writer<'_>, row: &Row) {
    json.open_object().key("thread").text(&row.thread).key("roles").text(&row.roles);
    json.key("cpu").number_or_null(row.cpu.map(wide));
    json.key("core").number_or_null(row.core.map(wide));
    json.key("siblings").open_array();
    for &sibling in &row.siblings {
        json.number(wide(sibling));
    }
    json.close_array().key("node").number_or_null(row.node.map(wide));
    json.key("wait").text(row.wait).key("why").text(&row.why).key("interrupts").open_array();
    for name in &row.interrupts {
        json.text(name);
    }
    json.close_array().close_object();
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).expect("a usize has 64 bits")
}

fn json(write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes));
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("the writer writes text")
}

/// Does `check`: fails if a condition failed that the exchange cannot run without.
pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, String> {
    let (look, fault) = match Look::at(&args.config, args.machine.as_ref()) {
        Ok(look) => (look, None),
        // The machine can be described all the same, with the default options.
        Err(fault) => {
            let (files, machine) = machine_at(args.machine.as_deref())?;
            let plan = plan::plan_for(&Options::default(), Start::default(), &machine)?;
            (Look { files, machine, plan, is_here: args.machine.is_none() }, Some(fault))
        }
    };
    let mut probes = match &fault {
        None => look.probes(args.config.config.as_deref()),
        Some(_) => Probes::none("waits for a valid configuration"),
    };
    if fault.is_some() && look.is_here {
        probes::look_at_others(&mut probes, None, probes::QUIET_TIME_MIN);
    }
    probes.config = Ok(fault);
    if let Some(seconds) = args.jitter {
        probes.jitter = Some(jitter::measure(&look.machine.allowed, Duration::from_secs(seconds)));
    }
    let judged = look.judged(&probes);
    let needs = probes::needs(&look.plan);
    let gaps = probes.jitter.as_deref().unwrap_or_default();
    if let Some(folder) = &args.copy {
        look.files.copy_what_was_read(folder)?;
    }
    if args.json {
        say(&json(|json| check_json(json, &judged, gaps)))?;
    } else {
        let warnings: Vec<String> = look.plan.warnings().iter().map(|line| format!("note: {line}")).collect();
        let notes = [lines(&warnings), gaps_table(gaps, &needs)].concat();
        let tune =
            if checks::can_be_tuned(&judged.findings) { "`outcry tune` prints what to change\n" } else { "" };
        let (report, told) = (checks::report(&judged.findings), judged.text());
        say(&format!("{report}{notes}{told}{}{tune}", valid_text(judged.valid.as_ref())))?;
    }
    Ok(if checks::is_fatal(&judged.findings) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether a run could be VALID here, and what would have to change.
fn valid_text(valid: Option<&Valid>) -> String {
    valid.map_or_else(String::new, |Valid { text, change, .. }| {
        let change = change.as_ref().map_or_else(String::new, |change| format!("     to change: {change}\n"));
        format!("{text}\n{change}")
    })
}

fn gaps_table(gaps: &[Gaps], needs: &Needs) -> String {
    if gaps.is_empty() {
        return String::new();
    }
    let us = |ns: u64| format!("{}.{:01} µs", ns / 1_000, ns % 1_000 / 100);
    let share = |millionths: Option<u64>| millionths.map_or_else(|| "not known".to_owned(), checks::percent);
    let cells = |gaps: &Gaps| {
        let lost = gaps.lost_millionths;
        [
            gaps.cpu.to_string(),
            needs.threads_on(gaps.cpu),
            gaps.per_second.to_string(),
            us(gaps.p50_ns),
            us(gaps.p99_ns),
            us(gaps.p999_ns),
            us(gaps.max_ns),
            us(gaps.wait_p99_ns),
            us(gaps.wait_p999_ns),
            checks::percent(lost),
            share(gaps.threads_millionths),
            share(gaps.host_millionths),
        ]
    };
    let heads = [
        "cpu",
        "thread",
        "gaps/s",
        "p50",
        "p99",
        "p99.9",
        "max",
        "1 in 100 waits",
        "1 in 1,000 waits",
        "time lost",
        "to threads",
        "to the host",
    ];
    let rows: Vec<_> = gaps.iter().map(cells).collect();
    let above = jitter::GAP_MIN_NS / 1_000;
    format!(
        "\ngaps of {above} µs and more in a thread that never sleeps:\n{}\nof these seconds alone: what a host takes for others \
         differs by the minute, so `--jitter 60` tells more of the slowest; loops that spin count it while they serve (`away` in /metrics)\n",
        table::render(heads, &rows)
    )
}

fn check_json(json: &mut Writer<'_>, judged: &Judged, gaps: &[Gaps]) {
    json.open_object();
    conditions_json(json, &judged.findings);
    json.key("jitter").open_array();
    for gaps in gaps {
        json.open_object().key("cpu").number(wide(gaps.cpu)).key("gaps_per_second").number(gaps.per_second);
        json.key("p50_ns").number(gaps.p50_ns).key("p99_ns").number(gaps.p99_ns);
        json.key("p999_ns").number(gaps.p999_ns).key("max_ns").number(gaps.max_ns);
        json.key("wait_p99_ns").number(gaps.wait_p99_ns).key("wait_p999_ns").number(gaps.wait_p999_ns);
        json.key("lost_millionths").number(gaps.lost_millionths);
        json.key("long_millionths").number(gaps.long_millionths);
        for (key, millionths) in [
            ("threads_millionths", gaps.threads_millionths),
            ("threads_long_millionths", gaps.threads_long_millionths),
            ("host_millionths", gaps.host_millionths),
        ] {
            json.key(key).number_or_null(millionths);
        }
        json.key("largest").text_or_null(gaps.largest.as_ref().map(|largest| largest.who.as_str()));
        json.close_object();
    }
    json.close_array().key("valid_run");
    json.or_null(judged.valid.as_ref(), |json, valid| {
        json.open_object().key("can_be").boolean(valid.can_be).key("text").text(&valid.text);
        json.key("change").text_or_null(valid.change.as_deref()).close_object()
    });
    judged.json(json);
    json.close_object();
}

fn conditions_json(json: &mut Writer<'_>, findings: &[Finding]) {
    json.key("conditions").open_array();
    for finding in findings {
        json.open_object().key("condition").text(finding.id).key("required").text(&finding.required);
        json.key("current").text(&finding.current).key("severity").text(finding.severity.text());
        json.key("passed");
        match finding.verdict {
            Verdict::Passed => json.boolean(true),
            Verdict::Failed => json.boolean(false),
            Verdict::Neither => json.null(),
        };
        json.key("why").text(finding.why).key("costs").text_or_null(finding.amount.as_deref());
        json.key("remedy").text_or_null(finding.remedy().as_deref()).close_object();
    }
    json.close_array();
}

/// Does `tune`: prints, changes nothing.
pub(crate) fn tune(args: &TuneArgs) -> Result<ExitCode, String> {
    if args.undo {
        return say(&script::undo());
    }
    let look = Look::at(&args.config, args.machine.as_ref())?;
    say(&script::script(&look.judged(&look.probes(args.config.config.as_deref())).findings))
}
