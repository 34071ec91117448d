//! What limits each thing that people ask of an exchange, with its amount: now, what is free, what can be bought.
//!
//! | asked | amount | from |
//! |---|---|---|
//! | `median` | an order's own CPU time and a wake-up, while little is going on | [`capacity`], [`cost`] |
//! | `slow` | what an order waits for behind a batch | the signature check, measured |
//! | `slowest` | what else takes a loop's CPU | the gaps of its CPUs, if they were measured |
//! | `orders-per-second` | where the first loop is full | [`capacity`] |
//! | `durable` | a write of the disk, and its stops | the disk, if it was tried |
//! | `reads` | what one takes its socket's loop and the reader's, and which is full first | one read, measured; `read-heavy` |
//!
//! An amount that nobody knows here is said to be unknown, with what measures it. What other programs, the host
//! and interrupts add stands in the list of [`limit`].

use super::capacity::{self, COMFORTABLE_PERCENT, Capacity, KNOWN_SETTING, micros, rounded};
use super::checks::{ClientOrders, LoopWork, Scene, Sleeps};
use super::cost::{self, WITHOUT_DISCARD};
use super::limit;

/// The most orders of one request.
pub const BATCH: u64 = 15;

/// What a durable answer waits for besides the write where the journal's thread sleeps at once, as it was measured
/// on a good day and on a bad one: the thread is woken, and the loop looks at its mark.
const HAND_OVER_NS: [u64; 2] = [7_000, 20_000];

/// How much less that is where the thread looks on, as it was measured.
const LOOKING_ON_NS: u64 = 6_000;

/// How full a loop is, of a hundred, and what one order in a hundred waits for in line then, in tenths of an order's own
/// time: by a simulation of three million orders that come at random and take equally long (M/D/1).
const LINES: [(u64, u64); 3] = [(50, 33), (80, 104), (90, 222)];

/// Of a read that comes alone, what it takes the loop with its socket, and the reader's besides what is tried: both
/// by the CPU time of `read-heavy`, on the guest of [`capacity`].
const READ_PASS_NS: u64 = 11_000;
const READ_TURN_NS: u64 = 2_500;

/// Small reads a second (a market, 1.8 kB) and large ones (46 kB of positions) of one reader, as README has them.
const READS_PER_SECOND: [u64; 2] = [297_000, 126_000];

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What is asked, as a word that never changes.
    pub asked: &'static str,
    /// The same for people.
    pub title: &'static str,
    /// How it is, and because of what.
    pub now: String,
    /// The amount for programs, the least and the most nanoseconds; none if it is no time, or nobody knows it here.
    pub amount_ns: Option<[u64; 2]>,
    /// What costs nothing but has a price of another kind, which it says; none if there is nothing.
    pub free: Option<String>,
    /// What can be bought, and what it would bring.
    pub bought: Option<String>,
}

/// The six answers, if the signature check was measured: without it most have no amount.
#[must_use]
pub fn of(scene: &Scene<'_>, capacity: &Result<Capacity, String>) -> Vec<Answer> {
    let Ok(capacity) = capacity else { return Vec::new() };
    vec![
        median(scene, capacity),
        slow(scene, capacity),
        slowest(scene),
        orders(scene, capacity),
        durable(scene, capacity),
        reads(scene, capacity),
    ]
}

/// The answers for people.
#[must_use]
pub fn text(answers: &[Answer]) -> String {
    let mut lines = Vec::new();
    for answer in answers {
        lines.push(format!("{}: {}", answer.title, answer.now));
        lines.extend(answer.free.as_ref().map(|text| format!("     free: {text}")));
        lines.extend(answer.bought.as_ref().map(|text| format!("     bought: {text}")));
    }
    lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// How soon the loop with the sockets sleeps, of several the one that sleeps first.
fn sleeps(scene: &Scene<'_>) -> Sleeps {
    with_sockets(scene).map(|work| work.sleeps).min().unwrap_or(Sleeps::AtOnce)
}

/// What an order alone takes in the server, without a disk.
fn median_ns(scene: &Scene<'_>, capacity: &Capacity) -> u64 {
    capacity.order_ns + if sleeps(scene) == Sleeps::AtOnce { cost::WAKE_NS } else { 0 }
}

fn median(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let (order_ns, check_ns) = (capacity.order_ns, capacity.check_ns());
    let sleeps = sleeps(scene);
    let wake = micros(cost::WAKE_NS);
    let woken = match sleeps {
        Sleeps::Never => String::new(),
        Sleeps::AfterSpinning => format!("; {wake} more after a pause of 50 µs, for a loop sleeps then"),
        Sleeps::AtOnce => format!(", waking the loop some {wake}"),
    };
    let disk = if scene.needs.durable { ", before a durable answer waits for the disk" } else { "" };
    let parts = format!("its signature check {}, the rest {}", micros(check_ns), micros(capacity::REST_NS));
    let now = format!(
        "about {} in the server while little is going on{disk}: {parts}{woken}; from about {} orders a second ({COMFORTABLE_PERCENT} % of what \
         it can take) on they also wait in line",
        micros(median_ns(scene, capacity)),
        rounded(capacity.comfortable_per_second())
    );
    let mut free = Vec::new();
    if sleeps != Sleeps::Never && limit::may_spin(scene) {
        free.push(format!(
            "cpu.wait=shard=spin saves the {wake}; it burns a CPU for each shard day and night"
        ));
    }
    if !capacity.knows_signers {
        let saved = check_ns - capacity::known_ns(check_ns);
        free.push(format!(
                "{KNOWN_SETTING} saves {} where the signer is known (off by default: nobody outside has reviewed that arithmetic)",
                micros(saved)
            ));
    }
    let bought = format!("faster cores shorten the {} in proportion", micros(order_ns));
    let least_ns = median_ns(scene, capacity);
    let most_ns = least_ns + if sleeps == Sleeps::AfterSpinning { cost::WAKE_NS } else { 0 };
    Answer {
        asked: "median",
        title: "an order's median (p50)",
        now,
        amount_ns: Some([least_ns, most_ns]),
        free: joined(&free),
        bought: Some(bought),
    }
}

fn slow(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let batch_ns = BATCH * capacity.check_ns();
    let stops = limit::stops(scene)
        .map_or_else(String::new, |stops| format!("; of durable answers, the disk {stops}"));
    let now = format!(
        "an order behind a batch of {BATCH} on its loop waits for {BATCH} signature checks, {}, behind another order for \
         one; of orders alone that come at random, one in a hundred waits in line for {} where the loop is {}; what is \
         marked p99 above comes on top{stops}",
        micros(batch_ns),
        LINES.map(|(_, tenths)| micros(capacity.order_ns * tenths / 10)).join(", "),
        LINES.map(|(percent, _)| format!("{percent} % full")).join(", ")
    );
    let mut free = vec![
        "smaller batches of clients; reads on a connection of their own, for answers leave in order"
            .to_owned(),
    ];
    if !capacity.knows_signers {
        let known = micros(BATCH * capacity::known_ns(capacity.check_ns()));
        free.push(format!("{KNOWN_SETTING}: {known} where signers are known"));
    }
    let bought = "a core and a shard more (cpu.shards): fewer orders on one loop".to_owned();
    Answer {
        asked: "slow",
        title: "the slowest of a hundred (p99)",
        now,
        amount_ns: Some([capacity.check_ns(), batch_ns]),
        free: joined(&free),
        bought: Some(bought),
    }
}

/// What else takes a loop's CPU: rarely, and for long.
fn slowest(scene: &Scene<'_>) -> Answer {
    let cpus = scene.cpus_of_orders();
    let gaps = scene.probes.jitter.iter().flatten().filter(|gaps| cpus.contains(&gaps.cpu));
    let worst = gaps.max_by_key(|gaps| gaps.max_ns);
    let measured = match worst {
        Some(gaps) => format!(
            "measured with every CPU kept busy, one order in 1,000 waits for that at least {}, and the longest gap was {} (cpu {}; who had it: {})",
            cost::time(gaps.wait_p999_ns),
            cost::time(gaps.max_ns),
            gaps.cpu,
            gaps.takers()
        ),
        None => "not measured here: `outcry check --jitter` tells the gaps of each CPU".to_owned(),
    };
    let apart = scene.machine.cpus.iter().filter(|cpu| cpus.contains(&cpu.id)).all(|cpu| cpu.isolated);
    let takers = if apart {
        "interrupts and the host take it, which may be long".to_owned()
    } else {
        let slice = cost::time(cost::SLICE_NS);
        format!(
            "whatever else is ready takes it, up to {slice} at a time, and interrupts and the host, which may be longer"
        )
    };
    let now = format!(
        "an order that meets a loop whose CPU was taken waits until it is back: {takers}; {measured}"
    );
    let bought = if scene.lacks_cores() {
        "cores to spare, so that the loops' can be isolated; a host that sells whole cores"
    } else {
        "a host that sells whole cores, or a machine without one"
    };
    Answer {
        asked: "slowest",
        title: "the slowest of a thousand (p99.9)",
        now,
        amount_ns: worst.map(|gaps| [gaps.wait_p999_ns, gaps.max_ns]),
        free: Some("`outcry tune` prints what moves interrupts and the system away".to_owned()),
        bought: Some(bought.to_owned()),
    }
}

fn orders(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let others = if scene.lacks_cores() {
        "; what the journal's thread and the system need comes off that, for they have no core of their own"
    } else {
        ""
    };
    let (first, client) = (capacity.full_first(), client(scene, capacity));
    let now = format!("{}; full first: {first}{others}; {client}", capacity.text());
    Answer {
        asked: "orders-per-second",
        title: "orders a second",
        now,
        amount_ns: None,
        free: joined(&capacity.free),
        bought: joined(&capacity.bought),
    }
}

/// What one client may have of it, long before the machine is full.
fn client(scene: &Scene<'_>, capacity: &Capacity) -> String {
    let Some(ClientOrders { rule, milli_per_second, refuses }) = &scene.needs.client_orders else {
        return "one client alone may have all of it (limits.order counts nothing)".to_owned();
    };
    let who = "one client alone (an address, or the owner of a key)";
    let fill = (capacity.orders_per_second * 1_000).div_ceil((*milli_per_second).max(1));
    let each = match (milli_per_second / 1_000, milli_per_second % 1_000) {
        (whole, 0) => rounded_small(whole),
        (whole, part) => format!("{whole}.{}", part / 100),
    };
    if fill <= 1 {
        return format!("{who} can fill it: limits.order is {rule}");
    }
    let fills = format!("{} of them fill the machine", rounded_small(fill));
    if *refuses {
        format!(
            "{who} is refused with 429 beyond {rule} (limits.order), {each} a second in the long run: {fills}"
        )
    } else {
        format!(
            "{who} is told beyond {rule} (limits.order), {each} a second in the long run, and not refused (limits.mode)"
        )
    }
}

/// A count as people say it, exact where it is small.
fn rounded_small(count: u64) -> String {
    if count < 1_000 { count.to_string() } else { rounded(count) }
}

fn durable(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let title = "durable answers";
    let asked = "durable";
    if !scene.needs.durable {
        let now = "none wait for the disk (journal.durability=committed)".to_owned();
        return Answer { asked, title, now, amount_ns: None, free: None, bought: None };
    }
    let mut free = Vec::new();
    let disk = scene.probes.disk.as_ref();
    let order_ns = median_ns(scene, capacity);
    let sum_ns = disk.ok().map(|disk| HAND_OVER_NS.map(|ns| order_ns + disk.durable_us().0 * 1_000 + ns));
    let now = match disk {
        Err(_) => {
            "an order's median and a write of the disk, which was not tried here: `outcry check` tries it"
                .to_owned()
        }
        Ok(disk) => {
            let (p50, p99) = disk.durable_us();
            let [least, most] = HAND_OVER_NS;
            let sums = sum_ns.map(|sums| sums.map(micros).join(" to ")).unwrap_or_default();
            let stops = limit::stops(scene).map_or_else(String::new, |stops| {
                free.push(format!("{WITHOUT_DISCARD}, and these stops are gone"));
                format!("; the disk {stops}")
            });
            format!(
                "about {sums}: an order's median {}, a write of the disk {p50} µs ({p99} µs at p99, tried for a moment, \
                 with no other load), and {} to {} to hand over to the journal's thread and \
                 back{stops}",
                micros(order_ns),
                micros(least),
                micros(most)
            )
        }
    };
    free.push(
        "journal.durability=committed does not wait, and a power cut may lose the last answers then"
            .to_owned(),
    );
    let mut bought = vec!["a disk that writes 4 KiB sooner".to_owned()];
    if scene.lacks_cores() {
        let saved = micros(LOOKING_ON_NS);
        bought.push(format!("a core for the journal's thread, which looks on there: some {saved} less"));
    }
    Answer { asked, title, now, amount_ns: sum_ns, free: joined(&free), bought: joined(&bought) }
}

/// A read that comes alone: the loop with its socket passes it to the reader's and sends the answer.
fn reads(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let asked_of = with_sockets(scene).map(|work| work.name.as_str()).collect::<Vec<_>>().join(", ");
    let reader = scene.needs.work.iter().find(|work| work.reader);
    let tenths = |ns: u64| format!("{}.{} µs", ns / 1_000, ns % 1_000 / 100);
    let [small, large] = READS_PER_SECOND.map(rounded);
    let loops = u64::try_from(with_sockets(scene).count()).unwrap_or(1);
    let full = rounded(loops * 1_000_000_000 / READ_PASS_NS);
    let read_ns = scene.probes.read_ns.as_ref().ok().copied();
    let is_apart = |work: &&LoopWork| !work.sockets;
    let sleepers = [Some(sleeps(scene)), reader.filter(is_apart).map(|work| work.sleeps)];
    let wakes = sleepers.into_iter().flatten().filter(|sleeps| *sleeps == Sleeps::AtOnce).count();
    let wakes_ns = u64::try_from(wakes).unwrap_or(0) * cost::WAKE_NS;
    let woken = match wakes_ns {
        0 => String::new(),
        ns => format!(", and up to {} for waking what sleeps", micros(ns)),
    };
    let reader = reader.map_or("one loop", |work| &work.name);
    let here = read_ns.map_or_else(
        || "what one takes is not measured here".to_owned(),
        |ns| {
            format!(
                "a market of 1.8 kB that is asked for alone about {}: its socket and both ways {} (on {asked_of}), the reader's \
                 turn {} ({reader}), of which finding and writing {} were tried here{woken}",
                micros(READ_PASS_NS + READ_TURN_NS + ns + wakes_ns),
                micros(READ_PASS_NS),
                tenths(READ_TURN_NS + ns),
                tenths(ns),
            )
        },
    );
    let now = format!(
        "{here}; full first: {asked_of}, at about {full} such reads a second without any orders, each at the expense of \
         {} % of an order; clients that send many at once get more, on the machine of README's figures {small}, or {large} \
         pages of 46 kB; an order takes {} of the reader's time",
        READ_PASS_NS * 100 / capacity.order_ns.max(1),
        tenths(capacity::READER_NS)
    );
    let mut free = vec!["clients that send many at once (pipelining)".to_owned()];
    if sleeps(scene) == Sleeps::AtOnce && limit::may_spin(scene) {
        free.push(format!("cpu.wait=shard=spin saves {} of the waking", micros(cost::WAKE_NS)));
    }
    let bought = "a core and a shard more, or ingress loops (cpu.ingress): more loops with sockets; a faster core for the one reader";
    let least_ns = read_ns.map(|ns| READ_PASS_NS + READ_TURN_NS + ns);
    Answer {
        asked: "reads",
        title: "reads",
        now,
        amount_ns: least_ns.map(|ns| [ns, ns + wakes_ns]),
        free: joined(&free),
        bought: Some(bought.to_owned()),
    }
}

fn with_sockets<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = &'a LoopWork> {
    scene.needs.work.iter().filter(|work| work.sockets)
}

fn joined(ways: &[String]) -> Option<String> {
    (!ways.is_empty()).then(|| ways.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::capacity::tests::{SIGNATURE_NS, Silent, needs, plain};
    use crate::topology::checks::{DiskProbe, Needs, Probes};
    use crate::topology::machine::Machine;

    fn answers(machine: &Machine, needs: &Needs, disk: Option<DiskProbe>) -> [Answer; 6] {
        let mut probes = Probes::none("no");
        probes.signature_ns = Ok(SIGNATURE_NS);
        if let Some(disk) = disk {
            probes.disk = Ok(disk);
        }
        let scene = Scene { files: &Silent, machine, needs, probes: &probes };
        of(&scene, &capacity::of(&scene)).try_into().expect("six")
    }

    /// The six of a shard and a reader on two CPUs, which sleep as is said.
    fn of_two(sleeps: Sleeps) -> [Answer; 6] {
        let mut needs = needs("sm@0 r@1");
        needs.work[0].sleeps = sleeps;
        answers(&plain(2), &needs, None)
    }

    #[test]
    fn each_question_has_an_answer_with_an_amount() {
        let came = of_two(Sleeps::AtOnce);
        let asked: Vec<&str> = came.iter().map(|answer| answer.asked).collect();
        assert_eq!(asked, ["median", "slow", "slowest", "orders-per-second", "durable", "reads"]);
        assert!(came.iter().all(|answer| answer.bought.is_some()), "{came:?}");
        let said = text(&came);
        for line in [
            "an order's median (p50): about 52 µs in the server while little is going on, before a durable answer waits for the disk: its signature check 26 µs, the \
             rest 10 µs, waking the loop some 16 µs; from about 22,000 orders a second",
            "     free: cpu.wait=shard=spin saves the 16 µs; it burns a CPU for each shard day and night; \
             auth.known_signers_bytes=16777216 saves 19 µs where the signer is known",
            "     bought: faster cores shorten the 36 µs in proportion\n",
            "the slowest of a hundred (p99): an order behind a batch of 15 on its loop waits for 15 signature checks, 390 µs,",
            "one in a hundred waits in line for 118 µs, 371 µs, 793 µs where the loop is 50 % full, 80 % full, 90 % full;",
            "the slowest of a thousand (p99.9): an order that meets a loop whose CPU was taken waits until it is back: whatever \
             else is ready takes it, up to 4 ms at a time, and interrupts and the host, which may be longer; not measured here: \
             `outcry check --jitter`",
            "     bought: cores to spare, so that the loops' can be isolated; a host that sells whole cores\n",
            "orders a second: about 28,000 orders a second (1 shard x 28,000): ",
            "     free: auth.known_signers_bytes=16777216 for up to 61,000",
            "     bought: about 28,000 for each shard more that has a core of its own",
            "; without one it only shares: it gets what other loops, the journal and the system leave, and orders wait for turns, up to 4 ms; faster",
            "durable answers: an order's median and a write of the disk, which was not tried here",
            "reads: what one takes is not measured here; full first: sm0, at about 91,000 such reads a second without any orders, each \
             at the expense of 30 % of an order;",
        ] {
            assert!(said.contains(line), "{line}\n{said}");
        }
    }

    #[test]
    fn programs_get_the_amounts_that_are_times() {
        let disk = DiskProbe {
            filesystem: "ext4".to_owned(),
            is_local: true,
            direct_refused: None,
            discards: false,
            write_us: (23, 37),
            fsync_us: (90, 4_000),
        };
        let refused =
            DiskProbe { direct_refused: Some("EINVAL".to_owned()), write_us: (0, 0), ..disk.clone() };
        let slow = Some([26_000, 390_000]);
        for (sleeps, disk, median, durable) in [
            (Sleeps::AtOnce, None, [51_700, 51_700], None),
            (Sleeps::AtOnce, Some(disk.clone()), [51_700, 51_700], Some([81_700, 94_700])),
            (Sleeps::AfterSpinning, Some(disk.clone()), [35_700, 51_700], Some([65_700, 78_700])),
            (Sleeps::Never, Some(disk.clone()), [35_700, 35_700], Some([65_700, 78_700])),
            // Past the page cache nothing can be written there: an answer waits for the sync.
            (Sleeps::Never, Some(refused), [35_700, 35_700], Some([132_700, 145_700])),
        ] {
            let mut needs = needs("sm@0 r@1");
            needs.work[0].sleeps = sleeps;
            let came = answers(&plain(2), &needs, disk).map(|answer| answer.amount_ns);
            assert_eq!(came, [Some(median), slow, None, None, durable, None], "{sleeps:?}");
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
            assert_eq!(
                median.free.expect("known signers").contains("cpu.wait=shard=spin"),
                spins,
                "{sleeps:?}"
            );
        }
        // A loop that spins needs a CPU that the journal's thread has not.
        let [median, ..] = answers(&plain(1), &needs("smr"), None);
        assert!(!median.free.expect("known signers").contains("cpu.wait"));
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
            (
                limit("1000000/10s", 100_000_000, true),
                format!("{who} can fill it: limits.order is 1000000/10s"),
            ),
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
        assert_eq!(orders.free, None);
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
        };
        let both = |discards| {
            let [_, slow, .., durable, _] = answers(&plain(2), &needs("sm@0 r@1"), Some(disk(discards)));
            (slow, durable)
        };
        let ((slow, plain_disk), (slow_stops, stops)) = (both(false), both(true));
        let amounts = "about 82 µs to 95 µs: an order's median 52 µs, a write of the disk 23 µs (37 µs at p99, tried for a \
                       moment, with no other load), and 7 µs to 20 µs to hand over to the \
                       journal's thread and back";
        assert_eq!(plain_disk.now, amounts);
        let often = "stands still about 75 ms whenever a segment is packed or removed, every 16,000 writes or so (an order alone \
                     is one): from 2,200 writes a second on one answer in a hundred meets that";
        assert_eq!(stops.now, format!("{amounts}; the disk {often}"));
        assert!(
            slow_stops.now.ends_with(&format!("of durable answers, the disk {often}")),
            "{}",
            slow_stops.now
        );
        assert!(!slow.now.contains("disk"), "{}", slow.now);
        assert!(stops.free.expect("the mount").starts_with("mount the disk of data_dir without discard"));
        assert!(plain_disk.free.expect("committed").starts_with("journal.durability=committed"));
        let mut committed = needs("sm@0 r@1");
        committed.durable = false;
        let [.., durable, _] = answers(&plain(2), &committed, Some(disk(true)));
        assert_eq!((durable.free, durable.bought), (None, None));
    }

    #[test]
    fn a_read_adds_up_to_its_parts_and_what_has_to_be_woken() {
        let mut probes = Probes::none("no");
        probes.signature_ns = Ok(SIGNATURE_NS);
        probes.read_ns = Ok(1_260);
        for (plan, sleeps, amount_ns, woken, free) in [
            ("sm@0 r@1", Sleeps::AtOnce, [14_760, 46_760], ", and up to 32 µs for waking what sleeps", true),
            ("sm@0 r@1", Sleeps::Never, [14_760, 14_760], "were tried here; full first", false),
            ("smr@0", Sleeps::AtOnce, [14_760, 30_760], ", and up to 16 µs for waking", true),
        ] {
            let (machine, mut needs) = (plain(2), needs(plan));
            needs.work.iter_mut().for_each(|work| work.sleeps = sleeps);
            let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
            let reads = of(&scene, &capacity::of(&scene)).pop().expect("the last");
            assert_eq!((reads.asked, reads.amount_ns), ("reads", Some(amount_ns)), "{plan} {sleeps:?}");
            assert!(reads.now.contains(woken), "{}", reads.now);
            let spins = reads.free.is_some_and(|free| free.contains("cpu.wait=shard=spin saves 16 µs"));
            assert_eq!(spins, free, "{plan} {sleeps:?}");
        }
    }

    #[test]
    fn nothing_is_said_where_nothing_was_measured() {
        let (machine, needs, probes) = (plain(2), needs("sm@0 r@1"), Probes::none("no"));
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
        assert_eq!(of(&scene, &capacity::of(&scene)), []);
        assert_eq!(text(&[]), "");
    }
}
