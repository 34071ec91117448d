//! What plans can take, as tables with a signature check that takes 26 µs.

use super::*;
use crate::topology::Files;
use crate::topology::checks::{Follower, Probes, Sleeps};
use crate::topology::placement::Policy;

pub(in crate::topology) const SIGNATURE_NS: u64 = 26_000;

/// A machine that says nothing of itself.
pub(in crate::topology) struct Silent;

impl Files for Silent {
    fn text(&self, path: &str) -> Result<String, String> {
        Err(path.to_owned())
    }

    fn names(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// The loops of `shape`, one word each: `s` has sockets, `m` matches, `f` has the streams, `r` reads; after `@` its CPU.
pub(in crate::topology) fn needs(shape: &str) -> Needs {
    let work = shape.split_whitespace().enumerate().map(|(index, word)| {
        let (roles, cpu) = word.split_once('@').unwrap_or((word, ""));
        LoopWork {
            name: format!("{roles}{index}"),
            cpu: cpu.parse().ok(),
            sockets: roles.contains('s'),
            shard: roles.contains('m'),
            follows: match (roles.contains('r'), roles.contains('f')) {
                (true, _) => Some(Follower::Reader),
                (false, true) => Some(Follower::Feed),
                (false, false) => None,
            },
            sleeps: Sleeps::AtOnce,
        }
    });
    let work: Vec<LoopWork> = work.collect();
    Needs {
        pinned: Vec::new(),
        loops: work.len(),
        shards: work.iter().filter(|work| work.shard).count(),
        work,
        knows_signers: false,
        client_orders: None,
        connections: 1,
        descriptors: 1,
        backlog: 1,
        journal_cpu: None,
        journal_asks_for_real_time: false,
        policy: Policy::Auto,
        durable: true,
        free_bytes: 0,
        segment_bytes: 64 << 20,
        log_bytes: 0,
        log_raised: Vec::new(),
        memory_bytes: 0,
        memory_on_top: [0; 2],
        memory_piece_bytes: 0,
        memory_taken: Vec::new(),
    }
}

pub(in crate::topology) fn plain(cpus: usize) -> Machine {
    Machine::plain(&(0..cpus).collect::<Vec<_>>())
}

fn capacity(machine: &Machine, needs: &Needs) -> Capacity {
    let mut probes = Probes::none("no");
    probes.signature_ns = Ok(SIGNATURE_NS);
    of(&Scene { files: &Silent, machine, needs, probes: &probes }).expect("loops that take orders")
}

#[test]
fn a_core_s_time_is_there_once() {
    for (cpus, shape, orders_per_second, first) in [
        // One loop carries all: 26 + 9.7 + 1.5 µs.
        (1, "smr", 26_881, "smr0"),
        // A core each: 35.7 µs.
        (2, "sm@0 r@1", 28_011, "sm0"),
        (16, "sm@1 sm@2 sm@3 sm@4 r@5", 112_044, "sm0 sm1 sm2 sm3"),
        // The journal's core beside them changes nothing.
        (4, "sm@1 r@2", 28_011, "sm0"),
        // Two loops on one CPU, the other one idle.
        (2, "sm@0 sm@0 r@1", 28_011, "sm0 sm1"),
        (2, "sm@0 r@0", 26_881, "sm0 r1"),
        // Three loops that wander over two cores: 2 of 17.85 + 17.85 + 1.5 µs.
        (2, "sm sm r", 53_763, "sm0 sm1 r2"),
        // One loop is on one core at a time, however many there are.
        (8, "sm r", 28_011, "sm0 r1"),
        // Sockets apart: 3 µs of a shard wait for 35.7 µs of signatures.
        (4, "m@0 s@1 r@2", 28_011, "s1"),
        (16, "m@0 s@1 s@2 s@3 s@4 s@5 s@6 s@7 s@8 s@9 s@10 r@11", 280_112, "s1 s2 s3 s4 s5 s6 s7 s8 s9 s10"),
    ] {
        let came = capacity(&plain(cpus), &needs(shape));
        let expected = (orders_per_second, first.to_owned());
        assert_eq!((came.orders_per_second, came.first.join(" ")), expected, "{cpus} CPUs: {shape}");
    }
}

#[test]
fn two_threads_of_a_core_are_one_core() {
    let mut machine = plain(4);
    for cpu in &mut machine.cpus {
        cpu.threads = vec![cpu.id % 2, cpu.id % 2 + 2];
    }
    let came = capacity(&machine, &needs("sm@0 sm@2 r@1"));
    assert_eq!((came.orders_per_second, came.first.join(" ")), (28_011, "sm0 sm1".to_owned()));
    assert!(came.full_first().contains("sm0 shares its core with sm1, whose time is there once"));
    assert_eq!(capacity(&machine, &needs("sm@0 sm@1 r@2")).orders_per_second, 51_679);
}

#[test]
fn a_quota_or_the_reader_can_be_full_before_signatures() {
    let mut machine = plain(8);
    machine.quota_milli = Some(500);
    let came = capacity(&machine, &needs("sm@1 r@2"));
    assert_eq!((came.orders_per_second, came.is_quota), (13_440, true));
    assert!(came.text().contains("about 13,000 orders a second (then the quota of CPU time is used up)"));
    // A feed apart follows the log once more.
    assert_eq!(capacity(&machine, &needs("sm@1 f@2 r@3")).orders_per_second, 12_919);
    machine.quota_milli = Some(8_000);
    assert!(!capacity(&machine, &needs("sm@1 r@2")).is_quota);

    let shards: Vec<String> = (0..30).map(|cpu| format!("sm@{cpu}")).collect();
    let came = capacity(&plain(32), &needs(&format!("{} r@30", shards.join(" "))));
    assert_eq!((came.orders_per_second, came.first.join(" ")), (666_666, "r30".to_owned()));
    assert!(came.text().contains("about 667,000 orders a second (then r30 is full)"), "{}", came.text());
    assert_eq!((came.free, came.bought), (vec![], vec!["faster cores, in proportion".to_owned()]));
}

#[test]
fn known_signers_take_a_quarter_of_a_check() {
    let mut needs = needs("sm@0 r@1");
    assert!(
        capacity(&plain(2), &needs).free[1].starts_with(&format!("{KNOWN_SETTING} for up to 61,000 where"))
    );
    needs.knows_signers = true;
    let came = capacity(&plain(2), &needs);
    assert_eq!((came.order_ns, came.orders_per_second), (16_304, 61_334));
    assert!(
        came.text().contains("differs by the minute), a known signer's a quarter of that"),
        "{}",
        came.text()
    );
    assert!(came.free.iter().all(|way| !way.contains(KNOWN_SETTING)), "{:?}", came.free);
}

#[test]
fn what_carries_more_is_of_what_is_full_first() {
    let known = format!("{KNOWN_SETTING} for up to");
    let faster = "faster cores, in proportion";
    for (cpus, shape, free, bought) in [
        (
            2,
            "sm@0 r@1",
            vec!["cpu.shards=2 for up to 54,000 while there are few reads; ", &*known],
            vec!["about 28,000 for each shard more that has a core of its own", faster],
        ),
        (2, "sm sm r", vec![&known], vec!["a core for each loop", faster]),
        (
            4,
            "m@0 s@1 r@2",
            vec!["cpu.ingress=2 for about 56,000, on a core of its own that is here; none is left", &known],
            vec!["more cores, with a loop of cpu.ingress on each", faster],
        ),
        (
            12,
            "m@1 m@2 m@3 m@4 s@5 r@6",
            vec!["cpu.ingress=5 for about 140,000, on cores that are here", &known],
            vec![faster],
        ),
        (16, "sm@1 sm@2 sm@3 sm@4 r@5", vec!["cpu.shards=13 for about 364,000", &known], vec![faster]),
    ] {
        let came = capacity(&plain(cpus), &needs(shape));
        for (said, starts) in [(came.free, free), (came.bought, bought)] {
            assert_eq!(said.len(), starts.len(), "{shape}: {said:?}");
            assert!(
                said.iter().zip(starts).all(|(said, start)| said.starts_with(start)),
                "{shape}: {said:?}"
            );
        }
    }
    let both = capacity(&plain(4), &needs("sm@0 sm@1 r@2"));
    assert_eq!(both.brief(), "full first is both shards at once, at about 56,000 orders a second");
    let wander = capacity(&plain(2), &needs("sm sm r")).full_first();
    assert!(
        wander.starts_with("all 3 loops at once, ")
            && wander.contains("3 loops without CPUs of their own share 2 cores")
    );
}

#[test]
fn a_shard_more_is_a_remedy_where_it_has_a_core_of_its_own_or_there_is_much_left_of_others() {
    use Sleeps::{AfterSpinning, AtOnce, Never};
    let own = "cpu.shards=2 for about 56,000, on a core of its own that is here";
    let by_quota = "cpu.shards=2 for about 54,000, where the quota of CPU time is used up, on a core of its own that is here";
    let sharing = "while there are few reads; loops share cores then, and orders wait for turns, up to 4 ms";
    let wake = "and loops sleep at once: some 16 µs more an order after a pause";
    for (cpus, quota_milli, efficient, sleeps, said) in [
        (1, None, 0, AtOnce, None),
        (2, None, 0, AtOnce, Some(format!("cpu.shards=2 for up to 54,000 {sharing}"))),
        // The reader's core is slow.
        (2, None, 1, AtOnce, None),
        (2, Some(1_600), 0, AtOnce, Some(format!("cpu.shards=2 for up to 43,000 {sharing}"))),
        // One that spins leaves the other nothing.
        (2, None, 0, Never, None),
        // Hardly more than the one.
        (2, Some(1_200), 0, AtOnce, None),
        (
            3,
            None,
            0,
            AtOnce,
            Some(format!("{own}; none is left to the journal's thread and the system then")),
        ),
        (4, None, 0, AtOnce, Some(format!("{own}; none is left to the system then"))),
        (4, None, 0, AfterSpinning, Some(format!("{own}; none is left to the system then, {wake}"))),
        // Each of them has a core of its own, and there are cores to spare.
        (5, None, 0, AtOnce, Some("cpu.shards=2 for about 56,000, on cores that are here".to_owned())),
        // What is left is slow.
        (4, None, 3, AtOnce, None),
        (
            3,
            Some(2_000),
            0,
            AtOnce,
            Some(format!("{by_quota}; none is left to the journal's thread and the system then")),
        ),
        (8, Some(2_000), 0, AtOnce, Some(by_quota.to_owned())),
    ] {
        let mut machine = plain(cpus);
        machine.quota_milli = quota_milli;
        for cpu in machine.cpus.iter_mut().rev().take(efficient) {
            cpu.efficient = true;
        }
        let mut needs = needs(if cpus == 1 { "smr" } else { "sm@0 r@1" });
        needs.work[0].sleeps = sleeps;
        let came = capacity(&machine, &needs);
        let more = came.free.iter().find(|text| text.starts_with("cpu.shards="));
        assert_eq!(more, said.as_ref(), "{cpus} CPUs, quota {quota_milli:?}");
        let is_warned = came.bought.iter().any(|text| text.contains("without one it only shares, and"));
        let is_shared = more.is_some_and(|text| text.ends_with(sharing));
        assert_eq!(is_warned, cpus != 5 && !is_shared, "{:?}", came.bought);
    }
}

#[test]
fn the_advice_of_more_shards_names_a_log_that_holds_them() {
    let (machine, mut needs) = (plain(16), needs("sm@1 sm@2 sm@3 sm@4 r@5"));
    for (log_raised, said) in [
        (vec![], "cpu.shards=13 for about 364,000, on cores that are here"),
        (vec![None; 14], "cpu.shards=13 for about 364,000, on cores that are here"),
        (
            vec![Some(8_192); 14],
            "cpu.shards=13 and journal.log_bytes=8192 for about 364,000, on cores that are here",
        ),
    ] {
        needs.log_raised = log_raised;
        assert_eq!(capacity(&machine, &needs).free[0], said);
    }
}

#[test]
fn advice_names_the_settings_of_the_policy_there_is() {
    let wandering = "cpu.shards=9 for about 252,000, on cores that are here";
    let (named, known) =
        ("cpu.shards=5 with 5 CPUs in cpu.shard_cpus for about 140,000, on cores that", KNOWN_SETTING);
    let (apart, faster) = ("2 CPUs in cpu.ingress for about 56,000", "faster cores");
    let one_more = "cpu.shards=5 for about 140,000, on a core that is here; none is left to ";
    let by_auto = "about 28,000 for each shard more that has a core of its own (say so by cpu.shards: auto makes one with ";
    let by_names = "about 28,000 for each shard more that has a core of its own (say so by cpu.shards with cpu.shard_cpus), ";
    for (cpus, policy, shape, free, bought) in [
        (8, Policy::Explicit, "sm@1 sm@2 r@3", vec![named, known], vec![faster]),
        (
            8,
            Policy::Explicit,
            "m@1 s@2 r@3",
            vec!["4 CPUs in cpu.ingress for about 112,000", known],
            vec![faster],
        ),
        (4, Policy::Explicit, "m@1 s@2 r@3", vec![apart, known], vec!["more cores", faster]),
        (2, Policy::Explicit, "sm@0 r@1", vec![known], vec![by_names, faster]),
        (12, Policy::Unpinned, "sm sm sm sm r", vec![wandering, known], vec![faster]),
        (7, Policy::Unpinned, "sm sm sm sm r", vec![one_more, known], vec![by_auto, faster]),
        (6, Policy::Unpinned, "sm sm sm sm r", vec![one_more, known], vec![by_auto, faster]),
        (5, Policy::Unpinned, "sm sm sm sm r", vec![known], vec![by_auto, faster]),
        (4, Policy::Unpinned, "sm sm sm sm r", vec![known], vec!["a core for each loop", faster]),
    ] {
        let came = capacity(&plain(cpus), &Needs { policy, ..needs(shape) });
        for (said, starts) in [(came.free, free), (came.bought, bought)] {
            let is_so = |(said, start): (&String, &str)| said.starts_with(start);
            assert!(
                said.len() == starts.len() && said.iter().zip(starts).all(is_so),
                "{cpus} {shape}: {said:?}"
            );
        }
    }
}

#[test]
fn it_reads_as_people_say_it() {
    let came = capacity(&plain(16), &needs("sm@1 sm@2 sm@3 sm@4 r@5"));
    assert_eq!(
        came.text(),
        "about 112,000 orders a second (4 shards x 28,000): a signature check took 26 µs here just now (tried in a row; \
         where a host has others it differs by the minute), the rest of an order about 10 µs"
    );
    assert_eq!(came.full_first(), "all 4 shards at once, 72 % of an order there is its signature check");
    assert_eq!(unknown("a copy cannot be tried"), "what it can take: not measured: a copy cannot be tried\n");
    for (count, expected) in [
        (0, "0"),
        (949, "900"),
        (9_949, "9,900"),
        (9_951, "10,000"),
        (27_500, "28,000"),
        (1_234_567, "1,235,000"),
    ] {
        assert_eq!(rounded(count), expected);
    }
}

#[test]
fn a_reader_of_readme_learns_how_much_slower_or_faster_this_machine_is() {
    for (signature_ns, expected) in [
        (25_200, "README's figures are of a CPU about as fast: a signature check takes 25 µs, there 28 µs\n"),
        (27_900, "README's figures are of a CPU about as fast: a signature check takes 28 µs, there 28 µs\n"),
        (
            54_000,
            "README's times would be about 1.9 times as long here: a signature check takes 54 µs, there 28 µs\n",
        ),
        (
            14_000,
            "README's times would be about 0.5 times as long here: a signature check takes 14 µs, there 28 µs\n",
        ),
    ] {
        let capacity = Capacity { signature_ns, ..capacity(&plain(2), &needs("sm@0 r@1")) };
        assert_eq!(capacity.beside_readme(), expected);
    }
}

#[test]
fn a_check_that_was_disturbed_says_nothing_of_the_cpu() {
    let text = "disturbed while it was tried: others had 50.00 % of the CPU it was tried on";
    for (signature_lost_millionths, is_disturbed) in [(0, false), (499_999, false), (500_000, true)] {
        let capacity = Capacity { signature_lost_millionths, ..capacity(&plain(2), &needs("sm@0 r@1")) };
        assert_eq!(capacity.disturbed().as_deref(), is_disturbed.then_some(text));
        assert_eq!(
            capacity.text().contains(&format!("took 26 µs here just now ({text}), the rest")),
            is_disturbed
        );
        let said = format!(
            "README's figures are not compared with this CPU: a signature check took 26 µs at best, there 28 µs, and was {text}\n"
        );
        assert_eq!(capacity.beside_readme() == said, is_disturbed);
    }
}
