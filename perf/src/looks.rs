//! What the server's threads report about themselves for the time of the load: the difference of two looks at them.

use std::time::Instant;

use crate::away::Away;
use crate::counts::{self, Counted, Counts};
use crate::placement::Thread;
use crate::schedule::nanos;
use crate::server::{Server, Worked};
use crate::stats::{Quantiles, as_micros};
use crate::summary::{Journal, LoopBusy};
use crate::watch;

/// What a server's threads have counted at one moment.
pub(crate) struct Look {
    at: Instant,
    worked: Vec<Worked>,
    counted: Counted,
    /// For how long each thread has been ready since its start while others ran.
    waited_ns: Vec<(String, u64)>,
    /// For how long each thread has run.
    ran_ns: Vec<(String, u64)>,
    /// For how long the client has run, and for how long it has been ready while others ran; it looks at this itself.
    client_ns: [Option<u64>; 2],
}

/// What was added between two looks.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    loops: Vec<LoopBusy>,
    pub(crate) journal: Option<Journal>,
    /// How long reads took in the server; none if there were none.
    pub(crate) reads: Option<Quantiles>,
    /// Percent of the time that each of the server's threads ran.
    pub(crate) ran_percent: Vec<(String, f64)>,
    /// Percent of the time that the client was ready while others ran, the server's threads included.
    pub(crate) client_waited_percent: Option<f64>,
    /// Percent of the time that the client ran.
    client_ran_percent: Option<f64>,
}

impl Look {
    /// Looks now.
    pub(crate) fn at(server: &Server) -> Self {
        let (waited_ns, ran_ns) = (watch::run_delays_ns(server.pid()), watch::threads_ns(server.pid()));
        Self {
            at: Instant::now(),
            worked: server.worked(),
            counted: server.counted(),
            waited_ns,
            ran_ns,
            client_ns: watch::this_thread_ns(),
        }
    }

    /// What was added between this look and a later one.
    pub(crate) fn until(&self, later: &Self) -> Told {
        let time = later.at - self.at;
        let since = |thread: &str, stage: &str| later.counted.since(&self.counted, thread, stage);
        let mut loops = busy(&self.worked, &later.worked, time.as_secs_f64());
        for one in &mut loops {
            let idle = time.mul_f64((1.0 - one.busy).max(0.0));
            let threads_percent = self.percent(later, |look| of(&look.waited_ns, &one.name));
            one.waited_percent = threads_percent;
            one.away = since(&one.name, "away").map(|counts| Away::of(&counts, nanos(idle), threads_percent));
        }
        let spans = |stage: &str| Some(counts::spans(&since("journal", stage)?, nanos(time)));
        let journal = spans("write").zip(spans("run_delay"));
        let ran_percent = |(name, _): &(String, u64)| {
            Some((name.clone(), self.percent(later, |look| of(&look.ran_ns, name))?))
        };
        let reads: Counts = loops.iter().filter_map(|one| since(&one.name, "read")).flatten().collect();
        Told {
            journal: journal.map(|(write, run_delay)| Journal { write, run_delay }),
            reads: (!reads.is_empty()).then(|| counts::quantiles(&reads)),
            ran_percent: later.ran_ns.iter().filter_map(ran_percent).collect(),
            client_waited_percent: self.percent(later, |look| look.client_ns[1]),
            client_ran_percent: self.percent(later, |look| look.client_ns[0]),
            loops,
        }
    }

    /// The nanoseconds that `of` gained until a later look, in percent of the time between.
    fn percent(&self, later: &Self, of: impl Fn(&Self) -> Option<u64>) -> Option<f64> {
        let ns = of(later)?.saturating_sub(of(self)?);
        Some(100.0 * as_micros(ns) / as_micros(nanos(later.at - self.at).max(1)))
    }
}

fn of(threads_ns: &[(String, u64)], thread: &str) -> Option<u64> {
    threads_ns.iter().find(|(name, _)| name == thread).map(|(_, ns)| *ns)
}

impl Told {
    /// Percent of the time that threads of neither the client nor the server had the client's CPU while it was ready.
    pub(crate) fn client_lost_percent(&self, threads: &[Thread], client_cpu: usize) -> Option<f64> {
        self.client_waited_percent.map(|percent| self.without_servers(percent, threads, client_cpu, ""))
    }

    /// The loops, each with how long threads of neither the client nor the server had its CPU while it was ready.
    pub(crate) fn loops(&self, threads: &[Thread], client_cpu: usize) -> Vec<LoopBusy> {
        let waited = |one: &LoopBusy| {
            let cpu = threads.iter().find(|thread| thread.name == one.name)?.cpu?;
            let clients = self.client_ran_percent.filter(|_| cpu == client_cpu).unwrap_or(0.0);
            Some((self.without_servers(one.waited_percent?, threads, cpu, &one.name) - clients).max(0.0))
        };
        self.loops.iter().map(|one| LoopBusy { waited_percent: waited(one), ..one.clone() }).collect()
    }

    /// Subtracts the run time of those of the server's threads, except `own`, that are not on another CPU.
    fn without_servers(&self, waited_percent: f64, threads: &[Thread], cpu: usize, own: &str) -> f64 {
        let is_elsewhere = |name: &str| {
            threads.iter().any(|thread| thread.name == name && thread.cpu.is_some_and(|on| on != cpu))
        };
        let servers = self.ran_percent.iter().filter(|(name, _)| name != own && !is_elsewhere(name));
        (waited_percent - servers.map(|(_, percent)| percent).sum::<f64>()).max(0.0)
    }
}

/// The part of `seconds` in which each loop worked, from its totals before and after.
fn busy(before: &[Worked], after: &[Worked], seconds: f64) -> Vec<LoopBusy> {
    let of = |now: &Worked| {
        let then = before.iter().find(|then| then.name == now.name);
        let had = then.map_or(0.0, |then| then.turns_s);
        let wrote = then.and_then(|then| then.sends_s).unwrap_or(0.0);
        LoopBusy {
            name: now.name.clone(),
            busy: (now.turns_s - had).max(0.0) / seconds,
            waited_percent: None,
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
    fn what_the_servers_threads_had_of_the_clients_cpu_is_nothing_that_it_lost_to_others() {
        let thread = |name: &str, cpu| Thread { name: name.to_owned(), cpu, wait: "park".to_owned() };
        let threads =
            [thread("outcry-shard0", Some(0)), thread("outcry-reader", Some(1)), thread("journal", None)];
        let ran_percent =
            [("outcry-shard0", 90.0), ("outcry-reader", 5.0), ("journal", 2.0), ("outcry", 1.0)];
        let ran_percent = ran_percent.map(|(name, percent)| (name.to_owned(), percent)).to_vec();
        for (waited, expected) in [(Some(58.0), Some(50.0)), (Some(7.0), Some(0.0)), (None, None)] {
            let told = Told {
                loops: Vec::new(),
                journal: None,
                reads: None,
                ran_percent: ran_percent.clone(),
                client_waited_percent: waited,
                client_ran_percent: Some(20.0),
            };
            assert_eq!(told.client_lost_percent(&threads, 1), expected);
        }
    }

    #[test]
    fn what_the_client_had_of_a_loops_cpu_is_nothing_that_the_loop_lost_to_others() {
        let thread =
            |name: &str, cpu| Thread { name: name.to_owned(), cpu: Some(cpu), wait: "park".to_owned() };
        let threads = [thread("outcry-shard0", 0), thread("outcry-ingress0", 1), thread("outcry-reader", 1)];
        let ran_percent = [("outcry-shard0", 40.0), ("outcry-ingress0", 30.0), ("outcry-reader", 5.0)];
        let one = |name: &str| LoopBusy {
            name: name.to_owned(),
            busy: 0.3,
            sending: None,
            waited_percent: Some(28.0),
            away: None,
        };
        let told = Told {
            loops: vec![one("outcry-shard0"), one("outcry-ingress0")],
            journal: None,
            reads: None,
            ran_percent: ran_percent.map(|(name, percent)| (name.to_owned(), percent)).to_vec(),
            client_waited_percent: None,
            client_ran_percent: Some(20.0),
        };
        for (client_cpu, expected) in [(1, [28.0, 3.0]), (0, [8.0, 23.0])] {
            let waited = told.loops(&threads, client_cpu).into_iter().map(|one| one.waited_percent);
            assert_eq!(waited.collect::<Vec<_>>(), expected.map(Some), "the client on CPU {client_cpu}");
        }
    }

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
