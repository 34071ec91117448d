//! What a loop was at while a request lay before it.
//!
//! Bytes that lie in the kernel until a loop looks at them are in no stage of the server's. But the client knows when
//! each request went and when its answer came, and the server how long it was at each. So where one loop has all
//! connections, it can be told whom it was at before it came to a request. A loop is at a request from its first
//! stage behind `recv` until its answer could leave; reads tell no stages, and take little of a loop.

use crate::generator::{NEVER, Times};
use crate::scenario::Class;
use crate::timing;
use crate::workload::Request;

/// What one loop was at, and when: spans in their order, none of which overlap.
#[derive(Debug)]
pub(crate) struct Line {
    spans: Vec<Span>,
}

/// A loop at requests of a class; nanoseconds since the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) class: Class,
}

impl Line {
    /// Of the loop that answered all of these.
    pub(crate) fn of(requests: &[Request], times: &Times) -> Self {
        let answered = (0..requests.len()).filter(|&index| times.answered_ns[index] != NEVER);
        let span = |index| {
            let timing = times.timing(index)?;
            let to_ns = times.left_ns(index).saturating_sub(stage_ns(timing, "journal"));
            let waits_ns = stage_ns(timing, "journal") + stage_ns(timing, "recv");
            let from_ns = to_ns.saturating_sub(stage_ns(timing, "total").saturating_sub(waits_ns));
            Some(Span { from_ns, to_ns, class: requests[index].class })
        };
        Self::in_order(answered.filter_map(span).collect())
    }

    /// Where two overlap, that is the first one's.
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

    /// What of a time the loop was at requests of each class; of one that ends before it begins nothing. Where the loop
    /// was at one as the time began, that is all of it: between two it ends a turn, whose answers it writes, and begins
    /// the next.
    pub(crate) fn within(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (Class, u64)> + '_ {
        let first = self.spans.partition_point(|span| span.to_ns <= from_ns);
        let spans = &self.spans[first..];
        let was_at_one = spans.first().is_some_and(|span| span.from_ns <= from_ns);
        let met = spans.iter().enumerate();
        let met = met.take_while(move |(_, span)| from_ns < to_ns && span.from_ns < to_ns);
        met.map(move |(index, span)| {
            let next_ns = spans.get(index + 1).map_or(to_ns, |next| next.from_ns);
            let until_ns = if was_at_one { next_ns } else { span.to_ns };
            (span.class, until_ns.min(to_ns) - span.from_ns.max(from_ns))
        })
    }
}

/// When the loop first looked at a request that was answered: before that its bytes lay in the kernel.
pub(crate) fn seen_ns(times: &Times, index: usize) -> u64 {
    let total_ns = times.timing(index).map_or(0, |timing| stage_ns(timing, "total"));
    times.left_ns(index).saturating_sub(total_ns)
}

fn stage_ns(timing: &str, stage: &str) -> u64 {
    timing::parse(timing).find(|(name, _)| *name == stage).map_or(0, |(_, ns)| ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_line_is_of_those_at_whom_the_loop_was() {
        let span = |(from_ns, to_ns, class)| Span { from_ns, to_ns, class };
        let (place, batch, cancel) = (Class::Place, Class::Batch, Class::Cancel);
        let line = Line::in_order(
            [(40, 60, place), (10, 50, batch), (20, 45, cancel), (70, 80, cancel)].map(span).to_vec(),
        );
        for (from_ns, to_ns, expected) in [
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
            (65, 90, vec![(cancel, 10)]),
            (80, 90, vec![]),
        ] {
            assert_eq!(line.within(from_ns, to_ns).collect::<Vec<_>>(), expected, "{from_ns} to {to_ns}");
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
            // A batch for 500 µs, whose answer waits for 10 more and is read 20 µs later; then an order.
            &["recv;dur=0.005, sign;dur=0.5, journal;dur=0.01, total;dur=0.515", "total;dur=0.03", "", ""],
            &[20_000, 0, 0, 0],
        );
        let line = Line::of(&requests, &times);
        let at = |from_ns, to_ns| line.within(from_ns, to_ns).collect::<Vec<_>>();
        assert_eq!(at(0, 1_000_000), [(Class::Batch, 500_000), (Class::Place, 30_000)]);
        assert_eq!((seen_ns(&times, 0), seen_ns(&times, 1), seen_ns(&times, 2)), (5_000, 520_000, 590_000));
        assert_eq!(at(500_000, seen_ns(&times, 1)), [(Class::Batch, 20_000)]);
    }
}
