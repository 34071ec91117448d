//! Conditions of memory and of its limits.

use super::{Finding, Fix, Needs, Scene, Severity, Unit};
use crate::topology::Files;
use crate::topology::machine::groups_above;

/// Mappings of the exchange: arenas, rings and the log for each loop, and an open file for each segment
/// that a reader is in. Far more than any start was seen to make.
const MAPS: u64 = 4_096;

/// Control groups of version 1 write "no limit" as the largest number of pages.
const NO_LIMIT_BYTES: u64 = 1 << 60;

pub(super) fn checks(scene: &Scene<'_>) -> Vec<Finding> {
    vec![
        room(scene),
        log_room(scene),
        huge_pages(scene),
        swap(scene),
        swappiness(scene),
        merging(scene),
        watching(scene),
        maps(scene),
    ]
}

/// The word in brackets of a file such as `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

fn huge_pages(scene: &Scene<'_>) -> Finding {
    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let finding = Finding::new(
        "mem.thp",
        Severity::Info,
        "madvise or never",
        "always lets the kernel stop a shard to put small pages together; arenas are touched once, at start",
    );
    let text = scene.files.line(PATH);
    match text.as_deref().and_then(chosen) {
        None => finding.unreadable("no transparent huge pages here"),
        Some(word) => finding
            .judged(word != "always", word)
            .mended_by(vec![Fix::Set { path: PATH.into(), value: "madvise".into() }]),
    }
}

/// The soft and hard value of a row of `/proc/self/limits`; none for unlimited.
pub(super) fn limit(files: &dyn Files, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let text = files.text("/proc/self/limits").ok()?;
    let row = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = row.split_whitespace();
    let mut value = || words.next().map(|word| word.parse().ok());
    Some((value()?, value()?))
}

/// A row of `/proc/meminfo` in bytes.
fn meminfo(files: &dyn Files, name: &str) -> Option<u64> {
    kib_row(files, "/proc/meminfo", name)
}

/// What this process holds: its resident memory without mapped files, which the kernel counts as available.
#[must_use]
pub fn held_bytes(files: &dyn Files) -> u64 {
    let of = |name| kib_row(files, "/proc/self/status", name).unwrap_or(0);
    of("RssAnon") + of("RssShmem")
}

/// The memory that a process can take before the kernel ends one to get some back; none if the kernel does not say.
#[must_use]
pub fn available_bytes(files: &dyn Files) -> Option<u64> {
    Some(meminfo(files, "MemAvailable")?.min(group_room(files).unwrap_or(u64::MAX)))
}

/// A row `name: 7 kB` in bytes.
fn kib_row(files: &dyn Files, path: &str, name: &str) -> Option<u64> {
    let text = files.text(path).ok()?;
    let row = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(row.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// The tightest limit of memory among this process's control group and those above it.
fn group_limit(files: &dyn Files) -> Option<u64> {
    group_limits(files).into_iter().map(|(limit, _)| limit).min()
}

/// What is left of the limits of this process's control group and of those above it, the least of it: others in them use
/// the same memory.
fn group_room(files: &dyn Files) -> Option<u64> {
    group_limits(files).into_iter().map(|(limit, used)| limit.saturating_sub(used)).min()
}

/// The limits of this process's control group and of those above it, each with what is used of it. What the kernel gives
/// back before it ends a process is not used: pages of files, and its own caches.
fn group_limits(files: &dyn Files) -> Vec<(u64, u64)> {
    let of = |limit: &str, used: &str, stat: &str, given_back: &[&str]| {
        let limit = files.number(limit).filter(|bytes| *bytes < NO_LIMIT_BYTES)?;
        let stat = files.text(stat).unwrap_or_default();
        let rows = stat.lines().filter_map(|line| line.split_once(' '));
        let given_back = rows.filter(|(name, _)| given_back.contains(name));
        let given_back: u64 = given_back.filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok()).sum();
        Some((limit, files.number(used).unwrap_or(0).saturating_sub(given_back)))
    };
    let newer = groups_above(files).into_iter().filter_map(|group| {
        let at = |name: &str| format!("{group}/memory.{name}");
        of(&at("max"), &at("current"), &at("stat"), &["inactive_file", "active_file", "slab_reclaimable"])
    });
    let newer: Vec<_> = newer.collect();
    if !newer.is_empty() {
        return newer;
    }
    let at = |name: &str| format!("/sys/fs/cgroup/memory/memory.{name}");
    let rows = ["total_inactive_file", "total_active_file"];
    of(&at("limit_in_bytes"), &at("usage_in_bytes"), &at("stat"), &rows).into_iter().collect()
}

fn swap_bytes(scene: &Scene<'_>) -> Option<u64> {
    meminfo(scene.files, "SwapTotal")
}

/// Why the kernel will not give the memory that `needs` asks for; none if it will. In its usual mode it
/// refuses one piece larger than all memory and swap, in its strict mode what exceeds its commit limit, and
/// in every mode it ends a process that takes more at its start than there is.
#[must_use]
pub fn cannot_be_had(files: &dyn Files, needs: &Needs) -> Option<String> {
    let of = |name: &str| meminfo(files, name);
    if let Some(fault) = cannot_be_taken(files, needs) {
        return Some(fault);
    }
    let refuse = |what: &str, needed: u64, had: u64| {
        let (needed, had) = (needed >> 20, had >> 20);
        (had < needed).then(|| format!("{what}: got {needed} MiB; allowed: up to {had} MiB on this machine"))
    };
    // A process that gets no more memory aborts, wherever it stands.
    let needed = needs.memory_bytes;
    // The log is shared, which is no data.
    let data = needed.saturating_sub(needs.log_bytes);
    for (name, words, needed) in
        [("Max address space", "ulimit -v", needed), ("Max data size", "ulimit -d", data)]
    {
        if let Some((Some(soft), _)) = limit(files, name)
            && soft < needed
        {
            let (needed, had) = (needed >> 20, soft >> 20);
            return Some(format!(
                "memory when books and tables are full: got {needed} MiB; allowed: up to {had} MiB ({words}); lower \
                 sizes.*, or raise that"
            ));
        }
    }
    match files.number("/proc/sys/vm/overcommit_memory") {
        Some(1) => None,
        Some(2) => {
            let left = of("CommitLimit")?.saturating_sub(of("Committed_AS")?);
            refuse("sizes.* together (vm.overcommit_memory is 2)", needs.memory_bytes, left)
        }
        _ => {
            let all = of("MemTotal")? + of("SwapTotal").unwrap_or(0);
            refuse("sizes.books_bytes of a shard", needs.memory_piece_bytes, all)
        }
    }
}

/// Why a start cannot take at once what it must, if so, and which setting asks for most of it.
fn cannot_be_taken(files: &dyn Files, needs: &Needs) -> Option<String> {
    let taken: u64 = needs.memory_taken.iter().map(|(_, bytes)| bytes).sum();
    let here = meminfo(files, "MemTotal")?.min(group_limit(files).unwrap_or(u64::MAX));
    let all = here.saturating_add(meminfo(files, "SwapTotal").unwrap_or(0));
    if taken <= all {
        return None;
    }
    let (most, bytes) = needs.memory_taken.iter().max_by_key(|(_, bytes)| *bytes)?;
    Some(format!(
        "{most}: asks for {} MiB, with all that a start takes at once {} MiB; allowed: up to {} MiB on this machine",
        bytes >> 20,
        taken >> 20,
        all >> 20
    ))
}

fn room(scene: &Scene<'_>) -> Finding {
    let needed = scene.needs.memory_bytes;
    let [read, kept] = scene.needs.memory_on_top;
    // A process that runs was not refused, and what it holds of what it needs is its own.
    let held = scene.probes.held_bytes.map(|held| held.min(needed));
    let held_of_all = scene.probes.held_bytes.map_or(0, |held| held.min(needed + read + kept));
    let fault = if held.is_some() { None } else { cannot_be_had(scene.files, scene.needs) };
    let finding = Finding::new(
        "mem.room",
        if fault.is_some() { Severity::Fatal } else { Severity::Warning },
        format!("{} MiB when books and tables are full", needed >> 20),
        "beyond it the kernel ends a process to get memory back; positions and history, as they are read, come on top of \
         all",
    );
    let fix =
        Fix::Advice("lower sizes.books_bytes, sizes.digests or sizes.resting_orders, or add memory".into());
    match (fault, meminfo(scene.files, "MemAvailable")) {
        (Some(fault), _) => finding.judged(false, fault).costing("the start is refused").mended_by(vec![fix]),
        (None, None) => finding.unreadable("/proc/meminfo"),
        (None, Some(free)) => {
            let (free, whose) = match group_room(scene.files).filter(|room| *room < free) {
                Some(room) => (room, "left to the control group (memory.max)"),
                None => (free, "available"),
            };
            let had = free + held.unwrap_or(0);
            let held = held.map_or_else(String::new, |held| format!(", {} MiB held already", held >> 20));
            let lacks = free + held_of_all < needed + read + kept;
            let on_top = if needed <= had && lacks {
                format!("; some {} MiB may come on top", (read + kept) >> 20)
            } else {
                String::new()
            };
            let current = format!("{} MiB {whose}{held}{on_top}", free >> 20);
            finding.judged(needed <= had, current).short_by(needed, had, Unit::MiB).mended_by(vec![fix])
        }
    }
}

fn log_room(scene: &Scene<'_>) -> Finding {
    let needed = scene.needs.log_bytes;
    let finding = Finding::new(
        "mem.log",
        Severity::Fatal,
        format!("{} MiB for the log", needed >> 20),
        "the log's file is made whole at the start, so that no order waits for room",
    );
    finding.probed(&scene.probes.log_room, |finding, (place, free)| {
        finding
            .judged(needed <= *free, format!("{} MiB free in {place}", free >> 20))
            .short_by(needed, *free, Unit::MiB)
            .mended_by(vec![Fix::Advice(
                "free room there, widen it (docker: --shm-size), or lower journal.log_bytes".into(),
            )])
    })
}

fn swap(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "mem.swap",
        Severity::Warning,
        "none, or swappiness at most 1",
        "a book that was swapped out is read back from the disk in the middle of a match",
    );
    let is_shy = scene.files.number("/proc/sys/vm/swappiness").is_some_and(|value| value <= 1);
    match swap_bytes(scene) {
        None => finding.unreadable("/proc/meminfo"),
        Some(0) => finding.judged(true, "none"),
        Some(bytes) => finding
            .judged(is_shy, format!("{} MiB", bytes >> 20))
            .mended_by(vec![Fix::Advice("swapoff -a, or let vm.swappiness be lowered".into())]),
    }
}

fn swappiness(scene: &Scene<'_>) -> Finding {
    const PATH: &str = "/proc/sys/vm/swappiness";
    let finding = Finding::new(
        "mem.swappiness",
        Severity::Warning,
        "at most 1, or no swap",
        "it says how readily memory that was not touched for a while is swapped out",
    );
    match scene.files.number(PATH) {
        None => finding.unreadable(PATH),
        Some(value) => finding
            .judged(value <= 1 || swap_bytes(scene) == Some(0), value.to_string())
            .mended_by(vec![Fix::Set { path: PATH.into(), value: "1".into() }]),
    }
}

fn merging(scene: &Scene<'_>) -> Finding {
    const PATH: &str = "/sys/kernel/mm/ksm/run";
    let finding = Finding::new(
        "mem.ksm",
        Severity::Warning,
        "0",
        "merging equal pages scans memory, and writing to a merged page copies it first",
    );
    match scene.files.number(PATH) {
        None => finding.judged(true, "not built in"),
        Some(value) => finding
            .judged(value != 1, value.to_string())
            .mended_by(vec![Fix::Set { path: PATH.into(), value: "0".into() }]),
    }
}

/// DAMON's threads, `kdamond`: those of its folder in sysfs, and those of its modules
/// (Documentation/admin-guide/mm/damon of the kernel).
fn watching(scene: &Scene<'_>) -> Finding {
    const FOLDER: &str = "/sys/kernel/mm/damon/admin/kdamonds";
    const MODULES: [&str; 3] = ["damon_reclaim", "damon_lru_sort", "damon_stat"];
    let made = scene.files.names(FOLDER).into_iter().filter(|name| name.parse::<u32>().is_ok());
    let made = made.map(|name| (format!("kdamond.{name}"), format!("{FOLDER}/{name}/state"), "on", "off"));
    let modules = MODULES
        .map(|module| (module.to_owned(), format!("/sys/module/{module}/parameters/enabled"), "Y", "N"));
    let runs = |path: &str, on: &str| scene.files.line(path).is_some_and(|state| state == on);
    let running: Vec<_> = made.chain(modules).filter(|(_, path, on, _)| runs(path, on)).collect();
    let names: Vec<&str> = running.iter().map(|(name, ..)| name.as_str()).collect();
    let current = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let set = |(_, path, _, off): &(String, String, &str, &str)| Fix::Set {
        path: path.clone(),
        value: (*off).to_owned(),
    };
    Finding::new(
        "mem.damon",
        Severity::Warning,
        "none",
        "kdamond looks which memory is used, on any CPU, and may write out what is not; whoever started it wanted memory back",
    )
    .judged(running.is_empty(), current)
    .mended_by(running.iter().map(set).collect())
}

fn maps(scene: &Scene<'_>) -> Finding {
    const PATH: &str = "/proc/sys/vm/max_map_count";
    let finding = Finding::new(
        "mem.max_map_count",
        Severity::Warning,
        format!("at least {MAPS}"),
        "every mapped file and arena counts; at the limit no segment can be opened",
    );
    match scene.files.number(PATH) {
        None => finding.unreadable(PATH),
        Some(value) => finding
            .judged(MAPS <= value, value.to_string())
            .short_by(MAPS, value, Unit::One)
            .mended_by(vec![Fix::Set { path: PATH.into(), value: "65530".into() }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::capacity::tests::{needs, plain};
    use crate::topology::checks::{Probes, Verdict};

    /// A machine of 8 GiB on which this process has 2 GiB, of which a half are mapped files.
    struct Memory {
        available_mib: u64,
    }

    impl Files for Memory {
        fn text(&self, path: &str) -> Result<String, String> {
            match path {
                "/proc/meminfo" => {
                    let available = self.available_mib << 10;
                    Ok(format!("MemTotal: 8388608 kB\nMemAvailable: {available} kB\nSwapTotal: 0 kB\n"))
                }
                "/proc/self/status" => {
                    let rows =
                        ["VmRSS:\t2097152", "RssAnon:\t1015808", "RssFile:\t1048576", "RssShmem:\t32768"];
                    Ok(rows.map(|row| format!("{row} kB\n")).concat())
                }
                _ => Err(path.to_owned()),
            }
        }

        fn names(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn what_a_running_exchange_holds_is_room_for_it() {
        for (available_mib, needed_mib, runs, passed, current) in [
            (3_072, 3_072, false, true, "3072 MiB available"),
            (3_072, 3_073, false, false, "3072 MiB available"),
            (2_048, 3_072, true, true, "2048 MiB available, 1024 MiB held already"),
            (2_047, 3_072, true, false, "2047 MiB available, 1024 MiB held already"),
            // What it holds beyond its plan, as for history, makes no room.
            (0, 512, true, true, "0 MiB available, 512 MiB held already"),
            // A start that asks for this is refused; one that runs was given it.
            (4_096, 9_216, true, false, "4096 MiB available, 1024 MiB held already"),
            (
                4_096,
                9_216,
                false,
                false,
                "sizes.books_bytes of a shard: got 9216 MiB; allowed: up to 8192 MiB on this machine",
            ),
        ] {
            let files = Memory { available_mib };
            let mut needs = needs("sm@0 r@1");
            (needs.memory_bytes, needs.memory_piece_bytes) = (needed_mib << 20, needed_mib << 20);
            needs.memory_taken.clear();
            let mut probes = Probes::none("no");
            probes.held_bytes = runs.then(|| held_bytes(&files));
            let scene = Scene { files: &files, machine: &plain(2), needs: &needs, probes: &probes };
            let finding = room(&scene);
            let told = (finding.verdict == Verdict::Passed, finding.current.as_str());
            assert_eq!(told, (passed, current), "{needed_mib}");
        }
    }

    #[test]
    fn what_may_come_on_top_is_told_where_there_is_no_room_for_it_and_that_passes() {
        // Available, and whether the process runs, with a GiB that it holds; books and tables take one, and what can be
        // read half of one, twice while a snapshot is made.
        for (available_mib, runs, passed, current) in [
            (1_023, false, false, "1023 MiB available"),
            (1_024, false, true, "1024 MiB available; some 1024 MiB may come on top"),
            (2_047, false, true, "2047 MiB available; some 1024 MiB may come on top"),
            (2_048, false, true, "2048 MiB available"),
            (1_023, true, true, "1023 MiB available, 1024 MiB held already; some 1024 MiB may come on top"),
            (1_024, true, true, "1024 MiB available, 1024 MiB held already"),
        ] {
            let files = Memory { available_mib };
            let mut needs = needs("sm@0 r@1");
            (needs.memory_bytes, needs.memory_on_top) = (1 << 30, [1 << 29; 2]);
            let mut probes = Probes::none("no");
            probes.held_bytes = runs.then(|| held_bytes(&files));
            let scene = Scene { files: &files, machine: &plain(2), needs: &needs, probes: &probes };
            let finding = room(&scene);
            assert_eq!((finding.verdict == Verdict::Passed, finding.current.as_str()), (passed, current));
        }
    }

    /// A machine with 4 GiB available, in a control group with these files.
    struct Group(&'static [(&'static str, &'static str)]);

    impl Files for Group {
        fn text(&self, path: &str) -> Result<String, String> {
            let found = self.0.iter().find(|(end, _)| path.ends_with(end));
            match path {
                "/proc/self/cgroup" => Ok("0::/slice/pod\n".to_owned()),
                _ => match found {
                    Some((_, text)) => Ok((*text).to_owned()),
                    None => Memory { available_mib: 4_096 }.text(path),
                },
            }
        }

        fn names(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn others_in_a_control_group_use_its_limit_too() {
        const DROPPED: &str =
            "anon 0\ninactive_file 536870912\nactive_file 402653184\nslab_reclaimable 134217728\n";
        for (group, available_mib, running) in [
            (Group(&[]), 4_096, "4096 MiB available, 1024 MiB held already"),
            (Group(&[("pod/memory.max", "max")]), 4_096, "4096 MiB available, 1024 MiB held already"),
            (
                Group(&[("pod/memory.max", "3221225472")]),
                3_072,
                "3072 MiB left to the control group (memory.max), 1024 MiB held already",
            ),
            // Two GiB are used.
            (
                Group(&[("slice/memory.max", "3221225472"), ("slice/memory.current", "2147483648")]),
                1_024,
                "1024 MiB left to the control group (memory.max), 1024 MiB held already",
            ),
            // One of them is of files and caches, which the kernel gives back.
            (
                Group(&[
                    ("slice/memory.max", "3221225472"),
                    ("slice/memory.current", "2147483648"),
                    ("slice/memory.stat", DROPPED),
                ]),
                2_048,
                "2048 MiB left to the control group (memory.max), 1024 MiB held already",
            ),
            // The limit was lowered meanwhile; and version 1.
            (
                Group(&[
                    ("memory/memory.limit_in_bytes", "1073741824"),
                    ("memory/memory.usage_in_bytes", "2147483648"),
                ]),
                0,
                "0 MiB left to the control group (memory.max), 1024 MiB held already",
            ),
        ] {
            assert_eq!(available_bytes(&group).map(|bytes| bytes >> 20), Some(available_mib), "{running}");
            let mut needs = needs("sm@0 r@1");
            needs.memory_bytes = (available_mib + 1_024) << 20;
            let mut probes = Probes::none("no");
            probes.held_bytes = Some(held_bytes(&group));
            // What it holds itself is in the group's use.
            for (more, verdict) in [(0, Verdict::Passed), (1 << 20, Verdict::Failed)] {
                needs.memory_bytes += more;
                let scene = Scene { files: &group, machine: &plain(2), needs: &needs, probes: &probes };
                let finding = room(&scene);
                assert_eq!((finding.verdict, finding.current.as_str()), (verdict, running));
            }
        }
    }
}
