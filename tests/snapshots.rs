//! A start from a snapshot and the frames after it gives the same state as a start from all frames.
//!
//! A random stream of acts by traders and the operator goes on while snapshots are taken. Then the
//! exchange is started from the newest snapshot, from the older one when the newest is damaged, and
//! from all frames. Each time every answer is the same to the byte, and so is the state hash.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;
#[path = "snapshots/scene.rs"]
mod scene;

use common::exchange::{Exchange, Plan, journal_output, said};
use common::folder;
use common::random::Random;
use scene::{KINDS, Scene, snapshot_at};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The seed of the run that is always the same; the other run has a new seed each time.
const SEED: u64 = 6;
/// Snapshots that are taken on the way; the two newest stay.
const SNAPSHOTS: usize = 3;
/// Acts around each of them.
const ACTS: u64 = 150;

/// Orders between two snapshots until the first segment has been given back, and how often that is
/// tried. Nine to fourteen times with eight seeds: the more markets are resolved, the more orders are refused, and
/// the less is written.
const ORDERS_BETWEEN: u64 = 400;
const ROUNDS_MAX: u64 = 100;

/// Orders that give each trader more trades than fit on a page.
const ORDERS_OF_PAGES: u64 = 1_000;
/// How long the reader may take to shed them. Generous, because CI machines are slow.
const FORGOTTEN_WITHIN: std::time::Duration = std::time::Duration::from_mins(1);
const IN_MEMORY: [&str; 2] = ["outcry_orders_in_memory", "outcry_acts_in_memory"];
const ARCHIVED: &str = "outcry_archived_rows";

/// The state hash from a check of all frames, with every snapshot intact.
#[track_caller]
fn state_hash(data_dir: &Path) -> String {
    let (hash, text) = state_hash_but(data_dir, &[]);
    assert!(text.ends_with("good\n"), "{text}");
    hash
}

/// The state hash with these snapshots damaged: each must be named, and the exit code must say so.
#[track_caller]
fn state_hash_but(data_dir: &Path, damaged: &[&Path]) -> (String, String) {
    let output = journal_output("verify", data_dir);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(i32::from(!damaged.is_empty())), "{text}");
    assert!(text.contains("stopped in good order"), "{text}");
    for (_, file) in snapshots(data_dir) {
        let good = text.contains(&format!("snapshot {}: good\n", file.display()));
        let named =
            text.lines().any(|line| line.starts_with(&format!("snapshot damaged: {}: byte", file.display())));
        let is_damaged = damaged.contains(&file.as_path());
        assert_eq!((good, named), (!is_damaged, is_damaged), "{}\n{text}", file.display());
    }
    let hash = text.lines().find_map(|line| line.strip_prefix("state hash ")).unwrap().to_owned();
    (hash, text)
}

/// The files of all snapshots, the newest last.
fn snapshots(data_dir: &Path) -> Vec<(u64, PathBuf)> {
    let entries = std::fs::read_dir(data_dir.join("snapshots"));
    let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    let position = |path: PathBuf| Some((path.file_stem()?.to_str()?.parse().ok()?, path));
    let mut found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|word| word == "snapshot"))
        .filter_map(position)
        .collect();
    found.sort_unstable();
    found
}

/// Starts, compares every answer with `before`, stops, and compares the state hash with `hash`, with
/// these snapshots `damaged`; returns what the start printed.
#[track_caller]
fn starts_alike(
    plan: &Plan,
    scene: &Scene,
    before: &[(String, u16, String)],
    hash: &str,
    begun_at: Option<u64>,
    damaged: &[&Path],
) -> String {
    let exchange = plan.start();
    let output = exchange.output();
    let whence = match begun_at {
        Some(position) => format!("recovered from the snapshot at position {position} ("),
        None => "recovered from all ".to_owned(),
    };
    assert!(output.contains(&whence), "{whence}\n{output}");
    for (was, is) in before.iter().zip(scene.answers(&exchange)) {
        assert_eq!(*was, is, "{whence}");
    }
    scene.repeats(&exchange);
    exchange.stop();
    assert_eq!(state_hash_but(&plan.data_dir(), damaged).0, hash, "{whence}");
    output
}

fn every_start_says_the_same(shards: u16, mut random: Random) -> Scene {
    let folder = folder();
    let plan =
        Plan::dev(folder.path()).set(&format!("cpu.shards={shards}")).set("journal.hash_every_frames=64");
    let data_dir = plan.data_dir();
    let exchange = plan.start();
    let mut scene = Scene::open(&exchange, Random::new(random.next()));
    let mut taken = Vec::new();
    for _ in 0..SNAPSHOTS {
        let first = random.below(ACTS);
        scene.acts(first);
        let snapshot = scene.snapshot();
        scene.acts(ACTS - first);
        taken.push(snapshot.join().unwrap());
    }
    scene.acts(1 + random.below(ACTS));
    eprintln!("done: {:?}", scene.done);
    let before = scene.answers(&exchange);
    for (path, status, answer) in &before {
        // A token without orders or trades may have no book, no midpoint and no last price.
        let good = *status == 200 || (*status == 404 && path.contains("token_id="));
        assert!(good, "{path}: {status} {answer}");
    }
    exchange.stop();
    let hash = state_hash(&data_dir);
    let kept = snapshots(&data_dir);
    let [(older, _), (newest, file)] = &kept[..] else { panic!("two snapshots stay: {kept:?}") };
    assert_eq!([*older, *newest], taken[SNAPSHOTS - 2..]);

    starts_alike(&plan, &scene, &before, &hash, Some(*newest), &[]);

    let mut bytes = std::fs::read(file).unwrap();
    let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
    bytes[at] ^= 1 << random.below(8);
    std::fs::write(file, &bytes).unwrap();
    let output = starts_alike(&plan, &scene, &before, &hash, Some(*older), &[file]);
    let named = output.lines().any(|line| line.contains(file.to_str().unwrap()) && line.contains("not used"));
    assert!(named, "byte {at} of {}\n{output}", file.display());

    std::fs::remove_dir_all(data_dir.join("snapshots")).unwrap();
    starts_alike(&plan, &scene, &before, &hash, None, &[]);
    scene
}

/// Runs with the fixed seed, which does every kind of act, and with a new one.
fn with_two_seeds(shards: u16) {
    let test = format!("snapshots, {shards} shards");
    let scene = every_start_says_the_same(shards, Random::new(SEED));
    for (kind, _) in KINDS {
        assert!(scene.done.get(kind).is_some_and(|&times| 0 < times), "{kind}: {:?}", scene.done);
    }
    every_start_says_the_same(shards, Random::printed(&test));
}

#[test]
fn a_snapshot_and_its_tail_say_what_all_frames_say_with_one_shard() {
    with_two_seeds(1);
}

#[test]
fn a_snapshot_and_its_tail_say_what_all_frames_say_with_two_shards() {
    with_two_seeds(2);
}

#[test]
fn an_exchange_that_gave_its_first_segments_back_starts_and_is_checked_from_its_snapshots() {
    let folder = folder();
    let plan = Plan::dev(folder.path())
        .set("journal.segment_bytes=1048576")
        .set("journal.log_bytes=4194304")
        .set("journal.history_keep=0");
    let data_dir = plan.data_dir();
    let exchange = plan.start();
    let mut scene = Scene::open(&exchange, Random::printed("snapshots, history_keep"));
    let first = data_dir.join("journal").join("00000001.segment");
    assert!(first.exists());
    for round in 0.. {
        assert!(round < ROUNDS_MAX, "the first segment is still there: {:?}", scene.done);
        scene.acts(ACTS);
        (0..ORDERS_BETWEEN).for_each(|_| scene.act("place"));
        scene.snapshot().join().unwrap();
        if !first.exists() {
            break;
        }
    }
    scene.acts(ACTS);
    let before = scene.answers(&exchange);
    eprintln!("done: {:?}", scene.done);
    exchange.stop();
    let hash = state_hash(&data_dir);
    let [(older, older_file), (newest, file)] = &snapshots(&data_dir)[..] else { panic!("two stay") };
    starts_alike(&plan, &scene, &before, &hash, Some(*newest), &[]);
    checks_say_where_they_begin(&data_dir, *older, true);

    // Whoever keeps all is told that they are not there.
    let told = format!("journal.history_keep: all, but {}", gone(&data_dir));
    for (keep, is_told) in [("all", true), ("3", false)] {
        let exchange = plan.clone().set(&format!("journal.history_keep={keep}")).start();
        assert_eq!(exchange.output().contains(&told), is_told, "{keep}: {told}\n{}", exchange.output());
        exchange.stop();
    }

    // With either of the two alone it starts, and the check begins there.
    let whole = std::fs::read(older_file).unwrap();
    std::fs::write(older_file, b"").unwrap();
    starts_alike(&plan, &scene, &before, &hash, Some(*newest), &[older_file]);
    checks_say_where_they_begin(&data_dir, *newest, false);
    std::fs::write(older_file, whole).unwrap();
    std::fs::write(file, b"").unwrap();
    starts_alike(&plan, &scene, &before, &hash, Some(*older), &[file]);
    checks_say_where_they_begin(&data_dir, *older, false);

    // With neither, there is no state to begin with, and both are named.
    std::fs::write(older_file, b"").unwrap();
    for output in [plan.run(), journal_output("verify", &data_dir)] {
        let text = String::from_utf8(output.stderr).unwrap();
        let named = [file, older_file].iter().all(|file| text.contains(file.to_str().unwrap()));
        assert!(output.status.code() == Some(1) && named && text.contains(".segment: missing"), "{text}");
    }
}

#[test]
fn what_is_over_answers_alike_from_memory_from_the_archive_and_after_every_start() {
    let folder = folder();
    let plan = Plan::dev(folder.path())
        .set("journal.segment_bytes=1048576")
        .set("journal.log_bytes=4194304")
        .set("journal.history_keep=0");
    let exchange = plan.start();
    let mut scene = Scene::open(&exchange, Random::printed("snapshots, archive"));
    // More trades of each trader than fit on a page.
    (0..ORDERS_OF_PAGES).for_each(|_| scene.act("place"));
    scene.acts(ACTS);
    let before = scene.answers(&exchange);
    let second_page = |(path, ..): &(String, u16, String)| {
        path.starts_with("/data/trades?next_cursor=") && !path.ends_with("=MA==")
    };
    assert!(before.iter().any(second_page), "a list has several pages");
    // The house's too, which quotes in every market.
    let signed = in_memory(&exchange);
    assert_eq!(exchange.metric(ARCHIVED), 0);

    // First what leaves memory after a snapshot, then what a start finds, then what the next archive
    // contains, which is that one written again.
    scene.snapshot().join().unwrap();
    until_shed(&exchange, signed);
    assert_eq!(scene.answers(&exchange), before);
    scene.repeats(&exchange);
    exchange.stop();
    let hash = state_hash(&plan.data_dir());
    for _ in 0..2 {
        let exchange = plan.start();
        until_shed(&exchange, signed);
        assert_eq!(scene.answers(&exchange), before);
        scene.repeats(&exchange);
        snapshot_at(exchange.admin_url()).join().unwrap();
        until_shed(&exchange, signed);
        assert_eq!(scene.answers(&exchange), before);
        scene.repeats(&exchange);
        exchange.stop();
        assert_eq!(state_hash(&plan.data_dir()), hash);
    }
}

/// Orders and acts that are in memory.
fn in_memory(exchange: &Exchange) -> u64 {
    IN_MEMORY.map(|name| exchange.metric(name)).iter().sum()
}

/// Waits until each of the `signed` orders and acts is either in memory or in the archive, and not in both.
#[track_caller]
fn until_shed(exchange: &Exchange, signed: u64) {
    let deadline = std::time::Instant::now() + FORGOTTEN_WITHIN;
    loop {
        let (memory, archived) = (in_memory(exchange), exchange.metric(ARCHIVED));
        if 0 < archived && memory + archived == signed {
            return;
        }
        let late = deadline < std::time::Instant::now();
        assert!(!late, "{memory} + {archived} of {signed}\n{}", exchange.output());
    }
}

/// Which segments are not there, in words.
fn gone(data_dir: &Path) -> String {
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().path().file_stem()?.to_str()?.parse::<u64>().ok()
    };
    let oldest = std::fs::read_dir(data_dir.join("journal")).unwrap().filter_map(number).min().unwrap();
    match oldest - 1 {
        1 => "segment 1 is not there".to_owned(),
        last => format!("segments 1 to {last} are not there"),
    }
}

/// Checks what the offline commands say about a journal whose first segments were given back.
#[track_caller]
fn checks_say_where_they_begin(data_dir: &Path, position: u64, whole: bool) {
    let begins =
        format!("{}: given back, or lost; begins at the snapshot of position {position}\n", gone(data_dir));
    for (command, succeeds) in [("verify", whole), ("replay", true)] {
        let output = journal_output(command, data_dir);
        let text = said(&output);
        assert!(output.status.success() == succeeds && text.contains(&begins), "{command}\n{text}");
    }
    let dump = journal_output("dump", data_dir);
    assert!(dump.status.success() && String::from_utf8(dump.stderr).unwrap().contains(&begins));
    let frames = String::from_utf8(dump.stdout).unwrap();
    let first: Value = serde_json::from_str(frames.lines().next().unwrap()).unwrap();
    assert_eq!(first["position"], position);
}
