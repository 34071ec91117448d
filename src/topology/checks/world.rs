//! Conditions of network, disk, clock, limits and configuration.

use super::memory::limit;
use super::{DiskProbe, Finding, Fix, Refusal, Scene, Severity, Unit};
use crate::topology::placement::JOURNAL_PRIORITY;
use crate::topology::{cost, list};

pub(super) fn checks(scene: &Scene<'_>) -> Vec<Finding> {
    let mut findings = backlogs(scene);
    findings.push(busy_poll(scene));
    findings.extend([steering(scene, Direction::Receive), steering(scene, Direction::Send), queues(scene)]);
    findings.extend([autocorking(scene), slow_start(scene), disk(scene), disk_use(scene), free_space(scene)]);
    findings.extend([clocksource(scene), clock(scene), descriptors(scene)]);
    findings.extend([throttle(scene), real_time(scene)]);
    findings.extend([mitigations(scene), ports(scene), config(scene), lock(scene)]);
    findings.extend([journal(scene), secret(scene)]);
    findings
}

fn backlogs(scene: &Scene<'_>) -> Vec<Finding> {
    let needed = scene.needs.backlog;
    let rows = [
        ("net.somaxconn", "/proc/sys/net/core/somaxconn"),
        ("net.tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_max_syn_backlog"),
    ];
    let judge = |(id, path): (&'static str, &str)| {
        let why =
            "clients that connect at the same moment are turned away beyond it, and try again a second later";
        let finding = Finding::new(id, Severity::Warning, format!("at least {needed}"), why);
        match scene.files.number(path) {
            None => finding.unreadable(path),
            Some(value) => finding
                .judged(needed <= value, value.to_string())
                .short_by(needed, value, Unit::One)
                .mended_by(vec![Fix::Set { path: path.into(), value: needed.to_string() }]),
        }
    };
    rows.map(judge).into()
}

fn busy_poll(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "net.busy_poll",
        Severity::Info,
        "reported",
        "50 lets a waiting loop poll the card itself, if the driver can; it costs CPU",
    );
    let of = |name: &str| scene.files.number(&format!("/proc/sys/net/core/{name}"));
    match (of("busy_poll"), of("busy_read")) {
        (Some(poll), Some(read)) => finding.told(format!("busy_poll {poll} µs, busy_read {read} µs")),
        _ => finding.unreadable("not built in"),
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Receive,
    Send,
}

/// Whether packets are handed to the shards' CPUs by software.
fn steering(scene: &Scene<'_>, direction: Direction) -> Finding {
    let (id, file) = match direction {
        Direction::Receive => ("net.rps", "rps_cpus"),
        Direction::Send => ("net.xps", "xps_cpus"),
    };
    let finding = Finding::new(
        id,
        Severity::Info,
        "not steered to shards' cpus",
        "packets of all connections would be worked on by a shard's CPU",
    );
    let hot = scene.needs.hot();
    let (mut steered, mut fixes, mut known) = (Vec::new(), Vec::new(), 0);
    for card in &scene.machine.cards {
        let queues = match direction {
            Direction::Receive => &card.receive_queues,
            Direction::Send => &card.send_queues,
        };
        for queue in queues {
            let path = format!("/sys/class/net/{}/queues/{queue}/{file}", card.name);
            let Some(cpus) = scene.files.line(&path).and_then(|text| list::parse_mask(&text)) else {
                continue;
            };
            known += 1;
            if cpus.iter().any(|cpu| hot.contains(cpu)) {
                steered.push(format!("{}/{queue}", card.name));
                let others: Vec<usize> = cpus.into_iter().filter(|cpu| !hot.contains(cpu)).collect();
                fixes.push(Fix::Set { path, value: list::mask(&others) });
            }
        }
    }
    match (known, steered.first()) {
        (0, _) => finding.unreadable("no queues that can be steered"),
        // One queue sends everything, so every CPU has to use it.
        (1, Some(_)) if matches!(direction, Direction::Send) => finding.judged(true, "one queue for all"),
        (_, None) => finding.judged(true, "none steered there"),
        (_, Some(first)) => {
            let current = format!("{first} and {} more", steered.len() - 1).replace(" and 0 more", "");
            finding.judged(false, current).mended_by(fixes)
        }
    }
}

fn queues(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "net.queues",
        Severity::Info,
        "reported",
        "each queue has an interrupt that can be placed",
    );
    let cards: Vec<String> = scene
        .machine
        .cards
        .iter()
        .map(|card| format!("{} {}/{}", card.name, card.receive_queues.len(), card.send_queues.len()))
        .collect();
    if cards.is_empty() { finding.unreadable("no network card") } else { finding.told(cards.join(", ")) }
}

fn autocorking(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "net.autocorking",
        Severity::Info,
        "reported",
        "it has no say here: every connection sets TCP_NODELAY",
    );
    match scene.files.number("/proc/sys/net/ipv4/tcp_autocorking") {
        None => finding.unreadable("not built in"),
        Some(value) => finding.told(value.to_string()),
    }
}

fn slow_start(scene: &Scene<'_>) -> Finding {
    const PATH: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
    let finding = Finding::new(
        "net.slow_start_after_idle",
        Severity::Info,
        "0",
        "a connection that was quiet sends its next large answer in small steps",
    );
    match scene.files.number(PATH) {
        None => finding.unreadable(PATH),
        Some(value) => finding
            .judged(value == 0, value.to_string())
            .mended_by(vec![Fix::Set { path: PATH.into(), value: "0".into() }]),
    }
}

fn disk(scene: &Scene<'_>) -> Finding {
    let in_memory = |disk: &DiskProbe| matches!(disk.filesystem.as_str(), "tmpfs" | "ramfs");
    // A start refuses it: nothing there outlives the machine, whatever a sync reports.
    let is_refused = scene.needs.durable && scene.probes.disk.as_ref().is_ok_and(in_memory);
    // Only a durable answer waits while a disk discards.
    let and_no_discard = if scene.needs.durable { ", no discard" } else { "" };
    let finding = Finding::new(
        "io.journal_fs",
        if is_refused { Severity::Fatal } else { Severity::Warning },
        format!("local, takes O_DIRECT|O_DSYNC{and_no_discard}"),
        "a durable answer waits for one such write, so its time is the floor of order-to-ack",
    );
    finding.probed(&scene.probes.disk, |finding, disk| {
        let ((p50, p99), (sync_p50, sync_p99)) = (disk.write_us, disk.fsync_us);
        let name = &disk.filesystem;
        let stops = scene.needs.durable && disk.discards;
        let current = match &disk.direct_refused {
            _ if is_refused => format!("{name}: durable is refused there"),
            None if stops => format!("{name} mounted with discard; 4 KiB p50/p99 {p50}/{p99} µs"),
            None => format!("{name}; 4 KiB p50/p99 {p50}/{p99} µs, fsync {sync_p50}/{sync_p99} µs"),
            Some(why) => format!("{name}; no direct writes ({why}); fsync p50/p99 {sync_p50}/{sync_p99} µs"),
        };
        let measured = match scene.probes.disk_others() {
            Some(_) => "(measured, while others used it: io.others)",
            None => "(measured)",
        };
        let costs = match &disk.direct_refused {
            _ if is_refused => "the start is refused".to_owned(),
            None if stops => format!("{p50} µs a durable answer at p50 {measured}; {}", cost::discard()),
            None => format!("{p50} µs a durable answer at p50, {p99} at p99 {measured}"),
            Some(_) => format!("{sync_p50} µs a durable answer at p50, {sync_p99} at p99 {measured}"),
        };
        let place =
            "put data_dir and its folder journal on a local disk (ext4 or xfs), not on a network, an overlay or memory";
        let advice = if stops { cost::WITHOUT_DISCARD } else { place };
        finding
            .judged(disk.is_local && disk.direct_refused.is_none() && !stops, current)
            .costing(costs)
            .mended_by(vec![Fix::Advice(advice.into())])
    })
}

fn disk_use(scene: &Scene<'_>) -> Finding {
    let severity = if scene.needs.durable { Severity::Warning } else { Severity::Info };
    let why = "a durable answer's write waits until the disk has done what others gave it";
    let finding = Finding::new("io.others", severity, "busy below 10 % with others' work", why);
    finding.probed(&scene.probes.disk_quiet, |finding, found| {
        finding.judged(!found.is_felt(), found.amount()).mended_by(vec![Fix::Advice(found.remedy())])
    })
}

fn free_space(scene: &Scene<'_>) -> Finding {
    let needed = scene.needs.free_bytes;
    let finding = Finding::new(
        "io.free_space",
        Severity::Fatal,
        format!("{} MiB", needed >> 20),
        "below it the exchange takes cancels only, then stops",
    );
    finding.probed(&scene.probes.free_bytes, |finding, free| match *free {
        None => finding.judged(false, "not writable").costing("the start is refused").mended_by(vec![
            Fix::Advice("let the user that runs the exchange write there, or give another data_dir".into()),
        ]),
        Some(free) => finding
            .judged(needed <= free, format!("{} MiB", free >> 20))
            .short_by(needed, free, Unit::MiB)
            .mended_by(vec![Fix::Advice("free room, or lower journal.disk_free_min".into())]),
    })
}

/// Clocks that can be read without a system call. The first two are the processor's own. The others are a host's, who
/// says how its guests' tsc is to be read, and whether it is stable, without which it is a call after all: no file tells
/// that. A kernel that has chosen one did not trust the tsc alone.
const WITHOUT_CALLS: [&str; 4] = ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"];

fn clocksource(scene: &Scene<'_>) -> Finding {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let finding = Finding::new(
        "time.clocksource",
        Severity::Warning,
        "one without system calls (tsc, kvm-clock)",
        "another source makes every look at the clock a system call, several in each turn of a loop",
    );
    let others = scene.files.line(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    match scene.files.line(&format!("{FOLDER}/current_clocksource")) {
        None => finding.unreadable(FOLDER),
        Some(name) => {
            let fix = if others.split(' ').any(|other| other == "tsc") {
                Fix::Set { path: format!("{FOLDER}/current_clocksource"), value: "tsc".into() }
            } else {
                Fix::Advice("the kernel found the tsc unfit; its log says why (dmesg, tsc)".into())
            };
            finding.judged(WITHOUT_CALLS.contains(&name.as_str()), name).mended_by(vec![fix])
        }
    }
}

fn clock(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "time.ntp",
        Severity::Warning,
        "kept in step",
        "signed requests are refused when the clocks of client and exchange differ by auth.window_s",
    );
    finding.probed(&scene.probes.clock, |finding, &(in_step, error_us)| {
        let current = if in_step {
            format!("in step, error about {error_us} µs")
        } else {
            "nobody keeps it".to_owned()
        };
        finding
            .judged(in_step, current)
            .mended_by(vec![Fix::Advice("run chrony or systemd-timesyncd".into())])
    })
}

fn descriptors(scene: &Scene<'_>) -> Finding {
    let needed = scene.needs.connections + scene.needs.descriptors;
    let finding = Finding::new(
        "limit.nofile",
        Severity::Warning,
        format!("{needed} ({} connections)", scene.needs.connections),
        "every connection is a descriptor; beyond the limit clients are not accepted",
    );
    match limit(scene.files, "Max open files") {
        None => finding.unreadable("/proc/self/limits"),
        Some((_, None)) => finding.judged(true, "unlimited"),
        Some((_, Some(hard))) => {
            let finding = finding.judged(needed <= hard, hard.to_string());
            finding.short_by(needed, hard, Unit::One).mended_by(vec![Fix::Advice(
                "ulimit -Hn, systemd: LimitNOFILE=, or a lower sizes.connections".into(),
            )])
        }
    }
}

fn throttle(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "rt.throttle",
        Severity::Info,
        "reported",
        "it has no say here: the only thread that may be real-time sleeps most of the time",
    );
    match scene.files.line("/proc/sys/kernel/sched_rt_runtime_us") {
        None => finding.unreadable("not built in"),
        Some(value) => finding.told(format!("{value} µs a second")),
    }
}

fn real_time(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "rt.priority",
        Severity::Warning,
        "the journal's thread may be real-time",
        "one that is not may wait for whoever runs on its CPU when it is woken, and each durable answer with it",
    );
    if !scene.needs.journal_asks_for_real_time {
        return finding.told("not asked for: not pinned, or it looks on");
    }
    finding.probed(&scene.probes.real_time, |finding, refusal| match refusal {
        None => finding.judged(true, "it may"),
        Some(refusal) if scene.needs.durable => {
            let allowing = format!(
                "systemd: LimitRTPRIO={JOURNAL_PRIORITY}; docker: --ulimit rtprio={JOURNAL_PRIORITY}; a shell: ulimit -r \
                 {JOURNAL_PRIORITY}"
            );
            finding.judged(false, format!("refused: {refusal}")).mended_by(vec![Fix::Advice(allowing)])
        }
        Some(refusal) => finding.told(format!("refused: {refusal}; no answer waits for it")),
    })
}

fn mitigations(scene: &Scene<'_>) -> Finding {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    let finding = Finding::new(
        "sec.mitigations",
        Severity::Info,
        "reported",
        "they make system calls dearer; turning them off is the owner's decision",
    );
    let names = scene.files.names(FOLDER);
    if names.is_empty() {
        return finding.unreadable(FOLDER);
    }
    let texts: Vec<String> =
        names.iter().filter_map(|name| scene.files.line(&format!("{FOLDER}/{name}"))).collect();
    let count = |start: &str| texts.iter().filter(|text| text.starts_with(start)).count();
    finding.told(format!(
        "{} mitigated, {} vulnerable, {} not affected",
        count("Mitigation"),
        count("Vulnerable"),
        count("Not affected")
    ))
}

fn ports(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "port.bind",
        Severity::Fatal,
        "both listeners can be opened",
        "an exchange that runs here takes its ports too; else choose others (listen.http, listen.admin)",
    );
    finding.probed(&scene.probes.ports, |finding, faults| match faults.first() {
        None => finding.judged(true, "they can"),
        Some(fault) => finding
            .judged(false, fault.clone())
            .mended_by(vec![Fix::Advice("stop who has it, or name another address".into())]),
    })
}

fn config(scene: &Scene<'_>) -> Finding {
    let finding =
        Finding::new("config.valid", Severity::Fatal, "valid", "the exchange refuses to start with it");
    finding.probed(&scene.probes.config, |finding, fault| match fault {
        None => finding.judged(true, "valid"),
        Some(fault) => finding
            .judged(false, fault.clone())
            .mended_by(vec![Fix::Advice("change the setting that it names".into())]),
    })
}

fn lock(scene: &Scene<'_>) -> Finding {
    let (lock, why) = Refusal::split(&scene.probes.lock, Refusal::TWO_PROCESSES);
    let finding = Finding::new("data.lock", Severity::Fatal, "writable, not in use", why);
    finding.probed(&lock, |finding, fault| match fault {
        None => finding.judged(true, "free"),
        Some(fault) => {
            let (what, mend) = parted(fault);
            let usual = if what.contains("; allowed: ") {
                "change the setting that it names"
            } else {
                "let the user that runs the exchange write there, or name another place"
            };
            finding.judged(false, what).mended_by(vec![Fix::Advice(mend.unwrap_or(usual).into())])
        }
    })
}

fn journal(scene: &Scene<'_>) -> Finding {
    let finding = Finding::new(
        "data.journal",
        Severity::Fatal,
        "its own, no file cut",
        "a start refuses the journal of a copy that does not say so, and files that are not as they were made; their \
         frames are for `outcry journal verify`",
    );
    refused_or_made(finding, &scene.probes.journal)
}

fn secret(scene: &Scene<'_>) -> Finding {
    let (secret, why) = Refusal::split(&scene.probes.secret, Refusal::OTHER_MASTER);
    refused_or_made(Finding::new("data.secret", Severity::Fatal, "whole, the owner's alone", why), &secret)
}

/// Judges what a start makes if it is not there, and refuses if it is not as it was made.
fn refused_or_made(finding: Finding, refusal: &Result<Option<String>, String>) -> Finding {
    finding.probed(refusal, |finding, fault| match fault {
        None => finding.judged(true, "as wanted, or made at the first start"),
        Some(fault) => {
            let (what, mend) = parted(fault);
            let mend = mend.unwrap_or("restore it from the backup");
            finding.judged(false, what).mended_by(vec![Fix::Advice(mend.into())])
        }
    })
}

/// A fault with the rule that it breaks, and what mends it, if that is said after a semicolon.
fn parted(fault: &str) -> (&str, Option<&str>) {
    let Some((what, rest)) = fault.split_once("; ") else { return (fault, None) };
    if !["allowed: ", "needed: "].iter().any(|word| rest.starts_with(word)) {
        return (what, Some(rest));
    }
    match rest.split_once("; ") {
        Some((rule, mend)) => (&fault[..what.len() + "; ".len() + rule.len()], Some(mend)),
        None => (fault, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_stays_with_the_fault_and_what_mends_it_stands_apart() {
        for (fault, what, mend) in [
            ("cut short", "cut short", None),
            ("cut short; restore it", "cut short", Some("restore it")),
            (
                "is lost; restore it; if it is lost for ever, make it",
                "is lost",
                Some("restore it; if it is lost for ever, make it"),
            ),
            ("got 2 lines; allowed: one", "got 2 lines; allowed: one", None),
            ("got 5; needed: at least 16; restore it", "got 5; needed: at least 16", Some("restore it")),
        ] {
            assert_eq!(parted(fault), (what, mend));
        }
    }
}
