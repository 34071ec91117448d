//! What a loop was doing while a request waited for it.
//!
//! While a request's bytes are in the kernel, before a loop reads them, no stage of the server counts the time. But the
//! client knows when each request was sent and when its answer came, and the server says how long it worked on each. So
//! where one loop has all connections, it can be worked out which requests it was working on before it came to this
//! one. A loop works on a request from the first stage after `recv` until its answer could leave. Reads report no
//! stages, and take little of a loop.
//!
//! A loop whose CPU was taken was working on nothing. So what exceeds the usual time of such a request, or of a turn's
//! end and the next one's beginning, is left out.

use crate::generator::{NEVER, Times};
use crate::scenario::Class;
use crate::timing;
use crate::workload::Request;

/// A loop that took longer than this multiple of its class's median was not working on the request alone.
const SPAN_TIMES_MAX: u64 = 2;

/// One turn ends and the next begins within this; some 10 µs are usual.
const BETWEEN_NS_MAX: u64 = 50_000;

/// What one loop worked on, and when: spans in order, without overlaps.
#[derive(Debug)]
pub(crate) struct Line {
    spans: Vec<Span>,
}

/// A span of work on one request; nanoseconds since the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) class: Class,
}

impl Line {
    /// The line of the loop that answered all of these requests.
    pub(crate) fn of(requests: &[Request], times: &Times) -> Self {
        let answered = (0..requests.len()).filter(|&index| times.answered_ns[index] != NEVER);
        let span = |index| {
            let timing = times.timing(index)?;
            let to_ns = times.left_ns(index).saturating_sub(stage_ns(timing, "journal"));
            let waits_ns = stage_ns(timing, "journal") + stage_ns(timing, "recv");
            let from_ns = to_ns.saturating_sub(stage_ns(timing, "total").saturating_sub(waits_ns));
            Some(Span { from_ns, to_ns, class: requests[index].class })
        };
        let mut spans: Vec<Span> = answered.filter_map(span).collect();
        for class in Class::ALL {
            let most_ns = SPAN_TIMES_MAX * median_ns(&spans, class);
            for span in spans.iter_mut().filter(|span| span.class == class) {
                span.from_ns = span.from_ns.max(span.to_ns.saturating_sub(most_ns));
            }
        }
        Self::in_order(spans)
    }

    /// Where two spans overlap, the earlier one has that time.
    pub(crate) fn in_order(mut spans: Vec<Span>) -> Self {
        spans.sort_unstable_by_key(|span| (span.from_ns, span.to_ns));
        let mut until_ns = 0;
        for span in &mut spans {
            span.from_ns = span.from_ns.max(until_ns);
            until_ns = until_ns.max(span.to_ns);
        }
        spans.retain(|span| span.from_ns < span.to_ns);
        Self { spans }
    }

    /// How much of the time from `from_ns` to `to_ns` the loop worked on each class; nothing if the time is empty. If
    /// the loop was working on a request at `from_ns`, the pauses between spans count too: the loop ends a turn, writes
    /// its answers, and begins the next.
    pub(crate) fn within(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (Class, u64)> + '_ {
        let first = self.spans.partition_point(|span| span.to_ns <= from_ns);
        let spans = &self.spans[first..];
        let was_at_one = spans.first().is_some_and(|span| span.from_ns <= from_ns);
        let met = spans.iter().enumerate();
        let met = met.take_while(move |(_, span)| from_ns < to_ns && span.from_ns < to_ns);
        met.map(move |(index, span)| {
            let next_ns = spans.get(index + 1).map_or(to_ns, |next| next.from_ns);
            let turns_ns = if was_at_one { BETWEEN_NS_MAX } else { 0 };
            let until_ns = next_ns.min(span.to_ns + turns_ns);
            (span.class, until_ns.min(to_ns) - span.from_ns.max(from_ns))
        })
    }
}

/// When the loop first looked at an answered request; before that, its bytes were in the kernel.
pub(crate) fn seen_ns(times: &Times, index: usize) -> u64 {
    let total_ns = times.timing(index).map_or(0, |timing| stage_ns(timing, "total"));
    times.left_ns(index).saturating_sub(total_ns)
}

/// The median length of a class's spans.
fn median_ns(spans: &[Span], class: Class) -> u64 {
    let of_class = spans.iter().filter(|span| span.class == class);
    let mut took: Vec<u64> = of_class.map(|span| span.to_ns - span.from_ns).collect();
    took.sort_unstable();
    took.get(took.len() / 2).copied().unwrap_or(0)
}

fn stage_ns(timing: &str, stage: &str) -> u64 {
    timing::parse(timing).find(|(name, _)| *name == stage).map_or(0, |(_, ns)| ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_line_is_of_those_at_whom_the_loop_was() {
        let span = |(from_us, to_us, class): (u64, u64, Class)| Span {
            from_ns: from_us * 1_000,
            to_ns: to_us * 1_000,
            class,
        };
        let (place, batch, cancel) = (Class::Place, Class::Batch, Class::Cancel);
        let line = Line::in_order(
            [(40, 60, place), (10, 50, batch), (20, 45, cancel), (70, 80, cancel)].map(span).to_vec(),
        );
        for (from_us, to_us, expected) in [
            (0, 10, vec![]),
            (5, 15, vec![(batch, 5)]),
            (10, 50, vec![(batch, 40)]),
            (5, 75, vec![(batch, 40), (place, 10), (cancel, 5)]),
            (45, 75, vec![(batch, 5), (place, 20), (cancel, 5)]),
            (55, 65, vec![(place, 10)]),
            (60, 70, vec![]),
            (75, 75, vec![]),
            (79, 72, vec![]),
            (75, 90, vec![(cancel, 15)]),
            // A loop that comes back later was doing something else.
            (75, 900, vec![(cancel, 55)]),
            (65, 90, vec![(cancel, 10)]),
            (80, 90, vec![]),
        ] {
            let met = line.within(from_us * 1_000, to_us * 1_000);
            let met: Vec<(Class, u64)> = met.map(|(class, ns)| (class, ns / 1_000)).collect();
            assert_eq!(met, expected, "{from_us} to {to_us}");
        }
    }

    #[test]
    fn a_loop_is_at_a_request_from_its_bytes_until_its_answer_could_leave() {
        let request = |class| Request {
            class,
            connection: 0,
            bytes: Vec::new(),
            expect: crate::workload::Expect::Rests,
        };
        let requests = [Class::Batch, Class::Place, Class::Read, Class::Place].map(request);
        let times = Times::told(
            &[0, 500_000, 510_000, 600_000],
            &[540_000, 550_000, 590_000, NEVER],
            // A batch takes 500 µs, and its answer waits 10 µs more and is read 20 µs later; then comes an order.
            &["recv;dur=0.005, sign;dur=0.5, journal;dur=0.01, total;dur=0.515", "total;dur=0.03", "", ""],
            &[20_000, 0, 0, 0],
        );
        let line = Line::of(&requests, &times);
        let at = |from_ns, to_ns| line.within(from_ns, to_ns).collect::<Vec<_>>();
        assert_eq!(at(0, 1_000_000), [(Class::Batch, 500_000), (Class::Place, 30_000)]);
        assert_eq!((seen_ns(&times, 0), seen_ns(&times, 1), seen_ns(&times, 2)), (5_000, 520_000, 590_000));
        assert_eq!(at(500_000, seen_ns(&times, 1)), [(Class::Batch, 20_000)]);
    }

    #[test]
    fn while_its_cpu_was_taken_a_loop_was_at_nobody() {
        let request = Request {
            class: Class::Place,
            connection: 0,
            bytes: Vec::new(),
            expect: crate::workload::Expect::Rests,
        };
        let stopped = "sign;dur=9.0, total;dur=9.0";
        let usual = "sign;dur=0.03, total;dur=0.03";
        let answered_ns = [30_000, 60_000, 9_060_000];
        let times = Times::told(&[0; 3], &answered_ns, &[usual, usual, stopped], &[0; 3]);
        let line = Line::of(&vec![request; 3], &times);
        assert_eq!(line.within(0, 60_000).map(|(_, ns)| ns).sum::<u64>(), 60_000);
        assert_eq!(line.within(1_000_000, 9_060_000).collect::<Vec<_>>(), [(Class::Place, 60_000)]);
    }
}
