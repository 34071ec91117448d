//! The machine on which a figure was measured: what it is, how it is set up, and which CPUs may be used.

use std::path::Path;
use std::process::Command;

use outcry::server::machine::system::be_real_time;
use outcry::topology::placement::JOURNAL_PRIORITY;
use outcry::topology::tune::quoted;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::figures::VARIABLE;

/// What is between a CPU's name and its family.
const FAMILY: &str = " (family ";

/// Written where nothing could be found out.
const UNKNOWN: &str = "unknown";

/// Words of the kernel's command line that change latency; no others are recorded.
const TUNING: &[&str] = &[
    "isolcpus",
    "nohz",
    "nohz_full",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "irqaffinity",
    "idle",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "mitigations",
    "nosmt",
    "tsc",
    "clocksource",
    "transparent_hugepage",
    "preempt",
    "threadirqs",
    "skew_tick",
    "nmi_watchdog",
    "nowatchdog",
    "numa_balancing",
];

/// Everything about the machine and the build that a figure depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// The CPU's name, with its family and model where the kernel tells them: hypervisors shorten names, so that
    /// different CPUs have the same one. Records from before 2026-11-26 have the name only.
    pub(crate) cpu_model: String,
    /// CPUs that this process may run on.
    pub(crate) cpus: Vec<usize>,
    /// The hypervisor under this machine, or none.
    pub(crate) hypervisor: String,
    /// The kernel's version.
    pub(crate) kernel: String,
    /// The words of its command line that matter to latency.
    pub(crate) kernel_tuning: String,
    /// How the CPUs' frequency is chosen.
    pub(crate) governor: String,
    /// CPUs that the scheduler leaves alone.
    pub(crate) isolated_cpus: String,
    /// CPUs whose timer stops while a single thread runs.
    pub(crate) nohz_full: String,
    /// The source of the clock.
    pub(crate) clocksource: String,
    /// The mitigation of each weakness of the CPU.
    pub(crate) mitigations: Vec<String>,
    /// Transparent huge pages.
    pub(crate) huge_pages: String,
    /// Threads that wanted to run before the run.
    pub(crate) load_average: String,
    /// Bytes of memory.
    pub(crate) memory_bytes: u64,
    /// The project's commit.
    pub(crate) commit: String,
    /// True if the tree differed from the commit, or had a scenario that is not in it.
    pub(crate) dirty: bool,
    /// The compiler.
    pub(crate) rustc: String,
    /// How the server was built.
    pub(crate) profile: String,
    /// The command that was typed.
    pub(crate) command: String,
    /// When, in UTC.
    pub(crate) date: String,
}

impl Environment {
    /// Asks the machine, and git and the compiler in the project's folder.
    pub(crate) fn capture(project: &Path, profile: &str) -> Self {
        let git = |words: &[&str]| said(project, "git", words);
        Self {
            cpu_model: cpu_model(&read("/proc/cpuinfo")),
            cpus: allowed_cpus(),
            hypervisor: hypervisor(),
            kernel: read("/proc/sys/kernel/osrelease"),
            kernel_tuning: or(tuning(&read("/proc/cmdline")), "none"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            isolated_cpus: or(read("/sys/devices/system/cpu/isolated"), "none"),
            nohz_full: or(
                read("/sys/devices/system/cpu/nohz_full").replace("(null)", "").replace(UNKNOWN, ""),
                "none",
            ),
            clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            mitigations: mitigations(),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled"),
            load_average: read("/proc/loadavg"),
            memory_bytes: rustix::system::sysinfo().totalram,
            commit: git(&["rev-parse", "--short=7", "HEAD"]),
            dirty: !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty()
                || !git(&["status", "--porcelain", "--untracked-files=all", "--", "perf/scenarios"])
                    .is_empty(),
            rustc: said(project, "rustc", &["--version"]),
            profile: profile.to_owned(),
            command: command_line(),
            date: now(),
        }
    }

    /// The day, in UTC.
    pub(crate) fn day(&self) -> &str {
        self.date.get(..10).unwrap_or(&self.date)
    }

    /// Why this tree's commit does not say what was measured, if it does not.
    pub(crate) fn not_of_this_tree(&self) -> Option<&'static str> {
        let has = |is_it: fn(&str) -> bool| self.command.split(' ').any(is_it);
        if has(|word| word.strip_prefix(SERVER).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
        {
            return Some("of a server that --server named, and not of this commit's");
        }
        if has(|word| word.starts_with("OUTCRY_CONFIG=")) {
            return Some("of a server with settings from a file, which the commit does not have");
        }
        has(|word| word.strip_suffix(".toml").is_some()).then_some(
            "of a scenario's file; run it by its name, from perf/scenarios, so that the commit has it",
        )
    }

    /// Whether the command was a sweep.
    pub(crate) fn is_sweep(&self) -> bool {
        self.parts().1.starts_with("sweep ")
    }

    /// The variables that were set, and what was typed behind the script's name. In records from before 2026-11-27 the
    /// script may have no folder.
    pub(crate) fn parts(&self) -> (&str, &str) {
        let bare = || ("", self.command.strip_prefix("perf ").unwrap_or(&self.command));
        self.command.split_once("scripts/perf ").unwrap_or_else(bare)
    }

    /// Whether both are of one machine, as far as the older record says: it may have the CPU's name only. Another
    /// kernel makes no other machine.
    pub(crate) fn replaces(&self, older: &Self) -> bool {
        let is_guest = |of: &Self| of.hypervisor != "none";
        self.has_cpu_of(older) && self.cpus.len() == older.cpus.len() && is_guest(self) == is_guest(older)
    }

    /// Whether the CPU is that of an older record, which may have its name only.
    pub(crate) fn has_cpu_of(&self, older: &Self) -> bool {
        let name = self.cpu_model.split(FAMILY).next();
        self.cpu_model == older.cpu_model || name == Some(&older.cpu_model)
    }

    /// The machine in a few words, for tables.
    pub(crate) fn machine(&self) -> String {
        let kernel = self.kernel.split(['-', '+']).next().unwrap_or_default();
        let guest = if self.hypervisor == "none" { "" } else { " (guest)" };
        format!("{}, {} CPUs{guest}, Linux {kernel}", self.cpu_model, self.cpus.len())
    }
}

/// The date and time in UTC, to the second.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The script that starts the rig.
const SCRIPT: &str = "scripts/perf";

/// The option that says where another server's binary is.
const SERVER: &str = "--server";

/// Environment variables that change what is measured, besides the server's own settings.
const SETTINGS: [&str; 2] = ["ROUNDTRIP_DURABILITY", "RUSTFLAGS"];

/// How variables begin that are settings of the server.
const OF_SERVER: &str = "OUTCRY_";

/// Variables that begin so and change nothing; the token is a secret.
const NO_SETTINGS: [&str; 3] = [VARIABLE, "OUTCRY_ADMIN", "OUTCRY_ADMIN_TOKEN"];

/// The command that was typed, as it is recorded.
fn command_line() -> String {
    with_variables(&variables(), &recorded(std::env::args().skip(1)))
}

/// The command that was typed, quoted for a shell.
pub(crate) fn typed() -> String {
    let set = variables().into_iter().map(|(name, value)| format!("{name}={} ", quoted(&value)));
    set.collect::<String>() + &quoted_words(std::env::args().skip(1))
}

/// The settings that are set in the environment, by name.
pub(crate) fn variables() -> Vec<(String, String)> {
    let all = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let set = all.filter(|(name, _)| is_setting(name));
    let mut set: Vec<_> = set.map(|(name, value)| (name, value.to_string_lossy().into_owned())).collect();
    set.sort();
    set
}

fn is_setting(name: &str) -> bool {
    SETTINGS.contains(&name) || name.starts_with(OF_SERVER) && !NO_SETTINGS.contains(&name)
}

/// A command as it is recorded behind the variables that were set for it.
pub(crate) fn with_variables(set: &[(String, String)], command: &str) -> String {
    let set = set.iter().map(|(name, value)| format!("{name}={} ", quoted(&without_folders(value))));
    set.collect::<String>() + command
}

/// A command as it is recorded: files are named without their folders, and where results were written is left out, for
/// it changes nothing.
fn recorded(given: impl Iterator<Item = String>) -> String {
    command(without(words(given), "--out").map(|word| without_folders(&word)))
}

/// A command as a shell takes it.
fn quoted_words(given: impl Iterator<Item = String>) -> String {
    command(words(given).map(|word| quoted(&word)))
}

fn command(words: impl Iterator<Item = String>) -> String {
    std::iter::once(SCRIPT.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The words that were typed behind the script's name: all but those that the script adds.
fn words(given: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    without(given, "--built")
}

/// The words of a command without an option and its value.
fn without(mut given: impl Iterator<Item = String>, option: &str) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        loop {
            let word = given.next()?;
            match word.strip_prefix(option) {
                Some("") => drop(given.next()),
                Some(value) if value.starts_with('=') => {}
                _ => return Some(word),
            }
        }
    })
}

/// A word of a command; of a path only the last part, because the location of files is not recorded. The path may be
/// the value of an option or a setting.
pub(crate) fn without_folders(word: &str) -> String {
    let folder = word.find('/').unwrap_or(word.len());
    let (before, path) = word.split_at(word[..folder].rfind('=').map_or(0, |end| end + 1));
    let name = Path::new(path).file_name();
    name.map_or_else(|| word.to_owned(), |name| format!("{before}{}", name.to_string_lossy()))
}

/// CPUs that this process may run on, lowest first.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Keeps the calling thread on one CPU until the value is dropped.
pub(crate) struct Pinned(CpuSet);

/// Keeps the calling thread on `cpu`; processes that it starts meanwhile are kept there too.
pub(crate) fn pin(cpu: usize) -> Result<Pinned, String> {
    let fault = |fault: rustix::io::Errno| format!("CPU {cpu}: {fault}");
    let before = sched_getaffinity(None).map_err(fault)?;
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(fault)?;
    Ok(Pinned(before))
}

/// Keeps every thread of a process on `cpu`, and the threads that those start.
pub(crate) fn keep_on(pid: u32, cpu: usize) -> Result<(), String> {
    let folder = format!("/proc/{pid}/task");
    let threads = std::fs::read_dir(&folder).map_err(|fault| format!("{folder}: {fault}"))?;
    let mut set = CpuSet::new();
    set.set(cpu);
    for thread in threads {
        let number = thread.ok().and_then(|thread| thread.file_name().to_str()?.parse().ok());
        let thread = number.and_then(Pid::from_raw).ok_or_else(|| format!("{folder}: holds no threads"))?;
        match sched_setaffinity(Some(thread), &set) {
            // The thread has ended meanwhile.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(fault) => return Err(format!("CPU {cpu}: {fault}")),
        }
    }
    Ok(())
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Those CPUs were allowed before; if they no longer are, the thread stays where it is.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Lets the calling thread run before all others on its CPU, until the value is dropped, but for the server's journal
/// thread, which has the next higher priority. Without the right to that it runs like any other.
pub(crate) fn come_first() -> First {
    let _ = be_real_time(JOURNAL_PRIORITY - 1);
    First
}

/// See [`come_first`].
pub(crate) struct First;

impl Drop for First {
    fn drop(&mut self) {
        let _ = be_real_time(0);
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).map_or_else(|_| UNKNOWN.to_owned(), |text| text.trim().to_owned())
}

/// The words of a kernel's command line that are in [`TUNING`].
fn tuning(command_line: &str) -> String {
    let counts = |word: &&str| TUNING.contains(&word.split('=').next().unwrap_or_default());
    command_line.split_whitespace().filter(counts).collect::<Vec<_>>().join(" ")
}

fn or(text: String, empty: &str) -> String {
    if text.is_empty() { empty.to_owned() } else { text }
}

/// What a program says in a folder, as the folder decides which compiler `rustc` is.
fn said(folder: &Path, program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).current_dir(folder).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// What `/proc/cpuinfo` says of the first CPU (proc(5)).
fn of_cpuinfo<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .map(|(field, value)| (field.trim(), value.trim()))
        .find(|(field, _)| *field == name)
        .map(|(_, value)| value)
}

fn cpu_model(cpuinfo: &str) -> String {
    let name = of_cpuinfo(cpuinfo, "model name").unwrap_or(UNKNOWN);
    match (of_cpuinfo(cpuinfo, "cpu family"), of_cpuinfo(cpuinfo, "model")) {
        (Some(family), Some(model)) => format!("{name}{FAMILY}{family}, model {model})"),
        _ => name.to_owned(),
    }
}

fn hypervisor() -> String {
    let cpuinfo = read("/proc/cpuinfo");
    if !of_cpuinfo(&cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        return "none".to_owned();
    }
    or(read("/sys/class/dmi/id/sys_vendor").replace(UNKNOWN, ""), "yes, unnamed")
}

fn mitigations() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else { return Vec::new() };
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let text = std::fs::read_to_string(&path).ok()?;
            let affected = text.trim() != "Not affected";
            affected.then(|| format!("{}: {}", path.file_name().unwrap_or_default().display(), text.trim()))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_called_by_its_name_and_by_what_hypervisors_leave_alone() {
        let x86 = "cpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n\nmodel name\t: another\n";
        for (cpuinfo, expected) in [
            (x86, "AMD EPYC (family 25, model 1)"),
            ("model name\t: Some CPU\n", "Some CPU"),
            ("CPU implementer\t: 0x41\n", UNKNOWN),
        ] {
            assert_eq!(cpu_model(cpuinfo), expected);
        }
    }

    #[test]
    fn a_pinned_thread_comes_back() {
        let before = allowed_cpus();
        let pinned = pin(before[0]).unwrap();
        assert_eq!(allowed_cpus(), before[..1]);
        drop(pinned);
        assert_eq!(allowed_cpus(), before);
    }

    #[test]
    fn every_thread_of_a_process_is_kept_on_one_cpu() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let cpu = *allowed_cpus().last().unwrap();
        keep_on(child.id(), cpu).unwrap();
        let set = sched_getaffinity(Pid::from_raw(i32::try_from(child.id()).unwrap())).unwrap();
        assert_eq!((set.count(), set.is_set(cpu)), (1, true));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(keep_on(u32::MAX, cpu).is_err());
    }

    #[test]
    fn what_was_typed_can_be_typed_again_without_what_the_script_adds() {
        let given = ["--built", "release", "run", "my files/it's.toml", "--rate", "5"];
        let typed = quoted_words(given.into_iter().map(str::to_owned));
        assert_eq!(typed, "scripts/perf run 'my files/it'\\''s.toml' --rate 5");
    }

    #[test]
    fn a_recorded_command_has_the_variables_that_change_what_is_measured() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<_> =
                set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            with_variables(&set, "scripts/perf run mixed")
        };
        for (set, recorded_as, variables) in [
            (&[][..], "scripts/perf run mixed", ""),
            (
                &[("OUTCRY_SIZES_DIGESTS", "1000"), ("RUSTFLAGS", "-C target-cpu=native")],
                "OUTCRY_SIZES_DIGESTS=1000 RUSTFLAGS='-C target-cpu=native' scripts/perf run mixed",
                "OUTCRY_SIZES_DIGESTS=1000 RUSTFLAGS='-C target-cpu=native' ",
            ),
            (
                &[("OUTCRY_CONFIG", "/home/me/tuned.toml")],
                "OUTCRY_CONFIG=tuned.toml scripts/perf run mixed",
                "OUTCRY_CONFIG=tuned.toml ",
            ),
        ] {
            assert_eq!(of(set), recorded_as);
            let environment = Environment { command: of(set), ..crate::summary::example_environment() };
            assert_eq!(environment.parts(), (variables, "run mixed"));
        }
        for (name, expected) in [
            ("OUTCRY_SIZES_DIGESTS", true),
            ("RUSTFLAGS", true),
            ("OUTCRY_ADMIN_TOKEN", false),
            (VARIABLE, false),
            ("HOME", false),
        ] {
            assert_eq!(is_setting(name), expected, "{name}");
        }
        let bare =
            Environment { command: "perf run mixed".to_owned(), ..crate::summary::example_environment() };
        assert_eq!(bare.parts(), ("", "run mixed"));
    }

    #[test]
    fn a_recorded_command_has_no_folders_but_the_scripts() {
        for (given, recorded_as) in [
            ("--built bench smoke", "scripts/perf smoke"),
            ("--built bench run mixed --rate 5", "scripts/perf run mixed --rate 5"),
            ("--built bench scale --up-to=10", "scripts/perf scale --up-to=10"),
            ("run mixed --out /tmp/x/out --seconds 1", "scripts/perf run mixed --seconds 1"),
            ("--out=/tmp/x/out run mixed", "scripts/perf run mixed"),
            ("run /home/me/a.toml --server=/opt/b/outcry", "scripts/perf run a.toml --server=outcry"),
            (
                "compare x/outcry y/outcry --a-set a.b=/c/d",
                "scripts/perf compare outcry outcry --a-set a.b=d",
            ),
            ("compare A B --a-set=a.b=c/d", "scripts/perf compare A B --a-set=a.b=d"),
            ("run /tmp/a=b/mixed.toml", "scripts/perf run mixed.toml"),
        ] {
            assert_eq!(recorded(given.split(' ').map(str::to_owned)), recorded_as, "{given}");
        }
    }

    #[test]
    fn a_command_that_measures_something_else_than_the_commit_says_so() {
        let of = |command: &str| {
            let environment = crate::summary::example_environment();
            Environment { command: command.to_owned(), ..environment }.not_of_this_tree()
        };
        for (command, start) in [
            ("scripts/perf run mixed", None),
            ("scripts/perf run mixed --rate 100", None),
            ("scripts/perf scale --server outcry", Some("of a server that --server named")),
            ("scripts/perf --server=outcry run mixed", Some("of a server that --server named")),
            ("scripts/perf run mixed.toml", Some("of a scenario's file")),
            (
                "OUTCRY_CONFIG=tuned.toml scripts/perf run mixed",
                Some("of a server with settings from a file"),
            ),
        ] {
            let said = of(command);
            assert_eq!(said.and_then(|said| said.split([',', ';']).next()), start, "{command}");
        }
    }

    #[test]
    fn a_record_replaces_those_of_its_machine_as_far_as_they_name_it() {
        let of = |cpu_model: &str, cpus: &[usize], kernel: &str, hypervisor: &str| Environment {
            cpu_model: cpu_model.to_owned(),
            cpus: cpus.to_vec(),
            kernel: kernel.to_owned(),
            hypervisor: hypervisor.to_owned(),
            ..crate::summary::example_environment()
        };
        let (epyc, milan) = ("AMD EPYC", "AMD EPYC (family 25, model 1)");
        let newer = of(milan, &[0, 1], "6.18", "KVM");
        for (older, is_replaced) in [
            (of(milan, &[2, 3], "6.18", "KVM"), true),
            (of(epyc, &[0, 1], "6.12", "yes, unnamed"), true),
            (of("AMD EPYC (family 26, model 2)", &[0, 1], "6.18", "KVM"), false),
            (of("AMD", &[0, 1], "6.18", "KVM"), false),
            (of(milan, &[0, 1, 2], "6.18", "KVM"), false),
            (of(milan, &[0, 1], "6.18", "none"), false),
        ] {
            assert_eq!(newer.replaces(&older), is_replaced, "{older:?}");
        }
        assert!(!of(epyc, &[0, 1], "6.18", "KVM").replaces(&newer), "the older one says more");
    }

    #[test]
    fn of_the_kernels_command_line_only_what_tunes_is_kept() {
        assert_eq!(
            tuning("quiet isolcpus=2-5 root=/dev/x nohz_full=2-5 idle=poll"),
            "isolcpus=2-5 nohz_full=2-5 idle=poll"
        );
        assert_eq!(tuning("quiet root=/dev/x"), "");
    }

    #[test]
    fn the_machine_says_what_it_is() {
        let environment = Environment::capture(Path::new(env!("CARGO_MANIFEST_DIR")), "test");
        assert!(environment.memory_bytes > 1 << 20);
        assert_ne!(environment.kernel, UNKNOWN);
        assert!(environment.rustc.starts_with("rustc "), "{}", environment.rustc);
        assert_eq!(environment.date.len(), "2026-11-22T03:04:05Z".len());
    }
}
