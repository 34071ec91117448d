//! What the server's threads told of themselves while the load was on: the difference of two looks at them.

use std::time::Instant;

use crate::away::Away;
use crate::counts::{self, Counted, Counts};
use crate::schedule::nanos;
use crate::server::{Server, Worked};
use crate::stats::{Quantiles, as_micros};
use crate::summary::{Journal, LoopBusy};
use crate::watch;

/// A look at a server.
pub(crate) struct Look {
    at: Instant,
    worked: Vec<Worked>,
    counted: Counted,
    /// For how long each thread was ready since its start while others ran.
    waited_ns: Vec<(String, u64)>,
}

/// What came between two.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) loops: Vec<LoopBusy>,
    pub(crate) journal: Option<Journal>,
    /// What reads took in the server; none if there were none.
    pub(crate) reads: Option<Quantiles>,
}

impl Look {
    /// Looks now.
    pub(crate) fn at(server: &Server) -> Self {
        let waited_ns = watch::run_delays_ns(server.pid());
        Self { at: Instant::now(), worked: server.worked(), counted: server.counted(), waited_ns }
    }

    /// What came between this one and a later one.
    pub(crate) fn until(&self, later: &Self) -> Told {
        let time = later.at - self.at;
        let since = |thread: &str, stage: &str| later.counted.since(&self.counted, thread, stage);
        let mut loops = busy(&self.worked, &later.worked, time.as_secs_f64());
        for one in &mut loops {
            let idle = time.mul_f64((1.0 - one.busy).max(0.0));
            let threads_percent = self.waited_percent(later, &one.name);
            one.away = since(&one.name, "away").map(|counts| Away::of(&counts, nanos(idle), threads_percent));
        }
        let spans = |stage: &str| Some(counts::spans(&since("journal", stage)?, nanos(time)));
        let journal = spans("write").zip(spans("run_delay"));
        let reads: Counts = loops.iter().filter_map(|one| since(&one.name, "read")).flatten().collect();
        Told {
            journal: journal.map(|(write, run_delay)| Journal { write, run_delay }),
            reads: (!reads.is_empty()).then(|| counts::quantiles(&reads)),
            loops,
        }
    }

    /// Of the time until a later look, what others had of a thread's CPU while it was ready.
    fn waited_percent(&self, later: &Self, thread: &str) -> Option<f64> {
        let of = |look: &Self| look.waited_ns.iter().find(|(name, _)| name == thread).map(|(_, ns)| *ns);
        let ns = of(later)?.saturating_sub(of(self)?);
        Some(100.0 * as_micros(ns) / as_micros(nanos(later.at - self.at).max(1)))
    }
}

/// The part of `seconds` in which each loop worked, by what it had worked before and after.
fn busy(before: &[Worked], after: &[Worked], seconds: f64) -> Vec<LoopBusy> {
    let of = |now: &Worked| {
        let then = before.iter().find(|then| then.name == now.name);
        let had = then.map_or(0.0, |then| then.turns_s);
        let wrote = then.and_then(|then| then.sends_s).unwrap_or(0.0);
        LoopBusy {
            name: now.name.clone(),
            busy: (now.turns_s - had).max(0.0) / seconds,
            sending: now.sends_s.map(|sends_s| (sends_s - wrote).max(0.0) / seconds),
            away: None,
        }
    };
    after.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_busy_for_what_it_worked_between_two_looks() {
        let of = |name: &str, turns_s, sends_s| Worked { name: name.to_owned(), turns_s, sends_s };
        let worked =
            |shard: f64, reader| vec![of("shard0", shard, Some(shard / 4.0)), of("reader", reader, None)];
        let shares = busy(&worked(1.0, 5.0), &worked(3.0, 5.0), 4.0);
        let shares: Vec<_> =
            shares.iter().map(|share| (share.name.as_str(), share.busy, share.sending)).collect();
        assert_eq!(shares, [("shard0", 0.5, Some(0.125)), ("reader", 0.0, None)]);
    }
}
