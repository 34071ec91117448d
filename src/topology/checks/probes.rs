//! What was tried on a machine, and what was seen of others there.

use super::cpu::{OTHERS_MAX_MILLIONTHS, percent};
use super::gaps::{Gaps, Named, stop};

/// What a trial of the data directory's disk showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskProbe {
    /// The kind of filesystem.
    pub filesystem: String,
    /// Whether it is on this machine, and outlives a boot.
    pub is_local: bool,
    /// Why writes cannot go past the page cache, if they cannot.
    pub direct_refused: Option<String>,
    /// Whether freed blocks are discarded at once (the mount option `discard`), during which writes wait.
    pub discards: bool,
    /// Median and 99th percentile of one 4 KiB write with `O_DIRECT|O_DSYNC`, in microseconds, without what its thread
    /// waited for a CPU that others had.
    pub write_us: (u64, u64),
    /// Median and 99th percentile of one 4 KiB write and `fsync`, in microseconds.
    pub fsync_us: (u64, u64),
    /// The share of a CPU that a thread takes while it makes the writes that durable answers wait for, one after
    /// another, in millionths.
    pub cpu_millionths: u64,
}

impl DiskProbe {
    /// Median and 99th percentile of what a durable answer waits for, in microseconds: a direct write, or one with
    /// `fsync` where the page cache cannot be bypassed.
    #[must_use]
    pub const fn durable_us(&self) -> (u64, u64) {
        if self.direct_refused.is_none() { self.write_us } else { self.fsync_us }
    }
}

/// What a start would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it is, and what is allowed.
    pub fault: String,
    /// Why it is refused, in one sentence.
    pub why: &'static str,
}

impl Refusal {
    /// Why nobody else may have the data directory.
    pub const TWO_PROCESSES: &'static str =
        "two processes on one data directory would destroy it, so the second is refused";
    /// Why no other master secret will do.
    pub const OTHER_MASTER: &'static str =
        "every client's key is made from the master secret; none is good with another one";

    /// Its fault, and why it is refused; if nothing is, the `usual` reason to look.
    pub(super) fn split(probe: &Result<Option<Self>, String>, usual: &'static str) -> (Faults, &'static str) {
        let why = probe.iter().flatten().next().map_or(usual, |refusal| refusal.why);
        (probe.clone().map(|refusal| refusal.map(|refusal| refusal.fault)), why)
    }
}

/// A fault, if there is one, or why nobody could look.
pub(super) type Faults = Result<Option<String>, String>;

/// How others used a disk while this process slept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskUse {
    /// Reads a second.
    pub reads_per_second: u64,
    /// Writes a second.
    pub writes_per_second: u64,
    /// Bytes a second that they wrote.
    pub bytes_per_second: u64,
    /// The share of the time in which it had something to do, in millionths.
    pub busy_millionths: u64,
    /// Whether its reads took longer than its writes.
    pub is_mostly_read: bool,
    /// Who made most of that work, if one was seen to.
    pub who: Option<String>,
}

impl DiskUse {
    /// A disk that others keep busy for one part in ten makes one write in ten wait for them.
    const BUSY_MAX_MILLIONTHS: u64 = 100_000;

    /// Whether a process that writes there notices it.
    #[must_use]
    pub const fn is_felt(&self) -> bool {
        Self::BUSY_MAX_MILLIONTHS <= self.busy_millionths
    }

    /// This with the process that wrote most, who is named only where stopping it would help: not if the disk has
    /// nothing to do, or mostly reads.
    #[must_use]
    pub fn by(self, writer: Option<String>) -> Self {
        let who = writer.filter(|_| self.is_felt() && !self.is_mostly_read);
        Self { who, ..self }
    }

    /// How much it is.
    #[must_use]
    pub fn amount(&self) -> String {
        format!(
            "busy {} of the time with others' work, {} reads, {} writes and {} KiB written a second{}",
            percent(self.busy_millionths),
            self.reads_per_second,
            self.writes_per_second,
            self.bytes_per_second.div_ceil(1 << 10),
            self.who.as_ref().map_or_else(String::new, |who| format!(", most of it by {who}"))
        )
    }

    /// What ends it, or avoids that disk.
    #[must_use]
    pub fn remedy(&self) -> String {
        format!("{}, or give another data_dir", self.remedy_brief())
    }

    /// What ends others' writes, most of which are by `who`, or avoids that disk.
    #[must_use]
    pub fn remedy_of(who: Option<&str>) -> String {
        format!("{}, or give another data_dir", stop_writer(who))
    }

    /// What ends it, for a table.
    #[must_use]
    pub fn remedy_brief(&self) -> String {
        if self.is_mostly_read {
            return "stop who reads there (`iotop -o` says who)".to_owned();
        }
        stop_writer(self.who.as_deref())
    }
}

fn stop_writer(who: Option<&str>) -> String {
    match who {
        Some(who) => format!("stop {who}, which writes there"),
        None => "stop who writes there (`iotop -o` says who)".to_owned(),
    }
}

/// The CPU time of a process that runs, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTime {
    /// Of each thread that has one CPU: that CPU and what it used.
    pub pinned: Vec<(usize, u64)>,
    /// Of all other threads: where they ran is not known.
    pub wandering_ns: u64,
}

impl OwnTime {
    /// What its pinned threads used of `cpu`.
    pub(super) fn pinned_ns(&self, cpu: usize) -> u64 {
        self.pinned.iter().filter(|(own, _)| *own == cpu).map(|(_, ns)| ns).sum()
    }
}

/// What other programs used of a CPU, at least: see [`used_by_others`](super::used_by_others).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Others {
    /// The CPU.
    pub cpu: usize,
    /// Their share of its time, in millionths.
    pub millionths: u64,
    /// How long they were watched, in milliseconds.
    pub looked_ms: u64,
    /// The one that had at least half of that, if any.
    pub who: Option<Named>,
}

impl Others {
    /// Whether that is more than the kernel's counting in ticks can show for an idle CPU.
    #[must_use]
    pub const fn are_felt(&self) -> bool {
        OTHERS_MAX_MILLIONTHS <= self.millionths
    }

    /// How much it is, and whose.
    #[must_use]
    pub fn amount(&self) -> String {
        let who = self.who.as_ref().map_or_else(String::new, |who| format!(", most of it {}", who.who));
        let tenths = (self.looked_ms + 50) / 100;
        format!("{} of the last {}.{} s{who}", percent(self.millionths), tenths / 10, tenths % 10)
    }

    /// What ends it.
    #[must_use]
    pub fn remedy(&self) -> String {
        stop(self.who.as_ref())
    }
}

/// What only a trial can show: for each, what was found or why nobody could look.
#[derive(Clone, Debug)]
pub struct Probes {
    /// Faults of the configuration; none if it is good.
    pub config: Result<Option<String>, String>,
    /// Faults of the two listeners' addresses.
    pub ports: Result<Vec<String>, String>,
    /// Why the data directory could not be taken, if so.
    pub lock: Result<Option<Refusal>, String>,
    /// Why a start would refuse the journal in it, if that shows without reading frames; what mends that follows a
    /// semicolon.
    pub journal: Result<Option<String>, String>,
    /// Why a start would refuse the secrets in it, if so; what mends that follows a semicolon.
    pub secret: Result<Option<Refusal>, String>,
    /// The data directory's disk.
    pub disk: Result<DiskProbe, String>,
    /// Bytes free there; none if nothing can be written there.
    pub free_bytes: Result<Option<u64>, String>,
    /// Where the log's file gets its room, and the bytes free there.
    pub log_room: Result<(String, u64), String>,
    /// Bytes of memory that this process holds, if it is the exchange itself and runs.
    pub held_bytes: Option<u64>,
    /// Whether the clock is kept in step, and the kernel's estimate of its error in microseconds.
    pub clock: Result<(bool, u64), String>,
    /// Why a thread of this process may not be real-time, if so.
    pub real_time: Result<Option<String>, String>,
    /// `/proc/stat` a second earlier; without it, what counts is the time since boot.
    pub stat_before: Option<String>,
    /// `/proc/stat` twice, half a second or more apart, while this process slept or counted what it used itself; nothing
    /// in them if it cannot be read. None of a machine that cannot be looked at: a copy, or a plan for another one.
    pub stat_quiet: Option<[String; 2]>,
    /// What this process used between these two looks, if it is the exchange itself and runs.
    pub own_time: Option<OwnTime>,
    /// Each CPU of which one thread had at least half of what others used meanwhile, and that thread.
    pub busy_with: Vec<(usize, Named)>,
    /// What one signature check takes here, in nanoseconds.
    pub signature_ns: Result<u64, String>,
    /// The share of the CPU that others had during that trial, in millionths of the time.
    pub signature_lost_millionths: u64,
    /// The time of one read here (a market of 1.8 kB, without its socket), in nanoseconds.
    pub read_ns: Result<u64, String>,
    /// The time from the call that wakes a thread, asleep on a loop's CPU, until it runs, in nanoseconds.
    pub wake_ns: Result<u64, String>,
    /// What others had of the data directory's disk while this process slept.
    pub disk_quiet: Result<DiskUse, String>,
    /// Gaps on each allowed CPU, if they were measured.
    pub jitter: Option<Vec<Gaps>>,
}

impl Probes {
    /// How others use the data directory's disk, if a process that writes there notices it.
    #[must_use]
    pub fn disk_others(&self) -> Option<&DiskUse> {
        self.disk_quiet.as_ref().ok().filter(|found| found.is_felt())
    }

    /// The load beside which a write was tried, in words.
    #[must_use]
    pub fn beside_writers(&self) -> String {
        match self.disk_others() {
            None => "with no other load".to_owned(),
            Some(others) => format!(
                "while others use it: the disk is {}; an answer waits for their work too, so it is this or more",
                others.amount()
            ),
        }
    }

    /// Probes where nobody looked, because of `why`.
    #[must_use]
    pub fn none(why: &str) -> Self {
        let why = || why.to_owned();
        Self {
            config: Err(why()),
            ports: Err(why()),
            lock: Err(why()),
            journal: Err(why()),
            secret: Err(why()),
            disk: Err(why()),
            free_bytes: Err(why()),
            log_room: Err(why()),
            held_bytes: None,
            clock: Err(why()),
            real_time: Err(why()),
            stat_before: None,
            stat_quiet: None,
            own_time: None,
            busy_with: Vec::new(),
            signature_ns: Err(why()),
            signature_lost_millionths: 0,
            read_ns: Err(why()),
            wake_ns: Err(why()),
            disk_quiet: Err(why()),
            jitter: None,
        }
    }
}
