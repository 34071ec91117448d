//! What a failed condition costs an order.
//!
//! A check reports by itself what it measured or read: what is missing, or how long it took. For the other
//! conditions here are estimates, each marked `about` or `up to` and made as if that condition alone failed.
//! `--jitter` measures what several add up to.

/// A ready thread waits about this long for the one that has its CPU, and again for each after it.
pub(super) const SLICE_NS: u64 = 4_000_000;
/// The time to wake a loop, where that was not tried (an eventfd's 16 µs).
pub(super) const WAKE_NS: u64 = 16_000;
/// The wait on a machine where one CPU carries everything: a read or a batch that was begun is finished first.
pub(super) const ONE_CPU_NS: u64 = 1_000_000;

/// How long a disk that discards at once stalls when a segment is packed or removed: on one guest it wrote nothing
/// for 1.2 ms per MiB that was freed, and a segment has 64 MiB.
pub(super) const DISCARD_NS: u64 = 75_000_000;
/// What to do about a disk that discards at once.
pub(super) const WITHOUT_DISCARD: &str =
    "mount the disk of data_dir without discard, and let fstrim run while it is quiet";
/// [`WITHOUT_DISCARD`] for a table.
pub(super) const WITHOUT_DISCARD_BRIEF: &str = "mount it without discard, which may stop it for 75 ms";
/// What shortens every write.
pub(super) const SOONER_BRIEF: &str = "a disk that writes 4 KiB sooner";
/// The fewest bytes that one write of the journal takes on the disk.
const WRITE_BYTES: u64 = 4_096;

/// The number of writes that fill a segment, if each holds one order.
pub(super) const fn writes_per_segment(segment_bytes: u64) -> u64 {
    segment_bytes / WRITE_BYTES
}

/// The writes a second beyond which more than one answer in a hundred meets a stall of such a disk.
pub(super) const fn writes_that_stop_one_in_a_hundred(segment_bytes: u64) -> u64 {
    writes_per_segment(segment_bytes) * 10_000_000 / DISCARD_NS
}

/// How long a disk that discards at once stalls, in words.
pub(super) fn discard() -> String {
    format!(
        "for up to {} or so, as one guest's did, whenever a segment is packed or removed",
        time(DISCARD_NS)
    )
}

/// A condition's name, its weight in nanoseconds in lists of what costs most, and what it costs; `{}` is the weight.
type Estimate = (&'static str, u64, &'static str);

const ESTIMATES: &[Estimate] = &[
    (
        "rt.priority",
        SLICE_NS,
        "up to {} a durable answer, or twice that, when something else runs on its CPU",
    ),
    ("cpu.isolated", SLICE_NS, "up to {} an order when something else is ready there"),
    ("mem.room", 2_000_000, "the process, when the rest is used up"),
    // 2 MiB at 10 GB a second.
    ("mem.thp", 200_000, "about {} for each huge page that is put together"),
    ("cpu.governor", 12_000, "about {} an order after a pause"),
    ("cpu.smt", 10_000, "about {} an order while both threads work"),
    ("numa.local", 8_000, "about {} an order"),
    ("irq.affinity", 6_000, "about {} an order that an interrupt meets"),
    ("irq.irqbalance", 6_000, "about {} an order that a moved interrupt meets"),
    ("net.rps", 5_000, "about {} a packet, of all connections"),
    ("net.xps", 5_000, "about {} a packet, of all connections"),
    ("cpu.nohz_full", 5_000, "up to {} an order that a tick meets"),
    ("cpu.rcu_nocbs", 5_000, "about {} an order that such work meets"),
    ("time.clocksource", 4_000, "about {} an order"),
    // Far rarer than it is long.
    (
        "mem.swap",
        3_000,
        "a read of the disk for each page that was swapped out; nothing while memory is free",
    ),
    (
        "mem.swappiness",
        0,
        "a read of the disk for each page that was swapped out; nothing while memory is free",
    ),
    (
        "mem.damon",
        3_000,
        "up to 4 ms an order when it runs there; where it writes memory out, a fault for each page",
    ),
    ("mem.ksm", 2_000, "about {} for each page that is copied first"),
    // Ten packets of 1,460 bytes go out before the first is acknowledged.
    ("net.slow_start_after_idle", 0, "a round trip more for an answer above 14 KiB"),
    ("io.others", 0, "a durable answer as long as what stands before it on the disk"),
    ("time.ntp", 0, "nothing until the clock is off by auth.window_s"),
    ("config.valid", 0, "the start is refused"),
    ("port.bind", 0, "the start is refused"),
    ("data.lock", 0, "the start is refused"),
    ("data.journal", 0, "the start is refused"),
    ("data.secret", 0, "the start is refused"),
];

fn estimate(id: &str) -> Option<&'static Estimate> {
    ESTIMATES.iter().find(|(known, ..)| *known == id)
}

/// What the condition `id` weighs when it fails: the nanoseconds that it adds to an order.
pub(super) fn weight_ns(id: &str) -> u64 {
    estimate(id).map_or(0, |(_, ns, _)| *ns)
}

/// What the condition `id` costs when it fails.
pub(super) fn text(id: &str) -> Option<String> {
    estimate(id).map(|(_, ns, text)| text.replace("{}", &time(*ns)))
}

/// The average wait in nanoseconds for a CPU of which others have this share.
pub(super) const fn share_of_slice(millionths: u64) -> u64 {
    // Multiplied first: a slice times a million is far from an overflow.
    SLICE_NS * millionths / 1_000_000
}

/// `share_of_slice` in words, as the wait of `one`: an order or a read.
pub(super) fn of_share(millionths: u64, one: &str) -> String {
    format!("about {} {one} on average, {} a turn", time(share_of_slice(millionths)), time(SLICE_NS))
}

/// The wait of `one` where others have its CPU and its loop sleeps: mostly none, as a woken thread preempts them.
pub(super) fn of_woken(one: &str) -> String {
    format!(
        "{} {one} that waits for its turn, or several; most meet nothing: a loop that sleeps is woken before them",
        time(SLICE_NS)
    )
}

/// A time as the checks write it: `16 µs`, `1.5 ms`.
pub(super) fn time(ns: u64) -> String {
    match ns {
        0..1_000 => "below 1 µs".to_owned(),
        1_000..1_000_000 => format!("{} µs", (ns + 500) / 1_000),
        _ if ns.is_multiple_of(1_000_000) || 100_000_000 <= ns => format!("{} ms", ns / 1_000_000),
        _ => format!("{}.{} ms", ns / 1_000_000, ns % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_has_its_unit() {
        for (ns, expected) in [
            (0, "below 1 µs"),
            (999, "below 1 µs"),
            (1_000, "1 µs"),
            (38_999, "39 µs"),
            (1_000_000, "1 ms"),
            (8_031_600, "8.0 ms"),
            (123_400_000, "123 ms"),
        ] {
            assert_eq!(time(ns), expected);
        }
        assert_eq!(text("cpu.governor").as_deref(), Some("about 12 µs an order after a pause"));
        assert_eq!(of_share(9_700, "an order"), "about 39 µs an order on average, 4 ms a turn");
        assert_eq!((text("cpu.none"), weight_ns("cpu.none")), (None, 0));
    }

    #[test]
    fn whatever_has_a_cost_is_a_condition() {
        let table = include_str!("../../tests/topology/server/check");
        let is_there = |id| table.lines().any(|row| row.split_whitespace().next() == Some(id));
        for (id, ..) in ESTIMATES {
            assert!(is_there(*id), "{id}");
        }
    }
}
