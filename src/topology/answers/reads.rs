//! What limits reads: the time of a lone one, the loop that is full first, and what the slow ones wait for.

use super::{Answer, LINES, brief, how_full, in_line, joined, sleeps, with_sockets};
use crate::topology::capacity::{self, Capacity, SECOND_NS, micros, rounded};
use crate::topology::checks::{Follower, LoopWork, Scene, Sleeps, percent};
use crate::topology::{cost, limit};

/// The time that a lone read takes on the loop with its socket, and on the reader's loop besides what is tried here:
/// derived from how long both worked in `read-heavy`, on the guest of [`capacity`].
const READ_PASS_NS: u64 = 2_000;
const READ_TURN_NS: u64 = 8_000;

/// Small reads a second (a market, 1.8 kB) and large ones (46 kB of positions) of one reader, as in README.
const READS_PER_SECOND: [u64; 2] = [297_000, 126_000];

/// A read that comes alone: the loop with its socket passes it to the reader's and sends the answer.
pub(super) fn reads(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let asked_of = with_sockets(scene).map(|work| work.name.as_str()).collect::<Vec<_>>().join(", ");
    let reader = reader(scene);
    let tenths = |ns: u64| format!("{}.{} µs", ns / 1_000, ns % 1_000 / 100);
    let [small, large] = READS_PER_SECOND.map(rounded);
    let read_ns = scene.probes.read_ns.as_ref().ok().copied();
    let (full_at, first) = reads_full_first(scene, READ_TURN_NS + read_ns.unwrap_or(0));
    let full = rounded(full_at);
    let is_apart = |work: &&LoopWork| !work.sockets;
    let sleepers = [Some(sleeps(scene)), reader.filter(is_apart).map(|work| work.sleeps)];
    let wakes = sleepers.into_iter().flatten().filter(|sleeps| *sleeps == Sleeps::AtOnce).count();
    let wakes_ns = u64::try_from(wakes).unwrap_or(0) * scene.wake_ns();
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
        "{here}; full first: {first}, at about {full} such reads a second or more without any orders; each takes as much of \
         {asked_of} as {} % of an order; clients that send many at once get more, on the machine of README's figures {small}, or {large} \
         pages of 46 kB; an order takes {} of the reader's time",
        READ_PASS_NS * 100 / capacity.order_ns.max(1),
        tenths(capacity::READER_NS)
    );
    let mut free = vec!["clients that send many at once (pipelining)".to_owned()];
    if sleeps(scene) == Sleeps::AtOnce && limit::may_spin(scene) {
        let (setting, saved) = (scene.needs.spin_setting(), micros(scene.wake_ns()));
        free.push(format!("{setting} saves {saved} of the waking"));
    }
    let bought = "a faster core for the one reader; more loops with sockets do not help it";
    let least_ns = read_ns.map(|ns| READ_PASS_NS + READ_TURN_NS + ns);
    Answer {
        asked: "reads",
        title: "reads",
        now,
        amount_ns: least_ns.map(|ns| [ns, ns + wakes_ns]),
        free: joined(&free),
        bought: Some(bought.to_owned()),
        brief: brief::reads(scene, least_ns.map(|ns| [ns, ns + wakes_ns]), first, &full),
    }
}

/// What slow reads wait for: the reads before them, and whoever else has the reader's CPU.
pub(super) fn slow_reads(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let read_ns = scene.probes.read_ns.as_ref().ok().copied();
    let turn_ns = READ_TURN_NS + read_ns.unwrap_or(0);
    let name = reader(scene).map_or("one loop", |work| work.name.as_str());
    let beside = beside_reader(scene, capacity);
    let shares = match beside.as_slice() {
        [] => "nothing else of the server is pinned to its core".to_owned(),
        names => format!("beside it on its core: {}", names.join(", ")),
    };
    let orders = if reader(scene).is_some_and(|work| work.sockets) {
        format!(", and for orders before it on the same loop, {} each", micros(capacity.order_ns))
    } else {
        String::new()
    };
    let taken = brief::worst(scene, &cpus_of_reads(scene), |gaps| gaps.wait_p99_ns).map_or_else(
        || "`outcry check --jitter` tells who takes its CPU, and for how long".to_owned(),
        |gaps| {
            format!(
                "measured with every CPU kept busy, one read in a hundred waits {} or more until its CPU is back, one in 1,000 {} \
                 (cpu {} lost {}: {})",
                cost::time(gaps.wait_p99_ns),
                cost::time(gaps.wait_p999_ns),
                gaps.cpu,
                percent(gaps.lost_millionths),
                gaps.takers()
            )
        },
    );
    let now = format!(
        "of reads that come alone and at random, one in a hundred waits in line for {} where {name} is {}{orders}; pages of \
         46 kB (some {} each on the machine of README's figures), {} on that loop too; {shares}; {taken}",
        in_line(turn_ns),
        how_full(),
        micros(SECOND_NS / READS_PER_SECOND[1]),
        if scene.needs.work.iter().any(|work| work.follows == Some(Follower::Feed)) {
            "and the operator's questions are"
        } else {
            "streams and the operator's questions are"
        }
    );
    let bought = if beside.is_empty() {
        "a faster core for the one reader"
    } else {
        "a core for the reader alone, so that nobody shares it"
    };
    Answer {
        asked: "slow-reads",
        title: "the slowest of a hundred reads (p99)",
        now,
        amount_ns: read_ns.map(|_| [LINES[0], LINES[2]].map(|(_, tenths)| turn_ns * tenths / 10)),
        free: Some("fewer and smaller reads; streams in their place".to_owned()),
        bought: Some(bought.to_owned()),
        brief: brief::slow_reads(scene, turn_ns, name, &beside),
    }
}

fn reader<'a>(scene: &'a Scene<'_>) -> Option<&'a LoopWork> {
    scene.needs.work.iter().find(|work| work.follows == Some(Follower::Reader))
}

/// The CPUs that reads wait for: the reader's, or all allowed ones if it is not pinned.
pub(super) fn cpus_of_reads(scene: &Scene<'_>) -> Vec<usize> {
    let pinned = reader(scene).and_then(|work| work.cpu);
    pinned.map_or_else(|| scene.machine.allowed.clone(), |cpu| vec![cpu])
}

/// Who else runs on the reader's core by the plan: other loops, and the journal's thread if it may be there.
fn beside_reader(scene: &Scene<'_>, capacity: &Capacity) -> Vec<String> {
    let Some(reader) = reader(scene) else { return Vec::new() };
    let part = capacity.parts.iter().find(|part| part.name == reader.name);
    let mut beside = part.map_or_else(Vec::new, |part| part.beside.clone());
    let may_be_there = match scene.needs.journal_cpu {
        Some(cpu) => reader.cpu == Some(cpu),
        None => scene.lacks_cores(),
    };
    beside.extend(may_be_there.then(|| "journal".to_owned()));
    beside
}

/// The reads a second that fill the first loop, and its name; the reader's loop spends `turn_ns` on each.
fn reads_full_first<'a>(scene: &'a Scene<'_>, turn_ns: u64) -> (u64, &'a str) {
    let loops = u64::try_from(with_sockets(scene).count()).unwrap_or(1).max(1);
    let each_ns = |work: &LoopWork| {
        let passing_ns = if work.sockets { READ_PASS_NS / loops } else { 0 };
        passing_ns + if work.follows == Some(Follower::Reader) { turn_ns } else { 0 }
    };
    let busiest = scene.needs.work.iter().max_by_key(|work| each_ns(work));
    busiest.map_or((0, "no loop"), |work| (SECOND_NS / each_ns(work).max(1), work.name.as_str()))
}
