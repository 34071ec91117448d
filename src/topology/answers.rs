//! What limits each thing that people ask of an exchange: how much now, what to change for free, what to buy.
//!
//! | asked | amount | from |
//! |---|---|---|
//! | `median` | an order's own CPU time and a wake-up, at low load | [`capacity`], [`cost`] |
//! | `slow` | what an order waits for behind a batch | the signature check, measured |
//! | `slowest` | what else takes a loop's CPU | the gaps of its CPUs, if they were measured |
//! | `orders-per-second` | the rate at which the first loop is full | [`capacity`] |
//! | `durable` | a write to the disk, and its stalls | the disk, if it was tried |
//! | `reads` | the time of one on both of its loops, and which of these is full first | one, measured; `read-heavy` |
//! | `slow-reads` | what a read waits for in line, and who else has the reader's CPU | the same, and that CPU's gaps |
//!
//! An amount that is not known here is called unknown, with the command that measures it. What other programs, the host
//! and interrupts add is in the list of [`limit`].

use super::capacity::{self, COMFORTABLE_PERCENT, Capacity, KNOWN_SETTING, micros, rounded};
use super::checks::{ClientOrders, Gaps, LoopWork, Others, Scene, Sleeps, percent};
use super::cost::{self, WITHOUT_DISCARD};
use super::limit;
use super::table;
use super::valid::SHARE_PERCENT_MAX;

mod beside;
mod brief;
mod reads;

pub use brief::Brief;

/// The most orders in one request.
pub const BATCH: u64 = 15;

/// What a durable answer waits for besides the write, measured on a good day and on a bad one: the journal's thread,
/// which sleeps at once, is woken, and the loop, which is awake, sees its watermark.
const HAND_OVER_NS: [u64; 2] = [7_000, 20_000];

/// How much of [`HAND_OVER_NS`] is saved where the journal's thread spins before it sleeps, as measured.
const LOOKING_ON_NS: u64 = 6_000;

/// How full a loop is, in percent, and how long one order or read in a hundred then waits in line, in tenths of its own
/// time: for random arrivals that all take equally long (M/D/1), by the simulation among the tests.
const LINES: [(u64, u64); 3] = [(50, 33), (80, 104), (90, 222)];

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What is asked, as a word that never changes.
    pub asked: &'static str,
    /// What is asked, for people.
    pub title: &'static str,
    /// How it is now, and what limits it.
    pub now: String,
    /// The amount for programs, least and most, in nanoseconds; none if it is not a time, or not known here.
    pub amount_ns: Option<[u64; 2]>,
    /// What to change without buying anything, with its price of another kind; none if there is nothing.
    pub free: Option<String>,
    /// What can be bought, and what it would bring.
    pub bought: Option<String>,
    /// The whole answer in a line.
    pub brief: Brief,
}

/// The seven answers; none unless the signature check was measured, without which most have no amount.
#[must_use]
pub fn of(scene: &Scene<'_>, capacity: &Result<Capacity, String>) -> Vec<Answer> {
    let Ok(capacity) = capacity else { return Vec::new() };
    vec![
        median(scene, capacity),
        slow(scene, capacity),
        slowest(scene, capacity),
        orders(scene, capacity),
        durable(scene, capacity),
        reads::reads(scene, capacity),
        reads::slow_reads(scene, capacity),
    ]
}

/// The answers for people.
#[must_use]
pub fn text(answers: &[Answer]) -> String {
    if answers.is_empty() {
        return String::new();
    }
    let mut lines = vec!["each of these in full:".to_owned()];
    for answer in answers {
        lines.push(format!("{}: {}", answer.title, answer.now));
        lines.extend(answer.free.as_ref().map(|text| format!("     free: {text}")));
        lines.extend(answer.bought.as_ref().map(|text| format!("     bought: {text}")));
    }
    lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Four columns of it fit a wide terminal.
const CELL_CHARS_MAX: usize = 36;

/// The answers in a table.
#[must_use]
pub fn brief(answers: &[Answer]) -> String {
    let row = |Answer { title, brief: Brief { by, amount, first }, .. }: &Answer| {
        [(*title).to_owned(), by.clone(), amount.clone(), first.clone()]
    };
    let rows: Vec<_> = answers.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    table::wrapped(["what", "is limited by", "how much", "to change first"], &rows, CELL_CHARS_MAX)
}

/// How soon a loop with sockets sleeps; of several, the first to do so.
fn sleeps(scene: &Scene<'_>) -> Sleeps {
    with_sockets(scene).map(|work| work.sleeps).min().unwrap_or(Sleeps::AtOnce)
}

/// What a durable answer waits for besides the write, at least and at most. At most, where the order came alone, a loop
/// that sleeps at once has slept meanwhile and is woken once more.
fn hand_over_ns(scene: &Scene<'_>) -> [u64; 2] {
    let [least_ns, most_ns] = HAND_OVER_NS;
    [least_ns, most_ns + if sleeps(scene) == Sleeps::AtOnce { scene.wake_ns() } else { 0 }]
}

/// How often an order wakes a loop that sleeps so: the one with its socket, and its shard's if that is another. While
/// this one works, the one with the socket falls asleep again if it does so at once.
fn woken(scene: &Scene<'_>, how: Sleeps) -> u64 {
    let apart = scene.needs.work.iter().filter(|work| work.shard && !work.sockets);
    let way = [Some(sleeps(scene)), apart.map(|work| work.sleeps).min()];
    let again = way[0] == Some(Sleeps::AtOnce) && way[1].is_some() && how == Sleeps::AtOnce;
    way.into_iter().flatten().map(|sleeps| u64::from(sleeps == how)).sum::<u64>() + u64::from(again)
}

/// The time of a lone order in the server, without the disk.
fn median_ns(scene: &Scene<'_>, capacity: &Capacity) -> u64 {
    capacity.order_ns + woken(scene, Sleeps::AtOnce) * scene.wake_ns()
}

fn median(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let (order_ns, check_ns) = (capacity.order_ns, capacity.check_ns());
    let [at_once, later] = [Sleeps::AtOnce, Sleeps::AfterSpinning].map(|how| woken(scene, how));
    let wake_ns = scene.wake_ns();
    let woken = match at_once {
        0 => String::new(),
        1 => format!(", waking the loop {}", scene.wake()),
        times => format!(", waking loops {times} times, {} each", scene.wake()),
    };
    let after = micros(later * wake_ns);
    let after = match later {
        0 => String::new(),
        1 => format!("; {after} more after a pause of 50 µs, for a loop sleeps then"),
        _ => format!("; {after} more after a pause of 50 µs, for loops sleep then"),
    };
    let woken = woken + &after;
    let parts = format!("its signature check {}, the rest {}", micros(check_ns), micros(capacity::REST_NS));
    let others = brief::more_beside_others(scene);
    let now = format!(
        "about {} from arrival to answer while little is going on: {parts}{woken}{others}; from about {} orders a second ({COMFORTABLE_PERCENT} % of what \
         it can take) on they also wait in line",
        micros(median_ns(scene, capacity)),
        rounded(capacity.comfortable_per_second())
    );
    let mut free = Vec::new();
    if 0 < at_once + later && limit::may_spin(scene) {
        let rest = if scene.lacks_cores() { ", and reader, journal and system share the rest" } else { "" };
        let (setting, price) = (scene.needs.spin_setting(), scene.needs.spin_price());
        let saved = micros((at_once + later) * wake_ns);
        free.push(format!("{setting} saves the {saved}; it {price}{rest}"));
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
    let most_ns = least_ns + later * wake_ns;
    Answer {
        asked: "median",
        title: if scene.needs.durable {
            "an order's median (p50), before the disk"
        } else {
            "an order's median (p50)"
        },
        now,
        amount_ns: Some([least_ns, most_ns]),
        free: joined(&free),
        bought: Some(bought),
        brief: brief::median(scene, capacity),
    }
}

/// How long one in a hundred waits in line where each takes `each_ns`, for each load of [`LINES`].
fn in_line(each_ns: u64) -> String {
    LINES.map(|(_, tenths)| micros(each_ns * tenths / 10)).join(", ")
}

fn how_full() -> String {
    LINES.map(|(percent, _)| format!("{percent} % full")).join(", ")
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
        in_line(capacity.order_ns),
        how_full()
    );
    let mut free = vec![
        "smaller batches of clients; reads on a connection of their own, for answers leave in order"
            .to_owned(),
    ];
    if !capacity.knows_signers {
        let known = micros(BATCH * capacity::known_ns(capacity.check_ns()));
        free.push(format!("{KNOWN_SETTING}: {known} where signers are known"));
    }
    let setting = scene.needs.carriers_setting();
    let bought = match capacity.one_core_more() {
        Some(more) => format!("{more} ({setting}): fewer orders on one loop"),
        None => "faster cores, in proportion".to_owned(),
    };
    Answer {
        asked: "slow",
        title: "the slowest of a hundred (p99)",
        now,
        amount_ns: Some([capacity.check_ns(), batch_ns]),
        free: joined(&free),
        bought: Some(bought),
        brief: brief::slow(scene, capacity),
    }
}

/// What else takes a loop's CPU: rarely, and for long.
fn slowest(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let cpus = scene.cpus_of_orders();
    let worst = brief::worst(scene, &cpus, |gaps| gaps.wait_p999_ns);
    let measured = match worst {
        Some(gaps) => format!(
            "measured with every CPU kept busy, one order in 1,000 waits for that at least {}, and the longest gap was {} (cpu {} lost {}: {})",
            cost::time(gaps.wait_p999_ns),
            cost::time(gaps.max_ns),
            gaps.cpu,
            percent(gaps.lost_millionths),
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
        brief: brief::slowest(scene, capacity),
    }
}

fn orders(scene: &Scene<'_>, capacity: &Capacity) -> Answer {
    let others = match beside::of(scene, capacity) {
        Some(beside) => format!("; {}", beside.text()),
        None if is_unseen(scene) => {
            "; less where others run on the same CPU, at which `outcry check` looks".to_owned()
        }
        None => String::new(),
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
        brief: brief::orders(scene, capacity),
    }
}

/// Whether others, or the journal's thread, may have a share of the loops' CPUs that nobody measured.
fn is_unseen(scene: &Scene<'_>) -> bool {
    scene.lacks_cores() && (scene.probes.stat_quiet.is_none() || scene.probes.disk.is_err())
}

/// What one client may place by its limit, usually long before the machine is full.
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
    let short = brief::durable(scene, capacity);
    if !scene.needs.durable {
        let now = "none wait for the disk (journal.durability=committed)".to_owned();
        return Answer { asked, title, now, amount_ns: None, free: None, bought: None, brief: short };
    }
    let others = scene.probes.disk_others();
    let mut free: Vec<String> = others.iter().map(|others| others.remedy()).collect();
    let disk = scene.probes.disk.as_ref();
    let order_ns = median_ns(scene, capacity);
    let sum_ns =
        disk.ok().map(|disk| hand_over_ns(scene).map(|ns| order_ns + disk.durable_us().0 * 1_000 + ns));
    let now = match disk {
        Err(_) => {
            "an order's median and a write of the disk, which was not tried here: `outcry check` tries it"
                .to_owned()
        }
        Ok(disk) => {
            let (p50, p99) = disk.durable_us();
            let [least, most] = hand_over_ns(scene);
            let sums = sum_ns.map(|sums| sums.map(micros).join(" to ")).unwrap_or_default();
            let again = match sleeps(scene) {
                Sleeps::AtOnce => " (the most if the loop slept meanwhile and is woken again)",
                Sleeps::AfterSpinning | Sleeps::Never => "",
            };
            let taken = cpu_others(scene).map_or_else(String::new, |others| {
                let slice = cost::time(cost::SLICE_NS);
                format!(
                    "; up to {slice} more where it waits for cpu {}, of which others had {}",
                    others.cpu,
                    others.amount()
                )
            });
            let stops = limit::stops(scene).map_or_else(String::new, |stops| {
                free.push(format!("{WITHOUT_DISCARD}, and these stops are gone"));
                format!("; the disk {stops}")
            });
            format!(
                "about {sums}: an order's median {}, a write of the disk {p50} µs ({p99} µs at p99, tried for a moment, {}), and {} to {} to hand over to the journal's thread and \
                 back{again}, without the network and the client's own waking; some {} such writes a second, each with all that waits, so the disk does not bound \
                 orders a second{taken}{stops}",
                micros(order_ns),
                scene.probes.beside_writers(),
                micros(least),
                micros(most),
                rounded(1_000_000 / p50.max(1))
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
    let (free, bought) = (joined(&free), joined(&bought));
    Answer { asked, title, now, amount_ns: sum_ns, free, bought, brief: short }
}

/// Who else has a noticeable share of a CPU that durable answers wait for.
fn cpu_others(scene: &Scene<'_>) -> Option<Others> {
    let mut cpus = scene.cpus_of_orders();
    cpus.extend(scene.needs.journal_cpu);
    scene.others_on(&cpus).filter(Others::are_felt)
}

fn with_sockets<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = &'a LoopWork> {
    scene.needs.work.iter().filter(|work| work.sockets)
}

fn joined(ways: &[String]) -> Option<String> {
    (!ways.is_empty()).then(|| ways.join("; "))
}

#[cfg(test)]
mod tests;
