//! What is answered, as tables.

use super::*;
use crate::topology::capacity::tests::{SIGNATURE_NS, Silent, needs, plain};
use crate::topology::checks::{DiskProbe, DiskUse, Gaps, Named, Needs, Pinned, Probes};
use crate::topology::machine::Machine;
use crate::topology::placement::Policy;

mod taken;

fn answers(machine: &Machine, needs: &Needs, disk: Option<DiskProbe>) -> [Answer; 7] {
    let mut probes = Probes::none("no");
    probes.signature_ns = Ok(SIGNATURE_NS);
    if let Some(disk) = disk {
        probes.disk = Ok(disk);
    }
    let scene = Scene { files: &Silent, machine, needs, probes: &probes };
    of(&scene, &capacity::of(&scene)).try_into().expect("seven")
}

/// The seven answers for a shard, which sleeps as given, and a reader on two CPUs.
fn of_two(sleeps: Sleeps) -> [Answer; 7] {
    let mut needs = needs("sm@0 r@1");
    needs.work[0].sleeps = sleeps;
    answers(&plain(2), &needs, None)
}

#[test]
fn each_question_has_an_answer_with_an_amount() {
    let came = of_two(Sleeps::AtOnce);
    let asked: Vec<&str> = came.iter().map(|answer| answer.asked).collect();
    assert_eq!(asked, ["median", "slow", "slowest", "orders-per-second", "durable", "reads", "slow-reads"]);
    assert!(came.iter().all(|answer| answer.bought.is_some()), "{came:?}");
    let said = text(&came);
    for line in [
        "an order's median (p50), before the disk: about 52 µs from arrival to answer while little is going on: its signature check 26 µs, the \
         rest 10 µs, waking the loop some 16 µs; from about 22,000 orders a second",
        "     free: cpu.wait=shard=spin saves the 16 µs; it burns a CPU for each shard day and night, and reader, journal and system share the rest; \
         auth.known_signers_bytes=16777216 saves 19 µs where the signer is known",
        "     bought: faster cores shorten the 36 µs in proportion\n",
        "the slowest of a hundred (p99): an order behind a batch of 15 on its loop waits for 15 signature checks, 390 µs,",
        "one in a hundred waits in line for 118 µs, 371 µs, 793 µs where the loop is 50 % full, 80 % full, 90 % full;",
        "the slowest of a thousand (p99.9): an order that meets a loop whose CPU was taken waits until it is back: whatever \
         else is ready takes it, up to 4 ms at a time, and interrupts and the host, which may be longer; not measured here: \
         `outcry check --jitter`",
        "     bought: cores to spare, so that the loops' can be isolated; a host that sells whole cores\n",
        "orders a second: about 28,000 orders a second (1 shard x 28,000): ",
        "     free: cpu.shards=2 for up to 54,000 while there are few reads; loops share cores then, and orders wait for turns, up to 4 ms; \
         auth.known_signers_bytes=16777216 for up to 61,000",
        "     bought: about 28,000 for each shard more that has a core of its own",
        "until the reader is full at 667,000 without any reads; faster",
        "durable answers: an order's median and a write of the disk, which was not tried here",
        "reads: what one takes is not measured here; full first: r1, at about 125,000 such reads a second or more without any \
         orders; each takes as much of sm0 as 5 % of an order;",
        "; less where others run on the same CPU, at which `outcry check` looks; one client",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}

/// A disk that was tried and takes direct writes.
fn local_disk() -> DiskProbe {
    DiskProbe {
        filesystem: "ext4".to_owned(),
        is_local: true,
        direct_refused: None,
        discards: false,
        write_us: (23, 37),
        fsync_us: (90, 4_000),
        cpu_millionths: 523_000,
    }
}

#[test]
fn programs_get_the_amounts_that_are_times() {
    let disk = local_disk();
    let refused = DiskProbe { direct_refused: Some("EINVAL".to_owned()), write_us: (0, 0), ..disk.clone() };
    let slow = Some([26_000, 390_000]);
    for (sleeps, disk, median, durable) in [
        (Sleeps::AtOnce, None, [51_700, 51_700], None),
        (Sleeps::AtOnce, Some(disk.clone()), [51_700, 51_700], Some([81_700, 110_700])),
        (Sleeps::AfterSpinning, Some(disk.clone()), [35_700, 51_700], Some([65_700, 78_700])),
        (Sleeps::Never, Some(disk.clone()), [35_700, 35_700], Some([65_700, 78_700])),
        // The page cache cannot be bypassed there: an answer waits for the sync.
        (Sleeps::Never, Some(refused), [35_700, 35_700], Some([132_700, 145_700])),
    ] {
        let mut needs = needs("sm@0 r@1");
        needs.work[0].sleeps = sleeps;
        let came = answers(&plain(2), &needs, disk).map(|answer| answer.amount_ns);
        assert_eq!(came, [Some(median), slow, None, None, durable, None, None], "{sleeps:?}");
    }
}

#[test]
fn a_median_has_the_wake_up_of_how_its_loop_waits() {
    for (sleeps, about, woken, spins) in [
        (Sleeps::AtOnce, "about 52 µs", ", waking the loop some 16 µs;", true),
        (Sleeps::AfterSpinning, "about 36 µs", "; 16 µs more after a pause of 50 µs", true),
        (Sleeps::Never, "about 36 µs", "the rest 10 µs; from about", false),
    ] {
        let [median, ..] = of_two(sleeps);
        assert!(median.now.starts_with(about) && median.now.contains(woken), "{}", median.now);
        assert_eq!(median.free.expect("known signers").contains("cpu.wait=shard=spin"), spins, "{sleeps:?}");
    }
    // A loop that spins needs a CPU beside the one for the journal's thread.
    let [median, ..] = answers(&plain(1), &needs("smr"), None);
    assert!(!median.free.expect("known signers").contains("cpu.wait"));
}

#[test]
fn an_order_wakes_both_loops_on_its_way_where_ingress_is_apart() {
    use Sleeps::{AfterSpinning, AtOnce, Never};
    let setting = "cpu.wait=shard=spin,ingress=spin saves the";
    for (shard, ingress, amount, woken, saved) in [
        (AtOnce, AtOnce, [83_700, 83_700], ", waking loops 3 times, some 16 µs each;", Some("48 µs")),
        (Never, AtOnce, [67_700, 67_700], ", waking loops 2 times, some 16 µs each;", Some("32 µs")),
        (AtOnce, Never, [51_700, 51_700], ", waking the loop some 16 µs;", Some("16 µs")),
        (
            AfterSpinning,
            AfterSpinning,
            [35_700, 67_700],
            "; 32 µs more after a pause of 50 µs",
            Some("32 µs"),
        ),
        (Never, Never, [35_700, 35_700], "the rest 10 µs; from about", None),
    ] {
        let mut needs = needs("m@0 s@1 r@2");
        (needs.work[0].sleeps, needs.work[1].sleeps) = (shard, ingress);
        let [median, slow, ..] = answers(&plain(4), &needs, None);
        assert_eq!(median.amount_ns, Some(amount));
        assert!(median.now.contains(woken), "{}", median.now);
        let (free, first) = (median.free.expect("known signers"), median.brief.first);
        assert_eq!(free.starts_with("cpu.wait="), saved.is_some(), "{free}");
        assert!(saved.is_none_or(|saved| free.starts_with(&format!("{setting} {saved};"))), "{free}");
        assert_eq!(first.starts_with("cpu.wait=shard=spin,ingress=spin: "), amount[0] != 35_700, "{first}");
        assert_eq!(slow.brief.first, "smaller batches; a core and an ingress loop more");
    }
}

#[test]
fn nobody_is_told_to_add_a_loop_where_there_may_be_no_more() {
    let nine = "m@0 r@11 s@1 s@2 s@3 s@4 s@5 s@6 s@7 s@8 s@9";
    for (loops, first, bought) in [
        (
            nine.to_owned(),
            "smaller batches; a core and an ingress loop more",
            "a core and an ingress loop more (cpu.ingress)",
        ),
        (format!("{nine} s@10"), "smaller batches; faster cores", "faster cores, in proportion"),
    ] {
        let needs = needs(&loops);
        let [_, slow, _, orders, ..] = answers(&plain(16), &needs, None);
        assert_eq!(slow.brief.first, first);
        assert!(slow.bought.is_some_and(|told| told.starts_with(bought)), "{loops}");
        let ways = [orders.free, orders.bought].into_iter().flatten().collect::<String>();
        assert_eq!(ways.contains("cpu.ingress"), loops == nine, "{ways}");
    }
}

#[test]
fn one_client_s_limit_stands_with_what_the_machine_can_take() {
    let who = "; one client alone (an address, or the owner of a key)";
    let limit = |rule: &str, milli_per_second, refuses| {
        Some(ClientOrders { rule: rule.to_owned(), milli_per_second, refuses })
    };
    let both = "beyond 2400/10s, 24000/10m (limits.order), 40 a second in the long run";
    for (limit, said) in [
        (
            limit("2400/10s, 24000/10m", 40_000, true),
            format!("{who} is refused with 429 {both}: 701 of them fill the machine"),
        ),
        (
            limit("2400/10s, 24000/10m", 40_000, false),
            format!("{who} is told {both}, and not refused (limits.mode)"),
        ),
        (
            limit("1/2s", 500, true),
            format!(
                "{who} is refused with 429 beyond 1/2s (limits.order), 0.5 a second in the long run: 56,000 of \
                 them fill the machine"
            ),
        ),
        (limit("1000000/10s", 100_000_000, true), format!("{who} can fill it: limits.order is 1000000/10s")),
        (None, "; one client alone may have all of it (limits.order counts nothing)".to_owned()),
    ] {
        let mut needs = needs("sm@0 r@1");
        needs.client_orders = limit;
        let [_, _, _, orders, ..] = answers(&plain(2), &needs, None);
        assert!(orders.now.ends_with(&said), "{}", orders.now);
    }
}

#[test]
fn signers_that_are_known_are_in_every_amount() {
    let mut needs = needs("sm@0 r@1");
    needs.knows_signers = true;
    let [median, slow, _, orders, ..] = answers(&plain(2), &needs, None);
    assert!(median.now.contains("its signature check 7 µs"), "{}", median.now);
    assert!(slow.now.contains("15 signature checks, 99 µs"), "{}", slow.now);
    for free in [median.free, slow.free] {
        assert!(!free.expect("something").contains("known_signers"));
    }
    assert!(orders.free.expect("something").starts_with("cpu.shards=2 for up to 112,000 while"));
}

#[test]
fn durable_answers_have_the_disk_s_amounts_and_how_often_it_stops() {
    let disk = |discards| DiskProbe {
        filesystem: "ext4".to_owned(),
        is_local: true,
        direct_refused: None,
        discards,
        write_us: (23, 37),
        fsync_us: (90, 4_000),
        cpu_millionths: 523_000,
    };
    let both = |discards| {
        let [_, slow, .., durable, _, _] = answers(&plain(2), &needs("sm@0 r@1"), Some(disk(discards)));
        (slow, durable)
    };
    let ((slow, plain_disk), (slow_stops, stops)) = (both(false), both(true));
    let amounts = "about 82 µs to 111 µs: an order's median 52 µs, a write of the disk 23 µs (37 µs at p99, tried for a \
                   moment, with no other load), and 7 µs to 36 µs to hand over to the \
                   journal's thread and back (the most if the loop slept meanwhile and is woken again), without the network \
                   and the client's own waking; some 43,000 such writes a second, each with all that waits, so the disk \
                   does not bound orders a second";
    assert_eq!(plain_disk.now, amounts);
    let often = "may stand still for up to 75 ms or so, as one guest's did, whenever a segment is packed or removed, every 16,000 writes or so (an order alone \
                 is one): from 2,200 writes a second on one answer in a hundred meets that";
    assert_eq!(stops.now, format!("{amounts}; the disk {often}"));
    assert!(slow_stops.now.ends_with(&format!("of durable answers, the disk {often}")), "{}", slow_stops.now);
    assert!(!slow.now.contains("disk"), "{}", slow.now);
    assert!(stops.free.expect("the mount").starts_with("mount the disk of data_dir without discard"));
    assert!(plain_disk.free.expect("committed").starts_with("journal.durability=committed"));
    let mut committed = needs("sm@0 r@1");
    committed.durable = false;
    let [.., durable, _, _] = answers(&plain(2), &committed, Some(disk(true)));
    assert_eq!((durable.free, durable.bought), (None, None));
}

#[test]
fn a_read_adds_up_to_its_parts_and_what_has_to_be_woken() {
    let mut probes = Probes::none("no");
    probes.signature_ns = Ok(SIGNATURE_NS);
    probes.read_ns = Ok(1_260);
    for (plan, sleeps, amount_ns, woken, free) in [
        ("sm@0 r@1", Sleeps::AtOnce, [11_260, 43_260], ", and up to 32 µs for waking what sleeps", true),
        ("sm@0 r@1", Sleeps::Never, [11_260, 11_260], "were tried here; full first", false),
        ("smr@0", Sleeps::AtOnce, [11_260, 27_260], ", and up to 16 µs for waking", true),
    ] {
        let (machine, mut needs) = (plain(2), needs(plan));
        needs.work.iter_mut().for_each(|work| work.sleeps = sleeps);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let came = of(&scene, &capacity::of(&scene));
        let reads = came[5].clone();
        assert_eq!((reads.asked, reads.amount_ns), ("reads", Some(amount_ns)), "{plan} {sleeps:?}");
        assert!(reads.now.contains(woken), "{}", reads.now);
        let spins = reads.free.is_some_and(|free| free.contains("cpu.wait=shard=spin saves 16 µs"));
        assert_eq!(spins, free, "{plan} {sleeps:?}");
    }
}

#[test]
fn a_line_is_as_long_as_orders_that_come_at_random_make_it() {
    const ORDERS: usize = 1_000_000;
    for (percent, tenths) in LINES {
        let load = f64::from(u32::try_from(percent).expect("of a hundred")) / 100.0;
        let (mut state, mut wait, mut waits) = (1_u64, 0.0_f64, Vec::with_capacity(ORDERS));
        for _ in 0..ORDERS {
            waits.push(wait);
            // SplitMix64; its upper bits give an exponentially distributed pause.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let uniform = (f64::from(u32::try_from(mixed >> 32).expect("32 bits")) + 0.5) / 4_294_967_296.0;
            wait = (wait + 1.0 + uniform.ln() / load).max(0.0);
        }
        waits.sort_by(f64::total_cmp);
        let (found, said) = (waits[ORDERS / 100 * 99], f64::from(u32::try_from(tenths).expect("few")) / 10.0);
        assert!((found / said - 1.0).abs() < 0.1, "{percent} %: {found} of an order, said {said}");
    }
}

#[test]
fn nothing_is_said_where_nothing_was_measured() {
    let (machine, needs, probes) = (plain(2), needs("sm@0 r@1"), Probes::none("no"));
    let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
    assert_eq!(of(&scene, &capacity::of(&scene)), []);
    assert_eq!(text(&[]), "");
}

fn compiler() -> Named {
    Named { who: "a compiler (7)".to_owned(), is_kernels: false }
}

/// The table's row for `asked`: what limits it, how much, what to change first.
fn line(came: &[Answer], asked: &str) -> [String; 3] {
    let answer = came.iter().find(|answer| answer.asked == asked).expect("it was asked");
    let Brief { by, amount, first } = answer.brief.clone();
    [by, amount, first]
}

/// Spinning is reviewed, known signers are not, and the gains add up.
const BOTH: &str = "cpu.wait=shard=spin: 16 µs less; and auth.known_signers_bytes=16777216: 19 µs less on top (not reviewed)";

#[test]
fn each_answer_has_a_line_that_is_read_at_a_glance() {
    let plain_needs = || needs("sm@0 r@1");
    let spins = || {
        let mut needs = plain_needs();
        needs.work[0].sleeps = Sleeps::Never;
        needs
    };
    let known = || Needs { knows_signers: true, ..spins() };
    for (needs, asked, expected) in [
        (plain_needs(), "median", ["signature check: the CPU's speed", "52 µs, 26 µs of it", BOTH]),
        (known(), "median", ["sockets, parsing, matching", "16 µs, 10 µs of it", "a faster core"]),
        (
            Needs { knows_signers: true, durable: false, ..plain_needs() },
            "median",
            ["waking a loop that sleeps", "32 µs, 16 µs of it", "cpu.wait=shard=spin: 16 µs less"],
        ),
        (
            plain_needs(),
            "slow",
            [
                "orders before it on its loop",
                "on top of the median: 118 µs in line at 50 % load, 390 µs behind a batch",
                "smaller batches; a core and a shard more",
            ],
        ),
        (
            plain_needs(),
            "slowest",
            [
                "whoever takes its loop's CPU",
                "not measured",
                "`outcry check --jitter` tells who and how long",
            ],
        ),
        (
            plain_needs(),
            "orders-per-second",
            [
                "the CPU of sm0",
                "28,000 a second or less (`outcry check`)",
                "cpu.shards=2 for up to 54,000 while there are few reads",
            ],
        ),
        (
            Needs { policy: Policy::Explicit, ..plain_needs() },
            "orders-per-second",
            [
                "the CPU of sm0",
                "28,000 a second or less (`outcry check`)",
                "a core and a shard more; auth.known_signers_bytes=16777216: up to 61,000 (not reviewed)",
            ],
        ),
        (
            plain_needs(),
            "reads",
            [
                "the CPU of r1",
                "125,000 a second or more",
                "alone: cpu.wait=shard=spin; many: clients that pipeline",
            ],
        ),
        (
            plain_needs(),
            "slow-reads",
            [
                "reads before it on r1, beside journal",
                "on top of one alone: 26 µs in line at 50 % load",
                "a core for the reader alone",
            ],
        ),
    ] {
        assert_eq!(line(&answers(&plain(2), &needs, None), asked), expected, "{asked}");
    }
    let table = brief(&of_two(Sleeps::AtOnce));
    let head = "what                                  is limited by ";
    assert!(table.starts_with(head) && 9 < table.lines().count(), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 4 * CELL_CHARS_MAX + 6), "{table}");
    assert_eq!(brief(&[]), "");
}

#[test]
fn the_line_of_durable_answers_says_whether_it_is_the_disk() {
    let disk = |write_us, discards| DiskProbe {
        filesystem: "ext4".to_owned(),
        is_local: true,
        direct_refused: None,
        discards,
        write_us: (write_us, 2 * write_us),
        fsync_us: (90, 4_000),
        cpu_millionths: 523_000,
    };
    let durable = || needs("sm@0 r@1");
    let without_discard =
        "a disk that writes 4 KiB sooner; mount it without discard, which may stop it for 75 ms";
    for (needs, disk, expected) in [
        (durable(), None, ["a write of the disk", "not tried", "`outcry check` tries it"]),
        (
            durable(),
            Some(disk(90, false)),
            [
                "a write of the disk",
                "149 µs or more, 90 µs of it the disk",
                "a disk that writes 4 KiB sooner",
            ],
        ),
        (
            durable(),
            Some(disk(20, false)),
            [
                "the order itself, as above",
                "79 µs or more, 20 µs of it the disk",
                "journal.durability=committed waits for none",
            ],
        ),
        (
            durable(),
            Some(disk(90, true)),
            ["a write of the disk", "149 µs or more, 90 µs of it the disk", without_discard],
        ),
        (Needs { durable: false, ..durable() }, Some(disk(90, true)), ["nothing: none waits", "", ""]),
    ] {
        assert_eq!(line(&answers(&plain(2), &needs, disk), "durable"), expected);
    }
    for (busy_millionths, by) in [(99_999, "a write of the disk"), (400_000, "the disk, which others use")] {
        let mut probes = Probes::none("no");
        (probes.signature_ns, probes.disk) = (Ok(SIGNATURE_NS), Ok(disk(90, true)));
        let (reads_per_second, writes_per_second, bytes_per_second) = (0, 300, 2 << 20);
        probes.disk_quiet = Ok(DiskUse {
            reads_per_second,
            writes_per_second,
            bytes_per_second,
            busy_millionths,
            is_mostly_read: false,
            who: None,
        });
        let (machine, needs) = (plain(2), durable());
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let all = of(&scene, &capacity::of(&scene));
        let came = line(&all, "durable");
        assert_eq!(came[0], by);
        let (now, free) = (&all[4].now, all[4].free.as_deref().expect("there is something"));
        let theirs = "while others use it: the disk is busy 40.00 % of the time with others' work, 0 reads, 300 writes and 2048 KiB written a second;";
        let is_theirs = busy_millionths == 400_000;
        assert_eq!([now.contains(theirs), !now.contains("with no other load")], [is_theirs; 2], "{now}");
        assert_eq!(free.starts_with("stop who writes there (`iotop -o`"), is_theirs, "{free}");
        assert_eq!(came[1] == "149 µs or more; 40.00 % of the time theirs", busy_millionths == 400_000);
    }
}

#[test]
fn a_wake_up_that_was_tried_is_in_every_amount() {
    let (machine, needs) = (plain(2), needs("sm@0 r@1"));
    let mut probes = Probes::none("no");
    (probes.signature_ns, probes.read_ns, probes.wake_ns) = (Ok(SIGNATURE_NS), Ok(3_260), Ok(54_000));
    let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
    let came = of(&scene, &capacity::of(&scene));
    let longest = ["waking a loop that sleeps", "90 µs, 54 µs of it", &BOTH.replace("16 µs", "54 µs")];
    assert_eq!(line(&came, "median"), longest);
    assert!(came[0].now.contains("waking the loop 54 µs (tried)"), "{}", came[0].now);
    assert!(came[5].now.contains("up to 108 µs for waking what sleeps"), "{}", came[5].now);
    let of_each = [
        "alone: waking what sleeps, and its own time; many: the CPU of r1",
        "alone 121 µs, up to 108 µs of it waking; many: 89,000 a second or more",
        "alone: cpu.wait=shard=spin; many: clients that pipeline",
    ];
    assert_eq!(line(&came, "reads"), of_each);
}

#[test]
fn what_has_no_core_of_its_own_comes_off_the_orders_a_second_by_its_amount() {
    let disk = local_disk();
    let stat = |busy: u64| format!("cpu  0\ncpu0 {busy} 0 0 {} 0 0 0 0\n", 1_000 - busy);
    let mut needs = needs("sm@0 r@1");
    needs.pinned = vec![Pinned { name: "sm0".to_owned(), cpu: 0, is_hot: true }];
    let mut probes = Probes::none("no");
    probes.signature_ns = Ok(SIGNATURE_NS);
    probes.disk = Ok(disk);
    probes.stat_quiet = Some(["cpu  0\ncpu0 0 0 0 0 0 0 0 0\n".to_owned(), stat(3)]);
    for (cpus, host, amount, said) in [
        (
            2,
            0,
            "13,000 a second as it is, beside the journal (53 %), others (0.30 %) on CPU 0; 28,000 with CPU 0 to itself",
            "; about 13,000 where it shares cpu 0: the journal's thread takes up to 53 % of a CPU while one write follows another \
             (tried), other programs had 0.30 % of the last 10.0 s;",
        ),
        (4, 0, "28,000 a second", ""),
        (
            4,
            150_000,
            "24,000 a second as it is, beside the host and interrupts (15.00 %) on CPU 0; 28,000 with CPU 0 to itself",
            "; about 24,000 where it shares cpu 0: the host and interrupts took 15.00 %;",
        ),
    ] {
        let machine = plain(cpus);
        let (lost_millionths, threads_millionths) = (host + 3_000, Some(3_000));
        probes.jitter = Some(vec![Gaps { cpu: 0, lost_millionths, threads_millionths, ..Gaps::default() }]);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        let came = of(&scene, &capacity::of(&scene));
        assert_eq!(line(&came, "orders-per-second")[1], amount);
        assert!(came[3].now.contains(said), "{}", came[3].now);
        assert_eq!(came[3].now.contains("journal"), cpus == 2, "{}", came[3].now);
    }
}
