//! What limits machines, as tables.

use super::*;
use crate::topology::capacity::tests::Silent;
use crate::topology::checks::{LoopWork, Named, Needs, Pinned, Probes};
use crate::topology::machine::Machine;

mod disk_use;
mod running;
mod shared_cores;
mod woken;

/// `shards` and a reader, pinned from CPU 0 on if they can be; shards spin if they are to. What a loop carries is said only
/// by its name: no remedy here is about that.
fn needs(cpus: usize, shards: usize, policy: Policy, spin: bool) -> Needs {
    let names: Vec<String> = (0..shards).map(|shard| format!("shard{shard}")).collect();
    let is_pinned = policy != Policy::Unpinned && shards < cpus;
    let names: Vec<String> = names.into_iter().chain(["reader".to_owned()]).collect();
    let pinned = names.iter().cloned().enumerate().filter(|_| is_pinned);
    let work = names.iter().enumerate().map(|(cpu, name)| LoopWork {
        name: name.clone(),
        cpu: is_pinned.then_some(cpu),
        sockets: false,
        shard: false,
        follows: None,
        sleeps: if spin && name != "reader" { Sleeps::Never } else { Sleeps::AtOnce },
    });
    Needs {
        pinned: pinned.map(|(cpu, name)| Pinned { is_hot: name != "reader", name, cpu }).collect(),
        loops: shards + 1,
        work: work.collect(),
        shards,
        policy,
        ..capacity::tests::needs("")
    }
}

/// The texts of all but what the slowest orders alone meet.
fn of(cpus: usize, needs: &Needs, probes: &Probes) -> Vec<String> {
    let limits = limits(cpus, needs, probes).into_iter();
    limits.filter(|limit| limit.touches != Some(Touches::P999)).map(|limit| limit.text).collect()
}

fn limits(cpus: usize, needs: &Needs, probes: &Probes) -> Vec<Limit> {
    let machine = Machine::plain(&(0..cpus).collect::<Vec<_>>());
    let scene = Scene { files: &Silent, machine: &machine, needs, probes };
    causes(&scene, &checks::run(&scene))
}

#[test]
fn cores_limit_as_they_are_set_and_not_as_auto_would_set_them() {
    let wake = "nothing spins, so an order also waits for a wake-up of some 16 µs";
    let (auto, explicit, unpinned) = (Policy::Auto, Policy::Explicit, Policy::Unpinned);
    for (cpus, shards, policy, spin, expected) in [
        (
            1,
            1,
            auto,
            false,
            "one CPU carries orders, reads and the journal in turn: up to about 1 ms an order behind a read | \
             no loop spins (cpu.wait): an order also waits for a wake-up of some 16 µs"
                .to_owned(),
        ),
        (2, 1, auto, false, format!("2 cores for 2 loops, the journal and the system, 4 would do: {wake}")),
        (
            2,
            1,
            explicit,
            true,
            "2 cores for 2 loops, the journal and the system, 4 would do: shard0 spins all the same, and \
             the others share what is left"
                .to_owned(),
        ),
        (2, 1, unpinned, false, format!("cpu.policy is unpinned: 2 loops wander over 2 cores; {wake}")),
        (
            2,
            2,
            auto,
            false,
            "3 loops on 2 cores: they wait for each other, up to 4 ms an order; cpu.shards=1 leaves more to each | \
             no loop spins (cpu.wait): an order also waits for a wake-up of some 16 µs"
                .to_owned(),
        ),
        (
            5,
            3,
            auto,
            false,
            format!(
                "5 cores for 4 loops, the journal and the system, 6 would do; cpu.shards=2 leaves more to \
                 each: {wake}"
            ),
        ),
        (4, 1, auto, false, "no loop spins (cpu.wait): an order also waits for a wake-up of some 16 µs".to_owned()),
        (
            4,
            1,
            auto,
            true,
            "nothing in its settings but what the slowest orders meet; 1 shard on 1 core, and one market is matched on one core"
                .to_owned(),
        ),
        (
            16,
            4,
            auto,
            true,
            "nothing in its settings but what the slowest orders meet; 4 shards on 4 cores, and one market is matched on one \
                 core; auto makes no more than 4 (cpu.shards), so 9 cores have none"
                .to_owned(),
        ),
    ] {
        let came = of(cpus, &needs(cpus, shards, policy, spin), &Probes::none("no"));
        assert_eq!(came.join(" | "), expected, "{cpus} CPUs, {shards} shards, {policy:?}");
    }
}

#[test]
fn causes_come_with_amounts_the_most_costly_first() {
    let gaps = |cpu, p99_ns, lost_millionths| Gaps {
        cpu,
        per_second: 1,
        p50_ns: 1_000,
        p99_ns,
        p999_ns: p99_ns,
        max_ns: 2 * p99_ns,
        lost_millionths,
        ..Gaps::default()
    };
    let stat = |busy| format!("cpu  0\ncpu0 {busy} 0 0 {} 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0\n", 200 - busy);
    let lost =
        "cpu 1 (reader): a thread that never sleeps lost 50.00 % of it, p99 gap 4000 µs, longest 8000 µs";
    let used = "other processes use our CPUs: cpu 0 (shard0): 40.00 % of the last 1.0 s; 4 ms an order that waits for its turn, or several; most meet nothing: a loop that";
    let disk_of = |p50| {
        format!(
            "durable answers wait for the disk: {p50} µs at p50, 3000 µs at p99 for 4 KiB, one at a time, with \
             no other load (ext4)"
        )
    };
    let wake = "2 cores for 2 loops";
    for (jitter, used_now, p50, starts) in [
        (
            Some(vec![gaps(0, 9_000, 5_000), gaps(1, 4_000_000, 500_000)]),
            0,
            80,
            vec![lost, &disk_of(80), wake],
        ),
        (Some(vec![gaps(0, 100_000, 10_000)]), 40, 80, vec![used, &disk_of(80), wake]),
        (None, 40, 8_000, vec![&disk_of(8_000), used, wake]),
        (None, 4, 9, vec![wake, &disk_of(9)]),
    ] {
        let mut probes = Probes::none("no");
        probes.jitter = jitter;
        probes.stat_quiet = Some([stat(0).replace(" 200 ", " 100 "), stat(used_now)]);
        probes.disk = Ok(disk(p50));
        let came = of(2, &needs(2, 1, Policy::Auto, false), &probes);
        assert_eq!(came.len(), starts.len(), "{came:?}");
        for (cause, start) in came.iter().zip(starts) {
            assert!(cause.starts_with(start), "{cause}\n{start}");
        }
    }
}

/// A disk whose median write takes `p50` microseconds.
fn disk(p50: u64) -> DiskProbe {
    DiskProbe {
        filesystem: "ext4".to_owned(),
        is_local: true,
        direct_refused: None,
        discards: false,
        write_us: (p50, 3_000),
        fsync_us: (90, 4_000),
        cpu_millionths: 523_000,
    }
}

/// A machine whose CPUs are all on, of which this process may use the `allowed` ones.
fn masked(cpus: usize, allowed: &[usize]) -> Machine {
    let mut machine = Machine::plain(&(0..cpus).collect::<Vec<_>>());
    allowed.clone_into(&mut machine.allowed);
    machine
}

#[test]
fn cores_that_are_kept_from_us_are_asked_for_before_a_larger_machine() {
    let lift = "kept from this process: lift its mask (taskset, the cpuset, systemd's CPUAffinity=)";
    let tails = "it runs as it is, with longer tails";
    for (machine, expected) in [
        (masked(2, &[1]), format!("CPU 0 is {lift}; beyond that a machine with 4 cores; {tails}")),
        (masked(4, &[1]), format!("CPUs 0,2-3 are {lift}; {tails}")),
        (masked(8, &[4, 5]), format!("CPUs 0-3,6-7 are {lift}; {tails}")),
        (masked(2, &[0, 1]), format!("a machine with 4 cores; {tails}")),
    ] {
        let mut needs = needs(machine.allowed.len(), 1, Policy::Auto, false);
        needs.loops = machine.allowed.len().min(2);
        // Where they are pinned is not the question here.
        needs.pinned.clear();
        let probes = Probes::none("no");
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let findings = checks::run(&scene);
        let came = causes(&scene, &findings);
        assert_eq!(came[0].change.as_ref(), Some(&expected), "{:?}", machine.allowed);
    }
    // The second thread of a core that is allowed already adds no core.
    let mut machine = masked(2, &[0]);
    for cpu in &mut machine.cpus {
        cpu.threads = vec![0, 1];
    }
    assert_eq!((machine.kept(), machine.online_cores()), (vec![], 1));
}

#[test]
fn a_cpu_that_loses_time_is_mended_by_who_had_it() {
    let stop = "stop what runs there (`top -H` says who), or keep it off this CPU";
    let ask = "a host that sells whole cores, or wait and try again";
    let interrupts =
        "interrupts moved away by `outcry tune`, if irq.affinity names any; the rest is the host's";
    let unknown = "stop what runs there (`top -H` says who), or keep it off this CPU, or a quieter host";
    for (lost, long, threads, taken, wait_p99_ns, touches, expected) in [
        (20_000, 15_000, Some(18_000), Some(0), 100_000, Touches::P999, stop),
        (20_000, 15_000, Some(0), Some(12_000), 0, Touches::P999, ask),
        (20_000, 15_000, Some(0), Some(2_000), 0, Touches::P999, ask),
        (20_000, 999, Some(0), Some(0), 0, Touches::P999, interrupts),
        (20_000, 999, Some(0), None, 100_001, Touches::P99, interrupts),
        (20_000, 15_000, None, None, 0, Touches::P999, unknown),
        // A woken loop preempts whoever runs.
        (600_000, 600_000, Some(600_000), Some(0), 7_000_000, Touches::P99, stop),
    ] {
        let gaps = Gaps {
            cpu: 0,
            p99_ns: 9_000,
            wait_p999_ns: 700_000,
            wait_p99_ns,
            lost_millionths: lost,
            long_millionths: long,
            threads_millionths: threads,
            threads_long_millionths: threads.map(|threads: u64| threads.min(long)),
            host_millionths: taken,
            ..Gaps::default()
        };
        let mut probes = Probes::none("no");
        probes.jitter = Some(vec![gaps]);
        let came = limits(2, &needs(2, 1, Policy::Auto, false), &probes);
        let of_gaps = came.iter().find(|limit| limit.kind == Kind::Gaps).expect("a limit");
        let change = of_gaps.change.as_deref().expect("a remedy");
        assert!(change.starts_with(expected), "{change}");
        assert_eq!(of_gaps.touches, Some(touches), "{}", of_gaps.text);
    }
    for (largest, expected) in [
        (None, "stop what runs there (`top -H` says who)"),
        (Some("kworker/0:1 (7)"), "it is the kernel's own work, which nobody can stop"),
        (Some("kdamond.0 (77)"), "`outcry tune` switches kdamond off (mem.damon)"),
    ] {
        let kernels = Gaps {
            lost_millionths: 20_001,
            threads_millionths: Some(20_000),
            largest: largest.map(|who| Named { who: who.to_owned(), is_kernels: true }),
            ..Gaps::default()
        };
        assert!(kernels.remedy().starts_with(expected), "{}", kernels.remedy());
        let mut probes = Probes::none("no");
        probes.jitter = Some(vec![kernels]);
        let came = limits(2, &needs(2, 1, Policy::Auto, false), &probes);
        let of_gaps = came.iter().find(|limit| limit.kind == Kind::Gaps).expect("a limit");
        let change = of_gaps.change.as_deref().expect("a remedy");
        assert!(change.starts_with(expected), "{change}");
    }
    // The slowest orders wait for a program, and yet nobody is charged with most of what was lost.
    let mixed = Gaps {
        lost_millionths: 50_000,
        long_millionths: 1_900,
        threads_millionths: Some(3_400),
        threads_long_millionths: Some(1_900),
        host_millionths: Some(0),
        ..Gaps::default()
    };
    assert_eq!(
        [mixed.who(), mixed.in_all().who()],
        ["other programs here", "interrupts or the host (nobody is charged)"]
    );
    let long = Gaps { long_millionths: 25_000, threads_long_millionths: Some(1_900), ..mixed };
    assert_eq!(long.in_all().who(), "most likely the host (nobody is charged)");
    // What one order in a thousand waits for is a limit even where little is lost.
    let quiet = Gaps { p99_ns: 9_000, wait_p999_ns: 100_000, lost_millionths: 5_000, ..Gaps::default() };
    assert!(quiet.is_quiet() && !Gaps { wait_p999_ns: 100_001, ..quiet }.is_quiet());
}

#[test]
fn each_limit_says_what_to_change() {
    let (auto, unpinned) = (Policy::Auto, Policy::Unpinned);
    for (cpus, shards, policy, spin, expected) in [
        (1, 1, auto, false, "a machine with 4 cores; it runs as it is, with longer tails"),
        (2, 1, auto, false, "a machine with 4 cores; it runs as it is, with longer tails"),
        (
            2,
            2,
            auto,
            false,
            "a machine with 5 cores, or fewer shards (cpu.shards); it runs as it is, with longer tails",
        ),
        (2, 1, unpinned, false, "cpu.policy=auto, so that each loop has a CPU"),
        (4, 1, auto, false, "cpu.wait=shard=spin-then-park,reader=park; it takes the shards' CPUs"),
        (4, 1, auto, true, "faster cores for each order; cpu.shards and more cores for more orders a second"),
        (
            16,
            4,
            auto,
            true,
            "faster cores for each order; cpu.shards=13 for more orders a second, on cores that are here",
        ),
        (
            100,
            4,
            auto,
            true,
            "faster cores for each order; cpu.shards=64 for more orders a second, on cores that are here",
        ),
    ] {
        let came = limits(cpus, &needs(cpus, shards, policy, spin), &Probes::none("no"));
        assert_eq!(came[0].change.as_deref(), Some(expected), "{cpus} CPUs, {shards} shards, {policy:?}");
    }
}

#[test]
fn loops_for_ingress_are_what_is_changed_where_orders_come_in_there() {
    let spin = "cpu.wait=shard=spin,ingress=spin, which burns a CPU for each shard and each loop for ingress day and night; or a";
    let here = "faster cores for each order; cpu.ingress=5 for more orders a second, on cores that are here";
    let bought = "faster cores for each order; cpu.ingress and more cores for more orders a second";
    for (cpus, shape, spins, text, change) in [
        (12, "m@1 m@2 m@3 m@4 s@5 r@6", true, "on one core; 4 cores have no loop", here),
        (5, "m@1 s@2 r@3", true, "on one core", bought),
        (4, "m@0 s@1 r@2", false, "5 would do; without cpu.ingress there are fewer loops", spin),
        (
            2,
            "m s r",
            false,
            "3 loops on 2 cores: they wait for each other, up to 4 ms an order; without cpu.ingress there",
            "",
        ),
        (
            2,
            "sm f r",
            false,
            "up to 4 ms an order; without cpu.feed there are fewer loops, with more for each",
            "",
        ),
        (2, "m s f r", false, "without cpu.ingress and cpu.feed there", ""),
        (2, "sm sm s r", false, "cpu.shards=1 leaves more to each", ""),
    ] {
        let mut needs = capacity::tests::needs(shape);
        if spins {
            needs.work[0].sleeps = Sleeps::Never;
        }
        let came = limits(cpus, &needs, &Probes::none("no"));
        let told = |limit: &&Limit| limit.text.contains(text);
        let limit = came.iter().find(told).unwrap_or_else(|| panic!("{shape}: {came:?}"));
        assert!(limit.change.as_ref().is_some_and(|said| said.starts_with(change)), "{shape}: {limit:?}");
    }
}

#[test]
fn limits_are_numbered_and_none_is_not() {
    let said = |spin| text(&limits(4, &needs(4, 1, Policy::Auto, spin), &Probes::none("no")));
    let none = said(true);
    assert!(
        none.starts_with(
            "what was found here: nothing in its settings but what the slowest orders meet; 1 shard on 1"
        ),
        "{none}"
    );
    assert!(none.contains("\n     change: faster cores") && !none.contains("2. "), "{none}");
    let one = said(false);
    assert!(
        one.starts_with(
            "what was found here, what can add most to one order (marked [reads]: one read) first:\n  1. [p50] no loop spins"
        ),
        "{one}"
    );
}

#[test]
fn what_the_reader_s_cpu_loses_is_no_order_s() {
    let stat = |busy: [u64; 2]| {
        let line = |cpu: usize| format!("cpu{cpu} {} 0 0 {} 0 0 0 0\n", busy[cpu], 100 - busy[cpu]);
        format!("cpu  0\n{}{}", line(0), line(1))
    };
    let gap = |cpu| Gaps {
        cpu,
        per_second: 1,
        p50_ns: 1_000,
        p99_ns: 900_000,
        p999_ns: 900_000,
        max_ns: 900_000,
        wait_p99_ns: 200_000,
        lost_millionths: 20_001,
        ..Gaps::default()
    };
    for (cpu, touches, one) in [
        (
            0,
            Touches::P99,
            "4 ms an order that waits for its turn, or several; most meet nothing: a loop that sleeps is woken",
        ),
        (
            1,
            Touches::Reads,
            "4 ms a read that waits for its turn, or several; most meet nothing: a loop that sleeps is woken",
        ),
    ] {
        let mut busy = [0, 0];
        busy[cpu] = 40;
        let mut probes = Probes::none("no");
        probes.stat_quiet =
            Some(["cpu  0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n".to_owned(), stat(busy)]);
        probes.jitter = Some(vec![gap(cpu)]);
        let came = limits(2, &needs(2, 1, Policy::Auto, false), &probes);
        let of = |kind: Kind| came.iter().find(|limit| limit.kind == kind).expect("a limit");
        assert_eq!(of(Kind::Gaps).touches, Some(touches), "cpu {cpu}");
        let used = of(Kind::Others);
        assert_eq!(used.touches, Some(touches), "cpu {cpu}");
        assert!(used.text.contains(one), "{}", used.text);
    }
}

#[test]
fn each_cpu_that_others_take_is_told_those_that_orders_wait_for_first() {
    let stat = |busy: [u64; 3]| {
        let line = |cpu: usize| format!("cpu{cpu} {} 0 0 {} 0 0 0 0\n", busy[cpu], 100 - busy[cpu]);
        format!("cpu  0\n{}{}{}", line(0), line(1), line(2))
    };
    let (shard, reader) = ((0, Touches::P99), (1, Touches::Reads));
    for (busy, told) in [
        ([100, 100, 100], vec![shard, reader]),
        ([100, 0, 0], vec![shard]),
        ([4, 100, 0], vec![reader]),
        // The reader's loses more time, and an order waits for the other.
        ([10, 90, 0], vec![shard, reader]),
        // Neither a loop nor the journal is there.
        ([0, 0, 100], vec![]),
    ] {
        let machine = Machine::plain(&[0, 1, 2]);
        let needs = needs(3, 1, Policy::Auto, false);
        let mut probes = Probes::none("no");
        probes.stat_quiet = Some([stat([0; 3]).replace("100", "0"), stat(busy)]);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let findings = checks::run(&scene);
        let condition = findings.iter().find(|finding| finding.id == "cpu.others").expect("it was looked at");
        let at = |cpu| {
            let name = ["shard0", "reader"][cpu];
            format!("cpu {cpu} ({name}): {}.00 % of the last 1.0 s", busy[cpu])
        };
        let cpus: Vec<String> = told.iter().map(|&(cpu, _)| at(cpu)).collect();
        if !cpus.is_empty() {
            assert_eq!(condition.current, cpus.join("; "));
        }
        let mut came: Vec<(usize, Touches)> = causes(&scene, &findings)
            .iter()
            .filter(|limit| limit.kind == Kind::Others)
            .map(|limit| (usize::from(limit.text.contains("cpu 1 ")), limit.touches.expect("somebody's")))
            .collect();
        // The list is ordered by what each can add.
        came.sort_by_key(|&(cpu, _)| cpu);
        assert_eq!(came, told, "{busy:?}");
    }
    // A tie in the list is an order's first.
    let mut probes = Probes::none("no");
    probes.stat_quiet = Some([stat([0; 3]).replace("100", "0"), stat([100, 100, 0])]);
    let came = of(3, &needs(3, 1, Policy::Auto, false), &probes);
    assert!(came[0].contains("cpu 0 (shard0)") && came[1].contains("cpu 1 (reader)"), "{came:?}");
}

#[test]
fn the_condition_of_gaps_tells_the_cpu_that_lost_most_and_not_the_one_with_the_longest_gap() {
    let gaps = |cpu, lost_millionths, p99_ns, wait_p999_ns| Gaps {
        cpu,
        p99_ns,
        max_ns: wait_p999_ns,
        wait_p999_ns,
        lost_millionths,
        threads_millionths: Some(lost_millionths),
        ..Gaps::default()
    };
    let (taken, touched) = (gaps(0, 504_400, 12_024_000, 12_024_000), gaps(1, 17_200, 167_000, 12_067_000));
    let rare = gaps(1, 504_399, 1_000_000, 2_000_000);
    for rows in [[taken.clone(), touched.clone()], [touched, taken.clone()], [taken, rare]] {
        let mut probes = Probes::none("no");
        probes.jitter = Some(rows.to_vec());
        let machine = Machine::plain(&[0, 1]);
        let needs = needs(2, 1, Policy::Auto, false);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let findings = checks::run(&scene);
        let jitter = findings.iter().find(|finding| finding.id == "jitter").expect("it was measured");
        let told = "cpu 0 (shard0): p99 12024 µs, 1 in 1,000 waits 12024 µs, 50.44 % lost";
        assert_eq!(jitter.current, told);
    }
}

#[test]
fn where_nothing_limits_it_is_said_what_is_full_first() {
    let mut needs = needs(4, 1, Policy::Auto, true);
    needs.work = vec![LoopWork {
        name: "shard0".to_owned(),
        cpu: Some(1),
        sockets: true,
        shard: true,
        follows: None,
        sleeps: Sleeps::AfterSpinning,
    }];
    let mut probes = Probes::none("no");
    probes.signature_ns = Ok(26_000);
    let came = &of(4, &needs, &probes)[0];
    assert!(came.ends_with("on one core; full first is shard0, at about 28,000 orders a second"), "{came}");
}

#[test]
fn a_limit_has_its_kind_and_whose_time_it_adds_to() {
    let (auto, explicit, unpinned) = (Policy::Auto, Policy::Explicit, Policy::Unpinned);
    for (cpus, shards, policy, spin, kind, touches, cost_ns) in [
        (1, 1, auto, false, "one-cpu", Some("p99"), Some(1_000_000)),
        (2, 1, auto, false, "wake-ups", Some("p50"), Some(16_000)),
        (2, 1, explicit, true, "cores", Some("p99"), Some(16_000)),
        (2, 2, auto, false, "cores", Some("p99"), Some(4_000_000)),
        (2, 1, unpinned, false, "unpinned", Some("p99"), Some(4_000_000)),
        (4, 1, auto, false, "wake-ups", Some("p50"), Some(16_000)),
        (4, 1, auto, true, "none", None, None),
    ] {
        let came = &limits(cpus, &needs(cpus, shards, policy, spin), &Probes::none("no"))[0];
        let came = (came.kind.text(), came.touches.map(Touches::text), came.cost_ns);
        assert_eq!(came, (kind, touches, cost_ns), "{cpus} CPUs, {shards} shards, {policy:?}");
    }
    // Every second order meets a program that has the CPU half of the time.
    for (millionths, touches) in [(1, "p99"), (499_999, "p99"), (500_000, "p50")] {
        assert_eq!(Touches::by_share(millionths).text(), touches);
    }
}

#[test]
fn what_only_the_slowest_orders_meet_stands_last_and_takes_one_line() {
    let needs = needs(4, 1, Policy::Auto, true);
    let isolated = "[p99.9] cpu.isolated: none; wanted: shards' cpus: 0; up to 4 ms an order when something else is \
                    ready there";
    let ticking =
        "[p99.9] cpu.nohz_full: none; wanted: shards' cpus: 0; up to 5 µs an order that a tick meets";
    let nothing = "what was found here: nothing in its settings";
    for (isolate, without_tick, wait, first, last) in [
        (false, false, true, nothing, Some(isolated)),
        (true, false, true, nothing, Some(ticking)),
        (true, true, true, nothing, None),
        // 16 µs of every order stand before 4 ms of the slowest.
        (false, true, false, "  1. [p50] no loop spins", Some(isolated)),
    ] {
        let mut machine = Machine::plain(&[0, 1, 2, 3]);
        (machine.cpus[0].isolated, machine.cpus[0].nohz_full) = (isolate, without_tick);
        let needs = if wait { needs.clone() } else { self::needs(4, 1, Policy::Auto, false) };
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &Probes::none("no") };
        let said = text(&causes(&scene, &checks::run(&scene)));
        let at = |words: &str| said.find(words).unwrap_or_else(|| panic!("{words}\n{said}"));
        assert_eq!(
            said.matches("  [p99.9] adds to few orders").count(),
            usize::from(last.is_some()),
            "{said}"
        );
        assert_eq!(
            said.contains("settings but what the slowest orders meet;"),
            last.is_some() && wait,
            "{said}"
        );
        if let Some(last) = last {
            let number = if wait { 1 } else { 2 };
            assert!(at(first) < at(&format!("  {number}. {last}")), "{said}");
        }
        at(first);
    }
}

#[test]
fn a_journal_thread_that_may_not_be_real_time_limits_durable_answers_where_it_asks() {
    let said = "rt.priority: refused: no such right; wanted: the journal's thread may be real-time; up to 4 ms a \
                durable answer, or twice that, when something else runs on its CPU";
    for (asks, refusal, durable, expected) in [
        (true, Some("no such right"), true, Some(said)),
        (true, None, true, None),
        (true, Some("no such right"), false, None),
        (false, Some("no such right"), true, None),
    ] {
        let needs = Needs { journal_asks_for_real_time: asks, durable, ..needs(4, 1, Policy::Auto, true) };
        let probes = Probes { real_time: Ok(refusal.map(str::to_owned)), ..Probes::none("no") };
        let found =
            limits(4, &needs, &probes).into_iter().find(|limit| limit.text.starts_with("rt.priority"));
        let found = found.map(|limit| (limit.text, limit.touches));
        let expected = expected.map(|text| (text.to_owned(), Some(Touches::Durable)));
        assert_eq!(found, expected, "{asks}, {refusal:?}, {durable}");
    }
}
