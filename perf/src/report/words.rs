//! What a report says in words: what was measured, and what limits the box in front of us.

use crate::summary::{ClassTimes, Summary};
use crate::verdict::LOST_PERCENT_MAX;

/// Gaps that a tail cannot be told from: longer than this, the box is the limit.
const GAP_US_MAX: f64 = 100.0;

/// A time as people read it: `8.2 µs`, `1.4 ms`, `2.1 s`.
pub(crate) fn micros(micros: f64) -> String {
    match micros {
        small if small < 100.0 => format!("{small:.1} µs"),
        small if small < 1_000.0 => format!("{small:.0} µs"),
        medium if medium < 1_000_000.0 => format!("{:.1} ms", medium / 1e3),
        large => format!("{:.1} s", large / 1e6),
    }
}

/// A round time for an axis: `10 µs`, `1 ms`.
pub(crate) fn short_micros(micros: f64) -> String {
    let (number, unit) = match micros {
        tiny if tiny < 1.0 => (tiny * 1e3, "ns"),
        small if small < 1_000.0 => (small, "µs"),
        medium if medium < 1_000_000.0 => (medium / 1e3, "ms"),
        large => (large / 1e6, "s"),
    };
    format!("{} {unit}", (number * 100.0).round() / 100.0)
}

/// A count with commas.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What a class is called in a sentence.
pub(crate) fn class(name: &str) -> &'static str {
    match name {
        "place" => "orders that rest",
        "cancel" => "cancels",
        "replace" => "replaces",
        "batch" => "batches of 15 orders",
        "take" => "orders that are matched",
        "read" => "reads",
        _ => "requests",
    }
}

/// What was offered and answered, in plain words.
pub(crate) fn offered(summary: &Summary) -> String {
    format!(
        "{} requests a second were offered over {} connections for {} s; {} a second were answered, and every \
         answer was checked.",
        count(summary.offered_per_s),
        summary.connections,
        summary.time_s,
        count(summary.achieved_per_s)
    )
}

/// How long each class took, a sentence each.
pub(crate) fn answers(summary: &Summary) -> Vec<String> {
    let sentence = |times: &ClassTimes| {
        let latency = times.latency;
        format!(
            "{}: half of them within {}, 99 of 100 within {}, the slowest of {} after {}.",
            capital(class(&times.class)),
            micros(latency.p50_us),
            micros(latency.p99_us),
            count_of(latency.count),
            micros(latency.max_us)
        )
    };
    summary.classes.iter().map(sentence).collect()
}

#[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
pub(crate) fn count_of(number: u64) -> String {
    count(number as f64)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What others had of the CPUs, by every account there is.
pub(crate) fn lost(summary: &Summary) -> String {
    let rows = summary.jitter_before.iter().chain(&summary.jitter_after);
    let most = rows.map(|row| row.lost_percent).fold(0.0, f64::max);
    format!(
        "Meanwhile other processes had {:.3} CPUs and the host {:.3}; before and after, a thread that only spins \
         lost at most {most:.2} % of a CPU.",
        summary.share.others, summary.share.stolen
    )
}

/// What limits this box, the hardest limit first.
pub(crate) fn limits(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    jitter_limit(summary, &mut found);
    let environment = &summary.environment;
    if environment.cpus.len() < 4 {
        found.push(format!(
            "There are {} CPUs: the trading loop polls on CPU {}, and the reader and the journal share CPU {} with \
             the client, so reads, durable answers and all tails pay for the client's polling.",
            environment.cpus.len(),
            summary.server_cpu,
            summary.client_cpu
        ));
    }
    if environment.hypervisor != "none" {
        found.push(
            "This is a virtual machine: each wake-up and each packet crosses the hypervisor, and what its \
             other guests do is not visible from here."
                .to_owned(),
        );
    }
    if environment.isolated_cpus == "none" && environment.nohz_full == "none" {
        found.push(
            "No CPU is isolated from the scheduler (isolcpus, nohz_full): timers and other threads may \
             interrupt a loop at any moment."
                .to_owned(),
        );
    }
    if !["performance", "unknown"].contains(&environment.governor.as_str()) {
        found.push(format!(
            "The CPUs' governor is {}: their frequency changes under load.",
            environment.governor
        ));
    }
    if let Some(stage) = summary
        .stages
        .iter()
        .filter(|stage| stage.stage != "total")
        .max_by(|one, other| one.time.p50_us.total_cmp(&other.time.p50_us))
    {
        found.push(format!(
            "Inside the server the longest stage is {}, {} at p50.",
            stage.stage,
            micros(stage.time.p50_us)
        ));
    }
    if summary.data == "memory" {
        found.push("All data were in shared memory: no disk is in these figures.".to_owned());
    }
    found
}

fn jitter_limit(summary: &Summary, found: &mut Vec<String>) {
    let rows = || summary.jitter_before.iter().chain(&summary.jitter_after);
    let Some(worst) = rows().max_by(|one, other| one.max_us.total_cmp(&other.max_us)) else { return };
    let Some(most) = rows().max_by(|one, other| one.lost_percent.total_cmp(&other.lost_percent)) else {
        return;
    };
    if worst.max_us > GAP_US_MAX || most.lost_percent > LOST_PERCENT_MAX {
        found.push(format!(
            "The machine stops a thread that only spins, without any load of ours: for up to {} at once (CPU {}), \
             and for {:.2} % of the time on CPU {}: {}. Tails up to that length may be the machine's doing, not \
             the server's.",
            micros(worst.max_us),
            worst.cpu,
            most.lost_percent,
            most.cpu,
            most.takers()
        ));
    } else {
        found.push(format!(
            "The cores are quiet: a thread that only spins never lost more than {} at once.",
            micros(worst.max_us)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_read_like_people_write_them() {
        let times: Vec<String> = [0.04, 8.24, 142.4, 1_440.0, 2_100_000.0].map(micros).into();
        assert_eq!(times, ["0.0 µs", "8.2 µs", "142 µs", "1.4 ms", "2.1 s"]);
        let axis: Vec<String> = [0.1, 10.0, 250.0, 1_000.0, 1e6].map(short_micros).into();
        assert_eq!(axis, ["100 ns", "10 µs", "250 µs", "1 ms", "1 s"]);
        assert_eq!([0.0, 999.0, 1_000.0, 1_234_567.0].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
