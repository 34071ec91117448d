//! What is answered where others have the CPUs, as tables.

use super::*;

#[test]
fn a_cpu_that_was_taken_is_told_where_orders_wait_longer_for_it_than_for_each_other() {
    let machine = plain(2);
    let mut needs = needs("sm@0 r@1");
    needs.pinned = vec![Pinned { name: "sm0".to_owned(), cpu: 0, is_hot: true }];
    for (cpu, threads, host, wait_p99_ns, slow, slowest) in [
        (
            0,
            Some(90_000),
            Some(0),
            3_000_000,
            "CPU 0 is taken: a compiler (7)",
            "CPU 0 is taken: a compiler (7)",
        ),
        (0, Some(0), Some(90_000), 60_000, "orders before it on its loop", "CPU 0 is taken: the host"),
        // No order waits for the reader's CPU.
        (1, Some(90_000), Some(0), 3_000_000, "orders before it on its loop", "whoever takes its loop's CPU"),
    ] {
        let mut probes = Probes::none("no");
        probes.signature_ns = Ok(SIGNATURE_NS);
        probes.jitter = Some(vec![Gaps {
            cpu,
            wait_p99_ns,
            wait_p999_ns: 4_000_000,
            max_ns: 8_000_000,
            lost_millionths: 90_000,
            long_millionths: 90_000,
            threads_millionths: threads,
            threads_long_millionths: threads,
            largest: Some(compiler()),
            host_millionths: host,
            ..Gaps::default()
        }]);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let came = of(&scene, &capacity::of(&scene));
        assert_eq!([line(&came, "slow")[0].as_str(), line(&came, "slowest")[0].as_str()], [slow, slowest]);
        if cpu == 0 {
            assert_eq!(line(&came, "slowest")[1], "1 in 1,000 waits 4 ms or more");
        }
    }
}

#[test]
fn a_cpu_that_others_have_stands_before_what_an_order_needs_by_itself() {
    let taken = "CPU 0 is taken: a compiler (7)";
    let stop = "stop a compiler (7), or keep it off this CPU";
    for (sleeps, busy, asked, expected) in [
        (
            Sleeps::Never,
            980,
            "median",
            [taken, "98.00 % of it; waits of 4 ms, or several, 36 µs without them", stop],
        ),
        (Sleeps::Never, 980, "slow", [taken, "98.00 % of it; waits of 4 ms, or several", stop]),
        (Sleeps::Never, 980, "slowest", [taken, "98.00 % of it; waits of 4 ms, or several", stop]),
        (
            Sleeps::Never,
            980,
            "orders-per-second",
            [
                "the CPU of sm0, which others have too",
                "14,000 a second as it is, beside others (98.00 %) on CPU 0; 28,000 with CPU 0 to itself",
                stop,
            ],
        ),
        // A woken loop preempts whoever runs there: most orders wait for nobody.
        (
            Sleeps::AtOnce,
            980,
            "median",
            [
                "signature check: the CPU's speed; others have CPU 0 too",
                "52 µs, 26 µs of it, or more: 98.00 % of CPU 0 is theirs",
                stop,
            ],
        ),
        (Sleeps::AtOnce, 980, "slow", [taken, "98.00 % of it; waits of 4 ms, or several", stop]),
        (
            Sleeps::AtOnce,
            980,
            "durable",
            [
                "a write of the disk, beside others on CPU 0",
                "149 µs or more, 90 µs of it the disk; 4 ms more, or several, for CPU 0 (98.00 % others')",
                stop,
            ],
        ),
        // Most orders find the CPU free; one in a hundred does not.
        (Sleeps::AtOnce, 200, "median", ["signature check: the CPU's speed", "52 µs, 26 µs of it", BOTH]),
        (Sleeps::AtOnce, 200, "slow", [taken, "20.00 % of it; waits of 4 ms, or several", stop]),
        (
            Sleeps::AtOnce,
            40,
            "slow",
            [
                "orders before it on its loop",
                "on top of the median: 118 µs in line at 50 % load, 390 µs behind a batch",
                "smaller batches; a core and a shard more",
            ],
        ),
    ] {
        let (machine, mut needs) = (plain(4), needs("sm@0 r@1"));
        needs.work[0].sleeps = sleeps;
        needs.pinned = vec![Pinned { name: "sm0".to_owned(), cpu: 0, is_hot: true }];
        let mut probes = Probes::none("no");
        probes.signature_ns = Ok(SIGNATURE_NS);
        let stat = |busy: u64, idle: u64| format!("cpu  0\ncpu0 {busy} 0 0 {idle} 0 0 0 0\n");
        probes.stat_quiet = Some([stat(0, 0), stat(busy, 1_000 - busy)]);
        probes.busy_with = vec![(0, compiler())];
        probes.disk = Ok(DiskProbe { write_us: (90, 180), ..local_disk() });
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let came = of(&scene, &capacity::of(&scene));
        assert_eq!(line(&came, asked), expected, "{sleeps:?} {busy}");
        // A loop that spins waits for its turn, whereas a woken one preempts whoever runs.
        let may_spin = sleeps == Sleeps::AtOnce && busy < 500;
        assert_eq!(text(&came).contains("cpu.wait=shard=spin"), may_spin, "{sleeps:?} {busy}");
    }
}

#[test]
fn the_slow_reads_say_who_shares_the_readers_core_and_who_takes_it() {
    let taken = |wait_p99_ns| Gaps {
        cpu: 1,
        wait_p99_ns,
        wait_p999_ns: 9_000_000,
        lost_millionths: 90_000,
        long_millionths: 90_000,
        threads_millionths: Some(90_000),
        threads_long_millionths: Some(90_000),
        host_millionths: Some(0),
        largest: Some(compiler()),
        ..Gaps::default()
    };
    let (fewer, alone) = ("fewer and smaller reads; a faster core", "a core for the reader alone");
    for (cpus, plan, journal_cpu, gaps, by, amount, first) in [
        (
            4,
            "sm@0 r@1",
            Some(2),
            None,
            "reads before it on r1",
            "on top of one alone: 37 µs in line at 50 % load",
            fewer,
        ),
        (
            4,
            "sm@0 r@1",
            None,
            None,
            "reads before it on r1",
            "on top of one alone: 37 µs in line at 50 % load",
            fewer,
        ),
        (
            2,
            "sm@0 r@1",
            None,
            None,
            "reads before it on r1, beside journal",
            "on top of one alone: 37 µs in line at 50 % load",
            alone,
        ),
        (
            4,
            "sm@0 r@1",
            Some(1),
            None,
            "reads before it on r1, beside journal",
            "on top of one alone: 37 µs in line at 50 % load",
            alone,
        ),
        (
            4,
            "sm@1 r@1",
            Some(2),
            None,
            "reads before it on r1, beside sm0",
            "on top of one alone: 37 µs in line at 50 % load",
            alone,
        ),
        (
            4,
            "sm@0 r@1",
            Some(2),
            Some(taken(30_000)),
            "reads before it on r1",
            "on top of one alone: 37 µs in line at 50 % load",
            fewer,
        ),
        (
            4,
            "sm@0 r@1",
            Some(2),
            Some(taken(3_000_000)),
            "CPU 1 is taken: a compiler (7)",
            "1 in 100 waits 3 ms or more",
            "stop a compiler (7), or keep it off this CPU",
        ),
    ] {
        let (machine, mut needs) = (plain(cpus), needs(plan));
        needs.journal_cpu = journal_cpu;
        let mut probes = Probes::none("no");
        (probes.signature_ns, probes.read_ns) = (Ok(SIGNATURE_NS), Ok(3_260));
        let is_taken = gaps.is_some();
        probes.jitter = gaps.map(|gaps| vec![gaps]);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let came = of(&scene, &capacity::of(&scene));
        assert_eq!(line(&came, "slow-reads"), [by, amount, first], "{plan} on {cpus}");
        let answer = &came[6];
        assert_eq!(answer.amount_ns, Some([37_158, 249_972]));
        let ends = "one in a hundred waits in line for 37 µs, 117 µs, 250 µs where r1 is 50 % full, 80 % full, 90 % full;";
        assert!(answer.now.contains(ends), "{}", answer.now);
        assert_eq!(answer.now.contains("one read in a hundred waits "), is_taken, "{}", answer.now);
    }
    // One loop for all: orders are before reads too.
    let one = answers(&plain(1), &needs("smr"), None);
    assert!(
        one[6].now.contains(", and for orders before it on the same loop, 36 µs each;"),
        "{}",
        one[6].now
    );
}

#[test]
fn reads_say_who_has_their_cpu() {
    let (machine, needs) = (plain(4), needs("sm@0 r@1"));
    for (busy, by, amount, first) in [
        (
            1_000,
            "the CPU of r1, which others have too",
            "000 a second; 100.00 % of CPU 1 is theirs",
            "stop what runs there (`top -H` says who), or keep it off this CPU",
        ),
        (400, "the CPU of r1", "000 a second or more", "clients that pipeline"),
    ] {
        let mut probes = Probes::none("no");
        probes.signature_ns = Ok(SIGNATURE_NS);
        let stat = |busy: u64, idle: u64| format!("cpu  0\ncpu1 {busy} 0 0 {idle} 0 0 0 0\n");
        probes.stat_quiet = Some([stat(0, 0), stat(busy, 1_000 - busy)]);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let came = of(&scene, &capacity::of(&scene));
        let [told_by, told_amount, told_first] = line(&came, "reads");
        assert!(told_by.ends_with(by) && told_amount.ends_with(amount), "{told_by} {told_amount}");
        assert!(told_first.ends_with(first), "{told_first}");
    }
}

#[test]
fn what_others_have_of_the_cpus_of_loops_that_wander_comes_off_the_orders_a_second() {
    let stat = |busy: &[u64]| {
        let line = |(cpu, busy): (usize, &u64)| format!("cpu{cpu} {busy} 0 0 {} 0 0 0 0\n", 1_000 - busy);
        format!("cpu  0\n{}", busy.iter().enumerate().map(line).collect::<String>())
    };
    let all = "3 loops without CPUs of their own share 2 cores, whose time is there once";
    for (cpus, plan, busy, amount, said) in [
        (2, "sm sm r", vec![0, 0], "54,000 a second or less (`outcry check`)", all),
        // A whole loop's worth of one CPU, of which ours get half at least.
        (
            2,
            "sm sm r",
            vec![0, 1_000],
            "40,000 a second as it is or less (`outcry check`), beside others (50.00 %) on CPUs 0-1; 54,000 with CPUs 0-1 to themselves",
            "; about 40,000 where they share cpus 0-1: other programs had 50.00 % of the last 10.0 s, most of it a compiler (7);",
        ),
        (
            2,
            "sm sm r",
            vec![1_000, 1_000],
            "27,000 a second as it is or less (`outcry check`), beside others (100.00 %) on CPUs 0-1; 54,000 with CPUs 0-1 to themselves",
            "; about 27,000 where they share cpus 0-1: other programs had 100.00 % of the last 10.0 s;",
        ),
        (
            1,
            "smr",
            vec![1_000],
            "13,000 a second as it is or less (`outcry check`), beside others (100.00 %) on CPU 0; 27,000 with CPU 0 to itself",
            "; about 13,000 where it shares cpu 0: other programs had 100.00 % of the last 10.0 s;",
        ),
        // One loop is full by itself, and finds a CPU that nobody has.
        (8, "sm r", vec![0, 1_000, 0, 0, 0, 0, 0, 0], "28,000 a second", "full first"),
        // The pinned loop's CPU is not theirs to use, nor is what others have of it.
        (3, "r@0 sm sm", vec![1_000, 0, 0], "56,000 a second or less (`outcry check`)", "full first"),
    ] {
        let (machine, needs) = (plain(cpus), needs(plan));
        let mut probes = Probes::none("no");
        probes.signature_ns = Ok(SIGNATURE_NS);
        probes.stat_quiet = Some([stat(&vec![0; cpus]).replace("1000", "0"), stat(&busy)]);
        probes.busy_with = vec![(1, compiler())];
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let came = of(&scene, &capacity::of(&scene));
        assert_eq!(line(&came, "orders-per-second")[1], amount, "{plan} {busy:?}");
        assert!(came[3].now.contains(said), "{}", came[3].now);
    }
}
