//! The moments at which a CPU was taken from a thread that never sleeps.

use super::percent;
use crate::topology::valid::LOST_PERCENT_MAX;

/// How often and how long one CPU was taken from a thread that never slept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The CPU.
    pub cpu: usize,
    /// Gaps a second.
    pub per_second: u64,
    /// Median gap in nanoseconds; 0 if there was none.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The wait until the CPU is back that one in a thousand arrivals at random moments reaches or exceeds, in
    /// nanoseconds: more of them fall into a long gap than into a short one.
    pub wait_p999_ns: u64,
    /// The wait that one in a hundred arrivals at random moments reaches or exceeds, in nanoseconds.
    pub wait_p99_ns: u64,
    /// Share of time lost, in millionths.
    pub lost_millionths: u64,
    /// The part of `lost_millionths` that was lost in gaps of [`Gaps::LONG_NS`] or more.
    pub long_millionths: u64,
    /// The part of `lost_millionths` that other threads of this machine had; none if the kernel does not say.
    pub threads_millionths: Option<u64>,
    /// The part of `long_millionths` that other threads had.
    pub threads_long_millionths: Option<u64>,
    /// The thread that had at least half of `threads_millionths`, by ticks of the kernel's clock, if any.
    pub largest: Option<Named>,
    /// The part that the host is charged with, by ticks; none if the kernel does not say.
    pub host_millionths: Option<u64>,
}

/// Who had a CPU while our thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// Other threads of this machine.
    Threads,
    /// The host, which is charged with it.
    Host,
    /// Nobody is charged with it, and it was in gaps longer than interrupts take.
    Unseen,
    /// Nobody is charged with it, and no gap was long.
    Interrupts,
    /// The kernel does not say.
    Unknown,
}

/// The longest p99 gap that a CPU with a loop may have: as long as a loop takes to sleep and wake.
pub(super) const GAP_P99_MAX_NS: u64 = 100_000;
/// The most that such a CPU may lose in all: as much as a run of the rig may.
const LOST_MAX_MILLIONTHS: u64 = LOST_PERCENT_MAX as u64 * 10_000;
/// What to do about the other guests of a host, which come and go.
const TRY_AGAIN: &str = "or wait and try again";
/// A share of the time, in millionths, that one order in a thousand meets.
const MET_BY_ONE_IN_A_THOUSAND: u64 = 1_000;

impl Gaps {
    /// Interrupts and the deferred work that follows them are shorter.
    pub const LONG_NS: u64 = 500_000;

    /// Whether a loop on that CPU is left alone.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.p99_ns <= GAP_P99_MAX_NS
            && self.wait_p999_ns <= GAP_P99_MAX_NS
            && self.lost_millionths <= LOST_MAX_MILLIONTHS
    }

    /// Whether only the slowest of a thousand meet what is not quiet.
    #[must_use]
    pub const fn is_rare(&self) -> bool {
        self.wait_p99_ns <= GAP_P99_MAX_NS
    }

    /// These gaps for the question who had most of all that was lost, instead of what the slowest orders wait for: long
    /// gaps count apart only if at least half was lost in them.
    #[must_use]
    pub fn in_all(&self) -> Self {
        let is_long = self.lost_millionths <= 2 * self.long_millionths;
        Self { long_millionths: if is_long { self.long_millionths } else { 0 }, ..self.clone() }
    }

    /// Whether most of all that was lost went to another taker than most of what the slowest orders wait for.
    #[must_use]
    pub fn has_another_in_all(&self) -> bool {
        self.in_all().taker() != self.taker()
    }

    /// Who had most of what the slowest orders wait for: of the long gaps if one order in a thousand meets those, else
    /// of all gaps. The part of other threads is known for both; the rest of a long gap was the host's, for interrupts
    /// are shorter.
    #[must_use]
    pub fn taker(&self) -> Taker {
        if (self.threads_millionths, self.host_millionths) == (None, None) {
            return Taker::Unknown;
        }
        let host = self.host_millionths.unwrap_or(0);
        let is_long = MET_BY_ONE_IN_A_THOUSAND <= self.long_millionths;
        let (of, threads, nobody) = if is_long {
            (self.long_millionths, self.threads_long_millionths, Taker::Unseen)
        } else {
            (self.lost_millionths, self.threads_millionths, Taker::Interrupts)
        };
        let threads = threads.unwrap_or(0);
        let rest = of.saturating_sub(threads);
        if rest <= threads {
            Taker::Threads
        } else if rest <= 2 * host {
            Taker::Host
        } else {
            nobody
        }
    }

    /// The [`Gaps::taker`], in a few words.
    #[must_use]
    pub fn who(&self) -> String {
        match self.taker() {
            Taker::Threads => named(self.largest.as_ref()),
            Taker::Host => "the host".to_owned(),
            Taker::Unseen => "most likely the host (nobody is charged)".to_owned(),
            Taker::Interrupts => "interrupts or the host (nobody is charged)".to_owned(),
            Taker::Unknown => "nobody says by whom".to_owned(),
        }
    }

    /// What gives the CPU back, in a few words.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self.taker() {
            Taker::Threads => stop(self.largest.as_ref()),
            Taker::Host | Taker::Unseen => format!("a host that sells whole cores, {TRY_AGAIN}"),
            Taker::Interrupts => format!(
                "interrupts moved away by `outcry tune`, if irq.affinity names any; the rest is the host's: one that sells whole cores, {TRY_AGAIN}"
            ),
            Taker::Unknown => format!("{}, or a quieter host", stop(None)),
        }
    }

    /// [`Gaps::remedy`] where somebody keeps the disk busy, which `stop` would end. A host may do the work of a guest's
    /// disks on that guest's own CPUs, so ending the writes may give them back.
    #[must_use]
    pub fn remedy_beside(&self, stop: Option<&str>) -> String {
        match self.taker() {
            Taker::Host | Taker::Unseen | Taker::Interrupts => without_writers(stop, &self.remedy()),
            Taker::Threads | Taker::Unknown => self.remedy(),
        }
    }

    /// Who had what was lost, with the share of each.
    #[must_use]
    pub fn shares(&self) -> String {
        let charged = self.threads_millionths.unwrap_or(0) + self.host_millionths.unwrap_or(0);
        let largest = self.largest.as_ref().filter(|_| 0 < self.threads_millionths.unwrap_or(0));
        format!(
            "other threads {}{}, the host {} (as far as it says), nobody that is charged {}",
            part(self.threads_millionths),
            largest.map_or_else(String::new, |Named { who, .. }| format!(" (most of it {who})")),
            part(self.host_millionths),
            percent(self.lost_millionths.saturating_sub(charged)),
        )
    }

    /// [`Gaps::shares`], and how much was lost in long gaps.
    #[must_use]
    pub fn takers(&self) -> String {
        let long = match self.long_millionths {
            0 => "no stop was half a millisecond long".to_owned(),
            long => format!(
                "{} went in stops of half a millisecond or more, of which other threads had {}",
                percent(long),
                part(self.threads_long_millionths)
            ),
        };
        format!("{}; {long}", self.shares())
    }
}

/// `remedy`, which is against the host, after `stop`, which ends others' writes, if there are any.
pub(super) fn without_writers(stop: Option<&str>, remedy: &str) -> String {
    stop.map_or_else(
        || remedy.to_owned(),
        |stop| format!("{stop}, and measure again: the host may have our CPUs for that; else {remedy}"),
    )
}

/// A share in words; the kernel may not report it.
fn part(millionths: Option<u64>) -> String {
    millionths.map_or_else(|| "not known".to_owned(), percent)
}

/// A thread that had a CPU, and whether it is one of the kernel's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name and number.
    pub who: String,
    /// Whether it is the kernel's.
    pub is_kernels: bool,
}

impl Named {
    /// The end of a name whose thread has ended: it cannot be stopped any more.
    pub const HAS_ENDED: &str = ", which has ended";

    /// What ends it, in a few words.
    #[must_use]
    pub fn remedy(&self) -> String {
        stop(Some(self))
    }

    /// Whether it is the process that started all others, or a thread of it.
    fn is_first_process(&self) -> bool {
        self.who.split(", ").next().is_some_and(|process| process.ends_with(" (1)"))
    }
}

/// Who has a CPU, as far as anybody knows.
pub(in crate::topology) fn named(who: Option<&Named>) -> String {
    match who {
        Some(Named { who, is_kernels: true }) => format!("the kernel's own work, {who}"),
        Some(Named { who, .. }) => who.clone(),
        None => "other programs here".to_owned(),
    }
}

/// What ends it, or keeps it off the CPU.
pub(in crate::topology) fn stop(who: Option<&Named>) -> String {
    match who {
        Some(Named { who, is_kernels: true }) if who.starts_with("kdamond") => {
            "`outcry tune` switches kdamond off (mem.damon)".to_owned()
        }
        Some(Named { is_kernels: true, .. }) => {
            "it is the kernel's own work, which nobody can stop: a core to spare, so that this one can be isolated".to_owned()
        }
        Some(Named { who, .. }) if who.ends_with(Named::HAS_ENDED) => {
            "nothing while it is gone: it has ended; if it comes again, stop who starts it, or keep it off this CPU".to_owned()
        }
        Some(named) if named.is_first_process() => {
            format!(
                "keep {} off this CPU (`taskset -acp` with the other CPUs): it is the first process, which must not be stopped",
                named.who
            )
        }
        Some(Named { who, .. }) => format!("stop {who}, or keep it off this CPU"),
        None => "stop what runs there (`top -H` says who), or keep it off this CPU".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_be_stopped_is_to_be_stopped() {
        for (who, expected) in [
            ("sh (8)", "stop sh (8), or keep it off this CPU"),
            ("sh (11), thread init (1)", "stop sh (11), thread init (1), or keep it off this CPU"),
            (
                "sh (8), which keeps starting dd",
                "stop sh (8), which keeps starting dd, or keep it off this CPU",
            ),
            (
                "init (1)",
                "keep init (1) off this CPU (`taskset -acp` with the other CPUs): it is the first process, which must not be \
                 stopped",
            ),
            (
                "init (1), thread worker (75)",
                "keep init (1), thread worker (75) off this CPU (`taskset -acp` with the other CPUs): it is the first process, which \
                 must not be stopped",
            ),
            (
                "loop (9), which has ended",
                "nothing while it is gone: it has ended; if it comes again, stop who starts it, or keep it off this CPU",
            ),
        ] {
            assert_eq!(stop(Some(&Named { who: who.to_owned(), is_kernels: false })), expected);
        }
    }
}
