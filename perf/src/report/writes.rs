//! What answers that wait for the disk waited for: the disk, or the CPU of the journal's thread.

use outcry::topology::checks::DiskUse;

use super::glance::had_said;
use super::numbers::{count, count_of, micros, range};
use super::words::{beside_client, is_durable};
use crate::parts::Parts;
use crate::placement::Durable;
use crate::stats::Quantiles;
use crate::summary::{Journal, Spans, Summary};

/// A cause of the journal's wait is named as the cause if it explains at least this part of the wait.
pub(super) const CAUSE_MIN: f64 = 0.5;

/// What requests waited for while they waited for the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A write.
    Disk,
    /// The write that was under way, and then its own.
    Disks,
    /// Its thread, which was ready but had no CPU.
    Cpu,
    /// Neither of the two alone.
    Neither,
    /// The server does not report it.
    Untold,
}

/// If others make fewer writes a second than this, or than [`OTHERS_TIMES_MIN`] times the journal's own, they are what
/// any filesystem writes.
const OTHERS_MIN: f64 = 100.0;
/// See [`OTHERS_MIN`].
const OTHERS_TIMES_MIN: f64 = 2.0;

/// What shortens a write of this disk, and makes its stops rarer.
pub(super) const SOONER: &str = "a mount without discard (`outcry check`), or a disk that writes sooner";

/// What shortens the journal's time where neither cause alone explains it.
pub(super) const BOTH: &str = "a core for the journal's thread, and a disk that writes sooner";

/// Writes a second that others made to the same disk while the load was on, if they were many.
pub(super) fn of_others(summary: &Summary) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "writes are far fewer than 2^53")]
    let own_per_s = summary.journal_writes? as f64 / (summary.time_s + summary.warm_up_s);
    let least = OTHERS_MIN.max(OTHERS_TIMES_MIN * own_per_s);
    summary.others_writes_per_s.filter(|per_s| least <= *per_s)
}

/// The quantile of these requests in words, and the time of the journal's spans that as many of them meet.
pub(super) fn met(parts: &Parts) -> (&'static str, fn(&Spans) -> f64) {
    match parts.of.as_str() {
        "p50" => ("one in two", |spans| spans.each.p50_us),
        "p99" => ("one in a hundred", |spans| spans.each.p99_us.max(spans.wait_p99_us)),
        _ => ("one in a thousand", |spans| spans.each.p999_us.max(spans.wait_p999_us)),
    }
}

/// Whether requests that waited `us` for the journal waited for the disk or for its thread's CPU.
pub(super) fn cause(us: f64, parts: &Parts, summary: &Summary) -> Cause {
    let Some(Journal { write, run_delay }) = &summary.journal else { return Cause::Untold };
    let (_, of) = met(parts);
    if CAUSE_MIN * us <= of(run_delay) {
        Cause::Cpu
    } else if CAUSE_MIN * us <= of(write) {
        Cause::Disk
    } else if CAUSE_MIN * us <= 2.0 * of(write) {
        Cause::Disks
    } else {
        Cause::Neither
    }
}

/// The cause of a wait for the journal, as sentences.
pub(super) fn of(us: f64, parts: &Parts, summary: &Summary) -> String {
    const CHECK: &str =
        "`outcry check` says what a write takes there alone, and how long a mount with discard stops it";
    let Some(Journal { write, run_delay }) = summary.journal else { return format!(" {CHECK}.") };
    let (which, of) = met(parts);
    let told = format!(
        " Of {} writes meanwhile, the longest {}, {which} that came met one that took {} or more until the thread went \
         on; likewise the thread was ready and had no CPU for {} or more, {} at most:",
        count_of(write.each.count),
        micros(write.each.max_us),
        micros(of(&write)),
        micros(of(&run_delay)),
        micros(run_delay.each.max_us)
    );
    let beside = if beside_client(summary).contains(&"journal") {
        format!(", which it shares with the client on CPU {} here", summary.client_cpu)
    } else {
        String::new()
    };
    let check = of_others(summary).map_or_else(
        || CHECK.to_owned(),
        |per_s| {
            let stop = without_others(summary);
            format!("Others wrote there too, {} times a second; to change: {stop}", count(per_s))
        },
    );
    match cause(us, parts, summary) {
        Cause::Cpu => {
            format!("{told} most of it is its CPU{beside}, and a core for the journal's thread ends that.")
        }
        Cause::Disk => format!("{told} most of it is the disk. {check}."),
        Cause::Disks => {
            format!(
                "{told} most of it is the disk, for a write that was under way and then its own. {check}."
            )
        }
        Cause::Neither | Cause::Untold => format!("{told} neither explains it alone."),
    }
}

/// The cause of a wait for the journal in a few words, and what would shorten the wait.
pub(super) fn place(us: f64, parts: &Parts, summary: &Summary) -> (String, String) {
    // The disk's stops are too rare to matter for the median.
    let sooner = if parts.of == "p50" { "a disk that writes sooner" } else { SOONER };
    let cause = cause(us, parts, summary);
    if let (Cause::Disk | Cause::Disks, Some(by)) = (cause, beside_others(summary)) {
        return (format!("a write of {by}"), without_others(summary));
    }
    let (by, first) = match cause {
        Cause::Disk => ("a write of the disk", sooner),
        Cause::Disks => ("two writes of the disk", sooner),
        Cause::Cpu => ("the journal's thread without a CPU", "a core for it"),
        Cause::Neither => ("the journal, neither disk nor CPU alone", BOTH),
        Cause::Untold => ("the journal", sooner),
    };
    (by.to_owned(), first.to_owned())
}

/// A few words about the disk, if others write there a lot.
fn beside_others(summary: &Summary) -> Option<String> {
    let who = summary.others_writer.as_ref().map_or_else(String::new, |who| format!(", most of it {who}"));
    of_others(summary)
        .map(|per_s| format!("the disk, to which others write too, {} times a second{who}", count(per_s)))
}

/// What ends others' writes to that disk.
fn without_others(summary: &Summary) -> String {
    DiskUse::remedy_of(summary.others_writer.as_deref())
}

/// A row of what limits the box: what the journal's writes took, where answers wait for them.
pub(super) fn row(summary: &Summary) -> Option<[String; 5]> {
    let journal = summary.journal.filter(|journal| is_durable(summary) && 0 < journal.write.each.count)?;
    let Quantiles { p50_us, max_us, .. } = journal.write.each;
    let (waits_us, delay) = (journal.write.wait_p99_us, journal.run_delay);
    let shared = summary.acts_per_write().map_or_else(String::new, |acts| format!(" for {acts:.1} requests"));
    let shown = format!(
        "{}{shared}, longest {}; 1 in 100 meets {}",
        micros(p50_us),
        micros(max_us),
        micros(waits_us)
    );
    let is_cpu = CAUSE_MIN * waits_us <= delay.wait_p99_us;
    let (cause, first) = match beside_others(summary) {
        _ if is_cpu => ("the CPU".to_owned(), "a core for the journal's thread".to_owned()),
        Some(disk) => (disk, without_others(summary)),
        None => ("the disk".to_owned(), SOONER.to_owned()),
    };
    let by = format!("{cause}; its thread had no CPU for {} at most", micros(delay.each.max_us));
    Some(["the journal's writes".to_owned(), shown, by, first, String::new()])
}

/// What answers would take if they waited for the disk, as they do under `serve` by default; for a run in which none
/// did.
pub(super) fn row_if_none_waited(summary: &Summary) -> Option<[String; 5]> {
    let Durable { us, by, first, .. } = summary.durable()?;
    let shown =
        format!("none in this run; {} or more in the server, by `outcry check` just before it", range(*us));
    let said = had_said(summary, "durable").to_owned();
    Some(["durable answers, which wait for the disk".to_owned(), shown, by.clone(), first.clone(), said])
}

#[cfg(test)]
mod tests {
    use super::super::words::limits;
    use super::*;
    use crate::placement::Thread;
    use crate::summary::{AsServe, example};

    #[test]
    fn a_durable_tail_is_the_disks_or_its_threads_cpus() {
        // The slowest thousandth spent 3.9 ms in the journal.
        for (write_us, run_delay_us, cause) in [
            (3_800.0, 10.0, "most of it is the disk."),
            (3_800.0, 3_000.0, "most of it is its CPU, which it shares with the client on CPU 0 here,"),
            (1_000.0, 10.0, "most of it is the disk, for a write that was under way and then its own."),
            (900.0, 10.0, "neither explains it alone."),
        ] {
            let settings = vec!["journal.durability=durable".to_owned()];
            let mut summary = Summary { client_cpu: 0, settings, ..crate::summary::example() };
            let thread = summary.threads[0].clone();
            summary.threads.push(Thread { name: "journal".to_owned(), cpu: None, ..thread });
            let spans = |wait_p999_us| Spans { wait_p999_us, ..Spans::default() };
            summary.journal = Some(Journal { write: spans(write_us), run_delay: spans(run_delay_us) });
            let said = &limits(&summary)[1];
            let met = " writes meanwhile, the longest 0.0 µs, one in a thousand that came met one";
            assert!(said.contains(met), "{said}");
            assert!(said.contains(cause), "{cause}: {said}");
        }
    }

    #[test]
    fn answers_that_wait_for_the_disk_have_a_row_where_none_did() {
        let durable = Durable {
            us: [152.0, 165.0],
            by: "the disk, on which sh (7) writes".to_owned(),
            first: "stop sh (7)".to_owned(),
            stop_writers: None,
        };
        let expected = [
            "durable answers, which wait for the disk",
            "none in this run; 152 µs to 165 µs or more in the server, by `outcry check` just before it",
            "the disk, on which sh (7) writes",
            "stop sh (7)",
            "",
        ];
        let own = Summary { durable: Some(durable), ..example() };
        let with = Summary { as_serve: Some(AsServe::of(own.clone())), ..example() };
        for summary in [own, with] {
            assert_eq!(
                row_if_none_waited(&summary).as_ref().map(|row| row.each_ref().map(String::as_str)),
                Some(expected)
            );
        }
        assert_eq!(row_if_none_waited(&example()), None);
    }
}
