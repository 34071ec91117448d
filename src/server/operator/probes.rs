//! What only a try can tell: ports, the data directory's disk, its lock, the clock.
//!
//! Nothing stays behind: sockets are closed, the probe's file is removed before it returns, and a data directory that
//! is not there yet is not made; the nearest folder above it is checked instead.

mod lock;

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{major, minor, statfs, statvfs};
use rustix::time::{ClockId, clock_gettime};

use super::admin;
use super::speed;
use crate::journal::log::LOG_HEADER_BYTES;
use crate::journal::{self, SHARED_MEMORY, log_bytes_min, segments_directory};
use crate::limits::{Mode, Scope};
use crate::server::connections::descriptors;
use crate::server::connections::socket;
use crate::server::machine::crowd::Crowd;
use crate::server::machine::disk_count::DiskCount;
use crate::server::machine::disk_writers::DiskWriters;
use crate::server::machine::files::Below;
use crate::server::machine::jitter::percentile;
use crate::server::machine::own_time::OwnThreads;
use crate::server::machine::run_delay::RunDelay;
use crate::server::machine::system;
use crate::server::operator::dev::mark;
use crate::server::plan::topology::{LoopPlan, Wait, allowed_cpus};
use crate::server::plan::{Durability, Plan};
use crate::server::process::secret;
use crate::topology::checks::{
    ClientOrders, DiskProbe, Follower, LoopWork, Needs, Pinned, Probes, Refusal, Sleeps, available_bytes,
    cannot_be_had, used_by_others,
};
use crate::topology::placement::JOURNAL_PRIORITY;
use crate::topology::placement::SHARDS_MAX;

/// Segments that a start must have room for: the one that is open, the next, and one being packed.
const SEGMENTS_AHEAD: u64 = 3;
/// The log's size is a multiple of this.
const LOG_UNIT_BYTES: u64 = 4_096;

/// What `plan` asks of its machine.
pub(crate) fn needs(plan: &Plan) -> Needs {
    let loops = &plan.topology.loops;
    let pinned = loops.iter().filter_map(|core| {
        Some(Pinned { name: core.name.clone(), cpu: core.cpu?, is_hot: core.shard.is_some() || core.ingress })
    });
    Needs {
        pinned: pinned.collect(),
        loops: loops.len(),
        work: loops.iter().map(work).collect(),
        knows_signers: plan.known_signers_bytes != 0,
        client_orders: client_orders(plan),
        shards: usize::from(plan.topology.shards),
        connections: u64::from(plan.limits.connections_max),
        descriptors: descriptors::OTHERS,
        backlog: socket::BACKLOG.into(),
        journal_cpu: plan.topology.journal_cpu,
        journal_asks_for_real_time: plan.topology.journal_may_be_real_time(),
        policy: plan.topology.policy,
        durable: plan.durability == Durability::Durable,
        free_bytes: plan.disk_free_min.saturating_add(SEGMENTS_AHEAD.saturating_mul(plan.segment_bytes)),
        segment_bytes: plan.segment_bytes,
        log_bytes: plan.log_bytes.saturating_add(LOG_HEADER_BYTES),
        log_raised: log_raised(plan),
        memory_bytes: plan.memory_bytes(),
        memory_on_top: plan.memory_on_top(),
        memory_piece_bytes: plan.limits.books_bytes,
        memory_taken: plan.memory_taken(),
    }
}

/// Why a start would be refused for want of memory, or for its log, as far as that shows without making or filling
/// anything.
pub(crate) fn refusal(plan: &Plan) -> Option<String> {
    let (named, data_dir) = (plan.log_path.as_deref(), &plan.data_dir);
    cannot_be_had(&Below::this_machine(), &needs(plan))
        .or_else(|| Some(format!("journal.log_path: {}", no_place_for_log(named?, data_dir)?)))
        .or_else(|| no_room_for_log(plan.log_bytes, &log_room(named, data_dir).ok()?))
}

/// Why the log's file would not get its room, if so. A start that found out by taking it would first take all there is
/// from everybody, in memory as on a disk.
fn no_room_for_log(log_bytes: u64, (place, free): &(String, u64)) -> Option<String> {
    let most = free.saturating_sub(LOG_HEADER_BYTES) / LOG_UNIT_BYTES * LOG_UNIT_BYTES;
    let told = || format!("journal.log_bytes: got {log_bytes}; allowed: up to {most}, as free in {place}");
    (most < log_bytes).then(told)
}

/// The least log for each number of shards, where that of `plan` is smaller.
fn log_raised(plan: &Plan) -> Vec<Option<u64>> {
    let least = (0..=SHARDS_MAX).map(log_bytes_min);
    least.map(|least| Some(least).filter(|&least| plan.log_bytes < least)).collect()
}

/// The rate limit of one client's orders.
fn client_orders(plan: &Plan) -> Option<ClientOrders> {
    let rule = plan.rate_rules[Scope::Order as usize].filter(|_| plan.rate_mode != Mode::Off)?;
    Some(ClientOrders {
        rule: rule.to_string(),
        milli_per_second: rule.sustained_milli_per_s(),
        refuses: plan.rate_mode == Mode::Enforce,
    })
}

fn work(core: &LoopPlan) -> LoopWork {
    LoopWork {
        name: core.name.clone(),
        cpu: core.cpu,
        sockets: core.ingress,
        shard: core.shard.is_some(),
        follows: match (core.reader, core.feed) {
            (true, _) => Some(Follower::Reader),
            (false, true) => Some(Follower::Feed),
            (false, false) => None,
        },
        sleeps: match core.wait {
            Wait::Park => Sleeps::AtOnce,
            Wait::SpinThenPark => Sleeps::AfterSpinning,
            Wait::Spin => Sleeps::Never,
        },
    }
}

/// Tries everything on this machine for an exchange that `config`, if there is one, was written for; takes about a second,
/// for stolen time is measured over one.
pub(crate) fn look(plan: &Plan, config: Option<&Path>) -> Probes {
    let stat_before = std::fs::read_to_string("/proc/stat").ok();
    let began = Instant::now();
    // There may be two disks: answers wait for that of the segments.
    let folders = [&plan.data_dir, &segments_directory(&plan.data_dir)].map(|folder| nearest_folder(folder));
    let [_, of_segments] = &folders;
    let cpus = plan.topology.cpus_for_waiting(&allowed_cpus());
    let mut probes = Probes {
        config: Ok(None),
        ports: Ok(ports(plan)),
        lock: Ok(lock::refusal(&plan.data_dir, plan.log_path.as_deref())),
        journal: Ok(journal::refusal(&plan.data_dir, plan.log_path.as_deref()).map(|fault| fault.to_string())),
        secret: Ok(secrets(plan, config)),
        disk: of_segments.as_deref().ok_or_else(no_folder).and_then(disk),
        free_bytes: folders.iter().try_fold(Some(u64::MAX), |least, folder| {
            let folder = folder.as_deref().ok_or_else(no_folder)?;
            let free = if writable(folder).is_ok() { Some(free_bytes(folder)?) } else { None };
            Ok(least.zip(free).map(|(one, other)| one.min(other)))
        }),
        log_room: log_room(plan.log_path.as_deref(), &plan.data_dir),
        held_bytes: None,
        clock: system::clock_is_in_step().map_err(|fault| format!("adjtimex: {fault}")),
        real_time: real_time(),
        stat_before,
        stat_quiet: None,
        own_time: None,
        busy_with: Vec::new(),
        signature_ns: Err("not tried".to_owned()),
        signature_lost_millionths: 0,
        read_ns: speed::read_ns(&cpus),
        wake_ns: wake_ns(plan),
        disk_quiet: Err(no_folder()),
        jitter: None,
    };
    try_signatures(&mut probes, &cpus);
    look_at_others(
        &mut probes,
        of_segments.as_deref(),
        Duration::from_secs(1).saturating_sub(began.elapsed()).max(QUIET_TIME_MIN),
    );
    probes
}

/// Why a start would refuse the secrets, the operator's token among them, a directory whose keys are public, or one
/// without the exchange of its configuration.
fn secrets(plan: &Plan, config: Option<&Path>) -> Option<Refusal> {
    const OPERATORS: &str = "the operator's token opens all that the operator may do, so nobody may guess it";
    const PUBLIC: &str = "who knows an account's key can trade and withdraw with it";
    const EMPTY: &str = "an empty exchange would take the place of the one that is meant";
    let (data_dir, chain_id) = (&plan.data_dir, Some(plan.chain_id));
    let because = |why| move |fault| Refusal { fault, why };
    let token_counts = admin::token_of_environment().is_none();
    let devs = mark::refuse_devs(data_dir).err().map(because(PUBLIC));
    devs.or_else(|| secret::refuse_none(data_dir, config?).err().map(because(EMPTY)))
        .or_else(|| admin::chosen_token().err().map(because(OPERATORS)))
        .or_else(|| secret::fault_of_master(data_dir, chain_id).map(because(Refusal::OTHER_MASTER)))
        .or_else(|| secret::fault_of_token(data_dir).filter(|_| token_counts).map(because(OPERATORS)))
}

/// Tries it on a thread that ends at once.
fn real_time() -> Result<Option<String>, String> {
    let tried = std::thread::Builder::new().spawn(|| system::be_real_time(JOURNAL_PRIORITY).err());
    let tried = tried.map_err(|fault| format!("no thread: {fault}"))?;
    Ok(tried.join().expect("it asks the kernel").map(|refusal| refusal.to_string()))
}

/// What a signature check takes, on one of `cpus` if there are any.
pub(crate) fn try_signatures(probes: &mut Probes, cpus: &[usize]) {
    let tried = speed::signature(cpus);
    probes.signature_lost_millionths = tried.as_ref().map_or(0, |tried| tried.lost_millionths);
    probes.signature_ns = tried.map(|tried| tried.least_ns);
}

/// How soon a woken thread runs on the CPU of the first loop with connections.
pub(crate) fn wake_ns(plan: &Plan) -> Result<u64, String> {
    let allowed = allowed_cpus();
    let place = plan.topology.loops.iter().find(|core| core.ingress).and_then(|core| core.cpu);
    speed::wake_ns(place.unwrap_or(allowed[0]), &allowed)
}

/// Counts for `time` what others do on every CPU, and on the disk of `of_segments` if that is known: this thread sleeps
/// meanwhile, so whatever is counted is theirs.
pub(crate) fn look_at_others(probes: &mut Probes, of_segments: Option<&Path>, time: Duration) {
    let crowd = Crowd::of_threads();
    let disk = of_segments.map(|folder| (folder, DiskCount::of(folder)));
    let writers = DiskWriters::now(None);
    let quiet = stat();
    std::thread::sleep(time);
    probes.stat_quiet = Some([quiet, stat()]);
    if let Some((folder, before)) = disk {
        probes.disk_quiet = before.and_then(|before| {
            let after = DiskCount::of(folder)?;
            let writer = writers.most_of(&DiskWriters::now(None), before.bytes_until(&after));
            Ok(before.until(&after, time).by(writer))
        });
    }
    name_others(probes, &crowd, time);
}

/// The same of the CPUs alone while this process's other threads run: what these use is not counted.
pub(crate) fn look_beside_ourselves(probes: &mut Probes, time: Duration) {
    let (crowd, own) = (Crowd::of_threads(), OwnThreads::now());
    let before = stat();
    std::thread::sleep(time);
    probes.stat_quiet = Some([before, stat()]);
    probes.own_time = Some(own.until(&OwnThreads::now()));
    name_others(probes, &crowd, time);
}

/// Names who had most of each CPU since the look at the `crowd`.
fn name_others(probes: &mut Probes, crowd: &Crowd, time: Duration) {
    let later = Crowd::of_threads();
    let Some(quiet) = &probes.stat_quiet else { return };
    let had_most = |cpu: usize| {
        let millionths = used_by_others(quiet, probes.own_time.as_ref(), cpu)?;
        Some((cpu, crowd.most_of(&later, cpu, millionths, time)?))
    };
    probes.busy_with = allowed_cpus().into_iter().filter_map(had_most).collect();
}

/// The kernel's counts of every CPU; nothing if they cannot be read.
fn stat() -> String {
    std::fs::read_to_string("/proc/stat").unwrap_or_default()
}

/// How long others are counted at least: fifty of the kernel's ticks.
pub(crate) const QUIET_TIME_MIN: Duration = Duration::from_millis(500);

/// Makes a file in `folder` and removes it: permissions alone do not say that one can.
fn writable(folder: &Path) -> Result<(), String> {
    let path = folder.join(format!(".outcry-check-{}-there", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    made.and_then(|_| std::fs::remove_file(&path)).map_err(|fault| format!("{}: {fault}", folder.display()))
}

/// Where the log's file gets its room, and how much is there; what a file of that name has is room as well.
fn log_room(named: Option<&Path>, data_dir: &Path) -> Result<(String, u64), String> {
    let usual = Path::new(SHARED_MEMORY);
    let folder = match named {
        None if usual.is_dir() => usual.to_owned(),
        None => nearest_folder(data_dir).ok_or_else(no_folder)?,
        Some(path) => nearest_folder(path.parent().unwrap_or(data_dir)).ok_or_else(no_folder)?,
    };
    let (place, free) = room_in(&folder, available_bytes(&Below::this_machine()))?;
    Ok((place, free.saturating_add(log_had(named, data_dir))))
}

/// Where a file in `folder` gets its room, and how much is there: of a folder in memory no more than is `available`.
fn room_in(folder: &Path, available: Option<u64>) -> Result<(String, u64), String> {
    let disk = statvfs(folder).map_err(|fault| format!("statvfs: {fault}"))?;
    // One in memory may have no bound.
    let free = if disk.f_blocks == 0 { u64::MAX } else { disk.f_bavail.saturating_mul(disk.f_frsize) };
    let place = folder.display();
    match available.filter(|available| *available < free) {
        Some(available) if is_in_memory(folder)? => Ok((format!("memory, where {place} is"), available)),
        _ => Ok((place.to_string(), free)),
    }
}

/// Whether what is written in `folder` takes memory and stays there.
fn is_in_memory(folder: &Path) -> Result<bool, String> {
    Ok(matches!(filesystem(folder)?.0.as_str(), "tmpfs" | "ramfs"))
}

/// What the log's file has already, as after a crash.
fn log_had(named: Option<&Path>, data_dir: &Path) -> u64 {
    let file = journal::log_path(named, data_dir).and_then(|path| std::fs::metadata(path).ok());
    file.map_or(0, |file| file.blocks() * 512)
}

fn no_folder() -> String {
    "no part of data_dir is there".to_owned()
}

/// `path`, or the nearest folder above it that is there.
fn nearest_folder(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    whole.ancestors().find(|folder| folder.is_dir()).map(Path::to_path_buf)
}

/// Why the listeners' addresses cannot be had, as far as that is so.
pub(super) fn ports(plan: &Plan) -> Vec<String> {
    let tries = [("listen.http", plan.http), ("listen.admin", plan.admin)];
    tries.into_iter().filter_map(|(name, address)| socket::listen(name, address).err()).collect()
}

/// Why no log can be at `path`, whoever has the file that is there; a folder that comes with `data_dir` may be missing.
fn no_place_for_log(path: &Path, data_dir: &Path) -> Option<String> {
    let at = path.display();
    match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => return Some(format!("{at} is a folder; allowed: a file")),
        Ok(about) if !about.is_file() => {
            return Some(format!("{at} is a device, a pipe or a socket; allowed: a file"));
        }
        Ok(_) => return None,
        Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => return Some(format!("{at}: {fault}")),
        Err(_) => {}
    }
    let folder = std::path::absolute(path).ok()?.parent()?.to_path_buf();
    if folder.is_dir() {
        return writable(&folder).err().map(|fault| format!("not writable: {fault}"));
    }
    let is_made = std::path::absolute(data_dir).is_ok_and(|data_dir| data_dir.starts_with(&folder));
    let named = folder.display();
    (!is_made).then(|| format!("{at}: there is no folder {named}; allowed: a file in a folder that is there"))
}

fn free_bytes(folder: &Path) -> Result<u64, String> {
    journal::free_bytes(folder).map_err(|fault| format!("statvfs: {fault}"))
}

/// Filesystems by the kernel's numbers, and whether they are on this machine and outlive a boot.
const FILESYSTEMS: &[(i128, &str, bool)] = &[
    (0xEF53, "ext4", true),
    (0x5846_5342, "xfs", true),
    (0x9123_683E, "btrfs", true),
    (0xF2F5_2010, "f2fs", true),
    (0x2FC1_2FC1, "zfs", true),
    (0xCA45_1A4E, "bcachefs", true),
    (0x0102_1994, "tmpfs", false),
    (0x8584_58F6, "ramfs", false),
    (0x794C_7630, "overlay", false),
    (0x6969, "nfs", false),
    (0xFF53_4D42, "cifs", false),
    (0xFE53_4D42, "smb", false),
    (0x00C3_6400, "ceph", false),
    (0x0102_1997, "9p", false),
    (0x6573_5546, "fuse", false),
];

/// Writes of each kind; a spinning disk takes some seconds for them, a good one some milliseconds.
const WRITES: u32 = 200;
/// No longer than this for each kind.
const WRITES_TIME: Duration = Duration::from_secs(2);
const BLOCK: usize = 4_096;

/// Makes a file in `folder`, writes blocks both ways, and removes it.
fn disk(folder: &Path) -> Result<DiskProbe, String> {
    let (filesystem, is_local) = filesystem(folder)?;
    let path = folder.join(format!(".outcry-check-{}", std::process::id()));
    let written = write_both(&path);
    // It may not have been made; then there is nothing to remove.
    let _ = std::fs::remove_file(&path);
    let (direct, fsync) = written.map_err(|fault| format!("{}: {fault}", folder.display()))?;
    let (write_us, direct_refused, cpu_millionths) = match direct {
        Ok(direct) => (direct.us, None, direct.cpu_millionths),
        Err(fault) => ((0, 0), Some(fault.to_string()), fsync.cpu_millionths),
    };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let device = std::fs::metadata(folder).map_err(|fault| format!("stat: {fault}"))?.dev();
    let discards = is_mounted_with(&mounts, (major(device), minor(device)), "discard");
    let fsync_us = fsync.us;
    Ok(DiskProbe { filesystem, is_local, direct_refused, discards, write_us, fsync_us, cpu_millionths })
}

/// The name of the filesystem of `folder`, and whether it is on this machine and outlives a boot.
fn filesystem(folder: &Path) -> Result<(String, bool), String> {
    let kind = statfs(folder).map_err(|fault| format!("statfs: {fault}"))?;
    let number = i128::from(kind.f_type);
    let known = FILESYSTEMS.iter().find(|(known, ..)| *known == number);
    Ok(known.map_or_else(
        || (format!("filesystem {number:#x}"), true),
        |(_, name, local)| ((*name).to_owned(), *local),
    ))
}

/// Whether the filesystem of this device has an option, by the text of `/proc/self/mountinfo` (proc(5)): the
/// third field is the device, the options of the filesystem come last.
fn is_mounted_with(mounts: &str, (major, minor): (u32, u32), option: &str) -> bool {
    let device = format!("{major}:{minor}");
    let mut of_device = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&device));
    of_device.any(|line| {
        line.rsplit(' ').next().is_some_and(|options| options.split(',').any(|one| one == option))
    })
}

/// What writes took, one after another, without the time that this thread waited for a CPU that others had.
struct Times {
    /// Median and 99th percentile.
    us: (u64, u64),
    /// This thread's share of a CPU meanwhile.
    cpu_millionths: u64,
}

/// Direct writes, or why they are refused; and writes with `fsync`.
fn write_both(path: &Path) -> std::io::Result<(std::io::Result<Times>, Times)> {
    let bytes = usize::try_from(WRITES).expect("some") * BLOCK;
    let room = vec![0_u8; 2 * BLOCK];
    let block = &room[room.as_ptr().align_offset(BLOCK)..][..BLOCK];
    let plain = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // As a segment is made ahead: blocks that were only reserved would be dearer to overwrite.
    plain.write_all_at(&vec![0; bytes], 0)?;
    plain.sync_all()?;
    let fsync = times(|at| {
        plain.write_all_at(block, at)?;
        plain.sync_all()
    })?;
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC).open(path);
    let direct = direct.and_then(|file| times(|at| file.write_all_at(block, at)));
    Ok((direct, fsync))
}

fn times(mut write: impl FnMut(u64) -> std::io::Result<()>) -> std::io::Result<Times> {
    let mut delay = RunDelay::of_this_thread();
    let (began, cpu_began_ns) = (Instant::now(), thread_cpu_ns());
    let (mut took_us, mut lost) = (Vec::new(), Duration::ZERO);
    for number in 0..WRITES {
        let start = Instant::now();
        write(u64::from(number) * u64::try_from(BLOCK).expect("small"))?;
        let took = start.elapsed();
        let waited = Duration::from_nanos(delay.since_last().unwrap_or(0));
        lost += waited;
        took_us.push(u64::try_from(took.saturating_sub(waited).as_micros()).unwrap_or(u64::MAX));
        if WRITES_TIME < began.elapsed() {
            break;
        }
    }
    let cpu_ns = thread_cpu_ns().saturating_sub(cpu_began_ns);
    let all = began.elapsed().saturating_sub(lost);
    let all_us = u64::try_from(all.as_micros()).unwrap_or(u64::MAX).max(1);
    took_us.sort_unstable();
    let us = (percentile(&took_us, 500), percentile(&took_us, 990));
    Ok(Times { us, cpu_millionths: (cpu_ns * 1_000 / all_us).min(1_000_000) })
}

/// Nanoseconds of CPU that this thread has had.
pub(super) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or_default());
    seconds * 1_000_000_000 + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_tried_and_left_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let found = disk(folder.path()).expect("it can be written");
        assert!(found.fsync_us.0 <= found.fsync_us.1 && !found.filesystem.is_empty(), "{found:?}");
        assert!((1..=1_000_000).contains(&found.cpu_millionths), "a write takes time of a CPU: {found:?}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
    }

    #[test]
    fn what_the_log_s_file_has_is_room_whoever_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = folder.path().join("log");
        assert_eq!((log_had(None, folder.path()), log_had(Some(&named), folder.path())), (0, 0));
        std::fs::write(&named, [1; 8_192]).expect("room");
        // No other exchange has this process's number for its name, so the usual file is this test's alone.
        let uuid = format!("00000000-0000-4000-8000-{:012}", std::process::id());
        std::fs::write(folder.path().join("identity"), format!("exchange {uuid}\njournal {uuid}\n"))
            .expect("room");
        let usual = journal::log_path(None, folder.path()).expect("it has a name");
        std::fs::write(&usual, [1; 4_096]).expect("room");
        let had = [log_had(None, folder.path()), log_had(Some(&named), folder.path())];
        std::fs::remove_file(&usual).expect("it was there");
        assert!(4_096 <= had[0] && 8_192 <= had[1], "{had:?}");
    }

    #[test]
    fn a_log_gets_no_more_room_than_its_folder_has_nor_than_memory_if_that_is_where_it_is() {
        let disk = tempfile::tempdir().expect("a folder");
        let (memory, disk) = (Path::new(SHARED_MEMORY), disk.path());
        for (folder, available, is_of_memory) in [
            (memory, Some(0), true),
            (memory, Some(u64::MAX), false),
            (memory, None, false),
            (disk, Some(0), is_in_memory(disk).expect("known")),
        ] {
            let (place, free) = room_in(folder, available).expect("looked");
            let in_memory = format!("memory, where {} is", folder.display());
            assert_eq!((place == in_memory, free == 0), (is_of_memory, is_of_memory), "{place} {free}");
        }
        for (log_bytes, free, told) in [
            (8_192, 12_288, None),
            (8_192, 12_287, Some("journal.log_bytes: got 8192; allowed: up to 4096, as free in there")),
            (8_192, 0, Some("journal.log_bytes: got 8192; allowed: up to 0, as free in there")),
        ] {
            let refused = no_room_for_log(log_bytes, &("there".to_owned(), free));
            assert_eq!(refused.as_deref(), told, "{free}");
        }
    }

    #[test]
    fn options_of_a_filesystem_are_those_of_its_device() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard,errors=remount-ro\n\
                      23 1 8:2 / /data rw,discard - xfs /dev/sda2 rw,attr2,nodiscard\n\
                      24 1 0:21 / /dev/shm rw - tmpfs tmpfs rw\n";
        for (device, discards) in [((8, 1), true), ((8, 2), false), ((0, 21), false), ((9, 9), false)] {
            assert_eq!(is_mounted_with(mounts, device, "discard"), discards, "{device:?}");
        }
    }

    #[test]
    fn a_folder_where_nothing_can_be_made_is_not_writable_whoever_asks() {
        // Even root makes no file there, though its permissions let everybody in.
        let fault = writable(Path::new("/proc")).expect_err("refused");
        assert!(fault.starts_with("/proc: "), "{fault}");
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(writable(folder.path()), Ok(()));
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
    }
}
