//! Conditions of memory and of its limits.

use super::{Finding, Fix, Scene, Severity};

/// Mappings of the exchange: arenas, rings and the log for each loop, and an open file for each segment
/// that a reader is in. Far more than any start was seen to make.
const MAPS: u64 = 4_096;

pub(super) fn checks(scene: &Scene<'_>) -> Vec<Finding> {
    vec![huge_pages(scene), locked(scene), swap(scene), swappiness(scene), merging(scene), maps(scene)]
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
pub(super) fn limit(scene: &Scene<'_>, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let text = scene.files.text("/proc/self/limits").ok()?;
    let row = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = row.split_whitespace();
    let mut value = || words.next().map(|word| word.parse().ok());
    Some((value()?, value()?))
}

fn locked(scene: &Scene<'_>) -> Finding {
    let loops = u64::try_from(scene.needs.loops).unwrap_or(u64::MAX);
    let needed = scene.needs.locked_bytes_per_loop.saturating_mul(loops);
    let finding = Finding::new(
        "mem.memlock",
        Severity::Warning,
        format!("{} KiB ({loops} executors)", needed >> 10),
        "without it loops run on plain threads instead of executors; the start says so",
    );
    match limit(scene, "Max locked memory") {
        None => finding.unreadable("/proc/self/limits"),
        Some((None, _)) => finding.judged(true, "unlimited"),
        Some((Some(soft), _)) => finding
            .judged(needed <= soft, format!("{} KiB", soft >> 10))
            .mended_by(vec![Fix::Advice("ulimit -l unlimited, or systemd: LimitMEMLOCK=infinity".into())]),
    }
}

fn swap_bytes(scene: &Scene<'_>) -> Option<u64> {
    let text = scene.files.text("/proc/meminfo").ok()?;
    let row = text.lines().find_map(|line| line.strip_prefix("SwapTotal:"))?;
    Some(row.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
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
            .mended_by(vec![Fix::Set { path: PATH.into(), value: "65530".into() }]),
    }
}
