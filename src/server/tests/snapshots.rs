//! Snapshots beside a server that trades: made by themselves, held up, broken off, refused by the disk,
//! and read again when orders are asked for that left memory.
//!
//! Segments are as small as tests may have them, so that some are sealed within a second.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::{Client, Trader, hex, options, says, seed, until};
use crate::domain::text::parse_hex;
use crate::domain::{OrderId, Side, TokenId};
use crate::journal::{Base, Disk, SnapshotReader, SnapshotWriter, snapshots};
use crate::memory::sections::{Name, Sink};
use crate::server::operator::journal::verify;
use crate::server::plan::options::Options;
use crate::server::plan::topology::allowed_cpus;
use crate::server::plan::{Start, plan_on};
use crate::server::process::clock::{self, Clock};
use crate::server::process::snapshotter::Pace;
use crate::server::process::start::{End, Running, start};

const ENOSPC: i32 = 28;
const SEGMENT_BYTES: u64 = 64 << 10;

/// Only the operator asks for snapshots.
const ONLY_ASKED: Pace = Pace { segments_every: u64::MAX / 2, ..EAGER };
/// As soon as there is something to hold.
const EAGER: Pace =
    Pace { segments_every: 2, look_every: Duration::from_millis(1), retry_after: Duration::from_millis(1) };

/// A server, its operator and two traders of one market.
struct Site {
    running: Running,
    operator: Client,
    client: Client,
    maker: Trader,
    taker: Trader,
    tokens: [TokenId; 2],
    /// Ids of orders that traded and are over.
    over: Vec<String>,
}

impl Site {
    fn running(options: &Options, disk: &Disk, pace: Pace) -> Running {
        let dev = Start { dev: true, ..Start::default() };
        let mut plan = plan_on(options, dev, &[0, 1]).expect("a plan");
        plan.segment_bytes = SEGMENT_BYTES;
        plan.snapshot_disk = disk.clone();
        plan.snapshot_pace = pace;
        start(plan, Clock::real()).expect("starts")
    }

    fn open(options: &Options, disk: &Disk, pace: Pace) -> Self {
        let running = Self::running(options, disk, pace);
        let operator = Client::connect(running.admin());
        let mut client = Client::connect(running.http());
        let (maker, taker) = (Trader::new(1, &mut client), Trader::new(2, &mut client));
        let tokens = seed(&running, &[&maker.address, &taker.address], 1)[0];
        Self { running, operator, client, maker, taker, tokens, over: Vec::new() }
    }

    /// Another process, as it were, on the same directory.
    fn restart(self, options: &Options, disk: &Disk, pace: Pace) -> Self {
        let Self { mut running, maker, taker, tokens, over, .. } = self;
        assert_eq!(running.stop(), End::Clean);
        let running = Self::running(options, disk, pace);
        let (operator, client) = (Client::connect(running.admin()), Client::connect(running.http()));
        Self { running, operator, client, maker, taker, tokens, over }
    }

    fn end(mut self) {
        assert_eq!(self.running.stop(), End::Clean);
    }

    /// Two orders that meet, both over with it.
    fn trade(&mut self) {
        let (id, body) = self.maker.order(&self.tokens[0], Side::Buy, 40, 5);
        says(&self.client.ask(&self.maker.request("POST", "/order", &body)), 200, "\"status\":\"live\"");
        self.over.push(hex(&id.0));
        let (id, body) = self.taker.order(&self.tokens[1], Side::Buy, 60, 5);
        says(&self.client.ask(&self.taker.request("POST", "/order", &body)), 200, "\"status\":\"matched\"");
        self.over.push(hex(&id.0));
    }

    /// An order that rests for a moment and costs nothing.
    fn churn(&mut self) {
        let order = self.maker.order(&self.tokens[0], Side::Buy, 10, 5);
        self.rests_for_a_moment(&order);
    }

    fn rests_for_a_moment(&mut self, (id, body): &(OrderId, String)) {
        says(&self.posts(body), 200, "\"status\":\"live\"");
        let body = format!("{{\"orderID\":\"{}\"}}", hex(&id.0));
        says(&self.client.ask(&self.maker.request("DELETE", "/order", &body)), 200, &hex(&id.0));
        self.over.push(hex(&id.0));
    }

    fn posts(&mut self, body: &str) -> (u16, String) {
        self.client.ask(&self.maker.request("POST", "/order", body))
    }

    /// Waits until segments have all that was answered.
    fn settle(&mut self) {
        let answered = self.metric("outcry_acknowledged_position");
        until("what was answered is in segments", || answered <= self.metric("outcry_durable_position"));
        until("the write is counted", || 0 < self.metric("outcry_journal_writes_total"));
    }

    /// What the maker reads.
    fn read(&mut self, path: &str) -> (u16, String) {
        let request = self.maker.request("GET", path, "");
        self.client.ask(&request)
    }

    fn ask_for_snapshot(&mut self) {
        self.operator.send(
            b"POST /snapshot HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
              Content-Length: 2\r\n\r\n{}",
        );
    }

    /// A snapshot of all that was answered so far.
    fn snapshot(&mut self) -> (u16, String) {
        self.settle();
        self.ask_for_snapshot();
        self.operator.answer()
    }

    /// A number of `/metrics`; with labels, the sum over them.
    fn metric(&mut self, name: &str) -> u64 {
        let (_, text) =
            Client::connect(self.running.admin()).ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let of_name = text.lines().filter(|line| line.starts_with(name));
        of_name.map(|line| line.rsplit(' ').next().expect("a value").parse::<u64>().expect("a number")).sum()
    }
}

/// The files beside a data directory's snapshots whose names end like this, by name.
fn files(data: &Path, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(data.join("snapshots")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> =
        paths.filter(|path| path.to_str().is_some_and(|name| name.ends_with(end))).collect();
    found.sort_unstable();
    found
}

/// Compares every snapshot with a replay of all frames.
#[track_caller]
fn verified(data: &Path, options: &Options) {
    let text = verify(data, options.log_path().as_deref()).expect("good");
    for file in files(data, ".snapshot") {
        assert!(text.contains(&format!("snapshot {}: good\n", file.display())), "{text}");
    }
    assert!(text.ends_with("good\n"), "{text}");
}

#[test]
fn snapshots_come_by_themselves_two_stay_and_what_they_hold_leaves_memory() {
    let data = tempfile::tempdir().expect("a directory");
    let options = options(&data, 1);
    let mut site = Site::open(&options, &Disk::default(), EAGER);
    let mut seen = BTreeSet::new();
    site.trade();
    until("four snapshots", || {
        site.churn();
        let there = files(data.path(), ".snapshot");
        // A third one may have its name already while the first goes.
        assert!(there.len() <= 3, "{there:?}");
        seen.extend(there);
        4 <= seen.len()
    });
    let placed = site.over.len() as u64;
    until("orders that are over leave memory", || {
        let (memory, archived) =
            (site.metric("outcry_orders_in_memory"), site.metric("outcry_archived_rows"));
        assert!(archived <= placed && placed <= memory + archived, "{memory} + {archived} of {placed}");
        0 < archived && memory < placed
    });
    // What left memory is answered as before.
    let first = format!("/data/order/{}", site.over[0]);
    says(&site.read(&first), 200, "\"status\":\"MATCHED\"");
    site.end();
    assert_eq!(files(data.path(), ".snapshot").len(), 2, "two stay");
    assert!(files(data.path(), ".new").is_empty());
    verified(data.path(), &options);
}

#[test]
fn all_that_is_over_leaves_memory_after_a_snapshot_and_live_orders_stay() {
    let data = tempfile::tempdir().expect("a directory");
    all_that_is_over_leaves(&data, &options(&data, 1), &["outcry_orders_in_memory"]);
}

#[test]
fn all_that_is_over_leaves_the_memory_of_a_feed_apart_too() {
    let data = tempfile::tempdir().expect("a directory");
    let options = Options { cpu_feed: "own".to_owned(), ..options(&data, 1) };
    all_that_is_over_leaves(&data, &options, &["outcry_orders_in_memory", "outcry_feed_orders_in_memory"]);
}

fn all_that_is_over_leaves(data: &tempfile::TempDir, options: &Options, in_memory: &[&str]) {
    let mut site = Site::open(options, &Disk::default(), ONLY_ASKED);
    let (live, body) = site.maker.order(&site.tokens[0], Side::Buy, 10, 5);
    says(&site.client.ask(&site.maker.request("POST", "/order", &body)), 200, "\"status\":\"live\"");
    (0..40).for_each(|_| site.trade());
    let paths: Vec<String> =
        site.over.iter().map(|id| format!("/data/order/{id}")).chain(["/data/trades".to_owned()]).collect();
    let before: Vec<_> = paths.iter().map(|path| site.read(path)).collect();
    for round in 0..3 {
        let (status, said) = site.snapshot();
        assert_eq!(status, 200, "{said}");
        for name in in_memory {
            until("only the live order is in memory", || site.metric(name) == 1);
        }
        assert_eq!(site.metric("outcry_archived_rows"), 80);
        // A ladder of whole cents, in a block of a power of two.
        assert_eq!(site.metric("outcry_books_bytes"), 1024);
        for (path, before) in paths.iter().zip(&before) {
            assert_eq!(site.read(path), *before, "round {round}: {path}");
        }
        says(&site.read("/data/orders"), 200, &hex(&live.0));
        if round == 1 {
            site = site.restart(options, &Disk::default(), ONLY_ASKED);
        }
    }
    site.end();
    verified(data.path(), options);
}

/// Orders of three archives, in the order of their stamps, and with the newest stamp in the oldest archive.
#[test]
fn what_a_full_memory_of_digests_knows_and_forgot_is_the_same_after_a_start_from_archives() {
    const DIGESTS: usize = 16;
    for is_newest_first in [false, true] {
        let data = tempfile::tempdir().expect("a directory");
        let options = Options { sizes_digests: DIGESTS as u64, ..options(&data, 1) };
        let mut site = Site::open(&options, &Disk::default(), ONLY_ASKED);
        let mut stamped = clock::wall();
        let mut orders: Vec<_> = (0..3 * DIGESTS)
            .map(|_| {
                until("each has a stamp of its own", || stamped < clock::wall());
                stamped = clock::wall();
                site.maker.order(&site.tokens[0], Side::Buy, 10, 5)
            })
            .collect();
        let known = orders.split_off(orders.len() - DIGESTS);
        let forgotten = orders;
        let (newest, others) = known.split_last().expect("some");
        let first: &[_] = if is_newest_first { std::slice::from_ref(newest) } else { &[] };
        let last: &[_] = if is_newest_first { &[] } else { std::slice::from_ref(newest) };
        for order in first.iter().chain(&forgotten).chain(others).chain(last) {
            site.rests_for_a_moment(order);
        }
        assert_eq!(site.snapshot().0, 200);
        until("all leave memory", || site.metric("outcry_orders_in_memory") == 0);
        assert_eq!(files(data.path(), ".run").len(), 3);
        assert_eq!(site.metric("outcry_digests"), DIGESTS as u64);
        assert_eq!(site.metric("outcry_books_bytes"), 0);
        for _ in 0..2 {
            for (_, body) in &known {
                says(&site.posts(body), 200, "\"status\":\"live\"");
            }
            for (_, body) in &forgotten {
                says(&site.posts(body), 400, "too old");
            }
            says(&site.read("/data/orders"), 200, "\"data\":[]");
            site = site.restart(&options, &Disk::default(), ONLY_ASKED);
        }
        site.end();
    }
}

#[test]
fn snapshots_are_made_beside_the_pinned_loops() {
    let data = tempfile::tempdir().expect("a directory");
    let options = Options { cpu_policy: "auto".into(), ..options(&data, 1) };
    let mut site = Site::open(&options, &Disk::default(), ONLY_ASKED);
    assert_eq!(site.snapshot().0, 200);
    let topology =
        plan_on(&options, Start { dev: true, ..Start::default() }, &[0, 1]).expect("a plan").topology;
    let allowed = allowed_cpus();
    let waiting =
        Some(topology.cpus_for_waiting(&allowed)).filter(|cpus| !cpus.is_empty()).unwrap_or(allowed);
    let may_use = |task: &DirEntry| -> Vec<usize> {
        let id = task.file_name().into_string().expect("a number").parse().expect("a number");
        // One that has ended meanwhile is another test's.
        let cpus = sched_getaffinity(Pid::from_raw(id)).unwrap_or_default();
        (0..CpuSet::MAX_CPU).filter(|&cpu| cpus.is_set(cpu)).collect()
    };
    let tasks = std::fs::read_dir("/proc/self/task").expect("there").map(|task| task.expect("there"));
    let is_ours = |task: &DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "snapshot\n")
    };
    let threads: Vec<_> = tasks.filter(is_ours).map(|task| may_use(&task)).collect();
    assert!(threads.contains(&waiting), "{threads:?}, not {waiting:?}");
    site.end();
}

#[test]
fn while_a_snapshot_is_held_up_shard_and_reader_go_on() {
    let data = tempfile::tempdir().expect("a directory");
    let options = options(&data, 1);
    let disk = Disk::failing_after(u64::MAX, ENOSPC);
    let mut site = Site::open(&options, &disk, ONLY_ASKED);
    (0..10).for_each(|_| site.trade());
    disk.let_through(0);
    site.ask_for_snapshot();
    until("the snapshot is held up", || disk.is_held());
    let tally =
        |site: &mut Site| (site.metric("outcry_requests_total"), site.metric("outcry_applied_position"));
    let before = tally(&mut site);
    let at = site.metric("outcry_durable_position");
    for _ in 0..100 {
        site.trade();
        let id = site.over.last().expect("just placed").clone();
        let request = site.taker.request("GET", &format!("/data/order/{id}"), "");
        says(&site.client.ask(&request), 200, &id);
    }
    assert!(disk.is_held(), "nobody waited for the snapshot");
    let after = tally(&mut site);
    assert!(before.0 + 300 <= after.0 && before.1 < after.1, "{before:?} {after:?}");
    disk.let_through(u64::MAX);
    let (status, said) = site.operator.answer();
    assert_eq!(status, 200, "{said}");
    let (_, position) = said.split_once("\"position\":").expect("a position");
    let position: u64 = position.split(',').next().and_then(|text| text.parse().ok()).expect("a number");
    assert!(position <= at + SEGMENT_BYTES, "it is of before");
    let site = site.restart(&options, &Disk::default(), ONLY_ASKED);
    site.end();
    verified(data.path(), &options);
}

#[test]
fn a_snapshot_that_cannot_be_written_is_said_changes_nothing_and_is_tried_again() {
    let data = tempfile::tempdir().expect("a directory");
    let options = options(&data, 1);
    let disk = Disk::failing_after(u64::MAX, ENOSPC);
    let mut site = Site::open(&options, &disk, ONLY_ASKED);
    site.trade();
    // A directory in which nothing can be made, whoever we are.
    std::fs::write(data.path().join("snapshots"), b"").expect("written");
    let (status, said) = site.snapshot();
    let directory = data.path().join("snapshots").display().to_string();
    assert!(status == 503 && said.contains("\"code\":\"snapshot_failed\""), "{status} {said}");
    assert!(said.contains(&directory), "{said}");
    site.trade();
    std::fs::remove_file(&directory).expect("removed");
    let (status, said) = site.snapshot();
    assert_eq!(status, 200, "{said}");

    let newest = |data: &Path| files(data, ".snapshot").pop().expect("one");
    // A full disk, at each of its operations.
    let mut failures = 0;
    for good in 0.. {
        site.trade();
        let before = newest(data.path());
        disk.fail_after(good);
        let (status, said) = site.snapshot();
        disk.mend();
        if status == 200 {
            break;
        }
        failures += 1;
        assert!(said.contains("No space left"), "{said}");
        assert!(files(data.path(), ".snapshot").contains(&before), "the last one stays");
        assert!(files(data.path(), ".new").is_empty(), "its room is given back");
        let kept = snapshots(data.path()).expect("a shelf").check(|_| Ok(())).expect("listed");
        let named = kept.into_iter().flat_map(|base| base.expect("whole").runs);
        let named: BTreeSet<_> = named.map(|run| data.path().join("snapshots").join(run)).collect();
        let runs = files(data.path(), ".run").into_iter().collect::<BTreeSet<_>>();
        assert_eq!(runs, named, "as is that of its archive, after {good} operations");
        says(&site.read("/data/trades"), 200, &site.over[0].clone());
    }
    assert!(3 < failures, "{failures}");

    // Nobody asks, and it comes when the disk is well again.
    disk.fail();
    let mut site = site.restart(&options, &disk, EAGER);
    let before = newest(data.path());
    let sealed = site.metric("outcry_durable_position") + 4 * SEGMENT_BYTES;
    until("some segments are sealed", || {
        site.churn();
        sealed < site.metric("outcry_durable_position")
    });
    assert_eq!(newest(data.path()), before);
    disk.mend();
    until("the next snapshot", || newest(data.path()) != before);
    site.end();
    verified(data.path(), &options);
}

#[test]
fn what_a_process_left_half_written_is_gone_after_the_next_start() {
    let data = tempfile::tempdir().expect("a directory");
    let options = options(&data, 1);
    let disk = Disk::failing_after(u64::MAX, ENOSPC);
    let mut site = Site::open(&options, &disk, ONLY_ASKED);
    (0..5).for_each(|_| site.trade());
    let (status, _) = site.snapshot();
    assert_eq!(status, 200);
    site.trade();
    // One operation after the other: half a run, then half a snapshot.
    site.settle();
    disk.let_through(0);
    site.ask_for_snapshot();
    let mut left = Vec::new();
    for end in [".run.new", ".new"] {
        until(end, || {
            until("the next operation", || disk.is_held());
            let found =
                files(data.path(), end).into_iter().find(|path| !left.iter().any(|(left, _)| left == path));
            let Some(path) = found else {
                disk.let_through(1);
                return false;
            };
            let bytes = std::fs::read(&path).expect("it is there");
            left.push((path, bytes));
            true
        });
    }
    disk.let_through(u64::MAX);
    let (status, _) = site.operator.answer();
    assert_eq!(status, 200);
    let Site { mut running, maker, taker, tokens, over, .. } = site;
    assert_eq!(running.stop(), End::Clean);
    // As if it had been killed there.
    for (path, bytes) in &left {
        std::fs::write(path, bytes).expect("written");
    }
    assert_eq!(files(data.path(), ".new").len(), 2);
    let running = Site::running(&options, &Disk::default(), ONLY_ASKED);
    assert!(files(data.path(), ".new").is_empty());
    let (operator, client) = (Client::connect(running.admin()), Client::connect(running.http()));
    let mut site = Site { running, operator, client, maker, taker, tokens, over };
    says(&site.read(&format!("/data/order/{}", site.over[0].clone())), 200, "MATCHED");
    site.end();
    verified(data.path(), &options);
}

#[test]
fn a_damaged_archived_row_is_answered_500_said_and_counted_until_the_next_snapshot_mends_it() {
    let data = tempfile::tempdir().expect("a directory");
    let options = options(&data, 1);
    let mut site = Site::open(&options, &Disk::default(), ONLY_ASKED);
    (0..5).for_each(|_| site.trade());
    assert_eq!(site.snapshot().0, 200);
    until("nothing is in memory", || site.metric("outcry_orders_in_memory") == 0);
    let file = files(data.path(), ".run").pop().expect("a run");
    let whole = std::fs::read(&file).expect("a run");
    let id = parse_hex::<32>(site.over[0].as_bytes()).expect("an id");
    let mut bytes = whole.clone();
    // The rows are the last section, so the last place with the id is in the row.
    let at = bytes.windows(32).rposition(|bytes| bytes == id).expect("the row");
    bytes[at] ^= 1;
    std::fs::write(&file, &bytes).expect("written");

    let damaged = format!("/data/order/{}", site.over[0]);
    let other = format!("/data/order/{}", site.over[2]);
    for asked in 1..=3 {
        says(&site.read(&damaged), 500, "\"code\":\"history_unreadable\"");
        assert_eq!(site.metric("outcry_history_unreadable_total"), asked);
        says(&site.read(&other), 200, "MATCHED");
        site.trade();
    }
    let mut site = site.restart(&options, &Disk::default(), ONLY_ASKED);
    says(&site.read(&damaged), 500, "\"code\":\"history_unreadable\"");
    // The next snapshot would carry the row on, so it is made without this one.
    for _ in 0..2 {
        site.trade();
        let (status, said) = site.snapshot();
        assert_eq!(status, 200, "{said}");
    }
    until("the row is there again", || site.read(&damaged).0 == 200);
    says(&site.read(&damaged), 200, "MATCHED");
    assert!(!file.exists(), "two whole snapshots are there, and neither names it");
    site.end();
    verified(data.path(), &options);
}

#[test]
fn verify_names_every_snapshot_that_is_damaged_or_says_otherwise() {
    type Sections = Vec<(Name, Vec<u8>)>;
    let data = tempfile::tempdir().expect("a directory");
    let options = options(&data, 1);
    let mut site = Site::open(&options, &Disk::default(), ONLY_ASKED);
    for _ in 0..2 {
        (0..3).for_each(|_| site.trade());
        assert_eq!(site.snapshot().0, 200);
    }
    site.end();
    verified(data.path(), &options);
    let shelf = snapshots(data.path()).expect("a shelf");
    let sections = |reader: &mut SnapshotReader| {
        let mut sections: Sections = Vec::new();
        while let Some((name, bytes)) = reader.next()? {
            sections.push((name, bytes.to_vec()));
        }
        Ok(sections)
    };
    let (older, older_rows) = shelf.oldest(&mut Vec::new(), sections).expect("read").expect("two");
    let (newer, newer_rows) = shelf.newest(&mut Vec::new(), sections).expect("read").expect("two");
    let write = |base: &Base, hash, rows: &Sections| {
        let put = |out: &mut SnapshotWriter| rows.iter().for_each(|(name, bytes)| out.section(*name, bytes));
        shelf.write(&mut base.clone(), hash, put).expect("written");
    };
    let [older_file, newer_file] = &files(data.path(), ".snapshot")[..] else { panic!("two") };
    let run = files(data.path(), ".run").pop().expect("a run");
    let refused = |file: &Path, words: &str| {
        let text = verify(data.path(), options.log_path().as_deref()).expect_err("refused");
        let line =
            text.lines().find(|line| line.contains(&file.display().to_string()) && line.contains(words));
        assert!(line.is_some_and(|line| line.starts_with("snapshot ")), "{} {words}: {text}", file.display());
        assert!(text.contains("snapshots are not: "), "{text}");
    };

    // Its header has another hash than its rows.
    write(&newer, newer.hash ^ 1, &newer_rows);
    refused(newer_file, "state hash of the rows");
    // All of it fits together, and is of another time.
    write(&newer, older.hash, &older_rows);
    refused(newer_file, "state hash: expected");
    write(&newer, newer.hash, &newer_rows);
    verified(data.path(), &options);
    // Any byte of it, or of the archive that it names.
    for file in [newer_file, older_file, &run] {
        let good = std::fs::read(file).expect("a file");
        for at in [good.len() / 3, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(file, bad).expect("written");
            refused(file, "");
        }
        std::fs::write(file, good).expect("written");
    }
    verified(data.path(), &options);
}
